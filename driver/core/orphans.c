/* See orphans.h. */
#include "driver/core/orphans.h"

#include "driver/core/observe.h"
#include "store/rows_resource.h"

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

/* ---- objects of an adapter ---- */

struct taking {
    struct hfd_arena *mem;
    struct hfd_orphan_row *rows; /* of HFD_ORPHANS_MAX */
    size_t count;
    bool more, failed;
};

static hfd_slice keep(struct taking *t, hfd_slice text)
{
    const hfd_slice kept = hfd_arena_dup(t->mem, text);

    t->failed = t->failed || kept.p == NULL;
    return kept;
}

static void take_object(void *ctx, const struct hfd_actor_object *o)
{
    struct taking *t = ctx;
    struct hfd_orphan_row *row = &t->rows[t->count];

    if (t->count == HFD_ORPHANS_MAX) {
        t->more = true;
        return;
    }
    *row = (struct hfd_orphan_row){
        .kind = o->kind,
        .label = keep(t, o->guresid),
        .id = keep(t, o->id),
        .owner_id = HFD_SLICE(""),
        .name = keep(t, o->name),
        .generation = o->generation,
        .created_us = o->created_us,
        .deleted_us = o->deleted_us,
        .created_by = HFD_SLICE("hypershift@hyperfleet.local"),
        .error = hfd_arena_printf(t->mem, "%s %.*s/%.*s on the management cluster %.*s", o->object,
                                  HFD_SLICE_FMT(o->namespace), HFD_SLICE_FMT(o->name),
                                  HFD_SLICE_FMT(o->place)),
    };
    t->failed = t->failed || row->error.p == NULL;
    t->count++;
}

/* True if a resource has it, or can take it over by itself. */
static hfd_rc is_owned(const struct hfd_ctx *c, const struct hfd_orphan_row *o, bool *yes)
{
    const struct hfd_arena_mark mark = hfd_arena_mark(c->mem);
    struct hfd_resource_row resource;
    struct hfd_fleet_row row;
    hfd_rc rc = hfd_fleet_row_get(c->tx, o->id, c->mem, &row, c->err);

    *yes = rc == HFD_OK;
    if (rc == HFD_NOT_FOUND) {
        rc = hfd_resource_row_get(c->tx, o->label, c->mem, &resource, c->err);
        *yes = rc == HFD_OK;
    }
    hfd_arena_rewind(c->mem, mark);
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

/* Moves what is owned out of the rows. */
static hfd_rc leave_out_owned(const struct hfd_ctx *c, struct taking *t)
{
    size_t left = 0;
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < t->count; i++) {
        bool owned;

        rc = is_owned(c, &t->rows[i], &owned);
        if (rc == HFD_OK && !owned)
            t->rows[left++] = t->rows[i];
    }
    t->count = left;
    return rc;
}

hfd_rc hfd_orphans_add_objects(const struct hfd_ctx *c, struct hfd_orphans *out)
{
    const struct hfd_actor *actor = c->driver->actor;
    struct hfd_orphan_row *all;
    struct taking t = {.mem = c->mem};
    hfd_rc rc;

    if (actor == NULL || actor->objects == NULL)
        return HFD_OK;
    t.rows = hfd_arena_array(c->mem, HFD_ORPHANS_MAX + 1, sizeof(*t.rows));
    if (t.rows != NULL)
        actor->objects(actor->ctx, take_object, &t);
    if (t.rows == NULL || t.failed)
        return hfd_fail_nomem(c->err, "list orphans");
    rc = leave_out_owned(c, &t);
    if (rc != HFD_OK || t.count == 0)
        return rc;
    all = hfd_arena_array(c->mem, out->list.count + t.count, sizeof(*all));
    if (all == NULL)
        return hfd_fail_nomem(c->err, "list orphans");
    if (out->list.count > 0)
        memcpy(all, out->list.rows, out->list.count * sizeof(*all));
    memcpy(all + out->list.count, t.rows, t.count * sizeof(*all));
    out->list.rows = all;
    out->list.count += t.count;
    out->more = out->more || t.more;
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
