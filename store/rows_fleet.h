/*
 * Rows of HyperFleet resources: clusters and nodepools. store/README.md, "Row functions", has the
 * rules of all row functions.
 */
#ifndef HFD_STORE_ROWS_FLEET_H
#define HFD_STORE_ROWS_FLEET_H

#include "driver/base/arena.h"
#include "store/kind.h"
#include "store/store.h"

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
 * Notes that the rows whose ids another read gives will be read, where the engine gathers.
 * @param via  gives ids; see struct hfd_db_follow
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_follow(struct hfd_txn *tx, const char *via, hfd_slice key,
                                           struct hfd_err *err);
/** The same of the children of clusters. */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_follow_children(struct hfd_txn *tx, const char *via,
                                                    hfd_slice key, struct hfd_err *err);

#endif
