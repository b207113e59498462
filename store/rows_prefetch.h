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

/*
 * Roots: the locks of a job where groups of several servers write at the same time. A job that
 * names its roots in hfd_job.prefetch runs beside all that have other roots. A job that names none
 * runs alone.
 *
 * A cluster is one root with all its nodepools: that of its driver resource, else its own. A
 * nodepool resource has a root of its own, and always that of its cluster as well. So what changes
 * the family of a cluster needs the root of the cluster alone. With one writer nothing of this does
 * anything. Thread: writer.
 */
/** Names a driver resource, and the clusters of its parts. */
HFD_MUST_CHECK hfd_rc hfd_root_resource(struct hfd_txn *tx, hfd_slice guresid, struct hfd_err *err);
/** Names a HyperFleet resource and its cluster: the driver resources that they belong to. */
HFD_MUST_CHECK hfd_rc hfd_root_fleet(struct hfd_txn *tx, hfd_slice id, struct hfd_err *err);
/**
 * A job calls it before it reads what it changes beyond its roots.
 * @return HFD_OK: it is alone. HFD_BUSY: the group runs again, alone; the job fails for now
 */
HFD_MUST_CHECK hfd_rc hfd_roots_leave(struct hfd_txn *tx, struct hfd_err *err);

#endif
