#include "store/fleet_name.h"

#include "store/row_io.h"

hfd_rc hfd_fleet_name_taken(const struct hfd_fleet_row *row, struct hfd_err *err)
{
    return hfd_fail(err, HFD_CONFLICT, "store: the name or the id of a %s is taken",
                    row->kind == HFD_KIND_CLUSTER ? "cluster" : "nodepool");
}

hfd_rc hfd_fleet_name_check(struct hfd_txn *tx, const struct hfd_fleet_row *row,
                            const struct hfd_kept *own, const struct hfd_kept *owner,
                            struct hfd_err *err)
{
    const struct hfd_fleet_name name = {row->kind, row->owner_id, row->name};
    struct hfd_fleet_row other;
    struct hfd_arena mem;
    hfd_rc rc;

    if (!hfd_db_gathers(tx->db) || (owner != NULL && owner->fresh))
        return HFD_OK;
    if (row->seq == 0 && own != NULL && own->row != NULL)
        return hfd_fleet_name_taken(row, err);
    hfd_arena_init(&mem, HFD_ROW_BYTES_MAX);
    if (tx->unit == NULL && row->seq == 0 &&
        hfd_fleet_row_get(tx, row->id, &mem, &other, NULL) == HFD_OK)
        rc = hfd_fleet_name_taken(row, err);
    else
        rc = hfd_fleet_row_by_name(tx, &name, &mem, &other, err);
    if (rc == HFD_OK && !hfd_slice_eq(other.id, row->id))
        rc = hfd_fleet_name_taken(row, err);
    hfd_arena_fini(&mem);
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}
