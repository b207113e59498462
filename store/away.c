#include "store/away.h"

#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/base/thread.h"

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

hfd_rc hfd_away_start(struct hfd_away *a, const struct hfd_store_place *place, struct hfd_err *err)
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

void hfd_away_stop(struct hfd_away *a)
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
