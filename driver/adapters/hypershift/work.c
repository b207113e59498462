/* See work.h. */
#include "driver/adapters/hypershift/work.h"

#include "driver/adapters/hypershift/cluster.h"
#include "driver/adapters/hypershift/names.h"
#include "driver/adapters/hypershift/pool.h"
#include "driver/core/secrets.h"
#include "store/rows_part.h"

static hfd_rc parse(hfd_slice text, json_t **out, struct hfd_err *err)
{
    return hfd_json_parse(text, out, err);
}

/* Replaces a document of the work: a transaction function may run again. */
static hfd_rc read_json(json_t **doc, hfd_slice text, struct hfd_err *err)
{
    json_decref(*doc);
    *doc = NULL;
    return parse(text, doc, err);
}

static hfd_rc read_cluster(struct hfd_txn *tx, struct hfd_hs_work *w, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    w->cluster = w->row;
    w->has_cluster = true;
    if (w->row.kind == HFD_KIND_NODEPOOL)
        rc = hfd_fleet_row_get(tx, w->row.owner_id, w->mem, &w->cluster, err);
    if (rc == HFD_NOT_FOUND) {
        w->has_cluster = false;
        return HFD_OK;
    }
    return rc == HFD_OK ? read_json(&w->cluster_spec, w->cluster.spec, err) : rc;
}

/* A nodepool wants nodes unless it says `replicas: 0`. */
static hfd_rc pool_wants_nodes(struct hfd_txn *tx, hfd_slice id, bool *yes, struct hfd_err *err)
{
    struct hfd_fleet_row row;
    struct hfd_arena scratch;
    const json_t *replicas;
    json_t *spec = NULL;
    hfd_rc rc;

    hfd_arena_init(&scratch, (size_t)8 << 20);
    rc = hfd_fleet_row_get(tx, id, &scratch, &row, err);
    if (rc == HFD_OK)
        rc = parse(row.spec, &spec, err);
    if (rc == HFD_OK) {
        replicas = json_object_get(spec, "replicas");
        *yes = row.deleted_us == 0 && (replicas == NULL || json_integer_value(replicas) > 0);
    }
    json_decref(spec);
    hfd_arena_fini(&scratch);
    return rc;
}

static hfd_rc read_children(struct hfd_txn *tx, struct hfd_hs_work *w, struct hfd_err *err)
{
    struct hfd_fleet_list children;
    hfd_rc rc;

    w->wants_nodes = false;
    w->has_children = false;
    if (w->row.kind != HFD_KIND_CLUSTER)
        return HFD_OK;
    rc = hfd_fleet_row_children(tx, w->row.id, w->mem, &children, err);
    w->has_children = rc == HFD_OK && children.count > 0;
    for (size_t i = 0; rc == HFD_OK && !w->wants_nodes && i < children.count; i++)
        rc = pool_wants_nodes(tx, children.rows[i].id, &w->wants_nodes, err);
    return rc;
}

static hfd_rc read_report(struct hfd_txn *tx, struct hfd_hs_work *w, const char *adapter,
                          struct hfd_report_row *out, struct hfd_err *err)
{
    const struct hfd_report_key key = {w->row.id, hfd_slice_of(adapter)};
    hfd_rc rc = hfd_report_row_get(tx, &key, w->mem, out, err);

    if (rc != HFD_NOT_FOUND)
        return rc;
    *out = (struct hfd_report_row){.adapter = HFD_SLICE("")};
    return HFD_OK;
}

static hfd_rc read_reports(struct hfd_txn *tx, struct hfd_hs_work *w, struct hfd_err *err)
{
    hfd_rc rc = read_report(tx, w, HFD_HS_ADAPTER, &w->prev, err);

    if (rc == HFD_OK)
        rc = read_report(tx, w, HFD_HS_VALIDATION, &w->prev_validation, err);
    w->prev_secrets = HFD_SLICE("");
    if (rc == HFD_OK)
        rc = read_json(
            &w->prev_data,
            w->prev.adapter.len > 0 && w->prev.data.len > 0 ? w->prev.data : HFD_SLICE("{}"), err);
    if (rc == HFD_OK && w->prev.adapter.len > 0 && w->prev.secrets.len > 0 &&
        hfd_report_secrets_open(w->driver, &w->prev, w->mem, &w->prev_secrets) != HFD_OK)
        w->prev_secrets = HFD_SLICE(""); /* a key is missing: they are sealed anew */
    return rc;
}

/* Validation passed before at this generation. */
static hfd_rc read_validated(struct hfd_hs_work *w, struct hfd_err *err)
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

/* The GUResID of the resource that the cluster or nodepool is a part of, and its secrets. */
static hfd_rc read_order(struct hfd_txn *tx, struct hfd_hs_work *w, struct hfd_err *err)
{
    const struct hfd_ctx c = {.tx = tx, .driver = w->driver, .mem = w->mem, .err = err};
    struct hfd_part_row part;
    hfd_slice plain;
    hfd_rc rc = hfd_part_row_by_fleet(tx, w->row.id, w->mem, &part, err);

    if (rc != HFD_OK && rc != HFD_NOT_FOUND)
        return rc;
    w->source.guresid = rc == HFD_OK ? part.guresid : HFD_SLICE("");
    rc = hfd_order_secrets_open(&c, w->source.guresid, &plain);
    return rc == HFD_OK ? read_json(&w->secrets, plain, err) : rc;
}

static hfd_rc load(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct hfd_hs_visit *visit = arg;
    struct hfd_hs_work *w = visit->work;
    hfd_rc rc = hfd_fleet_row_get(tx, visit->id, w->mem, &w->row, err);

    if (rc == HFD_OK)
        rc = read_cluster(tx, w, err);
    if (rc == HFD_OK && w->row.kind == HFD_KIND_NODEPOOL)
        rc = read_json(&w->pool_spec, w->row.spec, err);
    if (rc == HFD_OK)
        rc = read_children(tx, w, err);
    if (rc == HFD_OK)
        rc = read_reports(tx, w, err);
    if (rc == HFD_OK)
        rc = read_validated(w, err);
    return rc == HFD_OK ? read_order(tx, w, err) : rc;
}

hfd_rc hfd_hs_work_load(struct hfd_hs_work *w, hfd_slice id, struct hfd_err *err)
{
    struct hfd_hs_visit visit = {id, w};
    hfd_rc rc = hfd_store_read(w->reader, load, &visit, err);

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
}

struct hfd_reconciled hfd_hs_work_run(struct hfd_hs_work *w)
{
    const struct hfd_reconciler *r =
        w->row.kind == HFD_KIND_CLUSTER ? &hfd_hs_cluster_steps : &hfd_hs_pool_steps;

    return hfd_reconcile(r, w->row.deleted_us != 0, w);
}
