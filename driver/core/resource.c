/*
 * The driver contract as transaction functions. See resource.h; the tables are in life.c, the
 * judgement in outcome.c.
 *
 * A row is "settled" when its deadline has been taken into account: reads settle a copy, writes
 * store it. So an operation fails at its deadline whether or not anything happens then.
 */
#include "driver/core/resource.h"

#include "driver/base/check.h"
#include "driver/core/history.h"
#include "driver/core/mark.h"
#include "driver/core/parts.h"
#include "driver/core/past.h"
#include "store/rows_fleet.h"
#include "store/rows_resource.h"
#include "store/rows_part.h"

#define INCARNATION_BYTES 8

static const char *const op_status[HFD_OP_COUNT] = {"creating", "updating", "deleting"};

static hfd_rc no_memory(struct hfd_err *err)
{
    return hfd_fail(err, HFD_NOMEM, "out of memory in the driver contract");
}

/* ---- judging ---- */

static bool in_progress(const struct hfd_resource_row *row)
{
    return row->state == HFD_STATE_CREATING || row->state == HFD_STATE_UPDATING;
}

static bool overdue(const struct hfd_resource_row *row, int64_t now_us)
{
    return now_us >= row->op_deadline_us;
}

/* What a row's parts and its operation mean now. */
static hfd_rc outcome(struct hfd_txn *tx, const struct hfd_driver *d,
                      const struct hfd_resource_row *row, const struct hfd_parts *parts,
                      int64_t now_us, struct hfd_arena *mem, struct hfd_outcome *out,
                      struct hfd_err *err)
{
    struct hfd_part_view *views = hfd_arena_array(mem, parts->count + 1, sizeof(*views));
    struct hfd_outcome_input in = {
        .guresid = row->guresid,
        .cluster_id = hfd_backend_id_is_given(row->cluster_id) ? row->cluster_id : HFD_SLICE_NONE,
        .parts = views,
        .part_count = parts->count,
        .terminal_reasons = d->terminal_reasons,
        .terminal_reason_count = d->terminal_reason_count,
        .required = d->fleet.required,
        .state = (enum hfd_state)row->state,
        .deadline_us = row->op_deadline_us,
        .now_us = now_us,
    };

    if (views == NULL)
        return no_memory(err);
    for (size_t i = 0; i < parts->count; i++)
        views[i] = parts->items[i].view;
    if (overdue(row, now_us)) {
        const hfd_rc rc = d->backend_ops->trouble(tx, row->guresid, mem, &in.trouble, err);

        if (rc != HFD_OK)
            return rc;
    }
    return hfd_outcome_judge(&in, mem, out) == HFD_OK ? HFD_OK : no_memory(err);
}

/*
 * Takes over where an outcome leads a row; its output is another matter. What is late was so from
 * the deadline on, whoever asks when.
 */
static void take_outcome(const struct hfd_outcome *o, int64_t now_us, struct hfd_resource_row *row)
{
    if ((int)o->state == row->state)
        return;
    row->updated_us = in_progress(row) && overdue(row, now_us) ? row->op_deadline_us : now_us;
    row->state = (int)o->state;
    if (o->code != NULL) {
        row->fail_code = hfd_slice_of(o->code);
        row->fail_message = o->message;
    }
}

/* The outcome of a row whose parts are not at hand. */
static hfd_rc load_outcome(struct hfd_txn *tx, const struct hfd_driver *d,
                           const struct hfd_resource_row *row, int64_t now_us,
                           struct hfd_arena *mem, struct hfd_outcome *out, struct hfd_err *err)
{
    struct hfd_parts parts;
    hfd_rc rc;

    rc = hfd_parts_load(tx, row->guresid, mem, &parts, err);
    return rc == HFD_OK ? outcome(tx, d, row, &parts, now_us, mem, out, err) : rc;
}

/* Takes a passed deadline into account. */
static hfd_rc settle(struct hfd_txn *tx, const struct hfd_driver *d, int64_t now_us,
                     struct hfd_arena *mem, struct hfd_resource_row *row, struct hfd_err *err)
{
    struct hfd_outcome o;
    hfd_rc rc;

    if (!in_progress(row) || !overdue(row, now_us))
        return HFD_OK;
    rc = load_outcome(tx, d, row, now_us, mem, &o, err);
    if (rc == HFD_OK)
        take_outcome(&o, now_us, row);
    return rc;
}

/* Of the cluster, or of a nodepool resource's nodepool; 0 = there is none. */
static int64_t generation_of(const struct hfd_parts *parts)
{
    return parts->count > 0 ? parts->items[0].view.generation : 0;
}

/*
 * The output of a ready row. Where adapters' data give more than an output may have, nobody is to
 * blame but the settings together with all of them: an operation ends with that, and what was ready
 * before keeps the output that it has.
 */
static hfd_rc build_output(struct hfd_txn *tx, const struct hfd_driver *d,
                           const struct hfd_parts *parts, const struct hfd_outcome *o,
                           const struct hfd_resource_row *before, struct hfd_arena *mem,
                           struct hfd_resource_row *row, struct hfd_err *err)
{
    struct hfd_err why;
    hfd_rc rc = hfd_output_build(tx, d, parts, o, mem, row, &why);

    if (rc == HFD_OK)
        return rc;
    if (rc != HFD_LIMIT)
        return hfd_fail(err, rc, "%s", why.msg);
    row->output = before->output;
    row->secrets = before->secrets;
    if (before->state == HFD_STATE_READY)
        return HFD_OK;
    row->state = HFD_STATE_FAILED;
    row->fail_code = HFD_SLICE("RES-107");
    row->fail_message = hfd_arena_printf(mem,
                                         "Resource %.*s is ready, but %s: let driver.outputs take "
                                         "less, or the adapters report less. "
                                         "Then deploy again, or delete the resource.",
                                         HFD_SLICE_FMT(row->guresid), why.msg);
    return row->fail_message.p != NULL ? HFD_OK : no_memory(err);
}

/*
 * Moves a row to what its parts say, with its history; a resource that is ready afterwards has its
 * output. The row is not written.
 */
static hfd_rc judge(struct hfd_txn *tx, const struct hfd_driver *d, const struct hfd_parts *parts,
                    int64_t now_us, struct hfd_arena *mem, struct hfd_resource_row *row,
                    struct hfd_err *err)
{
    const struct hfd_resource_row before = *row;
    struct hfd_outcome o;
    hfd_rc rc;

    if (HFD_NEVER(parts->count == 0 && row->state != HFD_STATE_DELETING))
        return hfd_fail(err, HFD_CORRUPT, "resource %.*s has no parts",
                        HFD_SLICE_FMT(row->guresid));
    rc = outcome(tx, d, row, parts, now_us, mem, &o, err);
    if (rc != HFD_OK)
        return rc;
    take_outcome(&o, now_us, row);
    if (row->state == HFD_STATE_READY)
        rc = build_output(tx, d, parts, &o, &before, mem, row, err);
    if (rc == HFD_OK && row->state != before.state)
        rc = hfd_history_moved(tx, (enum hfd_state)before.state, row, generation_of(parts), err);
    return rc == HFD_OK && row->state == HFD_STATE_READY
               ? hfd_history_health(tx, &o, generation_of(parts), now_us, mem, row, err)
               : rc;
}

/* ---- the observer ---- */

static bool row_equal(const struct hfd_resource_row *a, const struct hfd_resource_row *b)
{
    return a->state == b->state && a->updated_us == b->updated_us &&
           hfd_slice_eq(a->output, b->output) && hfd_slice_eq(a->secrets, b->secrets) &&
           hfd_slice_eq(a->op_milestones, b->op_milestones);
}

static bool any_exists(const struct hfd_parts *parts)
{
    for (size_t i = 0; i < parts->count; i++)
        if (parts->items[i].view.exists)
            return true;
    return false;
}

/* The row has left its last state: now it goes. */
static hfd_rc forget(struct hfd_txn *tx, const struct hfd_driver *d,
                     const struct hfd_resource_row *row, int64_t now_us, struct hfd_err *err)
{
    hfd_rc rc = hfd_resource_row_delete(tx, row->guresid, err);

    return rc == HFD_OK ? d->backend_ops->forget(tx, row->guresid, now_us, err) : rc;
}

/*
 * The resource that a cluster or nodepool is a part of. HFD_NOT_FOUND: of none, of the one being
 * written, or of one just being made.
 */
static hfd_rc find_owner(const struct hfd_watch *watch, struct hfd_txn *tx, hfd_slice fleet_id,
                         struct hfd_arena *mem, struct hfd_part_row *part,
                         struct hfd_resource_row *row, struct hfd_err *err)
{
    hfd_rc rc = hfd_part_row_by_fleet(tx, fleet_id, mem, part, err);

    if (rc == HFD_OK && hfd_slice_eq(part->guresid, watch->except))
        return HFD_NOT_FOUND;
    return rc == HFD_OK ? hfd_resource_row_get(tx, part->guresid, mem, row, err) : rc;
}

/*
 * hfd_fleet.on_change: a cluster or nodepool changed or went; what does that mean for the resource
 * that made it?
 */
static hfd_rc observe(void *ctx, struct hfd_txn *tx, struct hfd_fleet_event *event,
                      struct hfd_arena *mem, struct hfd_err *err)
{
    const struct hfd_watch *watch = ctx;
    const struct hfd_driver *d = watch->driver;
    struct hfd_resource_row row, before;
    struct hfd_part_row part;
    struct hfd_parts parts;
    hfd_rc rc;

    rc = find_owner(watch, tx, event->row->id, mem, &part, &row, err);
    if (rc == HFD_NOT_FOUND)
        return HFD_OK;
    if (rc == HFD_OK && event->what == HFD_FLEET_REMOVED && part.leaving)
        rc = hfd_part_row_delete(tx, part.guresid, part.fleet_id, err);
    if (rc != HFD_OK || row.state == HFD_STATE_FAILED)
        return rc;
    before = row;
    rc = hfd_parts_load(tx, row.guresid, mem, &parts, err);
    if (rc == HFD_OK)
        rc = judge(tx, d, &parts, event->now_us, mem, &row, err);
    if (rc == HFD_OK)
        rc = hfd_past_follow(tx, d, &parts, event->now_us, mem, &row, err);
    /* What is in progress depends on the time as well, by its deadline. */
    event->steady = row.state == HFD_STATE_READY;
    if (rc != HFD_OK || row_equal(&row, &before))
        return rc;
    if (row.state == HFD_STATE_ABSENT)
        return forget(tx, d, &row, event->now_us, err);
    return hfd_resource_row_put(tx, &row, err);
}

hfd_rc hfd_resource_refused(void *driver, struct hfd_txn *tx, hfd_slice guresid, const char *code,
                            hfd_slice message, int64_t now_us, struct hfd_arena *mem,
                            struct hfd_err *err)
{
    const struct hfd_driver *d = driver;
    struct hfd_resource_row row;
    struct hfd_parts parts;
    enum hfd_state from;
    hfd_rc rc = hfd_resource_row_get(tx, guresid, mem, &row, err);

    if (rc == HFD_NOT_FOUND)
        return HFD_OK;
    from = (enum hfd_state)row.state;
    if (rc == HFD_OK)
        rc = settle(tx, d, now_us, mem, &row, err);
    if (rc == HFD_OK && (in_progress(&row) || row.state == HFD_STATE_DELETING)) {
        row.state = HFD_STATE_FAILED;
        row.fail_code = hfd_slice_of(code);
        row.fail_message = message;
        row.updated_us = now_us;
    }
    if (rc != HFD_OK || row.state == (int)from)
        return rc;
    rc = hfd_parts_load(tx, guresid, mem, &parts, err);
    if (rc == HFD_OK)
        rc = hfd_history_moved(tx, from, &row, generation_of(&parts), err);
    if (rc == HFD_OK)
        rc = hfd_past_follow(tx, d, &parts, now_us, mem, &row, err);
    return rc == HFD_OK ? hfd_resource_row_put(tx, &row, err) : rc;
}

void hfd_driver_attach(struct hfd_driver *d)
{
    d->fleet.on_change = observe;
    d->fleet.mark = hfd_driver_mark(d);
    d->watch = (struct hfd_watch){.driver = d};
    d->fleet.on_change_ctx = &d->watch;
    d->fleet.seal = hfd_output_seal_report;
    d->fleet.seal_ctx = d;
    if (d->backend_ops == NULL)
        d->backend_ops = &hfd_backend_embedded;
}

/* ---- answers ---- */

static enum hfd_op op_of(const struct hfd_resource_row *row)
{
    if (row->state == HFD_STATE_DELETING)
        return HFD_OP_DELETE;
    return row->state == HFD_STATE_UPDATING ? HFD_OP_UPDATE : HFD_OP_CREATE;
}

static void set_op(const struct hfd_driver *d, enum hfd_op op, int64_t now_us,
                   struct hfd_resource_row *row)
{
    static const enum hfd_state to[HFD_OP_COUNT] = {HFD_STATE_CREATING, HFD_STATE_UPDATING,
                                                    HFD_STATE_DELETING};

    row->state = (int)to[op];
    row->op = (int)op;
    row->op_started_us = now_us;
    row->op_estimate_us = now_us + d->estimate_us[row->kind][op];
    row->op_deadline_us = now_us + d->deadline_us[row->kind][op];
    row->fail_code = row->fail_message = HFD_SLICE_NONE;
    row->updated_us = now_us;
}

/* Moves a row into a new operation on these parts. */
static hfd_rc start_op(struct hfd_txn *tx, const struct hfd_call *call, enum hfd_op op,
                       const struct hfd_parts *parts, struct hfd_resource_row *row,
                       struct hfd_err *err)
{
    hfd_rc rc = hfd_past_leave(tx, call->now_us, row, err);

    if (rc != HFD_OK)
        return rc;
    set_op(call->driver, op, call->now_us, row);
    return hfd_past_begin(tx, call->driver, parts, call->mem, row, err);
}

/* A late deletion goes on: what is unfinished is told, and not kept. */
static hfd_rc answer_late(struct hfd_txn *tx, const struct hfd_call *call,
                          const struct hfd_resource_row *row, struct hfd_answer_doc *out,
                          struct hfd_err *err)
{
    struct hfd_outcome o;
    hfd_rc rc;

    rc = load_outcome(tx, call->driver, row, call->now_us, call->mem, &o, err);
    if (rc != HFD_OK || HFD_NEVER(o.code == NULL))
        return rc;
    out->error = hfd_slice_of(o.code);
    out->message = o.message;
    return HFD_OK;
}

static struct hfd_hint hint_of(const struct hfd_resource_row *row, int64_t now_us)
{
    return hfd_hint_make(&(struct hfd_hint_input){
        .status = op_status[op_of(row)],
        .started_us = row->op_started_us,
        .estimate_us = row->op_estimate_us,
        .deadline_us = row->op_deadline_us,
        .now_us = now_us,
        .plan = row->op_plan,
    });
}

/* The answer that a settled row gives, in the row's words. */
static hfd_rc answer(struct hfd_txn *tx, const struct hfd_call *call,
                     const struct hfd_resource_row *row, struct hfd_answer_doc *out,
                     struct hfd_err *err)
{
    const bool late = row->state == HFD_STATE_DELETING && overdue(row, call->now_us);

    out->decided = true;
    out->answer = hfd_life_get((enum hfd_state)row->state, late);
    switch (out->answer) {
    case HFD_ANSWER_OUTPUT:
        out->type = row->type;
        out->values = row->output;
        return hfd_output_secrets(call->driver, row, call->mem, &out->secrets, err);
    case HFD_ANSWER_FAILED:
        out->error = row->fail_code;
        out->message = row->fail_message;
        return late ? answer_late(tx, call, row, out, err) : HFD_OK;
    case HFD_ANSWER_HINT:
    case HFD_ANSWER_BUSY:
        out->hint = hint_of(row, call->now_us);
        return HFD_OK;
    case HFD_ANSWER_ABSENT:
        return HFD_OK;
    }
    return hfd_fail(err, HFD_CORRUPT, "resource %.*s is in no known state",
                    HFD_SLICE_FMT(row->guresid));
}

/* As answer, for PUT: with the cookie on 200, 202 and 409. */
static hfd_rc answer_put(struct hfd_txn *tx, const struct hfd_call *call,
                         const struct hfd_resource_row *row, bool conflict,
                         struct hfd_answer_doc *out, struct hfd_err *err)
{
    hfd_rc rc;

    if (conflict) {
        /*
         * A deletion past its deadline is still what stands in the way: say so with a hint, not
         * with its error.
         */
        out->hint = hint_of(row, call->now_us);
        out->answer = HFD_ANSWER_BUSY;
        out->decided = true;
        rc = HFD_OK;
    } else {
        rc = answer(tx, call, row, out, err);
    }
    out->has_cookie = rc == HFD_OK && out->answer != HFD_ANSWER_FAILED;
    out->cookie = row->cookie;
    return rc;
}

/* ---- reading ---- */

/* What stands behind a call. */
struct found {
    bool is;                     /* whether there is a row */
    struct hfd_resource_row row; /* settled */
    enum hfd_state stored;       /* its state before that */
    struct hfd_cookie cookie;    /* what the caller's says, where it is not just the row's own */
};

/*
 * Finds the row behind a call. A cookie must open even where it is not needed: a forged one is
 * refused on every method. One of an earlier incarnation counts as none.
 */
static hfd_rc load(struct hfd_txn *tx, const struct hfd_call *call, struct found *f,
                   struct hfd_err *err)
{
    struct hfd_resource_row *row = &f->row;
    hfd_rc rc;

    *f = (struct found){.is = false};
    rc = hfd_resource_row_recent(tx, call->guresid, call->mem, row, err);
    /*
     * Past its deadline the answer names the parts as well: then the row must be of the same
     * snapshot.
     */
    if (rc == HFD_OK && (in_progress(row) || row->state == HFD_STATE_DELETING) &&
        overdue(row, call->now_us))
        rc = hfd_resource_row_get(tx, call->guresid, call->mem, row, err);
    if (rc != HFD_OK && rc != HFD_NOT_FOUND)
        return rc;
    f->is = rc == HFD_OK;
    f->stored = (enum hfd_state)row->state;
    /* The bytes that we gave out ourselves need no opening: this is the polling path. */
    if (call->cookie.len > 0 && !(f->is && hfd_slice_eq(call->cookie, row->cookie))) {
        rc = hfd_cookie_open(call->driver->ring, call->guresid, call->cookie, call->mem, &f->cookie,
                             err);
        if (rc != HFD_OK)
            return rc;
        /* Ids of another HyperFleet are none here. */
        if (!hfd_slice_eq(f->cookie.backend, call->driver->backend)) {
            f->cookie.cluster_id = HFD_SLICE_NONE;
            f->cookie.nodepool_count = 0;
        }
    }
    return f->is ? settle(tx, call->driver, call->now_us, call->mem, row, err) : HFD_OK;
}

/* A writer is about to move a row on: that it was late stands in its history first. */
static hfd_rc note_late(struct hfd_txn *tx, const struct found *f, struct hfd_err *err)
{
    return (int)f->stored != f->row.state ? hfd_history_moved(tx, f->stored, &f->row, 0, err)
                                          : HFD_OK;
}

/* The id in HyperFleet that a cookie's resource stands and falls with; empty = none. */
static hfd_slice main_id(const struct hfd_cookie *c)
{
    if (c->kind == HFD_KIND_CLUSTER)
        return c->cluster_id;
    return c->nodepool_count > 0 ? c->nodepool_ids[0] : HFD_SLICE_NONE;
}

static bool other_kind(const struct hfd_call *call, const struct hfd_resource_row *row)
{
    return call->only != 0 && (int)row->kind != call->only;
}

/* 204 would have the orchestrator forget, with its cookie, what is still there. */
static hfd_rc refuse_door(const struct hfd_resource_row *row, struct hfd_err *err)
{
    const bool cluster = row->kind == HFD_KIND_CLUSTER;

    return hfd_fail_field(err, HFD_INVALID, "GUResID",
                          "this path is that of %ss, and the resource is a %s: nothing was "
                          "deleted. Register the driver of type '%.*s' "
                          "with the path of %ss",
                          cluster ? "nodepool" : "cluster", cluster ? "cluster" : "nodepool",
                          HFD_SLICE_FMT(row->type), cluster ? "cluster" : "nodepool");
}

/*
 * Whether a cookie without a row names what HyperFleet still has; a remote one has to be asked,
 * unless it is known to have nothing, and is asked for the label, which needs no id.
 */
static hfd_rc is_restorable(struct hfd_txn *tx, const struct hfd_call *call, const struct found *f,
                            bool *yes, struct hfd_err *err)
{
    const struct hfd_backend *ops = call->driver->backend_ops;
    const hfd_slice id = main_id(&f->cookie);
    bool absent;
    hfd_rc rc;

    *yes = false;
    if (f->is || f->cookie.type.len == 0 || (call->only != 0 && call->only != (int)f->cookie.kind))
        return HFD_OK;
    if (ops->deferred) {
        rc = ops->absent(tx, call->guresid, call->now_us, &absent, err);
        *yes = rc == HFD_OK && !absent;
        return rc;
    }
    if (id.len == 0)
        return HFD_OK;
    return hfd_parts_is_orphan(tx, call, f->cookie.kind, id, yes, err);
}

hfd_rc hfd_resource_get(struct hfd_txn *tx, const struct hfd_call *call, struct hfd_answer_doc *out,
                        struct hfd_err *err)
{
    struct found f;
    bool restorable;
    hfd_rc rc;

    *out = (struct hfd_answer_doc){.answer = HFD_ANSWER_ABSENT, .decided = true};
    rc = load(tx, call, &f, err);
    if (rc == HFD_OK)
        rc = is_restorable(tx, call, &f, &restorable, err);
    if (rc != HFD_OK)
        return rc;
    out->decided = !restorable;
    return f.is && !other_kind(call, &f.row) ? answer(tx, call, &f.row, out, err) : HFD_OK;
}

hfd_rc hfd_resource_put_peek(struct hfd_txn *tx, const struct hfd_call *call,
                             struct hfd_answer_doc *out, struct hfd_err *err)
{
    struct found f;
    hfd_rc rc;

    *out = (struct hfd_answer_doc){0};
    rc = load(tx, call, &f, err);
    if (rc != HFD_OK || !f.is || other_kind(call, &f.row) ||
        !hfd_keyring_digest_is(call->driver->ring, f.row.raw_digest, call->body))
        return rc;
    /* The settings may serve its type no more: then these bytes are refused as any others. */
    if (hfd_input_kind_of(&call->driver->rules, f.row.type) != (int)f.row.kind)
        return HFD_OK;
    switch (hfd_life_put((enum hfd_state)f.row.state, true)) {
    case HFD_PUT_ANSWER:
        return answer_put(tx, call, &f.row, false, out, err);
    case HFD_PUT_CONFLICT:
        return answer_put(tx, call, &f.row, true, out, err);
    case HFD_PUT_CREATE:
    case HFD_PUT_UPDATE:
    case HFD_PUT_RETRY:
        return HFD_OK;
    }
    return HFD_OK;
}

hfd_rc hfd_resource_delete_peek(struct hfd_txn *tx, const struct hfd_call *call,
                                struct hfd_answer_doc *out, struct hfd_err *err)
{
    struct found f;
    bool restorable;
    hfd_rc rc;

    *out = (struct hfd_answer_doc){.answer = HFD_ANSWER_ABSENT};
    rc = load(tx, call, &f, err);
    if (rc == HFD_OK)
        rc = is_restorable(tx, call, &f, &restorable, err);
    if (rc != HFD_OK)
        return rc;
    if (!f.is) {
        out->decided = !restorable;
        return HFD_OK;
    }
    if (other_kind(call, &f.row))
        return refuse_door(&f.row, err);
    if (f.row.state != HFD_STATE_DELETING || overdue(&f.row, call->now_us))
        return HFD_OK;
    return answer(tx, call, &f.row, out, err);
}

/* ---- restoring ---- */

static hfd_rc adopt_parts(struct hfd_txn *tx, const struct hfd_call *call,
                          const struct hfd_cookie *cookie, struct hfd_err *err)
{
    bool ours;
    hfd_rc rc = hfd_parts_adopt(tx, call, cookie->kind, main_id(cookie), &ours, err);

    for (size_t i = 0;
         rc == HFD_OK && cookie->kind == HFD_KIND_CLUSTER && i < cookie->nodepool_count; i++)
        rc = hfd_parts_adopt(tx, call, HFD_KIND_NODEPOOL, cookie->nodepool_ids[i], &ours, err);
    return rc;
}

static struct hfd_resource_row row_of_cookie(const struct hfd_call *call,
                                             const struct hfd_cookie *c)
{
    return (struct hfd_resource_row){
        .guresid = call->guresid,
        .type = c->type,
        .kind = c->kind,
        .incarnation = c->incarnation,
        .cluster_id = c->cluster_id,
        .digest = c->digest,
        .raw_digest = c->digest, /* no body has this one: the next PUT is looked at */
        .cookie = call->cookie,
        .created_us = call->now_us,
    };
}

/*
 * The row for what a remote HyperFleet may have. Until that is known the resource is updating;
 * nothing is learned from it.
 */
static hfd_rc seek(struct hfd_txn *tx, const struct hfd_call *call, struct found *f,
                   struct hfd_err *err)
{
    struct hfd_resource_row *row = &f->row;
    struct hfd_fleet_row fleet;
    hfd_rc rc;

    *row = row_of_cookie(call, &f->cookie);
    rc = hfd_parts_seek(tx, call, row->kind, &fleet, err);
    if (rc != HFD_OK)
        return rc;
    row->cluster_id = row->kind == HFD_KIND_CLUSTER ? fleet.id : HFD_SLICE("");
    set_op(call->driver, HFD_OP_UPDATE, call->now_us, row);
    rc = hfd_history_adopted(tx, row, 0, err);
    if (rc == HFD_OK)
        rc = hfd_resource_row_put(tx, row, err);
    if (rc == HFD_OK)
        rc = call->driver->backend_ops->schedule(tx, call->guresid, HFD_GOAL_ADOPT, call->now_us,
                                                 err);
    f->is = rc == HFD_OK;
    f->stored = HFD_STATE_UPDATING;
    return rc;
}

/*
 * The row that a cookie remembers, for the parts that HyperFleet still has, as it would stand now.
 * Whether it was being made or changed the cookie does not tell; a part that was never changed was
 * being made.
 */
static hfd_rc restore(struct hfd_txn *tx, const struct hfd_call *call, struct found *f,
                      struct hfd_err *err)
{
    struct hfd_resource_row *row = &f->row;
    const struct hfd_cookie *c = &f->cookie;
    const struct hfd_part_view *main;
    struct hfd_parts parts;
    hfd_rc rc;

    rc = adopt_parts(tx, call, c, err);
    if (rc == HFD_OK)
        rc = hfd_parts_load(tx, call->guresid, call->mem, &parts, err);
    if (rc != HFD_OK)
        return rc;
    *row = row_of_cookie(call, c);
    row->created_us = parts.items[0].fleet.created_us;
    main = &parts.items[0].view;
    /* Nothing is learned from it: nobody knows how long it took so far. */
    set_op(call->driver,
           main->deleting         ? HFD_OP_DELETE
           : main->generation > 1 ? HFD_OP_UPDATE
                                  : HFD_OP_CREATE,
           call->now_us, row);
    rc = hfd_history_adopted(tx, row, generation_of(&parts), err);
    if (rc == HFD_OK)
        rc = judge(tx, call->driver, &parts, call->now_us, call->mem, row, err);
    if (rc == HFD_OK)
        rc = hfd_resource_row_put(tx, row, err);
    f->is = rc == HFD_OK;
    f->stored = (enum hfd_state)row->state;
    return rc;
}

/*
 * The writer's load: a resource whose row was lost is there again if its cookie and HyperFleet know
 * it.
 */
static hfd_rc load_or_restore(struct hfd_txn *tx, const struct hfd_call *call, struct found *f,
                              struct hfd_err *err)
{
    bool restorable = false;
    hfd_rc rc;

    rc = load(tx, call, f, err);
    if (rc == HFD_OK)
        rc = is_restorable(tx, call, f, &restorable, err);
    if (rc != HFD_OK || !restorable)
        return rc;
    return call->driver->backend_ops->deferred ? seek(tx, call, f, err) : restore(tx, call, f, err);
}

/* ---- PUT ---- */

static hfd_rc new_incarnation(const struct hfd_call *call, struct hfd_resource_row *row,
                              struct hfd_err *err)
{
    unsigned char bytes[INCARNATION_BYTES];
    uint64_t v = 0;

    hfd_rng_bytes(call->driver->rng, bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++)
        v = v << 8 | bytes[i];
    row->incarnation = hfd_arena_printf(call->mem, "%016llx", (unsigned long long)v);
    return row->incarnation.p != NULL ? HFD_OK : no_memory(err);
}

static hfd_rc seal_cookie(const struct hfd_call *call, const struct hfd_parts *parts,
                          struct hfd_resource_row *row, struct hfd_err *err)
{
    struct hfd_cookie c = {
        .type = row->type,
        .kind = row->kind,
        .incarnation = row->incarnation,
        .cluster_id = hfd_backend_id_is_given(row->cluster_id) ? row->cluster_id : HFD_SLICE_NONE,
        .digest = row->digest,
        .backend = call->driver->backend,
    };
    hfd_slice *ids = hfd_arena_array(call->mem, parts->count + 1, sizeof(*ids));

    if (ids == NULL)
        return no_memory(err);
    for (size_t i = 0; i < parts->count; i++)
        if (parts->items[i].row.kind == HFD_KIND_NODEPOOL && !parts->items[i].row.leaving &&
            hfd_backend_id_is_given(parts->items[i].row.fleet_id))
            ids[c.nodepool_count++] = parts->items[i].row.fleet_id;
    c.nodepool_ids = ids;
    return hfd_cookie_seal(call->driver->ring, call->driver->rng, call->guresid, &c, call->mem,
                           &row->cookie, err);
}

static hfd_rc take_digests(const struct hfd_call *call, struct hfd_resource_row *row,
                           struct hfd_err *err)
{
    unsigned char raw[HFD_DIGEST_BYTES], canonical[HFD_DIGEST_BYTES];

    hfd_keyring_digest(call->driver->ring, call->body, raw);
    hfd_keyring_digest(call->driver->ring, call->input->canonical, canonical);
    row->raw_digest = hfd_arena_dup(call->mem, (hfd_slice){(const char *)raw, sizeof(raw)});
    row->digest = hfd_arena_dup(call->mem, (hfd_slice){(const char *)canonical, sizeof(canonical)});
    return row->raw_digest.p != NULL && row->digest.p != NULL ? HFD_OK : no_memory(err);
}

/* What a PUT has done and means. */
struct written {
    struct hfd_applied now;
    enum hfd_op op;
    bool new_cookie;
};

/* The parts are made; now the row, its cookie, and at once what the parts already say. */
static hfd_rc commit_put(struct hfd_txn *tx, const struct hfd_call *call, const struct written *w,
                         struct hfd_resource_row *row, struct hfd_answer_doc *out,
                         struct hfd_err *err)
{
    const enum hfd_state from = (enum hfd_state)row->state;
    const struct hfd_parts *parts = &w->now.parts;
    hfd_rc rc;

    rc = start_op(tx, call, w->op, parts, row, err);
    if (rc == HFD_OK)
        rc = take_digests(call, row, err);
    if (rc == HFD_OK && w->new_cookie)
        rc = seal_cookie(call, parts, row, err);
    if (rc == HFD_OK)
        rc = hfd_history_moved(tx, from, row, generation_of(parts), err);
    if (rc == HFD_OK)
        rc = judge(tx, call->driver, parts, call->now_us, call->mem, row, err);
    if (rc == HFD_OK)
        rc = hfd_past_follow(tx, call->driver, parts, call->now_us, call->mem, row, err);
    if (rc == HFD_OK)
        rc = hfd_resource_row_put(tx, row, err);
    if (rc == HFD_OK)
        rc = answer_put(tx, call, row, false, out, err);
    out->to = (enum hfd_state)row->state;
    return rc;
}

static hfd_rc put_new(struct hfd_txn *tx, const struct hfd_call *call, struct hfd_answer_doc *out,
                      struct hfd_err *err)
{
    struct hfd_resource_row row = {
        .guresid = call->guresid,
        .type = call->input->type,
        .kind = call->input->kind,
        .created_us = call->now_us,
    };
    struct written w = {.op = HFD_OP_CREATE, .new_cookie = true};
    hfd_rc rc;

    rc = new_incarnation(call, &row, err);
    if (rc == HFD_OK)
        rc = hfd_parts_apply(tx, call, &row, &w.now, err);
    return rc == HFD_OK ? commit_put(tx, call, &w, &row, out, err) : rc;
}

/* Update, re-target and new attempt. */
static hfd_rc put_change(struct hfd_txn *tx, const struct hfd_call *call, bool same,
                         struct hfd_resource_row *row, struct hfd_answer_doc *out,
                         struct hfd_err *err)
{
    const bool was_ready = row->output.len > 0 || row->state == HFD_STATE_UPDATING;
    struct written w;
    hfd_rc rc;

    if (!hfd_slice_eq(row->type, call->input->type))
        return hfd_fail_field(err, HFD_IMMUTABLE, "type",
                              "the type of a resource cannot change from '%.*s' to '%.*s'",
                              HFD_SLICE_FMT(row->type), HFD_SLICE_FMT(call->input->type));
    rc = hfd_parts_apply(tx, call, row, &w.now, err);
    if (rc != HFD_OK)
        return rc;
    if (w.now.anew) {
        row->degraded = false;
        row->output = HFD_SLICE_NONE;
        row->secrets = HFD_SLICE_NONE;
        rc = new_incarnation(call, row, err);
    }
    if (rc != HFD_OK)
        return rc;
    /* One that is sought has no output, and is updating. */
    w.op = (was_ready && !w.now.anew) || row->state == HFD_STATE_UPDATING ? HFD_OP_UPDATE
                                                                          : HFD_OP_CREATE;
    w.new_cookie = w.now.made || !same;
    return commit_put(tx, call, &w, row, out, err);
}

/*
 * A call whose changes in HyperFleet the observer does not tell back: what they mean for this
 * resource is judged once, at the end.
 */
struct own_call {
    struct hfd_call call;
    struct hfd_fleet fleet;
    struct hfd_watch watch;
};

static const struct hfd_call *own(const struct hfd_call *call, struct own_call *o)
{
    o->call = *call;
    o->fleet = call->driver->fleet;
    o->watch = (struct hfd_watch){call->driver, call->guresid};
    o->fleet.on_change_ctx = &o->watch;
    o->call.fleet = &o->fleet;
    return &o->call;
}

hfd_rc hfd_resource_get_restored(struct hfd_txn *tx, const struct hfd_call *call,
                                 struct hfd_answer_doc *out, struct hfd_err *err)
{
    struct own_call o;
    struct found f;
    hfd_rc rc;

    *out = (struct hfd_answer_doc){.answer = HFD_ANSWER_ABSENT, .decided = true};
    rc = load_or_restore(tx, own(call, &o), &f, err);
    if (rc != HFD_OK || !f.is || other_kind(call, &f.row))
        return rc;
    return answer(tx, call, &f.row, out, err);
}

/*
 * What a cookie says of the input may be older than what HyperFleet has: the first PUT behind a
 * restoration makes sure, even if it is the same. A creation has seen no other input.
 */
static enum hfd_put_action action_of(const struct hfd_resource_row *row, bool same)
{
    const enum hfd_put_action action = hfd_life_put((enum hfd_state)row->state, same);
    const bool restored = hfd_slice_eq(row->raw_digest, row->digest);

    return action == HFD_PUT_ANSWER && restored && row->state != HFD_STATE_CREATING ? HFD_PUT_UPDATE
                                                                                    : action;
}

static hfd_rc put(struct hfd_txn *tx, const struct hfd_call *call, struct hfd_answer_doc *out,
                  struct hfd_err *err)
{
    struct found f;
    bool same;
    hfd_rc rc;

    *out = (struct hfd_answer_doc){.from = HFD_STATE_ABSENT};
    /* What a remote has is found by its label, and made otherwise. */
    rc = call->driver->backend_ops->deferred ? load(tx, call, &f, err)
                                             : load_or_restore(tx, call, &f, err);
    if (rc != HFD_OK)
        return rc;
    if (!f.is)
        return put_new(tx, call, out, err);
    rc = note_late(tx, &f, err);
    if (rc != HFD_OK)
        return rc;
    out->from = out->to = (enum hfd_state)f.row.state;
    same = hfd_keyring_digest_is(call->driver->ring, f.row.digest, call->input->canonical);
    switch (action_of(&f.row, same)) {
    case HFD_PUT_ANSWER:
        return answer_put(tx, call, &f.row, false, out, err);
    case HFD_PUT_CONFLICT:
        return answer_put(tx, call, &f.row, true, out, err);
    case HFD_PUT_UPDATE:
    case HFD_PUT_RETRY:
        return put_change(tx, call, same, &f.row, out, err);
    case HFD_PUT_CREATE:
        break;
    }
    return hfd_fail(err, HFD_CORRUPT, "resource %.*s is in no known state",
                    HFD_SLICE_FMT(f.row.guresid));
}

hfd_rc hfd_resource_put(struct hfd_txn *tx, const struct hfd_call *call, struct hfd_answer_doc *out,
                        struct hfd_err *err)
{
    struct own_call o;

    HFD_ASSERT(call->input != NULL);
    return put(tx, own(call, &o), out, err);
}

/* ---- DELETE ---- */

/* Deletes the resource's own HyperFleet resource; a cluster takes its nodepools along. */
static hfd_rc delete_parts(struct hfd_txn *tx, const struct hfd_call *call,
                           const struct hfd_parts *parts, struct hfd_err *err)
{
    const struct hfd_fleet_call fc = {
        .fleet = call->fleet, .now_us = call->now_us, .caller = call->caller, .mem = call->mem};
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < parts->count; i++) {
        const struct hfd_part_row *p = &parts->items[i].row;
        struct hfd_fleet_row f;
        bool gone;

        rc = call->driver->backend_ops->remove(tx, &fc, p->kind, HFD_SLICE_NONE, p->fleet_id, &f,
                                               &gone, err);
        if (rc == HFD_NOT_FOUND)
            rc = HFD_OK;
    }
    return rc;
}

static hfd_rc start_delete(struct hfd_txn *tx, const struct hfd_call *call,
                           struct hfd_resource_row *row, struct hfd_answer_doc *out,
                           struct hfd_err *err)
{
    const enum hfd_state from = (enum hfd_state)row->state;
    struct hfd_parts parts;
    hfd_rc rc;

    rc = hfd_parts_load(tx, call->guresid, call->mem, &parts, err);
    if (rc == HFD_OK)
        rc = start_op(tx, call, HFD_OP_DELETE, &parts, row, err);
    /* First the row: the observer must find it deleting when the parts go. */
    if (rc == HFD_OK)
        rc = hfd_resource_row_put(tx, row, err);
    if (rc == HFD_OK)
        rc = hfd_history_moved(tx, from, row, generation_of(&parts), err);
    if (rc == HFD_OK)
        rc = delete_parts(tx, call, &parts, err);
    if (rc == HFD_OK)
        rc = call->driver->backend_ops->schedule(tx, call->guresid, HFD_GOAL_DELETE, call->now_us,
                                                 err);
    if (rc == HFD_OK)
        rc = hfd_parts_load(tx, call->guresid, call->mem, &parts, err);
    if (rc != HFD_OK)
        return rc;
    out->to = HFD_STATE_DELETING;
    if (any_exists(&parts))
        return answer(tx, call, row, out, err);
    row->state = HFD_STATE_ABSENT;
    out->to = HFD_STATE_ABSENT;
    out->answer = HFD_ANSWER_ABSENT;
    rc = hfd_history_moved(tx, HFD_STATE_DELETING, row, 0, err);
    return rc == HFD_OK ? forget(tx, call->driver, row, call->now_us, err) : rc;
}

/* Longer than a caller is ever asked to wait before its next poll. */
#define REFUSAL_TOLD_US (120 * HFD_US_PER_S)

/*
 * HyperFleet has just refused this deletion: a poll wants to hear that, not that another attempt
 * has begun.
 */
static bool refused_lately(const struct hfd_resource_row *row, int64_t now_us)
{
    return row->state == HFD_STATE_FAILED && row->op == HFD_OP_DELETE &&
           now_us < row->updated_us + REFUSAL_TOLD_US;
}

static hfd_rc delete_it(struct hfd_txn *tx, const struct hfd_call *call, struct hfd_answer_doc *out,
                        struct hfd_err *err)
{
    struct found f;
    hfd_rc rc;

    *out = (struct hfd_answer_doc){.answer = HFD_ANSWER_ABSENT, .decided = true};
    rc = load_or_restore(tx, call, &f, err);
    if (rc != HFD_OK || !f.is)
        return rc;
    if (other_kind(call, &f.row))
        return refuse_door(&f.row, err);
    rc = note_late(tx, &f, err);
    if (rc != HFD_OK)
        return rc;
    out->from = out->to = (enum hfd_state)f.row.state;
    if ((f.row.state == HFD_STATE_DELETING && !overdue(&f.row, call->now_us)) ||
        refused_lately(&f.row, call->now_us))
        return answer(tx, call, &f.row, out, err);
    return start_delete(tx, call, &f.row, out, err);
}

hfd_rc hfd_resource_delete(struct hfd_txn *tx, const struct hfd_call *call,
                           struct hfd_answer_doc *out, struct hfd_err *err)
{
    struct own_call o;

    return delete_it(tx, own(call, &o), out, err);
}
