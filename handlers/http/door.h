/*
 * One connection, between the socket and h2o. All of it belongs to the loop's thread.
 */
#ifndef HFD_HTTP_DOOR_H
#define HFD_HTTP_DOOR_H

#include "handlers/http/head.h"
#include "handlers/http/loop.h"

/** The life of a connection. */
enum hfd_conn_state {
    HFD_CONN_HEAD,    /* waiting for a head, or for its rest */
    HFD_CONN_BODY,    /* head checked, body incomplete */
    HFD_CONN_BUSY,    /* h2o has a whole request */
    HFD_CONN_REFUSED, /* our refusal is being written */
    HFD_CONN_LINGER,  /* refusal written; what the client still sends is thrown away */
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
    h2o_socket_cb h2o_read; /* what h2o wants called when a request is there */

    struct hfd_head_scan scan;
    struct hfd_head head; /* slices point into the input and are dead once it grows; numbers stay */
    struct hfd_chunks chunks;
    size_t walked_bytes; /* of the input: the part that the chunk walk has seen */
    struct hfd_buf held; /* pipelined bytes behind the request that h2o has */
    size_t held_at;      /* of held: what went into the input again */
    struct hfd_buf refusal;
    size_t discarded_bytes;
    bool continuing; /* "100 Continue" is being written: nothing else may be */

    int64_t since_us;       /* mono: start of the wait that the state stands for */
    int64_t write_began_us; /* mono: when a write was first seen under way; 0 = none is */
    int64_t write_since_us; /* mono: its last progress */
    uint64_t acked_bytes;   /* by the peer, at write_since_us */
    const char *closing;    /* why, for the log; static */
    hfd_slice request_id;   /* of the exchange that h2o has; none without one */
};

/** Takes a connection that was just accepted and gives it to h2o behind the door. */
void hfd_conn_open(struct hfd_loop_listener *listener, h2o_socket_t *sock);
/** The connection that a request came on. */
struct hfd_conn *hfd_conn_of(h2o_req_t *req);
/** The request was disposed: its answer is sent, or the connection is about to close. */
void hfd_conn_request_done(struct hfd_conn *conn);
/** Lets every connection of the rearm list go on. Between two runs of the loop only. */
void hfd_conn_rearm_all(struct hfd_loop *loop);
/**
 * Once a second: slow readers, slow writers, idle connections. Between two runs of the loop only.
 */
void hfd_conn_sweep(struct hfd_loop *loop, int64_t now_us);
/** Closes those that have no request in flight. Between two runs of the loop only. */
void hfd_conn_close_idle(struct hfd_loop *loop, enum hfd_listener which);
/** Cuts all of them off, whatever they do. Between two runs of the loop only. */
void hfd_conn_cut_all(struct hfd_loop *loop, const char *why);

#endif
