/* See adopt.h. */
#include "driver/backend/remote/adopt.h"

#include "driver/backend/mirror.h"
#include "driver/backend/remote/handle.h"
#include "driver/backend/remote/observe.h"
#include "driver/backend/remote/orphans.h"
#include "driver/backend/remote/pace.h"
#include "driver/backend/remote/wire.h"
#include "driver/backend/remote/work.h"

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
