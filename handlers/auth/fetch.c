/* See fetch.h. */
#include "handlers/auth/fetch.h"

#include <curl/curl.h>

#define CONNECT_TIMEOUT_S 5L
#define TIMEOUT_S 10L

static size_t on_body(char *data, size_t size, size_t count, void *ctx)
{
    struct hfd_buf *b = ctx;

    hfd_buf_add(b, (hfd_slice){data, size * count});
    return b->rc == HFD_OK ? size * count : 0;
}

/* Sets one option, and keeps the first failure, which can only be memory. */
#define SET(option, value)                                                                         \
    do {                                                                                           \
        if (code == CURLE_OK)                                                                      \
            code = curl_easy_setopt(curl, (option), (value));                                      \
    } while (0)

static CURLcode perform(CURL *curl, const char *url, struct hfd_buf *body, long *status)
{
    CURLcode code = CURLE_OK;

    SET(CURLOPT_URL, url);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_PROXY, "");
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_CONNECTTIMEOUT, CONNECT_TIMEOUT_S);
    SET(CURLOPT_TIMEOUT, TIMEOUT_S);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, body);
    if (code == CURLE_OK)
        code = curl_easy_perform(curl);
    if (code == CURLE_OK)
        code = curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, status);
    return code;
}

hfd_rc hfd_fetch(const char *url, struct hfd_buf *body, struct hfd_err *err)
{
    CURL *curl = curl_easy_init();
    long status = 0;
    CURLcode code;

    if (curl == NULL)
        return hfd_fail_nomem(err, "fetch a document");
    code = perform(curl, url, body, &status);
    curl_easy_cleanup(curl);
    if (body->rc == HFD_LIMIT)
        return hfd_fail(err, HFD_IO, "%.120s: larger than %zu bytes", url, body->max_bytes);
    if (code == CURLE_OUT_OF_MEMORY || body->rc == HFD_NOMEM)
        return hfd_fail_nomem(err, "fetch a document");
    if (code != CURLE_OK)
        return hfd_fail(err, HFD_IO, "%.120s: %s", url, curl_easy_strerror(code));
    if (status != 200)
        return hfd_fail(err, HFD_IO, "%.120s: expected status 200, got %ld", url, status);
    return HFD_OK;
}
