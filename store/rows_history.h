/*
 * Rows of the one history: every action on driver resources, and on clusters that no driver
 * resource has. Entries have one global order. The history of a resource goes on over its lives,
 * and outlives it as long as its tombstone is kept.
 *
 * The creation of a resource is no row of this table as long as the resource is there. Lists read
 * it from the row of the resource, which has its number in seq.
 *
 * Rows of ended instances: what adapters' reports said of their objects when an instance of a
 * subject of the history ended. They go with that history.
 *
 * Rows of past operations, and of the forecasts that are made of them.
 *
 * Orders of late, their ends, and how long they took, from the history. Thread: that of the
 * transaction. */
#ifndef HFD_STORE_ROWS_HISTORY_H
#define HFD_STORE_ROWS_HISTORY_H

#include "driver/base/arena.h"
#include "store/kind.h"

struct hfd_txn;

/** The subject of an entry. The numbers are stored. */
enum hfd_history_about {
    HFD_ABOUT_RESOURCE, /* a driver resource; id is its GUResID */
    HFD_ABOUT_CLUSTER /* a cluster of HyperFleet's API that no driver resource has; id is its id */
};

struct hfd_history_row {
    int64_t seq; /* its place in the order of all entries: hfd_history_next_seq */
    enum hfd_history_about about;
    hfd_slice id;
    hfd_slice incarnation; /* of a resource */
    int64_t instance;      /* seq of the entry that asked for the present work; of a cluster: the
                              generation that was asked for */
    int64_t at_us;
    int from, to; /* enum hfd_state; equal when only `what` counts */
    hfd_slice what;
    int64_t generation; /* of its cluster, or nodepool, in HyperFleet; 0 = unknown */
    hfd_slice text;
};

struct hfd_history_list {
    struct hfd_history_row *rows;
    size_t count;
};

/** The `what` of a creation, of which lists make an entry. */
#define HFD_HISTORY_CREATE "create"

/**
 * Gives the number of the next action. Numbers rise, with gaps, also over restarts.
 * Thread: writer.
 */
HFD_MUST_CHECK hfd_rc hfd_history_next_seq(struct hfd_txn *tx, int64_t *out, struct hfd_err *err);

/** Adds an entry, and removes all but the newest `keep` of its subject. A known seq: nothing. */
HFD_MUST_CHECK hfd_rc hfd_history_row_add(struct hfd_txn *tx, const struct hfd_history_row *row,
                                          int64_t keep, struct hfd_err *err);

/** One subject of the history. */
struct hfd_history_subject {
    enum hfd_history_about about;
    hfd_slice id;
};

/** Reads what hfd_history_row_add will read of this subject, and drops it: hfd_job.prefetch. */
HFD_MUST_CHECK hfd_rc hfd_history_row_prefetch(struct hfd_txn *tx,
                                               const struct hfd_history_subject *subject,
                                               int64_t keep, struct hfd_err *err);

/**
 * Lists the history of a subject, oldest first. A resource that is there begins with its creation.
 */
HFD_MUST_CHECK hfd_rc hfd_history_row_list(struct hfd_txn *tx,
                                           const struct hfd_history_subject *subject,
                                           struct hfd_arena *mem, struct hfd_history_list *out,
                                           struct hfd_err *err);

/** A page of the entries about driver resources. */
struct hfd_history_query {
    int64_t after;  /* only greater numbers; 0 = from the beginning */
    int64_t before; /* only smaller numbers; INT64_MAX = to the end */
    bool newest;    /* the newest come first; else the oldest */
    int64_t limit;
};

/** Lists a page. Both ends are open. */
HFD_MUST_CHECK hfd_rc hfd_history_row_page(struct hfd_txn *tx,
                                           const struct hfd_history_query *query,
                                           struct hfd_arena *mem, struct hfd_history_list *out,
                                           struct hfd_err *err);

/** The numbers of the history. */
struct hfd_history_ends {
    int64_t last;   /* of the newest entry before hfd_number_end; 0 = none yet */
    int64_t newest; /* of the newest entry; not lower than `last` */
    int64_t floor;  /* of the newest entry that was removed; 0 = none */
};
HFD_MUST_CHECK hfd_rc hfd_history_row_ends(struct hfd_txn *tx, struct hfd_history_ends *out,
                                           struct hfd_err *err);

/** A resource or cluster that was removed. */
struct hfd_tombstone_row {
    int64_t seq; /* of its removal */
    enum hfd_history_about about;
    hfd_slice id;
    int64_t removed_us, created_us;
    enum hfd_kind kind;
    hfd_slice type, incarnation; /* of a driver resource */
    hfd_slice cluster_id;
    hfd_slice name;     /* of its cluster or nodepool */
    hfd_slice provider; /* of a cluster: spec.platform.type, as given; empty = none */
};

/** Which tombstones are kept. */
struct hfd_tombstone_limits {
    int64_t max;      /* how many */
    int64_t since_us; /* those that are removed later than this */
    int64_t held_us;  /* those that are removed later than this, and a target of events lacks */
};

/**
 * Adds a tombstone, and takes away those beyond the limits with their history, the oldest first;
 * at most a few at a time.
 */
HFD_MUST_CHECK hfd_rc hfd_tombstone_row_add(struct hfd_txn *tx, const struct hfd_tombstone_row *row,
                                            const struct hfd_tombstone_limits *limits,
                                            struct hfd_err *err);
/**
 * Takes away tombstones beyond the limits alone. @param more  set when some are left
 */
HFD_MUST_CHECK hfd_rc hfd_tombstone_row_trim(struct hfd_txn *tx,
                                             const struct hfd_tombstone_limits *limits, bool *more,
                                             struct hfd_err *err);
/** @return HFD_NOT_FOUND */
HFD_MUST_CHECK hfd_rc hfd_tombstone_row_get(struct hfd_txn *tx,
                                            const struct hfd_history_subject *subject,
                                            struct hfd_arena *mem, struct hfd_tombstone_row *out,
                                            struct hfd_err *err);
/** Removes a tombstone and leaves the history: its subject is there again. None: nothing. */
HFD_MUST_CHECK hfd_rc hfd_tombstone_row_delete(struct hfd_txn *tx,
                                               const struct hfd_history_subject *subject,
                                               struct hfd_err *err);

/** The bytes of kept objects in the database. Beyond them the oldest instances keep counts alone.
 */
#define HFD_ENDED_BYTES_MAX (INT64_C(64) << 20)

/** The report of an adapter on a cluster or nodepool, at the end of an instance. */
struct hfd_ended_row {
    enum hfd_history_about about;
    hfd_slice id;
    int64_t instance;
    hfd_slice fleet_id;
    hfd_slice adapter;
    enum hfd_kind kind; /* of the cluster or nodepool, as name */
    hfd_slice name;
    hfd_slice provider, cluster; /* where its objects are unless they say so */
    bool counted;                /* the adapter decided the status of the instance */
    int64_t verdict;             /* hfd_kept_verdict_format */
    hfd_slice counts;            /* hfd_object_counts_format */
    hfd_slice objects;           /* hfd_kept_add; empty = none, or too many */
};

struct hfd_ended_list {
    struct hfd_ended_row *rows;
    size_t count;
};

struct hfd_ended_query {
    struct hfd_history_subject subject;
    int64_t instance;
};

/**
 * Inserts or replaces, and removes the rows of all but the newest `keep` instances of the subject.
 * Empties the objects of the oldest instances of all subjects beyond HFD_ENDED_BYTES_MAX.
 */
HFD_MUST_CHECK hfd_rc hfd_ended_row_put(struct hfd_txn *tx, const struct hfd_ended_row *row,
                                        int64_t keep, struct hfd_err *err);
/** Lists the rows of an instance, by HyperFleet id and adapter. */
HFD_MUST_CHECK hfd_rc hfd_ended_row_list(struct hfd_txn *tx, const struct hfd_ended_query *query,
                                         struct hfd_arena *mem, struct hfd_ended_list *out,
                                         struct hfd_err *err);
/** Gives the oldest instance that has rows; 0 = none has. */
HFD_MUST_CHECK hfd_rc hfd_ended_row_oldest(struct hfd_txn *tx,
                                           const struct hfd_history_subject *subject, int64_t *out,
                                           struct hfd_err *err);

/** Operations with the same key are comparable. */
struct hfd_past_key {
    enum hfd_kind kind;
    int op;       /* enum hfd_op */
    int64_t size; /* the number of parts, in binary digits */
};

/** An operation that ended. */
struct hfd_past_row {
    int64_t size; /* add does not use it */
    int64_t took_us;
    int64_t ended_us;     /* add raises it above the last one of its key; lists do not read it */
    int ending;           /* enum hfd_ending */
    hfd_slice milestones; /* "c/dns=61000 n/validation=65000": milliseconds since the start */
};

struct hfd_past_list {
    struct hfd_past_row *rows;
    size_t count;
};

struct hfd_past_query {
    struct hfd_past_key key;
    int64_t limit;
};

/** A forecast for an operation that starts, made with these settings. */
struct hfd_forecast_row {
    int64_t prior_us, deadline_us;
    hfd_slice plan;
    hfd_slice usual; /* when adapters usually are done, as milestones */
};

/**
 * Adds an operation. Removes all but the newest `keep` of its key, and the forecasts that do not
 * know it yet.
 */
HFD_MUST_CHECK hfd_rc hfd_past_row_add(struct hfd_txn *tx, const struct hfd_past_key *key,
                                       const struct hfd_past_row *row, int64_t keep,
                                       struct hfd_err *err);
/** Lists operations of the key, then of its other sizes, each newest first. */
HFD_MUST_CHECK hfd_rc hfd_past_row_list(struct hfd_txn *tx, const struct hfd_past_query *query,
                                        struct hfd_arena *mem, struct hfd_past_list *out,
                                        struct hfd_err *err);
/** @return HFD_NOT_FOUND */
HFD_MUST_CHECK hfd_rc hfd_forecast_row_get(struct hfd_txn *tx, const struct hfd_past_key *key,
                                           struct hfd_arena *mem, struct hfd_forecast_row *out,
                                           struct hfd_err *err);
/** Inserts or replaces. */
HFD_MUST_CHECK hfd_rc hfd_forecast_row_put(struct hfd_txn *tx, const struct hfd_past_key *key,
                                           const struct hfd_forecast_row *row, struct hfd_err *err);

struct hfd_day_action {
    int64_t at_us;
    int64_t took_us;    /* from an order until its resource was ready; -1 = it is no such end */
    bool order, failed; /* a creation or change was asked for; an operation failed */
};

struct hfd_day {
    struct hfd_day_action *actions; /* in no order */
    size_t count;
    int64_t
        whole_since_us; /* there may be older ones, which were not looked at; 0 = there are none */
};

/**
 * Reads the actions at or after a time.
 * @return HFD_OK, HFD_NOMEM, HFD_IO, HFD_CORRUPT
 */
HFD_MUST_CHECK hfd_rc hfd_day_read(struct hfd_txn *tx, int64_t since_us, struct hfd_arena *mem,
                                   struct hfd_day *out, struct hfd_err *err);

/* ---- targets of events: the number up to which each has all events of a stream ---- */

/** An event that a target lacks is kept, and tried, for so long. */
#define HFD_OUTBOX_KEEP_US (72 * 3600 * HFD_US_PER_S)

/** The streams of events. The numbers are stored. */
enum hfd_stream {
    HFD_STREAM_RECONCILE, /* of clusters and nodepools: hfd_due_list */
    HFD_STREAM_STATES,    /* of driver resources: the history */
    HFD_STREAMS
};

struct hfd_outbox_row {
    hfd_slice name; /* of the target */
    int64_t stream;
    int64_t seq;        /* it has all events up to this number */
    int64_t failing_us; /* since when it has refused the oldest one; 0 = it has not */
};

struct hfd_outbox_list {
    struct hfd_outbox_row *rows;
    size_t count;
};

/** Lists all targets with their streams. */
HFD_MUST_CHECK hfd_rc hfd_outbox_row_list(struct hfd_txn *tx, struct hfd_arena *mem,
                                          struct hfd_outbox_list *out, struct hfd_err *err);
/** Inserts or replaces. */
HFD_MUST_CHECK hfd_rc hfd_outbox_row_put(struct hfd_txn *tx, const struct hfd_outbox_row *row,
                                         struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_outbox_row_delete(struct hfd_txn *tx, const struct hfd_outbox_row *row,
                                            struct hfd_err *err);

#endif
