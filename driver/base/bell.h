/*
 * A bell: threads that write ring it, and one listener hears. Thread: any.
 */
#ifndef HFD_BASE_BELL_H
#define HFD_BASE_BELL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

struct hfd_bell {
    atomic_uint rings;
    pthread_mutex_t lock;
    void (*hear)(void *ctx); /* under lock; NULL = nothing listens */
    void *ctx;
};

#define HFD_BELL_INIT                                                                              \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER                                                          \
    }

/** Wakes the listener without a ring: there is news of another kind. */
static inline void hfd_bell_wake(struct hfd_bell *bell)
{
    (void)pthread_mutex_lock(&bell->lock);
    if (bell->hear != NULL)
        bell->hear(bell->ctx);
    (void)pthread_mutex_unlock(&bell->lock);
}

/** Rings, after the change that it tells of. */
static inline void hfd_bell_ring(struct hfd_bell *bell)
{
    atomic_fetch_add(&bell->rings, 1);
    hfd_bell_wake(bell);
}

/**
 * Sets the listener; NULL takes it away, and it does not run after the call.
 * @param hear  quick; rings no bell
 */
static inline void hfd_bell_listen(struct hfd_bell *bell, void (*hear)(void *ctx), void *ctx)
{
    (void)pthread_mutex_lock(&bell->lock);
    bell->hear = hear;
    bell->ctx = ctx;
    (void)pthread_mutex_unlock(&bell->lock);
}

#endif
