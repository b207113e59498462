/*
 * One connection, between the socket and h2o: its bytes, its TLS, its first look at a caller, and
 * what is sent. All of it belongs to the loop's thread.
 *
 * A caller is refused before its body is read: the head has its credentials. A small request that
 * arrives in one piece is checked in access.c alone.
 *
 * Over TLS the library copies and encrypts all that it is given, so a body goes out one step after
 * the other. Over a Unix socket the steps show the progress of the client, which the kernel does
 * not tell.
 */
#ifndef HFD_HTTP_DOOR_H
#define HFD_HTTP_DOOR_H

#include "driver/base/check.h"
#include "handlers/http/head.h"
#include "handlers/http/loop.h"
#include "handlers/settings/network.h"

#include <sys/socket.h>

/** The life of a connection. */
enum hfd_conn_state {
    HFD_CONN_HANDSHAKE, /* of TLS */
    HFD_CONN_HEAD,      /* waits for a head */
    HFD_CONN_BODY,      /* head checked, body incomplete */
    HFD_CONN_BUSY,      /* h2o has a whole request */
    HFD_CONN_REFUSED,   /* the refusal is */
    HFD_CONN_LINGER,    /* the refusal is written; further input is discarded */
    HFD_CONN_CLOSING,   /* h2o has closed it; the last bytes of TLS are being written */
};

struct hfd_conn {
    unsigned magic;
#define HFD_CONN_MAGIC 0xc0557ec7u
    enum hfd_conn_state state;
    h2o_linklist_t link;
    h2o_linklist_t rearm_link;
    struct hfd_loop *loop;
    struct hfd_loop_listener *listener;
    h2o_socket_t *sock;
    h2o_socket_cb h2o_read; /* h2o's read callback; of a flow, what closes the socket */
    struct hfd_host_address peer;
    struct hfd_host_address client; /* of the request, behind trusted proxies */

    struct hfd_head_scan scan;
    struct hfd_head head; /* slices point into the input; invalid once it grows */
    struct hfd_chunks chunks;
    size_t walked_bytes; /* bytes of the input that the chunk parser has seen */
    struct hfd_buf refusal;
    size_t discarded_bytes;
    bool served;     /* has had an answer */
    bool pipelined;  /* bytes came behind the request: its answer is the last one */
    bool placeless;  /* another connection has its place: it ends soon */
    bool lent;       /* its request waits (hfd_exchange_hold): it has no place of the listener */
    bool continuing; /* "100 Continue" is being written; nothing else may be */

    int64_t since_us;              /* mono: start of the wait of this state */
    int64_t until_us;              /* mono: the refusal waits until then; 0 = it does not */
    int64_t write_began_us;        /* mono: start of the write that is under way; 0 = none */
    int64_t write_since_us;        /* mono: last progress of that write */
    uint64_t acked_bytes;          /* taken_bytes of loop.c at write_since_us */
    uint64_t given_bytes;          /* of answers, to h2o */
    const char *closing;           /* reason of the end, for the log; static */
    struct hfd_exchange *exchange; /* of the request that h2o has; NULL = none */
    int64_t taken_bytes;           /* from the memory of the server, for the input */
    int64_t tls_bytes;             /* likewise, for the state of TLS */
    SSL_CTX *tls;                  /* kept as long as the connection; NULL = plain HTTP */
    hfd_slice request_id;          /* of the request that h2o has; empty = none */
};

/**
 * Takes an accepted connection, which has a place of the listener, and hands it to h2o behind the
 * door.
 */
void hfd_conn_open(struct hfd_loop_listener *listener, h2o_socket_t *sock,
                   const struct hfd_host_address *peer);
/** Returns the connection of a socket. */
static inline struct hfd_conn *hfd_conn_of_socket(h2o_socket_t *sock)
{
    struct hfd_conn *conn = sock->on_close.data;

    HFD_CHECK_OBJ(conn, HFD_CONN_MAGIC);
    return conn;
}
/** Returns the connection of a request. */
static inline struct hfd_conn *hfd_conn_of(h2o_req_t *req)
{
    return hfd_conn_of_socket(req->conn->callbacks->get_socket(req->conn));
}
/** Gives h2o the next bytes of the answer. @param last  no others follow */
void hfd_conn_send(h2o_req_t *req, hfd_slice bytes, bool last);
/** h2o has given up a connection whose request is done: it has no input, and does not read. */
void hfd_conn_own(struct hfd_conn *conn);
/** Ends a connection of our own. No write is under way. Frees conn, or it ends by itself. */
void hfd_conn_end(struct hfd_conn *conn);
/** Continues every connection of the rearm list. Between two runs of the loop only. */
void hfd_conn_rearm_all(struct hfd_loop *loop);

/**
 * Makes h2o close the connection, by an error for its read callback. Not while h2o has a request.
 * Frees conn.
 */
void hfd_conn_close(struct hfd_conn *conn, const char *why);
/** Makes the kernel end the connection. h2o notices at its next read or write. */
static inline void hfd_conn_cut(struct hfd_conn *conn, const char *why)
{
    conn->closing = why;
    (void)shutdown(h2o_socket_get_fd(conn->sock), SHUT_RDWR);
}
/**
 * Answers instead of h2o and ends the connection, because the bytes after a bad request cannot be
 * trusted.
 */
void hfd_conn_refuse(struct hfd_conn *conn, const struct hfd_head_fault *fault);
/** Writes a refusal that has waited. */
void hfd_conn_refuse_now(struct hfd_conn *conn);

/**
 * Checks the credentials of a request.
 * @param secret         of the path; empty = that of the header counts
 * @param authorization  the value of that header
 */
void hfd_conn_identify(struct hfd_conn *conn, hfd_slice secret, hfd_slice authorization,
                       int64_t now_us, struct hfd_guard_answer *out);
/**
 * Counts and logs a refused caller.
 * @param failed  the credentials are not valid: it is a failure of the address
 * @param text    what the caller reads
 * @return how long the answer waits
 */
int64_t hfd_conn_note_refusal(const struct hfd_conn *conn, bool failed, const char *reason,
                              const char *text);

struct hfd_sending {
    h2o_generator_t generator; /* first member: h2o gives it back */
    hfd_slice rest;
    size_t step_bytes;  /* SIZE_MAX = all at once */
    int64_t copy_bytes; /* taken from the memory of the server, until the caller gives it back */
};

/**
 * Starts the response that is set up in req, and sends the body.
 * @param s     zeroed; valid until h2o disposes of the request
 * @param body  valid as long; empty = none
 */
void hfd_sending_start(struct hfd_sending *s, h2o_req_t *req, hfd_slice body);

/** The part of an answer's headers that the reply does not have. */
struct hfd_headers {
    hfd_slice request_id;
    enum hfd_dialect dialect;
    enum hfd_listener listener;
    int prefer_s; /* Preference-Applied: wait; 0 = none */
};

/** Adds the headers of a reply to a request. */
void hfd_headers_add(h2o_req_t *req, const struct hfd_reply *reply, const struct hfd_headers *more);

#endif
