/*
 * The embedded HyperFleet engine. See fleet.h; the rules themselves are in aggregate.c.
 */
#include "driver/fleet/fleet.h"

#include "driver/base/check.h"
#include "driver/base/jsonx.h"
#include "driver/fleet/keys.h"
#include "driver/fleet/ksuid.h"
#include "driver/fleet/names.h"
#include "schemas/equal.h"
#include "store/rows_fleet.h"
#include "store/rows_report.h"

/*
 * Adapters that nobody waits for and that may report on one resource, and what their conditions may
 * take together.
 */
#define OTHERS_MAX 256
#define OTHERS_MAX_BYTES ((size_t)1024 * 1024)
/* Conditions of one report, and of a resource with every required adapter's longest message. */
#define REPORT_CONDITIONS_MAX_BYTES ((size_t)256 * 1024)
#define CONDITIONS_MAX_BYTES ((size_t)16 * 1024 * 1024)
/* One resource with its reports, while it is worked on. */
#define SCRATCH_MAX_BYTES ((size_t)128 * 1024 * 1024)

static hfd_rc no_memory(struct hfd_err *err)
{
    return hfd_fail(err, HFD_NOMEM, "out of memory in the HyperFleet engine");
}

void hfd_fleet_href(struct hfd_buf *b, const struct hfd_fleet_row *row)
{
    hfd_buf_lit(b, "/api/hyperfleet/v1/clusters/");
    if (row->kind == HFD_KIND_NODEPOOL) {
        hfd_buf_add(b, row->owner_id);
        hfd_buf_lit(b, "/nodepools/");
    }
    hfd_buf_add(b, row->id);
}

/* What the row says of its conditions beside them. */
static void note_ready(const struct hfd_conditions *cs, struct hfd_fleet_row *row)
{
    const struct hfd_condition *c = hfd_condition_find(cs, HFD_SLICE("Ready"));

    row->ready = c != NULL && c->status == HFD_STATUS_TRUE;
    row->ready_seen_us = c != NULL ? c->last_updated_us : INT64_MAX;
}

/* Puts conditions into their stored form, in the arena. */
static hfd_rc store_conditions(const struct hfd_conditions *cs, bool of_report,
                               struct hfd_arena *mem, hfd_slice *out, struct hfd_err *err)
{
    const size_t max_bytes = of_report ? REPORT_CONDITIONS_MAX_BYTES : CONDITIONS_MAX_BYTES;
    struct hfd_buf b;
    hfd_rc rc;

    hfd_buf_init(&b, max_bytes);
    hfd_conditions_format(&b, cs, of_report);
    rc = hfd_buf_to_arena(&b, mem, out, err);
    if (rc == HFD_LIMIT)
        rc = hfd_fail_field(err, HFD_LIMIT, "conditions",
                            "the conditions %s would take more than %zu bytes",
                            of_report ? "of the report" : "of the resource", max_bytes);
    return rc;
}

/* @param steady  what on_change says; NULL = nobody asks */
static hfd_rc tell(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                   enum hfd_fleet_change what, const struct hfd_fleet_row *row, bool *steady,
                   struct hfd_err *err)
{
    struct hfd_fleet_event event = {.what = what, .row = row, .now_us = call->now_us};
    hfd_rc rc = HFD_OK;

    if (call->fleet->on_change != NULL)
        rc = call->fleet->on_change(call->fleet->on_change_ctx, tx, &event, call->mem, err);
    if (steady != NULL)
        *steady = event.steady;
    return rc;
}

static hfd_rc changed(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                      enum hfd_fleet_change what, const struct hfd_fleet_row *row,
                      struct hfd_err *err)
{
    return tell(tx, call, what, row, NULL, err);
}

hfd_rc hfd_fleet_get(struct hfd_txn *tx, enum hfd_kind kind, hfd_slice owner_id, hfd_slice id,
                     struct hfd_arena *mem, struct hfd_fleet_row *out, struct hfd_err *err)
{
    hfd_rc rc;

    if (owner_id.len > 0) {
        rc = hfd_fleet_get(tx, HFD_KIND_CLUSTER, HFD_SLICE_NONE, owner_id, mem, out, err);
        if (rc != HFD_OK)
            return rc;
    }
    rc = hfd_fleet_row_get(tx, id, mem, out, err);
    if (rc == HFD_NOT_FOUND || (rc == HFD_OK && out->kind != kind))
        return hfd_fail(err, HFD_NOT_FOUND, "%s with id='%.*s' not found", hfd_kind_name(kind),
                        HFD_SLICE_FMT(id));
    if (rc == HFD_OK && owner_id.len > 0 && !hfd_slice_eq(out->owner_id, owner_id))
        return hfd_fail(err, HFD_NOT_FOUND, "%s '%.*s' not found for cluster '%.*s'",
                        hfd_kind_name(kind), HFD_SLICE_FMT(id), HFD_SLICE_FMT(owner_id));
    return rc;
}

static hfd_rc is_deleting(const struct hfd_fleet_row *row, struct hfd_err *err)
{
    return hfd_fail(err, HFD_DELETING, "%s '%.*s' is marked for deletion", hfd_kind_name(row->kind),
                    HFD_SLICE_FMT(row->id));
}

hfd_rc hfd_fleet_create(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                        const struct hfd_fleet_create *in, struct hfd_fleet_row *out,
                        struct hfd_err *err)
{
    char id[HFD_KSUID_LEN];
    struct hfd_fleet_row owner;
    struct hfd_conditions cs;
    hfd_rc rc;

    HFD_ASSERT((in->kind == HFD_KIND_NODEPOOL) == (in->owner_id.len > 0));
    if (in->owner_id.len > 0) {
        rc = hfd_fleet_get(tx, HFD_KIND_CLUSTER, HFD_SLICE_NONE, in->owner_id, call->mem, &owner,
                           err);
        if (rc != HFD_OK)
            return rc;
        if (owner.deleted_us != 0)
            return is_deleting(&owner, err);
    }
    hfd_ksuid_make(call->now_us, call->fleet->rng, id);
    *out = (struct hfd_fleet_row){
        .id = hfd_arena_dup(call->mem, (hfd_slice){id, sizeof(id)}),
        .kind = in->kind,
        .owner_id = in->owner_id,
        .name = in->name,
        .generation = 1,
        .spec = in->spec,
        .labels = in->labels,
        .created_us = call->now_us,
        .updated_us = call->now_us,
        .created_by = call->caller,
        .updated_by = call->caller,
    };
    if (out->id.p == NULL)
        return no_memory(err);
    rc = hfd_agg_created(call->now_us, call->mem, &cs);
    if (rc != HFD_OK)
        return no_memory(err);
    note_ready(&cs, out);
    rc = store_conditions(&cs, false, call->mem, &out->conditions, err);
    if (rc != HFD_OK)
        return rc;
    rc = hfd_fleet_row_insert(tx, out, err);
    if (rc == HFD_CONFLICT)
        return hfd_fail_field(err, HFD_CONFLICT, "name", "This %s already exists",
                              hfd_kind_name(in->kind));
    if (rc != HFD_OK)
        return rc;
    return hfd_fleet_reindex(
        tx, out, &(struct hfd_fleet_reindex){.was = {.conditions = NULL}, .is = {out->labels, &cs}},
        call->mem, err);
}

static hfd_rc report_seen(const struct hfd_report_row *r, struct hfd_arena *mem,
                          struct hfd_agg_report *out, struct hfd_err *err)
{
    const struct hfd_condition *available, *finalized;
    struct hfd_conditions cs;
    struct hfd_arena scratch;
    hfd_rc rc;

    hfd_arena_init(&scratch, SCRATCH_MAX_BYTES);
    rc = hfd_conditions_parse(r->conditions, &scratch, &cs, err);
    if (rc == HFD_OK) {
        available = hfd_condition_find(&cs, HFD_SLICE("Available"));
        finalized = hfd_condition_find(&cs, HFD_SLICE("Finalized"));
        *out = (struct hfd_agg_report){
            .adapter = hfd_arena_dup(mem, r->adapter),
            .observed_generation = r->observed_generation,
            .observed_us = r->observed_us,
            .available = available != NULL ? available->status : HFD_STATUS_UNKNOWN,
            .finalized = finalized != NULL ? finalized->status : HFD_STATUS_FALSE,
            .reason = hfd_arena_dup(mem, available != NULL ? available->reason : HFD_SLICE_NONE),
            .message = hfd_arena_dup(mem, available != NULL ? available->message : HFD_SLICE_NONE),
        };
        if (out->adapter.p == NULL || out->reason.p == NULL || out->message.p == NULL)
            rc = no_memory(err);
    }
    hfd_arena_fini(&scratch);
    return rc;
}

/*
 * @param with  a report that is about to be written, and takes the place of its adapter's last one;
 * NULL = none is
 */
static hfd_rc reports_with(struct hfd_txn *tx, hfd_slice id, const struct hfd_report_row *with,
                           struct hfd_arena *mem, struct hfd_agg_reports *out, struct hfd_err *err)
{
    struct hfd_report_list rows;
    struct hfd_agg_report *items = NULL;
    struct hfd_arena scratch;
    size_t n = 0;
    hfd_rc rc;

    *out = (struct hfd_agg_reports){NULL, 0};
    hfd_arena_init(&scratch, SCRATCH_MAX_BYTES);
    rc = hfd_report_row_heads(tx, id, &scratch, &rows, err);
    if (rc == HFD_OK) {
        items = hfd_arena_array(mem, rows.count + 1, sizeof(*items));
        rc = items != NULL ? HFD_OK : no_memory(err);
    }
    for (size_t i = 0; rc == HFD_OK && i < rows.count; i++)
        if (with == NULL || !hfd_slice_eq(rows.rows[i].adapter, with->adapter))
            rc = report_seen(&rows.rows[i], mem, &items[n++], err);
    if (rc == HFD_OK && with != NULL)
        rc = report_seen(with, mem, &items[n++], err);
    if (rc == HFD_OK)
        *out = (struct hfd_agg_reports){items, n};
    hfd_arena_fini(&scratch);
    return rc;
}

hfd_rc hfd_fleet_reports(struct hfd_txn *tx, hfd_slice id, struct hfd_arena *mem,
                         struct hfd_agg_reports *out, struct hfd_err *err)
{
    return reports_with(tx, id, NULL, mem, out, err);
}

/*
 * What aggregation needs of a resource: its conditions, and its reports with one that is about to
 * be written, if one is.
 */
static hfd_rc agg_input(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                        const struct hfd_fleet_row *row, const struct hfd_report_row *with,
                        struct hfd_conditions *prev, struct hfd_agg_input *in, struct hfd_err *err)
{
    struct hfd_fleet_list children;
    hfd_rc rc;

    *in = (struct hfd_agg_input){
        .required = call->fleet->required[row->kind],
        .kind_name = hfd_kind_name(row->kind),
        .generation = row->generation,
        .now_us = call->now_us,
        .prev = prev,
        .deleting = row->deleted_us != 0,
    };
    rc = reports_with(tx, row->id, with, call->mem, &in->reports, err);
    if (rc == HFD_OK)
        rc = hfd_conditions_parse(row->conditions, call->mem, prev, err);
    if (rc == HFD_OK && in->deleting && row->kind == HFD_KIND_CLUSTER) {
        rc = hfd_fleet_row_children(tx, row->id, call->mem, &children, err);
        in->has_children = rc == HFD_OK && children.count > 0;
    }
    return rc;
}

/*
 * Raises the generation, with what follows for the conditions, and writes the row. `labels` are
 * those that it had so far.
 */
static hfd_rc bump(struct hfd_txn *tx, const struct hfd_fleet_call *call, hfd_slice labels,
                   struct hfd_fleet_row *row, struct hfd_err *err)
{
    struct hfd_conditions prev, next;
    const struct hfd_agg_input in = {
        .required = call->fleet->required[row->kind],
        .generation = row->generation + 1,
        .now_us = call->now_us,
        .prev = &prev,
        .deleting = row->deleted_us != 0,
    };
    hfd_rc rc;

    rc = hfd_conditions_parse(row->conditions, call->mem, &prev, err);
    if (rc != HFD_OK)
        return rc;
    row->generation++;
    row->updated_us = call->now_us;
    row->updated_by = call->caller;
    if (hfd_agg_changed(&in, call->mem, &next) != HFD_OK)
        return no_memory(err);
    note_ready(&next, row);
    rc = store_conditions(&next, false, call->mem, &row->conditions, err);
    if (rc == HFD_OK)
        rc = hfd_fleet_row_update(tx, row, err);
    if (rc != HFD_OK)
        return rc;
    return hfd_fleet_reindex(
        tx, row, &(struct hfd_fleet_reindex){.was = {labels, &prev}, .is = {row->labels, &next}},
        call->mem, err);
}

/*
 * Whether a spec says something else than the stored one. Where the texts differ numbers still may
 * not: 1.0 is no other than 1.
 */
static hfd_rc spec_changes(hfd_slice stored, hfd_slice given, bool *out, struct hfd_err *err)
{
    int64_t work = INT64_MAX;
    json_t *a = NULL, *b = NULL;
    hfd_rc rc;

    *out = given.p != NULL && !hfd_slice_eq(stored, given);
    if (!*out)
        return HFD_OK;
    rc = hfd_json_parse(stored, &a, err);
    if (rc == HFD_OK)
        rc = hfd_json_parse(given, &b, err);
    if (rc == HFD_OK)
        *out = !hfd_json_same(a, b, &work);
    json_decref(a);
    json_decref(b);
    return rc == HFD_NOMEM ? rc : HFD_OK;
}

hfd_rc hfd_fleet_patch(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                       const struct hfd_fleet_patch *in, struct hfd_fleet_row *out,
                       struct hfd_err *err)
{
    bool spec_differs, labels_differ;
    hfd_slice labels;
    hfd_rc rc;

    rc = hfd_fleet_get(tx, in->kind, in->owner_id, in->id, call->mem, out, err);
    if (rc != HFD_OK)
        return rc;
    if (out->deleted_us != 0)
        return is_deleting(out, err);
    rc = spec_changes(out->spec, in->spec, &spec_differs, err);
    if (rc != HFD_OK)
        return rc;
    labels_differ = in->labels.p != NULL && !hfd_slice_eq(in->labels, out->labels);
    if (!spec_differs && !labels_differ)
        return HFD_OK;
    labels = out->labels;
    if (spec_differs)
        out->spec = in->spec;
    if (labels_differ)
        out->labels = in->labels;
    rc = bump(tx, call, labels, out, err);
    if (rc != HFD_OK)
        return rc;
    return changed(tx, call, HFD_FLEET_CHANGED, out, err);
}

static hfd_rc remove_row(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                         const struct hfd_fleet_row *row, struct hfd_err *err)
{
    struct hfd_conditions cs;
    hfd_rc rc;

    rc = hfd_conditions_parse(row->conditions, call->mem, &cs, err);
    if (rc == HFD_OK)
        rc = hfd_fleet_reindex(
            tx, row,
            &(struct hfd_fleet_reindex){.was = {row->labels, &cs}, .is = {.conditions = NULL}},
            call->mem, err);
    if (rc == HFD_OK)
        rc = hfd_fleet_row_delete(tx, row->id, err);
    return rc == HFD_OK ? changed(tx, call, HFD_FLEET_REMOVED, row, err) : rc;
}

static hfd_rc owner_follows(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                            const struct hfd_fleet_row *removed, struct hfd_err *err);

/*
 * Removes a resource whose deletion is complete, and then its owner if that was the last thing it
 * waited for. Two levels at most: a nodepool, then its cluster.
 */
static hfd_rc remove_if_finalized(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                                  const struct hfd_fleet_row *row, bool *gone, struct hfd_err *err)
{
    struct hfd_conditions prev;
    struct hfd_agg_input in;
    hfd_rc rc;

    *gone = false;
    if (row->deleted_us == 0)
        return HFD_OK;
    rc = agg_input(tx, call, row, NULL, &prev, &in, err);
    if (rc != HFD_OK || !hfd_agg_finalized(&in))
        return rc;
    rc = remove_row(tx, call, row, err);
    if (rc != HFD_OK)
        return rc;
    *gone = true;
    return owner_follows(tx, call, row, err);
}

/* A nodepool was removed: was it the last thing that its cluster's deletion waited for? */
static hfd_rc owner_follows(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                            const struct hfd_fleet_row *removed, struct hfd_err *err)
{
    struct hfd_fleet_row owner;
    bool gone;
    hfd_rc rc;

    if (removed->kind != HFD_KIND_NODEPOOL)
        return HFD_OK;
    rc = hfd_fleet_row_get(tx, removed->owner_id, call->mem, &owner, err);
    if (rc == HFD_NOT_FOUND)
        return HFD_OK;
    return rc == HFD_OK ? remove_if_finalized(tx, call, &owner, &gone, err) : rc;
}

static hfd_rc mark_deleted(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                           struct hfd_fleet_row *row, struct hfd_err *err)
{
    hfd_rc rc;

    row->deleted_us = call->now_us;
    row->deleted_by = call->caller;
    rc = bump(tx, call, row->labels, row, err);
    return rc == HFD_OK ? changed(tx, call, HFD_FLEET_CHANGED, row, err) : rc;
}

typedef hfd_rc child_fn(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                        struct hfd_fleet_row *child, struct hfd_err *err);

/* Each nodepool of a cluster in memory of its own: together they may be larger than any request. */
static hfd_rc for_each_child(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                             hfd_slice cluster_id, child_fn *fn, struct hfd_err *err)
{
    struct hfd_fleet_list children;
    hfd_rc rc = hfd_fleet_row_children(tx, cluster_id, call->mem, &children, err);

    for (size_t i = 0; rc == HFD_OK && i < children.count; i++) {
        struct hfd_fleet_call own = *call;
        struct hfd_fleet_row child;
        struct hfd_arena scratch;

        hfd_arena_init(&scratch, SCRATCH_MAX_BYTES);
        own.mem = &scratch;
        rc = hfd_fleet_row_get(tx, children.rows[i].id, &scratch, &child, err);
        if (rc == HFD_OK)
            rc = fn(tx, &own, &child, err);
        hfd_arena_fini(&scratch);
    }
    return rc;
}

/* A cluster takes its nodepools with it, all at the same instant. */
static hfd_rc mark_child_deleted(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                                 struct hfd_fleet_row *child, struct hfd_err *err)
{
    bool gone;
    hfd_rc rc = child->deleted_us == 0 ? mark_deleted(tx, call, child, err) : HFD_OK;

    return rc == HFD_OK ? remove_if_finalized(tx, call, child, &gone, err) : rc;
}

static hfd_rc remove_child(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                           struct hfd_fleet_row *child, struct hfd_err *err)
{
    return remove_row(tx, call, child, err);
}

hfd_rc hfd_fleet_delete(struct hfd_txn *tx, const struct hfd_fleet_call *call, enum hfd_kind kind,
                        hfd_slice owner_id, hfd_slice id, struct hfd_fleet_row *out, bool *gone,
                        struct hfd_err *err)
{
    struct hfd_fleet_row again;
    hfd_rc rc;

    *gone = false;
    rc = hfd_fleet_get(tx, kind, owner_id, id, call->mem, out, err);
    if (rc == HFD_OK && out->deleted_us == 0)
        rc = mark_deleted(tx, call, out, err);
    if (rc == HFD_OK && kind == HFD_KIND_CLUSTER)
        rc = for_each_child(tx, call, id, mark_child_deleted, err);
    if (rc != HFD_OK)
        return rc;
    /* The last child may have taken the cluster with it. */
    rc = hfd_fleet_row_get(tx, id, call->mem, &again, err);
    if (rc == HFD_NOT_FOUND) {
        *gone = true;
        return HFD_OK;
    }
    return rc == HFD_OK ? remove_if_finalized(tx, call, out, gone, err) : rc;
}

hfd_rc hfd_fleet_force_delete(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                              enum hfd_kind kind, hfd_slice owner_id, hfd_slice id,
                              struct hfd_err *err)
{
    struct hfd_fleet_row row;
    hfd_rc rc;

    rc = hfd_fleet_get(tx, kind, owner_id, id, call->mem, &row, err);
    if (rc == HFD_OK && row.deleted_us == 0)
        return hfd_fail(err, HFD_DELETING, "%s '%.*s' is not in Finalizing state",
                        hfd_kind_name(kind), HFD_SLICE_FMT(id));
    if (rc == HFD_OK && kind == HFD_KIND_CLUSTER)
        rc = for_each_child(tx, call, id, remove_child, err);
    if (rc == HFD_OK)
        rc = remove_row(tx, call, &row, err);
    return rc == HFD_OK ? owner_follows(tx, call, &row, err) : rc;
}

/*
 * Equal but for the times that we keep ourselves. Secrets are sealed anew each time, so a report
 * that has any is never "the same".
 */
static hfd_rc same_content(const struct hfd_fleet_report *in, const struct hfd_report_row *prev,
                           struct hfd_arena *mem, bool *same, struct hfd_err *err)
{
    struct hfd_conditions old;
    hfd_rc rc;

    *same = false;
    if (in->secrets.len > 0 || prev->secrets.len > 0 || !hfd_slice_eq(in->data, prev->data) ||
        !hfd_slice_eq(in->metadata, prev->metadata))
        return HFD_OK;
    rc = hfd_conditions_parse(prev->conditions, mem, &old, err);
    if (rc != HFD_OK || old.count != in->conditions.count)
        return rc;
    for (size_t i = 0; i < old.count; i++) {
        const struct hfd_condition *a = &in->conditions.items[i], *b = &old.items[i];

        if (!hfd_slice_eq(a->type, b->type) || a->status != b->status ||
            !hfd_slice_eq(a->reason, b->reason) || !hfd_slice_eq(a->message, b->message))
            return HFD_OK;
    }
    *same = true;
    return HFD_OK;
}

/*
 * @param news  whether it says something else than the adapter said last, of another generation or
 * in another attempt
 */
static hfd_rc judge(const struct hfd_fleet_report *in, const struct hfd_fleet_row *row,
                    const struct hfd_report_row *prev, struct hfd_arena *mem,
                    enum hfd_verdict *verdict, bool *news, struct hfd_err *err)
{
    const struct hfd_condition *available =
        hfd_condition_find(&in->conditions, HFD_SLICE("Available"));
    const struct hfd_condition *finalized =
        hfd_condition_find(&in->conditions, HFD_SLICE("Finalized"));
    struct hfd_verdict_input v = {
        .generation = row->generation,
        .observed_generation = in->observed_generation,
        .observed_us = in->observed_us,
        .has_available = available != NULL,
        .has_applied = hfd_condition_find(&in->conditions, HFD_SLICE("Applied")) != NULL,
        .has_health = hfd_condition_find(&in->conditions, HFD_SLICE("Health")) != NULL,
        .available = available != NULL ? available->status : HFD_STATUS_UNKNOWN,
        .finalized_true = finalized != NULL && finalized->status == HFD_STATUS_TRUE,
        .deleting = row->deleted_us != 0,
        .has_prev = prev != NULL,
    };
    const char *missing = NULL;
    hfd_rc rc;

    *news = true;
    if (prev != NULL) {
        v.prev_generation = prev->observed_generation;
        v.prev_observed_us = prev->observed_us;
        rc = same_content(in, prev, mem, &v.same_content, err);
        if (rc != HFD_OK)
            return rc;
        *news = !v.same_content || in->observed_generation != prev->observed_generation ||
                prev->received_us == 0;
    }
    *verdict = hfd_report_verdict(&v, &missing);
    if (*verdict == HFD_VERDICT_REJECT)
        return hfd_fail_field(err, HFD_INVALID, "conditions",
                              "missing mandatory condition '%s': all adapters must report "
                              "Available, Applied, and Health",
                              missing);
    return HFD_OK;
}

/* The report as it is kept: a condition's transition time stays while its status does. */
static hfd_rc report_row(const struct hfd_fleet_call *call, const struct hfd_fleet_report *in,
                         const struct hfd_report_row *prev, struct hfd_report_row *out,
                         struct hfd_err *err)
{
    struct hfd_conditions cs = {.count = in->conditions.count}, old = {NULL, 0};
    hfd_rc rc;

    if (prev != NULL) {
        rc = hfd_conditions_parse(prev->conditions, call->mem, &old, err);
        if (rc != HFD_OK)
            return rc;
    }
    cs.items = hfd_arena_array(call->mem, cs.count, sizeof(*cs.items));
    if (cs.items == NULL)
        return no_memory(err);
    for (size_t i = 0; i < cs.count; i++) {
        const struct hfd_condition *was = hfd_condition_find(&old, in->conditions.items[i].type);

        cs.items[i] = in->conditions.items[i];
        cs.items[i].last_transition_us = was != NULL && was->status == cs.items[i].status
                                             ? was->last_transition_us
                                             : in->observed_us;
    }
    *out = (struct hfd_report_row){
        .fleet_id = in->id,
        .adapter = in->adapter,
        .observed_generation = in->observed_generation,
        .observed_us = in->observed_us,
        .received_us = call->now_us,
        .created_us = prev != NULL ? prev->created_us : in->observed_us,
        .data = in->data,
        .metadata = in->metadata,
    };
    if (in->secrets.len > 0) {
        HFD_ASSERT(call->fleet->seal != NULL);
        out->secrets =
            call->fleet->seal(call->fleet->seal_ctx, in->id, in->adapter, in->secrets, call->mem);
        if (out->secrets.p == NULL)
            return no_memory(err);
    }
    return store_conditions(&cs, true, call->mem, &out->conditions, err);
}

/* Whether the two say the same but for when they were confirmed last. */
static bool stands_still(const struct hfd_conditions *was, const struct hfd_conditions *is)
{
    if (was->count != is->count)
        return false;
    for (size_t i = 0; i < was->count; i++) {
        const struct hfd_condition *a = &was->items[i], *b = &is->items[i];

        if (!hfd_slice_eq(a->type, b->type) || a->status != b->status ||
            !hfd_slice_eq(a->reason, b->reason) || !hfd_slice_eq(a->message, b->message) ||
            a->observed_generation != b->observed_generation || a->created_us != b->created_us ||
            a->last_transition_us != b->last_transition_us)
            return false;
    }
    return true;
}

/*
 * Judges the resource with a report that is about to be written.
 * @param news  turns true when a condition is not what it was, but for its last_updated_time
 */
static hfd_rc aggregate(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                        struct hfd_fleet_row *row, const struct hfd_report_row *report, bool *news,
                        struct hfd_err *err)
{
    const struct hfd_fleet_row was = *row;
    struct hfd_conditions prev, next;
    struct hfd_agg_input in;
    hfd_rc rc;

    rc = agg_input(tx, call, row, report, &prev, &in, err);
    if (rc != HFD_OK)
        return rc;
    for (size_t i = 0; i < in.reports.count; i++)
        if (hfd_slice_eq(in.reports.items[i].adapter, report->adapter))
            in.event = &in.reports.items[i];
    HFD_ASSERT(in.event != NULL);
    if (hfd_agg_reported(&in, call->mem, &next) != HFD_OK)
        return no_memory(err);
    *news = *news || !stands_still(&prev, &next);
    note_ready(&next, row);
    rc = store_conditions(&next, false, call->mem, &row->conditions, err);
    if (rc != HFD_OK || hfd_slice_eq(was.conditions, row->conditions))
        return rc;
    rc = hfd_fleet_row_judged(tx, row, &was, err);
    if (rc != HFD_OK)
        return rc;
    return hfd_fleet_reindex(
        tx, row,
        &(struct hfd_fleet_reindex){.was = {row->labels, &prev}, .is = {row->labels, &next}},
        call->mem, err);
}

static bool is_required(const struct hfd_fleet_call *call, enum hfd_kind kind, hfd_slice adapter)
{
    const struct hfd_adapter_names *required = &call->fleet->required[kind];

    for (size_t i = 0; i < required->count; i++)
        if (hfd_slice_eq(required->items[i], adapter))
            return true;
    return false;
}

/*
 * Adapters' names are their own choice, so that how many there are needs a bound. Those that are
 * waited for always get in.
 */
static hfd_rc room_for(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                       const struct hfd_fleet_report *in, size_t bytes, struct hfd_err *err)
{
    struct hfd_report_list rows;
    struct hfd_arena scratch;
    size_t count = 1;
    hfd_rc rc;

    hfd_arena_init(&scratch, SCRATCH_MAX_BYTES);
    rc = hfd_report_row_heads(tx, in->id, &scratch, &rows, err);
    for (size_t i = 0; rc == HFD_OK && i < rows.count; i++) {
        if (hfd_slice_eq(rows.rows[i].adapter, in->adapter) ||
            is_required(call, in->kind, rows.rows[i].adapter))
            continue;
        count++;
        bytes += rows.rows[i].conditions.len;
    }
    hfd_arena_fini(&scratch);
    if (rc == HFD_OK && count > OTHERS_MAX)
        return hfd_fail_field(
            err, HFD_LIMIT, "adapter",
            "at most %d adapters that are not waited for can report on one resource", OTHERS_MAX);
    if (rc == HFD_OK && bytes > OTHERS_MAX_BYTES)
        return hfd_fail_field(err, HFD_LIMIT, "conditions",
                              "the conditions of adapters that are not waited for would take more "
                              "than %zu bytes on one resource",
                              OTHERS_MAX_BYTES);
    return rc;
}

/*
 * Tells on_change, unless it was steady before and nothing is new: most reports of a large fleet
 * confirm what is known, and each would have the rows of its driver resource read.
 */
static hfd_rc tell_news(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                        struct hfd_fleet_row *row, bool news, struct hfd_err *err)
{
    const int64_t mark = call->fleet->mark;
    bool steady;
    hfd_rc rc;

    if (!news && mark != 0 && row->told == mark)
        return HFD_OK;
    rc = tell(tx, call, HFD_FLEET_CHANGED, row, &steady, err);
    if (rc != HFD_OK || row->told == (steady ? mark : 0))
        return rc;
    row->told = steady ? mark : 0;
    return hfd_fleet_row_judged(tx, row, row, err);
}

hfd_rc hfd_fleet_report(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                        const struct hfd_fleet_report *in, enum hfd_verdict *verdict,
                        struct hfd_report_row *out, struct hfd_err *err)
{
    struct hfd_report_row before, *prev = &before;
    struct hfd_fleet_row row;
    bool news, gone;
    hfd_rc rc;

    *out = (struct hfd_report_row){0};
    rc = hfd_fleet_get(tx, in->kind, in->owner_id, in->id, call->mem, &row, err);
    if (rc != HFD_OK)
        return rc;
    rc = hfd_report_row_get(tx, &(struct hfd_report_key){in->id, in->adapter}, call->mem, &before,
                            err);
    if (rc == HFD_NOT_FOUND)
        prev = NULL;
    else if (rc != HFD_OK)
        return rc;
    rc = judge(in, &row, prev, call->mem, verdict, &news, err);
    if (rc != HFD_OK || *verdict == HFD_VERDICT_DISCARD)
        return rc;
    if (*verdict == HFD_VERDICT_REPEAT) {
        HFD_ASSERT(prev != NULL); /* only a report that is there can be repeated */
        *out = *prev;
        return HFD_OK;
    }
    rc = report_row(call, in, prev, out, err);
    if (rc == HFD_OK && !is_required(call, in->kind, in->adapter) &&
        (prev == NULL || out->conditions.len > prev->conditions.len))
        rc = room_for(tx, call, in, out->conditions.len, err);
    if (rc == HFD_OK)
        rc = aggregate(tx, call, &row, out, &news, err);
    if (rc == HFD_OK)
        rc = hfd_report_row_put(tx, out, err);
    if (rc == HFD_OK)
        rc = tell_news(tx, call, &row, news, err);
    return rc == HFD_OK ? remove_if_finalized(tx, call, &row, &gone, err) : rc;
}
