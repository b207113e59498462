/*
 * Bearer tokens: "hfd_" and 256 random bits in base64url. Only their BLAKE2b-256 hash is kept: 256
 * random bits need no key. Thread: any.
 */
#ifndef HFD_AUTH_TOKEN_H
#define HFD_AUTH_TOKEN_H

#include "driver/base/clock.h"
#include "driver/base/rng.h"
#include "handlers/auth/scope.h"

#define HFD_TOKEN_PREFIX "hfd_"
#define HFD_TOKEN_CHARS 47 /* the prefix, and 32 bytes in base64url without padding */
#define HFD_TOKEN_HASH_BYTES 32
#define HFD_TOKEN_NAME_MAX 63

/** A token as the tokens file has it. */
struct hfd_token {
    hfd_slice name;
    hfd_scopes scopes;
    int64_t created_us, expires_us; /* expires_us: 0 = never */
    unsigned char hash[HFD_TOKEN_HASH_BYTES];
};

/** Makes a token; wipe `text` after use. */
void hfd_token_make(const struct hfd_rng *rng, char text[HFD_TOKEN_CHARS + 1]);
/** Hashes the text of a token, or any other text. */
void hfd_token_hash(hfd_slice text, unsigned char hash[HFD_TOKEN_HASH_BYTES]);
/** Returns true if a text has the form of a token. */
bool hfd_token_is(hfd_slice text);
/**
 * Checks a name: letters, digits and - _ . behind a letter or digit, at most 63.
 * @return HFD_OK, HFD_INVALID
 */
HFD_MUST_CHECK hfd_rc hfd_token_name_check(hfd_slice name, struct hfd_err *err);

#endif
