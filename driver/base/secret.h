/*
 * Keys, tokens and cookie plaintext: guarded memory, wiped on fini, compared in constant time,
 * never formatted into a log.
 */
#ifndef HFD_BASE_SECRET_H
#define HFD_BASE_SECRET_H

#include "driver/base/slice.h"

struct hfd_secret {
    unsigned char *p; /* from sodium_malloc */
    size_t len;
};

/** @return HFD_OK or HFD_NOMEM. The content is zero. */
HFD_MUST_CHECK hfd_rc hfd_secret_init(struct hfd_secret *s, size_t len, struct hfd_err *err);
void hfd_secret_fini(struct hfd_secret *s);

#endif
