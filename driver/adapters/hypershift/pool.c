/* See pool.h. */
#include "driver/adapters/hypershift/pool.h"

#include "driver/adapters/hypershift/names.h"
#include "driver/adapters/hypershift/steps.h"

/* Nothing is made before the HostedCluster is there: HyperShift would do nothing with it. */
static enum hfd_step_end find_cluster(void *arg)
{
    struct hfd_hs_work *w = arg;
    const struct hfd_kube_object name = {&hfd_hs_hosted_clusters, hfd_hs_work_namespace(w),
                                         w->cluster.name};
    enum hfd_step_end end;

    if (!w->has_cluster)
        return hfd_hs_end(w, HFD_STEP_WAITS, "ClusterMissing", "the cluster is not there");
    end = hfd_hs_read(w, &name, &w->parent);
    if (end != HFD_STEP_DONE)
        return end;
    if (w->parent == NULL ||
        !hfd_slice_eq(hfd_hs_label(w->parent, HFD_HS_LABEL_CLUSTER), w->cluster.id))
        return hfd_hs_end(w, HFD_STEP_WAITS, "WaitingForCluster", "waits for HostedCluster %.*s",
                          HFD_SLICE_FMT(w->cluster.name));
    return HFD_STEP_DONE;
}

static enum hfd_step_end validate_pool(void *arg)
{
    struct hfd_hs_work *w = arg;
    hfd_slice manifest;

    if (w->validated)
        return HFD_STEP_DONE;
    if (hfd_hs_node_pool_manifest(&w->source, w->mem, &manifest, NULL) != HFD_OK)
        return hfd_hs_out_of_memory(w);
    return hfd_hs_validate(w, manifest);
}

static enum hfd_step_end apply_pool(void *arg)
{
    struct hfd_hs_work *w = arg;
    struct hfd_kube_apply apply = {.object = w->object.name, .manager = HFD_HS_MANAGER};
    enum hfd_step_end end;

    if (!hfd_hs_must_apply(w))
        return HFD_STEP_DONE;
    if (hfd_hs_node_pool_manifest(&w->source, w->mem, &apply.body, NULL) != HFD_OK)
        return hfd_hs_out_of_memory(w);
    end = hfd_hs_apply(w, &apply, &w->object.doc);
    if (end == HFD_STEP_DONE) {
        w->record->applied_generation = w->row.generation;
        w->record->applied_us = w->mono_us;
    }
    return end;
}

static enum hfd_step_end pass_pool_gates(void *arg)
{
    struct hfd_hs_work *w = arg;
    const struct hfd_hs_facts facts = {
        .object = w->object.doc,
        .generation = w->row.generation,
        .serves = json_integer_value(json_object_get(w->prev_data, "serves")) > 0,
    };

    hfd_hs_judge_pool(&facts, &w->judgement);
    return hfd_hs_end_by_judgement(w);
}

static const struct hfd_step pool_sync[] = {
    {"Cluster", find_cluster},    {"Found", hfd_hs_find},   {"Replaced", hfd_hs_wait_for_old},
    {"Validated", validate_pool}, {"NodePool", apply_pool}, {"Gates", pass_pool_gates},
};

static enum hfd_step_end delete_pool_object(void *arg)
{
    struct hfd_hs_work *w = arg;
    enum hfd_step_end end = hfd_hs_read(w, &w->object.name, &w->object.doc);

    if (end != HFD_STEP_DONE || w->object.doc == NULL || !hfd_hs_is_ours(w, w->object.doc))
        return end;
    end = hfd_hs_delete(w, &w->object.name, w->object.doc);
    if (end != HFD_STEP_DONE)
        return end;
    return hfd_hs_end(w, HFD_STEP_WAITS, "Deleting", "waits for NodePool %.*s to be gone",
                      HFD_SLICE_FMT(w->object.name.name));
}

static const struct hfd_step pool_teardown[] = {{"NodePool", delete_pool_object}};

const struct hfd_reconciler hfd_hs_pool_steps = {
    .sync = HFD_HS_STEPS(pool_sync),
    .teardown = HFD_HS_STEPS(pool_teardown),
    .is_current = hfd_hs_is_current,
};
