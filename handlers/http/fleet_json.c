/*
 * HyperFleet's documents. See fleet_json.h.
 */
#include "handlers/http/fleet_json.h"

#include "driver/base/clock.h"
#include "driver/base/jsonx.h"
#include "driver/fleet/names.h"

#define CONDITIONS_MAX 100
#define ADAPTER_NAME_MAX 128
#define REASON_MAX_BYTES 1024
#define CONDITIONS_MEM_MIN_BYTES ((size_t)1024 * 1024)
/* Of a condition: Kubernetes' limits, as adapters copy from there. */
#define TYPE_MAX_BYTES 316
#define MESSAGE_MAX_BYTES 32768
#define INT32_MAX_VALUE INT64_C(2147483647)

/* In an arena of its own, so that a long list takes the memory of one resource. */
static void add_conditions(struct hfd_buf *b, hfd_slice stored, enum hfd_vocabulary vocabulary)
{
    struct hfd_arena mem;
    hfd_slice shown;
    hfd_rc rc;

    if (vocabulary == HFD_VOCABULARY_READY) {
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

void hfd_fleet_json_resource(struct hfd_buf *b, const struct hfd_fleet_row *row, enum hfd_vocabulary vocabulary)
{
    hfd_buf_addf(b, "{\"kind\":\"%s\",\"id\":", hfd_kind_name(row->kind));
    hfd_buf_json_str(b, row->id);
    hfd_buf_lit(b, ",\"href\":\"");
    hfd_fleet_href(b, row);
    hfd_buf_lit(b, "\",\"name\":");
    hfd_buf_json_str(b, row->name);
    if (row->kind == HFD_KIND_NODEPOOL) {
        hfd_buf_lit(b, ",\"owner_references\":{\"kind\":\"Cluster\",\"id\":");
        hfd_buf_json_str(b, row->owner_id);
        hfd_buf_addf(b, ",\"href\":\"/api/hyperfleet/v1/clusters/%.*s\"}", HFD_SLICE_FMT(row->owner_id));
    }
    hfd_buf_addf(b, ",\"generation\":%lld,\"spec\":", (long long)row->generation);
    hfd_buf_add(b, row->spec);
    hfd_buf_lit(b, ",\"labels\":");
    hfd_buf_add(b, row->labels);
    hfd_buf_lit(b, ",\"created_time\":");
    hfd_buf_json_time(b, row->created_us);
    hfd_buf_lit(b, ",\"updated_time\":");
    hfd_buf_json_time(b, row->updated_us);
    hfd_buf_lit(b, ",\"created_by\":");
    hfd_buf_json_str(b, row->created_by);
    hfd_buf_lit(b, ",\"updated_by\":");
    hfd_buf_json_str(b, row->updated_by);
    if (row->deleted_us != 0) {
        hfd_buf_lit(b, ",\"deleted_time\":");
        hfd_buf_json_time(b, row->deleted_us);
        hfd_buf_lit(b, ",\"deleted_by\":");
        hfd_buf_json_str(b, row->deleted_by);
    }
    hfd_buf_lit(b, ",\"status\":{\"conditions\":");
    add_conditions(b, row->conditions, vocabulary);
    hfd_buf_lit(b, "}}");
}

void hfd_fleet_json_report(struct hfd_buf *b, const struct hfd_report_row *row)
{
    hfd_buf_lit(b, "{\"adapter\":");
    hfd_buf_json_str(b, row->adapter);
    hfd_buf_addf(b, ",\"observed_generation\":%lld,\"conditions\":", (long long)row->observed_generation);
    hfd_buf_add(b, row->conditions);
    hfd_buf_lit(b, ",\"data\":");
    hfd_buf_add(b, row->data);
    if (row->metadata.len > 0) {
        hfd_buf_lit(b, ",\"metadata\":");
        hfd_buf_add(b, row->metadata);
    }
    hfd_buf_lit(b, ",\"created_time\":");
    hfd_buf_json_time(b, row->created_us);
    hfd_buf_lit(b, ",\"last_report_time\":");
    hfd_buf_json_time(b, row->observed_us);
    hfd_buf_addc(b, '}');
}

static hfd_rc no_memory(struct hfd_err *err)
{
    return hfd_fail(err, HFD_NOMEM, "out of memory while reading a document");
}

/* Members of a wrong type are told in HyperFleet's words. Takes the document. */
static hfd_rc decoded(json_t *doc, hfd_rc rc, struct hfd_err *err)
{
    json_decref(doc);
    if (rc == HFD_MALFORMED && err != NULL) {
        const struct hfd_err why = *err;

        return hfd_fail_field(err, rc, why.field, "Invalid request format: %s", why.msg);
    }
    return rc;
}

/* The body as a JSON object, with a `spec` that is an object where there is one. Gives. */
static hfd_rc parse_object(hfd_slice body, json_t **out, struct hfd_err *err)
{
    struct hfd_err why;
    const json_t *spec;
    hfd_rc rc;

    rc = hfd_json_parse(body, out, &why);
    if (rc == HFD_NOMEM)
        return no_memory(err);
    if (rc != HFD_OK)
        return hfd_fail(err, HFD_MALFORMED, "Invalid JSON in request body: %s", why.msg);
    spec = json_object_get(*out, "spec");
    if (!json_is_object(*out))
        rc = hfd_fail(err, HFD_MALFORMED, "Invalid JSON in request body: expected an object, got %s", jsonx_type_name(*out));
    else if (spec != NULL && !json_is_object(spec))
        rc = hfd_fail_field(err, HFD_INVALID, "spec", "spec field must be an object");
    if (rc != HFD_OK) {
        json_decref(*out);
        *out = NULL;
    }
    return rc;
}

/* A member's document in canonical form; `none` where it is absent. */
static hfd_rc take_document(const json_t *doc, const char *key, hfd_slice none, struct hfd_arena *mem, hfd_slice *out, struct hfd_err *err)
{
    json_t *v;
    struct hfd_buf b;
    hfd_slice text;
    hfd_rc rc;

    *out = none;
    rc = jsonx_get_object(doc, "", key, false, &v, err);
    if (rc != HFD_OK || v == NULL)
        return rc;
    hfd_buf_init(&b, mem->max_bytes);
    hfd_json_canonical(&b, v);
    rc = hfd_buf_finish(&b, &text, err);
    if (rc == HFD_OK) {
        *out = hfd_arena_dup(mem, text);
        if (out->p == NULL)
            rc = no_memory(err);
    }
    hfd_buf_fini(&b);
    return rc;
}

static hfd_rc take_labels(const json_t *doc, hfd_slice none, struct hfd_arena *mem, hfd_slice *out, struct hfd_err *err)
{
    json_t *labels, *v;
    const char *key;
    hfd_rc rc;

    rc = jsonx_get_object(doc, "", "labels", false, &labels, err);
    if (rc != HFD_OK)
        return rc;
    json_object_foreach (labels, key, v) {
        if (!json_is_string(v)) {
            char field[96];

            (void)snprintf(field, sizeof(field), "labels.%.80s", key);
            return hfd_fail_field(err, HFD_MALFORMED, field, "%s: expected a string, got %s", field,
                                  jsonx_type_name(v));
        }
    }
    return take_document(doc, "labels", none, mem, out, err);
}

static hfd_rc take_string(const json_t *doc, const char *key, struct hfd_arena *mem, hfd_slice *out, struct hfd_err *err)
{
    hfd_slice v = HFD_SLICE_NONE;
    hfd_rc rc;

    rc = jsonx_get_string(doc, "", key, false, &v, err);
    if (rc != HFD_OK)
        return rc;
    *out = hfd_arena_dup(mem, v);
    return out->p != NULL ? HFD_OK : no_memory(err);
}

static hfd_rc check_kind(enum hfd_kind kind, hfd_slice given, struct hfd_err *err)
{
    if (given.len == 0)
        return hfd_fail_field(err, HFD_INVALID, "kind", "kind is required");
    if (!hfd_slice_is(given, hfd_kind_name(kind)))
        return hfd_fail_field(err, HFD_INVALID, "kind", "kind must be '%s'", hfd_kind_name(kind));
    return HFD_OK;
}

static hfd_rc read_create(const json_t *doc, struct hfd_arena *mem, struct hfd_fleet_create *in, struct hfd_err *err)
{
    hfd_slice id, kind;
    hfd_rc rc;

    /* First the types of all members, then the rules: HyperFleet's order. */
    rc = take_string(doc, "id", mem, &id, err);
    if (rc == HFD_OK)
        rc = take_string(doc, "name", mem, &in->name, err);
    if (rc == HFD_OK)
        rc = take_string(doc, "kind", mem, &kind, err);
    if (rc == HFD_OK)
        rc = take_labels(doc, HFD_SLICE("{}"), mem, &in->labels, err);
    if (rc == HFD_OK)
        rc = take_document(doc, "spec", HFD_SLICE_NONE, mem, &in->spec, err);
    if (rc != HFD_OK)
        return rc;
    if (id.len > 0)
        return hfd_fail_field(err, HFD_INVALID, "id", "id must be empty");
    rc = hfd_name_check(in->kind, in->name, err);
    if (rc == HFD_OK)
        rc = check_kind(in->kind, kind, err);
    if (rc == HFD_OK && in->spec.p == NULL)
        rc = hfd_fail_field(err, HFD_INVALID, "spec", "spec is required");
    return rc;
}

hfd_rc hfd_fleet_json_create(hfd_slice body, struct hfd_arena *mem, struct hfd_fleet_create *in, struct hfd_err *err)
{
    json_t *doc;
    hfd_rc rc;

    rc = parse_object(body, &doc, err);
    if (rc != HFD_OK)
        return rc;
    return decoded(doc, read_create(doc, mem, in, err), err);
}

static hfd_rc read_patch(json_t *doc, struct hfd_arena *mem, struct hfd_fleet_patch *in, struct hfd_err *err)
{
    const char *key;
    json_t *v;
    hfd_rc rc;

    json_object_foreach (doc, key, v)
        if (strcmp(key, "spec") != 0 && strcmp(key, "labels") != 0)
            return hfd_fail_field(err, HFD_MALFORMED, "", "unknown field '%.80s': expected spec or labels", key);
    rc = take_labels(doc, HFD_SLICE_NONE, mem, &in->labels, err);
    if (rc == HFD_OK)
        rc = take_document(doc, "spec", HFD_SLICE_NONE, mem, &in->spec, err);
    if (rc == HFD_OK && in->spec.p == NULL && in->labels.p == NULL)
        rc = hfd_fail(err, HFD_BAD_REQUEST, "at least one field must be provided for update");
    return rc;
}

hfd_rc hfd_fleet_json_patch(hfd_slice body, struct hfd_arena *mem, struct hfd_fleet_patch *in, struct hfd_err *err)
{
    json_t *doc;
    hfd_rc rc;

    rc = parse_object(body, &doc, err);
    if (rc != HFD_OK)
        return rc;
    return decoded(doc, read_patch(doc, mem, in, err), err);
}

hfd_rc hfd_fleet_json_reason(hfd_slice body, struct hfd_arena *mem, hfd_slice *out, struct hfd_err *err)
{
    json_t *doc;
    hfd_rc rc;

    rc = parse_object(body, &doc, err);
    if (rc != HFD_OK)
        return rc;
    rc = take_string(doc, "reason", mem, out, err);
    if (rc == HFD_OK && (out->len == 0 || out->len > REASON_MAX_BYTES))
        rc = hfd_fail_field(err, HFD_INVALID, "reason", "reason is required, and at most %d characters", REASON_MAX_BYTES);
    return decoded(doc, rc, err);
}

static hfd_rc check_length(const char *path, const char *member, hfd_slice v, size_t max_bytes, struct hfd_err *err)
{
    char field[56];

    if (v.len <= max_bytes)
        return HFD_OK;
    (void)snprintf(field, sizeof(field), "%s.%s", path, member);
    return hfd_fail_field(err, HFD_INVALID, field, "%s must be at most %zu bytes, got %zu", field, max_bytes, v.len);
}

static hfd_rc read_condition(const json_t *v, size_t at, struct hfd_arena *mem, struct hfd_conditions *cs, struct hfd_err *err)
{
    struct hfd_condition *c = &cs->items[cs->count];
    hfd_slice status;
    char path[40];
    hfd_rc rc;

    (void)snprintf(path, sizeof(path), "conditions[%zu]", at);
    if (!json_is_object(v))
        return hfd_fail_field(err, HFD_MALFORMED, path, "%s: expected an object, got %s", path, jsonx_type_name(v));
    rc = take_string(v, "type", mem, &c->type, err);
    if (rc == HFD_OK)
        rc = take_string(v, "status", mem, &status, err);
    if (rc == HFD_OK)
        rc = take_string(v, "reason", mem, &c->reason, err);
    if (rc == HFD_OK)
        rc = take_string(v, "message", mem, &c->message, err);
    if (rc != HFD_OK)
        return rc;
    rc = check_length(path, "type", c->type, TYPE_MAX_BYTES, err);
    if (rc == HFD_OK)
        rc = check_length(path, "reason", c->reason, REASON_MAX_BYTES, err);
    if (rc == HFD_OK)
        rc = check_length(path, "message", c->message, MESSAGE_MAX_BYTES, err);
    if (rc != HFD_OK)
        return rc;
    if (c->type.len == 0)
        return hfd_fail_field(err, HFD_INVALID, path, "condition type cannot be empty at index %zu", at);
    if (hfd_condition_find(cs, c->type) != NULL)
        return hfd_fail_field(err, HFD_INVALID, path, "duplicate condition type '%.*s' at index %zu",
                              (int)(c->type.len < 60 ? c->type.len : 60), c->type.p, at);
    if (!hfd_status_parse(status, &c->status))
        return hfd_fail_field(err, HFD_INVALID, path,
                              "invalid status value '%.*s' for condition at index %zu (type: %.*s): must be 'True', 'False', or 'Unknown'",
                              (int)(status.len < 40 ? status.len : 40), status.p, at, (int)(c->type.len < 60 ? c->type.len : 60), c->type.p);
    cs->count++;
    return HFD_OK;
}

static hfd_rc read_conditions(const json_t *doc, struct hfd_arena *mem, struct hfd_conditions *out, struct hfd_err *err)
{
    json_t *list;
    hfd_rc rc;

    *out = (struct hfd_conditions){NULL, 0};
    rc = jsonx_get_array(doc, "", "conditions", false, &list, err);
    if (rc != HFD_OK || list == NULL)
        return rc; /* none at all: the mandatory ones will be missed */
    if (json_array_size(list) > CONDITIONS_MAX)
        return hfd_fail_field(err, HFD_INVALID, "conditions", "too many conditions: expected at most %d", CONDITIONS_MAX);
    out->items = hfd_arena_array(mem, json_array_size(list) + 1, sizeof(*out->items));
    if (out->items == NULL)
        return no_memory(err);
    for (size_t i = 0; rc == HFD_OK && i < json_array_size(list); i++)
        rc = read_condition(json_array_get(list, i), i, mem, out, err);
    return rc;
}

/* Splits data.secrets off: the plain document to be sealed, and "[redacted]" in place of each value. */
static hfd_rc split_secrets(json_t *doc, struct hfd_arena *mem, hfd_slice *secrets, struct hfd_err *err)
{
    json_t *data = json_object_get(doc, "data"), *all = json_object_get(data, "secrets"), *v;
    const char *key;
    void *next;

    *secrets = HFD_SLICE_NONE;
    if (all == NULL || json_is_null(all))
        return HFD_OK;
    if (!json_is_object(all))
        return hfd_fail_field(err, HFD_MALFORMED, "data.secrets", "data.secrets: expected an object, got %s",
                              jsonx_type_name(all));
    *secrets = hfd_json_dump_arena(mem, all);
    if (secrets->p == NULL)
        return no_memory(err);
    json_object_foreach_safe (all, next, key, v) {
        (void)v;
        if (json_object_set_new(all, key, json_string("[redacted]")) != 0)
            return no_memory(err);
    }
    return HFD_OK;
}

static hfd_rc read_status(json_t *doc, struct hfd_arena *mem, struct hfd_fleet_report *in, struct hfd_err *err)
{
    hfd_slice observed_time;
    bool has_generation;
    hfd_rc rc;

    rc = take_string(doc, "adapter", mem, &in->adapter, err);
    if (rc == HFD_OK)
        rc = jsonx_get_i64(doc, "", "observed_generation", -INT32_MAX_VALUE - 1, INT32_MAX_VALUE, false, &has_generation,
                           &in->observed_generation, err);
    if (rc == HFD_OK)
        rc = take_string(doc, "observed_time", mem, &observed_time, err);
    if (rc == HFD_OK && observed_time.len > 0)
        rc = hfd_time_parse(observed_time, &in->observed_us, err);
    if (rc != HFD_OK && err != NULL && err->rc == HFD_INVALID)
        return hfd_fail_field(err, HFD_MALFORMED, "observed_time", "observed_time: expected an RFC 3339 date-time");
    if (rc == HFD_OK)
        rc = split_secrets(doc, mem, &in->secrets, err);
    if (rc == HFD_OK)
        rc = take_document(doc, "data", HFD_SLICE("{}"), mem, &in->data, err);
    if (rc == HFD_OK)
        rc = take_document(doc, "metadata", HFD_SLICE(""), mem, &in->metadata, err);
    if (rc != HFD_OK)
        return rc;
    if (in->adapter.len == 0)
        return hfd_fail_field(err, HFD_INVALID, "adapter", "adapter is required");
    if (in->adapter.len > ADAPTER_NAME_MAX)
        return hfd_fail_field(err, HFD_INVALID, "adapter", "adapter must be at most %d bytes", ADAPTER_NAME_MAX);
    rc = read_conditions(doc, mem, &in->conditions, err);
    if (rc != HFD_OK)
        return rc;
    if (!has_generation)
        return hfd_fail_field(err, HFD_INVALID, "observed_generation", "observed_generation is required");
    if (in->observed_generation < 1)
        return hfd_fail_field(err, HFD_INVALID, "observed_generation", "observed_generation must be at least 1");
    if (observed_time.len == 0)
        return hfd_fail_field(err, HFD_INVALID, "observed_time", "observed_time is required");
    return HFD_OK;
}

hfd_rc hfd_fleet_json_status(hfd_slice body, struct hfd_arena *mem, struct hfd_fleet_report *in, struct hfd_err *err)
{
    json_t *doc;
    hfd_rc rc;

    rc = parse_object(body, &doc, err);
    if (rc != HFD_OK)
        return rc;
    return decoded(doc, read_status(doc, mem, in, err), err);
}
