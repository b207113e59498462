/* See remote.h. */
#include "driver/backend/remote/remote.h"

#include "driver/backend/remote/handle.h"
#include "driver/backend/remote/pass.h"
#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/base/thread.h"
#include "driver/base/trouble.h"
#include "store/rows_remote.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static const struct hfd_remote_rules own_rules = {
    .due = hfd_remote_due,
    .hurry = hfd_remote_hurry,
    .pass_new = hfd_pass_new,
    .pass_free = hfd_pass_free,
    .pass_work = hfd_pass_work,
    .next = hfd_pass_next,
    .take = hfd_pass_take,
    .health_of = hfd_remote_health_of,
};

#define REMOTE_IN_FLIGHT_MAX 256

/* A transaction function with its argument, and what runs after the commit. */
struct remote_txn {
    hfd_txn_fn *fn;
    void *arg;
    void (*done)(struct hfd_job *job);
};

enum slot_state {
    SLOT_FREE,
    SLOT_ASK,      /* asks its pass for the next request */
    SLOT_READY,    /* its request waits for the rate */
    SLOT_SENT,     /* HTTP has its request */
    SLOT_ANSWERED, /* its answer waits for the store */
    SLOT_TAKING,   /* the writer takes its answer */
};

struct hfd_remote_slot {
    struct hfd_job job; /* first member */
    struct hfd_remote *remote;
    enum slot_state state;
    struct hfd_pass *pass;
    struct hfd_remote_call call; /* its request lives in the pass */
    int64_t order;               /* READY: the lowest is sent first */
    int64_t now_us;              /* TAKING: wall clock */
    bool taken;                  /* an answer of this pass was taken */
    struct hfd_hold hold;        /* under which it began */
    bool lost;                   /* TAKING: the hold ended, and the answer was refused */
};

#define HFD_REMOTE_POLLS_MAX 256 /* in one transaction */

/* Polls of clients, on their way into the store. One transaction at a time. */
struct hfd_remote_polls {
    struct hfd_job job; /* first member */
    struct hfd_remote *remote;
    bool out; /* with the store */
    struct hfd_asked_id ids[HFD_REMOTE_POLLS_MAX];
    size_t count;
    int64_t older_us, now_us; /* wall clock */
};

struct hfd_remote {
    unsigned magic;
#define HFD_REMOTE_MAGIC 0x4e707e11u
    struct hfd_sink sink;
    struct hfd_remote_config config;
    const struct hfd_remote_rules *rules;
    struct hfd_remote_http *http;
    struct hfd_asked *asked;
    pthread_t thread;
    atomic_bool stop, woken; /* any thread */

    pthread_mutex_t lock;     /* of finished and state */
    struct hfd_job *finished; /* jobs that the store has done, the newest list first */
    struct hfd_remote_state state;

    /* Only the thread uses the rest. */
    struct hfd_store_reader *reader;
    struct hfd_remote_slot *slots;
    size_t slot_count, busy_slots;
    size_t jobs_out; /* with the store */
    struct hfd_remote_polls polls;
    struct hfd_remote_call greeting; /* the request at the start */
    struct hfd_hold hold;            /* of this replica, at the last look */
    struct hfd_rate rate;
    struct hfd_breaker breaker;
    int bad; /* answers in a row that were not well */
    bool ever_well;
    bool may_be_due; /* something may be due */
    int64_t due_us;  /* wall clock: when something will be due */
    int64_t read_us; /* monotonic: when that was last read */
    int64_t order;   /* of the last slot that became READY */
    struct hfd_skip_list aside;
    int64_t pause_until_us; /* monotonic: no work is begun before */
    bool counted;
    int64_t counted_us; /* monotonic */
    bool cannot_read;   /* logged: what is due cannot be read */
};

/* The thread reads what is due this often at least: the wall clock may be set. */
#define REMOTE_READ_EVERY_US (10 * HFD_US_PER_S)
/* With other replicas it reads as often as this: they make work due without a word. */
#define REMOTE_READ_WITH_OTHERS_US HFD_US_PER_S

static int64_t remote_mono_us(const struct hfd_remote *r);
static int64_t remote_wall_us(const struct hfd_remote *r);
static void remote_begin_due(struct hfd_remote *r);
static void remote_count_due(struct hfd_remote *r);

/*
 * The remote thread's use of the store: jobs for the writer, which come back to this thread, and
 * reads on a reader of its own. Thread: remote.
 */

/*
 * The sink of all jobs. Thread: writer.
 * Wakes under the lock: after the last job the thread may free all of this.
 */
static void remote_on_posted(struct hfd_sink *sink, struct hfd_job *list)
{
    struct hfd_remote *r =
        (struct hfd_remote *)(void *)((char *)sink - offsetof(struct hfd_remote, sink));
    struct hfd_job *last = list;

    HFD_CHECK_OBJ(r, HFD_REMOTE_MAGIC);
    while (last->node.next != NULL)
        last = (struct hfd_job *)(void *)last->node.next;
    (void)pthread_mutex_lock(&r->lock);
    last->node.next = r->finished != NULL ? &r->finished->node : NULL;
    r->finished = list;
    hfd_remote_http_wake(r->http);
    (void)pthread_mutex_unlock(&r->lock);
}

/* Runs `done` of the jobs that came back. */
static void remote_collect(struct hfd_remote *r)
{
    struct hfd_job *list;

    (void)pthread_mutex_lock(&r->lock);
    list = r->finished;
    r->finished = NULL;
    (void)pthread_mutex_unlock(&r->lock);
    while (list != NULL) {
        struct hfd_job *job = list;

        list = (struct hfd_job *)(void *)job->node.next;
        HFD_ASSERT(r->jobs_out > 0);
        r->jobs_out--;
        job->done(job);
    }
}

/* Runs fn(arg) in a read transaction. */
static hfd_rc remote_read(struct hfd_remote *r, hfd_txn_fn *fn, void *arg, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    if (r->reader == NULL)
        rc = hfd_store_reader_open(r->config.store, &r->reader, err);
    return rc == HFD_OK ? hfd_store_read(r->reader, fn, arg, err) : rc;
}

/* Queues fn(arg) for the writer. `done` runs in remote_collect. @return as hfd_store_update */
static hfd_rc remote_submit(struct hfd_remote *r, struct hfd_job *job, const struct remote_txn *txn,
                            struct hfd_err *err)
{
    hfd_rc rc;

    *job = (struct hfd_job){.fn = txn->fn, .arg = txn->arg, .sink = &r->sink, .done = txn->done};
    rc = hfd_store_update(r->config.store, job, err);
    if (rc == HFD_OK)
        r->jobs_out++;
    return rc;
}

static hfd_rc txn_hurry(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct hfd_remote_polls *h = arg;
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < h->count; i++)
        rc = h->remote->rules->hurry(tx, (hfd_slice){h->ids[i].text, h->ids[i].len}, h->older_us,
                                     h->now_us, err);
    return rc;
}

static void on_hurried(struct hfd_job *job)
{
    struct hfd_remote_polls *h = job->arg;

    h->out = false;
    h->remote->may_be_due = true;
    if (job->rc == HFD_OK)
        hfd_metric_add(HFD_METRIC_REMOTE_ASKED, NULL, (int64_t)h->count);
}

/* Gives polls to the writer. If the store is busy, forgets them: clients poll again. */
static void remote_hurry_polled(struct hfd_remote *r)
{
    struct hfd_remote_polls *h = &r->polls;
    struct hfd_err err;

    if (h->out)
        return;
    h->count = hfd_asked_take(r->asked, h->ids, HFD_REMOTE_POLLS_MAX, remote_mono_us(r));
    if (h->count == 0)
        return;
    h->now_us = remote_wall_us(r);
    h->older_us = h->now_us - r->config.fresh_us;
    h->out =
        remote_submit(r, &h->job, &(struct remote_txn){txn_hurry, h, on_hurried}, &err) == HFD_OK;
}

/* The state of the remote as answers show it: metrics, breaker, log. Thread: remote. */

#define BAD_MAX 3 /* answers in a row: then the remote is no longer well */

const char *hfd_remote_health_name(enum hfd_remote_health health)
{
    static const char *const names[] = {[HFD_REMOTE_WELL] = "well",
                                        [HFD_REMOTE_ILL] = "ill",
                                        [HFD_REMOTE_REFUSES] = "refuses",
                                        [HFD_REMOTE_WRONG] = "wrong"};

    return names[health];
}

static const char *method_name(enum hfd_remote_method method)
{
    static const char *const names[] = {[HFD_REMOTE_GET] = "GET",
                                        [HFD_REMOTE_POST] = "POST",
                                        [HFD_REMOTE_PATCH] = "PATCH",
                                        [HFD_REMOTE_DELETE] = "DELETE"};

    return names[method];
}

static void count_answer(const struct hfd_remote_call *call)
{
    static const char *const classes[] = {"1xx", "2xx", "3xx", "4xx", "5xx"};
    const char *method = method_name(call->request.method), *class = "none";

    if (call->answer.arrived)
        class = call->answer.status >= 100 && call->answer.status < 600
                    ? classes[call->answer.status / 100 - 1]
                    : "other";
    hfd_metric_add(HFD_METRIC_REMOTE_REQUESTS, HFD_LABELS(method, class), 1);
    hfd_metric_observe_us(HFD_METRIC_REMOTE_SECONDS, HFD_LABELS(method), call->duration_us);
}

static void log_turn(const struct hfd_remote *r, enum hfd_remote_health health, const char *failure)
{
    static const char *const lines[] = {
        [HFD_REMOTE_WELL] = "remote HyperFleet answers well",
        [HFD_REMOTE_ILL] = ("remote HyperFleet does not answer well; will ask less often until it "
                            "does"),
        [HFD_REMOTE_REFUSES] = ("remote HyperFleet refuses the credentials; check "
                                "remote.token_file and remote.cert_file"),
        [HFD_REMOTE_WRONG] = "the remote is not a HyperFleet; check the URL in backend",
    };

    HFD_LOG(health == HFD_REMOTE_WELL ? HFD_LOG_INFO : HFD_LOG_ERROR, lines[health],
            HFD_LOG_CSTR("remote", r->config.http.url),
            HFD_LOG_CSTR("health", hfd_remote_health_name(health)),
            HFD_LOG_CSTR("failure", failure));
}

static void describe(const struct hfd_remote_call *call, char out[248])
{
    if (!call->answer.arrived)
        (void)snprintf(out, 248, "%s: %s", method_name(call->request.method), call->answer.failure);
    else if (call->answer.status >= 300)
        (void)snprintf(out, 248, "%s was answered with status %d",
                       method_name(call->request.method), call->answer.status);
    else
        (void)snprintf(out, 248, "%s was answered with status %d and %s",
                       method_name(call->request.method), call->answer.status,
                       call->answer.is_json ? "JSON that is no whole document"
                                            : "something else than JSON");
}

/* Takes note of an answer, or of its absence. */
static void remote_learn(struct hfd_remote *r, const struct hfd_remote_call *call)
{
    const enum hfd_remote_health health = r->rules->health_of(&call->answer);
    struct hfd_remote_state *state = &r->state;
    bool turned = false;
    char failure[248] = "";

    count_answer(call);
    (void)hfd_breaker_answer(&r->breaker, health == HFD_REMOTE_WELL || health == HFD_REMOTE_REFUSES,
                             remote_mono_us(r), r->config.rng);
    hfd_metric_set(HFD_METRIC_REMOTE_BREAKER_OPEN, NULL, r->breaker.state != HFD_BREAKER_CLOSED);
    r->bad = health == HFD_REMOTE_WELL ? 0 : r->bad + 1;
    if (health != HFD_REMOTE_WELL)
        describe(call, failure);
    (void)pthread_mutex_lock(&r->lock);
    if (r->bad == 0 || r->bad >= BAD_MAX || !r->ever_well) {
        turned = state->health != health || (health == HFD_REMOTE_WELL && !r->ever_well);
        state->health = health;
    }
    state->breaker_open = r->breaker.state != HFD_BREAKER_CLOSED;
    if (call->answer.arrived)
        state->last_answer_us = remote_wall_us(r) + hfd_clock_skew_us(r->config.http.clock);
    memcpy(state->last_failure, failure, sizeof(state->last_failure));
    (void)pthread_mutex_unlock(&r->lock);
    r->ever_well = r->ever_well || health == HFD_REMOTE_WELL;
    if (!turned)
        return;
    hfd_metric_set(HFD_METRIC_REMOTE_UP, NULL, health == HFD_REMOTE_WELL);
    if (health == HFD_REMOTE_WELL)
        (void)hfd_trouble_end(HFD_TROUBLE_REMOTE, HFD_SLICE(""));
    else
        (void)hfd_trouble_note(HFD_TROUBLE_REMOTE, HFD_SLICE(""), remote_wall_us(r),
                               hfd_slice_of(failure));
    log_turn(r, health, failure);
}

/* Adds to the number of requests in flight. */
static void remote_count_in_flight(struct hfd_remote *r, int by)
{
    (void)pthread_mutex_lock(&r->lock);
    r->state.in_flight += by;
    (void)pthread_mutex_unlock(&r->lock);
    hfd_metric_add(HFD_METRIC_REMOTE_IN_FLIGHT, NULL, by);
}

void hfd_remote_state(struct hfd_remote *r, struct hfd_remote_state *out)
{
    (void)pthread_mutex_lock(&r->lock);
    *out = r->state;
    (void)pthread_mutex_unlock(&r->lock);
}

static void on_greeted(struct hfd_remote_call *call)
{
    struct hfd_remote *r = call->arg;

    remote_learn(r, call);
    remote_count_in_flight(r, -1);
    hfd_remote_call_fini(call);
}

/* Asks for a list at the start, so that a wrong URL or token is logged at once. */
static void remote_greet(struct hfd_remote *r)
{
    struct hfd_err err;

    r->greeting = (struct hfd_remote_call){
        .request = {.method = HFD_REMOTE_GET,
                    .path = HFD_SLICE("/clusters?page=1&size=1&pageSize=1")},
        .done = on_greeted,
        .arg = r};
    if (hfd_rate_take(&r->rate, remote_mono_us(r)) &&
        hfd_remote_http_send(r->http, &r->greeting, &err) == HFD_OK)
        remote_count_in_flight(r, 1);
}

/*
 * Passes side by side. One slot runs one pass. It asks the pass for a request, sends it when the
 * rate allows, and gives the answer to the writer. Then it asks again. While the writer has the
 * answer, the slot belongs to the writer. Thread: remote.
 */

#define ASIDE_US (30 * HFD_US_PER_S)
#define PAUSE_US HFD_US_PER_S

/* ---- begin and end ---- */

/* Without room the thread begins nothing for a while, rather than the same work again and again. */
static void set_aside(struct hfd_remote *r, const struct hfd_remote_work *work, int64_t for_us)
{
    const int64_t now_us = remote_mono_us(r);

    if (!hfd_skip_list_add(&r->aside, work->guresid, now_us + for_us))
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
        hfd_breaker_unused(&r->breaker, remote_mono_us(r));
    hfd_remote_call_fini(&s->call);
    r->rules->pass_free(s->pass);
    s->pass = NULL;
    s->state = SLOT_FREE;
    r->busy_slots--;
    r->may_be_due = true;
}

/* Returns whether a pass runs for this work. */
static bool slots_run(const struct hfd_remote *r, const struct hfd_remote_work *work)
{
    for (size_t i = 0; i < r->slot_count; i++) {
        if (r->slots[i].state != SLOT_FREE &&
            hfd_slice_eq(r->rules->pass_work(r->slots[i].pass)->guresid, work->guresid))
            return true;
    }
    return false;
}

/* Begins a pass in a free slot. If that fails, sets the work aside. */
static void slots_begin(struct hfd_remote *r, const struct hfd_remote_work *work)
{
    struct hfd_remote_slot *s = r->slots;
    struct hfd_err err;

    while (s->state != SLOT_FREE)
        s++;
    if (r->rules->pass_new(r->config.policy, work, &s->pass, &err) != HFD_OK) {
        set_aside_failed(r, work, err.msg);
        hfd_breaker_unused(&r->breaker, remote_mono_us(r));
        return;
    }
    s->state = SLOT_ASK;
    s->taken = false;
    s->lost = false;
    s->hold = r->hold;
    r->busy_slots++;
}

static void end_lost(struct hfd_remote_slot *s)
{
    s->lost = true;
    end_pass(s, NULL);
}

/* Ends passes when this replica does not lead any more. */
static void slots_end_lost(struct hfd_remote *r)
{
    for (size_t i = 0; i < r->slot_count; i++) {
        struct hfd_remote_slot *s = &r->slots[i];

        if (s->state == SLOT_FREE || s->state == SLOT_TAKING ||
            hfd_keeper_holds(r->config.keeper, &s->hold))
            continue;
        if (s->state == SLOT_SENT)
            remote_count_in_flight(r, -1);
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
    struct next_request n = {.slot = s, .now_us = remote_wall_us(r)};
    struct hfd_err err;

    hfd_remote_call_fini(&s->call);
    if (remote_read(r, txn_next, &n, &err) != HFD_OK) {
        end_pass(s, err.msg);
    } else if (s->call.request.path.p == NULL) {
        end_pass(s, NULL);
    } else {
        s->state = SLOT_READY;
        s->order = r->order++;
    }
}

static void on_answer(struct hfd_remote_call *call)
{
    struct hfd_remote_slot *s = call->arg;

    remote_learn(s->remote, call);
    remote_count_in_flight(s->remote, -1);
    s->state = SLOT_ANSWERED;
}

static void send_request(struct hfd_remote_slot *s)
{
    struct hfd_err err;

    s->call.done = on_answer;
    s->call.arg = s;
    hfd_trace_enter(&s->call.request.trace);
    if (hfd_remote_http_send(s->remote->http, &s->call, &err) == HFD_OK) {
        remote_count_in_flight(s->remote, 1);
        s->state = SLOT_SENT;
    } else {
        s->call.answer = (struct hfd_remote_answer){.failure = "not sent: out of memory"};
        s->state = SLOT_ANSWERED;
    }
    hfd_trace_enter(NULL);
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
    s->state = SLOT_ASK;
    if (job->rc != HFD_OK)
        end_pass(s, job->err.msg);
}

/*
 * If the store is busy, the slot stays ANSWERED and tries again. If it is broken, the thread ends.
 */
static void give_answer(struct hfd_remote_slot *s)
{
    struct hfd_err err;

    s->now_us = remote_wall_us(s->remote);
    hfd_trace_enter(&s->call.request.trace);
    if (remote_submit(s->remote, &s->job, &(struct remote_txn){txn_take, s, on_taken}, &err) ==
        HFD_OK)
        s->state = SLOT_TAKING;
    hfd_trace_enter(NULL);
}

/* The slot whose request is sent next; NULL = none waits. */
static struct hfd_remote_slot *slots_first_ready(struct hfd_remote *r)
{
    struct hfd_remote_slot *first = NULL;

    for (size_t i = 0; i < r->slot_count; i++)
        if (r->slots[i].state == SLOT_READY && (first == NULL || r->slots[i].order < first->order))
            first = &r->slots[i];
    return first;
}

/* Takes each slot as far as it goes without waiting. */
static void slots_go_on(struct hfd_remote *r)
{
    struct hfd_remote_slot *s;

    slots_end_lost(r);
    for (size_t i = 0; i < r->slot_count; i++) {
        if (r->slots[i].state == SLOT_ANSWERED)
            give_answer(&r->slots[i]);
        else if (r->slots[i].state == SLOT_ASK)
            ask(&r->slots[i]);
    }
    while ((s = slots_first_ready(r)) != NULL && hfd_rate_take(&r->rate, remote_mono_us(r)))
        send_request(s);
}

/* Ends all requests. */
static void slots_cut(struct hfd_remote *r)
{
    for (size_t i = 0; i < r->slot_count; i++)
        if (r->slots[i].state == SLOT_SENT)
            hfd_remote_call_fini(&r->slots[i].call);
}

/* Frees all passes. No job may be with the store. */
static void slots_clear(struct hfd_remote *r)
{
    for (size_t i = 0; i < r->slot_count; i++) {
        if (r->slots[i].state == SLOT_FREE)
            continue;
        hfd_remote_call_fini(&r->slots[i].call);
        r->rules->pass_free(r->slots[i].pass);
        r->slots[i].state = SLOT_FREE;
    }
}

/* The remote thread: its loop, its life, and what other threads call. */

#define STORE_BUSY_WAIT_US (HFD_US_PER_S / 50)
#define ASKED_MAX 4096

static int64_t remote_mono_us(const struct hfd_remote *r)
{
    return hfd_clock_mono_us(r->config.http.clock);
}

static int64_t remote_wall_us(const struct hfd_remote *r)
{
    return hfd_clock_wall_us(r->config.http.clock);
}

static int64_t remote_read_every_us(const struct hfd_remote *r)
{
    return r->config.keeper != NULL ? REMOTE_READ_WITH_OTHERS_US : REMOTE_READ_EVERY_US;
}

/* ---- the thread ---- */

/* Only the replica that leads begins work. */
static void look_who_leads(struct hfd_remote *r)
{
    const bool led = r->hold.leads;

    hfd_keeper_hold(r->config.keeper, &r->hold);
    if (r->hold.leads && !led)
        r->may_be_due = true;
}

static int64_t wait_us(struct hfd_remote *r);

static void sooner(int64_t *wait_us, int64_t other_us)
{
    if (other_us < *wait_us)
        *wait_us = other_us;
}

static int64_t wait_us(struct hfd_remote *r)
{
    const int64_t now_us = remote_mono_us(r), breaker_us = hfd_breaker_next_us(&r->breaker);
    int64_t wait = remote_read_every_us(r);

    if (r->hold.leads && r->busy_slots < r->slot_count && breaker_us != INT64_MAX) {
        const int64_t due_us = r->may_be_due            ? 0
                               : r->due_us == INT64_MAX ? wait
                                                        : r->due_us - remote_wall_us(r);
        const int64_t allowed_us = breaker_us - now_us;

        sooner(&wait, due_us > allowed_us ? due_us : allowed_us);
    }
    if (slots_first_ready(r) != NULL)
        sooner(&wait, hfd_rate_next_us(&r->rate, now_us) - now_us);
    for (size_t i = 0; i < r->slot_count; i++)
        if (r->slots[i].state == SLOT_ANSWERED || r->slots[i].state == SLOT_ASK)
            sooner(&wait, r->slots[i].state == SLOT_ASK ? 0 : STORE_BUSY_WAIT_US);
    if (r->aside.count > 0)
        sooner(&wait, hfd_skip_list_next_us(&r->aside) - now_us);
    return wait > 0 ? wait : 0;
}

/* Ends all requests, and waits for the jobs at the store. A broken store gives them back too. */
static void wind_down(struct hfd_remote *r)
{
    hfd_remote_call_fini(&r->greeting);
    slots_cut(r);
    while (r->jobs_out > 0) {
        hfd_remote_http_run(r->http, HFD_US_PER_S);
        remote_collect(r);
    }
    slots_clear(r);
    hfd_metric_set(HFD_METRIC_REMOTE_IN_FLIGHT, NULL, 0);
    hfd_store_reader_close(&r->reader);
}

static void *run(void *arg)
{
    struct hfd_remote *r = arg;

    HFD_CHECK_OBJ(r, HFD_REMOTE_MAGIC);
    remote_greet(r);
    while (!atomic_load(&r->stop) && hfd_store_ok(r->config.store)) {
        remote_collect(r);
        look_who_leads(r);
        if (atomic_exchange(&r->woken, false))
            r->may_be_due = true;
        remote_hurry_polled(r);
        if (hfd_skip_list_expire(&r->aside, remote_mono_us(r)))
            r->may_be_due = true;
        remote_count_due(r);
        remote_begin_due(r);
        slots_go_on(r);
        hfd_remote_http_run(r->http, wait_us(r));
    }
    wind_down(r);
    return NULL;
}

/* ---- for other threads ---- */

void hfd_remote_asked(struct hfd_remote *r, hfd_slice guresid)
{
    HFD_CHECK_OBJ(r, HFD_REMOTE_MAGIC);
    if (hfd_asked_push(r->asked, guresid, remote_mono_us(r)))
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

static hfd_rc remote_new(const struct hfd_remote_config *config, struct hfd_remote **out,
                         struct hfd_err *err)
{
    struct hfd_remote_http_config http = config->http;
    struct hfd_remote *r = calloc(1, sizeof(*r));
    hfd_rc rc = HFD_NOMEM;

    HFD_ASSERT(config->in_flight_max >= 1 && config->in_flight_max <= REMOTE_IN_FLIGHT_MAX);
    *out = NULL;
    if (r == NULL)
        return hfd_fail_nomem(err, "start the remote thread");
    http.connections_max = config->in_flight_max + 1; /* one for the greeting */
    *r = (struct hfd_remote){.magic = HFD_REMOTE_MAGIC,
                             .sink = {remote_on_posted},
                             .config = *config,
                             .rules = config->rules != NULL ? config->rules : &own_rules,
                             .may_be_due = true};
    (void)pthread_mutex_init(&r->lock, NULL);
    r->polls.remote = r;
    r->read_us = remote_mono_us(r);
    r->slot_count = (size_t)config->in_flight_max;
    hfd_rate_init(&r->rate, config->per_second_max, remote_mono_us(r));
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

hfd_rc hfd_remote_start(const struct hfd_remote_config *config, struct hfd_remote **out,
                        struct hfd_err *err)
{
    hfd_rc rc = remote_new(config, out, err);

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

/* Reads what is due, and begins passes as far as slots and breaker allow. Thread: remote. */

#define COUNT_EVERY_US (10 * HFD_US_PER_S)
#define DUE_MEM_BYTES ((size_t)16 << 20)

struct due {
    struct hfd_remote *remote;
    struct hfd_arena *mem;
    struct hfd_work_query query;
    struct hfd_due found;
};

static hfd_rc txn_due(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct due *d = arg;

    return d->remote->rules->due(tx, &d->query, d->mem, &d->found, err);
}

/* When work may begin, monotonic; INT64_MAX = not before something else happens. */
static int64_t begin_us(const struct hfd_remote *r)
{
    const int64_t breaker_us = hfd_breaker_next_us(&r->breaker);

    if (r->busy_slots == r->slot_count)
        return INT64_MAX;
    return breaker_us > r->pause_until_us ? breaker_us : r->pause_until_us;
}

static void begin(struct hfd_remote *r, struct due *d)
{
    bool more = d->found.count == d->query.limit;

    for (size_t i = 0; i < d->found.count; i++) {
        if (hfd_skip_list_has(&r->aside, d->found.works[i].guresid) ||
            slots_run(r, &d->found.works[i]))
            continue;
        if (r->busy_slots == r->slot_count || !hfd_breaker_begin(&r->breaker, remote_mono_us(r))) {
            more = true;
            break;
        }
        slots_begin(r, &d->found.works[i]);
    }
    r->may_be_due = more;
    r->due_us = d->found.next_us > d->query.now_us ? d->found.next_us : d->query.now_us + PAUSE_US;
}

static hfd_rc txn_count(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct hfd_remote *r = arg;
    const int64_t now_us = remote_wall_us(r);
    int64_t due, overdue;
    hfd_rc rc = hfd_remote_row_count(tx, now_us, &due, err);

    if (rc == HFD_OK)
        rc = hfd_remote_row_count(tx, now_us - r->config.policy->watch_us, &overdue, err);
    if (rc != HFD_OK)
        return rc;
    hfd_metric_set(HFD_METRIC_REMOTE_DUE, NULL, due);
    hfd_metric_set(HFD_METRIC_REMOTE_OVERDUE, NULL, overdue);
    return HFD_OK;
}

/*
 * Counts what is due for the metrics, once in a while.
 * Ignores a failure: remote_begin_due logs it.
 */
static void remote_count_due(struct hfd_remote *r)
{
    struct hfd_err err;

    if (r->counted && remote_mono_us(r) - r->counted_us < COUNT_EVERY_US)
        return;
    r->counted = true;
    r->counted_us = remote_mono_us(r);
    (void)!remote_read(r, txn_count, r, &err);
}

/* Begins what is due, if something may be due and work may begin. */
static void remote_begin_due(struct hfd_remote *r)
{
    struct due d = {.remote = r,
                    .query = {.policy = r->config.policy,
                              .now_us = remote_wall_us(r),
                              .limit = r->slot_count + r->aside.count},
                    .found = {.next_us = INT64_MAX}};
    struct hfd_err err;
    struct hfd_arena mem;
    hfd_rc rc = HFD_NOMEM;

    if (!r->hold.leads)
        return;
    if (remote_mono_us(r) - r->read_us >= remote_read_every_us(r) || d.query.now_us >= r->due_us)
        r->may_be_due = true;
    if (!r->may_be_due || begin_us(r) > remote_mono_us(r))
        return;
    r->read_us = remote_mono_us(r);
    hfd_arena_init(&mem, DUE_MEM_BYTES);
    d.mem = &mem;
    d.found.works = hfd_arena_array(&mem, d.query.limit, sizeof(*d.found.works));
    if (d.found.works != NULL)
        rc = remote_read(r, txn_due, &d, &err);
    else
        (void)hfd_fail_nomem(&err, "read what is due");
    if (rc == HFD_OK) {
        begin(r, &d);
        r->cannot_read = false;
    } else {
        if (!r->cannot_read)
            HFD_LOG(HFD_LOG_ERROR, "remote HyperFleet: cannot read what is due; will try again",
                    HFD_LOG_CSTR("reason", err.msg));
        r->cannot_read = true;
        r->may_be_due = false; /* until REMOTE_READ_EVERY_US has passed, or
                                  something happens */
        r->due_us = INT64_MAX;
    }
    hfd_arena_fini(&mem);
}
