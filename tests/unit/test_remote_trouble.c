/*
 * A remote HyperFleet, and gateways in front of it, in bad times: nothing is lost, made twice, or
 * reported as gone while it exists.
 */
#include "driver/backend/remote/pass.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "driver/backend/remote/handle.h"
#include "tests/lib/contains.h"
#include "tests/lib/remote_world.h"

#define G "res-1"
#define ROUNDS_MAX 400
#define CLUSTER "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{\"cluster\":"
#define GATEWAY "{\"message\":\"no Route matched with those values\"}"

static const char body_1[] =
    CLUSTER "{\"name\":\"c-one\",\"spec\":{\"region\":\"eu-1\"}},"
            "\"nodepools\":[{\"name\":\"np-a\",\"spec\":{\"replicas\":1}}]}}}";
static const char body_2[] =
    CLUSTER "{\"name\":\"c-one\",\"spec\":{\"region\":\"eu-2\"}},"
            "\"nodepools\":[{\"name\":\"np-a\",\"spec\":{\"replicas\":2}}]}}}";

static enum hfd_answer asked(struct remote_world *rw, const char *guresid)
{
    return world_get_ok(&rw->w, guresid, NULL).answer;
}

/* Time goes by, and passes do what is due. */
static void pass_time(struct remote_world *rw, int64_t span_us)
{
    const int64_t end_us = rw->w.clock.wall_us + span_us;

    (void)remote_world_run(rw);
    while (rw->w.clock.wall_us < end_us) {
        remote_world_wait(rw, end_us - rw->w.clock.wall_us);
        (void)remote_world_run(rw);
    }
}

/* Adapters do their work, until the answer is that. */
static void until(struct remote_world *rw, enum hfd_answer answer)
{
    for (int i = 0; i < ROUNDS_MAX; i++) {
        const struct hfd_answer_doc doc = world_get_ok(&rw->w, G, NULL);

        if (doc.answer == answer)
            return;
        if (doc.answer == HFD_ANSWER_FAILED)
            fail_msg("%.*s: %.*s", HFD_SLICE_FMT(doc.error), HFD_SLICE_FMT(doc.message));
        (void)remote_world_run(rw);
        remote_succeed_all(rw);
        remote_world_wait(rw, 60 * HFD_US_PER_S);
    }
    fail_msg("it does not come to %d", (int)answer);
}

static void open_ready(struct remote_world *rw, const char *body)
{
    remote_world_open(rw, REMOTE_G31);
    (void)world_put_ok(&rw->w, G, body_1, NULL);
    until(rw, HFD_ANSWER_OUTPUT);
    if (body == body_1)
        return;
    (void)world_put_ok(&rw->w, G, body, NULL);
    until(rw, HFD_ANSWER_OUTPUT);
}

static void assert_ends_empty(struct remote_world *rw)
{
    (void)world_delete_ok(&rw->w, G, NULL);
    until(rw, HFD_ANSWER_ABSENT);
    assert_int_equal(json_array_size(rw->resources), 0);
    remote_world_close(rw);
}

static json_int_t number_in(struct remote_world *rw, const char *name, const char *key)
{
    return json_integer_value(json_object_get(remote_find(rw, name), key));
}

static const char *region(struct remote_world *rw)
{
    return json_string_value(
        json_object_get(json_object_get(remote_find(rw, "c-one"), "spec"), "region"));
}

/* The hint says that the remote is in trouble, and no more once it is well. */
static void trouble_is_in_the_hint(void **state)
{
    struct remote_world rw;
    struct hfd_answer_doc doc;

    (void)state;
    remote_world_open(&rw, REMOTE_G31);
    rw.refuse_status = 503;
    rw.refuse_body = GATEWAY;
    doc = world_put_ok(&rw.w, G, body_1, NULL);
    assert_lacks(doc.hint.message, "503");
    pass_time(&rw, 60 * HFD_US_PER_S);
    doc = world_get_ok(&rw.w, G, NULL);
    assert_contains(doc.hint.message, "an answer that is not HyperFleet's: 503");
    assert_contains(doc.hint.message, "waits for HyperFleet to take it up");
    rw.refuse_status = 0;
    pass_time(&rw, 600 * HFD_US_PER_S);
    doc = world_get_ok(&rw.w, G, NULL);
    assert_int_equal(doc.answer, HFD_ANSWER_HINT);
    assert_lacks(doc.hint.message, "503");
    assert_contains(doc.hint.message, "(has not reported)");
    assert_ends_empty(&rw);
}

/* ---- 404 in words of others ---- */

/*
 * A gateway that has lost its way says 404 in JSON as well: nothing is gone for that, and a
 * deletion is not done.
 */
static void gateways_404_removes_nothing(void **state)
{
    struct remote_world rw;

    (void)state;
    open_ready(&rw, body_1);
    rw.refuse_status = 404;
    rw.refuse_body = GATEWAY;
    pass_time(&rw, 1800 * HFD_US_PER_S);
    assert_int_equal(asked(&rw, G), HFD_ANSWER_OUTPUT);
    (void)world_delete_ok(&rw.w, G, NULL);
    pass_time(&rw, 1800 * HFD_US_PER_S);
    assert_int_equal(world_delete_ok(&rw.w, G, NULL).answer, HFD_ANSWER_HINT);
    rw.refuse_status = 0;
    until(&rw, HFD_ANSWER_ABSENT);
    assert_int_equal(json_array_size(rw.resources), 0);
    remote_world_close(&rw);
}

static bool of_one_cluster(const struct hfd_remote_request *request)
{
    return hfd_slice_starts(request->path, HFD_SLICE("/clusters/"));
}

/* It removes nothing either where a HyperFleet answers the lists. */
static void a_404_of_others_is_never_believed(void **state)
{
    struct remote_world rw;

    (void)state;
    open_ready(&rw, body_1);
    rw.refuse_status = 404;
    rw.refuse_body = "{\"error\":\"not found\"}";
    rw.refuses = of_one_cluster;
    pass_time(&rw, 600 * HFD_US_PER_S);
    assert_int_equal(asked(&rw, G), HFD_ANSWER_OUTPUT);
    remote_world_close(&rw);
}

/* ---- earlier generations ---- */

/*
 * A restored backup is brought up to what is wanted, once, without a PUT; the answer stays
 * 200 meanwhile.
 */
static void brought_back_from_a_backup(void **state)
{
    struct remote_world rw;
    int patches;

    (void)state;
    open_ready(&rw, body_2);
    patches = rw.patches;
    remote_restore(&rw, remote_find(&rw, "c-one"));
    remote_restore(&rw, remote_find(&rw, "np-a"));
    pass_time(&rw, 600 * HFD_US_PER_S);
    assert_int_equal(asked(&rw, G), HFD_ANSWER_OUTPUT);
    assert_string_equal(region(&rw), "eu-2");
    assert_int_equal(rw.patches, patches + 2);
    remote_succeed_all(&rw);
    pass_time(&rw, 600 * HFD_US_PER_S);
    assert_int_equal(world_put_ok(&rw.w, G, body_2, NULL).answer, HFD_ANSWER_OUTPUT);
    assert_int_equal(rw.patches, patches + 2);
    assert_ends_empty(&rw);
}

/* An update that a backup undid half-way comes to its end. */
static void brought_back_while_updating(void **state)
{
    struct remote_world rw;

    (void)state;
    open_ready(&rw, body_1);
    (void)world_put_ok(&rw.w, G, body_2, NULL);
    (void)remote_world_run(&rw);
    assert_int_equal(number_in(&rw, "c-one", "generation"), 2);
    remote_restore(&rw, remote_find(&rw, "c-one"));
    until(&rw, HFD_ANSWER_OUTPUT);
    assert_string_equal(region(&rw), "eu-2");
    assert_ends_empty(&rw);
}

/* A deletion does not wait for generations. */
static void brought_back_and_deleted(void **state)
{
    struct remote_world rw;

    (void)state;
    open_ready(&rw, body_2);
    remote_restore(&rw, remote_find(&rw, "c-one"));
    (void)world_delete_ok(&rw.w, G, NULL);
    (void)remote_world_run(&rw);
    assert_null(remote_find(&rw, "c-one"));
    until(&rw, HFD_ANSWER_ABSENT);
    remote_world_close(&rw);
}

/* A copy that lags behind for some seconds is waited for: nothing is written for it. */
static void lags_behind(void **state)
{
    struct remote_world rw;
    int patches;

    (void)state;
    open_ready(&rw, body_1);
    (void)world_put_ok(&rw.w, G, body_2, NULL);
    (void)remote_world_run(&rw);
    patches = rw.patches;
    (void)json_object_set_new(remote_find(&rw, "c-one"), "generation", json_integer(1));
    pass_time(&rw, 14 * HFD_US_PER_S);
    assert_int_equal(rw.patches, patches);
    (void)json_object_set_new(remote_find(&rw, "c-one"), "generation", json_integer(2));
    until(&rw, HFD_ANSWER_OUTPUT);
    assert_int_equal(rw.patches, patches);
    assert_ends_empty(&rw);
}

/* ---- restarts ---- */

static void delete_under_way(struct remote_world *rw, const struct hfd_remote_request *request)
{
    (void)request;
    if (rw->slow_us != 0)
        (void)world_delete_ok(&rw->w, G, NULL);
}

/*
 * The driver dies with a creation under way, which ends long after the restart: the deletion that
 * came meanwhile waits for it.
 */
static void creation_outlives_the_driver(void **state)
{
    struct remote_world rw;

    (void)state;
    remote_world_open(&rw, REMOTE_G3);
    rw.fault = REMOTE_FAULT_CRASH_SLOW;
    rw.fault_in = 2;
    rw.between = delete_under_way;
    (void)world_put_ok(&rw.w, G, body_1, NULL);
    pass_time(&rw, 10 * HFD_US_PER_S);
    assert_true(rw.fired && rw.slow_us != 0);
    assert_int_equal(asked(&rw, G), HFD_ANSWER_HINT);
    until(&rw, HFD_ANSWER_ABSENT);
    assert_int_equal(rw.posts, 1);
    assert_int_equal(json_array_size(rw.resources), 0);
    remote_world_close(&rw);
}

static void retarget_under_way(struct remote_world *rw, const struct hfd_remote_request *request)
{
    (void)request;
    if (rw->slow_us == 0)
        return;
    (void)world_put_ok(&rw->w, G, body_1, NULL);
    rw->between = NULL;
}

static const char body_1b[] = CLUSTER
    "{\"name\":\"c-one\",\"spec\":{\"region\":\"eu-1\"}},\"nodepools\":["
    "{\"name\":\"np-a\",\"spec\":{\"replicas\":1}},{\"name\":\"np-b\"},{\"name\":\"np-c\"}]}}}";

/*
 * The same with one of two nodepools that an update after the restart does not want any more. The
 * resource is not ready before that nodepool is gone.
 */
static void nodepool_outlives_the_driver(void **state)
{
    (void)state;
    for (int nth = 3; nth < 5; nth++) { /* behind the cluster and its nodepools */
        struct remote_world rw;

        open_ready(&rw, body_1);
        rw.fault = REMOTE_FAULT_CRASH_SLOW;
        rw.fault_in = nth;
        (void)world_put_ok(&rw.w, G, body_1b, NULL);
        rw.between = retarget_under_way;
        (void)remote_world_run(&rw);
        assert_true(rw.fired && rw.slow_us != 0);
        until(&rw, HFD_ANSWER_OUTPUT);
        assert_int_equal(rw.slow_us, 0);
        assert_int_equal(remote_count(&rw, "NodePool"), 1);
        assert_ends_empty(&rw);
    }
}

struct one_pass {
    struct remote_world *rw;
    struct hfd_pass *pass;
    struct hfd_remote_request request;
    struct hfd_remote_answer answer;
    bool done;
};

static hfd_rc txn_next(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct one_pass *p = arg;

    return hfd_pass_next(tx, p->pass, p->rw->w.clock.wall_us, &p->request, err);
}

static hfd_rc txn_take(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct one_pass *p = arg;
    const struct hfd_remote_exchange exchange = {&p->request, &p->answer, p->rw->w.clock.wall_us};

    return hfd_pass_take(tx, p->pass, &exchange, err);
}

static void ask_and_take(struct one_pass *p)
{
    assert_int_equal(hfd_store_read(p->rw->w.reader, txn_next, p, &p->rw->w.err), HFD_OK);
    p->done = p->request.path.p == NULL;
    if (p->done)
        return;
    remote_world_answer(p->rw, &p->request, &p->answer);
    assert_int_equal(hfd_store_update_wait(p->rw->w.store, txn_take, p, &p->rw->w.err), HFD_OK);
}

/* A deletion that comes before the creation was sent has nothing to wait for. */
static void creation_that_was_not_sent(void **state)
{
    const struct hfd_remote_work work = {.guresid = HFD_SLICE(G)};
    struct remote_world rw;
    struct one_pass p = {.rw = &rw};

    (void)state;
    remote_world_open(&rw, REMOTE_G3);
    (void)world_put_ok(&rw.w, G, body_1, NULL);
    assert_int_equal(hfd_pass_new(&rw.policy, &work, &p.pass, &rw.w.err), HFD_OK);
    ask_and_take(&p);
    (void)world_delete_ok(&rw.w, G, NULL);
    while (!p.done)
        ask_and_take(&p);
    hfd_pass_free(p.pass);
    assert_int_equal(rw.posts, 0);
    assert_int_equal(asked(&rw, G), HFD_ANSWER_ABSENT);
    remote_world_close(&rw);
}

/* With an empty store a DELETE finds what is being deleted, and sees it to its end. */
static void deletion_goes_on_with_an_empty_store(void **state)
{
    struct hfd_answer_doc doc;
    struct remote_world rw;
    hfd_slice cookie;

    (void)state;
    remote_world_open(&rw, REMOTE_G31);
    doc = world_put_ok(&rw.w, G, body_1, NULL);
    cookie = hfd_arena_dup(&rw.w.mem, doc.cookie);
    until(&rw, HFD_ANSWER_OUTPUT);
    (void)world_delete_ok(&rw.w, G, NULL);
    (void)remote_world_run(&rw);
    world_lose(&rw.w);
    (void)world_delete_ok(&rw.w, G, cookie.p);
    pass_time(&rw, 120 * HFD_US_PER_S);
    assert_int_equal(world_delete_ok(&rw.w, G, cookie.p).answer, HFD_ANSWER_HINT);
    assert_int_equal(remote_count(&rw, "Cluster"), 1);
    until(&rw, HFD_ANSWER_ABSENT);
    assert_int_equal(json_array_size(rw.resources), 0);
    assert_int_equal(rw.posts, 2);
    remote_world_close(&rw);
}

/* ---- what fails behind what goes well ---- */

static bool is_write(const struct hfd_remote_request *request)
{
    return request->method != HFD_REMOTE_GET;
}

/* Credentials that may read and not write are refused as well. */
static void refused_to_write(void **state)
{
    struct hfd_answer_doc doc;
    struct remote_world rw;

    (void)state;
    remote_world_open(&rw, REMOTE_G31);
    rw.refuse_status = 403;
    rw.refuse_body = "{\"code\":\"HYPERFLEET-AUZ-001\"}";
    rw.refuses = is_write;
    (void)world_put_ok(&rw.w, G, body_1, NULL);
    pass_time(&rw, 60 * HFD_US_PER_S);
    doc = world_get_ok(&rw.w, G, NULL);
    assert_int_equal(doc.answer, HFD_ANSWER_FAILED);
    assert_true(hfd_slice_is(doc.error, "RES-103"));
    rw.refuse_status = 0;
    (void)world_delete_ok(&rw.w, G, NULL);
    pass_time(&rw, 10 * HFD_US_PER_S); /* what was refused is not on its way */
    assert_int_equal(asked(&rw, G), HFD_ANSWER_ABSENT);
    remote_world_close(&rw);
}

/*
 * A pass that always fails at its last request is tried again less and less often, as one that
 * fails at its first.
 */
static void backs_off_from_a_late_failure(void **state)
{
    struct remote_world rw;

    (void)state;
    remote_world_open(&rw, REMOTE_G31);
    rw.refuse_status = 500;
    rw.refuse_body = "{\"code\":\"HYPERFLEET-INT-001\"}";
    rw.refuses = is_write;
    (void)world_put_ok(&rw.w, G, body_1, NULL);
    pass_time(&rw, 1200 * HFD_US_PER_S);
    assert_in_range(rw.requests, 30, 120);
    rw.refuse_status = 0;
    until(&rw, HFD_ANSWER_OUTPUT);
    remote_world_close(&rw);
}

static bool by_condition(const struct hfd_remote_request *request)
{
    return slice_has(request->path, "conditions");
}

/* Where the look at many fails and all else goes well, each is looked at by itself. */
static void many_without_their_list(void **state)
{
    static const int statuses[] = {400, 404, 405, 500, 501, 503};
    char guresid[16], body[128];

    (void)state;
    for (size_t s = 0; s < sizeof(statuses) / sizeof(statuses[0]); s++) {
        struct remote_world rw;

        remote_world_open(&rw, REMOTE_G31);
        rw.refuse_status = statuses[s];
        rw.refuse_body = "{\"code\":\"HYPERFLEET-INT-001\"}";
        rw.refuses = by_condition;
        for (int i = 0; i < 12; i++) {
            (void)snprintf(guresid, sizeof(guresid), "many-%d", i);
            (void)snprintf(body, sizeof(body), CLUSTER "{\"name\":\"m-%d\"}}}}", i);
            (void)world_put_ok(&rw.w, guresid, body, NULL);
        }
        pass_time(&rw, 30 * HFD_US_PER_S);
        remote_succeed_all(&rw);
        pass_time(&rw, 30 * HFD_US_PER_S);
        for (int i = 0; i < 12; i++) {
            (void)snprintf(guresid, sizeof(guresid), "many-%d", i);
            if (asked(&rw, guresid) != HFD_ANSWER_OUTPUT)
                fail_msg("a list answered %d: %s is not seen to be ready", statuses[s], guresid);
        }
        assert_in_range(rw.requests, 12, 12 * 60);
        remote_world_close(&rw);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trouble_is_in_the_hint),
        cmocka_unit_test(gateways_404_removes_nothing),
        cmocka_unit_test(a_404_of_others_is_never_believed),
        cmocka_unit_test(brought_back_from_a_backup),
        cmocka_unit_test(brought_back_while_updating),
        cmocka_unit_test(brought_back_and_deleted),
        cmocka_unit_test(lags_behind),
        cmocka_unit_test(creation_outlives_the_driver),
        cmocka_unit_test(nodepool_outlives_the_driver),
        cmocka_unit_test(creation_that_was_not_sent),
        cmocka_unit_test(deletion_goes_on_with_an_empty_store),
        cmocka_unit_test(refused_to_write),
        cmocka_unit_test(backs_off_from_a_late_failure),
        cmocka_unit_test(many_without_their_list),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
