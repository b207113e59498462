/* See status.h. */
#include "driver/status/status.h"

#include "driver/base/arena.h"
#include "driver/base/buf.h"
#include "driver/fleet/condition.h"
#include "driver/fleet/report.h"

#include <stdlib.h>

/* ---- rules ---- */

static enum hfd_rsync rsync_of(const struct hfd_status_report *r)
{
    if (!r->reported)
        return HFD_RSYNC_PENDING;
    if (r->deleting && r->finalized == HFD_STATUS_TRUE)
        return HFD_RSYNC_TERMINATED;
    if (!r->at_generation)
        return HFD_RSYNC_PENDING;
    if (r->health != HFD_STATUS_FALSE && r->applied == HFD_STATUS_TRUE)
        return HFD_RSYNC_APPLIED;
    if (!r->in_operation)
        return HFD_RSYNC_PENDING;
    if (r->health == HFD_STATUS_FALSE)
        return HFD_RSYNC_RETRYING;
    if (r->applied == HFD_STATUS_FALSE)
        return r->health == HFD_STATUS_TRUE ? HFD_RSYNC_FAILED : HFD_RSYNC_RETRYING;
    return HFD_RSYNC_PENDING;
}

static enum hfd_presence presence_of(const struct hfd_status_report *r)
{
    if (!r->reported || r->stale)
        return HFD_PRESENCE_UNKNOWN;
    if (r->deleting && r->finalized == HFD_STATUS_TRUE)
        return HFD_PRESENCE_NOT_PRESENT;
    if (!r->at_generation)
        return HFD_PRESENCE_UNKNOWN;
    if (r->applied == HFD_STATUS_TRUE || r->available == HFD_STATUS_TRUE)
        return HFD_PRESENCE_PRESENT;
    return r->applied == HFD_STATUS_FALSE ? HFD_PRESENCE_NOT_PRESENT : HFD_PRESENCE_UNKNOWN;
}

void hfd_status_judge(const struct hfd_status_report *report, struct hfd_status_verdict *out)
{
    const bool counts = report->reported && (report->at_generation || report->in_operation);

    *out = (struct hfd_status_verdict){
        .removed = report->removed,
        .own = counts,
        .spent = !report->in_operation,
        .seen = counts && !report->stale,
        .rsync = rsync_of(report),
        .presence = presence_of(report),
    };
    if (!report->removed)
        return;
    out->rsync = HFD_RSYNC_TERMINATED;
    out->presence = HFD_PRESENCE_NOT_PRESENT;
}

/* A status of its own, as it counts. */
static enum hfd_rsync own_status(const struct hfd_status_verdict *v, enum hfd_rsync own)
{
    if (v->removed)
        return HFD_RSYNC_TERMINATED;
    if (!v->own)
        return v->rsync;
    if (v->spent && (own == HFD_RSYNC_FAILED || own == HFD_RSYNC_RETRYING))
        return HFD_RSYNC_PENDING;
    return own;
}

static enum hfd_presence own_presence(const struct hfd_status_verdict *v, enum hfd_presence own)
{
    if (v->removed)
        return HFD_PRESENCE_NOT_PRESENT;
    return v->seen ? own : HFD_PRESENCE_UNKNOWN;
}

enum hfd_rsync hfd_status_rsync(const struct hfd_status_verdict *v, const struct hfd_object *o)
{
    return o->has_rsync ? own_status(v, o->rsync) : v->rsync;
}

enum hfd_presence hfd_status_presence(const struct hfd_status_verdict *v,
                                      const struct hfd_object *o)
{
    return own_presence(v, o->presence);
}

int64_t hfd_status_percent(const struct hfd_status_share *share)
{
    if (share->terminating || share->rsync == HFD_RSYNC_TERMINATED)
        return share->terminating && share->rsync == HFD_RSYNC_TERMINATED ? 100 : 0;
    if (share->done)
        return 100;
    if (!share->counts || share->own < 0)
        return 0;
    return share->own < 100 ? share->own : 100;
}

void hfd_status_count(struct hfd_status_counts *counts, const struct hfd_status_verdict *v,
                      const struct hfd_object *o)
{
    if (!o->observed_only)
        counts->rsync[hfd_status_rsync(v, o)]++;
    counts->presence[hfd_status_presence(v, o)]++;
}

void hfd_status_count_stored(struct hfd_status_counts *counts, const struct hfd_status_verdict *v,
                             const struct hfd_object_counts *stored)
{
    for (unsigned i = 0; i < HFD_RSYNC_COUNT; i++)
        counts->rsync[own_status(v, (enum hfd_rsync)i)] += stored->own[i];
    counts->rsync[v->rsync] += stored->other;
    for (unsigned i = 0; i < HFD_PRESENCE_COUNT; i++)
        counts->presence[own_presence(v, (enum hfd_presence)i)] += stored->presence[i];
}

enum hfd_status_phase hfd_status_phase_of(struct hfd_status_life life,
                                          const int64_t rsync[HFD_RSYNC_COUNT])
{
    const int64_t failed = rsync[HFD_RSYNC_FAILED], terminated = rsync[HFD_RSYNC_TERMINATED];
    const int64_t going = rsync[HFD_RSYNC_PENDING] + rsync[HFD_RSYNC_RETRYING];

    if (life.terminating) {
        if (life.gone)
            return HFD_PHASE_TERMINATED;
        if (going + rsync[HFD_RSYNC_APPLIED] > 0 || failed + terminated == 0)
            return HFD_PHASE_TERMINATING;
        return failed > 0 ? HFD_PHASE_TERMINATE_FAILED : HFD_PHASE_TERMINATED;
    }
    if (going > 0)
        return HFD_PHASE_INSTANTIATING;
    /* An object that is gone, though its termination was not asked for, has failed. */
    return failed + terminated > 0 || life.gone ? HFD_PHASE_INSTANTIATE_FAILED
                                                : HFD_PHASE_INSTANTIATED;
}

/* ---- query ---- */

#define NAME_MAX_BYTES 253

bool hfd_status_name_ok(hfd_slice text)
{
    if (text.len == 0 || text.len > NAME_MAX_BYTES || !hfd_is_alnum(text.p[0]) ||
        !hfd_is_alnum(text.p[text.len - 1]))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (!hfd_is_alnum(text.p[i]) && memchr("-_.:", text.p[i], 4) == NULL)
            return false;
    return true;
}

/* PROVIDER+CLUSTER: two names around one plus sign. */
static bool cluster_ok(hfd_slice text)
{
    const char *plus = text.len > 0 ? memchr(text.p, '+', text.len) : NULL;
    const size_t at = plus != NULL ? (size_t)(plus - text.p) : 0;

    return plus != NULL && hfd_status_name_ok((hfd_slice){text.p, at}) &&
           hfd_status_name_ok((hfd_slice){plus + 1, text.len - at - 1});
}

static hfd_rc take_type(struct hfd_status_query *q, hfd_slice value, struct hfd_err *err)
{
    const bool cluster = hfd_slice_is(value, "cluster");

    if (q->type_given)
        return HFD_OK;
    if (!cluster && !hfd_slice_is(value, "rsync"))
        return hfd_fail(err, HFD_BAD_REQUEST,
                        "Invalid query type: expected type=rsync or type=cluster");
    q->type_given = true;
    q->type = cluster ? HFD_STATUS_TYPE_CLUSTER : HFD_STATUS_TYPE_RSYNC;
    return HFD_OK;
}

static hfd_rc take_output(struct hfd_status_query *q, hfd_slice value, struct hfd_err *err)
{
    static const char *const names[] = {
        [HFD_STATUS_OUTPUT_ALL] = "all",
        [HFD_STATUS_OUTPUT_SUMMARY] = "summary",
        [HFD_STATUS_OUTPUT_DETAIL] = "detail",
    };

    if (q->output_given)
        return HFD_OK;
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (hfd_slice_is(value, names[i])) {
            q->output_given = true;
            q->output = (enum hfd_status_output)i;
            return HFD_OK;
        }
    return hfd_fail(err, HFD_BAD_REQUEST,
                    "Invalid query output: expected output=summary, output=all or output=detail");
}

static hfd_rc take_value(struct hfd_status_values *values, hfd_slice value, struct hfd_arena *mem,
                         struct hfd_err *err)
{
    if (values->count == HFD_STATUS_VALUES_MAX)
        return hfd_fail(err, HFD_BAD_REQUEST,
                        "a filter is given too often: expected at most %d values",
                        HFD_STATUS_VALUES_MAX);
    if (values->items == NULL)
        values->items = hfd_arena_array(mem, HFD_STATUS_VALUES_MAX, sizeof(*values->items));
    if (values->items == NULL)
        return hfd_fail_nomem(err, "read a query");
    values->items[values->count] = hfd_arena_dup(mem, value);
    return values->items[values->count++].p != NULL ? HFD_OK : hfd_fail_nomem(err, "read a query");
}

static hfd_rc take_instance(struct hfd_status_query *q, hfd_slice value, struct hfd_arena *mem,
                            struct hfd_err *err)
{
    if (q->has_instance)
        return HFD_OK;
    if (value.len == 0)
        return hfd_fail(err, HFD_BAD_REQUEST,
                        "Invalid query instance: expected a ContextId of the history");
    q->has_instance = true;
    q->instance = hfd_arena_dup(mem, value);
    return q->instance.p != NULL ? HFD_OK : hfd_fail_nomem(err, "read a query");
}

hfd_rc hfd_status_query_take(struct hfd_status_query *q, hfd_slice name, hfd_slice value,
                             struct hfd_arena *mem, struct hfd_err *err)
{
    if (hfd_slice_is(name, "type"))
        return take_type(q, value, err);
    if (hfd_slice_is(name, "output"))
        return take_output(q, value, err);
    if (hfd_slice_is(name, "instance"))
        return take_instance(q, value, mem, err);
    if (hfd_slice_is(name, "app"))
        return hfd_status_name_ok(value)
                   ? take_value(&q->apps, value, mem, err)
                   : hfd_fail(err, HFD_BAD_REQUEST,
                              "Invalid app query: expected an adapter's name");
    if (hfd_slice_is(name, "cluster"))
        return cluster_ok(value) ? take_value(&q->clusters, value, mem, err)
                                 : hfd_fail(err, HFD_BAD_REQUEST,
                                            "Invalid cluster query: expected PROVIDER%%2BCLUSTER");
    if (hfd_slice_is(name, "resource"))
        return hfd_status_name_ok(value)
                   ? take_value(&q->resources, value, mem, err)
                   : hfd_fail(err, HFD_BAD_REQUEST,
                              "Invalid resources query: expected an object's name");
    return HFD_OK;
}

static bool has(const struct hfd_status_values *values, hfd_slice text)
{
    for (size_t i = 0; i < values->count; i++)
        if (hfd_slice_eq(values->items[i], text))
            return true;
    return values->count == 0;
}

bool hfd_status_query_has_app(const struct hfd_status_query *q, hfd_slice app)
{
    return has(&q->apps, app);
}

/* True if the text is "PROVIDER+CLUSTER" of the place. */
static bool is_place(hfd_slice text, const struct hfd_status_place *place)
{
    const size_t at = place->provider.len;

    return text.len == at + 1 + place->cluster.len && hfd_slice_starts(text, place->provider) &&
           text.p[at] == '+' &&
           hfd_slice_eq((hfd_slice){text.p + at + 1, place->cluster.len}, place->cluster);
}

static bool has_place(const struct hfd_status_values *values, const struct hfd_status_place *place)
{
    for (size_t i = 0; i < values->count; i++)
        if (is_place(values->items[i], place))
            return true;
    return values->count == 0;
}

bool hfd_status_query_has(const struct hfd_status_query *q, const struct hfd_status_place *place)
{
    return has(&q->apps, place->app) && has_place(&q->clusters, place) &&
           has(&q->resources, place->name);
}

/* ---- kept ---- */

/* An object is seven texts, each with its length before it, and a number. */

#define TEXTS 7

static hfd_slice *text_at(struct hfd_object *o, unsigned i)
{
    hfd_slice *const texts[TEXTS] = {&o->provider, &o->cluster, &o->group, &o->version,
                                     &o->kind,     &o->name,    &o->node};

    return texts[i];
}

#define NO_RSYNC HFD_RSYNC_COUNT

void hfd_kept_add(struct hfd_buf *b, const struct hfd_object *object)
{
    struct hfd_object o = *object;
    const unsigned rsync = o.has_rsync ? (unsigned)o.rsync : NO_RSYNC;

    for (unsigned i = 0; i < TEXTS; i++) {
        const hfd_slice text = *text_at(&o, i);

        hfd_buf_addf(b, "%zu:", text.len);
        hfd_buf_add(b, text);
    }
    hfd_buf_addf(b, "%u;", rsync * 10 + (unsigned)o.presence * 2 + (o.observed_only ? 1 : 0));
}

/* Takes a number off, and the character behind it. */
static bool take_number(hfd_slice *rest, char end, int64_t max, int64_t *out)
{
    const char *at = rest->len > 0 ? memchr(rest->p, end, rest->len) : NULL;
    const size_t len = at != NULL ? (size_t)(at - rest->p) : 0;

    if (at == NULL || hfd_parse_i64((hfd_slice){rest->p, len}, 0, max, out, NULL) != HFD_OK)
        return false;
    *rest = (hfd_slice){at + 1, rest->len - len - 1};
    return true;
}

bool hfd_kept_next(hfd_slice *rest, struct hfd_object *out)
{
    int64_t n;

    *out = (struct hfd_object){.has_rsync = false};
    for (unsigned i = 0; i < TEXTS; i++) {
        if (!take_number(rest, ':', (int64_t)rest->len, &n) || (size_t)n > rest->len)
            return false;
        *text_at(out, i) = (hfd_slice){rest->p, (size_t)n};
        *rest = (hfd_slice){rest->p + n, rest->len - (size_t)n};
    }
    if (!take_number(rest, ';', NO_RSYNC * 10 + 9, &n) || n % 10 / 2 >= HFD_PRESENCE_COUNT)
        return false;
    out->has_rsync = n / 10 < NO_RSYNC;
    if (out->has_rsync)
        out->rsync = (enum hfd_rsync)(n / 10);
    out->presence = (enum hfd_presence)(n % 10 / 2);
    out->observed_only = n % 2 == 1;
    return true;
}

/* ---- state ---- */

#define US_PER_MS 1000
#define ACTIONS_OF_CREATION 3

static void add(struct hfd_status_state *s, const char *state, int64_t context, int64_t at_us)
{
    const int64_t before_us = s->count > 0 ? s->actions[s->count - 1].at_us : at_us;

    /* Times never go back, even when a clock was set back. */
    s->actions[s->count++] =
        (struct hfd_status_action){state, context, at_us > before_us ? at_us : before_us};
}

static void add_entry(struct hfd_status_state *s, enum hfd_status_subject subject,
                      const struct hfd_status_entry *e)
{
    const bool cluster = subject == HFD_SUBJECT_CLUSTER;
    const struct hfd_status_action *last = s->count > 0 ? &s->actions[s->count - 1] : NULL;

    switch (e->deed) {
    case HFD_DEED_CREATE:
        if (last == NULL)
            add(s, "Created", 0, e->at_us);
        if (!cluster)
            add(s, "Approved", 0, e->at_us);
        add(s, cluster ? "Applied" : "Instantiated", e->context, e->at_us);
        return;
    case HFD_DEED_CHANGE:
        add(s, cluster ? "Applied" : "Instantiated", e->context, e->at_us);
        return;
    case HFD_DEED_DELETE:
        if (last == NULL || strcmp(last->state, "Terminated") != 0)
            add(s, "Terminated", e->context, e->at_us);
        return;
    }
}

hfd_rc hfd_status_state_make(enum hfd_status_subject subject,
                             const struct hfd_status_entries *entries, struct hfd_arena *mem,
                             struct hfd_status_state *out, struct hfd_err *err)
{
    *out = (struct hfd_status_state){
        hfd_arena_array(mem, entries->count + 1, ACTIONS_OF_CREATION * sizeof(*out->actions)), 0};
    if (out->actions == NULL)
        return hfd_fail_nomem(err, "read a state history");
    for (size_t i = 0; i < entries->count; i++)
        add_entry(out, subject, &entries->items[i]);
    return HFD_OK;
}

bool hfd_status_state_has(const struct hfd_status_state *state, int64_t context, bool *terminating)
{
    bool found = false;

    *terminating = false;
    for (size_t i = 0; i < state->count; i++) {
        const struct hfd_status_action *a = &state->actions[i];

        if (a->context != context || context == 0)
            continue;
        found = true;
        *terminating = strcmp(a->state, "Terminated") == 0;
    }
    return found;
}

static void add_action(struct hfd_buf *b, const struct hfd_status_action *a)
{
    hfd_buf_addf(b, "{\"State\":\"%s\",\"ContextId\":\"", a->state);
    if (a->context != 0)
        hfd_buf_i64(b, a->context);
    hfd_buf_member_time(b, "\",\"TimeStamp\":", a->at_us - a->at_us % US_PER_MS);
    hfd_buf_addc(b, '}');
}

/* Adds {"Actions":[...]}. Times have milliseconds at most, without zeros at the end. */
static void status_state_format(struct hfd_buf *b, const struct hfd_status_state *state)
{
    hfd_buf_lit(b, "{\"Actions\":[");
    for (size_t i = 0; i < state->count; i++) {
        hfd_buf_comma(b, i);
        add_action(b, &state->actions[i]);
    }
    hfd_buf_lit(b, "]}");
}

/* ---- view ---- */

/* ---- order ---- */

/* An item and its place before the sort: qsort is not stable. */
struct ranked {
    const struct hfd_status_item *item;
    size_t rank;
};

static int compare_places(const struct hfd_status_item *a, const struct hfd_status_item *b)
{
    int order = hfd_slice_cmp(a->place.app, b->place.app);

    if (order == 0)
        order = hfd_slice_cmp(a->place.provider, b->place.provider);
    return order != 0 ? order : hfd_slice_cmp(a->place.cluster, b->place.cluster);
}

static int compare(const void *left, const void *right)
{
    const struct ranked *x = left, *y = right;
    const struct hfd_status_item *a = x->item, *b = y->item;
    int order = compare_places(a, b);

    if (order == 0)
        order = hfd_slice_cmp(a->place.name, b->place.name);
    if (order == 0)
        order = hfd_slice_cmp(a->kind, b->kind);
    if (order == 0)
        order = hfd_slice_cmp(a->group, b->group);
    if (order == 0)
        order = hfd_slice_cmp(a->node, b->node);
    return order != 0 ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

hfd_rc hfd_status_view_sort(struct hfd_status_view *view, struct hfd_arena *mem,
                            struct hfd_err *err)
{
    const size_t n = view->item_count;
    struct ranked *ranked = hfd_arena_array(mem, n + 1, sizeof(*ranked));
    struct hfd_status_item *sorted = hfd_arena_array(mem, n + 1, sizeof(*sorted));

    if (ranked == NULL || sorted == NULL)
        return hfd_fail_nomem(err, "sort objects");
    for (size_t i = 0; i < n; i++)
        ranked[i] = (struct ranked){&view->items[i], i};
    if (n > 1)
        qsort(ranked, n, sizeof(*ranked), compare);
    for (size_t i = 0; i < n; i++)
        sorted[i] = *ranked[i].item;
    view->items = sorted;
    return HFD_OK;
}

/* ---- the document ---- */

static void add_text(struct hfd_buf *b, const char *key, hfd_slice text)
{
    hfd_buf_addf(b, "\"%s\":", key);
    hfd_buf_json_str(b, text);
}

static void add_some(struct hfd_buf *b, const char *key, hfd_slice text)
{
    if (text.len == 0)
        return;
    hfd_buf_addc(b, ',');
    add_text(b, key, text);
}

static void add_json(struct hfd_buf *b, const char *key, hfd_slice json)
{
    if (json.len == 0)
        return;
    hfd_buf_addf(b, ",\"%s\":", key);
    hfd_buf_add(b, json);
}

/* One count; a zero is left out. @return whether there is one more */
static bool add_count(struct hfd_buf *b, const char *name, int64_t n, bool first)
{
    if (n == 0)
        return false;
    hfd_buf_addf(b, "%s\"%s\":", first ? "" : ",", name);
    hfd_buf_i64(b, n);
    return true;
}

static void add_rsync_counts(struct hfd_buf *b, const int64_t *counts)
{
    bool first = true;

    hfd_buf_lit(b, ",\"rsync-status\":{");
    for (unsigned i = 0; i < HFD_RSYNC_COUNT; i++)
        if (add_count(b, hfd_rsync_name((enum hfd_rsync)i), counts[i], first))
            first = false;
    hfd_buf_addc(b, '}');
}

static void add_presence_counts(struct hfd_buf *b, const int64_t *counts)
{
    bool first = true;

    hfd_buf_lit(b, ",\"cluster-status\":{");
    for (unsigned i = 0; i < HFD_PRESENCE_COUNT; i++)
        if (add_count(b, hfd_presence_name((enum hfd_presence)i), counts[i], first))
            first = false;
    hfd_buf_addc(b, '}');
}

static void add_item(struct hfd_buf *b, const struct hfd_status_query *q,
                     const struct hfd_status_item *item)
{
    hfd_buf_lit(b, "{\"GVK\":{");
    add_text(b, "Group", item->group);
    hfd_buf_addc(b, ',');
    add_text(b, "Version", item->version);
    hfd_buf_addc(b, ',');
    add_text(b, "Kind", item->kind);
    hfd_buf_lit(b, "},");
    add_text(b, "name", item->place.name);
    add_some(b, "node", item->node);
    hfd_buf_addc(b, ',');
    if (q->type == HFD_STATUS_TYPE_RSYNC)
        add_text(b, "rsync-status", hfd_slice_of(hfd_rsync_name(item->rsync)));
    else
        add_text(b, "cluster-status", hfd_slice_of(hfd_presence_name(item->presence)));
    add_json(b, "detail", item->detail);
    add_json(b, "conditions", item->conditions);
    add_some(b, "waiting", item->waiting);
    if (item->has_progress) {
        hfd_buf_lit(b, ",\"progress\":");
        hfd_buf_i64(b, item->progress);
    }
    hfd_buf_addc(b, '}');
}

static void add_items(struct hfd_buf *b, const struct hfd_status_query *q,
                      const struct hfd_status_view *view)
{
    const struct hfd_status_item *before = NULL;

    hfd_buf_lit(b, ",\"apps\":[");
    for (size_t i = 0; i < view->item_count; i++) {
        const struct hfd_status_item *item = &view->items[i];
        const bool same_app = before != NULL && hfd_slice_eq(before->place.app, item->place.app);
        const bool same_place = same_app && compare_places(before, item) == 0;

        if (before != NULL)
            hfd_buf_add(b, same_place ? HFD_SLICE(",")
                           : same_app ? HFD_SLICE("]},")
                                      : HFD_SLICE("]}]},"));
        if (!same_app) {
            hfd_buf_addc(b, '{');
            add_text(b, "name", item->place.app);
            hfd_buf_lit(b, ",\"clusters\":[");
        }
        if (!same_place) {
            hfd_buf_addc(b, '{');
            add_text(b, "cluster-provider", item->place.provider);
            hfd_buf_addc(b, ',');
            add_text(b, "cluster", item->place.cluster);
            hfd_buf_lit(b, ",\"resources\":[");
        }
        add_item(b, q, item);
        before = item;
    }
    hfd_buf_add(b, before != NULL ? HFD_SLICE("]}]}]") : HFD_SLICE("]"));
}

static const char *phase_name(enum hfd_status_phase p)
{
    static const char *const names[HFD_PHASE_COUNT] = {
        [HFD_PHASE_INSTANTIATING] = "Instantiating",
        [HFD_PHASE_INSTANTIATED] = "Instantiated",
        [HFD_PHASE_INSTANTIATE_FAILED] = "InstantiateFailed",
        [HFD_PHASE_TERMINATING] = "Terminating",
        [HFD_PHASE_TERMINATED] = "Terminated",
        [HFD_PHASE_TERMINATE_FAILED] = "TerminateFailed",
    };

    return names[p];
}

void hfd_status_view_format(struct hfd_buf *b, const struct hfd_status_query *q,
                            const struct hfd_status_view *view)
{
    hfd_buf_addc(b, '{');
    add_text(b, "name", view->name);
    add_some(b, "id", view->id);
    add_some(b, "type", view->type);
    add_some(b, "project", view->project);
    hfd_buf_lit(b, ",\"state\":");
    status_state_format(b, &view->state);
    if (view->has_phase) {
        add_some(b, "status", hfd_slice_of(phase_name(view->phase)));
        if (q->type == HFD_STATUS_TYPE_RSYNC)
            add_rsync_counts(b, view->counts.rsync);
        else
            add_presence_counts(b, view->counts.presence);
    }
    if (view->has_phase && q->output == HFD_STATUS_OUTPUT_DETAIL) {
        hfd_buf_lit(b, ",\"progress\":");
        hfd_buf_i64(b, view->progress);
        add_some(b, "message", view->message);
        add_json(b, "conditions", view->conditions);
    }
    if (view->has_phase && q->output != HFD_STATUS_OUTPUT_SUMMARY)
        add_items(b, q, view);
    hfd_buf_addc(b, '}');
}
