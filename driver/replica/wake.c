/* See wake.h. */
#include "driver/replica/wake.h"

#include "driver/base/log.h"
#include "driver/base/thread.h"
#include "store/db.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SPACE_US (HFD_US_PER_S / 10) /* between two signals */
#define PAUSE_US HFD_US_PER_S        /* after a failure */
#define WAIT_US (60 * HFD_US_PER_S)  /* then the connection is tried */

struct hfd_wake {
    struct hfd_wake_config config;
    pthread_t thread;
    int fd;                          /* written when there is something to send */
    atomic_bool noted, stop;         /* any thread */
    struct hfd_store_reader *reader; /* the thread's */
    int64_t sent_us;                 /* monotonic */
    bool failing;
};

static int64_t now_us(void)
{
    return hfd_clock_mono_us(&hfd_clock_system);
}

/* Waits for a note, at most for a time. */
static void rest(const struct hfd_wake *w, int64_t us)
{
    struct pollfd p = {.fd = w->fd, .events = POLLIN};

    (void)poll(&p, 1, (int)(us / 1000));
}

static void drain(const struct hfd_wake *w)
{
    eventfd_t count;

    (void)eventfd_read(w->fd, &count);
}

static hfd_rc signal_once(struct hfd_wake *w, struct hfd_err *err)
{
    const int64_t early_us = w->sent_us + SPACE_US - now_us();
    struct hfd_db_signal signal = {.fd = w->fd, .wait_us = WAIT_US};
    bool heard = false;
    hfd_rc rc = HFD_OK;

    if (w->reader == NULL)
        rc = hfd_store_reader_open(w->config.store, &w->reader, err);
    if (rc == HFD_OK && atomic_load(&w->noted)) {
        signal.wait_us = early_us > 0 ? early_us : 0;
        signal.fd = -1;
        signal.send = early_us <= 0 && atomic_exchange(&w->noted, false);
        if (signal.send)
            w->sent_us = now_us();
    }
    if (rc == HFD_OK)
        rc = hfd_store_signal(w->reader, &signal, &heard, err);
    if (heard)
        w->config.heard(w->config.ctx);
    return rc;
}

static void *run(void *arg)
{
    struct hfd_wake *w = arg;

    while (!atomic_load(&w->stop)) {
        struct hfd_err err;
        const hfd_rc rc = signal_once(w, &err);

        drain(w);
        if (rc != HFD_OK && !w->failing)
            HFD_LOG(HFD_LOG_INFO, "replicas wake each other no more; they look each second",
                    HFD_LOG_CSTR("reason", err.msg));
        w->failing = rc != HFD_OK;
        if (rc != HFD_OK && !atomic_load(&w->stop))
            rest(w, PAUSE_US);
    }
    hfd_store_reader_close(&w->reader);
    return NULL;
}

static void wake_free(struct hfd_wake *w)
{
    if (w->fd >= 0)
        (void)close(w->fd);
    free(w);
}

hfd_rc hfd_wake_start(const struct hfd_wake_config *config, struct hfd_wake **out,
                      struct hfd_err *err)
{
    struct hfd_wake *w = calloc(1, sizeof(*w));
    hfd_rc rc;

    *out = NULL;
    if (w == NULL)
        return hfd_fail_nomem(err, "start the wake-ups");
    w->config = *config;
    w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    rc = w->fd >= 0
             ? hfd_thread_start(&(struct hfd_thread){"hfd-wake", "thread of the wake-ups", run, w},
                                &w->thread, err)
             : hfd_fail(err, HFD_IO, "start the wake-ups: %s", strerror(errno));
    if (rc == HFD_OK)
        *out = w;
    else
        wake_free(w);
    return rc;
}

void hfd_wake_stop(struct hfd_wake **out)
{
    struct hfd_wake *w = *out;

    *out = NULL;
    if (w == NULL)
        return;
    atomic_store(&w->stop, true);
    (void)eventfd_write(w->fd, 1);
    (void)pthread_join(w->thread, NULL);
    wake_free(w);
}

void hfd_wake_note(struct hfd_wake *w)
{
    if (!atomic_exchange(&w->noted, true))
        (void)eventfd_write(w->fd, 1);
}
