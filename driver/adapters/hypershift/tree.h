/*
 * The objects that HyperShift's operator makes of ours, as a tree by owner references, for the
 * status query's detail. It is read only, bounded, and without it all else works. Source:
 * HyperShift design, "Resource dependency diagram". Thread: the adapter's.
 */
#ifndef HFD_HYPERSHIFT_TREE_H
#define HFD_HYPERSHIFT_TREE_H

#include "driver/adapters/hypershift/work.h"

/** Objects that a tree shows at most. Others are counted. */
#define HFD_HS_TREE_MAX 50

/**
 * Reads the tree of the visit's HostedCluster or NodePool into `tree` of the work. Between two
 * times it keeps that of the last report, and also if the API server does not answer. A kind that
 * the account may not list, or that the server does not have, is named in the tree.
 * @param reached  the walk over the steps is done
 */
void hfd_hs_tree_read(struct hfd_hs_work *work, bool reached);

#endif
