/* See http.h. */
#include "handlers/client/http.h"

#include "driver/base/base.h"
#include "driver/base/clock.h"
#include "driver/base/curlx.h"
#include "driver/base/file.h"
#include "driver/base/secret.h"
#include "driver/base/url.h"

#include <stdlib.h>

#define TOKEN_MAX_BYTES 16384
#define HEAD_MAX_BYTES ((size_t)256 * 1024)
#define CONNECT_TIMEOUT_US (10 * HFD_US_PER_S)
#define SILENCE_MAX_S 600L
#define US_PER_MS INT64_C(1000)
#define WAIT_PIECE_US (INT64_C(200) * US_PER_MS)

struct hfd_client_http {
    struct hfd_client_config config;
    CURLM *multi;
    struct hfd_secret token; /* len 0 without a token */
};

/* ---- opening ---- */

static hfd_rc read_token(const char *path, struct hfd_secret *out, struct hfd_err *err)
{
    struct hfd_buf b;
    hfd_slice text;
    hfd_rc rc;

    hfd_buf_init(&b, TOKEN_MAX_BYTES);
    rc = hfd_file_read(path, "token file", &b, err);
    text = hfd_slice_trim(hfd_buf_slice(&b));
    while (text.len > 0 && (text.p[text.len - 1] == '\n' || text.p[text.len - 1] == '\r'))
        text.len--;
    if (rc == HFD_OK && (text.len == 0 || memchr(text.p, '\n', text.len) != NULL))
        rc = hfd_fail(err, HFD_INVALID, "token file %s: expected one line with a token", path);
    if (rc == HFD_OK)
        rc = hfd_secret_init(out, text.len, err);
    if (rc == HFD_OK)
        memcpy(out->p, text.p, text.len);
    if (b.p != NULL)
        explicit_bzero(b.p, b.cap);
    hfd_buf_fini(&b);
    return rc;
}

hfd_rc hfd_client_open(const struct hfd_client_config *config, struct hfd_client_http **out,
                       struct hfd_err *err)
{
    struct hfd_client_http *http;
    hfd_rc rc = hfd_base_init(err);

    *out = NULL;
    if (rc != HFD_OK)
        return rc;
    http = calloc(1, sizeof(*http));
    if (http == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(http);
        return hfd_fail_nomem(err, "open a connection");
    }
    http->config = *config;
    http->multi = curl_multi_init();
    rc = hfd_url_check(hfd_slice_of(config->url), err);
    if (rc == HFD_OK && http->multi == NULL)
        rc = hfd_fail_nomem(err, "open a connection");
    if (rc == HFD_OK && config->token_file != NULL)
        rc = read_token(config->token_file, &http->token, err);
    *out = http;
    if (rc != HFD_OK)
        hfd_client_close(out);
    return rc;
}

void hfd_client_close(struct hfd_client_http **http)
{
    if (*http == NULL)
        return;
    (void)curl_multi_cleanup((*http)->multi);
    hfd_secret_fini(&(*http)->token);
    free(*http);
    *http = NULL;
    curl_global_cleanup();
}

/* ---- one request ---- */

/* A request on its way. */
struct transfer {
    CURL *easy;
    struct curl_slist *headers;
    const struct hfd_client_request *request;
    struct hfd_client_answer *answer;
};

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
    const struct transfer *t = arg;
    struct hfd_client_answer *answer = t->answer;
    long status = 0;

    if (t->request->take != NULL &&
        curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK && status == 200)
        return t->request->take(t->request->take_ctx, (hfd_slice){p, size * n}) ? size * n : 0;
    hfd_buf_add(&answer->body, (hfd_slice){p, size * n});
    return answer->body.rc == HFD_OK ? size * n : 0;
}

/* Each status line begins a new head: a 100 may come before the answer. */
static size_t on_head(char *p, size_t size, size_t n, void *arg)
{
    struct hfd_client_answer *answer = arg;

    if (hfd_slice_starts((hfd_slice){p, size * n}, HFD_SLICE("HTTP/")))
        hfd_buf_reset(&answer->head);
    hfd_buf_add(&answer->head, (hfd_slice){p, size * n});
    return answer->head.rc == HFD_OK ? size * n : 0;
}

static bool add_headers(const struct hfd_client_http *http, const struct hfd_client_request *r,
                        struct curl_slist **list)
{
    bool ok = hfd_curlx_line_add(list, "Accept: application/json");

    if (ok && r->body.p != NULL)
        ok = hfd_curlx_line_add(list, "Content-Type: application/json");
    /* Without this libcurl may ask for a 100 before it sends a body. */
    ok = ok && hfd_curlx_line_add(list, "Expect:");
    for (size_t i = 0; ok && i < r->header_count; i++)
        ok = hfd_curlx_header_add(list, r->headers[i].name, r->headers[i].value);
    return ok && hfd_curlx_bearer_add(list, &http->token);
}

/* Sets the URL: the base without its last slashes, and the path behind it. */
static CURLcode set_url(const struct hfd_client_http *http, CURL *easy, const char *path)
{
    hfd_slice pieces[] = {hfd_slice_of(http->config.url), HFD_SLICE("/"), hfd_slice_of(path)};

    while (pieces[0].len > 0 && pieces[0].p[pieces[0].len - 1] == '/')
        pieces[0].len--;
    return hfd_curlx_set_url(easy, pieces, sizeof(pieces) / sizeof(pieces[0]));
}

/* The way to the server, and what it is known by. */
static CURLcode set_server(CURL *easy, const struct hfd_client_config *config)
{
    CURLcode code = CURLE_OK;

    if (config->timeout_us == 0) {
        HFD_CURLX_SET(code, easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
        HFD_CURLX_SET(code, easy, CURLOPT_LOW_SPEED_TIME, SILENCE_MAX_S);
    }
    if (config->ca_file != NULL)
        HFD_CURLX_SET(code, easy, CURLOPT_CAINFO, config->ca_file);
    if (config->socket_path != NULL)
        HFD_CURLX_SET(code, easy, CURLOPT_UNIX_SOCKET_PATH, config->socket_path);
    if (config->pin != NULL) {
        HFD_CURLX_SET(code, easy, CURLOPT_SSL_VERIFYPEER, 0L);
        HFD_CURLX_SET(code, easy, CURLOPT_SSL_VERIFYHOST, 0L);
        HFD_CURLX_SET(code, easy, CURLOPT_PINNEDPUBLICKEY, config->pin);
    }
    if (config->pin != NULL || config->socket_path != NULL)
        HFD_CURLX_SET(code, easy, CURLOPT_PROXY, "");
    if (config->wants_expiry)
        HFD_CURLX_SET(code, easy, CURLOPT_CERTINFO, 1L);
    return code;
}

static bool set_options(const struct hfd_client_http *http, struct transfer *t)
{
    const struct hfd_client_request *r = t->request;
    const struct hfd_curlx_limits limits = {.connect_timeout_us = CONNECT_TIMEOUT_US,
                                            .timeout_us = http->config.timeout_us,
                                            .proxy_of_environment = true};
    CURLcode code = hfd_curlx_set_limits(t->easy, &limits);

    if (code == CURLE_OK)
        code = set_url(http, t->easy, r->path);
    if (code == CURLE_OK)
        code = hfd_curlx_set_method(t->easy, r->method, r->body);
    HFD_CURLX_SET(code, t->easy, CURLOPT_HTTPHEADER, t->headers);
    HFD_CURLX_SET(code, t->easy, CURLOPT_WRITEFUNCTION, on_body);
    HFD_CURLX_SET(code, t->easy, CURLOPT_WRITEDATA, t);
    HFD_CURLX_SET(code, t->easy, CURLOPT_HEADERFUNCTION, on_head);
    HFD_CURLX_SET(code, t->easy, CURLOPT_HEADERDATA, t->answer);
    HFD_CURLX_SET(code, t->easy, CURLOPT_PRIVATE, t->answer);
    if (code == CURLE_OK)
        code = set_server(t->easy, &http->config);
    return code == CURLE_OK;
}

static void say_why(struct hfd_client_answer *answer, const char *why)
{
    (void)snprintf(answer->why, sizeof(answer->why), "%s", why);
}

static void begin(struct hfd_client_http *http, const struct hfd_client_request *r,
                  struct transfer *t)
{
    *t->answer = (struct hfd_client_answer){.status = 0};
    hfd_buf_init(&t->answer->head, HEAD_MAX_BYTES);
    hfd_buf_init(&t->answer->body, HFD_CLIENT_ANSWER_MAX_BYTES);
    t->headers = NULL;
    t->request = r;
    t->easy = curl_easy_init();
    if (t->easy == NULL || !add_headers(http, r, &t->headers) || !set_options(http, t) ||
        curl_multi_add_handle(http->multi, t->easy) != CURLM_OK)
        say_why(t->answer, "the request cannot be made");
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

static void take_results(struct hfd_client_http *http)
{
    struct CURLMsg *msg;
    int left;

    while ((msg = curl_multi_info_read(http->multi, &left)) != NULL) {
        struct hfd_client_answer *answer = NULL;
        long status = 0;

        if (msg->msg != CURLMSG_DONE)
            continue;
        (void)curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &answer);
        (void)curl_easy_getinfo(msg->easy_handle, CURLINFO_RESPONSE_CODE, &status);
        if (msg->data.result == CURLE_OK)
            answer->status = (int)status;
        else
            say_why(answer, curl_easy_strerror(msg->data.result));
        if (http->config.wants_expiry)
            answer->expiry_us = expiry_of(msg->easy_handle);
    }
}

void hfd_client_send(struct hfd_client_http *http, const struct hfd_client_batch *batch)
{
    struct transfer *all = calloc(batch->count, sizeof(*all));
    int running = 0;

    for (size_t i = 0; i < batch->count; i++) {
        if (all == NULL) {
            batch->answers[i] = (struct hfd_client_answer){.status = 0};
            say_why(&batch->answers[i], "out of memory");
            continue;
        }
        all[i].answer = &batch->answers[i];
        begin(http, &batch->requests[i], &all[i]);
    }
    do {
        if (curl_multi_perform(http->multi, &running) != CURLM_OK)
            break;
        if (running > 0)
            (void)curl_multi_poll(http->multi, NULL, 0, 1000, NULL);
    } while (running > 0);
    take_results(http);
    for (size_t i = 0; all != NULL && i < batch->count; i++) {
        if (all[i].easy != NULL)
            (void)curl_multi_remove_handle(http->multi, all[i].easy);
        curl_easy_cleanup(all[i].easy);
        hfd_curlx_headers_free(&all[i].headers);
    }
    free(all);
}

void hfd_client_answer_fini(struct hfd_client_answer *answer)
{
    hfd_buf_fini(&answer->head);
    hfd_buf_fini(&answer->body);
}

hfd_slice hfd_client_header(const struct hfd_client_answer *answer, const char *name)
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

void hfd_client_wait(struct hfd_client_http *http, int64_t us, const volatile sig_atomic_t *stop)
{
    const int64_t until_us = hfd_clock_mono_us(&hfd_clock_system) + us;
    int64_t left_us = us;

    while (left_us > 0 && *stop == 0) {
        (void)curl_multi_poll(
            http->multi, NULL, 0,
            (int)((left_us < WAIT_PIECE_US ? left_us : WAIT_PIECE_US) / US_PER_MS), NULL);
        left_us = until_us - hfd_clock_mono_us(&hfd_clock_system);
        left_us = left_us < US_PER_MS ? 0 : left_us;
    }
}
