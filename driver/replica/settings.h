/*
 * The epoch of the settings. Replicas of one database are to have the same rules. A replica that
 * starts with others raises the epoch, and those before it are outdated until they are restarted.
 * Rows that carry the mark of settings carry the epoch with it: an older mark never replaces a
 * newer one. Thread: writer, inside a transaction function; the marks: any.
 */
#ifndef HFD_REPLICA_SETTINGS_H
#define HFD_REPLICA_SETTINGS_H

#include "driver/base/slice.h"
#include "store/store.h"

/** Fingerprints of a replica's settings: with its version, and of the rules alone. */
struct hfd_replica_settings {
    int64_t mark, rules;
};

struct hfd_settings_epoch {
    int64_t epoch; /* of the newest settings, or of its own while they are the newest */
    bool outdated; /* the newest replica has other rules */
};

/**
 * Compares with the newest settings.
 * @param starting  the replica starts: other settings become the newest
 */
HFD_MUST_CHECK hfd_rc hfd_replica_settings_look(struct hfd_txn *tx,
                                                const struct hfd_replica_settings *own,
                                                bool starting, struct hfd_settings_epoch *out,
                                                struct hfd_err *err);

#endif
