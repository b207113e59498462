/*
 * Shared by list and status, which show what goes on in a server of ours: their flags, and the way
 * to the server. They read below /api/driver/v1 and change nothing. Thread: main.
 */
#ifndef HFD_CLI_VIEW_H
#define HFD_CLI_VIEW_H

#include "driver/base/jsonx.h"
#include "handlers/cli/ask.h"
#include "handlers/client/form.h"

#define HFD_VIEW_OUTPUT_MAX_BYTES ((size_t)1024 * 1024 * 1024)

/** The form of the output: text for people, or a document. */
enum hfd_view_form {
    HFD_VIEW_TEXT,
    HFD_VIEW_WIDE,
    HFD_VIEW_JSON,
    HFD_VIEW_YAML,
    HFD_VIEW_NAME
};

/** A command that shows something. */
struct hfd_view {
    const char *name, *usage, *examples; /* examples: the end of the help */
    const struct hfd_flag *own;          /* its own flags */
    size_t own_count;
    bool takes_place; /* an argument may be given */
    bool has_wide;    /* -o wide */
    /* Results of the flags: */
    struct hfd_cli_target target;
    const char *form_name, *place;
    bool watch;
    enum hfd_view_form form;
    /* While it is open: */
    struct hfd_client_http *http;
    int64_t now_us;      /* of the server, at its last answer */
    size_t answer_bytes; /* of that answer */
};

/**
 * Reads the arguments, and opens the way to the server. With --help it prints the flags.
 * @return true when the command goes on; otherwise *status is its end. Close it in both cases
 */
bool hfd_view_open(struct hfd_view *v, int argc, const char **argv, enum hfd_exit *status);
void hfd_view_close(struct hfd_view *v);

/** Says that the arguments are wrong. @return USAGE */
enum hfd_exit hfd_view_wrong_use(const struct hfd_view *v, const char *msg);

/**
 * Reads a document of the server. A failure is said on stderr.
 * @param path  behind the URL, encoded
 * @param out   gives; NULL on failure
 * @return OK; ABSENT (404); USAGE (400); CUT_SHORT (the server refuses); ADDRESS; INTERNAL
 */
enum hfd_exit hfd_view_get(struct hfd_view *v, const char *path, json_t **out);

/* ---- texts ---- */

/** Adds a member that is a text, by hfd_buf_show. */
void hfd_view_add(struct hfd_buf *b, const json_t *doc, const char *key);
/** Adds a document if the form is JSON or YAML. @return false for the other forms */
bool hfd_view_write(const struct hfd_view *v, const json_t *doc, struct hfd_buf *out);

#endif
