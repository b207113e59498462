/* See ask.h. */
#include "handlers/cli/ask.h"

#include "driver/base/file.h"
#include "handlers/auth/token.h"

#include <curl/curl.h>
#include <sodium.h>
#include <unistd.h>

#define TIMEOUT_S 10L
#define URL_MAX 512

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

/* Returns the path of a Unix socket; NULL for other addresses. */
static const char *socket_path(const struct hfd_settings *s)
{
    return hfd_slice_starts(s->ops_listen, HFD_SLICE("unix:"))
               ? s->ops_listen.p + sizeof("unix:") - 1
               : NULL;
}

/* A listener on all addresses of the machine is asked at that of loopback. */
static void format_url(const struct hfd_settings *s, const char *path, char url[URL_MAX])
{
    const hfd_slice address = s->ops_listen;
    const char *colon = memrchr(address.p, ':', address.len);
    hfd_slice host = {address.p, colon != NULL ? (size_t)(colon - address.p) : 0};

    if (hfd_slice_starts(address, HFD_SLICE("unix:"))) {
        host = HFD_SLICE("localhost");
        colon = NULL;
    } else if (hfd_slice_is(host, "0.0.0.0"))
        host = HFD_SLICE("127.0.0.1");
    else if (hfd_slice_is(host, "[::]"))
        host = HFD_SLICE("[::1]");
    (void)snprintf(url, URL_MAX, "%s://%.*s%s%s", s->tls_cert_file.len > 0 ? "https" : "http",
                   HFD_SLICE_FMT(host), colon != NULL ? colon : "", path);
}

/*
 * The name in the certificate is that of the network, not of loopback, and its authority may be
 * unknown here. So the key is compared instead.
 */
static bool set_tls(CURL *curl, const struct hfd_settings *s, bool pinned)
{
    char pin[HFD_TLS_PIN_MAX];

    if (s->tls_cert_file.len == 0)
        return true;
    return curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L) == CURLE_OK &&
           (!pinned || (hfd_tls_pin(s, pin, NULL) == HFD_OK &&
                        curl_easy_setopt(curl, CURLOPT_PINNEDPUBLICKEY, pin) == CURLE_OK));
}

struct question {
    const char *path;
    struct curl_slist *headers;
    bool pinned; /* to a server with the key of tls.cert_file only */
};

static bool ask(const struct hfd_settings *s, const struct question *q, struct hfd_buf *body,
                const char **why)
{
    CURL *curl = curl_easy_init();
    CURLcode code = CURLE_OUT_OF_MEMORY;
    char url[URL_MAX];
    long status = 0;

    format_url(s, q->path, url);
    if (curl != NULL && !set_tls(curl, s, q->pinned)) {
        curl_easy_cleanup(curl);
        *why = "the certificate of tls.cert_file cannot be read";
        return false;
    }
    if (curl != NULL && curl_easy_setopt(curl, CURLOPT_URL, url) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, socket_path(s)) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_PROXY, "") == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_TIMEOUT, TIMEOUT_S) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_HTTPHEADER, q->headers) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_WRITEDATA, body) == CURLE_OK)
        code = curl_easy_perform(curl);
    if (code == CURLE_OK)
        code = curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(curl);
    *why = code != CURLE_OK ? curl_easy_strerror(code) : "it did not answer 200";
    return code == CURLE_OK && status == 200;
}

/*
 * The server on this data says where its ops listener is. The setting holds if it does not, or if a
 * flag gives it.
 */
static void find_server(struct hfd_settings *s)
{
    const char *path = hfd_cli_ops_path(s);
    struct hfd_buf text;
    hfd_slice found;

    if (hfd_slice_starts(hfd_settings_origin(s, "ops_listen"), HFD_SLICE("--")))
        return;
    hfd_buf_init(&text, URL_MAX / 2);
    if (path != NULL && hfd_file_read(path, "address of the server", &text, NULL) == HFD_OK &&
        text.len > 0) {
        found = hfd_arena_dup(&s->mem, hfd_buf_slice(&text));
        s->ops_listen = found.p != NULL ? found : s->ops_listen;
    }
    hfd_buf_fini(&text);
}

bool hfd_cli_ask(struct hfd_settings *s, const char *path, struct hfd_buf *body, const char **why)
{
    const struct question q = {.path = path, .headers = login(s), .pinned = true};
    bool answered;

    find_server(s);
    answered = ask(s, &q, body, why);
    curl_slist_free_all(q.headers);
    return answered;
}

bool hfd_cli_ask_openly(const struct hfd_settings *s, const char *path, struct hfd_buf *body,
                        const char **why)
{
    return ask(s, &(struct question){.path = path}, body, why);
}

hfd_rc hfd_cli_find(struct hfd_settings *s, struct hfd_cli_server *out, struct hfd_err *err)
{
    const char *token = hfd_cli_local_token_path(s);
    hfd_rc rc = HFD_OK;

    find_server(s);
    format_url(s, "", out->url);
    out->config = (struct hfd_client_config){
        .url = out->url,
        .socket_path = socket_path(s),
        .token_file = token != NULL && access(token, R_OK) == 0 ? token : NULL};
    if (s->tls_cert_file.len > 0) {
        rc = hfd_tls_pin(s, out->pin, err);
        out->config.pin = out->pin;
    }
    return rc;
}

static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

bool hfd_cli_address_complete(struct hfd_cli_address *a, const struct hfd_cli_args *settings,
                              struct hfd_err *err)
{
    if (settings->argc > 0) {
        if (a->url == NULL && a->ops_url == NULL)
            return true;
        (void)hfd_fail(err, HFD_INVALID, "%s: not with %s", settings->argv[0],
                       a->ops_url != NULL ? "--ops-url" : "--url");
        return false;
    }
    if (a->url == NULL)
        a->url = variable("HFD_URL");
    if (a->ops_url == NULL)
        a->ops_url = variable("HFD_OPS_URL");
    return true;
}
