/* See seen.h. */
#include "driver/adapters/hypershift/seen.h"

#include "driver/adapters/hypershift/names.h"
#include "driver/adapters/hypershift/state.h"
#include "driver/base/clock.h"
#include "driver/core/guresid.h"

#include <stdlib.h>

#define PAGE_LIMIT 200
#define NAME_MAX_BYTES 254
#define ID_MAX_BYTES 64

struct hfd_hs_seen_object {
    enum hfd_kind kind;
    char id[ID_MAX_BYTES], guresid[HFD_GURESID_MAX + 1];
    char namespace[NAME_MAX_BYTES], name[NAME_MAX_BYTES];
    int64_t generation, created_us, deleted_us;
};

/* A look under way. */
struct look {
    struct hfd_hs_seen_object *items;
    size_t count;
    enum hfd_kind kind;
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

static bool take_item(void *ctx, const json_t *item)
{
    struct look *l = ctx;
    struct hfd_hs_seen_object o = {.kind = l->kind, .generation = hfd_hs_applied_generation(item)};
    const char *label = l->kind == HFD_KIND_CLUSTER ? HFD_HS_LABEL_CLUSTER : HFD_HS_LABEL_NODEPOOL;
    const hfd_slice id = hfd_hs_label(item, label),
                    guresid = hfd_hs_label(item, HFD_HS_LABEL_GURESID);

    if (l->count == HFD_HS_SEEN_MAX)
        return false;
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

static bool look_for(struct look *l, struct hfd_kube *kube, const struct hfd_kube_type *type)
{
    const struct hfd_kube_list list = {.objects = {.type = type},
                                       .selector = HFD_HS_OURS,
                                       .metadata_only = true,
                                       .page_limit = PAGE_LIMIT,
                                       .on_item = take_item,
                                       .ctx = l};
    struct hfd_kube_answer answer = {0};
    const hfd_rc rc = hfd_kube_list(kube, &list, NULL, &answer, NULL);
    const bool whole = rc == HFD_OK && answer.status == 200;

    hfd_kube_answer_fini(&answer);
    return whole;
}

bool hfd_hs_seen_look(struct hfd_hs_seen *seen, struct hfd_kube *kube)
{
    struct look l = {.kind = HFD_KIND_CLUSTER};
    struct hfd_hs_seen_object *old;
    bool whole;

    l.items = calloc(HFD_HS_SEEN_MAX, sizeof(*l.items));
    whole = l.items != NULL && look_for(&l, kube, &hfd_hs_hosted_clusters);
    l.kind = HFD_KIND_NODEPOOL;
    whole = whole && look_for(&l, kube, &hfd_hs_node_pools);
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
            .object =
                o->kind == HFD_KIND_CLUSTER ? hfd_hs_hosted_clusters.kind : hfd_hs_node_pools.kind,
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
