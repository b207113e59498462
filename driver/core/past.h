/*
 * The memory behind hints: operations that ended are kept, and those that go on are planned from
 * them (driver/estimate). An operation begins, is followed while its parts change, and ends, each
 * in the transaction that makes it so. Rows are changed in memory only. Thread: writer.
 */
#ifndef HFD_CORE_PAST_H
#define HFD_CORE_PAST_H

#include "driver/core/parts.h"
#include "driver/estimate/estimate.h"

/**
 * Reads the stored form: "c/dns=61000 n/validation=65000". Leaves out what is not of that form.
 * Names are borrowed from the text.
 */
void hfd_milestones_parse(hfd_slice text, struct hfd_milestones *out);

/** "c/dns": the name of an adapter's milestone. p is NULL when memory is short. */
hfd_slice hfd_milestone_name(enum hfd_kind kind, hfd_slice adapter, struct hfd_arena *mem);

/**
 * Plans an operation that begins. The row has its op and its times.
 * @param parts  as the operation finds or makes them
 */
HFD_MUST_CHECK hfd_rc hfd_past_begin(const struct hfd_ctx *c, const struct hfd_parts *parts,
                                     struct hfd_resource_row *row);

/**
 * Takes the present parts into account: an adapter that finished a part may change the plan, and an
 * operation that ended (row->state) becomes past. A row without a plan is left alone.
 */
HFD_MUST_CHECK hfd_rc hfd_past_follow(const struct hfd_ctx *c, const struct hfd_parts *parts,
                                      struct hfd_resource_row *row);

/**
 * Another operation takes the place of the present one. That becomes past if it ended or is late; a
 * cancelled one is forgotten.
 */
HFD_MUST_CHECK hfd_rc hfd_past_leave(const struct hfd_ctx *c, struct hfd_resource_row *row);

#endif
