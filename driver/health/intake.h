/*
 * PacemakerCluster documents in the store: they live in the last report of an adapter that the
 * settings name as an observer, and nowhere else. A document comes in with a report, or through the
 * Kubernetes-shaped sub-resource. It is judged, and stored with its verdict as the adapter's
 * Available. Thread: writer for what changes, any reader for what reads, inside a transaction
 * function.
 */
#ifndef HFD_HEALTH_INTAKE_H
#define HFD_HEALTH_INTAKE_H

#include "driver/fleet/report.h"
#include "driver/health/document.h"
#include "driver/health/verdict.h"

/** Events that are kept of a cluster. */
#define HFD_HEALTH_EVENTS_KEPT 1000

struct hfd_health_report {
    const struct hfd_fleet_report *report; /* of an observer */
    const struct hfd_health_reading *given;
};

/**
 * As hfd_fleet_report, for the report of an observer. A report without a document leaves the
 * stored document in its place.
 * @return as hfd_fleet_report, and HFD_CONFLICT (R7: lastUpdated is earlier than the stored one),
 * HFD_INVALID (R2: the status is missing)
 */
HFD_MUST_CHECK hfd_rc hfd_health_report(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                                        const struct hfd_health_report *in,
                                        struct hfd_fleet_reported *out, struct hfd_err *err);

enum hfd_health_write {
    HFD_HEALTH_CREATE, /* POST: without its status */
    HFD_HEALTH_MAIN,   /* PUT: all but the status */
    HFD_HEALTH_STATUS  /* PUT .../status: the status alone */
};

struct hfd_health_put {
    hfd_slice cluster_id, adapter;
    enum hfd_health_write what;
    const struct hfd_health_reading *given;
};

/**
 * Writes a document through the sub-resource.
 * @param text  the document as stored, in call->mem
 * @return HFD_OK, HFD_NOT_FOUND (no such cluster, or no document), HFD_CONFLICT (there is one
 * already; or as hfd_health_report), HFD_INVALID (as hfd_health_report)
 */
HFD_MUST_CHECK hfd_rc hfd_health_write(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                                       const struct hfd_health_put *in, hfd_slice *text,
                                       struct hfd_err *err);

/** Which cluster, and which observer of it. */
struct hfd_health_key {
    hfd_slice cluster_id, adapter;
};

/** Removes the document, and with it the adapter's report. @return HFD_OK, HFD_NOT_FOUND */
HFD_MUST_CHECK hfd_rc hfd_health_remove(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                                        const struct hfd_health_key *key, struct hfd_err *err);

/** Reads a document and judges it at call->now_us. @return HFD_OK, HFD_NOT_FOUND */
HFD_MUST_CHECK hfd_rc hfd_health_get(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                                     const struct hfd_health_key *key, struct hfd_health_view *out,
                                     struct hfd_err *err);

/** How many stale documents hfd_health_settle takes at once. */
#define HFD_HEALTH_SETTLE_MAX 100

/**
 * Tells the reports of documents that have become stale, at most HFD_HEALTH_SETTLE_MAX of them.
 * @param count  how many there were
 */
HFD_MUST_CHECK hfd_rc hfd_health_settle(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                                        size_t *count, struct hfd_err *err);

#endif
