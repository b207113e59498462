/* See loop.h. */
#include "handlers/http/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <semaphore.h>

#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/base/thread.h"
#include "handlers/http/door.h"
#include "handlers/http/door_sweep.h"
#include "handlers/http/exchange_int.h"
#include "handlers/http/later.h"

#define ACCEPTS_MAX 16
#define OPS_CONNECTIONS_MAX 64
#define HANDSHAKES_MAX 256
#define HURRY_US (3 * HFD_US_PER_S)
#define SWEEP_US HFD_US_PER_S
/* How often a draining loop checks whether the other loops are done. */
#define OPS_DRAIN_US HFD_US_PER_S /* for probes under way when another server takes over */
#define DRAIN_LOOK_US (HFD_US_PER_S / 50)

/* ---- accepting ---- */

static void pause_listener(struct hfd_loop_listener *l)
{
    l->paused = true;
    h2o_socket_read_stop(l->sock);
}

static void on_accept(h2o_socket_t *sock, const char *err)
{
    struct hfd_loop_listener *l = sock->data;

    if (err != NULL)
        return;
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        h2o_socket_t *accepted;

        if (l->connections >= l->connections_max) {
            hfd_metric_add(HFD_METRIC_HTTP_REFUSED, HFD_LABELS("connections"), 1);
            pause_listener(l);
            l->crowded = l->which == HFD_LISTENER_OPS;
            l->loop->again = l->loop->again || l->crowded;
            return;
        }
        if (l->handshakes >= HANDSHAKES_MAX) {
            hfd_metric_add(HFD_METRIC_HTTP_REFUSED, HFD_LABELS("handshakes"), 1);
            pause_listener(l);
            l->hurried_until_us = hfd_loop_mono_us(l->loop) + HURRY_US;
            return;
        }
        errno = 0;
        accepted = h2o_evloop_socket_accept(sock);
        if (accepted == NULL) {
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
        hfd_conn_open(l, accepted);
    }
}

static void resume_listener(struct hfd_loop_listener *l)
{
    if (!l->paused || l->sock == NULL || l->connections >= l->connections_max ||
        l->handshakes >= HANDSHAKES_MAX)
        return;
    l->paused = false;
    h2o_socket_read_start(l->sock, on_accept);
}

static void on_closed(struct hfd_loop_listener *l)
{
    HFD_ASSERT(l->connections > 0);
    l->connections--;
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
    *l = (struct hfd_loop_listener){.loop = loop,
                                    .which = which,
                                    .is_unix = loop->server->paths[which] != NULL,
                                    .connections_max = connections_max,
                                    .on_closed = on_closed,
                                    .on_handshaked = on_handshaked};
    l->sock = h2o_evloop_socket_create(loop->ctx.loop, fd, H2O_SOCKET_FLAG_DONT_READ);
    l->sock->data = l;
    h2o_socket_read_start(l->sock, on_accept);
    return HFD_OK;
}

static void close_listener(struct hfd_loop_listener *l)
{
    if (l->sock == NULL)
        return;
    h2o_socket_read_stop(l->sock);
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
    h2o_context_init(&loop->ctx, h2o_evloop_create(), &s->conf);
    loop->accept = (h2o_accept_ctx_t){.ctx = &loop->ctx, .hosts = s->conf.hosts};
    h2o_multithread_register_receiver(loop->ctx.queue, &loop->finished, hfd_exchange_on_finished);
    h2o_multithread_register_receiver(loop->ctx.queue, &loop->wake, on_wake);
    loop->sink.post = hfd_exchange_post;
    loop->swept_us = hfd_loop_mono_us(loop);
    atomic_store(&loop->turned_us, loop->swept_us);
    if (s->app->store != NULL && !hfd_store_has_points(s->app->store))
        rc = hfd_store_reader_open(s->app->store, &loop->reader, &loop->start_err);
    if (rc == HFD_OK && !s->app->ops_only)
        rc = listen_on(loop, HFD_LISTENER_MAIN, max / count + (index < max % count));
    if (rc == HFD_OK)
        rc = listen_on(loop, HFD_LISTENER_OPS, OPS_CONNECTIONS_MAX);
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
    /* The last message has arrived, but its sender may still be in the queue. */
    while (atomic_load(&loop->senders) != 0)
        (void)sched_yield();
    h2o_multithread_unregister_receiver(loop->ctx.queue, &loop->finished);
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

    hfd_conn_close_idle(loop, l);
    if (!loop->quiet && loop->listeners[l].connections == 0) {
        loop->quiet = true;
        atomic_fetch_sub(&loop->server->busy_loops, 1);
    }
    if (now_us >= loop->drain_until_us && !loop->quiet && !loop->late && l == HFD_LISTENER_MAIN) {
        loop->late = true;
        HFD_LOG(HFD_LOG_WARN, "http.drain_timeout is over: open connections are cut off",
                HFD_LOG_INT("connections", loop->listeners[HFD_LISTENER_MAIN].connections));
    }
    if (atomic_load(&loop->server->busy_loops) == 0 || now_us >= loop->drain_until_us) {
        close_listener(&loop->listeners[HFD_LISTENER_OPS]);
        hfd_conn_cut_all(loop, "shutting down");
    }
    /* Every job comes back; its exchange must stay until then. */
    return h2o_linklist_is_empty(&loop->conns) && loop->exchanges == 0;
}

static void sweep(struct hfd_loop *loop, int64_t now_us)
{
    loop->swept_us = now_us;
    atomic_store(&loop->turned_us, now_us);
    hfd_conn_sweep(loop, now_us);
    for (unsigned i = 0; i < HFD_LISTENER_COUNT; i++)
        resume_listener(&loop->listeners[i]);
}

/* The next probe always finds a place: the connection that waits longest makes room. */
static void make_room(struct hfd_loop *loop)
{
    struct hfd_loop_listener *l = &loop->listeners[HFD_LISTENER_OPS];

    if (!l->crowded)
        return;
    l->crowded = false;
    hfd_conn_close_longest(loop, HFD_LISTENER_OPS);
}

static void loop_run(struct hfd_loop *loop)
{
    for (;;) {
        int64_t now_us, wait_us = loop->again ? 0 : loop->draining ? DRAIN_LOOK_US : SWEEP_US;

        wait_us = hfd_later_wait_us(loop, wait_us);
        (void)h2o_evloop_run(loop->ctx.loop, (int32_t)(wait_us / 1000));
        loop->again = false;
        now_us = hfd_loop_mono_us(loop);
        hfd_later_run(loop, now_us);
        hfd_conn_rearm_all(loop);
        make_room(loop);
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
