/*
 * Probes and metrics. Probes use no store job, so that their answers do not depend on its load.
 * Metrics have a reader count what is stored; without a reader they show the last counts.
 * Thread: loop.
 */
#include "handlers/http/ops.h"

#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/base/trouble.h"
#include "driver/core/gauges.h"
#include "driver/replica/keeper.h"
#include "handlers/http/exchange.h"
#include "schemas/documents.h"

#define METRICS_MAX_BYTES (1 << 20)
#define HEALTH_MAX_BYTES (256 * 1024)
#define COUNTS_WITHIN_US HFD_US_PER_S /* on a database that may be silent */

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
 * Reports that the process runs, like livez, and what is wrong. That does not change the status
 * code, because work is still accepted.
 */
void hfd_ops_health(struct hfd_exchange *x)
{
    const struct hfd_app *app = hfd_exchange_app(x);
    struct hfd_reply reply = {.status = 200};
    struct hfd_trouble problems[HFD_TROUBLES_MAX];
    const size_t count = hfd_troubles_copy(problems);
    struct hfd_buf b;

    hfd_buf_init(&b, HEALTH_MAX_BYTES);
    hfd_buf_addf(&b, "{\"status\":\"%s\"",
                 hfd_troubles_degrade(problems, count) ? "degraded" : "ok");
    if (app->backend_health != NULL) {
        hfd_buf_lit(&b, ",\"remote\":");
        app->backend_health(app->backend_health_ctx, &b);
    }
    if (count > 0) {
        hfd_buf_lit(&b, ",\"problems\":");
        hfd_troubles_json(problems, count, &b);
    }
    hfd_buf_addc(&b, '}');
    hfd_api_send(x, &reply, "application/json", &b);
}

static void reply_ready(struct hfd_exchange *x, const char *not_ready)
{
    struct hfd_reply reply = {.status = 503};
    struct hfd_buf b;

    if (not_ready == NULL) {
        hfd_ops_live(x);
        return;
    }
    hfd_buf_init(&b, HEALTH_MAX_BYTES);
    hfd_buf_member_str(&b, "{\"status\":\"not_ready\",\"reason\":", hfd_slice_of(not_ready));
    hfd_buf_addc(&b, '}');
    hfd_api_send(x, &reply, "application/json", &b);
}

/* Why this replica is not ready; NULL = it is. */
static const char *not_ready(const struct hfd_app *app)
{
    struct hfd_keeper_state state = {.outdated = false};

    if (app->keeper != NULL)
        hfd_keeper_state(app->keeper, &state);
    return state.outdated ? "a newer replica has other settings: restart this one with them" : NULL;
}

void hfd_ops_ready(struct hfd_exchange *x)
{
    const struct hfd_app *app = hfd_exchange_app(x);

    if (hfd_exchange_draining(x))
        reply_json(
            x, 503,
            HFD_SLICE(
                "{\"status\":\"shutting_down\",\"reason\":\"Application is shutting down\"}"));
    else if (app->not_ready != NULL)
        reply_ready(x, app->not_ready(app->not_ready_ctx));
    else if (!hfd_store_ok(app->store) || hfd_store_is_away(app->store))
        reply_json(x, 503,
                   HFD_SLICE("{\"status\":\"not_ready\",\"reason\":\"database unavailable\"}"));
    else
        reply_ready(x, not_ready(app));
}

/* ---- metrics ---- */

/* The counts of a scrape. They set the metrics themselves: the answer may not have waited. */
struct scrape {
    const struct hfd_app *app;
    struct hfd_arena *mem; /* of the exchange */
    int64_t now_us;
};

static void reply_metrics(struct hfd_exchange *x)
{
    struct hfd_reply reply = {.status = 200};
    struct hfd_buf b;

    hfd_buf_init(&b, METRICS_MAX_BYTES);
    hfd_metrics_render(&b);
    hfd_api_send(x, &reply, "text/plain; version=0.0.4", &b);
}

static hfd_rc txn_scrape(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct scrape *s = arg;
    const struct hfd_ctx c = {
        .tx = tx, .driver = s->app->driver, .now_us = s->now_us, .mem = s->mem, .err = err};
    struct hfd_gauges gauges;
    const hfd_rc rc = hfd_gauges_read(&c, s->app->settings->reconciliation_stuck_us, &gauges);

    if (rc == HFD_OK)
        hfd_gauges_set(&gauges, &s->app->driver->rules, !s->app->without_fleet);
    return rc;
}

static void on_scraped(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    (void)arg;
    if (rc != HFD_OK)
        HFD_LOG(HFD_LOG_WARN, "cannot count for /metrics; the last counts are shown",
                HFD_LOG_CSTR("code", hfd_rc_name(rc)), HFD_LOG_CSTR("reason", err->msg));
    reply_metrics(x);
}

/* The counts come with a later scrape. */
static void do_without_counts(struct hfd_exchange *x)
{
    HFD_LOG(HFD_LOG_WARN, "/metrics does not wait for the database; the last counts are shown");
    reply_metrics(x);
}

void hfd_ops_metrics(struct hfd_exchange *x)
{
    const struct hfd_app *app = hfd_exchange_app(x);
    struct hfd_arena *mem = hfd_exchange_mem(x);
    struct scrape *s = app->driver != NULL ? hfd_arena_alloc(mem, sizeof(*s)) : NULL;

    if (s == NULL) {
        reply_metrics(x);
        return;
    }
    *s = (struct scrape){.app = app, .mem = mem, .now_us = hfd_clock_wall_us(app->clock)};
    if (hfd_store_has_point_reads(app->store))
        hfd_exchange_limit(x, COUNTS_WITHIN_US, do_without_counts);
    hfd_exchange_view_short(x, txn_scrape, s, on_scraped);
}

/* ---- the status page ---- */

static void give(struct hfd_exchange *x, hfd_handler_fn *page)
{
    struct hfd_err err;

    if (page != NULL)
        page(x);
    else
        hfd_exchange_fail(x, hfd_fail(&err, HFD_NOT_FOUND, "there is no status page here"), &err);
}

void hfd_ops_home(struct hfd_exchange *x)
{
    const struct hfd_pages *pages = hfd_exchange_app(x)->pages;

    give(x, pages != NULL ? pages->home : NULL);
}

void hfd_ops_resource(struct hfd_exchange *x)
{
    const struct hfd_pages *pages = hfd_exchange_app(x)->pages;

    give(x, pages != NULL ? pages->resource : NULL);
}

void hfd_ops_file(struct hfd_exchange *x)
{
    const struct hfd_pages *pages = hfd_exchange_app(x)->pages;

    give(x, pages != NULL ? pages->file : NULL);
}

/* ---- documents ---- */

/*
 * Documents made by the build: the OpenAPI document as JSON and as pages, and the manual. They
 * never change while the program runs. Thread: loop.
 */

#define START_MAX_BYTES (64 * 1024)

/* Compares the name in the path with those of a table. Opens no file. */
static void reply_doc(struct hfd_exchange *x, const struct hfd_doc *docs, size_t count)
{
    const hfd_slice page = hfd_exchange_param(x, "page");
    const hfd_slice name = page.p != NULL ? page : HFD_SLICE("");
    struct hfd_err err;

    for (size_t i = 0; i < count; i++) {
        if (hfd_slice_is(name, docs[i].name)) {
            hfd_exchange_reply(x, &(struct hfd_reply){.status = 200,
                                                      .content_type = docs[i].type,
                                                      .body = docs[i].body,
                                                      .policy = docs[i].policy});
            return;
        }
    }
    hfd_exchange_fail(
        x, hfd_fail(&err, HFD_NOT_FOUND, "there is no such page; the start lists the pages"), &err);
}

void hfd_docs_openapi_json(struct hfd_exchange *x)
{
    hfd_exchange_reply(x, &(struct hfd_reply){.status = 200,
                                              .content_type = "application/json",
                                              .body = hfd_openapi_text()});
}

void hfd_docs_openapi_page(struct hfd_exchange *x)
{
    reply_doc(x, hfd_openapi_docs, hfd_openapi_docs_count);
}

void hfd_docs_manual(struct hfd_exchange *x)
{
    reply_doc(x, hfd_manual, hfd_manual_count);
}

void hfd_docs_no_icon(struct hfd_exchange *x)
{
    hfd_exchange_reply(x, &(struct hfd_reply){.status = 204});
}

/* ---- the start of the main listener ---- */

/* True for a browser's Accept: it has text/html, and not behind application/json. */
static bool wants_page(hfd_slice accept)
{
    const char *html = NULL, *json = NULL;

    if (accept.len > 0) {
        html = memmem(accept.p, accept.len, "text/html", strlen("text/html"));
        json = memmem(accept.p, accept.len, "application/json", strlen("application/json"));
    }
    return html != NULL && (json == NULL || html < json);
}

/* Adds where the ops listener is. A link there would be refused: this page has another origin. */
static void add_ops_address(struct hfd_buf *b, hfd_slice listen, const struct hfd_docs_place *ops)
{
    const char *colon = memrchr(listen.p, ':', listen.len);
    const hfd_slice host = {listen.p, colon != NULL ? (size_t)(colon - listen.p) : 0};

    if (hfd_slice_starts(listen, HFD_SLICE("unix:")))
        hfd_buf_lit(b, "a Unix socket");
    else if (hfd_slice_is(host, "0.0.0.0") || hfd_slice_is(host, "[::]"))
        hfd_buf_addf(b, "port %d of this machine", ops->port);
    else
        hfd_buf_addf(b, "<code>%s://%.*s:%d/</code>", ops->tls ? "https" : "http",
                     HFD_SLICE_FMT(host), ops->port);
}

bool hfd_docs_start(struct hfd_exchange *x, const struct hfd_docs_place *ops)
{
    const struct hfd_request *request = hfd_exchange_request(x);
    const hfd_slice page = hfd_start_page;
    const char *mark = memmem(page.p, page.len, HFD_START_MARK, strlen(HFD_START_MARK));
    struct hfd_reply reply = {.status = 200, .policy = hfd_openapi_docs[0].policy};
    hfd_slice accept;
    struct hfd_buf b;

    if (!hfd_slice_is(request->path, "/") || mark == NULL ||
        !(request->method == HFD_METHOD_GET || request->method == HFD_METHOD_HEAD) ||
        hfd_exchange_header(x, "accept", &accept, NULL) != HFD_OK || !wants_page(accept))
        return false;
    hfd_buf_init(&b, START_MAX_BYTES);
    hfd_buf_add(&b, (hfd_slice){page.p, (size_t)(mark - page.p)});
    add_ops_address(&b, hfd_exchange_app(x)->settings->ops_listen, ops);
    mark += strlen(HFD_START_MARK);
    hfd_buf_add(&b, (hfd_slice){mark, (size_t)(page.p + page.len - mark)});
    hfd_api_send(x, &reply, "text/html; charset=utf-8", &b);
    return true;
}
