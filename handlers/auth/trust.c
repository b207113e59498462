/* See trust.h. */
#include "handlers/auth/trust.h"

#include "driver/core/identity.h"

#include <stdlib.h>

#define NAME_MEM_BYTES 4096
#define OPERATOR_NAME "operator"

struct hfd_trust *hfd_trust_new(struct hfd_issuer_list *issuers)
{
    struct hfd_trust *trust = calloc(1, sizeof(*trust));

    if (trust == NULL)
        return NULL;
    atomic_init(&trust->refs, 1);
    trust->issuers = issuers;
    trust->issuer_keys = calloc(issuers->count + 1, sizeof(*trust->issuer_keys));
    if (trust->issuer_keys != NULL)
        return trust;
    free(trust);
    return NULL;
}

void hfd_trust_ref(struct hfd_trust *trust)
{
    (void)atomic_fetch_add(&trust->refs, 1);
}

void hfd_trust_unref(struct hfd_trust *trust)
{
    if (trust == NULL || atomic_fetch_sub(&trust->refs, 1) != 1)
        return;
    hfd_jwk_list_fini(&trust->operator_keys);
    for (size_t i = 0; i < trust->issuers->count; i++)
        hfd_jwk_list_fini(&trust->issuer_keys[i]);
    free(trust->issuer_keys);
    free(trust);
}

/* Names the caller. @return HFD_AUTH_IDENTITY if the claim is no name */
static hfd_rc name_caller(hfd_slice claim, struct hfd_trust_answer *out)
{
    struct hfd_arena mem;
    hfd_slice name = HFD_SLICE("");
    hfd_rc rc;

    hfd_arena_init(&mem, NAME_MEM_BYTES);
    rc = hfd_identity_make(claim, &mem, &name, NULL);
    if (rc == HFD_OK && (hfd_slice_is(name, HFD_IDENTITY_SYSTEM) || name.len > HFD_TRUST_NAME_MAX))
        out->fault = HFD_AUTH_IDENTITY;
    else if (rc == HFD_OK)
        (void)snprintf(out->name, sizeof(out->name), "%.*s", HFD_SLICE_FMT(name));
    hfd_arena_fini(&mem);
    return rc;
}

/* Checks all but the caller's name: the algorithm of the key, the signature, the times. */
static enum hfd_auth_fault check_signed(const struct hfd_jwt *jwt, const struct hfd_jwk *key,
                                        int64_t now_us, int64_t *expires_us)
{
    if (!hfd_slice_is(jwt->alg, key->alg))
        return HFD_AUTH_ALGORITHM;
    if (!hfd_jwk_verify(key, jwt->signed_part, jwt->signature, jwt->signature_len))
        return HFD_AUTH_SIGNATURE;
    return hfd_jwt_check_times(jwt, now_us, expires_us);
}

/* The Operator's published sample has no alg; the key says RS256. */
static hfd_rc check_operator(struct hfd_jwt *jwt, const struct hfd_jwk *key, int64_t now_us,
                             struct hfd_trust_answer *out)
{
    const hfd_slice org = hfd_jwt_text(jwt, "orgID");
    hfd_rc rc;

    if (json_object_get(jwt->header, "alg") == NULL)
        jwt->alg = hfd_slice_of(key->alg);
    out->fault = check_signed(jwt, key, now_us, &out->expires_us);
    if (out->fault != HFD_AUTH_NONE)
        return HFD_OK;
    out->scopes = HFD_SCOPE_BIT(DRIVER);
    rc = name_caller(org.len > 0 ? org : HFD_SLICE(OPERATOR_NAME), out);
    if (rc == HFD_OK && out->fault != HFD_AUTH_NONE) {
        out->fault = HFD_AUTH_NONE; /* an organisation that is no name does not matter */
        rc = name_caller(HFD_SLICE(OPERATOR_NAME), out);
    }
    return rc;
}

static hfd_rc check_issued(const struct hfd_jwt *jwt, const struct hfd_issuer *issuer,
                           const struct hfd_jwk *key, int64_t now_us, struct hfd_trust_answer *out)
{
    out->fault = check_signed(jwt, key, now_us, &out->expires_us);
    if (out->fault == HFD_AUTH_NONE && issuer->audience.len > 0 &&
        !hfd_jwt_has_audience(jwt, issuer->audience))
        out->fault = HFD_AUTH_AUDIENCE;
    if (out->fault != HFD_AUTH_NONE)
        return HFD_OK;
    out->scopes = issuer->scopes;
    return name_caller(hfd_jwt_text(jwt, issuer->identity_claim.p), out);
}

static hfd_rc check_parsed(const struct hfd_trust *trust, struct hfd_jwt *jwt, int64_t now_us,
                           struct hfd_trust_answer *out)
{
    const struct hfd_jwk *key =
        jwt->kid.len > 0 ? hfd_jwk_find(&trust->operator_keys, jwt->kid) : NULL;

    if (key != NULL)
        return check_operator(jwt, key, now_us, out);
    out->fault = HFD_AUTH_KEY;
    for (size_t i = 0; jwt->iss.len > 0 && i < trust->issuers->count; i++) {
        const struct hfd_issuer *issuer = &trust->issuers->items[i];

        if (!hfd_slice_eq(issuer->issuer_url, jwt->iss))
            continue;
        key = hfd_jwk_find(&trust->issuer_keys[i], jwt->kid);
        out->new_key = key == NULL;
        if (key != NULL)
            return check_issued(jwt, issuer, key, now_us, out);
    }
    return HFD_OK;
}

hfd_rc hfd_trust_check(const struct hfd_trust *trust, hfd_slice text, int64_t now_us,
                       struct hfd_trust_answer *out)
{
    struct hfd_jwt jwt;
    hfd_rc rc;

    *out = (struct hfd_trust_answer){.fault = HFD_AUTH_MALFORMED};
    rc = hfd_jwt_parse(text, &jwt);
    if (rc == HFD_OK)
        rc = check_parsed(trust, &jwt, now_us, out);
    hfd_jwt_fini(&jwt);
    if (out->fault == HFD_AUTH_NONE && rc != HFD_OK)
        out->fault = HFD_AUTH_UNKNOWN;
    return rc == HFD_MALFORMED ? HFD_OK : rc;
}
