/* See status_items.h. */
#include "driver/core/status_items.h"

#define REDACTED "[redacted]"
#define DETAIL_MAX_BYTES ((size_t)16 * 1024 * 1024) /* of one object */
#define SCRATCH_MAX_BYTES ((size_t)128 * 1024 * 1024)

/* One query on its way through the sources. */
struct listing {
    const struct hfd_ctx *c;
    const struct hfd_status_query *q;
    struct hfd_status_view *view;
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

static void add_progress(const struct hfd_source_entry *entry, struct hfd_status_item *item)
{
    const json_t *own = json_object_get(entry->json, "progress");

    if (!json_is_integer(own))
        own = json_object_get(entry->data, "progress");
    item->has_progress = json_is_integer(own);
    item->progress = json_integer_value(own);
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
    add_progress(entry, item);
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

hfd_rc hfd_status_items(const struct hfd_ctx *c, const struct hfd_status_query *q,
                        const struct hfd_sources *sources, struct hfd_status_view *view)
{
    struct listing l = {.c = c, .q = q, .view = view};
    hfd_rc rc;

    view->counts = (struct hfd_status_counts){{0}, {0}};
    if (q->output == HFD_STATUS_OUTPUT_SUMMARY && hfd_status_query_is_whole(q)) {
        count_stored(sources, &view->counts);
        return HFD_OK;
    }
    rc = make_room(&l, sources);
    for (size_t i = 0; rc == HFD_OK && i < sources->count; i++) {
        const struct hfd_source *s = &sources->items[i];

        if (!hfd_status_query_has_app(q, s->app))
            continue;
        rc = hfd_object_counts_none(&s->counts) ? take_pseudo(&l, s)
                                                : hfd_source_each(c, s, take_object, &l);
    }
    return rc;
}
