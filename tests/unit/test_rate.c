/* driver/backend/remote/work.c: the bound on requests a second, with time moved by hand. */
#include "driver/backend/remote/work.h"

#include "driver/base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define START_US (INT64_C(7) * HFD_US_PER_S)

/*
 * A caller takes whatever the limiter gives at any time. No second, wherever it begins, holds more
 * than rate and burst.
 */
static void no_second_holds_more_than_promised(void **state)
{
    static const int64_t rates[] = {1, 2, 3, 7, 50, 999, 10000};
    enum {
        STEPS = 40000
    };
    static int64_t taken_us[STEPS];

    (void)state;
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        const int64_t step_us = HFD_US_PER_S / rates[i] / 3 + 1;
        struct hfd_rate r;
        int64_t now_us = START_US;
        size_t count = 0, oldest = 0;

        hfd_rate_init(&r, rates[i], now_us);
        for (int k = 0; k < STEPS && count < STEPS; k++, now_us += step_us) {
            if (k % 1000 == 999)
                now_us += 5 * HFD_US_PER_S; /* a pause saves up no more than the burst */
            while (count < STEPS && hfd_rate_take(&r, now_us))
                taken_us[count++] = now_us;
            while (taken_us[oldest] <= now_us - HFD_US_PER_S)
                oldest++;
            assert_in_range(count - oldest, 0, (uint64_t)(rates[i] + r.burst + 1));
        }
        assert_true(count > STEPS / 4);
    }
}

/* The rate is reached: ten seconds of taking reach ten times the rate. */
static void the_rate_is_reached(void **state)
{
    struct hfd_rate r;
    int64_t now_us = START_US, count = 0;

    (void)state;
    hfd_rate_init(&r, 50, now_us);
    while (now_us < START_US + 10 * HFD_US_PER_S) {
        if (hfd_rate_take(&r, now_us))
            count++;
        else
            now_us = hfd_rate_next_us(&r, now_us);
    }
    assert_in_range(count, 500, 511);
}

/* next says the first instant at which take succeeds, and take fails one microsecond before. */
static void next_is_exact(void **state)
{
    struct hfd_rate r;
    int64_t next_us;

    (void)state;
    hfd_rate_init(&r, 4, START_US);
    assert_int_equal(hfd_rate_next_us(&r, START_US), START_US);
    assert_true(hfd_rate_take(&r, START_US));
    assert_false(hfd_rate_take(&r, START_US));
    next_us = hfd_rate_next_us(&r, START_US);
    assert_int_equal(next_us, START_US + HFD_US_PER_S / 4);
    assert_false(hfd_rate_take(&r, next_us - 1));
    assert_true(hfd_rate_take(&r, next_us));
}

/* A clock that stands still or runs back gives nothing away and does not block for good. */
static void a_clock_that_runs_back_gives_nothing(void **state)
{
    struct hfd_rate r;

    (void)state;
    hfd_rate_init(&r, 1, START_US);
    assert_true(hfd_rate_take(&r, START_US));
    assert_false(hfd_rate_take(&r, START_US - HFD_US_PER_S));
    assert_false(hfd_rate_take(&r, START_US));
    assert_true(hfd_rate_take(&r, START_US + HFD_US_PER_S));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_second_holds_more_than_promised),
        cmocka_unit_test(the_rate_is_reached),
        cmocka_unit_test(next_is_exact),
        cmocka_unit_test(a_clock_that_runs_back_gives_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
