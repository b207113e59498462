/*
 * Documents made by the build: the OpenAPI document as JSON and as a page, and the manual. They
 * never change while the program runs. Thread: loop.
 */
#include "handlers/http/docs_api.h"

#include "handlers/http/api.h"
#include "handlers/http/pages.h"
#include "schemas/openapi.h"

static void reply_page(struct hfd_exchange *x, hfd_slice html)
{
    hfd_exchange_reply(x, &(struct hfd_reply){.status = 200,
                                              .content_type = "text/html; charset=utf-8",
                                              .body = html,
                                              .policy = hfd_page_policy});
}

void hfd_docs_openapi_json(struct hfd_exchange *x)
{
    hfd_exchange_reply(x, &(struct hfd_reply){.status = 200,
                                              .content_type = "application/json",
                                              .body = hfd_openapi_text()});
}

void hfd_docs_openapi_page(struct hfd_exchange *x)
{
    reply_page(x, hfd_openapi_page);
}

/* Compares the name with those of the manual. Opens no file. */
void hfd_docs_manual(struct hfd_exchange *x)
{
    const hfd_slice page = hfd_exchange_param(x, "page");
    const hfd_slice name = page.p != NULL ? page : HFD_SLICE("");
    struct hfd_err err;

    for (size_t i = 0; i < hfd_manual_count; i++) {
        if (hfd_slice_is(name, hfd_manual[i].name)) {
            reply_page(x, hfd_manual[i].html);
            return;
        }
    }
    hfd_exchange_fail(
        x, hfd_fail(&err, HFD_NOT_FOUND, "the manual has no such page; /docs/ lists its pages"),
        &err);
}
