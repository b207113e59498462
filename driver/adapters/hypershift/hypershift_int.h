/*
 * The adapter without its thread, for simulations: the caller opens the fleet, and runs rounds.
 * Thread: one.
 */
#ifndef HFD_HYPERSHIFT_HYPERSHIFT_INT_H
#define HFD_HYPERSHIFT_HYPERSHIFT_INT_H

#include "driver/adapters/hypershift/hypershift.h"

/** As hfd_hypershift_start, but starts no thread. @param out  gives */
HFD_MUST_CHECK hfd_rc hfd_hypershift_new(const struct hfd_hypershift_config *config,
                                         struct hfd_hypershift **out, struct hfd_err *err);
void hfd_hypershift_free(struct hfd_hypershift *hypershift);

/** Looks at HyperFleet where that is due, visits what is due, and waits for the next. */
void hfd_hypershift_round(struct hfd_hypershift *hypershift);

#endif
