/* See query.h. */
#include "handlers/http/query.h"

#include "driver/base/arena.h"
#include "driver/base/buf.h"
#include "driver/base/foreign.h"
#include "driver/base/jsonx.h"
#include "driver/fleet/fleet.h"
#include "store/kind.h"

/* ---- parameters ---- */

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

/* Finds the raw value of the first of that name; p is NULL if absent, and not NULL for "name" and
 * "name=". */
static hfd_slice find(hfd_slice query, const char *name)
{
    const size_t n = strlen(name);

    while (query.len > 0) {
        const hfd_slice field = hfd_slice_cut(&query, '&');

        if (field.len >= n && memcmp(field.p, name, n) == 0 &&
            (field.len == n || field.p[n] == '='))
            return (hfd_slice){field.p + n + (field.len > n), field.len - n - (field.len > n)};
    }
    return HFD_SLICE_NONE;
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

hfd_rc hfd_query_wait(hfd_slice value, int64_t *wait_us, struct hfd_err *err)
{
    if (hfd_parse_duration_us(value, wait_us, NULL) == HFD_OK &&
        *wait_us <= HFD_WAIT_MAX_S * HFD_US_PER_S)
        return HFD_OK;
    return hfd_fail_field(err, HFD_INVALID, "wait",
                          "wait must be a time of at most %ds, as 30s or 500ms", HFD_WAIT_MAX_S);
}

/* Takes the text up to the next `end` off that stands in no quotes. */
static hfd_slice take_unquoted(hfd_slice *rest, char end)
{
    bool quoted = false;
    hfd_slice item;
    size_t n = 0;

    while (n < rest->len && (quoted || rest->p[n] != end)) {
        quoted = quoted != (rest->p[n] == '"');
        n += quoted && rest->p[n] == '\\' && n + 1 < rest->len ? 2 : 1;
    }
    item = hfd_slice_trim((hfd_slice){rest->p, n});
    n += n < rest->len;
    *rest = (hfd_slice){rest->p + n, rest->len - n};
    return item;
}

/* RFC 7240, 2: the first one of a name counts. A value in quotes is the same without. */
bool hfd_prefer_wait(hfd_slice value, int *wait_s)
{
    *wait_s = 0;
    while (value.len > 0) {
        hfd_slice item = take_unquoted(&value, ','), pair = take_unquoted(&item, ';');
        const hfd_slice name = take_unquoted(&pair, '=');

        if (!hfd_slice_ieq(name, HFD_SLICE("wait")))
            continue;
        pair = hfd_slice_trim(pair);
        if (pair.len > 2 && pair.p[0] == '"' && pair.p[pair.len - 1] == '"')
            pair = (hfd_slice){pair.p + 1, pair.len - 2};
        for (size_t i = 0; i < pair.len; i++) {
            if (pair.p[i] < '0' || pair.p[i] > '9') {
                *wait_s = 0;
                break;
            }
            *wait_s = *wait_s * 10 + (pair.p[i] - '0');
            *wait_s = *wait_s < HFD_WAIT_MAX_S ? *wait_s : HFD_WAIT_MAX_S;
        }
        return true;
    }
    return false;
}

hfd_rc hfd_query_next(hfd_slice *rest, struct hfd_arena *mem, struct hfd_query_param *out,
                      struct hfd_err *err)
{
    hfd_slice name = HFD_SLICE(""), value = HFD_SLICE("");

    while (rest->len > 0 && name.len + value.len == 0) {
        const char *equals;

        name = hfd_slice_cut(rest, '&');
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

/* ---- fields ---- */

#define FIELDS_MAX 64
#define PARTS_MAX 12

struct path {
    hfd_slice parts[PARTS_MAX];
    size_t count;
};

struct hfd_fields {
    struct path paths[FIELDS_MAX + 1];
    size_t count;
};

/* Members by name; those of user documents can have any name. */
static const struct member {
    const char *name, *below; /* space-separated; NULL = none, "*" = any */
    bool nodepool_only;
} members[] = {
    {"id", NULL, false},
    {"kind", NULL, false},
    {"href", NULL, false},
    {"name", NULL, false},
    {"generation", NULL, false},
    {"spec", "*", false},
    {"labels", "*", false},
    {"created_time", NULL, false},
    {"updated_time", NULL, false},
    {"created_by", NULL, false},
    {"updated_by", NULL, false},
    {"deleted_time", NULL, false},
    {"deleted_by", NULL, false},
    {"owner_references", "id kind href", true},
    {"status", "conditions", false},
};
static const char condition_members[] = "type status reason message observed_generation "
                                        "created_time last_updated_time last_transition_time";

static bool is_among(hfd_slice name, const char *list)
{
    while (*list != '\0') {
        const size_t len = strcspn(list, " ");

        if (hfd_slice_eq(name, (hfd_slice){list, len}))
            return true;
        list += len + (list[len] == ' ');
    }
    return false;
}

static bool exists(enum hfd_kind kind, const struct path *p)
{
    const struct member *m = NULL;

    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        if (hfd_slice_is(p->parts[0], members[i].name) &&
            (kind == HFD_KIND_NODEPOOL || !members[i].nodepool_only))
            m = &members[i];
    if (m == NULL)
        return false;
    if (p->count == 1)
        return true;
    if (m->below == NULL)
        return false;
    if (strcmp(m->below, "*") == 0)
        return true;
    if (hfd_slice_is(p->parts[1], "*"))
        return p->count == 2;
    if (!is_among(p->parts[1], m->below))
        return false;
    if (p->count == 2)
        return true;
    return strcmp(m->name, "status") == 0 && p->count == 3 &&
           (hfd_slice_is(p->parts[2], "*") || is_among(p->parts[2], condition_members));
}

/* Returns the text up to the next separator. rest becomes the remainder; p is NULL at the end. */
static hfd_slice cut(hfd_slice *rest, char at)
{
    const char *end = memchr(rest->p, at, rest->len);
    const hfd_slice part = {rest->p, end != NULL ? (size_t)(end - rest->p) : rest->len};

    *rest = end != NULL ? (hfd_slice){end + 1, rest->len - part.len - 1} : HFD_SLICE_NONE;
    return part;
}

/* Splits a path. Returns false if it has too many or empty parts. */
static bool split(hfd_slice text, struct path *out)
{
    out->count = 0;
    while (text.p != NULL) {
        if (out->count == PARTS_MAX)
            return false;
        out->parts[out->count] = cut(&text, '.');
        if (out->parts[out->count++].len == 0)
            return false;
    }
    return true;
}

hfd_rc hfd_fields_parse(enum hfd_kind kind, hfd_slice text, struct hfd_arena *mem,
                        const struct hfd_fields **out, struct hfd_err *err)
{
    struct hfd_fields *f = hfd_arena_alloc(mem, sizeof(*f));
    char missing[160] = "";

    *out = NULL;
    if (f == NULL)
        return hfd_fail_nomem(err, "read a query");
    f->paths[f->count++] = (struct path){{HFD_SLICE("id")}, 1};
    while (text.p != NULL) {
        const hfd_slice field = hfd_slice_trim(cut(&text, ','));

        if (field.len == 0)
            continue;
        if (f->count > FIELDS_MAX)
            return hfd_fail_field(err, HFD_INVALID, "fields",
                                  "too many fields: expected at most %d", FIELDS_MAX);
        if (split(field, &f->paths[f->count]) && exists(kind, &f->paths[f->count])) {
            f->count++;
        } else {
            const size_t at = strlen(missing);

            (void)snprintf(missing + at, sizeof(missing) - at, "%s%.*s", at > 0 ? ", " : "",
                           HFD_FOREIGN_CUT(field, 60));
            hfd_foreign_drop_halves(missing);
        }
    }
    if (missing[0] != '\0')
        return hfd_fail_field(err, HFD_INVALID, "fields",
                              "The following field(s) doesn't exist in `%s`: %s",
                              hfd_kind_name(kind), missing);
    *out = f->count > 1 ? f : NULL;
    return HFD_OK;
}

/* Paths that agree in their first `depth` parts. */
struct selection {
    const struct path *paths[FIELDS_MAX + 1];
    size_t count;
    size_t depth;
};

static void add_some(struct hfd_buf *b, const json_t *v, const struct selection *s);

/*
 * Selects the paths that continue below a member. Returns true if one ends there: the whole member
 * is selected.
 */
static bool is_wanted(const char *key, const struct selection *s, struct selection *deeper)
{
    deeper->count = 0;
    deeper->depth = s->depth + 1;
    for (size_t i = 0; i < s->count; i++) {
        const struct path *p = s->paths[i];

        if (p->count <= s->depth ||
            !(hfd_slice_is(p->parts[s->depth], key) || hfd_slice_is(p->parts[s->depth], "*")))
            continue;
        if (p->count == deeper->depth)
            return true;
        deeper->paths[deeper->count++] = p;
    }
    return false;
}

static bool has_members(const json_t *v)
{
    return json_is_object(v) || json_is_array(v);
}

static void add_separator(struct hfd_buf *b, bool *first)
{
    if (!*first)
        hfd_buf_addc(b, ',');
    *first = false;
}

static void add_object(struct hfd_buf *b, const json_t *v, const struct selection *s)
{
    struct selection deeper;
    bool first = true;
    json_t *member;
    const char *key;

    hfd_buf_addc(b, '{');
    json_object_foreach ((json_t *)(uintptr_t)v, key, member) {
        const bool whole = is_wanted(key, s, &deeper);

        if (!whole && (deeper.count == 0 || !has_members(member)))
            continue;
        add_separator(b, &first);
        hfd_buf_json_str(b, hfd_slice_of(key));
        hfd_buf_addc(b, ':');
        if (whole)
            hfd_json_dump(b, member);
        else
            add_some(b, member, &deeper);
    }
    hfd_buf_addc(b, '}');
}

/* Adds the selected part of an object or a list. */
static void add_some(struct hfd_buf *b, const json_t *v, const struct selection *s)
{
    bool first = true;

    if (json_is_object(v)) {
        add_object(b, v, s);
        return;
    }
    hfd_buf_addc(b, '[');
    for (size_t i = 0; i < json_array_size(v); i++) {
        if (!has_members(json_array_get(v, i)))
            continue;
        add_separator(b, &first);
        add_some(b, json_array_get(v, i), s);
    }
    hfd_buf_addc(b, ']');
}

void hfd_fields_add(struct hfd_buf *b, const struct hfd_fields *fields, hfd_slice document)
{
    struct selection s = {.count = fields->count};
    json_t *doc;
    hfd_rc rc;

    for (size_t i = 0; i < fields->count; i++)
        s.paths[i] = &fields->paths[i];
    rc = hfd_json_parse(document, &doc, NULL);
    if (rc == HFD_OK)
        add_some(b, doc, &s);
    else if (b->rc == HFD_OK)
        b->rc = rc == HFD_NOMEM ? rc : HFD_CORRUPT;
    json_decref(doc);
}
