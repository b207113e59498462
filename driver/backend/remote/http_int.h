/* The memory of the HTTP client and of a transfer, which http.c and http_setup.c share. */
#ifndef HFD_REMOTE_HTTP_INT_H
#define HFD_REMOTE_HTTP_INT_H

#include <stdatomic.h>

#include <curl/curl.h>

#include "driver/backend/remote/http_files.h"
#include "driver/base/buf.h"

#define HFD_REMOTE_API_PATH "/api/hyperfleet/v1"
#define HFD_REMOTE_FAILURE_MAX 248

struct hfd_remote_http {
    unsigned magic;
#define HFD_REMOTE_HTTP_MAGIC 0xc11e27a5u
    struct hfd_remote_http_config config;
    struct hfd_remote_files files;
    CURLM *multi;
    hfd_slice base; /* config.url without the path of the API, and without its
                       last slash */
    size_t calls;
    bool refused_token; /* the remote answered 401: the file may have a new token
                         */
    atomic_bool reload; /* any thread */
};

struct hfd_remote_transfer {
    unsigned magic;
#define HFD_REMOTE_TRANSFER_MAGIC 0x7ca25fe2u
    struct hfd_remote_http *http;
    struct hfd_remote_call *call;
    CURL *easy;
    struct curl_slist *headers;
    struct hfd_buf body;
    size_t header_bytes;
    int64_t started_us; /* mono */
    int64_t retry_after_us;
    const char *refused; /* why the rest is not read; static */
    char curl_says[CURL_ERROR_SIZE];
    char failure[HFD_REMOTE_FAILURE_MAX];
};

#endif
