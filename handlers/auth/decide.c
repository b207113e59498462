/* See decide.h. */
#include "handlers/auth/decide.h"

#include "driver/base/check.h"
#include "driver/base/slice.h"
#include "handlers/auth/scope.h"

#include <sodium.h>

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
    (void)snprintf(text, HFD_AUTH_TEXT_MAX, "the caller lacks the scope %s", hfd_need_text(need));
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

void hfd_credential_wipe(char basic[HFD_BASIC_MAX_BYTES], hfd_slice secret)
{
    if (secret.p > basic && secret.p <= basic + HFD_BASIC_MAX_BYTES)
        sodium_memzero(basic, (size_t)(secret.p - basic) + secret.len);
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
