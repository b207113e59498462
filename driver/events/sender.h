/*
 * The way of events to one target, as a webhook or a broker: what the outbox (outbox.h) asks of it.
 * Thread: that of the target's outbox.
 */
#ifndef HFD_EVENTS_SENDER_H
#define HFD_EVENTS_SENDER_H

#include "driver/base/clock.h"
#include "store/kind.h"

#define HFD_SEND_MAX_US (10 * HFD_US_PER_S) /* the longest that `send` blocks */
#define HFD_SEND_EVENTS_MAX 16              /* that it is given at a time */

/** One event on its way out. Texts are borrowed. */
struct hfd_outgoing {
    hfd_slice id;      /* of the event */
    hfd_slice subject; /* the resource: id of a cluster or nodepool, GUResID of a driver resource */
    enum hfd_kind kind; /* of a reconcile event; 0 = a state of a driver resource */
    hfd_slice body;     /* the CloudEvent in JSON */
    bool sent;          /* gives: the receiver has it */
};

struct hfd_sender {
    /**
     * Sends events, in order per subject; at most one per subject is given at a time. Blocks for at
     * most HFD_SEND_MAX_US. Without events it shows a peer that it is there, if it is connected.
     * @return HFD_OK: all are sent; else the words of the first that was not
     */
    hfd_rc (*send)(void *ctx, struct hfd_outgoing *events, size_t count, struct hfd_err *err);
    void (*close)(void *ctx);
    void *ctx;
};

#endif
