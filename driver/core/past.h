/*
 * The memory behind hints: operations that ended are kept, and those that go on are planned from
 * them (estimate.h). An operation begins, is followed while its parts change, and ends, each inside
 * the transaction that makes it so. Thread: writer. Source: DESIGN 4 "Hint".
 */
#ifndef HFD_CORE_PAST_H
#define HFD_CORE_PAST_H

#include "driver/estimate/estimate.h"
#include "driver/core/output.h"

/**
 * The stored form: "c/dns=61000 n/validation=65000". What is none of ours is left out. Names are
 * borrowed from the text.
 */
void hfd_milestones_parse(hfd_slice text, struct hfd_milestones *out);

/**
 * Plans an operation that begins; row's op and its times are set.
 * @param parts  as the operation finds or makes them
 */
HFD_MUST_CHECK hfd_rc hfd_past_begin(struct hfd_txn *tx, const struct hfd_driver *d,
                                     const struct hfd_parts *parts, struct hfd_arena *mem,
                                     struct hfd_resource_row *row, struct hfd_err *err);

/**
 * Takes into account what the parts say now: an adapter's part that is done may change the plan,
 * and an operation that ended by row->state becomes past. Nothing to do for a row without a plan.
 * The row is changed in memory only.
 */
HFD_MUST_CHECK hfd_rc hfd_past_follow(struct hfd_txn *tx, const struct hfd_driver *d,
                                      const struct hfd_parts *parts, int64_t now_us,
                                      struct hfd_arena *mem, struct hfd_resource_row *row,
                                      struct hfd_err *err);

/**
 * Before another operation takes its place: one that ended, or is late, becomes past; one that is
 * broken off is forgotten.
 */
HFD_MUST_CHECK hfd_rc hfd_past_leave(struct hfd_txn *tx, int64_t now_us,
                                     struct hfd_resource_row *row, struct hfd_err *err);

#endif
