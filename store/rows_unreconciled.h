/* Counts of HyperFleet resources that are not reconciled. */
#ifndef HFD_STORE_ROWS_UNRECONCILED_H
#define HFD_STORE_ROWS_UNRECONCILED_H

#include "driver/base/arena.h"
#include "store/kind.h"
#include "store/store.h"

/** Resources whose Reconciled is False. */
struct hfd_unreconciled {
    int64_t count, stuck;
    int64_t oldest_us; /* the earliest pending_us; INT64_MAX = there is none */
};

/** They by kind, and by whether deletion was requested. */
struct hfd_unreconciled_counts {
    struct hfd_unreconciled of[HFD_KIND_NODEPOOL + 1][2];
};

/** Counts the resources whose Reconciled is False; stuck since before `stuck_before_us`. */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_unreconciled(struct hfd_txn *tx, int64_t stuck_before_us,
                                                 struct hfd_arena *mem,
                                                 struct hfd_unreconciled_counts *out,
                                                 struct hfd_err *err);

#endif
