/*
 * The seam between the driver core and the HyperFleet that it drives: what a PUT or DELETE does to
 * clusters and nodepools, inside its own transaction. Embedded: it is done when the transaction
 * commits. Remote: the transaction commits what is wanted, in a mirror of the remote's resources
 * (the same rows), and the intent; the remote thread carries it out. So the core reads one kind
 * of rows, whichever it drives. README.md in this folder has the whole. Thread: writer, inside a
 * transaction function; absent and trouble: any. Source: DESIGN 2, 6.
 */
#ifndef HFD_BACKEND_BACKEND_H
#define HFD_BACKEND_BACKEND_H

#include "driver/fleet/fleet.h"
#include "store/rows_keys.h"

/** The label with the GUResID that every HyperFleet resource of ours carries. */
#define HFD_GURESID_LABEL HFD_LABEL_UNCOUNTED

/** What the remote thread shall do about a driver resource. The numbers are stored. */
enum hfd_backend_goal {
    HFD_GOAL_OBSERVE = 0, /* nothing: the remote has refused; it is watched alone */
    HFD_GOAL_MAKE = 1,    /* make its parts what its rows say */
    HFD_GOAL_DELETE = 2,  /* delete its cluster (or nodepool) and see it gone */
    HFD_GOAL_ADOPT = 3,   /* find it by its label, and make its rows what is found */
    HFD_GOAL_ABSENT = 4,  /* nothing is left: remembered for a while */
    HFD_GOAL_ORPHANS = 5  /* of HFD_REMOTE_ORPHANS alone: find what is ours and no resource's */
};

struct hfd_backend {
    /**
     * Whether what is asked for here is carried out later: a part that was written is `pending`
     * until the remote has taken it, and its id is a place-holder until the remote has given it
     * one.
     */
    bool deferred;
    /**
     * As hfd_fleet_create; the owner of a nodepool need not be known when deferred. What was made
     * is pending when deferred.
     */
    hfd_rc (*create)(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                     const struct hfd_fleet_create *in, struct hfd_fleet_row *out,
                     struct hfd_err *err);
    /**
     * As hfd_fleet_patch. @param pending  whether something is left for the remote thread to
     * carry out
     */
    hfd_rc (*patch)(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                    const struct hfd_fleet_patch *in, struct hfd_fleet_row *out, bool *pending,
                    struct hfd_err *err);
    /** As hfd_fleet_delete; never gone at once when deferred. */
    hfd_rc (*remove)(struct hfd_txn *tx, const struct hfd_fleet_call *call, enum hfd_kind kind,
                     hfd_slice owner_id, hfd_slice id, struct hfd_fleet_row *out, bool *gone,
                     struct hfd_err *err);
    /**
     * A row for what the remote may have of a resource that no row knows: a place-holder in id and
     * name. Deferred alone.
     */
    hfd_rc (*seek)(struct hfd_txn *tx, const struct hfd_fleet_call *call, enum hfd_kind kind,
                   struct hfd_fleet_row *out, struct hfd_err *err);
    /**
     * The parts of a driver resource were written: carry it out. Called once per transaction,
     * after the last of them.
     */
    hfd_rc (*schedule)(struct hfd_txn *tx, hfd_slice guresid, enum hfd_backend_goal goal,
                       int64_t now_us, struct hfd_err *err);
    /**
     * The row of a driver resource, and with it its parts, was deleted: nothing is left of it in
     * HyperFleet.
     */
    hfd_rc (*forget)(struct hfd_txn *tx, hfd_slice guresid, int64_t now_us, struct hfd_err *err);
    /**
     * Of a driver resource without a row: whether nothing of it is in HyperFleet, as far as is
     * known.
     */
    hfd_rc (*absent)(struct hfd_txn *tx, hfd_slice guresid, int64_t now_us, bool *yes,
                     struct hfd_err *err);
    /**
     * What stands in the way of carrying it out at present, as one sentence without its full stop;
     * empty = nothing.
     */
    hfd_rc (*trouble)(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem, hfd_slice *out,
                      struct hfd_err *err);
};

extern const struct hfd_backend hfd_backend_embedded;
extern const struct hfd_backend hfd_backend_remote;

/** Begins an id that the remote has not given yet; no id of HyperFleet can begin so. */
#define HFD_PLACEHOLDER "new."

/** Whether HyperFleet knows the resource by this id. */
static inline bool hfd_backend_id_is_given(hfd_slice id)
{
    return id.len > 0 && !hfd_slice_starts(id, HFD_SLICE(HFD_PLACEHOLDER));
}

#endif
