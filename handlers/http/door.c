/*
 * The door of a connection. h2o 2.2.5 takes the first of two lengths, accepts Transfer-Encoding
 * beside Content-Length, and accepts bare LF. So this file reads the input of the socket first. It
 * refuses what head.c finds wrong, and calls h2o's read callback when exactly one whole request is
 * in the input. Pipelined bytes are held back until the answer is sent.
 *
 * The field h2o_socket_t._cb.read is the only thing used below h2o's documented interface. Time
 * limits are here too: h2o has none for writing, and one for reading that also counts idle time.
 */
#include "handlers/http/door_int.h"
#include "handlers/http/door_tls.h"

#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/fleet/ksuid.h"
#include "handlers/auth/credential.h"
#include "handlers/http/door_auth.h"
#include "handlers/http/exchange_int.h"
#include "handlers/http/headers.h"
#include "handlers/http/origin.h"
#include "handlers/http/peer.h"
#include "handlers/http/reply.h"

#include <sys/socket.h>

/* The document may contain the path with each byte escaped. */
#define REFUSAL_MAX_BYTES 65536
/* More than a socket's receive buffer delivers at once. */
#define HELD_MAX_BYTES ((size_t)64 << 20)
#define HELD_STEP_BYTES 16384
#define LINGER_MAX_BYTES ((size_t)256 << 20)
#define LOG_PATH_MAX_BYTES 200

static void on_read(h2o_socket_t *sock, const char *err);

struct hfd_conn *hfd_conn_of_socket(h2o_socket_t *sock)
{
    struct hfd_conn *conn = sock->on_close.data;

    HFD_CHECK_OBJ(conn, HFD_CONN_MAGIC);
    return conn;
}

struct hfd_conn *hfd_conn_of(h2o_req_t *req)
{
    return hfd_conn_of_socket(req->conn->callbacks->get_socket(req->conn));
}

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
    hfd_conn_end_tls(conn);
    hfd_buf_fini(&conn->held);
    hfd_buf_fini(&conn->refusal);
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

void hfd_conn_cut(struct hfd_conn *conn, const char *why)
{
    conn->closing = why;
    (void)shutdown(h2o_socket_get_fd(conn->sock), SHUT_RDWR);
}

static void reset_for_next(struct hfd_conn *conn)
{
    conn->state = HFD_CONN_HEAD;
    conn->scan = (struct hfd_head_scan){0};
    conn->head = (struct hfd_head){0};
    conn->chunks = (struct hfd_chunks){0};
    conn->walked_bytes = 0;
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

/* Sets up the buffer for pipelined bytes. */
static void init_held(struct hfd_conn *conn)
{
    hfd_buf_init(&conn->held, HELD_MAX_BYTES);
    if (conn->listener->which == HFD_LISTENER_MAIN)
        conn->held.budget = &conn->loop->server->memory;
}

void hfd_conn_open(struct hfd_loop_listener *listener, h2o_socket_t *sock)
{
    struct hfd_loop *loop = listener->loop;
    struct hfd_conn *conn = calloc(1, sizeof(*conn));

    if (conn == NULL) {
        h2o_socket_close(sock);
        return;
    }
    conn->magic = HFD_CONN_MAGIC;
    conn->loop = loop;
    conn->listener = listener;
    conn->sock = sock;
    init_held(conn);
    hfd_buf_init(&conn->refusal, REFUSAL_MAX_BYTES);
    h2o_linklist_insert(&loop->conns, &conn->link);
    sock->on_close.cb = on_close;
    sock->on_close.data = conn;
    listener->connections++;
    hfd_metric_add(HFD_METRIC_HTTP_CONNECTIONS, NULL, 1);
    conn->since_us = hfd_loop_mono_us(loop);
    if (loop->server->tls != NULL)
        hfd_conn_begin_tls(conn);
    else
        hfd_conn_begin(conn);
}

static void on_refused(h2o_socket_t *sock, const char *err)
{
    struct hfd_conn *conn = hfd_conn_of_socket(sock);

    if (err != NULL) {
        let_go(conn, err);
        return;
    }
    /*
     * Closes the sending side only, and discards input for a while. A close with unread bytes would
     * reset the connection, and the client would lose the refusal.
     */
    (void)shutdown(h2o_socket_get_fd(sock), SHUT_WR);
    conn->state = HFD_CONN_LINGER;
    conn->since_us = hfd_loop_mono_us(conn->loop);
    h2o_socket_read_start(sock, on_read);
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

void hfd_conn_format_peer(const struct hfd_conn *conn, char out[HFD_ADDRESS_TEXT_MAX])
{
    const struct hfd_host_address peer =
        hfd_peer_client(conn->loop->server->app->settings, conn->sock, NULL);

    hfd_host_address_format(&peer, out);
}

void hfd_conn_format_refusal(struct hfd_conn *conn, const struct hfd_head_fault *fault)
{
    const struct hfd_app *app = conn->loop->server->app;
    h2o_buffer_t *in = conn->sock->input;
    char id[HFD_KSUID_LEN], status[12], text[HFD_AUTH_TEXT_MAX], from[HFD_ADDRESS_TEXT_MAX];
    struct hfd_problem problem;
    hfd_slice method, path, token;

    hfd_head_peek(&conn->scan, in->bytes, in->size, &method, &path);
    hfd_credential_cut(&path, &token);
    (void)snprintf(text, sizeof(text),
                   fault->status == 413 ? "%s: expected at most %zu bytes" : "%s", fault->text,
                   conn->loop->server->limits.body_max_bytes);
    problem = (struct hfd_problem){
        .dialect = hfd_dialect_of(conn->listener->which, path),
        .rc = fault->status == 413   ? HFD_TOO_LARGE
              : fault->status == 401 ? HFD_UNAUTHORIZED
              : fault->status == 403 ? HFD_FORBIDDEN
              : fault->status == 503 ? HFD_NOMEM
                                     : HFD_BAD_REQUEST,
        .status = fault->status,
        .message = text,
        .path = path,
        .request_id = {id, sizeof(id)},
        .now_us = hfd_clock_wall_us(app->clock),
    };
    hfd_ksuid_make(problem.now_us, app->rng, id);
    hfd_conn_format_peer(conn, from);
    format_refusal(&problem, hfd_slice_is(method, "HEAD"),
                   hfd_headers_challenges(conn->listener->which), &conn->refusal);
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
    hfd_conn_format_refusal(conn, fault);
    if (conn->refusal.rc != HFD_OK) {
        hfd_conn_close(conn, fault->reason);
        return;
    }
    conn->closing = fault->reason;
    conn->state = HFD_CONN_REFUSED;
    h2o_socket_read_stop(conn->sock);
    h2o_buffer_consume(&conn->sock->input, conn->sock->input->size);
    give_memory(conn);
    if (conn->until_us == 0)
        hfd_conn_refuse_now(conn);
}

static void drop_held(struct hfd_conn *conn)
{
    HFD_ASSERT(conn->held_at == conn->held.len);
    if (conn->held.len == 0)
        return;
    hfd_buf_fini(&conn->held);
    init_held(conn);
    conn->held_at = 0;
}

/* Hands the first `bytes` bytes of the input, one whole request, to h2o. */
static void hand_over(struct hfd_conn *conn, size_t bytes)
{
    h2o_buffer_t *in = conn->sock->input;

    HFD_ASSERT(in->size >= bytes);
    if (conn->held.len != 0) {
        /* All input came from held: give the rest back without a copy. */
        HFD_ASSERT(conn->held_at >= in->size - bytes);
        conn->held_at -= in->size - bytes;
    } else if (in->size > bytes) {
        hfd_buf_add(&conn->held, (hfd_slice){in->bytes + bytes, in->size - bytes});
        if (conn->held.rc != HFD_OK) {
            hfd_conn_refuse(conn, &short_of_memory);
            return;
        }
    }
    in->size = bytes;
    conn->state = HFD_CONN_BUSY;
    conn->loop->again = true;
    conn->h2o_read(conn->sock, NULL);
}

static bool advance(struct hfd_conn *conn);

static void on_continue_sent(h2o_socket_t *sock, const char *err)
{
    struct hfd_conn *conn = hfd_conn_of_socket(sock);

    conn->continuing = false;
    if (err != NULL) {
        let_go(conn, err);
        return;
    }
    h2o_socket_read_start(sock, on_read);
    (void)advance(conn);
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
    const struct hfd_server *server = conn->loop->server;

    return hfd_origin_check(
        &(struct hfd_origin_rule){
            .hosts = &server->app->settings->http_hosts,
            .authenticated = server->app->guard != NULL && hfd_guard_is_on(server->app->guard),
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
    if (verdict == HFD_HEAD_OK)
        verdict = check_origin(conn, &fault);
    if (verdict == HFD_HEAD_OK)
        verdict = hfd_conn_check_caller(conn, text, &fault);
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

/*
 * Advances over new input. Returns true if the request is incomplete and more bytes are welcome;
 * otherwise conn may be gone.
 */
static bool advance(struct hfd_conn *conn)
{
    h2o_buffer_t *in = conn->sock->input;
    struct hfd_head_fault fault;
    size_t bytes, used;

    if (conn->continuing)
        return false;
    if (conn->state == HFD_CONN_HEAD) {
        enum hfd_head_verdict verdict = advance_head(conn);

        if (verdict != HFD_HEAD_OK)
            return verdict == HFD_HEAD_MORE;
    }
    bytes = body_end(conn);
    if (!take_memory(conn, in->size)) {
        hfd_conn_refuse(conn, &short_of_memory);
        return false;
    }
    if (conn->head.framing != HFD_FRAMING_CHUNKED && in->size >= bytes) {
        hand_over(conn, bytes);
        return false;
    }
    if (conn->head.framing == HFD_FRAMING_CHUNKED) {
        switch (hfd_chunks_walk(
            &conn->chunks,
            (hfd_slice){in->bytes + conn->walked_bytes, in->size - conn->walked_bytes},
            conn->loop->server->limits.body_max_bytes, &used, &fault)) {
        case HFD_HEAD_OK:
            hand_over(conn, conn->walked_bytes + used);
            return false;
        case HFD_HEAD_BAD:
            hfd_conn_refuse(conn, &fault);
            return false;
        case HFD_HEAD_MORE:
            conn->walked_bytes = in->size;
            break;
        }
    }
    /* A client that already sends its body does not wait for 100 Continue. */
    if (conn->head.expects_continue && in->size == conn->head.bytes &&
        conn->held_at == conn->held.len) {
        conn->head.expects_continue = false;
        drop_held(conn);
        send_continue(conn);
        return false;
    }
    return true;
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
            hfd_conn_blame_tls(conn, err);
        }
        let_go(conn, err);
        return;
    }
    switch (conn->state) {
    case HFD_CONN_HEAD:
        if (conn->scan.at == 0)
            conn->since_us = hfd_loop_mono_us(conn->loop);
        (void)advance(conn);
        break;
    case HFD_CONN_BODY:
        (void)advance(conn);
        break;
    case HFD_CONN_REFUSED:
    case HFD_CONN_LINGER:
        discard_input(conn);
        break;
    case HFD_CONN_BUSY:
        /* h2o still reads, so it does not see the whole request that head.c found. */
        if (HFD_NEVER(conn->state == HFD_CONN_BUSY))
            hfd_conn_cut(conn, "parsers disagree");
        break;
    case HFD_CONN_HANDSHAKE:
    case HFD_CONN_CLOSING:
        break; /* h2o reads these itself */
    }
}

void hfd_conn_begin(struct hfd_conn *conn)
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
        (void)advance(conn);
}

void hfd_conn_request_done(struct hfd_conn *conn)
{
    HFD_CHECK_OBJ(conn, HFD_CONN_MAGIC);
    if (!h2o_linklist_is_linked(&conn->rearm_link))
        h2o_linklist_insert(&conn->loop->rearm, &conn->rearm_link);
}

/*
 * Feeds held bytes in small steps, so that thousands of pipelined requests are not copied again for
 * each of them.
 */
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
    while (conn->held_at < conn->held.len) {
        size_t left = conn->held.len - conn->held_at;
        size_t step = left < HELD_STEP_BYTES ? left : HELD_STEP_BYTES;
        h2o_iovec_t room = h2o_buffer_reserve(&conn->sock->input, step);

        if (room.base == NULL) {
            hfd_conn_close(conn, "out of memory");
            return;
        }
        memcpy(room.base, conn->held.p + conn->held_at, step);
        conn->sock->input->size += step;
        conn->held_at += step;
        if (!advance(conn))
            return;
    }
    drop_held(conn);
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
