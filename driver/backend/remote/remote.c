/*
 * See remote.h. One pass is one slot: asked for a request (on this thread's own reader), sent when
 * the bound on requests lets it, its answer taken (by the writer), and asked again, until there is
 * nothing more to ask. Everything of a slot belongs to this thread but while its answer is with the
 * writer.
 */
#include "driver/backend/remote/remote_int.h"

#include "driver/backend/remote/asked.h"
#include "driver/backend/remote/breaker.h"
#include "driver/backend/remote/rate.h"
#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/base/thread.h"
#include "store/rows_remote.h"

#include <stdatomic.h>

#define BAD_MAX 3                            /* in a row: then the remote is no longer well */
#define LOOK_AT_LEAST_US (10 * HFD_US_PER_S) /* the clock that dues are kept by may be set */
#define COUNT_EVERY_US (10 * HFD_US_PER_S)
#define STORE_BUSY_WAIT_US (HFD_US_PER_S / 50)
#define SHUN_MAX 64
#define SHUN_US (30 * HFD_US_PER_S)
#define SPARE_US HFD_US_PER_S
#define ASKED_MAX 4096
#define HURRY_MAX 256
#define DUE_MEM_BYTES ((size_t)16 << 20)

enum slot_state {
    SLOT_FREE,
    SLOT_ASK,      /* the pass is to be asked for its next request */
    SLOT_READY,    /* has a request, which waits for its turn */
    SLOT_SENT,     /* with the client */
    SLOT_ANSWERED, /* has an answer, which the writer has not taken yet */
    SLOT_TAKING,   /* with the writer */
};

struct slot {
    struct hfd_job job; /* first member: the job is the slot */
    struct hfd_remote *remote;
    enum slot_state state;
    struct hfd_pass *pass;
    struct hfd_remote_call call; /* its request is the pass's */
    int64_t order;               /* READY: the lowest goes first */
    int64_t now_us;              /* TAKING: wall clock */
    bool took;                   /* an answer of this pass was taken */
};

/*
 * A resource that is left alone for a while, so that it takes nobody else's place: one that cannot
 * be worked on for a fault of our own, and one that was due and had nothing to ask, and would be
 * due again at once.
 */
struct shunned {
    struct hfd_asked_id id; /* len 0 = a look at many */
    int64_t until_us;       /* mono */
};

struct hurry {
    struct hfd_job job; /* first member */
    struct hfd_remote *remote;
    bool out;
    struct hfd_asked_id ids[HURRY_MAX];
    size_t count;
    int64_t older_us, now_us; /* wall clock */
};

struct hfd_remote {
    unsigned magic;
#define REMOTE_MAGIC 0x4e707e11u
    struct hfd_sink sink;
    struct hfd_remote_config config;
    const struct hfd_remote_rules *rules;
    struct hfd_remote_http *http;
    struct hfd_asked *asked;
    pthread_t thread;
    atomic_bool stop, woken; /* any thread */

    pthread_mutex_t lock;     /* of finished and state */
    struct hfd_job *finished; /* by the store, newest list first */
    struct hfd_remote_state state;

    /* The thread's own. */
    struct hfd_store_reader *reader;
    struct slot *slots;
    size_t slot_count, busy_slots;
    size_t jobs_out;
    struct hurry hurry;
    struct hfd_remote_call greeting; /* the one request at the start */
    struct hfd_rate rate;
    struct hfd_breaker breaker;
    int bad; /* answers in a row that were not well */
    bool ever_well;
    bool look;         /* something may be due */
    int64_t due_us;    /* wall clock: when something will be */
    int64_t looked_us; /* mono */
    int64_t order;
    struct shunned shunned[SHUN_MAX];
    size_t shunned_count;
    int64_t pause_until_us; /* mono: nothing is begun before */
    bool counted;
    int64_t counted_us; /* mono */
    bool failing;       /* logged: reading what is due fails */
};

static int64_t mono(const struct hfd_remote *r)
{
    return hfd_clock_mono_us(r->config.http.clock);
}

static int64_t wall(const struct hfd_remote *r)
{
    return hfd_clock_wall_us(r->config.http.clock);
}

/* ---- the remote's state ---- */

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
        [HFD_REMOTE_WELL] = "the remote HyperFleet answers well",
        [HFD_REMOTE_ILL] = "the remote HyperFleet does not answer well; it is asked less and "
                           "less often until it does",
        [HFD_REMOTE_REFUSES] = "the remote HyperFleet refuses our credentials; look at "
                               "remote.token_file and remote.cert_file",
        [HFD_REMOTE_WRONG] = "what answers is no HyperFleet; look at the URL in backend",
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

/* What an answer, or its absence, says of the remote. */
static void learn(struct hfd_remote *r, const struct hfd_remote_call *call)
{
    const enum hfd_remote_health health = r->rules->health_of(&call->answer);
    struct hfd_remote_state *state = &r->state;
    bool turned = false;
    char failure[248] = "";

    count_answer(call);
    (void)hfd_breaker_tell(&r->breaker, health == HFD_REMOTE_WELL || health == HFD_REMOTE_REFUSES,
                           mono(r), r->config.rng);
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
        state->last_answer_us = wall(r) + hfd_clock_skew_us(r->config.http.clock);
    memcpy(state->last_failure, failure, sizeof(state->last_failure));
    (void)pthread_mutex_unlock(&r->lock);
    r->ever_well = r->ever_well || health == HFD_REMOTE_WELL;
    if (!turned)
        return;
    hfd_metric_set(HFD_METRIC_REMOTE_UP, NULL, health == HFD_REMOTE_WELL);
    log_turn(r, health, failure);
}

static void count_in_flight(struct hfd_remote *r, int by)
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

/* ---- the store's side ---- */

/*
 * On the writer's thread. The wake is under the lock: whoever has seen the last job may free all of
 * this.
 */
static void on_posted(struct hfd_sink *sink, struct hfd_job *list)
{
    struct hfd_remote *r =
        (struct hfd_remote *)(void *)((char *)sink - offsetof(struct hfd_remote, sink));
    struct hfd_job *last = list;

    HFD_CHECK_OBJ(r, REMOTE_MAGIC);
    while (last->node.next != NULL)
        last = (struct hfd_job *)(void *)last->node.next;
    (void)pthread_mutex_lock(&r->lock);
    last->node.next = r->finished != NULL ? &r->finished->node : NULL;
    r->finished = list;
    hfd_remote_http_wake(r->http);
    (void)pthread_mutex_unlock(&r->lock);
}

/* Lets the jobs that are back go on. */
static void collect(struct hfd_remote *r)
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

static hfd_rc submit(struct hfd_remote *r, struct hfd_job *job, hfd_txn_fn *fn, void *arg,
                     void (*done)(struct hfd_job *job), struct hfd_err *err)
{
    hfd_rc rc;

    *job = (struct hfd_job){.fn = fn, .arg = arg, .sink = &r->sink, .done = done};
    rc = hfd_store_update(r->config.store, job, err);
    if (rc == HFD_OK)
        r->jobs_out++;
    return rc;
}

static hfd_rc read_now(struct hfd_remote *r, hfd_txn_fn *fn, void *arg, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    if (r->reader == NULL)
        rc = hfd_store_reader_open(r->config.store, &r->reader, err);
    return rc == HFD_OK ? hfd_store_read(r->reader, fn, arg, err) : rc;
}

/* ---- polls ---- */

static hfd_rc txn_hurry(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct hurry *h = arg;
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < h->count; i++)
        rc = h->remote->rules->hurry(tx, (hfd_slice){h->ids[i].text, h->ids[i].len}, h->older_us,
                                     h->now_us, err);
    return rc;
}

static void on_hurried(struct hfd_job *job)
{
    struct hurry *h = job->arg;

    h->out = false;
    h->remote->look = true;
    if (job->rc == HFD_OK)
        hfd_metric_add(HFD_METRIC_REMOTE_ASKED, NULL, (int64_t)h->count);
}

/*
 * One transaction at a time for all who were asked for. A store that is too busy for it is not
 * pressed: polls come again.
 */
static void hurry_asked(struct hfd_remote *r)
{
    struct hurry *h = &r->hurry;
    struct hfd_err err;

    if (h->out)
        return;
    h->count = hfd_asked_take(r->asked, h->ids, HURRY_MAX, mono(r));
    if (h->count == 0)
        return;
    h->now_us = wall(r);
    h->older_us = h->now_us - r->config.fresh_us;
    h->out = submit(r, &h->job, txn_hurry, h, on_hurried, &err) == HFD_OK;
}

/* ---- passes ---- */

static bool is_shunned(const struct hfd_remote *r, const struct hfd_remote_work *work)
{
    for (size_t i = 0; i < r->shunned_count; i++)
        if (hfd_slice_eq((hfd_slice){r->shunned[i].id.text, r->shunned[i].id.len}, work->guresid))
            return true;
    return false;
}

static void shun(struct hfd_remote *r, const struct hfd_remote_work *work, int64_t for_us)
{
    struct shunned *s;

    if (r->shunned_count == SHUN_MAX || work->guresid.len > HFD_ASKED_ID_MAX) {
        r->pause_until_us =
            mono(r) + SPARE_US; /* nothing is begun rather than the same over and over */
        return;
    }
    s = &r->shunned[r->shunned_count++];
    *s = (struct shunned){.id.len = work->guresid.len, .until_us = mono(r) + for_us};
    if (work->guresid.len > 0)
        memcpy(s->id.text, work->guresid.p, work->guresid.len);
}

static void shun_failed(struct hfd_remote *r, const struct hfd_remote_work *work, const char *why)
{
    HFD_LOG(HFD_LOG_ERROR,
            "remote HyperFleet: a resource cannot be worked on; it is left alone for a while",
            HFD_LOG_STR("guresid", work->guresid), HFD_LOG_CSTR("reason", why));
    shun(r, work, SHUN_US);
}

static void forgive(struct hfd_remote *r)
{
    size_t kept = 0;

    for (size_t i = 0; i < r->shunned_count; i++)
        if (r->shunned[i].until_us > mono(r))
            r->shunned[kept++] = r->shunned[i];
    r->look = r->look || kept != r->shunned_count;
    r->shunned_count = kept;
}

/* @param why  what went wrong on our side, or NULL */
static void end_pass(struct slot *s, const char *why)
{
    struct hfd_remote *r = s->remote;

    if (why != NULL)
        shun_failed(r, r->rules->pass_work(s->pass), why);
    else if (!s->took)
        shun(r, r->rules->pass_work(s->pass), r->config.policy->watch_us);
    if (!s->took)
        hfd_breaker_unused(&r->breaker, mono(r));
    hfd_remote_call_fini(&s->call);
    r->rules->pass_free(s->pass);
    s->pass = NULL;
    s->state = SLOT_FREE;
    r->busy_slots--;
    r->look = true;
}

static bool is_running(const struct hfd_remote *r, const struct hfd_remote_work *work)
{
    for (size_t i = 0; i < r->slot_count; i++) {
        if (r->slots[i].state != SLOT_FREE &&
            hfd_slice_eq(r->rules->pass_work(r->slots[i].pass)->guresid, work->guresid))
            return true;
    }
    return false;
}

static void begin_pass(struct hfd_remote *r, const struct hfd_remote_work *work)
{
    struct slot *s = r->slots;
    struct hfd_err err;

    while (s->state != SLOT_FREE)
        s++;
    if (r->rules->pass_new(r->config.policy, work, &s->pass, &err) != HFD_OK) {
        shun_failed(r, work, err.msg);
        hfd_breaker_unused(&r->breaker, mono(r));
        return;
    }
    s->state = SLOT_ASK;
    s->took = false;
    r->busy_slots++;
}

struct due {
    struct hfd_remote *remote;
    struct hfd_arena *mem;
    struct hfd_due_query query;
    struct hfd_due found;
};

static hfd_rc txn_due(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct due *d = arg;

    return d->remote->rules->due(tx, &d->query, d->mem, &d->found, err);
}

/* When work may be begun, mono; INT64_MAX = not before something else happens. */
static int64_t begin_us(const struct hfd_remote *r)
{
    const int64_t breaker_us = hfd_breaker_next_us(&r->breaker);

    if (r->busy_slots == r->slot_count)
        return INT64_MAX;
    return breaker_us > r->pause_until_us ? breaker_us : r->pause_until_us;
}

/* Begins what is due, as far as there are free slots and the breaker lets it. */
static void begin_due(struct hfd_remote *r, struct due *d)
{
    bool more = d->found.count == d->query.limit;

    for (size_t i = 0; i < d->found.count; i++) {
        if (is_shunned(r, &d->found.works[i]) || is_running(r, &d->found.works[i]))
            continue;
        if (r->busy_slots == r->slot_count || !hfd_breaker_begin(&r->breaker, mono(r))) {
            more = true;
            break;
        }
        begin_pass(r, &d->found.works[i]);
    }
    r->look = more;
    r->due_us = d->found.next_us > d->query.now_us ? d->found.next_us : d->query.now_us + SPARE_US;
}

static hfd_rc txn_count(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct hfd_remote *r = arg;
    const int64_t now_us = wall(r);
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

/* For the metrics, also while nothing is begun. A failure is told by whoever needs to read. */
static void count_due(struct hfd_remote *r)
{
    struct hfd_err err;

    if (r->counted && mono(r) - r->counted_us < COUNT_EVERY_US)
        return;
    r->counted = true;
    r->counted_us = mono(r);
    (void)!read_now(r, txn_count, r, &err);
}

static void look(struct hfd_remote *r)
{
    struct due d = {.remote = r,
                    .query = {.policy = r->config.policy,
                              .now_us = wall(r),
                              .limit = r->slot_count + r->shunned_count},
                    .found = {.next_us = INT64_MAX}};
    struct hfd_err err;
    struct hfd_arena mem;
    hfd_rc rc = HFD_NOMEM;

    if (mono(r) - r->looked_us >= LOOK_AT_LEAST_US || d.query.now_us >= r->due_us)
        r->look = true;
    if (!r->look || begin_us(r) > mono(r))
        return;
    r->looked_us = mono(r);
    hfd_arena_init(&mem, DUE_MEM_BYTES);
    d.mem = &mem;
    d.found.works = hfd_arena_array(&mem, d.query.limit, sizeof(*d.found.works));
    if (d.found.works != NULL)
        rc = read_now(r, txn_due, &d, &err);
    else
        (void)hfd_fail(&err, rc, "out of memory");
    if (rc == HFD_OK) {
        begin_due(r, &d);
        r->failing = false;
    } else {
        if (!r->failing)
            HFD_LOG(HFD_LOG_ERROR, "remote HyperFleet: cannot read what is due; will go on trying",
                    HFD_LOG_CSTR("reason", err.msg));
        r->failing = true;
        r->look = false; /* and again after LOOK_AT_LEAST_US, or when something happens */
        r->due_us = INT64_MAX;
    }
    hfd_arena_fini(&mem);
}

/* ---- one slot's way ---- */

struct next {
    struct slot *slot;
    int64_t now_us;
};

static hfd_rc txn_next(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct next *n = arg;

    return n->slot->remote->rules->next(tx, n->slot->pass, n->now_us, &n->slot->call.request, err);
}

static void ask(struct slot *s)
{
    struct hfd_remote *r = s->remote;
    struct next n = {.slot = s, .now_us = wall(r)};
    struct hfd_err err;

    hfd_remote_call_fini(&s->call);
    if (read_now(r, txn_next, &n, &err) != HFD_OK) {
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
    struct slot *s = call->arg;

    learn(s->remote, call);
    count_in_flight(s->remote, -1);
    s->state = SLOT_ANSWERED;
}

static void send_request(struct slot *s)
{
    struct hfd_err err;

    s->call.done = on_answer;
    s->call.arg = s;
    if (hfd_remote_http_send(s->remote->http, &s->call, &err) == HFD_OK) {
        count_in_flight(s->remote, 1);
        s->state = SLOT_SENT;
        return;
    }
    s->call.answer = (struct hfd_remote_answer){.failure = "not sent: out of memory"};
    s->state = SLOT_ANSWERED;
}

static hfd_rc txn_take(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct slot *s = arg;
    const struct hfd_remote_exchange exchange = {&s->call.request, &s->call.answer, s->now_us};

    return s->remote->rules->take(tx, s->pass, &exchange, err);
}

static void on_taken(struct hfd_job *job)
{
    struct slot *s = job->arg;

    s->took = s->took || job->rc == HFD_OK;
    s->state = SLOT_ASK;
    if (job->rc != HFD_OK)
        end_pass(s, job->err.msg);
}

/* A store that is busy is tried again; one that is broken ends the thread. */
static void give_answer(struct slot *s)
{
    struct hfd_err err;

    s->now_us = wall(s->remote);
    if (submit(s->remote, &s->job, txn_take, s, on_taken, &err) == HFD_OK)
        s->state = SLOT_TAKING;
}

static struct slot *first_ready(struct hfd_remote *r)
{
    struct slot *first = NULL;

    for (size_t i = 0; i < r->slot_count; i++)
        if (r->slots[i].state == SLOT_READY && (first == NULL || r->slots[i].order < first->order))
            first = &r->slots[i];
    return first;
}

static void go_on(struct hfd_remote *r)
{
    struct slot *s;

    for (size_t i = 0; i < r->slot_count; i++) {
        if (r->slots[i].state == SLOT_ANSWERED)
            give_answer(&r->slots[i]);
        else if (r->slots[i].state == SLOT_ASK)
            ask(&r->slots[i]);
    }
    while ((s = first_ready(r)) != NULL && hfd_rate_take(&r->rate, mono(r)))
        send_request(s);
}

/* ---- the thread ---- */

static void sooner(int64_t *wait_us, int64_t other_us)
{
    if (other_us < *wait_us)
        *wait_us = other_us;
}

static int64_t wait_us(struct hfd_remote *r)
{
    const int64_t now_us = mono(r), breaker_us = hfd_breaker_next_us(&r->breaker);
    int64_t wait = LOOK_AT_LEAST_US;

    if (r->busy_slots < r->slot_count && breaker_us != INT64_MAX) {
        const int64_t due_us = r->look                  ? 0
                               : r->due_us == INT64_MAX ? LOOK_AT_LEAST_US
                                                        : r->due_us - wall(r);
        const int64_t allowed_us = breaker_us - now_us;

        sooner(&wait, due_us > allowed_us ? due_us : allowed_us);
    }
    if (first_ready(r) != NULL)
        sooner(&wait, hfd_rate_next_us(&r->rate, now_us) - now_us);
    for (size_t i = 0; i < r->slot_count; i++)
        if (r->slots[i].state == SLOT_ANSWERED || r->slots[i].state == SLOT_ASK)
            sooner(&wait, r->slots[i].state == SLOT_ASK ? 0 : STORE_BUSY_WAIT_US);
    for (size_t i = 0; i < r->shunned_count; i++)
        sooner(&wait, r->shunned[i].until_us - now_us);
    return wait > 0 ? wait : 0;
}

static void on_greeted(struct hfd_remote_call *call)
{
    struct hfd_remote *r = call->arg;

    learn(r, call);
    count_in_flight(r, -1);
    hfd_remote_call_fini(call);
}

/* So that a wrong URL or token is told at the start, and not with the first order. */
static void greet(struct hfd_remote *r)
{
    struct hfd_err err;

    r->greeting = (struct hfd_remote_call){
        .request = {.method = HFD_REMOTE_GET,
                    .path = HFD_SLICE("/clusters?page=1&size=1&pageSize=1")},
        .done = on_greeted,
        .arg = r};
    if (hfd_rate_take(&r->rate, mono(r)) &&
        hfd_remote_http_send(r->http, &r->greeting, &err) == HFD_OK)
        count_in_flight(r, 1);
}

/*
 * Cuts off what is in flight and waits for what is with the store, which answers also when it is
 * broken.
 */
static void wind_down(struct hfd_remote *r)
{
    hfd_remote_call_fini(&r->greeting);
    for (size_t i = 0; i < r->slot_count; i++)
        if (r->slots[i].state == SLOT_SENT)
            hfd_remote_call_fini(&r->slots[i].call);
    while (r->jobs_out > 0) {
        hfd_remote_http_run(r->http, HFD_US_PER_S);
        collect(r);
    }
    for (size_t i = 0; i < r->slot_count; i++) {
        if (r->slots[i].state == SLOT_FREE)
            continue;
        hfd_remote_call_fini(&r->slots[i].call);
        r->rules->pass_free(r->slots[i].pass);
        r->slots[i].state = SLOT_FREE;
    }
    hfd_metric_set(HFD_METRIC_REMOTE_IN_FLIGHT, NULL, 0);
    hfd_store_reader_close(&r->reader);
}

static void *run(void *arg)
{
    struct hfd_remote *r = arg;

    HFD_CHECK_OBJ(r, REMOTE_MAGIC);
    greet(r);
    while (!atomic_load(&r->stop) && hfd_store_ok(r->config.store)) {
        collect(r);
        if (atomic_exchange(&r->woken, false))
            r->look = true;
        hurry_asked(r);
        forgive(r);
        count_due(r);
        look(r);
        go_on(r);
        hfd_remote_http_run(r->http, wait_us(r));
    }
    wind_down(r);
    return NULL;
}

/* ---- from outside ---- */

void hfd_remote_asked(struct hfd_remote *r, hfd_slice guresid)
{
    HFD_CHECK_OBJ(r, REMOTE_MAGIC);
    if (hfd_asked_push(r->asked, guresid, mono(r)))
        hfd_remote_http_wake(r->http);
}

void hfd_remote_wake(struct hfd_remote *r)
{
    HFD_CHECK_OBJ(r, REMOTE_MAGIC);
    if (!atomic_exchange(&r->woken, true))
        hfd_remote_http_wake(r->http);
}

void hfd_remote_reload(struct hfd_remote *r)
{
    HFD_CHECK_OBJ(r, REMOTE_MAGIC);
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
        return hfd_fail(err, rc, "remote thread");
    http.connections_max = config->in_flight_max + 1; /* one for the greeting */
    *r = (struct hfd_remote){.magic = REMOTE_MAGIC,
                             .sink = {on_posted},
                             .config = *config,
                             .rules = rules,
                             .look = true};
    (void)pthread_mutex_init(&r->lock, NULL);
    r->hurry.remote = r;
    r->looked_us = mono(r);
    r->slot_count = (size_t)config->in_flight_max;
    hfd_rate_init(&r->rate, config->per_second_max, mono(r));
    hfd_breaker_init(&r->breaker, config->policy->retry_min_us, config->policy->retry_max_us);
    r->slots = calloc(r->slot_count, sizeof(*r->slots));
    for (size_t i = 0; r->slots != NULL && i < r->slot_count; i++)
        r->slots[i].remote = r;
    if (r->slots != NULL)
        rc = hfd_asked_new(ASKED_MAX, config->fresh_us, &r->asked, err);
    else
        (void)hfd_fail(err, rc, "remote thread");
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
    hfd_metric_set(HFD_METRIC_REMOTE_UP, NULL, 1); /* until it is known better */
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
    HFD_CHECK_OBJ(r, REMOTE_MAGIC);
    atomic_store(&r->stop, true);
    hfd_remote_http_wake(r->http);
    (void)pthread_join(r->thread, NULL);
    remote_free(r);
}
