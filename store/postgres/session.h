/* A new session: its settings, and what is read back of the database. */
#ifndef HFD_STORE_POSTGRES_SESSION_H
#define HFD_STORE_POSTGRES_SESSION_H

#include "store/postgres/conn.h"

/**
 * Sets up a new session, and refuses a database on which answers would differ.
 * @return HFD_OK, HFD_INVALID (version, collation, encoding, not a database of this program),
 * HFD_AWAY
 */
HFD_MUST_CHECK hfd_rc hfd_pg_session(struct hfd_db *db, struct hfd_err *err);

#endif
