/*
 * Parts of `serve`: the driver that the settings describe (serve_driver.c), its key ring over time
 * (serve_keys.c), and the thread of a remote (serve_remote.c). Thread: main.
 */
#ifndef HFD_CLI_SERVE_H
#define HFD_CLI_SERVE_H

#include "driver/backend/remote/remote.h"
#include "driver/core/resource.h"
#include "handlers/cli/cli.h"

#include <sys/stat.h>

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
    char owner[HFD_FINGERPRINT_CHARS + 1];
    struct hfd_remote *thread;
};

/** What the thread works with. */
struct hfd_serve_remote_parts {
    const struct hfd_settings *settings;
    struct hfd_driver *driver;
    struct hfd_store *store;
    const struct hfd_clock *clock;
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

struct hfd_serve_ring; /* a loaded ring; all live until close, because others may still use an
                          earlier one */

struct hfd_serve_keys {
    const char *path;
    struct stat file;             /* its state before the latest ring was read */
    struct hfd_serve_ring *rings; /* newest first */
};

/**
 * Reads the key ring. Creates and logs one if there is none and no data.
 * @param has_data  there is a database, which needs its own ring
 * @return OK, KEYS, DATA (the ring cannot be created), INTERNAL
 */
enum hfd_exit hfd_serve_keys_open(struct hfd_serve_keys *k, const char *path, bool has_data,
                                  struct hfd_err *err);
void hfd_serve_keys_close(struct hfd_serve_keys *k);

/** Returns the newest ring, which lives until close. */
const struct hfd_keyring *hfd_serve_keys_ring(const struct hfd_serve_keys *k);

/**
 * Reads the file again if it changed. Refuses a ring that cannot open what the current ring seals,
 * because stored secrets would be lost.
 * @param changed  there is a newer ring
 * @return HFD_OK, HFD_CONFLICT (refused), or as hfd_keyring_load; on errors the current ring stays
 */
HFD_MUST_CHECK hfd_rc hfd_serve_keys_reload(struct hfd_serve_keys *k, bool *changed,
                                            struct hfd_err *err);

#endif
