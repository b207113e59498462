/* See token.h. */
#include "handlers/auth/token.h"

#include <sodium.h>

#define SECRET_BYTES 32
#define PREFIX_CHARS (sizeof(HFD_TOKEN_PREFIX) - 1)

_Static_assert(PREFIX_CHARS + sodium_base64_ENCODED_LEN(SECRET_BYTES,
                                                        sodium_base64_VARIANT_URLSAFE_NO_PADDING) ==
                   HFD_TOKEN_CHARS + 1,
               "text of a token");

void hfd_token_make(const struct hfd_rng *rng, char text[HFD_TOKEN_CHARS + 1])
{
    unsigned char secret[SECRET_BYTES];

    hfd_rng_bytes(rng, secret, sizeof(secret));
    memcpy(text, HFD_TOKEN_PREFIX, PREFIX_CHARS);
    sodium_bin2base64(text + PREFIX_CHARS, HFD_TOKEN_CHARS + 1 - PREFIX_CHARS, secret,
                      sizeof(secret), sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    sodium_memzero(secret, sizeof(secret));
}

void hfd_token_hash(hfd_slice text, unsigned char hash[HFD_TOKEN_HASH_BYTES])
{
    (void)crypto_generichash(hash, HFD_TOKEN_HASH_BYTES, (const unsigned char *)text.p, text.len,
                             NULL, 0);
}

bool hfd_token_is(hfd_slice text)
{
    if (text.len != HFD_TOKEN_CHARS || !hfd_slice_starts(text, HFD_SLICE(HFD_TOKEN_PREFIX)))
        return false;
    for (size_t i = PREFIX_CHARS; i < text.len; i++)
        if (!hfd_is_alnum(text.p[i]) && text.p[i] != '-' && text.p[i] != '_')
            return false;
    return true;
}

hfd_rc hfd_token_name_check(hfd_slice name, struct hfd_err *err)
{
    bool ok = name.len > 0 && name.len <= HFD_TOKEN_NAME_MAX && hfd_is_alnum(name.p[0]);

    for (size_t i = 0; ok && i < name.len; i++)
        ok = hfd_is_alnum(name.p[i]) || memchr("-_.", name.p[i], 3) != NULL;
    return ok ? HFD_OK
              : hfd_fail(err, HFD_INVALID,
                         "expected a name of at most %d letters, digits and - _ . behind a letter "
                         "or digit, got \"%.*s\"",
                         HFD_TOKEN_NAME_MAX, (int)(name.len < 70 ? name.len : 70),
                         name.p != NULL ? name.p : "");
}
