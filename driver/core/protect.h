/*
 * Deletion protection: what an order says of it, and what it keeps from being deleted. README.md,
 * "Protection". Thread: any, inside a transaction function.
 */
#ifndef HFD_CORE_PROTECT_H
#define HFD_CORE_PROTECT_H

#include "driver/core/driver.h"

#include <jansson.h>

/** Adds the labels of a part to a set. @return false when memory is short */
bool hfd_protect_note(json_t *set, const json_t *labels);
/** Makes hfd_resource_row.protect of an order. @param out  in mem */
HFD_MUST_CHECK hfd_rc hfd_protect_format(bool protect, json_t *labels, struct hfd_arena *mem,
                                         hfd_slice *out, struct hfd_err *err);

/** True if the order had `protect: true`; also for a damaged text. Pure. */
bool hfd_protect_is_ordered(hfd_slice protect);
/**
 * Gives what protects a resource: "protect", or one of driver.protect_labels. p is NULL: nothing.
 * Pure.
 */
hfd_slice hfd_protect_by(const struct hfd_driver *d, hfd_slice protect);

/** The same of a stored row. A row that does not know has the labels of its parts. */
HFD_MUST_CHECK hfd_rc hfd_protect_read(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                                       hfd_slice *out);

/**
 * Refuses what would delete parts of a resource; of a cluster, also what it has in it of others.
 * @param what  a clause before the message: "nodepool 'a' would be deleted, and "
 * @return HFD_OK, HFD_PROTECTED
 */
HFD_MUST_CHECK hfd_rc hfd_protect_check(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                                        const char *what);
HFD_MUST_CHECK hfd_rc hfd_protect_check_row(const struct hfd_ctx *c,
                                            const struct hfd_resource_row *row, const char *what);
/** The same for a cluster or nodepool of the embedded HyperFleet, of any resource. */
HFD_MUST_CHECK hfd_rc hfd_protect_check_fleet(const struct hfd_ctx *c, enum hfd_kind kind,
                                              hfd_slice id);

#endif
