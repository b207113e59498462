/* Orphans of the embedded HyperFleet: resources with our label that are no part. */
#ifndef HFD_STORE_ROWS_ORPHAN_H
#define HFD_STORE_ROWS_ORPHAN_H

#include "driver/base/arena.h"
#include "store/kind.h"
#include "store/store.h"

struct hfd_orphan_row {
    hfd_slice label; /* its value */
    hfd_slice id;
    enum hfd_kind kind;
    hfd_slice owner_id;
    hfd_slice name;
    int64_t generation;
    bool ready;
    int64_t created_us, deleted_us;
    hfd_slice created_by;
    int64_t wanted_us; /* of a remote: when its removal was ordered, and is not finished; 0 = not */
    hfd_slice error;   /* of a remote: why it cannot be deleted or looked at; empty = no error */
};

struct hfd_orphan_list {
    struct hfd_orphan_row *rows;
    size_t count;
};

struct hfd_orphan_query {
    enum hfd_kind kind;
    hfd_slice key;   /* the label */
    hfd_slice value; /* p == NULL: any */
    int64_t limit;
};

/** Lists resources with the label that are no part, by value and age; also deleted ones. */
HFD_MUST_CHECK hfd_rc hfd_orphan_row_list(struct hfd_txn *tx, const struct hfd_orphan_query *query,
                                          struct hfd_arena *mem, struct hfd_orphan_list *out,
                                          struct hfd_err *err);

#endif
