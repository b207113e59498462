/* The steps of a nodepool: its cluster, its NodePool, the gates. See reconcile.h. Thread: the
 * adapter's. */
#ifndef HFD_HYPERSHIFT_POOL_H
#define HFD_HYPERSHIFT_POOL_H

#include "driver/adapters/reconcile.h"

extern const struct hfd_reconciler hfd_hs_pool_steps;

#endif
