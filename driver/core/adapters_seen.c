/* See adapters_seen.h. */
#include "driver/core/adapters_seen.h"

#include <stdlib.h>

#include "driver/base/clock.h"
#include "driver/base/metrics.h"
#include "driver/core/past.h"
#include "store/rows_past.h"
#include "store/totals.h"

#define LABEL_MAX_BYTES 64 /* of a metric */

static struct hfd_series *series_of(hfd_slice adapter)
{
    char text[LABEL_MAX_BYTES + 1];

    (void)snprintf(text, sizeof(text), "%.*s", HFD_SLICE_FMT(adapter));
    return hfd_metric_series(HFD_METRIC_LAST_REPORT, HFD_LABELS(text));
}

void hfd_adapter_note_report(hfd_slice adapter, int64_t now_us)
{
    struct hfd_series *s = series_of(adapter);

    hfd_series_add(s, now_us / HFD_US_PER_S - hfd_series_value(s));
}

static hfd_rc read_totals(const struct hfd_ctx *c, struct hfd_adapter_seen *a)
{
    const hfd_slice type = hfd_adapter_condition_type(a->name, c->mem);
    int64_t *const counts[] = {&a->good, &a->bad, &a->open};
    static const enum hfd_status statuses[] = {HFD_STATUS_TRUE, HFD_STATUS_FALSE,
                                               HFD_STATUS_UNKNOWN};
    hfd_rc rc = HFD_OK;

    if (type.p == NULL)
        return hfd_fail_nomem(c->err, "read the adapters");
    for (size_t i = 0; rc == HFD_OK && i < 3; i++) {
        const struct hfd_count_key key = {a->kind, HFD_COUNT_CONDITION, type,
                                          hfd_slice_of(hfd_status_name(statuses[i]))};

        rc = hfd_totals_get(c->tx, &key, counts[i], c->err);
    }
    return rc;
}

static int by_size(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

/* Takes the times of an adapter from past creations, which come newest first. */
static hfd_rc take_times(const struct hfd_ctx *c, const struct hfd_past_list *past,
                         struct hfd_adapter_seen *a)
{
    const hfd_slice name = hfd_milestone_name(a->kind, a->name, c->mem);
    int64_t sorted[HFD_ADAPTER_TIMES_MAX];
    struct hfd_milestones reached;

    if (name.p == NULL)
        return hfd_fail_nomem(c->err, "read the adapters");
    for (size_t i = past->count; i > 0; i--) {
        const struct hfd_milestone *m;

        hfd_milestones_parse(past->rows[i - 1].milestones, &reached);
        m = hfd_milestone_find(&reached, name);
        if (m != NULL && a->time_count < HFD_ADAPTER_TIMES_MAX)
            a->times_us[a->time_count++] = m->at_us;
    }
    if (a->time_count == 0)
        return HFD_OK;
    memcpy(sorted, a->times_us, a->time_count * sizeof(sorted[0]));
    qsort(sorted, a->time_count, sizeof(sorted[0]), by_size);
    a->median_us = sorted[a->time_count / 2];
    return HFD_OK;
}

hfd_rc hfd_adapters_read(const struct hfd_ctx *c, struct hfd_adapters_seen *out)
{
    const struct hfd_adapter_names *required = c->driver->fleet.required;
    const struct hfd_past_query creations = {{HFD_KIND_CLUSTER, HFD_OP_CREATE, 1},
                                             HFD_ADAPTER_TIMES_MAX};
    const size_t count = required[HFD_KIND_CLUSTER].count + required[HFD_KIND_NODEPOOL].count;
    struct hfd_past_list past;
    hfd_rc rc = hfd_past_row_list(c->tx, &creations, c->mem, &past, c->err);

    out->count = 0;
    out->items = hfd_arena_array(c->mem, count + 1, sizeof(*out->items));
    if (rc == HFD_OK && out->items == NULL)
        return hfd_fail_nomem(c->err, "read the adapters");
    for (int kind = HFD_KIND_CLUSTER; kind <= HFD_KIND_NODEPOOL; kind++)
        for (size_t i = 0; rc == HFD_OK && i < required[kind].count; i++) {
            struct hfd_adapter_seen *a = &out->items[out->count++];

            *a = (struct hfd_adapter_seen){.name = required[kind].items[i],
                                           .kind = (enum hfd_kind)kind};
            a->last_us = hfd_series_value(series_of(a->name)) * HFD_US_PER_S;
            rc = read_totals(c, a);
            if (rc == HFD_OK)
                rc = take_times(c, &past, a);
        }
    return rc;
}
