/*
 * Walks over driver resources for lists of them: only the columns that decide whether a resource
 * is listed, and where. Thread: any reader, inside a transaction function.
 */
#ifndef HFD_STORE_ROWS_OVERVIEW_H
#define HFD_STORE_ROWS_OVERVIEW_H

#include "driver/base/arena.h"
#include "store/rows_resource.h"

/** A resource as a walk shows it. Its texts live until the walk goes on. */
struct hfd_overview_row {
    int64_t seq;
    hfd_slice guresid, type;
    enum hfd_kind kind;
    int state; /* enum hfd_state */
    bool degraded;
    int64_t op_started_us, op_expected_us, op_estimate_us, op_deadline_us;
    int64_t updated_us;
    hfd_slice cause;
    int64_t drift_count;
    hfd_slice name;   /* of its cluster, or of the nodepool of a nodepool resource; empty = none */
    hfd_slice labels; /* of the same: JSON object, or empty */
};

enum hfd_overview_way {
    HFD_OVERVIEW_BARE,    /* all, without name and labels */
    HFD_OVERVIEW_NAMED,   /* all, without labels */
    HFD_OVERVIEW_ALL,     /* all */
    HFD_OVERVIEW_LABEL,   /* those with the label key=value */
    HFD_OVERVIEW_TROUBLE, /* all but what is ready and not degraded, without name and labels */
    HFD_OVERVIEW_QUIET,   /* what is ready and not degraded, with seq above `from`, in their order;
                             without name and labels */
    HFD_OVERVIEW_DRIFTED, /* those with a drift_count, without name and labels */
    HFD_OVERVIEW_NEWEST   /* all with seq below `from`, the newest first; likewise */
};

struct hfd_overview_walk {
    enum hfd_overview_way way;
    int64_t from;
    hfd_slice key, value;
    /** Sees one resource. @return false to end the walk */
    bool (*see)(void *ctx, const struct hfd_overview_row *row);
    void *ctx;
};

/** Shows the resources one by one. */
HFD_MUST_CHECK hfd_rc hfd_overview_row_walk(struct hfd_txn *tx,
                                            const struct hfd_overview_walk *walk,
                                            struct hfd_err *err);
/** Counts the resources that drifted and are ready. */
HFD_MUST_CHECK hfd_rc hfd_drifted_row_count(struct hfd_txn *tx, int64_t *out, struct hfd_err *err);
/** Counts all resources. */
HFD_MUST_CHECK hfd_rc hfd_overview_row_count(struct hfd_txn *tx, int64_t *out, struct hfd_err *err);

/** A resource whose operation has a deadline. */
struct hfd_deadline_row {
    hfd_slice guresid;
    int64_t deadline_us;
};
struct hfd_deadline_list {
    struct hfd_deadline_row *rows;
    size_t count;
};
struct hfd_deadline_query {
    int64_t after_us; /* only later deadlines */
    int64_t limit;
};
/** Lists creations and updates by their deadline, the earliest first. */
HFD_MUST_CHECK hfd_rc hfd_deadline_row_list(struct hfd_txn *tx,
                                            const struct hfd_deadline_query *query,
                                            struct hfd_arena *mem, struct hfd_deadline_list *out,
                                            struct hfd_err *err);
/** Lists the resources whose drift will be mended, by the time of that. */
HFD_MUST_CHECK hfd_rc hfd_repair_row_list(struct hfd_txn *tx, int64_t limit, struct hfd_arena *mem,
                                          struct hfd_deadline_list *out, struct hfd_err *err);

#endif
