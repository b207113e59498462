/* See gauges.h. */
#include "driver/core/gauges.h"

#include "driver/base/clock.h"
#include "driver/base/metrics.h"
#include "driver/core/driver.h"
#include "driver/core/overview.h"
#include "driver/core/past.h"
#include "driver/core/transition.h"
#include "driver/fleet/fleet.h"
#include "store/rows_fleet.h"
#include "store/rows_history.h"
#include "store/rows_overview.h"
#include "store/totals.h"

#include <stdlib.h>

/* ---- gauges ---- */

static hfd_rc read_operation(const struct hfd_ctx *c, enum hfd_op op, struct hfd_gauges *out)
{
    const struct hfd_resource_stuck stuck = {
        .state = (int)hfd_resource_state_of_op(op),
        .now_us = c->now_us,
        .after_us = HFD_STUCK_AFTER_US,
    };
    hfd_rc rc = hfd_resource_row_oldest(c->tx, stuck.state, &out->oldest_us[op], c->err);

    out->stuck[op] = 0;
    return rc == HFD_OK && out->oldest_us[op] != 0
               ? hfd_resource_row_stuck(c->tx, &stuck, &out->stuck[op], c->err)
               : rc;
}

hfd_rc hfd_gauges_read(const struct hfd_ctx *c, int64_t stuck_us, struct hfd_gauges *out)
{
    hfd_rc rc = hfd_totals_resources(c->tx, c->mem, &out->resources, c->err);

    out->now_us = c->now_us;
    for (int op = 0; rc == HFD_OK && op < HFD_OP_COUNT; op++)
        rc = read_operation(c, (enum hfd_op)op, out);
    if (rc == HFD_OK)
        rc = hfd_drifted_row_count(c->tx, &out->drifted, c->err);
    return rc == HFD_OK ? hfd_fleet_row_unreconciled(c->tx, c->now_us - stuck_us, c->mem,
                                                     &out->unreconciled, c->err)
                        : rc;
}

/* Whole seconds since a time; 0 for a time to come, which a clock that was set back gives. */
static int64_t age_s(int64_t since_us, int64_t now_us)
{
    return now_us > since_us ? (now_us - since_us) / HFD_US_PER_S : 0;
}

/* ---- resources ---- */

/* The types of one kind that the settings name. */
struct types {
    const hfd_slice *items;
    size_t count;
};

static bool names(const struct types *types, hfd_slice type)
{
    for (size_t i = 0; i < types->count; i++)
        if (hfd_slice_eq(types->items[i], type))
            return true;
    return false;
}

/* @param type  which total is asked for; none = those of all types that the settings do not name */
static int64_t total_of(const struct hfd_gauges *g, const struct types types[2], hfd_slice type,
                        enum hfd_state state)
{
    int64_t n = 0;

    for (size_t i = 0; i < g->resources.count; i++) {
        const struct hfd_resource_total *t = &g->resources.rows[i];

        if (t->state == (int64_t)state &&
            (type.p != NULL ? hfd_slice_eq(t->type, type)
                            : !names(&types[0], t->type) && !names(&types[1], t->type)))
            n += t->n;
    }
    return n;
}

#define TYPE_MAX_BYTES 64 /* a label has no more */

static void set_type(const struct hfd_gauges *g, const struct types types[2], hfd_slice type)
{
    char text[TYPE_MAX_BYTES + 1] = "other";

    if (type.p != NULL)
        (void)snprintf(text, sizeof(text), "%.*s", HFD_SLICE_FMT(type));
    for (int s = HFD_STATE_ABSENT + 1; s < HFD_STATE_COUNT; s++)
        hfd_metric_set(HFD_METRIC_RESOURCES, HFD_LABELS(text, hfd_state_name((enum hfd_state)s)),
                       total_of(g, types, type, (enum hfd_state)s));
}

static void set_resources(const struct hfd_gauges *g, const struct hfd_input_rules *rules)
{
    const struct types types[2] = {{rules->cluster_types, rules->cluster_type_count},
                                   {rules->nodepool_types, rules->nodepool_type_count}};

    for (size_t kind = 0; kind < 2; kind++)
        for (size_t i = 0; i < types[kind].count; i++)
            set_type(g, types, types[kind].items[i]);
    set_type(g, types, HFD_SLICE_NONE);
}

static void set_operation(const struct hfd_gauges *g, enum hfd_op op)
{
    const enum hfd_state state = hfd_resource_state_of_op(op);

    hfd_metric_set(HFD_METRIC_OLDEST_OPERATION, HFD_LABELS(hfd_op_name(op)),
                   g->oldest_us[op] != 0 ? age_s(g->oldest_us[op], g->now_us) : 0);
    hfd_metric_set(HFD_METRIC_STUCK, HFD_LABELS(hfd_op_name(op)), g->stuck[op]);
    if (hfd_state_may(state, HFD_STATE_FAILED))
        hfd_metric_add(HFD_METRIC_TRANSITIONS,
                       HFD_LABELS(hfd_state_name(state), hfd_state_name(HFD_STATE_FAILED)), 0);
}

/* ---- HyperFleet's own ---- */

static void set_unreconciled(const struct hfd_unreconciled *n, enum hfd_kind kind, bool deleting,
                             int64_t now_us)
{
    const char *const labels[] = {hfd_kind_word(kind), deleting ? "true" : "false"};

    hfd_metric_set(HFD_METRIC_API_PENDING, labels, n->count);
    hfd_metric_set(HFD_METRIC_API_STUCK, labels, n->stuck);
    hfd_metric_set(HFD_METRIC_API_STUCK_SECONDS, labels,
                   n->stuck > 0 ? age_s(n->oldest_us, now_us) : 0);
}

void hfd_gauges_set(const struct hfd_gauges *g, const struct hfd_input_rules *rules,
                    bool with_fleet)
{
    set_resources(g, rules);
    hfd_metric_set(HFD_METRIC_DRIFTED, NULL, g->drifted);
    for (int op = 0; op < HFD_OP_COUNT; op++)
        set_operation(g, (enum hfd_op)op);
    for (int kind = HFD_KIND_CLUSTER; with_fleet && kind <= HFD_KIND_NODEPOOL; kind++)
        for (int deleting = 0; deleting < 2; deleting++)
            set_unreconciled(&g->unreconciled.of[kind][deleting], (enum hfd_kind)kind,
                             deleting != 0, g->now_us);
}

/* ---- adapters seen ---- */

#define LABEL_MAX_BYTES 64 /* of a metric */

static int64_t last_report_us(hfd_slice adapter)
{
    char text[LABEL_MAX_BYTES + 1];

    (void)snprintf(text, sizeof(text), "%.*s", HFD_SLICE_FMT(adapter));
    return hfd_metric_value(HFD_METRIC_LAST_REPORT, HFD_LABELS(text)) * HFD_US_PER_S;
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

static void add(struct hfd_adapters_seen *all, hfd_slice name, enum hfd_kind kind)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].kind == kind && hfd_slice_eq(all->items[i].name, name))
            return;
    all->items[all->count++] =
        (struct hfd_adapter_seen){.name = name, .kind = kind, .last_us = last_report_us(name)};
}

/* A remote's adapters of a kind are those of past creations. */
static void add_past(const struct hfd_past_list *past, enum hfd_kind kind,
                     struct hfd_adapters_seen *all)
{
    struct hfd_milestones reached;

    for (size_t i = 0; i < past->count; i++) {
        hfd_milestones_parse(past->rows[i].milestones, &reached);
        for (size_t k = 0; k < reached.count; k++) {
            const hfd_slice name = reached.items[k].name;

            if (hfd_slice_starts(name,
                                 kind == HFD_KIND_CLUSTER ? HFD_SLICE("c/") : HFD_SLICE("n/")))
                add(all, (hfd_slice){name.p + 2, name.len - 2}, kind);
        }
    }
}

hfd_rc hfd_adapters_read(const struct hfd_ctx *c, bool times, struct hfd_adapters_seen *out)
{
    const struct hfd_adapter_names *required = c->driver->fleet.required;
    const struct hfd_past_query creations = {{HFD_KIND_CLUSTER, HFD_OP_CREATE, 1},
                                             HFD_ADAPTER_TIMES_MAX};
    size_t count = required[HFD_KIND_CLUSTER].count + required[HFD_KIND_NODEPOOL].count;
    struct hfd_past_list past = {.count = 0};
    hfd_rc rc = HFD_OK;

    if (times)
        rc = hfd_past_row_list(c->tx, &creations, c->mem, &past, c->err);
    if (hfd_driver_is_remote(c->driver))
        count += past.count * HFD_MILESTONES_MAX;
    out->count = 0;
    out->items = hfd_arena_array(c->mem, count + 1, sizeof(*out->items));
    if (rc == HFD_OK && out->items == NULL)
        return hfd_fail_nomem(c->err, "read the adapters");
    for (int kind = HFD_KIND_CLUSTER; kind <= HFD_KIND_NODEPOOL; kind++) {
        for (size_t i = 0; i < required[kind].count; i++)
            add(out, required[kind].items[i], (enum hfd_kind)kind);
        if (hfd_driver_is_remote(c->driver) && required[kind].count == 0)
            add_past(&past, (enum hfd_kind)kind, out);
    }
    for (size_t i = 0; rc == HFD_OK && i < out->count; i++) {
        rc = read_totals(c, &out->items[i]);
        if (rc == HFD_OK && times)
            rc = take_times(c, &past, &out->items[i]);
    }
    return rc;
}
