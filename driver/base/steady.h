/*
 * A wall clock that does not jump. Operations are measured with it, so that a jump of an hour
 * neither fails an operation nor gives it an hour more.
 *
 * It runs with the time since the machine's boot, whatever happens to the wall clock. It never goes
 * back. After a jump it approaches the wall clock slowly: it makes up for one second in
 * HFD_STEADY_FADE.
 *
 * A file keeps the offset to the time since boot, with the boot id. A restart of the process after
 * a jump goes on from it. After a boot of the machine the clock starts from the wall clock. So it
 * does when the file is damaged, or more than ten years from the wall clock. See
 * driver/core/README.md.
 */
#ifndef HFD_BASE_STEADY_H
#define HFD_BASE_STEADY_H

#include <stdatomic.h>

#include "driver/base/clock.h"

/** The clock makes up for at most one second of a gap in this many seconds. */
#define HFD_STEADY_FADE 32

struct hfd_steady {
    const struct hfd_clock *under;
    atomic_llong offset_us;  /* to under's mono_us */
    atomic_llong checked_us; /* mono_us when the wall clock was last compared */
    atomic_llong last_us;    /* the latest time that was returned */
    atomic_llong gap_us;     /* how much the wall clock was ahead at the last comparison */
    /*
     * wall_us is steady; skew_us is how much the system's wall clock is ahead; mono_us is under's
     */
    struct hfd_clock clock;
};

/**
 * Starts from under's wall clock.
 * @param s must not move
 * @param under outlives s; its mono_us counts the time during which the machine sleeps
 * Thread: start-up.
 */
void hfd_steady_init(struct hfd_steady *s, const struct hfd_clock *under);

/**
 * Goes on from the offset that an earlier process saved since the same boot, and saves it again.
 * Warns of a file that cannot be right, and starts from the wall clock then.
 * @return HFD_OK; HFD_IO: the clock works, but a restart will start from the wall clock
 * Thread: start-up, before any thread reads the time.
 */
HFD_MUST_CHECK hfd_rc hfd_steady_resume(struct hfd_steady *s, const char *path,
                                        struct hfd_err *err);
/**
 * Moves the clock on to a time, if it is behind: rows of a restored store have such times. It then
 * approaches the wall clock, as after a jump.
 * @return false: the time is more than ten years ahead, and nothing changed
 * Thread: before any thread reads the time.
 */
bool hfd_steady_reach(struct hfd_steady *s, int64_t at_us);
/**
 * Saves the present offset.
 * @return HFD_OK, HFD_IO
 * Thread: shut-down.
 */
HFD_MUST_CHECK hfd_rc hfd_steady_save(const struct hfd_steady *s, const char *path,
                                      struct hfd_err *err);

#endif
