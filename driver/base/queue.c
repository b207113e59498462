/*
 * A bounded queue: a mutex, a condition and a list. A push is a few instructions under the lock; a
 * take moves many messages at once. See queue.h.
 */
#include "driver/base/queue.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "driver/base/check.h"

struct hfd_queue {
    pthread_mutex_t lock;
    pthread_cond_t filled; /* signalled when the queue is filled or closed */
    struct hfd_qnode *first;
    struct hfd_qnode *last;
    size_t max;
    atomic_size_t length; /* changed under the lock, read without it */
    bool closed;
};

hfd_rc hfd_queue_new(size_t max_messages, struct hfd_queue **out, struct hfd_err *err)
{
    struct hfd_queue *q = calloc(1, sizeof(*q));

    *out = NULL;
    if (q == NULL)
        return hfd_fail_nomem(err, "make a queue");
    if (pthread_mutex_init(&q->lock, NULL) != 0) {
        free(q);
        return hfd_fail_nomem(err, "make a queue: mutex");
    }
    if (pthread_cond_init(&q->filled, NULL) != 0) {
        pthread_mutex_destroy(&q->lock);
        free(q);
        return hfd_fail_nomem(err, "make a queue: condition variable");
    }
    q->max = max_messages;
    *out = q;
    return HFD_OK;
}

void hfd_queue_free(struct hfd_queue *q)
{
    if (q == NULL)
        return;
    HFD_ASSERT(q->first == NULL);
    pthread_cond_destroy(&q->filled);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

hfd_rc hfd_queue_push(struct hfd_queue *q, struct hfd_qnode *node)
{
    hfd_rc rc = HFD_BUSY;

    pthread_mutex_lock(&q->lock);
    if (!q->closed && atomic_load_explicit(&q->length, memory_order_relaxed) < q->max) {
        node->next = NULL;
        if (q->last != NULL)
            q->last->next = node;
        else
            q->first = node;
        q->last = node;
        atomic_fetch_add_explicit(&q->length, 1, memory_order_relaxed);
        pthread_cond_signal(&q->filled);
        rc = HFD_OK;
    }
    pthread_mutex_unlock(&q->lock);
    return rc;
}

struct hfd_qnode *hfd_queue_take(struct hfd_queue *q, size_t max, size_t *count)
{
    struct hfd_qnode *first;
    struct hfd_qnode *last;
    size_t n = 0;

    HFD_ASSERT(max > 0);
    pthread_mutex_lock(&q->lock);
    while (q->first == NULL && !q->closed)
        pthread_cond_wait(&q->filled, &q->lock);
    first = last = q->first;
    if (first != NULL) {
        for (n = 1; n < max && last->next != NULL; n++)
            last = last->next;
        q->first = last->next;
        if (q->first == NULL)
            q->last = NULL;
        last->next = NULL;
        atomic_fetch_sub_explicit(&q->length, n, memory_order_relaxed);
    }
    pthread_mutex_unlock(&q->lock);
    *count = n;
    return first;
}

void hfd_queue_close(struct hfd_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_cond_broadcast(&q->filled);
    pthread_mutex_unlock(&q->lock);
}

size_t hfd_queue_length(const struct hfd_queue *q)
{
    return atomic_load_explicit(&q->length, memory_order_relaxed);
}
