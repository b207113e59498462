/*
 * The conditions Reconciled and LastKnownReconciled of a cluster or nodepool. HyperFleet shows them
 * instead of Ready and Available since version 0.3.0. They follow from the stored reports and from
 * the condition before. README.md in this folder has the rules. Pure. Source: driver/README.md,
 * decision 16. Thread: any.
 */
#ifndef HFD_FLEET_RECONCILED_H
#define HFD_FLEET_RECONCILED_H

#include "driver/fleet/aggregate.h"

/** The stored reports by required adapter; NULL = it has not reported. */
typedef const struct hfd_agg_report *const *hfd_agg_stored;

/**
 * Moves Reconciled: status, generation and times. Reads required, generation, updated_us, deleting
 * and has_children of in.
 * @param c  the condition before
 */
void hfd_reconciled_move(const struct hfd_agg_input *in, hfd_agg_stored stored,
                         struct hfd_condition *c);

/**
 * Moves LastKnownReconciled, and writes its reason and message. Reads required of in.
 * @param c  the condition before
 */
void hfd_last_reconciled_move(const struct hfd_agg_input *in, hfd_agg_stored stored,
                              struct hfd_condition *c);

/** Writes reason and message of a new LastKnownReconciled. */
void hfd_last_reconciled_begin(struct hfd_condition *c);

/**
 * Writes reason and message of Reconciled.
 * @param why  the reason and message of a Ready that is False for the same reports
 */
void hfd_reconciled_describe(const struct hfd_condition *why, struct hfd_condition *c);

#endif
