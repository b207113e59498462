/*
 * The seam between the driver core and the HyperFleet that it drives: what a PUT or DELETE does to clusters and nodepools, inside its own
 * transaction. Embedded: it is done when the transaction commits. Remote: the transaction commits what is wanted, in a mirror of the remote's
 * resources (the same rows), and the intent; the upstream thread carries it out. So the core reads one kind of rows, whichever it drives.
 * README.md in this folder has the whole. Thread: writer, inside a transaction function. Source: DESIGN 2, 6.
 */
#ifndef HFD_BACKEND_BACKEND_H
#define HFD_BACKEND_BACKEND_H

#include "driver/fleet/fleet.h"

struct hfd_backend {
    /**
     * Whether what is asked for here is carried out later: a part that was written is `pending` until the remote has taken it, and its id
     * is a place-holder until the remote has given it one.
     */
    bool deferred;
    /** As hfd_fleet_create, hfd_fleet_patch, hfd_fleet_delete. */
    hfd_rc (*create)(struct hfd_txn *tx, const struct hfd_fleet_call *call, const struct hfd_fleet_create *in, struct hfd_fleet_row *out,
                     struct hfd_err *err);
    hfd_rc (*patch)(struct hfd_txn *tx, const struct hfd_fleet_call *call, const struct hfd_fleet_patch *in, struct hfd_fleet_row *out,
                    struct hfd_err *err);
    hfd_rc (*remove)(struct hfd_txn *tx, const struct hfd_fleet_call *call, enum hfd_kind kind, hfd_slice owner_id, hfd_slice id,
                     struct hfd_fleet_row *out, bool *gone, struct hfd_err *err);
    /** The parts of a driver resource were written: carry it out. Called once per transaction, after the last of them. */
    hfd_rc (*schedule)(struct hfd_txn *tx, const struct hfd_fleet_call *call, hfd_slice guresid, struct hfd_err *err);
};

extern const struct hfd_backend hfd_backend_embedded;
extern const struct hfd_backend hfd_backend_remote;

#endif
