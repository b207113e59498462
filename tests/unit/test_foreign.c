#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/base/buf.h"
#include "driver/base/foreign.h"

#define S(lit) HFD_SLICE(lit)
#define T43 "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-_AbCdE"
#define TOKEN "hfd_" T43
#define T40 "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-_Ab"
#define LOWER43 "abcdefghijklmnopqrstuvwxyz0123456789-_abcde"
#define HEAD "eyJhbGciOiJFUzI1NiJ9"
#define BODY "eyJpc3MiOiJodHRwczovL2lkcC5leGFtcGxlIn0"
#define SIGN "MEUCIQDx7n1Vt5sZ2Jq3yP8wA4bC6dE9fG0hI1jK2lM3nO4"
#define LONG "Abcdefghij0123456789"
#define R HFD_FOREIGN_REDACTED

static void assert_slice(hfd_slice got, const char *want)
{
    if (!hfd_slice_is(got, want))
        fail_msg("expected \"%s\", got \"%.*s\"", want, (int)got.len, got.len > 0 ? got.p : "");
}

/* A reader sees each character; what is plain stays as it is. */
static void foreign_text_is_visible(void **state)
{
    static const struct {
        hfd_slice text;
        const char *want;
    } rows[] = {
        {S(""), ""},
        {S("plain \"text\" \\ / ~"), "plain \"text\" \\ / ~"},
        {S("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"),
         "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"},
        {S("a\nb\rc\td"), "a\\nb\\rc\\td"},
        {S("\033]0;title\a"), "\\u001b]0;title\\u0007"},
        {S("\0\x1f\x7f"), "\\u0000\\u001f\\u007f"},
        {S("\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0"), "\\u0080\\u009b\\u009f\xc2\xa0"},
        {S("\xd8\x9c\xe2\x80\x8b\xe2\x80\x8e\xe2\x80\x8f\xe2\x80\x90"),
         "\\u061c\\u200b\\u200e\\u200f\xe2\x80\x90"},
        {S("\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa\xe2\x80\xab\xe2\x80\xac"),
         "\xe2\x80\xa7\\u2028\\u2029\\u202a\\u202b\\u202c"},
        {S("\xe2\x80\xad\xe2\x80\xae\xe2\x80\xaf"), "\\u202d\\u202e\xe2\x80\xaf"},
        {S("\xe2\x81\xa0\xe2\x81\xa6\xe2\x81\xa7\xe2\x81\xa8\xe2\x81\xa9\xe2\x81\xaf\xe2\x81\xb0"),
         "\\u2060\\u2066\\u2067\\u2068\\u2069\\u206f\xe2\x81\xb0"},
        {S("\xef\xbb\xbf\xef\xbf\xb9"), "\\ufeff\\ufff9"},
        {S("\xff"
           "a\xe2\x82"),
         "\xef\xbf\xbd"
         "a\xef\xbf\xbd\xef\xbf\xbd"},
        {S("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* a surrogate */
        {S("\xc0\x9b"), "\xef\xbf\xbd\xef\xbf\xbd"},                 /* an overlong ESC */
        {S("a " TOKEN "\033 b " TOKEN), "a " R "\\u001b b " R},
    };
    struct hfd_buf b;

    (void)state;
    hfd_buf_init(&b, 4096);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char line[256];

        hfd_buf_reset(&b);
        hfd_buf_show(&b, rows[i].text);
        if (strstr(rows[i].want, R) == NULL) /* which only a line has */
            assert_slice(hfd_buf_slice(&b), rows[i].want);
        assert_slice((hfd_slice){line, hfd_foreign_line(rows[i].text, sizeof(line), line)},
                     rows[i].want);
    }
    hfd_buf_fini(&b);
}

/* A line ends between characters, and never in the middle of a number. */
static void foreign_line_is_cut_at_a_character(void **state)
{
    static const struct {
        hfd_slice text;
        size_t max;
        const char *want;
    } rows[] = {
        {S("abcdef"), 6, "abcdef"},
        {S("abcdefg"), 6, "abc..."},
        {S("abcdefghij\xc3\xa4"), 11, "abcdefgh..."},
        {S("\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"), 7, "\xc3\xa4\xc3\xa4..."},
        {S("\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"), 8, "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"},
        {S("ab\xf0\x9f\x98\x80z"), 6, "ab..."},
        {S("ab\033z"), 8, "ab..."},
        {S("ab\033zzz"), 11, "ab\\u001bzzz"},
        {S("ab\033zzzz"), 11, "ab\\u001b..."},
        {S("\033\033"), 3, "..."},
        {S("ab\"cdefg"), 7, "ab\"c..."},
    };

    char line[32] = "";

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_slice((hfd_slice){line, hfd_foreign_line(rows[i].text, rows[i].max, line)},
                     rows[i].want);
    assert_slice((hfd_slice){line, hfd_foreign_sentence(S("a\nb\033c\xe2\x80\xae\\d"), 9, line)},
                 "a b c \\d");
    assert_slice((hfd_slice){line, hfd_foreign_sentence(S("ab\033zzz"), 5, line)}, "ab...");
    assert_int_equal(hfd_foreign_cut(S("\xc3\xa4\xc3\xa4"), 3), 2);
    assert_int_equal(hfd_foreign_cut(S("\xc3\xa4\xc3\xa4"), 4), 4);
    assert_int_equal(hfd_foreign_cut(S("\xf0\x9f\x98\x80"), 3), 0);
    assert_int_equal(hfd_foreign_cut(S("abc"), 9), 3);
}

/* Formats of errors cut texts anywhere: no half is left, and no secret. */
static void errors_have_no_halves_and_no_secrets(void **state)
{
    struct hfd_err err;

    (void)state;
    (void)hfd_fail(&err, HFD_INVALID, "got \"%.5s\" and \"%.6s\"", "\xc3\xa4\xc3\xa4\xc3\xa4",
                   "\xe2\x82\xac\xf0\x9f\x98\x80");
    assert_string_equal(err.msg, "got \"\xc3\xa4\xc3\xa4\" and \"\xe2\x82\xac\"");
    (void)hfd_fail(&err, HFD_INVALID, "nothing at %s", "/hyperfleet/t/" TOKEN "/abc");
    assert_string_equal(err.msg, "nothing at /hyperfleet/t/" R "/abc");
    (void)hfd_fail_field(&err, HFD_INVALID, "f", "got %.40s", "Bearer " TOKEN);
    assert_string_equal(err.msg, "got Bearer " R);
}

static void secrets_are_known_by_their_form(void **state)
{
    static const struct {
        hfd_slice text;
        const char *want; /* NULL: stays as it is */
    } rows[] = {
        /* tokens, wherever they stand */
        {S(TOKEN), R},
        {S("/t/" TOKEN "/abc"), "/t/" R "/abc"},
        {S("/hyperfleet/t/" TOKEN "/abc?x=1"), "/hyperfleet/t/" R "/abc?x=1"},
        {S("/t%2F" TOKEN "/abc"), "/t%2F" R "/abc"},
        {S("/t%252F" TOKEN "%252Fabc"), "/t%252F" R "%252Fabc"},
        {S("/T/" TOKEN "/abc"), "/T/" R "/abc"},
        {S("/./t/" TOKEN "/abc"), "/./t/" R "/abc"},
        {S("/t/hfd_x/t/" TOKEN "/abc"), "/t/hfd_x/t/" R "/abc"},
        {S("/hfd%5F" T43 "/abc"), "/" R "/abc"},
        {S("/%68%66%64%5f" T43 "/abc"), "/" R "/abc"},
        {S("/hfd%255F" T43 "/abc"), "/" R "/abc"},
        {S("/%252568fd_" T43), "/" R},
        {S("{\"token\":\"hfd\\u005f" T43 "\"}"), "{\"token\":\"" R "\"}"},
        {S("{\"a\":\"\\\\\\u0068fd_" T43 "\"}"), "{\"a\":\"\\\\" R "\"}"},
        {S("hfd_AbCdEfGhIjKlMnOpQrStUvWxY%7A0123456789-_AbCdE"), R},
        {S("Authorization: Bearer " TOKEN "."), "Authorization: Bearer " R "."},
        {S(TOKEN TOKEN), R},
        {S("x" TOKEN), "x" R},
        {S("HFD_" T43), R},
        {S("hfd_" LOWER43), R},
        {S("?a=" TOKEN "&b=" TOKEN), "?a=" R "&b=" R},
        {S("user:" TOKEN "@host"), "user:" R "@host"},
        /* cut at their ends */
        {S("/t/hfd_" T40), "/t/" R},
        {S("/t/hfd_AbCdEfGhIjKlMnOpQ"), "/t/" R},
        {S("\"hfd_AbCdEfGhIjKlMnOpQrStUvWxYz0123...\""), "\"" R "...\""},
        {S(HEAD "." BODY ".MEUC"), R},
        {S(HEAD "." BODY), R},
        {S(HEAD ".eyJp"), R},
        /* JWT and JWE */
        {S("/t/" HEAD "." BODY "." SIGN "/abc"), "/t/" R "/abc"},
        {S("Bearer " HEAD "." BODY "." SIGN ", x"), "Bearer " R ", x"},
        {S(HEAD "%2E" BODY "%2e" SIGN), R},
        {S(HEAD "%252E" BODY "." SIGN "/x"), R "/x"},
        {S("%65"
           "yJhbGciOiJFUzI1NiJ9." BODY "." SIGN),
         R},
        {S(HEAD ".." LONG "." LONG ".AAAA"), R}, /* JWE with a direct key */
        {S(HEAD "." LONG "." LONG "." LONG "." LONG), R},
        {S("ewogICJhbGciOiAiRVMyNTYiCn0." BODY "." SIGN), R}, /* {, a line end */
        {S(LONG "." LONG "." LONG), R},
        /* none of them */
        {S("hfd_"), NULL},
        {S("hfd_x"), NULL},
        {S("hfd_log_lines_dropped_total"), NULL},
        {S("/api/hyperfleet/v1/clusters/2abcdefghijklmnopqrstuvwxyz/nodepools"), NULL},
        {S("HFD_DRIVER_OUTPUTS_VALUES_NAME"), NULL},
        {S("eyre-peninsula-cluster-01"), NULL},
        {S("ewok-forest-cluster-production.example.com"), NULL},
        {S("my-very-long-bucket-name-for-data.us-gov-west-1.amazonaws.com"), NULL},
        {S("3c0a194814284345"), NULL},
        {S("%"), NULL},
        {S("%%25%2"), NULL},
        {S("\\u00"), NULL},
        {S("2026-11-22T11:46:32.000001Z"), NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *want = rows[i].want != NULL ? rows[i].want : rows[i].text.p;
        char text[512];

        memcpy(text, rows[i].text.p, rows[i].text.len);
        assert_slice((hfd_slice){text, hfd_foreign_mask(text, rows[i].text.len)}, want);
    }
}

/* Wherever a token is cut, no more of it is shown than a guess could find. */
static void cut_tokens_do_not_show(void **state)
{
    (void)state;
    for (size_t len = sizeof("hfd_") - 1 + 16; len < sizeof(TOKEN); len++) {
        char text[128] = "/t/" TOKEN;

        assert_slice((hfd_slice){text, hfd_foreign_mask(text, 3 + len)}, "/t/" R);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(foreign_text_is_visible),
        cmocka_unit_test(foreign_line_is_cut_at_a_character),
        cmocka_unit_test(errors_have_no_halves_and_no_secrets),
        cmocka_unit_test(secrets_are_known_by_their_form),
        cmocka_unit_test(cut_tokens_do_not_show),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
