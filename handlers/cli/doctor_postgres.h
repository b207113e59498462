/* The part of `doctor` that checks a PostgreSQL store. Thread: main. */
#ifndef HFD_CLI_DOCTOR_POSTGRES_H
#define HFD_CLI_DOCTOR_POSTGRES_H

#include "handlers/cli/doctor_lines.h"

/**
 * Reads the database's settings, its standbys, the replicas and their leases, and Patroni's version
 * if store.patroni is set. Writes nothing.
 * @return true: the database has the schema of this program, so that opening it changes nothing
 */
bool hfd_doctor_postgres(struct hfd_settings *s, struct hfd_doctor_lines *lines);

/** Returns the number in front of the first dot; 0 if there is none. Pure. */
int64_t hfd_doctor_major(const char *version);

#endif
