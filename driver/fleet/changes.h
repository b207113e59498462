/*
 * The list of clusters and nodepools that the functions of one request changed. Their caller
 * observes them in the same transaction. Thread: writer, inside a transaction function.
 */
#ifndef HFD_FLEET_CHANGES_H
#define HFD_FLEET_CHANGES_H

#include "driver/base/arena.h"
#include "store/txn.h"

struct hfd_fleet_call;

/** A cluster or nodepool whose conditions, generation or existence changed. */
struct hfd_fleet_change {
    hfd_slice id;
    bool removed;
    bool reported;         /* by a report alone: hfd_fleet_set_observer_idle applies */
    int64_t observer_idle; /* as in its row */
};

/** Changes in their order, each cluster or nodepool once. Set mem alone to begin a list. */
struct hfd_fleet_changes {
    struct hfd_arena *mem; /* of items and ids */
    struct hfd_fleet_change *items;
    size_t count, capacity;
};

/**
 * Appends a change. A second change of the same id is merged into the first.
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_note_change(const struct hfd_fleet_call *call,
                                            const struct hfd_fleet_change *change,
                                            struct hfd_err *err);

/**
 * Stores whether the observer needs no further reports without news on this cluster or nodepool,
 * as long as the settings stay the same. Writes only if that is new. Thread: writer.
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_set_observer_idle(struct hfd_txn *tx,
                                                  const struct hfd_fleet_call *call,
                                                  const struct hfd_fleet_change *change, bool idle,
                                                  struct hfd_err *err);

/**
 * Makes a fingerprint of settings carry their epoch, for several replicas on one database. An older
 * one does not replace a newer one in a row.
 * @param epoch  1 to 16,777,215; a higher one counts as that
 */
int64_t hfd_fleet_fingerprint_of_epoch(int64_t fingerprint, int64_t epoch);

#endif
