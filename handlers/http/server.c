/*
 * Loops and listeners. Every loop thread has its own event loop, h2o context, store reader and
 * copies of the two listening sockets, and shares nothing but counters. Connections are counted per
 * loop, so that a full one leaves the next to the others, or in the kernel's queue.
 *
 * Stopping: the main listener closes, idle connections close, requests under way get their answer
 * with "Connection: close", until all is quiet or the time is over. The ops listener answers to the
 * end, and says that it is the end.
 */
#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/base/thread.h"
#include "handlers/http/count.h"
#include "handlers/http/http_int.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCEPTS_MAX 16
#define OPS_CONNECTIONS_MAX 64
#define SWEEP_US HFD_US_PER_S
/* How often a loop that drains looks whether the others are done. */
#define DRAIN_LOOK_US (HFD_US_PER_S / 50)
#define ARENA_SLACK_BYTES                                                                          \
    ((size_t)64                                                                                    \
     << 20) /* a ceiling, not a reserve: a resource with every adapter's longest words fits */
/* Files beside connections: store, listeners, loops. */
#define FILES_RESERVE 256

/* ---- listening sockets ---- */

struct endpoint {
    struct sockaddr_storage addr;
    socklen_t len;
};

/*
 * What the settings have let through: HOST:PORT. @return whether the host is an IP address, or
 * localhost
 */
static bool parse_address(hfd_slice text, struct endpoint *out)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)&out->addr;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)&out->addr;
    const char *colon = text.len != 0 ? memrchr(text.p, ':', text.len) : NULL;
    char host[64];
    hfd_slice name;
    int64_t port;

    *out = (struct endpoint){0};
    if (colon == NULL)
        return false;
    name = (hfd_slice){text.p, (size_t)(colon - text.p)};
    if (hfd_parse_i64((hfd_slice){colon + 1, text.len - name.len - 1}, 0, 65535, &port, NULL) !=
        HFD_OK)
        return false;
    if (name.len > 2 && name.p[0] == '[' && name.p[name.len - 1] == ']')
        name = (hfd_slice){name.p + 1, name.len - 2};
    if (name.len >= sizeof(host))
        return false;
    memcpy(host, name.p, name.len);
    host[name.len] = '\0';
    if (strcmp(host, "localhost") == 0)
        memcpy(host, "127.0.0.1", sizeof("127.0.0.1"));
    if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)port);
        out->len = sizeof(*v4);
        return true;
    }
    if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)port);
        out->len = sizeof(*v6);
        return true;
    }
    return false;
}

static bool is_loopback(const struct endpoint *e)
{
    if (e->addr.ss_family == AF_INET)
        return (ntohl(((const struct sockaddr_in *)(const void *)&e->addr)->sin_addr.s_addr) >>
                24) == 127;
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)&e->addr)->sin6_addr);
}

static int port_in(const struct endpoint *e)
{
    if (e->addr.ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)(const void *)&e->addr)->sin_port);
    return ntohs(((const struct sockaddr_in6 *)(const void *)&e->addr)->sin6_port);
}

static bool is_same(const struct endpoint *a, const struct endpoint *b)
{
    if (a->addr.ss_family != b->addr.ss_family || port_in(a) != port_in(b))
        return false;
    if (a->addr.ss_family == AF_INET)
        return ((const struct sockaddr_in *)(const void *)&a->addr)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)(const void *)&b->addr)->sin_addr.s_addr;
    return IN6_ARE_ADDR_EQUAL(&((const struct sockaddr_in6 *)(const void *)&a->addr)->sin6_addr,
                              &((const struct sockaddr_in6 *)(const void *)&b->addr)->sin6_addr);
}

static int port_of(int fd)
{
    struct endpoint e = {.len = sizeof(e.addr)};

    return getsockname(fd, (struct sockaddr *)(void *)&e.addr, &e.len) == 0 ? port_in(&e) : 0;
}

static hfd_rc check_address(const struct hfd_settings *s, enum hfd_setting which, hfd_slice address,
                            struct endpoint *out, struct hfd_err *err)
{
    if (!parse_address(address, out))
        return hfd_settings_refuse(s, which, err,
                                   "expected an IP address or localhost, got \"%.*s\"",
                                   HFD_SLICE_FMT(address));
    if (!is_loopback(out))
        return hfd_settings_refuse(s, which, err,
                                   "%.*s is not a loopback address; there is no authentication, so "
                                   "only 127.0.0.0/8 and ::1 are served",
                                   HFD_SLICE_FMT(address));
    return HFD_OK;
}

static hfd_rc check_addresses(const struct hfd_settings *s, struct endpoint *main_one,
                              struct endpoint *ops_one, struct hfd_err *err)
{
    hfd_rc rc = check_address(s, HFD_SETTING_listen, s->listen, main_one, err);

    if (rc == HFD_OK)
        rc = check_address(s, HFD_SETTING_ops_listen, s->ops_listen, ops_one, err);
    if (rc == HFD_OK && port_in(main_one) != 0 && is_same(main_one, ops_one))
        rc = hfd_settings_refuse(
            s,
            hfd_settings_is_set(s, HFD_SETTING_ops_listen) ? HFD_SETTING_ops_listen
                                                           : HFD_SETTING_listen,
            err,
            "expected one address for listen and another for ops_listen, got \"%.*s\" for both",
            HFD_SLICE_FMT(s->ops_listen));
    return rc;
}

hfd_rc hfd_server_check(const struct hfd_settings *settings, struct hfd_err *err)
{
    struct endpoint main_one, ops_one;

    return check_addresses(settings, &main_one, &ops_one, err);
}

static hfd_rc open_listener(const struct endpoint *e, const struct hfd_settings *s,
                            enum hfd_listener which, int *fd_out, struct hfd_err *err)
{
    const char *key = which == HFD_LISTENER_MAIN ? "listen" : "ops_listen";
    const hfd_slice address = which == HFD_LISTENER_MAIN ? s->listen : s->ops_listen,
                    given = hfd_settings_origin(s, key);
    int on = 1, fd;
    hfd_rc rc;

    *fd_out = -1;
    fd = socket(e->addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return hfd_fail_field(err, HFD_IO, key, "open a socket for %.*s: %s",
                              HFD_SLICE_FMT(address), strerror(errno));
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (const struct sockaddr *)(const void *)&e->addr, e->len) != 0 ||
        listen(fd, SOMAXCONN) != 0) {
        rc =
            hfd_fail_field(err, HFD_IO, key, "%.*s%s%s: listen on %.*s: %s", HFD_SLICE_FMT(given),
                           given.len > 0 ? ": " : "", key, HFD_SLICE_FMT(address), strerror(errno));
        (void)close(fd);
        return rc;
    }
    *fd_out = fd;
    return HFD_OK;
}

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
            return;
        }
        errno = 0;
        accepted = h2o_evloop_socket_accept(sock);
        if (accepted == NULL) {
            if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
                return;
            /*
             * Out of files or memory: the kernel would call at once again, so the sweep does, in a
             * second.
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
    if (!l->paused || l->sock == NULL || l->connections >= l->connections_max)
        return;
    l->paused = false;
    h2o_socket_read_start(l->sock, on_accept);
}

void hfd_loop_connection_closed(struct hfd_loop_listener *l)
{
    HFD_ASSERT(l->connections > 0);
    l->connections--;
    hfd_metric_add(HFD_METRIC_HTTP_CONNECTIONS, NULL, -1);
    resume_listener(l);
}

static hfd_rc listen_on(struct hfd_loop *loop, enum hfd_listener which, int64_t connections_max)
{
    struct hfd_loop_listener *l = &loop->listeners[which];
    int fd = fcntl(loop->server->fds[which], F_DUPFD_CLOEXEC, 0);

    if (fd < 0)
        return hfd_fail(&loop->start_err, HFD_IO, "copy a listening socket: %s", strerror(errno));
    *l = (struct hfd_loop_listener){
        .loop = loop, .which = which, .connections_max = connections_max};
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
    HFD_ASSERT(h2o_linklist_is_empty(messages)); /* only ever woken, never told */
}

static hfd_rc loop_open(struct hfd_loop *loop)
{
    struct hfd_server *s = loop->server;
    int64_t index = loop - s->loops, count = s->loop_count, max = s->connections_max;
    hfd_rc rc = HFD_OK;

    h2o_linklist_init_anchor(&loop->conns);
    h2o_linklist_init_anchor(&loop->rearm);
    h2o_context_init(&loop->ctx, h2o_evloop_create(), &s->conf);
    loop->accept = (h2o_accept_ctx_t){.ctx = &loop->ctx, .hosts = s->conf.hosts};
    h2o_multithread_register_receiver(loop->ctx.queue, &loop->finished, hfd_exchange_on_finished);
    h2o_multithread_register_receiver(loop->ctx.queue, &loop->wake, on_wake);
    loop->sink.post = hfd_exchange_post;
    loop->swept_us = hfd_loop_mono_us(loop);
    if (s->app->store != NULL)
        rc = hfd_store_reader_open(s->app->store, &loop->reader, &loop->start_err);
    if (rc == HFD_OK)
        rc = listen_on(loop, HFD_LISTENER_MAIN, max / count + (index < max % count));
    if (rc == HFD_OK)
        rc = listen_on(loop, HFD_LISTENER_OPS, OPS_CONNECTIONS_MAX);
    return rc;
}

void hfd_loop_send(struct hfd_loop *loop, h2o_multithread_receiver_t *receiver,
                   h2o_multithread_message_t *message)
{
    atomic_fetch_add(&loop->senders, 1);
    h2o_multithread_send_message(receiver, message);
    atomic_fetch_sub(&loop->senders, 1); /* the last touch */
}

/* Nothing may be under way any more. What h2o keeps per thread for reuse stays with the thread. */
static void loop_close(struct hfd_loop *loop)
{
    h2o_evloop_t *evloop = loop->ctx.loop;

    for (unsigned i = 0; i < HFD_LISTENER_COUNT; i++)
        close_listener(&loop->listeners[i]);
    /*
     * Lets h2o forget what was closed with a callback pending: h2o_evloop_destroy would close it
     * again.
     */
    (void)h2o_evloop_run(evloop, 0);
    if (loop->reader != NULL)
        hfd_store_reader_close(&loop->reader);
    /* The last message has arrived, but its sender may not have left the queue yet. */
    while (atomic_load(&loop->senders) != 0)
        (void)sched_yield();
    h2o_multithread_unregister_receiver(loop->ctx.queue, &loop->finished);
    h2o_multithread_unregister_receiver(loop->ctx.queue, &loop->wake);
    h2o_context_dispose(&loop->ctx);
    h2o_evloop_destroy(evloop);
}

static void begin_drain(struct hfd_loop *loop, int64_t now_us)
{
    loop->draining = true;
    loop->drain_until_us = now_us + loop->server->limits.drain_timeout_us;
    close_listener(&loop->listeners[HFD_LISTENER_MAIN]);
    /*
     * "Connection: close" on what follows. h2o_context_request_shutdown would start HTTP/2's timers
     * as well, and leave them to us.
     */
    loop->ctx.shutdown_requested = 1;
}

/* @return whether the loop may end */
static bool go_on_draining(struct hfd_loop *loop, int64_t now_us)
{
    hfd_conn_close_idle(loop, HFD_LISTENER_MAIN);
    if (!loop->quiet && loop->listeners[HFD_LISTENER_MAIN].connections == 0) {
        loop->quiet = true;
        atomic_fetch_sub(&loop->server->busy_loops, 1);
    }
    if (now_us >= loop->drain_until_us && !loop->quiet && !loop->late) {
        loop->late = true;
        HFD_LOG(HFD_LOG_WARN, "http.drain_timeout is over: open connections are cut off",
                HFD_LOG_INT("connections", loop->listeners[HFD_LISTENER_MAIN].connections));
    }
    if (atomic_load(&loop->server->busy_loops) == 0 || now_us >= loop->drain_until_us) {
        close_listener(&loop->listeners[HFD_LISTENER_OPS]);
        hfd_conn_cut_all(loop, "shutting down");
    }
    /* A job that is out comes back in any case; until then its exchange must stay. */
    return h2o_linklist_is_empty(&loop->conns) && loop->exchanges == 0;
}

static void sweep(struct hfd_loop *loop, int64_t now_us)
{
    loop->swept_us = now_us;
    hfd_conn_sweep(loop, now_us);
    for (unsigned i = 0; i < HFD_LISTENER_COUNT; i++)
        resume_listener(&loop->listeners[i]);
}

static void loop_run(struct hfd_loop *loop)
{
    for (;;) {
        int64_t now_us, wait_us = loop->again ? 0 : loop->draining ? DRAIN_LOOK_US : SWEEP_US;

        (void)h2o_evloop_run(loop->ctx.loop, (int32_t)(wait_us / 1000));
        loop->again = false;
        hfd_conn_rearm_all(loop);
        now_us = hfd_loop_mono_us(loop);
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
    (void)sem_post(&start->up); /* start is gone from here on */
    if (ready)
        loop_run(loop);
    loop_close(loop);
    return NULL;
}

static hfd_rc loop_start(struct hfd_loop *loop, struct hfd_err *err)
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

/* ---- the server ---- */

static unsigned loop_count(const struct hfd_settings *settings)
{
    int64_t n = settings->http_threads;
    cpu_set_t cpus;

    if (n == 0)
        n = sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    /* A loop without a place for a connection would be of no use. */
    return (unsigned)(n < settings->http_connections_max ? n : settings->http_connections_max);
}

/*
 * Connections are files; the soft limit is often lower than what the settings allow. Where the hard
 * one is as well, there are fewer places: all files in the hands of clients would leave none for
 * the ops listener and the store.
 * @return the connections that the main listener may have
 */
static int64_t connections_max(const struct hfd_server *s)
{
    const int64_t wanted = s->app->settings->http_connections_max;
    const rlim_t files = (rlim_t)wanted + FILES_RESERVE;
    struct rlimit limit;
    rlim_t allowed, most;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= files)
        return wanted;
    allowed = limit.rlim_cur;
    limit.rlim_cur = files < limit.rlim_max ? files : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
        allowed = limit.rlim_cur;
    if (allowed >= files)
        return wanted;
    most = allowed - allowed / 4 > FILES_RESERVE ? allowed - FILES_RESERVE : allowed / 4;
    if (most < s->loop_count)
        most = s->loop_count;
    if (most > (rlim_t)wanted)
        most = (rlim_t)wanted;
    HFD_LOG(
        HFD_LOG_WARN,
        "fewer open files are allowed than http.connections_max needs: fewer connections are taken",
        HFD_LOG_INT("allowed", allowed), HFD_LOG_INT("needed", files),
        HFD_LOG_INT("connections", most));
    return (int64_t)most;
}

static void configure(struct hfd_server *s)
{
    const struct hfd_settings *settings = s->app->settings;
    h2o_hostconf_t *host;

    s->limits = (struct hfd_http_limits){
        .body_max_bytes = (uint64_t)settings->http_body_max_bytes,
        .arena_max_bytes = (size_t)settings->http_body_max_bytes * 4 + ARENA_SLACK_BYTES,
        .in_flight_max = settings->http_in_flight_max,
        .read_timeout_us = settings->http_read_timeout_us,
        .write_timeout_us = settings->http_write_timeout_us,
        .drain_timeout_us = settings->http_drain_timeout_us,
    };
    h2o_config_init(&s->conf);
    s->conf.server_name = h2o_iovec_init(HFD_HTTP_SERVER_NAME, sizeof(HFD_HTTP_SERVER_NAME) - 1);
    s->conf.http1.upgrade_to_http2 = 0; /* DESIGN 10.9 */
    /* The door enforces the limits on size and time; h2o's stand behind it, out of its way. */
    s->conf.max_request_entity_size = (size_t)settings->http_body_max_bytes * 2;
    s->conf.http1.req_timeout = (uint64_t)(3 * settings->http_read_timeout_us / 1000 + 10000);
    host =
        h2o_config_register_host(&s->conf, h2o_iovec_init("default", sizeof("default") - 1), 65535);
    h2o_create_handler(h2o_config_register_path(host, "/", 0), sizeof(h2o_handler_t))->on_req =
        hfd_exchange_on_req;
    h2o_create_handler(&host->fallback_path, sizeof(h2o_handler_t))->on_req = hfd_exchange_on_req;
}

hfd_rc hfd_server_open(const struct hfd_app *app, struct hfd_server **out, struct hfd_err *err)
{
    const struct hfd_route *routes = app->routes != NULL ? app->routes : hfd_routes;
    const size_t route_count = app->routes != NULL ? app->route_count : hfd_route_count;
    struct endpoint main_one, ops_one;
    struct hfd_server *s = calloc(1, sizeof(*s));
    hfd_rc rc;

    *out = NULL;
    if (s == NULL)
        return hfd_fail(err, HFD_NOMEM, "set up the server");
    s->app = app;
    s->fds[HFD_LISTENER_MAIN] = s->fds[HFD_LISTENER_OPS] = -1;
    s->loop_count = loop_count(app->settings);
    configure(s);
    s->loops = calloc(s->loop_count, sizeof(s->loops[0]));
    if (s->loops == NULL) {
        rc = hfd_fail(err, HFD_NOMEM, "set up the server");
        goto out;
    }
    for (unsigned i = 0; i < s->loop_count; i++) {
        s->loops[i].magic = HFD_LOOP_MAGIC;
        s->loops[i].server = s;
        s->loops[i].counter = hfd_counter_new(routes, route_count);
        if (s->loops[i].counter == NULL) {
            rc = hfd_fail(err, HFD_NOMEM, "set up the server");
            goto out;
        }
    }
    s->drivers[0] = app->settings->path_cluster;
    s->drivers[1] = app->settings->path_nodepool;
    rc = hfd_router_new(routes, route_count, s->drivers, 2, &s->router, err);
    if (rc == HFD_OK)
        rc = check_addresses(app->settings, &main_one, &ops_one, err);
    if (rc == HFD_OK)
        rc = open_listener(&main_one, app->settings, HFD_LISTENER_MAIN, &s->fds[HFD_LISTENER_MAIN],
                           err);
    if (rc == HFD_OK)
        rc = open_listener(&ops_one, app->settings, HFD_LISTENER_OPS, &s->fds[HFD_LISTENER_OPS],
                           err);
    if (rc != HFD_OK)
        goto out;
    s->ports[HFD_LISTENER_MAIN] = port_of(s->fds[HFD_LISTENER_MAIN]);
    s->ports[HFD_LISTENER_OPS] = port_of(s->fds[HFD_LISTENER_OPS]);
    s->connections_max = connections_max(s);
    *out = s;
    s = NULL;
out:
    hfd_server_free(&s);
    return rc;
}

int hfd_server_port(const struct hfd_server *s, enum hfd_listener l)
{
    return s->ports[l];
}

hfd_rc hfd_server_start(struct hfd_server *s, struct hfd_err *err)
{
    for (unsigned i = 0; i < s->loop_count; i++) {
        hfd_rc rc = loop_start(&s->loops[i], err);

        if (rc != HFD_OK) {
            hfd_server_stop(s);
            return rc;
        }
    }
    return HFD_OK;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

void hfd_server_stop(struct hfd_server *s)
{
    /*
     * A loop that sees the end by itself must not be gone when it is woken: the wakers are counted
     * as senders beforehand.
     */
    for (unsigned i = 0; i < s->loops_started; i++)
        atomic_fetch_add(&s->loops[i].senders, 1);
    atomic_store(&s->busy_loops, s->loops_started);
    atomic_store(&s->draining, true);
    close_fd(&s->fds[HFD_LISTENER_MAIN]);
    for (unsigned i = 0; i < s->loops_started; i++) {
        hfd_loop_send(&s->loops[i], &s->loops[i].wake, NULL);
        atomic_fetch_sub(&s->loops[i].senders, 1);
    }
    for (unsigned i = 0; i < s->loops_started; i++)
        (void)pthread_join(s->loops[i].thread, NULL);
    s->loops_started = 0;
    close_fd(&s->fds[HFD_LISTENER_OPS]);
}

void hfd_server_free(struct hfd_server **server)
{
    struct hfd_server *s = *server;

    *server = NULL;
    if (s == NULL)
        return;
    HFD_ASSERT(s->loops_started == 0);
    close_fd(&s->fds[HFD_LISTENER_MAIN]);
    close_fd(&s->fds[HFD_LISTENER_OPS]);
    hfd_router_free(s->router);
    h2o_config_dispose(&s->conf);
    for (unsigned i = 0; s->loops != NULL && i < s->loop_count; i++)
        hfd_counter_free(s->loops[i].counter);
    free(s->loops);
    free(s);
}
