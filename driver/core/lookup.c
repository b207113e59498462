/* See lookup.h. */
#include "driver/core/lookup.h"

#include "driver/base/jsonx.h"
#include "driver/core/drift.h"
#include "driver/core/history.h"
#include "driver/core/parts.h"
#include "driver/core/transition.h"
#include "store/rows_resource.h"
#include "store/rows_history.h"

/* ---- reading ---- */

/*
 * A row from the cache may be older than the parts. Past its deadline the answer names the parts,
 * so the row must be of the same snapshot.
 */
static hfd_rc read_row(const struct hfd_ctx *c, hfd_slice guresid, struct hfd_resource_row *row)
{
    hfd_rc rc = hfd_resource_row_recent(c->tx, guresid, c->mem, row, c->err);

    if (rc == HFD_OK && (hfd_resource_in_progress(row) || row->state == HFD_STATE_DELETING) &&
        hfd_resource_overdue(row, c->now_us))
        rc = hfd_resource_row_get(c->tx, guresid, c->mem, row, c->err);
    return rc;
}

/* The bytes of the row's own cookie need no opening: this is the polling path. */
static hfd_rc open_cookie(const struct hfd_ctx *c, const struct hfd_call *call, struct hfd_found *f)
{
    hfd_rc rc;

    if (call->cookie.len == 0 || (f->exists && hfd_slice_eq(call->cookie, f->row.cookie)))
        return HFD_OK;
    rc = hfd_cookie_open(
        &(struct hfd_cookie_ctx){.ring = c->driver->ring, .guresid = call->guresid, .mem = c->mem},
        call->cookie, &f->cookie, c->err);
    if (rc == HFD_OK && !hfd_slice_eq(f->cookie.backend, c->driver->backend)) {
        /* Ids of another HyperFleet mean nothing here. */
        f->cookie.cluster_id = HFD_SLICE_NONE;
        f->cookie.nodepool_count = 0;
    }
    return rc;
}

hfd_rc hfd_lookup(const struct hfd_ctx *c, const struct hfd_call *call, struct hfd_found *out)
{
    hfd_rc rc;

    *out = (struct hfd_found){.exists = false};
    rc = read_row(c, call->guresid, &out->row);
    if (rc != HFD_OK && rc != HFD_NOT_FOUND)
        return rc;
    out->exists = rc == HFD_OK;
    out->stored = (enum hfd_state)out->row.state;
    rc = open_cookie(c, call, out);
    if (rc == HFD_OK && out->exists)
        rc = hfd_judge_late(c, &out->row, &out->late, &out->is_late);
    if (rc == HFD_OK && out->is_late)
        hfd_resource_move_copy(&out->row, &out->late);
    return rc;
}

/* Tells whether a DELETE ended this life of a resource. */
static hfd_rc was_removed(const struct hfd_ctx *c, hfd_slice guresid, hfd_slice incarnation,
                          bool *out)
{
    const struct hfd_history_subject subject = {HFD_ABOUT_RESOURCE, guresid};
    struct hfd_history_list list;
    const hfd_rc rc = hfd_history_row_list(c->tx, &subject, c->mem, &list, c->err);

    *out = false;
    for (size_t i = 0; rc == HFD_OK && i < list.count; i++)
        *out = *out || (list.rows[i].to == HFD_STATE_ABSENT &&
                        hfd_slice_eq(list.rows[i].incarnation, incarnation));
    return rc;
}

hfd_rc hfd_lookup_ended(const struct hfd_ctx *c, const struct hfd_found *found, bool *out)
{
    const hfd_slice incarnation = found->cookie.incarnation;

    *out = false;
    if (!found->exists || incarnation.len == 0 || hfd_slice_eq(incarnation, found->row.incarnation))
        return HFD_OK;
    return was_removed(c, found->row.guresid, incarnation, out);
}

/* ---- restoring ---- */

/* The cluster or nodepool that a cookie's resource stands and falls with; an empty id = none. */
static struct hfd_fleet_target main_of(const struct hfd_cookie *cookie)
{
    struct hfd_fleet_target target = {.kind = cookie->kind};

    if (cookie->kind == HFD_KIND_CLUSTER)
        target.id = cookie->cluster_id;
    else if (cookie->nodepool_count > 0)
        target.id = cookie->nodepool_ids[0];
    return target;
}

hfd_rc hfd_lookup_lost(const struct hfd_ctx *c, const struct hfd_call *call,
                       const struct hfd_found *found, enum hfd_lost *out)
{
    const struct hfd_backend_subject subject = hfd_ctx_subject(c, call->guresid);
    const struct hfd_fleet_target target = main_of(&found->cookie);
    struct hfd_fleet_row row;
    bool complete, ours;
    hfd_rc rc;

    *out = HFD_LOST_NOTHING;
    if (found->exists || found->cookie.type.len == 0 ||
        (call->only != 0 && call->only != (int)found->cookie.kind))
        return HFD_OK;
    rc = hfd_backend_is_complete(c->driver->backend_ops, c->tx, &subject, &complete, c->err);
    if (rc == HFD_OK && !complete)
        *out = HFD_LOST_UNKNOWN;
    if (rc != HFD_OK || !complete || target.id.len == 0)
        return rc;
    rc = hfd_parts_find_orphan(c, call->guresid, &target, &row, &ours);
    if (rc == HFD_OK && ours)
        *out = HFD_LOST_IN_ROWS;
    return rc;
}

static struct hfd_resource_row row_of_cookie(const struct hfd_call *call,
                                             const struct hfd_cookie *cookie)
{
    return (struct hfd_resource_row){
        .guresid = call->guresid,
        .type = cookie->type,
        .kind = cookie->kind,
        .incarnation = cookie->incarnation,
        .cluster_id = cookie->cluster_id,
        .digest = cookie->digest,
        .drift = HFD_DRIFT_UNKNOWN,
        .raw_digest = cookie->digest, /* of no body: the next PUT is not answered by the peek */
        .cookie = call->cookie,
        .protect = cookie->protect,
        .created_us = call->now_us,
    };
}

/* Moves a row that is made again into an operation that begins anew. Nothing is learned from it. */
static hfd_rc move_adopted(const struct hfd_ctx *c, enum hfd_op op, const struct hfd_part *main,
                           struct hfd_resource_row *row)
{
    const struct hfd_move move = {
        .to = hfd_resource_state_of_op(op), .at_us = c->now_us, .main = main, .adopted = true};
    hfd_rc rc = hfd_history_begin(c, row);

    hfd_resource_set_op(c, op, row);
    return rc == HFD_OK ? hfd_resource_move(c, row, &move) : rc;
}

/* Makes a place-holder part, for what the backend finds by the label of call->guresid. */
static hfd_rc seek_parts(const struct hfd_ctx *c, const struct hfd_call *call, enum hfd_kind kind,
                         struct hfd_fleet_row *out)
{
    const struct hfd_fleet_call fc = hfd_ctx_fleet_call(c, call->caller);
    struct hfd_backend_written w;
    hfd_rc rc = c->driver->backend_ops->seek(c->tx, &fc, kind, &w, c->err);

    if (rc != HFD_OK)
        return rc;
    *out = w.row;
    return hfd_part_record(c, call->guresid, &w);
}

/* A place-holder row: the backend finds out what HyperFleet has, and the row is updating meanwhile.
 */
static hfd_rc restore_by_seeking(const struct hfd_ctx *c, const struct hfd_call *call,
                                 struct hfd_found *f)
{
    struct hfd_resource_row *row = &f->row;
    struct hfd_fleet_row fleet;
    hfd_rc rc = seek_parts(c, call, f->cookie.kind, &fleet);

    if (rc != HFD_OK)
        return rc;
    *row = row_of_cookie(call, &f->cookie);
    row->cluster_id = row->kind == HFD_KIND_CLUSTER ? fleet.id : HFD_SLICE("");
    rc = move_adopted(c, HFD_OP_UPDATE, NULL, row);
    if (rc == HFD_OK)
        rc = hfd_resource_row_put(c->tx, row, c->err);
    return rc == HFD_OK ? hfd_parts_schedule(c, call->guresid, HFD_GOAL_ADOPT) : rc;
}

/* Makes such an orphan a part, as it is, even while it is being deleted. No orphan: nothing. */
static hfd_rc adopt_all(const struct hfd_ctx *c, hfd_slice guresid,
                        const struct hfd_fleet_target *target)
{
    struct hfd_backend_written w = {.pending = false};
    bool ours;
    hfd_rc rc = hfd_parts_find_orphan(c, guresid, target, &w.row, &ours);

    if (rc != HFD_OK || !ours)
        return rc;
    rc = hfd_part_record(c, guresid, &w);
    return rc == HFD_OK ? hfd_part_adopted(c, &w.row) : rc;
}

static hfd_rc adopt_parts(const struct hfd_ctx *c, const struct hfd_call *call,
                          const struct hfd_cookie *cookie)
{
    const struct hfd_fleet_target main = main_of(cookie);
    const size_t nodepools = cookie->kind == HFD_KIND_CLUSTER ? cookie->nodepool_count : 0;
    hfd_rc rc = adopt_all(c, call->guresid, &main);

    for (size_t i = 0; rc == HFD_OK && i < nodepools; i++) {
        const struct hfd_fleet_target target = {.kind = HFD_KIND_NODEPOOL,
                                                .id = cookie->nodepool_ids[i]};

        rc = adopt_all(c, call->guresid, &target);
    }
    return rc;
}

/* A cookie does not tell the operation: a part that was never changed was being created. */
static enum hfd_op op_of_part(const struct hfd_part_view *main)
{
    if (main->deleting)
        return HFD_OP_DELETE;
    return main->generation > 1 ? HFD_OP_UPDATE : HFD_OP_CREATE;
}

/* The row that a cookie remembers, for the parts that HyperFleet still has, judged as of now. */
static hfd_rc restore_from_rows(const struct hfd_ctx *c, const struct hfd_call *call,
                                struct hfd_found *f)
{
    struct hfd_resource_row *row = &f->row;
    const struct hfd_part *main;
    struct hfd_parts parts;
    hfd_rc rc;

    rc = adopt_parts(c, call, &f->cookie);
    if (rc == HFD_OK)
        rc = hfd_parts_load(c, call->guresid, &parts);
    if (rc != HFD_OK)
        return rc;
    main = hfd_parts_main(&parts);
    *row = row_of_cookie(call, &f->cookie);
    row->created_us = main->fleet.created_us;
    rc = move_adopted(c, op_of_part(&main->view), main, row);
    if (rc == HFD_OK)
        rc = hfd_judge_row(c, &parts, row);
    return rc == HFD_OK ? hfd_resource_row_put(c->tx, row, c->err) : rc;
}

hfd_rc hfd_lookup_restore(const struct hfd_ctx *c, const struct hfd_call *call, enum hfd_lost lost,
                          struct hfd_found *found)
{
    hfd_rc rc;

    if (lost == HFD_LOST_NOTHING)
        return HFD_OK;
    rc = hfd_roots_leave(c->tx, c->err);
    if (rc != HFD_OK)
        return rc;
    rc = lost == HFD_LOST_IN_ROWS ? restore_from_rows(c, call, found)
                                  : restore_by_seeking(c, call, found);
    found->exists = rc == HFD_OK;
    found->stored = (enum hfd_state)found->row.state;
    return rc;
}

/* ---- objects of an adapter of this program ---- */

hfd_rc hfd_lookup_may_have_objects(const struct hfd_ctx *c, const struct hfd_call *call,
                                   const struct hfd_found *found, bool *out)
{
    const struct hfd_cookie *cookie = &found->cookie;
    bool removed;
    hfd_rc rc;

    *out = false;
    if (found->exists || cookie->type.len == 0 || c->driver->hooks == NULL ||
        cookie->kind != HFD_KIND_CLUSTER || (call->only != 0 && call->only != HFD_KIND_CLUSTER) ||
        !hfd_slice_eq(cookie->backend, c->driver->backend))
        return HFD_OK;
    rc = was_removed(c, call->guresid, cookie->incarnation, &removed);
    *out = rc == HFD_OK && !removed;
    return rc;
}

/* @param labels  in c->mem */
static hfd_rc make_labels(const struct hfd_ctx *c, hfd_slice guresid, hfd_slice *labels)
{
    json_t *doc = json_pack("{s:s%}", HFD_GURESID_LABEL, guresid.p, guresid.len);

    *labels = doc != NULL ? hfd_json_dump_arena(c->mem, doc) : HFD_SLICE_NONE;
    json_decref(doc);
    return labels->p != NULL ? HFD_OK : hfd_fail_nomem(c->err, "make a lost resource again");
}

hfd_rc hfd_lookup_restore_objects(const struct hfd_ctx *c, const struct hfd_call *call,
                                  struct hfd_found *f)
{
    const struct hfd_fleet_call fc = hfd_ctx_fleet_call(c, call->caller);
    struct hfd_fleet_create in = {
        .kind = HFD_KIND_CLUSTER,
        .name = hfd_arena_printf(c->mem, "lost-%.*s", HFD_SLICE_FMT(f->cookie.incarnation)),
        .spec = HFD_SLICE("{\"" HFD_LOST_MEMBER "\":true}"),
        .owner_id = HFD_SLICE("")};
    struct hfd_backend_written w;
    hfd_rc rc = hfd_roots_leave(c->tx, c->err);

    if (rc == HFD_OK)
        rc = make_labels(c, call->guresid, &in.labels);
    if (in.name.p == NULL)
        return hfd_fail_nomem(c->err, "make a lost resource again");
    if (rc == HFD_OK)
        rc = c->driver->backend_ops->create(c->tx, &fc, &in, &w, c->err);
    if (rc == HFD_OK)
        rc = hfd_part_record(c, call->guresid, &w);
    if (rc != HFD_OK)
        return rc;
    f->row = row_of_cookie(call, &f->cookie);
    f->row.cluster_id = w.row.id;
    rc = move_adopted(c, HFD_OP_UPDATE, NULL, &f->row);
    if (rc == HFD_OK)
        rc = hfd_resource_row_put(c->tx, &f->row, c->err);
    f->exists = rc == HFD_OK;
    f->stored = (enum hfd_state)f->row.state;
    return rc;
}
