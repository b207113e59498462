/*
 * Rows of targets of events: the number up to which a target has all events of a stream.
 * Thread: that of the transaction.
 */
#ifndef HFD_STORE_ROWS_OUTBOX_H
#define HFD_STORE_ROWS_OUTBOX_H

#include "driver/base/arena.h"
#include "driver/base/clock.h"
#include "store/txn.h"

/** An event that a target lacks is kept, and tried, for so long. */
#define HFD_OUTBOX_KEEP_US (72 * 3600 * HFD_US_PER_S)

/** The streams of events. The numbers are stored. */
enum hfd_stream {
    HFD_STREAM_RECONCILE, /* of clusters and nodepools: hfd_due_list */
    HFD_STREAM_STATES,    /* of driver resources: the history */
    HFD_STREAMS
};

struct hfd_outbox_row {
    hfd_slice name; /* of the target */
    int64_t stream;
    int64_t seq;        /* it has all events up to this number */
    int64_t failing_us; /* since when it has refused the oldest one; 0 = it has not */
};

struct hfd_outbox_list {
    struct hfd_outbox_row *rows;
    size_t count;
};

/** Lists all targets with their streams. */
HFD_MUST_CHECK hfd_rc hfd_outbox_row_list(struct hfd_txn *tx, struct hfd_arena *mem,
                                          struct hfd_outbox_list *out, struct hfd_err *err);
/** Inserts or replaces. */
HFD_MUST_CHECK hfd_rc hfd_outbox_row_put(struct hfd_txn *tx, const struct hfd_outbox_row *row,
                                         struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_outbox_row_delete(struct hfd_txn *tx, const struct hfd_outbox_row *row,
                                            struct hfd_err *err);
/** Gives the number up to which all targets have a stream; INT64_MAX = none has it. */
HFD_MUST_CHECK hfd_rc hfd_outbox_row_lowest(struct hfd_txn *tx, enum hfd_stream stream,
                                            int64_t *out, struct hfd_err *err);

#endif
