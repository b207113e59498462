/*
 * The server: its listeners and loop threads. Every loop has its own event loop, h2o context, store
 * reader and copies of the two listening sockets; loops share counters only. Connections are
 * counted per loop: a full loop leaves the next one to the others or to the kernel's queue.
 *
 * Stopping: the main listener and idle connections close. Requests in progress get their answer
 * with "Connection: close", until none is left or the drain timeout passes. The ops listener
 * answers until the end.
 */
#include "handlers/http/server.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include "driver/base/check.h"
#include "driver/base/log.h"
#include "handlers/http/address.h"
#include "handlers/http/count.h"
#include "handlers/http/routes.h"
#include "handlers/http/exchange_int.h"

/* A ceiling, not a reserve: a resource with the longest texts of every adapter fits. */
#define ARENA_SLACK_BYTES ((size_t)64 << 20)
/* Files beside connections: store, listeners, loops. */
#define FILES_RESERVE 256

hfd_rc hfd_server_check_open(const struct hfd_settings *settings, bool authenticated,
                             struct hfd_err *err)
{
    return hfd_addresses_check_open(settings, authenticated, err);
}

hfd_rc hfd_server_check(const struct hfd_settings *settings, struct hfd_err *err)
{
    struct hfd_address addresses[HFD_LISTENER_COUNT];

    return hfd_addresses_check(settings, addresses, err);
}

static unsigned loop_count(const struct hfd_app *app)
{
    const struct hfd_settings *settings = app->settings;
    int64_t n = app->ops_only ? 1 : settings->http_threads;
    cpu_set_t cpus;

    if (n == 0)
        n = sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    /* A loop needs room for at least one connection. */
    return (unsigned)(n < settings->http_connections_max ? n : settings->http_connections_max);
}

/*
 * Raises the soft limit of open files to what the connections need. If the hard limit is lower,
 * allows fewer connections, so that the ops listener and the store always have files.
 * @return the limit of connections of the main listener
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
    HFD_LOG(HFD_LOG_WARN,
            "open file limit too low for http.connections_max: fewer connections are accepted",
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
        .idle_timeout_us = settings->http_idle_timeout_us,
        .write_timeout_us = settings->http_write_timeout_us,
        .drain_timeout_us = settings->http_drain_timeout_us,
    };
    s->memory.max_bytes = settings->http_memory_max_bytes;
    h2o_config_init(&s->conf);
    s->conf.server_name = h2o_iovec_init(HFD_HTTP_SERVER_NAME, sizeof(HFD_HTTP_SERVER_NAME) - 1);
    s->conf.http1.upgrade_to_http2 = 0; /* driver/README.md, decision 9 */
    /* The door enforces size and time limits first; h2o's are larger. */
    s->conf.max_request_entity_size = (size_t)settings->http_body_max_bytes * 2;
    s->conf.http1.req_timeout =
        (uint64_t)((3 * settings->http_read_timeout_us + settings->http_idle_timeout_us) / 1000 +
                   10000);
    host =
        h2o_config_register_host(&s->conf, h2o_iovec_init("default", sizeof("default") - 1), 65535);
    h2o_create_handler(h2o_config_register_path(host, "/", 0), sizeof(h2o_handler_t))->on_req =
        hfd_exchange_on_req;
    h2o_create_handler(&host->fallback_path, sizeof(h2o_handler_t))->on_req = hfd_exchange_on_req;
}

/* Takes the ops listener of another server, which goes on with it. No connection is refused. */
static hfd_rc take_listener(struct hfd_server *s, struct hfd_server *from, struct hfd_err *err)
{
    s->fds[HFD_LISTENER_OPS] = fcntl(from->fds[HFD_LISTENER_OPS], F_DUPFD_CLOEXEC, 0);
    if (s->fds[HFD_LISTENER_OPS] < 0)
        return hfd_fail(err, HFD_IO, "copy a listening socket: %s", strerror(errno));
    s->paths[HFD_LISTENER_OPS] = from->paths[HFD_LISTENER_OPS];
    from->paths[HFD_LISTENER_OPS] = NULL;
    return HFD_OK;
}

static hfd_rc open_listener(struct hfd_server *s, enum hfd_listener l,
                            const struct hfd_address *address, struct hfd_err *err)
{
    hfd_rc rc;

    s->local[l] = address->local;
    if (l == HFD_LISTENER_OPS && s->app->before != NULL)
        rc = take_listener(s, s->app->before, err);
    else
        rc = hfd_address_listen(address, s->app->settings, l, &s->fds[l], err);
    if (rc != HFD_OK)
        return rc;
    s->ports[l] = hfd_address_port(s->fds[l]);
    if (hfd_address_path(address) != NULL && s->paths[l] == NULL) {
        s->paths[l] = strdup(hfd_address_path(address));
        rc = s->paths[l] != NULL ? HFD_OK : hfd_fail_nomem(err, "set up the server");
    }
    return rc;
}

static hfd_rc open_listeners(struct hfd_server *s, struct hfd_err *err)
{
    const struct hfd_settings *settings = s->app->settings;
    struct hfd_address addresses[HFD_LISTENER_COUNT];
    struct hfd_guard *guard = s->app->guard;
    hfd_rc rc = HFD_OK;

    if (!s->app->ops_only)
        rc = hfd_addresses_check_open(
            settings, guard != NULL && hfd_guard_is_on(guard) && hfd_guard_is_usable(guard), err);
    if (rc == HFD_OK)
        rc = hfd_addresses_check(settings, addresses, err);
    for (unsigned l = s->app->ops_only ? HFD_LISTENER_OPS : HFD_LISTENER_MAIN;
         rc == HFD_OK && l < HFD_LISTENER_COUNT; l++)
        rc = open_listener(s, (enum hfd_listener)l, &addresses[l], err);
    return rc;
}

hfd_rc hfd_server_open(const struct hfd_app *app, struct hfd_server **out, struct hfd_err *err)
{
    const struct hfd_route *routes = app->routes != NULL ? app->routes : hfd_routes;
    const size_t route_count = app->routes != NULL ? app->route_count : hfd_route_count;
    struct hfd_server *s = calloc(1, sizeof(*s));
    hfd_rc rc;

    *out = NULL;
    if (s == NULL)
        return hfd_fail_nomem(err, "set up the server");
    s->app = app;
    s->fds[HFD_LISTENER_MAIN] = s->fds[HFD_LISTENER_OPS] = -1;
    s->loop_count = loop_count(app);
    configure(s);
    s->loops = calloc(s->loop_count, sizeof(s->loops[0]));
    if (s->loops == NULL) {
        rc = hfd_fail_nomem(err, "set up the server");
        goto out;
    }
    for (unsigned i = 0; i < s->loop_count; i++) {
        s->loops[i].magic = HFD_LOOP_MAGIC;
        s->loops[i].server = s;
        s->loops[i].counter = hfd_counter_new(routes, route_count);
        if (s->loops[i].counter == NULL) {
            rc = hfd_fail_nomem(err, "set up the server");
            goto out;
        }
    }
    s->drivers[0] = app->settings->path_cluster;
    s->drivers[1] = app->settings->path_nodepool;
    rc = hfd_router_new(&(struct hfd_route_table){routes, route_count, s->drivers, 2}, &s->router,
                        err);
    if (rc == HFD_OK)
        rc = hfd_tls_open(app->settings, &s->tls, err);
    if (rc == HFD_OK)
        rc = open_listeners(s, err);
    if (rc != HFD_OK)
        goto out;
    if (!app->ops_only)
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

bool hfd_server_has_tls(const struct hfd_server *s)
{
    return s->tls != NULL;
}

void hfd_server_watch(struct hfd_server *s, bool forced)
{
    hfd_tls_watch(s->tls, hfd_clock_wall_us(s->app->clock), forced);
}

int64_t hfd_server_stall_us(const struct hfd_server *s)
{
    const int64_t now_us = hfd_clock_mono_us(s->app->clock);
    int64_t stall_us = 0;

    for (unsigned i = 0; i < s->loops_started; i++) {
        const int64_t us = now_us - atomic_load(&s->loops[i].turned_us);

        stall_us = us > stall_us ? us : stall_us;
    }
    return stall_us;
}

hfd_rc hfd_server_start(struct hfd_server *s, struct hfd_err *err)
{
    for (unsigned i = 0; i < s->loop_count; i++) {
        hfd_rc rc = hfd_loop_start(&s->loops[i], err);

        if (rc != HFD_OK) {
            hfd_server_stop(s);
            return rc;
        }
    }
    return HFD_OK;
}

/* Closes the server's own listening socket, and removes the path of a Unix socket. */
static void close_listening(struct hfd_server *s, enum hfd_listener which)
{
    if (s->fds[which] >= 0)
        (void)close(s->fds[which]);
    s->fds[which] = -1;
    if (s->paths[which] != NULL)
        (void)unlink(s->paths[which]);
    free(s->paths[which]);
    s->paths[which] = NULL;
}

void hfd_server_stop(struct hfd_server *s)
{
    /*
     * A loop may end on its own before it is woken. Being counted as senders first keeps its queue
     * alive until then.
     */
    for (unsigned i = 0; i < s->loops_started; i++)
        atomic_fetch_add(&s->loops[i].senders, 1);
    atomic_store(&s->busy_loops, s->loops_started);
    atomic_store(&s->draining, true);
    close_listening(s, HFD_LISTENER_MAIN);
    for (unsigned i = 0; i < s->loops_started; i++) {
        hfd_loop_send(&s->loops[i], &s->loops[i].wake, NULL);
        atomic_fetch_sub(&s->loops[i].senders, 1);
    }
    for (unsigned i = 0; i < s->loops_started; i++)
        (void)pthread_join(s->loops[i].thread, NULL);
    s->loops_started = 0;
    close_listening(s, HFD_LISTENER_OPS);
}

void hfd_server_free(struct hfd_server **server)
{
    struct hfd_server *s = *server;

    *server = NULL;
    if (s == NULL)
        return;
    HFD_ASSERT(s->loops_started == 0);
    close_listening(s, HFD_LISTENER_MAIN);
    close_listening(s, HFD_LISTENER_OPS);
    hfd_tls_free(s->tls);
    hfd_router_free(s->router);
    h2o_config_dispose(&s->conf);
    for (unsigned i = 0; s->loops != NULL && i < s->loop_count; i++)
        hfd_counter_free(s->loops[i].counter);
    free(s->loops);
    free(s);
}
