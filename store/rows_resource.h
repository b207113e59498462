/*
 * Rows of driver resources.
 *
 * Rows of parts: the clusters and nodepools that belong to a driver resource.
 *
 * Rows of the secrets that orders brought. They are removed with their resource.
 */
#ifndef HFD_STORE_ROWS_RESOURCE_H
#define HFD_STORE_ROWS_RESOURCE_H

#include "driver/base/arena.h"
#include "store/kind.h"

struct hfd_txn;

struct hfd_resource_row {
    int64_t
        seq; /* of its creation or adoption, as hfd_history_row.seq; 0 = a new row: put gives one */
    hfd_slice guresid;
    hfd_slice type;
    enum hfd_kind kind;
    int state; /* enum hfd_state */
    hfd_slice incarnation;
    int64_t instance; /* hfd_history_row.instance: the one that goes on */
    hfd_slice cluster_id;
    hfd_slice digest, raw_digest;
    hfd_slice cookie;
    int64_t op_started_us, op_estimate_us, op_deadline_us;
    hfd_slice fail_code, fail_message;
    hfd_slice output;
    hfd_slice secrets;
    int64_t created_us, updated_us;
    bool degraded;           /* since it was last healthy */
    int op;                  /* enum hfd_op: the last operation */
    int64_t op_size;         /* hfd_past_key.size */
    hfd_slice op_milestones; /* hfd_past_row.milestones, while the operation goes on */
    hfd_slice op_usual;      /* as op_milestones: when adapters usually are done */
    hfd_slice op_waits;      /* hfd_waiting_say, while the operation goes on */
    hfd_slice op_plan;       /* hfd_plan_format; not empty = the operation is not in the past yet */
    int64_t op_expected_us;  /* op_started_us and the first estimate; 0 = op_estimate_us */
    hfd_slice cause;         /* hfd_outcome.cause of a failure or bad health; of a wait the same */
    hfd_slice trace;         /* traceparent of the request that began the operation */
    hfd_slice drift;         /* JSON array of fields: driver/core/drift.h; empty = none */
    int64_t drift_count;     /* fields that drifted: drift has the first of them */
    bool mendable;           /* the same PUT would mend some of them */
    hfd_slice repairs;       /* JSON object: when fields were mended without a PUT */
    int64_t repair_us;       /* when that is due; 0 = not */
    hfd_slice protect;       /* "yes" or "no", a line for each label of the order: "key=value"; each
                                line ends. Empty = not known: an older program wrote the row */
    hfd_slice op_match;      /* hfd_precondition_digest of what began the operation, or empty */
    char etag[40]; /* of no column: hfd_resource_row_tag, if a reader keeps the row; or "" */
};

/** @return HFD_NOT_FOUND */
HFD_MUST_CHECK hfd_rc hfd_resource_row_get(struct hfd_txn *tx, hfd_slice guresid,
                                           struct hfd_arena *mem, struct hfd_resource_row *out,
                                           struct hfd_err *err);
/** Driver resources of which a list will tell: by their numbers, or by their GUResIDs. */
struct hfd_resource_prefetch {
    const int64_t *seqs; /* NULL = by guresids */
    const hfd_slice *guresids;
    size_t count;
    bool reports; /* and the heads of their reports */
};

/**
 * Reads driver resources, their parts and HyperFleet's rows of these together, for the reads by key
 * that follow: hfd_unit_prefetch.
 * @param mem  for what it needs meanwhile
 */
HFD_MUST_CHECK hfd_rc hfd_resource_row_prefetch(struct hfd_txn *tx,
                                                const struct hfd_resource_prefetch *want,
                                                struct hfd_arena *mem, struct hfd_err *err);
/** As get, by the resource's number. */
HFD_MUST_CHECK hfd_rc hfd_resource_row_at(struct hfd_txn *tx, int64_t seq, struct hfd_arena *mem,
                                          struct hfd_resource_row *out, struct hfd_err *err);
/**
 * As get, from the reader's row cache where no commit has changed the row since it was last read.
 * Rows that the same transaction then reads from the database may be of a later commit.
 */
HFD_MUST_CHECK hfd_rc hfd_resource_row_recent(struct hfd_txn *tx, hfd_slice guresid,
                                              struct hfd_arena *mem, struct hfd_resource_row *out,
                                              struct hfd_err *err);
/**
 * Gives the tag of what the row has of the document of a ready resource. The sealed secrets keep
 * their bytes while the secrets are the same.
 * @param out  in mem
 */
HFD_MUST_CHECK hfd_rc hfd_resource_row_tag(const struct hfd_resource_row *row,
                                           struct hfd_arena *mem, hfd_slice *out,
                                           struct hfd_err *err);
/** Inserts or replaces. */
HFD_MUST_CHECK hfd_rc hfd_resource_row_put(struct hfd_txn *tx, const struct hfd_resource_row *row,
                                           struct hfd_err *err);
/**
 * Adds to the total of resources of the row's type in a state. A function that changes
 * the state of a stored row, or adds or removes one, calls this too.
 */
HFD_MUST_CHECK hfd_rc hfd_resource_row_count(struct hfd_txn *tx, const struct hfd_resource_row *row,
                                             int state, int64_t by, struct hfd_err *err);
/**
 * Gives the earliest op_started_us of the operations in progress in a state; 0 = there is none.
 * @param state  CREATING, UPDATING or DELETING
 */
HFD_MUST_CHECK hfd_rc hfd_resource_row_oldest(struct hfd_txn *tx, int state, int64_t *out,
                                              struct hfd_err *err);
struct hfd_resource_stuck {
    int state; /* CREATING, UPDATING or DELETING */
    int64_t now_us;
    int64_t after_us; /* an operation is not stuck before it takes longer than this */
};

/**
 * Counts the operations in progress in a state that take longer than twice their first estimate. A
 * creation or an update with a passed deadline does not count: it has failed.
 */
HFD_MUST_CHECK hfd_rc hfd_resource_row_stuck(struct hfd_txn *tx,
                                             const struct hfd_resource_stuck *query, int64_t *out,
                                             struct hfd_err *err);
/**
 * Removes the row, its parts and the secrets of its order. Its history stays:
 * hfd_tombstone_row_add.
 */
HFD_MUST_CHECK hfd_rc hfd_resource_row_delete(struct hfd_txn *tx, hfd_slice guresid,
                                              struct hfd_err *err);
struct hfd_resource_list {
    struct hfd_resource_row *rows;
    size_t count;
};

/** Lists the resources with a cluster id: that of the cluster, and those of nodepools in it. */
HFD_MUST_CHECK hfd_rc hfd_resource_row_of_cluster(struct hfd_txn *tx, hfd_slice cluster_id,
                                                  struct hfd_arena *mem,
                                                  struct hfd_resource_list *out,
                                                  struct hfd_err *err);
/** Gives the resources with the cluster id `from` the cluster id `to`. */
HFD_MUST_CHECK hfd_rc hfd_resource_row_refer(struct hfd_txn *tx, hfd_slice from, hfd_slice to,
                                             struct hfd_arena *mem, struct hfd_err *err);

struct hfd_part_row {
    hfd_slice guresid;
    hfd_slice fleet_id;
    enum hfd_kind kind;
    hfd_slice name;
    int64_t generation; /* the one that the driver last wrote */
    bool leaving;       /* the last input does not have it; it is being deleted */
    bool pending;       /* the remote has not taken the last change yet */
    hfd_slice aside;    /* JSON object: its documents that HyperFleet's row does not have:
                           driver/core/drift.h; empty = none */
};

struct hfd_part_list {
    struct hfd_part_row *rows;
    size_t count;
};

/** Lists the parts of a driver resource: the cluster first, then nodepools by name. */
HFD_MUST_CHECK hfd_rc hfd_part_row_list(struct hfd_txn *tx, hfd_slice guresid,
                                        struct hfd_arena *mem, struct hfd_part_list *out,
                                        struct hfd_err *err);
/** Finds the part that a HyperFleet resource is. @return HFD_NOT_FOUND */
HFD_MUST_CHECK hfd_rc hfd_part_row_by_fleet(struct hfd_txn *tx, hfd_slice fleet_id,
                                            struct hfd_arena *mem, struct hfd_part_row *out,
                                            struct hfd_err *err);
/** Inserts or replaces. */
HFD_MUST_CHECK hfd_rc hfd_part_row_put(struct hfd_txn *tx, const struct hfd_part_row *row,
                                       struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_part_row_delete(struct hfd_txn *tx, hfd_slice guresid, hfd_slice fleet_id,
                                          struct hfd_err *err);

/** Gives the parts with the HyperFleet id `from` the id `to`. */
HFD_MUST_CHECK hfd_rc hfd_part_row_refer(struct hfd_txn *tx, hfd_slice from, hfd_slice to,
                                         struct hfd_arena *mem, struct hfd_err *err);

struct hfd_order_row {
    hfd_slice guresid;
    hfd_slice secrets; /* sealed */
};

/** @return HFD_OK, HFD_NOT_FOUND */
HFD_MUST_CHECK hfd_rc hfd_order_row_get(struct hfd_txn *tx, hfd_slice guresid,
                                        struct hfd_arena *mem, struct hfd_order_row *out,
                                        struct hfd_err *err);
/** Inserts or replaces. */
HFD_MUST_CHECK hfd_rc hfd_order_row_put(struct hfd_txn *tx, const struct hfd_order_row *row,
                                        struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_order_row_delete(struct hfd_txn *tx, hfd_slice guresid,
                                           struct hfd_err *err);

/*
 * Reads of a job, noted beforehand: hfd_job.prefetch calls these. An engine that gathers reads
 * it for all jobs of a group at once. The functions give no rows, and their failures mean nothing.
 *
 * Reading too much costs time, reading too little a round trip; neither changes a result.
 * Thread: writer.
 */
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
