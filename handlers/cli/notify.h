/*
 * The notification protocol of systemd (sd_notify(3)): datagrams to the Unix socket that
 * NOTIFY_SOCKET names, and the watchdog of WATCHDOG_USEC. Without these variables nothing is sent.
 * Thread: one at a time.
 */
#ifndef HFD_CLI_NOTIFY_H
#define HFD_CLI_NOTIFY_H

#include "driver/base/err.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct hfd_notify {
    int fd; /* -1 = nothing is sent */
    struct sockaddr_un to;
    socklen_t to_len;
    int64_t watchdog_us; /* 0 = no watchdog */
};

/** The variables of the protocol; NULL = not set. Borrowed during a call. */
struct hfd_notify_env {
    const char *socket;        /* NOTIFY_SOCKET: a path, or "@" and an abstract name */
    const char *watchdog_usec; /* WATCHDOG_USEC */
    const char *watchdog_pid;  /* WATCHDOG_PID */
};

/**
 * Opens the socket. The watchdog of another process is ignored.
 * @param n  set in any case; hfd_notify_close closes it
 * @return HFD_OK, HFD_INVALID (a variable that cannot be used), HFD_IO; nothing is sent then
 */
HFD_MUST_CHECK hfd_rc hfd_notify_open(struct hfd_notify *n, const struct hfd_notify_env *env,
                                      struct hfd_err *err);
static inline void hfd_notify_close(struct hfd_notify *n)
{
    if (n->fd >= 0)
        (void)close(n->fd);
    n->fd = -1;
}

/**
 * Sends a message: lines as "READY=1". Does not wait: the message is lost if the receiver's queue
 * is full.
 * @return true if it was sent, or if there is no receiver
 */
bool hfd_notify_send(const struct hfd_notify *n, const char *message);

#endif
