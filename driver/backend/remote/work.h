/* Which work is due against the remote HyperFleet. Thread: any, in a transaction. */
#ifndef HFD_REMOTE_WORK_H
#define HFD_REMOTE_WORK_H

#include "driver/backend/remote/policy.h"

/** Stands in the place of a GUResID for the search for orphans (orphans.h). No GUResID is "*". */
#define HFD_REMOTE_ORPHANS HFD_BACKEND_ORPHANS

enum hfd_remote_work_kind {
    HFD_REMOTE_WORK_RESOURCE, /* one driver resource */
    HFD_REMOTE_WORK_MANY,     /* observe all resources in progress, by lists */
    HFD_REMOTE_WORK_SEARCH,   /* search for orphans, by lists */
    HFD_REMOTE_WORK_ORPHAN    /* one orphan */
};

/** One piece of work: the subject of a pass. */
struct hfd_remote_work {
    hfd_slice guresid;  /* empty: MANY; HFD_REMOTE_ORPHANS: SEARCH */
    hfd_slice orphan;   /* empty, or the id of an orphan with this GUResID in its label */
    enum hfd_kind kind; /* of the orphan */
    int64_t shards;     /* that it is about: MANY has several */
};

/** Found from the fields. */
enum hfd_remote_work_kind hfd_remote_work_kind(const struct hfd_remote_work *work);

struct hfd_due_query {
    const struct hfd_remote_policy *policy;
    int64_t now_us;
    size_t limit;   /* counts work that has a pass already */
    int64_t shards; /* work of these alone (store/shard.h) */
};

struct hfd_due {
    struct hfd_remote_work *works; /* memory of the caller, for `limit` pieces */
    size_t count;
    int64_t next_us; /* when more work will be due; INT64_MAX = not known */
};

/**
 * Lists the work that is due: operations to carry out, then resources in progress, then orphans,
 * then settled resources and the search for orphans. Within each group the longest overdue is
 * first. One MANY stands for several resources in progress where lists are fewer requests.
 *
 * Work stays due until the first answer of its pass is taken. The caller runs one pass at a time
 * for each GUResID, and one MANY. If a pass ends without a request, or fails on our side, the
 * caller waits for watch_us before it begins that work again.
 *
 * @param mem  holds the texts of out->works
 * @return HFD_OK, HFD_NOMEM, HFD_IO, HFD_CORRUPT
 */
HFD_MUST_CHECK hfd_rc hfd_remote_due(struct hfd_txn *tx, const struct hfd_due_query *query,
                                     struct hfd_arena *mem, struct hfd_due *out,
                                     struct hfd_err *err);

/**
 * Makes a resource, or the search for orphans, due soon because a client polls it. Changes nothing
 * if it was observed after older_us, waits after a failure, or waits for another resource.
 *
 * Everything that is polled within a quarter of (now_us - older_us) becomes due at the end of that
 * quarter, so that one list serves all.
 *
 * @param older_us  wall clock: the oldest observation that the client accepts
 * Thread: writer.
 */
HFD_MUST_CHECK hfd_rc hfd_remote_hurry(struct hfd_txn *tx, hfd_slice guresid, int64_t older_us,
                                       int64_t now_us, struct hfd_err *err);

#endif
