/*
 * Scenarios for test_memory.c beside the ordinary calls: what is learned, lost, found again, taken
 * away and listed.
 */
#include "driver/core/cookie.h"
#include "driver/core/transition.h"
#include "tests/fault/memory.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "driver/core/hint.h"
#include "driver/core/overview.h"
#include "driver/core/status.h"
#include "driver/fleet/condition.h"
#include "driver/fleet/search.h"
#include "store/rows_fleet.h"
#include "store/rows_history.h"
#include "store/rows_report.h"
#include "store/search.h"
#include "tests/lib/contains.h"
#include "tests/lib/scene.h"

#define CLUSTER(name, pools)                                                                       \
    "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{\"cluster\":{\"name\":\"" name       \
    "\"," LABELS "\"spec\":{\"v\":1}},\"nodepools\":[" pools "]}}}"
#define LABELS "\"labels\":{\"team\":\"blue\"},"
#define POOL(name) "{\"name\":\"" name "\"}"
#define BODY CLUSTER("one", POOL("np-1") "," POOL("np-2"))
#define BODY_POOL                                                                                  \
    "{\"type\":\"hyperfleet-nodepool\",\"driver\":{\"values\":{\"cluster_guresid\":\"res\","       \
    "\"nodepool\":{\"name\":\"np-9\"}}}}"

static char cookie[HFD_COOKIE_MAX + 1];

/* ---- before ---- */

static void ready(struct world *w)
{
    const struct hfd_answer_doc doc = world_put_ok(w, "res", BODY, NULL);

    (void)snprintf(cookie, sizeof(cookie), "%.*s", HFD_SLICE_FMT(doc.cookie));
    test_clock_advance(&w->clock, 40 * HFD_US_PER_S);
    world_succeed_all(w, "res");
}

/* Others came to their end, each after another time. */
static void learned(struct world *w)
{
    static const char *const ids[] = {"a", "b", "c"};
    static const char *const bodies[] = {CLUSTER("c-a", POOL("np-1") "," POOL("np-2")),
                                         CLUSTER("c-b", POOL("np-1") "," POOL("np-2")),
                                         CLUSTER("c-c", "")};

    for (size_t i = 0; i < 3; i++) {
        (void)world_put_ok(w, ids[i], bodies[i], NULL);
        test_clock_advance(&w->clock, (int64_t)(60 + 25 * i) * HFD_US_PER_S);
        world_succeed(w, scene_cluster(w, (const char *const[]){"c-a", "c-b", "c-c"}[i]));
        test_clock_advance(&w->clock, 30 * HFD_US_PER_S);
        world_succeed_all(w, ids[i]);
        assert_int_equal(world_row(w, ids[i]).state, HFD_STATE_READY);
    }
}

static void learned_and_begun(struct world *w)
{
    learned(w);
    (void)world_put_ok(w, "res", BODY, NULL);
    test_clock_advance(&w->clock, 61 * HFD_US_PER_S);
}

static void lost(struct world *w)
{
    ready(w);
    scene_forget(w, "res");
}

static void stray(struct world *w)
{
    (void)scene_create(w, HFD_KIND_CLUSTER, HFD_SLICE(""), "other", "res");
}

static void late_deleting(struct world *w)
{
    ready(w);
    (void)world_delete_ok(w, "res", NULL);
    test_clock_advance(&w->clock, 7200 * HFD_US_PER_S);
}

static void removed(struct world *w)
{
    ready(w);
    scene_force_delete(w, HFD_KIND_CLUSTER, scene_cluster(w, "one"));
    assert_int_equal(world_row(w, "res").state, HFD_STATE_FAILED);
}

static char marked[32];

static void marked_deleted(struct world *w)
{
    hfd_slice id;

    ready(w);
    id = scene_cluster(w, "one");
    (void)snprintf(marked, sizeof(marked), "%.*s", HFD_SLICE_FMT(id));
    scene_delete(w, HFD_KIND_CLUSTER, id);
}

/* ---- calls ---- */

static hfd_rc wanted(hfd_rc rc, const struct hfd_answer_doc *doc, enum hfd_answer answer)
{
    return rc == HFD_OK && doc->answer != answer ? HFD_INVALID : rc;
}

/* A call that must be refused like this. */
static hfd_rc refused(hfd_rc rc, hfd_rc how)
{
    if (rc == how)
        return HFD_OK;
    return rc == HFD_OK ? HFD_INVALID : rc;
}

static hfd_rc put_hint(struct world *w)
{
    struct hfd_answer_doc doc;

    return wanted(world_put(w, "res", BODY, NULL, &doc), &doc, HFD_ANSWER_HINT);
}

static hfd_rc put_finds(struct world *w)
{
    struct hfd_answer_doc doc;

    return wanted(world_put(w, "res", BODY, NULL, &doc), &doc, HFD_ANSWER_OUTPUT);
}

static hfd_rc put_other_name(struct world *w)
{
    struct hfd_answer_doc doc;

    return refused(world_put(w, "res", BODY, NULL, &doc), HFD_IMMUTABLE);
}

static hfd_rc put_pool_alone(struct world *w)
{
    struct hfd_answer_doc doc;

    return refused(world_put(w, "pool", BODY_POOL, NULL, &doc), HFD_INVALID);
}

static hfd_rc get_restores(struct world *w)
{
    struct hfd_answer_doc doc;

    return wanted(world_get(w, "res", cookie, &doc), &doc, HFD_ANSWER_OUTPUT);
}

static hfd_rc get_overdue(struct world *w)
{
    struct hfd_answer_doc doc;

    return wanted(world_get(w, "res", NULL, &doc), &doc, HFD_ANSWER_FAILED);
}

/* ---- in HyperFleet ---- */

/* One transaction on the cluster "one", and what it needs. */
struct act {
    struct world *w;
    struct hfd_fleet_call call;
    struct hfd_fleet_changes changes;
    const char *adapter;
    struct hfd_arena mem;
};

/* The call of a run that changes something in HyperFleet. */
static const struct hfd_fleet_call *begin(struct act *a)
{
    a->changes = (struct hfd_fleet_changes){.mem = &a->mem};
    a->call.changes = &a->changes;
    return &a->call;
}

static hfd_rc observed(struct hfd_txn *tx, struct act *a, hfd_rc rc, struct hfd_err *err)
{
    return rc == HFD_OK ? hfd_resource_observe(tx, &a->w->driver, &a->call, err) : rc;
}

static hfd_rc find_one(struct hfd_txn *tx, struct act *a, struct hfd_fleet_row *row,
                       struct hfd_err *err)
{
    return hfd_fleet_row_by_name(
        tx, &(struct hfd_fleet_name){HFD_KIND_CLUSTER, HFD_SLICE(""), HFD_SLICE("one")}, &a->mem,
        row, err);
}

static hfd_rc act_on(struct world *w, const char *adapter, bool reads, hfd_txn_fn *fn)
{
    struct act a = {.w = w, .adapter = adapter};
    hfd_rc rc;

    hfd_arena_init(&a.mem, (size_t)16 << 20);
    a.call = (struct hfd_fleet_call){.fleet = &w->driver.fleet,
                                     .now_us = world_now(w),
                                     .caller = HFD_SLICE("somebody@example.com"),
                                     .mem = &a.mem};
    rc = reads ? hfd_store_read(w->reader, fn, &a, &w->err)
               : hfd_store_update_wait(w->store, fn, &a, &w->err);
    hfd_arena_fini(&a.mem);
    return rc;
}

static hfd_rc txn_report(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct act *a = arg;
    struct hfd_condition conditions[] = {
        {.type = HFD_SLICE("Available"),
         .status = HFD_STATUS_TRUE,
         .reason = HFD_SLICE("Done"),
         .message = HFD_SLICE("as it is")},
        {.type = HFD_SLICE("Applied"), .status = HFD_STATUS_TRUE},
        {.type = HFD_SLICE("Health"), .status = HFD_STATUS_TRUE},
    };
    struct hfd_fleet_row row;
    struct hfd_fleet_reported stored;
    struct hfd_fleet_report in;
    hfd_rc rc = find_one(tx, a, &row, err);

    if (rc != HFD_OK)
        return rc;
    in = (struct hfd_fleet_report){
        .target = {.kind = HFD_KIND_CLUSTER, .id = row.id},
        .adapter = hfd_slice_of(a->adapter),
        .observed_generation = row.generation,
        .observed_us = a->call.now_us,
        .conditions = {conditions, 3},
        .data = HFD_SLICE("{\"n\":1}"),
        .metadata = HFD_SLICE(""),
    };
    return observed(tx, a, hfd_fleet_report(tx, begin(a), &in, &stored, err), err);
}

static hfd_rc report_by_one(struct world *w)
{
    return act_on(w, "validation", false, txn_report);
}

/* From an adapter that is not required, and again. */
static hfd_rc report_by_others(struct world *w)
{
    hfd_rc rc = act_on(w, "nobody-asked", false, txn_report);

    return rc == HFD_OK ? act_on(w, "nobody-else", false, txn_report) : rc;
}

static hfd_rc txn_force(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct act *a = arg;

    const struct hfd_fleet_target target = {.kind = HFD_KIND_CLUSTER, .id = hfd_slice_of(marked)};

    return observed(tx, a, hfd_fleet_force_delete(tx, begin(a), &target, err), err);
}

static hfd_rc force_delete(struct world *w)
{
    const hfd_rc rc = act_on(w, NULL, false, txn_force);

    return rc == HFD_NOT_FOUND ? HFD_OK : rc; /* the second time */
}

static const struct hfd_orphan_owner nobody;

static hfd_rc txn_orphans(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct act *a = arg;
    struct hfd_orphans found;
    const hfd_rc rc = hfd_orphans_list(tx, a->w->driver.backend_ops, &nobody, &a->mem, &found, err);

    return rc == HFD_OK && found.list.count != 1 ? HFD_INVALID : rc;
}

static hfd_rc list_orphans(struct world *w)
{
    return act_on(w, NULL, true, txn_orphans);
}

static hfd_rc txn_remove_orphan(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct act *a = arg;
    struct hfd_orphans found;
    const struct hfd_ctx c = {
        .tx = tx, .driver = &a->w->driver, .now_us = a->call.now_us, .mem = &a->mem, .err = err};
    struct hfd_fleet_deletion removed;
    hfd_rc rc = hfd_orphans_list(tx, a->w->driver.backend_ops, &nobody, &a->mem, &found, err);

    if (rc == HFD_OK && found.list.count != 1)
        return HFD_INVALID;
    return rc == HFD_OK
               ? hfd_orphan_remove(&c, a->call.caller,
                                   &(struct hfd_orphan_choice){.id = found.list.rows[0].id},
                                   &removed)
               : rc;
}

static hfd_rc remove_orphan(struct world *w)
{
    return act_on(w, NULL, false, txn_remove_orphan);
}

/* ---- lists and documents ---- */

static hfd_rc txn_by_label(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    static const char search[] =
        "labels.team = 'blue' AND status.conditions.Ready = 'True' AND NOT name IN ('x', 'y')";
    struct act *a = arg;
    struct hfd_fleet_query query = {.kind = HFD_KIND_CLUSTER, .limit = 10};
    struct hfd_fleet_list found;
    hfd_rc rc =
        hfd_search_parse(HFD_KIND_CLUSTER, hfd_slice_of(search), &a->mem, &query.filter, err);

    if (rc == HFD_OK)
        rc = hfd_fleet_row_search(tx, &query, &a->mem, &found, err);
    return rc == HFD_OK && found.total != 1 ? HFD_INVALID : rc;
}

static hfd_rc list_by_label(struct world *w)
{
    return act_on(w, NULL, true, txn_by_label);
}

static hfd_rc txn_records(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct act *a = arg;
    struct hfd_history_list history;
    struct hfd_report_list reports;
    struct hfd_fleet_row row;
    hfd_rc rc = hfd_history_row_list(
        tx, &(struct hfd_history_subject){HFD_ABOUT_RESOURCE, HFD_SLICE("res")}, &a->mem, &history,
        err);

    if (rc == HFD_OK && history.count != 2)
        return HFD_INVALID;
    if (rc == HFD_OK)
        rc = find_one(tx, a, &row, err);
    if (rc == HFD_OK)
        rc = hfd_report_row_list(tx, &(struct hfd_report_query){.fleet_id = row.id, .limit = 10},
                                 &a->mem, &reports, err);
    if (rc == HFD_OK && reports.count != 2)
        return HFD_INVALID;
    return rc == HFD_OK ? hfd_txn_check(tx, NULL, err) : rc;
}

static hfd_rc list_records(struct world *w)
{
    return act_on(w, NULL, true, txn_records);
}

static hfd_rc txn_vocabulary(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct act *a = arg;
    struct hfd_fleet_row row;
    hfd_slice shown = HFD_SLICE_NONE;
    hfd_rc rc = find_one(tx, a, &row, err);

    if (rc == HFD_OK)
        rc = hfd_vocabulary_show(HFD_VOCABULARY_BOTH, row.conditions, &a->mem, &shown, err);
    return rc == HFD_OK && !slice_has(shown, "LastKnownReconciled") ? HFD_INVALID : rc;
}

static hfd_rc show_vocabulary(struct world *w)
{
    return act_on(w, NULL, true, txn_vocabulary);
}

static hfd_rc show_hint(struct world *w)
{
    struct hfd_answer_doc doc;
    struct hfd_buf b;
    hfd_slice text;
    hfd_rc rc = world_get(w, "res", NULL, &doc);

    if (rc != HFD_OK || doc.answer != HFD_ANSWER_HINT)
        return rc == HFD_OK ? HFD_INVALID : rc;
    hfd_buf_init(&b, 4096);
    hfd_hint_format(&b, &doc.hint);
    rc = hfd_buf_finish(&b, &text, &w->err);
    hfd_buf_fini(&b);
    return rc;
}

/* ---- EMCO's status query ---- */

static const char listed[] =
    "{\"objects\":[{\"name\":\"a\",\"present\":true,\"detail\":{\"kind\":\"Secret\",\"data\":"
    "{\"x\":\"eA==\"}}},{\"name\":\"b\",\"rsync-status\":\"Applied\"}]}";

/* Ready, and an adapter has listed objects. */
static void objects_listed(struct world *w)
{
    ready(w);
    (void)world_report(w, scene_cluster(w, "one"),
                       &(struct world_report){
                           .adapter = "validation", .available = HFD_STATUS_TRUE, .data = listed});
}

static void objects_gone(struct world *w)
{
    hfd_slice pools[2];

    objects_listed(w);
    pools[0] = scene_nodepool(w, "np-1");
    pools[1] = scene_nodepool(w, "np-2");
    (void)world_delete_ok(w, "res", NULL);
    (void)world_report(w, world_row(w, "res").cluster_id,
                       &(struct world_report){.adapter = "dns", .finalized = true});
    (void)world_report(
        w, world_row(w, "res").cluster_id,
        &(struct world_report){.adapter = "validation", .finalized = true, .data = listed});
    world_succeed(w, pools[0]);
    world_succeed(w, pools[1]);
    assert_int_equal(world_row(w, "res").state, HFD_STATE_ABSENT);
}

static hfd_rc ask(struct hfd_txn *tx, struct act *a, const char *id, struct hfd_err *err)
{
    const struct hfd_call call = {.driver = &a->w->driver,
                                  .now_us = a->call.now_us,
                                  .guresid = hfd_slice_of(id),
                                  .mem = &a->mem};
    struct hfd_status_query query = {.has_instance = false};
    struct hfd_status_view view;
    struct hfd_fleet_row row;
    struct hfd_buf b;
    hfd_rc rc =
        hfd_status_query_take(&query, HFD_SLICE("output"), HFD_SLICE("detail"), &a->mem, err);

    if (rc == HFD_OK && id == NULL) {
        struct hfd_call of_cluster = call;

        rc = find_one(tx, a, &row, err);
        of_cluster.guresid = row.id;
        if (rc == HFD_OK)
            rc = hfd_status_of_cluster(tx, &of_cluster, &query, &view, err);
    } else if (rc == HFD_OK) {
        rc = hfd_status_of_resource(tx, &call, &query, &view, err);
    }
    if (rc != HFD_OK)
        return rc;
    hfd_buf_init(&b, (size_t)1 << 20);
    hfd_status_view_format(&b, &query, &view);
    rc = b.rc == HFD_OK && view.item_count != 5 ? HFD_INVALID : b.rc;
    hfd_buf_fini(&b);
    return rc;
}

static hfd_rc txn_status(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    return ask(tx, arg, "res", err);
}

static hfd_rc show_status(struct world *w)
{
    return act_on(w, NULL, true, txn_status);
}

static hfd_rc txn_cluster_status(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    return ask(tx, arg, NULL, err);
}

static hfd_rc show_cluster_status(struct world *w)
{
    return act_on(w, NULL, true, txn_cluster_status);
}

/* Another order: what the present instance has is kept. */
static hfd_rc put_ends(struct world *w)
{
    struct hfd_answer_doc doc;

    return wanted(world_put(w, "res", CLUSTER("one", POOL("np-1") "," POOL("np-3")), NULL, &doc),
                  &doc, HFD_ANSWER_HINT);
}

/* clang-format off */
const struct memory_scenario memory_more[] = {
    {"put-learned",    learned,           put_hint,         true, false, 100, 6},
    {"report-learned", learned_and_begun, report_by_one,    true, false, 50, 6},
    {"hint-learned",   learned_and_begun, show_hint,        true, false, 2, 1},
    {"put-finds",      lost,              put_finds,        true, false, 100, 6},
    {"put-other-name", stray,             put_other_name,   true, true, 20, 6},
    {"put-removed",    removed,           put_hint,         true, false, 100, 6},
    {"put-pool-alone", marked_deleted,    put_pool_alone,   true, false, 20, 6},
    {"get-restores",   lost,              get_restores,     true, false, 50, 6},
    {"get-overdue",    late_deleting,     get_overdue,      true, false, 20, 1},
    {"report-others",  ready,             report_by_others, true, false, 50, 6},
    {"force-delete",   marked_deleted,    force_delete,     true, false, 50, 6},
    {"orphans",        stray,             list_orphans,     true, true, 5, 1},
    {"orphan-remove",  stray,             remove_orphan,    true, true, 20, 6},
    {"list-label",     ready,             list_by_label,    true, false, 20, 1},
    {"list-records",   ready,             list_records,     true, false, 20, 1},
    {"status",         objects_listed,    show_status,      true, false, 50, 1},
    {"status-ended",   objects_gone,      show_status,      true, false, 20, 1},
    {"status-cluster", objects_listed,    show_cluster_status, true, false, 50, 1},
    {"put-ends",       objects_listed,    put_ends,         true, false, 100, 6},
    {"vocabulary",     ready,             show_vocabulary,  true, false, 10, 1},
};
/* clang-format on */
const size_t memory_more_count = sizeof(memory_more) / sizeof(memory_more[0]);
