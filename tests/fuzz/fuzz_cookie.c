/*
 * Cookies: hostile text opens to nothing; what we seal opens to the same content, and to nothing
 * once a byte of it has changed.
 */
#include "tests/fuzz/fuzz.h"

#include "driver/base/check.h"
#include "driver/core/cookie.h"

#define GURESID HFD_SLICE("guresid-1")

/** A cookie whose texts are pieces of the input. */
static struct hfd_cookie cookie_of(hfd_slice in)
{
    static const hfd_slice pools[] = {HFD_SLICE("2xQH2ZpgCBq4mHtLC0bXk4mPq3h"),
                                      HFD_SLICE("2xQH2ZpgCBq4mHtLC0bXk4mPq3i")};
    size_t half = in.len / 2 < 100 ? in.len / 2 : 100;

    return (struct hfd_cookie){
        .type = HFD_SLICE("hyperfleet-cluster"),
        .kind = HFD_KIND_CLUSTER,
        .incarnation = HFD_SLICE("2xQH2ZpgCBq4mHtLC0bXk4mPq3j"),
        .cluster_id = {in.p, half},
        .nodepool_ids = pools,
        .nodepool_count = sizeof(pools) / sizeof(pools[0]),
        .digest = HFD_SLICE("digest"),
        .backend = HFD_SLICE("embedded"),
        .protect = {in.p + half, in.len - half},
    };
}

static void sealed_opens(const struct hfd_cookie_ctx *ctx, hfd_slice in)
{
    struct hfd_cookie cookie = cookie_of(in), back;
    struct hfd_err err;
    hfd_slice text;
    hfd_rc rc = hfd_cookie_seal(ctx, &cookie, &text, &err);

    if (rc == HFD_NOMEM)
        return;
    HFD_ASSERT(rc == HFD_OK);
    HFD_ASSERT(text.len > 0 && text.len <= HFD_COOKIE_MAX);
    HFD_ASSERT(hfd_cookie_open(ctx, text, &back, &err) == HFD_OK);
    HFD_ASSERT(hfd_slice_eq(back.cluster_id, cookie.cluster_id));
    HFD_ASSERT(hfd_slice_is(back.protect, HFD_PROTECT_YES) ||
               hfd_slice_eq(back.protect, cookie.protect));

    char *bad = (char *)hfd_arena_alloc(ctx->mem, text.len);
    if (bad == NULL || in.len == 0)
        return;
    memcpy(bad, text.p, text.len);
    size_t at =
        (unsigned char)in.p[0] % (text.len - 1); /* the last character may carry unused bits */
    bad[at] = bad[at] == 'A' ? 'B' : 'A';
    HFD_ASSERT(hfd_cookie_open(ctx, (hfd_slice){bad, text.len}, &back, &err) == HFD_COOKIE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct hfd_keyring *ring;
    hfd_slice in = {(const char *)data, size};
    struct hfd_arena mem;
    struct hfd_cookie cookie;
    struct hfd_err err;

    if (ring == NULL)
        HFD_ASSERT(hfd_keyring_fixed(7, &ring, &err) == HFD_OK);
    hfd_arena_init(&mem, FUZZ_ARENA_BYTES);
    const struct hfd_cookie_ctx ctx = {ring, &hfd_rng_system, GURESID, &mem};
    HFD_ASSERT(hfd_cookie_open(&ctx, in, &cookie, &err) != HFD_OK);
    sealed_opens(&ctx, in);
    hfd_arena_fini(&mem);
    return 0;
}
