/* See serve_signals.h. */
#include "handlers/cli/serve_signals.h"

#include "driver/base/log.h"
#include "handlers/cli/cli.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* timeout(1) and others signal the process and then its group: signals within this time are one. */
#define SAME_SIGNAL_MS 50

static void signals_of_ours(sigset_t *set)
{
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGTERM);
    (void)sigaddset(set, SIGINT);
    (void)sigaddset(set, SIGHUP);
}

void hfd_serve_signals_block(void)
{
    sigset_t set;

    signals_of_ours(&set);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
}

int hfd_serve_signals_open(void)
{
    sigset_t set;

    signals_of_ours(&set);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

uint32_t hfd_serve_signals_read(int fd)
{
    struct signalfd_siginfo info;

    return read(fd, &info, sizeof(info)) == sizeof(info) ? info.ssi_signo : 0;
}

static void on_second_signal(int signo)
{
    _exit(signo == SIGALRM ? HFD_EXIT_INTERNAL : HFD_EXIT_CUT_SHORT);
}

void hfd_serve_signals_arm_second(int fd)
{
    const struct sigaction action = {.sa_handler = on_second_signal};
    struct pollfd same = {.fd = fd, .events = POLLIN};
    sigset_t set;

    if (poll(&same, 1, SAME_SIGNAL_MS) == 1 && hfd_serve_signals_read(fd) == 0)
        HFD_LOG(HFD_LOG_WARN, "cannot read a signal", HFD_LOG_CSTR("error", strerror(errno)));
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGALRM, &action, NULL);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGALRM); /* the parent may have blocked them */
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
