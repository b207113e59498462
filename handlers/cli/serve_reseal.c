/* See serve_reseal.h. */
#include "handlers/cli/serve_reseal.h"

#include "driver/base/clock.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/base/thread.h"
#include "driver/base/trouble.h"
#include "driver/core/ring_check.h"
#include "driver/replica/keeper.h"

#include <stdlib.h>
#include <time.h>

#define AGAIN_US (600 * HFD_US_PER_S)
#define SOON_US (30 * HFD_US_PER_S) /* after a failure: the database may be away for a moment */
#define NONE (-1)

struct hfd_serve_reseal {
    struct hfd_serve_reseal_parts parts;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool wanted, news; /* under the lock; news: another replica may lead */
    int64_t due_us;    /* mono; of the thread, as the rest */
    bool failing;      /* the last work failed, and the log says so */
    int64_t epoch;     /* of the lease, when it worked last; NONE = it did not */
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

/* Notes a failure. The first one in a row is logged. */
static void note_failure(struct hfd_serve_reseal *r, hfd_rc rc, const struct hfd_err *err)
{
    if (rc != HFD_OK && !r->failing && !atomic_load(&r->stop))
        HFD_LOG(HFD_LOG_ERROR, "stored secrets are not all sealed with the active key",
                HFD_LOG_CSTR("error", err->msg));
    r->failing = rc != HFD_OK;
    if (r->failing)
        (void)hfd_trouble_note(HFD_TROUBLE_SEALING, HFD_SLICE(""),
                               hfd_clock_wall_us(&hfd_clock_system), hfd_slice_of(err->msg));
    else
        (void)hfd_trouble_end(HFD_TROUBLE_SEALING, HFD_SLICE(""));
    if (r->failing && rc != HFD_DAMAGED) /* damage does not go by itself */
        r->due_us = hfd_clock_mono_us(&hfd_clock_system) + SOON_US;
}

static void work(struct hfd_serve_reseal *r)
{
    /* Two replicas that work do no harm: each step is one transaction and may be repeated. */
    const struct hfd_keyring *ring = r->parts.driver->ring;
    struct hfd_reseal all = {.driver = r->parts.driver, .store = r->parts.store, .stop = &r->stop};
    struct hfd_err err = {0};
    hfd_rc rc;

    if (hfd_keyring_count(ring) < 2)
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
    if (rc == HFD_OK && all.left > 0)
        rc = hfd_fail(&err, HFD_DAMAGED, "%lld row%s cannot be read or opened: the log has the ids",
                      (long long)all.left, all.left == 1 ? "" : "s");
    note_failure(r, rc, &err);
}

/*
 * Waits for news, or for the next time.
 * @param wanted  it is to work whatever it did before
 * @return false: the thread is to end
 */
static bool wait_for_news(struct hfd_serve_reseal *r, bool *wanted)
{
    const struct timespec until = {.tv_sec = r->due_us / HFD_US_PER_S};
    int rc = 0;

    pthread_mutex_lock(&r->lock);
    while (!r->wanted && !r->news && !atomic_load(&r->stop) && rc == 0)
        rc = pthread_cond_timedwait(&r->changed, &r->lock, &until);
    *wanted = r->wanted || rc != 0;
    r->wanted = r->news = false;
    pthread_mutex_unlock(&r->lock);
    return !atomic_load(&r->stop);
}

/* Works if this replica leads, and is wanted to or has just taken it over. */
static void look(struct hfd_serve_reseal *r, bool wanted)
{
    struct hfd_hold hold;

    hfd_keeper_hold(r->parts.keeper, &hold);
    if (wanted) {
        r->due_us = hfd_clock_mono_us(&hfd_clock_system) + AGAIN_US;
        r->epoch = NONE;
    }
    if (!hold.leads || hold.epoch == r->epoch)
        return;
    r->epoch = hold.epoch;
    work(r);
}

static void *reseal_main(void *arg)
{
    struct hfd_serve_reseal *r = arg;

    bool wanted;

    while (wait_for_news(r, &wanted))
        look(r, wanted);
    return NULL;
}

static void on_news(void *ctx)
{
    struct hfd_serve_reseal *r = ctx;

    pthread_mutex_lock(&r->lock);
    r->news = true;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
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
    if (rc != HFD_OK) {
        free(r);
        return rc;
    }
    hfd_keeper_listen(parts->keeper, on_news, r);
    *out = r;
    return HFD_OK;
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
    hfd_keeper_unlisten(r->parts.keeper, r);
    signal_thread(r, true);
    (void)pthread_join(r->thread, NULL);
    (void)pthread_cond_destroy(&r->changed);
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
}
