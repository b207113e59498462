/* See etag.h. */
#include "driver/base/etag.h"

#include <sodium.h>

#define TAG_BYTES 16

hfd_rc hfd_etag_make(const hfd_slice *texts, size_t count, struct hfd_arena *mem, hfd_slice *out,
                     struct hfd_err *err)
{
    unsigned char hash[TAG_BYTES];
    crypto_generichash_state state;
    char hex[2 * TAG_BYTES + 1];

    (void)crypto_generichash_init(&state, NULL, 0, sizeof(hash));
    for (size_t i = 0; i < count; i++) {
        const uint64_t len = texts[i].len;

        (void)crypto_generichash_update(&state, (const unsigned char *)&len, sizeof(len));
        (void)crypto_generichash_update(&state, (const unsigned char *)texts[i].p, texts[i].len);
    }
    (void)crypto_generichash_final(&state, hash, sizeof(hash));
    (void)sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash));
    *out = hfd_arena_printf(mem, "\"%s\"", hex);
    return out->p != NULL ? HFD_OK : hfd_fail_nomem(err, "answer a request");
}

/* ---- lists ---- */

static bool is_any(hfd_slice list)
{
    return hfd_slice_is(hfd_slice_trim(list), "*");
}

static void skip(hfd_slice *rest, const char *chars)
{
    while (rest->len > 0 && strchr(chars, rest->p[0]) != NULL && rest->p[0] != '\0')
        *rest = (hfd_slice){rest->p + 1, rest->len - 1};
}

/*
 * Takes the first tag off a list.
 * @param tag  with its quotes
 * @return false: there is none; what is left is no tag
 */
static bool next_tag(hfd_slice *rest, hfd_slice *tag, bool *weak)
{
    size_t len = 1;

    skip(rest, " \t,");
    *weak = hfd_slice_starts(*rest, HFD_SLICE("W/"));
    *tag = *weak ? (hfd_slice){rest->p + 2, rest->len - 2} : *rest;
    if (tag->len == 0 || tag->p[0] != '"')
        return false;
    while (len < tag->len && (unsigned char)tag->p[len] > ' ' && tag->p[len] != '"' &&
           tag->p[len] != 0x7f)
        len++;
    if (len == tag->len || tag->p[len] != '"')
        return false;
    *rest = (hfd_slice){tag->p + len + 1, tag->len - len - 1};
    tag->len = len + 1;
    skip(rest, " \t");
    return rest->len == 0 || rest->p[0] == ',';
}

static bool has_tag(hfd_slice list, hfd_slice etag, bool strong)
{
    hfd_slice tag;
    bool weak;

    while (etag.len > 0 && next_tag(&list, &tag, &weak))
        if (hfd_slice_eq(tag, etag) && !(weak && strong))
            return true;
    return false;
}

static bool is_list(hfd_slice list)
{
    hfd_slice rest = list, tag;
    bool weak, some = false;

    while (next_tag(&rest, &tag, &weak))
        some = true;
    return is_any(list) || (some && rest.len == 0);
}

bool hfd_etag_matches(hfd_slice if_none_match, hfd_slice etag)
{
    return is_any(if_none_match) || has_tag(if_none_match, etag, false);
}

/* ---- preconditions ---- */

hfd_rc hfd_precondition_parse(const struct hfd_precondition *m, struct hfd_err *err)
{
    static const char wrong[] = "%s: expected * or a list of tags in double quotes, like \"a\", "
                                "\"b\"";

    if (m->if_match.len > 0 && !is_list(m->if_match))
        return hfd_fail(err, HFD_BAD_REQUEST, wrong, "If-Match");
    if (m->if_none_match.len > 0 && !is_list(m->if_none_match))
        return hfd_fail(err, HFD_BAD_REQUEST, wrong, "If-None-Match");
    return HFD_OK;
}

hfd_rc hfd_precondition_check(const struct hfd_precondition *m,
                              const struct hfd_precondition_on *is, struct hfd_err *err)
{
    const bool any = is_any(m->if_match);

    if (m->if_match.len > 0 && !(any && is->exists) && !has_tag(m->if_match, is->etag, true) &&
        !has_tag(m->if_match, is->alias, true))
        return hfd_fail(err, HFD_PRECONDITION, "If-Match: %s%.*s: nothing was done",
                        !is->exists         ? "there is no such resource"
                        : is->etag.len == 0 ? "the resource has no tag now"
                                            : "the tag of the resource is ",
                        HFD_SLICE_FMT(is->etag));
    if (m->if_none_match.len > 0 && is->exists && hfd_etag_matches(m->if_none_match, is->etag))
        return hfd_fail(err, HFD_PRECONDITION,
                        "If-None-Match: the resource exists%s: nothing was done",
                        is_any(m->if_none_match) ? "" : ", and has a tag of the list");
    return HFD_OK;
}

hfd_rc hfd_precondition_digest(const struct hfd_precondition *m, struct hfd_arena *mem,
                               hfd_slice *out, struct hfd_err *err)
{
    const hfd_slice texts[] = {m->if_match, m->if_none_match};

    *out = HFD_SLICE("");
    return m->if_match.len + m->if_none_match.len == 0 ? HFD_OK
                                                       : hfd_etag_make(texts, 2, mem, out, err);
}
