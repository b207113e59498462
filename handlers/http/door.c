/* See door.h. */
#include "handlers/http/door.h"

#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/fleet/keys.h"
#include "handlers/auth/decide.h"
#include "handlers/http/head.h"
#include "handlers/http/loop.h"
#include "handlers/http/reply.h"
#include "handlers/http/route.h"
#include "handlers/http/tls.h"
#include "handlers/settings/network.h"

#include <openssl/err.h>

#include <sys/socket.h>

/* ---- TLS ---- */

/*
 * TLS of one connection: its handshake, within bounds of time, number and memory. Thread: loop.
 */

/* Measured with OpenSSL 3.0: the state of a handshake, and of an open connection without data. */
#define HANDSHAKE_BYTES 65536
#define OPEN_BYTES 32768
#define ALERT_MAX_BYTES 64

static bool take_tls_memory(struct hfd_conn *conn)
{
    if (conn->listener->which == HFD_LISTENER_OPS)
        return true; /* it always has room */
    if (!hfd_budget_take(&conn->loop->server->memory, HANDSHAKE_BYTES))
        return false;
    conn->tls_bytes = HANDSHAKE_BYTES;
    return true;
}

static void keep_memory(struct hfd_conn *conn, int64_t bytes)
{
    if (conn->tls_bytes <= bytes)
        return;
    hfd_budget_give(&conn->loop->server->memory, conn->tls_bytes - bytes);
    conn->tls_bytes = bytes;
}

/* Gives back what TLS has taken for a connection that is closed. */
static void conn_end_tls(struct hfd_conn *conn)
{
    if (conn->state == HFD_CONN_HANDSHAKE)
        conn->listener->on_handshaked(conn->listener);
    keep_memory(conn, 0);
    SSL_CTX_free(conn->tls);
    conn->tls = NULL;
}

/* Sends bytes past the library, which sends nothing after a failed handshake. */
static void send_plain(const struct hfd_conn *conn, const void *bytes, size_t len)
{
    (void)send(h2o_socket_get_fd(conn->sock), bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void conn_format_refusal(struct hfd_conn *conn, const struct hfd_head_fault *fault);

/* Answers a client that speaks plain HTTP to a TLS port, as far as it can be answered. */
static void refuse_plain_http(struct hfd_conn *conn)
{
    static const struct hfd_head_fault fault = {
        .status = 400, .reason = "plain_http", .text = "this port expects TLS: use https"};

    conn_format_refusal(conn, &fault);
    if (conn->refusal.rc == HFD_OK)
        send_plain(conn, conn->refusal.p, conn->refusal.len);
}

/* A client that only connects, as some probes do, is no line of the log. */
static void refuse_handshake(struct hfd_conn *conn, const char *err)
{
    const char *reason = ERR_reason_error_string(ERR_peek_error());
    unsigned char alert[ALERT_MAX_BYTES];
    char from[HFD_IP_TEXT_MAX];
    const size_t len = hfd_tls_take_alert(alert, sizeof(alert));
    const bool left = err == h2o_socket_error_closed || err == h2o_socket_error_io;

    if (len != 0)
        send_plain(conn, alert, len);
    hfd_host_address_format(&conn->client, from);
    hfd_metric_add(HFD_METRIC_HTTP_REFUSED, HFD_LABELS("tls"), 1);
    HFD_LOG(left ? HFD_LOG_DEBUG : HFD_LOG_INFO, "TLS handshake refused",
            HFD_LOG_CSTR("reason", "tls"), HFD_LOG_CSTR("detail", err),
            HFD_LOG_CSTR("tls_error", reason != NULL ? reason : ""), HFD_LOG_CSTR("from", from));
}

/* Logs and counts the end of an open connection by a fault of TLS; nothing for other ends. */
static void conn_blame_tls(struct hfd_conn *conn, const char *err)
{
    if (conn->tls == NULL || err == h2o_socket_error_closed || err == h2o_socket_error_io)
        return;
    conn->closing = "tls";
    hfd_metric_add(HFD_METRIC_HTTP_REFUSED, HFD_LABELS("tls"), 1);
    HFD_LOG(HFD_LOG_INFO, "TLS connection refused", HFD_LOG_CSTR("reason", "tls"),
            HFD_LOG_CSTR("detail", err));
}

static void conn_begin(struct hfd_conn *conn);

static void on_handshaked(h2o_socket_t *sock, const char *err)
{
    struct hfd_conn *conn = hfd_conn_of_socket(sock);

    HFD_ASSERT(conn->state == HFD_CONN_HANDSHAKE);
    if (err != NULL) {
        if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST)
            refuse_plain_http(conn);
        else
            refuse_handshake(conn, err);
        ERR_clear_error();
        hfd_conn_close(conn, "tls");
        return;
    }
    conn->state = HFD_CONN_HEAD;
    conn->listener->on_handshaked(conn->listener);
    keep_memory(conn, OPEN_BYTES);
    conn_begin(conn);
}

/* Begins the handshake; at its end the connection goes to h2o, or is closed. May free conn. */
static void conn_begin_tls(struct hfd_conn *conn)
{
    conn->state = HFD_CONN_HANDSHAKE;
    conn->listener->handshakes++;
    if (!take_tls_memory(conn)) {
        hfd_metric_add(HFD_METRIC_HTTP_REFUSED, HFD_LABELS("memory"), 1);
        HFD_LOG(HFD_LOG_INFO, "TLS handshake refused", HFD_LOG_CSTR("reason", "memory"));
        hfd_conn_close(conn, "memory");
        return;
    }
    conn->tls = hfd_tls_context(conn->loop->server->tls, conn->listener->which);
    h2o_socket_ssl_handshake(conn->sock, conn->tls, NULL, on_handshaked);
}

/* ---- the headers of an answer ---- */

static void add(h2o_req_t *req, const char *name, hfd_slice value)
{
    h2o_iovec_t copy = h2o_strdup(&req->pool, value.len != 0 ? value.p : "", value.len);

    /* h2o copies neither name nor value. Without a name in lower case it looks up nothing. */
    h2o_add_header_by_str(&req->pool, &req->res.headers, name, strlen(name), 0, name, copy.base,
                          copy.len);
}

#define BEARER "Bearer"
#define BASIC "Basic realm=\"hyperfleet-driver\", charset=\"UTF-8\""

/* Returns true if a browser may log in to a listener with a password (HTTP Basic). */
static bool takes_basic(enum hfd_listener listener)
{
    return listener == HFD_LISTENER_OPS;
}

/* A 401 offers what a caller may log in with (RFC 9110, 11.6.1). */
static void add_challenges(h2o_req_t *req, enum hfd_listener listener)
{
    add(req, "WWW-Authenticate", HFD_SLICE(BEARER));
    if (takes_basic(listener))
        add(req, "WWW-Authenticate", HFD_SLICE(BASIC));
}

/* The lines of a 401 for an answer that the door writes. */
static const char *headers_challenges(enum hfd_listener listener)
{
    return takes_basic(listener) ? "WWW-Authenticate: " BEARER "\r\nWWW-Authenticate: " BASIC "\r\n"
                                 : "WWW-Authenticate: " BEARER "\r\n";
}

void hfd_headers_add(h2o_req_t *req, const struct hfd_reply *reply, const struct hfd_headers *more)
{
    char number[24];

    if (reply->content_type != NULL)
        add(req, "Content-Type", hfd_slice_of(reply->content_type));
    add(req, "X-Request-ID", more->request_id);
    if (more->dialect == HFD_DIALECT_FLEET)
        add(req, "Vary", HFD_SLICE("Authorization"));
    if (reply->has_cookie)
        add(req, "Set-Humanitec-Driver-Cookie", reply->cookie);
    if (reply->retry_after_s > 0) {
        int n = snprintf(number, sizeof(number), "%d", reply->retry_after_s);

        add(req, "Retry-After", (hfd_slice){number, (size_t)n});
    }
    if (more->prefer_s > 0) {
        int n = snprintf(number, sizeof(number), "wait=%d", more->prefer_s);

        add(req, "Preference-Applied", (hfd_slice){number, (size_t)n});
    }
    if (reply->status == 401)
        add_challenges(req, more->listener);
    if (reply->status == 415)
        add(req, "Accept-Encoding", HFD_SLICE("identity")); /* RFC 9110, 15.5.16 */
    if (reply->etag.len > 0)
        add(req, "ETag", reply->etag);
    if (reply->events_cursor.len > 0)
        add(req, "Events-Cursor", reply->events_cursor);
    if (reply->discarded.len > 0)
        add(req, "Discarded", reply->discarded);
    if (reply->allow != NULL)
        add(req, "Allow", hfd_slice_of(reply->allow));
    if (reply->uncached) {
        add(req, "Connection", HFD_SLICE("close")); /* beside "upgrade" of h2o_http1_upgrade */
        add(req, "Cache-Control", HFD_SLICE("no-store"));
        add(req, "X-Accel-Buffering", HFD_SLICE("no")); /* nginx */
    }
    if (reply->policy != NULL) {
        add(req, "Content-Security-Policy", hfd_slice_of(reply->policy));
        add(req, "X-Content-Type-Options", HFD_SLICE("nosniff"));
        add(req, "Referrer-Policy", HFD_SLICE("no-referrer"));
    }
}

/* ---- callers ---- */

#define PATH_MEM_BYTES ((size_t)64 * 1024)

/* Returns what the route of a parsed head needs; a path without a route needs any scope. */
static enum hfd_need conn_need(const struct hfd_conn *conn)
{
    const enum hfd_method method = hfd_method_parse(conn->head.method);
    enum hfd_need need = HFD_NEED_ANY;
    struct hfd_arena mem;
    hfd_slice path = conn->head.path, secret;
    struct hfd_match match;
    struct hfd_path split;

    hfd_credential_cut(&path, &secret);
    hfd_arena_init(&mem, PATH_MEM_BYTES);
    if (hfd_path_split(path, &mem, &split, NULL) == HFD_OK &&
        hfd_route_match(conn->loop->server->router, conn->listener->which, method, &split,
                        &match) == HFD_ROUTE_FOUND)
        need = match.route->need;
    hfd_arena_fini(&mem);
    return need;
}

/* Wipes the decoded text, if the secret lies in it. */
static void wipe(char basic[HFD_BASIC_MAX_BYTES], hfd_slice secret)
{
    if (secret.p > basic && secret.p <= basic + HFD_BASIC_MAX_BYTES)
        explicit_bzero(basic, (size_t)(secret.p - basic) + secret.len);
}

void hfd_conn_identify(struct hfd_conn *conn, hfd_slice secret, hfd_slice authorization,
                       int64_t now_us, struct hfd_guard_answer *out)
{
    const bool basic = takes_basic(conn->listener->which);
    HFD_BASIC_TEXT(password);

    *out = (struct hfd_guard_answer){.caller = {.fault = HFD_AUTH_NONE}};
    if (secret.len == 0)
        out->caller.fault = hfd_credential_read(authorization, basic ? password : NULL, &secret);
    if (out->caller.fault == HFD_AUTH_NONE)
        hfd_guard_check(conn->loop->server->app->guard, &conn->loop->guard_view, secret, now_us,
                        out);
    wipe(password, secret);
}

int64_t hfd_conn_note_refusal(const struct hfd_conn *conn, bool failed, const char *reason,
                              const char *text)
{
    struct hfd_guard *guard = conn->loop->server->app->guard;
    struct hfd_failure_note note = {.log = true};
    char from[HFD_IP_TEXT_MAX];

    hfd_host_address_format(&conn->client, from);
    hfd_metric_add(HFD_METRIC_AUTH_REFUSED, HFD_LABELS(reason), 1);
    if (guard != NULL)
        note =
            hfd_failures_note(&guard->failures, failed ? from : NULL, hfd_loop_mono_us(conn->loop));
    if (note.log && hfd_log_enabled(HFD_LOG_INFO)) {
        const struct hfd_log_field fields[] = {
            HFD_LOG_CSTR("reason", reason), HFD_LOG_CSTR("error", text), HFD_LOG_CSTR("from", from),
            HFD_LOG_INT("silent", note.silent)};

        hfd_log_write(HFD_LOG_INFO, "caller refused", fields, note.silent > 0 ? 4 : 3);
    }
    return note.delay_us;
}

/* Returns true if the request has arrived whole, as most do. */
static bool has_body(const struct hfd_conn *conn)
{
    const struct hfd_head *head = &conn->head;

    return head->framing == HFD_FRAMING_NONE ||
           (head->framing == HFD_FRAMING_LENGTH && conn->sock->input->size >= head->bytes &&
            conn->sock->input->size - head->bytes >= head->content_length);
}

/*
 * Checks the credentials of a request whose body is still under way, or is too large.
 * @param text  gets the sentence for a refused caller
 * @param fault gets the refusal, with text
 * @return HFD_HEAD_OK: they are valid, or none are needed; else HFD_HEAD_BAD
 */
static enum hfd_head_verdict conn_check_caller(struct hfd_conn *conn, char text[HFD_AUTH_TEXT_MAX],
                                               struct hfd_head_fault *fault)
{
    const struct hfd_app *app = conn->loop->server->app;
    hfd_slice path = conn->head.path, secret;
    struct hfd_guard_answer answer;
    int64_t now_us, delay_us;
    bool waits;

    if (has_body(conn) || app->guard == NULL || !hfd_guard_is_on(app->guard))
        return HFD_HEAD_OK;
    hfd_credential_cut(&path, &secret);
    if (conn_need(conn) == HFD_NEED_OPEN)
        return HFD_HEAD_OK;
    now_us = hfd_clock_wall_us(app->clock) + hfd_clock_skew_us(app->clock);
    hfd_conn_identify(conn, secret, hfd_slice_trim(conn->head.authorization), now_us, &answer);
    if (answer.caller.fault == HFD_AUTH_NONE)
        return HFD_HEAD_OK;
    if (hfd_auth_decide(true, HFD_NEED_ANY, &answer.caller, text) == HFD_ACCESS_LATER)
        *fault = (struct hfd_head_fault){.status = 503, .reason = "unchecked", .text = text};
    else
        *fault = (struct hfd_head_fault){.status = 401, .reason = "unauthorized", .text = text};
    /* The answer to credentials that are wrong waits. */
    waits = answer.caller.fault != HFD_AUTH_ABSENT && answer.caller.fault != HFD_AUTH_NO_KEYS;
    delay_us = hfd_conn_note_refusal(conn, waits, hfd_auth_fault_label(answer.caller.fault), text);
    if (waits)
        conn->until_us = hfd_loop_mono_us(conn->loop) + delay_us;
    return HFD_HEAD_BAD;
}

/* ---- bytes in ---- */

/*
 * The door of a connection. h2o 2.2.5 takes the first of two lengths, accepts Transfer-Encoding
 * beside Content-Length, and accepts bare LF. So this file reads the input of the socket first. It
 * refuses what head.c finds wrong, and calls h2o's read callback when exactly one whole request is
 * in the input. Bytes behind it are dropped, and the connection ends with the answer.
 *
 * The field h2o_socket_t._cb.read is the only thing used below h2o's documented interface. Time
 * limits are here too: h2o has none for writing, and one for reading that also counts idle time.
 */

/* The document may contain the path with each byte escaped. */
#define REFUSAL_MAX_BYTES 65536
#define LINGER_MAX_BYTES ((size_t)256 << 20)
#define LOG_PATH_MAX_BYTES 200

static void on_read(h2o_socket_t *sock, const char *err);

/*
 * Takes memory for the input up to `bytes`, before it arrives.
 * @return false: http.memory_max is in use
 */
static bool take_memory(struct hfd_conn *conn, size_t bytes)
{
    const int64_t more = (int64_t)bytes - conn->taken_bytes;

    if (more <= HFD_BUDGET_FREE_BYTES || conn->listener->which == HFD_LISTENER_OPS)
        return true;
    if (!hfd_budget_take(&conn->loop->server->memory, more))
        return false;
    conn->taken_bytes += more;
    return true;
}

static void give_memory(struct hfd_conn *conn)
{
    hfd_budget_give(&conn->loop->server->memory, conn->taken_bytes);
    conn->taken_bytes = 0;
}

static void on_close(void *data)
{
    struct hfd_conn *conn = data;

    HFD_CHECK_OBJ(conn, HFD_CONN_MAGIC);
    HFD_LOG(HFD_LOG_DEBUG, "connection closed",
            HFD_LOG_CSTR("reason", conn->closing != NULL ? conn->closing : "done"));
    h2o_linklist_unlink(&conn->link);
    if (h2o_linklist_is_linked(&conn->rearm_link))
        h2o_linklist_unlink(&conn->rearm_link);
    give_memory(conn);
    conn_end_tls(conn);
    hfd_buf_fini(&conn->refusal);
    if (!conn->placeless && !conn->lent)
        conn->listener->on_closed(conn->listener);
    conn->magic = 0;
    free(conn);
}

/*
 * Makes h2o close the connection. With TLS that takes until its last bytes are written; otherwise
 * conn is gone.
 */
static void let_go(struct hfd_conn *conn, const char *err)
{
    conn->state = HFD_CONN_CLOSING;
    conn->since_us = hfd_loop_mono_us(conn->loop);
    conn->h2o_read(conn->sock, err);
}

void hfd_conn_close(struct hfd_conn *conn, const char *why)
{
    HFD_ASSERT(conn->state != HFD_CONN_BUSY);
    conn->closing = why;
    if (conn->state == HFD_CONN_HANDSHAKE || conn->state == HFD_CONN_CLOSING)
        h2o_socket_close(conn->sock);
    else
        let_go(conn, why);
}

static void reset_for_next(struct hfd_conn *conn)
{
    conn->state = HFD_CONN_HEAD;
    conn->scan = (struct hfd_head_scan){0};
    conn->head = (struct hfd_head){0};
    conn->chunks = (struct hfd_chunks){0};
    conn->walked_bytes = 0;
    conn->client = conn->peer;
    conn->write_began_us = 0;
    give_memory(conn);
    conn->since_us = hfd_loop_mono_us(conn->loop);
}

/* Replaces the read callback that h2o has just set by that of the door. */
static void step_between(struct hfd_conn *conn)
{
    conn->h2o_read = conn->sock->_cb.read;
    HFD_ASSERT(conn->h2o_read != NULL && conn->h2o_read != on_read);
    h2o_socket_read_start(conn->sock, on_read);
}

static const struct hfd_head_fault short_of_memory = {
    .status = 503, .reason = "memory", .text = "too many requests are in progress"};

void hfd_conn_open(struct hfd_loop_listener *listener, h2o_socket_t *sock,
                   const struct hfd_host_address *peer)
{
    struct hfd_loop *loop = listener->loop;
    struct hfd_conn *conn = calloc(1, sizeof(*conn));

    hfd_metric_add(HFD_METRIC_HTTP_CONNECTIONS, NULL, 1);
    if (conn == NULL) {
        h2o_socket_close(sock);
        listener->on_closed(listener);
        return;
    }
    conn->magic = HFD_CONN_MAGIC;
    conn->loop = loop;
    conn->listener = listener;
    conn->sock = sock;
    conn->peer = conn->client = *peer;
    hfd_buf_init(&conn->refusal, REFUSAL_MAX_BYTES);
    h2o_linklist_insert(&loop->conns, &conn->link);
    sock->on_close.cb = on_close;
    sock->on_close.data = conn;
    conn->since_us = hfd_loop_mono_us(loop);
    if (loop->server->tls != NULL)
        conn_begin_tls(conn);
    else
        conn_begin(conn);
}

/*
 * Closes the sending side only, and discards input for a while. A close with unread bytes would
 * reset the connection, and the client would lose the last answer.
 */
static void linger(struct hfd_conn *conn)
{
    (void)shutdown(h2o_socket_get_fd(conn->sock), SHUT_WR);
    conn->state = HFD_CONN_LINGER;
    conn->since_us = hfd_loop_mono_us(conn->loop);
    h2o_socket_read_start(conn->sock, on_read);
}

static void on_refused(h2o_socket_t *sock, const char *err)
{
    struct hfd_conn *conn = hfd_conn_of_socket(sock);

    if (err != NULL || conn->placeless)
        let_go(conn, conn->closing);
    else
        linger(conn);
}

static void format_refusal(const struct hfd_problem *p, bool is_head, const char *challenges,
                           struct hfd_buf *out)
{
    time_t now_s = (time_t)(p->now_us / HFD_US_PER_S);
    char date[H2O_TIMESTR_RFC1123_LEN + 1], retry[40] = "";
    struct hfd_reply reply;
    struct hfd_buf body;
    struct tm tm;

    hfd_buf_init(&body, REFUSAL_MAX_BYTES);
    hfd_problem_format(p, &body, &reply);
    if (body.rc != HFD_OK)
        hfd_buf_reset(&body);
    h2o_time2str_rfc1123(date, gmtime_r(&now_s, &tm));
    if (reply.retry_after_s > 0)
        (void)snprintf(retry, sizeof(retry), "Retry-After: %d\r\n", reply.retry_after_s);
    hfd_buf_addf(out,
                 "HTTP/1.1 %d %s\r\nDate: %s\r\nConnection: close\r\n%sContent-Length: "
                 "%zu\r\nServer: %s\r\nContent-Type: "
                 "%s\r\nX-Request-ID: %.*s\r\n%s%s\r\n",
                 reply.status, hfd_status_text(reply.status), date, retry, body.len,
                 HFD_HTTP_SERVER_NAME, reply.content_type, HFD_SLICE_FMT(p->request_id),
                 p->dialect == HFD_DIALECT_FLEET ? "Vary: Authorization\r\n" : "",
                 reply.status == 401 ? challenges : "");
    if (!is_head)
        hfd_buf_add(out, hfd_buf_slice(&body));
    hfd_buf_fini(&body);
}

/*
 * Logs and counts a refusal, and writes its answer into conn->refusal, whose rc tells if it is
 * complete.
 */
static void conn_format_refusal(struct hfd_conn *conn, const struct hfd_head_fault *fault)
{
    const struct hfd_app *app = conn->loop->server->app;
    h2o_buffer_t *in = conn->sock->input;
    char id[HFD_KSUID_LEN], status[12], text[HFD_AUTH_TEXT_MAX], from[HFD_IP_TEXT_MAX];
    struct hfd_problem problem;
    hfd_slice method, path, token;

    hfd_head_peek(&conn->scan, in->bytes, in->size, &method, &path);
    hfd_credential_cut(&path, &token);
    (void)snprintf(text, sizeof(text),
                   fault->status == 413 ? "%s: expected at most %zu bytes" : "%s", fault->text,
                   conn->loop->server->limits.body_max_bytes);
    problem = (struct hfd_problem){
        .dialect = hfd_dialect_of(conn->listener->which, path),
        .rc = fault->status == 413                  ? HFD_TOO_LARGE
              : fault->status == 401                ? HFD_UNAUTHORIZED
              : fault->status == 403                ? HFD_FORBIDDEN
              : fault->status != 503                ? HFD_BAD_REQUEST
              : fault->text == short_of_memory.text ? HFD_NOMEM
                                                    : HFD_UNCHECKED,
        .status = fault->status,
        .message = text,
        .path = path,
        .request_id = {id, sizeof(id)},
        .now_us = hfd_clock_wall_us(app->clock),
    };
    hfd_ksuid_make(problem.now_us, app->rng, id);
    hfd_host_address_format(&conn->client, from);
    format_refusal(&problem, hfd_slice_is(method, "HEAD"),
                   headers_challenges(conn->listener->which), &conn->refusal);
    HFD_LOG(HFD_LOG_INFO, "request refused", HFD_LOG_STR("request_id", problem.request_id),
            HFD_LOG_CSTR("method", hfd_method_name(hfd_method_parse(method))),
            HFD_LOG_STR("path",
                        ((hfd_slice){path.p, path.len < LOG_PATH_MAX_BYTES ? path.len
                                                                           : LOG_PATH_MAX_BYTES})),
            HFD_LOG_INT("status", fault->status), HFD_LOG_CSTR("reason", fault->reason),
            HFD_LOG_CSTR("from", from));
    hfd_metric_add(HFD_METRIC_HTTP_REFUSED, HFD_LABELS(fault->reason), 1);
    (void)snprintf(status, sizeof(status), "%d", fault->status);
    hfd_metric_add(HFD_METRIC_HTTP_REQUESTS,
                   HFD_LABELS(hfd_method_name(hfd_method_parse(method)), "refused", status), 1);
}

void hfd_conn_refuse_now(struct hfd_conn *conn)
{
    h2o_iovec_t vec = h2o_iovec_init(conn->refusal.p, conn->refusal.len);

    conn->until_us = 0;
    conn->since_us = hfd_loop_mono_us(conn->loop);
    h2o_socket_write(conn->sock, &vec, 1, on_refused);
    conn->loop->again = true;
}

void hfd_conn_refuse(struct hfd_conn *conn, const struct hfd_head_fault *fault)
{
    conn_format_refusal(conn, fault);
    if (conn->refusal.rc != HFD_OK) {
        hfd_conn_close(conn, fault->reason);
        return;
    }
    conn->closing = fault->reason;
    conn->state = HFD_CONN_REFUSED;
    h2o_socket_read_stop(conn->sock);
    h2o_buffer_consume(&conn->sock->input, conn->sock->input->size);
    give_memory(conn);
    if (conn->until_us == 0 || hfd_listener_is_full(conn->listener))
        hfd_conn_refuse_now(conn);
}

/*
 * Hands the first `bytes` bytes of the input, one whole request, to h2o, and drops those behind it.
 * Some clients send an empty line behind a body; other bytes are pipelined.
 */
static void hand_over(struct hfd_conn *conn, size_t bytes)
{
    h2o_buffer_t *in = conn->sock->input;

    HFD_ASSERT(in->size >= bytes);
    conn->pipelined =
        in->size > bytes && !hfd_slice_is((hfd_slice){in->bytes + bytes, in->size - bytes}, "\r\n");
    in->size = bytes;
    conn->state = HFD_CONN_BUSY;
    conn->loop->again = true;
    conn->h2o_read(conn->sock, NULL);
}

static void advance(struct hfd_conn *conn);

static void on_continue_sent(h2o_socket_t *sock, const char *err)
{
    struct hfd_conn *conn = hfd_conn_of_socket(sock);

    conn->continuing = false;
    if (err != NULL) {
        let_go(conn, err);
        return;
    }
    h2o_socket_read_start(sock, on_read);
    advance(conn);
}

/*
 * Removes the Expect line, so that h2o does not answer it too, or a client of HTTP/1.0, which does
 * not know the answer.
 */
static void cut_expect_line(struct hfd_conn *conn)
{
    h2o_buffer_t *in = conn->sock->input;
    size_t behind = conn->head.expect_at + conn->head.expect_bytes;

    memmove(in->bytes + conn->head.expect_at, in->bytes + behind, in->size - behind);
    in->size -= conn->head.expect_bytes;
    conn->head.bytes -= conn->head.expect_bytes;
    conn->scan.at = conn->head.bytes;
}

static void send_continue(struct hfd_conn *conn)
{
    static char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    h2o_iovec_t vec = h2o_iovec_init(text, sizeof(text) - 1);

    conn->continuing = true;
    h2o_socket_read_stop(conn->sock);
    h2o_socket_write(conn->sock, &vec, 1, on_continue_sent);
    conn->loop->again = true;
}

/* Returns how many bytes the request has as far as its head says. */
static size_t body_end(const struct hfd_conn *conn)
{
    return conn->head.bytes +
           (conn->head.framing == HFD_FRAMING_LENGTH ? (size_t)conn->head.content_length : 0);
}

static enum hfd_head_verdict check_origin(const struct hfd_conn *conn, struct hfd_head_fault *fault)
{
    const bool of_page = conn->head.origin.p != NULL || conn->head.fetch_site.p != NULL;
    const struct hfd_server *server = conn->loop->server;

    return hfd_origin_check(
        &(struct hfd_origin_rule){
            .hosts = &server->app->settings->http_hosts,
            .authenticated = server->app->guard != NULL && hfd_guard_is_on(server->app->guard),
            .admin = of_page && conn_need(conn) == HFD_NEED_ADMIN,
            .local = server->local[conn->listener->which],
        },
        &conn->head, fault);
}

/* Advances over the head. On HFD_HEAD_BAD it has refused, and conn may be gone. */
static enum hfd_head_verdict advance_head(struct hfd_conn *conn)
{
    h2o_buffer_t *in = conn->sock->input;
    char text[HFD_AUTH_TEXT_MAX];
    struct hfd_head_fault fault;
    enum hfd_head_verdict verdict;

    verdict = hfd_head_scan(&conn->scan, in->bytes, in->size, &fault);
    if (verdict == HFD_HEAD_OK)
        verdict = hfd_head_parse(&conn->scan, in->bytes, &conn->head, &fault);
    if (verdict == HFD_HEAD_MORE)
        return verdict;
    if (verdict == HFD_HEAD_OK) {
        conn->client = hfd_peer_client(conn->loop->server->app->settings, &conn->peer,
                                       (hfd_slice){in->bytes, conn->head.bytes});
        verdict = check_origin(conn, &fault);
    }
    if (verdict == HFD_HEAD_OK)
        verdict = conn_check_caller(conn, text, &fault);
    if (verdict == HFD_HEAD_OK && conn->head.framing == HFD_FRAMING_LENGTH &&
        conn->head.content_length > conn->loop->server->limits.body_max_bytes) {
        fault = (struct hfd_head_fault){
            .status = 413, .reason = "body_too_large", .text = "the request body is too large"};
        verdict = HFD_HEAD_BAD;
    }
    if (verdict == HFD_HEAD_OK && !take_memory(conn, body_end(conn))) {
        fault = short_of_memory;
        verdict = HFD_HEAD_BAD;
    }
    if (verdict == HFD_HEAD_BAD) {
        hfd_conn_refuse(conn, &fault);
        return verdict;
    }
    if (conn->head.trails)
        hfd_head_tidy(&conn->scan, in->bytes);
    if (conn->head.expect_bytes != 0)
        cut_expect_line(conn);
    conn->state = HFD_CONN_BODY;
    conn->walked_bytes = conn->head.bytes;
    return HFD_HEAD_OK;
}

/* Advances over new input. conn may be gone afterwards. */
static void advance(struct hfd_conn *conn)
{
    h2o_buffer_t *in = conn->sock->input;
    enum hfd_head_verdict verdict = HFD_HEAD_MORE;
    struct hfd_head_fault fault;
    size_t bytes, used;

    if (conn->continuing || (conn->state == HFD_CONN_HEAD && advance_head(conn) != HFD_HEAD_OK))
        return;
    bytes = body_end(conn);
    if (!take_memory(conn, in->size)) {
        hfd_conn_refuse(conn, &short_of_memory);
        return;
    }
    if (conn->head.framing == HFD_FRAMING_CHUNKED) {
        verdict = hfd_chunks_walk(
            &conn->chunks,
            (hfd_slice){in->bytes + conn->walked_bytes, in->size - conn->walked_bytes},
            conn->loop->server->limits.body_max_bytes, &used, &fault);
        conn->walked_bytes = bytes = conn->walked_bytes + used;
    } else if (in->size >= bytes) {
        verdict = HFD_HEAD_OK;
    }
    if (verdict == HFD_HEAD_OK) {
        hand_over(conn, bytes);
    } else if (verdict == HFD_HEAD_BAD) {
        hfd_conn_refuse(conn, &fault);
    } else if (conn->head.expects_continue && in->size == conn->head.bytes) {
        /* A client that already sends its body does not wait for 100 Continue. */
        conn->head.expects_continue = false;
        send_continue(conn);
    }
}

static void discard_input(struct hfd_conn *conn)
{
    conn->discarded_bytes += conn->sock->input->size;
    h2o_buffer_consume(&conn->sock->input, conn->sock->input->size);
    if (conn->discarded_bytes > LINGER_MAX_BYTES)
        hfd_conn_close(conn, conn->closing);
}

static void on_read(h2o_socket_t *sock, const char *err)
{
    struct hfd_conn *conn = hfd_conn_of_socket(sock);

    if (err != NULL) {
        if (conn->closing == NULL) {
            conn->closing = "peer";
            conn_blame_tls(conn, err);
        }
        let_go(conn, err);
        return;
    }
    switch (conn->state) {
    case HFD_CONN_HEAD:
        if (conn->scan.at == 0)
            conn->since_us = hfd_loop_mono_us(conn->loop);
        advance(conn);
        break;
    case HFD_CONN_BODY:
        advance(conn);
        break;
    case HFD_CONN_REFUSED:
    case HFD_CONN_LINGER:
        discard_input(conn);
        break;
    case HFD_CONN_BUSY:
        /* h2o still reads, so it does not see the whole request that head.c found. */
        HFD_LOG(HFD_LOG_ERROR, "the library does not see the end of a request",
                HFD_LOG_STR("request_id", conn->request_id));
        hfd_conn_cut(conn, "parsers disagree");
        break;
    case HFD_CONN_HANDSHAKE:
    case HFD_CONN_CLOSING:
        break; /* h2o reads these itself */
    }
}

/* Hands the connection to h2o, behind the door, and reads what has arrived already. */
static void conn_begin(struct hfd_conn *conn)
{
    h2o_buffer_t *early = conn->sock->input;

    /* h2o handles bytes that it finds at once; the door is to see them first. */
    h2o_buffer_init(&conn->sock->input, &h2o_socket_buffer_prototype);
    h2o_http1_accept(&conn->loop->accept, conn->sock,
                     *h2o_get_timestamp(&conn->loop->ctx, NULL, NULL));
    step_between(conn);
    reset_for_next(conn);
    h2o_buffer_dispose(&conn->sock->input);
    conn->sock->input = early;
    if (early->size != 0)
        advance(conn);
}

void hfd_conn_send(h2o_req_t *req, hfd_slice bytes, bool last)
{
    struct hfd_conn *conn = hfd_conn_of(req);
    h2o_iovec_t vec = h2o_iovec_init(bytes.p, bytes.len);

    conn->given_bytes += bytes.len;
    h2o_send(req, &vec, bytes.len != 0 ? 1 : 0,
             last ? H2O_SEND_STATE_FINAL : H2O_SEND_STATE_IN_PROGRESS);
    /* "Connection: close" is written by now. h2o would close at once; the door lingers instead. */
    if (conn->pipelined)
        req->http1_is_persistent = 1;
}

static void close_socket(h2o_socket_t *sock, const char *err)
{
    (void)err;
    h2o_socket_close(sock);
}

void hfd_conn_own(struct hfd_conn *conn)
{
    h2o_linklist_unlink(&conn->rearm_link);
    h2o_buffer_dispose(&conn->sock->input);
    h2o_buffer_init(&conn->sock->input, &h2o_socket_buffer_prototype);
    give_memory(conn);
    conn->h2o_read = close_socket;
}

void hfd_conn_end(struct hfd_conn *conn)
{
    if (conn->pipelined)
        linger(conn);
    else
        let_go(conn, NULL);
}

static void rearm(struct hfd_conn *conn)
{
    if (!h2o_socket_is_reading(conn->sock)) {
        conn->state = HFD_CONN_CLOSING;
        conn->since_us = hfd_loop_mono_us(conn->loop);
        return;
    }
    step_between(conn);
    reset_for_next(conn);
    conn->served = true;
    if (conn->pipelined) {
        conn->closing = "pipelined";
        linger(conn);
    }
}

void hfd_conn_rearm_all(struct hfd_loop *loop)
{
    while (!h2o_linklist_is_empty(&loop->rearm)) {
        struct hfd_conn *conn =
            H2O_STRUCT_FROM_MEMBER(struct hfd_conn, rearm_link, loop->rearm.next);

        h2o_linklist_unlink(&conn->rearm_link);
        rearm(conn);
    }
}

/* ---- bytes out ---- */

/* More than a record of TLS, and little beside the bodies that are large. */
#define HFD_SENDING_STEP_BYTES ((size_t)65536)

static void send_step(struct hfd_sending *s, h2o_req_t *req)
{
    const size_t len = s->rest.len < s->step_bytes ? s->rest.len : s->step_bytes;
    const hfd_slice step = {s->rest.p, len};

    s->rest = (hfd_slice){s->rest.p + len, s->rest.len - len};
    hfd_conn_send(req, step, s->rest.len == 0);
}

static void on_proceed(h2o_generator_t *generator, h2o_req_t *req)
{
    send_step((struct hfd_sending *)(void *)generator, req);
}

void hfd_sending_start(struct hfd_sending *s, h2o_req_t *req, hfd_slice body)
{
    const struct hfd_conn *conn = hfd_conn_of(req);
    size_t step_bytes = SIZE_MAX;

    if (conn->tls != NULL || conn->listener->is_unix)
        step_bytes = HFD_SENDING_STEP_BYTES;
    if (conn->tls != NULL && conn->listener->which == HFD_LISTENER_MAIN) {
        const int64_t bytes = (int64_t)(body.len < step_bytes ? body.len : step_bytes);

        /* The answer goes out whether there is room or not. */
        s->copy_bytes = bytes > HFD_BUDGET_FREE_BYTES ? bytes : 0;
        hfd_budget_add(&conn->loop->server->memory, s->copy_bytes);
    }
    s->generator = (h2o_generator_t){.proceed = on_proceed, .stop = NULL};
    s->rest = body.len != 0 ? body : HFD_SLICE("");
    s->step_bytes = step_bytes;
    h2o_start_response(req, &s->generator);
    send_step(s, req);
}
