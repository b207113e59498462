#include "store/postgres/gather_stmt.h"

#include "driver/base/check.h"
#include "driver/base/metrics.h"

#include <stdlib.h>

#define LOOKS_MAX 12 /* of a transaction */

hfd_rc hfd_gather_surprised(struct hfd_db *db, struct hfd_err *err)
{
    db->surprised = true;
    return hfd_fail(err, HFD_BUSY, "store: the group runs again, one statement after the other");
}

/* ---- bursts ---- */

static void forget_writes(struct hfd_db *db)
{
    hfd_writes_fini(&db->writes);
    hfd_writes_init(&db->writes);
}

static hfd_rc send_burst(struct hfd_db *db, struct hfd_burst *burst, const char *purpose,
                         struct hfd_err *err)
{
    hfd_rc rc;

    burst->begins = db->in_transaction && !db->begun;
    burst->roots = &db->roots;
    burst->writes = db->writes.first;
    burst->knowns = &db->knowns;
    db->begun = db->begun || burst->begins;
    db->counts.bursts++;
    hfd_metric_add(HFD_METRIC_STORE_ROUND_TRIPS, HFD_LABELS(purpose), 1);
    rc = db->burst(db->inner, burst, err);
    forget_writes(db);
    if (rc == HFD_CONFLICT || (rc != HFD_OK && hfd_db_fate(db->inner) == HFD_DB_UNDONE))
        return hfd_gather_surprised(db, err);
    return rc;
}

hfd_rc hfd_gather_send(struct hfd_db *db, struct hfd_known *reads, struct hfd_err *err)
{
    struct hfd_burst burst = {.reads = reads};

    HFD_ASSERT(!db->ended);
    return db->writes.first != NULL || reads != NULL
               ? send_burst(db, &burst,
                            reads == NULL                    ? "write"
                            : db->mode == HFD_GATHER_LOOKING ? db->look
                                                             : "miss",
                            err)
               : HFD_OK;
}

hfd_rc hfd_gather_go_inside(struct hfd_db *db, struct hfd_err *err)
{
    struct hfd_burst burst = {.begins = true};

    if (db->ended) {
        db->blocked = true;
        return hfd_fail(err, HFD_BUSY, "store: the group runs again in another snapshot");
    }
    if (db->writes.first == NULL && (db->begun || !db->in_transaction))
        return HFD_OK;
    return send_burst(db, &burst, "write", err);
}

/* ---- transactions ---- */

/* The other engine's transaction begins with the first burst. */
static hfd_rc begin(struct hfd_db *db, enum hfd_gather_mode mode, struct hfd_err *err)
{
    const hfd_rc rc = hfd_db_cause(db->inner, err);

    HFD_ASSERT(!db->in_transaction);
    if (rc != HFD_OK)
        return rc;
    db->in_transaction = true;
    db->begun = db->ended = false;
    db->mode = db->alone ? HFD_GATHER_DIRECT : mode;
    db->counts.alone += db->alone;
    hfd_roots_clear(&db->roots);
    db->roots.alone = db->mode == HFD_GATHER_DIRECT || db->leaves_roots;
    db->alone = db->missed = db->blocked = db->surprised = db->leaves_roots = false;
    db->looks = 0;
    return HFD_OK;
}

/* Without a group it cannot run again: each statement is sent on its own. */
static hfd_rc gather_begin(struct hfd_db *db, struct hfd_err *err)
{
    return begin(db, HFD_GATHER_DIRECT, err);
}

static hfd_rc gather_begin_group(struct hfd_db *db, struct hfd_err *err)
{
    return begin(db, HFD_GATHER_LOOKING, err);
}

static void end_transaction(struct hfd_db *db)
{
    forget_writes(db);
    hfd_knowns_clear(&db->knowns);
    db->in_transaction = db->ended = false;
    db->mode = HFD_GATHER_DIRECT;
}

static void gather_rollback(struct hfd_db *db)
{
    if (!db->in_transaction)
        return;
    if (db->begun)
        hfd_db_rollback(db->inner);
    db->alone = db->surprised && !db->leaves_roots;
    end_transaction(db);
}

static hfd_rc gather_commit(struct hfd_db *db, struct hfd_err *err)
{
    struct hfd_burst burst = {.commits = true};
    hfd_rc rc = HFD_OK;

    HFD_ASSERT(db->in_transaction && !db->missed && !db->blocked);
    if (db->surprised)
        rc = hfd_gather_surprised(db, err);
    else if (db->begun || db->writes.first != NULL)
        rc = send_burst(db, &burst, "commit", err);
    if (rc == HFD_OK)
        end_transaction(db);
    return rc;
}

/*
 * Reads what was wanted. Where nothing is written, the first burst also ends its transaction: it is
 * the only round trip if the jobs want no more. If they do, all is read anew in a transaction that
 * stays, so that each answer rests on one snapshot.
 */
static hfd_rc send_looks(struct hfd_db *db, struct hfd_err *err)
{
    struct hfd_burst burst = {.commits = true};
    const bool whole = db->reads_only && !db->begun && !db->ended;
    hfd_rc rc;

    if (db->ended)
        hfd_known_renew(&db->knowns);
    db->ended = false;
    db->counts.looks++;
    if (!whole)
        return hfd_gather_send(db, hfd_known_take_wanted(&db->knowns), err);
    burst.reads = hfd_known_take_wanted(&db->knowns);
    rc = send_burst(db, &burst, db->look, err);
    db->ended = rc == HFD_OK;
    db->begun = !db->ended;
    return rc;
}

static hfd_rc gather_look(struct hfd_db *db, bool *again, struct hfd_err *err)
{
    const bool missed = db->missed || db->ended;
    hfd_rc rc = HFD_OK;

    *again = false;
    if (!db->missed && !db->blocked)
        return HFD_OK;
    HFD_ASSERT(db->mode == HFD_GATHER_LOOKING);
    *again = true;
    forget_writes(db); /* none has been sent */
    if (missed && db->looks == 0)
        rc = hfd_known_want_usual(&db->knowns, db->roots.alone, err);
    if (rc == HFD_OK && missed)
        rc = send_looks(db, err);
    hfd_known_again(&db->knowns);
    if (!missed || ++db->looks == LOOKS_MAX)
        db->mode = HFD_GATHER_PLAIN;
    db->missed = db->blocked = false;
    return rc;
}

static hfd_rc gather_root(struct hfd_db *db, enum hfd_db_root kind, hfd_slice id,
                          struct hfd_err *err)
{
    const hfd_rc rc = hfd_roots_add(&db->roots, kind, id, err);

    HFD_ASSERT(!db->begun || db->roots.alone);
    if (rc != HFD_OK)
        db->roots.alone = true;
    return rc;
}

/* A group without roots is alone. One that has begun with roots runs again. */
static hfd_rc gather_exclusive(struct hfd_db *db, struct hfd_err *err)
{
    if (!db->in_transaction || db->roots.alone)
        return HFD_OK;
    if (!db->begun) {
        db->roots.alone = true;
        return HFD_OK;
    }
    db->surprised = db->leaves_roots = true;
    return hfd_fail(err, HFD_BUSY, "store: the group runs again, without another one beside it");
}

static bool gather_is_looking(const struct hfd_db *db)
{
    return db->missed || db->blocked || db->surprised;
}

static int64_t gather_changes(const struct hfd_db *db)
{
    return hfd_db_changes(db->inner) + (int64_t)db->writes.count;
}

/* ---- what the other engine does alone ---- */

static void end_stmt(struct hfd_stmt *st)
{
    HFD_ASSERT(!st->in_use);
    free(st);
}

static void gather_close(struct hfd_db **db)
{
    struct hfd_db *own = *db;

    hfd_stmt_slots_clear(&own->stmts, end_stmt);
    hfd_db_close(&own->inner);
    hfd_writes_fini(&own->writes);
    hfd_roots_clear(&own->roots);
    hfd_knowns_fini(&own->knowns);
    free(own);
    *db = NULL;
}

static void gather_adopt(struct hfd_db *db)
{
    hfd_db_adopt(db->inner);
}

static bool gather_broken(const struct hfd_db *db)
{
    return hfd_db_broken(db->inner);
}

static hfd_rc gather_cause(const struct hfd_db *db, struct hfd_err *err)
{
    return hfd_db_cause(db->inner, err);
}

static void gather_watch(struct hfd_db *db, hfd_db_stop_fn *fn, void *ctx)
{
    hfd_db_watch(db->inner, fn, ctx);
}

static const char *gather_sql_number(const struct hfd_db *db)
{
    return hfd_db_sql_number(db->inner);
}

static const char *gather_sql_number_end(const struct hfd_db *db)
{
    return hfd_db_sql_number_end(db->inner);
}

static bool gather_shared(const struct hfd_db *db)
{
    return hfd_db_shared(db->inner);
}

static int gather_slot(const struct hfd_db *db)
{
    return hfd_db_slot(db->inner);
}

/* Before its first burst a transaction has no fate: the other engine still has the last one's. */
static enum hfd_db_fate gather_fate(const struct hfd_db *db)
{
    enum hfd_db_fate fate = hfd_db_fate(db->inner);

    if (db->in_transaction && !db->begun && fate != HFD_DB_LOST)
        fate = HFD_DB_GOES_ON;

    return db->surprised && fate != HFD_DB_LOST ? HFD_DB_AGAIN : fate;
}

static const char *gather_undone_by(const struct hfd_db *db)
{
    return db->leaves_roots ? "roots" : hfd_db_undone_by(db->inner);
}

static hfd_rc gather_reopen(struct hfd_db *db, struct hfd_err *err)
{
    return hfd_db_reopen(db->inner, err);
}

static hfd_rc gather_was_committed(struct hfd_db *db, bool *out, struct hfd_err *err)
{
    return hfd_db_was_committed(db->inner, out, err);
}

static hfd_rc gather_schema_lock(struct hfd_db *db, struct hfd_err *err)
{
    return hfd_db_schema_lock(db->inner, err);
}

static void gather_schema_unlock(struct hfd_db *db)
{
    hfd_db_schema_unlock(db->inner);
}

static hfd_rc gather_cleanup(struct hfd_db *db, struct hfd_err *err)
{
    return hfd_db_cleanup(db->inner, err);
}

/* The statements may change anything. */
static hfd_rc gather_exec(struct hfd_db *db, const char *sql, struct hfd_err *err)
{
    static const struct hfd_db_use any;
    static const struct hfd_shape all = {.of = &any};
    const hfd_rc rc = hfd_gather_go_inside(db, err);

    hfd_known_write(&db->knowns, &(struct hfd_shape_use){&all, NULL});
    return rc == HFD_OK ? hfd_db_exec(db->inner, sql, err) : rc;
}

/* A table is loaded by the migration of a store: nothing of it was read. */
static hfd_rc gather_load_begin(struct hfd_db *db, const char *sql, struct hfd_err *err)
{
    const hfd_rc rc = hfd_gather_go_inside(db, err);

    return rc == HFD_OK ? hfd_db_load_begin(db->inner, sql, err) : rc;
}

static hfd_rc gather_load(struct hfd_db *db, hfd_slice bytes, struct hfd_err *err)
{
    return hfd_db_load(db->inner, bytes, err);
}

static hfd_rc gather_load_end(struct hfd_db *db, struct hfd_err *err)
{
    return hfd_db_load_end(db->inner, err);
}

static hfd_rc gather_check(struct hfd_db *db, struct hfd_err *err)
{
    const hfd_rc rc = hfd_gather_go_inside(db, err);

    return rc == HFD_OK ? hfd_db_check(db->inner, err) : rc;
}

static hfd_rc gather_bytes(struct hfd_db *db, int64_t *out, struct hfd_err *err)
{
    return hfd_db_bytes(db->inner, out, err);
}

static hfd_rc gather_copy_open(struct hfd_db *from, const char *path, struct hfd_db_copy **out,
                               struct hfd_err *err)
{
    return hfd_db_copy_open(from->inner, path, out, err);
}

static hfd_rc gather_schema_version(struct hfd_db *db, int64_t *out, struct hfd_err *err)
{
    const hfd_rc rc = hfd_gather_go_inside(db, err);

    return rc == HFD_OK ? hfd_db_schema_version(db->inner, out, err) : rc;
}

static hfd_rc gather_set_schema_version(struct hfd_db *db, int64_t version, struct hfd_err *err)
{
    const hfd_rc rc = hfd_gather_go_inside(db, err);

    return rc == HFD_OK ? hfd_db_set_schema_version(db->inner, version, err) : rc;
}

static hfd_rc gather_check_schema(struct hfd_db *db, const struct hfd_schema_check *check,
                                  struct hfd_err *err)
{
    return hfd_db_check_schema(db->inner, check, err);
}

static void gather_sql_json_text(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
                                 int path_at)
{
    hfd_db_sql_json_text(db->inner, sql, column, path_at);
}

static void gather_sql_json_number(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
                                   int path_at)
{
    hfd_db_sql_json_number(db->inner, sql, column, path_at);
}

static struct hfd_db_like gather_sql_like(const struct hfd_db *db)
{
    return hfd_db_sql_like(db->inner);
}

static struct hfd_db_like gather_sql_fold(const struct hfd_db *db, struct hfd_arena *mem)
{
    return hfd_db_sql_fold(db->inner, mem);
}

static void gather_sql_condition(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
                                 int type_at, enum hfd_db_condition what)
{
    hfd_db_sql_condition(db->inner, sql, column, type_at, what);
}

static hfd_slice gather_json_path(const struct hfd_db *db, hfd_slice dotted, struct hfd_arena *mem)
{
    return hfd_db_json_path(db->inner, dotted, mem);
}

static hfd_slice gather_json_key(const struct hfd_db *db, hfd_slice key, struct hfd_arena *mem)
{
    return hfd_db_json_key(db->inner, key, mem);
}

static const struct hfd_engine_statements statements = {
    .prepare = hfd_gather_prepare,
    .prepare_use = hfd_gather_prepare_use,
    .prepare_once = hfd_gather_prepare_once,
    .text = hfd_gather_text,
    .blob = hfd_gather_blob,
    .i64 = hfd_gather_i64,
    .f64 = hfd_gather_f64,
    .null = hfd_gather_null,
    .step = hfd_gather_step,
    .run = hfd_gather_run,
    .done = hfd_gather_done,
    .col_i64 = hfd_gather_col_i64,
    .is_stuck = hfd_gather_is_stuck,
    .col_is_null = hfd_gather_col_is_null,
    .col_text = hfd_gather_col_text,
};

static const struct hfd_engine_dialect dialect = {
    .sql_json_text = gather_sql_json_text,
    .sql_json_number = gather_sql_json_number,
    .sql_like = gather_sql_like,
    .sql_fold = gather_sql_fold,
    .sql_condition = gather_sql_condition,
    .json_path = gather_json_path,
    .json_key = gather_json_key,
    .sql_number = gather_sql_number,
    .sql_number_end = gather_sql_number_end,
};

static const struct hfd_engine engine = {
    .close = gather_close,
    .adopt = gather_adopt,
    .broken = gather_broken,
    .cause = gather_cause,
    .watch = gather_watch,
    .begin = gather_begin,
    .begin_group = gather_begin_group,
    .look = gather_look,
    .follow = hfd_gather_follow,
    .root = gather_root,
    .exclusive = gather_exclusive,
    .is_looking = gather_is_looking,
    .commit = gather_commit,
    .rollback = gather_rollback,
    .changes = gather_changes,
    .shared = gather_shared,
    .slot = gather_slot,
    .fate = gather_fate,
    .undone_by = gather_undone_by,
    .reopen = gather_reopen,
    .was_committed = gather_was_committed,
    .cleanup = gather_cleanup,
    .exec = gather_exec,
    .load_begin = gather_load_begin,
    .load = gather_load,
    .load_end = gather_load_end,
    .check = gather_check,
    .bytes = gather_bytes,
    .copy_open = gather_copy_open,
    .schema_lock = gather_schema_lock,
    .schema_unlock = gather_schema_unlock,
    .schema_version = gather_schema_version,
    .set_schema_version = gather_set_schema_version,
    .check_schema = gather_check_schema,
    .statements = &statements,
    .dialect = &dialect,
};

hfd_rc hfd_gather_open(struct hfd_db *inner, hfd_burst_fn *burst, enum hfd_db_mode mode,
                       struct hfd_db **out, struct hfd_err *err)
{
    struct hfd_db *db = calloc(1, sizeof(*db));

    *out = db;
    if (db == NULL) {
        hfd_db_close(&inner);
        return hfd_fail_nomem(err, "a connection of the store");
    }
    db->engine = &engine;
    db->inner = inner;
    db->burst = burst;
    db->look = mode == HFD_DB_WRITER ? "look" : "read";
    db->reads_only = mode == HFD_DB_POINTS;
    hfd_writes_init(&db->writes);
    hfd_roots_clear(&db->roots);
    hfd_knowns_init(&db->knowns);
    return HFD_OK;
}

struct hfd_gather_counts hfd_gather_counts(const struct hfd_db *db)
{
    return db->counts;
}
