/* A PacemakerCluster document as plain structs. See document.h. */
#include "driver/health/document.h"

#include "driver/base/clock.h"

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
