/*
 * The embedded HyperFleet engine: transaction functions on clusters and nodepools. report.h has the
 * one for adapter reports. Each function appends what it changed to call->changes; the caller acts
 * on that in the same transaction. The engine knows no HTTP and no driver resource. Source:
 * HyperFleet API; README.md in this folder. Thread: writer for what changes, any reader for what
 * reads, inside a transaction function.
 */
#ifndef HFD_FLEET_FLEET_H
#define HFD_FLEET_FLEET_H

#include "driver/base/rng.h"
#include "driver/fleet/aggregate.h"
#include "driver/fleet/changes.h"
#include "store/rows_fleet.h"
#include "store/rows_report.h"

/** The secrets of a report, and the place that they are bound to. */
struct hfd_fleet_secret {
    hfd_slice fleet_id;
    hfd_slice adapter;
    hfd_slice plain; /* data.secrets as JSON */
};

struct hfd_fleet_call;

/** The settings of the engine; const after start-up, shared by all threads. */
struct hfd_fleet {
    struct hfd_adapter_names required[3]; /* by enum hfd_kind */
    /**
     * Adapters that observe a cluster and have no part in making it. One is required as well while
     * its stored report has a verdict, the server's HFD_OBSERVER_CONDITION, and the cluster is not
     * being deleted.
     */
    struct hfd_adapter_names observers;
    struct hfd_adapter_names builtin; /* adapters of this program: no report of others has a name
                                         of these */
    const struct hfd_rng *rng;
    int64_t tombstone_us; /* driver.tombstone: how long the history outlives its subject */
    /**
     * Fingerprint of all settings that the caller's observer depends on; 0 = none. While a row
     * carries it (hfd_fleet_row.observer_idle), reports without news are not appended to changes.
     * With several replicas it carries the epoch of the settings (changes.h).
     */
    int64_t settings_fingerprint;
    /**
     * Seals the secrets of a report for storage. `fleet` is this struct, for what the function
     * keeps beside it. p is NULL on failure. NULL = reports have no secrets.
     */
    hfd_slice (*seal)(const struct hfd_fleet *fleet, const struct hfd_fleet_secret *secret,
                      struct hfd_arena *mem);
    /**
     * Called before a cluster or nodepool is removed with its reports, and before a PATCH changes
     * it. `call->fleet` is this struct. NULL = nothing follows from it.
     */
    hfd_rc (*ending)(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                     const struct hfd_fleet_row *row, bool removed, struct hfd_err *err);
};

/** The arguments that all functions of one request share. */
struct hfd_fleet_call {
    const struct hfd_fleet *fleet;
    int64_t now_us;
    hfd_slice caller; /* for created_by and updated_by, e-mail shaped */
    struct hfd_arena *mem;
    struct hfd_fleet_changes *changes; /* appended to; NULL = the caller does not need them */
};

/** One cluster or nodepool, as a path names it. */
struct hfd_fleet_target {
    enum hfd_kind kind;
    hfd_slice owner_id; /* the cluster in a nodepool's path; empty = not named, or no nodepool */
    hfd_slice id;
};

/**
 * Adds "/api/hyperfleet/v1/clusters/2abc...", a nodepool's nested under its cluster. Ids need no
 * escaping.
 */
void hfd_fleet_href(struct hfd_buf *b, const struct hfd_fleet_row *row);

struct hfd_fleet_create {
    enum hfd_kind kind;
    hfd_slice owner_id; /* empty for clusters */
    hfd_slice name;     /* checked by hfd_name_check */
    hfd_slice spec;     /* JSON object, canonical: equal documents are equal bytes */
    hfd_slice labels;   /* JSON object of strings, canonical */
};

/**
 * Creates a cluster or nodepool. This is no change for call->changes.
 * @return HFD_OK, HFD_CONFLICT (the name is taken), HFD_NOT_FOUND (no such owner), HFD_DELETING
 * (the owner is being deleted)
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_create(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                                       const struct hfd_fleet_create *in, struct hfd_fleet_row *out,
                                       struct hfd_err *err);

/**
 * Reads one cluster or nodepool. An owner that the target names must exist and own it.
 * @return HFD_OK, HFD_NOT_FOUND with HyperFleet's text
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_get(struct hfd_txn *tx, const struct hfd_fleet_target *target,
                                    struct hfd_arena *mem, struct hfd_fleet_row *out,
                                    struct hfd_err *err);

struct hfd_fleet_patch {
    struct hfd_fleet_target target;
    hfd_slice spec;   /* canonical; replaces the stored one; p == NULL leaves it */
    hfd_slice labels; /* likewise */
};

/**
 * Replaces spec and labels and raises the generation. Documents that are equal, whatever their key
 * order, change nothing.
 * @return HFD_OK, HFD_NOT_FOUND, HFD_DELETING
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_patch(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                                      const struct hfd_fleet_patch *in, struct hfd_fleet_row *out,
                                      struct hfd_err *err);

/** The result of a deletion. */
struct hfd_fleet_deletion {
    struct hfd_fleet_row row; /* its last state if it was removed */
    bool removed;
};

/**
 * Marks a cluster or nodepool, and the nodepools of a cluster, for deletion. Removes what no
 * required adapter has to finalize. A repeat marks nothing again, but still removes.
 * @return HFD_OK, HFD_NOT_FOUND
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_delete(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                                       const struct hfd_fleet_target *target,
                                       struct hfd_fleet_deletion *out, struct hfd_err *err);

/**
 * Removes what is being deleted, and all that it owns, without waiting for adapters: for an
 * operator whose adapter no longer exists.
 * @return HFD_OK, HFD_NOT_FOUND, HFD_DELETING (it is not being deleted; HyperFleet's text)
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_force_delete(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                                             const struct hfd_fleet_target *target,
                                             struct hfd_err *err);

/** Calls hfd_fleet.ending, if there is one. */
HFD_MUST_CHECK hfd_rc hfd_fleet_end(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                                    const struct hfd_fleet_row *row, bool removed,
                                    struct hfd_err *err);

/** Reads the reports on a cluster or nodepool as aggregation needs them. */
HFD_MUST_CHECK hfd_rc hfd_fleet_reports(struct hfd_txn *tx, hfd_slice id, struct hfd_arena *mem,
                                        struct hfd_agg_reports *out, struct hfd_err *err);

#endif
