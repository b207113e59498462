/*
 * Assertions, in three grades (never on input, peers, disk, clock or memory: those return errors).
 */
#ifndef HFD_BASE_CHECK_H
#define HFD_BASE_CHECK_H

#include <stdbool.h>

/** Prints expression and place on stderr as one JSON log line, then aborts. */
_Noreturn void hfd_assert_failed(const char *expr, const char *file, int line);
/** Logs and counts (metric hfd_never_total). Always returns true. */
bool hfd_never_happened(const char *expr, const char *file, int line);

/** Our own mistakes; on in every build; no side effects inside. */
#define HFD_ASSERT(x) ((x) ? (void)0 : hfd_assert_failed(#x, __FILE__, __LINE__))

/** Believed impossible, survivable: true when it happened after all. */
#ifdef HFD_COVERAGE
#define HFD_NEVER(x) (false)
#else
#define HFD_NEVER(x) ((x) ? hfd_never_happened(#x, __FILE__, __LINE__) : false)
#endif

/** At each void * border. */
#define HFD_CHECK_OBJ(ptr, magic_value) HFD_ASSERT((ptr) != NULL && (ptr)->magic == (magic_value))

#endif
