/*
 * Clusters and nodepools of ours in a remote HyperFleet that no driver resource has: they carry our
 * owner's label and humanitec_guresid. the remote thread finds them (take_orphans.c), when
 * somebody asks and once in a while, and keeps them in the store; a list of them is read from
 * there, and a deletion is written there, for the thread to carry out. README.md in this folder has
 * the whole. Source: DESIGN 6.
 */
#ifndef HFD_REMOTE_ORPHANS_H
#define HFD_REMOTE_ORPHANS_H

#include "driver/backend/backend.h"
#include "store/rows_orphan.h"

/** How it stands with one. */
enum hfd_remote_orphan_claim {
    HFD_ORPHAN_FREE,      /* nobody's */
    HFD_ORPHAN_POSSIBLE,  /* its resource is being made or found, and has no id yet for what may be
                            this */
    HFD_ORPHAN_OWNED,     /* a resource has it */
    HFD_ORPHAN_INHABITED, /* a cluster that is nobody's, with a nodepool of a resource in it */
};
/**
 * @param whose  the GUResID of whoever has it, or of its nodepool; empty when it is free. In mem
 */
HFD_MUST_CHECK hfd_rc hfd_remote_orphan_claim(struct hfd_txn *tx, const struct hfd_orphan_row *o,
                                              struct hfd_arena *mem,
                                              enum hfd_remote_orphan_claim *out, hfd_slice *whose,
                                              struct hfd_err *err);

/**
 * A resource has it now: it is forgotten, with a line in the log if it was to be deleted. Thread:
 * writer.
 */
HFD_MUST_CHECK hfd_rc hfd_remote_orphan_adopted(struct hfd_txn *tx, hfd_slice id,
                                                struct hfd_arena *mem, struct hfd_err *err);

/**
 * Those of a kind, by GUResID and age, without those that have been claimed since they were seen.
 * @param more  whether there are more
 */
HFD_MUST_CHECK hfd_rc hfd_remote_orphans_list(struct hfd_txn *tx, enum hfd_kind kind, size_t limit,
                                              struct hfd_arena *mem, struct hfd_orphan_list *out,
                                              bool *more, struct hfd_err *err);

/** How good the list is. */
struct hfd_remote_orphans_state {
    int64_t checked_us; /* what HyperFleet had then is in it; 0 = it was never read to the end */
    hfd_slice error;    /* why it could not be read the last time, without a full stop; empty = it
                           could, or it was never tried */
};
HFD_MUST_CHECK hfd_rc hfd_remote_orphans_state(struct hfd_txn *tx, struct hfd_arena *mem,
                                               struct hfd_remote_orphans_state *out,
                                               struct hfd_err *err);

/**
 * Has one deleted: it is looked at once more, and deleted if it still is ours and nobody's then. A
 * repeat has it tried at once.
 * @param out  as it was seen last
 * @return HFD_OK, HFD_NOT_FOUND (none is known by this id), HFD_CONFLICT (it has been claimed)
 * Thread: writer; wake the thread when it is committed.
 */
HFD_MUST_CHECK hfd_rc hfd_remote_orphan_remove(struct hfd_txn *tx, hfd_slice id, int64_t now_us,
                                               struct hfd_arena *mem, struct hfd_orphan_row *out,
                                               struct hfd_err *err);

#endif
