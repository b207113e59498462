/*
 * The parser of JSON Web Tokens (RFC 7515, RFC 7519): parts, header and claims. It checks no
 * signature.
 *
 * The file of issuers (auth.issuers), in YAML or JSON. Pure but for reading files. Thread:
 * start-up.
 *
 * Signers whose tokens are taken: the Humanitec Operator's keys (auth.operator_keys), and issuers
 * (auth.issuers) with their sets of keys. A trust never changes; new keys make a new one. Thread:
 * any.
 *
 * Where the keys of signers come from: the Operator's PEM files, files of keys, and URLs. Files are
 * read again when they change. URLs are fetched all at once, each within ten seconds. That is every
 * five minutes, and once a minute at most when a token names a new key. The last good answer stays.
 * Fetching follows no redirect and uses no proxy of the environment. Thread: start-up, then two:
 * one looks and never waits for the network, the other one fetches.
 */
#ifndef HFD_AUTH_TRUST_H
#define HFD_AUTH_TRUST_H

#include "driver/base/arena.h"
#include "handlers/auth/jwk.h"
#include "handlers/auth/decide.h"

#include <stdatomic.h>

#define HFD_JWT_MAX_BYTES 16384 /* decide.h says so to callers */

struct hfd_keyset;
struct hfd_signers;

struct hfd_issuer {
    hfd_slice issuer_url;    /* the claim iss */
    hfd_slice jwk_cert_file; /* one of these two; ends with a NUL */
    hfd_slice jwk_cert_url;
    hfd_slice ca_file;        /* of the URL; empty = the authorities of the system */
    hfd_slice audience;       /* empty = any */
    hfd_slice identity_claim; /* ends with a NUL */
    struct hfd_grant grant;
};

struct hfd_issuer_list {
    struct hfd_issuer *items;
    size_t count;
};

/**
 * Parses the text of a file of issuers.
 * @param name  of the file, for messages
 * @param mem   gets the list and its texts
 * @return HFD_OK, HFD_INVALID (the message names the entry and the member), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_issuers_parse(hfd_slice text, const char *name, struct hfd_arena *mem,
                                        struct hfd_issuer_list *out, struct hfd_err *err);

#define HFD_TRUST_NAME_MAX 255

struct hfd_trust {
    atomic_uint refs;
    struct hfd_jwk_list operator_keys;
    struct hfd_issuer_list *issuers;  /* borrowed: the settings */
    struct hfd_jwk_list *issuer_keys; /* one list for each issuer */
};

/** Makes a trust without keys. @return one reference; NULL if memory is short */
struct hfd_trust *hfd_trust_new(struct hfd_issuer_list *issuers);
/** Gives a reference back; accepts NULL. */
void hfd_trust_unref(struct hfd_trust *trust);

/** Returns true if a text may be a JWT: three parts between two dots. */
static inline bool hfd_jwt_is(hfd_slice text)
{
    size_t dots = 0;

    for (size_t i = 0; i < text.len; i++)
        dots += text.p[i] == '.';
    return dots == 2;
}

/** A token, checked. */
struct hfd_trust_answer {
    enum hfd_auth_fault fault; /* NONE = the token is good */
    struct hfd_grant grant;    /* borrows from the issuers */
    char name[HFD_TRUST_NAME_MAX + 1];
    int64_t expires_us; /* 0 = never */
    bool new_key;       /* the issuer is known and its key is not: it may have a new one */
};

/**
 * Checks a JWT.
 * @param own  the tokens, whose names no JWT may give
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_trust_check(const struct hfd_trust *trust, const struct hfd_keyset *own,
                                      hfd_slice text, int64_t now_us, struct hfd_trust_answer *out);

struct hfd_signers_config {
    const char *const *operator_keys; /* PEM files; NULL = none */
    size_t operator_key_count;
    const char *issuers_file; /* NULL = none */
};

/**
 * Reads the file of issuers and all files of keys. Fetches nothing.
 * @param config  borrowed for the life of the signers
 * @param out     gives; free with hfd_signers_free
 * @return HFD_OK, HFD_INVALID (err->field is the setting), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_signers_open(const struct hfd_signers_config *config,
                                       struct hfd_signers **out, struct hfd_err *err);
/** Accepts NULL. Every trust must be given back before. */
void hfd_signers_free(struct hfd_signers *s);

/** Returns true if a signer is configured. */
bool hfd_signers_any(const struct hfd_signers *s);
/** Prepares fetching. Thread: start-up. @return HFD_OK, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_signers_prepare(struct hfd_signers *s, struct hfd_err *err);

/**
 * Looks at the files, and takes up what was fetched.
 * @return a new trust if anything changed, or is new; NULL if not
 */
struct hfd_trust *hfd_signers_look(struct hfd_signers *s);

/**
 * Goes on with fetching: begins what is due, and waits up to max_us for answers.
 * @param wanted  a token has named an unknown key of a known issuer
 * @return true if there are new keys: look now. Thread: the one that fetches
 */
bool hfd_signers_fetch(struct hfd_signers *s, bool wanted, int64_t max_us);
/** Ends the wait of hfd_signers_fetch, also of the next one. Thread: any, once prepared. */
void hfd_signers_wake(struct hfd_signers *s);

#endif
