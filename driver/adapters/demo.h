/*
 * Built-in demo adapters. For each required adapter of a resource that is not Ready they report
 * success, step by step, until the given time has passed. On deletion they report Finalized. They
 * use the ordinary report path (hfd_fleet_report). They make no cluster, and each report and the
 * log say so. They have their own thread.
 */
#ifndef HFD_ADAPTERS_DEMO_H
#define HFD_ADAPTERS_DEMO_H

#include "driver/base/clock.h"
#include "driver/core/driver.h"

struct hfd_bell;
struct hfd_demo;
struct hfd_keeper;

struct hfd_demo_config {
    struct hfd_store *store;
    struct hfd_keeper *keeper; /* they report while it leads; NULL = always */
    const struct hfd_driver *driver;
    const struct hfd_clock *clock;
    struct hfd_bell *bell; /* rings when a resource has become due; NULL = nothing does */
    int64_t total_us;      /* from a resource's change to its last adapter's success; 0 = at once */
};

/**
 * Starts the thread.
 * @param config its pointers are borrowed until hfd_demo_stop, which must come before the store is
 * closed
 * @param out gives; free with hfd_demo_stop
 * @return HFD_OK, HFD_INVALID (total_us), HFD_NOMEM
 * Thread: start-up.
 */
HFD_MUST_CHECK hfd_rc hfd_demo_start(const struct hfd_demo_config *config, struct hfd_demo **out,
                                     struct hfd_err *err);
/**
 * Stops and joins the thread, and frees the demo adapters. Accepts a pointer to NULL.
 * Thread: shut-down.
 */
void hfd_demo_stop(struct hfd_demo **demo);

/** A resource, as the demo adapters see it. */
struct hfd_demo_view {
    struct hfd_adapter_names required; /* of its kind */
    struct hfd_agg_reports reports;    /* the stored reports */
    int64_t generation;
    bool deleting;
    int64_t since_us; /* time of its last change or deletion */
    int64_t now_us;
    int64_t total_us;
};

/**
 * Tells when the required adapter `at` of n must report: total * (at + 1) / n after the change. A
 * change that is further ahead than total was made before the clock was set back; it is due at
 * once.
 * @param floor_us the earliest time of observation that counts: that of the stored report
 * @return by the wall clock; INT64_MAX: it has reported at this generation (Finalized, while
 * deleting)
 */
int64_t hfd_demo_due_us(const struct hfd_demo_view *view, size_t at, int64_t *floor_us);

/**
 * Makes the demo adapters without a thread. Borrows what config points at.
 * @return HFD_OK, HFD_INVALID (total_us), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_demo_new(const struct hfd_demo_config *config, struct hfd_demo **out,
                                   struct hfd_err *err);
/** Frees them, on the thread that ran the rounds. Accepts NULL. */
void hfd_demo_free(struct hfd_demo *demo);
/**
 * Takes what is new, and reports all that is due.
 * @return when the next report is due, by the monotonic clock; INT64_MAX = none is known
 */
int64_t hfd_demo_round(struct hfd_demo *demo);

#endif
