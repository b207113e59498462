/* See door_sweep.h. */
#include "handlers/http/door_sweep.h"

#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "handlers/http/door_int.h"
#include "handlers/http/exchange_int.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#define LINGER_MAX_US (5 * HFD_US_PER_S)
#define HURRIED_HANDSHAKE_MAX_US HFD_US_PER_S
/* A response that makes slow progress ends after this many write timeouts. */
#define WRITE_TIMEOUTS_MAX 20

/*
 * Returns a number that changes when the peer takes bytes: those that it has acknowledged. For a
 * Unix socket the kernel has no such number; h2o gets the next step when the last one is written.
 */
static uint64_t taken_bytes(const struct hfd_conn *conn)
{
    const int fd = h2o_socket_get_fd(conn->sock);
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0)
        return info.tcpi_bytes_acked;
    return conn->given_bytes;
}

static void sweep_writer(struct hfd_conn *conn, int64_t now_us)
{
    int64_t limit_us = conn->loop->server->limits.write_timeout_us;
    uint64_t acked;

    if (!h2o_socket_is_writing(conn->sock)) {
        conn->write_began_us = 0;
        return;
    }
    acked = taken_bytes(conn);
    if (conn->write_began_us == 0)
        conn->write_began_us = conn->write_since_us = now_us;
    else if (acked != conn->acked_bytes)
        conn->write_since_us = now_us;
    conn->acked_bytes = acked;
    if (now_us - conn->write_since_us > limit_us ||
        now_us - conn->write_began_us > limit_us * WRITE_TIMEOUTS_MAX) {
        hfd_metric_add(HFD_METRIC_HTTP_REFUSED, HFD_LABELS("write_timeout"), 1);
        HFD_LOG(HFD_LOG_WARN, "slow reader cut off", HFD_LOG_STR("request_id", conn->request_id),
                HFD_LOG_INT("read_bytes", acked));
        hfd_conn_cut(conn, "write_timeout");
    }
}

/*
 * Cancels a list whose client has hung up. h2o does not read meanwhile, so the kernel is asked. A
 * client that closed its sending side only is taken for gone too: it cannot be told apart.
 */
static void sweep_viewer(struct hfd_conn *conn)
{
    struct pollfd p = {.fd = h2o_socket_get_fd(conn->sock), .events = POLLRDHUP};

    if (conn->exchange == NULL || !hfd_exchange_is_viewing(conn->exchange))
        return;
    if (poll(&p, 1, 0) == 1)
        hfd_exchange_cancel(conn->exchange);
}

/* May free conn. */
static void sweep_handshake(struct hfd_conn *conn, int64_t now_us)
{
    const int64_t limit_us = now_us < conn->listener->hurried_until_us
                                 ? HURRIED_HANDSHAKE_MAX_US
                                 : conn->loop->server->limits.read_timeout_us;

    if (now_us - conn->since_us <= limit_us)
        return;
    hfd_metric_add(HFD_METRIC_HTTP_REFUSED, HFD_LABELS("tls_timeout"), 1);
    HFD_LOG(HFD_LOG_INFO, "TLS handshake refused", HFD_LOG_CSTR("reason", "tls_timeout"));
    hfd_conn_close(conn, "tls_timeout");
}

/* May free conn. */
static void sweep_reader(struct hfd_conn *conn, int64_t now_us)
{
    static const struct hfd_head_fault late = {
        .status = 408, .reason = "read_timeout", .text = "the request did not arrive in time"};

    const struct hfd_http_limits *limits = &conn->loop->server->limits;
    const bool idle = conn->sock->input->size == 0 && conn->state == HFD_CONN_HEAD;

    if (now_us - conn->since_us <=
        (idle && conn->served ? limits->idle_timeout_us : limits->read_timeout_us))
        return;
    if (idle)
        hfd_conn_close(conn, "idle");
    else if (conn->continuing)
        hfd_conn_close(conn, late.reason);
    else
        hfd_conn_refuse(conn, &late);
}

/* May free conn. */
static void sweep_one(struct hfd_conn *conn, int64_t now_us)
{
    switch (conn->state) {
    case HFD_CONN_HEAD:
    case HFD_CONN_BODY:
        sweep_reader(conn, now_us);
        break;
    case HFD_CONN_BUSY:
        /* h2o answered without an exchange and reads on its own. */
        if (HFD_NEVER(h2o_socket_is_reading(conn->sock) &&
                      !h2o_linklist_is_linked(&conn->rearm_link)))
            hfd_conn_cut(conn, "answered past the door");
        sweep_writer(conn, now_us);
        sweep_viewer(conn);
        break;
    case HFD_CONN_HANDSHAKE:
        sweep_handshake(conn, now_us);
        break;
    case HFD_CONN_REFUSED:
        if (conn->until_us != 0) {
            if (now_us >= conn->until_us || conn->loop->draining)
                hfd_conn_refuse_now(conn);
            break;
        }
        /* fall through */
    case HFD_CONN_LINGER:
    case HFD_CONN_CLOSING:
        if (now_us - conn->since_us > LINGER_MAX_US)
            hfd_conn_close(conn, conn->closing);
        break;
    }
}

void hfd_conn_sweep(struct hfd_loop *loop, int64_t now_us)
{
    h2o_linklist_t *at, *next;

    for (at = loop->conns.next; at != &loop->conns; at = next) {
        next = at->next;
        sweep_one(H2O_STRUCT_FROM_MEMBER(struct hfd_conn, link, at), now_us);
    }
}

void hfd_conn_close_idle(struct hfd_loop *loop, enum hfd_listener which)
{
    h2o_linklist_t *at, *next;

    for (at = loop->conns.next; at != &loop->conns; at = next) {
        struct hfd_conn *conn = H2O_STRUCT_FROM_MEMBER(struct hfd_conn, link, at);

        next = at->next;
        if (conn->listener->which != which || (which == HFD_LISTENER_OPS && !conn->served))
            continue; /* a probe that connected gets its answer */
        if (conn->state == HFD_CONN_HANDSHAKE ||
            (conn->state == HFD_CONN_HEAD && conn->sock->input->size == 0))
            hfd_conn_close(conn, "shutting down");
    }
}

void hfd_conn_close_longest(struct hfd_loop *loop, enum hfd_listener which)
{
    struct hfd_conn *longest = NULL;

    for (h2o_linklist_t *at = loop->conns.next; at != &loop->conns; at = at->next) {
        struct hfd_conn *conn = H2O_STRUCT_FROM_MEMBER(struct hfd_conn, link, at);

        if (conn->listener->which != which || conn->state == HFD_CONN_BUSY ||
            conn->state == HFD_CONN_REFUSED || conn->state == HFD_CONN_CLOSING || conn->continuing)
            continue;
        if (longest == NULL || conn->since_us < longest->since_us)
            longest = conn;
    }
    if (longest == NULL)
        return;
    hfd_metric_add(HFD_METRIC_HTTP_REFUSED, HFD_LABELS("crowded"), 1);
    hfd_conn_close(longest, "crowded");
}

void hfd_conn_cut_all(struct hfd_loop *loop, const char *why)
{
    h2o_linklist_t *at, *next;

    for (at = loop->conns.next; at != &loop->conns; at = next) {
        struct hfd_conn *conn = H2O_STRUCT_FROM_MEMBER(struct hfd_conn, link, at);

        next = at->next;
        if (conn->state == HFD_CONN_BUSY) {
            if (conn->exchange != NULL)
                hfd_exchange_cancel(conn->exchange);
            hfd_conn_cut(conn, why);
        } else {
            hfd_conn_close(conn, why);
        }
    }
}
