/*
 * The rows that a pass works from: the work row, the resource, and its parts. Thread: any, in a
 * transaction.
 */
#ifndef HFD_REMOTE_PASS_ROWS_H
#define HFD_REMOTE_PASS_ROWS_H

#include "driver/backend/mirror.h"
#include "store/rows_fleet.h"
#include "store/rows_part.h"
#include "store/rows_remote.h"
#include "store/rows_resource.h"

struct hfd_pass_part {
    struct hfd_part_row row;
    struct hfd_fleet_row fleet;
    bool exists; /* there is a mirror row */
};

struct hfd_pass_rows {
    bool found; /* false: there is no work for this GUResID, and nothing else is
                   set */
    struct hfd_remote_row remote;
    struct hfd_resource_row res;
    struct hfd_pass_part *parts; /* the cluster first */
    size_t count;
    size_t own; /* index of the part of the resource's own kind; `count` or more =
                   none */
};

/** Loads all rows of one resource. @return HFD_OK, HFD_NOMEM, HFD_IO, HFD_CORRUPT */
HFD_MUST_CHECK hfd_rc hfd_pass_rows_load(struct hfd_txn *tx, hfd_slice guresid,
                                         struct hfd_arena *mem, struct hfd_pass_rows *out,
                                         struct hfd_err *err);

/** The cluster of a cluster resource, the nodepool of a nodepool resource; NULL = none. */
struct hfd_pass_part *hfd_pass_own(const struct hfd_pass_rows *rows);

/** NULL = no part has this id. */
struct hfd_pass_part *hfd_pass_part_by_id(const struct hfd_pass_rows *rows, hfd_slice fleet_id);

#endif
