/* See scope.h. */
#include "handlers/auth/scope.h"

#include "driver/base/check.h"

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

const char *hfd_scope_text(enum hfd_scope scope)
{
    HFD_ASSERT((unsigned)scope < HFD_SCOPE_COUNT);
    return scope_texts[scope];
}

static hfd_scopes find(hfd_slice name)
{
    for (unsigned i = 0; i < HFD_SCOPE_COUNT; i++)
        if (hfd_slice_is(name, scope_texts[i]))
            return 1u << i;
    return 0;
}

hfd_rc hfd_scopes_parse(hfd_slice text, hfd_scopes *out, struct hfd_err *err)
{
    hfd_scopes scopes = 0;

    *out = 0;
    for (bool more = true; more;) {
        const char *comma = text.len > 0 ? memchr(text.p, ',', text.len) : NULL;
        const size_t len = comma != NULL ? (size_t)(comma - text.p) : text.len;
        const hfd_scopes found = find(hfd_slice_trim((hfd_slice){text.p, len}));

        if (found == 0)
            return hfd_fail(err, HFD_INVALID,
                            "expected scopes of driver, fleet-read, adapter, fleet-write, view and "
                            "admin, got \"%.*s\"",
                            (int)(len < 40 ? len : 40), text.p != NULL ? text.p : "");
        scopes |= found;
        more = comma != NULL;
        if (more)
            text = (hfd_slice){comma + 1, text.len - len - 1};
    }
    *out = scopes;
    return HFD_OK;
}

void hfd_scopes_format(struct hfd_buf *b, hfd_scopes scopes)
{
    const char *lead = "";

    for (unsigned i = 0; i < HFD_SCOPE_COUNT; i++) {
        if ((scopes & (1u << i)) == 0)
            continue;
        hfd_buf_addf(b, "%s%s", lead, scope_texts[i]);
        lead = ",";
    }
}
