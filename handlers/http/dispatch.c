/*
 * The way of a request of h2o to its handler: it becomes an exchange, and is refused or routed.
 * Stands above the handlers; exchange.h is below them. Thread: loop.
 */
#include "handlers/http/exchange_int.h"

#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/fleet/keys.h"
#include "handlers/auth/decide.h"
#include "handlers/http/access.h"
#include "handlers/http/routes.h"
#include "handlers/http/door.h"
#include "handlers/http/reply.h"

#define CODING_SHOWN_MAX 80
#define MESSAGE_MAX_BYTES (HFD_TARGET_MAX_BYTES + 128)

static void fill_view(struct hfd_exchange *x)
{
    const struct hfd_app *app = hfd_exchange_app(x);
    h2o_req_t *req = x->req;
    struct hfd_request *v = &x->view;
    hfd_slice trace;

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
    if (hfd_exchange_header(x, "traceparent", &trace, NULL) == HFD_OK)
        v->trace = hfd_trace_parse(trace);
    x->path_log_len = v->path.len < sizeof(x->path_log) ? v->path.len : sizeof(x->path_log);
    memcpy(x->path_log, v->path.p, x->path_log_len);
}

static void refuse_route(struct hfd_exchange *x, enum hfd_route_outcome outcome)
{
    const struct hfd_app *app = hfd_exchange_app(x);
    const struct hfd_server *server = x->loop->server;
    const struct hfd_docs_place ops = {.port = server->ports[HFD_LISTENER_OPS],
                                       .tls = server->tls != NULL};
    char message[MESSAGE_MAX_BYTES], allow[HFD_ALLOW_TEXT_MAX];
    hfd_slice allow_copy;
    struct hfd_err err;

    if (outcome == HFD_ROUTE_NO_PATH && app->opens_later) {
        hfd_exchange_fail(x, hfd_fail(&err, HFD_AWAY, "it is not served yet"), &err);
        return;
    }
    if (outcome == HFD_ROUTE_NO_PATH && x->match.dialect == HFD_DIALECT_DRIVER &&
        hfd_docs_start(x, &ops))
        return;
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

/* Returns the first content coding of the request that changes its body; empty if none does. */
static hfd_slice coding_of(const struct hfd_exchange *x)
{
    const h2o_headers_t *headers = &x->req->headers;

    for (ssize_t at = -1; (at = h2o_find_header(headers, H2O_TOKEN_CONTENT_ENCODING, at)) != -1;) {
        const h2o_iovec_t value = headers->entries[at].value;
        hfd_slice rest = {value.base, value.len};

        while (rest.len > 0) {
            const hfd_slice coding = hfd_slice_trim(hfd_slice_cut(&rest, ','));

            if (coding.len > 0 && !hfd_slice_ieq(coding, HFD_SLICE("identity")))
                return coding;
        }
    }
    return HFD_SLICE_NONE;
}

/* Refuses a body that is not as its document is. Returns true if it did. */
static bool refuse_coding(struct hfd_exchange *x)
{
    const hfd_slice coding = x->view.body.len > 0 ? coding_of(x) : HFD_SLICE_NONE;
    char message[MESSAGE_MAX_BYTES];

    if (coding.len == 0)
        return false;
    (void)snprintf(message, sizeof(message),
                   "Content-Encoding: expected identity or none, got \"%.*s\": bodies are taken as "
                   "they are, so send it without a coding",
                   (int)(coding.len < CODING_SHOWN_MAX ? coding.len : CODING_SHOWN_MAX), coding.p);
    hfd_exchange_problem(
        x, &(struct hfd_problem){.rc = HFD_BAD_REQUEST, .status = 415, .message = message}, NULL);
    return true;
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
    if (refuse_coding(x))
        return;
    x->match.route->fn(x);
    if (HFD_NEVER(!x->replied && !x->job_out && !x->held))
        hfd_exchange_fail(x, HFD_CORRUPT, NULL);
}

int hfd_dispatch_on_req(h2o_handler_t *self, h2o_req_t *req)
{
    struct hfd_loop *loop = H2O_STRUCT_FROM_MEMBER(struct hfd_loop, ctx, req->conn->ctx);
    struct hfd_exchange *x;

    (void)self;
    HFD_CHECK_OBJ(loop, HFD_LOOP_MAGIC);
    x = hfd_exchange_new(loop, req);
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
    hfd_exchange_enter(x);
    dispatch(x);
    hfd_exchange_enter(NULL);
    hfd_exchange_unref(x);
    return 0;
}
