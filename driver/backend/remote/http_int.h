/* The memory of the HTTP client and of a transfer, which http.c and http.c share. */
#ifndef HFD_REMOTE_HTTP_INT_H
#define HFD_REMOTE_HTTP_INT_H

#include "driver/backend/remote/http.h"
#include "driver/base/buf.h"
#include "driver/base/peer.h"
#include "driver/base/slice.h"

#include <curl/curl.h>

#include <stdatomic.h>

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

#endif
