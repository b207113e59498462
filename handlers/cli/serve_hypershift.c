/* See serve_hypershift.h. */
#include "handlers/cli/serve_hypershift.h"

#include "driver/adapters/hypershift/hypershift.h"
#include "driver/adapters/hypershift/order.h"
#include "driver/base/bell.h"
#include "handlers/cli/look.h"
#include "schemas/documents.h"

#include <stdlib.h>

#define MEM_MAX_BYTES ((size_t)16 << 20)
#define PULL_SECRET_MAX_BYTES ((size_t)1 << 20)
#define RETRY_MAX_US (INT64_C(60) * HFD_US_PER_S)

/* ---- files ---- */

static hfd_rc read_kubeconfig(hfd_slice path, struct hfd_arena *mem, struct hfd_kube_access *out,
                              struct hfd_err *why)
{
    const struct hfd_kube_pod pod = {getenv("KUBERNETES_SERVICE_HOST"),
                                     getenv("KUBERNETES_SERVICE_PORT"), HFD_KUBE_POD_FOLDER};

    if (hfd_slice_is(path, "in-cluster"))
        return hfd_kube_in_cluster(&pod, mem, out, why);
    return hfd_kubeconfig_read(path.p, mem, out, why);
}

static hfd_rc read_default(struct hfd_serve_hypershift *h, const struct hfd_settings *s,
                           struct hfd_err *err)
{
    struct hfd_err why;
    const hfd_rc rc =
        read_kubeconfig(s->hypershift_kubeconfig, &h->mem, &h->managements[0].access, &why);

    if (rc == HFD_OK || rc == HFD_NOMEM)
        return rc == HFD_OK ? rc : hfd_fail_nomem(err, "read a kubeconfig");
    return hfd_settings_refuse(s, HFD_SETTING_hypershift_kubeconfig, err, "%s", why.msg);
}

static hfd_rc read_further(struct hfd_serve_hypershift *h, const struct hfd_pair *one,
                           struct hfd_serve_management *out, struct hfd_err *err)
{
    struct hfd_err why;
    const hfd_rc rc = read_kubeconfig(one->value, &h->mem, &out->access, &why);

    if (rc == HFD_OK || rc == HFD_NOMEM)
        return rc == HFD_OK ? rc : hfd_fail_nomem(err, "read a kubeconfig");
    return hfd_fail_field(err, HFD_INVALID, "hypershift.management",
                          "%.*s: hypershift.management.%.*s.kubeconfig: %s",
                          HFD_SLICE_FMT(one->origin), HFD_SLICE_FMT(one->name), why.msg);
}

/* Reads the kubeconfigs of all management clusters. The first is the default's. */
static hfd_rc read_managements(struct hfd_serve_hypershift *h, const struct hfd_settings *s,
                               struct hfd_err *err)
{
    const struct hfd_map *further = &s->hypershift_management;
    const size_t count = 1 + further->count;
    hfd_slice *names = hfd_arena_array(&h->mem, count, sizeof(*names));
    hfd_rc rc;

    h->managements = hfd_arena_array(&h->mem, count, sizeof(*h->managements));
    if (names == NULL || h->managements == NULL)
        return hfd_fail_nomem(err, "read a kubeconfig");
    names[0] = HFD_SLICE(HFD_HS_MANAGEMENT);
    rc = read_default(h, s, err);
    for (size_t i = 1; rc == HFD_OK && i < count; i++) {
        names[i] = further->items[i - 1].name;
        rc = read_further(h, &further->items[i - 1], &h->managements[i], err);
    }
    h->management_count = rc == HFD_OK ? count : 0;
    h->checker.defaults.managements = names;
    h->checker.defaults.management_count = count;
    return rc;
}

static hfd_rc read_pull_secret(struct hfd_serve_hypershift *h, const struct hfd_settings *s,
                               struct hfd_err *err)
{
    struct hfd_buf b;
    struct hfd_err why;
    hfd_rc rc;

    if (s->hypershift_pull_secret_file.len == 0)
        return HFD_OK;
    hfd_buf_init(&b, PULL_SECRET_MAX_BYTES);
    rc = hfd_hypershift_read_pull_secret(s->hypershift_pull_secret_file.p, &b, &why);
    if (rc == HFD_OK) {
        h->checker.defaults.pull_secret = hfd_arena_dup(&h->mem, hfd_buf_slice(&b));
        if (h->checker.defaults.pull_secret.p == NULL)
            rc = hfd_fail_nomem(err, "read the pull secret");
    } else {
        rc = hfd_settings_refuse(s, HFD_SETTING_hypershift_pull_secret_file, err, "%s", why.msg);
    }
    if (b.p != NULL)
        explicit_bzero(b.p, b.len);
    hfd_buf_fini(&b);
    return rc;
}

/* The adapter works on the embedded HyperFleet, and makes what demo adapters only report. */
static hfd_rc check_together(const struct hfd_settings *s, struct hfd_err *err)
{
    if (hfd_look_is_remote(s))
        return hfd_settings_refuse(s, HFD_SETTING_hypershift_kubeconfig, err,
                                   "it needs backend embedded, as the adapter reports to the "
                                   "HyperFleet of this program; for a remote one run "
                                   "hyperfleet-driver adapter hypershift");
    if (s->demo_us >= 0)
        return hfd_settings_refuse(s, HFD_SETTING_hypershift_kubeconfig, err,
                                   "it cannot be set together with demo: demo adapters would "
                                   "report for it");
    return HFD_OK;
}

hfd_rc hfd_serve_hypershift_open(struct hfd_serve_hypershift *h, const struct hfd_settings *s,
                                 bool elsewhere, struct hfd_err *err)
{
    hfd_rc rc;

    *h = (struct hfd_serve_hypershift){.on = false};
    if (!elsewhere && s->hypershift_kubeconfig.len > 0 && check_together(s, err) != HFD_OK)
        return HFD_INVALID;
    *h = (struct hfd_serve_hypershift){.on = s->hypershift_kubeconfig.len > 0,
                                       .lock = PTHREAD_MUTEX_INITIALIZER};
    hfd_arena_init(&h->mem, MEM_MAX_BYTES);
    if (!h->on)
        return HFD_OK;
    h->pull_secret_file =
        s->hypershift_pull_secret_file.len > 0 ? s->hypershift_pull_secret_file.p : NULL;
    h->resync_us = s->hypershift_resync_us;
    h->grace_us = s->hypershift_refusal_grace_us;
    h->timeout_us = s->hypershift_timeout_us;
    h->pauses = (struct hfd_kube_pauses){s->hypershift_retry_min_us, RETRY_MAX_US};
    h->checker.defaults = (struct hfd_hs_defaults){
        .namespace = s->hypershift_namespace,
        .release_image = s->hypershift_release_image,
        .base_domain = s->hypershift_base_domain,
        .nodeport_address = s->hypershift_nodeport_address,
        .list_secrets = s->hypershift_list_secrets,
    };
    rc = read_managements(h, s, err);
    if (rc == HFD_OK)
        rc = read_pull_secret(h, s, err);
    if (rc == HFD_OK)
        rc = hfd_schema_hypershift(&h->checker.schemas, err);
    if (rc != HFD_OK) {
        hfd_serve_hypershift_close(h);
        h->on = false;
    }
    return rc;
}

void hfd_serve_hypershift_close(struct hfd_serve_hypershift *h)
{
    hfd_spec_schemas_free(&h->checker.schemas);
    hfd_arena_fini(&h->mem);
}

/* ---- the driver ---- */

static hfd_rc admit(void *ctx, const struct hfd_ctx *c, const struct hfd_call *call,
                    const struct hfd_resource_row *was)
{
    const struct hfd_serve_hypershift *h = ctx;

    return hfd_hs_admit(&h->checker, c, call, was);
}

/* A cluster or nodepool has become due. Thread: any. */
static void on_bell(void *ctx)
{
    struct hfd_serve_hypershift *h = ctx;

    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < h->management_count; i++)
        if (h->managements[i].thread != NULL)
            hfd_hypershift_wake(h->managements[i].thread);
    pthread_mutex_unlock(&h->lock);
}

void hfd_serve_hypershift_reload(struct hfd_serve_hypershift *h)
{
    for (size_t i = 0; i < h->management_count; i++)
        if (h->managements[i].thread != NULL)
            hfd_hypershift_reload(h->managements[i].thread);
}

const char *hfd_serve_hypershift_trouble(struct hfd_serve_hypershift *h)
{
    const char *text = NULL;

    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; text == NULL && i < h->management_count; i++)
        text = h->managements[i].thread != NULL ? hfd_hypershift_trouble(h->managements[i].thread)
                                                : "the adapter has not started yet";
    pthread_mutex_unlock(&h->lock);
    return text;
}

/* Threads of the server may call it while the adapter stops. */
static void objects(void *ctx, hfd_adapter_object_fn *take, void *arg)
{
    struct hfd_serve_hypershift *h = ctx;

    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < h->management_count; i++)
        if (h->managements[i].thread != NULL)
            hfd_hypershift_objects(h->managements[i].thread, take, arg);
    pthread_mutex_unlock(&h->lock);
}

/* Adds a rule for each output that the settings do not name. */
static hfd_rc add_outputs(struct hfd_settings *s, const char *const *names, size_t count,
                          const struct hfd_output_rule **rules, size_t *rule_count)
{
    struct hfd_output_rule *all = hfd_arena_array(&s->mem, *rule_count + count, sizeof(*all));
    size_t n = *rule_count;

    if (all == NULL)
        return HFD_NOMEM;
    if (n > 0)
        memcpy(all, *rules, n * sizeof(*all));
    for (size_t i = 0; i < count; i++) {
        const char *slash = strrchr(names[i], '/');
        bool given = false;

        for (size_t k = 0; k < *rule_count; k++)
            given = given || hfd_slice_is((*rules)[k].name, slash + 1);
        if (!given)
            all[n++] = (struct hfd_output_rule){hfd_slice_of(slash + 1), HFD_SLICE(HFD_HS_ADAPTER),
                                                hfd_slice_of(names[i])};
    }
    *rules = all;
    *rule_count = n;
    return HFD_OK;
}

hfd_rc hfd_serve_hypershift_add(struct hfd_serve_hypershift *h, struct hfd_settings *s,
                                struct hfd_driver *d, struct hfd_err *err)
{
    static const char *const values[] = {"/endpoint", "/version", "/cluster_type", "/cluster_data"};
    static const char *const secrets[] = {"/secrets/kubeconfig", "/secrets/kubeadmin_password",
                                          "/secrets/credentials"};

    if (!h->on)
        return HFD_OK;
    h->names[0] = HFD_SLICE(HFD_HS_VALIDATION);
    h->names[1] = HFD_SLICE(HFD_HS_ADAPTER);
    h->hooks = (struct hfd_adapter_hooks){
        .judge = h->names[0], .ctx = h, .admit = admit, .objects = objects};
    d->hooks = &h->hooks;
    d->fleet.builtin = (struct hfd_adapter_names){h->names, 2};
    if (!hfd_settings_is_set(s, HFD_SETTING_required_cluster))
        d->fleet.required[HFD_KIND_CLUSTER] = d->fleet.builtin;
    if (!hfd_settings_is_set(s, HFD_SETTING_required_nodepool))
        d->fleet.required[HFD_KIND_NODEPOOL] = d->fleet.builtin;
    d->rules.check_order = hfd_hs_order_check;
    d->rules.check_ctx = &h->checker;
    if (add_outputs(s, values, sizeof(values) / sizeof(values[0]), &d->output_values,
                    &d->output_value_count) != HFD_OK ||
        add_outputs(s, secrets, sizeof(secrets) / sizeof(secrets[0]), &d->output_secrets,
                    &d->output_secret_count) != HFD_OK)
        return hfd_fail_nomem(err, "set up the HyperShift adapter");
    return HFD_OK;
}

/* ---- the threads ---- */

hfd_rc hfd_serve_hypershift_start(struct hfd_serve_hypershift *h,
                                  const struct hfd_serve_hypershift_parts *parts,
                                  struct hfd_err *err)
{
    struct hfd_hypershift_config config = {
        .clock = parts->clock,
        .rng = &hfd_rng_system,
        .checker = &h->checker,
        .pull_secret_file = h->pull_secret_file,
        .timeout_us = h->timeout_us,
        .pauses = h->pauses,
        .grace_us = h->grace_us,
        .resync_us = h->resync_us,
    };
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; parts->store != NULL && i < h->management_count; i++) {
        struct hfd_serve_management *m = &h->managements[i];

        m->rows = (struct hfd_hs_fleet_store){
            .store = parts->store, .driver = parts->driver, .keeper = parts->keeper};
        m->fleet = (struct hfd_hs_fleet){&hfd_hs_fleet_store_ops, &m->rows};
    }
    if (h->on && parts->bell != NULL) {
        h->bell = parts->bell;
        h->listener = (struct hfd_bell_listener){.hear = on_bell, .ctx = h};
        hfd_bell_listen(h->bell, &h->listener);
    }
    for (size_t i = 0; rc == HFD_OK && i < h->management_count; i++) {
        struct hfd_hypershift *thread = NULL;

        config.management = h->checker.defaults.managements[i];
        config.access = &h->managements[i].access;
        config.fleet = &h->managements[i].fleet;
        rc = hfd_hypershift_start(&config, &thread, err);
        pthread_mutex_lock(&h->lock);
        h->managements[i].thread = thread;
        pthread_mutex_unlock(&h->lock);
    }
    return rc;
}

void hfd_serve_hypershift_stop(struct hfd_serve_hypershift *h)
{
    if (h->bell != NULL)
        hfd_bell_unlisten(h->bell, &h->listener);
    h->bell = NULL;
    for (size_t i = 0; i < h->management_count; i++) {
        struct hfd_hypershift *thread;

        pthread_mutex_lock(&h->lock);
        thread = h->managements[i].thread;
        h->managements[i].thread = NULL;
        pthread_mutex_unlock(&h->lock);
        hfd_hypershift_stop(&thread);
    }
}
