/* See objects.h. */
#include "driver/health/objects.h"

#include "driver/health/read.h"

static hfd_slice text_of(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);

    return json_is_string(v) ? (hfd_slice){json_string_value(v), json_string_length(v)}
                             : HFD_SLICE("");
}

static bool is_online(const json_t *node)
{
    const json_t *list = json_object_get(node, "conditions"), *one;
    size_t i;

    json_array_foreach (list, i, one)
        if (hfd_slice_is(text_of(one, "type"), "Online"))
            return hfd_slice_is(text_of(one, "status"), "True");
    return false;
}

static void add(struct hfd_health_objects *out, const struct hfd_object *object,
                const json_t *entry)
{
    if (out->count < HFD_HEALTH_OBJECTS_MAX)
        out->items[out->count++] = (struct hfd_health_object){*object, entry};
}

/* Adds the resources, or the agents, of a node. */
static void add_units(struct hfd_health_objects *out, const json_t *list,
                      const struct hfd_object *like)
{
    struct hfd_object object = *like;
    const json_t *one;
    size_t i;

    json_array_foreach (list, i, one) {
        object.name = text_of(one, "name");
        add(out, &object, one);
    }
}

static void add_node(struct hfd_health_objects *out, const json_t *node)
{
    struct hfd_object object = {
        .group = HFD_SLICE("etcd.openshift.io"),
        .version = HFD_SLICE("v1alpha1"),
        .kind = HFD_SLICE("Node"),
        .name = text_of(node, "nodeName"),
        .presence = is_online(node) ? HFD_PRESENCE_PRESENT : HFD_PRESENCE_NOT_PRESENT,
    };

    add(out, &object, node);
    object.node = object.name;
    object.kind = HFD_SLICE("Resource");
    add_units(out, json_object_get(node, "resources"), &object);
    object.kind = HFD_SLICE("FencingAgent");
    add_units(out, json_object_get(node, "fencingAgents"), &object);
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
