/*
 * Starts threads. A thread blocks all signals except those of its own faults: only the main thread
 * reads signals.
 */
#ifndef HFD_BASE_THREAD_H
#define HFD_BASE_THREAD_H

#include "driver/base/err.h"

#include <pthread.h>

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

#endif
