/*
 * hyperfleet-driver adapter: runs a built-in adapter as a program of its own, for a HyperFleet that
 * it reaches over HTTP. The HyperShift adapter is the only one. Thread: main.
 */
#include "driver/adapters/hypershift/fleet_api.h"
#include "driver/base/base.h"
#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/steady.h"
#include "handlers/cli/look.h"
#include "handlers/cli/serve_greet.h"
#include "handlers/cli/serve_hypershift.h"
#include "handlers/http/server.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define WATCH_MS 5000 /* between two looks at the certificate's files */
#define ASK_MS 5000   /* between two questions whose API it is */

struct adapter {
    struct hfd_settings *settings;
    bool send_secrets;
    int signal_fd;
    struct hfd_serve_hypershift hypershift;
    struct hfd_app app;
    struct hfd_server *server;      /* of probes and metrics; NULL = none */
    struct hfd_steady steady;       /* what is given time gets it, whatever the wall clock does */
    struct hfd_hs_fleet_api **apis; /* one for the thread of each management cluster */
};

static enum hfd_exit read_settings(struct adapter *a, int argc, const char **argv)
{
    const char *settings[] = {"--backend", "--remote-token-file", "--remote-ca-file"};
    const struct hfd_flag table[] = {
        {"--api", NULL, HFD_FLAG_SETTING, &settings[0], "URL",
         "HyperFleet API that it works for; the same as --backend"},
        {"--token-file", NULL, HFD_FLAG_SETTING, &settings[1], "FILE",
         "its token; the same as --remote-token-file"},
        {"--ca-file", NULL, HFD_FLAG_SETTING, &settings[2], "FILE",
         "its authorities; the same as --remote-ca-file"},
        {"--send-secrets", NULL, HFD_FLAG_SWITCH, &a->send_secrets, NULL,
         "report kubeconfigs: for an API of hyperfleet-driver alone"},
    };
    struct hfd_flags flags = {.command = "adapter",
                              HFD_FLAG_TABLE(table),
                              .others = HFD_FLAG_ALL,
                              .rest = calloc(2 * (size_t)argc + 1, sizeof(char *))};
    enum hfd_exit status;

    if (flags.rest == NULL)
        return hfd_cli_fail(HFD_EXIT_INTERNAL, "adapter", "out of memory");
    if (hfd_cli_read(&flags, argc, argv, &status))
        status = hfd_cli_settings(&flags, &a->settings);
    free(flags.rest);
    return status;
}

static enum hfd_exit check_settings(const struct hfd_settings *s)
{
    if (!hfd_look_is_remote(s))
        return hfd_cli_fail(HFD_EXIT_USAGE, "adapter",
                            "expected --api with the URL of a HyperFleet API");
    if (s->hypershift_kubeconfig.len == 0)
        return hfd_cli_fail(HFD_EXIT_USAGE, "adapter",
                            "expected hypershift.kubeconfig: the management cluster");
    if (s->hypershift_pull_secret_file.len == 0)
        return hfd_cli_fail(HFD_EXIT_USAGE, "adapter",
                            "expected hypershift.pull_secret_file: secrets of orders do not come "
                            "over HyperFleet's API");
    return HFD_EXIT_OK;
}

/* ---- the ops listener ---- */

/* Thread: loop. */
static const char *not_ready(void *ctx)
{
    return hfd_serve_hypershift_trouble(ctx);
}

/*
 * Opens the listener, if `ops_listen` is set.
 * @return HFD_OK, HFD_INVALID (an address or certificate), HFD_IO (in use), HFD_NOMEM
 */
static hfd_rc open_listener(struct adapter *a, struct hfd_err *err)
{
    hfd_rc rc;

    if (!hfd_settings_is_set(a->settings, HFD_SETTING_ops_listen))
        return HFD_OK;
    a->app = (struct hfd_app){
        .settings = a->settings,
        .clock = &hfd_clock_system,
        .rng = &hfd_rng_system,
        .ops_only = true,
        .not_ready = not_ready,
        .not_ready_ctx = &a->hypershift,
    };
    rc = hfd_server_open(&a->app, &a->server, err);
    if (rc == HFD_OK)
        rc = hfd_server_start(a->server, err);
    if (rc != HFD_OK)
        return rc;
    hfd_server_watch(a->server, false);
    HFD_LOG(HFD_LOG_INFO, "probes and metrics are served",
            HFD_LOG_STR("ops_listen", a->settings->ops_listen),
            HFD_LOG_INT("port", hfd_server_port(a->server, HFD_LISTENER_OPS)));
    return HFD_OK;
}

/* ---- whose API it is ---- */

/* Waits for a signal. @return its number; 0 = none came */
static uint32_t wait_for_signal(const struct adapter *a, int ms)
{
    struct pollfd fd = {.fd = a->signal_fd, .events = POLLIN};

    return poll(&fd, 1, ms) == 1 ? hfd_serve_signals_read(a->signal_fd) : 0;
}

static bool ends(uint32_t signo)
{
    return signo == SIGTERM || signo == SIGINT;
}

/*
 * Secrets go to an API of this program alone: another shows a report's data to all its readers.
 * @param stop  true: a signal came first
 */
static enum hfd_exit check_api(struct adapter *a, bool *stop)
{
    bool ours = false, logged = false;
    struct hfd_err err = {0};

    *stop = false;
    if (!a->send_secrets)
        return HFD_EXIT_OK;
    while (hfd_hs_fleet_api_is_ours(a->apis[0], &ours, &err) != HFD_OK) {
        if (!logged)
            HFD_LOG(HFD_LOG_WARN, "cannot ask the HyperFleet API whose it is; will try again",
                    HFD_LOG_STR("api", a->settings->backend), HFD_LOG_CSTR("reason", err.msg));
        logged = true;
        *stop = ends(wait_for_signal(a, ASK_MS));
        if (*stop)
            return HFD_EXIT_OK;
    }
    return ours ? HFD_EXIT_OK
                : hfd_cli_fail(HFD_EXIT_USAGE, "adapter",
                               "--send-secrets: the API at %.200s is not one of hyperfleet-driver, "
                               "and would show the secrets to all its readers; without the flag, "
                               "reports name the Secret with the kubeconfig",
                               a->settings->backend.p);
}

/* ---- the whole ---- */

static hfd_rc open_apis(struct adapter *a, struct hfd_err *err)
{
    const struct hfd_hs_fleet_api_config config = {
        .http = hfd_look_http(a->settings),
        .rng = &hfd_rng_system,
        .pauses = a->hypershift.pauses,
        .interval_us = a->settings->remote_watch_us,
        .send_secrets = a->send_secrets,
    };
    hfd_rc rc = HFD_OK;

    a->apis = calloc(a->hypershift.management_count, sizeof(struct hfd_hs_fleet_api *));
    if (a->apis == NULL)
        return hfd_fail_nomem(err, "open a HyperFleet API");
    for (size_t i = 0; rc == HFD_OK && i < a->hypershift.management_count; i++) {
        rc = hfd_hs_fleet_api_open(&config, &a->apis[i], err);
        a->hypershift.managements[i].fleet =
            (struct hfd_hs_fleet){&hfd_hs_fleet_api_ops, a->apis[i]};
    }
    return rc;
}

static hfd_rc open_parts(struct adapter *a, struct hfd_err *err)
{
    hfd_rc rc = hfd_serve_hypershift_open(&a->hypershift, a->settings, true, err);

    if (rc == HFD_OK)
        rc = open_apis(a, err);
    if (rc != HFD_OK)
        return rc;
    a->signal_fd = hfd_serve_signals_open();
    return a->signal_fd >= 0 ? HFD_OK : hfd_fail(err, HFD_IO, "read signals: %s", strerror(errno));
}

static void close_parts(struct adapter *a)
{
    if (a->hypershift.on)
        hfd_serve_hypershift_stop(&a->hypershift);
    if (a->server != NULL)
        hfd_server_stop(a->server);
    hfd_server_free(&a->server);
    for (size_t i = 0; a->apis != NULL && i < a->hypershift.management_count; i++)
        hfd_hs_fleet_api_close(&a->apis[i]);
    free((void *)a->apis);
    if (a->hypershift.on)
        hfd_serve_hypershift_close(&a->hypershift);
    if (a->signal_fd >= 0)
        (void)close(a->signal_fd);
}

/* The listener comes first: while the API is asked whose it is, probes are answered. */
static enum hfd_exit open_ops(struct adapter *a)
{
    struct hfd_err err = {0};
    const hfd_rc rc = open_listener(a, &err);

    if (rc == HFD_OK)
        return HFD_EXIT_OK;
    return rc == HFD_IO ? hfd_cli_fail(HFD_EXIT_ADDRESS, "adapter", "%s", err.msg)
                        : hfd_cli_fail_rc(rc, "adapter", &err);
}

static void run_until_signal(struct adapter *a)
{
    uint32_t signo = 0;

    HFD_LOG(HFD_LOG_INFO, "ready", HFD_LOG_CSTR("adapter", HFD_HS_ADAPTER),
            HFD_LOG_STR("api", a->settings->backend), HFD_LOG_CSTR("version", HFD_VERSION),
            HFD_LOG_CSTR("send_secrets", a->send_secrets ? "on" : "off"));
    while (!ends(signo)) {
        signo = wait_for_signal(a, a->server != NULL ? WATCH_MS : -1);
        if (a->server != NULL) /* looks at the files of tls.* */
            hfd_server_watch(a->server, signo == SIGHUP);
        if (signo == SIGHUP)
            hfd_serve_hypershift_reload(&a->hypershift);
        for (size_t i = 0; signo == SIGHUP && i < a->hypershift.management_count; i++)
            hfd_hs_fleet_api_reload(a->apis[i]);
    }
    HFD_LOG(HFD_LOG_INFO, "stopping",
            HFD_LOG_CSTR("signal", signo == SIGTERM ? "SIGTERM" : "SIGINT"));
    hfd_serve_signals_arm_second(a->signal_fd);
}

static enum hfd_exit run(struct adapter *a)
{
    enum hfd_exit status;
    struct hfd_err err = {0};
    bool stop = false;
    hfd_rc rc = hfd_base_init(&err);

    if (rc == HFD_OK)
        rc = open_parts(a, &err);
    if (rc != HFD_OK)
        return hfd_cli_fail_rc(rc, "adapter", &err);
    status = open_ops(a);
    if (status == HFD_EXIT_OK)
        status = check_api(a, &stop);
    if (status != HFD_EXIT_OK || stop)
        return status;
    hfd_steady_init(&a->steady, &hfd_clock_boot);
    rc = hfd_serve_hypershift_start(
        &a->hypershift, &(struct hfd_serve_hypershift_parts){.clock = &a->steady.clock}, &err);
    if (rc != HFD_OK)
        return hfd_cli_fail_rc(rc, "adapter", &err);
    run_until_signal(a);
    return HFD_EXIT_OK;
}

enum hfd_exit hfd_cmd_adapter(int argc, const char **argv)
{
    struct adapter a = {.signal_fd = -1};
    enum hfd_exit status;

    if (argc == 1 && strcmp(argv[0], "--help") == 0)
        return read_settings(&a, argc, argv);
    if (argc < 1 || strcmp(argv[0], "hypershift") != 0)
        return hfd_cli_fail(HFD_EXIT_USAGE, "adapter", "expected the adapter's name: hypershift");
    hfd_serve_signals_block(); /* before the first thread */
    (void)signal(SIGPIPE, SIG_IGN);
    (void)umask(077);
    status = read_settings(&a, argc - 1, argv + 1);
    if (status != HFD_EXIT_OK)
        return status;
    HFD_ASSERT(a.settings != NULL);
    hfd_log_set_level(a.settings->log_level);
    hfd_log_set_text(hfd_serve_logs_text(a.settings));
    status = check_settings(a.settings);
    if (status == HFD_EXIT_OK) {
        status = run(&a);
        close_parts(&a);
    }
    if (status == HFD_EXIT_OK)
        HFD_LOG(HFD_LOG_INFO, "stopped");
    hfd_settings_free(a.settings);
    return status;
}
