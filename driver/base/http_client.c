/* See http_client.h. A libcurl multi handle keeps the connections; each call has an easy handle. */
#include "driver/base/http_client.h"

#include "driver/base/check.h"
#include "driver/base/trace.h"

#include <curl/curl.h>

#include <stdio.h>
#include <stdlib.h>

#define LINE_MAX_BYTES ((size_t)256 << 10)
#define HEAD_MAX_BYTES ((size_t)256 << 10)
#define URL_MAX_BYTES ((size_t)64 << 10)
#define US_PER_MS 1000
#define WAIT_MAX_MS 60000
#define TOKEN_HIDDEN_MIN 8
#define BEARER "Authorization: Bearer "

struct hfd_http_client {
    CURLM *multi;
    const struct hfd_clock *clock;
    size_t calls; /* under way */
};

/* ---- answers ---- */

void hfd_http_answer_fini(struct hfd_http_answer *a)
{
    if (a->body.p != NULL)
        explicit_bzero(a->body.p, a->body.len);
    hfd_buf_fini(&a->head);
    hfd_buf_fini(&a->body);
}

hfd_slice hfd_http_header(const struct hfd_http_answer *answer, const char *name)
{
    hfd_slice left = hfd_buf_slice(&answer->head);
    const size_t len = strlen(name);

    while (left.len > 0) {
        const char *end = memchr(left.p, '\n', left.len);
        const size_t line = end != NULL ? (size_t)(end - left.p) + 1 : left.len;

        if (line > len && left.p[len] == ':' &&
            hfd_slice_ieq((hfd_slice){left.p, len}, (hfd_slice){name, len})) {
            hfd_slice value = {left.p + len + 1, line - len - 1};

            while (value.len > 0 &&
                   (value.p[value.len - 1] == '\n' || value.p[value.len - 1] == '\r'))
                value.len--;
            return hfd_slice_trim(value);
        }
        left.p += line;
        left.len -= line;
    }
    return HFD_SLICE_NONE;
}

int64_t hfd_http_date_s(const struct hfd_http_answer *answer)
{
    const hfd_slice date = hfd_http_header(answer, "Date");
    char text[64];

    (void)snprintf(text, sizeof(text), "%.*s", HFD_SLICE_FMT(date));
    return text[0] != '\0' ? (int64_t)curl_getdate(text, NULL) : -1;
}

/* Says what a failure means. NULL for those without a word. */
static const char *meaning_of(CURLcode code)
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
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i].code == code)
            return known[i].what;
    return NULL;
}

/* ---- callbacks ---- */

/* Reads no more. @return what ends a callback */
static size_t refuse(struct hfd_http_call *call, hfd_rc rc, const char *why)
{
    call->answer->rc = rc;
    call->answer->refused = why;
    return 0;
}

static size_t refuse_body(struct hfd_http_call *call)
{
    return call->answer->body.rc == HFD_LIMIT
               ? refuse(call, HFD_TOO_LARGE, "its answer is too large")
               : refuse(call, HFD_NOMEM, "out of memory");
}

static bool is_taken(struct hfd_http_call *call)
{
    long status = 0;

    if (call->take == NULL)
        return false;
    (void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    return status == 200;
}

/* Each status line begins a new head: a 100 may come before the answer. */
static size_t on_head(char *line, size_t size, size_t count, void *ctx)
{
    struct hfd_http_call *call = ctx;
    struct hfd_buf *head = &call->answer->head;
    const hfd_slice piece = {line, size * count};

    call->head_bytes += piece.len;
    if (call->head_bytes > head->max_bytes)
        return refuse(call, HFD_TOO_LARGE, "its headers are too long");
    if (hfd_slice_starts(piece, HFD_SLICE("HTTP/")))
        hfd_buf_reset(head);
    hfd_buf_add(head, piece);
    if (head->rc != HFD_OK)
        return refuse(call, HFD_NOMEM, "out of memory");
    if (piece.len <= 2 && is_taken(call) && !call->take(call->ctx, HFD_SLICE_NONE))
        return refuse(call, HFD_TOO_LARGE, "its stream cannot be read");
    return piece.len;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *ctx)
{
    struct hfd_http_call *call = ctx;
    const hfd_slice piece = {bytes, size * count};

    if (is_taken(call))
        return call->take(call->ctx, piece)
                   ? piece.len
                   : refuse(call, HFD_TOO_LARGE, "its stream cannot be read");
    hfd_buf_add(&call->answer->body, piece);
    return call->answer->body.rc == HFD_OK ? piece.len : refuse_body(call);
}

/* ---- setting up ---- */

/* Sets one option, and keeps the first failure in `code`. */
#define SET(option, value)                                                                         \
    do {                                                                                           \
        if (code == CURLE_OK)                                                                      \
            code = curl_easy_setopt(call->easy, CURLOPT_##option, (value));                        \
    } while (0)

/* One piece of memory of the right size: one that grows would leave copies of a secret. */
static bool add_line(struct hfd_http_call *call, const char *name, const char *between,
                     hfd_slice value)
{
    const size_t size = strlen(name) + strlen(between) + value.len + 1;
    char *line = size <= LINE_MAX_BYTES ? malloc(size) : NULL;
    struct curl_slist *longer;

    if (line == NULL)
        return false;
    (void)snprintf(line, size, "%s%s%.*s", name, between, HFD_SLICE_FMT(value));
    longer = curl_slist_append(call->lines, line);
    if (longer != NULL)
        call->lines = longer;
    explicit_bzero(line, size);
    free(line);
    return longer != NULL;
}

static CURLcode set_headers(struct hfd_http_call *call)
{
    const struct hfd_secret *token = call->server->token;
    const char *trace = hfd_trace_now()->text;
    bool ok = add_line(call, "Expect", ":", HFD_SLICE("")); /* no 100 before a body is sent */

    for (size_t i = 0; ok && i < HFD_HTTP_HEADERS_MAX; i++) {
        const struct hfd_http_header *h = &call->headers[i];

        if (h->name != NULL && h->value.len > 0)
            ok = add_line(call, h->name, ": ", h->value);
    }
    if (ok && trace[0] != '\0')
        ok = add_line(call, "traceparent", ": ", hfd_slice_of(trace));
    if (ok && token != NULL && token->len > 0)
        ok = add_line(call, BEARER, "", (hfd_slice){(const char *)token->p, token->len});
    return ok ? curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->lines) : CURLE_OUT_OF_MEMORY;
}

static CURLcode set_request(struct hfd_http_call *call)
{
    const hfd_slice body = call->body;
    CURLcode code = CURLE_OUT_OF_MEMORY;
    struct hfd_buf url;

    hfd_buf_init(&url, URL_MAX_BYTES);
    for (size_t i = 0; i < sizeof(call->url) / sizeof(call->url[0]); i++)
        hfd_buf_add(&url, call->url[i]);
    hfd_buf_addc(&url, '\0');
    if (url.rc == HFD_OK)
        code = curl_easy_setopt(call->easy, CURLOPT_URL, url.p);
    hfd_buf_fini(&url);
    if (body.len > 0 || strcmp(call->method, "POST") == 0 || strcmp(call->method, "PUT") == 0) {
        SET(POST, 1L);
        SET(POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
        SET(POSTFIELDS, body.len > 0 ? body.p : "");
    }
    SET(CUSTOMREQUEST, call->method);
    if (call->is_unsafe)
        SET(FRESH_CONNECT, 1L);
    return code;
}

static CURLcode set_limits(struct hfd_http_call *call)
{
    const struct hfd_http_server *s = call->server;
    CURLcode code = CURLE_OK;

    SET(PROTOCOLS_STR, "http,https");
    SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(FOLLOWLOCATION, 0L);
    if (!s->proxy_of_environment || s->pin != NULL || s->socket_path != NULL)
        SET(PROXY, "");
    SET(NETRC, (long)CURL_NETRC_IGNORED);
    SET(NOSIGNAL, 1L);
    SET(QUICK_EXIT, 1L); /* the end does not wait for a name server that hangs */
    SET(PATH_AS_IS, 1L);
    SET(CONNECTTIMEOUT_MS, (long)(s->connect_timeout_us / US_PER_MS));
    SET(TIMEOUT_MS, (long)(s->timeout_us / US_PER_MS));
    SET(LOW_SPEED_LIMIT, s->silence_s > 0 ? 1L : 0L);
    SET(LOW_SPEED_TIME, (long)s->silence_s);
    SET(FORBID_REUSE, s->closes ? 1L : 0L);
    SET(TCP_KEEPALIVE, 1L);
    SET(USERAGENT, "hyperfleet-driver/" HFD_VERSION);
    SET(UNIX_SOCKET_PATH, s->socket_path);
    if (call->take == NULL)
        SET(MAXFILESIZE_LARGE, (curl_off_t)s->answer_max_bytes);
    return code;
}

static CURLcode set_blob(struct hfd_http_call *call, CURLoption option,
                         const struct hfd_secret *text)
{
    struct curl_blob blob = {.flags = CURL_BLOB_COPY};

    if (text == NULL || text->len == 0)
        return CURLE_OK;
    blob.data = text->p;
    blob.len = text->len;
    return curl_easy_setopt(call->easy, option, &blob);
}

static CURLcode set_trust(struct hfd_http_call *call)
{
    const struct hfd_http_server *s = call->server;
    const bool has_ca = s->ca != NULL && s->ca->len > 0;
    const bool verifies = s->pin == NULL && !s->any_certificate;
    CURLcode code = CURLE_OK;

    SET(SSL_VERIFYPEER, verifies ? 1L : 0L);
    SET(SSL_VERIFYHOST, verifies ? 2L : 0L);
    SET(SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (has_ca || s->ca_file != NULL)
        SET(CAINFO, s->ca_file);
    if (has_ca || (s->ca_file != NULL && !s->system_ca))
        SET(CAPATH, NULL);
    if (code == CURLE_OK)
        code = set_blob(call, CURLOPT_CAINFO_BLOB, s->ca);
    if (code == CURLE_OK)
        code = set_blob(call, CURLOPT_SSLCERT_BLOB, s->cert);
    if (code == CURLE_OK)
        code = set_blob(call, CURLOPT_SSLKEY_BLOB, s->key);
    if (s->pin != NULL)
        SET(PINNEDPUBLICKEY, s->pin);
    if (s->wants_expiry)
        SET(CERTINFO, 1L);
    return code;
}

static CURLcode set_callbacks(struct hfd_http_call *call)
{
    CURLcode code = CURLE_OK;

    SET(PRIVATE, call);
    SET(ERRORBUFFER, call->answer->detail);
    SET(HEADERFUNCTION, on_head);
    SET(HEADERDATA, call);
    SET(WRITEFUNCTION, on_body);
    SET(WRITEDATA, call);
    return code;
}

/* ---- a call's life ---- */

bool hfd_http_call_start(struct hfd_http_client *client, struct hfd_http_call *call)
{
    static CURLcode (*const steps[])(struct hfd_http_call *) = {
        set_headers, set_request, set_limits, set_trust, set_callbacks};
    const struct hfd_http_server *s = call->server;
    CURLcode code = CURLE_OK;

    HFD_ASSERT(call->easy == NULL);
    *call->answer = (struct hfd_http_answer){.why = curl_easy_strerror(CURLE_OUT_OF_MEMORY)};
    hfd_buf_init(&call->answer->head, s->head_max_bytes > 0 ? s->head_max_bytes : HEAD_MAX_BYTES);
    hfd_buf_init(&call->answer->body, s->answer_max_bytes);
    call->head_bytes = 0;
    call->client = client;
    call->easy = curl_easy_init();
    if (call->easy == NULL)
        return false;
    client->calls++;
    for (size_t i = 0; code == CURLE_OK && i < sizeof(steps) / sizeof(steps[0]); i++)
        code = steps[i](call);
    if (code == CURLE_OK && curl_multi_add_handle(client->multi, call->easy) == CURLM_OK)
        return true;
    hfd_http_call_end(call);
    return false;
}

void hfd_http_call_end(struct hfd_http_call *call)
{
    if (call->easy == NULL)
        return;
    (void)curl_multi_remove_handle(call->client->multi, call->easy);
    curl_easy_cleanup(call->easy);
    call->easy = NULL;
    for (const struct curl_slist *h = call->lines; h != NULL; h = h->next)
        explicit_bzero(h->data, strlen(h->data));
    curl_slist_free_all(call->lines);
    call->lines = NULL;
    HFD_ASSERT(call->client->calls > 0);
    call->client->calls--;
}

bool hfd_http_call_is_open(const struct hfd_http_call *call)
{
    return call->easy != NULL;
}

/*
 * Blots out our token in a refusal: gateways repeat what they refuse, and its words go into logs
 * and messages. A very short token is left, as it may be part of ordinary words.
 */
static void hide_token(struct hfd_http_call *call)
{
    const struct curl_slist *h = call->lines;
    char *p = call->answer->body.p, *at;
    size_t left = call->answer->body.len, len;

    while (h != NULL && strncmp(h->data, BEARER, sizeof(BEARER) - 1) != 0)
        h = h->next;
    len = h != NULL ? strlen(h->data) - (sizeof(BEARER) - 1) : 0;
    if (len < TOKEN_HIDDEN_MIN || left == 0)
        return;
    while ((at = memmem(p, left, h->data + sizeof(BEARER) - 1, len)) != NULL) {
        memset(at, '*', len);
        left -= (size_t)(at - p) + len;
        p = at + len;
    }
}

/* Returns when the certificate of the server expires; 0 if that is unknown. */
static int64_t expiry_of(CURL *easy)
{
    static const char lead[] = "Expire date:";
    const struct curl_certinfo *chain = NULL;
    const struct curl_slist *line;
    time_t at;

    if (curl_easy_getinfo(easy, CURLINFO_CERTINFO, &chain) != CURLE_OK || chain == NULL ||
        chain->num_of_certs < 1)
        return 0;
    for (line = chain->certinfo[0]; line != NULL; line = line->next) {
        if (strncmp(line->data, lead, sizeof(lead) - 1) != 0)
            continue;
        at = curl_getdate(line->data + sizeof(lead) - 1, NULL);
        return at > 0 ? (int64_t)at * HFD_US_PER_S : 0;
    }
    return 0;
}

/* In TLS 1.3 the handshake ends before the peer judges our certificate. */
static bool left_after_handshake(CURL *easy)
{
    curl_off_t handshake_us = 0;
    long read = 0;

    (void)curl_easy_getinfo(easy, CURLINFO_APPCONNECT_TIME_T, &handshake_us);
    (void)curl_easy_getinfo(easy, CURLINFO_HEADER_SIZE, &read);
    return handshake_us > 0 && read == 0;
}

static void say_why(struct hfd_http_call *call, CURLcode code)
{
    struct hfd_http_answer *a = call->answer;

    if (code == CURLE_FILESIZE_EXCEEDED) { /* as if all of it had been sent */
        a->body.rc = HFD_LIMIT;
        (void)refuse_body(call);
        code = CURLE_WRITE_ERROR;
    }
    if (a->rc == HFD_OK)
        a->rc = code == CURLE_OUT_OF_MEMORY ? HFD_NOMEM : HFD_TIMEOUT;
    a->why = curl_easy_strerror(code);
    a->meaning = meaning_of(code);
    a->left = left_after_handshake(call->easy);
    if (a->detail[0] == '\0')
        (void)snprintf(a->detail, sizeof(a->detail), "%s", a->why);
}

/*
 * Copies a media type: without parameters and what is not printable.
 * @param type  the header's value, or NULL
 */
static void keep_type(const char *type, char out[HFD_PEER_TYPE_MAX])
{
    size_t len = 0;

    for (; type != NULL && len < HFD_PEER_TYPE_MAX - 1 && type[len] > ' ' && type[len] <= '~' &&
           type[len] != ';';
         len++)
        out[len] = type[len];
    out[len] = '\0';
}

static void finish(const struct hfd_http_client *client, struct hfd_http_call *call, CURLcode code)
{
    struct hfd_http_answer *a = call->answer;
    const hfd_slice later = hfd_http_header(a, "Retry-After");
    const char *type = NULL;
    long status = 0;

    (void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(call->easy, CURLINFO_CONTENT_TYPE, &type);
    a->status = (int)status;
    keep_type(type, a->type);
    if (later.len > 0)
        (void)!hfd_peer_retry_after(
            later, hfd_clock_wall_us(client->clock) + hfd_clock_skew_us(client->clock),
            &a->retry_after_us);
    if (call->server->wants_expiry)
        a->expiry_us = expiry_of(call->easy);
    if (status >= 300)
        hide_token(call);
    if (code != CURLE_OK)
        say_why(call, code);
    hfd_http_call_end(call);
    if (call->done != NULL)
        call->done(call->ctx);
}

/* ---- the client ---- */

hfd_rc hfd_http_client_open(const struct hfd_clock *clock, int64_t connections_max,
                            struct hfd_http_client **out, struct hfd_err *err)
{
    struct hfd_http_client *c = calloc(1, sizeof(*c));

    *out = NULL;
    if (c == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(c);
        return hfd_fail_nomem(err, "open an HTTP client");
    }
    c->clock = clock;
    c->multi = curl_multi_init();
    *out = c;
    if (c->multi != NULL &&
        (connections_max == 0 ||
         (curl_multi_setopt(c->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)connections_max) ==
              CURLM_OK &&
          curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long)connections_max) == CURLM_OK)))
        return HFD_OK;
    hfd_http_client_close(out);
    return hfd_fail_nomem(err, "open an HTTP client");
}

void hfd_http_client_close(struct hfd_http_client **client)
{
    struct hfd_http_client *c = *client;

    *client = NULL;
    if (c == NULL)
        return;
    HFD_ASSERT(c->calls == 0);
    (void)curl_multi_cleanup(c->multi);
    free(c);
    curl_global_cleanup();
}

/* Carries on with all calls. @param ended  whether any did */
static bool go_on(struct hfd_http_client *c, bool *ended)
{
    const CURLMcode code = curl_multi_perform(c->multi, &(int){0});
    const CURLMsg *m;
    int left;

    while ((m = curl_multi_info_read(c->multi, &left)) != NULL) {
        const CURLcode result = m->data.result;
        struct hfd_http_call *call = NULL;

        if (m->msg != CURLMSG_DONE)
            continue;
        (void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&call);
        finish(c, call, result);
        *ended = true;
    }
    return code == CURLM_OK;
}

bool hfd_http_client_run(struct hfd_http_client *c, int64_t wait_us)
{
    const int64_t wait_ms = wait_us > 0 ? (wait_us + 999) / US_PER_MS : 0;
    bool ended = false;
    const bool goes_on = go_on(c, &ended);

    if (ended) /* the caller has work now */
        return goes_on;
    (void)curl_multi_poll(c->multi, NULL, 0, (int)(wait_ms < WAIT_MAX_MS ? wait_ms : WAIT_MAX_MS),
                          NULL);
    return go_on(c, &ended);
}

void hfd_http_client_wake(struct hfd_http_client *c)
{
    (void)curl_multi_wakeup(c->multi);
}
