/* See etag.h. */
#include "handlers/http/etag.h"

hfd_rc hfd_etag_make(hfd_slice body, struct hfd_arena *mem, hfd_slice *out, struct hfd_err *err)
{
    *out = hfd_arena_printf(mem, "\"%016llx-%zx\"",
                            (unsigned long long)hfd_slice_hash(HFD_HASH_START, body), body.len);
    return out->p != NULL ? HFD_OK : hfd_fail_nomem(err, "answer a request");
}

/* One member of the list. A weak tag matches as well: the comparison is the weak one. */
static bool is_tag(hfd_slice text, hfd_slice etag)
{
    text = hfd_slice_trim(text);
    if (hfd_slice_is(text, "*"))
        return true;
    if (hfd_slice_starts(text, HFD_SLICE("W/")))
        text = (hfd_slice){text.p + 2, text.len - 2};
    return hfd_slice_eq(text, etag);
}

bool hfd_etag_matches(hfd_slice if_none_match, hfd_slice etag)
{
    while (if_none_match.len > 0) {
        const char *comma = memchr(if_none_match.p, ',', if_none_match.len);
        const size_t len = comma != NULL ? (size_t)(comma - if_none_match.p) : if_none_match.len;

        if (is_tag((hfd_slice){if_none_match.p, len}, etag))
            return true;
        if_none_match = (hfd_slice){if_none_match.p + len + (comma != NULL),
                                    if_none_match.len - len - (comma != NULL)};
    }
    return false;
}
