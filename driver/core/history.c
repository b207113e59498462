/* See history.h. */
#include "driver/core/history.h"

#include "driver/fleet/actions.h"
#include "store/rows_part.h"

hfd_slice hfd_history_word(enum hfd_state from, enum hfd_state to)
{
    switch (to) {
    case HFD_STATE_READY:
        return HFD_SLICE("ready");
    case HFD_STATE_FAILED:
        return HFD_SLICE("failed");
    case HFD_STATE_DELETING:
        return HFD_SLICE("delete");
    case HFD_STATE_CREATING:
    case HFD_STATE_UPDATING:
        return from == HFD_STATE_FAILED     ? HFD_SLICE("retry")
               : from == HFD_STATE_UPDATING ? HFD_SLICE("retarget")
                                            : HFD_SLICE("update");
    case HFD_STATE_ABSENT:
    case HFD_STATE_COUNT:
        break;
    }
    return HFD_SLICE("");
}

bool hfd_history_begins_instance(hfd_slice what)
{
    static const char *const words[] = {HFD_HISTORY_CREATE, "update", "retarget", "retry",
                                        "adopted"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (hfd_slice_is(what, words[i]))
            return true;
    return false;
}

/* ---- writing ---- */

static struct hfd_history_subject resource_subject(hfd_slice guresid)
{
    return (struct hfd_history_subject){HFD_ABOUT_RESOURCE, guresid};
}

hfd_rc hfd_history_begin(const struct hfd_ctx *c, struct hfd_resource_row *row)
{
    const struct hfd_history_subject subject = resource_subject(row->guresid);
    hfd_rc rc = hfd_history_next_seq(c->tx, &row->seq, c->err);

    row->instance = row->seq;
    return rc == HFD_OK ? hfd_tombstone_row_delete(c->tx, &subject, c->err) : rc;
}

hfd_rc hfd_history_add(const struct hfd_ctx *c, struct hfd_resource_row *row,
                       const struct hfd_happening *h)
{
    struct hfd_history_row entry = {
        .seq = row->seq,
        .about = HFD_ABOUT_RESOURCE,
        .id = row->guresid,
        .incarnation = row->incarnation,
        .at_us = h->at_us,
        .from = (int)h->from,
        .to = row->state,
        .what = h->what,
        .generation = h->generation,
        .text = h->text,
    };
    hfd_rc rc = HFD_OK;

    if (h->from != HFD_STATE_ABSENT)
        rc = hfd_history_next_seq(c->tx, &entry.seq, c->err);
    if (rc != HFD_OK)
        return rc;
    if (hfd_history_begins_instance(h->what))
        row->instance = entry.seq;
    entry.instance = row->instance;
    return hfd_history_row_add(c->tx, &entry, HFD_HISTORY_MAX, c->err);
}

/* An adoption is an entry already, and has the same number. */
hfd_rc hfd_history_keep_creation(const struct hfd_ctx *c, const struct hfd_resource_row *row)
{
    const struct hfd_history_row entry = {
        .seq = row->seq,
        .about = HFD_ABOUT_RESOURCE,
        .id = row->guresid,
        .incarnation = row->incarnation,
        .instance = row->seq,
        .at_us = row->created_us,
        .from = HFD_STATE_ABSENT,
        .to = HFD_STATE_CREATING,
        .what = HFD_SLICE(HFD_HISTORY_CREATE),
        .generation = 1,
    };

    return hfd_history_row_add(c->tx, &entry, HFD_HISTORY_MAX + 2, c->err);
}

static hfd_rc add_removal(const struct hfd_ctx *c, const struct hfd_resource_row *row, int64_t *seq)
{
    struct hfd_history_row entry = {
        .about = HFD_ABOUT_RESOURCE,
        .id = row->guresid,
        .incarnation = row->incarnation,
        .instance = row->instance,
        .at_us = row->updated_us,
        .from = HFD_STATE_DELETING,
        .to = HFD_STATE_ABSENT,
        .what = HFD_SLICE("removed"),
    };
    hfd_rc rc = hfd_history_next_seq(c->tx, seq, c->err);

    entry.seq = *seq;
    return rc == HFD_OK ? hfd_history_row_add(c->tx, &entry, HFD_HISTORY_MAX + 2, c->err) : rc;
}

/* The name of the cluster, or of the nodepool of a nodepool resource. */
static hfd_rc name_of(const struct hfd_ctx *c, const struct hfd_resource_row *row, hfd_slice *out)
{
    struct hfd_part_list parts;
    hfd_rc rc = hfd_part_row_list(c->tx, row->guresid, c->mem, &parts, c->err);

    *out = HFD_SLICE("");
    for (size_t i = 0; rc == HFD_OK && i < parts.count; i++)
        if (parts.rows[i].kind == row->kind && !parts.rows[i].leaving)
            *out = parts.rows[i].name;
    return rc;
}

hfd_rc hfd_history_end(const struct hfd_ctx *c, const struct hfd_resource_row *row)
{
    const struct hfd_tombstone_limits limits =
        hfd_fleet_tombstone_limits(&c->driver->fleet, c->now_us);
    struct hfd_tombstone_row stone = {
        .about = HFD_ABOUT_RESOURCE,
        .id = row->guresid,
        .removed_us = row->updated_us,
        .created_us = row->created_us,
        .kind = row->kind,
        .type = row->type,
        .incarnation = row->incarnation,
        .cluster_id = row->cluster_id,
    };
    hfd_rc rc = hfd_history_keep_creation(c, row);

    if (rc == HFD_OK)
        rc = add_removal(c, row, &stone.seq);
    if (rc == HFD_OK)
        rc = name_of(c, row, &stone.name);
    return rc == HFD_OK ? hfd_tombstone_row_add(c->tx, &stone, &limits, c->err) : rc;
}

/* ---- reading ---- */

/* The tombstone of a subject, unless its time is over. */
static hfd_rc read_tombstone(const struct hfd_ctx *c, const struct hfd_history_subject *subject,
                             struct hfd_history *out)
{
    const struct hfd_tombstone_limits limits =
        hfd_fleet_tombstone_limits(&c->driver->fleet, c->now_us);
    hfd_rc rc = hfd_tombstone_row_get(c->tx, subject, c->mem, &out->removed, c->err);

    return rc == HFD_OK && out->removed.removed_us <= limits.since_us ? HFD_NOT_FOUND : rc;
}

static hfd_rc read_entries(const struct hfd_ctx *c, const struct hfd_history_subject *subject,
                           struct hfd_history *out)
{
    struct hfd_history_list list;
    hfd_rc rc = hfd_history_row_list(c->tx, subject, c->mem, &list, c->err);

    out->entries = list.rows;
    out->count = list.count;
    return rc;
}

hfd_rc hfd_history_read(const struct hfd_ctx *c, hfd_slice guresid, struct hfd_history *out)
{
    const struct hfd_history_subject subject = resource_subject(guresid);
    struct hfd_resource_row row;
    hfd_rc rc = hfd_resource_row_get(c->tx, guresid, c->mem, &row, c->err);

    *out = (struct hfd_history){.is_there = rc == HFD_OK};
    if (rc == HFD_NOT_FOUND)
        rc = read_tombstone(c, &subject, out);
    return rc == HFD_OK ? read_entries(c, &subject, out) : rc;
}

/* ---- clusters that no resource has ---- */

static void add_entry(struct hfd_history *h, struct hfd_history_row entry)
{
    entry.seq = h->count > 0 ? h->entries[h->count - 1].seq + 1 : 1;
    h->entries[h->count++] = entry;
}

/* The entries of a cluster that is there: what its row says, and the stored ones. */
static hfd_rc entries_of_cluster(const struct hfd_ctx *c, const struct hfd_fleet_row *row,
                                 struct hfd_history *out)
{
    const struct hfd_history_subject subject = {HFD_ABOUT_CLUSTER, row->id};
    struct hfd_history stored = {.count = 0};
    hfd_rc rc = read_entries(c, &subject, &stored);

    if (rc != HFD_OK)
        return rc;
    out->entries = hfd_arena_array(c->mem, stored.count + 2, sizeof(*out->entries));
    if (out->entries == NULL)
        return hfd_fail_nomem(c->err, "read the history of a cluster");
    if (stored.count == 0)
        add_entry(out, hfd_fleet_action_create(row));
    for (size_t i = 0; i < stored.count; i++)
        out->entries[out->count++] = stored.entries[i];
    if (row->deleted_us != 0)
        add_entry(out, hfd_fleet_action_delete(row));
    return HFD_OK;
}

hfd_rc hfd_history_read_cluster(const struct hfd_ctx *c, hfd_slice id,
                                const struct hfd_fleet_row *row, struct hfd_history *out)
{
    const struct hfd_history_subject subject = {HFD_ABOUT_CLUSTER, id};
    hfd_rc rc;

    *out = (struct hfd_history){.is_there = row != NULL};
    if (row != NULL)
        return entries_of_cluster(c, row, out);
    rc = read_tombstone(c, &subject, out);
    return rc == HFD_OK ? read_entries(c, &subject, out) : rc;
}
