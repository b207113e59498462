/* See fetch.h. */
#include "handlers/auth/fetch.h"

#include "driver/base/clock.h"
#include "driver/base/curlx.h"

#define CONNECT_TIMEOUT_US (5 * HFD_US_PER_S)
#define TIMEOUT_US (10 * HFD_US_PER_S)

static size_t on_body(char *data, size_t size, size_t count, void *ctx)
{
    struct hfd_buf *b = ctx;

    hfd_buf_add(b, (hfd_slice){data, size * count});
    return b->rc == HFD_OK ? size * count : 0;
}

static CURLcode perform(CURL *curl, const char *url, const char *ca_file, struct hfd_buf *body,
                        long *status)
{
    const struct hfd_curlx_limits limits = {.connect_timeout_us = CONNECT_TIMEOUT_US,
                                            .timeout_us = TIMEOUT_US};
    CURLcode code = hfd_curlx_set_limits(curl, &limits);

    HFD_CURLX_SET(code, curl, CURLOPT_URL, url);
    if (ca_file != NULL) {
        HFD_CURLX_SET(code, curl, CURLOPT_CAINFO, ca_file);
        HFD_CURLX_SET(code, curl, CURLOPT_CAPATH, NULL); /* the directory of the system */
    }
    HFD_CURLX_SET(code, curl, CURLOPT_WRITEFUNCTION, on_body);
    HFD_CURLX_SET(code, curl, CURLOPT_WRITEDATA, body);
    if (code == CURLE_OK)
        code = curl_easy_perform(curl);
    if (code == CURLE_OK)
        code = curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, status);
    return code;
}

hfd_rc hfd_fetch(const char *url, const char *ca_file, struct hfd_buf *body, struct hfd_err *err)
{
    CURL *curl = curl_easy_init();
    long status = 0;
    CURLcode code;

    if (curl == NULL)
        return hfd_fail_nomem(err, "fetch a document");
    code = perform(curl, url, ca_file, body, &status);
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
