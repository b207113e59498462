/* See fleet_json.h. */
#include "handlers/http/fleet_json.h"

#include "driver/base/clock.h"
#include "driver/base/foreign.h"
#include "driver/base/jsonx.h"
#include "driver/fleet/fleet.h"
#include "store/rows_fleet.h"
#include "store/rows_report.h"

#define CONDITIONS_MAX 100
/* Limits in characters, as in schemas/openapi.yaml. */
#define ADAPTER_NAME_MAX 128
#define REASON_MAX 1024
#define CONDITIONS_MEM_MIN_BYTES ((size_t)1024 * 1024)
/* Limits of a condition, as in Kubernetes. */
#define TYPE_MAX 316
#define MESSAGE_MAX 32768
#define INT32_MAX_VALUE INT64_C(2147483647)

/* Uses an arena of its own, so that a long list needs the memory of one resource. */
static void add_conditions(struct hfd_buf *b, hfd_slice stored, enum hfd_vocabulary vocabulary)
{
    struct hfd_arena mem;
    hfd_slice shown;
    hfd_rc rc;

    if (vocabulary == HFD_VOCABULARY_BOTH) {
        hfd_buf_add(b, stored);
        return;
    }
    hfd_arena_init(&mem, CONDITIONS_MEM_MIN_BYTES + 8 * stored.len);
    rc = hfd_vocabulary_show(vocabulary, stored, &mem, &shown, NULL);
    if (rc == HFD_OK)
        hfd_buf_add(b, shown);
    else if (b->rc == HFD_OK)
        b->rc = rc;
    hfd_arena_fini(&mem);
}

void hfd_fleet_json_resource(struct hfd_buf *b, const struct hfd_fleet_row *row,
                             enum hfd_vocabulary vocabulary)
{
    hfd_buf_lit(b, "{\"kind\":\"");
    hfd_buf_add(b, hfd_slice_of(hfd_kind_name(row->kind)));
    hfd_buf_member_str(b, "\",\"id\":", row->id);
    hfd_buf_lit(b, ",\"href\":\"");
    hfd_fleet_href(b, row);
    hfd_buf_member_str(b, "\",\"name\":", row->name);
    if (row->kind == HFD_KIND_NODEPOOL) {
        hfd_buf_member_str(b, ",\"owner_references\":{\"kind\":\"Cluster\",\"id\":", row->owner_id);
        hfd_buf_addf(b, ",\"href\":\"/api/hyperfleet/v1/clusters/%.*s\"}",
                     HFD_SLICE_FMT(row->owner_id));
    }
    hfd_buf_lit(b, ",\"generation\":");
    hfd_buf_i64(b, row->generation);
    hfd_buf_lit(b, ",\"spec\":");
    hfd_buf_add(b, row->spec);
    hfd_buf_lit(b, ",\"labels\":");
    hfd_buf_add(b, row->labels);
    hfd_buf_member_time(b, ",\"created_time\":", row->created_us);
    hfd_buf_member_time(b, ",\"updated_time\":", row->updated_us);
    hfd_buf_member_str(b, ",\"created_by\":", row->created_by);
    hfd_buf_member_str(b, ",\"updated_by\":", row->updated_by);
    if (row->deleted_us != 0) {
        hfd_buf_member_time(b, ",\"deleted_time\":", row->deleted_us);
        hfd_buf_member_str(b, ",\"deleted_by\":", row->deleted_by);
    }
    hfd_buf_lit(b, ",\"status\":{\"conditions\":");
    add_conditions(b, row->conditions, vocabulary);
    hfd_buf_lit(b, "}}");
}

void hfd_fleet_json_report(struct hfd_buf *b, const struct hfd_report_row *row)
{
    hfd_buf_member_str(b, "{\"adapter\":", row->adapter);
    hfd_buf_lit(b, ",\"observed_generation\":");
    hfd_buf_i64(b, row->observed_generation);
    hfd_buf_lit(b, ",\"conditions\":");
    hfd_buf_add(b, row->conditions);
    hfd_buf_lit(b, ",\"data\":");
    hfd_buf_add(b, row->data);
    if (row->metadata.len > 0) {
        hfd_buf_lit(b, ",\"metadata\":");
        hfd_buf_add(b, row->metadata);
    }
    hfd_buf_member_time(b, ",\"created_time\":", row->created_us);
    hfd_buf_member_time(b, ",\"last_report_time\":", row->observed_us);
    hfd_buf_addc(b, '}');
}

/* A reading in progress: the first error, and the list of all. */
struct checks {
    struct hfd_fleet_reading *r;
    hfd_rc rc;
    struct hfd_err *err;
};

static void add_violation(struct checks *c, const struct hfd_violation *given)
{
    struct hfd_violations *found = &c->r->found;
    struct hfd_violation *v = &found->items[found->count];

    if (found->count == HFD_VIOLATIONS_MAX)
        return;
    *v = *given;
    v->field = hfd_arena_dup(c->r->mem, given->field);
    v->message = hfd_arena_dup(c->r->mem, given->message);
    if (v->field.p != NULL && v->message.p != NULL)
        found->count++; /* without memory only the first error is reported */
}

/* Records a failure, with HyperFleet's text for a wrong type. Returns true if there was none. */
static bool passed(struct checks *c, hfd_rc rc, const struct hfd_err *why)
{
    if (rc == HFD_OK)
        return true;
    if (c->rc == HFD_OK) {
        c->rc = rc;
        if (rc == HFD_MALFORMED)
            (void)hfd_fail_field(c->err, rc, why->field, "Invalid request format: %s", why->msg);
        else
            (void)hfd_fail_field(c->err, rc, why->field, "%s", why->msg);
    }
    if (why->field[0] != '\0')
        add_violation(c, &(struct hfd_violation){hfd_slice_of(why->field), hfd_slice_of(why->msg),
                                                 "", HFD_SLICE_NONE});
    return false;
}

/* Parses the body as a JSON object. Gives. */
static hfd_rc parse_object(hfd_slice body, json_t **out, struct hfd_err *err)
{
    struct hfd_err why;
    hfd_rc rc;

    rc = hfd_json_parse(body, out, &why);
    if (rc == HFD_NOMEM)
        return hfd_fail_nomem(err, "read a document");
    if (rc != HFD_OK)
        return hfd_fail(err, HFD_MALFORMED, "Invalid JSON in request body: %s", why.msg);
    if (json_is_object(*out))
        return HFD_OK;
    rc = hfd_fail(err, HFD_MALFORMED, "Invalid JSON in request body: expected an object, got %s",
                  hfd_json_type_name(*out));
    json_decref(*out);
    *out = NULL;
    return rc;
}

typedef void read_fn(struct checks *c, json_t *doc, void *out);

/* Reads the whole body. Returns the first error; all are in r->found. */
static hfd_rc read_body(hfd_slice body, struct hfd_fleet_reading *r, read_fn *read, void *out,
                        struct hfd_err *err)
{
    struct checks c = {r, HFD_OK, err};
    json_t *doc;
    hfd_rc rc;

    r->found.count = 0;
    rc = parse_object(body, &doc, err);
    if (rc != HFD_OK)
        return rc;
    read(&c, doc, out);
    json_decref(doc);
    return c.rc;
}

/* Checks a spec: an object, which matches the operator's schema if a kind is given. */
static void check_spec(struct checks *c, enum hfd_kind kind, const json_t *doc)
{
    const json_t *spec = json_object_get(doc, "spec");
    struct hfd_violations found;
    struct hfd_err why;
    hfd_rc rc;

    if (spec == NULL)
        return;
    if (!json_is_object(spec)) {
        (void)passed(c, hfd_fail_field(&why, HFD_INVALID, "spec", "spec field must be an object"),
                     &why);
        return;
    }
    if (kind == 0 || c->r->spec_schema == NULL)
        return;
    rc = hfd_schema_validate(&(struct hfd_schema_use){.schema = c->r->spec_schema, .root = "spec"},
                             spec, c->r->mem, &found, &why);
    if (rc == HFD_INVALID)
        (void)hfd_fail(&why, rc, "Invalid %sSpec", hfd_kind_name(kind));
    (void)passed(c, rc, &why);
    for (size_t i = 0; i < found.count; i++)
        add_violation(c, &found.items[i]);
}

/* Stores a member in canonical form; leaves *out if it is absent. */
static hfd_rc take_document(const json_t *doc, const char *key, struct hfd_arena *mem,
                            hfd_slice *out, struct hfd_err *err)
{
    json_t *v;
    struct hfd_buf b;
    hfd_rc rc = hfd_json_get_object(HFD_JSON_OPTIONAL(doc, "", key), &v, err);

    if (rc != HFD_OK || v == NULL)
        return rc;
    hfd_buf_init(&b, mem->max_bytes);
    hfd_json_dump_for_store(&b, v);
    return hfd_buf_to_arena(&b, mem, out, err);
}

static hfd_rc take_labels(const json_t *doc, struct hfd_arena *mem, hfd_slice *out,
                          struct hfd_err *err)
{
    json_t *labels, *v;
    const char *key;
    hfd_rc rc;

    rc = hfd_json_get_object(HFD_JSON_OPTIONAL(doc, "", "labels"), &labels, err);
    if (rc != HFD_OK)
        return rc;
    json_object_foreach (labels, key, v) {
        if (!json_is_string(v)) {
            char field[96];

            (void)snprintf(field, sizeof(field), "labels.%.80s", key);
            hfd_foreign_drop_halves(field);
            return hfd_fail_field(err, HFD_MALFORMED, field, "%s: expected a string, got %s", field,
                                  hfd_json_type_name(v));
        }
    }
    return take_document(doc, "labels", mem, out, err);
}

/* An object and its place in the document. */
struct place {
    const char *path;
    const json_t *object;
};

static hfd_rc take_string_at(const struct place *at, const char *key, struct hfd_arena *mem,
                             hfd_slice *out, struct hfd_err *err)
{
    hfd_slice v = HFD_SLICE_NONE;
    hfd_rc rc;

    rc = hfd_json_get_string(HFD_JSON_OPTIONAL(at->object, at->path, key), &v, err);
    if (rc != HFD_OK)
        return rc;
    *out = hfd_arena_dup(mem, v);
    return out->p != NULL ? HFD_OK : hfd_fail_nomem(err, "read a document");
}

static hfd_rc take_string(const json_t *doc, const char *key, struct hfd_arena *mem, hfd_slice *out,
                          struct hfd_err *err)
{
    return take_string_at(&(struct place){"", doc}, key, mem, out, err);
}

static hfd_rc check_kind(enum hfd_kind kind, hfd_slice given, struct hfd_err *err)
{
    if (given.len == 0)
        return hfd_fail_field(err, HFD_INVALID, "kind", "kind is required");
    if (!hfd_slice_is(given, hfd_kind_name(kind)))
        return hfd_fail_field(err, HFD_INVALID, "kind", "kind must be '%s'", hfd_kind_name(kind));
    return HFD_OK;
}

/* Checks the types of all members first, then the rules: HyperFleet's order. */
static void read_create(struct checks *c, json_t *doc, void *out)
{
    struct hfd_fleet_create *in = out;
    struct hfd_arena *mem = c->r->mem;
    bool id_read, name_read, kind_read, spec_read;
    hfd_slice id, kind;
    struct hfd_err why;

    check_spec(c, in->kind, doc);
    id_read = passed(c, take_string(doc, "id", mem, &id, &why), &why);
    name_read = passed(c, take_string(doc, "name", mem, &in->name, &why), &why);
    kind_read = passed(c, take_string(doc, "kind", mem, &kind, &why), &why);
    in->labels = HFD_SLICE("{}");
    in->spec = HFD_SLICE_NONE;
    (void)passed(c, take_labels(doc, mem, &in->labels, &why), &why);
    spec_read = !json_is_object(json_object_get(doc, "spec")) ||
                passed(c, take_document(doc, "spec", mem, &in->spec, &why), &why);
    if (id_read && id.len > 0)
        (void)passed(c, hfd_fail_field(&why, HFD_INVALID, "id", "id must be empty"), &why);
    if (name_read)
        (void)passed(c, hfd_name_check(in->kind, in->name, &why), &why);
    if (kind_read)
        (void)passed(c, check_kind(in->kind, kind, &why), &why);
    if (spec_read && json_object_get(doc, "spec") == NULL)
        (void)passed(c, hfd_fail_field(&why, HFD_INVALID, "spec", "spec is required"), &why);
}

hfd_rc hfd_fleet_json_create(hfd_slice body, struct hfd_fleet_reading *r,
                             struct hfd_fleet_create *in, struct hfd_err *err)
{
    return read_body(body, r, read_create, in, err);
}

static void refuse_unknown(struct checks *c, json_t *doc)
{
    struct hfd_err why;
    const char *key;
    json_t *v;

    json_object_foreach (doc, key, v)
        if (strcmp(key, "spec") != 0 && strcmp(key, "labels") != 0)
            (void)passed(c,
                         hfd_fail_field(&why, HFD_MALFORMED, key,
                                        "unknown field '%.80s': expected spec or labels", key),
                         &why);
}

static void read_patch(struct checks *c, json_t *doc, void *out)
{
    struct hfd_fleet_patch *in = out;
    struct hfd_err why;

    check_spec(c, in->target.kind, doc);
    refuse_unknown(c, doc);
    in->labels = in->spec = HFD_SLICE_NONE;
    (void)passed(c, take_labels(doc, c->r->mem, &in->labels, &why), &why);
    if (json_is_object(json_object_get(doc, "spec")))
        (void)passed(c, take_document(doc, "spec", c->r->mem, &in->spec, &why), &why);
    if (c->rc == HFD_OK && in->spec.p == NULL && in->labels.p == NULL)
        (void)passed(
            c, hfd_fail(&why, HFD_BAD_REQUEST, "at least one field must be provided for update"),
            &why);
}

hfd_rc hfd_fleet_json_patch(hfd_slice body, struct hfd_fleet_reading *r, struct hfd_fleet_patch *in,
                            struct hfd_err *err)
{
    return read_body(body, r, read_patch, in, err);
}

static void read_reason(struct checks *c, json_t *doc, void *out)
{
    hfd_slice *reason = out;
    struct hfd_err why;

    check_spec(c, 0, doc);
    if (passed(c, take_string(doc, "reason", c->r->mem, reason, &why), &why) &&
        (reason->len == 0 || hfd_slice_characters(*reason) > REASON_MAX))
        (void)passed(c,
                     hfd_fail_field(&why, HFD_INVALID, "reason",
                                    "reason is required, and at most %d characters", REASON_MAX),
                     &why);
}

hfd_rc hfd_fleet_json_reason(hfd_slice body, struct hfd_fleet_reading *r, hfd_slice *out,
                             struct hfd_err *err)
{
    return read_body(body, r, read_reason, out, err);
}

static hfd_rc check_length(const char *path, const char *member, hfd_slice v, size_t max,
                           struct hfd_err *err)
{
    const size_t length = hfd_slice_characters(v);
    char field[56];

    if (length <= max)
        return HFD_OK;
    (void)snprintf(field, sizeof(field), "%s.%s", path, member);
    return hfd_fail_field(err, HFD_INVALID, field, "%s must be at most %zu characters, got %zu",
                          field, max, length);
}

/* Checks a condition. The texts are HyperFleet's. */
static hfd_rc check_condition(const struct hfd_conditions *before, size_t at, hfd_slice status,
                              struct hfd_condition *c, struct hfd_err *err)
{
    const int type_len = (int)(c->type.len < 60 ? c->type.len : 60);
    char field[56];

    (void)snprintf(field, sizeof(field), "conditions[%zu].type", at);
    if (c->type.len == 0)
        return hfd_fail_field(err, HFD_INVALID, field,
                              "condition type cannot be empty at index %zu", at);
    if (hfd_condition_find(before, c->type) != NULL)
        return hfd_fail_field(err, HFD_INVALID, field,
                              "duplicate condition type '%.*s' at index %zu", type_len, c->type.p,
                              at);
    (void)snprintf(field, sizeof(field), "conditions[%zu].status", at);
    if (!hfd_status_parse(status, &c->status))
        return hfd_fail_field(err, HFD_INVALID, field,
                              "invalid status value '%.*s' for condition at index %zu (type: "
                              "%.*s): must be 'True', 'False', or 'Unknown'",
                              (int)(status.len < 40 ? status.len : 40), status.p, at, type_len,
                              c->type.p);
    return HFD_OK;
}

static hfd_rc read_condition(const json_t *v, size_t at, struct hfd_arena *mem,
                             struct hfd_conditions *cs, struct hfd_err *err)
{
    struct hfd_condition *c = &cs->items[cs->count];
    hfd_slice status;
    char path[40];
    hfd_rc rc;

    (void)snprintf(path, sizeof(path), "conditions[%zu]", at);
    if (!json_is_object(v))
        return hfd_fail_field(err, HFD_MALFORMED, path, "%s: expected an object, got %s", path,
                              hfd_json_type_name(v));
    rc = take_string_at(&(struct place){path, v}, "type", mem, &c->type, err);
    if (rc == HFD_OK)
        rc = take_string_at(&(struct place){path, v}, "status", mem, &status, err);
    if (rc == HFD_OK)
        rc = take_string_at(&(struct place){path, v}, "reason", mem, &c->reason, err);
    if (rc == HFD_OK)
        rc = take_string_at(&(struct place){path, v}, "message", mem, &c->message, err);
    if (rc != HFD_OK)
        return rc;
    rc = check_length(path, "type", c->type, TYPE_MAX, err);
    if (rc == HFD_OK)
        rc = check_length(path, "reason", c->reason, REASON_MAX, err);
    if (rc == HFD_OK)
        rc = check_length(path, "message", c->message, MESSAGE_MAX, err);
    if (rc == HFD_OK)
        rc = check_condition(cs, at, status, c, err);
    if (rc == HFD_OK)
        cs->count++;
    return rc;
}

static void read_conditions(struct checks *c, const json_t *doc, struct hfd_conditions *out)
{
    struct hfd_arena *mem = c->r->mem;
    struct hfd_err why;
    json_t *list;

    *out = (struct hfd_conditions){NULL, 0};
    if (!passed(c, hfd_json_get_array(HFD_JSON_OPTIONAL(doc, "", "conditions"), &list, &why),
                &why) ||
        list == NULL)
        return; /* no conditions: the check of mandatory ones reports it */
    if (json_array_size(list) > CONDITIONS_MAX) {
        (void)passed(c,
                     hfd_fail_field(&why, HFD_INVALID, "conditions",
                                    "too many conditions: expected at most %d", CONDITIONS_MAX),
                     &why);
        return;
    }
    out->items = hfd_arena_array(mem, json_array_size(list) + 1, sizeof(*out->items));
    if (out->items == NULL) {
        (void)passed(c, hfd_fail_nomem(&why, "read a document"), &why);
        return;
    }
    for (size_t i = 0; i < json_array_size(list); i++)
        (void)passed(c, read_condition(json_array_get(list, i), i, mem, out, &why), &why);
}

/*
 * Splits off data.secrets: the plain document to be sealed, and "[redacted]" in place of each
 * value.
 */
static hfd_rc split_secrets(json_t *doc, struct hfd_arena *mem, hfd_slice *secrets,
                            struct hfd_err *err)
{
    json_t *data = json_object_get(doc, "data"), *all = json_object_get(data, "secrets"), *v;
    const char *key;
    void *next;

    *secrets = HFD_SLICE_NONE;
    if (all == NULL || json_is_null(all))
        return HFD_OK;
    if (!json_is_object(all))
        return hfd_fail_field(err, HFD_MALFORMED, "data.secrets",
                              "data.secrets: expected an object, got %s", hfd_json_type_name(all));
    *secrets = hfd_json_dump_arena(mem, all);
    if (secrets->p == NULL)
        return hfd_fail_nomem(err, "read a document");
    json_object_foreach_safe (all, next, key, v) {
        (void)v;
        if (json_object_set_new(all, key, json_string("[redacted]")) != 0)
            return hfd_fail_nomem(err, "read a document");
    }
    return HFD_OK;
}

static hfd_rc take_time(const json_t *doc, const char *key, bool *present, int64_t *out,
                        struct hfd_err *err)
{
    hfd_slice text = HFD_SLICE_NONE;
    hfd_rc rc;

    rc = hfd_json_get_string(HFD_JSON_OPTIONAL(doc, "", key), &text, err);
    *present = rc == HFD_OK && text.len > 0;
    if (!*present || hfd_time_parse(text, out, NULL) == HFD_OK)
        return rc;
    return hfd_fail_field(err, HFD_MALFORMED, key,
                          "%s: expected an RFC 3339 date-time of the years 1970 to 9999", key);
}

/* HyperFleet cannot read numbers beyond 32 bits. */
static hfd_rc take_i32(const json_t *doc, const char *key, bool *present, int64_t *out,
                       struct hfd_err *err)
{
    hfd_rc rc = hfd_json_get_i64(HFD_JSON_OPTIONAL(doc, "", key),
                                 (struct hfd_json_range){-INT32_MAX_VALUE - 1, INT32_MAX_VALUE},
                                 present, out, err);

    return rc != HFD_INVALID
               ? rc
               : hfd_fail_field(err, HFD_MALFORMED, key, "%s: expected an integer of 32 bits", key);
}

static hfd_rc check_adapter(hfd_slice adapter, struct hfd_err *err)
{
    if (adapter.len == 0)
        return hfd_fail_field(err, HFD_INVALID, "adapter", "adapter is required");
    if (hfd_slice_characters(adapter) > ADAPTER_NAME_MAX)
        return hfd_fail_field(err, HFD_INVALID, "adapter", "adapter must be at most %d characters",
                              ADAPTER_NAME_MAX);
    return HFD_OK;
}

static hfd_rc check_generation(bool present, int64_t generation, struct hfd_err *err)
{
    if (!present)
        return hfd_fail_field(err, HFD_INVALID, "observed_generation",
                              "observed_generation is required");
    if (generation < 1)
        return hfd_fail_field(err, HFD_INVALID, "observed_generation",
                              "observed_generation must be at least 1");
    return HFD_OK;
}

/* A time far ahead, once stored, would have every report with a true time discarded as older. */
static hfd_rc check_observed(const struct checks *c, bool present, int64_t at_us,
                             struct hfd_err *err)
{
    const char *wrong =
        !present ? "observed_time is required"
        : at_us > c->r->now_us + HFD_FLEET_AHEAD_MAX_US
            ? "observed_time must not be more than 5 minutes ahead of the server's clock"
            : NULL;

    return wrong == NULL ? HFD_OK : hfd_fail_field(err, HFD_INVALID, "observed_time", "%s", wrong);
}

/* Checks the types of all members first, then the rules: HyperFleet's order. */
static void read_status(struct checks *c, json_t *doc, void *out)
{
    struct hfd_fleet_report *in = out;
    struct hfd_arena *mem = c->r->mem;
    bool adapter_read, generation_read, time_read, has_generation, has_time;
    struct hfd_err why;

    in->data = HFD_SLICE("{}");
    in->metadata = HFD_SLICE("");
    check_spec(c, 0, doc);
    adapter_read = passed(c, take_string(doc, "adapter", mem, &in->adapter, &why), &why);
    generation_read = passed(
        c, take_i32(doc, "observed_generation", &has_generation, &in->observed_generation, &why),
        &why);
    time_read = passed(c, take_time(doc, "observed_time", &has_time, &in->observed_us, &why), &why);
    hfd_objects_count(json_object_get(doc, "data"), &in->objects);
    (void)passed(c, hfd_objects_check(json_object_get(doc, "data"), &why), &why);
    if (passed(c, split_secrets(doc, mem, &in->secrets, &why), &why))
        (void)passed(c, take_document(doc, "data", mem, &in->data, &why), &why);
    (void)passed(c, take_document(doc, "metadata", mem, &in->metadata, &why), &why);
    if (adapter_read)
        (void)passed(c, check_adapter(in->adapter, &why), &why);
    read_conditions(c, doc, &in->conditions);
    if (generation_read)
        (void)passed(c, check_generation(has_generation, in->observed_generation, &why), &why);
    if (time_read)
        (void)passed(c, check_observed(c, has_time, in->observed_us, &why), &why);
}

hfd_rc hfd_fleet_json_status(hfd_slice body, struct hfd_fleet_reading *r,
                             struct hfd_fleet_report *in, struct hfd_err *err)
{
    return read_body(body, r, read_status, in, err);
}
