/* See conn.h. */
#include "store/sqlite/conn.h"

#include "driver/base/check.h"

#include <sqlite3.h>

#include <limits.h>
#include <pthread.h>

/* ---- conn ---- */

#define WHAT_SHOWN 48 /* bytes of a statement's text in a message */

/* clang-format off */
static const struct code {
    int sqlite;
    const char *name;
    hfd_rc rc;
    bool fatal; /* the connection can no longer vouch for what it holds */
} codes[] = {
    {SQLITE_IOERR,      "SQLITE_IOERR",      HFD_IO,       true},
    {SQLITE_FULL,       "SQLITE_FULL",       HFD_IO,       true},
    {SQLITE_CANTOPEN,   "SQLITE_CANTOPEN",   HFD_IO,       true},
    {SQLITE_READONLY,   "SQLITE_READONLY",   HFD_IO,       true},
    {SQLITE_PERM,       "SQLITE_PERM",       HFD_IO,       true},
    {SQLITE_NOLFS,      "SQLITE_NOLFS",      HFD_IO,       true},
    {SQLITE_CORRUPT,    "SQLITE_CORRUPT",    HFD_CORRUPT,  true},
    {SQLITE_NOTADB,     "SQLITE_NOTADB",     HFD_CORRUPT,  true},
    {SQLITE_NOMEM,      "SQLITE_NOMEM",      HFD_NOMEM,    false},
    {SQLITE_BUSY,       "SQLITE_BUSY",       HFD_BUSY,     false},
    {SQLITE_LOCKED,     "SQLITE_LOCKED",     HFD_BUSY,     false},
    {SQLITE_PROTOCOL,   "SQLITE_PROTOCOL",   HFD_BUSY,     false},
    {SQLITE_INTERRUPT,  "SQLITE_INTERRUPT",  HFD_TIMEOUT,  false},
    {SQLITE_CONSTRAINT, "SQLITE_CONSTRAINT", HFD_CONFLICT, false},
    {SQLITE_ERROR,      "SQLITE_ERROR",      HFD_CORRUPT,  false},
};
/* clang-format on */

static const struct code *find_code(int sqlite)
{
    static const struct code other = {0, "SQLITE_OTHER", HFD_CORRUPT, false};
    static const struct code not_null = {0, "SQLITE_CONSTRAINT", HFD_CORRUPT, false};

    if (sqlite == SQLITE_IOERR_NOMEM)
        sqlite = SQLITE_NOMEM;
    if (sqlite ==
        SQLITE_CONSTRAINT_NOTNULL) /* store/rows never binds NULL there: a different schema */
        return &not_null;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (codes[i].sqlite == (sqlite & 0xff))
            return &codes[i];
    return &other;
}

hfd_rc hfd_sqlite_fail_broken(const struct hfd_db *db, struct hfd_err *err)
{
    if (err != NULL)
        *err = db->cause;
    return db->cause.rc;
}

hfd_rc hfd_sqlite_fail(struct hfd_db *db, int sqlite, const char *what, struct hfd_err *err)
{
    const struct code *c = find_code(sqlite);
    bool undone = db->in_txn && sqlite3_get_autocommit(db->handle) != 0;
    bool lost = undone && !c->fatal &&
                db->mode == HFD_DB_WRITER; /* a reader has nothing to lose but its snapshot */
    hfd_rc rc = lost ? HFD_IO : c->rc;
    size_t shown = strcspn(what, "(\n");
    struct hfd_err e;

    if (shown > WHAT_SHOWN)
        shown = WHAT_SHOWN;
    while (shown > 0 && what[shown - 1] == ' ')
        shown--;
    (void)hfd_fail(&e, rc, "store: %.*s: %s (%d, %s)%s", (int)shown, what, c->name, sqlite,
                   sqlite3_errstr(sqlite), lost ? "; the transaction was undone" : "");
    if (c->fatal || undone) {
        db->broken = true;
        db->cause = e;
    }
    if (err != NULL)
        *err = e;
    return rc;
}

bool hfd_sqlite_is_fatal(int sqlite)
{
    return find_code(sqlite)->fatal;
}

void hfd_sqlite_check_owner(const struct hfd_db *db)
{
    HFD_CHECK_OBJ(db, DB_MAGIC);
    HFD_ASSERT(pthread_equal(db->owner, pthread_self()));
}

/* ---- statements ---- */

static hfd_rc compile(struct hfd_db *db, const char *sql, struct hfd_stmt **out,
                      struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_stmt_slots_reserve(&db->stmts, err);
    int sqlite;

    if (rc != HFD_OK)
        return rc;
    st = calloc(1, sizeof(*st));
    if (st == NULL)
        return hfd_fail(err, HFD_NOMEM, "store: out of memory for a statement");
    sqlite = sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &st->handle, NULL);
    if (sqlite != SQLITE_OK) {
        free(st);
        return hfd_sqlite_fail(db, sqlite, sql, err);
    }
    st->engine = db->engine;
    st->magic = STMT_MAGIC;
    st->db = db;
    st->sql = sql;
    hfd_stmt_slots_add(&db->stmts, sql, st);
    *out = st;
    return HFD_OK;
}

static hfd_rc stmt_prepare(struct hfd_db *db, const char *sql, struct hfd_stmt **out,
                           struct hfd_err *err)
{
    struct hfd_stmt *st = NULL;
    hfd_rc rc = HFD_OK;

    hfd_sqlite_check_owner(db);
    *out = NULL;
    if (db->broken)
        return hfd_sqlite_fail_broken(db, err);
    st = hfd_stmt_slots_find(&db->stmts, sql);
    if (st == NULL)
        rc = compile(db, sql, &st, err);
    if (st == NULL)
        return rc;
    HFD_ASSERT(!st->in_use);
    st->in_use = true;
    st->stuck = HFD_OK;
    db->stmts_in_use++;
    *out = st;
    return HFD_OK;
}

static hfd_rc stmt_prepare_once(struct hfd_db *db, hfd_slice sql, struct hfd_stmt **out,
                                struct hfd_err *err)
{
    struct hfd_stmt *st;
    int sqlite;

    hfd_sqlite_check_owner(db);
    *out = NULL;
    if (db->broken)
        return hfd_sqlite_fail_broken(db, err);
    HFD_ASSERT(sql.len <= INT_MAX);
    st = calloc(1, sizeof(*st));
    if (st == NULL)
        return hfd_fail(err, HFD_NOMEM, "store: out of memory for a statement");
    *st = (struct hfd_stmt){.engine = db->engine,
                            .magic = STMT_MAGIC,
                            .db = db,
                            .sql = "a composed query",
                            .in_use = true,
                            .once = true};
    sqlite = sqlite3_prepare_v3(db->handle, sql.p, (int)sql.len, 0, &st->handle, NULL);
    if (sqlite != SQLITE_OK) {
        hfd_rc rc = hfd_sqlite_fail(db, sqlite, st->sql, err);

        free(st);
        return rc;
    }
    db->stmts_in_use++;
    *out = st;
    return HFD_OK;
}

static void stick(struct hfd_stmt *st, hfd_rc rc)
{
    if (st->stuck == HFD_OK)
        st->stuck = rc;
}

static void bound(struct hfd_stmt *st, int sqlite)
{
    HFD_ASSERT(sqlite != SQLITE_RANGE && sqlite != SQLITE_MISUSE);
    if (sqlite != SQLITE_OK)
        stick(st, sqlite == SQLITE_NOMEM ? HFD_NOMEM : HFD_LIMIT);
}

static void stmt_text(struct hfd_stmt *st, int at, hfd_slice v)
{
    HFD_CHECK_OBJ(st, STMT_MAGIC);
    bound(st, sqlite3_bind_text64(st->handle, at, v.p, v.len, SQLITE_STATIC, SQLITE_UTF8));
}

static void stmt_blob(struct hfd_stmt *st, int at, hfd_slice v)
{
    HFD_CHECK_OBJ(st, STMT_MAGIC);
    bound(st, sqlite3_bind_blob64(st->handle, at, v.p, v.len, SQLITE_STATIC));
}

static void stmt_i64(struct hfd_stmt *st, int at, int64_t v)
{
    HFD_CHECK_OBJ(st, STMT_MAGIC);
    bound(st, sqlite3_bind_int64(st->handle, at, v));
}

static void stmt_f64(struct hfd_stmt *st, int at, double v)
{
    HFD_CHECK_OBJ(st, STMT_MAGIC);
    bound(st, sqlite3_bind_double(st->handle, at, v));
}

static void stmt_null(struct hfd_stmt *st, int at)
{
    HFD_CHECK_OBJ(st, STMT_MAGIC);
    bound(st, sqlite3_bind_null(st->handle, at));
}

static hfd_rc fail_stuck(struct hfd_stmt *st, struct hfd_err *err)
{
    static const char *const texts[HFD_RC_COUNT] = {
        [HFD_NOMEM] = "out of memory for a value",
        [HFD_LIMIT] = "a value is too long",
        [HFD_CORRUPT] = "a column holds a value of another type",
    };

    return hfd_fail(err, st->stuck, "store: %.*s: %s", WHAT_SHOWN, st->sql, texts[st->stuck]);
}

static hfd_rc stmt_step(struct hfd_stmt *st, bool *row, struct hfd_err *err)
{
    int sqlite;

    HFD_CHECK_OBJ(st, STMT_MAGIC);
    hfd_sqlite_check_owner(st->db);
    HFD_ASSERT(st->in_use);
    *row = false;
    if (st->db->broken)
        return hfd_sqlite_fail_broken(st->db, err);
    if (st->stuck != HFD_OK)
        return fail_stuck(st, err);
    sqlite = sqlite3_step(st->handle);
    *row = sqlite == SQLITE_ROW;
    if (sqlite == SQLITE_ROW || sqlite == SQLITE_DONE)
        return HFD_OK;
    return hfd_sqlite_fail(st->db, sqlite, st->sql, err);
}

static void stmt_done(struct hfd_stmt *st)
{
    if (st == NULL)
        return;
    HFD_CHECK_OBJ(st, STMT_MAGIC);
    hfd_sqlite_check_owner(st->db);
    HFD_ASSERT(st->in_use);
    if (st->once) {
        st->db->stmts_in_use--;
        (void)sqlite3_finalize(st->handle);
        st->magic = 0;
        free(st);
        return;
    }
    (void)sqlite3_reset(
        st->handle); /* repeats the failure of the last step, which was answered there */
    (void)sqlite3_clear_bindings(st->handle);
    st->in_use = false;
    st->db->stmts_in_use--;
}

static hfd_rc stmt_run(struct hfd_stmt *st, int64_t *changed, struct hfd_err *err)
{
    bool row;
    hfd_rc rc = stmt_step(st, &row, err);

    HFD_ASSERT(!row);
    if (changed != NULL)
        *changed = rc == HFD_OK ? sqlite3_changes64(st->db->handle) : 0;
    stmt_done(st);
    return rc;
}

static int64_t stmt_col_i64(struct hfd_stmt *st, int at)
{
    sqlite3_value *value;

    HFD_CHECK_OBJ(st, STMT_MAGIC);
    value = sqlite3_column_value(st->handle, at); /* each call on a column costs as much again */
    if (sqlite3_value_type(value) != SQLITE_INTEGER)
        stick(st, HFD_CORRUPT);
    return sqlite3_value_int64(value);
}

static bool stmt_is_stuck(const struct hfd_stmt *st)
{
    HFD_CHECK_OBJ(st, STMT_MAGIC);
    return st->stuck != HFD_OK;
}

static bool stmt_col_is_null(struct hfd_stmt *st, int at)
{
    HFD_CHECK_OBJ(st, STMT_MAGIC);
    return sqlite3_column_type(st->handle, at) == SQLITE_NULL;
}

static hfd_slice stmt_col_text(struct hfd_stmt *st, int at, struct hfd_arena *mem)
{
    sqlite3_value *value;
    hfd_slice v;
    int type;

    HFD_CHECK_OBJ(st, STMT_MAGIC);
    value = sqlite3_column_value(st->handle, at);
    type = sqlite3_value_type(value);
    if (type == SQLITE_NULL)
        return HFD_SLICE_NONE;
    if (type != SQLITE_TEXT && type != SQLITE_BLOB) {
        stick(st, HFD_CORRUPT);
        return HFD_SLICE_NONE;
    }
    /* as stored: text too, the database is UTF-8; NULL for no bytes, or no memory */
    v.p = sqlite3_value_blob(value);
    v.len = (size_t)sqlite3_value_bytes(value);
    if (v.p == NULL && sqlite3_errcode(st->db->handle) == SQLITE_NOMEM) {
        stick(st, HFD_NOMEM);
        return HFD_SLICE_NONE;
    }
    v = hfd_arena_dup(mem, v);
    if (v.p == NULL)
        stick(st, HFD_NOMEM);
    return v;
}

static void finalize(struct hfd_stmt *st)
{
    (void)sqlite3_finalize(st->handle);
    st->magic = 0;
    free(st);
}

void hfd_sqlite_finalize_all(struct hfd_db *db)
{
    HFD_ASSERT(db->stmts_in_use == 0);
    hfd_stmt_slots_clear(&db->stmts, finalize);
}

const struct hfd_engine_statements hfd_sqlite_statements = {
    .prepare = stmt_prepare,
    .prepare_once = stmt_prepare_once,
    .text = stmt_text,
    .blob = stmt_blob,
    .i64 = stmt_i64,
    .f64 = stmt_f64,
    .null = stmt_null,
    .step = stmt_step,
    .run = stmt_run,
    .done = stmt_done,
    .col_i64 = stmt_col_i64,
    .is_stuck = stmt_is_stuck,
    .col_is_null = stmt_col_is_null,
    .col_text = stmt_col_text,
};
