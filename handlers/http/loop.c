/* See loop.h. */
#include "handlers/http/loop.h"

#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/base/thread.h"
#include "handlers/http/door.h"
#include "handlers/http/exchange.h"
#include "handlers/http/exchange_int.h"
#include "handlers/http/hold.h"
#include "handlers/http/http.h"
#include "handlers/http/routes.h"
#include "handlers/http/watch_api.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/socket.h>

/* ---- answers that wait, and jobs that come back ---- */

/* Returns true if a 401 of the exchange waits; x may be NULL. */
static bool waits_refused(const struct hfd_exchange *x)
{
    return x != NULL && x->later != NULL && x->later->do_without == NULL;
}

/* Takes an answer that is due off the list; notes when the next one is. */
static struct hfd_delayed_reply *take_due(struct hfd_loop *loop, int64_t now_us)
{
    int64_t next_us = INT64_MAX;

    for (h2o_linklist_t *at = loop->later.next; at != &loop->later; at = at->next) {
        struct hfd_delayed_reply *later =
            H2O_STRUCT_FROM_MEMBER(struct hfd_delayed_reply, link, at);

        if (later->until_us <= now_us || loop->draining)
            return later;
        if (later->until_us < next_us)
            next_us = later->until_us;
    }
    loop->later_us = next_us;
    return NULL;
}

/* Sends the answers that have waited long enough; all of them while the loop drains. */
static void run_delayed(struct hfd_loop *loop, int64_t now_us)
{
    struct hfd_delayed_reply *later;

    if (loop->later_count == 0 || (now_us < loop->later_us && !loop->draining))
        return;
    while ((later = take_due(loop, now_us)) != NULL)
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): off the list */
        hfd_delayed_reply_answer_now(later->x);
}

/* Returns how long the loop may sleep, at most max_us. */
static int64_t wait_for_delayed_us(const struct hfd_loop *loop, int64_t max_us)
{
    int64_t left_us;

    if (loop->later_count == 0)
        return max_us;
    left_us = loop->later_us - hfd_loop_mono_us(loop) + 999; /* to whole milliseconds */
    return left_us < 0 ? 0 : left_us < max_us ? left_us : max_us;
}

/* Sends one message for the whole list: that of its first exchange. */
static void post_finished(struct hfd_sink *sink, struct hfd_job *list)
{
    struct hfd_loop *loop = H2O_STRUCT_FROM_MEMBER(struct hfd_loop, sink, sink);
    struct hfd_exchange *first = (struct hfd_exchange *)(void *)list;

    HFD_CHECK_OBJ(loop, HFD_LOOP_MAGIC);
    HFD_CHECK_OBJ(first, HFD_EXCHANGE_MAGIC);
    first->message = (h2o_multithread_message_t){.link = {.next = NULL}};
    hfd_loop_send(loop, &loop->finished, &first->message);
}

/* Receives finished jobs. */
static void on_finished(h2o_multithread_receiver_t *receiver, h2o_linklist_t *messages)
{
    (void)receiver;
    while (!h2o_linklist_is_empty(messages)) {
        struct hfd_exchange *first =
            H2O_STRUCT_FROM_MEMBER(struct hfd_exchange, message.link, messages->next);
        struct hfd_qnode *node = &first->job.node;

        h2o_linklist_unlink(&first->message.link);
        while (node != NULL) {
            struct hfd_job *job = (struct hfd_job *)(void *)node;

            node = node->next; /* done() may free the job, or submit it again */
            job->done(job);
        }
    }
}

/* ---- the end of connections ---- */

/*
 * Ends connections that are slow, idle, or in the way. Thread: loop, between two runs of it only.
 */

#define LINGER_MAX_US (5 * HFD_US_PER_S)
/* A connection that waits for less than this may bring a probe at any moment. */
#define FRESH_US (HFD_US_PER_S / 50)
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
    int64_t limit_us = conn->placeless ? 0 : conn->loop->server->limits.write_timeout_us;
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

/*
 * Ends slow readers, slow writers and idle connections. Once a second, between two runs of the loop
 * only.
 */
static void conn_sweep(struct hfd_loop *loop, int64_t now_us)
{
    h2o_linklist_t *at, *next;

    for (at = loop->conns.next; at != &loop->conns; at = next) {
        next = at->next;
        sweep_one(H2O_STRUCT_FROM_MEMBER(struct hfd_conn, link, at), now_us);
    }
}

/* Closes connections without a request in flight. Between two runs of the loop only. */
static void conn_close_idle(struct hfd_loop *loop, enum hfd_listener which)
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

static bool is_probe(const struct hfd_exchange *x)
{
    return x != NULL && x->match.route != NULL && hfd_route_is_probe(x->match.route);
}

/* Which connection makes room: the first of these that there is. */
enum room {
    ROOM_REFUSED, /* its refusal waits, or is on its way; on the main listener no other */
    ROOM_WAITS,   /* it waits for bytes of its client */
    ROOM_ANSWER,  /* its request is in progress, and is no probe */
    ROOM_LAST,
};

static enum room room_of(const struct hfd_conn *conn, int64_t now_us)
{
    switch (conn->state) {
    case HFD_CONN_REFUSED:
    case HFD_CONN_LINGER:
    case HFD_CONN_CLOSING:
        return ROOM_REFUSED;
    case HFD_CONN_BUSY:
        if (waits_refused(conn->exchange))
            return ROOM_REFUSED;
        return is_probe(conn->exchange) ? ROOM_LAST : ROOM_ANSWER;
    case HFD_CONN_HANDSHAKE:
    case HFD_CONN_HEAD:
    case HFD_CONN_BODY:
        break;
    }
    return now_us - conn->since_us >= FRESH_US ? ROOM_WAITS : ROOM_LAST;
}

/* Ends a connection whose place is taken. May free conn. */
static void end_crowded(struct hfd_conn *conn)
{
    if (conn->state == HFD_CONN_BUSY && waits_refused(conn->exchange)) {
        hfd_delayed_reply_answer_now(conn->exchange);
    } else if (conn->state == HFD_CONN_BUSY) {
        if (conn->exchange != NULL)
            hfd_exchange_cancel(conn->exchange);
        hfd_conn_cut(conn, "crowded");
    } else if (conn->state == HFD_CONN_REFUSED && conn->until_us != 0) {
        hfd_conn_refuse_now(conn);
    } else if (conn->state == HFD_CONN_REFUSED || conn->continuing) {
        hfd_conn_cut(conn, "crowded"); /* a write is under way */
    } else {
        hfd_conn_close(conn, "crowded");
    }
}

/*
 * Gives the place of a connection to the one that waits to be accepted, and ends it. Takes the
 * oldest one with a refusal. On the ops listener it takes otherwise one that waits for bytes, then
 * an answer that is no probe's, then any. It never takes the newest one. Between two runs of the
 * loop only.
 */
static void conn_make_room(struct hfd_loop_listener *listener, int64_t now_us)
{
    const enum room last = listener->which == HFD_LISTENER_OPS ? ROOM_LAST : ROOM_REFUSED;
    h2o_linklist_t *const conns = &listener->loop->conns;
    struct hfd_conn *newest = NULL, *found = NULL;
    enum room best = last;

    /* The newest connection is at the end of the list. */
    for (h2o_linklist_t *at = conns->prev; at != conns; at = at->prev) {
        struct hfd_conn *conn = H2O_STRUCT_FROM_MEMBER(struct hfd_conn, link, at);
        enum room room;

        if (conn->listener != listener || conn->placeless || conn->lent)
            continue;
        if (newest == NULL) {
            newest = conn;
            continue;
        }
        room = room_of(conn, now_us);
        if (room < best || (room == best && (found == NULL || conn->since_us <= found->since_us))) {
            best = room;
            found = conn;
        }
    }
    if (found == NULL)
        return;
    hfd_metric_add(HFD_METRIC_HTTP_REFUSED, HFD_LABELS("crowded"), 1);
    found->placeless = true;
    listener->on_closed(listener);
    end_crowded(found);
}

/* Ends all connections in any state. Between two runs of the loop only. */
static void conn_cut_all(struct hfd_loop *loop, const char *why)
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

#define ACCEPTS_MAX 16
#define OPS_CONNECTIONS_MAX 64
#define HANDSHAKES_MAX 256
#define HURRY_US (3 * HFD_US_PER_S)
#define SWEEP_US HFD_US_PER_S
/* How often a draining loop checks whether the other loops are done. */
#define OPS_DRAIN_US HFD_US_PER_S /* for probes under way when another server takes over */
#define DRAIN_LOOK_US (HFD_US_PER_S / 50)

/* ---- accepting ---- */

/* A connection on its way to its loop. */
struct accepted {
    h2o_multithread_message_t message;
    enum hfd_listener which;
    int fd;
    struct hfd_host_address peer;
};

static void pause_listener(struct hfd_loop_listener *l)
{
    atomic_store(&l->accepting, false);
    h2o_socket_read_stop(l->sock);
}

static bool is_waited_for(const struct hfd_loop_listener *l)
{
    struct pollfd p = {.fd = h2o_socket_get_fd(l->sock), .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

/* Opens a connection that has its place already. */
static void open_connection(struct hfd_loop_listener *l, const struct accepted *a)
{
    const int on = 1;

    (void)setsockopt(a->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* not for Unix sockets */
    hfd_conn_open(
        l,
        h2o_evloop_socket_create(l->loop->ctx.loop, a->fd, H2O_SOCKET_FLAG_IS_ACCEPTED_CONNECTION),
        &a->peer);
}

/* Returns the loop with the fewest connections; of equal ones this one. */
static struct hfd_loop_listener *emptiest(struct hfd_loop_listener *l)
{
    struct hfd_server *s = l->loop->server;
    struct hfd_loop_listener *found = l;

    for (unsigned i = 0; i < s->loop_count; i++) {
        struct hfd_loop_listener *other = &s->loops[i].listeners[l->which];

        if (atomic_load(&other->accepting) &&
            atomic_load(&other->connections) < atomic_load(&found->connections))
            found = other;
    }
    return found;
}

/*
 * Takes a place of another loop. That loop ends only when it is not accepting and has no connection
 * any more, so the place keeps it alive.
 */
static bool take_place(struct hfd_loop_listener *l)
{
    if (atomic_fetch_add(&l->connections, 1) < l->connections_max && atomic_load(&l->accepting))
        return true;
    atomic_fetch_sub(&l->connections, 1);
    return false;
}

/* Hands a connection to the loop that has the fewest. */
static void spread(struct hfd_loop_listener *l, const struct accepted *a)
{
    struct hfd_loop_listener *to = emptiest(l);
    struct accepted *message = to != l ? malloc(sizeof(*message)) : NULL;

    if (message != NULL && take_place(to)) {
        *message = *a;
        hfd_loop_send(to->loop, &to->loop->accepted, &message->message);
        return;
    }
    free(message);
    atomic_fetch_add(&l->connections, 1);
    open_connection(l, a);
}

/* Returns true, and pauses the listener, if too many handshakes of TLS are in progress. */
static bool is_shaking(struct hfd_loop_listener *l)
{
    if (l->handshakes < HANDSHAKES_MAX)
        return false;
    hfd_metric_add(HFD_METRIC_HTTP_REFUSED, HFD_LABELS("handshakes"), 1);
    pause_listener(l);
    l->hurried_until_us = hfd_loop_mono_us(l->loop) + HURRY_US;
    return true;
}

static void on_accepted(h2o_multithread_receiver_t *receiver, h2o_linklist_t *messages)
{
    struct hfd_loop *loop = H2O_STRUCT_FROM_MEMBER(struct hfd_loop, accepted, receiver);

    while (!h2o_linklist_is_empty(messages)) {
        struct accepted *a = H2O_STRUCT_FROM_MEMBER(struct accepted, message.link, messages->next);
        /* The list has no freed message: NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        struct hfd_loop_listener *l = &loop->listeners[a->which];

        h2o_linklist_unlink(&a->message.link);
        open_connection(l, a);
        free(a);
        if (atomic_load(&l->accepting))
            (void)is_shaking(l);
    }
}

static void on_accept(h2o_socket_t *sock, const char *err)
{
    struct hfd_loop_listener *l = sock->data;

    if (err != NULL)
        return;
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        struct sockaddr_storage from = {.ss_family = AF_UNSPEC};
        struct accepted a = {.which = l->which};
        socklen_t len = sizeof(from);

        if (hfd_listener_is_full(l)) {
            if (!is_waited_for(l))
                return;
            hfd_metric_add(HFD_METRIC_HTTP_REFUSED, HFD_LABELS("connections"), 1);
            pause_listener(l);
            l->crowded = l->loop->again = true;
            return;
        }
        if (is_shaking(l))
            return;
        a.fd = accept4(h2o_socket_get_fd(sock), (struct sockaddr *)(void *)&from, &len,
                       SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (a.fd < 0) {
            if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
                return;
            /*
             * Out of files or memory: pause, because the kernel would call again at once. The sweep
             * resumes.
             */
            HFD_LOG(HFD_LOG_WARN, "accept failed", HFD_LOG_CSTR("error", strerror(errno)));
            hfd_metric_add(HFD_METRIC_HTTP_REFUSED, HFD_LABELS("accept"), 1);
            pause_listener(l);
            return;
        }
        a.peer = hfd_host_address_of((const struct sockaddr *)(const void *)&from, len);
        spread(l, &a);
    }
}

static void resume_listener(struct hfd_loop_listener *l)
{
    if (l->sock == NULL || atomic_load(&l->accepting) || hfd_listener_is_full(l) ||
        l->handshakes >= HANDSHAKES_MAX)
        return;
    atomic_store(&l->accepting, true);
    h2o_socket_read_start(l->sock, on_accept);
}

static void on_closed(struct hfd_loop_listener *l)
{
    HFD_ASSERT(atomic_load(&l->connections) > 0);
    atomic_fetch_sub(&l->connections, 1);
    hfd_metric_add(HFD_METRIC_HTTP_CONNECTIONS, NULL, -1);
    resume_listener(l);
}

static void on_handshaked(struct hfd_loop_listener *l)
{
    HFD_ASSERT(l->handshakes > 0);
    l->handshakes--;
    resume_listener(l);
}

static hfd_rc listen_on(struct hfd_loop *loop, enum hfd_listener which, int64_t connections_max)
{
    struct hfd_loop_listener *l = &loop->listeners[which];
    int fd = fcntl(loop->server->fds[which], F_DUPFD_CLOEXEC, 0);

    if (fd < 0)
        return hfd_fail(&loop->start_err, HFD_IO, "copy a listening socket: %s", strerror(errno));
    l->loop = loop;
    l->which = which;
    l->is_unix = loop->server->paths[which] != NULL;
    l->connections_max = connections_max;
    l->on_closed = on_closed;
    l->on_handshaked = on_handshaked;
    l->sock = h2o_evloop_socket_create(loop->ctx.loop, fd, H2O_SOCKET_FLAG_DONT_READ);
    l->sock->data = l;
    return HFD_OK;
}

static void close_listener(struct hfd_loop_listener *l)
{
    if (l->sock == NULL)
        return;
    pause_listener(l);
    h2o_socket_close(l->sock);
    l->sock = NULL;
}

/* ---- one loop ---- */

static void on_wake(h2o_multithread_receiver_t *receiver, h2o_linklist_t *messages)
{
    (void)receiver;
    HFD_ASSERT(h2o_linklist_is_empty(messages)); /* wakes only, carries no messages */
}

static hfd_rc loop_open(struct hfd_loop *loop)
{
    struct hfd_server *s = loop->server;
    int64_t index = loop - s->loops, count = s->loop_count, max = s->connections_max;
    hfd_rc rc = HFD_OK;

    h2o_linklist_init_anchor(&loop->conns);
    h2o_linklist_init_anchor(&loop->rearm);
    h2o_linklist_init_anchor(&loop->later);
    h2o_linklist_init_anchor(&loop->waiters.list);
    loop->waiters.due_us = INT64_MAX;
    h2o_context_init(&loop->ctx, h2o_evloop_create(), &s->conf);
    loop->accept = (h2o_accept_ctx_t){.ctx = &loop->ctx, .hosts = s->conf.hosts};
    h2o_multithread_register_receiver(loop->ctx.queue, &loop->finished, on_finished);
    h2o_multithread_register_receiver(loop->ctx.queue, &loop->accepted, on_accepted);
    h2o_multithread_register_receiver(loop->ctx.queue, &loop->wake, on_wake);
    loop->sink.post = post_finished;
    loop->swept_us = hfd_loop_mono_us(loop);
    atomic_store(&loop->turned_us, loop->swept_us);
    if (s->app->store != NULL && !hfd_store_has_point_reads(s->app->store))
        rc = hfd_store_reader_open(s->app->store, &loop->reader, &loop->start_err);
    if (rc == HFD_OK && s->app->store != NULL)
        rc = hfd_watch_room_open(loop, &loop->watch, &loop->start_err);
    if (rc == HFD_OK && !s->app->ops_only)
        rc = listen_on(loop, HFD_LISTENER_MAIN, max / count + (index < max % count));
    if (rc == HFD_OK)
        rc = listen_on(loop, HFD_LISTENER_OPS, OPS_CONNECTIONS_MAX);
    /* From here on other loops hand over connections. */
    for (unsigned i = 0; rc == HFD_OK && i < HFD_LISTENER_COUNT; i++)
        resume_listener(&loop->listeners[i]);
    return rc;
}

/*
 * Closes the loop. No work may be in progress. Memory that h2o keeps per thread stays with the
 * thread.
 */
static void loop_close(struct hfd_loop *loop)
{
    h2o_evloop_t *evloop = loop->ctx.loop;

    for (unsigned i = 0; i < HFD_LISTENER_COUNT; i++)
        close_listener(&loop->listeners[i]);
    /*
     * Lets h2o forget closed sockets with a pending callback: h2o_evloop_destroy would close them
     * again.
     */
    (void)h2o_evloop_run(evloop, 0);
    if (loop->reader != NULL)
        hfd_store_reader_close(&loop->reader);
    hfd_guard_view_close(&loop->guard_view);
    hfd_watch_room_close(loop->watch);
    /* The last message has arrived, but its sender may still be in the queue. */
    while (atomic_load(&loop->senders) != 0)
        (void)sched_yield();
    h2o_multithread_unregister_receiver(loop->ctx.queue, &loop->finished);
    h2o_multithread_unregister_receiver(loop->ctx.queue, &loop->accepted);
    h2o_multithread_unregister_receiver(loop->ctx.queue, &loop->wake);
    h2o_context_dispose(&loop->ctx);
    h2o_evloop_destroy(evloop);
}

/* The listener that closes first, and whose connections are waited for. */
static enum hfd_listener drained(const struct hfd_loop *loop)
{
    return loop->server->app->ops_only ? HFD_LISTENER_OPS : HFD_LISTENER_MAIN;
}

static void begin_drain(struct hfd_loop *loop, int64_t now_us)
{
    const bool ops_only = loop->server->app->ops_only;

    loop->draining = true;
    loop->drain_until_us =
        now_us + (ops_only ? OPS_DRAIN_US : loop->server->limits.drain_timeout_us);
    close_listener(&loop->listeners[drained(loop)]);
    hfd_waiters_drain(loop);
    /*
     * Sends "Connection: close" from now on. h2o_context_request_shutdown would also start timers
     * of HTTP/2.
     */
    loop->ctx.shutdown_requested = 1;
}

/* Continues draining. Returns true if the loop may end. */
static bool go_on_draining(struct hfd_loop *loop, int64_t now_us)
{
    const enum hfd_listener l = drained(loop);

    conn_close_idle(loop, l);
    if (!loop->quiet && atomic_load(&loop->listeners[l].connections) == 0) {
        loop->quiet = true;
        atomic_fetch_sub(&loop->server->busy_loops, 1);
    }
    if (now_us >= loop->drain_until_us && !loop->quiet && !loop->late && l == HFD_LISTENER_MAIN) {
        loop->late = true;
        HFD_LOG(HFD_LOG_WARN, "http.drain_timeout is over: open connections are cut off",
                HFD_LOG_INT("connections",
                            atomic_load(&loop->listeners[HFD_LISTENER_MAIN].connections)));
    }
    if (atomic_load(&loop->server->busy_loops) == 0 || now_us >= loop->drain_until_us) {
        close_listener(&loop->listeners[HFD_LISTENER_OPS]);
        conn_cut_all(loop, "shutting down");
    }
    /* Every job comes back; its exchange must stay until then. So do connections on their way. */
    return h2o_linklist_is_empty(&loop->conns) && loop->exchanges == 0 &&
           (loop->watch == NULL || !hfd_watch_room_is_busy(loop->watch)) &&
           atomic_load(&loop->listeners[HFD_LISTENER_MAIN].connections) == 0 &&
           atomic_load(&loop->listeners[HFD_LISTENER_OPS].connections) == 0;
}

static void sweep(struct hfd_loop *loop, int64_t now_us)
{
    loop->swept_us = now_us;
    atomic_store(&loop->turned_us, now_us);
    conn_sweep(loop, now_us);
    if (loop->watch != NULL)
        hfd_watch_room_sweep(loop->watch, now_us);
    hfd_waiters_sweep(loop, now_us);
    for (unsigned i = 0; i < HFD_LISTENER_COUNT; i++)
        resume_listener(&loop->listeners[i]);
}

/*
 * The next probe always finds a place on the ops listener. On the main one a refusal makes room;
 * without one the next connection waits.
 */
static void make_room(struct hfd_loop *loop, int64_t now_us)
{
    for (unsigned i = 0; i < HFD_LISTENER_COUNT; i++) {
        struct hfd_loop_listener *l = &loop->listeners[i];

        for (int n = 0; l->crowded && n < ACCEPTS_MAX; n++) {
            l->crowded = false;
            if (hfd_listener_is_full(l))
                conn_make_room(l, now_us);
            if (atomic_load(&l->accepting))
                on_accept(l->sock, NULL);
        }
    }
}

static void loop_run(struct hfd_loop *loop)
{
    for (;;) {
        int64_t now_us, wait_us = loop->again ? 0 : loop->draining ? DRAIN_LOOK_US : SWEEP_US;

        wait_us = wait_for_delayed_us(loop, wait_us);
        if (!h2o_linklist_is_empty(&loop->waiters.list)) {
            now_us = hfd_loop_mono_us(loop);
            wait_us = hfd_watch_room_wait_us(loop->watch, now_us, wait_us);
            wait_us = hfd_waiters_wait_us(loop, now_us, wait_us);
        }
        (void)h2o_evloop_run(loop->ctx.loop, (int32_t)(wait_us / 1000));
        loop->again = false;
        now_us = hfd_loop_mono_us(loop);
        run_delayed(loop, now_us);
        if (loop->watch != NULL)
            hfd_watch_room_run(loop->watch, now_us);
        hfd_waiters_run(loop, now_us);
        hfd_conn_rearm_all(loop);
        make_room(loop, now_us);
        if (now_us - loop->swept_us >= SWEEP_US)
            sweep(loop, now_us);
        if (!loop->draining && atomic_load(&loop->server->draining))
            begin_drain(loop, now_us);
        if (loop->draining && go_on_draining(loop, now_us))
            return;
    }
}

struct loop_start {
    struct hfd_loop *loop;
    sem_t up;
};

static void *loop_main(void *arg)
{
    struct loop_start *start = arg;
    struct hfd_loop *loop = start->loop;
    bool ready;

    ready = loop_open(loop) == HFD_OK;
    loop->ready = ready;
    (void)sem_post(&start->up); /* start is invalid from here on */
    if (ready)
        loop_run(loop);
    loop_close(loop);
    return NULL;
}

hfd_rc hfd_loop_start(struct hfd_loop *loop, struct hfd_err *err)
{
    struct loop_start start = {.loop = loop};
    hfd_rc rc;

    if (sem_init(&start.up, 0, 0) != 0)
        return hfd_fail(err, HFD_IO, "start a loop thread: %s", strerror(errno));
    rc = hfd_thread_start(&(struct hfd_thread){"hfd-loop", "loop thread", loop_main, &start},
                          &loop->thread, err);
    if (rc != HFD_OK) {
        (void)sem_destroy(&start.up);
        return rc;
    }
    while (sem_wait(&start.up) != 0)
        continue;
    (void)sem_destroy(&start.up);
    if (loop->ready) {
        loop->server->loops_started++;
        return HFD_OK;
    }
    (void)pthread_join(loop->thread, NULL);
    return hfd_fail(err, loop->start_err.rc, "start a loop thread: %s", loop->start_err.msg);
}
