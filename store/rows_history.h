/* Rows of the history of driver resources. */
#ifndef HFD_STORE_ROWS_HISTORY_H
#define HFD_STORE_ROWS_HISTORY_H

#include "driver/base/arena.h"
#include "store/store.h"

/** Something that happened to a driver resource. */
struct hfd_history_row {
    hfd_slice guresid;
    int64_t seq; /* from 1 on, without gaps but at the old end; add does not use it */
    hfd_slice incarnation;
    int64_t at_us;
    int from, to; /* enum hfd_state; equal when only `what` counts */
    hfd_slice what;
    int64_t generation; /* of its cluster, or nodepool, in HyperFleet; 0 = unknown */
    hfd_slice text;
};

struct hfd_history_list {
    struct hfd_history_row *rows;
    size_t count;
};

/** Adds a row behind the last one, and removes all but the newest `keep`. */
HFD_MUST_CHECK hfd_rc hfd_history_row_add(struct hfd_txn *tx, const struct hfd_history_row *row,
                                          int64_t keep, struct hfd_err *err);
/** Lists the history of a driver resource, oldest first. */
HFD_MUST_CHECK hfd_rc hfd_history_row_list(struct hfd_txn *tx, hfd_slice guresid,
                                           struct hfd_arena *mem, struct hfd_history_list *out,
                                           struct hfd_err *err);

#endif
