/* Clusters and nodepools of ours that no driver resource knows. See orphans.h. */
#include "driver/core/orphans.h"

#include "driver/base/jsonx.h"
#include "store/rows_fleet.h"
#include "store/rows_part.h"
#include "store/rows_orphan.h"

/* One more than fit tells that there are more. */
static hfd_rc list_embedded(struct hfd_txn *tx, enum hfd_kind kind, size_t limit,
                            struct hfd_arena *mem, struct hfd_orphan_list *out, bool *more,
                            struct hfd_err *err)
{
    const hfd_rc rc =
        hfd_orphan_row_list(tx,
                            &(struct hfd_orphan_query){kind, HFD_SLICE(HFD_GURESID_LABEL),
                                                       HFD_SLICE_NONE, (int64_t)limit + 1},
                            mem, out, err);

    *more = rc == HFD_OK && out->count > limit;
    out->count = *more ? limit : out->count;
    return rc;
}

hfd_rc hfd_orphans_list(struct hfd_txn *tx, const struct hfd_backend *ops, struct hfd_arena *mem,
                        struct hfd_orphans *out, struct hfd_err *err)
{
    static const enum hfd_kind kinds[] = {HFD_KIND_CLUSTER, HFD_KIND_NODEPOOL};
    struct hfd_orphan_list found[2];
    size_t count = 0;
    hfd_rc rc = HFD_OK;

    *out = (struct hfd_orphans){.remote = ops->deferred};
    for (size_t k = 0; rc == HFD_OK && k < 2; k++) {
        bool more;

        rc = (out->remote ? hfd_remote_orphans_list : list_embedded)(tx, kinds[k], HFD_ORPHANS_MAX,
                                                                     mem, &found[k], &more, err);
        out->more = out->more || (rc == HFD_OK && more);
        count += found[k].count;
    }
    if (rc == HFD_OK && out->remote)
        rc = hfd_remote_orphans_state(tx, mem, &out->as, err);
    if (rc != HFD_OK)
        return rc;
    out->list.rows = hfd_arena_array(mem, count + 1, sizeof(*out->list.rows));
    if (out->list.rows == NULL)
        return hfd_fail(err, HFD_NOMEM, "out of memory for a list of orphans");
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < found[k].count; i++)
            out->list.rows[out->list.count++] = found[k].rows[i];
    return HFD_OK;
}

static hfd_rc has_label(hfd_slice labels, bool *yes, struct hfd_err *err)
{
    hfd_slice label = HFD_SLICE_NONE;
    json_t *doc;
    hfd_rc rc = hfd_json_parse(labels, &doc, err);

    *yes = false;
    if (rc != HFD_OK)
        return rc;
    rc = hfd_json_get_string(HFD_JSON_OPTIONAL(doc, "labels", HFD_GURESID_LABEL), &label, err);
    *yes = rc == HFD_OK && label.p != NULL;
    json_decref(doc);
    return rc;
}

static hfd_rc remove_remote(struct hfd_txn *tx, const struct hfd_fleet_call *call, hfd_slice id,
                            struct hfd_fleet_row *out, struct hfd_err *err)
{
    struct hfd_orphan_row row;
    hfd_rc rc = hfd_remote_orphan_remove(tx, id, call->now_us, call->mem, &row, err);

    if (rc != HFD_OK)
        return rc;
    *out = (struct hfd_fleet_row){
        .id = row.id,
        .kind = row.kind,
        .owner_id = row.owner_id,
        .name = row.name,
        .generation = row.generation,
        .labels = hfd_arena_printf(call->mem, HFD_GURESID_LABEL "=%.*s", HFD_SLICE_FMT(row.label)),
    };
    return out->labels.p != NULL ? HFD_OK : hfd_fail(err, HFD_NOMEM, "out of memory for an orphan");
}

hfd_rc hfd_orphan_remove(struct hfd_txn *tx, const struct hfd_driver *d,
                         const struct hfd_fleet_call *call, hfd_slice id, struct hfd_fleet_row *out,
                         bool *gone, struct hfd_err *err)
{
    struct hfd_part_row part;
    bool ours;
    hfd_rc rc;

    *gone = false;
    if (d->backend_ops->deferred)
        return remove_remote(tx, call, id, out, err);
    rc = hfd_fleet_row_get(tx, id, call->mem, out, err);
    if (rc == HFD_NOT_FOUND)
        return hfd_fail(err, HFD_NOT_FOUND, "there is no cluster or nodepool '%.*s'",
                        HFD_SLICE_FMT(id));
    if (rc == HFD_OK)
        rc = has_label(out->labels, &ours, err);
    if (rc != HFD_OK)
        return rc;
    if (!ours)
        return hfd_fail(err, HFD_CONFLICT,
                        "'%.*s' is not the driver's: it has no label " HFD_GURESID_LABEL,
                        HFD_SLICE_FMT(id));
    rc = hfd_part_row_by_fleet(tx, id, call->mem, &part, err);
    if (rc == HFD_OK)
        return hfd_fail(err, HFD_CONFLICT,
                        "'%.*s' is no orphan: it belongs to resource %.*s, which can be deleted",
                        HFD_SLICE_FMT(id), HFD_SLICE_FMT(part.guresid));
    if (rc != HFD_NOT_FOUND)
        return rc;
    return d->backend_ops->remove(tx, call, out->kind, HFD_SLICE_NONE, id, out, gone, err);
}
