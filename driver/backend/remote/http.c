/*
 * See http.h. One libcurl multi handle; each call has an easy handle of its own for its life,
 * connections are the multi handle's. Proxies of the environment are left aside: what a driver
 * talks to stands in its settings alone.
 */
#include "driver/backend/remote/http_files.h"

#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/buf.h"

#include <stdatomic.h>

#include <curl/curl.h>

#define API_PATH "/api/hyperfleet/v1"
#define URL_MAX_BYTES 65536
#define HEADERS_MAX_BYTES 65536
#define HEADER_LINE_MAX 32768 /* a token and its name */
#define FAILURE_MAX 248
/* One proxy that says a day must not have a deletion wait for a day. */
#define RETRY_AFTER_MAX_US (INT64_C(600) * HFD_US_PER_S)
#define WAIT_MAX_MS 60000
#define TOKEN_HIDDEN_MIN 8

struct hfd_remote_http {
    unsigned magic;
#define CLIENT_MAGIC 0xc11e27a5u
    struct hfd_remote_http_config config;
    struct hfd_remote_files files;
    CURLM *multi;
    hfd_slice base; /* of config.url, without the API's path and the slash in front of it */
    size_t calls;
    bool suspicious;    /* the remote refused the token: it may be a new one already */
    atomic_bool reload; /* any thread */
};

struct hfd_remote_transfer {
    unsigned magic;
#define TRANSFER_MAGIC 0x7ca25fe2u
    struct hfd_remote_http *http;
    struct hfd_remote_call *call;
    CURL *easy;
    struct curl_slist *headers;
    struct hfd_buf body;
    size_t header_bytes;
    int64_t started_us; /* mono */
    int64_t retry_after_us;
    const char *refused; /* why we stopped reading; static */
    char curl_says[CURL_ERROR_SIZE];
    char failure[FAILURE_MAX];
};

/* ---- Retry-After ---- */

hfd_rc hfd_remote_retry_after(hfd_slice value, int64_t now_us, int64_t *out_us)
{
    char text[64];
    int64_t seconds;
    time_t at;

    *out_us = 0;
    while (value.len > 0 && (value.p[0] == ' ' || value.p[0] == '\t'))
        value = (hfd_slice){value.p + 1, value.len - 1};
    while (value.len > 0 && strchr(" \t\r\n", value.p[value.len - 1]) != NULL)
        value.len--;
    if (value.len == 0 || value.len >= sizeof(text) || memchr(value.p, '\0', value.len) != NULL)
        return HFD_INVALID;
    memcpy(text, value.p, value.len);
    text[value.len] = '\0';
    if (strspn(text, "0123456789") == value.len) {
        if (hfd_parse_i64(value, 0, INT64_MAX / HFD_US_PER_S, &seconds, NULL) != HFD_OK)
            seconds = RETRY_AFTER_MAX_US / HFD_US_PER_S; /* more than fits: very long */
        *out_us = seconds * HFD_US_PER_S;
    } else {
        at = curl_getdate(text, NULL);
        if (at == -1 || strchr(text, ':') == NULL)
            return HFD_INVALID;
        *out_us = (int64_t)at * HFD_US_PER_S - now_us;
    }
    if (*out_us < 0)
        *out_us = 0;
    if (*out_us > RETRY_AFTER_MAX_US)
        *out_us = RETRY_AFTER_MAX_US;
    return HFD_OK;
}

/* ---- what comes in ---- */

static size_t on_header(char *line, size_t size, size_t count, void *ctx)
{
    static const char name[] = "retry-after:";
    struct hfd_remote_transfer *t = ctx;
    const size_t len = size * count;

    HFD_CHECK_OBJ(t, TRANSFER_MAGIC);
    t->header_bytes += len;
    if (t->header_bytes > HEADERS_MAX_BYTES) {
        t->refused = "its headers are too long";
        return 0;
    }
    if (len > sizeof(name) && hfd_slice_ieq((hfd_slice){line, sizeof(name) - 1}, HFD_SLICE(name)))
        (void)!hfd_remote_retry_after(
            (hfd_slice){line + sizeof(name) - 1, len - (sizeof(name) - 1)},
            hfd_clock_wall_us(t->http->config.clock) + hfd_clock_skew_us(t->http->config.clock),
            &t->retry_after_us);
    return len;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *ctx)
{
    struct hfd_remote_transfer *t = ctx;
    const size_t len = size * count;

    HFD_CHECK_OBJ(t, TRANSFER_MAGIC);
    hfd_buf_add(&t->body, (hfd_slice){bytes, len});
    if (t->body.rc == HFD_OK)
        return len;
    t->refused = t->body.rc == HFD_LIMIT ? "it is longer than remote.answer_max" : "out of memory";
    return 0;
}

/* ---- what goes out ---- */

static bool is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static bool add_line(struct hfd_remote_transfer *t, const char *line)
{
    struct curl_slist *list = curl_slist_append(t->headers, line);

    if (list != NULL)
        t->headers = list;
    return list != NULL;
}

static bool add_header(struct hfd_remote_transfer *t, const char *name, hfd_slice value)
{
    char line[HEADER_LINE_MAX];
    int n = snprintf(line, sizeof(line), "%s%.*s", name, HFD_SLICE_FMT(value));
    bool ok = n > 0 && (size_t)n < sizeof(line) && add_line(t, line);

    explicit_bzero(line, n > 0 && (size_t)n < sizeof(line) ? (size_t)n : sizeof(line));
    return ok;
}

static bool add_headers(struct hfd_remote_transfer *t)
{
    const struct hfd_remote_http_config *config = &t->http->config;
    const struct hfd_secret *token = &t->http->files.of[HFD_REMOTE_FILE_TOKEN].text;
    char name[128];

    if (!add_line(t, "Accept: application/json, application/problem+json") ||
        !add_line(t, "Expect:"))
        return false;
    if (t->call->request.body.len > 0 && !add_line(t, "Content-Type: application/json"))
        return false;
    if (token->len > 0 &&
        !add_header(t, "Authorization: Bearer ", (hfd_slice){(const char *)token->p, token->len}))
        return false;
    if (!is_set(config->identity_header) || !is_set(config->identity))
        return true;
    (void)snprintf(name, sizeof(name), "%s: ", config->identity_header);
    return add_header(t, name, hfd_slice_of(config->identity));
}

static CURLcode set_url(const struct hfd_remote_transfer *t)
{
    CURLcode code = CURLE_OUT_OF_MEMORY;
    struct hfd_buf url;

    hfd_buf_init(&url, URL_MAX_BYTES);
    hfd_buf_add(&url, t->http->base);
    hfd_buf_lit(&url, API_PATH);
    hfd_buf_add(&url, t->call->request.path);
    hfd_buf_addc(&url, '\0');
    if (url.rc == HFD_OK)
        code = curl_easy_setopt(t->easy, CURLOPT_URL, url.p);
    hfd_buf_fini(&url);
    return code;
}

/* Sets one option and keeps the first failure: only memory can be short. */
#define SET(option, value)                                                                         \
    do {                                                                                           \
        if (code == CURLE_OK)                                                                      \
            code = curl_easy_setopt(t->easy, (option), (value));                                   \
    } while (0)

static CURLcode set_blob(struct hfd_remote_transfer *t, CURLoption option,
                         enum hfd_remote_file which)
{
    const struct hfd_secret *text = &t->http->files.of[which].text;
    struct curl_blob blob = {.data = text->p, .len = text->len, .flags = CURL_BLOB_COPY};

    return text->len > 0 ? curl_easy_setopt(t->easy, option, &blob) : CURLE_OK;
}

static CURLcode set_tls(struct hfd_remote_transfer *t)
{
    CURLcode code = CURLE_OK;

    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (t->http->files.of[HFD_REMOTE_FILE_CA].text.len > 0) {
        /* The authorities given are the only ones: the system's folder would stay beside them. */
        SET(CURLOPT_CAPATH, NULL);
        SET(CURLOPT_CAINFO, NULL);
    }
    if (code == CURLE_OK)
        code = set_blob(t, CURLOPT_CAINFO_BLOB, HFD_REMOTE_FILE_CA);
    if (code == CURLE_OK)
        code = set_blob(t, CURLOPT_SSLCERT_BLOB, HFD_REMOTE_FILE_CERT);
    if (code == CURLE_OK)
        code = set_blob(t, CURLOPT_SSLKEY_BLOB, HFD_REMOTE_FILE_KEY);
    return code;
}

static CURLcode set_limits(struct hfd_remote_transfer *t)
{
    const struct hfd_remote_http_config *config = &t->http->config;
    const int64_t stall_s = config->timeout_us * 2 / 3 / HFD_US_PER_S;
    CURLcode code = CURLE_OK;

    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_PROXY, "");
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_QUICK_EXIT, 1L); /* a name server that hangs must not hold up the end */
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)(config->connect_timeout_us / 1000));
    SET(CURLOPT_TIMEOUT_MS, (long)(config->timeout_us / 1000));
    SET(CURLOPT_LOW_SPEED_LIMIT, 1L);
    SET(CURLOPT_LOW_SPEED_TIME, stall_s > 0 ? (long)stall_s : 1L);
    SET(CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)config->answer_max_bytes);
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    return code;
}

static CURLcode set_request(struct hfd_remote_transfer *t)
{
    static const char *const methods[] = {[HFD_REMOTE_GET] = NULL,
                                          [HFD_REMOTE_POST] = NULL,
                                          [HFD_REMOTE_PATCH] = "PATCH",
                                          [HFD_REMOTE_DELETE] = "DELETE"};
    const struct hfd_remote_request *r = &t->call->request;
    CURLcode code = set_url(t);

    SET(CURLOPT_PATH_AS_IS, 1L);
    if (r->method == HFD_REMOTE_POST || r->body.len > 0) {
        SET(CURLOPT_POST, 1L);
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.len);
        SET(CURLOPT_POSTFIELDS, r->body.len > 0 ? r->body.p : "");
    }
    if (methods[r->method] != NULL)
        SET(CURLOPT_CUSTOMREQUEST, methods[r->method]);
    /*
     * On a kept connection that breaks, libcurl sends again by itself. What makes something must
     * not be made twice.
     */
    if (r->method == HFD_REMOTE_POST)
        SET(CURLOPT_FRESH_CONNECT, 1L);
    SET(CURLOPT_USERAGENT, "hyperfleet-driver/" HFD_VERSION);
    SET(CURLOPT_HTTPHEADER, t->headers);
    return code;
}

static CURLcode set_up(struct hfd_remote_transfer *t)
{
    CURLcode code = CURLE_OK;

    SET(CURLOPT_PRIVATE, t);
    SET(CURLOPT_ERRORBUFFER, t->curl_says);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, t);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, t);
    if (code == CURLE_OK)
        code = set_limits(t);
    if (code == CURLE_OK)
        code = set_tls(t);
    if (code == CURLE_OK)
        code = set_request(t);
    return code;
}

#undef SET

/* ---- a call's life ---- */

static void transfer_free(struct hfd_remote_transfer *t)
{
    if (t == NULL)
        return;
    HFD_CHECK_OBJ(t, TRANSFER_MAGIC);
    if (t->easy != NULL) {
        (void)curl_multi_remove_handle(t->http->multi, t->easy);
        curl_easy_cleanup(t->easy);
    }
    for (const struct curl_slist *h = t->headers; h != NULL; h = h->next)
        explicit_bzero(h->data, strlen(h->data));
    curl_slist_free_all(t->headers);
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
    const bool all = atomic_exchange(&c->reload, false) || c->suspicious;
    struct hfd_err err;
    bool changed;

    c->suspicious = false;
    if (hfd_remote_files_refresh(&c->files, all, &changed, &err) != HFD_OK)
        HFD_LOG(
            HFD_LOG_ERROR,
            "remote HyperFleet: a changed file cannot be used; what was read before stays in use",
            HFD_LOG_CSTR("error", err.msg));
}

hfd_rc hfd_remote_http_send(struct hfd_remote_http *c, struct hfd_remote_call *call,
                            struct hfd_err *err)
{
    struct hfd_remote_transfer *t = calloc(1, sizeof(*t));

    HFD_CHECK_OBJ(c, CLIENT_MAGIC);
    HFD_ASSERT(call->transfer == NULL);
    if (t == NULL)
        return hfd_fail(err, HFD_NOMEM, "send a request");
    refresh_files(c);
    t->magic = TRANSFER_MAGIC;
    t->http = c;
    t->call = call;
    t->started_us = hfd_clock_mono_us(c->config.clock);
    c->calls++;
    hfd_buf_init(&t->body, (size_t)c->config.answer_max_bytes);
    t->easy = curl_easy_init();
    if (t->easy == NULL || !add_headers(t) || set_up(t) != CURLE_OK ||
        curl_multi_add_handle(c->multi, t->easy) != CURLM_OK) {
        transfer_free(t);
        return hfd_fail(err, HFD_NOMEM, "send a request");
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
 * Returns whether the peer left after a handshake without a word. In TLS 1.3 the client has
 * finished before its certificate, or that it has none, is judged: its alert and the end of the
 * connection race, so that the alert is not always read.
 */
static bool left_after_handshake(struct hfd_remote_transfer *t)
{
    curl_off_t handshake_us = 0;
    long read = 0;

    (void)curl_easy_getinfo(t->easy, CURLINFO_APPCONNECT_TIME_T, &handshake_us);
    (void)curl_easy_getinfo(t->easy, CURLINFO_HEADER_SIZE, &read);
    return handshake_us > 0 && read == 0;
}

/* What happened, in words: for logs and for the message of a deadline. */
static const char *describe(struct hfd_remote_transfer *t, CURLcode code)
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
        {CURLE_SSL_CACERT_BADFILE, "TLS failed"},
        {CURLE_SSL_ISSUER_ERROR, "TLS failed"},
        {CURLE_WEIRD_SERVER_REPLY, "it does not speak HTTP/1.1"},
        {CURLE_UNSUPPORTED_PROTOCOL, "it does not speak HTTP/1.1"},
        {CURLE_FILESIZE_EXCEEDED, "the answer was not read"},
    };
    const char *what = NULL;
    const char *why = t->curl_says[0] != '\0' ? t->curl_says : curl_easy_strerror(code);

    for (size_t i = 0; what == NULL && i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i].code == code)
            what = known[i].what;
    if (what == NULL)
        what =
            left_after_handshake(t)
                ? "no whole answer after the TLS handshake; is remote.cert_file what is asked for?"
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
 * Gateways tell back what they refuse. What a refusal says goes into logs and messages, where our
 * token is not to be; one so short that it is part of ordinary words is none.
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
        t->http->suspicious = t->http->suspicious || status == 401;
    }
    (void)curl_multi_remove_handle(t->http->multi, t->easy);
    curl_easy_cleanup(t->easy); /* `type` is gone with it */
    t->easy = NULL;
    call->done(call);
}

/* ---- running ---- */

/* Lets all go on as far as they can. @return whether any call ended */
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
        HFD_CHECK_OBJ(t, TRANSFER_MAGIC);
        finish(t, code);
        ended = true;
    }
    return ended;
}

void hfd_remote_http_run(struct hfd_remote_http *c, int64_t wait_us)
{
    const int64_t wait_ms = wait_us > 0 ? (wait_us + 999) / 1000 : 0;

    HFD_CHECK_OBJ(c, CLIENT_MAGIC);
    if (go_on(c)) /* what ended has made work */
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

/* People paste either: the root of the service, or the API's own URL. */
static hfd_slice base_of(const char *url)
{
    const hfd_slice api = HFD_SLICE(API_PATH);
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
        rc = hfd_fail(err, HFD_NOMEM, "HTTP to a remote HyperFleet");
        goto out;
    }
    c->magic = CLIENT_MAGIC;
    c->config = *config;
    c->base = base_of(config->url);
    rc = hfd_remote_files_open(&c->files, config, err);
    if (rc != HFD_OK)
        goto out;
    hfd_remote_files_tell(&c->files, NULL, NULL);
    c->multi = curl_multi_init();
    if (c->multi == NULL ||
        curl_multi_setopt(c->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS,
                          (long)config->connections_max) != CURLM_OK ||
        curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long)config->connections_max) !=
            CURLM_OK ||
        curl_multi_setopt(c->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING) != CURLM_OK) {
        rc = hfd_fail(err, HFD_NOMEM, "HTTP to a remote HyperFleet");
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
    HFD_CHECK_OBJ(c, CLIENT_MAGIC);
    HFD_ASSERT(c->calls == 0);
    if (c->multi != NULL)
        (void)curl_multi_cleanup(c->multi);
    hfd_remote_files_close(&c->files);
    c->magic = 0;
    free(c);
    curl_global_cleanup();
}
