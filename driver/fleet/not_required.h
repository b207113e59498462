/*
 * Counts the reports of adapters that are not required, which often have a misspelt name. The first
 * report of each such adapter is logged, with the required name that is near. Thread: writer,
 * inside a transaction function.
 */
#ifndef HFD_FLEET_NOT_REQUIRED_H
#define HFD_FLEET_NOT_REQUIRED_H

#include "driver/base/slice.h"
#include "driver/fleet/aggregate.h"

struct hfd_txn;

/**
 * Counts a report, once the transaction is on disk. Writes a log line as well if it is the first
 * report of this adapter that the process counts.
 * @param required  the adapters that are required for the kind of resource; lives for ever
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_count_not_required(struct hfd_txn *tx, hfd_slice adapter,
                                                   const struct hfd_adapter_names *required,
                                                   struct hfd_err *err);

/**
 * Finds the required adapter whose name a given one misspells.
 * @return its name, which lives as long as the list; empty when none is near
 */
hfd_slice hfd_fleet_required_near(hfd_slice adapter, const struct hfd_adapter_names *required);

#endif
