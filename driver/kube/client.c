/* See client.h. */
#include "driver/kube/client.h"

#include <stdio.h>
#include <stdlib.h>

#include "driver/base/check.h"
#include "driver/base/file.h"
#include "driver/base/log.h"
#include "driver/kube/refusal.h"
#include "driver/kube/transfer.h"

#define PATH_MAX_BYTES 8192
#define HEADERS_MAX_BYTES 65536
#define STEP_US HFD_US_PER_S
#define MEM_MAX_BYTES ((size_t)4 << 20)
#define PAGES_MAX 500 /* of one list; each has at most answer_max_bytes */
#define PAGES_AT_ONCE 10
#define PAGE_PAUSE_US (HFD_US_PER_S / 5)
#define METADATA_ONLY                                                                              \
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

/* ---- opening ---- */

hfd_rc hfd_kube_open(const struct hfd_kube_config *config, struct hfd_kube **out,
                     struct hfd_err *err)
{
    struct hfd_kube *k = calloc(1, sizeof(*k));
    hfd_rc rc;

    *out = k;
    if (k == NULL)
        return hfd_fail_nomem(err, "open a Kubernetes client");
    k->magic = HFD_KUBE_MAGIC;
    k->config = *config;
    k->seen = config->access->seen;
    k->server = (struct hfd_http_server){.connect_timeout_us = config->connect_timeout_us,
                                         .head_max_bytes = HEADERS_MAX_BYTES,
                                         .answer_max_bytes = config->answer_max_bytes,
                                         .ca = &k->credentials.of[HFD_KUBE_CA].text,
                                         .cert = &k->credentials.of[HFD_KUBE_CERT].text,
                                         .key = &k->credentials.of[HFD_KUBE_KEY].text,
                                         .token = &k->credentials.of[HFD_KUBE_TOKEN].text};
    hfd_arena_init(&k->mem, MEM_MAX_BYTES);
    rc = hfd_kube_credentials_open(&k->credentials, config->access, err);
    if (rc == HFD_OK)
        rc = hfd_http_client_open(config->clock, 0, &k->client, err);
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
    hfd_http_client_close(&k->client);
    hfd_kube_credentials_close(&k->credentials);
    hfd_arena_fini(&k->mem);
    k->magic = 0;
    free(k);
}

void hfd_kube_stop(struct hfd_kube *k)
{
    atomic_store(&k->stopped, true);
    hfd_kube_wake(k);
}

void hfd_kube_reload(struct hfd_kube *k)
{
    atomic_store(&k->reload, true);
    hfd_kube_wake(k);
}

/* Takes over what a kubeconfig says now. */
static hfd_rc read_access(struct hfd_kube *k, struct hfd_err *err)
{
    struct hfd_kube_credentials credentials;
    struct hfd_kube_access access;
    struct hfd_arena mem;
    hfd_rc rc;

    hfd_arena_init(&mem, MEM_MAX_BYTES);
    rc = hfd_kubeconfig_read(k->config.access->file, &mem, &access, err);
    if (rc == HFD_OK)
        rc = hfd_kube_credentials_open(&credentials, &access, err);
    if (rc != HFD_OK) {
        hfd_arena_fini(&mem);
        return rc;
    }
    hfd_kube_credentials_close(&k->credentials);
    hfd_arena_fini(&k->mem);
    k->credentials = credentials;
    k->mem = mem;
    k->present = access;
    k->config.access = &k->present;
    k->era++;
    return HFD_OK;
}

void hfd_kube_refresh(struct hfd_kube *k)
{
    const bool reload = atomic_exchange(&k->reload, false);
    const char *file = k->config.access->file;
    struct stat now = {0};
    struct hfd_err err;

    if (file != NULL)
        (void)stat(file, &now); /* all zero when it is gone */
    if (file != NULL && (reload || !hfd_file_same(&now, &k->seen))) {
        k->seen = now;
        if (read_access(k, &err) == HFD_OK)
            HFD_LOG(HFD_LOG_INFO, "kubeconfig read again",
                    HFD_LOG_CSTR("path", k->config.access->file),
                    HFD_LOG_STR("server", k->config.access->server));
        else
            HFD_LOG(HFD_LOG_ERROR,
                    "Kubernetes: cannot use a changed file; the previous content stays in use",
                    HFD_LOG_CSTR("path", file), HFD_LOG_CSTR("error", err.msg));
    }
    hfd_kube_credentials_refresh(&k->credentials, reload || k->refused_token);
    k->refused_token = false;
}

void hfd_kube_wake(struct hfd_kube *k)
{
    atomic_store(&k->woken, true);
    hfd_http_client_wake(k->client);
}

void hfd_kube_run(struct hfd_kube *k, int64_t wait_us)
{
    if (atomic_exchange(&k->woken, false))
        wait_us = 0;
    hfd_kube_refresh(k);
    (void)hfd_http_client_run(k->client, wait_us);
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
            (void)hfd_http_client_run(k->client, STEP_US);
    }
    if (rc == HFD_OK)
        rc = hfd_kube_transfer_result(t, err);
    if (rc == HFD_OK)
        rc = hfd_kube_transfer_answer(t, out, err);
    hfd_kube_transfer_fini(t);
    return rc;
}

hfd_rc hfd_kube_get(struct hfd_kube *k, const struct hfd_kube_object *object,
                    struct hfd_kube_answer *out, struct hfd_err *err)
{
    struct hfd_kube_transfer t = {.kube = k, .method = "GET", .asked = HFD_KUBE_OBJECT};
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
    if (apply->force)
        hfd_buf_lit(&path, "&force=true");
    return call(&t, &path, out, err);
}

hfd_rc hfd_kube_delete(struct hfd_kube *k, const struct hfd_kube_object *object, hfd_slice uid,
                       struct hfd_kube_answer *out, struct hfd_err *err)
{
    struct hfd_kube_transfer t = {.kube = k,
                                  .method = "DELETE",
                                  .content_type = "application/json",
                                  .asked = HFD_KUBE_REMOVAL};
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
                        struct hfd_kube_answer *out, struct hfd_kube_refusal *why,
                        struct hfd_err *err)
{
    struct hfd_kube_transfer t = {.kube = k,
                                  .method = "GET",
                                  .accept = list->metadata_only ? METADATA_ONLY : NULL,
                                  .asked = HFD_KUBE_OBJECTS};
    const json_t *token;
    struct hfd_buf path;
    hfd_slice after;
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
    if (rc != HFD_OK)
        return rc;
    hfd_kube_judge(out, why);
    if (why->class != HFD_KUBE_DONE)
        return HFD_OK;
    token = json_object_get(json_object_get(out->doc, "metadata"), "continue");
    after = (hfd_slice){json_string_value(token), json_string_length(token)};
    if (after.len > 0 && hfd_slice_eq(after, hfd_buf_slice(next)))
        return hfd_fail(err, HFD_TOO_LARGE,
                        "the API server's list has no end: a page gives its own token again");
    hfd_buf_reset(next);
    hfd_buf_add(next, after);
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

/* Waits before a page of a long list: one without end must not take all of the server. */
static hfd_rc pace(struct hfd_kube *k, int pages, struct hfd_err *err)
{
    const int64_t until_us = hfd_clock_mono_us(&hfd_clock_system) + PAGE_PAUSE_US;
    int64_t left_us = pages < PAGES_AT_ONCE ? 0 : PAGE_PAUSE_US;

    if (pages >= PAGES_MAX)
        return hfd_fail(err, HFD_TOO_LARGE, "the API server's list has more than %d pages",
                        PAGES_MAX);
    while (left_us > 0 && !atomic_load(&k->stopped)) {
        (void)hfd_http_client_run(k->client, left_us);
        left_us = until_us - hfd_clock_mono_us(&hfd_clock_system);
    }
    return HFD_OK;
}

hfd_rc hfd_kube_list(struct hfd_kube *k, const struct hfd_kube_list *list, char version[64],
                     struct hfd_kube_answer *out, struct hfd_err *err)
{
    bool again = true; /* a token may expire once */
    bool more = true;
    struct hfd_kube_refusal why;
    struct hfd_buf next;
    hfd_rc rc = HFD_OK;

    hfd_buf_init(&next, PATH_MAX_BYTES / 4);
    *out = (struct hfd_kube_answer){0};
    for (int pages = 0; rc == HFD_OK && more; pages++) {
        rc = pace(k, pages, err);
        if (rc != HFD_OK)
            break;
        hfd_kube_answer_fini(out);
        rc = read_page(k, list, &next, out, &why, err);
        if (rc == HFD_OK && why.class == HFD_KUBE_EXPIRED && again && next.len > 0) {
            again = false;
            hfd_buf_reset(&next);
        } else if (rc == HFD_OK && why.class == HFD_KUBE_DONE) {
            note_version(out->doc, version);
            more = give_items(list, out->doc) && next.len > 0;
        } else {
            more = false;
        }
    }
    hfd_buf_fini(&next);
    return rc;
}
