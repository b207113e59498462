/* See exchange.h. */
#include "handlers/http/exchange.h"

#include "driver/base/check.h"
#include "driver/base/err.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/core/driver.h"
#include "handlers/http/access.h"
#include "handlers/http/route.h"
#include "handlers/http/door.h"
#include "handlers/http/exchange_int.h"
#include "handlers/http/http.h"
#include "handlers/http/loop.h"
#include "handlers/http/query.h"
#include "handlers/http/reply.h"

#include <poll.h>

/* ---- errors ---- */

#define PROBLEM_MAX_BYTES 262144 /* a full list of violations with the longest fields */

/* Takes a finished buffer, whose bytes live until the answer is sent. Once per exchange. */
static void keep_body(struct hfd_exchange *x, struct hfd_buf *b)
{
    /* A buffer with a budget has taken its bytes; small ones are not counted. */
    const int64_t bytes = b->budget == NULL && b->cap > HFD_BUDGET_FREE_BYTES ? (int64_t)b->cap : 0;

    hfd_buf_fini(&x->body);
    x->body = *b;
    *b = (struct hfd_buf){0};
    hfd_budget_add(&x->loop->server->memory, bytes - x->kept_bytes);
    x->kept_bytes = bytes;
}

/* Returns the GUResID of a request to the Driver API; empty if there is none. */
static hfd_slice resource_of(const struct hfd_exchange *x)
{
    hfd_slice id = HFD_SLICE_NONE;

    if (x->match.dialect == HFD_DIALECT_DRIVER && x->match.route != NULL)
        id = hfd_exchange_param(x, "guresid");
    return hfd_guresid_check(id, NULL) == HFD_OK ? id : HFD_SLICE_NONE;
}

void hfd_exchange_problem(struct hfd_exchange *x, struct hfd_problem *p, const char *allow)
{
    struct hfd_reply reply = {0};
    struct hfd_buf b;

    p->dialect = x->match.dialect;
    p->path = x->view.path;
    p->resource = resource_of(x);
    p->request_id = x->view.request_id;
    p->now_us = x->view.received_us;
    hfd_buf_init(&b, PROBLEM_MAX_BYTES);
    hfd_problem_format(p, &b, &reply);
    if (b.rc == HFD_OK)
        reply.body = hfd_buf_slice(&b);
    else
        reply.content_type = NULL; /* no memory for a body: the status must do */
    keep_body(x, &b);
    reply.allow = allow;
    hfd_exchange_reply(x, &reply);
}

static void fail(struct hfd_exchange *x, struct hfd_problem *p, const struct hfd_err *err)
{
    if (HFD_NEVER(p->rc == HFD_OK))
        p->rc = HFD_CORRUPT;
    if (p->rc == HFD_NOMEM)
        hfd_metric_add(HFD_METRIC_HTTP_REFUSED, HFD_LABELS("memory"), 1);
    else if (p->rc == HFD_TIMEOUT)
        hfd_metric_add(HFD_METRIC_HTTP_REFUSED, HFD_LABELS("read_timeout"), 1);
    /* The log has what a 5xx hides from the client. */
    if (hfd_problem_status(x->match.dialect, p->rc) >= 500 && p->rc != HFD_UNCHECKED)
        HFD_LOG(p->rc == HFD_CORRUPT || p->rc == HFD_DAMAGED || p->rc == HFD_IO ? HFD_LOG_ERROR
                                                                                : HFD_LOG_WARN,
                "request failed", HFD_LOG_CSTR("rc", hfd_rc_name(p->rc)),
                HFD_LOG_CSTR("detail", err != NULL ? err->msg : ""));
    p->field = err != NULL ? err->field : NULL;
    p->message = err != NULL ? err->msg : NULL;
    hfd_exchange_problem(x, p, NULL);
}

void hfd_exchange_fail(struct hfd_exchange *x, hfd_rc rc, const struct hfd_err *err)
{
    fail(x, &(struct hfd_problem){.rc = rc}, err);
}

void hfd_exchange_fail_as(struct hfd_exchange *x, int status, hfd_rc rc, const struct hfd_err *err)
{
    fail(x, &(struct hfd_problem){.rc = rc, .status = status}, err);
}

void hfd_exchange_fail_fields(struct hfd_exchange *x, hfd_rc rc, const struct hfd_err *err,
                              const struct hfd_violations *fields)
{
    fail(x, &(struct hfd_problem){.rc = rc, .fields = fields}, err);
}

void hfd_exchange_fail_rules(struct hfd_exchange *x, hfd_rc rc, const struct hfd_err *err,
                             const struct hfd_health_violations *rules)
{
    fail(x, &(struct hfd_problem){.rc = rc, .rules = rules}, err);
}

/* ---- answers that wait ---- */

#define HFD_LATER_MAX 256 /* answers of a loop that wait; further 401s do not wait */

/*
 * Lets an answer wait.
 * @param later  in the memory of later->x; not linked yet
 * @return false if too many wait: answer now
 */
static bool later_add(struct hfd_loop *loop, struct hfd_delayed_reply *later)
{
    if ((loop->later_count >= HFD_LATER_MAX && later->do_without == NULL) || loop->draining)
        return false;
    if (loop->later_count++ == 0 || later->until_us < loop->later_us)
        loop->later_us = later->until_us;
    later->link = (h2o_linklist_t){.next = NULL};
    h2o_linklist_insert(&loop->later, &later->link);
    return true;
}

/* Forgets an answer: its client has gone. */
static void later_cancel(struct hfd_loop *loop, struct hfd_delayed_reply *later)
{
    HFD_ASSERT(loop->later_count > 0 && h2o_linklist_is_linked(&later->link));
    loop->later_count--;
    h2o_linklist_unlink(&later->link);
}

/* Leaves the count of requests in flight: the answer is decided, or the client has gone. */
static void exchange_leave_flight(struct hfd_exchange *x)
{
    if (!x->counted)
        return;
    x->counted = false;
    atomic_fetch_sub(&x->loop->server->in_flight, 1);
    hfd_metric_add(HFD_METRIC_HTTP_INFLIGHT, NULL, -1);
}

/* It is no request in progress any more: what waits takes no place from others. */
void hfd_exchange_refuse_later(struct hfd_exchange *x, const struct hfd_err *err, int64_t delay_us)
{
    struct hfd_delayed_reply *later = hfd_arena_alloc(&x->mem, sizeof(*later));

    if (later != NULL)
        *later = (struct hfd_delayed_reply){
            .x = x, .until_us = hfd_loop_mono_us(x->loop) + delay_us, .err = *err};
    if (later == NULL || hfd_listener_is_full(x->conn->listener) || !later_add(x->loop, later)) {
        hfd_exchange_fail(x, HFD_UNAUTHORIZED, err);
        return;
    }
    x->later = later;
    exchange_leave_flight(x);
}

void hfd_exchange_limit(struct hfd_exchange *x, int64_t limit_us, hfd_handler_fn *do_without)
{
    struct hfd_delayed_reply *later = hfd_arena_alloc(&x->mem, sizeof(*later));

    HFD_ASSERT(x->later == NULL && !x->job_out);
    if (later == NULL)
        return;
    *later = (struct hfd_delayed_reply){
        .x = x, .until_us = hfd_loop_mono_us(x->loop) + limit_us, .do_without = do_without};
    if (later_add(x->loop, later))
        x->later = later;
}

void hfd_exchange_enter(const struct hfd_exchange *x)
{
    hfd_log_request_id(x != NULL ? x->view.request_id : HFD_SLICE_NONE);
    hfd_trace_enter(x != NULL ? &x->view.trace : NULL);
}

static void answer(struct hfd_exchange *x)
{
    const struct hfd_delayed_reply *later = x->later;

    x->refs++;
    x->later = NULL;
    hfd_exchange_enter(x);
    if (later->do_without != NULL) {
        x->job_left = x->job_out;
        x->viewing = false; /* the job goes on, though the client leaves */
        later->do_without(x);
    } else {
        hfd_exchange_fail(x, HFD_UNAUTHORIZED, &later->err);
    }
    hfd_exchange_enter(NULL);
    hfd_exchange_unref(x);
}

void hfd_delayed_reply_answer_now(struct hfd_exchange *x)
{
    later_cancel(x->loop, x->later);
    x->loop->again = true;
    answer(x);
}

/* ---- long bodies ---- */

/* The client sees fewer bytes than Content-Length, and the connection closes. */
static void cut_short(struct hfd_exchange *x, const struct hfd_err *err)
{
    HFD_LOG(HFD_LOG_WARN, "the answer is cut short", HFD_LOG_CSTR("reason", err->msg),
            HFD_LOG_INT("sent", x->stream_sent), HFD_LOG_INT("of", x->stream->length));
    x->req->http1_is_persistent = 0;
    h2o_send(x->req, NULL, 0, H2O_SEND_STATE_ERROR);
}

static void send_piece(struct hfd_exchange *x)
{
    const hfd_slice piece = *x->stream->next;

    HFD_ASSERT(piece.len > 0 && piece.len <= x->stream->length - x->stream_sent);
    x->stream_sent += piece.len;
    hfd_conn_send(x->req, piece, x->stream_sent == x->stream->length);
}

static void on_read(struct hfd_job *job)
{
    struct hfd_exchange *x = (struct hfd_exchange *)(void *)job;

    HFD_CHECK_OBJ(x, HFD_EXCHANGE_MAGIC);
    x->job_out = x->viewing = false;
    hfd_exchange_enter(x);
    if (x->req != NULL && job->rc == HFD_OK)
        send_piece(x);
    else if (x->req != NULL)
        cut_short(x, &job->err);
    hfd_exchange_enter(NULL);
    hfd_exchange_unref(x);
}

static void read_next(struct hfd_exchange *x)
{
    struct hfd_err err;

    x->job = (struct hfd_job){
        .fn = x->stream->read, .arg = x->stream->arg, .sink = &x->loop->sink, .done = on_read};
    x->job_out = x->viewing = true;
    x->refs++;
    if (hfd_store_view(hfd_exchange_app(x)->store, &x->job, &err) == HFD_OK)
        return;
    x->job_out = x->viewing = false;
    x->refs--;
    cut_short(x, &err);
}

/* A client that takes piece after piece is not slow, however long the whole lasts. */
static void on_proceed(h2o_generator_t *generator, h2o_req_t *req)
{
    struct hfd_exchange *x = H2O_STRUCT_FROM_MEMBER(struct hfd_exchange, generator, generator);

    (void)req;
    x->conn->write_began_us = 0;
    read_next(x);
}

void hfd_exchange_at_end(struct hfd_exchange *x, void (*fn)(void *arg), void *arg)
{
    HFD_ASSERT(x->at_end == NULL);
    x->at_end = fn;
    x->at_end_arg = arg;
}

/* Starts the response that is set up in the request of x, and reads the first piece. */
static void stream_start(struct hfd_exchange *x, const struct hfd_stream_body *p)
{
    x->generator = (h2o_generator_t){.proceed = on_proceed, .stop = NULL};
    x->stream = p;
    h2o_start_response(x->req, &x->generator);
    read_next(x);
}

/* ---- answers without a known length ---- */

/*
 * A flow is to cost little memory while it waits. So h2o's connection and request are given up when
 * the head and the first piece are written. From then on the exchange owns the socket.
 */

/* The connection is gone, or about to go. */
static void leave_conn(struct hfd_exchange *x)
{
    x->conn = NULL;
    hfd_exchange_unref(x);
}

static void on_piece_written(h2o_socket_t *sock, const char *err)
{
    struct hfd_exchange *x = sock->data;
    struct hfd_conn *conn = x->conn;

    HFD_CHECK_OBJ(x, HFD_EXCHANGE_MAGIC);
    if (err != NULL || x->last_piece) {
        conn->request_id = HFD_SLICE_NONE;
        conn->exchange = NULL;
        leave_conn(x);
        hfd_conn_end(conn);
        return;
    }
    conn->write_began_us = 0;
    x->refs++;
    hfd_exchange_enter(x);
    x->on_flow(x->flow_arg);
    hfd_exchange_enter(NULL);
    hfd_exchange_unref(x);
}

/* @param sock  NULL: the client has gone, and the connection with it */
static void on_head_written(void *arg, h2o_socket_t *sock, size_t request_bytes)
{
    struct hfd_exchange *x = arg;

    (void)request_bytes;
    if (sock == NULL) {
        leave_conn(x);
        return;
    }
    sock->data = x;
    x->conn->exchange = x;
    x->conn->request_id = x->view.request_id;
    hfd_conn_own(x->conn);
    on_piece_written(sock, NULL);
}

void hfd_exchange_flow(struct hfd_exchange *x, const struct hfd_reply *reply,
                       void (*on_flow)(void *arg), void *arg)
{
    HFD_ASSERT(!x->replied && !x->job_out && !x->held && x->req != NULL);
    x->flowing = true;
    x->on_flow = on_flow;
    x->flow_arg = arg;
    hfd_exchange_reply(x, reply);
}

void hfd_exchange_flow_send(struct hfd_exchange *x, hfd_slice bytes, bool last)
{
    h2o_iovec_t vec = h2o_iovec_init(bytes.p, bytes.len);

    HFD_ASSERT(x->flowing && !x->job_out && !x->held && x->conn != NULL);
    x->last_piece = last;
    x->conn->given_bytes += bytes.len;
    if (x->req != NULL)
        h2o_http1_upgrade(x->req, &vec, 1, on_head_written, x);
    else
        h2o_socket_write(x->conn->sock, &vec, 1, on_piece_written);
}

/* ---- requests that wait ---- */

void hfd_exchange_hold(struct hfd_exchange *x)
{
    HFD_ASSERT(!x->held && !x->job_out && (!x->replied || x->flowing) && x->conn != NULL);
    x->held = true;
    x->held_us -= hfd_loop_mono_us(x->loop);
    exchange_leave_flight(x);
    if (x->conn->placeless || x->conn->lent)
        return;
    x->conn->lent = true; /* its place is for other connections */
    x->conn->listener->on_closed(x->conn->listener);
}

void hfd_exchange_go_on(struct hfd_exchange *x)
{
    HFD_ASSERT(x->held && x->conn != NULL);
    x->held = false;
    x->held_us += hfd_loop_mono_us(x->loop);
    if (!x->conn->lent)
        return;
    x->conn->lent = false; /* it takes a place again, whether one is free or not */
    atomic_fetch_add(&x->conn->listener->connections, 1);
    hfd_metric_add(HFD_METRIC_HTTP_CONNECTIONS, NULL, 1);
}

bool hfd_exchange_is_wanted(const struct hfd_exchange *x)
{
    struct pollfd p = {.fd = h2o_socket_get_fd(x->conn->sock), .events = POLLRDHUP};

    return poll(&p, 1, 0) != 1;
}

void hfd_exchange_prefetch(struct hfd_exchange *x, hfd_txn_fn *prefetch)
{
    x->prefetch = prefetch;
}

/* ---- life, jobs and the answer ---- */

/*
 * One request on its way through a handler. The exchange owns its memory. Its references: one for
 * the request that h2o holds, one for a job that is out, one for running code. If the client
 * leaves, req becomes NULL, and a job that returns frees the rest without an answer.
 */

static struct hfd_exchange *exchange_of_job(struct hfd_job *job)
{
    struct hfd_exchange *x = (struct hfd_exchange *)(void *)job;

    HFD_CHECK_OBJ(x, HFD_EXCHANGE_MAGIC);
    return x;
}

void hfd_exchange_unref(struct hfd_exchange *x)
{
    HFD_ASSERT(x->refs > 0);
    if (--x->refs != 0)
        return;
    exchange_leave_flight(x);
    if (x->at_end != NULL)
        x->at_end(x->at_end_arg);
    hfd_arena_fini(&x->mem);
    hfd_buf_fini(&x->body);
    hfd_budget_give(&x->loop->server->memory, x->kept_bytes + x->sending.copy_bytes);
    HFD_ASSERT(x->loop->exchanges > 0);
    x->loop->exchanges--;
    x->magic = 0;
    free(x);
}

void hfd_exchange_cancel(struct hfd_exchange *x)
{
    if (hfd_exchange_is_viewing(x) && !atomic_exchange(&x->job.cancelled, true))
        hfd_metric_add(HFD_METRIC_HTTP_REFUSED, HFD_LABELS("cancelled"), 1);
}

static void drop_later(struct hfd_exchange *x)
{
    if (x->later != NULL)
        later_cancel(x->loop, x->later);
    x->later = NULL;
}

/* Called by h2o when it disposes of the request: the answer is sent, or the connection closes. */
static void on_req_gone(void *slot)
{
    struct hfd_exchange *x = *(struct hfd_exchange **)slot;

    HFD_CHECK_OBJ(x, HFD_EXCHANGE_MAGIC);
    x->req = NULL;
    drop_later(x);
    hfd_exchange_cancel(x);
    x->conn->request_id = HFD_SLICE_NONE;
    x->conn->exchange = NULL;
    HFD_CHECK_OBJ(x->conn, HFD_CONN_MAGIC);
    if (!h2o_linklist_is_linked(&x->conn->rearm_link))
        h2o_linklist_insert(&x->loop->rearm, &x->conn->rearm_link);
    if (!x->flowing) /* on_head_written follows */
        leave_conn(x);
}

struct hfd_exchange *hfd_exchange_new(struct hfd_loop *loop, h2o_req_t *req)
{
    struct hfd_exchange *x = calloc(1, sizeof(*x)), **slot;

    if (x == NULL)
        return NULL;
    x->magic = HFD_EXCHANGE_MAGIC;
    x->refs = 1;
    x->loop = loop;
    x->req = req;
    x->conn = hfd_conn_of(req);
    x->started_us = hfd_loop_mono_us(loop);
    hfd_arena_init(&x->mem, loop->server->limits.arena_max_bytes);
    if (x->conn->listener->which == HFD_LISTENER_MAIN)
        x->mem.budget = &loop->server->memory; /* the ops listener always has room */
    x->conn->exchange = x;
    x->client = x->conn->client;
    loop->exchanges++;
    slot = h2o_mem_alloc_shared(&req->pool, sizeof(struct hfd_exchange *), on_req_gone);
    *slot = x;
    return x;
}

/* Logs a request. One that changes nothing, such as a poll by PUT, is of interest at debug only. */
static void log_request(const struct hfd_exchange *x, const char *msg, int status, size_t bytes)
{
    const bool quiet = !x->writes && status < 400;
    const enum hfd_log_level level = status >= 500 ? HFD_LOG_WARN
                                     : quiet       ? HFD_LOG_DEBUG
                                                   : HFD_LOG_INFO;

    char from[HFD_IP_TEXT_MAX];

    if (!hfd_log_enabled(level))
        return;
    hfd_host_address_format(&x->client, from);
    const struct hfd_log_field fields[] = {
        HFD_LOG_CSTR("method", hfd_method_name(x->view.method)),
        HFD_LOG_CSTR("route", x->match.route != NULL ? x->match.route->name : "none"),
        HFD_LOG_STR("path", ((hfd_slice){x->path_log, x->path_log_len})),
        HFD_LOG_INT("status", status),
        HFD_LOG_INT("bytes", bytes),
        HFD_LOG_INT("duration_us", hfd_loop_mono_us(x->loop) - x->started_us),
        HFD_LOG_CSTR("from", from),
        HFD_LOG_STR("caller", x->caller)};

    hfd_log_write(level, msg, fields,
                  sizeof(fields) / sizeof(fields[0]) - (x->caller.len == 0 ? 1 : 0));
}

struct hfd_buf *hfd_exchange_body(struct hfd_exchange *x, size_t max_bytes)
{
    hfd_buf_fini(&x->body);
    hfd_buf_init(&x->body, max_bytes);
    x->body.budget = x->mem.budget;
    return &x->body;
}

/*
 * h2o reads the last Connection header only, and takes anything but "keep-alive" for "close". A
 * caller that is refused keeps no place.
 */
static bool stays_open(const struct hfd_exchange *x, int status)
{
    return x->conn->head.keep_alive && !x->conn->pipelined && !x->loop->draining && status != 401;
}

void hfd_exchange_reply(struct hfd_exchange *x, const struct hfd_reply *reply)
{
    h2o_req_t *req = x->req;
    /* RFC 9110, 8.6 and 15.4.5: neither has a Content-Length. */
    const bool bare = reply->status == 204 || reply->status == 304;
    const bool has_body = reply->content_type != NULL && !bare;
    const size_t bytes = reply->stream != NULL ? reply->stream->length : reply->body.len;
    hfd_slice body = HFD_SLICE_NONE;

    HFD_CHECK_OBJ(x, HFD_EXCHANGE_MAGIC);
    HFD_ASSERT(!x->replied && (!x->job_out || x->job_left) && req != NULL);
    x->replied = true;
    drop_later(x);
    exchange_leave_flight(x);
    hfd_counter_add(x->loop->counter, x->match.route, x->view.method, reply->status,
                    hfd_loop_mono_us(x->loop) - x->started_us - x->held_us);
    log_request(x, "request", reply->status, has_body ? bytes : 0);

    req->res.status = reply->status;
    req->res.reason = hfd_status_text(reply->status);
    req->res.content_length = bare ? SIZE_MAX : has_body ? bytes : 0;
    hfd_headers_add(req, reply,
                    &(struct hfd_headers){.request_id = x->view.request_id,
                                          .dialect = x->match.dialect,
                                          .prefer_s = x->prefer_s,
                                          .listener = x->conn->listener->which});
    req->http1_is_persistent = stays_open(x, reply->status) && !x->flowing;
    if (x->flowing) {
        req->res.content_length = SIZE_MAX;
        return;
    }
    if (has_body && x->view.method != HFD_METHOD_HEAD) {
        if (reply->stream != NULL) {
            stream_start(x, reply->stream);
            return;
        }
        body = reply->body;
    }
    hfd_sending_start(&x->sending, req, body);
}

const struct hfd_app *hfd_exchange_app(const struct hfd_exchange *x)
{
    return x->loop->server->app;
}

const struct hfd_route *hfd_exchange_route(const struct hfd_exchange *x)
{
    return x->match.route;
}

const struct hfd_request *hfd_exchange_request(const struct hfd_exchange *x)
{
    return &x->view;
}

hfd_slice hfd_exchange_caller(const struct hfd_exchange *x)
{
    return x->caller;
}

/* Returns true if the request came through a proxy of http.trusted_proxies, before its answer. */
static bool is_proxied(const struct hfd_exchange *x)
{
    return hfd_peer_is_in(&hfd_exchange_app(x)->settings->http_trusted_proxies, &x->conn->peer);
}

struct hfd_arena *hfd_exchange_mem(struct hfd_exchange *x)
{
    return &x->mem;
}

bool hfd_exchange_draining(const struct hfd_exchange *x)
{
    return atomic_load(&x->loop->server->draining);
}

hfd_slice hfd_exchange_param(const struct hfd_exchange *x, const char *name)
{
    const size_t n = strlen(name);
    const char *at = x->match.route->pattern;

    for (size_t i = 0; (at = strchr(at, '{')) != NULL; i++) {
        at++;
        if (strncmp(at, name, n) == 0 && at[n] == '}')
            return x->match.params[i];
    }
    return HFD_SLICE_NONE;
}

hfd_rc hfd_exchange_header(const struct hfd_exchange *x, const char *lower_name, hfd_slice *out,
                           struct hfd_err *err)
{
    const size_t name_len = strlen(lower_name);
    ssize_t at = -1;

    *out = HFD_SLICE_NONE;
    if (x->req == NULL)
        return HFD_OK;
    while ((at = h2o_find_header_by_str(&x->req->headers, lower_name, name_len, at)) != -1) {
        const h2o_iovec_t value = x->req->headers.entries[at].value;
        /* h2o leaves the white space after a value (RFC 9110, 5.5). */
        const hfd_slice v = hfd_slice_trim((hfd_slice){value.base, value.len});

        if (out->len > 0 && v.len > 0 && !hfd_slice_eq(*out, v)) {
            *out = HFD_SLICE_NONE;
            return hfd_fail(
                err, HFD_BAD_REQUEST,
                "the header %s is given more than once, with different values: expected one",
                lower_name);
        }
        if (out->len == 0)
            *out = v;
    }
    return HFD_OK;
}

int hfd_exchange_prefer_wait_s(const struct hfd_exchange *x)
{
    ssize_t at = -1;
    int wait_s = 0;

    while (x->view.method != HFD_METHOD_HEAD && x->req != NULL &&
           (at = h2o_find_header_by_str(&x->req->headers, H2O_STRLIT("prefer"), at)) != -1) {
        const h2o_iovec_t value = x->req->headers.entries[at].value;

        if (hfd_prefer_wait((hfd_slice){value.base, value.len}, &wait_s))
            break;
    }
    return wait_s;
}

/* Runs on the loop, after the commit. */
static void on_job_done(struct hfd_job *job)
{
    struct hfd_exchange *x = exchange_of_job(job);

    HFD_ASSERT(x->job_out);
    x->job_out = x->viewing = false;
    if (x->job_left) {
        hfd_exchange_unref(x);
        return;
    }
    hfd_exchange_enter(x);
    if (x->conn == NULL) {
        exchange_leave_flight(x);
        log_request(x, "client gone", 499, 0);
        hfd_metric_add(HFD_METRIC_HTTP_REFUSED, HFD_LABELS("client_gone"), 1);
    } else {
        x->then(x, job->arg, job->rc, &job->err);
        if (HFD_NEVER(!x->replied && !x->job_out && !x->held))
            hfd_exchange_fail(x, HFD_CORRUPT, NULL);
    }
    hfd_exchange_enter(NULL);
    hfd_exchange_unref(x);
}

typedef hfd_rc submit_fn(struct hfd_store *store, struct hfd_job *job, struct hfd_err *err);

static void submit(struct hfd_exchange *x, submit_fn *submit_job, hfd_txn_fn *fn, void *arg,
                   hfd_then_fn *then)
{
    struct hfd_err err = {0};
    hfd_rc rc;

    HFD_ASSERT((!x->replied || x->flowing) && !x->job_out && !x->held);
    x->job = (struct hfd_job){.fn = fn,
                              .prefetch = x->prefetch,
                              .arg = arg,
                              .sink = &x->loop->sink,
                              .done = on_job_done,
                              .is_short = x->is_short};
    x->then = then;
    x->job_out = true;
    x->refs++;
    /* From here on the job may run: x->mem is not touched until it is back. */
    rc = submit_job(hfd_exchange_app(x)->store, &x->job, &err);
    if (rc == HFD_OK)
        return;
    x->job_out = false;
    x->refs--;
    then(x, arg, rc, &err);
}

void hfd_exchange_update(struct hfd_exchange *x, hfd_txn_fn *fn, void *arg, hfd_then_fn *then)
{
    x->writes = true;
    submit(x, hfd_store_update, fn, arg, then);
}

void hfd_exchange_step(struct hfd_exchange *x, hfd_txn_fn *fn, void *arg, hfd_then_fn *then)
{
    x->viewing = true;
    submit(x, hfd_store_view, fn, arg, then);
    if (!x->job_out)
        x->viewing = false;
}

/* The database may be silent for long: the loop does not wait for it. */
static void read_later(struct hfd_exchange *x, const struct hfd_exchange_read *read)
{
    struct hfd_err err;
    const hfd_rc rc = read->own != NULL ? read->own(read->arg, &err) : HFD_OK;

    if (rc != HFD_OK)
        read->then(x, read->arg, rc, &err);
    else
        submit(x, hfd_store_point, read->fn, read->arg, read->then);
}

void hfd_exchange_read(struct hfd_exchange *x, const struct hfd_exchange_read *read)
{
    struct hfd_store *store = hfd_exchange_app(x)->store;
    struct hfd_err err;
    hfd_rc rc;

    if (x->loop->reader == NULL && store != NULL) {
        read_later(x, read);
        return;
    }
    rc = x->loop->reader != NULL ? hfd_store_read(x->loop->reader, read->fn, read->arg, &err)
                                 : hfd_fail(&err, HFD_IO, "this server has no store");
    read->then(x, read->arg, rc, &err);
}

/* Refuses new lists while requests and answers in progress have all the memory. */
static void submit_view(struct hfd_exchange *x, hfd_txn_fn *fn, void *arg, hfd_then_fn *then)
{
    struct hfd_err err;

    if (hfd_budget_is_spent(&x->loop->server->memory)) {
        then(x, arg, hfd_fail(&err, HFD_NOMEM, "http.memory_max is in use"), &err);
        return;
    }
    hfd_exchange_step(x, fn, arg, then);
}

void hfd_exchange_view(struct hfd_exchange *x, hfd_txn_fn *fn, void *arg, hfd_then_fn *then)
{
    x->is_short = false;
    submit_view(x, fn, arg, then);
}

void hfd_exchange_view_short(struct hfd_exchange *x, hfd_txn_fn *fn, void *arg, hfd_then_fn *then)
{
    x->is_short = true;
    submit_view(x, fn, arg, then);
}

/* ---- what several handlers use ---- */

#define HEADER_NAME_MAX 64

hfd_rc hfd_api_caller(struct hfd_exchange *x, hfd_slice *out, struct hfd_err *err)
{
    const hfd_slice name = hfd_exchange_app(x)->settings->fleet_identity_header;
    hfd_slice value = HFD_SLICE_NONE;
    char lower[HEADER_NAME_MAX];
    hfd_rc rc = HFD_OK;

    if (name.len > 0 && name.len < sizeof(lower) && is_proxied(x)) {
        for (size_t i = 0; i < name.len; i++)
            lower[i] = (char)(name.p[i] >= 'A' && name.p[i] <= 'Z' ? name.p[i] | 0x20 : name.p[i]);
        lower[name.len] = '\0';
        rc = hfd_exchange_header(x, lower, &value, err);
    }
    if (rc == HFD_OK && value.len > 0)
        rc = hfd_access_check_name(x, value, err);
    if (rc != HFD_OK)
        return rc;
    if (value.len == 0 && hfd_exchange_caller(x).len > 0) {
        *out = hfd_exchange_caller(x);
        return HFD_OK;
    }
    return hfd_identity_make(value, hfd_exchange_mem(x), out, err);
}

void hfd_api_send(struct hfd_exchange *x, struct hfd_reply *reply, const char *content_type,
                  struct hfd_buf *b)
{
    struct hfd_err err;
    hfd_slice text;
    hfd_rc rc;

    rc = hfd_buf_finish(b, &text, &err);
    if (rc != HFD_OK) {
        hfd_buf_fini(b);
        hfd_exchange_fail(x, rc, &err);
        return;
    }
    if (text.len > 0) {
        reply->content_type = content_type;
        reply->body = text;
    }
    keep_body(x, b);
    hfd_exchange_reply(x, reply);
}
