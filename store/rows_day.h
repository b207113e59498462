/* Orders of late, and how long they took, from the history. Thread: that of the transaction. */
#ifndef HFD_STORE_ROWS_DAY_H
#define HFD_STORE_ROWS_DAY_H

#include "driver/base/arena.h"
#include "store/store.h"

/** The most entries of the history that are looked at, the newest. */
#define HFD_DAY_MAX 10000

struct hfd_day {
    int64_t orders;   /* creations and changes that were asked for */
    int64_t *took_us; /* from an order until its resource was ready, newest first */
    size_t took_count;
    bool more; /* there may be others, which were not looked at */
};

/**
 * Reads the orders, and the ends of orders, at or after a time.
 * @return HFD_OK, HFD_NOMEM, HFD_IO, HFD_CORRUPT
 */
HFD_MUST_CHECK hfd_rc hfd_day_read(struct hfd_txn *tx, int64_t since_us, struct hfd_arena *mem,
                                   struct hfd_day *out, struct hfd_err *err);

#endif
