/*
 * Compares the key ring with the keys that the database was used with. A key that was changed, or
 * taken away while something needs it, is refused before anything is served. Thread: writer, or a
 * reader that only looks.
 *
 * Seals stored secrets again after a rotation of keys: output secrets of driver resources, secrets
 * of reports, and secrets of orders. It goes in small steps. Each row names the key that sealed it,
 * so a step can be repeated, and a start goes on where the last one ended. Cookies and digests are
 * not touched: the next PUT renews them, as the orchestrator keeps the old cookie until then.
 * Thread: any but a loop; one at a time.
 */
#ifndef HFD_CORE_RING_CHECK_H
#define HFD_CORE_RING_CHECK_H

#include "driver/core/driver.h"
#include "driver/core/keyring.h"

struct hfd_ring_call {
    const struct hfd_keyring *ring;
    const char *path; /* for messages */
    bool look;        /* writes nothing */
    bool shared;      /* replicas use the database: they have a key in common */
};

/**
 * A transaction function; arg is a struct hfd_ring_call. Notes keys that are new, and forgets those
 * that nothing needs any more.
 * @return HFD_OK, HFD_INVALID (a key is not the one it was), HFD_CONFLICT (a key is missing, or
 * with `shared` all are), HFD_IO
 */
HFD_MUST_CHECK hfd_rc hfd_ring_check(struct hfd_txn *tx, void *arg, struct hfd_err *err);

/**
 * Counts the rows that need a key of the ring.
 * @param key  from hfd_keyring_view
 */
HFD_MUST_CHECK hfd_rc hfd_ring_uses(struct hfd_txn *tx, const struct hfd_key_view *key,
                                    int64_t *out, struct hfd_err *err);

/** Ids of keys, in hex. */
struct hfd_ring_ids {
    hfd_slice *items;
    size_t count;
};
/**
 * Lists the keys that rows need, whatever ring is loaded.
 * @param out  in mem
 */
HFD_MUST_CHECK hfd_rc hfd_ring_needed(struct hfd_txn *tx, struct hfd_arena *mem,
                                      struct hfd_ring_ids *out, struct hfd_err *err);

/**
 * Seals again what other keys than the active one sealed.
 * @param reader  of the calling thread, for finding rows; borrowed
 * @param stop    ends it between two steps when it becomes true
 * @param count   rows that were sealed again; those that cannot be opened are logged and left
 */
struct hfd_reseal {
    const struct hfd_driver *driver;
    struct hfd_store *store;
    struct hfd_store_reader *reader;
    const atomic_bool *stop;
    int64_t count; /* rows that were sealed */
    int64_t left;  /* rows that cannot be read or opened, and stay as they are */
};
HFD_MUST_CHECK hfd_rc hfd_reseal_all(struct hfd_reseal *r, struct hfd_err *err);

#endif
