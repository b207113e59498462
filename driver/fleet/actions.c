/* See actions.h. */
#include "driver/fleet/actions.h"

#include "driver/base/jsonx.h"
#include "store/rows_keys.h"

#define ACTIONS_MAX 100 /* entries of one cluster */

struct hfd_tombstone_limits hfd_fleet_tombstone_limits(const struct hfd_fleet *fleet,
                                                       int64_t now_us)
{
    return (struct hfd_tombstone_limits){.max = HFD_TOMBSTONES_MAX,
                                         .since_us = now_us - fleet->tombstone_us};
}

static struct hfd_history_row entry_of(const struct hfd_fleet_row *row, hfd_slice what,
                                       int64_t at_us)
{
    return (struct hfd_history_row){
        .about = HFD_ABOUT_CLUSTER,
        .id = row->id,
        .instance = row->generation,
        .at_us = at_us,
        .what = what,
        .generation = row->generation,
    };
}

struct hfd_history_row hfd_fleet_action_create(const struct hfd_fleet_row *row)
{
    struct hfd_history_row entry = entry_of(row, HFD_SLICE(HFD_HISTORY_CREATE), row->created_us);

    entry.instance = entry.generation = 1;
    return entry;
}

/* The deletion itself has raised the generation: what was asked for is the one before. */
struct hfd_history_row hfd_fleet_action_delete(const struct hfd_fleet_row *row)
{
    struct hfd_history_row entry = entry_of(row, HFD_SLICE("delete"), row->deleted_us);

    entry.instance = row->generation - 1;
    return entry;
}

/* A cluster with the label of a GUResID is in the history of that resource, or an orphan. */
static hfd_rc is_own(const struct hfd_fleet_work *w, const struct hfd_fleet_row *row, bool *own)
{
    json_t *labels;
    hfd_rc rc;

    *own = false;
    if (row->kind != HFD_KIND_CLUSTER)
        return HFD_OK;
    rc = hfd_json_parse(row->labels, &labels, w->err);
    if (rc != HFD_OK)
        return rc;
    *own = json_object_get(labels, HFD_LABEL_UNCOUNTED) == NULL;
    json_decref(labels);
    return HFD_OK;
}

static hfd_rc add_action(const struct hfd_fleet_work *w, struct hfd_history_row entry, int64_t *seq)
{
    hfd_rc rc = hfd_history_next_seq(w->tx, &entry.seq, w->err);

    if (seq != NULL)
        *seq = entry.seq;
    return rc == HFD_OK ? hfd_history_row_add(w->tx, &entry, ACTIONS_MAX, w->err) : rc;
}

/* The first entry is the creation, unless newer ones took its place. */
static hfd_rc add_creation(const struct hfd_fleet_work *w, const struct hfd_fleet_row *row)
{
    const struct hfd_history_subject subject = {HFD_ABOUT_CLUSTER, row->id};
    struct hfd_history_list list;
    hfd_rc rc = hfd_history_row_list(w->tx, &subject, w->call->mem, &list, w->err);

    return rc == HFD_OK && list.count == 0 ? add_action(w, hfd_fleet_action_create(row), NULL) : rc;
}

hfd_rc hfd_fleet_action_updated(const struct hfd_fleet_work *w, const struct hfd_fleet_row *row)
{
    bool own;
    hfd_rc rc = is_own(w, row, &own);

    if (rc != HFD_OK || !own)
        return rc;
    rc = add_creation(w, row);
    return rc == HFD_OK ? add_action(w, entry_of(row, HFD_SLICE("update"), row->updated_us), NULL)
                        : rc;
}

/* spec.platform.type of a cluster; empty without one. */
static hfd_rc provider_of(const struct hfd_fleet_work *w, const struct hfd_fleet_row *row,
                          hfd_slice *out)
{
    json_t *spec;
    const char *type;
    hfd_rc rc = hfd_json_parse(row->spec, &spec, w->err);

    if (rc != HFD_OK)
        return rc;
    type = json_string_value(json_object_get(json_object_get(spec, "platform"), "type"));
    *out = hfd_arena_dup(w->call->mem, hfd_slice_of(type != NULL ? type : ""));
    json_decref(spec);
    return out->p != NULL ? HFD_OK : hfd_fail_nomem(w->err, "remove a cluster");
}

hfd_rc hfd_fleet_action_removed(const struct hfd_fleet_work *w, const struct hfd_fleet_row *row)
{
    const struct hfd_tombstone_limits limits =
        hfd_fleet_tombstone_limits(w->call->fleet, w->call->now_us);
    struct hfd_tombstone_row stone = {
        .about = HFD_ABOUT_CLUSTER,
        .id = row->id,
        .removed_us = w->call->now_us,
        .created_us = row->created_us,
        .kind = row->kind,
        .cluster_id = row->id,
        .name = row->name,
    };
    struct hfd_history_row removal = entry_of(row, HFD_SLICE("removed"), w->call->now_us);
    bool own;
    hfd_rc rc = is_own(w, row, &own);

    if (rc != HFD_OK || !own)
        return rc;
    removal.instance = row->generation - 1;
    rc = add_creation(w, row);
    if (rc == HFD_OK)
        rc = add_action(w, hfd_fleet_action_delete(row), NULL);
    if (rc == HFD_OK)
        rc = add_action(w, removal, &stone.seq);
    if (rc == HFD_OK)
        rc = provider_of(w, row, &stone.provider);
    return rc == HFD_OK ? hfd_tombstone_row_add(w->tx, &stone, &limits, w->err) : rc;
}
