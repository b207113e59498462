/* Ids: the alphabet, the fixed first digit, the order. */
#include "driver/fleet/keys.h"

#include "driver/base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Every byte the same. */
static void fill(void *ctx, void *out, size_t len)
{
    memset(out, *(const unsigned char *)ctx, len);
}

/* xorshift64*. */
static void stream(void *ctx, void *out, size_t len)
{
    uint64_t *seed = ctx;
    unsigned char *p = out;

    for (size_t i = 0; i < len; i++) {
        *seed ^= *seed >> 12;
        *seed ^= *seed << 25;
        *seed ^= *seed >> 27;
        p[i] = (unsigned char)(*seed * UINT64_C(2685821657736338717) >> 56);
    }
}

/* Known numbers: the ends of the range that ids use, a byte order, one and two digits. */
static void digits_are_base36(void **state)
{
    static const struct {
        unsigned char number[HFD_KSUID_BYTES];
        const char *text;
    } known[] = {
        {{0}, "000000000000000000000000000"},
        {{0,    0,    0,    0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
          0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
         "0qxz0arjyi5m41pm71i7zcj0lj3"},
        {{0,    0,    0,    0,    0,    0,    0x06, 0x69, 0xf7, 0xef,
          0xb5, 0xa1, 0xcd, 0x34, 0xb5, 0xf9, 0x9d, 0x11, 0x54, 0xfb},
         "0000009qcg4pqy3zoh2fi2miqkb"},
        {{[19] = 35}, "00000000000000000000000000z"},
        {{[19] = 36}, "000000000000000000000000010"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        char out[HFD_KSUID_LEN];

        hfd_ksuid_digits(known[i].number, out);
        assert_memory_equal(out, known[i].text, HFD_KSUID_LEN);
    }
}

static void make(int64_t at_s, unsigned char byte, char out[HFD_KSUID_LEN])
{
    hfd_ksuid_make(at_s * HFD_US_PER_S, &(struct hfd_rng){fill, &byte}, out);
}

/* The first digit is 2 on every day, and all others can stand in the name of a Kubernetes object.
 * Times out of range do not wrap. */
static void first_digit_is_2_for_ever(void **state)
{
    /* clang-format off */
    static const int64_t times_s[] = {
        INT64_MIN / 1000000, -1, 0, 1399999999, 1400000000, 1704067200 /* 2024 */, 1735689600, 1752800000, 1767225600, 1798761600,
        1861919999 /* 2028 */, 2147483647, 4294967296, 5694967295 /* the last second */, 5694967296, INT64_MAX / 1000000,
    };
    /* clang-format on */
    char previous[HFD_KSUID_LEN], out[HFD_KSUID_LEN];

    (void)state;
    memset(previous, '0', sizeof(previous));
    for (size_t i = 0; i < sizeof(times_s) / sizeof(times_s[0]); i++) {
        for (unsigned byte = 0; byte <= 255; byte += 51) {
            make(times_s[i], (unsigned char)byte, out);
            assert_int_equal(out[0], '2');
            for (size_t k = 0; k < sizeof(out); k++)
                assert_true((out[k] >= '0' && out[k] <= '9') || (out[k] >= 'a' && out[k] <= 'z'));
        }
        make(times_s[i], 0, out);
        assert_true(memcmp(previous, out, sizeof(out)) <= 0);
        memcpy(previous, out, sizeof(out));
    }
}

/* One known id, so that the layout cannot move. */
static void layout_is_pinned(void **state)
{
    char out[HFD_KSUID_LEN];

    (void)state;
    hfd_ksuid_make(INT64_C(1735689600654321), &(struct hfd_rng){fill, &(unsigned char){0x5a}}, out);
    assert_memory_equal(out, "223t88dltoiz4zkpzuzy70un8t6", HFD_KSUID_LEN);
}

/*
 * The worst random bits of one microsecond sort before the best of the next, within a second and at
 * its end.
 */
static void later_ones_sort_behind(void **state)
{
    const struct hfd_rng zeros = {fill, &(unsigned char){0x00}},
                         ones = {fill, &(unsigned char){0xff}};

    (void)state;
    for (int64_t at_us = INT64_C(1400000000000000); at_us < INT64_C(5694967295000000);
         at_us += INT64_C(7654321999999)) {
        const int64_t end_us = at_us - at_us % HFD_US_PER_S + HFD_US_PER_S - 1;

        for (int i = 0; i < 2; i++) {
            const int64_t this_us = i == 0 ? at_us : end_us;
            char low[HFD_KSUID_LEN], high[HFD_KSUID_LEN], next[HFD_KSUID_LEN];

            hfd_ksuid_make(this_us, &zeros, low);
            hfd_ksuid_make(this_us, &ones, high);
            hfd_ksuid_make(this_us + 1, &zeros, next);
            assert_true(memcmp(low, high, sizeof(low)) < 0);
            assert_true(memcmp(high, next, sizeof(high)) < 0);
        }
    }
}

static int by_id(const void *a, const void *b)
{
    return memcmp(a, b, HFD_KSUID_LEN);
}

/* 20,000 ids of one microsecond differ, and the random part fills all its digits. */
static void ids_of_one_moment_differ(void **state)
{
    enum {
        COUNT = 20000
    };
    static char ids[COUNT][HFD_KSUID_LEN];
    uint64_t seed = 7;

    (void)state;
    for (size_t i = 0; i < COUNT; i++)
        hfd_ksuid_make(INT64_C(1767225600123456), &(struct hfd_rng){stream, &seed}, ids[i]);
    qsort(ids, COUNT, HFD_KSUID_LEN, by_id);
    for (size_t i = 1; i < COUNT; i++)
        assert_memory_not_equal(ids[i - 1], ids[i], HFD_KSUID_LEN);
    for (size_t k = 12; k < HFD_KSUID_LEN; k++) {
        bool seen[128] = {false};
        unsigned kinds = 0;

        for (size_t i = 0; i < COUNT; i++)
            if (!seen[(unsigned char)ids[i][k]]) {
                seen[(unsigned char)ids[i][k]] = true;
                kinds++;
            }
        assert_int_equal(kinds, 36);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(digits_are_base36),        cmocka_unit_test(first_digit_is_2_for_ever),
        cmocka_unit_test(layout_is_pinned),         cmocka_unit_test(later_ones_sort_behind),
        cmocka_unit_test(ids_of_one_moment_differ),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
