/*
 * The HyperShift adapter, simulated from one seed. Driver, HyperFleet, store and adapter are real;
 * hypershift_kube plays the API server and HyperShift. As sim.h, but smaller: two cluster resources
 * on one management cluster.
 *
 * - orchestrator: PUT of four inputs and DELETE, also beside the requests of the adapter
 * - API server: a request or its answer is lost, or it is refused (401, 403, 409, 429, 5xx).
 *   Streams of watches end. Their events come at any time
 * - program: dies before a request or after one whose answer it has not taken; restarts
 * - HyperShift: goes on, falls back, raises generations by itself
 * - strangers: objects are deleted by hand; a HostedCluster has our name and is not ours
 *
 * Safety:
 * - K1: There is at most one HostedCluster of ours for a GUResID.
 * - K2: An object of a stranger is neither applied to nor deleted.
 * - K3: Only what HyperFleet wants now is applied, and only what it does not want is deleted.
 * - K4: A HostedCluster is deleted when none of its NodePools is left.
 * - K5: A resource becomes ready with its objects at the generation of HyperFleet, and Available.
 * - K6: The progress of a cluster or nodepool does not fall within a generation.
 * - K7: 204 on DELETE leaves none of our objects.
 *
 * Liveness, faults off and the stranger's object removed:
 * - K8: Within four hours all wanted resources are ready, and all others are gone.
 *
 * Breakages that were tried, and the rule that objected:
 * - K2: objects without our label taken for ours
 * - K3: no look at HyperFleet before an apply; a NodePool deleted by the old one of its name
 * - K4: a HostedCluster deleted beside its NodePools
 * - K5: ready whatever the conditions say
 * - K6: the percent of the present gate reported as it is
 * - K7: Secrets that stay
 *
 * usage: hypershift_sim [--first N] [--count N] [--seed N]
 */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "driver/adapters/hypershift/fleet.h"
#include "driver/adapters/hypershift/hypershift.h"
#include "driver/adapters/hypershift/order.h"
#include "driver/adapters/hypershift/state.h"
#include "driver/base/check.h"
#include "driver/base/log.h"
#include "schemas/documents.h"
#include "store/rows_report.h"
#include "tests/fault/hypershift_kube.h"
#include "tests/lib/world.h"

#define WHO 2
#define BODIES 4
#define BAD 3 /* the API server refuses it */
#define STEPS 120
#define TWICE 5
#define ENOUGH 100
#define SEEN 128

#define POOL(name, n)                                                                              \
    "{\"name\":\"" name "\",\"spec\":{\"replicas\":" n                                             \
    ",\"platform\":{\"kubevirt\":{\"compute\":{\"cores\":2}}}}}"
#define BODY(name, image, pools)                                                                   \
    "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"secrets\":{\"pull_secret\":\"{\\\"auths\\\":"  \
    "{}}\"},\"values\":{\"cluster\":{\"name\":\"" name                                             \
    "\",\"spec\":{\"release\":{\"image\":\"" image "\"},\"platform\":{\"type\":\"KubeVirt\","      \
    "\"kubevirt\":{\"baseDomainPassthrough\":true}}}},\"nodepools\":[" pools "]}}}"
#define BODIES_OF(name)                                                                            \
    {                                                                                              \
        BODY(name, "one", POOL("np-a", "1")),                                                      \
            BODY(name, "one", POOL("np-a", "3") "," POOL("np-b", "1")), BODY(name, "two", ""),     \
            BODY(name, "bad", POOL("np-a", "1"))                                                   \
    }

static const char *const ids[WHO] = {"hs-0", "hs-1"};
static const char *const names[WHO] = {"c-zero", "c-one"};
static const char *const bodies[WHO][BODIES] = {BODIES_OF("c-zero"), BODIES_OF("c-one")};
static const size_t pools_of[BODIES] = {1, 2, 0, 1};
static const hfd_slice adapters[] = {HFD_SLICE(HFD_HS_VALIDATION), HFD_SLICE(HFD_HS_ADAPTER)};

/* The progress of a cluster or nodepool at a generation. */
struct progress {
    char id[HFD_HS_ID_MAX + 1];
    int64_t generation;
    json_int_t percent;
};

struct run {
    struct world w;
    struct test_rng plan, random;
    struct hfd_hs_checker checker;
    struct hfd_adapter_hooks hooks;
    struct hfd_kube_access access;
    struct hfd_hs_fleet_store rows;
    struct hfd_hs_fleet fleet;
    struct hfd_hypershift *adapter;
    uint64_t seed;
    unsigned step;
    bool calm, verbose;
    int wanted[WHO], state[WHO];
    unsigned trouble; /* share of 256 */
    struct progress seen[SEEN];
    size_t seen_count;
};

static const char *program;
static char again[512];
static unsigned ready_seen, gone_seen, failed_seen, falls_seen;

static void fail(const struct run *r, const char *rule, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), noreturn));
static void fail(const struct run *r, const char *rule, const char *fmt, ...)
{
    va_list args;

    (void)fprintf(stderr, "seed %llu, step %u%s: rule %s: ", (unsigned long long)r->seed, r->step,
                  r->calm ? ", calm" : "", rule);
    va_start(args, fmt);
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
    (void)fprintf(stderr, "\n%s", again);
    exit(1);
}

static void on_kube_fail(void *ctx, const char *rule, const char *what, const char *name)
{
    fail(ctx, rule, "%s: %s", name, what);
}

static unsigned below(struct run *r, unsigned bound)
{
    return (unsigned)test_rng_below(&r->plan, bound);
}

static void note(const struct run *r, const char *what, int who, int value)
{
    if (r->verbose)
        (void)printf("%3u %8.0f %s %s %d\n", r->step,
                     (double)(r->w.clock.wall_us - TEST_TIME_US) / (double)HFD_US_PER_S, what,
                     who >= 0 ? ids[who] : "", value);
}

/* ---- what HyperFleet wants ---- */

struct wanted {
    hfd_slice id;
    bool found;
    struct hfd_fleet_row row;
    struct hfd_arena *mem;
};

static hfd_rc read_wanted(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct wanted *want = arg;
    const hfd_rc rc = hfd_fleet_row_get(tx, want->id, want->mem, &want->row, err);

    want->found = rc == HFD_OK;
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

static bool look_up(struct run *r, hfd_slice id, struct hfd_fleet_row *row)
{
    struct wanted want = {.id = id, .mem = &r->w.mem};

    if (hfd_store_read(r->w.reader, read_wanted, &want, &r->w.err) != HFD_OK)
        fail(r, "read", "%s", r->w.err.msg);
    *row = want.row;
    return want.found;
}

static hfd_slice label_of(const json_t *labels, const char *key)
{
    const json_t *v = json_object_get(labels, key);

    return (hfd_slice){json_string_value(v), json_string_length(v)};
}

/* K3. An apply is of the present generation; a deletion is of what is deleted or not there. */
static bool is_wanted(void *ctx, const json_t *labels, const json_t *doc)
{
    struct run *r = ctx;
    const hfd_slice pool = label_of(labels, HFD_HS_LABEL_NODEPOOL);
    const hfd_slice cluster = label_of(labels, HFD_HS_LABEL_CLUSTER);
    struct hfd_fleet_row row, owner;
    const bool there = look_up(r, pool.len > 0 ? pool : cluster, &row) && row.deleted_us == 0;
    const bool owned = look_up(r, cluster, &owner) && owner.deleted_us == 0;

    if (doc == NULL)
        return !there || !owned;
    return there && owned && hfd_hs_applied_generation(doc) == row.generation;
}

/* ---- the program ---- */

static void start_adapter(struct run *r)
{
    const struct hfd_hypershift_config config = {
        .fleet = &r->fleet,
        .clock = &r->w.clock.clock,
        .rng = &r->random.rng,
        .management = HFD_SLICE(HFD_HS_MANAGEMENT),
        .access = &r->access,
        .checker = &r->checker,
        .timeout_us = 30 * HFD_US_PER_S,
        .pauses = {5 * HFD_US_PER_S, 60 * HFD_US_PER_S},
        .grace_us = 60 * HFD_US_PER_S,
        .resync_us = 600 * HFD_US_PER_S,
    };

    r->rows = (struct hfd_hs_fleet_store){.store = r->w.store, .driver = &r->w.driver};
    r->fleet = (struct hfd_hs_fleet){&hfd_hs_fleet_store_ops, &r->rows};
    kube_sim_reconnect();
    if (hfd_hypershift_new(&config, &r->adapter, &r->w.err) != HFD_OK ||
        r->fleet.ops->open(r->fleet.impl, &r->w.err) != HFD_OK)
        fail(r, "start", "%s", r->w.err.msg);
}

static void end_adapter(struct run *r)
{
    r->fleet.ops->close(r->fleet.impl);
    hfd_hypershift_free(r->adapter);
}

static void restart(struct run *r)
{
    note(r, "restart", -1, 0);
    end_adapter(r);
    world_restart(&r->w);
    start_adapter(r);
}

static hfd_rc admit(void *ctx, const struct hfd_ctx *c, const struct hfd_call *call,
                    const struct hfd_resource_row *was)
{
    const struct run *r = ctx;

    return hfd_hs_admit(&r->checker, c, call, was);
}

static void beside(void *ctx);

static void begin(struct run *r)
{
    world_init(&r->w);
    test_rng_init(&r->w.rng, r->seed);
    test_rng_init(&r->random, r->seed + 1);
    r->checker.defaults = (struct hfd_hs_defaults){.namespace = HFD_SLICE("clusters")};
    if (hfd_schema_hypershift(&r->checker.schemas, &r->w.err) != HFD_OK)
        fail(r, "start", "%s", r->w.err.msg);
    r->hooks = (struct hfd_adapter_hooks){.judge = adapters[0], .ctx = r, .admit = admit};
    r->access.server = HFD_SLICE("https://simulated");
    r->w.driver.hooks = &r->hooks;
    r->w.driver.rules.check_order = hfd_hs_order_check;
    r->w.driver.rules.check_ctx = &r->checker;
    r->w.driver.fleet.builtin = (struct hfd_adapter_names){adapters, 2};
    for (int kind = HFD_KIND_CLUSTER; kind <= HFD_KIND_NODEPOOL; kind++)
        r->w.driver.fleet.required[kind] = r->w.driver.fleet.builtin;
    hfd_driver_complete(&r->w.driver);
    if (world_start(&r->w) != HFD_OK)
        fail(r, "start", "%s", r->w.err.msg);
    kube_sim.plan = &r->plan;
    kube_sim.fail = on_kube_fail;
    kube_sim.wants = is_wanted;
    kube_sim.beside = beside;
    kube_sim.ctx = r;
    kube_sim.objects = json_array();
    kube_sim.events = json_array();
    kube_sim.version = kube_sim.uids = 0;
    kube_sim.trace = UINT64_C(14695981039346656037);
    start_adapter(r);
}

static void end(struct run *r)
{
    end_adapter(r);
    kube_sim_clear();
    hfd_spec_schemas_free(&r->checker.schemas);
    world_close(&r->w);
}

/* ---- rules ---- */

static bool is_available(const json_t *doc, int64_t generation)
{
    const struct hfd_hs_condition c = hfd_hs_condition_of(
        doc, json_object_get(json_object_get(doc, "spec"), "clusterName") != NULL ? "Ready"
                                                                                  : "Available");

    return hfd_hs_applied_generation(doc) == generation && c.found && c.current && c.is_true;
}

/* K5 */
static void check_ready(struct run *r, int who)
{
    const struct hfd_fleet_row *cluster = world_find(&r->w, HFD_KIND_CLUSTER, names[who]);
    const json_t *entry = kube_sim_find("hostedclusters", names[who]);

    ready_seen++;
    if (cluster == NULL || entry == NULL ||
        !is_available(json_object_get(entry, "doc"), cluster->generation))
        fail(r, "K5", "%s became ready, and its HostedCluster is not", ids[who]);
    if (r->wanted[who] >= 0 && kube_sim_ours("nodepools", ids[who]) != pools_of[r->wanted[who]])
        fail(r, "K5", "%s became ready with %zu NodePools", ids[who],
             kube_sim_ours("nodepools", ids[who]));
}

static void check_states(struct run *r)
{
    for (int who = 0; who < WHO; who++) {
        const int state = world_row(&r->w, ids[who]).state;

        if (state == HFD_STATE_READY && r->state[who] != HFD_STATE_READY)
            check_ready(r, who);
        failed_seen += state == HFD_STATE_FAILED && r->state[who] != HFD_STATE_FAILED;
        if (state != r->state[who])
            note(r, "is now", who, state);
        if (state == HFD_STATE_ABSENT)
            r->wanted[who] = -1;
        r->state[who] = state;
    }
}

static void see_progress(struct run *r, const struct hfd_fleet_row *row, const json_t *data)
{
    const json_t *update = json_object_get(data, "update");
    const int64_t generation = update != NULL
                                   ? json_integer_value(json_object_get(update, "generation"))
                                   : row->generation;
    const json_int_t percent =
        json_integer_value(json_object_get(update != NULL ? update : data, "progress"));
    struct progress *p = r->seen;

    while (p < r->seen + r->seen_count &&
           (p->generation != generation || !hfd_slice_is(row->id, p->id)))
        p++;
    if (p == r->seen + SEEN)
        return;
    if (p == r->seen + r->seen_count) {
        r->seen_count++;
        p->generation = generation;
        (void)snprintf(p->id, sizeof(p->id), "%.*s", HFD_SLICE_FMT(row->id));
    }
    if (percent < p->percent)
        fail(r, "K6", "progress of %s at generation %lld fell from %lld to %lld", p->id,
             (long long)generation, (long long)p->percent, (long long)percent);
    p->percent = percent;
}

struct report_of {
    struct hfd_report_key key;
    struct hfd_arena *mem;
    struct hfd_report_row row;
    bool found;
};

static hfd_rc read_report(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct report_of *of = arg;
    const hfd_rc rc = hfd_report_row_get(tx, &of->key, of->mem, &of->row, err);

    of->found = rc == HFD_OK;
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

/* K6. Deletions have no progress. */
static void check_progress(struct run *r, enum hfd_kind kind, const char *name)
{
    const struct hfd_fleet_row *row = world_find(&r->w, kind, name);
    struct report_of of = {.mem = &r->w.mem};
    json_t *data = NULL;

    if (row == NULL || row->deleted_us != 0)
        return;
    of.key = (struct hfd_report_key){row->id, adapters[1]};
    if (hfd_store_read(r->w.reader, read_report, &of, &r->w.err) != HFD_OK)
        fail(r, "read", "%s", r->w.err.msg);
    if (!of.found || of.row.data.len == 0 || hfd_json_parse(of.row.data, &data, NULL) != HFD_OK)
        return;
    if (json_object_get(data, "update") != NULL || of.row.observed_generation == row->generation)
        see_progress(r, row, data);
    json_decref(data);
}

static void check(struct run *r)
{
    const struct hfd_arena_mark mark = hfd_arena_mark(&r->w.mem);

    check_states(r);
    for (int who = 0; who < WHO; who++)
        check_progress(r, HFD_KIND_CLUSTER, names[who]);
    check_progress(r, HFD_KIND_NODEPOOL, "np-a");
    check_progress(r, HFD_KIND_NODEPOOL, "np-b");
    hfd_arena_rewind(&r->w.mem, mark);
}

/* ---- calls ---- */

static void put(struct run *r, int who, int body)
{
    struct hfd_answer_doc doc;

    if (world_put(&r->w, ids[who], bodies[who][body], NULL, &doc) != HFD_OK)
        fail(r, "PUT", "of %s: %s", ids[who], r->w.err.msg);
    note(r, "PUT answered", who, (int)doc.answer);
    if (doc.answer == HFD_ANSWER_OUTPUT || doc.answer == HFD_ANSWER_HINT)
        r->wanted[who] = body;
}

/* K7. @return whether it is gone */
static bool del(struct run *r, int who)
{
    struct hfd_answer_doc doc;

    if (world_delete(&r->w, ids[who], NULL, &doc) != HFD_OK)
        fail(r, "DELETE", "of %s: %s", ids[who], r->w.err.msg);
    note(r, "DELETE answered", who, (int)doc.answer);
    if (doc.answer != HFD_ANSWER_ABSENT)
        return false;
    if (kube_sim_ours("hostedclusters", ids[who]) + kube_sim_ours("nodepools", ids[who]) +
            kube_sim_ours("secrets", ids[who]) >
        0)
        fail(r, "K7", "%s is gone and left objects", ids[who]);
    gone_seen++;
    r->wanted[who] = -1;
    return true;
}

/* A PUT or DELETE while the adapter is at work. */
static void beside(void *ctx)
{
    struct run *r = ctx;
    const int who = (int)below(r, WHO);

    if (r->calm || below(r, 1024) >= r->trouble)
        return;
    if (below(r, 2) != 0)
        put(r, who, (int)below(r, BODIES));
    else
        (void)del(r, who);
}

/* ---- what happens ---- */

static void adapt(struct run *r)
{
    if (!r->calm && kube_sim.die_in == 0 && below(r, 256) < r->trouble / 4)
        kube_sim.die_in = 1 + (int)below(r, 10);
    hfd_hypershift_round(r->adapter);
    check(r);
    if (kube_sim.dead)
        restart(r);
}

static void operate(struct run *r)
{
    const size_t count = json_array_size(kube_sim.objects);
    json_t *entry;
    bool back;

    if (count == 0)
        return;
    entry = json_array_get(kube_sim.objects, below(r, (unsigned)count));
    back = !r->calm && below(r, 512) < r->trouble;
    falls_seen += back;
    kube_sim_operate(entry, back);
}

static void meddle(struct run *r)
{
    const size_t count = json_array_size(kube_sim.objects);
    json_t *entry;

    if (below(r, 512) >= r->trouble)
        return;
    if (kube_sim_find("hostedclusters", names[1]) == NULL && below(r, 4) == 0) {
        kube_sim_stranger(names[1]);
        return;
    }
    entry = count > 0 ? json_array_get(kube_sim.objects, below(r, (unsigned)count)) : NULL;
    if (entry != NULL &&
        strcmp(json_string_value(json_object_get(entry, "plural")), "namespaces") != 0)
        kube_sim_delete(entry);
}

static void step(struct run *r)
{
    const int who = (int)below(r, WHO);

    r->step++;
    test_clock_advance(&r->w.clock,
                       (int64_t)(1 + below(r, below(r, 8) == 0 ? 900 : 8)) * HFD_US_PER_S);
    switch (below(r, 10)) {
    case 0:
        put(r, who,
            r->wanted[who] >= 0 && below(r, 3) != 0 ? r->wanted[who] : (int)below(r, BODIES));
        break;
    case 1:
        if (below(r, 3) == 0)
            (void)del(r, who);
        break;
    case 2:
        meddle(r);
        break;
    case 3:
        if (below(r, 8) == 0)
            restart(r);
        break;
    case 4:
    case 5:
    case 6:
        operate(r);
        break;
    default:
        adapt(r);
        break;
    }
    check(r);
}

/* ---- the calm ---- */

/* Calls once. A PUT of what has failed would begin anew. */
static bool settle(struct run *r, int who, int wanted)
{
    const enum hfd_state state = (enum hfd_state)world_row(&r->w, ids[who]).state;

    if (wanted < 0)
        return del(r, who);
    if (wanted == BAD && r->wanted[who] == BAD && state == HFD_STATE_FAILED)
        return true;
    put(r, who, wanted);
    return wanted != BAD && state == HFD_STATE_READY && r->wanted[who] == wanted &&
           world_row(&r->w, ids[who]).state == HFD_STATE_READY;
}

static void converge(struct run *r, const int wanted[WHO])
{
    const int64_t end_us = r->w.clock.wall_us + 4 * 3600 * HFD_US_PER_S;

    for (bool done = false; !done;) {
        done = true;
        for (int who = 0; who < WHO; who++)
            done = settle(r, who, wanted[who]) && done;
        if (!done && r->w.clock.wall_us > end_us)
            fail(r, "K8", "after four hours of calm: %s, %s",
                 hfd_state_name((enum hfd_state)r->state[0]),
                 hfd_state_name((enum hfd_state)r->state[1]));
        for (size_t i = json_array_size(kube_sim.objects); i-- > 0;)
            if (i < json_array_size(kube_sim.objects))
                kube_sim_operate(json_array_get(kube_sim.objects, i), false);
        test_clock_advance(&r->w.clock, 5 * HFD_US_PER_S);
        adapt(r);
    }
}

static void stranger_leaves(void)
{
    for (size_t i = json_array_size(kube_sim.objects); i-- > 0;) {
        json_t *entry = json_array_get(kube_sim.objects, i);
        const json_t *doc = json_object_get(entry, "doc");

        if (strcmp(json_string_value(json_object_get(entry, "plural")), "hostedclusters") == 0 &&
            hfd_hs_label(doc, HFD_HS_LABEL_MANAGER).len == 0)
            kube_sim_delete(entry);
    }
}

/* @return the trace */
static uint64_t run(uint64_t seed, bool verbose)
{
    static const int none[WHO] = {-1, -1};
    struct run *r = calloc(1, sizeof(*r));
    int wanted[WHO];
    uint64_t trace;

    HFD_ASSERT(r != NULL);
    (void)snprintf(again, sizeof(again), "again: %s --seed %llu\n", program,
                   (unsigned long long)seed);
    r->seed = seed;
    r->verbose = verbose;
    test_rng_init(&r->plan, seed);
    kube_sim.faults = below(r, 4) == 0 ? 0 : 32 + below(r, 200);
    r->trouble = below(r, 2) == 0 ? 0 : below(r, 256);
    r->wanted[0] = r->wanted[1] = -1;
    r->state[0] = r->state[1] = HFD_STATE_ABSENT;
    begin(r);
    for (int i = 0; i < STEPS; i++)
        step(r);
    r->calm = true;
    kube_sim.faults = 0;
    stranger_leaves();
    restart(r);
    for (int who = 0; who < WHO; who++)
        wanted[who] = (int)below(r, BODIES + 1) - 1;
    converge(r, wanted);
    converge(r, none);
    trace = kube_sim.trace;
    end(r);
    free(r);
    return trace;
}

static uint64_t number(const char *digits)
{
    struct hfd_err err;
    int64_t v;

    if (hfd_parse_i64(hfd_slice_of(digits), 0, INT64_MAX / 2, &v, &err) != HFD_OK) {
        (void)fprintf(stderr, "hypershift_sim: %s\n", err.msg);
        exit(2);
    }
    return (uint64_t)v;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"first", required_argument, NULL, 'f'},
        {"count", required_argument, NULL, 'n'},
        {"seed", required_argument, NULL, 's'},
        {NULL, 0, NULL, 0},
    };
    uint64_t first = 1, count = 200;
    bool verbose = false;
    int c;

    program = argv[0];
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'f')
            first = number(optarg);
        if (c == 'n')
            count = number(optarg);
        if (c == 's') {
            first = number(optarg);
            count = 1;
            verbose = true;
        }
    }
    hfd_log_set_level((enum hfd_log_level)(HFD_LOG_ERROR + 1)); /* failures are meant here */
    for (uint64_t seed = first; seed < first + count; seed++) {
        const uint64_t trace = run(seed, verbose);

        if (seed < first + TWICE && run(seed, false) != trace) {
            (void)fprintf(stderr, "seed %llu: the second run is another one\n%s",
                          (unsigned long long)seed, again);
            return 1;
        }
    }
    (void)printf("%llu seeds: ready %u times, gone %u, failed %u, fallen back %u; %u requests, "
                 "%u lost, %u refused, %u deaths\n",
                 (unsigned long long)count, ready_seen, gone_seen, failed_seen, falls_seen,
                 kube_sim.requests, kube_sim.lost, kube_sim.refused, kube_sim.deaths);
    return count >= ENOUGH &&
           (ready_seen == 0 || gone_seen == 0 || failed_seen == 0 || falls_seen == 0 ||
            kube_sim.lost == 0 || kube_sim.refused == 0 || kube_sim.deaths == 0);
}
