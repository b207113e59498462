/*
 * The notification protocol of systemd (sd_notify(3)): datagrams to the Unix socket that
 * NOTIFY_SOCKET names, and the watchdog of WATCHDOG_USEC. Without these variables nothing is sent.
 * The server reports that it is ready, loads files again, and stops; the watchdog gets a sign as
 * long as all loops turn. Thread: one at a time.
 */
#ifndef HFD_CLI_NOTIFY_H
#define HFD_CLI_NOTIFY_H

#include "driver/base/err.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

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
void hfd_notify_close(struct hfd_notify *n);

/**
 * Sends a message: lines as "READY=1". Does not wait: the message is lost if the receiver's queue
 * is full.
 * @return true if it was sent, or if there is no receiver
 */
bool hfd_notify_send(const struct hfd_notify *n, const char *message);

struct hfd_serve_notify {
    struct hfd_notify to;
    bool ready;  /* the server is ready */
    bool told;   /* and systemd has that message */
    bool silent; /* the watchdog got no sign at the last look; logged once */
};

/** Opens the socket of the environment. One that cannot be used is logged, and not used. */
void hfd_serve_notify_open(struct hfd_serve_notify *n);
void hfd_serve_notify_close(struct hfd_serve_notify *n);

/** Reports the states of the server. The last one stays until the next. */
void hfd_serve_notify_ready(struct hfd_serve_notify *n);
void hfd_serve_notify_reloading(struct hfd_serve_notify *n);
void hfd_serve_notify_stopping(struct hfd_serve_notify *n);

/** Returns how long the main thread may wait between two looks, at most max_ms. */
int hfd_serve_notify_wait_ms(const struct hfd_serve_notify *n, int max_ms);

/**
 * A look: sends what could not be sent before, and a sign to the watchdog if all loops turn.
 * @param stall_us  the longest time that a loop has not turned
 */
void hfd_serve_notify_look(struct hfd_serve_notify *n, int64_t stall_us);

#endif
