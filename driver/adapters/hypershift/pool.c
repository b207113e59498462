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

static enum hfd_step_end pass_pool_gates(void *arg)
{
    struct hfd_hs_work *w = arg;
    const struct hfd_hs_facts facts = hfd_hs_facts_of(w);

    hfd_hs_judge_pool(&facts, &w->judgement);
    return hfd_hs_end_by_judgement(w);
}

static const struct hfd_step pool_sync[] = {
    {"Management", hfd_hs_find_management},
    {"Cluster", find_cluster},
    {"Found", hfd_hs_find},
    {"Replaced", hfd_hs_wait_for_old},
    {"Validated", hfd_hs_validate},
    {"NodePool", hfd_hs_apply_object},
    {"Gates", pass_pool_gates},
};

static const struct hfd_step pool_teardown[] = {{"Management", hfd_hs_find_management},
                                                {"NodePool", hfd_hs_delete_object}};

const struct hfd_reconciler hfd_hs_pool_steps = {
    .sync = HFD_HS_STEPS(pool_sync),
    .teardown = HFD_HS_STEPS(pool_teardown),
    .is_current = hfd_hs_is_current,
};
