/*
 * Failed logins by address, in a table of fixed size: how long the answer to the next one waits. A
 * flood of addresses displaces those with the fewest failures. Pure but for its lock. Thread: any.
 */
#ifndef HFD_AUTH_FAILURES_H
#define HFD_AUTH_FAILURES_H

#include <pthread.h>

#include "driver/base/slice.h"

#define HFD_FAILURES_MAX 4096
#define HFD_FAILURES_WAYS 4          /* places of one address */
#define HFD_FAILURES_FULL 100        /* the failure with the longest delay */
#define HFD_FAILURE_DELAY_US 20000   /* for each failure: 2 s at the hundredth */
#define HFD_FAILURE_FADES_US 6000000 /* one failure is forgotten in this time */
#define HFD_FAILURE_LINES_PER_S 10

struct hfd_failure {
    uint64_t network; /* IPv4 address, or the first half of an IPv6 one; 0 = the place is free */
    unsigned count;
    int64_t at_us; /* mono */
};

struct hfd_failures {
    pthread_mutex_t lock;
    struct hfd_failure items[HFD_FAILURES_MAX];
    int64_t second_us; /* start of the second in which lines are counted */
    int64_t lines;
    int64_t silent; /* lines that were left out since the last one */
};

/** Set up an empty table, and end it. */
void hfd_failures_init(struct hfd_failures *f);
void hfd_failures_fini(struct hfd_failures *f);

/** A failure that was noted. */
struct hfd_failure_note {
    int64_t delay_us; /* to wait before the answer */
    bool log;         /* the log has room for a line about it */
    int64_t silent;   /* failures since the last line that have none */
};

/**
 * Notes a failure.
 * @param from  the address of the caller, as text
 */
struct hfd_failure_note hfd_failures_add(struct hfd_failures *f, const char *from, int64_t now_us);
/** Asks for a line of the log without a failure. */
struct hfd_failure_note hfd_failures_line(struct hfd_failures *f, int64_t now_us);

#endif
