/* driver/backend/remote/work.c: the table of states and events, and the pauses. */
#include "driver/backend/remote/work.h"

#include "driver/base/clock.h"
#include "tests/lib/seams.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define S HFD_US_PER_S
#define MIN_US (2 * S)
#define MAX_US (60 * S)

enum event {
    BEGIN,      /* asks whether work may begin: yes */
    REFUSED,    /* asks: no */
    GOOD,       /* tells a good answer */
    ILL,        /* tells an ill one */
    UNUSED,     /* the work that began asked nothing */
    PAUSE,      /* moves the clock to the end of the pause */
    PAUSE_LESS, /* moves it one microsecond short of that */
};

/* Events, and the state that they lead to. */
static const struct {
    const char *what;
    enum event events[16];
    size_t count;
    enum hfd_breaker_state ends;
    int turns;
} walks[] = {
    {"work begins while closed", {BEGIN, BEGIN, BEGIN}, 3, HFD_BREAKER_CLOSED, 0},
    {"two ill ones do not open it", {ILL, ILL, BEGIN}, 3, HFD_BREAKER_CLOSED, 0},
    {"three in a row do", {ILL, ILL, ILL, REFUSED}, 4, HFD_BREAKER_OPEN, 1},
    {"a good one between starts the count again",
     {ILL, ILL, GOOD, ILL, ILL, BEGIN},
     6,
     HFD_BREAKER_CLOSED,
     0},
    {"while open ill ones change nothing",
     {ILL, ILL, ILL, ILL, ILL, ILL, ILL, REFUSED},
     8,
     HFD_BREAKER_OPEN,
     1},
    {"a late good one closes it", {ILL, ILL, ILL, GOOD, BEGIN}, 5, HFD_BREAKER_CLOSED, 2},
    {"not before the pause is over", {ILL, ILL, ILL, PAUSE_LESS, REFUSED}, 5, HFD_BREAKER_OPEN, 1},
    {"then one probe, and only one",
     {ILL, ILL, ILL, PAUSE, BEGIN, REFUSED, REFUSED},
     7,
     HFD_BREAKER_HALF_OPEN,
     1},
    {"a good probe closes it",
     {ILL, ILL, ILL, PAUSE, BEGIN, GOOD, BEGIN, BEGIN},
     8,
     HFD_BREAKER_CLOSED,
     2},
    {"an ill probe opens it again",
     {ILL, ILL, ILL, PAUSE, BEGIN, ILL, REFUSED},
     7,
     HFD_BREAKER_OPEN,
     1},
    {"then another probe",
     {ILL, ILL, ILL, PAUSE, BEGIN, ILL, PAUSE, BEGIN, GOOD},
     9,
     HFD_BREAKER_CLOSED,
     2},
    {"a probe that asked nothing lets another go",
     {ILL, ILL, ILL, PAUSE, BEGIN, UNUSED, BEGIN, REFUSED},
     8,
     HFD_BREAKER_HALF_OPEN,
     1},
    {"work that asked nothing matters to nobody else",
     {UNUSED, ILL, ILL, ILL, UNUSED, REFUSED},
     6,
     HFD_BREAKER_OPEN,
     1},
    {"closed again it takes three again",
     {ILL, ILL, ILL, GOOD, ILL, ILL, BEGIN, ILL, REFUSED},
     9,
     HFD_BREAKER_OPEN,
     3},
};

/*
 * Each row begins closed, plays its events, and ends in the state named; `turns` is how often tell
 * said that it left or entered CLOSED.
 */
static void states_follow_the_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(walks) / sizeof(walks[0]); i++) {
        struct hfd_breaker b;
        struct test_rng rng;
        int64_t now_us = 5 * S;
        int turns = 0;
        bool ok = true;

        test_rng_init(&rng, i);
        hfd_breaker_init(&b, MIN_US, MAX_US);
        for (size_t k = 0; k < walks[i].count && ok; k++) {
            switch (walks[i].events[k]) {
            case BEGIN:
                ok = hfd_breaker_begin(&b, now_us);
                break;
            case REFUSED:
                ok = !hfd_breaker_begin(&b, now_us) && hfd_breaker_next_us(&b) > now_us;
                break;
            case GOOD:
            case ILL:
                turns += hfd_breaker_answer(&b, walks[i].events[k] == GOOD, now_us, &rng.rng);
                break;
            case UNUSED:
                hfd_breaker_unused(&b, now_us);
                break;
            case PAUSE:
                now_us = hfd_breaker_next_us(&b);
                break;
            case PAUSE_LESS:
                now_us = hfd_breaker_next_us(&b) - 1;
                break;
            }
            if (!ok)
                fail_msg("%s: event %zu", walks[i].what, k);
        }
        if (b.state != walks[i].ends || turns != walks[i].turns)
            fail_msg("%s: ends as %d after %d turns", walks[i].what, (int)b.state, turns);
    }
}

/*
 * Pauses double up to the largest, each between a half and the whole of it, and differ from each
 * other.
 */
static void pauses_grow_with_jitter(void **state)
{
    int64_t expected_us = MIN_US, now_us = 0, first_us[2] = {0, 0};

    (void)state;
    for (int seed = 0; seed < 2; seed++) {
        struct hfd_breaker b;
        struct test_rng rng;

        test_rng_init(&rng, (uint64_t)seed + 1);
        hfd_breaker_init(&b, MIN_US, MAX_US);
        for (int k = 0; k < HFD_BREAKER_ILL_MAX; k++)
            (void)hfd_breaker_answer(&b, false, now_us, &rng.rng);
        first_us[seed] = hfd_breaker_next_us(&b) - now_us;
        expected_us = MIN_US;
        for (int k = 0; k < 12; k++) {
            int64_t pause_us = hfd_breaker_next_us(&b) - now_us;

            assert_in_range(pause_us, expected_us / 2, expected_us);
            now_us += pause_us;
            assert_true(hfd_breaker_begin(&b, now_us));
            (void)hfd_breaker_answer(&b, false, now_us, &rng.rng);
            expected_us = expected_us * 2 < MAX_US ? expected_us * 2 : MAX_US;
        }
        assert_int_equal(expected_us, MAX_US);
        (void)hfd_breaker_answer(&b, true, now_us, &rng.rng);
        for (int k = 0; k < HFD_BREAKER_ILL_MAX; k++)
            (void)hfd_breaker_answer(&b, false, now_us, &rng.rng);
        assert_in_range(hfd_breaker_next_us(&b) - now_us, MIN_US / 2,
                        MIN_US); /* from the start again */
    }
    assert_int_not_equal(first_us[0], first_us[1]);
}

/* While the probe is out nothing is waited for but what it tells. */
static void a_probe_is_waited_for(void **state)
{
    struct hfd_breaker b;
    struct test_rng rng;

    (void)state;
    test_rng_init(&rng, 3);
    hfd_breaker_init(&b, MIN_US, MAX_US);
    assert_int_equal(hfd_breaker_next_us(&b), 0);
    for (int k = 0; k < HFD_BREAKER_ILL_MAX; k++)
        (void)hfd_breaker_answer(&b, false, 0, &rng.rng);
    assert_true(hfd_breaker_begin(&b, MAX_US));
    assert_true(hfd_breaker_next_us(&b) == INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_follow_the_table),
        cmocka_unit_test(pauses_grow_with_jitter),
        cmocka_unit_test(a_probe_is_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
