/*
 * A look at many: what is in progress and as it was is looked at again later; what has changed, and
 * what the list does not show, gets a pass of its own. Thread: writer, inside a transaction
 * function.
 */
#include "driver/backend/remote/due.h"
#include "store/rows_fleet.h"
#include "store/rows_part.h"
#include "store/rows_remote.h"

/* Whether a row says what the document says. */
static bool as_it_was(const struct hfd_fleet_row *row, const struct hfd_wire_resource *doc)
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
    if (as_it_was(&row, doc)) { /* due or not, it was seen now: so all stay due together, and one
                                   look is enough for them */
        up.due_us = t->now_us + hfd_due_jitter_us(t->policy, t->policy->watch_us);
        up.checked_us = t->now_us;
        up.tries = 0;
        /* Once in a while all reports are looked at. */
        up.watched =
            t->now_us - up.full_us < t->policy->idle_us ? HFD_WATCHED_CLOSELY : HFD_WATCHED_NOT;
    } else {
        up.due_us = t->now_us;
        up.watched = HFD_WATCHED_NOT;
    }
    return hfd_remote_row_put(t->tx, &up, err);
}

enum hfd_kind hfd_take_kind(const struct hfd_take *t)
{
    return t->m->many_pools ? HFD_KIND_NODEPOOL : HFD_KIND_CLUSTER;
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
        else if (rc == HFD_NOMEM)
            rc = hfd_fail(err, rc, "out of memory while taking HyperFleet's answer");
        else
            rc = HFD_OK;
        t->mem = outer;
        hfd_arena_fini(&mem);
    }
    return rc;
}

bool hfd_take_page(struct hfd_take *t, const struct hfd_wire_page *page, int64_t pages_max)
{
    bool last;

    t->m->collected += (int64_t)page->count;
    last = page->count == 0 || (page->total >= 0 && t->m->collected >= page->total) ||
           t->m->page + 1 >= pages_max;
    t->m->page = last ? 0 : t->m->page + 1;
    t->m->collected = last ? 0 : t->m->collected;
    return last;
}

/*
 * It may be this list alone that fails: then each is looked at by itself. Refused credentials and
 * too many requests are no list's fault.
 */
static hfd_rc list_fails(struct hfd_take *t, struct hfd_err *err)
{
    const int64_t due_us = t->now_us + hfd_due_backoff_us(t->policy, 1, t->answer);

    t->m->over = true;
    if (t->verdict == HFD_ON_REFUSED || (t->answer->arrived && t->answer->status == 429))
        return hfd_remote_row_postpone(t->tx, t->now_us, due_us, err);
    return hfd_remote_row_part(t->tx, t->now_us, due_us, err);
}

hfd_rc hfd_take_many(struct hfd_take *t, struct hfd_err *err)
{
    struct hfd_wire_page page;
    struct hfd_err why;
    hfd_rc rc;

    if (t->verdict != HFD_ON_WELL && !hfd_due_cannot_list(t))
        return list_fails(t, err);
    if (t->verdict != HFD_ON_WELL || hfd_wire_page_read(t->doc, &page, &why) != HFD_OK)
        page =
            (struct hfd_wire_page){.total = 0}; /* it cannot list so: each gets a pass of its own */
    rc = hfd_take_items(t, &page, take_item,
                        err); /* what is missing in the list gets its own pass */
    if (rc != HFD_OK || !hfd_take_page(t, &page, HFD_REMOTE_PAGES_MAX))
        return rc;
    if (!t->m->many_pools) {
        t->m->many_pools = true;
        return HFD_OK;
    }
    t->m->over = true;
    return hfd_remote_row_unwatch(t->tx, t->m->began_us, err);
}
