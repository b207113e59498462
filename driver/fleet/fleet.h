/*
 * The embedded HyperFleet engine: transaction functions on clusters, nodepools and adapter reports.
 * Knows no HTTP and no driver resource; whoever wants to know of changes sets `on_change`. Sources:
 * 000_b453de1dc0312d98.txt; spec/hyperfleet-versions.md section 3 for PATCH and DELETE. Thread:
 * writer (what changes) or any reader (what reads), inside a transaction function.
 */
#ifndef HFD_FLEET_FLEET_H
#define HFD_FLEET_FLEET_H

#include "driver/base/rng.h"
#include "driver/fleet/aggregate.h"
#include "store/rows_fleet.h"
#include "store/rows_report.h"

enum hfd_fleet_change {
    HFD_FLEET_CHANGED,
    HFD_FLEET_REMOVED
};

/** What on_change is told. */
struct hfd_fleet_event {
    enum hfd_fleet_change what;
    const struct hfd_fleet_row
        *row; /* its state after the change, or its last one on HFD_FLEET_REMOVED */
    int64_t now_us;
    /**
     * Set by it: it need not hear of further reports that say the same of the same, whatever their
     * times. False at first.
     */
    bool steady;
};

/** What the engine is made of; const after start-up, shared by all threads. */
struct hfd_fleet {
    struct hfd_adapter_names required[3]; /* by enum hfd_kind */
    const struct hfd_rng *rng;
    /**
     * Called inside the transaction after a resource's conditions, generation or existence changed
     * (never for a resource that is just being made). A failure fails the transaction.
     */
    hfd_rc (*on_change)(void *ctx, struct hfd_txn *tx, struct hfd_fleet_event *event,
                        struct hfd_arena *mem, struct hfd_err *err);
    void *on_change_ctx;
    /**
     * Stands for all that on_change goes by besides the rows: another number for other settings. A
     * resource of which it was steady under this mark is not told to it again until something is
     * new; it is kept in the row. 0 = on_change is told of every report.
     */
    int64_t mark;
    /** Seals data.secrets of a report for rest; NULL = none arrive. p is NULL on failure. */
    hfd_slice (*seal)(void *ctx, hfd_slice fleet_id, hfd_slice adapter, hfd_slice plain,
                      struct hfd_arena *mem);
    void *seal_ctx;
};

/**
 * "/api/hyperfleet/v1/clusters/2abc...", a nodepool's nested under its cluster. Adds the bare
 * text: ids need no escaping.
 */
void hfd_fleet_href(struct hfd_buf *b, const struct hfd_fleet_row *row);

/** Who asks, and when. */
struct hfd_fleet_call {
    const struct hfd_fleet *fleet;
    int64_t now_us;
    hfd_slice caller; /* for created_by and updated_by, e-mail shaped */
    struct hfd_arena *mem;
};

struct hfd_fleet_create {
    enum hfd_kind kind;
    hfd_slice owner_id; /* empty for clusters */
    hfd_slice name;     /* checked by hfd_name_check */
    hfd_slice spec;     /* JSON object, canonical, so that equal documents are equal bytes */
    hfd_slice labels;   /* JSON object of strings, canonical */
};

/**
 * @return HFD_OK, HFD_CONFLICT (the name is taken), HFD_NOT_FOUND (no such owner), HFD_DELETING
 * (the owner is)
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_create(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                                       const struct hfd_fleet_create *in, struct hfd_fleet_row *out,
                                       struct hfd_err *err);

/**
 * Reads one resource. owner_id: the cluster of the path, checked for nodepools; empty on flat
 * paths.
 * @return HFD_OK, HFD_NOT_FOUND with HyperFleet's text
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_get(struct hfd_txn *tx, enum hfd_kind kind, hfd_slice owner_id,
                                    hfd_slice id, struct hfd_arena *mem, struct hfd_fleet_row *out,
                                    struct hfd_err *err);

struct hfd_fleet_patch {
    enum hfd_kind kind;
    hfd_slice owner_id;
    hfd_slice id;
    hfd_slice spec;   /* canonical; replaces; p == NULL leaves it */
    hfd_slice labels; /* likewise */
};

/**
 * Equal documents (whatever their key order) change nothing. @return HFD_OK, HFD_NOT_FOUND,
 * HFD_DELETING
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_patch(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                                      const struct hfd_fleet_patch *in, struct hfd_fleet_row *out,
                                      struct hfd_err *err);

/**
 * Marks a resource and its nodepools for deletion; a repeat marks nothing, and removes what waits
 * for nobody any more, as when the required adapters have become fewer. Kinds without required
 * adapters are removed at once.
 * @param gone  whether it was removed; out is its last state then
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_delete(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                                       enum hfd_kind kind, hfd_slice owner_id, hfd_slice id,
                                       struct hfd_fleet_row *out, bool *gone, struct hfd_err *err);

/**
 * Removes a resource that is being deleted, and all that it owns, without waiting for its adapters:
 * for the operator whose adapter is no more.
 * @return HFD_OK, HFD_NOT_FOUND, HFD_DELETING (it is not being deleted: HyperFleet's words)
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_force_delete(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                                             enum hfd_kind kind, hfd_slice owner_id, hfd_slice id,
                                             struct hfd_err *err);

/** A report as it came in, checked for form. */
struct hfd_fleet_report {
    enum hfd_kind kind;
    hfd_slice owner_id, id;
    hfd_slice adapter;
    int64_t observed_generation;
    int64_t observed_us;
    struct hfd_conditions conditions; /* types unique */
    hfd_slice data;                   /* JSON object, canonical, values of data.secrets redacted */
    hfd_slice secrets;                /* data.secrets as JSON, plain, or none */
    hfd_slice metadata;               /* JSON object, canonical, or empty */
};

/**
 * Judges a report, stores it, aggregates, and removes the resource when its deletion is complete
 * (then its owner is checked again).
 * @param verdict  DISCARD: nothing stored, out is empty
 * @param out      the stored report
 * @return HFD_OK, HFD_NOT_FOUND, HFD_INVALID (a mandatory condition is missing)
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_report(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                                       const struct hfd_fleet_report *in, enum hfd_verdict *verdict,
                                       struct hfd_report_row *out, struct hfd_err *err);

/** The reports of a resource as aggregation sees them. */
HFD_MUST_CHECK hfd_rc hfd_fleet_reports(struct hfd_txn *tx, hfd_slice id, struct hfd_arena *mem,
                                        struct hfd_agg_reports *out, struct hfd_err *err);

#endif
