/*
 * The OpenAPI document at the door, as JSON and as a page. Both are made at start and never change.
 * Thread: start-up for new and free, loop for the handlers.
 */
#include "handlers/http/openapi_api.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include "driver/base/jsonx.h"
#include "handlers/http/api.h"
#include "handlers/http/openapi_page.h"
#include "handlers/http/routes.h"
#include "schemas/openapi.h"

#define TEXT_MAX_BYTES ((size_t)4 * 1024 * 1024)
#define HASH_TEXT_BYTES (4 * ((SHA256_DIGEST_LENGTH + 2) / 3) + 1)

struct hfd_openapi {
    struct hfd_buf json;
    struct hfd_buf html;
    char policy[160]; /* of the page: its own style, and nothing else */
};

static void make_policy(struct hfd_openapi *o)
{
    const hfd_slice style = hfd_openapi_page_style();
    unsigned char hash[SHA256_DIGEST_LENGTH], text[HASH_TEXT_BYTES];

    (void)SHA256((const unsigned char *)style.p, style.len, hash);
    (void)EVP_EncodeBlock(text, hash, sizeof(hash));
    (void)snprintf(o->policy, sizeof(o->policy),
                   "default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; form-action "
                   "'none'; frame-ancestors 'none'",
                   text);
}

hfd_rc hfd_openapi_new(struct hfd_openapi **out, struct hfd_err *err)
{
    struct hfd_openapi *o = calloc(1, sizeof(*o));
    json_t *doc = NULL;
    hfd_slice text;
    hfd_rc rc;

    *out = NULL;
    if (o == NULL)
        return hfd_fail(err, HFD_NOMEM, "out of memory for the OpenAPI document");
    hfd_buf_init(&o->json, TEXT_MAX_BYTES);
    hfd_buf_init(&o->html, TEXT_MAX_BYTES);
    rc = hfd_openapi_document(&doc, err);
    if (rc == HFD_OK) {
        hfd_json_dump(&o->json, doc);
        hfd_openapi_page(&o->html, doc);
        make_policy(o);
        rc = hfd_buf_finish(&o->json, &text, err);
    }
    if (rc == HFD_OK)
        rc = hfd_buf_finish(&o->html, &text, err);
    json_decref(doc);
    if (rc == HFD_OK)
        *out = o;
    else
        hfd_openapi_free(&o);
    return rc;
}

void hfd_openapi_free(struct hfd_openapi **o)
{
    if (*o == NULL)
        return;
    hfd_buf_fini(&(*o)->json);
    hfd_buf_fini(&(*o)->html);
    free(*o);
    *o = NULL;
}

static void reply(struct hfd_exchange *x, const char *content_type, const struct hfd_buf *body,
                  const char *policy)
{
    hfd_exchange_reply(x, &(struct hfd_reply){.status = 200,
                                              .content_type = content_type,
                                              .body = hfd_buf_slice(body),
                                              .policy = policy});
}

void hfd_openapi_api_json(struct hfd_exchange *x)
{
    reply(x, "application/json", &hfd_exchange_app(x)->openapi->json, NULL);
}

void hfd_openapi_api_html(struct hfd_exchange *x)
{
    const struct hfd_openapi *o = hfd_exchange_app(x)->openapi;

    reply(x, "text/html; charset=utf-8", &o->html, o->policy);
}
