/* The quick tier of a test program with loops that take long. Thread: any. */
#ifndef HFD_TESTS_TIER_H
#define HFD_TESTS_TIER_H

#include <stdbool.h>

/** Tells if this run is of the quick tier: ctest has set HFD_TEST_QUICK. */
bool tier_is_quick(void);
/**
 * Returns n in the quick tier, else 1: a loop over points takes each n-th one there. The loops of
 * one test begin at the first point.
 */
unsigned tier_stride(unsigned n);
/** Leaves out the tests named every_* in the quick tier. Call it before the tests are run. */
void tier_init(void);

#endif
