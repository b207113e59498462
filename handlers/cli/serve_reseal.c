/* See serve_reseal.h. */
#include "handlers/cli/serve_reseal.h"

#include "driver/base/clock.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/base/thread.h"
#include "driver/core/reseal.h"
#include "driver/core/ring_check.h"
#include "driver/replica/keeper.h"

#include <stdlib.h>
#include <time.h>

#define AGAIN_S 600

struct hfd_serve_reseal {
    struct hfd_serve_reseal_parts parts;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool wanted; /* under the lock */
    atomic_bool stop;
};

/* Counts what needs each key of the ring. */
static hfd_rc count_uses(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct hfd_keyring *ring = arg;
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < hfd_keyring_count(ring); i++) {
        struct hfd_key_view key;
        int64_t uses;

        hfd_keyring_view(ring, i, &key);
        rc = hfd_ring_uses(tx, &key, &uses, err);
        if (rc == HFD_OK)
            hfd_metric_set(HFD_METRIC_KEY_ROWS, HFD_LABELS(key.name, hfd_key_state_name(key.state)),
                           uses);
    }
    return rc;
}

static void work(struct hfd_serve_reseal *r)
{
    const struct hfd_keyring *ring = r->parts.driver->ring;
    struct hfd_reseal all = {.driver = r->parts.driver, .store = r->parts.store, .stop = &r->stop};
    struct hfd_hold hold;
    struct hfd_err err = {0};
    hfd_rc rc;

    /* Two replicas that work do no harm: each step is one transaction and may be repeated. */
    hfd_keeper_hold(r->parts.keeper, INT64_C(1) << HFD_SHARD_COMMON, &hold);
    if (hfd_keyring_count(ring) < 2 || hold.shards == 0)
        return;
    rc = hfd_store_reader_open(r->parts.store, &all.reader, &err);
    if (rc == HFD_OK)
        rc = hfd_reseal_all(&all, &err);
    if (rc == HFD_OK)
        rc = hfd_store_read(all.reader, count_uses, (void *)(uintptr_t)ring, &err);
    hfd_store_reader_close(&all.reader);
    if (all.count > 0)
        HFD_LOG(HFD_LOG_INFO, "stored secrets are sealed with the active key",
                HFD_LOG_INT("rows", all.count));
    if (rc != HFD_OK && !atomic_load(&r->stop))
        HFD_LOG(HFD_LOG_ERROR, "stored secrets are not all sealed with the active key",
                HFD_LOG_CSTR("error", err.msg));
}

/* Waits for news, or for the next time. @return false: the thread is to end */
static bool wait_for_work(struct hfd_serve_reseal *r)
{
    const int64_t until_us = hfd_clock_mono_us(&hfd_clock_system) + AGAIN_S * HFD_US_PER_S;
    const struct timespec until = {.tv_sec = until_us / HFD_US_PER_S};

    pthread_mutex_lock(&r->lock);
    while (!r->wanted && !atomic_load(&r->stop) &&
           pthread_cond_timedwait(&r->changed, &r->lock, &until) == 0)
        ;
    r->wanted = false;
    pthread_mutex_unlock(&r->lock);
    return !atomic_load(&r->stop);
}

static void *reseal_main(void *arg)
{
    struct hfd_serve_reseal *r = arg;

    while (wait_for_work(r))
        work(r);
    return NULL;
}

hfd_rc hfd_serve_reseal_start(const struct hfd_serve_reseal_parts *parts,
                              struct hfd_serve_reseal **out, struct hfd_err *err)
{
    struct hfd_serve_reseal *r = calloc(1, sizeof(*r));
    pthread_condattr_t clock;
    hfd_rc rc;

    *out = NULL;
    if (r == NULL)
        return hfd_fail_nomem(err, "start the server");
    r->parts = *parts;
    r->wanted = true;
    (void)pthread_mutex_init(&r->lock, NULL);
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&r->changed, &clock);
    (void)pthread_condattr_destroy(&clock);
    rc = hfd_thread_start(
        &(struct hfd_thread){"hfd-reseal", "thread for sealing again", reseal_main, r}, &r->thread,
        err);
    if (rc == HFD_OK)
        *out = r;
    else
        free(r);
    return rc;
}

static void signal_thread(struct hfd_serve_reseal *r, bool stop)
{
    pthread_mutex_lock(&r->lock);
    r->wanted = true;
    if (stop)
        atomic_store(&r->stop, true);
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

void hfd_serve_reseal_wake(struct hfd_serve_reseal *r)
{
    signal_thread(r, false);
}

void hfd_serve_reseal_stop(struct hfd_serve_reseal **rp)
{
    struct hfd_serve_reseal *r = *rp;

    *rp = NULL;
    if (r == NULL)
        return;
    signal_thread(r, true);
    (void)pthread_join(r->thread, NULL);
    (void)pthread_cond_destroy(&r->changed);
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
}
