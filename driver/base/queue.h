/*
 * A bounded queue of messages between threads: many senders, one receiver. Sending takes the
 * message, receiving gives it; between the two no thread touches it. A message embeds a struct
 * hfd_qnode; HFD_CONTAINER_OF leads back from the node.
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

/**
 * Makes a queue.
 * @param max_messages a push beyond it is refused
 * @param out gives; free with hfd_queue_free
 */
HFD_MUST_CHECK hfd_rc hfd_queue_new(size_t max_messages, struct hfd_queue **out,
                                    struct hfd_err *err);
/** Frees the queue, which must be empty. Accepts NULL. */
void hfd_queue_free(struct hfd_queue *q);

/**
 * Sends a message.
 * @return HFD_OK (taken), HFD_BUSY (full or closed; the caller still owns the message)
 * Thread: any.
 */
HFD_MUST_CHECK hfd_rc hfd_queue_push(struct hfd_queue *q, struct hfd_qnode *node);

/**
 * Waits for messages, and gives up to max of them in order, as a list.
 * @return NULL only when the queue is closed and empty
 * Thread: the receiver.
 */
struct hfd_qnode *hfd_queue_take(struct hfd_queue *q, size_t max, size_t *count);

/**
 * Refuses pushes from now on and wakes the receiver, which still takes what is queued.
 * Thread: any.
 */
void hfd_queue_close(struct hfd_queue *q);
size_t hfd_queue_length(const struct hfd_queue *q);

#endif
