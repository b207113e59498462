/* Numbers of groups that write at the same time: store/number.h on PostgreSQL. */
#ifndef HFD_STORE_POSTGRES_NUMBER_H
#define HFD_STORE_POSTGRES_NUMBER_H

#include "store/postgres/conn.h"

/** hfd_db_sql_number */
const char *hfd_pg_sql_number(const struct hfd_db *db);
/** hfd_db_sql_number_end */
const char *hfd_pg_sql_number_end(const struct hfd_db *db);
/** hfd_db_sql_number_bound */
const char *hfd_pg_sql_number_bound(const struct hfd_db *db);
/**
 * Raises the base if the database has numbers that a group may give again: it was restored into
 * another PostgreSQL, or came from SQLite. A writer does so each time that it has connected.
 * @return HFD_OK, or as hfd_pg_run; the connection is of no use then
 */
HFD_MUST_CHECK hfd_rc hfd_pg_number_base(struct hfd_db *db, struct hfd_err *err);

#endif
