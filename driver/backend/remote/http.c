/*
 * See http.h. One libcurl multi handle keeps the connections. Each call has an easy handle for its
 * life. Proxies of the environment are not used: only settings say where the driver connects.
 */
#include "driver/backend/remote/http_int.h"

#include <stdio.h>
#include <stdlib.h>

#include "driver/backend/remote/http_setup.h"
#include "driver/backend/remote/retry_after.h"
#include "driver/base/check.h"
#include "driver/base/curlx.h"
#include "driver/base/log.h"

#define HEADERS_MAX_BYTES 65536
#define WAIT_MAX_MS 60000
#define TOKEN_HIDDEN_MIN 8

/* ---- callbacks ---- */

static size_t on_header(char *line, size_t size, size_t count, void *ctx)
{
    static const char name[] = "retry-after:";
    struct hfd_remote_transfer *t = ctx;
    const size_t len = size * count;

    HFD_CHECK_OBJ(t, HFD_REMOTE_TRANSFER_MAGIC);
    t->header_bytes += len;
    if (t->header_bytes > HEADERS_MAX_BYTES) {
        t->refused = "its headers are too long";
        return 0;
    }
    if (len > sizeof(name) && hfd_slice_ieq((hfd_slice){line, sizeof(name) - 1}, HFD_SLICE(name)))
        (void)!hfd_retry_after_parse((hfd_slice){line + sizeof(name) - 1, len - (sizeof(name) - 1)},
                                     hfd_clock_wall_us(t->http->config.clock) +
                                         hfd_clock_skew_us(t->http->config.clock),
                                     &t->retry_after_us);
    return len;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *ctx)
{
    struct hfd_remote_transfer *t = ctx;
    const size_t len = size * count;

    HFD_CHECK_OBJ(t, HFD_REMOTE_TRANSFER_MAGIC);
    hfd_buf_add(&t->body, (hfd_slice){bytes, len});
    if (t->body.rc == HFD_OK)
        return len;
    t->refused = t->body.rc == HFD_LIMIT ? "it is longer than remote.answer_max" : "out of memory";
    return 0;
}

static bool set_callbacks(struct hfd_remote_transfer *t)
{
    return curl_easy_setopt(t->easy, CURLOPT_PRIVATE, t) == CURLE_OK &&
           curl_easy_setopt(t->easy, CURLOPT_ERRORBUFFER, t->curl_says) == CURLE_OK &&
           curl_easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, on_header) == CURLE_OK &&
           curl_easy_setopt(t->easy, CURLOPT_HEADERDATA, t) == CURLE_OK &&
           curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
           curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, t) == CURLE_OK;
}

/* ---- a call's life ---- */

static void transfer_free(struct hfd_remote_transfer *t)
{
    if (t == NULL)
        return;
    HFD_CHECK_OBJ(t, HFD_REMOTE_TRANSFER_MAGIC);
    if (t->easy != NULL) {
        (void)curl_multi_remove_handle(t->http->multi, t->easy);
        curl_easy_cleanup(t->easy);
    }
    hfd_curlx_headers_free(&t->headers);
    hfd_buf_fini(&t->body);
    HFD_ASSERT(t->http->calls > 0);
    t->http->calls--;
    t->magic = 0;
    free(t);
}

void hfd_remote_call_fini(struct hfd_remote_call *call)
{
    transfer_free(call->transfer);
    call->transfer = NULL;
    call->answer = (struct hfd_remote_answer){0};
}

static void refresh_files(struct hfd_remote_http *c)
{
    const bool all = atomic_exchange(&c->reload, false) || c->refused_token;
    struct hfd_err err;
    bool changed;

    c->refused_token = false;
    if (hfd_remote_files_refresh(&c->files, all, &changed, &err) != HFD_OK)
        HFD_LOG(HFD_LOG_ERROR,
                "remote HyperFleet: cannot use a changed file; keeps the previous "
                "content",
                HFD_LOG_CSTR("error", err.msg));
}

hfd_rc hfd_remote_http_send(struct hfd_remote_http *c, struct hfd_remote_call *call,
                            struct hfd_err *err)
{
    struct hfd_remote_transfer *t = calloc(1, sizeof(*t));

    HFD_CHECK_OBJ(c, HFD_REMOTE_HTTP_MAGIC);
    HFD_ASSERT(call->transfer == NULL);
    if (t == NULL)
        return hfd_fail_nomem(err, "send a request to HyperFleet");
    refresh_files(c);
    t->magic = HFD_REMOTE_TRANSFER_MAGIC;
    t->http = c;
    t->call = call;
    t->started_us = hfd_clock_mono_us(c->config.clock);
    c->calls++;
    hfd_buf_init(&t->body, (size_t)c->config.answer_max_bytes);
    t->easy = curl_easy_init();
    if (t->easy == NULL || !set_callbacks(t) || !hfd_remote_http_set_up(t) ||
        curl_multi_add_handle(c->multi, t->easy) != CURLM_OK) {
        transfer_free(t);
        return hfd_fail_nomem(err, "send a request to HyperFleet");
    }
    call->transfer = t;
    call->answer = (struct hfd_remote_answer){0};
    return HFD_OK;
}

static bool is_json_type(const char *type)
{
    hfd_slice t = hfd_slice_of(type);
    const char *end = t.len > 0 ? memchr(t.p, ';', t.len) : NULL;

    if (end != NULL)
        t.len = (size_t)(end - t.p);
    while (t.len > 0 && t.p[t.len - 1] == ' ')
        t.len--;
    return hfd_slice_ieq(t, HFD_SLICE("application/json")) ||
           (t.len > 5 && hfd_slice_ieq((hfd_slice){t.p + t.len - 5, 5}, HFD_SLICE("+json")));
}

/*
 * Returns whether the peer closed the connection after the TLS handshake, without an answer. In TLS
 * 1.3 the handshake ends before the peer judges our certificate, and its alert may be lost.
 */
static bool left_after_handshake(struct hfd_remote_transfer *t)
{
    curl_off_t handshake_us = 0;
    long read = 0;

    (void)curl_easy_getinfo(t->easy, CURLINFO_APPCONNECT_TIME_T, &handshake_us);
    (void)curl_easy_getinfo(t->easy, CURLINFO_HEADER_SIZE, &read);
    return handshake_us > 0 && read == 0;
}

/* Describes the failure, for logs and for the message of a deadline. */
static const char *describe(struct hfd_remote_transfer *t, CURLcode code)
{
    const char *what = hfd_curlx_meaning(code);
    const char *why = t->curl_says[0] != '\0' ? t->curl_says : curl_easy_strerror(code);

    if (what == NULL)
        what = left_after_handshake(t) ? "no whole answer after the TLS handshake; "
                                         "is remote.cert_file what is asked for?"
                                       : "no whole answer";
    if (code == CURLE_FILESIZE_EXCEEDED)
        why = "it is longer than remote.answer_max";
    if (t->refused != NULL) {
        what = "the answer was not read";
        why = t->refused;
    }
    (void)snprintf(t->failure, sizeof(t->failure), "%s: %.160s", what, why);
    return t->failure;
}

/*
 * Blots out our token in a refusal: gateways repeat what they refuse, and its words go into logs
 * and messages. A very short token is left, as it may be part of ordinary words.
 */
static void hide_token(struct hfd_remote_transfer *t)
{
    static const char name[] = "Authorization: Bearer ";
    const struct curl_slist *h = t->headers;
    char *p = t->body.p, *at;
    size_t left = t->body.len, len;

    while (h != NULL && strncmp(h->data, name, sizeof(name) - 1) != 0)
        h = h->next;
    len = h != NULL ? strlen(h->data) - (sizeof(name) - 1) : 0;
    if (len < TOKEN_HIDDEN_MIN || left == 0)
        return;
    while ((at = memmem(p, left, h->data + sizeof(name) - 1, len)) != NULL) {
        memset(at, '*', len);
        left -= (size_t)(at - p) + len;
        p = at + len;
    }
}

static void finish(struct hfd_remote_transfer *t, CURLcode code)
{
    struct hfd_remote_call *call = t->call;
    const char *type = NULL;
    long status = 0;

    call->duration_us = hfd_clock_mono_us(t->http->config.clock) - t->started_us;
    (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(t->easy, CURLINFO_CONTENT_TYPE, &type);
    if (code != CURLE_OK) {
        call->answer = (struct hfd_remote_answer){.failure = describe(t, code)};
    } else {
        if (status >= 300)
            hide_token(t);
        call->answer = (struct hfd_remote_answer){
            .arrived = true,
            .status = (int)status,
            .is_json = type != NULL && is_json_type(type),
            .body = hfd_buf_slice(&t->body),
            .retry_after_us = t->retry_after_us,
        };
        t->http->refused_token = t->http->refused_token || status == 401;
    }
    (void)curl_multi_remove_handle(t->http->multi, t->easy);
    curl_easy_cleanup(t->easy); /* `type` is gone with it */
    t->easy = NULL;
    call->done(call);
}

/* ---- running ---- */

/* Carries on with all calls. @return whether any call ended */
static bool go_on(struct hfd_remote_http *c)
{
    bool ended = false;
    CURLMsg *message;
    int left;

    (void)curl_multi_perform(c->multi, &left);
    while ((message = curl_multi_info_read(c->multi, &left)) != NULL) {
        struct hfd_remote_transfer *t = NULL;
        const CURLcode code = message->data.result;

        if (message->msg != CURLMSG_DONE)
            continue;
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &t);
        HFD_CHECK_OBJ(t, HFD_REMOTE_TRANSFER_MAGIC);
        finish(t, code);
        ended = true;
    }
    return ended;
}

void hfd_remote_http_run(struct hfd_remote_http *c, int64_t wait_us)
{
    const int64_t wait_ms = wait_us > 0 ? (wait_us + 999) / 1000 : 0;

    HFD_CHECK_OBJ(c, HFD_REMOTE_HTTP_MAGIC);
    if (go_on(c)) /* the caller has work now */
        return;
    (void)curl_multi_poll(c->multi, NULL, 0, (int)(wait_ms > WAIT_MAX_MS ? WAIT_MAX_MS : wait_ms),
                          NULL);
    (void)go_on(c);
}

void hfd_remote_http_wake(struct hfd_remote_http *c)
{
    (void)curl_multi_wakeup(c->multi);
}

void hfd_remote_http_reload(struct hfd_remote_http *c)
{
    atomic_store(&c->reload, true);
}

/* ---- opening and closing ---- */

/* The setting may be the root of the service, or the URL of its API. */
static hfd_slice base_of(const char *url)
{
    const hfd_slice api = HFD_SLICE(HFD_REMOTE_API_PATH);
    hfd_slice base = hfd_slice_of(url);

    while (base.len > 0 && base.p[base.len - 1] == '/')
        base.len--;
    if (base.len > api.len && hfd_slice_eq((hfd_slice){base.p + base.len - api.len, api.len}, api))
        base.len -= api.len;
    while (base.len > 0 && base.p[base.len - 1] == '/')
        base.len--;
    return base;
}

hfd_rc hfd_remote_http_open(const struct hfd_remote_http_config *config,
                            struct hfd_remote_http **out, struct hfd_err *err)
{
    struct hfd_remote_http *c;
    hfd_rc rc;

    *out = NULL;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return hfd_fail(err, HFD_NOMEM, "libcurl does not start");
    c = calloc(1, sizeof(*c));
    if (c == NULL) {
        rc = hfd_fail_nomem(err, "open HTTP to a remote HyperFleet");
        goto out;
    }
    c->magic = HFD_REMOTE_HTTP_MAGIC;
    c->config = *config;
    c->base = base_of(config->url);
    rc = hfd_remote_files_open(&c->files, config, err);
    if (rc != HFD_OK)
        goto out;
    hfd_remote_files_warn(&c->files, NULL, NULL);
    c->multi = curl_multi_init();
    if (c->multi == NULL ||
        curl_multi_setopt(c->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS,
                          (long)config->connections_max) != CURLM_OK ||
        curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long)config->connections_max) !=
            CURLM_OK ||
        curl_multi_setopt(c->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING) != CURLM_OK) {
        rc = hfd_fail_nomem(err, "open HTTP to a remote HyperFleet");
        goto out;
    }
    *out = c;
    return HFD_OK;
out:
    if (c != NULL) {
        *out = c;
        hfd_remote_http_close(out);
    } else {
        curl_global_cleanup();
    }
    return rc;
}

void hfd_remote_http_close(struct hfd_remote_http **http)
{
    struct hfd_remote_http *c = *http;

    *http = NULL;
    if (c == NULL)
        return;
    HFD_CHECK_OBJ(c, HFD_REMOTE_HTTP_MAGIC);
    HFD_ASSERT(c->calls == 0);
    if (c->multi != NULL)
        (void)curl_multi_cleanup(c->multi);
    hfd_remote_files_close(&c->files);
    c->magic = 0;
    free(c);
    curl_global_cleanup();
}
