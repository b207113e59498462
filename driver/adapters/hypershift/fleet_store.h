/* The embedded HyperFleet, through the store. Thread: the adapter's. */
#ifndef HFD_HYPERSHIFT_FLEET_STORE_H
#define HFD_HYPERSHIFT_FLEET_STORE_H

#include "driver/adapters/hypershift/fleet.h"
#include "driver/replica/keeper.h"

/**
 * `store`, `driver` and `keeper` are set before the start, and borrowed; the rest belongs to the
 * module.
 */
struct hfd_hs_fleet_store {
    struct hfd_store *store;
    const struct hfd_driver *driver;
    struct hfd_keeper *keeper; /* only resources of its shards are worked for; NULL = all */
    struct hfd_store_reader *reader;
    struct hfd_hold hold; /* of the shard of the resource that was loaded last */
    struct hfd_hold all;  /* at the last look */
};

/** The seam, with `impl` a struct hfd_hs_fleet_store. */
extern const struct hfd_hs_fleet_ops hfd_hs_fleet_store_ops;

#endif
