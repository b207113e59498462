/*
 * The webhooks of `serve`: their settings and secrets, and an outbox for each. Thread: main.
 */
#ifndef HFD_CLI_SERVE_HOOKS_H
#define HFD_CLI_SERVE_HOOKS_H

#include "driver/events/outbox.h"
#include "driver/events/repeats.h"
#include "driver/events/webhook.h"
#include "handlers/settings/settings.h"

struct hfd_serve_hook {
    struct hfd_sender sender; /* until the outbox has it */
    struct hfd_webhook *webhook;
    struct hfd_outbox *outbox;
};

struct hfd_serve_hooks {
    struct hfd_arena mem;
    struct hfd_outbox_target *targets;
    struct hfd_serve_hook *hooks; /* as the targets */
    size_t count;
    int64_t repeats_per_second;
    struct hfd_repeats *repeats; /* NULL: a remote HyperFleet repeats its events itself */
};

/**
 * Opens the webhooks of the settings, and reads their secrets. It does not connect.
 * @param clock  borrowed until they are closed
 * @return HFD_OK, HFD_INVALID or HFD_IO (with place, key and reason), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_serve_hooks_open(struct hfd_serve_hooks *h, const struct hfd_settings *s,
                                           const struct hfd_clock *clock, struct hfd_err *err);
void hfd_serve_hooks_close(struct hfd_serve_hooks *h);
/** Forgets targets that are gone, and starts the outboxes. @return as hfd_outbox_forget_others */
HFD_MUST_CHECK hfd_rc hfd_serve_hooks_start(struct hfd_serve_hooks *h,
                                            const struct hfd_outbox_parts *parts,
                                            struct hfd_err *err);
/** Cuts off what is on its way; it is sent again after the next start. */
void hfd_serve_hooks_stop(struct hfd_serve_hooks *h);
/** Reads the secrets again. */
void hfd_serve_hooks_reload(struct hfd_serve_hooks *h);

#endif
