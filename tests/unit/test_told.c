/*
 * Which reports a driver resource observes: all that may mean something for it, but not those that
 * confirm what it is ready by.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/lib/contains.h"
#include "tests/lib/world.h"
#include "store/rows_fleet.h"

#define ID "told"
#define S HFD_US_PER_S
#define YES HFD_STATUS_TRUE
#define NO HFD_STATUS_FALSE

static const char body[] = "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{\"cluster\":{"
                           "\"name\":\"c-one\",\"spec\":{}},"
                           "\"nodepools\":[{\"name\":\"np-one\",\"spec\":{}}]}}}";
static const struct hfd_output_rule zone[] = {
    {HFD_SLICE("zone"), HFD_SLICE("dns"), HFD_SLICE("/zone")}};

static hfd_slice cluster(struct world *w)
{
    const struct hfd_fleet_row *row = world_find(w, HFD_KIND_CLUSTER, "c-one");

    assert_non_null(row);
    return row->id;
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct hfd_answer_doc doc;

    assert_non_null(w);
    world_open(w);
    hfd_driver_complete(&w->driver);
    assert_int_equal(world_put(w, ID, body, NULL, &doc), HFD_OK);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    world_close(w);
    free(w);
    return 0;
}

/*
 * Twice: what the last part's report made of the resource, the others' rows do not know before they
 * are reported on again.
 */
static void make_ready(struct world *w)
{
    world_succeed_all(w, ID);
    test_clock_advance(&w->clock, S);
    world_succeed_all(w, ID);
    assert_int_equal(world_row(w, ID).state, HFD_STATE_READY);
}

/* How often the resource observes a report on its cluster that comes a second later. */
static int times_told(struct world *w, const struct world_report *r)
{
    const size_t told = world_observed;

    test_clock_advance(&w->clock, S);
    assert_int_equal(world_report(w, cluster(w), r), HFD_VERDICT_STORE);
    return (int)(world_observed - told);
}

/*
 * A ready resource observes each report once that differs from the adapter's last one in anything
 * but its time.
 */
static void a_ready_resource_is_told_what_is_new(void **state)
{
    static const struct {
        const char *name;
        struct world_report report;
        int first, again;
    } cases[] = {
        {"as before", {.adapter = "dns", .available = YES}, 0, 0},
        {"another reason", {.adapter = "dns", .available = YES, .reason = "Other"}, 1, 0},
        {"another status", {.adapter = "dns", .available = NO}, 1, 0},
        {"well again", {.adapter = "dns", .available = YES}, 1, 0},
        {"not well itself", {.adapter = "dns", .available = YES, .health_false = true}, 1, 0},
        {"other data", {.adapter = "dns", .available = YES, .data = "{\"zone\":\"b\"}"}, 1, 0},
        {"one condition more",
         {.adapter = "dns", .available = YES, .data = "{\"zone\":\"b\"}", .finalized = true},
         1,
         0},
        {"secrets, which nobody can compare",
         {.adapter = "dns", .available = YES, .secrets = "{\"k\":\"v\"}"},
         1,
         1},
        {"its first report", {.adapter = "extra", .available = YES}, 1, 0},
        {"the other adapter as ever", {.adapter = "validation", .available = YES}, 0, 0},
    };
    struct world *w = *state;

    make_ready(w);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const int first = times_told(w, &cases[i].report), again = times_told(w, &cases[i].report);

        if (first != cases[i].first || again != cases[i].again)
            fail_msg("%s: told %d times and %d times again", cases[i].name, first, again);
        assert_int_equal(world_row(w, ID).state, HFD_STATE_READY);
    }
}

/* A resource in progress may fail by time alone: it sees every report. */
static void a_resource_in_progress_is_told_everything(void **state)
{
    const struct world_report done = {.adapter = "dns", .available = YES};
    struct world *w = *state;

    for (int i = 0; i < 3; i++)
        assert_int_equal(times_told(w, &done), 1);
    test_clock_advance(&w->clock, 3600 * S);
    assert_int_equal(times_told(w, &done), 1);
    assert_int_equal(world_row(w, ID).state, HFD_STATE_FAILED);
}

/* A new operation makes everything news: what was reported before it is of an earlier attempt. */
static void a_change_makes_all_of_it_news(void **state)
{
    static const char other[] = "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{"
                                "\"cluster\":{\"name\":\"c-one\",\"spec\":{}},"
                                "\"nodepools\":[{\"name\":\"np-one\",\"spec\":{\"n\":2}}]}}}";
    const struct world_report done = {.adapter = "dns", .available = YES};
    struct world *w = *state;
    struct hfd_answer_doc doc;

    make_ready(w);
    assert_int_equal(times_told(w, &done), 0);
    assert_int_equal(world_put(w, ID, other, NULL, &doc), HFD_OK);
    assert_int_equal(doc.answer, HFD_ANSWER_HINT);
    /* The cluster is as it was, but its reports are of before the update. */
    assert_int_equal(times_told(w, &done), 1);
    assert_int_equal(times_told(w, &done), 1);
    make_ready(w);
    assert_int_equal(times_told(w, &done), 0);
}

/* A resource that is being deleted sees every report. */
static void a_resource_that_goes_is_told_everything(void **state)
{
    const struct world_report done = {.adapter = "dns", .available = YES, .generation = 1};
    struct world *w = *state;
    struct hfd_answer_doc doc;
    hfd_slice id;

    make_ready(w);
    id = cluster(w);
    assert_int_equal(world_delete(w, ID, NULL, &doc), HFD_OK);
    for (int i = 0; i < 2; i++) {
        const size_t told = world_observed;

        test_clock_advance(&w->clock, S);
        assert_int_equal(world_report(w, id, &done), HFD_VERDICT_STORE);
        assert_int_equal(world_observed - told, 1);
    }
}

/*
 * After a start with other settings, an unchanged report renews what they change. After a start
 * with the same settings it renews nothing.
 */
static void other_settings_judge_again(void **state)
{
    const struct world_report done = {
        .adapter = "dns", .available = YES, .data = "{\"zone\":\"z1\"}"};
    struct world *w = *state;
    struct hfd_answer_doc doc;

    make_ready(w);
    assert_int_equal(times_told(w, &done), 1);
    world_restart(w);
    hfd_driver_complete(&w->driver);
    assert_int_equal(times_told(w, &done), 0);
    w->driver.output_values = zone;
    w->driver.output_value_count = 1;
    world_restart(w);
    hfd_driver_complete(&w->driver);
    assert_int_equal(times_told(w, &done), 1);
    assert_int_equal(times_told(w, &done), 0);
    assert_int_equal(world_get(w, ID, NULL, &doc), HFD_OK);
    assert_contains(doc.values, "\"zone\":\"z1\"");
}

/* A replica with older settings does not replace the mark of a newer one. */
static void an_older_mark_leaves_a_newer_one(void **state)
{
    const struct world_report done = {.adapter = "validation", .available = YES};
    struct world *w = *state;
    const int64_t newest = hfd_fleet_fingerprint_of_epoch(0x123456, 7);

    make_ready(w);
    w->driver.fleet.settings_fingerprint = newest;
    assert_int_equal(times_told(w, &done), 1);
    assert_int_equal(times_told(w, &done), 0);
    w->driver.fleet.settings_fingerprint = hfd_fleet_fingerprint_of_epoch(0x654321, 6);
    assert_int_equal(times_told(w, &done), 1);
    assert_int_equal(times_told(w, &done), 1);
    w->driver.fleet.settings_fingerprint = newest;
    assert_int_equal(times_told(w, &done), 0);
    w->driver.fleet.settings_fingerprint = hfd_fleet_fingerprint_of_epoch(0x123456, 8);
    assert_int_equal(times_told(w, &done), 1);
    assert_int_equal(times_told(w, &done), 0);
}

/* Each setting that the observer reads makes another mark, and what it does not read makes none. */
static void the_mark_is_of_all_settings_that_are_judged_by(void **state)
{
    static const hfd_slice word[] = {HFD_SLICE("a")}, two[] = {HFD_SLICE("a"), HFD_SLICE("b")},
                           both[] = {HFD_SLICE("ab")};
    struct world *w = *state;
    struct hfd_driver d[10];
    int64_t marks[10];

    for (size_t i = 0; i < 10; i++)
        d[i] = w->driver;
    d[1].fleet.required[HFD_KIND_CLUSTER] = (struct hfd_adapter_names){two, 2};
    d[2].fleet.required[HFD_KIND_CLUSTER] = (struct hfd_adapter_names){both, 1};
    d[3].fleet.required[HFD_KIND_NODEPOOL] = (struct hfd_adapter_names){two, 2};
    d[4].terminal_reasons = word;
    d[5].output_values = zone;
    d[5].output_value_count = 1;
    d[6].output_secrets = zone;
    d[6].output_secret_count = 1;
    d[7].demo = true;
    d[8].backend = HFD_SLICE("http://127.0.0.1");
    d[9].output_manifests = zone[0];
    for (size_t i = 0; i < 10; i++) {
        hfd_driver_complete(&d[i]);
        marks[i] = d[i].fleet.settings_fingerprint;
        assert_int_not_equal(marks[i], 0);
        for (size_t k = 0; k < i; k++)
            assert_true(marks[i] != marks[k]);
    }
    d[0].deadline_us[HFD_KIND_CLUSTER][HFD_OP_CREATE]++;
    hfd_driver_complete(&d[0]);
    assert_true(d[0].fleet.settings_fingerprint == marks[0]);
}

/*
 * A condition that moves is news, even under a report as before: here, as an adapter is not waited
 * for any more.
 */
static void conditions_that_move_are_news(void **state)
{
    const struct world_report done = {.adapter = "validation", .available = YES};
    struct world *w = *state;

    make_ready(w);
    assert_int_equal(times_told(w, &done), 0);
    w->driver.fleet.required[HFD_KIND_CLUSTER].count = 1; /* and the mark is left as it was */
    assert_int_equal(times_told(w, &done), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_ready_resource_is_told_what_is_new, setup, teardown),
        cmocka_unit_test_setup_teardown(a_resource_in_progress_is_told_everything, setup, teardown),
        cmocka_unit_test_setup_teardown(a_change_makes_all_of_it_news, setup, teardown),
        cmocka_unit_test_setup_teardown(a_resource_that_goes_is_told_everything, setup, teardown),
        cmocka_unit_test_setup_teardown(other_settings_judge_again, setup, teardown),
        cmocka_unit_test_setup_teardown(the_mark_is_of_all_settings_that_are_judged_by, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_older_mark_leaves_a_newer_one, setup, teardown),
        cmocka_unit_test_setup_teardown(conditions_that_move_are_news, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
