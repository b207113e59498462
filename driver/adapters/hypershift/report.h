/* Makes the reports of a visit. Thread: the adapter's. */
#ifndef HFD_HYPERSHIFT_REPORT_H
#define HFD_HYPERSHIFT_REPORT_H

#include "driver/adapters/hypershift/work.h"
#include "driver/fleet/condition.h"

/** The data of a report, in the memory of the work. */
struct hfd_hs_data {
    hfd_slice text;    /* JSON, secrets redacted */
    hfd_slice secrets; /* JSON, plain; empty = none */
    struct hfd_object_counts objects;
};

/** The report of one adapter. Texts and documents are borrowed. */
struct hfd_hs_report {
    const char *adapter;
    int64_t generation; /* the one that is served, or the one at work */
    bool available, applied, healthy, finalized;
    const char *reason, *message; /* of Available */
    const char *health_reason, *health_message;
    struct hfd_hs_data data;
};

/** The reports of a visit. */
struct hfd_hs_reports {
    struct hfd_hs_report items[2];
    size_t count;
};

/**
 * Decides what a visit reports, by where its walk ended. README.md has the table. Pure but for
 * record->down_since_us.
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_hs_reports_make(struct hfd_hs_work *work,
                                          const struct hfd_reconciled *ended,
                                          struct hfd_hs_reports *out, struct hfd_err *err);

#define HFD_HS_CONDITIONS_MAX 4

/** Writes the conditions of a report. @return how many */
size_t hfd_hs_report_conditions(const struct hfd_hs_work *work, const struct hfd_hs_report *report,
                                struct hfd_condition out[HFD_HS_CONDITIONS_MAX]);

/** The report that HyperFleet has of the same adapter; `adapter` is empty if it has none. */
static inline const struct hfd_report_row *hfd_hs_report_previous(const struct hfd_hs_work *w,
                                                                  const struct hfd_hs_report *r)
{
    return strcmp(r->adapter, HFD_HS_ADAPTER) == 0 ? &w->prev : &w->prev_validation;
}

/*
 * The objects that HyperShift's operator makes of ours, as a tree by owner references, for the
 * status query's detail. It is read only, bounded, and without it all else works. Source:
 * HyperShift design, "Resource dependency diagram". Thread: the adapter's.
 */

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
