/* See history.h. */
#include "driver/core/history.h"

#include "driver/core/driver.h"
#include "driver/fleet/fleet.h"
#include "store/rows_history.h"
#include "store/rows_resource.h"

/* ---- history ---- */

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

/* ---- documents ---- */

/* Adds a member; without a value it is null. */
static void add_text(struct hfd_buf *b, const char *lead, hfd_slice text)
{
    if (text.len > 0)
        hfd_buf_member_str(b, lead, text);
    else
        hfd_buf_addf(b, "%snull", lead);
}

void hfd_history_format(struct hfd_buf *b, const struct hfd_history_row *row)
{
    if (row->at_us != 0)
        hfd_buf_member_time(b, ",\"time\":", row->at_us);
    else
        hfd_buf_lit(b, ",\"time\":null");
    add_text(b, ",\"event\":", row->what);
    add_text(b, ",\"from\":", hfd_slice_of(hfd_state_name(hfd_state_known(row->from))));
    add_text(b, ",\"to\":", hfd_slice_of(hfd_state_name(hfd_state_known(row->to))));
    hfd_buf_addf(b, ",\"instance\":\"%lld\"", (long long)row->instance);
    add_text(b, ",\"incarnation\":", row->incarnation);
    if (row->generation != 0)
        hfd_buf_addf(b, ",\"generation\":%lld", (long long)row->generation);
    else
        hfd_buf_lit(b, ",\"generation\":null");
    add_text(b, ",\"message\":", row->text);
}

void hfd_feed_entry_format(struct hfd_buf *b, const struct hfd_feed_entry *entry)
{
    hfd_buf_addf(b, "{\"id\":\"%lld\"", (long long)entry->row.seq);
    add_text(b, ",\"resource\":", entry->row.id);
    add_text(b, ",\"type\":", entry->type);
    add_text(b, ",\"name\":", entry->name);
    add_text(b, ",\"cluster_id\":", entry->cluster_id);
    hfd_history_format(b, &entry->row);
    hfd_buf_addc(b, '}');
}

/* ---- feed ---- */

#define HFD_FEED_SIZE_MAX 500

static hfd_rc tell_resource(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                            struct hfd_feed_entry *out)
{
    out->type = row->type;
    if (hfd_backend_id_is_given(row->cluster_id))
        out->cluster_id = row->cluster_id;
    return name_of(c, row, &out->name);
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
    hfd_slice *guresids = hfd_arena_array(c->mem, out->count + 1, sizeof(*guresids));
    const struct hfd_resource_prefetch want = {.guresids = guresids, .count = out->count};
    hfd_rc rc;

    if (guresids == NULL)
        return hfd_fail_nomem(c->err, "read the event feed");
    for (size_t i = 0; i < out->count; i++)
        guresids[i] = out->items[i].row.id;
    rc = hfd_resource_row_prefetch(c->tx, &want, c->mem, c->err);
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
