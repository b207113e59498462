/* See http_files.h. */
#include "driver/backend/remote/http_files.h"

#include "driver/base/file.h"
#include "driver/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

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

hfd_rc hfd_remote_files_open(struct hfd_remote_files *f,
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

void hfd_remote_files_close(struct hfd_remote_files *f)
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

void hfd_remote_files_warn(const struct hfd_remote_files *f, hfd_remote_open_file_fn *on_open,
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
    const hfd_rc rc = hfd_remote_files_open(&files, config, err);

    if (rc == HFD_OK && on_open != NULL)
        hfd_remote_files_warn(&files, on_open, ctx);
    hfd_remote_files_close(&files);
    return rc;
}

hfd_rc hfd_remote_files_refresh(struct hfd_remote_files *f, bool all, bool *changed,
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
    hfd_remote_files_warn(f, NULL, NULL);
    return HFD_OK;
}
