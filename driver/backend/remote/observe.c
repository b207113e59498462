/* See observe.h. */
#include "driver/backend/remote/observe.h"

#include "driver/backend/backend.h"
#include "driver/backend/remote/handle.h"
#include "driver/backend/remote/orphans.h"
#include "driver/backend/remote/wire.h"
#include "driver/backend/remote/work.h"
#include "driver/base/check.h"
#include "driver/base/jsonx.h"
#include "driver/base/log.h"
#include "driver/fleet/report.h"
#include "store/rows_fleet.h"

/* While a remote may only lag behind, an earlier generation is not believed. */
#define BEHIND_US (15 * HFD_US_PER_S)
#define ASIDE_MAX_BYTES ((size_t)64 * 1024 * 1024)

/* Has the driver core observe a part that was just written. */
static hfd_rc run_observer(struct hfd_take *t, const struct hfd_fleet_row *row, bool removed,
                           struct hfd_err *err)
{
    struct hfd_fleet_change change = {.id = row->id, .removed = removed};
    struct hfd_fleet_changes changes = {.mem = t->mem, .items = &change, .count = 1, .capacity = 1};
    const struct hfd_fleet_call call = {
        .fleet = t->policy->fleet, .now_us = t->now_us, .mem = t->mem, .changes = &changes};

    return t->policy->on_changes != NULL
               ? t->policy->on_changes(t->policy->observer, t->tx, &call, err)
               : HFD_OK;
}

/* ---- what is remembered of a document ---- */

/* A copy that lives as long as the pass. */
static hfd_slice keep(struct hfd_take *t, hfd_slice text, bool *ok)
{
    const hfd_slice copy = hfd_arena_dup(&t->pass->mem, text);

    *ok = *ok && copy.p != NULL;
    return copy;
}

/* @param in  borrowed */
static hfd_rc note_seen(struct hfd_take *t, const struct hfd_seen_part *in, struct hfd_err *err)
{
    struct hfd_seen_part *seen = hfd_arena_alloc(&t->pass->mem, sizeof(*seen));
    bool ok = seen != NULL;

    if (!ok)
        return hfd_fail_nomem(err, "observe HyperFleet");
    *seen = (struct hfd_seen_part){
        .fleet_id = keep(t, in->fleet_id, &ok),
        .deleting = in->deleting,
        .spec = keep(t, in->spec, &ok),
        .labels = keep(t, in->labels, &ok),
        .next = t->m->seen,
    };
    t->m->seen = seen;
    return ok ? HFD_OK : hfd_fail_nomem(err, "observe HyperFleet");
}

/* Keeps a document until the reports of its part are read. */
static hfd_rc hold(struct hfd_take *t, const struct hfd_pass_part *part,
                   const struct hfd_wire_resource *doc, bool changed, struct hfd_err *err)
{
    const struct hfd_held_part **list =
        part->fleet.ready && !doc->ready ? &t->m->worse : &t->m->held;
    struct hfd_held_part *held = hfd_arena_alloc(&t->pass->mem, sizeof(*held));
    bool ok = held != NULL;

    if (!ok)
        return hfd_fail_nomem(err, "observe HyperFleet");
    *held = (struct hfd_held_part){.fleet_id = keep(t, part->row.fleet_id, &ok),
                                   .doc = *doc,
                                   .changed = changed,
                                   .next = *list};
    held->doc.conditions = keep(t, doc->conditions, &ok);
    held->doc.updated_by = keep(t, doc->updated_by, &ok);
    held->doc.deleted_by = keep(t, doc->deleted_by, &ok);
    /* The rest is not written later. */
    held->doc.id = held->doc.name = held->doc.owner_id = held->doc.spec = held->doc.labels =
        HFD_SLICE_NONE;
    held->doc.guresid = held->doc.made_by = held->doc.created_by = HFD_SLICE_NONE;
    *list = held;
    return ok ? HFD_OK : hfd_fail_nomem(err, "observe HyperFleet");
}

/* ---- rows ---- */

static hfd_rc put_part(struct hfd_take *t, const struct hfd_pass_part *part, struct hfd_err *err)
{
    return hfd_part_row_put(t->tx, &part->row, err);
}

bool hfd_observe_equal(const struct hfd_pass_part *part, hfd_slice spec, hfd_slice labels)
{
    return hfd_slice_eq(part->fleet.spec, spec) && hfd_slice_eq(part->fleet.labels, labels);
}

static bool differs(const struct hfd_fleet_row *row, const struct hfd_wire_resource *doc)
{
    /* A row may have deleted_us before the remote has it. */
    return row->generation != doc->generation || !hfd_slice_eq(row->conditions, doc->conditions) ||
           (doc->deleting && row->deleted_us == 0);
}

/* The nodepools of a cluster that is being deleted are deleted too. */
static hfd_rc delete_pools(struct hfd_take *t, const struct hfd_fleet_row *cluster,
                           struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < t->rows.count; i++) {
        struct hfd_pass_part *p = &t->rows.parts[i];

        if (!p->exists || p->fleet.deleted_us != 0 || !hfd_slice_eq(p->fleet.owner_id, cluster->id))
            continue;
        p->fleet.deleted_us = cluster->deleted_us;
        p->fleet.deleted_by = cluster->deleted_by;
        rc = hfd_fleet_row_update(t->tx, &p->fleet, err);
    }
    return rc;
}

/* Writes a document into the row. */
static hfd_rc write_doc(struct hfd_take *t, struct hfd_pass_part *part,
                        const struct hfd_wire_resource *doc, struct hfd_err *err)
{
    struct hfd_fleet_row *row = &part->fleet;
    hfd_rc rc = HFD_OK;

    row->generation = doc->generation;
    row->conditions = doc->conditions;
    row->ready = doc->ready;
    if (doc->updated_us != 0)
        row->updated_us = doc->updated_us;
    row->updated_by = doc->updated_by;
    if (doc->deleting && row->deleted_us == 0) {
        row->deleted_us = doc->deleted_us;
        row->deleted_by = doc->deleted_by;
        if (row->kind == HFD_KIND_CLUSTER)
            rc = delete_pools(t, row, err);
    }
    return rc == HFD_OK ? hfd_fleet_row_update(t->tx, row, err) : rc;
}

static bool is_stale(const struct hfd_pass_part *part, const struct hfd_wire_resource *doc)
{
    return doc->generation < part->fleet.generation;
}

/*
 * A remote that was restored from a backup has lost our last changes: the part becomes pending
 * again. A part that is to be deleted does not need them.
 */
static hfd_rc accept_backup(struct hfd_take *t, struct hfd_pass_part *part,
                            const struct hfd_wire_resource *doc, struct hfd_err *err)
{
    hfd_rc rc;

    HFD_LOG(HFD_LOG_WARN,
            "the remote HyperFleet has an earlier generation than before, as "
            "after a restored "
            "backup; will send the lost changes again",
            HFD_LOG_STR("guresid", t->rows.remote.guresid), HFD_LOG_STR("id", doc->id),
            HFD_LOG_INT("generation", doc->generation),
            HFD_LOG_INT("before", part->fleet.generation));
    part->fleet.generation = doc->generation;
    rc = hfd_fleet_row_update(t->tx, &part->fleet, err);
    if (rc != HFD_OK || t->rows.remote.goal == HFD_GOAL_DELETE || part->row.leaving)
        return rc;
    part->row.pending = true;
    return put_part(t, part, err);
}

/* Returns whether an earlier generation is believed: not while a copy may only lag behind. */
static bool is_behind_for_good(struct hfd_take *t)
{
    int64_t *since_us = &t->rows.remote.behind_us;

    if (t->rows.remote.goal == HFD_GOAL_DELETE)
        return true;
    if (*since_us == 0 || *since_us > t->now_us)
        *since_us = t->now_us;
    return t->now_us - *since_us >= BEHIND_US;
}

/* The aside of a part: the order that it has, and what the remote has. doc: NULL = the same. */
static hfd_rc make_aside(struct hfd_take *t, const struct hfd_pass_part *part,
                         const struct hfd_wire_resource *doc, hfd_slice *out, struct hfd_err *err)
{
    const json_t *ordered;
    json_t *was = NULL;
    struct hfd_buf b;
    hfd_rc rc = part->row.aside.len > 0 ? hfd_json_parse(part->row.aside, &was, err) : HFD_OK;

    if (rc != HFD_OK)
        return rc;
    ordered = json_object_get(was, "ordered");
    hfd_buf_init(&b, ASIDE_MAX_BYTES);
    if (doc != NULL)
        hfd_buf_addf(&b, "{\"found\":{\"labels\":%.*s,\"spec\":%.*s}", HFD_SLICE_FMT(doc->labels),
                     HFD_SLICE_FMT(doc->spec));
    if (ordered != NULL) {
        hfd_buf_add(&b, doc != NULL ? HFD_SLICE(",\"ordered\":") : HFD_SLICE("{\"ordered\":"));
        hfd_json_dump_for_store(&b, ordered);
    }
    if (b.len > 0)
        hfd_buf_addc(&b, '}');
    json_decref(was);
    rc = hfd_buf_to_arena(&b, t->mem, out, err);
    hfd_buf_fini(&b);
    return rc;
}

/*
 * Keeps in the part what others made of it: hfd_part_row.aside. A form that the remote gave to
 * our own last change has its generation, and is taken for the order.
 */
static hfd_rc note_found(struct hfd_take *t, struct hfd_pass_part *part,
                         const struct hfd_wire_resource *doc, bool *changed, struct hfd_err *err)
{
    const bool differs = !part->row.pending && !doc->deleting &&
                         doc->generation > part->row.generation &&
                         !hfd_observe_equal(part, doc->spec, doc->labels);
    hfd_slice aside;
    hfd_rc rc;

    if (!differs && part->row.aside.len == 0)
        return HFD_OK;
    rc = make_aside(t, part, differs ? doc : NULL, &aside, err);
    if (rc != HFD_OK || hfd_slice_eq(aside, part->row.aside))
        return rc;
    *changed = true;
    part->row.aside = aside;
    return put_part(t, part, err);
}

hfd_rc hfd_observe_document(struct hfd_take *t, struct hfd_pass_part *part,
                            const struct hfd_wire_resource *doc, struct hfd_err *err)
{
    const struct hfd_seen_part seen = {.fleet_id = part->row.fleet_id,
                                       .deleting = doc->deleting,
                                       .spec = doc->spec,
                                       .labels = doc->labels};
    bool cleared = false; /* or its drift has changed */
    hfd_rc rc = HFD_OK;

    if (is_stale(part, doc)) {
        if (!is_behind_for_good(t))
            return hfd_due_later(t, err,
                                 "HyperFleet answered with an earlier generation than before");
        rc = accept_backup(t, part, doc, err);
    }
    t->rows.remote.later_names = doc->later_names;
    if (rc == HFD_OK)
        rc = note_seen(t, &seen, err);
    if (rc == HFD_OK && t->rows.remote.goal == HFD_GOAL_MAKE && part->row.pending &&
        !doc->deleting && hfd_observe_equal(part, doc->spec, doc->labels)) {
        cleared = true;
        part->row.pending = false;
        part->row.generation = doc->generation;
        rc = put_part(t, part, err);
    }
    if (rc == HFD_OK)
        rc = note_found(t, part, doc, &cleared, err);
    if (rc == HFD_OK && (cleared || t->m->reports.all || differs(&part->fleet, doc)))
        rc = hold(t, part, doc, cleared, err);
    return rc;
}

hfd_rc hfd_observe_written(struct hfd_take *t, struct hfd_pass_part *part,
                           const struct hfd_wire_resource *doc, struct hfd_err *err)
{
    const struct hfd_pass *pass = t->pass;
    const struct hfd_seen_part seen = {.fleet_id = part->row.fleet_id,
                                       .deleting = doc->deleting,
                                       .spec = pass->sent_spec,
                                       .labels = pass->sent_labels};
    struct hfd_wire_resource shown = *doc;
    hfd_rc rc;

    t->rows.remote.later_names = doc->later_names;
    rc = note_seen(t, &seen, err);
    part->row.generation = doc->generation;
    /* A PUT may have changed the row meanwhile. */
    if (hfd_observe_equal(part, pass->sent_spec, pass->sent_labels))
        part->row.pending = false;
    if (rc == HFD_OK)
        rc = put_part(t, part, err);
    if (rc == HFD_OK && doc->ready)
        rc = hold(t, part, doc, true, err);
    if (rc != HFD_OK)
        return rc;
    if (doc->ready) {
        shown.conditions = part->fleet.conditions;
        shown.ready = false;
    }
    rc = write_doc(t, part, &shown, err);
    return rc == HFD_OK ? run_observer(t, &part->fleet, false, err) : rc;
}

/* ---- ids ---- */

/* Returns whether no other part has this HyperFleet resource, and no other row its name. */
static hfd_rc is_free(struct hfd_take *t, const struct hfd_pass_part *part,
                      const struct hfd_fleet_row *wanted, bool *yes, struct hfd_err *err)
{
    struct hfd_part_row other;
    struct hfd_fleet_row row;
    hfd_rc rc = hfd_part_row_by_fleet(t->tx, wanted->id, t->mem, &other, err);

    *yes = rc == HFD_NOT_FOUND;
    if (!*yes || wanted->deleted_us != 0)
        return rc == HFD_NOT_FOUND ? HFD_OK : rc;
    rc = hfd_fleet_row_by_name(
        t->tx, &(struct hfd_fleet_name){wanted->kind, wanted->owner_id, wanted->name}, t->mem, &row,
        err);
    *yes = rc == HFD_NOT_FOUND || (rc == HFD_OK && hfd_slice_eq(row.id, part->row.fleet_id));
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

/* Moves the row to its new id, with everything that refers to it. */
static hfd_rc move_row(struct hfd_take *t, hfd_slice from, struct hfd_fleet_row *to,
                       struct hfd_err *err)
{
    hfd_rc rc = hfd_fleet_row_delete(t->tx, to->id, err); /* a row without a part */

    if (rc == HFD_OK)
        rc = hfd_fleet_row_delete(t->tx, from, err);
    if (rc == HFD_OK)
        rc = hfd_fleet_row_insert(t->tx, to, err);
    if (rc == HFD_OK)
        rc = hfd_fleet_row_refer(t->tx, from, to->id, t->mem, err);
    return rc == HFD_OK ? hfd_remote_row_wake(t->tx, to->id, t->now_us, err) : rc;
}

/* Sets the cluster of an adopted nodepool resource. */
static hfd_rc set_cluster(struct hfd_take *t, hfd_slice cluster_id, struct hfd_err *err)
{
    if (t->rows.res.kind != HFD_KIND_NODEPOOL || cluster_id.len == 0 ||
        hfd_slice_eq(t->rows.res.cluster_id, cluster_id))
        return HFD_OK;
    t->rows.res.cluster_id = cluster_id;
    return hfd_resource_row_put(t->tx, &t->rows.res, err);
}

hfd_rc hfd_observe_id(struct hfd_take *t, struct hfd_pass_part *part,
                      const struct hfd_wire_resource *doc, bool *available, struct hfd_err *err)
{
    const hfd_slice from = part->row.fleet_id;
    struct hfd_fleet_row row = part->fleet;
    hfd_rc rc;

    HFD_ASSERT(!hfd_backend_id_is_given(from));
    row.id = doc->id;
    if (t->rows.remote.goal == HFD_GOAL_ADOPT) {
        row.name = doc->name;
        row.spec = doc->spec;
        row.labels = doc->labels;
    }
    if (row.kind == HFD_KIND_NODEPOOL && doc->owner_id.len > 0)
        row.owner_id = doc->owner_id;
    if (doc->created_us != 0)
        row.created_us = doc->created_us;
    row.created_by = doc->created_by;
    rc = is_free(t, part, &row, available, err);
    if (rc != HFD_OK || !*available)
        return rc;
    rc = move_row(t, from, &row, err);
    if (rc == HFD_OK)
        rc = set_cluster(t, row.kind == HFD_KIND_NODEPOOL ? row.owner_id : HFD_SLICE_NONE, err);
    if (rc == HFD_OK)
        rc = hfd_remote_orphan_adopted(t->tx, row.id, t->mem, err);
    if (rc != HFD_OK)
        return rc;
    part->fleet = row;
    part->row.fleet_id = row.id;
    part->row.name = row.name;
    for (size_t i = 0; row.kind == HFD_KIND_CLUSTER && i < t->rows.count; i++)
        if (hfd_slice_eq(t->rows.parts[i].fleet.owner_id, from))
            t->rows.parts[i].fleet.owner_id = row.id;
    return put_part(t, part, err);
}

/* ---- reports ---- */

static bool same_report(const struct hfd_report_row *a, const struct hfd_report_row *b)
{
    return a->observed_generation == b->observed_generation && a->observed_us == b->observed_us &&
           hfd_slice_eq(a->conditions, b->conditions) && hfd_slice_eq(a->data, b->data) &&
           hfd_slice_eq(a->metadata, b->metadata);
}

hfd_rc hfd_observe_report(struct hfd_take *t, hfd_slice fleet_id, json_t *doc, struct hfd_err *err)
{
    const struct hfd_fleet *fleet = t->policy->fleet;
    struct hfd_report_row row, stored;
    struct hfd_err why;
    hfd_slice secrets;
    hfd_rc rc;

    rc = hfd_wire_report_read(doc, t->mem, &row, &secrets, &why);
    if (rc == HFD_MALFORMED)
        return HFD_OK;
    if (rc != HFD_OK)
        return hfd_fail_nomem(err, "observe HyperFleet");
    row.fleet_id = fleet_id;
    row.received_us = t->now_us;
    rc = hfd_report_row_get(t->tx, &(struct hfd_report_key){fleet_id, row.adapter}, t->mem, &stored,
                            err);
    if (rc == HFD_OK && same_report(&row, &stored))
        return HFD_OK;
    if (rc != HFD_OK && rc != HFD_NOT_FOUND)
        return rc;
    if (secrets.len > 0 && fleet->seal != NULL) {
        row.secrets =
            fleet->seal(fleet, &(struct hfd_fleet_secret){fleet_id, row.adapter, secrets}, t->mem);
        if (row.secrets.p == NULL)
            return hfd_fail_nomem(err, "observe HyperFleet");
    }
    rc = hfd_report_brief(&row, t->mem, err);
    if (rc != HFD_OK)
        return rc;
    t->m->reports.changed = true;
    return hfd_report_row_put(t->tx, &row, err);
}

/* Removes a part from a list, with all before it, which are gone. @return NULL = not in the list */
static const struct hfd_held_part *remove_held(const struct hfd_held_part **list,
                                               hfd_slice fleet_id)
{
    const struct hfd_held_part *held = *list;

    while (held != NULL && !hfd_slice_eq(held->fleet_id, fleet_id))
        held = held->next;
    if (held != NULL)
        *list = held->next;
    return held;
}

hfd_rc hfd_observe_release(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    const struct hfd_held_part *held = remove_held(&t->m->worse, part->row.fleet_id);
    bool changed;
    hfd_rc rc = HFD_OK;

    if (held == NULL)
        held = remove_held(&t->m->held, part->row.fleet_id);
    if (held == NULL || !part->exists)
        return HFD_OK;
    changed = held->changed || t->m->reports.changed;
    t->m->reports.changed = false;
    /* A later PATCH may have been answered meanwhile. */
    if (!is_stale(part, &held->doc) && differs(&part->fleet, &held->doc)) {
        changed = true;
        rc = write_doc(t, part, &held->doc, err);
    }
    return rc == HFD_OK && changed ? run_observer(t, &part->fleet, false, err) : rc;
}

/* ---- the end ---- */

static hfd_rc remove_part(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    const struct hfd_fleet_call call = {
        .fleet = t->policy->fleet, .now_us = t->now_us, .mem = t->mem};
    hfd_rc rc = hfd_fleet_end(t->tx, &call, &part->fleet, true, err);

    if (rc == HFD_OK)
        rc = hfd_fleet_row_delete(t->tx, part->row.fleet_id, err);
    part->exists = false;
    return rc == HFD_OK ? run_observer(t, &part->fleet, true, err) : rc;
}

hfd_rc hfd_observe_gone(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    const hfd_slice id = part->row.fleet_id;
    hfd_rc rc = remove_part(t, part, err);

    for (size_t i = 0; rc == HFD_OK && part->row.kind == HFD_KIND_CLUSTER && i < t->rows.count; i++)
        if (t->rows.parts[i].exists && hfd_slice_eq(t->rows.parts[i].fleet.owner_id, id))
            rc = remove_part(t, &t->rows.parts[i], err);
    return rc;
}

/* ---- adoption, creation ---- */

/* Returns whether the resource's label is on it. */
static bool adopt_is_ours(const struct hfd_take *t, const struct hfd_wire_resource *doc)
{
    return hfd_slice_eq(doc->guresid, t->rows.res.guresid);
}

/* Returns whether another server of this driver made it. */
static bool adopt_is_foreign(const struct hfd_take *t, const struct hfd_wire_resource *doc)
{
    return !hfd_slice_eq(doc->made_by, t->policy->owner);
}

/* A resource that is adopted: its cluster is complete only with its nodepools. */
static hfd_rc set_goal(struct hfd_take *t, struct hfd_pass_part *part,
                       const struct hfd_wire_resource *doc, struct hfd_err *err)
{
    const bool cluster = part->row.kind == HFD_KIND_CLUSTER;

    part->row.generation = doc->generation;
    part->row.pending = cluster;
    t->rows.remote.goal = cluster ? HFD_GOAL_ADOPT : HFD_GOAL_MAKE;
    return hfd_part_row_put(t->tx, &part->row, err);
}

/* A name cannot change. */
static hfd_slice words_other_name(const struct hfd_take *t, const struct hfd_pass_part *part,
                                  hfd_slice id, hfd_slice name)
{
    return hfd_arena_printf(t->mem,
                            "HyperFleet's %s %.*s of this resource is called '%.*s', and a name "
                            "cannot change to '%.*s'. Use the same name, or delete the resource "
                            "first.",
                            hfd_kind_word(part->row.kind), HFD_SLICE_FMT(id), HFD_SLICE_FMT(name),
                            HFD_SLICE_FMT(part->fleet.name));
}

/* Takes it over for a part that has no id yet, or refuses the operation. */
static hfd_rc adopt_part(struct hfd_take *t, struct hfd_pass_part *part,
                         const struct hfd_wire_resource *doc, struct hfd_err *err)
{
    bool available;
    hfd_rc rc;

    if (t->rows.remote.goal == HFD_GOAL_MAKE && !hfd_slice_eq(doc->name, part->fleet.name))
        return hfd_refuse(t, "RES-101", words_other_name(t, part, doc->id, doc->name), err);
    rc = hfd_observe_id(t, part, doc, &available, err);
    if (rc == HFD_OK && !available)
        return hfd_refuse_taken(t, part, doc->id, HFD_SLICE_NONE, err);
    if (rc == HFD_OK && t->rows.remote.goal == HFD_GOAL_ADOPT)
        rc = set_goal(t, part, doc, err);
    if (rc != HFD_OK)
        return rc;
    if (part == hfd_pass_own(&t->rows))
        hfd_pass_move(t->m, HFD_PASS_LOOK);
    return hfd_observe_document(t, part, doc, err);
}

static struct hfd_pass_part new_pool(const struct hfd_take *t, const struct hfd_wire_resource *doc)
{
    return (struct hfd_pass_part){
        .row = {.guresid = t->rows.res.guresid,
                .fleet_id = doc->id,
                .kind = HFD_KIND_NODEPOOL,
                .name = doc->name,
                .generation = doc->generation},
        .fleet = {.id = doc->id,
                  .kind = HFD_KIND_NODEPOOL,
                  .owner_id = hfd_pass_own(&t->rows)->row.fleet_id,
                  .name = doc->name,
                  .spec = doc->spec,
                  .labels = doc->labels,
                  .conditions = HFD_SLICE("[]"),
                  .created_us = doc->created_us != 0 ? doc->created_us : t->now_us,
                  .updated_us = t->now_us,
                  .created_by = doc->created_by,
                  .updated_by = doc->updated_by},
        .exists = true,
    };
}

/* Makes a part of a nodepool of an adopted cluster. */
static hfd_rc adopt_pool(struct hfd_take *t, const struct hfd_wire_resource *doc,
                         struct hfd_err *err)
{
    struct hfd_pass_part *parts, *part;
    struct hfd_part_row known;
    hfd_rc rc = hfd_part_row_by_fleet(t->tx, doc->id, t->mem, &known, err);

    if (rc != HFD_NOT_FOUND)
        return rc;
    if (hfd_pass_own(&t->rows) == NULL)
        return HFD_OK; /* its cluster has no row */
    parts = hfd_arena_array(t->mem, t->rows.count + 1, sizeof(*parts));
    if (parts == NULL)
        return hfd_fail_nomem(err, "adopt a nodepool");
    memcpy(parts, t->rows.parts, t->rows.count * sizeof(*parts));
    part = &parts[t->rows.count];
    *part = new_pool(t, doc);
    rc = hfd_fleet_row_insert(t->tx, &part->fleet, err);
    if (rc == HFD_CONFLICT)
        return HFD_OK; /* HyperFleet has at most one of that name */
    if (rc == HFD_OK)
        rc = hfd_part_row_put(t->tx, &part->row, err);
    if (rc == HFD_OK)
        rc = hfd_remote_orphan_adopted(t->tx, doc->id, t->mem, err);
    t->rows.parts = parts;
    t->rows.count++;
    return rc == HFD_OK ? hfd_observe_document(t, part, doc, err) : rc;
}

/* All nodepools of an adopted cluster are parts now: from here on it is made as its rows say. */
static hfd_rc adopt_complete(struct hfd_take *t, struct hfd_err *err)
{
    struct hfd_pass_part *own = hfd_pass_own(&t->rows);

    if (t->rows.remote.goal != HFD_GOAL_ADOPT || own == NULL)
        return HFD_OK;
    t->rows.remote.goal = HFD_GOAL_MAKE;
    own->row.pending = false;
    return hfd_part_row_put(t->tx, &own->row, err);
}

/* There is nothing to adopt: removes the rows of the resource. */
static hfd_rc adopt_nothing(struct hfd_take *t, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < t->rows.count; i++)
        rc = hfd_fleet_row_delete(t->tx, t->rows.parts[i].row.fleet_id, err);
    if (rc == HFD_OK)
        rc = hfd_resource_row_count(t->tx, &t->rows.res, t->rows.res.state, -1, err);
    if (rc == HFD_OK)
        rc = hfd_resource_row_delete(t->tx, t->rows.res.guresid, err);
    hfd_pass_end(t->m);
    return rc == HFD_OK
               ? hfd_backend_remote.forget(
                     t->tx, &(struct hfd_backend_subject){t->rows.res.guresid, t->now_us, t->mem},
                     err)
               : rc;
}

/* A POST comes next: sets the time in the row. */
static void creation_announce(struct hfd_take *t)
{
    t->m->creation.announced = true;
    t->m->creation.before_us = t->rows.remote.unsure_us;
    t->rows.remote.unsure_us = t->now_us;
}

/* The announced POST is not sent after all: sets the time back. */
static void creation_withdraw(struct hfd_take *t)
{
    if (t->m->creation.announced)
        t->rows.remote.unsure_us = t->m->creation.before_us;
    t->m->creation.announced = false;
}

/* Returns whether a nodepool has to be created. @param but  not counted; may be NULL */
static bool creation_is_left(const struct hfd_take *t, const struct hfd_pass_part *but)
{
    for (size_t i = 0; i < t->rows.count; i++) {
        const struct hfd_pass_part *p = &t->rows.parts[i];

        if (p != but && i != t->rows.own && p->exists && p->row.pending && !p->row.leaving &&
            p->fleet.deleted_us == 0 && !hfd_backend_id_is_given(p->row.fleet_id))
            return true;
    }
    return false;
}

void hfd_creation_conclude(struct hfd_take *t)
{
    const struct hfd_pass_part *part = hfd_pass_part_by_id(&t->rows, t->request->fleet_id);
    const bool answered =
        t->verdict != HFD_ON_LATER && t->verdict != HFD_ON_FOREIGN && t->verdict != HFD_ON_WRONG;
    const bool more = part != hfd_pass_own(&t->rows) && creation_is_left(t, part);

    t->rows.remote.unsure_us = !answered || more ? t->now_us : t->m->creation.before_us;
}

bool hfd_creation_is_unsure(const struct hfd_take *t)
{
    return t->rows.remote.unsure_us != 0 &&
           t->now_us < t->rows.remote.unsure_us + HFD_CREATION_UNSURE_US;
}

/* ---- lists: by label, by name, nodepools ---- */

/* A page of clusters or nodepools, without those that cannot be read. */
struct take_docs {
    struct hfd_wire_resource *docs;
    size_t count;
    bool last;
};

/* The list of the present phase begins anew. */
static void take_restart_list(struct hfd_take *t)
{
    struct hfd_pass_list *list = hfd_pass_list(t->m);

    list->page = 0;
    list->count = 0;
}

bool hfd_take_page(struct hfd_take *t, const struct hfd_wire_page *page, int64_t pages_max)
{
    struct hfd_pass_list *list = hfd_pass_list(t->m);
    bool last;

    list->count += (int64_t)page->count;
    last = page->count == 0 || (page->total >= 0 && list->count >= page->total) ||
           list->page + 1 >= pages_max;
    list->page++;
    if (last)
        take_restart_list(t);
    return last;
}

/* Reads the answer as a page, and counts it. Fails the pass if it is not a list. */
static hfd_rc take_docs(struct hfd_take *t, enum hfd_kind kind, struct take_docs *out,
                        struct hfd_err *err)
{
    struct hfd_wire_page page;
    struct hfd_err why;

    *out = (struct take_docs){.last = true};
    if (hfd_wire_page_read(t->doc, &page, &why) != HFD_OK)
        return hfd_due_later(t, err, HFD_TAKE_NO_LIST);
    out->docs = hfd_arena_array(t->mem, page.count + 1, sizeof(*out->docs));
    if (out->docs == NULL)
        return hfd_fail_nomem(err, "take HyperFleet's list");
    for (size_t i = 0; i < page.count; i++) {
        const hfd_rc rc = hfd_wire_resource_read(json_array_get(page.items, i), kind, t->mem,
                                                 &out->docs[out->count], &why);

        if (rc == HFD_NOMEM)
            return hfd_fail_nomem(err, "take HyperFleet's list");
        out->count += rc == HFD_OK;
    }
    out->last = hfd_take_page(t, &page, HFD_TAKE_PAGES_MAX);
    return HFD_OK;
}

/* The documents of a page that are ours. */
struct found {
    const struct hfd_wire_resource *live;    /* ours; one of that name if there are several */
    const struct hfd_wire_resource *leaving; /* ours, and being deleted */
};

static hfd_rc note_foreign(struct hfd_take *t, const struct hfd_wire_resource *doc,
                           struct hfd_err *err)
{
    t->m->find.foreign = hfd_arena_dup(&t->pass->mem, doc->id);
    t->m->find.foreign_owner = hfd_arena_dup(&t->pass->mem, doc->made_by);
    return t->m->find.foreign.p != NULL && t->m->find.foreign_owner.p != NULL
               ? HFD_OK
               : hfd_fail_nomem(err, "take HyperFleet's list");
}

static hfd_rc find_ours(struct hfd_take *t, const struct take_docs *page, struct found *out,
                        struct hfd_err *err)
{
    const struct hfd_pass_part *own = hfd_pass_own(&t->rows);
    hfd_rc rc = HFD_OK;

    *out = (struct found){.live = NULL};
    for (size_t i = 0; rc == HFD_OK && i < page->count; i++) {
        const struct hfd_wire_resource *doc = &page->docs[i];
        const bool foreign = adopt_is_foreign(t, doc);

        if (!adopt_is_ours(t, doc))
            continue;
        if (doc->deleting)
            out->leaving = foreign ? out->leaving : doc;
        else if (foreign)
            rc = note_foreign(t, doc, err);
        else if (out->live == NULL || hfd_slice_eq(doc->name, own->fleet.name))
            out->live = doc;
    }
    return rc;
}

/* A deletion whose own part was not found. @param leaving  what is being deleted, or NULL */
static hfd_rc nothing_to_delete(struct hfd_take *t, const struct hfd_wire_resource *leaving,
                                struct hfd_err *err)
{
    const bool unsure = hfd_creation_is_unsure(t);

    if (!unsure && leaving != NULL) /* the row was lost: follow the deletion to its end */
        return adopt_part(t, hfd_pass_own(&t->rows), leaving, err);
    hfd_pass_end(t->m);
    if (!unsure)
        return hfd_observe_gone(t, hfd_pass_own(&t->rows), err);
    t->wait_until_us = t->rows.remote.unsure_us + HFD_CREATION_UNSURE_US;
    return HFD_OK;
}

/* The label is on nothing that lives. @param leaving  what is being deleted, or NULL */
static hfd_rc found_nothing(struct hfd_take *t, const struct hfd_wire_resource *leaving,
                            struct hfd_err *err)
{
    const int goal = t->rows.remote.goal;

    creation_withdraw(t);
    if (goal == HFD_GOAL_DELETE)
        return nothing_to_delete(t, leaving, err);
    if (goal != HFD_GOAL_MAKE && goal != HFD_GOAL_ADOPT) {
        hfd_pass_end(t->m);
        return HFD_OK;
    }
    if (t->m->find.foreign.len > 0)
        return hfd_refuse_taken(t, hfd_pass_own(&t->rows), t->m->find.foreign,
                                t->m->find.foreign_owner, err);
    if (goal == HFD_GOAL_ADOPT)
        return adopt_nothing(t, err);
    creation_announce(t);
    hfd_pass_move(t->m, HFD_PASS_CREATE);
    return HFD_OK;
}

hfd_rc hfd_take_find(struct hfd_take *t, struct hfd_err *err)
{
    struct take_docs page;
    struct found found;
    hfd_rc rc = take_docs(t, t->rows.res.kind, &page, err);

    if (rc != HFD_OK || t->failed || hfd_pass_own(&t->rows) == NULL)
        return rc;
    rc = find_ours(t, &page, &found, err);
    if (rc != HFD_OK)
        return rc;
    if (found.live == NULL)
        return page.last ? found_nothing(t, found.leaving, err) : HFD_OK;
    take_restart_list(t);
    return adopt_part(t, hfd_pass_own(&t->rows), found.live, err);
}

hfd_rc hfd_take_find_name(struct hfd_take *t, struct hfd_err *err)
{
    struct hfd_pass_part *part = hfd_pass_part_by_id(&t->rows, t->request->fleet_id);
    struct take_docs page;
    hfd_rc rc;

    if (part == NULL || !part->exists)
        return HFD_OK;
    rc = take_docs(t, part->row.kind, &page, err);
    for (size_t i = 0; rc == HFD_OK && !t->failed && i < page.count; i++) {
        const struct hfd_wire_resource *doc = &page.docs[i];

        if (doc->deleting || !hfd_slice_eq(doc->name, part->fleet.name))
            continue;
        take_restart_list(t);
        if (adopt_is_ours(t, doc) && !adopt_is_foreign(t, doc))
            return adopt_part(t, part, doc, err);
        return hfd_refuse_taken(
            t, part, doc->id,
            adopt_is_ours(t, doc) || doc->made_by.len > 0 ? doc->made_by : HFD_SLICE_NONE, err);
    }
    if (rc != HFD_OK || t->failed || !page.last)
        return rc;
    return hfd_due_later(t, err,
                         "HyperFleet reports that the name '%.*s' is taken, but lists no %s with "
                         "that name",
                         HFD_SLICE_FMT(part->fleet.name), hfd_kind_word(part->row.kind));
}

hfd_rc hfd_take_find_missing(struct hfd_take *t, struct hfd_err *err)
{
    if (t->rows.res.kind == HFD_KIND_NODEPOOL && t->rows.remote.goal == HFD_GOAL_DELETE)
        return found_nothing(t, NULL, err);
    if (t->rows.res.kind != HFD_KIND_NODEPOOL || t->rows.remote.goal != HFD_GOAL_MAKE)
        return hfd_due_later_by_answer(t, err);
    hfd_pass_move(t->m, HFD_PASS_ASK_OWNER);
    return HFD_OK;
}

/* The part without an id that has this name; a part that leaves comes last. */
static struct hfd_pass_part *uncreated_by_name(const struct hfd_take *t, hfd_slice name)
{
    struct hfd_pass_part *leaving = NULL;

    for (size_t i = 0; i < t->rows.count; i++) {
        struct hfd_pass_part *p = &t->rows.parts[i];

        if (!p->exists || p->row.kind != HFD_KIND_NODEPOOL ||
            hfd_backend_id_is_given(p->row.fleet_id) || !hfd_slice_eq(p->fleet.name, name))
            continue;
        if (!p->row.leaving)
            return p;
        leaving = leaving != NULL ? leaving : p;
    }
    return leaving;
}

static struct hfd_pass_part *part_of(const struct hfd_take *t, const struct hfd_wire_resource *doc)
{
    struct hfd_pass_part *part = hfd_pass_part_by_id(&t->rows, doc->id);

    return part != NULL || doc->deleting ? part : uncreated_by_name(t, doc->name);
}

static hfd_rc take_pool(struct hfd_take *t, const struct hfd_wire_resource *doc,
                        struct hfd_err *err)
{
    struct hfd_pass_part *part = part_of(t, doc);

    if (doc->owner_id.len > 0 && !hfd_slice_eq(doc->owner_id, t->request->fleet_id))
        return HFD_OK; /* some generations list those of other clusters too */
    if (hfd_pass_seen(t->m, doc->id) != NULL)
        return HFD_OK; /* it moved to a later page meanwhile */
    if (part != NULL && hfd_slice_eq(part->row.fleet_id, doc->id))
        return hfd_observe_document(t, part, doc, err);
    if (!adopt_is_ours(t, doc) || adopt_is_foreign(t, doc))
        return HFD_OK;
    if (part != NULL)
        return adopt_part(t, part, doc, err);
    return t->rows.remote.goal == HFD_GOAL_ADOPT && !doc->deleting ? adopt_pool(t, doc, err)
                                                                   : HFD_OK;
}

static hfd_rc pools_complete(struct hfd_take *t, struct hfd_err *err)
{
    const hfd_rc rc = adopt_complete(t, err);

    t->m->pools.complete = true;
    if (t->rows.remote.goal == HFD_GOAL_MAKE && creation_is_left(t, NULL))
        creation_announce(t);
    return rc;
}

hfd_rc hfd_take_pools(struct hfd_take *t, struct hfd_err *err)
{
    struct take_docs page;
    hfd_rc rc;

    if (t->verdict == HFD_ON_MISSING)
        return hfd_take_look_again(t, t->request->fleet_id, err);
    rc = take_docs(t, HFD_KIND_NODEPOOL, &page, err);
    for (size_t i = 0; rc == HFD_OK && t->m->phase != HFD_PASS_DONE && i < page.count; i++)
        rc = take_pool(t, &page.docs[i], err);
    return rc == HFD_OK && t->m->phase != HFD_PASS_DONE && page.last ? pools_complete(t, err) : rc;
}
