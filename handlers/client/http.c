/* See http.h. */
#include "handlers/client/http.h"

#include "driver/base/base.h"
#include "driver/base/file.h"
#include "driver/base/url.h"

#include <stdlib.h>

#define TOKEN_MAX_BYTES 16384
#define CONNECT_TIMEOUT_US (10 * HFD_US_PER_S)
#define SILENCE_MAX_S 600
#define WAIT_PIECE_US (HFD_US_PER_S / 5)

struct hfd_client_http {
    hfd_slice base; /* without its last slashes */
    struct hfd_http_server server;
    struct hfd_http_client *client;
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
    if (http == NULL)
        return hfd_fail_nomem(err, "open a connection");
    http->base = hfd_slice_of(config->url);
    while (http->base.len > 0 && http->base.p[http->base.len - 1] == '/')
        http->base.len--;
    http->server =
        (struct hfd_http_server){.connect_timeout_us = CONNECT_TIMEOUT_US,
                                 .timeout_us = config->timeout_us,
                                 .silence_s = config->timeout_us == 0 ? SILENCE_MAX_S : 0,
                                 .answer_max_bytes = HFD_CLIENT_ANSWER_MAX_BYTES,
                                 .token = &http->token,
                                 .ca_file = config->ca_file,
                                 .socket_path = config->socket_path,
                                 .pin = config->pin,
                                 .system_ca = true,
                                 .proxy_of_environment = true,
                                 .wants_expiry = config->wants_expiry};
    rc = hfd_url_check(hfd_slice_of(config->url), err);
    if (rc == HFD_OK)
        rc = hfd_http_client_open(&hfd_clock_system, 0, &http->client, err);
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
    hfd_http_client_close(&(*http)->client);
    hfd_secret_fini(&(*http)->token);
    free(*http);
    *http = NULL;
}

static bool begin(struct hfd_client_http *http, const struct hfd_client_request *r,
                  struct hfd_http_call *call)
{
    call->server = &http->server;
    call->method = r->method;
    call->url[0] = http->base;
    call->url[1] = HFD_SLICE("/");
    call->url[2] = hfd_slice_of(r->path);
    call->headers[0] = (struct hfd_http_header){"Accept", HFD_SLICE("application/json")};
    if (r->body.p != NULL)
        call->headers[1] = (struct hfd_http_header){"Content-Type", HFD_SLICE("application/json")};
    call->headers[2] = r->headers[0];
    call->headers[3] = r->headers[1];
    call->headers[4] = r->headers[2];
    call->body = r->body;
    call->take = r->take;
    call->ctx = r->take_ctx;
    return hfd_http_call_start(http->client, call);
}

void hfd_client_send(struct hfd_client_http *http, const struct hfd_client_request *requests,
                     struct hfd_http_answer *answers, size_t count)
{
    struct hfd_http_call *all = calloc(count, sizeof(*all));
    bool under_way = all != NULL;

    for (size_t i = 0; i < count; i++) {
        answers[i] = (struct hfd_http_answer){.why = "out of memory"};
        if (all == NULL)
            continue;
        all[i].answer = &answers[i];
        if (!begin(http, &requests[i], &all[i]))
            answers[i].why = "the request cannot be made";
    }
    while (under_way) {
        under_way = false;
        for (size_t i = 0; i < count; i++)
            under_way = under_way || hfd_http_call_is_open(&all[i]);
        under_way = under_way && (requests->stop == NULL || *requests->stop == 0) &&
                    hfd_http_client_run(http->client, WAIT_PIECE_US);
    }
    for (size_t i = 0; all != NULL && i < count; i++) {
        if (hfd_http_call_is_open(&all[i]) || answers[i].rc != HFD_OK)
            answers[i].status = 0;
        hfd_http_call_end(&all[i]);
    }
    free(all);
}

void hfd_client_wait(struct hfd_client_http *http, int64_t us, const volatile sig_atomic_t *stop)
{
    const int64_t until_us = hfd_clock_mono_us(&hfd_clock_system) + us;
    int64_t left_us = us;

    while (left_us > 0 && *stop == 0) {
        (void)hfd_http_client_run(http->client, left_us < WAIT_PIECE_US ? left_us : WAIT_PIECE_US);
        left_us = until_us - hfd_clock_mono_us(&hfd_clock_system);
    }
}
