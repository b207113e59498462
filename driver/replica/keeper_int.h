/* The keeper without its thread: one beat at a time. For tests. */
#ifndef HFD_REPLICA_KEEPER_INT_H
#define HFD_REPLICA_KEEPER_INT_H

#include "driver/replica/keeper.h"

/** Makes a keeper that does not lead and has no thread. Returns as hfd_keeper_start. */
HFD_MUST_CHECK hfd_rc hfd_keeper_new(const struct hfd_keeper_config *config,
                                     struct hfd_keeper **out, struct hfd_err *err);
/**
 * Reads the database's time, and takes or renews the lease.
 * @return as hfd_store_update_wait. On failure the lease runs out by itself
 */
HFD_MUST_CHECK hfd_rc hfd_keeper_beat(struct hfd_keeper *keeper, struct hfd_err *err);
/** Returns how long to wait for the next beat. */
int64_t hfd_keeper_wait_us(struct hfd_keeper *keeper);
/** Gives the lease back and removes the replica. */
void hfd_keeper_leave(struct hfd_keeper *keeper);
/** Frees it, as if the process had been killed. Accepts NULL. */
void hfd_keeper_free(struct hfd_keeper *keeper);

#endif
