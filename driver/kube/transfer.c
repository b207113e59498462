/* See transfer.h. One libcurl multi handle keeps the connections. */
#include "driver/kube/transfer.h"

#include "driver/base/check.h"
#include "driver/base/curlx.h"
#include "driver/base/metrics.h"

#define HEADERS_MAX_BYTES 65536
#define WAIT_MAX_MS 60000
#define NO_ROUTE "404 page not found"

/* ---- callbacks ---- */

/* Counts a request by its answer. @param status  0 = no whole answer */
static void count(struct hfd_kube_transfer *t, long status)
{
    static const char *const classes[] = {"1xx", "2xx", "3xx", "4xx", "5xx"};
    const char *class = status == 0 ? "none" : "other";

    if (status >= 100 && status < 600)
        class = classes[status / 100 - 1];
    if (!t->counted)
        hfd_metric_add(HFD_METRIC_KUBE_REQUESTS, HFD_LABELS(t->method, class), 1);
    t->counted = true;
}

static size_t on_header(char *line, size_t size, size_t n, void *ctx)
{
    static const char name[] = "retry-after:";
    struct hfd_kube_transfer *t = ctx;
    const size_t len = size * n;
    long status = 0;

    t->header_bytes += len;
    if (t->header_bytes > HEADERS_MAX_BYTES) {
        t->refused = "its headers are too long";
        return 0;
    }
    if (len > sizeof(name) && hfd_slice_ieq((hfd_slice){line, sizeof(name) - 1}, HFD_SLICE(name)))
        (void)!hfd_peer_retry_after((hfd_slice){line + sizeof(name) - 1, len - (sizeof(name) - 1)},
                                    hfd_clock_wall_us(t->kube->config.clock) +
                                        hfd_clock_skew_us(t->kube->config.clock),
                                    &t->retry_after_us);
    if (t->on_bytes != NULL && len <= 2) { /* a stream is counted when it begins */
        (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
        count(t, status);
    }
    return len;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *ctx)
{
    struct hfd_kube_transfer *t = ctx;
    const hfd_slice piece = {bytes, size * count};
    long status = 0;

    (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    if (t->on_bytes != NULL && status == 200) {
        if (t->on_bytes(t->ctx, piece))
            return piece.len;
        t->refused = "its stream cannot be read";
        return 0;
    }
    hfd_buf_add(&t->answer, piece);
    if (t->answer.rc == HFD_OK)
        return piece.len;
    t->refused = t->answer.rc == HFD_LIMIT ? "its answer is too large" : "out of memory";
    return 0;
}

/* ---- setting up ---- */

static bool add_headers(struct hfd_kube_transfer *t)
{
    struct curl_slist **list = &t->headers;

    return hfd_curlx_header_add(list, "Accept",
                                hfd_slice_of(t->accept != NULL ? t->accept : "application/json")) &&
           hfd_curlx_line_add(list, "Expect:") &&
           (t->body.len == 0 ||
            hfd_curlx_header_add(list, "Content-Type", hfd_slice_of(t->content_type))) &&
           hfd_curlx_bearer_add(list, &t->kube->credentials.of[HFD_KUBE_TOKEN].text);
}

static CURLcode set_options(struct hfd_kube_transfer *t)
{
    const struct hfd_kube_secret_text *of = t->kube->credentials.of;
    const struct hfd_curlx_trust trust = {&of[HFD_KUBE_CA].text, &of[HFD_KUBE_CERT].text,
                                          &of[HFD_KUBE_KEY].text};
    const struct hfd_curlx_limits limits = {
        .connect_timeout_us = t->kube->config.connect_timeout_us, .timeout_us = t->timeout_us};
    const hfd_slice url[] = {t->kube->config.access->server, t->path};
    CURLcode code = hfd_curlx_set_limits(t->easy, &limits);

    if (code == CURLE_OK)
        code = hfd_curlx_set_trust(t->easy, &trust);
    if (code == CURLE_OK)
        code = hfd_curlx_set_url(t->easy, url, sizeof(url) / sizeof(url[0]));
    return code == CURLE_OK ? hfd_curlx_set_method(t->easy, t->method, t->body) : code;
}

static CURLcode set_callbacks(struct hfd_kube_transfer *t)
{
    CURLcode code = CURLE_OK;

    HFD_CURLX_SET(code, t->easy, CURLOPT_HTTPHEADER, t->headers);
    HFD_CURLX_SET(code, t->easy, CURLOPT_PRIVATE, t);
    HFD_CURLX_SET(code, t->easy, CURLOPT_ERRORBUFFER, t->curl_says);
    HFD_CURLX_SET(code, t->easy, CURLOPT_HEADERFUNCTION, on_header);
    HFD_CURLX_SET(code, t->easy, CURLOPT_HEADERDATA, t);
    HFD_CURLX_SET(code, t->easy, CURLOPT_WRITEFUNCTION, on_body);
    HFD_CURLX_SET(code, t->easy, CURLOPT_WRITEDATA, t);
    return code;
}

static bool set_up(struct hfd_kube_transfer *t)
{
    return add_headers(t) && set_options(t) == CURLE_OK && set_callbacks(t) == CURLE_OK;
}

/* ---- its life ---- */

hfd_rc hfd_kube_transfer_start(struct hfd_kube_transfer *t, struct hfd_err *err)
{
    struct hfd_kube *kube = t->kube;

    HFD_CHECK_OBJ(kube, HFD_KUBE_MAGIC);
    HFD_ASSERT(t->easy == NULL);
    if (atomic_load(&kube->stopped))
        return hfd_fail(err, HFD_BUSY, "the client of the Kubernetes API server is stopping");
    hfd_kube_refresh(kube);
    hfd_buf_init(&t->answer, kube->config.answer_max_bytes);
    t->easy = curl_easy_init();
    if (t->easy == NULL)
        return hfd_fail_nomem(err, "call a Kubernetes API server");
    kube->transfers++;
    if (set_up(t) && curl_multi_add_handle(kube->multi, t->easy) == CURLM_OK)
        return HFD_OK;
    hfd_kube_transfer_fini(t);
    return hfd_fail_nomem(err, "call a Kubernetes API server");
}

void hfd_kube_transfer_fini(struct hfd_kube_transfer *t)
{
    if (t->easy != NULL) {
        (void)curl_multi_remove_handle(t->kube->multi, t->easy);
        curl_easy_cleanup(t->easy);
        HFD_ASSERT(t->kube->transfers > 0);
        t->kube->transfers--;
    }
    hfd_curlx_headers_free(&t->headers);
    if (t->answer.p != NULL)
        explicit_bzero(t->answer.p, t->answer.len);
    hfd_buf_fini(&t->answer);
    t->easy = NULL;
}

hfd_rc hfd_kube_transfer_result(const struct hfd_kube_transfer *t, struct hfd_err *err)
{
    const char *server = t->kube->config.access->server.p;
    const char *meaning = hfd_curlx_meaning(t->code);

    if (t->refused != NULL)
        return hfd_fail(err, t->answer.rc == HFD_NOMEM ? HFD_NOMEM : HFD_TOO_LARGE,
                        "the API server %.80s: %s", server, t->refused);
    if (t->code == CURLE_OUT_OF_MEMORY)
        return hfd_fail_nomem(err, "call a Kubernetes API server");
    if (t->code == CURLE_OK)
        return HFD_OK;
    return hfd_fail(err, HFD_TIMEOUT, "the API server %.80s does not answer: %s (%s)", server,
                    meaning != NULL ? meaning : "no whole answer",
                    t->curl_says[0] != '\0' ? t->curl_says : curl_easy_strerror(t->code));
}

hfd_rc hfd_kube_transfer_answer(const struct hfd_kube_transfer *t, struct hfd_kube_answer *out,
                                struct hfd_err *err)
{
    const hfd_slice body = hfd_buf_slice(&t->answer);

    out->status = t->status;
    out->asked = t->asked;
    out->retry_after_us = t->retry_after_us;
    out->empty = body.len == 0;
    out->no_route = hfd_slice_starts(body, HFD_SLICE(NO_ROUTE));
    memcpy(out->type, t->type, sizeof(out->type));
    if (hfd_json_parse(body, &out->doc, NULL) == HFD_NOMEM)
        return hfd_fail_nomem(err, "read an answer");
    return HFD_OK;
}

static void finish(CURLMsg *m)
{
    struct hfd_kube_transfer *t = NULL;
    const char *type = NULL;
    long status = 0;

    (void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&t);
    (void)curl_easy_getinfo(m->easy_handle, CURLINFO_CONTENT_TYPE, &type);
    hfd_peer_type(type, t->type);
    (void)curl_easy_getinfo(m->easy_handle, CURLINFO_RESPONSE_CODE, &status);
    t->code = m->data.result;
    t->status = (int)status;
    t->done = true;
    count(t, t->code == CURLE_OK ? status : 0);
    if (status == 401)
        t->kube->refused_token = true;
}

void hfd_kube_transfers_run(struct hfd_kube *kube, int64_t wait_us)
{
    const int64_t wait_ms = wait_us / 1000;
    bool any = false;
    int running, left;
    CURLMsg *m;

    (void)curl_multi_perform(kube->multi, &running);
    while ((m = curl_multi_info_read(kube->multi, &left)) != NULL) {
        any = true;
        if (m->msg == CURLMSG_DONE)
            finish(m);
    }
    if (any || wait_ms <= 0)
        return;
    (void)curl_multi_poll(kube->multi, NULL, 0,
                          (int)(wait_ms < WAIT_MAX_MS ? wait_ms : WAIT_MAX_MS), NULL);
    (void)curl_multi_perform(kube->multi, &running);
    while ((m = curl_multi_info_read(kube->multi, &left)) != NULL)
        if (m->msg == CURLMSG_DONE)
            finish(m);
}
