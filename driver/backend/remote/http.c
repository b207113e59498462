/* See http.h. */
#include "driver/backend/remote/http.h"

#include "driver/base/check.h"
#include "driver/base/err.h"
#include "driver/base/file.h"
#include "driver/base/log.h"
#include "driver/base/slice.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define REMOTE_API_PATH "/api/hyperfleet/v1"
#define HEADERS_MAX_BYTES 65536

/*
 * Token and certificates of the client, in guarded memory. They are checked as a whole before they
 * are used: a file that is half written does not replace one that works.
 */

enum file {
    FILE_TOKEN,
    FILE_CA,
    FILE_CERT,
    FILE_KEY,
    FILE_COUNT
};

/* The files as they were when all were good. */
struct files {
    struct file_text {
        const char *path;       /* NULL = none */
        struct stat seen;       /* before the last attempt to read it */
        struct hfd_secret text; /* empty without a path */
        unsigned mode;          /* of the file that `text` was read from */
    } of[FILE_COUNT];
};

struct hfd_remote_http {
    unsigned magic;
#define HFD_REMOTE_HTTP_MAGIC 0xc11e27a5u
    struct hfd_remote_http_config config;
    struct files files;
    struct hfd_http_server server;
    struct hfd_http_client *client;
    hfd_slice base;     /* config.url without the path of the API, and without its last slash */
    bool refused_token; /* the remote answered 401: the file may have a new token */
    atomic_bool reload; /* any thread */
};

#define TOKEN_MAX_BYTES 16384
#define PEM_MAX_BYTES (4 << 20)

static const struct {
    const char *key; /* the setting, for messages */
    size_t max_bytes;
    bool is_secret;
} kinds[FILE_COUNT] = {
    [FILE_TOKEN] = {"remote.token_file", TOKEN_MAX_BYTES, true},
    [FILE_CA] = {"remote.ca_file", PEM_MAX_BYTES, false},
    [FILE_CERT] = {"remote.cert_file", PEM_MAX_BYTES, false},
    [FILE_KEY] = {"remote.key_file", PEM_MAX_BYTES, true},
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

static hfd_rc read_fd(int fd, struct file_text *f, size_t max_bytes, struct hfd_err *err)
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

static hfd_rc read_file(struct file_text *f, size_t max_bytes, struct hfd_err *err)
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

static hfd_rc check_one(struct files *f, enum file which, struct hfd_err *err)
{
    const char *path = f->of[which].path;

    switch (which) {
    case FILE_TOKEN:
        return check_token(&f->of[which].text, path, err);
    case FILE_CA:
    case FILE_CERT:
        return check_certificate(&f->of[which].text, path, err);
    case FILE_KEY:
        return check_pair(&f->of[FILE_CERT].text, &f->of[which].text, path, err);
    case FILE_COUNT:
        break;
    }
    return HFD_OK;
}

/* ---- keeping ---- */

static hfd_rc load_one(struct files *f, int which, struct hfd_err *err)
{
    const hfd_rc rc = read_file(&f->of[which], kinds[which].max_bytes, err);

    return rc == HFD_OK ? check_one(f, (enum file)which, err) : rc;
}

/* Reads all files. `seen` was filled before: a later change is found the next time. */
static hfd_rc load(struct files *f, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (int i = 0; i < FILE_COUNT; i++)
        f->of[i].text = (struct hfd_secret){0};
    for (int i = 0; rc == HFD_OK && i < FILE_COUNT; i++) {
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

static void stat_all(struct files *f, bool *changed)
{
    for (int i = 0; i < FILE_COUNT; i++) {
        struct stat now = {0};

        if (f->of[i].path == NULL)
            continue;
        (void)stat(f->of[i].path, &now); /* all zero when it is gone */
        if (!hfd_file_same(&now, &f->of[i].seen))
            *changed = true;
        f->of[i].seen = now;
    }
}

static void free_texts(struct files *f)
{
    for (int i = 0; i < FILE_COUNT; i++)
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
static hfd_rc remote_files_open(struct files *f, const struct hfd_remote_http_config *config,
                                struct hfd_err *err)
{
    bool changed;
    hfd_rc rc;

    *f = (struct files){0};
    f->of[FILE_TOKEN].path = path_or_none(config->token_file);
    f->of[FILE_CA].path = path_or_none(config->ca_file);
    f->of[FILE_CERT].path = path_or_none(config->cert_file);
    f->of[FILE_KEY].path = path_or_none(config->key_file);
    stat_all(f, &changed);
    rc = load(f, err);
    if (rc != HFD_OK)
        free_texts(f);
    return rc;
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
static void remote_files_warn(const struct files *f, hfd_remote_open_file_fn *on_open, void *ctx)
{
    for (int i = 0; i < FILE_COUNT; i++)
        if (f->of[i].path != NULL && kinds[i].is_secret &&
            (f->of[i].mode & (S_IROTH | S_IWOTH)) != 0)
            (on_open != NULL ? on_open : log_open)(ctx, kinds[i].key, f->of[i].path, f->of[i].mode);
}

hfd_rc hfd_remote_files_check(const struct hfd_remote_http_config *config,
                              hfd_remote_open_file_fn *on_open, void *ctx, struct hfd_err *err)
{
    struct files files;
    const hfd_rc rc = remote_files_open(&files, config, err);

    if (rc == HFD_OK && on_open != NULL)
        remote_files_warn(&files, on_open, ctx);
    free_texts(&files);
    return rc;
}

/*
 * Reads changed files again. On failure the previous content stays, until a
 * file changes again.
 * @param all      reads all files, changed or not
 * @param changed  whether new content is in use
 * @return HFD_OK, HFD_INVALID, HFD_IO, HFD_NOMEM
 */
static hfd_rc remote_files_refresh(struct files *f, bool all, bool *changed, struct hfd_err *err)
{
    struct files next;
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

/* ---- a call's life ---- */

static bool is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static bool is_json_type(hfd_slice type)
{
    const char *end = type.len > 0 ? memchr(type.p, ';', type.len) : NULL;

    if (end != NULL)
        type.len = (size_t)(end - type.p);
    type = hfd_slice_trim(type);
    return hfd_slice_ieq(type, HFD_SLICE("application/json")) ||
           (type.len > 5 &&
            hfd_slice_ieq((hfd_slice){type.p + type.len - 5, 5}, HFD_SLICE("+json")));
}

/* Describes the failure, for logs and for the message of a deadline. */
static const char *describe(struct hfd_remote_call *call)
{
    const struct hfd_http_answer *a = &call->http_answer;
    const char *what = a->meaning, *why = a->detail;

    if (what == NULL)
        what = a->left ? "no whole answer after the TLS handshake; "
                         "is remote.cert_file what is asked for?"
                       : "no whole answer";
    if (a->refused != NULL) {
        what = "the answer was not read";
        why = a->body.rc == HFD_LIMIT ? "it is longer than remote.answer_max" : a->refused;
    }
    (void)snprintf(call->failure, sizeof(call->failure), "%s: %.160s", what, why);
    return call->failure;
}

static void finish(void *ctx)
{
    struct hfd_remote_call *call = ctx;
    const struct hfd_http_answer *a = &call->http_answer;
    struct hfd_remote_http *c = call->owner;

    HFD_CHECK_OBJ(c, HFD_REMOTE_HTTP_MAGIC);
    call->duration_us = hfd_clock_mono_us(c->config.clock) - call->started_us;
    if (a->rc != HFD_OK) {
        call->answer = (struct hfd_remote_answer){.failure = describe(call)};
    } else {
        call->answer = (struct hfd_remote_answer){
            .arrived = true,
            .status = a->status,
            .is_json = is_json_type(hfd_http_header(a, "Content-Type")),
            .type = a->type,
            .body = hfd_buf_slice(&a->body),
            .retry_after_us = a->retry_after_us,
        };
        c->refused_token = c->refused_token || a->status == 401;
    }
    call->done(call);
}

void hfd_remote_call_fini(struct hfd_remote_call *call)
{
    hfd_http_call_end(&call->http);
    hfd_http_answer_fini(&call->http_answer);
    call->owner = NULL;
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
    static const char *const methods[] = {[HFD_REMOTE_GET] = "GET",
                                          [HFD_REMOTE_POST] = "POST",
                                          [HFD_REMOTE_PATCH] = "PATCH",
                                          [HFD_REMOTE_DELETE] = "DELETE"};
    const struct hfd_remote_request *r = &call->request;

    HFD_CHECK_OBJ(c, HFD_REMOTE_HTTP_MAGIC);
    HFD_ASSERT(call->owner == NULL);
    refresh_files(c);
    call->owner = c;
    call->started_us = hfd_clock_mono_us(c->config.clock);
    call->patient = c->server;
    if (r->held_us > 0) {
        call->patient.timeout_us += r->held_us;
        call->patient.silence_s = 0;
    }
    call->http = (struct hfd_http_call){
        .server = &call->patient,
        .method = methods[r->method],
        .url = {c->base, HFD_SLICE(REMOTE_API_PATH), r->path},
        .headers = {{"Accept", HFD_SLICE("application/json, application/problem+json")},
                    {"Content-Type",
                     r->body.len > 0 ? HFD_SLICE("application/json") : HFD_SLICE_NONE},
                    {c->config.identity_header, is_set(c->config.identity)
                                                    ? hfd_slice_of(c->config.identity)
                                                    : HFD_SLICE_NONE}},
        .body = r->body,
        .is_unsafe = r->method == HFD_REMOTE_POST,
        .done = finish,
        .ctx = call,
        .answer = &call->http_answer,
    };
    if (!hfd_http_call_start(c->client, &call->http)) {
        hfd_remote_call_fini(call);
        return hfd_fail_nomem(err, "send a request to HyperFleet");
    }
    call->answer = (struct hfd_remote_answer){0};
    return HFD_OK;
}

void hfd_remote_http_run(struct hfd_remote_http *c, int64_t wait_us)
{
    HFD_CHECK_OBJ(c, HFD_REMOTE_HTTP_MAGIC);
    (void)hfd_http_client_run(c->client, wait_us);
}

void hfd_remote_http_wake(struct hfd_remote_http *c)
{
    hfd_http_client_wake(c->client);
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
    struct hfd_remote_http *c = calloc(1, sizeof(*c));
    const int64_t stall_s = config->timeout_us * 2 / 3 / HFD_US_PER_S;
    hfd_rc rc;

    *out = c;
    if (c == NULL)
        return hfd_fail_nomem(err, "open HTTP to a remote HyperFleet");
    c->magic = HFD_REMOTE_HTTP_MAGIC;
    c->config = *config;
    if (!is_set(config->identity_header))
        c->config.identity_header = NULL;
    c->base = base_of(config->url);
    c->server = (struct hfd_http_server){.connect_timeout_us = config->connect_timeout_us,
                                         .timeout_us = config->timeout_us,
                                         .silence_s = stall_s > 0 ? stall_s : 1,
                                         .head_max_bytes = HEADERS_MAX_BYTES,
                                         .answer_max_bytes = (size_t)config->answer_max_bytes,
                                         .ca = &c->files.of[FILE_CA].text,
                                         .cert = &c->files.of[FILE_CERT].text,
                                         .key = &c->files.of[FILE_KEY].text,
                                         .token = &c->files.of[FILE_TOKEN].text};
    rc = remote_files_open(&c->files, config, err);
    if (rc == HFD_OK)
        remote_files_warn(&c->files, NULL, NULL);
    if (rc == HFD_OK)
        rc = hfd_http_client_open(config->clock, config->connections_max, &c->client, err);
    if (rc != HFD_OK)
        hfd_remote_http_close(out);
    return rc;
}

void hfd_remote_http_close(struct hfd_remote_http **http)
{
    struct hfd_remote_http *c = *http;

    *http = NULL;
    if (c == NULL)
        return;
    HFD_CHECK_OBJ(c, HFD_REMOTE_HTTP_MAGIC);
    hfd_http_client_close(&c->client);
    free_texts(&c->files);
    c->magic = 0;
    free(c);
}
