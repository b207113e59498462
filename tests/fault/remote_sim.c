/*
 * The driver on a remote HyperFleet, simulated from one seed. Core, store and passes are real;
 * tests/lib/remote_world plays HyperFleet. As sim.h, but smaller: two cluster resources, and faults
 * on the way.
 *
 * - orchestrator: PUT of four inputs, GET, DELETE, with its last cookie or none
 * - network: one request of a run is lost, unanswered, cut, garbled, or refused. A refusal is 500,
 *   429, or a gateway's 404. All requests get 401 or 503 for a while.
 * - driver: dies before a request, after one whose answer it has not taken, or long before one is
 *   carried out; restarts
 * - adapters: succeed, fail terminally, are silent; clusters and pools vanish in HyperFleet, or are
 *   brought back from a backup
 *
 * Safety, after every step:
 * - R1: HyperFleet has at most one live cluster of ours for a GUResID, whatever was lost on the
 * way.
 * - R2: A resource becomes ready after HyperFleet was observed with its cluster and exactly its
 *   pools. All are Ready, with the spec of the last accepted PUT.
 * - R3: An answer is that of the resource's state (the tables of driver/core/README.md).
 * - R4: 204 on DELETE leaves nothing of ours in HyperFleet, and nothing comes back.
 * - R5: The cookie stays while its input does.
 *
 * Liveness, faults off:
 * - R6: Within four hours all wanted resources are ready, in HyperFleet as well, and all others are
 *   gone. HyperFleet is empty when all is deleted.
 *
 * Breakages that were tried, all found by R2 within a few seeds:
 * - ready whatever the condition is
 * - ready while a pool that left exists
 * - resources of another server taken for our own
 *
 * usage: remote_sim [--first N] [--count N] [--seed N]
 */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/core/transition.h"
#include "tests/lib/remote_world.h"
#include "store/rows_resource.h"

#define WHO 2
#define BODIES 4
#define STEPS 80
#define COOKIE_MAX 2048

#define POOL(name, v) "{\"name\":\"" name "\",\"spec\":{\"v\":" v "}}"
#define BODY(name, v, pools)                                                                       \
    "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{\"cluster\":{\"name\":\"" name       \
    "\",\"spec\":{\"v\":" v "}},"                                                                  \
    "\"nodepools\":[" pools "]}}}"
#define BODIES_OF(name)                                                                            \
    {                                                                                              \
        BODY(name, "0", POOL("np-a", "0")),                                                        \
            BODY(name, "1", POOL("np-a", "1") "," POOL("np-b", "1")), BODY(name, "2", ""),         \
            BODY(name, "1", POOL("np-a", "1"))                                                     \
    }

static const char *const ids[WHO] = {"far-0", "far-1"};
static const char *const bodies[WHO][BODIES] = {BODIES_OF("c-zero"), BODIES_OF("c-one")};
static const size_t pools_of[BODIES] = {1, 2, 0, 1};
static const int spec_of[BODIES] = {0, 1, 2, 1};

struct run {
    struct remote_world rw;
    struct test_rng plan;
    uint64_t seed;
    unsigned step;
    bool calm, verbose;
    int wanted[WHO]; /* the input of the last PUT that was taken; -1 = none */
    int state[WHO];  /* as last looked at */
    char cookie[WHO][COOKIE_MAX];
    unsigned faults, trouble; /* shares of 256 */
};

static const char *program;
static char again[512];
static bool ended;
static unsigned ready_seen, gone_seen, failed_seen, faults_fired;

static void say_again(void)
{
    if (!ended && write(STDERR_FILENO, again, strlen(again)) < 0)
        return;
}

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
    (void)fputc('\n', stderr);
    exit(1);
}

static unsigned below(struct run *r, unsigned bound)
{
    return (unsigned)test_rng_below(&r->plan, bound);
}

static void note(const struct run *r, const char *what, int who, int value)
{
    if (r->verbose)
        (void)printf("%3u %8.0f %s %s %d\n", r->step,
                     (double)(r->rw.w.clock.wall_us - TEST_TIME_US) / (double)HFD_US_PER_S, what,
                     who >= 0 ? ids[who] : "", value);
}

/* ---- what HyperFleet has ---- */

static const char *text(const json_t *obj, const char *key)
{
    const char *v = json_string_value(json_object_get(obj, key));

    return v != NULL ? v : "";
}

static bool is_ours(const json_t *doc, int who)
{
    const json_t *labels = json_object_get(doc, "labels");

    return strcmp(text(labels, HFD_GURESID_LABEL), ids[who]) == 0 &&
           strcmp(text(labels, HFD_OWNER_LABEL), REMOTE_OWNER) == 0;
}

static bool is_ready(const json_t *doc, int v)
{
    const json_t *first =
        json_array_get(json_object_get(json_object_get(doc, "status"), "conditions"), 0);

    return strcmp(text(first, "status"), "True") == 0 &&
           json_integer_value(json_object_get(json_object_get(doc, "spec"), "v")) == v;
}

struct have {
    size_t clusters, pools, live_clusters, ready_pools, ready_clusters;
};

static struct have look(const struct run *r, int who)
{
    struct have h = {0};
    const json_t *doc;
    size_t i;

    json_array_foreach (r->rw.resources, i, doc) {
        const bool cluster = strcmp(text(doc, "kind"), "Cluster") == 0,
                   live = json_object_get(doc, "deleted_time") == NULL;

        if (!is_ours(doc, who))
            continue;
        h.clusters += cluster;
        h.pools += !cluster;
        h.live_clusters += cluster && live;
        h.ready_clusters +=
            cluster && live && r->wanted[who] >= 0 && is_ready(doc, spec_of[r->wanted[who]]);
        h.ready_pools +=
            !cluster && live && r->wanted[who] >= 0 && is_ready(doc, spec_of[r->wanted[who]]);
    }
    return h;
}

/*
 * R1, R2. looked: HyperFleet has just been asked, so what is concluded is true now; what a PUT
 * finds Ready may have changed since.
 */
static void check(struct run *r, bool looked)
{
    for (int who = 0; who < WHO; who++) {
        const int state = world_row(&r->rw.w, ids[who]).state;
        const struct have h = look(r, who);

        if (h.live_clusters > 1)
            fail(r, "R1", "%s has %zu clusters", ids[who], h.live_clusters);
        if (state == HFD_STATE_READY && r->state[who] != HFD_STATE_READY) {
            ready_seen++;
            if (r->wanted[who] < 0)
                fail(r, "R2", "%s became ready, and nobody ordered it", ids[who]);
            if (looked && (h.ready_clusters != 1 || h.ready_pools != pools_of[r->wanted[who]] ||
                           h.pools != h.ready_pools))
                fail(r, "R2", "%s became ready with %zu ready clusters, and %zu of %zu pools ready",
                     ids[who], h.ready_clusters, h.ready_pools, h.pools);
        }
        if (state == HFD_STATE_ABSENT) /* whatever comes then is another one */
            r->wanted[who] = -1;
        failed_seen += state == HFD_STATE_FAILED && r->state[who] != HFD_STATE_FAILED;
        if (state != r->state[who])
            note(r, "is now", who, state);
        r->state[who] = state;
    }
}

/* ---- calls ---- */

static void check_answer(struct run *r, int who, const struct hfd_answer_doc *doc)
{
    const struct hfd_resource_row row = world_row(&r->rw.w, ids[who]);
    const bool late = r->rw.w.clock.wall_us >= row.op_deadline_us;
    enum hfd_answer want = hfd_life_get((enum hfd_state)row.state, late);

    if (row.state != HFD_STATE_ABSENT && hfd_resource_invariant(&row) != NULL)
        fail(r, "R3", "%s: this does not hold: %s", ids[who], hfd_resource_invariant(&row));

    if (doc->answer == HFD_ANSWER_BUSY) /* of a PUT: only where it stands in the way */
        want = row.state == HFD_STATE_CREATING || row.state == HFD_STATE_DELETING ? HFD_ANSWER_BUSY
                                                                                  : want;
    if (doc->answer != want)
        fail(r, "R3", "%s is %s and answered %d", ids[who],
             hfd_state_name((enum hfd_state)row.state), doc->answer);
}

static void put(struct run *r, int who, int body)
{
    const bool with = r->calm || below(r, 3) != 0;
    struct hfd_answer_doc doc;
    const hfd_rc rc =
        world_put(&r->rw.w, ids[who], bodies[who][body], with ? r->cookie[who] : NULL, &doc);

    if (rc != HFD_OK)
        fail(r, "R3", "PUT of %s: %s", ids[who], r->rw.w.err.msg);
    note(r, "PUT", who, body);
    note(r, "PUT answered", who, (int)doc.answer);
    if (doc.answer == HFD_ANSWER_OUTPUT || doc.answer == HFD_ANSWER_HINT) {
        if (r->wanted[who] == body && r->cookie[who][0] != '\0' &&
            r->state[who] != HFD_STATE_FAILED && r->state[who] != HFD_STATE_ABSENT &&
            !hfd_slice_is(doc.cookie, r->cookie[who]))
            fail(r, "R5", "the cookie of %s changed, and its input did not", ids[who]);
        r->wanted[who] = body;
    }
    if (doc.answer == HFD_ANSWER_OUTPUT && look(r, who).pools > pools_of[body])
        fail(r, "R2", "PUT of %s is 200, and HyperFleet has pools that it does not want", ids[who]);
    check_answer(r, who, &doc);
    if (doc.has_cookie)
        (void)snprintf(r->cookie[who], COOKIE_MAX, "%.*s", HFD_SLICE_FMT(doc.cookie));
}

static void get(struct run *r, int who)
{
    struct hfd_answer_doc doc;

    if (world_get(&r->rw.w, ids[who], below(r, 2) != 0 ? r->cookie[who] : NULL, &doc) != HFD_OK)
        fail(r, "R3", "GET of %s: %s", ids[who], r->rw.w.err.msg);
    note(r, "GET answered", who, (int)doc.answer);
    check_answer(r, who, &doc);
}

/* @return whether it is gone */
static bool del(struct run *r, int who)
{
    struct hfd_answer_doc doc;
    struct have h;

    if (world_delete(&r->rw.w, ids[who], r->calm || below(r, 2) != 0 ? r->cookie[who] : NULL,
                     &doc) != HFD_OK)
        fail(r, "R3", "DELETE of %s: %s", ids[who], r->rw.w.err.msg);
    note(r, "DELETE answered", who, (int)doc.answer);
    check_answer(r, who, &doc);
    if (doc.answer != HFD_ANSWER_ABSENT)
        return false;
    h = look(r, who);
    if (h.clusters + h.pools != 0)
        fail(r, "R4", "%s is gone and left %zu clusters and %zu pools", ids[who], h.clusters,
             h.pools);
    gone_seen++;
    r->cookie[who][0] = '\0'; /* as the empty header says */
    r->wanted[who] = -1;
    return true;
}

/* ---- what happens ---- */

static void remote(struct run *r)
{
    r->rw.fault_in = 0;
    r->rw.fired = false;
    if (!r->calm && below(r, 256) < r->faults) {
        r->rw.fault = (enum remote_fault)(1 + below(r, REMOTE_FAULTS - 1));
        r->rw.fault_in = 1 + (int)below(r, 5);
        note(r, "fault", -1, (int)r->rw.fault);
    }
    if (below(r, 16) == 0 && !r->calm && r->trouble > 0)
        r->rw.refuse_status = r->rw.refuse_status != 0 ? 0 : below(r, 2) != 0 ? 503 : 401;
    (void)remote_world_run(&r->rw);
    faults_fired += r->rw.fired;
}

static void hyperfleet(struct run *r)
{
    const size_t count = json_array_size(r->rw.resources);
    json_t *doc = count > 0 ? json_array_get(r->rw.resources, below(r, (unsigned)count)) : NULL;

    if (doc == NULL)
        return;
    switch (below(r, 8)) {
    case 0:
        if (below(r, 256) < r->trouble) {
            note(r, text(doc, "kind"), -1, 0);
            remote_remove(&r->rw, doc);
        }
        break;
    case 1:
        if (below(r, 256) < r->trouble)
            remote_report(
                &r->rw, doc,
                &(struct remote_said){"validation", "False", "InvalidConfiguration", NULL});
        break;
    case 2:
    case 3:
        remote_succeed_all(&r->rw);
        break;
    case 4:
        if (json_object_get(doc, "deleted_time") == NULL && below(r, 256) < r->trouble) {
            note(r, "backup", -1, 0);
            remote_restore(&r->rw, doc);
        }
        break;
    default:
        remote_report(
            &r->rw, doc,
            &(struct remote_said){below(r, 2) != 0 ? "validation" : "dns", "True", "Done", NULL});
        break;
    }
}

static void step(struct run *r)
{
    const int who = (int)below(r, WHO);

    r->step++;
    test_clock_advance(&r->rw.w.clock,
                       (int64_t)below(r, below(r, 8) == 0 ? 900 : 10) * HFD_US_PER_S);
    switch (below(r, 9)) {
    case 0:
    case 1:
        put(r, who,
            r->wanted[who] >= 0 && below(r, 3) != 0 ? r->wanted[who] : (int)below(r, BODIES));
        break;
    case 2:
        get(r, who);
        break;
    case 3:
        if (below(r, 3) == 0)
            (void)del(r, who);
        break;
    case 4:
        if (below(r, 4) == 0)
            world_restart(&r->rw.w);
        break;
    case 5:
    case 6:
        hyperfleet(r);
        break;
    default:
        remote(r);
        check(r, true);
        break;
    }
    check(r, false);
}

static bool is_done(struct run *r, int who, int wanted)
{
    const struct have h = look(r, who);

    return world_row(&r->rw.w, ids[who]).state == HFD_STATE_READY && r->wanted[who] == wanted &&
           h.ready_clusters == 1 && h.ready_pools == pools_of[wanted] && h.pools == h.ready_pools;
}

static void converge(struct run *r, const int wanted[WHO])
{
    const int64_t end_us = r->rw.w.clock.wall_us + 4 * 3600 * HFD_US_PER_S;

    for (bool done = false; !done;) {
        done = true;
        for (int who = 0; who < WHO; who++) {
            if (wanted[who] >= 0)
                put(r, who, wanted[who]);
            if (wanted[who] >= 0)
                done = is_done(r, who, wanted[who]) && done;
            else
                done = del(r, who) && done;
        }
        check(r, false);
        if (!done && r->rw.w.clock.wall_us > end_us)
            fail(r, "R6", "after four hours of calm: %s, %s",
                 hfd_state_name((enum hfd_state)r->state[0]),
                 hfd_state_name((enum hfd_state)r->state[1]));
        remote(r);
        check(r, true);
        remote_succeed_all(&r->rw);
        test_clock_advance(&r->rw.w.clock, 20 * HFD_US_PER_S);
    }
}

static void run(uint64_t seed, bool verbose)
{
    static const int none[WHO] = {-1, -1};
    struct run *r = calloc(1, sizeof(*r));
    int wanted[WHO];

    HFD_ASSERT(r != NULL);
    (void)snprintf(again, sizeof(again), "again: %s --seed %llu\n", program,
                   (unsigned long long)seed);
    r->seed = seed;
    r->verbose = verbose;
    test_rng_init(&r->plan, seed);
    remote_world_open(&r->rw, below(r, 2) != 0 ? REMOTE_G3 : REMOTE_G31);
    hfd_log_set_level((enum hfd_log_level)(HFD_LOG_ERROR + 1)); /* failures are meant here */
    test_rng_init(&r->rw.w.rng, seed);
    r->faults = below(r, 4) == 0 ? 0 : 32 + below(r, 200);
    r->trouble = below(r, 2) == 0 ? 0 : below(r, 256);
    r->wanted[0] = r->wanted[1] = -1;
    for (int i = 0; i < STEPS; i++)
        step(r);
    r->calm = true;
    r->rw.refuse_status = 0;
    for (int who = 0; who < WHO; who++)
        wanted[who] = (int)below(r, BODIES + 1) - 1;
    converge(r, wanted);
    converge(r, none);
    if (json_array_size(r->rw.resources) != 0)
        fail(r, "R6", "all is deleted, and HyperFleet has %zu resources",
             json_array_size(r->rw.resources));
    remote_world_close(&r->rw);
    free(r);
}

static int64_t number(const char *digits)
{
    struct hfd_err err;
    int64_t v;

    if (hfd_parse_i64(hfd_slice_of(digits), 0, INT64_MAX / 2, &v, &err) != HFD_OK) {
        (void)fprintf(stderr, "remote_sim: %s\n", err.msg);
        ended = true;
        exit(2);
    }
    return v;
}

int main(int argc, char **argv)
{
    static const struct option names[] = {
        {"first", required_argument, NULL, 'f'},
        {"count", required_argument, NULL, 'n'},
        {"seed", required_argument, NULL, 's'},
        {NULL, 0, NULL, 0},
    };
    int64_t first = 1, count = 200;
    bool verbose = false;
    int c;

    program = argv[0];
    (void)atexit(say_again); /* the played HyperFleet fails by exit */
    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
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
    for (int64_t seed = first; seed < first + count; seed++)
        run((uint64_t)seed, verbose);
    ended = true;
    (void)printf("%lld seeds: ready %u times, gone %u, failed %u; %u faults\n", (long long)count,
                 ready_seen, gone_seen, failed_seen, faults_fired);
    return count >= 100 &&
           (ready_seen == 0 || gone_seen == 0 || failed_seen == 0 || faults_fired == 0);
}
