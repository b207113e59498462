/*
 * How the driver works with a remote HyperFleet: the label of this server, how often it asks, and
 * which functions of the core it calls. Const after start-up.
 */
#ifndef HFD_REMOTE_POLICY_H
#define HFD_REMOTE_POLICY_H

#include "driver/backend/backend.h"

/**
 * The label that names the server that made a resource. Several servers can use one remote: none
 * touches the resources of another.
 */
#define HFD_OWNER_LABEL "humanitec_owner"

struct hfd_remote_policy {
    const struct hfd_fleet *fleet; /* its seal encrypts the secrets of reports */
    hfd_slice owner;  /* value of HFD_OWNER_LABEL; the same for all stores with one key ring */
    int64_t watch_us; /* interval of observation while an operation is in progress */
    int64_t idle_us;  /* interval of observation of a settled resource */
    int64_t retry_min_us, retry_max_us;
    const struct hfd_rng *rng; /* of the jitter */
    void *observer;            /* the first argument of the functions below */
    /** A cluster or nodepool changed: call->changes. Called in the transaction that wrote it. */
    hfd_rc (*on_changes)(void *observer, struct hfd_txn *tx, const struct hfd_fleet_call *call,
                         struct hfd_err *err);
    /** The trouble with the work of a resource changed; NULL = not called. */
    hfd_rc (*on_trouble)(void *observer, struct hfd_txn *tx, const struct hfd_fleet_call *call,
                         hfd_slice guresid, struct hfd_err *err);
    /** Fails the operation of a resource. */
    hfd_rc (*on_refused)(void *observer, struct hfd_txn *tx, const struct hfd_fleet_call *call,
                         const struct hfd_refusal *why, struct hfd_err *err);
};

#endif
