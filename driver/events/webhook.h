/*
 * The sender of a webhook: CloudEvents over HTTP in structured mode, signed as Standard Webhooks
 * says, each attempt anew. An answer of 2xx takes an event; any other is a failure, also 410. It
 * follows no redirect. Thread: that of its outbox, where nothing else is said.
 */
#ifndef HFD_EVENTS_WEBHOOK_H
#define HFD_EVENTS_WEBHOOK_H

#include "driver/events/sender.h"

struct hfd_webhook;

struct hfd_webhook_config {
    hfd_slice url;           /* copied; its user info and query are secrets */
    const char *secret_file; /* borrowed until it is closed: whsec_ and base64 */
    const char *ca_file;     /* as well; NULL = the authorities of the system */
    const struct hfd_clock *clock;
};

/**
 * Opens a webhook, and reads its secret. It does not connect. Thread: main.
 * @param sender  gives; its close frees the webhook
 * @param out     the same for the functions below; borrowed from the sender
 * @return HFD_OK, HFD_INVALID or HFD_IO (the secret file, with its reason), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_webhook_open(const struct hfd_webhook_config *config,
                                       struct hfd_sender *sender, struct hfd_webhook **out,
                                       struct hfd_err *err);
/** Reads the secret again; when it cannot, the old one stays. Returns as hfd_webhook_open. Thread:
 * main. */
HFD_MUST_CHECK hfd_rc hfd_webhook_reload(struct hfd_webhook *webhook, struct hfd_err *err);
/** Ends the present `send` at once, and any later one. Thread: main. */
void hfd_webhook_cut(struct hfd_webhook *webhook);

#endif
