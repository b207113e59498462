/* See serve_early.h. */
#include "handlers/cli/serve_early.h"

#include "handlers/http/routes.h"

/* Thread: loop. */
static const char *not_ready(void *ctx)
{
    (void)ctx;
    return "waiting for the database";
}

hfd_rc hfd_serve_early_open(struct hfd_serve_early *early, const struct hfd_settings *settings,
                            struct hfd_err *err)
{
    hfd_rc rc;

    if (!hfd_settings_has_postgres(settings))
        return HFD_OK;
    early->app = (struct hfd_app){
        .settings = settings,
        .clock = &hfd_clock_system,
        .rng = &hfd_rng_system,
        .ops_only = true,
        .opens_later = true,
        .not_ready = not_ready,
        .routes = hfd_routes_of_probes,
        .route_count = hfd_routes_of_probes_count,
    };
    rc = hfd_server_open(&early->app, &early->server, err);
    if (rc == HFD_OK)
        rc = hfd_server_start(early->server, err);
    if (rc != HFD_OK)
        hfd_server_free(&early->server);
    return rc;
}

void hfd_serve_early_close(struct hfd_serve_early *early)
{
    if (early->server != NULL)
        hfd_server_stop(early->server);
    hfd_server_free(&early->server);
}
