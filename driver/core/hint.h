/*
 * AsyncProgressHint and Retry-After, from the operation's times and its plan. Pure. Source:
 * 002_4aedec23c83d0384.txt; DESIGN 4 "Hint".
 *
 * One rule: who asks next at current_time + Retry-After asks when it pays most;
 * estimated_completion_time is when the operation will probably have ended. Both stand still
 * between the steps of a plan, so they do not depend on who asks when.
 */
#ifndef HFD_CORE_HINT_H
#define HFD_CORE_HINT_H

#include "driver/base/buf.h"
#include "driver/estimate/plan.h"

/** Longest wait that is asked for: what nobody foresaw, as an early failure, is noticed by then. */
#define HFD_RETRY_MAX_S 600

struct hfd_hint_input {
    const char *status; /* "creating", "updating", "deleting" */
    int64_t started_us;
    int64_t estimate_us; /* absolute; the prior's guess at the start of the operation */
    int64_t deadline_us; /* absolute */
    int64_t now_us;
    hfd_slice plan; /* hfd_plan_format; empty = none */
};

struct hfd_hint {
    const char *status;
    int64_t estimated_us; /* whole seconds, never before now, never behind the deadline while that
                             lies ahead */
    int64_t deadline_us;  /* whole seconds, rounded up */
    int64_t now_us;
    int retry_after_s; /* 1..HFD_RETRY_MAX_S */
};

/** The stored form of a plan: "480/600 540/640", seconds since the start of the operation. */
void hfd_plan_format(struct hfd_buf *b, const struct hfd_plan *plan);
/** The first step that lies ahead; false when there is none, or the text is none of ours. */
bool hfd_plan_next(hfd_slice plan, int64_t elapsed_us, struct hfd_plan_step *out);

/**
 * From the plan's next step. Without one (behind the deadline) the operation is taken to need 1, 2,
 * 4, 8, ... times as long as guessed at its start, the smallest that lies more than a second ahead,
 * and a quarter of the time left is waited, at most a minute. So the estimate never lies in the
 * past, and goes back only when a new plan says so.
 */
struct hfd_hint hfd_hint_make(const struct hfd_hint_input *in);
/**
 * The same hint in the words of clocks that are ahead by skew_us; below a second nothing changes.
 * The wait stays as it is.
 */
void hfd_hint_shift(struct hfd_hint *h, int64_t skew_us);
/** The JSON document, with timeout and timeout_deadline both. */
void hfd_hint_format(struct hfd_buf *b, const struct hfd_hint *h);

#endif
