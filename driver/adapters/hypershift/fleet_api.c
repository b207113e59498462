/* See fleet_api.h. */
#include "driver/adapters/hypershift/fleet_api.h"

#include "driver/adapters/hypershift/fleet_api_http.h"
#include "driver/adapters/hypershift/fleet_api_send.h"
#include "driver/adapters/hypershift/names.h"
#include "driver/backend/remote/wire.h"
#include "driver/base/check.h"

#include <stdlib.h>

#define PAGE_SIZE 100
#define PAGES_MAX 10000
#define MEM_BYTES ((size_t)64 << 20)
#define ROW_FRESH_US HFD_US_PER_S /* a row is read again before a step if it is older */

/* ---- lists ---- */

/* A list, page by page. */
struct list {
    struct hfd_hs_fleet_api *api;
    hfd_slice path; /* "/clusters" */
    const char *search;
    hfd_rc (*on_item)(void *ctx, json_t *item, struct hfd_arena *mem, struct hfd_err *err);
    void *ctx;
};

static hfd_slice page_path(const struct list *l, int page, struct hfd_arena *mem)
{
    return hfd_arena_printf(mem,
                            "%.*s?page=%d&size=%d&pageSize=%d&orderBy=created_time%%20asc&order="
                            "created_time%%20asc%s",
                            HFD_SLICE_FMT(l->path), page, PAGE_SIZE, PAGE_SIZE, l->search);
}

/* Reads one page. @param more  whether another follows */
static hfd_rc read_page(const struct list *l, int page, bool *more, struct hfd_err *err)
{
    struct hfd_remote_request request = {.method = HFD_REMOTE_GET};
    struct hfd_wire_page items = {.count = 0};
    struct hfd_hs_answer answer;
    struct hfd_arena mem;
    hfd_rc rc;

    hfd_arena_init(&mem, MEM_BYTES);
    request.path = page_path(l, page, &mem);
    rc = hfd_hs_api_exchange(l->api, &request, &mem, &answer, err);
    if (rc == HFD_OK)
        rc = hfd_wire_page_read(answer.doc, &items, err);
    for (size_t i = 0; rc == HFD_OK && i < items.count; i++)
        rc = l->on_item(l->ctx, json_array_get(items.items, i), &mem, err);
    *more = rc == HFD_OK && items.count == PAGE_SIZE && page < PAGES_MAX;
    json_decref(answer.doc);
    hfd_arena_fini(&mem);
    return rc;
}

static hfd_rc read_list(const struct list *l, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;
    bool more = true;

    for (int page = 1; rc == HFD_OK && more; page++)
        rc = read_page(l, page, &more, err);
    return rc;
}

/* ---- which resources there are ---- */

struct scanning {
    struct hfd_hs_fleet_api *api;
    const struct hfd_hs_scan *want;
    enum hfd_kind kind;
};

static void row_of(const struct hfd_wire_resource *doc, enum hfd_kind kind,
                   struct hfd_fleet_row *row)
{
    *row = (struct hfd_fleet_row){
        .id = doc->id,
        .kind = kind,
        .owner_id = doc->owner_id,
        .name = doc->name,
        .generation = doc->generation,
        .spec = doc->spec,
        .labels = doc->labels,
        .ready = doc->ready,
        .created_us = doc->created_us,
        .deleted_us = doc->deleted_us,
    };
}

/* A document that cannot be read is left out: it must not stop the others. */
static hfd_rc scan_item(void *ctx, json_t *item, struct hfd_arena *mem, struct hfd_err *err)
{
    struct scanning *s = ctx;
    struct hfd_wire_resource doc;
    struct hfd_fleet_row row;
    const hfd_rc rc = hfd_wire_resource_read(item, s->kind, mem, &doc, err);

    if (rc != HFD_OK)
        return rc == HFD_NOMEM ? rc : HFD_OK;
    s->api->knows_names = true;
    s->api->later_names = doc.later_names;
    row_of(&doc, s->kind, &row);
    if (s->kind == HFD_KIND_NODEPOOL && row.owner_id.len == 0)
        return HFD_OK; /* it has no path */
    return s->want->on_row(s->want->ctx, &row) ? HFD_OK : HFD_BUSY;
}

/* Until a cluster was seen, the name of the condition to search for is unknown. */
static const char *search_of(const struct hfd_hs_fleet_api *api, bool all)
{
    if (all || !api->knows_names)
        return "";
    return api->later_names ? "&search=status.conditions.Reconciled%3D%27False%27"
                            : "&search=status.conditions.Ready%3D%27False%27";
}

static hfd_rc scan(void *arg, const struct hfd_hs_scan *want, struct hfd_err *err)
{
    struct hfd_hs_fleet_api *api = arg;
    struct scanning s = {api, want, HFD_KIND_CLUSTER};
    struct list l = {.api = api,
                     .path = HFD_SLICE("/clusters"),
                     .search = search_of(api, want->all),
                     .on_item = scan_item,
                     .ctx = &s};
    hfd_rc rc = read_list(&l, err);

    s.kind = HFD_KIND_NODEPOOL;
    l.path = HFD_SLICE("/nodepools");
    if (rc == HFD_OK)
        rc = read_list(&l, err);
    return rc == HFD_BUSY ? HFD_OK : rc; /* no more was wanted */
}

/* ---- one resource ---- */

/* Reads a cluster or nodepool. @param doc  its texts live in mem */
static hfd_rc read_resource(struct hfd_hs_fleet_api *api, const struct hfd_fleet_row *which,
                            struct hfd_arena *mem, struct hfd_wire_resource *doc,
                            struct hfd_err *err)
{
    const struct hfd_remote_request request = {.method = HFD_REMOTE_GET,
                                               .path = hfd_hs_api_path(which, "", mem)};
    struct hfd_hs_answer answer;
    hfd_rc rc = hfd_hs_api_exchange(api, &request, mem, &answer, err);

    if (rc == HFD_OK)
        rc = hfd_wire_resource_read(answer.doc, which->kind, mem, doc, err);
    json_decref(answer.doc);
    return rc;
}

/* The row that a record names. */
static struct hfd_fleet_row named(const struct hfd_hs_record *record, hfd_slice id)
{
    const bool pool = record->owner_id[0] != '\0';

    return (struct hfd_fleet_row){.id = id,
                                  .kind = pool ? HFD_KIND_NODEPOOL : HFD_KIND_CLUSTER,
                                  .owner_id = hfd_slice_of(record->owner_id)};
}

static hfd_rc load_cluster(struct hfd_hs_fleet_api *api, struct hfd_hs_work *w, hfd_slice *guresid,
                           struct hfd_err *err)
{
    const struct hfd_fleet_row which = {.id = w->row.owner_id, .kind = HFD_KIND_CLUSTER};
    struct hfd_wire_resource doc;
    hfd_rc rc = HFD_OK;

    w->cluster = w->row;
    w->has_cluster = true;
    if (w->row.kind == HFD_KIND_NODEPOOL) {
        rc = read_resource(api, &which, w->mem, &doc, err);
        w->has_cluster = rc == HFD_OK;
        if (rc == HFD_NOT_FOUND)
            return HFD_OK;
        if (rc != HFD_OK)
            return rc;
        row_of(&doc, HFD_KIND_CLUSTER, &w->cluster);
        if (guresid->len == 0)
            *guresid = doc.guresid;
    }
    return hfd_json_parse(w->cluster.spec, &w->cluster_spec, err);
}

static hfd_rc take_child(void *ctx, json_t *item, struct hfd_arena *mem, struct hfd_err *err)
{
    struct hfd_hs_work *w = ctx;
    struct hfd_wire_resource doc;
    const hfd_rc rc = hfd_wire_resource_read(item, HFD_KIND_NODEPOOL, mem, &doc, err);

    w->has_children = true;
    if (rc == HFD_OK && hfd_hs_pool_wants_nodes(doc.deleting, json_object_get(item, "spec")))
        w->wants_nodes = true;
    return rc == HFD_NOMEM ? rc : HFD_OK;
}

static hfd_rc load_children(struct hfd_hs_fleet_api *api, struct hfd_hs_work *w,
                            struct hfd_err *err)
{
    const struct list l = {.api = api,
                           .path = hfd_hs_api_path(&w->row, "/nodepools", w->mem),
                           .search = "",
                           .on_item = take_child,
                           .ctx = w};

    if (w->row.kind != HFD_KIND_CLUSTER)
        return HFD_OK;
    return l.path.p != NULL ? read_list(&l, err) : hfd_fail_nomem(err, "read nodepools");
}

/* Keeps a report if it is of one of the two adapters. */
static hfd_rc take_report(void *ctx, json_t *item, struct hfd_arena *mem, struct hfd_err *err)
{
    struct hfd_hs_work *w = ctx;
    struct hfd_report_row row;
    hfd_slice secrets;
    hfd_rc rc;

    (void)mem; /* of the page: rows live as long as the work */
    rc = hfd_wire_report_read(item, w->mem, &row, &secrets, err);
    if (rc != HFD_OK)
        return rc == HFD_NOMEM ? rc : HFD_OK;
    if (hfd_slice_is(row.adapter, HFD_HS_ADAPTER))
        w->prev = row;
    else if (hfd_slice_is(row.adapter, HFD_HS_VALIDATION))
        w->prev_validation = row;
    return HFD_OK;
}

static hfd_rc load_reports(struct hfd_hs_fleet_api *api, struct hfd_hs_work *w, struct hfd_err *err)
{
    const struct list l = {.api = api,
                           .path = hfd_hs_api_path(&w->row, "/statuses", w->mem),
                           .search = "",
                           .on_item = take_report,
                           .ctx = w};
    hfd_rc rc;

    w->prev.adapter = w->prev_validation.adapter = HFD_SLICE("");
    rc = l.path.p != NULL ? read_list(&l, err) : hfd_fail_nomem(err, "read reports");
    if (rc == HFD_OK)
        rc = hfd_json_parse(w->prev.adapter.len > 0 && w->prev.data.len > 0 ? w->prev.data
                                                                            : HFD_SLICE("{}"),
                            &w->prev_data, err);
    w->prev_secrets = hfd_hs_api_sent(api, w->row.id);
    return rc == HFD_OK ? hfd_hs_read_validated(w, err) : rc;
}

static hfd_rc load(void *arg, struct hfd_hs_work *w, hfd_slice id, struct hfd_err *err)
{
    struct hfd_hs_fleet_api *api = arg;
    const struct hfd_fleet_row which = named(w->record, id);
    struct hfd_wire_resource doc;
    hfd_slice guresid;
    hfd_rc rc = read_resource(api, &which, w->mem, &doc, err);

    if (rc == HFD_NOT_FOUND)
        hfd_hs_api_forget(api, id);
    if (rc != HFD_OK)
        return rc;
    api->read_us = hfd_clock_mono_us(api->config.http.clock);
    row_of(&doc, which.kind, &w->row);
    w->row.owner_id = which.owner_id;
    guresid = doc.guresid;
    rc = load_cluster(api, w, &guresid, err);
    if (rc == HFD_OK && w->row.kind == HFD_KIND_NODEPOOL)
        rc = hfd_json_parse(w->row.spec, &w->pool_spec, err);
    if (rc == HFD_OK)
        rc = load_children(api, w, err);
    if (rc == HFD_OK)
        rc = load_reports(api, w, err);
    w->source.guresid = guresid.p != NULL ? guresid : HFD_SLICE("");
    return rc;
}

/* Rows are read again before a step, but not more than once a second. */
static bool is_current(void *arg, struct hfd_hs_work *w)
{
    struct hfd_hs_fleet_api *api = arg;
    const int64_t now_us = hfd_clock_mono_us(api->config.http.clock);
    struct hfd_wire_resource doc;

    if (now_us - api->read_us < ROW_FRESH_US)
        return true;
    if (read_resource(api, &w->row, w->mem, &doc, NULL) != HFD_OK)
        return false;
    api->read_us = hfd_clock_mono_us(api->config.http.clock);
    return doc.generation == w->row.generation && doc.deleting == (w->row.deleted_us != 0);
}

/* ---- whose API it is ---- */

hfd_rc hfd_hs_fleet_api_is_ours(struct hfd_hs_fleet_api *api, bool *ours, struct hfd_err *err)
{
    const struct hfd_remote_request request = {.method = HFD_REMOTE_GET,
                                               .path = HFD_SLICE("/openapi")};
    struct hfd_hs_answer answer;
    struct hfd_arena mem;
    const char *title;
    hfd_rc rc;

    hfd_arena_init(&mem, MEM_BYTES);
    *ours = false;
    rc = hfd_hs_api_exchange(api, &request, &mem, &answer, err);
    title = json_string_value(json_object_get(json_object_get(answer.doc, "info"), "title"));
    if (rc == HFD_OK)
        *ours = title != NULL && strcmp(title, "hyperfleet-driver") == 0;
    else if (rc == HFD_NOT_FOUND || rc == HFD_INVALID)
        rc = HFD_OK;
    json_decref(answer.doc);
    hfd_arena_fini(&mem);
    return rc;
}

/* ---- its life ---- */

hfd_rc hfd_hs_fleet_api_open(const struct hfd_hs_fleet_api_config *config,
                             struct hfd_hs_fleet_api **out, struct hfd_err *err)
{
    struct hfd_hs_fleet_api *api = calloc(1, sizeof(*api));
    hfd_rc rc;

    *out = NULL;
    if (api == NULL)
        return hfd_fail_nomem(err, "open a HyperFleet API");
    api->magic = HFD_HS_FLEET_API_MAGIC;
    api->config = *config;
    rc = hfd_remote_http_open(&config->http, &api->http, err);
    if (rc != HFD_OK) {
        free(api);
        return rc;
    }
    *out = api;
    return HFD_OK;
}

void hfd_hs_fleet_api_close(struct hfd_hs_fleet_api **out)
{
    struct hfd_hs_fleet_api *api = *out;

    *out = NULL;
    if (api == NULL)
        return;
    HFD_CHECK_OBJ(api, HFD_HS_FLEET_API_MAGIC);
    while (api->sent != NULL)
        hfd_hs_api_forget(api, hfd_slice_of(api->sent->id));
    hfd_remote_http_close(&api->http);
    api->magic = 0;
    free(api);
}

void hfd_hs_fleet_api_reload(struct hfd_hs_fleet_api *api)
{
    hfd_remote_http_reload(api->http);
}

static hfd_rc begin(void *arg, struct hfd_err *err)
{
    (void)arg; /* it was opened before */
    (void)err;
    return HFD_OK;
}

static void end(void *arg)
{
    (void)arg;
}

static void stop(void *arg)
{
    struct hfd_hs_fleet_api *api = arg;

    atomic_store(&api->stopped, true);
    hfd_remote_http_wake(api->http);
}

const struct hfd_hs_fleet_ops hfd_hs_fleet_api_ops = {
    .open = begin,
    .close = end,
    .scan = scan,
    .load = load,
    .is_current = is_current,
    .send = hfd_hs_api_send,
    .stop = stop,
};
