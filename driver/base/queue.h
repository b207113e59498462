/*
 * A bounded queue of messages between threads: many senders, one receiver. Sending takes the
 * message, receiving gives it; between the two nobody touches it. Intrusive: a message embeds
 * struct hfd_qnode as its first member.
 */
#ifndef HFD_BASE_QUEUE_H
#define HFD_BASE_QUEUE_H

#include "driver/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hfd_qnode {
    struct hfd_qnode *next;
};

struct hfd_queue;

/** @param max_messages  a push beyond it is refused */
HFD_MUST_CHECK hfd_rc hfd_queue_new(size_t max_messages, struct hfd_queue **out,
                                    struct hfd_err *err);
/** The queue must be empty. Accepts NULL. */
void hfd_queue_free(struct hfd_queue *q);

/** @return HFD_OK (taken), HFD_BUSY (full or closed; still the caller's). Thread: any. */
HFD_MUST_CHECK hfd_rc hfd_queue_push(struct hfd_queue *q, struct hfd_qnode *node);

/**
 * Waits until something is there or the queue is closed; gives up to max messages in order as a
 * list.
 * @return NULL only when closed and empty. Thread: the receiver.
 */
struct hfd_qnode *hfd_queue_take(struct hfd_queue *q, size_t max, size_t *count);

/**
 * Refuses pushes from now on and wakes the receiver, which still drains what is there. Thread:
 * any.
 */
void hfd_queue_close(struct hfd_queue *q);
size_t hfd_queue_length(const struct hfd_queue *q);

#endif
