/* See door_tls.h. */
#include "handlers/http/door_tls.h"

#include <sys/socket.h>

#include <openssl/err.h>

#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "handlers/http/door_int.h"

/* Measured with OpenSSL 3.0: the state of a handshake, and of an open connection without data. */
#define HANDSHAKE_BYTES 65536
#define OPEN_BYTES 32768
#define ALERT_MAX_BYTES 64

static bool take_memory(struct hfd_conn *conn)
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

void hfd_conn_end_tls(struct hfd_conn *conn)
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

/* Answers a client that speaks plain HTTP to a TLS port, as far as it can be answered. */
static void refuse_plain_http(struct hfd_conn *conn)
{
    static const struct hfd_head_fault fault = {
        .status = 400, .reason = "plain_http", .text = "this port expects TLS: use https"};

    hfd_conn_format_refusal(conn, &fault);
    if (conn->refusal.rc == HFD_OK)
        send_plain(conn, conn->refusal.p, conn->refusal.len);
}

/* A client that only connects, as some probes do, is no line of the log. */
static void refuse_handshake(struct hfd_conn *conn, const char *err)
{
    const char *reason = ERR_reason_error_string(ERR_peek_error());
    unsigned char alert[ALERT_MAX_BYTES];
    char from[HFD_ADDRESS_TEXT_MAX];
    const size_t len = hfd_tls_take_alert(alert, sizeof(alert));
    const bool left = err == h2o_socket_error_closed || err == h2o_socket_error_io;

    if (len != 0)
        send_plain(conn, alert, len);
    hfd_conn_format_peer(conn, from);
    hfd_metric_add(HFD_METRIC_HTTP_REFUSED, HFD_LABELS("tls"), 1);
    HFD_LOG(left ? HFD_LOG_DEBUG : HFD_LOG_INFO, "TLS handshake refused",
            HFD_LOG_CSTR("reason", "tls"), HFD_LOG_CSTR("detail", err),
            HFD_LOG_CSTR("tls_error", reason != NULL ? reason : ""), HFD_LOG_CSTR("from", from));
}

void hfd_conn_blame_tls(struct hfd_conn *conn, const char *err)
{
    if (conn->tls == NULL || err == h2o_socket_error_closed || err == h2o_socket_error_io)
        return;
    conn->closing = "tls";
    hfd_metric_add(HFD_METRIC_HTTP_REFUSED, HFD_LABELS("tls"), 1);
    HFD_LOG(HFD_LOG_INFO, "TLS connection refused", HFD_LOG_CSTR("reason", "tls"),
            HFD_LOG_CSTR("detail", err));
}

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
    hfd_conn_begin(conn);
}

void hfd_conn_begin_tls(struct hfd_conn *conn)
{
    conn->state = HFD_CONN_HANDSHAKE;
    conn->listener->handshakes++;
    if (!take_memory(conn)) {
        hfd_metric_add(HFD_METRIC_HTTP_REFUSED, HFD_LABELS("memory"), 1);
        HFD_LOG(HFD_LOG_INFO, "TLS handshake refused", HFD_LOG_CSTR("reason", "memory"));
        hfd_conn_close(conn, "memory");
        return;
    }
    conn->tls = hfd_tls_context(conn->loop->server->tls, conn->listener->which);
    h2o_socket_ssl_handshake(conn->sock, conn->tls, NULL, on_handshaked);
}
