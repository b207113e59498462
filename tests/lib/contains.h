/* Assertions about pieces of text; lengths are counted by the machine. Thread: any. */
#ifndef HFD_TESTS_CONTAINS_H
#define HFD_TESTS_CONTAINS_H

#include <stdbool.h>

#include "driver/base/slice.h"

/** Tells if part occurs in text. An absent text contains nothing. */
bool slice_has(hfd_slice text, const char *part);

/** Fails the test, and prints the text, unless part occurs in it. */
#define assert_contains(text, part) check_contains((text), (part), true, __FILE__, __LINE__)
/** Fails the test, and prints the text, if part occurs in it. */
#define assert_lacks(text, part) check_contains((text), (part), false, __FILE__, __LINE__)

/** Serves both assertions. */
void check_contains(hfd_slice text, const char *part, bool wanted, const char *file, int line);

#endif
