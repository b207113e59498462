/* The remote thread: its loop, its life, and what other threads call. See remote.h. */
#include "driver/backend/remote/remote_int.h"

#include <stdlib.h>

#include "driver/backend/remote/begin.h"
#include "driver/backend/remote/health.h"
#include "driver/backend/remote/jobs.h"
#include "driver/base/check.h"
#include "driver/base/metrics.h"
#include "driver/base/thread.h"

#define STORE_BUSY_WAIT_US (HFD_US_PER_S / 50)
#define ASKED_MAX 4096

int64_t hfd_remote_mono_us(const struct hfd_remote *r)
{
    return hfd_clock_mono_us(r->config.http.clock);
}

int64_t hfd_remote_wall_us(const struct hfd_remote *r)
{
    return hfd_clock_wall_us(r->config.http.clock);
}

int64_t hfd_remote_read_every_us(const struct hfd_remote *r)
{
    return r->config.keeper != NULL ? HFD_REMOTE_READ_WITH_OTHERS_US : HFD_REMOTE_READ_EVERY_US;
}

/* ---- the thread ---- */

/* The shards that it holds bound what it begins, and how much it asks. */
static void look_at_shards(struct hfd_remote *r)
{
    const int64_t was = r->hold.shards;
    int64_t per_second;

    hfd_keeper_hold(r->config.keeper, HFD_SHARDS_ALL, &r->hold);
    if (r->hold.shards == was)
        return;
    per_second = r->config.per_second_max * hfd_shard_count(r->hold.shards) / HFD_SHARDS;
    hfd_rate_change(&r->rate, per_second > 0 ? per_second : 1, hfd_remote_mono_us(r));
    r->may_be_due = true;
}

static void sooner(int64_t *wait_us, int64_t other_us)
{
    if (other_us < *wait_us)
        *wait_us = other_us;
}

static int64_t wait_us(struct hfd_remote *r)
{
    const int64_t now_us = hfd_remote_mono_us(r), breaker_us = hfd_breaker_next_us(&r->breaker);
    int64_t wait = hfd_remote_read_every_us(r);

    if (r->hold.shards != 0 && r->busy_slots < r->slot_count && breaker_us != INT64_MAX) {
        const int64_t due_us = r->may_be_due            ? 0
                               : r->due_us == INT64_MAX ? wait
                                                        : r->due_us - hfd_remote_wall_us(r);
        const int64_t allowed_us = breaker_us - now_us;

        sooner(&wait, due_us > allowed_us ? due_us : allowed_us);
    }
    if (hfd_slots_first_ready(r) != NULL)
        sooner(&wait, hfd_rate_next_us(&r->rate, now_us) - now_us);
    for (size_t i = 0; i < r->slot_count; i++)
        if (r->slots[i].state == HFD_SLOT_ANSWERED || r->slots[i].state == HFD_SLOT_ASK)
            sooner(&wait, r->slots[i].state == HFD_SLOT_ASK ? 0 : STORE_BUSY_WAIT_US);
    if (r->aside.count > 0)
        sooner(&wait, hfd_set_aside_next_us(&r->aside) - now_us);
    return wait > 0 ? wait : 0;
}

/* Ends all requests, and waits for the jobs at the store. A broken store gives them back too. */
static void wind_down(struct hfd_remote *r)
{
    hfd_remote_call_fini(&r->greeting);
    hfd_slots_cut(r);
    while (r->jobs_out > 0) {
        hfd_remote_http_run(r->http, HFD_US_PER_S);
        hfd_remote_collect(r);
    }
    hfd_slots_clear(r);
    hfd_metric_set(HFD_METRIC_REMOTE_IN_FLIGHT, NULL, 0);
    hfd_store_reader_close(&r->reader);
}

static void *run(void *arg)
{
    struct hfd_remote *r = arg;

    HFD_CHECK_OBJ(r, HFD_REMOTE_MAGIC);
    hfd_remote_greet(r);
    while (!atomic_load(&r->stop) && hfd_store_ok(r->config.store)) {
        hfd_remote_collect(r);
        look_at_shards(r);
        if (atomic_exchange(&r->woken, false))
            r->may_be_due = true;
        hfd_remote_hurry_polled(r);
        if (hfd_set_aside_expire(&r->aside, hfd_remote_mono_us(r)))
            r->may_be_due = true;
        hfd_remote_count_due(r);
        hfd_remote_begin_due(r);
        hfd_slots_go_on(r);
        hfd_remote_http_run(r->http, wait_us(r));
    }
    wind_down(r);
    return NULL;
}

/* ---- for other threads ---- */

void hfd_remote_asked(struct hfd_remote *r, hfd_slice guresid)
{
    HFD_CHECK_OBJ(r, HFD_REMOTE_MAGIC);
    if (hfd_asked_push(r->asked, guresid, hfd_remote_mono_us(r)))
        hfd_remote_http_wake(r->http);
}

void hfd_remote_wake(struct hfd_remote *r)
{
    HFD_CHECK_OBJ(r, HFD_REMOTE_MAGIC);
    if (!atomic_exchange(&r->woken, true))
        hfd_remote_http_wake(r->http);
}

void hfd_remote_reload(struct hfd_remote *r)
{
    HFD_CHECK_OBJ(r, HFD_REMOTE_MAGIC);
    hfd_remote_http_reload(r->http);
}

static void remote_free(struct hfd_remote *r)
{
    if (r == NULL)
        return;
    hfd_remote_http_close(&r->http);
    hfd_asked_free(r->asked);
    free(r->slots);
    (void)pthread_mutex_destroy(&r->lock);
    r->magic = 0;
    free(r);
}

static hfd_rc remote_new(const struct hfd_remote_config *config,
                         const struct hfd_remote_rules *rules, struct hfd_remote **out,
                         struct hfd_err *err)
{
    struct hfd_remote_http_config http = config->http;
    struct hfd_remote *r = calloc(1, sizeof(*r));
    hfd_rc rc = HFD_NOMEM;

    HFD_ASSERT(config->in_flight_max >= 1 && config->in_flight_max <= HFD_REMOTE_IN_FLIGHT_MAX);
    *out = NULL;
    if (r == NULL)
        return hfd_fail_nomem(err, "start the remote thread");
    http.connections_max = config->in_flight_max + 1; /* one for the greeting */
    *r = (struct hfd_remote){.magic = HFD_REMOTE_MAGIC,
                             .sink = {hfd_remote_on_posted},
                             .config = *config,
                             .rules = rules,
                             .may_be_due = true};
    (void)pthread_mutex_init(&r->lock, NULL);
    r->polls.remote = r;
    r->read_us = hfd_remote_mono_us(r);
    r->slot_count = (size_t)config->in_flight_max;
    r->hold.shards = HFD_SHARDS_ALL; /* the first look shows */
    hfd_rate_init(&r->rate, config->per_second_max, hfd_remote_mono_us(r));
    hfd_breaker_init(&r->breaker, config->policy->retry_min_us, config->policy->retry_max_us);
    r->slots = calloc(r->slot_count, sizeof(*r->slots));
    for (size_t i = 0; r->slots != NULL && i < r->slot_count; i++)
        r->slots[i].remote = r;
    if (r->slots != NULL)
        rc = hfd_asked_new(ASKED_MAX, config->fresh_us, &r->asked, err);
    else
        (void)hfd_fail_nomem(err, "start the remote thread");
    if (rc == HFD_OK)
        rc = hfd_remote_http_open(&http, &r->http, err);
    if (rc == HFD_OK)
        *out = r;
    else
        remote_free(r);
    return rc;
}

hfd_rc hfd_remote_start_with(const struct hfd_remote_config *config,
                             const struct hfd_remote_rules *rules, struct hfd_remote **out,
                             struct hfd_err *err)
{
    hfd_rc rc = remote_new(config, rules, out, err);

    if (rc != HFD_OK)
        return rc;
    hfd_metric_set(HFD_METRIC_REMOTE_UP, NULL, 1); /* until an answer shows the contrary */
    hfd_metric_set(HFD_METRIC_REMOTE_BREAKER_OPEN, NULL, 0);
    rc = hfd_thread_start(&(struct hfd_thread){"hfd-remote", "remote thread", run, *out},
                          &(*out)->thread, err);
    if (rc != HFD_OK) {
        remote_free(*out);
        *out = NULL;
    }
    return rc;
}

void hfd_remote_stop(struct hfd_remote **remote)
{
    struct hfd_remote *r = *remote;

    *remote = NULL;
    if (r == NULL)
        return;
    HFD_CHECK_OBJ(r, HFD_REMOTE_MAGIC);
    atomic_store(&r->stop, true);
    hfd_remote_http_wake(r->http);
    (void)pthread_join(r->thread, NULL);
    remote_free(r);
}

hfd_rc hfd_remote_start(const struct hfd_remote_config *config, struct hfd_remote **out,
                        struct hfd_err *err)
{
    return hfd_remote_start_with(config, &hfd_remote_rules, out, err);
}
