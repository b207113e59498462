/*
 * Documents made by the build: the OpenAPI document as JSON and as pages, and the manual. They
 * never change while the program runs. Thread: loop.
 */
#include "handlers/http/docs_api.h"

#include "handlers/http/api.h"
#include "handlers/http/pages.h"
#include "schemas/openapi.h"

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
