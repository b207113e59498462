/*
 * The file of issuers (auth.issuers), in YAML or JSON. Pure but for reading files. Thread:
 * start-up.
 */
#ifndef HFD_AUTH_ISSUERS_H
#define HFD_AUTH_ISSUERS_H

#include "driver/base/arena.h"
#include "handlers/auth/scope.h"

#define HFD_ISSUERS_MAX 32

struct hfd_issuer {
    hfd_slice issuer_url;    /* the claim iss */
    hfd_slice jwk_cert_file; /* one of these two; ends with a NUL */
    hfd_slice jwk_cert_url;
    hfd_slice ca_file;        /* of the URL; empty = the authorities of the system */
    hfd_slice audience;       /* empty = any */
    hfd_slice identity_claim; /* ends with a NUL */
    hfd_scopes scopes;
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
/** Reads a file of issuers. @return as hfd_issuers_parse, or HFD_IO */
HFD_MUST_CHECK hfd_rc hfd_issuers_read(const char *path, struct hfd_arena *mem,
                                       struct hfd_issuer_list *out, struct hfd_err *err);

#endif
