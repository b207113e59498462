/*
 * How the driver works with a remote HyperFleet: the label of this server, how often it asks, and
 * which functions of the core it calls. Const after
 * start-up.
 */
#ifndef HFD_REMOTE_POLICY_H
#define HFD_REMOTE_POLICY_H

#include "driver/fleet/fleet.h"

/**
 * The label that names the server that made a resource. Several servers can use
 * one remote: none touches the resources of another.
 */
#define HFD_OWNER_LABEL "humanitec_owner"

struct hfd_remote_policy {
    const struct hfd_fleet *fleet; /* its on_change gets what was observed; its
                                      seal encrypts the secrets of reports */
    hfd_slice owner;               /* value of HFD_OWNER_LABEL; the same for all stores with one
                                      key ring */
    int64_t watch_us;              /* interval of observation while an operation is in progress */
    int64_t idle_us;               /* interval of observation of a settled resource */
    int64_t retry_min_us, retry_max_us;
    const struct hfd_rng *rng; /* of the jitter */
    /** Fails the operation of a resource, with a code and a message for the app
     * developer. */
    hfd_rc (*on_refused)(void *ctx, struct hfd_txn *tx, hfd_slice guresid, const char *code,
                         hfd_slice message, int64_t now_us, struct hfd_arena *mem,
                         struct hfd_err *err);
    void *on_refused_ctx;
};

#endif
