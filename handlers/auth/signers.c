/* See signers.h. */
#include "handlers/auth/signers.h"

#include "driver/base/clock.h"
#include "driver/base/file.h"
#include "driver/base/log.h"
#include "handlers/auth/fetch.h"

#include <curl/curl.h>
#include <stdlib.h>

#define MEM_MAX_BYTES ((size_t)4 << 20)
#define FETCH_US (300 * HFD_US_PER_S)
#define RETRY_US (10 * HFD_US_PER_S)
#define WANTED_US (60 * HFD_US_PER_S)

/* The source of one set of keys. */
struct source {
    const char *path; /* a file; NULL = it is a URL */
    const char *url;
    const char *ca_file; /* of the URL; NULL = the authorities of the system */
    struct stat seen;    /* of the file */
    struct hfd_buf text; /* of the URL: the last good answer */
    int64_t due_us;      /* mono */
    int64_t fetched_us;  /* mono: the last attempt; 0 = never */
    bool failing;        /* the log says so */
};

struct hfd_signers {
    struct hfd_arena mem;
    struct hfd_signers_config config;
    struct hfd_issuer_list issuers;
    struct source *sources; /* the Operator's keys, then the issuers */
    size_t count;
    bool fresh; /* no trust was made yet */
};

static int64_t mono_us(void)
{
    return hfd_clock_mono_us(&hfd_clock_system);
}

/* ---- reading ---- */

static hfd_rc add_keys(const struct hfd_signers *s, size_t at, hfd_slice text,
                       struct hfd_trust *trust, struct hfd_err *err)
{
    const size_t operators = s->config.operator_key_count;

    return at < operators ? hfd_jwk_add_pem(&trust->operator_keys, text, err)
                          : hfd_jwk_parse_set(text, &trust->issuer_keys[at - operators], err);
}

/* Reads the keys of one source into a trust. A URL that was never fetched has none. */
static hfd_rc read_source(struct hfd_signers *s, size_t at, struct hfd_trust *trust,
                          struct hfd_err *err)
{
    struct source *source = &s->sources[at];
    struct hfd_err why = {0};
    struct hfd_buf text;
    hfd_rc rc;

    if (source->path == NULL)
        return source->text.len > 0 ? add_keys(s, at, hfd_buf_slice(&source->text), trust, err)
                                    : HFD_OK;
    hfd_buf_init(&text, HFD_JWKS_MAX_BYTES);
    rc = hfd_file_read(source->path, "key file", &text, err);
    if (rc == HFD_OK) {
        rc = add_keys(s, at, hfd_buf_slice(&text), trust, &why);
        if (rc != HFD_OK)
            (void)hfd_fail(err, rc, "%.120s: %s", source->path, why.msg);
    }
    hfd_buf_fini(&text);
    return rc;
}

/* Notes the state of a file. @return true if it is another one than before */
static bool is_changed(struct source *source)
{
    struct stat now = {0};
    bool changed;

    if (stat(source->path, &now) != 0)
        now = (struct stat){0};
    changed = !hfd_file_same(&now, &source->seen) || now.st_mode != source->seen.st_mode;
    source->seen = now;
    return changed;
}

static const char *setting_of(const struct hfd_signers *s, size_t at)
{
    return at < s->config.operator_key_count ? "auth.operator_keys" : "auth.issuers";
}

/* Reads all files once; each must be good at the start. */
static hfd_rc check_all(struct hfd_signers *s, struct hfd_err *err)
{
    struct hfd_trust *trust = hfd_trust_new(&s->issuers);
    struct hfd_err why = {0};
    hfd_rc rc = HFD_OK;

    if (trust == NULL)
        return hfd_fail_nomem(err, "read the keys of signers");
    for (size_t i = 0; rc == HFD_OK && i < s->count; i++) {
        rc = read_source(s, i, trust, &why);
        if (rc != HFD_OK)
            rc = hfd_fail_field(err, rc == HFD_NOMEM ? rc : HFD_INVALID, setting_of(s, i), "%s: %s",
                                setting_of(s, i), why.msg);
    }
    hfd_trust_unref(trust);
    return rc;
}

/* ---- opening ---- */

static hfd_rc read_issuers(struct hfd_signers *s, struct hfd_err *err)
{
    struct hfd_err why;
    hfd_rc rc;

    if (s->config.issuers_file == NULL)
        return HFD_OK;
    rc = hfd_issuers_read(s->config.issuers_file, &s->mem, &s->issuers, &why);
    if (rc == HFD_OK)
        return rc;
    return hfd_fail_field(err, rc == HFD_NOMEM ? rc : HFD_INVALID, "auth.issuers",
                          "auth.issuers: %s", why.msg);
}

static hfd_rc list_sources(struct hfd_signers *s, struct hfd_err *err)
{
    const size_t operators = s->config.operator_key_count;

    s->sources = hfd_arena_array(&s->mem, operators + s->issuers.count + 1, sizeof(*s->sources));
    if (s->sources == NULL)
        return hfd_fail_nomem(err, "read the keys of signers");
    s->count = operators + s->issuers.count;
    for (size_t i = 0; i < s->count; i++) {
        const struct hfd_issuer *issuer = i < operators ? NULL : &s->issuers.items[i - operators];
        struct source *source = &s->sources[i];

        *source = (struct source){.path = NULL};
        hfd_buf_init(&source->text, HFD_JWKS_MAX_BYTES);
        if (issuer == NULL)
            source->path = s->config.operator_keys[i];
        else if (issuer->jwk_cert_file.len > 0)
            source->path = issuer->jwk_cert_file.p;
        else
            source->url = issuer->jwk_cert_url.p;
        if (issuer != NULL && issuer->ca_file.len > 0)
            source->ca_file = issuer->ca_file.p;
        if (source->path != NULL)
            (void)is_changed(source);
    }
    return HFD_OK;
}

hfd_rc hfd_signers_open(const struct hfd_signers_config *config, struct hfd_signers **out,
                        struct hfd_err *err)
{
    struct hfd_signers *s = calloc(1, sizeof(*s));
    hfd_rc rc;

    *out = NULL;
    if (s == NULL)
        return hfd_fail_nomem(err, "set up authentication");
    hfd_arena_init(&s->mem, MEM_MAX_BYTES);
    s->config = *config;
    s->fresh = true;
    rc = read_issuers(s, err);
    if (rc == HFD_OK)
        rc = list_sources(s, err);
    if (rc == HFD_OK)
        rc = check_all(s, err);
    if (rc == HFD_OK)
        *out = s;
    else
        hfd_signers_free(s);
    return rc;
}

void hfd_signers_free(struct hfd_signers *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->count; i++)
        hfd_buf_fini(&s->sources[i].text);
    hfd_arena_fini(&s->mem);
    free(s);
}

bool hfd_signers_any(const struct hfd_signers *s)
{
    return s->count > 0;
}

void hfd_signers_prepare(struct hfd_signers *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->sources[i].url != NULL && curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
            return;
}

/* ---- looking ---- */

static void say_failing(struct source *source, const char *error)
{
    if (!source->failing)
        HFD_LOG(HFD_LOG_WARN, "the keys of an issuer cannot be fetched; the last ones stay in use",
                HFD_LOG_CSTR("error", error));
    source->failing = true;
}

/* Fetches the keys of a URL. @return true if there are others than before */
static bool fetch(struct source *source)
{
    struct hfd_jwk_list keys;
    struct hfd_err err = {0};
    struct hfd_buf text;
    bool changed = false;
    hfd_rc rc;

    hfd_buf_init(&text, HFD_JWKS_MAX_BYTES);
    source->fetched_us = mono_us();
    rc = hfd_fetch(source->url, source->ca_file, &text, &err);
    if (rc == HFD_OK)
        rc = hfd_jwk_parse_set(hfd_buf_slice(&text), &keys, &err);
    source->due_us = mono_us() + (rc == HFD_OK ? FETCH_US : RETRY_US);
    if (rc != HFD_OK) {
        say_failing(source, err.msg);
    } else {
        hfd_jwk_list_fini(&keys);
        source->failing = false;
        changed = !hfd_slice_eq(hfd_buf_slice(&text), hfd_buf_slice(&source->text));
    }
    if (changed) {
        hfd_buf_fini(&source->text);
        source->text = text;
        hfd_buf_init(&text, 0);
    }
    hfd_buf_fini(&text);
    return changed;
}

static bool is_due(const struct source *source, bool wanted)
{
    const int64_t now_us = mono_us();

    return source->fetched_us == 0 || now_us >= source->due_us ||
           (wanted && now_us - source->fetched_us >= WANTED_US);
}

/* Reads all keys again. A file that cannot be used has none: what it trusted is trusted no more. */
static struct hfd_trust *make_trust(struct hfd_signers *s)
{
    struct hfd_trust *trust = hfd_trust_new(&s->issuers);
    struct hfd_err err = {0};

    for (size_t i = 0; trust != NULL && i < s->count; i++)
        if (read_source(s, i, trust, &err) != HFD_OK)
            HFD_LOG(HFD_LOG_ERROR, "a key file cannot be used: its keys are not trusted",
                    HFD_LOG_CSTR("setting", setting_of(s, i)), HFD_LOG_CSTR("error", err.msg));
    return trust;
}

struct hfd_trust *hfd_signers_look(struct hfd_signers *s, bool wanted)
{
    bool changed = s->fresh;
    struct hfd_trust *trust;

    for (size_t i = 0; i < s->count; i++) {
        struct source *source = &s->sources[i];

        if (source->path != NULL)
            changed = is_changed(source) || changed;
        else if (is_due(source, wanted))
            changed = fetch(source) || changed;
    }
    if (!changed)
        return NULL;
    trust = make_trust(s);
    s->fresh = trust == NULL;
    return trust;
}
