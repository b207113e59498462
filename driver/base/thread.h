/*
 * Threads of our own. Signals are the main thread's business: a thread blocks them all but for its
 * own faults.
 */
#ifndef HFD_BASE_THREAD_H
#define HFD_BASE_THREAD_H

#include "driver/base/err.h"

#include <pthread.h>

/**
 * @param name  as tools show it, at most 15 bytes
 * @param what  for messages: "remote thread"
 * @param out   to be joined
 * @return HFD_OK, HFD_NOMEM (the system gives no thread)
 */
HFD_MUST_CHECK hfd_rc hfd_thread_start(const char *name, const char *what, void *(*body)(void *arg),
                                       void *arg, pthread_t *out, struct hfd_err *err);

#endif
