/*
 * A database engine: the functions of store/db.h, which says what each does. struct hfd_db, struct
 * hfd_stmt and struct hfd_db_copy are the engine's own. The first member of each is a pointer to
 * the engine.
 */
#ifndef HFD_STORE_ENGINE_H
#define HFD_STORE_ENGINE_H

#include "store/db.h"

/** Statements. */
struct hfd_engine_statements {
    hfd_rc (*prepare)(struct hfd_db *db, const char *sql, struct hfd_stmt **out,
                      struct hfd_err *err);
    /* NULL = nothing is kept: prepare */
    hfd_rc (*prepare_use)(struct hfd_db *db, const struct hfd_db_use *use, struct hfd_stmt **out,
                          struct hfd_err *err);
    hfd_rc (*prepare_once)(struct hfd_db *db, hfd_slice sql, struct hfd_stmt **out,
                           struct hfd_err *err);
    void (*text)(struct hfd_stmt *st, int at, hfd_slice v);
    void (*blob)(struct hfd_stmt *st, int at, hfd_slice v);
    void (*i64)(struct hfd_stmt *st, int at, int64_t v);
    void (*f64)(struct hfd_stmt *st, int at, double v);
    void (*null)(struct hfd_stmt *st, int at);
    hfd_rc (*step)(struct hfd_stmt *st, bool *row, struct hfd_err *err);
    hfd_rc (*run)(struct hfd_stmt *st, int64_t *changed, struct hfd_err *err);
    void (*done)(struct hfd_stmt *st);
    int64_t (*col_i64)(struct hfd_stmt *st, int at);
    bool (*is_stuck)(const struct hfd_stmt *st);
    bool (*col_is_null)(struct hfd_stmt *st, int at);
    hfd_slice (*col_text)(struct hfd_stmt *st, int at, struct hfd_arena *mem);
};

/** Words that portable SQL does not have. */
struct hfd_engine_dialect {
    void (*sql_json_text)(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
                          int path_at);
    void (*sql_json_number)(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
                            int path_at);
    struct hfd_db_like (*sql_like)(const struct hfd_db *db);
    struct hfd_db_like (*sql_fold)(const struct hfd_db *db, struct hfd_arena *mem);
    void (*sql_condition)(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
                          int type_at, enum hfd_db_condition what);
    hfd_slice (*json_path)(const struct hfd_db *db, hfd_slice dotted, struct hfd_arena *mem);
    hfd_slice (*json_key)(const struct hfd_db *db, hfd_slice key, struct hfd_arena *mem);
    /* NULL = there is one writer: hfd_db_sql_number, hfd_db_sql_number_end */
    const char *(*sql_number)(const struct hfd_db *db);
    const char *(*sql_number_end)(const struct hfd_db *db);
    const char *(*sql_number_bound)(const struct hfd_db *db);
    /* Gives the microseconds of hfd_txn_now; NULL = this machine's clock. */
    const struct hfd_db_use *now;
};

struct hfd_engine {
    /* Returns the connection that an engine is around, which does what is left out here, and has
       the dialect. NULL = it stands alone. */
    struct hfd_db *(*inner)(const struct hfd_db *db);
    /* Sends what is kept back, before that connection reads or writes rows itself. */
    hfd_rc (*inside)(struct hfd_db *db, struct hfd_err *err);
    hfd_rc (*open)(const struct hfd_store_place *place, enum hfd_db_mode mode, struct hfd_db **out,
                   struct hfd_err *err);
    void (*close)(struct hfd_db **db);
    void (*adopt)(struct hfd_db *db);
    bool (*broken)(const struct hfd_db *db);
    hfd_rc (*cause)(const struct hfd_db *db, struct hfd_err *err);
    void (*watch)(struct hfd_db *db, hfd_db_stop_fn *fn, void *ctx);
    hfd_rc (*begin)(struct hfd_db *db, struct hfd_err *err);
    hfd_rc (*begin_group)(struct hfd_db *db, struct hfd_err *err);
    hfd_rc (*look)(struct hfd_db *db, bool *again, struct hfd_err *err);
    hfd_rc (*follow)(struct hfd_db *db, const struct hfd_db_follow *follow, hfd_slice key,
                     struct hfd_err *err);
    /* Two NULL = groups never write at the same time. */
    hfd_rc (*root)(struct hfd_db *db, enum hfd_db_root kind, hfd_slice id, struct hfd_err *err);
    hfd_rc (*exclusive)(struct hfd_db *db, struct hfd_err *err);
    bool (*is_looking)(const struct hfd_db *db);
    hfd_rc (*commit)(struct hfd_db *db, struct hfd_err *err);
    void (*rollback)(struct hfd_db *db);
    int64_t (*changes)(const struct hfd_db *db);
    bool (*shared)(const struct hfd_db *db);
    int (*slot)(const struct hfd_db *db); /* NULL = always 0 */
    enum hfd_db_fate (*fate)(const struct hfd_db *db);
    const char *(*undone_by)(const struct hfd_db *db); /* NULL, or gives NULL = no word for it */
    hfd_rc (*reopen)(struct hfd_db *db, struct hfd_err *err);
    hfd_rc (*was_committed)(struct hfd_db *db, bool *out, struct hfd_err *err);
    hfd_rc (*cleanup)(struct hfd_db *db, struct hfd_err *err);
    hfd_rc (*exec)(struct hfd_db *db, const char *sql, struct hfd_err *err);
    /* Three NULL where single inserts are as fast. */
    hfd_rc (*load_begin)(struct hfd_db *db, const char *sql, struct hfd_err *err);
    hfd_rc (*load)(struct hfd_db *db, hfd_slice bytes, struct hfd_err *err);
    hfd_rc (*load_end)(struct hfd_db *db, struct hfd_err *err);
    hfd_rc (*check)(struct hfd_db *db, struct hfd_err *err);
    hfd_rc (*bytes)(struct hfd_db *db, int64_t *out, struct hfd_err *err);
    hfd_rc (*copy_open)(struct hfd_db *from, const char *path, struct hfd_db_copy **out,
                        struct hfd_err *err);
    hfd_rc (*copy_step)(struct hfd_db_copy *copy, bool *done, struct hfd_err *err);
    void (*copy_close)(struct hfd_db_copy **copy);
    hfd_rc (*schema_lock)(struct hfd_db *db, struct hfd_err *err);
    hfd_rc (*schema_unlock)(struct hfd_db *db, bool whole, struct hfd_err *err);
    hfd_rc (*schema_version)(struct hfd_db *db, int64_t *out, struct hfd_err *err);
    hfd_rc (*set_schema_version)(struct hfd_db *db, int64_t version, struct hfd_err *err);
    hfd_rc (*check_schema)(struct hfd_db *db, const struct hfd_schema_check *check,
                           struct hfd_err *err);
    /* NULL = there is never another server */
    hfd_rc (*signal)(struct hfd_db *db, const struct hfd_db_signal *signal, bool *heard,
                     struct hfd_err *err);
    const struct hfd_engine_statements *statements;
    const struct hfd_engine_dialect *dialect;
};

extern const struct hfd_engine hfd_engine_sqlite;
extern const struct hfd_engine hfd_engine_postgres;

#endif
