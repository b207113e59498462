#include "tests/lib/seams.h"

#include <string.h>

static int64_t wall(void *ctx)
{
    const struct test_clock *c = ctx;

    return c->wall_us;
}

static int64_t mono(void *ctx)
{
    const struct test_clock *c = ctx;

    return c->mono_us;
}

void test_clock_init(struct test_clock *c)
{
    *c = (struct test_clock){.wall_us = TEST_TIME_US, .mono_us = HFD_US_PER_S};
    c->clock = (struct hfd_clock){.wall_us = wall, .mono_us = mono, .ctx = c};
}

void test_clock_advance(struct test_clock *c, int64_t us)
{
    c->wall_us += us;
    c->mono_us += us;
}

/* SplitMix64: every seed gives a good stream, 0 too. */
static uint64_t next(struct test_rng *r)
{
    uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void bytes(void *ctx, void *out, size_t len)
{
    unsigned char *p = out;

    for (size_t i = 0; i < len; i++)
        p[i] = (unsigned char)(next(ctx) & 0xffu);
}

void test_rng_init(struct test_rng *r, uint64_t seed)
{
    r->state = seed;
    r->rng = (struct hfd_rng){.bytes = bytes, .ctx = r};
}

uint64_t test_rng_below(struct test_rng *r, uint64_t bound)
{
    return next(r) % bound;
}
