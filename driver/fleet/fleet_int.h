/* Shared by fleet.c and report.c. Thread: writer, inside a transaction function. */
#ifndef HFD_FLEET_FLEET_INT_H
#define HFD_FLEET_FLEET_INT_H

#include "driver/fleet/fleet.h"

/* Memory for one cluster or nodepool with its reports. */
#define HFD_FLEET_SCRATCH_MAX_BYTES ((size_t)128 * 1024 * 1024)

/* One call inside its transaction. */
struct hfd_fleet_work {
    struct hfd_txn *tx;
    const struct hfd_fleet_call *call;
    struct hfd_err *err;
};

/* The input of aggregation for a cluster or nodepool. */
struct hfd_fleet_agg {
    struct hfd_conditions prev;
    struct hfd_agg_input in;
};

/**
 * Reads what aggregation needs.
 * @param replacing  a report that is about to be written in place of its adapter's last one, or
 * NULL
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_agg_load(const struct hfd_fleet_work *w,
                                         const struct hfd_fleet_row *row,
                                         const struct hfd_report_row *replacing,
                                         struct hfd_fleet_agg *out);

/** hfd_fleet.observers of a cluster; a nodepool has none. */
static inline struct hfd_adapter_names hfd_fleet_observers_of(const struct hfd_fleet *fleet,
                                                              enum hfd_kind kind)
{
    return kind == HFD_KIND_CLUSTER ? fleet->observers : (struct hfd_adapter_names){NULL, 0};
}

/** Copies the states of Ready and Reconciled from the conditions to the row. */
void hfd_fleet_note_ready(const struct hfd_conditions *cs, struct hfd_fleet_row *row);

/** Puts conditions into their stored form, in call->mem. @return HFD_OK, HFD_LIMIT, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_fleet_store_conditions(const struct hfd_fleet_work *w,
                                                 const struct hfd_conditions *cs, bool of_report,
                                                 hfd_slice *out);

/** Updates what searches find a row by. NULL conditions = it was, or is, not there. */
HFD_MUST_CHECK hfd_rc hfd_fleet_update_keys(const struct hfd_fleet_work *w,
                                            const struct hfd_fleet_row *row, hfd_slice labels_were,
                                            const struct hfd_conditions *were,
                                            const struct hfd_conditions *are);

/**
 * Removes a cluster or nodepool whose deletion is complete, and then its owner if that waited for
 * nothing else.
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_remove_if_finalized(const struct hfd_fleet_work *w,
                                                    const struct hfd_fleet_row *row, bool *removed);

#endif
