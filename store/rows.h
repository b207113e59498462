/*
 * The rows of the store as plain structs, and the statements that read and write them. Text in a
 * row that was read lives in the arena given; text in a row that is written is borrowed during the
 * call. All functions run inside a transaction function, on its thread. Each answers HFD_OK,
 * HFD_NOT_FOUND (only where said), HFD_CONFLICT (unique), HFD_NOMEM, HFD_IO or HFD_CORRUPT.
 */
#ifndef HFD_STORE_ROWS_H
#define HFD_STORE_ROWS_H

#include "driver/base/arena.h"
#include "store/store.h"

/** hfd_db_check, of what the transaction sees. */
HFD_MUST_CHECK hfd_rc hfd_rows_check(struct hfd_txn *tx, struct hfd_err *err);

enum hfd_kind {
    HFD_KIND_CLUSTER = 1,
    HFD_KIND_NODEPOOL = 2
};

struct hfd_fleet_row {
    int64_t seq; /* its number in the store, given by insert */
    hfd_slice id;
    enum hfd_kind kind;
    hfd_slice owner_id; /* the cluster of a nodepool, else empty */
    hfd_slice name;
    int64_t generation;
    hfd_slice spec;        /* JSON object */
    hfd_slice labels;      /* JSON object of strings */
    hfd_slice conditions;  /* JSON array: hfd_conditions_parse/format */
    bool ready;            /* its Ready condition is True */
    int64_t ready_seen_us; /* last_updated_time of Ready, INT64_MAX when it has none; not kept of a
                              remote's */
    int64_t told;          /* see hfd_fleet.mark; 0 = on_change is told of each report */
    int64_t created_us, updated_us, deleted_us; /* deleted_us 0 = not being deleted */
    hfd_slice created_by, updated_by, deleted_by;
};

/*
 * The label whose value is another one for each cluster. Lists by it are short, so that their
 * totals are not kept.
 */
#define HFD_FLEET_LABEL_UNIQUE "humanitec_guresid"

/* What lists find a resource by, besides its own columns. Texts are borrowed. */
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

struct hfd_report_row {
    hfd_slice fleet_id;
    hfd_slice adapter;
    int64_t observed_generation;
    int64_t observed_us, created_us;
    int64_t received_us;  /* 0: before the operation that is under way; see hfd_report_row_spend */
    hfd_slice conditions; /* JSON array */
    hfd_slice data;       /* JSON object, secrets redacted */
    hfd_slice metadata;   /* JSON object, or empty */
    hfd_slice secrets;    /* sealed, or none */
};

struct hfd_resource_row {
    hfd_slice guresid;
    hfd_slice type;
    enum hfd_kind kind;
    int state; /* enum hfd_state */
    hfd_slice incarnation;
    hfd_slice cluster_id;
    hfd_slice digest, raw_digest;
    hfd_slice cookie;
    int64_t op_started_us, op_estimate_us, op_deadline_us;
    hfd_slice fail_code, fail_message;
    hfd_slice output;
    hfd_slice secrets;
    int64_t created_us, updated_us;
    bool degraded;           /* since it was healthy last */
    int op;                  /* enum hfd_op: the last operation */
    int64_t op_size;         /* hfd_past_key.size */
    hfd_slice op_milestones; /* hfd_past_row.milestones, while it goes on */
    hfd_slice op_plan; /* hfd_plan_format; not empty = an operation that is not in the past yet */
};

/** A HyperFleet resource that belongs to no driver resource, by its label. */
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
    int64_t wanted_us; /* of a remote HyperFleet: when its deletion was asked for, which is not
                          finished; 0 = nobody asked */
    hfd_slice
        error; /* likewise: why it could not be deleted, or looked at; empty = nothing is wrong */
};

struct hfd_orphan_list {
    struct hfd_orphan_row *rows;
    size_t count;
};

/** Something that happened to a driver resource. */
struct hfd_history_row {
    hfd_slice guresid;
    int64_t seq; /* from 1 on, without gaps but at the old end; not used when adding */
    hfd_slice incarnation;
    int64_t at_us;
    int from, to; /* enum hfd_state; equal when only `what` tells */
    hfd_slice what;
    int64_t generation; /* of its cluster, or nodepool, in HyperFleet; 0 = unknown */
    hfd_slice text;
};

struct hfd_history_list {
    struct hfd_history_row *rows;
    size_t count;
};

/* Operations that are alike. */
struct hfd_past_key {
    enum hfd_kind kind;
    int op;       /* enum hfd_op */
    int64_t size; /* how many parts, in binary digits */
};

/* An operation that ended. */
struct hfd_past_row {
    int64_t size;
    int64_t took_us;
    int ending;           /* enum hfd_ending */
    hfd_slice milestones; /* "c/dns=61000 n/validation=65000": milliseconds since the start */
};

struct hfd_past_list {
    struct hfd_past_row *rows;
    size_t count;
};

/* What the past says of an operation that starts, under these settings. */
struct hfd_forecast_row {
    int64_t prior_us, deadline_us;
    hfd_slice plan;
};

struct hfd_part_row {
    hfd_slice guresid;
    hfd_slice fleet_id;
    enum hfd_kind kind;
    hfd_slice name;
    int64_t generation; /* the one that the driver last wrote */
    bool leaving;       /* the last input no longer has it; it is being deleted */
    bool pending;       /* the remote HyperFleet has not taken what was last asked for */
};

/**
 * How closely a driver resource is watched at a remote HyperFleet; what stands first here goes
 * first. The numbers are stored.
 */
enum hfd_watched {
    HFD_WATCHED_NOT = 0, /* something is to be carried out, or found out */
    HFD_WATCHED_CLOSELY =
        1, /* in progress: nothing is to be done but to look; a look at many will do */
    HFD_WATCHED_IDLY = 2 /* settled: its health */
};

/** What is to be carried out for a driver resource against a remote HyperFleet. */
struct hfd_upstream_row {
    hfd_slice guresid;
    int goal; /* enum hfd_backend_goal */
    enum hfd_watched watched;
    int64_t due_us;     /* INT64_MAX = waits for something else */
    int64_t checked_us; /* last seen at the remote */
    int64_t full_us;    /* last seen with all reports */
    int64_t unsure_us;  /* when a creation was last sent, or about to be, that nobody answered; 0 =
                           never */
    int64_t behind_us;  /* since when the remote has been telling an earlier generation than before;
                           0 = it does not */
    int64_t tries;      /* failures in a row */
    int64_t refusals;   /* refused credentials in a row */
    bool later_names;   /* the remote says Reconciled for Ready */
    hfd_slice error;    /* why the last try failed; empty = it did not */
};

struct hfd_upstream_list {
    struct hfd_upstream_row *rows;
    size_t count;
};

/** What is ours in a remote HyperFleet and was no resource's when it was seen. */
struct hfd_stray_row {
    struct hfd_orphan_row orphan;
    int64_t seen_us;
    int64_t due_us; /* when it is to be looked at by itself; INT64_MAX = with all others */
    int64_t tries;  /* failures in a row */
};

struct hfd_stray_list {
    struct hfd_stray_row *rows;
    size_t count;
};

struct hfd_fleet_list {
    struct hfd_fleet_row *rows;
    size_t count;
    int64_t total; /* matches before paging */
};

struct hfd_report_query {
    hfd_slice fleet_id;
    int64_t limit, offset;
};

struct hfd_report_list {
    struct hfd_report_row *rows;
    size_t count;
    int64_t total; /* before paging */
};

struct hfd_part_list {
    struct hfd_part_row *rows;
    size_t count;
};

/* HyperFleet resources */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_get(struct hfd_txn *tx, hfd_slice id, struct hfd_arena *mem,
                                        struct hfd_fleet_row *out,
                                        struct hfd_err *err); /* HFD_NOT_FOUND */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_at(struct hfd_txn *tx, int64_t seq, struct hfd_arena *mem,
                                       struct hfd_fleet_row *out,
                                       struct hfd_err *err); /* HFD_NOT_FOUND */
/** Sets row->seq. HFD_CONFLICT when the name is taken. */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_insert(struct hfd_txn *tx, struct hfd_fleet_row *row,
                                           struct hfd_err *err);
/**
 * All columns but seq, id, kind, owner_id and created_*, and told turns 0; HFD_NOT_FOUND,
 * HFD_CONFLICT when the name is taken.
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_update(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                                           struct hfd_err *err);
/**
 * Conditions, ready, ready_seen_us and told alone, all that a report changes: it leaves the other
 * indexes in peace. HFD_NOT_FOUND.
 * @param was  as it is stored: where ready and ready_seen_us are the same, their indexes are left
 * in peace too
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_judged(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                                           const struct hfd_fleet_row *was, struct hfd_err *err);
/** Removes the row and its reports; hfd_fleet_keys_put removes what it was found by. */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_delete(struct hfd_txn *tx, hfd_slice id, struct hfd_err *err);
/** The live (not deleting) resource of that name; HFD_NOT_FOUND. owner_id is empty for clusters. */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_by_name(struct hfd_txn *tx, enum hfd_kind kind,
                                            hfd_slice owner_id, hfd_slice name,
                                            struct hfd_arena *mem, struct hfd_fleet_row *out,
                                            struct hfd_err *err);
/**
 * All nodepools of a cluster, the deleting ones too, oldest first. Heads: their documents are
 * empty, as together they may be large.
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_children(struct hfd_txn *tx, hfd_slice cluster_id,
                                             struct hfd_arena *mem, struct hfd_fleet_list *out,
                                             struct hfd_err *err);
/**
 * Makes a resource findable by `is` instead of `was`; writes what differs alone.
 * @param row  seq, kind and created_us are used
 * @param was  as the last call for this resource said; empty for a new one
 * @param is   empty for one that is removed
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_keys_put(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                                         const struct hfd_fleet_keys *was,
                                         const struct hfd_fleet_keys *is, struct hfd_err *err);
/** Up to `limit` resources whose Ready is not True, oldest first, behind (after_us, after_seq). */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_pending(struct hfd_txn *tx, int64_t after_us, int64_t after_seq,
                                            int64_t limit, struct hfd_arena *mem,
                                            struct hfd_fleet_list *out, struct hfd_err *err);

/**
 * Resources of a kind with label `key` (and that value, if value.p is not NULL) that are no part,
 * by value and age; deleting ones too.
 */
HFD_MUST_CHECK hfd_rc hfd_orphan_row_list(struct hfd_txn *tx, enum hfd_kind kind, hfd_slice key,
                                          hfd_slice value, int64_t limit, struct hfd_arena *mem,
                                          struct hfd_orphan_list *out, struct hfd_err *err);

/* Reports, in the order of their first arrival */
/**
 * What is judged of each report: its conditions; data, metadata and secrets, which may be large,
 * are left empty.
 */
HFD_MUST_CHECK hfd_rc hfd_report_row_heads(struct hfd_txn *tx, hfd_slice fleet_id,
                                           struct hfd_arena *mem, struct hfd_report_list *out,
                                           struct hfd_err *err);
/** One adapter's whole report; HFD_NOT_FOUND. */
HFD_MUST_CHECK hfd_rc hfd_report_row_get(struct hfd_txn *tx, hfd_slice fleet_id, hfd_slice adapter,
                                         struct hfd_arena *mem, struct hfd_report_row *out,
                                         struct hfd_err *err);
/** A page of whole reports. */
HFD_MUST_CHECK hfd_rc hfd_report_row_list(struct hfd_txn *tx, const struct hfd_report_query *query,
                                          struct hfd_arena *mem, struct hfd_report_list *out,
                                          struct hfd_err *err);
/**
 * An operation begins: what was reported on a HyperFleet resource until now says nothing about it,
 * whatever the clock says. received_us of its reports becomes 0; a later report has a time again.
 */
HFD_MUST_CHECK hfd_rc hfd_report_row_spend(struct hfd_txn *tx, hfd_slice fleet_id,
                                           struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_report_row_put(struct hfd_txn *tx, const struct hfd_report_row *row,
                                         struct hfd_err *err);

/* Driver resources */
HFD_MUST_CHECK hfd_rc hfd_resource_row_get(struct hfd_txn *tx, hfd_slice guresid,
                                           struct hfd_arena *mem, struct hfd_resource_row *out,
                                           struct hfd_err *err); /* HFD_NOT_FOUND */
/**
 * The same, from memory where nothing has been committed to the row since it was last read. What is
 * read from the database behind it, in the same transaction, may be of a later commit.
 */
HFD_MUST_CHECK hfd_rc hfd_resource_row_recent(struct hfd_txn *tx, hfd_slice guresid,
                                              struct hfd_arena *mem, struct hfd_resource_row *out,
                                              struct hfd_err *err); /* HFD_NOT_FOUND */
/** Inserts or replaces. */
HFD_MUST_CHECK hfd_rc hfd_resource_row_put(struct hfd_txn *tx, const struct hfd_resource_row *row,
                                           struct hfd_err *err);
/** Removes the row, its parts and its history. */
HFD_MUST_CHECK hfd_rc hfd_resource_row_delete(struct hfd_txn *tx, hfd_slice guresid,
                                              struct hfd_err *err);

/** Adds behind the last one, and drops what is older than the newest `keep`. */
HFD_MUST_CHECK hfd_rc hfd_history_row_add(struct hfd_txn *tx, const struct hfd_history_row *row,
                                          int64_t keep, struct hfd_err *err);
/** Oldest first. */
HFD_MUST_CHECK hfd_rc hfd_history_row_list(struct hfd_txn *tx, hfd_slice guresid,
                                           struct hfd_arena *mem, struct hfd_history_list *out,
                                           struct hfd_err *err);

/** The parts of a driver resource: the cluster first, then nodepools by name. */
HFD_MUST_CHECK hfd_rc hfd_part_row_list(struct hfd_txn *tx, hfd_slice guresid,
                                        struct hfd_arena *mem, struct hfd_part_list *out,
                                        struct hfd_err *err);
/** The part that a HyperFleet resource is of some driver resource; HFD_NOT_FOUND. */
HFD_MUST_CHECK hfd_rc hfd_part_row_by_fleet(struct hfd_txn *tx, hfd_slice fleet_id,
                                            struct hfd_arena *mem, struct hfd_part_row *out,
                                            struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_part_row_put(struct hfd_txn *tx, const struct hfd_part_row *row,
                                       struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_part_row_delete(struct hfd_txn *tx, hfd_slice guresid, hfd_slice fleet_id,
                                          struct hfd_err *err);

/* Past operations */
/**
 * Adds an operation; removes those of its key behind the newest `keep`, and forecasts that do not
 * know it yet. row->size is not used.
 */
HFD_MUST_CHECK hfd_rc hfd_past_row_add(struct hfd_txn *tx, const struct hfd_past_key *key,
                                       int64_t ended_us, const struct hfd_past_row *row,
                                       int64_t keep, struct hfd_err *err);
/** At most `limit`: those of the key, then those of other sizes, each the newest first. */
HFD_MUST_CHECK hfd_rc hfd_past_row_list(struct hfd_txn *tx, const struct hfd_past_key *key,
                                        int64_t limit, struct hfd_arena *mem,
                                        struct hfd_past_list *out, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_forecast_row_get(struct hfd_txn *tx, const struct hfd_past_key *key,
                                           struct hfd_arena *mem, struct hfd_forecast_row *out,
                                           struct hfd_err *err); /* HFD_NOT_FOUND */
/** Inserts or replaces. */
HFD_MUST_CHECK hfd_rc hfd_forecast_row_put(struct hfd_txn *tx, const struct hfd_past_key *key,
                                           const struct hfd_forecast_row *row, struct hfd_err *err);

/* Work against a remote HyperFleet */
HFD_MUST_CHECK hfd_rc hfd_upstream_row_get(struct hfd_txn *tx, hfd_slice guresid,
                                           struct hfd_arena *mem, struct hfd_upstream_row *out,
                                           struct hfd_err *err); /* HFD_NOT_FOUND */
/** Inserts or replaces. */
HFD_MUST_CHECK hfd_rc hfd_upstream_row_put(struct hfd_txn *tx, const struct hfd_upstream_row *row,
                                           struct hfd_err *err);
/**
 * Removes those that remember that nothing is there (goal 4) and were checked before `before_us`.
 */
HFD_MUST_CHECK hfd_rc hfd_upstream_row_drop_absent(struct hfd_txn *tx, int64_t before_us,
                                                   struct hfd_err *err);
/** What is due at now_us, the longest overdue first. */
HFD_MUST_CHECK hfd_rc hfd_upstream_row_due(struct hfd_txn *tx, enum hfd_watched watched,
                                           int64_t now_us, int64_t limit, struct hfd_arena *mem,
                                           struct hfd_upstream_list *out, struct hfd_err *err);
/** When something is due behind now_us; INT64_MAX = never. */
HFD_MUST_CHECK hfd_rc hfd_upstream_row_next(struct hfd_txn *tx, enum hfd_watched watched,
                                            int64_t now_us, int64_t *out, struct hfd_err *err);
/** How many were due at now_us. */
HFD_MUST_CHECK hfd_rc hfd_upstream_row_count(struct hfd_txn *tx, int64_t now_us, int64_t *out,
                                             struct hfd_err *err);
/**
 * Of what is closely watched and was due at until_us: due later; the same, and after the second
 * time in a row by itself; no longer watched.
 */
HFD_MUST_CHECK hfd_rc hfd_upstream_row_postpone(struct hfd_txn *tx, int64_t until_us,
                                                int64_t due_us, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_upstream_row_part(struct hfd_txn *tx, int64_t until_us, int64_t due_us,
                                            struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_upstream_row_unwatch(struct hfd_txn *tx, int64_t until_us,
                                               struct hfd_err *err);

/* What is ours in a remote HyperFleet and no resource's */
HFD_MUST_CHECK hfd_rc hfd_stray_row_get(struct hfd_txn *tx, hfd_slice id, struct hfd_arena *mem,
                                        struct hfd_stray_row *out,
                                        struct hfd_err *err); /* HFD_NOT_FOUND */
/** Inserts or replaces. */
HFD_MUST_CHECK hfd_rc hfd_stray_row_put(struct hfd_txn *tx, const struct hfd_stray_row *row,
                                        struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_stray_row_delete(struct hfd_txn *tx, hfd_slice id, struct hfd_err *err);
/** Those of the nodepools of a cluster. */
HFD_MUST_CHECK hfd_rc hfd_stray_row_delete_of(struct hfd_txn *tx, hfd_slice owner_id,
                                              struct hfd_err *err);
/** Of a kind, by GUResID and age. */
HFD_MUST_CHECK hfd_rc hfd_stray_row_list(struct hfd_txn *tx, enum hfd_kind kind, int64_t limit,
                                         struct hfd_arena *mem, struct hfd_stray_list *out,
                                         struct hfd_err *err);
/** What is due at now_us, the longest overdue first. */
HFD_MUST_CHECK hfd_rc hfd_stray_row_due(struct hfd_txn *tx, int64_t now_us, int64_t limit,
                                        struct hfd_arena *mem, struct hfd_stray_list *out,
                                        struct hfd_err *err);
/** When something is due behind now_us; INT64_MAX = never. */
HFD_MUST_CHECK hfd_rc hfd_stray_row_next(struct hfd_txn *tx, int64_t now_us, int64_t *out,
                                         struct hfd_err *err);
/** Those of a kind that were not seen since since_us are due at due_us. */
HFD_MUST_CHECK hfd_rc hfd_stray_row_unseen(struct hfd_txn *tx, enum hfd_kind kind, int64_t since_us,
                                           int64_t due_us, struct hfd_err *err);
/** All that have nodepools in a cluster are due at now_us at the latest. */
HFD_MUST_CHECK hfd_rc hfd_upstream_row_wake(struct hfd_txn *tx, hfd_slice cluster_id,
                                            int64_t now_us, struct hfd_err *err);
/**
 * What points to the HyperFleet resource `from` points to `to` from now on: nodepools, parts,
 * driver resources.
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_row_refer(struct hfd_txn *tx, hfd_slice from, hfd_slice to,
                                          struct hfd_arena *mem, struct hfd_err *err);

#endif
