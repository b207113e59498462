/* See thread.h. */
#include "driver/base/thread.h"

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
