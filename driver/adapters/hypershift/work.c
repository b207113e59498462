/* See work.h. */
#include "driver/adapters/hypershift/work.h"

#include "driver/adapters/hypershift/fleet.h"
#include "driver/adapters/hypershift/order.h"
#include "driver/base/trace.h"
#include "driver/base/yamlx.h"

/* ---- work ---- */

hfd_rc hfd_hs_read_validated(struct hfd_hs_work *w, struct hfd_err *err)
{
    const struct hfd_report_row *r = &w->prev_validation;
    const struct hfd_condition *c;
    struct hfd_conditions all;
    hfd_rc rc;

    w->validated = false;
    if (r->adapter.len == 0 || r->observed_generation != w->row.generation)
        return HFD_OK;
    rc = hfd_conditions_parse(r->conditions, w->mem, &all, err);
    if (rc != HFD_OK)
        return rc;
    c = hfd_condition_find(&all, HFD_SLICE("Available"));
    w->validated = c != NULL && c->status == HFD_STATUS_TRUE;
    return HFD_OK;
}

hfd_rc hfd_hs_work_load(struct hfd_hs_work *w, hfd_slice id, struct hfd_err *err)
{
    hfd_rc rc = w->fleet->ops->load(w->fleet->impl, w, id, err);
    struct hfd_trace trace;

    if (rc != HFD_OK)
        return rc;
    trace = hfd_trace_parse(w->row.trace);
    hfd_trace_enter(&trace);
    w->source.defaults = w->defaults;
    w->source.cluster_id = w->cluster.id;
    w->source.cluster_name = w->cluster.name;
    w->source.cluster_spec = w->cluster_spec;
    w->source.generation = w->row.generation;
    w->source.secrets = w->secrets;
    if (w->row.kind == HFD_KIND_NODEPOOL) {
        w->source.nodepool_id = w->row.id;
        w->source.nodepool_name = w->row.name;
        w->source.nodepool_spec = w->pool_spec;
    }
    w->object.name.namespace = hfd_hs_namespace_of(w->cluster_spec, w->defaults);
    w->object.name.type =
        w->row.kind == HFD_KIND_NODEPOOL ? &hfd_hs_node_pools : &hfd_hs_hosted_clusters;
    w->object.name.name = w->row.kind == HFD_KIND_NODEPOOL
                              ? hfd_hs_node_pool_name(w->cluster.name, w->row.name, w->mem)
                              : w->row.name;
    return w->object.name.name.p != NULL ? HFD_OK : hfd_fail_nomem(err, "visit a cluster");
}

void hfd_hs_work_fini(struct hfd_hs_work *w)
{
    json_decref(w->cluster_spec);
    json_decref(w->pool_spec);
    json_decref(w->secrets);
    json_decref(w->prev_data);
    json_decref(w->object.doc);
    json_decref(w->parent);
    json_decref(w->outputs);
    json_decref(w->tree);
    hfd_trace_enter(NULL);
}

struct hfd_reconciled hfd_reconcile(const struct hfd_reconciler *r, bool deleted, void *work)
{
    const struct hfd_steps *steps = deleted ? &r->teardown : &r->sync;

    for (size_t i = 0; i < steps->count; i++) {
        const struct hfd_step *step = &steps->items[i];
        enum hfd_step_end end;

        if (!r->is_current(work))
            return (struct hfd_reconciled){HFD_STEP_AGAIN, step};
        end = step->run(work);
        if (end != HFD_STEP_DONE)
            return (struct hfd_reconciled){end, step};
    }
    return (struct hfd_reconciled){HFD_STEP_DONE, NULL};
}

/* ---- outputs ---- */

#define SECRET_MAX_BYTES ((size_t)1 << 20)
#define PORT_MAX 65535

static const json_t *named(const json_t *doc, const char *list, const char *kind, hfd_slice name)
{
    const json_t *entries = json_object_get(doc, list);

    for (size_t i = 0; i < json_array_size(entries); i++)
        if (hfd_slice_eq(hfd_json_text(json_array_get(entries, i), "name"), name))
            return json_object_get(json_array_get(entries, i), kind);
    return NULL;
}

void hfd_hs_kubeconfig_split(hfd_slice kubeconfig, json_t **data, json_t **credentials)
{
    const json_t *context, *cluster, *user;
    json_t *doc;

    *data = NULL;
    *credentials = NULL;
    if (hfd_yaml_parse(kubeconfig, "kubeconfig", &doc, NULL) != HFD_OK)
        return;
    context = named(doc, "contexts", "context", hfd_json_text(doc, "current-context"));
    cluster = named(doc, "clusters", "cluster", hfd_json_text(context, "cluster"));
    user = named(doc, "users", "user", hfd_json_text(context, "user"));
    if (json_is_object(cluster))
        *data = hfd_json_deep_copy(cluster);
    if (json_is_object(user))
        *credentials = hfd_json_deep_copy(user);
    json_decref(doc);
}

/* Puts a value; a failure is only that an output is missing, and the next visit reads again. */
static void outputs_put(json_t *obj, const char *key, json_t *value)
{
    if (value != NULL)
        (void)json_object_set_new(obj, key, value);
}

/* The text of a member of a Secret. Empty = it has none. */
static hfd_slice secret_text(struct hfd_hs_work *w, const json_t *secret, const char *key)
{
    const hfd_slice coded = hfd_json_text(json_object_get(secret, "data"), key);
    unsigned char *bytes;
    size_t len;

    if (coded.len == 0 || coded.len > SECRET_MAX_BYTES)
        return HFD_SLICE("");
    bytes = hfd_arena_alloc(w->mem, coded.len);
    if (bytes == NULL || hfd_base64_decode(coded, bytes, coded.len, &len) != HFD_OK)
        return HFD_SLICE("");
    return (hfd_slice){(const char *)bytes, len};
}

/* Reads the Secret that status names. @param out  its text; empty = it is not there yet */
static enum hfd_step_end read_secret(struct hfd_hs_work *w, const char *member, const char *key,
                                     hfd_slice *out)
{
    const json_t *status = json_object_get(w->object.doc, "status");
    const struct hfd_kube_object name = {&hfd_hs_secrets, w->object.name.namespace,
                                         hfd_json_text(json_object_get(status, member), "name")};
    enum hfd_step_end end;
    json_t *doc = NULL;

    *out = HFD_SLICE("");
    if (name.name.len == 0)
        return HFD_STEP_DONE;
    end = hfd_hs_read(w, &name, &doc);
    if (end == HFD_STEP_DONE && doc != NULL)
        *out = secret_text(w, doc, key);
    json_decref(doc);
    return end;
}

static void put_endpoint(struct hfd_hs_work *w, json_t *out)
{
    const json_t *status = json_object_get(w->object.doc, "status");
    const json_t *endpoint = json_object_get(status, "controlPlaneEndpoint");
    const hfd_slice host = hfd_json_text(endpoint, "host");
    const json_int_t port = json_integer_value(json_object_get(endpoint, "port"));
    const bool v6 = host.len > 0 && memchr(host.p, ':', host.len) != NULL;
    hfd_slice url;

    if (host.len == 0 || port < 1 || port > PORT_MAX)
        return;
    url = hfd_arena_printf(w->mem, "https://%s%.*s%s:%lld", v6 ? "[" : "", HFD_SLICE_FMT(host),
                           v6 ? "]" : "", (long long)port);
    if (url.p != NULL)
        outputs_put(out, "endpoint", json_stringn(url.p, url.len));
}

static void put_version(const struct hfd_hs_work *w, json_t *out)
{
    const json_t *status = json_object_get(w->object.doc, "status");
    const json_t *history = json_object_get(json_object_get(status, "version"), "history");
    const hfd_slice version = hfd_json_text(json_array_get(history, 0), "version");

    if (version.len > 0)
        outputs_put(out, "version", json_stringn(version.p, version.len));
}

static void put_kubeconfig(struct hfd_hs_work *w, json_t *out, json_t *secrets, hfd_slice text)
{
    const json_t *status = json_object_get(w->object.doc, "status");
    const hfd_slice name = hfd_json_text(json_object_get(status, "kubeconfig"), "name");
    json_t *data, *credentials;

    if (text.len == 0)
        return;
    hfd_hs_kubeconfig_split(text, &data, &credentials);
    outputs_put(secrets, "kubeconfig", json_stringn(text.p, text.len));
    outputs_put(secrets, "credentials", credentials);
    outputs_put(out, "cluster_data", data);
    outputs_put(out, "cluster_type", json_string("k8s"));
    outputs_put(out, "kubeconfig_secret",
                json_pack("{s:s%,s:s%}", "namespace", w->object.name.namespace.p,
                          w->object.name.namespace.len, "name", name.p, name.len));
}

enum hfd_step_end hfd_hs_outputs_read(void *arg)
{
    struct hfd_hs_work *w = arg;
    hfd_slice kubeconfig, password;
    json_t *out, *secrets;
    enum hfd_step_end end = read_secret(w, "kubeconfig", "kubeconfig", &kubeconfig);

    if (end == HFD_STEP_DONE)
        end = read_secret(w, "kubeadminPassword", "password", &password);
    if (end != HFD_STEP_DONE)
        return end;
    out = json_object();
    secrets = json_object();
    if (out == NULL || secrets == NULL) {
        json_decref(out);
        json_decref(secrets);
        return hfd_hs_end(w, HFD_STEP_FAULT, "OutOfMemory", "out of memory");
    }
    put_endpoint(w, out);
    put_version(w, out);
    put_kubeconfig(w, out, secrets, kubeconfig);
    if (password.len > 0)
        outputs_put(secrets, "kubeadmin_password", json_stringn(password.p, password.len));
    outputs_put(out, "secrets", secrets);
    json_decref(w->outputs);
    w->outputs = out;
    return HFD_STEP_DONE;
}
