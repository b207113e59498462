/* See tls.h. */
#include "handlers/http/tls.h"

#include <pthread.h>
#include <sys/stat.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>

#include "driver/base/check.h"
#include "driver/base/file.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/base/trouble.h"

/* The forward-secret AEAD suites: "intermediate" of Mozilla's Server Side TLS without DHE. */
#define CIPHERS_1_2                                                                                \
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"                                   \
    "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"                                   \
    "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"
#define GROUPS "X25519:P-256:P-384"
#define CLIENT_CHAIN_MAX_BYTES 65536
#define ALERT_MAX_BYTES 64
#define TROUBLE_DAYS 14 /* as the alert */
#define US_PER_DAY (86400 * HFD_US_PER_S)

enum {
    FILE_CERT,
    FILE_KEY,
    FILE_CLIENT_CA,
    FILES
};

struct contexts {
    SSL_CTX *of[HFD_LISTENER_COUNT];
    int64_t expires_us; /* the earliest of the chain */
};

struct hfd_tls {
    const struct hfd_settings *settings;
    pthread_mutex_t lock; /* held for a few instructions: contexts.of is read and replaced */
    struct contexts contexts;
    struct stat seen[FILES]; /* at the last attempt to load */
    bool failed;             /* the last attempt; not logged yet */
    size_t warned;           /* how many of the times below were announced */
};

/* ---- alerts ---- */

static __thread struct {
    unsigned char bytes[ALERT_MAX_BYTES];
    size_t len;    /* of the last write; 0 = it was longer */
    bool is_alert; /* the write was a fatal alert */
} last_write;

static long on_openssl_bio(BIO *bio, int what, const char *bytes, size_t len, int argi, long argl,
                           int ret, size_t *processed)
{
    (void)bio;
    (void)argi;
    (void)argl;
    (void)processed;
    if (what == BIO_CB_WRITE) {
        last_write.len = len <= ALERT_MAX_BYTES ? len : 0;
        memcpy(last_write.bytes, bytes, last_write.len);
    }
    return ret;
}

static void on_openssl_info(const SSL *ssl, int where, int value)
{
    if ((where & SSL_CB_HANDSHAKE_START) != 0) {
        last_write.is_alert = false;
        last_write.len = 0;
        BIO_set_callback_ex(SSL_get_wbio(ssl), on_openssl_bio);
    } else if ((where & SSL_CB_HANDSHAKE_DONE) != 0) {
        BIO_set_callback_ex(SSL_get_wbio(ssl), NULL);
    } else if (where == SSL_CB_WRITE_ALERT) {
        last_write.is_alert = value >> 8 == SSL3_AL_FATAL;
    }
}

size_t hfd_tls_take_alert(unsigned char *out, size_t cap)
{
    const size_t len = last_write.is_alert && last_write.len <= cap ? last_write.len : 0;

    memcpy(out, last_write.bytes, len);
    last_write.is_alert = false;
    return len;
}

/* ---- loading ---- */

/* Fails with setting, file, what was expected, and the reason of OpenSSL. */
static hfd_rc unusable(const struct hfd_settings *s, enum hfd_setting which, const char *expected,
                       struct hfd_err *err)
{
    static const char *const keys[] = {"tls.cert_file", "tls.key_file", "tls.client_ca_file"};
    const hfd_slice paths[] = {s->tls_cert_file, s->tls_key_file, s->tls_client_ca_file};
    const size_t i = which - HFD_SETTING_tls_cert_file;
    const char *reason = ERR_reason_error_string(ERR_peek_error());
    const hfd_slice origin = hfd_settings_origin(s, keys[i]);

    (void)hfd_fail_field(err, HFD_INVALID, keys[i], "%.*s%s%s: %.120s: expected %s%s%s",
                         HFD_SLICE_FMT(origin), origin.len > 0 ? ": " : "", keys[i], paths[i].p,
                         expected, reason != NULL ? ": " : "", reason != NULL ? reason : "");
    ERR_clear_error();
    return HFD_INVALID;
}
_Static_assert(HFD_SETTING_tls_client_ca_file - HFD_SETTING_tls_cert_file == 2,
               "the three settings stand in this order");

/* Refuses encrypted keys: there is no terminal to ask. */
static int no_password(char *out, int cap, int writing, void *ctx)
{
    (void)out;
    (void)cap;
    (void)writing;
    (void)ctx;
    return -1;
}

static int on_openssl_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *offered, unsigned offered_len, void *arg)
{
    static const unsigned char http_1_1[] = "\x08http/1.1";
    unsigned char *found;

    (void)ssl;
    (void)arg;
    if (SSL_select_next_proto(&found, out_len, http_1_1, sizeof(http_1_1) - 1, offered,
                              offered_len) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = found;
    return SSL_TLSEXT_ERR_OK;
}

static bool set_rules(SSL_CTX *ctx)
{
    (void)SSL_CTX_set_options(ctx,
                              SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_max_cert_list(ctx, CLIENT_CHAIN_MAX_BYTES);
    SSL_CTX_set_default_passwd_cb(ctx, no_password);
    SSL_CTX_set_alpn_select_cb(ctx, on_openssl_alpn, NULL);
    SSL_CTX_set_info_callback(ctx, on_openssl_info);
    return SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 &&
           SSL_CTX_set_num_tickets(ctx, 0) == 1 && SSL_CTX_set_cipher_list(ctx, CIPHERS_1_2) == 1 &&
           SSL_CTX_set1_groups_list(ctx, GROUPS) == 1;
}

static hfd_rc set_pair(const struct hfd_settings *s, SSL_CTX *ctx, struct hfd_err *err)
{
    if (SSL_CTX_use_certificate_chain_file(ctx, s->tls_cert_file.p) != 1)
        return unusable(s, HFD_SETTING_tls_cert_file, "a PEM certificate with its chain", err);
    if (SSL_CTX_use_PrivateKey_file(ctx, s->tls_key_file.p, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(ctx) != 1)
        return unusable(s, HFD_SETTING_tls_key_file,
                        "the PEM private key of tls.cert_file, not encrypted", err);
    return HFD_OK;
}

/* Demands a client certificate that one of the authorities, or an authority below it, signed. */
static hfd_rc set_client_ca(const struct hfd_settings *s, SSL_CTX *ctx, struct hfd_err *err)
{
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(s->tls_client_ca_file.p);

    if (names == NULL || SSL_CTX_load_verify_file(ctx, s->tls_client_ca_file.p) != 1) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        return unusable(s, HFD_SETTING_tls_client_ca_file, "PEM certificates of authorities", err);
    }
    SSL_CTX_set_client_CA_list(ctx, names);
    (void)X509_STORE_set_flags(SSL_CTX_get_cert_store(ctx), X509_V_FLAG_PARTIAL_CHAIN);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return HFD_OK;
}

static int64_t expiry_us(const X509 *cert)
{
    struct tm tm;

    return ASN1_TIME_to_tm(X509_get0_notAfter(cert), &tm) == 1 ? (int64_t)timegm(&tm) * HFD_US_PER_S
                                                               : 0;
}

static int64_t earliest_expiry_us(SSL_CTX *ctx)
{
    int64_t earliest = expiry_us(SSL_CTX_get0_certificate(ctx));
    STACK_OF(X509) *chain = NULL;

    (void)SSL_CTX_get0_chain_certs(ctx, &chain);
    for (int i = 0; i < sk_X509_num(chain); i++) {
        const int64_t at = expiry_us(sk_X509_value(chain, i));

        earliest = at < earliest ? at : earliest;
    }
    return earliest;
}

static void free_contexts(struct contexts *c)
{
    for (unsigned l = 0; l < HFD_LISTENER_COUNT; l++)
        SSL_CTX_free(c->of[l]);
    *c = (struct contexts){.expires_us = 0};
}

/* out is empty unless HFD_OK. */
static hfd_rc load(const struct hfd_settings *s, struct contexts *out, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    ERR_clear_error();
    *out = (struct contexts){.expires_us = 0};
    for (unsigned l = 0; rc == HFD_OK && l < HFD_LISTENER_COUNT; l++) {
        out->of[l] = SSL_CTX_new(TLS_server_method());
        if (out->of[l] == NULL || !set_rules(out->of[l]))
            rc = hfd_fail_nomem(err, "set up TLS");
        else
            rc = set_pair(s, out->of[l], err);
        if (rc == HFD_OK && l == HFD_LISTENER_MAIN && s->tls_client_ca_file.len > 0)
            rc = set_client_ca(s, out->of[l], err);
    }
    if (rc == HFD_OK)
        out->expires_us = earliest_expiry_us(out->of[HFD_LISTENER_MAIN]);
    else
        free_contexts(out);
    return rc;
}

/* ---- the object ---- */

/* Takes the state of the files before they are read, so that a change meanwhile is seen later. */
static bool has_changed(struct hfd_tls *tls)
{
    const hfd_slice paths[FILES] = {tls->settings->tls_cert_file, tls->settings->tls_key_file,
                                    tls->settings->tls_client_ca_file};
    bool changed = false;

    for (int i = 0; i < FILES; i++) {
        struct stat now = {0};

        if (paths[i].len == 0)
            continue;
        (void)stat(paths[i].p, &now);
        changed = changed || !hfd_file_same(&now, &tls->seen[i]);
        tls->seen[i] = now;
    }
    return changed;
}

hfd_rc hfd_tls_open(const struct hfd_settings *settings, struct hfd_tls **out, struct hfd_err *err)
{
    struct hfd_tls *tls;
    hfd_rc rc;

    *out = NULL;
    if (settings->tls_cert_file.len == 0)
        return HFD_OK;
    tls = calloc(1, sizeof(*tls));
    if (tls == NULL)
        return hfd_fail_nomem(err, "set up TLS");
    tls->settings = settings;
    (void)has_changed(tls);
    rc = load(settings, &tls->contexts, err);
    if (rc != HFD_OK || pthread_mutex_init(&tls->lock, NULL) != 0) {
        free_contexts(&tls->contexts);
        free(tls);
        return rc != HFD_OK ? rc : hfd_fail_nomem(err, "set up TLS");
    }
    *out = tls;
    return HFD_OK;
}

void hfd_tls_free(struct hfd_tls *tls)
{
    if (tls == NULL)
        return;
    free_contexts(&tls->contexts);
    (void)pthread_mutex_destroy(&tls->lock);
    free(tls);
}

SSL_CTX *hfd_tls_context(struct hfd_tls *tls, enum hfd_listener which)
{
    SSL_CTX *ctx;

    (void)pthread_mutex_lock(&tls->lock);
    ctx = tls->contexts.of[which];
    (void)SSL_CTX_up_ref(ctx);
    (void)pthread_mutex_unlock(&tls->lock);
    return ctx;
}

/* ---- watching ---- */

static void log_expiry(enum hfd_log_level level, const char *msg, const struct hfd_tls *tls,
                       int64_t now_us)
{
    char text[32] = "";
    time_t at_s = (time_t)(tls->contexts.expires_us / HFD_US_PER_S);
    struct tm tm;

    (void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at_s, &tm));
    HFD_LOG(level, msg, HFD_LOG_CSTR("file", tls->settings->tls_cert_file.p),
            HFD_LOG_CSTR("expires", text),
            HFD_LOG_INT("days_left", (tls->contexts.expires_us - now_us) / US_PER_DAY));
}

/* Each certificate is warned of 30, 7 and 1 days before it expires, and when it has. */
static void warn_of_expiry(struct hfd_tls *tls, int64_t now_us)
{
    static const int64_t before_us[] = {30 * US_PER_DAY, 7 * US_PER_DAY, US_PER_DAY, 0};
    const size_t count = sizeof(before_us) / sizeof(before_us[0]);
    const int64_t left_us = tls->contexts.expires_us - now_us;
    char at[HFD_TIME_TEXT_MAX], words[128];
    size_t reached = 0;

    while (reached < count && left_us <= before_us[reached])
        reached++;
    if (reached > tls->warned)
        log_expiry(reached == count ? HFD_LOG_ERROR : HFD_LOG_WARN,
                   reached == count ? "the TLS certificate has expired"
                                    : "the TLS certificate expires soon",
                   tls, now_us);
    tls->warned = reached;
    if (left_us >= TROUBLE_DAYS * US_PER_DAY) {
        (void)hfd_trouble_end(HFD_TROUBLE_CERTIFICATE, HFD_SLICE(""));
        return;
    }
    (void)hfd_time_format_s(tls->contexts.expires_us, at);
    (void)snprintf(words, sizeof(words), "tls.cert_file, or one of its chain, %s at %s",
                   left_us > 0 ? "expires" : "has expired", at);
    (void)hfd_trouble_note(HFD_TROUBLE_CERTIFICATE, HFD_SLICE(""), now_us, hfd_slice_of(words));
}

static void replace(struct hfd_tls *tls, struct contexts *fresh)
{
    struct contexts old;

    (void)pthread_mutex_lock(&tls->lock);
    old = tls->contexts;
    tls->contexts = *fresh;
    (void)pthread_mutex_unlock(&tls->lock);
    free_contexts(&old);
    tls->warned = 0;
}

/* An expired certificate replaces none that is valid. */
static hfd_rc refuse_expired(const struct hfd_tls *tls, const struct contexts *fresh,
                             int64_t now_us, struct hfd_err *err)
{
    if (fresh->expires_us > now_us || tls->contexts.expires_us <= now_us)
        return HFD_OK;
    return hfd_fail(err, HFD_INVALID, "tls.cert_file: %.120s: it has expired",
                    tls->settings->tls_cert_file.p);
}

static void log_unusable(const struct hfd_err *err)
{
    HFD_LOG(HFD_LOG_ERROR, "TLS files not reloaded; the current certificate stays in use",
            HFD_LOG_CSTR("error", err->msg));
}

/*
 * Loads the files. A pair may be half written at the first failure after a change, so only the next
 * failure is logged.
 */
static void reload(struct hfd_tls *tls, int64_t now_us, bool quiet)
{
    struct contexts fresh;
    struct hfd_err err = {0};
    hfd_rc rc = load(tls->settings, &fresh, &err);

    if (rc == HFD_OK) {
        rc = refuse_expired(tls, &fresh, now_us, &err);
        if (rc != HFD_OK)
            free_contexts(&fresh);
    }
    tls->failed = rc != HFD_OK && quiet;
    if (rc == HFD_OK) {
        replace(tls, &fresh);
        log_expiry(HFD_LOG_INFO, "TLS certificate reloaded", tls, now_us);
    } else if (!quiet) {
        log_unusable(&err);
    }
}

void hfd_tls_watch(struct hfd_tls *tls, int64_t now_us, bool forced)
{
    if (tls == NULL)
        return;
    if (has_changed(tls) || forced)
        reload(tls, now_us, !forced);
    else if (tls->failed)
        reload(tls, now_us, false);
    hfd_metric_set(HFD_METRIC_CERTIFICATE_EXPIRY, NULL,
                   (tls->contexts.expires_us - now_us) / HFD_US_PER_S);
    warn_of_expiry(tls, now_us);
}

hfd_rc hfd_tls_pin(const struct hfd_settings *settings, char *out, struct hfd_err *err)
{
    static const char prefix[] = "sha256//";
    unsigned char digest[EVP_MAX_MD_SIZE], *der = NULL;
    FILE *file = fopen(settings->tls_cert_file.p, "re");
    X509 *cert = file != NULL ? PEM_read_X509(file, NULL, no_password, NULL) : NULL;
    const int len = cert != NULL ? i2d_X509_PUBKEY(X509_get_X509_PUBKEY(cert), &der) : 0;
    unsigned digest_len = 0;

    if (file != NULL)
        (void)fclose(file);
    if (len > 0 && EVP_Digest(der, (size_t)len, digest, &digest_len, EVP_sha256(), NULL) == 1) {
        memcpy(out, prefix, sizeof(prefix));
        (void)EVP_EncodeBlock((unsigned char *)out + sizeof(prefix) - 1, digest, (int)digest_len);
    }
    OPENSSL_free(der);
    X509_free(cert);
    ERR_clear_error();
    return digest_len != 0
               ? HFD_OK
               : hfd_fail_field(err, HFD_IO, "tls.cert_file",
                                "tls.cert_file: %.120s: cannot be read", settings->tls_cert_file.p);
}
