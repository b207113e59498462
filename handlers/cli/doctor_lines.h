/*
 * The result of `doctor`: its lines, the orphans, and how many findings there are. Thread: main.
 */
#ifndef HFD_CLI_DOCTOR_LINES_H
#define HFD_CLI_DOCTOR_LINES_H

#include "handlers/cli/cli.h"

#define HFD_DOCTOR_OUTPUT_MAX ((size_t)8 * 1024 * 1024)

struct hfd_doctor_lines {
    struct hfd_buf out;
    struct hfd_buf orphan_list; /* with json: the orphans of the document */
    struct hfd_arena mem;       /* for the texts of lines */
    size_t findings;
    bool json; /* the result is one JSON document */
};

/** Begins an empty result. */
void hfd_doctor_lines_init(struct hfd_doctor_lines *l, bool json);
/** Frees it. */
void hfd_doctor_lines_fini(struct hfd_doctor_lines *l);

/** Adds a line about something that is good. Without a text (p is NULL) it says "good". */
void hfd_doctor_good(struct hfd_doctor_lines *l, const char *about, hfd_slice text);
/** Adds a line about a problem, and counts it. Without a text (p is NULL) memory is short. */
void hfd_doctor_finding(struct hfd_doctor_lines *l, const char *about, hfd_slice text);

/** A list of orphans without its items. */
struct hfd_doctor_orphans {
    size_t count;
    bool more;
    bool remote;       /* it is what a remote had at some time */
    hfd_slice checked; /* that time; empty = the list was never read completely */
    hfd_slice message; /* why it could not be read the last time; empty = it could */
};

/** An orphan, from the store or from a running server. */
struct hfd_doctor_orphan {
    const char *kind;
    hfd_slice name, id, guresid;
    bool deleting, wanted;
    hfd_slice message;
};

/** Adds the line in front of orphans. */
void hfd_doctor_orphans_begin(struct hfd_doctor_lines *l, const struct hfd_doctor_orphans *o);
/** Adds one orphan, and counts it. */
void hfd_doctor_orphan(struct hfd_doctor_lines *l, const struct hfd_doctor_orphan *o);
/** Adds what can be done with them. */
void hfd_doctor_orphans_end(struct hfd_doctor_lines *l, size_t count);

/**
 * Adds the orphans of an answer to GET /admin/orphans.
 * @param remote  the server works for a remote HyperFleet
 * @return false if it is no such answer
 */
bool hfd_doctor_orphans_answer(struct hfd_doctor_lines *l, hfd_slice body, bool remote);

/**
 * Prints the result.
 * @return OK, FOUND (there are findings), CUT_SHORT, INTERNAL
 */
enum hfd_exit hfd_doctor_lines_print(struct hfd_doctor_lines *l);

#endif
