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

/** True while the API server is not called, after a failure. */
bool hfd_hs_is_closed(const struct hfd_hs_server *server);

/**
 * Reads an object.
 * @param doc  replaced; NULL = it is not there
 * @return DONE, or how the step ends
 */
enum hfd_step_end hfd_hs_read(struct hfd_hs_work *work, const struct hfd_kube_object *name,
                              json_t **doc);

/**
 * True if the spec of the object was changed since this process applied it. Others may write fields
 * of their own: an apply tells.
 */
bool hfd_hs_has_drifted(const struct hfd_hs_work *work);
/* The pause between an apply and the next one that puts fields back: others may insist. */
#define HFD_HS_DRIFT_US (10 * HFD_US_PER_S)

/** The namespace of the objects. */
static inline hfd_slice hfd_hs_work_namespace(const struct hfd_hs_work *work)
{
    return work->object.name.namespace;
}

extern const struct hfd_reconciler hfd_hs_cluster_steps;

extern const struct hfd_reconciler hfd_hs_pool_steps;

#endif
