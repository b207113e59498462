/* See serve_notify.h. */
#include "handlers/cli/serve_notify.h"

#include "driver/base/clock.h"
#include "driver/base/log.h"

#include <inttypes.h>
#include <stdio.h>

#define LOOKS_PER_WATCHDOG 4
/* A loop turns once a second. A shorter watchdog must not take that for a hang. */
#define STALL_MIN_US (5 * HFD_US_PER_S)

void hfd_serve_notify_open(struct hfd_serve_notify *n)
{
    const struct hfd_notify_env env = hfd_notify_env_get();
    struct hfd_err err = {0};

    *n = (struct hfd_serve_notify){.ready = false};
    if (hfd_notify_open(&n->to, &env, &err) != HFD_OK)
        HFD_LOG(HFD_LOG_WARN, "systemd gets no notifications", HFD_LOG_CSTR("error", err.msg));
}

void hfd_serve_notify_close(struct hfd_serve_notify *n)
{
    hfd_notify_close(&n->to);
}

void hfd_serve_notify_ready(struct hfd_serve_notify *n)
{
    n->ready = true;
    n->told = hfd_notify_send(&n->to, "READY=1\nSTATUS=ready\n");
}

void hfd_serve_notify_reloading(struct hfd_serve_notify *n)
{
    char text[80];

    (void)snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRId64 "\n",
                   hfd_clock_mono_us(&hfd_clock_system));
    (void)hfd_notify_send(&n->to, text);
}

void hfd_serve_notify_stopping(struct hfd_serve_notify *n)
{
    n->ready = false;
    (void)hfd_notify_send(&n->to, "STOPPING=1\nSTATUS=stopping: open requests may finish\n");
}

int hfd_serve_notify_wait_ms(const struct hfd_serve_notify *n, int max_ms)
{
    const int64_t wait_ms = n->to.watchdog_us / 1000 / LOOKS_PER_WATCHDOG;

    if (n->to.watchdog_us == 0 || wait_ms > max_ms)
        return max_ms;
    return wait_ms > 0 ? (int)wait_ms : 1;
}

void hfd_serve_notify_look(struct hfd_serve_notify *n, int64_t stall_us)
{
    if (n->ready && !n->told)
        hfd_serve_notify_ready(n);
    if (n->to.watchdog_us == 0)
        return;
    if (stall_us < n->to.watchdog_us || stall_us < STALL_MIN_US) {
        (void)hfd_notify_send(&n->to, "WATCHDOG=1\n");
        n->silent = false;
    } else if (!n->silent) {
        HFD_LOG(HFD_LOG_ERROR, "a loop thread does not turn: the watchdog gets no sign",
                HFD_LOG_INT("stall_ms", stall_us / 1000));
        n->silent = true;
    }
}
