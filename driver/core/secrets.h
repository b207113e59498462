/*
 * The secrets of adapter reports at rest: sealed, and bound to the cluster or nodepool and the
 * adapter. Thread: any.
 */
#ifndef HFD_CORE_SECRETS_H
#define HFD_CORE_SECRETS_H

#include "driver/core/driver.h"

/** Seals with the driver's newest key. p is NULL when memory is short. */
hfd_slice hfd_report_secrets_seal(const struct hfd_driver *d, const struct hfd_fleet_secret *secret,
                                  struct hfd_arena *mem);
/** @return HFD_OK, HFD_COOKIE (no key opens them), HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_report_secrets_open(const struct hfd_driver *d,
                                              const struct hfd_report_row *report,
                                              struct hfd_arena *mem, hfd_slice *plain);

/**
 * Stores the secrets of an order for the adapter that acts on it, sealed; without `account`, which
 * is valid for a short time only. Removes those of an earlier order if this one has none.
 */
HFD_MUST_CHECK hfd_rc hfd_order_secrets_keep(const struct hfd_ctx *c, hfd_slice guresid,
                                             hfd_slice secrets);
/**
 * Reads them.
 * @param plain  JSON; "{}" = none
 * @return HFD_OK, HFD_CORRUPT (a key is missing), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_order_secrets_open(const struct hfd_ctx *c, hfd_slice guresid,
                                             hfd_slice *plain);
/**
 * Seals them again with the active key.
 * @return HFD_OK, HFD_NOT_FOUND, HFD_CORRUPT (a key is missing), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_order_secrets_reseal(const struct hfd_ctx *c, hfd_slice guresid);

#endif
