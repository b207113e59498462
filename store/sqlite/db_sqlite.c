/*
 * db.h on SQLite, and the only file that sees sqlite3.h.
 *
 * Refuses to work without WAL and synchronous=FULL (read back), on a database that is not ours, and
 * beside a second process. Exactly one connection, the writer's, writes and checkpoints: SQLite
 * before 3.51.3 can damage a database on which two connections do so at once. No connection maps
 * the file into memory. Thread: each connection belongs to one thread, asserted. Source: DESIGN.md
 * section 3.
 */
#include "store/db.h"

#include "driver/base/check.h"
#include "driver/base/log.h"
#include "store/sqlite/db_sqlite_int.h"
#include "store/sqlite/fold.h"
#include "store/sqlite/folder.h"

#include <sqlite3.h>

#include <limits.h>
#include <pthread.h>

#define APPLICATION_ID 0x48464431 /* "HFD1" in the file's header */
#define VFS_DEFAULT                                                                                \
    "unix-excl" /* locks for this process alone: the index of the log is plain memory, and tools   \
                   stay out */
#define STMT_SLOTS_MIN 64u /* a power of two */
#define WHAT_SHOWN 48      /* bytes of a statement's text in a message */

struct hfd_stmt {
    unsigned magic;
#define STMT_MAGIC 0x57a7e3e7u
    struct hfd_db *db;
    const char *sql; /* the key */
    sqlite3_stmt *handle;
    bool in_use;
    bool once;    /* not in the slots: done frees it */
    hfd_rc stuck; /* first failure of a binding or a column; answered by the next step */
};

struct hfd_db {
    unsigned magic;
#define DB_MAGIC 0xdb5011feu
    enum hfd_db_mode mode;
    pthread_t owner;
    sqlite3 *handle;
    struct hfd_folder folder; /* the writer's: held while it is open */
    bool in_txn;
    bool broken;
    struct hfd_err cause;    /* once broken: the first failure, answered from then on */
    int log_frames;          /* pages in the log after the last commit */
    struct hfd_stmt **slots; /* open addressing by the address of the text; at most half full */
    size_t slots_cap;
    size_t stmts;
    size_t stmts_in_use;
};

static struct {
    const char *vfs;
    const char *synchronous;
    const char *synchronous_read_back;
    int checkpoint_frames; /* pages in the log from which tidy copies them into the database */
} seams = {VFS_DEFAULT, "FULL", "2", 1000};

static const char sql_begin_write[] = "BEGIN IMMEDIATE";
static const char sql_begin_read[] = "BEGIN";
static const char sql_commit[] = "COMMIT";
static const char sql_rollback[] = "ROLLBACK";
static const char sql_like_cases[] = "SELECT 'a' LIKE 'A'";
static const char sql_count_objects[] = "SELECT count(*) FROM sqlite_schema";

void hfd_db_set_vfs(const char *name)
{
    seams.vfs = name != NULL ? name : VFS_DEFAULT;
}

void hfd_db_set_synchronous(const char *level)
{
    seams.synchronous = level;
    seams.synchronous_read_back = strcmp(level, "FULL") == 0 ? "2" : "1";
}

void hfd_db_set_checkpoint_frames(int frames)
{
    seams.checkpoint_frames = frames;
}

/* ---- failures ---- */

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

static hfd_rc fail_broken(const struct hfd_db *db, struct hfd_err *err)
{
    if (err != NULL)
        *err = db->cause;
    return db->cause.rc;
}

/* @param what  SQL or a few words of ours; never data */
static hfd_rc fail_sqlite(struct hfd_db *db, int sqlite, const char *what, struct hfd_err *err)
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

static void check_owner(const struct hfd_db *db)
{
    HFD_CHECK_OBJ(db, DB_MAGIC);
    HFD_ASSERT(pthread_equal(db->owner, pthread_self()));
}

/*
 * SQLite's own words for what the system answered: path, errno, place. Constraint and schema notes
 * would be noise.
 */
static void on_sqlite_log(void *ctx, int code, const char *text)
{
    enum hfd_log_level level = (code & 0xff) == SQLITE_NOTICE ? HFD_LOG_INFO : HFD_LOG_WARN;

    (void)ctx;
    if (level == HFD_LOG_INFO || find_code(code)->fatal)
        HFD_LOG(level, "sqlite", HFD_LOG_INT("code", code), HFD_LOG_CSTR("text", text));
}

static void configure_library(void)
{
    /*
     * Another user of SQLite in the process may have started it before us: then its settings stand;
     * only speed and log lines are lost.
     */
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* saves a lock around each allocation */
    (void)sqlite3_config(SQLITE_CONFIG_LOG, on_sqlite_log, NULL);
}

/* ---- statements ---- */

static size_t slot_of(const struct hfd_db *db, const char *sql)
{
    size_t mask = db->slots_cap - 1;
    size_t i = (size_t)(((uint64_t)(uintptr_t)sql * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & mask;

    while (db->slots[i] != NULL && db->slots[i]->sql != sql)
        i = (i + 1) & mask;
    return i;
}

static hfd_rc grow_slots(struct hfd_db *db, struct hfd_err *err)
{
    struct hfd_stmt **old = db->slots;
    size_t old_cap = db->slots_cap;
    size_t cap = old_cap == 0 ? STMT_SLOTS_MIN : old_cap * 2;
    struct hfd_stmt **slots = calloc(cap, sizeof(struct hfd_stmt *));

    if (slots == NULL)
        return hfd_fail(err, HFD_NOMEM, "store: out of memory for a statement");
    db->slots = slots;
    db->slots_cap = cap;
    for (size_t i = 0; i < old_cap; i++)
        if (old[i] != NULL)
            slots[slot_of(db, old[i]->sql)] = old[i];
    free(old);
    return HFD_OK;
}

static hfd_rc compile(struct hfd_db *db, const char *sql, struct hfd_stmt **out,
                      struct hfd_err *err)
{
    struct hfd_stmt *st;
    int sqlite;

    if (2 * (db->stmts + 1) > db->slots_cap) {
        hfd_rc rc = grow_slots(db, err);

        if (rc != HFD_OK)
            return rc;
    }
    st = calloc(1, sizeof(*st));
    if (st == NULL)
        return hfd_fail(err, HFD_NOMEM, "store: out of memory for a statement");
    sqlite = sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &st->handle, NULL);
    if (sqlite != SQLITE_OK) {
        free(st);
        return fail_sqlite(db, sqlite, sql, err);
    }
    st->magic = STMT_MAGIC;
    st->db = db;
    st->sql = sql;
    db->slots[slot_of(db, sql)] = st;
    db->stmts++;
    *out = st;
    return HFD_OK;
}

hfd_rc hfd_db_prepare(struct hfd_db *db, const char *sql, struct hfd_stmt **out,
                      struct hfd_err *err)
{
    struct hfd_stmt *st = NULL;
    hfd_rc rc = HFD_OK;

    check_owner(db);
    *out = NULL;
    if (db->broken)
        return fail_broken(db, err);
    if (db->slots_cap != 0)
        st = db->slots[slot_of(db, sql)];
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

hfd_rc hfd_db_prepare_once(struct hfd_db *db, hfd_slice sql, struct hfd_stmt **out,
                           struct hfd_err *err)
{
    struct hfd_stmt *st;
    int sqlite;

    check_owner(db);
    *out = NULL;
    if (db->broken)
        return fail_broken(db, err);
    HFD_ASSERT(sql.len <= INT_MAX);
    st = calloc(1, sizeof(*st));
    if (st == NULL)
        return hfd_fail(err, HFD_NOMEM, "store: out of memory for a statement");
    *st = (struct hfd_stmt){
        .magic = STMT_MAGIC, .db = db, .sql = "a composed query", .in_use = true, .once = true};
    sqlite = sqlite3_prepare_v3(db->handle, sql.p, (int)sql.len, 0, &st->handle, NULL);
    if (sqlite != SQLITE_OK) {
        hfd_rc rc = fail_sqlite(db, sqlite, st->sql, err);

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

void hfd_stmt_text(struct hfd_stmt *st, int at, hfd_slice v)
{
    HFD_CHECK_OBJ(st, STMT_MAGIC);
    bound(st, sqlite3_bind_text64(st->handle, at, v.p, v.len, SQLITE_STATIC, SQLITE_UTF8));
}

void hfd_stmt_blob(struct hfd_stmt *st, int at, hfd_slice v)
{
    HFD_CHECK_OBJ(st, STMT_MAGIC);
    bound(st, sqlite3_bind_blob64(st->handle, at, v.p, v.len, SQLITE_STATIC));
}

void hfd_stmt_i64(struct hfd_stmt *st, int at, int64_t v)
{
    HFD_CHECK_OBJ(st, STMT_MAGIC);
    bound(st, sqlite3_bind_int64(st->handle, at, v));
}

void hfd_stmt_f64(struct hfd_stmt *st, int at, double v)
{
    HFD_CHECK_OBJ(st, STMT_MAGIC);
    bound(st, sqlite3_bind_double(st->handle, at, v));
}

void hfd_stmt_null(struct hfd_stmt *st, int at)
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

hfd_rc hfd_stmt_step(struct hfd_stmt *st, bool *row, struct hfd_err *err)
{
    int sqlite;

    HFD_CHECK_OBJ(st, STMT_MAGIC);
    check_owner(st->db);
    HFD_ASSERT(st->in_use);
    *row = false;
    if (st->db->broken)
        return fail_broken(st->db, err);
    if (st->stuck != HFD_OK)
        return fail_stuck(st, err);
    sqlite = sqlite3_step(st->handle);
    *row = sqlite == SQLITE_ROW;
    if (sqlite == SQLITE_ROW || sqlite == SQLITE_DONE)
        return HFD_OK;
    return fail_sqlite(st->db, sqlite, st->sql, err);
}

hfd_rc hfd_stmt_run(struct hfd_stmt *st, int64_t *changed, struct hfd_err *err)
{
    bool row;
    hfd_rc rc = hfd_stmt_step(st, &row, err);

    HFD_ASSERT(!row);
    if (changed != NULL)
        *changed = rc == HFD_OK ? sqlite3_changes64(st->db->handle) : 0;
    hfd_stmt_done(st);
    return rc;
}

void hfd_stmt_done(struct hfd_stmt *st)
{
    if (st == NULL)
        return;
    HFD_CHECK_OBJ(st, STMT_MAGIC);
    check_owner(st->db);
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

int64_t hfd_stmt_col_i64(struct hfd_stmt *st, int at)
{
    HFD_CHECK_OBJ(st, STMT_MAGIC);
    if (sqlite3_column_type(st->handle, at) != SQLITE_INTEGER)
        stick(st, HFD_CORRUPT);
    return sqlite3_column_int64(st->handle, at);
}

bool hfd_stmt_col_is_null(struct hfd_stmt *st, int at)
{
    HFD_CHECK_OBJ(st, STMT_MAGIC);
    return sqlite3_column_type(st->handle, at) == SQLITE_NULL;
}

hfd_slice hfd_stmt_col_text(struct hfd_stmt *st, int at, struct hfd_arena *mem)
{
    hfd_slice v;
    int type;

    HFD_CHECK_OBJ(st, STMT_MAGIC);
    type = sqlite3_column_type(st->handle, at);
    if (type == SQLITE_NULL)
        return HFD_SLICE_NONE;
    if (type != SQLITE_TEXT && type != SQLITE_BLOB) {
        stick(st, HFD_CORRUPT);
        return HFD_SLICE_NONE;
    }
    v.p = sqlite3_column_blob(
        st->handle,
        at); /* as stored: text too, the database is UTF-8; NULL for no bytes, or no memory */
    v.len = (size_t)sqlite3_column_bytes(st->handle, at);
    if (v.p == NULL && sqlite3_errcode(st->db->handle) == SQLITE_NOMEM) {
        stick(st, HFD_NOMEM);
        return HFD_SLICE_NONE;
    }
    v = hfd_arena_dup(mem, v);
    if (v.p == NULL)
        stick(st, HFD_NOMEM);
    return v;
}

/* ---- transactions ---- */

static hfd_rc run(struct hfd_db *db, const char *sql, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(db, sql, &st, err);

    return rc == HFD_OK ? hfd_stmt_run(st, NULL, err) : rc;
}

hfd_rc hfd_db_begin(struct hfd_db *db, struct hfd_err *err)
{
    hfd_rc rc;

    check_owner(db);
    HFD_ASSERT(!db->in_txn && db->stmts_in_use == 0);
    rc = run(db, db->mode == HFD_DB_WRITER ? sql_begin_write : sql_begin_read, err);
    db->in_txn = rc == HFD_OK;
    return rc;
}

hfd_rc hfd_db_commit(struct hfd_db *db, struct hfd_err *err)
{
    hfd_rc rc;

    check_owner(db);
    HFD_ASSERT(db->in_txn && db->stmts_in_use == 0);
    rc = run(db, sql_commit, err);
    if (rc == HFD_OK) {
        db->in_txn = false;
    } else if (!db->broken) { /* whatever the reason, what is on disk is not known now */
        db->broken = true;
        (void)hfd_fail(&db->cause, HFD_IO, "store: the commit failed: %s",
                       err != NULL ? err->msg : hfd_rc_text(rc));
        rc = fail_broken(db, err);
    }
    return rc;
}

void hfd_db_rollback(struct hfd_db *db)
{
    struct hfd_err err;

    check_owner(db);
    HFD_ASSERT(db->in_txn && db->stmts_in_use == 0);
    if (!db->broken && run(db, sql_rollback, &err) != HFD_OK && !db->broken) {
        db->broken = true;
        (void)hfd_fail(&db->cause, HFD_IO, "store: the rollback failed: %s", err.msg);
    }
    db->in_txn = false;
}

int64_t hfd_db_changes(const struct hfd_db *db)
{
    check_owner(db);
    return sqlite3_total_changes64(db->handle);
}

hfd_rc hfd_db_tidy(struct hfd_db *db, struct hfd_err *err)
{
    int sqlite;

    check_owner(db);
    HFD_ASSERT(db->mode == HFD_DB_WRITER && !db->in_txn);
    if (db->broken)
        return fail_broken(db, err);
    if (db->log_frames < seams.checkpoint_frames)
        return HFD_OK;
    db->log_frames =
        0; /* until the next commit that writes: what could not be done now is tried again then */
    sqlite = sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    if (sqlite == SQLITE_OK || !find_code(sqlite)->fatal)
        return HFD_OK;
    return fail_sqlite(db, sqlite, "checkpoint", err);
}

hfd_rc hfd_db_exec(struct hfd_db *db, const char *sql, struct hfd_err *err)
{
    char *text;
    int sqlite;

    check_owner(db);
    if (db->broken)
        return fail_broken(db, err);
    text = hfd_sqlite_text(sql);
    if (text == NULL)
        return hfd_fail(err, HFD_NOMEM, "store: out of memory for a statement");
    sqlite = sqlite3_exec(db->handle, text, NULL, NULL, NULL);
    free(text);
    return sqlite == SQLITE_OK ? HFD_OK : fail_sqlite(db, sqlite, sql, err);
}

/* ---- opening ---- */

/* The first column of the first row; "" if there is none. */
static hfd_rc pragma_get(struct hfd_db *db, const char *name, char *out, size_t cap,
                         struct hfd_err *err)
{
    char sql[64];
    sqlite3_stmt *st = NULL;
    int sqlite;

    out[0] = '\0';
    (void)snprintf(sql, sizeof(sql), "PRAGMA %s", name);
    sqlite = sqlite3_prepare_v2(db->handle, sql, -1, &st, NULL);
    if (sqlite == SQLITE_OK)
        sqlite = sqlite3_step(st);
    if (sqlite == SQLITE_ROW) {
        const unsigned char *text = sqlite3_column_text(st, 0);

        if (text == NULL)
            sqlite = SQLITE_NOMEM;
        else
            (void)snprintf(out, cap, "%s", (const char *)text);
    }
    (void)sqlite3_finalize(st);
    return sqlite == SQLITE_ROW || sqlite == SQLITE_DONE ? HFD_OK
                                                         : fail_sqlite(db, sqlite, sql, err);
}

static hfd_rc pragma_set(struct hfd_db *db, const char *name, const char *value,
                         struct hfd_err *err)
{
    char sql[64];

    (void)snprintf(sql, sizeof(sql), "PRAGMA %s=%s", name, value);
    return hfd_db_exec(db, sql, err);
}

static hfd_rc pragma_i64(struct hfd_db *db, const char *name, int64_t *out, struct hfd_err *err)
{
    char text[32];
    hfd_rc rc = pragma_get(db, name, text, sizeof(text), err);

    *out = 0;
    return rc == HFD_OK ? hfd_parse_i64(hfd_slice_of(text), INT64_MIN, INT64_MAX, out, err) : rc;
}

#define FOR_WRITER 1u
#define FOR_READER 2u
#define FOR_ALL (FOR_WRITER | FOR_READER)

/* clang-format off */
static const struct pragma {
    const char *name, *value, *read_back;
    unsigned modes;
} pragmas[] = { /* in this order: the change to WAL is itself synced */
    {"synchronous",        NULL,       NULL,       FOR_ALL}, /* from the seam: FULL */
    {"journal_mode",       "WAL",      "wal",      FOR_ALL},
    {"wal_autocheckpoint", "0",        "0",        FOR_ALL}, /* the writer's tidy does it, after the answers, and sees its failures */
    {"journal_size_limit", "67108864", "67108864", FOR_WRITER}, /* a log that a long reader let grow is cut back to this */
    {"foreign_keys",       "OFF",      "0",        FOR_ALL},
    {"temp_store",         "MEMORY",   "2",        FOR_ALL},
    {"trusted_schema",     "OFF",      "0",        FOR_ALL},
    {"cell_size_check",    "ON",       "1",        FOR_ALL},
    {"cache_size",         "-12288",   "-12288",   FOR_WRITER}, /* KiB */
    {"cache_size",         "-8192",    "-8192",    FOR_READER},
    {"query_only",         "ON",       "1",        FOR_READER},
};
/* clang-format on */

static hfd_rc apply_pragma(struct hfd_db *db, const struct pragma *p, struct hfd_err *err)
{
    const char *value = p->value != NULL ? p->value : seams.synchronous;
    const char *expected = p->read_back != NULL ? p->read_back : seams.synchronous_read_back;
    char got[32];
    hfd_rc rc;

    rc = pragma_set(db, p->name, value, err);
    if (rc == HFD_OK)
        rc = pragma_get(db, p->name, got, sizeof(got), err);
    if (rc == HFD_OK && strcmp(got, expected) != 0)
        rc = hfd_fail(err, HFD_IO, "store: PRAGMA %s=%s does not hold here: it is %s", p->name,
                      value, got);
    return rc;
}

/*
 * LIKE tells upper from lower case, as on other engines. The pragma cannot be read back, so its
 * effect is.
 */
static hfd_rc set_like(struct hfd_db *db, struct hfd_err *err)
{
    struct hfd_stmt *st = NULL;
    bool row = false;
    hfd_rc rc = pragma_set(db, "case_sensitive_like", "ON", err);

    if (rc == HFD_OK)
        rc = hfd_db_prepare(db, sql_like_cases, &st, err);
    if (rc == HFD_OK)
        rc = hfd_stmt_step(st, &row, err);
    if (rc == HFD_OK && (!row || hfd_stmt_col_i64(st, 0) != 0))
        rc = hfd_fail(err, HFD_IO, "store: PRAGMA case_sensitive_like=ON does not hold here");
    hfd_stmt_done(st);
    return rc;
}

static hfd_rc apply_pragmas(struct hfd_db *db, struct hfd_err *err)
{
    const unsigned mode = db->mode == HFD_DB_WRITER ? FOR_WRITER : FOR_READER;

    for (size_t i = 0; i < sizeof(pragmas) / sizeof(pragmas[0]); i++) {
        hfd_rc rc = (pragmas[i].modes & mode) != 0 ? apply_pragma(db, &pragmas[i], err) : HFD_OK;

        if (rc != HFD_OK)
            return rc;
    }
    return set_like(db, err);
}

/* Before anything is changed in it: ours, or empty. */
static hfd_rc check_ours(struct hfd_db *db, struct hfd_err *err)
{
    int64_t id;
    int64_t objects = 0;
    struct hfd_stmt *st = NULL;
    bool row = false;
    hfd_rc rc = pragma_i64(db, "application_id", &id, err);

    if (rc != HFD_OK || id == APPLICATION_ID)
        return rc;
    rc = hfd_db_prepare(db, sql_count_objects, &st, err);
    if (rc == HFD_OK)
        rc = hfd_stmt_step(st, &row, err);
    if (rc == HFD_OK && row)
        objects = hfd_stmt_col_i64(st, 0);
    hfd_stmt_done(st);
    if (rc == HFD_OK && (id != 0 || objects != 0))
        rc = hfd_fail(err, HFD_INVALID, "store: not a database of hyperfleet-driver");
    return rc;
}

static int on_log_written(void *ctx, sqlite3 *handle, const char *schema, int frames)
{
    struct hfd_db *db = ctx;

    (void)handle;
    (void)schema;
    db->log_frames = frames;
    return SQLITE_OK;
}

static hfd_rc open_handle(struct hfd_db *db, const char *dir, struct hfd_err *err)
{
    char *path = sqlite3_mprintf("%s%s/%s", dir[0] == '/' ? "" : "./", dir,
                                 HFD_FOLDER_DB_NAME); /* "file:..." is a folder, no URI */
    int sqlite;

    if (path == NULL)
        return hfd_fail(err, HFD_NOMEM, "store: out of memory");
    /*
     * Readers too: a read-only descriptor would lock for itself, in the place of the process's
     * lock. They are query_only instead.
     */
    sqlite =
        sqlite3_open_v2(path, &db->handle, SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE, seams.vfs);
    sqlite3_free(path);
    if (sqlite != SQLITE_OK)
        return fail_sqlite(db, sqlite, "open", err);
    (void)sqlite3_extended_result_codes(db->handle, 1);
    (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1,
                            NULL); /* close does it, unless broken */
    sqlite = hfd_sqlite_fold(db->handle);
    return sqlite == SQLITE_OK ? HFD_OK : fail_sqlite(db, sqlite, "open", err);
}

/*
 * Made at once, so that a transaction can be ended when there is no memory left to prepare the
 * statement for it.
 */
static hfd_rc prepare_control(struct hfd_db *db, struct hfd_err *err)
{
    static const char *const texts[] = {
        sql_begin_write,
        sql_begin_read,
        sql_commit,
        sql_rollback,
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct hfd_stmt *st;
        hfd_rc rc = hfd_db_prepare(db, texts[i], &st, err);

        if (rc != HFD_OK)
            return rc;
        hfd_stmt_done(st);
    }
    return HFD_OK;
}

static hfd_rc open_database(struct hfd_db *db, const char *dir, struct hfd_err *err)
{
    static const char subject[] = "store: ";
    struct hfd_err why = {0};
    hfd_rc rc = open_handle(db, dir, &why);
    const char *said;

    if (rc == HFD_OK)
        rc = check_ours(db, &why);
    if (rc == HFD_BUSY)
        rc = hfd_fail(&why, HFD_CONFLICT, "in use by another program, a database tool perhaps");
    if (rc == HFD_OK)
        rc = apply_pragmas(db, &why);
    if (rc == HFD_OK)
        return HFD_OK;
    said =
        why.msg + (strncmp(why.msg, subject, sizeof(subject) - 1) == 0 ? sizeof(subject) - 1 : 0);
    return hfd_fail(err, rc, "store %.100s/%s: %s%s", dir, HFD_FOLDER_DB_NAME, said,
                    rc == HFD_CORRUPT ? "; bring it back from a backup" : "");
}

static hfd_rc open_writer(struct hfd_db *db, const char *dir, struct hfd_err *err)
{
    hfd_rc rc = hfd_folder_open(dir, &db->folder, err);

    if (rc == HFD_OK)
        rc = open_database(db, dir, err);
    if (rc != HFD_OK)
        return rc;
    (void)sqlite3_wal_hook(db->handle, on_log_written, db);
    return hfd_folder_sync(
        &db->folder, err); /* the database, and that the journal of its first change is gone */
}

hfd_rc hfd_db_open(const char *dir, enum hfd_db_mode mode, struct hfd_db **out, struct hfd_err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct hfd_db *db = calloc(1, sizeof(*db));
    hfd_rc rc;

    *out = NULL;
    if (db == NULL)
        return hfd_fail(err, HFD_NOMEM, "store: out of memory");
    (void)pthread_once(&once, configure_library);
    db->magic = DB_MAGIC;
    db->mode = mode;
    db->owner = pthread_self();
    db->folder = (struct hfd_folder){.dir_fd = -1, .lock_fd = -1};
    if (mode == HFD_DB_WRITER) {
        rc = open_writer(db, dir, err);
    } else {
        rc = open_handle(db, dir, err);
        if (rc == HFD_OK)
            rc = apply_pragmas(db, err);
    }
    if (rc == HFD_OK)
        rc = prepare_control(db, err);
    if (rc == HFD_OK) {
        *out = db;
    } else {
        db->broken = true; /* nothing more is done with it but closing */
        hfd_db_close(&db);
    }
    return rc;
}

void hfd_db_close(struct hfd_db **dbp)
{
    struct hfd_db *db = *dbp;
    int sqlite;

    *dbp = NULL;
    if (db == NULL)
        return;
    check_owner(db);
    HFD_ASSERT(db->stmts_in_use == 0);
    for (size_t i = 0; i < db->slots_cap; i++) {
        if (db->slots[i] == NULL)
            continue;
        (void)sqlite3_finalize(db->slots[i]->handle);
        db->slots[i]->magic = 0;
        free(db->slots[i]);
    }
    free(db->slots);
    if (db->mode == HFD_DB_WRITER &&
        !db->broken) /* a failure leaves the log, which the next start reads */
        (void)sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    sqlite = sqlite3_close(db->handle);
    HFD_ASSERT(sqlite == SQLITE_OK); /* BUSY: a statement is left over */
    hfd_folder_close(&db->folder);
    db->magic = 0;
    free(db);
}

void hfd_db_adopt(struct hfd_db *db)
{
    HFD_CHECK_OBJ(db, DB_MAGIC);
    db->owner = pthread_self();
}

bool hfd_db_broken(const struct hfd_db *db)
{
    return db->broken;
}

hfd_rc hfd_db_cause(const struct hfd_db *db, struct hfd_err *err)
{
    return db->broken ? fail_broken(db, err) : HFD_OK;
}

hfd_rc hfd_db_check(struct hfd_db *db, struct hfd_err *err)
{
    char text[128] = "";
    hfd_rc rc;

    check_owner(db);
    rc = db->broken ? fail_broken(db, err)
                    : pragma_get(db, "integrity_check(1)", text, sizeof(text), err);
    if (rc != HFD_OK || strcmp(text, "ok") == 0)
        return rc;
    for (char *c = text; *c != '\0'; c++)
        if (*c == '\n')
            *c = ' ';
    return hfd_fail(err, HFD_CORRUPT,
                    "store: the database is damaged: %s; bring it back from a backup", text);
}

hfd_rc hfd_db_schema_version(struct hfd_db *db, int64_t *out, struct hfd_err *err)
{
    check_owner(db);
    *out = 0;
    return db->broken ? fail_broken(db, err) : pragma_i64(db, "user_version", out, err);
}

hfd_rc hfd_db_set_schema_version(struct hfd_db *db, int64_t version, struct hfd_err *err)
{
    char sql[96];

    /* Both stand in the header page, and so are part of the transaction. */
    (void)snprintf(sql, sizeof(sql), "PRAGMA user_version=%lld; PRAGMA application_id=%d",
                   (long long)version, APPLICATION_ID);
    return hfd_db_exec(db, sql, err);
}
