/*
 * Walks a document and a schema side by side. Work and depth are counted, so that no document and
 * schema together take longer than allowed. See validate.h.
 */
#include "schemas/validate.h"

#include "driver/base/jsonx.h"
#include "driver/base/nearest.h"
#include "schemas/equal.h"
#include "schemas/scalar_int.h"
#include "schemas/spelled_int.h"

#define WORK_MAX 2000000

static bool check_node(struct hfd_walk *w, const struct hfd_schema_node *n, const json_t *v,
                       const struct hfd_place *at);

/* True if a value fits a branch. Notes no violation. */
static bool fits_branch(struct hfd_walk *w, const struct hfd_schema_node *n, const json_t *v,
                        const struct hfd_place *at)
{
    struct hfd_violations *out = w->out;
    struct hfd_spelled *spelled = w->spelled;
    bool ok;

    w->out = NULL;
    ok = check_node(w, n, v, at);
    w->out = out;
    if (!ok)
        w->spelled = spelled;
    return ok;
}

/* The same for a schema that is only a question: numbers that it sees in strings are forgotten. */
static bool fits_silently(struct hfd_walk *w, const struct hfd_schema_node *n, const json_t *v,
                          const struct hfd_place *at)
{
    struct hfd_spelled *spelled = w->spelled;
    bool ok = fits_branch(w, n, v, at);

    w->spelled = spelled;
    return ok;
}

/* The name of `properties` that is nearest to a key, or NULL if none is near. */
static const char *nearest_name(const json_t *properties, const char *key)
{
    struct hfd_nearest n = hfd_nearest_to(hfd_slice_of(key));
    const char *name, *best = NULL;
    json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)properties, name, value) {
        if (hfd_nearest_consider(&n, hfd_slice_of(name)))
            best = name;
    }
    return best;
}

static bool refuse_unknown(struct hfd_walk *w, const struct hfd_schema_node *n,
                           const struct hfd_place *here)
{
    const char *near = nearest_name(n->properties, here->key), *name;
    char names[HFD_WALK_TEXT_MAX / 2] = "";
    size_t len = 0;
    json_t *value;

    if (near != NULL)
        return hfd_walk_violated(w, here, "", "%s; did you mean %s?", w->use->unknown, near);
    json_object_foreach ((json_t *)(uintptr_t)n->properties, name, value) {
        if (len < sizeof(names))
            len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", len > 0 ? ", " : "",
                                    name);
    }
    return hfd_walk_violated(w, here, "", "%s; expected one of %s", w->use->unknown, names);
}

/* Checks one member against all keywords about members. */
static bool check_member(struct hfd_walk *w, const struct hfd_schema_node *n,
                         const struct hfd_place *here, const json_t *v)
{
    const char *key = here->key;
    bool named = n->properties != NULL && json_object_get(n->properties, key) != NULL;
    bool ok = true;
    json_t *name;

    for (size_t i = 0; i < n->pattern_count; i++) {
        if (!hfd_walk_matches(w, n->patterns[i].regex, key, strlen(key)))
            continue;
        named = true;
        ok = check_node(w, n->patterns[i].node, v, here) && ok;
    }
    if (!named && n->additional_properties != NULL && n->additional_properties->never &&
        w->use->unknown != NULL)
        ok = refuse_unknown(w, n, here);
    else if (!named && n->additional_properties != NULL)
        ok = check_node(w, n->additional_properties, v, here) && ok;
    if (n->property_names != NULL) {
        name = json_string(key);
        if (name == NULL)
            return hfd_walk_give_up(w, HFD_NOMEM);
        if (!fits_silently(w, n->property_names, name, here))
            ok = hfd_walk_violated(w, here, "", "is not an allowed name");
        json_decref(name);
    }
    return ok;
}

static bool check_object(struct hfd_walk *w, const struct hfd_schema_node *n, const json_t *v,
                         const struct hfd_place *at)
{
    size_t size = json_object_size(v);
    const char *key;
    json_t *value;
    bool ok = true;

    for (size_t i = 0; n->required != NULL && i < json_array_size(n->required); i++) {
        key = json_string_value(json_array_get(n->required, i));
        if (json_object_get(v, key) == NULL)
            ok = hfd_walk_violated(w, at, "required", "\"%.80s\" is required", key);
    }
    if (size < n->min_properties)
        ok = hfd_walk_violated(w, at, "min", "must have at least %zu member%s", n->min_properties,
                               hfd_walk_plural(n->min_properties));
    if (size > n->max_properties)
        ok = hfd_walk_violated(w, at, "max", "must have at most %zu member%s", n->max_properties,
                               hfd_walk_plural(n->max_properties));
    for (size_t i = 0; i < n->member_count; i++) {
        const struct hfd_place here = {.up = at, .in = v, .key = n->members[i].key};

        value = json_object_get(v, n->members[i].key);
        if (value != NULL)
            ok = check_node(w, n->members[i].node, value, &here) && ok;
    }
    if (n->pattern_count == 0 && n->additional_properties == NULL && n->property_names == NULL)
        return ok;
    json_object_foreach ((json_t *)(uintptr_t)v, key, value) {
        const struct hfd_place here = {.up = at, .in = v, .key = key};

        ok = check_member(w, n, &here, value) && ok;
    }
    return ok;
}

struct hashed {
    uint64_t hash;
    size_t index;
};

static int by_hash(const void *a, const void *b)
{
    const struct hashed *x = a;
    const struct hashed *y = b;

    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/*
 * Compares neighbours in the order of their hashes, since only those can be the same. The work
 * counter bounds the cost of hostile hashes.
 */
static bool check_unique(struct hfd_walk *w, const json_t *v, const struct hfd_place *at)
{
    size_t n = json_array_size(v);
    struct hashed *h = calloc(n + 1, sizeof(*h));
    bool ok = true;

    if (h == NULL)
        return hfd_walk_give_up(w, HFD_NOMEM);
    for (size_t i = 0; i < n; i++)
        h[i] = (struct hashed){hfd_json_hash(json_array_get(v, i), &w->work), i};
    qsort(h, n, sizeof(*h), by_hash);
    for (size_t i = 0; ok && i < n; i++)
        for (size_t k = i + 1; ok && k < n && h[k].hash == h[i].hash && w->work >= 0; k++)
            if (hfd_json_same(json_array_get(v, h[i].index), json_array_get(v, h[k].index),
                              &w->work))
                ok = hfd_walk_violated(w, at, "unique", "elements %zu and %zu are equal",
                                       h[i].index, h[k].index);
    free(h);
    return ok;
}

static bool check_array(struct hfd_walk *w, const struct hfd_schema_node *n, const json_t *v,
                        const struct hfd_place *at)
{
    size_t size = json_array_size(v);
    bool contains = n->contains == NULL;
    bool ok = true;

    if (size < n->min_items)
        ok = hfd_walk_violated(w, at, "min", "must have at least %zu element%s", n->min_items,
                               hfd_walk_plural(n->min_items));
    if (size > n->max_items)
        ok = hfd_walk_violated(w, at, "max", "must have at most %zu element%s", n->max_items,
                               hfd_walk_plural(n->max_items));
    for (size_t i = 0; i < size; i++) {
        const struct hfd_schema_node *rest = n->tuple.count > 0 ? n->additional_items : n->items;
        const struct hfd_schema_node *item = i < n->tuple.count ? n->tuple.items[i] : rest;
        const struct hfd_place here = {.up = at, .in = v, .index = i};

        if (item != NULL)
            ok = check_node(w, item, json_array_get(v, i), &here) && ok;
        contains = contains || fits_silently(w, n->contains, json_array_get(v, i), &here);
    }
    if (!contains)
        ok = hfd_walk_violated(w, at, "", "no element is of the required form");
    if (n->unique)
        ok = check_unique(w, v, at) && ok;
    return ok;
}

static size_t count_matching(struct hfd_walk *w, const struct hfd_schema_list *list,
                             const json_t *v, const struct hfd_place *at, size_t enough)
{
    size_t matching = 0;

    for (size_t i = 0; i < list->count && matching < enough; i++)
        matching += fits_branch(w, list->items[i], v, at) ? 1 : 0;
    return matching;
}

static bool check_combinations(struct hfd_walk *w, const struct hfd_schema_node *n, const json_t *v,
                               const struct hfd_place *at)
{
    bool ok = true;
    size_t matching;

    for (size_t i = 0; i < n->all_of.count; i++)
        ok = check_node(w, n->all_of.items[i], v, at) && ok;
    if (n->any_of.count == 1)
        /* says more than "none of the 1 allowed forms" */
        ok = check_node(w, n->any_of.items[0], v, at) && ok;
    else if (n->any_of.count > 1 && count_matching(w, &n->any_of, v, at, 1) == 0)
        ok = hfd_walk_violated(w, at, "", "fits none of the %zu allowed forms", n->any_of.count);
    if (n->one_of.count > 0) {
        matching = count_matching(w, &n->one_of, v, at, 2);
        if (matching == 0)
            ok =
                hfd_walk_violated(w, at, "", "fits none of the %zu allowed forms", n->one_of.count);
        else if (matching > 1)
            ok = hfd_walk_violated(w, at, "",
                                   "fits more than one of %zu forms that exclude each other",
                                   n->one_of.count);
    }
    return ok;
}

static bool check_conditions(struct hfd_walk *w, const struct hfd_schema_node *n, const json_t *v,
                             const struct hfd_place *at)
{
    const struct hfd_schema_node *branch;
    bool ok = true;

    if (n->negated != NULL && fits_silently(w, n->negated, v, at))
        ok = hfd_walk_violated(w, at, "", "is of a form that is not allowed");
    if (n->condition == NULL)
        return ok;
    branch = fits_silently(w, n->condition, v, at) ? n->consequence : n->alternative;
    return (branch == NULL || check_node(w, branch, v, at)) && ok;
}

static bool check_body(struct hfd_walk *w, const struct hfd_schema_node *n, const json_t *v,
                       const struct hfd_place *at)
{
    bool ok;

    if (n->types != 0 && (n->types & hfd_scalar_type(v)) == 0)
        return hfd_scalar_wrong_type(w, at, n->types, v);
    ok = hfd_scalar_check_enum(w, n, v, at);
    if (json_is_string(v))
        ok = hfd_scalar_check_string(w, n, v, at) && ok;
    else if (json_is_number(v))
        ok = hfd_scalar_check_number(w, n, v, at) && ok;
    else if (json_is_object(v))
        ok = check_object(w, n, v, at) && ok;
    else if (json_is_array(v))
        ok = check_array(w, n, v, at) && ok;
    ok = check_combinations(w, n, v, at) && ok;
    return check_conditions(w, n, v, at) && ok;
}

static bool check_node(struct hfd_walk *w, const struct hfd_schema_node *n, const json_t *v,
                       const struct hfd_place *at)
{
    json_t *number;
    bool ok;

    if (w->rc != HFD_OK)
        return false;
    if (--w->work < 0 || w->depth >= HFD_WALK_DEPTH_MAX)
        return hfd_walk_give_up(w, HFD_LIMIT);
    if (n->never)
        return hfd_walk_violated(w, at, "", "is not allowed");
    if (n->nullable && json_is_null(v))
        return true;
    number = hfd_spelled_number(w, n, v);
    w->depth++;
    ok = n->ref != NULL ? check_node(w, n->ref, v, at)
                        : check_body(w, n, number != NULL ? number : v, at);
    w->depth--;
    if (ok && number != NULL)
        hfd_spelled_note(w, at);
    json_decref(number);
    return ok && w->rc == HFD_OK;
}

static hfd_rc run_schema(struct hfd_walk *w, const json_t *doc, struct hfd_err *err)
{
    const struct hfd_place top = {.key = w->use->root};
    struct hfd_violations *out = w->out;
    const struct hfd_violation *first = &out->items[0];
    char field[128]; /* longer than err->field, so that hfd_fail_field marks the cut */
    bool ok;

    out->count = 0;
    ok = check_node(w, w->use->schema->root, doc, &top);
    if (w->work < 0)
        hfd_walk_give_up(w, HFD_LIMIT); /* comparing stops without an error */
    if (w->rc != HFD_OK)
        out->count = 0;
    if (w->rc == HFD_NOMEM)
        return hfd_fail_nomem(err, "validate a document");
    if (w->rc != HFD_OK)
        return hfd_fail(err, HFD_LIMIT, "the document takes too much work to validate");
    if (ok)
        return HFD_OK;
    snprintf(field, sizeof(field), "%.*s", HFD_SLICE_FMT(first->field));
    return hfd_fail_field(err, HFD_INVALID, field, "%s%s%.*s", field, field[0] != '\0' ? ": " : "",
                          HFD_SLICE_FMT(first->message));
}

hfd_rc hfd_schema_validate(const struct hfd_schema_use *use, const json_t *doc,
                           struct hfd_arena *mem, struct hfd_violations *out, struct hfd_err *err)
{
    struct hfd_walk w = {.use = use, .mem = mem, .out = out, .work = WORK_MAX};

    return run_schema(&w, doc, err);
}

hfd_rc hfd_schema_validate_numbers(const struct hfd_schema_use *use, json_t *doc,
                                   struct hfd_arena *mem, struct hfd_violations *out,
                                   struct hfd_err *err)
{
    const struct hfd_schema_use lenient = {use->schema, use->root, true, use->unknown};
    struct hfd_walk w = {.use = &lenient, .mem = mem, .out = out, .work = WORK_MAX};
    hfd_rc rc = run_schema(&w, doc, err);

    if (rc != HFD_OK || w.spelled == NULL)
        return rc;
    for (const struct hfd_spelled *s = w.spelled; s != NULL; s = s->earlier)
        if (hfd_spelled_store(s) != HFD_OK)
            return hfd_fail_nomem(err, "store the numbers of a document");
    /* Parts of the schema without a type have seen strings. */
    return hfd_schema_validate(use, doc, mem, out, err);
}
