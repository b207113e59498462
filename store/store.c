/*
 * Opens and closes the store, and takes its jobs. writer.h runs those that write. The readers run
 * here: threads for views, and connections of callers for point reads. Each has a connection of
 * its own, and each call sees one snapshot.
 *
 * Reads of single rows on a database that others write to as well: one thread with one connection
 * takes all reads that wait. It makes them in one snapshot, with few round trips. So no caller
 * waits for the database itself.
 *
 * Locks: the readers' take_lock, held while waiting for views; under it only the queue's own.
 */
#include "store/store.h"

#include "driver/base/check.h"
#include "driver/base/container.h"
#include "driver/base/metrics.h"
#include "driver/base/thread.h"
#include "store/writer.h"
#include "store/txn.h"

#define QUEUE_MAX_DEFAULT 4096
#define BATCH_MAX_DEFAULT 1024
#define READERS_DEFAULT 2

hfd_rc hfd_txn_check(struct hfd_txn *tx, struct hfd_meter *meter, struct hfd_err *err)
{
    const hfd_rc rc = hfd_unit_write(tx, err);

    hfd_meter_set(meter, &(struct hfd_meter_at){.what = "checking pages and indexes"});
    return rc == HFD_OK ? hfd_db_check(tx->db, err) : rc;
}

/* ---- reader ---- */

#define AGAIN_WITHIN_US HFD_US_PER_S

/*
 * A broken connection is opened anew. It lost nothing but its snapshot, and its failure says
 * nothing about the next one.
 */
static hfd_rc reopen_if_broken(const struct hfd_store_place *place, struct hfd_db **db,
                               struct hfd_err *err)
{
    if (*db != NULL && !hfd_db_broken(*db))
        return HFD_OK;
    hfd_db_close(db);
    return hfd_db_open(place, HFD_DB_READER, db, err);
}

static hfd_rc read_snapshot(struct hfd_txn *tx, hfd_txn_fn *fn, void *arg, struct hfd_err *err)
{
    hfd_rc rc = hfd_db_begin(tx->db, err);

    if (rc != HFD_OK)
        return rc;
    rc = fn(tx, arg, err);
    hfd_db_rollback(tx->db); /* the end of the snapshot; there is nothing to undo */
    return rc;
}

/* ---- views ---- */

struct view {
    const struct hfd_readers *all;
    struct hfd_job *job;
    int64_t until_us; /* mono; 0 = no limit */
};

static bool view_must_end(void *ctx)
{
    const struct view *v = ctx;

    return atomic_load(&v->job->cancelled) ||
           (v->until_us != 0 && hfd_clock_mono_us(v->all->clock) >= v->until_us);
}

static hfd_rc run_watched(struct hfd_reader_thread *t, struct view *v, struct hfd_err *err)
{
    struct hfd_db *db = t->db;
    struct hfd_txn tx = {.db = db, .unit = t->unit.mem != NULL ? &t->unit : NULL};
    hfd_rc rc;

    if (tx.unit != NULL)
        hfd_unit_begin(tx.unit);
    if (v->all->read_timeout_us != 0)
        v->until_us = hfd_clock_mono_us(v->all->clock) + v->all->read_timeout_us;
    hfd_db_watch(db, view_must_end, v);
    rc = read_snapshot(&tx, v->job->fn, v->job->arg, err);
    hfd_db_watch(db, NULL, NULL);
    return rc;
}

static hfd_rc run_once(struct hfd_reader_thread *t, struct view *v, struct hfd_err *err)
{
    const hfd_rc rc = reopen_if_broken(t->all->place, &t->db, err);

    return rc == HFD_OK ? run_watched(t, v, err) : rc;
}

static hfd_rc run_reachable(struct hfd_reader_thread *t, struct view *v, struct hfd_err *err)
{
    const int64_t began_us = hfd_clock_mono_us(t->all->clock);
    hfd_rc rc = hfd_away_check(t->all->away, err);

    if (rc != HFD_OK) /* it went away while the view waited */
        return rc;
    rc = run_once(t, v, err);
    /* The connection was lost since its last use; a server that is silent is not asked again. */
    if (rc == HFD_AWAY && hfd_clock_mono_us(t->all->clock) - began_us < AGAIN_WITHIN_US)
        rc = run_once(t, v, err);
    if (rc == HFD_AWAY)
        hfd_away_note(t->all->away, err);
    return rc;
}

static void run_view(struct hfd_reader_thread *t, struct hfd_job *job)
{
    struct view v = {.all = t->all, .job = job};
    struct hfd_err err = {.rc = HFD_OK};
    hfd_rc rc;

    hfd_trace_enter(&job->trace);
    if (atomic_load(&job->cancelled))
        rc = hfd_fail(&err, HFD_TIMEOUT, "read: cancelled");
    else
        rc = run_reachable(t, &v, &err);
    hfd_trace_enter(NULL);
    hfd_job_finish(job, rc, &err);
    hfd_jobs_post(job);
}

static void *reader_main(void *arg)
{
    struct hfd_reader_thread *t = arg;
    struct hfd_lane *lane = t->lane;

    hfd_db_adopt(t->db);
    for (;;) {
        struct hfd_qnode *node;
        size_t count;

        (void)pthread_mutex_lock(&lane->take_lock);
        node = hfd_queue_take(lane->queue, 1, &count);
        (void)pthread_mutex_unlock(&lane->take_lock);
        if (node == NULL)
            break;
        run_view(t, hfd_job_of(node));
    }
    hfd_db_close(&t->db);
    return NULL;
}

/* Queues a view. HFD_OK, HFD_BUSY (full or closed). Thread: any. */
static hfd_rc readers_push(struct hfd_readers *r, struct hfd_job *job)
{
    return hfd_queue_push(job->is_short ? r->short_lane.queue : r->lane.queue, &job->node);
}

static size_t waiting_on(const struct hfd_lane *lane)
{
    return lane->queue != NULL ? hfd_queue_length(lane->queue) : 0;
}

/* How many views wait. Accepts one half open. Thread: any. */
static size_t readers_waiting(const struct hfd_readers *r)
{
    return waiting_on(&r->short_lane) + waiting_on(&r->lane);
}

/* Runs all views that are queued. Thread: of a stepped store. */
static void readers_step(struct hfd_readers *r)
{
    size_t count;

    while (readers_waiting(r) > 0) {
        struct hfd_lane *lane = waiting_on(&r->short_lane) > 0 ? &r->short_lane : &r->lane;

        run_view(&r->threads[0], hfd_job_of(hfd_queue_take(lane->queue, 1, &count)));
    }
}

static hfd_rc open_lane(struct hfd_lane *lane, size_t queue_max, struct hfd_err *err)
{
    lane->take_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    return hfd_queue_new(queue_max, &lane->queue, err);
}

static void close_lane(struct hfd_lane *lane)
{
    if (lane->queue != NULL)
        hfd_queue_close(lane->queue);
}

static void free_lane(struct hfd_lane *lane)
{
    if (lane->queue == NULL)
        return;
    hfd_queue_free(lane->queue);
    (void)pthread_mutex_destroy(&lane->take_lock);
}

static hfd_rc readers_open(struct hfd_readers *r, const struct hfd_store_config *config,
                           struct hfd_err *err)
{
    hfd_rc rc = open_lane(&r->lane, config->queue_max, err);

    if (rc == HFD_OK)
        rc = open_lane(&r->short_lane, config->queue_max, err);
    if (rc != HFD_OK)
        return rc;
    r->clock = config->clock;
    r->read_timeout_us = config->read_timeout_us;
    r->threads = calloc(config->readers + 1u, sizeof(*r->threads));
    if (r->threads == NULL)
        return hfd_fail_nomem(err, "open the store");
    r->count = config->readers + 1;
    for (unsigned i = 0; rc == HFD_OK && i < r->count; i++) {
        r->threads[i].all = r;
        r->threads[i].lane = i < config->readers ? &r->lane : &r->short_lane;
        rc = hfd_db_open(r->place, HFD_DB_READER, &r->threads[i].db, err);
        if (rc == HFD_OK && hfd_db_shared(r->threads[i].db))
            rc = hfd_unit_init(&r->threads[i].unit, HFD_UNIT_READ_BYTES_MAX, err);
    }
    return rc;
}

/* Starts the threads. A stepped store does not. */
static hfd_rc readers_start(struct hfd_readers *r, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (unsigned i = 0; rc == HFD_OK && i < r->count; i++) {
        struct hfd_reader_thread *t = &r->threads[i];

        rc = hfd_thread_start(
            &(struct hfd_thread){"hfd-reader", "open the store: thread", reader_main, t},
            &t->thread, err);
        t->started = rc == HFD_OK;
    }
    return rc;
}

/* Finishes what is queued, ends the threads. Accepts one half open. */
static void readers_close(struct hfd_readers *r)
{
    close_lane(&r->lane);
    close_lane(&r->short_lane);
    for (unsigned i = 0; i < r->count; i++) {
        struct hfd_reader_thread *t = &r->threads[i];

        if (t->started)
            (void)pthread_join(t->thread, NULL);
        if (t->db != NULL)
            hfd_db_adopt(t->db);
        hfd_db_close(&t->db);
        hfd_unit_fini(&t->unit);
    }
    free_lane(&r->lane);
    free_lane(&r->short_lane);
    free(r->threads);
}

/* ---- point reads ---- */

/* In a build of real.test_replicas the row cache stays, so that its check is seen failing. */
#ifndef HFD_TEST_CACHE_STAYS
#define HFD_TEST_CACHE_STAYS false
#endif

bool hfd_store_has_point_reads(const struct hfd_store *store)
{
    return store->writer.shared && !HFD_TEST_CACHE_STAYS;
}

struct hfd_store_reader {
    unsigned magic;
#define READER_MAGIC 0x5704e002u
    struct hfd_store *store;
    struct hfd_db *db;
    struct hfd_row_cache *cache; /* NULL: no memory for one, or others write */
};

hfd_rc hfd_store_reader_open(struct hfd_store *store, struct hfd_store_reader **out,
                             struct hfd_err *err)
{
    struct hfd_store_reader *reader = calloc(1, sizeof(*reader));
    hfd_rc rc;

    HFD_CHECK_OBJ(store, STORE_MAGIC);
    *out = NULL;
    if (reader == NULL)
        return hfd_fail_nomem(err, "open a store reader");
    rc = hfd_db_open(&store->place, HFD_DB_READER, &reader->db, err);
    if (rc != HFD_OK) {
        free(reader);
        return rc;
    }
    reader->magic = READER_MAGIC;
    reader->store = store;
    /* A cache would not see what other programs commit. */
    if (!store->writer.shared || HFD_TEST_CACHE_STAYS)
        reader->cache = hfd_row_cache_new(&store->writer.stamps);
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

static hfd_rc read_now(struct hfd_store_reader *reader, hfd_txn_fn *fn, void *arg,
                       struct hfd_err *err)
{
    struct hfd_txn tx;
    hfd_rc rc = reopen_if_broken(&reader->store->place, &reader->db, err);

    if (rc != HFD_OK)
        return rc;
    tx = (struct hfd_txn){.db = reader->db,
                          .cache = reader->cache,
                          .seq = atomic_load(&reader->store->writer.stamps.committed)};
    return read_snapshot(&tx, fn, arg, err);
}

hfd_rc hfd_store_read(struct hfd_store_reader *reader, hfd_txn_fn *fn, void *arg,
                      struct hfd_err *err)
{
    struct hfd_err why;
    struct hfd_writer *w;
    int64_t began_us = 0;
    hfd_rc rc;

    HFD_CHECK_OBJ(reader, READER_MAGIC);
    w = &reader->store->writer;
    rc = hfd_away_check(&w->away, err);
    if (rc != HFD_OK)
        return rc;
    if (w->shared)
        began_us = hfd_clock_mono_us(w->clock);
    rc = read_now(reader, fn, arg, &why);
    /* The connection was lost since its last use; a server that is silent is not asked again. */
    if (rc == HFD_AWAY && hfd_clock_mono_us(w->clock) - began_us < AGAIN_WITHIN_US)
        rc = read_now(reader, fn, arg, &why);
    if (rc == HFD_AWAY)
        hfd_away_note(&w->away, &why);
    if (rc != HFD_OK && err != NULL)
        *err = why;
    return rc;
}

hfd_rc hfd_store_signal(struct hfd_store_reader *reader, const struct hfd_db_signal *signal,
                        bool *heard, struct hfd_err *err)
{
    hfd_rc rc;

    HFD_CHECK_OBJ(reader, READER_MAGIC);
    *heard = false;
    rc = reopen_if_broken(&reader->store->place, &reader->db, err);
    return rc == HFD_OK ? hfd_db_signal(reader->db, signal, heard, err) : rc;
}

/* ---- points ---- */

#define GROUP_MAX 256 /* reads of one snapshot */

static hfd_rc points_reopen_if_broken(struct hfd_point_reads *p, struct hfd_err *err)
{
    if (p->db != NULL && !hfd_db_broken(p->db))
        return HFD_OK;
    hfd_db_close(&p->db);
    return hfd_db_open(p->place, HFD_DB_POINTS, &p->db, err);
}

static void run_each(struct hfd_point_reads *p, struct hfd_job *list)
{
    struct hfd_txn tx = {.db = p->db};

    for (struct hfd_job *job = list; job != NULL; job = hfd_job_next(job)) {
        job->err = (struct hfd_err){.rc = HFD_OK};
        job->rc = job->fn(&tx, job->arg, &job->err);
        job->err.rc = job->rc;
    }
}

/* Runs all jobs in one snapshot. They run again while the engine reads for them. */
static hfd_rc run_group(struct hfd_point_reads *p, struct hfd_job *list, struct hfd_err *err)
{
    hfd_rc rc = hfd_db_begin_group(p->db, err);
    bool again = true;

    if (rc != HFD_OK)
        return rc;
    while (rc == HFD_OK && again) {
        run_each(p, list);
        rc = hfd_db_cause(p->db, err);
        if (rc == HFD_OK)
            rc = hfd_db_look(p->db, &again, err);
    }
    hfd_db_rollback(p->db); /* costs a round trip only if the first read was not enough */
    return rc;
}

static hfd_rc points_run_once(struct hfd_point_reads *p, struct hfd_job *list, struct hfd_err *err)
{
    const hfd_rc rc = points_reopen_if_broken(p, err);

    return rc == HFD_OK ? run_group(p, list, err) : rc;
}

static hfd_rc points_run_reachable(struct hfd_point_reads *p, struct hfd_job *list,
                                   struct hfd_err *err)
{
    const int64_t began_us = hfd_clock_mono_us(p->clock);
    hfd_rc rc = hfd_away_check(p->away, err);

    if (rc != HFD_OK) /* it went away while they waited */
        return rc;
    rc = points_run_once(p, list, err);
    /* The connection was lost since its last use; a server that is silent is not asked again. */
    if (rc == HFD_AWAY && hfd_clock_mono_us(p->clock) - began_us < AGAIN_WITHIN_US)
        rc = points_run_once(p, list, err);
    if (rc == HFD_AWAY)
        hfd_away_note(p->away, err);
    return rc;
}

static void run_list(struct hfd_point_reads *p, struct hfd_job *list)
{
    struct hfd_err err = {.rc = HFD_OK};
    const hfd_rc rc = points_run_reachable(p, list, &err);

    for (struct hfd_job *job = list; rc != HFD_OK && job != NULL; job = hfd_job_next(job))
        hfd_job_finish(job, rc, &err);
    hfd_jobs_post(list);
}

static void *points_main(void *arg)
{
    struct hfd_point_reads *p = arg;
    struct hfd_qnode *list;
    size_t count;

    hfd_db_adopt(p->db);
    while ((list = hfd_queue_take(p->queue, GROUP_MAX, &count)) != NULL)
        run_list(p, hfd_job_of(list));
    hfd_db_close(&p->db);
    return NULL;
}

/* Queues a read. HFD_OK, HFD_BUSY (full or closed). Thread: any. */
static hfd_rc points_push(struct hfd_point_reads *p, struct hfd_job *job)
{
    HFD_ASSERT(p->queue != NULL);
    return hfd_queue_push(p->queue, &job->node);
}

/* Opens the connection. HFD_OK, HFD_AWAY, HFD_INVALID, HFD_NOMEM, HFD_IO */
static hfd_rc points_open(struct hfd_point_reads *p, size_t queue_max, struct hfd_err *err)
{
    const hfd_rc rc = hfd_queue_new(queue_max, &p->queue, err);

    return rc == HFD_OK ? hfd_db_open(p->place, HFD_DB_POINTS, &p->db, err) : rc;
}

static hfd_rc points_start(struct hfd_point_reads *p, struct hfd_err *err)
{
    const hfd_rc rc = hfd_thread_start(
        &(struct hfd_thread){"hfd-points", "open the store: thread", points_main, p}, &p->thread,
        err);

    p->started = rc == HFD_OK;
    return rc;
}

/* Finishes what is queued, ends the thread. Accepts one half open, and one that is not. */
static void points_close(struct hfd_point_reads *p)
{
    if (p->queue == NULL)
        return;
    hfd_queue_close(p->queue);
    if (p->started)
        (void)pthread_join(p->thread, NULL);
    if (p->db != NULL)
        hfd_db_adopt(p->db);
    hfd_db_close(&p->db);
    hfd_queue_free(p->queue);
}

/* ---- submitting ---- */

/* Gives the refusal of a queue its text. */
static hfd_rc pushed(hfd_rc rc, struct hfd_err *err)
{
    return rc == HFD_OK ? rc : hfd_fail(err, HFD_BUSY, "the store has too much work queued");
}

hfd_rc hfd_store_update(struct hfd_store *store, struct hfd_job *job, struct hfd_err *err)
{
    hfd_rc rc;

    HFD_CHECK_OBJ(store, STORE_MAGIC);
    rc = hfd_writer_check(&store->writer, err);
    job->trace = *hfd_trace_now();
    if (rc == HFD_OK)
        rc = pushed(hfd_queue_push(store->writer.queue, &job->node), err);
    if (rc != HFD_OK)
        hfd_metric_add(HFD_METRIC_STORE_JOBS, HFD_LABELS(hfd_rc_name(rc)), 1);
    return rc;
}

hfd_rc hfd_store_view(struct hfd_store *store, struct hfd_job *job, struct hfd_err *err)
{
    hfd_rc rc;

    HFD_CHECK_OBJ(store, STORE_MAGIC);
    rc = hfd_writer_check(&store->writer, err);
    job->trace = *hfd_trace_now();
    return rc == HFD_OK ? pushed(readers_push(&store->readers, job), err) : rc;
}

hfd_rc hfd_store_point(struct hfd_store *store, struct hfd_job *job, struct hfd_err *err)
{
    hfd_rc rc;

    HFD_CHECK_OBJ(store, STORE_MAGIC);
    rc = hfd_writer_check(&store->writer, err);
    return rc == HFD_OK ? pushed(points_push(&store->points, job), err) : rc;
}

void hfd_store_step(struct hfd_store *store)
{
    HFD_CHECK_OBJ(store, STORE_MAGIC);
    HFD_ASSERT(store->stepped);
    hfd_writer_step(&store->writer);
    readers_step(&store->readers);
}

struct waiter {
    struct hfd_sink sink;
    pthread_mutex_t lock;
    pthread_cond_t posted;
    bool done;
};

static void wake_waiter(struct hfd_sink *sink, struct hfd_job *list)
{
    struct waiter *w = HFD_CONTAINER_OF(sink, struct waiter, sink);

    (void)list; /* its one job */
    (void)pthread_mutex_lock(&w->lock);
    w->done = true;
    /* Under the lock: the waiter takes w away as soon as it has it. */
    (void)pthread_cond_signal(&w->posted);
    (void)pthread_mutex_unlock(&w->lock);
}

hfd_rc hfd_store_job_wait(struct hfd_store *store, struct hfd_job *job, struct hfd_err *err)
{
    struct waiter w = {.sink = {wake_waiter},
                       .lock = PTHREAD_MUTEX_INITIALIZER,
                       .posted = PTHREAD_COND_INITIALIZER};
    hfd_rc rc;

    job->sink = &w.sink;
    rc = hfd_store_update(store, job, err);
    if (rc == HFD_OK) {
        while (store->stepped && !w.done)
            hfd_store_step(store);
        (void)pthread_mutex_lock(&w.lock);
        while (!w.done)
            (void)pthread_cond_wait(&w.posted, &w.lock);
        (void)pthread_mutex_unlock(&w.lock);
        rc = job->rc;
        if (rc != HFD_OK && err != NULL)
            *err = job->err;
    }
    job->sink = NULL;
    (void)pthread_cond_destroy(&w.posted);
    (void)pthread_mutex_destroy(&w.lock);
    return rc;
}

hfd_rc hfd_store_update_wait(struct hfd_store *store, hfd_txn_fn *fn, void *arg,
                             struct hfd_err *err)
{
    struct hfd_job job = {.fn = fn, .arg = arg};

    return hfd_store_job_wait(store, &job, err);
}

bool hfd_store_ok(const struct hfd_store *store)
{
    return hfd_writer_ok(&store->writer);
}

bool hfd_store_is_away(struct hfd_store *store)
{
    return hfd_away_check(&store->writer.away, NULL) != HFD_OK;
}

void hfd_store_break(struct hfd_store *store, const struct hfd_err *why)
{
    HFD_CHECK_OBJ(store, STORE_MAGIC);
    hfd_writer_break(&store->writer, why);
}

void hfd_store_on_broken(struct hfd_store *store, void (*fn)(void *ctx), void *ctx)
{
    store->writer.on_broken_ctx = ctx;
    store->writer.on_broken = fn;
}

/* ---- changes ---- */

struct hfd_row_stamps *hfd_store_stamps(struct hfd_store *store)
{
    return &store->writer.stamps;
}

void hfd_store_on_change(struct hfd_store *store, void (*fn)(void *ctx), void *ctx)
{
    store->writer.on_change_ctx = ctx;
    store->writer.on_change = fn;
}

/* ---- opening and closing ---- */

static hfd_rc open_points(struct hfd_store *store, const struct hfd_store_config *config,
                          struct hfd_err *err)
{
    hfd_rc rc;

    store->points.place = &store->place;
    store->points.away = &store->writer.away;
    store->points.clock = config->clock;
    rc = points_open(&store->points, config->queue_max, err);
    return rc == HFD_OK ? points_start(&store->points, err) : rc;
}

static hfd_rc open_parts(struct hfd_store *store, const struct hfd_store_config *asked,
                         struct hfd_err *err)
{
    const struct hfd_store_config config = {
        .place = store->place,
        .queue_max = asked->queue_max != 0 ? asked->queue_max : QUEUE_MAX_DEFAULT,
        .batch_max = asked->batch_max != 0 ? asked->batch_max : BATCH_MAX_DEFAULT,
        .readers = asked->readers != 0 ? asked->readers : READERS_DEFAULT,
        .clock = asked->clock != NULL ? asked->clock : &hfd_clock_system,
        .read_timeout_us = asked->read_timeout_us,
    };
    hfd_rc rc;

    store->writer.place = &store->place;
    rc = hfd_writer_open(&store->writer, &config, err);

    store->readers.place = &store->place;
    store->readers.away = &store->writer.away;
    if (rc == HFD_OK)
        rc = readers_open(&store->readers, &config, err);
    if (rc == HFD_OK && !store->stepped)
        rc = hfd_writer_start(&store->writer, err);
    if (rc == HFD_OK && !store->stepped)
        rc = readers_start(&store->readers, err);
    return rc == HFD_OK && store->writer.shared && !store->stepped
               ? open_points(store, &config, err)
               : rc;
}

/* Returns false when there is no memory. */
static bool copy_text(const char *text, const char **out)
{
    *out = text != NULL ? strdup(text) : NULL;
    return text == NULL || *out != NULL;
}

static hfd_rc copy_place(const struct hfd_store_place *from, struct hfd_store_place *to,
                         struct hfd_err *err)
{
    bool whole;

    *to = *from;
    whole = copy_text(from->dir, &to->dir);
    whole = copy_text(from->url, &to->url) && whole;
    whole = copy_text(from->password_file, &to->password_file) && whole;
    return whole ? HFD_OK : hfd_fail_nomem(err, "open the store");
}

static void free_text(const char *text)
{
    free((void *)(uintptr_t)text);
}

static void free_place(struct hfd_store_place *place)
{
    free_text(place->dir);
    free_text(place->url);
    free_text(place->password_file);
}

hfd_rc hfd_store_open(const struct hfd_store_config *config, struct hfd_store **out,
                      struct hfd_err *err)
{
    struct hfd_store *store = calloc(1, sizeof(*store));
    hfd_rc rc;

    *out = NULL;
    if (store == NULL)
        return hfd_fail_nomem(err, "open the store");
    store->magic = STORE_MAGIC;
    store->stepped = config->stepped;
    rc = copy_place(&config->place, &store->place, err);
    if (rc == HFD_OK)
        rc = open_parts(store, config, err);
    if (rc != HFD_OK) {
        hfd_store_close(&store);
        return rc;
    }
    hfd_metric_set(HFD_METRIC_STORE_OK, NULL, 1);
    *out = store;
    return HFD_OK;
}

static bool is_waiting(const struct hfd_store *store)
{
    return store->readers.lane.queue != NULL && /* made after the writer's */
           hfd_queue_length(store->writer.queue) + readers_waiting(&store->readers) > 0;
}

void hfd_store_close(struct hfd_store **storep)
{
    struct hfd_store *store = *storep;

    *storep = NULL;
    if (store == NULL)
        return;
    HFD_CHECK_OBJ(store, STORE_MAGIC);
    HFD_ASSERT(atomic_load(&store->readers_open) == 0);
    while (store->stepped && is_waiting(store))
        hfd_store_step(store);
    points_close(&store->points);
    readers_close(&store->readers);
    hfd_writer_close(&store->writer); /* last: it checkpoints, and lets the next process in */
    free_place(&store->place);
    store->magic = 0;
    free(store);
}
