/*
 * Rows of several servers on one database: the replicas, the leases of their shards,
 * and the epoch of their settings (driver/replica/keeper.h). With SQLite there are none.
 */
#ifndef HFD_STORE_ROWS_REPLICA_H
#define HFD_STORE_ROWS_REPLICA_H

#include "driver/base/arena.h"
#include "store/shard.h"
#include "store/store.h"

struct hfd_replica_row {
    hfd_slice id, name, version;
    int64_t schema;
    int64_t started_us;
    int64_t beat_us;   /* its last sign of life */
    hfd_slice key_ids; /* of its key ring, with commas */
    int64_t settings_epoch;
    hfd_slice settings_mark;
};

struct hfd_replica_list {
    struct hfd_replica_row *rows;
    size_t count;
};

/** Lists all, by id. */
HFD_MUST_CHECK hfd_rc hfd_replica_row_list(struct hfd_txn *tx, struct hfd_arena *mem,
                                           struct hfd_replica_list *out, struct hfd_err *err);
/** Inserts or replaces. */
HFD_MUST_CHECK hfd_rc hfd_replica_row_put(struct hfd_txn *tx, const struct hfd_replica_row *row,
                                          struct hfd_err *err);
/** Removes a replica; an absent one is no error. */
HFD_MUST_CHECK hfd_rc hfd_replica_row_delete(struct hfd_txn *tx, hfd_slice id, struct hfd_err *err);
/** Removes those whose last sign of life is older. */
HFD_MUST_CHECK hfd_rc hfd_replica_row_drop(struct hfd_txn *tx, int64_t before_us,
                                           struct hfd_err *err);

/** Gives the least version of the schema that a program must know; 0 = the database says none. */
HFD_MUST_CHECK hfd_rc hfd_replica_row_schema_min(struct hfd_txn *tx, int64_t *out,
                                                 struct hfd_err *err);
/**
 * Removes the marks of commits (hfd_commit) that did not change since `before_us`, and notes those
 * that did. A program that lives commits every few seconds.
 */
HFD_MUST_CHECK hfd_rc hfd_replica_row_forget_commits(struct hfd_txn *tx, int64_t now_us,
                                                     int64_t before_us, struct hfd_err *err);

struct hfd_lease_row {
    int64_t shard;
    hfd_slice holder; /* id of a replica, or empty */
    int64_t epoch;    /* rises each time that the shard is taken */
    int64_t until_us; /* another one may take it from then on */
};

/** Gives the lease of each shard. One that was never taken has epoch 0 and no holder. */
HFD_MUST_CHECK hfd_rc hfd_lease_row_all(struct hfd_txn *tx, struct hfd_arena *mem,
                                        struct hfd_lease_row out[HFD_SHARDS], struct hfd_err *err);
/** Inserts or replaces. */
HFD_MUST_CHECK hfd_rc hfd_lease_row_put(struct hfd_txn *tx, const struct hfd_lease_row *row,
                                        struct hfd_err *err);
/** Gives all leases of a holder back. */
HFD_MUST_CHECK hfd_rc hfd_lease_row_release(struct hfd_txn *tx, hfd_slice holder,
                                            struct hfd_err *err);

/** The settings of the replica that started last. */
struct hfd_settings_row {
    int64_t epoch;       /* rises with each other settings */
    int64_t mark, rules; /* fingerprints: with the version, and of the rules alone */
};

/** @return HFD_NOT_FOUND */
HFD_MUST_CHECK hfd_rc hfd_settings_row_get(struct hfd_txn *tx, struct hfd_arena *mem,
                                           struct hfd_settings_row *out, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_settings_row_put(struct hfd_txn *tx, const struct hfd_settings_row *row,
                                           struct hfd_err *err);

#endif
