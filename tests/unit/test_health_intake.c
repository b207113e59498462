/*
 * PacemakerCluster documents in the store, with time moved by hand. A verdict, its staleness and
 * its events come to the cluster and to the resource.
 */
#include "driver/health/intake.h"

#include "driver/adapters/aging.h"
#include "driver/core/transition.h"
#include "store/rows_report.h"
#include "tests/lib/contains.h"
#include "tests/lib/health_doc.h"
#include "tests/lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define MINUTE (60 * HFD_US_PER_S)
#define NO "\"False\""
#define CLEAN0 "status/nodes/0/conditions/Clean/status"

static const hfd_slice observers[] = {HFD_SLICE("pacemaker"), HFD_SLICE("second")};

/* A world with one cluster, its required adapters True, and observers. */
struct scene_of_one {
    struct world w;
    hfd_slice id;
};

static void on_open(struct scene_of_one *s)
{
    world_open(&s->w);
    s->w.driver.fleet.observers = (struct hfd_adapter_names){observers, 2};
    (void)world_put_ok(&s->w, "gid",
                       "{\"type\":\"hyperfleet-cluster\",\"resource\":{},\"driver\":"
                       "{\"values\":{\"cluster\":{\"name\":\"one\",\"spec\":{}}}}}",
                       NULL);
    s->id = world_find(&s->w, HFD_KIND_CLUSTER, "one")->id;
    world_succeed_all(&s->w, "gid");
}

/* One transaction of the intake, and the observer behind it. */
struct step {
    struct scene_of_one *s;
    hfd_rc (*run)(struct hfd_txn *tx, const struct hfd_fleet_call *call, struct step *step,
                  struct hfd_err *err);
    struct hfd_health_reading given;
    enum hfd_health_write what;
    const char *adapter;
    struct hfd_health_view view;
    struct hfd_event_list events;
};

static hfd_rc txn_step(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct step *step = arg;
    struct world *w = &step->s->w;
    struct hfd_fleet_changes changes = {.mem = &w->mem};
    const struct hfd_fleet_call call = {.fleet = &w->driver.fleet,
                                        .now_us = world_now(w),
                                        .caller = HFD_SLICE("test@example.com"),
                                        .mem = &w->mem,
                                        .changes = &changes};
    hfd_rc rc = step->run(tx, &call, step, err);

    return rc == HFD_OK ? hfd_resource_observe(tx, &w->driver, &call, err) : rc;
}

static hfd_rc run_step(struct scene_of_one *s, struct step *step)
{
    step->s = s;
    return hfd_store_update_wait(s->w.store, txn_step, step, &s->w.err);
}

static hfd_rc run_write(struct hfd_txn *tx, const struct hfd_fleet_call *call, struct step *step,
                        struct hfd_err *err)
{
    const struct hfd_health_put put = {step->s->id, hfd_slice_of(step->adapter), step->what,
                                       &step->given};
    hfd_slice text;

    return hfd_health_write(tx, call, &put, &text, err);
}

/* Takes the document. */
static hfd_rc write_doc(struct scene_of_one *s, enum hfd_health_write what, json_t *doc)
{
    struct step step = {.run = run_write, .what = what, .adapter = "pacemaker"};
    hfd_rc rc;

    if (what != HFD_HEALTH_STATUS)
        (void)json_object_del(doc, "status");
    assert_int_equal(hfd_health_read(doc, "", &s->w.mem, &step.given, &s->w.err), HFD_OK);
    json_decref(doc);
    rc = run_step(s, &step);
    return rc;
}

/* D with lastUpdated this long before now, and perhaps a node that is unclean. */
static json_t *doc_of(const struct scene_of_one *s, int64_t age_us, bool unclean)
{
    char at[HFD_TIME_TEXT_MAX], json[HFD_TIME_TEXT_MAX + 2];
    json_t *doc = health_doc(2);

    (void)hfd_time_format_us(world_now(&s->w) - age_us, at);
    (void)snprintf(json, sizeof(json), "\"%s\"", at);
    health_doc_set(doc, "status/lastUpdated", json);
    if (unclean) {
        health_doc_set(doc, CLEAN0, NO);
        health_doc_set(doc, "status/nodes/0/conditions/Healthy/status", NO);
        health_doc_set(doc, "status/conditions/Healthy/status", NO);
    }
    return doc;
}

static void create(struct scene_of_one *s)
{
    assert_int_equal(write_doc(s, HFD_HEALTH_CREATE, doc_of(s, 0, false)), HFD_OK);
}

static void set_status(struct scene_of_one *s, int64_t age_us, bool unclean)
{
    assert_int_equal(write_doc(s, HFD_HEALTH_STATUS, doc_of(s, age_us, unclean)), HFD_OK);
}

/* @return how long the next document is not stale yet; INT64_MAX = there is none */
static int64_t look(struct scene_of_one *s)
{
    const struct hfd_aging_config config = {
        .store = s->w.store, .driver = &s->w.driver, .clock = &s->w.clock.clock};
    int64_t next_us;

    assert_int_equal(hfd_aging_look(&config, &next_us, &s->w.err), HFD_OK);
    return next_us != INT64_MAX ? next_us - world_now(&s->w) : INT64_MAX;
}

static hfd_rc run_events(struct hfd_txn *tx, const struct hfd_fleet_call *call, struct step *step,
                         struct hfd_err *err)
{
    const struct hfd_event_query query = {step->s->id, 2000, 0};

    return hfd_event_row_list(tx, &query, call->mem, &step->events, err);
}

static struct hfd_event_list events_of(struct scene_of_one *s)
{
    struct step step = {.run = run_events};

    assert_int_equal(run_step(s, &step), HFD_OK);
    return step.events;
}

/* "PacemakerHealthy 1, PacemakerStatusStale 2" */
static void events_are(struct scene_of_one *s, const char *want)
{
    const struct hfd_event_list list = events_of(s);
    char got[1024] = "";
    size_t len = 0;

    for (size_t i = 0; i < list.count; i++)
        len += (size_t)snprintf(got + len, sizeof(got) - len, "%s%.*s %d", i > 0 ? ", " : "",
                                HFD_SLICE_FMT(list.rows[i].reason), (int)list.rows[i].count);
    assert_string_equal(got, want);
}

static void condition_is(struct scene_of_one *s, const char *type, const char *want)
{
    const struct hfd_fleet_row *row = world_find(&s->w, HFD_KIND_CLUSTER, "one");
    const struct hfd_condition *c;
    struct hfd_conditions cs;

    assert_int_equal(hfd_conditions_parse(row->conditions, &s->w.mem, &cs, NULL), HFD_OK);
    c = hfd_condition_find(&cs, hfd_slice_of(type));
    assert_string_equal(c == NULL ? "none" : hfd_status_name(c->status), want);
}

/* A document is stale from the first microsecond behind 5 minutes on, and told once. */
static void staleness_by_the_clock(void **state)
{
    struct scene_of_one s;

    (void)state;
    on_open(&s);
    create(&s);
    set_status(&s, 0, false);
    condition_is(&s, "PacemakerHealthCheckDegraded", "False");
    assert_int_equal(look(&s), 5 * MINUTE);
    test_clock_advance(&s.w.clock, 5 * MINUTE);
    assert_int_equal(look(&s), 0);
    condition_is(&s, "Ready", "True");
    test_clock_advance(&s.w.clock, 1);
    assert_true(look(&s) == INT64_MAX);
    condition_is(&s, "Ready", "False");
    condition_is(&s, "Available", "False");
    condition_is(&s, "PacemakerHealthCheckDegraded", "True");
    assert_string_equal(hfd_state_name((enum hfd_state)world_row(&s.w, "gid").state), "ready");
    assert_true(world_row(&s.w, "gid").degraded);
    for (int i = 0; i < 3; i++) {
        test_clock_advance(&s.w.clock, MINUTE);
        (void)look(&s);
    }
    events_are(&s, "PacemakerHealthy 1, PacemakerStatusStale 1");
    set_status(&s, 0, false);
    condition_is(&s, "Ready", "True");
    assert_false(world_row(&s.w, "gid").degraded);
    events_are(&s, "PacemakerHealthy 1, PacemakerStatusStale 1, "
                   "PacemakerHealthy 1");
    world_close(&s.w);
}

/* A restart finds what became stale meanwhile; an error does not hide staleness. */
static void staleness_over_a_restart(void **state)
{
    struct scene_of_one s;

    (void)state;
    on_open(&s);
    create(&s);
    set_status(&s, 0, true);
    world_restart(&s.w);
    test_clock_advance(&s.w.clock, 6 * MINUTE);
    (void)look(&s);
    condition_is(&s, "PacemakerHealthCheckDegraded", "True");
    events_are(&s, "PacemakerNodeUnhealthy 1, PacemakerStatusStale 1");
    world_close(&s.w);
}

/* A document that is stale from the beginning decides nothing, whatever the adapter did before. */
static void stale_before_any_verdict(void **state)
{
    struct scene_of_one s;

    (void)state;
    on_open(&s);
    create(&s);
    set_status(&s, 60 * MINUTE, true);
    condition_is(&s, "Ready", "True");
    condition_is(&s, "PacemakerHealthCheckDegraded", "none");
    test_clock_advance(&s.w.clock, MINUTE);
    (void)look(&s);
    condition_is(&s, "Ready", "True");
    events_are(&s, "PacemakerStatusStale 1");
    world_close(&s.w);
}

/* A lastUpdated in the future ages from its arrival. */
static void a_wrong_clock_hides_no_age(void **state)
{
    struct scene_of_one s;

    (void)state;
    on_open(&s);
    create(&s);
    set_status(&s, -5 * MINUTE, false);
    condition_is(&s, "Ready", "True");
    assert_int_equal(write_doc(&s, HFD_HEALTH_STATUS, doc_of(&s, -5 * MINUTE - 1, true)),
                     HFD_INVALID);
    assert_contains(hfd_slice_of(s.w.err.msg), "more than 5 minutes ahead");
    condition_is(&s, "Ready", "True");
    test_clock_advance(&s.w.clock, 5 * MINUTE + 1);
    (void)look(&s);
    condition_is(&s, "Ready", "False");
    world_close(&s.w);
}

/* Row 84: the same error is one event for 5 minutes, and then another one. */
static void repeated_errors(void **state)
{
    struct hfd_event_list list;
    struct scene_of_one s;

    (void)state;
    on_open(&s);
    create(&s);
    for (int i = 0; i < 10; i++) { /* up to 4:30 */
        set_status(&s, 0, true);
        test_clock_advance(&s.w.clock, MINUTE / 2);
    }
    events_are(&s, "PacemakerNodeUnhealthy 10");
    set_status(&s, 0, true);
    events_are(&s, "PacemakerNodeUnhealthy 10, PacemakerNodeUnhealthy 1");
    list = events_of(&s);
    assert_int_equal(list.rows[0].last_us - list.rows[0].first_us, 9 * MINUTE / 2);
    assert_true(list.rows[0].warning);
    world_close(&s.w);
}

/* The newest 1,000 events are kept. */
static void events_are_bounded(void **state)
{
    struct hfd_event_list list;
    struct scene_of_one s;

    (void)state;
    on_open(&s);
    create(&s);
    for (int i = 0; i < HFD_HEALTH_EVENTS_KEPT + 20; i++) {
        json_t *doc = doc_of(&s, 0, true);
        char name[32];

        (void)snprintf(name, sizeof(name), "\"node-%d\"", i);
        health_doc_set(doc, "status/nodes/0/nodeName", name);
        assert_int_equal(write_doc(&s, HFD_HEALTH_STATUS, doc), HFD_OK);
        test_clock_advance(&s.w.clock, 1000);
        if (i % 100 == 0) { /* the arena of the world keeps all documents */
            hfd_arena_fini(&s.w.mem);
            s.id = world_find(&s.w, HFD_KIND_CLUSTER, "one")->id;
        }
    }
    list = events_of(&s);
    assert_int_equal(list.count, HFD_HEALTH_EVENTS_KEPT);
    assert_int_equal(list.total, HFD_HEALTH_EVENTS_KEPT);
    assert_contains(list.rows[list.count - 1].message, "node-1019 ");
    world_close(&s.w);
}

static hfd_rc run_remove(struct hfd_txn *tx, const struct hfd_fleet_call *call, struct step *step,
                         struct hfd_err *err)
{
    const struct hfd_health_key key = {step->s->id, HFD_SLICE("pacemaker")};

    return hfd_health_remove(tx, call, &key, err);
}

static hfd_rc run_watches(struct hfd_txn *tx, const struct hfd_fleet_call *call, struct step *step,
                          struct hfd_err *err)
{
    const struct hfd_watch_query query = {INT64_MAX, 10};
    struct hfd_watch_list list;
    hfd_rc rc = hfd_watch_row_stale(tx, &query, call->mem, &list, err);

    step->events.count = list.count;
    return rc;
}

static size_t watches_of(struct scene_of_one *s)
{
    struct step step = {.run = run_watches};

    assert_int_equal(run_step(s, &step), HFD_OK);
    return step.events.count;
}

/* Without the document, the setting or the cluster there is nothing to look at. */
static void nothing_is_left_to_look_at(void **state)
{
    struct step removing = {.run = run_remove};
    struct scene_of_one s;

    (void)state;
    on_open(&s);
    create(&s);
    set_status(&s, 0, true);
    assert_int_equal(watches_of(&s), 1);
    condition_is(&s, "Ready", "False");
    assert_int_equal(run_step(&s, &removing), HFD_OK);
    assert_int_equal(watches_of(&s), 0);
    condition_is(&s, "Ready", "True");
    condition_is(&s, "PacemakerSuccessful", "none");
    assert_int_equal(run_step(&s, &removing), HFD_NOT_FOUND);

    create(&s);
    set_status(&s, 0, false);
    s.w.driver.fleet.observers.count = 0;
    test_clock_advance(&s.w.clock, 6 * MINUTE);
    (void)look(&s);
    assert_int_equal(watches_of(&s), 0);
    condition_is(&s, "Ready", "True");

    s.w.driver.fleet.observers.count = 2;
    set_status(&s, 0, false);
    assert_int_equal(watches_of(&s), 1);
    (void)world_delete_ok(&s.w, "gid", NULL);
    world_succeed_all(&s.w, "gid");
    assert_null(world_find(&s.w, HFD_KIND_CLUSTER, "one"));
    assert_int_equal(watches_of(&s), 0);
    assert_int_equal(events_of(&s).count, 0);
    world_close(&s.w);
}

/*
 * With an equal time a document with other content is stored. The same one again changes nothing:
 * the same rows, the same events.
 */
static void equal_times(void **state)
{
    struct hfd_fleet_row before;
    struct scene_of_one s;
    json_t *doc;

    (void)state;
    on_open(&s);
    create(&s);
    doc = doc_of(&s, 0, false);
    assert_int_equal(write_doc(&s, HFD_HEALTH_STATUS, json_deep_copy(doc)), HFD_OK);
    before = *world_find(&s.w, HFD_KIND_CLUSTER, "one");
    test_clock_advance(&s.w.clock, MINUTE);
    assert_int_equal(write_doc(&s, HFD_HEALTH_STATUS, json_deep_copy(doc)), HFD_OK);
    (void)look(&s);
    assert_true(
        hfd_slice_eq(world_find(&s.w, HFD_KIND_CLUSTER, "one")->conditions, before.conditions));
    events_are(&s, "PacemakerHealthy 1");
    health_doc_set(doc, CLEAN0, NO);
    assert_int_equal(write_doc(&s, HFD_HEALTH_STATUS, json_deep_copy(doc)), HFD_OK);
    condition_is(&s, "Ready", "False");
    health_doc_set(doc, CLEAN0, "\"True\"");
    assert_int_equal(write_doc(&s, HFD_HEALTH_STATUS, json_deep_copy(doc)), HFD_OK);
    condition_is(&s, "Ready", "True");
    test_clock_advance(&s.w.clock, 5 * MINUTE); /* the repeat itself finds that it is stale */
    assert_int_equal(write_doc(&s, HFD_HEALTH_STATUS, doc), HFD_OK);
    condition_is(&s, "Ready", "False");
    (void)look(&s);
    events_are(&s, "PacemakerHealthy 2, PacemakerNodeUnhealthy 1, AggregateMismatch 1, "
                   "PacemakerStatusStale 1");
    world_close(&s.w);
}

/* The window between creation and first status is no news; a status that never comes is. */
static void a_status_that_never_comes(void **state)
{
    struct scene_of_one s;

    (void)state;
    on_open(&s);
    create(&s);
    assert_int_equal(look(&s), 5 * MINUTE);
    events_are(&s, "");
    world_restart(&s.w);
    test_clock_advance(&s.w.clock, 5 * MINUTE + 1);
    assert_true(look(&s) == INT64_MAX);
    events_are(&s, "PacemakerStatusMissing 1");
    condition_is(&s, "Ready", "True");
    condition_is(&s, "PacemakerHealthCheckDegraded", "none");
    (void)look(&s);
    assert_int_equal(write_doc(&s, HFD_HEALTH_MAIN, doc_of(&s, 0, false)), HFD_OK);
    events_are(&s, "PacemakerStatusMissing 1");
    set_status(&s, 0, false);
    events_are(&s, "PacemakerStatusMissing 1, PacemakerHealthy 1");
    assert_int_equal(look(&s), 5 * MINUTE);
    world_close(&s.w);
}

/* A report that is put and removed in one transaction is in no list, during it and after it. */
static hfd_rc run_put_and_delete(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                                 struct step *step, struct hfd_err *err)
{
    const struct hfd_report_key key = {step->s->id, HFD_SLICE("dns")};
    struct hfd_report_list before, after;
    struct hfd_report_row row;
    hfd_rc rc = hfd_report_row_heads(tx, key.fleet_id, call->mem, &before, err);

    if (rc == HFD_OK)
        rc = hfd_report_row_get(tx, &key, call->mem, &row, err);
    if (rc != HFD_OK) /* PostgreSQL: rows to read first */
        return rc;
    row.observed_us++;
    assert_int_equal(hfd_report_row_put(tx, &row, err), HFD_OK);
    assert_int_equal(hfd_report_row_delete(tx, &key, err), HFD_OK);
    assert_int_equal(hfd_report_row_get(tx, &key, call->mem, &row, NULL), HFD_NOT_FOUND);
    assert_int_equal(hfd_report_row_heads(tx, key.fleet_id, call->mem, &after, err), HFD_OK);
    assert_int_equal(after.count, before.count - 1);
    return hfd_report_row_delete(tx, &key, err); /* what is not there can be removed */
}

static hfd_rc run_heads(struct hfd_txn *tx, const struct hfd_fleet_call *call, struct step *step,
                        struct hfd_err *err)
{
    struct hfd_report_list list;
    hfd_rc rc = hfd_report_row_heads(tx, step->s->id, call->mem, &list, err);

    step->events.count = list.count;
    return rc;
}

static void a_removed_report_stays_removed(void **state)
{
    struct step writing = {.run = run_put_and_delete}, reading = {.run = run_heads};
    struct scene_of_one s;

    (void)state;
    on_open(&s);
    assert_int_equal(run_step(&s, &reading), HFD_OK);
    assert_int_equal(reading.events.count, 2);
    assert_int_equal(run_step(&s, &writing), HFD_OK);
    assert_int_equal(run_step(&s, &reading), HFD_OK);
    assert_int_equal(reading.events.count, 1);
    world_close(&s.w);
}

/* An order at a new generation names the observer that it waits for. */
static void the_answer_names_the_observer(void **state)
{
    struct hfd_answer_doc answer;
    struct scene_of_one s;

    (void)state;
    on_open(&s);
    create(&s);
    set_status(&s, 0, false);
    (void)world_put_ok(&s.w, "gid",
                       "{\"type\":\"hyperfleet-cluster\",\"resource\":{},\"driver\":{\"values\":"
                       "{\"cluster\":{\"name\":\"one\",\"spec\":{\"a\":1}}}}}",
                       NULL);
    world_succeed_all(&s.w, "gid");
    condition_is(&s, "Ready", "False");
    test_clock_advance(&s.w.clock, 2 * 3600 * HFD_US_PER_S); /* past the deadline */
    answer = world_get_ok(&s.w, "gid", NULL);
    assert_int_equal(answer.answer, HFD_ANSWER_FAILED);
    assert_contains(answer.message,
                    "waits for adapters pacemaker (has reported on generation 1 of 2)");
    world_close(&s.w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(staleness_by_the_clock),
        cmocka_unit_test(staleness_over_a_restart),
        cmocka_unit_test(stale_before_any_verdict),
        cmocka_unit_test(a_wrong_clock_hides_no_age),
        cmocka_unit_test(repeated_errors),
        cmocka_unit_test(events_are_bounded),
        cmocka_unit_test(nothing_is_left_to_look_at),
        cmocka_unit_test(equal_times),
        cmocka_unit_test(a_status_that_never_comes),
        cmocka_unit_test(a_removed_report_stays_removed),
        cmocka_unit_test(the_answer_names_the_observer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
