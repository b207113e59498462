/* See notify.h. */
#include "handlers/cli/notify.h"

#include "driver/base/err.h"
#include "driver/base/slice.h"

#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static bool is_set(const char *value)
{
    return value != NULL && value[0] != '\0';
}

static hfd_rc take_address(struct hfd_notify *n, const char *text, struct hfd_err *err)
{
    const size_t len = strlen(text);

    if (text[0] != '/' && text[0] != '@')
        return hfd_fail(err, HFD_INVALID, "NOTIFY_SOCKET=%.100s: expected a path, or @name", text);
    if (len < 2 || len >= sizeof(n->to.sun_path))
        return hfd_fail(err, HFD_INVALID, "NOTIFY_SOCKET=%.100s: expected 2 to %zu bytes", text,
                        sizeof(n->to.sun_path) - 1);
    n->to.sun_family = AF_UNIX;
    memcpy(n->to.sun_path, text, len);
    n->to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    if (text[0] == '@')
        n->to.sun_path[0] = '\0'; /* an abstract name has no NUL at its end */
    else
        n->to_len++;
    return HFD_OK;
}

static hfd_rc take_watchdog(struct hfd_notify *n, const struct hfd_notify_env *env,
                            struct hfd_err *err)
{
    int64_t pid, us;

    if (!is_set(env->watchdog_usec))
        return HFD_OK;
    if (is_set(env->watchdog_pid)) {
        if (hfd_parse_i64(hfd_slice_of(env->watchdog_pid), 1, INT32_MAX, &pid, NULL) != HFD_OK)
            return hfd_fail(err, HFD_INVALID, "WATCHDOG_PID=%.40s: expected a process id",
                            env->watchdog_pid);
        if (pid != getpid())
            return HFD_OK;
    }
    if (hfd_parse_i64(hfd_slice_of(env->watchdog_usec), 1, INT64_MAX, &us, NULL) != HFD_OK)
        return hfd_fail(err, HFD_INVALID, "WATCHDOG_USEC=%.40s: expected microseconds above 0",
                        env->watchdog_usec);
    n->watchdog_us = us;
    return HFD_OK;
}

hfd_rc hfd_notify_open(struct hfd_notify *n, const struct hfd_notify_env *env, struct hfd_err *err)
{
    hfd_rc rc;

    *n = (struct hfd_notify){.fd = -1};
    if (!is_set(env->socket))
        return HFD_OK;
    rc = take_address(n, env->socket, err);
    if (rc == HFD_OK)
        rc = take_watchdog(n, env, err);
    if (rc != HFD_OK)
        return rc;
    n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (n->fd >= 0)
        return HFD_OK;
    n->watchdog_us = 0;
    return hfd_fail(err, HFD_IO, "NOTIFY_SOCKET: make a socket: %s", strerror(errno));
}

bool hfd_notify_send(const struct hfd_notify *n, const char *message)
{
    const size_t len = strlen(message);

    return n->fd < 0 ||
           sendto(n->fd, message, len, MSG_NOSIGNAL, (const struct sockaddr *)(const void *)&n->to,
                  n->to_len) == (ssize_t)len;
}
