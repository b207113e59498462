/*
 * Ids of clusters and nodepools: 27 characters, "2" and then 26 digits of base36 (0-9a-z), most
 * significant first. The digits hold 32 bits of seconds since 2014-05-13T16:53:20Z, 20 bits of
 * microseconds and 82 random bits.
 *
 * An id has the form of HyperFleet's KSUID, but no capitals: adapters name Kubernetes objects after
 * it, and Kubernetes refuses capitals. The time comes first, so that resources made one after
 * another are neighbours in every index by id. Sources: HyperFleet API, "id"; driver/README.md,
 * decision 3.
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
