/* See adopt.h. */
#include "driver/backend/remote/adopt.h"

#include "driver/backend/mirror.h"
#include "driver/backend/remote/observe.h"
#include "driver/backend/remote/orphans.h"
#include "driver/backend/remote/refuse.h"
#include "driver/backend/remote/words.h"

bool hfd_adopt_is_ours(const struct hfd_take *t, const struct hfd_wire_resource *doc)
{
    return hfd_slice_eq(doc->guresid, t->rows.res.guresid);
}

bool hfd_adopt_is_foreign(const struct hfd_take *t, const struct hfd_wire_resource *doc)
{
    return doc->made_by.len > 0 && !hfd_slice_eq(doc->made_by, t->policy->owner);
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
