/*
 * The observer: what changes in HyperFleet mean for the resources that they belong to. Thread:
 * writer, inside the transaction that made the changes.
 */
#ifndef HFD_CORE_OBSERVE_H
#define HFD_CORE_OBSERVE_H

#include "driver/core/driver.h"

/**
 * Judges each resource of which a part is in call->changes, and writes what is new. Call it after
 * the fleet functions, in their transaction.
 */
HFD_MUST_CHECK hfd_rc hfd_resource_observe(struct hfd_txn *tx, const struct hfd_driver *d,
                                           const struct hfd_fleet_call *call, struct hfd_err *err);

/** The same with c->changes, for all resources but this one, which the caller judges itself. */
HFD_MUST_CHECK hfd_rc hfd_resource_observe_others(const struct hfd_ctx *c, hfd_slice guresid);

/** hfd_remote_policy.on_changes: hfd_resource_observe. observer is the driver. */
HFD_MUST_CHECK hfd_rc hfd_resource_on_changes(void *observer, struct hfd_txn *tx,
                                              const struct hfd_fleet_call *call,
                                              struct hfd_err *err);

/**
 * hfd_remote_policy.on_refused: the operation of the resource fails with this code and message.
 * observer is the driver. A resource without an operation stays as it is.
 */
HFD_MUST_CHECK hfd_rc hfd_resource_on_refused(void *observer, struct hfd_txn *tx,
                                              const struct hfd_fleet_call *call,
                                              const struct hfd_refusal *why, struct hfd_err *err);

/** Operations that hfd_resource_settle_due takes at once. */
#define HFD_SETTLE_MAX 100

struct hfd_settled {
    size_t count;    /* operations that have failed by their deadline now */
    int64_t next_us; /* the next deadline; INT64_MAX = there is none, or more are late */
};

/**
 * Settles creations and updates whose deadline has passed, at most HFD_SETTLE_MAX of them: state,
 * history, counts and log line follow though no request asks.
 */
HFD_MUST_CHECK hfd_rc hfd_resource_settle_due(const struct hfd_ctx *c, struct hfd_settled *out);

/** Removes the row of a resource that has moved to ABSENT. */
HFD_MUST_CHECK hfd_rc hfd_resource_forget(const struct hfd_ctx *c,
                                          const struct hfd_resource_row *row);

/**
 * hfd_remote_policy.on_trouble: says anew what a resource waits for. observer: the hfd_driver.
 */
HFD_MUST_CHECK hfd_rc hfd_resource_on_trouble(void *observer, struct hfd_txn *tx,
                                              const struct hfd_fleet_call *call, hfd_slice guresid,
                                              struct hfd_err *err);

#endif
