/*
 * The first step of the deletion of a cluster whose rows were lost: finds its objects by the label
 * with the GUResID. Thread: the adapter's.
 */
#ifndef HFD_HYPERSHIFT_LOST_H
#define HFD_HYPERSHIFT_LOST_H

#include "driver/adapters/hypershift/work.h"

/**
 * A step. Sets the names that the steps behind it delete by. A report has the names before anything
 * is deleted, as the Secrets are found by name alone. Does nothing for other clusters.
 */
enum hfd_step_end hfd_hs_find_lost(void *work);

#endif
