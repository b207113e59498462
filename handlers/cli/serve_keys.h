/* The key ring of `serve` over time. Thread: main. */
#ifndef HFD_CLI_SERVE_KEYS_H
#define HFD_CLI_SERVE_KEYS_H

#include "driver/core/keyring.h"
#include "handlers/cli/cli.h"

#include <sys/stat.h>

/* A loaded ring. All live until close, because a request may still use an earlier one. */
struct hfd_serve_ring;

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
