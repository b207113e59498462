/*
 * Each allocation fails in turn in the passes of the remote: in choosing a request, and in taking
 * its answer. A whole life against a played HyperFleet comes to the same end, with one cluster.
 * Orphans are found and deleted. Clusters that were made before the store was lost are found again.
 * None of many that are observed together is forgotten.
 *
 *   test_passes             a share of the allocations, another one with each --seed
 *   test_passes --stride N  one allocation in N, on average; 1 = every one
 */
#include "driver/backend/remote/orphans.h"
#include "driver/backend/remote/wire.h"
#include "driver/backend/remote/work.h"
#include "driver/core/cookie.h"
#include "tests/fault/options.h"
#include "tests/fault/wrap_memory.h"
#include "tests/lib/contains.h"
#include "tests/lib/faultmem.h"
#include "tests/lib/remote_world.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/backend/remote/http.h"
#include "driver/base/log.h"
#include "store/rows_fleet.h"

#define STRIDE 96
#define ROUNDS_MAX 400
#define G "res-1"
#define MANY 8 /* so many are looked at together */

static struct fault_options options;

/* The step that is short of memory, and the allocation in it. */
static struct {
    unsigned step, nth;
    unsigned at; /* steps so far */
    bool reached, fired;
} plan;

static void before_step(struct remote_world *rw)
{
    (void)rw;
    if (++plan.at == plan.step) {
        plan.reached = true;
        faultmem_arm(plan.nth, false);
    }
}

static void after_step(struct remote_world *rw)
{
    (void)rw;
    if (plan.at == plan.step && faultmem_disarm() != 0)
        plan.fired = true;
}

/* A list is never read without a search: it would read the resources of all clients. */
static void check_request(struct remote_world *rw, const struct hfd_remote_request *request)
{
    const hfd_slice path = request->path;

    (void)rw;
    if (slice_has(path, "?page=") && !slice_has(path, "/statuses?") && !slice_has(path, "&search="))
        fail_msg("step %u, allocation %u: asked for %.*s", plan.step, plan.nth,
                 HFD_SLICE_FMT(path));
}

static void until(struct remote_world *rw, enum hfd_answer answer)
{
    struct hfd_answer_doc doc;

    for (int i = 0; i < ROUNDS_MAX; i++) {
        (void)remote_world_run(rw);
        assert_int_equal(world_get(&rw->w, G, NULL, &doc), HFD_OK);
        if (doc.answer == answer)
            return;
        if (doc.answer == HFD_ANSWER_FAILED)
            fail_msg("step %u, allocation %u: %.*s", plan.step, plan.nth,
                     HFD_SLICE_FMT(doc.message));
        remote_succeed_all(rw);
        remote_world_wait(rw, 60 * HFD_US_PER_S);
    }
    fail_msg("step %u, allocation %u: still answered %d", plan.step, plan.nth, (int)doc.answer);
}

static void live(void)
{
    static const char body[] = "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{"
                               "\"cluster\":{\"name\":\"one\",\"spec\":{\"v\":1}},"
                               "\"nodepools\":[{\"name\":\"np-1\"}]}}}";
    static const char other[] = "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":"
                                "{\"cluster\":{\"name\":\"one\",\"spec\":{\"v\":2}}}}}";
    struct hfd_answer_doc doc;
    struct remote_world rw;

    remote_world_open(&rw, REMOTE_G31);
    rw.before_step = before_step;
    rw.after_step = after_step;
    rw.between = check_request;
    assert_int_equal(world_put(&rw.w, G, body, NULL, &doc), HFD_OK);
    until(&rw, HFD_ANSWER_OUTPUT);
    assert_int_equal(world_put(&rw.w, G, other, NULL, &doc), HFD_OK);
    until(&rw, HFD_ANSWER_OUTPUT);
    assert_int_equal(remote_count(&rw, "Cluster"), 1);
    assert_int_equal(remote_count(&rw, "NodePool"), 0);
    assert_int_equal(rw.posts, 2);
    assert_int_equal(world_delete(&rw.w, G, NULL, &doc), HFD_OK);
    until(&rw, HFD_ANSWER_ABSENT);
    assert_int_equal(json_array_size(rw.resources), 0);
    remote_world_close(&rw);
}

static hfd_rc txn_search(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct remote_world *rw = arg;

    return hfd_remote_hurry(tx, HFD_REMOTE_ORPHANS, rw->w.clock.wall_us - HFD_US_PER_S,
                            rw->w.clock.wall_us, err);
}

static hfd_rc txn_remove(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct remote_world *rw = arg;
    const hfd_slice id =
        hfd_slice_of(json_string_value(json_object_get(remote_find(rw, "lost"), "id")));
    const struct hfd_fleet_call call = {.now_us = rw->w.clock.wall_us, .mem = &rw->w.mem};
    struct hfd_orphan_row row;

    return hfd_remote_orphan_remove(tx, &call, id, &row, err);
}

static void lose_and_remove(void)
{
    struct remote_world rw;
    hfd_rc rc = HFD_NOT_FOUND;

    remote_world_open(&rw, REMOTE_G31);
    (void)remote_add(&rw, NULL, "lost",
                     "{\"" HFD_GURESID_LABEL "\":\"" G "\",\"" HFD_OWNER_LABEL "\":\"" REMOTE_OWNER
                     "\"}");
    rw.before_step = before_step;
    rw.after_step = after_step;
    rw.between = check_request;
    assert_int_equal(hfd_store_update_wait(rw.w.store, txn_search, &rw, &rw.w.err), HFD_OK);
    for (int i = 0; rc == HFD_NOT_FOUND && i < ROUNDS_MAX; i++) {
        remote_world_wait(&rw, HFD_US_PER_S);
        (void)remote_world_run(&rw);
        rc = hfd_store_update_wait(rw.w.store, txn_remove, &rw, &rw.w.err);
    }
    assert_int_equal(rc, HFD_OK);
    for (int i = 0; remote_count(&rw, "Cluster") > 0 && i < ROUNDS_MAX; i++) {
        (void)remote_world_run(&rw);
        remote_succeed_all(&rw);
        remote_world_wait(&rw, 60 * HFD_US_PER_S);
    }
    assert_int_equal(remote_count(&rw, "Cluster"), 0);
    remote_world_close(&rw);
}

/* The store is lost: a cookie, or the order alone, finds in HyperFleet what was made before. */
static void find_again(bool by_cookie)
{
    static const char body[] = "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{"
                               "\"cluster\":{\"name\":\"one\",\"spec\":{\"v\":1}},"
                               "\"nodepools\":[{\"name\":\"np-1\"}]}}}";
    struct hfd_answer_doc doc;
    struct remote_world rw;
    char cookie[HFD_COOKIE_MAX + 1];

    remote_world_open(&rw, REMOTE_G31);
    assert_int_equal(world_put(&rw.w, G, body, NULL, &doc), HFD_OK);
    (void)snprintf(cookie, sizeof(cookie), "%.*s", HFD_SLICE_FMT(doc.cookie));
    until(&rw, HFD_ANSWER_OUTPUT);
    world_lose(&rw.w);
    rw.before_step = before_step;
    rw.after_step = after_step;
    if (by_cookie)
        assert_int_equal(world_get(&rw.w, G, cookie, &doc), HFD_OK);
    else
        assert_int_equal(world_put(&rw.w, G, body, NULL, &doc), HFD_OK);
    until(&rw, HFD_ANSWER_OUTPUT);
    assert_int_equal(remote_count(&rw, "Cluster"), 1);
    assert_int_equal(remote_count(&rw, "NodePool"), 1);
    assert_int_equal(rw.posts, 2);
    remote_world_close(&rw);
}

static void find_by_cookie(void)
{
    find_again(true);
}

static void find_by_order(void)
{
    find_again(false);
}

static enum hfd_answer answer_of(struct remote_world *rw, int i)
{
    struct hfd_answer_doc doc;
    char guresid[16];

    (void)snprintf(guresid, sizeof(guresid), "many-%d", i);
    assert_int_equal(world_get(&rw->w, guresid, NULL, &doc), HFD_OK);
    return doc.answer;
}

static void order_many(struct remote_world *rw)
{
    char guresid[16], body[160];
    struct hfd_answer_doc doc;

    for (int i = 0; i < MANY; i++) {
        (void)snprintf(guresid, sizeof(guresid), "many-%d", i);
        (void)snprintf(body, sizeof(body),
                       "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{\"cluster\":{"
                       "\"name\":\"m-%d\"}}}}",
                       i);
        assert_int_equal(world_put(&rw->w, guresid, body, NULL, &doc), HFD_OK);
    }
    (void)remote_world_run(rw);
    assert_int_equal(rw->posts, MANY);
}

/* But for the one that went. */
static bool all_ready(struct remote_world *rw)
{
    for (int i = 0; i < MANY; i++)
        if (i != 2 && answer_of(rw, i) != HFD_ANSWER_OUTPUT)
            return false;
    return true;
}

/* One of them gets ready, and one goes, while all are looked at by one list. */
static void look_at_many(void)
{
    struct remote_world rw;
    bool told = false;

    remote_world_open(&rw, REMOTE_G31);
    order_many(&rw);
    remote_report(&rw, remote_find(&rw, "m-1"),
                  &(struct remote_said){"validation", "True", "Done", NULL});
    remote_report(&rw, remote_find(&rw, "m-1"), &(struct remote_said){"dns", "True", "Done", NULL});
    remote_remove(&rw, remote_find(&rw, "m-2"));
    rw.before_step = before_step;
    rw.after_step = after_step;
    for (int i = 0; !told && i < ROUNDS_MAX; i++) {
        test_clock_advance(&rw.w.clock, rw.policy.watch_us);
        (void)remote_world_run(&rw);
        told = answer_of(&rw, 1) == HFD_ANSWER_OUTPUT && answer_of(&rw, 2) == HFD_ANSWER_FAILED;
        assert_int_equal(answer_of(&rw, 0), HFD_ANSWER_HINT);
    }
    assert_true(told);
    remote_succeed_all(&rw);
    for (int i = 0; i < ROUNDS_MAX && !all_ready(&rw); i++) {
        remote_world_wait(&rw, 60 * HFD_US_PER_S);
        (void)remote_world_run(&rw);
    }
    assert_true(all_ready(&rw));
    remote_world_close(&rw);
}

/* If any step is short of memory, the next pass goes on where it was. */
static void run_out_of_memory(void (*play)(void), unsigned steps)
{
    const unsigned stride = options.stride;

    plan.step = 0;
    do {
        plan.step++;
        plan.nth = 1 + (unsigned)((options.seed + plan.step) % stride);
        do {
            plan.at = 0;
            plan.reached = plan.fired = false;
            play();
            plan.nth += stride;
        } while (plan.fired);
    } while (plan.reached);
    assert_true(plan.step > steps);
}

static void passes_run_out_of_memory(void **state)
{
    (void)state;
    run_out_of_memory(live, 30);
}

static void orphans_run_out_of_memory(void **state)
{
    (void)state;
    run_out_of_memory(lose_and_remove, 8);
}

/*
 * A problem document that cannot be read for lack of memory is not taken for none. The meaning of a
 * 404 or 409 depends on it.
 */
static void problem_runs_out_of_memory(void **state)
{
    const hfd_slice body =
        HFD_SLICE("{\"code\":\"HYPERFLEET-NTF-000\",\"detail\":\"no such route\","
                  "\"errors\":[{\"field\":\"spec\",\"message\":\"too big\"}]}");
    unsigned failed = 0;
    bool fired;

    (void)state;
    do {
        struct hfd_wire_problem problem;
        struct hfd_arena mem;
        hfd_rc rc;

        hfd_arena_init(&mem, (size_t)64 * 1024);
        faultmem_arm(++failed, false);
        rc = hfd_wire_problem_read(body, &mem, &problem, NULL);
        fired = faultmem_disarm() != 0;
        assert_int_equal(rc, fired ? HFD_NOMEM : HFD_OK);
        assert_int_equal(problem.no_route, !fired);
        assert_string_equal(problem.words.len > 0 ? problem.words.p : "",
                            fired ? "" : "no such route; spec: too big");
        hfd_arena_fini(&mem);
    } while (fired);
    assert_true(failed > 5);
}

static void finds_run_out_of_memory(void **state)
{
    (void)state;
    run_out_of_memory(find_by_cookie, 4);
    run_out_of_memory(find_by_order, 4);
}

static void many_run_out_of_memory(void **state)
{
    (void)state;
    run_out_of_memory(look_at_many, 8);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_run_out_of_memory),   cmocka_unit_test(orphans_run_out_of_memory),
        cmocka_unit_test(finds_run_out_of_memory),    cmocka_unit_test(many_run_out_of_memory),
        cmocka_unit_test(problem_runs_out_of_memory),
    };

    wrap_memory_install();
    fault_options_parse(&options, argc, argv, STRIDE);
    hfd_log_set_fd(open("/dev/null", O_WRONLY | O_CLOEXEC));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
