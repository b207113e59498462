/*
 * The executors: one writer thread that takes the whole queue per commit, reader threads, and the
 * caller's own reader. Nobody hears of success before the commit is on disk. See store.h. Source:
 * DESIGN.md sections 2 and 3, STYLE.md section 5.
 *
 * Locks: a lane's take_lock (below), held while waiting for its jobs; no other lock of ours is
 * taken under it but the queue's own.
 */
#include "store/store.h"

#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/base/thread.h"
#include "store/migrate.h"
#include "store/totals.h"
#include "store/txn.h"

#include <stdatomic.h>

#define QUEUE_MAX_DEFAULT 4096
#define BATCH_MAX_DEFAULT 1024
#define READERS_DEFAULT 2

struct worker {
    struct hfd_store *store;
    struct lane *lane; /* a reader's */
    struct hfd_db *db;
    pthread_t thread;
    bool started;
};

/* Threads that read, and what they work off. */
struct lane {
    struct hfd_queue *queue;
    pthread_mutex_t take_lock; /* one thread at a time waits on the queue: it has one receiver */
    void (*run)(struct worker *w, struct hfd_job *job);
    enum hfd_db_mode mode;
    const char *name;
    struct worker *workers;
    unsigned count;
};

struct hfd_store {
    unsigned magic;
#define STORE_MAGIC 0x5704e001u
    char *dir;
    size_t batch_max;
    const struct hfd_clock *clock;
    struct hfd_queue *updates;
    struct worker writer;
    struct lane views;
    bool stepped; /* no threads: hfd_store_step does their work */
    struct hfd_row_stamps stamps;
    struct hfd_tally tally;
    struct hfd_totals totals;
    atomic_uint readers_open; /* hfd_store_reader */
    atomic_bool broken;       /* set by the writer, after `cause` */
    struct hfd_err cause;
    void (*on_broken)(void *ctx);
    void *on_broken_ctx;
};

struct hfd_store_reader {
    unsigned magic;
#define READER_MAGIC 0x5704e002u
    struct hfd_store *store;
    struct hfd_db *db;
    struct hfd_row_cache *cache; /* NULL when there was no memory for one */
};

static struct hfd_job *next_job(const struct hfd_job *job)
{
    return (struct hfd_job *)job->node.next;
}

/* ---- answers ---- */

/*
 * Gives finished jobs back: one call per sink, in the order of submission within a sink. After the
 * call for its sink a job is its submitter's again. A handful of sinks (one per loop), so the list
 * is walked once for each.
 */
static void post_all(struct hfd_job *list)
{
    while (list != NULL) {
        struct hfd_sink *sink = list->sink;
        struct hfd_qnode *mine = NULL, **mine_end = &mine;
        struct hfd_qnode *rest = NULL, **rest_end = &rest;

        for (struct hfd_qnode *n = &list->node; n != NULL; n = n->next) {
            struct hfd_qnode ***end = ((struct hfd_job *)n)->sink == sink ? &mine_end : &rest_end;

            **end = n;
            *end = &n->next;
        }
        *mine_end = NULL;
        *rest_end = NULL;
        sink->post(sink, (struct hfd_job *)mine);
        list = (struct hfd_job *)rest;
    }
}

static void finish(struct hfd_job *job, hfd_rc rc, const struct hfd_err *err)
{
    job->rc = rc;
    if (rc != HFD_OK)
        job->err = *err;
    job->err.rc = rc;
}

static void finish_all(struct hfd_job *list, hfd_rc rc, const struct hfd_err *err)
{
    for (struct hfd_job *job = list; job != NULL; job = next_job(job))
        finish(job, rc, err);
}

/* ---- the writer ---- */

static hfd_rc fail_broken(const struct hfd_store *store, struct hfd_err *err)
{
    return hfd_fail(err, HFD_IO, "the store takes no more work until a restart, after: %s",
                    store->cause.msg);
}

static void turn_broken(struct hfd_store *store, const struct hfd_err *cause)
{
    if (atomic_load_explicit(&store->broken, memory_order_relaxed))
        return;
    store->cause = *cause;
    atomic_store_explicit(&store->broken, true, memory_order_release);
    hfd_metric_set(HFD_METRIC_STORE_OK, NULL, 0);
    HFD_LOG(HFD_LOG_ERROR, "the store failed and takes no more work",
            HFD_LOG_CSTR("reason", cause->msg));
    if (store->on_broken != NULL)
        store->on_broken(store->on_broken_ctx);
}

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

hfd_rc hfd_txn_check(struct hfd_txn *tx, struct hfd_err *err)
{
    return hfd_db_check(tx->db, err);
}

static void publish(struct hfd_tally *t)
{
    for (size_t i = 0; i < t->count; i++)
        hfd_series_add(t->items[i].series, t->items[i].delta);
}

static struct hfd_txn write_txn(struct hfd_store *store)
{
    return (struct hfd_txn){.db = store->writer.db,
                            .writable = true,
                            .stamps = &store->stamps,
                            .tally = &store->tally,
                            .totals = &store->totals};
}

static hfd_rc write_totals(struct hfd_store *store, struct hfd_err *err)
{
    struct hfd_txn tx = write_txn(store);

    return hfd_totals_write(&tx, err);
}

/* @return not HFD_OK when the transaction as a whole cannot go on */
static hfd_rc call_job(struct hfd_store *store, struct hfd_job *job, struct hfd_err *err)
{
    struct hfd_db *db = store->writer.db;
    struct hfd_txn tx = write_txn(store);
    const struct hfd_tally before = store->tally;
    hfd_rc rc;

    job->err = (struct hfd_err){.rc = HFD_OK};
    job->rc = job->fn(&tx, job->arg, &job->err);
    job->err.rc = job->rc;
    if (job->rc != HFD_OK)
        store->tally = before;
    if (!hfd_db_broken(db))
        return HFD_OK;
    rc = hfd_db_release(db, err); /* answered again by every call: the first reason */
    return rc != HFD_OK ? rc : HFD_IO;
}

/*
 * Without savepoints, up to a job that fails after it has written: then *undo is set, as all before
 * it must go with it.
 */
static hfd_rc run_freely(struct hfd_store *store, struct hfd_job *list, bool *undo,
                         struct hfd_err *err)
{
    struct hfd_db *db = store->writer.db;
    hfd_rc rc = HFD_OK;

    *undo = false;
    for (struct hfd_job *job = list; rc == HFD_OK && !*undo && job != NULL; job = next_job(job)) {
        const int64_t before = hfd_db_changes(db);

        rc = call_job(store, job, err);
        *undo = rc == HFD_OK && job->rc != HFD_OK && hfd_db_changes(db) != before;
    }
    return rc == HFD_OK && !*undo ? write_totals(store, err) : rc;
}

/* Each job between savepoint and release, so that one that fails takes its own writes back. */
static hfd_rc run_guarded(struct hfd_store *store, struct hfd_job *list, struct hfd_err *err)
{
    struct hfd_db *db = store->writer.db;
    hfd_rc rc = HFD_OK;

    for (struct hfd_job *job = list; rc == HFD_OK && job != NULL; job = next_job(job)) {
        rc = hfd_db_savepoint(db, err);
        if (rc == HFD_OK)
            rc = call_job(store, job, err);
        if (rc == HFD_OK && job->rc == HFD_OK)
            rc = write_totals(store, err);
        if (rc == HFD_OK)
            rc = job->rc == HFD_OK ? hfd_db_release(db, err) : hfd_db_rollback_to(db, err);
        hfd_totals_drop(&store->totals);
    }
    return rc;
}

/*
 * Within a savepoint the engine keeps a copy of every page that a job writes: a sixth of the work
 * of a PUT, for the rare job that fails after it has written. So all are tried without, and only if
 * one does so, all are undone and run again with savepoints.
 */
static hfd_rc run_transaction(struct hfd_store *store, struct hfd_job *list, struct hfd_err *err)
{
    struct hfd_db *db = store->writer.db;
    bool undo = false;
    hfd_rc rc = hfd_db_begin(db, err);

    if (rc != HFD_OK)
        return rc;
    store->tally = (struct hfd_tally){.count = 0};
    rc = run_freely(store, list, &undo, err);
    hfd_totals_drop(&store->totals);
    if (rc == HFD_OK && undo) {
        hfd_db_rollback(db);
        rc = hfd_db_begin(db, err);
        if (rc != HFD_OK)
            return rc;
        store->tally = (struct hfd_tally){.count = 0};
        rc = run_guarded(store, list, err);
    }
    if (rc == HFD_OK)
        rc = hfd_db_commit(db, err);
    if (rc != HFD_OK) {
        hfd_db_rollback(db);
        return rc;
    }
    hfd_row_stamps_commit(&store->stamps);
    publish(&store->tally); /* what was counted is on disk now */
    return HFD_OK;
}

static void count_results(const struct hfd_job *list)
{
    int64_t counts[HFD_RC_COUNT] = {0};

    for (const struct hfd_job *job = list; job != NULL; job = next_job(job))
        counts[job->rc]++;
    for (int rc = 0; rc < HFD_RC_COUNT; rc++)
        if (counts[rc] != 0)
            hfd_metric_add(HFD_METRIC_STORE_JOBS, HFD_LABELS(hfd_rc_name((hfd_rc)rc)), counts[rc]);
}

/*
 * A batch fails as a whole or not at all: a job that was refused may have been refused because of
 * what an earlier one wrote, so its answer too is only true if the commit is.
 */
static void run_batch(struct hfd_store *store, struct hfd_job *list)
{
    struct hfd_db *db = store->writer.db;
    int64_t start_us = hfd_clock_mono_us(store->clock);
    struct hfd_err err;
    hfd_rc rc;

    if (atomic_load_explicit(&store->broken, memory_order_relaxed)) {
        rc = fail_broken(store, &err);
    } else {
        rc = run_transaction(store, list, &err);
        if (rc == HFD_OK) {
            hfd_metric_add(HFD_METRIC_STORE_COMMITS, NULL, 1);
            hfd_metric_observe_us(HFD_METRIC_STORE_COMMIT_SECONDS, NULL,
                                  hfd_clock_mono_us(store->clock) - start_us);
        } else if (hfd_db_broken(db)) {
            turn_broken(store, &err);
            rc = hfd_fail(&err, HFD_IO, "it is not known whether this was stored: %s",
                          store->cause.msg);
        }
    }
    if (rc != HFD_OK)
        finish_all(list, rc, &err);
    count_results(list);
    post_all(list);
    if (!atomic_load_explicit(&store->broken, memory_order_relaxed) &&
        hfd_db_tidy(db, &err) != HFD_OK)
        turn_broken(store, &err);
}

static void *writer_main(void *arg)
{
    struct worker *w = arg;
    struct hfd_store *store = w->store;
    struct hfd_qnode *list;
    size_t count;

    hfd_db_adopt(w->db);
    while ((list = hfd_queue_take(store->updates, store->batch_max, &count)) != NULL) {
        hfd_metric_set(HFD_METRIC_STORE_QUEUE, NULL, (int64_t)hfd_queue_length(store->updates));
        run_batch(store, (struct hfd_job *)list);
    }
    return NULL;
}

/* ---- readers ---- */

/*
 * A connection that broke is opened anew: what a reader saw says nothing about the next one, and
 * nothing is lost with it.
 */
static hfd_rc reopen_if_broken(const struct hfd_store *store, struct hfd_db **db,
                               struct hfd_err *err)
{
    if (*db != NULL && !hfd_db_broken(*db))
        return HFD_OK;
    hfd_db_close(db);
    return hfd_db_open(store->dir, HFD_DB_READER, db, err);
}

/* Runs fn in a snapshot of a connection that was made for it. */
static hfd_rc read_snapshot(struct hfd_txn *tx, hfd_txn_fn *fn, void *arg, struct hfd_err *err)
{
    hfd_rc rc = hfd_db_begin(tx->db, err);

    if (rc != HFD_OK)
        return rc;
    rc = fn(tx, arg, err);
    hfd_db_rollback(tx->db); /* the end of the snapshot; there is nothing to undo */
    return rc;
}

static void run_view(struct worker *w, struct hfd_job *job)
{
    struct hfd_err err = {.rc = HFD_OK};
    hfd_rc rc = reopen_if_broken(w->store, &w->db, &err);

    if (rc == HFD_OK) {
        struct hfd_txn tx = {.db = w->db};

        rc = read_snapshot(&tx, job->fn, job->arg, &err);
    }
    finish(job, rc, &err);
    post_all(job);
}

static void *reader_main(void *arg)
{
    struct worker *w = arg;
    struct lane *lane = w->lane;

    hfd_db_adopt(w->db);
    for (;;) {
        struct hfd_qnode *node;
        size_t count;

        (void)pthread_mutex_lock(&lane->take_lock);
        node = hfd_queue_take(lane->queue, 1, &count);
        (void)pthread_mutex_unlock(&lane->take_lock);
        if (node == NULL)
            break;
        lane->run(w, (struct hfd_job *)node);
    }
    if (w->db != NULL)
        hfd_db_close(&w->db);
    return NULL;
}

hfd_rc hfd_store_reader_open(struct hfd_store *store, struct hfd_store_reader **out,
                             struct hfd_err *err)
{
    struct hfd_store_reader *reader = calloc(1, sizeof(*reader));
    hfd_rc rc;

    HFD_CHECK_OBJ(store, STORE_MAGIC);
    *out = NULL;
    if (reader == NULL)
        return hfd_fail(err, HFD_NOMEM, "open a store reader");
    rc = hfd_db_open(store->dir, HFD_DB_READER, &reader->db, err);
    if (rc != HFD_OK) {
        free(reader);
        return rc;
    }
    reader->magic = READER_MAGIC;
    reader->store = store;
    reader->cache = hfd_row_cache_new(&store->stamps);
    atomic_fetch_add(&store->readers_open, 1);
    *out = reader;
    return HFD_OK;
}

void hfd_store_reader_close(struct hfd_store_reader **readerp)
{
    struct hfd_store_reader *reader = *readerp;

    *readerp = NULL;
    if (reader == NULL)
        return;
    HFD_CHECK_OBJ(reader, READER_MAGIC);
    hfd_row_cache_free(reader->cache);
    hfd_db_close(&reader->db);
    atomic_fetch_sub(&reader->store->readers_open, 1);
    reader->magic = 0;
    free(reader);
}

hfd_rc hfd_store_read(struct hfd_store_reader *reader, hfd_txn_fn *fn, void *arg,
                      struct hfd_err *err)
{
    struct hfd_txn tx;
    hfd_rc rc;

    HFD_CHECK_OBJ(reader, READER_MAGIC);
    rc = reopen_if_broken(reader->store, &reader->db, err);
    if (rc != HFD_OK)
        return rc;
    tx = (struct hfd_txn){.db = reader->db,
                          .cache = reader->cache,
                          .seq = hfd_row_stamps_now(&reader->store->stamps)};
    return read_snapshot(&tx, fn, arg, err);
}

/* ---- one thread for all ---- */

static void step_lane(struct lane *lane)
{
    size_t count;

    while (hfd_queue_length(lane->queue) > 0)
        lane->run(&lane->workers[0], (struct hfd_job *)hfd_queue_take(lane->queue, 1, &count));
}

void hfd_store_step(struct hfd_store *store)
{
    HFD_CHECK_OBJ(store, STORE_MAGIC);
    HFD_ASSERT(store->stepped);
    if (hfd_queue_length(store->updates) > 0) {
        size_t count;
        struct hfd_qnode *list = hfd_queue_take(store->updates, store->batch_max, &count);

        run_batch(store, (struct hfd_job *)list);
    }
    step_lane(&store->views);
}

/* ---- submitting ---- */

static hfd_rc submit(struct hfd_store *store, struct hfd_queue *queue, struct hfd_job *job,
                     struct hfd_err *err)
{
    HFD_CHECK_OBJ(store, STORE_MAGIC);
    if (!hfd_store_ok(store))
        return fail_broken(store, err);
    if (hfd_queue_push(queue, &job->node) != HFD_OK)
        return hfd_fail(err, HFD_BUSY, "the store has too much work queued");
    return HFD_OK;
}

hfd_rc hfd_store_update(struct hfd_store *store, struct hfd_job *job, struct hfd_err *err)
{
    hfd_rc rc = submit(store, store->updates, job, err);

    if (rc != HFD_OK)
        hfd_metric_add(HFD_METRIC_STORE_JOBS, HFD_LABELS(hfd_rc_name(rc)), 1);
    return rc;
}

hfd_rc hfd_store_view(struct hfd_store *store, struct hfd_job *job, struct hfd_err *err)
{
    return submit(store, store->views.queue, job, err);
}

struct waiter {
    struct hfd_sink sink; /* first member */
    pthread_mutex_t lock;
    pthread_cond_t posted;
    bool done;
};

static void wake_waiter(struct hfd_sink *sink, struct hfd_job *list)
{
    struct waiter *w = (struct waiter *)sink;

    (void)list; /* its one job */
    (void)pthread_mutex_lock(&w->lock);
    w->done = true;
    (void)pthread_cond_signal(
        &w->posted); /* under the lock: the waiter takes w away as soon as it has it */
    (void)pthread_mutex_unlock(&w->lock);
}

hfd_rc hfd_store_update_wait(struct hfd_store *store, hfd_txn_fn *fn, void *arg,
                             struct hfd_err *err)
{
    struct waiter w = {.sink = {wake_waiter},
                       .lock = PTHREAD_MUTEX_INITIALIZER,
                       .posted = PTHREAD_COND_INITIALIZER};
    struct hfd_job job = {.fn = fn, .arg = arg, .sink = &w.sink};
    hfd_rc rc = hfd_store_update(store, &job, err);

    if (rc == HFD_OK) {
        while (store->stepped && !w.done)
            hfd_store_step(store);
        (void)pthread_mutex_lock(&w.lock);
        while (!w.done)
            (void)pthread_cond_wait(&w.posted, &w.lock);
        (void)pthread_mutex_unlock(&w.lock);
        rc = job.rc;
        if (rc != HFD_OK && err != NULL)
            *err = job.err;
    }
    (void)pthread_cond_destroy(&w.posted);
    (void)pthread_mutex_destroy(&w.lock);
    return rc;
}

bool hfd_store_ok(const struct hfd_store *store)
{
    return !atomic_load_explicit(&store->broken, memory_order_acquire);
}

void hfd_store_on_broken(struct hfd_store *store, void (*fn)(void *ctx), void *ctx)
{
    store->on_broken_ctx = ctx;
    store->on_broken = fn;
}

/* ---- opening and closing ---- */

static hfd_rc start(struct worker *w, void *(*body)(void *), const char *name, struct hfd_err *err)
{
    hfd_rc rc = hfd_thread_start(&(struct hfd_thread){name, "open the store: thread", body, w},
                                 &w->thread, err);

    w->started = rc == HFD_OK;
    return rc;
}

static hfd_rc open_writer(struct hfd_store *store, struct hfd_err *err)
{
    hfd_rc rc = hfd_db_open(store->dir, HFD_DB_WRITER, &store->writer.db, err);

    if (rc == HFD_OK)
        rc = hfd_migrate(store->writer.db, hfd_migrations, hfd_migrations_count, err);
    return rc;
}

static hfd_rc open_lane(struct hfd_store *store, struct lane *lane, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (unsigned i = 0; rc == HFD_OK && i < lane->count; i++) {
        lane->workers[i].store = store;
        lane->workers[i].lane = lane;
        rc = hfd_db_open(store->dir, lane->mode, &lane->workers[i].db, err);
    }
    return rc;
}

static hfd_rc start_lane(struct lane *lane, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (unsigned i = 0; rc == HFD_OK && i < lane->count; i++)
        rc = start(&lane->workers[i], reader_main, lane->name, err);
    return rc;
}

static hfd_rc start_all(struct hfd_store *store, struct hfd_err *err)
{
    hfd_rc rc;

    if (store->stepped)
        return HFD_OK;
    rc = start(&store->writer, writer_main, "hfd-writer", err);
    return rc == HFD_OK ? start_lane(&store->views, err) : rc;
}

static hfd_rc make_lane(struct lane *lane, unsigned count, size_t queue_max, struct hfd_err *err)
{
    lane->workers = calloc(count, sizeof(*lane->workers));
    if (lane->workers == NULL)
        return hfd_fail(err, HFD_NOMEM, "open the store");
    lane->count = count;
    return hfd_queue_new(queue_max, &lane->queue, err);
}

static hfd_rc make_parts(const struct hfd_store_config *config, struct hfd_store *store,
                         struct hfd_err *err)
{
    size_t queue_max = config->queue_max != 0 ? config->queue_max : QUEUE_MAX_DEFAULT;
    hfd_rc rc;

    store->batch_max = config->batch_max != 0 ? config->batch_max : BATCH_MAX_DEFAULT;
    store->stepped = config->stepped;
    store->clock = config->clock != NULL ? config->clock : &hfd_clock_system;
    store->writer.store = store;
    store->dir = strdup(config->dir);
    if (store->dir == NULL)
        return hfd_fail(err, HFD_NOMEM, "open the store");
    rc = hfd_queue_new(queue_max, &store->updates, err);
    if (rc == HFD_OK)
        rc = make_lane(&store->views, config->readers != 0 ? config->readers : READERS_DEFAULT,
                       queue_max, err);
    return rc;
}

hfd_rc hfd_store_open(const struct hfd_store_config *config, struct hfd_store **out,
                      struct hfd_err *err)
{
    struct hfd_store *store = calloc(1, sizeof(*store));
    hfd_rc rc;

    *out = NULL;
    if (store == NULL)
        return hfd_fail(err, HFD_NOMEM, "open the store");
    store->magic = STORE_MAGIC;
    store->views = (struct lane){.take_lock = PTHREAD_MUTEX_INITIALIZER,
                                 .run = run_view,
                                 .mode = HFD_DB_READER,
                                 .name = "hfd-reader"};
    rc = make_parts(config, store, err);
    if (rc == HFD_OK)
        rc = open_writer(store, err);
    if (rc == HFD_OK)
        rc = open_lane(store, &store->views, err);
    if (rc == HFD_OK)
        rc = start_all(store, err);
    if (rc != HFD_OK) {
        hfd_store_close(&store);
        return rc;
    }
    hfd_metric_set(HFD_METRIC_STORE_OK, NULL, 1);
    *out = store;
    return HFD_OK;
}

static void join(struct worker *w)
{
    if (w->started)
        (void)pthread_join(w->thread, NULL);
}

static void close_db(struct worker *w)
{
    if (w->db == NULL)
        return;
    hfd_db_adopt(w->db);
    hfd_db_close(&w->db);
}

/* Lets the queued jobs finish. */
static void close_lane(struct lane *lane)
{
    if (lane->queue != NULL)
        hfd_queue_close(lane->queue);
    for (unsigned i = 0; i < lane->count; i++) {
        join(&lane->workers[i]);
        close_db(&lane->workers[i]);
    }
    hfd_queue_free(lane->queue);
    (void)pthread_mutex_destroy(&lane->take_lock);
    free(lane->workers);
}

static bool waiting(const struct hfd_store *store)
{
    return store->views.queue != NULL && /* made last */
           hfd_queue_length(store->updates) + hfd_queue_length(store->views.queue) > 0;
}

void hfd_store_close(struct hfd_store **storep)
{
    struct hfd_store *store = *storep;

    *storep = NULL;
    if (store == NULL)
        return;
    HFD_CHECK_OBJ(store, STORE_MAGIC);
    HFD_ASSERT(atomic_load(&store->readers_open) == 0);
    while (store->stepped && waiting(store))
        hfd_store_step(store);
    /* Each gives work to those behind it. */
    close_lane(&store->views);
    if (store->updates != NULL)
        hfd_queue_close(store->updates);
    join(&store->writer);
    close_db(&store->writer); /* last: it checkpoints, and lets the next process in */
    hfd_queue_free(store->updates);
    free(store->dir);
    store->magic = 0;
    free(store);
}
