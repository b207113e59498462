/* See remote_world.h. */
#include "tests/lib/remote_world.h"

#include "driver/backend/backend.h"
#include "driver/backend/remote/handle.h"
#include "driver/backend/remote/pass.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/backend/remote/work.h"
#include "driver/base/base.h"
#include "driver/core/transition.h"
#include "store/rows_remote.h"

#define ROUNDS_MAX 2000
#define WORK_MAX 16
#define SEARCH_MAX 512

void remote_world_open(struct remote_world *rw, enum remote_generation generation)
{
    if (getenv("TMPDIR") == NULL && access("/dev/shm", W_OK) == 0)
        (void)setenv("TMPDIR", "/dev/shm",
                     0); /* thousands of commits: syncing is not what is tested here */
    *rw = (struct remote_world){.generation = generation};
    world_open(&rw->w);
    rw->w.driver.backend = HFD_SLICE("https://fleet.example");
    rw->w.driver.backend_ops = &hfd_backend_remote;
    rw->resources = json_array();
    rw->policy = (struct hfd_remote_policy){
        .fleet = &rw->w.driver.fleet,
        .owner = HFD_SLICE(REMOTE_OWNER),
        .watch_us = 5 * HFD_US_PER_S,
        .idle_us = 300 * HFD_US_PER_S,
        .retry_min_us = HFD_US_PER_S,
        .retry_max_us = 60 * HFD_US_PER_S,
        .rng = &rw->w.rng.rng,
        .observer = &rw->w.driver,
        .on_changes = hfd_resource_on_changes,
        .on_trouble = hfd_resource_on_trouble,
        .on_refused = hfd_resource_on_refused,
    };
}

void remote_world_close(struct remote_world *rw)
{
    json_decref(rw->resources);
    world_close(&rw->w);
}

/* ---- the played HyperFleet: documents ---- */

static const char *text(const json_t *obj, const char *key)
{
    const char *v = json_string_value(json_object_get(obj, key));

    return v != NULL ? v : "";
}

static bool is_deleting(const json_t *r)
{
    return json_object_get(r, "deleted_time") != NULL;
}

static const char *owner_of(const json_t *r)
{
    return text(json_object_get(r, "owner_references"), "id");
}

static json_t *now_text(const struct remote_world *rw)
{
    char at[HFD_TIME_TEXT_MAX];

    (void)hfd_time_format(rw->w.clock.wall_us, at);
    return json_string(at);
}

static json_t *condition(const struct remote_world *rw, const char *type, const char *status,
                         json_int_t generation)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:o, s:o, s:o}", "type", type, "status", status,
                     "reason", "Played", "message", "by the test", "observed_generation",
                     generation, "created_time", now_text(rw), "last_updated_time", now_text(rw),
                     "last_transition_time", now_text(rw));
}

static const struct hfd_adapter_names *required(const struct remote_world *rw, const json_t *r)
{
    return &rw->w.driver.fleet
                .required[strcmp(text(r, "kind"), "Cluster") == 0 ? HFD_KIND_CLUSTER
                                                                  : HFD_KIND_NODEPOOL];
}

/* The adapter's Available at the resource's generation, or "". */
static const char *available(const json_t *r, hfd_slice adapter)
{
    const json_t *reports = json_object_get(r, "reports"), *c;
    json_t *report;
    size_t i, k;

    json_array_foreach (reports, i, report) {
        if (!hfd_slice_is(adapter, text(report, "adapter")) ||
            json_integer_value(json_object_get(report, "observed_generation")) !=
                json_integer_value(json_object_get(r, "generation")))
            continue;
        json_array_foreach (json_object_get(report, "conditions"), k, c)
            if (strcmp(text(c, "type"), "Available") == 0)
                return text(c, "status");
    }
    return "";
}

/* Aggregation, as simple as the tests need it. */
static void set_conditions(const struct remote_world *rw, json_t *r)
{
    const bool later = rw->generation != REMOTE_G2;
    const json_int_t generation = json_integer_value(json_object_get(r, "generation"));
    const struct hfd_adapter_names *names = required(rw, r);
    json_t *list = json_array();
    bool all = !is_deleting(r);

    for (size_t i = 0; i < names->count; i++)
        all = all && strcmp(available(r, names->items[i]), "True") == 0;
    (void)json_array_append_new(
        list, condition(rw, later ? "Reconciled" : "Ready", all ? "True" : "False", generation));
    (void)json_array_append_new(list, condition(rw, later ? "LastKnownReconciled" : "Available",
                                                all ? "True" : "False", generation));
    (void)json_object_set_new(r, "status", json_pack("{s:o}", "conditions", list));
}

static json_t *add(struct remote_world *rw, const char *owner, const char *name, json_t *spec,
                   json_t *labels)
{
    const bool cluster = owner == NULL;
    char id[64];
    json_t *r;

    (void)snprintf(id, sizeof(id),
                   rw->generation == REMOTE_G2 ? "2%026d" : "019a0000-0000-7000-8000-%012d",
                   ++rw->made);
    r = json_pack("{s:s, s:s, s:s, s:i, s:O, s:O, s:o, s:o, s:s, s:s, s:[], s:{s:[]}}", "kind",
                  cluster ? "Cluster" : "NodePool", "id", id, "name", name, "generation", 1, "spec",
                  spec, "labels", labels, "created_time", now_text(rw), "updated_time",
                  now_text(rw), "created_by",
                  rw->generation == REMOTE_G31 ? "some service" : "system@hyperfleet.local",
                  "updated_by", "somebody", "reports", "x-unknown", "a", json_true());
    assert_non_null(r);
    (void)json_object_set(r, "x-first-spec", spec);
    if (!cluster)
        (void)json_object_set_new(r, "owner_references",
                                  json_pack("{s:s, s:s}", "id", owner, "kind", "Cluster"));
    set_conditions(rw, r);
    (void)json_array_append_new(rw->resources, r);
    return r;
}

json_t *remote_add(struct remote_world *rw, const char *owner, const char *name, const char *labels)
{
    json_t *l = json_loads(labels, 0, NULL), *spec = json_object(),
           *r = add(rw, owner, name, spec, l);

    json_decref(l);
    json_decref(spec);
    return r;
}

json_t *remote_find(struct remote_world *rw, const char *name)
{
    json_t *r;
    size_t i;

    json_array_foreach (rw->resources, i, r)
        if (strcmp(text(r, "name"), name) == 0 && !is_deleting(r))
            return r;
    return NULL;
}

static json_t *by_id(const struct remote_world *rw, const char *kind, const char *id)
{
    json_t *r;
    size_t i;

    json_array_foreach (rw->resources, i, r)
        if (strcmp(text(r, "kind"), kind) == 0 && strcmp(text(r, "id"), id) == 0)
            return r;
    return NULL;
}

int remote_count(const struct remote_world *rw, const char *kind)
{
    json_t *r;
    size_t i;
    int n = 0;

    json_array_foreach (rw->resources, i, r)
        n += strcmp(text(r, "kind"), kind) == 0;
    return n;
}

void remote_remove(struct remote_world *rw, json_t *resource)
{
    char id[64];

    (void)snprintf(id, sizeof(id), "%s", text(resource, "id"));
    for (size_t i = json_array_size(rw->resources); i-- > 0;) {
        json_t *r = json_array_get(rw->resources, i);

        if (strcmp(text(r, "id"), id) == 0 || strcmp(owner_of(r), id) == 0)
            (void)json_array_remove(rw->resources, i);
    }
}

void remote_report(struct remote_world *rw, json_t *resource, const struct remote_said *said)
{
    json_t *reports = json_object_get(resource, "reports"), *r;
    json_t *doc = json_loads(said->data != NULL ? said->data : "{}", 0, NULL);
    size_t i;

    assert_non_null(doc);
    json_array_foreach (reports, i, r)
        if (strcmp(text(r, "adapter"), said->adapter) == 0) {
            (void)json_array_remove(reports, i);
            break;
        }
    r = json_pack(
        "{s:s, s:O, s:[{s:s, s:s, s:s, s:s, s:o}, {s:s, s:s}, {s:s, s:s}], s:o, s:o, s:o}",
        "adapter", said->adapter, "observed_generation", json_object_get(resource, "generation"),
        "conditions", "type", "Available", "status", said->status, "reason", said->reason,
        "message", "told by the test", "last_transition_time", now_text(rw), "type", "Applied",
        "status", "True", "type", "Health", "status", "True", "data", doc, "created_time",
        now_text(rw), "last_report_time", now_text(rw));
    assert_non_null(r);
    (void)json_array_append_new(reports, r);
    set_conditions(rw, resource);
}

void remote_restore(struct remote_world *rw, json_t *resource)
{
    (void)json_object_set(resource, "spec", json_object_get(resource, "x-first-spec"));
    (void)json_object_set_new(resource, "generation", json_integer(1));
    (void)json_object_del(resource, "deleted_time");
    (void)json_array_clear(json_object_get(resource, "reports"));
    set_conditions(rw, resource);
}

static bool has_children(const struct remote_world *rw, const char *id)
{
    json_t *r;
    size_t i;

    json_array_foreach (rw->resources, i, r)
        if (strcmp(owner_of(r), id) == 0)
            return true;
    return false;
}

void remote_succeed_all(struct remote_world *rw)
{
    for (int pass = 0; pass < 2; pass++) { /* nodepools go before their cluster */
        for (size_t i = json_array_size(rw->resources); i-- > 0;) {
            json_t *r = json_array_get(rw->resources, i);
            const struct hfd_adapter_names *names = required(rw, r);

            if (is_deleting(r) && !has_children(rw, text(r, "id"))) {
                (void)json_array_remove(rw->resources, i);
                continue;
            }
            for (size_t k = 0; !is_deleting(r) && k < names->count; k++) {
                char adapter[32];

                (void)snprintf(adapter, sizeof(adapter), "%.*s", HFD_SLICE_FMT(names->items[k]));
                if (strcmp(available(r, names->items[k]), "True") != 0)
                    remote_report(
                        rw, r,
                        &(struct remote_said){
                            adapter, "True", "Done",
                            "{\"endpoint\": \"https://c\", \"secrets\": {\"token\": \"t0p\"}}"});
            }
        }
    }
}

/* ---- the played HyperFleet: requests ---- */

struct reply {
    int status;
    json_t *doc;
};

static struct reply problem(int status, const char *code, const char *detail)
{
    return (struct reply){
        status, json_pack("{s:s, s:i, s:s}", "code", code, "status", status, "detail", detail)};
}

static struct reply missing(void)
{
    return problem(404, "HYPERFLEET-NTF-001", "it is not found");
}

/* The document without what is only ours. */
static struct reply shown(int status, const json_t *r)
{
    json_t *copy = json_deep_copy(r);

    (void)json_object_del(copy, "reports");
    return (struct reply){status, copy};
}

static int digit(char c)
{
    assert_true((c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'));
    return c <= '9' ? c - '0' : c - 'A' + 10;
}

/* A parameter of the query, decoded; "" = absent. */
static void parameter(const char *query, const char *name, char *out, size_t max)
{
    const size_t len = strlen(name);
    size_t n = 0;

    out[0] = '\0';
    for (const char *p = query; p != NULL && *p != '\0';
         p = strchr(p, '&') != NULL ? strchr(p, '&') + 1 : NULL) {
        if (strncmp(p, name, len) != 0 || p[len] != '=')
            continue;
        for (p += len + 1; *p != '\0' && *p != '&' && n + 1 < max; p++) {
            if (*p == '%') {
                out[n++] = (char)(digit(p[1]) * 16 + digit(p[2]));
                p += 2;
            } else {
                out[n++] = *p;
            }
        }
        out[n] = '\0';
        return;
    }
}

/* One "field='value'" of a search. */
static bool satisfies(const json_t *r, const char *field, const char *value)
{
    const char *status = "status.conditions.";
    const json_t *c;
    size_t i;

    if (strncmp(field, "labels.", 7) == 0)
        return strcmp(text(json_object_get(r, "labels"), field + 7), value) == 0;
    if (strncmp(field, status, strlen(status)) == 0) {
        json_array_foreach (json_object_get(json_object_get(r, "status"), "conditions"), i, c)
            if (strcmp(text(c, "type"), field + strlen(status)) == 0)
                return strcmp(text(c, "status"), value) == 0;
        return false;
    }
    return strcmp(text(r, field), value) == 0;
}

static bool matches(const json_t *r, const char *search)
{
    char term[SEARCH_MAX], *value, *end;

    while (*search != '\0') {
        (void)snprintf(term, sizeof(term), "%s", search);
        value = strstr(term, "='");
        end = value != NULL ? strchr(value + 2, '\'') : NULL;
        if (end == NULL)
            fail_msg("a search that the played HyperFleet cannot read: %s", search);
        *value = *end = '\0';
        if (!satisfies(r, term, value + 2))
            return false;
        search += end + 1 - term;
        search += strncmp(search, " and ", 5) == 0 ? 5 : 0;
    }
    return true;
}

/* A page of an array, newest first. */
static struct reply page_of(const struct remote_world *rw, json_t *all, const char *query)
{
    char page_text[16], size_text[16];
    json_t *items = json_array(), *doc;
    int64_t page, size;

    parameter(query, "page", page_text, sizeof(page_text));
    parameter(query, rw->generation == REMOTE_G31 ? "size" : "pageSize", size_text,
              sizeof(size_text));
    assert_int_equal(hfd_parse_i64(hfd_slice_of(page_text), 1, 1000000, &page, NULL), HFD_OK);
    assert_int_equal(hfd_parse_i64(hfd_slice_of(size_text), 1, 1000000, &size, NULL), HFD_OK);
    if (rw->generation == REMOTE_G31 && (page < 1 || size < 1 || size > 100)) {
        json_decref(items);
        json_decref(all);
        return problem(400, "HYPERFLEET-VAL-000", "paging");
    }
    for (int64_t i = (page - 1) * size; i < page * size && i < (int64_t)json_array_size(all); i++)
        (void)json_array_append(items, json_array_get(all, json_array_size(all) - 1 - (size_t)i));
    doc = json_pack("{s:I, s:I, s:I, s:o}", "page", (json_int_t)page, "size",
                    (json_int_t)json_array_size(items), "total", (json_int_t)json_array_size(all),
                    "items", items);
    if (rw->generation != REMOTE_G31)
        (void)json_object_set_new(doc, "kind", json_string("List"));
    json_decref(all);
    return (struct reply){200, doc};
}

static struct reply list(const struct remote_world *rw, const char *kind, const char *owner,
                         const char *query)
{
    char search[SEARCH_MAX];
    json_t *all = json_array(), *r;
    size_t i;

    parameter(query, "search", search, sizeof(search));
    json_array_foreach (rw->resources, i, r) {
        json_t *copy;

        if (strcmp(text(r, "kind"), kind) != 0 ||
            (owner != NULL && strcmp(owner_of(r), owner) != 0) || !matches(r, search))
            continue;
        copy = json_deep_copy(r);
        (void)json_object_del(copy, "reports");
        (void)json_array_append_new(all, copy);
    }
    return page_of(rw, all, query);
}

static struct reply create(struct remote_world *rw, const char *owner, const json_t *body)
{
    const char *kind = owner == NULL ? "Cluster" : "NodePool", *name = text(body, "name");
    json_t *cluster = owner != NULL ? by_id(rw, "Cluster", owner) : NULL, *r;
    size_t i;

    if (owner != NULL && cluster == NULL)
        return missing();
    if (cluster != NULL && is_deleting(cluster))
        return problem(409, "HYPERFLEET-CNF-003", "the cluster is marked for deletion");
    if (strcmp(text(body, "kind"), kind) != 0)
        return problem(400, "HYPERFLEET-VAL-000", "kind must be another");
    if (strcmp(text(json_object_get(body, "spec"), "region"), "nowhere") == 0)
        return problem(400, "HYPERFLEET-VAL-000", "Invalid ClusterSpec: no such region");
    json_array_foreach (rw->resources, i, r)
        if (strcmp(text(r, "kind"), kind) == 0 && strcmp(text(r, "name"), name) == 0 &&
            !is_deleting(r) && strcmp(owner_of(r), owner != NULL ? owner : "") == 0)
            return problem(409, "HYPERFLEET-CNF-001", "it exists already");
    rw->posts++;
    return shown(
        201, add(rw, owner, name, json_object_get(body, "spec"), json_object_get(body, "labels")));
}

static struct reply patch(struct remote_world *rw, json_t *r, json_t *body)
{
    const char *key;
    json_t *v;

    if (rw->generation == REMOTE_G2 && strcmp(text(r, "kind"), "NodePool") == 0)
        return (struct reply){405, NULL};
    if (is_deleting(r))
        return problem(409, "HYPERFLEET-CNF-003", "it is marked for deletion");
    json_object_foreach (body, key, v) {
        if (strcmp(key, "spec") != 0 && strcmp(key, "labels") != 0)
            return problem(400, "HYPERFLEET-VAL-006", "unknown field");
        if (strcmp(key, "labels") != 0 || rw->generation != REMOTE_G2)
            (void)json_object_set(r, key, v);
    }
    rw->patches++;
    (void)json_object_set_new(
        r, "generation", json_integer(json_integer_value(json_object_get(r, "generation")) + 1));
    set_conditions(rw, r);
    return shown(200, r);
}

static void mark_deleted(struct remote_world *rw, json_t *r)
{
    if (is_deleting(r))
        return;
    (void)json_object_set_new(r, "deleted_time", now_text(rw));
    (void)json_object_set_new(
        r, "generation", json_integer(json_integer_value(json_object_get(r, "generation")) + 1));
    set_conditions(rw, r);
}

static struct reply erase(struct remote_world *rw, json_t *r)
{
    json_t *child;
    size_t i;

    if (rw->generation == REMOTE_G2)
        return strcmp(text(r, "kind"), "NodePool") == 0
                   ? (struct reply){405, NULL}
                   : problem(501, "HYPERFLEET-INT-003", "delete");
    mark_deleted(rw, r);
    json_array_foreach (rw->resources, i, child)
        if (strcmp(owner_of(child), text(r, "id")) == 0)
            mark_deleted(rw, child);
    return shown(202, r);
}

static struct reply one(struct remote_world *rw, enum hfd_remote_method method, json_t *r,
                        json_t *body)
{
    if (r == NULL)
        return missing();
    switch (method) {
    case HFD_REMOTE_GET:
        return shown(200, r);
    case HFD_REMOTE_PATCH:
        return patch(rw, r, body);
    case HFD_REMOTE_DELETE:
        return erase(rw, r);
    case HFD_REMOTE_POST:
        break;
    }
    return (struct reply){405, NULL};
}

static struct reply all(struct remote_world *rw, enum hfd_remote_method method, const char *owner,
                        const char *query, json_t *body)
{
    if (owner != NULL && by_id(rw, "Cluster", owner) == NULL)
        return missing();
    if (method == HFD_REMOTE_POST)
        return create(rw, owner, body);
    return list(rw, owner != NULL ? "NodePool" : "Cluster", owner, query);
}

static json_t *nodepool(const struct remote_world *rw, const char *owner, const char *id)
{
    json_t *r = by_id(rw, "NodePool", id);

    return r != NULL && strcmp(owner_of(r), owner) == 0 ? r : NULL;
}

/*
 * /clusters, /clusters/C, /clusters/C/statuses, /clusters/C/nodepools, /clusters/C/nodepools/N,
 * .../statuses, /nodepools
 */
static struct reply route(struct remote_world *rw, enum hfd_remote_method method, char *path,
                          const char *query, json_t *body)
{
    char *save, *part[6] = {NULL};
    size_t n = 0;
    json_t *r;

    for (char *p = strtok_r(path, "/", &save); p != NULL && n < 6; p = strtok_r(NULL, "/", &save))
        part[n++] = p;
    if (n == 1 && strcmp(part[0], "nodepools") == 0)
        return list(rw, "NodePool", NULL, query);
    if (n == 0 || strcmp(part[0], "clusters") != 0)
        return problem(404, "HYPERFLEET-NTF-000", "no such endpoint");
    if (n == 1 || (n == 3 && strcmp(part[2], "nodepools") == 0))
        return all(rw, method, n == 3 ? part[1] : NULL, query, body);
    r = by_id(rw, "Cluster", part[1]);
    if (n >= 4 && r != NULL)
        r = nodepool(rw, part[1], part[3]);
    if (n % 2 == 0)
        return one(rw, method, r, body);
    return r != NULL ? page_of(rw, json_deep_copy(json_object_get(r, "reports")), query)
                     : missing();
}

static void serve(struct remote_world *rw, const struct hfd_remote_request *request,
                  struct hfd_remote_answer *answer)
{
    char *path = strndup(request->path.p, request->path.len), *query = strchr(path, '?');
    json_t *body =
        request->body.len > 0 ? json_loadb(request->body.p, request->body.len, 0, NULL) : NULL;
    struct reply reply;
    char *out;

    assert_true((body != NULL) == (request->body.len > 0));
    if (query != NULL)
        *query++ = '\0';
    if (rw->refuse_status != 0 && (rw->refuses == NULL || rw->refuses(request)))
        reply =
            (struct reply){rw->refuse_status,
                           rw->refuse_body != NULL ? json_loads(rw->refuse_body, 0, NULL) : NULL};
    else
        reply = route(rw, request->method, path, query != NULL ? query : "", body);
    out = reply.doc != NULL ? json_dumps(reply.doc, JSON_COMPACT) : strdup("");
    *answer = (struct hfd_remote_answer){.arrived = true,
                                         .status = reply.status,
                                         .is_json = reply.doc != NULL,
                                         .body = hfd_arena_dup(&rw->w.mem, hfd_slice_of(out))};
    if (rw->loud)
        print_message("%d %.*s %.*s -> %d %s\n", (int)request->method, HFD_SLICE_FMT(request->path),
                      HFD_SLICE_FMT(request->body), reply.status, out);
    free(out);
    free(path);
    json_decref(body);
    json_decref(reply.doc);
}

/* A creation that took long comes to its end, at the latest before the next one at that place. */
static void carry_out_slow(struct remote_world *rw, const struct hfd_remote_request *next)
{
    struct hfd_remote_answer unheard;
    const bool overtaken =
        next != NULL && next->method == HFD_REMOTE_POST && hfd_slice_eq(next->path, rw->slow.path);

    if (rw->slow_us == 0 || (rw->w.clock.wall_us < rw->slow_us && !overtaken))
        return;
    rw->slow_us = 0;
    serve(rw, &rw->slow, &unheard);
}

static void keep_slow(struct remote_world *rw, const struct hfd_remote_request *request)
{
    if (request->method != HFD_REMOTE_POST || rw->slow_us != 0)
        return;
    rw->slow = *request;
    rw->slow.path = hfd_arena_dup(&rw->w.mem, request->path);
    rw->slow.body = hfd_arena_dup(&rw->w.mem, request->body);
    rw->slow_us = rw->w.clock.wall_us + 20 * HFD_US_PER_S;
}

/* Does the request never come to the remote? Then *answer is what stands between them said. */
static bool is_held_up(struct remote_world *rw, enum remote_fault fault,
                       const struct hfd_remote_request *request, struct hfd_remote_answer *answer)
{
    switch (fault) {
    case REMOTE_FAULT_LOST:
    case REMOTE_FAULT_CRASH:
        return true;
    case REMOTE_FAULT_CRASH_SLOW:
        keep_slow(rw, request);
        return true;
    case REMOTE_FAULT_GATEWAY:
        *answer = (struct hfd_remote_answer){
            .arrived = true,
            .status = 404,
            .is_json = true,
            .body = HFD_SLICE("{\"message\":\"no Route matched with those values\"}")};
        return true;
    case REMOTE_FAULT_500:
    case REMOTE_FAULT_429:
        *answer = (struct hfd_remote_answer){.arrived = true,
                                             .status = fault == REMOTE_FAULT_500 ? 500 : 429,
                                             .is_json = true,
                                             .body = HFD_SLICE("{\"detail\":\"busy\"}"),
                                             .retry_after_us =
                                                 fault == REMOTE_FAULT_429 ? 7 * HFD_US_PER_S : 0};
        return true;
    case REMOTE_FAULT_NONE:
    case REMOTE_FAULT_UNANSWERED:
    case REMOTE_FAULT_GARBAGE:
    case REMOTE_FAULT_CUT:
    case REMOTE_FAULT_CRASH_LATE:
    case REMOTE_FAULTS:
        break;
    }
    return false;
}

void remote_world_answer(struct remote_world *rw, const struct hfd_remote_request *request,
                         struct hfd_remote_answer *answer)
{
    const bool now = rw->fault_in > 0 && --rw->fault_in == 0;
    const enum remote_fault fault = now ? rw->fault : REMOTE_FAULT_NONE;

    rw->requests++;
    rw->fired = rw->fired || now;
    *answer = (struct hfd_remote_answer){.failure = "the connection was lost"};
    carry_out_slow(rw, request);
    if (is_held_up(rw, fault, request, answer))
        return;
    serve(rw, request, answer);
    if (fault == REMOTE_FAULT_UNANSWERED || fault == REMOTE_FAULT_CRASH_LATE)
        *answer = (struct hfd_remote_answer){.failure = "the connection was lost"};
    else if (fault == REMOTE_FAULT_GARBAGE)
        answer->body = HFD_SLICE("{\"id\": \xff}");
    else if (fault == REMOTE_FAULT_CUT)
        answer->body.len /= 2;
}

/* ---- the remote thread ---- */

struct due_step {
    struct remote_world *rw;
    struct hfd_remote_work work[WORK_MAX];
    struct hfd_due due;
};

static hfd_rc txn_due(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct due_step *s = arg;

    const struct hfd_work_query query = {
        .policy = &s->rw->policy, .now_us = s->rw->w.clock.wall_us, .limit = WORK_MAX};

    s->due.works = s->work;
    return hfd_remote_due(tx, &query, &s->rw->w.mem, &s->due, err);
}

struct pass_step {
    struct remote_world *rw;
    struct hfd_pass *pass;
    struct hfd_remote_request request;
    struct hfd_remote_answer answer;
};

static hfd_rc txn_next(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct pass_step *s = arg;
    hfd_rc rc;

    if (s->rw->before_step != NULL)
        s->rw->before_step(s->rw);
    rc = hfd_pass_next(tx, s->pass, s->rw->w.clock.wall_us, &s->request, err);
    hfd_pass_invariant(s->pass);
    if (s->rw->after_step != NULL)
        s->rw->after_step(s->rw);
    return rc;
}

static hfd_rc txn_take(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct pass_step *s = arg;
    const struct hfd_remote_exchange exchange = {&s->request, &s->answer, s->rw->w.clock.wall_us};
    hfd_rc rc;

    if (s->rw->before_step != NULL)
        s->rw->before_step(s->rw);
    rc = hfd_pass_take(tx, s->pass, &exchange, err);
    hfd_pass_invariant(s->pass);
    if (s->rw->after_step != NULL)
        s->rw->after_step(s->rw);
    return rc;
}

/* Is rolled back: the next one must come to the same. */
static hfd_rc txn_take_in_vain(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    hfd_rc rc = txn_take(tx, arg, err);

    return rc == HFD_OK ? hfd_fail(err, HFD_LIMIT, "in vain") : rc;
}

static void ok(struct remote_world *rw, hfd_rc rc)
{
    if (rc != HFD_OK)
        fail_msg("%s", rw->w.err.msg);
}

/* Returns whether a step succeeded. If not, memory was short, and its pass ends. */
static bool went(struct remote_world *rw, hfd_rc rc)
{
    if (rw->before_step == NULL)
        ok(rw, rc);
    if (!hfd_store_ok(rw->w.store))
        world_restart(&rw->w);
    return rc == HFD_OK;
}

/* @return whether the driver died */
static bool run_pass(struct remote_world *rw, const struct hfd_remote_work *work)
{
    struct pass_step s = {.rw = rw};
    bool died = false;

    ok(rw, hfd_pass_new(&rw->policy, work, &s.pass, &rw->w.err));
    for (int i = 0; i < ROUNDS_MAX && !died; i++) {
        const enum remote_fault fault = rw->fault_in == 1 ? rw->fault : REMOTE_FAULT_NONE;

        if (!went(rw, hfd_store_read(rw->w.reader, txn_next, &s, &rw->w.err)) ||
            s.request.path.p == NULL)
            break;
        assert_true(i + 1 < ROUNDS_MAX);
        remote_world_answer(rw, &s.request, &s.answer);
        if (rw->between != NULL)
            rw->between(rw, &s.request);
        died = fault == REMOTE_FAULT_CRASH || fault == REMOTE_FAULT_CRASH_LATE ||
               fault == REMOTE_FAULT_CRASH_SLOW;
        if (!died && rw->before_step == NULL)
            assert_int_equal(hfd_store_update_wait(rw->w.store, txn_take_in_vain, &s, &rw->w.err),
                             HFD_LIMIT);
        if (!died && !went(rw, hfd_store_update_wait(rw->w.store, txn_take, &s, &rw->w.err)))
            break;
    }
    hfd_pass_free(s.pass);
    if (died)
        world_restart(&rw->w);
    return died;
}

bool remote_world_first(struct remote_world *rw, struct hfd_remote_request *out)
{
    struct due_step due = {.rw = rw};
    struct pass_step s = {.rw = rw};

    ok(rw, hfd_store_read(rw->w.reader, txn_due, &due, &rw->w.err));
    if (due.due.count == 0)
        return false;
    ok(rw, hfd_pass_new(&rw->policy, &due.work[0], &s.pass, &rw->w.err));
    ok(rw, hfd_store_read(rw->w.reader, txn_next, &s, &rw->w.err));
    *out = s.request;
    out->path = hfd_arena_dup(&rw->w.mem, s.request.path);
    hfd_pass_free(s.pass);
    return s.request.path.p != NULL;
}

int remote_world_run(struct remote_world *rw)
{
    const int before = rw->requests;
    struct due_step s = {.rw = rw};

    carry_out_slow(rw, NULL);
    for (int round = 0; round < ROUNDS_MAX; round++) {
        const int was = rw->requests;

        ok(rw, hfd_store_read(rw->w.reader, txn_due, &s, &rw->w.err));
        if (s.due.count == 0)
            return rw->requests - before;
        for (size_t i = 0; i < s.due.count; i++)
            if (run_pass(rw, &s.work[i]))
                break;
        if (rw->requests == was && rw->before_step == NULL)
            fail_msg("something is due, and there is nothing to ask");
    }
    fail_msg("work does not end");
    return 0;
}

void remote_world_wait(struct remote_world *rw, int64_t max_us)
{
    struct due_step s = {.rw = rw};
    int64_t by_us;

    ok(rw, hfd_store_read(rw->w.reader, txn_due, &s, &rw->w.err));
    by_us = s.due.count > 0              ? 0
            : s.due.next_us == INT64_MAX ? max_us
                                         : s.due.next_us - rw->w.clock.wall_us;
    test_clock_advance(&rw->w.clock, by_us < max_us ? by_us : max_us);
}
