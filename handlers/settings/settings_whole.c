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

/* The shortest and the longest pause of one kind. */
struct pauses {
    enum hfd_setting min, max;
    int64_t min_us, max_us;
};

static hfd_rc check_pauses(const struct hfd_settings *s, const struct pauses *p,
                           struct hfd_err *err)
{
    struct hfd_buf b;
    hfd_rc rc;

    if (p->min_us <= p->max_us)
        return HFD_OK;
    hfd_buf_init(&b, 64);
    hfd_setting_format(&b, &hfd_setting_rows[p->min], &p->min_us);
    hfd_buf_lit(&b, " to ");
    hfd_setting_format(&b, &hfd_setting_rows[p->max], &p->max_us);
    rc = hfd_settings_refuse(s, given_of(s, p->min, p->max), err,
                             "expected %s to be no more than %s, got %.*s",
                             hfd_setting_rows[p->min].key, hfd_setting_rows[p->max].key,
                             HFD_SLICE_FMT(hfd_buf_slice(&b)));
    hfd_buf_fini(&b);
    return rc;
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
    return check_pauses(s,
                        &(struct pauses){HFD_SETTING_remote_retry_min_us,
                                         HFD_SETTING_remote_retry_max_us, s->remote_retry_min_us,
                                         s->remote_retry_max_us},
                        err);
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
    return check_pauses(s,
                        &(struct pauses){HFD_SETTING_hypershift_retry_min_us,
                                         HFD_SETTING_hypershift_retry_max_us,
                                         s->hypershift_retry_min_us, s->hypershift_retry_max_us},
                        err);
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
    if (rc == HFD_OK)
        rc = check_store(s, err);
    if (rc == HFD_OK)
        rc = check_hypershift(s, err);
    if (rc == HFD_OK)
        rc = check_tls(s, err);
    return rc != HFD_OK ? rc : check_remote(s, err);
}
