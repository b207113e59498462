/* A remote HyperFleet: driver resources against a played one of each wire generation, with every fault at every request. */
#include "driver/backend/upstream_int.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tests/lib/remote_world.h"

#define G "res-1"
#define ROUNDS_MAX 400

static const char body_1[] = "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{\"cluster\":{\"name\":\"c-one\",\"spec\":{\"region\":\"eu-1\"}},"
                             "\"nodepools\":[{\"name\":\"np-a\",\"spec\":{\"replicas\":1}}]}}}";
static const char body_2[] = "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{\"cluster\":{\"name\":\"c-one\",\"spec\":{\"region\":\"eu-2\"}},"
                             "\"nodepools\":[{\"name\":\"np-b\",\"spec\":{\"replicas\":1}}]}}}";
/* ---- asking ---- */

static struct hfd_answer_doc put(struct remote_world *rw, const char *guresid, const char *body, const char *cookie)
{
    struct hfd_answer_doc doc;

    if (world_put(&rw->w, guresid, body, cookie, &doc) != HFD_OK)
        fail_msg("PUT: %s", rw->w.err.msg);
    return doc;
}

static struct hfd_answer_doc get(struct remote_world *rw, const char *guresid, const char *cookie)
{
    struct hfd_answer_doc doc;

    if (world_get(&rw->w, guresid, cookie, &doc) != HFD_OK)
        fail_msg("GET: %s", rw->w.err.msg);
    return doc;
}

static struct hfd_answer_doc delete(struct remote_world *rw, const char *guresid, const char *cookie)
{
    struct hfd_answer_doc doc;

    if (world_delete(&rw->w, guresid, cookie, &doc) != HFD_OK)
        fail_msg("DELETE: %s", rw->w.err.msg);
    return doc;
}

/* Time goes by, adapters do their work, until the answer is that. */
static struct hfd_answer_doc until(struct remote_world *rw, const char *guresid, enum hfd_answer answer)
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
        const char *label = json_string_value(json_object_get(json_object_get(r, "labels"), HFD_GURESID_LABEL));

        n += label != NULL && strcmp(label, guresid) == 0 && json_object_get(r, "deleted_time") == NULL &&
             strcmp(json_string_value(json_object_get(r, "kind")), "Cluster") == 0;
    }
    return n;
}

static const char *region(struct remote_world *rw, const char *name)
{
    return json_string_value(json_object_get(json_object_get(remote_find(rw, name), "spec"), "region"));
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
    assert_int_equal(delete(rw, G, NULL).answer, HFD_ANSWER_HINT);
    (void)until(rw, G, HFD_ANSWER_ABSENT);
    assert_int_equal(json_array_size(rw->resources), 0);
    assert_int_equal(world_count(&rw->w, HFD_KIND_CLUSTER), 0);
    assert_int_equal(world_count(&rw->w, HFD_KIND_NODEPOOL), 0);
}

/* Every generation that can delete is driven through a whole life, with as few writes as there are wishes. */
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
static void life_with_each_fault(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(life_on_each_generation),
        cmocka_unit_test(life_with_each_fault),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
