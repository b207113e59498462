/*
 * Opens and closes the store, and takes its jobs. writer.h and reader.h run them.
 *
 * Locks: the readers' take_lock, held while waiting for views; under it only the queue's own.
 */
#include "store/store.h"

#include "driver/base/check.h"
#include "driver/base/container.h"
#include "driver/base/metrics.h"
#include "store/row_walk.h"
#include "store/store_int.h"

#define QUEUE_MAX_DEFAULT 4096
#define BATCH_MAX_DEFAULT 1024
#define READERS_DEFAULT 2

hfd_rc hfd_txn_check(struct hfd_txn *tx, struct hfd_meter *meter, struct hfd_err *err)
{
    const hfd_rc rc = hfd_unit_write(tx, err);

    hfd_meter_set(meter, &(struct hfd_meter_at){.what = "checking pages and indexes"});
    return rc == HFD_OK ? hfd_db_check(tx->db, err) : rc;
}

hfd_rc hfd_txn_now(struct hfd_txn *tx, int64_t *out, struct hfd_err *err)
{
    return hfd_db_now(tx->db, out, err);
}

hfd_rc hfd_txn_check_rows(struct hfd_txn *tx, struct hfd_row_findings *in, struct hfd_err *err)
{
    const hfd_rc rc = hfd_unit_write(tx, err);

    return rc == HFD_OK ? hfd_rows_check(tx, in, err) : rc;
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
    return rc == HFD_OK ? pushed(hfd_readers_push(&store->readers, job), err) : rc;
}

hfd_rc hfd_store_point(struct hfd_store *store, struct hfd_job *job, struct hfd_err *err)
{
    hfd_rc rc;

    HFD_CHECK_OBJ(store, STORE_MAGIC);
    rc = hfd_writer_check(&store->writer, err);
    return rc == HFD_OK ? pushed(hfd_point_reads_push(&store->points, job), err) : rc;
}

void hfd_store_step(struct hfd_store *store)
{
    HFD_CHECK_OBJ(store, STORE_MAGIC);
    HFD_ASSERT(store->stepped);
    hfd_writer_step(&store->writer);
    hfd_readers_step(&store->readers);
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

/* ---- opening and closing ---- */

static hfd_rc open_points(struct hfd_store *store, const struct hfd_store_config *config,
                          struct hfd_err *err)
{
    hfd_rc rc;

    store->points.place = &store->place;
    store->points.away = &store->writer.away;
    store->points.clock = config->clock;
    rc = hfd_point_reads_open(&store->points, config->queue_max, err);
    return rc == HFD_OK ? hfd_point_reads_start(&store->points, err) : rc;
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
        rc = hfd_readers_open(&store->readers, &config, err);
    if (rc == HFD_OK && !store->stepped)
        rc = hfd_writer_start(&store->writer, err);
    if (rc == HFD_OK && !store->stepped)
        rc = hfd_readers_start(&store->readers, err);
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
           hfd_queue_length(store->writer.queue) + hfd_readers_waiting(&store->readers) > 0;
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
    hfd_point_reads_close(&store->points);
    hfd_readers_close(&store->readers);
    hfd_writer_close(&store->writer); /* last: it checkpoints, and lets the next process in */
    free_place(&store->place);
    store->magic = 0;
    free(store);
}
