/* Random bytes: from libsodium in the program, from a seeded stream in tests. Thread: any. */
#ifndef HFD_BASE_RNG_H
#define HFD_BASE_RNG_H

#include <stddef.h>

struct hfd_rng {
    void (*bytes)(void *ctx, void *out, size_t len);
    void *ctx;
};

extern const struct hfd_rng hfd_rng_system;

/**
 * Fills out with len bytes. Never fails: the program aborts when the system has no random source.
 */
void hfd_rng_bytes(const struct hfd_rng *r, void *out, size_t len);

#endif
