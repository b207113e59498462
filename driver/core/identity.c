/* See identity.h. */
#include "driver/core/identity.h"

static bool is_visible(hfd_slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] <= ' ' || s.p[i] > '~')
            return false;
    return true;
}

/* At most one @, with something on both sides of it. */
static bool is_name(hfd_slice s, const char *at)
{
    if (s.len == 0 || !is_visible(s))
        return false;
    return at == NULL || (at != s.p && at != s.p + s.len - 1 && memrchr(s.p, '@', s.len) == at);
}

hfd_rc hfd_identity_make(hfd_slice value, struct hfd_arena *mem, hfd_slice *out,
                         struct hfd_err *err)
{
    const hfd_slice s = hfd_slice_trim(value);
    const char *at = s.len > 0 ? memchr(s.p, '@', s.len) : NULL;
    const size_t len = s.len + (at == NULL ? sizeof(HFD_IDENTITY_DOMAIN) : 0);

    if (len > HFD_IDENTITY_MAX_BYTES || !is_name(s, at)) {
        *out = HFD_SLICE(HFD_IDENTITY_SYSTEM);
        return HFD_OK;
    }
    *out = at != NULL ? hfd_arena_dup(mem, s)
                      : hfd_arena_printf(mem, "%.*s@" HFD_IDENTITY_DOMAIN, HFD_SLICE_FMT(s));
    return out->p != NULL ? HFD_OK
                          : hfd_fail(err, HFD_NOMEM, "out of memory for the caller's name");
}
