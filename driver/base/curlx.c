/* See curlx.h. */
#include "driver/base/curlx.h"

#include "driver/base/buf.h"

#include <stdio.h>
#include <stdlib.h>

#define LINE_MAX_BYTES ((size_t)256 << 10)
#define URL_MAX_BYTES ((size_t)64 << 10)
#define US_PER_MS 1000

/* ---- header lines ---- */

bool hfd_curlx_line_add(struct curl_slist **list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(*list, line);

    if (longer != NULL)
        *list = longer;
    return longer != NULL;
}

/* One piece of memory of the right size: one that grows would leave copies of a secret. */
static bool add_built(struct curl_slist **list, const char *name, const char *between,
                      hfd_slice value)
{
    const size_t size = strlen(name) + strlen(between) + value.len + 1;
    char *line = size <= LINE_MAX_BYTES ? malloc(size) : NULL;
    bool ok;

    if (line == NULL)
        return false;
    (void)snprintf(line, size, "%s%s%.*s", name, between, HFD_SLICE_FMT(value));
    ok = hfd_curlx_line_add(list, line);
    explicit_bzero(line, size);
    free(line);
    return ok;
}

bool hfd_curlx_header_add(struct curl_slist **list, const char *name, hfd_slice value)
{
    /* A header without a value has a form of its own in libcurl. */
    return add_built(list, name, value.len > 0 ? ": " : ";", value);
}

bool hfd_curlx_bearer_add(struct curl_slist **list, const struct hfd_secret *token)
{
    return token->len == 0 || add_built(list, "Authorization: ", "Bearer ",
                                        (hfd_slice){(const char *)token->p, token->len});
}

void hfd_curlx_headers_free(struct curl_slist **list)
{
    for (const struct curl_slist *h = *list; h != NULL; h = h->next)
        explicit_bzero(h->data, strlen(h->data));
    curl_slist_free_all(*list);
    *list = NULL;
}

/* ---- options ---- */

CURLcode hfd_curlx_set_limits(CURL *easy, const struct hfd_curlx_limits *limits)
{
    CURLcode code = CURLE_OK;

    HFD_CURLX_SET(code, easy, CURLOPT_PROTOCOLS_STR, "http,https");
    HFD_CURLX_SET(code, easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    HFD_CURLX_SET(code, easy, CURLOPT_FOLLOWLOCATION, 0L);
    if (!limits->proxy_of_environment)
        HFD_CURLX_SET(code, easy, CURLOPT_PROXY, "");
    HFD_CURLX_SET(code, easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    HFD_CURLX_SET(code, easy, CURLOPT_NOSIGNAL, 1L);
    /* The end does not wait for a name server that hangs. */
    HFD_CURLX_SET(code, easy, CURLOPT_QUICK_EXIT, 1L);
    HFD_CURLX_SET(code, easy, CURLOPT_PATH_AS_IS, 1L);
    HFD_CURLX_SET(code, easy, CURLOPT_CONNECTTIMEOUT_MS,
                  (long)(limits->connect_timeout_us / US_PER_MS));
    HFD_CURLX_SET(code, easy, CURLOPT_TIMEOUT_MS, (long)(limits->timeout_us / US_PER_MS));
    HFD_CURLX_SET(code, easy, CURLOPT_TCP_KEEPALIVE, 1L);
    HFD_CURLX_SET(code, easy, CURLOPT_USERAGENT, "hyperfleet-driver/" HFD_VERSION);
    HFD_CURLX_SET(code, easy, CURLOPT_SSL_VERIFYPEER, 1L);
    HFD_CURLX_SET(code, easy, CURLOPT_SSL_VERIFYHOST, 2L);
    HFD_CURLX_SET(code, easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    return code;
}

static bool is_given(const struct hfd_secret *text)
{
    return text != NULL && text->len > 0;
}

static CURLcode set_blob(CURL *easy, CURLoption option, const struct hfd_secret *text)
{
    struct curl_blob blob = {.flags = CURL_BLOB_COPY};

    if (!is_given(text))
        return CURLE_OK;
    blob.data = text->p;
    blob.len = text->len;
    return curl_easy_setopt(easy, option, &blob);
}

CURLcode hfd_curlx_set_trust(CURL *easy, const struct hfd_curlx_trust *trust)
{
    CURLcode code = CURLE_OK;

    if (is_given(trust->ca)) {
        HFD_CURLX_SET(code, easy, CURLOPT_CAPATH, NULL);
        HFD_CURLX_SET(code, easy, CURLOPT_CAINFO, NULL);
    }
    if (code == CURLE_OK)
        code = set_blob(easy, CURLOPT_CAINFO_BLOB, trust->ca);
    if (code == CURLE_OK)
        code = set_blob(easy, CURLOPT_SSLCERT_BLOB, trust->cert);
    return code == CURLE_OK ? set_blob(easy, CURLOPT_SSLKEY_BLOB, trust->key) : code;
}

CURLcode hfd_curlx_set_url(CURL *easy, const hfd_slice *pieces, size_t count)
{
    CURLcode code = CURLE_OUT_OF_MEMORY;
    struct hfd_buf url;

    hfd_buf_init(&url, URL_MAX_BYTES);
    for (size_t i = 0; i < count; i++)
        hfd_buf_add(&url, pieces[i]);
    hfd_buf_addc(&url, '\0');
    if (url.rc == HFD_OK)
        code = curl_easy_setopt(easy, CURLOPT_URL, url.p);
    hfd_buf_fini(&url);
    return code;
}

CURLcode hfd_curlx_set_method(CURL *easy, const char *method, hfd_slice body)
{
    CURLcode code = CURLE_OK;

    if (body.len > 0 || strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0) {
        HFD_CURLX_SET(code, easy, CURLOPT_POST, 1L);
        HFD_CURLX_SET(code, easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
        HFD_CURLX_SET(code, easy, CURLOPT_POSTFIELDS, body.len > 0 ? body.p : "");
    }
    HFD_CURLX_SET(code, easy, CURLOPT_CUSTOMREQUEST, method);
    return code;
}

/* ---- failures ---- */

const char *hfd_curlx_meaning(CURLcode code)
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
        {CURLE_FILESIZE_EXCEEDED, "the answer was not read"},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i].code == code)
            return known[i].what;
    return NULL;
}
