/*
 * The unit of work. Changes of a row are written once and at the end. Dropped changes leave no
 * trace, and reads see unwritten changes.
 *
 * test_rows.c runs the rules of all rows through it.
 */
#include "store/unit.h"

#include "driver/base/log.h"
#include "store/migrate.h"
#include "store/row_io.h"
#include "store/rows_fleet.h"
#include "store/rows_report.h"
#include "store/rows_resource.h"
#include "tests/lib/place.h"
#include "tests/lib/tmpdir.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define S HFD_SLICE

struct fixture {
    char base[TMPDIR_MAX];
    struct hfd_txn tx;
    struct hfd_unit unit;
    struct hfd_arena mem;
};

static void add_cluster(struct fixture *fx, const char *id, const char *name)
{
    struct hfd_fleet_row row = {.id = hfd_slice_of(id),
                                .kind = HFD_KIND_CLUSTER,
                                .name = hfd_slice_of(name),
                                .generation = 1,
                                .conditions = S("[]")};

    assert_int_equal(hfd_fleet_row_insert(&fx->tx, &row, NULL), HFD_OK);
}

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof(*fx));

    assert_non_null(fx);
    tmpdir_make(fx->base);
    assert_int_equal(test_db_open(fx->base, HFD_DB_WRITER, &fx->tx.db, NULL), HFD_OK);
    assert_int_equal(hfd_migrate(fx->tx.db, hfd_migrations, hfd_migrations_count, NULL), HFD_OK);
    assert_int_equal(hfd_db_begin(fx->tx.db, NULL), HFD_OK);
    assert_int_equal(hfd_unit_init(&fx->unit, HFD_UNIT_BYTES_MAX, NULL), HFD_OK);
    fx->tx.writable = true;
    fx->tx.unit = &fx->unit;
    hfd_arena_init(&fx->mem, 4 << 20);
    add_cluster(fx, "c1", "one");
    hfd_unit_begin(&fx->unit);
    *state = fx;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;

    hfd_arena_fini(&fx->mem);
    hfd_unit_fini(&fx->unit);
    hfd_db_rollback(fx->tx.db);
    hfd_db_close(&fx->tx.db);
    tmpdir_remove(fx->base);
    free(fx);
    return 0;
}

static struct hfd_fleet_row get_cluster(struct fixture *fx)
{
    struct hfd_fleet_row row;

    assert_int_equal(hfd_fleet_row_get(&fx->tx, S("c1"), &fx->mem, &row, NULL), HFD_OK);
    return row;
}

/* Judges c1 twice and updates it once. */
static void change_cluster(struct fixture *fx)
{
    struct hfd_fleet_row was = get_cluster(fx), row = was;

    row.conditions = S("[1]");
    row.observer_idle = 7;
    assert_int_equal(hfd_fleet_row_judged(&fx->tx, &row, &was, NULL), HFD_OK);
    row.ready = true;
    assert_int_equal(hfd_fleet_row_judged(&fx->tx, &row, &was, NULL), HFD_OK);
    row.generation = 2;
    assert_int_equal(hfd_fleet_row_update(&fx->tx, &row, NULL), HFD_OK);
}

/* Several changes of a row are one statement, at the end; the job sees them before. */
static void changes_of_a_row_are_written_once(void **state)
{
    struct fixture *fx = *state;
    const int64_t before = hfd_db_changes(fx->tx.db);
    struct hfd_fleet_row row;

    change_cluster(fx);
    row = get_cluster(fx);
    assert_int_equal(row.generation, 2);
    assert_int_equal(row.observer_idle, 0);
    assert_int_equal(hfd_db_changes(fx->tx.db), before);
    assert_int_equal(hfd_unit_write(&fx->tx, NULL), HFD_OK);
    assert_int_equal(hfd_db_changes(fx->tx.db), before + 1);
    assert_int_equal(hfd_unit_write(&fx->tx, NULL), HFD_OK);
    assert_int_equal(hfd_db_changes(fx->tx.db), before + 1);
    hfd_unit_begin(&fx->unit);
    row = get_cluster(fx);
    assert_true(row.generation == 2 && row.ready && hfd_slice_is(row.conditions, "[1]"));
}

/* The changes of a job that failed are gone with the next one. */
static void dropped_changes_leave_no_trace(void **state)
{
    struct fixture *fx = *state;
    const int64_t before = hfd_db_changes(fx->tx.db);
    struct hfd_fleet_row row;

    change_cluster(fx);
    hfd_unit_begin(&fx->unit);
    assert_int_equal(hfd_unit_write(&fx->tx, NULL), HFD_OK);
    assert_int_equal(hfd_db_changes(fx->tx.db), before);
    row = get_cluster(fx);
    assert_true(row.generation == 1 && !row.ready && hfd_slice_is(row.conditions, "[]"));
}

static void put_part(struct fixture *fx, const char *id, const char *name)
{
    const struct hfd_part_row part = {.guresid = S("g"),
                                      .fleet_id = hfd_slice_of(id),
                                      .kind = HFD_KIND_NODEPOOL,
                                      .name = hfd_slice_of(name)};

    assert_int_equal(hfd_part_row_put(&fx->tx, &part, NULL), HFD_OK);
}

/* Lists and searches by another key show rows that are not written, and hide removed ones. */
static void lists_show_what_is_not_written(void **state)
{
    struct fixture *fx = *state;
    struct hfd_part_list list;
    struct hfd_part_row part;

    put_part(fx, "p2", "b");
    put_part(fx, "p3", "c");
    assert_int_equal(hfd_unit_write(&fx->tx, NULL), HFD_OK);
    hfd_unit_begin(&fx->unit);
    put_part(fx, "p1", "a");
    assert_int_equal(hfd_part_row_delete(&fx->tx, S("g"), S("p2"), NULL), HFD_OK);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(hfd_part_row_list(&fx->tx, S("g"), &fx->mem, &list, NULL), HFD_OK);
        assert_int_equal(list.count, 2);
        assert_true(hfd_slice_is(list.rows[0].fleet_id, "p1"));
        assert_true(hfd_slice_is(list.rows[1].fleet_id, "p3"));
    }
    assert_int_equal(hfd_part_row_by_fleet(&fx->tx, S("p1"), &fx->mem, &part, NULL), HFD_OK);
    assert_int_equal(hfd_part_row_by_fleet(&fx->tx, S("p2"), &fx->mem, &part, NULL), HFD_NOT_FOUND);
}

static void put_report(struct fixture *fx, const char *adapter, int64_t at_us)
{
    const struct hfd_report_row row = {.fleet_id = S("c1"),
                                       .adapter = hfd_slice_of(adapter),
                                       .observed_us = at_us,
                                       .received_us = at_us,
                                       .created_us = at_us,
                                       .conditions = S("[]"),
                                       .data = S("{\"large\":1}"),
                                       .metadata = S("{}")};
    struct hfd_report_row was;
    const struct hfd_report_key key = {row.fleet_id, row.adapter};

    const hfd_rc rc = hfd_report_row_get(&fx->tx, &key, &fx->mem, &was, NULL);

    assert_true(rc == HFD_OK || rc == HFD_NOT_FOUND);
    assert_int_equal(hfd_report_row_put(&fx->tx, &row, NULL), HFD_OK);
}

/* Heads show a report that is not written, in its first place, without its large texts. */
static void heads_show_what_is_not_written(void **state)
{
    struct fixture *fx = *state;
    struct hfd_report_row row;
    struct hfd_report_list list;

    put_report(fx, "dns", 1);
    put_report(fx, "validation", 2);
    assert_int_equal(hfd_unit_write(&fx->tx, NULL), HFD_OK);
    hfd_unit_begin(&fx->unit);
    put_report(fx, "dns", 9);
    assert_int_equal(hfd_report_row_heads(&fx->tx, S("c1"), &fx->mem, &list, NULL), HFD_OK);
    assert_int_equal(list.count, 2);
    assert_true(hfd_slice_is(list.rows[0].adapter, "dns"));
    assert_true(list.rows[0].observed_us == 9 && list.rows[0].created_us == 1);
    assert_true(list.rows[0].data.p != NULL && list.rows[0].data.len == 0);
    assert_int_equal(hfd_report_row_spend(&fx->tx, S("c1"), NULL), HFD_OK);
    assert_int_equal(hfd_unit_write(&fx->tx, NULL), HFD_OK);
    hfd_unit_begin(&fx->unit);
    assert_int_equal(hfd_report_row_get(&fx->tx, &(struct hfd_report_key){S("c1"), S("dns")},
                                        &fx->mem, &row, NULL),
                     HFD_OK);
    assert_true(row.observed_us == 9 && row.created_us == 1 && row.received_us == 0);
    assert_true(hfd_slice_is(row.data, "{\"large\":1}"));
}

/* A name that a change sets free can be taken in the same job; one that is taken is refused. */
static void names_follow_the_changes(void **state)
{
    struct fixture *fx = *state;
    struct hfd_fleet_row row = get_cluster(fx), second;

    row.deleted_us = 5;
    assert_int_equal(hfd_fleet_row_update(&fx->tx, &row, NULL), HFD_OK);
    add_cluster(fx, "c2", "one");
    add_cluster(fx, "c3", "three");
    assert_int_equal(hfd_fleet_row_get(&fx->tx, S("c3"), &fx->mem, &second, NULL), HFD_OK);
    second.name = S("one");
    assert_int_equal(hfd_fleet_row_update(&fx->tx, &second, NULL), HFD_CONFLICT);
    row.deleted_us = 0;
    assert_int_equal(hfd_fleet_row_update(&fx->tx, &row, NULL), HFD_CONFLICT);
    assert_int_equal(hfd_fleet_row_get(&fx->tx, S("c3"), &fx->mem, &second, NULL), HFD_OK);
    assert_true(hfd_slice_is(second.name, "three"));
}

/* The next job reads what the last one kept, unless more than half of the memory is used. */
static void the_next_job_has_the_rows(void **state)
{
    struct fixture *fx = *state;
    const size_t half = HFD_UNIT_BYTES_MAX / 2;
    struct hfd_fleet_row row;

    change_cluster(fx);
    assert_int_equal(hfd_unit_write(&fx->tx, NULL), HFD_OK);
    assert_int_equal(
        hfd_query_run(&fx->tx, hfd_fleet_table.remove, HFD_ARGS(hfd_arg_text(S("c1"))), NULL),
        HFD_OK);
    hfd_unit_next(&fx->unit);
    assert_int_equal(get_cluster(fx).generation, 2);
    assert_true(fx->unit.used_bytes < half);
    fx->unit.used_bytes = half + 1;
    hfd_unit_next(&fx->unit);
    assert_int_equal(fx->unit.used_bytes, 0);
    assert_int_equal(hfd_fleet_row_get(&fx->tx, S("c1"), &fx->mem, &row, NULL), HFD_NOT_FOUND);
}

/* A cluster that an earlier job inserted may have nodepools by now: names are looked for. */
static void the_next_job_has_inserted_nothing(void **state)
{
    struct fixture *fx = *state;
    const struct hfd_kept *k;

    add_cluster(fx, "c2", "two");
    k = fx->unit.tables[HFD_UNIT_FLEET];
    assert_true(k != NULL && k->fresh);
    hfd_unit_next(&fx->unit);
    assert_false(k->fresh);
}

int main(void)
{
#define RULE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        RULE(changes_of_a_row_are_written_once), RULE(dropped_changes_leave_no_trace),
        RULE(lists_show_what_is_not_written),    RULE(heads_show_what_is_not_written),
        RULE(names_follow_the_changes),          RULE(the_next_job_has_the_rows),
        RULE(the_next_job_has_inserted_nothing),
    };

    hfd_log_set_fd(open("/dev/null", O_WRONLY | O_CLOEXEC));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
