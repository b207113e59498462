/* The rules about one part that outcome.c shares with waiting.c. Pure. Thread: any. */
#ifndef HFD_CORE_OUTCOME_INT_H
#define HFD_CORE_OUTCOME_INT_H

#include "driver/core/outcome.h"
#include "driver/core/speech.h"

/** True if a part is ready, or gone if it is leaving. */
bool hfd_outcome_part_ready(const struct hfd_part_view *part);

/** The report of an adapter, or NULL. */
const struct hfd_part_report *hfd_outcome_report_by(const struct hfd_part_view *part,
                                                    hfd_slice adapter);

/**
 * The condition that an adapter still has to report True at the wanted generation: Available, or
 * Finalized during a deletion. NULL when it has.
 */
const char *hfd_outcome_lacks(const struct hfd_part_view *part, const struct hfd_part_report *r,
                              bool deleting);

/** The words about a condition: its message, else that of Available, where most say it all. */
hfd_slice hfd_outcome_words_of(const struct hfd_part_report *r, const struct hfd_condition *c);

/** The condition with which an adapter gives up for good, or NULL. */
const struct hfd_condition *hfd_outcome_terminal_condition(const struct hfd_outcome_input *in,
                                                           const struct hfd_part_view *part,
                                                           const struct hfd_part_report *report);

/** The report of an adapter that gave up, among the required ones or among the others; or NULL. */
const struct hfd_part_report *hfd_outcome_terminal_report(const struct hfd_outcome_input *in,
                                                          const struct hfd_part_view *part,
                                                          bool required);

/** True for a report of an observer with a verdict: a cluster waits for it until its deletion. */
bool hfd_outcome_observer_waits(const struct hfd_outcome_input *in,
                                const struct hfd_part_report *r);

#endif
