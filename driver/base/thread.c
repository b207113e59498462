/* See thread.h. */
#include "driver/base/thread.h"

#include "driver/base/clock.h"

#include <signal.h>
#include <string.h>

hfd_rc hfd_thread_start(const struct hfd_thread *t, pthread_t *out, struct hfd_err *err)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    sigset_t blocked, before;
    int error;

    (void)sigfillset(&blocked);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        (void)sigdelset(&blocked, faults[i]);
    (void)pthread_sigmask(SIG_SETMASK, &blocked, &before);
    error = pthread_create(out, NULL, t->body, t->arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0)
        return hfd_fail(err, HFD_NOMEM, "%s: cannot start: %s", t->what, strerror(error));
    (void)pthread_setname_np(*out, t->name);
    return HFD_OK;
}

hfd_rc hfd_sleeper_start(struct hfd_sleeper *s, const struct hfd_thread *t, struct hfd_err *err)
{
    hfd_rc rc;

    s->stop = s->rung = false;
    rc = hfd_thread_start(t, &s->thread, err);
    s->started = rc == HFD_OK;
    return rc;
}

void hfd_sleeper_stop(struct hfd_sleeper *s)
{
    if (!s->started)
        return;
    (void)pthread_mutex_lock(&s->lock);
    s->stop = true;
    (void)pthread_cond_signal(&s->wake);
    (void)pthread_mutex_unlock(&s->lock);
    (void)pthread_join(s->thread, NULL);
    s->started = false;
}

void hfd_sleeper_ring(void *sleeper)
{
    struct hfd_sleeper *s = sleeper;

    (void)pthread_mutex_lock(&s->lock);
    s->rung = true;
    (void)pthread_cond_signal(&s->wake);
    (void)pthread_mutex_unlock(&s->lock);
}

bool hfd_sleeper_wait(struct hfd_sleeper *s, int64_t us, bool *rung)
{
    const int64_t until_us = hfd_clock_mono_us(&hfd_clock_system) + us;
    const struct timespec until = {.tv_sec = (time_t)(until_us / HFD_US_PER_S),
                                   .tv_nsec = (long)(until_us % HFD_US_PER_S) * 1000};
    bool stop;
    int rc = 0;

    (void)pthread_mutex_lock(&s->lock);
    while (!s->stop && !s->rung && rc == 0)
        rc = pthread_cond_clockwait(&s->wake, &s->lock, CLOCK_MONOTONIC, &until);
    if (rung != NULL)
        *rung = s->rung;
    s->rung = false;
    stop = s->stop;
    (void)pthread_mutex_unlock(&s->lock);
    return stop;
}

bool hfd_sleeper_is_stopped(struct hfd_sleeper *s)
{
    bool stop;

    (void)pthread_mutex_lock(&s->lock);
    stop = s->stop;
    (void)pthread_mutex_unlock(&s->lock);
    return stop;
}
