/* See fields.h. */
#include "handlers/http/fields.h"

#include "driver/base/jsonx.h"
#include "driver/fleet/names.h"

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

/* Members by name; those of documents that users write can be any. */
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
static const char condition_members[] =
    "type status reason message observed_generation created_time last_updated_time last_transition_time";

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
        if (hfd_slice_is(p->parts[0], members[i].name) && (kind == HFD_KIND_NODEPOOL || !members[i].nodepool_only))
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
    return strcmp(m->name, "status") == 0 && p->count == 3 && (hfd_slice_is(p->parts[2], "*") || is_among(p->parts[2], condition_members));
}

static hfd_slice trim(hfd_slice s)
{
    while (s.len > 0 && (*s.p == ' ' || *s.p == '\t')) {
        s.p++;
        s.len--;
    }
    while (s.len > 0 && (s.p[s.len - 1] == ' ' || s.p[s.len - 1] == '\t'))
        s.len--;
    return s;
}

/* The text up to the next separator; rest becomes what stands behind it, p == NULL at the end. */
static hfd_slice cut(hfd_slice *rest, char at)
{
    const char *end = memchr(rest->p, at, rest->len);
    const hfd_slice part = {rest->p, end != NULL ? (size_t)(end - rest->p) : rest->len};

    *rest = end != NULL ? (hfd_slice){end + 1, rest->len - part.len - 1} : HFD_SLICE_NONE;
    return part;
}

/* @return false for a path with too many or with empty parts */
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

hfd_rc hfd_fields_parse(enum hfd_kind kind, hfd_slice text, struct hfd_arena *mem, const struct hfd_fields **out, struct hfd_err *err)
{
    struct hfd_fields *f = hfd_arena_alloc(mem, sizeof(*f));
    char missing[160] = "";

    *out = NULL;
    if (f == NULL)
        return hfd_fail(err, HFD_NOMEM, "out of memory while reading a query");
    f->paths[f->count++] = (struct path){{HFD_SLICE("id")}, 1};
    while (text.p != NULL) {
        const hfd_slice field = trim(cut(&text, ','));

        if (field.len == 0)
            continue;
        if (f->count > FIELDS_MAX)
            return hfd_fail_field(err, HFD_INVALID, "fields", "too many fields: expected at most %d", FIELDS_MAX);
        if (split(field, &f->paths[f->count]) && exists(kind, &f->paths[f->count])) {
            f->count++;
        } else {
            const size_t at = strlen(missing);

            (void)snprintf(missing + at, sizeof(missing) - at, "%s%.*s", at > 0 ? ", " : "", (int)(field.len < 60 ? field.len : 60),
                           field.p);
        }
    }
    if (missing[0] != '\0')
        return hfd_fail_field(err, HFD_INVALID, "fields", "The following field(s) doesn't exist in `%s`: %s", hfd_kind_name(kind), missing);
    *out = f->count > 1 ? f : NULL;
    return HFD_OK;
}

static json_t *project(json_t *v, const struct path *const *paths, size_t count, size_t depth);

/* A member as far as paths want it. Gives; NULL for nothing. */
static json_t *project_member(const char *key, json_t *v, const struct path *const *paths, size_t count, size_t depth)
{
    const struct path *deeper[FIELDS_MAX + 1];
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        const struct path *p = paths[i];

        if (p->count <= depth || !(hfd_slice_is(p->parts[depth], key) || hfd_slice_is(p->parts[depth], "*")))
            continue;
        if (p->count == depth + 1)
            return json_incref(v);
        deeper[n++] = p;
    }
    return n > 0 && (json_is_object(v) || json_is_array(v)) ? project(v, deeper, n, depth + 1) : NULL;
}

static json_t *project_array(json_t *v, const struct path *const *paths, size_t count, size_t depth)
{
    json_t *out = json_array();

    for (size_t i = 0; i < json_array_size(v); i++) {
        json_t *item = json_array_get(v, i);

        if (json_is_object(item) || json_is_array(item))
            (void)json_array_append_new(out, project(item, paths, count, depth));
    }
    return out;
}

static json_t *project(json_t *v, const struct path *const *paths, size_t count, size_t depth)
{
    json_t *out, *member;
    const char *key;

    if (json_is_array(v))
        return project_array(v, paths, count, depth);
    out = json_object();
    json_object_foreach (v, key, member) {
        json_t *some = project_member(key, member, paths, count, depth);

        if (some != NULL)
            (void)json_object_set_new(out, key, some);
    }
    return out;
}

void hfd_fields_add(struct hfd_buf *b, const struct hfd_fields *fields, hfd_slice document)
{
    const struct path *paths[FIELDS_MAX + 1];
    json_t *doc, *part;
    hfd_rc rc;

    for (size_t i = 0; i < fields->count; i++)
        paths[i] = &fields->paths[i];
    rc = hfd_json_parse(document, &doc, NULL);
    if (rc != HFD_OK) {
        if (b->rc == HFD_OK)
            b->rc = rc == HFD_NOMEM ? rc : HFD_CORRUPT;
        return;
    }
    part = project(doc, paths, fields->count, 0);
    if (part != NULL)
        hfd_json_dump(b, part);
    else if (b->rc == HFD_OK)
        b->rc = HFD_NOMEM;
    json_decref(part);
    json_decref(doc);
}
