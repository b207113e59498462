/*
 * The driver contract on an embedded HyperFleet: both decision tables of driver/core/README.md,
 * cell by cell, and the cases around them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "driver/base/trouble.h"
#include "driver/core/cookie.h"
#include "driver/core/transition.h"
#include "driver/fleet/fleet.h"
#include "tests/lib/contains.h"
#include "tests/lib/place.h"
#include "tests/lib/world.h"
#include "store/rows_fleet.h"
#include "store/rows_resource.h"

#define ID "res-1"
#define BODY(spec, pools)                                                                          \
    "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{\"cluster\":{\"name\":\"c-one\","    \
    "\"spec\":" spec "},\"nodepools\":" pools "}}}"
#define POOL(name, spec) "{\"name\":\"" name "\",\"spec\":" spec "}"
static const char body_a[] = BODY("{\"region\":\"a\"}", "[" POOL("np-one", "{\"n\":1}") "]");
/* clang-format off */
static const char body_a_reordered[] =
    " {\"driver\": {\"values\":{\"nodepools\":[" POOL("np-one", "{\"n\":1}") "],\"cluster\":{\"spec\":{\"region\":\"a\"},\"name\":\"c-one\"}}},"
    " \"type\":\"hyperfleet-cluster\"}";
/* clang-format on */
static const char body_b[] = BODY("{\"region\":\"b\"}", "[" POOL("np-one", "{\"n\":1}") "]");
static const char body_c[] = BODY("{\"region\":\"c\"}", "[" POOL("np-one", "{\"n\":1}") "]");

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

static void fail_terminally(struct world *w)
{
    const struct hfd_fleet_row *c = world_find(w, HFD_KIND_CLUSTER, "c-one");

    assert_non_null(c);
    test_clock_advance(&w->clock, HFD_US_PER_S);
    (void)world_report(w, c->id,
                       &(struct world_report){.adapter = "dns",
                                              .available = HFD_STATUS_FALSE,
                                              .reason = "InvalidConfiguration"});
}

/* Brings ID into a state, with body_a as its last accepted input (body_b once it was updated). */
static const char *bring_to(struct world *w, enum hfd_state state)
{
    if (state == HFD_STATE_ABSENT)
        return body_a;
    (void)put(w, body_a);
    if (state == HFD_STATE_CREATING)
        return body_a;
    if (state == HFD_STATE_FAILED) {
        fail_terminally(w);
        return body_a;
    }
    world_succeed_all(w, ID);
    test_clock_advance(&w->clock, HFD_US_PER_S);
    if (state == HFD_STATE_UPDATING) {
        (void)put(w, body_b);
        return body_b;
    }
    if (state == HFD_STATE_DELETING)
        (void)del(w);
    return body_a;
}

/* Every cell of the PUT table, and the state that it leads to. */
static void put_table(void **state)
{
    static const struct {
        enum hfd_state from;
        bool same;
        enum hfd_answer answer;
        enum hfd_state to;
    } cells[] = {
        {HFD_STATE_ABSENT, true, HFD_ANSWER_HINT, HFD_STATE_CREATING},
        {HFD_STATE_CREATING, true, HFD_ANSWER_HINT, HFD_STATE_CREATING},
        {HFD_STATE_UPDATING, true, HFD_ANSWER_HINT, HFD_STATE_UPDATING},
        {HFD_STATE_READY, true, HFD_ANSWER_OUTPUT, HFD_STATE_READY},
        {HFD_STATE_FAILED, true, HFD_ANSWER_HINT, HFD_STATE_CREATING},
        {HFD_STATE_DELETING, true, HFD_ANSWER_BUSY, HFD_STATE_DELETING},
        {HFD_STATE_CREATING, false, HFD_ANSWER_BUSY, HFD_STATE_CREATING},
        {HFD_STATE_UPDATING, false, HFD_ANSWER_HINT, HFD_STATE_UPDATING},
        {HFD_STATE_READY, false, HFD_ANSWER_HINT, HFD_STATE_UPDATING},
        {HFD_STATE_FAILED, false, HFD_ANSWER_HINT, HFD_STATE_CREATING},
        {HFD_STATE_DELETING, false, HFD_ANSWER_BUSY, HFD_STATE_DELETING},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
        struct world w;
        struct hfd_answer_doc doc;
        const char *last;

        world_open(&w);
        last = bring_to(&w, cells[i].from);
        assert_int_equal(world_row(&w, ID).state, cells[i].from);
        world_restart(&w);
        doc = put(&w, cells[i].same ? last : body_c);
        if (doc.answer != cells[i].answer || world_row(&w, ID).state != (int)cells[i].to)
            fail_msg("PUT %s in %s: answer %d, state %s", cells[i].same ? "same" : "different",
                     hfd_state_name(cells[i].from), doc.answer,
                     hfd_state_name((enum hfd_state)world_row(&w, ID).state));
        assert_true(doc.has_cookie && doc.cookie.len > 0);
        assert_int_equal(world_count(&w, HFD_KIND_CLUSTER), 1);
        world_close(&w);
    }
}

/* Every cell of the GET and DELETE rows. */
static void get_and_delete_table(void **state)
{
    static const struct {
        enum hfd_state from;
        enum hfd_answer get, del;
    } cells[] = {
        {HFD_STATE_ABSENT, HFD_ANSWER_ABSENT, HFD_ANSWER_ABSENT},
        {HFD_STATE_CREATING, HFD_ANSWER_HINT, HFD_ANSWER_HINT},
        {HFD_STATE_UPDATING, HFD_ANSWER_HINT, HFD_ANSWER_HINT},
        {HFD_STATE_READY, HFD_ANSWER_OUTPUT, HFD_ANSWER_HINT},
        {HFD_STATE_FAILED, HFD_ANSWER_FAILED, HFD_ANSWER_HINT},
        {HFD_STATE_DELETING, HFD_ANSWER_HINT, HFD_ANSWER_HINT},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
        struct world w;

        world_open(&w);
        (void)bring_to(&w, cells[i].from);
        world_restart(&w);
        assert_int_equal(get(&w).answer, cells[i].get);
        assert_int_equal(del(&w).answer, cells[i].del);
        assert_int_equal(del(&w).answer, cells[i].del);
        if (cells[i].from != HFD_STATE_ABSENT) {
            world_succeed_all(&w, ID);
            assert_int_equal(world_row(&w, ID).state, HFD_STATE_ABSENT);
            assert_int_equal(world_count(&w, HFD_KIND_CLUSTER) + world_count(&w, HFD_KIND_NODEPOOL),
                             0);
        }
        assert_int_equal(del(&w).answer, HFD_ANSWER_ABSENT);
        assert_int_equal(get(&w).answer, HFD_ANSWER_ABSENT);
        world_close(&w);
    }
}

/* The same document in another order and with other white space is the same input. */
static void same_is_canonical(void **state)
{
    struct world *w = *state;
    struct hfd_answer_doc first = put(w, body_a), again = put(w, body_a_reordered);

    assert_int_equal(again.answer, HFD_ANSWER_HINT);
    assert_true(hfd_slice_eq(first.cookie, again.cookie));
}

/*
 * A type that the settings serve no more is refused in whatever bytes it comes; what was made of it
 * can be read and deleted.
 */
static void type_not_served_any_more(void **state)
{
    static const char *const bodies[] = {body_a, body_a_reordered, body_b};
    struct world *w = *state;
    struct hfd_answer_doc doc;

    (void)bring_to(w, HFD_STATE_READY);
    w->driver.rules.cluster_type_count = 0;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        assert_int_equal(world_put(w, ID, bodies[i], NULL, &doc), HFD_INVALID);
        assert_string_equal(w->err.field, "type");
    }
    assert_int_equal(get(w).answer, HFD_ANSWER_OUTPUT);
    assert_int_equal(del(w).answer, HFD_ANSWER_HINT);
}

/* Ready needs every part: the cluster alone is not enough. */
static void ready_needs_all_parts(void **state)
{
    struct world *w = *state;

    (void)put(w, body_a);
    world_succeed(w, world_find(w, HFD_KIND_CLUSTER, "c-one")->id);
    assert_int_equal(get(w).answer, HFD_ANSWER_HINT);
    world_succeed(w, world_find(w, HFD_KIND_NODEPOOL, "np-one")->id);
    assert_int_equal(get(w).answer, HFD_ANSWER_OUTPUT);
}

/* Once ready, a fault does not take the 200 away; the output says so, and that it is well again. */
static void degraded_stays_200(void **state)
{
    struct world *w = *state;
    const struct hfd_fleet_row *c;

    (void)bring_to(w, HFD_STATE_READY);
    assert_contains(get(w).values, "\"health\":\"Healthy\"");
    c = world_find(w, HFD_KIND_CLUSTER, "c-one");
    (void)world_report(w, c->id,
                       &(struct world_report){
                           .adapter = "dns", .available = HFD_STATUS_FALSE, .reason = "ZoneLost"});
    assert_int_equal(get(w).answer, HFD_ANSWER_OUTPUT);
    assert_contains(get(w).values, "\"health\":\"Degraded\"");
    assert_contains(get(w).values, "ZoneLost");
    test_clock_advance(&w->clock, HFD_US_PER_S);
    world_succeed_all(w, ID);
    assert_contains(get(w).values, "\"health\":\"Healthy\"");
}

/*
 * A creation fails at its deadline, seen by GET alone; later success does not revive it, a PUT
 * does, at once.
 */
static void deadline_fails_and_put_revives(void **state)
{
    struct world *w = *state;
    struct hfd_answer_doc doc;

    (void)put(w, body_a);
    test_clock_advance(&w->clock, 3600 * HFD_US_PER_S - 1);
    assert_int_equal(get(w).answer, HFD_ANSWER_HINT);
    test_clock_advance(&w->clock, 1);
    doc = get(w);
    assert_int_equal(doc.answer, HFD_ANSWER_FAILED);
    assert_true(hfd_slice_is(doc.error, "RES-105"));
    world_succeed_all(w, ID);
    assert_int_equal(get(w).answer, HFD_ANSWER_FAILED);
    assert_int_equal(put(w, body_a).answer, HFD_ANSWER_OUTPUT);
    assert_int_equal(get(w).answer, HFD_ANSWER_OUTPUT);
}

/* A new attempt ignores the report that failed the last one, and keeps the cookie's bytes. */
static void new_attempt_ignores_old_reports(void **state)
{
    struct world *w = *state;
    struct hfd_answer_doc first = put(w, body_a), doc;

    fail_terminally(w);
    doc = get(w);
    assert_true(hfd_slice_is(doc.error, "RES-104"));
    assert_contains(doc.message, "dns");
    assert_contains(doc.message, "InvalidConfiguration");
    assert_contains(doc.message, ID);
    test_clock_advance(&w->clock, HFD_US_PER_S);
    doc = put(w, body_a);
    assert_int_equal(doc.answer, HFD_ANSWER_HINT);
    assert_true(hfd_slice_eq(doc.cookie, first.cookie));
    assert_int_equal(get(w).answer, HFD_ANSWER_HINT);
    fail_terminally(w);
    assert_int_equal(get(w).answer, HFD_ANSWER_FAILED);
}

/*
 * After the clock was set back, a new attempt also ignores old reports. An old report then lies in
 * the future, and a new one may be older than the attempt.
 */
static void new_attempt_ignores_old_reports_of_the_future(void **state)
{
    struct world *w = *state;

    (void)put(w, body_a);
    test_clock_advance(&w->clock, 1800 * HFD_US_PER_S);
    fail_terminally(w);
    w->clock.wall_us -= 1000 * HFD_US_PER_S;
    assert_int_equal(put(w, body_a).answer, HFD_ANSWER_HINT);
    w->clock.wall_us -= 100 * HFD_US_PER_S;
    assert_int_equal(get(w).answer, HFD_ANSWER_HINT);
    (void)world_report(w, world_find(w, HFD_KIND_CLUSTER, "c-one")->id,
                       &(struct world_report){.adapter = "validation",
                                              .available = HFD_STATUS_FALSE,
                                              .reason = "InvalidConfiguration"});
    assert_int_equal(get(w).answer, HFD_ANSWER_FAILED);
}

/*
 * A deletion past its deadline names what is unfinished and goes on. A new DELETE gives it a new
 * deadline. PUT answers 409 all the while.
 */
static void deletion_past_its_deadline(void **state)
{
    struct world *w = *state;
    struct hfd_answer_doc doc;

    (void)bring_to(w, HFD_STATE_DELETING);
    test_clock_advance(&w->clock, 3600 * HFD_US_PER_S);
    doc = get(w);
    assert_int_equal(doc.answer, HFD_ANSWER_FAILED);
    assert_true(hfd_slice_is(doc.error, "RES-105"));
    assert_int_equal(put(w, body_a).answer, HFD_ANSWER_BUSY);
    assert_int_equal(del(w).answer, HFD_ANSWER_HINT);
    assert_int_equal(get(w).answer, HFD_ANSWER_HINT);
    world_succeed_all(w, ID);
    assert_int_equal(get(w).answer, HFD_ANSWER_ABSENT);
}

/*
 * An update makes, patches and deletes nodepools; the ones that did not change keep their
 * generation, and so does the cluster.
 */
static void update_takes_nodepool_differences(void **state)
{
    static const char two[] = BODY(
        "{\"region\":\"a\"}", "[" POOL("np-one", "{\"n\":1}") "," POOL("np-two", "{\"n\":1}") "]");
    static const char changed[] =
        BODY("{\"region\":\"a\"}",
             "[" POOL("np-two", "{\"n\":2}") "," POOL("np-three", "{\"n\":1}") "]");
    struct world *w = *state;
    const struct hfd_fleet_row *one;

    (void)bring_to(w, HFD_STATE_READY);
    assert_int_equal(put(w, two).answer, HFD_ANSWER_HINT);
    assert_int_equal(world_find(w, HFD_KIND_CLUSTER, "c-one")->generation, 1);
    assert_int_equal(world_find(w, HFD_KIND_NODEPOOL, "np-one")->generation, 1);
    world_succeed_all(w, ID);
    assert_int_equal(get(w).answer, HFD_ANSWER_OUTPUT);
    one = world_find(w, HFD_KIND_NODEPOOL, "np-one");
    assert_int_equal(put(w, changed).answer, HFD_ANSWER_HINT);
    assert_null(world_find(w, HFD_KIND_NODEPOOL, "np-one"));
    assert_int_equal(world_find(w, HFD_KIND_NODEPOOL, "np-two")->generation, 2);
    assert_int_equal(world_find(w, HFD_KIND_NODEPOOL, "np-three")->generation, 1);
    world_succeed(w, world_find(w, HFD_KIND_NODEPOOL, "np-two")->id);
    world_succeed(w, world_find(w, HFD_KIND_NODEPOOL, "np-three")->id);
    assert_int_equal(get(w).answer,
                     HFD_ANSWER_HINT); /* the desired state has no np-one, and it is still there */
    world_succeed(w, one->id);
    assert_int_equal(get(w).answer, HFD_ANSWER_OUTPUT);
    assert_lacks(get(w).values, "np-one");
    assert_int_equal(world_count(w, HFD_KIND_NODEPOOL), 2);
}

/* A pool that is wanted again while it goes is made anew beside it. */
static void pool_back_while_it_goes(void **state)
{
    static const char none[] = BODY("{\"region\":\"a\"}", "[]");
    struct world *w = *state;
    hfd_slice first, second;

    (void)bring_to(w, HFD_STATE_READY);
    first = world_find(w, HFD_KIND_NODEPOOL, "np-one")->id;
    assert_int_equal(put(w, none).answer, HFD_ANSWER_HINT);
    assert_int_equal(put(w, body_a).answer, HFD_ANSWER_HINT);
    second = world_find(w, HFD_KIND_NODEPOOL, "np-one")->id;
    assert_false(hfd_slice_eq(first, second));
    world_succeed(w, second);
    assert_int_equal(get(w).answer, HFD_ANSWER_HINT);
    world_succeed(w, first);
    assert_int_equal(get(w).answer, HFD_ANSWER_OUTPUT);
    assert_non_null(memmem(get(w).values.p, get(w).values.len, second.p, second.len));
}

/*
 * A change that is impossible in place is RES-106. It changes nothing, not even the pools beside
 * it.
 */
static void immutable_name_changes_nothing(void **state)
{
    static const char renamed[] = "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{"
                                  "\"cluster\":{\"name\":\"c-two\",\"spec\":{}}}}}";
    struct world *w = *state;
    struct hfd_answer_doc doc;

    (void)bring_to(w, HFD_STATE_READY);
    assert_int_equal(world_put(w, ID, renamed, NULL, &doc), HFD_IMMUTABLE);
    assert_string_equal(w->err.field, "driver.values.cluster.name");
    assert_non_null(world_find(w, HFD_KIND_NODEPOOL, "np-one"));
    assert_int_equal(get(w).answer, HFD_ANSWER_OUTPUT);
    assert_int_equal(put(w, body_a).answer, HFD_ANSWER_OUTPUT);
}

/*
 * A name that another resource holds is the caller's mistake and is named. Nothing is left behind.
 */
static void taken_name_is_invalid(void **state)
{
    struct world *w = *state;
    struct hfd_answer_doc doc;

    (void)put(w, body_a);
    assert_int_equal(world_put(w, "res-2", body_a, NULL, &doc), HFD_INVALID);
    assert_string_equal(w->err.field, "driver.values.cluster.name");
    assert_non_null(strstr(w->err.msg, "'c-one'"));
    assert_int_equal(world_row(w, "res-2").state, HFD_STATE_ABSENT);
    assert_int_equal(world_count(w, HFD_KIND_CLUSTER), 1);
}

/*
 * A deletion frees the name at once, and the next life has another incarnation, so the old cookie
 * counts as none.
 */
static void next_life_has_a_new_cookie(void **state)
{
    struct world *w = *state;
    struct hfd_answer_doc first = put(w, body_a), second, doc;
    char old[HFD_COOKIE_MAX + 1];

    (void)snprintf(old, sizeof(old), "%.*s", HFD_SLICE_FMT(first.cookie));
    (void)del(w);
    world_succeed_all(w, ID);
    second = put(w, body_a);
    assert_int_equal(second.answer, HFD_ANSWER_HINT);
    assert_false(hfd_slice_eq(first.cookie, second.cookie));
    assert_int_equal(world_get(w, ID, old, &doc), HFD_OK);
    assert_int_equal(doc.answer, HFD_ANSWER_HINT);
}

/* A forged cookie is refused on every method, whether the resource exists or not. */
static void forged_cookie_is_refused(void **state)
{
    struct world *w = *state;
    struct hfd_answer_doc doc;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(world_get(w, ID, "forged", &doc), HFD_COOKIE);
        assert_int_equal(world_delete(w, ID, "forged", &doc), HFD_COOKIE);
        assert_int_equal(world_put(w, ID, body_a, "forged", &doc), HFD_COOKIE);
        assert_int_equal(world_row(w, ID).state, i == 0 ? HFD_STATE_ABSENT : HFD_STATE_CREATING);
        (void)put(w, body_a);
    }
}

struct remove_step {
    struct world *w;
    enum hfd_kind kind;
    hfd_slice owner_id;
    hfd_slice id;
};

static hfd_rc txn_remove(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct remove_step *s = arg;
    struct hfd_fleet_changes changes = {.mem = &s->w->mem};
    const struct hfd_fleet_call call = {.fleet = &s->w->driver.fleet,
                                        .now_us = s->w->clock.wall_us,
                                        .caller = HFD_SLICE("x@example.com"),
                                        .mem = &s->w->mem,
                                        .changes = &changes};
    const struct hfd_fleet_target target = {s->kind, s->owner_id, s->id};
    struct hfd_fleet_deletion deletion;
    hfd_rc rc = hfd_fleet_delete(tx, &call, &target, &deletion, err);

    return rc == HFD_OK ? hfd_resource_observe(tx, &s->w->driver, &call, err) : rc;
}

/* A cluster removed behind our back: GET says so, PUT makes a new one, DELETE forgets it. */
static void removed_behind_our_back(void **state)
{
    struct world *w = *state;
    struct remove_step s = {w, HFD_KIND_CLUSTER, {NULL, 0}, {NULL, 0}};
    hfd_slice old_id;

    (void)bring_to(w, HFD_STATE_READY);
    s.id = old_id = world_find(w, HFD_KIND_CLUSTER, "c-one")->id;
    assert_int_equal(hfd_store_update_wait(w->store, txn_remove, &s, &w->err), HFD_OK);
    assert_int_equal(get(w).answer, HFD_ANSWER_FAILED);
    assert_true(hfd_slice_is(get(w).error, "RES-104"));
    world_succeed_all(w, ID);
    assert_int_equal(world_count(w, HFD_KIND_CLUSTER), 0);
    assert_int_equal(get(w).answer, HFD_ANSWER_FAILED);
    assert_int_equal(put(w, body_a).answer, HFD_ANSWER_HINT);
    assert_false(hfd_slice_eq(world_find(w, HFD_KIND_CLUSTER, "c-one")->id, old_id));
    world_succeed_all(w, ID);
    assert_int_equal(get(w).answer, HFD_ANSWER_OUTPUT);
    s.id = world_find(w, HFD_KIND_CLUSTER, "c-one")->id;
    assert_int_equal(hfd_store_update_wait(w->store, txn_remove, &s, &w->err), HFD_OK);
    world_succeed_all(w, ID);
    assert_int_equal(del(w).answer, HFD_ANSWER_ABSENT);
    assert_int_equal(world_row(w, ID).state, HFD_STATE_ABSENT);
}

/*
 * A cluster that is being removed behind our back is not waited for, nor are its nodepools, once a
 * new one has taken its place.
 */
static void replaced_while_the_old_one_goes(void **state)
{
    struct world *w = *state;
    struct remove_step s = {w, HFD_KIND_CLUSTER, {NULL, 0}, {NULL, 0}};

    (void)bring_to(w, HFD_STATE_READY);
    s.id = world_find(w, HFD_KIND_CLUSTER, "c-one")->id;
    assert_int_equal(hfd_store_update_wait(w->store, txn_remove, &s, &w->err), HFD_OK);
    assert_int_equal(get(w).answer, HFD_ANSWER_FAILED);
    assert_int_equal(put(w, body_a).answer, HFD_ANSWER_HINT);
    world_succeed(w, world_find(w, HFD_KIND_CLUSTER, "c-one")->id);
    assert_int_equal(get(w).answer, HFD_ANSWER_HINT);
    world_succeed(w, world_find(w, HFD_KIND_NODEPOOL, "np-one")->id);
    assert_int_equal(get(w).answer, HFD_ANSWER_OUTPUT);
    assert_int_equal(world_count(w, HFD_KIND_CLUSTER), 2);
    assert_int_equal(world_count(w, HFD_KIND_NODEPOOL), 2);
    assert_int_equal(del(w).answer, HFD_ANSWER_HINT);
    world_succeed_all(w, ID);
    assert_int_equal(world_row(w, ID).state, HFD_STATE_ABSENT);
    assert_int_equal(world_count(w, HFD_KIND_CLUSTER), 1);
}

static hfd_rc txn_lose(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    (void)arg;
    return hfd_resource_row_delete(tx, HFD_SLICE(ID), err);
}

/*
 * A lost resource comes back by a cookie of an earlier input. It becomes what the PUT asks for,
 * though the cookie knows the earlier input.
 */
static void restored_by_an_older_cookie(void **state)
{
    struct world *w = *state;
    char older[HFD_COOKIE_MAX + 1];
    struct hfd_answer_doc doc = put(w, body_a);

    (void)snprintf(older, sizeof(older), "%.*s", HFD_SLICE_FMT(doc.cookie));
    world_succeed_all(w, ID);
    (void)put(w, body_b);
    world_succeed_all(w, ID);
    assert_int_equal(hfd_store_update_wait(w->store, txn_lose, NULL, &w->err), HFD_OK);
    assert_int_equal(world_get(w, ID, older, &doc), HFD_OK);
    assert_int_equal(doc.answer, HFD_ANSWER_OUTPUT);
    assert_int_equal(world_put(w, ID, body_a, older, &doc), HFD_OK);
    assert_int_equal(doc.answer, HFD_ANSWER_HINT);
    assert_true(hfd_slice_is(world_find(w, HFD_KIND_CLUSTER, "c-one")->spec, "{\"region\":\"a\"}"));
    world_succeed_all(w, ID);
    assert_int_equal(put(w, body_a).answer, HFD_ANSWER_OUTPUT);
    assert_true(hfd_slice_is(put(w, body_a).cookie, older));
}

/* A nodepool resource lives in the cluster of another resource, and goes before it or with it. */
static void nodepool_resource(void **state)
{
    static const char pool[] =
        "{\"type\":\"hyperfleet-nodepool\",\"driver\":{\"values\":{\"cluster_guresid\":\"" ID
        "\",\"nodepool\":{\"name\":\"extra\",\"spec\":{}}}}}";
    struct world *w = *state;
    struct hfd_answer_doc doc;

    assert_int_equal(world_put(w, "pool-1", pool, NULL, &doc), HFD_INVALID);
    assert_string_equal(w->err.field, "driver.values.cluster_guresid");
    (void)bring_to(w, HFD_STATE_READY);
    assert_int_equal(world_put(w, "pool-1", pool, NULL, &doc), HFD_OK);
    assert_int_equal(doc.answer, HFD_ANSWER_HINT);
    assert_int_equal(get(w).answer, HFD_ANSWER_OUTPUT); /* it is none of the cluster's own parts */
    world_succeed_all(w, "pool-1");
    assert_int_equal(world_get(w, "pool-1", NULL, &doc), HFD_OK);
    assert_int_equal(doc.answer, HFD_ANSWER_OUTPUT);
    assert_contains(doc.values, "\"nodepool_id\"");
    (void)del(w);
    assert_int_equal(world_get(w, "pool-1", NULL, &doc), HFD_OK);
    assert_int_equal(doc.answer, HFD_ANSWER_FAILED);
    assert_int_equal(world_put(w, "pool-1", pool, NULL, &doc),
                     HFD_INVALID); /* in the words of the input */
    assert_non_null(strstr(w->err.msg, "the cluster of resource '" ID "' is being deleted"));
    world_succeed_all(w, "pool-1");
    world_succeed_all(w, ID);
    assert_int_equal(world_count(w, HFD_KIND_CLUSTER) + world_count(w, HFD_KIND_NODEPOOL), 0);
    assert_int_equal(world_delete(w, "pool-1", NULL, &doc), HFD_OK);
    assert_int_equal(doc.answer, HFD_ANSWER_ABSENT);
}

/*
 * A nodepool that was removed behind our back is made anew by a PUT, as a cluster is: a creation,
 * of a new incarnation.
 */
static void nodepool_removed_behind_our_back(void **state)
{
    static const char pool[] =
        "{\"type\":\"hyperfleet-nodepool\",\"driver\":{\"values\":{\"cluster_guresid\":\"" ID
        "\",\"nodepool\":{\"name\":\"extra\",\"spec\":{}}}}}";
    struct world *w = *state;
    struct remove_step s = {w, HFD_KIND_NODEPOOL, {NULL, 0}, {NULL, 0}};
    struct hfd_answer_doc doc;
    char old[HFD_COOKIE_MAX + 1];
    hfd_slice incarnation;

    (void)bring_to(w, HFD_STATE_READY);
    doc = world_put_ok(w, "pool-1", pool, NULL);
    (void)snprintf(old, sizeof(old), "%.*s", HFD_SLICE_FMT(doc.cookie));
    world_succeed_all(w, "pool-1");
    assert_int_equal(world_get_ok(w, "pool-1", NULL).answer, HFD_ANSWER_OUTPUT);
    incarnation = world_row(w, "pool-1").incarnation;
    s.owner_id = world_find(w, HFD_KIND_CLUSTER, "c-one")->id;
    s.id = world_find(w, HFD_KIND_NODEPOOL, "extra")->id;
    assert_int_equal(hfd_store_update_wait(w->store, txn_remove, &s, &w->err), HFD_OK);
    assert_int_equal(world_get_ok(w, "pool-1", NULL).answer, HFD_ANSWER_FAILED);
    doc = world_put_ok(w, "pool-1", pool, NULL);
    assert_int_equal(doc.answer, HFD_ANSWER_HINT);
    assert_string_equal(doc.hint.status, "creating");
    assert_int_equal(world_row(w, "pool-1").state, HFD_STATE_CREATING);
    assert_false(hfd_slice_eq(world_row(w, "pool-1").incarnation, incarnation));
    /* A PUT replaced that life: its cookie deletes, as none would. */
    assert_int_equal(world_delete(w, "pool-1", old, &doc), HFD_OK);
    assert_int_equal(doc.answer, HFD_ANSWER_HINT);
    assert_int_equal(world_row(w, "pool-1").state, HFD_STATE_DELETING);
}

/* Outputs are taken from adapters' data; secrets come out in plain and rest sealed. */
static void mapped_outputs(void **state)
{
    static const struct hfd_output_rule values[] = {
        {HFD_SLICE("api_url"), HFD_SLICE("dns"), HFD_SLICE("/api/url")},
        {HFD_SLICE("none"), HFD_SLICE("dns"), HFD_SLICE("/missing")}};
    static const struct hfd_output_rule secrets[] = {
        {HFD_SLICE("kubeconfig"), HFD_SLICE("dns"), HFD_SLICE("/secrets/kubeconfig")}};
    struct world *w = *state;
    struct hfd_resource_row row;
    struct hfd_answer_doc doc;

    w->driver.output_values = values;
    w->driver.output_value_count = 2;
    w->driver.output_secrets = secrets;
    w->driver.output_secret_count = 1;
    (void)put(w, body_a);
    (void)world_report(
        w, world_find(w, HFD_KIND_CLUSTER, "c-one")->id,
        &(struct world_report){
            .adapter = "dns",
            .available = HFD_STATUS_TRUE,
            .data = "{\"api\":{\"url\":\"https://x\"},\"secrets\":{\"kubeconfig\":\"[redacted]\"}}",
            .secrets = "{\"kubeconfig\":\"canary\"}"});
    (void)world_report(
        w, world_find(w, HFD_KIND_CLUSTER, "c-one")->id,
        &(struct world_report){.adapter = "validation", .available = HFD_STATUS_TRUE});
    world_succeed(w, world_find(w, HFD_KIND_NODEPOOL, "np-one")->id);
    doc = get(w);
    assert_int_equal(doc.answer, HFD_ANSWER_OUTPUT);
    assert_contains(doc.values, "\"api_url\":\"https://x\"");
    assert_lacks(doc.values, "none");
    assert_true(hfd_slice_is(doc.secrets, "{\"kubeconfig\":\"canary\"}"));
    row = world_row(w, ID);
    assert_lacks(row.secrets, "canary");
    assert_lacks(row.output, "canary");
}

/* Reports data of dns with len letters under /text. */
static void report_text(struct world *w, char letter, size_t len)
{
    char *data = malloc(len + 20);

    assert_non_null(data);
    memcpy(data, "{\"text\":\"", 9);
    memset(data + 9, letter, len);
    memcpy(data + 9 + len, "\"}", 3);
    test_clock_advance(&w->clock, HFD_US_PER_S);
    (void)world_report(
        w, world_find(w, HFD_KIND_CLUSTER, "c-one")->id,
        &(struct world_report){.adapter = "dns", .available = HFD_STATUS_TRUE, .data = data});
    free(data);
}

/*
 * Outputs that are too large end an operation, not the report of whichever adapter is last; what
 * was ready keeps the output that it has.
 */
static void outputs_too_large(void **state)
{
    static const struct hfd_output_rule rules[] = {
        {HFD_SLICE("a"), HFD_SLICE("dns"), HFD_SLICE("/text")},
        {HFD_SLICE("b"), HFD_SLICE("dns"), HFD_SLICE("/text")}};
    struct world *w = *state;
    struct hfd_answer_doc doc;

    w->driver.output_values = rules;
    w->driver.output_value_count = 2;
    (void)put(w, body_a);
    report_text(w, 'x', 600000);
    (void)world_report(
        w, world_find(w, HFD_KIND_CLUSTER, "c-one")->id,
        &(struct world_report){.adapter = "validation", .available = HFD_STATUS_TRUE});
    world_succeed(w, world_find(w, HFD_KIND_NODEPOOL, "np-one")->id);
    for (int i = 0; i < 2; i++) {
        doc = i == 0 ? get(w) : put(w, body_a);
        assert_int_equal(doc.answer, HFD_ANSWER_FAILED);
        assert_true(hfd_slice_is(doc.error, "RES-107"));
        assert_contains(doc.message, ID " is ready, but the outputs that driver.outputs");
    }
    report_text(w, 'y', 100);
    assert_int_equal(put(w, body_a).answer, HFD_ANSWER_OUTPUT);
    report_text(w, 'z', 600000);
    doc = get(w);
    assert_int_equal(doc.answer, HFD_ANSWER_OUTPUT);
    assert_contains(doc.values, "\"b\":\"yyy");
}

/* A change of input that changes nothing in HyperFleet is ready at once. */
static void empty_update_is_ready_at_once(void **state)
{
    static const char other[] =
        "{\"type\":\"hyperfleet-cluster\",\"resource\":{\"x\":1},\"driver\":{\"values\":{"
        "\"cluster\":{\"name\":\"c-one\","
        "\"spec\":{\"region\":\"a\"}},\"nodepools\":[" POOL("np-one", "{\"n\":1}") "]}}}";
    struct world *w = *state;

    (void)bring_to(w, HFD_STATE_READY);
    assert_int_equal(put(w, other).answer, HFD_ANSWER_OUTPUT);
    assert_int_equal(world_find(w, HFD_KIND_CLUSTER, "c-one")->generation, 1);
}

static void assert_times(struct world *w, const char *guresid, enum hfd_kind kind, enum hfd_op op)
{
    const struct hfd_resource_row row = world_row(w, guresid);

    assert_int_equal(row.op, op);
    assert_int_equal(row.op_deadline_us - row.op_started_us, w->driver.deadline_us[kind][op]);
    assert_int_equal(row.op_estimate_us - row.op_started_us, w->driver.estimate_us[op]);
    assert_int_equal(world_get_ok(w, guresid, NULL).hint.deadline_us, row.op_deadline_us);
}

/*
 * Creation, update and deletion of a cluster and of a nodepool take what the settings say of each.
 */
static void each_operation_has_its_own_times(void **state)
{
    static const char pool_a[] =
        "{\"type\":\"hyperfleet-nodepool\",\"driver\":{\"values\":{\"cluster_guresid\":\"" ID
        "\",\"nodepool\":" POOL("np-two", "{}") "}}}";
    static const char pool_b[] =
        "{\"type\":\"hyperfleet-nodepool\",\"driver\":{\"values\":{\"cluster_guresid\":\"" ID
        "\",\"nodepool\":" POOL("np-two", "{\"n\":2}") "}}}";
    struct world *w = *state;

    for (int kind = HFD_KIND_CLUSTER; kind <= HFD_KIND_NODEPOOL; kind++) {
        for (int op = 0; op < HFD_OP_COUNT; op++) {
            w->driver.deadline_us[kind][op] = (1000 + 100 * kind + 10 * op) * HFD_US_PER_S;
            w->driver.estimate_us[op] = (100 + op) * HFD_US_PER_S;
        }
    }
    (void)put(w, body_a);
    assert_times(w, ID, HFD_KIND_CLUSTER, HFD_OP_CREATE);
    world_succeed_all(w, ID);
    (void)put(w, body_b);
    assert_times(w, ID, HFD_KIND_CLUSTER, HFD_OP_UPDATE);
    world_succeed_all(w, ID);
    (void)world_put_ok(w, "pool", pool_a, NULL);
    assert_times(w, "pool", HFD_KIND_NODEPOOL, HFD_OP_CREATE);
    world_succeed_all(w, "pool");
    (void)world_put_ok(w, "pool", pool_b, NULL);
    assert_times(w, "pool", HFD_KIND_NODEPOOL, HFD_OP_UPDATE);
    (void)world_delete_ok(w, "pool", NULL);
    assert_times(w, "pool", HFD_KIND_NODEPOOL, HFD_OP_DELETE);
    (void)del(w);
    assert_times(w, ID, HFD_KIND_CLUSTER, HFD_OP_DELETE);
}

static struct {
    uint64_t texts[64];
    size_t parsed, again;
} parses; /* from the last memset on */

hfd_rc __real_hfd_conditions_parse(hfd_slice stored, struct hfd_arena *mem,
                                   struct hfd_conditions *out, struct hfd_err *err);
hfd_rc __wrap_hfd_conditions_parse(hfd_slice stored, struct hfd_arena *mem,
                                   struct hfd_conditions *out, struct hfd_err *err);

hfd_rc __wrap_hfd_conditions_parse(hfd_slice stored, struct hfd_arena *mem,
                                   struct hfd_conditions *out, struct hfd_err *err)
{
    const uint64_t text = hfd_slice_hash_end(HFD_HASH_START, stored);

    for (size_t i = 0; i < parses.parsed; i++)
        parses.again += parses.texts[i] == text;
    if (parses.parsed < sizeof(parses.texts) / sizeof(parses.texts[0]))
        parses.texts[parses.parsed++] = text;
    return __real_hfd_conditions_parse(stored, mem, out, err);
}

/*
 * No job parses the conditions of a row twice. On PostgreSQL a job runs again while its rows are
 * read, and each run parses them.
 */
static void conditions_are_parsed_once(void **state)
{
    struct world *w = *state;
    const struct hfd_fleet_row *c;

    if (test_on_postgres())
        skip();
    (void)bring_to(w, HFD_STATE_READY);
    c = world_find(w, HFD_KIND_CLUSTER, "c-one");
    memset(&parses, 0, sizeof(parses));
    (void)world_report(w, c->id, &(struct world_report){.adapter = "dns"});
    assert_int_equal(parses.again, 0);
    assert_true(parses.parsed > 0);
    memset(&parses, 0, sizeof(parses));
    (void)del(w);
    assert_int_equal(parses.again, 0);
    assert_true(parses.parsed > 0);
}

/* A 202 names each required adapter that never reported, from a minute after it was missed. */
static void silent_adapters_are_told(void **state)
{
    static const char told[] = "; dns is required, and has never reported";
    struct world *w = *state;
    const hfd_slice dns = HFD_SLICE("dns");
    hfd_slice message;

    (void)put(w, body_a);
    (void)hfd_trouble_note(HFD_TROUBLE_SILENT, dns, world_now(w),
                           HFD_SLICE("is required, and has never reported"));
    test_clock_advance(&w->clock, 60 * HFD_US_PER_S);
    assert_lacks(get(w).hint.message, told);
    test_clock_advance(&w->clock, 1);
    message = get(w).hint.message;
    assert_contains(message, told);
    assert_contains(message, "waits for validation");
    (void)hfd_trouble_end(HFD_TROUBLE_SILENT, dns);
    assert_lacks(get(w).hint.message, told);
}

/* The hint's deadline is fixed per operation; a re-target starts a new one. */
static void retarget_has_a_new_deadline(void **state)
{
    struct world *w = *state;
    struct hfd_answer_doc first, second;

    (void)bring_to(w, HFD_STATE_UPDATING);
    first = get(w);
    test_clock_advance(&w->clock, 60 * HFD_US_PER_S);
    assert_int_equal(get(w).hint.deadline_us, first.hint.deadline_us);
    second = put(w, body_c);
    assert_int_equal(second.hint.deadline_us, first.hint.deadline_us + 60 * HFD_US_PER_S);
    assert_string_equal(second.hint.status, "updating");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(put_table),
        cmocka_unit_test(get_and_delete_table),
        cmocka_unit_test_setup_teardown(silent_adapters_are_told, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(conditions_are_parsed_once, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(same_is_canonical, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(type_not_served_any_more, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(ready_needs_all_parts, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(degraded_stays_200, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(deadline_fails_and_put_revives, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(new_attempt_ignores_old_reports, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(new_attempt_ignores_old_reports_of_the_future, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(deletion_past_its_deadline, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(update_takes_nodepool_differences, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(pool_back_while_it_goes, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(immutable_name_changes_nothing, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(taken_name_is_invalid, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(next_life_has_a_new_cookie, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(forged_cookie_is_refused, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(removed_behind_our_back, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(replaced_while_the_old_one_goes, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(restored_by_an_older_cookie, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(nodepool_resource, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(nodepool_removed_behind_our_back, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(mapped_outputs, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(outputs_too_large, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(empty_update_is_ready_at_once, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(each_operation_has_its_own_times, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(retarget_has_a_new_deadline, world_setup, world_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
