/* See judge.h. */
#include "driver/core/judge.h"

#include "driver/base/check.h"
#include "driver/core/output.h"
#include "driver/core/waiting.h"
#include "driver/core/words.h"

/* @param trouble  whether the backend is asked what keeps the operation from being carried out */
static hfd_rc input_of(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                       const struct hfd_parts *parts, bool trouble, struct hfd_outcome_input *in)
{
    const struct hfd_driver *d = c->driver;
    const struct hfd_backend_subject subject = hfd_ctx_subject(c, row->guresid);
    struct hfd_part_view *views = hfd_arena_array(c->mem, parts->count + 1, sizeof(*views));

    *in = (struct hfd_outcome_input){
        .guresid = row->guresid,
        .cluster_id = hfd_backend_id_is_given(row->cluster_id) ? row->cluster_id : HFD_SLICE_NONE,
        .parts = views,
        .part_count = parts->count,
        .terminal_reasons = d->terminal_reasons,
        .terminal_reason_count = d->terminal_reason_count,
        .judge = d->actor != NULL ? d->actor->judge : HFD_SLICE_NONE,
        .required = d->fleet.required,
        .observers = d->fleet.observers,
        .state = (enum hfd_state)row->state,
        .deadline_us = row->op_deadline_us,
        .now_us = c->now_us,
    };
    if (views == NULL)
        return hfd_fail_nomem(c->err, "judge a resource");
    for (size_t i = 0; i < parts->count; i++)
        views[i] = parts->items[i].view;
    return trouble ? hfd_backend_trouble(d->backend_ops, c->tx, &subject, &in->trouble, c->err)
                   : HFD_OK;
}

static hfd_rc outcome_of(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                         const struct hfd_parts *parts, struct hfd_outcome *out)
{
    struct hfd_outcome_input in;
    const hfd_rc rc = input_of(c, row, parts, hfd_resource_overdue(row, c->now_us), &in);

    if (rc != HFD_OK)
        return rc;
    return hfd_outcome_judge(&in, c->mem, out) == HFD_OK
               ? HFD_OK
               : hfd_fail_nomem(c->err, "judge a resource");
}

hfd_rc hfd_judge_waits(const struct hfd_ctx *c, const struct hfd_parts *parts,
                       struct hfd_resource_row *row)
{
    struct hfd_outcome_input in;
    hfd_rc rc;

    row->op_waits = HFD_SLICE_NONE;
    if (!hfd_resource_in_progress(row) && row->state != HFD_STATE_DELETING)
        return HFD_OK;
    rc = input_of(c, row, parts, true, &in);
    if (rc != HFD_OK)
        return rc;
    in.usual = row->op_usual;
    return hfd_waiting_say(&in, row->op_started_us, c->mem, &row->op_waits) == HFD_OK
               ? HFD_OK
               : hfd_fail_nomem(c->err, "say what is waited for");
}

hfd_rc hfd_judge_outcome(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                         const struct hfd_parts *parts, struct hfd_outcome *out)
{
    struct hfd_parts own;
    hfd_rc rc;

    if (parts != NULL)
        return outcome_of(c, row, parts, out);
    rc = hfd_parts_load(c, row->guresid, &own);
    return rc == HFD_OK ? outcome_of(c, row, &own, out) : rc;
}

/*
 * The move that an outcome asks for. An operation that missed its deadline failed at its deadline,
 * so that is the time of the move, and not the time of this call.
 */
static struct hfd_move move_to(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                               const struct hfd_outcome *o)
{
    const bool late = hfd_resource_in_progress(row) && hfd_resource_overdue(row, c->now_us);

    return (struct hfd_move){
        .to = o->state,
        .at_us = late ? row->op_deadline_us : c->now_us,
        .code = o->state == HFD_STATE_FAILED ? o->code : NULL,
        .message = o->message,
    };
}

hfd_rc hfd_judge_late(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                      struct hfd_move *late, bool *is_late)
{
    struct hfd_outcome o;
    hfd_rc rc;

    *is_late = false;
    if (!hfd_resource_in_progress(row) || !hfd_resource_overdue(row, c->now_us))
        return HFD_OK;
    rc = hfd_judge_outcome(c, row, NULL, &o);
    if (rc != HFD_OK || (int)o.state == row->state)
        return rc;
    *late = move_to(c, row, &o);
    *is_late = true;
    return HFD_OK;
}

/*
 * The output of a resource that is ready. Adapters' data may give more than an output can have.
 * Then an operation fails, and a resource that was ready before keeps its output.
 */
static hfd_rc build_output(const struct hfd_ctx *c, const struct hfd_parts *parts,
                           const struct hfd_outcome *o, struct hfd_resource_row *row,
                           struct hfd_move *move)
{
    const hfd_slice output = row->output, secrets = row->secrets;
    struct hfd_err why;
    struct hfd_ctx own = *c;
    hfd_rc rc;

    own.err = &why;
    rc = hfd_output_build(&own, parts, o, row);
    if (rc == HFD_OK)
        return rc;
    if (rc != HFD_LIMIT)
        return hfd_fail(c->err, rc, "%s", why.msg);
    row->output = output;
    row->secrets = secrets;
    if (row->state == HFD_STATE_READY)
        return HFD_OK;
    move->to = HFD_STATE_FAILED;
    move->code = "RES-107";
    move->message = hfd_words_output_too_large(row->guresid, why.msg, c->mem);
    return move->message.p != NULL ? HFD_OK : hfd_fail_nomem(c->err, "build an output");
}

hfd_rc hfd_judge_row(const struct hfd_ctx *c, const struct hfd_parts *parts,
                     struct hfd_resource_row *row)
{
    struct hfd_outcome o;
    struct hfd_move move;
    hfd_rc rc;

    if (HFD_NEVER(parts->count == 0 && row->state != HFD_STATE_DELETING))
        return hfd_fail(c->err, HFD_CORRUPT, "resource %.*s has no parts",
                        HFD_SLICE_FMT(row->guresid));
    rc = hfd_judge_outcome(c, row, parts, &o);
    if (rc != HFD_OK)
        return rc;
    move = move_to(c, row, &o);
    move.main = hfd_parts_main(parts);
    if (move.to == HFD_STATE_READY)
        rc = build_output(c, parts, &o, row, &move);
    if (rc == HFD_OK && (int)move.to != row->state)
        rc = hfd_resource_move(c, row, &move);
    if (rc == HFD_OK)
        rc = hfd_judge_waits(c, parts, row);
    return rc == HFD_OK && row->state == HFD_STATE_READY
               ? hfd_resource_note_health(c, &o, move.main, row)
               : rc;
}
