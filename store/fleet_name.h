/* Checks that a HyperFleet resource may take its name. Thread: that of the transaction. */
#ifndef HFD_STORE_FLEET_NAME_H
#define HFD_STORE_FLEET_NAME_H

#include "store/rows_fleet.h"
#include "store/unit.h"

/** Fails with HFD_CONFLICT: the name or the id is taken. */
hfd_rc hfd_fleet_name_taken(const struct hfd_fleet_row *row, struct hfd_err *err);
/**
 * Looks for the name where a write that is refused undoes the whole group. The names in a cluster
 * that the job itself has made need no look.
 * @param row    its seq is 0 when it is to be inserted
 * @param own    the kept row of its id, or NULL
 * @param owner  the kept row of its owner, or NULL
 * @return HFD_OK, HFD_CONFLICT, or as hfd_fleet_row_by_name
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_name_check(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                                           const struct hfd_kept *own, const struct hfd_kept *owner,
                                           struct hfd_err *err);

#endif
