/* See handle.h. */
#include "driver/backend/remote/handle.h"

#include "driver/backend/backend.h"
#include "driver/backend/remote/orphans.h"
#include "driver/backend/remote/work.h"
#include "driver/base/check.h"
#include "driver/fleet/fleet.h"

/* A pass reads at most this number of pages of one list. */
#define TAKE_PAGES_MAX 200

/* A page of clusters or nodepools, without those that cannot be read. */
struct take_docs {
    struct hfd_wire_resource *docs;
    size_t count;
    bool last;
};

static void take_restart_list(struct hfd_take *t);

/* Notes about parts, made while an answer is taken. Thread: writer. */

/* Notes a fact about a part. @return HFD_OK, HFD_NOMEM */
static hfd_rc take_note(struct hfd_take *t, hfd_slice fleet_id, enum hfd_part_fact fact,
                        struct hfd_err *err)
{
    struct hfd_part_note *note = hfd_arena_alloc(&t->pass->mem, sizeof(*note));

    if (note == NULL)
        return hfd_fail_nomem(err, "take HyperFleet's answer");
    *note = (struct hfd_part_note){
        .fleet_id = hfd_arena_dup(&t->pass->mem, fleet_id), .fact = fact, .next = t->m->notes};
    t->m->notes = note;
    return note->fleet_id.p != NULL ? HFD_OK : hfd_fail_nomem(err, "take HyperFleet's answer");
}

/* The pass looks at the part again: its document is out of date. @return HFD_OK, HFD_NOMEM */
static hfd_rc take_forget(struct hfd_take *t, hfd_slice fleet_id, struct hfd_err *err)
{
    struct hfd_seen_part *entry = hfd_arena_alloc(&t->pass->mem, sizeof(*entry));

    if (entry == NULL)
        return hfd_fail_nomem(err, "take HyperFleet's answer");
    *entry = (struct hfd_seen_part){
        .fleet_id = hfd_arena_dup(&t->pass->mem, fleet_id), .forgotten = true, .next = t->m->seen};
    t->m->seen = entry;
    return entry->fleet_id.p != NULL ? HFD_OK : hfd_fail_nomem(err, "take HyperFleet's answer");
}

/*
 * The remote contradicts what was seen of the part: as take_forget, but fails the pass if that
 * happens too often. @return HFD_OK, HFD_NOMEM
 */
static hfd_rc take_look_again(struct hfd_take *t, hfd_slice fleet_id, struct hfd_err *err)
{
    if (++t->m->looks_again <= HFD_PASS_LOOKS_AGAIN_MAX)
        return take_forget(t, fleet_id, err);
    return hfd_due_later(t, err, "HyperFleet contradicts itself about %.*s (it answered %d)",
                         HFD_SLICE_FMT(fleet_id), t->answer->status);
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

/* The list of the present phase begins anew. */
static void take_restart_list(struct hfd_take *t)
{
    struct hfd_pass_list *list = hfd_pass_list(t->m);

    list->page = 0;
    list->count = 0;
}

/* Reads the answer as a page, and counts it. Fails the pass if it is not a list. */
static hfd_rc take_docs(struct hfd_take *t, enum hfd_kind kind, struct take_docs *out,
                        struct hfd_err *err)
{
    struct hfd_wire_page page;
    struct hfd_err why;

    *out = (struct take_docs){.last = true};
    if (hfd_wire_page_read(t->doc, &page, &why) != HFD_OK)
        return hfd_due_later(t, err, HFD_WORDS_NO_LIST);
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
    out->last = hfd_take_page(t, &page, TAKE_PAGES_MAX);
    return HFD_OK;
}

enum hfd_kind hfd_take_kind(const struct hfd_take *t)
{
    return t->m->phase == HFD_PASS_MANY_POOLS || t->m->phase == HFD_PASS_SEARCH_POOLS
               ? HFD_KIND_NODEPOOL
               : HFD_KIND_CLUSTER;
}

hfd_rc hfd_take_items(struct hfd_take *t, const struct hfd_wire_page *page, hfd_take_item_fn *fn,
                      struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < page->count; i++) {
        struct hfd_arena mem, *outer = t->mem;
        struct hfd_wire_resource doc;
        struct hfd_err why;

        hfd_arena_init(&mem, HFD_MIRROR_SCRATCH_MAX_BYTES);
        t->mem = &mem;
        rc = hfd_wire_resource_read(json_array_get(page->items, i), hfd_take_kind(t), &mem, &doc,
                                    &why);
        if (rc == HFD_OK)
            rc = fn(t, &doc, err);
        else
            rc = rc == HFD_NOMEM ? hfd_fail_nomem(err, "take HyperFleet's list") : HFD_OK;
        t->mem = outer;
        hfd_arena_fini(&mem);
    }
    return rc;
}

/* Answers to MANY_CLUSTERS and MANY_POOLS. Thread: writer, inside a transaction function. */

/* Returns whether the document has nothing new for the row. */
static bool is_unchanged(const struct hfd_fleet_row *row, const struct hfd_wire_resource *doc)
{
    return row->generation == doc->generation && hfd_slice_eq(row->conditions, doc->conditions) &&
           (!doc->deleting || row->deleted_us != 0);
}

static hfd_rc take_item(struct hfd_take *t, const struct hfd_wire_resource *doc,
                        struct hfd_err *err)
{
    struct hfd_remote_row up;
    struct hfd_part_row part;
    struct hfd_fleet_row row;
    hfd_rc rc = hfd_part_row_by_fleet(t->tx, doc->id, t->mem, &part, err);

    if (rc == HFD_OK)
        rc = hfd_remote_row_get(t->tx, part.guresid, t->mem, &up, err);
    if (rc == HFD_OK && up.watched == HFD_WATCHED_CLOSELY)
        rc = hfd_fleet_row_get(t->tx, doc->id, t->mem, &row, err);
    if (rc == HFD_NOT_FOUND || (rc == HFD_OK && up.watched != HFD_WATCHED_CLOSELY))
        return HFD_OK;
    if (rc != HFD_OK)
        return rc;
    if (is_unchanged(&row, doc)) {
        /* Even if it was not due yet: then all stay due together, and one list serves them. */
        up.due_us = t->now_us + hfd_due_jitter_us(t->policy, t->policy->watch_us);
        up.checked_us = t->now_us;
        up.tries = 0;
        /* All reports are read once in each idle_us. */
        up.watched =
            t->now_us - up.full_us < t->policy->idle_us ? HFD_WATCHED_CLOSELY : HFD_WATCHED_NOT;
    } else {
        up.due_us = t->now_us;
        up.watched = HFD_WATCHED_NOT;
    }
    return hfd_remote_row_put(t->tx, &up, err);
}

/*
 * Only this list may fail: then, the second time, each resource gets a pass of its own. Refused
 * credentials and 429 are not the fault of the list.
 */
static hfd_rc list_fails(struct hfd_take *t, struct hfd_err *err)
{
    const int64_t due_us = t->now_us + hfd_due_backoff_us(t->policy, 1, t->answer);

    hfd_pass_end(t->m);
    if (t->verdict == HFD_ON_REFUSED || (t->answer->arrived && t->answer->status == 429))
        return hfd_remote_row_postpone(t->tx, t->now_us, due_us, err);
    return hfd_remote_row_part(t->tx, t->now_us, due_us, err);
}

/*
 * A page of what is in progress. A resource that has not changed is due again later; one that has
 * changed, or is in no list, gets a pass of its own.
 */
static hfd_rc take_many(struct hfd_take *t, struct hfd_err *err)
{
    struct hfd_wire_page page;
    struct hfd_err why;
    hfd_rc rc;

    if (t->verdict != HFD_ON_WELL && !hfd_due_cannot_list(t))
        return list_fails(t, err);
    if (t->verdict != HFD_ON_WELL || hfd_wire_page_read(t->doc, &page, &why) != HFD_OK)
        page = (struct hfd_wire_page){.total = 0}; /* as a list that shows none */
    rc = hfd_take_items(t, &page, take_item, err);
    if (rc != HFD_OK || !hfd_take_page(t, &page, TAKE_PAGES_MAX))
        return rc;
    if (t->m->phase == HFD_PASS_MANY_CLUSTERS) {
        hfd_pass_move(t->m, HFD_PASS_MANY_POOLS);
        return HFD_OK;
    }
    hfd_pass_end(t->m);
    return hfd_remote_row_unwatch(t->tx, t->m->began_us, err);
}

/* Answers to FIND, FIND_NAME and LIST_POOLS. Thread: writer, inside a transaction function. */

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

static hfd_rc find_ours(struct hfd_take *t, const struct take_docs *page, struct found *out,
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

/* A page of what carries the resource's label: adopts it, refuses, or goes on to CREATE. */
static hfd_rc take_find(struct hfd_take *t, struct hfd_err *err)
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
    return hfd_adopt_part(t, hfd_pass_own(&t->rows), found.live, err);
}

/* ---- by name ---- */

/* A page of what has the name that is taken: adopts it or refuses. */
static hfd_rc take_find_name(struct hfd_take *t, struct hfd_err *err)
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
        if (hfd_adopt_is_ours(t, doc) && !hfd_adopt_is_foreign(t, doc))
            return hfd_adopt_part(t, part, doc, err);
        return hfd_refuse_taken(
            t, part, doc->id,
            hfd_adopt_is_ours(t, doc) || doc->made_by.len > 0 ? doc->made_by : HFD_SLICE_NONE, err);
    }
    if (rc != HFD_OK || t->failed || !page.last)
        return rc;
    return hfd_due_later(t, err,
                         "HyperFleet reports that the name '%.*s' is taken, but lists no %s with "
                         "that name",
                         HFD_SLICE_FMT(part->fleet.name), hfd_kind_word(part->row.kind));
}

/* FIND or FIND_NAME was answered 404: the cluster of a nodepool is missing, or no HyperFleet. */
static hfd_rc take_find_missing(struct hfd_take *t, struct hfd_err *err)
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

/* A page of the cluster's nodepools. */
static hfd_rc take_pools(struct hfd_take *t, struct hfd_err *err)
{
    struct take_docs page;
    hfd_rc rc;

    if (t->verdict == HFD_ON_MISSING)
        return take_look_again(t, t->request->fleet_id, err);
    rc = take_docs(t, HFD_KIND_NODEPOOL, &page, err);
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

/*
 * Removes nodepools that left before they were created. Does nothing while their creation may still
 * be carried out, or before all other parts are known: the resource may become ready by it.
 */
static hfd_rc take_drop_uncreated(struct hfd_take *t, struct hfd_err *err)
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

/* Answers to requests for one part. Thread: writer, inside a transaction function. */

/* Reads the answer's document. Fails the pass if it is no such resource, or has another id. */
static hfd_rc read_document(struct hfd_take *t, enum hfd_kind kind, hfd_slice id,
                            struct hfd_wire_resource *doc, struct hfd_err *err)
{
    struct hfd_err why;
    const hfd_rc rc = hfd_wire_resource_read(t->doc, kind, t->mem, doc, &why);

    if (rc == HFD_NOMEM)
        return hfd_fail_nomem(err, "take HyperFleet's answer");
    if (rc != HFD_OK)
        return hfd_due_later(t, err, "HyperFleet answered with a %s that cannot be read: %s",
                             hfd_kind_name(kind), why.msg);
    if (id.len == 0 || hfd_slice_eq(doc->id, id))
        return HFD_OK;
    return hfd_due_later(t, err, "HyperFleet answered with another %s than was asked for",
                         hfd_kind_name(kind));
}

static hfd_rc take_get(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    struct hfd_wire_resource doc;
    hfd_rc rc;

    if (t->verdict == HFD_ON_MISSING)
        return hfd_observe_gone(t, part, err);
    rc = read_document(t, part->row.kind, part->row.fleet_id, &doc, err);
    return rc == HFD_OK && !t->failed ? hfd_observe_document(t, part, &doc, err) : rc;
}

/* The cluster that a nodepool resource names by its id. */
static hfd_rc take_owner(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    const hfd_slice cluster_id = part->fleet.owner_id;
    struct hfd_wire_resource doc = {.deleting = true};
    hfd_rc rc = HFD_OK;

    if (t->verdict != HFD_ON_MISSING)
        rc = read_document(t, HFD_KIND_CLUSTER, cluster_id, &doc, err);
    if (rc != HFD_OK || t->failed)
        return rc;
    if (!doc.deleting)
        return hfd_due_later(t, err, "HyperFleet contradicts itself about cluster %.*s",
                             HFD_SLICE_FMT(cluster_id));
    return hfd_refuse(t, "RES-101", hfd_words_no_cluster(t, cluster_id), err);
}

/* The name is taken. For a nodepool, WRITE looks for the name before it goes on. */
static hfd_rc name_is_taken(struct hfd_take *t, const struct hfd_pass_part *part,
                            struct hfd_err *err)
{
    if (part == hfd_pass_own(&t->rows)) {
        hfd_pass_move(t->m, HFD_PASS_FIND_NAME);
        return HFD_OK;
    }
    return take_note(t, part->row.fleet_id, HFD_PART_NAME_TAKEN, err);
}

/* POST of a nodepool found no cluster, or one that is being deleted. */
static hfd_rc has_no_cluster(struct hfd_take *t, const struct hfd_pass_part *part,
                             struct hfd_err *err)
{
    if (part->row.kind == HFD_KIND_CLUSTER)
        return hfd_due_later_by_answer(t, err);
    if (part != hfd_pass_own(&t->rows))
        return take_look_again(t, part->fleet.owner_id, err);
    hfd_pass_move(t->m, HFD_PASS_ASK_OWNER);
    return HFD_OK;
}

static hfd_rc take_post(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    struct hfd_wire_resource doc;
    bool available;
    hfd_rc rc;

    if (t->verdict == HFD_ON_TAKEN)
        return name_is_taken(t, part, err);
    if (t->verdict == HFD_ON_INVALID)
        return hfd_refuse_invalid(t, part, err);
    if (t->verdict != HFD_ON_WELL)
        return has_no_cluster(t, part, err);
    rc = read_document(t, part->row.kind, HFD_SLICE_NONE, &doc, err);
    if (rc != HFD_OK || t->failed) {
        t->rows.remote.unsure_us = t->now_us;
        return rc;
    }
    if (part == hfd_pass_own(&t->rows))
        t->rows.remote.unsure_us = 0; /* an earlier POST would have taken the name */
    rc = hfd_observe_id(t, part, &doc, &available, err);
    if (rc == HFD_OK && !available)
        return hfd_refuse_taken(t, part, doc.id, HFD_SLICE_NONE, err);
    if (rc != HFD_OK)
        return rc;
    if (part == hfd_pass_own(&t->rows))
        hfd_pass_move(t->m, HFD_PASS_LOOK);
    return hfd_observe_written(t, part, &doc, err);
}

static hfd_rc take_patch(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    struct hfd_wire_resource doc;
    hfd_rc rc;

    /*
     * Old generations have no such route, and answer as if the resource did not exist: look at it,
     * and believe the second 404.
     */
    if (t->verdict == HFD_ON_UNABLE ||
        (t->verdict == HFD_ON_MISSING &&
         hfd_pass_noted(t->m, part->row.fleet_id, HFD_PART_PATCH_DENIED)))
        return hfd_refuse_unable(t, part, err);
    if (t->verdict == HFD_ON_INVALID)
        return hfd_refuse_invalid(t, part, err);
    if (t->verdict != HFD_ON_WELL) {
        rc = take_note(t, part->row.fleet_id, HFD_PART_PATCH_DENIED, err);
        return rc == HFD_OK ? take_look_again(t, part->row.fleet_id, err) : rc;
    }
    rc = read_document(t, part->row.kind, part->row.fleet_id, &doc, err);
    return rc == HFD_OK && !t->failed ? hfd_observe_written(t, part, &doc, err) : rc;
}

static hfd_rc take_delete(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    hfd_rc rc;

    if (t->verdict == HFD_ON_MISSING)
        return hfd_observe_gone(t, part, err);
    if (t->verdict == HFD_ON_UNABLE)
        return hfd_refuse_unable(t, part, err);
    if (t->verdict == HFD_ON_LEAVING)
        return hfd_due_later_by_answer(t, err);
    /* Some generations remove it at once, with the same answer: look at it. */
    rc = take_note(t, part->row.fleet_id, HFD_PART_DELETE_SENT, err);
    return rc == HFD_OK ? take_forget(t, part->row.fleet_id, err) : rc;
}

static hfd_rc take_reports(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    struct hfd_pass_list *list = &t->m->reports.list;
    struct hfd_wire_page page;
    struct hfd_err why;
    bool last = t->verdict == HFD_ON_MISSING; /* the next GET of the part shows it */
    hfd_rc rc = HFD_OK;

    if (!last && hfd_wire_page_read(t->doc, &page, &why) != HFD_OK)
        return hfd_due_later(t, err, HFD_WORDS_NO_LIST);
    for (size_t i = 0;
         !last && rc == HFD_OK && i < page.count && list->count < HFD_WIRE_REPORTS_MAX;
         i++, list->count++)
        rc = hfd_observe_report(t, part->row.fleet_id, json_array_get(page.items, i), err);
    if (rc != HFD_OK)
        return rc;
    last = last || page.count == 0 || (page.total >= 0 && list->count >= page.total) ||
           list->count >= HFD_WIRE_REPORTS_MAX;
    list->page = last ? 0 : list->page + 1;
    list->count = last ? 0 : list->count;
    return last ? hfd_observe_release(t, part, err) : HFD_OK;
}

/* The answer to GET, POST, PATCH, DELETE or a page of reports, by the request's step. */
static hfd_rc take_part(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    static hfd_rc (*const by_step[])(struct hfd_take *, struct hfd_pass_part *,
                                     struct hfd_err *) = {
        [HFD_STEP_GET] = take_get,       [HFD_STEP_OWNER] = take_owner,
        [HFD_STEP_POST] = take_post,     [HFD_STEP_PATCH] = take_patch,
        [HFD_STEP_DELETE] = take_delete, [HFD_STEP_REPORTS] = take_reports,
    };
    const size_t step = (size_t)t->request->step;

    HFD_ASSERT(step < sizeof(by_step) / sizeof(by_step[0]));
    HFD_ASSERT(by_step[step] != NULL);
    return by_step[step](t, part, err);
}

/* A pass reads all reports if that was last done this number of watch intervals ago. */
#define ALL_REPORTS_EVERY 3

/* ---- one resource ---- */

static hfd_rc take_step(struct hfd_take *t, struct hfd_err *err)
{
    struct hfd_pass_part *part;

    if (t->request->step == HFD_STEP_FIND)
        return take_find(t, err);
    if (t->request->step == HFD_STEP_FIND_NAME)
        return take_find_name(t, err);
    if (t->request->step == HFD_STEP_POOLS)
        return take_pools(t, err);
    part = hfd_pass_part_by_id(&t->rows, t->request->fleet_id);
    if (part != NULL && part->exists)
        return take_part(t, part, err);
    /* The part was removed after the request: the next pass finds out what to do. */
    hfd_pass_end(t->m);
    t->wait_until_us = t->now_us;
    return HFD_OK;
}

/* Returns whether the answer to a list by label or name is 404. */
static bool is_list_missing(const struct hfd_take *t)
{
    return t->verdict == HFD_ON_MISSING &&
           (t->request->step == HFD_STEP_FIND || t->request->step == HFD_STEP_FIND_NAME);
}

/* Takes what is the same for all steps, and leaves the rest to the step. */
static hfd_rc take_answer(struct hfd_take *t, struct hfd_err *err)
{
    if (t->request->step == HFD_STEP_POST)
        hfd_creation_conclude(t);
    if (is_list_missing(t))
        return take_find_missing(t, err);
    switch (t->verdict) {
    case HFD_ON_WELL:
    case HFD_ON_MISSING:
        break;
    case HFD_ON_REFUSED:
        return hfd_refuse_credentials(t, err);
    case HFD_ON_TAKEN:
    case HFD_ON_LEAVING:
    case HFD_ON_INVALID:
    case HFD_ON_UNABLE:
        if (t->request->method == HFD_REMOTE_GET)
            return hfd_due_later_by_answer(t, err);
        break;
    case HFD_ON_LATER:
    case HFD_ON_FOREIGN:
    case HFD_ON_WRONG:
        return hfd_due_later_by_answer(t, err);
    }
    return take_step(t, err);
}

/* The row of the work after an answer that was not a failure. */
static void set_due(struct hfd_take *t)
{
    const struct hfd_pass_part *own = hfd_pass_own(&t->rows);
    struct hfd_remote_row *row = &t->rows.remote;

    row->tries = row->refusals = row->behind_us = 0;
    row->error = HFD_SLICE_NONE;
    row->checked_us = t->now_us;
    row->watched = hfd_due_watched(&t->rows);
    row->due_us = t->wait_until_us != 0 ? t->wait_until_us : t->now_us + hfd_due_interval_us(t);
    if (own != NULL && own->exists)
        return;
    hfd_pass_end(t->m);
    row->due_us = INT64_MAX; /* nothing is left to look at, until a PUT or DELETE */
}

/* Has the driver core say anew what the resource waits for. */
static hfd_rc tell_trouble(struct hfd_take *t, struct hfd_err *err)
{
    const struct hfd_fleet_call call = {
        .fleet = t->policy->fleet, .now_us = t->now_us, .mem = t->mem};

    return t->policy->on_trouble != NULL ? t->policy->on_trouble(t->policy->observer, t->tx, &call,
                                                                 t->rows.remote.guresid, err)
                                         : HFD_OK;
}

/* Writes the row of the work, if it still exists. */
static hfd_rc finish(struct hfd_take *t, struct hfd_err *err)
{
    struct hfd_remote_row now;
    hfd_rc rc = hfd_remote_row_get(t->tx, t->rows.remote.guresid, t->mem, &now, err);

    if (rc == HFD_NOT_FOUND || (rc == HFD_OK && now.goal == HFD_GOAL_ABSENT)) {
        hfd_pass_end(t->m);
        return HFD_OK;
    }
    if (rc != HFD_OK)
        return rc;
    if (!t->failed)
        set_due(t);
    rc = hfd_remote_row_put(t->tx, &t->rows.remote, err);
    return rc == HFD_OK && !hfd_slice_eq(now.error, t->rows.remote.error) ? tell_trouble(t, err)
                                                                          : rc;
}

/*
 * Keeps the failure counters as they were before this pass. Each answer starts from them: a pass
 * counts once.
 */
static void begin(struct hfd_take *t)
{
    struct hfd_remote_row *row = &t->rows.remote;

    if (t->m->before.answers++ == 0) {
        t->m->reports.all = hfd_due_is_settled(&t->rows) ||
                            t->now_us - row->full_us >= ALL_REPORTS_EVERY * t->policy->watch_us;
        row->full_us = t->m->reports.all ? t->now_us : row->full_us;
        t->m->before.tries = row->tries;
        t->m->before.refusals = row->refusals;
        t->m->before.behind_us = row->behind_us;
    }
    row->tries = t->m->before.tries;
    row->refusals = t->m->before.refusals;
    row->behind_us = t->m->before.behind_us;
}

static hfd_rc take_resource(struct hfd_take *t, struct hfd_err *err)
{
    hfd_rc rc = hfd_pass_rows_load(t->tx, t->pass->work.guresid, t->mem, &t->rows, err);

    if (rc != HFD_OK)
        return rc;
    if (!t->rows.found) {
        hfd_pass_end(t->m);
        return HFD_OK;
    }
    begin(t);
    rc = take_answer(t, err);
    if (rc == HFD_OK)
        rc = take_drop_uncreated(t, err);
    return rc == HFD_OK ? finish(t, err) : rc;
}

/* ---- all work ---- */

/* Reads the document, and finds the verdict. A good answer without a document is not good. */
static hfd_rc read_answer(struct hfd_take *t, struct hfd_err *err)
{
    const struct hfd_remote_answer *a = t->answer;
    struct hfd_err why;
    hfd_rc rc = HFD_OK;

    if (a->arrived && a->is_json && (a->status < 200 || a->status > 299))
        rc = hfd_wire_problem_read(a->body, t->mem, &t->problem, err);
    if (rc != HFD_OK)
        return rc;
    t->verdict = hfd_remote_verdict_of(t->request->method, a, &t->problem);
    if (t->verdict != HFD_ON_WELL || a->body.len == 0)
        return HFD_OK;
    rc = hfd_json_parse(a->body, &t->doc, &why);
    if (rc == HFD_NOMEM)
        return hfd_fail_nomem(err, "take HyperFleet's answer");
    if (rc != HFD_OK)
        t->verdict = HFD_ON_FOREIGN;
    return HFD_OK;
}

static hfd_rc take_work(struct hfd_take *t, struct hfd_err *err)
{
    const enum hfd_remote_work_kind kind = hfd_remote_work_kind(&t->pass->work);

    if (kind == HFD_REMOTE_WORK_MANY)
        return take_many(t, err);
    if (kind == HFD_REMOTE_WORK_SEARCH)
        return hfd_take_search(t, err);
    return kind == HFD_REMOTE_WORK_ORPHAN ? hfd_take_orphan(t, err) : take_resource(t, err);
}

hfd_rc hfd_pass_take(struct hfd_txn *tx, struct hfd_pass *pass,
                     const struct hfd_remote_exchange *exchange, struct hfd_err *err)
{
    struct hfd_arena mem;
    struct hfd_take t = {.tx = tx,
                         .pass = pass,
                         .policy = pass->policy,
                         .m = &pass->then,
                         .mem = &mem,
                         .now_us = exchange->now_us,
                         .request = exchange->request,
                         .answer = exchange->answer};
    hfd_rc rc;

    HFD_CHECK_OBJ(pass, HFD_PASS_MAGIC);
    hfd_arena_init(&mem, HFD_MIRROR_SCRATCH_MAX_BYTES);
    pass->then = pass->now;
    rc = read_answer(&t, err);
    if (rc == HFD_OK)
        rc = take_work(&t, err);
    if (rc != HFD_OK)
        pass->then = pass->now;
    hfd_pass_invariant(pass);
    json_decref(t.doc);
    hfd_arena_fini(&mem);
    return rc;
}
