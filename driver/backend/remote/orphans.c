/* See orphans.h. */
#include "driver/backend/remote/orphans.h"

#include "driver/backend/remote/work.h"
#include "driver/base/log.h"
#include "store/rows_fleet.h"
#include "store/rows_orphan.h"
#include "store/rows_part.h"
#include "store/rows_remote.h"
#include "store/rows_remote_orphan.h"

/* The resource with a nodepool in the cluster. Only nodepools of resources have rows. */
static hfd_rc inhabitant(struct hfd_txn *tx, hfd_slice cluster_id, struct hfd_arena *mem,
                         hfd_slice *whose, struct hfd_err *err)
{
    struct hfd_fleet_list pools;
    struct hfd_part_row part = {.guresid = HFD_SLICE("")};
    hfd_rc rc = hfd_fleet_row_children(tx, cluster_id, mem, &pools, err);

    for (size_t i = 0; rc == HFD_OK && part.guresid.len == 0 && i < pools.count; i++) {
        rc = hfd_part_row_by_fleet(tx, pools.rows[i].id, mem, &part, err);
        rc = rc == HFD_NOT_FOUND ? HFD_OK : rc;
    }
    *whose = rc == HFD_OK ? part.guresid : HFD_SLICE("");
    return rc;
}

/* Returns whether a part of the GUResID has no id yet. */
static hfd_rc is_possible(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem, bool *yes,
                          struct hfd_err *err)
{
    struct hfd_part_list parts;
    const hfd_rc rc = hfd_part_row_list(tx, guresid, mem, &parts, err);

    *yes = false;
    for (size_t i = 0; rc == HFD_OK && i < parts.count; i++)
        *yes = *yes || !hfd_backend_id_is_given(parts.rows[i].fleet_id);
    return rc;
}

hfd_rc hfd_remote_orphan_claim(struct hfd_txn *tx, const struct hfd_orphan_row *o,
                               struct hfd_arena *mem, struct hfd_orphan_claim *out,
                               struct hfd_err *err)
{
    struct hfd_part_row part;
    bool possible;
    hfd_rc rc = hfd_part_row_by_fleet(tx, o->id, mem, &part, err);

    *out = (struct hfd_orphan_claim){HFD_ORPHAN_OWNED, rc == HFD_OK ? part.guresid : HFD_SLICE("")};
    if (rc != HFD_NOT_FOUND)
        return rc;
    rc = is_possible(tx, o->label, mem, &possible, err);
    *out = (struct hfd_orphan_claim){HFD_ORPHAN_POSSIBLE, o->label};
    if (rc != HFD_OK || possible)
        return rc;
    *out = (struct hfd_orphan_claim){HFD_ORPHAN_FREE, HFD_SLICE("")};
    if (o->kind == HFD_KIND_CLUSTER)
        rc = inhabitant(tx, o->id, mem, &out->whose, err);
    out->is = out->whose.len > 0 ? HFD_ORPHAN_INHABITED : HFD_ORPHAN_FREE;
    return rc;
}

hfd_rc hfd_remote_orphan_adopted(struct hfd_txn *tx, hfd_slice id, struct hfd_arena *mem,
                                 struct hfd_err *err)
{
    struct hfd_remote_orphan_row row;
    const hfd_rc rc = hfd_remote_orphan_row_get(tx, id, mem, &row, err);

    if (rc != HFD_OK)
        return rc == HFD_NOT_FOUND ? HFD_OK : rc;
    if (row.orphan.wanted_us != 0)
        HFD_LOG(HFD_LOG_WARN, "orphan not deleted: a resource has adopted it",
                HFD_LOG_STR("id", row.orphan.id), HFD_LOG_STR("name", row.orphan.name),
                HFD_LOG_STR("guresid", row.orphan.label));
    return hfd_remote_orphan_row_delete(tx, id, err);
}

hfd_rc hfd_remote_orphans_list(struct hfd_txn *tx, const struct hfd_backend_orphan_query *query,
                               struct hfd_backend_orphans *out, struct hfd_err *err)
{
    const struct hfd_remote_orphan_query rows = {.kind = query->kind,
                                                 .limit = (int64_t)query->limit + 1};
    struct hfd_orphan_list *list = &out->list;
    struct hfd_remote_orphan_list found;
    hfd_rc rc = hfd_remote_orphan_row_list(tx, &rows, query->mem, &found, err);

    *out = (struct hfd_backend_orphans){.more = false};
    if (rc != HFD_OK)
        return rc;
    out->more = found.count > query->limit;
    list->rows = hfd_arena_array(query->mem, found.count + 1, sizeof(*list->rows));
    if (list->rows == NULL)
        return hfd_fail_nomem(err, "list orphans");
    for (size_t i = 0; i < found.count && list->count < query->limit; i++) {
        struct hfd_orphan_claim claim;

        rc = hfd_remote_orphan_claim(tx, &found.rows[i].orphan, query->mem, &claim, err);
        if (rc != HFD_OK)
            return rc;
        if (claim.is == HFD_ORPHAN_FREE || claim.is == HFD_ORPHAN_INHABITED)
            list->rows[list->count++] = found.rows[i].orphan;
    }
    return HFD_OK;
}

hfd_rc hfd_remote_orphans_state(struct hfd_txn *tx, struct hfd_arena *mem,
                                struct hfd_backend_orphans_state *out, struct hfd_err *err)
{
    struct hfd_remote_row row;
    hfd_rc rc = hfd_remote_row_get(tx, HFD_REMOTE_ORPHANS, mem, &row, err);

    *out = (struct hfd_backend_orphans_state){.remote = true, .error = HFD_SLICE("")};
    if (rc == HFD_OK)
        *out = (struct hfd_backend_orphans_state){true, row.checked_us, row.error};
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

/* Fails if a resource has the orphan, or may get it. */
static hfd_rc refuse(hfd_slice id, const struct hfd_orphan_claim *claim, struct hfd_err *err)
{
    switch (claim->is) {
    case HFD_ORPHAN_FREE:
        break;
    case HFD_ORPHAN_POSSIBLE:
        return hfd_fail(err, HFD_CONFLICT,
                        "'%.*s' may become a part of resource %.*s: try again "
                        "later",
                        HFD_SLICE_FMT(id), HFD_SLICE_FMT(claim->whose));
    case HFD_ORPHAN_OWNED:
        return hfd_fail(err, HFD_CONFLICT,
                        "'%.*s' is no orphan: it belongs to resource %.*s, which "
                        "can be deleted",
                        HFD_SLICE_FMT(id), HFD_SLICE_FMT(claim->whose));
    case HFD_ORPHAN_INHABITED:
        return hfd_fail(err, HFD_CONFLICT,
                        "'%.*s' contains a nodepool of resource %.*s: delete that "
                        "resource first",
                        HFD_SLICE_FMT(id), HFD_SLICE_FMT(claim->whose));
    }
    return HFD_OK;
}

hfd_rc hfd_remote_orphan_remove(struct hfd_txn *tx, const struct hfd_fleet_call *call, hfd_slice id,
                                struct hfd_orphan_row *out, struct hfd_err *err)
{
    struct hfd_remote_orphan_row row;
    struct hfd_orphan_claim claim;
    hfd_rc rc = hfd_remote_orphan_row_get(tx, id, call->mem, &row, err);
    const bool known = rc == HFD_OK;

    if (rc == HFD_NOT_FOUND) {
        row = (struct hfd_remote_orphan_row){
            .orphan = {.id = id, .kind = HFD_KIND_NODEPOOL, .label = HFD_SLICE("")}};
        rc = HFD_OK;
    }
    if (rc == HFD_OK)
        rc = hfd_remote_orphan_claim(tx, &row.orphan, call->mem, &claim, err);
    if (rc == HFD_OK)
        rc = refuse(id, &claim, err);
    if (rc != HFD_OK)
        return rc;
    if (!known)
        return hfd_fail(err, HFD_NOT_FOUND,
                        "no orphan '%.*s' is known: GET /admin/orphans asks "
                        "HyperFleet for orphans",
                        HFD_SLICE_FMT(id));
    row.orphan.wanted_us = row.orphan.wanted_us != 0 ? row.orphan.wanted_us : call->now_us;
    row.orphan.error = HFD_SLICE("");
    row.due_us = call->now_us;
    row.tries = 0;
    *out = row.orphan;
    return hfd_remote_orphan_row_put(tx, &row, err);
}
