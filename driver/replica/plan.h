/*
 * The rules of shards: what a replica does with each lease at a beat. Pure. All replicas decide one
 * after another, each in a transaction that sees the decisions before it.
 */
#ifndef HFD_REPLICA_PLAN_H
#define HFD_REPLICA_PLAN_H

#include "store/shard.h"

enum hfd_plan_act {
    HFD_PLAN_LEAVE, /* the lease is another's, or free and not needed */
    HFD_PLAN_RENEW,
    HFD_PLAN_TAKE, /* with the next epoch */
    HFD_PLAN_GIVE  /* back: others have less than their share */
};

/** The lease of a shard. */
struct hfd_plan_lease {
    bool mine;
    int64_t until_us; /* 0 = free */
};

struct hfd_plan {
    struct hfd_plan_lease leases[HFD_SHARDS];
    int64_t now_us; /* of the database */
    int live;       /* replicas, this one among them */
    int rank;       /* of this one among them, from 0 */
    int64_t shed;   /* shards that this replica has stopped to use */
};

/** Returns how many shards the replica of a rank holds, when all hold their share. */
int hfd_plan_share(int live, int rank);
/**
 * Decides on each shard. A lease that has run out is free, also its holder's: other replicas may
 * have seen it so.
 */
void hfd_plan_decide(const struct hfd_plan *plan, enum hfd_plan_act out[HFD_SHARDS]);
/**
 * Returns the shards beyond a share: the highest ones. Their holder stops using them, and gives
 * them back at its next beat.
 */
int64_t hfd_plan_excess(int64_t held, int share);

#endif
