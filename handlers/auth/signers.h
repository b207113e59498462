/*
 * Where the keys of signers come from: the Operator's PEM files, files of keys, and URLs. Files are
 * read again when they change. URLs are fetched every five minutes, and once a minute at most when
 * a token names a new key; the last good answer stays. Thread: start-up, then the guard's.
 */
#ifndef HFD_AUTH_SIGNERS_H
#define HFD_AUTH_SIGNERS_H

#include "handlers/auth/trust.h"

struct hfd_signers;

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
/** Prepares fetching; start-up only. */
void hfd_signers_prepare(struct hfd_signers *s);

/**
 * Looks at files and fetches what is due.
 * @param wanted  a token has named an unknown key of a known issuer
 * @return a new trust if anything changed, or is new; NULL if not
 */
struct hfd_trust *hfd_signers_look(struct hfd_signers *s, bool wanted);

#endif
