/* Rows of the secrets that orders brought. They are removed with their resource. */
#ifndef HFD_STORE_ROWS_ORDER_H
#define HFD_STORE_ROWS_ORDER_H

#include "driver/base/arena.h"
#include "store/store.h"

struct hfd_order_row {
    hfd_slice guresid;
    hfd_slice secrets; /* sealed */
};

/** @return HFD_OK, HFD_NOT_FOUND */
HFD_MUST_CHECK hfd_rc hfd_order_row_get(struct hfd_txn *tx, hfd_slice guresid,
                                        struct hfd_arena *mem, struct hfd_order_row *out,
                                        struct hfd_err *err);
/** Inserts or replaces. */
HFD_MUST_CHECK hfd_rc hfd_order_row_put(struct hfd_txn *tx, const struct hfd_order_row *row,
                                        struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_order_row_delete(struct hfd_txn *tx, hfd_slice guresid,
                                           struct hfd_err *err);

#endif
