/* See view.h. */
#include "driver/status/view.h"

#include <stdlib.h>

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

static bool any(const int64_t *counts, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (counts[i] != 0)
            return true;
    return false;
}

static void add_rsync_counts(struct hfd_buf *b, const int64_t *counts)
{
    bool first = true;

    if (!any(counts, HFD_RSYNC_COUNT))
        return;
    hfd_buf_lit(b, ",\"rsync-status\":{");
    for (unsigned i = 0; i < HFD_RSYNC_COUNT; i++)
        if (add_count(b, hfd_rsync_name((enum hfd_rsync)i), counts[i], first))
            first = false;
    hfd_buf_addc(b, '}');
}

static void add_presence_counts(struct hfd_buf *b, const int64_t *counts)
{
    bool first = true;

    if (!any(counts, HFD_PRESENCE_COUNT))
        return;
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

void hfd_status_view_format(struct hfd_buf *b, const struct hfd_status_query *q,
                            const struct hfd_status_view *view)
{
    hfd_buf_addc(b, '{');
    add_text(b, "name", view->name);
    add_some(b, "id", view->id);
    add_some(b, "type", view->type);
    add_some(b, "project", view->project);
    hfd_buf_lit(b, ",\"state\":");
    hfd_status_state_format(b, &view->state);
    if (view->has_phase) {
        add_some(b, "status", hfd_slice_of(hfd_status_phase_name(view->phase)));
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

int64_t hfd_status_progress(const int64_t rsync[HFD_RSYNC_COUNT], bool terminating)
{
    const int64_t done = rsync[terminating ? HFD_RSYNC_TERMINATED : HFD_RSYNC_APPLIED];
    int64_t all = 0;

    for (unsigned i = 0; i < HFD_RSYNC_COUNT; i++)
        all += rsync[i];
    return all > 0 ? done * 100 / all : 100;
}
