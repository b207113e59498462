/* Each function is that of the engine. */
#include "store/engine.h"

#include "driver/base/clock.h"
#include "store/txn.h"

/* @param object  of an engine: its first member is a pointer to the engine */
static inline const struct hfd_engine *engine_of(const void *object)
{
    return *(const struct hfd_engine *const *)object;
}

/* Returns the connection that does what an engine around another one leaves to it. */
static struct hfd_db *inner_of(const struct hfd_db *db)
{
    const struct hfd_engine *engine = engine_of(db);

    return engine->inner != NULL ? engine->inner(db) : (struct hfd_db *)(uintptr_t)db;
}

/* The same, for what reads or writes rows. @param db  becomes that connection */
static hfd_rc go_inside(struct hfd_db **db, struct hfd_err *err)
{
    const struct hfd_engine *engine = engine_of(*db);
    const hfd_rc rc = engine->inside != NULL ? engine->inside(*db, err) : HFD_OK;

    *db = inner_of(*db);
    return rc;
}

hfd_rc hfd_db_open(const struct hfd_store_place *place, enum hfd_db_mode mode, struct hfd_db **out,
                   struct hfd_err *err)
{
    return (place->url != NULL ? &hfd_engine_postgres : &hfd_engine_sqlite)
        ->open(place, mode, out, err);
}

void hfd_db_close(struct hfd_db **db)
{
    if (*db != NULL)
        engine_of(*db)->close(db);
}

void hfd_db_adopt(struct hfd_db *db)
{
    db = inner_of(db);
    engine_of(db)->adopt(db);
}

bool hfd_db_broken(const struct hfd_db *db)
{
    db = inner_of(db);
    return engine_of(db)->broken(db);
}

hfd_rc hfd_db_cause(const struct hfd_db *db, struct hfd_err *err)
{
    db = inner_of(db);
    return engine_of(db)->cause(db, err);
}

void hfd_db_watch(struct hfd_db *db, hfd_db_stop_fn *fn, void *ctx)
{
    db = inner_of(db);
    engine_of(db)->watch(db, fn, ctx);
}

hfd_rc hfd_db_begin(struct hfd_db *db, struct hfd_err *err)
{
    return engine_of(db)->begin(db, err);
}

hfd_rc hfd_db_begin_group(struct hfd_db *db, struct hfd_err *err)
{
    const struct hfd_engine *engine = engine_of(db);

    return engine->begin_group != NULL ? engine->begin_group(db, err) : engine->begin(db, err);
}

hfd_rc hfd_db_look(struct hfd_db *db, bool *again, struct hfd_err *err)
{
    const struct hfd_engine *engine = engine_of(db);

    *again = false;
    return engine->look != NULL ? engine->look(db, again, err) : HFD_OK;
}

bool hfd_db_gathers(const struct hfd_db *db)
{
    return engine_of(db)->look != NULL;
}

hfd_rc hfd_db_follow(struct hfd_db *db, const struct hfd_db_follow *follow, hfd_slice key,
                     struct hfd_err *err)
{
    const struct hfd_engine *engine = engine_of(db);

    return engine->follow != NULL ? engine->follow(db, follow, key, err) : HFD_OK;
}

bool hfd_db_is_looking(const struct hfd_db *db)
{
    const struct hfd_engine *engine = engine_of(db);

    return engine->is_looking != NULL && engine->is_looking(db);
}

hfd_rc hfd_db_commit(struct hfd_db *db, struct hfd_err *err)
{
    return engine_of(db)->commit(db, err);
}

void hfd_db_rollback(struct hfd_db *db)
{
    engine_of(db)->rollback(db);
}

hfd_rc hfd_db_end(struct hfd_db *db, hfd_rc rc, struct hfd_err *err)
{
    if (rc == HFD_OK)
        rc = hfd_db_commit(db, err);
    if (rc != HFD_OK)
        hfd_db_rollback(db);
    return rc;
}

int64_t hfd_db_changes(const struct hfd_db *db)
{
    return engine_of(db)->changes(db);
}

bool hfd_db_shared(const struct hfd_db *db)
{
    db = inner_of(db);
    return engine_of(db)->shared(db);
}

int hfd_db_slot(const struct hfd_db *db)
{
    db = inner_of(db);
    return engine_of(db)->slot != NULL ? engine_of(db)->slot(db) : 0;
}

enum hfd_db_fate hfd_db_fate(const struct hfd_db *db)
{
    return engine_of(db)->fate(db);
}

const char *hfd_db_undone_by(const struct hfd_db *db)
{
    const char *word = engine_of(db)->undone_by != NULL ? engine_of(db)->undone_by(db) : NULL;

    return word != NULL ? word : "other";
}

hfd_rc hfd_db_reopen(struct hfd_db *db, struct hfd_err *err)
{
    db = inner_of(db);
    return engine_of(db)->reopen(db, err);
}

hfd_rc hfd_db_was_committed(struct hfd_db *db, bool *out, struct hfd_err *err)
{
    db = inner_of(db);
    return engine_of(db)->was_committed(db, out, err);
}

hfd_rc hfd_db_cleanup(struct hfd_db *db, struct hfd_err *err)
{
    db = inner_of(db);
    return engine_of(db)->cleanup(db, err);
}

hfd_rc hfd_db_exec(struct hfd_db *db, const char *sql, struct hfd_err *err)
{
    return engine_of(db)->exec(db, sql, err);
}

bool hfd_db_loads(const struct hfd_db *db)
{
    db = inner_of(db);
    return engine_of(db)->load != NULL;
}

hfd_rc hfd_db_load_begin(struct hfd_db *db, const char *sql, struct hfd_err *err)
{
    const hfd_rc rc = go_inside(&db, err);

    return rc == HFD_OK && hfd_db_loads(db) ? engine_of(db)->load_begin(db, sql, err) : rc;
}

hfd_rc hfd_db_load(struct hfd_db *db, hfd_slice bytes, struct hfd_err *err)
{
    db = inner_of(db);
    return engine_of(db)->load(db, bytes, err);
}

hfd_rc hfd_db_load_end(struct hfd_db *db, struct hfd_err *err)
{
    db = inner_of(db);
    return hfd_db_loads(db) ? engine_of(db)->load_end(db, err) : HFD_OK;
}

hfd_rc hfd_db_check(struct hfd_db *db, struct hfd_err *err)
{
    const hfd_rc rc = go_inside(&db, err);

    return rc == HFD_OK ? engine_of(db)->check(db, err) : rc;
}

hfd_rc hfd_db_bytes(struct hfd_db *db, int64_t *out, struct hfd_err *err)
{
    db = inner_of(db);
    return engine_of(db)->bytes(db, out, err);
}

hfd_rc hfd_db_copy_open(struct hfd_db *from, const char *path, struct hfd_db_copy **out,
                        struct hfd_err *err)
{
    from = inner_of(from);
    return engine_of(from)->copy_open(from, path, out, err);
}

hfd_rc hfd_db_copy_step(struct hfd_db_copy *copy, bool *done, struct hfd_err *err)
{
    return engine_of(copy)->copy_step(copy, done, err);
}

void hfd_db_copy_close(struct hfd_db_copy **copy)
{
    if (*copy != NULL)
        engine_of(*copy)->copy_close(copy);
}

hfd_rc hfd_db_schema_lock(struct hfd_db *db, struct hfd_err *err)
{
    db = inner_of(db);
    return engine_of(db)->schema_lock(db, err);
}

hfd_rc hfd_db_schema_unlock(struct hfd_db *db, bool whole, struct hfd_err *err)
{
    db = inner_of(db);
    return engine_of(db)->schema_unlock(db, whole, err);
}

hfd_rc hfd_db_schema_version(struct hfd_db *db, int64_t *out, struct hfd_err *err)
{
    const hfd_rc rc = go_inside(&db, err);

    return rc == HFD_OK ? engine_of(db)->schema_version(db, out, err) : rc;
}

hfd_rc hfd_db_set_schema_version(struct hfd_db *db, int64_t version, struct hfd_err *err)
{
    const hfd_rc rc = go_inside(&db, err);

    return rc == HFD_OK ? engine_of(db)->set_schema_version(db, version, err) : rc;
}

hfd_rc hfd_db_check_schema(struct hfd_db *db, const struct hfd_schema_check *check,
                           struct hfd_err *err)
{
    db = inner_of(db);
    return engine_of(db)->check_schema(db, check, err);
}

hfd_rc hfd_db_prepare(struct hfd_db *db, const char *sql, struct hfd_stmt **out,
                      struct hfd_err *err)
{
    return engine_of(db)->statements->prepare(db, sql, out, err);
}

hfd_rc hfd_db_prepare_use(struct hfd_db *db, const struct hfd_db_use *use, struct hfd_stmt **out,
                          struct hfd_err *err)
{
    const struct hfd_engine_statements *st = engine_of(db)->statements;

    return st->prepare_use != NULL ? st->prepare_use(db, use, out, err)
                                   : st->prepare(db, use->sql, out, err);
}

hfd_rc hfd_db_prepare_once(struct hfd_db *db, hfd_slice sql, struct hfd_stmt **out,
                           struct hfd_err *err)
{
    return engine_of(db)->statements->prepare_once(db, sql, out, err);
}

void hfd_db_sql_json_text(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
                          int path_at)
{
    db = inner_of(db);
    engine_of(db)->dialect->sql_json_text(db, sql, column, path_at);
}

void hfd_db_sql_json_number(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
                            int path_at)
{
    db = inner_of(db);
    engine_of(db)->dialect->sql_json_number(db, sql, column, path_at);
}

struct hfd_db_like hfd_db_sql_like(const struct hfd_db *db)
{
    db = inner_of(db);
    return engine_of(db)->dialect->sql_like(db);
}

struct hfd_db_like hfd_db_sql_fold(const struct hfd_db *db, struct hfd_arena *mem)
{
    db = inner_of(db);
    return engine_of(db)->dialect->sql_fold(db, mem);
}

void hfd_db_sql_condition(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
                          int type_at, enum hfd_db_condition what)
{
    db = inner_of(db);
    engine_of(db)->dialect->sql_condition(db, sql, column, type_at, what);
}

hfd_slice hfd_db_json_path(const struct hfd_db *db, hfd_slice dotted, struct hfd_arena *mem)
{
    db = inner_of(db);
    return engine_of(db)->dialect->json_path(db, dotted, mem);
}

hfd_slice hfd_db_json_key(const struct hfd_db *db, hfd_slice key, struct hfd_arena *mem)
{
    db = inner_of(db);
    return engine_of(db)->dialect->json_key(db, key, mem);
}

void hfd_stmt_text(struct hfd_stmt *st, int at, hfd_slice v)
{
    engine_of(st)->statements->text(st, at, v);
}

void hfd_stmt_blob(struct hfd_stmt *st, int at, hfd_slice v)
{
    engine_of(st)->statements->blob(st, at, v);
}

void hfd_stmt_i64(struct hfd_stmt *st, int at, int64_t v)
{
    engine_of(st)->statements->i64(st, at, v);
}

void hfd_stmt_f64(struct hfd_stmt *st, int at, double v)
{
    engine_of(st)->statements->f64(st, at, v);
}

void hfd_stmt_null(struct hfd_stmt *st, int at)
{
    engine_of(st)->statements->null(st, at);
}

hfd_rc hfd_stmt_step(struct hfd_stmt *st, bool *row, struct hfd_err *err)
{
    return engine_of(st)->statements->step(st, row, err);
}

hfd_rc hfd_stmt_run(struct hfd_stmt *st, int64_t *changed, struct hfd_err *err)
{
    return engine_of(st)->statements->run(st, changed, err);
}

void hfd_stmt_done(struct hfd_stmt *st)
{
    if (st != NULL)
        engine_of(st)->statements->done(st);
}

int64_t hfd_stmt_col_i64(struct hfd_stmt *st, int at)
{
    return engine_of(st)->statements->col_i64(st, at);
}

bool hfd_stmt_is_stuck(const struct hfd_stmt *st)
{
    return engine_of(st)->statements->is_stuck(st);
}

bool hfd_stmt_col_is_null(struct hfd_stmt *st, int at)
{
    return engine_of(st)->statements->col_is_null(st, at);
}

hfd_slice hfd_stmt_col_text(struct hfd_stmt *st, int at, struct hfd_arena *mem)
{
    return engine_of(st)->statements->col_text(st, at, mem);
}

hfd_rc hfd_db_root(struct hfd_db *db, enum hfd_db_root kind, hfd_slice id, struct hfd_err *err)
{
    return engine_of(db)->root != NULL ? engine_of(db)->root(db, kind, id, err) : HFD_OK;
}

hfd_rc hfd_db_exclusive(struct hfd_db *db, struct hfd_err *err)
{
    return engine_of(db)->exclusive != NULL ? engine_of(db)->exclusive(db, err) : HFD_OK;
}

const char *hfd_db_sql_number(const struct hfd_db *db)
{
    const struct hfd_db *inner = inner_of(db);
    const struct hfd_engine_dialect *dialect = engine_of(inner)->dialect;

    return dialect->sql_number != NULL ? dialect->sql_number(inner) : NULL;
}

const char *hfd_db_sql_number_end(const struct hfd_db *db)
{
    const struct hfd_db *inner = inner_of(db);
    const struct hfd_engine_dialect *dialect = engine_of(inner)->dialect;

    return dialect->sql_number_end != NULL ? dialect->sql_number_end(inner) : NULL;
}

const char *hfd_db_sql_number_bound(const struct hfd_db *db)
{
    const struct hfd_db *inner = inner_of(db);
    const struct hfd_engine_dialect *dialect = engine_of(inner)->dialect;

    return dialect->sql_number_bound != NULL ? dialect->sql_number_bound(inner) : NULL;
}

hfd_rc hfd_txn_now(struct hfd_txn *tx, int64_t *out, struct hfd_err *err)
{
    const struct hfd_db_use *now = engine_of(inner_of(tx->db))->dialect->now;
    struct hfd_stmt *st;
    bool row;
    hfd_rc rc;

    *out = hfd_clock_wall_us(&hfd_clock_system);
    if (now == NULL)
        return HFD_OK;
    rc = hfd_db_prepare_use(tx->db, now, &st, err);
    if (rc != HFD_OK)
        return rc;
    rc = hfd_stmt_step(st, &row, err);
    if (rc == HFD_OK)
        *out = hfd_stmt_col_i64(st, 0);
    hfd_stmt_done(st);
    return rc;
}

hfd_rc hfd_db_signal(struct hfd_db *db, const struct hfd_db_signal *signal, bool *heard,
                     struct hfd_err *err)
{
    *heard = false;
    return engine_of(db)->signal != NULL
               ? engine_of(db)->signal(db, signal, heard, err)
               : hfd_fail(err, HFD_INVALID, "the database has no signals between servers");
}
