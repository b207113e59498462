/* See override.h. */
#include "driver/core/override.h"

/* A dotted path, taken one key at a time. */
struct path {
    hfd_slice rest;
    hfd_slice key;
    bool last;
};

static bool next_key(struct path *p)
{
    const char *dot = p->rest.len > 0 ? memchr(p->rest.p, '.', p->rest.len) : NULL;
    size_t len = dot != NULL ? (size_t)(dot - p->rest.p) : p->rest.len;

    if (p->last)
        return false;
    p->key = (hfd_slice){p->rest.p, len};
    p->last = dot == NULL;
    p->rest = p->last ? HFD_SLICE_NONE : (hfd_slice){dot + 1, p->rest.len - len - 1};
    return true;
}

/*
 * Steps into the object under a key, which is made where nothing stands. *at becomes NULL where
 * something else is in the way.
 */
static hfd_rc step_into(json_t **at, hfd_slice key, struct hfd_err *err)
{
    json_t *v = json_object_getn(*at, key.p, key.len);

    if (v == NULL || json_is_null(v)) {
        v = json_object();
        if (json_object_setn_new(*at, key.p, key.len, v) != 0)
            return hfd_fail_nomem(err, "read the input");
    }
    *at = json_is_object(v) ? v : NULL;
    return HFD_OK;
}

/*
 * Puts a value where driver.values has the path. Something of a wrong kind in the way stays: the
 * schema tells.
 */
static hfd_rc put_value(json_t *doc, hfd_slice dotted, json_t *value, struct hfd_err *err)
{
    struct path path = {.rest = dotted};
    json_t *at = doc;
    hfd_rc rc = step_into(&at, HFD_SLICE("driver"), err);

    if (rc == HFD_OK && at != NULL)
        rc = step_into(&at, HFD_SLICE("values"), err);
    while (rc == HFD_OK && at != NULL && next_key(&path)) {
        if (!path.last)
            rc = step_into(&at, path.key, err);
        else if (json_object_setn(at, path.key.p, path.key.len, value) != 0)
            rc = hfd_fail_nomem(err, "read the input");
    }
    return rc;
}

/*
 * The value of `resource` at a path, or NULL. Orchestrators send null or an empty text for an
 * optional input that was left open.
 */
static json_t *override_at(const json_t *doc, hfd_slice dotted)
{
    struct path path = {.rest = dotted};
    json_t *value = json_object_get(doc, "resource");

    while (next_key(&path))
        value = json_object_getn(value, path.key.p, path.key.len);
    return json_is_null(value) || (json_is_string(value) && json_string_length(value) == 0) ? NULL
                                                                                            : value;
}

hfd_rc hfd_override_apply(const struct hfd_overrides *o, json_t *doc, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < o->count; i++) {
        json_t *value = override_at(doc, o->paths[i]);

        if (value != NULL)
            rc = put_value(doc, o->paths[i], value, err);
    }
    return rc;
}

/* True for a path below driver.values that `resource` put there, or below such a path. */
static bool is_overridden(const struct hfd_overrides *o, const json_t *doc, hfd_slice tail)
{
    for (size_t i = 0; i < o->count; i++) {
        const hfd_slice path = o->paths[i];

        if (hfd_slice_starts(tail, path) &&
            (tail.len == path.len || tail.p[path.len] == '.' || tail.p[path.len] == '[') &&
            override_at(doc, path) != NULL)
            return true;
    }
    return false;
}

hfd_rc hfd_override_blame(const struct hfd_overrides *o, const json_t *doc, struct hfd_arena *mem,
                          hfd_slice *field)
{
    const hfd_slice from = HFD_SLICE("driver.values.");
    hfd_slice tail;

    if (!hfd_slice_starts(*field, from))
        return HFD_OK;
    tail = (hfd_slice){field->p + from.len, field->len - from.len};
    if (!is_overridden(o, doc, tail))
        return HFD_OK;
    *field = hfd_arena_printf(mem, "resource.%.*s", HFD_SLICE_FMT(tail));
    return field->p != NULL ? HFD_OK : HFD_NOMEM;
}
