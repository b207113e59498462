/*
 * Sends events to a RabbitMQ broker, as HyperFleet's sentinel does: one durable exchange a kind.
 * An event counts as sent when the broker has confirmed that a queue has it. States are not for a
 * broker. Thread: one at a time; it blocks.
 */
#ifndef HFD_EVENTS_AMQP_H
#define HFD_EVENTS_AMQP_H

#include "driver/base/amqpurl.h"
#include "driver/events/sender.h"

/** A broker and its exchanges. The texts outlive the sender. */
struct hfd_amqp_place {
    struct hfd_amqp_url url;
    const char *password_file; /* read at each connection; NULL = the password is guest */
    const char *ca_file;       /* for TLS; NULL = the authorities of the system */
    hfd_slice exchanges[HFD_KIND_NODEPOOL + 1]; /* by kind */
};

/**
 * Makes a sender. It connects when it first sends, and anew after a failure. A call of `send` with
 * no events keeps the connection: it sends a heartbeat. Without one each minute the broker closes
 * the connection, and the next call opens another.
 * @param out  gives; out->close ends it
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_amqp_open(const struct hfd_amqp_place *place, struct hfd_sender *out,
                                    struct hfd_err *err);

#endif
