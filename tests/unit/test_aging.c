/* The timer, on a clock that stands still: what time alone changes, with no request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "driver/adapters/aging.h"
#include "driver/base/metrics.h"
#include "driver/replica/keeper_int.h"
#include "store/migrate.h"
#include "tests/lib/scene.h"

#define S HFD_US_PER_S
#define DEADLINE_US (3600 * S)
#define TOMBSTONE_S (7 * 24 * 3600)

static void order(struct world *w, const char *id)
{
    const hfd_slice body = hfd_arena_printf(
        &w->mem,
        "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{\"cluster\":{\"name\":\"n-%s\","
        "\"spec\":{}},\"nodepools\":[]}}}",
        id);

    assert_non_null(body.p);
    (void)world_put_ok(w, id, body.p, NULL);
}

static void wait_s(struct world *w, int64_t seconds)
{
    test_clock_advance(&w->clock, seconds * S);
}

/* keeper: of this replica; NULL: it is the only server. */
static int64_t look_as(struct world *w, struct hfd_keeper *keeper)
{
    const struct hfd_aging_config config = {
        .store = w->store, .keeper = keeper, .driver = &w->driver, .clock = &w->clock.clock};
    int64_t next_us;

    if (hfd_aging_look(&config, &next_us, &w->err) != HFD_OK)
        fail_msg("look: %s", w->err.msg);
    return next_us;
}

static int64_t look(struct world *w)
{
    return look_as(w, NULL);
}

static int64_t failures(void)
{
    return hfd_series_value(
        hfd_metric_series(HFD_METRIC_TRANSITIONS, HFD_LABELS("creating", "failed")));
}

/* A creation fails at its deadline: state, history and count, though nothing asks for it. */
static void a_deadline_passes_unseen(void **state)
{
    struct world *w = *state;
    const int64_t before = failures();
    struct hfd_history_list history;

    assert_true(look(w) == INT64_MAX);
    order(w, "one");
    wait_s(w, 10);
    order(w, "two");
    assert_int_equal(look(w), TEST_TIME_US + DEADLINE_US - 1);
    wait_s(w, 3589);
    assert_int_equal(look(w), TEST_TIME_US + DEADLINE_US - 1);
    assert_int_equal(world_row(w, "one").state, HFD_STATE_CREATING);
    wait_s(w, 1);
    assert_int_equal(look(w), TEST_TIME_US + DEADLINE_US + 10 * S - 1);
    assert_int_equal(world_row(w, "one").state, HFD_STATE_FAILED);
    assert_int_equal(world_row(w, "two").state, HFD_STATE_CREATING);
    assert_true(hfd_slice_is(world_row(w, "one").fail_code, "RES-105"));
    assert_int_equal(failures(), before + 1);
    history = scene_history_rows(w, "one");
    assert_int_equal(history.count, 2);
    assert_true(hfd_slice_is(history.rows[1].what, "failed"));
    assert_int_equal(history.rows[1].at_us, TEST_TIME_US + DEADLINE_US);
    wait_s(w, 60);
    assert_true(look(w) == INT64_MAX);
    assert_int_equal(failures(), before + 2);
    assert_int_equal(scene_history_rows(w, "one").count, 2);
    assert_int_equal(world_get_ok(w, "one", NULL).answer, HFD_ANSWER_FAILED);
}

/* More at once than one transaction takes. */
static void many_deadlines_pass(void **state)
{
    struct world *w = *state;
    const int64_t before = failures();

    for (int i = 0; i < 230; i++)
        order(w, hfd_arena_printf(&w->mem, "r%03d", i).p);
    wait_s(w, 3600);
    assert_true(look(w) == INT64_MAX);
    assert_int_equal(failures(), before + 230);
}

/* A deletion goes on behind its deadline, and what is ready has none. */
static void other_states_have_no_deadline(void **state)
{
    struct world *w = *state;

    order(w, "ready");
    world_succeed_all(w, "ready");
    order(w, "gone");
    (void)world_delete_ok(w, "gone", NULL);
    wait_s(w, 7200);
    assert_true(look(w) == INT64_MAX);
    assert_int_equal(world_row(w, "ready").state, HFD_STATE_READY);
    assert_int_equal(world_row(w, "gone").state, HFD_STATE_DELETING);
}

/* Histories of removed resources end by time. */
static void histories_end(void **state)
{
    struct world *w = *state;

    order(w, "old");
    (void)world_delete_ok(w, "old", NULL);
    world_succeed_all(w, "old");
    wait_s(w, TOMBSTONE_S - 1);
    (void)look(w);
    assert_true(scene_history_rows(w, "old").count > 0);
    wait_s(w, 1);
    (void)look(w);
    assert_int_equal(scene_history_rows(w, "old").count, 0);
}

static struct hfd_keeper *join(struct world *w)
{
    const struct hfd_keeper_config config = {.store = w->store,
                                             .clock = &w->clock.clock,
                                             .db = &w->clock.clock,
                                             .rng = &w->rng.rng,
                                             .name = "machine",
                                             .schema = (int64_t)hfd_migrations_count,
                                             .key_ids = "5cba97cb",
                                             .settings = {1, 1}};
    struct hfd_keeper *keeper;

    assert_int_equal(hfd_keeper_new(&config, &keeper, NULL), HFD_OK);
    assert_int_equal(hfd_keeper_beat(keeper, NULL), HFD_OK);
    return keeper;
}

/* Of two replicas, only the one that leads looks. The other follows when it ends. */
static void one_replica_looks(void **state)
{
    struct world *w = *state;
    struct hfd_keeper *first = join(w), *second = join(w);

    order(w, "one");
    wait_s(w, 3600);
    assert_int_equal(hfd_keeper_beat(first, NULL), HFD_OK);
    assert_true(look_as(w, second) == INT64_MAX);
    assert_int_equal(world_row(w, "one").state, HFD_STATE_CREATING);
    hfd_keeper_leave(first);
    assert_true(look_as(w, first) == INT64_MAX);
    assert_int_equal(world_row(w, "one").state, HFD_STATE_CREATING);
    assert_int_equal(hfd_keeper_beat(second, NULL), HFD_OK);
    (void)look_as(w, second);
    assert_int_equal(world_row(w, "one").state, HFD_STATE_FAILED);
    hfd_keeper_free(first);
    hfd_keeper_free(second);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_deadline_passes_unseen),
        TEST(many_deadlines_pass),
        TEST(other_states_have_no_deadline),
        TEST(histories_end),
        TEST(one_replica_looks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
