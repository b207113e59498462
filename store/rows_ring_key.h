/* Rows of the keys that the database was used with, and counts of what they sealed. */
#ifndef HFD_STORE_ROWS_RING_KEY_H
#define HFD_STORE_ROWS_RING_KEY_H

#include "driver/base/arena.h"
#include "store/store.h"

struct hfd_ring_key_row {
    hfd_slice id;   /* hex */
    hfd_slice mark; /* changes with the key */
};

struct hfd_ring_key_list {
    struct hfd_ring_key_row *rows;
    size_t count;
};

/** Lists all. */
HFD_MUST_CHECK hfd_rc hfd_ring_key_row_list(struct hfd_txn *tx, struct hfd_arena *mem,
                                            struct hfd_ring_key_list *out, struct hfd_err *err);
/** Inserts or replaces. */
HFD_MUST_CHECK hfd_rc hfd_ring_key_row_put(struct hfd_txn *tx, const struct hfd_ring_key_row *row,
                                           struct hfd_err *err);
/** Removes a key; an absent one is no error. */
HFD_MUST_CHECK hfd_rc hfd_ring_key_row_delete(struct hfd_txn *tx, hfd_slice id,
                                              struct hfd_err *err);

/** A key, as sealed texts and digests begin with it, and as cookies do. */
struct hfd_ring_key_marks {
    hfd_slice id;     /* its bytes */
    hfd_slice cookie; /* the first characters of a cookie */
};
/** The key of a row with sealed secrets. */
struct hfd_sealed_key {
    hfd_slice first, second; /* a GUResID and ''; or HyperFleet id and adapter */
};
struct hfd_sealed_list {
    struct hfd_sealed_key *rows;
    size_t count;
};
/** The tables with sealed secrets. */
enum hfd_sealed_table {
    HFD_SEALED_RESOURCES, /* outputs */
    HFD_SEALED_REPORTS,
    HFD_SEALED_ORDERS,
    HFD_SEALED_COUNT
};
/** Which rows hfd_sealed_row_list gives: a page of them. */
struct hfd_sealed_query {
    enum hfd_sealed_table table;
    hfd_slice active; /* bytes of the active key's id: rows that it sealed are left out */
    struct hfd_sealed_key after;
};
/** Lists rows with secrets that another key sealed, in the order of their keys; 50 at most. */
HFD_MUST_CHECK hfd_rc hfd_sealed_row_list(struct hfd_txn *tx, const struct hfd_sealed_query *query,
                                          struct hfd_arena *mem, struct hfd_sealed_list *out,
                                          struct hfd_err *err);

/** Counts rows whose cookie, digests or secrets need this key. Reads whole tables. */
HFD_MUST_CHECK hfd_rc hfd_ring_key_uses(struct hfd_txn *tx, const struct hfd_ring_key_marks *key,
                                        int64_t *out, struct hfd_err *err);

#endif
