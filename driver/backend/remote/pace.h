/* clang-format off */
/*
 * When a remote may be asked: a breaker, a rate, and work that is set aside.
 *
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
#ifndef HFD_BACKEND_REMOTE_PACE_H
#define HFD_BACKEND_REMOTE_PACE_H

#include "driver/backend/remote/work.h"
#include "driver/base/err.h"
#include "driver/base/slice.h"

#include <stdbool.h>
#include <stdint.h>

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
/** "closed", "open", "half-open" */
const char *hfd_breaker_name(enum hfd_breaker_state state);

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

#endif
