/* See meter.h. */
#include "driver/base/meter.h"

#include "driver/base/thread.h"

#include <time.h>
#include <unistd.h>

#define TERMINAL_US HFD_US_PER_S
#define PIPE_US (INT64_C(10) * HFD_US_PER_S)
#define TICK_US (HFD_US_PER_S / 5)
#define LINE_MAX_BYTES ((size_t)256)

void hfd_meter_line(struct hfd_buf *b, const struct hfd_meter_at *at, int64_t elapsed_us)
{
    const bool known = at->total > 0 && at->done <= at->total;
    const char *gap = at->unit != NULL ? " " : "", *unit = at->unit != NULL ? at->unit : "";

    hfd_buf_addf(b, "%s: ", at->what);
    if (at->done > 0 || known) {
        hfd_buf_count(b, at->done);
        if (known) {
            hfd_buf_lit(b, " of ");
            hfd_buf_count(b, at->total);
        }
        hfd_buf_addf(b, "%s%s  ", gap, unit);
    }
    if (known) {
        const double share = (double)at->done / (double)at->total;

        hfd_buf_addf(b, "%d %%", (int)(100 * share));
        if (at->done > 0) {
            hfd_buf_lit(b, "  about ");
            hfd_buf_clock(b, (int64_t)((double)elapsed_us * (1 - share) / share));
            hfd_buf_lit(b, " left");
        }
    } else {
        hfd_buf_lit(b, "for ");
        hfd_buf_clock(b, elapsed_us);
    }
}

void hfd_meter_init(struct hfd_meter *m, const struct hfd_clock *clock, FILE *out, bool terminal)
{
    pthread_condattr_t monotonic;

    *m = (struct hfd_meter){.clock = clock, .out = out, .terminal = terminal};
    (void)pthread_mutex_init(&m->lock, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&m->wake, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
}

/* Writes the line if it is due. Under the lock. */
static void tick(struct hfd_meter *m)
{
    const int64_t now_us = hfd_clock_mono_us(m->clock);
    struct hfd_meter_at at = m->at;
    struct hfd_buf b;

    if (m->what[0] == '\0' || now_us - m->said_us < (m->terminal ? TERMINAL_US : PIPE_US))
        return;
    at.what = m->what;
    hfd_buf_init(&b, LINE_MAX_BYTES);
    hfd_meter_line(&b, &at, now_us - m->began_us);
    (void)fprintf(m->out, m->terminal ? "\r%.*s\033[K" : "%.*s\n",
                  HFD_SLICE_FMT(hfd_buf_slice(&b)));
    (void)fflush(m->out);
    hfd_buf_fini(&b);
    m->said_us = now_us;
    m->shown = m->terminal;
}

static void *run(void *arg)
{
    struct hfd_meter *m = arg;

    (void)pthread_mutex_lock(&m->lock);
    while (!m->stop) {
        const int64_t at_us = hfd_clock_mono_us(&hfd_clock_system) + TICK_US;
        const struct timespec until = {.tv_sec = at_us / HFD_US_PER_S,
                                       .tv_nsec = at_us % HFD_US_PER_S * 1000};

        (void)pthread_cond_timedwait(&m->wake, &m->lock, &until);
        tick(m);
    }
    (void)pthread_mutex_unlock(&m->lock);
    return NULL;
}

void hfd_meter_start(struct hfd_meter *m)
{
    const struct hfd_thread thread = {"meter", "thread of the progress line", run, m};

    hfd_meter_init(m, &hfd_clock_system, stderr, isatty(STDERR_FILENO) == 1);
    m->runs = hfd_thread_start(&thread, &m->thread, NULL) == HFD_OK;
}

void hfd_meter_set(struct hfd_meter *m, const struct hfd_meter_at *at)
{
    if (m == NULL || m->out == NULL)
        return;
    (void)pthread_mutex_lock(&m->lock);
    if (strncmp(m->what, at->what, sizeof(m->what) - 1) != 0) {
        (void)snprintf(m->what, sizeof(m->what), "%s", at->what);
        m->began_us = hfd_clock_mono_us(m->clock);
        m->said_us = m->said_us != 0 ? m->said_us : m->began_us;
    }
    m->at = *at;
    m->at.what = NULL;
    (void)pthread_mutex_unlock(&m->lock);
}

void hfd_meter_tick(struct hfd_meter *m)
{
    (void)pthread_mutex_lock(&m->lock);
    tick(m);
    (void)pthread_mutex_unlock(&m->lock);
}

void hfd_meter_clear(struct hfd_meter *m)
{
    if (m->out == NULL)
        return;
    (void)pthread_mutex_lock(&m->lock);
    if (m->shown)
        (void)fputs("\r\033[K", m->out);
    (void)fflush(m->out);
    m->shown = false;
    m->what[0] = '\0';
    (void)pthread_mutex_unlock(&m->lock);
}

void hfd_meter_stop(struct hfd_meter *m)
{
    if (m->out == NULL)
        return;
    hfd_meter_clear(m);
    (void)pthread_mutex_lock(&m->lock);
    m->stop = true;
    (void)pthread_cond_signal(&m->wake);
    (void)pthread_mutex_unlock(&m->lock);
    if (m->runs)
        (void)pthread_join(m->thread, NULL);
    (void)pthread_cond_destroy(&m->wake);
    (void)pthread_mutex_destroy(&m->lock);
    m->out = NULL;
}
