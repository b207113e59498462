/*
 * Bursts of store/postgres/gather.h on PostgreSQL: libpq's pipeline mode, one round trip each.
 * Statements that stand several times become one, with arrays as parameters.
 * Thread: that of the connection.
 */
#ifndef HFD_STORE_POSTGRES_BURST_H
#define HFD_STORE_POSTGRES_BURST_H

#include "store/postgres/conn.h"
#include "store/postgres/gather.h"

/** Sends a burst: hfd_burst_fn of this engine. */
HFD_MUST_CHECK hfd_rc hfd_pg_burst(struct hfd_db *db, struct hfd_burst *burst, struct hfd_err *err);
/** Frees the texts of a connection that its bursts were made of. */
void hfd_pg_texts_free(struct hfd_db *db);

#endif
