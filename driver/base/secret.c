/* Guarded memory from libsodium: locked, fenced, wiped when freed. See secret.h. */
#include "driver/base/secret.h"

#include <sodium.h>

hfd_rc hfd_secret_init(struct hfd_secret *s, size_t len, struct hfd_err *err)
{
    s->len = 0;
    s->p = sodium_malloc(len);
    if (s->p == NULL)
        return hfd_fail_nomem(err, "guarded memory for a secret");
    sodium_memzero(s->p, len); /* sodium_malloc fills it with a pattern */
    s->len = len;
    return HFD_OK;
}

void hfd_secret_fini(struct hfd_secret *s)
{
    sodium_free(s->p);
    s->p = NULL;
    s->len = 0;
}
