/* See scope.h. */
#include "handlers/auth/scope.h"

#include "driver/base/check.h"

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

const char *hfd_need_text(enum hfd_need need)
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
