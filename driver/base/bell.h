/*
 * A bell: threads that write ring it, and listeners hear. Thread: any.
 */
#ifndef HFD_BASE_BELL_H
#define HFD_BASE_BELL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

/** In memory of the listener. */
struct hfd_bell_listener {
    void (*hear)(void *ctx); /* under the bell's lock: quick; rings no bell */
    void *ctx;
    struct hfd_bell_listener *next; /* the bell's */
};

struct hfd_bell {
    atomic_uint rings;
    pthread_mutex_t lock;
    struct hfd_bell_listener *first; /* under lock */
};

#define HFD_BELL_INIT                                                                              \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER                                                          \
    }

/** Wakes the listeners without a ring: there is news of another kind. */
static inline void hfd_bell_wake(struct hfd_bell *bell)
{
    (void)pthread_mutex_lock(&bell->lock);
    for (const struct hfd_bell_listener *l = bell->first; l != NULL; l = l->next)
        l->hear(l->ctx);
    (void)pthread_mutex_unlock(&bell->lock);
}

/** Rings, after the change that it tells of. */
static inline void hfd_bell_ring(struct hfd_bell *bell)
{
    atomic_fetch_add(&bell->rings, 1);
    hfd_bell_wake(bell);
}

/** Has a listener called from now on. It has hear and ctx, and does not move. */
static inline void hfd_bell_listen(struct hfd_bell *bell, struct hfd_bell_listener *l)
{
    (void)pthread_mutex_lock(&bell->lock);
    l->next = bell->first;
    bell->first = l;
    (void)pthread_mutex_unlock(&bell->lock);
}

/** Ends that. After the call it does not run. Accepts one that never listened. */
static inline void hfd_bell_unlisten(struct hfd_bell *bell, const struct hfd_bell_listener *l)
{
    (void)pthread_mutex_lock(&bell->lock);
    for (struct hfd_bell_listener **at = &bell->first; *at != NULL; at = &(*at)->next)
        if (*at == l) {
            *at = l->next;
            break;
        }
    (void)pthread_mutex_unlock(&bell->lock);
}

#endif
