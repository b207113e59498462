/*
 * One event loop and what all loops share. A loop and all that hangs on it belong to its thread.
 * Fields that other threads touch are atomic and say so.
 */
#ifndef HFD_HTTP_LOOP_H
#define HFD_HTTP_LOOP_H

#include "driver/base/bell.h"
#include "handlers/http/http.h"
#include "store/row_cache.h"

#include <pthread.h>
#include <stdatomic.h>

/* h2o has an inline function that calls rand(). */
#pragma push_macro("rand")
#undef rand
#include <h2o.h>
#include <h2o/http1.h>
#pragma pop_macro("rand")

struct hfd_counter;
struct hfd_loop;
struct hfd_router;
struct hfd_tls;

#define HFD_HTTP_SERVER_NAME "hyperfleet-driver"

/** Limits and times, from the settings, once. */
struct hfd_http_limits {
    uint64_t body_max_bytes;
    size_t arena_max_bytes;
    int64_t in_flight_max;
    int64_t read_timeout_us, idle_timeout_us, write_timeout_us, drain_timeout_us;
};

#define HFD_WATCHERS_BY 4096

struct hfd_server {
    const struct hfd_app *app;
    struct hfd_bell_listener listener;
    struct hfd_http_limits limits;
    struct hfd_router *router;
    h2o_globalconf_t conf; /* const once the loops run */
    struct hfd_tls *tls;   /* NULL = the listeners speak plain HTTP */
    hfd_slice drivers[2];
    int fds[HFD_LISTENER_COUNT];
    int ports[HFD_LISTENER_COUNT];
    char *paths[HFD_LISTENER_COUNT]; /* start-up's: of a Unix socket, to be removed; NULL = none */
    bool local[HFD_LISTENER_COUNT];  /* only this machine reaches the listener */
    atomic_bool draining;            /* any thread */
    struct hfd_budget memory;        /* any thread: of requests and answers in progress */
    atomic_uint watchers;            /* any thread: callers that wait for events */
    atomic_uint watchers_by[HFD_WATCHERS_BY]; /* the same by the hash of the caller's name */
    atomic_llong in_flight; /* any thread: requests of the main listener without an answer yet */
    atomic_uint
        busy_loops; /* any thread, while draining: loops with connections of the main listener */
    int64_t connections_max; /* of the main listener */
    unsigned loop_count;
    unsigned loops_started; /* threads to join */
    struct hfd_loop *loops;
};

/* Requests of a loop that wait: hold.h. */
struct hfd_waiters {
    h2o_linklist_t list;      /* struct hfd_waiter.link */
    int64_t due_us;           /* mono: none ends before */
    int64_t checked_us;       /* mono: the last check of the callers */
    struct hfd_row_mark seen; /* at the last look for changes */
    bool added;               /* a held answer was added since */
};

struct hfd_loop_listener {
    struct hfd_loop *loop;
    enum hfd_listener which;
    h2o_socket_t *sock;       /* NULL once closed */
    bool is_unix;             /* a Unix socket */
    atomic_bool accepting;    /* any thread: other loops may hand over connections */
    atomic_llong connections; /* any thread: open, or on their way from another loop */
    int64_t connections_max;
    int64_t handshakes;       /* of TLS, in progress */
    int64_t hurried_until_us; /* mono; there were too many: slow ones are closed sooner */
    bool crowded;             /* it is full, and another connection waits */
    /* Called when a connection has closed: the listener has a place again. */
    void (*on_closed)(struct hfd_loop_listener *listener);
    /* Called when a TLS handshake has ended, before the connection is closed or used. */
    void (*on_handshaked)(struct hfd_loop_listener *listener);
};

struct hfd_loop {
    unsigned magic;
#define HFD_LOOP_MAGIC 0x100b5e1fu
    struct hfd_server *server;
    pthread_t thread;
    bool ready; /* set up; the starter reads it after loop_start.up */
    struct hfd_err start_err;

    h2o_context_t ctx;
    h2o_accept_ctx_t accept;
    h2o_multithread_receiver_t finished; /* jobs come back here */
    h2o_multithread_receiver_t accepted; /* connections that other loops have accepted */
    h2o_multithread_receiver_t wake;     /* wakes the loop */
    struct hfd_sink sink;
    struct hfd_counter *counter;
    struct hfd_guard_view guard_view;
    atomic_uint senders;             /* any thread: threads inside hfd_loop_send */
    struct hfd_store_reader *reader; /* NULL without a store */
    struct hfd_watch_room *watch;    /* what is new, for those that watch; NULL without a store */
    struct hfd_waiters waiters;
    atomic_size_t watchers; /* any thread: places that they have */

    struct hfd_loop_listener listeners[HFD_LISTENER_COUNT];
    h2o_linklist_t conns; /* struct hfd_conn.link */
    h2o_linklist_t rearm; /* struct hfd_conn.rearm_link: answered, ready for the next request */
    h2o_linklist_t later; /* struct hfd_delayed_reply.link: answers that wait */
    size_t later_count;
    int64_t later_us; /* mono: the first of them is not due before */
    bool again;       /* h2o got something between two runs: do not sleep */
    bool draining;
    bool quiet; /* while draining: the main listener has no connection left */
    bool late;  /* the drain timeout has passed */
    int64_t drain_until_us;
    int64_t swept_us;
    atomic_llong turned_us; /* any thread: mono, of the last sweep */
    size_t exchanges;       /* exchanges that exist, with or without a client */
};

/** Starts the thread of a loop and waits until it is ready. Thread: start-up. */
HFD_MUST_CHECK hfd_rc hfd_loop_start(struct hfd_loop *loop, struct hfd_err *err);

/**
 * Sends a message to a receiver of the loop; NULL only wakes the loop. The loop does not end during
 * the call. Thread: any.
 */
static inline void hfd_loop_send(struct hfd_loop *loop, h2o_multithread_receiver_t *receiver,
                                 h2o_multithread_message_t *message)
{
    atomic_fetch_add(&loop->senders, 1);
    h2o_multithread_send_message(receiver, message);
    atomic_fetch_sub(&loop->senders, 1); /* last access to the loop */
}

/** Returns true if a listener has no place left. */
static inline bool hfd_listener_is_full(const struct hfd_loop_listener *l)
{
    return atomic_load(&l->connections) >= l->connections_max;
}

/** The monotonic time. */
static inline int64_t hfd_loop_mono_us(const struct hfd_loop *loop)
{
    return hfd_clock_mono_us(loop->server->app->clock);
}

#endif
