/* Orphans at a remote HyperFleet, as they were last seen. */
#ifndef HFD_STORE_ROWS_REMOTE_ORPHAN_H
#define HFD_STORE_ROWS_REMOTE_ORPHAN_H

#include "store/rows_orphan.h"
#include "store/shard.h"

struct hfd_remote_orphan_row {
    struct hfd_orphan_row orphan;
    int64_t seen_us;
    int64_t due_us; /* when a pass looks at it alone; INT64_MAX = only with all others */
    int64_t tries;  /* failures in a row */
    int64_t shard;  /* read only: the bit of its label's shard */
};

struct hfd_remote_orphan_list {
    struct hfd_remote_orphan_row *rows;
    size_t count;
};

struct hfd_remote_orphan_query {
    enum hfd_kind kind; /* of list */
    int64_t now_us;     /* of due and next */
    int64_t limit;
    int64_t shards; /* of due and next: a set of them (shard.h) */
};

/** @return HFD_NOT_FOUND */
HFD_MUST_CHECK hfd_rc hfd_remote_orphan_row_get(struct hfd_txn *tx, hfd_slice id,
                                                struct hfd_arena *mem,
                                                struct hfd_remote_orphan_row *out,
                                                struct hfd_err *err);
/** Inserts or replaces. */
HFD_MUST_CHECK hfd_rc hfd_remote_orphan_row_put(struct hfd_txn *tx,
                                                const struct hfd_remote_orphan_row *row,
                                                struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_remote_orphan_row_delete(struct hfd_txn *tx, hfd_slice id,
                                                   struct hfd_err *err);
/** Removes the rows of a cluster's nodepools. */
HFD_MUST_CHECK hfd_rc hfd_remote_orphan_row_delete_of(struct hfd_txn *tx, hfd_slice owner_id,
                                                      struct hfd_err *err);
/** Lists a kind by GUResID and age. */
HFD_MUST_CHECK hfd_rc hfd_remote_orphan_row_list(struct hfd_txn *tx,
                                                 const struct hfd_remote_orphan_query *query,
                                                 struct hfd_arena *mem,
                                                 struct hfd_remote_orphan_list *out,
                                                 struct hfd_err *err);
/** Lists both kinds that are due at now_us, the longest overdue first. */
HFD_MUST_CHECK hfd_rc hfd_remote_orphan_row_due(struct hfd_txn *tx,
                                                const struct hfd_remote_orphan_query *query,
                                                struct hfd_arena *mem,
                                                struct hfd_remote_orphan_list *out,
                                                struct hfd_err *err);
/** Gives the next time after now_us at which an orphan is due; INT64_MAX = never. */
HFD_MUST_CHECK hfd_rc hfd_remote_orphan_row_next(struct hfd_txn *tx,
                                                 const struct hfd_remote_orphan_query *query,
                                                 int64_t *out, struct hfd_err *err);
/** Makes those of a kind that were not seen since since_us due at due_us. */
HFD_MUST_CHECK hfd_rc hfd_remote_orphan_row_unseen(struct hfd_txn *tx, enum hfd_kind kind,
                                                   int64_t since_us, int64_t due_us,
                                                   struct hfd_err *err);

#endif
