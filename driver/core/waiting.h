/*
 * Says what an operation waits for: the message of the hint. It depends on parts and reports, and
 * not on the time of the call, so it changes only with the news. Pure. Thread: any.
 *
 * Sentences for the app developer that do not come from the outcome of a resource (outcome.c has
 * those). Each is at most 500 characters and ends with what to do. Also
 * texts of others that are part of such sentences. Pure. Thread: any.
 */
#ifndef HFD_CORE_WAITING_H
#define HFD_CORE_WAITING_H

#include "driver/base/buf.h"
#include "driver/core/outcome.h"

#define HFD_WAITING_MAX_BYTES 500

/**
 * Makes the message of an operation in progress.
 * @param in          its trouble stands first in the message
 * @param started_us  when the operation began: nothing is waited for since an earlier time
 * @param out         at most HFD_WAITING_MAX_BYTES, in mem
 * @param cause       as hfd_outcome.cause, of the first part that is not finished
 * @return HFD_OK or HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_waiting_say(const struct hfd_outcome_input *in, int64_t started_us,
                                      struct hfd_arena *mem, hfd_slice *out, hfd_slice *cause);

/** RES-107. why: what is too large. p is NULL when memory is short. */
hfd_slice hfd_words_output_too_large(hfd_slice guresid, const char *why, struct hfd_arena *mem);

/** Adds "40 s", "12 min" or "3 h": a duration in the unit that says enough of it. */
void hfd_words_add_duration(struct hfd_buf *b, int64_t us);

/** The text without the full stops and spaces at its end. */
hfd_slice hfd_words_without_stop(hfd_slice text);

#endif
