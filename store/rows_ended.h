/*
 * Rows of ended instances: what adapters' reports said of their objects when an instance of a
 * subject of the history ended. They go with that history.
 */
#ifndef HFD_STORE_ROWS_ENDED_H
#define HFD_STORE_ROWS_ENDED_H

#include "store/kind.h"
#include "store/rows_history.h"

/** The report of an adapter on a cluster or nodepool, at the end of an instance. */
struct hfd_ended_row {
    enum hfd_history_about about;
    hfd_slice id;
    int64_t instance;
    hfd_slice fleet_id;
    hfd_slice adapter;
    enum hfd_kind kind; /* of the cluster or nodepool, as name */
    hfd_slice name;
    hfd_slice provider, cluster; /* where its objects are unless they say so */
    bool counted;                /* the adapter decided the status of the instance */
    int64_t verdict;             /* hfd_kept_verdict_format */
    hfd_slice counts;            /* hfd_object_counts_format */
    hfd_slice objects;           /* hfd_kept_add; empty = none, or too many */
};

struct hfd_ended_list {
    struct hfd_ended_row *rows;
    size_t count;
};

struct hfd_ended_query {
    struct hfd_history_subject subject;
    int64_t instance;
};

/**
 * Inserts or replaces, and removes the rows of all but the newest `keep` instances of the subject.
 */
HFD_MUST_CHECK hfd_rc hfd_ended_row_put(struct hfd_txn *tx, const struct hfd_ended_row *row,
                                        int64_t keep, struct hfd_err *err);
/** Lists the rows of an instance, by HyperFleet id and adapter. */
HFD_MUST_CHECK hfd_rc hfd_ended_row_list(struct hfd_txn *tx, const struct hfd_ended_query *query,
                                         struct hfd_arena *mem, struct hfd_ended_list *out,
                                         struct hfd_err *err);
/** Gives the oldest instance that has rows; 0 = none has. */
HFD_MUST_CHECK hfd_rc hfd_ended_row_oldest(struct hfd_txn *tx,
                                           const struct hfd_history_subject *subject, int64_t *out,
                                           struct hfd_err *err);
/** Removes all rows of a subject. */
HFD_MUST_CHECK hfd_rc hfd_ended_row_delete_all(struct hfd_txn *tx,
                                               const struct hfd_history_subject *subject,
                                               struct hfd_err *err);

#endif
