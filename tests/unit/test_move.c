/*
 * Moves between databases: every table and column, kills at any page, changed rows. SQLite on both
 * sides; tests/real has PostgreSQL.
 */
#include "store/move.h"

#include "store/migrate.h"
#include "store/sqlite/db_sqlite_int.h"
#include "tests/lib/contains.h"
#include "tests/lib/tmpdir.h"

#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define ROWS 400 /* of each table: several pages */
#define NAME "sqlite:/somewhere"

struct fixture {
    char base[TMPDIR_MAX];
    char from_dir[TMPDIR_MAX + 8], to_dir[TMPDIR_MAX + 8];
    struct hfd_store_place from, to;
    struct hfd_move_result result;
    struct hfd_err err;
};

/* ---- a source with rows in every table ---- */

static struct hfd_db *open_writer(const struct hfd_store_place *place)
{
    struct hfd_err err = {0};
    struct hfd_db *db;

    if (hfd_db_open(place, HFD_DB_WRITER, &db, &err) != HFD_OK ||
        hfd_migrate(db, hfd_migrations, hfd_migrations_count, &err) != HFD_OK)
        fail_msg("%s", err.msg);
    return db;
}

/* The place of a column in the primary key, from 1 on; 0 = it is not in it. */
static int primary_place(const struct hfd_table *table, size_t col)
{
    size_t at;

    for (size_t i = 0; hfd_table_primary(table, i, &at); i++)
        if (at == col)
            return (int)i + 1;
    return 0;
}

/* The values of row `at`: unique, with NULL, empty, long and zero bytes among them. */
static void make_row(const struct hfd_table *table, int at, char (*texts)[512],
                     struct hfd_move_row *row)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct hfd_col *col = &table->cols[i];
        const bool key = primary_place(table, i) > 0;
        struct hfd_move_value *v = &row->values[i];
        const size_t extra = !key ? (size_t)(at % 7) * 60 : 0;
        int len = snprintf(texts[i], sizeof(texts[i]), "k%05d%c%zu", (at * 7919) % 100000,
                           col->type == HFD_COL_TEXT ? '\'' : '\0', i);

        memset(texts[i] + len, at % 3, extra);
        *v = (struct hfd_move_value){.null = hfd_col_is_null(col) && at % 3 == 0,
                                     .number = (int64_t)at * 1000003 - 500 * (int64_t)i,
                                     .bytes = {texts[i], (size_t)len}};
        if (col->type == HFD_COL_BLOB || col->type == HFD_COL_NONE)
            v->bytes.len += extra;
        else if (!key && at % 5 == 0 && table->keys > 1)
            v->bytes.len = 0;
    }
}

static void fill_table(struct hfd_db *db, struct hfd_move_form *form, int rows)
{
    static char texts[HFD_MOVE_COLUMNS_MAX][512];
    struct hfd_move_row row;
    struct hfd_stmt *st;
    struct hfd_err err = {0};
    const char *sql;

    assert_int_equal(hfd_query_sql(&form->insert, &sql, &err), HFD_OK);
    for (int i = 0; i < rows; i++) {
        make_row(form->table, i, texts, &row);
        assert_int_equal(hfd_db_prepare(db, sql, &st, &err), HFD_OK);
        hfd_move_bind(st, form, &row);
        if (hfd_stmt_run(st, NULL, &err) != HFD_OK)
            fail_msg("%s row %d: %s", form->table->name, i, err.msg);
    }
}

static void fill(const struct hfd_store_place *place, int rows)
{
    struct hfd_db *db = open_writer(place);

    assert_int_equal(hfd_db_begin(db, NULL), HFD_OK);
    for (size_t i = 0; i < hfd_move_tables_count; i++)
        fill_table(db, &hfd_move_tables[i], rows);
    assert_int_equal(hfd_db_commit(db, NULL), HFD_OK);
    hfd_db_close(&db);
}

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof(*fx));

    assert_non_null(fx);
    hfd_db_set_synchronous("NORMAL"); /* kills, not power cuts */
    tmpdir_make(fx->base);
    (void)snprintf(fx->from_dir, sizeof(fx->from_dir), "%s/from", fx->base);
    (void)snprintf(fx->to_dir, sizeof(fx->to_dir), "%s/to", fx->base);
    fx->from.dir = fx->from_dir;
    fx->to.dir = fx->to_dir;
    fill(&fx->from, ROWS);
    *state = fx;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;

    hfd_db_set_synchronous("FULL");
    tmpdir_remove(fx->base);
    free(fx);
    return 0;
}

/* ---- moving and comparing ---- */

static hfd_rc move(struct fixture *fx, const char *name)
{
    const struct hfd_move_config config = {
        .from = &fx->from, .to = &fx->to, .name = name, .batch_rows = 100};

    fx->err = (struct hfd_err){0};
    return hfd_move(&config, &fx->result, &fx->err);
}

static int64_t number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *st;
    int64_t n;

    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    n = sqlite3_column_int64(st, 0);
    (void)sqlite3_finalize(st);
    return n;
}

static sqlite3 *open_raw(const char *dir)
{
    char path[TMPDIR_MAX + 32];
    sqlite3 *db;

    (void)snprintf(path, sizeof(path), "%s/store.db", dir);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    return db;
}

/* Compares both databases by SQL of their own. */
static void check_same(const struct fixture *fx, int rows)
{
    sqlite3 *db = open_raw(fx->to_dir);
    char sql[512];

    (void)snprintf(sql, sizeof(sql), "ATTACH '%s/store.db' AS source", fx->from_dir);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    for (size_t i = 0; i < hfd_move_tables_count; i++) {
        const char *t = hfd_move_tables[i].table->name;

        (void)snprintf(sql, sizeof(sql),
                       "SELECT count(*) FROM (SELECT * FROM main.%s EXCEPT SELECT * FROM source.%s "
                       "UNION ALL SELECT * FROM (SELECT * FROM source.%s EXCEPT SELECT * FROM "
                       "main.%s))",
                       t, t, t, t);
        assert_int_equal(number(db, sql), 0);
        (void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM main.%s", t);
        assert_int_equal(number(db, sql), rows);
    }
    (void)sqlite3_close(db);
}

static void change(const char *dir, const char *sql)
{
    sqlite3 *db = open_raw(dir);

    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    assert_int_equal(sqlite3_changes(db), 1);
    (void)sqlite3_close(db);
}

/* ---- the list of tables ---- */

static bool stays(const char *table)
{
    for (size_t i = 0; i < hfd_move_staying_count; i++)
        if (strcmp(table, hfd_move_staying[i]) == 0)
            return true;
    return false;
}

static const struct hfd_table *table_named(const char *name)
{
    for (size_t i = 0; i < hfd_move_tables_count; i++)
        if (strcmp(name, hfd_move_tables[i].table->name) == 0)
            return hfd_move_tables[i].table;
    return NULL;
}

static void check_column(sqlite3_stmt *st, const struct hfd_table *table)
{
    const char *name = (const char *)sqlite3_column_text(st, 0);
    const char *type = (const char *)sqlite3_column_text(st, 1);
    const int key = sqlite3_column_int(st, 3);
    const bool is_rowid = key == 1 && strcmp(type, "INTEGER") == 0;
    size_t i = 0;

    while (i < table->count && strcmp(table->cols[i].name, name) != 0)
        i++;
    if (i == table->count)
        fail_msg("the description of %s lacks column %s", table->name, name);
    assert_int_equal(hfd_col_is_text(&table->cols[i]),
                     strcmp(type, "TEXT") == 0 || strcmp(type, "BLOB") == 0);
    assert_int_equal(table->cols[i].type == HFD_COL_TEXT, strcmp(type, "TEXT") == 0);
    assert_int_equal(hfd_col_is_null(&table->cols[i]), sqlite3_column_int(st, 2) == 0 && !is_rowid);
    assert_int_equal(primary_place(table, i), key);
}

static void each_column_of_the_schema_is_listed(void **state)
{
    struct fixture *fx = *state;
    sqlite3 *db = open_raw(fx->from_dir);
    sqlite3_stmt *tables, *columns;
    size_t found = 0;

    assert_int_equal(sqlite3_prepare_v2(db, "SELECT name FROM sqlite_schema WHERE type = 'table'",
                                        -1, &tables, NULL),
                     SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(
            db, "SELECT name, type, \"notnull\", pk FROM pragma_table_info(?1) ORDER BY cid", -1,
            &columns, NULL),
        SQLITE_OK);
    while (sqlite3_step(tables) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(tables, 0);
        const struct hfd_table *table = table_named(name);
        size_t at = 0;

        if (stays(name))
            continue;
        if (table == NULL)
            fail_msg("store/move.c lacks table %s", name);
        found++;
        (void)sqlite3_bind_text(columns, 1, name, -1, SQLITE_TRANSIENT);
        while (sqlite3_step(columns) == SQLITE_ROW)
            check_column(columns, table), at++;
        assert_int_equal(at, table->count);
        (void)sqlite3_reset(columns);
    }
    assert_int_equal(found, hfd_move_tables_count);
    (void)sqlite3_finalize(columns);
    (void)sqlite3_finalize(tables);
    (void)sqlite3_close(db);
}

/* ---- moves ---- */

static void all_rows_come_over(void **state)
{
    struct fixture *fx = *state;
    struct hfd_store *store;
    const struct hfd_store_config config = {.place = fx->to, .stepped = true};

    if (move(fx, NAME) != HFD_OK)
        fail_msg("%s", fx->err.msg);
    assert_int_equal(fx->result.rows, ROWS * (int64_t)hfd_move_tables_count);
    assert_int_equal(fx->result.found_rows, 0);
    check_same(fx, ROWS);
    assert_int_equal(hfd_store_open(&config, &store, &fx->err), HFD_OK);
    hfd_store_close(&store);
    /* There are rows now, so nothing is moved over them. */
    assert_int_equal(move(fx, "sqlite:/elsewhere"), HFD_CONFLICT);
    assert_contains(hfd_slice_of(fx->err.msg), "the target has data already: table ring_key");
}

/* As after a kill between the last commit and the end of the command. */
static void a_move_that_has_ended_is_compared(void **state)
{
    struct fixture *fx = *state;
    sqlite3 *db;

    assert_int_equal(move(fx, NAME), HFD_OK);
    assert_false(fx->result.moved_before);
    for (int i = 0; i < 2; i++) {
        if (move(fx, NAME) != HFD_OK)
            fail_msg("%s", fx->err.msg);
        assert_true(fx->result.moved_before);
        assert_int_equal(fx->result.rows, ROWS * (int64_t)hfd_move_tables_count);
        assert_int_equal(fx->result.found_rows, fx->result.rows);
        check_same(fx, ROWS);
    }
    change(fx->to_dir, "DELETE FROM fleet WHERE seq = (SELECT MIN(seq) FROM fleet)");
    assert_int_equal(move(fx, NAME), HFD_CONFLICT);
    assert_contains(
        hfd_slice_of(fx->err.msg),
        "the target has data already: this source was moved into it, and then table fleet "
        "changed (rows 400 and 399, hash ");
    assert_contains(hfd_slice_of(fx->err.msg), "Empty it to move again");
    /* An emptied target is filled again. */
    db = open_raw(fx->to_dir);
    for (size_t i = 0; i < hfd_move_tables_count; i++) {
        char sql[96];

        (void)snprintf(sql, sizeof(sql), "DELETE FROM %s", hfd_move_tables[i].table->name);
        assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    }
    (void)sqlite3_close(db);
    assert_int_equal(move(fx, NAME), HFD_OK);
    assert_false(fx->result.moved_before);
    check_same(fx, ROWS);
}

static void an_empty_source_is_moved(void **state)
{
    struct fixture *fx = *state;
    struct hfd_store_place empty = {.dir = fx->to_dir}, to = {.dir = fx->base};
    const struct hfd_move_config config = {.from = &empty, .to = &to, .name = NAME};
    struct hfd_db *db = open_writer(&empty);

    hfd_db_close(&db);
    assert_int_equal(hfd_move(&config, &fx->result, &fx->err), HFD_OK);
    assert_int_equal(fx->result.rows, 0);
}

struct killer {
    int left;
};

static void kill_at(void *ctx, const struct hfd_move_progress *now)
{
    struct killer *k = ctx;

    (void)now;
    if (k->left-- == 0)
        (void)raise(SIGKILL);
}

/* Moves in a process that is killed at the n-th page. Returns false when it ended before. */
static bool move_and_kill(struct fixture *fx, int at)
{
    struct killer killer = {at};
    const struct hfd_move_config config = {.from = &fx->from,
                                           .to = &fx->to,
                                           .name = NAME,
                                           .batch_rows = 100,
                                           .progress = kill_at,
                                           .progress_ctx = &killer};
    const pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0)
        _exit(hfd_move(&config, &fx->result, NULL) == HFD_OK ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

static void a_killed_move_goes_on(void **state)
{
    struct fixture *fx = *state;
    const struct hfd_store_config half = {.place = fx->to, .stepped = true};
    struct hfd_store *store;
    int64_t found = 0;

    for (int at = 1; move_and_kill(fx, at); at += 7) {
        assert_int_equal(hfd_store_open(&half, &store, &fx->err), HFD_CONFLICT);
        assert_contains(hfd_slice_of(fx->err.msg), "the data of " NAME " was not moved");
        assert_true(at < 1000);
    }
    check_same(fx, ROWS);
    tmpdir_remove(fx->to_dir);
    assert_true(move_and_kill(fx, 30));
    assert_int_equal(move(fx, NAME), HFD_OK);
    found = fx->result.found_rows;
    assert_true(found > 0 && found < fx->result.rows);
    check_same(fx, ROWS);
}

/* Moves in a process that is killed when a file of the target grows beyond this. */
static void move_with_room(struct fixture *fx, rlim_t bytes)
{
    const struct rlimit limit = {bytes, bytes};
    const pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        (void)signal(SIGXFSZ, SIG_DFL);
        _exit(setrlimit(RLIMIT_FSIZE, &limit) == 0 && move(fx, NAME) == HFD_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
}

static int64_t schema_of(const char *dir)
{
    sqlite3 *db = open_raw(dir);
    sqlite3_stmt *st;
    int64_t version;

    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    version = sqlite3_column_int64(st, 0);
    (void)sqlite3_finalize(st);
    (void)sqlite3_close(db);
    return version;
}

/* No server takes a target whose tables were being made. */
static void a_move_killed_in_the_schema_goes_on(void **state)
{
    struct fixture *fx = *state;
    const struct hfd_store_config half = {.place = fx->to, .stepped = true};
    struct hfd_store *store;
    int early = 0;

    for (rlim_t kib = 40; kib <= 200; kib += 40) {
        move_with_room(fx, kib << 10);
        early += schema_of(fx->to_dir) < (int64_t)hfd_migrations_count;
        if (kib == 80) { /* this one goes on at once */
            assert_int_equal(move(fx, NAME), HFD_OK);
            assert_false(fx->result.moved_before);
            check_same(fx, ROWS);
        } else {
            assert_int_equal(hfd_store_open(&half, &store, &fx->err), HFD_CONFLICT);
            assert_contains(hfd_slice_of(fx->err.msg), "the data of " NAME " was not moved");
        }
        tmpdir_remove(fx->to_dir);
    }
    assert_true(early > 1);
}

static void another_move_is_refused(void **state)
{
    struct fixture *fx = *state;
    const struct hfd_store_place third = {.dir = fx->base};
    const struct hfd_move_config onward = {.from = &fx->to, .to = &third, .name = NAME};

    assert_true(move_and_kill(fx, 20));
    assert_int_equal(move(fx, "sqlite:/elsewhere"), HFD_CONFLICT);
    assert_contains(hfd_slice_of(fx->err.msg), "a part of the data of " NAME);
    assert_int_equal(hfd_move(&onward, &fx->result, &fx->err), HFD_CONFLICT);
    assert_contains(hfd_slice_of(fx->err.msg), "was not moved into this database to the end");
}

static void changes_are_found(void **state)
{
    static const struct {
        bool in_source;
        const char *sql, *wanted;
    } cases[] = {
        {false, "DELETE FROM fleet WHERE seq = (SELECT MIN(seq) FROM fleet)",
         "table fleet has 400 rows in the source and 399 in the target"},
        {true, "UPDATE fleet SET name = name || ' ' WHERE seq = (SELECT MIN(seq) FROM fleet)",
         "the rows of table fleet are not the same in the source and in the target: each has 400, "
         "with the hashes "},
    };
    struct fixture *fx = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct hfd_store_config config = {.place = fx->to, .stepped = true};
        struct hfd_store *store;

        if (i > 0)
            tmpdir_remove(fx->to_dir);
        assert_true(move_and_kill(fx, 20));
        change(cases[i].in_source ? fx->from_dir : fx->to_dir, cases[i].sql);
        assert_int_equal(move(fx, NAME), HFD_CORRUPT);
        assert_contains(hfd_slice_of(fx->err.msg), cases[i].wanted);
        assert_int_equal(hfd_store_open(&config, &store, NULL), HFD_CONFLICT);
        assert_int_equal(move(fx, NAME), HFD_CORRUPT);
    }
}

/* Each column counts: a change of one value changes the sum. */
static void each_value_is_in_the_sum(void **state)
{
    static char texts[HFD_MOVE_COLUMNS_MAX][512];
    struct hfd_move_row row;
    struct hfd_buf whole, changed;

    (void)state;
    hfd_buf_init(&whole, 65536);
    hfd_buf_init(&changed, 65536);
    for (size_t t = 0; t < hfd_move_tables_count; t++) {
        const struct hfd_move_form *form = &hfd_move_tables[t];

        make_row(form->table, 1, texts, &row);
        hfd_buf_reset(&whole);
        hfd_move_row_format(form, &row, &whole);
        for (size_t i = 0; i < form->table->count; i++) {
            make_row(form->table, 1, texts, &row);
            if (!hfd_col_is_text(&form->table->cols[i]))
                row.values[i].number ^= 1;
            else
                texts[i][row.values[i].bytes.len - 1] ^= 1;
            hfd_buf_reset(&changed);
            hfd_move_row_format(form, &row, &changed);
            assert_false(hfd_slice_eq(hfd_buf_slice(&whole), hfd_buf_slice(&changed)));
        }
    }
    hfd_buf_fini(&whole);
    hfd_buf_fini(&changed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_column_of_the_schema_is_listed, setup, teardown),
        cmocka_unit_test_setup_teardown(all_rows_come_over, setup, teardown),
        cmocka_unit_test_setup_teardown(a_move_that_has_ended_is_compared, setup, teardown),
        cmocka_unit_test_setup_teardown(an_empty_source_is_moved, setup, teardown),
        cmocka_unit_test_setup_teardown(a_killed_move_goes_on, setup, teardown),
        cmocka_unit_test_setup_teardown(a_move_killed_in_the_schema_goes_on, setup, teardown),
        cmocka_unit_test_setup_teardown(another_move_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(changes_are_found, setup, teardown),
        cmocka_unit_test(each_value_is_in_the_sum),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
