/* See take_find.h. */
#include "driver/backend/remote/take_find.h"

#include "driver/backend/remote/adopt.h"
#include "driver/backend/remote/creation.h"
#include "driver/backend/remote/due.h"
#include "driver/backend/remote/observe.h"
#include "driver/backend/remote/refuse.h"
#include "driver/backend/remote/take_list.h"
#include "driver/backend/remote/take_note.h"
#include "driver/fleet/names.h"

/* ---- by label ---- */

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

static hfd_rc find_ours(struct hfd_take *t, const struct hfd_take_docs *page, struct found *out,
                        struct hfd_err *err)
{
    const struct hfd_pass_part *own = hfd_pass_own(&t->rows);
    hfd_rc rc = HFD_OK;

    *out = (struct found){.live = NULL};
    for (size_t i = 0; rc == HFD_OK && i < page->count; i++) {
        const struct hfd_wire_resource *doc = &page->docs[i];
        const bool foreign = hfd_adopt_is_foreign(t, doc);

        if (!hfd_adopt_is_ours(t, doc))
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
        return hfd_adopt_part(t, hfd_pass_own(&t->rows), leaving, err);
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

    hfd_creation_withdraw(t);
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
        return hfd_adopt_nothing(t, err);
    hfd_creation_announce(t);
    hfd_pass_move(t->m, HFD_PASS_CREATE);
    return HFD_OK;
}

hfd_rc hfd_take_find(struct hfd_take *t, struct hfd_err *err)
{
    struct hfd_take_docs page;
    struct found found;
    hfd_rc rc = hfd_take_docs(t, t->rows.res.kind, &page, err);

    if (rc != HFD_OK || t->failed || hfd_pass_own(&t->rows) == NULL)
        return rc;
    rc = find_ours(t, &page, &found, err);
    if (rc != HFD_OK)
        return rc;
    if (found.live == NULL)
        return page.last ? found_nothing(t, found.leaving, err) : HFD_OK;
    hfd_take_restart_list(t);
    return hfd_adopt_part(t, hfd_pass_own(&t->rows), found.live, err);
}

/* ---- by name ---- */

hfd_rc hfd_take_find_name(struct hfd_take *t, struct hfd_err *err)
{
    struct hfd_pass_part *part = hfd_pass_part_by_id(&t->rows, t->request->fleet_id);
    struct hfd_take_docs page;
    hfd_rc rc;

    if (part == NULL || !part->exists)
        return HFD_OK;
    rc = hfd_take_docs(t, part->row.kind, &page, err);
    for (size_t i = 0; rc == HFD_OK && !t->failed && i < page.count; i++) {
        const struct hfd_wire_resource *doc = &page.docs[i];

        if (doc->deleting || !hfd_slice_eq(doc->name, part->fleet.name))
            continue;
        hfd_take_restart_list(t);
        if (hfd_adopt_is_ours(t, doc) && !hfd_adopt_is_foreign(t, doc))
            return hfd_adopt_part(t, part, doc, err);
        return hfd_refuse_taken(t, part, doc->id, doc->made_by, err);
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

/* ---- nodepools ---- */

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
    if (!hfd_adopt_is_ours(t, doc) || hfd_adopt_is_foreign(t, doc))
        return HFD_OK;
    if (part != NULL)
        return hfd_adopt_part(t, part, doc, err);
    return t->rows.remote.goal == HFD_GOAL_ADOPT && !doc->deleting ? hfd_adopt_pool(t, doc, err)
                                                                   : HFD_OK;
}

static hfd_rc pools_complete(struct hfd_take *t, struct hfd_err *err)
{
    const hfd_rc rc = hfd_adopt_complete(t, err);

    t->m->pools.complete = true;
    if (t->rows.remote.goal == HFD_GOAL_MAKE && hfd_creation_is_left(t, NULL))
        hfd_creation_announce(t);
    return rc;
}

hfd_rc hfd_take_pools(struct hfd_take *t, struct hfd_err *err)
{
    struct hfd_take_docs page;
    hfd_rc rc;

    if (t->verdict == HFD_ON_MISSING)
        return hfd_take_look_again(t, t->request->fleet_id, err);
    rc = hfd_take_docs(t, HFD_KIND_NODEPOOL, &page, err);
    for (size_t i = 0; rc == HFD_OK && t->m->phase != HFD_PASS_DONE && i < page.count; i++)
        rc = take_pool(t, &page.docs[i], err);
    return rc == HFD_OK && t->m->phase != HFD_PASS_DONE && page.last ? pools_complete(t, err) : rc;
}

/*
 * Returns whether all that the remote has of the resource was seen, and all that is worse was
 * written.
 */
static bool is_all_known(const struct hfd_take *t)
{
    return t->m->pools.complete && hfd_pass_first_held(t->m->worse, &t->rows) == NULL &&
           hfd_pass_first_unseen(t->m, &t->rows) == NULL;
}

hfd_rc hfd_take_drop_uncreated(struct hfd_take *t, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    if (t->m->phase == HFD_PASS_DONE || !is_all_known(t))
        return HFD_OK;
    for (size_t i = 0; rc == HFD_OK && !hfd_creation_is_unsure(t) && i < t->rows.count; i++) {
        struct hfd_pass_part *p = &t->rows.parts[i];

        if (p->exists && p->row.kind == HFD_KIND_NODEPOOL && p->row.leaving &&
            !hfd_backend_id_is_given(p->row.fleet_id))
            rc = hfd_observe_gone(t, p, err);
    }
    return rc;
}
