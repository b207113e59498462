/*
 * Hints that learn, on the whole domain: what is remembered of operations, and what it does to the
 * answers to later ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "driver/core/past.h"
#include "store/rows_history.h"
#include "tests/lib/contains.h"
#include "tests/lib/world.h"

#define S HFD_US_PER_S
#define POOL(name) "{\"name\":\"" name "\",\"spec\":{\"n\":1}}"
#define BODY(name, spec, pools)                                                                    \
    "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{"                                    \
    "\"cluster\":{\"name\":\"" name "\",\"spec\":" spec "},\"nodepools\":[" pools "]}}}"

static void wait_s(struct world *w, int64_t s)
{
    test_clock_advance(&w->clock, s * S);
}

static struct hfd_answer_doc put_body(struct world *w, const char *id, const char *body)
{
    return world_put_ok(w, id, body, NULL);
}

/* A cluster with one nodepool, under a name that only this resource has. */
static struct hfd_answer_doc put(struct world *w, const char *id)
{
    const hfd_slice body =
        hfd_arena_printf(&w->mem, BODY("c-%s", "{\"region\":\"a\"}", POOL("np-one")), id);

    return put_body(w, id, body.p);
}

static struct hfd_answer_doc get(struct world *w, const char *id)
{
    return world_get_ok(w, id, NULL);
}

static struct hfd_answer_doc del(struct world *w, const char *id)
{
    return world_delete_ok(w, id, NULL);
}

static void cluster_report(struct world *w, const char *id, const char *adapter,
                           enum hfd_status available, const char *reason)
{
    const hfd_slice name = hfd_arena_printf(&w->mem, "c-%s", id);
    const struct hfd_fleet_row *c = world_find(w, HFD_KIND_CLUSTER, name.p);

    assert_non_null(c);
    (void)world_report(
        w, c->id,
        &(struct world_report){.adapter = adapter, .available = available, .reason = reason});
}

/* A creation from the beginning to its end; dns is done at dns_s, all the rest at took_s. */
static void create(struct world *w, const char *id, int64_t dns_s, int64_t took_s)
{
    (void)put(w, id);
    wait_s(w, dns_s);
    cluster_report(w, id, "dns", HFD_STATUS_TRUE, NULL);
    wait_s(w, took_s - dns_s);
    world_succeed_all(w, id);
    assert_int_equal(get(w, id).answer, HFD_ANSWER_OUTPUT);
}

static void create_many(struct world *w, int count, int64_t dns_s, int64_t took_s)
{
    static int next;

    for (int i = 0; i < count; i++) {
        char id[32];

        (void)snprintf(id, sizeof(id), "past-%d", next++);
        create(w, id, dns_s, took_s + i % 3);
    }
}

static int64_t estimate_s(const struct world *w, const struct hfd_answer_doc *doc)
{
    assert_int_equal(doc->answer, HFD_ANSWER_HINT);
    return (doc->hint.estimated_us - w->clock.wall_us) / S;
}

struct lookup {
    struct hfd_past_key key;
    struct hfd_arena *mem;
    struct hfd_past_list list;
};

static hfd_rc txn_past(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct lookup *l = arg;

    return hfd_past_row_list(tx, &(struct hfd_past_query){.key = l->key, .limit = 1000}, l->mem,
                             &l->list, err);
}

/* The past of clusters' operations, those with one nodepool first. */
static struct hfd_past_list past(struct world *w, enum hfd_op op)
{
    struct lookup l = {.key = {HFD_KIND_CLUSTER, (int)op, 2}, .mem = &w->mem};

    assert_int_equal(hfd_store_read(w->reader, txn_past, &l, &w->err), HFD_OK);
    return l.list;
}

static void assert_last(struct world *w, enum hfd_op op, size_t count, enum hfd_ending ending,
                        int64_t took_s)
{
    const struct hfd_past_list list = past(w, op);

    assert_int_equal(list.count, count);
    assert_int_equal(list.rows[0].ending, ending);
    assert_true(list.rows[0].took_us == took_s * S);
}

/* ---- what is answered ---- */

/*
 * The first operation is expected when the settings say; what was learned holds from the next one
 * on, and after a restart.
 */
static void learns_and_remembers(void **state)
{
    struct world *w = *state;
    struct hfd_answer_doc doc = put(w, "first");

    assert_int_equal(estimate_s(w, &doc), 600);
    assert_in_range(doc.hint.retry_after_s, 60, 400);
    assert_true(doc.hint.deadline_us == w->clock.wall_us + 3600 * S);
    create_many(w, 5, 10, 60);
    doc = put(w, "second");
    assert_in_range(estimate_s(w, &doc), 58, 75);
    assert_in_range(doc.hint.retry_after_s, 40, 70);
    world_restart(w);
    doc = put(w, "third");
    assert_in_range(estimate_s(w, &doc), 58, 75);
    assert_true(doc.hint.deadline_us == w->clock.wall_us + 3600 * S);
    /* An operation that goes on keeps the plan that it began with. */
    doc = get(w, "first");
    assert_true(estimate_s(w, &doc) > 60);
}

/* The message says when each adapter usually is done: the median of the operations before. */
static void says_what_is_usual(void **state)
{
    struct world *w = *state;
    struct hfd_answer_doc doc = put(w, "first");

    assert_lacks(doc.hint.message, "usually");
    create_many(w, 5, 10, 60);
    doc = put(w, "second");
    assert_contains(doc.hint.message, "dns, usually 10 s (has not reported)");
    /* These come with the end. */
    assert_contains(doc.hint.message, "validation, usually 61 s (has not reported)");
    create_many(w, 5, 300, 600);
    /* An operation that goes on keeps what it began with. */
    cluster_report(w, "second", "validation", HFD_STATUS_TRUE, NULL);
    doc = get(w, "second");
    assert_contains(doc.hint.message, "dns, usually 10 s");
    world_restart(w);
    doc = put(w, "third");
    assert_contains(doc.hint.message, "dns, usually 5 min");
}

/* Other settings are taken up at once where nothing is known better, and their deadlines always. */
static void settings_that_change(void **state)
{
    struct world *w = *state;
    struct hfd_answer_doc doc;

    (void)put(w, "one");
    w->driver.deadline_us[HFD_KIND_CLUSTER][HFD_OP_CREATE] = 120 * S;
    doc = put(w, "two");
    assert_int_equal(estimate_s(w, &doc), 120);
    assert_true(doc.hint.deadline_us == w->clock.wall_us + 120 * S);
    assert_true(doc.hint.retry_after_s <= 120);
    w->driver.estimate_us[HFD_OP_CREATE] = 30 * S;
    doc = put(w, "three");
    assert_int_equal(estimate_s(w, &doc), 30);
    assert_in_range(doc.hint.retry_after_s, 5, 25);
    doc = get(w, "one");
    assert_int_equal(estimate_s(w, &doc), 600);
}

/* Creations say nothing of deletions and updates. */
static void operations_are_told_apart(void **state)
{
    struct world *w = *state;
    struct hfd_answer_doc doc;

    create_many(w, 3, 10, 60);
    create(w, "mine", 10, 60);
    doc = put_body(w, "mine", BODY("c-mine", "{\"region\":\"b\"}", POOL("np-one")));
    assert_int_equal(estimate_s(w, &doc), 600);
    doc = del(w, "mine");
    assert_int_equal(estimate_s(w, &doc), 600);
}

/* Of clusters of another size less is learned, but where nothing else is known, that. */
static void sizes_are_told_apart(void **state)
{
    static const char large[] =
        BODY("c-large", "{}", POOL("np-a") "," POOL("np-b") "," POOL("np-c"));
    struct world *w = *state;
    struct hfd_answer_doc doc;

    create_many(w, 6, 10, 60);
    doc = put_body(w, "large", large);
    assert_in_range(estimate_s(w, &doc), 58, 90);
    wait_s(w, 900);
    world_succeed_all(w, "large");
    assert_int_equal(get(w, "large").answer, HFD_ANSWER_OUTPUT);
    (void)del(w, "large");
    world_succeed_all(w, "large");
    assert_int_equal(get(w, "large").answer, HFD_ANSWER_ABSENT);
    doc = put_body(w, "large", large);
    assert_true(estimate_s(w, &doc) > 300);
    doc = put(w, "small");
    assert_in_range(estimate_s(w, &doc), 58, 90);
}

/*
 * An adapter that is done much later than usual moves the end; what it says a second time does not.
 */
static void milestones_are_news(void **state)
{
    struct world *w = *state;
    struct hfd_answer_doc doc;
    int64_t began_us;

    for (int i = 0; i < 8; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "m%d", i);
        create(w, id, 100 + 20 * i, 2 * (100 + 20 * i));
    }
    began_us = w->clock.wall_us;
    doc = put(w, "slow");
    assert_in_range(estimate_s(w, &doc), 200, 400);
    wait_s(w, 300);
    cluster_report(w, "slow", "dns", HFD_STATUS_TRUE, NULL);
    doc = get(w, "slow");
    assert_in_range((doc.hint.estimated_us - began_us) / S, 560, 680);
    wait_s(w, 10);
    cluster_report(w, "slow", "dns", HFD_STATUS_TRUE, NULL);
    assert_true(get(w, "slow").hint.estimated_us == doc.hint.estimated_us);
    world_restart(w);
    assert_true(get(w, "slow").hint.estimated_us == doc.hint.estimated_us);
}

/*
 * The answers do not depend on when and how often a client polls. They are never in the past and
 * never earlier than before, and the deadline stays where it was.
 */
static void polls_change_nothing(void **state)
{
    struct world *w = *state;
    struct hfd_answer_doc doc;
    int64_t last_us = 0, deadline_us;
    unsigned kinds = 0;

    create_many(w, 4, 10, 100);
    deadline_us = put(w, "watched").hint.deadline_us;
    for (int i = 0; i < 3599; i++, wait_s(w, 1)) {
        doc = get(w, "watched");
        assert_int_equal(doc.answer, HFD_ANSWER_HINT);
        assert_true(doc.hint.estimated_us >= w->clock.wall_us && doc.hint.estimated_us >= last_us);
        assert_true(doc.hint.estimated_us <= deadline_us && doc.hint.deadline_us == deadline_us);
        assert_in_range(doc.hint.retry_after_s, 1, HFD_RETRY_MAX_S);
        kinds += doc.hint.estimated_us != last_us;
        last_us = doc.hint.estimated_us;
    }
    assert_in_range(kinds, 5, HFD_PLAN_MAX);
}

/*
 * A clock that jumps by an hour and back leaves hints that lie ahead, and what it spoils is one
 * operation among many.
 */
static void clock_jumps(void **state)
{
    static const int64_t jumps_s[] = {-3600, 3600, -7200, 3000};
    struct world *w = *state;

    create_many(w, 6, 10, 100);
    for (size_t i = 0; i < sizeof(jumps_s) / sizeof(jumps_s[0]); i++) {
        char id[16];
        struct hfd_answer_doc doc;

        (void)snprintf(id, sizeof(id), "jump-%zu", i);
        (void)put(w, id);
        wait_s(w, 20 + jumps_s[i]);
        doc = get(w, id);
        if (doc.answer == HFD_ANSWER_HINT) {
            assert_true(doc.hint.estimated_us >= w->clock.wall_us &&
                        doc.hint.deadline_us >= doc.hint.estimated_us);
            assert_in_range(doc.hint.retry_after_s, 1, HFD_RETRY_MAX_S);
        }
        cluster_report(w, id, "dns", HFD_STATUS_TRUE, NULL);
        world_succeed_all(w, id);
        doc = put(w, "after");
        assert_in_range(estimate_s(w, &doc), 90, 140);
        world_succeed_all(w, "after"); /* at once: not learned from */
        (void)del(w, "after");
        world_succeed_all(w, "after");
    }
}

/* ---- what is remembered ---- */

/* Each ending is kept as what it was, with its duration and milestones, once. */
static void endings(void **state)
{
    struct world *w = *state;
    struct hfd_past_list list;

    create(w, "done", 61, 65);
    assert_last(w, HFD_OP_CREATE, 1, HFD_ENDING_DONE, 65);
    list = past(w, HFD_OP_CREATE);
    assert_int_equal(list.rows[0].size, 2);
    assert_true(
        hfd_slice_is(list.rows[0].milestones, "c/dns=61000 c/validation=65000 n/validation=65000"));

    (void)put(w, "failed");
    wait_s(w, 7);
    cluster_report(w, "failed", "dns", HFD_STATUS_FALSE, "InvalidConfiguration");
    assert_int_equal(get(w, "failed").answer, HFD_ANSWER_FAILED);
    assert_last(w, HFD_OP_CREATE, 2, HFD_ENDING_FAILED, 7);
    wait_s(w, 100);
    (void)del(w, "failed"); /* it was kept when it failed */
    assert_int_equal(past(w, HFD_OP_CREATE).count, 2);

    wait_s(w, 30);
    world_succeed_all(w, "failed");
    assert_int_equal(get(w, "failed").answer, HFD_ANSWER_ABSENT);
    assert_last(w, HFD_OP_DELETE, 1, HFD_ENDING_DONE, 30);

    (void)put_body(w, "done", BODY("c-done", "{\"region\":\"b\"}", POOL("np-one")));
    wait_s(w, 40);
    world_succeed_all(w, "done");
    assert_int_equal(get(w, "done").answer, HFD_ANSWER_OUTPUT);
    assert_last(w, HFD_OP_UPDATE, 1, HFD_ENDING_DONE, 40);
}

/*
 * A part that an update leaves as it is was done at its start. A deletion's milestones are
 * Finalized, or that the part is gone.
 */
static void milestones_of_updates_and_deletions(void **state)
{
    struct world *w = *state;
    hfd_slice cluster_id, pool_id;

    create(w, "a", 10, 20);
    cluster_id = world_find(w, HFD_KIND_CLUSTER, "c-a")->id;
    pool_id = world_find(w, HFD_KIND_NODEPOOL, "np-one")->id;
    (void)put_body(w, "a", BODY("c-a", "{\"region\":\"b\"}", POOL("np-one")));
    assert_true(hfd_slice_is(world_row(w, "a").op_milestones, "n/validation=0"));
    wait_s(w, 5);
    cluster_report(w, "a", "dns", HFD_STATUS_TRUE, NULL);
    assert_true(hfd_slice_is(world_row(w, "a").op_milestones, "n/validation=0 c/dns=5000"));
    wait_s(w, 1);
    world_succeed_all(w, "a");
    assert_true(hfd_slice_is(past(w, HFD_OP_UPDATE).rows[0].milestones,
                             "n/validation=0 c/dns=5000 c/validation=6000"));

    (void)del(w, "a");
    assert_true(hfd_slice_is(world_row(w, "a").op_milestones, ""));
    wait_s(w, 7);
    (void)world_report(
        w, cluster_id,
        &(struct world_report){.adapter = "dns", .available = HFD_STATUS_FALSE, .finalized = true});
    wait_s(w, 2);
    world_succeed(w, pool_id); /* removed at once */
    assert_true(hfd_slice_is(world_row(w, "a").op_milestones, "c/dns=7000 n/validation=9000"));
    wait_s(w, 3);
    (void)world_report(w, cluster_id,
                       &(struct world_report){.adapter = "validation",
                                              .available = HFD_STATUS_FALSE,
                                              .finalized = true});
    assert_true(past(w, HFD_OP_DELETE).rows[0].took_us == 12 * S);
    assert_true(hfd_slice_is(past(w, HFD_OP_DELETE).rows[0].milestones,
                             "c/dns=7000 n/validation=9000 c/validation=12000"));
}

/*
 * An operation that passed its deadline is kept as late by whatever is written first: a report, the
 * next PUT, the next DELETE.
 */
static void late_ones(void **state)
{
    struct world *w = *state;

    (void)put(w, "a");
    wait_s(w, 3600);
    assert_int_equal(get(w, "a").answer, HFD_ANSWER_FAILED);
    assert_int_equal(past(w, HFD_OP_CREATE).count, 0);
    cluster_report(w, "a", "dns", HFD_STATUS_TRUE, NULL);
    assert_last(w, HFD_OP_CREATE, 1, HFD_ENDING_LATE, 3600);

    (void)put(w, "b");
    wait_s(w, 3700);
    (void)put(w, "b");
    assert_last(w, HFD_OP_CREATE, 2, HFD_ENDING_LATE, 3600);
    assert_int_equal(get(w, "b").answer, HFD_ANSWER_HINT);

    (void)put(w, "c");
    wait_s(w, 3800);
    (void)del(w, "c"); /* b's new attempt goes on: no event touched it */
    assert_last(w, HFD_OP_CREATE, 3, HFD_ENDING_LATE, 3600);
    wait_s(w, 3900);
    (void)del(w, "c");
    assert_last(w, HFD_OP_DELETE, 1, HFD_ENDING_LATE, 3600);
    wait_s(w, 5);
    world_succeed_all(w, "c");
    assert_last(w, HFD_OP_DELETE, 2, HFD_ENDING_DONE, 5);
}

/* An operation that was broken off, refused, or done as it began leaves no milestone. */
static void not_remembered(void **state)
{
    struct world *w = *state;

    create(w, "a", 10, 60);
    (void)put_body(w, "a", BODY("c-a", "{\"region\":\"b\"}", POOL("np-one")));
    wait_s(w, 10);
    (void)put_body(w, "a", BODY("c-a", "{\"region\":\"c\"}", POOL("np-one")));
    assert_int_equal(past(w, HFD_OP_UPDATE).count, 0);
    wait_s(w, 10);
    world_succeed_all(w, "a");
    assert_last(w, HFD_OP_UPDATE, 1, HFD_ENDING_DONE, 10);

    (void)put(w, "b");
    wait_s(w, 10);
    (void)del(w, "b");
    assert_int_equal(past(w, HFD_OP_CREATE).count, 1);
    world_succeed_all(w, "b");
    assert_int_equal(get(w, "b").answer, HFD_ANSWER_ABSENT);
    assert_int_equal(past(w, HFD_OP_DELETE).count, 0);

    (void)put(w, "c");
    wait_s(w, 3700);
    {
        struct hfd_answer_doc doc;

        assert_int_equal(world_put(w, "c", BODY("c-a", "{}", ""), NULL, &doc), HFD_IMMUTABLE);
        assert_int_equal(past(w, HFD_OP_CREATE).count, 1);
    }
}

/* Milestones as they are stored; what is none of ours is left out. */
static void stored_milestones(void **state)
{
    static const struct {
        const char *text;
        size_t count;
        int64_t last_ms;
    } cases[] = {
        {"", 0, 0},
        {"c/dns=5", 1, 5},
        {"c/dns=5 n/validation=70", 2, 70},
        {"c/dns=5  n/validation=70 ", 2, 70},
        {"c/dns n/x= n/y=-1 n/z=7", 1, 7},
        {"a=99999999999999999999 b=9223372036854776 c=1", 1, 1},
        {"a=1 b=2 c=3 d=4 e=5 f=6 g=7 h=8 i=9 j=10 k=11 l=12 m=13 n=14 o=15 p=16 q=17",
         HFD_MILESTONES_MAX, 16},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hfd_milestones m;

        hfd_milestones_parse(hfd_slice_of(cases[i].text), &m);
        assert_int_equal(m.count, cases[i].count);
        if (m.count > 0)
            assert_true(m.items[m.count - 1].at_us == cases[i].last_ms * 1000);
    }
}

#define RULE(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        RULE(learns_and_remembers),
        RULE(says_what_is_usual),
        RULE(settings_that_change),
        RULE(operations_are_told_apart),
        RULE(sizes_are_told_apart),
        RULE(milestones_are_news),
        RULE(polls_change_nothing),
        RULE(clock_jumps),
        RULE(endings),
        RULE(milestones_of_updates_and_deletions),
        RULE(late_ones),
        RULE(not_remembered),
        cmocka_unit_test(stored_milestones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
