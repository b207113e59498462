/* See client.h. */
#include "driver/kube/transfer.h"

#include <stdio.h>
#include <stdlib.h>

#include "driver/base/check.h"
#include "driver/base/metrics.h"

#define PATH_MAX_BYTES 8192
#define STEP_US HFD_US_PER_S
#define METADATA_ONLY                                                                              \
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

/* ---- opening ---- */

hfd_rc hfd_kube_open(const struct hfd_kube_config *config, struct hfd_kube **out,
                     struct hfd_err *err)
{
    struct hfd_kube *k;
    hfd_rc rc;

    *out = NULL;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return hfd_fail(err, HFD_NOMEM, "libcurl does not start");
    k = calloc(1, sizeof(*k));
    if (k == NULL) {
        curl_global_cleanup();
        return hfd_fail_nomem(err, "open a Kubernetes client");
    }
    k->magic = HFD_KUBE_MAGIC;
    k->config = *config;
    rc = hfd_kube_credentials_open(&k->credentials, config->access, err);
    if (rc == HFD_OK) {
        k->multi = curl_multi_init();
        if (k->multi == NULL)
            rc = hfd_fail_nomem(err, "open a Kubernetes client");
    }
    *out = k;
    if (rc != HFD_OK)
        hfd_kube_close(out);
    return rc;
}

void hfd_kube_close(struct hfd_kube **kube)
{
    struct hfd_kube *k = *kube;

    *kube = NULL;
    if (k == NULL)
        return;
    HFD_CHECK_OBJ(k, HFD_KUBE_MAGIC);
    HFD_ASSERT(k->transfers == 0);
    if (k->multi != NULL)
        (void)curl_multi_cleanup(k->multi);
    hfd_kube_credentials_close(&k->credentials);
    k->magic = 0;
    free(k);
    curl_global_cleanup();
}

void hfd_kube_stop(struct hfd_kube *k)
{
    atomic_store(&k->stopped, true);
    hfd_kube_wake(k);
}

void hfd_kube_wake(struct hfd_kube *k)
{
    atomic_store(&k->woken, true);
    (void)curl_multi_wakeup(k->multi);
}

void hfd_kube_run(struct hfd_kube *k, int64_t wait_us)
{
    if (atomic_exchange(&k->woken, false))
        wait_us = 0;
    hfd_kube_transfers_run(k, wait_us);
}

/* ---- paths ---- */

/* Names are checked by the server; what would end a path segment is escaped all the same. */
static void add_segment(struct hfd_buf *b, hfd_slice s)
{
    hfd_buf_addc(b, '/');
    for (size_t i = 0; i < s.len; i++) {
        if (hfd_is_alnum(s.p[i]) || strchr("-_.~:", s.p[i]) != NULL)
            hfd_buf_addc(b, s.p[i]);
        else
            hfd_buf_addf(b, "%%%02X", (unsigned char)s.p[i]);
    }
}

void hfd_kube_path(struct hfd_buf *b, const struct hfd_kube_object *o)
{
    const struct hfd_kube_type *type = o->type;

    hfd_buf_add(b, strchr(type->group_version, '/') != NULL ? HFD_SLICE("/apis/")
                                                            : HFD_SLICE("/api/"));
    hfd_buf_add(b, hfd_slice_of(type->group_version));
    if (!type->cluster_scoped && o->namespace.len > 0) {
        hfd_buf_lit(b, "/namespaces");
        add_segment(b, o->namespace);
    }
    hfd_buf_addc(b, '/');
    hfd_buf_add(b, hfd_slice_of(type->plural));
    if (o->name.len > 0)
        add_segment(b, o->name);
}

static void add_query_value(struct hfd_buf *b, hfd_slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (hfd_is_alnum(s.p[i]) || strchr("-_.~", s.p[i]) != NULL)
            hfd_buf_addc(b, s.p[i]);
        else
            hfd_buf_addf(b, "%%%02X", (unsigned char)s.p[i]);
    }
}

/* ---- calls ---- */

void hfd_kube_answer_fini(struct hfd_kube_answer *answer)
{
    json_decref(answer->doc);
    *answer = (struct hfd_kube_answer){0};
}

static hfd_rc read_answer(const struct hfd_kube_transfer *t, struct hfd_kube_answer *out,
                          struct hfd_err *err)
{
    struct hfd_err why;
    hfd_rc rc;

    out->status = t->status;
    out->retry_after_us = t->retry_after_us;
    rc = hfd_json_parse(hfd_buf_slice(&t->answer), &out->doc, &why);
    if (rc == HFD_OK)
        return HFD_OK;
    out->doc = NULL;
    if (rc == HFD_NOMEM || t->status >= 300)
        return rc == HFD_NOMEM ? hfd_fail_nomem(err, "read an answer") : HFD_OK;
    return hfd_fail(err, HFD_TIMEOUT, "the API server %.80s: its answer is no JSON: %s",
                    t->kube->config.access->server.p, why.msg);
}

/* Counts a request by its answer. */
static void count_answer(const struct hfd_kube_transfer *t, hfd_rc rc,
                         const struct hfd_kube_answer *answer)
{
    static const char *const classes[] = {"1xx", "2xx", "3xx", "4xx", "5xx"};
    const char *class = "none";

    if (rc == HFD_OK)
        class = answer->status >= 100 && answer->status < 600 ? classes[answer->status / 100 - 1]
                                                              : "other";
    hfd_metric_add(HFD_METRIC_KUBE_REQUESTS, HFD_LABELS(t->method, class), 1);
}

/* Sends a request and waits for the end of its answer. Watches go on meanwhile. */
static hfd_rc call(struct hfd_kube_transfer *t, struct hfd_buf *path, struct hfd_kube_answer *out,
                   struct hfd_err *err)
{
    struct hfd_kube *k = t->kube;
    hfd_rc rc = hfd_buf_finish(path, &t->path, err);

    *out = (struct hfd_kube_answer){0};
    t->timeout_us = k->config.timeout_us;
    if (rc == HFD_OK)
        rc = hfd_kube_transfer_start(t, err);
    hfd_buf_fini(path);
    while (rc == HFD_OK && !t->done) {
        if (atomic_load(&k->stopped))
            rc = hfd_fail(err, HFD_BUSY, "the client of the Kubernetes API server is stopping");
        else
            hfd_kube_transfers_run(k, STEP_US);
    }
    if (rc == HFD_OK)
        rc = hfd_kube_transfer_result(t, err);
    if (rc == HFD_OK)
        rc = read_answer(t, out, err);
    count_answer(t, rc, out);
    hfd_kube_transfer_fini(t);
    return rc;
}

hfd_rc hfd_kube_get(struct hfd_kube *k, const struct hfd_kube_object *object,
                    struct hfd_kube_answer *out, struct hfd_err *err)
{
    struct hfd_kube_transfer t = {.kube = k, .method = "GET"};
    struct hfd_buf path;

    hfd_buf_init(&path, PATH_MAX_BYTES);
    hfd_kube_path(&path, object);
    return call(&t, &path, out, err);
}

hfd_rc hfd_kube_apply(struct hfd_kube *k, const struct hfd_kube_apply *apply,
                      struct hfd_kube_answer *out, struct hfd_err *err)
{
    struct hfd_kube_transfer t = {.kube = k,
                                  .method = "PATCH",
                                  .content_type = "application/apply-patch+yaml",
                                  .body = apply->body};
    struct hfd_buf path;

    hfd_buf_init(&path, PATH_MAX_BYTES);
    hfd_kube_path(&path, &apply->object);
    hfd_buf_lit(&path, "?fieldManager=");
    add_query_value(&path, hfd_slice_of(apply->manager));
    if (apply->dry_run)
        hfd_buf_lit(&path, "&dryRun=All");
    return call(&t, &path, out, err);
}

hfd_rc hfd_kube_delete(struct hfd_kube *k, const struct hfd_kube_object *object, hfd_slice uid,
                       struct hfd_kube_answer *out, struct hfd_err *err)
{
    struct hfd_kube_transfer t = {
        .kube = k, .method = "DELETE", .content_type = "application/json"};
    struct hfd_buf path, body;
    hfd_rc rc;

    hfd_buf_init(&body, PATH_MAX_BYTES);
    hfd_buf_lit(&body, "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\","
                       "\"propagationPolicy\":\"Background\"");
    if (uid.len > 0) {
        hfd_buf_member_str(&body, ",\"preconditions\":{\"uid\":", uid);
        hfd_buf_addc(&body, '}');
    }
    hfd_buf_addc(&body, '}');
    *out = (struct hfd_kube_answer){0};
    rc = hfd_buf_finish(&body, &t.body, err);
    if (rc == HFD_OK) {
        hfd_buf_init(&path, PATH_MAX_BYTES);
        hfd_kube_path(&path, object);
        rc = call(&t, &path, out, err);
    }
    hfd_buf_fini(&body);
    return rc;
}

/* ---- lists ---- */

/* Reads one page. next: the token of this page, then of the next one; empty = first, none. */
static hfd_rc read_page(struct hfd_kube *k, const struct hfd_kube_list *list, struct hfd_buf *next,
                        struct hfd_kube_answer *out, struct hfd_err *err)
{
    struct hfd_kube_transfer t = {
        .kube = k, .method = "GET", .accept = list->metadata_only ? METADATA_ONLY : NULL};
    const json_t *token;
    struct hfd_buf path;
    hfd_rc rc;

    hfd_buf_init(&path, PATH_MAX_BYTES);
    hfd_kube_path(&path, &list->objects);
    hfd_buf_addf(&path, "?limit=%lld", (long long)list->page_limit);
    if (list->selector != NULL) {
        hfd_buf_lit(&path, "&labelSelector=");
        add_query_value(&path, hfd_slice_of(list->selector));
    }
    if (next->len > 0) {
        hfd_buf_lit(&path, "&continue=");
        add_query_value(&path, hfd_buf_slice(next));
    }
    rc = call(&t, &path, out, err);
    if (rc != HFD_OK || out->status != 200)
        return rc;
    token = json_object_get(json_object_get(out->doc, "metadata"), "continue");
    hfd_buf_reset(next);
    hfd_buf_add(next, (hfd_slice){json_string_value(token), json_string_length(token)});
    return next->rc == HFD_OK ? HFD_OK : hfd_fail(err, HFD_TOO_LARGE, "a list's token is too long");
}

/* Gives the items of a page to on_item. Returns whether to go on. */
static bool give_items(const struct hfd_kube_list *list, const json_t *doc)
{
    const json_t *items = json_object_get(doc, "items");

    for (size_t i = 0; i < json_array_size(items); i++)
        if (!list->on_item(list->ctx, json_array_get(items, i)))
            return false;
    return true;
}

static void note_version(const json_t *doc, char version[64])
{
    const char *v =
        json_string_value(json_object_get(json_object_get(doc, "metadata"), "resourceVersion"));

    if (version != NULL)
        (void)snprintf(version, 64, "%s", v != NULL ? v : "");
}

hfd_rc hfd_kube_list(struct hfd_kube *k, const struct hfd_kube_list *list, char version[64],
                     struct hfd_kube_answer *out, struct hfd_err *err)
{
    bool again = true; /* a token may expire once */
    bool more = true;
    struct hfd_buf next;
    hfd_rc rc = HFD_OK;

    hfd_buf_init(&next, PATH_MAX_BYTES / 4);
    *out = (struct hfd_kube_answer){0};
    while (rc == HFD_OK && more) {
        hfd_kube_answer_fini(out);
        rc = read_page(k, list, &next, out, err);
        if (rc == HFD_OK && out->status == 410 && again && next.len > 0) {
            again = false;
            hfd_buf_reset(&next);
        } else if (rc == HFD_OK && out->status == 200) {
            note_version(out->doc, version);
            more = give_items(list, out->doc) && next.len > 0;
        } else {
            more = false;
        }
    }
    hfd_buf_fini(&next);
    return rc;
}
