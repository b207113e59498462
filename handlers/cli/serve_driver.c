/* See serve_driver.h. */
#include "handlers/cli/serve_driver.h"

#include "driver/backend/embedded.h"
#include "driver/backend/mirror.h"
#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "handlers/cli/look.h"

/*
 * Sets estimates and deadlines. A value for nodepools wins over the general one. With --demo all
 * use the time of the demo, unless they are set.
 */
static void set_times(struct hfd_driver *d, const struct hfd_settings *s)
{
#define ROW_(op)                                                                                   \
    {                                                                                              \
        HFD_SETTING_estimate_##op##_us, s->estimate_##op##_us, s->deadline_##op##_us,              \
            s->estimate_nodepool_##op##_us, s->deadline_nodepool_##op##_us                         \
    }
    const struct {
        enum hfd_setting estimate;
        int64_t estimate_us, deadline_us, nodepool_estimate_us, nodepool_deadline_us;
    } rows[HFD_OP_COUNT] = {
        [HFD_OP_CREATE] = ROW_(create),
        [HFD_OP_UPDATE] = ROW_(update),
        [HFD_OP_DELETE] = ROW_(delete),
    };
#undef ROW_

    for (int op = 0; op < HFD_OP_COUNT; op++) {
        int64_t estimate_us = rows[op].estimate_us;

        if (s->demo_us >= 0 && !hfd_settings_is_set(s, rows[op].estimate))
            estimate_us = s->demo_us > HFD_US_PER_S ? s->demo_us : HFD_US_PER_S;
        d->estimate_us[HFD_KIND_CLUSTER][op] = estimate_us;
        d->estimate_us[HFD_KIND_NODEPOOL][op] =
            rows[op].nodepool_estimate_us > 0 ? rows[op].nodepool_estimate_us : estimate_us;
        d->deadline_us[HFD_KIND_CLUSTER][op] = rows[op].deadline_us;
        d->deadline_us[HFD_KIND_NODEPOOL][op] = rows[op].nodepool_deadline_us > 0
                                                    ? rows[op].nodepool_deadline_us
                                                    : rows[op].deadline_us;
    }
}

/* Takes ADAPTER:POINTER apart. The settings have checked its form. */
static struct hfd_output_rule make_rule(hfd_slice name, hfd_slice v)
{
    const char *colon = memchr(v.p, ':', v.len);
    size_t n;

    HFD_ASSERT(colon != NULL);
    n = (size_t)(colon - v.p);
    return (struct hfd_output_rule){
        .name = name, .adapter = {v.p, n}, .pointer = {colon + 1, v.len - n - 1}};
}

static hfd_rc make_rules(const struct hfd_map *map, struct hfd_arena *mem,
                         const struct hfd_output_rule **out, struct hfd_err *err)
{
    struct hfd_output_rule *rules;

    *out = NULL;
    if (map->count == 0)
        return HFD_OK;
    rules = hfd_arena_array(mem, map->count, sizeof(*rules));
    if (rules == NULL)
        return hfd_fail_nomem(err, "set up the driver");
    for (size_t i = 0; i < map->count; i++)
        rules[i] = make_rule(map->items[i].name, map->items[i].value);
    *out = rules;
    return HFD_OK;
}

hfd_rc hfd_serve_driver_init(struct hfd_driver *d, struct hfd_settings *s,
                             const struct hfd_keyring *ring, struct hfd_err *err)
{
    const struct hfd_output_rule *values, *secrets;
    hfd_rc rc = make_rules(&s->output_values, &s->mem, &values, err);

    if (rc == HFD_OK)
        rc = make_rules(&s->output_secrets, &s->mem, &secrets, err);
    if (rc != HFD_OK)
        return rc;
    *d = (struct hfd_driver){
        .fleet =
            {
                .required[HFD_KIND_CLUSTER] = {s->required_cluster.items,
                                               s->required_cluster.count},
                .required[HFD_KIND_NODEPOOL] = {s->required_nodepool.items,
                                                s->required_nodepool.count},
                .observers = {s->pacemaker.items, s->pacemaker.count},
                .rng = &hfd_rng_system,
                .tombstone_us = s->tombstone_us,
            },
        .rules =
            {
                .cluster_types = s->types_cluster.items,
                .cluster_type_count = s->types_cluster.count,
                .nodepool_types = s->types_nodepool.items,
                .nodepool_type_count = s->types_nodepool.count,
                .overrides = s->resource_overrides.items,
                .override_count = s->resource_overrides.count,
            },
        .ring = ring,
        .rng = &hfd_rng_system,
        .terminal_reasons = s->terminal_reasons.items,
        .terminal_reason_count = s->terminal_reasons.count,
        .output_values = values,
        .output_value_count = s->output_values.count,
        .output_secrets = secrets,
        .output_secret_count = s->output_secrets.count,
        .backend = s->backend,
        .backend_ops = hfd_look_is_remote(s) ? &hfd_backend_remote : &hfd_backend_embedded,
        .demo = s->demo_us >= 0,
    };
    if (s->output_manifests.len > 0)
        d->output_manifests = make_rule(HFD_SLICE("manifests"), s->output_manifests);
    set_times(d, s);
    return HFD_OK;
}
