/*
 * AsyncProgressHint and Retry-After, from the operation's times and its plan. Pure. Source:
 * Humanitec Driver API 0.9.3; README.md in this folder, "Hints".
 *
 * One rule: a poll at current_time + Retry-After is the most useful next poll.
 * estimated_completion_time is the probable end of the operation. Both depend on the plan's steps
 * and the clock alone, and not on the caller.
 */
#ifndef HFD_CORE_HINT_H
#define HFD_CORE_HINT_H

#include "driver/base/buf.h"
#include "driver/estimate/estimate.h"

/** The longest wait. An early failure, which no plan expects, is noticed by then. */
#define HFD_RETRY_MAX_S 600

struct hfd_hint_input {
    const char *status; /* "creating", "updating", "deleting" */
    int64_t started_us;
    int64_t estimate_us; /* absolute; the prior's guess at the start of the operation */
    int64_t deadline_us; /* absolute */
    int64_t now_us;
    hfd_slice plan;    /* hfd_plan_format; empty = none */
    hfd_slice message; /* of hfd_waiting_say; empty = none */
};

struct hfd_hint {
    const char *status;
    int64_t estimated_us; /* whole seconds, never before the present second, never behind
                             deadline_us while the deadline lies ahead */
    int64_t deadline_us;  /* whole seconds, rounded down */
    int64_t now_us;
    int retry_after_s; /* 1..HFD_RETRY_MAX_S */
    hfd_slice message; /* what it waits for, borrowed; empty = nothing is known */
};

/** The stored form of a plan: "480/600 540/640", seconds since the start of the operation. */
void hfd_plan_format(struct hfd_buf *b, const struct hfd_plan *plan);
/** Gives the first step that is ahead. False if there is none, or the text is not a plan. */
bool hfd_plan_next(hfd_slice plan, int64_t elapsed_us, struct hfd_plan_step *out);

/**
 * Makes a hint from the plan's next step. After the deadline the plan has no step. The estimate is
 * then 1, 2, 4, 8, ... times the first guess: the smallest that is a second ahead. The wait is a
 * quarter of the time left, at most a minute. The estimate is never in the past, and becomes
 * earlier only with a new plan.
 */
struct hfd_hint hfd_hint_make(const struct hfd_hint_input *in);
/**
 * The same hint in the words of clocks that are ahead by skew_us; below a second nothing changes.
 * The wait stays as it is.
 */
void hfd_hint_shift(struct hfd_hint *h, int64_t skew_us);
/** The JSON document, with timeout and timeout_deadline both, and the message if there is one. */
void hfd_hint_format(struct hfd_buf *b, const struct hfd_hint *h);

#endif
