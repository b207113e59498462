/*
 * Short forms of what adapters write: the price of a report must not depend on how much other
 * adapters wrote on the same resource. Thread: any.
 */
#ifndef HFD_FLEET_BRIEF_H
#define HFD_FLEET_BRIEF_H

#include "driver/fleet/condition.h"
#include "store/rows_report.h"

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
