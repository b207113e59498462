/*
 * The HyperFleet resources behind a driver resource: reading them for a judgement, and making them
 * what an input asks for. Thread: writer for hfd_parts_apply, else any, inside a transaction
 * function.
 */
#ifndef HFD_CORE_PARTS_H
#define HFD_CORE_PARTS_H

#include "driver/core/output.h"

/**
 * Reads the parts of a resource with their reports; a part that no longer exists is there with
 * view.exists false.
 */
HFD_MUST_CHECK hfd_rc hfd_parts_load(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem,
                                     struct hfd_parts *out, struct hfd_err *err);

/** What hfd_parts_apply has done. */
struct hfd_applied {
    struct hfd_parts parts; /* as hfd_parts_load gives them now */
    bool made;              /* whether a part came to be */
    bool anew; /* whether another one took the place of the resource's own, which was removed behind
                  our back */
};

/**
 * Makes, patches and deletes until the parts are what call->input asks for; creation, update,
 * re-target and new attempt are this one path. row: guresid, kind and cluster_id of the resource
 * ("" when there is no cluster yet); cluster_id is set on return. An orphan that carries the
 * resource's label is taken over instead of making another, where its name is the one asked for, or
 * none is.
 * @return HFD_OK, HFD_INVALID (a name is taken, no such cluster), HFD_IMMUTABLE (a name cannot
 * change, or the orphan has another)
 */
HFD_MUST_CHECK hfd_rc hfd_parts_apply(struct hfd_txn *tx, const struct hfd_call *call,
                                      struct hfd_resource_row *row, struct hfd_applied *out,
                                      struct hfd_err *err);

/**
 * Whether a cluster or nodepool carries our label for call->guresid, and no row knows it. Thread:
 * any.
 */
HFD_MUST_CHECK hfd_rc hfd_parts_is_orphan(struct hfd_txn *tx, const struct hfd_call *call,
                                          enum hfd_kind kind, hfd_slice id, bool *yes,
                                          struct hfd_err *err);
/**
 * Takes over such a one as it is, even while it is being deleted.
 * @param ours  whether it is one
 */
HFD_MUST_CHECK hfd_rc hfd_parts_adopt(struct hfd_txn *tx, const struct hfd_call *call,
                                      enum hfd_kind kind, hfd_slice id, bool *ours,
                                      struct hfd_err *err);

/**
 * A part for what the remote may have with our label for call->guresid. With a deferred backend
 * alone.
 */
HFD_MUST_CHECK hfd_rc hfd_parts_seek(struct hfd_txn *tx, const struct hfd_call *call,
                                     enum hfd_kind kind, struct hfd_fleet_row *out,
                                     struct hfd_err *err);

#endif
