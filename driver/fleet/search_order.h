/*
 * The order of lists: the parameters orderBy and order. Source: HyperFleet API, "orderBy";
 * driver/README.md, decision 2. Thread: any.
 */
#ifndef HFD_FLEET_SEARCH_ORDER_H
#define HFD_FLEET_SEARCH_ORDER_H

#include "driver/base/arena.h"
#include "store/filter.h"
#include "store/kind.h"

/** The order that a request asks for. */
struct hfd_order_text {
    enum hfd_kind kind;
    hfd_slice by;        /* "name desc, created_time"; blank = created_time desc */
    hfd_slice direction; /* "asc", "desc" or "": for items of `by` that name none */
    bool of_reports;     /* the fields are those of reports; kind is not used */
};

struct hfd_orders {
    const struct hfd_order *items;
    size_t count;
};

/**
 * Parses an order.
 * @param out  lives in mem, and borrows the text
 * @return HFD_OK, HFD_BAD_REQUEST, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_search_order(const struct hfd_order_text *in, struct hfd_arena *mem,
                                       struct hfd_orders *out, struct hfd_err *err);

#endif
