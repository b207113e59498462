/*
 * An adapter's report on a cluster or nodepool: judged, stored and aggregated. Source: HyperFleet
 * API; the tables in README.md. Thread: writer, inside a transaction function.
 */
#ifndef HFD_FLEET_REPORT_H
#define HFD_FLEET_REPORT_H

#include "driver/fleet/aggregate.h"
#include "driver/fleet/fleet.h"
#include "driver/fleet/objects.h"

/**
 * How far the times of adapters may be ahead of the server's clock. Source: driver/README.md,
 * decision 15.
 */
#define HFD_FLEET_AHEAD_MAX_US (INT64_C(300) * 1000000)

/** A report as received, checked for form. */
struct hfd_fleet_report {
    struct hfd_fleet_target target;
    hfd_slice adapter;
    int64_t observed_generation;
    int64_t observed_us;
    bool keeps_unknown;               /* Available=Unknown is no reason to discard it */
    struct hfd_conditions conditions; /* types unique */
    hfd_slice data;                   /* JSON object, canonical, values of data.secrets redacted */
    hfd_slice secrets;                /* data.secrets as JSON, plain, or none */
    hfd_slice metadata;               /* JSON object, canonical, or empty */
    struct hfd_object_counts objects; /* of the objects in data */
};

struct hfd_fleet_reported {
    enum hfd_verdict verdict;  /* DISCARD: nothing was stored, and row is empty */
    struct hfd_report_row row; /* as stored */
    const char *cause;         /* DISCARD: as hfd_report_verdict gives it */
    char why[128];             /* DISCARD: "observed_generation 9 is above 1" */
};

/**
 * Judges a report, stores it and aggregates. Then removes the cluster or nodepool if its deletion
 * is complete, and checks its owner again.
 * @return HFD_OK, HFD_NOT_FOUND, HFD_INVALID (a mandatory condition is missing), HFD_LIMIT
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_report(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                                       const struct hfd_fleet_report *in,
                                       struct hfd_fleet_reported *out, struct hfd_err *err);

/**
 * Refuses a report from outside under the name of an adapter of this program: each would overwrite
 * the other's.
 * @return HFD_OK, HFD_CONFLICT
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_check_reporter(const struct hfd_fleet *fleet, hfd_slice adapter,
                                               struct hfd_err *err);

/**
 * Stores a report that the server itself makes of the adapter's last one, and aggregates at
 * call->now_us. It counts whatever its generation and time are.
 * @param row  as it is to be stored; observed_us stays that of the adapter
 * @return HFD_OK, HFD_NOT_FOUND
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_report_restate(struct hfd_txn *tx,
                                               const struct hfd_fleet_call *call,
                                               const struct hfd_fleet_target *target,
                                               const struct hfd_report_row *row,
                                               struct hfd_err *err);

/**
 * Removes the last report of an adapter, and aggregates without it.
 * @return HFD_OK, HFD_NOT_FOUND (no such resource)
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_report_withdraw(struct hfd_txn *tx,
                                                const struct hfd_fleet_call *call,
                                                const struct hfd_fleet_target *target,
                                                hfd_slice adapter, struct hfd_err *err);

#endif
