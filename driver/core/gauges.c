/* See gauges.h. */
#include "driver/core/gauges.h"

#include "driver/base/clock.h"
#include "driver/base/metrics.h"
#include "driver/core/overview.h"
#include "driver/core/transition.h"
#include "driver/fleet/names.h"

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
    for (int op = 0; op < HFD_OP_COUNT; op++)
        set_operation(g, (enum hfd_op)op);
    for (int kind = HFD_KIND_CLUSTER; with_fleet && kind <= HFD_KIND_NODEPOOL; kind++)
        for (int deleting = 0; deleting < 2; deleting++)
            set_unreconciled(&g->unreconciled.of[kind][deleting], (enum hfd_kind)kind,
                             deleting != 0, g->now_us);
}
