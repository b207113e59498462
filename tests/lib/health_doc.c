/* PacemakerCluster documents for tests. See health_doc.h. */
#include "tests/lib/health_doc.h"

#include "driver/base/check.h"
#include "driver/base/slice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const cluster_types[] = {"Healthy", "InService", "NodeCountAsExpected", NULL};
static const char *const node_types[] = {
    "Healthy", "Online", "InService",        "Active",         "Ready",
    "Clean",   "Member", "FencingAvailable", "FencingHealthy", NULL};
static const char *const unit_types[] = {"Healthy", "InService",   "Managed",
                                         "Enabled", "Operational", "Active",
                                         "Started", "Schedulable", NULL};

static json_t *conditions(const char *const *types)
{
    json_t *list = json_array();

    for (; *types != NULL; types++)
        HFD_ASSERT(json_array_append_new(
                       list, json_pack("{s:s, s:s, s:s, s:s, s:s}", "type", *types, "status",
                                       "True", "lastTransitionTime", "2024-01-01T00:00:00Z",
                                       "reason", "AsExpected", "message", "fine")) == 0);
    return list;
}

static json_t *node(size_t index)
{
    char name[32], agent[48], address[32];
    json_t *doc;

    (void)snprintf(name, sizeof(name), "master-%zu", index);
    (void)snprintf(agent, sizeof(agent), "%s_redfish", name);
    (void)snprintf(address, sizeof(address), "192.168.1.%zu", index + 1);
    doc = json_pack("{s:s, s:[{s:s, s:s}], s:o, s:[{s:s, s:o}, {s:s, s:o}], s:[{s:s, s:s, s:o}]}",
                    "nodeName", name, "addresses", "type", "InternalIP", "address", address,
                    "conditions", conditions(node_types), "resources", "name", "Kubelet",
                    "conditions", conditions(unit_types), "name", "Etcd", "conditions",
                    conditions(unit_types), "fencingAgents", "name", agent, "method", "Redfish",
                    "conditions", conditions(unit_types));
    HFD_ASSERT(doc != NULL);
    return doc;
}

json_t *health_doc(size_t nodes)
{
    json_t *list = json_array(), *doc;

    for (size_t i = 0; i < nodes; i++)
        HFD_ASSERT(json_array_append_new(list, node(i)) == 0);
    doc = json_pack("{s:s, s:s, s:{s:s}, s:{s:o, s:s, s:o}}", "apiVersion",
                    "etcd.openshift.io/v1alpha1", "kind", "PacemakerCluster", "metadata", "name",
                    "cluster", "status", "conditions", conditions(cluster_types), "lastUpdated",
                    HEALTH_DOC_UPDATED, "nodes", list);
    HFD_ASSERT(doc != NULL);
    return doc;
}

static bool is_named(const json_t *item, const char *name)
{
    static const char *const keys[] = {"type", "name", "nodeName"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const char *value = json_string_value(json_object_get(item, keys[i]));

        if (value != NULL && strcmp(value, name) == 0)
            return true;
    }
    return false;
}

static size_t index_of(const json_t *list, const char *word)
{
    int64_t number;
    size_t i;

    if (strcmp(word, "-") == 0)
        return json_array_size(list);
    if (hfd_parse_i64(hfd_slice_of(word), 0, 100000, &number, NULL) == HFD_OK)
        return (size_t)number;
    for (i = 0; i < json_array_size(list); i++)
        if (is_named(json_array_get(list, i), word))
            break;
    HFD_ASSERT(i < json_array_size(list));
    return i;
}

static json_t *child(json_t *of, const char *word)
{
    return json_is_array(of) ? json_array_get(of, index_of(of, word)) : json_object_get(of, word);
}

/* Goes down to the last word, which is copied. @return what it is a member of */
static json_t *descend(json_t *doc, const char *path, char word[64])
{
    for (;;) {
        const size_t len = strcspn(path, "/");

        HFD_ASSERT(len < 64 && doc != NULL);
        memcpy(word, path, len);
        word[len] = '\0';
        if (path[len] == '\0')
            return doc;
        doc = child(doc, word);
        path += len + 1;
    }
}

static int put(json_t *of, const char *word, json_t *value)
{
    const size_t at = json_is_array(of) ? index_of(of, word) : 0;

    if (value == NULL)
        return json_is_array(of) ? json_array_remove(of, at) : json_object_del(of, word);
    if (!json_is_array(of))
        return json_object_set_new(of, word, value);
    return at == json_array_size(of) ? json_array_append_new(of, value)
                                     : json_array_set_new(of, at, value);
}

void health_doc_set(json_t *doc, const char *path, const char *json)
{
    char word[64];
    json_t *of = descend(doc, path, word);
    json_t *value = json != NULL ? json_loads(json, JSON_DECODE_ANY, NULL) : NULL;

    HFD_ASSERT(json == NULL || value != NULL);
    HFD_ASSERT(put(of, word, value) == 0);
}

void health_doc_fill(json_t *doc, const char *path, size_t count, const char *key)
{
    char word[64], name[32];
    json_t *of = descend(doc, path, word), *list = child(of, word);

    HFD_ASSERT(json_array_size(list) > 0);
    while (json_array_size(list) > count)
        HFD_ASSERT(json_array_remove(list, json_array_size(list) - 1) == 0);
    while (json_array_size(list) < count) {
        json_t *item = json_deep_copy(json_array_get(list, json_array_size(list) - 1));

        (void)snprintf(name, sizeof(name), "extra-%zu", json_array_size(list));
        if (key != NULL)
            HFD_ASSERT(json_object_set_new(item, key, json_string(name)) == 0);
        HFD_ASSERT(json_array_append_new(list, item) == 0);
    }
}
