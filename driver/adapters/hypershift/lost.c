/* See lost.h. */
#include "driver/adapters/hypershift/lost.h"

#include "driver/adapters/hypershift/fleet.h"
#include "driver/adapters/hypershift/names.h"
#include "driver/adapters/hypershift/steps.h"
#include "driver/core/lookup.h"

#define PAGE_LIMIT 50

/* The place of the objects. Texts live in the memory of the work; no name = not known. */
struct place {
    struct hfd_hs_work *w;
    hfd_slice name, namespace;
    bool of_secrets; /* the search is for Secrets */
};

static bool is_lost(const struct hfd_hs_work *w)
{
    return w->source.guresid.len > 0 &&
           json_is_true(json_object_get(w->cluster_spec, HFD_LOST_MEMBER));
}

static hfd_slice text_in(const json_t *object, const char *key)
{
    return hfd_slice_of(json_string_value(json_object_get(object, key)));
}

/* The place that the last report names. Before the first, that is the row's own name. */
static void recall(struct place *p)
{
    const json_t *object = json_array_get(json_object_get(p->w->prev_data, "objects"), 0);
    const hfd_slice name = text_in(object, "name");

    if (name.len == 0 || hfd_slice_eq(name, p->w->row.name))
        return;
    p->name = name;
    p->namespace = text_in(object, "namespace");
}

/* A HostedCluster has the name, a NodePool says it, and that of a Secret begins with it. */
static bool take_object(void *ctx, const json_t *item)
{
    struct place *p = ctx;
    hfd_slice name = text_in(json_object_get(item, "spec"), "clusterName");

    if (p->of_secrets) {
        name = hfd_hs_secret_cluster_name(hfd_hs_metadata(item, "name"));
        if (name.len == 0)
            return true;
    }

    if (p->name.len > 0)
        return true;
    if (name.len == 0)
        name = hfd_hs_metadata(item, "name");
    p->name = hfd_arena_dup(p->w->mem, name);
    p->namespace = hfd_arena_dup(p->w->mem, hfd_hs_metadata(item, "namespace"));
    return p->name.p != NULL && p->namespace.p != NULL;
}

/* Searches all namespaces. */
static enum hfd_step_end search(struct place *p, const struct hfd_kube_type *type)
{
    const hfd_slice selector =
        hfd_arena_printf(p->w->mem, HFD_HS_OURS "," HFD_HS_LABEL_GURESID "=%.*s",
                         HFD_SLICE_FMT(p->w->source.guresid));
    const struct hfd_kube_list list = {.objects = {.type = type},
                                       .selector = selector.p,
                                       .metadata_only = type == &hfd_hs_secrets,
                                       .page_limit = PAGE_LIMIT,
                                       .on_item = take_object,
                                       .ctx = p};

    p->of_secrets = type == &hfd_hs_secrets;
    return selector.p != NULL ? hfd_hs_list(p->w, &list) : hfd_hs_out_of_memory(p->w);
}

/* The management cluster behind the present one, or empty. */
static hfd_slice next_management(const struct hfd_hs_work *w)
{
    const struct hfd_hs_defaults *d = w->defaults;
    const hfd_slice is = hfd_hs_management_of(w->cluster_spec);

    for (size_t i = 0; i + 1 < d->management_count; i++)
        if (hfd_slice_eq(d->managements[i], is))
            return d->managements[i + 1];
    return HFD_SLICE("");
}

/* Nothing is here: the thread of the next management cluster goes on, if there is one. */
static enum hfd_step_end go_on_elsewhere(struct hfd_hs_work *w)
{
    const hfd_slice next = next_management(w);
    const hfd_slice spec = hfd_arena_printf(
        w->mem, "{\"" HFD_LOST_MEMBER "\":true,\"management\":\"%.*s\"}", HFD_SLICE_FMT(next));
    struct hfd_err err;

    if (next.len == 0 || w->fleet->ops->set_spec == NULL)
        return HFD_STEP_DONE;
    if (spec.p == NULL)
        return hfd_hs_out_of_memory(w);
    if (w->fleet->ops->set_spec(w->fleet->impl, w, spec, &err) != HFD_OK)
        return hfd_hs_end(w, HFD_STEP_FAULT, "StoreFailed", "%s", err.msg);
    return HFD_STEP_AGAIN;
}

enum hfd_step_end hfd_hs_find_lost(void *arg)
{
    struct hfd_hs_work *w = arg;
    struct place known = {.w = w}, found = {.w = w};
    enum hfd_step_end end;

    if (!is_lost(w))
        return HFD_STEP_DONE;
    recall(&known);
    end = search(&found, &hfd_hs_hosted_clusters);
    if (end == HFD_STEP_DONE && found.name.len == 0)
        end = search(&found, &hfd_hs_node_pools);
    if (end == HFD_STEP_DONE && found.name.len == 0 && w->defaults->list_secrets)
        end = search(&found, &hfd_hs_secrets);
    if (end != HFD_STEP_DONE)
        return end;
    if (found.name.len == 0 && known.name.len == 0)
        return go_on_elsewhere(w);
    if (found.name.len == 0)
        found = known;
    w->object.name.name = w->cluster.name = found.name;
    w->object.name.namespace = found.namespace;
    if (hfd_slice_eq(found.name, known.name) && hfd_slice_eq(found.namespace, known.namespace))
        return HFD_STEP_DONE;
    return hfd_hs_end(w, HFD_STEP_WAITS, "Deleting", "found %.*s/%.*s",
                      HFD_SLICE_FMT(found.namespace), HFD_SLICE_FMT(found.name));
}
