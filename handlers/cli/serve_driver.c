/* See serve.h. */
#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "handlers/cli/serve.h"

int64_t hfd_serve_estimate_us(const struct hfd_settings *s, enum hfd_op op)
{
    static const enum hfd_setting which[HFD_OP_COUNT] = {
        [HFD_OP_CREATE] = HFD_SETTING_estimate_create_us,
        [HFD_OP_UPDATE] = HFD_SETTING_estimate_update_us,
        [HFD_OP_DELETE] = HFD_SETTING_estimate_delete_us,
    };
    const int64_t chosen_us[HFD_OP_COUNT] = {
        [HFD_OP_CREATE] = s->estimate_create_us,
        [HFD_OP_UPDATE] = s->estimate_update_us,
        [HFD_OP_DELETE] = s->estimate_delete_us,
    };

    HFD_ASSERT((unsigned)op < HFD_OP_COUNT);
    if (s->demo_us < 0 || hfd_settings_is_set(s, which[op]))
        return chosen_us[op];
    return s->demo_us > HFD_US_PER_S ? s->demo_us : HFD_US_PER_S;
}

/* The settings have checked that each value is ADAPTER:POINTER. */
static hfd_rc make_rules(const struct hfd_map *map, struct hfd_arena *mem, const struct hfd_output_rule **out, struct hfd_err *err)
{
    struct hfd_output_rule *rules;

    *out = NULL;
    if (map->count == 0)
        return HFD_OK;
    rules = hfd_arena_array(mem, map->count, sizeof(*rules));
    if (rules == NULL)
        return hfd_fail(err, HFD_NOMEM, "out of memory");
    for (size_t i = 0; i < map->count; i++) {
        hfd_slice v = map->items[i].value;
        const char *colon = memchr(v.p, ':', v.len);
        size_t n;

        HFD_ASSERT(colon != NULL);
        n = (size_t)(colon - v.p);
        rules[i] = (struct hfd_output_rule){
            .name = map->items[i].name,
            .adapter = {v.p, n},
            .pointer = {colon + 1, v.len - n - 1},
        };
    }
    *out = rules;
    return HFD_OK;
}

hfd_rc hfd_serve_driver_init(struct hfd_driver *d, struct hfd_settings *s, const struct hfd_keyring *ring, struct hfd_err *err)
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
                .required[HFD_KIND_CLUSTER] = {s->required_cluster.items, s->required_cluster.count},
                .required[HFD_KIND_NODEPOOL] = {s->required_nodepool.items, s->required_nodepool.count},
                .rng = &hfd_rng_system,
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
        .deadline_us = {s->deadline_create_us, s->deadline_update_us, s->deadline_delete_us},
        .terminal_reasons = s->terminal_reasons.items,
        .terminal_reason_count = s->terminal_reasons.count,
        .output_values = values,
        .output_value_count = s->output_values.count,
        .output_secrets = secrets,
        .output_secret_count = s->output_secrets.count,
        .backend = s->backend,
        .demo = s->demo_us >= 0,
    };
    for (int op = 0; op < HFD_OP_COUNT; op++)
        d->estimate_us[op] = hfd_serve_estimate_us(s, (enum hfd_op)op);
    hfd_driver_attach(d);
    return HFD_OK;
}
