/*
 * handlers/auth: needs and scopes, the decision, credentials, the tokens file, failures. The table
 * of routes has a need in every row.
 */
#include "tests/lib/contains.h"
#include "handlers/auth/credential.h"
#include "handlers/auth/failures.h"
#include "handlers/auth/keyset.h"
#include "handlers/auth/token_file.h"
#include "handlers/http/routes.h"
#include "tests/lib/tmpdir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

/* ---- scopes ---- */

/* Each need is met by exactly these scopes. */
static void needs_are_met(void **state)
{
    static const struct {
        enum hfd_need need;
        const char *scopes; /* which meet it */
    } cases[] = {
        {HFD_NEED_ANY, "driver,fleet-read,adapter,fleet-write,view,admin"},
        {HFD_NEED_DRIVER, "driver,admin"},
        {HFD_NEED_STATUS, "driver,view,admin"},
        {HFD_NEED_FLEET_READ, "fleet-read,adapter,fleet-write,admin"},
        {HFD_NEED_REPORT, "adapter,admin"},
        {HFD_NEED_FLEET_WRITE, "fleet-write,admin"},
        {HFD_NEED_VIEW, "view,admin"},
        {HFD_NEED_ADMIN, "admin"},
    };

    (void)state;
    assert_int_equal(sizeof(cases) / sizeof(cases[0]), HFD_NEED_COUNT - 2);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        hfd_scopes meets;

        assert_int_equal(hfd_scopes_parse(hfd_slice_of(cases[i].scopes), &meets, NULL), HFD_OK);
        for (unsigned s = 0; s < HFD_SCOPE_COUNT; s++)
            assert_int_equal(hfd_need_is_met(cases[i].need, 1u << s), (meets >> s & 1) != 0);
        assert_false(hfd_need_is_met(cases[i].need, 0));
    }
}

/* No row of the table of routes lacks a need; only these are open. */
static void every_route_has_a_need(void **state)
{
    static const char *const open[] = {"/livez",
                                       "/alive",
                                       "/healthz",
                                       "/readyz",
                                       "/health",
                                       "/metrics",
                                       "/docs",
                                       "/docs/{page}",
                                       "/docs/spec.json",
                                       "/api/hyperfleet/v1/openapi",
                                       "/api/hyperfleet/v1/openapi.html"};

    (void)state;
    for (size_t i = 0; i < hfd_route_count; i++) {
        const struct hfd_route *r = &hfd_routes[i];
        bool may = false;

        assert_int_not_equal(r->need, HFD_NEED_UNSET);
        assert_int_not_equal(r->need, HFD_NEED_ANY);
        for (size_t k = 0; k < sizeof(open) / sizeof(open[0]); k++)
            may = may || strcmp(r->pattern, open[k]) == 0;
        if ((r->need == HFD_NEED_OPEN) != may)
            fail_msg("%s: open or not?", r->pattern);
    }
}

static void scopes_are_parsed(void **state)
{
    static const char *const bad[] = {"", "x", "driver,", ",driver", "driver admin", "DRIVER"};
    struct hfd_buf b;
    hfd_scopes scopes;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(hfd_scopes_parse(hfd_slice_of(bad[i]), &scopes, NULL), HFD_INVALID);
    assert_int_equal(hfd_scopes_parse(HFD_SLICE(" view , driver"), &scopes, NULL), HFD_OK);
    hfd_buf_init(&b, 100);
    hfd_scopes_format(&b, scopes);
    assert_true(hfd_slice_is(hfd_buf_slice(&b), "driver,view"));
    hfd_buf_fini(&b);
}

/* ---- the decision ---- */

static void decisions(void **state)
{
    const struct hfd_caller driver = {.scopes = HFD_SCOPE_BIT(DRIVER)},
                            unknown = {.fault = HFD_AUTH_EXPIRED, .scopes = HFD_SCOPE_BIT(ADMIN)};
    char text[HFD_AUTH_TEXT_MAX];

    (void)state;
    assert_int_equal(hfd_auth_decide(false, HFD_NEED_ADMIN, &unknown, text), HFD_ACCESS_ALLOWED);
    assert_int_equal(hfd_auth_decide(true, HFD_NEED_OPEN, &unknown, text), HFD_ACCESS_ALLOWED);
    assert_int_equal(hfd_auth_decide(true, HFD_NEED_DRIVER, &driver, text), HFD_ACCESS_ALLOWED);
    assert_string_equal(text, "");
    assert_int_equal(hfd_auth_decide(true, HFD_NEED_VIEW, &driver, text), HFD_ACCESS_FORBIDDEN);
    assert_string_equal(text, "the caller lacks the scope view");
    assert_int_equal(hfd_auth_decide(true, HFD_NEED_DRIVER, &unknown, text), HFD_ACCESS_UNKNOWN);
    assert_string_equal(text, "the token has expired");
}

/* ---- credentials ---- */

static void headers_are_read(void **state)
{
    static const struct {
        const char *value, *token; /* token: NULL = none */
        enum hfd_auth_fault fault;
        bool basic;
    } cases[] = {
        {"", NULL, HFD_AUTH_ABSENT, true},
        {"Bearer abc", "abc", HFD_AUTH_NONE, false},
        {"bEARER   abc", "abc", HFD_AUTH_NONE, false},
        {"Bearer", NULL, HFD_AUTH_UNREADABLE, true},
        {"Bearer ", NULL, HFD_AUTH_UNREADABLE, true},
        {"Bearerabc", NULL, HFD_AUTH_UNREADABLE, true},
        {"Digest x", NULL, HFD_AUTH_UNREADABLE, true},
        {"Basic bWU6YWJj", "abc", HFD_AUTH_NONE, true},
        {"Basic OmFiYw==", "abc", HFD_AUTH_NONE, true},
        {"Basic bWU6YTpi", "a:b", HFD_AUTH_NONE, true},
        {"Basic bWU6YWJj", NULL, HFD_AUTH_UNREADABLE, false},
        {"Basic bWU6", NULL, HFD_AUTH_UNREADABLE, true},
        {"Basic bWU=", NULL, HFD_AUTH_UNREADABLE, true},
        {"Basic !", NULL, HFD_AUTH_UNREADABLE, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char basic[HFD_BASIC_MAX_BYTES];
        hfd_slice out;

        assert_int_equal(
            hfd_credential_read(hfd_slice_of(cases[i].value), cases[i].basic ? basic : NULL, &out),
            cases[i].fault);
        assert_true(hfd_slice_is(out, cases[i].token));
    }
}

static void paths_are_cut(void **state)
{
    static const struct {
        const char *path, *rest, *token; /* token: NULL = none */
    } cases[] = {
        {"/t/T/clusters/a", "/clusters/a", "T"},
        {"//t/T/a", "/a", "T"},
        {"/t//T//a", "//a", "T"},
        {"/%74/T/a", "/a", "T"},
        {"/t/T", "/", "T"},
        {"/t/T/", "/", "T"},
        {"/t", "/t", NULL},
        {"/t/", "/t/", NULL},
        {"/t//", "/t//", NULL},
        {"/tt/T/a", "/tt/T/a", NULL},
        {"/a/t/T", "/a/t/T", NULL},
        {"/", "/", NULL},
        {"", "", NULL},
        {"t/T/a", "t/T/a", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        hfd_slice path = hfd_slice_of(cases[i].path), token;

        hfd_credential_cut(&path, &token);
        if (!hfd_slice_is(path, cases[i].rest) || !hfd_slice_is(token, cases[i].token))
            fail_msg("%s: %.*s", cases[i].path, HFD_SLICE_FMT(path));
    }
}

/* ---- tokens ---- */

static void count_bytes(void *ctx, void *out, size_t len)
{
    memset(out, ++*(unsigned char *)ctx, len);
}

static void tokens_have_a_form(void **state)
{
    unsigned char seed = 0, hash[HFD_TOKEN_HASH_BYTES], other[HFD_TOKEN_HASH_BYTES];
    const struct hfd_rng rng = {count_bytes, &seed};
    char text[HFD_TOKEN_CHARS + 1];

    (void)state;
    hfd_token_make(&rng, text);
    assert_true(hfd_token_is(hfd_slice_of(text)));
    hfd_token_hash(hfd_slice_of(text), hash);
    text[10] ^= 1;
    hfd_token_hash(hfd_slice_of(text), other);
    assert_memory_not_equal(hash, other, sizeof(hash));
    text[10] = '.';
    assert_false(hfd_token_is(hfd_slice_of(text)));
    assert_false(hfd_token_is(HFD_SLICE("hfd_short")));
}

#define HEX "00112233445566778899aabbccddeeff00112233445566778899aabbccddeef"

static void files_are_parsed(void **state)
{
    static const char good[] = "# a comment\n\nci driver,view 2026-01-01T00:00:00Z - " HEX "0\n"
                               "x admin 2026-01-01T00:00:00Z 2027-01-01T00:00:00Z " HEX "1";
    static const char *const bad[] = {
        "ci driver 2026-01-01T00:00:00Z -",
        "ci driver 2026-01-01T00:00:00Z - " HEX,
        "ci driver 2026-01-01T00:00:00Z - " HEX "g",
        "ci driver 2026-01-01T00:00:00Z - " HEX "0 more",
        "ci none 2026-01-01T00:00:00Z - " HEX "0",
        "ci driver now - " HEX "0",
        "ci driver 2026-01-01T00:00:00Z soon " HEX "0",
        "c@i driver 2026-01-01T00:00:00Z - " HEX "0",
        "ci driver 2026-01-01T00:00:00Z - " HEX "0\nci view 2026-01-01T00:00:00Z - " HEX "1",
        "ci driver 2026-01-01T00:00:00Z - " HEX "0\nx view 2026-01-01T00:00:00Z - " HEX "0",
    };
    struct hfd_token_list list;
    struct hfd_keyset *set;
    struct hfd_arena mem;
    struct hfd_err err;
    struct hfd_buf b;

    (void)state;
    hfd_arena_init(&mem, 1 << 20);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(hfd_token_list_parse(hfd_slice_of(bad[i]), &mem, &list, &err),
                         HFD_INVALID);
        assert_non_null(strstr(err.msg, "line "));
        assert_int_equal(list.count, 0);
    }
    assert_int_equal(hfd_token_list_parse(HFD_SLICE(good), &mem, &list, &err), HFD_OK);
    assert_int_equal(list.count, 2);
    hfd_buf_init(&b, 4096);
    hfd_token_list_format(&list, &b);
    assert_contains(hfd_buf_slice(&b),
                    "\nci driver,view 2026-01-01T00:00:00Z - " HEX "0\nx admin ");
    hfd_buf_fini(&b);

    assert_int_equal(hfd_keyset_new(&list, &set, &err), HFD_OK);
    assert_int_equal(hfd_keyset_usable(set, list.items[1].expires_us - 1), 2);
    assert_int_equal(hfd_keyset_usable(set, list.items[1].expires_us), 1);
    assert_true(
        hfd_slice_is(hfd_keyset_find(set, list.items[0].hash)->identity, "ci@hyperfleet.local"));
    list.items[0].hash[31] ^= 2;
    assert_null(hfd_keyset_find(set, list.items[0].hash));
    hfd_keyset_unref(set);
    hfd_arena_fini(&mem);
}

/* ---- failures ---- */

#define NOW_US ((int64_t)1000 * HFD_US_PER_S)

static void failures_are_counted(void **state)
{
    struct hfd_failures *f = malloc(sizeof(*f));
    struct hfd_failure_note note;
    char from[32];

    (void)state;
    assert_non_null(f);
    hfd_failures_init(f);
    for (int i = 1; i <= 150; i++) {
        note = hfd_failures_add(f, "192.0.2.1", NOW_US);
        assert_int_equal(note.delay_us, (i < 100 ? i : 100) * 20000);
        assert_int_equal(note.log, i <= HFD_FAILURE_LINES_PER_S);
    }
    assert_int_equal(hfd_failures_add(f, "192.0.2.2", NOW_US).delay_us, 20000);
    /* The next line has the number of those that were left out. */
    note = hfd_failures_line(f, NOW_US + HFD_US_PER_S);
    assert_true(note.log);
    assert_int_equal(note.silent, 141);
    /* Failures fade, one in six seconds. */
    assert_int_equal(hfd_failures_add(f, "192.0.2.1", NOW_US + 60 * HFD_US_PER_S).delay_us,
                     91 * 20000);
    assert_int_equal(hfd_failures_add(f, "192.0.2.1", NOW_US + 3600 * HFD_US_PER_S).delay_us,
                     20000);
    /* A network of IPv6 is one caller. */
    (void)hfd_failures_add(f, "2001:db8:1:2::1", NOW_US);
    assert_int_equal(hfd_failures_add(f, "2001:db8:1:2:9:9:9:9", NOW_US).delay_us, 40000);
    assert_int_equal(hfd_failures_add(f, "2001:db8:1:3::1", NOW_US).delay_us, 20000);
    /* A flood of addresses displaces those with fewer failures. */
    for (int i = 0; i < 50; i++)
        note = hfd_failures_add(f, "198.51.100.7", NOW_US);
    for (int i = 0; i < 30000; i++) {
        (void)snprintf(from, sizeof(from), "10.%d.%d.%d", i >> 16, i >> 8 & 255, i & 255);
        (void)hfd_failures_add(f, from, NOW_US);
    }
    assert_int_equal(hfd_failures_add(f, "198.51.100.7", NOW_US).delay_us, 51 * 20000);
    hfd_failures_fini(f);
    free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(needs_are_met),        cmocka_unit_test(every_route_has_a_need),
        cmocka_unit_test(scopes_are_parsed),    cmocka_unit_test(decisions),
        cmocka_unit_test(headers_are_read),     cmocka_unit_test(paths_are_cut),
        cmocka_unit_test(tokens_have_a_form),   cmocka_unit_test(files_are_parsed),
        cmocka_unit_test(failures_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
