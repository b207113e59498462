/* PostgreSQL's words for what portable SQL cannot say; store/db.h says what each is. */
#ifndef HFD_STORE_POSTGRES_DIALECT_H
#define HFD_STORE_POSTGRES_DIALECT_H

#include "store/db.h"

/* Expressions and paths. */
void hfd_pg_sql_json_text(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
                          int path_at);
void hfd_pg_sql_json_number(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
                            int path_at);
struct hfd_db_like hfd_pg_sql_like(const struct hfd_db *db);
struct hfd_db_like hfd_pg_sql_fold(const struct hfd_db *db, struct hfd_arena *mem);
void hfd_pg_sql_condition(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
                          int type_at, enum hfd_db_condition what);
hfd_slice hfd_pg_json_path(const struct hfd_db *db, hfd_slice dotted, struct hfd_arena *mem);
hfd_slice hfd_pg_json_key(const struct hfd_db *db, hfd_slice key, struct hfd_arena *mem);

#endif
