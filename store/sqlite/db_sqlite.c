/*
 * db.h on SQLite: transactions, opening and closing, copies.
 *
 * Refuses to work without WAL and synchronous=FULL (read back), on a database of another program,
 * and beside a second process. No connection maps the file into memory.
 */
#include "store/sqlite/conn.h"
#include "store/sqlite/db_sqlite_int.h"

#include "driver/base/check.h"
#include "driver/base/log.h"
#include "store/migrate.h"
#include "store/sqlite/dialect.h"
#include "store/sqlite/folder.h"

#define APPLICATION_ID 0x48464431 /* "HFD1" in the file's header */
#define SQL_SHOWN 50              /* bytes of a text that differs */
#define PROGRESS_STEPS 100        /* of SQLite's machine between two questions */
#define VFS_DEFAULT                                                                                \
    "unix-excl" /* locks for this process alone: the index of the log is plain memory, and tools   \
                   stay out */

/* PRAGMA synchronous as it is set and as it is read back. */
struct levels {
    const char *synchronous;
    const char *synchronous_read_back;
};

static struct {
    const char *vfs;
    struct levels levels;
    int checkpoint_frames; /* pages in the log from which tidy copies them into the database */
} seams = {VFS_DEFAULT, {"FULL", "2"}, 1000};

static const char sql_begin_write[] = "BEGIN IMMEDIATE";
static const char sql_begin_read[] = "BEGIN";
static const char sql_commit[] = "COMMIT";
static const char sql_rollback[] = "ROLLBACK";
static const char sql_count_objects[] = "SELECT count(*) FROM sqlite_schema";

void hfd_db_set_vfs(const char *name)
{
    seams.vfs = name != NULL ? name : VFS_DEFAULT;
}

void hfd_db_set_synchronous(const char *level)
{
    seams.levels.synchronous = level;
    seams.levels.synchronous_read_back = strcmp(level, "FULL") == 0 ? "2" : "1";
}

void hfd_db_set_checkpoint_frames(int frames)
{
    seams.checkpoint_frames = frames;
}

/* ---- settings of a connection ---- */

static const char sql_like_cases[] = "SELECT 'a' LIKE 'A'";

/* Reads the first column of the first row; "" where there is none. */
static hfd_rc pragma_text(struct hfd_db *db, const char *name, char *out, size_t cap,
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
                                                         : hfd_sqlite_fail(db, sqlite, sql, err);
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
    hfd_rc rc = pragma_text(db, name, text, sizeof(text), err);

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

static hfd_rc apply_pragma(struct hfd_db *db, const struct pragma *p, const struct levels *levels,
                           struct hfd_err *err)
{
    const char *value = p->value != NULL ? p->value : levels->synchronous;
    const char *expected = p->read_back != NULL ? p->read_back : levels->synchronous_read_back;
    char got[32];
    hfd_rc rc;

    rc = pragma_set(db, p->name, value, err);
    if (rc == HFD_OK)
        rc = pragma_text(db, p->name, got, sizeof(got), err);
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

/* Sets what durability and the portable SQL rest on, and reads it back. */
static hfd_rc pragmas_apply(struct hfd_db *db, const struct levels *levels, struct hfd_err *err)
{
    const unsigned mode = db->mode == HFD_DB_WRITER ? FOR_WRITER : FOR_READER;

    for (size_t i = 0; i < sizeof(pragmas) / sizeof(pragmas[0]); i++) {
        hfd_rc rc =
            (pragmas[i].modes & mode) != 0 ? apply_pragma(db, &pragmas[i], levels, err) : HFD_OK;

        if (rc != HFD_OK)
            return rc;
    }
    return set_like(db, err);
}

/* ---- interruption ---- */

static int on_progress(void *ctx)
{
    const struct hfd_db *db = ctx;

    return db->stop != NULL && db->stop(db->stop_ctx);
}

static void db_watch(struct hfd_db *db, hfd_db_stop_fn *fn, void *ctx)
{
    hfd_sqlite_check_owner(db);
    db->stop = fn;
    db->stop_ctx = ctx;
    sqlite3_progress_handler(db->handle, fn != NULL ? PROGRESS_STEPS : 0, on_progress, db);
}

/* ---- transactions ---- */

static hfd_rc run(struct hfd_db *db, const char *sql, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(db, sql, &st, err);

    return rc == HFD_OK ? hfd_stmt_run(st, NULL, err) : rc;
}

static hfd_rc db_begin(struct hfd_db *db, struct hfd_err *err)
{
    hfd_rc rc;

    hfd_sqlite_check_owner(db);
    HFD_ASSERT(!db->in_txn && db->stmts_in_use == 0);
    rc = run(db, db->mode == HFD_DB_WRITER ? sql_begin_write : sql_begin_read, err);
    db->in_txn = rc == HFD_OK;
    return rc;
}

static hfd_rc db_commit(struct hfd_db *db, struct hfd_err *err)
{
    hfd_rc rc;

    hfd_sqlite_check_owner(db);
    HFD_ASSERT(db->in_txn && db->stmts_in_use == 0);
    rc = run(db, sql_commit, err);
    if (rc == HFD_OK) {
        db->in_txn = false;
    } else if (!db->broken) { /* whatever the reason, what is on disk is not known now */
        db->broken = true;
        (void)hfd_fail(&db->cause, HFD_IO, "store: the commit failed: %s",
                       err != NULL ? err->msg : hfd_rc_text(rc));
        rc = hfd_sqlite_fail_broken(db, err);
    }
    return rc;
}

static void db_rollback(struct hfd_db *db)
{
    struct hfd_err err;

    hfd_sqlite_check_owner(db);
    HFD_ASSERT(db->in_txn && db->stmts_in_use == 0);
    if (!db->broken && run(db, sql_rollback, &err) != HFD_OK && !db->broken) {
        db->broken = true;
        (void)hfd_fail(&db->cause, HFD_IO, "store: the rollback failed: %s", err.msg);
    }
    db->in_txn = false;
}

static int64_t db_changes(const struct hfd_db *db)
{
    hfd_sqlite_check_owner(db);
    return sqlite3_total_changes64(db->handle);
}

static bool db_shared(const struct hfd_db *db)
{
    hfd_sqlite_check_owner(db);
    return false;
}

static enum hfd_db_fate db_fate(const struct hfd_db *db)
{
    return db->broken ? HFD_DB_LOST : HFD_DB_GOES_ON;
}

static hfd_rc db_cause(const struct hfd_db *db, struct hfd_err *err)
{
    return db->broken ? hfd_sqlite_fail_broken(db, err) : HFD_OK;
}

static hfd_rc db_reopen(struct hfd_db *db, struct hfd_err *err)
{
    return db_cause(db, err);
}

/* An answer is never lost here: a commit that fails breaks the connection. */
static hfd_rc db_was_committed(struct hfd_db *db, bool *out, struct hfd_err *err)
{
    *out = false;
    return db_cause(db, err);
}

/* The folder's lock keeps other programs out. */
static hfd_rc db_schema_lock(struct hfd_db *db, struct hfd_err *err)
{
    return db_cause(db, err);
}

static hfd_rc db_schema_unlock(struct hfd_db *db, bool whole, struct hfd_err *err)
{
    (void)whole;
    (void)err;
    hfd_sqlite_check_owner(db);
    return HFD_OK;
}

static hfd_rc db_cleanup(struct hfd_db *db, struct hfd_err *err)
{
    int sqlite;

    hfd_sqlite_check_owner(db);
    HFD_ASSERT(db->mode == HFD_DB_WRITER && !db->in_txn);
    if (db->broken)
        return hfd_sqlite_fail_broken(db, err);
    if (db->log_frames < seams.checkpoint_frames)
        return HFD_OK;
    db->log_frames =
        0; /* until the next commit that writes: what could not be done now is tried again then */
    sqlite = sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    if (sqlite == SQLITE_OK || !hfd_sqlite_is_fatal(sqlite))
        return HFD_OK;
    return hfd_sqlite_fail(db, sqlite, "checkpoint", err);
}

static hfd_rc db_exec(struct hfd_db *db, const char *sql, struct hfd_err *err)
{
    char *text;
    int sqlite;

    hfd_sqlite_check_owner(db);
    if (db->broken)
        return hfd_sqlite_fail_broken(db, err);
    text = hfd_sqlite_text(sql);
    if (text == NULL)
        return hfd_fail(err, HFD_NOMEM, "store: out of memory for a statement");
    sqlite = sqlite3_exec(db->handle, text, NULL, NULL, NULL);
    free(text);
    return sqlite == SQLITE_OK ? HFD_OK : hfd_sqlite_fail(db, sqlite, sql, err);
}

/* ---- opening ---- */

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

/*
 * SQLite's own words for what the system answered: path, errno, place. Constraint and schema notes
 * would be noise.
 */
static void on_sqlite_log(void *ctx, int code, const char *text)
{
    enum hfd_log_level level = (code & 0xff) == SQLITE_NOTICE ? HFD_LOG_INFO : HFD_LOG_WARN;

    (void)ctx;
    if (level == HFD_LOG_INFO || hfd_sqlite_is_fatal(code))
        HFD_LOG(level, "sqlite", HFD_LOG_INT("code", code), HFD_LOG_CSTR("text", text));
}

/* Settings of SQLite for the whole process, before the first connection; logging. */
static void configure_sqlite(void)
{
    /*
     * Another user of SQLite in the process may have started it before us: then its settings stand;
     * only speed and log lines are lost.
     */
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* saves a lock around each allocation */
    (void)sqlite3_config(SQLITE_CONFIG_LOG, on_sqlite_log, NULL);
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
        return hfd_sqlite_fail(db, sqlite, "open", err);
    (void)sqlite3_extended_result_codes(db->handle, 1);
    (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1,
                            NULL); /* close does it, unless broken */
    sqlite = hfd_sqlite_fold(db->handle);
    if (sqlite == SQLITE_OK)
        sqlite = hfd_sqlite_like(db);
    return sqlite == SQLITE_OK ? HFD_OK : hfd_sqlite_fail(db, sqlite, "open", err);
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
        rc = hfd_fail(&why, HFD_CONFLICT, "in use by another program, for example a database tool");
    if (rc == HFD_OK)
        rc = pragmas_apply(db, &seams.levels, &why);
    if (rc == HFD_OK)
        return HFD_OK;
    said =
        why.msg + (strncmp(why.msg, subject, sizeof(subject) - 1) == 0 ? sizeof(subject) - 1 : 0);
    return hfd_fail(err, rc, "store %.100s/%s: %s%s", dir, HFD_FOLDER_DB_NAME, said,
                    rc == HFD_CORRUPT ? "; restore it from a backup" : "");
}

/* Refuses a log from which SQLite would drop commits that were answered. */
static hfd_rc check_log(const struct hfd_db *db, const char *dir, bool *anew, struct hfd_err *err)
{
    enum hfd_wal_verdict verdict;
    struct hfd_wal_scan scan;
    hfd_rc rc = hfd_wal_check(db->folder.dir_fd, &scan, &verdict, err);

    *anew = verdict != HFD_WAL_WHOLE;
    if (rc != HFD_OK || verdict == HFD_WAL_WHOLE || verdict == HFD_WAL_VOID)
        return rc;
    if (verdict == HFD_WAL_DAMAGED)
        return hfd_fail(err, HFD_CORRUPT,
                        "store %.80s/%s-wal: damaged at frame %lld of %lld, with %lld commits "
                        "behind it that would be lost. Restore a backup, or move this file away "
                        "to give up what it holds",
                        dir, HFD_FOLDER_DB_NAME, (long long)scan.broken_at + 1,
                        (long long)scan.frames, (long long)scan.commits_behind);
    HFD_LOG(HFD_LOG_WARN,
            "the last commit of the write-ahead log is not whole and is dropped; it "
            "was never answered if the power was cut",
            HFD_LOG_CSTR("dir", dir), HFD_LOG_INT("frame", scan.broken_at + 1),
            HFD_LOG_INT("frames", scan.frames));
    return HFD_OK;
}

/*
 * Begins the log anew. Frames of a commit that was dropped would otherwise stay behind new ones,
 * and look like damage at a later start. Under a header that was written in part, SQLite would even
 * use the salts of the frames again.
 */
static hfd_rc begin_log_anew(struct hfd_db *db, struct hfd_err *err)
{
    const int sqlite =
        sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);

    return sqlite == SQLITE_OK ? HFD_OK : hfd_sqlite_fail(db, sqlite, "checkpoint", err);
}

static hfd_rc open_writer(struct hfd_db *db, const char *dir, struct hfd_err *err)
{
    hfd_rc rc = hfd_folder_open(dir, &db->folder, err);
    bool anew = false;

    if (rc == HFD_OK)
        rc = check_log(db, dir, &anew, err);
    if (rc == HFD_OK)
        rc = open_database(db, dir, err);
    if (rc == HFD_OK && anew)
        rc = begin_log_anew(db, err);
    if (rc != HFD_OK)
        return rc;
    (void)sqlite3_wal_hook(db->handle, on_log_written, db);
    return hfd_folder_sync(
        &db->folder, err); /* the database, and that the journal of its first change is gone */
}

static void db_close(struct hfd_db **dbp)
{
    struct hfd_db *db = *dbp;
    int sqlite;

    *dbp = NULL;
    if (db == NULL)
        return;
    hfd_sqlite_check_owner(db);
    hfd_sqlite_finalize_all(db);
    if (db->mode == HFD_DB_WRITER &&
        !db->broken) /* a failure leaves the log, which the next start reads */
        (void)sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    sqlite = sqlite3_close(db->handle);
    HFD_ASSERT(sqlite == SQLITE_OK); /* BUSY: a statement is left over */
    hfd_folder_close(&db->folder);
    db->magic = 0;
    free(db);
}

static hfd_rc db_open(const struct hfd_store_place *place, enum hfd_db_mode mode,
                      struct hfd_db **out, struct hfd_err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct hfd_db *db = calloc(1, sizeof(*db));
    hfd_rc rc;

    *out = NULL;
    if (db == NULL)
        return hfd_fail(err, HFD_NOMEM, "store: out of memory");
    (void)pthread_once(&once, configure_sqlite);
    db->engine = &hfd_engine_sqlite;
    db->magic = DB_MAGIC;
    db->mode = mode;
    db->owner = pthread_self();
    db->folder = (struct hfd_folder){.dir_fd = -1, .lock_fd = -1};
    if (mode == HFD_DB_WRITER) {
        rc = open_writer(db, place->dir, err);
    } else {
        rc = open_handle(db, place->dir, err);
        if (rc == HFD_OK)
            rc = pragmas_apply(db, &seams.levels, err);
    }
    if (rc == HFD_OK)
        rc = prepare_control(db, err);
    if (rc == HFD_OK) {
        *out = db;
    } else {
        db->broken = true; /* nothing more is done with it but closing */
        db_close(&db);
    }
    return rc;
}

static void db_adopt(struct hfd_db *db)
{
    HFD_CHECK_OBJ(db, DB_MAGIC);
    db->owner = pthread_self();
}

static bool db_broken(const struct hfd_db *db)
{
    return db->broken;
}

static hfd_rc db_check(struct hfd_db *db, struct hfd_err *err)
{
    char text[128] = "";
    hfd_rc rc;

    hfd_sqlite_check_owner(db);
    rc = db->broken ? hfd_sqlite_fail_broken(db, err)
                    : pragma_text(db, "integrity_check(1)", text, sizeof(text), err);
    if (rc != HFD_OK || strcmp(text, "ok") == 0)
        return rc;
    for (char *c = text; *c != '\0'; c++)
        if (*c == '\n')
            *c = ' ';
    return hfd_fail(err, HFD_CORRUPT,
                    "store: the database is damaged: %s; restore it from a backup", text);
}

static hfd_rc db_schema_version(struct hfd_db *db, int64_t *out, struct hfd_err *err)
{
    hfd_sqlite_check_owner(db);
    *out = 0;
    return db->broken ? hfd_sqlite_fail_broken(db, err) : pragma_i64(db, "user_version", out, err);
}

static hfd_rc db_set_schema_version(struct hfd_db *db, int64_t version, struct hfd_err *err)
{
    char sql[96];

    /* Both stand in the header page, and so are part of the transaction. */
    (void)snprintf(sql, sizeof(sql), "PRAGMA user_version=%lld; PRAGMA application_id=%d",
                   (long long)version, APPLICATION_ID);
    return db_exec(db, sql, err);
}

/* ---- the schema as the migrations make it ---- */

/*
 * Objects in one order. Triggers and views are first, as they explain the others. ANALYZE makes the
 * statistics, for which a user may have asked.
 */
/* clang-format off */
static const char sql_objects[] =
    "SELECT CASE WHEN type IN ('trigger', 'view') THEN 0 WHEN sql IS NULL THEN 2 ELSE 1 END AS rank,"
    " type, name, tbl_name, COALESCE(sql, '') FROM sqlite_schema"
    " WHERE NOT (type = 'table' AND name GLOB 'sqlite_stat[1-4]' AND sql GLOB 'CREATE TABLE sqlite_stat*')"
    " ORDER BY rank, name, type";
/* clang-format on */
enum {
    AT_RANK,
    AT_TYPE,
    AT_NAME,
    AT_TABLE,
    AT_SQL
};

/* A database whose objects are read. */
struct side {
    sqlite3 *handle;
    sqlite3_stmt *objects;
    bool there; /* an object to look at */
};

static const char *text_at(const struct side *s, int column)
{
    const unsigned char *text = sqlite3_column_text(s->objects, column);

    return text != NULL ? (const char *)text : "";
}

static int next_object(struct side *s)
{
    const int sqlite = sqlite3_step(s->objects);

    s->there = sqlite == SQLITE_ROW;
    return s->there || sqlite == SQLITE_DONE ? SQLITE_OK : sqlite;
}

/* A walk through SQL: no comments, and spaces only between words. */
struct walk {
    const char *at;
    const char *word; /* where the last word or sign began */
    char last, quote; /* quote: the end of the quoted text that is being read; 0 = none */
};

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static const char *skip_space(const char *at)
{
    for (;;) {
        if (*at != '\0' && strchr(" \t\n\f\r", *at) != NULL)
            at++;
        else if (at[0] == '-' && at[1] == '-')
            at += strcspn(at, "\n");
        else if (at[0] == '/' && at[1] == '*')
            at = strstr(at + 2, "*/") != NULL ? strstr(at + 2, "*/") + 2 : at + strlen(at);
        else
            return at;
    }
}

/* Returns the next character; 0 at the end. */
static char next_char(struct walk *w)
{
    const char *next = w->quote != '\0' ? w->at : skip_space(w->at);
    char c = *next;

    if (w->quote == '\0' && next != w->at && is_word(w->last) && is_word(c)) {
        w->at = w->word = next;
        return w->last = ' ';
    }
    if (c == '\0')
        return c;
    if (w->quote == '\0' && !(is_word(w->last) && is_word(c)))
        w->word = next;
    if (c == w->quote)
        w->quote = '\0';
    else if (w->quote == '\0' && strchr("'\"`[", c) != NULL)
        w->quote = (char)(c == '[' ? ']' : c);
    w->at = next + 1;
    return w->last = c;
}

/* Compares two texts of SQL. They end up where they differ. */
static bool say_the_same(const char **own, const char **made)
{
    struct walk a = {.at = *own, .word = *own}, b = {.at = *made, .word = *made};
    char x, y;

    do {
        x = next_char(&a);
        y = next_char(&b);
    } while (x == y && x != '\0');
    *own = a.word;
    *made = b.word;
    return x == y;
}

static bool is_same(const struct side *own, const struct side *made)
{
    const char *a = text_at(own, AT_SQL), *b = text_at(made, AT_SQL);

    return strcmp(text_at(own, AT_TABLE), text_at(made, AT_TABLE)) == 0 && say_the_same(&a, &b);
}

/* Makes the schema in memory. @param meta  a move made hfd_meta before the first migration */
static int make_schema(struct side *s, const struct hfd_schema_check *check, bool meta)
{
    int sqlite = sqlite3_open_v2(":memory:", &s->handle,
                                 SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
                                     SQLITE_OPEN_MEMORY,
                                 NULL);

    if (sqlite == SQLITE_OK) /* it is rolled back when it is closed */
        sqlite = sqlite3_exec(s->handle, "PRAGMA journal_mode=OFF; BEGIN", NULL, NULL, NULL);
    if (sqlite == SQLITE_OK && meta)
        sqlite = sqlite3_exec(s->handle,
                              "CREATE TABLE hfd_meta (key TEXT NOT NULL PRIMARY KEY,"
                              " value TEXT NOT NULL)",
                              NULL, NULL, NULL);
    for (size_t i = 0; sqlite == SQLITE_OK && i < check->count; i++) {
        char *sql = hfd_sqlite_text(check->list[i].sql);

        sqlite = sql != NULL ? sqlite3_exec(s->handle, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
        free(sql);
    }
    return sqlite;
}

/* How much of a text fits into a message: a part of its line. */
static int shown(const char *text)
{
    const size_t line = strcspn(text, "\n");

    return (int)(line < SQL_SHOWN ? line : SQL_SHOWN);
}

/* Says what object differs. @param own, made  NULL = it has no such object */
static hfd_rc refuse(const struct side *own, const struct side *made, struct hfd_err *err)
{
    const struct side *s = own != NULL ? own : made;
    const char *type = text_at(s, AT_TYPE), *name = text_at(s, AT_NAME);
    const char *table = text_at(s, AT_TABLE);
    const bool of = strcmp(name, table) != 0;
    const char *a, *b;

    if (made == NULL)
        return hfd_fail(err, HFD_INVALID,
                        "store: %.10s %.60s%s%.40s is not of hyperfleet-driver. Drop it with a "
                        "tool of SQLite, or use a backup without it",
                        type, name, of ? " of table " : "", of ? table : "");
    if (own == NULL)
        return hfd_fail(err, HFD_INVALID, "store: %.10s %.60s is missing. Use another backup", type,
                        name);
    a = text_at(own, AT_SQL);
    b = text_at(made, AT_SQL);
    (void)say_the_same(&a, &b);
    return hfd_fail(err, HFD_INVALID,
                    "store: %.10s %.50s is not as hyperfleet-driver makes it: it has \"%.*s\", "
                    "expected \"%.*s\". Use another backup",
                    type, name, shown(a), a, shown(b), b);
}

/* Compares places in the order of the lists: below 0, `made` lacks the object of `own`. */
static int compare_places(const struct side *own, const struct side *made)
{
    int order;

    if (!own->there || !made->there)
        return own->there ? -1 : 1;
    order = sqlite3_column_int(own->objects, AT_RANK) - sqlite3_column_int(made->objects, AT_RANK);
    if (order == 0)
        order = strcmp(text_at(own, AT_NAME), text_at(made, AT_NAME));
    return order != 0 ? order : strcmp(text_at(own, AT_TYPE), text_at(made, AT_TYPE));
}

/* Walks through both lists. @return HFD_OK, HFD_INVALID; *sqlite tells a failure to read */
static hfd_rc compare(struct side *own, struct side *made, bool newer, int *sqlite,
                      struct hfd_err *err)
{
    while (*sqlite == SQLITE_OK && (own->there || made->there)) {
        const int order = compare_places(own, made);

        if ((!newer || (order < 0 && sqlite3_column_int(own->objects, AT_RANK) == 0)) &&
            (order != 0 || !is_same(own, made)))
            return refuse(order <= 0 ? own : NULL, order >= 0 ? made : NULL, err);
        if (order <= 0)
            *sqlite = next_object(own);
        if (*sqlite == SQLITE_OK && order >= 0)
            *sqlite = next_object(made);
    }
    return HFD_OK;
}

static hfd_rc db_check_schema(struct hfd_db *db, const struct hfd_schema_check *check,
                              struct hfd_err *err)
{
    struct side own = {.handle = db->handle}, made = {.handle = NULL};
    hfd_rc rc = HFD_OK;
    int sqlite;

    hfd_sqlite_check_owner(db);
    if (db->broken)
        return hfd_sqlite_fail_broken(db, err);
    sqlite = make_schema(&made, check,
                         sqlite3_table_column_metadata(db->handle, NULL, "hfd_meta", NULL, NULL,
                                                       NULL, NULL, NULL, NULL) == SQLITE_OK);
    if (sqlite == SQLITE_OK)
        sqlite = sqlite3_prepare_v2(own.handle, sql_objects, -1, &own.objects, NULL);
    if (sqlite == SQLITE_OK)
        sqlite = sqlite3_prepare_v2(made.handle, sql_objects, -1, &made.objects, NULL);
    if (sqlite == SQLITE_OK)
        sqlite = next_object(&own);
    if (sqlite == SQLITE_OK)
        sqlite = next_object(&made);
    if (sqlite == SQLITE_OK)
        rc = compare(&own, &made, check->newer, &sqlite, err);
    (void)sqlite3_finalize(own.objects);
    (void)sqlite3_finalize(made.objects);
    (void)sqlite3_close(made.handle);
    return sqlite == SQLITE_OK ? rc : hfd_sqlite_fail(db, sqlite, "compare the schema", err);
}

/* ---- copy ---- */

/* The copy of a database: SQLite's backup, in steps, from a reader's snapshot. See db.h. */

struct hfd_db_copy {
    const struct hfd_engine *engine; /* the first member */
    struct hfd_db *from;             /* in its transaction */
    sqlite3 *to;
    sqlite3_backup *pages; /* NULL once all are copied */
};

#define PAGES_A_STEP 512 /* 2 MiB: a reader thread is not held for longer */

/* A failure of the new file does not break the connection that is read. */
static hfd_rc fail_copy(const struct hfd_db_copy *c, int sqlite, struct hfd_err *err)
{
    const int of_disk = c->to != NULL ? sqlite3_system_errno(c->to) : 0;

    if (sqlite == SQLITE_FULL)
        return hfd_fail(err, HFD_LIMIT, "the disk became full while the database was copied");
    if (sqlite == SQLITE_NOMEM)
        return hfd_fail_nomem(err, "copy the database");
    return hfd_fail(err, HFD_IO, "store: copy the database: %s (%d, errno %d)",
                    sqlite3_errstr(sqlite), sqlite, of_disk);
}

static void db_copy_close(struct hfd_db_copy **cp)
{
    struct hfd_db_copy *c = *cp;
    int sqlite;

    *cp = NULL;
    if (c->pages != NULL)
        (void)sqlite3_backup_finish(c->pages); /* its failure was answered by the step */
    sqlite = sqlite3_close(c->to);
    HFD_ASSERT(sqlite == SQLITE_OK);
    free(c);
}

static hfd_rc db_copy_open(struct hfd_db *from, const char *path, struct hfd_db_copy **out,
                           struct hfd_err *err)
{
    struct hfd_db_copy *c = calloc(1, sizeof(*c));
    int sqlite;
    hfd_rc rc;

    hfd_sqlite_check_owner(from);
    HFD_ASSERT(from->in_txn);
    *out = NULL;
    if (c == NULL)
        return hfd_fail_nomem(err, "copy the database");
    c->engine = from->engine;
    c->from = from;
    sqlite = sqlite3_open_v2(path, &c->to, SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE, seams.vfs);
    /* It is a draft: it needs no journal, and is worth nothing after a power cut. */
    if (sqlite == SQLITE_OK)
        sqlite = sqlite3_exec(c->to, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF", NULL, NULL,
                              NULL);
    if (sqlite == SQLITE_OK) {
        c->pages = sqlite3_backup_init(c->to, "main", from->handle, "main");
        sqlite = c->pages != NULL ? SQLITE_OK : sqlite3_errcode(c->to);
    }
    if (sqlite == SQLITE_OK) {
        *out = c;
        return HFD_OK;
    }
    rc = fail_copy(c, sqlite, err);
    db_copy_close(&c);
    return rc;
}

static hfd_rc db_copy_step(struct hfd_db_copy *c, bool *done, struct hfd_err *err)
{
    int sqlite;

    hfd_sqlite_check_owner(c->from);
    sqlite = sqlite3_backup_step(c->pages, PAGES_A_STEP);
    *done = sqlite == SQLITE_DONE;
    if (sqlite == SQLITE_OK)
        return HFD_OK;
    if (*done) {
        sqlite = sqlite3_backup_finish(c->pages);
        c->pages = NULL;
    }
    return sqlite == SQLITE_OK ? HFD_OK : fail_copy(c, sqlite, err);
}

static hfd_rc db_bytes(struct hfd_db *db, int64_t *out, struct hfd_err *err)
{
    int64_t pages = 0, page_bytes = 0;
    hfd_rc rc = pragma_i64(db, "page_count", &pages, err);

    if (rc == HFD_OK)
        rc = pragma_i64(db, "page_size", &page_bytes, err);
    *out = pages * page_bytes;
    return rc;
}

const struct hfd_engine hfd_engine_sqlite = {
    .open = db_open,
    .close = db_close,
    .adopt = db_adopt,
    .broken = db_broken,
    .cause = db_cause,
    .watch = db_watch,
    .begin = db_begin,
    .commit = db_commit,
    .rollback = db_rollback,
    .changes = db_changes,
    .shared = db_shared,
    .fate = db_fate,
    .reopen = db_reopen,
    .was_committed = db_was_committed,
    .cleanup = db_cleanup,
    .exec = db_exec,
    .check = db_check,
    .bytes = db_bytes,
    .copy_open = db_copy_open,
    .copy_step = db_copy_step,
    .copy_close = db_copy_close,
    .schema_lock = db_schema_lock,
    .schema_unlock = db_schema_unlock,
    .schema_version = db_schema_version,
    .set_schema_version = db_set_schema_version,
    .check_schema = db_check_schema,
    .statements = &hfd_sqlite_statements,
    .dialect = &hfd_sqlite_dialect,
};
