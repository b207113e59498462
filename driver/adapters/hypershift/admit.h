/*
 * Refuses orders that HyperShift could not carry out on what is there: names that meet, and fields
 * that cannot change. Thread: writer, inside the transaction of a PUT.
 */
#ifndef HFD_HYPERSHIFT_ADMIT_H
#define HFD_HYPERSHIFT_ADMIT_H

#include "driver/adapters/hypershift/order.h"
#include "driver/core/driver.h"

/** hfd_actor.admit. @return HFD_OK, HFD_INVALID, HFD_IMMUTABLE */
HFD_MUST_CHECK hfd_rc hfd_hs_admit(const struct hfd_hs_defaults *defaults, const struct hfd_ctx *c,
                                   const struct hfd_call *call, const struct hfd_resource_row *was);

#endif
