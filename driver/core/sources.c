/* See sources.h. */
#include "driver/core/sources.h"

#include "driver/health/objects.h"
#include "driver/health/read.h"
#include "driver/status/kept.h"
#include "driver/status/query.h"
#include "store/rows_watch.h"

#define SCRATCH_MAX_BYTES ((size_t)128 * 1024 * 1024) /* to read one report */
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

bool hfd_sources_unknown(const struct hfd_ctx *c, enum hfd_kind kind)
{
    return c->driver->fleet.required[kind].count == 0 &&
           !hfd_slice_is(c->driver->backend, "embedded");
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

/* Tells if the document of an observer's report is stale, whatever the report says of that. */
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
    const int64_t generation =
        part->row->deleted_us != 0 ? part->row->generation : part->generation;
    struct hfd_status_report report = {
        .reported = true,
        .at_generation = !part->pending && row->observed_generation >= generation,
        .in_operation = row->received_us > 0 && row->received_us >= part->started_us,
        .deleting = part->row->deleted_us != 0,
    };
    const struct hfd_condition *observed;
    struct hfd_conditions cs;
    hfd_rc rc = hfd_conditions_parse(row->conditions, c->mem, &cs, c->err);

    if (rc != HFD_OK)
        return rc;
    report.applied = status_of(&cs, "Applied");
    report.available = status_of(&cs, "Available");
    report.health = status_of(&cs, "Health");
    report.finalized = status_of(&cs, "Finalized");
    observed = hfd_condition_find(&cs, HFD_SLICE(HFD_OBSERVER_CONDITION));
    source->has_document = observed != NULL;
    if (observed != NULL)
        rc = is_stale(c, row, &report.stale);
    source->counted = names_have(c->driver->fleet.required[source->kind], source->app) ||
                      hfd_sources_unknown(c, source->kind) ||
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

hfd_rc hfd_sources_add_part(const struct hfd_ctx *c, const struct hfd_source_part *part,
                            struct hfd_sources *out)
{
    const struct hfd_adapter_names required = c->driver->fleet.required[part->row->kind];
    struct hfd_report_list list;
    hfd_rc rc = hfd_report_row_heads(c->tx, part->row->id, c->mem, &list, c->err);

    if (rc == HFD_OK)
        rc = add_reports(c, part, &list, out);
    for (size_t i = 0; rc == HFD_OK && i < required.count; i++) {
        struct hfd_source source = source_of(part, required.items[i]);

        if (has_reported(&list, required.items[i]))
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

void hfd_sources_count(const struct hfd_sources *sources, struct hfd_status_counts *out)
{
    *out = (struct hfd_status_counts){{0}, {0}};
    for (size_t i = 0; i < sources->count; i++) {
        const struct hfd_source *s = &sources->items[i];

        if (!s->counted)
            continue;
        if (hfd_object_counts_none(&s->counts))
            hfd_status_count_pseudo(out, &s->verdict);
        else
            hfd_status_count_stored(out, &s->verdict, &s->counts);
    }
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
