/*
 * Time. Only this module calls the system's clocks; a function with a rule takes `now_us` as a
 * parameter. All times are microseconds. Thread: any.
 */
#ifndef HFD_BASE_CLOCK_H
#define HFD_BASE_CLOCK_H

#include <stdint.h>

#include "driver/base/slice.h"

#define HFD_US_PER_S INT64_C(1000000)

/** A source of time. Tests bring their own and move it by hand. */
struct hfd_clock {
    int64_t (*wall_us)(void *ctx); /* since 1970-01-01T00:00:00Z */
    int64_t (*mono_us)(void *ctx);
    int64_t (*skew_us)(void *ctx); /* NULL = no skew */
    void *ctx;
};

extern const struct hfd_clock hfd_clock_system;
/** The same, with a mono_us that counts the time during which the machine sleeps. */
extern const struct hfd_clock hfd_clock_boot;

/** The wall clock, for records. */
int64_t hfd_clock_wall_us(const struct hfd_clock *c);
/** The monotonic clock, for waits. */
int64_t hfd_clock_mono_us(const struct hfd_clock *c);
/**
 * How much other machines' wall clocks are ahead of this one: 0 except for the steady clock
 * (steady.h). Add it to a time that others compare with their own clocks.
 */
int64_t hfd_clock_skew_us(const struct hfd_clock *c);

/** Size of the longest text that hfd_time_format writes, with its NUL. */
#define HFD_TIME_TEXT_MAX 28

/**
 * Formats RFC 3339 in UTC, "2025-01-01T00:00:00Z", with as many fraction digits (up to 6) as
 * needed. A time before 1970 becomes 1970, a time after 9999 the end of 9999.
 * @return the length
 */
size_t hfd_time_format(int64_t at_us, char out[HFD_TIME_TEXT_MAX]);
/** The same in whole seconds, rounded down. */
size_t hfd_time_format_s(int64_t at_us, char out[HFD_TIME_TEXT_MAX]);
/** The same with six fraction digits always, for logs. */
size_t hfd_time_format_us(int64_t at_us, char out[HFD_TIME_TEXT_MAX]);
/**
 * Parses RFC 3339 with any offset, 0 to 9 fraction digits (cut to microseconds) and years from 1970
 * to 9999. T and Z may be lower case. A leap second 60 counts as 59.
 * @return HFD_OK, HFD_INVALID
 */
HFD_MUST_CHECK hfd_rc hfd_time_parse(hfd_slice text, int64_t *at_us, struct hfd_err *err);
/** The same from year 0000 on, for times to compare with. Times before 1970 are negative. */
HFD_MUST_CHECK hfd_rc hfd_time_parse_any(hfd_slice text, int64_t *at_us, struct hfd_err *err);

#endif
