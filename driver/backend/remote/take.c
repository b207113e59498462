/*
 * From an answer to rows: what it means for the step that asked. See pass.h. Thread: writer,
 * inside a transaction function.
 */
#include "driver/backend/remote/due.h"
#include "driver/backend/remote/orphans.h"

#include "driver/base/check.h"
#include "driver/fleet/names.h"
#include "store/rows_fleet.h"
#include "store/rows_resource.h"
#include "store/rows_part.h"
#include "store/rows_remote.h"

#define WORDS_MAX_BYTES 240

static hfd_rc no_memory(struct hfd_err *err)
{
    return hfd_fail(err, HFD_NOMEM, "out of memory while taking HyperFleet's answer");
}

/* ---- failing ---- */

static hfd_rc later_by_answer(struct hfd_take *t, struct hfd_err *err)
{
    const hfd_slice words = hfd_due_words(t);

    return words.p != NULL ? hfd_due_later(t, err, "%.*s", HFD_SLICE_FMT(words)) : no_memory(err);
}

/* What was marked for deletion and is not going to be deleted. */
static hfd_rc restore(struct hfd_take *t, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < t->s.count; i++) {
        struct hfd_pass_part *p = &t->s.parts[i];
        const struct hfd_seen *seen = hfd_pass_seen(t->m, p->row.fleet_id);
        struct hfd_fleet_row other;

        if (!p->exists || p->fleet.deleted_us == 0 || (seen != NULL && seen->deleting))
            continue;
        rc = hfd_fleet_row_by_name(
            t->tx, &(struct hfd_fleet_name){p->fleet.kind, p->fleet.owner_id, p->fleet.name},
            t->mem, &other, err);
        if (rc == HFD_OK)
            continue; /* another one has taken its place */
        if (rc != HFD_NOT_FOUND)
            return rc;
        p->fleet.deleted_us = 0;
        p->fleet.deleted_by = HFD_SLICE_NONE;
        rc = hfd_fleet_row_update(t->tx, &p->fleet, err);
    }
    return rc;
}

/*
 * Ends the operation for good: the next PUT or DELETE begins anew. The message is a whole one but
 * for whose it is.
 */
static hfd_rc refuse(struct hfd_take *t, const char *code, hfd_slice message, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    if (message.p != NULL)
        message = hfd_arena_printf(t->mem, "%.*s (resource %.*s)", HFD_SLICE_FMT(message),
                                   HFD_SLICE_FMT(t->s.res.guresid));
    if (message.p == NULL)
        return no_memory(err);
    t->m->over = true;
    if (t->s.up.goal != HFD_GOAL_OBSERVE) {
        t->s.up.goal = HFD_GOAL_OBSERVE;
        rc = restore(t, err);
        if (rc == HFD_OK)
            rc = t->policy->on_refused(t->policy->on_refused_ctx, t->tx, t->s.res.guresid, code,
                                       message, t->now_us, t->mem, err);
    }
    return rc;
}

static hfd_rc refuse_taken(struct hfd_take *t, const struct hfd_pass_part *part, hfd_slice id,
                           hfd_slice made_by, struct hfd_err *err)
{
    const char *kind = hfd_kind_word(part->row.kind);

    if (made_by.len > 0 && !hfd_slice_eq(made_by, t->policy->owner))
        return refuse(
            t, "RES-101",
            hfd_arena_printf(
                t->mem,
                "HyperFleet's %s %.*s belongs to another server of this driver (" HFD_OWNER_LABEL
                " is '%.*s'): delete it there, or use another name and resource.",
                kind, HFD_SLICE_FMT(id), HFD_SLICE_FMT(hfd_wire_tidy(made_by, 63, t->mem))),
            err);
    return refuse(t, "RES-101",
                  hfd_arena_printf(t->mem,
                                   "The name '%.*s' is taken by HyperFleet's %s %.*s, which is not "
                                   "of this resource. Choose another name "
                                   "and deploy again, or delete the resource.",
                                   HFD_SLICE_FMT(part->fleet.name), kind, HFD_SLICE_FMT(id)),
                  err);
}

static hfd_rc refuse_invalid(struct hfd_take *t, const struct hfd_pass_part *part,
                             struct hfd_err *err)
{
    return refuse(t, "RES-101",
                  hfd_arena_printf(t->mem,
                                   "HyperFleet refused %s '%.*s' (it answered %d%s%.*s). Correct "
                                   "the input and deploy again, or "
                                   "delete the resource.",
                                   hfd_kind_word(part->row.kind), HFD_SLICE_FMT(part->row.name),
                                   t->answer->status, t->problem.words.len > 0 ? ": " : "",
                                   HFD_SLICE_FMT(t->problem.words)),
                  err);
}

static hfd_rc refuse_unable(struct hfd_take *t, const struct hfd_pass_part *part,
                            struct hfd_err *err)
{
    const bool deleting = t->request->method == HFD_REMOTE_DELETE;

    return refuse(
        t, "RES-104",
        hfd_arena_printf(
            t->mem,
            "This HyperFleet cannot %s %ss (it answered %d to %s): its version is too old for "
            "that. The platform's "
            "operator has to %s %s '%.*s' (%.*s) in HyperFleet, or to upgrade it; then %s again.",
            deleting ? "delete" : "change", hfd_kind_word(part->row.kind), t->answer->status,
            deleting ? "DELETE" : "PATCH", deleting ? "remove" : "change",
            hfd_kind_word(part->row.kind), HFD_SLICE_FMT(part->row.name),
            HFD_SLICE_FMT(part->row.fleet_id), deleting ? "delete" : "deploy"),
        err);
}

static hfd_rc refused_credentials(struct hfd_take *t, struct hfd_err *err)
{
    hfd_rc rc;

    t->s.up.refusals++;
    rc = later_by_answer(t, err);
    if (rc != HFD_OK || t->s.up.refusals < HFD_REMOTE_REFUSALS_MAX ||
        (t->s.up.goal != HFD_GOAL_MAKE && t->s.up.goal != HFD_GOAL_ADOPT))
        return rc;
    /* What is ready stays so: a new token mends it, and nothing is to be done meanwhile. */
    if (hfd_due_is_settled(&t->s))
        return HFD_OK;
    return refuse(t, "RES-103",
                  hfd_arena_printf(t->mem,
                                   "HyperFleet refused the driver's credentials (it answered %d). "
                                   "The platform's operator has to renew "
                                   "them; then deploy again.",
                                   t->answer->status),
                  err);
}

/* ---- looking again ---- */

/* What was seen of it is out of date. */
static hfd_rc unsee(struct hfd_take *t, hfd_slice fleet_id, struct hfd_err *err)
{
    /* The list only grows at its head: an entry that says so hides the earlier one. */
    struct hfd_seen *unseen = hfd_arena_alloc(&t->pass->mem, sizeof(*unseen));

    if (unseen == NULL)
        return no_memory(err);
    *unseen = (struct hfd_seen){
        .fleet_id = hfd_arena_dup(&t->pass->mem, fleet_id), .unseen = true, .next = t->m->seen};
    t->m->seen = unseen;
    return unseen->fleet_id.p != NULL ? HFD_OK : no_memory(err);
}

/* The remote has contradicted what was seen before. */
static hfd_rc look_again(struct hfd_take *t, hfd_slice fleet_id, struct hfd_err *err)
{
    if (++t->m->relooks <= HFD_REMOTE_RELOOKS_MAX)
        return unsee(t, fleet_id, err);
    return hfd_due_later(t, err, "HyperFleet contradicts itself about %.*s (it answered %d)",
                         HFD_SLICE_FMT(fleet_id), t->answer->status);
}

static hfd_rc mark(struct hfd_take *t, hfd_slice id, const struct hfd_mark **list,
                   struct hfd_err *err)
{
    struct hfd_mark *m = hfd_arena_alloc(&t->pass->mem, sizeof(*m));

    if (m == NULL)
        return no_memory(err);
    *m = (struct hfd_mark){hfd_arena_dup(&t->pass->mem, id), *list};
    *list = m;
    return m->id.p != NULL ? HFD_OK : no_memory(err);
}

/* ---- lists ---- */

static bool is_ours(const struct hfd_take *t, const struct hfd_wire_resource *doc)
{
    return hfd_slice_eq(doc->guresid, t->s.res.guresid);
}

static bool is_foreign(const struct hfd_take *t, const struct hfd_wire_resource *doc)
{
    return doc->made_by.len > 0 && !hfd_slice_eq(doc->made_by, t->policy->owner);
}

/* The resources of a page; what cannot be read is left out. */
static hfd_rc read_page(struct hfd_take *t, enum hfd_kind kind, struct hfd_wire_resource **out,
                        size_t *count, bool *last, struct hfd_err *err)
{
    struct hfd_wire_page page;
    struct hfd_err why;
    hfd_rc rc = hfd_wire_page_read(t->doc, &page, &why);

    *count = 0;
    *last = true;
    if (rc != HFD_OK)
        return hfd_due_later(t, err, "HyperFleet answered with a document that is no list");
    *out = hfd_arena_array(t->mem, page.count + 1, sizeof(**out));
    if (*out == NULL)
        return no_memory(err);
    for (size_t i = 0; i < page.count; i++) {
        rc = hfd_wire_resource_read(json_array_get(page.items, i), kind, t->mem, &(*out)[*count],
                                    &why);
        if (rc == HFD_NOMEM)
            return no_memory(err);
        *count += rc == HFD_OK;
    }
    *last = hfd_take_page(t, &page, HFD_REMOTE_PAGES_MAX);
    return HFD_OK;
}

/* ---- taking over what is there ---- */

/* A resource is there for a part that has no id yet. */
static hfd_rc adopt(struct hfd_take *t, struct hfd_pass_part *part,
                    const struct hfd_wire_resource *doc, struct hfd_err *err)
{
    bool ok;
    hfd_rc rc;

    if (t->s.up.goal == HFD_GOAL_MAKE && !hfd_slice_eq(doc->name, part->fleet.name))
        return refuse(t, "RES-101",
                      hfd_arena_printf(t->mem,
                                       "HyperFleet's %s %.*s of this resource is called '%.*s', "
                                       "and a name cannot change to '%.*s'. Use "
                                       "the same name, or delete the resource first.",
                                       hfd_kind_word(part->row.kind), HFD_SLICE_FMT(doc->id),
                                       HFD_SLICE_FMT(doc->name), HFD_SLICE_FMT(part->fleet.name)),
                      err);
    rc = hfd_observe_name(t, part, doc, &ok, err);
    if (rc == HFD_OK && !ok)
        return refuse_taken(t, part, doc->id, HFD_SLICE_NONE, err);
    if (rc == HFD_OK && t->s.up.goal == HFD_GOAL_ADOPT) {
        part->row.generation = doc->generation;
        /* A cluster is not complete before its nodepools are known. */
        part->row.pending = part->row.kind == HFD_KIND_CLUSTER;
        t->s.up.goal = part->row.kind == HFD_KIND_CLUSTER ? HFD_GOAL_ADOPT : HFD_GOAL_MAKE;
        rc = hfd_part_row_put(t->tx, &part->row, err);
    }
    return rc == HFD_OK ? hfd_observe_see(t, part, doc, err) : rc;
}

/* Nothing of a resource that was to be adopted is there: it never was. */
static hfd_rc drop_resource(struct hfd_take *t, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < t->s.count; i++)
        rc = hfd_fleet_row_delete(t->tx, t->s.parts[i].row.fleet_id, err);
    if (rc == HFD_OK)
        rc = hfd_resource_row_delete(t->tx, t->s.res.guresid, err);
    t->m->over = true;
    return rc == HFD_OK ? hfd_backend_remote.forget(t->tx, t->s.res.guresid, t->now_us, err) : rc;
}

/*
 * What is sent next may be carried out though nobody is here any more to hear of it: a process can
 * end at any instant.
 */
static void announce_creation(struct hfd_take *t)
{
    t->m->unsent = true;
    t->m->unsure_us = t->s.up.unsure_us;
    t->s.up.unsure_us = t->now_us;
}

/*
 * A creation that nobody answered may still be on its way: to forget it now could leave a cluster
 * or nodepool behind.
 */
static bool is_unsure(const struct hfd_take *t)
{
    return t->s.up.unsure_us != 0 && t->now_us < t->s.up.unsure_us + HFD_REMOTE_UNSURE_US;
}

/* Whether another nodepool than that is to be made. */
static bool more_to_make(const struct hfd_take *t, const struct hfd_pass_part *but)
{
    for (size_t i = 0; i < t->s.count; i++) {
        const struct hfd_pass_part *p = &t->s.parts[i];

        if (p != but && p != t->s.own && p->exists && p->row.pending && !p->row.leaving &&
            p->fleet.deleted_us == 0 && !hfd_backend_id_is_given(p->row.fleet_id))
            return true;
    }
    return false;
}

/*
 * A creation that was answered is not on its way any more, but what is sent next may be; one that
 * nobody answered may be.
 */
static void conclude_creation(struct hfd_take *t)
{
    const struct hfd_pass_part *part = hfd_pass_part_by_id(&t->s, t->request->fleet_id);
    const bool answered = t->verdict != HFD_ON_LATER && t->verdict != HFD_ON_WRONG;

    t->s.up.unsure_us =
        !answered || (part != t->s.own && more_to_make(t, part)) ? t->now_us : t->m->unsure_us;
}

/*
 * Nothing carries our label that is not being deleted. @param leaving  what carries it and is, or
 * NULL
 */
static hfd_rc found_nothing(struct hfd_take *t, const struct hfd_wire_resource *leaving,
                            struct hfd_err *err)
{
    t->m->sought = true;
    if (t->m->unsent)
        t->s.up.unsure_us = t->m->unsure_us;
    t->m->unsent = false;
    if (t->s.up.goal == HFD_GOAL_MAKE || t->s.up.goal == HFD_GOAL_ADOPT) {
        if (t->m->foreign.len > 0)
            return refuse_taken(t, t->s.own, t->m->foreign, t->m->foreign_owner, err);
        if (t->s.up.goal == HFD_GOAL_ADOPT)
            return drop_resource(t, err);
        announce_creation(t);
        return HFD_OK;
    }
    t->m->over = true;
    if (t->s.up.goal != HFD_GOAL_DELETE)
        return HFD_OK;
    if (is_unsure(t)) {
        t->wait_until_us = t->s.up.unsure_us + HFD_REMOTE_UNSURE_US;
        return HFD_OK;
    }
    if (leaving == NULL)
        return hfd_observe_gone(t, t->s.own, err);
    t->m->over = false;
    return adopt(t, t->s.own, leaving, err); /* its row was lost: it is seen to its end */
}

static hfd_rc take_find(struct hfd_take *t, struct hfd_err *err)
{
    struct hfd_wire_resource *docs, *found = NULL, *leaving = NULL;
    size_t count;
    bool last;
    hfd_rc rc = read_page(t, t->s.res.kind, &docs, &count, &last, err);

    if (rc != HFD_OK || t->failed || t->s.own == NULL)
        return rc;
    for (size_t i = 0; i < count; i++) {
        if (!is_ours(t, &docs[i]))
            continue;
        if (docs[i].deleting) {
            leaving = is_foreign(t, &docs[i]) ? leaving : &docs[i];
        } else if (is_foreign(t, &docs[i])) {
            t->m->foreign = hfd_arena_dup(&t->pass->mem, docs[i].id);
            t->m->foreign_owner = hfd_arena_dup(&t->pass->mem, docs[i].made_by);
            if (t->m->foreign.p == NULL || t->m->foreign_owner.p == NULL)
                return no_memory(err);
        } else if (found == NULL || hfd_slice_eq(docs[i].name, t->s.own->fleet.name)) {
            found = &docs[i];
        }
    }
    if (found != NULL) {
        t->m->page = t->m->collected = 0;
        return adopt(t, t->s.own, found, err);
    }
    return last ? found_nothing(t, leaving, err) : HFD_OK;
}

/* Who has the name that was refused? */
static hfd_rc take_find_name(struct hfd_take *t, struct hfd_err *err)
{
    struct hfd_pass_part *part = hfd_pass_part_by_id(&t->s, t->request->fleet_id);
    struct hfd_wire_resource *docs;
    size_t count;
    bool last;
    hfd_rc rc;

    if (part == NULL || !part->exists)
        return HFD_OK;
    rc = read_page(t, part->row.kind, &docs, &count, &last, err);
    for (size_t i = 0; rc == HFD_OK && !t->failed && i < count; i++) {
        if (docs[i].deleting || !hfd_slice_eq(docs[i].name, part->fleet.name))
            continue;
        t->m->page = t->m->collected = 0;
        if (is_ours(t, &docs[i]) && !is_foreign(t, &docs[i]))
            return adopt(t, part, &docs[i], err);
        return refuse_taken(t, part, docs[i].id, docs[i].made_by, err);
    }
    if (rc != HFD_OK || t->failed || !last)
        return rc;
    return hfd_due_later(t, err, "HyperFleet says that the name '%.*s' is taken, and by nobody",
                         HFD_SLICE_FMT(part->fleet.name));
}

/* ---- nodepools ---- */

/*
 * The part that a nodepool in a list is: by its id, or by its name where that has none yet; what is
 * wanted comes before what left.
 */
static struct hfd_pass_part *part_of(const struct hfd_take *t, const struct hfd_wire_resource *doc)
{
    struct hfd_pass_part *part = hfd_pass_part_by_id(&t->s, doc->id);

    for (int leaving = 0; part == NULL && !doc->deleting && leaving < 2; leaving++) {
        for (size_t i = 0; part == NULL && i < t->s.count; i++) {
            struct hfd_pass_part *p = &t->s.parts[i];

            if (p->exists && p->row.kind == HFD_KIND_NODEPOOL &&
                !hfd_backend_id_is_given(p->row.fleet_id) && p->row.leaving == leaving &&
                hfd_slice_eq(p->fleet.name, doc->name))
                part = p;
        }
    }
    return part;
}

/* A nodepool of an adopted cluster gets its rows. */
static hfd_rc add_part(struct hfd_take *t, const struct hfd_wire_resource *doc, struct hfd_err *err)
{
    struct hfd_pass_part *wider = hfd_arena_array(t->mem, t->s.count + 1, sizeof(*wider)), *part;
    struct hfd_part_row known;
    hfd_rc rc = hfd_part_row_by_fleet(t->tx, doc->id, t->mem, &known, err);

    if (rc != HFD_NOT_FOUND)
        return rc;
    if (t->s.own == NULL)
        return HFD_OK; /* without its cluster's row there is nothing to add to */
    if (wider == NULL)
        return no_memory(err);
    memcpy(wider, t->s.parts, t->s.count * sizeof(*wider));
    part = &wider[t->s.count];
    *part = (struct hfd_pass_part){
        .row = {.guresid = t->s.res.guresid,
                .fleet_id = doc->id,
                .kind = HFD_KIND_NODEPOOL,
                .name = doc->name,
                .generation = doc->generation},
        .fleet = {.id = doc->id,
                  .kind = HFD_KIND_NODEPOOL,
                  .owner_id = t->s.own->row.fleet_id,
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
    rc = hfd_fleet_row_insert(t->tx, &part->fleet, err);
    if (rc == HFD_CONFLICT)
        return HFD_OK; /* a second one of that name cannot be, whatever the remote says */
    if (rc == HFD_OK)
        rc = hfd_part_row_put(t->tx, &part->row, err);
    if (rc == HFD_OK)
        rc = hfd_remote_orphan_adopted(t->tx, doc->id, t->mem, err);
    t->s.parts = wider;
    t->s.count++;
    t->s.own = &wider[0];
    return rc == HFD_OK ? hfd_observe_see(t, part, doc, err) : rc;
}

/* The list is complete: what is adopted is known. */
static hfd_rc pools_known(struct hfd_take *t, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    t->m->pools_known = true;
    if (t->s.up.goal == HFD_GOAL_ADOPT && t->s.own != NULL) {
        t->s.up.goal = HFD_GOAL_MAKE;
        t->s.own->row.pending = false;
        rc = hfd_part_row_put(t->tx, &t->s.own->row, err);
    }
    if (t->s.up.goal == HFD_GOAL_MAKE && more_to_make(t, NULL))
        announce_creation(t);
    return rc;
}

/*
 * What left before it was made was never there, unless its creation is still on its way. It may be
 * what the resource waited for, so all else is known before: what the list did not show, and what
 * has become worse.
 */
static hfd_rc drop_unmade(struct hfd_take *t, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && !is_unsure(t) && i < t->s.count; i++) {
        struct hfd_pass_part *p = &t->s.parts[i];

        if (p->exists && p->row.kind == HFD_KIND_NODEPOOL && p->row.leaving &&
            !hfd_backend_id_is_given(p->row.fleet_id))
            rc = hfd_observe_gone(t, p, err);
    }
    return rc;
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
        return hfd_observe_see(t, part, doc, err);
    if (!is_ours(t, doc) || is_foreign(t, doc))
        return HFD_OK;
    if (part != NULL)
        return adopt(t, part, doc, err);
    return t->s.up.goal == HFD_GOAL_ADOPT && !doc->deleting ? add_part(t, doc, err) : HFD_OK;
}

static hfd_rc take_pools(struct hfd_take *t, struct hfd_err *err)
{
    struct hfd_wire_resource *docs;
    size_t count;
    bool last;
    hfd_rc rc;

    if (t->verdict == HFD_ON_MISSING)
        return look_again(t, t->request->fleet_id, err);
    rc = read_page(t, HFD_KIND_NODEPOOL, &docs, &count, &last, err);
    for (size_t i = 0; rc == HFD_OK && !t->m->over && i < count; i++)
        rc = take_pool(t, &docs[i], err);
    return rc == HFD_OK && !t->failed && !t->m->over && last ? pools_known(t, err) : rc;
}

/* ---- one resource ---- */

/*
 * The document of an answer about one part. @param doc  NULL when the pass ended because it cannot
 * be read
 */
static hfd_rc read_one(struct hfd_take *t, enum hfd_kind kind, hfd_slice id,
                       struct hfd_wire_resource *doc, bool *ok, struct hfd_err *err)
{
    struct hfd_err why;
    hfd_rc rc = hfd_wire_resource_read(t->doc, kind, t->mem, doc, &why);

    *ok = rc == HFD_OK && (id.len == 0 || hfd_slice_eq(doc->id, id));
    if (rc == HFD_NOMEM)
        return no_memory(err);
    if (rc != HFD_OK)
        return hfd_due_later(t, err, "HyperFleet answered with a %s that cannot be read: %s",
                             hfd_kind_name(kind), why.msg);
    return *ok ? HFD_OK
               : hfd_due_later(t, err, "HyperFleet answered with another %s than was asked for",
                               hfd_kind_name(kind));
}

static hfd_rc take_get(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    struct hfd_wire_resource doc;
    bool ok;
    hfd_rc rc;

    if (t->verdict == HFD_ON_MISSING)
        return hfd_observe_gone(t, part, err);
    rc = read_one(t, part->row.kind, part->row.fleet_id, &doc, &ok, err);
    return rc == HFD_OK && ok ? hfd_observe_see(t, part, &doc, err) : rc;
}

/* The cluster that a nodepool resource names by its id. */
static hfd_rc take_owner(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    struct hfd_wire_resource doc = {.deleting = true};
    bool ok = true;
    hfd_rc rc = HFD_OK;

    if (t->verdict != HFD_ON_MISSING)
        rc = read_one(t, HFD_KIND_CLUSTER, part->fleet.owner_id, &doc, &ok, err);
    if (rc != HFD_OK || !ok)
        return rc;
    if (!doc.deleting)
        return hfd_due_later(t, err, "HyperFleet contradicts itself about cluster %.*s",
                             HFD_SLICE_FMT(part->fleet.owner_id));
    return refuse(t, "RES-101",
                  hfd_arena_printf(t->mem,
                                   "There is no cluster '%.*s' in HyperFleet, or it is being "
                                   "deleted. Correct the input and deploy again, "
                                   "or delete the resource.",
                                   HFD_SLICE_FMT(part->fleet.owner_id)),
                  err);
}

static hfd_rc take_post(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    struct hfd_wire_resource doc;
    bool ok;
    hfd_rc rc;

    if (t->verdict == HFD_ON_TAKEN)
        return mark(t, part->row.fleet_id, &t->m->taken, err);
    if (t->verdict == HFD_ON_INVALID)
        return refuse_invalid(t, part, err);
    if (t->verdict != HFD_ON_WELL && part->row.kind == HFD_KIND_CLUSTER)
        return later_by_answer(t, err);
    if (t->verdict != HFD_ON_WELL && part != t->s.own)
        return look_again(t, part->fleet.owner_id, err);
    if (t->verdict != HFD_ON_WELL) {
        t->m->owner_asked = true;
        return HFD_OK;
    }
    rc = read_one(t, part->row.kind, HFD_SLICE_NONE, &doc, &ok, err);
    if (rc != HFD_OK || !ok) {
        t->s.up.unsure_us = t->now_us;
        return rc;
    }
    if (part == t->s.own)
        t->s.up.unsure_us = 0; /* one sent before would have had the name */
    rc = hfd_observe_name(t, part, &doc, &ok, err);
    if (rc == HFD_OK && !ok)
        return refuse_taken(t, part, doc.id, HFD_SLICE_NONE, err);
    return rc == HFD_OK ? hfd_observe_taken(t, part, &doc, err) : rc;
}

static hfd_rc take_patch(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    struct hfd_wire_resource doc;
    bool ok;
    hfd_rc rc;

    /*
     * Old ones have no such route, and say so in the words of a resource that is not there: then it
     * is there all the same.
     */
    if (t->verdict == HFD_ON_UNABLE ||
        (t->verdict == HFD_ON_MISSING && hfd_pass_noted(t->m->denied, part->row.fleet_id)))
        return refuse_unable(t, part, err);
    if (t->verdict == HFD_ON_INVALID)
        return refuse_invalid(t, part, err);
    if (t->verdict != HFD_ON_WELL) {
        rc = mark(t, part->row.fleet_id, &t->m->denied, err);
        return rc == HFD_OK ? look_again(t, part->row.fleet_id, err) : rc;
    }
    rc = read_one(t, part->row.kind, part->row.fleet_id, &doc, &ok, err);
    return rc == HFD_OK && ok ? hfd_observe_taken(t, part, &doc, err) : rc;
}

static hfd_rc take_delete(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    hfd_rc rc;

    if (t->verdict == HFD_ON_MISSING)
        return hfd_observe_gone(t, part, err);
    if (t->verdict == HFD_ON_UNABLE)
        return refuse_unable(t, part, err);
    if (t->verdict == HFD_ON_LEAVING)
        return later_by_answer(t, err);
    /* Some remove it at once and answer the same: look. */
    rc = mark(t, part->row.fleet_id, &t->m->deleted, err);
    return rc == HFD_OK ? unsee(t, part->row.fleet_id, err) : rc;
}

static hfd_rc take_reports(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    struct hfd_wire_page page;
    struct hfd_err why;
    bool last;
    hfd_rc rc = HFD_OK;

    if (t->verdict == HFD_ON_MISSING) { /* the resource itself will tell */
        t->m->page = t->m->collected = 0;
        return hfd_observe_release(t, part, err);
    }
    if (hfd_wire_page_read(t->doc, &page, &why) != HFD_OK)
        return hfd_due_later(t, err, "HyperFleet answered with a document that is no list");
    for (size_t i = 0;
         rc == HFD_OK && part->exists && i < page.count && t->m->collected < HFD_WIRE_REPORTS_MAX;
         i++, t->m->collected++)
        rc = hfd_observe_report(t, part->row.fleet_id, json_array_get(page.items, i), err);
    if (rc != HFD_OK)
        return rc;
    last = page.count == 0 || (page.total >= 0 && t->m->collected >= page.total) ||
           t->m->collected >= HFD_WIRE_REPORTS_MAX;
    t->m->page = last ? 0 : t->m->page + 1;
    t->m->collected = last ? 0 : t->m->collected;
    return last ? hfd_observe_release(t, part, err) : HFD_OK;
}

/* ---- all of them ---- */

/* A list that is not of one part. */
static hfd_rc take_list(struct hfd_take *t, struct hfd_err *err)
{
    if (t->request->step == HFD_STEP_FIND)
        return take_find(t, err);
    return t->request->step == HFD_STEP_FIND_NAME ? take_find_name(t, err) : take_pools(t, err);
}

static bool is_list(const struct hfd_take *t)
{
    return t->request->step == HFD_STEP_FIND || t->request->step == HFD_STEP_FIND_NAME ||
           t->request->step == HFD_STEP_POOLS;
}

static hfd_rc take_step(struct hfd_take *t, struct hfd_err *err)
{
    static hfd_rc (*const of_part[])(struct hfd_take *, struct hfd_pass_part *,
                                     struct hfd_err *) = {
        [HFD_STEP_GET] = take_get,       [HFD_STEP_OWNER] = take_owner,
        [HFD_STEP_POST] = take_post,     [HFD_STEP_PATCH] = take_patch,
        [HFD_STEP_DELETE] = take_delete, [HFD_STEP_REPORTS] = take_reports,
    };
    struct hfd_pass_part *part;

    if (is_list(t))
        return take_list(t, err);
    part = hfd_pass_part_by_id(&t->s, t->request->fleet_id);
    if (part == NULL || !part->exists) { /* it went while the request was on its way: what to do
                                            now, the next pass finds out */
        t->m->over = true;
        t->wait_until_us = t->now_us;
        return HFD_OK;
    }
    HFD_ASSERT(of_part[t->request->step] != NULL);
    return of_part[t->request->step](t, part, err);
}

/*
 * A list of what has our label or a name is not there: the cluster of a nodepool resource is not,
 * or the remote is no HyperFleet.
 */
static hfd_rc missing_list(struct hfd_take *t, struct hfd_err *err)
{
    if (t->s.res.kind == HFD_KIND_NODEPOOL && t->s.up.goal == HFD_GOAL_DELETE)
        return found_nothing(t, NULL, err);
    if (t->s.res.kind != HFD_KIND_NODEPOOL || t->s.up.goal != HFD_GOAL_MAKE)
        return later_by_answer(t, err);
    t->m->owner_asked = true;
    return HFD_OK;
}

bool hfd_take_voucher(struct hfd_take *t)
{
    struct hfd_wire_page page;
    struct hfd_err why;

    t->m->vouched = t->verdict == HFD_ON_WELL && hfd_wire_page_read(t->doc, &page, &why) == HFD_OK;
    t->verdict = t->verdict == HFD_ON_MISSING ? HFD_ON_WRONG : t->verdict;
    return t->m->vouched;
}

static hfd_rc take_vouch(struct hfd_take *t, struct hfd_err *err)
{
    if (hfd_take_voucher(t))
        return HFD_OK;
    return t->verdict == HFD_ON_REFUSED ? refused_credentials(t, err) : later_by_answer(t, err);
}

/* Another than HyperFleet's own 404 says nothing, unless a HyperFleet is there all the same. */
static bool is_doubtful(const struct hfd_take *t)
{
    return t->verdict == HFD_ON_MISSING && !t->m->doubted &&
           !hfd_slice_starts(t->problem.code, HFD_SLICE("HYPERFLEET-"));
}

/*
 * What an answer of this verdict can mean to the step that asked is asked there; the rest is the
 * same for all.
 */
static hfd_rc take_answer(struct hfd_take *t, struct hfd_err *err)
{
    const enum hfd_step step = (enum hfd_step)t->request->step;

    if (step == HFD_STEP_VOUCH)
        return take_vouch(t, err);
    if (step == HFD_STEP_POST)
        conclude_creation(t);
    switch (t->verdict) {
    case HFD_ON_WELL:
        break;
    case HFD_ON_REFUSED:
        return refused_credentials(t, err);
    case HFD_ON_MISSING:
        if (step == HFD_STEP_FIND || step == HFD_STEP_FIND_NAME)
            return missing_list(t, err);
        break;
    case HFD_ON_TAKEN:
    case HFD_ON_LEAVING:
    case HFD_ON_INVALID:
    case HFD_ON_UNABLE:
        if (t->request->method == HFD_REMOTE_GET)
            return later_by_answer(t, err);
        break;
    case HFD_ON_LATER:
    case HFD_ON_WRONG:
        return later_by_answer(t, err);
    }
    return take_step(t, err);
}

/* Writes when the resource is due again, unless nothing is left of it. */
static hfd_rc finish(struct hfd_take *t, struct hfd_err *err)
{
    struct hfd_remote_row now;
    hfd_rc rc = hfd_remote_row_get(t->tx, t->s.up.guresid, t->mem, &now, err);

    if (rc == HFD_NOT_FOUND || (rc == HFD_OK && now.goal == HFD_GOAL_ABSENT)) {
        t->m->over = true;
        return HFD_OK;
    }
    if (rc != HFD_OK)
        return rc;
    if (!t->failed) {
        t->s.up.tries = t->s.up.refusals = t->s.up.behind_us = 0;
        t->s.up.error = HFD_SLICE_NONE;
        t->s.up.checked_us = t->now_us;
        t->s.up.watched = hfd_due_watched(&t->s);
        t->s.up.due_us =
            t->wait_until_us != 0 ? t->wait_until_us : t->now_us + hfd_due_interval_us(t);
        if (t->s.own == NULL || !t->s.own->exists) {
            t->m->over = true;
            t->s.up.due_us = INT64_MAX; /* nothing is left to look at, until a PUT or DELETE */
        }
    }
    return hfd_remote_row_put(t->tx, &t->s.up, err);
}

static hfd_rc take_one(struct hfd_take *t, struct hfd_err *err)
{
    bool found;
    hfd_rc rc = hfd_pass_rows_load(t->tx, t->pass->work.guresid, t->mem, &t->s, &found, err);

    if (rc != HFD_OK)
        return rc;
    if (!found) {
        t->m->over = true;
        return HFD_OK;
    }
    if (!t->m->begun) {
        t->m->begun = true;
        t->m->full = hfd_due_is_settled(&t->s) ||
                     t->now_us - t->s.up.full_us >= HFD_REMOTE_FULL_EVERY * t->policy->watch_us;
        t->s.up.full_us = t->m->full ? t->now_us : t->s.up.full_us;
        t->m->tries = t->s.up.tries;
        t->m->refusals = t->s.up.refusals;
        t->m->behind_us = t->s.up.behind_us;
    }
    /*
     * A pass that fails has failed, whatever went well before: what is counted in a row is counted
     * by passes.
     */
    t->s.up.tries = t->m->tries;
    t->s.up.refusals = t->m->refusals;
    t->s.up.behind_us = t->m->behind_us;
    rc = take_answer(t, err);
    if (rc == HFD_OK && t->m->pools_known && !t->m->over && !t->failed &&
        hfd_pass_first_held(&t->s, t->m->worse) == NULL &&
        hfd_pass_first_unseen(&t->s, t->m) == NULL)
        rc = drop_unmade(t, err);
    return rc == HFD_OK ? finish(t, err) : rc;
}

/* The document of a good answer; without one it is not good. */
static hfd_rc read_answer(struct hfd_take *t, struct hfd_err *err)
{
    const struct hfd_remote_answer *a = t->answer;
    struct hfd_err why;
    hfd_rc rc = HFD_OK;

    if (a->arrived && a->is_json && (a->status < 200 || a->status > 299))
        rc = hfd_wire_problem_read(a->body, t->mem, &t->problem, err);
    if (rc != HFD_OK)
        return rc;
    t->verdict = hfd_remote_verdict(t->request->method, a, &t->problem);
    if (t->verdict != HFD_ON_WELL || a->body.len == 0)
        return HFD_OK;
    rc = hfd_json_parse(a->body, &t->doc, &why);
    if (rc == HFD_NOMEM)
        return no_memory(err);
    if (rc != HFD_OK && t->request->method != HFD_REMOTE_DELETE)
        t->verdict = HFD_ON_LATER;
    return HFD_OK;
}

static hfd_rc take_work(struct hfd_take *t, struct hfd_err *err)
{
    const enum hfd_step step = (enum hfd_step)t->request->step;

    if (step == HFD_STEP_MANY)
        return hfd_take_many(t, err);
    if (step == HFD_STEP_ORPHANS)
        return hfd_take_orphans(t, err);
    if (is_doubtful(t)) {
        t->m->doubted = true;
        return HFD_OK;
    }
    return t->pass->work.orphan.len > 0 ? hfd_take_orphan(t, err) : take_one(t, err);
}

hfd_rc hfd_pass_take(struct hfd_txn *tx, struct hfd_pass *pass,
                     const struct hfd_remote_request *request,
                     const struct hfd_remote_answer *answer, int64_t now_us, struct hfd_err *err)
{
    struct hfd_arena mem;
    struct hfd_take t = {.tx = tx,
                         .pass = pass,
                         .policy = pass->policy,
                         .m = &pass->then,
                         .mem = &mem,
                         .now_us = now_us,
                         .request = request,
                         .answer = answer};
    hfd_rc rc;

    HFD_CHECK_OBJ(pass, HFD_PASS_MAGIC);
    hfd_arena_init(&mem, HFD_MIRROR_SCRATCH_MAX_BYTES);
    pass->then = pass->now;
    rc = read_answer(&t, err);
    if (rc == HFD_OK)
        rc = take_work(&t, err);
    if (rc != HFD_OK)
        pass->then = pass->now;
    json_decref(t.doc);
    hfd_arena_fini(&mem);
    return rc;
}
