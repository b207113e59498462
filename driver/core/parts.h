/*
 * The clusters and nodepools behind a driver resource: reading and adopting them. apply.h makes
 * them what an input asks for. Thread: writer for what writes, else any, inside a transaction
 * function.
 */
#ifndef HFD_CORE_PARTS_H
#define HFD_CORE_PARTS_H

#include "driver/core/driver.h"
#include "driver/core/outcome.h"
#include "store/rows_part.h"

/** A cluster or nodepool of a resource. */
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
 * Reads the parts of a resource with their reports. A part that no longer exists is in the list,
 * with view.exists false.
 */
HFD_MUST_CHECK hfd_rc hfd_parts_load(const struct hfd_ctx *c, hfd_slice guresid,
                                     struct hfd_parts *out);

/** The cluster of a resource, or the nodepool of a nodepool resource; NULL = it has no parts. */
const struct hfd_part *hfd_parts_main(const struct hfd_parts *parts);
bool hfd_parts_any_exists(const struct hfd_parts *parts);

/**
 * Tells whether a cluster or nodepool is an orphan to adopt: it has the label of this GUResID and
 * is a part of no resource. Thread: any.
 */
HFD_MUST_CHECK hfd_rc hfd_parts_is_orphan(const struct hfd_ctx *c, hfd_slice guresid,
                                          const struct hfd_fleet_row *row, bool *yes);

/**
 * Reads a cluster or nodepool by its id and tells whether it is such an orphan; false as well if
 * there is none. Thread: any.
 */
HFD_MUST_CHECK hfd_rc hfd_parts_find_orphan(const struct hfd_ctx *c, hfd_slice guresid,
                                            const struct hfd_fleet_target *target,
                                            struct hfd_fleet_row *out, bool *yes);

/** Makes such an orphan a part, as it is, even while it is being deleted. No orphan: nothing. */
HFD_MUST_CHECK hfd_rc hfd_parts_adopt(const struct hfd_ctx *c, hfd_slice guresid,
                                      const struct hfd_fleet_target *target);

/** Makes a place-holder part, for what the backend finds by the label of call->guresid. */
HFD_MUST_CHECK hfd_rc hfd_parts_seek(const struct hfd_ctx *c, const struct hfd_call *call,
                                     enum hfd_kind kind, struct hfd_fleet_row *out);

/** Has what was written carried out. Call it once per transaction, after the last write. */
HFD_MUST_CHECK hfd_rc hfd_parts_schedule(const struct hfd_ctx *c, hfd_slice guresid,
                                         enum hfd_backend_goal goal);

#endif
