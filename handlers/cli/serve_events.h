/*
 * Events of `serve` on their way out: an outbox for each webhook and for the broker, and repeats.
 * Thread: main.
 */
#ifndef HFD_CLI_SERVE_EVENTS_H
#define HFD_CLI_SERVE_EVENTS_H

#include "driver/events/amqp.h"
#include "driver/events/outbox.h"
#include "driver/events/repeats.h"
#include "driver/events/webhook.h"
#include "handlers/settings/settings.h"

struct hfd_serve_target {
    struct hfd_sender sender;    /* until the outbox has it */
    struct hfd_webhook *webhook; /* NULL = it is the broker */
    struct hfd_outbox *outbox;
};

struct hfd_serve_events {
    struct hfd_arena mem;
    struct hfd_amqp_place broker;
    struct hfd_outbox_target *targets;
    struct hfd_serve_target *ways; /* as the targets */
    size_t count;
    int64_t repeats_per_second;
    struct hfd_repeats *repeats; /* NULL: a remote HyperFleet repeats its events itself */
};

/**
 * Opens the targets of the settings, and reads the secrets of webhooks. It does not connect.
 * @param clock  borrowed until they are closed
 * @return HFD_OK, HFD_INVALID or HFD_IO (with place, key and reason), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_serve_events_open(struct hfd_serve_events *h,
                                            const struct hfd_settings *s,
                                            const struct hfd_clock *clock, struct hfd_err *err);
void hfd_serve_events_close(struct hfd_serve_events *h);
/** Forgets targets that are gone, and starts the outboxes. @return as hfd_outbox_forget_others */
HFD_MUST_CHECK hfd_rc hfd_serve_events_start(struct hfd_serve_events *h,
                                             const struct hfd_outbox_parts *parts,
                                             struct hfd_err *err);
/** Cuts off what is on its way; it is sent again after the next start. */
void hfd_serve_events_stop(struct hfd_serve_events *h);
/** Reads the secrets again. */
void hfd_serve_events_reload(struct hfd_serve_events *h);

#endif
