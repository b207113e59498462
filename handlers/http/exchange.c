/*
 * One request on its way through a handler. The exchange owns its memory. Its references: one for
 * the request that h2o holds, one for a job that is out, one for running code. If the client
 * leaves, req becomes NULL, and a job that returns frees the rest without an answer.
 */
#include "handlers/http/exchange_int.h"

#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/core/guresid.h"
#include "driver/fleet/ksuid.h"
#include "handlers/auth/credential.h"
#include "handlers/http/access.h"
#include "handlers/http/count.h"
#include "handlers/http/door.h"
#include "handlers/http/headers.h"
#include "handlers/http/later.h"
#include "handlers/http/peer.h"
#include "handlers/http/pieces.h"
#include "handlers/http/reply.h"
#include "handlers/http/sending.h"

#define MESSAGE_MAX_BYTES (HFD_TARGET_MAX_BYTES + 128)

static struct hfd_exchange *exchange_of_job(struct hfd_job *job)
{
    struct hfd_exchange *x = (struct hfd_exchange *)(void *)job;

    HFD_CHECK_OBJ(x, HFD_EXCHANGE_MAGIC);
    return x;
}

void hfd_exchange_leave_flight(struct hfd_exchange *x)
{
    if (!x->counted)
        return;
    x->counted = false;
    atomic_fetch_sub(&x->loop->server->in_flight, 1);
    hfd_metric_add(HFD_METRIC_HTTP_INFLIGHT, NULL, -1);
}

void hfd_exchange_unref(struct hfd_exchange *x)
{
    HFD_ASSERT(x->refs > 0);
    if (--x->refs != 0)
        return;
    hfd_exchange_leave_flight(x);
    hfd_sending_end(&x->sending);
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

bool hfd_exchange_is_viewing(const struct hfd_exchange *x)
{
    return x->job_out && x->viewing;
}

static void drop_later(struct hfd_exchange *x)
{
    if (x->later != NULL)
        hfd_later_cancel(x->loop, x->later);
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
    hfd_conn_request_done(x->conn);
    hfd_exchange_unref(x);
}

struct hfd_host_address hfd_exchange_client(const struct hfd_exchange *x)
{
    return hfd_peer_client(hfd_exchange_app(x)->settings, x->conn->sock,
                           x->req != NULL ? &x->req->headers : NULL);
}

/* Logs a request. One that changes nothing, such as a poll by PUT, is of interest at debug only. */
static void log_request(const struct hfd_exchange *x, const char *msg, int status, size_t bytes)
{
    const bool quiet = !x->writes && status < 400;
    const enum hfd_log_level level = status >= 500 ? HFD_LOG_WARN
                                     : quiet       ? HFD_LOG_DEBUG
                                                   : HFD_LOG_INFO;

    struct hfd_host_address client = {.known = false};
    char from[HFD_ADDRESS_TEXT_MAX];

    if (!hfd_log_enabled(level))
        return;
    if (x->req != NULL)
        client = hfd_exchange_client(x);
    hfd_host_address_format(&client, from);
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

void hfd_exchange_keep(struct hfd_exchange *x, struct hfd_buf *b)
{
    /* A buffer with a budget has taken its bytes; small ones are not counted. */
    const int64_t bytes = b->budget == NULL && b->cap > HFD_BUDGET_FREE_BYTES ? (int64_t)b->cap : 0;

    hfd_buf_fini(&x->body);
    x->body = *b;
    *b = (struct hfd_buf){0};
    hfd_budget_add(&x->loop->server->memory, bytes - x->kept_bytes);
    x->kept_bytes = bytes;
}

void hfd_exchange_reply(struct hfd_exchange *x, const struct hfd_reply *reply)
{
    h2o_req_t *req = x->req;
    /* RFC 9110, 8.6 and 15.4.5: neither has a Content-Length. */
    const bool bare = reply->status == 204 || reply->status == 304;
    const bool has_body = reply->content_type != NULL && !bare;
    struct hfd_encoding encoding;
    const size_t bytes = reply->pieces != NULL ? reply->pieces->length : reply->body.len;
    hfd_slice body = HFD_SLICE_NONE;

    HFD_CHECK_OBJ(x, HFD_EXCHANGE_MAGIC);
    HFD_ASSERT(!x->replied && (!x->job_out || x->job_left) && req != NULL);
    x->replied = true;
    drop_later(x);
    hfd_exchange_leave_flight(x);
    hfd_counter_add(x->loop->counter, x->match.route, x->view.method, reply->status,
                    hfd_loop_mono_us(x->loop) - x->started_us);
    log_request(x, "request", reply->status, has_body ? bytes : 0);

    req->res.status = reply->status;
    req->res.reason = hfd_status_text(reply->status);
    req->res.content_length = bare ? SIZE_MAX : has_body ? bytes : 0;
    encoding = hfd_encoding_choose(x, reply);
    if (encoding.gzip)
        encoding.gzip =
            hfd_sending_compress(&x->sending, req, reply->body, &req->res.content_length);
    hfd_headers_add(req, reply,
                    &(struct hfd_headers){.request_id = x->view.request_id,
                                          .dialect = x->match.dialect,
                                          .listener = x->conn->listener->which,
                                          .encoding = encoding});
    /*
     * h2o reads the last Connection header only, and takes anything but "keep-alive" for "close".
     */
    req->http1_is_persistent = x->conn->head.keep_alive && !x->loop->draining;
    if (has_body && x->view.method != HFD_METHOD_HEAD) {
        if (reply->pieces != NULL) {
            hfd_pieces_start(reply->pieces, x);
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

bool hfd_exchange_set_caller(struct hfd_exchange *x, hfd_slice name)
{
    x->caller = hfd_arena_dup(&x->mem, name);
    return x->caller.p != NULL;
}

bool hfd_exchange_is_proxied(const struct hfd_exchange *x)
{
    return hfd_peer_is_trusted(hfd_exchange_app(x)->settings, x->conn->sock);
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
    hfd_log_request_id(x->view.request_id);
    if (x->req == NULL) {
        hfd_exchange_leave_flight(x);
        log_request(x, "client gone", 499, 0);
        hfd_metric_add(HFD_METRIC_HTTP_REFUSED, HFD_LABELS("client_gone"), 1);
    } else {
        x->then(x, job->arg, job->rc, &job->err);
        if (HFD_NEVER(!x->replied && !x->job_out))
            hfd_exchange_fail(x, HFD_CORRUPT, NULL);
    }
    hfd_log_request_id(HFD_SLICE_NONE);
    hfd_exchange_unref(x);
}

typedef hfd_rc submit_fn(struct hfd_store *store, struct hfd_job *job, struct hfd_err *err);

static void submit(struct hfd_exchange *x, submit_fn *submit_job, hfd_txn_fn *fn, void *arg,
                   hfd_then_fn *then)
{
    struct hfd_err err = {0};
    hfd_rc rc;

    HFD_ASSERT(!x->replied && !x->job_out);
    x->job = (struct hfd_job){.fn = fn,
                              .wants = x->wants,
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

/* Sends one message for the whole list: that of its first exchange. */
void hfd_exchange_post(struct hfd_sink *sink, struct hfd_job *list)
{
    struct hfd_loop *loop = H2O_STRUCT_FROM_MEMBER(struct hfd_loop, sink, sink);
    struct hfd_exchange *first = exchange_of_job(list);

    HFD_CHECK_OBJ(loop, HFD_LOOP_MAGIC);
    first->message = (h2o_multithread_message_t){.link = {.next = NULL}};
    hfd_loop_send(loop, &loop->finished, &first->message);
}

void hfd_exchange_on_finished(h2o_multithread_receiver_t *receiver, h2o_linklist_t *messages)
{
    (void)receiver;
    while (!h2o_linklist_is_empty(messages)) {
        struct hfd_exchange *first =
            H2O_STRUCT_FROM_MEMBER(struct hfd_exchange, message.link, messages->next);
        struct hfd_qnode *node = &first->job.node;

        h2o_linklist_unlink(&first->message.link);
        while (node != NULL) {
            struct hfd_job *job = (struct hfd_job *)(void *)node;

            node = node->next; /* done() may free the job, or submit it again */
            job->done(job);
        }
    }
}

static struct hfd_exchange *exchange_new(struct hfd_loop *loop, h2o_req_t *req)
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
    loop->exchanges++;
    slot = h2o_mem_alloc_shared(&req->pool, sizeof(struct hfd_exchange *), on_req_gone);
    *slot = x;
    return x;
}

static void fill_view(struct hfd_exchange *x)
{
    const struct hfd_app *app = hfd_exchange_app(x);
    h2o_req_t *req = x->req;
    struct hfd_request *v = &x->view;

    v->method_text = (hfd_slice){req->input.method.base, req->input.method.len};
    v->method = hfd_method_parse(v->method_text);
    (void)hfd_target_split((hfd_slice){req->input.path.base, req->input.path.len}, &v->path,
                           &v->query); /* checked by the door */
    hfd_credential_cut(&v->path, &x->path_token);
    v->body =
        req->entity.base != NULL ? (hfd_slice){req->entity.base, req->entity.len} : HFD_SLICE("");
    v->received_us = hfd_clock_wall_us(app->clock);
    hfd_ksuid_make(v->received_us, app->rng, x->id);
    v->request_id = (hfd_slice){x->id, sizeof(x->id)};
    x->conn->request_id = v->request_id;
    x->path_log_len = v->path.len < sizeof(x->path_log) ? v->path.len : sizeof(x->path_log);
    memcpy(x->path_log, v->path.p, x->path_log_len);
}

static void refuse_route(struct hfd_exchange *x, enum hfd_route_outcome outcome)
{
    const struct hfd_app *app = hfd_exchange_app(x);
    char message[MESSAGE_MAX_BYTES], allow[HFD_ALLOW_TEXT_MAX];
    hfd_slice allow_copy;
    struct hfd_err err;

    if (outcome == HFD_ROUTE_NO_PATH && app->opens_later) {
        hfd_exchange_fail(x, hfd_fail(&err, HFD_AWAY, "it is not served yet"), &err);
        return;
    }
    if (outcome == HFD_ROUTE_NO_PATH) {
        if (x->match.dialect == HFD_DIALECT_FLEET && app->without_fleet)
            (void)snprintf(message, sizeof(message),
                           "This driver works with a remote HyperFleet and serves no HyperFleet "
                           "API itself; ask the remote one");
        else
            (void)snprintf(message, sizeof(message), "The requested resource '%.*s' doesn't exist",
                           HFD_SLICE_FMT(x->view.path));
        hfd_exchange_problem(
            x,
            &(struct hfd_problem){
                .rc = HFD_NOT_FOUND, .status = 404, .unknown_route = true, .message = message},
            NULL);
        return;
    }
    hfd_allow_format(x->match.methods, allow);
    (void)snprintf(message, sizeof(message), "the method %.*s is not allowed here; allowed: %s",
                   HFD_SLICE_FMT(x->view.method_text), allow);
    allow_copy = hfd_arena_dup(&x->mem, hfd_slice_of(allow));
    hfd_exchange_problem(
        x, &(struct hfd_problem){.rc = HFD_BAD_REQUEST, .status = 405, .message = message},
        allow_copy.p);
}

/* Routes the request to its handler. */
static void dispatch(struct hfd_exchange *x)
{
    struct hfd_server *server = x->loop->server;
    enum hfd_listener listener = x->conn->listener->which;
    struct hfd_err err = {0};
    struct hfd_path path;
    enum hfd_route_outcome outcome;
    hfd_rc rc;

    x->match.dialect = hfd_dialect_of(listener, x->view.path);
    /* The in-flight limit does not apply to the ops listener. */
    if (listener == HFD_LISTENER_MAIN) {
        x->counted = true;
        hfd_metric_add(HFD_METRIC_HTTP_INFLIGHT, NULL, 1);
        if (atomic_fetch_add(&server->in_flight, 1) >= server->limits.in_flight_max) {
            hfd_metric_add(HFD_METRIC_HTTP_REFUSED, HFD_LABELS("in_flight"), 1);
            hfd_exchange_fail(x, HFD_BUSY, NULL);
            return;
        }
    }
    rc = hfd_path_split(x->view.path, &x->mem, &path, &err);
    if (rc != HFD_OK) {
        if (hfd_access_check(x, HFD_NEED_ANY))
            hfd_exchange_fail(x, rc, &err);
        return;
    }
    outcome = hfd_route_match(server->router, listener, x->view.method, &path, &x->match);
    if (!hfd_access_check(x, outcome == HFD_ROUTE_FOUND ? x->match.route->need : HFD_NEED_ANY))
        return;
    if (outcome != HFD_ROUTE_FOUND) {
        refuse_route(x, outcome);
        return;
    }
    x->match.route->fn(x);
    if (HFD_NEVER(!x->replied && !x->job_out))
        hfd_exchange_fail(x, HFD_CORRUPT, NULL);
}

int hfd_exchange_on_req(h2o_handler_t *self, h2o_req_t *req)
{
    struct hfd_loop *loop = H2O_STRUCT_FROM_MEMBER(struct hfd_loop, ctx, req->conn->ctx);
    struct hfd_exchange *x;

    (void)self;
    HFD_CHECK_OBJ(loop, HFD_LOOP_MAGIC);
    x = exchange_new(loop, req);
    if (x == NULL) {
        /*
         * Without an exchange the door does not see the end of the request, so the connection
         * closes with it.
         */
        h2o_send_error_503(req, "Service Unavailable", "out of memory",
                           H2O_SEND_ERROR_HTTP1_CLOSE_CONNECTION);
        return 0;
    }
    x->refs++;
    fill_view(x);
    hfd_log_request_id(x->view.request_id);
    dispatch(x);
    hfd_log_request_id(HFD_SLICE_NONE);
    hfd_exchange_unref(x);
    return 0;
}
