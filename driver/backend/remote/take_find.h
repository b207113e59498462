/* Answers to FIND, FIND_NAME and LIST_POOLS. Thread: writer, inside a transaction function. */
#ifndef HFD_REMOTE_TAKE_FIND_H
#define HFD_REMOTE_TAKE_FIND_H

#include "driver/backend/remote/take.h"

/** A page of what carries the resource's label: adopts it, refuses, or goes on to CREATE. */
HFD_MUST_CHECK hfd_rc hfd_take_find(struct hfd_take *t, struct hfd_err *err);
/** A page of what has the name that is taken: adopts it or refuses. */
HFD_MUST_CHECK hfd_rc hfd_take_find_name(struct hfd_take *t, struct hfd_err *err);
/** FIND or FIND_NAME was answered 404: the cluster of a nodepool is missing, or no HyperFleet. */
HFD_MUST_CHECK hfd_rc hfd_take_find_missing(struct hfd_take *t, struct hfd_err *err);
/** A page of the cluster's nodepools. */
HFD_MUST_CHECK hfd_rc hfd_take_pools(struct hfd_take *t, struct hfd_err *err);
/**
 * Removes nodepools that left before they were created. Does nothing while their creation may still
 * be carried out, or before all other parts are known: the resource may become ready by it.
 */
HFD_MUST_CHECK hfd_rc hfd_take_drop_uncreated(struct hfd_take *t, struct hfd_err *err);

#endif
