/* See writer.h. */
#include "store/writer.h"

#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/base/thread.h"
#include "driver/base/trouble.h"
#include "store/db.h"
#include "store/migrate.h"
#include "store/move.h"
#include "store/store.h"
#include "store/totals.h"
#include "store/txn.h"
#include "store/unit.h"

#include <poll.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>

/* ---- job ---- */

void hfd_job_finish(struct hfd_job *job, hfd_rc rc, const struct hfd_err *err)
{
    job->rc = rc;
    if (rc != HFD_OK)
        job->err = *err;
    job->err.rc = rc;
}

/* There are few sinks, one per loop, so the list is walked once for each. */
void hfd_jobs_post(struct hfd_job *list)
{
    while (list != NULL) {
        struct hfd_sink *sink = list->sink;
        struct hfd_qnode *mine = NULL, **mine_end = &mine;
        struct hfd_qnode *rest = NULL, **rest_end = &rest;

        for (struct hfd_qnode *n = &list->node; n != NULL; n = n->next) {
            struct hfd_qnode ***end = hfd_job_of(n)->sink == sink ? &mine_end : &rest_end;

            **end = n;
            *end = &n->next;
        }
        *mine_end = NULL;
        *rest_end = NULL;
        sink->post(sink, hfd_job_of(mine));
        list = hfd_job_of(rest);
    }
}

/* ---- effects: each call is a head and its argument, both aligned ---- */

#define AT_FIRST_BYTES 4096

struct head {
    alignas(max_align_t) hfd_effect_fn *fn;
    size_t step_bytes; /* from this head to the next */
    struct hfd_trace trace;
};

static size_t step_of(size_t size)
{
    const size_t unit = alignof(max_align_t);

    return sizeof(struct head) + (size + unit - 1) / unit * unit;
}

/* Appends a call of fn with a copy of `size` bytes at arg. @return HFD_OK, HFD_NOMEM */
static hfd_rc effects_add(struct hfd_effects *e, hfd_effect_fn *fn, const void *arg, size_t size,
                          struct hfd_err *err)
{
    const struct head head = {fn, step_of(size), *hfd_trace_now()};
    size_t capacity = e->capacity > 0 ? e->capacity : AT_FIRST_BYTES;

    while (capacity < e->len + head.step_bytes)
        capacity *= 2;
    if (capacity > e->capacity) {
        char *bytes = realloc(e->bytes, capacity);

        if (bytes == NULL)
            return hfd_fail_nomem(err, "note what to do after a commit");
        e->bytes = bytes;
        e->capacity = capacity;
    }
    memcpy(e->bytes + e->len, &head, sizeof(head));
    if (size > 0)
        memcpy(e->bytes + e->len + sizeof(head), arg, size);
    e->len += head.step_bytes;
    return HFD_OK;
}

/* Makes the calls and empties the list, whose memory is kept. */
static void effects_run(struct hfd_effects *e)
{
    for (size_t at = 0; at < e->len;) {
        struct head head;

        memcpy(&head, e->bytes + at, sizeof(head));
        hfd_trace_enter(&head.trace);
        head.fn(e->bytes + at + sizeof(head));
        at += head.step_bytes;
    }
    hfd_trace_enter(NULL);
    e->len = 0;
}

/* Forgets what was appended after the list had `len` bytes. */
static void effects_cut(struct hfd_effects *e, size_t len)
{
    HFD_ASSERT(len <= e->len);
    e->len = len;
}

static void effects_fini(struct hfd_effects *e)
{
    free(e->bytes);
    *e = (struct hfd_effects){0};
}

hfd_rc hfd_txn_after_commit(struct hfd_txn *tx, hfd_effect_fn *fn, const void *arg, size_t size,
                            struct hfd_err *err)
{
    HFD_ASSERT(tx->effects != NULL);
    return effects_add(tx->effects, fn, arg, size, err);
}

/* ---- away ---- */

#define PAUSE_MIN_US (HFD_US_PER_S / 10)
#define PAUSE_MAX_US HFD_US_PER_S

void hfd_away_note(struct hfd_away *a, const struct hfd_err *why)
{
    bool first;

    if (!a->started)
        return;
    (void)pthread_mutex_lock(&a->lock);
    first = !atomic_load_explicit(&a->now, memory_order_relaxed);
    a->cause = *why;
    atomic_store_explicit(&a->now, true, memory_order_release);
    (void)pthread_cond_signal(&a->changed);
    (void)pthread_mutex_unlock(&a->lock);
    if (!first)
        return;
    hfd_metric_set(HFD_METRIC_STORE_OK, NULL, 0);
    (void)hfd_trouble_note(HFD_TROUBLE_STORE, HFD_SLICE(""), hfd_clock_wall_us(&hfd_clock_system),
                           hfd_slice_of(why->msg));
    HFD_LOG(HFD_LOG_WARN, "the database cannot be reached: work is refused until it can be",
            HFD_LOG_CSTR("reason", why->msg));
}

hfd_rc hfd_away_check(struct hfd_away *a, struct hfd_err *err)
{
    struct hfd_err why;

    if (!atomic_load_explicit(&a->now, memory_order_acquire))
        return HFD_OK;
    (void)pthread_mutex_lock(&a->lock);
    why = a->cause;
    (void)pthread_mutex_unlock(&a->lock);
    return hfd_fail(err, HFD_AWAY, "the database cannot be reached now: %s", why.msg);
}

static void note_reached(struct hfd_away *a)
{
    (void)pthread_mutex_lock(&a->lock);
    atomic_store_explicit(&a->now, false, memory_order_release);
    (void)pthread_mutex_unlock(&a->lock);
    hfd_metric_set(HFD_METRIC_STORE_OK, NULL, 1);
    (void)hfd_trouble_end(HFD_TROUBLE_STORE, HFD_SLICE(""));
    HFD_LOG(HFD_LOG_INFO, "the database can be reached again");
}

/* Tries as the writer: a standby does not count. */
static hfd_rc try_once(struct hfd_away *a, struct hfd_err *err)
{
    struct hfd_db *db;
    const hfd_rc rc = hfd_db_open(a->place, HFD_DB_WRITER, &db, err);

    hfd_db_close(&db);
    return rc;
}

/* Waits until the store is away. @return false: the thread ends */
static bool wait_away(struct hfd_away *a)
{
    bool stop;

    (void)pthread_mutex_lock(&a->lock);
    while (!a->stop && !atomic_load_explicit(&a->now, memory_order_relaxed))
        (void)pthread_cond_wait(&a->changed, &a->lock);
    stop = a->stop;
    (void)pthread_mutex_unlock(&a->lock);
    return !stop;
}

/* @return false: the thread ends */
static bool pause_between(struct hfd_away *a, int64_t pause_us, const struct hfd_err *why)
{
    const int64_t until_us = hfd_clock_mono_us(&hfd_clock_system) + pause_us;
    const struct timespec until = {.tv_sec = until_us / HFD_US_PER_S,
                                   .tv_nsec = until_us % HFD_US_PER_S * 1000};
    bool stop;
    int rc = 0;

    (void)pthread_mutex_lock(&a->lock);
    a->cause = *why;
    while (!a->stop && rc == 0) /* others note failures meanwhile */
        rc = pthread_cond_timedwait(&a->changed, &a->lock, &until);
    stop = a->stop;
    (void)pthread_mutex_unlock(&a->lock);
    return !stop;
}

static void *away_main(void *arg)
{
    struct hfd_away *a = arg;

    while (wait_away(a)) {
        int64_t pause_us = PAUSE_MIN_US;
        struct hfd_err err;

        while (try_once(a, &err) != HFD_OK) {
            if (!pause_between(a, pause_us, &err))
                return NULL;
            pause_us = 2 * pause_us < PAUSE_MAX_US ? 2 * pause_us : PAUSE_MAX_US;
        }
        note_reached(a);
    }
    return NULL;
}

/* Sets up, and starts the thread. @param place  borrowed until away_stop */
static hfd_rc away_start(struct hfd_away *a, const struct hfd_store_place *place,
                         struct hfd_err *err)
{
    pthread_condattr_t attr;
    hfd_rc rc;

    a->place = place;
    (void)pthread_mutex_init(&a->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC); /* the wall clock may jump back */
    (void)pthread_cond_init(&a->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
    rc = hfd_thread_start(
        &(struct hfd_thread){"hfd-store-away", "open the store: thread", away_main, a}, &a->thread,
        err);
    a->started = rc == HFD_OK;
    return rc;
}

/* Ends the thread. Accepts one that was not started, in zeroed memory. */
static void away_stop(struct hfd_away *a)
{
    if (!a->started)
        return;
    (void)pthread_mutex_lock(&a->lock);
    a->stop = true;
    (void)pthread_cond_signal(&a->changed);
    (void)pthread_mutex_unlock(&a->lock);
    (void)pthread_join(a->thread, NULL);
    a->started = false;
    (void)pthread_cond_destroy(&a->changed);
    (void)pthread_mutex_destroy(&a->lock);
}

/* ---- writer ---- */

#define RERUNS_MAX 8                    /* of one batch */
#define RUNS_MAX 6                      /* of one batch that others or the connection undid */
#define RECONNECT_US (5 * HFD_US_PER_S) /* how long a batch waits for a connection */
#define RECONNECT_PAUSE_MS 100
#define SHARED_BATCH_MAX 512 /* jobs of a group with HFD_NUMBERS_MAX numbers */

/* ---- broken ---- */

bool hfd_writer_ok(const struct hfd_writer *w)
{
    return !atomic_load_explicit(&w->broken, memory_order_acquire);
}

hfd_rc hfd_writer_check(struct hfd_writer *w, struct hfd_err *err)
{
    if (hfd_writer_ok(w))
        return hfd_away_check(&w->away, err);
    return hfd_fail(err, HFD_IO, "the store takes no more work until a restart: %s", w->cause.msg);
}

void hfd_writer_break(struct hfd_writer *w, const struct hfd_err *cause)
{
    if (atomic_exchange(&w->breaking, true)) /* the first cause stays */
        return;
    w->cause = *cause;
    atomic_store_explicit(&w->broken, true, memory_order_release);
    hfd_metric_set(HFD_METRIC_STORE_OK, NULL, 0);
    (void)hfd_trouble_note(HFD_TROUBLE_STORE, HFD_SLICE(""), hfd_clock_wall_us(&hfd_clock_system),
                           hfd_slice_of(cause->msg));
    HFD_LOG(HFD_LOG_ERROR, "the store failed and takes no more work",
            HFD_LOG_CSTR("reason", cause->msg));
    if (w->on_broken != NULL)
        w->on_broken(w->on_broken_ctx);
}

/* ---- metrics of a commit ---- */

void hfd_txn_count(struct hfd_txn *tx, struct hfd_series *series, int64_t delta)
{
    struct hfd_tally *t = tx->tally;
    size_t i = 0;

    HFD_ASSERT(t != NULL);
    if (series == NULL)
        return;
    while (i < t->count && t->items[i].series != series)
        i++;
    if (HFD_NEVER(i == HFD_TALLY_MAX)) { /* more kinds than there are */
        hfd_series_add(series, delta);
        return;
    }
    if (i == t->count)
        t->items[t->count++].series = series;
    t->items[i].delta += delta;
}

static void publish(const struct hfd_tally *t)
{
    for (size_t i = 0; i < t->count; i++)
        hfd_series_add(t->items[i].series, t->items[i].delta);
}

static void count_results(const struct hfd_job *list)
{
    int64_t counts[HFD_RC_COUNT] = {0};

    for (const struct hfd_job *job = list; job != NULL; job = hfd_job_next(job))
        counts[job->rc]++;
    for (int rc = 0; rc < HFD_RC_COUNT; rc++)
        if (counts[rc] != 0)
            hfd_metric_add(HFD_METRIC_STORE_JOBS, HFD_LABELS(hfd_rc_name((hfd_rc)rc)), counts[rc]);
}

static void count_rerun(const char *reason)
{
    hfd_metric_add(HFD_METRIC_STORE_RERUNS, HFD_LABELS(reason), 1);
}

/* ---- a batch ---- */

static struct hfd_txn begin_job(struct hfd_writer *w)
{
    if (w->keeps_rows)
        hfd_unit_next(&w->unit);
    else
        hfd_unit_begin(&w->unit);
    w->keeps_rows = false;
    return (struct hfd_txn){.db = w->db,
                            .writable = true,
                            .stamps = &w->stamps,
                            .tally = &w->tally,
                            .effects = &w->effects,
                            .totals = &w->totals,
                            .unit = &w->unit};
}

/*
 * Runs a job and writes its changes. Changes of a job that fails are dropped in memory.
 * @param spoilt  whether it failed after some of its changes had been written, or summed up
 * @return not HFD_OK when the transaction as a whole cannot go on
 */
static hfd_rc run_job(struct hfd_writer *w, struct hfd_job *job, bool *spoilt, struct hfd_err *err)
{
    const int64_t written = hfd_db_changes(w->db);
    const uint64_t summed = w->totals.additions;
    const struct hfd_tally counted = w->tally;
    const size_t effects_len = w->effects.len;
    struct hfd_txn tx = begin_job(w);

    job->err = (struct hfd_err){.rc = HFD_OK};
    hfd_trace_enter(&job->trace);
    job->rc = job->fn(&tx, job->arg, &job->err);
    if (job->rc == HFD_OK)
        job->rc = hfd_unit_write(&tx, &job->err);
    hfd_trace_enter(NULL);
    job->err.rc = job->rc;
    /* A job that reads what this one wrote would else read it alone, behind the writes. */
    w->keeps_rows = job->rc == HFD_OK && w->rooted;
    if (job->rc != HFD_OK) {
        w->tally = counted;
        effects_cut(&w->effects, effects_len);
    }
    *spoilt =
        job->rc != HFD_OK && (hfd_db_changes(w->db) != written || w->totals.additions != summed);
    if (job->rc == HFD_OK && HFD_NEVER(hfd_db_fate(w->db) == HFD_DB_UNDONE)) {
        job->rc = hfd_fail(&job->err, HFD_IO, "store: a job went on after its transaction ended");
        *spoilt = true;
    }
    if (hfd_db_fate(w->db) == HFD_DB_AGAIN)
        return hfd_fail(err, HFD_BUSY, "%s", job->err.msg);
    return hfd_db_cause(w->db, err);
}

/*
 * Begins a group: notes what its jobs will read, so that the engine reads it at once. A failure is
 * of no account: the job itself meets it.
 */
static hfd_rc prefetch_all(struct hfd_writer *w, struct hfd_job *list, struct hfd_err *err)
{
    struct hfd_err unused;
    bool again;

    w->rooted = hfd_db_gathers(w->db);
    if (!w->rooted)
        return HFD_OK;
    for (struct hfd_job *job = list; job != NULL; job = hfd_job_next(job)) {
        struct hfd_txn tx = begin_job(w);

        if (!job->isolated && job->prefetch != NULL)
            (void)job->prefetch(&tx, job->arg, &unused);
        if (job->isolated || tx.rooted)
            continue;
        w->rooted = false;
        if (hfd_db_exclusive(w->db, err) != HFD_OK)
            return err->rc;
    }
    return hfd_db_look(w->db, &again, err);
}

/* Runs all jobs but those that are isolated, up to one that makes the transaction useless. */
static hfd_rc run_each(struct hfd_writer *w, struct hfd_job *list, struct hfd_job **failed_job,
                       struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    *failed_job = NULL;
    w->keeps_rows = false;
    w->tally = (struct hfd_tally){.count = 0};
    effects_cut(&w->effects, 0);
    hfd_totals_drop(&w->totals);
    if (w->shared) /* others have taken numbers since, or those that were given are free again */
        w->unit.seqs = w->unit.actions = w->unit.dues = (struct hfd_number){.last = 0};
    for (struct hfd_job *job = list; rc == HFD_OK && *failed_job == NULL && job != NULL;
         job = hfd_job_next(job)) {
        bool spoilt = false;

        if (!job->isolated)
            rc = run_job(w, job, &spoilt, err);
        if (spoilt && !hfd_db_is_looking(w->db))
            *failed_job = job;
    }
    return rc;
}

/*
 * Runs all jobs but those that are isolated, in a new transaction. They run again while the engine
 * reads for them.
 * @param failed_job  the job that made the transaction useless; NULL = it can be committed
 */
static hfd_rc run_jobs(struct hfd_writer *w, struct hfd_job *list, struct hfd_job **failed_job,
                       struct hfd_err *err)
{
    hfd_rc rc = hfd_db_begin_group(w->db, err);
    bool again = true;
    struct hfd_txn tx;

    *failed_job = NULL;
    if (rc != HFD_OK)
        return rc;
    rc = prefetch_all(w, list, err);
    while (rc == HFD_OK && again) {
        rc = run_each(w, list, failed_job, err);
        if (rc == HFD_OK)
            rc = hfd_db_look(w->db, &again, err);
    }
    tx = begin_job(w);
    if (rc == HFD_OK && *failed_job == NULL)
        rc = hfd_totals_write(&tx, err);
    hfd_totals_drop(&w->totals);
    if (rc != HFD_OK || *failed_job != NULL)
        hfd_db_rollback(w->db);
    return rc;
}

/* Publishes what waited for the transaction to be on disk. */
static void settle_commit(struct hfd_writer *w)
{
    const bool changed = hfd_row_stamps_commit(&w->stamps);

    publish(&w->tally);
    effects_run(&w->effects);
    if (changed && w->on_change != NULL)
        w->on_change(w->on_change_ctx);
}

/*
 * Commits the list once. A job that fails after it has written is isolated, and all others run
 * again without it. It keeps its answer, as the jobs before it do the same again. After RERUNS_MAX
 * reruns the list ends with that job, so that no job runs too often.
 * @param rest  jobs that were cut off the list; they are not answered
 */
static hfd_rc run_transaction(struct hfd_writer *w, struct hfd_job *list, struct hfd_job **rest,
                              struct hfd_err *err)
{
    struct hfd_job *failed_job;
    hfd_rc rc;

    for (int reruns = 0;; reruns++) {
        rc = run_jobs(w, list, &failed_job, err);
        if (rc != HFD_OK || failed_job == NULL)
            break;
        failed_job->isolated = true;
        count_rerun("job");
        if (reruns < RERUNS_MAX || *rest != NULL)
            continue;
        *rest = hfd_job_next(failed_job);
        failed_job->node.next = NULL;
    }
    if (rc != HFD_OK)
        return rc;
    rc = hfd_db_commit(w->db, err);
    if (rc != HFD_OK) {
        hfd_db_rollback(w->db);
        return rc;
    }
    settle_commit(w);
    return HFD_OK;
}

/* ---- a database that cannot be reached ---- */

/*
 * Connects anew, and finds out what became of a commit without an answer. A server that is gone for
 * longer is left to the thread of writer.h.
 */
static hfd_rc reconnect(struct hfd_writer *w, bool *committed, struct hfd_err *err)
{
    const int64_t until_us = hfd_clock_mono_us(w->clock) + RECONNECT_US;
    hfd_rc rc;

    for (;;) {
        rc = hfd_db_reopen(w->db, err);
        if (rc == HFD_OK)
            rc = hfd_db_was_committed(w->db, committed, err);
        if (rc != HFD_AWAY && rc != HFD_BUSY && rc != HFD_NOMEM && rc != HFD_IO)
            return rc;
        hfd_away_note(&w->away, err);
        if (hfd_clock_mono_us(w->clock) >= until_us)
            return hfd_fail(err, HFD_AWAY, "it is not known whether this was stored: %s", err->msg);
        (void)poll(NULL, 0, RECONNECT_PAUSE_MS);
    }
}

/*
 * Runs the list until it is stored, or refused, or the database cannot be reached. A list that was
 * undone for no fault of its own runs again. So does one that lost its connection, unless its
 * commit is there.
 */
static hfd_rc run_until_sure(struct hfd_writer *w, struct hfd_job *list, struct hfd_job **rest,
                             struct hfd_err *err)
{
    bool committed = false;
    hfd_rc rc = HFD_OK;

    if (hfd_db_broken(w->db))
        rc = hfd_db_reopen(w->db, err);
    for (int runs = 1; rc == HFD_OK; runs++) {
        const hfd_rc ended = run_transaction(w, list, rest, err);
        const bool lost = hfd_db_broken(w->db);

        if (ended == HFD_OK || runs == RUNS_MAX)
            return ended;
        if (!lost && hfd_db_fate(w->db) != HFD_DB_AGAIN)
            return ended;
        rc = lost ? reconnect(w, &committed, err) : HFD_OK;
        if (rc == HFD_OK && committed) {
            settle_commit(w);
            return HFD_OK;
        }
        if (rc == HFD_OK)
            count_rerun(lost ? "connection" : hfd_db_undone_by(w->db));
    }
    return rc;
}

static hfd_rc commit_list(struct hfd_writer *w, struct hfd_job *list, struct hfd_job **rest,
                          struct hfd_err *err)
{
    const int64_t start_us = hfd_clock_mono_us(w->clock);
    hfd_rc rc = hfd_writer_check(w, err);

    if (rc != HFD_OK)
        return rc;
    rc = w->shared ? run_until_sure(w, list, rest, err) : run_transaction(w, list, rest, err);
    if (rc == HFD_OK) {
        hfd_metric_add(HFD_METRIC_STORE_COMMITS, NULL, 1);
        hfd_metric_observe_us(HFD_METRIC_STORE_COMMIT_SECONDS, NULL,
                              hfd_clock_mono_us(w->clock) - start_us);
    } else if (rc == HFD_AWAY) {
        hfd_away_note(&w->away, err);
    } else if (hfd_db_broken(w->db)) {
        hfd_writer_break(w, err);
        rc = hfd_fail(err, HFD_IO, "it is not known whether this was stored: %s", w->cause.msg);
    }
    return rc;
}

/*
 * Runs a list and answers it. The list fails as a whole or not at all. A refusal may rest on the
 * writes of an earlier job, so it is only true if the commit succeeds.
 * @return jobs that were not answered
 */
static struct hfd_job *run_list(struct hfd_writer *w, struct hfd_job *list)
{
    struct hfd_job *rest = NULL;
    struct hfd_err err;
    const hfd_rc rc = commit_list(w, list, &rest, &err);

    for (struct hfd_job *job = list; rc != HFD_OK && job != NULL; job = hfd_job_next(job))
        hfd_job_finish(job, rc, &err);
    count_results(list);
    hfd_jobs_post(list);
    if (!w->shared && hfd_writer_ok(w) && hfd_db_cleanup(w->db, &err) != HFD_OK)
        hfd_writer_break(w, &err);
    return rest;
}

static void run_batch(struct hfd_writer *w, struct hfd_qnode *nodes)
{
    struct hfd_job *list = hfd_job_of(nodes);

    for (struct hfd_job *job = list; job != NULL; job = hfd_job_next(job))
        job->isolated = false;
    while (list != NULL)
        list = run_list(w, list);
}

/* ---- the thread ---- */

static void *writer_main(void *arg)
{
    struct hfd_writer *w = arg;
    struct hfd_qnode *list;
    size_t count;

    hfd_db_adopt(w->db);
    while ((list = hfd_queue_take(w->queue, w->batch_max, &count)) != NULL) {
        hfd_metric_set(HFD_METRIC_STORE_QUEUE, NULL, (int64_t)hfd_queue_length(w->queue));
        run_batch(w, list);
    }
    return NULL;
}

void hfd_writer_step(struct hfd_writer *w)
{
    size_t count;

    if (hfd_queue_length(w->queue) > 0)
        run_batch(w, hfd_queue_take(w->queue, w->batch_max, &count));
}

hfd_rc hfd_writer_open(struct hfd_writer *w, const struct hfd_store_config *config,
                       struct hfd_err *err)
{
    hfd_rc rc = hfd_queue_new(config->queue_max, &w->queue, err);

    w->batch_max = config->batch_max;
    w->clock = config->clock;
    if (rc == HFD_OK)
        rc = hfd_unit_init(&w->unit, HFD_UNIT_BYTES_MAX, err);
    if (rc == HFD_OK)
        rc = hfd_db_open(w->place, HFD_DB_WRITER, &w->db, err);
    if (rc == HFD_OK)
        rc = hfd_migrate(w->db, hfd_migrations, hfd_migrations_count, err);
    if (rc == HFD_OK)
        rc = hfd_move_check(w->db, err);
    w->shared = rc == HFD_OK && hfd_db_shared(w->db);
    if (w->shared && w->batch_max > SHARED_BATCH_MAX)
        w->batch_max = SHARED_BATCH_MAX;
    return rc;
}

hfd_rc hfd_writer_start(struct hfd_writer *w, struct hfd_err *err)
{
    hfd_rc rc = w->shared ? away_start(&w->away, w->place, err) : HFD_OK;

    if (rc != HFD_OK)
        return rc;
    rc = hfd_thread_start(
        &(struct hfd_thread){"hfd-writer", "open the store: thread", writer_main, w}, &w->thread,
        err);

    w->started = rc == HFD_OK;
    return rc;
}

void hfd_writer_close(struct hfd_writer *w)
{
    if (w->queue != NULL)
        hfd_queue_close(w->queue);
    if (w->started)
        (void)pthread_join(w->thread, NULL);
    away_stop(&w->away);
    if (w->db != NULL)
        hfd_db_adopt(w->db);
    hfd_db_close(&w->db);
    hfd_queue_free(w->queue);
    hfd_unit_fini(&w->unit);
    effects_fini(&w->effects);
}
