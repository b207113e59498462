/* Random bytes from libsodium. See rng.h. */
#include "driver/base/rng.h"

#include <sodium.h>

static void system_bytes(void *ctx, void *out, size_t len)
{
    (void)ctx;
    randombytes_buf(out, len);
}

const struct hfd_rng hfd_rng_system = {.bytes = system_bytes};

void hfd_rng_bytes(const struct hfd_rng *r, void *out, size_t len)
{
    r->bytes(r->ctx, out, len);
}
