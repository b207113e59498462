/*
 * JSON Web Tokens and sets of keys: hostile text breaks no parser, and is no good token. No byte of
 * a signed token can be changed.
 */
#include "tests/fuzz/fuzz.h"

#include "driver/base/check.h"
#include "handlers/auth/credential.h"
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
    static struct hfd_issuer issuer = {
        .issuer_url = {"i", 1}, .identity_claim = {"sub", 3}, .scopes = HFD_SCOPE_BIT(VIEW)};
    static struct hfd_issuer_list issuers = {&issuer, 1};
    struct hfd_trust *trust = hfd_trust_new(&issuers);
    struct hfd_err err;

    HFD_ASSERT(trust != NULL);
    HFD_ASSERT(hfd_jwk_add_pem(&trust->operator_keys, HFD_SLICE(public_key), &err) == HFD_OK);
    HFD_ASSERT(hfd_jwk_find(&trust->operator_keys, HFD_SLICE(kid)) != NULL);
    return trust;
}

/* The last character may carry unused bits. */
static void changed_is_no_good(const struct hfd_trust *trust, hfd_slice in)
{
    char text[sizeof(signed_token)];
    struct hfd_trust_answer answer;
    size_t at;

    memcpy(text, signed_token, sizeof(text));
    HFD_ASSERT(hfd_trust_check(trust, HFD_SLICE(signed_token), 1, &answer) == HFD_OK);
    HFD_ASSERT(answer.fault == HFD_AUTH_NONE && answer.scopes == HFD_SCOPE_BIT(DRIVER));
    if (in.len < 3)
        return;
    at = ((size_t)(unsigned char)in.p[0] << 8 | (unsigned char)in.p[1]) % (sizeof(text) - 3);
    if (text[at] == in.p[2])
        return;
    text[at] = in.p[2];
    if (hfd_trust_check(trust, (hfd_slice){text, sizeof(text) - 1}, 1, &answer) == HFD_OK)
        HFD_ASSERT(answer.fault != HFD_AUTH_NONE);
}

static void keys_are_read(hfd_slice in)
{
    struct hfd_jwk_list keys;
    struct hfd_err err;

    if (hfd_jwk_parse_set(in, &keys, &err) != HFD_OK)
        return;
    HFD_ASSERT(keys.count > 0 && keys.count <= HFD_JWK_MAX);
    for (size_t i = 0; i < keys.count; i++)
        HFD_ASSERT(!hfd_jwk_verify(&keys.items[i], in, (const unsigned char *)in.p, 64));
    hfd_jwk_list_fini(&keys);
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
    if (!hfd_slice_is(in, signed_token) && hfd_trust_check(trust, in, 1, &answer) == HFD_OK)
        HFD_ASSERT(answer.fault != HFD_AUTH_NONE);
    changed_is_no_good(trust, in);
    if (size >= 64)
        keys_are_read(in);
    credentials_are_read(in);
    hfd_arena_init(&mem, FUZZ_ARENA_BYTES);
    if (hfd_issuers_parse(in, "issuers", &mem, &issuers, &err) == HFD_OK)
        HFD_ASSERT(issuers.count > 0);
    hfd_arena_fini(&mem);
    return 0;
}
