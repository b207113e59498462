/*
 * One connection, between the socket and h2o. All of it belongs to the loop's thread.
 */
#ifndef HFD_HTTP_DOOR_H
#define HFD_HTTP_DOOR_H

#include "handlers/http/head.h"
#include "handlers/http/loop.h"

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
    h2o_socket_cb h2o_read; /* h2o's read callback */

    struct hfd_head_scan scan;
    struct hfd_head head; /* slices point into the input; invalid once it grows */
    struct hfd_chunks chunks;
    size_t walked_bytes; /* bytes of the input that the chunk parser has seen */
    struct hfd_buf held; /* pipelined bytes behind the request that h2o has */
    size_t held_at;      /* bytes of held that are in the input again */
    struct hfd_buf refusal;
    size_t discarded_bytes;
    bool served;     /* has had an answer */
    bool continuing; /* "100 Continue" is being written; nothing else may be */

    int64_t since_us;              /* mono: start of the wait of this state */
    int64_t until_us;              /* mono: the refusal waits until then; 0 = it does not */
    int64_t write_began_us;        /* mono: start of the write that is under way; 0 = none */
    int64_t write_since_us;        /* mono: last progress of that write */
    uint64_t acked_bytes;          /* taken_bytes of door_sweep.c at write_since_us */
    uint64_t given_bytes;          /* of answers, to h2o */
    const char *closing;           /* reason of the end, for the log; static */
    struct hfd_exchange *exchange; /* of the request that h2o has; NULL = none */
    int64_t taken_bytes;           /* from the memory of the server, for the input */
    int64_t tls_bytes;             /* likewise, for the state of TLS */
    SSL_CTX *tls;                  /* kept as long as the connection; NULL = plain HTTP */
    hfd_slice request_id;          /* of the request that h2o has; empty = none */
};

/** Takes an accepted connection and hands it to h2o behind the door. */
void hfd_conn_open(struct hfd_loop_listener *listener, h2o_socket_t *sock);
/** Returns the connection of a request. */
struct hfd_conn *hfd_conn_of(h2o_req_t *req);
/**
 * Tells the door that h2o has disposed of the request: the answer is sent, or the connection
 * closes.
 */
void hfd_conn_request_done(struct hfd_conn *conn);
/** Continues every connection of the rearm list. Between two runs of the loop only. */
void hfd_conn_rearm_all(struct hfd_loop *loop);

#endif
