/*
 * The state of a database that cannot be reached. From the first failure until a connection works
 * again, the store is away: it refuses work at once, and a thread tries to connect. SQLite is never
 * away.
 */
#ifndef HFD_STORE_AWAY_H
#define HFD_STORE_AWAY_H

#include "driver/base/clock.h"
#include "store/db.h"

#include <pthread.h>
#include <stdatomic.h>

struct hfd_away {
    const struct hfd_store_place *place; /* borrowed */
    atomic_bool now;
    pthread_mutex_t lock; /* of the rest; no other lock is taken under it */
    pthread_cond_t changed;
    bool stop;
    struct hfd_err cause; /* the last failure */
    pthread_t thread;
    bool started;
};

/** Sets up, and starts the thread. @param place  borrowed until hfd_away_stop */
HFD_MUST_CHECK hfd_rc hfd_away_start(struct hfd_away *a, const struct hfd_store_place *place,
                                     struct hfd_err *err);
/** Ends the thread. Accepts one that was not started, in zeroed memory. */
void hfd_away_stop(struct hfd_away *a);
/** The database could not be reached. Thread: any. */
void hfd_away_note(struct hfd_away *a, const struct hfd_err *why);
/** @return HFD_OK, or HFD_AWAY with the last failure. Thread: any. */
HFD_MUST_CHECK hfd_rc hfd_away_check(struct hfd_away *a, struct hfd_err *err);

#endif
