/*
 * What server.c, door.c and exchange.c share: the only files that know h2o.
 *
 *   server.c    loops, listeners, limits on connections, the sweep, draining
 *   door.c      one connection: bytes are checked here and handed to h2o one whole request at a
 * time exchange.c  one request: the view of it, jobs, the reply
 *
 * A loop and all that hangs on it belong to its thread. Fields that other threads touch are atomic
 * and say so.
 */
#ifndef HFD_HTTP_HTTP_INT_H
#define HFD_HTTP_HTTP_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "handlers/http/head.h"
#include "handlers/http/http.h"
#include "handlers/http/route.h"

/* One of h2o's inline functions calls rand(). */
#pragma push_macro("rand")
#undef rand
#include <h2o.h>
#pragma pop_macro("rand")

#define HFD_HTTP_SERVER_NAME "hyperfleet-driver"

/** Limits and times, from the settings, once. */
struct hfd_http_limits {
    uint64_t body_max_bytes;
    size_t arena_max_bytes;
    int64_t in_flight_max;
    int64_t read_timeout_us, write_timeout_us, drain_timeout_us;
};

struct hfd_server {
    const struct hfd_app *app;
    struct hfd_http_limits limits;
    struct hfd_router *router;
    h2o_globalconf_t conf; /* const once the loops run */
    hfd_slice drivers[2];
    int fds[HFD_LISTENER_COUNT];
    int ports[HFD_LISTENER_COUNT];
    atomic_bool draining;    /* any thread */
    atomic_llong held_bytes; /* any thread: of answers that are on their way out, with what they
                                were made of */
    atomic_llong in_flight;  /* any thread: requests of the main listener that wait for an answer */
    atomic_uint busy_loops;  /* any thread, while draining: loops that still have something of the
                                main listener */
    int64_t connections_max; /* of the main listener */
    unsigned loop_count;
    unsigned loops_started; /* threads to join */
    struct hfd_loop *loops;
};

struct hfd_loop_listener {
    struct hfd_loop *loop;
    enum hfd_listener which;
    h2o_socket_t *sock;  /* NULL once closed */
    int64_t connections; /* open ones */
    int64_t connections_max;
    bool paused;
};

struct hfd_loop {
    unsigned magic;
#define HFD_LOOP_MAGIC 0x100b5e1fu
    struct hfd_server *server;
    pthread_t thread;
    bool ready; /* set up; read by the starter after the thread said so */
    struct hfd_err start_err;

    h2o_context_t ctx;
    h2o_accept_ctx_t accept;
    h2o_multithread_receiver_t finished; /* jobs come back here */
    h2o_multithread_receiver_t wake;     /* only wakes the loop */
    struct hfd_sink sink;
    struct hfd_counter *counter;
    atomic_uint senders; /* any thread: those inside hfd_loop_send, who still use the queue */
    struct hfd_store_reader *reader; /* NULL without a store */

    struct hfd_loop_listener listeners[HFD_LISTENER_COUNT];
    h2o_linklist_t conns; /* struct hfd_conn.link */
    h2o_linklist_t
        rearm;  /* struct hfd_conn.rearm_link: the last request is answered, the next may come */
    bool again; /* something was handed to h2o between two runs: do not sleep */
    bool draining;
    bool quiet; /* while draining: nothing of the main listener is left */
    bool late;  /* the time for draining was over before that */
    int64_t drain_until_us;
    int64_t swept_us;
    size_t exchanges; /* alive, with or without a client */
};

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

/* door.c; all on the connection's loop thread */

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

/* exchange.c */

/** h2o's handler. */
int hfd_exchange_on_req(h2o_handler_t *self, h2o_req_t *req);
/** The receiver of finished jobs. */
void hfd_exchange_on_finished(h2o_multithread_receiver_t *receiver, h2o_linklist_t *messages);
/** hfd_sink.post of a loop. Thread: writer, readers. */
void hfd_exchange_post(struct hfd_sink *sink, struct hfd_job *list);

/* server.c */

/**
 * Sends a message to a receiver of the loop, or with NULL only wakes it. The loop does not end
 * before this is over. Thread: any.
 */
void hfd_loop_send(struct hfd_loop *loop, h2o_multithread_receiver_t *receiver,
                   h2o_multithread_message_t *message);

/** A connection has closed: listeners that wait for a place take the next one. */
void hfd_loop_connection_closed(struct hfd_loop_listener *listener);

static inline int64_t hfd_loop_mono_us(const struct hfd_loop *loop)
{
    return hfd_clock_mono_us(loop->server->app->clock);
}

#endif
