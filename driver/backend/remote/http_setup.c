/* See http_setup.h. */
#include "driver/backend/remote/http_setup.h"

#include "driver/base/curlx.h"

static bool is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static bool add_headers(struct hfd_remote_transfer *t)
{
    const struct hfd_remote_http_config *config = &t->http->config;
    struct curl_slist **list = &t->headers;

    if (!hfd_curlx_line_add(list, "Accept: application/json, application/problem+json") ||
        !hfd_curlx_line_add(list, "Expect:"))
        return false;
    if (t->call->request.body.len > 0 &&
        !hfd_curlx_line_add(list, "Content-Type: application/json"))
        return false;
    if (!hfd_curlx_bearer_add(list, &t->http->files.of[HFD_REMOTE_FILE_TOKEN].text))
        return false;
    return !is_set(config->identity_header) || !is_set(config->identity) ||
           hfd_curlx_header_add(list, config->identity_header, hfd_slice_of(config->identity));
}

static CURLcode set_limits(const struct hfd_remote_transfer *t)
{
    const struct hfd_remote_http_config *config = &t->http->config;
    const struct hfd_curlx_limits limits = {.connect_timeout_us = config->connect_timeout_us,
                                            .timeout_us = config->timeout_us};
    const int64_t stall_s = config->timeout_us * 2 / 3 / HFD_US_PER_S;
    CURLcode code = hfd_curlx_set_limits(t->easy, &limits);

    HFD_CURLX_SET(code, t->easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    HFD_CURLX_SET(code, t->easy, CURLOPT_LOW_SPEED_TIME, stall_s > 0 ? (long)stall_s : 1L);
    HFD_CURLX_SET(code, t->easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)config->answer_max_bytes);
    return code;
}

static CURLcode set_trust(const struct hfd_remote_transfer *t)
{
    const struct hfd_remote_file_text *of = t->http->files.of;
    const struct hfd_curlx_trust trust = {&of[HFD_REMOTE_FILE_CA].text,
                                          &of[HFD_REMOTE_FILE_CERT].text,
                                          &of[HFD_REMOTE_FILE_KEY].text};

    return hfd_curlx_set_trust(t->easy, &trust);
}

static CURLcode set_request(const struct hfd_remote_transfer *t)
{
    static const char *const methods[] = {[HFD_REMOTE_GET] = "GET",
                                          [HFD_REMOTE_POST] = "POST",
                                          [HFD_REMOTE_PATCH] = "PATCH",
                                          [HFD_REMOTE_DELETE] = "DELETE"};
    const struct hfd_remote_request *r = &t->call->request;
    const hfd_slice url[] = {t->http->base, HFD_SLICE(HFD_REMOTE_API_PATH), r->path};
    CURLcode code = hfd_curlx_set_url(t->easy, url, sizeof(url) / sizeof(url[0]));

    if (code == CURLE_OK)
        code = hfd_curlx_set_method(t->easy, methods[r->method], r->body);
    /* libcurl sends again if a kept connection breaks. A POST must not be sent twice. */
    if (r->method == HFD_REMOTE_POST)
        HFD_CURLX_SET(code, t->easy, CURLOPT_FRESH_CONNECT, 1L);
    HFD_CURLX_SET(code, t->easy, CURLOPT_HTTPHEADER, t->headers);
    return code;
}

bool hfd_remote_http_set_up(struct hfd_remote_transfer *t)
{
    CURLcode code = add_headers(t) ? set_limits(t) : CURLE_OUT_OF_MEMORY;

    if (code == CURLE_OK)
        code = set_trust(t);
    if (code == CURLE_OK)
        code = set_request(t);
    return code == CURLE_OK;
}
