/* Probes and metrics. They take no work from the store: what they tell must not depend on what they ask about. Thread: loop. */
#include "driver/base/metrics.h"
#include "handlers/http/routes.h"

#define METRICS_MAX_BYTES (1 << 20)

static void reply_json(struct hfd_exchange *x, int status, hfd_slice body)
{
    hfd_exchange_reply(x, &(struct hfd_reply){.status = status, .content_type = "application/json", .body = body});
}

void hfd_ops_live(struct hfd_exchange *x)
{
    reply_json(x, 200, HFD_SLICE("{\"status\":\"ok\"}"));
}

void hfd_ops_ready(struct hfd_exchange *x)
{
    const struct hfd_app *app = hfd_exchange_app(x);

    if (hfd_exchange_draining(x))
        reply_json(x, 503, HFD_SLICE("{\"status\":\"shutting_down\",\"reason\":\"Application is shutting down\"}"));
    else if (!hfd_store_ok(app->store))
        reply_json(x, 503, HFD_SLICE("{\"status\":\"not_ready\",\"reason\":\"database unavailable\"}"));
    else
        reply_json(x, 200, HFD_SLICE("{\"status\":\"ok\"}"));
}

void hfd_ops_metrics(struct hfd_exchange *x)
{
    hfd_slice text = HFD_SLICE_NONE;
    struct hfd_err err = {0};
    struct hfd_buf b;
    hfd_rc rc;

    hfd_buf_init(&b, METRICS_MAX_BYTES);
    hfd_metrics_render(&b);
    rc = hfd_buf_finish(&b, &text, &err);
    if (rc == HFD_OK) {
        text = hfd_arena_dup(hfd_exchange_mem(x), text);
        if (text.p == NULL)
            rc = hfd_fail(&err, HFD_NOMEM, "answer with the metrics");
    }
    hfd_buf_fini(&b);
    if (rc != HFD_OK) {
        hfd_exchange_fail(x, rc, &err);
        return;
    }
    hfd_exchange_reply(x, &(struct hfd_reply){.status = 200, .content_type = "text/plain; version=0.0.4", .body = text});
}
