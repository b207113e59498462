/*
 * The interface of a fuzz target: an entry for one input, which returns 0 and aborts (HFD_ASSERT,
 * sanitizers) when a promise does not hold.
 */
#ifndef HFD_TESTS_FUZZ_FUZZ_H
#define HFD_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/** Called once, before the first input. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** Memory for one input: enough for what a request may use. */
#define FUZZ_ARENA_BYTES ((size_t)16 << 20)

#endif
