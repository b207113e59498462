/* See aging.h. */
#include "driver/adapters/aging.h"

#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/thread.h"
#include "driver/core/observe.h"
#include "driver/fleet/actions.h"
#include "driver/health/intake.h"
#include "driver/replica/keeper.h"
#include "store/rows_watch.h"

#include <stdlib.h>

#define AGING_MAGIC 0xa61c9a3eu
#define PAUSE_US HFD_US_PER_S                      /* for documents that were old when they came */
#define LOOK_MAX_BYTES ((size_t)256 * 1024 * 1024) /* memory of one look */

struct hfd_aging {
    unsigned magic;
    struct hfd_aging_config config;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop;    /* under lock */
    bool failing; /* own thread: the last look failed, and the log says so */
};

/* One transaction. */
struct look {
    const struct hfd_aging_config *config;
    int64_t now_us;
    struct hfd_arena mem;
    size_t count;    /* stale documents that it took */
    int64_t next_us; /* the last microsecond of the next one; INT64_MAX = there is none */
    struct hfd_settled settled;
    bool more; /* histories that are too old are left */
};

/* Operations whose deadline has passed, and histories that are too old. */
static hfd_rc settle(struct hfd_txn *tx, struct look *look, struct hfd_err *err)
{
    const struct hfd_driver *driver = look->config->driver;
    const struct hfd_ctx c = {
        .tx = tx, .driver = driver, .now_us = look->now_us, .mem = &look->mem, .err = err};
    const struct hfd_tombstone_limits limits =
        hfd_fleet_tombstone_limits(&driver->fleet, look->now_us);
    hfd_rc rc = hfd_resource_settle_due(&c, &look->settled);

    /* At its deadline an operation is late. */
    if (rc == HFD_OK && look->settled.next_us <= look->next_us &&
        look->settled.next_us != INT64_MAX)
        look->next_us = look->settled.next_us - 1;
    return rc == HFD_OK ? hfd_tombstone_row_trim(tx, &limits, &look->more, err) : rc;
}

static hfd_rc txn_look(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct look *look = arg;
    struct hfd_fleet_changes changes = {.mem = &look->mem};
    const struct hfd_fleet_call call = {
        .fleet = &look->config->driver->fleet,
        .now_us = look->now_us,
        .mem = &look->mem,
        .changes = &changes,
    };
    hfd_rc rc;

    hfd_arena_fini(&look->mem); /* it may run again */
    rc = hfd_health_settle(tx, &call, &look->count, err);
    if (rc == HFD_OK)
        rc = hfd_watch_row_next(tx, &look->next_us, err);
    if (rc == HFD_OK)
        rc = hfd_resource_observe(tx, look->config->driver, &call, err);
    return rc == HFD_OK ? settle(tx, look, err) : rc;
}

hfd_rc hfd_aging_look(const struct hfd_aging_config *config, int64_t *next_us, struct hfd_err *err)
{
    struct look look = {.config = config};
    struct hfd_hold hold;
    hfd_rc rc;

    /* A look is one transaction: two replicas that look do no harm. */
    hfd_keeper_hold(config->keeper, INT64_C(1) << HFD_SHARD_COMMON, &hold);
    if (hold.shards == 0) {
        *next_us = INT64_MAX;
        return HFD_OK;
    }
    hfd_arena_init(&look.mem, LOOK_MAX_BYTES);
    do {
        look.now_us = hfd_clock_wall_us(config->clock);
        rc = hfd_store_update_wait(config->store, txn_look, &look, err);
    } while (rc == HFD_OK && (look.count == HFD_HEALTH_SETTLE_MAX ||
                              look.settled.count == HFD_SETTLE_MAX || look.more));
    hfd_arena_fini(&look.mem);
    *next_us = rc == HFD_OK ? look.next_us : INT64_MAX;
    return rc;
}

/* Looks, and logs the first failure of a row. @return how long to wait for the next look */
static int64_t look_once(struct hfd_aging *aging)
{
    struct hfd_err err;
    int64_t next_us, now_us;
    const hfd_rc rc = hfd_aging_look(&aging->config, &next_us, &err);

    if (rc != HFD_OK && !aging->failing)
        HFD_LOG(HFD_LOG_WARN, "cannot settle what is late; will try again",
                HFD_LOG_CSTR("code", hfd_rc_name(rc)), HFD_LOG_CSTR("reason", err.msg));
    aging->failing = rc != HFD_OK;
    now_us = hfd_clock_wall_us(aging->config.clock);
    if (next_us >= now_us + PAUSE_US)
        return PAUSE_US;
    return next_us >= now_us ? next_us - now_us + 1 : 1;
}

/* Sleeps until the next look, or until the stop. @return whether to stop */
static bool wait_for_next(struct hfd_aging *aging, int64_t pause_us)
{
    const int64_t until_us = hfd_clock_mono_us(&hfd_clock_system) + pause_us;
    const struct timespec until = {.tv_sec = (time_t)(until_us / HFD_US_PER_S),
                                   .tv_nsec = (long)(until_us % HFD_US_PER_S) * 1000};
    bool stop;
    int rc = 0;

    pthread_mutex_lock(&aging->lock);
    while (!aging->stop && rc == 0)
        rc = pthread_cond_timedwait(&aging->wake, &aging->lock, &until);
    stop = aging->stop;
    pthread_mutex_unlock(&aging->lock);
    return stop;
}

static void *run(void *arg)
{
    struct hfd_aging *aging = arg;

    int64_t pause_us;

    HFD_CHECK_OBJ(aging, AGING_MAGIC);
    do
        pause_us = look_once(aging);
    while (!wait_for_next(aging, pause_us));
    return NULL;
}

static void aging_free(struct hfd_aging *aging)
{
    pthread_cond_destroy(&aging->wake);
    pthread_mutex_destroy(&aging->lock);
    aging->magic = 0;
    free(aging);
}

hfd_rc hfd_aging_start(const struct hfd_aging_config *config, struct hfd_aging **out,
                       struct hfd_err *err)
{
    struct hfd_aging *aging = calloc(1, sizeof(*aging));
    pthread_condattr_t attr;
    hfd_rc rc;

    *out = NULL;
    if (aging == NULL)
        return hfd_fail_nomem(err, "start the timer");
    aging->magic = AGING_MAGIC;
    aging->config = *config;
    pthread_mutex_init(&aging->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&aging->wake, &attr);
    pthread_condattr_destroy(&attr);
    rc = hfd_thread_start(&(struct hfd_thread){"hfd-aging", "timer: thread", run, aging},
                          &aging->thread, err);
    if (rc == HFD_OK)
        *out = aging;
    else
        aging_free(aging);
    return rc;
}

void hfd_aging_stop(struct hfd_aging **out)
{
    struct hfd_aging *aging = *out;

    if (aging == NULL)
        return;
    HFD_CHECK_OBJ(aging, AGING_MAGIC);
    pthread_mutex_lock(&aging->lock);
    aging->stop = true;
    pthread_cond_signal(&aging->wake);
    pthread_mutex_unlock(&aging->lock);
    pthread_join(aging->thread, NULL);
    aging_free(aging);
    *out = NULL;
}
