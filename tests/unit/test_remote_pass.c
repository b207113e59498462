/*
 * A remote HyperFleet: driver resources against a played one of each wire generation, with every
 * fault at every request.
 */
#include "driver/backend/remote/pass.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "driver/backend/remote/http.h"
#include "store/rows_fleet.h"
#include "tests/lib/contains.h"
#include "tests/lib/remote_world.h"
#include "tests/lib/tier.h"

#define G "res-1"
#define ROUNDS_MAX 400
#define CLUSTER "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{\"cluster\":"
#define NODEPOOL "{\"type\":\"hyperfleet-nodepool\",\"driver\":{\"values\":{"

static const char body_1[] =
    CLUSTER "{\"name\":\"c-one\",\"spec\":{\"region\":\"eu-1\"}},"
            "\"nodepools\":[{\"name\":\"np-a\",\"spec\":{\"replicas\":1}}]}}}";
static const char body_2[] =
    CLUSTER "{\"name\":\"c-one\",\"spec\":{\"region\":\"eu-2\"}},"
            "\"nodepools\":[{\"name\":\"np-b\",\"spec\":{\"replicas\":1}}]}}}";
/* ---- asking ---- */

static struct hfd_answer_doc put(struct remote_world *rw, const char *guresid, const char *body,
                                 const char *cookie)
{
    return world_put_ok(&rw->w, guresid, body, cookie);
}

static struct hfd_answer_doc get(struct remote_world *rw, const char *guresid, const char *cookie)
{
    return world_get_ok(&rw->w, guresid, cookie);
}

static struct hfd_answer_doc erase(struct remote_world *rw, const char *guresid, const char *cookie)
{
    return world_delete_ok(&rw->w, guresid, cookie);
}

/* Time goes by, adapters do their work, until the answer is that. */
static struct hfd_answer_doc until(struct remote_world *rw, const char *guresid,
                                   enum hfd_answer answer)
{
    struct hfd_answer_doc doc;

    for (int i = 0; i < ROUNDS_MAX; i++) {
        (void)remote_world_run(rw);
        doc = get(rw, guresid, NULL);
        if (doc.answer == answer)
            return doc;
        if (doc.answer == HFD_ANSWER_FAILED)
            fail_msg("%.*s: %.*s", HFD_SLICE_FMT(doc.error), HFD_SLICE_FMT(doc.message));
        remote_succeed_all(rw);
        remote_world_wait(rw, 60 * HFD_US_PER_S);
    }
    fail_msg("still answered %d", (int)doc.answer);
    return doc;
}

/* How many live clusters carry our label. */
static int clusters_of(const struct remote_world *rw, const char *guresid)
{
    json_t *r;
    size_t i;
    int n = 0;

    json_array_foreach (rw->resources, i, r) {
        const char *label =
            json_string_value(json_object_get(json_object_get(r, "labels"), HFD_GURESID_LABEL));

        n += label != NULL && strcmp(label, guresid) == 0 &&
             json_object_get(r, "deleted_time") == NULL &&
             strcmp(json_string_value(json_object_get(r, "kind")), "Cluster") == 0;
    }
    return n;
}

static const char *region(struct remote_world *rw, const char *name)
{
    return json_string_value(
        json_object_get(json_object_get(remote_find(rw, name), "spec"), "region"));
}

/* ---- the life of a resource ---- */

/* A whole life: made, changed with another nodepool, deleted. */
static void live(struct remote_world *rw)
{
    assert_int_equal(put(rw, G, body_1, NULL).answer, HFD_ANSWER_HINT);
    (void)until(rw, G, HFD_ANSWER_OUTPUT);
    assert_int_equal(clusters_of(rw, G), 1);
    assert_int_equal(remote_count(rw, "Cluster"), 1);
    assert_int_equal(remote_count(rw, "NodePool"), 1);
    assert_string_equal(region(rw, "c-one"), "eu-1");
    assert_int_equal(put(rw, G, body_1, NULL).answer, HFD_ANSWER_OUTPUT);
    assert_int_equal(put(rw, G, body_2, NULL).answer, HFD_ANSWER_HINT);
    (void)until(rw, G, HFD_ANSWER_OUTPUT);
    assert_int_equal(clusters_of(rw, G), 1);
    assert_int_equal(remote_count(rw, "NodePool"), 1);
    assert_non_null(remote_find(rw, "np-b"));
    assert_string_equal(region(rw, "c-one"), "eu-2");
    assert_int_equal(erase(rw, G, NULL).answer, HFD_ANSWER_HINT);
    (void)until(rw, G, HFD_ANSWER_ABSENT);
    assert_int_equal(json_array_size(rw->resources), 0);
    assert_int_equal(world_count(&rw->w, HFD_KIND_CLUSTER), 0);
    assert_int_equal(world_count(&rw->w, HFD_KIND_NODEPOOL), 0);
}

/*
 * Every generation that can delete is driven through a whole life, with as few writes as there are
 * wishes.
 */
static void life_on_each_generation(void **state)
{
    (void)state;
    for (int g = REMOTE_G3; g < REMOTE_GENERATIONS; g++) {
        struct remote_world rw;

        remote_world_open(&rw, (enum remote_generation)g);
        live(&rw);
        assert_int_equal(rw.posts, 3);
        assert_int_equal(rw.patches, 1);
        remote_world_close(&rw);
    }
}

/* Each fault at each request in turn: the same life, one cluster, nothing left behind. */
static void every_fault_in_a_life(void **state)
{
    (void)state;
    for (int fault = REMOTE_FAULT_NONE + 1; fault < REMOTE_FAULTS; fault++) {
        struct remote_world rw;
        bool fired;
        int nth = 0;

        do {
            remote_world_open(&rw, REMOTE_G31);
            rw.fault = (enum remote_fault)fault;
            rw.fault_in = ++nth;
            live(&rw);
            if (rw.posts > 3)
                fail_msg("fault %d at request %d: %d creations", fault, nth, rw.posts);
            fired = rw.fired;
            remote_world_close(&rw);
        } while (fired);
        assert_true(nth > 15);
    }
}

/* ---- what happens between a request and its answer ---- */

struct meanwhile {
    int in; /* requests until it */
    bool done;
    bool deletes;
};

static void do_meanwhile(struct remote_world *rw, const struct hfd_remote_request *request)
{
    struct meanwhile *m = rw->between_ctx;

    (void)request;
    if (m->in <= 0 || --m->in > 0)
        return;
    m->done = true;
    if (m->deletes)
        (void)erase(rw, G, NULL);
    else
        (void)put(rw, G, body_2, NULL);
}

/* A DELETE that comes between any request and its answer leaves nothing behind. */
static void deletion_between_any_two_steps(void **state)
{
    struct meanwhile m = {.deletes = true};
    int nth = 0;

    (void)state;
    do {
        struct remote_world rw;

        remote_world_open(&rw, REMOTE_G3);
        m.in = ++nth;
        m.done = false;
        rw.between = do_meanwhile;
        rw.between_ctx = &m;
        (void)put(&rw, G, body_1, NULL);
        for (int i = 0; i < 20 && !m.done; i++) {
            (void)remote_world_run(&rw);
            remote_succeed_all(&rw);
            remote_world_wait(&rw, 60 * HFD_US_PER_S);
        }
        if (m.done) {
            (void)until(&rw, G, HFD_ANSWER_ABSENT);
            assert_int_equal(json_array_size(rw.resources), 0);
        }
        remote_world_close(&rw);
    } while (m.done && nth < 40);
    assert_true(nth > 10);
}

/* Another goal that comes between any request of an update and its answer is what is reached. */
static void retarget_between_any_two_steps(void **state)
{
    static const char body_3[] = CLUSTER
        "{\"name\":\"c-one\",\"spec\":"
        "{\"region\":\"eu-3\"}},\"nodepools\":[{\"name\":\"np-a\",\"spec\":{\"replicas\":7}}]}}}";
    struct meanwhile m = {0};
    int nth = 0;

    (void)state;
    do {
        struct remote_world rw;

        remote_world_open(&rw, REMOTE_G3);
        m = (struct meanwhile){0};
        rw.between = do_meanwhile;
        rw.between_ctx = &m;
        (void)put(&rw, G, body_1, NULL);
        (void)until(&rw, G, HFD_ANSWER_OUTPUT);
        (void)put(&rw, G, body_3, NULL);
        m.in = ++nth;
        (void)until(&rw, G, HFD_ANSWER_OUTPUT);
        if (m.done) {
            (void)until(&rw, G, HFD_ANSWER_OUTPUT);
            assert_string_equal(region(&rw, "c-one"), "eu-2");
            assert_non_null(remote_find(&rw, "np-b"));
            assert_null(remote_find(&rw, "np-a"));
            assert_int_equal(put(&rw, G, body_2, NULL).answer, HFD_ANSWER_OUTPUT);
        }
        remote_world_close(&rw);
    } while (m.done);
    assert_true(nth > 3);
}

/* ---- owners ---- */

static void assert_failed(const struct hfd_answer_doc *doc, const char *code, const char *words)
{
    if (doc->answer != HFD_ANSWER_FAILED)
        fail_msg("answered %d instead of failing with %s", (int)doc->answer, code);
    assert_contains(doc->error, code);
    assert_contains(doc->message, words);
    assert_true(doc->message.len <= 500);
}

/* A HyperFleet resource with both our labels is adopted; one that is as wanted is not patched. */
static void adopts_without_patching(void **state)
{
    struct remote_world rw;

    (void)state;
    remote_world_open(&rw, REMOTE_G31);
    (void)remote_add(&rw, NULL, "c-old", "{\"humanitec_guresid\": \"another\"}");
    (void)remote_add(&rw, NULL, "c-plain",
                     "{\"humanitec_guresid\": \"res-1\", \"humanitec_owner\": \"this-server\"}");
    (void)put(&rw, G, CLUSTER "{\"name\":\"c-plain\"}}}}", NULL);
    (void)until(&rw, G, HFD_ANSWER_OUTPUT);
    assert_int_equal(rw.posts, 0);
    assert_int_equal(rw.patches, 0);
    remote_world_close(&rw);
}

/* A twin that is being deleted neither is ours any more nor stands in the way. */
static void skips_deleted_twins(void **state)
{
    struct remote_world rw;
    json_t *twin;

    (void)state;
    remote_world_open(&rw, REMOTE_G31);
    twin = remote_add(&rw, NULL, "c-one",
                      "{\"humanitec_guresid\": \"res-1\", \"humanitec_owner\": \"this-server\"}");
    (void)json_object_set_new(twin, "deleted_time",
                              json_string("2025-01-01T00:00:00.123456789+02:00"));
    (void)put(&rw, G, body_1, NULL);
    (void)remote_world_run(&rw);
    assert_int_equal(rw.posts, 2);
    assert_int_equal(clusters_of(&rw, G), 1);
    remote_world_close(&rw);
}

/* A resource with our label, but with another server's or none, is left alone, and named. */
static void leaves_the_resources_of_others(void **state)
{
    static const struct {
        const char *labels, *named;
    } cases[] = {
        {"{\"humanitec_guresid\": \"res-1\", \"humanitec_owner\": \"that-server\"}", "that-server"},
        {"{\"humanitec_guresid\": \"res-1\"}", "with humanitec_owner 'this-server'"},
        {"{\"humanitec_guresid\": \"res-1\", \"humanitec_owner\": \"\"}", "but no humanitec_owner"},
    };

    (void)state;
    for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
        struct remote_world rw;
        struct hfd_answer_doc doc;

        remote_world_open(&rw, REMOTE_G3);
        (void)remote_add(&rw, NULL, i % 2 == 0 ? "c-one" : "c-other", cases[i / 2].labels);
        (void)put(&rw, G, body_1, NULL);
        (void)remote_world_run(&rw);
        doc = get(&rw, G, NULL);
        assert_failed(&doc, "RES-101", cases[i / 2].named);
        assert_contains(doc.message, "019a0000-0000-7000-8000-000000000001");
        (void)erase(&rw, G, NULL);
        (void)until(&rw, G, HFD_ANSWER_ABSENT);
        assert_int_equal(remote_count(&rw, "Cluster"), 1);
        assert_int_equal(rw.posts, 0);
        remote_world_close(&rw);
    }
}

/* The error about a taken name has the taker's id; with another name it goes on. */
static void names_who_has_the_name(void **state)
{
    struct remote_world rw;
    struct hfd_answer_doc doc;

    (void)state;
    remote_world_open(&rw, REMOTE_G31);
    (void)remote_add(&rw, NULL, "c-one", "{\"team\": \"blue\"}");
    (void)put(&rw, G, body_1, NULL);
    (void)remote_world_run(&rw);
    doc = get(&rw, G, NULL);
    assert_failed(&doc, "RES-101",
                  "'c-one' is taken by HyperFleet's cluster 019a0000-0000-7000-8000-000000000001");
    doc = put(&rw, G, CLUSTER "{\"name\":\"c-two\"}}}}", NULL);
    assert_int_equal(doc.answer, HFD_ANSWER_HINT);
    (void)until(&rw, G, HFD_ANSWER_OUTPUT);
    assert_int_equal(clusters_of(&rw, G), 1);
    remote_world_close(&rw);
}

/* Nodepools that wait for a cluster whose name was refused wait for the one with the next name. */
static void nodepools_follow_another_name(void **state)
{
    struct remote_world rw;

    (void)state;
    remote_world_open(&rw, REMOTE_G31);
    (void)remote_add(&rw, NULL, "c-one", "{\"team\": \"blue\"}");
    (void)put(&rw, G, body_1, NULL);
    (void)put(&rw, "np",
              NODEPOOL "\"cluster_guresid\":\"res-1\",\"nodepool\":{\"name\":\"extra\"}}}}", NULL);
    (void)remote_world_run(&rw);
    (void)put(
        &rw, G,
        CLUSTER
        "{\"name\":\"c-two\"},\"nodepools\":[{\"name\":\"np-a\",\"spec\":{\"replicas\":1}}]}}}",
        NULL);
    (void)until(&rw, G, HFD_ANSWER_OUTPUT);
    (void)until(&rw, "np", HFD_ANSWER_OUTPUT);
    assert_int_equal(remote_count(&rw, "NodePool"), 2);
    remote_world_close(&rw);
}

/* A cluster of ours with another name is not renamed, nor made twice. */
static void ours_under_another_name(void **state)
{
    struct remote_world rw;
    struct hfd_answer_doc doc;

    (void)state;
    remote_world_open(&rw, REMOTE_G3);
    (void)remote_add(&rw, NULL, "c-first",
                     "{\"humanitec_guresid\": \"res-1\", \"humanitec_owner\": \"this-server\"}");
    (void)put(&rw, G, body_1, NULL);
    (void)remote_world_run(&rw);
    doc = get(&rw, G, NULL);
    assert_failed(&doc, "RES-101", "is called 'c-first', and a name cannot change to 'c-one'");
    assert_int_equal(rw.posts, 0);
    (void)erase(&rw, G, NULL);
    (void)until(&rw, G, HFD_ANSWER_ABSENT);
    assert_int_equal(remote_count(&rw, "Cluster"), 0);
    remote_world_close(&rw);
}

/* A creation that arrives after its deletion was asked for is deleted too. */
static void creation_that_arrives_late(void **state)
{
    struct remote_world rw;

    (void)state;
    remote_world_open(&rw, REMOTE_G3);
    rw.fault = REMOTE_FAULT_LOST;
    rw.fault_in = 2;
    (void)put(&rw, G, body_1, NULL);
    (void)remote_world_run(&rw);
    assert_true(rw.fired);
    (void)erase(&rw, G, NULL);
    (void)remote_world_run(&rw);
    test_clock_advance(&rw.w.clock, 20 * HFD_US_PER_S);
    (void)remote_world_run(&rw);
    assert_int_equal(get(&rw, G, NULL).answer, HFD_ANSWER_HINT);
    (void)remote_add(&rw, NULL, "c-one",
                     "{\"humanitec_guresid\": \"res-1\", \"humanitec_owner\": \"this-server\"}");
    (void)until(&rw, G, HFD_ANSWER_ABSENT);
    assert_int_equal(json_array_size(rw.resources), 0);
    remote_world_close(&rw);
}

/* A refusal of HyperFleet fails the operation once, in its words; the corrected input is made. */
static void tells_what_is_refused(void **state)
{
    struct remote_world rw;
    struct hfd_answer_doc doc;

    (void)state;
    remote_world_open(&rw, REMOTE_G3);
    (void)put(&rw, G, CLUSTER "{\"name\":\"c-one\",\"spec\":{\"region\":\"nowhere\"}}}}}", NULL);
    (void)remote_world_run(&rw);
    doc = get(&rw, G, NULL);
    assert_failed(&doc, "RES-101", "it answered 400: Invalid ClusterSpec: no such region");
    rw.requests = 0;
    for (int i = 0; i < 10; i++) {
        remote_world_wait(&rw, 3600 * HFD_US_PER_S);
        (void)remote_world_run(&rw);
    }
    assert_true(rw.requests <= 10);
    (void)put(&rw, G, body_1, NULL);
    (void)until(&rw, G, HFD_ANSWER_OUTPUT);
    assert_int_equal(clusters_of(&rw, G), 1);
    remote_world_close(&rw);
}

/* ---- what an old one cannot do ---- */

/*
 * The oldest generation cannot delete. The error says what to do, whichever way the caller polls. A
 * later DELETE tries again.
 */
static void old_ones_cannot_delete(void **state)
{
    struct remote_world rw;
    struct hfd_answer_doc doc;

    (void)state;
    remote_world_open(&rw, REMOTE_G2);
    (void)put(&rw, G, body_1, NULL);
    (void)until(&rw, G, HFD_ANSWER_OUTPUT);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(erase(&rw, G, NULL).answer, HFD_ANSWER_HINT);
        (void)remote_world_run(&rw);
        doc = get(&rw, G, NULL);
        assert_failed(&doc, "RES-104",
                      "This HyperFleet cannot delete clusters (it answered 501 to DELETE)");
        doc = erase(&rw, G, NULL);
        assert_failed(&doc, "RES-104", "(resource " G ")");
        remote_world_wait(&rw, 120 * HFD_US_PER_S);
    }
    (void)put(&rw, G, body_1, NULL);
    (void)until(&rw, G, HFD_ANSWER_OUTPUT);
    assert_int_equal(rw.posts, 2);
    (void)erase(&rw, G, NULL);
    (void)remote_world_run(&rw);
    remote_remove(&rw, remote_find(&rw, "c-one"));
    remote_world_wait(&rw, 3600 * HFD_US_PER_S);
    (void)remote_world_run(&rw);
    assert_int_equal(erase(&rw, G, NULL).answer, HFD_ANSWER_ABSENT);
    remote_world_close(&rw);
}

/*
 * A caller that polls a deletion with DELETE and obeys Retry-After gets the refusal at its next
 * poll, however long that wait is. The refusal is repeated for a while; then DELETE tries again.
 */
static void delete_pollers_get_the_refusal(void **state)
{
    struct remote_world rw;
    struct hfd_answer_doc doc;

    (void)state;
    remote_world_open(&rw, REMOTE_G2);
    rw.w.driver.estimate_us[HFD_OP_DELETE] = 6000 * HFD_US_PER_S;
    rw.w.driver.deadline_us[HFD_KIND_CLUSTER][HFD_OP_DELETE] = 9000 * HFD_US_PER_S;
    (void)put(&rw, G, body_1, NULL);
    (void)until(&rw, G, HFD_ANSWER_OUTPUT);
    for (int i = 0; i < 3; i++) {
        doc = erase(&rw, G, NULL);
        assert_int_equal(doc.answer, HFD_ANSWER_HINT);
        if (i == 0) /* the longest wait that a hint can ask for */
            assert_int_equal(doc.hint.retry_after_s, HFD_RETRY_MAX_S);
        (void)remote_world_run(&rw);
        test_clock_advance(&rw.w.clock, doc.hint.retry_after_s * HFD_US_PER_S);
        world_restart(&rw.w);
        for (int poll = 0; poll < 2; poll++) {
            doc = erase(&rw, G, NULL);
            assert_failed(&doc, "RES-104", "(resource " G ")");
        }
        test_clock_advance(&rw.w.clock, 120 * HFD_US_PER_S);
    }
    remote_world_close(&rw);
}

/* It can change clusters' specs, and no nodepools. */
static void old_ones_cannot_change_nodepools(void **state)
{
    struct remote_world rw;
    struct hfd_answer_doc doc;

    (void)state;
    remote_world_open(&rw, REMOTE_G2);
    (void)put(&rw, G, body_1, NULL);
    (void)until(&rw, G, HFD_ANSWER_OUTPUT);
    (void)put(&rw, G,
              CLUSTER
              "{\"name\":\"c-one\",\"spec\":{\"region\":\"eu-9\"},\"labels\":"
              "{\"a\":\"b\"}},\"nodepools\":[{\"name\":\"np-a\",\"spec\":{\"replicas\":1}}]}}}",
              NULL);
    (void)until(&rw, G, HFD_ANSWER_OUTPUT);
    assert_int_equal(rw.patches, 1);
    assert_string_equal(region(&rw, "c-one"), "eu-9");
    (void)put(&rw, G,
              CLUSTER
              "{\"name\":\"c-one\",\"spec\":{\"region\":\"eu-9\"},\"labels\":"
              "{\"a\":\"b\"}},\"nodepools\":[{\"name\":\"np-a\",\"spec\":{\"replicas\":2}}]}}}",
              NULL);
    (void)remote_world_run(&rw);
    doc = get(&rw, G, NULL);
    assert_failed(&doc, "RES-104",
                  "This HyperFleet cannot change nodepools (it answered 405 to PATCH)");
    remote_world_close(&rw);
}

/* ---- faults that last ---- */

/*
 * Credentials that are refused three times in a row fail a creation; with new ones the next PUT
 * makes it. A deletion goes on meanwhile.
 */
static void refused_credentials(void **state)
{
    struct remote_world rw;
    struct hfd_answer_doc doc;

    (void)state;
    remote_world_open(&rw, REMOTE_G3);
    rw.refuse_status = 401;
    rw.refuse_body = "{\"code\":\"HYPERFLEET-AUT-001\"}";
    (void)put(&rw, G, body_1, NULL);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(get(&rw, G, NULL).answer, HFD_ANSWER_HINT);
        (void)remote_world_run(&rw);
        remote_world_wait(&rw, 60 * HFD_US_PER_S);
    }
    doc = get(&rw, G, NULL);
    assert_failed(&doc, "RES-103", "credentials (it answered 401)");
    rw.refuse_status = 0;
    (void)put(&rw, G, body_1, NULL);
    (void)until(&rw, G, HFD_ANSWER_OUTPUT);
    rw.refuse_status = 403;
    for (int i = 0; i < 10; i++) {
        remote_world_wait(&rw, 3600 * HFD_US_PER_S);
        (void)remote_world_run(&rw);
    }
    assert_int_equal(get(&rw, G, NULL).answer, HFD_ANSWER_OUTPUT);
    (void)erase(&rw, G, NULL);
    for (int i = 0; i < 6; i++) {
        (void)remote_world_run(&rw);
        remote_world_wait(&rw, 60 * HFD_US_PER_S);
    }
    assert_int_equal(get(&rw, G, NULL).answer, HFD_ANSWER_HINT);
    test_clock_advance(&rw.w.clock, 3600 * HFD_US_PER_S);
    doc = get(&rw, G, NULL);
    assert_failed(&doc, "RES-105", "refused the driver's credentials");
    rw.refuse_status = 0;
    (void)erase(&rw, G, NULL);
    (void)until(&rw, G, HFD_ANSWER_ABSENT);
    remote_world_close(&rw);
}

/*
 * A remote that is down past the deadline: RES-105 with the reason. When it is back, the cluster is
 * made once, and the next PUT is 200 at once.
 */
static void down_past_the_deadline(void **state)
{
    struct remote_world rw;
    struct hfd_answer_doc doc;

    (void)state;
    remote_world_open(&rw, REMOTE_G31);
    rw.refuse_status = 503;
    (void)put(&rw, G, body_1, NULL);
    for (int i = 0; i < 200; i++) {
        (void)remote_world_run(&rw);
        remote_world_wait(&rw, 60 * HFD_US_PER_S);
    }
    assert_true(rw.requests <= 200);
    test_clock_advance(&rw.w.clock, 3600 * HFD_US_PER_S);
    doc = get(&rw, G, NULL);
    assert_failed(&doc, "RES-105", "an answer that is not HyperFleet's: 503, no body");
    rw.refuse_status = 0;
    for (int i = 0; i < 20; i++) {
        (void)remote_world_run(&rw);
        remote_succeed_all(&rw);
        remote_world_wait(&rw, 600 * HFD_US_PER_S);
    }
    assert_int_equal(get(&rw, G, NULL).answer, HFD_ANSWER_FAILED);
    assert_int_equal(put(&rw, G, body_1, NULL).answer, HFD_ANSWER_OUTPUT);
    assert_int_equal(rw.posts, 2);
    remote_world_close(&rw);
}

/*
 * A resource that an adapter has given up stays failed, whatever it does later; the next PUT finds
 * it ready.
 */
static void failed_stays_failed(void **state)
{
    struct remote_world rw;
    struct hfd_answer_doc doc;

    (void)state;
    remote_world_open(&rw, REMOTE_G3);
    (void)put(&rw, G, body_1, NULL);
    (void)remote_world_run(&rw);
    remote_world_wait(&rw, 60 * HFD_US_PER_S);
    remote_report(&rw, remote_find(&rw, "c-one"),
                  &(struct remote_said){"dns", "False", "InvalidConfiguration", NULL});
    (void)remote_world_run(&rw);
    doc = get(&rw, G, NULL);
    assert_failed(&doc, "RES-104", "InvalidConfiguration");
    for (int i = 0; i < 10; i++) {
        remote_world_wait(&rw, 600 * HFD_US_PER_S);
        remote_succeed_all(&rw);
        (void)remote_world_run(&rw);
    }
    assert_int_equal(get(&rw, G, NULL).answer, HFD_ANSWER_FAILED);
    assert_int_equal(put(&rw, G, body_1, NULL).answer, HFD_ANSWER_OUTPUT);
    remote_world_close(&rw);
}

/*
 * A cluster that is removed behind our back: RES-104; a PUT makes a new one; a DELETE has nothing
 * to do.
 */
static void gone_behind_our_back(void **state)
{
    struct remote_world rw;
    struct hfd_answer_doc doc;

    (void)state;
    remote_world_open(&rw, REMOTE_G3);
    for (int again = 0; again < 2; again++) {
        (void)put(&rw, G, body_1, NULL);
        (void)until(&rw, G, HFD_ANSWER_OUTPUT);
        remote_remove(&rw, remote_find(&rw, "c-one"));
        remote_world_wait(&rw, 3600 * HFD_US_PER_S);
        (void)remote_world_run(&rw);
        doc = get(&rw, G, NULL);
        assert_failed(&doc, "RES-104", "was removed in HyperFleet");
        remote_world_wait(&rw, 3600 * HFD_US_PER_S);
        assert_int_equal(remote_world_run(&rw), 0);
    }
    assert_int_equal(erase(&rw, G, NULL).answer, HFD_ANSWER_ABSENT);
    assert_int_equal(rw.posts, 4);
    remote_world_close(&rw);
}

/*
 * A cluster that another program deletes fails, and a PUT makes another while the first one still
 * goes.
 */
static void deleted_behind_our_back(void **state)
{
    struct remote_world rw;
    struct hfd_answer_doc doc;
    struct hfd_remote_request request = {
        .method = HFD_REMOTE_DELETE,
        .path = HFD_SLICE("/clusters/019a0000-0000-7000-8000-000000000001")};
    struct hfd_remote_answer answer;

    (void)state;
    remote_world_open(&rw, REMOTE_G3);
    (void)put(&rw, G, body_1, NULL);
    (void)until(&rw, G, HFD_ANSWER_OUTPUT);
    remote_world_answer(&rw, &request, &answer);
    assert_int_equal(answer.status, 202);
    remote_world_wait(&rw, 3600 * HFD_US_PER_S);
    (void)remote_world_run(&rw);
    doc = get(&rw, G, NULL);
    assert_failed(&doc, "RES-104", "is being deleted");
    (void)put(&rw, G, body_1, NULL);
    (void)remote_world_run(&rw);
    assert_int_equal(remote_count(&rw, "Cluster"), 2);
    (void)until(&rw, G, HFD_ANSWER_OUTPUT);
    assert_int_equal(clusters_of(&rw, G), 1);
    assert_int_equal(remote_count(&rw, "NodePool"), 1);
    remote_world_close(&rw);
}

/* The nodepools of the store's one cluster. */
struct pools {
    hfd_slice cluster_id;
    struct hfd_arena *mem;
    struct hfd_fleet_list list;
};

static hfd_rc txn_pools(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct pools *p = arg;

    return hfd_fleet_row_children(tx, p->cluster_id, p->mem, &p->list, err);
}

static struct hfd_fleet_row pool_of(struct remote_world *rw, const char *name)
{
    struct pools p = {.cluster_id = world_row(&rw->w, G).cluster_id, .mem = &rw->w.mem};

    assert_int_equal(hfd_store_read(rw->w.reader, txn_pools, &p, &rw->w.err), HFD_OK);
    for (size_t i = 0; i < p.list.count; i++)
        if (hfd_slice_is(p.list.rows[i].name, name))
            return p.list.rows[i];
    fail_msg("no nodepool %s", name);
    return (struct hfd_fleet_row){.observer_idle = 0};
}

/* While the first answer about reports is on its way, a PUT drops one nodepool and adds another. */
static void replace_pool(struct remote_world *rw, const struct hfd_remote_request *request)
{
    bool *done = rw->between_ctx;

    if (*done || !slice_has(request->path, "/statuses"))
        return;
    *done = true;
    test_clock_advance(&rw->w.clock, HFD_US_PER_S);
    (void)put(rw, G, body_2, NULL);
}

/*
 * Two transactions mark the nodepools of a cluster: each nodepool keeps the mark that it got first,
 * and none is left without.
 */
static void marks_of_nodepools_are_kept(void **state)
{
    struct hfd_remote_request request = {
        .method = HFD_REMOTE_DELETE,
        .path = HFD_SLICE("/clusters/019a0000-0000-7000-8000-000000000001")};
    struct hfd_remote_answer answer;
    struct remote_world rw;
    struct hfd_answer_doc doc;
    int64_t cluster_us, put_us;
    bool done = false;

    (void)state;
    remote_world_open(&rw, REMOTE_G3);
    (void)put(&rw, G, body_1, NULL);
    (void)until(&rw, G, HFD_ANSWER_OUTPUT);
    cluster_us = rw.w.clock.wall_us;
    remote_world_answer(&rw, &request, &answer);
    assert_int_equal(answer.status, 202);
    remote_world_wait(&rw, 3600 * HFD_US_PER_S);
    rw.between = replace_pool;
    rw.between_ctx = &done;
    put_us = rw.w.clock.wall_us + HFD_US_PER_S;
    (void)remote_world_run(&rw);
    assert_true(done && put_us > cluster_us + HFD_US_PER_S);
    assert_int_equal(pool_of(&rw, "np-a").deleted_us, put_us);
    assert_int_equal(pool_of(&rw, "np-b").deleted_us, cluster_us);
    doc = get(&rw, G, NULL);
    assert_failed(&doc, "RES-104", "is being deleted");
    remote_world_close(&rw);
}

/* ---- an empty store ---- */

/* The orchestrator's memory of a resource. */
static const char *cookie_of(struct remote_world *rw)
{
    const struct hfd_answer_doc doc = put(rw, G, body_1, NULL);
    const hfd_slice copy = hfd_arena_dup(&rw->w.mem, doc.cookie);

    assert_true(doc.has_cookie);
    return copy.p;
}

/*
 * With an empty store and a valid cookie the resource is found again: by GET, by PUT, by DELETE, as
 * before.
 */
static void found_again_by_cookie(void **state)
{
    struct remote_world rw;
    const char *cookie;
    struct hfd_answer_doc before, after;

    (void)state;
    for (int g = REMOTE_G2; g < REMOTE_GENERATIONS; g++) {
        remote_world_open(&rw, (enum remote_generation)g);
        cookie = cookie_of(&rw);
        before = until(&rw, G, HFD_ANSWER_OUTPUT);
        world_lose(&rw.w);
        assert_int_equal(get(&rw, G, NULL).answer, HFD_ANSWER_ABSENT);
        assert_int_equal(get(&rw, G, cookie).answer, HFD_ANSWER_HINT);
        assert_int_equal(get(&rw, G, cookie).answer, HFD_ANSWER_HINT);
        (void)remote_world_run(&rw);
        after = get(&rw, G, cookie);
        assert_int_equal(after.answer, HFD_ANSWER_OUTPUT);
        assert_string_equal(after.values.p, before.values.p);
        assert_int_equal(put(&rw, G, body_1, cookie).answer, HFD_ANSWER_OUTPUT);
        world_lose(&rw.w);
        assert_int_equal(put(&rw, G, body_1, cookie).answer, HFD_ANSWER_HINT);
        (void)remote_world_run(&rw);
        assert_int_equal(put(&rw, G, body_1, cookie).answer, HFD_ANSWER_OUTPUT);
        assert_int_equal(rw.posts, 2);
        assert_int_equal(rw.patches, 0);
        world_lose(&rw.w);
        assert_int_equal(erase(&rw, G, cookie).answer, HFD_ANSWER_HINT);
        (void)remote_world_run(&rw);
        if (g == REMOTE_G2) {
            assert_int_equal(get(&rw, G, cookie).answer, HFD_ANSWER_FAILED);
        } else {
            (void)until(&rw, G, HFD_ANSWER_ABSENT);
            assert_int_equal(json_array_size(rw.resources), 0);
            assert_int_equal(erase(&rw, G, cookie).answer, HFD_ANSWER_ABSENT);
        }
        remote_world_close(&rw);
    }
}

/*
 * A cookie of what is no more: 404 once that is known, 204 for a DELETE, and nothing is made by
 * asking.
 */
static void nothing_found_by_cookie(void **state)
{
    struct remote_world rw;
    const char *cookie;

    (void)state;
    remote_world_open(&rw, REMOTE_G31);
    cookie = cookie_of(&rw);
    (void)until(&rw, G, HFD_ANSWER_OUTPUT);
    world_lose(&rw.w);
    remote_remove(&rw, remote_find(&rw, "c-one"));
    assert_int_equal(get(&rw, G, cookie).answer, HFD_ANSWER_HINT);
    (void)remote_world_run(&rw);
    assert_int_equal(get(&rw, G, cookie).answer, HFD_ANSWER_ABSENT);
    assert_int_equal(erase(&rw, G, cookie).answer, HFD_ANSWER_ABSENT);
    assert_int_equal(rw.posts, 2);
    world_lose(&rw.w);
    assert_int_equal(erase(&rw, G, cookie).answer, HFD_ANSWER_HINT);
    (void)remote_world_run(&rw);
    assert_int_equal(get(&rw, G, cookie).answer, HFD_ANSWER_ABSENT);
    /* A PUT while it is looked for makes it. */
    world_lose(&rw.w);
    assert_int_equal(get(&rw, G, cookie).answer, HFD_ANSWER_HINT);
    assert_int_equal(put(&rw, G, body_1, cookie).answer, HFD_ANSWER_HINT);
    (void)until(&rw, G, HFD_ANSWER_OUTPUT);
    assert_int_equal(clusters_of(&rw, G), 1);
    remote_world_close(&rw);
}

/* A forged cookie changes nothing; one that another backend gave is as good as its label. */
static void cookies_of_others(void **state)
{
    struct remote_world rw;
    struct hfd_answer_doc doc;
    const char *cookie;

    (void)state;
    remote_world_open(&rw, REMOTE_G3);
    cookie = cookie_of(&rw);
    (void)until(&rw, G, HFD_ANSWER_OUTPUT);
    world_lose(&rw.w);
    assert_int_equal(world_get(&rw.w, G, "AAAA", &doc), HFD_COOKIE);
    rw.w.driver.backend = HFD_SLICE("https://other.example");
    assert_int_equal(get(&rw, G, cookie).answer, HFD_ANSWER_HINT);
    (void)remote_world_run(&rw);
    assert_int_equal(get(&rw, G, cookie).answer, HFD_ANSWER_OUTPUT);
    assert_int_equal(rw.posts, 2);
    remote_world_close(&rw);
}

/* ---- nodepool resources ---- */

/*
 * A nodepool names its cluster in three ways. They are a GUResID that is not made yet, an id that
 * only the remote knows, and an unknown id.
 */
static void nodepool_resources(void **state)
{
    static const char by_guresid[] =
        NODEPOOL "\"cluster_guresid\":\"res-1\",\"nodepool\":{\"name\":\"extra\"}}}}";
    static const char by_id[] = NODEPOOL "\"cluster_id\":\"019a0000-0000-7000-8000-000000000001\","
                                         "\"nodepool\":{\"name\":\"more\"}}}}";
    static const char nowhere[] =
        NODEPOOL "\"cluster_id\":\"019a-no\",\"nodepool\":{\"name\":\"none\"}}}}";
    struct remote_world rw;
    struct hfd_answer_doc doc;

    (void)state;
    remote_world_open(&rw, REMOTE_G31);
    (void)remote_add(&rw, NULL, "theirs", "{}");
    (void)put(&rw, "np-by-id", by_id, NULL);
    (void)until(&rw, "np-by-id", HFD_ANSWER_OUTPUT);
    assert_int_equal(rw.posts, 1);
    (void)put(&rw, G, body_1, NULL);
    (void)put(&rw, "np-by-g", by_guresid, NULL);
    rw.refuse_status = 503; /* then there is nothing to do for what waits for the cluster */
    (void)remote_world_run(&rw);
    (void)put(&rw, "np-by-g", by_guresid, NULL);
    (void)remote_world_run(&rw);
    rw.refuse_status = 0;
    (void)until(&rw, "np-by-g", HFD_ANSWER_OUTPUT);
    (void)until(&rw, G, HFD_ANSWER_OUTPUT);
    (void)put(&rw, "np-none", nowhere, NULL);
    (void)remote_world_run(&rw);
    doc = get(&rw, "np-none", NULL);
    assert_failed(&doc, "RES-101", "There is no cluster '019a-no' in HyperFleet");
    assert_int_equal(world_put(&rw.w, "np-bad",
                               NODEPOOL "\"cluster_id\":\"../x\",\"nodepool\":{}}}}", NULL, &doc),
                     HFD_INVALID);
    (void)erase(&rw, "np-none", NULL);
    (void)until(&rw, "np-none", HFD_ANSWER_ABSENT);
    (void)erase(&rw, "np-by-id", NULL);
    (void)until(&rw, "np-by-id", HFD_ANSWER_ABSENT);
    assert_null(remote_find(&rw, "more"));
    assert_non_null(remote_find(&rw, "extra"));
    remote_world_close(&rw);
}

/* A nodepool resource is found again by its label, wherever it is. */
static void nodepool_found_again(void **state)
{
    static const char body[] = NODEPOOL "\"cluster_id\":\"019a0000-0000-7000-8000-000000000001\","
                                        "\"nodepool\":{\"name\":\"more\"}}}}";
    struct remote_world rw;
    struct hfd_answer_doc before, after;
    hfd_slice cookie;

    (void)state;
    remote_world_open(&rw, REMOTE_G3);
    (void)remote_add(&rw, NULL, "theirs", "{}");
    cookie = hfd_arena_dup(&rw.w.mem, put(&rw, G, body, NULL).cookie);
    before = until(&rw, G, HFD_ANSWER_OUTPUT);
    world_lose(&rw.w);
    assert_int_equal(get(&rw, G, cookie.p).answer, HFD_ANSWER_HINT);
    (void)remote_world_run(&rw);
    after = get(&rw, G, cookie.p);
    assert_int_equal(after.answer, HFD_ANSWER_OUTPUT);
    assert_string_equal(after.values.p, before.values.p);
    assert_int_equal(put(&rw, G, body, cookie.p).answer, HFD_ANSWER_OUTPUT);
    remote_world_close(&rw);
}

/* ---- outputs ---- */

/*
 * The first 200 has all that outputs take from reports, secrets too; these are sealed in the store.
 */
static void outputs_are_complete_at_once(void **state)
{
    static const struct hfd_output_rule values[] = {
        {HFD_SLICE("endpoint"), HFD_SLICE("dns"), HFD_SLICE("/endpoint")}};
    static const struct hfd_output_rule secrets[] = {
        {HFD_SLICE("token"), HFD_SLICE("dns"), HFD_SLICE("/secrets/token")}};
    struct remote_world rw;
    struct hfd_answer_doc doc;

    (void)state;
    remote_world_open(&rw, REMOTE_G31);
    rw.w.driver.output_values = values;
    rw.w.driver.output_value_count = 1;
    rw.w.driver.output_secrets = secrets;
    rw.w.driver.output_secret_count = 1;
    (void)put(&rw, G, body_1, NULL);
    doc = until(&rw, G, HFD_ANSWER_OUTPUT);
    assert_contains(doc.values, "\"endpoint\":\"https://c\"");
    assert_contains(doc.secrets, "t0p");
    remote_world_close(&rw);
}

/*
 * A nodepool that goes ends the wait for it, not the wait for a cluster that the same pass finds
 * not ready any more.
 */
static void gone_nodepools_hide_no_fault(void **state)
{
    static const char both[] = CLUSTER
        "{\"name\":\"c-one\",\"spec\":{\"region\":\"eu-1\"}},"
        "\"nodepools\":[{\"name\":\"np-a\",\"spec\":{\"replicas\":1}},{\"name\":\"np-b\"}]}}}";
    struct remote_world rw;
    json_t *np_b;

    (void)state;
    for (int made = 0; made < 2; made++) {
        remote_world_open(&rw, REMOTE_G31);
        (void)put(&rw, G, made ? both : body_1, NULL);
        (void)until(&rw, G, HFD_ANSWER_OUTPUT);
        np_b = remote_find(&rw, "np-b");
        if (!made)
            assert_int_equal(put(&rw, G, both, NULL).answer, HFD_ANSWER_HINT);
        assert_int_equal(put(&rw, G, body_1, NULL).answer, HFD_ANSWER_HINT);
        if (made) {
            (void)remote_world_run(&rw);
            assert_int_equal(get(&rw, G, NULL).answer, HFD_ANSWER_HINT);
            remote_remove(&rw, np_b);
        }
        remote_report(&rw, remote_find(&rw, "c-one"),
                      &(struct remote_said){"dns", "False", "ZoneLost", NULL});
        remote_world_wait(&rw, 60 * HFD_US_PER_S);
        (void)remote_world_run(&rw);
        assert_int_equal(get(&rw, G, NULL).answer, HFD_ANSWER_HINT);
        (void)until(&rw, G, HFD_ANSWER_OUTPUT);
        assert_null(remote_find(&rw, "np-b"));
        remote_world_close(&rw);
    }
}

/*
 * ... nor does it hide that another one, which should stay, is not there any more: this is asked
 * for first.
 */
static void gone_nodepools_hide_no_other(void **state)
{
    static const char both[] = CLUSTER
        "{\"name\":\"c-one\",\"spec\":{\"region\":\"eu-1\"}},"
        "\"nodepools\":[{\"name\":\"np-a\",\"spec\":{\"replicas\":1}},{\"name\":\"np-b\"}]}}}";
    static const char second[] = CLUSTER "{\"name\":\"c-one\",\"spec\":{\"region\":\"eu-1\"}},"
                                         "\"nodepools\":[{\"name\":\"np-b\"}]}}}";
    struct remote_world rw;
    json_t *np_a, *np_b;

    (void)state;
    for (int made = 0; made < 2; made++) {
        remote_world_open(&rw, REMOTE_G31);
        (void)put(&rw, G, made ? both : body_1, NULL);
        (void)until(&rw, G, HFD_ANSWER_OUTPUT);
        np_a = remote_find(&rw, "np-a");
        np_b = remote_find(&rw, "np-b");
        if (!made)
            assert_int_equal(put(&rw, G, both, NULL).answer, HFD_ANSWER_HINT);
        assert_int_equal(put(&rw, G, made ? second : body_1, NULL).answer, HFD_ANSWER_HINT);
        remote_remove(&rw, np_a);
        if (made)
            remote_remove(&rw, np_b);
        rw.fault = REMOTE_FAULT_LOST;
        rw.fault_in =
            made ? 4 : 3; /* the cluster, its list, the nodepool that should be there, the other */
        remote_world_wait(&rw, 60 * HFD_US_PER_S);
        (void)remote_world_run(&rw);
        assert_true(rw.fired);
        assert_int_equal(get(&rw, G, NULL).answer, made ? HFD_ANSWER_FAILED : HFD_ANSWER_HINT);
        remote_world_close(&rw);
    }
}

/* ---- many ---- */

#define MANY 60

static void put_many(struct remote_world *rw, int from, int count)
{
    char guresid[32], body[160];

    for (int i = from; i < from + count; i++) {
        (void)snprintf(guresid, sizeof(guresid), "many-%d", i);
        (void)snprintf(body, sizeof(body), CLUSTER "{\"name\":\"m-%d\"}}}}", i);
        (void)put(rw, guresid, body, NULL);
    }
}

/*
 * Many in progress are looked at by a few lists, whatever is polled; what changes in one of them,
 * or goes, is noticed.
 */
static void many_are_watched_together(void **state)
{
    struct remote_world rw;
    char guresid[16];
    int requests;

    (void)state;
    remote_world_open(&rw, REMOTE_G31);
    put_many(&rw, 0, MANY);
    (void)remote_world_run(&rw);
    assert_int_equal(rw.posts, MANY);
    requests = rw.requests;
    for (int round = 0; round < 8; round++) { /* before all reports are looked at again */
        test_clock_advance(&rw.w.clock, rw.policy.watch_us);
        (void)remote_world_run(&rw);
        for (int i = 0; i < MANY; i++) {
            (void)snprintf(guresid, sizeof(guresid), "many-%d", i);
            assert_int_equal(get(&rw, guresid, NULL).answer, HFD_ANSWER_HINT);
        }
    }
    assert_in_range(rw.requests - requests, 8, 8 * 4);
    remote_report(&rw, remote_find(&rw, "m-7"),
                  &(struct remote_said){"validation", "True", "Done", NULL});
    remote_report(&rw, remote_find(&rw, "m-7"), &(struct remote_said){"dns", "True", "Done", NULL});
    remote_remove(&rw, remote_find(&rw, "m-8"));
    test_clock_advance(&rw.w.clock, rw.policy.watch_us);
    (void)remote_world_run(&rw);
    assert_int_equal(get(&rw, "many-7", NULL).answer, HFD_ANSWER_OUTPUT);
    assert_int_equal(get(&rw, "many-8", NULL).answer, HFD_ANSWER_FAILED);
    assert_int_equal(get(&rw, "many-9", NULL).answer, HFD_ANSWER_HINT);
    remote_succeed_all(&rw);
    test_clock_advance(&rw.w.clock, rw.policy.watch_us);
    (void)remote_world_run(&rw);
    for (int i = 9; i < MANY; i++) {
        (void)snprintf(guresid, sizeof(guresid), "many-%d", i);
        assert_int_equal(get(&rw, guresid, NULL).answer, HFD_ANSWER_OUTPUT);
    }
    remote_world_close(&rw);
}

/* However spread in time they were made, one look is soon enough for all of them. */
static void many_fall_into_step(void **state)
{
    struct remote_world rw;
    int requests;

    (void)state;
    remote_world_open(&rw, REMOTE_G31);
    for (int i = 0; i < MANY; i += 3) {
        put_many(&rw, i, 3);
        (void)remote_world_run(&rw);
        test_clock_advance(&rw.w.clock, HFD_US_PER_S / 4);
    }
    requests = rw.requests;
    for (int step = 0; step < 80;
         step++) { /* 20 s: at most five looks, each of two pages and one */
        test_clock_advance(&rw.w.clock, HFD_US_PER_S / 4);
        (void)remote_world_run(&rw);
    }
    assert_in_range(rw.requests - requests, 9, 15);
    remote_world_close(&rw);
}

/* A remote that is down is not asked for each one of many, and afterwards none is forgotten. */
static void many_wait_for_one_that_is_down(void **state)
{
    struct remote_world rw;
    int requests;

    (void)state;
    remote_world_open(&rw, REMOTE_G3);
    put_many(&rw, 0, 20);
    (void)remote_world_run(&rw);
    requests = rw.requests;
    rw.refuse_status = 502;
    test_clock_advance(&rw.w.clock, rw.policy.watch_us);
    (void)remote_world_run(&rw);
    assert_in_range(rw.requests - requests, 1, 4);
    rw.refuse_status = 0;
    remote_succeed_all(&rw);
    (void)until(&rw, "many-0", HFD_ANSWER_OUTPUT);
    (void)until(&rw, "many-19", HFD_ANSWER_OUTPUT);
    remote_world_close(&rw);
}

/* ---- asking ---- */

struct hurry_step {
    struct remote_world *rw;
    int64_t older_us;
};

static hfd_rc txn_hurry(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct hurry_step *s = arg;

    return hfd_remote_hurry(tx, HFD_SLICE(G), s->older_us, s->rw->w.clock.wall_us, err);
}

/* A poll makes a resource due now, unless it was just observed, or waits after a failure. */
static void asking_hurries(void **state)
{
    struct remote_world rw;
    struct hurry_step s = {.rw = &rw};

    (void)state;
    remote_world_open(&rw, REMOTE_G3);
    (void)put(&rw, G, body_1, NULL);
    (void)remote_world_run(&rw);
    test_clock_advance(&rw.w.clock, HFD_US_PER_S);
    assert_int_equal(remote_world_run(&rw), 0);
    s.older_us = rw.w.clock.wall_us - 2 * HFD_US_PER_S;
    assert_int_equal(hfd_store_update_wait(rw.w.store, txn_hurry, &s, &rw.w.err), HFD_OK);
    assert_int_equal(remote_world_run(&rw), 0);
    s.older_us = rw.w.clock.wall_us;
    assert_int_equal(hfd_store_update_wait(rw.w.store, txn_hurry, &s, &rw.w.err), HFD_OK);
    rw.refuse_status = 500;
    assert_int_equal(remote_world_run(&rw), 1);
    assert_int_equal(hfd_store_update_wait(rw.w.store, txn_hurry, &s, &rw.w.err), HFD_OK);
    assert_int_equal(remote_world_run(&rw), 0);
    remote_world_close(&rw);
}

/*
 * A GUResID that looks like a date is found all the same. The search avoids it as a text, because
 * later generations take that text for a time.
 */
static void guresid_like_a_date(void **state)
{
    struct remote_world rw;

    (void)state;
    remote_world_open(&rw, REMOTE_G31);
    rw.fault = REMOTE_FAULT_UNANSWERED;
    rw.fault_in = 2;
    (void)put(&rw, "2025-01-01", body_1, NULL);
    (void)until(&rw, "2025-01-01", HFD_ANSWER_OUTPUT);
    assert_int_equal(rw.posts, 2);
    assert_int_equal(clusters_of(&rw, "2025-01-01"), 1);
    remote_world_close(&rw);
}

/* A settled resource is looked at seldom, and its health followed. */
static void settled_ones_are_watched_for_health(void **state)
{
    struct remote_world rw;
    int requests;

    (void)state;
    remote_world_open(&rw, REMOTE_G3);
    (void)put(&rw, G, body_1, NULL);
    (void)until(&rw, G, HFD_ANSWER_OUTPUT);
    requests = rw.requests;
    test_clock_advance(&rw.w.clock, rw.policy.idle_us / 2);
    assert_int_equal(remote_world_run(&rw), 0);
    remote_report(&rw, remote_find(&rw, "c-one"),
                  &(struct remote_said){"dns", "False", "ZoneLost", NULL});
    test_clock_advance(&rw.w.clock, rw.policy.idle_us);
    (void)remote_world_run(&rw);
    assert_in_range(rw.requests - requests, 1, 5);
    assert_int_equal(get(&rw, G, NULL).answer, HFD_ANSWER_OUTPUT);
    remote_world_close(&rw);
}

/* Operations go before the health of settled resources, however long that has been due. */
static void work_goes_before_health(void **state)
{
    struct remote_world rw;
    struct hfd_remote_request request;

    (void)state;
    remote_world_open(&rw, REMOTE_G3);
    put_many(&rw, 0, 20);
    for (unsigned i = 0; i < 20; i++) {
        char guresid[16];

        (void)snprintf(guresid, sizeof(guresid), "many-%u", i);
        (void)until(&rw, guresid, HFD_ANSWER_OUTPUT);
    }
    test_clock_advance(&rw.w.clock, 10 * rw.policy.idle_us);
    (void)put(&rw, G, body_1, NULL);
    assert_true(remote_world_first(&rw, &request));
    assert_contains(request.path, "res-1");
    remote_world_close(&rw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(life_on_each_generation),
        cmocka_unit_test(every_fault_in_a_life),
        cmocka_unit_test(deletion_between_any_two_steps),
        cmocka_unit_test(retarget_between_any_two_steps),
        cmocka_unit_test(adopts_without_patching),
        cmocka_unit_test(skips_deleted_twins),
        cmocka_unit_test(leaves_the_resources_of_others),
        cmocka_unit_test(names_who_has_the_name),
        cmocka_unit_test(nodepools_follow_another_name),
        cmocka_unit_test(ours_under_another_name),
        cmocka_unit_test(creation_that_arrives_late),
        cmocka_unit_test(tells_what_is_refused),
        cmocka_unit_test(old_ones_cannot_delete),
        cmocka_unit_test(delete_pollers_get_the_refusal),
        cmocka_unit_test(old_ones_cannot_change_nodepools),
        cmocka_unit_test(refused_credentials),
        cmocka_unit_test(down_past_the_deadline),
        cmocka_unit_test(failed_stays_failed),
        cmocka_unit_test(gone_behind_our_back),
        cmocka_unit_test(deleted_behind_our_back),
        cmocka_unit_test(marks_of_nodepools_are_kept),
        cmocka_unit_test(found_again_by_cookie),
        cmocka_unit_test(nothing_found_by_cookie),
        cmocka_unit_test(cookies_of_others),
        cmocka_unit_test(nodepool_resources),
        cmocka_unit_test(nodepool_found_again),
        cmocka_unit_test(outputs_are_complete_at_once),
        cmocka_unit_test(gone_nodepools_hide_no_fault),
        cmocka_unit_test(gone_nodepools_hide_no_other),
        cmocka_unit_test(many_are_watched_together),
        cmocka_unit_test(many_fall_into_step),
        cmocka_unit_test(many_wait_for_one_that_is_down),
        cmocka_unit_test(asking_hurries),
        cmocka_unit_test(guresid_like_a_date),
        cmocka_unit_test(settled_ones_are_watched_for_health),
        cmocka_unit_test(work_goes_before_health),
    };

    tier_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
