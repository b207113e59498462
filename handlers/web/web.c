/* See web.h. */
#include "handlers/web/web.h"

#include "driver/core/driver.h"
#include "handlers/http/exchange.h"
#include "handlers/http/overview_api.h"
#include "handlers/web/page.h"
#include "store/rows_overview.h"
#include "store/rows_resource.h"

/* ---- what a page shows, in one snapshot, by the query functions of driver/core; thread: reader
 * ---- */

static struct hfd_ctx ctx_of(const struct hfd_web_page *p, struct hfd_txn *tx, struct hfd_err *err)
{
    return (struct hfd_ctx){
        .tx = tx, .driver = p->app->driver, .now_us = p->now_us, .mem = p->mem, .err = err};
}

/*
 * The operations under way that are not in trouble: the places behind all trouble. The walk over
 * the trouble counts its causes meanwhile.
 */
static hfd_rc read_working(const struct hfd_ctx *c, struct hfd_web_page *p)
{
    const struct hfd_overview_query q = {
        .states = 1u << HFD_STATE_CREATING | 1u << HFD_STATE_UPDATING | 1u << HFD_STATE_DELETING,
        .order = HFD_ORDER_TROUBLE,
        .size = HFD_WEB_UNDER_WAY_MAX,
        .cause_size = HFD_WEB_OF_CAUSE_MAX,
        .goes_on = true,
        .after = {.rank = HFD_OVERVIEW_TROUBLES, .at = INT64_MIN},
        .time_us = c->now_us};
    hfd_slice guresids[HFD_WEB_UNDER_WAY_MAX];
    struct hfd_resource_prefetch want = {.guresids = guresids, .reports = true};
    hfd_rc rc = hfd_overview_read(c, &q, &p->list);

    p->details = hfd_arena_array(p->mem, HFD_WEB_UNDER_WAY_MAX, sizeof(*p->details));
    if (rc == HFD_OK && p->details == NULL)
        return hfd_fail_nomem(c->err, "make the status page");
    for (; rc == HFD_OK && want.count < p->list.count; want.count++)
        guresids[want.count] = p->list.items[want.count].guresid;
    if (rc == HFD_OK)
        rc = hfd_resource_row_prefetch(c->tx, &want, p->mem, c->err);
    for (size_t i = 0; rc == HFD_OK && i < p->list.count; i++)
        rc = hfd_detail_read(c, p->list.items[i].guresid, &p->details[i]);
    return rc;
}

static hfd_rc read_history(const struct hfd_ctx *c, struct hfd_web_page *p)
{
    const struct hfd_feed_query q = {
        .before = INT64_MAX, .newest = true, .size = HFD_WEB_HISTORY_MAX};
    size_t n = 0;
    hfd_rc rc = hfd_feed_read(c, &q, &p->history);

    while (rc == HFD_OK && n < p->history.count &&
           p->history.items[n].row.at_us >= p->now_us - HFD_DAY_US)
        n++;
    p->history.count = n;
    return rc;
}

static hfd_rc read_home(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct hfd_web_page *p = arg;
    const struct hfd_ctx c = ctx_of(p, tx, err);
    hfd_rc rc;

    if (p->listing)
        return hfd_overview_read(&c, &p->asked, &p->list);
    rc = read_working(&c, p);
    if (rc == HFD_OK && hfd_web_seeks_orphans(p))
        rc =
            hfd_orphans_list(tx, c.driver->backend_ops,
                             &(struct hfd_orphan_owner){.own = hfd_slice_of(c.driver->fleet.owner)},
                             p->mem, &p->orphans, err);
    if (rc == HFD_OK && p->wants_orphans)
        rc = hfd_orphans_add_objects(&c, &p->orphans);
    if (rc == HFD_OK)
        rc = hfd_adapters_read(&c, true, &p->adapters);
    if (rc == HFD_OK)
        rc = hfd_trends_read(&c, &p->trends);
    if (rc == HFD_OK)
        rc = hfd_drifted_row_count(tx, &p->drifted, err);
    if (rc == HFD_OK && p->app->keeper != NULL)
        rc = hfd_replicas_read(tx, p->now_us, p->mem, &p->replicas, err);
    return rc == HFD_OK ? read_history(&c, p) : rc;
}

static hfd_rc read_resource(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct hfd_web_page *p = arg;
    const struct hfd_ctx c = ctx_of(p, tx, err);

    return hfd_detail_read(&c, p->guresid, &p->detail);
}

/* ---- answers ---- */

/* The page's own style and script, and no other; the script may only ask this server. */
static const char policy[] = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src "
                             "'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

static struct hfd_web_page *start(struct hfd_exchange *x)
{
    const struct hfd_app *app = hfd_exchange_app(x);
    struct hfd_arena *mem = hfd_exchange_mem(x);
    struct hfd_web_page *p = hfd_arena_alloc(mem, sizeof(*p));
    struct hfd_err err;

    if (p == NULL) {
        hfd_exchange_fail(x, hfd_fail_nomem(&err, "make the status page"), &err);
        return NULL;
    }
    *p = (struct hfd_web_page){
        .app = app, .mem = mem, .now_us = hfd_clock_wall_us(app->clock), .wants_orphans = true};
    return p;
}

static void reply_page(struct hfd_exchange *x, int status, struct hfd_html *h)
{
    struct hfd_reply reply = {.status = status, .policy = policy};

    hfd_api_send(x, &reply, "text/html; charset=utf-8", &h->b);
}

/* ---- home ---- */

/* Reads the query: which list is asked for, if any. The search field may be empty. */
static hfd_rc take_query(struct hfd_web_page *p, hfd_slice query, struct hfd_err *err)
{
    p->listing = query.len > 0 && !hfd_slice_is(query, "search=");
    if (!p->listing)
        return HFD_OK;
    p->query = hfd_arena_dup(p->mem, query);
    return p->query.p != NULL ? hfd_overview_query_read(p->query, p->mem, &p->asked, err)
                              : hfd_fail_nomem(err, "make the status page");
}

static void on_home(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    const struct hfd_web_page *p = arg;
    struct hfd_html h;

    if (rc != HFD_OK) {
        hfd_exchange_fail(x, rc, err);
        return;
    }
    hfd_html_init(&h, p->now_us);
    hfd_web_home(&h, p);
    reply_page(x, 200, &h);
}

static void home(struct hfd_exchange *x)
{
    struct hfd_web_page *p = start(x);
    struct hfd_err err;
    hfd_rc rc;

    if (p == NULL)
        return;
    rc = take_query(p, hfd_exchange_request(x)->query, &err);
    if (rc != HFD_OK)
        hfd_exchange_fail(x, rc, &err);
    else if (hfd_overview_is_short(&p->asked))
        hfd_exchange_view_short(x, read_home, p, on_home);
    else
        hfd_exchange_view(x, read_home, p, on_home);
}

/* ---- a resource ---- */

static void reply_missing(struct hfd_exchange *x, const struct hfd_web_page *p)
{
    struct hfd_html h;

    hfd_html_init(&h, p->now_us);
    hfd_web_missing(&h, p);
    reply_page(x, 404, &h);
}

static void on_resource(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    const struct hfd_web_page *p = arg;
    struct hfd_html h;

    if (rc == HFD_NOT_FOUND) {
        reply_missing(x, p);
        return;
    }
    if (rc != HFD_OK) {
        hfd_exchange_fail(x, rc, err);
        return;
    }
    hfd_html_init(&h, p->now_us);
    hfd_web_resource(&h, p);
    reply_page(x, 200, &h);
}

static void resource(struct hfd_exchange *x)
{
    const hfd_slice id = hfd_exchange_param(x, "guresid");
    struct hfd_web_page *p = start(x);
    struct hfd_err err;

    if (p == NULL)
        return;
    if (hfd_guresid_check(id, &err) != HFD_OK) {
        reply_missing(x, p);
        return;
    }
    p->guresid = hfd_arena_dup(p->mem, id);
    if (p->guresid.p == NULL)
        hfd_exchange_fail(x, hfd_fail_nomem(&err, "make the status page"), &err);
    else
        hfd_exchange_view_short(x, read_resource, p, on_resource);
}

/* ---- files ---- */

static void file(struct hfd_exchange *x)
{
    const bool style = hfd_slice_is(hfd_exchange_request(x)->path, "/page/style.css");

    hfd_exchange_reply(x, &(struct hfd_reply){.status = 200,
                                              .content_type = style ? "text/css; charset=utf-8"
                                                                    : "text/javascript; "
                                                                      "charset=utf-8",
                                              .body = style ? hfd_web_style_css : hfd_web_page_js,
                                              .policy = policy});
}

void hfd_web_serve(struct hfd_exchange *x)
{
    if (hfd_exchange_param(x, "guresid").p != NULL)
        resource(x);
    else if (strcmp(hfd_exchange_route(x)->pattern, "/") == 0)
        home(x);
    else
        file(x);
}
