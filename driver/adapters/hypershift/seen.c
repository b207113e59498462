/* See seen.h. */
#include "driver/adapters/hypershift/seen.h"

#include "driver/adapters/hypershift/names.h"
#include "driver/adapters/hypershift/state.h"
#include "driver/base/clock.h"
#include "driver/base/log.h"
#include "driver/core/guresid.h"
#include "driver/kube/refusal.h"

#include <stdlib.h>

#define PAGE_LIMIT 200
#define NAME_MAX_BYTES 254
#define ID_MAX_BYTES 64

struct hfd_hs_seen_object {
    enum hfd_kind kind;
    const char *object; /* "HostedCluster" */
    char id[ID_MAX_BYTES], guresid[HFD_GURESID_MAX + 1];
    char namespace[NAME_MAX_BYTES], name[NAME_MAX_BYTES];
    int64_t generation, created_us, deleted_us;
};

/* A look under way. */
struct look {
    struct hfd_hs_seen_object *items;
    size_t count;
    enum hfd_kind kind;
    const struct hfd_kube_type *type;
};

void hfd_hs_seen_init(struct hfd_hs_seen *seen)
{
    *seen = (struct hfd_hs_seen){.count = 0};
    pthread_mutex_init(&seen->lock, NULL);
}

void hfd_hs_seen_fini(struct hfd_hs_seen *seen)
{
    free(seen->items);
    pthread_mutex_destroy(&seen->lock);
}

static bool copy(char *to, size_t size, hfd_slice text)
{
    if (text.len >= size)
        return false;
    if (text.len > 0)
        memcpy(to, text.p, text.len);
    to[text.len] = '\0';
    return true;
}

/* True if the HostedCluster of a resource is in the list. Its Secrets go with it. */
static bool has_cluster(const struct look *l, hfd_slice guresid)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->items[i].object == hfd_hs_hosted_clusters.kind &&
            hfd_slice_is(guresid, l->items[i].guresid))
            return true;
    return false;
}

static bool take_item(void *ctx, const json_t *item)
{
    struct look *l = ctx;
    struct hfd_hs_seen_object o = {
        .kind = l->kind, .object = l->type->kind, .generation = hfd_hs_applied_generation(item)};
    const char *label = l->kind == HFD_KIND_CLUSTER ? HFD_HS_LABEL_CLUSTER : HFD_HS_LABEL_NODEPOOL;
    const hfd_slice id = hfd_hs_label(item, label),
                    guresid = hfd_hs_label(item, HFD_HS_LABEL_GURESID);

    if (l->count == HFD_HS_SEEN_MAX)
        return false;
    if (l->type == &hfd_hs_secrets && has_cluster(l, guresid))
        return true;
    (void)!hfd_time_parse(hfd_hs_metadata(item, "creationTimestamp"), &o.created_us, NULL);
    if (hfd_hs_is_deleting(item))
        (void)!hfd_time_parse(hfd_hs_metadata(item, "deletionTimestamp"), &o.deleted_us, NULL);
    /* Without an id or a GUResID it is not what this program made. */
    if (id.len > 0 && guresid.len > 0 && copy(o.id, sizeof(o.id), id) &&
        copy(o.guresid, sizeof(o.guresid), guresid) &&
        copy(o.namespace, sizeof(o.namespace), hfd_hs_metadata(item, "namespace")) &&
        copy(o.name, sizeof(o.name), hfd_hs_metadata(item, "name")))
        l->items[l->count++] = o;
    return true;
}

/* @return the class of the answer; DONE: the list is whole */
static enum hfd_kube_class look_for(struct look *l, struct hfd_kube *kube,
                                    const struct hfd_kube_type *type)
{
    const struct hfd_kube_list list = {.objects = {.type = type},
                                       .selector = HFD_HS_OURS,
                                       .metadata_only = true,
                                       .page_limit = PAGE_LIMIT,
                                       .on_item = take_item,
                                       .ctx = l};
    struct hfd_kube_answer answer = {0};
    struct hfd_kube_refusal why = {.class = HFD_KUBE_UNREACHABLE};

    l->type = type;
    l->kind = type == &hfd_hs_node_pools ? HFD_KIND_NODEPOOL : HFD_KIND_CLUSTER;
    if (hfd_kube_list(kube, &list, NULL, &answer, NULL) == HFD_OK)
        hfd_kube_judge(&answer, &why);
    hfd_kube_answer_fini(&answer);
    return why.class;
}

/* Without the right the other objects are listed. */
static bool look_for_secrets(struct look *l, struct hfd_hs_seen *seen, struct hfd_kube *kube)
{
    const enum hfd_kube_class class = look_for(l, kube, &hfd_hs_secrets);

    if (class == HFD_KUBE_FORBIDDEN && !seen->warned)
        HFD_LOG(HFD_LOG_WARN, "HyperShift adapter: Secrets cannot be listed",
                HFD_LOG_CSTR("reason", "the account may not list Secrets: give it the right, or "
                                       "unset hypershift.list_secrets"));
    seen->warned = class == HFD_KUBE_FORBIDDEN;
    return class == HFD_KUBE_DONE || class == HFD_KUBE_FORBIDDEN;
}

bool hfd_hs_seen_look(struct hfd_hs_seen *seen, struct hfd_kube *kube, bool secrets)
{
    struct look l = {.count = 0};
    struct hfd_hs_seen_object *old;
    bool whole;

    l.items = calloc(HFD_HS_SEEN_MAX, sizeof(*l.items));
    whole = l.items != NULL && look_for(&l, kube, &hfd_hs_hosted_clusters) == HFD_KUBE_DONE &&
            look_for(&l, kube, &hfd_hs_node_pools) == HFD_KUBE_DONE;
    if (whole && secrets)
        whole = look_for_secrets(&l, seen, kube);
    if (!whole) {
        free(l.items);
        return false;
    }
    pthread_mutex_lock(&seen->lock);
    old = seen->items;
    seen->items = l.items;
    seen->count = l.count;
    pthread_mutex_unlock(&seen->lock);
    free(old);
    return true;
}

void hfd_hs_seen_each(struct hfd_hs_seen *seen, hfd_slice place, hfd_actor_object_fn *take,
                      void *ctx)
{
    pthread_mutex_lock(&seen->lock);
    for (size_t i = 0; i < seen->count; i++) {
        const struct hfd_hs_seen_object *o = &seen->items[i];
        const struct hfd_actor_object object = {
            .kind = o->kind,
            .object = o->object,
            .id = hfd_slice_of(o->id),
            .guresid = hfd_slice_of(o->guresid),
            .namespace = hfd_slice_of(o->namespace),
            .name = hfd_slice_of(o->name),
            .place = place,
            .generation = o->generation,
            .created_us = o->created_us,
            .deleted_us = o->deleted_us,
        };

        take(ctx, &object);
    }
    pthread_mutex_unlock(&seen->lock);
}
