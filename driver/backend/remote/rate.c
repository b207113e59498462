/* See rate.h. */
#include "driver/backend/remote/rate.h"

#include "driver/base/check.h"
#include "driver/base/clock.h"

static int64_t cost_us(const struct hfd_rate *r)
{
    return HFD_US_PER_S / r->per_second;
}

/* The level at now_us. A clock that ran backwards adds nothing. */
static int64_t level_at(const struct hfd_rate *r, int64_t now_us)
{
    const int64_t most_us = r->burst * cost_us(r);
    const int64_t passed_us = now_us > r->at_us ? now_us - r->at_us : 0;

    return passed_us >= most_us - r->level_us ? most_us : r->level_us + passed_us;
}

void hfd_rate_init(struct hfd_rate *r, int64_t per_second, int64_t now_us)
{
    HFD_ASSERT(per_second >= 1 && per_second <= HFD_US_PER_S);
    *r = (struct hfd_rate){
        .per_second = per_second, .burst = per_second >= 5 ? per_second / 5 : 1, .at_us = now_us};
    r->level_us = r->burst * cost_us(r);
}

void hfd_rate_change(struct hfd_rate *r, int64_t per_second, int64_t now_us)
{
    const int64_t level_us = level_at(r, now_us);

    hfd_rate_init(r, per_second, now_us);
    r->level_us = level_us < r->level_us ? level_us : r->level_us;
}

bool hfd_rate_take(struct hfd_rate *r, int64_t now_us)
{
    const int64_t level_us = level_at(r, now_us);

    if (level_us < cost_us(r))
        return false;
    r->level_us = level_us - cost_us(r);
    r->at_us = now_us;
    return true;
}

int64_t hfd_rate_next_us(const struct hfd_rate *r, int64_t now_us)
{
    const int64_t missing_us = cost_us(r) - level_at(r, now_us);

    return missing_us > 0 ? now_us + missing_us : now_us;
}
