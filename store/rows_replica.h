/*
 * Rows of several servers on one database: the replicas, the lease of the
 * one that leads, and the epoch of their settings (driver/replica/keeper.h). With SQLite there are
 * none.
 *
 * Rows of the keys that the database was used with, and counts of what they sealed.
 *
 * Rows of the last uses of tokens. The tokens themselves are in the tokens file.
 *
 * Which servers use a database now, by their rows in `replica`. Thread: that of the connection.
 */
#ifndef HFD_STORE_ROWS_REPLICA_H
#define HFD_STORE_ROWS_REPLICA_H

#include "driver/base/arena.h"
#include "driver/base/slice.h"

struct hfd_db;
struct hfd_txn;

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

/** The lease of the replica that leads. */
struct hfd_lease_row {
    hfd_slice holder; /* id of a replica, or empty */
    int64_t epoch;    /* rises each time that it is taken */
    int64_t until_us; /* another one may take it from then on */
};

/** Gives the lease. One that was never taken has epoch 0 and no holder. */
HFD_MUST_CHECK hfd_rc hfd_lease_row_get(struct hfd_txn *tx, struct hfd_arena *mem,
                                        struct hfd_lease_row *out, struct hfd_err *err);
/** Inserts or replaces. */
HFD_MUST_CHECK hfd_rc hfd_lease_row_put(struct hfd_txn *tx, const struct hfd_lease_row *row,
                                        struct hfd_err *err);
/** Gives the lease of a holder back; that of another stays. */
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

struct hfd_ring_key_row {
    hfd_slice id;   /* hex */
    hfd_slice mark; /* changes with the key */
};

struct hfd_ring_key_list {
    struct hfd_ring_key_row *rows;
    size_t count;
};

/** Lists all. */
HFD_MUST_CHECK hfd_rc hfd_ring_key_row_list(struct hfd_txn *tx, struct hfd_arena *mem,
                                            struct hfd_ring_key_list *out, struct hfd_err *err);
/** Inserts or replaces. */
HFD_MUST_CHECK hfd_rc hfd_ring_key_row_put(struct hfd_txn *tx, const struct hfd_ring_key_row *row,
                                           struct hfd_err *err);
/** Removes a key; an absent one is no error. */
HFD_MUST_CHECK hfd_rc hfd_ring_key_row_delete(struct hfd_txn *tx, hfd_slice id,
                                              struct hfd_err *err);

/** A key, as sealed texts and digests begin with it, and as cookies do. */
struct hfd_ring_key_marks {
    hfd_slice id;     /* its bytes */
    hfd_slice cookie; /* the first characters of a cookie */
};
/** The key of a row with sealed secrets. */
struct hfd_sealed_key {
    hfd_slice first, second; /* a GUResID and ''; or HyperFleet id and adapter */
};
struct hfd_sealed_list {
    struct hfd_sealed_key *rows;
    size_t count;
};
/** The tables with sealed secrets. */
enum hfd_sealed_table {
    HFD_SEALED_RESOURCES, /* outputs */
    HFD_SEALED_REPORTS,
    HFD_SEALED_ORDERS,
    HFD_SEALED_COUNT
};
/** Which rows hfd_sealed_row_list gives: a page of them. */
struct hfd_sealed_query {
    enum hfd_sealed_table table;
    hfd_slice active; /* bytes of the active key's id: rows that it sealed are left out */
    struct hfd_sealed_key after;
};
/** Lists rows with secrets that another key sealed, in the order of their keys; 50 at most. */
HFD_MUST_CHECK hfd_rc hfd_sealed_row_list(struct hfd_txn *tx, const struct hfd_sealed_query *query,
                                          struct hfd_arena *mem, struct hfd_sealed_list *out,
                                          struct hfd_err *err);

/** Counts rows whose cookie, digests or secrets need this key. Reads whole tables. */
HFD_MUST_CHECK hfd_rc hfd_ring_key_uses(struct hfd_txn *tx, const struct hfd_ring_key_marks *key,
                                        int64_t *out, struct hfd_err *err);

struct hfd_token_use_row {
    hfd_slice name;
    int64_t created_us; /* tells a token from an earlier one of the same name */
    int64_t used_us;
    hfd_slice from; /* address of the caller */
};

struct hfd_token_uses {
    struct hfd_arena *mem; /* of the rows */
    struct hfd_token_use_row *rows;
    size_t count;
};

/** Inserts or replaces the row of a name. */
HFD_MUST_CHECK hfd_rc hfd_token_use_put(struct hfd_txn *tx, const struct hfd_token_use_row *row,
                                        struct hfd_err *err);
/** Deletes the row of a name, if there is one. */
HFD_MUST_CHECK hfd_rc hfd_token_use_delete(struct hfd_txn *tx, hfd_slice name, struct hfd_err *err);
/** Lists all rows, by name. */
HFD_MUST_CHECK hfd_rc hfd_token_use_list(struct hfd_txn *tx, struct hfd_arena *mem,
                                         struct hfd_token_uses *out, struct hfd_err *err);

/**
 * Refuses while a server lives that knows fewer migrations than `schema`. The message names it.
 * @param schema  INT64_MAX: any server
 * @return HFD_OK, HFD_CONFLICT, or as hfd_stmt_step
 */
HFD_MUST_CHECK hfd_rc hfd_alone_check(struct hfd_db *db, int64_t schema, struct hfd_err *err);

#endif
