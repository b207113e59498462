/* See input.h. */
#include "driver/core/input.h"

#include "driver/backend/backend.h"
#include "driver/base/arena.h"
#include "driver/base/foreign.h"
#include "driver/base/jsonx.h"
#include "driver/core/protect.h"
#include "driver/fleet/fleet.h"
#include "schemas/documents.h"
#include "schemas/validate.h"
#include "store/kind.h"

#include <sodium.h>

#include <stdarg.h>
#include <stdio.h>

/* ---- errors of an input ---- */

#define MESSAGE_MAX_BYTES 400

static bool has_field(const struct hfd_violations *found, hfd_slice field)
{
    for (size_t i = 0; i < found->count; i++)
        if (hfd_slice_eq(found->items[i].field, field))
            return true;
    return false;
}

static hfd_rc add(struct hfd_input_errors *m, hfd_rc rc, hfd_slice field, hfd_slice message)
{
    struct hfd_violation *v = &m->found->items[m->found->count];

    if (has_field(m->found, field) || m->found->count == HFD_VIOLATIONS_MAX)
        return HFD_OK;
    v->field = hfd_arena_dup(m->mem, field);
    v->message = hfd_arena_dup(m->mem, message);
    v->constraint = "";
    if (v->field.p == NULL || v->message.p == NULL)
        return HFD_NOMEM;
    if (m->found->count++ == 0)
        m->first = rc;
    return HFD_OK;
}

hfd_rc hfd_input_errors_add(struct hfd_input_errors *m, hfd_rc rc, const char *field,
                            const char *fmt, ...)
{
    char text[MESSAGE_MAX_BYTES];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (n < 0)
        text[0] = '\0';
    hfd_foreign_drop_halves(text);
    return add(m, rc, hfd_slice_of(field), hfd_slice_of(text));
}

hfd_rc hfd_input_errors_add_all(struct hfd_input_errors *m, hfd_rc rc,
                                const struct hfd_violations *found)
{
    if (rc != HFD_INVALID)
        return rc;
    rc = HFD_OK;
    for (size_t i = 0; rc == HFD_OK && i < found->count; i++)
        rc = add(m, HFD_INVALID, found->items[i].field, found->items[i].message);
    return rc;
}

hfd_rc hfd_input_errors_result(const struct hfd_input_errors *m, struct hfd_err *err)
{
    const struct hfd_violation *v = &m->found->items[0];
    char field[128]; /* longer than err->field, so that hfd_fail_field marks the cut */

    if (m->found->count == 0)
        return HFD_OK;
    (void)snprintf(field, sizeof(field), "%.*s", HFD_SLICE_FMT(v->field));
    return hfd_fail_field(err, m->first, field, "%s: %.*s", field, HFD_SLICE_FMT(v->message));
}

/* ---- override ---- */

/*
 * Takes the inputs of `resource` that the configuration lets replace those of driver.values.
 * Thread: any.
 */

struct hfd_overrides {
    const hfd_slice *paths; /* dotted, below driver.values and below `resource` alike */
    size_t count;
};

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

/*
 * Puts what `resource` has in the place of what driver.values has there. Something of a wrong kind
 * in the way stays, for the schema to name.
 * @return HFD_OK or HFD_NOMEM
 */
static hfd_rc override_apply(const struct hfd_overrides *o, json_t *doc, struct hfd_err *err)
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

/*
 * Names `resource` in a field of driver.values that came from there. The author of `resource` may
 * never have seen driver.values.
 * @param mem  holds the new text
 * @return HFD_OK or HFD_NOMEM
 */
static hfd_rc override_blame(const struct hfd_overrides *o, const json_t *doc,
                             struct hfd_arena *mem, hfd_slice *field)
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

/* ---- input ---- */

/*
 * The body of a PUT: parsed, its type recognised, the overrides applied, validated against
 * schemas/input.json, unpacked. The rules that a schema cannot express (served types, names that
 * must differ, one of two members) are checked here.
 */

#define VALUES "driver.values"
#define ECHO_MAX 60

struct reading {
    const struct hfd_input_rules *rules;
    hfd_slice guresid;
    struct hfd_arena *mem;
    struct hfd_input *out;
    json_t *labels; /* a set: all labels of the order */
    struct hfd_input_errors errors;
    struct hfd_err *err;
};

static hfd_rc no_memory(struct hfd_err *err)
{
    return hfd_fail(err, HFD_NOMEM, "read the input");
}

/* The member when it is an object, else NULL. */
static json_t *object_in(const json_t *obj, const char *key)
{
    json_t *v = json_object_get(obj, key);

    return json_is_object(v) ? v : NULL;
}

static void add_list(struct hfd_buf *b, const hfd_slice *types, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (b->len > 0)
            hfd_buf_lit(b, ", ");
        hfd_buf_add(b, types[i]);
    }
}

/* Names the types that are served, for one that is not. */
static hfd_rc wrong_type(struct reading *r, int only, const json_t *type)
{
    hfd_slice text = {json_string_value(type), json_string_length(type)};
    struct hfd_buf served;
    hfd_rc rc;

    hfd_buf_init(&served, 150);
    if (only != HFD_KIND_NODEPOOL)
        add_list(&served, r->rules->cluster_types, r->rules->cluster_type_count);
    if (only != HFD_KIND_CLUSTER)
        add_list(&served, r->rules->nodepool_types, r->rules->nodepool_type_count);
    rc = hfd_input_errors_add(
        &r->errors, HFD_INVALID, "type", "expected one of %.*s%s, got %s%.*s%s",
        HFD_SLICE_FMT(hfd_buf_slice(&served)), served.rc == HFD_OK ? "" : ", ...",
        text.p != NULL ? "\"" : hfd_json_type_name(type),
        (int)(text.len < ECHO_MAX ? text.len : ECHO_MAX), text.p != NULL ? text.p : "",
        text.p != NULL ? "\"" : "");
    hfd_buf_fini(&served);
    return rc;
}

static bool listed(const hfd_slice *types, size_t count, hfd_slice type)
{
    for (size_t i = 0; i < count; i++)
        if (hfd_slice_eq(types[i], type))
            return true;
    return false;
}

/* An organization may stand in front: "my-org/hyperfleet-cluster". */
static hfd_slice without_org(hfd_slice type)
{
    const char *slash = type.len > 0 ? memchr(type.p, '/', type.len) : NULL;

    return slash == NULL ? type : (hfd_slice){slash + 1, type.len - (size_t)(slash + 1 - type.p)};
}

int hfd_input_kind_of(const struct hfd_input_rules *rules, hfd_slice type)
{
    const hfd_slice name = without_org(type);

    if (listed(rules->cluster_types, rules->cluster_type_count, name))
        return HFD_KIND_CLUSTER;
    return listed(rules->nodepool_types, rules->nodepool_type_count, name) ? HFD_KIND_NODEPOOL : 0;
}

bool hfd_input_lacks_outputs(const struct hfd_input_rules *rules, hfd_slice type)
{
    return rules->lacking_outputs[0] != '\0' && hfd_slice_is(without_org(type), "k8s-cluster");
}

static hfd_rc read_type(struct reading *r, int only, const json_t *doc)
{
    const json_t *v = json_object_get(doc, "type");
    const hfd_slice type = {json_string_value(v), json_string_length(v)};
    const int kind = hfd_input_kind_of(r->rules, type);

    if (kind == 0 || (only != 0 && kind != only))
        return wrong_type(r, only, v); /* what is below driver.values is checked all the same */
    r->out->kind = (enum hfd_kind)kind;
    r->out->type = hfd_arena_dup(r->mem, type);
    if (r->out->type.p == NULL)
        return no_memory(r->err);
    return hfd_input_lacks_outputs(r->rules, type)
               ? hfd_input_errors_add(
                     &r->errors, HFD_INVALID, "type",
                     "k8s-cluster needs outputs that this driver does not give: the "
                     "platform engineer has to set %s",
                     r->rules->lacking_outputs)
               : HFD_OK;
}

static void drop_null(json_t *obj, const char *key)
{
    if (json_is_null(json_object_get(obj, key)))
        (void)json_object_del(obj, key);
}

/* Orchestrators send empty text for an optional input that was left open. */
static void drop_empty(json_t *obj, const char *key)
{
    const json_t *v = json_object_get(obj, key);

    if (json_is_null(v) || (json_is_string(v) && json_string_length(v) == 0))
        (void)json_object_del(obj, key);
}

static void drop_part_nulls(json_t *part)
{
    drop_empty(part, "name");
    drop_null(part, "spec");
    drop_null(part, "labels");
}

/*
 * Takes the nulls and empty texts away that count as absent, so that both give one digest. Members
 * of a wrong kind wait for the schema.
 */
static void drop_nulls(json_t *doc)
{
    json_t *driver = object_in(doc, "driver");
    json_t *values = object_in(driver, "values");
    const json_t *pools = json_object_get(values, "nodepools");

    drop_null(values, "protect");
    drop_null(values, "cluster");
    drop_null(values, "nodepools");
    drop_null(values, "nodepool");
    drop_empty(values, "cluster_id");
    drop_empty(values, "cluster_guresid");
    drop_part_nulls(object_in(values, "cluster"));
    drop_part_nulls(object_in(values, "nodepool"));
    for (size_t i = 0; i < json_array_size(pools); i++)
        drop_part_nulls(json_array_get(pools, i));
}

/* For the digest: equal numbers ask for the same, however they are written. */
static void add_equal(struct hfd_buf *b, const json_t *v)
{
    if (v == NULL || json_is_null(v))
        hfd_buf_lit(b, "{}");
    else
        hfd_json_dump_for_compare(b, v);
}

/* The same without a member that is not part of what is asked for. */
static void add_without(struct hfd_buf *b, const json_t *v, const char *key)
{
    json_t *rest;

    if (json_object_get(v, key) == NULL) {
        add_equal(b, v);
        return;
    }
    rest = hfd_json_copy(v);
    if (rest == NULL) {
        b->rc = HFD_NOMEM;
        return;
    }
    (void)json_object_del(rest, key);
    add_equal(b, rest);
    json_decref(rest);
}

/* The ceiling is that of the memory: what does not fit is short of memory. */
static hfd_rc keep(struct hfd_buf *b, struct hfd_arena *mem, hfd_slice *out, struct hfd_err *err)
{
    return hfd_buf_to_arena(b, mem, out, NULL) == HFD_OK ? HFD_OK : no_memory(err);
}

static void buf_for_arena(struct hfd_buf *b, const struct hfd_arena *mem)
{
    hfd_buf_init(b, mem->max_bytes > mem->used_bytes ? mem->max_bytes - mem->used_bytes : 0);
}

/* The digest is of the input as received: before the configuration's overrides. */
static hfd_rc read_canonical(struct reading *r, const json_t *doc)
{
    const json_t *driver = object_in(doc, "driver");
    struct hfd_buf b;

    buf_for_arena(&b, r->mem);
    hfd_buf_lit(&b, "{\"driver\":{\"secrets\":");
    /* Cloud account credentials differ from call to call. */
    add_without(&b, json_object_get(driver, "secrets"), "account");
    hfd_buf_lit(&b, ",\"values\":");
    add_without(&b, json_object_get(driver, "values"), "protect");
    hfd_buf_lit(&b, "},\"resource\":");
    add_equal(&b, json_object_get(doc, "resource"));
    hfd_buf_member_str(&b, ",\"type\":", r->out->type);
    hfd_buf_addc(&b, '}');
    return keep(&b, r->mem, &r->out->canonical, r->err);
}

static hfd_rc validate(struct reading *r, const json_t *doc)
{
    struct hfd_schema_use use = {.root = "", .unknown = "no such input"};
    struct hfd_violations found;
    hfd_rc rc = hfd_schema_input(&use.schema, r->err);

    if (rc != HFD_OK)
        return rc;
    rc = hfd_schema_validate(&use, doc, r->mem, &found, r->err);
    /* That the type is missing has been said with what it can be. */
    if (rc == HFD_INVALID && found.items[0].field.len == 0)
        memmove(&found.items[0], &found.items[1], --found.count * sizeof(found.items[0]));
    return hfd_input_errors_add_all(&r->errors, rc, &found);
}

/* A JSON object as canonical text; nothing is the empty object. */
static hfd_rc read_spec(struct reading *r, const json_t *spec, hfd_slice *out)
{
    struct hfd_buf b;

    buf_for_arena(&b, r->mem);
    if (spec == NULL || json_is_null(spec))
        hfd_buf_lit(&b, "{}");
    else
        hfd_json_dump_for_store(&b, spec);
    return keep(&b, r->mem, out, r->err);
}

static hfd_rc read_labels(struct reading *r, const json_t *given, hfd_slice *out)
{
    json_t *labels = json_is_object(given) ? hfd_json_copy(given) : json_object();
    hfd_rc rc = HFD_NOMEM;

    if (hfd_protect_note(r->labels, given) &&
        json_object_set_new(labels, HFD_GURESID_LABEL,
                            json_stringn(r->guresid.p, r->guresid.len)) == 0)
        rc = read_spec(r, labels, out);
    json_decref(labels);
    return rc == HFD_OK ? rc : no_memory(r->err);
}

/*
 * Checks a spec against the operator's schema, where there is one; numbers in it become numbers.
 * Nothing is an empty spec.
 */
static hfd_rc check_spec(struct reading *r, enum hfd_kind kind, json_t *spec, const char *path)
{
    const struct hfd_schema *schema = r->rules->spec_schema[kind];
    struct hfd_violations found;
    json_t *none = NULL;
    char root[80];
    hfd_rc rc;

    if (schema == NULL || (spec != NULL && !json_is_object(spec)))
        return HFD_OK;
    if (spec == NULL)
        spec = none = json_object();
    (void)snprintf(root, sizeof(root), "%s.spec", path);
    rc = spec != NULL
             ? hfd_schema_validate_numbers(&(struct hfd_schema_use){.schema = schema, .root = root},
                                           spec, r->mem, &found, r->err)
             : no_memory(r->err);
    json_decref(none);
    return hfd_input_errors_add_all(&r->errors, rc, &found);
}

/* The place of a cluster or nodepool in the input. */
struct place {
    enum hfd_kind kind;
    const char *path;
    unsigned index; /* position in a list from 1; 0 = not in a list */
};

/* Reads one cluster or nodepool. obj may be NULL. */
static hfd_rc read_part(struct reading *r, const struct place *at, const json_t *obj,
                        struct hfd_input_part *out)
{
    const json_t *name = json_object_get(obj, "name");
    char field[64];
    hfd_rc rc;

    out->name_given = json_is_string(name);
    if (out->name_given) {
        const hfd_slice text = {json_string_value(name), json_string_length(name)};
        struct hfd_err why;

        rc = hfd_name_check(at->kind, text, &why);
        if (rc != HFD_OK) {
            (void)snprintf(field, sizeof(field), "%s.name", at->path);
            rc = hfd_input_errors_add(&r->errors, rc, field, "%s, got \"%.*s\"", why.msg,
                                      (int)(text.len < ECHO_MAX ? text.len : ECHO_MAX), text.p);
        }
        if (rc != HFD_OK)
            return rc;
        out->name = hfd_arena_dup(r->mem, text);
    } else {
        out->name = hfd_input_default_name(at->kind, r->guresid, at->index, r->mem);
    }
    if (out->name.p == NULL)
        return no_memory(r->err);
    rc = check_spec(r, at->kind, json_object_get(obj, "spec"), at->path);
    if (rc == HFD_OK)
        rc = read_spec(r, json_object_get(obj, "spec"), &out->spec);
    return rc == HFD_OK ? read_labels(r, json_object_get(obj, "labels"), &out->labels) : rc;
}

/* The index of an earlier nodepool with the same name, or i. */
static size_t first_with_name(const struct hfd_input *in, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (hfd_slice_eq(in->nodepools[i].name, in->nodepools[k].name))
            return k;
    return i;
}

static hfd_rc check_distinct(struct reading *r)
{
    const struct hfd_input *in = r->out;
    hfd_rc rc = HFD_OK;
    char field[64];

    for (size_t i = 1; rc == HFD_OK && i < in->nodepool_count; i++) {
        const size_t k = first_with_name(in, i);

        (void)snprintf(field, sizeof(field), VALUES ".nodepools[%zu].name", i);
        if (k < i)
            rc = hfd_input_errors_add(
                &r->errors, HFD_INVALID, field,
                "expected distinct names, but nodepool %zu is called \"%.*s\" too", k,
                HFD_SLICE_FMT(in->nodepools[i].name));
    }
    return rc;
}

/* Refuses an input of the other kind: it would have no effect. */
static hfd_rc check_absent(struct reading *r, const json_t *values, const char *key,
                           const char *instead)
{
    const bool cluster = r->out->kind == HFD_KIND_CLUSTER;
    char field[64];

    if (json_object_get(values, key) == NULL)
        return HFD_OK;
    (void)snprintf(field, sizeof(field), VALUES ".%s", key);
    return hfd_input_errors_add(&r->errors, HFD_INVALID, field,
                                "no such input of a %s resource; expected %s",
                                cluster ? "cluster" : "nodepool", instead);
}

static hfd_rc read_pools(struct reading *r, const json_t *pools, size_t count)
{
    struct hfd_input *out = r->out;
    hfd_rc rc = HFD_OK;

    out->nodepools = hfd_arena_array(r->mem, count, sizeof(*out->nodepools));
    if (out->nodepools == NULL)
        return no_memory(r->err);
    for (; rc == HFD_OK && out->nodepool_count < count; out->nodepool_count++) {
        unsigned i = (unsigned)out->nodepool_count;
        char path[48];

        (void)snprintf(path, sizeof(path), VALUES ".nodepools[%u]", i);
        rc = read_part(r, &(struct place){HFD_KIND_NODEPOOL, path, i + 1}, json_array_get(pools, i),
                       &out->nodepools[i]);
    }
    return rc == HFD_OK ? check_distinct(r) : rc;
}

static hfd_rc read_cluster(struct reading *r, const json_t *values)
{
    static const char *const others[] = {"nodepool", "cluster_id", "cluster_guresid"};
    const json_t *pools = json_object_get(values, "nodepools");
    size_t count = json_array_size(pools);
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < sizeof(others) / sizeof(others[0]); i++)
        rc = check_absent(r, values, others[i], "cluster and nodepools");
    if (rc == HFD_OK)
        rc = read_part(r, &(struct place){HFD_KIND_CLUSTER, VALUES ".cluster", 0},
                       json_object_get(values, "cluster"), &r->out->cluster);
    if (rc != HFD_OK || count <= HFD_INPUT_NODEPOOLS_MAX)
        return rc == HFD_OK ? read_pools(r, pools, count) : rc;
    return hfd_input_errors_add(&r->errors, HFD_LIMIT, VALUES ".nodepools",
                                "expected at most %d nodepools, got %zu", HFD_INPUT_NODEPOOLS_MAX,
                                count);
}

/* The cluster of a nodepool, by either name. One of a wrong type is the schema's affair. */
static hfd_rc read_cluster_of(struct reading *r, const json_t *values)
{
    const json_t *id = json_object_get(values, "cluster_id");
    const json_t *guresid = json_object_get(values, "cluster_guresid");
    struct hfd_input *out = r->out;

    if ((id == NULL) == (guresid == NULL))
        return hfd_input_errors_add(&r->errors, HFD_INVALID, VALUES,
                                    "expected either cluster_id or cluster_guresid, got %s",
                                    id != NULL ? "both" : "neither");
    if (json_is_string(id))
        out->cluster_id =
            hfd_arena_dup(r->mem, (hfd_slice){json_string_value(id), json_string_length(id)});
    if (json_is_string(guresid))
        out->cluster_guresid = hfd_arena_dup(
            r->mem, (hfd_slice){json_string_value(guresid), json_string_length(guresid)});
    return (json_is_string(id) && out->cluster_id.p == NULL) ||
                   (json_is_string(guresid) && out->cluster_guresid.p == NULL)
               ? no_memory(r->err)
               : HFD_OK;
}

static hfd_rc read_nodepool(struct reading *r, const json_t *values)
{
    static const char *const others[] = {"cluster", "nodepools"};
    struct hfd_input *out = r->out;
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < sizeof(others) / sizeof(others[0]); i++)
        rc = check_absent(r, values, others[i], "nodepool, and cluster_guresid or cluster_id");
    if (rc == HFD_OK)
        rc = read_cluster_of(r, values);
    if (rc != HFD_OK)
        return rc;
    out->nodepools = hfd_arena_alloc(r->mem, sizeof(*out->nodepools));
    if (out->nodepools == NULL)
        return no_memory(r->err);
    out->nodepool_count = 1;
    return read_part(r, &(struct place){HFD_KIND_NODEPOOL, VALUES ".nodepool", 0},
                     json_object_get(values, "nodepool"), &out->nodepools[0]);
}

static hfd_rc read_credentials(struct reading *r, const json_t *secrets)
{
    if (json_object_size(secrets) == 0) {
        r->out->credentials = HFD_SLICE("");
        return HFD_OK;
    }
    r->out->credentials = hfd_json_dump_arena(r->mem, secrets);
    return r->out->credentials.p != NULL ? HFD_OK : no_memory(r->err);
}

/* Has the adapter of this program check the order, where there is one. */
static hfd_rc check_order(struct reading *r, json_t *values, const json_t *secrets)
{
    const json_t *name = json_object_get(json_object_get(values, "cluster"), "name");
    struct hfd_ordered order = {.kind = r->out->kind, .values = values, .secrets = secrets};

    if (r->rules->check_order == NULL)
        return HFD_OK;
    if (order.kind == HFD_KIND_CLUSTER) {
        order.cluster_name = json_is_string(name)
                                 ? (hfd_slice){json_string_value(name), json_string_length(name)}
                                 : hfd_input_default_name(HFD_KIND_CLUSTER, r->guresid, 0, r->mem);
        if (order.cluster_name.p == NULL)
            return no_memory(r->err);
    }
    return r->rules->check_order(r->rules->check_ctx, &order, &r->errors, r->err);
}

/*
 * Checks the rules that a schema cannot express. Values of a wrong type count as absent here: the
 * schema names them.
 */
static hfd_rc read_values(struct reading *r, json_t *doc)
{
    const json_t *driver = json_object_get(doc, "driver");
    json_t *values;
    hfd_rc rc = read_credentials(r, object_in(driver, "secrets"));

    values = json_object_get(driver, "values");
    if (rc != HFD_OK || r->out->kind == 0 ||
        (driver != NULL && !json_is_null(driver) && !json_is_object(driver)))
        return rc;
    rc = check_order(r, values, object_in(driver, "secrets"));
    if (rc == HFD_OK)
        rc = r->out->kind == HFD_KIND_CLUSTER ? read_cluster(r, values) : read_nodepool(r, values);
    return rc == HFD_OK ? hfd_protect_format(json_is_true(json_object_get(values, "protect")),
                                             r->labels, r->mem, &r->out->protect, r->err)
                        : rc;
}

/* Gathers the errors, and returns HFD_OK; fails where no more can be found. */
static hfd_rc read_document(struct reading *r, int only, json_t *doc)
{
    const struct hfd_overrides overrides = {r->rules->overrides, r->rules->override_count};
    struct hfd_violations *found = r->errors.found;
    hfd_rc rc;

    if (!json_is_object(doc))
        return hfd_fail(r->err, HFD_INVALID, "the body: expected an object, got %s",
                        hfd_json_type_name(doc));
    rc = read_type(r, only, doc);
    drop_nulls(doc);
    if (rc == HFD_OK)
        rc = read_canonical(r, doc);
    if (rc == HFD_OK)
        rc = override_apply(&overrides, doc, r->err);
    if (overrides.count > 0)
        drop_nulls(doc); /* of what came in whole */
    if (rc == HFD_OK)
        rc = validate(r, doc);
    if (rc == HFD_OK)
        rc = read_values(r, doc);
    for (size_t i = 0; rc == HFD_OK && i < found->count; i++)
        rc = override_blame(&overrides, doc, r->mem, &found->items[i].field);
    return rc == HFD_NOMEM ? no_memory(r->err) : rc;
}

hfd_rc hfd_input_parse(const struct hfd_input_source *source, struct hfd_arena *mem,
                       struct hfd_input *out, struct hfd_err *err)
{
    struct reading r = {.rules = source->rules,
                        .guresid = source->guresid,
                        .mem = mem,
                        .out = out,
                        .errors = {.found = &out->errors, .mem = mem},
                        .err = err};
    struct hfd_violations found;
    struct hfd_err why;
    json_t *doc;
    hfd_rc rc;

    *out = (struct hfd_input){.nodepool_count = 0};
    rc = hfd_json_parse(source->body, &doc, &why);
    if (rc != HFD_OK)
        return hfd_fail(err, rc, "the body is not a JSON document: %s", why.msg);
    r.labels = json_object();
    rc = r.labels != NULL ? read_document(&r, source->only, doc) : no_memory(err);
    json_decref(r.labels);
    json_decref(doc);
    if (rc != HFD_OK)
        out->errors.count = 0;
    else
        rc = hfd_input_errors_result(&r.errors, err);
    if (rc == HFD_OK)
        return HFD_OK;
    found = out->errors;
    *out = (struct hfd_input){.errors = found};
    return rc;
}

/* The first hex digits of the GUResID's BLAKE2b-256. */
static hfd_slice hashed_name(const char *prefix, hfd_slice guresid, int digits,
                             struct hfd_arena *mem)
{
    unsigned char hash[crypto_generichash_BYTES];
    char hex[2 * sizeof(hash) + 1];

    (void)crypto_generichash(hash, sizeof(hash), (const unsigned char *)guresid.p, guresid.len,
                             NULL, 0);
    (void)sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash));
    return hfd_arena_printf(mem, "%s%.*s", prefix, digits, hex);
}

hfd_slice hfd_input_default_name(enum hfd_kind kind, hfd_slice guresid, unsigned index,
                                 struct hfd_arena *mem)
{
    hfd_slice name;

    if (kind == HFD_KIND_NODEPOOL && index > 0)
        return hfd_arena_printf(mem, "pool-%u", index);
    if (kind == HFD_KIND_NODEPOOL)
        return hashed_name("np-", guresid, 12, mem);
    name = hfd_arena_printf(mem, "hf-%.*s", HFD_SLICE_FMT(guresid));
    if (name.p == NULL || hfd_name_check(kind, name, NULL) == HFD_OK)
        return name;
    return hashed_name("hf-", guresid, 32, mem);
}
