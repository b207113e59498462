/*
 * The result of `doctor`: its lines, the orphans, and how many findings there are. A line is
 * printed when it is known, but for JSON. Also the lines about a PostgreSQL store and a remote.
 * Thread: main.
 */
#ifndef HFD_CLI_DOCTOR_LINES_H
#define HFD_CLI_DOCTOR_LINES_H

#include "driver/base/meter.h"
#include "handlers/cli/cli.h"

#include <jansson.h>

#define HFD_DOCTOR_OUTPUT_MAX ((size_t)8 * 1024 * 1024)

struct hfd_doctor_lines {
    struct hfd_buf out;         /* with json: the lines of the document; else the present one */
    struct hfd_buf orphan_list; /* with json: the orphans of the document */
    size_t findings, harmless;  /* harmless: problems for which no order waits */
    bool json;                  /* the result is one JSON document */
    enum hfd_exit printed;      /* without json: how printing the lines went */
    struct hfd_meter meter;     /* of the long checks */
};

/** Begins an empty result. */
void hfd_doctor_lines_init(struct hfd_doctor_lines *l, bool json);
/** Frees it. */
void hfd_doctor_lines_fini(struct hfd_doctor_lines *l);

/** Adds a line, of something that is good or a finding. */
void hfd_doctor_say(struct hfd_doctor_lines *l, const char *about, bool good, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/** A list of orphans without its items. */
struct hfd_doctor_orphans {
    size_t count;
    bool more;
    bool remote;       /* it was read from a remote, at the time `checked` */
    hfd_slice checked; /* empty = the list was never read completely */
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
 * Adds what the server knows to be wrong. While no order waits for one, they are no findings.
 * @param doc  its answer to /healthz; NULL adds nothing
 */
void hfd_doctor_problems(struct hfd_doctor_lines *l, const json_t *doc);

/**
 * Prints the result.
 * @return OK, FOUND (there are findings), CUT_SHORT, INTERNAL
 */
enum hfd_exit hfd_doctor_lines_print(struct hfd_doctor_lines *l);

/**
 * Reads the database's settings, its standbys, the replicas, and Patroni's version
 * if store.patroni is set. Compares the schema. Writes nothing but temporary tables.
 * @return true: the database has the schema of this program, so that opening it changes nothing
 */
bool hfd_doctor_postgres(struct hfd_settings *s, struct hfd_doctor_lines *lines);

/**
 * Sends one request to the remote as the server would, and adds the line about it. It is good if
 * the remote was reached, its certificate is valid, our credentials were accepted, and it is a
 * HyperFleet API.
 */
void hfd_doctor_remote(const struct hfd_settings *s, struct hfd_doctor_lines *lines);

#endif
