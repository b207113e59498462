/* See reader.h. */
#include "store/reader.h"

#include "driver/base/check.h"
#include "driver/base/thread.h"
#include "store/store_int.h"
#include "store/txn.h"
#include "store/unit.h"
#include "store/writer.h"

#include <pthread.h>

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

    if (atomic_load(&job->cancelled))
        rc = hfd_fail(&err, HFD_TIMEOUT, "read: cancelled");
    else
        rc = run_reachable(t, &v, &err);
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

hfd_rc hfd_readers_push(struct hfd_readers *r, struct hfd_job *job)
{
    return hfd_queue_push(job->is_short ? r->short_lane.queue : r->lane.queue, &job->node);
}

static size_t waiting_on(const struct hfd_lane *lane)
{
    return lane->queue != NULL ? hfd_queue_length(lane->queue) : 0;
}

size_t hfd_readers_waiting(const struct hfd_readers *r)
{
    return waiting_on(&r->short_lane) + waiting_on(&r->lane);
}

void hfd_readers_step(struct hfd_readers *r)
{
    size_t count;

    while (hfd_readers_waiting(r) > 0) {
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

hfd_rc hfd_readers_open(struct hfd_readers *r, const struct hfd_store_config *config,
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

hfd_rc hfd_readers_start(struct hfd_readers *r, struct hfd_err *err)
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

void hfd_readers_close(struct hfd_readers *r)
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
                          .seq = hfd_row_stamps_now(&reader->store->writer.stamps)};
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

hfd_rc hfd_point_reads_push(struct hfd_point_reads *p, struct hfd_job *job)
{
    HFD_ASSERT(p->queue != NULL);
    return hfd_queue_push(p->queue, &job->node);
}

hfd_rc hfd_point_reads_open(struct hfd_point_reads *p, size_t queue_max, struct hfd_err *err)
{
    const hfd_rc rc = hfd_queue_new(queue_max, &p->queue, err);

    return rc == HFD_OK ? hfd_db_open(p->place, HFD_DB_POINTS, &p->db, err) : rc;
}

hfd_rc hfd_point_reads_start(struct hfd_point_reads *p, struct hfd_err *err)
{
    const hfd_rc rc = hfd_thread_start(
        &(struct hfd_thread){"hfd-points", "open the store: thread", points_main, p}, &p->thread,
        err);

    p->started = rc == HFD_OK;
    return rc;
}

void hfd_point_reads_close(struct hfd_point_reads *p)
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
