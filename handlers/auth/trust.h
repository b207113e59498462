/*
 * Signers whose tokens are taken: the Humanitec Operator's keys (auth.operator_keys), and issuers
 * (auth.issuers) with their sets of keys. A trust never changes; new keys make a new one. Thread:
 * any.
 */
#ifndef HFD_AUTH_TRUST_H
#define HFD_AUTH_TRUST_H

#include <stdatomic.h>

#include "handlers/auth/issuers.h"
#include "handlers/auth/jwk.h"
#include "handlers/auth/jwt.h"

#define HFD_TRUST_NAME_MAX 255

struct hfd_trust {
    atomic_uint refs;
    struct hfd_jwk_list operator_keys;
    struct hfd_issuer_list *issuers;  /* borrowed: the settings */
    struct hfd_jwk_list *issuer_keys; /* one list for each issuer */
};

/** Makes a trust without keys. @return one reference; NULL if memory is short */
struct hfd_trust *hfd_trust_new(struct hfd_issuer_list *issuers);
void hfd_trust_ref(struct hfd_trust *trust);
/** Gives a reference back; accepts NULL. */
void hfd_trust_unref(struct hfd_trust *trust);

/** A token, checked. */
struct hfd_trust_answer {
    enum hfd_auth_fault fault; /* NONE = the token is good */
    hfd_scopes scopes;
    char name[HFD_TRUST_NAME_MAX + 1];
    int64_t expires_us; /* 0 = never */
    bool new_key;       /* the issuer is known and its key is not: it may have a new one */
};

/**
 * Checks a JWT.
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_trust_check(const struct hfd_trust *trust, hfd_slice text, int64_t now_us,
                                      struct hfd_trust_answer *out);

#endif
