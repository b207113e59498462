/* See db_clock.h. */
#include "driver/replica/db_clock.h"

/* The clock makes up for at most one second that it is ahead in this many seconds. */
#define SLOWER 2

static int64_t wall_us(void *ctx)
{
    struct hfd_db_clock *c = ctx;
    const long long now_us = hfd_clock_mono_us(c->under) + atomic_load(&c->offset_us);
    long long last_us = atomic_load(&c->last_us);

    while (now_us > last_us && !atomic_compare_exchange_weak(&c->last_us, &last_us, now_us))
        ;
    return now_us > last_us ? now_us : last_us;
}

static int64_t mono_us(void *ctx)
{
    const struct hfd_db_clock *c = ctx;

    return hfd_clock_mono_us(c->under);
}

void hfd_db_clock_init(struct hfd_db_clock *c, const struct hfd_clock *under)
{
    *c = (struct hfd_db_clock){.under = under,
                               .clock = {.wall_us = wall_us, .mono_us = mono_us, .ctx = c}};
    atomic_init(&c->offset_us, hfd_clock_wall_us(under) - hfd_clock_mono_us(under));
}

void hfd_db_clock_note(struct hfd_db_clock *c, const struct hfd_db_time *time)
{
    const int64_t offset_us = atomic_load(&c->offset_us);
    const int64_t least_us = time->db_us - time->after_us, most_us = time->db_us - time->before_us;
    int64_t next_us = offset_us;

    if (c->measured_us == 0)
        next_us = least_us + (most_us - least_us) / 2;
    else if (offset_us < least_us)
        next_us = least_us;
    else if (offset_us > most_us)
        next_us = most_us;
    if (c->measured_us != 0) {
        const int64_t slowest_us = offset_us - (time->after_us - c->measured_us) / SLOWER;

        next_us = next_us > slowest_us ? next_us : slowest_us;
    }
    c->measured_us = time->after_us;
    atomic_store(&c->offset_us, next_us);
}

int64_t hfd_db_clock_ahead_us(const struct hfd_db_clock *c)
{
    return hfd_clock_mono_us(c->under) + atomic_load(&c->offset_us) - hfd_clock_wall_us(c->under);
}
