/*
 * handlers/auth: needs and scopes, the decision, credentials, the tokens file, failures. The table
 * of routes has a need in every row.
 */
#include "handlers/auth/decide.h"
#include "handlers/auth/guard.h"
#include "handlers/auth/token.h"
#include "handlers/auth/trust.h"
#include "handlers/http/routes.h"
#include "tests/lib/contains.h"
#include "tests/lib/tmpdir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sodium.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

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
        struct hfd_grant meets;

        assert_int_equal(hfd_grant_parse(hfd_slice_of(cases[i].scopes), &meets, NULL), HFD_OK);
        for (unsigned s = 0; s < HFD_SCOPE_COUNT; s++)
            assert_int_equal(hfd_need_is_met(cases[i].need, 1u << s), (meets.scopes >> s & 1) != 0);
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
                                       "/favicon.ico",
                                       "/api/hyperfleet/v1/openapi",
                                       "/api/hyperfleet/v1/openapi.html",
                                       "/api/hyperfleet/v1/openapi/{page}"};

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
    static const char *const bad[] = {
        "",
        "x",
        "driver,",
        ",driver",
        "driver admin",
        "DRIVER",
        "adapter=",
        "adapter=a b",
        "adapter=a=b",
        "adapter=a\"",
        "view=dns",
        "adapter =dns",
        "adapter,adapter=dns",
        "adapter=dns,view,adapter",
        "adapter=a23456789012345678901234567890123456789012345678901234567890123x"};
    static const struct {
        const char *text, *written, *json;
    } good[] = {
        {" view , driver", "driver,view", "\"driver\",\"view\""},
        {"adapter", "adapter", "\"adapter\""},
        {"adapter=dns", "adapter=dns", "\"adapter=dns\""},
        {"view, adapter=my.dns_2,adapter=dns ", "adapter=my.dns_2,adapter=dns,view",
         "\"adapter=my.dns_2\",\"adapter=dns\",\"view\""},
    };
    struct hfd_grant grant;
    struct hfd_buf b;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(hfd_grant_parse(hfd_slice_of(bad[i]), &grant, NULL), HFD_INVALID);
        assert_int_equal(grant.scopes, 0);
    }
    hfd_buf_init(&b, 200);
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(hfd_grant_parse(hfd_slice_of(good[i].text), &grant, NULL), HFD_OK);
        hfd_grant_format(&b, &grant, false);
        assert_true(hfd_slice_is(hfd_buf_slice(&b), good[i].written));
        hfd_buf_reset(&b);
        hfd_grant_format(&b, &grant, true);
        assert_true(hfd_slice_is(hfd_buf_slice(&b), good[i].json));
        hfd_buf_reset(&b);
    }
    hfd_buf_fini(&b);
}

/* A scope adapter with names reports under these names only. */
static void adapters_are_bound(void **state)
{
    static const struct {
        const char *scopes, *adapter;
        bool may;
    } cases[] = {
        {"adapter", "dns", true},
        {"adapter=dns", "dns", true},
        {"adapter=dns", "DNS", false},
        {"adapter=dns", "dn", false},
        {"adapter=dns", "dns2", false},
        {"adapter=dns", "", false},
        {"adapter=dns", "dns,view", false},
        {"view , adapter=dns , adapter=validation", "validation", true},
        {"view,adapter=dns", "view", false},
        {"adapter=dns,admin", "validation", true},
    };
    struct hfd_grant grant;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(hfd_grant_parse(hfd_slice_of(cases[i].scopes), &grant, NULL), HFD_OK);
        assert_int_equal(hfd_grant_has_adapter(&grant, hfd_slice_of(cases[i].adapter)),
                         cases[i].may);
    }
}

/* ---- the decision ---- */

static void decisions(void **state)
{
    const struct hfd_caller driver = {.grant = {.scopes = HFD_SCOPE_BIT(DRIVER)}},
                            unknown = {.fault = HFD_AUTH_EXPIRED,
                                       .grant = {.scopes = HFD_SCOPE_BIT(ADMIN)}},
                            unchecked = {.fault = HFD_AUTH_NO_KEYS};
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
    assert_int_equal(hfd_auth_decide(true, HFD_NEED_DRIVER, &unchecked, text), HFD_ACCESS_LATER);
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
    assert_true(hfd_keyset_has_name(set, HFD_SLICE(" CI ")));
    assert_false(hfd_keyset_has_name(set, HFD_SLICE("c")));
    hfd_keyset_unref(set);
    hfd_arena_fini(&mem);
}

/* A link that leads nowhere, a folder and a folder in place of the path's are no missing file. */
static void files_that_exist(void **state)
{
    char folder[TMPDIR_MAX], path[TMPDIR_MAX + 10];
    struct hfd_token_list list;
    struct hfd_arena mem;
    struct hfd_err err;

    (void)state;
    hfd_arena_init(&mem, 1 << 20);
    tmpdir_make(folder);
    (void)snprintf(path, sizeof(path), "%s/tokens", folder);
    assert_int_equal(hfd_token_file_read(path, &mem, &list, &err), HFD_NOT_FOUND);
    assert_int_equal(symlink("nowhere", path), 0);
    assert_int_equal(hfd_token_file_read(path, &mem, &list, &err), HFD_IO);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("tokens", path), 0);
    assert_int_equal(hfd_token_file_read(path, &mem, &list, &err), HFD_IO);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(hfd_token_file_read(path, &mem, &list, &err), HFD_INVALID);
    tmpdir_remove(folder);
    hfd_arena_fini(&mem);
}

/* ---- keys ---- */

/* clang-format off */
#define BEGIN "-----BEGIN PUBLIC KEY-----\n"
#define END "-----END PUBLIC KEY-----\n"
#define ONE_BODY                                                                                   \
    "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA1xvqauP2Kf1BW54bQnw2\n"                           \
    "89PMZk1ChKUtwM01SKp2yfj6Ahks7bTnLUqErVrr5sPPdS286SOKeFS6A58uDF7X\n"                           \
    "b+gzZHLZHC91VHE06GMl/Mmfn74X0xXDQOiPoSRUaphYvcEZDds2tumEWxiFkwZc\n"                           \
    "emj9dlZBRZ6SrOWlGZCZl8MQoXiU5BvX76AB/NOUgPKh7zhcVo/mz3cZaS6l3Vkr\n"                           \
    "Q1FzhrV9zdHu9+cfVXp5s3xoJ5ekbdr5b4DoPw7Pk6Lzy94JCF1tRVjaQaUBF+7r\n"                           \
    "M7xjmJSTbbYbN8Ys4fhnj9KQe9tvnS2GTezIIifEXPurEQXKbdObbaGqi0vr2OiS\n"                           \
    "RQIDAQAB\n"
#define TWO_BODY                                                                                   \
    "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAprU/elXTEPOgUHlJOs/e\n"                           \
    "5aa3g/qpIBe951I2FabJsr3hQcQwQDaV5kTJCoIpId2ewFFSSjmAFHlbvbHarzDc\n"                           \
    "mhImadBnxqIOPx/mDYtbSoZ+5xB8J6yz6yeWzR2uBFXLyRQruukiG4TuvD0w46KD\n"                           \
    "feDsCFxxvb32NjM1hIibRpIoXwjxwFYAVCKqXtw4rZlkdqRNh3o3QdE9O6VTxtgJ\n"                           \
    "iUO1FQDvwMwdosQV7wh4MkfVK8Qq3WotPDDFGFuUmuEjrAaiuMoI1Xy7+BTSMCwv\n"                           \
    "4AHMPeu6HUO5uteyFX9uaviAuwve/QL0+SVx/urx/7qsIthvPhYDtk29orrKQvo8\n"                           \
    "OwIDAQAB\n"
#define EC_BODY                                                                                    \
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEVhKisRSqFlifftdQBHIJkuUMZjCq\n"                           \
    "7s58U9RtpMSFnRS/EDiUbVa2CskBVowdpwXKuWlFD4bsyhyaoMp1BmgmqQ==\n"
/* clang-format on */
#define ONE BEGIN ONE_BODY END
#define TWO BEGIN TWO_BODY END
#define ONE_KID "d2cf30babc7a5666e9020755c1ee7b7b953fb0fc4bd7d40e8342e87c934650c3"
#define TWO_KID "03bd41b096adaf3833d418e0f9223ad932c60784780b094ec867b2399b76b469"
#define EC_X "VhKisRSqFlifftdQBHIJkuUMZjCq7s58U9RtpMSFnRQ"
#define EC_Y "vxA4lG1WtgrJAVaMHacFyrlpRQ-G7MocmqDKdQZoJqk"

/* All keys of a PEM file are used, or the file is refused in words, and none is. */
static void pem_files_are_read(void **state)
{
    static const struct {
        const char *text, *error; /* error: NULL = both keys are taken */
    } cases[] = {
        {ONE TWO, NULL},
        {"the old one\n\n" ONE "\r\n# the new one:\n" TWO "\ntext", NULL},
        {"\xEF\xBB\xBF" ONE TWO, NULL},
        {"", "it holds no PEM public key"},
        {"text", "it holds no PEM public key"},
        {ONE BEGIN TWO_BODY, "damaged"},
        {ONE BEGIN, "damaged"},
        {ONE TWO_BODY END, "damaged"},
        {ONE "----BEGIN PUBLIC KEY-----\n" TWO_BODY END, "damaged"},
        {ONE BEGIN "AAAA\n" END, "block 2: it is damaged"},
        {ONE BEGIN EC_BODY END, "block 2: expected a public key of RSA"},
        {BEGIN EC_BODY END ONE, "block 1: expected a public key of RSA"},
        {ONE "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
         "block 2 is no PEM public key but \"PRIVATE KEY\""},
        {"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" ONE,
         "block 1 is no PEM public key but \"CERTIFICATE\""},
        {"-----BEGIN RSA PUBLIC KEY-----\nAAAA\n-----END RSA PUBLIC KEY-----\n" ONE,
         "block 1 is no PEM public key but \"RSA PUBLIC KEY\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hfd_jwk_list keys = {.count = 0};
        struct hfd_err err = {0};
        const hfd_rc rc = hfd_jwk_add_pem(&keys, hfd_slice_of(cases[i].text), &err);
        assert_int_equal(rc, cases[i].error == NULL ? HFD_OK : HFD_INVALID);
        assert_int_equal(keys.count, cases[i].error == NULL ? 2 : 0);
        if (cases[i].error != NULL)
            assert_contains(hfd_slice_of(err.msg), cases[i].error);
        assert_int_equal(hfd_jwk_find(&keys, HFD_SLICE(ONE_KID)) != NULL, rc == HFD_OK);
        assert_int_equal(hfd_jwk_find(&keys, HFD_SLICE(TWO_KID)) != NULL, rc == HFD_OK);
        hfd_jwk_list_fini(&keys);
    }
}

/* A set has as many keys as its bytes hold, and their names may be long. */
static void sets_are_read_whole(void **state)
{
    static const char key[] =
        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" EC_X "\",\"y\":\"" EC_Y "\",\"kid\":\"";
    struct hfd_jwk_list keys;
    char name[1000];
    struct hfd_err err;
    struct hfd_buf b;

    (void)state;
    memset(name, 'k', sizeof(name));
    hfd_buf_init(&b, HFD_JWKS_MAX_BYTES);
    hfd_buf_lit(&b, "{\"keys\":[");
    for (int i = 0; i < 200; i++)
        hfd_buf_addf(&b, "%sk%d\"},", key, i);
    hfd_buf_addf(&b, "%s%.*s\"}]}", key, (int)sizeof(name), name);
    assert_int_equal(hfd_jwk_parse_set(hfd_buf_slice(&b), &keys, &err), HFD_OK);
    assert_int_equal(keys.count, 201);
    assert_non_null(hfd_jwk_find(&keys, HFD_SLICE("k199")));
    assert_non_null(hfd_jwk_find(&keys, (hfd_slice){name, sizeof(name)}));
    hfd_jwk_list_fini(&keys);
    hfd_buf_fini(&b);
}

/* ---- JSON Web Tokens ---- */

/* Makes a JWT of `len` bytes in all: ES256, the key "k", and an issuer. Its signature is not good.
 */
static char *make_jwt(const char *issuer, size_t len)
{
    static const char header[] = "{\"alg\":\"ES256\",\"kid\":\"k\"}";
    char *claims = malloc(len), *text = malloc(len + 1), *at;
    size_t filler = (len - 200) / 4 * 3, left;

    assert_true(claims != NULL && text != NULL);
    do { /* no text of base64 has 4n + 1 characters */
        const int n =
            snprintf(claims, len, "{\"iss\":\"%s\",\"groups\":\"%*s\"}", issuer, (int)filler++, "");

        (void)sodium_bin2base64(text, len, (const unsigned char *)header, sizeof(header) - 1,
                                sodium_base64_VARIANT_URLSAFE_NO_PADDING);
        at = text + strlen(text);
        *at++ = '.';
        (void)sodium_bin2base64(at, len - (size_t)(at - text), (const unsigned char *)claims,
                                (size_t)n, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
        at += strlen(at);
        *at++ = '.';
        left = len - (size_t)(at - text);
    } while (left % 4 == 1);
    memset(at, 'A', left);
    text[len] = '\0';
    free(claims);
    return text;
}

/*
 * A token of 16 KiB is read, and the error of a larger one names the limit. A token of an issuer
 * whose keys never came is not called bad.
 */
static void tokens_of_issuers_are_judged(void **state)
{
    static const struct {
        const char *issuer;
        size_t len;
        enum hfd_auth_fault fault;
    } cases[] = {
        {"https://url", 1000, HFD_AUTH_NO_KEYS},   {"https://url", 9000, HFD_AUTH_NO_KEYS},
        {"https://url", 16384, HFD_AUTH_NO_KEYS},  {"https://url", 16386, HFD_AUTH_TOO_LONG},
        {"https://url", 30000, HFD_AUTH_TOO_LONG}, {"https://file", 1000, HFD_AUTH_KEY},
        {"https://other", 1000, HFD_AUTH_KEY},     {"https://both", 1000, HFD_AUTH_NO_KEYS},
    };
    struct hfd_issuer issuers[] = {
        {.issuer_url = HFD_SLICE("https://url"), .jwk_cert_url = HFD_SLICE("https://url/keys")},
        {.issuer_url = HFD_SLICE("https://file"), .jwk_cert_file = HFD_SLICE("/keys")},
        {.issuer_url = HFD_SLICE("https://both"), .jwk_cert_url = HFD_SLICE("https://both/keys")},
        {.issuer_url = HFD_SLICE("https://both"), .jwk_cert_file = HFD_SLICE("/keys")}};
    struct hfd_issuer_list list = {issuers, sizeof(issuers) / sizeof(issuers[0])};
    struct hfd_trust *trust = hfd_trust_new(&list);
    const struct hfd_token_list none = {.count = 0};
    struct hfd_trust_answer answer;
    struct hfd_keyset *own;

    (void)state;
    assert_non_null(trust);
    assert_int_equal(hfd_keyset_new(&none, &own, NULL), HFD_OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *text = make_jwt(cases[i].issuer, cases[i].len);

        assert_int_equal(hfd_trust_check(trust, own, hfd_slice_of(text), 1, &answer), HFD_OK);
        assert_int_equal(answer.fault, cases[i].fault);
        free(text);
    }
    hfd_keyset_unref(own);
    hfd_trust_unref(trust);
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
        note = hfd_failures_note(f, "192.0.2.1", NOW_US);
        assert_int_equal(note.delay_us, (i < 100 ? i : 100) * 20000);
        assert_int_equal(note.log, i <= HFD_FAILURE_LINES_PER_S);
    }
    assert_int_equal(hfd_failures_note(f, "192.0.2.2", NOW_US).delay_us, 20000);
    /* The next line has the number of those that were left out. */
    note = hfd_failures_note(f, NULL, NOW_US + HFD_US_PER_S);
    assert_true(note.log);
    assert_int_equal(note.silent, 141);
    /* Failures fade, one in six seconds. */
    assert_int_equal(hfd_failures_note(f, "192.0.2.1", NOW_US + 60 * HFD_US_PER_S).delay_us,
                     91 * 20000);
    assert_int_equal(hfd_failures_note(f, "192.0.2.1", NOW_US + 3600 * HFD_US_PER_S).delay_us,
                     20000);
    /* A network of IPv6 is one caller. */
    (void)hfd_failures_note(f, "2001:db8:1:2::1", NOW_US);
    assert_int_equal(hfd_failures_note(f, "2001:db8:1:2:9:9:9:9", NOW_US).delay_us, 40000);
    assert_int_equal(hfd_failures_note(f, "2001:db8:1:3::1", NOW_US).delay_us, 20000);
    /* A flood of addresses displaces those with fewer failures. */
    for (int i = 0; i < 50; i++)
        note = hfd_failures_note(f, "198.51.100.7", NOW_US);
    for (int i = 0; i < 30000; i++) {
        (void)snprintf(from, sizeof(from), "10.%d.%d.%d", i >> 16, i >> 8 & 255, i & 255);
        (void)hfd_failures_note(f, from, NOW_US);
    }
    assert_int_equal(hfd_failures_note(f, "198.51.100.7", NOW_US).delay_us, 51 * 20000);
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
        cmocka_unit_test(failures_are_counted), cmocka_unit_test(adapters_are_bound),
        cmocka_unit_test(files_that_exist),     cmocka_unit_test(pem_files_are_read),
        cmocka_unit_test(sets_are_read_whole),  cmocka_unit_test(tokens_of_issuers_are_judged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
