/*
 * Compares the key ring with the keys that the database was used with. A key that was changed, or
 * taken away while something needs it, is refused before anything is served. Thread: writer, or a
 * reader that only looks.
 */
#ifndef HFD_CORE_RING_CHECK_H
#define HFD_CORE_RING_CHECK_H

#include "driver/core/keyring.h"
#include "store/store.h"

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

#endif
