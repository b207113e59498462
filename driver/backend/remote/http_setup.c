/* See http_setup.h. */
#include "driver/backend/remote/http_setup.h"

#include <stdio.h>
#include <string.h>

#define URL_MAX_BYTES 65536
#define HEADER_LINE_MAX 32768 /* a token and its name */

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
    hfd_buf_lit(&url, HFD_REMOTE_API_PATH);
    hfd_buf_add(&url, t->call->request.path);
    hfd_buf_addc(&url, '\0');
    if (url.rc == HFD_OK)
        code = curl_easy_setopt(t->easy, CURLOPT_URL, url.p);
    hfd_buf_fini(&url);
    return code;
}

/* Sets one option, and keeps the first failure, which can only be memory. */
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
        /* Only the given authorities count, not those of the system. */
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
    SET(CURLOPT_QUICK_EXIT, 1L); /* the end does not wait for a name server that hangs */
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
    /* libcurl sends again if a kept connection breaks. A POST must not be sent twice. */
    if (r->method == HFD_REMOTE_POST)
        SET(CURLOPT_FRESH_CONNECT, 1L);
    SET(CURLOPT_USERAGENT, "hyperfleet-driver/" HFD_VERSION);
    SET(CURLOPT_HTTPHEADER, t->headers);
    return code;
}

bool hfd_remote_http_set_up(struct hfd_remote_transfer *t)
{
    CURLcode code = add_headers(t) ? set_limits(t) : CURLE_OUT_OF_MEMORY;

    if (code == CURLE_OK)
        code = set_tls(t);
    if (code == CURLE_OK)
        code = set_request(t);
    return code == CURLE_OK;
}
