/*
 * A wall clock that does not jump: what measures operations, in the place of the machine's. It goes
 * on with the time since the machine was started, whatever is done to the wall clock meanwhile, and
 * what lies between the two fades slowly, so that it is right again after a while: one hour in 32.
 * It never goes back. So a jump by an hour neither fails an operation nor gives one an hour more.
 *
 * A restart across a jump: the offset to the time since the machine's start is kept in a file, with
 * the name of that start; the next process goes on from it. After a start of the machine the wall
 * clock is believed. Source: DESIGN 4 "Hint".
 */
#ifndef HFD_BASE_STEADY_H
#define HFD_BASE_STEADY_H

#include <stdatomic.h>

#include "driver/base/clock.h"

/** The part of the time that may be made up for: 1 second in so many. */
#define HFD_STEADY_FADE 32

struct hfd_steady {
    const struct hfd_clock *under;
    atomic_llong offset_us;  /* to under's mono_us */
    atomic_llong checked_us; /* of under's mono_us: when the wall clock was looked at last */
    atomic_llong last_us;    /* the latest that was told */
    atomic_llong gap_us;     /* what the wall clock was ahead when it was looked at last */
    struct hfd_clock clock;  /* wall_us is the steady one, skew_us what the machine's wall clock is
                                ahead of it; mono_us is under's */
};

/** @param under  outlives s, which must not move; its mono_us goes on while the machine sleeps */
void hfd_steady_init(struct hfd_steady *s, const struct hfd_clock *under);

/**
 * Goes on from what an earlier process of the same machine start kept in the file, and keeps it
 * there.
 * @return HFD_OK; HFD_IO: it works, but a restart will believe the wall clock
 * Thread: start-up, before anybody asks for the time.
 */
HFD_MUST_CHECK hfd_rc hfd_steady_resume(struct hfd_steady *s, const char *path,
                                        struct hfd_err *err);
/** Keeps what it has come to. Thread: shut-down. */
HFD_MUST_CHECK hfd_rc hfd_steady_save(const struct hfd_steady *s, const char *path,
                                      struct hfd_err *err);

#endif
