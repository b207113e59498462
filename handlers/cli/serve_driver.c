/* See serve_driver.h. */
#include "handlers/cli/serve_driver.h"

#include "driver/backend/backend.h"
#include "driver/backend/remote/work.h"
#include "driver/backend/remote/remote.h"
#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/base/url.h"
#include "driver/core/driver.h"
#include "driver/core/transition.h"
#include "driver/replica/keeper.h"
#include "handlers/cli/cli.h"
#include "handlers/cli/look.h"

/* ---- the driver ---- */

/*
 * Sets estimates and deadlines. A deadline for nodepools wins over the general one. With --demo all
 * use the time of the demo, unless they are set.
 */
static void set_times(struct hfd_driver *d, const struct hfd_settings *s)
{
#define ROW_(op)                                                                                   \
    {                                                                                              \
        HFD_SETTING_estimate_##op##_us, s->estimate_##op##_us, s->deadline_##op##_us,              \
            s->deadline_nodepool_##op##_us                                                         \
    }
    const struct {
        enum hfd_setting estimate;
        int64_t estimate_us, deadline_us, nodepool_deadline_us;
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
        d->estimate_us[op] = estimate_us;
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
                .due_keep_us = s->events_keep_us,
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
        .drift = hfd_slice_is(s->drift, "ignore")   ? HFD_DRIFT_IGNORE
                 : hfd_slice_is(s->drift, "repair") ? HFD_DRIFT_REPAIR
                                                    : HFD_DRIFT_REPORT,
        .drift_ignore = s->drift_ignore.items,
        .drift_ignore_count = s->drift_ignore.count,
        .protect_labels = s->protect_labels.items,
        .protect_label_count = s->protect_labels.count,
        .output_values = values,
        .output_value_count = s->output_values.count,
        .output_secrets = secrets,
        .output_secret_count = s->output_secrets.count,
        .backend = s->backend,
        .backend_ops = hfd_look_is_remote(s) ? &hfd_backend_remote : &hfd_backend_embedded,
        .demo = s->demo_us >= 0,
    };
    /* A remote names its adapters itself; the defaults of ours would be strangers to it. */
    if (hfd_look_is_remote(s) && !hfd_settings_is_set(s, HFD_SETTING_required_cluster))
        d->fleet.required[HFD_KIND_CLUSTER].count = 0;
    if (hfd_look_is_remote(s) && !hfd_settings_is_set(s, HFD_SETTING_required_nodepool))
        d->fleet.required[HFD_KIND_NODEPOOL].count = 0;
    if (s->output_manifests.len > 0)
        d->output_manifests = make_rule(HFD_SLICE("manifests"), s->output_manifests);
    set_times(d, s);
    return HFD_OK;
}

/* ---- the thread of a remote ---- */

static void polled(void *ctx, hfd_slice guresid)
{
    const struct hfd_serve_remote *r = ctx;

    hfd_remote_asked(r->thread, guresid);
}

static void wake(void *ctx)
{
    const struct hfd_serve_remote *r = ctx;

    hfd_remote_wake(r->thread);
    hfd_keeper_note(r->keeper);
}

static void on_news(void *thread)
{
    hfd_remote_wake(thread);
}

/* Without TLS, others on the way can read the token. */
static void warn_of_plain_http(const struct hfd_settings *s)
{
    if (s->remote_token_file.len == 0 || !hfd_slice_starts(s->backend, HFD_SLICE("http://")) ||
        hfd_url_is_loopback(s->backend))
        return;
    HFD_LOG(HFD_LOG_WARN, "the token for the remote is sent without TLS; use an https:// URL",
            HFD_LOG_STR("remote", s->backend));
}

enum hfd_exit hfd_serve_remote_open(struct hfd_serve_remote *r,
                                    const struct hfd_serve_remote_parts *parts, struct hfd_err *err)
{
    const struct hfd_settings *s = parts->settings;
    struct hfd_driver *d = parts->driver;
    struct hfd_remote_config config = {
        .store = parts->store,
        .keeper = parts->keeper,
        .policy = &r->policy,
        .rng = &hfd_rng_system,
        .http = hfd_look_http(s),
        .fresh_us = s->remote_fresh_us,
        .in_flight_max = s->remote_in_flight_max,
        .per_second_max = s->remote_per_second_max,
    };
    hfd_rc rc;

    config.http.clock = parts->clock;
    *r = (struct hfd_serve_remote){.keeper = parts->keeper};
    if (!hfd_look_is_remote(s))
        return HFD_EXIT_OK;
    r->policy = (struct hfd_remote_policy){
        .fleet = &d->fleet,
        .owner = hfd_slice_of(d->fleet.owner),
        .watch_us = s->remote_watch_us,
        .idle_us = s->remote_idle_us,
        .retry_min_us = s->remote_retry_min_us,
        .retry_max_us = s->remote_retry_max_us,
        .rng = &hfd_rng_system,
        .observer = d,
        .on_changes = hfd_resource_on_changes,
        .on_trouble = hfd_resource_on_trouble,
        .on_refused = hfd_resource_on_refused,
    };
    warn_of_plain_http(s);
    rc = hfd_remote_start(&config, &r->thread, err);
    if (rc == HFD_OK) {
        d->worker = (struct hfd_backend_worker){r, polled, wake};
        hfd_keeper_listen(r->keeper, on_news, r->thread);
        /* The store may be older than existing HyperFleet resources. */
        hfd_remote_asked(r->thread, HFD_REMOTE_ORPHANS);
        return HFD_EXIT_OK;
    }
    return rc == HFD_INVALID ? HFD_EXIT_USAGE : HFD_EXIT_INTERNAL;
}

void hfd_serve_remote_health(void *remote, struct hfd_buf *b)
{
    struct hfd_remote_state state;

    hfd_remote_state(remote, &state);
    hfd_buf_addf(b, "{\"health\":\"%s\",\"paused\":%s,\"requests_in_flight\":%lld",
                 hfd_remote_health_name(state.health), state.breaker_open ? "true" : "false",
                 (long long)state.in_flight);
    if (state.last_answer_us != 0)
        hfd_buf_member_time(b, ",\"last_answer\":", state.last_answer_us);
    if (state.last_failure[0] != '\0')
        hfd_buf_member_str(b, ",\"last_failure\":", hfd_slice_of(state.last_failure));
    hfd_buf_addc(b, '}');
}
