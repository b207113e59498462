/*
 * When work is due again: after a failure, after a pass that came to its end, and how closely a
 * resource is observed. Thread: writer, inside a transaction function.
 */
#ifndef HFD_REMOTE_DUE_H
#define HFD_REMOTE_DUE_H

#include "driver/backend/remote/take.h"

/**
 * Ends the pass as failed; its work is due again after a back-off. The text is kept as the trouble
 * of the resource (words.h). @return HFD_OK, HFD_NOMEM
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

#endif
