/*
 * JSON Web Tokens and sets of keys: hostile text breaks no parser, and is no good token. No byte of
 * a signed token can be changed.
 */
#include "handlers/auth/token.h"
#include "tests/fuzz/fuzz.h"

#include "driver/base/check.h"
#include "handlers/auth/decide.h"
#include "handlers/auth/trust.h"

/* Made with `openssl genpkey`; its private half is gone. */
static const char public_key[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA1xvqauP2Kf1BW54bQnw2\n"
    "89PMZk1ChKUtwM01SKp2yfj6Ahks7bTnLUqErVrr5sPPdS286SOKeFS6A58uDF7X\n"
    "b+gzZHLZHC91VHE06GMl/Mmfn74X0xXDQOiPoSRUaphYvcEZDds2tumEWxiFkwZc\n"
    "emj9dlZBRZ6SrOWlGZCZl8MQoXiU5BvX76AB/NOUgPKh7zhcVo/mz3cZaS6l3Vkr\n"
    "Q1FzhrV9zdHu9+cfVXp5s3xoJ5ekbdr5b4DoPw7Pk6Lzy94JCF1tRVjaQaUBF+7r\n"
    "M7xjmJSTbbYbN8Ys4fhnj9KQe9tvnS2GTezIIifEXPurEQXKbdObbaGqi0vr2OiS\n"
    "RQIDAQAB\n"
    "-----END PUBLIC KEY-----\n";
static const char kid[] = "d2cf30babc7a5666e9020755c1ee7b7b953fb0fc4bd7d40e8342e87c934650c3";
static const char signed_token[] =
    "eyJraWQiOiAiZDJjZjMwYmFiYzdhNTY2NmU5MDIwNzU1YzFlZTdiN2I5NTNmYjBmYzRiZDdkNDBlODM0"
    "MmU4N2M5MzQ2NTBjMyJ9.eyJvcmdJRCI6ICJhY21lIn0.TAaf39rLyfXyu1JdtoBu1gKLW5q5hyeoPsB"
    "cKWCg22iST8gh216l41U0UrDUhsEG4LojafKIRelF2SF1LLoK-Vrg5Vh98TlQbOAl30HZqLcuHfIEErp"
    "9jdfUSgRDjFm1mWRQBD4Ds8-MeAO_eRc0VKIKZEgja11wHwBczztY-eej8h0i-IFeYRi7fqOPMJBZmS7"
    "KivaLk8ZSxqI-Me-OFLhyJ1R9fvUq_N62BgbPQZGZyMfvwSBGGnUsLy3JNnuknIs3W-CbA5lUvOGw5Tj"
    "EXx3oJ6h-y7X9Zq3R4BhsIjBc1dGLpJqnrOilRHiwwnuG5j9NqHPCVLlBy35OlUwezg";

static struct hfd_trust *make_trust(void)
{
    static struct hfd_issuer issuer = {.issuer_url = {"i", 1},
                                       .identity_claim = {"sub", 3},
                                       .grant = {.scopes = HFD_SCOPE_BIT(VIEW)}};
    static struct hfd_issuer_list issuers = {&issuer, 1};
    struct hfd_trust *trust = hfd_trust_new(&issuers);
    struct hfd_err err;

    HFD_ASSERT(trust != NULL);
    HFD_ASSERT(hfd_jwk_add_pem(&trust->operator_keys, HFD_SLICE(public_key), &err) == HFD_OK);
    HFD_ASSERT(hfd_jwk_find(&trust->operator_keys, HFD_SLICE(kid)) != NULL);
    return trust;
}

static const struct hfd_keyset *no_tokens(void)
{
    static struct hfd_keyset *set;
    const struct hfd_token_list none = {.count = 0};

    if (set == NULL)
        HFD_ASSERT(hfd_keyset_new(&none, &set, NULL) == HFD_OK);
    return set;
}

/* The last character may carry unused bits. */
static void changed_is_no_good(const struct hfd_trust *trust, hfd_slice in)
{
    char text[sizeof(signed_token)];
    struct hfd_trust_answer answer;
    size_t at;

    memcpy(text, signed_token, sizeof(text));
    HFD_ASSERT(hfd_trust_check(trust, no_tokens(), HFD_SLICE(signed_token), 1, &answer) == HFD_OK);
    HFD_ASSERT(answer.fault == HFD_AUTH_NONE && answer.grant.scopes == HFD_SCOPE_BIT(DRIVER));
    if (in.len < 3)
        return;
    at = ((size_t)(unsigned char)in.p[0] << 8 | (unsigned char)in.p[1]) % (sizeof(text) - 3);
    if (text[at] == in.p[2])
        return;
    text[at] = in.p[2];
    if (hfd_trust_check(trust, no_tokens(), (hfd_slice){text, sizeof(text) - 1}, 1, &answer) ==
        HFD_OK)
        HFD_ASSERT(answer.fault != HFD_AUTH_NONE);
}

static void keys_are_read(hfd_slice in)
{
    struct hfd_jwk_list keys;
    struct hfd_err err;

    if (hfd_jwk_parse_set(in, &keys, &err) != HFD_OK)
        return;
    HFD_ASSERT(keys.count > 0);
    for (size_t i = 0; i < keys.count; i++)
        HFD_ASSERT(!hfd_jwk_verify(&keys.items[i], in, (const unsigned char *)in.p, 64));
    hfd_jwk_list_fini(&keys);
}

/* A PEM text that is refused leaves no key behind. */
static void pem_is_read(hfd_slice in)
{
    struct hfd_jwk_list keys = {.count = 0};

    if (hfd_jwk_add_pem(&keys, in, NULL) != HFD_OK)
        HFD_ASSERT(keys.count == 0);
    hfd_jwk_list_fini(&keys);
}

/* Scopes that are read are the same when they are written and read again. */
static void grants_are_read(hfd_slice in)
{
    struct hfd_grant grant, again;
    struct hfd_buf b;

    if (hfd_grant_parse(in, &grant, NULL) != HFD_OK)
        return;
    hfd_buf_init(&b, 2 * FUZZ_ARENA_BYTES);
    hfd_grant_format(&b, &grant, false);
    HFD_ASSERT(b.rc != HFD_OK || hfd_grant_parse(hfd_buf_slice(&b), &again, NULL) == HFD_OK);
    HFD_ASSERT(b.rc != HFD_OK || again.scopes == grant.scopes);
    hfd_buf_fini(&b);
}

static void credentials_are_read(hfd_slice in)
{
    char basic[HFD_BASIC_MAX_BYTES];
    hfd_slice secret, path = in;

    if (hfd_credential_read(in, basic, &secret) == HFD_AUTH_NONE)
        HFD_ASSERT(secret.len > 0 && secret.len <= in.len);
    hfd_credential_cut(&path, &secret);
    HFD_ASSERT(secret.len == 0 || (path.len > 0 && path.p[0] == '/'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct hfd_trust *trust;
    const hfd_slice in = {(const char *)data, size};
    struct hfd_trust_answer answer;
    struct hfd_issuer_list issuers;
    struct hfd_arena mem;
    struct hfd_err err;

    if (trust == NULL)
        trust = make_trust();
    if (!hfd_slice_is(in, signed_token) &&
        hfd_trust_check(trust, no_tokens(), in, 1, &answer) == HFD_OK)
        HFD_ASSERT(answer.fault != HFD_AUTH_NONE);
    changed_is_no_good(trust, in);
    if (size >= 64)
        keys_are_read(in);
    credentials_are_read(in);
    pem_is_read(in);
    grants_are_read(in);
    hfd_arena_init(&mem, FUZZ_ARENA_BYTES);
    if (hfd_issuers_parse(in, "issuers", &mem, &issuers, &err) == HFD_OK)
        HFD_ASSERT(issuers.count > 0);
    hfd_arena_fini(&mem);
    return 0;
}
