/*
 * Reads of a job, noted beforehand: hfd_job.prefetch calls these. An engine that gathers reads
 * it for all jobs of a group at once. The functions give no rows, and their failures mean nothing.
 *
 * Reading too much costs time, reading too little a round trip; neither changes a result.
 * Thread: writer.
 */
#ifndef HFD_STORE_ROWS_PREFETCH_H
#define HFD_STORE_ROWS_PREFETCH_H

#include "store/txn.h"

/** A driver resource, its parts, and their HyperFleet resources with the heads of their reports. */
HFD_MUST_CHECK hfd_rc hfd_prefetch_resource(struct hfd_txn *tx, hfd_slice guresid,
                                            struct hfd_err *err);
/** The same for a driver resource that is to go: also what each of its clusters owns. */
HFD_MUST_CHECK hfd_rc hfd_prefetch_deletion(struct hfd_txn *tx, hfd_slice guresid,
                                            struct hfd_err *err);

/** The subject of a report. */
struct hfd_prefetch_report {
    hfd_slice fleet_id, owner_id; /* the owner may be none */
    hfd_slice adapter;
    struct hfd_arena *mem;
};
/** A HyperFleet resource with its reports, and the driver resource that it belongs to. */
HFD_MUST_CHECK hfd_rc hfd_prefetch_report(struct hfd_txn *tx, const struct hfd_prefetch_report *of,
                                          struct hfd_err *err);

#endif
