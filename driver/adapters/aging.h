/*
 * The timer: what time alone changes. An operation fails at its deadline. An observer's document
 * becomes stale, and its report, cluster and resource follow (driver/health/intake.h). The history
 * of a removed resource ends.
 *
 * Each replica also looks every 10 s for troubles that nothing reports (driver/base/trouble.h):
 * silent adapters, replicas that differ, a disk that is nearly full. Own thread.
 */
#ifndef HFD_ADAPTERS_AGING_H
#define HFD_ADAPTERS_AGING_H

#include "driver/core/driver.h"
#include "store/store.h"

struct hfd_aging;
struct hfd_keeper;

struct hfd_aging_config {
    struct hfd_store *store;
    struct hfd_keeper *keeper; /* a look is for the one that leads; NULL = for all */
    const struct hfd_driver *driver;
    const struct hfd_clock *clock; /* what lastUpdated is compared with */
    const char *folder;            /* of the database: its disk is watched; NULL = it is not here */
};

/**
 * Starts the thread. It looks at once, when the next deadline passes or document becomes stale, and
 * every second. So what is stored follows within milliseconds.
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
 * One look, in the calling thread: for tests, whose clock is their own. It does nothing
 * while another replica leads.
 * @param next_us  the last microsecond before the next change; INT64_MAX = none is known
 */
HFD_MUST_CHECK hfd_rc hfd_aging_look(const struct hfd_aging_config *config, int64_t *next_us,
                                     struct hfd_err *err);

#endif
