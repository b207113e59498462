/* The driver that the settings describe, and the thread of a remote, for `serve`. Thread: main. */
#ifndef HFD_CLI_SERVE_DRIVER_H
#define HFD_CLI_SERVE_DRIVER_H

#include "driver/backend/remote/work.h"
#include "driver/core/driver.h"
#include "handlers/cli/cli.h"

struct hfd_keeper;
struct hfd_remote;

/**
 * Fills a driver from the settings and attaches it. Borrows from the settings; their memory holds
 * the output rules.
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_serve_driver_init(struct hfd_driver *d, struct hfd_settings *s,
                                            const struct hfd_keyring *ring, struct hfd_err *err);

/** The thread of a remote backend and its parts. Zeroed = none. */
struct hfd_serve_remote {
    struct hfd_remote_policy policy;
    struct hfd_remote *thread;
    struct hfd_keeper *keeper; /* NULL = the only server */
};

/** Parts of the server that the thread works with. */
struct hfd_serve_remote_parts {
    const struct hfd_settings *settings;
    struct hfd_driver *driver;
    struct hfd_store *store;
    const struct hfd_clock *clock;
    struct hfd_keeper *keeper; /* NULL = the only server */
};

/**
 * Starts the thread if the backend is remote. It borrows everything until it is stopped.
 * @return OK, USAGE (an unusable file of remote.*), INTERNAL
 */
enum hfd_exit hfd_serve_remote_open(struct hfd_serve_remote *r,
                                    const struct hfd_serve_remote_parts *parts,
                                    struct hfd_err *err);
/** Writes the health of the remote as a JSON object: hfd_app.backend_health. Thread: any. */
void hfd_serve_remote_health(void *remote, struct hfd_buf *b);

#endif
