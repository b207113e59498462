/*
 * The way to the running server of these settings, or to the one that flags name. On this machine a
 * command logs in with the token that the server leaves in the data folder for commands of its
 * user. Thread: main.
 */
#ifndef HFD_CLI_ASK_H
#define HFD_CLI_ASK_H

#include "driver/base/jsonx.h"
#include "handlers/cli/cli.h"
#include "handlers/client/form.h"
#include "handlers/client/http.h"
#include "handlers/http/http.h"
#include "handlers/http/tls.h"

#define HFD_CLI_ANSWER_MAX_BYTES ((size_t)8 * 1024 * 1024)

/**
 * Sends a GET.
 * @param openly  without a login, and to a server with any certificate: for a question without
 * secrets, whose answer must not depend on a file
 * @param body  initialised and freed by the caller
 * @param why   what went wrong; static
 * @return true if the answer is 200
 */
bool hfd_cli_ask(struct hfd_settings *s, const char *path, bool openly, struct hfd_buf *body,
                 const char **why);
/** The way to the running server of these settings, for hfd_client_open. */
struct hfd_cli_server {
    struct hfd_client_config config; /* borrows from the rest, and from the settings */
    char url[512];
    char pin[HFD_TLS_PIN_MAX];
};
/**
 * Finds a listener of it, and the token that it leaves for commands of its user.
 * @param out  must not move
 * @return HFD_OK, HFD_IO (the certificate of tls.cert_file cannot be read)
 */
HFD_MUST_CHECK hfd_rc hfd_cli_find(struct hfd_settings *s, enum hfd_listener l,
                                   struct hfd_cli_server *out, struct hfd_err *err);

/** The server that the flags of a command name. */
struct hfd_cli_address {
    const char *url, *ops_url; /* main and ops listener; NULL = not named */
    const char *token_file, *ca_file;
};
/**
 * Takes HFD_URL and HFD_OPS_URL in place of a flag that is missing, unless the flags have
 * settings: those mean the server on this machine.
 * @return false if both flags and settings are given: *err says so
 */
bool hfd_cli_address_complete(struct hfd_cli_address *a, const struct hfd_flags *flags,
                              struct hfd_err *err);

/** The main listener that a command of the client asks: that of --url, else that of the settings.
 */
struct hfd_cli_target {
    /* Results of flags; after open, url is set. */
    const char *url, *token_file, *ca_file, *config_file, *data;
    const char *ops_url; /* taken, so that the same flags fit all commands; not used */
    /* While it is open: */
    struct hfd_settings *settings; /* NULL with --url */
    struct hfd_cli_server server;
    char again[512]; /* the flags that name it: " --url URL" */
};

/* clang-format off */
/** Its rows for a table of struct hfd_flag. */
#define HFD_CLI_TARGET_FLAGS(t, token_text) \
    {"--url", "HFD_URL", HFD_FLAG_TEXT, &(t)->url, "URL", "the server; if none, that of the settings"}, \
    {"--ops-url", "HFD_OPS_URL", HFD_FLAG_TEXT, &(t)->ops_url, "URL", NULL}, \
    {"--token-file", "HFD_TOKEN_FILE", HFD_FLAG_TEXT, &(t)->token_file, "FILE", token_text}, \
    {"--ca-file", NULL, HFD_FLAG_TEXT, &(t)->ca_file, "FILE", "certificates to trust"}, \
    {"--config", NULL, HFD_FLAG_TEXT, &(t)->config_file, "FILE", "the settings of the server on this machine"}, \
    {"--data", NULL, HFD_FLAG_TEXT, &(t)->data, "FOLDER", "its data folder, in place of that of the settings"}
#define HFD_CLI_TARGET_FLAG_COUNT 6
/* clang-format on */

/** The way out of a 401 without a token. */
#define HFD_CLI_LOGIN_TEXT(scope)                                                                  \
    "give --token-file FILE (hyperfleet-driver token create --name me --scope " scope ")"

/**
 * Opens the way to it. The settings of this machine are loaded only if no URL is given.
 * @param t    must not move while it is open
 * @param out  gives; close it with hfd_client_close, then the target
 * @return false with the exit status, after a message
 */
bool hfd_cli_target_open(struct hfd_cli_target *t, const char *command,
                         struct hfd_client_http **out, enum hfd_exit *status);
static inline void hfd_cli_target_close(struct hfd_cli_target *t)
{
    hfd_settings_free(t->settings);
    t->settings = NULL;
}

#define HFD_VIEW_OUTPUT_MAX_BYTES ((size_t)1024 * 1024 * 1024)

/*
 * Shared by list and status, which show what goes on in a server of ours: their flags, and the way
 * to the server. They read below /api/driver/v1 and change nothing.
 */

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
static inline void hfd_view_close(struct hfd_view *v)
{
    hfd_client_close(&v->http);
    hfd_cli_target_close(&v->target);
}

/** Says that the arguments are wrong. @return USAGE */
static inline enum hfd_exit hfd_view_wrong_use(const struct hfd_view *v, const char *msg)
{
    return hfd_cli_wrong_use(v->name, v->usage, msg);
}

/**
 * Reads a document of the server. A failure is said on stderr.
 * @param path  behind the URL, encoded
 * @param out   gives; NULL on failure
 * @return OK; ABSENT (404); USAGE (400); CUT_SHORT (the server refuses); ADDRESS; INTERNAL
 */
enum hfd_exit hfd_view_get(struct hfd_view *v, const char *path, json_t **out);

/* ---- texts ---- */

/** Adds a member that is a text, by hfd_buf_show. */
static inline void hfd_view_add(struct hfd_buf *b, const json_t *doc, const char *key)
{
    hfd_buf_show(b, hfd_slice_of(hfd_json_cstr(doc, key)));
}
/** Adds a document if the form is JSON or YAML. @return false for the other forms */
bool hfd_view_write(const struct hfd_view *v, const json_t *doc, struct hfd_buf *out);

#endif
