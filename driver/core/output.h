/*
 * resource.values, resource.secrets and manifests of OutputData, from a resource's parts. Source:
 * Humanitec Driver API 0.9.3, OutputData. Thread: writer for hfd_output_build, else any; inside a
 * transaction function.
 *
 * The secrets of adapter reports at rest: sealed, and bound to the cluster or nodepool and the
 * adapter. Thread: any.
 *
 * From the settled row of a resource to the answer of a request. Thread: any, inside a transaction
 * function.
 */
#ifndef HFD_CORE_OUTPUT_H
#define HFD_CORE_OUTPUT_H

#include "driver/core/driver.h"
#include "driver/core/parts.h"

/**
 * Writes the output of a ready resource into row->output and row->secrets (sealed). A mapped output
 * that its adapter has not reported is left out.
 * @return HFD_OK, HFD_LIMIT (it is too large), HFD_NOMEM, HFD_CORRUPT (a sealed report cannot be
 * opened)
 */
HFD_MUST_CHECK hfd_rc hfd_output_build(const struct hfd_ctx *c, const struct hfd_parts *parts,
                                       const struct hfd_outcome *outcome,
                                       struct hfd_resource_row *row);

/** The values of a row's output: a JSON object. Borrowed from the row. */
hfd_slice hfd_output_values(const struct hfd_resource_row *row);

/**
 * Seals the stored secrets again, with the active key. The row is not written.
 * @return HFD_OK, HFD_CORRUPT (they cannot be opened), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_output_reseal(const struct hfd_ctx *c, struct hfd_resource_row *row);

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

/** The answer of GET and DELETE. @return HFD_OK, HFD_CORRUPT, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_answer_row(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                                     struct hfd_answer_doc *out);
/**
 * The answer of PUT: with the cookie on 200, 202 and 409.
 * @param conflict  409, with the hint of the operation in the way
 * @return as hfd_answer_row
 */
HFD_MUST_CHECK hfd_rc hfd_answer_put(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                                     bool conflict, struct hfd_answer_doc *out);

#endif
