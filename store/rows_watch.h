/* Rows of documents that age: when each becomes stale, beside the report that brought it. */
#ifndef HFD_STORE_ROWS_WATCH_H
#define HFD_STORE_ROWS_WATCH_H

#include "driver/base/arena.h"
#include "store/store.h"

struct hfd_watch_row {
    hfd_slice fleet_id, adapter;
    int64_t stale_us; /* the last microsecond at which the document is not stale */
    bool told;        /* the staleness stands in the report */
};

struct hfd_watch_list {
    struct hfd_watch_row *rows;
    size_t count;
};

/** Reads the row of fleet_id and adapter in `key`. @return HFD_OK, HFD_NOT_FOUND */
HFD_MUST_CHECK hfd_rc hfd_watch_row_get(struct hfd_txn *tx, const struct hfd_watch_row *key,
                                        struct hfd_arena *mem, struct hfd_watch_row *out,
                                        struct hfd_err *err);
/** Inserts or replaces. */
HFD_MUST_CHECK hfd_rc hfd_watch_row_put(struct hfd_txn *tx, const struct hfd_watch_row *row,
                                        struct hfd_err *err);
/** Removes the row of fleet_id and adapter in `key`; without adapter all of fleet_id. */
HFD_MUST_CHECK hfd_rc hfd_watch_row_delete(struct hfd_txn *tx, const struct hfd_watch_row *key,
                                           struct hfd_err *err);

struct hfd_watch_query {
    int64_t before_us; /* stale_us is below it */
    int64_t limit;
};

/** Gives the earliest stale_us of rows that are not told; INT64_MAX = there is none. */
HFD_MUST_CHECK hfd_rc hfd_watch_row_next(struct hfd_txn *tx, int64_t *out, struct hfd_err *err);

/** Lists rows that are stale and not told, the longest stale first. */
HFD_MUST_CHECK hfd_rc hfd_watch_row_stale(struct hfd_txn *tx, const struct hfd_watch_query *query,
                                          struct hfd_arena *mem, struct hfd_watch_list *out,
                                          struct hfd_err *err);

#endif
