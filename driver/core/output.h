/*
 * resource.values, resource.secrets and manifests of OutputData, from a resource's parts. Source:
 * Humanitec Driver API 0.9.3, OutputData. Thread: writer for hfd_output_build, else any; inside a
 * transaction function.
 */
#ifndef HFD_CORE_OUTPUT_H
#define HFD_CORE_OUTPUT_H

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
/** The manifests of a row's output: a JSON array, or empty for none. Borrowed from the row. */
hfd_slice hfd_output_manifests(const struct hfd_resource_row *row);
/** The plain secrets of a row, "{}" when it has none. */
HFD_MUST_CHECK hfd_rc hfd_output_secrets(const struct hfd_ctx *c,
                                         const struct hfd_resource_row *row, hfd_slice *out);

/**
 * Seals the stored secrets again, with the active key. The row is not written.
 * @return HFD_OK, HFD_CORRUPT (they cannot be opened), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_output_reseal(const struct hfd_ctx *c, struct hfd_resource_row *row);

#endif
