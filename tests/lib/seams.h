/*
 * The two seams of driver/base as tests play them: time that is moved by hand, and random bytes
 * that repeat.
 */
#ifndef HFD_TESTS_SEAMS_H
#define HFD_TESTS_SEAMS_H

#include <stdint.h>

#include "driver/base/clock.h"
#include "driver/base/rng.h"

/** 2025-01-01T00:00:00Z */
#define TEST_TIME_US (INT64_C(1735689600) * HFD_US_PER_S)

struct test_clock {
    int64_t wall_us;
    int64_t mono_us;
    struct hfd_clock clock; /* reads the two above; the struct must not move */
};

/** Starts at TEST_TIME_US. */
void test_clock_init(struct test_clock *c);
/** Moves both clocks. */
void test_clock_advance(struct test_clock *c, int64_t us);

struct test_rng {
    uint64_t state;
    struct hfd_rng rng; /* the struct must not move */
};

void test_rng_init(struct test_rng *r, uint64_t seed);
/** A number below `bound`, which is not 0. */
uint64_t test_rng_below(struct test_rng *r, uint64_t bound);

#endif
