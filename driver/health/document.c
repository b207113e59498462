/* See document.h. */
#include "driver/health/document.h"

#include "driver/base/clock.h"
#include "driver/base/jsonx.h"

/* ---- document ---- */

/* A PacemakerCluster document as plain structs. */

/* The reading of one document. The first failure stays. */
struct reading {
    struct hfd_arena *mem;
    hfd_rc rc;
};

static hfd_slice read_text(struct reading *r, const json_t *obj, const char *key)
{
    const json_t *v = json_object_get(obj, key);
    hfd_slice text = HFD_SLICE_NONE;

    if (!json_is_string(v))
        r->rc = r->rc == HFD_OK ? HFD_CORRUPT : r->rc;
    else
        text = hfd_arena_dup(r->mem, (hfd_slice){json_string_value(v), json_string_length(v)});
    if (json_is_string(v) && text.p == NULL)
        r->rc = HFD_NOMEM;
    return text;
}

static int64_t read_time(struct reading *r, const json_t *obj, const char *key)
{
    const hfd_slice text = read_text(r, obj, key);
    int64_t at_us = 0;

    if (r->rc == HFD_OK && hfd_time_parse_any(text, &at_us, NULL) != HFD_OK)
        r->rc = HFD_CORRUPT;
    return at_us;
}

/* Room for the items of a list of at most max. @return NULL when there is none, or no item */
static void *read_list(struct reading *r, const json_t *list, size_t max, size_t size_bytes)
{
    const size_t count = json_array_size(list);
    void *items;

    if (!json_is_array(list) || count > max) {
        r->rc = r->rc == HFD_OK ? HFD_CORRUPT : r->rc;
        return NULL;
    }
    if (count == 0 || r->rc != HFD_OK)
        return NULL;
    items = hfd_arena_array(r->mem, count, size_bytes);
    if (items == NULL)
        r->rc = HFD_NOMEM;
    return items;
}

#define CONDITIONS_MAX 16

static struct hfd_conditions read_conditions(struct reading *r, const json_t *obj)
{
    const json_t *list = json_object_get(obj, "conditions");
    struct hfd_conditions cs = {NULL, 0};

    cs.items = read_list(r, list, CONDITIONS_MAX, sizeof(*cs.items));
    for (size_t i = 0; cs.items != NULL && i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);

        cs.items[i] = (struct hfd_condition){
            .type = read_text(r, one, "type"),
            .reason = read_text(r, one, "reason"),
            .message = read_text(r, one, "message"),
            .last_transition_us = read_time(r, one, "lastTransitionTime"),
        };
        if (!hfd_status_parse(read_text(r, one, "status"), &cs.items[i].status) && r->rc == HFD_OK)
            r->rc = HFD_CORRUPT;
        cs.count++;
    }
    return cs;
}

static struct hfd_health_units read_units(struct reading *r, const json_t *node, const char *key,
                                          bool has_method)
{
    const json_t *list = json_object_get(node, key);
    struct hfd_health_units units = {NULL, 0};

    units.items = read_list(r, list, HFD_HEALTH_UNITS_MAX, sizeof(*units.items));
    for (size_t i = 0; units.items != NULL && i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);

        units.items[i] = (struct hfd_health_unit){
            .name = read_text(r, one, "name"),
            .method = has_method ? read_text(r, one, "method") : HFD_SLICE_NONE,
            .conditions = read_conditions(r, one),
        };
        units.count++;
    }
    return units;
}

static void read_node(struct reading *r, const json_t *node, struct hfd_health_node *out)
{
    const json_t *addresses = json_object_get(node, "addresses");

    *out = (struct hfd_health_node){
        .name = read_text(r, node, "nodeName"),
        .address = read_text(r, json_array_get(addresses, 0), "address"),
        .conditions = read_conditions(r, node),
        .resources = read_units(r, node, "resources", false),
        .agents = read_units(r, node, "fencingAgents", true),
    };
}

static void read_status(struct reading *r, const json_t *status, struct hfd_health_document *out)
{
    const json_t *nodes = json_object_get(status, "nodes");

    out->has_status = true;
    out->updated_us = read_time(r, status, "lastUpdated");
    out->conditions = read_conditions(r, status);
    out->nodes = read_list(r, nodes, HFD_HEALTH_NODES_MAX, sizeof(*out->nodes));
    for (size_t i = 0; out->nodes != NULL && i < json_array_size(nodes); i++) {
        read_node(r, json_array_get(nodes, i), &out->nodes[i]);
        out->node_count++;
    }
}

hfd_rc hfd_health_parse(const json_t *doc, struct hfd_arena *mem, struct hfd_health_document *out,
                        struct hfd_err *err)
{
    const json_t *status = json_object_get(doc, "status");
    struct reading r = {mem, HFD_OK};

    *out = (struct hfd_health_document){.has_status = false};
    if (status != NULL && !json_is_null(status))
        read_status(&r, status, out);
    if (r.rc == HFD_OK)
        return HFD_OK;
    *out = (struct hfd_health_document){.has_status = false};
    if (r.rc == HFD_NOMEM)
        return hfd_fail_nomem(err, "read a PacemakerCluster document");
    return hfd_fail(err, HFD_CORRUPT, "the stored PacemakerCluster document is damaged");
}

bool hfd_health_is_true(const struct hfd_conditions *cs, const char *type)
{
    const struct hfd_condition *c = hfd_condition_find(cs, hfd_slice_of(type));

    return c != NULL && c->status == HFD_STATUS_TRUE;
}

/* ---- read ---- */

/* PacemakerCluster documents as they come in. */

static hfd_rc keep_text(const json_t *doc, struct hfd_arena *mem, hfd_slice *out,
                        struct hfd_err *err)
{
    struct hfd_buf b;
    hfd_rc rc;

    hfd_buf_init(&b, HFD_HEALTH_DOCUMENT_MAX_BYTES);
    hfd_json_dump_for_store(&b, doc);
    rc = hfd_buf_to_arena(&b, mem, out, err);
    return rc == HFD_LIMIT ? hfd_fail(err, HFD_TOO_LARGE,
                                      "the PacemakerCluster document is larger than %zu bytes",
                                      HFD_HEALTH_DOCUMENT_MAX_BYTES)
                           : rc;
}

hfd_rc hfd_health_read(json_t *doc, const char *root, struct hfd_arena *mem,
                       struct hfd_health_reading *out, struct hfd_err *err)
{
    hfd_rc rc;

    *out = (struct hfd_health_reading){.present = true};
    rc = hfd_health_check(doc, root, mem, &out->violations, err);
    if (rc != HFD_OK)
        return rc;
    hfd_health_prune(doc);
    rc = keep_text(doc, mem, &out->text, err);
    return rc == HFD_OK ? hfd_health_parse(doc, mem, &out->document, err) : rc;
}

hfd_rc hfd_health_read_report(hfd_slice data, struct hfd_arena *mem, struct hfd_health_reading *out,
                              struct hfd_err *err)
{
    json_t *all, *doc;
    hfd_rc rc = hfd_json_parse(data, &all, err);

    *out = (struct hfd_health_reading){.present = false};
    if (rc != HFD_OK)
        return rc;
    doc = json_object_get(all, HFD_HEALTH_MEMBER);
    if (doc != NULL && !json_is_null(doc))
        rc = hfd_health_read(doc, "data." HFD_HEALTH_MEMBER, mem, out, err);
    json_decref(all);
    return rc;
}

/* ---- objects ---- */

static bool is_true(const json_t *entry, const char *type)
{
    const json_t *list = json_object_get(entry, "conditions"), *one;
    size_t i;

    json_array_foreach (list, i, one)
        if (hfd_slice_is(hfd_json_text(one, "type"), type))
            return hfd_slice_is(hfd_json_text(one, "status"), "True");
    return false;
}

static enum hfd_presence presence(bool present)
{
    return present ? HFD_PRESENCE_PRESENT : HFD_PRESENCE_NOT_PRESENT;
}

static void add(struct hfd_health_objects *out, const struct hfd_object *object,
                const json_t *entry)
{
    if (out->count < HFD_HEALTH_OBJECTS_MAX)
        out->items[out->count++] = (struct hfd_health_object){*object, entry};
}

/* The resources run on the node; its agents run elsewhere, and their conditions count. */
static void add_units(struct hfd_health_objects *out, const json_t *node, struct hfd_object object)
{
    const json_t *one;
    size_t i;

    object.kind = HFD_SLICE("Resource");
    json_array_foreach (json_object_get(node, "resources"), i, one) {
        object.name = hfd_json_text(one, "name");
        add(out, &object, one);
    }
    object.kind = HFD_SLICE("FencingAgent");
    json_array_foreach (json_object_get(node, "fencingAgents"), i, one) {
        object.name = hfd_json_text(one, "name");
        object.presence = presence(is_true(one, "Active") && is_true(one, "Started"));
        add(out, &object, one);
    }
}

static void add_node(struct hfd_health_objects *out, const json_t *node)
{
    struct hfd_object object = {
        .group = HFD_SLICE("etcd.openshift.io"),
        .version = HFD_SLICE("v1alpha1"),
        .kind = HFD_SLICE("Node"),
        .name = hfd_json_text(node, "nodeName"),
        .presence = presence(is_true(node, "Online")),
    };

    add(out, &object, node);
    object.node = object.name;
    add_units(out, node, object);
}

void hfd_health_objects(const json_t *doc, struct hfd_health_objects *out)
{
    const json_t *nodes = json_object_get(json_object_get(doc, "status"), "nodes"), *node;
    size_t i;

    out->count = 0;
    json_array_foreach (nodes, i, node) {
        add_node(out, node);
    }
}

void hfd_health_count_objects(const json_t *data, struct hfd_object_counts *counts)
{
    struct hfd_health_objects found;

    hfd_objects_count(data, counts);
    hfd_health_objects(json_object_get(data, HFD_HEALTH_MEMBER), &found);
    for (size_t i = 0; i < found.count; i++)
        hfd_object_count(&found.items[i].object, counts);
}
