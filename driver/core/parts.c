/*
 * The HyperFleet resources behind a driver resource. See parts.h.
 */
#include "driver/core/parts.h"

#include "driver/backend/remote/wire.h"
#include "driver/base/check.h"
#include "driver/base/jsonx.h"
#include "driver/fleet/names.h"
#include "store/rows_fleet.h"
#include "store/rows_report.h"
#include "store/rows_resource.h"
#include "store/rows_part.h"
#include "store/rows_orphan.h"

#include <stdlib.h>

/*
 * One part with its reports, while it is read, and what is kept of a message: more than any
 * sentence quotes.
 */
#define SCRATCH_MAX_BYTES ((size_t)128 * 1024 * 1024)
#define QUOTED_MAX_BYTES 1024
#define ORPHANS_MAX 100 /* of one resource that are looked at */

static hfd_rc no_memory(struct hfd_err *err)
{
    return hfd_fail(err, HFD_NOMEM, "out of memory while reading a resource's parts");
}

/* What a judgement reads of a report. */
static bool is_told(hfd_slice type)
{
    static const char *const types[] = {"Applied", "Available", "Finalized", "Health"};

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (hfd_slice_is(type, types[i]))
            return true;
    return false;
}

/*
 * Of long texts, all parts together may have more than there is memory for: what a sentence can
 * quote is enough.
 */
static hfd_rc keep_conditions(const struct hfd_conditions *all, bool of_report,
                              struct hfd_arena *mem, struct hfd_conditions *out,
                              struct hfd_err *err)
{
    *out = (struct hfd_conditions){hfd_arena_array(mem, all->count, sizeof(*out->items)), 0};
    if (out->items == NULL)
        return no_memory(err);
    for (size_t i = 0; i < all->count; i++) {
        struct hfd_condition c = all->items[i];

        if (of_report && !is_told(c.type))
            continue;
        c.message.len = c.message.len < QUOTED_MAX_BYTES ? c.message.len : QUOTED_MAX_BYTES;
        c.type = hfd_arena_dup(mem, c.type);
        c.reason = hfd_arena_dup(mem, c.reason);
        c.message = hfd_arena_dup(mem, c.message);
        if (c.type.p == NULL || c.reason.p == NULL || c.message.p == NULL)
            return no_memory(err);
        out->items[out->count++] = c;
    }
    return HFD_OK;
}

static hfd_rc load_reports(const struct hfd_report_list *rows, struct hfd_arena *scratch,
                           struct hfd_arena *mem, struct hfd_part_view *view, struct hfd_err *err)
{
    struct hfd_part_report *reports = hfd_arena_array(mem, rows->count, sizeof(*reports));
    hfd_rc rc = HFD_OK;

    if (reports == NULL)
        return no_memory(err);
    for (size_t i = 0; rc == HFD_OK && i < rows->count; i++) {
        const struct hfd_report_row *r = &rows->rows[i];
        struct hfd_conditions all;

        reports[i] = (struct hfd_part_report){.adapter = hfd_arena_dup(mem, r->adapter),
                                              .observed_generation = r->observed_generation,
                                              .received_us = r->received_us};
        if (reports[i].adapter.p == NULL)
            return no_memory(err);
        rc = hfd_conditions_parse(r->conditions, scratch, &all, err);
        if (rc == HFD_OK)
            rc = keep_conditions(&all, true, mem, &reports[i].conditions, err);
    }
    view->reports = reports;
    view->report_count = rows->count;
    return rc;
}

/* Without its documents, which nobody needs here. */
static hfd_rc keep_row(const struct hfd_fleet_row *row, struct hfd_arena *mem,
                       struct hfd_fleet_row *out, struct hfd_err *err)
{
    *out = (struct hfd_fleet_row){
        .id = hfd_arena_dup(mem, row->id),
        .kind = row->kind,
        .owner_id = hfd_arena_dup(mem, row->owner_id),
        .name = hfd_arena_dup(mem, row->name),
        .generation = row->generation,
        .ready = row->ready,
        .created_us = row->created_us,
        .updated_us = row->updated_us,
        .deleted_us = row->deleted_us,
    };
    return out->id.p != NULL && out->owner_id.p != NULL && out->name.p != NULL ? HFD_OK
                                                                               : no_memory(err);
}

/* What the row says, but for its reports. */
static hfd_rc see_row(const struct hfd_fleet_row *row, struct hfd_part *p,
                      struct hfd_arena *scratch, struct hfd_arena *mem, struct hfd_err *err)
{
    struct hfd_conditions all;
    hfd_rc rc = keep_row(row, mem, &p->fleet, err);

    if (rc != HFD_OK)
        return rc;
    p->view.exists = true;
    p->view.deleting = row->deleted_us != 0;
    p->view.generation = row->generation;
    rc = hfd_conditions_parse(row->conditions, scratch, &all, err);
    return rc == HFD_OK ? keep_conditions(&all, false, mem, &p->view.conditions, err) : rc;
}

static hfd_rc load_part_in(struct hfd_txn *tx, struct hfd_part *p, struct hfd_arena *scratch,
                           struct hfd_arena *mem, struct hfd_err *err)
{
    struct hfd_report_list reports;
    struct hfd_fleet_row row;
    hfd_rc rc;

    rc = hfd_fleet_row_get(tx, p->row.fleet_id, scratch, &row, err);
    if (rc == HFD_NOT_FOUND)
        return HFD_OK;
    if (rc == HFD_OK)
        rc = see_row(&row, p, scratch, mem, err);
    if (rc == HFD_OK)
        rc = hfd_report_row_heads(tx, p->row.fleet_id, scratch, &reports, err);
    return rc == HFD_OK ? load_reports(&reports, scratch, mem, &p->view, err) : rc;
}

/* What the driver itself knows of a part. */
static void see_part(struct hfd_part *p)
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

static hfd_rc load_part(struct hfd_txn *tx, struct hfd_part *p, struct hfd_arena *mem,
                        struct hfd_err *err)
{
    struct hfd_arena scratch;
    hfd_rc rc;

    see_part(p);
    hfd_arena_init(&scratch, SCRATCH_MAX_BYTES);
    rc = load_part_in(tx, p, &scratch, mem, err);
    hfd_arena_fini(&scratch);
    return rc;
}

hfd_rc hfd_parts_load(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem,
                      struct hfd_parts *out, struct hfd_err *err)
{
    struct hfd_part_list rows;
    hfd_rc rc;

    *out = (struct hfd_parts){NULL, 0};
    rc = hfd_part_row_list(tx, guresid, mem, &rows, err);
    if (rc != HFD_OK || rows.count == 0)
        return rc;
    out->items = hfd_arena_array(mem, rows.count, sizeof(*out->items));
    if (out->items == NULL)
        return no_memory(err);
    out->count = rows.count;
    for (size_t i = 0; rc == HFD_OK && i < rows.count; i++) {
        out->items[i].row = rows.rows[i];
        rc = load_part(tx, &out->items[i], mem, err);
    }
    return rc;
}

static struct hfd_fleet_call fleet_call(const struct hfd_call *call)
{
    return (struct hfd_fleet_call){
        .fleet = call->fleet, .now_us = call->now_us, .caller = call->caller, .mem = call->mem};
}

static bool is_there(const struct hfd_part *p)
{
    return p->view.exists && !p->view.deleting;
}

static struct hfd_part *find_part(const struct hfd_parts *parts, enum hfd_kind kind, hfd_slice name)
{
    for (size_t i = 0; i < parts->count; i++)
        if (parts->items[i].row.kind == kind && is_there(&parts->items[i]) &&
            hfd_slice_eq(parts->items[i].fleet.name, name))
            return &parts->items[i];
    return NULL;
}

static const struct hfd_backend *backend(const struct hfd_call *call)
{
    return call->driver->backend_ops;
}

static struct hfd_part_row part_of(const struct hfd_call *call, const struct hfd_fleet_row *f,
                                   bool pending)
{
    return (struct hfd_part_row){.guresid = call->guresid,
                                 .fleet_id = f->id,
                                 .kind = f->kind,
                                 .name = f->name,
                                 .generation = f->generation,
                                 .pending = pending};
}

static hfd_rc record(struct hfd_txn *tx, const struct hfd_call *call, const struct hfd_fleet_row *f,
                     bool pending, struct hfd_err *err)
{
    const struct hfd_part_row part = part_of(call, f, pending);

    return hfd_part_row_put(tx, &part, err);
}

/* Work on the parts of one resource. */
struct apply {
    struct hfd_txn *tx;
    const struct hfd_call *call;
    struct hfd_parts parts; /* as they were before */
    struct hfd_resource_row *row;
    bool made;
    bool replaces; /* the resource's own part was removed behind our back: what goes with it is not
                      waited for */
    bool anew;     /* and it had been made */
    struct hfd_parts created; /* made from nothing, in the order of the input */
};

/*
 * Whether a HyperFleet resource carries our label for this GUResID, and no row of ours knows it: an
 * orphan to adopt.
 */
static hfd_rc is_orphan_of(struct hfd_txn *tx, const struct hfd_call *call,
                           const struct hfd_fleet_row *f, bool *yes, struct hfd_err *err)
{
    struct hfd_part_row part;
    hfd_slice label = HFD_SLICE_NONE;
    json_t *labels;
    hfd_rc rc;

    *yes = false;
    rc = hfd_json_parse(f->labels, &labels, err);
    if (rc != HFD_OK)
        return rc;
    rc = hfd_json_get_string(HFD_JSON_OPTIONAL(labels, "labels", HFD_GURESID_LABEL), &label, err);
    *yes = rc == HFD_OK && hfd_slice_eq(label, call->guresid);
    json_decref(labels);
    if (rc != HFD_OK || !*yes)
        return rc;
    rc = hfd_part_row_by_fleet(tx, f->id, call->mem, &part, err);
    *yes = rc == HFD_NOT_FOUND;
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

static hfd_rc find_orphan(struct hfd_txn *tx, const struct hfd_call *call, enum hfd_kind kind,
                          hfd_slice id, struct hfd_fleet_row *f, bool *yes, struct hfd_err *err)
{
    hfd_rc rc;

    *yes = false;
    rc = hfd_fleet_row_get(tx, id, call->mem, f, err);
    if (rc == HFD_NOT_FOUND || (rc == HFD_OK && f->kind != kind))
        return HFD_OK;
    return rc == HFD_OK ? is_orphan_of(tx, call, f, yes, err) : rc;
}

hfd_rc hfd_parts_is_orphan(struct hfd_txn *tx, const struct hfd_call *call, enum hfd_kind kind,
                           hfd_slice id, bool *yes, struct hfd_err *err)
{
    struct hfd_fleet_row f;

    return find_orphan(tx, call, kind, id, &f, yes, err);
}

hfd_rc hfd_parts_adopt(struct hfd_txn *tx, const struct hfd_call *call, enum hfd_kind kind,
                       hfd_slice id, bool *ours, struct hfd_err *err)
{
    struct hfd_fleet_row f;
    hfd_rc rc = find_orphan(tx, call, kind, id, &f, ours, err);

    return rc == HFD_OK && *ours ? record(tx, call, &f, false, err) : rc;
}

static hfd_rc patch(const struct apply *a, const struct hfd_fleet_row *f,
                    const struct hfd_input_part *want, struct hfd_err *err)
{
    const struct hfd_fleet_call fc = fleet_call(a->call);
    const struct hfd_fleet_patch p = {.kind = f->kind,
                                      .owner_id = f->owner_id,
                                      .id = f->id,
                                      .spec = want->spec,
                                      .labels = want->labels};
    struct hfd_fleet_row now;
    bool pending;
    hfd_rc rc = backend(a->call)->patch(a->tx, &fc, &p, &now, &pending, err);

    if (rc == HFD_OK)
        rc = hfd_report_row_spend(a->tx, f->id, err);
    return rc == HFD_OK ? record(a->tx, a->call, &now, pending, err) : rc;
}

/* A part that was just made is known without reading: nobody has reported on it. */
static hfd_rc note_created(struct apply *a, const struct hfd_fleet_row *f, struct hfd_err *err)
{
    struct hfd_part *p = &a->created.items[a->created.count++];

    p->row = part_of(a->call, f, backend(a->call)->deferred);
    see_part(p);
    return see_row(f, p, a->call->mem, a->call->mem, err);
}

/* Makes a cluster or nodepool of that name, or takes over an orphan of ours that has it. */
static hfd_rc create(struct apply *a, enum hfd_kind kind, hfd_slice owner_id, const char *field,
                     const struct hfd_input_part *want, struct hfd_fleet_row *out,
                     struct hfd_err *err)
{
    const struct hfd_fleet_call fc = fleet_call(a->call);
    const struct hfd_fleet_create in = {.kind = kind,
                                        .owner_id = owner_id,
                                        .name = want->name,
                                        .spec = want->spec,
                                        .labels = want->labels};
    bool ours;
    hfd_rc rc;

    a->made = true;
    rc = backend(a->call)->create(a->tx, &fc, &in, out, err);
    if (rc == HFD_OK) {
        rc = record(a->tx, a->call, out, backend(a->call)->deferred, err);
        return rc == HFD_OK ? note_created(a, out, err) : rc;
    }
    if (rc != HFD_CONFLICT)
        return rc;
    rc = hfd_fleet_row_by_name(a->tx, &(struct hfd_fleet_name){kind, owner_id, want->name},
                               a->call->mem, out, err);
    if (rc == HFD_OK)
        rc = is_orphan_of(a->tx, a->call, out, &ours, err);
    if (rc != HFD_OK)
        return rc;
    if (ours)
        return patch(a, out, want, err);
    return hfd_fail_field(
        err, HFD_INVALID, field,
        "the name '%.*s' is taken by %s %.*s, which is not of this resource: choose another name",
        HFD_SLICE_FMT(want->name), hfd_kind_word(kind),
        HFD_SLICE_FMT(hfd_backend_id_is_given(out->id) ? out->id : HFD_SLICE("(not made yet)")));
}

/* Who gives no name asks for none in particular. */
static hfd_rc same_name(const char *field, hfd_slice is, const struct hfd_input_part *part,
                        struct hfd_err *err)
{
    const hfd_slice want = part->name;

    if (!part->name_given || hfd_slice_eq(is, want))
        return HFD_OK;
    return hfd_fail_field(err, HFD_IMMUTABLE, field,
                          "the name cannot change from '%.*s' to '%.*s': expected the same name, "
                          "or a resource of another id",
                          HFD_SLICE_FMT(is), HFD_SLICE_FMT(want));
}

/* The orphan of this resource to take over instead of making another; an empty id = none. */
static hfd_rc choose_orphan(const struct apply *a, enum hfd_kind kind, hfd_slice owner_id,
                            const char *field, const struct hfd_input_part *want, hfd_slice *id,
                            struct hfd_err *err)
{
    const struct hfd_orphan_row *other = NULL;
    struct hfd_orphan_list list;
    hfd_rc rc;

    *id = HFD_SLICE_NONE;
    if (backend(a->call)
            ->deferred) /* what is in a remote HyperFleet, the remote thread finds out */
        return HFD_OK;
    rc = hfd_orphan_row_list(a->tx,
                             &(struct hfd_orphan_query){kind, HFD_SLICE(HFD_GURESID_LABEL),
                                                        a->call->guresid, ORPHANS_MAX},
                             a->call->mem, &list, err);
    for (size_t i = 0; rc == HFD_OK && i < list.count; i++) {
        const struct hfd_orphan_row *o = &list.rows[i];

        if (o->deleted_us != 0 || !hfd_slice_eq(o->owner_id, owner_id))
            continue;
        if (hfd_slice_eq(o->name, want->name)) {
            *id = o->id;
            return HFD_OK;
        }
        other = other == NULL ? o : other;
    }
    if (rc != HFD_OK || other == NULL)
        return rc;
    if (want->name_given)
        return hfd_fail_field(err, HFD_IMMUTABLE, field,
                              "'%.*s' (%.*s) carries this resource's label, but is not named "
                              "'%.*s': give its name to take it over, "
                              "or remove it (GET /admin/orphans)",
                              HFD_SLICE_FMT(other->name), HFD_SLICE_FMT(other->id),
                              HFD_SLICE_FMT(want->name));
    *id = other->id;
    return HFD_OK;
}

/* Takes over an orphan, or makes a new one. */
static hfd_rc adopt_or_create(struct apply *a, enum hfd_kind kind, hfd_slice owner_id,
                              const char *field, const struct hfd_input_part *want,
                              struct hfd_fleet_row *out, struct hfd_err *err)
{
    hfd_slice orphan;
    hfd_rc rc;

    rc = choose_orphan(a, kind, owner_id, field, want, &orphan, err);
    if (rc != HFD_OK || orphan.len == 0)
        return rc == HFD_OK ? create(a, kind, owner_id, field, want, out, err) : rc;
    a->made = true;
    rc = hfd_fleet_row_get(a->tx, orphan, a->call->mem, out, err);
    return rc == HFD_OK ? patch(a, out, want, err) : rc;
}

/*
 * Whether a part was not made, as far as is known, and is now wanted under another name or in
 * another cluster: it need not be kept to.
 */
static bool is_unmade(const struct hfd_part *p, hfd_slice name, hfd_slice owner_id)
{
    return !hfd_backend_id_is_given(p->row.fleet_id) &&
           !(hfd_slice_eq(p->fleet.name, name) && hfd_slice_eq(p->fleet.owner_id, owner_id));
}

/* Another one takes a part's place. Its row is HyperFleet's own, unless that is a mirror. */
static hfd_rc discard(const struct apply *a, const struct hfd_part *p, struct hfd_err *err)
{
    hfd_rc rc = hfd_part_row_delete(a->tx, a->call->guresid, p->row.fleet_id, err);

    return rc == HFD_OK && backend(a->call)->deferred
               ? hfd_fleet_row_delete(a->tx, p->row.fleet_id, err)
               : rc;
}

static void note_replaced(struct apply *a, const struct hfd_part *had)
{
    a->replaces = !is_there(had);
    a->anew = a->replaces && hfd_backend_id_is_given(had->row.fleet_id);
}

/* The cluster of a cluster resource: the one that it has, an orphan, or a new one. */
static hfd_rc apply_cluster(struct apply *a, struct hfd_err *err)
{
    static const char field[] = "driver.values.cluster.name";
    const struct hfd_input_part *want = &a->call->input->cluster;
    hfd_slice unmade = HFD_SLICE_NONE;
    struct hfd_fleet_row f;
    hfd_rc rc;

    for (size_t i = 0; i < a->parts.count; i++) {
        const struct hfd_part *p = &a->parts.items[i];

        if (p->row.kind != HFD_KIND_CLUSTER)
            continue;
        if (!is_there(p) ||
            is_unmade(p, want->name, HFD_SLICE_NONE)) { /* removed behind our back, or refused: a
                                                           new one takes its place */
            unmade = is_there(p) ? p->row.fleet_id : HFD_SLICE_NONE;
            note_replaced(a, p);
            rc = discard(a, p, err);
            if (rc != HFD_OK)
                return rc;
            continue;
        }
        rc = same_name(field, p->fleet.name, want, err);
        return rc == HFD_OK ? patch(a, &p->fleet, want, err) : rc;
    }
    rc = adopt_or_create(a, HFD_KIND_CLUSTER, HFD_SLICE(""), field, want, &f, err);
    if (rc != HFD_OK)
        return rc;
    a->row->cluster_id = f.id;
    /* Nodepools that wait for the one wait for the other now. */
    return unmade.len > 0 ? hfd_fleet_row_refer(a->tx, unmade, f.id, a->call->mem, err) : HFD_OK;
}

/*
 * A nodepool that the input no longer has (or whose place a new one takes) stays a part until
 * HyperFleet has removed it. One of a cluster that is replaced goes with that: the new cluster is
 * as ordered without it.
 */
static hfd_rc dismiss(const struct apply *a, const struct hfd_part *p, struct hfd_err *err)
{
    const struct hfd_fleet_call fc = fleet_call(a->call);
    struct hfd_part_row row = p->row;
    struct hfd_fleet_row f;
    bool gone = !p->view.exists;
    hfd_rc rc = HFD_OK;

    if (is_there(p))
        rc = backend(a->call)->remove(a->tx, &fc, HFD_KIND_NODEPOOL, p->fleet.owner_id, p->fleet.id,
                                      &f, &gone, err);
    if (rc != HFD_OK)
        return rc;
    row.leaving = true;
    return gone ? hfd_part_row_delete(a->tx, row.guresid, row.fleet_id, err)
                : hfd_part_row_put(a->tx, &row, err);
}

static hfd_rc drop_nodepools(const struct apply *a, struct hfd_err *err)
{
    const struct hfd_input *in = a->call->input;
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < a->parts.count; i++) {
        const struct hfd_part *p = &a->parts.items[i];
        bool wanted = false;

        for (size_t k = 0; k < in->nodepool_count; k++)
            wanted = wanted || hfd_slice_eq(in->nodepools[k].name, p->row.name);
        if (p->row.kind == HFD_KIND_NODEPOOL && (a->replaces || !(wanted && is_there(p))))
            rc = a->replaces ? discard(a, p, err) : dismiss(a, p, err);
    }
    return rc;
}

static hfd_rc apply_nodepools(struct apply *a, struct hfd_err *err)
{
    hfd_rc rc = drop_nodepools(a, err);

    for (size_t i = 0; rc == HFD_OK && i < a->call->input->nodepool_count; i++) {
        const struct hfd_input_part *want = &a->call->input->nodepools[i];
        const struct hfd_part *p =
            a->replaces ? NULL : find_part(&a->parts, HFD_KIND_NODEPOOL, want->name);
        struct hfd_fleet_row f;
        char field[64];

        (void)snprintf(field, sizeof(field), "driver.values.nodepools[%zu].name", i);
        rc = p != NULL ? patch(a, &p->fleet, want, err)
                       : create(a, HFD_KIND_NODEPOOL, a->row->cluster_id, field, want, &f, err);
    }
    return rc;
}

static const char *cluster_field(const struct hfd_input *in)
{
    return in->cluster_guresid.len > 0 ? "driver.values.cluster_guresid"
                                       : "driver.values.cluster_id";
}

/* In the words of the input: who gave a GUResID does not know the id. */
static hfd_rc no_cluster(const struct hfd_input *in, struct hfd_err *err)
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
static hfd_rc wanted_cluster(const struct apply *a, hfd_slice *id, struct hfd_err *err)
{
    const struct hfd_input *in = a->call->input;
    struct hfd_resource_row owner;
    struct hfd_fleet_row f;
    hfd_rc rc;

    *id = in->cluster_id;
    if (in->cluster_guresid.len > 0) {
        rc = hfd_resource_row_get(a->tx, in->cluster_guresid, a->call->mem, &owner, err);
        if (rc == HFD_NOT_FOUND || (rc == HFD_OK && owner.kind != HFD_KIND_CLUSTER))
            return hfd_fail_field(err, HFD_INVALID, cluster_field(in),
                                  "there is no cluster resource '%.*s'",
                                  HFD_SLICE_FMT(in->cluster_guresid));
        if (rc != HFD_OK)
            return rc;
        *id = owner.cluster_id;
    }
    rc = hfd_fleet_row_get(a->tx, *id, a->call->mem, &f, err);
    /* A remote may have clusters that no row knows: it will tell. */
    if (rc == HFD_NOT_FOUND && backend(a->call)->deferred && in->cluster_id.len > 0 &&
        hfd_wire_id_ok(*id))
        return HFD_OK;
    if (rc == HFD_NOT_FOUND || (rc == HFD_OK && (f.kind != HFD_KIND_CLUSTER || f.deleted_us != 0)))
        return no_cluster(in, err);
    return rc;
}

/* The one nodepool of a nodepool resource. */
static hfd_rc apply_single(struct apply *a, struct hfd_err *err)
{
    const struct hfd_input_part *want = &a->call->input->nodepools[0];
    const struct hfd_part *had = a->parts.count > 0 ? &a->parts.items[0] : NULL;
    struct hfd_fleet_row f;
    hfd_slice cluster_id;
    hfd_rc rc;

    rc = wanted_cluster(a, &cluster_id, err);
    if (rc != HFD_OK)
        return rc;
    if (had == NULL || !is_there(had) || is_unmade(had, want->name, cluster_id)) {
        if (had != NULL) {
            note_replaced(a, had);
            rc = discard(a, had, err);
        }
        if (rc == HFD_OK)
            rc = adopt_or_create(a, HFD_KIND_NODEPOOL, cluster_id, "driver.values.nodepool.name",
                                 want, &f, err);
        a->row->cluster_id = cluster_id;
        return rc;
    }
    if (!hfd_slice_eq(cluster_id, had->fleet.owner_id))
        return hfd_fail_field(err, HFD_IMMUTABLE, cluster_field(a->call->input),
                              "a nodepool cannot move from cluster %.*s to %.*s: expected the same "
                              "cluster, or a resource of another id",
                              HFD_SLICE_FMT(had->fleet.owner_id), HFD_SLICE_FMT(cluster_id));
    rc = same_name("driver.values.nodepool.name", had->fleet.name, want, err);
    return rc == HFD_OK ? patch(a, &had->fleet, want, err) : rc;
}

static int by_kind_and_name(const void *a, const void *b)
{
    const struct hfd_part *x = a, *y = b;

    return x->row.kind != y->row.kind ? (int)x->row.kind - (int)y->row.kind
                                      : hfd_slice_cmp(x->row.name, y->row.name);
}

/*
 * Reading the parts again would be a good part of the work of a PUT; where all of them were made
 * just now, it is spared.
 */
static hfd_rc parts_now(struct apply *a, size_t wanted, struct hfd_parts *out, struct hfd_err *err)
{
    if (a->parts.count != 0 || a->created.count != wanted)
        return hfd_parts_load(a->tx, a->call->guresid, a->call->mem, out, err);
    qsort(a->created.items, wanted, sizeof(*a->created.items), by_kind_and_name);
    *out = a->created;
    return HFD_OK;
}

hfd_rc hfd_parts_seek(struct hfd_txn *tx, const struct hfd_call *call, enum hfd_kind kind,
                      struct hfd_fleet_row *out, struct hfd_err *err)
{
    const struct hfd_fleet_call fc = fleet_call(call);
    hfd_rc rc = backend(call)->seek(tx, &fc, kind, out, err);

    return rc == HFD_OK ? record(tx, call, out, true, err) : rc;
}

hfd_rc hfd_parts_apply(struct hfd_txn *tx, const struct hfd_call *call,
                       struct hfd_resource_row *row, struct hfd_applied *out, struct hfd_err *err)
{
    const size_t wanted = call->input->nodepool_count + (row->kind == HFD_KIND_CLUSTER);
    struct apply a = {.tx = tx, .call = call, .row = row};
    hfd_rc rc;

    a.created.items = hfd_arena_array(call->mem, wanted, sizeof(*a.created.items));
    if (a.created.items == NULL)
        return no_memory(err);
    rc = hfd_parts_load(tx, call->guresid, call->mem, &a.parts, err);
    if (rc == HFD_OK)
        rc = row->kind == HFD_KIND_NODEPOOL ? apply_single(&a, err) : apply_cluster(&a, err);
    if (rc == HFD_OK && row->kind == HFD_KIND_CLUSTER)
        rc = apply_nodepools(&a, err);
    if (rc == HFD_OK)
        rc = backend(call)->schedule(tx, call->guresid, HFD_GOAL_MAKE, call->now_us, err);
    if (rc == HFD_OK)
        rc = parts_now(&a, wanted, &out->parts, err);
    out->made = a.made;
    out->anew = a.anew;
    return rc;
}
