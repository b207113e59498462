/* See trust.h. */
#include "handlers/auth/trust.h"

#include "driver/base/arena.h"
#include "driver/base/file.h"
#include "driver/base/http_client.h"
#include "driver/base/jsonx.h"
#include "driver/base/log.h"
#include "driver/base/url.h"
#include "driver/base/yamlx.h"
#include "driver/core/driver.h"
#include "handlers/auth/decide.h"
#include "handlers/auth/jwk.h"
#include "handlers/auth/token.h"

#include <jansson.h>
#include <sodium.h>

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* ---- issuers ---- */

#define HFD_ISSUERS_MAX 32
#define FILE_MAX_BYTES ((size_t)256 << 10)
#define DEFAULT_CLAIM "email"

/* An entry of the list on its way into a struct. */
struct entry {
    json_t *object;
    size_t number; /* from 1 on, for messages */
    struct hfd_arena *mem;
    struct hfd_err *err;
};

static hfd_rc wrong(const struct entry *e, const char *member, const char *what)
{
    return hfd_fail(e->err, HFD_INVALID, "issuers[%zu].%s: %s", e->number - 1, member, what);
}

static hfd_rc read_text(const struct entry *e, const char *member, hfd_slice *out)
{
    const json_t *v = json_object_get(e->object, member);

    *out = HFD_SLICE("");
    if (v == NULL)
        return HFD_OK;
    if (!json_is_string(v) || json_string_length(v) == 0)
        return wrong(e, member, "expected a text");
    *out = hfd_arena_dup(e->mem, (hfd_slice){json_string_value(v), json_string_length(v)});
    return out->p != NULL ? HFD_OK : hfd_fail_nomem(e->err, "read the issuers");
}

/* Joins the list to the text that `token create --scope` takes. */
static hfd_rc read_scopes(const struct entry *e, struct hfd_grant *out)
{
    const json_t *v = json_object_get(e->object, "scopes"), *item;
    hfd_slice text = HFD_SLICE("");
    struct hfd_err why;
    size_t i;

    if (json_array_size(v) == 0)
        return wrong(e, "scopes", "expected a list with a scope: [adapter]");
    json_array_foreach (v, i, item) {
        if (!json_is_string(item))
            return wrong(e, "scopes", "expected a list of scopes");
        text = hfd_arena_printf(e->mem, "%.*s%s%s", HFD_SLICE_FMT(text), i > 0 ? "," : "",
                                json_string_value(item));
        if (text.p == NULL)
            return hfd_fail_nomem(e->err, "read the issuers");
    }
    return hfd_grant_parse(text, out, &why) == HFD_OK ? HFD_OK : wrong(e, "scopes", why.msg);
}

static hfd_rc check_members(const struct entry *e)
{
    static const char *const known[] = {"issuer_url", "jwk_cert_file",  "jwk_cert_url", "ca_file",
                                        "audience",   "identity_claim", "scopes"};
    const char *key;
    json_t *v;
    hfd_rc rc = HFD_OK;

    json_object_foreach (e->object, key, v) {
        bool found = false;

        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
            found = found || strcmp(key, known[i]) == 0;
        if (!found && rc == HFD_OK)
            rc = hfd_fail(
                e->err, HFD_INVALID,
                "issuers[%zu]: unknown member %.60s; expected issuer_url, jwk_cert_file or "
                "jwk_cert_url, ca_file, audience, identity_claim and scopes",
                e->number - 1, key);
    }
    return rc;
}

static hfd_rc check_source(const struct entry *e, const struct hfd_issuer *out)
{
    struct hfd_err why;

    if (out->issuer_url.len == 0)
        return wrong(e, "issuer_url", "expected the issuer of its tokens");
    if ((out->jwk_cert_file.len == 0) == (out->jwk_cert_url.len == 0))
        return wrong(e, "jwk_cert_file", "expected either this or jwk_cert_url");
    if (out->jwk_cert_url.len > 0 && hfd_url_check(out->jwk_cert_url, &why) != HFD_OK)
        return wrong(e, "jwk_cert_url", why.msg);
    if (out->ca_file.len > 0 && !hfd_slice_starts(out->jwk_cert_url, HFD_SLICE("https://")))
        return wrong(e, "ca_file", "expected together with a jwk_cert_url of https:// only");
    return HFD_OK;
}

static hfd_rc read_entry(const struct entry *e, struct hfd_issuer *out)
{
    const struct {
        const char *name;
        hfd_slice *out;
    } texts[] = {{"issuer_url", &out->issuer_url},     {"jwk_cert_file", &out->jwk_cert_file},
                 {"jwk_cert_url", &out->jwk_cert_url}, {"ca_file", &out->ca_file},
                 {"audience", &out->audience},         {"identity_claim", &out->identity_claim}};
    hfd_rc rc =
        json_is_object(e->object) ? check_members(e) : wrong(e, "issuer_url", "expected an issuer");

    *out = (struct hfd_issuer){.grant = {.scopes = 0}};
    for (size_t i = 0; rc == HFD_OK && i < sizeof(texts) / sizeof(texts[0]); i++)
        rc = read_text(e, texts[i].name, texts[i].out);
    if (rc == HFD_OK && out->identity_claim.len == 0)
        out->identity_claim = HFD_SLICE(DEFAULT_CLAIM);
    if (rc == HFD_OK)
        rc = check_source(e, out);
    return rc == HFD_OK ? read_scopes(e, &out->grant) : rc;
}

hfd_rc hfd_issuers_parse(hfd_slice text, const char *name, struct hfd_arena *mem,
                         struct hfd_issuer_list *out, struct hfd_err *err)
{
    json_t *doc = NULL;
    const json_t *list;
    json_t *item;
    size_t i;
    hfd_rc rc = hfd_yaml_parse(text, name, &doc, err);

    *out = (struct hfd_issuer_list){.count = 0};
    if (rc != HFD_OK)
        return rc;
    list = json_object_get(doc, "issuers");
    if (!json_is_array(list) || json_array_size(list) == 0 || json_object_size(doc) != 1)
        rc = hfd_fail(err, HFD_INVALID, "expected `issuers:`, a list of issuers, and nothing else");
    else if (json_array_size(list) > HFD_ISSUERS_MAX)
        rc = hfd_fail(err, HFD_INVALID, "expected at most %d issuers", HFD_ISSUERS_MAX);
    if (rc == HFD_OK) {
        out->items = hfd_arena_array(mem, json_array_size(list), sizeof(*out->items));
        rc = out->items != NULL ? HFD_OK : hfd_fail_nomem(err, "read the issuers");
    }
    json_array_foreach (list, i, item) {
        const struct entry e = {.object = item, .number = i + 1, .mem = mem, .err = err};

        if (rc == HFD_OK)
            rc = read_entry(&e, &out->items[i]);
        if (rc == HFD_OK)
            out->count++;
    }
    json_decref(doc);
    return rc;
}

/* Reads a file of issuers. @return as hfd_issuers_parse, or HFD_IO */
static hfd_rc issuers_read(const char *path, struct hfd_arena *mem, struct hfd_issuer_list *out,
                           struct hfd_err *err)
{
    struct hfd_buf text;
    hfd_rc rc;

    *out = (struct hfd_issuer_list){.count = 0};
    hfd_buf_init(&text, FILE_MAX_BYTES);
    rc = hfd_file_read(path, "file of issuers", &text, err);
    if (rc == HFD_OK)
        rc = hfd_issuers_parse(hfd_buf_slice(&text), path, mem, out, err);
    hfd_buf_fini(&text);
    return rc;
}

/* ---- the parser of JSON Web Tokens: RFC 7515, RFC 7519 ---- */

#define JWT_SIGNATURE_MAX 1024 /* RSA of 8192 bits */
#define JWT_LATENESS_S 60      /* a clock that is behind takes nbf this much earlier */

struct jwt {
    hfd_slice signed_part;   /* header and claims as the signature covers them; borrows the text */
    hfd_slice alg, kid, iss; /* empty = absent */
    json_t *header, *claims; /* objects */
    unsigned char signature[JWT_SIGNATURE_MAX];
    size_t signature_len;
};

/* Decodes base64url without padding (RFC 7515, 2). */
static bool decode(hfd_slice part, unsigned char *out, size_t cap, size_t *len)
{
    return part.len > 0 && memchr(part.p, '=', part.len) == NULL &&
           hfd_base64url_decode(part, out, cap, len) == HFD_OK && *len > 0;
}

static hfd_rc decode_object(hfd_slice part, json_t **out)
{
    unsigned char text[HFD_JWT_MAX_BYTES];
    size_t len;
    hfd_rc rc;

    if (!decode(part, text, sizeof(text), &len))
        return HFD_MALFORMED;
    rc = hfd_json_parse((hfd_slice){(const char *)text, len}, out, NULL);
    if (rc == HFD_OK && !json_is_object(*out))
        rc = HFD_MALFORMED;
    return rc == HFD_NOMEM ? rc : rc == HFD_OK ? HFD_OK : HFD_MALFORMED;
}

/* Reads a member that is absent or a string. */
static bool read_member(const json_t *object, const char *key, hfd_slice *out)
{
    const json_t *v = json_object_get(object, key);

    *out = HFD_SLICE("");
    if (v == NULL)
        return true;
    if (!json_is_string(v))
        return false;
    *out = (hfd_slice){json_string_value(v), json_string_length(v)};
    return true;
}

/*
 * Parses a token.
 * @param text  outlives out
 * @param out   free with free_jwt, whatever the result is
 * @return HFD_OK, HFD_MALFORMED, HFD_NOMEM
 */
static hfd_rc parse_jwt(hfd_slice text, struct jwt *out)
{
    hfd_slice rest = text, header, claims;
    hfd_rc rc;

    *out = (struct jwt){.header = NULL};
    if (text.len > HFD_JWT_MAX_BYTES || !hfd_jwt_is(text))
        return HFD_MALFORMED;
    header = hfd_slice_cut(&rest, '.');
    claims = hfd_slice_cut(&rest, '.');
    out->signed_part = (hfd_slice){text.p, header.len + 1 + claims.len};
    if (!decode(rest, out->signature, sizeof(out->signature), &out->signature_len))
        return HFD_MALFORMED;
    rc = decode_object(header, &out->header);
    if (rc == HFD_OK)
        rc = decode_object(claims, &out->claims);
    if (rc != HFD_OK)
        return rc;
    /* A header that must be understood is not (RFC 7515, 4.1.11). */
    if (json_object_get(out->header, "crit") != NULL ||
        !read_member(out->header, "alg", &out->alg) ||
        !read_member(out->header, "kid", &out->kid) || !read_member(out->claims, "iss", &out->iss))
        return HFD_MALFORMED;
    return HFD_OK;
}

static void free_jwt(struct jwt *jwt)
{
    json_decref(jwt->header);
    json_decref(jwt->claims);
    *jwt = (struct jwt){.header = NULL};
}

/* Reads seconds since 1970, which may have a fraction. Beyond the range of years it is the end. */
static bool read_time(const struct jwt *jwt, const char *claim, int64_t *at_us)
{
    const double year_9999_s = 253402300799.0;
    const json_t *v = json_object_get(jwt->claims, claim);
    double s;

    *at_us = 0;
    if (v == NULL)
        return true;
    s = json_is_number(v) ? json_number_value(v) : (double)NAN;
    if (isnan(s))
        return false;
    s = s < 1e-6 ? 1e-6 : s > year_9999_s ? year_9999_s : s;
    *at_us = (int64_t)(s * (double)HFD_US_PER_S);
    return true;
}

/*
 * Checks exp and nbf. A token without them is valid at any time.
 * @param expires_us  exp; 0 = none
 * @return HFD_AUTH_NONE, HFD_AUTH_EXPIRED, HFD_AUTH_EARLY, HFD_AUTH_MALFORMED (no number)
 */
static enum hfd_auth_fault check_times(const struct jwt *jwt, int64_t now_us, int64_t *expires_us)
{
    int64_t from_us;

    if (!read_time(jwt, "exp", expires_us) || !read_time(jwt, "nbf", &from_us))
        return HFD_AUTH_MALFORMED;
    if (*expires_us != 0 && now_us >= *expires_us)
        return HFD_AUTH_EXPIRED;
    if (from_us > now_us + JWT_LATENESS_S * HFD_US_PER_S)
        return HFD_AUTH_EARLY;
    return HFD_AUTH_NONE;
}

static bool is_text(const json_t *v, hfd_slice text)
{
    return json_is_string(v) &&
           hfd_slice_eq((hfd_slice){json_string_value(v), json_string_length(v)}, text);
}

/* Returns true if aud is, or contains, an audience. */
static bool has_audience(const struct jwt *jwt, hfd_slice audience)
{
    const json_t *aud = json_object_get(jwt->claims, "aud"), *item;
    size_t i;

    if (!json_is_array(aud))
        return is_text(aud, audience);
    json_array_foreach (aud, i, item)
        if (is_text(item, audience))
            return true;
    return false;
}

/* Returns a claim that is a string; empty if it is absent or no string. */
static hfd_slice claim_text(const struct jwt *jwt, const char *claim)
{
    hfd_slice text;

    return read_member(jwt->claims, claim, &text) ? text : HFD_SLICE("");
}

/* ---- trust ---- */

#define NAME_MEM_BYTES 4096

struct hfd_trust *hfd_trust_new(struct hfd_issuer_list *issuers)
{
    struct hfd_trust *trust = calloc(1, sizeof(*trust));

    if (trust == NULL)
        return NULL;
    atomic_init(&trust->refs, 1);
    trust->issuers = issuers;
    trust->issuer_keys = calloc(issuers->count + 1, sizeof(*trust->issuer_keys));
    if (trust->issuer_keys != NULL)
        return trust;
    free(trust);
    return NULL;
}

void hfd_trust_unref(struct hfd_trust *trust)
{
    if (trust == NULL || atomic_fetch_sub(&trust->refs, 1) != 1)
        return;
    hfd_jwk_list_fini(&trust->operator_keys);
    for (size_t i = 0; i < trust->issuers->count; i++)
        hfd_jwk_list_fini(&trust->issuer_keys[i]);
    free(trust->issuer_keys);
    free(trust);
}

/* A check of a JWT. */
struct check {
    const struct hfd_trust *trust;
    const struct hfd_keyset *own;
    int64_t now_us;
};

/* Names the caller. The fault is IDENTITY if the claim is no name, RESERVED if it is ours. */
static hfd_rc name_caller(hfd_slice claim, const struct hfd_keyset *own,
                          struct hfd_trust_answer *out)
{
    struct hfd_arena mem;
    hfd_slice name = HFD_SLICE("");
    hfd_rc rc;

    if (hfd_identity_is_ours(claim) || hfd_keyset_has_name(own, claim)) {
        out->fault = HFD_AUTH_RESERVED;
        return HFD_OK;
    }
    hfd_arena_init(&mem, NAME_MEM_BYTES);
    rc = hfd_identity_make(claim, &mem, &name, NULL);
    if (rc == HFD_OK && (hfd_slice_is(name, HFD_IDENTITY_SYSTEM) || name.len > HFD_TRUST_NAME_MAX))
        out->fault = HFD_AUTH_IDENTITY;
    else if (rc == HFD_OK)
        (void)snprintf(out->name, sizeof(out->name), "%.*s", HFD_SLICE_FMT(name));
    hfd_arena_fini(&mem);
    return rc;
}

/* Checks all but the caller's name: the algorithm of the key, the signature, the times. */
static enum hfd_auth_fault check_signed(const struct jwt *jwt, const struct hfd_jwk *key,
                                        int64_t now_us, int64_t *expires_us)
{
    if (!hfd_slice_is(jwt->alg, key->alg))
        return HFD_AUTH_ALGORITHM;
    if (!hfd_jwk_verify(key, jwt->signed_part, jwt->signature, jwt->signature_len))
        return HFD_AUTH_SIGNATURE;
    return check_times(jwt, now_us, expires_us);
}

/* The Operator's published sample has no alg; the key says RS256. */
static hfd_rc check_operator(struct jwt *jwt, const struct check *c, const struct hfd_jwk *key,
                             struct hfd_trust_answer *out)
{
    const hfd_slice org = claim_text(jwt, "orgID");
    hfd_rc rc;

    if (json_object_get(jwt->header, "alg") == NULL)
        jwt->alg = hfd_slice_of(key->alg);
    out->fault = check_signed(jwt, key, c->now_us, &out->expires_us);
    if (out->fault != HFD_AUTH_NONE)
        return HFD_OK;
    out->grant.scopes = HFD_SCOPE_BIT(DRIVER);
    rc = name_caller(org, c->own, out);
    if (rc == HFD_OK && out->fault != HFD_AUTH_NONE) {
        out->fault = HFD_AUTH_NONE; /* an organisation that is no name does not matter */
        (void)snprintf(out->name, sizeof(out->name), "%s", HFD_IDENTITY_OPERATOR);
    }
    return rc;
}

static hfd_rc check_issued(const struct jwt *jwt, const struct check *c,
                           const struct hfd_issuer *issuer, const struct hfd_jwk *key,
                           struct hfd_trust_answer *out)
{
    out->fault = check_signed(jwt, key, c->now_us, &out->expires_us);
    if (out->fault == HFD_AUTH_NONE && issuer->audience.len > 0 &&
        !has_audience(jwt, issuer->audience))
        out->fault = HFD_AUTH_AUDIENCE;
    if (out->fault != HFD_AUTH_NONE)
        return HFD_OK;
    out->grant = issuer->grant;
    return name_caller(claim_text(jwt, issuer->identity_claim.p), c->own, out);
}

static hfd_rc check_parsed(const struct check *c, struct jwt *jwt, struct hfd_trust_answer *out)
{
    const struct hfd_trust *trust = c->trust;
    const struct hfd_jwk *key =
        jwt->kid.len > 0 ? hfd_jwk_find(&trust->operator_keys, jwt->kid) : NULL;

    if (key != NULL)
        return check_operator(jwt, c, key, out);
    out->fault = HFD_AUTH_KEY;
    for (size_t i = 0; jwt->iss.len > 0 && i < trust->issuers->count; i++) {
        const struct hfd_issuer *issuer = &trust->issuers->items[i];

        if (!hfd_slice_eq(issuer->issuer_url, jwt->iss))
            continue;
        key = hfd_jwk_find(&trust->issuer_keys[i], jwt->kid);
        if (key != NULL)
            return check_issued(jwt, c, issuer, key, out);
        if (issuer->jwk_cert_url.len > 0 && trust->issuer_keys[i].count == 0)
            out->fault = HFD_AUTH_NO_KEYS;
        else
            out->new_key = true;
    }
    return HFD_OK;
}

hfd_rc hfd_trust_check(const struct hfd_trust *trust, const struct hfd_keyset *own, hfd_slice text,
                       int64_t now_us, struct hfd_trust_answer *out)
{
    const struct check c = {trust, own, now_us};
    struct jwt jwt;
    hfd_rc rc;

    *out = (struct hfd_trust_answer){.fault = HFD_AUTH_MALFORMED};
    if (text.len > HFD_JWT_MAX_BYTES) {
        out->fault = HFD_AUTH_TOO_LONG;
        return HFD_OK;
    }
    rc = parse_jwt(text, &jwt);
    if (rc == HFD_OK)
        rc = check_parsed(&c, &jwt, out);
    free_jwt(&jwt);
    if (out->fault == HFD_AUTH_NONE && rc != HFD_OK)
        out->fault = HFD_AUTH_UNKNOWN;
    return rc == HFD_MALFORMED ? HFD_OK : rc;
}

/* ---- signers ---- */

#define MEM_MAX_BYTES ((size_t)4 << 20)
#define FETCH_US (300 * HFD_US_PER_S)
#define RETRY_US (10 * HFD_US_PER_S)
#define WANTED_US (60 * HFD_US_PER_S)
#define CONNECT_TIMEOUT_US (5 * HFD_US_PER_S)
#define TIMEOUT_US (10 * HFD_US_PER_S)

/* The source of one set of keys. */
struct source {
    const char *path; /* a file; NULL = it is a URL */
    const char *url;
    struct stat seen;         /* of the file */
    struct hfd_jwk_list keys; /* of the URL: those of the last good answer; under lock */
    /* For the thread that fetches: */
    struct hfd_signers *signers;
    struct hfd_http_server server;
    struct hfd_http_call call;
    struct hfd_http_answer answer;
    struct hfd_buf text; /* the last good answer */
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
    struct hfd_http_client *client; /* of the thread that fetches, like changed */
    bool changed;                   /* there are other keys than before */
    pthread_mutex_t lock;
    bool fresh; /* under lock: there are keys that no trust has */
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
        return hfd_jwk_list_copy(&source->keys,
                                 &trust->issuer_keys[at - s->config.operator_key_count], err);
    hfd_buf_init(&text, HFD_JWKS_MAX_BYTES);
    /* Reading a pipe would block the thread. The reader reports a missing file. */
    rc = source->seen.st_mode == 0 || S_ISREG(source->seen.st_mode)
             ? hfd_file_read(source->path, "key file", &text, err)
             : hfd_fail(err, HFD_INVALID, "%.120s: it is not a regular file", source->path);
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
    rc = issuers_read(s->config.issuers_file, &s->mem, &s->issuers, &why);
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

        *source = (struct source){.signers = s,
                                  .server = {.connect_timeout_us = CONNECT_TIMEOUT_US,
                                             .timeout_us = TIMEOUT_US,
                                             .answer_max_bytes = HFD_JWKS_MAX_BYTES,
                                             .closes = true}};
        hfd_buf_init(&source->text, HFD_JWKS_MAX_BYTES);
        if (issuer == NULL)
            source->path = s->config.operator_keys[i];
        else if (issuer->jwk_cert_file.len > 0)
            source->path = issuer->jwk_cert_file.p;
        else
            source->url = issuer->jwk_cert_url.p;
        if (issuer != NULL && issuer->ca_file.len > 0)
            source->server.ca_file = issuer->ca_file.p;
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
    pthread_mutex_init(&s->lock, NULL);
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

/* Ends a request, done or not. */
static void drop_request(struct source *source)
{
    hfd_http_call_end(&source->call);
    hfd_http_answer_fini(&source->answer);
}

void hfd_signers_free(struct hfd_signers *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->count; i++) {
        drop_request(&s->sources[i]);
        hfd_buf_fini(&s->sources[i].text);
        hfd_jwk_list_fini(&s->sources[i].keys);
    }
    hfd_http_client_close(&s->client);
    pthread_mutex_destroy(&s->lock);
    hfd_arena_fini(&s->mem);
    free(s);
}

bool hfd_signers_any(const struct hfd_signers *s)
{
    return s->count > 0;
}

hfd_rc hfd_signers_prepare(struct hfd_signers *s, struct hfd_err *err)
{
    return s->client != NULL ? HFD_OK : hfd_http_client_open(&hfd_clock_system, 0, &s->client, err);
}

/* ---- fetching ---- */

/* Judges an answer. @param keys  gives; those in it */
static hfd_rc read_answer(const struct source *source, struct hfd_jwk_list *keys,
                          struct hfd_err *err)
{
    const struct hfd_http_answer *a = &source->answer;
    struct hfd_err why;
    hfd_rc rc;

    if (a->body.rc == HFD_LIMIT)
        return hfd_fail(err, HFD_IO, "%.120s: larger than %zu bytes", source->url,
                        a->body.max_bytes);
    if (a->rc == HFD_NOMEM)
        return hfd_fail_nomem(err, "fetch a document");
    if (a->rc != HFD_OK)
        return hfd_fail(err, HFD_IO, "%.120s: %s", source->url, a->why);
    if (a->status != 200)
        return hfd_fail(err, HFD_IO, "%.120s: expected status 200, got %d", source->url, a->status);
    rc = hfd_jwk_parse_set(hfd_buf_slice(&a->body), keys, &why);
    return rc == HFD_OK ? rc : hfd_fail(err, rc, "%.120s: %.120s", source->url, why.msg);
}

/* Takes an answer up, with its keys ready for use: a large set takes time. */
static void finish(void *ctx)
{
    struct source *source = ctx;
    struct hfd_signers *s = source->signers;
    struct hfd_jwk_list keys = {.count = 0}, before;
    struct hfd_err err = {0};
    const hfd_rc rc = read_answer(source, &keys, &err);
    const bool changed = rc == HFD_OK && !hfd_slice_eq(hfd_buf_slice(&source->answer.body),
                                                       hfd_buf_slice(&source->text));

    source->due_us = mono_us() + (rc == HFD_OK ? FETCH_US : RETRY_US);
    if (rc != HFD_OK && !source->failing)
        HFD_LOG(HFD_LOG_WARN,
                source->text.len > 0
                    ? "the keys of an issuer cannot be fetched; the last ones stay in use"
                    : "the keys of an issuer cannot be fetched; its callers are answered with 503",
                HFD_LOG_CSTR("error", err.msg));
    source->failing = rc != HFD_OK;
    if (changed) {
        hfd_buf_fini(&source->text);
        source->text = source->answer.body;
        source->answer.body = (struct hfd_buf){0};
        pthread_mutex_lock(&s->lock);
        before = source->keys;
        source->keys = keys;
        s->fresh = true;
        pthread_mutex_unlock(&s->lock);
        keys = before;
    }
    hfd_jwk_list_fini(&keys);
    drop_request(source);
    s->changed = s->changed || changed;
}

static void begin(struct hfd_signers *s, struct source *source)
{
    source->fetched_us = mono_us();
    source->due_us = source->fetched_us + RETRY_US;
    source->call = (struct hfd_http_call){.server = &source->server,
                                          .method = "GET",
                                          .url = {hfd_slice_of(source->url)},
                                          .done = finish,
                                          .ctx = source,
                                          .answer = &source->answer};
    (void)!hfd_http_call_start(s->client, &source->call);
}

static bool is_due(const struct source *source, bool wanted)
{
    const int64_t now_us = mono_us();

    return !hfd_http_call_is_open(&source->call) &&
           (source->fetched_us == 0 || now_us >= source->due_us ||
            (wanted && now_us - source->fetched_us >= WANTED_US));
}

bool hfd_signers_fetch(struct hfd_signers *s, bool wanted, int64_t max_us)
{
    s->changed = false;
    for (size_t i = 0; i < s->count; i++)
        if (s->sources[i].url != NULL && is_due(&s->sources[i], wanted))
            begin(s, &s->sources[i]);
    (void)hfd_http_client_run(s->client, max_us);
    return s->changed;
}

void hfd_signers_wake(struct hfd_signers *s)
{
    hfd_http_client_wake(s->client);
}

/* ---- looking ---- */

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

struct hfd_trust *hfd_signers_look(struct hfd_signers *s)
{
    struct hfd_trust *trust = NULL;

    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->count; i++)
        if (s->sources[i].path != NULL)
            s->fresh = is_changed(&s->sources[i]) || s->fresh;
    if (s->fresh)
        trust = make_trust(s);
    s->fresh = s->fresh && trust == NULL;
    pthread_mutex_unlock(&s->lock);
    return trust;
}
