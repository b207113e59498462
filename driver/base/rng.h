/* Random bytes behind a seam: libsodium in the program, a seeded stream in tests. */
#ifndef HFD_BASE_RNG_H
#define HFD_BASE_RNG_H

#include <stddef.h>

struct hfd_rng {
    void (*bytes)(void *ctx, void *out, size_t len);
    void *ctx;
};

extern const struct hfd_rng hfd_rng_system;

/**
 * Fills out with len bytes; never fails (the machine's source aborts the program when it is gone).
 */
void hfd_rng_bytes(const struct hfd_rng *r, void *out, size_t len);

#endif
