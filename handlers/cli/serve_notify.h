/*
 * The server's reports to systemd: it is ready, it loads files again, it stops. The watchdog gets a
 * sign as long as all loops turn. Thread: main.
 */
#ifndef HFD_CLI_SERVE_NOTIFY_H
#define HFD_CLI_SERVE_NOTIFY_H

#include "handlers/cli/notify.h"

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
