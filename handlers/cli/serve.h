/*
 * Inside of `serve`: the driver that the settings describe (serve_driver.c), its key ring over time
 * (serve_keys.c), and the thread that drives a remote HyperFleet (serve_remote.c). Thread: main.
 */
#ifndef HFD_CLI_SERVE_H
#define HFD_CLI_SERVE_H

#include "driver/backend/remote/remote.h"
#include "driver/core/resource.h"
#include "handlers/cli/cli.h"

#include <sys/stat.h>

/**
 * Fills a driver from the settings and attaches it. It borrows from them; the rules of the outputs
 * live in their memory.
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_serve_driver_init(struct hfd_driver *d, struct hfd_settings *s,
                                            const struct hfd_keyring *ring, struct hfd_err *err);

/** The thread of a remote backend, with what it is made of. Zeroed = none. */
struct hfd_serve_remote {
    struct hfd_remote_policy policy;
    char owner[HFD_FINGERPRINT_CHARS + 1];
    struct hfd_remote *thread;
};

/**
 * Starts it if the backend is remote. Borrows all until close.
 * @return OK, USAGE (a file of remote.* that cannot be used), INTERNAL
 */
enum hfd_exit hfd_serve_remote_open(struct hfd_serve_remote *r, const struct hfd_settings *s,
                                    struct hfd_driver *d, struct hfd_store *store,
                                    const struct hfd_clock *clock, struct hfd_err *err);
void hfd_serve_remote_close(struct hfd_serve_remote *r);

struct hfd_serve_ring; /* one that was loaded; others may still read an earlier one, so all live
                          until the end */

struct hfd_serve_keys {
    const char *path;
    struct stat file;             /* as it was before the latest ring was read from it */
    struct hfd_serve_ring *rings; /* newest first */
};

/**
 * Reads the key ring. If there is none and nothing is stored yet, makes one and says so in the log.
 * @param has_data  whether a database exists: it cannot be used with another ring
 * @return OK, KEYS, DATA (it cannot be made), INTERNAL
 */
enum hfd_exit hfd_serve_keys_open(struct hfd_serve_keys *k, const char *path, bool has_data,
                                  struct hfd_err *err);
void hfd_serve_keys_close(struct hfd_serve_keys *k);

/** The newest ring; lives until close. */
const struct hfd_keyring *hfd_serve_keys_ring(const struct hfd_serve_keys *k);

/**
 * Reads the file again if it changed. A ring that cannot open what the present one seals is
 * refused: it would lose stored secrets.
 * @param changed  whether there is a newer ring
 * @return HFD_OK, HFD_CONFLICT (refused), or as hfd_keyring_load; the present ring stays in use
 * then
 */
HFD_MUST_CHECK hfd_rc hfd_serve_keys_reload(struct hfd_serve_keys *k, bool *changed,
                                            struct hfd_err *err);

#endif
