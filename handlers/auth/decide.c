/* See decide.h. */
#include "handlers/auth/decide.h"

#include "driver/base/check.h"
#include "driver/base/slice.h"

#include <sodium.h>

/* ---- scopes ---- */

#define ADAPTER_NAME_MAX 63

#define SCOPE_TEXT_(name, text, may) [HFD_SCOPE_##name] = (text),
static const char *const scope_texts[] = {HFD_SCOPE_LIST(SCOPE_TEXT_)};
#undef SCOPE_TEXT_

#define NEED_ROW_(name, text, scopes) [HFD_NEED_##name] = {(text), (scopes)},
static const struct {
    const char *text;
    hfd_scopes scopes;
} needs[HFD_NEED_COUNT] = {HFD_NEED_LIST(NEED_ROW_)};
#undef NEED_ROW_

bool hfd_need_is_met(enum hfd_need need, hfd_scopes scopes)
{
    HFD_ASSERT((unsigned)need < HFD_NEED_COUNT);
    return (scopes & (needs[need].scopes | HFD_SCOPE_BIT(ADMIN))) != 0;
}

/* Returns the scope that a refused caller lacks: "fleet-read". */
static const char *need_text(enum hfd_need need)
{
    HFD_ASSERT((unsigned)need < HFD_NEED_COUNT);
    return needs[need].text;
}

/* Cuts the next scope off a list. @return false if it was the last one */
static bool next_scope(hfd_slice *list, hfd_slice *out)
{
    const char *comma = list->len > 0 ? memchr(list->p, ',', list->len) : NULL;
    const size_t len = comma != NULL ? (size_t)(comma - list->p) : list->len;

    *out = hfd_slice_trim((hfd_slice){list->p, len});
    *list = comma != NULL ? (hfd_slice){comma + 1, list->len - len - 1} : HFD_SLICE("");
    return comma != NULL;
}

/* Returns the name in "adapter=NAME"; empty for another scope. */
static hfd_slice adapter_of(hfd_slice scope)
{
    const hfd_slice lead = HFD_SLICE("adapter=");

    return hfd_slice_starts(scope, lead) ? (hfd_slice){scope.p + lead.len, scope.len - lead.len}
                                         : HFD_SLICE("");
}

static bool is_adapter_name(hfd_slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!hfd_is_alnum(s.p[i]) && s.p[i] != '-' && s.p[i] != '_' && s.p[i] != '.')
            return false;
    return s.len > 0 && s.len <= ADAPTER_NAME_MAX;
}

static hfd_scopes find(hfd_slice name)
{
    const hfd_slice adapter = adapter_of(name);

    if (adapter.len > 0)
        return is_adapter_name(adapter) ? HFD_SCOPE_BIT(ADAPTER) : 0;
    for (unsigned i = 0; i < HFD_SCOPE_COUNT; i++)
        if (hfd_slice_is(name, scope_texts[i]))
            return 1u << i;
    return 0;
}

hfd_rc hfd_grant_parse(hfd_slice text, struct hfd_grant *out, struct hfd_err *err)
{
    struct hfd_grant grant = {.scopes = 0};
    hfd_slice rest = text, scope;
    bool more = true, any_adapter = false;

    *out = grant;
    while (more) {
        hfd_scopes found;

        more = next_scope(&rest, &scope);
        found = find(scope);
        if (found == 0)
            return hfd_fail(err, HFD_INVALID,
                            "expected scopes of driver, fleet-read, adapter, adapter=NAME, "
                            "fleet-write, view and admin, got \"%.*s\"",
                            (int)(scope.len < 40 ? scope.len : 40), scope.p != NULL ? scope.p : "");
        grant.scopes |= found;
        if (adapter_of(scope).len > 0)
            grant.adapters = text;
        else
            any_adapter = any_adapter || found == HFD_SCOPE_BIT(ADAPTER);
    }
    if (any_adapter && grant.adapters.len > 0)
        return hfd_fail(err, HFD_INVALID,
                        "expected the scope adapter either without a name or with names only");
    *out = grant;
    return HFD_OK;
}

static void add_scope(struct hfd_buf *b, hfd_slice name, bool json, const char **lead)
{
    hfd_buf_addf(b, json ? "%s\"%.*s\"" : "%s%.*s", *lead, HFD_SLICE_FMT(name));
    *lead = ",";
}

void hfd_grant_format(struct hfd_buf *b, const struct hfd_grant *grant, bool json)
{
    const char *lead = "";

    for (unsigned i = 0; i < HFD_SCOPE_COUNT; i++) {
        hfd_slice rest = grant->adapters, scope;
        bool more = i == HFD_SCOPE_ADAPTER && rest.len > 0;

        if ((grant->scopes & (1u << i)) != 0 && !more)
            add_scope(b, hfd_slice_of(scope_texts[i]), json, &lead);
        while (more) {
            more = next_scope(&rest, &scope);
            if (adapter_of(scope).len > 0)
                add_scope(b, scope, json, &lead);
        }
    }
}

bool hfd_grant_has_adapter(const struct hfd_grant *grant, hfd_slice adapter)
{
    hfd_slice rest = grant->adapters, scope;
    bool more = rest.len > 0;

    if (!more || (grant->scopes & HFD_SCOPE_BIT(ADMIN)) != 0)
        return true;
    while (more) {
        more = next_scope(&rest, &scope);
        if (adapter_of(scope).len > 0 && hfd_slice_eq(adapter_of(scope), adapter))
            return true;
    }
    return false;
}

/* ---- decide ---- */

#define FAULT_ROW_(name, label, text) [HFD_AUTH_##name] = {(label), (text)},
static const struct {
    const char *label, *text;
} faults[HFD_AUTH_FAULT_COUNT] = {HFD_AUTH_FAULT_LIST(FAULT_ROW_)};
#undef FAULT_ROW_

const char *hfd_auth_fault_label(enum hfd_auth_fault fault)
{
    HFD_ASSERT((unsigned)fault < HFD_AUTH_FAULT_COUNT);
    return faults[fault].label;
}

enum hfd_access hfd_auth_decide(bool on, enum hfd_need need, const struct hfd_caller *caller,
                                char text[HFD_AUTH_TEXT_MAX])
{
    text[0] = '\0';
    HFD_ASSERT(need != HFD_NEED_UNSET);
    if (!on || need == HFD_NEED_OPEN)
        return HFD_ACCESS_ALLOWED;
    if (caller->fault != HFD_AUTH_NONE) {
        (void)snprintf(text, HFD_AUTH_TEXT_MAX, "%s", faults[caller->fault].text);
        return caller->fault == HFD_AUTH_NO_KEYS ? HFD_ACCESS_LATER : HFD_ACCESS_UNKNOWN;
    }
    if (hfd_need_is_met(need, caller->grant.scopes))
        return HFD_ACCESS_ALLOWED;
    (void)snprintf(text, HFD_AUTH_TEXT_MAX, "the caller lacks the scope %s", need_text(need));
    return HFD_ACCESS_FORBIDDEN;
}

/* ---- credential ---- */

/* Cuts "Scheme " off a value; the case of a scheme does not count (RFC 9110, 11.1). */
static bool cut_scheme(hfd_slice *value, hfd_slice scheme)
{
    if (value->len <= scheme.len || value->p[scheme.len] != ' ' ||
        !hfd_slice_ieq((hfd_slice){value->p, scheme.len}, scheme))
        return false;
    *value = hfd_slice_trim((hfd_slice){value->p + scheme.len, value->len - scheme.len});
    return true;
}

static bool read_basic(hfd_slice text, char basic[HFD_BASIC_MAX_BYTES], hfd_slice *out)
{
    const char *colon;
    size_t len = 0;

    if (sodium_base642bin((unsigned char *)basic, HFD_BASIC_MAX_BYTES, text.p, text.len, NULL, &len,
                          NULL, sodium_base64_VARIANT_ORIGINAL) != 0)
        len = 0;
    colon = len > 0 ? memchr(basic, ':', len) : NULL;
    if (colon == NULL) {
        sodium_memzero(basic, HFD_BASIC_MAX_BYTES);
        return false;
    }
    *out = (hfd_slice){colon + 1, len - (size_t)(colon + 1 - basic)};
    return true;
}

enum hfd_auth_fault hfd_credential_read(hfd_slice value, char basic[HFD_BASIC_MAX_BYTES],
                                        hfd_slice *out)
{
    hfd_slice rest = value;

    *out = HFD_SLICE_NONE;
    if (value.len == 0)
        return HFD_AUTH_ABSENT;
    if (cut_scheme(&rest, HFD_SLICE("Bearer")))
        *out = rest;
    else if (basic == NULL || !cut_scheme(&rest, HFD_SLICE("Basic")) ||
             !read_basic(rest, basic, out))
        return HFD_AUTH_UNREADABLE;
    return out->len > 0 ? HFD_AUTH_NONE : HFD_AUTH_UNREADABLE;
}

/* Returns the length of "t" or "%74" at the start of a segment; 0 = it is another one. */
static size_t mark_length(hfd_slice s)
{
    if (s.len >= 2 && s.p[0] == 't' && s.p[1] == '/')
        return 1;
    return s.len >= 4 && memcmp(s.p, "%74/", 4) == 0 ? 3 : 0;
}

void hfd_credential_cut(hfd_slice *path, hfd_slice *token)
{
    hfd_slice rest = *path;
    const char *end;
    size_t mark;

    *token = HFD_SLICE_NONE;
    while (rest.len > 0 && rest.p[0] == '/')
        rest = (hfd_slice){rest.p + 1, rest.len - 1};
    mark = mark_length(rest);
    if (rest.len == path->len || mark == 0)
        return;
    rest = (hfd_slice){rest.p + mark, rest.len - mark};
    while (rest.len > 0 && rest.p[0] == '/')
        rest = (hfd_slice){rest.p + 1, rest.len - 1};
    if (rest.len == 0)
        return;
    end = memchr(rest.p, '/', rest.len);
    *token = (hfd_slice){rest.p, end != NULL ? (size_t)(end - rest.p) : rest.len};
    *path = end != NULL ? (hfd_slice){end, rest.len - token->len} : HFD_SLICE("/");
}
