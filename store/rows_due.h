/*
 * Which clusters and nodepools are due: those that changed, in the order of the changes. Each has
 * one number, that of its last change, so the list is never longer than the fleet. It is in the row
 * of the resource. When that is removed, the number stays for a while in a row of its own.
 *
 * Numbers rise in the order of commits (store/unit.h). A reader that goes on behind the last
 * number that it saw misses no change. Thread: that of the transaction.
 */
#ifndef HFD_STORE_ROWS_DUE_H
#define HFD_STORE_ROWS_DUE_H

#include "driver/base/arena.h"
#include "store/kind.h"
#include "store/rows_fleet.h"

struct hfd_due_row {
    int64_t seq;
    hfd_slice id;
    enum hfd_kind kind;
    hfd_slice owner_id; /* the cluster of a nodepool, else empty */
    int64_t generation;
    hfd_slice labels; /* JSON object of strings */
    int64_t at_us;    /* when it became due */
    int64_t gone_us;  /* when it was removed; 0 = it is there */
    hfd_slice trace;  /* traceparent of the change; may be empty */
};

struct hfd_due_page {
    struct hfd_due_row *rows; /* the oldest number first */
    size_t count;
    int64_t last;  /* where to go on: that of the last row, or `after` */
    int64_t floor; /* the highest number that was forgotten; INT64_MAX = `after` was never reached:
                      it is of a store that was lost; 0 = none */
};

/** Gives the number of the next change. Thread: writer. */
HFD_MUST_CHECK hfd_rc hfd_due_next(struct hfd_txn *tx, int64_t *out, struct hfd_err *err);
/** Keeps the number of a row that is removed. One that never had a number: nothing. */
HFD_MUST_CHECK hfd_rc hfd_due_keep(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                                   int64_t gone_us, struct hfd_err *err);
/** Removed clusters and nodepools that are forgotten. */
struct hfd_due_old {
    int64_t before_us; /* removed before this, if all targets of events have it */
    int64_t held_us;   /* removed before this, whatever they have */
    int64_t limit;     /* rows at a time */
};
/**
 * Forgets what is old.
 * @param more  some are left
 */
HFD_MUST_CHECK hfd_rc hfd_due_forget(struct hfd_txn *tx, const struct hfd_due_old *old, bool *more,
                                     struct hfd_err *err);

/** Gives the number up to which a reader sees all; 0 = nothing was ever due. */
HFD_MUST_CHECK hfd_rc hfd_due_last(struct hfd_txn *tx, int64_t *out, struct hfd_err *err);
/** Lists up to `limit` rows behind the number `after`. */
HFD_MUST_CHECK hfd_rc hfd_due_list(struct hfd_txn *tx, int64_t after, int64_t limit,
                                   struct hfd_arena *mem, struct hfd_due_page *out,
                                   struct hfd_err *err);

#endif
