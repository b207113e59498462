/*
 * The nodepools of a cluster in the unit of work. Once they were listed, their heads are kept, so
 * that the next list reads nothing.
 *
 * Thread: that of the transaction.
 */
#ifndef HFD_STORE_FLEET_CHILDREN_H
#define HFD_STORE_FLEET_CHILDREN_H

#include "store/rows_fleet.h"
#include "store/unit.h"

/** Heads of HyperFleet resources, by the id of their cluster and their own. Never written. */
extern const struct hfd_unit_form hfd_fleet_child_form;

/** Notes a row that is new or has changed. */
void hfd_fleet_child_keep(struct hfd_txn *tx, const struct hfd_fleet_row *row);
/** Notes that a row is gone. */
void hfd_fleet_child_lose(struct hfd_txn *tx, hfd_slice id);

/**
 * Replaces the id `from` by `to` in everything that refers to a HyperFleet resource: nodepools,
 * parts, driver resources.
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_refer(struct hfd_txn *tx, hfd_slice from, hfd_slice to,
                                          struct hfd_arena *mem, struct hfd_err *err);

#endif
