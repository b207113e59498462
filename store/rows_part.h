/* Rows of parts: the clusters and nodepools that belong to a driver resource. */
#ifndef HFD_STORE_ROWS_PART_H
#define HFD_STORE_ROWS_PART_H

#include "driver/base/arena.h"
#include "store/kind.h"
#include "store/store.h"

struct hfd_part_row {
    hfd_slice guresid;
    hfd_slice fleet_id;
    enum hfd_kind kind;
    hfd_slice name;
    int64_t generation; /* the one that the driver last wrote */
    bool leaving;       /* the last input does not have it; it is being deleted */
    bool pending;       /* the remote has not taken the last change yet */
};

struct hfd_part_list {
    struct hfd_part_row *rows;
    size_t count;
};

/** Lists the parts of a driver resource: the cluster first, then nodepools by name. */
HFD_MUST_CHECK hfd_rc hfd_part_row_list(struct hfd_txn *tx, hfd_slice guresid,
                                        struct hfd_arena *mem, struct hfd_part_list *out,
                                        struct hfd_err *err);
/** Finds the part that a HyperFleet resource is. @return HFD_NOT_FOUND */
HFD_MUST_CHECK hfd_rc hfd_part_row_by_fleet(struct hfd_txn *tx, hfd_slice fleet_id,
                                            struct hfd_arena *mem, struct hfd_part_row *out,
                                            struct hfd_err *err);
/** Inserts or replaces. */
HFD_MUST_CHECK hfd_rc hfd_part_row_put(struct hfd_txn *tx, const struct hfd_part_row *row,
                                       struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_part_row_delete(struct hfd_txn *tx, hfd_slice guresid, hfd_slice fleet_id,
                                          struct hfd_err *err);
/** Removes all parts of a driver resource. */
HFD_MUST_CHECK hfd_rc hfd_part_row_delete_all(struct hfd_txn *tx, hfd_slice guresid,
                                              struct hfd_err *err);
/** Gives the parts with the HyperFleet id `from` the id `to`. */
HFD_MUST_CHECK hfd_rc hfd_part_row_refer(struct hfd_txn *tx, hfd_slice from, hfd_slice to,
                                         struct hfd_arena *mem, struct hfd_err *err);

/** Notes that the part of a HyperFleet resource will be read: as hfd_fleet_row_follow. */
HFD_MUST_CHECK hfd_rc hfd_part_row_follow_fleet(struct hfd_txn *tx, const char *via, hfd_slice key,
                                                struct hfd_err *err);
/** Notes that these rows will be read: as hfd_fleet_row_follow. */
HFD_MUST_CHECK hfd_rc hfd_part_row_follow(struct hfd_txn *tx, const char *via, hfd_slice key,
                                          struct hfd_err *err);

#endif
