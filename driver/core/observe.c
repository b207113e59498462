/* See observe.h. */
#include "driver/core/observe.h"

#include "driver/core/history.h"
#include "driver/core/past.h"
#include "driver/core/transition.h"
#include "store/rows_overview.h"

#define SCRATCH_MAX_BYTES ((size_t)128 * 1024 * 1024) /* to observe one resource */

static bool row_equal(const struct hfd_resource_row *a, const struct hfd_resource_row *b)
{
    return a->state == b->state && a->updated_us == b->updated_us &&
           hfd_slice_eq(a->output, b->output) && hfd_slice_eq(a->secrets, b->secrets) &&
           hfd_slice_eq(a->op_milestones, b->op_milestones) &&
           hfd_slice_eq(a->op_waits, b->op_waits) && hfd_slice_eq(a->cause, b->cause);
}

hfd_rc hfd_resource_forget(const struct hfd_ctx *c, const struct hfd_resource_row *row)
{
    const struct hfd_backend_subject s = hfd_ctx_subject(c, row->guresid);
    hfd_rc rc = hfd_history_end(c, row);

    if (rc == HFD_OK)
        rc = hfd_resource_row_delete(c->tx, row->guresid, c->err);
    return rc == HFD_OK ? hfd_backend_forget(c->driver->backend_ops, c->tx, &s, c->err) : rc;
}

/* Judges one resource anew. */
static hfd_rc observe_row(const struct hfd_ctx *c, struct hfd_resource_row *row)
{
    const struct hfd_resource_row before = *row;
    struct hfd_parts parts;
    hfd_rc rc;

    rc = hfd_parts_load(c, row->guresid, &parts);
    if (rc == HFD_OK)
        rc = hfd_judge_row(c, &parts, row);
    if (rc == HFD_OK)
        rc = hfd_past_follow(c, &parts, row);
    if (rc != HFD_OK || row_equal(row, &before))
        return rc;
    return row->state == HFD_STATE_ABSENT ? hfd_resource_forget(c, row)
                                          : hfd_resource_row_put(c->tx, row, c->err);
}

/*
 * The resource that a change belongs to; empty = none. A part that was leaving is no part any more
 * once it is removed.
 */
static hfd_rc find_owner(const struct hfd_ctx *c, const struct hfd_fleet_change *change,
                         hfd_slice *guresid)
{
    struct hfd_part_row part;
    hfd_rc rc = hfd_part_row_by_fleet(c->tx, change->id, c->mem, &part, c->err);

    *guresid = HFD_SLICE("");
    if (rc != HFD_OK)
        return rc == HFD_NOT_FOUND ? HFD_OK : rc;
    *guresid = part.guresid;
    return change->removed && part.leaving
               ? hfd_part_row_delete(c->tx, part.guresid, part.fleet_id, c->err)
               : HFD_OK;
}

/* One of the changes, and the resource that it belongs to. */
struct affected {
    const struct hfd_fleet_change *change;
    hfd_slice guresid; /* empty = none */
};

/*
 * Only a ready resource needs no reports without news. The state of any other depends on the time
 * as well, by its deadline.
 */
static hfd_rc observe_one(const struct hfd_ctx *c, const struct affected *a)
{
    const struct hfd_fleet_call call = hfd_ctx_fleet_call(c, HFD_SLICE_NONE);
    struct hfd_resource_row row;
    bool idle = false;
    hfd_rc rc = HFD_NOT_FOUND;

    if (a->guresid.len > 0)
        rc = hfd_resource_row_get(c->tx, a->guresid, c->mem, &row, c->err);
    if (rc == HFD_OK && row.state != HFD_STATE_FAILED) {
        rc = observe_row(c, &row);
        idle = row.state == HFD_STATE_READY;
    }
    if (rc != HFD_OK && rc != HFD_NOT_FOUND)
        return rc;
    return a->change->reported ? hfd_fleet_set_observer_idle(c->tx, &call, a->change, idle, c->err)
                               : HFD_OK;
}

/* Many changes may be of resources that together take more memory than a request has. */
static hfd_rc observe_apart(const struct hfd_ctx *c, const struct affected *a)
{
    struct hfd_ctx own = *c;
    struct hfd_arena scratch;
    hfd_rc rc;

    hfd_arena_init(&scratch, SCRATCH_MAX_BYTES);
    own.mem = &scratch;
    rc = observe_one(&own, a);
    hfd_arena_fini(&scratch);
    return rc;
}

static bool is_last_of_its_resource(const struct affected *all, size_t count, size_t at)
{
    for (size_t i = at + 1; i < count; i++)
        if (all[at].guresid.len > 0 && hfd_slice_eq(all[i].guresid, all[at].guresid))
            return false;
    return true;
}

hfd_rc hfd_resource_observe_others(const struct hfd_ctx *c, hfd_slice guresid)
{
    const struct hfd_fleet_changes *changes = c->changes;
    struct affected *all;
    size_t count = 0;
    hfd_rc rc = HFD_OK;

    if (changes == NULL || changes->count == 0)
        return HFD_OK;
    all = hfd_arena_array(c->mem, changes->count, sizeof(*all));
    if (all == NULL)
        return hfd_fail_nomem(c->err, "observe changes in HyperFleet");
    for (size_t i = 0; rc == HFD_OK && i < changes->count; i++) {
        all[count].change = &changes->items[i];
        rc = find_owner(c, all[count].change, &all[count].guresid);
        if (guresid.len == 0 || !hfd_slice_eq(all[count].guresid, guresid))
            count++;
    }
    for (size_t i = 0; rc == HFD_OK && i < count; i++)
        if (is_last_of_its_resource(all, count, i))
            rc = count == 1 ? observe_one(c, &all[i]) : observe_apart(c, &all[i]);
    return rc;
}

hfd_rc hfd_resource_observe(struct hfd_txn *tx, const struct hfd_driver *d,
                            const struct hfd_fleet_call *call, struct hfd_err *err)
{
    const struct hfd_ctx c = {.tx = tx,
                              .driver = d,
                              .now_us = call->now_us,
                              .mem = call->mem,
                              .err = err,
                              .changes = call->changes};

    return hfd_resource_observe_others(&c, HFD_SLICE_NONE);
}

hfd_rc hfd_resource_on_changes(void *observer, struct hfd_txn *tx,
                               const struct hfd_fleet_call *call, struct hfd_err *err)
{
    return hfd_resource_observe(tx, observer, call, err);
}

/* The move that a refusal asks for. An operation that is late has failed by that before. */
static hfd_rc refusal_move(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                           const struct hfd_refusal *why, struct hfd_move *move, bool *moves)
{
    hfd_rc rc = hfd_judge_late(c, row, move, moves);

    if (rc != HFD_OK || *moves)
        return rc;
    *move = (struct hfd_move){.to = HFD_STATE_FAILED,
                              .at_us = c->now_us,
                              .code = why->code,
                              .message = why->message,
                              .cause = HFD_SLICE("hyperfleet Refused")};
    *moves = hfd_resource_in_progress(row) || row->state == HFD_STATE_DELETING;
    return HFD_OK;
}

hfd_rc hfd_resource_on_refused(void *observer, struct hfd_txn *tx,
                               const struct hfd_fleet_call *call, const struct hfd_refusal *why,
                               struct hfd_err *err)
{
    const struct hfd_ctx c = {
        .tx = tx, .driver = observer, .now_us = call->now_us, .mem = call->mem, .err = err};
    struct hfd_resource_row row;
    struct hfd_parts parts;
    struct hfd_move move;
    bool moves = false;
    hfd_rc rc = hfd_resource_row_get(tx, why->guresid, c.mem, &row, err);

    if (rc == HFD_NOT_FOUND)
        return HFD_OK;
    if (rc == HFD_OK)
        rc = refusal_move(&c, &row, why, &move, &moves);
    if (rc != HFD_OK || !moves)
        return rc;
    rc = hfd_parts_load(&c, row.guresid, &parts);
    if (rc != HFD_OK)
        return rc;
    move.main = hfd_parts_main(&parts);
    if (row.state == HFD_STATE_DELETING)
        row.op_deadline_us = HFD_REFUSAL_UNANSWERED_US;
    rc = hfd_resource_move(&c, &row, &move);
    if (rc == HFD_OK)
        rc = hfd_past_follow(&c, &parts, &row);
    return rc == HFD_OK ? hfd_resource_row_put(tx, &row, err) : rc;
}

hfd_rc hfd_resource_on_trouble(void *observer, struct hfd_txn *tx,
                               const struct hfd_fleet_call *call, hfd_slice guresid,
                               struct hfd_err *err)
{
    const struct hfd_ctx c = {
        .tx = tx, .driver = observer, .now_us = call->now_us, .mem = call->mem, .err = err};
    struct hfd_resource_row row;
    struct hfd_parts parts;
    hfd_slice before;
    hfd_rc rc = hfd_resource_row_get(tx, guresid, c.mem, &row, err);

    if (rc == HFD_NOT_FOUND ||
        (rc == HFD_OK && !hfd_resource_in_progress(&row) && row.state != HFD_STATE_DELETING))
        return HFD_OK;
    before = row.op_waits;
    if (rc == HFD_OK)
        rc = hfd_parts_load(&c, guresid, &parts);
    if (rc == HFD_OK)
        rc = hfd_judge_waits(&c, &parts, &row);
    return rc == HFD_OK && !hfd_slice_eq(before, row.op_waits) ? hfd_resource_row_put(tx, &row, err)
                                                               : rc;
}

/* ---- deadlines ---- */

static hfd_rc settle_one(const struct hfd_ctx *c, hfd_slice guresid, size_t *count)
{
    struct hfd_resource_row row;
    struct hfd_parts parts;
    struct hfd_move late;
    bool is_late = false;
    hfd_rc rc = hfd_resource_row_get(c->tx, guresid, c->mem, &row, c->err);

    if (rc == HFD_OK)
        rc = hfd_judge_late(c, &row, &late, &is_late);
    if (rc != HFD_OK || !is_late)
        return rc;
    rc = hfd_parts_load(c, guresid, &parts);
    if (rc != HFD_OK)
        return rc;
    late.main = hfd_parts_main(&parts);
    rc = hfd_resource_move(c, &row, &late);
    if (rc == HFD_OK)
        rc = hfd_past_follow(c, &parts, &row);
    if (rc == HFD_OK)
        rc = hfd_resource_row_put(c->tx, &row, c->err);
    *count += rc == HFD_OK;
    return rc;
}

/* Each in memory of its own: the parts of many are large. */
static hfd_rc settle_apart(const struct hfd_ctx *c, hfd_slice guresid, size_t *count)
{
    struct hfd_ctx own = *c;
    struct hfd_arena scratch;
    hfd_rc rc;

    hfd_arena_init(&scratch, SCRATCH_MAX_BYTES);
    own.mem = &scratch;
    rc = settle_one(&own, guresid, count);
    hfd_arena_fini(&scratch);
    return rc;
}

hfd_rc hfd_resource_settle_due(const struct hfd_ctx *c, struct hfd_settled *out)
{
    const struct hfd_due_query query = {.after_us = INT64_MIN, .limit = HFD_SETTLE_MAX};
    struct hfd_due_list due;
    hfd_rc rc = hfd_due_row_list(c->tx, &query, c->mem, &due, c->err);

    *out = (struct hfd_settled){.next_us = INT64_MAX};
    for (size_t i = 0; rc == HFD_OK && i < due.count; i++)
        if (due.rows[i].deadline_us <= c->now_us)
            rc = settle_apart(c, due.rows[i].guresid, &out->count);
        else if (due.rows[i].deadline_us < out->next_us)
            out->next_us = due.rows[i].deadline_us;
    return rc;
}
