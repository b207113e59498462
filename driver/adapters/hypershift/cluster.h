/* The steps of a cluster: its Secrets, its HostedCluster, the gates, its outputs. See reconcile.h.
 * Thread: the adapter's. */
#ifndef HFD_HYPERSHIFT_CLUSTER_H
#define HFD_HYPERSHIFT_CLUSTER_H

#include "driver/adapters/reconcile.h"

extern const struct hfd_reconciler hfd_hs_cluster_steps;

#endif
