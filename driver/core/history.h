/*
 * The history of a driver resource: changes of its state, and of its health once it is ready. The
 * newest HFD_HISTORY_MAX entries of a resource are kept until it is removed. Its creation has no
 * entry: created_us in its row tells it. Thread: writer, inside a transaction function.
 */
#ifndef HFD_CORE_HISTORY_H
#define HFD_CORE_HISTORY_H

#include "driver/core/driver.h"

#define HFD_HISTORY_MAX 100

/** One entry, but for what the row says. */
struct hfd_happening {
    enum hfd_state from;
    int64_t at_us;
    hfd_slice what;
    int64_t generation; /* of its cluster or nodepool in HyperFleet; 0 = unknown */
    hfd_slice text;
};

/** Adds an entry; its state is row->state. */
HFD_MUST_CHECK hfd_rc hfd_history_add(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                                      const struct hfd_happening *h);

/** "update", "retarget", "retry", "ready", "failed" or "delete": a resource left a state. */
hfd_slice hfd_history_word(enum hfd_state from, enum hfd_state to);

#endif
