/* See instance.h. */
#include "driver/core/instance.h"

#include "driver/core/sources.h"
#include "driver/status/kept.h"
#include "store/rows_resource.h"

#define SCRATCH_MAX_BYTES ((size_t)128 * 1024 * 1024) /* for one cluster or nodepool */
#define KEPT_MAX_BYTES ((size_t)4 * 1024 * 1024)      /* of the objects of one report */

/* The instance that ends. */
struct ending {
    const struct hfd_ctx *c;
    struct hfd_history_subject subject;
    int64_t instance;
    int64_t started_us;
    bool removed;
    struct hfd_arena *mem; /* keeps the rows of out */
    struct hfd_instance *out;
};

/* ---- rows ---- */

static hfd_rc own(const struct ending *e, hfd_slice *text)
{
    *text = hfd_arena_dup(e->mem, *text);
    return text->p != NULL ? HFD_OK : hfd_fail_nomem(e->c->err, "keep the objects of an instance");
}

/* Adds a row with copies of its texts. */
static hfd_rc add_row(const struct ending *e, const struct hfd_ended_row *row)
{
    struct hfd_instance *out = e->out;
    struct hfd_ended_row copy = *row;
    hfd_slice *const texts[] = {&copy.id,       &copy.fleet_id, &copy.adapter, &copy.name,
                                &copy.provider, &copy.cluster,  &copy.counts,  &copy.objects};
    hfd_rc rc = HFD_OK;

    if (out->count == out->room) {
        const size_t room = out->room > 0 ? 2 * out->room : 8;
        struct hfd_ended_row *rows = hfd_arena_array(e->mem, room, sizeof(*rows));

        if (rows == NULL)
            return hfd_fail_nomem(e->c->err, "keep the objects of an instance");
        for (size_t i = 0; i < out->count; i++)
            rows[i] = out->rows[i];
        out->rows = rows;
        out->room = room;
    }
    for (size_t i = 0; rc == HFD_OK && i < sizeof(texts) / sizeof(texts[0]); i++)
        rc = own(e, texts[i]);
    if (rc == HFD_OK)
        out->rows[out->count++] = copy;
    return rc;
}

hfd_rc hfd_instance_keep(const struct hfd_ctx *c, const struct hfd_instance *instance)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < instance->count; i++)
        rc = hfd_ended_row_put(c->tx, &instance->rows[i], HFD_INSTANCES_KEPT, c->err);
    return rc;
}

/* ---- reports ---- */

static hfd_rc keep_object(void *arg, const struct hfd_source_entry *entry)
{
    struct hfd_object object = *entry->object;

    if (object.provider.len == 0 && object.cluster.len == 0) {
        object.provider = entry->source->provider;
        object.cluster = entry->source->cluster;
    }
    hfd_kept_add(arg, &object);
    return HFD_OK;
}

/* The objects of a report, in their kept form; empty when that would be too large. */
static hfd_rc keep_objects(const struct hfd_ctx *c, const struct hfd_source *source, hfd_slice *out)
{
    struct hfd_buf b;
    hfd_rc rc;

    *out = HFD_SLICE("");
    if (hfd_object_counts_none(&source->counts))
        return HFD_OK;
    hfd_buf_init(&b, KEPT_MAX_BYTES);
    rc = hfd_source_each(c, source, keep_object, &b);
    if (rc == HFD_OK)
        rc = hfd_buf_to_arena(&b, c->mem, out, c->err);
    hfd_buf_fini(&b);
    if (rc != HFD_LIMIT)
        return rc;
    *out = HFD_SLICE("");
    return HFD_OK;
}

static hfd_rc keep_source(const struct ending *e, const struct hfd_source *source)
{
    struct hfd_status_verdict verdict = source->verdict;
    struct hfd_ended_row row = {
        .about = e->subject.about,
        .id = e->subject.id,
        .instance = e->instance,
        .fleet_id = source->fleet_id,
        .adapter = source->app,
        .kind = source->kind,
        .name = source->name,
        .provider = source->provider,
        .cluster = source->cluster,
        .counted = source->counted,
    };
    hfd_rc rc = keep_objects(e->c, source, &row.objects);

    if (e->removed)
        hfd_status_judge(&(struct hfd_status_report){.removed = true}, &verdict);
    row.verdict = hfd_kept_verdict_format(&verdict);
    if (rc == HFD_OK && hfd_object_counts_format(&source->counts, e->c->mem, &row.counts) != HFD_OK)
        rc = hfd_fail_nomem(e->c->err, "keep the objects of an instance");
    return rc == HFD_OK ? add_row(e, &row) : rc;
}

static hfd_rc keep_part(const struct ending *e, const struct hfd_source_part *part)
{
    struct hfd_sources sources = {NULL, 0, 0};
    hfd_rc rc = hfd_sources_add_part(e->c, part, &sources);

    for (size_t i = 0; rc == HFD_OK && i < sources.count; i++)
        rc = keep_source(e, &sources.items[i]);
    return rc;
}

/* The cluster of a cluster or nodepool. */
static hfd_slice cluster_of(const struct hfd_fleet_row *row)
{
    return row->kind == HFD_KIND_CLUSTER ? row->id : row->owner_id;
}

/* Keeps a part as it stands. Each has an arena of its own: all together may be large. */
static hfd_rc keep_row(const struct ending *e, const struct hfd_fleet_row *row, int64_t generation,
                       bool pending)
{
    struct hfd_source_part part = {
        .row = row, .generation = generation, .started_us = e->started_us, .pending = pending};
    struct ending inner = *e;
    struct hfd_ctx c = *e->c;
    struct hfd_arena scratch;
    struct hfd_place place;
    hfd_rc rc;

    hfd_arena_init(&scratch, SCRATCH_MAX_BYTES);
    c.mem = &scratch;
    inner.c = &c;
    rc = hfd_place_read(&c, cluster_of(row), &place);
    part.place = &place;
    if (rc == HFD_OK)
        rc = keep_part(&inner, &part);
    hfd_arena_fini(&scratch);
    return rc;
}

/* ---- driver resources ---- */

static struct ending ending_of(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                               struct hfd_instance *out)
{
    return (struct ending){.c = c,
                           .subject = {HFD_ABOUT_RESOURCE, row->guresid},
                           .instance = row->instance,
                           .started_us = row->op_started_us,
                           .mem = c->mem,
                           .out = out};
}

hfd_rc hfd_instance_read(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                         struct hfd_instance *out)
{
    const struct ending e = ending_of(c, row, out);
    struct hfd_part_list parts;
    hfd_rc rc = hfd_part_row_list(c->tx, row->guresid, c->mem, &parts, c->err);

    *out = (struct hfd_instance){NULL, 0, 0};
    for (size_t i = 0; rc == HFD_OK && i < parts.count; i++) {
        const struct hfd_part_row *part = &parts.rows[i];
        struct hfd_fleet_row fleet;

        rc = hfd_fleet_row_get(c->tx, part->fleet_id, c->mem, &fleet, c->err);
        if (rc == HFD_OK)
            rc = keep_row(&e, &fleet, part->generation, part->pending);
        else if (rc == HFD_NOT_FOUND)
            rc = HFD_OK;
    }
    return rc;
}

/* A nodepool that the order no longer has leaves its instance. */
static hfd_rc end_part(const struct hfd_ctx *c, const struct hfd_part_row *part,
                       const struct hfd_fleet_row *row)
{
    struct hfd_instance instance = {NULL, 0, 0};
    struct hfd_resource_row resource;
    struct ending e;
    hfd_rc rc;

    if (part->leaving)
        return HFD_OK;
    rc = hfd_resource_row_get(c->tx, part->guresid, c->mem, &resource, c->err);
    if (rc != HFD_OK)
        return rc == HFD_NOT_FOUND ? HFD_OK : rc;
    e = ending_of(c, &resource, &instance);
    e.removed = true;
    rc = keep_row(&e, row, part->generation, part->pending);
    return rc == HFD_OK ? hfd_instance_keep(c, &instance) : rc;
}

/* ---- clusters that no driver resource has ---- */

static hfd_rc keep_nodepools(const struct ending *e, hfd_slice cluster_id)
{
    struct hfd_fleet_list list;
    hfd_rc rc = hfd_fleet_row_children(e->c->tx, cluster_id, e->c->mem, &list, e->c->err);

    for (size_t i = 0; rc == HFD_OK && i < list.count; i++)
        rc = keep_row(e, &list.rows[i], list.rows[i].generation, false);
    return rc;
}

/*
 * A cluster with the label of a GUResID is in the history of that resource, or an orphan. A
 * nodepool that is removed alone leaves its instance.
 */
static hfd_rc end_own(const struct hfd_ctx *c, const struct hfd_fleet_row *row, bool removed)
{
    struct hfd_instance instance = {NULL, 0, 0};
    struct ending e = {.c = c,
                       .subject = {HFD_ABOUT_CLUSTER, cluster_of(row)},
                       .started_us = row->updated_us,
                       .removed = removed,
                       .mem = c->mem,
                       .out = &instance};
    struct hfd_place place;
    hfd_rc rc = hfd_place_read(c, cluster_of(row), &place);

    if (rc != HFD_OK || !place.exists || place.labelled)
        return rc;
    if (row->kind == HFD_KIND_NODEPOOL && !(removed && place.deleting))
        return HFD_OK;
    e.instance = place.generation - (place.deleting ? 1 : 0);
    rc = keep_row(&e, row, row->generation, false);
    if (rc == HFD_OK && !removed)
        rc = keep_nodepools(&e, row->id);
    return rc == HFD_OK ? hfd_instance_keep(c, &instance) : rc;
}

hfd_rc hfd_instance_ending(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                           const struct hfd_fleet_row *row, bool removed, struct hfd_err *err)
{
    const struct hfd_ctx c = {.tx = tx,
                              .driver = hfd_driver_of_fleet(call->fleet),
                              .now_us = call->now_us,
                              .mem = call->mem,
                              .err = err};
    struct hfd_part_row part;
    hfd_rc rc = hfd_part_row_by_fleet(tx, row->id, call->mem, &part, err);

    if (rc == HFD_NOT_FOUND)
        return end_own(&c, row, removed);
    return rc == HFD_OK && removed ? end_part(&c, &part, row) : rc;
}
