/* See serve_store.h. */
#include "handlers/cli/serve_store.h"

#include "driver/base/clock.h"
#include "driver/base/log.h"

#include <stdio.h>

#define PAUSE_MIN_US (HFD_US_PER_S / 5)
#define PAUSE_MAX_US (5 * HFD_US_PER_S)
#define SAY_AGAIN_US (30 * HFD_US_PER_S)

/* The wait for a database: it doubles its pauses, and logs each reason once in half a minute. */
struct wait {
    struct hfd_settings *settings;
    int64_t pause_us;
    int64_t said_us; /* when a reason was logged; 0 = never */
    char said[256];  /* its beginning */
};

static void say(struct wait *w, const struct hfd_err *why)
{
    const int64_t now_us = hfd_clock_mono_us(&hfd_clock_system);
    char text[sizeof(w->said)];

    (void)snprintf(text, sizeof(text), "%s", why->msg);
    if (w->said_us != 0 && strcmp(text, w->said) == 0 && now_us - w->said_us < SAY_AGAIN_US)
        return;
    memcpy(w->said, text, sizeof(w->said));
    w->said_us = now_us;
    HFD_LOG(HFD_LOG_WARN, "waiting for the database: not ready until it can be reached",
            HFD_LOG_CSTR("store", hfd_cli_place_text(w->settings)),
            HFD_LOG_CSTR("error", why->msg));
}

static enum hfd_exit exit_of(hfd_rc rc)
{
    if (rc == HFD_CONFLICT || rc == HFD_IO || rc == HFD_INVALID || rc == HFD_CORRUPT)
        return HFD_EXIT_DATA;
    return rc == HFD_OK ? HFD_EXIT_OK : HFD_EXIT_INTERNAL;
}

enum hfd_exit hfd_serve_store_open(struct hfd_settings *settings, hfd_serve_pause_fn *pause,
                                   void *ctx, struct hfd_store **out, struct hfd_err *err)
{
    const struct hfd_store_config config = {
        .place = hfd_cli_place(settings),
        .queue_max = (size_t)settings->store_queue_max,
        .batch_max = (size_t)settings->store_batch_max,
        .readers = (unsigned)settings->store_readers,
        .read_timeout_us = settings->store_read_timeout_us,
        .clock = &hfd_clock_system,
    };
    struct wait w = {.settings = settings, .pause_us = PAUSE_MIN_US};
    hfd_rc rc;

    if (settings->unused_data.len > 0)
        HFD_LOG(HFD_LOG_INFO, "the folder of HFD_DATA is not used: the store is PostgreSQL",
                HFD_LOG_STR("data", settings->unused_data));
    for (;;) {
        rc = hfd_store_open(&config, out, err);
        if (rc != HFD_AWAY)
            break;
        say(&w, err);
        if (!pause(ctx, w.pause_us))
            return HFD_EXIT_OK;
        w.pause_us = 2 * w.pause_us < PAUSE_MAX_US ? 2 * w.pause_us : PAUSE_MAX_US;
    }
    if (rc == HFD_OK && w.said_us != 0)
        HFD_LOG(HFD_LOG_INFO, "the database can be reached",
                HFD_LOG_CSTR("store", hfd_cli_place_text(settings)));
    return exit_of(rc);
}
