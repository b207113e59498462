/* See backend.h. */
#include "driver/backend/backend.h"

#include "driver/backend/remote/orphans.h"
#include "driver/backend/remote/wire.h"
#include "driver/base/check.h"
#include "driver/base/jsonx.h"
#include "driver/fleet/keys.h"
#include "store/rows_remote.h"
#include "store/rows_resource.h"

/* ---- embedded: the engine in driver/fleet does everything at once ---- */

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

/*
 * ---- mirror: the remote HyperFleet behind the seam ----
 *
 * PUT and DELETE write what is wanted into the mirror rows, and schedule the resource. No request
 * is sent from here. See README.md in this folder.
 */

/* How long a look that found nothing is believed. */
#define ABSENT_FOR_US (600 * HFD_US_PER_S)

/*
 * Makes a row with a place-holder for its id, and does not write it. Borrows from `in`.
 * @return HFD_OK, HFD_NOMEM
 */
static hfd_rc mirror_row_new(const struct hfd_fleet_call *call, const struct hfd_fleet_create *in,
                             struct hfd_fleet_row *out, struct hfd_err *err)
{
    char id[HFD_KSUID_LEN];

    hfd_ksuid_make(call->now_us, call->fleet->rng, id);
    *out = (struct hfd_fleet_row){
        .id = hfd_arena_printf(call->mem, HFD_PLACEHOLDER "%.*s", (int)sizeof(id), id),
        .kind = in->kind,
        .owner_id = in->owner_id,
        .name = in->name,
        .spec = in->spec,
        .labels = in->labels,
        .conditions = HFD_SLICE("[]"),
        .created_us = call->now_us,
        .updated_us = call->now_us,
        .created_by = call->caller,
        .updated_by = call->caller,
    };
    return out->id.p != NULL ? HFD_OK : hfd_fail_nomem(err, "write a mirror row");
}

static hfd_rc mirror_create(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                            const struct hfd_fleet_create *in, struct hfd_backend_written *out,
                            struct hfd_err *err)
{
    hfd_rc rc;

    HFD_ASSERT((in->kind == HFD_KIND_NODEPOOL) == (in->owner_id.len > 0));
    out->pending = true;
    rc = mirror_row_new(call, in, &out->row, err);
    if (rc == HFD_OK)
        rc = hfd_fleet_row_insert(tx, &out->row, err);
    if (rc == HFD_CONFLICT)
        return hfd_fail_field(err, HFD_CONFLICT, "name", "This %s already exists",
                              hfd_kind_name(in->kind));
    return rc;
}

/* A mirror row by its id; the remote may not have the owner that a path names. */
static hfd_rc get_row(struct hfd_txn *tx, const struct hfd_fleet_target *target,
                      struct hfd_arena *mem, struct hfd_fleet_row *out, struct hfd_err *err)
{
    const struct hfd_fleet_target flat = {.kind = target->kind, .id = target->id};

    return hfd_fleet_get(tx, &flat, mem, out, err);
}

static hfd_rc mirror_patch(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                           const struct hfd_fleet_patch *in, struct hfd_backend_written *out,
                           struct hfd_err *err)
{
    struct hfd_fleet_row *row = &out->row;
    struct hfd_part_row part;
    bool differs;
    hfd_rc rc;

    rc = get_row(tx, &in->target, call->mem, row, err);
    if (rc == HFD_OK)
        rc = hfd_part_row_by_fleet(tx, in->target.id, call->mem, &part, err);
    if (rc != HFD_OK)
        return rc;
    if (row->deleted_us != 0)
        return hfd_fail(err, HFD_DELETING, "%s '%.*s' is marked for deletion",
                        hfd_kind_name(row->kind), HFD_SLICE_FMT(row->id));
    differs = (in->spec.p != NULL && !hfd_slice_eq(in->spec, row->spec)) ||
              (in->labels.p != NULL && !hfd_slice_eq(in->labels, row->labels));
    /* The remote has something else of a part that drifted. */
    out->pending = part.pending || differs || part.aside.len > 0;
    if (!differs)
        return HFD_OK;
    row->spec = in->spec.p != NULL ? in->spec : row->spec;
    row->labels = in->labels.p != NULL ? in->labels : row->labels;
    row->updated_us = call->now_us;
    row->updated_by = call->caller;
    return hfd_fleet_row_update(tx, row, err);
}

/* A deletion cannot be undone: a later resource of the same name is another one. */
static hfd_rc mirror_remove(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                            const struct hfd_fleet_target *target, struct hfd_fleet_deletion *out,
                            struct hfd_err *err)
{
    struct hfd_fleet_row *row = &out->row;
    hfd_rc rc = get_row(tx, target, call->mem, row, err);

    out->removed = false;
    if (rc != HFD_OK || row->deleted_us != 0)
        return rc;
    row->deleted_us = call->now_us;
    row->deleted_by = call->caller;
    row->updated_us = call->now_us;
    row->updated_by = call->caller;
    return hfd_fleet_row_update(tx, row, err);
}

static hfd_rc mirror_seek(struct hfd_txn *tx, const struct hfd_fleet_call *call, enum hfd_kind kind,
                          struct hfd_backend_written *out, struct hfd_err *err)
{
    const struct hfd_fleet_create in = {.kind = kind,
                                        .owner_id = HFD_SLICE(""),
                                        .spec = HFD_SLICE("{}"),
                                        .labels = HFD_SLICE("{}")};
    hfd_rc rc = mirror_row_new(call, &in, &out->row, err);

    out->pending = true;
    if (rc != HFD_OK)
        return rc;
    out->row.name = out->row.id;
    return hfd_fleet_row_insert(tx, &out->row, err);
}

/* A nodepool cannot be made before its cluster has an id: then nothing is due until it has. */
static hfd_rc waits_for_owner(struct hfd_txn *tx, hfd_slice guresid, bool *waits,
                              struct hfd_err *err)
{
    struct hfd_part_list parts;
    struct hfd_fleet_row row;
    struct hfd_arena mem;
    hfd_rc rc;

    *waits = false;
    hfd_arena_init(&mem, HFD_MIRROR_SCRATCH_MAX_BYTES);
    rc = hfd_part_row_list(tx, guresid, &mem, &parts, err);
    if (rc == HFD_OK && parts.count > 0 && parts.rows[0].kind == HFD_KIND_NODEPOOL) {
        rc = hfd_fleet_row_get(tx, parts.rows[0].fleet_id, &mem, &row, err);
        *waits = rc == HFD_OK && row.owner_id.len > 0 && !hfd_backend_id_is_given(row.owner_id);
        rc = rc == HFD_NOT_FOUND ? HFD_OK : rc;
    }
    hfd_arena_fini(&mem);
    return rc;
}

static hfd_rc mirror_schedule(struct hfd_txn *tx, const struct hfd_backend_subject *s,
                              enum hfd_backend_goal goal, struct hfd_err *err)
{
    struct hfd_remote_row row;
    struct hfd_arena mem;
    bool waits;
    hfd_rc rc;

    hfd_arena_init(&mem, HFD_MIRROR_SCRATCH_MAX_BYTES);
    rc = hfd_remote_row_get(tx, s->guresid, &mem, &row, err);
    if (rc == HFD_NOT_FOUND) {
        row = (struct hfd_remote_row){.guresid = s->guresid};
        rc = HFD_OK;
    }
    if (rc == HFD_OK)
        rc = waits_for_owner(tx, s->guresid, &waits, err);
    if (rc == HFD_OK) {
        row.goal = (int)goal;
        row.watched = HFD_WATCHED_NOT;
        row.due_us = waits ? INT64_MAX : s->now_us;
        row.full_us = 0;
        row.tries = 0;
        row.refusals = 0;
        row.error = HFD_SLICE_NONE;
        rc = hfd_remote_row_put(tx, &row, err);
    }
    hfd_arena_fini(&mem);
    return rc;
}

static hfd_rc mirror_forget(struct hfd_txn *tx, const struct hfd_backend_subject *s,
                            struct hfd_err *err)
{
    const struct hfd_remote_row row = {.guresid = s->guresid,
                                       .goal = HFD_GOAL_ABSENT,
                                       .due_us = INT64_MAX,
                                       .checked_us = s->now_us};
    hfd_rc rc = hfd_remote_row_drop_absent(tx, s->now_us - ABSENT_FOR_US, err);

    return rc == HFD_OK ? hfd_remote_row_put(tx, &row, err) : rc;
}

/* The rows show all for a while after a look that found nothing. */
static hfd_rc mirror_is_complete(struct hfd_txn *tx, const struct hfd_backend_subject *s, bool *yes,
                                 struct hfd_err *err)
{
    struct hfd_remote_row row;
    struct hfd_arena mem;
    hfd_rc rc;

    hfd_arena_init(&mem, HFD_MIRROR_SCRATCH_MAX_BYTES);
    rc = hfd_remote_row_get(tx, s->guresid, &mem, &row, err);
    *yes =
        rc == HFD_OK && row.goal == HFD_GOAL_ABSENT && row.checked_us > s->now_us - ABSENT_FOR_US;
    hfd_arena_fini(&mem);
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

static hfd_rc mirror_trouble(struct hfd_txn *tx, const struct hfd_backend_subject *s,
                             hfd_slice *out, struct hfd_err *err)
{
    struct hfd_remote_row row;
    hfd_rc rc = hfd_remote_row_get(tx, s->guresid, s->mem, &row, err);

    *out = rc == HFD_OK ? row.error : HFD_SLICE("");
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

/* A PUT adopts nothing by itself: the remote thread finds by its label what the remote has. */
static hfd_rc mirror_orphans(struct hfd_txn *tx, const struct hfd_backend_orphan_query *query,
                             struct hfd_backend_orphans *out, struct hfd_err *err)
{
    const hfd_slice of = query->owner.of;

    *out = (struct hfd_backend_orphans){.more = false};
    if (query->guresid.len > 0 || (of.len > 0 && !hfd_slice_eq(of, query->owner.own)))
        return HFD_OK;
    return hfd_remote_orphans_list(tx, query, out, err);
}

/* The remote thread looks at it once more before it deletes it. */
static hfd_rc mirror_remove_orphan(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                                   hfd_slice id, hfd_slice owner, struct hfd_fleet_deletion *out,
                                   struct hfd_err *err)
{
    struct hfd_orphan_row row;
    hfd_rc rc;

    out->removed = false;
    if (owner.len > 0 && !hfd_slice_is(owner, call->fleet->owner))
        return hfd_fail(err, HFD_CONFLICT,
                        "orphans of other servers are deleted there, or in the remote HyperFleet");
    rc = hfd_remote_orphan_remove(tx, call, id, &row, err);
    if (rc != HFD_OK)
        return rc;
    out->row = (struct hfd_fleet_row){
        .id = row.id,
        .kind = row.kind,
        .owner_id = row.owner_id,
        .name = row.name,
        .generation = row.generation,
        .labels = hfd_arena_printf(call->mem, HFD_GURESID_LABEL "=%.*s", HFD_SLICE_FMT(row.label)),
    };
    return out->row.labels.p != NULL ? HFD_OK : hfd_fail_nomem(err, "delete an orphan");
}

const struct hfd_backend hfd_backend_remote = {
    .create = mirror_create,
    .patch = mirror_patch,
    .remove = mirror_remove,
    .orphans = mirror_orphans,
    .remove_orphan = mirror_remove_orphan,
    .orphans_state = hfd_remote_orphans_state,
    .discard = hfd_fleet_row_delete,
    .seek = mirror_seek,
    .is_complete = mirror_is_complete,
    .may_have_cluster = hfd_wire_id_ok,
    .schedule = mirror_schedule,
    .forget = mirror_forget,
    .trouble = mirror_trouble,
};
