/*
 * The outbox of one target of events, as a webhook or a broker. Its thread sends what is behind the
 * target's cursors, in two streams (store/rows_history.h). It stores a cursor after its events were
 * taken. So each event arrives at least once, also over kill -9. A new target begins at the
 * present. With replicas the one that leads sends.
 * Thread: main, where nothing else is said.
 */
#ifndef HFD_EVENTS_OUTBOX_H
#define HFD_EVENTS_OUTBOX_H

#include "driver/base/bell.h"
#include "driver/base/rng.h"
#include "driver/core/driver.h"
#include "driver/events/sender.h"
#include "driver/replica/keeper.h"
#include "store/rows_history.h"

struct hfd_outbox;
struct hfd_repeats;

/** A target, as the settings have it. */
struct hfd_outbox_target {
    hfd_slice name;
    bool streams[HFD_STREAMS]; /* which it gets */
};

/** Parts that it works with; all are borrowed until it is stopped. */
struct hfd_outbox_parts {
    struct hfd_store *store;
    struct hfd_keeper *keeper; /* NULL = the only server */
    const struct hfd_driver *driver;
    const struct hfd_clock *clock;
    const struct hfd_rng *rng;
    struct hfd_repeats *repeats; /* NULL = none */
    struct hfd_bell *bell; /* rings when there may be events; without it each second is looked */
};

/**
 * Forgets all targets but these, if this replica leads.
 * @return HFD_OK, or as hfd_store_update_wait
 */
HFD_MUST_CHECK hfd_rc hfd_outbox_forget_others(const struct hfd_outbox_parts *parts,
                                               const struct hfd_outbox_target *targets,
                                               size_t count, struct hfd_err *err);

/**
 * Starts the thread of a target.
 * @param target  its name is borrowed, too
 * @param sender  takes, also on failure: it is closed
 * @param out     gives
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_outbox_start(const struct hfd_outbox_parts *parts,
                                       const struct hfd_outbox_target *target,
                                       struct hfd_sender sender, struct hfd_outbox **out,
                                       struct hfd_err *err);
/**
 * Stops it behind the present `send`, stores the cursors, and closes the sender. Accepts a pointer
 * to NULL.
 */
void hfd_outbox_stop(struct hfd_outbox **outbox);

#endif
