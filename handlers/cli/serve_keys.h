/* The key ring of `serve` over time. Thread: main. */
#ifndef HFD_CLI_SERVE_KEYS_H
#define HFD_CLI_SERVE_KEYS_H

#include "driver/core/driver.h"
#include "handlers/cli/cli.h"

#include <sys/stat.h>

/** A ring that was in use; it lives until the server closes. */
struct hfd_serve_ring {
    struct hfd_keyring *ring;
    struct hfd_serve_ring *next;
};

struct hfd_serve_keys {
    const char *path;
    bool shared;                  /* replicas use the database too */
    struct stat file;             /* its state before the latest ring was read */
    struct stat looked;           /* its state at the latest look */
    struct hfd_serve_ring *rings; /* newest first */
};

/* The way on when there is no key ring. */
enum hfd_serve_ring_need {
    HFD_SERVE_RING_MAKE,  /* there is no data: one is made and logged */
    HFD_SERVE_RING_DATA,  /* the data needs its own */
    HFD_SERVE_RING_SHARED /* one file for all replicas is never made by itself */
};

/**
 * Reads the key ring, or makes one.
 * @return OK, KEYS, DATA (the ring cannot be created), INTERNAL
 */
enum hfd_exit hfd_serve_keys_open(struct hfd_serve_keys *k, const char *path,
                                  enum hfd_serve_ring_need need, struct hfd_err *err);
void hfd_serve_keys_close(struct hfd_serve_keys *k);

/**
 * Compares the newest ring with the database (hfd_ring_check).
 * @return HFD_OK, HFD_INVALID or HFD_CONFLICT (it is not that of the data), HFD_IO
 */
HFD_MUST_CHECK hfd_rc hfd_serve_keys_check(const struct hfd_serve_keys *k, struct hfd_store *store,
                                           struct hfd_err *err);

/**
 * Reads the file again if it has changed since the last look, gives the driver the new ring, and
 * logs what came of it. Keeps the old ring if the new one lacks the active key, or is the ring of
 * another database.
 * @param forced  logs also that the ring did not change: SIGHUP. It counts as no look
 * @return true: it has changed, or forced
 */
bool hfd_serve_keys_look(struct hfd_serve_keys *k, struct hfd_store *store,
                         struct hfd_driver *driver, bool forced);

#define HFD_SERVE_KEY_IDS_MAX 1024
/** Writes the ids of a ring, with commas between them. */
void hfd_serve_keys_name(const struct hfd_keyring *ring, char out[HFD_SERVE_KEY_IDS_MAX]);

/*
 * The thread that seals stored secrets again after a rotation of keys (ring_check.h). It counts
 * what still needs each key. It works at the start, when it is woken, when this replica begins to
 * lead, every ten minutes, and 30 s after a failure. With a single key it does nothing.
 */

struct hfd_keeper;
struct hfd_serve_reseal;

/** All are borrowed until stop. The ring of the driver may be replaced meanwhile. */
struct hfd_serve_reseal_parts {
    const struct hfd_driver *driver;
    struct hfd_store *store;
    struct hfd_keeper *keeper; /* it works while this leads; NULL = always */
};

/** Starts the thread. @param out  gives. @return HFD_OK, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_serve_reseal_start(const struct hfd_serve_reseal_parts *parts,
                                             struct hfd_serve_reseal **out, struct hfd_err *err);
/** There may be a new ring: the thread works at once. */
void hfd_serve_reseal_wake(struct hfd_serve_reseal *r);
/** Ends the thread behind its present step. Takes; accepts a pointer to NULL. */
void hfd_serve_reseal_stop(struct hfd_serve_reseal **r);

#endif
