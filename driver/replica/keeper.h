/*
 * One of several servers on a database. A thread gives signs of life, measures the database's
 * clock, and takes the lease of the one that leads, or renews it. The one that leads does the work
 * in the background alone: a loop of work asks whether its replica leads. The transaction that
 * takes an answer checks that this still holds, and refuses the answer otherwise.
 *
 * NULL stands for the only server of a database (SQLite): it leads for ever. Functions that say so
 * accept it. Thread: any, where nothing else is said.
 *
 * The epoch of the settings. Replicas of one database are to have the same rules. A replica that
 * starts with others raises the epoch, and those before it are outdated until they are restarted.
 * Rows that carry the mark of settings carry the epoch with it: an older mark never replaces a
 * newer one. Thread: writer, inside a transaction function; the marks: any.
 */
#ifndef HFD_REPLICA_KEEPER_H
#define HFD_REPLICA_KEEPER_H

#include "store/store.h"
#include "driver/base/arena.h"
#include "driver/base/clock.h"
#include "driver/base/rng.h"
#include "driver/base/err.h"

struct hfd_keeper;
struct hfd_store;
struct hfd_txn;

/** Fingerprints of a replica's settings: with its version, and of the rules alone. */
struct hfd_replica_settings {
    int64_t mark, rules;
};

/** A replica without a sign of life for this time is gone; a lease runs as long. */
#define HFD_REPLICA_LEASE_US (9 * HFD_US_PER_S)
#define HFD_REPLICA_ID_LEN 27

struct hfd_keeper_config {
    struct hfd_store *store;
    const struct hfd_clock *clock; /* its mono_us counts the time during which the machine sleeps */
    const struct hfd_clock *db;    /* instead of the database's clock, for tests; NULL = none */
    const struct hfd_rng *rng;
    const char *name;    /* of the machine, for people */
    int64_t schema;      /* version of the schema that the program knows */
    const char *key_ids; /* of its key ring, with commas */
    struct hfd_replica_settings settings;
    int64_t beat_us, lease_us; /* 0 = as above */
    bool alone;                /* without wake-ups between replicas: their store has none */
};

/**
 * Registers the replica, reads the database's time, leads if no other one does, and starts the
 * thread. When the database needs a newer program (`migrate --contract`), the thread turns the
 * store broken, and ends.
 * @param config  its pointers are borrowed until hfd_keeper_stop, but the texts
 * @param out     gives
 * @return HFD_OK, HFD_NOMEM, or as hfd_store_update_wait
 */
HFD_MUST_CHECK hfd_rc hfd_keeper_start(const struct hfd_keeper_config *config,
                                       struct hfd_keeper **out, struct hfd_err *err);
/**
 * Gives the lease back, removes the replica, and ends the thread. The loops of work end before.
 * Accepts a pointer to NULL.
 */
void hfd_keeper_stop(struct hfd_keeper **keeper);

/** The lead of a replica at one time. */
struct hfd_hold {
    bool leads;
    int64_t epoch; /* of the lease */
};

/** Gives whether it leads now. NULL: it does. */
void hfd_keeper_hold(struct hfd_keeper *keeper, struct hfd_hold *out);
/** Returns whether it has led from then on. NULL: true. */
bool hfd_keeper_holds(struct hfd_keeper *keeper, const struct hfd_hold *hold);
/**
 * Checks in a transaction that it has led from then on, whatever this machine's clock says.
 * @return HFD_OK, HFD_CONFLICT (another replica took over). NULL: HFD_OK
 */
HFD_MUST_CHECK hfd_rc hfd_keeper_check(const struct hfd_keeper *keeper, struct hfd_txn *tx,
                                       const struct hfd_hold *hold, struct hfd_err *err);

/** The time of the database. It lives until hfd_keeper_stop. */
const struct hfd_clock *hfd_keeper_clock(const struct hfd_keeper *keeper);
/** The epoch of the settings at the start. */
int64_t hfd_keeper_epoch(const struct hfd_keeper *keeper);
/** The key ring has other keys now. A text that is too long is cut. */
void hfd_keeper_set_keys(struct hfd_keeper *keeper, const char *key_ids);

struct hfd_keeper_state {
    char id[HFD_REPLICA_ID_LEN + 1];
    bool leads;
    int live;         /* replicas */
    bool shut_out;    /* the database needs a newer program: the store is broken, or about to be */
    bool outdated;    /* the newest replica has other settings: this one is not ready */
    int64_t ahead_us; /* how much the database's clock is ahead of this machine's */
};
void hfd_keeper_state(struct hfd_keeper *keeper, struct hfd_keeper_state *out);

/** Work was committed that may be another's: others look soon. Never waits. Accepts NULL. */
void hfd_keeper_note(struct hfd_keeper *keeper);

/**
 * Called when it begins or ceases to lead, or another replica has committed work. It is quick,
 * and calls no function of the keeper.
 */
typedef void hfd_keeper_changed_fn(void *ctx);
/** Has fn called from now on. NULL: never. */
void hfd_keeper_listen(struct hfd_keeper *keeper, hfd_keeper_changed_fn *fn, void *ctx);
/** Ends that. After the call fn does not run. Accepts NULL, and a ctx that never listened. */
void hfd_keeper_unlisten(struct hfd_keeper *keeper, const void *ctx);

/* ---- the list of replicas, for people ---- */

struct hfd_replica_seen {
    hfd_slice id, name, version; /* the name is that of its machine */
    int64_t schema;              /* version that it knows */
    int64_t started_us, beat_us; /* beat: its last sign of life */
    int64_t settings_epoch;
    bool leads;    /* it does the work in the background */
    bool live;     /* its last sign of life is no older than a lease */
    bool outdated; /* another live one has newer settings */
};

struct hfd_replicas_seen {
    struct hfd_replica_seen *items; /* by id */
    size_t count;
};

/**
 * Reads them; with SQLite there are none. One that was killed stays in the list for a while.
 * Thread: that of the transaction.
 * @param now_us  of the database
 * @param out     in mem
 * @return HFD_OK, HFD_NOMEM, or as hfd_replica_row_list
 */
HFD_MUST_CHECK hfd_rc hfd_replicas_read(struct hfd_txn *tx, int64_t now_us, struct hfd_arena *mem,
                                        struct hfd_replicas_seen *out, struct hfd_err *err);

#endif
