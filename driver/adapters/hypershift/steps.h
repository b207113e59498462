/*
 * The steps of clusters and nodepools, as tables of work.h. Thread: the adapter's.
 *
 * The steps of a cluster: its Secrets, its HostedCluster, the gates, its outputs. See work.h.
 * Thread: the adapter's.
 *
 * The steps of a nodepool: its cluster, its NodePool, the gates. See work.h. Thread: the
 * adapter's. */
#ifndef HFD_HYPERSHIFT_STEPS_H
#define HFD_HYPERSHIFT_STEPS_H

#include "driver/adapters/hypershift/work.h"

/* ---- what steps are made of ---- */

/** Ends a step with a reason and words. */
enum hfd_step_end hfd_hs_end(struct hfd_hs_work *work, enum hfd_step_end end, const char *reason,
                             const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/**
 * Reads an object.
 * @param doc  replaced; NULL = it is not there
 * @return DONE, or how the step ends
 */
enum hfd_step_end hfd_hs_read(struct hfd_hs_work *work, const struct hfd_kube_object *name,
                              json_t **doc);

/** When to visit a resource again after a walk. @param random  any bits */
int64_t hfd_hs_next_visit_us(const struct hfd_hs_work *work, enum hfd_step_end end, bool watched,
                             uint32_t random);

/** The namespace of the objects. */
static inline hfd_slice hfd_hs_work_namespace(const struct hfd_hs_work *work)
{
    return work->object.name.namespace;
}

/** Walks over the steps of the resource's kind. */
struct hfd_reconciled hfd_hs_work_run(struct hfd_hs_work *work);

#endif
