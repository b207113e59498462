/* See adapter_ops.h. */
#include "handlers/cli/adapter_ops.h"

#include "driver/base/log.h"
#include "handlers/http/routes.h"

/* Thread: loop. */
static const char *not_ready(void *ctx)
{
    return hfd_serve_hypershift_trouble(ctx);
}

hfd_rc hfd_adapter_ops_open(struct hfd_adapter_ops *ops, const struct hfd_settings *settings,
                            struct hfd_serve_hypershift *hypershift, struct hfd_err *err)
{
    hfd_rc rc;

    *ops = (struct hfd_adapter_ops){.hypershift = hypershift};
    if (!hfd_settings_is_set(settings, HFD_SETTING_ops_listen))
        return HFD_OK;
    ops->app = (struct hfd_app){
        .settings = settings,
        .clock = &hfd_clock_system,
        .rng = &hfd_rng_system,
        .ops_only = true,
        .not_ready = not_ready,
        .not_ready_ctx = hypershift,
        .routes = hfd_routes_of_probes,
        .route_count = hfd_routes_of_probes_count,
    };
    rc = hfd_server_open(&ops->app, &ops->server, err);
    if (rc == HFD_OK)
        rc = hfd_server_start(ops->server, err);
    if (rc != HFD_OK)
        return rc;
    hfd_server_watch(ops->server, false);
    HFD_LOG(HFD_LOG_INFO, "probes and metrics are served",
            HFD_LOG_STR("ops_listen", settings->ops_listen),
            HFD_LOG_INT("port", hfd_server_port(ops->server, HFD_LISTENER_OPS)));
    return HFD_OK;
}

void hfd_adapter_ops_watch(struct hfd_adapter_ops *ops, bool forced)
{
    if (ops->server != NULL)
        hfd_server_watch(ops->server, forced);
}

void hfd_adapter_ops_close(struct hfd_adapter_ops *ops)
{
    if (ops->server != NULL)
        hfd_server_stop(ops->server);
    hfd_server_free(&ops->server);
}
