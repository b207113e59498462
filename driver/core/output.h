/*
 * OutputData's resource.values and resource.secrets, from a resource's parts. Source:
 * 002_4aedec23c83d0384.txt OutputData; DESIGN 4 "Output". Thread: writer, inside a transaction
 * function.
 */
#ifndef HFD_CORE_OUTPUT_H
#define HFD_CORE_OUTPUT_H

#include "driver/core/outcome.h"
#include "driver/core/resource.h"
#include "store/rows_resource.h"
#include "store/rows_part.h"

/** A part with all that is known of it. */
struct hfd_part {
    struct hfd_part_row row;
    struct hfd_fleet_row fleet; /* valid when view.exists; without its documents and callers */
    struct hfd_part_view view;
};

struct hfd_parts {
    struct hfd_part *items; /* the cluster first, then nodepools by name */
    size_t count;
};

/**
 * Writes the output of a ready resource into row->output and row->secrets (sealed).
 * A mapped output whose adapter has not reported it is left out.
 * @return HFD_OK, HFD_NOMEM, HFD_CORRUPT (a sealed report cannot be opened)
 */
HFD_MUST_CHECK hfd_rc hfd_output_build(struct hfd_txn *tx, const struct hfd_driver *d,
                                       const struct hfd_parts *parts,
                                       const struct hfd_outcome *outcome, struct hfd_arena *mem,
                                       struct hfd_resource_row *row, struct hfd_err *err);

/** The plain secrets of a row, "{}" when there are none. */
HFD_MUST_CHECK hfd_rc hfd_output_secrets(const struct hfd_driver *d,
                                         const struct hfd_resource_row *row, struct hfd_arena *mem,
                                         hfd_slice *out, struct hfd_err *err);

/** hfd_fleet.seal: binds the secrets of a report to their place. ctx is the driver. */
hfd_slice hfd_output_seal_report(void *ctx, hfd_slice fleet_id, hfd_slice adapter, hfd_slice plain,
                                 struct hfd_arena *mem);

#endif
