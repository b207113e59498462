/*
 * Orphans: clusters and nodepools in a remote HyperFleet with the labels of this server that are no
 * part of a driver resource. The remote thread searches for them, when a client asks and once in a
 * while (take_orphans.c), and writes rows. A list reads these rows. A deletion is written into
 * them, and the thread carries it out. README.md in this folder explains the rules.
 */
#ifndef HFD_REMOTE_ORPHANS_H
#define HFD_REMOTE_ORPHANS_H

#include "driver/backend/backend.h"
#include "store/rows_orphan.h"

enum hfd_orphan_claim_kind {
    HFD_ORPHAN_FREE,      /* no resource has a part in it */
    HFD_ORPHAN_POSSIBLE,  /* a part of its GUResID has no id yet, and may get this
                             one */
    HFD_ORPHAN_OWNED,     /* it is a part of a resource */
    HFD_ORPHAN_INHABITED, /* a cluster with a nodepool of a resource in it */
};

/** Returns whether a resource has, or may get, what is listed as an orphan. */
struct hfd_orphan_claim {
    enum hfd_orphan_claim_kind is;
    hfd_slice whose; /* GUResID of that resource; empty if FREE */
};

/** Reads the claim from the rows. @param out  texts are in mem. Thread: any. */
HFD_MUST_CHECK hfd_rc hfd_remote_orphan_claim(struct hfd_txn *tx, const struct hfd_orphan_row *o,
                                              struct hfd_arena *mem, struct hfd_orphan_claim *out,
                                              struct hfd_err *err);

/**
 * It is a part of a resource now: removes its row. Logs it if a deletion was requested. Thread:
 * writer.
 */
HFD_MUST_CHECK hfd_rc hfd_remote_orphan_adopted(struct hfd_txn *tx, hfd_slice id,
                                                struct hfd_arena *mem, struct hfd_err *err);

/**
 * Lists orphans of a kind by GUResID and age. Leaves out those that a resource has or may get.
 * @return HFD_OK, HFD_NOMEM, HFD_IO
 */
HFD_MUST_CHECK hfd_rc hfd_remote_orphans_list(struct hfd_txn *tx,
                                              const struct hfd_backend_orphan_query *query,
                                              struct hfd_backend_orphans *out, struct hfd_err *err);

/** The age of the list. */
HFD_MUST_CHECK hfd_rc hfd_remote_orphans_state(struct hfd_txn *tx, struct hfd_arena *mem,
                                               struct hfd_backend_orphans_state *out,
                                               struct hfd_err *err);

/**
 * Requests the deletion of an orphan. The thread looks at it once more, and deletes it if it is
 * still an orphan then. A repeat makes it due at once.
 * @param out  as it was seen last
 * @return HFD_OK, HFD_NOT_FOUND (no such orphan is known), HFD_CONFLICT (a resource has it)
 * Thread: writer; wake the remote thread after the commit.
 */
HFD_MUST_CHECK hfd_rc hfd_remote_orphan_remove(struct hfd_txn *tx,
                                               const struct hfd_fleet_call *call, hfd_slice id,
                                               struct hfd_orphan_row *out, struct hfd_err *err);

#endif
