/*
 * Rows of HyperFleet resources: clusters and nodepools. store/README.md, "Row functions", has the
 * rules of all row functions.
 *
 * The nodepools of a cluster in the unit of work. Once they were listed, their heads are kept, so
 * that the next list reads nothing.
 *
 * Thread: that of the transaction.
 *
 * Search keys of HyperFleet resources: copies of labels and of conditions' status, for lists.
 *
 * Counts of HyperFleet resources that are not reconciled.
 *
 * Orphans of the embedded HyperFleet: resources with our label that are no part.
 */
#ifndef HFD_STORE_ROWS_FLEET_H
#define HFD_STORE_ROWS_FLEET_H

#include "driver/base/arena.h"
#include "store/kind.h"

struct hfd_txn;

struct hfd_fleet_row {
    int64_t seq; /* its number in the store; insert sets it */
    hfd_slice id;
    enum hfd_kind kind;
    hfd_slice owner_id; /* the cluster of a nodepool, else empty */
    hfd_slice name;
    int64_t generation;
    hfd_slice spec;        /* JSON object */
    hfd_slice labels;      /* JSON object of strings */
    hfd_slice conditions;  /* JSON array: hfd_conditions_parse/format */
    bool ready;            /* its Ready condition is True */
    int64_t ready_seen_us; /* last_updated_time of Ready; INT64_MAX = none. Not kept for a remote */
    int64_t pending_us;    /* since when Reconciled is False; 0 = it is not. 0 for a remote */
    int64_t observer_idle; /* hfd_fleet.settings_fingerprint if the observer needs no reports
                              without news; 0 = it needs each */
    int64_t created_us, updated_us, deleted_us; /* deleted_us: when deletion was requested, or 0 */
    hfd_slice created_by, updated_by, deleted_by;
    int64_t due_seq; /* of its last change: rows_due.h. 0 for a remote, and for one that has not
                        changed since there are such numbers */
    hfd_slice trace; /* traceparent of that change; may be empty */
};

struct hfd_fleet_list {
    struct hfd_fleet_row *rows;
    size_t count;
    int64_t total; /* all matches, of which the list is one page */
};

/** A name and the place where it must be unique. */
struct hfd_fleet_name {
    enum hfd_kind kind;
    hfd_slice owner_id; /* empty for clusters */
    hfd_slice name;
};

/** A page of resources behind a place in the order of creation. */
struct hfd_pending_query {
    int64_t after_us, after_seq;
    int64_t limit;
    bool all; /* whatever their Ready is, by their numbers: after_us does not count */
};

/** @return HFD_OK, HFD_NOT_FOUND, HFD_NOMEM, HFD_IO, HFD_CORRUPT */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_get(struct hfd_txn *tx, hfd_slice id, struct hfd_arena *mem,
                                        struct hfd_fleet_row *out, struct hfd_err *err);
/** Reads rows together, for the hfd_fleet_row_get that follow: hfd_unit_prefetch. */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_prefetch(struct hfd_txn *tx, const hfd_slice *ids, size_t count,
                                             struct hfd_err *err);
/** As get, by the resource's number. */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_at(struct hfd_txn *tx, int64_t seq, struct hfd_arena *mem,
                                       struct hfd_fleet_row *out, struct hfd_err *err);
/** Sets row->seq. @return HFD_CONFLICT when the name or the id is taken */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_insert(struct hfd_txn *tx, struct hfd_fleet_row *row,
                                           struct hfd_err *err);
/**
 * Writes all columns but seq, id, kind, owner_id and created_*; observer_idle becomes 0.
 * @return HFD_NOT_FOUND, HFD_CONFLICT when the name is taken
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_update(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                                           struct hfd_err *err);
/**
 * Writes conditions, ready, ready_seen_us, pending_us and observer_idle alone: all that a report
 * changes. The indexes over other columns are not touched.
 * @param was  the stored row: the indexes over columns that are equal are not touched
 * @return HFD_NOT_FOUND
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_judged(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                                           const struct hfd_fleet_row *was, struct hfd_err *err);
/** Removes the row and its reports. hfd_fleet_keys_put removes its search keys. */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_delete(struct hfd_txn *tx, hfd_slice id, struct hfd_err *err);
/** Finds the resource of that name whose deletion was not requested. @return HFD_NOT_FOUND */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_by_name(struct hfd_txn *tx, const struct hfd_fleet_name *name,
                                            struct hfd_arena *mem, struct hfd_fleet_row *out,
                                            struct hfd_err *err);
/**
 * Lists all nodepools of a cluster, oldest first, also those being deleted. spec, labels and
 * conditions are left empty, because together they may be large.
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_children(struct hfd_txn *tx, hfd_slice cluster_id,
                                             struct hfd_arena *mem, struct hfd_fleet_list *out,
                                             struct hfd_err *err);
/** Lists resources whose Ready is not True, oldest first; or all. */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_pending(struct hfd_txn *tx,
                                            const struct hfd_pending_query *query,
                                            struct hfd_arena *mem, struct hfd_fleet_list *out,
                                            struct hfd_err *err);

/**
 * Replaces the id `from` by `to` in everything that refers to a HyperFleet resource: nodepools,
 * parts, driver resources.
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_refer(struct hfd_txn *tx, hfd_slice from, hfd_slice to,
                                          struct hfd_arena *mem, struct hfd_err *err);

/*
 * The label that has another value for each cluster. Lists by it are short, so the store keeps no
 * totals of it: they would cost a row for each resource.
 */
#define HFD_LABEL_UNCOUNTED "humanitec_guresid"
/** The label that names the server of this driver whose cluster or nodepool it is. */
#define HFD_LABEL_OWNER "humanitec_owner"

/* Texts are borrowed. */
struct hfd_fleet_label {
    hfd_slice key, value;
};

struct hfd_fleet_condition {
    hfd_slice type, status;
};

struct hfd_fleet_keys {
    const struct hfd_fleet_label *labels; /* keys unique and ascending */
    size_t label_count;
    const struct hfd_fleet_condition *conditions; /* types unique */
    size_t condition_count;
};

/**
 * Makes a resource findable by `is` instead of `was`. Writes only what differs.
 * @param row  seq, kind and created_us are used
 * @param was  the keys of the last call for this resource; empty for a new one
 * @param is   empty for a resource that is removed
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_keys_put(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                                         const struct hfd_fleet_keys *was,
                                         const struct hfd_fleet_keys *is, struct hfd_err *err);

/** Resources whose Reconciled is False. */
struct hfd_unreconciled {
    int64_t count, stuck;
    int64_t oldest_us; /* the earliest pending_us; INT64_MAX = there is none */
};

/** They by kind, and by whether deletion was requested. */
struct hfd_unreconciled_counts {
    struct hfd_unreconciled of[HFD_KIND_NODEPOOL + 1][2];
};

/** Counts the resources whose Reconciled is False; stuck since before `stuck_before_us`. */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_unreconciled(struct hfd_txn *tx, int64_t stuck_before_us,
                                                 struct hfd_arena *mem,
                                                 struct hfd_unreconciled_counts *out,
                                                 struct hfd_err *err);

struct hfd_orphan_row {
    hfd_slice label; /* its value */
    hfd_slice id;
    enum hfd_kind kind;
    hfd_slice owner_id;
    hfd_slice name;
    int64_t generation;
    bool ready;
    int64_t created_us, deleted_us;
    hfd_slice created_by;
    int64_t wanted_us; /* of a remote: when its removal was ordered, and is not finished; 0 = not */
    hfd_slice error;   /* of a remote: why it cannot be deleted or looked at; empty = no error */
};

struct hfd_orphan_list {
    struct hfd_orphan_row *rows;
    size_t count;
};

/** The owner of orphans, as HFD_LABEL_OWNER has it. */
struct hfd_orphan_owner {
    hfd_slice own; /* that of this server; a row without the label belongs to it too */
    hfd_slice of;  /* whose are listed; empty = those of this server */
};

struct hfd_orphan_query {
    enum hfd_kind kind;
    hfd_slice key;   /* the label */
    hfd_slice value; /* p == NULL: any, of `owner` alone */
    struct hfd_orphan_owner owner;
    int64_t limit;
};

/** Lists resources with the label that are no part, by value and age; also deleted ones. */
HFD_MUST_CHECK hfd_rc hfd_orphan_row_list(struct hfd_txn *tx, const struct hfd_orphan_query *query,
                                          struct hfd_arena *mem, struct hfd_orphan_list *out,
                                          struct hfd_err *err);

#endif
