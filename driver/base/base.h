/* Start-up that a process needs once, before it uses anything else of driver/base. */
#ifndef HFD_BASE_BASE_H
#define HFD_BASE_BASE_H

#include "driver/base/err.h"

/**
 * Starts libsodium, seeds the hash of JSON objects from the system's random source, and sets the
 * build metrics. Sets how much freed memory the process keeps. The first call does the work, later
 * calls give its result.
 * @return HFD_OK, HFD_IO
 * Thread: any; main and the tests call it first.
 */
HFD_MUST_CHECK hfd_rc hfd_base_init(struct hfd_err *err);

#endif
