/* See parts.h. */
#include "driver/core/parts.h"

#include "driver/base/foreign.h"
#include "driver/core/drift.h"
#include "driver/core/driver.h"
#include "driver/core/outcome.h"
#include "driver/core/preview.h"
#include "driver/core/protect.h"
#include "driver/fleet/fleet.h"
#include "driver/fleet/condition.h"
#include "store/rows_fleet.h"
#include "store/rows_report.h"
#include "store/rows_resource.h"

#include <stdlib.h>

/* ---- parts ---- */

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
        k.message.len = hfd_foreign_cut(k.message, QUOTED_MAX_BYTES);
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
        rc = hfd_fleet_conditions(c->tx, r->conditions, scratch, &all, c->err);
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

/* The same without conditions: those of a part that is not ready say nothing before a report. */
static hfd_rc part_see_unready(const struct hfd_ctx *c, const struct hfd_fleet_row *row,
                               struct hfd_part *p)
{
    p->view.exists = true;
    p->view.deleting = row->deleted_us != 0;
    p->view.generation = row->generation;
    return keep_row(c, row, &p->fleet);
}

/* Fills in p->fleet and p->view from HyperFleet's row, but for its reports. */
static hfd_rc part_see_fleet(const struct hfd_ctx *c, const struct hfd_fleet_row *row,
                             struct hfd_arena *scratch, struct hfd_part *p)
{
    struct hfd_conditions all;
    hfd_rc rc = part_see_unready(c, row, p);

    if (rc != HFD_OK)
        return rc;
    rc = hfd_fleet_conditions(c->tx, row->conditions, scratch, &all, c->err);
    return rc == HFD_OK ? keep_conditions(c, &all, false, &p->view.conditions) : rc;
}

/* Fills in p->view from p->row. */
static void part_see_row(struct hfd_part *p)
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

/* ---- the adapters that decide ---- */

/* "Required adapters not reporting Available=True: [dns, validation]. ...": the next name. */
static bool next_missing(hfd_slice *rest, hfd_slice *name)
{
    const char *end = rest->len > 0 ? memchr(rest->p, ',', rest->len) : NULL;
    const size_t len = end != NULL ? (size_t)(end - rest->p) : rest->len;

    *name = hfd_slice_trim((hfd_slice){rest->p, len});
    *rest = (hfd_slice){rest->p + len + (end != NULL), rest->len - len - (end != NULL)};
    return name->len > 0;
}

/* The list in the message of Ready, or of Reconciled; empty = it has none. */
static hfd_slice missing_of(const struct hfd_conditions *cs)
{
    const struct hfd_condition *c = hfd_condition_find(cs, HFD_SLICE("Ready"));
    const char *from, *to;

    if (c == NULL)
        c = hfd_condition_find(cs, HFD_SLICE("Reconciled"));
    if (c == NULL || !hfd_slice_starts(c->message, HFD_SLICE("Required adapters not reporting ")))
        return HFD_SLICE("");
    from = memchr(c->message.p, '[', c->message.len);
    to = memchr(c->message.p, ']', c->message.len);
    return from != NULL && to != NULL && from < to ? (hfd_slice){from + 1, (size_t)(to - from) - 1}
                                                   : HFD_SLICE("");
}

hfd_rc hfd_part_deciders(const struct hfd_ctx *c, const struct hfd_part_seen *seen,
                         const struct hfd_adapter_names *reported, struct hfd_adapter_names *out)
{
    const struct hfd_adapter_names settings = c->driver->fleet.required[seen->kind];
    hfd_slice missing = missing_of(seen->conditions), name, *names;
    struct hfd_adapter_names found;

    *out = settings;
    if (!hfd_driver_is_remote(c->driver))
        return HFD_OK;
    names = hfd_arena_array(c->mem, reported->count + missing.len / 2 + 1, sizeof(*names));
    if (names == NULL)
        return fail_nomem(c);
    found = (struct hfd_adapter_names){names, 0};
    for (size_t i = 0; i < reported->count; i++) {
        const hfd_slice type = hfd_adapter_condition_type(reported->items[i], c->mem);

        if (type.p == NULL)
            return fail_nomem(c);
        if (hfd_condition_find(seen->conditions, type) != NULL)
            names[found.count++] = reported->items[i];
    }
    while (next_missing(&missing, &name))
        if (!hfd_adapter_names_have(found, name)) {
            names[found.count] = hfd_arena_dup(c->mem, name);
            if (names[found.count++].p == NULL)
                return fail_nomem(c);
        }
    for (size_t i = 0, placed = 0; i < settings.count; i++) /* in the order of the settings */
        for (size_t k = placed; k < found.count; k++)
            if (hfd_slice_eq(names[k], settings.items[i])) {
                name = names[k];
                memmove(&names[placed + 1], &names[placed], (k - placed) * sizeof(*names));
                names[placed++] = name;
            }
    if (found.count > 0)
        *out = found;
    else if (seen->ready || settings.count == 0)
        *out = *reported;
    return HFD_OK;
}

static hfd_rc load_deciders(const struct hfd_ctx *c, struct hfd_part *p)
{
    const struct hfd_part_seen seen = {p->view.kind, p->fleet.ready, &p->view.conditions};
    hfd_slice *names = hfd_arena_array(c->mem, p->view.report_count + 1, sizeof(*names));
    const struct hfd_adapter_names reported = {names, p->view.report_count};

    if (names == NULL)
        return fail_nomem(c);
    for (size_t i = 0; i < p->view.report_count; i++)
        names[i] = p->view.reports[i].adapter;
    return hfd_part_deciders(c, &seen, &reported, &p->view.required);
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
        rc = part_see_fleet(c, &row, scratch, p);
    if (rc == HFD_OK)
        rc = hfd_report_row_heads(c->tx, p->row.fleet_id, scratch, &reports, c->err);
    if (rc == HFD_OK)
        rc = load_reports(c, &reports, scratch, &p->view);
    return rc == HFD_OK ? load_deciders(c, p) : rc;
}

static hfd_rc load_part(const struct hfd_ctx *c, struct hfd_part *p)
{
    struct hfd_arena scratch;
    hfd_rc rc;

    part_see_row(p);
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

static bool has_part(const struct hfd_parts *parts, hfd_slice fleet_id)
{
    for (size_t i = 0; i < parts->count; i++)
        if (hfd_slice_eq(parts->items[i].row.fleet_id, fleet_id))
            return true;
    return false;
}

hfd_rc hfd_parts_load_strangers(const struct hfd_ctx *c, const struct hfd_parts *parts,
                                struct hfd_parts *out)
{
    const struct hfd_part *main = hfd_parts_main(parts);
    struct hfd_fleet_list rows;
    hfd_rc rc;

    *out = (struct hfd_parts){NULL, 0};
    if (main == NULL || main->row.kind != HFD_KIND_CLUSTER || !main->view.exists)
        return HFD_OK;
    rc = hfd_fleet_row_children(c->tx, main->row.fleet_id, c->mem, &rows, c->err);
    if (rc == HFD_OK)
        out->items = hfd_arena_array(c->mem, rows.count + 1, sizeof(*out->items));
    if (rc == HFD_OK && out->items == NULL)
        return fail_nomem(c);
    for (size_t i = 0; rc == HFD_OK && i < rows.count; i++) {
        struct hfd_part *p = &out->items[out->count];

        if (has_part(parts, rows.rows[i].id))
            continue;
        out->count++;
        rc = hfd_part_row_by_fleet(c->tx, rows.rows[i].id, c->mem, &p->row, c->err);
        if (rc == HFD_NOT_FOUND) {
            p->row = (struct hfd_part_row){.guresid = HFD_SLICE(""),
                                           .fleet_id = rows.rows[i].id,
                                           .kind = HFD_KIND_NODEPOOL,
                                           .name = rows.rows[i].name};
            rc = HFD_OK;
        }
        if (rc == HFD_OK)
            rc = load_part(c, p);
    }
    return rc;
}

const struct hfd_part *hfd_parts_main(const struct hfd_parts *parts)
{
    return parts->count > 0 ? &parts->items[0] : NULL;
}

/* ---- writing ---- */

/* The row of a part that was just written. */
static struct hfd_part_row part_row_of(hfd_slice guresid, const struct hfd_backend_written *w)
{
    return (struct hfd_part_row){.guresid = guresid,
                                 .fleet_id = w->row.id,
                                 .kind = w->row.kind,
                                 .name = w->row.name,
                                 .generation = w->row.generation,
                                 .pending = w->pending,
                                 .aside = HFD_SLICE("")};
}

hfd_rc hfd_part_record(const struct hfd_ctx *c, hfd_slice guresid,
                       const struct hfd_backend_written *w)
{
    const struct hfd_part_row part = part_row_of(guresid, w);

    return hfd_part_row_put(c->tx, &part, c->err);
}

hfd_rc hfd_part_adopted(const struct hfd_ctx *c, const struct hfd_fleet_row *row)
{
    const struct hfd_fleet_call call = hfd_ctx_fleet_call(c, HFD_SLICE_NONE);
    const struct hfd_fleet_change change = {.id = row->owner_id};

    return row->owner_id.len > 0 ? hfd_fleet_note_change(&call, &change, c->err) : HFD_OK;
}

hfd_rc hfd_parts_schedule(const struct hfd_ctx *c, hfd_slice guresid, enum hfd_backend_goal goal)
{
    const struct hfd_backend_subject s = hfd_ctx_subject(c, guresid);
    hfd_rc rc = hfd_backend_schedule(c->driver->backend_ops, c->tx, &s, goal, c->err);

    return rc == HFD_OK ? hfd_ctx_wake_worker(c) : rc;
}

/* ---- orphans ---- */

/*
 * Tells whether a cluster or nodepool is an orphan to adopt. It has the label of this GUResID, no
 * other server's, and is a part of no resource. Thread: any.
 */
static hfd_rc parts_is_orphan(const struct hfd_ctx *c, hfd_slice guresid,
                              const struct hfd_fleet_row *row, bool *yes)
{
    struct hfd_fleet_claim claim;
    struct hfd_part_row part;
    hfd_rc rc;

    *yes = false;
    rc = hfd_fleet_claim_read(&c->driver->fleet, row->labels, c->mem, &claim, c->err);
    if (rc != HFD_OK || !claim.ours || !hfd_slice_eq(claim.guresid, guresid))
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
    return rc == HFD_OK ? parts_is_orphan(c, guresid, out, yes) : rc;
}

/* ---- apply ---- */

#define ORPHANS_MAX 100 /* of one resource that are considered */

/* Work on the parts of one resource. */
struct apply {
    const struct hfd_ctx *c;
    const struct hfd_call *call;
    struct hfd_resource_row *row;
    struct hfd_parts parts;   /* as they were before */
    struct hfd_parts created; /* created from nothing, in the order of the input */
    bool made;
    bool replaces; /* the resource's own part was removed in HyperFleet: what went with it is not
                      waited for */
    bool anew;     /* and it had been created */
    struct hfd_preview *preview; /* not NULL: changes are noted there, and nothing is written */
};

/* A cluster or nodepool that the input asks for. */
struct wish {
    enum hfd_kind kind;
    hfd_slice owner_id;
    const char *field; /* of its name in the input */
    const struct hfd_input_part *part;
};

static const struct hfd_backend *backend(const struct apply *a)
{
    return a->c->driver->backend_ops;
}

static struct hfd_fleet_call fleet_call(const struct apply *a)
{
    struct hfd_fleet_call call = hfd_ctx_fleet_call(a->c, a->call->caller);

    /* The secrets of an order, which the adapter of this program takes, have no generation. */
    call.again = a->row->state == HFD_STATE_FAILED || a->c->driver->hooks != NULL;
    return call;
}

static bool is_there(const struct hfd_part *p)
{
    return p->view.exists && !p->view.deleting;
}

static const struct hfd_part *find_part(const struct hfd_parts *parts, enum hfd_kind kind,
                                        hfd_slice name)
{
    for (size_t i = 0; i < parts->count; i++)
        if (parts->items[i].row.kind == kind && is_there(&parts->items[i]) &&
            hfd_slice_eq(parts->items[i].fleet.name, name))
            return &parts->items[i];
    return NULL;
}

/* ---- one part ---- */

/* @param had  its part so far; NULL = it is adopted */
static hfd_rc patch(const struct apply *a, const struct hfd_fleet_row *f,
                    const struct hfd_part_row *had, const struct hfd_input_part *want)
{
    const struct hfd_part_row none = {.kind = f->kind, .name = f->name, .aside = HFD_SLICE("")};
    const struct hfd_fleet_call fc = fleet_call(a);
    struct hfd_drift_wish wish = {want->spec, want->labels, .aside = HFD_SLICE("")};
    struct hfd_fleet_patch p = {.target = {f->kind, f->owner_id, f->id}};
    struct hfd_backend_written w;
    struct hfd_part_row part;
    struct hfd_fleet_row row;
    hfd_rc rc = HFD_OK;

    if (a->preview != NULL || (had != NULL && had->aside.len > 0)) {
        const struct hfd_drift_part drifted = {had != NULL ? had : &none, &row, a->row->kind,
                                               a->call->repair ? a->row->repairs : HFD_SLICE("")};

        rc = hfd_fleet_row_get(a->c->tx, f->id, a->c->mem, &row, a->c->err);
        if (rc == HFD_OK)
            rc = hfd_drift_wish(a->c, &drifted, want, &wish);
        if (rc != HFD_OK || a->preview != NULL)
            return rc == HFD_OK ? hfd_preview_patch(a->c, &row, &wish, a->preview) : rc;
    }
    p.spec = wish.spec;
    p.labels = wish.labels;
    rc = backend(a)->patch(a->c->tx, &fc, &p, &w, a->c->err);
    if (rc == HFD_OK)
        rc = hfd_report_row_spend(a->c->tx, f->id, a->c->err);
    if (rc != HFD_OK)
        return rc;
    part = part_row_of(a->call->guresid, &w);
    part.aside = wish.aside;
    return hfd_part_row_put(a->c->tx, &part, a->c->err);
}

/* A new part is known without reading it: no adapter has reported on it. */
static hfd_rc note_created(struct apply *a, const struct hfd_backend_written *w)
{
    struct hfd_part *p = &a->created.items[a->created.count++];

    p->row = part_row_of(a->call->guresid, w);
    part_see_row(p);
    return w->row.ready ? part_see_fleet(a->c, &w->row, a->c->mem, p)
                        : part_see_unready(a->c, &w->row, p);
}

/* Refuses a name that a cluster or nodepool has, and says whose that is where it is ours. */
static hfd_rc fail_taken(const struct hfd_ctx *c, const struct wish *wish,
                         const struct hfd_fleet_row *taker)
{
    const hfd_slice id =
        hfd_backend_id_is_given(taker->id) ? taker->id : HFD_SLICE("(not made yet)");
    struct hfd_part_row part;
    const hfd_rc rc = hfd_part_row_by_fleet(c->tx, taker->id, c->mem, &part, c->err);

    if (rc != HFD_OK && rc != HFD_NOT_FOUND)
        return rc;
    return hfd_fail_field(
        c->err, HFD_INVALID, wish->field,
        "the name '%.*s' is taken by %s %.*s, which is %s%.*s: choose another name",
        HFD_SLICE_FMT(wish->part->name), hfd_kind_word(wish->kind), HFD_SLICE_FMT(id),
        rc == HFD_OK ? "of resource " : "not of this resource",
        HFD_SLICE_FMT(rc == HFD_OK ? part.guresid : HFD_SLICE("")));
}

/* An orphan has a root of its own. In its cluster there may be nodepools that no order has. */
static hfd_rc adopt(const struct apply *a, const struct wish *wish, const struct hfd_fleet_row *f)
{
    hfd_rc rc = a->preview == NULL ? hfd_roots_leave(a->c->tx, a->c->err) : HFD_OK;

    a->row->drift = HFD_DRIFT_UNKNOWN;
    if (rc == HFD_OK && a->preview == NULL)
        rc = hfd_part_adopted(a->c, f);
    return rc == HFD_OK ? patch(a, f, NULL, wish->part) : rc;
}

/* Another resource of HyperFleet has the name: adopts it if it is an orphan of ours. */
static hfd_rc adopt_by_name(struct apply *a, const struct wish *wish, struct hfd_fleet_row *out)
{
    const struct hfd_ctx *c = a->c;
    const hfd_slice name = wish->part->name;
    bool ours;
    hfd_rc rc;

    rc = hfd_fleet_row_by_name(c->tx, &(struct hfd_fleet_name){wish->kind, wish->owner_id, name},
                               c->mem, out, c->err);
    if (rc == HFD_OK)
        rc = parts_is_orphan(c, a->call->guresid, out, &ours);
    if (rc != HFD_OK)
        return rc;
    if (ours)
        return adopt(a, wish, out);
    return fail_taken(c, wish, out);
}

/* True if the name follows from the GUResID, which is not known yet. */
static bool is_unnamed(const struct apply *a, const struct wish *wish)
{
    return a->call->guresid.len == 0 && wish->kind == a->row->kind && !wish->part->name_given;
}

/* Notes that a part would be created, unless its name is taken. */
static hfd_rc preview_create(struct apply *a, const struct wish *wish, struct hfd_fleet_row *out)
{
    const bool unnamed = is_unnamed(a, wish);
    const hfd_rc rc = unnamed ? HFD_NOT_FOUND : adopt_by_name(a, wish, out);

    if (rc != HFD_NOT_FOUND)
        return rc;
    hfd_preview_note(a->preview, wish->kind, unnamed ? HFD_SLICE_NONE : wish->part->name, "create",
                     0);
    *out = (struct hfd_fleet_row){.id = HFD_SLICE("")};
    return HFD_OK;
}

/* Creates a part, or adopts an orphan of ours that has its name. */
static hfd_rc create(struct apply *a, const struct wish *wish, struct hfd_fleet_row *out)
{
    const struct hfd_fleet_call fc = fleet_call(a);
    const struct hfd_fleet_create in = {.kind = wish->kind,
                                        .owner_id = wish->owner_id,
                                        .name = wish->part->name,
                                        .spec = wish->part->spec,
                                        .labels = wish->part->labels};
    struct hfd_backend_written w;
    hfd_rc rc;

    a->made = true;
    if (a->preview != NULL)
        return preview_create(a, wish, out);
    rc = backend(a)->create(a->c->tx, &fc, &in, &w, a->c->err);
    if (rc == HFD_CONFLICT)
        return adopt_by_name(a, wish, out);
    if (rc == HFD_OK)
        rc = hfd_part_record(a->c, a->call->guresid, &w);
    if (rc != HFD_OK)
        return rc;
    *out = w.row;
    return note_created(a, &w);
}

/* An input without a name accepts the name that is there. */
static hfd_rc check_name(const struct apply *a, const struct wish *wish, hfd_slice is)
{
    const hfd_slice want = wish->part->name;

    if (!wish->part->name_given || hfd_slice_eq(is, want))
        return HFD_OK;
    return hfd_fail_field(a->c->err, HFD_IMMUTABLE, wish->field,
                          "the name cannot change from '%.*s' to '%.*s': expected the same name, "
                          "or a resource of another id",
                          HFD_SLICE_FMT(is), HFD_SLICE_FMT(want));
}

static struct hfd_backend_orphan_query orphans_of(const struct hfd_ctx *c,
                                                  const struct hfd_call *call, enum hfd_kind kind)
{
    return (struct hfd_backend_orphan_query){
        .kind = kind, .guresid = call->guresid, .limit = ORPHANS_MAX, .mem = c->mem};
}

/* For a part that has no row yet: orphans of the resource, and the row that has the name. */
hfd_rc hfd_apply_prefetch(const struct hfd_ctx *c, const struct hfd_call *call)
{
    const struct hfd_input *in = call->input;
    const struct hfd_backend_orphan_query query = orphans_of(c, call, in->kind);
    struct hfd_backend_orphans found;
    struct hfd_fleet_row row;
    hfd_rc rc = c->driver->backend_ops->orphans(c->tx, &query, &found, c->err);

    if (in->kind == HFD_KIND_CLUSTER)
        rc = hfd_fleet_row_by_name(
            c->tx, &(struct hfd_fleet_name){HFD_KIND_CLUSTER, HFD_SLICE(""), in->cluster.name},
            c->mem, &row, c->err);
    return rc;
}

/* Chooses the orphan of this resource to adopt instead of creating a part; an empty id = none. */
static hfd_rc choose_orphan(const struct apply *a, const struct wish *wish, hfd_slice *id)
{
    const struct hfd_backend_orphan_query query = orphans_of(a->c, a->call, wish->kind);
    const struct hfd_orphan_row *other = NULL;
    struct hfd_backend_orphans found;
    struct hfd_fleet_row row;
    bool ours;
    hfd_rc rc;

    *id = HFD_SLICE_NONE;
    if (a->call->guresid.len == 0)
        return HFD_OK;
    rc = backend(a)->orphans(a->c->tx, &query, &found, a->c->err);
    for (size_t i = 0; rc == HFD_OK && i < found.list.count; i++) {
        const struct hfd_orphan_row *o = &found.list.rows[i];

        if (o->deleted_us != 0 || !hfd_slice_eq(o->owner_id, wish->owner_id))
            continue;
        rc = hfd_parts_find_orphan(a->c, a->call->guresid,
                                   &(struct hfd_fleet_target){.kind = o->kind, .id = o->id}, &row,
                                   &ours);
        if (rc != HFD_OK || !ours)
            continue; /* another server's */
        if (hfd_slice_eq(o->name, wish->part->name)) {
            *id = o->id;
            return HFD_OK;
        }
        other = other == NULL ? o : other;
    }
    if (rc != HFD_OK || other == NULL)
        return rc;
    if (wish->part->name_given)
        return hfd_fail_field(a->c->err, HFD_IMMUTABLE, wish->field,
                              "'%.*s' (%.*s) carries this resource's label, but is not named "
                              "'%.*s': give its name to take it over, "
                              "or remove it (GET /admin/orphans)",
                              HFD_SLICE_FMT(other->name), HFD_SLICE_FMT(other->id),
                              HFD_SLICE_FMT(wish->part->name));
    *id = other->id;
    return HFD_OK;
}

static hfd_rc adopt_or_create(struct apply *a, const struct wish *wish, struct hfd_fleet_row *out)
{
    hfd_slice orphan;
    hfd_rc rc;

    rc = choose_orphan(a, wish, &orphan);
    if (rc != HFD_OK || orphan.len == 0)
        return rc == HFD_OK ? create(a, wish, out) : rc;
    a->made = true;
    rc = hfd_fleet_row_get(a->c->tx, orphan, a->c->mem, out, a->c->err);
    return rc == HFD_OK ? adopt(a, wish, out) : rc;
}

/* True for a part without an id that is now wanted under another name, or in another cluster. */
static bool is_unmade(const struct hfd_part *p, hfd_slice name, hfd_slice owner_id)
{
    return !hfd_backend_id_is_given(p->row.fleet_id) &&
           !(hfd_slice_eq(p->fleet.name, name) && hfd_slice_eq(p->fleet.owner_id, owner_id));
}

/* Gives up a part; another replaces it. */
static hfd_rc discard(struct apply *a, const struct hfd_part *p)
{
    hfd_rc rc;

    if (a->preview != NULL)
        return HFD_OK;
    rc = hfd_part_row_delete(a->c->tx, a->call->guresid, p->row.fleet_id, a->c->err);
    return rc == HFD_OK ? hfd_backend_discard(backend(a), a->c->tx, p->row.fleet_id, a->c->err)
                        : rc;
}

static void note_replaced(struct apply *a, const struct hfd_part *had)
{
    a->replaces = !is_there(had);
    a->anew = a->replaces && hfd_backend_id_is_given(had->row.fleet_id);
}

/* ---- the cluster ---- */

/* Patches the cluster that the resource has, or gives it up for a new one. */
static hfd_rc keep_or_discard(struct apply *a, const struct wish *wish, const struct hfd_part *p,
                              bool *kept)
{
    hfd_rc rc;

    *kept = is_there(p) && !is_unmade(p, wish->part->name, HFD_SLICE_NONE);
    if (!*kept) {
        note_replaced(a, p);
        return discard(a, p);
    }
    rc = check_name(a, wish, p->fleet.name);
    return rc == HFD_OK ? patch(a, &p->fleet, &p->row, wish->part) : rc;
}

/* The cluster of a cluster resource: its own, an orphan, or a new one. */
static hfd_rc apply_cluster(struct apply *a)
{
    const struct wish wish = {HFD_KIND_CLUSTER, HFD_SLICE(""), "driver.values.cluster.name",
                              &a->call->input->cluster};
    hfd_slice unmade = HFD_SLICE_NONE;
    struct hfd_fleet_row f;
    bool kept;
    hfd_rc rc;

    for (size_t i = 0; i < a->parts.count; i++) {
        const struct hfd_part *p = &a->parts.items[i];

        if (p->row.kind != HFD_KIND_CLUSTER)
            continue;
        rc = keep_or_discard(a, &wish, p, &kept);
        if (rc != HFD_OK || kept)
            return rc;
        unmade = is_there(p) ? p->row.fleet_id : HFD_SLICE_NONE;
    }
    rc = adopt_or_create(a, &wish, &f);
    if (rc != HFD_OK)
        return rc;
    a->row->cluster_id = f.id;
    /* Nodepools that waited for the cluster that was given up now wait for this one. */
    return unmade.len > 0 && a->preview == NULL
               ? hfd_fleet_row_refer(a->c->tx, unmade, f.id, a->c->mem, a->c->err)
               : HFD_OK;
}

/* ---- its nodepools ---- */

/*
 * A nodepool that the input no longer has stays a part until HyperFleet has removed it. This holds
 * for one whose place a new one takes as well.
 */
static hfd_rc dismiss(const struct apply *a, const struct hfd_part *p)
{
    const struct hfd_fleet_target target = {HFD_KIND_NODEPOOL, p->fleet.owner_id, p->fleet.id};
    const struct hfd_fleet_call fc = fleet_call(a);
    struct hfd_part_row row = p->row;
    struct hfd_fleet_deletion deletion = {.removed = !p->view.exists};
    hfd_rc rc = HFD_OK;
    char what[64];

    (void)snprintf(what, sizeof(what), "nodepool '%.*s' would go, and ",
                   HFD_SLICE_FMT(p->fleet.name));
    if (is_there(p))
        rc = hfd_protect_check_row(a->c, a->row, what);
    if (rc != HFD_OK)
        return rc;
    if (a->preview != NULL) {
        if (is_there(p))
            hfd_preview_note(a->preview, HFD_KIND_NODEPOOL, p->fleet.name, "delete",
                             p->fleet.generation);
        return HFD_OK;
    }
    if (is_there(p))
        rc = backend(a)->remove(a->c->tx, &fc, &target, &deletion, a->c->err);
    if (rc != HFD_OK)
        return rc;
    row.leaving = true;
    return deletion.removed ? hfd_part_row_delete(a->c->tx, row.guresid, row.fleet_id, a->c->err)
                            : hfd_part_row_put(a->c->tx, &row, a->c->err);
}

/* A nodepool of a cluster that is replaced goes with it: the new cluster does not wait for it. */
static hfd_rc drop_nodepools(struct apply *a)
{
    const struct hfd_input *in = a->call->input;
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < a->parts.count; i++) {
        const struct hfd_part *p = &a->parts.items[i];
        bool wanted = false;

        for (size_t k = 0; k < in->nodepool_count; k++)
            wanted = wanted || hfd_slice_eq(in->nodepools[k].name, p->row.name);
        if (p->row.kind == HFD_KIND_NODEPOOL && (a->replaces || !(wanted && is_there(p))))
            rc = a->replaces ? discard(a, p) : dismiss(a, p);
    }
    return rc;
}

static hfd_rc apply_nodepools(struct apply *a)
{
    const struct hfd_input *in = a->call->input;
    hfd_rc rc = drop_nodepools(a);

    for (size_t i = 0; rc == HFD_OK && i < in->nodepool_count; i++) {
        const struct hfd_part *p =
            a->replaces ? NULL : find_part(&a->parts, HFD_KIND_NODEPOOL, in->nodepools[i].name);
        struct hfd_fleet_row f;
        char field[64];
        const struct wish wish = {HFD_KIND_NODEPOOL, a->row->cluster_id, field, &in->nodepools[i]};

        (void)snprintf(field, sizeof(field), "driver.values.nodepools[%zu].name", i);
        rc = p != NULL ? patch(a, &p->fleet, &p->row, wish.part) : create(a, &wish, &f);
    }
    return rc;
}

/* ---- a nodepool resource ---- */

static const char *cluster_field(const struct hfd_input *in)
{
    return in->cluster_guresid.len > 0 ? "driver.values.cluster_guresid"
                                       : "driver.values.cluster_id";
}

/* The message uses the input's own name for the cluster: its GUResID or its id. */
static hfd_rc fail_no_cluster(const struct hfd_input *in, struct hfd_err *err)
{
    if (in->cluster_guresid.len > 0)
        return hfd_fail_field(err, HFD_INVALID, cluster_field(in),
                              "the cluster of resource '%.*s' is being deleted in HyperFleet, or "
                              "was removed: deploy that resource first",
                              HFD_SLICE_FMT(in->cluster_guresid));
    return hfd_fail_field(err, HFD_INVALID, cluster_field(in),
                          "there is no cluster '%.*s' in HyperFleet, or it is being deleted",
                          HFD_SLICE_FMT(in->cluster_id));
}

/* The cluster that a nodepool resource asks for, by id or by the GUResID of its resource. */
static hfd_rc wanted_cluster(const struct apply *a, hfd_slice *id)
{
    const struct hfd_input *in = a->call->input;
    const struct hfd_ctx *c = a->c;
    struct hfd_resource_row owner;
    struct hfd_fleet_row f;
    hfd_rc rc;

    *id = in->cluster_id;
    if (in->cluster_guresid.len > 0) {
        rc = hfd_resource_row_get(c->tx, in->cluster_guresid, c->mem, &owner, c->err);
        if (rc == HFD_NOT_FOUND || (rc == HFD_OK && owner.kind != HFD_KIND_CLUSTER))
            return hfd_fail_field(c->err, HFD_INVALID, cluster_field(in),
                                  "there is no cluster resource '%.*s'",
                                  HFD_SLICE_FMT(in->cluster_guresid));
        if (rc != HFD_OK)
            return rc;
        *id = owner.cluster_id;
    }
    rc = hfd_fleet_row_get(c->tx, *id, c->mem, &f, c->err);
    if (rc == HFD_NOT_FOUND && in->cluster_id.len > 0 &&
        hfd_backend_may_have_cluster(backend(a), *id))
        return HFD_OK;
    if (rc == HFD_NOT_FOUND || (rc == HFD_OK && (f.kind != HFD_KIND_CLUSTER || f.deleted_us != 0)))
        return fail_no_cluster(in, c->err);
    return rc;
}

/* Creates or adopts the nodepool of a nodepool resource, in place of the one it had, if any. */
static hfd_rc make_single(struct apply *a, const struct wish *wish, const struct hfd_part *had)
{
    struct hfd_fleet_row f;
    hfd_rc rc = HFD_OK;

    if (had != NULL) {
        note_replaced(a, had);
        rc = discard(a, had);
    }
    if (rc == HFD_OK)
        rc = adopt_or_create(a, wish, &f);
    a->row->cluster_id = wish->owner_id;
    return rc;
}

/* The one nodepool of a nodepool resource. */
static hfd_rc apply_single(struct apply *a)
{
    const struct hfd_part *had = hfd_parts_main(&a->parts);
    struct wish wish = {.kind = HFD_KIND_NODEPOOL,
                        .field = "driver.values.nodepool.name",
                        .part = &a->call->input->nodepools[0]};
    hfd_rc rc;

    rc = wanted_cluster(a, &wish.owner_id);
    if (rc != HFD_OK)
        return rc;
    if (had == NULL || !is_there(had) || is_unmade(had, wish.part->name, wish.owner_id))
        return make_single(a, &wish, had);
    if (!hfd_slice_eq(wish.owner_id, had->fleet.owner_id))
        return hfd_fail_field(a->c->err, HFD_IMMUTABLE, cluster_field(a->call->input),
                              "a nodepool cannot move from cluster %.*s to %.*s: expected the same "
                              "cluster, or a resource of another id",
                              HFD_SLICE_FMT(had->fleet.owner_id), HFD_SLICE_FMT(wish.owner_id));
    rc = check_name(a, &wish, had->fleet.name);
    return rc == HFD_OK ? patch(a, &had->fleet, &had->row, wish.part) : rc;
}

/* ---- all of it ---- */

static int by_kind_and_name(const void *a, const void *b)
{
    const struct hfd_part *x = a, *y = b;

    return x->row.kind != y->row.kind ? (int)x->row.kind - (int)y->row.kind
                                      : hfd_slice_cmp(x->row.name, y->row.name);
}

/* Reads the parts again, unless all were created just now: reading is much of the work of a PUT. */
static hfd_rc load_now(struct apply *a, size_t wanted, struct hfd_parts *out)
{
    if (a->parts.count != 0 || a->created.count != wanted)
        return hfd_parts_load(a->c, a->call->guresid, out);
    qsort(a->created.items, wanted, sizeof(*a->created.items), by_kind_and_name);
    *out = a->created;
    return HFD_OK;
}

/* Brings all parts to what the input asks for. */
static hfd_rc apply_all(struct apply *a)
{
    const bool is_cluster = a->row->kind == HFD_KIND_CLUSTER;
    hfd_rc rc = is_cluster ? apply_cluster(a) : apply_single(a);

    return rc == HFD_OK && is_cluster ? apply_nodepools(a) : rc;
}

hfd_rc hfd_parts_apply(const struct hfd_ctx *c, const struct hfd_call *call,
                       struct hfd_resource_row *row, struct hfd_applied *out)
{
    const size_t wanted = call->input->nodepool_count + (row->kind == HFD_KIND_CLUSTER);
    struct apply a = {.c = c, .call = call, .row = row};
    hfd_rc rc;

    a.created.items = hfd_arena_array(c->mem, wanted, sizeof(*a.created.items));
    if (a.created.items == NULL)
        return hfd_fail_nomem(c->err, "make the parts of a resource");
    rc = hfd_parts_load(c, call->guresid, &a.parts);
    if (rc == HFD_OK)
        rc = apply_all(&a);
    if (rc == HFD_OK)
        rc = hfd_parts_schedule(c, call->guresid, HFD_GOAL_MAKE);
    if (rc == HFD_OK)
        rc = load_now(&a, wanted, &out->parts);
    out->made = a.made;
    out->anew = a.anew;
    return rc;
}

hfd_rc hfd_parts_preview(const struct hfd_ctx *c, const struct hfd_call *call,
                         struct hfd_resource_row *row, struct hfd_preview *out, bool *anew)
{
    struct apply a = {.c = c, .call = call, .row = row, .preview = out};
    hfd_rc rc = hfd_parts_load(c, call->guresid, &a.parts);

    *anew = false;
    if (rc == HFD_OK)
        rc = hfd_preview_init(c, call->input->nodepool_count + 1 + a.parts.count, out);
    if (rc == HFD_OK)
        rc = apply_all(&a);
    *anew = a.anew;
    return rc;
}
