/* See transition.h. */
#include "driver/core/transition.h"

#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/base/trace.h"
#include "driver/core/drift.h"
#include "driver/core/driver.h"
#include "driver/core/history.h"
#include "driver/core/output.h"
#include "driver/core/parts.h"
#include "driver/core/past.h"
#include "store/rows_overview.h"

/* ---- transition ---- */

#define US_PER_MS INT64_C(1000)

/* ---- log lines ---- */

#define LINE_ID_MAX_BYTES 128     /* of a HyperFleet id; a longer one is cut */
#define LINE_REASON_MAX_BYTES 500 /* of an error message */

/* A log line that waits for the commit. */
struct line {
    enum hfd_log_level level;
    const char *message; /* static, as op and code */
    const char *op;      /* "none": no operation ended */
    const char *code;    /* NULL = no error */
    int64_t took_ms;     /* of the operation */
    size_t guresid_len, fleet_id_len, reason_len;
    char guresid[HFD_GURESID_MAX];
    char fleet_id[LINE_ID_MAX_BYTES];
    char reason[LINE_REASON_MAX_BYTES];
};

static size_t copy_text(hfd_slice text, char *out, size_t max)
{
    const size_t len = text.len < max ? text.len : max;

    if (len > 0)
        memcpy(out, text.p, len);
    return len;
}

static void write_line(const void *arg)
{
    const struct line *l = arg;
    const struct hfd_log_field fields[] = {
        HFD_LOG_STR("guresid", ((hfd_slice){l->guresid, l->guresid_len})),
        HFD_LOG_STR("hyperfleet_id", ((hfd_slice){l->fleet_id, l->fleet_id_len})),
        HFD_LOG_CSTR("operation", l->op),
        HFD_LOG_INT("duration_ms", l->took_ms),
        HFD_LOG_CSTR("code", l->code),
        HFD_LOG_STR("reason", ((hfd_slice){l->reason, l->reason_len})),
    };

    if (hfd_log_enabled(l->level))
        hfd_log_write(l->level, l->message, fields, l->code != NULL ? 6 : 4);
}

static hfd_rc log_after_commit(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                               const struct hfd_part *main, struct line *l)
{
    const hfd_slice id = main != NULL && hfd_backend_id_is_given(main->row.fleet_id)
                             ? main->row.fleet_id
                             : HFD_SLICE("");

    if (!hfd_log_enabled(l->level))
        return HFD_OK;
    l->guresid_len = copy_text(row->guresid, l->guresid, sizeof(l->guresid));
    l->fleet_id_len = copy_text(id, l->fleet_id, sizeof(l->fleet_id));
    return hfd_txn_after_commit(c->tx, write_line, l, sizeof(*l), c->err);
}

static bool is_operating(enum hfd_state s)
{
    return s == HFD_STATE_CREATING || s == HFD_STATE_UPDATING || s == HFD_STATE_DELETING;
}

/* READY, FAILED and ABSENT are outcomes. */
static hfd_rc log_outcome(const struct hfd_ctx *c, enum hfd_state from,
                          const struct hfd_resource_row *row, const struct hfd_move *move)
{
    static const struct {
        enum hfd_log_level level;
        const char *message;
    } outcomes[HFD_STATE_COUNT] = {
        [HFD_STATE_READY] = {HFD_LOG_INFO, "resource ready"},
        [HFD_STATE_FAILED] = {HFD_LOG_WARN, "resource failed"},
        [HFD_STATE_ABSENT] = {HFD_LOG_INFO, "resource deleted"},
    };
    struct line l = {
        .level = outcomes[move->to].level,
        .message = outcomes[move->to].message,
        .code = move->code,
        .op = "none",
    };

    if (l.message == NULL)
        return HFD_OK;
    if (is_operating(from)) {
        l.op = hfd_op_name((enum hfd_op)row->op);
        l.took_ms = (move->at_us - row->op_started_us) / US_PER_MS;
    }
    if (move->code != NULL)
        l.reason_len = copy_text(move->message, l.reason, sizeof(l.reason));
    return log_after_commit(c, row, move->main, &l);
}

/* ---- moves ---- */

enum hfd_state hfd_resource_state_of_op(enum hfd_op op)
{
    static const enum hfd_state states[HFD_OP_COUNT] = {HFD_STATE_CREATING, HFD_STATE_UPDATING,
                                                        HFD_STATE_DELETING};

    return states[op];
}

void hfd_resource_set_op(const struct hfd_ctx *c, enum hfd_op op, struct hfd_resource_row *row)
{
    row->op = (int)op;
    row->op_started_us = c->now_us;
    row->op_estimate_us = c->now_us + c->driver->estimate_us[op];
    row->op_expected_us = row->op_estimate_us;
    row->op_deadline_us = c->now_us + c->driver->deadline_us[row->kind][op];
    row->trace = hfd_slice_of(hfd_trace_now()->text);
}

void hfd_resource_move_copy(struct hfd_resource_row *copy, const struct hfd_move *move)
{
    copy->state = (int)move->to;
    copy->updated_us = move->at_us;
    copy->fail_code = hfd_slice_of(move->code);
    copy->cause = move->code != NULL ? move->cause : HFD_SLICE_NONE;
    copy->fail_message = move->code != NULL ? move->message : HFD_SLICE_NONE;
}

/* True if a resource without a row can be adopted in this state. */
static bool may_adopt(enum hfd_state to)
{
    return to == HFD_STATE_CREATING || to == HFD_STATE_UPDATING || to == HFD_STATE_DELETING;
}

/* A state moves to itself when an operation takes the place of another one of its kind. */
static bool may(enum hfd_state from, const struct hfd_move *move)
{
    if (move->adopted)
        return from == HFD_STATE_ABSENT && may_adopt(move->to);
    return from == move->to ? from == HFD_STATE_UPDATING || from == HFD_STATE_DELETING
                            : hfd_state_may(from, move->to);
}

/* Counts a change of state: in the metrics, and in the totals that the store keeps. */
static hfd_rc count(const struct hfd_ctx *c, enum hfd_state from, enum hfd_state to,
                    const struct hfd_resource_row *row)
{
    hfd_rc rc = HFD_OK;

    hfd_txn_count(c->tx,
                  hfd_metric_series(HFD_METRIC_TRANSITIONS,
                                    HFD_LABELS(hfd_state_name(from), hfd_state_name(to))),
                  1);
    if (from != HFD_STATE_ABSENT)
        rc = hfd_resource_row_count(c->tx, row, (int)from, -1, c->err);
    return rc == HFD_OK && to != HFD_STATE_ABSENT
               ? hfd_resource_row_count(c->tx, row, (int)to, 1, c->err)
               : rc;
}

/* "update", "retarget", "retry", "ready", "failed" or "delete": a resource left a state. */
static hfd_slice history_word(enum hfd_state from, enum hfd_state to)
{
    switch (to) {
    case HFD_STATE_READY:
        return HFD_SLICE("ready");
    case HFD_STATE_FAILED:
        return HFD_SLICE("failed");
    case HFD_STATE_DELETING:
        return HFD_SLICE("delete");
    case HFD_STATE_CREATING:
    case HFD_STATE_UPDATING:
        return from == HFD_STATE_FAILED     ? HFD_SLICE("retry")
               : from == HFD_STATE_UPDATING ? HFD_SLICE("retarget")
                                            : HFD_SLICE("update");
    case HFD_STATE_ABSENT:
    case HFD_STATE_COUNT:
        break;
    }
    return HFD_SLICE("");
}

/*
 * Adds an entry; its state is row->state. An entry that asks for work becomes row->instance; an
 * adoption has row->seq. Thread: writer.
 */
static hfd_rc add_entry(const struct hfd_ctx *c, struct hfd_resource_row *row,
                        const struct hfd_history_entry *h)
{
    struct hfd_history_row entry = {
        .seq = row->seq,
        .about = HFD_ABOUT_RESOURCE,
        .id = row->guresid,
        .incarnation = row->incarnation,
        .at_us = h->at_us,
        .from = (int)h->from,
        .to = row->state,
        .what = h->what,
        .generation = h->generation,
        .text = h->text,
    };
    hfd_rc rc = HFD_OK;

    if (h->from != HFD_STATE_ABSENT)
        rc = hfd_history_next_seq(c->tx, &entry.seq, c->err);
    if (rc != HFD_OK)
        return rc;
    if (hfd_history_begins_instance(h->what))
        row->instance = entry.seq;
    entry.instance = row->instance;
    return hfd_history_row_add(c->tx, &entry, HFD_HISTORY_MAX, c->err);
}

/* The row itself tells the creation, and hfd_history_end the removal. */
static hfd_rc add_history(const struct hfd_ctx *c, enum hfd_state from,
                          struct hfd_resource_row *row, const struct hfd_move *move)
{
    const struct hfd_history_entry h = {
        .from = from,
        .at_us = row->updated_us,
        .what = move->adopted ? HFD_SLICE("adopted") : history_word(from, move->to),
        .generation = move->main != NULL ? move->main->view.generation : 0,
        .text = move->to == HFD_STATE_FAILED ? row->fail_message : HFD_SLICE_NONE,
    };

    if (move->to == HFD_STATE_ABSENT || (from == HFD_STATE_ABSENT && !move->adopted))
        return HFD_OK;
    return add_entry(c, row, &h);
}

hfd_rc hfd_resource_record_move(const struct hfd_ctx *c, enum hfd_state from,
                                struct hfd_resource_row *row, const struct hfd_move *move)
{
    hfd_rc rc = HFD_OK;

    HFD_ASSERT(may(from, move));
    HFD_ASSERT(hfd_resource_invariant(row) == NULL);
    if (from != move->to)
        rc = count(c, from, move->to, row);
    if (rc == HFD_OK)
        rc = add_history(c, from, row, move);
    return rc == HFD_OK ? log_outcome(c, from, row, move) : rc;
}

hfd_rc hfd_resource_move(const struct hfd_ctx *c, struct hfd_resource_row *row,
                         const struct hfd_move *move)
{
    const enum hfd_state from = hfd_state_known(row->state);

    hfd_resource_move_copy(row, move);
    return hfd_resource_record_move(c, from, row, move);
}

/* ---- health ---- */

/*
 * Notes the health of a ready resource: "degraded" and, once it is healthy again, "recovered", each
 * in history, metrics and log. Sets row->degraded and row->cause.
 */
static hfd_rc resource_note_health(const struct hfd_ctx *c, const struct hfd_outcome *outcome,
                                   const struct hfd_part *main, struct hfd_resource_row *row)
{
    const bool degraded = strcmp(outcome->health, "Degraded") == 0,
               healthy = strcmp(outcome->health, "Healthy") == 0;
    const char *word = degraded ? "degraded" : "recovered";
    struct line l = {.level = degraded ? HFD_LOG_WARN : HFD_LOG_INFO,
                     .message = degraded ? "resource degraded" : "resource recovered",
                     .op = "none"};
    struct hfd_history_entry h = {
        .from = (enum hfd_state)row->state,
        .at_us = c->now_us,
        .what = hfd_slice_of(word),
        .generation = main != NULL ? main->view.generation : 0,
        .text = HFD_SLICE(""),
    };
    hfd_rc rc;

    if (degraded || healthy)
        row->cause = outcome->cause;
    /* While adapters work on it, it is neither. */
    if (row->degraded ? !healthy : !degraded)
        return HFD_OK;
    row->degraded = degraded;
    if (degraded)
        h.text = hfd_arena_printf(c->mem, "%.*s: %.*s", HFD_SLICE_FMT(outcome->health_reason),
                                  HFD_SLICE_FMT(outcome->health_message));
    if (h.text.p == NULL)
        return hfd_fail_nomem(c->err, "note the health of a resource");
    hfd_txn_count(c->tx, hfd_metric_series(HFD_METRIC_HEALTH_CHANGES, HFD_LABELS(word)), 1);
    rc = add_entry(c, row, &h);
    return rc == HFD_OK ? log_after_commit(c, row, main, &l) : rc;
}

/* ---- drift ---- */

/* Tells what is new about the drift of a ready resource, in history and log. */
static hfd_rc note_drift(const struct hfd_ctx *c, const struct hfd_drift_news *news,
                         const struct hfd_part *main, struct hfd_resource_row *row)
{
    struct line l = {.level = HFD_LOG_INFO, .message = "resource mended", .op = "none"};
    struct hfd_history_entry h = {
        .from = (enum hfd_state)row->state,
        .at_us = c->now_us,
        .generation = main != NULL ? main->view.generation : 0,
        .text = news->text,
    };
    hfd_rc rc = HFD_OK;

    if (news->what != NULL) {
        h.what = hfd_slice_of(news->what);
        rc = add_entry(c, row, &h);
        if (news->text.len > 0) {
            l.level = HFD_LOG_WARN;
            l.message = "resource drifted";
            l.code = "drift";
            l.reason_len = copy_text(news->text, l.reason, sizeof(l.reason));
        }
        if (rc == HFD_OK)
            rc = log_after_commit(c, row, main, &l);
    }
    if (rc != HFD_OK || news->gave_up.len == 0)
        return rc;
    l.level = HFD_LOG_WARN;
    l.message = "drift is not mended any more";
    l.code = "drift";
    l.reason_len = copy_text(news->gave_up, l.reason, sizeof(l.reason));
    return log_after_commit(c, row, main, &l);
}

/* ---- the invariant ---- */

static const char *operation_invariant(const struct hfd_resource_row *row)
{
    if (row->state != (int)hfd_resource_state_of_op((enum hfd_op)row->op))
        return "the operation is that of the state";
    if (row->op_deadline_us < row->op_started_us)
        return "the deadline is not before the start";
    if (row->state == HFD_STATE_CREATING && row->output.len > 0)
        return "a resource that is being created has no output";
    return row->fail_code.len == 0 && row->fail_message.len == 0
               ? NULL
               : "only a failed resource has an error";
}

static const char *ready_invariant(const struct hfd_resource_row *row)
{
    if (row->output.len == 0)
        return "a ready resource has an output";
    return row->fail_code.len == 0 ? NULL : "only a failed resource has an error";
}

const char *hfd_resource_invariant(const struct hfd_resource_row *row)
{
    if (row->guresid.len == 0 || row->type.len == 0 || row->incarnation.len == 0)
        return "a resource has a GUResID, a type and an incarnation";
    switch (hfd_state_known(row->state)) {
    case HFD_STATE_CREATING:
    case HFD_STATE_UPDATING:
    case HFD_STATE_DELETING:
        return (unsigned)row->op < HFD_OP_COUNT ? operation_invariant(row)
                                                : "the operation is known";
    case HFD_STATE_READY:
        return ready_invariant(row);
    case HFD_STATE_FAILED:
        return row->fail_code.len > 0 && row->fail_message.len > 0 ? NULL
                                                                   : "a failure has its reason";
    case HFD_STATE_ABSENT:
    case HFD_STATE_COUNT:
        break;
    }
    return NULL;
}

/* ---- judge ---- */

/* The nodepools of others that a deletion waits for. */
static hfd_rc add_strangers(const struct hfd_ctx *c, const struct hfd_parts *parts,
                            struct hfd_outcome_input *in)
{
    struct hfd_stranger *strangers;
    struct hfd_parts found;
    hfd_rc rc = hfd_parts_load_strangers(c, parts, &found);

    if (rc != HFD_OK || found.count == 0)
        return rc;
    strangers = hfd_arena_array(c->mem, found.count, sizeof(*strangers));
    if (strangers == NULL)
        return hfd_fail_nomem(c->err, "judge a resource");
    for (size_t i = 0; i < found.count; i++)
        strangers[i] = (struct hfd_stranger){found.items[i].row.guresid, &found.items[i].view};
    in->strangers = strangers;
    in->stranger_count = found.count;
    return HFD_OK;
}

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
        .judge = d->hooks != NULL ? d->hooks->judge : HFD_SLICE_NONE,
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

hfd_rc hfd_judge_waits(const struct hfd_ctx *c, const struct hfd_parts *parts,
                       struct hfd_resource_row *row)
{
    struct hfd_outcome_input in;
    hfd_rc rc;

    row->op_waits = HFD_SLICE_NONE;
    if (!hfd_resource_in_progress(row) && row->state != HFD_STATE_DELETING)
        return HFD_OK;
    rc = input_of(c, row, parts, true, &in);
    if (rc == HFD_OK && row->state == HFD_STATE_DELETING)
        rc = add_strangers(c, parts, &in);
    if (rc != HFD_OK)
        return rc;
    in.usual = row->op_usual;
    return hfd_waiting_say(&in, row->op_started_us, c->mem, &row->op_waits, &row->cause) == HFD_OK
               ? HFD_OK
               : hfd_fail_nomem(c->err, "say what is waited for");
}

hfd_rc hfd_judge_outcome(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                         const struct hfd_parts *parts, struct hfd_outcome *out)
{
    struct hfd_outcome_input in;
    struct hfd_parts own;
    hfd_rc rc = parts == NULL ? hfd_parts_load(c, row->guresid, &own) : HFD_OK;

    if (rc == HFD_OK)
        rc = input_of(c, row, parts == NULL ? &own : parts, hfd_resource_overdue(row, c->now_us),
                      &in);
    if (rc == HFD_OK && hfd_outcome_judge(&in, c->mem, out) != HFD_OK)
        return hfd_fail_nomem(c->err, "judge a resource");
    return rc;
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
        .cause = o->cause,
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
    move->cause = HFD_SLICE("hyperfleet-driver OutputTooLarge");
    move->message = hfd_arena_printf(c->mem,
                                     "Resource %.*s is ready, but %s: let driver.outputs take "
                                     "less, or the adapters report less. "
                                     "Then deploy again, or delete the resource.",
                                     HFD_SLICE_FMT(row->guresid), why.msg);
    return move->message.p != NULL ? HFD_OK : hfd_fail_nomem(c->err, "build an output");
}

/* Notes drift and health of a row that was judged ready; of one that failed, when it is repaired.
 */
static hfd_rc note_judged(const struct hfd_ctx *c, const struct hfd_parts *parts,
                          const struct hfd_outcome *o, const struct hfd_drift_news *news,
                          struct hfd_resource_row *row)
{
    hfd_rc rc;

    if (row->state == HFD_STATE_FAILED)
        return hfd_drift_judge_gone(c, parts, row);
    if (row->state != HFD_STATE_READY)
        return HFD_OK;
    rc = note_drift(c, news, hfd_parts_main(parts), row);
    return rc == HFD_OK ? resource_note_health(c, o, hfd_parts_main(parts), row) : rc;
}

hfd_rc hfd_judge_row(const struct hfd_ctx *c, const struct hfd_parts *parts,
                     struct hfd_resource_row *row)
{
    struct hfd_drift_news news = {.what = NULL};
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
    if (move.to == HFD_STATE_READY) {
        rc = hfd_drift_judge(c, parts, row, &news);
        if (rc == HFD_OK)
            rc = build_output(c, parts, &o, row, &move);
    }
    if (rc == HFD_OK && (int)move.to != row->state)
        rc = hfd_resource_move(c, row, &move);
    if (rc == HFD_OK)
        rc = hfd_judge_waits(c, parts, row);
    return rc == HFD_OK ? note_judged(c, parts, &o, &news, row) : rc;
}

/* ---- observer ---- */

#define SCRATCH_MAX_BYTES ((size_t)128 * 1024 * 1024) /* to observe one resource */

static bool row_equal(const struct hfd_resource_row *a, const struct hfd_resource_row *b)
{
    return a->state == b->state && a->updated_us == b->updated_us &&
           hfd_slice_eq(a->output, b->output) && hfd_slice_eq(a->secrets, b->secrets) &&
           hfd_slice_eq(a->op_milestones, b->op_milestones) &&
           hfd_slice_eq(a->op_waits, b->op_waits) && hfd_slice_eq(a->cause, b->cause) &&
           hfd_slice_eq(a->drift, b->drift) && a->drift_count == b->drift_count &&
           hfd_slice_eq(a->repairs, b->repairs) && a->repair_us == b->repair_us;
}

hfd_rc hfd_resource_forget(const struct hfd_ctx *c, const struct hfd_resource_row *row)
{
    const struct hfd_backend_subject s = hfd_ctx_subject(c, row->guresid);
    hfd_rc rc = hfd_history_end(c, row);

    if (rc == HFD_OK)
        rc = hfd_resource_row_delete(c->tx, row->guresid, c->err);
    return rc == HFD_OK ? hfd_backend_forget(c->driver->backend_ops, c->tx, &s, c->err) : rc;
}

/* Judges one resource anew. @param stranger  a nodepool that is none of its parts has changed */
static hfd_rc observe_row(const struct hfd_ctx *c, bool stranger, struct hfd_resource_row *row)
{
    const struct hfd_resource_row before = *row;
    struct hfd_parts parts;
    hfd_rc rc = HFD_OK;

    if (stranger && row->drift.len == 0 && row->state != HFD_STATE_DELETING)
        row->drift = HFD_DRIFT_UNKNOWN;
    if (row->state != HFD_STATE_FAILED) { /* a failure lasts until a PUT or DELETE */
        rc = hfd_parts_load(c, row->guresid, &parts);
        if (rc == HFD_OK)
            rc = hfd_judge_row(c, &parts, row);
        if (rc == HFD_OK)
            rc = hfd_past_follow(c, &parts, row);
    }
    if (rc != HFD_OK || row_equal(row, &before))
        return rc;
    return row->state == HFD_STATE_ABSENT ? hfd_resource_forget(c, row)
                                          : hfd_resource_row_put(c->tx, row, c->err);
}

/* One of the changes, and the resource that it belongs to. */
struct affected {
    const struct hfd_fleet_change *change;
    hfd_slice guresid; /* empty = none */
    bool stranger;     /* it is about a nodepool in the resource's cluster that is no part */
};

/*
 * Finds the resource that a change belongs to. A part that was leaving is no part any more once it
 * is removed.
 */
static hfd_rc find_owner(const struct hfd_ctx *c, struct affected *a)
{
    const struct hfd_fleet_change *change = a->change;
    struct hfd_part_row part;
    hfd_rc rc = hfd_part_row_by_fleet(c->tx, change->id, c->mem, &part, c->err);

    a->guresid = HFD_SLICE("");
    a->stranger = rc == HFD_NOT_FOUND && change->owner_id.len > 0 && !change->reported;
    if (a->stranger)
        rc = hfd_part_row_by_fleet(c->tx, change->owner_id, c->mem, &part, c->err);
    if (rc != HFD_OK)
        return rc == HFD_NOT_FOUND ? HFD_OK : rc;
    a->guresid = part.guresid;
    return change->removed && part.leaving && !a->stranger
               ? hfd_part_row_delete(c->tx, part.guresid, part.fleet_id, c->err)
               : HFD_OK;
}

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
    if (rc == HFD_OK) {
        rc = observe_row(c, a->stranger, &row);
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

static bool is_last_of_its_resource(struct affected *all, size_t count, size_t at)
{
    for (size_t i = at + 1; i < count; i++)
        if (all[at].guresid.len > 0 && hfd_slice_eq(all[i].guresid, all[at].guresid)) {
            all[i].stranger = all[i].stranger || all[at].stranger;
            return false;
        }
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
        rc = find_owner(c, &all[count]);
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
    const struct hfd_deadline_query query = {.after_us = INT64_MIN, .limit = HFD_SETTLE_MAX};
    struct hfd_deadline_list due;
    hfd_rc rc = hfd_deadline_row_list(c->tx, &query, c->mem, &due, c->err);

    *out = (struct hfd_settled){.next_us = INT64_MAX};
    for (size_t i = 0; rc == HFD_OK && i < due.count; i++)
        if (due.rows[i].deadline_us <= c->now_us)
            rc = settle_apart(c, due.rows[i].guresid, &out->count);
        else if (due.rows[i].deadline_us < out->next_us)
            out->next_us = due.rows[i].deadline_us;
    return rc;
}
