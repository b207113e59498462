/* Ids of HyperFleet resources: KSUID, 27 characters of base62, 20 bytes of seconds since 2014-05-13 and randomness. Source: DESIGN 10.3. */
#ifndef HFD_FLEET_KSUID_H
#define HFD_FLEET_KSUID_H

#include "driver/base/arena.h"
#include "driver/base/rng.h"

#define HFD_KSUID_LEN 27

/** Writes 27 characters (no NUL). Ids made in later seconds sort behind earlier ones. Thread: any. */
void hfd_ksuid_make(int64_t now_us, const struct hfd_rng *rng, char out[HFD_KSUID_LEN]);

#endif
