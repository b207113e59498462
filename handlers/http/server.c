/* See server.h. */
#include "handlers/http/server.h"

#include "driver/base/bell.h"
#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/url.h"
#include "handlers/http/exchange_int.h"
#include "handlers/http/http.h"
#include "handlers/http/route.h"
#include "handlers/http/routes.h"
#include "handlers/http/tls.h"
#include "handlers/http/watch_api.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- addresses ---- */

struct hfd_address {
    struct sockaddr_storage addr;
    socklen_t len;
    bool local; /* only this machine reaches it */
};

/* Parses HOST:PORT. Returns false unless the host is an IP address or localhost. */
static bool parse(hfd_slice text, struct hfd_address *out)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)&out->addr;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)&out->addr;
    const char *colon = text.len != 0 ? memrchr(text.p, ':', text.len) : NULL;
    struct hfd_ip ip;
    hfd_slice name;
    int64_t port;

    *out = (struct hfd_address){0};
    if (colon == NULL)
        return false;
    name = (hfd_slice){text.p, (size_t)(colon - text.p)};
    if (hfd_parse_i64((hfd_slice){colon + 1, text.len - name.len - 1}, 0, 65535, &port, NULL) !=
        HFD_OK)
        return false;
    if (name.len > 2 && name.p[0] == '[' && name.p[name.len - 1] == ']')
        name = (hfd_slice){name.p + 1, name.len - 2};
    if (!hfd_ip_parse(hfd_slice_is(name, "localhost") ? HFD_SLICE("127.0.0.1") : name, &ip))
        return false;
    if (ip.bits == 32) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)port);
        memcpy(&v4->sin_addr, ip.bytes, sizeof(v4->sin_addr));
        out->len = sizeof(*v4);
    } else {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)port);
        memcpy(&v6->sin6_addr, ip.bytes, sizeof(v6->sin6_addr));
        out->len = sizeof(*v6);
    }
    return true;
}

static const struct sockaddr_un *unix_of(const struct hfd_address *e)
{
    return e->addr.ss_family == AF_UNIX ? (const struct sockaddr_un *)(const void *)&e->addr : NULL;
}

/* Returns the path of a Unix socket; NULL for other addresses. */
static const char *address_path(const struct hfd_address *e)
{
    const struct sockaddr_un *un = unix_of(e);

    return un != NULL ? un->sun_path : NULL;
}

static bool parse_unix(hfd_slice text, struct hfd_address *out)
{
    struct sockaddr_un *un = (struct sockaddr_un *)(void *)&out->addr;
    static const char prefix[] = "unix:";

    if (!hfd_slice_starts(text, hfd_slice_of(prefix)) ||
        text.len - (sizeof(prefix) - 1) >= sizeof(un->sun_path))
        return false;
    *out = (struct hfd_address){.len = sizeof(*un)};
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, text.p + sizeof(prefix) - 1, text.len - (sizeof(prefix) - 1));
    return true;
}

static bool is_loopback(const struct hfd_address *e)
{
    if (unix_of(e) != NULL)
        return true;
    if (e->addr.ss_family == AF_INET)
        return (ntohl(((const struct sockaddr_in *)(const void *)&e->addr)->sin_addr.s_addr) >>
                24) == 127;
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)&e->addr)->sin6_addr);
}

static int port_in(const struct hfd_address *e)
{
    if (unix_of(e) != NULL)
        return 0;
    if (e->addr.ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)(const void *)&e->addr)->sin_port);
    return ntohs(((const struct sockaddr_in6 *)(const void *)&e->addr)->sin6_port);
}

static bool is_same(const struct hfd_address *a, const struct hfd_address *b)
{
    if (a->addr.ss_family != b->addr.ss_family || port_in(a) != port_in(b))
        return false;
    if (unix_of(a) != NULL)
        return strcmp(address_path(a), address_path(b)) == 0;
    if (a->addr.ss_family == AF_INET)
        return ((const struct sockaddr_in *)(const void *)&a->addr)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)(const void *)&b->addr)->sin_addr.s_addr;
    return IN6_ARE_ADDR_EQUAL(&((const struct sockaddr_in6 *)(const void *)&a->addr)->sin6_addr,
                              &((const struct sockaddr_in6 *)(const void *)&b->addr)->sin6_addr);
}

/* Returns the port that a socket is bound to; 0 if there is none. */
static int address_port(int fd)
{
    struct hfd_address e = {.len = sizeof(e.addr)};

    return getsockname(fd, (struct sockaddr *)(void *)&e.addr, &e.len) == 0 ? port_in(&e) : 0;
}

static hfd_rc check_address(const struct hfd_settings *s, enum hfd_setting which,
                            struct hfd_address *out, struct hfd_err *err)
{
    const hfd_slice address = which == HFD_SETTING_listen ? s->listen : s->ops_listen;

    if (!parse_unix(address, out) && !parse(address, out))
        return hfd_settings_refuse(s, which, err,
                                   "expected an IP address or localhost, got \"%.*s\"",
                                   HFD_SLICE_FMT(address));
    out->local = is_loopback(out);
    return HFD_OK;
}

/*
 * Parses listen and ops_listen, and checks that they differ.
 * @return HFD_OK, HFD_INVALID (the message names the setting)
 */
static hfd_rc addresses_check(const struct hfd_settings *s,
                              struct hfd_address out[HFD_LISTENER_COUNT], struct hfd_err *err)
{
    const struct hfd_address *main_one = &out[HFD_LISTENER_MAIN], *ops_one = &out[HFD_LISTENER_OPS];
    hfd_rc rc = check_address(s, HFD_SETTING_listen, &out[HFD_LISTENER_MAIN], err);

    if (rc == HFD_OK)
        rc = check_address(s, HFD_SETTING_ops_listen, &out[HFD_LISTENER_OPS], err);
    if (rc == HFD_OK && (port_in(main_one) != 0 || unix_of(main_one) != NULL) &&
        is_same(main_one, ops_one))
        rc = hfd_settings_refuse(
            s,
            hfd_settings_is_set(s, HFD_SETTING_ops_listen) ? HFD_SETTING_ops_listen
                                                           : HFD_SETTING_listen,
            err,
            "expected one address for listen and another for ops_listen, got \"%.*s\" for both",
            HFD_SLICE_FMT(s->ops_listen));
    return rc;
}

hfd_rc hfd_server_check_open(const struct hfd_settings *s, bool authenticated, struct hfd_err *err)
{
    struct hfd_address addresses[HFD_LISTENER_COUNT];
    hfd_rc rc = addresses_check(s, addresses, err);

    for (unsigned l = 0; rc == HFD_OK && l < HFD_LISTENER_COUNT; l++) {
        const bool is_main = l == HFD_LISTENER_MAIN;
        const hfd_slice address = is_main ? s->listen : s->ops_listen;

        if (!addresses[l].local && !authenticated && !s->insecure_no_auth)
            rc = hfd_settings_refuse(
                s, is_main ? HFD_SETTING_listen : HFD_SETTING_ops_listen, err,
                "%.*s is not a loopback address, and no caller has a valid token or key. Make a "
                "token (token create --new), trust the Operator's key (auth.operator_keys), or for "
                "a "
                "test use --insecure-no-auth",
                (int)(address.len < 48 ? address.len : 48), address.p);
    }
    return rc;
}

/* Returns true if the path is a socket on which no process listens: one was left by a kill. */
static bool is_left_over(const struct hfd_address *e)
{
    const struct sockaddr_un *un = unix_of(e);
    struct stat st;
    bool refused;
    int fd;

    if (un == NULL || lstat(un->sun_path, &st) != 0 || !S_ISSOCK(st.st_mode))
        return false;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    refused = connect(fd, (const struct sockaddr *)(const void *)un, e->len) != 0 &&
              errno == ECONNREFUSED;
    (void)close(fd);
    return refused;
}

/* Parses octal digits, which the settings have checked. */
static mode_t mode_of(hfd_slice digits)
{
    mode_t mode = 0;

    for (size_t i = 0; i < digits.len; i++)
        mode = mode * 8 + (mode_t)(digits.p[i] - '0');
    return mode;
}

/* The path of a socket gets its mode before a client can connect: listen comes later. */
static bool bind_to(int fd, const struct hfd_address *e, const struct hfd_settings *s)
{
    const struct sockaddr *sa = (const struct sockaddr *)(const void *)&e->addr;
    int rc = bind(fd, sa, e->len);

    if (rc != 0 && errno == EADDRINUSE && is_left_over(e)) {
        (void)unlink(address_path(e));
        rc = bind(fd, sa, e->len);
    }
    if (rc == 0 && unix_of(e) != NULL)
        rc = chmod(address_path(e), mode_of(s->http_socket_mode));
    return rc == 0;
}

/*
 * Opens a listening socket.
 * @param which   names the setting in errors
 * @param fd_out  gives; -1 unless HFD_OK
 * @return HFD_OK, HFD_IO
 */
static hfd_rc address_listen(const struct hfd_address *e, const struct hfd_settings *s,
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
    if (!bind_to(fd, e, s) || listen(fd, SOMAXCONN) != 0) {
        rc = hfd_fail_field(err, HFD_IO, key, "%.*s: cannot listen on %.*s: %s%s",
                            HFD_SLICE_FMT(given.len > 0 ? given : hfd_slice_of(key)),
                            HFD_SLICE_FMT(address), strerror(errno),
                            errno == EADDRINUSE ? ". Is another server running? Port 0 takes a "
                                                  "free port"
                                                : "");
        (void)close(fd);
        return rc;
    }
    *fd_out = fd;
    return HFD_OK;
}

static bool has_port(const struct hfd_address *e)
{
    const struct sockaddr *any = (const struct sockaddr *)&e->addr;

    if (any->sa_family == AF_INET)
        return ((const struct sockaddr_in *)(const void *)any)->sin_port != 0;
    return any->sa_family == AF_INET6 &&
           ((const struct sockaddr_in6 *)(const void *)any)->sin6_port != 0;
}

hfd_rc hfd_addresses_probe(const struct hfd_settings *s, struct hfd_err *err)
{
    struct hfd_address both[HFD_LISTENER_COUNT];
    hfd_rc rc = addresses_check(s, both, err);

    for (int i = 0; rc == HFD_OK && i < HFD_LISTENER_COUNT; i++) {
        int fd = -1;

        if (!has_port(&both[i]))
            continue;
        rc = address_listen(&both[i], s, (enum hfd_listener)i, &fd, err);
        if (rc == HFD_OK)
            (void)close(fd);
    }
    return rc;
}

/* ---- the server ---- */

/*
 * The server: its listeners and loop threads. Every loop has its own event loop, h2o context, store
 * reader and copies of the two listening sockets. Connections are counted per loop. The loop that
 * accepts one hands it to the loop that has the fewest. A full loop leaves the next one to the
 * others or to the kernel's queue.
 *
 * Stopping: the main listener and idle connections close. Requests in progress get their answer
 * with "Connection: close", until none is left or the drain timeout passes. The ops listener
 * answers until the end.
 */

/* A ceiling, not a reserve: a resource with the longest texts of every adapter fits. */
#define ARENA_SLACK_BYTES ((size_t)64 << 20)
/* Files beside connections: store, listeners, loops. */
#define FILES_RESERVE 256

hfd_rc hfd_server_check(const struct hfd_settings *settings, struct hfd_err *err)
{
    struct hfd_address addresses[HFD_LISTENER_COUNT];

    return addresses_check(settings, addresses, err);
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
    const rlim_t reserve = FILES_RESERVE + (rlim_t)s->app->settings->events_watchers_max;
    const rlim_t files = (rlim_t)wanted + reserve;
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
    most = allowed - allowed / 4 > reserve ? allowed - reserve : allowed / 4;
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
        hfd_dispatch_on_req;
    h2o_create_handler(&host->fallback_path, sizeof(h2o_handler_t))->on_req = hfd_dispatch_on_req;
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
        rc = address_listen(address, s->app->settings, l, &s->fds[l], err);
    if (rc != HFD_OK)
        return rc;
    s->ports[l] = address_port(s->fds[l]);
    if (address_path(address) != NULL && s->paths[l] == NULL) {
        s->paths[l] = strdup(address_path(address));
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
        rc = hfd_server_check_open(
            settings, guard != NULL && hfd_guard_is_on(guard) && hfd_guard_is_usable(guard), err);
    if (rc == HFD_OK)
        rc = addresses_check(settings, addresses, err);
    for (unsigned l = s->app->ops_only ? HFD_LISTENER_OPS : HFD_LISTENER_MAIN;
         rc == HFD_OK && l < HFD_LISTENER_COUNT; l++)
        rc = open_listener(s, (enum hfd_listener)l, &addresses[l], err);
    return rc;
}

hfd_rc hfd_server_open(const struct hfd_app *app, struct hfd_server **out, struct hfd_err *err)
{
    const struct hfd_route *routes = app->routes != NULL ? app->routes : hfd_routes;
    const size_t route_count = app->routes != NULL ? app->route_count : hfd_route_count_of(app);
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

/* Wakes the loops that have watchers. Thread: any, under the lock of the bell. */
static void on_bell(void *ctx)
{
    struct hfd_server *s = ctx;

    for (unsigned i = 0; i < s->loop_count; i++)
        if (atomic_load(&s->loops[i].watchers) > 0)
            hfd_loop_send(&s->loops[i], &s->loops[i].wake, NULL);
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
    s->listener = (struct hfd_bell_listener){.hear = on_bell, .ctx = s};
    if (s->app->bell != NULL)
        hfd_bell_listen(s->app->bell, &s->listener);
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
    if (s->app->bell != NULL)
        hfd_bell_unlisten(s->app->bell, &s->listener);
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
