/*
 * Public keys that sign JSON Web Tokens: from PEM, or from a set of keys (RFC 7517). The algorithm
 * belongs to the key, never to the token: RS256 with RSA of 2048 bits or more, ES256 with P-256.
 * The only user of OpenSSL in this folder. Thread: any.
 */
#ifndef HFD_AUTH_JWK_H
#define HFD_AUTH_JWK_H

#include "driver/base/err.h"
#include "driver/base/slice.h"

#define HFD_JWKS_MAX_BYTES ((size_t)256 << 10) /* of a set, or of a PEM file */

struct hfd_jwk {
    char *kid;       /* "" = the key has no name */
    const char *alg; /* "RS256" or "ES256"; static */
    struct evp_pkey_st *pkey;
};

struct hfd_jwk_list {
    struct hfd_jwk *items;
    size_t count;
};

/**
 * Adds all keys of a PEM text. Each block is a "PUBLIC KEY" with RSA. Text between blocks does not
 * count, unless it has half a block. The kid of a key is the hexadecimal SHA-256 of its DER form,
 * as the Humanitec Operator sends it.
 * @return HFD_OK, HFD_INVALID (no block, or one of another kind: the message names it), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_jwk_add_pem(struct hfd_jwk_list *list, hfd_slice text,
                                      struct hfd_err *err);
/**
 * Reads a set of keys. Ignores keys of other kinds, algorithms and uses.
 * @param out  free with hfd_jwk_list_fini
 * @return HFD_OK, HFD_INVALID (no set of keys, or none that can be used), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_jwk_parse_set(hfd_slice text, struct hfd_jwk_list *out,
                                        struct hfd_err *err);
/**
 * Copies a list, which shares its keys with the copy.
 * @param out  empty; free with hfd_jwk_list_fini
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_jwk_list_copy(const struct hfd_jwk_list *list, struct hfd_jwk_list *out,
                                        struct hfd_err *err);
void hfd_jwk_list_fini(struct hfd_jwk_list *list);

/** Finds a key. An empty kid finds the only key of a list. @return borrowed; NULL if there is none
 */
const struct hfd_jwk *hfd_jwk_find(const struct hfd_jwk_list *list, hfd_slice kid);

/** Returns true if the signature of a text is that of the key, by the key's algorithm. */
bool hfd_jwk_verify(const struct hfd_jwk *key, hfd_slice text, const unsigned char *signature,
                    size_t len);

#endif
