/* See credential.h. */
#include "driver/kube/credential.h"

#include "driver/base/file.h"
#include "driver/base/log.h"

#define FILE_MAX_BYTES ((size_t)1 << 20)

static hfd_rc keep(struct hfd_secret *out, hfd_slice text, struct hfd_err *err)
{
    hfd_rc rc = hfd_secret_init(out, text.len, err);

    if (rc == HFD_OK)
        memcpy(out->p, text.p, text.len);
    return rc;
}

static hfd_slice trimmed(hfd_slice text)
{
    while (text.len > 0 && strchr(" \t\r\n", text.p[text.len - 1]) != NULL)
        text.len--;
    return text;
}

/* A token is one printable word: anything else could add a header. */
static hfd_rc check_token(hfd_slice token, const char *where, struct hfd_err *err)
{
    if (token.len == 0)
        return hfd_fail(err, HFD_INVALID, "%.150s: it holds no token", where);
    for (size_t i = 0; i < token.len; i++)
        if (token.p[i] <= ' ' || token.p[i] > '~')
            return hfd_fail(err, HFD_INVALID, "%.150s: expected one token on one line", where);
    return HFD_OK;
}

static hfd_rc check(enum hfd_kube_secret which, hfd_slice text, const char *where,
                    struct hfd_err *err)
{
    if (which == HFD_KUBE_TOKEN)
        return check_token(text, where, err);
    return text.len > 0 && memmem(text.p, text.len, "-----BEGIN ", 11) != NULL
               ? HFD_OK
               : hfd_fail(err, HFD_INVALID, "%.150s: expected PEM", where);
}

/* Reads a file into out, which is empty before, and after a failure. */
static hfd_rc load(const struct hfd_kube_secret_text *f, enum hfd_kube_secret which,
                   struct hfd_secret *out, struct hfd_err *err)
{
    struct hfd_buf b;
    hfd_slice text;
    hfd_rc rc;

    *out = (struct hfd_secret){0};
    hfd_buf_init(&b, FILE_MAX_BYTES);
    rc = hfd_file_read(f->file, "credential of a Kubernetes API server", &b, err);
    if (rc == HFD_OK) {
        text = which == HFD_KUBE_TOKEN ? trimmed(hfd_buf_slice(&b)) : hfd_buf_slice(&b);
        rc = check(which, text, f->file, err);
        if (rc == HFD_OK)
            rc = keep(out, text, err);
    }
    if (b.p != NULL)
        explicit_bzero(b.p, b.len);
    hfd_buf_fini(&b);
    return rc;
}

static hfd_rc open_one(struct hfd_kube_secret_text *f, enum hfd_kube_secret which,
                       const struct hfd_kube_credential *from, struct hfd_err *err)
{
    hfd_rc rc;

    f->file = from->file;
    if (f->file != NULL) {
        (void)stat(f->file, &f->seen);
        return load(f, which, &f->text, err);
    }
    if (from->text.len == 0)
        return HFD_OK;
    rc = check(which, from->text, "the kubeconfig", err);
    return rc == HFD_OK ? keep(&f->text, from->text, err) : rc;
}

hfd_rc hfd_kube_credentials_open(struct hfd_kube_credentials *c,
                                 const struct hfd_kube_access *access, struct hfd_err *err)
{
    const struct hfd_kube_credential *const from[HFD_KUBE_SECRET_COUNT] = {
        [HFD_KUBE_CA] = &access->ca,
        [HFD_KUBE_CERT] = &access->cert,
        [HFD_KUBE_KEY] = &access->key,
        [HFD_KUBE_TOKEN] = &access->token,
    };
    hfd_rc rc = HFD_OK;

    *c = (struct hfd_kube_credentials){0};
    for (int i = 0; rc == HFD_OK && i < HFD_KUBE_SECRET_COUNT; i++)
        rc = open_one(&c->of[i], (enum hfd_kube_secret)i, from[i], err);
    if (rc != HFD_OK)
        hfd_kube_credentials_close(c);
    return rc;
}

void hfd_kube_credentials_close(struct hfd_kube_credentials *c)
{
    for (int i = 0; i < HFD_KUBE_SECRET_COUNT; i++)
        hfd_secret_fini(&c->of[i].text);
}

static void refresh_one(struct hfd_kube_secret_text *f, enum hfd_kube_secret which, bool all)
{
    struct hfd_secret text;
    struct stat now = {0};
    struct hfd_err err;

    if (f->file == NULL)
        return;
    (void)stat(f->file, &now); /* all zero when it is gone */
    if (!all && hfd_file_same(&now, &f->seen))
        return;
    f->seen = now;
    if (load(f, which, &text, &err) != HFD_OK) {
        HFD_LOG(HFD_LOG_ERROR,
                "Kubernetes: cannot use a changed file; the previous content stays in use",
                HFD_LOG_CSTR("path", f->file), HFD_LOG_CSTR("error", err.msg));
        return;
    }
    hfd_secret_fini(&f->text);
    f->text = text;
}

void hfd_kube_credentials_refresh(struct hfd_kube_credentials *c, bool all)
{
    for (int i = 0; i < HFD_KUBE_SECRET_COUNT; i++)
        refresh_one(&c->of[i], (enum hfd_kube_secret)i, all);
}
