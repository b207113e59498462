/*
 * Lists of HyperFleet resources. A checked filter, an order and a page become SQL. The plan is
 * chosen here, so that a query on indexed fields never scans the whole fleet. Text is composed of
 * fixed fragments; every value is bound. Thread: that of the transaction.
 */
#ifndef HFD_STORE_SEARCH_H
#define HFD_STORE_SEARCH_H

#include "store/filter.h"
#include "store/rows_fleet.h"

struct hfd_fleet_query {
    enum hfd_kind kind;
    hfd_slice owner_id;              /* empty = of every cluster */
    const struct hfd_filter *filter; /* NULL = all */
    const struct hfd_order *order;   /* then newest first */
    size_t order_count;
    int64_t offset, limit;
};

/** A page and the number of all matches. @return HFD_OK, HFD_NOMEM, HFD_IO, HFD_CORRUPT */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_search(struct hfd_txn *tx, const struct hfd_fleet_query *query,
                                           struct hfd_arena *mem, struct hfd_fleet_list *out,
                                           struct hfd_err *err);

#endif
