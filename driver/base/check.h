/*
 * Assertions. They check for mistakes of this program only. Bad input, peers, disk, clock and
 * memory give errors instead.
 *
 * check.c logs through log.h, log.c counts in metrics.h, and metrics.c asserts through this header:
 * the three include each other. Thread: any.
 */
#ifndef HFD_BASE_CHECK_H
#define HFD_BASE_CHECK_H

#include <stdbool.h>

/** Writes expression and place to stderr as one JSON log line, then aborts. */
_Noreturn void hfd_assert_failed(const char *expr, const char *file, int line);
/**
 * Logs the expression and counts it in the metric hfd_never_total.
 * @return true always
 */
bool hfd_never_happened(const char *expr, const char *file, int line);

/** Checks for a mistake of ours, in every build. The expression must have no side effect. */
#define HFD_ASSERT(x) ((x) ? (void)0 : hfd_assert_failed(#x, __FILE__, __LINE__))

/**
 * Checks for a state that is believed impossible but can be survived. True when it holds after all:
 * the caller then fails the request. Coverage builds take it for false, since no test can reach it.
 */
#ifdef HFD_COVERAGE
#define HFD_NEVER(x) (false)
#else
#define HFD_NEVER(x) ((x) ? hfd_never_happened(#x, __FILE__, __LINE__) : false)
#endif

/** Checks an object that came through a void pointer: a callback, a queue, an opaque handle. */
#define HFD_CHECK_OBJ(ptr, magic_value) HFD_ASSERT((ptr) != NULL && (ptr)->magic == (magic_value))

#endif
