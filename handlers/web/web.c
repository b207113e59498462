/* See web.h. */
#include "handlers/web/web.h"

#include "driver/core/driver.h"
#include "handlers/http/exchange.h"
#include "handlers/http/overview_api.h"
#include "handlers/web/assets.h"
#include "handlers/web/home.h"
#include "handlers/web/resource.h"

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
        hfd_exchange_view_short(x, hfd_web_read_home, p, on_home);
    else
        hfd_exchange_view(x, hfd_web_read_home, p, on_home);
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
        hfd_exchange_view_short(x, hfd_web_read_resource, p, on_resource);
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

const struct hfd_pages hfd_web_pages = {home, resource, file};
