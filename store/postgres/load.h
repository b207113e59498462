/* Rows in bulk: COPY ... FROM STDIN. The functions are those of db.h. */
#ifndef HFD_STORE_POSTGRES_LOAD_H
#define HFD_STORE_POSTGRES_LOAD_H

#include "store/postgres/conn.h"

/* See hfd_db_load_begin, hfd_db_load and hfd_db_load_end. */
HFD_MUST_CHECK hfd_rc hfd_pg_load_begin(struct hfd_db *db, const char *sql, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_pg_load(struct hfd_db *db, hfd_slice bytes, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_pg_load_end(struct hfd_db *db, struct hfd_err *err);

#endif
