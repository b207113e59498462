/*
 * An adapter's report on a cluster or nodepool: judged, stored and aggregated. Source: HyperFleet
 * API; the tables in README.md. Thread: writer, inside a transaction function.
 *
 * The objects that an adapter lists in its report, as data.objects: what it applies, or observes,
 * for a cluster or nodepool. Their counts are stored with the report, so that a summary reads no
 * data. Pure. Source: EMCO status query; handlers/docs/status.md. Thread: any.
 */
#ifndef HFD_FLEET_REPORT_H
#define HFD_FLEET_REPORT_H

#include "driver/base/jsonx.h"
#include "driver/fleet/aggregate.h"
#include "driver/fleet/fleet.h"

/** How far the adapter is with an object: EMCO's rsync-status. The numbers are stored. */
enum hfd_rsync {
    HFD_RSYNC_PENDING,
    HFD_RSYNC_APPLIED,
    HFD_RSYNC_FAILED,
    HFD_RSYNC_RETRYING,
    HFD_RSYNC_TERMINATED,
    HFD_RSYNC_COUNT
};

/** If the object is there: EMCO's cluster-status. The numbers are stored. */
enum hfd_presence {
    HFD_PRESENCE_UNKNOWN,
    HFD_PRESENCE_NOT_PRESENT,
    HFD_PRESENCE_PRESENT,
    HFD_PRESENCE_COUNT
};

/**
 * "Pending", and back. "Instantiated" is Applied and "Deleted" Terminated too. hfd_rsync_parse
 * returns false for any other text.
 */
const char *hfd_rsync_name(enum hfd_rsync s);
/** "Unknown", "NotPresent", "Present". */
const char *hfd_presence_name(enum hfd_presence p);

/** One object. Texts borrow from its entry; absent ones are empty. */
struct hfd_object {
    hfd_slice provider, cluster; /* where it is; both empty = the resource's own place */
    hfd_slice group, version, kind;
    hfd_slice name;
    hfd_slice node; /* of a PacemakerCluster document: the node that it runs on */
    bool has_rsync; /* false: the conditions of the report tell */
    enum hfd_rsync rsync;
    enum hfd_presence presence;
    bool observed_only; /* the adapter did not apply it: it has no rsync-status */
};

/**
 * Reads an entry of data.objects.
 * @return false if it is no object with a name: such an entry counts nowhere
 */
bool hfd_object_read(const json_t *entry, struct hfd_object *out);

/** The counts of a report's objects. */
struct hfd_object_counts {
    int64_t own[HFD_RSYNC_COUNT]; /* that have a rsync-status of their own */
    int64_t other;                /* that have none */
    int64_t presence[HFD_PRESENCE_COUNT];
};

/** Adds one object. */
void hfd_object_count(const struct hfd_object *object, struct hfd_object_counts *counts);
/** Adds the entries of data.objects. @param data  of a report; may be NULL */
void hfd_objects_count(const json_t *data, struct hfd_object_counts *counts);
/** Refuses an unknown rsync-status. @return HFD_OK, HFD_INVALID with the field and the words */
HFD_MUST_CHECK hfd_rc hfd_objects_check(const json_t *data, struct hfd_err *err);
/** True if nothing was counted. */
bool hfd_object_counts_none(const struct hfd_object_counts *counts);

/**
 * Writes the stored form; no counts are an empty text.
 * @param out  in mem
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_object_counts_format(const struct hfd_object_counts *counts,
                                               struct hfd_arena *mem, hfd_slice *out);
/** Reads the stored form. A text of another form counts nothing. */
void hfd_object_counts_parse(hfd_slice stored, struct hfd_object_counts *out);

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

/**
 * Sets the brief form of a report whose conditions are long: those that are judged, with messages
 * as they are shown. Others have none.
 * @param row  its conditions are set; gets brief, in mem, and long_bytes
 * @return HFD_OK, HFD_CORRUPT, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_report_brief(struct hfd_report_row *row, struct hfd_arena *mem,
                                       struct hfd_err *err);

#endif
