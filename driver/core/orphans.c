/* See orphans.h. */
#include "driver/core/orphans.h"

#include "driver/core/observe.h"

hfd_rc hfd_orphans_list(struct hfd_txn *tx, const struct hfd_backend *ops, struct hfd_arena *mem,
                        struct hfd_orphans *out, struct hfd_err *err)
{
    static const enum hfd_kind kinds[] = {HFD_KIND_CLUSTER, HFD_KIND_NODEPOOL};
    struct hfd_backend_orphans found[2];
    size_t count = 0;
    hfd_rc rc = HFD_OK;

    *out = (struct hfd_orphans){.more = false};
    for (size_t k = 0; rc == HFD_OK && k < 2; k++) {
        const struct hfd_backend_orphan_query query = {
            .kind = kinds[k], .limit = HFD_ORPHANS_MAX, .mem = mem};

        rc = ops->orphans(tx, &query, &found[k], err);
        out->more = out->more || (rc == HFD_OK && found[k].more);
        count += rc == HFD_OK ? found[k].list.count : 0;
    }
    if (rc == HFD_OK)
        rc = hfd_backend_orphans_state(ops, tx, mem, &out->as, err);
    if (rc != HFD_OK)
        return rc;
    out->list.rows = hfd_arena_array(mem, count + 1, sizeof(*out->list.rows));
    if (out->list.rows == NULL)
        return hfd_fail_nomem(err, "list orphans");
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < found[k].list.count; i++)
            out->list.rows[out->list.count++] = found[k].list.rows[i];
    return HFD_OK;
}

void hfd_orphans_polled(const struct hfd_driver *d)
{
    hfd_driver_polled(d, HFD_BACKEND_ORPHANS);
}

hfd_rc hfd_orphan_remove(const struct hfd_ctx *c, hfd_slice caller, hfd_slice id,
                         struct hfd_fleet_deletion *out)
{
    struct hfd_fleet_changes changes = {.mem = c->mem};
    struct hfd_ctx own = *c;
    struct hfd_fleet_call fc;
    hfd_rc rc;

    own.changes = &changes;
    fc = hfd_ctx_fleet_call(&own, caller);
    rc = c->driver->backend_ops->remove_orphan(c->tx, &fc, id, out, c->err);
    if (rc == HFD_OK)
        rc = hfd_resource_observe_others(&own, HFD_SLICE_NONE);
    return rc == HFD_OK ? hfd_ctx_wake_worker(c) : rc;
}
