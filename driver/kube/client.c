/* See client.h. */
#include "driver/kube/client.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "driver/base/check.h"
#include "driver/base/file.h"
#include "driver/base/http_client.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/base/url.h"
#include "driver/kube/refusal.h"

#define FILE_MAX_BYTES ((size_t)1 << 20) /* of a credential */
#define NO_ROUTE "404 page not found"
#define PATH_MAX_BYTES 8192
#define HEADERS_MAX_BYTES 65536
#define STEP_US HFD_US_PER_S
#define MEM_MAX_BYTES ((size_t)4 << 20)
#define PAGES_MAX 500 /* of one list; each has at most answer_max_bytes */
#define PAGES_AT_ONCE 10
#define PAGE_PAUSE_US (HFD_US_PER_S / 5)
#define METADATA_ONLY                                                                              \
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

/*
 * The token and the certificates, in guarded memory. Those that are files are read again when they
 * change. If one cannot be used, what was read before stays, and the log says so, once for each
 * change.
 */

enum secret_kind {
    HFD_KUBE_CA,
    HFD_KUBE_CERT,
    HFD_KUBE_KEY,
    HFD_KUBE_TOKEN,
    HFD_KUBE_SECRET_COUNT
};

struct credentials {
    struct secret_text {
        const char *file; /* NULL = none */
        struct stat seen; /* before the last attempt to read it */
        struct hfd_secret text;
    } of[HFD_KUBE_SECRET_COUNT];
};

static hfd_rc keep(struct hfd_secret *out, hfd_slice text, struct hfd_err *err)
{
    hfd_rc rc = hfd_secret_init(out, text.len, err);

    if (rc == HFD_OK)
        memcpy(out->p, text.p, text.len);
    return rc;
}

static hfd_slice trimmed(hfd_slice text)
{
    while (text.len > 0 && strchr(" \t\r\n", text.p[text.len - 1]) != NULL)
        text.len--;
    return text;
}

/* A token is one printable word: anything else could add a header. */
static hfd_rc check_token(hfd_slice token, const char *where, struct hfd_err *err)
{
    if (token.len == 0)
        return hfd_fail(err, HFD_INVALID, "%.150s: it holds no token", where);
    for (size_t i = 0; i < token.len; i++)
        if (token.p[i] <= ' ' || token.p[i] > '~')
            return hfd_fail(err, HFD_INVALID, "%.150s: expected one token on one line", where);
    return HFD_OK;
}

static hfd_rc check_secret(enum secret_kind which, hfd_slice text, const char *where,
                           struct hfd_err *err)
{
    if (which == HFD_KUBE_TOKEN)
        return check_token(text, where, err);
    return text.len > 0 && memmem(text.p, text.len, "-----BEGIN ", 11) != NULL
               ? HFD_OK
               : hfd_fail(err, HFD_INVALID, "%.150s: expected PEM", where);
}

/* Reads a file into out, which is empty before, and after a failure. */
static hfd_rc load(const struct secret_text *f, enum secret_kind which, struct hfd_secret *out,
                   struct hfd_err *err)
{
    struct hfd_buf b;
    hfd_slice text;
    hfd_rc rc;

    *out = (struct hfd_secret){0};
    hfd_buf_init(&b, FILE_MAX_BYTES);
    rc = hfd_file_read(f->file, "credential of a Kubernetes API server", &b, err);
    if (rc == HFD_OK) {
        text = which == HFD_KUBE_TOKEN ? trimmed(hfd_buf_slice(&b)) : hfd_buf_slice(&b);
        rc = check_secret(which, text, f->file, err);
        if (rc == HFD_OK)
            rc = keep(out, text, err);
    }
    if (b.p != NULL)
        explicit_bzero(b.p, b.len);
    hfd_buf_fini(&b);
    return rc;
}

static hfd_rc open_one(struct secret_text *f, enum secret_kind which,
                       const struct hfd_kube_credential *from, struct hfd_err *err)
{
    hfd_rc rc;

    f->file = from->file;
    if (f->file != NULL) {
        (void)stat(f->file, &f->seen);
        return load(f, which, &f->text, err);
    }
    if (from->text.len == 0)
        return HFD_OK;
    rc = check_secret(which, from->text, "the kubeconfig", err);
    return rc == HFD_OK ? keep(&f->text, from->text, err) : rc;
}

static void credentials_close(struct credentials *c)
{
    for (int i = 0; i < HFD_KUBE_SECRET_COUNT; i++)
        hfd_secret_fini(&c->of[i].text);
}

static hfd_rc credentials_open(struct credentials *c, const struct hfd_kube_access *access,
                               struct hfd_err *err)
{
    const struct hfd_kube_credential *const from[HFD_KUBE_SECRET_COUNT] = {
        [HFD_KUBE_CA] = &access->ca,
        [HFD_KUBE_CERT] = &access->cert,
        [HFD_KUBE_KEY] = &access->key,
        [HFD_KUBE_TOKEN] = &access->token,
    };
    hfd_rc rc = HFD_OK;

    *c = (struct credentials){0};
    for (int i = 0; rc == HFD_OK && i < HFD_KUBE_SECRET_COUNT; i++)
        rc = open_one(&c->of[i], (enum secret_kind)i, from[i], err);
    if (rc != HFD_OK)
        credentials_close(c);
    return rc;
}

static void refresh_one(struct secret_text *f, enum secret_kind which, bool all)
{
    struct hfd_secret text;
    struct stat now = {0};
    struct hfd_err err;

    if (f->file == NULL)
        return;
    (void)stat(f->file, &now); /* all zero when it is gone */
    if (!all && hfd_file_same(&now, &f->seen))
        return;
    f->seen = now;
    if (load(f, which, &text, &err) != HFD_OK) {
        HFD_LOG(HFD_LOG_ERROR,
                "Kubernetes: cannot use a changed file; the previous content stays in use",
                HFD_LOG_CSTR("path", f->file), HFD_LOG_CSTR("error", err.msg));
        return;
    }
    hfd_secret_fini(&f->text);
    f->text = text;
}

/* @param all  also reads files that have not changed */
static void credentials_refresh(struct credentials *c, bool all)
{
    for (int i = 0; i < HFD_KUBE_SECRET_COUNT; i++)
        refresh_one(&c->of[i], (enum secret_kind)i, all);
}

struct hfd_kube {
    unsigned magic;
#define HFD_KUBE_MAGIC 0x6b756265u
    struct hfd_kube_config config;  /* its access is the present one */
    struct hfd_kube_access present; /* of a kubeconfig that was read again; texts live in mem */
    struct hfd_arena mem;
    struct stat seen; /* of the kubeconfig, before the last attempt to read it */
    unsigned era;     /* counts the kubeconfigs that were read */
    struct credentials credentials;
    struct hfd_http_server server; /* without the time of an exchange */
    struct hfd_http_client *client;
    bool refused_token; /* the server answered 401: the file may have a new token */
    atomic_bool stopped, woken, reload;
};

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
    rc = credentials_open(&k->credentials, config->access, err);
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
    credentials_close(&k->credentials);
    hfd_arena_fini(&k->mem);
    k->magic = 0;
    free(k);
}

/* Takes over what a kubeconfig says now. */
static hfd_rc read_access(struct hfd_kube *k, struct hfd_err *err)
{
    struct credentials credentials;
    struct hfd_kube_access access;
    struct hfd_arena mem;
    hfd_rc rc;

    hfd_arena_init(&mem, MEM_MAX_BYTES);
    rc = hfd_kubeconfig_read(k->config.access->file, &mem, &access, err);
    if (rc == HFD_OK)
        rc = credentials_open(&credentials, &access, err);
    if (rc != HFD_OK) {
        hfd_arena_fini(&mem);
        return rc;
    }
    credentials_close(&k->credentials);
    hfd_arena_fini(&k->mem);
    k->credentials = credentials;
    k->mem = mem;
    k->present = access;
    k->config.access = &k->present;
    k->era++;
    return HFD_OK;
}

/*
 * Reads the kubeconfig and the files of credentials again, if they have changed. A file
 * that cannot be used is logged, and what was read before stays in use.
 */
static void refresh(struct hfd_kube *k)
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
    credentials_refresh(&k->credentials, reload || k->refused_token);
    k->refused_token = false;
}

void hfd_kube_wake(struct hfd_kube *k, enum hfd_kube_wake why)
{
    if (why == HFD_KUBE_STOP)
        atomic_store(&k->stopped, true);
    if (why == HFD_KUBE_RELOAD)
        atomic_store(&k->reload, true);
    atomic_store(&k->woken, true);
    hfd_http_client_wake(k->client);
}

void hfd_kube_run(struct hfd_kube *k, int64_t wait_us)
{
    if (atomic_exchange(&k->woken, false))
        wait_us = 0;
    refresh(k);
    (void)hfd_http_client_run(k->client, wait_us);
}

/* ---- one exchange ---- */

/* One HTTP exchange, for calls and watches. Set up to `ctx`; the rest is of the functions below. */
struct transfer {
    struct hfd_kube *kube;
    const char *method; /* "GET", "PATCH", "DELETE" */
    enum hfd_kube_asked asked;
    hfd_slice path;           /* with its query; borrowed during start */
    const char *accept;       /* NULL = application/json */
    const char *content_type; /* of the body */
    hfd_slice body;           /* borrowed until the end */
    int64_t timeout_us;       /* of the whole exchange */
    /* Takes bytes of a 200 as they come; false ends the exchange. NULL = they become `answer`. */
    bool (*on_bytes)(void *ctx, hfd_slice bytes);
    void *ctx;

    bool began, done, counted; /* began: until it is freed */
    struct hfd_http_server server;
    struct hfd_http_call call;
    struct hfd_http_answer answer;
};

/* Counts a request by its answer. @param status  0 = no whole answer */
static void count(struct transfer *t, int status)
{
    static const char *const classes[] = {"1xx", "2xx", "3xx", "4xx", "5xx"};
    const char *class = status == 0 ? "none" : "other";

    if (status >= 100 && status < 600)
        class = classes[status / 100 - 1];
    if (!t->counted)
        hfd_metric_add(HFD_METRIC_KUBE_REQUESTS, HFD_LABELS(t->method, class), 1);
    t->counted = true;
}

/* A stream is counted when it begins. */
static bool take(void *ctx, hfd_slice piece)
{
    struct transfer *t = ctx;

    count(t, 200);
    return piece.len == 0 || t->on_bytes(t->ctx, piece);
}

static void finish(void *ctx)
{
    struct transfer *t = ctx;

    t->done = true;
    count(t, t->answer.rc == HFD_OK ? t->answer.status : 0);
    if (t->answer.status == 401)
        t->kube->refused_token = true;
}

/* Ends it, if it is under way, and frees what it has. Accepts one that was never started. */
static void transfer_fini(struct transfer *t)
{
    hfd_http_call_end(&t->call);
    hfd_http_answer_fini(&t->answer);
    t->began = false;
}

/* Sends the request. @return HFD_OK, HFD_NOMEM, HFD_BUSY (stopped) */
static hfd_rc transfer_start(struct transfer *t, struct hfd_err *err)
{
    struct hfd_kube *kube = t->kube;

    HFD_CHECK_OBJ(kube, HFD_KUBE_MAGIC);
    HFD_ASSERT(!t->began);
    if (atomic_load(&kube->stopped))
        return hfd_fail(err, HFD_BUSY, "the client of the Kubernetes API server is stopping");
    refresh(kube);
    t->began = true;
    t->server = kube->server;
    t->server.timeout_us = t->timeout_us;
    t->call = (struct hfd_http_call){
        .server = &t->server,
        .method = t->method,
        .url = {kube->config.access->server, t->path},
        .headers = {{"Accept", hfd_slice_of(t->accept != NULL ? t->accept : "application/json")},
                    {"Content-Type",
                     t->body.len > 0 ? hfd_slice_of(t->content_type) : HFD_SLICE_NONE}},
        .body = t->body,
        .take = t->on_bytes != NULL ? take : NULL,
        .done = finish,
        .ctx = t,
        .answer = &t->answer,
    };
    if (hfd_http_call_start(kube->client, &t->call))
        return HFD_OK;
    transfer_fini(t);
    return hfd_fail_nomem(err, "call a Kubernetes API server");
}

/* Makes the failure of one that is done and has no whole answer. @return HFD_OK if it has one */
static hfd_rc transfer_result(const struct transfer *t, struct hfd_err *err)
{
    const char *server = t->kube->config.access->server.p;
    const struct hfd_http_answer *a = &t->answer;

    if (a->refused != NULL)
        return hfd_fail(err, a->rc, "the API server %.80s: %s", server, a->refused);
    if (a->rc == HFD_NOMEM)
        return hfd_fail_nomem(err, "call a Kubernetes API server");
    if (a->rc == HFD_OK)
        return HFD_OK;
    return hfd_fail(err, HFD_TIMEOUT, "the API server %.80s does not answer: %s (%s)", server,
                    a->meaning != NULL ? a->meaning : "no whole answer", a->detail);
}

/* Takes the answer of one that is done, whatever it is. @return HFD_OK, HFD_NOMEM */
static hfd_rc transfer_answer(const struct transfer *t, struct hfd_kube_answer *out,
                              struct hfd_err *err)
{
    const struct hfd_http_answer *a = &t->answer;
    const hfd_slice body = hfd_buf_slice(&a->body);

    out->status = a->status;
    out->asked = t->asked;
    out->retry_after_us = a->retry_after_us;
    out->empty = body.len == 0;
    out->no_route = hfd_slice_starts(body, HFD_SLICE(NO_ROUTE));
    memcpy(out->type, a->type, sizeof(out->type));
    if (hfd_json_parse(body, &out->doc, NULL) == HFD_NOMEM)
        return hfd_fail_nomem(err, "read an answer");
    return HFD_OK;
}

/* ---- paths ---- */

/* Names are checked by the server; what would end a path segment is escaped all the same. */
static void add_segment(struct hfd_buf *b, hfd_slice s)
{
    hfd_buf_addc(b, '/');
    hfd_url_escape(b, s, HFD_URL_PLAIN ":");
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

/* ---- calls ---- */

void hfd_kube_answer_fini(struct hfd_kube_answer *answer)
{
    json_decref(answer->doc);
    *answer = (struct hfd_kube_answer){0};
}

/* Sends a request and waits for the end of its answer. Watches go on meanwhile. */
static hfd_rc call(struct transfer *t, struct hfd_buf *path, struct hfd_kube_answer *out,
                   struct hfd_err *err)
{
    struct hfd_kube *k = t->kube;
    hfd_rc rc = hfd_buf_finish(path, &t->path, err);

    *out = (struct hfd_kube_answer){0};
    t->timeout_us = k->config.timeout_us;
    if (rc == HFD_OK)
        rc = transfer_start(t, err);
    hfd_buf_fini(path);
    while (rc == HFD_OK && !t->done) {
        if (atomic_load(&k->stopped))
            rc = hfd_fail(err, HFD_BUSY, "the client of the Kubernetes API server is stopping");
        else
            (void)hfd_http_client_run(k->client, STEP_US);
    }
    if (rc == HFD_OK)
        rc = transfer_result(t, err);
    if (rc == HFD_OK)
        rc = transfer_answer(t, out, err);
    transfer_fini(t);
    return rc;
}

hfd_rc hfd_kube_get(struct hfd_kube *k, const struct hfd_kube_object *object,
                    struct hfd_kube_answer *out, struct hfd_err *err)
{
    struct transfer t = {.kube = k, .method = "GET", .asked = HFD_KUBE_OBJECT};
    struct hfd_buf path;

    hfd_buf_init(&path, PATH_MAX_BYTES);
    hfd_kube_path(&path, object);
    return call(&t, &path, out, err);
}

hfd_rc hfd_kube_apply(struct hfd_kube *k, const struct hfd_kube_apply *apply,
                      struct hfd_kube_answer *out, struct hfd_err *err)
{
    struct transfer t = {.kube = k,
                         .method = "PATCH",
                         .content_type = "application/apply-patch+yaml",
                         .body = apply->body};
    struct hfd_buf path;

    hfd_buf_init(&path, PATH_MAX_BYTES);
    hfd_kube_path(&path, &apply->object);
    hfd_buf_lit(&path, "?fieldManager=");
    hfd_url_escape(&path, hfd_slice_of(apply->manager), HFD_URL_PLAIN);
    if (apply->dry_run)
        hfd_buf_lit(&path, "&dryRun=All");
    if (apply->force)
        hfd_buf_lit(&path, "&force=true");
    return call(&t, &path, out, err);
}

hfd_rc hfd_kube_delete(struct hfd_kube *k, const struct hfd_kube_object *object, hfd_slice uid,
                       struct hfd_kube_answer *out, struct hfd_err *err)
{
    struct transfer t = {.kube = k,
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
    struct transfer t = {.kube = k,
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
        hfd_url_escape(&path, hfd_slice_of(list->selector), HFD_URL_PLAIN);
    }
    if (next->len > 0) {
        hfd_buf_lit(&path, "&continue=");
        hfd_url_escape(&path, hfd_buf_slice(next), HFD_URL_PLAIN);
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

/* ---- watches ---- */

#define PAGE_LIMIT 500
#define GRACE_US (30 * HFD_US_PER_S)
#define SOUND_US (10 * HFD_US_PER_S) /* a stream that ends sooner is a failure, however it ends */
/* Lines that tell of nothing: real servers send a bookmark a minute. */
#define IDLE_LINES_MAX 100

struct hfd_kube_watch {
    unsigned magic;
#define WATCH_MAGIC 0x77617463u
    struct hfd_kube *kube;
    struct hfd_kube_watch_config config;
    struct transfer stream;
    struct hfd_buf line;
    int64_t began_us; /* mono: of the stream */
    unsigned era;     /* of the kubeconfig that it was opened with */
    int idle_lines;   /* bookmarks and empty lines of the stream, beyond one a second */
    const char *why;  /* this side ended the stream; static */
    bool listed;      /* version is that of what was read */
    bool expired;     /* begin with a list */
    bool too_old;     /* the stream's version was: 410 */
    bool forgiven;    /* that happened once since the last sound stream */
    char version[64];
};

enum hfd_kube_event hfd_kube_event_of(const json_t *doc, const json_t **object)
{
    static const struct {
        const char *type;
        enum hfd_kube_event event;
    } known[] = {
        {"ADDED", HFD_KUBE_EVENT_CHANGED}, {"MODIFIED", HFD_KUBE_EVENT_CHANGED},
        {"DELETED", HFD_KUBE_EVENT_GONE},  {"BOOKMARK", HFD_KUBE_EVENT_BOOKMARK},
        {"ERROR", HFD_KUBE_EVENT_ERROR},
    };
    const char *type = json_string_value(json_object_get(doc, "type"));
    enum hfd_kube_event event = HFD_KUBE_EVENT_BAD;

    *object = json_object_get(doc, "object");
    for (size_t i = 0; type != NULL && i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(known[i].type, type) == 0)
            event = known[i].event;
    if (*object == NULL)
        return HFD_KUBE_EVENT_BAD;
    if (event == HFD_KUBE_EVENT_ERROR &&
        json_integer_value(json_object_get(*object, "code")) == 410)
        return HFD_KUBE_EVENT_EXPIRED;
    return event;
}

/* ---- the stream ---- */

/* An object without a version leaves the version as it is. */
static void keep_version(struct hfd_kube_watch *w, const json_t *object)
{
    const char *v =
        json_string_value(json_object_get(json_object_get(object, "metadata"), "resourceVersion"));

    if (v != NULL)
        (void)snprintf(w->version, sizeof(w->version), "%s", v);
}

static int64_t age_us(const struct hfd_kube_watch *w)
{
    return hfd_clock_mono_us(w->kube->config.clock) - w->began_us;
}

/* Ends the stream. */
static bool leave(struct hfd_kube_watch *w, const char *why)
{
    w->why = why;
    w->expired = true;
    return false;
}

/* A line without news. A server that sends nothing else is no watch. */
static bool take_idle_line(struct hfd_kube_watch *w)
{
    if (++w->idle_lines <= IDLE_LINES_MAX + age_us(w) / HFD_US_PER_S)
        return true;
    return leave(w, "it sends bookmarks or empty lines without end");
}

/* Returns whether the stream goes on. */
static bool take_event(struct hfd_kube_watch *w, const json_t *doc)
{
    const json_t *object;

    switch (hfd_kube_event_of(doc, &object)) {
    case HFD_KUBE_EVENT_CHANGED:
        w->config.on_changed(w->config.ctx, object, false);
        keep_version(w, object);
        return true;
    case HFD_KUBE_EVENT_GONE:
        w->config.on_changed(w->config.ctx, object, true);
        keep_version(w, object);
        return true;
    case HFD_KUBE_EVENT_BOOKMARK:
        keep_version(w, object);
        return take_idle_line(w);
    case HFD_KUBE_EVENT_EXPIRED:
        w->too_old = true;
        return leave(w, "what it would begin with is too old");
    case HFD_KUBE_EVENT_ERROR:
        return leave(w, "the API server sent an error");
    case HFD_KUBE_EVENT_BAD:
        break;
    }
    return leave(w, "a line is no event");
}

static bool take_line(struct hfd_kube_watch *w)
{
    json_t *doc;
    bool more;

    if (w->line.len == 0)
        return take_idle_line(w);
    if (hfd_json_parse(hfd_buf_slice(&w->line), &doc, NULL) != HFD_OK)
        return leave(w, "a line is no event");
    more = take_event(w, doc);
    json_decref(doc);
    hfd_buf_reset(&w->line);
    return more;
}

static bool on_bytes(void *ctx, hfd_slice bytes)
{
    struct hfd_kube_watch *w = ctx;

    while (bytes.len > 0) {
        const char *end = memchr(bytes.p, '\n', bytes.len);
        const size_t len = end != NULL ? (size_t)(end - bytes.p) : bytes.len;

        hfd_buf_add(&w->line, (hfd_slice){bytes.p, len});
        if (w->line.rc != HFD_OK)
            return leave(w, "a line is too long");
        if (end != NULL && !take_line(w))
            return false;
        if (end == NULL)
            break;
        bytes = (hfd_slice){end + 1, bytes.len - len - 1};
    }
    return true;
}

static hfd_rc open_stream(struct hfd_kube_watch *w, struct hfd_err *err)
{
    struct hfd_buf path;
    hfd_rc rc;

    hfd_buf_init(&path, PATH_MAX_BYTES);
    hfd_kube_path(&path, &w->config.objects);
    hfd_buf_addf(&path, "?watch=1&allowWatchBookmarks=true&timeoutSeconds=%lld&resourceVersion=%s",
                 (long long)w->config.stream_s, w->version);
    if (w->config.selector != NULL)
        hfd_buf_lit(&path, "&labelSelector=");
    hfd_url_escape(&path, hfd_slice_of(w->config.selector), HFD_URL_PLAIN);
    w->era = w->kube->era;
    w->began_us = hfd_clock_mono_us(w->kube->config.clock);
    w->idle_lines = 0;
    w->why = NULL;
    w->too_old = false;
    w->stream = (struct transfer){
        .kube = w->kube,
        .method = "GET",
        .asked = HFD_KUBE_OBJECTS,
        .timeout_us = w->config.stream_s * HFD_US_PER_S + GRACE_US,
        .on_bytes = on_bytes,
        .ctx = w,
    };
    hfd_buf_reset(&w->line);
    rc = hfd_buf_finish(&path, &w->stream.path, err);
    if (rc == HFD_OK)
        rc = transfer_start(&w->stream, err);
    hfd_buf_fini(&path);
    return rc;
}

/*
 * Judges a stream that ended. One that lasted is sound, and the next one begins where it ended. Any
 * other is a failure: servers that end each stream at once would be asked without a pause.
 */
static hfd_rc judge_end(struct hfd_kube_watch *w, struct hfd_err *err)
{
    const struct transfer *t = &w->stream;
    const bool sound = age_us(w) >= SOUND_US;
    const bool forgive = w->too_old && !w->forgiven;

    w->forgiven = !sound && (w->forgiven || w->too_old);
    if (w->why == NULL && t->answer.rc != HFD_OK)
        return transfer_result(t, err);
    if (sound || forgive)
        return HFD_OK;
    if (w->why != NULL)
        return hfd_fail(err, HFD_TIMEOUT, "the watch was ended: %s", w->why);
    return hfd_fail(err, HFD_TIMEOUT, "the API server ended the watch after %lld ms (%d, %s)",
                    (long long)(age_us(w) / 1000), t->answer.status,
                    t->answer.type[0] != '\0' ? t->answer.type : "no content type");
}

/* Ends a stream that is done. A status other than 200 becomes the answer. */
static hfd_rc close_stream(struct hfd_kube_watch *w, struct hfd_kube_answer *answer,
                           struct hfd_err *err)
{
    struct transfer *t = &w->stream;
    hfd_rc rc = HFD_OK;

    w->too_old = w->too_old || t->answer.status == 410;
    if (t->answer.rc == HFD_OK && t->answer.status != 200 &&
        (t->answer.status != 410 || w->forgiven))
        rc = transfer_answer(t, answer, err);
    else
        rc = judge_end(w, err);
    /* An API server that cannot read the version answers 500: a list gives a new one. */
    w->expired = w->expired || w->too_old || t->answer.status != 200;
    transfer_fini(t);
    return rc;
}

/* ---- the list ---- */

static bool on_item(void *ctx, const json_t *item)
{
    struct hfd_kube_watch *w = ctx;

    w->config.on_changed(w->config.ctx, item, false);
    return true;
}

static hfd_rc list(struct hfd_kube_watch *w, struct hfd_kube_answer *answer, struct hfd_err *err)
{
    const struct hfd_kube_list query = {.objects = w->config.objects,
                                        .selector = w->config.selector,
                                        .metadata_only = true,
                                        .page_limit = PAGE_LIMIT,
                                        .on_item = on_item,
                                        .ctx = w};
    hfd_rc rc = hfd_kube_list(w->kube, &query, w->version, answer, err);
    struct hfd_kube_refusal why;

    if (rc != HFD_OK)
        return rc;
    hfd_kube_judge(answer, &why);
    if (why.class != HFD_KUBE_DONE)
        return HFD_OK;
    hfd_kube_answer_fini(answer);
    if (w->version[0] == '\0')
        return hfd_fail(err, HFD_TIMEOUT, "the API server's list has no resource version");
    w->listed = true;
    w->expired = false;
    return HFD_OK;
}

/* ---- its life ---- */

hfd_rc hfd_kube_watch_new(struct hfd_kube *kube, const struct hfd_kube_watch_config *config,
                          struct hfd_kube_watch **out, struct hfd_err *err)
{
    struct hfd_kube_watch *w = calloc(1, sizeof(*w));

    *out = w;
    if (w == NULL)
        return hfd_fail_nomem(err, "watch objects in Kubernetes");
    w->magic = WATCH_MAGIC;
    w->kube = kube;
    w->config = *config;
    w->stream.kube = kube;
    hfd_buf_init(&w->line, kube->config.answer_max_bytes);
    return HFD_OK;
}

void hfd_kube_watch_free(struct hfd_kube_watch *w)
{
    if (w == NULL)
        return;
    HFD_CHECK_OBJ(w, WATCH_MAGIC);
    transfer_fini(&w->stream);
    hfd_buf_fini(&w->line);
    w->magic = 0;
    free(w);
}

bool hfd_kube_watch_is_sound(const struct hfd_kube_watch *w)
{
    return hfd_kube_watch_is_open(w) && age_us(w) >= SOUND_US;
}

bool hfd_kube_watch_is_open(const struct hfd_kube_watch *w)
{
    return w->stream.began && !w->stream.done;
}

hfd_rc hfd_kube_watch_step(struct hfd_kube_watch *w, struct hfd_kube_answer *answer,
                           struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    HFD_CHECK_OBJ(w, WATCH_MAGIC);
    *answer = (struct hfd_kube_answer){0};
    if (w->stream.began && w->era != w->kube->era) { /* perhaps of another server */
        transfer_fini(&w->stream);
        w->expired = true;
    }
    if (hfd_kube_watch_is_open(w))
        return HFD_OK;
    if (w->stream.began)
        rc = close_stream(w, answer, err);
    if (rc != HFD_OK || answer->status != 0)
        return rc;
    if (!w->listed || w->expired)
        rc = list(w, answer, err);
    return rc == HFD_OK && answer->status == 0 ? open_stream(w, err) : rc;
}
