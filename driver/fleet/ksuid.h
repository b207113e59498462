/*
 * Ids of HyperFleet resources: 27 characters, "2" and then 26 digits of base62 (0-9A-Za-z), most
 * significant first. The digits hold 32 bits of seconds since 2014-05-13T16:53:20Z, 20 bits of
 * microseconds and 102 random bits. It has the form and the order of a KSUID; since July 2025 a
 * KSUID begins with another digit, but the document fixes "2". A KSUID's microseconds are random;
 * ours are not, so that what is made one after the other stands together in every index by id.
 * Source: 000_b453de1dc0312d98.txt "id"; DESIGN 10.3.
 */
#ifndef HFD_FLEET_KSUID_H
#define HFD_FLEET_KSUID_H

#include "driver/base/arena.h"
#include "driver/base/rng.h"

#define HFD_KSUID_LEN 27

/**
 * Writes 27 characters (no NUL). Ids made later, by a microsecond or more, sort behind earlier
 * ones. Thread: any.
 */
void hfd_ksuid_make(int64_t now_us, const struct hfd_rng *rng, char out[HFD_KSUID_LEN]);

#endif
