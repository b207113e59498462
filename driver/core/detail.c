/* See detail.h. */
#include "driver/core/detail.h"

#include "driver/core/driver.h"
#include "driver/core/outcome.h"
#include "driver/core/past.h"
#include "driver/core/protect.h"
#include "driver/health/intake.h"
#include "store/rows_history.h"

#define INPUT_MAX_BYTES ((size_t)32 * 1024 * 1024)

static hfd_rc fail_nomem(const struct hfd_ctx *c)
{
    return hfd_fail_nomem(c->err, "read a resource");
}

/* ---- what was ordered ---- */

/* {"name": ..., "spec": ..., "labels": ...}: a part as the input has it. */
static hfd_rc add_part(const struct hfd_ctx *c, const struct hfd_fleet_row *row, struct hfd_buf *b)
{
    hfd_slice labels = HFD_SLICE("");
    hfd_rc rc = hfd_labels_given(row->labels, c->mem, &labels, c->err);

    hfd_buf_member_str(b, "{\"name\":", row->name);
    hfd_buf_lit(b, ",\"spec\":");
    hfd_buf_add(b, row->spec);
    hfd_buf_lit(b, ",\"labels\":");
    hfd_buf_add(b, labels);
    hfd_buf_addc(b, '}');
    return rc;
}

/* The parts that the last input had, the main one first. */
struct ordered {
    struct hfd_fleet_row *rows;
    size_t count;
};

static hfd_rc read_ordered(const struct hfd_ctx *c, const struct hfd_parts *parts,
                           struct ordered *out)
{
    hfd_rc rc = HFD_OK;

    out->count = 0;
    out->rows = hfd_arena_array(c->mem, parts->count + 1, sizeof(*out->rows));
    if (out->rows == NULL)
        return fail_nomem(c);
    for (size_t i = 0; rc == HFD_OK && i < parts->count; i++) {
        if (parts->items[i].row.leaving)
            continue;
        rc = hfd_fleet_row_get(c->tx, parts->items[i].row.fleet_id, c->mem, &out->rows[out->count],
                               c->err);
        out->count += rc == HFD_OK;
        rc = rc == HFD_NOT_FOUND ? HFD_OK : rc;
    }
    return rc;
}

static hfd_rc add_cluster(const struct hfd_ctx *c, const struct ordered *o, struct hfd_buf *b)
{
    hfd_rc rc = HFD_OK;
    bool first = true;

    for (size_t i = 0; rc == HFD_OK && i < o->count; i++) {
        if (o->rows[i].kind != HFD_KIND_CLUSTER)
            continue;
        hfd_buf_lit(b, "\"cluster\":");
        rc = add_part(c, &o->rows[i], b);
        hfd_buf_addc(b, ',');
    }
    hfd_buf_lit(b, "\"nodepools\":[");
    for (size_t i = 0; rc == HFD_OK && i < o->count; i++) {
        if (o->rows[i].kind != HFD_KIND_NODEPOOL)
            continue;
        if (!first)
            hfd_buf_addc(b, ',');
        first = false;
        rc = add_part(c, &o->rows[i], b);
    }
    hfd_buf_addc(b, ']');
    return rc;
}

static hfd_rc add_nodepool(const struct hfd_ctx *c, const struct ordered *o, struct hfd_buf *b)
{
    if (o->count == 0)
        return HFD_OK;
    hfd_buf_member_str(b, "\"cluster_id\":", o->rows[0].owner_id);
    hfd_buf_lit(b, ",\"nodepool\":");
    return add_part(c, &o->rows[0], b);
}

static hfd_rc make_input(const struct hfd_ctx *c, const struct ordered *o, bool protect,
                         struct hfd_detail *out)
{
    struct hfd_buf b;
    hfd_rc rc;

    hfd_buf_init(&b, INPUT_MAX_BYTES);
    hfd_buf_member_str(&b, "{\"type\":", out->item.type);
    hfd_buf_lit(&b, ",\"driver\":{\"values\":{");
    if (protect && o->count > 0)
        hfd_buf_lit(&b, "\"protect\":true,");
    rc = out->item.kind == HFD_KIND_CLUSTER ? add_cluster(c, o, &b) : add_nodepool(c, o, &b);
    hfd_buf_lit(&b, "}}}");
    if (rc == HFD_OK)
        return hfd_buf_to_arena(&b, c->mem, &out->input, c->err);
    hfd_buf_fini(&b);
    return rc;
}

/* The value of one label; empty without it, in mem. @return as hfd_labels_given */
static hfd_rc label_value(hfd_slice labels, const char *key, struct hfd_arena *mem, hfd_slice *out,
                          struct hfd_err *err)
{
    const char *value;
    json_t *all;
    hfd_rc rc = hfd_json_parse(labels, &all, err);

    if (rc != HFD_OK)
        return rc;
    value = json_string_value(json_object_get(all, key));
    *out = hfd_arena_dup(mem, hfd_slice_of(value != NULL ? value : ""));
    json_decref(all);
    return out->p != NULL ? HFD_OK : hfd_fail_nomem(err, "read labels");
}

static hfd_rc read_order(const struct hfd_ctx *c, struct hfd_detail *out)
{
    struct ordered o;
    hfd_rc rc = read_ordered(c, &out->parts, &o);

    if (rc != HFD_OK)
        return rc;
    if (o.count > 0) {
        out->created_by = o.rows[0].created_by;
        out->updated_by = o.rows[0].updated_by;
    }
    rc = label_value(out->item.labels, "app", c->mem, &out->app, c->err);
    if (rc == HFD_OK)
        rc = label_value(out->item.labels, "env", c->mem, &out->env, c->err);
    return rc == HFD_OK ? make_input(c, &o, hfd_slice_is(out->protected_by, "protect"), out) : rc;
}

/* ---- adapters ---- */

/* The adapters of one part. */
struct adapters {
    const struct hfd_ctx *c;
    const struct hfd_resource_row *row;
    const struct hfd_part *part;
    struct hfd_report_list reports; /* for their times */
    struct hfd_milestones reached, usual;
    struct hfd_detail *out;
};

static int64_t milestone_of(const struct adapters *a, const struct hfd_milestones *all,
                            hfd_slice adapter)
{
    const hfd_slice name = hfd_milestone_name(a->part->view.kind, adapter, a->c->mem);
    const struct hfd_milestone *m = name.p != NULL ? hfd_milestone_find(all, name) : NULL;

    return m != NULL ? m->at_us : 0;
}

/* Since when its condition on the part stands as it is. */
static int64_t since_of(const struct adapters *a, hfd_slice adapter)
{
    const hfd_slice type = hfd_adapter_condition_type(adapter, a->c->mem);
    const struct hfd_condition *c =
        type.p != NULL ? hfd_condition_find(&a->part->view.conditions, type) : NULL;

    return c != NULL ? c->last_transition_us : 0;
}

static void add_report(const struct adapters *a, const struct hfd_part_report *r, bool deleting,
                       struct hfd_detail_adapter *out)
{
    const struct hfd_condition *c = hfd_condition_find(
        &r->conditions, deleting ? HFD_SLICE("Finalized") : HFD_SLICE("Available"));

    out->reported = true;
    out->generation = r->observed_generation;
    out->status = c != NULL ? c->status : HFD_STATUS_UNKNOWN;
    out->reason = c != NULL ? c->reason : HFD_SLICE("");
    out->message = c != NULL ? hfd_outcome_words_of(r, c) : HFD_SLICE("");
    for (size_t i = 0; i < a->reports.count; i++)
        if (hfd_slice_eq(a->reports.rows[i].adapter, r->adapter))
            out->reported_us = a->reports.rows[i].observed_us;
}

static void add_adapter(const struct adapters *a, hfd_slice name, bool required)
{
    const bool deleting = a->row->state == HFD_STATE_DELETING || a->part->view.leaving;
    struct hfd_lack lack;
    const bool done = !hfd_outcome_lacks(&a->part->view, name, deleting, &lack);
    struct hfd_detail_adapter *out = &a->out->adapters[a->out->adapter_count++];

    *out = (struct hfd_detail_adapter){
        .part = a->part,
        .name = name,
        .required = required,
        .done = done,
        .reason = HFD_SLICE(""),
        .message = HFD_SLICE(""),
        .took_us = milestone_of(a, &a->reached, name),
        .usual_us = milestone_of(a, &a->usual, name),
    };
    if (lack.report == NULL)
        return;
    add_report(a, lack.report, deleting, out);
    out->since_us = since_of(a, name);
    /* Milestones are gone once the operation has ended. */
    if (out->took_us == 0 && out->done && !deleting && out->since_us > a->row->op_started_us)
        out->took_us = out->since_us - a->row->op_started_us;
}

static hfd_rc add_adapters(struct adapters *a)
{
    const struct hfd_part_view *view = &a->part->view;
    const struct hfd_adapter_names *required = &view->required;
    hfd_rc rc =
        hfd_report_row_heads(a->c->tx, a->part->row.fleet_id, a->c->mem, &a->reports, a->c->err);

    if (rc != HFD_OK || !view->exists)
        return rc;
    for (size_t i = 0; i < required->count; i++)
        add_adapter(a, required->items[i], true);
    for (size_t i = 0; i < view->report_count; i++) {
        bool known = false;

        for (size_t k = 0; k < required->count; k++)
            known = known || hfd_slice_eq(required->items[k], view->reports[i].adapter);
        if (!known)
            add_adapter(a, view->reports[i].adapter, false);
    }
    return HFD_OK;
}

/* An operation that has ended keeps no usual times: those of the next one like it. */
static hfd_rc read_usual(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                         struct hfd_milestones *out)
{
    const struct hfd_past_key key = {row->kind, row->op, row->op_size};
    struct hfd_forecast_row forecast;
    hfd_rc rc;

    hfd_milestones_parse(row->op_usual, out);
    if (row->op_plan.len > 0)
        return HFD_OK;
    rc = hfd_forecast_row_get(c->tx, &key, c->mem, &forecast, c->err);
    if (rc == HFD_OK)
        hfd_milestones_parse(forecast.usual, out);
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

static hfd_rc read_adapters(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                            struct hfd_detail *out)
{
    struct adapters a = {.c = c, .row = row, .out = out};
    size_t max = 1;
    hfd_rc rc = read_usual(c, row, &a.usual);

    hfd_milestones_parse(row->op_milestones, &a.reached);
    for (size_t i = 0; i < out->parts.count; i++)
        max += out->parts.items[i].view.report_count + out->parts.items[i].view.required.count;
    out->adapters = hfd_arena_array(c->mem, max, sizeof(*out->adapters));
    if (out->adapters == NULL)
        return fail_nomem(c);
    for (size_t i = 0; rc == HFD_OK && i < out->parts.count; i++) {
        a.part = &out->parts.items[i];
        rc = add_adapters(&a);
    }
    return rc;
}

/* ---- observers ---- */

static hfd_rc read_health(const struct hfd_ctx *c, struct hfd_detail *out)
{
    const struct hfd_adapter_names *observers = &c->driver->fleet.observers;
    const struct hfd_fleet_call call = hfd_ctx_fleet_call(c, HFD_SLICE_NONE);
    hfd_rc rc = HFD_OK;

    if (observers->count == 0 || out->item.kind != HFD_KIND_CLUSTER ||
        out->item.cluster_id.len == 0)
        return HFD_OK;
    out->health = hfd_arena_array(c->mem, observers->count, sizeof(*out->health));
    if (out->health == NULL)
        return fail_nomem(c);
    for (size_t i = 0; rc == HFD_OK && i < observers->count; i++) {
        const struct hfd_health_key key = {out->item.cluster_id, observers->items[i]};
        struct hfd_detail_health *h = &out->health[out->health_count];

        h->adapter = key.adapter;
        rc = hfd_health_get(c->tx, &call, &key, &h->view, c->err);
        out->health_count += rc == HFD_OK;
        rc = rc == HFD_NOT_FOUND ? HFD_OK : rc;
    }
    return rc;
}

/* ---- a resource ---- */

static hfd_rc read_there(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                         struct hfd_detail *out)
{
    hfd_rc rc = hfd_overview_item_of(c, row, &out->item);

    out->incarnation = row->incarnation;
    out->instance = row->instance;
    if (out->item.started_us != 0)
        out->first_estimate_us =
            row->op_expected_us != 0 ? row->op_expected_us : row->op_estimate_us;
    if (rc == HFD_OK)
        rc = hfd_parts_load(c, row->guresid, &out->parts);
    if (rc == HFD_OK)
        rc = hfd_protect_read(c, row, &out->protected_by);
    if (rc == HFD_OK)
        rc = read_order(c, out);
    if (rc == HFD_OK)
        rc = read_adapters(c, row, out);
    return rc == HFD_OK ? read_health(c, out) : rc;
}

static void tell_removed(const struct hfd_tombstone_row *stone, struct hfd_detail *out)
{
    out->incarnation = stone->incarnation;
    out->item = (struct hfd_overview_item){
        .guresid = stone->id,
        .type = stone->type,
        .name = stone->name,
        .kind = stone->kind,
        .state = HFD_STATE_ABSENT,
        .since_us = stone->removed_us,
        .code = HFD_SLICE(""),
        .message = HFD_SLICE(""),
        .health = HFD_SLICE(""),
        .labels = HFD_SLICE("{}"),
        .cluster_id =
            hfd_backend_id_is_given(stone->cluster_id) ? stone->cluster_id : HFD_SLICE(""),
        .created_us = stone->created_us,
    };
}

hfd_rc hfd_detail_read(const struct hfd_ctx *c, hfd_slice guresid, struct hfd_detail *out)
{
    struct hfd_resource_row row;
    hfd_rc rc;

    *out = (struct hfd_detail){
        .input = HFD_SLICE("{}"), .created_by = HFD_SLICE(""), .updated_by = HFD_SLICE("")};
    rc = hfd_history_read(c, guresid, &out->history);
    if (rc != HFD_OK)
        return rc;
    out->is_there = out->history.is_there;
    if (!out->is_there) {
        tell_removed(&out->history.removed, out);
        return HFD_OK;
    }
    rc = hfd_resource_row_get(c->tx, guresid, c->mem, &row, c->err);
    return rc == HFD_OK ? read_there(c, &row, out) : rc;
}
