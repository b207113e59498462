/* Clusters and nodepools of ours that no driver resource knows. See orphans.h. */
#include "driver/core/orphans.h"

#include "driver/base/jsonx.h"

hfd_rc hfd_orphans_list(struct hfd_txn *tx, struct hfd_arena *mem, struct hfd_orphan_list *out, bool *more, struct hfd_err *err)
{
    static const enum hfd_kind kinds[] = {HFD_KIND_CLUSTER, HFD_KIND_NODEPOOL};
    struct hfd_orphan_list found[2];
    size_t count = 0;

    *out = (struct hfd_orphan_list){.count = 0};
    *more = false;
    for (size_t k = 0; k < 2; k++) {
        const hfd_rc rc =
            hfd_orphan_row_list(tx, kinds[k], HFD_SLICE(HFD_GURESID_LABEL), HFD_SLICE_NONE, HFD_ORPHANS_MAX + 1, mem, &found[k], err);

        if (rc != HFD_OK)
            return rc;
        *more = *more || found[k].count > HFD_ORPHANS_MAX;
        found[k].count = found[k].count < HFD_ORPHANS_MAX ? found[k].count : HFD_ORPHANS_MAX;
        count += found[k].count;
    }
    out->rows = hfd_arena_array(mem, count + 1, sizeof(*out->rows));
    if (out->rows == NULL)
        return hfd_fail(err, HFD_NOMEM, "out of memory for a list of orphans");
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < found[k].count; i++)
            out->rows[out->count++] = found[k].rows[i];
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
    rc = jsonx_get_string(doc, "labels", HFD_GURESID_LABEL, false, &label, err);
    *yes = rc == HFD_OK && label.p != NULL;
    json_decref(doc);
    return rc;
}

hfd_rc hfd_orphan_remove(struct hfd_txn *tx, const struct hfd_driver *d, const struct hfd_fleet_call *call, hfd_slice id,
                         struct hfd_fleet_row *out, bool *gone, struct hfd_err *err)
{
    struct hfd_part_row part;
    bool ours;
    hfd_rc rc;

    rc = hfd_fleet_row_get(tx, id, call->mem, out, err);
    if (rc == HFD_NOT_FOUND)
        return hfd_fail(err, HFD_NOT_FOUND, "there is no cluster or nodepool '%.*s'", HFD_SLICE_FMT(id));
    if (rc == HFD_OK)
        rc = has_label(out->labels, &ours, err);
    if (rc != HFD_OK)
        return rc;
    if (!ours)
        return hfd_fail(err, HFD_CONFLICT, "'%.*s' is not the driver's: it has no label " HFD_GURESID_LABEL, HFD_SLICE_FMT(id));
    rc = hfd_part_row_by_fleet(tx, id, call->mem, &part, err);
    if (rc == HFD_OK)
        return hfd_fail(err, HFD_CONFLICT, "'%.*s' is no orphan: it belongs to resource %.*s, which can be deleted", HFD_SLICE_FMT(id),
                        HFD_SLICE_FMT(part.guresid));
    if (rc != HFD_NOT_FOUND)
        return rc;
    return d->backend_ops->remove(tx, call, out->kind, HFD_SLICE_NONE, id, out, gone, err);
}
