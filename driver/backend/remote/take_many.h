/* Answers to MANY_CLUSTERS and MANY_POOLS. Thread: writer, inside a transaction function. */
#ifndef HFD_REMOTE_TAKE_MANY_H
#define HFD_REMOTE_TAKE_MANY_H

#include "driver/backend/remote/take.h"

/**
 * A page of what is in progress. A resource that has not changed is due again later; one that has
 * changed, or is in no list, gets a pass of its own.
 */
HFD_MUST_CHECK hfd_rc hfd_take_many(struct hfd_take *t, struct hfd_err *err);

#endif
