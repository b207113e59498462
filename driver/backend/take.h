/* Taking an answer: ends of a pass that observe.c and take_many.c need too. Thread: writer, inside a transaction function. */
#ifndef HFD_BACKEND_TAKE_H
#define HFD_BACKEND_TAKE_H

#include "driver/backend/upstream_int.h"

/** Ends the pass: it is tried again later. The words stand in the message of a deadline, without a full stop. @return HFD_OK, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_take_later(struct hfd_take *t, struct hfd_err *err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/** With jitter, for the n-th failure in a row; at least what Retry-After asks for. */
int64_t hfd_take_backoff_us(const struct hfd_upstream *u, int64_t tries, const struct hfd_upstream_answer *answer);

/** Up to a tenth less than that, so that what began together does not go on together. */
int64_t hfd_take_jitter_us(const struct hfd_upstream *u, int64_t interval_us);

#endif
