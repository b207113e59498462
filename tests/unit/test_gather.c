/*
 * PostgreSQL's engine and statements: which writes change which results, which may be gathered.
 * SQLite is the judge: random statements run on both.
 */
#include "store/postgres/known.h"
#include "store/postgres/touch.h"
#include "store/postgres/writes.h"

#include "driver/base/check.h"
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

/* ---- what a text says ---- */

/* clang-format off */
static const struct {
    const char *sql;
    enum hfd_shape_kind kind;
    const char *tables;
    const char *equals;
} shapes[] = {
    {"SELECT a, b FROM t WHERE a = ?1", HFD_SHAPE_SELECT, "t ", "a=1 "},
    {"SELECT a FROM t WHERE a = ?1 AND b = ?2 ORDER BY c LIMIT ?3", HFD_SHAPE_SELECT, "t ", "a=1 b=2 "},
    {"SELECT a FROM t WHERE a = ?1 OR b = ?2", HFD_SHAPE_SELECT, "t ", ""},
    {"SELECT a FROM t WHERE a = ?1 AND b = ?2 OR c = 1", HFD_SHAPE_SELECT, "t ", ""},
    {"SELECT a FROM t WHERE (a = ?1 OR b = ?2) AND c = ?3", HFD_SHAPE_SELECT, "t ", "c=3 "},
    {"SELECT a FROM t WHERE a = ?1 AND b > ?2 AND NOT c = ?3", HFD_SHAPE_SELECT, "t ", "a=1 "},
    {"SELECT CASE WHEN b = ?2 AND a = ?1 THEN 1 END FROM t WHERE CASE WHEN a AND b = ?1 AND c THEN 1 END = 1 AND c = ?3",
     HFD_SHAPE_SELECT, "t ", "c=3 "},
    {"SELECT a FROM t WHERE a = '?1 OR' AND b = ?1", HFD_SHAPE_SELECT, "t ", "b=1 "},
    {"SELECT f.a FROM t f JOIN u ON u.x = f.a WHERE f.a = ?1", HFD_SHAPE_SELECT, "t u ", ""},
    {"SELECT a FROM t x, u WHERE a = ?1", HFD_SHAPE_SELECT, "t ", ""},
    {"SELECT MAX(n) FROM (SELECT MAX(s) AS n FROM h UNION ALL SELECT s FROM k WHERE one = ?1) AS e", HFD_SHAPE_SELECT, "h k ", ""},
    {"SELECT a FROM t WHERE a = ?1 AND NOT EXISTS (SELECT 1 FROM u WHERE u.x = ?2)", HFD_SHAPE_SELECT, "t u ", ""},
    {"INSERT INTO t (a, b, c) VALUES (?1, 'x', ?2)", HFD_SHAPE_INSERT, "t ", "a=1 c=2 "},
    {"INSERT INTO t (a, b) VALUES (?2, ?1) ON CONFLICT DO NOTHING", HFD_SHAPE_INSERT, "t ", "a=2 b=1 "},
    {"INSERT INTO t (a, b, n) VALUES (?1, ?2, ?3) ON CONFLICT (a, b) DO UPDATE SET n = t.n + excluded.n", HFD_SHAPE_UPSERT, "t ", "a=1 b=2 "},
    {"INSERT INTO t (one, n) VALUES (1, ?1) ON CONFLICT (one) DO UPDATE SET n = excluded.n", HFD_SHAPE_UPSERT, "t ", ""},
    {"INSERT INTO t (a, n) VALUES (?1, ?2) ON CONFLICT (a) DO UPDATE SET n = ?3", HFD_SHAPE_UPSERT, "t ", "a=1 "},
    {"INSERT INTO t (a) SELECT ?1 FROM t", HFD_SHAPE_INSERT, "t ", ""},
    {"INSERT INTO t (a) VALUES (?1) RETURNING a", HFD_SHAPE_INSERT, "t ", ""},
    {"INSERT INTO t (a, b) VALUES (?1, ?2 + 1)", HFD_SHAPE_INSERT, "t ", ""},
    {"UPDATE t SET b = ?2, c = c - 1 WHERE a = ?1", HFD_SHAPE_UPDATE, "t ", "a=1 "},
    {"UPDATE t SET a = ?2 WHERE a = ?1 AND b = ?3", HFD_SHAPE_UPDATE, "t ", "b=3 "},
    {"UPDATE t SET c = coalesce(b, ?2), b = ?3 WHERE a = ?1", HFD_SHAPE_UPDATE, "t ", "a=1 "},
    {"UPDATE t SET b = ?1", HFD_SHAPE_UPDATE, "t ", ""},
    {"UPDATE t SET b = (SELECT MAX(c) FROM u) WHERE a = ?1", HFD_SHAPE_UPDATE, "t u ", ""},
    {"DELETE FROM t WHERE a = ?1 AND b <= ?2", HFD_SHAPE_DELETE, "t ", "a=1 "},
    {"DELETE FROM t WHERE a = ?1 AND b <= (SELECT b FROM t WHERE a = ?1 LIMIT 1)", HFD_SHAPE_DELETE, "t ", ""},
    {"DELETE FROM t", HFD_SHAPE_DELETE, "t ", ""},
    {"WITH x AS (SELECT 1) SELECT 1 FROM x", HFD_SHAPE_OTHER, "x ", ""},
    {"PRAGMA a", HFD_SHAPE_OTHER, "", ""},
};
/* clang-format on */

static void texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct hfd_shape s;
        struct hfd_buf tables, equals;

        hfd_buf_init(&tables, 1000);
        hfd_buf_init(&equals, 1000);
        hfd_shape_read(shapes[i].sql, &s);
        for (size_t k = 0; k < s.table_count; k++)
            hfd_buf_addf(&tables, "%.*s ", HFD_SLICE_FMT(s.tables[k]));
        for (size_t k = 0; k < s.equal_count; k++)
            hfd_buf_addf(&equals, "%.*s=%d ", HFD_SLICE_FMT(s.equals[k].column), s.equals[k].param);
        if (s.kind != shapes[i].kind || !hfd_slice_is(hfd_buf_slice(&tables), shapes[i].tables) ||
            !hfd_slice_is(hfd_buf_slice(&equals), shapes[i].equals))
            fail_msg("%s: kind %d, tables %.*s, equals %.*s", shapes[i].sql, (int)s.kind,
                     HFD_SLICE_FMT(hfd_buf_slice(&tables)), HFD_SLICE_FMT(hfd_buf_slice(&equals)));
        hfd_buf_fini(&tables);
        hfd_buf_fini(&equals);
    }
}

/* ---- against SQLite ---- */

/* clang-format off */
static const char schema[] =
    "CREATE TABLE t (id TEXT PRIMARY KEY, kind BIGINT, name TEXT, n BIGINT);"
    "CREATE UNIQUE INDEX t_name ON t (kind, name);"
    "CREATE TABLE u (guresid TEXT, id TEXT, n BIGINT, PRIMARY KEY (guresid, id));";

static const char *const writes[] = {
    "INSERT INTO t (id, kind, name, n) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
    "INSERT INTO t (id, kind, name, n) VALUES (?1, ?2, ?1, ?4) ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n",
    "UPDATE t SET n = ?4 WHERE id = ?1",
    "UPDATE t SET n = n + ?4 WHERE kind = ?2 AND id = ?1",
    "UPDATE OR IGNORE t SET name = ?3 WHERE id = ?1",
    "UPDATE t SET n = n * 2 + ?4 WHERE kind = ?2",
    "DELETE FROM t WHERE id = ?1",
    "DELETE FROM t WHERE kind = ?2 AND n <= ?4",
    "INSERT INTO u (guresid, id, n) VALUES (?3, ?1, ?4) ON CONFLICT (guresid, id) DO UPDATE SET n = excluded.n",
    "UPDATE u SET n = ?4 WHERE guresid = ?3",
    "DELETE FROM u WHERE guresid = ?3 AND id = ?1",
    "DELETE FROM u WHERE guresid = ?3",
    "INSERT INTO u (guresid, id, n) SELECT name, id, n FROM t WHERE id = ?1 ON CONFLICT DO NOTHING",
};
static const char *const reads[] = {
    "SELECT id, kind, name, n FROM t WHERE id = ?1",
    "SELECT id, n FROM t WHERE kind = ?2 AND name = ?3",
    "SELECT id FROM t WHERE kind = ?2 ORDER BY id",
    "SELECT count(*) FROM t",
    "SELECT id, n FROM u WHERE guresid = ?3 ORDER BY id",
    "SELECT n FROM u WHERE guresid = ?3 AND id = ?1",
    "SELECT u.id FROM u JOIN t ON t.id = u.id WHERE u.guresid = ?3 ORDER BY 1",
    "SELECT sum(n) FROM (SELECT max(n) AS n FROM t UNION ALL SELECT max(n) FROM u WHERE id = ?1) AS s",
};
/* clang-format on */
#define WRITES (sizeof(writes) / sizeof(writes[0]))
#define READS (sizeof(reads) / sizeof(reads[0]))

static struct hfd_shape write_shapes[WRITES], read_shapes[READS];

static void read_shapes_once(void)
{
    for (size_t i = 0; i < WRITES; i++)
        hfd_shape_read(writes[i], &write_shapes[i]);
    for (size_t i = 0; i < READS; i++)
        hfd_shape_read(reads[i], &read_shapes[i]);
    /* PostgreSQL has no OR IGNORE: the shape is that of the text without it. */
    hfd_shape_read("UPDATE t SET name = ?3 WHERE id = ?1", &write_shapes[4]);
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
    known = hfd_known_find(k, reads[at], &use);
    hfd_buf_init(&now, 10000);
    judge(db, reads[at], p.values, &now);
    hfd_buf_addc(&now, '\0');
    if (known != NULL) {
        ++*found;
        if (strcmp(known->rows->cells[0].as.bytes.p, now.p) != 0)
            fail_msg("%s: known %s, but the database has %s", reads[at],
                     known->rows->cells[0].as.bytes.p, now.p);
    } else {
        const struct hfd_value cell = {.kind = HFD_VALUE_TEXT, .as.bytes = {now.p, now.len}};

        known = hfd_known_want(k, reads[at], &use);
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
                judge(db, writes[at], p.values, NULL);
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
    assert_non_null(hfd_known_want(&k, reads[0], &read));
    assert_int_equal(k.wanted_count, 1);
    assert_non_null(hfd_known_find(&k, reads[0], &read));
    assert_non_null(hfd_known_take_wanted(&k));
    assert_null(hfd_known_take_wanted(&k));
    hfd_known_write(&k, &write);
    assert_null(hfd_known_find(&k, reads[0], &read));
    hfd_known_again(&k);
    assert_non_null(hfd_known_find(&k, reads[0], &read));
    hfd_knowns_clear(&k);
    assert_null(hfd_known_find(&k, reads[0], &read));
    hfd_knowns_fini(&k);
}

/* PostgreSQL changes a row once in a statement. */
static bool share_row(const struct hfd_db_write *how, const struct hfd_value *a,
                      const struct hfd_value *b)
{
    bool same = how->keys > 0;

    for (int i = how->key - 1; i < how->key - 1 + how->keys; i++)
        same = same && hfd_value_is_same(&a[i], &b[i]);
    return same;
}

static void run_sets(sqlite3 *db, const struct hfd_writes *w, int *gathered)
{
    for (const struct hfd_write_table *t = w->first; t != NULL; t = t->next)
        for (const struct hfd_write_set *set = t->first; set != NULL; set = set->next) {
            *gathered += set->count > 1;
            for (const struct hfd_write *x = set->first; x != NULL; x = x->next) {
                judge(db, set->how.sql, x->values, NULL);
                for (const struct hfd_write *y = x->next; y != NULL; y = y->next)
                    assert_false(share_row(&set->how, x->values, y->values));
            }
            assert_true(set->count == 1 || set->how.set != NULL);
        }
}

/* Describes a write as the store does. The last one reads another table. */
static struct hfd_db_write told_of(size_t at)
{
    const bool settable = at == 0 || at == 1 || at == 2 || at == 6 || at == 8 || at == 10;
    const bool keyed = at == 1 || at == 2 || at == 8;

    return (struct hfd_db_write){.sql = writes[at],
                                 .set = settable ? "" : NULL,
                                 .table = at + 1 == WRITES ? NULL
                                          : at < 8         ? "t"
                                                           : "u",
                                 .key = 1,
                                 .keys = keyed ? 1 + 2 * (at == 8) : 0};
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
    int gathered = 0;

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct hfd_buf one, all;
        struct hfd_writes w;
        sqlite3 *a, *b;

        judge_open(&a);
        judge_open(&b);
        hfd_writes_init(&w);
        hfd_buf_init(&one, 10000);
        hfd_buf_init(&all, 10000);
        for (int step = 0; step < STEPS; step++) {
            const size_t at = (size_t)pick(pick(2) == 0 ? 4 : (int)WRITES);
            const struct hfd_db_write how = told_of(at);
            struct params p;

            make_params(&p);
            judge(a, writes[at], p.values, NULL);
            assert_int_equal(
                hfd_writes_add(&w, &(struct hfd_write_new){&how, p.values, 4, false}, NULL),
                HFD_OK);
        }
        run_sets(b, &w, &gathered);
        dump(a, &one);
        dump(b, &all);
        assert_string_equal(one.p, all.p);
        hfd_writes_fini(&w);
        hfd_buf_fini(&one);
        hfd_buf_fini(&all);
        (void)sqlite3_close(a);
        (void)sqlite3_close(b);
    }
    assert_true(gathered > ROUNDS);
}

/* ---- the engine, around SQLite ---- */

static const char sql_make[] = "CREATE TABLE t (id TEXT PRIMARY KEY, n BIGINT)";
static const char sql_get[] = "SELECT n FROM t WHERE id = ?1";
static const char sql_all[] = "SELECT count(*) FROM t";
static const char sql_add[] = "INSERT INTO t (id, n) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
static const char sql_set[] = "UPDATE t SET n = ?2 WHERE id = ?1";

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
static int64_t get(struct around *a, const char *sql, const char *id)
{
    struct hfd_stmt *st;
    bool row;
    int64_t n = -1;
    hfd_rc rc;

    assert_int_equal(hfd_db_prepare(a->db, sql, &st, NULL), HFD_OK);
    if (id != NULL)
        hfd_stmt_text(st, 1, hfd_slice_of(id));
    rc = hfd_stmt_step(st, &row, NULL);
    if (rc == HFD_OK && row)
        n = hfd_stmt_col_i64(st, 0);
    hfd_stmt_done(st);
    assert_true(rc == HFD_OK || rc == HFD_BUSY);
    return rc == HFD_OK ? n : -2;
}

static int64_t put(struct around *a, const char *sql, const char *id, int64_t n)
{
    struct hfd_stmt *st;
    int64_t changed;

    assert_int_equal(
        hfd_db_prepare_write(a->db, &(struct hfd_db_write){.sql = sql, .table = "t"}, &st, NULL),
        HFD_OK);
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
    assert_int_equal(get(a, sql_get, "a"), -2);
    assert_int_equal(put(a, sql_add, "b", 9), 1);
    assert_int_equal(get(a, sql_get, "c"), -2);
    assert_true(hfd_db_is_looking(a->db));
    assert_true(look(a));
    assert_int_equal(get(a, sql_get, "a"), -1);
    assert_int_equal(get(a, sql_get, "c"), -1);
    assert_int_equal(put(a, sql_add, "a", 1), 1);
    assert_int_equal(put(a, sql_add, "b", 2), 1);
    assert_int_equal(get(a, sql_get, "c"), -1); /* the writes are of other rows */
    assert_false(look(a));
    assert_int_equal(hfd_db_commit(a->db, NULL), HFD_OK);
    assert_int_equal(hfd_gather_counts(a->db).bursts, 2);
    assert_int_equal(hfd_gather_counts(a->db).looks, 1);
    assert_int_equal(hfd_gather_counts(a->db).misses, 0);
    assert_int_equal(get(a, sql_get, "a"), 1);
    assert_int_equal(get(a, sql_get, "b"), 2);
}

/* A result that a write of the group changes is read alone, behind the write. */
static void reads_behind_writes(void **state)
{
    struct around *a = *state;

    assert_int_equal(hfd_db_begin_group(a->db, NULL), HFD_OK);
    assert_int_equal(get(a, sql_all, NULL), -2);
    assert_true(look(a));
    assert_int_equal(get(a, sql_all, NULL), 0);
    assert_int_equal(put(a, sql_add, "a", 1), 1);
    assert_int_equal(get(a, sql_all, NULL), -2);
    assert_true(look(a));
    assert_int_equal(get(a, sql_all, NULL), 0);
    assert_int_equal(put(a, sql_add, "a", 1), 1);
    assert_int_equal(get(a, sql_all, NULL), 1);
    assert_false(look(a));
    assert_int_equal(hfd_gather_counts(a->db).misses, 1);
    hfd_db_rollback(a->db);
    assert_int_equal(get(a, sql_all, NULL), 0);
}

/* A write that does not do what is expected undoes the group; then each is sent on its own. */
static void a_group_runs_alone(void **state)
{
    struct around *a = *state;

    assert_int_equal(put(a, sql_add, "a", 1), 1);
    assert_int_equal(hfd_db_begin_group(a->db, NULL), HFD_OK);
    assert_int_equal(put(a, sql_add, "b", 2), 1);
    assert_int_equal(put(a, sql_add, "a", 2), 1); /* not known yet: it is there */
    assert_false(look(a));
    assert_int_equal(hfd_db_commit(a->db, NULL), HFD_BUSY);
    hfd_db_rollback(a->db);
    assert_int_equal(hfd_db_fate(a->db), HFD_DB_AGAIN);
    assert_int_equal(get(a, sql_all, NULL), 1);

    assert_int_equal(hfd_db_begin_group(a->db, NULL), HFD_OK);
    assert_int_equal(put(a, sql_add, "b", 2), 1);
    assert_int_equal(put(a, sql_add, "a", 2), 0);
    assert_int_equal(put(a, sql_set, "none", 2), 0);
    assert_false(look(a));
    assert_int_equal(hfd_db_commit(a->db, NULL), HFD_OK);
    assert_int_equal(get(a, sql_all, NULL), 2);
    assert_int_equal(get(a, sql_get, "a"), 1);
    assert_int_equal(hfd_gather_counts(a->db).alone, 1);
}

/* Reads without a text as parameter are made with the first burst of later groups. */
static void usual_reads(void **state)
{
    struct around *a = *state;

    assert_int_equal(hfd_db_begin_group(a->db, NULL), HFD_OK);
    assert_int_equal(get(a, sql_all, NULL), -2);
    assert_true(look(a));
    assert_int_equal(get(a, sql_all, NULL), 0);
    assert_false(look(a));
    assert_int_equal(hfd_db_commit(a->db, NULL), HFD_OK);
    assert_int_equal(hfd_db_begin_group(a->db, NULL), HFD_OK);
    assert_int_equal(get(a, sql_get, "a"), -2);
    assert_true(look(a));
    assert_int_equal(get(a, sql_get, "a"), -1);
    assert_int_equal(get(a, sql_all, NULL), 0);
    assert_false(look(a));
    assert_int_equal(hfd_db_commit(a->db, NULL), HFD_OK);
    assert_int_equal(hfd_db_begin_group(a->db, NULL), HFD_OK);
    assert_int_equal(hfd_db_exclusive(a->db, NULL), HFD_OK);
    assert_int_equal(get(a, sql_get, "a"), -2);
    assert_true(look(a));
    assert_int_equal(get(a, sql_all, NULL), -2); /* that of groups which may have roots */
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
    assert_int_equal(get(a, sql_get, "a"), -2);
    assert_int_equal(get(a, sql_get, "b"), -2);
    assert_true(look(a));
    write_beside(a, "UPDATE t SET n = 2"); /* nothing holds it up, and it is not seen */
    assert_int_equal(get(a, sql_get, "a"), 1);
    assert_int_equal(get(a, sql_get, "b"), -1);
    assert_false(look(a));
    hfd_db_rollback(a->db);
    assert_int_equal(hfd_gather_counts(a->db).bursts, 1);
    assert_int_equal(hfd_db_begin_group(a->db, NULL), HFD_OK);
    assert_int_equal(get(a, sql_get, "a"), -2);
    assert_true(look(a));
    assert_int_equal(get(a, sql_get, "a"), 2);
    hfd_db_rollback(a->db);
}

/* A read that comes later is made in a new snapshot, and all earlier ones are made again in it. */
static void later_reads(void **state)
{
    struct around *a = *state;

    write_beside(a, "INSERT INTO t (id, n) VALUES ('a', 1), ('b', 1), ('c', 1)");
    assert_int_equal(hfd_db_begin_group(a->db, NULL), HFD_OK);
    assert_int_equal(get(a, sql_get, "a"), -2);
    assert_true(look(a));
    write_beside(a, "UPDATE t SET n = 2");
    assert_int_equal(get(a, sql_get, "a"), 1);
    assert_int_equal(get(a, sql_get, "b"), -2);
    assert_true(look(a));
    assert_int_equal(get(a, sql_get, "a"), 2);
    assert_int_equal(get(a, sql_get, "b"), 2);
    write_beside(a, "UPDATE t SET n = 3");
    assert_int_equal(get(a, sql_get, "c"), -2);
    assert_true(look(a)); /* from here on the snapshot stays */
    assert_int_equal(get(a, sql_get, "a"), 2);
    assert_int_equal(get(a, sql_get, "b"), 2);
    assert_int_equal(get(a, sql_get, "c"), 2);
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
    assert_int_equal(get(a, sql_get, "a"), -2);
    assert_true(look(a));
    write_beside(a, "UPDATE t SET n = 2");
    assert_int_equal(get(a, sql_get, "a"), 1);
    assert_int_equal(hfd_db_prepare_once(a->db, HFD_SLICE("SELECT max(n) FROM t"), &st, NULL),
                     HFD_BUSY);
    assert_true(look(a));
    assert_int_equal(get(a, sql_get, "a"), 2);
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
        cmocka_unit_test(texts),
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
