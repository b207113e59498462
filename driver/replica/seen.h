/*
 * The replicas of a database as one of them sees them, for the status page and the API of
 * operators. With SQLite there are none. Thread: any reader, inside a transaction function.
 */
#ifndef HFD_REPLICA_SEEN_H
#define HFD_REPLICA_SEEN_H

#include "driver/base/arena.h"
#include "store/store.h"

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
 * Reads them. One that was killed stays in the list for a while.
 * @param now_us  of the database
 * @param out     in mem
 * @return HFD_OK, HFD_NOMEM, or as hfd_replica_row_list
 */
HFD_MUST_CHECK hfd_rc hfd_replicas_read(struct hfd_txn *tx, int64_t now_us, struct hfd_arena *mem,
                                        struct hfd_replicas_seen *out, struct hfd_err *err);

#endif
