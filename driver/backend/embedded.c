/* The engine in driver/fleet does everything at once. See embedded.h. */
#include "driver/backend/embedded.h"

#include "driver/base/jsonx.h"
#include "store/rows_fleet.h"
#include "store/rows_resource.h"

static hfd_rc embedded_create(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                              const struct hfd_fleet_create *in, struct hfd_backend_written *out,
                              struct hfd_err *err)
{
    out->pending = false;
    return hfd_fleet_create(tx, call, in, &out->row, err);
}

static hfd_rc embedded_patch(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                             const struct hfd_fleet_patch *in, struct hfd_backend_written *out,
                             struct hfd_err *err)
{
    out->pending = false;
    return hfd_fleet_patch(tx, call, in, &out->row, err);
}

/* Reads one row more than the limit, to see whether there are more. */
static hfd_rc embedded_orphans(struct hfd_txn *tx, const struct hfd_backend_orphan_query *query,
                               struct hfd_backend_orphans *out, struct hfd_err *err)
{
    const struct hfd_orphan_query rows = {query->kind, HFD_SLICE(HFD_GURESID_LABEL),
                                          query->guresid.len > 0 ? query->guresid : HFD_SLICE_NONE,
                                          query->owner, (int64_t)query->limit + 1};
    const hfd_rc rc = hfd_orphan_row_list(tx, &rows, query->mem, &out->list, err);

    out->more = rc == HFD_OK && out->list.count > query->limit;
    if (out->more)
        out->list.count = query->limit;
    return rc;
}

/* Refuses to delete what is not the driver's, or is of another server than the one given. */
static hfd_rc check_claim(const struct hfd_fleet_call *call, const struct hfd_fleet_row *row,
                          hfd_slice owner, struct hfd_err *err)
{
    const hfd_slice own = hfd_slice_of(call->fleet->owner);
    struct hfd_fleet_claim claim;
    const hfd_rc rc = hfd_fleet_claim_read(call->fleet, row->labels, call->mem, &claim, err);

    if (rc != HFD_OK)
        return rc;
    if (claim.guresid.len == 0)
        return hfd_fail(err, HFD_CONFLICT,
                        "'%.*s' does not belong to the driver: it has no label " HFD_GURESID_LABEL,
                        HFD_SLICE_FMT(row->id));
    if (hfd_slice_eq(claim.ours ? own : claim.owner, owner.len > 0 ? owner : own))
        return HFD_OK;
    if (claim.ours)
        return hfd_fail(err, HFD_CONFLICT,
                        "'%.*s' belongs to this server, not to the owner that is named",
                        HFD_SLICE_FMT(row->id));
    return hfd_fail(err, HFD_CONFLICT,
                    "'%.*s' belongs to another server: its label " HFD_OWNER_LABEL
                    " is '%.*s'. Delete it there, or name that owner (?owner=)",
                    HFD_SLICE_FMT(row->id), HFD_SLICE_FMT(claim.owner));
}

/* Its adapters finalize it, and a cluster takes its nodepools with it. */
static hfd_rc embedded_remove_orphan(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                                     hfd_slice id, hfd_slice owner, struct hfd_fleet_deletion *out,
                                     struct hfd_err *err)
{
    struct hfd_fleet_row *row = &out->row;
    struct hfd_fleet_target target;
    struct hfd_part_row part;
    hfd_rc rc;

    out->removed = false;
    rc = hfd_fleet_row_get(tx, id, call->mem, row, err);
    if (rc == HFD_NOT_FOUND)
        return hfd_fail(err, HFD_NOT_FOUND, "there is no cluster or nodepool '%.*s'",
                        HFD_SLICE_FMT(id));
    if (rc == HFD_OK)
        rc = check_claim(call, row, owner, err);
    if (rc != HFD_OK)
        return rc;
    rc = hfd_part_row_by_fleet(tx, id, call->mem, &part, err);
    if (rc == HFD_OK)
        return hfd_fail(err, HFD_CONFLICT,
                        "'%.*s' is no orphan: it belongs to resource %.*s, which can be deleted",
                        HFD_SLICE_FMT(id), HFD_SLICE_FMT(part.guresid));
    if (rc != HFD_NOT_FOUND)
        return rc;
    target = (struct hfd_fleet_target){.kind = row->kind, .id = id};
    return hfd_fleet_delete(tx, call, &target, out, err);
}

const struct hfd_backend hfd_backend_embedded = {
    .create = embedded_create,
    .patch = embedded_patch,
    .remove = hfd_fleet_delete,
    .orphans = embedded_orphans,
    .remove_orphan = embedded_remove_orphan,
};
