/*
 * Orphans: clusters and nodepools with the label humanitec_guresid that are a part of no resource.
 * They come from a store that was lost, another driver, or a label that a person copied. A PUT of
 * their GUResID adopts them; nothing else removes them but a person, with hfd_orphan_remove.
 * README.md, "Lost and found".
 */
#ifndef HFD_CORE_ORPHANS_H
#define HFD_CORE_ORPHANS_H

#include "driver/core/driver.h"

#define HFD_ORPHANS_MAX 1000 /* of each kind in one list */

struct hfd_orphans {
    struct hfd_orphan_list list; /* by GUResID and age, clusters before nodepools */
    bool more;                   /* there are more than the list has */
    struct hfd_backend_orphans_state as;
};

/** Lists orphans. It reads the labels of all resources. Thread: reader. */
HFD_MUST_CHECK hfd_rc hfd_orphans_list(struct hfd_txn *tx, const struct hfd_backend *ops,
                                       struct hfd_arena *mem, struct hfd_orphans *out,
                                       struct hfd_err *err);

/**
 * Adds the objects of an adapter of this program whose resource has no row here. An item has the
 * HyperFleet id of before, and its `error` names the object. Thread: reader.
 */
HFD_MUST_CHECK hfd_rc hfd_orphans_add_objects(const struct hfd_ctx *c, struct hfd_orphans *out);

/** A caller asked for the list, so that the backend should renew it. Never waits. Thread: any. */
void hfd_orphans_polled(const struct hfd_driver *d);

/**
 * Deletes an orphan in HyperFleet as a DELETE there would. A remote one is looked at once more and
 * deleted later.
 * @param id   of the orphan
 * @param out  as it is now, or was last; of a remote one: kind, id, name, and the label
 * @return HFD_OK, HFD_NOT_FOUND (no such resource, or no such orphan is known), HFD_CONFLICT (it is
 * no orphan)
 * Thread: writer.
 */
HFD_MUST_CHECK hfd_rc hfd_orphan_remove(const struct hfd_ctx *c, hfd_slice caller, hfd_slice id,
                                        struct hfd_fleet_deletion *out);

#endif
