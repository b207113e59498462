/* See sources.h. */
#include "driver/core/sources.h"

#include "driver/core/driver.h"
#include "driver/core/drift.h"
#include "driver/core/parts.h"
#include "driver/health/document.h"
#include "driver/status/status.h"
#include "store/rows_history.h"
#include "store/rows_report.h"
#include "store/rows_resource.h"

/* ---- sources ---- */

#define SCRATCH_MAX_BYTES ((size_t)128 * 1024 * 1024) /* for one cluster, nodepool or report */
#define PROVIDER_NONE "hyperfleet"
#define ROOM_FIRST 16

static hfd_rc fail_nomem(const struct hfd_ctx *c)
{
    return hfd_fail_nomem(c->err, "read the status of objects");
}

/* ---- where ---- */

hfd_rc hfd_place_provider(const struct hfd_ctx *c, hfd_slice text, hfd_slice *out)
{
    char *lower;

    *out = HFD_SLICE(PROVIDER_NONE);
    if (!hfd_status_name_ok(text))
        return HFD_OK;
    lower = hfd_arena_alloc(c->mem, text.len);
    if (lower == NULL)
        return fail_nomem(c);
    for (size_t i = 0; i < text.len; i++)
        lower[i] = (char)(text.p[i] >= 'A' && text.p[i] <= 'Z' ? text.p[i] + 32 : text.p[i]);
    *out = (hfd_slice){lower, text.len};
    return HFD_OK;
}

static hfd_slice string_in(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);

    return json_is_string(v) ? (hfd_slice){json_string_value(v), json_string_length(v)}
                             : HFD_SLICE("");
}

/* Calls for what the row of a cluster says of its place. */
static hfd_rc read_cluster(const struct hfd_ctx *c, const struct hfd_fleet_row *row,
                           struct hfd_place *out)
{
    json_t *spec = NULL, *labels = NULL;
    hfd_rc rc = hfd_json_parse(row->spec, &spec, c->err);

    if (rc == HFD_OK)
        rc = hfd_json_parse(row->labels, &labels, c->err);
    if (rc == HFD_OK)
        rc = hfd_place_provider(c, string_in(json_object_get(spec, "platform"), "type"),
                                &out->provider);
    if (rc == HFD_OK) {
        out->cluster = hfd_arena_dup(c->mem, row->name);
        out->project = hfd_arena_dup(c->mem, string_in(labels, "project"));
        out->labelled = json_object_get(labels, HFD_GURESID_LABEL) != NULL;
        if (out->cluster.p == NULL || out->project.p == NULL)
            rc = fail_nomem(c);
    }
    json_decref(labels);
    json_decref(spec);
    return rc;
}

hfd_rc hfd_place_read(const struct hfd_ctx *c, hfd_slice cluster_id, struct hfd_place *out)
{
    struct hfd_arena scratch;
    struct hfd_fleet_row row;
    hfd_rc rc;

    *out = (struct hfd_place){.provider = HFD_SLICE(PROVIDER_NONE), .cluster = cluster_id};
    hfd_arena_init(&scratch, SCRATCH_MAX_BYTES);
    rc = hfd_fleet_row_get(c->tx, cluster_id, &scratch, &row, c->err);
    if (rc == HFD_OK) {
        out->exists = true;
        out->generation = row.generation;
        out->deleting = row.deleted_us != 0;
        rc = read_cluster(c, &row, out);
    }
    hfd_arena_fini(&scratch);
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

/* ---- collecting ---- */

static hfd_rc add(const struct hfd_ctx *c, const struct hfd_source *source, struct hfd_sources *out)
{
    if (out->count == out->room) {
        const size_t room = out->room > 0 ? 2 * out->room : ROOM_FIRST;
        struct hfd_source *items = hfd_arena_array(c->mem, room, sizeof(*items));

        if (items == NULL)
            return fail_nomem(c);
        for (size_t i = 0; i < out->count; i++)
            items[i] = out->items[i];
        out->items = items;
        out->room = room;
    }
    out->items[out->count++] = *source;
    return HFD_OK;
}

static bool names_have(struct hfd_adapter_names names, hfd_slice name)
{
    for (size_t i = 0; i < names.count; i++)
        if (hfd_slice_eq(names.items[i], name))
            return true;
    return false;
}

static struct hfd_source source_of(const struct hfd_source_part *part, hfd_slice app)
{
    return (struct hfd_source){
        .app = app,
        .fleet_id = part->row->id,
        .kind = part->row->kind,
        .name = part->row->name,
        .provider = part->place->provider,
        .cluster = part->place->cluster,
    };
}

static enum hfd_status status_of(const struct hfd_conditions *cs, const char *type)
{
    const struct hfd_condition *found = hfd_condition_find(cs, hfd_slice_of(type));

    return found != NULL ? found->status : HFD_STATUS_UNKNOWN;
}

/* Why the part is not there yet, by the adapter. */
static hfd_rc say_waiting(const struct hfd_ctx *c, const struct hfd_conditions *cs,
                          struct hfd_source *source)
{
    const struct hfd_condition *available = hfd_condition_find(cs, HFD_SLICE("Available"));

    if (available == NULL || available->status == HFD_STATUS_TRUE)
        return HFD_OK;
    source->waiting =
        hfd_arena_printf(c->mem, "%.*s%s%.*s", HFD_SLICE_FMT(available->reason),
                         available->reason.len > 0 && available->message.len > 0 ? ": " : "",
                         HFD_SLICE_FMT(available->message));
    return source->waiting.p != NULL ? HFD_OK : fail_nomem(c);
}

/* Tells if the document of an observer's report is stale by its time. */
static hfd_rc is_stale(const struct hfd_ctx *c, const struct hfd_report_row *row, bool *stale)
{
    const struct hfd_watch_row key = {.fleet_id = row->fleet_id, .adapter = row->adapter};
    struct hfd_watch_row watch;
    hfd_rc rc = hfd_watch_row_get(c->tx, &key, c->mem, &watch, c->err);

    *stale = rc == HFD_OK && c->now_us > watch.stale_us;
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

/* The conditions of a report; a head of a long one has only those that are judged. */
static hfd_rc whole_conditions(const struct hfd_ctx *c, const struct hfd_report_row *head,
                               hfd_slice *out)
{
    const struct hfd_report_key key = {head->fleet_id, head->adapter};
    struct hfd_report_row whole;
    struct hfd_arena scratch;
    hfd_rc rc;

    *out = head->conditions;
    if (head->brief.len == 0)
        return HFD_OK;
    hfd_arena_init(&scratch, SCRATCH_MAX_BYTES);
    rc = hfd_report_row_get(c->tx, &key, &scratch, &whole, c->err);
    if (rc == HFD_OK) {
        *out = hfd_arena_dup(c->mem, whole.conditions);
        if (out->p == NULL)
            rc = fail_nomem(c);
    }
    hfd_arena_fini(&scratch);
    return rc;
}

static hfd_rc judge(const struct hfd_ctx *c, const struct hfd_source_part *part,
                    const struct hfd_report_row *row, struct hfd_source *source)
{
    const bool deleting = part->row->deleted_us != 0;
    const int64_t generation = deleting ? part->row->generation : part->generation;
    /* A deletion raises the generation by one. Until a report is about it, the last one holds. */
    const bool holds = deleting && row->observed_generation == generation - 1;
    struct hfd_status_report report = {
        .reported = true,
        .at_generation = !part->pending && (holds || row->observed_generation >= generation),
        .in_operation = !holds && row->received_us > 0 && row->received_us >= part->started_us,
        .deleting = deleting,
    };
    const struct hfd_condition *observed;
    struct hfd_conditions cs;
    hfd_rc rc = hfd_fleet_conditions(c->tx, row->conditions, c->mem, &cs, c->err);

    if (rc != HFD_OK)
        return rc;
    report.applied = status_of(&cs, "Applied");
    report.available = status_of(&cs, "Available");
    report.health = status_of(&cs, "Health");
    report.finalized = status_of(&cs, "Finalized");
    observed = hfd_condition_find(&cs, HFD_SLICE(HFD_OBSERVER_CONDITION));
    source->has_document = observed != NULL;
    source->done = report.at_generation && !deleting && report.available == HFD_STATUS_TRUE;
    if (observed != NULL)
        rc = is_stale(c, row, &report.stale);
    source->counted = names_have(part->required, source->app) ||
                      (observed != NULL && observed->status != HFD_STATUS_UNKNOWN);
    hfd_status_judge(&report, &source->verdict);
    return rc == HFD_OK ? say_waiting(c, &cs, source) : rc;
}

static hfd_rc add_reports(const struct hfd_ctx *c, const struct hfd_source_part *part,
                          const struct hfd_report_list *list, struct hfd_sources *out)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < list->count; i++) {
        const struct hfd_report_row *row = &list->rows[i];
        struct hfd_source source = source_of(part, row->adapter);

        hfd_object_counts_parse(row->objects, &source.counts);
        rc = whole_conditions(c, row, &source.conditions);
        if (rc == HFD_OK)
            rc = judge(c, part, row, &source);
        if (rc == HFD_OK)
            rc = add(c, &source, out);
    }
    return rc;
}

static bool has_reported(const struct hfd_report_list *list, hfd_slice adapter)
{
    for (size_t i = 0; i < list->count; i++)
        if (hfd_slice_eq(list->rows[i].adapter, adapter))
            return true;
    return false;
}

static hfd_rc read_deciders(const struct hfd_ctx *c, const struct hfd_report_list *list,
                            struct hfd_source_part *part)
{
    hfd_slice *names = hfd_arena_array(c->mem, list->count + 1, sizeof(*names));
    const struct hfd_adapter_names reported = {names, list->count};
    struct hfd_conditions cs = {NULL, 0};
    hfd_rc rc = HFD_OK;

    if (names == NULL)
        return fail_nomem(c);
    for (size_t i = 0; i < list->count; i++)
        names[i] = list->rows[i].adapter;
    if (hfd_driver_is_remote(c->driver) && part->row->conditions.len > 0)
        rc = hfd_fleet_conditions(c->tx, part->row->conditions, c->mem, &cs, c->err);
    return rc == HFD_OK
               ? hfd_part_deciders(c,
                                   &(struct hfd_part_seen){part->row->kind, part->row->ready, &cs},
                                   &reported, &part->required)
               : rc;
}

hfd_rc hfd_sources_add_part(const struct hfd_ctx *c, const struct hfd_source_part *part,
                            struct hfd_sources *out)
{
    struct hfd_source_part of = *part;
    struct hfd_report_list list;
    hfd_rc rc = hfd_report_row_heads(c->tx, part->row->id, c->mem, &list, c->err);

    if (rc == HFD_OK)
        rc = read_deciders(c, &list, &of);
    if (rc == HFD_OK)
        rc = add_reports(c, &of, &list, out);
    for (size_t i = 0; rc == HFD_OK && i < of.required.count; i++) {
        struct hfd_source source = source_of(part, of.required.items[i]);

        if (has_reported(&list, of.required.items[i]))
            continue;
        source.counted = true;
        source.waiting = HFD_SLICE("has not reported");
        hfd_status_judge(&(struct hfd_status_report){.reported = false}, &source.verdict);
        rc = add(c, &source, out);
    }
    return rc;
}

hfd_rc hfd_sources_add_ended(const struct hfd_ctx *c, const struct hfd_ended_query *query,
                             struct hfd_sources *out)
{
    struct hfd_ended_list list;
    hfd_rc rc = hfd_ended_row_list(c->tx, query, c->mem, &list, c->err);

    for (size_t i = 0; rc == HFD_OK && i < list.count; i++) {
        const struct hfd_ended_row *row = &list.rows[i];
        struct hfd_source source = {
            .app = row->adapter,
            .fleet_id = row->fleet_id,
            .kind = row->kind,
            .name = row->name,
            .provider = row->provider,
            .cluster = row->cluster,
            .counted = row->counted,
            .ended = true,
            .kept = row->objects,
        };

        hfd_kept_verdict_parse(row->verdict, &source.verdict);
        hfd_object_counts_parse(row->counts, &source.counts);
        rc = add(c, &source, out);
    }
    return rc;
}

/* ---- objects ---- */

static hfd_rc each_kept(const struct hfd_ctx *c, const struct hfd_source *source, hfd_source_fn *fn,
                        void *arg)
{
    hfd_slice rest = source->kept;
    struct hfd_object object;
    hfd_rc rc = HFD_OK;

    if (rest.len == 0)
        return hfd_fail(c->err, HFD_LIMIT,
                        "the objects of this instance were too many to be kept: ask for "
                        "output=summary without app, cluster and resource");
    while (rc == HFD_OK && hfd_kept_next(&rest, &object))
        rc = fn(arg, &(struct hfd_source_entry){source, &object, NULL, NULL});
    return rc;
}

static hfd_rc each_in_data(const struct hfd_source *source, const json_t *data, hfd_source_fn *fn,
                           void *arg)
{
    const json_t *list = json_object_get(data, "objects"), *one;
    struct hfd_object object;
    hfd_rc rc = HFD_OK;
    size_t i;

    json_array_foreach (list, i, one)
        if (rc == HFD_OK && hfd_object_read(one, &object))
            rc = fn(arg, &(struct hfd_source_entry){source, &object, one, data});
    return rc;
}

static hfd_rc each_in_document(const struct hfd_source *source, const json_t *data,
                               hfd_source_fn *fn, void *arg)
{
    struct hfd_health_objects found;
    hfd_rc rc = HFD_OK;

    hfd_health_objects(json_object_get(data, HFD_HEALTH_MEMBER), &found);
    for (size_t i = 0; rc == HFD_OK && i < found.count; i++)
        rc = fn(arg, &(struct hfd_source_entry){source, &found.items[i].object,
                                                found.items[i].entry, data});
    return rc;
}

static hfd_rc each_live(const struct hfd_ctx *c, const struct hfd_source *source, hfd_source_fn *fn,
                        void *arg)
{
    const struct hfd_report_key key = {source->fleet_id, source->app};
    struct hfd_report_row row;
    struct hfd_arena scratch;
    json_t *data = NULL;
    hfd_rc rc;

    hfd_arena_init(&scratch, SCRATCH_MAX_BYTES);
    scratch.budget = c->mem->budget;
    rc = hfd_report_row_get(c->tx, &key, &scratch, &row, c->err);
    if (rc == HFD_OK)
        rc = hfd_json_parse(row.data, &data, c->err);
    if (rc == HFD_OK)
        rc = each_in_data(source, data, fn, arg);
    if (rc == HFD_OK && source->has_document)
        rc = each_in_document(source, data, fn, arg);
    json_decref(data);
    hfd_arena_fini(&scratch);
    return rc;
}

hfd_rc hfd_source_each(const struct hfd_ctx *c, const struct hfd_source *source, hfd_source_fn *fn,
                       void *arg)
{
    return source->ended ? each_kept(c, source, fn, arg) : each_live(c, source, fn, arg);
}

/* ---- instance ---- */

/* The ended instances of a subject whose objects are kept. */
#define HFD_INSTANCES_KEPT 10
#define KEPT_MAX_BYTES ((size_t)4 * 1024 * 1024) /* of the objects of one report */

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
    /* The order goes with the row, or with what others write into it. */
    if (rc == HFD_OK && !part.leaving &&
        (removed ? c.driver->drift == HFD_DRIFT_REPAIR : call->by_others))
        rc = hfd_drift_keep(&c, &part, row);
    return rc == HFD_OK && removed ? end_part(&c, &part, row) : rc;
}
