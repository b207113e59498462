/*
 * Probes and metrics. They use no store job, so that their answers do not depend on its load.
 * Thread: loop.
 */
#include "handlers/http/ops.h"

#include "driver/base/metrics.h"
#include "handlers/http/api.h"

#define METRICS_MAX_BYTES (1 << 20)
#define HEALTH_MAX_BYTES 4096

static void reply_json(struct hfd_exchange *x, int status, hfd_slice body)
{
    hfd_exchange_reply(
        x, &(struct hfd_reply){.status = status, .content_type = "application/json", .body = body});
}

void hfd_ops_live(struct hfd_exchange *x)
{
    reply_json(x, 200, HFD_SLICE("{\"status\":\"ok\"}"));
}

/*
 * Reports that the process runs, like livez, and the health of the backend. That does not change
 * the status, because work is still accepted.
 */
void hfd_ops_health(struct hfd_exchange *x)
{
    const struct hfd_app *app = hfd_exchange_app(x);
    struct hfd_reply reply = {.status = 200};
    struct hfd_buf b;

    if (app->backend_health == NULL) {
        hfd_ops_live(x);
        return;
    }
    hfd_buf_init(&b, HEALTH_MAX_BYTES);
    hfd_buf_lit(&b, "{\"status\":\"ok\",\"remote\":");
    app->backend_health(app->backend_health_ctx, &b);
    hfd_buf_addc(&b, '}');
    hfd_api_send(x, &reply, "application/json", &b);
}

void hfd_ops_ready(struct hfd_exchange *x)
{
    const struct hfd_app *app = hfd_exchange_app(x);

    if (hfd_exchange_draining(x))
        reply_json(
            x, 503,
            HFD_SLICE(
                "{\"status\":\"shutting_down\",\"reason\":\"Application is shutting down\"}"));
    else if (!hfd_store_ok(app->store))
        reply_json(x, 503,
                   HFD_SLICE("{\"status\":\"not_ready\",\"reason\":\"database unavailable\"}"));
    else
        reply_json(x, 200, HFD_SLICE("{\"status\":\"ok\"}"));
}

void hfd_ops_metrics(struct hfd_exchange *x)
{
    struct hfd_reply reply = {.status = 200};
    struct hfd_buf b;

    hfd_buf_init(&b, METRICS_MAX_BYTES);
    hfd_metrics_render(&b);
    hfd_api_send(x, &reply, "text/plain; version=0.0.4", &b);
}
