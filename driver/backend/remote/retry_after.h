/* The Retry-After header. Pure. Thread: any. */
#ifndef HFD_REMOTE_RETRY_AFTER_H
#define HFD_REMOTE_RETRY_AFTER_H

#include "driver/base/err.h"
#include "driver/base/slice.h"

/**
 * Reads the header's value: seconds, or a date.
 * @param now_us  wall clock
 * @param out_us  a span from now_us, at most ten minutes; 0 on failure
 * @return HFD_OK, HFD_INVALID
 */
HFD_MUST_CHECK hfd_rc hfd_retry_after_parse(hfd_slice value, int64_t now_us, int64_t *out_us);

#endif
