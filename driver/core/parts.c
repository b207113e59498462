/* See parts.h. */
#include "driver/core/parts_int.h"

#include "driver/base/jsonx.h"
#include "driver/fleet/brief.h"

/* Memory to read one part with its reports. */
#define SCRATCH_MAX_BYTES ((size_t)128 * 1024 * 1024)
/* Kept of a message: more than any sentence quotes. */
#define QUOTED_MAX_BYTES 1024

static hfd_rc fail_nomem(const struct hfd_ctx *c)
{
    return hfd_fail_nomem(c->err, "read the parts of a resource");
}

/* Copies conditions, with their messages cut: all parts together may have more text than fits. */
static hfd_rc keep_conditions(const struct hfd_ctx *c, const struct hfd_conditions *all,
                              bool of_report, struct hfd_conditions *out)
{
    *out = (struct hfd_conditions){hfd_arena_array(c->mem, all->count, sizeof(*out->items)), 0};
    if (out->items == NULL)
        return fail_nomem(c);
    for (size_t i = 0; i < all->count; i++) {
        struct hfd_condition k = all->items[i];

        if (of_report && !hfd_condition_is_judged(k.type))
            continue;
        k.message.len = k.message.len < QUOTED_MAX_BYTES ? k.message.len : QUOTED_MAX_BYTES;
        k.type = hfd_arena_dup(c->mem, k.type);
        k.reason = hfd_arena_dup(c->mem, k.reason);
        k.message = hfd_arena_dup(c->mem, k.message);
        if (k.type.p == NULL || k.reason.p == NULL || k.message.p == NULL)
            return fail_nomem(c);
        out->items[out->count++] = k;
    }
    return HFD_OK;
}

static hfd_rc load_reports(const struct hfd_ctx *c, const struct hfd_report_list *rows,
                           struct hfd_arena *scratch, struct hfd_part_view *view)
{
    struct hfd_part_report *reports = hfd_arena_array(c->mem, rows->count, sizeof(*reports));
    hfd_rc rc = HFD_OK;

    if (reports == NULL)
        return fail_nomem(c);
    for (size_t i = 0; rc == HFD_OK && i < rows->count; i++) {
        const struct hfd_report_row *r = &rows->rows[i];
        struct hfd_conditions all;

        reports[i] = (struct hfd_part_report){.adapter = hfd_arena_dup(c->mem, r->adapter),
                                              .observed_generation = r->observed_generation,
                                              .received_us = r->received_us};
        if (reports[i].adapter.p == NULL)
            return fail_nomem(c);
        rc = hfd_conditions_parse(r->conditions, scratch, &all, c->err);
        if (rc == HFD_OK)
            rc = keep_conditions(c, &all, true, &reports[i].conditions);
    }
    view->reports = reports;
    view->report_count = rows->count;
    return rc;
}

/* Copies a row without its documents. */
static hfd_rc keep_row(const struct hfd_ctx *c, const struct hfd_fleet_row *row,
                       struct hfd_fleet_row *out)
{
    *out = (struct hfd_fleet_row){
        .id = hfd_arena_dup(c->mem, row->id),
        .kind = row->kind,
        .owner_id = hfd_arena_dup(c->mem, row->owner_id),
        .name = hfd_arena_dup(c->mem, row->name),
        .generation = row->generation,
        .ready = row->ready,
        .created_us = row->created_us,
        .updated_us = row->updated_us,
        .deleted_us = row->deleted_us,
    };
    return out->id.p != NULL && out->owner_id.p != NULL && out->name.p != NULL ? HFD_OK
                                                                               : fail_nomem(c);
}

hfd_rc hfd_part_see_unready(const struct hfd_ctx *c, const struct hfd_fleet_row *row,
                            struct hfd_part *p)
{
    p->view.exists = true;
    p->view.deleting = row->deleted_us != 0;
    p->view.generation = row->generation;
    return keep_row(c, row, &p->fleet);
}

hfd_rc hfd_part_see_fleet(const struct hfd_ctx *c, const struct hfd_fleet_row *row,
                          struct hfd_arena *scratch, struct hfd_part *p)
{
    struct hfd_conditions all;
    hfd_rc rc = hfd_part_see_unready(c, row, p);

    if (rc != HFD_OK)
        return rc;
    rc = hfd_conditions_parse(row->conditions, scratch, &all, c->err);
    return rc == HFD_OK ? keep_conditions(c, &all, false, &p->view.conditions) : rc;
}

void hfd_part_see_row(struct hfd_part *p)
{
    p->view = (struct hfd_part_view){
        .kind = p->row.kind,
        .id = hfd_backend_id_is_given(p->row.fleet_id) ? p->row.fleet_id : HFD_SLICE(""),
        .name = p->row.name,
        .pending = p->row.pending,
        .wanted_generation = p->row.generation,
        .leaving = p->row.leaving,
    };
}

static hfd_rc load_fleet(const struct hfd_ctx *c, struct hfd_arena *scratch, struct hfd_part *p)
{
    struct hfd_report_list reports;
    struct hfd_fleet_row row;
    hfd_rc rc;

    rc = hfd_fleet_row_get(c->tx, p->row.fleet_id, scratch, &row, c->err);
    if (rc == HFD_NOT_FOUND)
        return HFD_OK;
    if (rc == HFD_OK)
        rc = hfd_part_see_fleet(c, &row, scratch, p);
    if (rc == HFD_OK)
        rc = hfd_report_row_heads(c->tx, p->row.fleet_id, scratch, &reports, c->err);
    return rc == HFD_OK ? load_reports(c, &reports, scratch, &p->view) : rc;
}

static hfd_rc load_part(const struct hfd_ctx *c, struct hfd_part *p)
{
    struct hfd_arena scratch;
    hfd_rc rc;

    hfd_part_see_row(p);
    hfd_arena_init(&scratch, SCRATCH_MAX_BYTES);
    rc = load_fleet(c, &scratch, p);
    hfd_arena_fini(&scratch);
    return rc;
}

hfd_rc hfd_parts_load(const struct hfd_ctx *c, hfd_slice guresid, struct hfd_parts *out)
{
    struct hfd_part_list rows;
    hfd_rc rc;

    *out = (struct hfd_parts){NULL, 0};
    rc = hfd_part_row_list(c->tx, guresid, c->mem, &rows, c->err);
    if (rc != HFD_OK || rows.count == 0)
        return rc;
    out->items = hfd_arena_array(c->mem, rows.count, sizeof(*out->items));
    if (out->items == NULL)
        return fail_nomem(c);
    out->count = rows.count;
    for (size_t i = 0; rc == HFD_OK && i < rows.count; i++) {
        out->items[i].row = rows.rows[i];
        rc = load_part(c, &out->items[i]);
    }
    return rc;
}

const struct hfd_part *hfd_parts_main(const struct hfd_parts *parts)
{
    return parts->count > 0 ? &parts->items[0] : NULL;
}

bool hfd_parts_any_exists(const struct hfd_parts *parts)
{
    for (size_t i = 0; i < parts->count; i++)
        if (parts->items[i].view.exists)
            return true;
    return false;
}

/* ---- writing ---- */

struct hfd_part_row hfd_part_row_of(hfd_slice guresid, const struct hfd_backend_written *w)
{
    return (struct hfd_part_row){.guresid = guresid,
                                 .fleet_id = w->row.id,
                                 .kind = w->row.kind,
                                 .name = w->row.name,
                                 .generation = w->row.generation,
                                 .pending = w->pending};
}

hfd_rc hfd_part_record(const struct hfd_ctx *c, hfd_slice guresid,
                       const struct hfd_backend_written *w)
{
    const struct hfd_part_row part = hfd_part_row_of(guresid, w);

    return hfd_part_row_put(c->tx, &part, c->err);
}

hfd_rc hfd_parts_seek(const struct hfd_ctx *c, const struct hfd_call *call, enum hfd_kind kind,
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

hfd_rc hfd_parts_schedule(const struct hfd_ctx *c, hfd_slice guresid, enum hfd_backend_goal goal)
{
    const struct hfd_backend_subject s = hfd_ctx_subject(c, guresid);
    hfd_rc rc = hfd_backend_schedule(c->driver->backend_ops, c->tx, &s, goal, c->err);

    return rc == HFD_OK ? hfd_ctx_wake_worker(c) : rc;
}

/* ---- orphans ---- */

hfd_rc hfd_parts_is_orphan(const struct hfd_ctx *c, hfd_slice guresid,
                           const struct hfd_fleet_row *row, bool *yes)
{
    struct hfd_part_row part;
    hfd_slice label = HFD_SLICE_NONE;
    json_t *labels;
    hfd_rc rc;

    *yes = false;
    rc = hfd_json_parse(row->labels, &labels, c->err);
    if (rc != HFD_OK)
        return rc;
    rc =
        hfd_json_get_string(HFD_JSON_OPTIONAL(labels, "labels", HFD_GURESID_LABEL), &label, c->err);
    *yes = rc == HFD_OK && hfd_slice_eq(label, guresid);
    json_decref(labels);
    if (rc != HFD_OK || !*yes)
        return rc;
    rc = hfd_part_row_by_fleet(c->tx, row->id, c->mem, &part, c->err);
    *yes = rc == HFD_NOT_FOUND;
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

hfd_rc hfd_parts_find_orphan(const struct hfd_ctx *c, hfd_slice guresid,
                             const struct hfd_fleet_target *target, struct hfd_fleet_row *out,
                             bool *yes)
{
    hfd_rc rc;

    *yes = false;
    rc = hfd_fleet_row_get(c->tx, target->id, c->mem, out, c->err);
    if (rc == HFD_NOT_FOUND || (rc == HFD_OK && out->kind != target->kind))
        return HFD_OK;
    return rc == HFD_OK ? hfd_parts_is_orphan(c, guresid, out, yes) : rc;
}

hfd_rc hfd_parts_adopt(const struct hfd_ctx *c, hfd_slice guresid,
                       const struct hfd_fleet_target *target)
{
    struct hfd_backend_written w = {.pending = false};
    bool ours;
    hfd_rc rc = hfd_parts_find_orphan(c, guresid, target, &w.row, &ours);

    return rc == HFD_OK && ours ? hfd_part_record(c, guresid, &w) : rc;
}
