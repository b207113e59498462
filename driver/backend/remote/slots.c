/* See slots.h. */
#include "driver/backend/remote/remote_int.h"

#include "driver/backend/remote/health.h"
#include "driver/backend/remote/jobs.h"
#include "driver/base/log.h"

#define ASIDE_US (30 * HFD_US_PER_S)
#define PAUSE_US HFD_US_PER_S

/* ---- begin and end ---- */

/* Without room the thread begins nothing for a while, rather than the same work again and again. */
static void set_aside(struct hfd_remote *r, const struct hfd_remote_work *work, int64_t for_us)
{
    const int64_t now_us = hfd_remote_mono_us(r);

    if (!hfd_set_aside_add(&r->aside, work->guresid, now_us + for_us))
        r->pause_until_us = now_us + PAUSE_US;
}

static void set_aside_failed(struct hfd_remote *r, const struct hfd_remote_work *work,
                             const char *why)
{
    HFD_LOG(HFD_LOG_ERROR, "remote HyperFleet: cannot work on a resource; will try again later",
            HFD_LOG_STR("guresid", work->guresid), HFD_LOG_CSTR("reason", why));
    set_aside(r, work, ASIDE_US);
}

/* @param why  what failed on our side, or NULL */
static void end_pass(struct hfd_remote_slot *s, const char *why)
{
    struct hfd_remote *r = s->remote;

    if (s->lost)
        ; /* another replica goes on */
    else if (why != NULL)
        set_aside_failed(r, r->rules->pass_work(s->pass), why);
    else if (!s->taken)
        set_aside(r, r->rules->pass_work(s->pass), r->config.policy->watch_us);
    if (!s->taken)
        hfd_breaker_unused(&r->breaker, hfd_remote_mono_us(r));
    hfd_remote_call_fini(&s->call);
    r->rules->pass_free(s->pass);
    s->pass = NULL;
    s->state = HFD_SLOT_FREE;
    r->busy_slots--;
    r->may_be_due = true;
}

bool hfd_slots_run(const struct hfd_remote *r, const struct hfd_remote_work *work)
{
    for (size_t i = 0; i < r->slot_count; i++) {
        if (r->slots[i].state != HFD_SLOT_FREE &&
            hfd_slice_eq(r->rules->pass_work(r->slots[i].pass)->guresid, work->guresid))
            return true;
    }
    return false;
}

void hfd_slots_begin(struct hfd_remote *r, const struct hfd_remote_work *work)
{
    struct hfd_remote_slot *s = r->slots;
    struct hfd_err err;

    while (s->state != HFD_SLOT_FREE)
        s++;
    if (r->rules->pass_new(r->config.policy, work, &s->pass, &err) != HFD_OK) {
        set_aside_failed(r, work, err.msg);
        hfd_breaker_unused(&r->breaker, hfd_remote_mono_us(r));
        return;
    }
    s->state = HFD_SLOT_ASK;
    s->taken = false;
    s->lost = false;
    s->hold = r->hold;
    s->hold.shards &= work->shards;
    r->busy_slots++;
}

static void end_lost(struct hfd_remote_slot *s)
{
    s->lost = true;
    end_pass(s, NULL);
}

void hfd_slots_end_lost(struct hfd_remote *r)
{
    for (size_t i = 0; i < r->slot_count; i++) {
        struct hfd_remote_slot *s = &r->slots[i];

        if (s->state == HFD_SLOT_FREE || s->state == HFD_SLOT_TAKING ||
            hfd_keeper_holds(r->config.keeper, &s->hold))
            continue;
        if (s->state == HFD_SLOT_SENT)
            hfd_remote_count_in_flight(r, -1);
        end_lost(s);
    }
}

/* ---- one request ---- */

struct next_request {
    struct hfd_remote_slot *slot;
    int64_t now_us;
};

static hfd_rc txn_next(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct next_request *n = arg;

    return n->slot->remote->rules->next(tx, n->slot->pass, n->now_us, &n->slot->call.request, err);
}

static void ask(struct hfd_remote_slot *s)
{
    struct hfd_remote *r = s->remote;
    struct next_request n = {.slot = s, .now_us = hfd_remote_wall_us(r)};
    struct hfd_err err;

    hfd_remote_call_fini(&s->call);
    if (hfd_remote_read(r, txn_next, &n, &err) != HFD_OK) {
        end_pass(s, err.msg);
    } else if (s->call.request.path.p == NULL) {
        end_pass(s, NULL);
    } else {
        s->state = HFD_SLOT_READY;
        s->order = r->order++;
    }
}

static void on_answer(struct hfd_remote_call *call)
{
    struct hfd_remote_slot *s = call->arg;

    hfd_remote_learn(s->remote, call);
    hfd_remote_count_in_flight(s->remote, -1);
    s->state = HFD_SLOT_ANSWERED;
}

static void send_request(struct hfd_remote_slot *s)
{
    struct hfd_err err;

    s->call.done = on_answer;
    s->call.arg = s;
    if (hfd_remote_http_send(s->remote->http, &s->call, &err) == HFD_OK) {
        hfd_remote_count_in_flight(s->remote, 1);
        s->state = HFD_SLOT_SENT;
        return;
    }
    s->call.answer = (struct hfd_remote_answer){.failure = "not sent: out of memory"};
    s->state = HFD_SLOT_ANSWERED;
}

static hfd_rc txn_take(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct hfd_remote_slot *s = arg;
    const struct hfd_remote_exchange exchange = {&s->call.request, &s->call.answer, s->now_us};
    const hfd_rc rc = hfd_keeper_check(s->remote->config.keeper, tx, &s->hold, err);

    s->lost = rc == HFD_CONFLICT;
    if (rc != HFD_OK)
        return rc;
    return s->remote->rules->take(tx, s->pass, &exchange, err);
}

static void on_taken(struct hfd_job *job)
{
    struct hfd_remote_slot *s = job->arg;

    s->taken = s->taken || job->rc == HFD_OK;
    s->state = HFD_SLOT_ASK;
    if (job->rc != HFD_OK)
        end_pass(s, job->err.msg);
}

/*
 * If the store is busy, the slot stays ANSWERED and tries again. If it is broken, the thread ends.
 */
static void give_answer(struct hfd_remote_slot *s)
{
    struct hfd_err err;

    s->now_us = hfd_remote_wall_us(s->remote);
    if (hfd_remote_submit(s->remote, &s->job, &(struct hfd_remote_txn){txn_take, s, on_taken},
                          &err) == HFD_OK)
        s->state = HFD_SLOT_TAKING;
}

struct hfd_remote_slot *hfd_slots_first_ready(struct hfd_remote *r)
{
    struct hfd_remote_slot *first = NULL;

    for (size_t i = 0; i < r->slot_count; i++)
        if (r->slots[i].state == HFD_SLOT_READY &&
            (first == NULL || r->slots[i].order < first->order))
            first = &r->slots[i];
    return first;
}

void hfd_slots_go_on(struct hfd_remote *r)
{
    struct hfd_remote_slot *s;

    hfd_slots_end_lost(r);
    for (size_t i = 0; i < r->slot_count; i++) {
        if (r->slots[i].state == HFD_SLOT_ANSWERED)
            give_answer(&r->slots[i]);
        else if (r->slots[i].state == HFD_SLOT_ASK)
            ask(&r->slots[i]);
    }
    while ((s = hfd_slots_first_ready(r)) != NULL && hfd_rate_take(&r->rate, hfd_remote_mono_us(r)))
        send_request(s);
}

void hfd_slots_cut(struct hfd_remote *r)
{
    for (size_t i = 0; i < r->slot_count; i++)
        if (r->slots[i].state == HFD_SLOT_SENT)
            hfd_remote_call_fini(&r->slots[i].call);
}

void hfd_slots_clear(struct hfd_remote *r)
{
    for (size_t i = 0; i < r->slot_count; i++) {
        if (r->slots[i].state == HFD_SLOT_FREE)
            continue;
        hfd_remote_call_fini(&r->slots[i].call);
        r->rules->pass_free(r->slots[i].pass);
        r->slots[i].state = HFD_SLOT_FREE;
    }
}
