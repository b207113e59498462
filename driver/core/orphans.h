/*
 * Clusters and nodepools of ours that no driver resource knows: they carry the label
 * humanitec_guresid, and no row has them as a part. They come of a store that was lost, of another
 * driver before this one, or of people who copy labels. A PUT of their GUResID takes them over;
 * nobody removes them by itself: a person does, here. Source: DESIGN 4, 6; README.md in this
 * folder.
 */
#ifndef HFD_CORE_ORPHANS_H
#define HFD_CORE_ORPHANS_H

#include "driver/backend/remote/orphans.h"
#include "driver/core/resource.h"

#define HFD_ORPHANS_MAX 1000 /* of each kind in one list */

struct hfd_orphans {
    struct hfd_orphan_list list;        /* by GUResID and age, clusters before nodepools */
    bool more;                          /* whether there are more than the list has */
    bool remote;                        /* it is of a remote HyperFleet, as that was once */
    struct hfd_remote_orphans_state as; /* when that was */
};

/**
 * @param ops  which HyperFleet is driven
 * Thread: reader; it looks at the labels of all resources.
 */
HFD_MUST_CHECK hfd_rc hfd_orphans_list(struct hfd_txn *tx, const struct hfd_backend *ops,
                                       struct hfd_arena *mem, struct hfd_orphans *out,
                                       struct hfd_err *err);

/**
 * Deletes one in HyperFleet, as a DELETE there would: its adapters finalize it, and a cluster takes
 * its nodepools along. A remote one is told so by the remote thread, after another look at it.
 * @param out   as it is now, or was last; of a remote one: what kind it is, id, name, and the label
 * with the GUResID
 * @param gone  whether it was removed at once
 * @return HFD_OK, HFD_NOT_FOUND (no such resource; no such orphan that is known of, in a remote
 * one), HFD_CONFLICT (it is no orphan) Thread: writer.
 */
HFD_MUST_CHECK hfd_rc hfd_orphan_remove(struct hfd_txn *tx, const struct hfd_driver *d,
                                        const struct hfd_fleet_call *call, hfd_slice id,
                                        struct hfd_fleet_row *out, bool *gone, struct hfd_err *err);

#endif
