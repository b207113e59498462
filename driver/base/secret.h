/*
 * Memory for keys, tokens and cookie plaintext: guarded, wiped on fini, compared in constant time,
 * never written to a log. Thread: one at a time.
 */
#ifndef HFD_BASE_SECRET_H
#define HFD_BASE_SECRET_H

#include "driver/base/slice.h"

struct hfd_secret {
    unsigned char *p; /* from sodium_malloc */
    size_t len;
};

/**
 * Makes a secret of len zero bytes.
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_secret_init(struct hfd_secret *s, size_t len, struct hfd_err *err);
void hfd_secret_fini(struct hfd_secret *s);

#endif
