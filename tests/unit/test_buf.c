#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <sodium.h>

#include "driver/base/buf.h"
#include "driver/base/utf8.h"
#include "tests/lib/seams.h"

#define S(lit) HFD_SLICE(lit)

static void assert_text(struct hfd_buf *b, hfd_slice want)
{
    hfd_slice got;

    assert_int_equal(hfd_buf_finish(b, &got, NULL), HFD_OK);
    assert_int_equal(got.len, want.len);
    if (want.len > 0)
        assert_memory_equal(got.p, want.p, want.len);
}

/* Pieces of every kind are appended in order. */
static void buf_adds(void **state)
{
    struct hfd_buf b;

    (void)state;
    hfd_buf_init(&b, 1000);
    assert_text(&b, HFD_SLICE_NONE);
    hfd_buf_lit(&b, "ab");
    hfd_buf_add(&b, HFD_SLICE_NONE);
    hfd_buf_addc(&b, '\0');
    hfd_buf_addf(&b, "%d:%s", 7, "x");
    hfd_buf_i64(&b, INT64_MIN);
    assert_text(&b, S("ab\0"
                      "7:x-9223372036854775808"));
    hfd_buf_reset(&b);
    for (int64_t v = 1; v < INT64_MAX / 10; v *= 10) {
        hfd_buf_i64(&b, v - 1);
        hfd_buf_addc(&b, ' ');
        hfd_buf_i64(&b, -v);
        hfd_buf_addf(&b, "=%lld %lld", (long long)v - 1, (long long)-v);
        assert_int_equal(b.p[b.len / 2], '=');
        assert_memory_equal(b.p, b.p + b.len / 2 + 1, b.len / 2);
        hfd_buf_reset(&b);
    }
    hfd_buf_i64(&b, INT64_MAX);
    assert_text(&b, S("9223372036854775807"));
    hfd_buf_reset(&b);
    hfd_buf_json_time(&b, TEST_TIME_US + 500000);
    assert_text(&b, S("\"2025-01-01T00:00:00.5Z\""));
    hfd_buf_fini(&b);
}

/* Numbers have a comma before each three digits; durations have hours only when there are some. */
static void buf_adds_for_people(void **state)
{
    static const int64_t counts[] = {0, 999, 1000, 1000000, 2310045};
    static const int64_t seconds[] = {0, 65, 3599, 3600, 36061};
    struct hfd_buf b;

    (void)state;
    hfd_buf_init(&b, 256);
    for (size_t i = 0; i < 5; i++) {
        hfd_buf_count(&b, counts[i]);
        hfd_buf_addc(&b, ' ');
        hfd_buf_clock(&b, seconds[i] * 1000000 + 999999);
        hfd_buf_addc(&b, i < 4 ? ' ' : '.');
    }
    assert_text(&b, S("0 0:00 999 1:05 1,000 59:59 1,000,000 1:00:00 2,310,045 10:01:01."));
    hfd_buf_fini(&b);
}

/* Text longer than any inner space arrives whole, also when it fills the ceiling to the byte. */
static void buf_adds_long_text(void **state)
{
    struct hfd_buf b;

    (void)state;
    for (int width = 250; width < 600; width++) {
        hfd_buf_init(&b, (size_t)width);
        hfd_buf_addf(&b, "%*d", width, 5);
        assert_int_equal(b.rc, HFD_OK);
        assert_int_equal(b.len, width);
        assert_int_equal(b.p[width - 1], '5');
        hfd_buf_addc(&b, 'x');
        assert_int_equal(b.rc, HFD_LIMIT);
        hfd_buf_fini(&b);
    }
}

/* The first failure sticks, later adds change nothing, and reset forgets it. */
static void buf_failure_sticks(void **state)
{
    struct hfd_err err;
    struct hfd_buf b;
    hfd_slice out;

    (void)state;
    hfd_buf_init(&b, 4);
    hfd_buf_lit(&b, "abc");
    hfd_buf_lit(&b, "de");
    hfd_buf_lit(&b, "f"); /* would fit */
    hfd_buf_addf(&b, "%d", 1);
    hfd_buf_json_str(&b, S("x"));
    assert_int_equal(b.len, 3);
    assert_int_equal(hfd_buf_finish(&b, &out, &err), HFD_LIMIT);
    assert_null(out.p);
    assert_string_equal(err.msg, "a document would be larger than 4 bytes");
    hfd_buf_reset(&b);
    hfd_buf_lit(&b, "wxyz");
    assert_text(&b, S("wxyz"));
    hfd_buf_fini(&b);
    assert_int_equal(b.max_bytes, 4);
}

/*
 * In JSON strings characters are escaped where they must be, and bytes that are not UTF-8 become
 * U+FFFD.
 */
static void buf_json_strings(void **state)
{
    static const struct {
        hfd_slice in, want;
    } rows[] = {
        {S(""), S("\"\"")},
        {S("plain /text"), S("\"plain /text\"")},
        {S("\"\\\b\f\n\r\t"), S("\"\\\"\\\\\\b\\f\\n\\r\\t\"")},
        {S("\0\x01\x1f\x7f"), S("\"\\u0000\\u0001\\u001f\\u007f\"")},
        {S("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), S("\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"")},
        {S("a\xff"), S("\"a\xef\xbf\xbd\"")},
        {S("\xc0\x80"), S("\"\xef\xbf\xbd\xef\xbf\xbd\"")},                 /* overlong */
        {S("\xed\xa0\x80"), S("\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"")}, /* surrogate */
        {S("\xf4\x90\x80\x80x"),
         S("\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdx\"")}, /* beyond U+10FFFF */
        {S("\xe2\x82"), S("\"\xef\xbf\xbd\xef\xbf\xbd\"")},           /* cut short */
        {S("\xe2\x82"
           "a"),
         S("\"\xef\xbf\xbd\xef\xbf\xbd"
           "a\"")},
    };
    struct hfd_buf b;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        hfd_buf_init(&b, 1000);
        hfd_buf_json_str(&b, rows[i].in);
        assert_text(&b, rows[i].want);
        hfd_buf_fini(&b);
    }
}

/* A JSON parser reads the result for any bytes, and valid UTF-8 comes back unchanged. */
static void buf_json_strings_parse(void **state)
{
    struct test_rng rng;
    struct hfd_buf b;

    (void)state;
    test_rng_init(&rng, 2);
    hfd_buf_init(&b, 10000);
    for (int round = 0; round < 3000; round++) {
        char bytes[40];
        size_t n = (size_t)test_rng_below(&rng, sizeof(bytes) + 1);
        bool valid = true;
        json_t *v;

        hfd_rng_bytes(&rng.rng, bytes, n);
        if (round % 2 == 0) /* half of the rounds near the edges of UTF-8 */
            for (size_t i = 0; i < n; i++)
                bytes[i] =
                    "\x7f\x80\xbf\xc2\xe0\xa0\xed\x9f\xf0\x90\xf4\x8f"[(unsigned char)bytes[i] %
                                                                       12];
        for (size_t i = 0; i < n;) {
            size_t len = hfd_utf8_len((hfd_slice){bytes + i, n - i});

            valid = valid && len > 0;
            i += len > 0 ? len : 1;
        }
        hfd_buf_reset(&b);
        hfd_buf_json_str(&b, (hfd_slice){bytes, n});
        assert_int_equal(b.rc, HFD_OK);
        v = json_loadb(b.p, b.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        assert_non_null(v);
        if (valid) {
            assert_int_equal(json_string_length(v), n);
            assert_memory_equal(json_string_value(v), bytes, n);
        }
        json_decref(v);
    }
    hfd_buf_fini(&b);
}

/* base64url: the vectors of RFC 4648 without padding, and the two characters of its own. */
static void buf_base64url_vectors(void **state)
{
    static const struct {
        hfd_slice bytes, text;
    } rows[] = {
        {S(""), S("")},
        {S("f"), S("Zg")},
        {S("f\157"), S("Zm8")},
        {S("foo"), S("Zm9v")},
        {S("foob"), S("Zm9vYg")},
        {S("fooba"), S("Zm9vYmE")},
        {S("foobar"), S("Zm9vYmFy")},
        {S("\xfb\xff\xfe"), S("-__-")},
    };
    unsigned char out[16];
    size_t n;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(hfd_base64url_decode(rows[i].text, out, sizeof(out), &n), HFD_OK);
        assert_int_equal(n, rows[i].bytes.len);
        assert_memory_equal(out, rows[i].bytes.p, n);
    }
}

/*
 * Decoding accepts correct padding, and refuses every text that is not the one text of some bytes.
 */
static void buf_base64url_refuses(void **state)
{
    static const struct {
        hfd_slice text;
        size_t cap;
        hfd_rc rc;
    } rows[] = {
        {S("Zg=="), 8, HFD_OK},
        {S("Zm8="), 8, HFD_OK},
        {S("Zm9v"), 3, HFD_OK},
        {S("Zm9v"), 2, HFD_INVALID},
        {S("Zg="), 8, HFD_INVALID},
        {S("Zg==="), 8, HFD_INVALID},
        {S("="), 8, HFD_INVALID},
        {S("===="), 8, HFD_INVALID},
        {S("Z==="), 8, HFD_INVALID},
        {S("A"), 8, HFD_INVALID},
        {S("Zm9vA"), 8, HFD_INVALID},
        {S("Zm9v===="), 8, HFD_INVALID},
        {S("Z"), 8, HFD_INVALID},
        {S("Zm9vY"), 8, HFD_INVALID},
        {S("Zh"), 8, HFD_INVALID},
        {S("Zm9"), 8, HFD_INVALID},
        {S("Zm+v"), 8, HFD_INVALID},
        {S("Zm/v"), 8, HFD_INVALID},
        {S("Zm\nv"), 8, HFD_INVALID},
        {S("Zm v"), 8, HFD_INVALID},
        {S("Zm\0v"), 8, HFD_INVALID},
        {S("Zm=v"), 8, HFD_INVALID},
        {S("\x80"
           "m9v"),
         8, HFD_INVALID},
    };
    unsigned char out[8];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t n = 99;

        assert_int_equal(hfd_base64url_decode(rows[i].text, out, rows[i].cap, &n), rows[i].rc);
        if (rows[i].rc != HFD_OK)
            assert_int_equal(n, 0);
    }
}

/* Random bytes come back; a text with one character changed never gives the same bytes. */
static void buf_base64url_round_trip(void **state)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/ ";
    unsigned char in[64];
    unsigned char out[64];
    char text[100];
    struct test_rng rng;
    size_t n;

    (void)state;
    test_rng_init(&rng, 3);
    for (int round = 0; round < 5000; round++) {
        size_t len = 1 + (size_t)test_rng_below(&rng, sizeof(in));
        char c = alphabet[test_rng_below(&rng, sizeof(alphabet) - 1)];
        size_t at;

        hfd_rng_bytes(&rng.rng, in, len);
        (void)sodium_bin2base64(text, sizeof(text), in, len,
                                sodium_base64_VARIANT_URLSAFE_NO_PADDING);
        assert_int_equal(hfd_base64url_decode(hfd_slice_of(text), out, sizeof(out), &n), HFD_OK);
        assert_int_equal(n, len);
        assert_memory_equal(in, out, len);
        at = (size_t)test_rng_below(&rng, strlen(text));
        if (text[at] == c)
            continue;
        text[at] = c;
        if (hfd_base64url_decode(hfd_slice_of(text), out, sizeof(out), &n) == HFD_OK)
            assert_true(n != len || memcmp(in, out, len) != 0);
    }
}

/*
 * The bytes move into the arena, a failure of either is reported, and the buffer can be used again.
 */
static void buf_moves_to_arena(void **state)
{
    struct hfd_arena mem;
    struct hfd_buf b;
    hfd_slice out;

    (void)state;
    hfd_arena_init(&mem, 64);
    hfd_buf_init(&b, 80);
    hfd_buf_lit(&b, "text");
    assert_int_equal(hfd_buf_to_arena(&b, &mem, &out, NULL), HFD_OK);
    assert_true(hfd_slice_is(out, "text") && b.len == 0 && b.p == NULL);
    assert_int_equal(hfd_buf_to_arena(&b, &mem, &out, NULL), HFD_OK);
    assert_true(out.p != NULL && out.len == 0);
    for (int i = 0; i < 80; i++)
        hfd_buf_addc(&b, 'x');
    assert_int_equal(hfd_buf_to_arena(&b, &mem, &out, NULL), HFD_NOMEM);
    assert_true(out.p == NULL && b.len == 0);
    for (int i = 0; i < 81; i++)
        hfd_buf_addc(&b, 'x');
    assert_int_equal(hfd_buf_to_arena(&b, &mem, &out, NULL), HFD_LIMIT);
    assert_true(out.p == NULL && b.len == 0 && b.rc == HFD_OK);
    hfd_arena_fini(&mem);
}

/* The plain start of a text ends at its first byte that is not plain, whatever stands around it. */
static void buf_finds_the_plain_start(void **state)
{
    char text[24];

    (void)state;
    for (size_t len = 0; len <= sizeof(text); len++) {
        memset(text, ' ', sizeof(text));
        assert_int_equal(hfd_json_plain((hfd_slice){text, len}), len);
        for (size_t at = 0; at < len; at++) {
            for (int c = 0; c < 256; c++) {
                const bool plain = c >= 0x20 && c < 0x7f && c != '"' && c != '\\';

                memset(text, at % 2 == 0 ? '~' : '!', sizeof(text));
                text[len - 1] = '"';
                text[at] = (char)c;
                assert_int_equal(hfd_json_plain((hfd_slice){text, len}), plain && at + 1 < len
                                                                             ? len - 1
                                                                         : plain ? len
                                                                                 : at);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buf_adds),
        cmocka_unit_test(buf_adds_long_text),
        cmocka_unit_test(buf_adds_for_people),
        cmocka_unit_test(buf_failure_sticks),
        cmocka_unit_test(buf_json_strings),
        cmocka_unit_test(buf_json_strings_parse),
        cmocka_unit_test(buf_finds_the_plain_start),
        cmocka_unit_test(buf_base64url_vectors),
        cmocka_unit_test(buf_base64url_refuses),
        cmocka_unit_test(buf_base64url_round_trip),
        cmocka_unit_test(buf_moves_to_arena),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
