/*
 * A line about long work: what it does, how far it is, and how long it still takes. On a terminal
 * the line is written over each second; elsewhere there is one each 10 seconds. A thread of its own
 * writes it, so that a step without news does not stop it. Thread: any; the lock is its own.
 */
#ifndef HFD_BASE_METER_H
#define HFD_BASE_METER_H

#include <pthread.h>
#include <stdio.h>

#include "driver/base/buf.h"
#include "driver/base/clock.h"

/** How far a step of the work is. */
struct hfd_meter_at {
    const char *what;    /* "checking table report"; copied */
    const char *unit;    /* "MiB"; NULL = things that are counted; static */
    int64_t done, total; /* total 0 = it is not known; both 0 = neither is */
};

struct hfd_meter {
    const struct hfd_clock *clock;
    FILE *out; /* NULL = it was never begun: all calls do nothing */
    bool terminal;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    bool runs, stop;
    /* Under the lock: */
    char what[96]; /* "" = no step has begun */
    struct hfd_meter_at at;
    int64_t began_us, said_us; /* of the step; the last line */
    bool shown;                /* a line is on the terminal */
};

/** Begins without a thread: hfd_meter_tick writes. @param out  borrowed */
void hfd_meter_init(struct hfd_meter *m, const struct hfd_clock *clock, FILE *out, bool terminal);
/** Begins on stderr. Without a thread, which the system may refuse, it is silent. */
void hfd_meter_start(struct hfd_meter *m);
/** Says how far the work is. Another `what` is another step. m may be NULL. */
void hfd_meter_set(struct hfd_meter *m, const struct hfd_meter_at *at);
/** Writes the line if it is due. */
void hfd_meter_tick(struct hfd_meter *m);
/** Ends the step, and takes its line from the terminal: another text may follow. */
void hfd_meter_clear(struct hfd_meter *m);
/** Ends. */
void hfd_meter_stop(struct hfd_meter *m);

/**
 * Adds "checking table report: 2,310,000 of 4,000,000  57 %  about 1:05 left". Pure.
 * @param elapsed_us  since the step began
 */
void hfd_meter_line(struct hfd_buf *b, const struct hfd_meter_at *at, int64_t elapsed_us);

#endif
