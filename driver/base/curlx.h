/*
 * The parts of an exchange that all users of libcurl share: header lines, limits, TLS, URL and
 * body. The limits refuse redirects, schemes other than http and https, HTTP other than 1.1, TLS
 * below 1.2 and certificates that do not verify. Callers keep their handles and callbacks.
 * Thread: that of the handle.
 */
#ifndef HFD_BASE_CURLX_H
#define HFD_BASE_CURLX_H

#include <curl/curl.h>

#include "driver/base/secret.h"

/** Sets one option, and keeps the first failure in `code`. */
#define HFD_CURLX_SET(code, easy, option, value)                                                   \
    do {                                                                                           \
        if ((code) == CURLE_OK)                                                                    \
            (code) = curl_easy_setopt((easy), (option), (value));                                  \
    } while (0)

/** Adds a line as it is: "Expect:". @return false: memory is short, and the list is as it was */
bool hfd_curlx_line_add(struct curl_slist **list, const char *line);
/** Adds "name: value", and wipes its own copy. @return as hfd_curlx_line_add; false: too long */
bool hfd_curlx_header_add(struct curl_slist **list, const char *name, hfd_slice value);
/** Adds "Authorization: Bearer TOKEN"; nothing for an empty token. */
bool hfd_curlx_bearer_add(struct curl_slist **list, const struct hfd_secret *token);
/** Wipes and frees the lines. Leaves NULL. */
void hfd_curlx_headers_free(struct curl_slist **list);

struct hfd_curlx_limits {
    int64_t connect_timeout_us, timeout_us; /* of the connection, and of the whole exchange */
    bool proxy_of_environment;              /* for commands of a user; else no proxy is used */
};

/** @return CURLE_OK, or what failed: memory */
CURLcode hfd_curlx_set_limits(CURL *easy, const struct hfd_curlx_limits *limits);

/** PEM texts; empty or NULL = none. With an authority, those of the system do not count. */
struct hfd_curlx_trust {
    const struct hfd_secret *ca, *cert, *key;
};

/** @return CURLE_OK, or what failed: memory */
CURLcode hfd_curlx_set_trust(CURL *easy, const struct hfd_curlx_trust *trust);

/** Sets the URL from pieces that follow each other. */
CURLcode hfd_curlx_set_url(CURL *easy, const hfd_slice *pieces, size_t count);

/** Sets the method, and a body that is borrowed until the end. POST and PUT have one, if empty. */
CURLcode hfd_curlx_set_method(CURL *easy, const char *method, hfd_slice body);

/** Says what a failure of libcurl means: "could not connect". NULL for those without a word. */
const char *hfd_curlx_meaning(CURLcode code);

#endif
