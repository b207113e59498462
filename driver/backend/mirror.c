/*
 * The remote HyperFleet as a PUT or DELETE sees it: what is wanted is written into the mirror rows,
 * and the resource is put on the list of what is due. Nothing is said to the remote here. See
 * README.md in this folder. Thread: writer, inside a transaction function.
 */
#include "driver/backend/mirror.h"

#include "driver/base/check.h"
#include "driver/fleet/ksuid.h"
#include "driver/fleet/names.h"
#include "store/rows_fleet.h"
#include "store/rows_part.h"
#include "store/rows_remote.h"

/* So long nothing is looked for again after it was found that nothing is there. */
#define ABSENT_FOR_US (600 * HFD_US_PER_S)

static hfd_rc no_memory(struct hfd_err *err)
{
    return hfd_fail(err, HFD_NOMEM, "out of memory in the mirror of HyperFleet");
}

hfd_rc hfd_mirror_row_new(const struct hfd_fleet_call *call, const struct hfd_fleet_create *in,
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
    return out->id.p != NULL ? HFD_OK : no_memory(err);
}

static hfd_rc mirror_create(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                            const struct hfd_fleet_create *in, struct hfd_fleet_row *out,
                            struct hfd_err *err)
{
    hfd_rc rc;

    HFD_ASSERT((in->kind == HFD_KIND_NODEPOOL) == (in->owner_id.len > 0));
    rc = hfd_mirror_row_new(call, in, out, err);
    if (rc == HFD_OK)
        rc = hfd_fleet_row_insert(tx, out, err);
    if (rc == HFD_CONFLICT)
        return hfd_fail_field(err, HFD_CONFLICT, "name", "This %s already exists",
                              hfd_kind_name(in->kind));
    return rc;
}

static hfd_rc mirror_patch(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                           const struct hfd_fleet_patch *in, struct hfd_fleet_row *out,
                           bool *pending, struct hfd_err *err)
{
    struct hfd_part_row part;
    bool differs;
    hfd_rc rc;

    rc = hfd_fleet_get(tx, in->kind, HFD_SLICE_NONE, in->id, call->mem, out, err);
    if (rc == HFD_OK)
        rc = hfd_part_row_by_fleet(tx, in->id, call->mem, &part, err);
    if (rc != HFD_OK)
        return rc;
    if (out->deleted_us != 0)
        return hfd_fail(err, HFD_DELETING, "%s '%.*s' is marked for deletion",
                        hfd_kind_name(in->kind), HFD_SLICE_FMT(in->id));
    differs = (in->spec.p != NULL && !hfd_slice_eq(in->spec, out->spec)) ||
              (in->labels.p != NULL && !hfd_slice_eq(in->labels, out->labels));
    *pending = part.pending || differs;
    if (!differs)
        return HFD_OK;
    out->spec = in->spec.p != NULL ? in->spec : out->spec;
    out->labels = in->labels.p != NULL ? in->labels : out->labels;
    out->updated_us = call->now_us;
    out->updated_by = call->caller;
    return hfd_fleet_row_update(tx, out, err);
}

/* It cannot be taken back: from here on a resource of the same name is another one. */
static hfd_rc mirror_remove(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                            enum hfd_kind kind, hfd_slice owner_id, hfd_slice id,
                            struct hfd_fleet_row *out, bool *gone, struct hfd_err *err)
{
    hfd_rc rc = hfd_fleet_get(tx, kind, HFD_SLICE_NONE, id, call->mem, out, err);

    (void)owner_id; /* of a remote that may not have it, and then there is no row of it */
    *gone = false;
    if (rc != HFD_OK || out->deleted_us != 0)
        return rc;
    out->deleted_us = call->now_us;
    out->deleted_by = call->caller;
    out->updated_us = call->now_us;
    out->updated_by = call->caller;
    return hfd_fleet_row_update(tx, out, err);
}

static hfd_rc mirror_seek(struct hfd_txn *tx, const struct hfd_fleet_call *call, enum hfd_kind kind,
                          struct hfd_fleet_row *out, struct hfd_err *err)
{
    const struct hfd_fleet_create in = {.kind = kind,
                                        .owner_id = HFD_SLICE(""),
                                        .spec = HFD_SLICE("{}"),
                                        .labels = HFD_SLICE("{}")};
    hfd_rc rc = hfd_mirror_row_new(call, &in, out, err);

    if (rc != HFD_OK)
        return rc;
    out->name = out->id;
    return hfd_fleet_row_insert(tx, out, err);
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

static hfd_rc mirror_schedule(struct hfd_txn *tx, hfd_slice guresid, enum hfd_backend_goal goal,
                              int64_t now_us, struct hfd_err *err)
{
    struct hfd_remote_row row;
    struct hfd_arena mem;
    bool waits;
    hfd_rc rc;

    hfd_arena_init(&mem, HFD_MIRROR_SCRATCH_MAX_BYTES);
    rc = hfd_remote_row_get(tx, guresid, &mem, &row, err);
    if (rc == HFD_NOT_FOUND) {
        row = (struct hfd_remote_row){.guresid = guresid};
        rc = HFD_OK;
    }
    if (rc == HFD_OK)
        rc = waits_for_owner(tx, guresid, &waits, err);
    if (rc == HFD_OK) {
        row.goal = (int)goal;
        row.watched = HFD_WATCHED_NOT;
        row.due_us = waits ? INT64_MAX : now_us;
        row.full_us = 0;
        row.tries = 0;
        row.refusals = 0;
        row.error = HFD_SLICE_NONE;
        rc = hfd_remote_row_put(tx, &row, err);
    }
    hfd_arena_fini(&mem);
    return rc;
}

static hfd_rc mirror_forget(struct hfd_txn *tx, hfd_slice guresid, int64_t now_us,
                            struct hfd_err *err)
{
    const struct hfd_remote_row row = {
        .guresid = guresid, .goal = HFD_GOAL_ABSENT, .due_us = INT64_MAX, .checked_us = now_us};
    hfd_rc rc = hfd_remote_row_drop_absent(tx, now_us - ABSENT_FOR_US, err);

    return rc == HFD_OK ? hfd_remote_row_put(tx, &row, err) : rc;
}

static hfd_rc mirror_absent(struct hfd_txn *tx, hfd_slice guresid, int64_t now_us, bool *yes,
                            struct hfd_err *err)
{
    struct hfd_remote_row row;
    struct hfd_arena mem;
    hfd_rc rc;

    hfd_arena_init(&mem, HFD_MIRROR_SCRATCH_MAX_BYTES);
    rc = hfd_remote_row_get(tx, guresid, &mem, &row, err);
    *yes = rc == HFD_OK && row.goal == HFD_GOAL_ABSENT && row.checked_us > now_us - ABSENT_FOR_US;
    hfd_arena_fini(&mem);
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

static hfd_rc mirror_trouble(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem,
                             hfd_slice *out, struct hfd_err *err)
{
    struct hfd_remote_row row;
    hfd_rc rc = hfd_remote_row_get(tx, guresid, mem, &row, err);

    *out = rc == HFD_OK ? row.error : HFD_SLICE("");
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

const struct hfd_backend hfd_backend_remote = {
    .deferred = true,
    .create = mirror_create,
    .patch = mirror_patch,
    .remove = mirror_remove,
    .seek = mirror_seek,
    .schedule = mirror_schedule,
    .forget = mirror_forget,
    .absent = mirror_absent,
    .trouble = mirror_trouble,
};
