/*
 * From the parts of a resource to where it stands: outcome.h, applied to its row. Thread: any for
 * hfd_judge_outcome and hfd_judge_late, else writer; inside a transaction function.
 */
#ifndef HFD_CORE_JUDGE_H
#define HFD_CORE_JUDGE_H

#include "driver/core/transition.h"

/** Judges what the parts and the operation of a row mean now. parts: NULL = read here. */
HFD_MUST_CHECK hfd_rc hfd_judge_outcome(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                                        const struct hfd_parts *parts, struct hfd_outcome *out);

/**
 * Settles a row: an operation in progress whose deadline has passed has failed at its deadline.
 * @param late  set if it has; the caller applies it to a copy, or moves the row
 */
HFD_MUST_CHECK hfd_rc hfd_judge_late(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                                     struct hfd_move *late, bool *is_late);

/**
 * Sets row->op_waits: what an operation in progress waits for; empty without one. The row is not
 * written.
 */
HFD_MUST_CHECK hfd_rc hfd_judge_waits(const struct hfd_ctx *c, const struct hfd_parts *parts,
                                      struct hfd_resource_row *row);

/**
 * Moves a row to what its parts say, and notes its health. A row that is ready afterwards has its
 * output, one in progress its op_waits. The row is not written.
 */
HFD_MUST_CHECK hfd_rc hfd_judge_row(const struct hfd_ctx *c, const struct hfd_parts *parts,
                                    struct hfd_resource_row *row);

#endif
