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

/** Adds a line, of something that is good or a finding. */
void hfd_doctor_say(struct hfd_doctor_lines *l, const char *about, bool good, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/** Prints what is in `out`. */
void hfd_doctor_print_now(struct hfd_doctor_lines *l);

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
