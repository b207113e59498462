/*
 * What happened to a driver resource: changes of its state, and of its health once it is ready.
 * Kept in the transaction that makes the change, the newest HFD_HISTORY_MAX of a resource, until
 * the resource is gone; and counted. That it was made is told by its own row (created_us) and not
 * written again. Thread: writer, inside a transaction function.
 */
#ifndef HFD_CORE_HISTORY_H
#define HFD_CORE_HISTORY_H

#include "driver/core/outcome.h"
#include "store/rows_resource.h"

#define HFD_HISTORY_MAX 100

/**
 * A resource left a state: `what` is "update", "retarget", "retry", "ready", "failed" (text: the
 * sentence), or "delete". The arrow must exist. Counted when decided: a commit that fails ends the
 * process anyway.
 * @param row         as it is now: updated_us is the time
 * @param generation  of its cluster or nodepool in HyperFleet; 0 = unknown
 */
HFD_MUST_CHECK hfd_rc hfd_history_moved(struct hfd_txn *tx, enum hfd_state from,
                                        const struct hfd_resource_row *row, int64_t generation,
                                        struct hfd_err *err);

/**
 * A row was made again for what was found in HyperFleet: "adopted". Counted as a move from absent.
 */
HFD_MUST_CHECK hfd_rc hfd_history_adopted(struct hfd_txn *tx, const struct hfd_resource_row *row,
                                          int64_t generation, struct hfd_err *err);

/** A resource is ready: "degraded" and, once it is healthy, "recovered". Sets row->degraded. */
HFD_MUST_CHECK hfd_rc hfd_history_health(struct hfd_txn *tx, const struct hfd_outcome *outcome,
                                         int64_t generation, int64_t now_us, struct hfd_arena *mem,
                                         struct hfd_resource_row *row, struct hfd_err *err);

#endif
