/* Failures of PostgreSQL in our codes. */
#ifndef HFD_STORE_POSTGRES_FAIL_H
#define HFD_STORE_POSTGRES_FAIL_H

#include "store/postgres/conn.h"

/** The meaning of a SQLSTATE. */
struct hfd_pg_code {
    const char *state; /* its first characters */
    hfd_rc rc;
    enum hfd_db_fate fate;
    const char *word; /* for metrics; NULL = none of its own */
};

/** Gives the meaning of a SQLSTATE; NULL or "" is a lost connection. Thread: any. */
const struct hfd_pg_code *hfd_pg_code(const char *state);

/**
 * Turns a result into ours.
 * @param what  SQL or a few words of ours; never data
 * @return HFD_OK for a result that is no error
 */
HFD_MUST_CHECK hfd_rc hfd_pg_judge(struct hfd_db *db, const PGresult *result, const char *what,
                                   struct hfd_err *err);
/** The connection is lost. @return HFD_AWAY; HFD_NOMEM if a reader had no memory */
hfd_rc hfd_pg_lost(struct hfd_db *db, const char *why, struct hfd_err *err);
/** The connection is of no use, for another reason. @return rc */
hfd_rc hfd_pg_turn_broken(struct hfd_db *db, const struct hfd_err *cause, struct hfd_err *err);
/** The failure that turned the connection broken, or the transaction useless. */
hfd_rc hfd_pg_fail_before(const struct hfd_db *db, struct hfd_err *err);
/** Writes a message of libpq or of a server as one line. */
void hfd_pg_line(const char *text, char *out, size_t cap);

#endif
