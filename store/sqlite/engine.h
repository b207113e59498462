/* The functions of store/db.h on SQLite; conn.c, stmt.c, conn.c and others have them. */
#ifndef HFD_STORE_SQLITE_ENGINE_H
#define HFD_STORE_SQLITE_ENGINE_H

#include "store/engine.h"

/* Connections and transactions. */
HFD_MUST_CHECK hfd_rc hfd_sqlite_open(const struct hfd_store_place *place, enum hfd_db_mode mode,
                                      struct hfd_db **out, struct hfd_err *err);
void hfd_sqlite_close(struct hfd_db **db);
void hfd_sqlite_adopt(struct hfd_db *db);
bool hfd_sqlite_broken(const struct hfd_db *db);
HFD_MUST_CHECK hfd_rc hfd_sqlite_cause(const struct hfd_db *db, struct hfd_err *err);
void hfd_sqlite_watch(struct hfd_db *db, hfd_db_stop_fn *fn, void *ctx);
HFD_MUST_CHECK hfd_rc hfd_sqlite_begin(struct hfd_db *db, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_sqlite_commit(struct hfd_db *db, struct hfd_err *err);
void hfd_sqlite_rollback(struct hfd_db *db);
int64_t hfd_sqlite_changes(const struct hfd_db *db);
bool hfd_sqlite_shared(const struct hfd_db *db);
enum hfd_db_fate hfd_sqlite_fate(const struct hfd_db *db);
HFD_MUST_CHECK hfd_rc hfd_sqlite_reopen(struct hfd_db *db, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_sqlite_was_committed(struct hfd_db *db, bool *out, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_sqlite_cleanup(struct hfd_db *db, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_sqlite_exec(struct hfd_db *db, const char *sql, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_sqlite_check(struct hfd_db *db, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_sqlite_bytes(struct hfd_db *db, int64_t *out, struct hfd_err *err);

/* Copies. */
HFD_MUST_CHECK hfd_rc hfd_sqlite_copy_open(struct hfd_db *from, const char *path,
                                           struct hfd_db_copy **out, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_sqlite_copy_step(struct hfd_db_copy *copy, bool *done,
                                           struct hfd_err *err);
void hfd_sqlite_copy_close(struct hfd_db_copy **copy);

/* The schema. */
HFD_MUST_CHECK hfd_rc hfd_sqlite_schema_lock(struct hfd_db *db, struct hfd_err *err);
void hfd_sqlite_schema_unlock(struct hfd_db *db);
HFD_MUST_CHECK hfd_rc hfd_sqlite_schema_version(struct hfd_db *db, int64_t *out,
                                                struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_sqlite_set_schema_version(struct hfd_db *db, int64_t version,
                                                    struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_sqlite_check_schema(struct hfd_db *db,
                                              const struct hfd_schema_check *check,
                                              struct hfd_err *err);

/* Statements and the dialect. */
HFD_MUST_CHECK hfd_rc hfd_sqlite_prepare(struct hfd_db *db, const char *sql, struct hfd_stmt **out,
                                         struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_sqlite_prepare_once(struct hfd_db *db, hfd_slice sql,
                                              struct hfd_stmt **out, struct hfd_err *err);
void hfd_sqlite_sql_json_text(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
                              int path_at);
void hfd_sqlite_sql_json_number(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
                                int path_at);
struct hfd_db_like hfd_sqlite_sql_like(const struct hfd_db *db);
struct hfd_db_like hfd_sqlite_sql_fold(const struct hfd_db *db, struct hfd_arena *mem);
void hfd_sqlite_sql_condition(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
                              int type_at, enum hfd_db_condition what);
hfd_slice hfd_sqlite_json_path(const struct hfd_db *db, hfd_slice dotted, struct hfd_arena *mem);
hfd_slice hfd_sqlite_json_key(const struct hfd_db *db, hfd_slice key, struct hfd_arena *mem);
void hfd_sqlite_stmt_text(struct hfd_stmt *st, int at, hfd_slice v);
void hfd_sqlite_stmt_blob(struct hfd_stmt *st, int at, hfd_slice v);
void hfd_sqlite_stmt_i64(struct hfd_stmt *st, int at, int64_t v);
void hfd_sqlite_stmt_f64(struct hfd_stmt *st, int at, double v);
void hfd_sqlite_stmt_null(struct hfd_stmt *st, int at);
HFD_MUST_CHECK hfd_rc hfd_sqlite_stmt_step(struct hfd_stmt *st, bool *row, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_sqlite_stmt_run(struct hfd_stmt *st, int64_t *changed,
                                          struct hfd_err *err);
void hfd_sqlite_stmt_done(struct hfd_stmt *st);
int64_t hfd_sqlite_stmt_col_i64(struct hfd_stmt *st, int at);
bool hfd_sqlite_stmt_is_stuck(const struct hfd_stmt *st);
bool hfd_sqlite_stmt_col_is_null(struct hfd_stmt *st, int at);
hfd_slice hfd_sqlite_stmt_col_text(struct hfd_stmt *st, int at, struct hfd_arena *mem);

#endif
