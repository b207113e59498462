/* See serve_greet.h. */
#include "handlers/cli/serve_greet.h"

#include "driver/base/file.h"
#include "driver/base/log.h"
#include "handlers/cli/cli.h"
#include "handlers/http/server.h"
#include "handlers/settings/settings.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* ---- the file of addresses ---- */

#define ADDRESS_MAX_BYTES ((size_t)4096)

static void add_address(struct hfd_buf *b, hfd_slice given, int port)
{
    const char *colon = memrchr(given.p, ':', given.len);

    if (hfd_slice_starts(given, HFD_SLICE("unix:")) || colon == NULL)
        hfd_buf_addf(b, "%.*s\n", HFD_SLICE_FMT(given));
    else
        hfd_buf_addf(b, "%.*s:%d\n", (int)(colon - given.p), given.p, port);
}

/*
 * Writes the file, or a warning to the log.
 * @param port, ops_port  that the listeners got; not used for a Unix socket
 */
static void serve_ops_write(struct hfd_settings *s, int port, int ops_port)
{
    const char *path = hfd_cli_addresses_path(s);
    struct hfd_err err;
    struct hfd_buf b;

    if (hfd_settings_has_postgres(s))
        return; /* no folder */
    hfd_buf_init(&b, ADDRESS_MAX_BYTES);
    add_address(&b, s->listen, port);
    add_address(&b, s->ops_listen, ops_port);
    if (path == NULL || b.rc != HFD_OK ||
        hfd_file_replace(path, "addresses", hfd_buf_slice(&b), &err) != HFD_OK)
        HFD_LOG(HFD_LOG_WARN, "commands will not find this server by themselves",
                HFD_LOG_CSTR("reason", "its addresses cannot be written to the data folder"));
    hfd_buf_fini(&b);
}

/* ---- the greeting ---- */

bool hfd_serve_logs_text(const struct hfd_settings *s)
{
    return hfd_slice_is(s->log_format, "text") ||
           (hfd_slice_is(s->log_format, "auto") && isatty(STDERR_FILENO) == 1);
}

/* "http://127.0.0.1:8000" with the port in use, in the memory of s; a Unix socket as it is set. */
static hfd_slice serve_url(struct hfd_settings *s, bool tls, hfd_slice listen, int port)
{
    const char *colon = memrchr(listen.p, ':', listen.len);

    if (hfd_slice_starts(listen, HFD_SLICE("unix:")))
        return listen;
    return hfd_arena_printf(&s->mem, "%s://%.*s:%d", tls ? "https" : "http",
                            (int)(colon - listen.p), listen.p, port);
}

/* Says in a sentence where the server listens and what to try, if the log is text. */
static void serve_greet(const struct hfd_settings *s, hfd_slice main_url, hfd_slice ops_url)
{
    if (hfd_serve_logs_text(s))
        (void)fprintf(stderr,
                      "hyperfleet-driver serves the Driver API at %.*s/ and its status at %.*s/. "
                      "Try: curl %.*s/api/driver/v1/resources\n",
                      HFD_SLICE_FMT(main_url), HFD_SLICE_FMT(ops_url), HFD_SLICE_FMT(main_url));
}

void hfd_serve_ready(const struct hfd_serve_ready *r)
{
    struct hfd_settings *s = r->settings;
    const bool tls = hfd_server_has_tls(r->server);
    const int port = hfd_server_port(r->server, HFD_LISTENER_MAIN),
              ops_port = hfd_server_port(r->server, HFD_LISTENER_OPS);
    const hfd_slice main_url = serve_url(s, tls, s->listen, port),
                    ops_url = serve_url(s, tls, s->ops_listen, ops_port);
    char *folder = realpath(s->data.p, NULL);
    const char *place = folder != NULL ? folder : hfd_cli_place_text(s);

    serve_ops_write(s, port, ops_port);
    HFD_LOG(HFD_LOG_INFO, "ready", HFD_LOG_STR("url", main_url), HFD_LOG_STR("ops_url", ops_url),
            HFD_LOG_INT("port", port), HFD_LOG_INT("ops_port", ops_port),
            HFD_LOG_CSTR(hfd_settings_has_postgres(s) ? "store" : "data", place),
            HFD_LOG_CSTR("version", HFD_VERSION),
            HFD_LOG_CSTR("demo", s->demo_us < 0 ? "off" : "on"),
            HFD_LOG_CSTR("authentication", r->guarded ? "on" : "off"),
            HFD_LOG_STR("backend", s->backend));
    free(folder);
    serve_greet(s, main_url, ops_url);
}

/* ---- signals ---- */

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
