/* The thread of a remote backend, for `serve`. Thread: main. */
#ifndef HFD_CLI_SERVE_REMOTE_H
#define HFD_CLI_SERVE_REMOTE_H

#include "driver/backend/remote/remote.h"
#include "driver/core/driver.h"
#include "handlers/cli/cli.h"

/** The thread of a remote backend and its parts. Zeroed = none. */
struct hfd_serve_remote {
    struct hfd_remote_policy policy;
    char owner[HFD_FINGERPRINT_CHARS + 1];
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
 * Starts the thread if the backend is remote. Borrows everything until close.
 * @return OK, USAGE (an unusable file of remote.*), INTERNAL
 */
enum hfd_exit hfd_serve_remote_open(struct hfd_serve_remote *r,
                                    const struct hfd_serve_remote_parts *parts,
                                    struct hfd_err *err);
void hfd_serve_remote_close(struct hfd_serve_remote *r);
/** Writes the health of the remote as a JSON object: hfd_app.backend_health. Thread: any. */
void hfd_serve_remote_health(void *remote, struct hfd_buf *b);

#endif
