/* See take_many.h. */
#include "driver/backend/remote/take_many.h"

#include "driver/backend/remote/due.h"
#include "driver/backend/remote/take_list.h"

/* Returns whether the document has nothing new for the row. */
static bool is_unchanged(const struct hfd_fleet_row *row, const struct hfd_wire_resource *doc)
{
    return row->generation == doc->generation && hfd_slice_eq(row->conditions, doc->conditions) &&
           (!doc->deleting || row->deleted_us != 0);
}

/* Returns whether this pass observes the resource. */
static bool is_mine(const struct hfd_take *t, const struct hfd_remote_row *up)
{
    return up->watched == HFD_WATCHED_CLOSELY && (up->shard & t->pass->work.shards) != 0;
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
    if (rc == HFD_OK && is_mine(t, &up))
        rc = hfd_fleet_row_get(t->tx, doc->id, t->mem, &row, err);
    if (rc == HFD_NOT_FOUND || (rc == HFD_OK && !is_mine(t, &up)))
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
    const struct hfd_remote_watched watched = {t->pass->work.shards, t->now_us};

    hfd_pass_end(t->m);
    if (t->verdict == HFD_ON_REFUSED || (t->answer->arrived && t->answer->status == 429))
        return hfd_remote_row_postpone(t->tx, &watched, due_us, err);
    return hfd_remote_row_part(t->tx, &watched, due_us, err);
}

hfd_rc hfd_take_many(struct hfd_take *t, struct hfd_err *err)
{
    struct hfd_wire_page page;
    struct hfd_err why;
    hfd_rc rc;

    if (t->verdict != HFD_ON_WELL && !hfd_due_cannot_list(t))
        return list_fails(t, err);
    if (t->verdict != HFD_ON_WELL || hfd_wire_page_read(t->doc, &page, &why) != HFD_OK)
        page = (struct hfd_wire_page){.total = 0}; /* as a list that shows none */
    rc = hfd_take_items(t, &page, take_item, err);
    if (rc != HFD_OK || !hfd_take_page(t, &page, HFD_TAKE_PAGES_MAX))
        return rc;
    if (t->m->phase == HFD_PASS_MANY_CLUSTERS) {
        hfd_pass_move(t->m, HFD_PASS_MANY_POOLS);
        return HFD_OK;
    }
    hfd_pass_end(t->m);
    return hfd_remote_row_unwatch(
        t->tx, &(struct hfd_remote_watched){t->pass->work.shards, t->m->began_us}, err);
}
