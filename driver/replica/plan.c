/* See plan.h. */
#include "driver/replica/plan.h"

int hfd_plan_share(int live, int rank)
{
    if (live < 1)
        return HFD_SHARDS;
    return HFD_SHARDS / live + (rank < HFD_SHARDS % live ? 1 : 0);
}

void hfd_plan_decide(const struct hfd_plan *plan, enum hfd_plan_act out[HFD_SHARDS])
{
    const int share = hfd_plan_share(plan->live, plan->rank);
    int held = 0;

    for (int i = 0; i < HFD_SHARDS; i++) {
        const struct hfd_plan_lease *lease = &plan->leases[i];

        out[i] = HFD_PLAN_LEAVE;
        if (lease->mine && lease->until_us > plan->now_us) {
            out[i] = HFD_PLAN_RENEW;
            held++;
        }
    }
    for (int i = HFD_SHARDS; i-- > 0 && held > share;) {
        if (out[i] == HFD_PLAN_RENEW && (plan->shed >> i & 1) != 0) {
            out[i] = HFD_PLAN_GIVE;
            held--;
        }
    }
    for (int i = 0; i < HFD_SHARDS && held < share; i++) {
        if (plan->leases[i].until_us <= plan->now_us) {
            out[i] = HFD_PLAN_TAKE;
            held++;
        }
    }
}

int64_t hfd_plan_excess(int64_t held, int share)
{
    int64_t excess = 0;

    for (int i = HFD_SHARDS; i-- > 0 && hfd_shard_count(held & ~excess) > share;)
        excess |= held & INT64_C(1) << i;
    return excess;
}
