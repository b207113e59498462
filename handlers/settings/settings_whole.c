/* See settings_whole.h. */
#include "handlers/settings/settings_whole.h"

#include "driver/base/pgurl.h"
#include "handlers/settings/settings_value.h"

/* Refuses the names of values that every output has. */
static hfd_rc check_output_names(const struct hfd_map *values, struct hfd_err *err)
{
    static const char *const taken[] = {
        "name",   "cluster_id",    "nodepool_id",    "href",      "generation",
        "health", "health_reason", "health_message", "nodepools", "demo"};

    for (size_t i = 0; i < values->count; i++)
        for (size_t k = 0; k < sizeof(taken) / sizeof(taken[0]); k++)
            if (hfd_slice_is(values->items[i].name, taken[k]))
                return hfd_fail_field(err, HFD_INVALID, "driver.outputs.values",
                                      "%.*s: driver.outputs.values.%s: expected another name, as "
                                      "every output has its own \"%s\"",
                                      HFD_SLICE_FMT(values->items[i].origin), taken[k], taken[k]);
    return HFD_OK;
}

/* Returns the setting to blame of two that conflict: the one that was given. */
static enum hfd_setting given_of(const struct hfd_settings *s, enum hfd_setting a,
                                 enum hfd_setting b)
{
    return hfd_settings_is_set(s, b) ? b : a;
}

/* Two durations, of which the first must not be longer. */
struct order {
    enum hfd_setting less, more;
};

static const struct order orders[] = {
    {HFD_SETTING_remote_retry_min_us, HFD_SETTING_remote_retry_max_us},
    {HFD_SETTING_estimate_create_us, HFD_SETTING_deadline_create_us},
    {HFD_SETTING_estimate_update_us, HFD_SETTING_deadline_update_us},
    {HFD_SETTING_estimate_delete_us, HFD_SETTING_deadline_delete_us},
};

static int64_t duration_of(const struct hfd_settings *s, enum hfd_setting which)
{
    return *(const int64_t *)(const void *)((const char *)s + hfd_setting_rows[which].offset);
}

static hfd_rc check_order(const struct hfd_settings *s, const struct order *o, struct hfd_err *err)
{
    const int64_t less_us = duration_of(s, o->less), more_us = duration_of(s, o->more);
    struct hfd_buf b;
    hfd_rc rc;

    if (less_us <= more_us)
        return HFD_OK;
    hfd_buf_init(&b, 64);
    hfd_setting_format(&b, &hfd_setting_rows[o->less], &less_us);
    hfd_buf_lit(&b, " to ");
    hfd_setting_format(&b, &hfd_setting_rows[o->more], &more_us);
    rc = hfd_settings_refuse(s, given_of(s, o->less, o->more), err,
                             "expected %s to be no more than %s, got %.*s",
                             hfd_setting_rows[o->less].key, hfd_setting_rows[o->more].key,
                             HFD_SLICE_FMT(hfd_buf_slice(&b)));
    hfd_buf_fini(&b);
    return rc;
}

/* ---- settings without an effect ---- */

static bool is_remote(const struct hfd_settings *s)
{
    return !hfd_slice_is(s->backend, "embedded");
}

static bool is_embedded(const struct hfd_settings *s)
{
    return !is_remote(s);
}

static bool has_kubeconfig(const struct hfd_settings *s)
{
    return s->hypershift_kubeconfig.len > 0;
}

static bool has_proxies(const struct hfd_settings *s)
{
    return s->http_trusted_proxies.count > 0;
}

static bool has_socket(const struct hfd_settings *s)
{
    return hfd_slice_starts(s->listen, HFD_SLICE("unix:")) ||
           hfd_slice_starts(s->ops_listen, HFD_SLICE("unix:"));
}

/* The settings whose keys begin so, and what they need. */
static const struct {
    const char *keys;
    bool (*works)(const struct hfd_settings *s);
    const char *needs;
} effects[] = {
    {"remote.", is_remote, "the URL of a HyperFleet in backend"},
    {"hypershift.", has_kubeconfig, "hypershift.kubeconfig"},
    {"adapters.required.", is_embedded, "backend: embedded, as a remote has its own"},
    {"fleet.identity_header", has_proxies, "http.trusted_proxies"},
    {"http.socket_mode", has_socket, "unix:/path in listen or ops_listen"},
    {"store.connect_timeout", hfd_settings_has_postgres, "store: postgres://..."},
    {"store.answer_timeout", hfd_settings_has_postgres, "store: postgres://..."},
    {"store.patroni", hfd_settings_has_postgres, "store: postgres://..."},
};

const char *hfd_settings_lacks(const struct hfd_settings *s, enum hfd_setting which)
{
    const hfd_slice key = hfd_slice_of(hfd_setting_rows[which].key);

    for (size_t i = 0; i < sizeof(effects) / sizeof(effects[0]); i++)
        if (hfd_settings_is_set(s, which) && hfd_slice_starts(key, hfd_slice_of(effects[i].keys)) &&
            !effects[i].works(s))
            return effects[i].needs;
    return NULL;
}

static hfd_rc check_remote(const struct hfd_settings *s, struct hfd_err *err)
{
    if (s->demo_us >= 0 && !hfd_slice_is(s->backend, "embedded"))
        return hfd_settings_refuse(s, HFD_SETTING_demo_us, err,
                                   "expected off with a remote backend: demo adapters would "
                                   "report instead of the remote's adapters");
    if (s->pacemaker.count > 0 && !hfd_slice_is(s->backend, "embedded"))
        return hfd_settings_refuse(s, HFD_SETTING_pacemaker, err,
                                   "expected an empty list with a remote backend: its adapters "
                                   "report to the remote");
    if ((s->remote_cert_file.len == 0) != (s->remote_key_file.len == 0))
        return hfd_settings_refuse(s,
                                   s->remote_key_file.len == 0 ? HFD_SETTING_remote_cert_file
                                                               : HFD_SETTING_remote_key_file,
                                   err,
                                   "expected both or none of remote.cert_file and remote.key_file");
    if (s->remote_identity.len > 0 && s->remote_identity_header.len == 0)
        return hfd_settings_refuse(s, HFD_SETTING_remote_identity, err,
                                   "expected a header for it in remote.identity_header");
    return HFD_OK;
}

/* Further management clusters are beside the default one, which has its own setting. */
static hfd_rc check_hypershift(const struct hfd_settings *s, struct hfd_err *err)
{
    const struct hfd_map *further = &s->hypershift_management;

    for (size_t i = 0; i < further->count; i++)
        if (hfd_slice_is(further->items[i].name, "default"))
            return hfd_fail_field(err, HFD_INVALID, "hypershift.management",
                                  "%.*s: hypershift.management.default.kubeconfig: expected "
                                  "another name, as default is that of hypershift.kubeconfig",
                                  HFD_SLICE_FMT(further->items[i].origin));
    if (further->count > 0 && s->hypershift_kubeconfig.len == 0)
        return hfd_settings_refuse(s, HFD_SETTING_hypershift_management, err,
                                   "expected hypershift.kubeconfig with it: it is the management "
                                   "cluster of orders that name none");
    return HFD_OK;
}

static hfd_rc check_tls(const struct hfd_settings *s, struct hfd_err *err)
{
    if ((s->tls_cert_file.len == 0) != (s->tls_key_file.len == 0))
        return hfd_settings_refuse(
            s, s->tls_key_file.len == 0 ? HFD_SETTING_tls_cert_file : HFD_SETTING_tls_key_file, err,
            "expected both or none of tls.cert_file and tls.key_file");
    if (s->tls_client_ca_file.len > 0 && s->tls_cert_file.len == 0)
        return hfd_settings_refuse(s, HFD_SETTING_tls_client_ca_file, err,
                                   "expected tls.cert_file with it: client certificates need TLS");
    return HFD_OK;
}

/* An empty `data` is none. The variable HFD_DATA is not used with PostgreSQL: an image sets it. */
static hfd_rc check_store(const struct hfd_settings *s, struct hfd_err *err)
{
    const bool postgres = hfd_settings_has_postgres(s);

    if (!postgres && s->data.len == 0)
        return hfd_settings_refuse(s, HFD_SETTING_data, err, "expected a path, got \"\"");
    if (!postgres && s->store_password_file.len > 0)
        return hfd_settings_refuse(s, HFD_SETTING_store_password_file, err,
                                   "expected store: postgres://... with it");
    if (!postgres)
        return HFD_OK;
    if (s->data.len > 0 && hfd_settings_is_set(s, HFD_SETTING_data) &&
        !hfd_slice_is(s->origin[HFD_SETTING_data], "HFD_DATA"))
        return hfd_settings_refuse(s, HFD_SETTING_data, err,
                                   "expected none, or an empty one, with a PostgreSQL store, "
                                   "which needs no data folder; name keys and auth.tokens_file "
                                   "instead");
    if (s->store_password_file.len > 0 && hfd_pgurl_has_password(s->store))
        return hfd_settings_refuse(s, HFD_SETTING_store_password_file, err,
                                   "expected a URL in store without a password beside it");
    return HFD_OK;
}

bool hfd_settings_has_postgres(const struct hfd_settings *s)
{
    return hfd_pgurl_is(s->store);
}

hfd_rc hfd_settings_check_whole(const struct hfd_settings *s, struct hfd_err *err)
{
    hfd_rc rc;

    if (hfd_slice_eq(s->path_cluster, s->path_nodepool))
        return hfd_settings_refuse(
            s, given_of(s, HFD_SETTING_path_cluster, HFD_SETTING_path_nodepool), err,
            "expected another path for clusters than for nodepools, got \"%.*s\" for both",
            HFD_SLICE_FMT(s->path_nodepool));
    for (size_t i = 0; i < s->types_nodepool.count; i++) {
        for (size_t k = 0; k < s->types_cluster.count; k++) {
            if (hfd_slice_eq(s->types_nodepool.items[i], s->types_cluster.items[k]))
                return hfd_settings_refuse(
                    s, given_of(s, HFD_SETTING_types_cluster, HFD_SETTING_types_nodepool), err,
                    "expected other types for clusters than for nodepools, got %.60s for both",
                    s->types_nodepool.items[i].p);
        }
    }
    rc = check_output_names(&s->output_values, err);
    for (size_t i = 0; rc == HFD_OK && i < sizeof(orders) / sizeof(orders[0]); i++)
        rc = check_order(s, &orders[i], err);
    if (rc == HFD_OK)
        rc = check_store(s, err);
    if (rc == HFD_OK)
        rc = check_hypershift(s, err);
    if (rc == HFD_OK)
        rc = check_tls(s, err);
    return rc != HFD_OK ? rc : check_remote(s, err);
}
