/*
 * The seam between the driver core and the HyperFleet that it drives. The core calls these
 * operations inside its own transaction and does not know which HyperFleet it has. Embedded: an
 * operation is done when the transaction commits. Remote: the transaction writes what is wanted
 * into rows that mirror the remote's resources, and a thread carries it out later. README.md in
 * this folder explains both. Thread: writer, inside a transaction function; `is_complete`,
 * `orphans`, `orphans_state` and `trouble` also a reader.
 */
#ifndef HFD_BACKEND_BACKEND_H
#define HFD_BACKEND_BACKEND_H

#include "driver/base/clock.h"
#include "driver/fleet/fleet.h"
#include "store/rows_fleet.h"

/** The label with the GUResID that every cluster and nodepool of ours has. */
#define HFD_GURESID_LABEL HFD_LABEL_UNCOUNTED
/** Several servers can use one remote: none touches the resources of another. */
#define HFD_OWNER_LABEL HFD_LABEL_OWNER

/** Stands for a GUResID, which it cannot be: the search for orphans in the remote. */
#define HFD_BACKEND_ORPHANS HFD_SLICE("*")

/** The task of the remote thread for a driver resource. The numbers are stored. */
enum hfd_backend_goal {
    HFD_GOAL_OBSERVE = 0, /* nothing but observe: the remote has refused */
    HFD_GOAL_MAKE = 1,    /* make its parts what its rows say */
    HFD_GOAL_DELETE = 2,  /* delete its cluster or nodepool, until both are removed */
    HFD_GOAL_ADOPT = 3,   /* find it by its label, and write its rows from what is found */
    HFD_GOAL_ABSENT = 4,  /* nothing is left: kept for a while */
    HFD_GOAL_ORPHANS = 5  /* of HFD_BACKEND_ORPHANS alone: find orphans */
};

/** A driver resource, and when the call is. */
struct hfd_backend_subject {
    hfd_slice guresid;
    int64_t now_us;
    struct hfd_arena *mem;
};

/** A cluster or nodepool after it was written. */
struct hfd_backend_written {
    struct hfd_fleet_row row;
    bool pending; /* HyperFleet has not taken it yet; without an id, row.id is a place-holder */
};

struct hfd_backend_orphan_query {
    enum hfd_kind kind;
    hfd_slice guresid; /* those with this label, of all servers; empty = all of `owner` */
    struct hfd_orphan_owner owner;
    size_t limit;
    struct hfd_arena *mem;
};

struct hfd_backend_orphans {
    struct hfd_orphan_list list; /* by GUResID and age */
    bool more;                   /* there are more than the limit */
};

/** How good a list of orphans is. */
struct hfd_backend_orphans_state {
    bool remote;        /* the list shows a remote HyperFleet as it was at checked_us */
    int64_t checked_us; /* 0 = it was never read to the end */
    hfd_slice error;    /* why it could not be read the last time, without a full stop, or empty */
};

/** Operations that are NULL have the default that their wrapper below states. */
struct hfd_backend {
    /** As hfd_fleet_create. A remote need not know the owner of a nodepool. */
    hfd_rc (*create)(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                     const struct hfd_fleet_create *in, struct hfd_backend_written *out,
                     struct hfd_err *err);
    /** As hfd_fleet_patch. */
    hfd_rc (*patch)(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                    const struct hfd_fleet_patch *in, struct hfd_backend_written *out,
                    struct hfd_err *err);
    /** As hfd_fleet_delete. */
    hfd_rc (*remove)(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                     const struct hfd_fleet_target *target, struct hfd_fleet_deletion *out,
                     struct hfd_err *err);
    /** Lists orphans of one kind. */
    hfd_rc (*orphans)(struct hfd_txn *tx, const struct hfd_backend_orphan_query *query,
                      struct hfd_backend_orphans *out, struct hfd_err *err);
    /**
     * Deletes an orphan, now or later. out: its id, kind, name and labels at least.
     * @param owner  the server that it must belong to; empty = this one
     * @return HFD_OK, HFD_NOT_FOUND (no such orphan is known), HFD_CONFLICT (it is no orphan)
     */
    hfd_rc (*remove_orphan)(struct hfd_txn *tx, const struct hfd_fleet_call *call, hfd_slice id,
                            hfd_slice owner, struct hfd_fleet_deletion *out, struct hfd_err *err);
    hfd_rc (*orphans_state)(struct hfd_txn *tx, struct hfd_arena *mem,
                            struct hfd_backend_orphans_state *out, struct hfd_err *err);
    hfd_rc (*discard)(struct hfd_txn *tx, hfd_slice id, struct hfd_err *err);
    /** Creates a place-holder part, and finds out later what the remote has. */
    hfd_rc (*seek)(struct hfd_txn *tx, const struct hfd_fleet_call *call, enum hfd_kind kind,
                   struct hfd_backend_written *out, struct hfd_err *err);
    hfd_rc (*is_complete)(struct hfd_txn *tx, const struct hfd_backend_subject *s, bool *yes,
                          struct hfd_err *err);
    bool (*may_have_cluster)(hfd_slice id);
    hfd_rc (*schedule)(struct hfd_txn *tx, const struct hfd_backend_subject *s,
                       enum hfd_backend_goal goal, struct hfd_err *err);
    hfd_rc (*forget)(struct hfd_txn *tx, const struct hfd_backend_subject *s, struct hfd_err *err);
    hfd_rc (*trouble)(struct hfd_txn *tx, const struct hfd_backend_subject *s, hfd_slice *out,
                      struct hfd_err *err);
};

/** A cluster or nodepool is no part any more, and another takes its place. Default: its row stays.
 */
HFD_MUST_CHECK static inline hfd_rc hfd_backend_discard(const struct hfd_backend *b,
                                                        struct hfd_txn *tx, hfd_slice id,
                                                        struct hfd_err *err)
{
    return b->discard != NULL ? b->discard(tx, id, err) : HFD_OK;
}

/**
 * For a driver resource without a row: whether the stored rows show all that HyperFleet has of it.
 * If not, `seek` finds out. Default: they do.
 */
HFD_MUST_CHECK static inline hfd_rc hfd_backend_is_complete(const struct hfd_backend *b,
                                                            struct hfd_txn *tx,
                                                            const struct hfd_backend_subject *s,
                                                            bool *yes, struct hfd_err *err)
{
    *yes = true;
    return b->is_complete != NULL ? b->is_complete(tx, s, yes, err) : HFD_OK;
}

/** True if HyperFleet may have a cluster of this id that no row shows. Default: false. */
static inline bool hfd_backend_may_have_cluster(const struct hfd_backend *b, hfd_slice id)
{
    return b->may_have_cluster != NULL && b->may_have_cluster(id);
}

/**
 * The parts of a driver resource were written: has that carried out. Call it once per transaction,
 * after the last of them. Default: nothing is left to carry out.
 */
HFD_MUST_CHECK static inline hfd_rc hfd_backend_schedule(const struct hfd_backend *b,
                                                         struct hfd_txn *tx,
                                                         const struct hfd_backend_subject *s,
                                                         enum hfd_backend_goal goal,
                                                         struct hfd_err *err)
{
    return b->schedule != NULL ? b->schedule(tx, s, goal, err) : HFD_OK;
}

/** The row of a driver resource and its parts were removed. Default: nothing. */
HFD_MUST_CHECK static inline hfd_rc hfd_backend_forget(const struct hfd_backend *b,
                                                       struct hfd_txn *tx,
                                                       const struct hfd_backend_subject *s,
                                                       struct hfd_err *err)
{
    return b->forget != NULL ? b->forget(tx, s, err) : HFD_OK;
}

/**
 * Gives what hinders the operation of a driver resource at present, as one sentence without its
 * full stop; empty = nothing, which is the default.
 */
HFD_MUST_CHECK static inline hfd_rc hfd_backend_trouble(const struct hfd_backend *b,
                                                        struct hfd_txn *tx,
                                                        const struct hfd_backend_subject *s,
                                                        hfd_slice *out, struct hfd_err *err)
{
    *out = HFD_SLICE("");
    return b->trouble != NULL ? b->trouble(tx, s, out, err) : HFD_OK;
}

/** How good a list of orphans is. Default: it shows all, as of now. */
HFD_MUST_CHECK static inline hfd_rc
hfd_backend_orphans_state(const struct hfd_backend *b, struct hfd_txn *tx, struct hfd_arena *mem,
                          struct hfd_backend_orphans_state *out, struct hfd_err *err)
{
    *out = (struct hfd_backend_orphans_state){.error = HFD_SLICE("")};
    return b->orphans_state != NULL ? b->orphans_state(tx, mem, out, err) : HFD_OK;
}

/**
 * The thread that carries out what was scheduled, as the core sees it. All zero = there is none.
 * Both functions are cheap and never wait. Thread: any.
 */
struct hfd_backend_worker {
    void *ctx;
    void (*polled)(void *ctx, hfd_slice guresid); /* a caller asked for it, or for orphans */
    void (*wake)(void *ctx);                      /* new work was committed */
};

/** Why the remote ends an operation for good. */
struct hfd_refusal {
    hfd_slice guresid;
    const char *code; /* "RES-101", ... */
    hfd_slice message;
};

/** Begins an id that the remote has not given yet; no id of HyperFleet can begin so. */
#define HFD_PLACEHOLDER "new."

/** True for an id that HyperFleet has given. */
static inline bool hfd_backend_id_is_given(hfd_slice id)
{
    return id.len > 0 && !hfd_slice_starts(id, HFD_SLICE(HFD_PLACEHOLDER));
}

extern const struct hfd_backend hfd_backend_embedded;
extern const struct hfd_backend hfd_backend_remote;

/** Memory for one resource with its parts, while a pass works on it. */
#define HFD_MIRROR_SCRATCH_MAX_BYTES ((size_t)128 * 1024 * 1024)

#endif
