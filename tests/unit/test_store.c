/*
 * The executors of store/store.c: what is answered, when, in which order, and what is on disk then.
 */
#include "store/store.h"

#include "driver/base/metrics.h"
#include "store/rows_fleet.h"
#include "store/rows_resource.h"
#include "store/search.h"
#include "store/sqlite/folder.h"
#include "store/txn.h"
#include "store/unit.h"
#include "tests/lib/contains.h"
#include "tests/lib/place.h"
#include "tests/lib/tmpdir.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    char base[TMPDIR_MAX];
    char dir[TMPDIR_MAX + 8]; /* base/data: made by the store */
    struct hfd_store *store;
    struct hfd_store_reader *reader;
};

static void open_with(struct fixture *fx, size_t queue_max, size_t batch_max)
{
    struct hfd_store_config config = {
        .place = test_place(fx->dir), .queue_max = queue_max, .batch_max = batch_max};
    struct hfd_err err;

    if (hfd_store_open(&config, &fx->store, &err) != HFD_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(hfd_store_reader_open(fx->store, &fx->reader, &err), HFD_OK);
}

static void close_store(struct fixture *fx)
{
    hfd_store_reader_close(&fx->reader);
    hfd_store_close(&fx->store);
}

static void reopen(struct fixture *fx)
{
    close_store(fx);
    open_with(fx, 0, 0);
}

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof(*fx));

    assert_non_null(fx);
    tmpdir_make(fx->base);
    (void)snprintf(fx->dir, sizeof(fx->dir), "%s/data", fx->base);
    open_with(fx, 0, 0);
    *state = fx;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;

    close_store(fx);
    tmpdir_remove(fx->base);
    free(fx);
    return 0;
}

/* ---- transaction functions ---- */

struct part_arg {
    hfd_slice guresid;
    hfd_slice fleet_id;
    hfd_rc answer; /* after writing */
};

static hfd_rc put_part(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct part_arg *a = arg;
    struct hfd_part_row row = {.guresid = a->guresid,
                               .fleet_id = a->fleet_id,
                               .kind = HFD_KIND_CLUSTER,
                               .name = HFD_SLICE("n"),
                               .generation = 1};
    hfd_rc rc = hfd_part_row_put(tx, &row, err);

    if (rc == HFD_OK && a->answer != HFD_OK)
        rc = hfd_fail(err, a->answer, "as asked");
    return rc;
}

struct count_arg {
    hfd_slice guresid;
    size_t count;
};

static hfd_rc count_parts(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct count_arg *a = arg;
    struct hfd_arena mem;
    struct hfd_part_list list;
    hfd_rc rc;

    hfd_arena_init(&mem, 16 << 20);
    rc = hfd_part_row_list(tx, a->guresid, &mem, &list, err);
    a->count = list.count;
    hfd_arena_fini(&mem);
    return rc;
}

static size_t count_of(struct fixture *fx, const char *guresid)
{
    struct count_arg a = {.guresid = hfd_slice_of(guresid)};
    struct hfd_err err;

    assert_int_equal(hfd_store_read(fx->reader, count_parts, &a, &err), HFD_OK);
    return a.count;
}

static hfd_rc put_wait(struct fixture *fx, const char *guresid, const char *fleet_id, hfd_rc answer,
                       struct hfd_err *err)
{
    struct part_arg a = {
        .guresid = hfd_slice_of(guresid), .fleet_id = hfd_slice_of(fleet_id), .answer = answer};

    return hfd_store_update_wait(fx->store, put_part, &a, err);
}

/* ---- a sink that keeps what is posted, in order ---- */

struct keep {
    struct hfd_sink sink; /* first member */
    pthread_mutex_t lock;
    pthread_cond_t posted;
    struct hfd_job *first, **end;
    size_t jobs;
    size_t posts;
};

static void keep_post(struct hfd_sink *sink, struct hfd_job *list)
{
    struct keep *k = (struct keep *)sink;

    pthread_mutex_lock(&k->lock);
    k->posts++;
    *k->end = list;
    for (struct hfd_job *job = list; job != NULL; job = (struct hfd_job *)job->node.next) {
        k->jobs++;
        k->end = (struct hfd_job **)&job->node.next;
    }
    pthread_cond_signal(&k->posted);
    pthread_mutex_unlock(&k->lock);
}

static void keep_init(struct keep *k)
{
    *k = (struct keep){
        .sink = {keep_post}, .lock = PTHREAD_MUTEX_INITIALIZER, .posted = PTHREAD_COND_INITIALIZER};
    k->end = &k->first;
}

static void keep_wait(struct keep *k, size_t jobs)
{
    pthread_mutex_lock(&k->lock);
    while (k->jobs < jobs)
        pthread_cond_wait(&k->posted, &k->lock);
    pthread_mutex_unlock(&k->lock);
}

/* A job that holds the writer until it is let go. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool entered, open;
};

static hfd_rc pass_gate(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct gate *g = arg;

    (void)tx;
    (void)err;
    pthread_mutex_lock(&g->lock);
    g->entered = true;
    pthread_cond_broadcast(&g->changed);
    while (!g->open)
        pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
    return HFD_OK;
}

static void gate_wait_entered(struct gate *g)
{
    pthread_mutex_lock(&g->lock);
    while (!g->entered)
        pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static void gate_open(struct gate *g)
{
    pthread_mutex_lock(&g->lock);
    g->open = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

#define GATE_INIT                                                                                  \
    {                                                                                              \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false                          \
    }

static void submit_gate(struct fixture *fx, struct keep *k, struct hfd_job *job, struct gate *g)
{
    *job = (struct hfd_job){.fn = pass_gate, .arg = g, .sink = &k->sink};
    assert_int_equal(hfd_store_update(fx->store, job, NULL), HFD_OK);
    gate_wait_entered(g);
}

/* ---- the rules ---- */

/* Every answered change is there after a restart. */
static void restart_keeps_what_was_answered(void **state)
{
    struct fixture *fx = *state;
    struct hfd_err err;

    assert_int_equal(put_wait(fx, "g", "a", HFD_OK, &err), HFD_OK);
    assert_int_equal(count_of(fx, "g"), 1);
    reopen(fx);
    assert_int_equal(count_of(fx, "g"), 1);
    assert_true(hfd_store_ok(fx->store));
}

/* A job that fails takes its own writes with it, and no others of the same commit. */
static void failing_job_is_undone_alone(void **state)
{
    static const hfd_rc answers[] = {HFD_OK, HFD_CONFLICT, HFD_OK, HFD_NOMEM,
                                     HFD_IO, HFD_CORRUPT,  HFD_OK};
    enum {
        N = sizeof(answers) / sizeof(answers[0])
    };
    static const char *const ids[N] = {"a", "b", "c", "d", "e", "f", "g"};
    struct fixture *fx = *state;
    struct gate gate = GATE_INIT;
    struct hfd_job gate_job, jobs[N];
    struct part_arg args[N];
    struct keep k;
    struct hfd_job *job;

    keep_init(&k);
    submit_gate(fx, &k, &gate_job, &gate);
    for (size_t i = 0; i < N; i++) {
        args[i] = (struct part_arg){HFD_SLICE("g"), hfd_slice_of(ids[i]), answers[i]};
        jobs[i] = (struct hfd_job){.fn = put_part, .arg = &args[i], .sink = &k.sink};
        assert_int_equal(hfd_store_update(fx->store, &jobs[i], NULL), HFD_OK);
    }
    gate_open(&gate);
    keep_wait(&k, N + 1);
    assert_int_equal(k.posts, 2); /* the gate, and all others in one commit */
    job = (struct hfd_job *)gate_job.node.next;
    for (size_t i = 0; i < N; i++, job = (struct hfd_job *)job->node.next) {
        assert_ptr_equal(job, &jobs[i]);
        assert_int_equal(job->rc, answers[i]);
        assert_int_equal(job->err.rc, answers[i]);
        if (answers[i] != HFD_OK)
            assert_string_equal(job->err.msg, "as asked");
    }
    assert_int_equal(count_of(fx, "g"), 3);
    assert_true(hfd_store_ok(fx->store));
}

enum effect {
    NO_EFFECT,
    KEPT,   /* in the unit of work */
    WRITTEN /* to the database, before the job ends */
};

struct counted {
    struct part_arg part;
    enum effect effect;
    int runs;
};

static hfd_rc count_run(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct counted *c = arg;

    c->runs++;
    hfd_txn_count(tx, hfd_metric_series(HFD_METRIC_TRANSITIONS, HFD_LABELS("test", "run")), 1);
    if (c->effect == NO_EFFECT)
        return hfd_fail(err, c->part.answer, "refused at once");
    if (c->effect == WRITTEN) {
        const struct part_arg early = {c->part.guresid, c->part.fleet_id, HFD_OK};
        hfd_rc rc = put_part(tx, (void *)(uintptr_t)&early, err);

        if (rc == HFD_OK)
            rc = hfd_unit_write(tx, err);
        if (rc != HFD_OK)
            return rc;
    }
    return put_part(tx, &c->part, err);
}

static void assert_counted(int expected)
{
    char line[96];
    struct hfd_buf b;
    hfd_slice text;

    hfd_buf_init(&b, 1024 * 1024);
    hfd_metrics_render(&b);
    assert_int_equal(hfd_buf_finish(&b, &text, NULL), HFD_OK);
    (void)snprintf(line, sizeof(line), "{from=\"test\",to=\"run\"} %d\n", expected);
    assert_contains(text, line);
    hfd_buf_fini(&b);
}

/*
 * A job that fails after its changes were written makes the jobs before it run again. No other job
 * does. All that each job wrote, answered and counted is the same either way.
 */
static void jobs_run_again_for_an_undo_alone(void **state)
{
    static const struct {
        enum effect effect;
        hfd_rc answer;
        int runs[3];
        size_t left;
    } cases[] = {
        {KEPT, HFD_OK, {1, 1, 1}, 3},
        {WRITTEN, HFD_OK, {1, 1, 1}, 3},
        {NO_EFFECT, HFD_CONFLICT, {1, 1, 1}, 2},
        {KEPT, HFD_CONFLICT, {1, 1, 1}, 2},
        {WRITTEN, HFD_CONFLICT, {2, 1, 1}, 2},
    };
    struct fixture *fx = *state;
    int counted = 0;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char guresid[] = {'g', (char)('0' + i), '\0'};
        char ids[3][3]; /* a HyperFleet resource belongs to one driver resource */
        struct counted args[3];
        struct gate gate = GATE_INIT;
        struct hfd_job gate_job, jobs[3];
        struct keep k;

        keep_init(&k);
        submit_gate(fx, &k, &gate_job, &gate);
        for (size_t n = 0; n < 3; n++) {
            (void)snprintf(ids[n], sizeof(ids[n]), "%c%zu", "abc"[n], i);
            args[n] =
                (struct counted){{hfd_slice_of(guresid), hfd_slice_of(ids[n]), HFD_OK}, KEPT, 0};
            if (n == 1) {
                args[n].effect = cases[i].effect;
                args[n].part.answer = cases[i].answer;
            }
            jobs[n] = (struct hfd_job){.fn = count_run, .arg = &args[n], .sink = &k.sink};
            assert_int_equal(hfd_store_update(fx->store, &jobs[n], NULL), HFD_OK);
        }
        gate_open(&gate);
        keep_wait(&k, 4);
        for (size_t n = 0; n < 3; n++) {
            assert_int_equal(args[n].runs, cases[i].runs[n]);
            assert_int_equal(jobs[n].rc, n == 1 ? cases[i].answer : HFD_OK);
        }
        assert_int_equal(count_of(fx, guresid), cases[i].left);
        counted += (int)cases[i].left;
        assert_counted(counted);
    }
}

/*
 * Many jobs of one batch fail after their changes were written. Each is answered once, in order,
 * and none runs more often than the limit of reruns allows.
 */
static void many_undone_jobs_end_their_batch(void **state)
{
    enum {
        N = 60
    };
    struct fixture *fx = *state;
    struct gate gate = GATE_INIT;
    struct hfd_job gate_job, jobs[N], *job;
    struct counted args[N];
    char ids[N][8];
    struct keep k;

    keep_init(&k);
    submit_gate(fx, &k, &gate_job, &gate);
    for (size_t i = 0; i < N; i++) {
        const bool fails = i % 3 == 1;

        (void)snprintf(ids[i], sizeof(ids[i]), "%zu", i);
        args[i] =
            (struct counted){{HFD_SLICE("g"), hfd_slice_of(ids[i]), fails ? HFD_CONFLICT : HFD_OK},
                             fails ? WRITTEN : KEPT,
                             0};
        jobs[i] = (struct hfd_job){.fn = count_run, .arg = &args[i], .sink = &k.sink};
        assert_int_equal(hfd_store_update(fx->store, &jobs[i], NULL), HFD_OK);
    }
    gate_open(&gate);
    keep_wait(&k, N + 1);
    assert_int_equal(k.posts, 1 + 3); /* 20 such jobs, 9 of them in a commit */
    job = (struct hfd_job *)gate_job.node.next;
    for (size_t i = 0; i < N; i++, job = (struct hfd_job *)job->node.next) {
        assert_ptr_equal(job, &jobs[i]);
        assert_int_equal(job->rc, i % 3 == 1 ? HFD_CONFLICT : HFD_OK);
        assert_true(args[i].runs >= 1 && args[i].runs <= 10);
        if (i % 3 == 1)
            assert_int_equal(args[i].runs, 1);
    }
    assert_int_equal(count_of(fx, "g"), 40);
    assert_true(hfd_store_ok(fx->store));
}

struct insert_arg {
    const char *id;
    hfd_rc answer; /* after writing */
};

static hfd_rc insert_cluster(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct insert_arg *a = arg;
    struct hfd_fleet_row row = {.id = hfd_slice_of(a->id),
                                .kind = HFD_KIND_CLUSTER,
                                .name = hfd_slice_of(a->id),
                                .generation = 1};
    hfd_rc rc = hfd_fleet_row_insert(tx, &row, err);

    return rc == HFD_OK && a->answer != HFD_OK ? hfd_fail(err, a->answer, "as asked") : rc;
}

static hfd_rc total_of_clusters(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct hfd_fleet_query q = {.kind = HFD_KIND_CLUSTER};
    struct hfd_fleet_list list;
    struct hfd_arena mem;
    hfd_rc rc;

    hfd_arena_init(&mem, 1 << 20);
    rc = hfd_fleet_row_search(tx, &q, &mem, &list, err);
    *(int64_t *)arg = list.total;
    hfd_arena_fini(&mem);
    return rc;
}

/*
 * Totals are those of the jobs that were kept, whether others of their commit were undone or not,
 * and a job sees them at once.
 */
static void totals_follow_what_is_kept(void **state)
{
    static const struct {
        const char *ids[3];
        hfd_rc answer; /* of the second one */
        int64_t total;
    } cases[] = {
        {{"a", "b", "c"}, HFD_OK, 3},
        {{"d", "e", "f"}, HFD_CONFLICT, 5},
        {{"g", "h", "i"}, HFD_OK, 8},
    };
    struct fixture *fx = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct insert_arg args[3];
        struct gate gate = GATE_INIT;
        struct hfd_job gate_job, jobs[4];
        int64_t seen = -1, total = -1;
        struct keep k;

        keep_init(&k);
        submit_gate(fx, &k, &gate_job, &gate);
        for (size_t n = 0; n < 4; n++) {
            jobs[n] = (struct hfd_job){.fn = total_of_clusters, .arg = &seen, .sink = &k.sink};
            if (n < 3) {
                args[n] = (struct insert_arg){cases[i].ids[n], n == 1 ? cases[i].answer : HFD_OK};
                jobs[n] = (struct hfd_job){.fn = insert_cluster, .arg = &args[n], .sink = &k.sink};
            }
            assert_int_equal(hfd_store_update(fx->store, &jobs[n], NULL), HFD_OK);
        }
        gate_open(&gate);
        keep_wait(&k, 5);
        assert_int_equal(jobs[1].rc, cases[i].answer);
        assert_int_equal(seen, cases[i].total);
        assert_int_equal(hfd_store_read(fx->reader, total_of_clusters, &total, NULL), HFD_OK);
        assert_int_equal(total, cases[i].total);
    }
}

/* Two sinks in one commit: one call each, each in the order of submission. */
static void answers_go_to_their_sink_in_order(void **state)
{
    enum {
        N = 40
    };
    struct fixture *fx = *state;
    struct gate gate = GATE_INIT;
    struct hfd_job gate_job, jobs[N];
    struct count_arg args[N];
    struct keep k[3];

    for (size_t i = 0; i < 3; i++)
        keep_init(&k[i]);
    submit_gate(fx, &k[2], &gate_job, &gate);
    for (size_t i = 0; i < N; i++) {
        args[i] = (struct count_arg){.guresid = HFD_SLICE("g")};
        jobs[i] = (struct hfd_job){.fn = count_parts, .arg = &args[i], .sink = &k[i % 3 == 0].sink};
        assert_int_equal(hfd_store_update(fx->store, &jobs[i], NULL), HFD_OK);
    }
    gate_open(&gate);
    keep_wait(&k[0], N - 14);
    keep_wait(&k[1], 14);
    for (size_t s = 0; s < 2; s++) {
        const struct hfd_job *last = NULL;

        assert_int_equal(k[s].posts, 1);
        for (struct hfd_job *job = k[s].first; job != NULL;
             job = (struct hfd_job *)job->node.next) {
            assert_true(last == NULL || last < job);
            assert_ptr_equal(job->sink, &k[s].sink);
            last = job;
        }
    }
}

/* A full queue refuses, and what it refused stays the caller's; what it took is done. */
static void full_queue_is_busy(void **state)
{
    enum {
        MAX = 3
    };
    struct fixture *fx = *state;
    struct gate gate = GATE_INIT;
    struct hfd_job gate_job, jobs[MAX + 1];
    struct part_arg arg = {HFD_SLICE("g"), HFD_SLICE("a"), HFD_OK};
    struct keep k;
    struct hfd_err err;

    close_store(fx);
    open_with(fx, MAX, 0);
    keep_init(&k);
    submit_gate(fx, &k, &gate_job, &gate);
    for (size_t i = 0; i <= MAX; i++) {
        jobs[i] = (struct hfd_job){.fn = put_part, .arg = &arg, .sink = &k.sink};
        assert_int_equal(hfd_store_update(fx->store, &jobs[i], &err), i < MAX ? HFD_OK : HFD_BUSY);
    }
    assert_int_equal(err.rc, HFD_BUSY);
    gate_open(&gate);
    keep_wait(&k, MAX + 1);
    assert_int_equal(hfd_store_update(fx->store, &jobs[MAX], &err), HFD_OK);
    keep_wait(&k, MAX + 2);
}

/* A short view runs while others occupy all readers. */
static void short_views_have_their_lane(void **state)
{
    enum {
        N = 8
    };
    struct fixture *fx = *state;
    struct count_arg count = {.guresid = HFD_SLICE("g"), .count = 99};
    struct gate gate = GATE_INIT;
    struct hfd_job dear[N], view;
    struct keep k;

    keep_init(&k);
    for (size_t i = 0; i < N; i++) {
        dear[i] = (struct hfd_job){.fn = pass_gate, .arg = &gate, .sink = &k.sink};
        assert_int_equal(hfd_store_view(fx->store, &dear[i], NULL), HFD_OK);
    }
    gate_wait_entered(&gate);
    view = (struct hfd_job){.fn = count_parts, .arg = &count, .sink = &k.sink, .is_short = true};
    assert_int_equal(hfd_store_view(fx->store, &view, NULL), HFD_OK);
    keep_wait(&k, 1);
    assert_int_equal(count.count, 0);
    gate_open(&gate);
    keep_wait(&k, N + 1);
}

static void *open_gate_later(void *arg)
{
    gate_open(arg);
    return NULL;
}

/* Closing finishes and answers what is queued, for the writer and for the readers. */
static void close_drains(void **state)
{
    enum {
        N = 100
    };
    struct fixture *fx = *state;
    struct gate gate = GATE_INIT;
    struct hfd_job gate_job, jobs[N], views[N];
    struct part_arg args[N];
    struct count_arg counts[N];
    char ids[N][8];
    struct keep k;
    pthread_t opener;

    keep_init(&k);
    submit_gate(fx, &k, &gate_job, &gate);
    for (size_t i = 0; i < N; i++) {
        (void)snprintf(ids[i], sizeof(ids[i]), "%zu", i);
        args[i] = (struct part_arg){HFD_SLICE("g"), hfd_slice_of(ids[i]), HFD_OK};
        jobs[i] = (struct hfd_job){.fn = put_part, .arg = &args[i], .sink = &k.sink};
        assert_int_equal(hfd_store_update(fx->store, &jobs[i], NULL), HFD_OK);
        counts[i] = (struct count_arg){.guresid = HFD_SLICE("g"), .count = 99};
        views[i] = (struct hfd_job){.fn = count_parts, .arg = &counts[i], .sink = &k.sink};
        assert_int_equal(hfd_store_view(fx->store, &views[i], NULL), HFD_OK);
    }
    assert_int_equal(pthread_create(&opener, NULL, open_gate_later, &gate), 0);
    close_store(fx);
    pthread_join(opener, NULL);
    assert_int_equal(k.jobs, 2 * N + 1);
    open_with(fx, 0, 0);
    assert_int_equal(count_of(fx, "g"), N);
}

/*
 * A stepped store does nothing by itself: a step is one commit of what is queued, and then its
 * views; closing takes the last one.
 */
static void stepped_store_waits_for_steps(void **state)
{
    struct fixture *fx = *state;
    const struct hfd_store_config config = {.place = test_place(fx->dir), .stepped = true};
    struct part_arg args[3] = {{HFD_SLICE("g"), HFD_SLICE("a"), HFD_OK},
                               {HFD_SLICE("g"), HFD_SLICE("b"), HFD_OK},
                               {HFD_SLICE("g"), HFD_SLICE("c"), HFD_OK}};
    struct count_arg count = {.guresid = HFD_SLICE("g"), .count = 99};
    struct hfd_job view, jobs[3];
    struct hfd_err err;
    struct keep k;

    keep_init(&k);
    close_store(fx);
    assert_int_equal(hfd_store_open(&config, &fx->store, &err), HFD_OK);
    assert_int_equal(hfd_store_reader_open(fx->store, &fx->reader, &err), HFD_OK);
    view = (struct hfd_job){.fn = count_parts, .arg = &count, .sink = &k.sink};
    for (size_t i = 0; i < 3; i++)
        jobs[i] = (struct hfd_job){.fn = put_part, .arg = &args[i], .sink = &k.sink};
    assert_int_equal(hfd_store_view(fx->store, &view, &err), HFD_OK);
    assert_int_equal(hfd_store_update(fx->store, &jobs[0], &err), HFD_OK);
    assert_int_equal(hfd_store_update(fx->store, &jobs[1], &err), HFD_OK);
    assert_int_equal(k.jobs, 0);
    assert_int_equal(count_of(fx, "g"), 0);
    hfd_store_step(fx->store);
    assert_int_equal(k.jobs, 3);
    assert_int_equal(k.posts, 2);
    assert_int_equal(count.count, 2);
    hfd_store_step(fx->store);
    assert_int_equal(put_wait(fx, "g", "d", HFD_CONFLICT, &err), HFD_CONFLICT);
    assert_int_equal(hfd_store_update(fx->store, &jobs[2], &err), HFD_OK);
    close_store(fx);
    assert_int_equal(k.jobs, 4);
    open_with(fx, 0, 0);
    assert_int_equal(count_of(fx, "g"), 3);
}

struct submitter {
    struct fixture *fx;
    struct keep keep;
    pthread_t thread;
    char name[8];
    struct hfd_job jobs[500];
    struct part_arg args[500];
    char ids[500][32];
};

static void *submit_many(void *arg)
{
    struct submitter *s = arg;

    for (size_t i = 0; i < 500; i++) {
        (void)snprintf(s->ids[i], sizeof(s->ids[i]), "%s.%zu", s->name, i);
        s->args[i] = (struct part_arg){hfd_slice_of(s->name), hfd_slice_of(s->ids[i]),
                                       i % 10 == 9 ? HFD_CONFLICT : HFD_OK};
        s->jobs[i] = (struct hfd_job){.fn = put_part, .arg = &s->args[i], .sink = &s->keep.sink};
        while (hfd_store_update(s->fx->store, &s->jobs[i], NULL) == HFD_BUSY)
            keep_wait(&s->keep, i / 2); /* a full queue: wait for some answers */
    }
    keep_wait(&s->keep, 500);
    return NULL;
}

/*
 * Eight threads submit 500 jobs each: every job is answered once, in order, and every success is
 * there.
 */
static void concurrent_submitters_lose_nothing(void **state)
{
    struct fixture *fx = *state;
    struct submitter *all = calloc(8, sizeof(*all));

    assert_non_null(all);
    for (size_t t = 0; t < 8; t++) {
        all[t].fx = fx;
        keep_init(&all[t].keep);
        (void)snprintf(all[t].name, sizeof(all[t].name), "t%zu", t);
        assert_int_equal(pthread_create(&all[t].thread, NULL, submit_many, &all[t]), 0);
    }
    for (size_t t = 0; t < 8; t++) {
        struct hfd_job *job;

        pthread_join(all[t].thread, NULL);
        job = all[t].keep.first;
        for (size_t i = 0; i < 500; i++, job = (struct hfd_job *)job->node.next) {
            assert_ptr_equal(job, &all[t].jobs[i]);
            assert_int_equal(job->rc, all[t].args[i].answer);
        }
        assert_null(job);
        assert_int_equal(count_of(fx, all[t].name), 450);
    }
    free(all);
}

struct peek {
    struct fixture *fx;
    size_t seen_own, seen_by_reader;
};

static hfd_rc put_and_peek(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct peek *p = arg;
    struct part_arg a = {HFD_SLICE("g"), HFD_SLICE("a"), HFD_OK};
    struct count_arg own = {.guresid = HFD_SLICE("g")};
    struct count_arg other = {.guresid = HFD_SLICE("g")};
    struct hfd_store_reader *reader;
    hfd_rc rc = put_part(tx, &a, err);

    if (rc == HFD_OK)
        rc = count_parts(tx, &own, err);
    if (rc == HFD_OK)
        rc = hfd_store_reader_open(p->fx->store, &reader, err);
    if (rc != HFD_OK)
        return rc;
    rc = hfd_store_read(reader, count_parts, &other, err);
    hfd_store_reader_close(&reader);
    p->seen_own = own.count;
    p->seen_by_reader = other.count;
    return rc;
}

/* A reader sees nothing of a transaction under way, and everything once it is answered. */
static void readers_see_committed_state_only(void **state)
{
    struct fixture *fx = *state;
    struct peek p = {.fx = fx};
    struct hfd_err err;

    assert_int_equal(hfd_store_update_wait(fx->store, put_and_peek, &p, &err), HFD_OK);
    assert_int_equal(p.seen_own, 1);
    assert_int_equal(p.seen_by_reader, 0);
    assert_int_equal(count_of(fx, "g"), 1);
}

struct two_counts {
    struct fixture *fx;
    size_t before, after;
};

static hfd_rc count_write_count(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct two_counts *t = arg;
    struct count_arg a = {.guresid = HFD_SLICE("g")};
    hfd_rc rc = count_parts(tx, &a, err);

    t->before = a.count;
    if (rc == HFD_OK)
        rc = put_wait(t->fx, "g", "a", HFD_OK, err);
    if (rc == HFD_OK)
        rc = count_parts(tx, &a, err);
    t->after = a.count;
    return rc;
}

/* A view keeps its snapshot while the writer goes on, and lets go of it at its end. */
static void view_reads_one_snapshot(void **state)
{
    struct fixture *fx = *state;
    struct two_counts t = {.fx = fx, .before = 9, .after = 9};
    struct hfd_job job = {.fn = count_write_count, .arg = &t};
    struct keep k;

    keep_init(&k);
    job.sink = &k.sink;
    assert_int_equal(hfd_store_view(fx->store, &job, NULL), HFD_OK);
    keep_wait(&k, 1);
    assert_int_equal(job.rc, HFD_OK);
    assert_int_equal(t.before, 0);
    assert_int_equal(t.after, 0);
    assert_int_equal(count_of(fx, "g"), 1);
    t.before = 9;
    assert_int_equal(hfd_store_read(fx->reader, count_write_count, &t, NULL), HFD_OK);
    assert_int_equal(t.before, 1);
}

static hfd_rc answer_not_found(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    (void)tx;
    (void)arg;
    return hfd_fail(err, HFD_NOT_FOUND, "not here");
}

/* A read's failure is the caller's to see, on both ways of reading, and the next read works. */
static void failed_read_is_answered(void **state)
{
    struct fixture *fx = *state;
    struct hfd_job job = {.fn = answer_not_found};
    struct keep k;
    struct hfd_err err;

    keep_init(&k);
    job.sink = &k.sink;
    assert_int_equal(hfd_store_view(fx->store, &job, NULL), HFD_OK);
    keep_wait(&k, 1);
    assert_int_equal(job.rc, HFD_NOT_FOUND);
    assert_string_equal(job.err.msg, "not here");
    assert_int_equal(hfd_store_read(fx->reader, answer_not_found, NULL, &err), HFD_NOT_FOUND);
    assert_int_equal(count_of(fx, "g"), 0);
}

/* The folder, the database and the log are readable for their owner alone. */
static void files_are_private(void **state)
{
    static const char *const names[] = {"store.db", "store.db-wal", "lock"};
    struct fixture *fx = *state;
    struct stat st;
    char path[256];

    if (test_on_postgres())
        skip(); /* of files */
    assert_int_equal(put_wait(fx, "g", "a", HFD_OK, NULL), HFD_OK);
    assert_int_equal(stat(fx->dir, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", fx->dir, names[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
    }
}

/* A clean close leaves one file with everything in it. */
static void close_empties_the_log(void **state)
{
    struct fixture *fx = *state;
    struct stat st;
    char path[256];

    assert_int_equal(put_wait(fx, "g", "a", HFD_OK, NULL), HFD_OK);
    close_store(fx);
    (void)snprintf(path, sizeof(path), "%s/store.db-wal", fx->dir);
    assert_true(stat(path, &st) != 0 || st.st_size == 0);
    open_with(fx, 0, 0);
    assert_int_equal(count_of(fx, "g"), 1);
}

/* The error of a second store on the same folder names the holder. */
static void second_open_names_the_holder(void **state)
{
    struct fixture *fx = *state;
    struct hfd_store_config config = {.place = test_place(fx->dir)};
    struct hfd_store *second;
    struct hfd_err err;
    char pid[24];

    if (test_on_postgres())
        skip(); /* of files */
    assert_int_equal(hfd_store_open(&config, &second, &err), HFD_CONFLICT);
    assert_null(second);
    (void)snprintf(pid, sizeof(pid), "process %ld;", (long)getpid());
    assert_non_null(strstr(err.msg, pid));
    assert_int_equal(put_wait(fx, "g", "a", HFD_OK, &err), HFD_OK); /* the first is not disturbed */
}

/* A process that is killed leaves no lock behind, and what it answered is there. */
static void killed_process_leaves_no_lock(void **state)
{
    struct fixture *fx = *state;
    int status;
    pid_t child;

    close_store(fx);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct hfd_store_config config = {.place = test_place(fx->dir)};

        if (hfd_store_open(&config, &fx->store, NULL) == HFD_OK &&
            put_wait(fx, "g", "a", HFD_OK, NULL) == HFD_OK)
            (void)kill(getpid(), SIGKILL);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    open_with(fx, 0, 0);
    assert_int_equal(count_of(fx, "g"), 1);
}

/* The parent of the folder is the operator's to make; a file in its place is refused. */
static void bad_folders_are_refused(void **state)
{
    struct fixture *fx = *state;
    static const char *const below[] = {"absent/data", "data/lock", "data/lock/x"};

    if (test_on_postgres())
        skip(); /* of files */
    for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
        char path[256];
        struct hfd_store_config config = {.place = test_place(path)};
        struct hfd_store *store;
        struct hfd_err err;

        (void)snprintf(path, sizeof(path), "%s/%s", fx->base, below[i]);
        assert_int_equal(hfd_store_open(&config, &store, &err), HFD_IO);
        assert_null(store);
        assert_non_null(strstr(err.msg, below[i]));
    }
}

/* File systems whose locks cannot be relied on. */
static void network_file_systems_are_told(void **state)
{
    static const struct {
        unsigned long magic;
        enum hfd_folder_fs kind;
    } rows[] = {
        {0x6969, HFD_FOLDER_FS_NETWORK},
        {0xFF534D42, HFD_FOLDER_FS_NETWORK},
        {0xFFFFFFFFFF534D42, HFD_FOLDER_FS_NETWORK},
        {0xFE534D42, HFD_FOLDER_FS_NETWORK},
        {0x517B, HFD_FOLDER_FS_NETWORK},
        {0x65735546, HFD_FOLDER_FS_UNSURE},
        {0xEF53, HFD_FOLDER_FS_LOCAL},
        {0x58465342, HFD_FOLDER_FS_LOCAL},
        {0x01021994, HFD_FOLDER_FS_LOCAL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(hfd_folder_fs_kind(rows[i].magic), rows[i].kind);
}

/* A file that is no database is refused, not replaced. */
static void garbage_is_refused(void **state)
{
    struct fixture *fx = *state;
    struct hfd_store_config config = {.place = test_place(fx->dir)};
    struct hfd_store *store;
    struct hfd_err err;
    struct stat st;
    char path[256];
    char junk[8192];
    int fd;

    if (test_on_postgres())
        skip(); /* of files */
    close_store(fx);
    memset(junk, 'x', sizeof(junk));
    (void)snprintf(path, sizeof(path), "%s/store.db", fx->dir);
    fd = open(path, O_WRONLY | O_TRUNC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, junk, sizeof(junk)), (int)sizeof(junk));
    close(fd);
    assert_int_equal(hfd_store_open(&config, &store, &err), HFD_CORRUPT);
    assert_null(store);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, (int)sizeof(junk));
    assert_int_equal(unlink(path), 0);
    open_with(fx, 0, 0); /* the lock was given back */
}

/* ---- after a commit ---- */

static char effects_seen[64];

static void count_call(void *ctx)
{
    ++*(int *)ctx;
}

/* A store that another part turns broken takes no work, with the first reason; it is said once. */
static void a_store_can_be_broken_from_outside(void **state)
{
    struct fixture *fx = *state;
    struct part_arg put = {HFD_SLICE("g"), HFD_SLICE("f"), HFD_OK};
    struct hfd_err why, other, err;
    int calls = 0;

    (void)hfd_fail(&why, HFD_INVALID, "the first reason");
    (void)hfd_fail(&other, HFD_IO, "another reason");
    hfd_store_on_broken(fx->store, count_call, &calls);
    assert_int_equal(hfd_store_update_wait(fx->store, put_part, &put, &err), HFD_OK);
    hfd_store_break(fx->store, &why);
    hfd_store_break(fx->store, &other);
    assert_int_equal(calls, 1);
    assert_false(hfd_store_ok(fx->store));
    assert_int_equal(hfd_store_update_wait(fx->store, put_part, &put, &err), HFD_IO);
    assert_non_null(strstr(err.msg, "the first reason"));
}

static void note_effect(const void *arg)
{
    const size_t len = strlen(effects_seen);

    (void)snprintf(effects_seen + len, sizeof(effects_seen) - len, "%s", (const char *)arg);
}

struct effect_job {
    const char *texts[3];
    hfd_rc rc;
};

static hfd_rc add_effects(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct effect_job *j = arg;
    char text[8];

    for (size_t i = 0; i < 3 && j->texts[i] != NULL; i++) {
        (void)snprintf(text, sizeof(text), "%s", j->texts[i]);
        assert_int_equal(hfd_txn_after_commit(tx, note_effect, text, sizeof(text), err), HFD_OK);
        memset(text, 'x', sizeof(text));
    }
    assert_string_equal(effects_seen, "");
    return j->rc != HFD_OK ? hfd_fail(err, j->rc, "by the test") : HFD_OK;
}

/* Calls are made after the commit, in order, with a copy; a job that fails takes its calls back. */
static void effects_follow_the_commit(void **state)
{
    struct effect_job good = {{"a", "b", "c"}, HFD_OK}, bad = {{"d"}, HFD_CONFLICT};
    struct hfd_store_config config = {.readers = 1};
    char dir[TMPDIR_MAX];
    struct hfd_store *store;
    struct hfd_err err;

    (void)state;
    tmpdir_make(dir);
    config.place = test_place(dir);
    assert_int_equal(hfd_store_open(&config, &store, &err), HFD_OK);
    effects_seen[0] = '\0';
    assert_int_equal(hfd_store_update_wait(store, add_effects, &bad, &err), HFD_CONFLICT);
    assert_string_equal(effects_seen, "");
    assert_int_equal(hfd_store_update_wait(store, add_effects, &good, &err), HFD_OK);
    assert_string_equal(effects_seen, "abc");
    effects_seen[0] = '\0';
    for (int i = 0; i < 200; i++) { /* the list grows, and starts anew with each commit */
        assert_int_equal(hfd_store_update_wait(store, add_effects, &good, &err), HFD_OK);
        assert_string_equal(effects_seen, "abc");
        effects_seen[0] = '\0';
    }
    hfd_store_close(&store);
    tmpdir_remove(dir);
}

int main(void)
{
#define RULE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(effects_follow_the_commit),
        RULE(a_store_can_be_broken_from_outside),
        RULE(restart_keeps_what_was_answered),
        RULE(failing_job_is_undone_alone),
        RULE(jobs_run_again_for_an_undo_alone),
        RULE(many_undone_jobs_end_their_batch),
        RULE(totals_follow_what_is_kept),
        RULE(answers_go_to_their_sink_in_order),
        RULE(full_queue_is_busy),
        RULE(close_drains),
        RULE(stepped_store_waits_for_steps),
        RULE(concurrent_submitters_lose_nothing),
        RULE(readers_see_committed_state_only),
        RULE(short_views_have_their_lane),
        RULE(view_reads_one_snapshot),
        RULE(failed_read_is_answered),
        RULE(files_are_private),
        RULE(close_empties_the_log),
        RULE(second_open_names_the_holder),
        RULE(killed_process_leaves_no_lock),
        RULE(bad_folders_are_refused),
        cmocka_unit_test(network_file_systems_are_told),
        RULE(garbage_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
