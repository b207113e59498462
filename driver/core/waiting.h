/*
 * Says what an operation waits for: the message of the hint. It depends on parts and reports, and
 * not on the time of the call, so it changes only with the news. Pure. Thread: any.
 */
#ifndef HFD_CORE_WAITING_H
#define HFD_CORE_WAITING_H

#include "driver/core/outcome.h"

#define HFD_WAITING_MAX_BYTES 500

/**
 * Makes the message of an operation in progress.
 * @param in          its trouble stands first in the message
 * @param started_us  when the operation began: nothing is waited for since an earlier time
 * @param out         at most HFD_WAITING_MAX_BYTES, in mem
 * @return HFD_OK or HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_waiting_say(const struct hfd_outcome_input *in, int64_t started_us,
                                      struct hfd_arena *mem, hfd_slice *out);

#endif
