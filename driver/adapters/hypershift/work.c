/* See work.h. */
#include "driver/adapters/hypershift/work.h"

#include "driver/adapters/hypershift/cluster.h"
#include "driver/adapters/hypershift/fleet.h"
#include "driver/adapters/hypershift/names.h"
#include "driver/adapters/hypershift/pool.h"

bool hfd_hs_pool_wants_nodes(bool deleting, const json_t *spec)
{
    const json_t *replicas = json_object_get(spec, "replicas");

    return !deleting && (replicas == NULL || json_integer_value(replicas) > 0);
}

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

    if (rc != HFD_OK)
        return rc;
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
}

struct hfd_reconciled hfd_hs_work_run(struct hfd_hs_work *w)
{
    const struct hfd_reconciler *r =
        w->row.kind == HFD_KIND_CLUSTER ? &hfd_hs_cluster_steps : &hfd_hs_pool_steps;

    return hfd_reconcile(r, w->row.deleted_us != 0, w);
}
