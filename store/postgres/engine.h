/* The functions of store/db.h on PostgreSQL; txn.c, stmt.c and others have them. */
#ifndef HFD_STORE_POSTGRES_ENGINE_H
#define HFD_STORE_POSTGRES_ENGINE_H

#include "store/engine.h"
#include "store/postgres/dialect.h"
#include "store/postgres/schema.h"

/* Connections and transactions. */
HFD_MUST_CHECK hfd_rc hfd_pg_begin(struct hfd_db *db, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_pg_commit(struct hfd_db *db, struct hfd_err *err);
void hfd_pg_rollback(struct hfd_db *db);
int64_t hfd_pg_changes(const struct hfd_db *db);
bool hfd_pg_shared(const struct hfd_db *db);
int hfd_pg_slot(const struct hfd_db *db);
enum hfd_db_fate hfd_pg_fate(const struct hfd_db *db);
const char *hfd_pg_undone_by(const struct hfd_db *db);
HFD_MUST_CHECK hfd_rc hfd_pg_reopen(struct hfd_db *db, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_pg_was_committed(struct hfd_db *db, bool *out, struct hfd_err *err);

/* Statements. */
HFD_MUST_CHECK hfd_rc hfd_pg_prepare(struct hfd_db *db, const char *sql, struct hfd_stmt **out,
                                     struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_pg_prepare_once(struct hfd_db *db, hfd_slice sql, struct hfd_stmt **out,
                                          struct hfd_err *err);
void hfd_pg_stmt_text(struct hfd_stmt *st, int at, hfd_slice v);
void hfd_pg_stmt_blob(struct hfd_stmt *st, int at, hfd_slice v);
void hfd_pg_stmt_i64(struct hfd_stmt *st, int at, int64_t v);
void hfd_pg_stmt_f64(struct hfd_stmt *st, int at, double v);
void hfd_pg_stmt_null(struct hfd_stmt *st, int at);
HFD_MUST_CHECK hfd_rc hfd_pg_stmt_step(struct hfd_stmt *st, bool *row, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_pg_stmt_run(struct hfd_stmt *st, int64_t *changed, struct hfd_err *err);
void hfd_pg_stmt_done(struct hfd_stmt *st);
int64_t hfd_pg_stmt_col_i64(struct hfd_stmt *st, int at);
bool hfd_pg_stmt_is_stuck(const struct hfd_stmt *st);
bool hfd_pg_stmt_col_is_null(struct hfd_stmt *st, int at);
hfd_slice hfd_pg_stmt_col_text(struct hfd_stmt *st, int at, struct hfd_arena *mem);

#endif
