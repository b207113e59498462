/* See jwk.h. */
#include "handlers/auth/jwk.h"

#include "driver/base/clock.h"
#include "driver/base/err.h"
#include "driver/base/jsonx.h"
#include "driver/base/slice.h"

#include <jansson.h>
#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <sodium.h>

#include <stdlib.h>

#define RSA_MIN_BITS 2048
#define RSA_MAX_BITS 8192
#define NUMBER_MAX_BYTES 1024
#define COORDINATE_BYTES 32

static const char rs256[] = "RS256", es256[] = "ES256";

/* ---- lists ---- */

static void drop_last(struct hfd_jwk_list *list)
{
    list->count--;
    free(list->items[list->count].kid);
    EVP_PKEY_free(list->items[list->count].pkey);
}

void hfd_jwk_list_fini(struct hfd_jwk_list *list)
{
    while (list->count > 0)
        drop_last(list);
    free(list->items);
    *list = (struct hfd_jwk_list){.count = 0};
}

/* Adds a key. Takes pkey, also on failure. */
static hfd_rc add_key(struct hfd_jwk_list *list, hfd_slice kid, const char *alg, EVP_PKEY *pkey)
{
    struct hfd_jwk *items = realloc(list->items, (list->count + 1) * sizeof(*items));
    char *name = strndup(kid.len > 0 ? kid.p : "", kid.len);

    if (items != NULL)
        list->items = items;
    if (items == NULL || name == NULL) {
        free(name);
        EVP_PKEY_free(pkey);
        return HFD_NOMEM;
    }
    items[list->count++] = (struct hfd_jwk){.kid = name, .alg = alg, .pkey = pkey};
    return HFD_OK;
}

hfd_rc hfd_jwk_list_copy(const struct hfd_jwk_list *list, struct hfd_jwk_list *out,
                         struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < list->count; i++) {
        const struct hfd_jwk *key = &list->items[i];

        EVP_PKEY_up_ref(key->pkey);
        rc = add_key(out, hfd_slice_of(key->kid), key->alg, key->pkey);
    }
    return rc == HFD_OK ? rc : hfd_fail_nomem(err, "copy keys");
}

const struct hfd_jwk *hfd_jwk_find(const struct hfd_jwk_list *list, hfd_slice kid)
{
    if (kid.len == 0)
        return list->count == 1 ? &list->items[0] : NULL;
    for (size_t i = 0; i < list->count; i++)
        if (hfd_slice_is(kid, list->items[i].kid))
            return &list->items[i];
    return NULL;
}

static bool is_good_rsa(const EVP_PKEY *pkey)
{
    return EVP_PKEY_is_a(pkey, "RSA") && EVP_PKEY_get_bits(pkey) >= RSA_MIN_BITS &&
           EVP_PKEY_get_bits(pkey) <= RSA_MAX_BITS;
}

/* ---- PEM ---- */

/* Names a key by the SHA-256 of its DER form. */
static bool fingerprint(EVP_PKEY *pkey, char out[2 * SHA256_DIGEST_LENGTH + 1])
{
    unsigned char digest[SHA256_DIGEST_LENGTH], *der = NULL;
    const int len = i2d_PUBKEY(pkey, &der);

    if (len <= 0)
        return false;
    (void)SHA256(der, (size_t)len, digest);
    OPENSSL_free(der);
    sodium_bin2hex(out, 2 * SHA256_DIGEST_LENGTH + 1, digest, sizeof(digest));
    return true;
}

/* Adds the key of one block. */
static hfd_rc add_block(struct hfd_jwk_list *list, const unsigned char *der, long len,
                        struct hfd_err *err)
{
    const unsigned char *at = der;
    EVP_PKEY *pkey = d2i_PUBKEY(NULL, &at, len);
    char kid[2 * SHA256_DIGEST_LENGTH + 1];
    hfd_rc rc = HFD_NOMEM;

    if (pkey == NULL || at != der + len)
        rc = hfd_fail(err, HFD_INVALID, "it is damaged");
    else if (!is_good_rsa(pkey))
        rc = hfd_fail(err, HFD_INVALID, "expected a public key of RSA with %d to %d bits",
                      RSA_MIN_BITS, RSA_MAX_BITS);
    else if (fingerprint(pkey, kid)) {
        EVP_PKEY_up_ref(pkey);
        rc = add_key(list, hfd_slice_of(kid), rs256, pkey);
    }
    EVP_PKEY_free(pkey);
    return rc == HFD_NOMEM ? hfd_fail_nomem(err, "read a public key") : rc;
}

static size_t count_of(hfd_slice text, hfd_slice word)
{
    const char *at = text.p, *end = text.p + text.len;
    size_t n = 0;

    while (at != NULL && (at = memmem(at, (size_t)(end - at), word.p, word.len)) != NULL) {
        at += word.len;
        n++;
    }
    return n;
}

/* Reads the next block. @return HFD_NOT_FOUND behind the last one */
static hfd_rc next_block(BIO *bio, struct hfd_jwk_list *list, size_t number, struct hfd_err *err)
{
    char *name = NULL, *header = NULL;
    unsigned char *der = NULL;
    struct hfd_err why = {0};
    long len = 0;
    hfd_rc rc;

    if (PEM_read_bio(bio, &name, &header, &der, &len) != 1)
        return HFD_NOT_FOUND;
    if (strcmp(name, PEM_STRING_PUBLIC) != 0 || header[0] != '\0')
        rc = hfd_fail(err, HFD_INVALID,
                      "block %zu is no PEM public key but \"%.40s\": expected only blocks "
                      "\"PUBLIC KEY\"",
                      number, name);
    else
        rc = add_block(list, der, len, &why);
    if (rc != HFD_OK && why.msg[0] != '\0')
        (void)hfd_fail(err, rc, "block %zu: %s", number, why.msg);
    OPENSSL_free(name);
    OPENSSL_free(header);
    OPENSSL_clear_free(der, (size_t)len);
    return rc;
}

/* Checks that the blocks that were read are all: the reader passes over half a block as over text.
 */
static hfd_rc check_rest(hfd_slice text, size_t count, struct hfd_err *err)
{
    if (count_of(text, HFD_SLICE("--BEGIN ")) != count ||
        count_of(text, HFD_SLICE("--END ")) != count)
        return hfd_fail(err, HFD_INVALID,
                        "it holds no PEM public key in block %zu: it is damaged or cut off",
                        count + 1);
    return count > 0 ? HFD_OK : hfd_fail(err, HFD_INVALID, "it holds no PEM public key");
}

hfd_rc hfd_jwk_add_pem(struct hfd_jwk_list *list, hfd_slice text, struct hfd_err *err)
{
    BIO *bio = text.len > 0 && text.len <= HFD_JWKS_MAX_BYTES
                   ? BIO_new_mem_buf(text.p, (int)text.len)
                   : NULL;
    const size_t before = list->count;
    hfd_rc rc = bio != NULL ? HFD_OK : HFD_NOT_FOUND;
    size_t count = 0;

    while (rc == HFD_OK) {
        rc = next_block(bio, list, count + 1, err);
        count += rc == HFD_OK;
    }
    BIO_free(bio);
    ERR_clear_error();
    if (rc == HFD_NOT_FOUND)
        rc = check_rest(text, count, err);
    while (rc != HFD_OK && list->count > before)
        drop_last(list);
    return rc;
}

/* ---- sets of keys ---- */

/* Decodes a number. @return its length; 0 = there is none */
static size_t number_of(const json_t *key, const char *name, unsigned char out[NUMBER_MAX_BYTES])
{
    const json_t *v = json_object_get(key, name);
    size_t len = 0;

    if (!json_is_string(v) ||
        hfd_base64url_decode((hfd_slice){json_string_value(v), json_string_length(v)}, out,
                             NUMBER_MAX_BYTES, &len) != HFD_OK)
        return 0;
    return len;
}

/* Makes a key from its parameters. Takes bld. */
static EVP_PKEY *make_key(const char *kind, OSSL_PARAM_BLD *bld)
{
    OSSL_PARAM *params = bld != NULL ? OSSL_PARAM_BLD_to_param(bld) : NULL;
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, kind, NULL);
    EVP_PKEY *pkey = NULL;

    if (params == NULL || ctx == NULL || EVP_PKEY_fromdata_init(ctx) != 1 ||
        EVP_PKEY_fromdata(ctx, &pkey, EVP_PKEY_PUBLIC_KEY, params) != 1)
        pkey = NULL;
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(bld);
    EVP_PKEY_CTX_free(ctx);
    ERR_clear_error();
    return pkey;
}

static EVP_PKEY *rsa_key(const json_t *key)
{
    unsigned char n[NUMBER_MAX_BYTES], e[NUMBER_MAX_BYTES];
    const size_t n_len = number_of(key, "n", n), e_len = number_of(key, "e", e);
    OSSL_PARAM_BLD *bld = OSSL_PARAM_BLD_new();
    BIGNUM *n_big = BN_bin2bn(n, (int)n_len, NULL), *e_big = BN_bin2bn(e, (int)e_len, NULL);
    EVP_PKEY *pkey = NULL;

    /* An exponent of more than 64 bits only makes the check slow. */
    if (bld == NULL || n_big == NULL || e_big == NULL || n_len == 0 || e_len == 0 || e_len > 8 ||
        OSSL_PARAM_BLD_push_BN(bld, OSSL_PKEY_PARAM_RSA_N, n_big) != 1 ||
        OSSL_PARAM_BLD_push_BN(bld, OSSL_PKEY_PARAM_RSA_E, e_big) != 1)
        OSSL_PARAM_BLD_free(bld);
    else
        pkey = make_key("RSA", bld);
    BN_free(n_big);
    BN_free(e_big);
    if (pkey != NULL && !is_good_rsa(pkey)) {
        EVP_PKEY_free(pkey);
        pkey = NULL;
    }
    return pkey;
}

static EVP_PKEY *ec_key(const json_t *key)
{
    static char group[] = "P-256";
    unsigned char x[NUMBER_MAX_BYTES], y[NUMBER_MAX_BYTES], point[1 + 2 * COORDINATE_BYTES] = {4};
    OSSL_PARAM_BLD *bld;

    if (number_of(key, "x", x) != COORDINATE_BYTES || number_of(key, "y", y) != COORDINATE_BYTES)
        return NULL;
    memcpy(point + 1, x, COORDINATE_BYTES);
    memcpy(point + 1 + COORDINATE_BYTES, y, COORDINATE_BYTES);
    bld = OSSL_PARAM_BLD_new();
    if (bld == NULL ||
        OSSL_PARAM_BLD_push_utf8_string(bld, OSSL_PKEY_PARAM_GROUP_NAME, group, 0) != 1 ||
        OSSL_PARAM_BLD_push_octet_string(bld, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point)) != 1) {
        OSSL_PARAM_BLD_free(bld);
        return NULL;
    }
    return make_key("EC", bld);
}

static bool is_absent_or(const json_t *key, const char *name, const char *value)
{
    const json_t *v = json_object_get(key, name);

    return v == NULL || (json_is_string(v) && strcmp(json_string_value(v), value) == 0);
}

static bool jwk_is_text(const json_t *key, const char *name, const char *value)
{
    return json_object_get(key, name) != NULL && is_absent_or(key, name, value);
}

/* Adds a key of a set if it is of a kind that is used. */
static hfd_rc add_jwk(struct hfd_jwk_list *list, const json_t *key)
{
    const json_t *kid = json_object_get(key, "kid");
    const hfd_slice name = json_is_string(kid)
                               ? (hfd_slice){json_string_value(kid), json_string_length(kid)}
                               : HFD_SLICE("");
    const char *alg = NULL;
    EVP_PKEY *pkey = NULL;

    if (!is_absent_or(key, "use", "sig"))
        return HFD_OK;
    if (jwk_is_text(key, "kty", "RSA") && is_absent_or(key, "alg", rs256)) {
        alg = rs256;
        pkey = rsa_key(key);
    } else if (jwk_is_text(key, "kty", "EC") && jwk_is_text(key, "crv", "P-256") &&
               is_absent_or(key, "alg", es256)) {
        alg = es256;
        pkey = ec_key(key);
    }
    return pkey != NULL ? add_key(list, name, alg, pkey) : HFD_OK;
}

hfd_rc hfd_jwk_parse_set(hfd_slice text, struct hfd_jwk_list *out, struct hfd_err *err)
{
    json_t *doc = NULL, *key;
    struct hfd_err why;
    size_t i;
    hfd_rc rc;

    *out = (struct hfd_jwk_list){.count = 0};
    rc = hfd_json_parse(text, &doc, &why);
    if (rc != HFD_OK)
        return hfd_fail(err, rc == HFD_NOMEM ? rc : HFD_INVALID, "%s", why.msg);
    if (!json_is_array(json_object_get(doc, "keys")))
        rc =
            hfd_fail(err, HFD_INVALID, "expected a set of keys: an object with the array \"keys\"");
    json_array_foreach (json_object_get(doc, "keys"), i, key)
        if (rc == HFD_OK)
            rc = add_jwk(out, key);
    if (rc == HFD_OK && out->count == 0)
        rc = hfd_fail(err, HFD_INVALID,
                      "no key for RS256 (RSA of 2048 bits or more) or ES256 (P-256)");
    else if (rc == HFD_NOMEM)
        (void)hfd_fail_nomem(err, "read a set of keys");
    if (rc != HFD_OK)
        hfd_jwk_list_fini(out);
    json_decref(doc);
    return rc;
}

/* ---- signatures ---- */

/* Turns the two numbers of ES256 (RFC 7518, 3.4) into DER. @return its length; 0 on failure */
static size_t es256_der(const unsigned char *signature, size_t len, unsigned char **out)
{
    ECDSA_SIG *sig;
    BIGNUM *r, *s;
    int n = 0;

    *out = NULL;
    if (len != (size_t)2 * COORDINATE_BYTES)
        return 0;
    sig = ECDSA_SIG_new();
    r = BN_bin2bn(signature, COORDINATE_BYTES, NULL);
    s = BN_bin2bn(signature + COORDINATE_BYTES, COORDINATE_BYTES, NULL);
    if (sig != NULL && r != NULL && s != NULL && ECDSA_SIG_set0(sig, r, s) == 1) {
        r = s = NULL; /* sig has them */
        n = i2d_ECDSA_SIG(sig, out);
    }
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(sig);
    return n > 0 ? (size_t)n : 0;
}

static bool verify(const struct hfd_jwk *key, hfd_slice text, const unsigned char *signature,
                   size_t len)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    const bool good =
        ctx != NULL && EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, key->pkey) == 1 &&
        EVP_DigestVerify(ctx, signature, len, (const unsigned char *)text.p, text.len) == 1;

    EVP_MD_CTX_free(ctx);
    ERR_clear_error();
    return good;
}

bool hfd_jwk_verify(const struct hfd_jwk *key, hfd_slice text, const unsigned char *signature,
                    size_t len)
{
    unsigned char *der;
    size_t der_len;
    bool good;

    if (key->alg == rs256)
        return verify(key, text, signature, len);
    der_len = es256_der(signature, len, &der);
    good = der_len > 0 && verify(key, text, der, der_len);
    OPENSSL_free(der);
    return good;
}
