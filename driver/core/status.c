/* See status.h. */
#include "driver/core/status.h"

#include "driver/core/driver.h"
#include "driver/core/history.h"
#include "driver/core/lookup.h"
#include "driver/core/sources.h"
#include "driver/core/transition.h"
#include "driver/status/status.h"
#include "store/rows_resource.h"

/* ---- status items ---- */

/*
 * The objects of a status query's answer: filtered, counted, and with their details. Thread: any,
 * inside a transaction function.
 */

#define REDACTED "[redacted]"
#define DETAIL_MAX_BYTES ((size_t)16 * 1024 * 1024)   /* of one object */
#define SCRATCH_MAX_BYTES ((size_t)128 * 1024 * 1024) /* for one cluster, nodepool or report */

/* One query on its way through the sources. */
struct listing {
    const struct hfd_ctx *c;
    const struct hfd_status_query *q;
    struct hfd_status_view *view;
    bool terminating;
    size_t room;
    /* The detail of the pseudo-objects of one cluster or nodepool, which its adapters share. */
    hfd_slice pseudo_of, pseudo;
};

static hfd_rc fail_nomem(const struct listing *l)
{
    return hfd_fail_nomem(l->c->err, "list objects");
}

/* ---- details ---- */

/* @return false when memory is short: then nothing may be shown */
static bool redact_members(json_t *object)
{
    const char *key;
    json_t *v;

    json_object_foreach (object, key, v)
        if (json_object_set_new(object, key, json_string(REDACTED)) != 0)
            return false;
    return true;
}

/* The values of a Secret, and the annotation in which kubectl repeats them. */
static bool redact_secret(json_t *detail)
{
    static const char applied[] = "kubectl.kubernetes.io/last-applied-configuration";
    json_t *annotations = json_object_get(json_object_get(detail, "metadata"), "annotations");

    return redact_members(json_object_get(detail, "data")) &&
           redact_members(json_object_get(detail, "stringData")) &&
           (json_object_get(annotations, applied) == NULL ||
            json_object_set_new(annotations, applied, json_string(REDACTED)) == 0);
}

static bool is_secret(const struct hfd_object *object, const json_t *detail)
{
    const char *kind = json_string_value(json_object_get(detail, "kind"));

    return hfd_slice_is(object->kind, "Secret") || (kind != NULL && strcmp(kind, "Secret") == 0);
}

static hfd_rc dump(const struct listing *l, const json_t *v, hfd_slice *out)
{
    struct hfd_buf b;

    hfd_buf_init(&b, DETAIL_MAX_BYTES);
    hfd_json_dump(&b, v);
    return hfd_buf_to_arena(&b, l->c->mem, out, l->c->err);
}

/* A copy of the object as it is shown: without secrets, and without status for type=rsync. */
static hfd_rc add_detail(const struct listing *l, const struct hfd_object *object,
                         const json_t *detail, struct hfd_status_item *item)
{
    json_t *copy;
    hfd_rc rc;

    if (!json_is_object(detail))
        return HFD_OK;
    copy = hfd_json_deep_copy(detail);
    if (copy == NULL)
        return fail_nomem(l);
    if (l->q->type == HFD_STATUS_TYPE_RSYNC)
        (void)json_object_del(copy, "status");
    rc = is_secret(object, copy) && !redact_secret(copy) ? fail_nomem(l)
                                                         : dump(l, copy, &item->detail);
    json_decref(copy);
    return rc;
}

/* A part of a PacemakerCluster document, in the form of an object. */
static hfd_rc add_document_detail(const struct listing *l, const struct hfd_source_entry *entry,
                                  struct hfd_status_item *item)
{
    json_t *detail =
        json_pack("{s:s, s:s%, s:{s:s%}, s:O}", "apiVersion", "etcd.openshift.io/v1alpha1", "kind",
                  entry->object->kind.p, entry->object->kind.len, "metadata", "name",
                  entry->object->name.p, entry->object->name.len, "status", entry->json);
    hfd_rc rc = detail != NULL ? add_detail(l, entry->object, detail, item) : fail_nomem(l);

    json_decref(detail);
    return rc;
}

static hfd_rc add_conditions(const struct listing *l, const struct hfd_source_entry *entry,
                             struct hfd_status_item *item)
{
    const json_t *own = json_object_get(entry->json, "conditions");

    item->conditions = entry->source->conditions;
    return json_is_array(own) ? dump(l, own, &item->conditions) : HFD_OK;
}

/* The percent of an object, or that of its report; below 0: there is none. */
static int64_t progress_of(const struct hfd_source_entry *entry)
{
    const json_t *own = json_object_get(entry->json, "progress");

    if (!json_is_integer(own))
        own = json_object_get(entry->data, "progress");
    return json_is_integer(own) ? json_integer_value(own) : -1;
}

/* Adds to the progress of the whole, whatever the query asks for. */
static void add_share(struct listing *l, const struct hfd_source *source, enum hfd_rsync rsync,
                      int64_t own)
{
    const struct hfd_status_share share = {
        .rsync = rsync,
        .terminating = l->terminating,
        .counts = source->verdict.own,
        .done = source->ended ? rsync == HFD_RSYNC_APPLIED : source->done,
        .own = own,
    };

    if (!source->counted)
        return;
    l->view->percents.sum += hfd_status_percent(&share);
    l->view->percents.count++;
}

static bool is_done(const struct hfd_status_item *item)
{
    return item->rsync == HFD_RSYNC_TERMINATED;
}

static hfd_rc add_more(const struct listing *l, const struct hfd_source_entry *entry,
                       struct hfd_status_item *item)
{
    const bool of_document =
        entry->object->node.len > 0 ||
        (entry->source->has_document && json_object_get(entry->json, "nodeName") != NULL);
    hfd_rc rc;

    if (!is_done(item))
        item->waiting = entry->source->waiting;
    if (entry->json == NULL)
        return HFD_OK;
    rc = of_document ? add_document_detail(l, entry, item)
                     : add_detail(l, entry->object, json_object_get(entry->json, "detail"), item);
    if (rc == HFD_OK)
        rc = add_conditions(l, entry, item);
    item->progress = progress_of(entry);
    item->has_progress = item->progress >= 0;
    return rc;
}

/* ---- objects that reports list ---- */

static struct hfd_status_place place_of(const struct hfd_source *source,
                                        const struct hfd_object *object)
{
    return (struct hfd_status_place){
        .app = source->app,
        .provider = object->provider.len > 0 ? object->provider : source->provider,
        .cluster = object->cluster.len > 0 ? object->cluster : source->cluster,
        .name = object->name,
    };
}

/* Copies what the item borrows. Most texts repeat those of the item before. */
static hfd_rc own_text(const struct listing *l, hfd_slice before, hfd_slice *text)
{
    if (text->len == 0 || hfd_slice_eq(*text, before)) {
        *text = text->len == 0 ? HFD_SLICE("") : before;
        return HFD_OK;
    }
    *text = hfd_arena_dup(l->c->mem, *text);
    return text->p != NULL ? HFD_OK : fail_nomem(l);
}

static hfd_rc own_texts(const struct listing *l, struct hfd_status_item *item)
{
    static const struct hfd_status_item none;
    const struct hfd_status_item *was =
        l->view->item_count > 0 ? &l->view->items[l->view->item_count - 1] : &none;
    hfd_rc rc = own_text(l, was->place.provider, &item->place.provider);

    if (rc == HFD_OK)
        rc = own_text(l, was->place.cluster, &item->place.cluster);
    if (rc == HFD_OK)
        rc = own_text(l, was->place.name, &item->place.name);
    if (rc == HFD_OK)
        rc = own_text(l, was->group, &item->group);
    if (rc == HFD_OK)
        rc = own_text(l, was->version, &item->version);
    if (rc == HFD_OK)
        rc = own_text(l, was->kind, &item->kind);
    return rc == HFD_OK ? own_text(l, was->node, &item->node) : rc;
}

static hfd_rc push(struct listing *l, const struct hfd_status_item *item)
{
    struct hfd_status_view *view = l->view;

    if (view->item_count == l->room)
        return hfd_fail(l->c->err, HFD_CORRUPT,
                        "a report lists more objects than are counted with it");
    view->items[view->item_count++] = *item;
    return HFD_OK;
}

static hfd_rc take_object(void *arg, const struct hfd_source_entry *entry)
{
    struct listing *l = arg;
    const struct hfd_object *o = entry->object;
    struct hfd_status_item item = {
        .place = place_of(entry->source, o),
        .group = o->group,
        .version = o->version,
        .kind = o->kind,
        .node = o->node,
        .rsync = hfd_status_rsync(&entry->source->verdict, o),
        .presence = hfd_status_presence(&entry->source->verdict, o),
    };
    hfd_rc rc;

    if (!o->observed_only)
        add_share(l, entry->source, item.rsync, progress_of(entry));
    if (!hfd_status_query_has(l->q, &item.place))
        return HFD_OK;
    hfd_status_count(&l->view->counts, &entry->source->verdict, o);
    if (l->q->output == HFD_STATUS_OUTPUT_SUMMARY ||
        (o->observed_only && l->q->type == HFD_STATUS_TYPE_RSYNC))
        return HFD_OK;
    rc = own_texts(l, &item);
    if (rc == HFD_OK && l->q->output == HFD_STATUS_OUTPUT_DETAIL)
        rc = add_more(l, entry, &item);
    return rc == HFD_OK ? push(l, &item) : rc;
}

/* ---- pseudo-objects ---- */

static const char *kind_name(enum hfd_kind kind)
{
    return kind == HFD_KIND_CLUSTER ? "Cluster" : "NodePool";
}

/* The cluster or nodepool in the form of an object. */
static void format_pseudo(const struct listing *l, const struct hfd_fleet_row *row,
                          struct hfd_buf *b)
{
    hfd_buf_addf(b, "{\"apiVersion\":\"hyperfleet.io/v1\",\"kind\":\"%s\",\"metadata\":{\"name\":",
                 kind_name(row->kind));
    hfd_buf_json_str(b, row->name);
    hfd_buf_member_str(b, ",\"uid\":", row->id);
    hfd_buf_lit(b, ",\"generation\":");
    hfd_buf_i64(b, row->generation);
    hfd_buf_lit(b, ",\"labels\":");
    hfd_buf_add(b, row->labels);
    hfd_buf_lit(b, "},\"spec\":");
    hfd_buf_add(b, row->spec);
    if (l->q->type == HFD_STATUS_TYPE_CLUSTER) {
        hfd_buf_lit(b, ",\"status\":{\"conditions\":");
        hfd_buf_add(b, row->conditions);
        hfd_buf_addc(b, '}');
    }
    hfd_buf_addc(b, '}');
}

static hfd_rc read_pseudo(struct listing *l, const struct hfd_source *source)
{
    struct hfd_arena scratch;
    struct hfd_fleet_row row;
    struct hfd_buf b;
    hfd_rc rc;

    if (source->ended || hfd_slice_eq(l->pseudo_of, source->fleet_id)) {
        l->pseudo = source->ended ? HFD_SLICE("") : l->pseudo;
        return HFD_OK;
    }
    hfd_arena_init(&scratch, SCRATCH_MAX_BYTES);
    rc = hfd_fleet_row_get(l->c->tx, source->fleet_id, &scratch, &row, l->c->err);
    if (rc == HFD_OK) {
        hfd_buf_init(&b, DETAIL_MAX_BYTES);
        format_pseudo(l, &row, &b);
        rc = hfd_buf_to_arena(&b, l->c->mem, &l->pseudo, l->c->err);
    }
    hfd_arena_fini(&scratch);
    l->pseudo_of = rc == HFD_OK ? source->fleet_id : HFD_SLICE("");
    return rc;
}

/* A report without objects stands for the cluster or nodepool itself. */
static hfd_rc take_pseudo(struct listing *l, const struct hfd_source *source)
{
    struct hfd_status_item item = {
        .place = {source->app, source->provider, source->cluster, source->name},
        .group = HFD_SLICE("hyperfleet.io"),
        .version = HFD_SLICE("v1"),
        .kind = hfd_slice_of(kind_name(source->kind)),
        .rsync = source->verdict.rsync,
        .presence = source->verdict.presence,
    };
    hfd_rc rc = HFD_OK;

    add_share(l, source, item.rsync, -1);
    if (!hfd_status_query_has(l->q, &item.place))
        return HFD_OK;
    hfd_status_count_pseudo(&l->view->counts, &source->verdict);
    if (l->q->output == HFD_STATUS_OUTPUT_SUMMARY)
        return HFD_OK;
    if (l->q->output == HFD_STATUS_OUTPUT_DETAIL) {
        rc = read_pseudo(l, source);
        item.detail = l->pseudo;
        item.conditions = source->conditions;
        item.waiting = is_done(&item) ? HFD_SLICE("") : source->waiting;
    }
    return rc == HFD_OK ? push(l, &item) : rc;
}

/* ---- all ---- */

static size_t objects_of(const struct hfd_source *source)
{
    size_t count = 0;

    for (unsigned i = 0; i < HFD_PRESENCE_COUNT; i++)
        count += (size_t)source->counts.presence[i];
    return count > 0 ? count : 1;
}

static hfd_rc make_room(struct listing *l, const struct hfd_sources *sources)
{
    if (l->q->output == HFD_STATUS_OUTPUT_SUMMARY)
        return HFD_OK;
    for (size_t i = 0; i < sources->count; i++)
        l->room += objects_of(&sources->items[i]);
    l->view->items = hfd_arena_array(l->c->mem, l->room, sizeof(*l->view->items));
    return l->view->items != NULL ? HFD_OK : fail_nomem(l);
}

static void count_stored(const struct hfd_sources *sources, struct hfd_status_counts *counts)
{
    for (size_t i = 0; i < sources->count; i++) {
        const struct hfd_source *s = &sources->items[i];

        if (hfd_object_counts_none(&s->counts))
            hfd_status_count_pseudo(counts, &s->verdict);
        else
            hfd_status_count_stored(counts, &s->verdict, &s->counts);
    }
}

/*
 * Counts the objects that the query is about, and lists them unless it asks for a summary. A
 * summary without a filter reads stored counts alone.
 * @param terminating  the termination of the instance was asked for
 * @param view         its counts, percents and items are set, unsorted; percents with detail alone
 * @return HFD_OK, HFD_LIMIT
 */
static hfd_rc status_items(const struct hfd_ctx *c, const struct hfd_status_query *q,
                           const struct hfd_sources *sources, bool terminating,
                           struct hfd_status_view *view)
{
    struct listing l = {.c = c, .q = q, .view = view, .terminating = terminating};
    hfd_rc rc;

    view->counts = (struct hfd_status_counts){{0}, {0}};
    if (q->output == HFD_STATUS_OUTPUT_SUMMARY && hfd_status_query_is_whole(q)) {
        count_stored(sources, &view->counts);
        return HFD_OK;
    }
    rc = make_room(&l, sources);
    for (size_t i = 0; rc == HFD_OK && i < sources->count; i++) {
        const struct hfd_source *s = &sources->items[i];

        /* Detail shows the progress of the whole. */
        if (!hfd_status_query_has_app(q, s->app) &&
            (q->output != HFD_STATUS_OUTPUT_DETAIL || (s->ended && s->kept.len == 0)))
            continue;
        rc = hfd_object_counts_none(&s->counts) ? take_pseudo(&l, s)
                                                : hfd_source_each(c, s, take_object, &l);
    }
    return rc;
}

/* ---- status ---- */

/* One query. */
struct asked {
    const struct hfd_ctx *c;
    const struct hfd_status_query *q;
    struct hfd_status_view *view;
    struct hfd_history_subject subject; /* of the history */
    int64_t instance;                   /* the chosen one */
    struct hfd_status_life life;
    struct hfd_place place; /* of the cluster, while it exists */
    struct hfd_sources sources;
    bool late;  /* the deadline of the deletion has passed */
    bool waits; /* a remote whose adapters are not known is not ready */
};

/* ---- state and instance ---- */

static bool deed_of(hfd_slice what, enum hfd_status_deed *out)
{
    if (hfd_slice_is(what, "create") || hfd_slice_is(what, "adopted"))
        *out = HFD_DEED_CREATE;
    else if (hfd_history_begins_instance(what))
        *out = HFD_DEED_CHANGE;
    else if (hfd_slice_is(what, "delete"))
        *out = HFD_DEED_DELETE;
    else
        return false;
    return true;
}

static hfd_rc read_state(struct asked *a, enum hfd_status_subject subject,
                         const struct hfd_history *history)
{
    struct hfd_status_entry *entries =
        hfd_arena_array(a->c->mem, history->count + 1, sizeof(*entries));
    struct hfd_status_entries list = {entries, 0};

    if (entries == NULL)
        return hfd_fail_nomem(a->c->err, "read a state history");
    for (size_t i = 0; i < history->count; i++) {
        const struct hfd_history_row *row = &history->entries[i];

        if (deed_of(row->what, &entries[list.count].deed)) {
            entries[list.count].at_us = row->at_us;
            entries[list.count++].context = row->instance;
        }
    }
    return hfd_status_state_make(subject, &list, a->c->mem, &a->view->state, a->c->err);
}

/* Chooses the instance that the query names, or the last one. */
static hfd_rc choose_instance(struct asked *a)
{
    const hfd_slice wanted = a->q->instance;
    const struct hfd_status_state *state = &a->view->state;

    a->instance = hfd_status_state_latest(state);
    if (a->q->has_instance && (hfd_parse_i64(wanted, 1, INT64_MAX, &a->instance, NULL) != HFD_OK ||
                               !hfd_status_state_has(state, a->instance, &a->life.terminating)))
        return hfd_fail(
            a->c->err, HFD_NOT_FOUND, "There is no instance '%.*s' in the state history of '%.*s'",
            (int)(wanted.len < 40 ? wanted.len : 40), wanted.p, HFD_SLICE_FMT(a->view->name));
    (void)hfd_status_state_has(state, a->instance, &a->life.terminating);
    a->view->has_phase = a->instance != 0;
    return HFD_OK;
}

/* ---- sources ---- */

static hfd_rc add_ended(struct asked *a)
{
    const struct hfd_ended_query query = {a->subject, a->instance};

    return hfd_sources_add_ended(a->c, &query, &a->sources);
}

/* An ended instance of which nothing is kept any more. */
static hfd_rc check_kept(const struct asked *a)
{
    int64_t oldest;
    hfd_rc rc = hfd_ended_row_oldest(a->c->tx, &a->subject, &oldest, a->c->err);

    if (rc == HFD_OK && oldest > a->instance)
        return hfd_fail(a->c->err, HFD_NOT_FOUND,
                        "The objects of instance '%lld' are not kept any more",
                        (long long)a->instance);
    return rc;
}

static hfd_rc add_past(struct asked *a)
{
    hfd_rc rc = check_kept(a);

    a->life.gone = a->life.terminating;
    return rc == HFD_OK ? add_ended(a) : rc;
}

/* Notes what only detail shows. */
static hfd_rc note_conditions(struct asked *a, const struct hfd_fleet_row *row)
{
    if (a->q->output != HFD_STATUS_OUTPUT_DETAIL)
        return HFD_OK;
    a->view->conditions = hfd_arena_dup(a->c->mem, row->conditions);
    return a->view->conditions.p != NULL ? HFD_OK : hfd_fail_nomem(a->c->err, "read a cluster");
}

/* Reads a cluster or nodepool without its documents, which may be large. */
static hfd_rc read_bare(struct asked *a, hfd_slice fleet_id, bool is_main,
                        struct hfd_fleet_row *out)
{
    struct hfd_arena scratch;
    struct hfd_fleet_row row;
    hfd_rc rc;

    hfd_arena_init(&scratch, SCRATCH_MAX_BYTES);
    rc = hfd_fleet_row_get(a->c->tx, fleet_id, &scratch, &row, a->c->err);
    if (rc == HFD_OK) {
        *out = (struct hfd_fleet_row){.id = fleet_id,
                                      .kind = row.kind,
                                      .name = hfd_arena_dup(a->c->mem, row.name),
                                      .generation = row.generation,
                                      .conditions = hfd_arena_dup(a->c->mem, row.conditions),
                                      .ready = row.ready,
                                      .deleted_us = row.deleted_us};
        if (out->name.p == NULL || out->conditions.p == NULL)
            rc = hfd_fail_nomem(a->c->err, "read a cluster");
    }
    if (rc == HFD_OK && is_main)
        rc = note_conditions(a, &row);
    hfd_arena_fini(&scratch);
    return rc;
}

/* True if the settings may not name the adapters that decide: a remote's are its own. */
static bool sources_unknown(const struct hfd_ctx *c, enum hfd_kind kind)
{
    return c->driver->fleet.required[kind].count == 0 && hfd_driver_is_remote(c->driver);
}

/* A part as it stands. One that is gone is in what was kept. */
static hfd_rc add_part(struct asked *a, hfd_slice fleet_id, struct hfd_source_part part,
                       bool is_main)
{
    struct hfd_fleet_row row;
    hfd_rc rc = read_bare(a, fleet_id, is_main, &row);

    if (rc == HFD_NOT_FOUND) {
        a->life.gone = a->life.gone || is_main;
        return HFD_OK;
    }
    if (rc != HFD_OK)
        return rc;
    part.row = &row;
    part.place = &a->place;
    if (part.generation == 0)
        part.generation = row.generation;
    if (is_main)
        a->waits = sources_unknown(a->c, row.kind) && !row.ready;
    return hfd_sources_add_part(a->c, &part, &a->sources);
}

/* ---- the answer ---- */

/* The counts of all objects of the sources that decide. */
static void sources_count(const struct hfd_sources *sources, struct hfd_status_counts *out)
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

static hfd_rc finish(struct asked *a)
{
    struct hfd_status_counts deciding;
    hfd_rc rc;

    sources_count(&a->sources, &deciding);
    a->view->phase = hfd_status_phase_of(a->life, deciding.rsync);
    if (a->waits && a->view->phase == HFD_PHASE_INSTANTIATED && a->sources.count == 0)
        a->view->phase = HFD_PHASE_INSTANTIATING;
    if (a->late && a->view->phase == HFD_PHASE_TERMINATING)
        a->view->phase = HFD_PHASE_TERMINATE_FAILED;
    rc = status_items(a->c, a->q, &a->sources, a->life.terminating, a->view);
    if (a->view->percents.count == 0)
        a->view->progress = a->view->phase == HFD_PHASE_INSTANTIATING ? 0 : 100;
    else
        a->view->progress = a->view->percents.sum / a->view->percents.count;
    return rc == HFD_OK ? hfd_status_view_sort(a->view, a->c->mem, a->c->err) : rc;
}

/* ---- driver resources ---- */

static hfd_rc fail_unknown(const struct hfd_ctx *c, const struct hfd_call *call)
{
    return hfd_fail(c->err, HFD_NOT_FOUND,
                    "There is no resource '%.*s'. It has not been ordered here, or it has been "
                    "deleted. Deploy again to make it.",
                    HFD_SLICE_FMT(call->guresid));
}

static hfd_rc add_present(struct asked *a, const struct hfd_resource_row *row)
{
    struct hfd_part_list parts;
    hfd_rc rc = hfd_part_row_list(a->c->tx, row->guresid, a->c->mem, &parts, a->c->err);

    if (rc == HFD_OK)
        rc = hfd_place_read(a->c, row->cluster_id, &a->place);
    a->view->project = rc == HFD_OK ? a->place.project : HFD_SLICE_NONE;
    for (size_t i = 0; rc == HFD_OK && i < parts.count; i++) {
        const struct hfd_part_row *p = &parts.rows[i];
        const struct hfd_source_part part = {.generation = p->generation,
                                             .started_us = row->op_started_us,
                                             .pending =
                                                 p->pending && row->state != HFD_STATE_DELETING};

        if (!p->leaving)
            rc = add_part(a, p->fleet_id, part, i == 0);
    }
    return rc == HFD_OK ? add_ended(a) : rc;
}

static hfd_rc answer_resource(struct asked *a, const struct hfd_call *call,
                              const struct hfd_resource_row *row)
{
    struct hfd_history history;
    hfd_rc rc = hfd_history_read(a->c, call->guresid, &history);

    if (rc == HFD_NOT_FOUND ||
        (rc == HFD_OK && row == NULL && call->only != 0 && (int)history.removed.kind != call->only))
        return fail_unknown(a->c, call);
    if (rc != HFD_OK)
        return rc;
    a->view->type = row != NULL ? row->type : history.removed.type;
    rc = read_state(a, HFD_SUBJECT_RESOURCE, &history);
    if (rc == HFD_OK)
        rc = choose_instance(a);
    if (rc != HFD_OK || a->instance == 0)
        return rc;
    if (row != NULL && a->instance == row->instance) {
        a->view->message = row->op_waits;
        a->late = row->state == HFD_STATE_DELETING && hfd_resource_overdue(row, a->c->now_us);
        rc = add_present(a, row);
    } else {
        rc = add_past(a);
    }
    return rc == HFD_OK ? finish(a) : rc;
}

hfd_rc hfd_status_of_resource(struct hfd_txn *tx, const struct hfd_call *call,
                              const struct hfd_status_query *query, struct hfd_status_view *out,
                              struct hfd_err *err)
{
    const struct hfd_ctx c = hfd_ctx_of(tx, call, err);
    struct asked a = {
        .c = &c, .q = query, .view = out, .subject = {HFD_ABOUT_RESOURCE, call->guresid}};
    struct hfd_resource_row row;
    hfd_rc rc = hfd_resource_row_get(tx, call->guresid, c.mem, &row, err);

    *out = (struct hfd_status_view){.name = call->guresid, .id = call->guresid};
    if (rc == HFD_NOT_FOUND)
        return answer_resource(&a, call, NULL);
    if (rc == HFD_OK && hfd_lookup_other_kind(call, &row))
        return fail_unknown(&c, call);
    return rc == HFD_OK ? answer_resource(&a, call, &row) : rc;
}

/* ---- clusters ---- */

/* "PROVIDER+CLUSTER": EMCO's name of a cluster. */
static hfd_rc name_cluster(struct asked *a, hfd_slice provider, hfd_slice cluster)
{
    a->view->name =
        hfd_arena_printf(a->c->mem, "%.*s+%.*s", HFD_SLICE_FMT(provider), HFD_SLICE_FMT(cluster));
    return a->view->name.p != NULL ? HFD_OK : hfd_fail_nomem(a->c->err, "name a cluster");
}

static hfd_rc add_cluster(struct asked *a, hfd_slice id, int64_t started_us)
{
    const struct hfd_source_part part = {.started_us = started_us};
    struct hfd_fleet_list nodepools;
    hfd_rc rc = add_part(a, id, part, true);

    if (rc == HFD_OK)
        rc = hfd_fleet_row_children(a->c->tx, id, a->c->mem, &nodepools, a->c->err);
    for (size_t i = 0; rc == HFD_OK && i < nodepools.count; i++)
        rc = add_part(a, nodepools.rows[i].id, part, false);
    return rc == HFD_OK ? add_ended(a) : rc;
}

/* The history of the driver resource that has the cluster, or the cluster's own. */
static hfd_rc read_cluster_history(struct asked *a, const struct hfd_fleet_row *row,
                                   int64_t *started_us, struct hfd_history *history)
{
    struct hfd_part_row part;
    struct hfd_resource_row resource;
    hfd_rc rc = hfd_part_row_by_fleet(a->c->tx, row->id, a->c->mem, &part, a->c->err);

    *started_us = row->updated_us;
    if (rc == HFD_NOT_FOUND)
        return hfd_history_read_cluster(a->c, row->id, row, history);
    if (rc == HFD_OK)
        rc = hfd_resource_row_get(a->c->tx, part.guresid, a->c->mem, &resource, a->c->err);
    if (rc != HFD_OK)
        return rc;
    *started_us = resource.op_started_us;
    a->subject = (struct hfd_history_subject){HFD_ABOUT_RESOURCE, part.guresid};
    return hfd_history_read(a->c, part.guresid, history);
}

static hfd_rc answer_cluster(struct asked *a, const struct hfd_fleet_row *row)
{
    struct hfd_history history;
    int64_t started_us;
    hfd_rc rc = read_cluster_history(a, row, &started_us, &history);

    if (rc == HFD_OK)
        rc = hfd_place_read(a->c, row->id, &a->place);
    if (rc == HFD_OK)
        rc = name_cluster(a, a->place.provider, a->place.cluster);
    if (rc == HFD_OK)
        rc = read_state(a, HFD_SUBJECT_CLUSTER, &history);
    if (rc == HFD_OK)
        rc = choose_instance(a);
    if (rc != HFD_OK || a->instance == 0)
        return rc;
    rc = a->instance == hfd_status_state_latest(&a->view->state)
             ? add_cluster(a, row->id, started_us)
             : add_past(a);
    return rc == HFD_OK ? finish(a) : rc;
}

static hfd_rc answer_removed_cluster(struct asked *a, hfd_slice id)
{
    struct hfd_history history;
    hfd_slice provider;
    hfd_rc rc = hfd_history_read_cluster(a->c, id, NULL, &history);

    if (rc == HFD_NOT_FOUND)
        return hfd_fail(a->c->err, HFD_NOT_FOUND, "Cluster with id='%.*s' not found",
                        HFD_SLICE_FMT(id));
    if (rc == HFD_OK)
        rc = hfd_place_provider(a->c, history.removed.provider, &provider);
    if (rc == HFD_OK)
        rc = name_cluster(a, provider, history.removed.name);
    if (rc == HFD_OK)
        rc = read_state(a, HFD_SUBJECT_CLUSTER, &history);
    if (rc == HFD_OK)
        rc = choose_instance(a);
    if (rc == HFD_OK && a->instance != 0)
        rc = add_past(a);
    return rc == HFD_OK && a->instance != 0 ? finish(a) : rc;
}

hfd_rc hfd_status_of_cluster(struct hfd_txn *tx, const struct hfd_call *call,
                             const struct hfd_status_query *query, struct hfd_status_view *out,
                             struct hfd_err *err)
{
    const struct hfd_ctx c = hfd_ctx_of(tx, call, err);
    struct asked a = {
        .c = &c, .q = query, .view = out, .subject = {HFD_ABOUT_CLUSTER, call->guresid}};
    struct hfd_fleet_row row;
    hfd_rc rc = hfd_fleet_row_get(tx, call->guresid, c.mem, &row, err);

    *out = (struct hfd_status_view){.id = call->guresid};
    if (rc == HFD_NOT_FOUND || (rc == HFD_OK && row.kind != HFD_KIND_CLUSTER))
        return answer_removed_cluster(&a, call->guresid);
    return rc == HFD_OK ? answer_cluster(&a, &row) : rc;
}
