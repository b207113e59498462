/*
 * Starts threads. A thread blocks all signals except those of its own faults: only the main thread
 * reads signals.
 */
#ifndef HFD_BASE_THREAD_H
#define HFD_BASE_THREAD_H

#include "driver/base/err.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/** A thread to start. */
struct hfd_thread {
    const char *name; /* as tools show it, at most 15 bytes */
    const char *what; /* for messages: "remote thread" */
    void *(*body)(void *arg);
    void *arg;
};

/**
 * Starts a thread that runs t->body(t->arg).
 * @param out gives; join it
 * @return HFD_OK, HFD_NOMEM (the system gives no thread)
 */
HFD_MUST_CHECK hfd_rc hfd_thread_start(const struct hfd_thread *t, pthread_t *out,
                                       struct hfd_err *err);

/** A thread that sleeps between two rounds of its work. One that is stopped may start again. */
struct hfd_sleeper {
    pthread_t thread;
    bool started;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop, rung; /* under lock */
};

#define HFD_SLEEPER_INIT                                                                           \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER                        \
    }

/** Starts it, as hfd_thread_start. */
HFD_MUST_CHECK hfd_rc hfd_sleeper_start(struct hfd_sleeper *s, const struct hfd_thread *t,
                                        struct hfd_err *err);
/** Ends its sleep, and waits for its end. Accepts one that was not started. */
void hfd_sleeper_stop(struct hfd_sleeper *s);
/** Ends its present sleep, or the next one. @param sleeper  untyped, as bells and others want it */
void hfd_sleeper_ring(void *sleeper);
/**
 * Sleeps for a time, until a ring, or until the stop. Thread: the sleeper's.
 * @param rung  gives whether it was a ring; NULL = of no interest
 * @return whether to stop
 */
bool hfd_sleeper_wait(struct hfd_sleeper *s, int64_t us, bool *rung);
/** Returns true once it is to stop. */
bool hfd_sleeper_is_stopped(struct hfd_sleeper *s);

#endif
