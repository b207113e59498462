/* See address.h. */
#include "handlers/http/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Parses HOST:PORT. Returns false unless the host is an IP address or localhost. */
static bool parse(hfd_slice text, struct hfd_address *out)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)&out->addr;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)&out->addr;
    const char *colon = text.len != 0 ? memrchr(text.p, ':', text.len) : NULL;
    char host[64];
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

static const struct sockaddr_un *unix_of(const struct hfd_address *e)
{
    return e->addr.ss_family == AF_UNIX ? (const struct sockaddr_un *)(const void *)&e->addr : NULL;
}

const char *hfd_address_path(const struct hfd_address *e)
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
        return strcmp(hfd_address_path(a), hfd_address_path(b)) == 0;
    if (a->addr.ss_family == AF_INET)
        return ((const struct sockaddr_in *)(const void *)&a->addr)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)(const void *)&b->addr)->sin_addr.s_addr;
    return IN6_ARE_ADDR_EQUAL(&((const struct sockaddr_in6 *)(const void *)&a->addr)->sin6_addr,
                              &((const struct sockaddr_in6 *)(const void *)&b->addr)->sin6_addr);
}

int hfd_address_port(int fd)
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

hfd_rc hfd_addresses_check(const struct hfd_settings *s, struct hfd_address out[HFD_LISTENER_COUNT],
                           struct hfd_err *err)
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

hfd_rc hfd_addresses_check_open(const struct hfd_settings *s, bool authenticated,
                                struct hfd_err *err)
{
    struct hfd_address addresses[HFD_LISTENER_COUNT];
    hfd_rc rc = hfd_addresses_check(s, addresses, err);

    for (unsigned l = 0; rc == HFD_OK && l < HFD_LISTENER_COUNT; l++) {
        const bool is_main = l == HFD_LISTENER_MAIN;
        const hfd_slice address = is_main ? s->listen : s->ops_listen;

        if (!addresses[l].local && !authenticated && !s->insecure_no_auth)
            rc = hfd_settings_refuse(
                s, is_main ? HFD_SETTING_listen : HFD_SETTING_ops_listen, err,
                "%.*s is not a loopback address, and no caller has a valid token or key. Make a "
                "token (token create), trust the Operator's key (auth.operator_keys), or for a "
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
        (void)unlink(hfd_address_path(e));
        rc = bind(fd, sa, e->len);
    }
    if (rc == 0 && unix_of(e) != NULL)
        rc = chmod(hfd_address_path(e), mode_of(s->http_socket_mode));
    return rc == 0;
}

hfd_rc hfd_address_listen(const struct hfd_address *e, const struct hfd_settings *s,
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
    hfd_rc rc = hfd_addresses_check(s, both, err);

    for (int i = 0; rc == HFD_OK && i < HFD_LISTENER_COUNT; i++) {
        int fd = -1;

        if (!has_port(&both[i]))
            continue;
        rc = hfd_address_listen(&both[i], s, (enum hfd_listener)i, &fd, err);
        if (rc == HFD_OK)
            (void)close(fd);
    }
    return rc;
}
