/*
 * The clock of observers' documents: finds those that have become stale, and has their reports,
 * clusters and resources follow (driver/health/intake.h). Own thread.
 */
#ifndef HFD_ADAPTERS_AGING_H
#define HFD_ADAPTERS_AGING_H

#include "driver/core/driver.h"
#include "store/store.h"

struct hfd_aging;

struct hfd_aging_config {
    struct hfd_store *store;
    const struct hfd_driver *driver;
    const struct hfd_clock *clock; /* what lastUpdated is compared with */
};

/**
 * Starts the thread. It looks at once, when the next document becomes stale, and every second. So
 * no reader has to judge documents: what is stored follows within milliseconds.
 * @param config its pointers are borrowed until hfd_aging_stop, which must come before the store is
 * closed
 * @param out gives; free with hfd_aging_stop
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_aging_start(const struct hfd_aging_config *config, struct hfd_aging **out,
                                      struct hfd_err *err);
/**
 * Stops and joins the thread, and frees what it has. Accepts a pointer to NULL.
 * Thread: shut-down.
 */
void hfd_aging_stop(struct hfd_aging **aging);

/**
 * One look, in the calling thread: for tests, whose clock is their own.
 * @param next_us  the last microsecond at which the next document is not stale; INT64_MAX = none
 */
HFD_MUST_CHECK hfd_rc hfd_aging_look(const struct hfd_aging_config *config, int64_t *next_us,
                                     struct hfd_err *err);

#endif
