/* The driver cookie: what comes back out, what does not open, and that it always fits. */
#include "driver/core/cookie.h"

#include "driver/base/base.h"
#include "tests/lib/seams.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <sodium.h>

#define GURESID HFD_SLICE("3c0a194814284345e330544f88798e83992468e2")

struct fixture {
    struct hfd_keyring *ring;
    struct test_rng rng;
    struct hfd_arena mem;
};

static int setup(void **state)
{
    static struct fixture fx;

    memset(&fx, 0, sizeof(fx));
    test_rng_init(&fx.rng, 1);
    hfd_arena_init(&fx.mem, 64u << 20);
    assert_int_equal(hfd_keyring_fixed(1, &fx.ring, NULL), HFD_OK);
    *state = &fx;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;

    hfd_keyring_free(fx->ring);
    hfd_arena_fini(&fx->mem);
    return 0;
}

static const hfd_slice pools[] = {HFD_SLICE("2pool0000000000000000000001"),
                                  HFD_SLICE("2pool0000000000000000000002")};

static struct hfd_cookie sample(void)
{
    return (struct hfd_cookie){
        .type = HFD_SLICE("my-org/hyperfleet-cluster"),
        .kind = HFD_KIND_CLUSTER,
        .incarnation = HFD_SLICE("2inc00000000000000000000001"),
        .cluster_id = HFD_SLICE("2cluster0000000000000000001"),
        .nodepool_ids = pools,
        .nodepool_count = 2,
        .digest = HFD_SLICE("\0\0\0\1\0digest\xff"),
        .backend = HFD_SLICE("embedded"),
        .protect = HFD_SLICE("yes\nteam=blue"),
    };
}

/* A place for cookies of GURESID, with its results in the memory given. */
static struct hfd_cookie_ctx ctx_in(struct fixture *fx, struct hfd_arena *mem)
{
    return (struct hfd_cookie_ctx){fx->ring, &fx->rng.rng, GURESID, mem};
}

static hfd_rc seal_in(struct fixture *fx, const struct hfd_cookie *in, struct hfd_arena *mem,
                      hfd_slice *out)
{
    const struct hfd_cookie_ctx ctx = ctx_in(fx, mem);

    return hfd_cookie_seal(&ctx, in, out, NULL);
}

static hfd_rc open_in(struct fixture *fx, hfd_slice text, struct hfd_arena *mem,
                      struct hfd_cookie *out)
{
    const struct hfd_cookie_ctx ctx = ctx_in(fx, mem);

    return hfd_cookie_open(&ctx, text, out, NULL);
}

static hfd_slice seal(struct fixture *fx, const struct hfd_cookie *c)
{
    hfd_slice text;

    assert_int_equal(seal_in(fx, c, &fx->mem, &text), HFD_OK);
    assert_true(text.len > 0 && text.len <= HFD_COOKIE_MAX);
    for (size_t i = 0; i < text.len; i++)
        assert_non_null(
            strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", text.p[i]));
    return text;
}

static void assert_same(const struct hfd_cookie *a, const struct hfd_cookie *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_true(hfd_slice_eq(a->type, b->type));
    assert_true(hfd_slice_eq(a->incarnation, b->incarnation));
    assert_true(hfd_slice_eq(a->cluster_id, b->cluster_id));
    assert_true(hfd_slice_eq(a->digest, b->digest));
    assert_true(hfd_slice_eq(a->backend, b->backend));
    assert_true(hfd_slice_eq(a->protect, b->protect));
    assert_int_equal(a->nodepool_count, b->nodepool_count);
    for (size_t i = 0; i < a->nodepool_count; i++)
        assert_true(hfd_slice_eq(a->nodepool_ids[i], b->nodepool_ids[i]));
}

static void assert_refused(struct fixture *fx, hfd_slice guresid, hfd_slice text)
{
    static const struct hfd_cookie none; /* static: its padding is zero too */
    struct hfd_cookie out = sample();
    struct hfd_arena mem;
    struct hfd_cookie_ctx ctx = ctx_in(fx, &mem);
    struct hfd_err err;

    ctx.guresid = guresid;
    hfd_arena_init(&mem, 64u << 10);
    assert_int_equal(hfd_cookie_open(&ctx, text, &out, &err), HFD_COOKIE);
    hfd_arena_fini(&mem);
    assert_string_equal(err.msg, "the Humanitec-Driver-Cookie header is not a cookie of this "
                                 "resource: expected the value last set "
                                 "by this driver, or no header");
    assert_memory_equal(&out, &none, sizeof(out));
}

/* An opened cookie is equal to the sealed one, and a usual cookie is small. */
static void cookie_opens_as_it_was_sealed(void **state)
{
    struct fixture *fx = *state;
    struct hfd_cookie in = sample(), out;
    hfd_slice text = seal(fx, &in);

    assert_true(text.len < 1024);
    assert_int_equal(open_in(fx, text, &fx->mem, &out), HFD_OK);
    assert_same(&in, &out);

    in = (struct hfd_cookie){.kind = HFD_KIND_NODEPOOL};
    text = seal(fx, &in);
    assert_int_equal(open_in(fx, text, &fx->mem, &out), HFD_OK);
    assert_same(&in, &out);
}

/* A cookie of another resource, or under another ring, is none of this one's. */
static void cookie_of_somebody_else_is_refused(void **state)
{
    struct fixture *fx = *state;
    const struct hfd_cookie in = sample();
    const hfd_slice text = seal(fx, &in);
    struct hfd_keyring *other, *mine = fx->ring;

    assert_refused(fx, HFD_SLICE("3c0a194814284345e330544f88798e83992468e3"), text);
    assert_refused(fx, HFD_SLICE("3c0a194814284345e330544f88798e83992468e"), text);
    assert_refused(fx, HFD_SLICE(""), text);
    assert_int_equal(hfd_keyring_fixed(2, &other, NULL), HFD_OK);
    fx->ring = other;
    assert_refused(fx, GURESID, text);
    fx->ring = mine;
    hfd_keyring_free(other);
}

/*
 * Any other character anywhere, any cut, and anything behind it is refused: one text is the cookie,
 * no second one.
 */
static void cookie_with_any_change_is_refused(void **state)
{
    static const char others[] = "ABCDwxyz019-_=+/. \t%\"";
    struct fixture *fx = *state;
    const struct hfd_cookie in = sample();
    const hfd_slice text = seal(fx, &in);
    char copy[2048];

    for (size_t i = 0; i < text.len; i++)
        for (size_t k = 0; k < sizeof(others); k++) { /* its NUL too */
            memcpy(copy, text.p, text.len);
            if (copy[i] == others[k])
                continue;
            copy[i] = others[k];
            assert_refused(fx, GURESID, (hfd_slice){copy, text.len});
        }
    for (size_t len = 0; len < text.len; len++)
        assert_refused(fx, GURESID, (hfd_slice){text.p, len});
    for (size_t k = 0; k < sizeof(others); k++) {
        memcpy(copy, text.p, text.len);
        copy[text.len] = others[k];
        assert_refused(fx, GURESID, (hfd_slice){copy, text.len + 1});
    }
}

/* The longest text is tried; one more character is refused before anything is read. */
static void cookie_too_long_is_refused_unread(void **state)
{
    static char text[HFD_COOKIE_MAX + 1];
    struct fixture *fx = *state;
    struct hfd_arena none;
    struct hfd_cookie out;

    memset(text, 'A', sizeof(text));
    assert_refused(fx, GURESID, (hfd_slice){text, HFD_COOKIE_MAX});
    hfd_arena_init(&none, 0);
    assert_int_equal(open_in(fx, (hfd_slice){text, sizeof(text)}, &none, &out), HFD_COOKIE);
    assert_int_equal(open_in(fx, (hfd_slice){NULL, SIZE_MAX}, &none, &out), HFD_COOKIE);
    assert_int_equal(open_in(fx, (hfd_slice){text, HFD_COOKIE_MAX}, &none, &out), HFD_NOMEM);
    hfd_arena_fini(&none);
}

/*
 * Up to the last byte everything is carried; beyond it first the nodepools stay behind, then the
 * labels: then it counts as protected.
 */
static void cookie_leaves_out_what_does_not_fit(void **state)
{
    static char big[70000];
    static hfd_slice many[3000];
    struct fixture *fx = *state;
    const size_t fixed_len = 4 + 6 * 2 + 25 + 27 + 27 + 12 + 8;
    struct hfd_cookie in = sample(), out;
    hfd_slice text;

    memset(big, 'x', sizeof(big));
    in.nodepool_count = 0;
    in.protect = (hfd_slice){big, 7634 - fixed_len};
    text = seal(fx, &in);
    assert_int_equal(text.len, HFD_COOKIE_MAX);
    assert_int_equal(open_in(fx, text, &fx->mem, &out), HFD_OK);
    assert_same(&in, &out);

    in.nodepool_count = 1; /* does not fit beside such labels */
    text = seal(fx, &in);
    assert_int_equal(open_in(fx, text, &fx->mem, &out), HFD_OK);
    assert_int_equal(out.nodepool_count, 0);
    assert_int_equal(out.protect.len, in.protect.len);

    for (size_t i = 0; i < 3000; i++)
        many[i] = pools[i % 2];
    in.nodepool_ids = many;
    in.nodepool_count = 3000;
    for (size_t len = 7634 - fixed_len + 1; len <= sizeof(big); len += 20000) {
        in.protect.len = len;
        text = seal(fx, &in);
        assert_int_equal(open_in(fx, text, &fx->mem, &out), HFD_OK);
        assert_int_equal(out.nodepool_count, 0);
        assert_true(hfd_slice_is(out.protect, HFD_PROTECT_YES));
        assert_true(hfd_slice_eq(out.digest, in.digest));
    }

    in.backend = (hfd_slice){big, 8000};
    assert_int_equal(seal_in(fx, &in, &fx->mem, &text), HFD_LIMIT);
    assert_null(text.p);
}

/* 200 nodepools are carried whole. */
static void cookie_carries_many_nodepools(void **state)
{
    static hfd_slice many[200];
    struct fixture *fx = *state;
    struct hfd_cookie in = sample(), out;
    hfd_slice text;

    for (size_t i = 0; i < 200; i++)
        many[i] = pools[i % 2];
    in.nodepool_ids = many;
    in.nodepool_count = 200;
    text = seal(fx, &in);
    assert_int_equal(open_in(fx, text, &fx->mem, &out), HFD_OK);
    assert_same(&in, &out);
}

/* The text of a plaintext that some faulty program sealed with the right key. */
static hfd_slice seal_raw(struct fixture *fx, unsigned char version, const void *plain, size_t len)
{
    char aad[64], raw[512], *text = hfd_arena_alloc(&fx->mem, 1024);
    const int n = snprintf(aad, sizeof(aad), "cookie%c%.*s", version, HFD_SLICE_FMT(GURESID));
    const hfd_slice sealed =
        hfd_keyring_seal(&(struct hfd_seal){fx->ring, HFD_KEY_COOKIE, (hfd_slice){aad, (size_t)n}},
                         &fx->rng.rng, (hfd_slice){plain, len}, &fx->mem);

    raw[0] = (char)version;
    memcpy(raw + 1, sealed.p, sealed.len);
    sodium_bin2base64(text, 1024, (unsigned char *)raw, sealed.len + 1,
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    return hfd_slice_of(text);
}

/*
 * Even what opens is bounded: counts and lengths beyond the end, leftovers, unknown versions and
 * kinds.
 */
static void cookie_plaintext_is_bounded(void **state)
{
    /* clang-format off */
#define FIVE "\0\1t\0\0\0\0\0\0\0\0"
    static const struct {
        const char *plain;
        size_t len;
        unsigned char version;
        bool good;
    } rows[] = {
#define ROW(version, good, lit) {lit, sizeof(lit) - 1, version, good}
        ROW(1, true, "\1\1" FIVE "\0\0" "\0\0"),
        ROW(1, true, "\1\2" FIVE "\0\0" "\0\1\0\1x"),
        ROW(2, false, "\1\1" FIVE "\0\0" "\0\0"),
        ROW(1, false, "\2\1" FIVE "\0\0" "\0\0"),
        ROW(1, false, "\1\0" FIVE "\0\0" "\0\0"),
        ROW(1, false, "\1\3" FIVE "\0\0" "\0\0"),
        ROW(1, false, "\1\1" FIVE "\0\0" "\0\0" "x"),
        ROW(1, false, "\1\1" FIVE "\0\0" "\0\1"),
        ROW(1, false, "\1\1" FIVE "\0\0" "\0\2\0\1x"),
        ROW(1, false, "\1\1" FIVE "\0\0" "\377\377\0\0\0\0"),
        ROW(1, false, "\1\1" FIVE "\0\0" "\0\1\377\377x"),
        ROW(1, false, "\1\1" FIVE "\377\377" "\0\0"),
        ROW(1, false, "\1\1\0\2t"),
        ROW(1, false, "\1\1"),
        ROW(1, false, "\1"),
        ROW(1, false, ""),
    };
    /* clang-format on */
    struct fixture *fx = *state;
    struct hfd_cookie out;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const hfd_slice text = seal_raw(fx, rows[i].version, rows[i].plain, rows[i].len);

        if (rows[i].good)
            assert_int_equal(open_in(fx, text, &fx->mem, &out), HFD_OK);
        else
            assert_refused(fx, GURESID, text);
    }
}

/* With any limit of memory, the failure is HFD_NOMEM and gives nothing. */
static void cookie_tells_of_short_memory(void **state)
{
    struct fixture *fx = *state;
    const struct hfd_cookie in = sample();
    const hfd_slice text = seal(fx, &in);
    bool sealed = false, opened = false;

    for (size_t max = 0; !sealed || !opened; max += 64) {
        struct hfd_cookie back;
        struct hfd_arena mem;
        hfd_slice out;
        hfd_rc rc;

        assert_true(max < 100000);
        hfd_arena_init(&mem, max);
        rc = seal_in(fx, &in, &mem, &out);
        assert_true(rc == HFD_OK || (rc == HFD_NOMEM && out.p == NULL));
        sealed = rc == HFD_OK;
        hfd_arena_fini(&mem);
        hfd_arena_init(&mem, max);
        rc = open_in(fx, text, &mem, &back);
        assert_true(rc == HFD_OK || (rc == HFD_NOMEM && back.type.p == NULL));
        opened = rc == HFD_OK;
        hfd_arena_fini(&mem);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(cookie_opens_as_it_was_sealed),       TEST(cookie_of_somebody_else_is_refused),
        TEST(cookie_with_any_change_is_refused),   TEST(cookie_too_long_is_refused_unread),
        TEST(cookie_leaves_out_what_does_not_fit), TEST(cookie_carries_many_nodepools),
        TEST(cookie_plaintext_is_bounded),         TEST(cookie_tells_of_short_memory),
    };

    if (hfd_base_init(NULL) != HFD_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
