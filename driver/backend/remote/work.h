/*
 * Which work is due against the remote HyperFleet, and when it may be asked: a breaker, a rate, and
 * work that is set aside. Thread: any, in a transaction.
 */
#ifndef HFD_REMOTE_WORK_H
#define HFD_REMOTE_WORK_H

#include "driver/backend/backend.h"
#include "driver/base/err.h"
#include "driver/base/slice.h"
#include "store/kind.h"
#include "store/rows_remote.h"

struct hfd_asked;

/*
 * How the driver works with a remote HyperFleet: the label of this server, how often it asks, and
 * which functions of the core it calls. Const after start-up.
 */

struct hfd_remote_policy {
    const struct hfd_fleet *fleet; /* its seal encrypts the secrets of reports */
    hfd_slice owner;  /* value of HFD_OWNER_LABEL; the same for all stores with one key ring */
    int64_t watch_us; /* interval of observation while an operation is in progress */
    int64_t idle_us;  /* interval of observation of a settled resource */
    int64_t retry_min_us, retry_max_us;
    const struct hfd_rng *rng; /* of the jitter */
    void *observer;            /* the first argument of the functions below */
    /** A cluster or nodepool changed: call->changes. Called in the transaction that wrote it. */
    hfd_rc (*on_changes)(void *observer, struct hfd_txn *tx, const struct hfd_fleet_call *call,
                         struct hfd_err *err);
    /** The trouble with the work of a resource changed; NULL = not called. */
    hfd_rc (*on_trouble)(void *observer, struct hfd_txn *tx, const struct hfd_fleet_call *call,
                         hfd_slice guresid, struct hfd_err *err);
    /** Fails the operation of a resource. */
    hfd_rc (*on_refused)(void *observer, struct hfd_txn *tx, const struct hfd_fleet_call *call,
                         const struct hfd_refusal *why, struct hfd_err *err);
};

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

/* clang-format off */
/*
 * The circuit breaker: may new work begin? Pure; times are monotonic. Thread: its owner.
 *
 *            HFD_BREAKER_ILL_MAX                        the pause is over:
 *            ill answers in a row                       one probe
 *     CLOSED ---------------------------------> OPEN ---------------------> HALF_OPEN
 *       ^  ^                                    |  ^                        |  |
 *       |  '----------- a good answer ----------'  '------------------------'  |
 *       |                                        an ill answer, or nothing     |
 *       |                                        to ask                        |
 *       '---------------------------- a good answer ---------------------------'
 *
 * Answers that come while it is open belong to earlier requests. A good one
 * closes it; an ill one changes nothing.
 */
/* clang-format on */

#define HFD_BREAKER_ILL_MAX 3

enum hfd_breaker_state {
    HFD_BREAKER_CLOSED,
    HFD_BREAKER_OPEN,
    HFD_BREAKER_HALF_OPEN,
    HFD_BREAKER_STATE_COUNT
};

struct hfd_breaker {
    enum hfd_breaker_state state;
    int ill;          /* in a row, while closed */
    int64_t pause_us; /* of the present opening, before jitter */
    int64_t until_us; /* OPEN: when a probe may go */
    int64_t pause_min_us, pause_max_us;
};

/** Begins closed. Pauses are between these two. */
void hfd_breaker_init(struct hfd_breaker *b, int64_t pause_min_us, int64_t pause_max_us);
/**
 * Returns whether new work may begin now. After the pause it returns true once, for the probe,
 * until the probe is answered.
 */
bool hfd_breaker_begin(struct hfd_breaker *b, int64_t now_us);
/** When begin may return true: 0 = now, INT64_MAX = after the probe. */
int64_t hfd_breaker_next_us(const struct hfd_breaker *b);
/**
 * Takes note of an answer. Pauses double from pause_min_us to pause_max_us, less a random share of
 * up to a half.
 * @param good  false: the answer is ill, or there is none
 * @return whether the state went to CLOSED, or left it
 */
bool hfd_breaker_answer(struct hfd_breaker *b, bool good, int64_t now_us,
                        const struct hfd_rng *rng);
/** Work began and had nothing to ask. If it was the probe, another one may begin. */
void hfd_breaker_unused(struct hfd_breaker *b, int64_t now_us);
/* Bounds requests per second: a token bucket. Pure; times are monotonic. Thread: its owner. */

struct hfd_rate {
    int64_t per_second;
    int64_t burst;    /* that may go at once after a pause */
    int64_t level_us; /* what is saved up, in time; a request costs a second /
                         per_second */
    int64_t at_us;    /* when level_us held */
};

/**
 * Begins with a full bucket: a fifth of per_second, at least 1. No second has more than 1.2 times
 * per_second requests, plus one.
 * @param per_second  1 to 1,000,000
 */
void hfd_rate_init(struct hfd_rate *r, int64_t per_second, int64_t now_us);
/** Takes the right to one request. @return false: not before hfd_rate_next_us */
bool hfd_rate_take(struct hfd_rate *r, int64_t now_us);
/** When take will succeed: now_us or later. */
int64_t hfd_rate_next_us(const struct hfd_rate *r, int64_t now_us);

/*
 * Work that is left alone for a while: its pass failed on our side, or had nothing to ask. It would
 * take the place of other work. Thread: its owner.
 */

#define HFD_SKIP_LIST_MAX 64

struct hfd_skip_list {
    struct {
        struct hfd_asked_id id; /* len 0 = the lists of all in progress */
        int64_t until_us;       /* monotonic */
    } items[HFD_SKIP_LIST_MAX];
    size_t count;
};

/** Sets work aside until then. @return false: there is no room */
bool hfd_skip_list_add(struct hfd_skip_list *a, hfd_slice guresid, int64_t until_us);
/** Returns whether the work is set aside. */
bool hfd_skip_list_has(const struct hfd_skip_list *a, hfd_slice guresid);
/** Ends what is over. @return whether anything ended */
bool hfd_skip_list_expire(struct hfd_skip_list *a, int64_t now_us);
/** The time at which the first one ends; INT64_MAX = nothing is set aside. */
int64_t hfd_skip_list_next_us(const struct hfd_skip_list *a);

#endif
