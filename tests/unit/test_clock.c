#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/base/clock.h"
#include "tests/lib/seams.h"

#define S(lit) HFD_SLICE(lit)
#define LAST_US (INT64_C(253402300799) * HFD_US_PER_S + 999999)

/*
 * Times are written in UTC with the digits they need, in whole seconds rounded down, or with six
 * digits.
 */
static void time_formats(void **state)
{
    static const struct {
        int64_t at_us;
        const char *needed, *seconds, *micro;
    } rows[] = {
        {0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"},
        {1, "1970-01-01T00:00:00.000001Z", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000001Z"},
        {TEST_TIME_US + 120000, "2025-01-01T00:00:00.12Z", "2025-01-01T00:00:00Z",
         "2025-01-01T00:00:00.120000Z"},
        {TEST_TIME_US - 1, "2024-12-31T23:59:59.999999Z", "2024-12-31T23:59:59Z",
         "2024-12-31T23:59:59.999999Z"},
        {INT64_C(951827696000000), "2000-02-29T12:34:56Z", "2000-02-29T12:34:56Z",
         "2000-02-29T12:34:56.000000Z"},
        {INT64_C(4107542400000000), "2100-03-01T00:00:00Z", "2100-03-01T00:00:00Z",
         "2100-03-01T00:00:00.000000Z"},
        {LAST_US, "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59Z",
         "9999-12-31T23:59:59.999999Z"},
        {LAST_US + 1, "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59Z",
         "9999-12-31T23:59:59.999999Z"},
        {INT64_MAX, "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59Z",
         "9999-12-31T23:59:59.999999Z"},
        {-1, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"},
        {INT64_MIN, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"},
    };
    char text[HFD_TIME_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(hfd_time_format(rows[i].at_us, text), strlen(rows[i].needed));
        assert_string_equal(text, rows[i].needed);
        assert_int_equal(hfd_time_format_s(rows[i].at_us, text), strlen(rows[i].seconds));
        assert_string_equal(text, rows[i].seconds);
        assert_int_equal(hfd_time_format_us(rows[i].at_us, text), strlen(rows[i].micro));
        assert_string_equal(text, rows[i].micro);
    }
}

/* RFC 3339 times are read. Other texts, and dates that no calendar has, are refused. */
static void time_parses(void **state)
{
    static const struct {
        hfd_slice text;
        int64_t want; /* -1 = refused */
    } rows[] = {
        {S("1970-01-01T00:00:00Z"), 0},
        {S("2025-01-01T00:00:00Z"), TEST_TIME_US},
        {S("2025-01-01t00:00:00z"), TEST_TIME_US},
        {S("2025-01-01T01:00:00+01:00"), TEST_TIME_US},
        {S("2024-12-31T18:30:00-05:30"), TEST_TIME_US},
        {S("2025-01-01T00:00:00-00:00"), TEST_TIME_US},
        {S("2025-01-01T00:00:00.5Z"), TEST_TIME_US + 500000},
        {S("2025-01-01T00:00:00.123456789Z"), TEST_TIME_US + 123456},
        {S("2025-01-01T00:00:00.999999999Z"), TEST_TIME_US + 999999},
        {S("2016-12-31T23:59:60Z"), INT64_C(1483228799000000)},
        {S("2024-02-29T00:00:00Z"), INT64_C(1709164800000000)},
        {S("9999-12-31T23:59:59.999999Z"), LAST_US},
        {S("2025-01-01T00:00:00.1234567890Z"), -1},
        {S("2025-01-01T00:00:00.Z"), -1},
        {S("2025-01-01T00:00:00,5Z"), -1},
        {S("2025-01-01T00:00:00"), -1},
        {S("2025-01-01 00:00:00Z"), -1},
        {S("2025-01-01T00:00Z"), -1},
        {S("2025-01-01"), -1},
        {S("2025-1-1T00:00:00Z"), -1},
        {S("2025-01-01T00:00:00+0100"), -1},
        {S("2025-01-01T00:00:00+01"), -1},
        {S("2025-01-01T00:00:00+24:00"), -1},
        {S("2025-01-01T00:00:00+01:60"), -1},
        {S("2025-00-01T00:00:00Z"), -1},
        {S("2025-13-01T00:00:00Z"), -1},
        {S("2025-01-00T00:00:00Z"), -1},
        {S("2025-01-32T00:00:00Z"), -1},
        {S("2025-02-29T00:00:00Z"), -1},
        {S("2100-02-29T00:00:00Z"), -1},
        {S("2025-04-31T00:00:00Z"), -1},
        {S("2025-01-01T24:00:00Z"), -1},
        {S("2025-01-01T00:60:00Z"), -1},
        {S("2025-01-01T00:00:61Z"), -1},
        {S("1969-12-31T23:59:59Z"), -1},
        {S("1970-01-01T00:00:00+00:01"), -1},
        {S("9999-12-31T23:59:59-00:01"), -1},
        {S("10000-01-01T00:00:00Z"), -1},
        {S("2025-01-01T00:00:00ZZ"), -1},
        {S("2025-01-01T00:00:00Z\0"), -1},
        {S(" 2025-01-01T00:00:00Z"), -1},
        {S("-025-01-01T00:00:00Z"), -1},
        {S("2025-01-01T00:00:00\0"), -1},
        {S("2025-01\0"
           "01T00:00:00Z"),
         -1},
        {S(""), -1},
        {HFD_SLICE_NONE, -1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hfd_err err = {.msg = ""};
        int64_t at = 99;
        hfd_rc rc = hfd_time_parse(rows[i].text, &at, &err);

        assert_int_equal(rc, rows[i].want >= 0 ? HFD_OK : HFD_INVALID);
        assert_true(at == (rows[i].want >= 0 ? rows[i].want : 0));
    }
}

/* Times to compare with may be before 1970; otherwise they follow the same rules. */
static void time_to_compare_with(void **state)
{
    static const struct {
        hfd_slice text;
        bool ok;
        int64_t want;
    } rows[] = {
        {S("2025-01-01T00:00:00Z"), true, TEST_TIME_US},
        {S("1970-01-01T00:00:00+00:01"), true, -INT64_C(60000000)},
        {S("1969-12-31T23:59:59.5Z"), true, -INT64_C(500000)},
        {S("0001-01-01T00:00:00Z"), true, -INT64_C(62135596800000000)},
        {S("0000-03-01T00:00:00Z"), true, -INT64_C(62162035200000000)},
        {S("0000-02-29T00:00:00Z"), true, -INT64_C(62162121600000000)},
        {S("0000-01-01T00:00:00Z"), true, -INT64_C(62167219200000000)},
        {S("1900-02-29T00:00:00Z"), false, 0},
        {S("10000-01-01T00:00:00Z"), false, 0},
        {S("-001-01-01T00:00:00Z"), false, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t at = 99;

        assert_int_equal(hfd_time_parse_any(rows[i].text, &at, NULL),
                         rows[i].ok ? HFD_OK : HFD_INVALID);
        assert_true(at == rows[i].want);
    }
}

/*
 * Every time comes back from its own text, and text order is time order for the fixed-width form.
 */
static void time_round_trip(void **state)
{
    char before[HFD_TIME_TEXT_MAX];
    char text[HFD_TIME_TEXT_MAX];
    struct test_rng rng;
    int64_t at;

    (void)state;
    test_rng_init(&rng, 4);
    for (int round = 0; round < 20000; round++) {
        int64_t t = (int64_t)test_rng_below(&rng, (uint64_t)LAST_US + 1);
        int64_t later = t + (int64_t)test_rng_below(&rng, (uint64_t)(LAST_US - t) + 1);
        size_t n;

        n = hfd_time_format(t, text);
        assert_int_equal(hfd_time_parse((hfd_slice){text, n}, &at, NULL), HFD_OK);
        assert_true(at == t);
        hfd_time_format_us(t, before);
        hfd_time_format_us(later, text);
        assert_true(strcmp(before, text) <= 0);
    }
}

/* The calendar moves on by exactly one day, each day for 800 years. */
static void time_calendar_has_no_gap(void **state)
{
    char text[HFD_TIME_TEXT_MAX];
    int64_t at;

    (void)state;
    for (int64_t day = 0; day < 800 * INT64_C(366); day++) {
        int64_t t = day * 86400 * HFD_US_PER_S;
        size_t n = hfd_time_format(t, text);

        assert_int_equal(n, 20);
        assert_int_equal(hfd_time_parse((hfd_slice){text, n}, &at, NULL), HFD_OK);
        assert_true(at == t);
    }
}

/*
 * The system's clocks run: wall time is after the day on which this was written, and monotonic time
 * never goes back.
 */
static void clock_system_runs(void **state)
{
    int64_t a = hfd_clock_mono_us(&hfd_clock_system);
    int64_t b = hfd_clock_mono_us(&hfd_clock_system);

    (void)state;
    assert_true(a > 0 && b >= a);
    assert_true(hfd_clock_wall_us(&hfd_clock_system) > TEST_TIME_US);
}

/* A clock of a test's own stands until it is moved. */
static void clock_seam(void **state)
{
    struct test_clock c;

    (void)state;
    test_clock_init(&c);
    assert_true(hfd_clock_wall_us(&c.clock) == TEST_TIME_US);
    test_clock_advance(&c, 5);
    assert_true(hfd_clock_wall_us(&c.clock) == TEST_TIME_US + 5);
    assert_true(hfd_clock_mono_us(&c.clock) == HFD_US_PER_S + 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_formats),
        cmocka_unit_test(time_parses),
        cmocka_unit_test(time_to_compare_with),
        cmocka_unit_test(time_round_trip),
        cmocka_unit_test(time_calendar_has_no_gap),
        cmocka_unit_test(clock_system_runs),
        cmocka_unit_test(clock_seam),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
