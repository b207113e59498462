/* Rows of the last uses of tokens. The tokens themselves are in the tokens file. */
#ifndef HFD_STORE_ROWS_TOKEN_H
#define HFD_STORE_ROWS_TOKEN_H

#include "driver/base/arena.h"
#include "store/store.h"

struct hfd_token_use_row {
    hfd_slice name;
    int64_t created_us; /* tells a token from an earlier one of the same name */
    int64_t used_us;
    hfd_slice from; /* address of the caller */
};

struct hfd_token_uses {
    struct hfd_arena *mem; /* of the rows */
    struct hfd_token_use_row *rows;
    size_t count;
};

/** Inserts or replaces the row of a name. */
HFD_MUST_CHECK hfd_rc hfd_token_use_put(struct hfd_txn *tx, const struct hfd_token_use_row *row,
                                        struct hfd_err *err);
/** Lists all rows, by name. */
HFD_MUST_CHECK hfd_rc hfd_token_use_list(struct hfd_txn *tx, struct hfd_arena *mem,
                                         struct hfd_token_uses *out, struct hfd_err *err);

#endif
