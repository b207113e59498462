/* When a resource is looked at again. Thread: writer, inside a transaction function. */
#ifndef HFD_REMOTE_DUE_H
#define HFD_REMOTE_DUE_H

#include "driver/backend/remote/pass_int.h"

/**
 * Ends the pass: it is tried again later. The words stand in the message of a deadline, without a
 * full stop. @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_due_later(struct hfd_take *t, struct hfd_err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/**
 * What an answer that is of no use says, for that: "HyperFleet answered 503: its words"; p is NULL
 * when memory is short.
 */
hfd_slice hfd_due_words(const struct hfd_take *t);

/** Whether this HyperFleet will never answer such a list, however often it is asked. */
bool hfd_due_cannot_list(const struct hfd_take *t);

/** With jitter, for the n-th failure in a row; at least what Retry-After asks for. */
int64_t hfd_due_backoff_us(const struct hfd_remote_policy *policy, int64_t tries,
                           const struct hfd_remote_answer *answer);

/** Up to a tenth less than that, so that what began together does not go on together. */
int64_t hfd_due_jitter_us(const struct hfd_remote_policy *policy, int64_t interval_us);

/** Whether nothing is left but to see that it stays so. */
bool hfd_due_is_settled(const struct hfd_pass_rows *s);

/** How it is looked at until then: with the idle, with those in progress, or by itself. */
enum hfd_watched hfd_due_watched(const struct hfd_pass_rows *s);

/** The time to the next look after a pass that came to its end. */
int64_t hfd_due_interval_us(const struct hfd_take *t);

/**
 * A twentieth of what has passed since then, at least `watch` and at most `idle`: what takes long
 * is looked at less and less.
 */
int64_t hfd_due_late_us(const struct hfd_take *t, int64_t since_us);

#endif
