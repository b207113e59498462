/*
 * db.h on either engine, and the migrations: what a connection promises, refuses and answers. Cases
 * about files, or about SQLite's own faults, are skipped on PostgreSQL.
 */
#include "store/db.h"

#include "driver/base/log.h"
#include "store/migrate.h"
#include "store/sqlite/db_sqlite_int.h"
#include "store/store.h"
#include "tests/lib/place.h"
#include "tests/lib/faultvfs.h"
#include "tests/lib/tmpdir.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char sql_make[] =
    "CREATE TABLE t (k TEXT NOT NULL PRIMARY KEY, v BIGINT, b BLOB, w TEXT, CHECK (v < 1000))";
/* On PostgreSQL the first migration makes the type; SQLite takes it for no statement. */
static const char sql_type[] = "/*postgres: CREATE DOMAIN blob AS bytea*/";
static const char sql_insert[] = "INSERT INTO t (k, v, b, w) VALUES (?1, ?2, ?3, ?4)";
static const char sql_select[] = "SELECT k, v, b, w FROM t WHERE k = ?1";
static const char sql_first[] = "SELECT v FROM t WHERE k = 'first'";
static const char sql_raise[] = "UPDATE t SET v = v + 1 WHERE k = ?1";
static const char sql_count[] = "SELECT count(*) FROM t";
static const char sql_delete[] = "DELETE FROM t WHERE v >= ?1";

#define ON_SQLITE()                                                                                \
    do                                                                                             \
        if (test_on_postgres())                                                                    \
            skip();                                                                                \
    while (false)

struct fixture {
    char base[TMPDIR_MAX];
    char dir[TMPDIR_MAX + 8];
    struct hfd_db *db;
    struct hfd_arena mem;
};

static void open_writer(struct fixture *fx)
{
    struct hfd_err err;

    if (test_db_open(fx->dir, HFD_DB_WRITER, &fx->db, &err) != HFD_OK)
        fail_msg("%s", err.msg);
}

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof(*fx));

    assert_non_null(fx);
    tmpdir_make(fx->base);
    (void)snprintf(fx->dir, sizeof(fx->dir), "%s/data", fx->base);
    open_writer(fx);
    assert_int_equal(hfd_db_exec(fx->db, sql_type, NULL), HFD_OK);
    assert_int_equal(hfd_db_exec(fx->db, sql_make, NULL), HFD_OK);
    assert_int_equal(hfd_db_set_schema_version(fx->db, 0, NULL), HFD_OK); /* marks it as ours */
    hfd_arena_init(&fx->mem, 1 << 20);
    *state = fx;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;

    hfd_db_set_vfs(NULL);
    hfd_db_set_synchronous("FULL");
    hfd_arena_fini(&fx->mem);
    hfd_db_close(&fx->db);
    tmpdir_remove(fx->base);
    free(fx);
    return 0;
}

static hfd_rc insert(struct hfd_db *db, const char *k, int64_t v, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(db, sql_insert, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_slice_of(k));
    hfd_stmt_i64(st, 2, v);
    hfd_stmt_null(st, 3);
    hfd_stmt_text(st, 4, HFD_SLICE_NONE);
    return hfd_stmt_run(st, NULL, err);
}

static int64_t number(struct hfd_db *db, const char *sql)
{
    struct hfd_stmt *st;
    int64_t n = -1;
    bool row;

    assert_int_equal(hfd_db_prepare(db, sql, &st, NULL), HFD_OK);
    assert_int_equal(hfd_stmt_step(st, &row, NULL), HFD_OK);
    assert_true(row);
    n = hfd_stmt_col_i64(st, 0);
    hfd_stmt_done(st);
    return n;
}

static int64_t count(struct hfd_db *db)
{
    return number(db, sql_count);
}

/*
 * Values come back as they went in: every length, NUL bytes, the ends of the integers, NULL and
 * empty apart.
 */
static void values_come_back(void **state)
{
    static const char bytes[] = {'a', 0, '\xff', 'b'};
    static const struct {
        hfd_slice text, blob;
        int64_t v;
    } rows[] = {
        {{"", 0}, {"", 0}, 0},
        {{bytes, 4}, {bytes, 4}, INT64_MIN},
        {{NULL, 0}, {NULL, 0}, -1},
        {HFD_SLICE("h\xc3\xa9"), {bytes, 1}, 999},
    };
    struct fixture *fx = *state;
    struct hfd_stmt *st;
    bool row;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const bool binary =
            memchr(rows[i].text.p != NULL ? rows[i].text.p : "", 0, rows[i].text.len) != NULL;
        char key[2] = {(char)('a' + i), '\0'};
        hfd_slice got;

        assert_int_equal(hfd_db_prepare(fx->db, sql_insert, &st, NULL), HFD_OK);
        hfd_stmt_text(st, 1, hfd_slice_of(key));
        hfd_stmt_i64(st, 2, rows[i].v);
        hfd_stmt_blob(st, 3, rows[i].blob);
        hfd_stmt_text(st, 4, rows[i].text);
        if (binary && test_on_postgres()) { /* which stores text alone, and refuses the rest */
            assert_int_equal(hfd_stmt_run(st, NULL, NULL), HFD_INVALID);
            continue;
        }
        assert_int_equal(hfd_stmt_run(st, NULL, NULL), HFD_OK);
        assert_int_equal(hfd_db_prepare(fx->db, sql_select, &st, NULL), HFD_OK);
        hfd_stmt_text(st, 1, hfd_slice_of(key));
        assert_int_equal(hfd_stmt_step(st, &row, NULL), HFD_OK);
        assert_true(row);
        assert_true(hfd_stmt_col_i64(st, 1) == rows[i].v);
        got = hfd_stmt_col_text(st, 2, &fx->mem);
        assert_true(hfd_slice_eq(got, rows[i].blob) && (got.p == NULL) == (rows[i].blob.p == NULL));
        got = hfd_stmt_col_text(st, 3, &fx->mem);
        assert_true(hfd_slice_eq(got, rows[i].text) && (got.p == NULL) == (rows[i].text.p == NULL));
        assert_int_equal(hfd_stmt_col_is_null(st, 3), rows[i].text.p == NULL);
        assert_int_equal(hfd_stmt_step(st, &row, NULL), HFD_OK);
        assert_false(row);
        hfd_stmt_done(st);
    }
}

/* Bindings of the last use do not leak into the next. */
static void statement_starts_without_bindings(void **state)
{
    struct fixture *fx = *state;
    struct hfd_stmt *st;
    struct hfd_err err;
    int64_t changed = 9;

    assert_int_equal(insert(fx->db, "a", 1, NULL), HFD_OK);
    assert_int_equal(hfd_db_prepare(fx->db, sql_delete, &st, NULL), HFD_OK);
    hfd_stmt_i64(st, 1, 1);
    hfd_stmt_done(st);
    assert_int_equal(hfd_db_prepare(fx->db, sql_delete, &st, NULL), HFD_OK);
    assert_int_equal(hfd_stmt_run(st, &changed, &err), HFD_OK); /* v >= NULL is never so */
    assert_int_equal(changed, 0);
    assert_int_equal(hfd_db_prepare(fx->db, sql_delete, &st, NULL), HFD_OK);
    hfd_stmt_i64(st, 1, 1);
    assert_int_equal(hfd_stmt_run(st, &changed, &err), HFD_OK);
    assert_int_equal(changed, 1);
}

/*
 * A taken key and a refused check are a conflict; a missing value is damage. None breaks the
 * connection or tells the data.
 */
static void constraints_are_answered(void **state)
{
    struct fixture *fx = *state;
    struct hfd_err err;

    assert_int_equal(insert(fx->db, "secret", 1, &err), HFD_OK);
    assert_int_equal(insert(fx->db, "secret", 2, &err), HFD_CONFLICT);
    if (test_on_postgres())
        assert_string_equal(err.msg, "store: INSERT INTO t: duplicate key value violates unique "
                                     "constraint \"t_pkey\" (23505)");
    else
        assert_string_equal(err.msg,
                            "store: INSERT INTO t: SQLITE_CONSTRAINT (1555, constraint failed)");
    assert_int_equal(insert(fx->db, "b", 1000, &err), HFD_CONFLICT);
    assert_int_equal(insert(fx->db, NULL, 1, &err), HFD_CORRUPT);
    assert_int_equal(hfd_db_exec(fx->db, "SELECT * FROM absent", &err), HFD_CORRUPT);
    assert_false(hfd_db_broken(fx->db));
    assert_int_equal(count(fx->db), 1);
}

/* Inserts a row, and raises another one by a statement that no group had before. */
static hfd_rc group_of_two(struct hfd_db *db, const char *k, int64_t v)
{
    struct hfd_stmt *st;
    hfd_rc rc;

    assert_int_equal(hfd_db_begin_group(db, NULL), HFD_OK);
    rc = insert(db, k, v, NULL);
    if (rc == HFD_OK) {
        assert_int_equal(hfd_db_prepare(db, sql_raise, &st, NULL), HFD_OK);
        hfd_stmt_text(st, 1, HFD_SLICE("first"));
        rc = hfd_stmt_run(st, NULL, NULL);
    }
    if (rc == HFD_OK)
        rc = hfd_db_commit(db, NULL);
    if (rc != HFD_OK)
        hfd_db_rollback(db);
    return rc;
}

/* PostgreSQL skips a statement behind a refused write of a group: it is not prepared. */
static void groups_go_on_after_a_refusal(void **state)
{
    struct fixture *fx = *state;

    assert_int_equal(insert(fx->db, "first", 1, NULL), HFD_OK);
    assert_int_not_equal(group_of_two(fx->db, "first", 1), HFD_OK);
    assert_int_equal(group_of_two(fx->db, "second", 1), HFD_OK);
    assert_int_equal(group_of_two(fx->db, "third", 1), HFD_OK);
    assert_int_equal(group_of_two(fx->db, "fourth", 1), HFD_OK);
    assert_false(hfd_db_broken(fx->db));
    assert_int_equal(count(fx->db), 4);
    assert_int_equal(number(fx->db, sql_first), 4);
}

/* Row n of group g: columns that a bit of g names have one value, others are of the row. */
struct group_row {
    char k[16], w[16];
    int64_t v;
    hfd_slice b;
};

static struct group_row row_of(unsigned g, unsigned n)
{
    static const char bytes[] = "\0\1\2\3\4\5\6\7\10\11";
    struct group_row row = {.v = (g & 1) != 0 ? 7 : n, .b = {bytes, (g & 2) != 0 ? 3 : n}};

    (void)snprintf(row.k, sizeof(row.k), "%u-%u", g, n);
    (void)snprintf(row.w, sizeof(row.w), "w%u", (g & 4) != 0 ? 1 : n);
    return row;
}

/* NULL in all rows, or in none. */
static hfd_slice w_of(const struct group_row *row, unsigned g)
{
    return (g & 8) != 0 ? HFD_SLICE_NONE : hfd_slice_of(row->w);
}

static void insert_group(struct hfd_db *db, unsigned g, unsigned count)
{
    struct hfd_stmt *st;

    assert_int_equal(hfd_db_begin_group(db, NULL), HFD_OK);
    for (unsigned n = 0; n < count; n++) {
        const struct group_row row = row_of(g, n);

        assert_int_equal(hfd_db_prepare(db, sql_insert, &st, NULL), HFD_OK);
        hfd_stmt_text(st, 1, hfd_slice_of(row.k));
        hfd_stmt_i64(st, 2, row.v);
        hfd_stmt_blob(st, 3, row.b);
        hfd_stmt_text(st, 4, w_of(&row, g));
        assert_int_equal(hfd_stmt_run(st, NULL, NULL), HFD_OK);
    }
    assert_int_equal(hfd_db_commit(db, NULL), HFD_OK);
}

static void assert_group(struct fixture *fx, unsigned g, unsigned count)
{
    struct hfd_stmt *st;
    bool found;

    for (unsigned n = 0; n < count; n++) {
        const struct group_row row = row_of(g, n);

        assert_int_equal(hfd_db_prepare(fx->db, sql_select, &st, NULL), HFD_OK);
        hfd_stmt_text(st, 1, hfd_slice_of(row.k));
        assert_int_equal(hfd_stmt_step(st, &found, NULL), HFD_OK);
        assert_true(found);
        assert_int_equal(hfd_stmt_col_i64(st, 1), row.v);
        assert_true(hfd_slice_eq(hfd_stmt_col_text(st, 2, &fx->mem), row.b));
        assert_int_equal(hfd_stmt_col_is_null(st, 3), (g & 8) != 0);
        assert_true(hfd_slice_eq(hfd_stmt_col_text(st, 3, &fx->mem), w_of(&row, g)));
        hfd_stmt_done(st);
    }
}

/* Rows of a group come back as they went in, whichever of their columns are the same. */
static void rows_of_groups_come_back(void **state)
{
    struct fixture *fx = *state;

    for (int count = 9; count >= 1; count -= 4)
        for (unsigned g = 0; g < 16; g++) {
            insert_group(fx->db, g, (unsigned)count);
            assert_group(fx, g, (unsigned)count);
            assert_int_equal(hfd_db_exec(fx->db, "DELETE FROM t", NULL), HFD_OK);
        }
}

/* A failure while a column is read is reported by the next step. */
static void column_failures_stick(void **state)
{
    struct fixture *fx = *state;
    struct hfd_arena tiny;
    struct hfd_stmt *st;
    struct hfd_err err;
    bool row;

    assert_int_equal(insert(fx->db, "a-long-enough-key", 1, NULL), HFD_OK);
    hfd_arena_init(&tiny, 4);
    for (int i = 0; i < 3; i++) {
        static const hfd_rc expected[] = {HFD_NOMEM, HFD_CORRUPT, HFD_CORRUPT};

        assert_int_equal(hfd_db_prepare(fx->db, sql_select, &st, NULL), HFD_OK);
        hfd_stmt_text(st, 1, HFD_SLICE("a-long-enough-key"));
        assert_int_equal(hfd_stmt_step(st, &row, NULL), HFD_OK);
        if (i == 0)
            assert_null(hfd_stmt_col_text(st, 0, &tiny).p);
        else if (i == 1)
            (void)hfd_stmt_col_i64(st, 0); /* text */
        else
            assert_null(hfd_stmt_col_text(st, 1, &fx->mem).p); /* an integer */
        assert_int_equal(hfd_stmt_step(st, &row, &err), expected[i]);
        assert_int_equal(err.rc, expected[i]);
        assert_false(row);
        hfd_stmt_done(st);
    }
    hfd_arena_fini(&tiny);
    assert_false(hfd_db_broken(fx->db));
}

/* Many statements on one connection: each is found again by its address. */
static void many_statements_are_kept_apart(void **state)
{
    enum {
        N = 300
    };
    static char texts[N][24];
    struct fixture *fx = *state;

    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < N; i++) {
            struct hfd_stmt *st;
            bool row;

            if (round == 0)
                (void)snprintf(texts[i], sizeof(texts[i]), "SELECT %zu", i);
            assert_int_equal(hfd_db_prepare(fx->db, texts[i], &st, NULL), HFD_OK);
            assert_int_equal(hfd_stmt_step(st, &row, NULL), HFD_OK);
            assert_int_equal(hfd_stmt_col_i64(st, 0), (int64_t)i);
            hfd_stmt_done(st);
        }
    }
}

/* A commit keeps all writes of its transaction; a rollback undoes all. */
static void rollback_undoes_a_transaction(void **state)
{
    struct fixture *fx = *state;

    assert_int_equal(hfd_db_begin(fx->db, NULL), HFD_OK);
    assert_int_equal(insert(fx->db, "a", 1, NULL), HFD_OK);
    assert_int_equal(hfd_db_commit(fx->db, NULL), HFD_OK);
    assert_int_equal(count(fx->db), 1);
    assert_int_equal(hfd_db_begin(fx->db, NULL), HFD_OK);
    assert_int_equal(insert(fx->db, "c", 1, NULL), HFD_OK);
    hfd_db_rollback(fx->db);
    assert_int_equal(count(fx->db), 1);
}

/* A reader cannot write, whatever it is asked. */
static void reader_cannot_write(void **state)
{
    struct fixture *fx = *state;
    struct hfd_db *reader;

    assert_int_equal(test_db_open(fx->dir, HFD_DB_READER, &reader, NULL), HFD_OK);
    assert_int_equal(hfd_db_begin(reader, NULL), HFD_OK);
    assert_int_not_equal(insert(reader, "a", 1, NULL), HFD_OK);
    hfd_db_rollback(reader);
    hfd_db_close(&reader);
    assert_int_equal(test_db_open(fx->dir, HFD_DB_READER, &reader, NULL), HFD_OK);
    assert_int_equal(insert(reader, "a", 1, NULL), test_on_postgres() ? HFD_AWAY : HFD_IO);
    hfd_db_close(&reader);
    assert_int_equal(count(fx->db), 0);
}

/* A reader needs a database that a writer has made. */
static void reader_makes_nothing(void **state)
{
    struct fixture *fx = *state;
    struct hfd_db *reader;
    char path[TMPDIR_MAX + 32];
    struct hfd_err err;

    ON_SQLITE();
    assert_int_equal(test_db_open(fx->base, HFD_DB_READER, &reader, &err), HFD_IO);
    assert_null(reader);
    (void)snprintf(path, sizeof(path), "%s/store.db", fx->base);
    assert_int_not_equal(access(path, F_OK), 0);
}

/*
 * Another program to SQLite: this one again, with --tool PATH. It says what reading answered, and
 * holds the file until let go.
 */
static int run_as_tool(const char *path)
{
    sqlite3 *other;
    unsigned char answer;
    char end;
    ssize_t got;

    if (sqlite3_open(path, &other) != SQLITE_OK)
        return 1;
    (void)sqlite3_exec(other, "BEGIN", NULL, NULL, NULL);
    answer = (unsigned char)sqlite3_exec(other, "SELECT * FROM sqlite_schema", NULL, NULL, NULL);
    if (write(STDOUT_FILENO, &answer, 1) != 1)
        return 1;
    got = read(STDIN_FILENO, &end, 1);
    return sqlite3_close(other) == SQLITE_OK && got == 0 ? 0 : 1;
}

struct tool {
    pid_t pid;
    int let_go; /* closing it ends the tool */
    unsigned char answer;
};

static void tool_start(struct tool *tool, const char *dir)
{
    char path[TMPDIR_MAX + 32];
    int in[2], out[2];

    (void)snprintf(path, sizeof(path), "%s/store.db", dir);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    tool->pid = fork();
    assert_true(tool->pid >= 0);
    if (tool->pid == 0) {
        (void)dup2(in[0], STDIN_FILENO);
        (void)dup2(out[1], STDOUT_FILENO);
        (void)execl("/proc/self/exe", "test_db", "--tool", path, (char *)NULL);
        _exit(1);
    }
    (void)close(in[0]);
    (void)close(out[1]);
    assert_int_equal(read(out[0], &tool->answer, 1), 1);
    (void)close(out[0]);
    tool->let_go = in[1];
}

static void tool_end(struct tool *tool)
{
    int status;

    (void)close(tool->let_go);
    assert_int_equal(waitpid(tool->pid, &status, 0), tool->pid);
    assert_int_equal(status, 0);
}

/*
 * While we have the database no other program gets in, not even to read, although it knows nothing
 * of our lock file.
 */
static void other_programs_stay_out(void **state)
{
    struct fixture *fx = *state;
    struct hfd_db *reader;
    struct tool tool;

    ON_SQLITE();
    assert_int_equal(test_db_open(fx->dir, HFD_DB_READER, &reader, NULL), HFD_OK);
    assert_int_equal(count(reader), 0);
    hfd_db_close(&reader); /* closing it lets no other program in */
    tool_start(&tool, fx->dir);
    assert_int_equal(tool.answer, SQLITE_BUSY);
    tool_end(&tool);
    assert_int_equal(insert(fx->db, "a", 1, NULL), HFD_OK);
}

/* While another program has the database we do not start. */
static void database_in_use_is_refused(void **state)
{
    struct fixture *fx = *state;
    struct hfd_err err;
    struct tool tool;

    ON_SQLITE();
    hfd_db_close(&fx->db);
    tool_start(&tool, fx->dir);
    assert_int_equal(tool.answer, SQLITE_OK);
    assert_int_equal(test_db_open(fx->dir, HFD_DB_WRITER, &fx->db, &err), HFD_CONFLICT);
    assert_non_null(strstr(err.msg, "another program"));
    tool_end(&tool);
    open_writer(fx);
}

/* An engine failure breaks the connection: every later call answers the first reason. */
static void broken_connection_repeats_its_reason(void **state)
{
    struct fixture *fx = *state;
    struct hfd_err first, later;
    struct hfd_stmt *st;
    int64_t version;

    ON_SQLITE();
    hfd_db_close(&fx->db);
    hfd_db_set_vfs(FAULTVFS_NAME);
    open_writer(fx);
    assert_int_equal(insert(fx->db, "a", 1, NULL), HFD_OK);
    assert_int_equal(hfd_db_begin(fx->db, NULL), HFD_OK);
    faultvfs_arm(FAULTVFS_CHANGES, 1, false, SQLITE_FULL);
    assert_int_equal(insert(fx->db, "b", 1, NULL), HFD_OK);
    assert_int_equal(hfd_db_commit(fx->db, &first), HFD_IO);
    assert_int_equal(faultvfs_disarm(), 1);
    assert_string_equal(first.msg, "store: COMMIT: SQLITE_FULL (13, database or disk is full)");
    assert_true(hfd_db_broken(fx->db));
    hfd_db_rollback(fx->db);
    assert_int_equal(hfd_db_begin(fx->db, &later), HFD_IO);
    assert_string_equal(first.msg, later.msg);
    assert_int_equal(hfd_db_prepare(fx->db, sql_count, &st, &later), HFD_IO);
    assert_null(st);
    assert_int_equal(hfd_db_exec(fx->db, sql_count, &later), HFD_IO);
    assert_int_equal(hfd_db_schema_version(fx->db, &version, &later), HFD_IO);
    assert_int_equal(hfd_db_cleanup(fx->db, &later), HFD_IO);
    assert_string_equal(first.msg, later.msg);
    hfd_db_close(&fx->db);
    open_writer(fx);
    assert_int_equal(count(fx->db), 1);
}

/* A read that fails breaks its connection too, in or out of a transaction. */
static void failed_read_breaks_the_reader(void **state)
{
    struct fixture *fx = *state;
    struct hfd_db *reader;
    struct hfd_stmt *st;
    bool row;

    ON_SQLITE();
    assert_int_equal(insert(fx->db, "a", 1, NULL), HFD_OK);
    hfd_db_set_vfs(FAULTVFS_NAME);
    assert_int_equal(test_db_open(fx->dir, HFD_DB_READER, &reader, NULL), HFD_OK);
    faultvfs_arm(FAULTVFS_READS, 1, true, 0);
    if (hfd_db_prepare(reader, sql_count, &st, NULL) == HFD_OK) {
        assert_int_equal(hfd_stmt_step(st, &row, NULL), HFD_IO);
        hfd_stmt_done(st);
    }
    assert_true(faultvfs_disarm() != 0);
    assert_true(hfd_db_broken(reader));
    hfd_db_close(&reader);
}

/* A server without memory for a session: a reader has none, and a writer tries again later. */
static void session_without_memory_is_none(void **state)
{
    static const char sql_poor[] =
        "CREATE FUNCTION set_config(text, text, boolean) RETURNS text LANGUAGE plpgsql AS $$"
        " BEGIN IF EXISTS (SELECT 1 FROM t) THEN"
        "   RAISE EXCEPTION 'of the test' USING ERRCODE = '53200'; END IF;"
        " RETURN $2; END $$";
    struct fixture *fx = *state;
    struct hfd_store_place place;
    struct hfd_db *db, *reader;
    char url[1024];

    if (!test_on_postgres())
        skip();
    place = test_place(fx->dir);
    (void)snprintf(url, sizeof(url), "%s%%2Cpg_catalog", place.url); /* behind the schema */
    place.url = url;
    assert_int_equal(hfd_db_open(&place, HFD_DB_WRITER, &db, NULL), HFD_OK);
    assert_int_equal(hfd_db_exec(fx->db, sql_poor, NULL), HFD_OK);
    assert_int_equal(insert(fx->db, "a", 1, NULL), HFD_OK);
    assert_int_equal(hfd_db_open(&place, HFD_DB_READER, &reader, NULL), HFD_NOMEM);
    assert_null(reader);
    assert_int_equal(hfd_db_reopen(db, NULL), HFD_AWAY);
    assert_true(hfd_db_broken(db));
    assert_int_equal(hfd_db_cause(db, NULL), HFD_AWAY);
    assert_int_equal(hfd_db_exec(fx->db, "DELETE FROM t", NULL), HFD_OK);
    assert_int_equal(hfd_db_reopen(db, NULL), HFD_OK);
    assert_false(hfd_db_broken(db));
    hfd_db_close(&db);
}

/* A level of synchronous that does not hold is refused, not lived with. */
static void weak_synchronous_is_refused(void **state)
{
    struct fixture *fx = *state;
    struct hfd_db *reader;
    struct hfd_err err;

    ON_SQLITE();
    hfd_db_set_synchronous("OFF"); /* reads back as something else than the seam expects */
    assert_int_equal(test_db_open(fx->dir, HFD_DB_READER, &reader, &err), HFD_IO);
    assert_string_equal(err.msg, "store: PRAGMA synchronous=OFF does not hold here: it is 0");
}

/* ---- our own mistakes abort, in every build ---- */

static void get_twice(struct fixture *fx)
{
    struct hfd_stmt *st;

    if (hfd_db_prepare(fx->db, sql_count, &st, NULL) == HFD_OK &&
        hfd_db_prepare(fx->db, sql_count, &st, NULL) == HFD_OK)
        _exit(1);
}

static void commit_with_an_open_statement(struct fixture *fx)
{
    struct hfd_stmt *st;

    if (hfd_db_begin(fx->db, NULL) == HFD_OK &&
        hfd_db_prepare(fx->db, sql_count, &st, NULL) == HFD_OK &&
        hfd_db_commit(fx->db, NULL) == HFD_OK)
        _exit(1);
}

static void *count_elsewhere(void *db)
{
    (void)count(db);
    return NULL;
}

static void use_from_another_thread(struct fixture *fx)
{
    pthread_t thread;

    (void)pthread_create(&thread, NULL, count_elsewhere, fx->db);
    (void)pthread_join(thread, NULL);
}

static void mistakes_abort(void **state)
{
    static void (*const mistakes[])(struct fixture *) = {get_twice, commit_with_an_open_statement,
                                                         use_from_another_thread};
    struct fixture *fx = *state;

    ON_SQLITE();
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        int status;
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0) {
            const struct rlimit none = {0, 0};

            (void)setrlimit(RLIMIT_CORE, &none);
            (void)signal(SIGABRT, SIG_DFL);
            (void)dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
            mistakes[i](fx);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}

/* A connection that moved to another thread works there. */
static void adopted_connection_works(void **state)
{
    struct fixture *fx = *state;

    hfd_db_adopt(fx->db);
    assert_int_equal(count(fx->db), 0);
}

/* ---- schema versions ---- */

static const struct hfd_migration steps[] = {
    {.name = "0001_a", .sql = "CREATE TABLE a (x TEXT)"},
    {.name = "0002_b", .sql = "CREATE TABLE b (x TEXT); INSERT INTO b (x) VALUES ('1');"},
    {.name = "0003_broken", .sql = "CREATE TABLE c (x TEXT); INSERT INTO absent (x) VALUES ('1');"},
};

static int64_t version_of(struct hfd_db *db)
{
    int64_t v;

    assert_int_equal(hfd_db_schema_version(db, &v, NULL), HFD_OK);
    return v;
}

/* The migrations of a test begin in an empty database. */
static void forget_table(struct fixture *fx)
{
    assert_int_equal(hfd_db_exec(fx->db, "DROP TABLE t", NULL), HFD_OK);
}

/*
 * Each missing migration is applied once. A step that fails leaves nothing of itself, and the steps
 * before it stay.
 */
static void migrations_are_whole_steps(void **state)
{
    struct fixture *fx = *state;
    struct hfd_err err;

    forget_table(fx);
    assert_int_equal(hfd_migrate(fx->db, steps, 1, NULL), HFD_OK);
    assert_int_equal(version_of(fx->db), 1);
    assert_int_equal(hfd_migrate(fx->db, steps, 3, &err), HFD_CORRUPT);
    assert_int_equal(version_of(fx->db), 2);
    assert_int_equal(hfd_db_exec(fx->db, "SELECT * FROM b", NULL), HFD_OK);
    assert_int_equal(hfd_db_exec(fx->db, "SELECT * FROM c", NULL), HFD_CORRUPT);
    hfd_db_close(&fx->db);
    open_writer(fx);
    assert_int_equal(version_of(fx->db), 2);
    assert_int_equal(hfd_migrate(fx->db, steps, 2, NULL), HFD_OK);
}

static bool fill_fails;

static hfd_rc fill_y(struct hfd_db *db, struct hfd_err *err)
{
    hfd_rc rc = hfd_db_begin(db, err);

    if (rc == HFD_OK)
        rc = hfd_db_exec(db, "UPDATE a SET x = y", err);
    if (rc == HFD_OK)
        rc = hfd_db_commit(db, err);
    return rc == HFD_OK && fill_fails ? hfd_fail(err, HFD_IO, "as a crash") : rc;
}

/*
 * A fill runs when the columns of all migrations are there. Until it is done the stored version is
 * one that programs refuse, and the next start fills again.
 */
static void migrations_fill_after_all(void **state)
{
    static const struct hfd_migration list[] = {
        {.name = "0001_a", .sql = "CREATE TABLE a (x TEXT)"},
        {.name = "0002_a_filled", .sql = "INSERT INTO a (x) VALUES ('1')", .fill = fill_y},
        {.name = "0003_y", .sql = "ALTER TABLE a ADD COLUMN y TEXT NOT NULL DEFAULT ''"},
    };
    struct fixture *fx = *state;
    struct hfd_err err;

    fill_fails = true;
    forget_table(fx);
    assert_int_equal(hfd_migrate(fx->db, list, 3, &err), HFD_IO);
    assert_int_equal(version_of(fx->db), HFD_MIGRATE_UNFILLED + 3);
    assert_int_equal(hfd_migrate(fx->db, list, 2, &err), HFD_INVALID);
    fill_fails = false;
    assert_int_equal(hfd_migrate(fx->db, list, 3, &err), HFD_OK);
    assert_int_equal(version_of(fx->db), 3);
    assert_int_equal(hfd_db_exec(fx->db, "UPDATE a SET x = '2'", NULL), HFD_OK);
    assert_int_equal(hfd_migrate(fx->db, list, 3, &err), HFD_OK);
    assert_int_equal(version_of(fx->db), 3);
}

/* The number that a query gives. */

/* The totals and times that metrics read are made for what an older program stored. */
static void older_rows_are_counted(void **state)
{
    static const char rows[] =
        "INSERT INTO resource (guresid, type, kind, state, incarnation, cluster_id, digest, "
        "raw_digest, cookie, op_started_us, op_estimate_us, op_deadline_us, created_us, "
        "updated_us, instance)"
        " VALUES ('a', 'org/t', 1, 1, 'i', '', x'', x'', '', 1, 2, 3, 4, 5, 1),"
        " ('b', 't', 1, 1, 'i', '', x'', x'', '', 1, 2, 3, 4, 5, 1),"
        " ('c', 't', 1, 3, 'i', '', x'', x'', '', 1, 2, 3, 4, 5, 1);"
        "INSERT INTO fleet (id, kind, name, generation, spec, labels, conditions, ready, "
        "ready_seen_us, created_us, updated_us, created_by, updated_by)"
        " VALUES ('x', 1, 'x', 1, '{}', '{}', '[]', 0, 7, 8, 9, '', ''),"
        " ('y', 1, 'y', 1, '{}', '{}', '[]', 1, 7, 8, 9, '', '');";
    struct fixture *fx = *state;

    ON_SQLITE();
    forget_table(fx);
    assert_int_equal(hfd_migrate(fx->db, hfd_migrations, 12, NULL), HFD_OK);
    assert_int_equal(hfd_db_exec(fx->db, rows, NULL), HFD_OK);
    assert_int_equal(hfd_migrate(fx->db, hfd_migrations, hfd_migrations_count, NULL), HFD_OK);
    assert_int_equal(number(fx->db, "SELECT count(*) FROM fleet_count"), 2);
    assert_int_equal(number(fx->db, "SELECT n FROM fleet_count WHERE kind = 1 AND field = 3 AND "
                                    "name = 't' AND value = '1'"),
                     2);
    assert_int_equal(number(fx->db, "SELECT pending_us FROM fleet WHERE id = 'x'"), 9);
    assert_int_equal(number(fx->db, "SELECT pending_us FROM fleet WHERE id = 'y'"), 0);
    assert_int_equal(number(fx->db, "SELECT count(*) FROM fleet WHERE sum IS NULL"), 0);
}

/* A database of a newer program is refused with both numbers, and left alone. */
static void future_version_is_refused(void **state)
{
    struct fixture *fx = *state;
    struct hfd_store_config config = {.place = test_place(fx->dir)};
    struct hfd_store *store;
    struct hfd_err err;
    char knows[80];

    assert_int_equal(hfd_db_set_schema_version(fx->db, 99, NULL), HFD_OK);
    hfd_db_close(&fx->db);
    assert_int_equal(hfd_store_open(&config, &store, &err), HFD_INVALID);
    assert_null(store);
    (void)snprintf(knows, sizeof(knows),
                   "has schema version 99, and this program knows versions up to %zu",
                   hfd_migrations_count);
    assert_non_null(strstr(err.msg, knows));
    assert_non_null(strstr(err.msg, "newer"));
    open_writer(fx);
    assert_int_equal(version_of(fx->db), 99);
    assert_int_equal(hfd_db_exec(fx->db, "SELECT * FROM fleet", NULL),
                     HFD_CORRUPT); /* nothing was added */
}

/* A database of another program is refused and not turned into ours. */
static void foreign_database_is_refused(void **state)
{
    static const char *const makers[] = {"CREATE TABLE x (y)", "PRAGMA application_id=77",
                                         "PRAGMA application_id=77; CREATE TABLE x (y)"};
    struct fixture *fx = *state;
    char path[TMPDIR_MAX + 32];

    ON_SQLITE();
    (void)snprintf(path, sizeof(path), "%s/store.db", fx->base);
    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
        char wanted[TMPDIR_MAX + 96];
        struct hfd_db *db;
        struct hfd_err err;
        sqlite3 *other;
        sqlite3_stmt *st;

        assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
        assert_int_equal(sqlite3_exec(other, makers[i], NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_close(other), SQLITE_OK);
        assert_int_equal(test_db_open(fx->base, HFD_DB_WRITER, &db, &err), HFD_INVALID);
        assert_null(db);
        (void)snprintf(wanted, sizeof(wanted), "store %s: not a database of hyperfleet-driver",
                       path);
        assert_string_equal(err.msg, wanted);
        assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
        assert_int_equal(sqlite3_prepare_v2(other, "PRAGMA journal_mode", -1, &st, NULL),
                         SQLITE_OK);
        assert_int_equal(sqlite3_step(st), SQLITE_ROW);
        assert_string_equal((const char *)sqlite3_column_text(st, 0), "delete");
        sqlite3_finalize(st);
        assert_int_equal(sqlite3_close(other), SQLITE_OK);
        assert_int_equal(unlink(path), 0);
    }
}

int main(int argc, char **argv)
{
#define RULE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        RULE(values_come_back),
        RULE(statement_starts_without_bindings),
        RULE(constraints_are_answered),
        RULE(groups_go_on_after_a_refusal),
        RULE(rows_of_groups_come_back),
        RULE(column_failures_stick),
        RULE(many_statements_are_kept_apart),
        RULE(rollback_undoes_a_transaction),
        RULE(reader_cannot_write),
        RULE(reader_makes_nothing),
        RULE(other_programs_stay_out),
        RULE(database_in_use_is_refused),
        RULE(broken_connection_repeats_its_reason),
        RULE(failed_read_breaks_the_reader),
        RULE(session_without_memory_is_none),
        RULE(weak_synchronous_is_refused),
        RULE(mistakes_abort),
        RULE(adopted_connection_works),
        RULE(migrations_are_whole_steps),
        RULE(migrations_fill_after_all),
        RULE(older_rows_are_counted),
        RULE(future_version_is_refused),
        RULE(foreign_database_is_refused),
    };

    if (argc == 3 && strcmp(argv[1], "--tool") == 0)
        return run_as_tool(argv[2]);
    hfd_log_set_fd(open("/dev/null", O_WRONLY | O_CLOEXEC));
    faultvfs_register();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
