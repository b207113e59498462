/* Which work is due against the remote HyperFleet. Thread: any, in a transaction. */
#ifndef HFD_REMOTE_WORK_H
#define HFD_REMOTE_WORK_H

#include "driver/backend/backend.h"
#include "driver/base/err.h"
#include "driver/base/slice.h"
#include "store/kind.h"
#include "store/rows_remote.h"

struct hfd_asked;
struct hfd_pass_rows;
struct hfd_remote_answer;
struct hfd_remote_policy;
struct hfd_take;

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
};

/** Found from the fields. */
enum hfd_remote_work_kind hfd_remote_work_kind(const struct hfd_remote_work *work);

struct hfd_work_query {
    const struct hfd_remote_policy *policy;
    int64_t now_us;
    size_t limit; /* counts work that has a pass already */
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
HFD_MUST_CHECK hfd_rc hfd_remote_due(struct hfd_txn *tx, const struct hfd_work_query *query,
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

/*
 * When work is due again: after a failure, after a pass that came to its end, and how closely a
 * resource is observed. Thread: writer, inside a transaction function.
 */

/**
 * Ends the pass as failed; its work is due again after a back-off. The text is kept as the trouble
 * of the resource (wire.h). @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_due_later(struct hfd_take *t, struct hfd_err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/** The same, with what the answer itself says. */
HFD_MUST_CHECK hfd_rc hfd_due_later_by_answer(struct hfd_take *t, struct hfd_err *err);

/** Returns whether this HyperFleet will never answer such a list. */
bool hfd_due_cannot_list(const struct hfd_take *t);

/** The pause after the n-th failure in a row, with jitter; not less than Retry-After. */
int64_t hfd_due_backoff_us(const struct hfd_remote_policy *policy, int64_t tries,
                           const struct hfd_remote_answer *answer);

/** The interval less up to a tenth: work that began together does not stay together. */
int64_t hfd_due_jitter_us(const struct hfd_remote_policy *policy, int64_t interval_us);

/** Returns whether no operation is in progress: the resource is only observed. */
bool hfd_due_is_settled(const struct hfd_pass_rows *rows);

/** How the resource is observed: as settled, with others by lists, or by a pass of its own. */
enum hfd_watched hfd_due_watched(const struct hfd_pass_rows *rows);

/** The time to the next pass after one that came to its end. */
int64_t hfd_due_interval_us(const struct hfd_take *t);

/**
 * A twentieth of the time since then, between watch_us and idle_us: the longer something takes, the
 * less often it is looked at.
 */
int64_t hfd_due_late_us(const struct hfd_take *t, int64_t since_us);

/*
 * GUResIDs that clients poll, from many threads to one. Bounded, and never waits. Ignores a name
 * that waits already, or was taken less than `again_us` ago. Forgets names if too many come at
 * once: clients poll again. Thread: push any; the rest, the receiver.
 */

#define HFD_ASKED_ID_MAX 63

struct hfd_asked_id {
    size_t len;
    char text[HFD_ASKED_ID_MAX];
};

/** @param capacity  the number of names; a multiple of 4 */
HFD_MUST_CHECK hfd_rc hfd_asked_new(size_t capacity, int64_t again_us, struct hfd_asked **out,
                                    struct hfd_err *err);
/** Accepts NULL. */
void hfd_asked_free(struct hfd_asked *a);

/**
 * Adds a name. @param now_us  monotonic
 * @return whether to wake the receiver: the name is the first since it took all
 */
bool hfd_asked_push(struct hfd_asked *a, hfd_slice id, int64_t now_us);
/** Takes up to max names, the oldest first. @return their number */
size_t hfd_asked_take(struct hfd_asked *a, struct hfd_asked_id *out, size_t max, int64_t now_us);

#endif
