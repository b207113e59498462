/*
 * The parser of JSON Web Tokens (RFC 7515, RFC 7519): parts, header and claims. It checks no
 * signature. Pure: no clock, no key. Thread: any.
 */
#ifndef HFD_AUTH_JWT_H
#define HFD_AUTH_JWT_H

#include <jansson.h>

#include "handlers/auth/decide.h"

#define HFD_JWT_MAX_BYTES 8192
#define HFD_JWT_SIGNATURE_MAX 1024 /* RSA of 8192 bits */
#define HFD_JWT_LATENESS_S 60      /* a clock that is behind takes nbf this much earlier */

struct hfd_jwt {
    hfd_slice signed_part;   /* header and claims as the signature covers them; borrows the text */
    hfd_slice alg, kid, iss; /* empty = absent */
    json_t *header, *claims; /* objects */
    unsigned char signature[HFD_JWT_SIGNATURE_MAX];
    size_t signature_len;
};

/** Returns true if a text may be a JWT: three parts between two dots. */
bool hfd_jwt_is(hfd_slice text);

/**
 * Parses a token.
 * @param text  outlives out
 * @param out   free with hfd_jwt_fini, whatever the result is
 * @return HFD_OK, HFD_MALFORMED, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_jwt_parse(hfd_slice text, struct hfd_jwt *out);
void hfd_jwt_fini(struct hfd_jwt *jwt);

/**
 * Checks exp and nbf. A token without them is valid at any time.
 * @param expires_us  exp; 0 = none
 * @return HFD_AUTH_NONE, HFD_AUTH_EXPIRED, HFD_AUTH_EARLY, HFD_AUTH_MALFORMED (no number)
 */
enum hfd_auth_fault hfd_jwt_check_times(const struct hfd_jwt *jwt, int64_t now_us,
                                        int64_t *expires_us);
/** Returns true if aud is, or contains, an audience. */
bool hfd_jwt_has_audience(const struct hfd_jwt *jwt, hfd_slice audience);
/** Returns a claim that is a string; empty if it is absent or no string. */
hfd_slice hfd_jwt_text(const struct hfd_jwt *jwt, const char *claim);

#endif
