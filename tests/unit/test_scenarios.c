/*
 * The outcome table of driver/core/README.md, row by row on a whole driver with time moved by hand.
 * Each test is named by its row, and the last test compares the two.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <unistd.h>

#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/core/history.h"
#include "tests/lib/contains.h"
#include "tests/lib/place.h"
#include "tests/lib/scene.h"

#define S HFD_US_PER_S
#define OK_ HFD_STATUS_TRUE
#define NO HFD_STATUS_FALSE
#define UN HFD_STATUS_UNKNOWN
#define ID "res-1"
#define DEADLINE_US (3600 * S)
#define BODY(region, pools)                                                                        \
    "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{\"cluster\":{\"name\":\"c-one\","    \
    "\"spec\":{\"region\":\"" region "\"}},"                                                       \
    "\"nodepools\":[" pools "]}}}"
#define CREATED "absent>creating create 1; "
#define POOL "{\"name\":\"np-one\",\"spec\":{\"n\":1}}"
static const char body_a[] = BODY("a", POOL), body_b[] = BODY("b", POOL),
                  body_no_pool[] = BODY("a", "");

static struct hfd_answer_doc put(struct world *w, const char *body)
{
    return world_put_ok(w, ID, body, NULL);
}

static struct hfd_answer_doc get(struct world *w)
{
    return world_get_ok(w, ID, NULL);
}

static struct hfd_answer_doc del(struct world *w)
{
    return world_delete_ok(w, ID, NULL);
}

static void wait_s(struct world *w, int64_t seconds)
{
    test_clock_advance(&w->clock, seconds * S);
}

static void assert_health(struct world *w, const char *health)
{
    const struct hfd_answer_doc doc = get(w);
    char member[40];

    assert_int_equal(doc.answer, HFD_ANSWER_OUTPUT);
    (void)snprintf(member, sizeof(member), "\"health\":\"%s\"", health);
    assert_contains(doc.values, member);
}

static void assert_failed(struct world *w, const char *code, const char *part)
{
    const struct hfd_answer_doc doc = get(w);

    assert_int_equal(doc.answer, HFD_ANSWER_FAILED);
    if (!hfd_slice_is(doc.error, code))
        fail_msg("%.*s: %.*s", HFD_SLICE_FMT(doc.error), HFD_SLICE_FMT(doc.message));
    assert_contains(doc.message, part);
    assert_contains(doc.message, ID);
    assert_true(doc.message.len <= 500);
}

/* One adapter succeeds on a resource. */
static void done(struct world *w, hfd_slice id, const char *adapter)
{
    assert_int_equal(
        scene_report(w, id,
                     &(struct scene_report){.adapter = adapter, .available = OK_, .applied = OK_}),
        HFD_VERDICT_STORE);
}

static void create_and_finish(struct world *w, const char *body)
{
    (void)put(w, body);
    wait_s(w, 1);
    world_succeed_all(w, ID);
    wait_s(w, 1);
    assert_int_equal(get(w).answer, HFD_ANSWER_OUTPUT);
}

/* ---- getting ready ---- */

static void all_parts_ready(void **state)
{
    struct world *w = *state;

    (void)put(w, body_a);
    world_succeed_all(w, ID);
    assert_health(w, "Healthy");
}

static void a_nodepool_lags(void **state)
{
    struct world *w = *state;

    (void)put(w, body_a);
    world_succeed(w, scene_cluster(w, "c-one"));
    assert_int_equal(get(w).answer, HFD_ANSWER_HINT);
    world_succeed(w, scene_nodepool(w, "np-one"));
    assert_int_equal(get(w).answer, HFD_ANSWER_OUTPUT);
}

static void ready_at_an_older_generation(void **state)
{
    struct world *w = *state;
    hfd_slice c;

    create_and_finish(w, body_a);
    c = scene_cluster(w, "c-one");
    assert_int_equal(put(w, body_b).answer, HFD_ANSWER_HINT);
    /* Both report on generation 1 once more: Ready has not got to generation 2. */
    wait_s(w, 1);
    (void)scene_report(w, c,
                       &(struct scene_report){
                           .adapter = "dns", .available = OK_, .applied = OK_, .generation = 1});
    assert_int_equal(get(w).answer, HFD_ANSWER_HINT);
    world_succeed(w, c);
    assert_health(w, "Healthy");
}

static void adapters_at_mixed_generations(void **state)
{
    struct world *w = *state;
    hfd_slice c;

    create_and_finish(w, body_a);
    c = scene_cluster(w, "c-one");
    (void)put(w, body_b);
    wait_s(w, 1);
    done(w, c, "validation"); /* at generation 2; dns is at 1, and Available still says True */
    assert_int_equal(get(w).answer, HFD_ANSWER_HINT);
    done(w, c, "dns");
    assert_int_equal(get(w).answer, HFD_ANSWER_OUTPUT);
}

static void a_stale_report(void **state)
{
    struct world *w = *state;
    const struct scene_report old = {.adapter = "dns",
                                     .available = NO,
                                     .reason = "InvalidConfiguration",
                                     .observed_us = w->clock.wall_us,
                                     .generation = 1};
    hfd_slice c;

    (void)put(w, body_no_pool);
    wait_s(w, 10);
    c = scene_cluster(w, "c-one");
    world_succeed(w, c);
    /* Observed before what dns said last: it comes late, and says nothing new. */
    assert_int_equal(scene_report(w, c, &old), HFD_VERDICT_DISCARD);
    assert_health(w, "Healthy");
    /* A report for a generation that is behind. */
    (void)put(w, BODY("b", ""));
    wait_s(w, 1);
    done(w, c, "dns");
    assert_int_equal(scene_report(w, c,
                                  &(struct scene_report){.adapter = "dns",
                                                         .available = NO,
                                                         .reason = "InvalidConfiguration",
                                                         .generation = 1}),
                     HFD_VERDICT_DISCARD);
    assert_int_equal(get(w).answer, HFD_ANSWER_HINT);
}

static void an_adapter_does_not_know(void **state)
{
    struct world *w = *state;
    hfd_slice c;

    (void)put(w, body_no_pool);
    wait_s(w, 1);
    c = scene_cluster(w, "c-one");
    done(w, c, "validation");
    assert_int_equal(scene_report(w, c,
                                  &(struct scene_report){.adapter = "dns",
                                                         .available = UN,
                                                         .reason = "InvalidConfiguration"}),
                     HFD_VERDICT_DISCARD);
    assert_int_equal(get(w).answer, HFD_ANSWER_HINT);
}

static void a_nodepool_leaves(void **state)
{
    struct world *w = *state;
    hfd_slice np;

    create_and_finish(w, body_a);
    np = scene_nodepool(w, "np-one");
    assert_int_equal(put(w, body_no_pool).answer, HFD_ANSWER_HINT);
    assert_int_equal(get(w).answer, HFD_ANSWER_HINT);
    world_succeed(w, np);
    assert_health(w, "Healthy");
}

/* ---- failing ---- */

static void an_adapter_gives_up(void **state)
{
    struct world *w = *state;

    (void)put(w, body_a);
    wait_s(w, 1);
    (void)scene_report(w, scene_cluster(w, "c-one"),
                       &(struct scene_report){.adapter = "dns",
                                              .available = NO,
                                              .reason = "InvalidConfiguration",
                                              .message = "no zone"});
    assert_failed(w, "RES-104",
                  "adapter dns reported Applied=False, reason InvalidConfiguration: no zone.");
}

static void a_nodepool_fails_alone(void **state)
{
    struct world *w = *state;
    const hfd_slice c = (put(w, body_a), scene_cluster(w, "c-one"));

    wait_s(w, 1);
    world_succeed(w, c);
    (void)scene_report(w, scene_nodepool(w, "np-one"),
                       &(struct scene_report){.adapter = "validation",
                                              .available = NO,
                                              .applied = OK_,
                                              .reason = "InvalidConfiguration"});
    assert_failed(w, "RES-104", "Nodepool 'np-one'");
    assert_contains(get(w).message, "Available=False");
    assert_contains(
        get(w).message,
        hfd_arena_printf(&w->mem, "%.*s", HFD_SLICE_FMT(c)).p); /* the cluster is named, too */
}

static void a_transient_reason(void **state)
{
    struct world *w = *state;
    hfd_slice c;

    (void)put(w, body_no_pool);
    wait_s(w, 1);
    c = scene_cluster(w, "c-one");
    done(w, c, "validation");
    (void)scene_report(
        w, c, &(struct scene_report){.adapter = "dns", .available = NO, .reason = "Throttled"});
    assert_int_equal(get(w).answer, HFD_ANSWER_HINT);
    wait_s(w, 1);
    done(w, c, "dns");
    assert_int_equal(get(w).answer, HFD_ANSWER_OUTPUT);
}

static void an_adapter_is_not_well_itself(void **state)
{
    struct world *w = *state;

    (void)put(w, body_no_pool);
    wait_s(w, 1);
    (void)scene_report(w, scene_cluster(w, "c-one"),
                       &(struct scene_report){.adapter = "dns",
                                              .available = NO,
                                              .reason = "InvalidConfiguration",
                                              .health_false = true});
    assert_int_equal(get(w).answer, HFD_ANSWER_HINT);
}

static void gave_up_before_this_attempt(void **state)
{
    struct world *w = *state;
    hfd_slice c;

    (void)put(w, body_no_pool);
    wait_s(w, 1);
    c = scene_cluster(w, "c-one");
    (void)scene_report(w, c,
                       &(struct scene_report){
                           .adapter = "dns", .available = NO, .reason = "InvalidConfiguration"});
    assert_int_equal(get(w).answer, HFD_ANSWER_FAILED);
    wait_s(w, 1);
    assert_int_equal(put(w, body_no_pool).answer, HFD_ANSWER_HINT); /* the report is still there */
    assert_int_equal(get(w).answer, HFD_ANSWER_HINT);
    wait_s(w, 1);
    world_succeed(w, c);
    assert_health(w, "Healthy");
    assert_string_equal(
        scene_history(w, ID),
        CREATED "creating>failed failed 1; failed>creating retry 1; creating>ready ready 1; ");
}

static void a_failed_create_is_deleted(void **state)
{
    struct world *w = *state;

    an_adapter_gives_up(state);
    assert_int_equal(del(w).answer, HFD_ANSWER_HINT);
    assert_int_equal(get(w).answer, HFD_ANSWER_HINT);
    world_succeed_all(w, ID);
    assert_int_equal(get(w).answer, HFD_ANSWER_ABSENT);
    assert_int_equal(world_count(w, HFD_KIND_CLUSTER) + world_count(w, HFD_KIND_NODEPOOL), 0);
}

static void an_adapter_never_reports(void **state)
{
    struct world *w = *state;
    struct hfd_answer_doc doc;

    (void)put(w, body_no_pool);
    wait_s(w, 1);
    done(w, scene_cluster(w, "c-one"), "validation");
    wait_s(w, 3598);
    doc = get(w);
    assert_int_equal(doc.answer, HFD_ANSWER_HINT);
    wait_s(w, 1);
    assert_failed(w, "RES-105", "waits for adapters dns (has not reported). Deploy again");
}

static void late_and_then_ready(void **state)
{
    struct world *w = *state;

    (void)put(w, body_a);
    wait_s(w, 3630);
    assert_int_equal(get(w).answer, HFD_ANSWER_FAILED);
    world_succeed_all(w, ID); /* it is observed all the same */
    assert_int_equal(get(w).answer, HFD_ANSWER_FAILED);
    wait_s(w, 60);
    assert_int_equal(put(w, body_a).answer, HFD_ANSWER_OUTPUT);
    assert_health(w, "Healthy");
    assert_string_equal(
        scene_history(w, ID),
        CREATED "creating>failed failed 1; failed>creating retry 1; creating>ready ready 1; ");
    /* It failed at its deadline, not at the next request. */
    assert_int_equal(scene_history_rows(w, ID).rows[1].at_us, TEST_TIME_US + DEADLINE_US);
    assert_int_equal(scene_history_rows(w, ID).rows[2].at_us, TEST_TIME_US + DEADLINE_US + 90 * S);
}

static void a_late_update_is_tried_again(void **state)
{
    struct world *w = *state;

    create_and_finish(w, body_a);
    (void)put(w, body_b);
    wait_s(w, 3600);
    assert_failed(w, "RES-105", "The update of resource " ID);
    assert_contains(get(w).message, "(has reported on generation 1 of 2)");
    assert_int_equal(put(w, body_b).answer, HFD_ANSWER_HINT);
    assert_string_equal(get(w).hint.status, "updating");
    world_succeed_all(w, ID);
    assert_health(w, "Healthy");
}

static void a_deadline_of_its_kind(void **state)
{
    static const char pool[] =
        "{\"type\":\"hyperfleet-nodepool\",\"driver\":{\"values\":{\"cluster_guresid\":\"" ID
        "\",\"nodepool\":{\"name\":\"np-two\"}}}}";
    struct world *w = *state;
    struct hfd_answer_doc doc;

    w->driver.deadline_us[HFD_KIND_NODEPOOL][HFD_OP_CREATE] = 60 * S;
    (void)put(w, body_no_pool);
    assert_int_equal(world_put(w, "pool-1", pool, NULL, &doc), HFD_OK);
    wait_s(w, 60);
    assert_int_equal(world_get(w, "pool-1", NULL, &doc), HFD_OK);
    assert_int_equal(doc.answer, HFD_ANSWER_FAILED);
    assert_true(hfd_slice_is(doc.error, "RES-105"));
    assert_int_equal(get(w).answer, HFD_ANSWER_HINT);
}

/* ---- once ready ---- */

/* The value of a series in the exposition, 0 when it is not there. */
static int64_t series(const char *line)
{
    struct hfd_buf b;
    hfd_slice text;
    int64_t value = 0;
    const char *at, *end;

    hfd_buf_init(&b, 1 << 20);
    hfd_metrics_render(&b);
    assert_int_equal(hfd_buf_finish(&b, &text, NULL), HFD_OK);
    at = memmem(text.p, text.len, line, strlen(line));
    if (at != NULL) {
        at += strlen(line) + 1;
        end = strchr(at, '\n');
        assert_non_null(end);
        assert_int_equal(
            hfd_parse_i64((hfd_slice){at, (size_t)(end - at)}, 0, INT64_MAX, &value, NULL), HFD_OK);
    }
    hfd_buf_fini(&b);
    return value;
}
#define DEGRADED "\nhfd_resource_health_changes_total{to=\"degraded\"}"
#define RECOVERED "\nhfd_resource_health_changes_total{to=\"recovered\"}"

static void degraded_then_well(void **state)
{
    const int64_t degraded = series(DEGRADED), recovered = series(RECOVERED);
    struct world *w = *state;
    struct hfd_history_list history;
    hfd_slice c;

    create_and_finish(w, body_a);
    c = scene_cluster(w, "c-one");
    (void)scene_report(
        w, c,
        &(struct scene_report){
            .adapter = "dns", .available = NO, .reason = "ZoneLost", .message = "gone"});
    assert_health(w, "Degraded");
    assert_contains(get(w).values, "\"health_reason\":\"ZoneLost\"");
    assert_int_equal(put(w, body_a).answer, HFD_ANSWER_OUTPUT); /* a deployment cannot mend it */
    wait_s(w, 1);
    (void)scene_report(
        w, c,
        &(struct scene_report){
            .adapter = "dns", .available = NO, .reason = "ZoneLost", .message = "still"});
    wait_s(w, 1);
    done(w, c, "dns");
    assert_health(w, "Healthy");
    history = scene_history_rows(w, ID);
    assert_string_equal(
        scene_history(w, ID),
        CREATED "creating>ready ready 1; ready>ready degraded 1; ready>ready recovered 1; ");
    assert_contains(history.rows[2].text, "ZoneLost: cluster 'c-one'");
    assert_int_equal(history.rows[3].at_us, w->clock.wall_us);
    assert_int_equal(series(DEGRADED), degraded + 1);
    assert_int_equal(series(RECOVERED), recovered + 1);
}

static void a_nodepool_is_degraded(void **state)
{
    struct world *w = *state;

    create_and_finish(w, body_a);
    (void)scene_report(
        w, scene_nodepool(w, "np-one"),
        &(struct scene_report){.adapter = "validation", .available = NO, .reason = "NodesLost"});
    assert_health(w, "Degraded");
    assert_contains(get(w).values, "nodepool 'np-one'");
}

static void gave_up_when_ready(void **state)
{
    struct world *w = *state;

    create_and_finish(w, body_a);
    (void)scene_report(w, scene_cluster(w, "c-one"),
                       &(struct scene_report){
                           .adapter = "dns", .available = NO, .reason = "InvalidConfiguration"});
    assert_health(w, "Degraded");
}

static void changed_by_somebody_else(void **state)
{
    struct world *w = *state;
    hfd_slice c;

    create_and_finish(w, body_a);
    c = scene_cluster(w, "c-one");
    scene_patch(w, HFD_KIND_CLUSTER, c, "{\"region\":\"z\"}");
    assert_health(w, "Progressing");
    world_succeed(w, c);
    assert_health(w, "Healthy");
    assert_string_equal(scene_history(w, ID), CREATED "creating>ready ready 1; ");
}

static void degraded_until_healthy(void **state)
{
    struct world *w = *state;
    hfd_slice c, np;

    create_and_finish(w, body_a);
    c = scene_cluster(w, "c-one");
    np = scene_nodepool(w, "np-one");
    (void)scene_report(
        w, c, &(struct scene_report){.adapter = "dns", .available = NO, .reason = "ZoneLost"});
    scene_patch(w, HFD_KIND_NODEPOOL, np, "{\"n\":2}");
    wait_s(w, 1);
    done(w, c, "dns");
    assert_health(w, "Progressing"); /* the nodepool is being worked on: not yet well */
    assert_null(strstr(scene_history(w, ID), "recovered"));
    world_succeed(w, np);
    assert_health(w, "Healthy");
    (void)scene_report(
        w, c, &(struct scene_report){.adapter = "dns", .available = NO, .reason = "ZoneLost"});
    (void)put(w, body_b); /* an update mends it */
    wait_s(w, 1);
    world_succeed_all(w, ID);
    assert_health(w, "Healthy");
    assert_string_equal(
        scene_history(w, ID), CREATED
        "creating>ready ready 1; ready>ready degraded 1; ready>ready recovered 1; ready>ready "
        "degraded 1; "
        "ready>updating update 2; updating>ready ready 2; ready>ready recovered 2; ");
}

static void removed_in_hyperfleet(void **state)
{
    struct world *w = *state;
    const char *first;
    hfd_slice c;

    create_and_finish(w, body_a);
    first = hfd_arena_dup(&w->mem, world_row(w, ID).incarnation).p;
    c = scene_cluster(w, "c-one");
    scene_force_delete(w, HFD_KIND_CLUSTER, c);
    assert_failed(w, "RES-104",
                  "in HyperFleet, and not through this resource. Deploy again to make a new one");
    wait_s(w, 1);
    assert_int_equal(put(w, body_a).answer, HFD_ANSWER_HINT);
    assert_string_equal(get(w).hint.status, "creating");
    assert_false(hfd_slice_eq(scene_cluster(w, "c-one"), c));
    assert_false(hfd_slice_is(world_row(w, ID).incarnation, first));
    assert_int_equal(world_count(w, HFD_KIND_CLUSTER), 1);
    world_succeed_all(w, ID);
    assert_health(w, "Healthy");
}

static void removed_and_then_deleted(void **state)
{
    struct world *w = *state;

    create_and_finish(w, body_a);
    scene_force_delete(w, HFD_KIND_CLUSTER, scene_cluster(w, "c-one"));
    assert_int_equal(del(w).answer, HFD_ANSWER_ABSENT);
    assert_int_equal(get(w).answer, HFD_ANSWER_ABSENT);
}

static void removed_while_it_is_made(void **state)
{
    struct world *w = *state;

    (void)put(w, body_a);
    scene_force_delete(w, HFD_KIND_CLUSTER, scene_cluster(w, "c-one"));
    assert_failed(w, "RES-104", "in HyperFleet, and not through this resource");
    assert_int_equal(put(w, body_a).answer, HFD_ANSWER_HINT);
}

static void deleted_by_somebody_else(void **state)
{
    struct world *w = *state;

    create_and_finish(w, body_a);
    scene_delete(w, HFD_KIND_NODEPOOL, scene_nodepool(w, "np-one"));
    assert_failed(w, "RES-104", "Nodepool 'np-one'");
    assert_contains(get(w).message, "is being deleted in HyperFleet");
    assert_int_equal(put(w, body_a).answer, HFD_ANSWER_HINT);
    assert_int_equal(world_count(w, HFD_KIND_NODEPOOL),
                     2); /* the new one beside the one that goes */
}

/* ---- deleting ---- */

static void waits_for_one_finalizer(void **state)
{
    struct world *w = *state;
    hfd_slice c;

    create_and_finish(w, body_no_pool);
    c = scene_cluster(w, "c-one");
    assert_int_equal(del(w).answer, HFD_ANSWER_HINT);
    wait_s(w, 1);
    (void)scene_report(w, c, &(struct scene_report){.adapter = "validation", .finalized = true});
    assert_int_equal(get(w).answer, HFD_ANSWER_HINT);
    assert_int_equal(del(w).answer, HFD_ANSWER_HINT);
    (void)scene_report(w, c,
                       &(struct scene_report){
                           .adapter = "dns", .finalized = false, .reason = "InvalidConfiguration"});
    assert_int_equal(get(w).answer, HFD_ANSWER_HINT); /* no reason ends a deletion */
    wait_s(w, 1);
    (void)scene_report(w, c, &(struct scene_report){.adapter = "dns", .finalized = true});
    assert_int_equal(get(w).answer, HFD_ANSWER_ABSENT);
    assert_int_equal(del(w).answer, HFD_ANSWER_ABSENT);
}

static void a_late_deletion(void **state)
{
    struct world *w = *state;
    hfd_slice c;

    create_and_finish(w, body_no_pool);
    c = scene_cluster(w, "c-one");
    (void)del(w);
    wait_s(w, 1);
    (void)scene_report(w, c, &(struct scene_report){.adapter = "validation", .finalized = true});
    wait_s(w, 3599);
    assert_failed(w, "RES-105",
                  "waits for Finalized from dns (has reported on generation 1 of 2). It goes on; "
                  "delete again");
    assert_int_equal(put(w, body_no_pool).answer, HFD_ANSWER_BUSY);
    assert_int_equal(del(w).answer, HFD_ANSWER_HINT);
    assert_int_equal(get(w).answer, HFD_ANSWER_HINT);
    wait_s(w, 3600);
    assert_int_equal(get(w).answer, HFD_ANSWER_FAILED);
    (void)scene_report(w, c, &(struct scene_report){.adapter = "dns", .finalized = true});
    assert_int_equal(get(w).answer, HFD_ANSWER_ABSENT);
}

/* ---- history ---- */

/* A resource that changes for ever keeps its creation and its newest hundred entries. */
static void history_is_bounded(void **state)
{
    struct world *w = *state;
    struct hfd_history_list list;

    create_and_finish(w, body_no_pool);
    for (int i = 0; i < 60; i++) {
        (void)put(w, i % 2 == 0 ? BODY("b", "") : body_no_pool);
        wait_s(w, 1);
        world_succeed_all(w, ID);
        wait_s(w, 1);
    }
    list = scene_history_rows(w, ID);
    assert_int_equal(list.count, 101);
    if (test_on_postgres()) { /* numbers have gaps there */
        for (size_t i = 1; i < list.count; i++)
            assert_true(list.rows[i].seq > list.rows[i - 1].seq);
    } else {
        assert_int_equal(list.rows[0].seq, 1);
        assert_int_equal(list.rows[1].seq, 23);
        assert_int_equal(list.rows[100].seq, 122);
    }
    assert_true(hfd_slice_is(list.rows[0].what, "create"));
    assert_true(hfd_slice_is(list.rows[100].what, "ready"));
}

struct read_history {
    struct world *w;
    const char *id;
    hfd_slice cluster_id; /* not empty = of this cluster */
    struct hfd_history out;
    hfd_rc rc;
};

static hfd_rc txn_read_history(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct read_history *r = arg;
    const struct hfd_ctx c = {.tx = tx,
                              .driver = &r->w->driver,
                              .now_us = world_now(r->w),
                              .mem = &r->w->mem,
                              .err = err};
    struct hfd_fleet_row row;
    hfd_rc rc;

    if (r->cluster_id.len == 0) {
        r->rc = hfd_history_read(&c, hfd_slice_of(r->id), &r->out);
    } else {
        rc = hfd_fleet_row_get(tx, r->cluster_id, c.mem, &row, err);
        r->rc = hfd_history_read_cluster(&c, r->cluster_id, rc == HFD_OK ? &row : NULL, &r->out);
    }
    return HFD_OK;
}

static struct read_history read_history(struct world *w, const char *id, hfd_slice cluster_id)
{
    struct read_history r = {.w = w, .id = id, .cluster_id = cluster_id};

    assert_int_equal(hfd_store_update_wait(w->store, txn_read_history, &r, &w->err), HFD_OK);
    return r;
}

/*
 * "create/1 ready/1 ": each entry with its instance. That is the number of the entry which began
 * it. On PostgreSQL numbers have gaps: here it is the place in the list.
 */
static const char *actions_of(struct world *w, const struct hfd_history *h)
{
    hfd_slice text = HFD_SLICE("");

    for (size_t i = 0; i < h->count; i++) {
        int64_t instance = h->entries[i].instance;

        for (size_t k = 0; test_on_postgres() && k <= i; k++)
            if (h->entries[k].instance == h->entries[i].instance) {
                instance = (int64_t)k + 1;
                break;
            }
        text = hfd_arena_printf(&w->mem, "%.*s%.*s/%lld ", HFD_SLICE_FMT(text),
                                HFD_SLICE_FMT(h->entries[i].what), (long long)instance);
        assert_non_null(text.p);
    }
    return text.p;
}

#define TOMBSTONE_S 7 * 24 * 3600

/*
 * The history outlives the resource for driver.tombstone, and a new life goes on with it. A
 * deletion has the instance of the operation that it ends.
 */
static void history_outlives_the_resource(void **state)
{
    struct world *w = *state;
    struct read_history r;

    assert_int_equal(read_history(w, ID, HFD_SLICE_NONE).rc, HFD_NOT_FOUND);
    create_and_finish(w, body_a);
    (void)put(w, body_b);
    (void)del(w);
    wait_s(w, 5);
    world_succeed_all(w, ID);
    assert_int_equal(get(w).answer, HFD_ANSWER_ABSENT);
    world_restart(w);
    r = read_history(w, ID, HFD_SLICE_NONE);
    assert_int_equal(r.rc, HFD_OK);
    assert_false(r.out.is_there);
    assert_string_equal(actions_of(w, &r.out), "create/1 ready/1 update/3 delete/3 removed/3 ");
    assert_int_equal(r.out.entries[0].at_us, TEST_TIME_US);
    assert_int_equal(r.out.removed.removed_us, world_now(w));
    assert_int_equal(r.out.removed.created_us, TEST_TIME_US);
    assert_int_equal(r.out.removed.kind, HFD_KIND_CLUSTER);
    assert_true(hfd_slice_is(r.out.removed.name, "c-one"));
    assert_true(r.out.removed.cluster_id.len > 0);
    wait_s(w, TOMBSTONE_S - 1);
    assert_int_equal(read_history(w, ID, HFD_SLICE_NONE).rc, HFD_OK);
    (void)put(w, body_a);
    r = read_history(w, ID, HFD_SLICE_NONE);
    assert_true(r.out.is_there);
    assert_string_equal(actions_of(w, &r.out),
                        "create/1 ready/1 update/3 delete/3 removed/3 create/6 ");
    wait_s(w, 1);
    world_succeed_all(w, ID);
    (void)del(w);
    world_succeed_all(w, ID);
    wait_s(w, TOMBSTONE_S - 1);
    assert_int_equal(read_history(w, ID, HFD_SLICE_NONE).rc, HFD_OK);
    wait_s(w, 1);
    assert_int_equal(read_history(w, ID, HFD_SLICE_NONE).rc, HFD_NOT_FOUND);
    /* The next removal takes it away. */
    assert_true(scene_history_rows(w, ID).count > 0);
    (void)world_put_ok(w, "other", body_a, NULL);
    world_succeed_all(w, "other");
    (void)world_delete_ok(w, "other", NULL);
    world_succeed_all(w, "other");
    assert_int_equal(scene_history_rows(w, ID).count, 0);
    assert_true(scene_history_rows(w, "other").count > 0);
}

/* A resource that is made again after its cluster was removed keeps the time of its first life. */
static void history_of_a_cluster_that_went(void **state)
{
    struct world *w = *state;
    struct hfd_history_list before, after;

    create_and_finish(w, body_no_pool);
    before = scene_history_rows(w, ID);
    scene_force_delete(w, HFD_KIND_CLUSTER, scene_cluster(w, "c-one"));
    wait_s(w, 1);
    (void)put(w, body_no_pool);
    after = scene_history_rows(w, ID);
    assert_true(hfd_slice_eq(before.rows[0].incarnation, after.rows[0].incarnation));
    assert_false(hfd_slice_eq(after.rows[0].incarnation, after.rows[after.count - 1].incarnation));
}

/* Clusters that HyperFleet's API made have their actions, with the generation as instance. */
static void history_of_another_cluster(void **state)
{
    struct world *w = *state;
    struct read_history r;
    hfd_slice id;

    id = scene_create(w, HFD_KIND_CLUSTER, HFD_SLICE(""), "theirs", NULL);
    r = read_history(w, NULL, id);
    assert_true(r.out.is_there);
    assert_string_equal(actions_of(w, &r.out), "create/1 ");
    wait_s(w, 1);
    scene_patch(w, HFD_KIND_CLUSTER, id, "{\"platform\":{\"type\":\"KubeVirt\"}}");
    r = read_history(w, NULL, id);
    assert_string_equal(actions_of(w, &r.out), "create/1 update/2 ");
    assert_int_equal(r.out.entries[0].at_us, TEST_TIME_US);
    assert_int_equal(r.out.entries[1].at_us, TEST_TIME_US + S);
    wait_s(w, 1);
    scene_delete(w, HFD_KIND_CLUSTER, id);
    r = read_history(w, NULL, id);
    assert_string_equal(actions_of(w, &r.out), "create/1 update/2 delete/2 ");
    assert_int_equal(r.out.entries[2].at_us, TEST_TIME_US + 2 * S);
    wait_s(w, 1);
    scene_force_delete(w, HFD_KIND_CLUSTER, id);
    r = read_history(w, NULL, id);
    assert_false(r.out.is_there);
    assert_string_equal(actions_of(w, &r.out), "create/1 update/2 delete/2 removed/2 ");
    assert_int_equal(r.out.entries[2].at_us, TEST_TIME_US + 2 * S);
    assert_true(hfd_slice_is(r.out.removed.name, "theirs"));
    assert_true(hfd_slice_is(r.out.removed.provider, "KubeVirt"));
    wait_s(w, TOMBSTONE_S);
    assert_int_equal(read_history(w, NULL, id).rc, HFD_NOT_FOUND);
}

/* The history has every event of a resource's life in order, and is there after a restart. */
static void history_of_a_life(void **state)
{
    struct world *w = *state;

    create_and_finish(w, body_a);
    (void)put(w, body_b);
    (void)put(w, BODY("c", POOL));
    wait_s(w, 1);
    world_succeed_all(w, ID);
    wait_s(w, 1);
    scene_force_delete(w, HFD_KIND_CLUSTER, scene_cluster(w, "c-one"));
    (void)put(w, body_a);
    (void)del(w);
    wait_s(w, 3600);
    (void)del(w);
    world_restart(w);
    assert_string_equal(scene_history(w, ID), CREATED
                        "creating>ready ready 1; ready>updating update 2; updating>updating "
                        "retarget 3; updating>ready ready 3; "
                        "ready>failed failed 4; failed>creating retry 1; creating>deleting delete "
                        "1; deleting>deleting delete 2; ");
}

/* clang-format off */
#define ROWS(X) \
    X(all_parts_ready) X(a_nodepool_lags) X(ready_at_an_older_generation) X(adapters_at_mixed_generations) \
    X(a_stale_report) X(an_adapter_does_not_know) X(a_nodepool_leaves) X(an_adapter_gives_up) \
    X(a_nodepool_fails_alone) X(a_transient_reason) X(an_adapter_is_not_well_itself) X(gave_up_before_this_attempt) \
    X(a_failed_create_is_deleted) X(an_adapter_never_reports) X(late_and_then_ready) X(a_late_update_is_tried_again) \
    X(a_deadline_of_its_kind) X(degraded_then_well) X(a_nodepool_is_degraded) X(gave_up_when_ready) \
    X(changed_by_somebody_else) X(degraded_until_healthy) X(removed_in_hyperfleet) X(removed_and_then_deleted) \
    X(removed_while_it_is_made) X(deleted_by_somebody_else) X(waits_for_one_finalizer) X(a_late_deletion)
/* clang-format on */

/* Each row of the table has its scenario here, and each scenario its row. */
static void readme_has_the_rows(void **state)
{
#define NAME(f) #f,
    static const char *const names[] = {ROWS(NAME)};
#undef NAME
    static char text[64 * 1024];
    char path[4096], cell[80];
    size_t rows = 0, len;
    FILE *f;

    (void)state;
    (void)snprintf(path, sizeof(path), "%.*s../../driver/core/README.md",
                   (int)(strrchr(__FILE__, '/') + 1 - __FILE__), __FILE__);
    f = fopen(path, "re");
    if (f == NULL)
        skip();
    len = fread(text, 1, sizeof(text) - 1, f);
    (void)fclose(f);
    assert_true(len < sizeof(text) - 1);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)snprintf(cell, sizeof(cell), "\n| `%s` |", names[i]);
        if (strstr(text, cell) == NULL)
            fail_msg("the table has no row %s", names[i]);
    }
    for (const char *at = strstr(text, "## The outcome table");
         at != NULL && (at = strstr(at, "\n| `")) != NULL; at++) {
        if (strstr(text, "## Decisions") < at)
            break;
        rows++;
    }
    assert_int_equal(rows, sizeof(names) / sizeof(names[0]));
}

/* ---- log lines ---- */

static const char body_logged[] =
    "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{\"cluster\":{"
    "\"name\":\"c-log\",\"spec\":{}}}}}";

/* One line for each outcome, with the operation that ended; none for what a reader settles. */
static void outcomes_are_logged(void **state)
{
    struct world w;
    char path[TMPDIR_MAX + 8], log[4096];
    ssize_t n;
    int fd;

    (void)state;
    world_open(&w);
    (void)snprintf(path, sizeof(path), "%s/log", w.base);
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    hfd_log_set_fd(fd);
    (void)world_put_ok(&w, "logged", body_logged, NULL);
    test_clock_advance(&w.clock, 61 * HFD_US_PER_S);
    world_succeed_all(&w, "logged");
    assert_int_equal(scene_report(&w, scene_cluster(&w, "c-log"),
                                  &(struct scene_report){.adapter = "dns",
                                                         .available = HFD_STATUS_FALSE,
                                                         .applied = HFD_STATUS_TRUE}),
                     HFD_VERDICT_STORE);
    world_succeed_all(&w, "logged");
    (void)world_delete_ok(&w, "logged", NULL);
    world_succeed_all(&w, "logged");
    (void)world_put_ok(&w, "late", body_logged, NULL);
    test_clock_advance(&w.clock, 7200 * HFD_US_PER_S);
    (void)world_get_ok(&w, "late", NULL);
    hfd_log_set_fd(-1);
    n = pread(fd, log, sizeof(log) - 1, 0);
    assert_true(n > 0);
    log[n] = '\0';
    assert_int_equal(close(fd), 0);
    assert_non_null(strstr(log, "\"resource ready\",\"guresid\":\"logged\",\"hyperfleet_id\":\"2"));
    assert_non_null(strstr(log, "\"operation\":\"create\",\"duration_ms\":61000"));
    assert_non_null(strstr(log, "\"resource degraded\""));
    assert_non_null(strstr(log, "\"resource recovered\""));
    assert_non_null(strstr(log, "\"resource deleted\""));
    assert_non_null(strstr(log, "\"operation\":\"delete\""));
    assert_null(strstr(log, "\"late\""));
    world_close(&w);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
#define ROW_(f) TEST(f),
    /* clang-format off */
    const struct CMUnitTest tests[] = {
        ROWS(ROW_)
        TEST(history_is_bounded),
        TEST(history_outlives_the_resource),
        TEST(history_of_a_cluster_that_went),
        TEST(history_of_another_cluster),
        TEST(history_of_a_life),
        cmocka_unit_test(readme_has_the_rows),
        cmocka_unit_test(outcomes_are_logged),
    };
    /* clang-format on */

    return cmocka_run_group_tests(tests, NULL, NULL);
}
