/* The decision about a report, before any aggregation. Pure. Thread: any. */
#ifndef HFD_FLEET_VERDICT_H
#define HFD_FLEET_VERDICT_H

#include "driver/fleet/condition.h"

/** The decision about a report, before any aggregation. */
enum hfd_verdict {
    HFD_VERDICT_STORE,
    /* equal time and content: the stored report is the answer, nothing is written */
    HFD_VERDICT_REPEAT,
    HFD_VERDICT_DISCARD, /* 204 */
    HFD_VERDICT_REJECT,  /* 400: a mandatory condition is missing */
};

struct hfd_verdict_input {
    int64_t generation;          /* G */
    int64_t observed_generation; /* X */
    int64_t observed_us;
    bool has_available, has_applied, has_health;
    enum hfd_status available;
    bool finalized_true;
    bool deleting;
    bool keeps_unknown; /* D4 does not hold: the report is an observer's */
    bool has_prev;      /* this adapter has reported before */
    int64_t prev_generation;
    int64_t prev_observed_us;
    bool same_content; /* conditions, data and metadata equal those of the stored report */
};

/**
 * Applies the discard table: rows D1 to D7 of README.md, with decisions 1 and 6 of
 * driver/README.md.
 * @param missing the first missing mandatory type on REJECT, else NULL
 */
enum hfd_verdict hfd_report_verdict(const struct hfd_verdict_input *in, const char **missing);

#endif
