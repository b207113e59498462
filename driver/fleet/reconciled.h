/*
 * The conditions Reconciled and LastKnownReconciled of a cluster or nodepool. HyperFleet shows them
 * instead of Ready and Available since version 0.3.0. They follow from the stored reports and from
 * the condition before. README.md in this folder has the rules. Pure. Source: driver/README.md,
 * decision 16. Thread: any.
 *
 * Short forms of what adapters write: the price of a report must not depend on how much other
 * adapters wrote on the same resource. Thread: any.
 */
#ifndef HFD_FLEET_RECONCILED_H
#define HFD_FLEET_RECONCILED_H

#include "driver/fleet/aggregate.h"
#include "driver/fleet/condition.h"
#include "store/rows_report.h"

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

/** The most bytes of an adapter's message that the status of a resource shows. */
#define HFD_MESSAGE_SHOWN_MAX 2048

/**
 * Returns the message of an adapter as the status of a resource shows it. A longer one is cut, and
 * says so.
 * @return borrowed from message, or in mem; p is NULL when memory is short
 */
hfd_slice hfd_message_shown(hfd_slice message, struct hfd_arena *mem);

/** Returns true for a condition type of reports that aggregation and judgements read. */
bool hfd_condition_is_judged(hfd_slice type);

/**
 * Sets the brief form of a report whose conditions are long: those that are judged, with messages
 * as they are shown. Others have none.
 * @param row  its conditions are set; gets brief, in mem, and long_bytes
 * @return HFD_OK, HFD_CORRUPT, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_report_brief(struct hfd_report_row *row, struct hfd_arena *mem,
                                       struct hfd_err *err);

#endif
