/*
 * Ids of clusters and nodepools: 27 characters, "2" and then 26 digits of base62 (0-9A-Za-z), most
 * significant first. The digits hold 32 bits of seconds since 2014-05-13T16:53:20Z, 20 bits of
 * microseconds and 102 random bits.
 *
 * An id has the form and order of a KSUID. Since July 2025 a KSUID begins with another digit, but
 * the HyperFleet API fixes "2". The microseconds of a KSUID are random. Ours are not, so that
 * resources made one after another are neighbours in every index by id. Sources: HyperFleet API,
 * "id"; driver/README.md, decision 3.
 */
#ifndef HFD_FLEET_KSUID_H
#define HFD_FLEET_KSUID_H

#include "driver/base/arena.h"
#include "driver/base/rng.h"

#define HFD_KSUID_LEN 27

/**
 * Writes 27 characters without a NUL. An id that is made a microsecond or more later sorts behind.
 * Thread: any.
 */
void hfd_ksuid_make(int64_t now_us, const struct hfd_rng *rng, char out[HFD_KSUID_LEN]);

#endif
