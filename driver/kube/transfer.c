/* See transfer.h. One libcurl multi handle keeps the connections. */
#include "driver/kube/transfer.h"

#include <stdio.h>

#include "driver/base/check.h"

#define HEADERS_MAX_BYTES 65536
#define URL_MAX_BYTES 16384
#define HEADER_LINE_MAX 32768 /* a token and its name */
#define WAIT_MAX_MS 60000
#define RETRY_AFTER_MAX_S 600

/* ---- callbacks ---- */

static void read_retry_after(struct hfd_kube_transfer *t, hfd_slice line)
{
    static const char name[] = "retry-after:";
    hfd_slice value;
    int64_t seconds;

    if (line.len < sizeof(name) ||
        !hfd_slice_ieq((hfd_slice){line.p, sizeof(name) - 1}, HFD_SLICE(name)))
        return;
    value = (hfd_slice){line.p + sizeof(name) - 1, line.len - (sizeof(name) - 1)};
    while (value.len > 0 && strchr("\r\n", value.p[value.len - 1]) != NULL)
        value.len--;
    /* API servers send seconds. */
    if (hfd_parse_i64(hfd_slice_trim(value), 0, INT32_MAX, &seconds, NULL) == HFD_OK)
        t->retry_after_us =
            (seconds < RETRY_AFTER_MAX_S ? seconds : RETRY_AFTER_MAX_S) * HFD_US_PER_S;
}

static size_t on_header(char *line, size_t size, size_t count, void *ctx)
{
    struct hfd_kube_transfer *t = ctx;
    const size_t len = size * count;

    t->header_bytes += len;
    if (t->header_bytes > HEADERS_MAX_BYTES) {
        t->refused = "its headers are too long";
        return 0;
    }
    read_retry_after(t, (hfd_slice){line, len});
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

static bool add_line(struct hfd_kube_transfer *t, const char *line)
{
    struct curl_slist *list = curl_slist_append(t->headers, line);

    if (list != NULL)
        t->headers = list;
    return list != NULL;
}

static bool add_header(struct hfd_kube_transfer *t, const char *name, hfd_slice value)
{
    char line[HEADER_LINE_MAX];
    const int n = snprintf(line, sizeof(line), "%s%.*s", name, HFD_SLICE_FMT(value));
    const bool ok = n > 0 && (size_t)n < sizeof(line) && add_line(t, line);

    explicit_bzero(line, sizeof(line));
    return ok;
}

static bool add_headers(struct hfd_kube_transfer *t)
{
    const struct hfd_secret *token = &t->kube->credentials.of[HFD_KUBE_TOKEN].text;

    if (!add_header(t,
                    "Accept: ", hfd_slice_of(t->accept != NULL ? t->accept : "application/json")) ||
        !add_line(t, "Expect:"))
        return false;
    if (t->body.len > 0 && !add_header(t, "Content-Type: ", hfd_slice_of(t->content_type)))
        return false;
    return token->len == 0 ||
           add_header(t, "Authorization: Bearer ", (hfd_slice){(const char *)token->p, token->len});
}

/* Sets one option, and keeps the first failure, which can only be memory. */
#define SET(option, value)                                                                         \
    do {                                                                                           \
        if (code == CURLE_OK)                                                                      \
            code = curl_easy_setopt(t->easy, (option), (value));                                   \
    } while (0)

static CURLcode set_blob(struct hfd_kube_transfer *t, CURLoption option, enum hfd_kube_secret which)
{
    const struct hfd_secret *text = &t->kube->credentials.of[which].text;
    struct curl_blob blob = {.data = text->p, .len = text->len, .flags = CURL_BLOB_COPY};

    return text->len > 0 ? curl_easy_setopt(t->easy, option, &blob) : CURLE_OK;
}

static CURLcode set_tls(struct hfd_kube_transfer *t)
{
    CURLcode code = CURLE_OK;

    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (t->kube->credentials.of[HFD_KUBE_CA].text.len > 0) {
        /* Only the given authorities count, not those of the system. */
        SET(CURLOPT_CAPATH, NULL);
        SET(CURLOPT_CAINFO, NULL);
    }
    if (code == CURLE_OK)
        code = set_blob(t, CURLOPT_CAINFO_BLOB, HFD_KUBE_CA);
    if (code == CURLE_OK)
        code = set_blob(t, CURLOPT_SSLCERT_BLOB, HFD_KUBE_CERT);
    if (code == CURLE_OK)
        code = set_blob(t, CURLOPT_SSLKEY_BLOB, HFD_KUBE_KEY);
    return code;
}

static CURLcode set_limits(struct hfd_kube_transfer *t)
{
    CURLcode code = CURLE_OK;

    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_PROXY, "");
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_QUICK_EXIT, 1L);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)(t->kube->config.connect_timeout_us / 1000));
    SET(CURLOPT_TIMEOUT_MS, (long)(t->timeout_us / 1000));
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_USERAGENT, "hyperfleet-driver/" HFD_VERSION);
    return code;
}

static CURLcode set_url(struct hfd_kube_transfer *t)
{
    CURLcode code = CURLE_OUT_OF_MEMORY;
    struct hfd_buf url;

    hfd_buf_init(&url, URL_MAX_BYTES);
    hfd_buf_add(&url, t->kube->config.access->server);
    hfd_buf_add(&url, t->path);
    hfd_buf_addc(&url, '\0');
    if (url.rc == HFD_OK)
        code = curl_easy_setopt(t->easy, CURLOPT_URL, url.p);
    hfd_buf_fini(&url);
    return code;
}

static CURLcode set_request(struct hfd_kube_transfer *t)
{
    CURLcode code = set_url(t);

    SET(CURLOPT_PATH_AS_IS, 1L);
    if (t->body.len > 0) {
        SET(CURLOPT_POST, 1L);
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->body.len);
        SET(CURLOPT_POSTFIELDS, t->body.p);
    }
    SET(CURLOPT_CUSTOMREQUEST, t->method);
    SET(CURLOPT_HTTPHEADER, t->headers);
    SET(CURLOPT_PRIVATE, t);
    SET(CURLOPT_ERRORBUFFER, t->curl_says);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, t);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, t);
    return code;
}

static bool set_up(struct hfd_kube_transfer *t)
{
    return add_headers(t) && set_limits(t) == CURLE_OK && set_tls(t) == CURLE_OK &&
           set_request(t) == CURLE_OK;
}

/* ---- its life ---- */

hfd_rc hfd_kube_transfer_start(struct hfd_kube_transfer *t, struct hfd_err *err)
{
    struct hfd_kube *kube = t->kube;

    HFD_CHECK_OBJ(kube, HFD_KUBE_MAGIC);
    HFD_ASSERT(t->easy == NULL);
    if (atomic_load(&kube->stopped))
        return hfd_fail(err, HFD_BUSY, "the client of the Kubernetes API server is stopping");
    hfd_kube_credentials_refresh(&kube->credentials, kube->refused_token);
    kube->refused_token = false;
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
    for (const struct curl_slist *h = t->headers; h != NULL; h = h->next)
        explicit_bzero(h->data, strlen(h->data));
    curl_slist_free_all(t->headers);
    if (t->answer.p != NULL)
        explicit_bzero(t->answer.p, t->answer.len);
    hfd_buf_fini(&t->answer);
    t->easy = NULL;
    t->headers = NULL;
}

/* Says what a failure of libcurl means. */
static const char *meaning(CURLcode code)
{
    static const struct {
        CURLcode code;
        const char *what;
    } known[] = {
        {CURLE_COULDNT_RESOLVE_HOST, "could not connect"},
        {CURLE_COULDNT_CONNECT, "could not connect"},
        {CURLE_OPERATION_TIMEDOUT, "no answer in time"},
        {CURLE_SSL_CONNECT_ERROR, "TLS failed"},
        {CURLE_PEER_FAILED_VERIFICATION, "TLS failed"},
        {CURLE_SSL_CERTPROBLEM, "TLS failed"},
        {CURLE_SSL_CIPHER, "TLS failed"},
        {CURLE_WEIRD_SERVER_REPLY, "it does not speak HTTP/1.1"},
        {CURLE_UNSUPPORTED_PROTOCOL, "it does not speak HTTP/1.1"},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i].code == code)
            return known[i].what;
    return "no whole answer";
}

hfd_rc hfd_kube_transfer_result(const struct hfd_kube_transfer *t, struct hfd_err *err)
{
    const char *server = t->kube->config.access->server.p;

    if (t->refused != NULL)
        return hfd_fail(err, t->answer.rc == HFD_NOMEM ? HFD_NOMEM : HFD_TOO_LARGE,
                        "the API server %.80s: %s", server, t->refused);
    if (t->code == CURLE_OUT_OF_MEMORY)
        return hfd_fail_nomem(err, "call a Kubernetes API server");
    if (t->code == CURLE_OK)
        return HFD_OK;
    return hfd_fail(err, HFD_TIMEOUT, "the API server %.80s does not answer: %s (%s)", server,
                    meaning(t->code),
                    t->curl_says[0] != '\0' ? t->curl_says : curl_easy_strerror(t->code));
}

static void finish(CURLMsg *m)
{
    struct hfd_kube_transfer *t = NULL;
    long status = 0;

    (void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&t);
    (void)curl_easy_getinfo(m->easy_handle, CURLINFO_RESPONSE_CODE, &status);
    t->code = m->data.result;
    t->status = (int)status;
    t->done = true;
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
