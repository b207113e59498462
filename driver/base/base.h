/* What must happen once in a process before anything else of driver/base is used. */
#ifndef HFD_BASE_BASE_H
#define HFD_BASE_BASE_H

#include "driver/base/err.h"

/**
 * Starts libsodium, seeds the hash of JSON objects from the machine's random source, and sets the
 * build metric. The first call does the work, later ones give its result.
 * @return HFD_OK, HFD_IO
 * Thread: any; call it first in main, in the tool and in tests.
 */
HFD_MUST_CHECK hfd_rc hfd_base_init(struct hfd_err *err);

#endif
