/*
 * PostgreSQL's engine: which writes change which results, which may be gathered. SQLite is the
 * judge: random statements run on both.
 */
#include "store/postgres/known.h"

#include "driver/base/check.h"
#include "store/sqlite/conn.h"
#include "store/store.h"
#include "tests/lib/sqlite_burst.h"
#include "tests/lib/tmpdir.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define ROUNDS 400
#define STEPS 60

/* ---- against SQLite ---- */

/* clang-format off */
static const char schema[] =
    "CREATE TABLE t (id TEXT PRIMARY KEY, kind BIGINT, name TEXT, n BIGINT);"
    "CREATE UNIQUE INDEX t_name ON t (kind, name);"
    "CREATE TABLE u (guresid TEXT, id TEXT, n BIGINT, PRIMARY KEY (guresid, id));";

/* What the store tells of each: the last write, and two reads, are of two tables. */
static const struct hfd_db_use writes[] = {
    {.sql = "INSERT INTO t (id, kind, name, n) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
     .set = "", .table = "t", .equals = {{"id", 1}, {"kind", 2}, {"name", 3}, {"n", 4}}, .equal_count = 4, .adds = true},
    {.sql = "INSERT INTO t (id, kind, name, n) VALUES (?1, ?2, ?1, ?4) ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n",
     .set = "", .table = "t", .equals = {{"id", 1}}, .equal_count = 1, .adds = true, .differs = true},
    {.sql = "UPDATE t SET n = ?4 WHERE id = ?1",
     .set = "", .table = "t", .equals = {{"id", 1}}, .equal_count = 1, .differs = true},
    {.sql = "UPDATE t SET n = n + ?4 WHERE kind = ?2 AND id = ?1", .table = "t", .equals = {{"id", 1}, {"kind", 2}}, .equal_count = 2},
    {.sql = "UPDATE OR IGNORE t SET name = ?3 WHERE id = ?1", .table = "t", .equals = {{"id", 1}}, .equal_count = 1},
    {.sql = "UPDATE t SET n = n * 2 + ?4 WHERE kind = ?2", .table = "t", .equals = {{"kind", 2}}, .equal_count = 1},
    {.sql = "DELETE FROM t WHERE id = ?1", .set = "", .table = "t", .equals = {{"id", 1}}, .equal_count = 1},
    {.sql = "DELETE FROM t WHERE kind = ?2 AND n <= ?4", .table = "t", .equals = {{"kind", 2}}, .equal_count = 1},
    {.sql = "INSERT INTO u (guresid, id, n) VALUES (?3, ?1, ?4) ON CONFLICT (guresid, id) DO UPDATE SET n = excluded.n",
     .set = "", .table = "u", .equals = {{"guresid", 3}, {"id", 1}}, .equal_count = 2, .adds = true, .differs = true},
    {.sql = "UPDATE u SET n = ?4 WHERE guresid = ?3", .table = "u", .equals = {{"guresid", 3}}, .equal_count = 1},
    {.sql = "DELETE FROM u WHERE guresid = ?3 AND id = ?1", .set = "", .table = "u", .equals = {{"guresid", 3}, {"id", 1}}, .equal_count = 2},
    {.sql = "DELETE FROM u WHERE guresid = ?3", .table = "u", .equals = {{"guresid", 3}}, .equal_count = 1},
    {.sql = "INSERT INTO u (guresid, id, n) SELECT name, id, n FROM t WHERE id = ?1 ON CONFLICT DO NOTHING"},
};
static const struct hfd_db_use reads[] = {
    {.sql = "SELECT id, kind, name, n FROM t WHERE id = ?1", .table = "t", .equals = {{"id", 1}}, .equal_count = 1},
    {.sql = "SELECT id, n FROM t WHERE kind = ?2 AND name = ?3", .table = "t", .equals = {{"kind", 2}, {"name", 3}}, .equal_count = 2},
    {.sql = "SELECT id FROM t WHERE kind = ?2 ORDER BY id", .table = "t", .equals = {{"kind", 2}}, .equal_count = 1},
    {.sql = "SELECT count(*) FROM t", .table = "t"},
    {.sql = "SELECT id, n FROM u WHERE guresid = ?3 ORDER BY id", .table = "u", .equals = {{"guresid", 3}}, .equal_count = 1},
    {.sql = "SELECT n FROM u WHERE guresid = ?3 AND id = ?1", .table = "u", .equals = {{"guresid", 3}, {"id", 1}}, .equal_count = 2},
    {.sql = "SELECT u.id FROM u JOIN t ON t.id = u.id WHERE u.guresid = ?3 ORDER BY 1"},
    {.sql = "SELECT sum(n) FROM (SELECT max(n) AS n FROM t UNION ALL SELECT max(n) FROM u WHERE id = ?1) AS s"},
};
static const int read_params[] = {1, 3, 2, 0, 3, 3, 3, 1};
/* clang-format on */
#define WRITES (sizeof(writes) / sizeof(writes[0]))
#define READS (sizeof(reads) / sizeof(reads[0]))

static struct hfd_shape write_shapes[WRITES], read_shapes[READS];

static void read_shapes_once(void)
{
    for (size_t i = 0; i < WRITES; i++)
        write_shapes[i] = (struct hfd_shape){&writes[i], 4};
    for (size_t i = 0; i < READS; i++)
        read_shapes[i] = (struct hfd_shape){&reads[i], read_params[i]};
}

static unsigned seed = 1;

static int pick(int below)
{
    seed = seed * 1103515245u + 12345u;
    return (int)(seed >> 16) % below;
}

/* The parameters of every statement above: an id, a kind, a name, a number. */
struct params {
    char texts[2][8];
    struct hfd_value values[4];
};

static void make_params(struct params *p)
{
    (void)snprintf(p->texts[0], sizeof(p->texts[0]), "i%d", pick(4));
    (void)snprintf(p->texts[1], sizeof(p->texts[1]), "n%d", pick(3));
    p->values[0] =
        (struct hfd_value){.kind = HFD_VALUE_TEXT, .as.bytes = hfd_slice_of(p->texts[0])};
    p->values[1] = (struct hfd_value){.kind = HFD_VALUE_I64, .as.i64 = pick(2)};
    p->values[2] =
        (struct hfd_value){.kind = HFD_VALUE_TEXT, .as.bytes = hfd_slice_of(p->texts[1])};
    p->values[3] = (struct hfd_value){.kind = HFD_VALUE_I64, .as.i64 = pick(5)};
}

static void judge_open(sqlite3 **db)
{
    assert_int_equal(sqlite3_open(":memory:", db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(*db, schema, NULL, NULL, NULL), SQLITE_OK);
}

/* Runs a statement, and adds its rows to a text. */
static void judge(sqlite3 *db, const char *sql, const struct hfd_value *values, struct hfd_buf *out)
{
    sqlite3_stmt *st;
    int rc;

    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    for (int i = 0; i < sqlite3_bind_parameter_count(st); i++)
        if (values[i].kind == HFD_VALUE_I64)
            (void)sqlite3_bind_int64(st, i + 1, values[i].as.i64);
        else
            (void)sqlite3_bind_text(st, i + 1, values[i].as.bytes.p, (int)values[i].as.bytes.len,
                                    SQLITE_STATIC);
    while ((rc = sqlite3_step(st)) == SQLITE_ROW)
        for (int c = 0; c < sqlite3_column_count(st); c++)
            hfd_buf_addf(out, "%s,", (const char *)sqlite3_column_text(st, c));
    if (rc != SQLITE_DONE)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    (void)sqlite3_finalize(st);
}

/* A result that is known is what the database has. */
static void check_read(sqlite3 *db, struct hfd_knowns *k, int *found)
{
    const int at = pick((int)READS);
    struct params p;
    struct hfd_shape_use use = {&read_shapes[at], p.values};
    struct hfd_known *known;
    struct hfd_buf now;

    make_params(&p);
    known = hfd_known_find(k, reads[at].sql, &use, false);
    hfd_buf_init(&now, 10000);
    judge(db, reads[at].sql, p.values, &now);
    hfd_buf_addc(&now, '\0');
    if (known != NULL) {
        ++*found;
        if (strcmp(known->rows->cells[0].as.bytes.p, now.p) != 0)
            fail_msg("%s: known %s, but the database has %s", reads[at].sql,
                     known->rows->cells[0].as.bytes.p, now.p);
    } else {
        const struct hfd_value cell = {.kind = HFD_VALUE_TEXT, .as.bytes = {now.p, now.len}};

        known = hfd_known_want(k, reads[at].sql, &use);
        assert_non_null(known);
        (void)hfd_known_take_wanted(k);
        assert_int_equal(hfd_known_add_row(k, known, &cell, 1, NULL), HFD_OK);
    }
    hfd_buf_fini(&now);
}

static void known_is_true(void **state)
{
    int found = 0;

    (void)state;
    read_shapes_once();
    for (int round = 0; round < ROUNDS; round++) {
        struct hfd_knowns k;
        sqlite3 *db;

        judge_open(&db);
        hfd_knowns_init(&k);
        for (int step = 0; step < STEPS; step++) {
            if (pick(3) > 0) {
                check_read(db, &k, &found);
            } else {
                const int at = pick((int)WRITES);
                struct params p;

                make_params(&p);
                judge(db, writes[at].sql, p.values, NULL);
                hfd_known_write(&k, &(struct hfd_shape_use){&write_shapes[at], p.values});
            }
        }
        hfd_knowns_fini(&k);
        (void)sqlite3_close(db);
    }
    assert_true(found > ROUNDS); /* it is of use */
}

/* Writes that are forgotten hide nothing. */
static void again(void **state)
{
    struct hfd_knowns k;
    struct params p;
    struct hfd_shape_use read = {&read_shapes[0], p.values}, write = {&write_shapes[6], p.values};

    (void)state;
    read_shapes_once();
    make_params(&p);
    hfd_knowns_init(&k);
    assert_non_null(hfd_known_want(&k, reads[0].sql, &read));
    assert_int_equal(k.wanted_count, 1);
    assert_non_null(hfd_known_find(&k, reads[0].sql, &read, false));
    assert_non_null(hfd_known_take_wanted(&k));
    assert_null(hfd_known_take_wanted(&k));
    hfd_known_write(&k, &write);
    assert_null(hfd_known_find(&k, reads[0].sql, &read, false));
    hfd_known_again(&k);
    assert_non_null(hfd_known_find(&k, reads[0].sql, &read, false));
    hfd_knowns_clear(&k);
    assert_null(hfd_known_find(&k, reads[0].sql, &read, false));
    hfd_knowns_fini(&k);
}

/* PostgreSQL changes a row once in a statement. */
static bool share_row(const struct hfd_db_use *of, const struct hfd_value *a,
                      const struct hfd_value *b)
{
    bool same = of->differs;

    for (size_t i = 0; i < of->equal_count; i++)
        same = same && hfd_value_is_same(&a[of->equals[i].param - 1], &b[of->equals[i].param - 1]);
    return same;
}

/* ---- sets ---- */

static int gathered; /* sets of several writes that bursts had */

/* A burst whose sets are looked at. */
static hfd_rc burst_of_sets(struct hfd_db *inner, struct hfd_burst *burst, struct hfd_err *err)
{
    for (const struct hfd_write_table *t = burst->writes; t != NULL; t = t->next)
        for (const struct hfd_write_set *set = t->first; set != NULL; set = set->next) {
            gathered += set->count > 1;
            for (const struct hfd_write *x = set->first; x != NULL; x = x->next)
                for (const struct hfd_write *y = x->next; y != NULL; y = y->next)
                    assert_false(share_row(set->shape->of, x->values, y->values));
            assert_true(set->count == 1 || set->shape->of->set != NULL);
        }
    return sqlite_burst(inner, burst, err);
}

/* The highest number of a parameter. */
static int params_of(const char *sql)
{
    int n = 0;

    for (; *sql != '\0'; sql++)
        if (sql[0] == '?' && sql[1] - '0' > n)
            n = sql[1] - '0';
    return n;
}

static void write_by(struct hfd_db *db, const struct hfd_db_use *use, const struct params *p)
{
    struct hfd_stmt *st;

    assert_int_equal(hfd_db_prepare_use(db, use, &st, NULL), HFD_OK);
    hfd_gather_bind(st, p->values, params_of(use->sql));
    assert_int_equal(hfd_stmt_run(st, NULL, NULL), HFD_OK);
}

static void dump(sqlite3 *db, struct hfd_buf *out)
{
    judge(db, "SELECT id, kind, name, n FROM t ORDER BY id", NULL, out);
    judge(db, "SELECT guresid, id, n FROM u ORDER BY 1, 2", NULL, out);
    hfd_buf_addc(out, '\0');
}

/* Writes in sets leave what they leave one by one. */
static void sets_do_the_same(void **state)
{
    char base[TMPDIR_MAX];
    struct hfd_db *inner, *db;

    (void)state;
    tmpdir_make(base);
    assert_int_equal(
        hfd_db_open(&(struct hfd_store_place){.dir = base}, HFD_DB_WRITER, &inner, NULL), HFD_OK);
    assert_int_equal(hfd_gather_open(inner, burst_of_sets, HFD_DB_WRITER, &db, NULL), HFD_OK);
    assert_int_equal(hfd_db_exec(db, schema, NULL), HFD_OK);
    for (int round = 0; round < ROUNDS; round++) {
        struct hfd_buf one, all;
        sqlite3 *a;

        judge_open(&a);
        hfd_buf_init(&one, 10000);
        hfd_buf_init(&all, 10000);
        assert_int_equal(hfd_db_exec(db, "DELETE FROM t; DELETE FROM u;", NULL), HFD_OK);
        assert_int_equal(hfd_db_begin_group(db, NULL), HFD_OK);
        for (int step = 0; step < STEPS; step++) {
            const size_t at = (size_t)pick(pick(2) == 0 ? 4 : (int)WRITES);
            struct params p;

            make_params(&p);
            judge(a, writes[at].sql, p.values, NULL);
            write_by(db, &writes[at], &p);
        }
        assert_int_equal(hfd_db_commit(db, NULL), HFD_OK);
        dump(a, &one);
        dump(inner->handle, &all);
        assert_string_equal(one.p, all.p);
        hfd_buf_fini(&one);
        hfd_buf_fini(&all);
        (void)sqlite3_close(a);
    }
    assert_true(gathered > ROUNDS);
    hfd_db_close(&db);
    tmpdir_remove(base);
}

/* ---- the engine, around SQLite ---- */

static const char sql_make[] = "CREATE TABLE t (id TEXT PRIMARY KEY, n BIGINT)";
#define BY_ID .table = "t", .equals = {{"id", 1}}, .equal_count = 1
static const struct hfd_db_use sql_get = {.sql = "SELECT n FROM t WHERE id = ?1", BY_ID},
                               sql_all = {.sql = "SELECT count(*) FROM t", .table = "t"},
                               sql_add = {.sql = "INSERT INTO t (id, n) VALUES (?1, ?2)"
                                                 " ON CONFLICT DO NOTHING",
                                          BY_ID,
                                          .adds = true},
                               sql_set = {.sql = "UPDATE t SET n = ?2 WHERE id = ?1", BY_ID};

struct around {
    char base[TMPDIR_MAX];
    struct hfd_db *other; /* NULL = there is none */
    struct hfd_db *db;
};

static int open_around(void **state)
{
    struct around *a = calloc(1, sizeof(*a));
    struct hfd_db *inner;
    struct hfd_err err;

    assert_non_null(a);
    tmpdir_make(a->base);
    if (hfd_db_open(&(struct hfd_store_place){.dir = a->base}, HFD_DB_WRITER, &inner, &err) !=
        HFD_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(hfd_gather_open(inner, sqlite_burst, HFD_DB_WRITER, &a->db, &err), HFD_OK);
    assert_int_equal(hfd_db_exec(a->db, sql_make, NULL), HFD_OK);
    *state = a;
    return 0;
}

/* The same where nothing is written, with another connection that writes. */
static int open_reads(void **state)
{
    struct around *a = calloc(1, sizeof(*a));
    struct hfd_store_place place;
    struct hfd_db *inner;

    assert_non_null(a);
    tmpdir_make(a->base);
    place = (struct hfd_store_place){.dir = a->base};
    assert_int_equal(hfd_db_open(&place, HFD_DB_WRITER, &a->other, NULL), HFD_OK);
    assert_int_equal(hfd_db_exec(a->other, sql_make, NULL), HFD_OK);
    assert_int_equal(hfd_db_open(&place, HFD_DB_READER, &inner, NULL), HFD_OK);
    assert_int_equal(hfd_gather_open(inner, sqlite_burst, HFD_DB_POINTS, &a->db, NULL), HFD_OK);
    *state = a;
    return 0;
}

static int close_around(void **state)
{
    struct around *a = *state;

    hfd_db_close(&a->db);
    if (a->other != NULL)
        hfd_db_close(&a->other);
    tmpdir_remove(a->base);
    free(a);
    return 0;
}

/* Reads a number. @return -1 when there is no row, -2 when it is to be read again */
static int64_t get(struct around *a, const struct hfd_db_use *use, const char *id)
{
    struct hfd_stmt *st;
    bool row;
    int64_t n = -1;
    hfd_rc rc;

    assert_int_equal(hfd_db_prepare_use(a->db, use, &st, NULL), HFD_OK);
    if (id != NULL)
        hfd_stmt_text(st, 1, hfd_slice_of(id));
    rc = hfd_stmt_step(st, &row, NULL);
    if (rc == HFD_OK && row)
        n = hfd_stmt_col_i64(st, 0);
    hfd_stmt_done(st);
    assert_true(rc == HFD_OK || rc == HFD_BUSY);
    return rc == HFD_OK ? n : -2;
}

static int64_t put(struct around *a, const struct hfd_db_use *use, const char *id, int64_t n)
{
    struct hfd_stmt *st;
    int64_t changed;

    assert_int_equal(hfd_db_prepare_use(a->db, use, &st, NULL), HFD_OK);
    hfd_stmt_text(st, 1, hfd_slice_of(id));
    hfd_stmt_i64(st, 2, n);
    assert_int_equal(hfd_stmt_run(st, &changed, NULL), HFD_OK);
    return changed;
}

static bool look(struct around *a)
{
    bool again;

    assert_int_equal(hfd_db_look(a->db, &again, NULL), HFD_OK);
    return again;
}

/* Reads that are not known are made at once for all; writes meanwhile are forgotten. */
static void reads_of_a_group(void **state)
{
    struct around *a = *state;

    assert_int_equal(hfd_db_begin_group(a->db, NULL), HFD_OK);
    assert_int_equal(get(a, &sql_get, "a"), -2);
    assert_int_equal(put(a, &sql_add, "b", 9), 1);
    assert_int_equal(get(a, &sql_get, "c"), -2);
    assert_true(hfd_db_is_looking(a->db));
    assert_true(look(a));
    assert_int_equal(get(a, &sql_get, "a"), -1);
    assert_int_equal(get(a, &sql_get, "c"), -1);
    assert_int_equal(put(a, &sql_add, "a", 1), 1);
    assert_int_equal(put(a, &sql_add, "b", 2), 1);
    assert_int_equal(get(a, &sql_get, "c"), -1); /* the writes are of other rows */
    assert_false(look(a));
    assert_int_equal(hfd_db_commit(a->db, NULL), HFD_OK);
    assert_int_equal(hfd_gather_counts(a->db).bursts, 2);
    assert_int_equal(hfd_gather_counts(a->db).looks, 1);
    assert_int_equal(hfd_gather_counts(a->db).misses, 0);
    assert_int_equal(get(a, &sql_get, "a"), 1);
    assert_int_equal(get(a, &sql_get, "b"), 2);
}

/* A result that a write of the group changes is read alone, behind the write. */
static void reads_behind_writes(void **state)
{
    struct around *a = *state;

    assert_int_equal(hfd_db_begin_group(a->db, NULL), HFD_OK);
    assert_int_equal(get(a, &sql_all, NULL), -2);
    assert_true(look(a));
    assert_int_equal(get(a, &sql_all, NULL), 0);
    assert_int_equal(put(a, &sql_add, "a", 1), 1);
    assert_int_equal(get(a, &sql_all, NULL), -2);
    assert_true(look(a));
    assert_int_equal(get(a, &sql_all, NULL), 0);
    assert_int_equal(put(a, &sql_add, "a", 1), 1);
    assert_int_equal(get(a, &sql_all, NULL), 1);
    assert_false(look(a));
    assert_int_equal(hfd_gather_counts(a->db).misses, 1);
    hfd_db_rollback(a->db);
    assert_int_equal(get(a, &sql_all, NULL), 0);
}

/* A write that does not do what is expected undoes the group; then each is sent on its own. */
static void a_group_runs_alone(void **state)
{
    struct around *a = *state;

    assert_int_equal(put(a, &sql_add, "a", 1), 1);
    assert_int_equal(hfd_db_begin_group(a->db, NULL), HFD_OK);
    assert_int_equal(put(a, &sql_add, "b", 2), 1);
    assert_int_equal(put(a, &sql_add, "a", 2), 1); /* not known yet: it is there */
    assert_false(look(a));
    assert_int_equal(hfd_db_commit(a->db, NULL), HFD_BUSY);
    hfd_db_rollback(a->db);
    assert_int_equal(hfd_db_fate(a->db), HFD_DB_AGAIN);
    assert_int_equal(get(a, &sql_all, NULL), 1);

    assert_int_equal(hfd_db_begin_group(a->db, NULL), HFD_OK);
    assert_int_equal(put(a, &sql_add, "b", 2), 1);
    assert_int_equal(put(a, &sql_add, "a", 2), 0);
    assert_int_equal(put(a, &sql_set, "none", 2), 0);
    assert_false(look(a));
    assert_int_equal(hfd_db_commit(a->db, NULL), HFD_OK);
    assert_int_equal(get(a, &sql_all, NULL), 2);
    assert_int_equal(get(a, &sql_get, "a"), 1);
    assert_int_equal(hfd_gather_counts(a->db).alone, 1);
}

/* Reads without a text as parameter are made with the first burst of later groups. */
static void usual_reads(void **state)
{
    struct around *a = *state;

    assert_int_equal(hfd_db_begin_group(a->db, NULL), HFD_OK);
    assert_int_equal(get(a, &sql_all, NULL), -2);
    assert_true(look(a));
    assert_int_equal(get(a, &sql_all, NULL), 0);
    assert_false(look(a));
    assert_int_equal(hfd_db_commit(a->db, NULL), HFD_OK);
    assert_int_equal(hfd_db_begin_group(a->db, NULL), HFD_OK);
    assert_int_equal(get(a, &sql_get, "a"), -2);
    assert_true(look(a));
    assert_int_equal(get(a, &sql_get, "a"), -1);
    assert_int_equal(get(a, &sql_all, NULL), 0);
    assert_false(look(a));
    assert_int_equal(hfd_db_commit(a->db, NULL), HFD_OK);
    assert_int_equal(hfd_db_begin_group(a->db, NULL), HFD_OK);
    assert_int_equal(hfd_db_exclusive(a->db, NULL), HFD_OK);
    assert_int_equal(get(a, &sql_get, "a"), -2);
    assert_true(look(a));
    assert_int_equal(get(a, &sql_all, NULL), -2); /* that of groups which may have roots */
    hfd_db_rollback(a->db);
}

/* Writes on the other connection, at once. */
static void write_beside(struct around *a, const char *sql)
{
    assert_int_equal(hfd_db_exec(a->other, sql, NULL), HFD_OK);
}

/* Reads that are all wanted at once are one burst, which ends its transaction. */
static void reads_alone(void **state)
{
    struct around *a = *state;

    write_beside(a, "INSERT INTO t (id, n) VALUES ('a', 1)");
    assert_int_equal(hfd_db_begin_group(a->db, NULL), HFD_OK);
    assert_int_equal(get(a, &sql_get, "a"), -2);
    assert_int_equal(get(a, &sql_get, "b"), -2);
    assert_true(look(a));
    write_beside(a, "UPDATE t SET n = 2"); /* nothing holds it up, and it is not seen */
    assert_int_equal(get(a, &sql_get, "a"), 1);
    assert_int_equal(get(a, &sql_get, "b"), -1);
    assert_false(look(a));
    hfd_db_rollback(a->db);
    assert_int_equal(hfd_gather_counts(a->db).bursts, 1);
    assert_int_equal(hfd_db_begin_group(a->db, NULL), HFD_OK);
    assert_int_equal(get(a, &sql_get, "a"), -2);
    assert_true(look(a));
    assert_int_equal(get(a, &sql_get, "a"), 2);
    hfd_db_rollback(a->db);
}

/* A read that comes later is made in a new snapshot, and all earlier ones are made again in it. */
static void later_reads(void **state)
{
    struct around *a = *state;

    write_beside(a, "INSERT INTO t (id, n) VALUES ('a', 1), ('b', 1), ('c', 1)");
    assert_int_equal(hfd_db_begin_group(a->db, NULL), HFD_OK);
    assert_int_equal(get(a, &sql_get, "a"), -2);
    assert_true(look(a));
    write_beside(a, "UPDATE t SET n = 2");
    assert_int_equal(get(a, &sql_get, "a"), 1);
    assert_int_equal(get(a, &sql_get, "b"), -2);
    assert_true(look(a));
    assert_int_equal(get(a, &sql_get, "a"), 2);
    assert_int_equal(get(a, &sql_get, "b"), 2);
    write_beside(a, "UPDATE t SET n = 3");
    assert_int_equal(get(a, &sql_get, "c"), -2);
    assert_true(look(a)); /* from here on the snapshot stays */
    assert_int_equal(get(a, &sql_get, "a"), 2);
    assert_int_equal(get(a, &sql_get, "b"), 2);
    assert_int_equal(get(a, &sql_get, "c"), 2);
    assert_false(look(a));
    hfd_db_rollback(a->db);
    assert_int_equal(hfd_gather_counts(a->db).misses, 0);
}

/* A search is not gathered: it gets a snapshot with all that was read. */
static void searches_behind_reads(void **state)
{
    struct around *a = *state;
    struct hfd_stmt *st;
    bool row;

    write_beside(a, "INSERT INTO t (id, n) VALUES ('a', 1)");
    assert_int_equal(hfd_db_begin_group(a->db, NULL), HFD_OK);
    assert_int_equal(get(a, &sql_get, "a"), -2);
    assert_true(look(a));
    write_beside(a, "UPDATE t SET n = 2");
    assert_int_equal(get(a, &sql_get, "a"), 1);
    assert_int_equal(hfd_db_prepare_once(a->db, HFD_SLICE("SELECT max(n) FROM t"), &st, NULL),
                     HFD_BUSY);
    assert_true(look(a));
    assert_int_equal(get(a, &sql_get, "a"), 2);
    assert_int_equal(hfd_db_prepare_once(a->db, HFD_SLICE("SELECT max(n) FROM t"), &st, NULL),
                     HFD_OK);
    assert_int_equal(hfd_stmt_step(st, &row, NULL), HFD_OK);
    assert_true(row);
    assert_int_equal(hfd_stmt_col_i64(st, 0), 2);
    hfd_stmt_done(st);
    assert_false(look(a));
    hfd_db_rollback(a->db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_is_true),
        cmocka_unit_test(again),
        cmocka_unit_test(sets_do_the_same),
        cmocka_unit_test_setup_teardown(reads_of_a_group, open_around, close_around),
        cmocka_unit_test_setup_teardown(reads_behind_writes, open_around, close_around),
        cmocka_unit_test_setup_teardown(a_group_runs_alone, open_around, close_around),
        cmocka_unit_test_setup_teardown(usual_reads, open_around, close_around),
        cmocka_unit_test_setup_teardown(reads_alone, open_reads, close_around),
        cmocka_unit_test_setup_teardown(later_reads, open_reads, close_around),
        cmocka_unit_test_setup_teardown(searches_behind_reads, open_reads, close_around),
    };

    return cmocka_run_group_tests_name("gather", tests, NULL, NULL);
}
