/*
 * Rows of the work against a remote HyperFleet: one for each driver resource.
 *
 * Orphans at a remote HyperFleet, as they were last seen.
 */
#ifndef HFD_STORE_ROWS_REMOTE_H
#define HFD_STORE_ROWS_REMOTE_H

#include "driver/base/arena.h"
#include "store/rows_fleet.h"

/**
 * How closely the driver watches a resource at the remote. Lower numbers go first. The numbers are
 * stored.
 */
enum hfd_watched {
    HFD_WATCHED_NOT = 0,     /* the next pass has something to do or to find out */
    HFD_WATCHED_CLOSELY = 1, /* in progress: it is only looked at, together with others */
    HFD_WATCHED_IDLY = 2     /* settled: its health is looked at */
};

struct hfd_remote_row {
    hfd_slice guresid;
    int goal; /* enum hfd_backend_goal */
    enum hfd_watched watched;
    int64_t due_us;     /* INT64_MAX = it waits for something else */
    int64_t checked_us; /* last seen at the remote */
    int64_t full_us;    /* last seen with all reports */
    int64_t unsure_us;  /* when a creation was sent that was not answered; 0 = never */
    int64_t behind_us;  /* since when the remote shows an earlier generation than before; 0 = not */
    int64_t tries;      /* failures in a row */
    int64_t refusals;   /* refused credentials in a row */
    bool later_names;   /* the remote says Reconciled for Ready */
    hfd_slice error;    /* why the last try failed; empty = it did not */
};

struct hfd_remote_list {
    struct hfd_remote_row *rows;
    size_t count;
};

struct hfd_remote_due {
    enum hfd_watched watched;
    int64_t now_us;
    int64_t limit;
};

/** @return HFD_NOT_FOUND */
HFD_MUST_CHECK hfd_rc hfd_remote_row_get(struct hfd_txn *tx, hfd_slice guresid,
                                         struct hfd_arena *mem, struct hfd_remote_row *out,
                                         struct hfd_err *err);
/** Inserts or replaces. */
HFD_MUST_CHECK hfd_rc hfd_remote_row_put(struct hfd_txn *tx, const struct hfd_remote_row *row,
                                         struct hfd_err *err);
/** Removes rows that remember an absence (goal 4) and were checked before `before_us`. */
HFD_MUST_CHECK hfd_rc hfd_remote_row_drop_absent(struct hfd_txn *tx, int64_t before_us,
                                                 struct hfd_err *err);
/** Lists what is due at now_us, the longest overdue first. */
HFD_MUST_CHECK hfd_rc hfd_remote_row_due(struct hfd_txn *tx, const struct hfd_remote_due *query,
                                         struct hfd_arena *mem, struct hfd_remote_list *out,
                                         struct hfd_err *err);
/** Gives the next time after now_us at which something is due; INT64_MAX = never. No limit. */
HFD_MUST_CHECK hfd_rc hfd_remote_row_next(struct hfd_txn *tx, const struct hfd_remote_due *query,
                                          int64_t *out, struct hfd_err *err);
/** Counts what was due at now_us. */
HFD_MUST_CHECK hfd_rc hfd_remote_row_count(struct hfd_txn *tx, int64_t now_us, int64_t *out,
                                           struct hfd_err *err);
/** Makes what is closely watched, and was due at until_us, due at due_us. */
HFD_MUST_CHECK hfd_rc hfd_remote_row_postpone(struct hfd_txn *tx, int64_t until_us, int64_t due_us,
                                              struct hfd_err *err);
/** As postpone; after the second time in a row the resource gets a pass of its own. */
HFD_MUST_CHECK hfd_rc hfd_remote_row_part(struct hfd_txn *tx, int64_t until_us, int64_t due_us,
                                          struct hfd_err *err);
/** Ends the close watch of what was due at until_us. */
HFD_MUST_CHECK hfd_rc hfd_remote_row_unwatch(struct hfd_txn *tx, int64_t until_us,
                                             struct hfd_err *err);
/** Makes all that have nodepools in a cluster due at now_us at the latest. */
HFD_MUST_CHECK hfd_rc hfd_remote_row_wake(struct hfd_txn *tx, hfd_slice cluster_id, int64_t now_us,
                                          struct hfd_err *err);

struct hfd_remote_orphan_row {
    struct hfd_orphan_row orphan;
    int64_t seen_us;
    int64_t due_us; /* when a pass looks at it alone; INT64_MAX = only with all others */
    int64_t tries;  /* failures in a row */
};

struct hfd_remote_orphan_list {
    struct hfd_remote_orphan_row *rows;
    size_t count;
};

struct hfd_remote_orphan_query {
    enum hfd_kind kind; /* of list */
    int64_t now_us;     /* of due and next */
    int64_t limit;
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
