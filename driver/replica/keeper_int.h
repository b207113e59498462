/* The keeper without its thread: one beat at a time; its clock. For tests. */
#ifndef HFD_REPLICA_KEEPER_INT_H
#define HFD_REPLICA_KEEPER_INT_H

#include "driver/replica/keeper.h"

#include <stdatomic.h>

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

/*
 * The time of the database, for all replicas the same. It runs with this machine's time since boot,
 * so a jump of the machine's wall clock changes nothing. Each beat measures the offset anew. The
 * clock never goes back: when the database's clock does, this one runs slower until they meet.
 */
struct hfd_db_clock {
    const struct hfd_clock *under;
    atomic_llong offset_us; /* to under's mono_us */
    atomic_llong last_us;   /* the latest time that was returned */
    int64_t measured_us;    /* mono_us of the last measurement; 0 = none yet */
    struct hfd_clock clock; /* wall_us is the database's time, mono_us is under's */
};

/** One reading of the database's clock, which lies between two readings of mono_us. */
struct hfd_db_time {
    int64_t before_us, db_us, after_us;
};

/**
 * Starts from under's wall clock.
 * @param c must not move
 * @param under outlives c; its mono_us counts the time during which the machine sleeps
 */
void hfd_db_clock_init(struct hfd_db_clock *c, const struct hfd_clock *under);
/**
 * Takes a measurement into account. It is as exact as its two readings are near. One that agrees
 * with the present offset changes nothing. Thread: one at a time.
 */
void hfd_db_clock_note(struct hfd_db_clock *c, const struct hfd_db_time *time);
/** Returns how much the database's clock is ahead of under's wall clock. */
int64_t hfd_db_clock_ahead_us(const struct hfd_db_clock *c);

#endif
