/* See http.h. */
#include "driver/backend/remote/http.h"

#include "driver/backend/remote/http_int.h"
#include "driver/base/buf.h"
#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/base/curlx.h"
#include "driver/base/err.h"
#include "driver/base/file.h"
#include "driver/base/log.h"
#include "driver/base/peer.h"
#include "driver/base/secret.h"
#include "driver/base/slice.h"

#include <curl/curl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define REMOTE_API_PATH "/api/hyperfleet/v1"
#define REMOTE_FAILURE_MAX 248

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
    char failure[REMOTE_FAILURE_MAX];
    char type[HFD_PEER_TYPE_MAX];
};

#define TOKEN_MAX_BYTES 16384
#define PEM_MAX_BYTES (4 << 20)

static const struct {
    const char *key; /* the setting, for messages */
    size_t max_bytes;
    bool is_secret;
} kinds[HFD_REMOTE_FILE_COUNT] = {
    [HFD_REMOTE_FILE_TOKEN] = {"remote.token_file", TOKEN_MAX_BYTES, true},
    [HFD_REMOTE_FILE_CA] = {"remote.ca_file", PEM_MAX_BYTES, false},
    [HFD_REMOTE_FILE_CERT] = {"remote.cert_file", PEM_MAX_BYTES, false},
    [HFD_REMOTE_FILE_KEY] = {"remote.key_file", PEM_MAX_BYTES, true},
};

/* ---- bytes ---- */

static hfd_rc check_stat(const struct stat *st, const char *path, size_t max_bytes,
                         struct hfd_err *err)
{
    if (!S_ISREG(st->st_mode))
        return hfd_fail(err, HFD_INVALID, "%.150s: it is not a regular file", path);
    if (st->st_size == 0)
        return hfd_fail(err, HFD_INVALID, "%.150s: it is empty", path);
    if (st->st_size > (off_t)max_bytes)
        return hfd_fail(err, HFD_INVALID, "%.150s: larger than %zu bytes", path, max_bytes);
    return HFD_OK;
}

static hfd_rc read_fd(int fd, struct hfd_remote_file_text *f, size_t max_bytes, struct hfd_err *err)
{
    struct stat st;
    size_t len = 0;
    ssize_t n;
    hfd_rc rc;

    if (fstat(fd, &st) != 0)
        return hfd_fail(err, HFD_IO, "%.150s: %s", f->path, strerror(errno));
    rc = check_stat(&st, f->path, max_bytes, err);
    f->mode = (unsigned)st.st_mode & 07777;
    if (rc == HFD_OK)
        rc = hfd_secret_init(&f->text, (size_t)st.st_size, err);
    if (rc != HFD_OK)
        return rc;
    do {
        n = read(fd, f->text.p + len, f->text.len - len);
        len += n > 0 ? (size_t)n : 0;
    } while ((n > 0 && len < f->text.len) || (n < 0 && errno == EINTR));
    if (n >= 0 && len == f->text.len)
        return HFD_OK;
    return hfd_fail(err, HFD_IO, "%.150s: %s", f->path,
                    n < 0 ? strerror(errno) : "it became shorter while it was read");
}

static hfd_rc read_file(struct hfd_remote_file_text *f, size_t max_bytes, struct hfd_err *err)
{
    int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    hfd_rc rc;

    if (fd < 0)
        return hfd_fail(err, HFD_INVALID, "%.150s: %s", f->path, strerror(errno));
    rc = read_fd(fd, f, max_bytes, err);
    (void)close(fd);
    if (rc != HFD_OK)
        hfd_secret_fini(&f->text);
    return rc;
}

/* ---- meaning ---- */

/* A token is printable ASCII without blanks, which may surround it. Else it could add a header. */
static hfd_rc check_token(struct hfd_secret *text, const char *path, struct hfd_err *err)
{
    while (text->len > 0 && strchr(" \t\r\n", text->p[text->len - 1]) != NULL &&
           text->p[text->len - 1] != '\0')
        text->len--;
    if (text->len == 0)
        return hfd_fail(err, HFD_INVALID, "%.150s: it holds no token", path);
    for (size_t i = 0; i < text->len; i++)
        if (text->p[i] <= ' ' || text->p[i] > '~')
            return hfd_fail(err, HFD_INVALID, "%.150s: expected one token on one line", path);
    return HFD_OK;
}

/* OpenSSL would ask on the terminal. */
static int no_password(char *buf, int size, int rwflag, void *ctx)
{
    (void)buf;
    (void)size;
    (void)rwflag;
    (void)ctx;
    return -1;
}

static X509 *first_certificate(const struct hfd_secret *text)
{
    BIO *bio = BIO_new_mem_buf(text->p, (int)text->len);
    X509 *cert = bio != NULL ? PEM_read_bio_X509(bio, NULL, no_password, NULL) : NULL;

    BIO_free(bio);
    return cert;
}

static hfd_rc check_certificate(const struct hfd_secret *text, const char *path,
                                struct hfd_err *err)
{
    X509 *cert = first_certificate(text);

    X509_free(cert);
    return cert != NULL ? HFD_OK
                        : hfd_fail(err, HFD_INVALID, "%.150s: it holds no PEM certificate", path);
}

static hfd_rc check_pair(const struct hfd_secret *cert_text, const struct hfd_secret *key_text,
                         const char *key_path, struct hfd_err *err)
{
    X509 *cert = first_certificate(cert_text);
    BIO *bio = BIO_new_mem_buf(key_text->p, (int)key_text->len);
    EVP_PKEY *key = bio != NULL ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL) : NULL;
    hfd_rc rc = HFD_OK;

    if (key == NULL)
        rc = hfd_fail(err, HFD_INVALID, "%.150s: it holds no PEM private key without a password",
                      key_path);
    else if (cert == NULL || X509_check_private_key(cert, key) != 1)
        rc = hfd_fail(err, HFD_INVALID,
                      "%.150s: the key does not belong to the certificate in remote.cert_file",
                      key_path);
    BIO_free(bio);
    EVP_PKEY_free(key);
    X509_free(cert);
    return rc;
}

static hfd_rc check_one(struct hfd_remote_files *f, enum hfd_remote_file which, struct hfd_err *err)
{
    const char *path = f->of[which].path;

    switch (which) {
    case HFD_REMOTE_FILE_TOKEN:
        return check_token(&f->of[which].text, path, err);
    case HFD_REMOTE_FILE_CA:
    case HFD_REMOTE_FILE_CERT:
        return check_certificate(&f->of[which].text, path, err);
    case HFD_REMOTE_FILE_KEY:
        return check_pair(&f->of[HFD_REMOTE_FILE_CERT].text, &f->of[which].text, path, err);
    case HFD_REMOTE_FILE_COUNT:
        break;
    }
    return HFD_OK;
}

/* ---- keeping ---- */

static hfd_rc load_one(struct hfd_remote_files *f, int which, struct hfd_err *err)
{
    const hfd_rc rc = read_file(&f->of[which], kinds[which].max_bytes, err);

    return rc == HFD_OK ? check_one(f, (enum hfd_remote_file)which, err) : rc;
}

/* Reads all files. `seen` was filled before: a later change is found the next time. */
static hfd_rc load(struct hfd_remote_files *f, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (int i = 0; i < HFD_REMOTE_FILE_COUNT; i++)
        f->of[i].text = (struct hfd_secret){0};
    for (int i = 0; rc == HFD_OK && i < HFD_REMOTE_FILE_COUNT; i++) {
        struct hfd_err why;

        if (f->of[i].path == NULL)
            continue;
        rc = load_one(f, i, &why);
        if (rc != HFD_OK)
            (void)hfd_fail_field(err, rc, kinds[i].key, "%s: %s", kinds[i].key, why.msg);
    }
    ERR_clear_error();
    return rc;
}

static void stat_all(struct hfd_remote_files *f, bool *changed)
{
    for (int i = 0; i < HFD_REMOTE_FILE_COUNT; i++) {
        struct stat now = {0};

        if (f->of[i].path == NULL)
            continue;
        (void)stat(f->of[i].path, &now); /* all zero when it is gone */
        if (!hfd_file_same(&now, &f->of[i].seen))
            *changed = true;
        f->of[i].seen = now;
    }
}

static void free_texts(struct hfd_remote_files *f)
{
    for (int i = 0; i < HFD_REMOTE_FILE_COUNT; i++)
        hfd_secret_fini(&f->of[i].text);
}

static const char *path_or_none(const char *path)
{
    return path != NULL && path[0] != '\0' ? path : NULL;
}

/*
 * Reads all that have a path. @return HFD_OK, HFD_INVALID, HFD_IO (err->field is the setting),
 * HFD_NOMEM
 */
static hfd_rc remote_files_open(struct hfd_remote_files *f,
                                const struct hfd_remote_http_config *config, struct hfd_err *err)
{
    bool changed;
    hfd_rc rc;

    *f = (struct hfd_remote_files){0};
    f->of[HFD_REMOTE_FILE_TOKEN].path = path_or_none(config->token_file);
    f->of[HFD_REMOTE_FILE_CA].path = path_or_none(config->ca_file);
    f->of[HFD_REMOTE_FILE_CERT].path = path_or_none(config->cert_file);
    f->of[HFD_REMOTE_FILE_KEY].path = path_or_none(config->key_file);
    stat_all(f, &changed);
    rc = load(f, err);
    if (rc != HFD_OK)
        free_texts(f);
    return rc;
}

static void remote_files_close(struct hfd_remote_files *f)
{
    free_texts(f);
}

static void log_open(void *ctx, const char *key, const char *path, unsigned mode)
{
    char text[8];

    (void)ctx;
    (void)snprintf(text, sizeof(text), "%04o", mode);
    HFD_LOG(HFD_LOG_WARN, "a file with a secret is open to every user of this machine: chmod o-rw",
            HFD_LOG_CSTR("setting", key), HFD_LOG_CSTR("path", path), HFD_LOG_CSTR("mode", text));
}

/*
 * Warns of files with a secret that every user may read or write.
 * @param on_open  called for each; NULL = writes to the log
 */
static void remote_files_warn(const struct hfd_remote_files *f, hfd_remote_open_file_fn *on_open,
                              void *ctx)
{
    for (int i = 0; i < HFD_REMOTE_FILE_COUNT; i++)
        if (f->of[i].path != NULL && kinds[i].is_secret &&
            (f->of[i].mode & (S_IROTH | S_IWOTH)) != 0)
            (on_open != NULL ? on_open : log_open)(ctx, kinds[i].key, f->of[i].path, f->of[i].mode);
}

hfd_rc hfd_remote_files_check(const struct hfd_remote_http_config *config,
                              hfd_remote_open_file_fn *on_open, void *ctx, struct hfd_err *err)
{
    struct hfd_remote_files files;
    const hfd_rc rc = remote_files_open(&files, config, err);

    if (rc == HFD_OK && on_open != NULL)
        remote_files_warn(&files, on_open, ctx);
    remote_files_close(&files);
    return rc;
}

/*
 * Reads changed files again. On failure the previous content stays, until a
 * file changes again.
 * @param all      reads all files, changed or not
 * @param changed  whether new content is in use
 * @return HFD_OK, HFD_INVALID, HFD_IO, HFD_NOMEM
 */
static hfd_rc remote_files_refresh(struct hfd_remote_files *f, bool all, bool *changed,
                                   struct hfd_err *err)
{
    struct hfd_remote_files next;
    bool must_read = all;
    hfd_rc rc;

    *changed = false;
    stat_all(f, &must_read);
    if (!must_read)
        return HFD_OK;
    next = *f;
    rc = load(&next, err);
    if (rc != HFD_OK) {
        free_texts(&next);
        return rc;
    }
    free_texts(f);
    *f = next;
    *changed = true;
    remote_files_warn(f, NULL, NULL);
    return HFD_OK;
}

/* Sets up a transfer: URL, headers, TLS, limits. Thread: remote. */

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
    const hfd_slice url[] = {t->http->base, HFD_SLICE(REMOTE_API_PATH), r->path};
    CURLcode code = hfd_curlx_set_url(t->easy, url, sizeof(url) / sizeof(url[0]));

    if (code == CURLE_OK)
        code = hfd_curlx_set_method(t->easy, methods[r->method], r->body);
    /* libcurl sends again if a kept connection breaks. A POST must not be sent twice. */
    if (r->method == HFD_REMOTE_POST)
        HFD_CURLX_SET(code, t->easy, CURLOPT_FRESH_CONNECT, 1L);
    HFD_CURLX_SET(code, t->easy, CURLOPT_HTTPHEADER, t->headers);
    return code;
}

/* Everything but the callbacks. @return false: memory is short */
static bool remote_http_set_up(struct hfd_remote_transfer *t)
{
    CURLcode code = add_headers(t) ? set_limits(t) : CURLE_OUT_OF_MEMORY;

    if (code == CURLE_OK)
        code = set_trust(t);
    if (code == CURLE_OK)
        code = set_request(t);
    return code == CURLE_OK;
}

/*
 * One libcurl multi handle keeps the connections. Each call has an easy handle for its
 * life. Proxies of the environment are not used: only settings say where the driver connects.
 */

#define HEADERS_MAX_BYTES 65536
#define WAIT_MAX_MS 60000
#define TOKEN_HIDDEN_MIN 8

/* ---- callbacks ---- */

static size_t on_header(char *line, size_t size, size_t count, void *ctx)
{
    static const char name[] = "retry-after:";
    struct hfd_remote_transfer *t = ctx;
    const size_t len = size * count;

    HFD_CHECK_OBJ(t, HFD_REMOTE_TRANSFER_MAGIC);
    t->header_bytes += len;
    if (t->header_bytes > HEADERS_MAX_BYTES) {
        t->refused = "its headers are too long";
        return 0;
    }
    if (len > sizeof(name) && hfd_slice_ieq((hfd_slice){line, sizeof(name) - 1}, HFD_SLICE(name)))
        (void)!hfd_peer_retry_after((hfd_slice){line + sizeof(name) - 1, len - (sizeof(name) - 1)},
                                    hfd_clock_wall_us(t->http->config.clock) +
                                        hfd_clock_skew_us(t->http->config.clock),
                                    &t->retry_after_us);
    return len;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *ctx)
{
    struct hfd_remote_transfer *t = ctx;
    const size_t len = size * count;

    HFD_CHECK_OBJ(t, HFD_REMOTE_TRANSFER_MAGIC);
    hfd_buf_add(&t->body, (hfd_slice){bytes, len});
    if (t->body.rc == HFD_OK)
        return len;
    t->refused = t->body.rc == HFD_LIMIT ? "it is longer than remote.answer_max" : "out of memory";
    return 0;
}

static bool set_callbacks(struct hfd_remote_transfer *t)
{
    return curl_easy_setopt(t->easy, CURLOPT_PRIVATE, t) == CURLE_OK &&
           curl_easy_setopt(t->easy, CURLOPT_ERRORBUFFER, t->curl_says) == CURLE_OK &&
           curl_easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, on_header) == CURLE_OK &&
           curl_easy_setopt(t->easy, CURLOPT_HEADERDATA, t) == CURLE_OK &&
           curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
           curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, t) == CURLE_OK;
}

/* ---- a call's life ---- */

static void transfer_free(struct hfd_remote_transfer *t)
{
    if (t == NULL)
        return;
    HFD_CHECK_OBJ(t, HFD_REMOTE_TRANSFER_MAGIC);
    if (t->easy != NULL) {
        (void)curl_multi_remove_handle(t->http->multi, t->easy);
        curl_easy_cleanup(t->easy);
    }
    hfd_curlx_headers_free(&t->headers);
    hfd_buf_fini(&t->body);
    HFD_ASSERT(t->http->calls > 0);
    t->http->calls--;
    t->magic = 0;
    free(t);
}

void hfd_remote_call_fini(struct hfd_remote_call *call)
{
    transfer_free(call->transfer);
    call->transfer = NULL;
    call->answer = (struct hfd_remote_answer){0};
}

static void refresh_files(struct hfd_remote_http *c)
{
    const bool all = atomic_exchange(&c->reload, false) || c->refused_token;
    struct hfd_err err;
    bool changed;

    c->refused_token = false;
    if (remote_files_refresh(&c->files, all, &changed, &err) != HFD_OK)
        HFD_LOG(HFD_LOG_ERROR,
                "remote HyperFleet: cannot use a changed file; keeps the previous "
                "content",
                HFD_LOG_CSTR("error", err.msg));
}

hfd_rc hfd_remote_http_send(struct hfd_remote_http *c, struct hfd_remote_call *call,
                            struct hfd_err *err)
{
    struct hfd_remote_transfer *t = calloc(1, sizeof(*t));

    HFD_CHECK_OBJ(c, HFD_REMOTE_HTTP_MAGIC);
    HFD_ASSERT(call->transfer == NULL);
    if (t == NULL)
        return hfd_fail_nomem(err, "send a request to HyperFleet");
    refresh_files(c);
    t->magic = HFD_REMOTE_TRANSFER_MAGIC;
    t->http = c;
    t->call = call;
    t->started_us = hfd_clock_mono_us(c->config.clock);
    c->calls++;
    hfd_buf_init(&t->body, (size_t)c->config.answer_max_bytes);
    t->easy = curl_easy_init();
    if (t->easy == NULL || !set_callbacks(t) || !remote_http_set_up(t) ||
        curl_multi_add_handle(c->multi, t->easy) != CURLM_OK) {
        transfer_free(t);
        return hfd_fail_nomem(err, "send a request to HyperFleet");
    }
    call->transfer = t;
    call->answer = (struct hfd_remote_answer){0};
    return HFD_OK;
}

static bool is_json_type(const char *type)
{
    hfd_slice t = hfd_slice_of(type);
    const char *end = t.len > 0 ? memchr(t.p, ';', t.len) : NULL;

    if (end != NULL)
        t.len = (size_t)(end - t.p);
    while (t.len > 0 && t.p[t.len - 1] == ' ')
        t.len--;
    return hfd_slice_ieq(t, HFD_SLICE("application/json")) ||
           (t.len > 5 && hfd_slice_ieq((hfd_slice){t.p + t.len - 5, 5}, HFD_SLICE("+json")));
}

/*
 * Returns whether the peer closed the connection after the TLS handshake, without an answer. In TLS
 * 1.3 the handshake ends before the peer judges our certificate, and its alert may be lost.
 */
static bool left_after_handshake(struct hfd_remote_transfer *t)
{
    curl_off_t handshake_us = 0;
    long read = 0;

    (void)curl_easy_getinfo(t->easy, CURLINFO_APPCONNECT_TIME_T, &handshake_us);
    (void)curl_easy_getinfo(t->easy, CURLINFO_HEADER_SIZE, &read);
    return handshake_us > 0 && read == 0;
}

/* Describes the failure, for logs and for the message of a deadline. */
static const char *describe(struct hfd_remote_transfer *t, CURLcode code)
{
    const char *what = hfd_curlx_meaning(code);
    const char *why = t->curl_says[0] != '\0' ? t->curl_says : curl_easy_strerror(code);

    if (what == NULL)
        what = left_after_handshake(t) ? "no whole answer after the TLS handshake; "
                                         "is remote.cert_file what is asked for?"
                                       : "no whole answer";
    if (code == CURLE_FILESIZE_EXCEEDED)
        why = "it is longer than remote.answer_max";
    if (t->refused != NULL) {
        what = "the answer was not read";
        why = t->refused;
    }
    (void)snprintf(t->failure, sizeof(t->failure), "%s: %.160s", what, why);
    return t->failure;
}

/*
 * Blots out our token in a refusal: gateways repeat what they refuse, and its words go into logs
 * and messages. A very short token is left, as it may be part of ordinary words.
 */
static void hide_token(struct hfd_remote_transfer *t)
{
    static const char name[] = "Authorization: Bearer ";
    const struct curl_slist *h = t->headers;
    char *p = t->body.p, *at;
    size_t left = t->body.len, len;

    while (h != NULL && strncmp(h->data, name, sizeof(name) - 1) != 0)
        h = h->next;
    len = h != NULL ? strlen(h->data) - (sizeof(name) - 1) : 0;
    if (len < TOKEN_HIDDEN_MIN || left == 0)
        return;
    while ((at = memmem(p, left, h->data + sizeof(name) - 1, len)) != NULL) {
        memset(at, '*', len);
        left -= (size_t)(at - p) + len;
        p = at + len;
    }
}

static void finish(struct hfd_remote_transfer *t, CURLcode code)
{
    struct hfd_remote_call *call = t->call;
    const char *type = NULL;
    long status = 0;

    call->duration_us = hfd_clock_mono_us(t->http->config.clock) - t->started_us;
    (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(t->easy, CURLINFO_CONTENT_TYPE, &type);
    if (code != CURLE_OK) {
        call->answer = (struct hfd_remote_answer){.failure = describe(t, code)};
    } else {
        if (status >= 300)
            hide_token(t);
        hfd_peer_type(type, t->type);
        call->answer = (struct hfd_remote_answer){
            .arrived = true,
            .status = (int)status,
            .is_json = type != NULL && is_json_type(type),
            .type = t->type,
            .body = hfd_buf_slice(&t->body),
            .retry_after_us = t->retry_after_us,
        };
        t->http->refused_token = t->http->refused_token || status == 401;
    }
    (void)curl_multi_remove_handle(t->http->multi, t->easy);
    curl_easy_cleanup(t->easy); /* `type` is gone with it */
    t->easy = NULL;
    call->done(call);
}

/* ---- running ---- */

/* Carries on with all calls. @return whether any call ended */
static bool go_on(struct hfd_remote_http *c)
{
    bool ended = false;
    CURLMsg *message;
    int left;

    (void)curl_multi_perform(c->multi, &left);
    while ((message = curl_multi_info_read(c->multi, &left)) != NULL) {
        struct hfd_remote_transfer *t = NULL;
        const CURLcode code = message->data.result;

        if (message->msg != CURLMSG_DONE)
            continue;
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &t);
        HFD_CHECK_OBJ(t, HFD_REMOTE_TRANSFER_MAGIC);
        finish(t, code);
        ended = true;
    }
    return ended;
}

void hfd_remote_http_run(struct hfd_remote_http *c, int64_t wait_us)
{
    const int64_t wait_ms = wait_us > 0 ? (wait_us + 999) / 1000 : 0;

    HFD_CHECK_OBJ(c, HFD_REMOTE_HTTP_MAGIC);
    if (go_on(c)) /* the caller has work now */
        return;
    (void)curl_multi_poll(c->multi, NULL, 0, (int)(wait_ms > WAIT_MAX_MS ? WAIT_MAX_MS : wait_ms),
                          NULL);
    (void)go_on(c);
}

void hfd_remote_http_wake(struct hfd_remote_http *c)
{
    (void)curl_multi_wakeup(c->multi);
}

void hfd_remote_http_reload(struct hfd_remote_http *c)
{
    atomic_store(&c->reload, true);
}

/* ---- opening and closing ---- */

/* The setting may be the root of the service, or the URL of its API. */
static hfd_slice base_of(const char *url)
{
    const hfd_slice api = HFD_SLICE(REMOTE_API_PATH);
    hfd_slice base = hfd_slice_of(url);

    while (base.len > 0 && base.p[base.len - 1] == '/')
        base.len--;
    if (base.len > api.len && hfd_slice_eq((hfd_slice){base.p + base.len - api.len, api.len}, api))
        base.len -= api.len;
    while (base.len > 0 && base.p[base.len - 1] == '/')
        base.len--;
    return base;
}

hfd_rc hfd_remote_http_open(const struct hfd_remote_http_config *config,
                            struct hfd_remote_http **out, struct hfd_err *err)
{
    struct hfd_remote_http *c;
    hfd_rc rc;

    *out = NULL;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return hfd_fail(err, HFD_NOMEM, "libcurl does not start");
    c = calloc(1, sizeof(*c));
    if (c == NULL) {
        rc = hfd_fail_nomem(err, "open HTTP to a remote HyperFleet");
        goto out;
    }
    c->magic = HFD_REMOTE_HTTP_MAGIC;
    c->config = *config;
    c->base = base_of(config->url);
    rc = remote_files_open(&c->files, config, err);
    if (rc != HFD_OK)
        goto out;
    remote_files_warn(&c->files, NULL, NULL);
    c->multi = curl_multi_init();
    if (c->multi == NULL ||
        curl_multi_setopt(c->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS,
                          (long)config->connections_max) != CURLM_OK ||
        curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long)config->connections_max) !=
            CURLM_OK ||
        curl_multi_setopt(c->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING) != CURLM_OK) {
        rc = hfd_fail_nomem(err, "open HTTP to a remote HyperFleet");
        goto out;
    }
    *out = c;
    return HFD_OK;
out:
    if (c != NULL) {
        *out = c;
        hfd_remote_http_close(out);
    } else {
        curl_global_cleanup();
    }
    return rc;
}

void hfd_remote_http_close(struct hfd_remote_http **http)
{
    struct hfd_remote_http *c = *http;

    *http = NULL;
    if (c == NULL)
        return;
    HFD_CHECK_OBJ(c, HFD_REMOTE_HTTP_MAGIC);
    HFD_ASSERT(c->calls == 0);
    if (c->multi != NULL)
        (void)curl_multi_cleanup(c->multi);
    remote_files_close(&c->files);
    c->magic = 0;
    free(c);
    curl_global_cleanup();
}
