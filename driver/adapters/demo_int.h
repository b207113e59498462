/* The demo adapters without their thread: what is due, and one round. For tests. */
#ifndef HFD_ADAPTERS_DEMO_INT_H
#define HFD_ADAPTERS_DEMO_INT_H

#include "driver/adapters/demo.h"

/** A resource that is not Ready, as the demo adapters see it. */
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
 * Tells whether the required adapter `at` of n must report now. It is due total * (at + 1) / n
 * after the change, unless it has reported at this generation (Finalized, while deleting). A change
 * that is further ahead than total was made before the clock was set back; it is due at once.
 * @param floor_us the earliest time of observation that counts: that of the stored report
 */
bool hfd_demo_is_due(const struct hfd_demo_view *view, size_t at, int64_t *floor_us);

/**
 * Makes the demo adapters without a thread. Borrows what config points at.
 * @return HFD_OK, HFD_INVALID (total_us), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_demo_new(const struct hfd_demo_config *config, struct hfd_demo **out,
                                   struct hfd_err *err);
/** Frees them, on the thread that ran the rounds. Accepts NULL. */
void hfd_demo_free(struct hfd_demo *demo);
/**
 * Reports what is due on the next page of resources.
 * @return whether there are further pages
 */
bool hfd_demo_round(struct hfd_demo *demo);

#endif
