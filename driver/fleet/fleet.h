/*
 * The embedded HyperFleet engine: transaction functions on clusters and nodepools. report.h has the
 * one for adapter reports. Each function appends what it changed to call->changes; the caller acts
 * on that in the same transaction. The engine knows no HTTP and no driver resource. Source:
 * HyperFleet API; README.md in this folder. Thread: writer for what changes, any reader for what
 * reads, inside a transaction function.
 *
 * The list of clusters and nodepools that the functions of one request changed. Their caller
 * observes them in the same transaction. Thread: writer, inside a transaction function.
 *
 * Actions on clusters that no driver resource ordered, as entries of the one history
 * (store/rows_history.h). A cluster's row tells its creation and its deletion as long as it is
 * there. An update is written when it is made. All are written when the cluster is removed. Thread:
 * writer for what writes, else any, inside a transaction function.
 */
#ifndef HFD_FLEET_FLEET_H
#define HFD_FLEET_FLEET_H

#include "driver/base/arena.h"
#include "driver/base/rng.h"
#include "driver/base/slice.h"
#include "driver/fleet/aggregate.h"
#include "driver/fleet/keys.h"
#include "store/kind.h"
#include "store/rows_fleet.h"
#include "store/rows_history.h"
#include "store/rows_report.h"
#include "store/txn.h"

struct hfd_fleet_call;

/** A cluster or nodepool whose conditions, generation or existence changed. */
struct hfd_fleet_change {
    hfd_slice id;
    hfd_slice owner_id; /* the cluster of a nodepool; may be empty for a report */
    bool removed;
    bool reported;         /* by a report alone: hfd_fleet_set_observer_idle applies */
    int64_t observer_idle; /* as in its row */
};

/** Changes in their order, each cluster or nodepool once. Set mem alone to begin a list. */
struct hfd_fleet_changes {
    struct hfd_arena *mem; /* of items and ids */
    struct hfd_fleet_change *items;
    size_t count, capacity;
};

/** The secrets of a report, and the place that they are bound to. */
struct hfd_fleet_secret {
    hfd_slice fleet_id;
    hfd_slice adapter;
    hfd_slice plain; /* data.secrets as JSON */
};

/** Rings once a cluster or nodepool that has become due is on disk. All zero = nothing listens. */
struct hfd_fleet_bell {
    void (*ring)(void *ctx); /* cheap, never waits; thread: writer */
    void *ctx;
};

/** The settings of the engine; const after start-up, shared by all threads. */
struct hfd_fleet {
    struct hfd_adapter_names required[3]; /* by enum hfd_kind */
    /**
     * Adapters that observe a cluster and have no part in making it. One is required as well while
     * its stored report has a verdict, the server's HFD_OBSERVER_CONDITION, and the cluster is not
     * being deleted.
     */
    struct hfd_adapter_names observers;
    char owner[40];                   /* HFD_LABEL_OWNER of this server; empty = not known */
    struct hfd_adapter_names builtin; /* adapters of this program: no report of others has a name
                                         of these */
    const struct hfd_rng *rng;
    int64_t due_keep_us;        /* events.keep: how long the event of what was removed is kept */
    int64_t tombstone_us;       /* driver.tombstone: how long the history outlives its subject */
    struct hfd_fleet_bell bell; /* const after start-up */
    /**
     * Fingerprint of all settings that the caller's observer depends on; 0 = none. While a row
     * carries it (hfd_fleet_row.observer_idle), reports without news are not appended to changes.
     * With several replicas it carries the epoch of the settings (fleet.h).
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
    bool again;       /* a new attempt: it is due also where the call changes nothing */
    bool by_others;   /* not the driver: its labels are not the caller's (hfd_fleet_claim) */
    struct hfd_arena *mem;
    struct hfd_fleet_changes *changes; /* appended to; NULL = the caller does not need them */
};

/**
 * Appends a change. A second change of the same id is merged into the first.
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_note_change(const struct hfd_fleet_call *call,
                                            const struct hfd_fleet_change *change,
                                            struct hfd_err *err);

/**
 * Sets the mark that reports without news need no observer, on a cluster or nodepool. It holds
 * while the settings stay the same. Writes only a change. Thread: writer.
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_set_observer_idle(struct hfd_txn *tx,
                                                  const struct hfd_fleet_call *call,
                                                  const struct hfd_fleet_change *change, bool idle,
                                                  struct hfd_err *err);

/**
 * Makes a fingerprint of settings carry their epoch, for several replicas on one database. An older
 * one does not replace a newer one in a row.
 * @param epoch  1 to 16,777,215; a higher one counts as that
 */
int64_t hfd_fleet_fingerprint_of_epoch(int64_t fingerprint, int64_t epoch);

/** The owner of a cluster or nodepool, by its labels. All empty = the driver did not make it. */
struct hfd_fleet_claim {
    hfd_slice guresid; /* the driver resource that it is made for */
    hfd_slice owner;   /* the server of this driver that made it; empty = not told */
    bool ours;         /* it has the label of a GUResID, and no other server's */
};

/** Reads a claim from a row's labels. @param out  texts in mem */
HFD_MUST_CHECK hfd_rc hfd_fleet_claim_read(const struct hfd_fleet *fleet, hfd_slice labels,
                                           struct hfd_arena *mem, struct hfd_fleet_claim *out,
                                           struct hfd_err *err);

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
 * Creates a cluster or nodepool. This is a change for call->changes if others make a nodepool.
 * @return HFD_OK, HFD_CONFLICT (the name is taken), HFD_NOT_FOUND (no such owner), HFD_DELETING
 * (the owner is being deleted), HFD_INVALID (others gave it a label of the driver)
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
 * @return HFD_OK, HFD_NOT_FOUND, HFD_DELETING, HFD_INVALID (others changed a label of the driver)
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

/**
 * As hfd_conditions_parse, for a text of a row. A job parses each text once: the unit of work keeps
 * what it was parsed into.
 * @param out lives in mem, and is the caller's to change
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_conditions(struct hfd_txn *tx, hfd_slice stored,
                                           struct hfd_arena *mem, struct hfd_conditions *out,
                                           struct hfd_err *err);

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

/** The tombstones that are kept at this time: driver.tombstone, at most HFD_TOMBSTONES_MAX. */
struct hfd_tombstone_limits hfd_fleet_tombstone_limits(const struct hfd_fleet *fleet,
                                                       int64_t now_us);

/** The entry of a cluster's creation, without seq. Pure. */
struct hfd_history_row hfd_fleet_action_create(const struct hfd_fleet_row *row);
/** The entry of the request to delete it, without seq. Pure. */
struct hfd_history_row hfd_fleet_action_delete(const struct hfd_fleet_row *row);

#endif
