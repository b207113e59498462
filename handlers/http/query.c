/* See query.h. */
#include "handlers/http/query.h"

/* Decodes a value. Returns false for a bad escape. */
static bool decode(hfd_slice in, struct hfd_arena *mem, hfd_slice *out)
{
    char *text = hfd_arena_alloc(mem, in.len + 1);
    size_t n = 0;

    *out = (hfd_slice){text, 0};
    if (text == NULL)
        return true;
    for (size_t i = 0; i < in.len; i++) {
        char c = in.p[i];

        if (c == '+') {
            c = ' ';
        } else if (c == '%') {
            if (in.len - i < 3 || hfd_hex_value(in.p[i + 1]) < 0 || hfd_hex_value(in.p[i + 2]) < 0)
                return false;
            c = (char)(hfd_hex_value(in.p[i + 1]) * 16 + hfd_hex_value(in.p[i + 2]));
            i += 2;
        }
        text[n++] = c;
    }
    out->len = n;
    return true;
}

/* Finds the raw value; p is NULL if absent, and not NULL for "name" and "name=". */
static hfd_slice find(hfd_slice query, const char *name)
{
    const size_t n = strlen(name);
    hfd_slice found = HFD_SLICE_NONE;

    while (query.len > 0) {
        const char *end = memchr(query.p, '&', query.len);
        const size_t len = end != NULL ? (size_t)(end - query.p) : query.len;

        if (len >= n && memcmp(query.p, name, n) == 0 && (len == n || query.p[n] == '='))
            found = (hfd_slice){query.p + n + (len > n), len - n - (len > n)};
        query.p += len + (end != NULL);
        query.len -= len + (end != NULL);
    }
    return found;
}

hfd_rc hfd_query_get(hfd_slice query, const char *name, struct hfd_arena *mem, hfd_slice *out,
                     struct hfd_err *err)
{
    const hfd_slice raw = find(query, name);

    *out = HFD_SLICE_NONE;
    if (raw.p == NULL)
        return HFD_OK;
    if (!decode(raw, mem, out)) {
        *out = HFD_SLICE_NONE;
        return hfd_fail_field(err, HFD_BAD_REQUEST, name,
                              "%s: a %% stands before two hexadecimal digits", name);
    }
    return out->p != NULL ? HFD_OK : hfd_fail_nomem(err, "read a query");
}

/* Takes the text up to the next '&' off. */
static hfd_slice take_field(hfd_slice *rest)
{
    const char *end = memchr(rest->p, '&', rest->len);
    const size_t len = end != NULL ? (size_t)(end - rest->p) : rest->len;
    const hfd_slice field = {rest->p, len};

    *rest = (hfd_slice){rest->p + len + (end != NULL), rest->len - len - (end != NULL)};
    return field;
}

hfd_rc hfd_query_next(hfd_slice *rest, struct hfd_arena *mem, struct hfd_query_param *out,
                      struct hfd_err *err)
{
    hfd_slice name = HFD_SLICE(""), value = HFD_SLICE("");

    while (rest->len > 0 && name.len + value.len == 0) {
        const char *equals;

        name = take_field(rest);
        equals = name.len > 0 ? memchr(name.p, '=', name.len) : NULL;
        if (equals == NULL)
            continue;
        value = (hfd_slice){equals + 1, name.len - (size_t)(equals - name.p) - 1};
        name.len -= value.len + 1;
    }
    if (name.len + value.len == 0)
        return HFD_NOT_FOUND;
    if (!decode(name, mem, &out->name) || !decode(value, mem, &out->value))
        return hfd_fail(err, HFD_BAD_REQUEST,
                        "the query has a '%%' that is not followed by two hexadecimal digits");
    return out->name.p != NULL && out->value.p != NULL ? HFD_OK
                                                       : hfd_fail_nomem(err, "read a query");
}

hfd_rc hfd_query_i64(hfd_slice query, const struct hfd_query_number *number, struct hfd_arena *mem,
                     int64_t *out, struct hfd_err *err)
{
    hfd_slice text;
    int64_t v;
    hfd_rc rc = hfd_query_get(query, number->name, mem, &text, err);

    if (rc != HFD_OK || text.len == 0)
        return rc;
    if (hfd_parse_i64(text, 1, number->max, &v, NULL) != HFD_OK)
        return hfd_fail_field(err, HFD_INVALID, number->name,
                              "%s must be an integer between 1 and %lld", number->name,
                              (long long)number->max);
    *out = v;
    return HFD_OK;
}

#define PAGE_SIZE_DEFAULT 100
#define PAGE_SIZE_MAX 500
#define PAGE_MAX INT64_C(2147483647) /* an integer of 32 bits, as documented */

hfd_rc hfd_query_page(hfd_slice query, struct hfd_arena *mem, struct hfd_query_page *out,
                      struct hfd_err *err)
{
    static const struct hfd_query_number page = {"page", PAGE_MAX}, size = {"size", PAGE_SIZE_MAX},
                                         page_size = {"pageSize", PAGE_SIZE_MAX};
    hfd_rc rc;

    *out = (struct hfd_query_page){1, PAGE_SIZE_DEFAULT};
    rc = hfd_query_i64(query, &page, mem, &out->page, err);
    if (rc == HFD_OK)
        rc = hfd_query_i64(query, &size, mem, &out->size, err);
    return rc == HFD_OK ? hfd_query_i64(query, &page_size, mem, &out->size, err) : rc;
}
