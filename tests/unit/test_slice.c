#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/base/slice.h"

#define S(lit) HFD_SLICE(lit)

/* Equality and order look at bytes and length, NUL bytes and empty slices included. */
static void slice_compares(void **state)
{
    static const struct {
        hfd_slice a, b;
        int sign;
        bool ieq;
    } rows[] = {
        {S(""), HFD_SLICE_NONE, 0, true},  {S("a"), S("a"), 0, true},
        {S("a"), S("b"), -1, false},       {S("a"), S("ab"), -1, false},
        {S("ab"), S("a"), 1, false},       {S("a\0b"), S("a\0c"), -1, false},
        {S("\x80"), S("a"), 1, false},     {S("ABZ"), S("abz"), -1, true},
        {S("@[`{"), S("`{@["), -1, false}, {HFD_SLICE_NONE, S("a"), -1, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int c = hfd_slice_cmp(rows[i].a, rows[i].b);

        assert_int_equal((c > 0) - (c < 0), rows[i].sign);
        c = hfd_slice_cmp(rows[i].b, rows[i].a);
        assert_int_equal((c > 0) - (c < 0), -rows[i].sign);
        assert_int_equal(hfd_slice_eq(rows[i].a, rows[i].b), rows[i].sign == 0);
        assert_int_equal(hfd_slice_ieq(rows[i].a, rows[i].b), rows[i].ieq);
    }
}

/* A slice starts with itself and with nothing, but not with something longer. */
static void slice_starts(void **state)
{
    (void)state;
    assert_true(hfd_slice_starts(S("abc"), S("ab")));
    assert_true(hfd_slice_starts(S("abc"), S("abc")));
    assert_true(hfd_slice_starts(S("abc"), HFD_SLICE_NONE));
    assert_true(hfd_slice_starts(HFD_SLICE_NONE, HFD_SLICE_NONE));
    assert_false(hfd_slice_starts(S("abc"), S("abcd")));
    assert_false(hfd_slice_starts(S("abc"), S("b")));
}

/* Integers: the whole text, within the range, without overflow at either end. */
static void slice_parses_integers(void **state)
{
    static const struct {
        hfd_slice text;
        int64_t min, max;
        bool ok;
        int64_t want;
    } rows[] = {
        {S("0"), 0, 0, true, 0},
        {S("-0"), 0, 0, true, 0},
        {S("007"), 0, 10, true, 7},
        {S("-12"), -20, 20, true, -12},
        {S("9223372036854775807"), INT64_MIN, INT64_MAX, true, INT64_MAX},
        {S("-9223372036854775808"), INT64_MIN, INT64_MAX, true, INT64_MIN},
        {S("9223372036854775808"), INT64_MIN, INT64_MAX, false, 0},
        {S("-9223372036854775809"), INT64_MIN, INT64_MAX, false, 0},
        {S("99999999999999999999999999"), INT64_MIN, INT64_MAX, false, 0},
        {S("00000000000000000000000000001"), 0, 1, true, 1},
        {S(""), 0, 10, false, 0},
        {S("-"), -10, 10, false, 0},
        {S("--1"), -10, 10, false, 0},
        {S("+1"), 0, 10, false, 0},
        {S(" 1"), 0, 10, false, 0},
        {S("1 "), 0, 10, false, 0},
        {S("1\0"), 0, 10, false, 0},
        {S("1.0"), 0, 10, false, 0},
        {S("1e3"), 0, 10000, false, 0},
        {S("0x1"), 0, 10, false, 0},
        {S("11"), 0, 10, false, 0},
        {S("-1"), 0, 10, false, 0},
        {HFD_SLICE_NONE, 0, 10, false, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hfd_err err = {.msg = ""};
        int64_t v = 99;
        hfd_rc rc = hfd_parse_i64(rows[i].text, rows[i].min, rows[i].max, &v, &err);

        assert_int_equal(rc, rows[i].ok ? HFD_OK : HFD_INVALID);
        assert_true(v == rows[i].want);
    }
}

/* The message names the range and repeats only the beginning of a long text. */
static void slice_integer_message(void **state)
{
    char digits[500];
    struct hfd_err err;
    int64_t v;

    (void)state;
    assert_int_equal(hfd_parse_i64(S("x"), -5, 500, &v, &err), HFD_INVALID);
    assert_string_equal(err.msg, "expected an integer from -5 to 500, got \"x\"");
    memset(digits, '1', sizeof(digits));
    assert_int_equal(hfd_parse_i64((hfd_slice){digits, sizeof(digits)}, 0, 500, &v, &err),
                     HFD_INVALID);
    assert_true(strlen(err.msg) < 120);
}

/* Durations: units at most once each, the larger first, never a bare number, at most ten years. */
static void slice_parses_durations(void **state)
{
    static const struct {
        hfd_slice text;
        bool ok;
        int64_t want;
    } rows[] = {
        {S("90s"), true, INT64_C(90000000)},
        {S("45m"), true, INT64_C(2700000000)},
        {S("2h"), true, INT64_C(7200000000)},
        {S("1h30m"), true, INT64_C(5400000000)},
        {S("250ms"), true, 250000},
        {S("1m5ms"), true, 60005000},
        {S("7d"), true, INT64_C(604800000000)},
        {S("1d2h3m4s5ms"), true, INT64_C(93784005000)},
        {S("0s"), true, 0},
        {S("3653d"), true, INT64_C(315619200000000)},
        {S("3654d"), false, 0},
        {S("3653d1s"), false, 0},
        {S("9223372036854775807s"), false, 0},
        {S("9223372036854775808s"), false, 0},
        {S(""), false, 0},
        {S("0"), false, 0},
        {S("90"), false, 0},
        {S("1h30"), false, 0},
        {S("s"), false, 0},
        {S("-1s"), false, 0},
        {S("+1s"), false, 0},
        {S("1 s"), false, 0},
        {S("1s "), false, 0},
        {S("1S"), false, 0},
        {S("1.5h"), false, 0},
        {S("1us"), false, 0},
        {S("1w"), false, 0},
        {S("1m1h"), false, 0},
        {S("1s1s"), false, 0},
        {S("1sec"), false, 0},
        {HFD_SLICE_NONE, false, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hfd_err err = {.msg = ""};
        int64_t v = 99;
        hfd_rc rc = hfd_parse_duration_us(rows[i].text, &v, &err);

        assert_int_equal(rc, rows[i].ok ? HFD_OK : HFD_INVALID);
        assert_true(v == rows[i].want);
    }
}

/* Spaces and tabs go from both ends and from nowhere else. */
static void slice_trims(void **state)
{
    static const struct {
        hfd_slice text;
        const char *want;
    } rows[] = {
        {S(""), ""},       {S(" \t "), ""},      {S("a"), "a"}, {S("\ta b\t "), "a b"},
        {S("a\n"), "a\n"}, {HFD_SLICE_NONE, ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_true(hfd_slice_is(hfd_slice_trim(rows[i].text), rows[i].want));
}

/*
 * The hexadecimal digits have their values, other bytes have none. Letters and digits differ from
 * all other bytes.
 */
static void characters_are_told_apart(void **state)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    int alnum = 0;

    (void)state;
    for (int c = -128; c < 128; c++) {
        const char *at = c > 0 ? strchr(digits, c) : NULL;
        const int value = at == NULL         ? -1
                          : at - digits < 16 ? (int)(at - digits)
                                             : (int)(at - digits) - 6;

        assert_int_equal(hfd_hex_value((char)c), value);
        alnum += hfd_is_alnum((char)c);
    }
    assert_int_equal(alnum, 26 + 26 + 10);
    assert_true(hfd_is_alnum('a') && hfd_is_alnum('Z') && hfd_is_alnum('0') && !hfd_is_alnum('_') &&
                !hfd_is_alnum('\0'));
}

/* The length and the last eight bytes count, and the hash before. */
static void slice_ends_are_hashed(void **state)
{
    const uint64_t h = hfd_slice_hash_end(1, S("x-12345678"));

    (void)state;
    assert_true(hfd_slice_hash_end(1, S("y-12345678")) == h);
    assert_true(hfd_slice_hash_end(1, S("xx-12345678")) != h);
    assert_true(hfd_slice_hash_end(1, S("x-12345679")) != h);
    assert_true(hfd_slice_hash_end(2, S("x-12345678")) != h);
    assert_true(hfd_slice_hash_end(1, S("1")) != hfd_slice_hash_end(1, S("2")));
    assert_true(hfd_slice_hash_end(1, S("")) == hfd_slice_hash_end(1, HFD_SLICE_NONE));
}

/* The published values of FNV-1a. A hash can go on from the hash of the text before. */
static void slice_hashes(void **state)
{
    (void)state;
    assert_true(hfd_slice_hash(HFD_HASH_START, S("")) == UINT64_C(0xcbf29ce484222325));
    assert_true(hfd_slice_hash(HFD_HASH_START, S("foobar")) == UINT64_C(0x85944171f73967e8));
    assert_true(hfd_slice_hash(hfd_slice_hash(HFD_HASH_START, S("foo")), S("bar")) ==
                UINT64_C(0x85944171f73967e8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slice_compares),
        cmocka_unit_test(slice_starts),
        cmocka_unit_test(slice_parses_integers),
        cmocka_unit_test(slice_integer_message),
        cmocka_unit_test(slice_parses_durations),
        cmocka_unit_test(slice_trims),
        cmocka_unit_test(characters_are_told_apart),
        cmocka_unit_test(slice_hashes),
        cmocka_unit_test(slice_ends_are_hashed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
