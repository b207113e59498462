/* Random bytes from libsodium. See rng.h. */
#include "driver/base/rng.h"

#include <sodium.h>
#include <string.h>

#define STOCK_BYTES 256 /* what the kernel gives at once */
/* Ids take less. Keys, nonces and tokens take more: they are never in the stock. */
#define STOCK_FOR_BYTES 16

/* Takes the bytes of ids from a stock of each thread: one system call for many ids. */
static void system_bytes(void *ctx, void *out, size_t len)
{
    static _Thread_local unsigned char stock[STOCK_BYTES];
    static _Thread_local size_t left;

    (void)ctx;
    if (len > STOCK_FOR_BYTES) {
        randombytes_buf(out, len);
        return;
    }
    if (left < len) {
        randombytes_buf(stock, sizeof(stock));
        left = sizeof(stock);
    }
    left -= len;
    memcpy(out, stock + left, len);
}

const struct hfd_rng hfd_rng_system = {.bytes = system_bytes};

void hfd_rng_bytes(const struct hfd_rng *r, void *out, size_t len)
{
    r->bytes(r->ctx, out, len);
}
