/* See feed.h. */
#include "driver/core/feed.h"

#include "store/rows_part.h"

static hfd_rc tell_resource(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                            struct hfd_feed_entry *out)
{
    struct hfd_part_list parts;
    hfd_rc rc = hfd_part_row_list(c->tx, row->guresid, c->mem, &parts, c->err);

    out->type = row->type;
    if (hfd_backend_id_is_given(row->cluster_id))
        out->cluster_id = row->cluster_id;
    for (size_t i = 0; rc == HFD_OK && i < parts.count; i++)
        if (parts.rows[i].kind == row->kind && !parts.rows[i].leaving)
            out->name = parts.rows[i].name;
    return rc;
}

/* The resource of an entry: as it is, or as its tombstone remembers it. */
static hfd_rc tell(const struct hfd_ctx *c, struct hfd_feed_entry *out)
{
    const struct hfd_history_subject subject = {HFD_ABOUT_RESOURCE, out->row.id};
    struct hfd_tombstone_row stone;
    struct hfd_resource_row row;
    hfd_rc rc = hfd_resource_row_get(c->tx, out->row.id, c->mem, &row, c->err);

    out->type = out->name = out->cluster_id = HFD_SLICE("");
    if (rc != HFD_NOT_FOUND)
        return rc == HFD_OK ? tell_resource(c, &row, out) : rc;
    rc = hfd_tombstone_row_get(c->tx, &subject, c->mem, &stone, c->err);
    if (rc != HFD_OK)
        return rc == HFD_NOT_FOUND ? HFD_OK : rc;
    out->type = stone.type;
    out->name = stone.name;
    if (hfd_backend_id_is_given(stone.cluster_id))
        out->cluster_id = stone.cluster_id;
    return HFD_OK;
}

/* Entries of one resource often stand together: the last one knows it already. */
static hfd_rc tell_all(const struct hfd_ctx *c, struct hfd_feed *out)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < out->count; i++) {
        struct hfd_feed_entry *e = &out->items[i];

        if (i > 0 && hfd_slice_eq(e[-1].row.id, e->row.id)) {
            e->type = e[-1].type;
            e->name = e[-1].name;
            e->cluster_id = e[-1].cluster_id;
        } else {
            rc = tell(c, e);
        }
    }
    return rc;
}

hfd_rc hfd_feed_read(const struct hfd_ctx *c, const struct hfd_feed_query *q, struct hfd_feed *out)
{
    const struct hfd_history_query page = {.after = q->after,
                                           .before = q->newest ? q->before : INT64_MAX,
                                           .newest = q->newest,
                                           .limit = (int64_t)q->size};
    struct hfd_history_list list;
    struct hfd_history_ends ends;
    hfd_rc rc = hfd_history_row_ends(c->tx, &ends, c->err);

    if (rc == HFD_OK)
        rc = hfd_history_row_page(c->tx, &page, c->mem, &list, c->err);
    if (rc != HFD_OK)
        return rc;
    /*
     * A reader that knows more than there is has read a store that was lost since. One that knows
     * more than `last` has read more when hfd_number_end was later.
     */
    *out = (struct hfd_feed){.count = list.count,
                             .next = q->after <= ends.newest ? q->after : ends.last,
                             .complete = q->after == 0 ||
                                         (q->after >= ends.floor && q->after <= ends.newest)};
    out->items = hfd_arena_array(c->mem, list.count + 1, sizeof(*out->items));
    if (out->items == NULL)
        return hfd_fail_nomem(c->err, "read the event feed");
    for (size_t i = 0; i < list.count; i++)
        out->items[i].row = list.rows[i];
    if (list.count > 0)
        out->next = list.rows[list.count - 1].seq;
    return tell_all(c, out);
}
