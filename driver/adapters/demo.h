/*
 * Built-in demo adapters: for every required adapter of a resource that is not Ready they report
 * success step by step until the time given has passed, and Finalized on deletion, through the
 * ordinary report path (hfd_fleet_report). They make no cluster, and say so in each report and in
 * the log. Own thread.
 */
#ifndef HFD_ADAPTERS_DEMO_H
#define HFD_ADAPTERS_DEMO_H

#include "driver/base/clock.h"
#include "driver/fleet/fleet.h"
#include "store/store.h"

struct hfd_demo;

struct hfd_demo_config {
    struct hfd_store *store;
    const struct hfd_fleet *fleet;
    const struct hfd_clock *clock;
    int64_t total_us; /* from a resource's change to its last adapter's success; 0 = at once */
};

/**
 * Starts the thread. What config points at is borrowed until hfd_demo_stop, which comes before the
 * store is closed.
 * @return HFD_OK, HFD_INVALID (total_us), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_demo_start(const struct hfd_demo_config *config, struct hfd_demo **out,
                                     struct hfd_err *err);
/** Joins. Accepts a pointer to NULL. */
void hfd_demo_stop(struct hfd_demo **demo);

#endif
