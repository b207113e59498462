/* See ask.h. */
#include "handlers/cli/ask.h"

#include "driver/base/file.h"
#include "handlers/auth/token.h"

#include <curl/curl.h>
#include <sodium.h>

#define TIMEOUT_S 10L

static size_t on_body(char *data, size_t size, size_t count, void *ctx)
{
    struct hfd_buf *b = ctx;

    hfd_buf_add(b, (hfd_slice){data, size * count});
    return b->rc == HFD_OK ? size * count : 0;
}

/* Returns the header with the token of the running server; NULL if there is none. */
static struct curl_slist *login(struct hfd_settings *s)
{
    const char *path = hfd_cli_local_token_path(s);
    struct curl_slist *headers = NULL;
    struct hfd_buf text;
    char line[128];
    hfd_slice token;

    if (path == NULL)
        return NULL;
    hfd_buf_init(&text, 256);
    if (hfd_file_read(path, "local token", &text, NULL) == HFD_OK &&
        text.len == HFD_TOKEN_CHARS + 1) {
        token = (hfd_slice){text.p, HFD_TOKEN_CHARS};
        (void)snprintf(line, sizeof(line), "Authorization: Bearer %.*s", HFD_SLICE_FMT(token));
        headers = hfd_token_is(token) ? curl_slist_append(NULL, line) : NULL;
        sodium_memzero(line, sizeof(line));
        sodium_memzero(text.p, text.len);
    }
    hfd_buf_fini(&text);
    return headers;
}

bool hfd_cli_ask(struct hfd_settings *s, const char *path, struct hfd_buf *body, const char **why)
{
    CURL *curl = curl_easy_init();
    struct curl_slist *headers = login(s);
    CURLcode code = CURLE_OUT_OF_MEMORY;
    char url[512];
    long status = 0;

    (void)snprintf(url, sizeof(url), "http://%.*s%s", HFD_SLICE_FMT(s->ops_listen), path);
    if (curl != NULL && curl_easy_setopt(curl, CURLOPT_URL, url) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_PROXY, "") == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_TIMEOUT, TIMEOUT_S) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_WRITEDATA, body) == CURLE_OK)
        code = curl_easy_perform(curl);
    if (code == CURLE_OK)
        code = curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(curl);
    curl_slist_free_all(headers);
    *why = code != CURLE_OK ? curl_easy_strerror(code) : "it did not answer 200";
    return code == CURLE_OK && status == 200;
}
