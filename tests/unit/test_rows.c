/*
 * The row functions (store/rows_*.h) on a real database: what is written comes back, orders, pages,
 * uniqueness, damage.
 */
#include "store/row_io.h"
#include "store/row_walk.h"
#include "store/rows_fleet.h"
#include "store/rows_history.h"
#include "store/rows_remote.h"
#include "store/rows_report.h"
#include "store/rows_resource.h"
#include "store/search.h"

#include "driver/base/log.h"
#include "store/migrate.h"
#include "store/move.h"
#include "store/totals.h"
#include "store/txn.h"
#include "store/unit.h"
#include "tests/lib/place.h"
#include "tests/lib/tmpdir.h"
#include "tests/lib/touched.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* How rows are kept by the unit of work. */
enum kept_mode {
    NOT_KEPT, /* there is none: changes are written at once */
    KEPT,
    SCARCELY_KEPT, /* there is room for a few rows */
    NO_ROOM
};

static enum kept_mode keeping;

struct fixture {
    char base[TMPDIR_MAX];
    struct hfd_txn tx;
    struct hfd_unit unit;
    struct hfd_arena mem;
    struct hfd_err err;
};

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof(*fx));

    assert_non_null(fx);
    tmpdir_make(fx->base);
    assert_int_equal(test_db_open(fx->base, HFD_DB_WRITER, &fx->tx.db, NULL), HFD_OK);
    assert_int_equal(hfd_migrate(fx->tx.db, hfd_migrations, hfd_migrations_count, NULL), HFD_OK);
    assert_int_equal(hfd_db_begin(fx->tx.db, NULL), HFD_OK);
    fx->tx.writable = true;
    assert_int_equal(hfd_unit_init(&fx->unit, HFD_UNIT_BYTES_MAX, NULL), HFD_OK);
    if (keeping != NOT_KEPT)
        fx->tx.unit = &fx->unit;
    if (keeping == SCARCELY_KEPT)
        fx->unit.used_bytes = HFD_UNIT_BYTES_MAX - 1200;
    if (keeping == NO_ROOM)
        fx->unit.used_bytes = HFD_UNIT_BYTES_MAX;
    hfd_arena_init(&fx->mem, 4 << 20);
    *state = fx;
    return 0;
}

#define SAME(member) assert_int_equal(a->member, b->member)

/* Numbers one by one, as the room between members may hold anything. */
static void assert_same_fleet(const struct hfd_fleet_row *a, const struct hfd_fleet_row *b)
{
    SAME(seq), SAME(kind), SAME(generation), SAME(ready), SAME(ready_seen_us);
    SAME(pending_us);
    SAME(observer_idle), SAME(created_us), SAME(updated_us), SAME(deleted_us);
}

static void assert_same_report(const struct hfd_report_row *a, const struct hfd_report_row *b)
{
    SAME(observed_generation), SAME(observed_us), SAME(created_us), SAME(received_us);
}

static void assert_same_resource(const struct hfd_resource_row *a, const struct hfd_resource_row *b)
{
    SAME(kind), SAME(state), SAME(op_started_us), SAME(op_estimate_us), SAME(op_deadline_us);
    SAME(created_us), SAME(updated_us), SAME(degraded), SAME(op), SAME(op_size);
}

/* Texts are the same; then neither row has them. */
static void take_same_texts(const struct hfd_table *table, void *a, void *b)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct hfd_col *col = &table->cols[i];
        hfd_slice *is = (hfd_slice *)(void *)((char *)a + col->at);
        hfd_slice *was = (hfd_slice *)(void *)((char *)b + col->at);

        if (!hfd_col_is_text(col))
            continue;
        assert_true((is->p == NULL) == (was->p == NULL) && hfd_slice_eq(*is, *was));
        *is = *was = HFD_SLICE_NONE;
    }
}

/* The database shows what the unit of work keeps. */
static void assert_stored(struct fixture *fx, const struct hfd_kept *k)
{
    struct hfd_txn tx = {.db = fx->tx.db};
    union {
        struct hfd_fleet_row fleet;
        struct hfd_report_row report;
        struct hfd_resource_row resource;
    } row = {.resource = {.created_us = 0}};
    hfd_rc rc;

    if (k->form == NULL || k->all || k->head || k->form->table == HFD_UNIT_PART ||
        k->form->table == HFD_UNIT_CHILD)
        return;
    if (k->form->table == HFD_UNIT_FLEET)
        rc = hfd_fleet_row_get(&tx, k->key.first, &fx->mem, &row.fleet, NULL);
    else if (k->form->table == HFD_UNIT_RESOURCE)
        rc = hfd_resource_row_get(&tx, k->key.first, &fx->mem, &row.resource, NULL);
    else
        rc = hfd_report_row_get(&tx, &(struct hfd_report_key){k->key.first, k->key.second},
                                &fx->mem, &row.report, NULL);
    assert_int_equal(rc, k->row != NULL ? HFD_OK : HFD_NOT_FOUND);
    if (k->row == NULL)
        return;
    take_same_texts(k->form->rows, &row, k->row);
    if (k->form->table == HFD_UNIT_FLEET)
        assert_same_fleet(&row.fleet, k->row);
    else if (k->form->table == HFD_UNIT_RESOURCE)
        assert_same_resource(&row.resource, k->row);
    else
        assert_same_report(&row.report, k->row);
}

/* Writes what is kept, and forgets it: the next reads ask the database. */
static void write_and_forget(struct fixture *fx)
{
    assert_int_equal(hfd_unit_write(&fx->tx, NULL), HFD_OK);
    for (size_t t = 0; fx->tx.unit != NULL && t < HFD_UNIT_TABLES; t++)
        for (const struct hfd_kept *k = fx->unit.tables[t]; k != NULL; k = k->in_table)
            assert_stored(fx, k);
    hfd_unit_forget(&fx->tx);
}

static int teardown(void **state)
{
    struct fixture *fx = *state;

    write_and_forget(fx);
    hfd_unit_fini(&fx->unit);
    hfd_arena_fini(&fx->mem);
    hfd_db_rollback(fx->tx.db);
    hfd_db_close(&fx->tx.db);
    tmpdir_remove(fx->base);
    free(fx);
    return 0;
}

#define S HFD_SLICE

static struct hfd_fleet_row cluster(const char *id, const char *name, int64_t created_us)
{
    return (struct hfd_fleet_row){
        .id = hfd_slice_of(id),
        .kind = HFD_KIND_CLUSTER,
        .name = hfd_slice_of(name),
        .generation = 1,
        .spec = S("{}"),
        .labels = S("{}"),
        .conditions = S("[]"),
        .created_us = created_us,
        .updated_us = created_us,
        .created_by = S("a@b"),
        .updated_by = S("a@b"),
    };
}

static struct hfd_fleet_row nodepool(const char *id, const char *owner, const char *name,
                                     int64_t created_us)
{
    struct hfd_fleet_row row = cluster(id, name, created_us);

    row.kind = HFD_KIND_NODEPOOL;
    row.owner_id = hfd_slice_of(owner);
    return row;
}

static void assert_slice(hfd_slice got, hfd_slice expected)
{
    if (!hfd_slice_eq(got, expected))
        fail_msg("got \"%.*s\", expected \"%.*s\"", HFD_SLICE_FMT(got), HFD_SLICE_FMT(expected));
}

static void assert_fleet_equal(const struct hfd_fleet_row *a, const struct hfd_fleet_row *b)
{
    assert_true(a->seq == b->seq);
    assert_slice(a->id, b->id);
    assert_int_equal(a->kind, b->kind);
    assert_slice(a->owner_id, b->owner_id);
    assert_slice(a->name, b->name);
    assert_true(a->generation == b->generation);
    assert_slice(a->spec, b->spec);
    assert_slice(a->labels, b->labels);
    assert_slice(a->conditions, b->conditions);
    assert_int_equal(a->ready, b->ready);
    assert_true(a->ready_seen_us == b->ready_seen_us);
    assert_true(a->pending_us == b->pending_us);
    assert_true(a->observer_idle == b->observer_idle);
    assert_true(a->created_us == b->created_us);
    assert_true(a->updated_us == b->updated_us);
    assert_true(a->deleted_us == b->deleted_us);
    assert_slice(a->created_by, b->created_by);
    assert_slice(a->updated_by, b->updated_by);
    assert_slice(a->deleted_by, b->deleted_by);
    assert_int_equal(a->due_seq, b->due_seq);
    assert_slice(a->trace, b->trace);
}

/* @return its number */
static int64_t add(struct fixture *fx, struct hfd_fleet_row row)
{
    if (hfd_fleet_row_insert(&fx->tx, &row, &fx->err) != HFD_OK)
        fail_msg("%s", fx->err.msg);
    return row.seq;
}

/* "b a" for the ids of a list in order. */
static void assert_ids(const struct hfd_fleet_list *list, const char *expected)
{
    char got[256] = "";
    size_t len = 0;

    for (size_t i = 0; i < list->count; i++)
        len += (size_t)snprintf(got + len, sizeof(got) - len, "%s%.*s", i == 0 ? "" : " ",
                                HFD_SLICE_FMT(list->rows[i].id));
    assert_string_equal(got, expected);
}

/*
 * Every column of a HyperFleet resource comes back, after insert and after update; an update
 * changes all that may change.
 */
static void fleet_row_comes_back_whole(void **state)
{
    struct fixture *fx = *state;
    struct hfd_fleet_row row = nodepool("p1", "c1", "pool", 11);
    struct hfd_fleet_row got;

    row.spec = S("{\"a\":\"\\u0000\"}");
    row.ready = true;
    row.ready_seen_us = 10;
    row.pending_us = 9;
    row.observer_idle = -3;
    row.seq = add(fx, row);
    assert_true(row.seq > 0);
    assert_int_equal(hfd_fleet_row_at(&fx->tx, row.seq, &fx->mem, &got, NULL), HFD_OK);
    assert_fleet_equal(&got, &row);
    assert_int_equal(hfd_fleet_row_at(&fx->tx, row.seq + 1, &fx->mem, &got, NULL), HFD_NOT_FOUND);
    assert_int_equal(hfd_fleet_row_get(&fx->tx, S("p1"), &fx->mem, &got, NULL), HFD_OK);
    assert_fleet_equal(&got, &row);

    row.name = S("other");
    row.generation = INT64_MAX;
    row.spec = S("{\"b\":2}");
    row.labels = S("{\"l\":\"v\"}");
    row.conditions = S("[{}]");
    row.ready = false;
    row.ready_seen_us = INT64_MAX;
    row.pending_us = 8;
    row.updated_us = 12;
    row.deleted_us = 13;
    row.updated_by = S("u");
    row.deleted_by = S("d");
    assert_int_equal(hfd_fleet_row_update(&fx->tx, &row, NULL), HFD_OK);
    assert_int_equal(hfd_fleet_row_get(&fx->tx, S("p1"), &fx->mem, &got, NULL), HFD_OK);
    row.observer_idle = 0;
    assert_fleet_equal(&got, &row);
}

/*
 * A judgement changes conditions and told. It also changes what it says of Ready and Reconciled, if
 * that moved, and nothing else.
 */
static void judgement_changes_conditions_alone(void **state)
{
    struct fixture *fx = *state;
    struct hfd_fleet_row row = nodepool("p1", "c1", "pool", 11), judged = row;
    struct hfd_fleet_row got;

    row.seq = add(fx, row);
    row.conditions = judged.conditions = S("[{}]");
    row.observer_idle = judged.observer_idle = 5;
    judged.ready = true;
    judged.ready_seen_us = 77;
    judged.name = S("other");
    judged.generation = 7;
    judged.updated_us = judged.deleted_us = 12;
    assert_int_equal(hfd_fleet_row_judged(&fx->tx, &judged, &judged, NULL), HFD_OK);
    assert_int_equal(hfd_fleet_row_get(&fx->tx, S("p1"), &fx->mem, &got, NULL), HFD_OK);
    assert_fleet_equal(&got, &row);
    assert_int_equal(hfd_fleet_row_judged(&fx->tx, &judged, &row, NULL), HFD_OK);
    row.ready = true;
    row.ready_seen_us = 77;
    assert_int_equal(hfd_fleet_row_get(&fx->tx, S("p1"), &fx->mem, &got, NULL), HFD_OK);
    assert_fleet_equal(&got, &row);
    judged.pending_us = 78;
    assert_int_equal(hfd_fleet_row_judged(&fx->tx, &judged, &row, NULL), HFD_OK);
    row.pending_us = 78;
    write_and_forget(fx);
    assert_int_equal(hfd_fleet_row_get(&fx->tx, S("p1"), &fx->mem, &got, NULL), HFD_OK);
    assert_fleet_equal(&got, &row);
}

/* Resources that are not reconciled are counted by kind and deletion; those that are, are not. */
static void unreconciled_are_counted(void **state)
{
    static const struct {
        const char *id;
        int64_t pending_us, deleted_us;
        bool ready;
    } rows[] = {{"c1", 10, 0, false},
                {"c2", 20, 0, false},
                {"c3", 30, 5, true},
                {"c4", 0, 0, false},
                {"c5", 0, 0, true}};
    struct fixture *fx = *state;
    struct hfd_unreconciled_counts counts;
    const struct hfd_unreconciled *serving = &counts.of[HFD_KIND_CLUSTER][0],
                                  *deleted = &counts.of[HFD_KIND_CLUSTER][1];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hfd_fleet_row row = cluster(rows[i].id, rows[i].id, 1);

        row.pending_us = rows[i].pending_us;
        row.deleted_us = rows[i].deleted_us;
        row.ready = rows[i].ready;
        add(fx, row);
    }
    assert_int_equal(hfd_fleet_row_unreconciled(&fx->tx, 20, &fx->mem, &counts, NULL), HFD_OK);
    assert_int_equal(serving->count, 2);
    assert_int_equal(serving->stuck, 1);
    assert_int_equal(serving->oldest_us, 10);
    assert_int_equal(deleted->count, 1);
    assert_int_equal(deleted->stuck, 0);
    assert_int_equal(deleted->oldest_us, 30);
    assert_int_equal(counts.of[HFD_KIND_NODEPOOL][0].count, 0);
    assert_true(counts.of[HFD_KIND_NODEPOOL][1].oldest_us == INT64_MAX);
}

/* The counts of a scrape read an index, and no row. */
static void scrapes_read_an_index(void **state)
{
    static const char *const queries[][2] = {
        {"EXPLAIN QUERY PLAN SELECT +kind AS of_kind, CASE WHEN deleted_us > 0 THEN 1 ELSE 0 END "
         "AS "
         "deleting, count(*), min(pending_us) FROM fleet WHERE pending_us > 0 "
         "GROUP BY of_kind, deleting",
         "COVERING INDEX fleet_pending"},
        {"EXPLAIN QUERY PLAN SELECT MIN(op_started_us) FROM resource WHERE state = ?1 AND state IN "
         "(1, 2, 5)",
         "COVERING INDEX resource_operating"},
        {"EXPLAIN QUERY PLAN SELECT seq FROM fleet WHERE ready = 0 AND (created_us, seq) > (?1, ?2)"
         " ORDER BY created_us, seq LIMIT 5",
         "INDEX fleet_pending"},
    };
    struct fixture *fx = *state;

    if (test_on_postgres())
        skip(); /* the plan is of SQLite */
    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
        struct hfd_stmt *st;
        hfd_slice plan;
        bool row;

        assert_int_equal(hfd_db_prepare(fx->tx.db, queries[i][0], &st, NULL), HFD_OK);
        assert_int_equal(hfd_stmt_step(st, &row, NULL), HFD_OK);
        assert_true(row);
        plan = hfd_stmt_col_text(st, 3, &fx->mem);
        if (strstr(plan.p, queries[i][1]) == NULL)
            fail_msg("%s: %s", queries[i][0], plan.p);
        hfd_stmt_done(st);
    }
}

static struct hfd_resource_row operating(const char *guresid, int state, int64_t started_us)
{
    return (struct hfd_resource_row){.guresid = hfd_slice_of(guresid),
                                     .type = S("org/t"),
                                     .kind = HFD_KIND_CLUSTER,
                                     .state = state,
                                     .incarnation = S("i"),
                                     .op_started_us = started_us};
}

/* An operation is stuck when it takes longer than twice its first estimate, and than a limit. */
static void stuck_operations_are_counted(void **state)
{
    static const struct {
        int state;
        int64_t expected_us, estimate_us, deadline_us, now_us, count;
    } cases[] = {
        {1, 130, 150, 1000, 160, 0}, /* twice 30 is 60: not longer */
        {1, 130, 150, 1000, 161, 1}, /* one more; the later estimate does not count */
        {1, 0, 150, 1000, 161, 0},   /* a row of an older version has no first estimate */
        {1, 0, 150, 1000, 201, 1},
        {1, 110, 110, 1000, 140, 0}, /* not before the limit, which is 40 */
        {1, 110, 110, 1000, 141, 1},
        {2, 110, 110, 141, 141, 0},  /* a passed deadline ends an update */
        {5, 110, 110, 141, 141, 1},  /* and no deletion */
        {3, 110, 110, 1000, 141, 0}, /* nothing is in progress */
    };
    struct fixture *fx = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hfd_resource_row row = operating("a", cases[i].state, 100);
        const struct hfd_resource_stuck query = {cases[i].state, cases[i].now_us, 40};
        int64_t n = -1;

        row.op_expected_us = cases[i].expected_us;
        row.op_estimate_us = cases[i].estimate_us;
        row.op_deadline_us = cases[i].deadline_us;
        assert_int_equal(hfd_resource_row_put(&fx->tx, &row, NULL), HFD_OK);
        assert_int_equal(hfd_resource_row_stuck(&fx->tx, &query, &n, NULL), HFD_OK);
        if (n != cases[i].count)
            fail_msg("case %zu: %lld are stuck", i, (long long)n);
        assert_int_equal(hfd_resource_row_delete(&fx->tx, row.guresid, NULL), HFD_OK);
    }
}

/* The oldest operation is that of the state asked for. */
static void oldest_operation_is_found(void **state)
{
    struct fixture *fx = *state;
    const struct hfd_resource_row rows[] = {operating("a", 1, 30), operating("b", 1, 20),
                                            operating("c", 5, 10), operating("d", 3, 1)};
    int64_t at_us;

    assert_int_equal(hfd_resource_row_oldest(&fx->tx, 1, &at_us, NULL), HFD_OK);
    assert_int_equal(at_us, 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(hfd_resource_row_put(&fx->tx, &rows[i], NULL), HFD_OK);
    assert_int_equal(hfd_resource_row_oldest(&fx->tx, 1, &at_us, NULL), HFD_OK);
    assert_int_equal(at_us, 20);
    assert_int_equal(hfd_resource_row_oldest(&fx->tx, 5, &at_us, NULL), HFD_OK);
    assert_int_equal(at_us, 10);
    assert_int_equal(hfd_resource_row_oldest(&fx->tx, 2, &at_us, NULL), HFD_OK);
    assert_int_equal(at_us, 0);
}

static void put_total(struct fixture *fx, int kind, int n)
{
    char sql[160];

    (void)snprintf(sql, sizeof(sql),
                   "INSERT INTO fleet_count (kind, field, name, value, n) VALUES (%d, 2, 'team', "
                   "'blue', %d)",
                   kind, n);
    assert_int_equal(hfd_db_exec(fx->tx.db, sql, NULL), HFD_OK);
}

static int64_t rows_of_totals(struct fixture *fx)
{
    static const char sql[] = "SELECT count(*) FROM fleet_count";
    struct hfd_stmt *st;
    int64_t n;

    assert_int_equal(hfd_db_prepare(fx->tx.db, sql, &st, NULL), HFD_OK);
    assert_int_equal(hfd_row_number(st, -1, &n, NULL), HFD_OK);
    return n;
}

/* A total is the sum over all slots. Folding brings them to slot 0, and a total of 0 is gone. */
static void totals_have_slots(void **state)
{
    const struct hfd_count_key key = {HFD_KIND_CLUSTER, HFD_COUNT_LABEL, S("team"), S("blue")};
    struct fixture *fx = *state;
    int64_t n;

    for (int left = 0; left < 3; left++) {
        put_total(fx, 1, left - 7);
        put_total(fx, 1 + 16, 2);
        put_total(fx, 1 + 7 * 16, 5);
        for (int folded = 0; folded < 2; folded++) {
            assert_int_equal(hfd_totals_get(&fx->tx, &key, &n, NULL), HFD_OK);
            assert_int_equal(n, left);
            if (folded == 0)
                assert_int_equal(hfd_totals_fold(&fx->tx, NULL), HFD_OK);
        }
        assert_int_equal(rows_of_totals(fx), left > 0);
        if (left > 0)
            assert_int_equal(hfd_totals_add(&fx->tx, &key, -left, NULL), HFD_OK);
        assert_int_equal(rows_of_totals(fx), 0);
    }
}

/* Totals are by type without its organisation, and a total of 0 is gone. */
static void resources_have_totals(void **state)
{
    struct fixture *fx = *state;
    struct hfd_resource_row row = operating("a", 1, 30);
    struct hfd_resource_totals totals;

    assert_int_equal(hfd_resource_row_count(&fx->tx, &row, 1, 1, NULL), HFD_OK);
    row.type = S("t");
    assert_int_equal(hfd_resource_row_count(&fx->tx, &row, 1, 1, NULL), HFD_OK);
    row.type = S("other");
    assert_int_equal(hfd_resource_row_count(&fx->tx, &row, 3, 1, NULL), HFD_OK);
    assert_int_equal(hfd_resource_row_count(&fx->tx, &row, 3, -1, NULL), HFD_OK);
    assert_int_equal(hfd_totals_resources(&fx->tx, &fx->mem, &totals, NULL), HFD_OK);
    assert_int_equal(totals.count, 1);
    assert_slice(totals.rows[0].type, S("t"));
    assert_int_equal(totals.rows[0].state, 1);
    assert_int_equal(totals.rows[0].n, 2);
}

/* An absent row is HFD_NOT_FOUND, and removing it is no failure. */
static void absent_rows_are_not_found(void **state)
{
    struct fixture *fx = *state;
    struct hfd_fleet_row row = cluster("c1", "n", 1);
    struct hfd_resource_row res;
    struct hfd_part_row part;
    struct hfd_part_list parts;
    struct hfd_report_list reports;

    assert_int_equal(hfd_fleet_row_get(&fx->tx, S("c1"), &fx->mem, &row, &fx->err), HFD_NOT_FOUND);
    assert_int_equal(fx->err.rc, HFD_NOT_FOUND);
    assert_int_equal(hfd_fleet_row_get(&fx->tx, HFD_SLICE_NONE, &fx->mem, &row, NULL),
                     HFD_NOT_FOUND);
    assert_int_equal(hfd_fleet_row_update(&fx->tx, &row, NULL), HFD_NOT_FOUND);
    assert_int_equal(hfd_fleet_row_judged(&fx->tx, &row, &row, NULL), HFD_NOT_FOUND);
    assert_int_equal(
        hfd_fleet_row_by_name(&fx->tx, &(struct hfd_fleet_name){HFD_KIND_CLUSTER, S(""), S("n")},
                              &fx->mem, &row, NULL),
        HFD_NOT_FOUND);
    assert_int_equal(hfd_resource_row_get(&fx->tx, S("g"), &fx->mem, &res, NULL), HFD_NOT_FOUND);
    assert_int_equal(hfd_part_row_by_fleet(&fx->tx, S("c1"), &fx->mem, &part, NULL), HFD_NOT_FOUND);
    assert_int_equal(hfd_part_row_list(&fx->tx, S("g"), &fx->mem, &parts, NULL), HFD_OK);
    assert_int_equal(parts.count, 0);
    assert_int_equal(hfd_report_row_list(&fx->tx, &(struct hfd_report_query){S("c1"), .limit = 9},
                                         &fx->mem, &reports, NULL),
                     HFD_OK);
    assert_int_equal(reports.count, 0);
    assert_int_equal(hfd_fleet_row_delete(&fx->tx, S("c1"), NULL), HFD_OK);
    assert_int_equal(hfd_resource_row_delete(&fx->tx, S("g"), NULL), HFD_OK);
    assert_int_equal(hfd_part_row_delete(&fx->tx, S("g"), S("c1"), NULL), HFD_OK);
}

/* A live name is unique in its kind and cluster; one being deleted frees it. */
static void names_are_unique_among_the_living(void **state)
{
    struct fixture *fx = *state;
    struct hfd_fleet_row dead = cluster("c1", "n", 1);
    struct hfd_fleet_row row, got;

    add(fx, dead);
    row = cluster("c2", "n", 2);
    assert_int_equal(hfd_fleet_row_insert(&fx->tx, &row, &fx->err), HFD_CONFLICT);
    row = cluster("c1", "other", 2);
    assert_int_equal(hfd_fleet_row_insert(&fx->tx, &row, &fx->err), HFD_CONFLICT);
    add(fx, nodepool("p1", "c1", "n", 3));
    add(fx, nodepool("p2", "c2", "n", 3));
    add(fx, cluster("c3", "m", 4));
    row = cluster("c3", "n", 4);
    if (!test_on_postgres()) /* there it ends the transaction */
        assert_int_equal(hfd_fleet_row_update(&fx->tx, &row, &fx->err), HFD_CONFLICT);
    dead.deleted_us = 5;
    assert_int_equal(hfd_fleet_row_update(&fx->tx, &dead, NULL), HFD_OK);
    assert_int_equal(
        hfd_fleet_row_by_name(&fx->tx,
                              &(struct hfd_fleet_name){HFD_KIND_CLUSTER, HFD_SLICE_NONE, S("n")},
                              &fx->mem, &got, NULL),
        HFD_NOT_FOUND);
    add(fx, cluster("c2", "n", 6));
    assert_int_equal(
        hfd_fleet_row_by_name(&fx->tx,
                              &(struct hfd_fleet_name){HFD_KIND_CLUSTER, HFD_SLICE_NONE, S("n")},
                              &fx->mem, &got, NULL),
        HFD_OK);
    assert_slice(got.id, S("c2"));
    assert_int_equal(
        hfd_fleet_row_by_name(&fx->tx, &(struct hfd_fleet_name){HFD_KIND_NODEPOOL, S("c2"), S("n")},
                              &fx->mem, &got, NULL),
        HFD_OK);
    assert_slice(got.id, S("p2"));
}

/* The nodepools of a cluster, oldest first, with those being deleted, and no others. */
static void children_come_oldest_first(void **state)
{
    struct fixture *fx = *state;
    struct hfd_fleet_row dying = nodepool("p4", "c1", "d", 1);
    struct hfd_fleet_list list;

    dying.deleted_us = 9;
    add(fx, cluster("c1", "n", 1));
    add(fx, nodepool("p3", "c1", "a", 3));
    add(fx, nodepool("p1", "c1", "b", 3));
    add(fx, nodepool("p2", "c1", "c", 2));
    add(fx, nodepool("p5", "c2", "a", 1));
    add(fx, dying);
    assert_int_equal(hfd_fleet_row_children(&fx->tx, S("c1"), &fx->mem, &list, NULL), HFD_OK);
    assert_ids(&list, "p4 p2 p3 p1");
    assert_true(list.total == 4);
    assert_int_equal(hfd_fleet_row_children(&fx->tx, S("c9"), &fx->mem, &list, NULL), HFD_OK);
    assert_ids(&list, "");
    assert_null(list.rows);
}

/* The list as the database has it, once all changes are written, is the one from memory. */
static void assert_children(struct fixture *fx, const char *ids)
{
    struct hfd_txn reader = {.db = fx->tx.db};
    struct hfd_fleet_list list, stored;

    assert_int_equal(hfd_fleet_row_children(&fx->tx, S("c1"), &fx->mem, &list, NULL), HFD_OK);
    assert_ids(&list, ids);
    assert_int_equal(hfd_unit_write(&fx->tx, NULL), HFD_OK);
    assert_int_equal(hfd_fleet_row_children(&reader, S("c1"), &fx->mem, &stored, NULL), HFD_OK);
    assert_ids(&stored, ids);
    for (size_t i = 0; i < list.count; i++)
        assert_fleet_equal(&list.rows[i], &stored.rows[i]);
}

/* A second list of the same job sees what the job changed since the first one. */
static void children_follow_changes(void **state)
{
    struct fixture *fx = *state;
    struct hfd_fleet_row renamed = nodepool("p2", "c1", "z", 2);
    struct hfd_fleet_row marked = nodepool("p1", "c1", "a", 1);
    struct hfd_fleet_row judged = nodepool("p3", "c1", "c", 3), was = judged;

    add(fx, cluster("c1", "n", 1));
    add(fx, marked);
    add(fx, nodepool("p2", "c1", "b", 2));
    add(fx, judged);
    write_and_forget(fx);
    marked.generation = 2; /* before the first list */
    assert_int_equal(hfd_fleet_row_update(&fx->tx, &marked, NULL), HFD_OK);
    assert_children(fx, "p1 p2 p3");
    marked.deleted_us = 7;
    marked.deleted_by = S("a@b");
    assert_int_equal(hfd_fleet_row_update(&fx->tx, &marked, NULL), HFD_OK);
    assert_children(fx, "p1 p2 p3");
    assert_int_equal(hfd_fleet_row_update(&fx->tx, &renamed, NULL), HFD_OK);
    assert_children(fx, "p1 p2 p3");
    judged.ready = true;
    judged.ready_seen_us = 5;
    assert_int_equal(hfd_fleet_row_judged(&fx->tx, &judged, &was, NULL), HFD_OK);
    assert_children(fx, "p1 p2 p3");
    add(fx, nodepool("p0", "c1", "d", 1));
    add(fx, nodepool("q1", "c2", "d", 1));
    assert_children(fx, "p1 p0 p2 p3");
    assert_int_equal(hfd_fleet_row_delete(&fx->tx, S("p2"), NULL), HFD_OK);
    assert_children(fx, "p1 p0 p3");
    hfd_unit_forget(&fx->tx);
    assert_int_equal(hfd_fleet_row_delete(&fx->tx, S("p1"), NULL), HFD_OK); /* not read before */
    assert_children(fx, "p0 p3");
}

/* Pages: newest first, whole total, every offset; of one cluster or of all. */
static void pages_come_newest_first(void **state)
{
    static const struct {
        enum hfd_kind kind;
        const char *owner;
        int64_t offset, limit;
        const char *ids;
        int64_t total;
    } rows[] = {
        {HFD_KIND_CLUSTER, "", 0, 100, "c3 c2 c1", 3}, {HFD_KIND_CLUSTER, "", 0, 2, "c3 c2", 3},
        {HFD_KIND_CLUSTER, "", 2, 2, "c1", 3},         {HFD_KIND_CLUSTER, "", 3, 2, "", 3},
        {HFD_KIND_CLUSTER, "", 0, 0, "", 3},           {HFD_KIND_NODEPOOL, "", 0, 9, "p3 p2 p1", 3},
        {HFD_KIND_NODEPOOL, "c1", 0, 9, "p2 p1", 2},   {HFD_KIND_NODEPOOL, "c1", 1, 1, "p1", 2},
        {HFD_KIND_NODEPOOL, "c3", 0, 9, "", 0},
    };
    struct fixture *fx = *state;

    add(fx, cluster("c1", "a", 1));
    add(fx, cluster("c2", "b", 5)); /* of the same moment as c3 */
    add(fx, cluster("c3", "c", 5));
    add(fx, nodepool("p1", "c1", "a", 1));
    add(fx, nodepool("p2", "c1", "b", 2));
    add(fx, nodepool("p3", "c2", "a", 3));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hfd_fleet_list list;

        const struct hfd_fleet_query query = {.kind = rows[i].kind,
                                              .owner_id = hfd_slice_of(rows[i].owner),
                                              .offset = rows[i].offset,
                                              .limit = rows[i].limit};

        if (hfd_fleet_row_search(&fx->tx, &query, &fx->mem, &list, &fx->err) != HFD_OK)
            fail_msg("%s", fx->err.msg);
        assert_ids(&list, rows[i].ids);
        assert_true(list.total == rows[i].total);
    }
}

/*
 * Resources that are not ready come oldest first. The next page goes on behind the last one seen,
 * also among equals.
 */
static void pending_goes_on_behind_the_last(void **state)
{
    struct fixture *fx = *state;
    struct hfd_fleet_row ready = cluster("c9", "r", 1);
    struct hfd_fleet_list list;
    int64_t c1, p2;

    ready.ready = true;
    add(fx, ready);
    c1 = add(fx, cluster("c1", "a", 2));
    add(fx, cluster("c3", "b", 2));
    p2 = add(fx, nodepool("p2", "c1", "a", 2));
    add(fx, cluster("c4", "d", 1));
    assert_int_equal(hfd_fleet_row_pending(&fx->tx, &(struct hfd_pending_query){0, 0, 2, false},
                                           &fx->mem, &list, NULL),
                     HFD_OK);
    assert_ids(&list, "c4 c1");
    assert_int_equal(hfd_fleet_row_pending(&fx->tx, &(struct hfd_pending_query){2, c1, 2, false},
                                           &fx->mem, &list, NULL),
                     HFD_OK);
    assert_ids(&list, "c3 p2");
    assert_int_equal(hfd_fleet_row_pending(&fx->tx, &(struct hfd_pending_query){2, p2, 2, false},
                                           &fx->mem, &list, NULL),
                     HFD_OK);
    assert_ids(&list, "");
}

/* Long lists grow; a ceiling on memory is answered, not crossed. */
static void long_lists_grow(void **state)
{
    struct fixture *fx = *state;
    struct hfd_arena tiny;
    struct hfd_fleet_list list;
    char ids[200][8];

    for (size_t i = 0; i < 200; i++) {
        (void)snprintf(ids[i], sizeof(ids[i]), "p%03zu", i);
        add(fx, nodepool(ids[i], "c1", ids[i], 1));
    }
    assert_int_equal(hfd_fleet_row_children(&fx->tx, S("c1"), &fx->mem, &list, NULL), HFD_OK);
    assert_int_equal(list.count, 200);
    for (size_t i = 0; i < 200; i++)
        assert_slice(list.rows[i].id, hfd_slice_of(ids[i]));
    for (size_t max = 0; max < 8192; max = max * 2 + 64) {
        hfd_arena_init(&tiny, max);
        assert_int_equal(hfd_fleet_row_children(&fx->tx, S("c1"), &tiny, &list, &fx->err),
                         HFD_NOMEM);
        assert_null(list.rows);
        assert_int_equal(list.count, 0);
        hfd_arena_fini(&tiny);
    }
}

/*
 * A report replaces the adapter's last one but keeps its place in the order of arrival; it goes
 * with its resource.
 */
static void reports_keep_their_place(void **state)
{
    struct fixture *fx = *state;
    struct hfd_report_row row = {
        .fleet_id = S("c1"),
        .adapter = S("z"),
        .observed_generation = 1,
        .observed_us = 10,
        .received_us = 11,
        .created_us = 11,
        .conditions = S("[]"),
        .data = S("{}"),
        .metadata = S("{}"),
        .secrets = S("sealed\0bytes"),
    };
    const struct hfd_report_query of_c1 = {S("c1"), .limit = 9};
    struct hfd_report_query page = {S("c1"), .limit = 1};
    struct hfd_report_row other = row;
    struct hfd_report_list list;

    add(fx, cluster("c1", "n", 1));
    assert_int_equal(hfd_report_row_put(&fx->tx, &row, NULL), HFD_OK);
    other.adapter = S("a");
    other.created_us = 12;
    other.secrets = HFD_SLICE_NONE;
    other.metadata = HFD_SLICE_NONE;
    assert_int_equal(hfd_report_row_put(&fx->tx, &other, NULL), HFD_OK);
    other.fleet_id = S("c2");
    assert_int_equal(hfd_report_row_put(&fx->tx, &other, NULL), HFD_OK);
    row.observed_generation = 2;
    row.observed_us = 20;
    row.received_us = row.created_us = 21;
    row.conditions = S("[{}]");
    row.data = S("{\"d\":1}");
    row.metadata = S("{\"m\":1}");
    row.secrets = S("other");
    assert_int_equal(hfd_report_row_put(&fx->tx, &row, NULL), HFD_OK);

    assert_int_equal(hfd_report_row_list(&fx->tx, &of_c1, &fx->mem, &list, NULL), HFD_OK);
    assert_int_equal(list.count, 2);
    assert_true(list.total == 2);
    assert_slice(list.rows[0].fleet_id, S("c1"));
    assert_slice(list.rows[0].adapter, S("z"));
    assert_true(list.rows[0].observed_generation == 2 && list.rows[0].observed_us == 20);
    assert_true(list.rows[0].received_us == 21 && list.rows[0].created_us == 11);
    assert_slice(list.rows[0].conditions, S("[{}]"));
    assert_slice(list.rows[0].data, S("{\"d\":1}"));
    assert_slice(list.rows[0].metadata, S("{\"m\":1}"));
    assert_slice(list.rows[0].secrets, S("other"));
    assert_slice(list.rows[1].adapter, S("a"));
    assert_null(list.rows[1].secrets.p);
    assert_slice(list.rows[1].metadata, S(""));
    page.offset = 1;
    assert_int_equal(hfd_report_row_list(&fx->tx, &page, &fx->mem, &list, NULL), HFD_OK);
    assert_int_equal(list.count, 1);
    assert_true(list.total == 2);
    assert_slice(list.rows[0].adapter, S("a"));
    page.offset = 2;
    assert_int_equal(hfd_report_row_list(&fx->tx, &page, &fx->mem, &list, NULL), HFD_OK);
    assert_int_equal(list.count, 0);
    assert_true(list.total == 2);

    assert_int_equal(hfd_fleet_row_delete(&fx->tx, S("c1"), NULL), HFD_OK);
    assert_int_equal(hfd_report_row_list(&fx->tx, &of_c1, &fx->mem, &list, NULL), HFD_OK);
    assert_int_equal(list.count, 0);
    assert_int_equal(hfd_report_row_list(&fx->tx, &(struct hfd_report_query){S("c2"), .limit = 9},
                                         &fx->mem, &list, NULL),
                     HFD_OK);
    assert_int_equal(list.count, 1);
}

static void assert_resource_equal(const struct hfd_resource_row *a,
                                  const struct hfd_resource_row *b)
{
    assert_int_equal(a->seq, b->seq);
    assert_int_equal(a->instance, b->instance);
    assert_int_equal(a->op_expected_us, b->op_expected_us);
    assert_slice(a->guresid, b->guresid);
    assert_slice(a->type, b->type);
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->state, b->state);
    assert_slice(a->incarnation, b->incarnation);
    assert_slice(a->cluster_id, b->cluster_id);
    assert_slice(a->digest, b->digest);
    assert_slice(a->raw_digest, b->raw_digest);
    assert_slice(a->cookie, b->cookie);
    assert_true(a->op_started_us == b->op_started_us);
    assert_true(a->op_estimate_us == b->op_estimate_us);
    assert_true(a->op_deadline_us == b->op_deadline_us);
    assert_slice(a->fail_code, b->fail_code);
    assert_slice(a->fail_message, b->fail_message);
    assert_slice(a->output, b->output);
    assert_slice(a->secrets, b->secrets);
    assert_true(a->created_us == b->created_us);
    assert_true(a->updated_us == b->updated_us);
    assert_true(a->degraded == b->degraded);
    assert_int_equal(a->op, b->op);
    assert_true(a->op_size == b->op_size);
    assert_slice(a->op_milestones, b->op_milestones);
    assert_slice(a->op_usual, b->op_usual);
    assert_slice(a->op_waits, b->op_waits);
    assert_slice(a->op_plan, b->op_plan);
    assert_slice(a->cause, b->cause);
    assert_slice(a->trace, b->trace);
    assert_slice(a->drift, b->drift);
    assert_int_equal(a->drift_count, b->drift_count);
    assert_true(a->mendable == b->mendable);
    assert_slice(a->repairs, b->repairs);
    assert_int_equal(a->repair_us, b->repair_us);
    assert_slice(a->protect, b->protect);
    assert_slice(a->op_match, b->op_match);
}

/* Two rows of one resource. */
static const struct hfd_resource_row resource_rows[] = {
    {31,
     S("g"),
     S("org/t"),
     HFD_KIND_CLUSTER,
     1,
     S("i1"),
     32,
     S("c1"),
     S("d\0d"),
     S("r\0r"),
     S("k1"),
     1,
     2,
     3,
     S("RES-104"),
     S("m1"),
     S("{}"),
     S("s\0s"),
     4,
     5,
     true,
     1,
     2,
     S("c/dns=5"),
     S("c/dns=7"),
     S("waits for dns"),
     S("1/2"),
     34,
     S("dns NoZone"),
     S("00-t"),
     S("[1]"),
     36,
     true,
     S("{}"),
     37,
     S("no\na=b\n"),
     S("If-Match: *"),
     ""},
    {31,
     S("g"),
     S("org/u"),
     HFD_KIND_NODEPOOL,
     2,
     S("i2"),
     33,
     S("c2"),
     S("e"),
     S("q"),
     S("k2"),
     6,
     7,
     8,
     S(""),
     S(""),
     S("{\"a\":1}"),
     HFD_SLICE_NONE,
     9,
     10,
     false,
     2,
     3,
     S(""),
     S(""),
     S(""),
     S(""),
     35,
     S(""),
     S(""),
     S(""),
     0,
     false,
     S(""),
     0,
     S(""),
     S(""),
     ""},
};

/*
 * A driver resource comes back whole; putting it again replaces every column; it goes with its
 * parts.
 */
static void resource_row_is_replaced_whole(void **state)
{
    struct fixture *fx = *state;
    struct hfd_resource_row got;
    struct hfd_part_row of;

    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(hfd_resource_row_put(&fx->tx, &resource_rows[i], NULL), HFD_OK);
        assert_int_equal(hfd_resource_row_get(&fx->tx, S("g"), &fx->mem, &got, NULL), HFD_OK);
        assert_resource_equal(&got, &resource_rows[i]);
    }
    assert_null(got.secrets.p);
    for (size_t i = 0; i < 2; i++) {
        const struct hfd_part_row part = {i == 0 ? S("g") : S("h"),
                                          i == 0 ? S("f") : S("e"),
                                          HFD_KIND_CLUSTER,
                                          S("n"),
                                          1,
                                          false,
                                          false,
                                          S("")};

        assert_int_equal(hfd_part_row_put(&fx->tx, &part, NULL), HFD_OK);
    }
    assert_int_equal(hfd_resource_row_delete(&fx->tx, S("g"), NULL), HFD_OK);
    assert_int_equal(hfd_resource_row_get(&fx->tx, S("g"), &fx->mem, &got, NULL), HFD_NOT_FOUND);
    assert_int_equal(hfd_part_row_by_fleet(&fx->tx, S("f"), &fx->mem, &of, NULL), HFD_NOT_FOUND);
    assert_int_equal(hfd_part_row_by_fleet(&fx->tx, S("e"), &fx->mem, &of, NULL), HFD_OK);
    assert_slice(of.guresid, S("h"));
}

/* ---- history ---- */

static void add_entry(struct fixture *fx, struct hfd_history_row row, int64_t keep)
{
    if (row.seq == 0)
        assert_int_equal(hfd_history_next_seq(&fx->tx, &row.seq, NULL), HFD_OK);
    assert_int_equal(hfd_history_row_add(&fx->tx, &row, keep, NULL), HFD_OK);
}

/* The number before the first one of the test. */
static int64_t numbers_begin(struct fixture *fx)
{
    const char *sql = hfd_db_sql_number(fx->tx.db);
    struct hfd_stmt *st;
    int64_t begin = 0;

    if (sql == NULL || fx->tx.unit == NULL) /* the highest number, plus one */
        return 0;
    assert_int_equal(hfd_db_prepare(fx->tx.db, sql, &st, NULL), HFD_OK);
    assert_int_equal(hfd_row_number(st, 0, &begin, NULL), HFD_OK);
    assert_true(begin > 0);
    return begin;
}

static struct hfd_history_list entries_of(struct fixture *fx, enum hfd_history_about about,
                                          hfd_slice id)
{
    const struct hfd_history_subject subject = {about, id};
    struct hfd_history_list list;

    assert_int_equal(hfd_history_row_list(&fx->tx, &subject, &fx->mem, &list, NULL), HFD_OK);
    return list;
}

/*
 * Entries of all subjects have one order. Each subject keeps its newest, and they stay when the
 * resource goes.
 */
static void history_keeps_the_newest(void **state)
{
    struct fixture *fx = *state;
    const int64_t begin = numbers_begin(fx);
    struct hfd_history_ends ends;
    struct hfd_history_list list;

    for (int64_t i = 1; i <= 5; i++)
        add_entry(fx,
                  (struct hfd_history_row){0, HFD_ABOUT_RESOURCE, S("g"), S("i1"), 7, i * 10, 1, 3,
                                           S("ready"), i, S("why")},
                  3);
    add_entry(fx, (struct hfd_history_row){.id = S("h"), .at_us = 7}, 3);
    add_entry(fx, (struct hfd_history_row){.about = HFD_ABOUT_CLUSTER, .id = S("g")}, 3);
    list = entries_of(fx, HFD_ABOUT_RESOURCE, S("g"));
    assert_int_equal(list.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(list.rows[i].seq, begin + 3 + (int64_t)i);
        assert_int_equal(list.rows[i].at_us, 30 + 10 * i);
    }
    assert_slice(list.rows[2].id, S("g"));
    assert_int_equal(list.rows[2].about, HFD_ABOUT_RESOURCE);
    assert_slice(list.rows[2].incarnation, S("i1"));
    assert_int_equal(list.rows[2].instance, 7);
    assert_int_equal(list.rows[2].from, 1);
    assert_int_equal(list.rows[2].to, 3);
    assert_slice(list.rows[2].what, S("ready"));
    assert_int_equal(list.rows[2].generation, 5);
    assert_slice(list.rows[2].text, S("why"));
    assert_int_equal(hfd_resource_row_delete(&fx->tx, S("g"), NULL), HFD_OK);
    assert_int_equal(entries_of(fx, HFD_ABOUT_RESOURCE, S("g")).count, 3);
    list = entries_of(fx, HFD_ABOUT_RESOURCE, S("h"));
    assert_int_equal(list.count, 1);
    assert_int_equal(list.rows[0].seq, begin + 6);
    assert_slice(list.rows[0].text, S(""));
    assert_int_equal(entries_of(fx, HFD_ABOUT_CLUSTER, S("g")).rows[0].seq, begin + 7);
    assert_int_equal(hfd_history_row_ends(&fx->tx, &ends, NULL), HFD_OK);
    assert_int_equal(ends.last, begin + 7);
    assert_int_equal(ends.floor, begin + 2);
}

/* A resource that is there begins with its creation, until an entry has its number. */
static void history_tells_the_creation(void **state)
{
    struct fixture *fx = *state;
    struct hfd_resource_row row = {.guresid = S("g"),
                                   .type = S("t"),
                                   .kind = HFD_KIND_CLUSTER,
                                   .incarnation = S("i1"),
                                   .created_us = 50};
    struct hfd_history_list list;

    add_entry(fx, (struct hfd_history_row){.id = S("g"), .what = S("removed")}, 9);
    assert_int_equal(hfd_history_next_seq(&fx->tx, &row.seq, NULL), HFD_OK);
    assert_int_equal(hfd_resource_row_put(&fx->tx, &row, NULL), HFD_OK);
    add_entry(fx, (struct hfd_history_row){.id = S("g"), .what = S("ready")}, 9);
    list = entries_of(fx, HFD_ABOUT_RESOURCE, S("g"));
    assert_int_equal(list.count, 3);
    assert_slice(list.rows[1].what, S("create"));
    assert_int_equal(list.rows[1].seq, row.seq);
    assert_int_equal(list.rows[1].instance, row.seq);
    assert_int_equal(list.rows[1].at_us, 50);
    assert_slice(list.rows[1].incarnation, S("i1"));
    assert_int_equal(list.rows[1].from, 0);
    assert_int_equal(list.rows[1].to, 1);
    assert_slice(list.rows[2].what, S("ready"));
    add_entry(fx, (struct hfd_history_row){.seq = row.seq, .id = S("g"), .what = S("kept")}, 9);
    add_entry(fx, (struct hfd_history_row){.seq = row.seq, .id = S("g"), .what = S("twice")}, 9);
    list = entries_of(fx, HFD_ABOUT_RESOURCE, S("g"));
    assert_int_equal(list.count, 3);
    assert_slice(list.rows[1].what, S("kept"));
    assert_int_equal(entries_of(fx, HFD_ABOUT_CLUSTER, S("g")).count, 0);
}

static void assert_page(struct fixture *fx, struct hfd_history_query query, const char *want)
{
    const int64_t begin = numbers_begin(fx);
    struct hfd_history_list list;
    char got[64] = "";

    query.after += query.after > 0 ? begin : 0;
    query.before += query.before < INT64_MAX ? begin : 0;

    assert_int_equal(hfd_history_row_page(&fx->tx, &query, &fx->mem, &list, NULL), HFD_OK);
    for (size_t i = 0; i < list.count; i++)
        (void)snprintf(got + strlen(got), sizeof(got) - strlen(got), "%lld ",
                       (long long)(list.rows[i].seq - begin));
    assert_string_equal(got, want);
}

/* A page has entries and creations of all resources in one order, and none of other clusters. */
static void history_has_pages(void **state)
{
    struct fixture *fx = *state;
    static const char *const ids[] = {"a", "b", "c"};

    for (size_t i = 0; i < 3; i++) {
        struct hfd_resource_row row = {
            .guresid = hfd_slice_of(ids[i]), .type = S("t"), .kind = HFD_KIND_CLUSTER};

        assert_int_equal(hfd_history_next_seq(&fx->tx, &row.seq, NULL), HFD_OK);
        assert_int_equal(hfd_resource_row_put(&fx->tx, &row, NULL), HFD_OK);
        add_entry(fx, (struct hfd_history_row){.id = row.guresid}, 9);
        add_entry(fx, (struct hfd_history_row){.about = HFD_ABOUT_CLUSTER, .id = row.guresid}, 9);
    }
    assert_page(fx, (struct hfd_history_query){0, INT64_MAX, false, 10}, "1 2 4 5 7 8 ");
    assert_page(fx, (struct hfd_history_query){1, INT64_MAX, false, 2}, "2 4 ");
    assert_page(fx, (struct hfd_history_query){0, INT64_MAX, true, 10}, "8 7 5 4 2 1 ");
    assert_page(fx, (struct hfd_history_query){2, 8, true, 2}, "7 5 ");
    assert_page(fx, (struct hfd_history_query){8, INT64_MAX, false, 2}, "");
}

static hfd_rc bury(struct fixture *fx, const char *id, int64_t removed_us,
                   struct hfd_tombstone_limits limits)
{
    struct hfd_tombstone_row row = {.id = hfd_slice_of(id),
                                    .removed_us = removed_us,
                                    .created_us = 3,
                                    .kind = HFD_KIND_NODEPOOL,
                                    .type = S("t"),
                                    .incarnation = S("i"),
                                    .cluster_id = S("c"),
                                    .name = S("n"),
                                    .provider = S("p")};

    add_entry(fx, (struct hfd_history_row){.id = row.id, .what = S("create")}, 9);
    assert_int_equal(hfd_history_next_seq(&fx->tx, &row.seq, NULL), HFD_OK);
    add_entry(fx, (struct hfd_history_row){.seq = row.seq, .id = row.id, .what = S("removed")}, 9);
    return hfd_tombstone_row_add(&fx->tx, &row, &limits, NULL);
}

static bool is_buried(struct fixture *fx, const char *id, struct hfd_tombstone_row *row)
{
    const struct hfd_history_subject subject = {HFD_ABOUT_RESOURCE, hfd_slice_of(id)};
    const hfd_rc rc = hfd_tombstone_row_get(&fx->tx, &subject, &fx->mem, row, NULL);

    assert_true(rc == HFD_OK || rc == HFD_NOT_FOUND);
    assert_int_equal(entries_of(fx, HFD_ABOUT_RESOURCE, subject.id).count, rc == HFD_OK ? 2 : 0);
    return rc == HFD_OK;
}

/* Tombstones go with their history: the oldest ones by number, and by time. Numbers never fall. */
static void tombstones_are_bounded(void **state)
{
    const struct hfd_tombstone_limits two = {2, 0, 0};
    struct fixture *fx = *state;
    const int64_t begin = numbers_begin(fx);
    struct hfd_history_ends ends;
    struct hfd_tombstone_row row;
    bool more;
    int64_t next;

    for (int i = 0; i < 3; i++)
        assert_int_equal(bury(fx, (const char *[]){"a", "b", "c"}[i], 10 * i + 10, two), HFD_OK);
    assert_false(is_buried(fx, "a", &row));
    assert_true(is_buried(fx, "b", &row));
    assert_true(is_buried(fx, "c", &row));
    assert_int_equal(row.seq, begin + 6);
    assert_int_equal(row.removed_us, 30);
    assert_int_equal(row.created_us, 3);
    assert_int_equal(row.kind, HFD_KIND_NODEPOOL);
    assert_slice(row.type, S("t"));
    assert_slice(row.incarnation, S("i"));
    assert_slice(row.cluster_id, S("c"));
    assert_slice(row.name, S("n"));
    assert_slice(row.provider, S("p"));
    assert_int_equal(
        hfd_tombstone_row_trim(&fx->tx, &(struct hfd_tombstone_limits){9, 20, 20}, &more, NULL),
        HFD_OK);
    assert_false(is_buried(fx, "b", &row));
    assert_true(is_buried(fx, "c", &row));
    assert_int_equal(bury(fx, "d", 40, (struct hfd_tombstone_limits){9, 40, 40}), HFD_OK);
    assert_false(is_buried(fx, "c", &row));
    assert_false(is_buried(fx, "d", &row)); /* none are kept, not even this one */
    assert_int_equal(hfd_history_row_ends(&fx->tx, &ends, NULL), HFD_OK);
    assert_int_equal(ends.last, begin + 8);
    assert_int_equal(ends.floor, begin + 8);
    assert_int_equal(hfd_history_next_seq(&fx->tx, &next, NULL), HFD_OK);
    assert_int_equal(next, begin + 9);
}

/* One that a target of events lacks stays for longer, but not for ever. */
static void tombstones_wait_for_targets(void **state)
{
    static const struct {
        int64_t held_us;
        int64_t back; /* how far the target is behind the removal of b */
        bool a, b;    /* they stay */
    } rows[] = {
        {0, 0, false, false}, {0, 1, false, true},   {0, 9, true, true},
        {10, 9, false, true}, {20, 9, false, false},
    };
    struct fixture *fx = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct hfd_tombstone_limits limits = {9, 100, rows[i].held_us};
        struct hfd_outbox_row target = {.name = S("t"), .stream = HFD_STREAM_STATES};
        struct hfd_tombstone_row row;
        bool more;

        assert_int_equal(bury(fx, "a", 10, (struct hfd_tombstone_limits){9, 0, 0}), HFD_OK);
        assert_int_equal(bury(fx, "b", 20, (struct hfd_tombstone_limits){9, 0, 0}), HFD_OK);
        assert_true(is_buried(fx, "b", &row));
        target.seq = row.seq - rows[i].back;
        assert_int_equal(hfd_outbox_row_put(&fx->tx, &target, NULL), HFD_OK);
        target.name = S("u"); /* the lowest counts, and of this stream alone */
        target.seq++;
        assert_int_equal(hfd_outbox_row_put(&fx->tx, &target, NULL), HFD_OK);
        target.stream = HFD_STREAM_RECONCILE;
        target.seq = 0;
        assert_int_equal(hfd_outbox_row_put(&fx->tx, &target, NULL), HFD_OK);
        assert_int_equal(hfd_tombstone_row_trim(&fx->tx, &limits, &more, NULL), HFD_OK);
        assert_int_equal(is_buried(fx, "a", &row), rows[i].a);
        assert_int_equal(is_buried(fx, "b", &row), rows[i].b);
        assert_int_equal(
            hfd_tombstone_row_trim(&fx->tx, &(struct hfd_tombstone_limits){9, 50, 50}, &more, NULL),
            HFD_OK);
    }
}

/*
 * The newest instances of a subject are kept, each with its reports, and go with its tombstone. A
 * report that is put again replaces itself.
 */
static void ended_instances_are_bounded(void **state)
{
    const struct hfd_tombstone_limits all = {9, 0, 0}, none = {0, INT64_MAX, INT64_MAX};
    struct fixture *fx = *state;
    struct hfd_ended_row row = {.id = S("a"),
                                .fleet_id = S("f"),
                                .adapter = S("dns"),
                                .kind = HFD_KIND_CLUSTER,
                                .name = S("n"),
                                .provider = S("p"),
                                .cluster = S("c"),
                                .counted = true,
                                .counts = S("x")};
    struct hfd_ended_query query = {{HFD_ABOUT_RESOURCE, S("a")}, 4};
    struct hfd_ended_list list;
    int64_t oldest;
    bool more;

    for (row.instance = 1; row.instance <= 4; row.instance++) {
        row.verdict = row.instance;
        assert_int_equal(hfd_ended_row_put(&fx->tx, &row, 3, NULL), HFD_OK);
    }
    row.instance = 4;
    row.verdict = 77;
    row.objects = S("o");
    assert_int_equal(hfd_ended_row_put(&fx->tx, &row, 3, NULL), HFD_OK);
    row.adapter = S("a-first");
    assert_int_equal(hfd_ended_row_put(&fx->tx, &row, 3, NULL), HFD_OK);
    row.id = S("b");
    assert_int_equal(hfd_ended_row_put(&fx->tx, &row, 3, NULL), HFD_OK);
    assert_int_equal(hfd_ended_row_oldest(&fx->tx, &query.subject, &oldest, NULL), HFD_OK);
    assert_int_equal(oldest, 2);
    assert_int_equal(hfd_ended_row_list(&fx->tx, &query, &fx->mem, &list, NULL), HFD_OK);
    assert_int_equal(list.count, 2);
    assert_slice(list.rows[0].adapter, S("a-first"));
    assert_slice(list.rows[1].objects, S("o"));
    assert_int_equal(list.rows[1].verdict, 77);
    assert_true(list.rows[1].counted);
    query.instance = 1;
    assert_int_equal(hfd_ended_row_list(&fx->tx, &query, &fx->mem, &list, NULL), HFD_OK);
    assert_int_equal(list.count, 0);
    assert_int_equal(bury(fx, "a", 10, all), HFD_OK);
    assert_int_equal(hfd_ended_row_oldest(&fx->tx, &query.subject, &oldest, NULL), HFD_OK);
    assert_int_equal(oldest, 2);
    assert_int_equal(hfd_tombstone_row_trim(&fx->tx, &none, &more, NULL), HFD_OK);
    assert_int_equal(hfd_ended_row_oldest(&fx->tx, &query.subject, &oldest, NULL), HFD_OK);
    assert_int_equal(oldest, 0);
    query.subject.id = S("b");
    assert_int_equal(hfd_ended_row_oldest(&fx->tx, &query.subject, &oldest, NULL), HFD_OK);
    assert_int_equal(oldest, 4);
}

/* The bytes of the kept objects that a subject has. */
static size_t kept_bytes(struct fixture *fx, const char *id, enum hfd_history_about about,
                         int64_t instance)
{
    const struct hfd_ended_query query = {{about, hfd_slice_of(id)}, instance};
    struct hfd_ended_list list;
    struct hfd_arena mem;
    size_t bytes = 0;

    hfd_arena_init(&mem, 16 << 20);
    assert_int_equal(hfd_ended_row_list(&fx->tx, &query, &mem, &list, NULL), HFD_OK);
    assert_true(list.count > 0); /* the row with its counts stays */
    for (size_t i = 0; i < list.count; i++)
        bytes += list.rows[i].objects.len;
    hfd_arena_fini(&mem);
    return bytes;
}

/*
 * All kept objects have one bound in bytes, whatever subjects they are of. The oldest lose theirs
 * and keep their counts; a cluster of no resource is as old as its last action.
 */
static void kept_objects_are_bounded_over_all(void **state)
{
    enum {
        BIG = 4 << 20,
        MANY = 20,
        FIT = HFD_ENDED_BYTES_MAX / BIG
    };
    static char big[BIG];
    struct fixture *fx = *state;
    char id[8];
    struct hfd_ended_row row = {.kind = HFD_KIND_CLUSTER,
                                .adapter = S("dns"),
                                .fleet_id = S("f"),
                                .name = S("n"),
                                .provider = S("p"),
                                .cluster = S("c"),
                                .counts = S("x"),
                                .objects = {big, BIG}};

    memset(big, 'o', BIG);
    row.about = HFD_ABOUT_CLUSTER;
    row.id = S("no-resource");
    row.instance = 1000;
    assert_int_equal(hfd_ended_row_put(&fx->tx, &row, 10, NULL), HFD_OK);
    row.about = HFD_ABOUT_RESOURCE;
    for (row.instance = 1; row.instance <= MANY; row.instance++) {
        (void)snprintf(id, sizeof(id), "r%d", (int)row.instance);
        row.id = hfd_slice_of(id);
        assert_int_equal(hfd_ended_row_put(&fx->tx, &row, 10, NULL), HFD_OK);
    }
    assert_int_equal(kept_bytes(fx, "no-resource", HFD_ABOUT_CLUSTER, 1000), 0);
    for (int i = 1; i <= MANY; i++) {
        (void)snprintf(id, sizeof(id), "r%d", i);
        assert_int_equal(kept_bytes(fx, id, HFD_ABOUT_RESOURCE, i), i > MANY - FIT ? BIG : 0);
    }
}

/* A subject that is there again has no tombstone, and keeps its history. */
static void a_tombstone_is_lifted(void **state)
{
    const struct hfd_history_subject subject = {HFD_ABOUT_RESOURCE, S("a")};
    struct fixture *fx = *state;
    struct hfd_tombstone_row row;

    assert_int_equal(bury(fx, "a", 10, (struct hfd_tombstone_limits){9, 0, 0}), HFD_OK);
    assert_int_equal(hfd_tombstone_row_delete(&fx->tx, &subject, NULL), HFD_OK);
    assert_int_equal(hfd_tombstone_row_get(&fx->tx, &subject, &fx->mem, &row, NULL), HFD_NOT_FOUND);
    assert_int_equal(entries_of(fx, HFD_ABOUT_RESOURCE, S("a")).count, 2);
}

/* The history of a store of an earlier version is numbered by time, with the creations in it. */
static void an_older_history_is_numbered(void **state)
{
    static const char sql[] =
        "INSERT INTO resource (guresid, type, kind, state, incarnation, cluster_id, digest,"
        " raw_digest, cookie, op_started_us, op_estimate_us, op_deadline_us, created_us,"
        " updated_us, op_waits) VALUES"
        " ('a', 't', 1, 3, 'i', 'c', x'00', x'00', 'k', 1, 2, 3, 10, 40, 'w'),"
        " ('b', 'u', 2, 1, 'j', 'd', x'00', x'00', 'k', 1, 2, 3, 30, 30, '');"
        "INSERT INTO history VALUES ('a', 1, 'i', 20, 1, 3, 'ready', 1, ''),"
        " ('a', 2, 'i', 40, 3, 2, 'update', 2, ''), ('a', 3, 'i', 50, 2, 3, 'ready', 2, 'x')";
    static const char *const words[] = {"create", "ready", "create", "update", "ready"};
    static const int64_t instances[] = {1, 1, 3, 4, 4}, times[] = {10, 20, 30, 40, 50};
    struct fixture *fx = *state;
    struct hfd_txn tx = {.writable = true};
    struct hfd_resource_row row;
    struct hfd_history_list list;
    char base[TMPDIR_MAX];

    if (test_on_postgres())
        skip(); /* the SQL is of SQLite */
    tmpdir_make(base);
    assert_int_equal(test_db_open(base, HFD_DB_WRITER, &tx.db, NULL), HFD_OK);
    assert_int_equal(hfd_migrate(tx.db, hfd_migrations, 3, NULL), HFD_OK);
    assert_int_equal(hfd_db_exec(tx.db, sql, NULL), HFD_OK);
    assert_int_equal(hfd_migrate(tx.db, hfd_migrations, hfd_migrations_count, &fx->err), HFD_OK);
    assert_int_equal(hfd_history_row_page(&tx, &(struct hfd_history_query){0, INT64_MAX, false, 10},
                                          &fx->mem, &list, &fx->err),
                     HFD_OK);
    assert_int_equal(list.count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(list.rows[i].seq, i + 1);
        assert_slice(list.rows[i].what, hfd_slice_of(words[i]));
        assert_int_equal(list.rows[i].at_us, times[i]);
        assert_int_equal(list.rows[i].instance, instances[i]);
    }
    assert_slice(list.rows[2].id, S("b"));
    assert_slice(list.rows[4].text, S("x"));
    assert_int_equal(hfd_resource_row_get(&tx, S("a"), &fx->mem, &row, NULL), HFD_OK);
    assert_int_equal(row.seq, 1);
    assert_int_equal(row.instance, 4);
    assert_int_equal(row.updated_us, 40);
    assert_slice(row.op_waits, S("w"));
    assert_slice(row.cookie, S("k"));
    hfd_db_close(&tx.db);
    tmpdir_remove(base);
}

/* Parts: the cluster first, then nodepools by name; replaced by key, removed one by one. */
static void parts_come_cluster_first(void **state)
{
    static const struct {
        const char *fleet_id;
        enum hfd_kind kind;
        const char *name;
        int64_t generation;
    } puts[] = {
        {"f1", HFD_KIND_NODEPOOL, "b", 1},
        {"f2", HFD_KIND_NODEPOOL, "a", 1},
        {"f3", HFD_KIND_CLUSTER, "z", 1},
        {"f1", HFD_KIND_NODEPOOL, "c", 7}, /* again */
    };
    struct fixture *fx = *state;
    struct hfd_part_list list;
    struct hfd_part_row part;

    for (size_t i = 0; i < sizeof(puts) / sizeof(puts[0]); i++) {
        part = (struct hfd_part_row){S("g"),
                                     hfd_slice_of(puts[i].fleet_id),
                                     puts[i].kind,
                                     hfd_slice_of(puts[i].name),
                                     puts[i].generation,
                                     i == 1,
                                     i == 2,
                                     S("")};
        assert_int_equal(hfd_part_row_put(&fx->tx, &part, NULL), HFD_OK);
    }
    assert_int_equal(hfd_part_row_list(&fx->tx, S("g"), &fx->mem, &list, NULL), HFD_OK);
    assert_int_equal(list.count, 3);
    assert_slice(list.rows[0].fleet_id, S("f3"));
    assert_true(list.rows[0].pending && !list.rows[0].leaving);
    assert_true(list.rows[1].leaving && !list.rows[1].pending);
    assert_slice(list.rows[1].name, S("a"));
    assert_slice(list.rows[2].name, S("c"));
    assert_true(list.rows[2].generation == 7);
    assert_int_equal(hfd_part_row_by_fleet(&fx->tx, S("f2"), &fx->mem, &part, NULL), HFD_OK);
    assert_slice(part.guresid, S("g"));
    assert_int_equal(part.kind, HFD_KIND_NODEPOOL);
    assert_int_equal(hfd_part_row_delete(&fx->tx, S("g"), S("f2"), NULL), HFD_OK);
    assert_int_equal(hfd_part_row_by_fleet(&fx->tx, S("f2"), &fx->mem, &part, NULL), HFD_NOT_FOUND);
}

/* A HyperFleet resource belongs to one driver resource. */
static void a_part_has_one_owner(void **state)
{
    struct fixture *fx = *state;
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; i < 2 && rc == HFD_OK; i++) {
        const struct hfd_part_row part = {
            i == 0 ? S("g") : S("h"), S("f"), HFD_KIND_CLUSTER, S("n"), 1, false, false, S("")};

        rc = hfd_part_row_put(&fx->tx, &part, &fx->err);
    }
    if (rc == HFD_OK)
        rc = hfd_unit_write(&fx->tx, &fx->err);
    assert_int_equal(rc, HFD_CONFLICT);
    hfd_unit_begin(&fx->unit); /* forgets it */
}

static const struct hfd_past_key past_key = {HFD_KIND_CLUSTER, 1, 2};

static void add_past(struct fixture *fx, const struct hfd_past_key *key, int64_t ended_us,
                     int64_t took_us)
{
    const struct hfd_past_row row = {
        .took_us = took_us, .ended_us = ended_us, .ending = 1, .milestones = S("c/dns=5")};

    assert_int_equal(hfd_past_row_add(&fx->tx, key, &row, 3, NULL), HFD_OK);
}

static struct hfd_past_list list_past(struct fixture *fx, int64_t limit)
{
    struct hfd_past_list list;

    assert_int_equal(hfd_past_row_list(&fx->tx,
                                       &(struct hfd_past_query){.key = past_key, .limit = limit},
                                       &fx->mem, &list, NULL),
                     HFD_OK);
    return list;
}

/*
 * Of each key the last operations are kept, in the order in which they were added even when the
 * clock was set back.
 */
static void past_keeps_the_last(void **state)
{
    static const int64_t times_us[] = {100, 200, 50, 50, 400};
    struct fixture *fx = *state;
    struct hfd_past_list list;

    for (size_t i = 0; i < sizeof(times_us) / sizeof(times_us[0]); i++)
        add_past(fx, &past_key, times_us[i], (int64_t)i);
    list = list_past(fx, 100);
    assert_int_equal(list.count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(list.rows[i].took_us == (int64_t)(4 - i));
    assert_true(list.rows[0].size == 2 && list.rows[0].ending == 1);
    assert_slice(list.rows[0].milestones, S("c/dns=5"));
}

/* Behind those of the key come those of other sizes, but none of another kind or operation. */
static void past_of_other_sizes(void **state)
{
    static const struct hfd_past_key others[] = {{HFD_KIND_CLUSTER, 1, 1},
                                                 {HFD_KIND_CLUSTER, 1, 7},
                                                 {HFD_KIND_CLUSTER, 2, 2},
                                                 {HFD_KIND_NODEPOOL, 1, 2}};
    struct fixture *fx = *state;
    struct hfd_past_list list;

    add_past(fx, &past_key, 10, 0);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        add_past(fx, &others[i], 20 + (int64_t)i, 1 + (int64_t)i);
    list = list_past(fx, 100);
    assert_int_equal(list.count, 3);
    assert_true(list.rows[0].took_us == 0 && list.rows[1].took_us == 2 &&
                list.rows[2].took_us == 1);
    assert_int_equal(list_past(fx, 2).count, 2);
}

/* A forecast is replaced by key, and goes when an operation of its kind ends, whatever its size. */
static void forecasts_go_with_the_past(void **state)
{
    static const struct hfd_past_key other_size = {HFD_KIND_CLUSTER, 1, 5},
                                     other_op = {HFD_KIND_CLUSTER, 2, 2};
    struct fixture *fx = *state;
    struct hfd_forecast_row got;

    assert_int_equal(hfd_forecast_row_get(&fx->tx, &past_key, &fx->mem, &got, NULL), HFD_NOT_FOUND);
    for (int64_t i = 0; i < 2; i++) {
        const struct hfd_forecast_row row = {
            .prior_us = i, .deadline_us = 10 + i, .plan = i == 0 ? S("1/2") : S("3/4")};

        assert_int_equal(hfd_forecast_row_put(&fx->tx, &past_key, &row, NULL), HFD_OK);
        assert_int_equal(hfd_forecast_row_get(&fx->tx, &past_key, &fx->mem, &got, NULL), HFD_OK);
        assert_true(got.prior_us == row.prior_us && got.deadline_us == row.deadline_us);
        assert_slice(got.plan, row.plan);
    }
    add_past(fx, &other_op, 1, 1);
    assert_int_equal(hfd_forecast_row_get(&fx->tx, &past_key, &fx->mem, &got, NULL), HFD_OK);
    add_past(fx, &other_size, 1, 1);
    assert_int_equal(hfd_forecast_row_get(&fx->tx, &past_key, &fx->mem, &got, NULL), HFD_NOT_FOUND);
}

/*
 * Work against a remote comes back whole, in the order in which it is due, those that are watched
 * apart until that has failed twice.
 */
static void remote_work_comes_when_due(void **state)
{
    struct fixture *fx = *state;
    struct hfd_remote_row row = {
        .guresid = S("g1"),
        .goal = 1,
        .due_us = 30,
        .unsure_us = 4,
        .behind_us = 8,
        .tries = 5,
        .refusals = 6,
        .later_names = true,
        .error = S("down"),
    };
    struct hfd_remote_list list;
    int64_t next_us;

    assert_int_equal(hfd_remote_row_get(&fx->tx, S("g1"), &fx->mem, &row, NULL), HFD_NOT_FOUND);
    assert_int_equal(hfd_remote_row_put(&fx->tx, &row, NULL), HFD_OK);
    row = (struct hfd_remote_row){.guresid = S("g2"), .goal = 2, .due_us = 10};
    assert_int_equal(hfd_remote_row_put(&fx->tx, &row, NULL), HFD_OK);
    row = (struct hfd_remote_row){.guresid = S("g3"),
                                  .goal = 4,
                                  .watched = HFD_WATCHED_CLOSELY,
                                  .due_us = 20,
                                  .checked_us = 7};
    assert_int_equal(hfd_remote_row_put(&fx->tx, &row, NULL), HFD_OK);
    assert_int_equal(hfd_remote_row_due(&fx->tx, &(struct hfd_remote_due){HFD_WATCHED_NOT, 30, 10},
                                        &fx->mem, &list, NULL),
                     HFD_OK);
    assert_int_equal(list.count, 2);
    assert_slice(list.rows[0].guresid, S("g2"));
    assert_slice(list.rows[1].error, S("down"));
    assert_true(list.rows[1].later_names && list.rows[1].refusals == 6 &&
                list.rows[1].unsure_us == 4 && list.rows[1].behind_us == 8);
    assert_int_equal(hfd_remote_row_next(&fx->tx, &(struct hfd_remote_due){HFD_WATCHED_NOT, 10, 0},
                                         &next_us, NULL),
                     HFD_OK);
    assert_int_equal(next_us, 30);
    assert_int_equal(hfd_remote_row_next(&fx->tx,
                                         &(struct hfd_remote_due){HFD_WATCHED_CLOSELY, 20, 0},
                                         &next_us, NULL),
                     HFD_OK);
    assert_true(next_us == INT64_MAX);
    assert_int_equal(hfd_remote_row_postpone(&fx->tx, 25, 50, NULL), HFD_OK);
    assert_int_equal(hfd_remote_row_next(&fx->tx,
                                         &(struct hfd_remote_due){HFD_WATCHED_CLOSELY, 20, 0},
                                         &next_us, NULL),
                     HFD_OK);
    assert_int_equal(next_us, 50);
    assert_int_equal(hfd_remote_row_due(&fx->tx,
                                        &(struct hfd_remote_due){HFD_WATCHED_CLOSELY, 50, 10},
                                        &fx->mem, &list, NULL),
                     HFD_OK);
    assert_true(list.count == 1 && list.rows[0].tries == 0);
    assert_int_equal(hfd_remote_row_part(&fx->tx, 50, 50, NULL), HFD_OK);
    assert_int_equal(hfd_remote_row_get(&fx->tx, S("g3"), &fx->mem, &row, NULL), HFD_OK);
    assert_true(row.watched == HFD_WATCHED_CLOSELY && row.tries == 1);
    assert_int_equal(hfd_remote_row_part(&fx->tx, 50, 55, NULL), HFD_OK);
    assert_int_equal(hfd_remote_row_get(&fx->tx, S("g3"), &fx->mem, &row, NULL), HFD_OK);
    assert_true(row.watched == HFD_WATCHED_NOT && row.due_us == 55);
    row.watched = HFD_WATCHED_CLOSELY;
    row.due_us = 50;
    assert_int_equal(hfd_remote_row_put(&fx->tx, &row, NULL), HFD_OK);
    assert_int_equal(hfd_remote_row_unwatch(&fx->tx, 50, NULL), HFD_OK);
    assert_int_equal(hfd_remote_row_due(&fx->tx, &(struct hfd_remote_due){HFD_WATCHED_NOT, 60, 10},
                                        &fx->mem, &list, NULL),
                     HFD_OK);
    assert_int_equal(list.count, 3);
    assert_int_equal(hfd_remote_row_drop_absent(&fx->tx, 8, NULL), HFD_OK);
    assert_int_equal(hfd_remote_row_due(&fx->tx, &(struct hfd_remote_due){HFD_WATCHED_NOT, 60, 10},
                                        &fx->mem, &list, NULL),
                     HFD_OK);
    assert_int_equal(list.count, 2);
}

/*
 * References to a resource follow it to its new id, and the resources that wait for it are woken.
 */
static void references_follow_an_id(void **state)
{
    struct fixture *fx = *state;
    struct hfd_fleet_row pool = cluster("np", "pool", 2), back;
    struct hfd_remote_row waits = {.guresid = S("g"), .goal = 1, .due_us = INT64_MAX};
    struct hfd_part_row part = {
        .guresid = S("g"), .fleet_id = S("np"), .kind = HFD_KIND_NODEPOOL, .name = S("pool")};

    pool.kind = HFD_KIND_NODEPOOL;
    pool.owner_id = S("new.1");
    add(fx, pool);
    assert_int_equal(hfd_part_row_put(&fx->tx, &part, NULL), HFD_OK);
    part = (struct hfd_part_row){
        .guresid = S("c"), .fleet_id = S("new.1"), .kind = HFD_KIND_CLUSTER, .name = S("c")};
    assert_int_equal(hfd_part_row_put(&fx->tx, &part, NULL), HFD_OK);
    assert_int_equal(hfd_remote_row_put(&fx->tx, &waits, NULL), HFD_OK);
    assert_int_equal(hfd_fleet_row_refer(&fx->tx, S("new.1"), S("2abc"), &fx->mem, NULL), HFD_OK);
    assert_int_equal(hfd_fleet_row_get(&fx->tx, S("np"), &fx->mem, &back, NULL), HFD_OK);
    assert_slice(back.owner_id, S("2abc"));
    assert_int_equal(hfd_part_row_by_fleet(&fx->tx, S("2abc"), &fx->mem, &part, NULL), HFD_OK);
    assert_int_equal(hfd_remote_row_wake(&fx->tx, S("2abc"), 77, NULL), HFD_OK);
    assert_int_equal(hfd_remote_row_get(&fx->tx, S("g"), &fx->mem, &waits, NULL), HFD_OK);
    assert_int_equal(waits.due_us, 77);
}

/* Rows that this program never wrote are called damaged, not read as something else. */
static void damaged_rows_are_told(void **state)
{
    static const char *const damages[] = {
        "UPDATE fleet SET kind = 3",
        "UPDATE fleet SET kind = 'x'",
        "UPDATE fleet SET generation = 'x'",
        "UPDATE fleet SET created_us = 1.5",
        "ALTER TABLE fleet RENAME TO old; CREATE TABLE fleet AS SELECT * FROM old; UPDATE fleet "
        "SET spec = NULL",
        "ALTER TABLE fleet RENAME TO old; CREATE TABLE fleet AS SELECT * FROM old; UPDATE fleet "
        "SET deleted_us = NULL",
    };
    struct fixture *fx = *state;

    if (test_on_postgres())
        skip(); /* the SQL is of SQLite */
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        struct hfd_fleet_row row;
        struct hfd_fleet_list list;

        assert_int_equal(hfd_db_exec(fx->tx.db, "SAVEPOINT damage", NULL), HFD_OK);
        add(fx, cluster("c1", "n", 1));
        write_and_forget(fx);
        assert_int_equal(hfd_db_exec(fx->tx.db, damages[i], &fx->err), HFD_OK);
        assert_int_equal(hfd_fleet_row_get(&fx->tx, S("c1"), &fx->mem, &row, &fx->err),
                         HFD_DAMAGED);
        assert_int_equal(hfd_fleet_row_pending(&fx->tx,
                                               &(struct hfd_pending_query){0, 0, 10, false},
                                               &fx->mem, &list, &fx->err),
                         HFD_DAMAGED);
        assert_int_equal(list.count, 0);
        assert_non_null(strstr(fx->err.msg, "'c1' of table 'fleet'"));
        assert_int_equal(hfd_db_exec(fx->tx.db, "ROLLBACK TO damage; RELEASE damage", NULL),
                         HFD_OK);
        assert_false(hfd_db_broken(fx->tx.db));
    }
}

/* Tables with checksums, a row of each, and its key in messages. */
static const struct summed {
    const char *table, *key, *free; /* columns that no checksum covers */
} summed[] = {
    {"fleet", "'c1' of table 'fleet'", "seq due_seq trace"},
    {"report", "'c1/dns' of table 'report'", ""},
    {"resource", "'g1' of table 'resource'",
     "cause trace drift drift_count mendable repairs repair_us protect op_match"},
    {"part", "'g1/c1' of table 'part'", "aside"},
};
#define SUMMED (sizeof(summed) / sizeof(summed[0]))

static void add_one_of_each(struct fixture *fx)
{
    const struct hfd_report_row report = {.fleet_id = S("c1"),
                                          .adapter = S("dns"),
                                          .received_us = 17,
                                          .created_us = 5,
                                          .conditions = S("[]"),
                                          .data = S("{\"a\":1}")};
    const struct hfd_resource_row resource = {
        .guresid = S("g1"), .type = S("t"), .kind = HFD_KIND_CLUSTER, .secrets = S("sealed")};
    const struct hfd_part_row part = {
        .guresid = S("g1"), .fleet_id = S("c1"), .kind = HFD_KIND_CLUSTER, .name = S("n")};

    add(fx, cluster("c1", "n", 1));
    assert_int_equal(hfd_report_row_put(&fx->tx, &report, NULL), HFD_OK);
    assert_int_equal(hfd_resource_row_put(&fx->tx, &resource, NULL), HFD_OK);
    assert_int_equal(hfd_part_row_put(&fx->tx, &part, NULL), HFD_OK);
    write_and_forget(fx);
}

/*
 * Heads give the brief form of long conditions, and a report gives the whole ones. The checksums
 * cover both.
 */
static void long_conditions_have_a_brief_form(void **state)
{
    static const char *const damage[] = {"", "brief = '[3]'", "conditions = '[3,4]'",
                                         "long_bytes = 4"};
    struct fixture *fx = *state;
    const struct hfd_report_row report = {.fleet_id = S("c1"),
                                          .adapter = S("dns"),
                                          .conditions = S("[1,2]"),
                                          .brief = S("[1]"),
                                          .long_bytes = 5};
    const struct hfd_report_key key = {S("c1"), S("dns")};
    char sql[100];

    for (size_t i = 0; i < sizeof(damage) / sizeof(damage[0]); i++) {
        const bool brief_ok = i == 0 || i == 2;
        struct hfd_report_list list;
        struct hfd_report_row row;

        assert_int_equal(hfd_report_row_put(&fx->tx, &report, NULL), HFD_OK);
        for (int written = 0; written < 2; written++) {
            if (written == 1) {
                write_and_forget(fx);
                (void)snprintf(sql, sizeof(sql), "UPDATE report SET %s", damage[i]);
                if (i > 0)
                    assert_int_equal(hfd_db_exec(fx->tx.db, sql, NULL), HFD_OK);
            }
            assert_int_equal(hfd_report_row_heads(&fx->tx, S("c1"), &fx->mem, &list, &fx->err),
                             written == 0 || brief_ok ? HFD_OK : HFD_DAMAGED);
            if (written == 0 || brief_ok) {
                assert_int_equal(list.count, 1);
                assert_slice(list.rows[0].conditions, S("[1]"));
                assert_true(list.rows[0].brief.len > 0 && list.rows[0].long_bytes == 5);
            }
            assert_int_equal(hfd_report_row_get(&fx->tx, &key, &fx->mem, &row, &fx->err),
                             written == 0 || i == 0 ? HFD_OK : HFD_DAMAGED);
            if (written == 0 || i == 0)
                assert_slice(row.conditions, S("[1,2]"));
        }
        assert_int_equal(hfd_report_row_delete(&fx->tx, &key, NULL), HFD_OK);
        write_and_forget(fx);
    }
}

static void note_finding(void *ctx, const char *text)
{
    hfd_slice *found = ctx;

    assert_true(found->len == 0);
    *found = hfd_slice_of(strdup(text));
}

/* Checks all tables: one finding is expected, or none. */
static void assert_found(struct fixture *fx, const char *expected)
{
    hfd_slice found = HFD_SLICE("");
    struct hfd_row_findings findings = {.found = note_finding, .ctx = &found};
    struct hfd_txn tx = {.db = fx->tx.db};

    assert_int_equal(hfd_rows_check(&tx, &findings, &fx->err), HFD_OK);
    assert_int_equal(findings.rows, SUMMED);
    if (expected == NULL) {
        assert_int_equal(found.len, 0);
        return;
    }
    assert_true(found.len > 0);
    assert_non_null(strstr(found.p, expected));
    free((void *)(uintptr_t)found.p);
}

/* The columns of a table, from the database itself: a column that is added later is tried too. */
static hfd_slice columns_of(struct fixture *fx, const char *table)
{
    static const char sql[] = "SELECT group_concat(name, ' ') FROM pragma_table_info(?1)";
    struct hfd_stmt *st;
    bool row;
    hfd_slice names;

    assert_int_equal(hfd_db_prepare(fx->tx.db, sql, &st, NULL), HFD_OK);
    hfd_stmt_text(st, 1, hfd_slice_of(table));
    assert_int_equal(hfd_stmt_step(st, &row, NULL), HFD_OK);
    names = hfd_stmt_col_text(st, 0, &fx->mem);
    hfd_stmt_done(st);
    return names;
}

/* A row is damaged when any of its columns was changed behind the program's back. */
static void each_column_is_in_a_checksum(void **state)
{
    struct fixture *fx = *state;

    if (test_on_postgres())
        skip(); /* the SQL is of SQLite */
    for (size_t t = 0; t < SUMMED; t++) {
        char *names, *save = NULL;
        size_t tried = 0;

        assert_int_equal(hfd_db_exec(fx->tx.db, "SAVEPOINT damage", NULL), HFD_OK);
        add_one_of_each(fx);
        assert_found(fx, NULL);
        names = strdup(columns_of(fx, summed[t].table).p);
        for (char *c = strtok_r(names, " ", &save); c != NULL; c = strtok_r(NULL, " ", &save)) {
            const bool key = strcmp(c, "id") == 0 || strcmp(c, "fleet_id") == 0 ||
                             strcmp(c, "adapter") == 0 || strcmp(c, "guresid") == 0;
            char sql[256];

            if (strstr(summed[t].free, c) != NULL || key)
                continue;
            (void)snprintf(sql, sizeof(sql),
                           "SAVEPOINT one; UPDATE %s SET %s = CASE typeof(%s) WHEN 'integer' THEN "
                           "%s + 1 WHEN 'null' THEN x'00' ELSE %s || 'x' END",
                           summed[t].table, c, c, c, c);
            assert_int_equal(hfd_db_exec(fx->tx.db, sql, &fx->err), HFD_OK);
            assert_found(fx, summed[t].key);
            assert_int_equal(hfd_db_exec(fx->tx.db, "ROLLBACK TO one; RELEASE one", NULL), HFD_OK);
            tried++;
        }
        assert_true(tried >= 4);
        free(names);
        assert_int_equal(hfd_db_exec(fx->tx.db, "ROLLBACK TO damage; RELEASE damage", NULL),
                         HFD_OK);
        hfd_unit_forget(&fx->tx);
    }
}

/* Statements that change rows of several keys keep the checksums right. */
static void checksums_follow_changes(void **state)
{
    struct fixture *fx = *state;
    struct hfd_report_row report = {.fleet_id = S("c1"), .adapter = S("dns"), .created_us = 9};

    add_one_of_each(fx);
    assert_int_equal(hfd_report_row_spend(&fx->tx, S("c1"), NULL), HFD_OK);
    write_and_forget(fx);
    assert_found(fx, NULL);
    assert_int_equal(hfd_report_row_put(&fx->tx, &report, NULL), HFD_OK);
    write_and_forget(fx);
    assert_found(fx, NULL);
    assert_int_equal(hfd_fleet_row_refer(&fx->tx, S("c1"), S("c2"), &fx->mem, NULL), HFD_OK);
    write_and_forget(fx);
    assert_found(fx, NULL);
}

/* A report is not written over a damaged one, and a cluster not over a damaged one. */
static void damage_is_not_written_over(void **state)
{
    struct fixture *fx = *state;
    const struct hfd_report_row report = {.fleet_id = S("c1"), .adapter = S("dns")};
    const struct hfd_fleet_row row = cluster("c1", "m", 2);

    add_one_of_each(fx);
    assert_int_equal(hfd_db_exec(fx->tx.db,
                                 "UPDATE report SET data = '{\"a\":2}';"
                                 "UPDATE fleet SET spec = '{\"b\":2}'",
                                 NULL),
                     HFD_OK);
    assert_int_equal(hfd_report_row_put(&fx->tx, &report, &fx->err), HFD_DAMAGED);
    assert_int_equal(hfd_fleet_row_update(&fx->tx, &row, &fx->err), HFD_DAMAGED);
    assert_int_equal(hfd_fleet_row_judged(&fx->tx, &row, &row, &fx->err), HFD_DAMAGED);
}

/* Rows of a database without checksums are filled once; a second run changes nothing. */
static void rows_are_filled(void **state)
{
    struct fixture *fx = *state;

    add_one_of_each(fx);
    assert_int_equal(hfd_db_exec(fx->tx.db,
                                 "UPDATE fleet SET sum = NULL, doc_sum = NULL;"
                                 "UPDATE report SET sum = NULL, doc_sum = NULL;"
                                 "UPDATE resource SET sum = NULL; UPDATE part SET sum = NULL",
                                 NULL),
                     HFD_OK);
    assert_int_equal(hfd_db_commit(fx->tx.db, NULL), HFD_OK);
    assert_int_equal(hfd_rows_fill(fx->tx.db, &fx->err), HFD_OK);
    assert_int_equal(hfd_db_begin(fx->tx.db, NULL), HFD_OK);
    assert_found(fx, NULL);
    assert_int_equal(hfd_db_exec(fx->tx.db, "UPDATE part SET generation = 99", NULL), HFD_OK);
    assert_int_equal(hfd_db_commit(fx->tx.db, NULL), HFD_OK);
    assert_int_equal(hfd_rows_fill(fx->tx.db, &fx->err), HFD_OK);
    assert_int_equal(hfd_db_begin(fx->tx.db, NULL), HFD_OK);
    assert_found(fx, "'g1/c1' of table 'part'");
}

/* A time that is none is damage, also where only the next one is asked for. */
static void damaged_times_are_told(void **state)
{
    struct fixture *fx = *state;
    const struct hfd_remote_row work = {.guresid = S("g1"), .goal = 1, .due_us = 30};
    const struct hfd_remote_orphan_row stray = {.orphan = {.id = S("c1"), .kind = HFD_KIND_CLUSTER},
                                                .due_us = 30};
    int64_t next_us;

    if (test_on_postgres())
        skip(); /* the SQL is of SQLite */
    assert_int_equal(hfd_remote_row_put(&fx->tx, &work, NULL), HFD_OK);
    assert_int_equal(hfd_remote_orphan_row_put(&fx->tx, &stray, NULL), HFD_OK);
    assert_int_equal(hfd_db_exec(fx->tx.db,
                                 "UPDATE upstream SET due_us = 'x'; UPDATE stray SET due_us = 'x'",
                                 NULL),
                     HFD_OK);
    assert_int_equal(hfd_remote_row_next(&fx->tx, &(struct hfd_remote_due){HFD_WATCHED_NOT, 10, 0},
                                         &next_us, NULL),
                     HFD_CORRUPT);
    assert_true(next_us == INT64_MAX);
    assert_int_equal(hfd_remote_orphan_row_next(
                         &fx->tx, &(struct hfd_remote_orphan_query){.now_us = 10}, &next_us, NULL),
                     HFD_CORRUPT);
    assert_true(next_us == INT64_MAX);
}

/* ---- descriptions ---- */

/* Finds the column of a description; NULL = it has none of that name. */
static const struct hfd_col *col_of(const struct hfd_table *table, hfd_slice name)
{
    for (size_t i = 0; i < table->count; i++)
        if (hfd_slice_eq(hfd_slice_of(table->cols[i].name), name))
            return &table->cols[i];
    return NULL;
}

static const char *type_of(const struct hfd_col *col)
{
    const bool postgres = test_on_postgres();

    if (col->type == HFD_COL_TEXT)
        return postgres ? "text" : "TEXT";
    if (hfd_col_is_text(col))
        return postgres ? "blob" : "BLOB"; /* a domain */
    return postgres ? "bigint" : "BIGINT";
}

/* Compares a description with the catalogue of the database. The order of columns means nothing. */
static void assert_described(struct fixture *fx, const struct hfd_table *table)
{
    static const char sqlite[] = "SELECT name, type, \"notnull\" FROM pragma_table_info(?1)";
    static const char postgres[] =
        "SELECT a.attname::text, format_type(a.atttypid, a.atttypmod),"
        " CASE WHEN a.attnotnull THEN 1 ELSE 0 END::bigint FROM pg_catalog.pg_attribute a"
        " JOIN pg_catalog.pg_class c ON c.oid = a.attrelid"
        " WHERE c.relname = ?1 AND c.relnamespace = current_schema()::regnamespace"
        " AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''";
    const char *sql = test_on_postgres() ? postgres : sqlite;
    struct hfd_stmt *st;
    size_t found = 0;
    bool row;

    assert_int_equal(hfd_db_prepare(fx->tx.db, sql, &st, NULL), HFD_OK);
    hfd_stmt_text(st, 1, hfd_slice_of(table->name));
    while (hfd_stmt_step(st, &row, &fx->err) == HFD_OK && row) {
        const hfd_slice name = hfd_stmt_col_text(st, 0, &fx->mem);
        const hfd_slice type = hfd_stmt_col_text(st, 1, &fx->mem);
        const bool required = hfd_stmt_col_i64(st, 2) != 0;
        const struct hfd_col *col = col_of(table, name);

        if (col == NULL)
            fail_msg("the description of %s lacks column %.*s", table->name, HFD_SLICE_FMT(name));
        if (!hfd_slice_is(type, type_of(col)) && !hfd_slice_is(type, "INTEGER"))
            fail_msg("%s.%s is of type %.*s", table->name, col->name, HFD_SLICE_FMT(type));
        if (required == hfd_col_is_null(col) && !hfd_slice_is(type, "INTEGER"))
            fail_msg("%s.%s may%s be NULL", table->name, col->name, required ? " not" : "");
        found++;
    }
    hfd_stmt_done(st);
    assert_int_equal(found, table->count);
}

static void descriptions_are_the_schema(void **state)
{
    struct fixture *fx = *state;

    for (size_t i = 0; i < hfd_move_tables_count; i++)
        assert_described(fx, hfd_move_tables[i].table);
    assert_described(fx, &hfd_replica_table);
    assert_described(fx, &hfd_lease_table);
    assert_described(fx, &hfd_settings_table);
}

struct thing {
    int64_t seq;
    hfd_slice first, second, doc;
};
#define THING(type, member) HFD_COL(struct thing, type, #member, member)
static const struct hfd_col thing_cols[] = {{THING(I64, seq), .marks = HFD_COL_PRIMARY},
                                            {THING(TEXT, first)},
                                            {THING(TEXT, second)},
                                            {THING(NONE, doc), .marks = HFD_COL_OWN, .head = "''"},
                                            {.name = "sum", .type = HFD_COL_SUM}};
static const struct hfd_table thing_table = {HFD_TABLE("thing", struct thing, "thing", thing_cols),
                                             .key = 1, .keys = 2};

static void texts_are_made_of_the_table(void **state)
{
    static struct {
        struct hfd_query query;
        const char *expected;
    } cases[] = {
        {{.table = &thing_table, .text = HFD_SQL_GET},
         "SELECT seq, first, second, doc, sum FROM thing WHERE first = ?1 AND second = ?2"},
        {{.table = &thing_table, .text = HFD_SQL_PUT},
         "INSERT INTO thing (seq, first, second, doc, sum) VALUES (?1, ?2, ?3, ?4, ?5)"
         " ON CONFLICT (first, second) DO UPDATE SET seq = excluded.seq, doc = excluded.doc,"
         " sum = excluded.sum"},
        {{.table = &thing_table, .text = HFD_SQL_UPDATE, .marks = HFD_COL_OWN},
         "UPDATE thing SET doc = ?3 WHERE first = ?1 AND second = ?2"},
        {{.table = &thing_table, .text = "@heads"}, "seq, first, second, '', sum"},
        {{.table = &thing_table, .text = "@primary (@behind) @last"}, "seq (?2) seq DESC"},
        {{.table = &hfd_part_table, .text = "@primary (@behind) @last."},
         "guresid, fleet_id (?2, ?3) guresid DESC, fleet_id DESC."},
        {{.table = &thing_table, .text = ""}, ""},
    };
    const char *sql, *again;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(hfd_query_sql(&cases[i].query, &sql, NULL), HFD_OK);
        assert_string_equal(sql, cases[i].expected);
        assert_int_equal(hfd_query_sql(&cases[i].query, &again, NULL), HFD_OK);
        assert_ptr_equal(sql, again);
    }
}

/* An engine that gathers gets what each statement touches, and the text of its sets. */
static void writes_of_a_table(void **state)
{
    static struct {
        struct hfd_query query;
        const char *table, *set, *equals;
        bool adds, differs;
    } cases[] = {
        {{.table = &thing_table, .text = HFD_SQL_GET},
         "thing",
         NULL,
         "first=1 second=2 ",
         false,
         false},
        {{.table = &thing_table, .text = HFD_SQL_PUT},
         "thing",
         "INSERT INTO thing (seq, first, second, doc, sum) SELECT * FROM unnest(?1, ?2, ?3, ?4, ?5)"
         " AS x(p1, p2, p3, p4, p5) ON CONFLICT (first, second) DO UPDATE SET seq = excluded.seq,"
         " doc = excluded.doc, sum = excluded.sum",
         "first=2 second=3 ",
         true,
         true},
        {{.table = &thing_table, .text = "INSERT INTO @table (@cols) @values@skips"},
         "thing",
         "INSERT INTO thing (seq, first, second, doc, sum) SELECT * FROM unnest(?1, ?2, ?3, ?4, ?5)"
         " AS x(p1, p2, p3, p4, p5)",
         "seq=1 first=2 second=3 doc=4 sum=5 ",
         true,
         false},
        {{.table = &thing_table, .text = HFD_SQL_UPDATE, .marks = HFD_COL_OWN},
         "thing",
         "UPDATE thing SET doc = x.p3 FROM unnest(?1, ?2, ?3) AS x(p1, p2, p3)"
         " WHERE first = x.p1 AND second = x.p2",
         "first=1 second=2 ",
         false,
         true},
        {{.table = &thing_table, .text = HFD_SQL_REMOVE},
         "thing",
         "DELETE FROM thing USING unnest(?1, ?2) AS x(p1, p2) WHERE first = x.p1 AND second = x.p2",
         "first=1 second=2 ",
         false,
         false},
        {{.table = &thing_table, .by = {"doc"}, .text = "DELETE FROM thing WHERE doc = ?1"},
         "thing",
         NULL,
         "doc=1 ",
         false,
         false},
        {{.table = &thing_table,
          .text = "DELETE FROM thing WHERE doc IN (SELECT id FROM other)",
          .mixed = true},
         NULL,
         NULL,
         "",
         false,
         false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct hfd_db_use *use;
        struct hfd_buf equals;

        hfd_buf_init(&equals, 1000);
        assert_int_equal(hfd_query_use(&cases[i].query, &use, NULL), HFD_OK);
        for (size_t k = 0; k < use->equal_count; k++)
            hfd_buf_addf(&equals, "%s=%d ", use->equals[k].column, use->equals[k].param);
        assert_true(hfd_slice_is(hfd_buf_slice(&equals), cases[i].equals));
        assert_int_equal(use->table != NULL, cases[i].table != NULL);
        assert_true(use->table == NULL || strcmp(use->table, cases[i].table) == 0);
        assert_int_equal(use->set != NULL, cases[i].set != NULL);
        if (use->set != NULL)
            assert_string_equal(use->set, cases[i].set);
        assert_int_equal(use->adds, cases[i].adds);
        assert_int_equal(use->differs, cases[i].differs);
        hfd_buf_fini(&equals);
    }
}

/* The judge of all statements of this program sees what is declared wrongly. */
static void wrong_declarations_are_seen(void **state)
{
#define EMPTY(...)                                                                                 \
    &(const struct hfd_query_empty)                                                                \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
    static const char both[] = "DELETE FROM event WHERE fleet_id IN (SELECT id FROM fleet)";
    static const char one[] = "SELECT fleet_id FROM event WHERE fleet_id = ?1";
    const struct {
        struct hfd_query query;
        const char *sql;
        hfd_rc rc;
    } cases[] = {
        {{.table = &hfd_event_table, .mixed = true}, both, HFD_OK},
        {{.table = &hfd_event_table}, both, HFD_INVALID},
        {{.table = &hfd_event_table, .by = {"fleet_id"}}, one, HFD_OK},
        {{.table = &hfd_fleet_table}, one, HFD_INVALID},
        {{.table = &hfd_event_table, .by = {"id"}}, one, HFD_INVALID},
        {{.table = &hfd_event_table, .empty = EMPTY("event", "fleet_id", 1, "fleet")},
         one,
         HFD_INVALID},
        {{.table = &hfd_event_table, .empty = EMPTY("event", "id", 1, "event")}, one, HFD_INVALID},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(test_touched(&cases[i].query, cases[i].sql, NULL), cases[i].rc);
}

static struct hfd_query raced = {.table = &thing_table, .text = HFD_SQL_GET};

static void *make_text(void *ctx)
{
    const char **out = ctx;

    assert_int_equal(hfd_query_sql(&raced, out, NULL), HFD_OK);
    return NULL;
}

/* The address of a text finds its statement. */
static void threads_make_one_text(void **state)
{
    pthread_t threads[8];
    const char *made[8];

    (void)state;
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, make_text, &made[i]), 0);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_ptr_equal(made[i], made[0]);
    }
}

/* Each place of a checksum is given once, without gaps: two columns would hide each other. */
static void places_in_checksums_are_unique(void **state)
{
    (void)state;
    for (size_t t = 0; t < hfd_move_tables_count; t++) {
        const struct hfd_table *table = hfd_move_tables[t].table;
        unsigned seen[2][2] = {{0}}, count[2][2] = {{0}}; /* sum and doc, numbers and texts */

        for (size_t i = 0; i < table->count; i++) {
            const struct hfd_col *col = &table->cols[i];
            const unsigned places[2] = {col->sum, col->doc};

            for (int doc = 0; doc < 2; doc++) {
                unsigned *bits = &seen[doc][hfd_col_is_text(col)];

                if (places[doc] == 0)
                    continue;
                assert_int_equal(*bits >> places[doc] & 1u, 0);
                *bits |= 1u << places[doc];
                count[doc][hfd_col_is_text(col)]++;
            }
        }
        for (int i = 0; i < 4; i++)
            assert_int_equal(seen[i / 2][i % 2], (2u << count[i / 2][i % 2]) - 2u);
    }
}

int main(void)
{
#define RULE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        RULE(descriptions_are_the_schema),
        RULE(places_in_checksums_are_unique),
        cmocka_unit_test(texts_are_made_of_the_table),
        cmocka_unit_test(writes_of_a_table),
        cmocka_unit_test(wrong_declarations_are_seen),
        cmocka_unit_test(threads_make_one_text),
        RULE(fleet_row_comes_back_whole),
        RULE(judgement_changes_conditions_alone),
        RULE(unreconciled_are_counted),
        RULE(scrapes_read_an_index),
        RULE(oldest_operation_is_found),
        RULE(stuck_operations_are_counted),
        RULE(resources_have_totals),
        RULE(totals_have_slots),
        RULE(absent_rows_are_not_found),
        RULE(names_are_unique_among_the_living),
        RULE(children_come_oldest_first),
        RULE(children_follow_changes),
        RULE(pages_come_newest_first),
        RULE(pending_goes_on_behind_the_last),
        RULE(long_lists_grow),
        RULE(reports_keep_their_place),
        RULE(long_conditions_have_a_brief_form),
        RULE(resource_row_is_replaced_whole),
        RULE(history_keeps_the_newest),
        RULE(history_tells_the_creation),
        RULE(history_has_pages),
        RULE(tombstones_are_bounded),
        RULE(tombstones_wait_for_targets),
        RULE(a_tombstone_is_lifted),
        RULE(ended_instances_are_bounded),
        RULE(kept_objects_are_bounded_over_all),
        RULE(an_older_history_is_numbered),
        RULE(past_keeps_the_last),
        RULE(past_of_other_sizes),
        RULE(forecasts_go_with_the_past),
        RULE(parts_come_cluster_first),
        RULE(a_part_has_one_owner),
        RULE(remote_work_comes_when_due),
        RULE(references_follow_an_id),
        RULE(damaged_rows_are_told),
        RULE(each_column_is_in_a_checksum),
        RULE(checksums_follow_changes),
        RULE(damage_is_not_written_over),
        RULE(rows_are_filled),
        RULE(damaged_times_are_told),
    };

    int failed = 0;

    hfd_log_set_fd(open("/dev/null", O_WRONLY | O_CLOEXEC));
    for (int k = NOT_KEPT; failed == 0 && k <= NO_ROOM; k++) {
        keeping = (enum kept_mode)k;
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    }
    return failed;
}
