/* See observe.h. */
#include "driver/backend/remote/observe.h"

#include "driver/backend/backend.h"
#include "driver/backend/remote/handle.h"
#include "driver/backend/remote/orphans.h"
#include "driver/backend/remote/wire.h"
#include "driver/backend/remote/work.h"
#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/peer.h"
#include "driver/fleet/report.h"
#include "store/rows_fleet.h"

/* While a remote may only lag behind, an earlier generation is not believed. */
#define BEHIND_US (15 * HFD_US_PER_S)

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

hfd_rc hfd_observe_document(struct hfd_take *t, struct hfd_pass_part *part,
                            const struct hfd_wire_resource *doc, struct hfd_err *err)
{
    const struct hfd_seen_part seen = {.fleet_id = part->row.fleet_id,
                                       .deleting = doc->deleting,
                                       .spec = doc->spec,
                                       .labels = doc->labels};
    bool cleared = false;
    hfd_rc rc = HFD_OK;

    if (is_stale(part, doc)) {
        if (!is_behind_for_good(t))
            return hfd_due_later(t, err, HFD_WORDS_BEHIND);
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

/* ---- adoption, creation, refusal ---- */

bool hfd_adopt_is_ours(const struct hfd_take *t, const struct hfd_wire_resource *doc)
{
    return hfd_slice_eq(doc->guresid, t->rows.res.guresid);
}

bool hfd_adopt_is_foreign(const struct hfd_take *t, const struct hfd_wire_resource *doc)
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

hfd_rc hfd_adopt_part(struct hfd_take *t, struct hfd_pass_part *part,
                      const struct hfd_wire_resource *doc, struct hfd_err *err)
{
    bool available;
    hfd_rc rc;

    if (t->rows.remote.goal == HFD_GOAL_MAKE && !hfd_slice_eq(doc->name, part->fleet.name))
        return hfd_refuse(t, "RES-101", hfd_words_other_name(t, part, doc->id, doc->name), err);
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

hfd_rc hfd_adopt_pool(struct hfd_take *t, const struct hfd_wire_resource *doc, struct hfd_err *err)
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

hfd_rc hfd_adopt_complete(struct hfd_take *t, struct hfd_err *err)
{
    struct hfd_pass_part *own = hfd_pass_own(&t->rows);

    if (t->rows.remote.goal != HFD_GOAL_ADOPT || own == NULL)
        return HFD_OK;
    t->rows.remote.goal = HFD_GOAL_MAKE;
    own->row.pending = false;
    return hfd_part_row_put(t->tx, &own->row, err);
}

hfd_rc hfd_adopt_nothing(struct hfd_take *t, struct hfd_err *err)
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

void hfd_creation_announce(struct hfd_take *t)
{
    t->m->creation.announced = true;
    t->m->creation.before_us = t->rows.remote.unsure_us;
    t->rows.remote.unsure_us = t->now_us;
}

void hfd_creation_withdraw(struct hfd_take *t)
{
    if (t->m->creation.announced)
        t->rows.remote.unsure_us = t->m->creation.before_us;
    t->m->creation.announced = false;
}

bool hfd_creation_is_left(const struct hfd_take *t, const struct hfd_pass_part *but)
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
    const bool more = part != hfd_pass_own(&t->rows) && hfd_creation_is_left(t, part);

    t->rows.remote.unsure_us = !answered || more ? t->now_us : t->m->creation.before_us;
}

bool hfd_creation_is_unsure(const struct hfd_take *t)
{
    return t->rows.remote.unsure_us != 0 &&
           t->now_us < t->rows.remote.unsure_us + HFD_CREATION_UNSURE_US;
}

#define REFUSALS_MAX 3

/* Takes back deleted_us of parts that are not going to be deleted. */
static hfd_rc restore(struct hfd_take *t, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < t->rows.count; i++) {
        struct hfd_pass_part *p = &t->rows.parts[i];
        const struct hfd_seen_part *seen = hfd_pass_seen(t->m, p->row.fleet_id);
        struct hfd_fleet_row other;

        if (!p->exists || p->fleet.deleted_us == 0 || (seen != NULL && seen->deleting))
            continue;
        rc = hfd_fleet_row_by_name(
            t->tx, &(struct hfd_fleet_name){p->fleet.kind, p->fleet.owner_id, p->fleet.name},
            t->mem, &other, err);
        if (rc == HFD_OK)
            continue; /* another resource has its name now */
        if (rc != HFD_NOT_FOUND)
            return rc;
        p->fleet.deleted_us = 0;
        p->fleet.deleted_by = HFD_SLICE_NONE;
        rc = hfd_fleet_row_update(t->tx, &p->fleet, err);
    }
    return rc;
}

hfd_rc hfd_refuse(struct hfd_take *t, const char *code, hfd_slice message, struct hfd_err *err)
{
    const hfd_slice guresid = t->rows.res.guresid;
    hfd_rc rc;

    if (message.p != NULL)
        message = hfd_arena_printf(t->mem, "%.*s (resource %.*s)", HFD_SLICE_FMT(message),
                                   HFD_SLICE_FMT(guresid));
    if (message.p == NULL)
        return hfd_fail_nomem(err, "refuse an operation");
    hfd_pass_end(t->m);
    if (t->rows.remote.goal == HFD_GOAL_OBSERVE)
        return HFD_OK;
    t->rows.remote.goal = HFD_GOAL_OBSERVE;
    rc = restore(t, err);
    if (rc == HFD_OK)
        rc = t->policy->on_refused(
            t->policy->observer, t->tx,
            &(struct hfd_fleet_call){.fleet = t->policy->fleet, .now_us = t->now_us, .mem = t->mem},
            &(struct hfd_refusal){guresid, code, message}, err);
    return rc;
}

hfd_rc hfd_refuse_taken(struct hfd_take *t, const struct hfd_pass_part *part, hfd_slice id,
                        hfd_slice made_by, struct hfd_err *err)
{
    const bool other_server = made_by.p != NULL && !hfd_slice_eq(made_by, t->policy->owner);

    return hfd_refuse(t, "RES-101",
                      other_server ? hfd_words_other_server(t, part, id, made_by)
                                   : hfd_words_name_taken(t, part, id),
                      err);
}

hfd_rc hfd_refuse_invalid(struct hfd_take *t, const struct hfd_pass_part *part, struct hfd_err *err)
{
    return hfd_refuse(t, "RES-101", hfd_words_invalid(t, part), err);
}

hfd_rc hfd_refuse_unable(struct hfd_take *t, const struct hfd_pass_part *part, struct hfd_err *err)
{
    return hfd_refuse(t, "RES-104", hfd_words_unable(t, part), err);
}

hfd_rc hfd_refuse_credentials(struct hfd_take *t, struct hfd_err *err)
{
    hfd_rc rc;

    t->rows.remote.refusals++;
    rc = hfd_due_later_by_answer(t, err);
    if (rc != HFD_OK || t->rows.remote.refusals < REFUSALS_MAX ||
        (t->rows.remote.goal != HFD_GOAL_MAKE && t->rows.remote.goal != HFD_GOAL_ADOPT))
        return rc;
    /* A ready resource stays ready: it needs nothing until there is a new token. */
    if (hfd_due_is_settled(&t->rows))
        return HFD_OK;
    return hfd_refuse(t, "RES-103", hfd_words_credentials(t), err);
}
