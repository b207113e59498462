/* See issuers.h. */
#include "handlers/auth/issuers.h"

#include "driver/base/file.h"
#include "driver/base/url.h"
#include "driver/base/yamlx.h"

#include <jansson.h>

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

static hfd_rc read_scopes(const struct entry *e, hfd_scopes *out)
{
    const json_t *v = json_object_get(e->object, "scopes"), *item;
    hfd_scopes one;
    size_t i;

    *out = 0;
    json_array_foreach (v, i, item) {
        if (!json_is_string(item) ||
            hfd_scopes_parse((hfd_slice){json_string_value(item), json_string_length(item)}, &one,
                             NULL) != HFD_OK)
            return wrong(
                e, "scopes",
                "expected a list of driver, fleet-read, adapter, fleet-write, view, admin");
        *out |= one;
    }
    return *out != 0 ? HFD_OK : wrong(e, "scopes", "expected a list with a scope: [adapter]");
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

    *out = (struct hfd_issuer){.scopes = 0};
    for (size_t i = 0; rc == HFD_OK && i < sizeof(texts) / sizeof(texts[0]); i++)
        rc = read_text(e, texts[i].name, texts[i].out);
    if (rc == HFD_OK && out->identity_claim.len == 0)
        out->identity_claim = HFD_SLICE(DEFAULT_CLAIM);
    if (rc == HFD_OK)
        rc = check_source(e, out);
    return rc == HFD_OK ? read_scopes(e, &out->scopes) : rc;
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

hfd_rc hfd_issuers_read(const char *path, struct hfd_arena *mem, struct hfd_issuer_list *out,
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
