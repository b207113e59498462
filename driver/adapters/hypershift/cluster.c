/* See cluster.h. */
#include "driver/adapters/hypershift/cluster.h"

#include "driver/adapters/hypershift/lost.h"
#include "driver/adapters/hypershift/names.h"
#include "driver/adapters/hypershift/outputs.h"
#include "driver/adapters/hypershift/steps.h"

#define PAGE_LIMIT 50

/* ---- sync ---- */

/* The namespace is made if it is missing, and never changed or deleted. */
static enum hfd_step_end make_namespace(void *arg)
{
    struct hfd_hs_work *w = arg;
    const struct hfd_kube_object name = {.type = &hfd_hs_namespaces,
                                         .name = hfd_hs_work_namespace(w)};
    struct hfd_kube_apply apply = {.object = name, .manager = HFD_HS_MANAGER};
    enum hfd_step_end end;
    json_t *doc = NULL;

    if (w->object.doc != NULL)
        return HFD_STEP_DONE;
    end = hfd_hs_read(w, &name, &doc);
    if (end != HFD_STEP_DONE || doc != NULL) {
        json_decref(doc);
        return end;
    }
    if (hfd_hs_namespace_manifest(name.name, w->mem, &apply.body, NULL) != HFD_OK)
        return hfd_hs_out_of_memory(w);
    return hfd_hs_apply(w, &apply, NULL);
}

/* Applies a Secret of the cluster. An empty manifest is none. */
static enum hfd_step_end apply_secret(struct hfd_hs_work *w, hfd_slice name, hfd_slice manifest)
{
    const struct hfd_kube_apply apply = {
        .object = {&hfd_hs_secrets, hfd_hs_work_namespace(w), name},
        .manager = HFD_HS_MANAGER,
        .body = manifest};
    enum hfd_step_end end;
    json_t *doc = NULL;

    if (name.p == NULL)
        return hfd_hs_out_of_memory(w);
    if (manifest.len == 0 || !hfd_hs_must_apply(w))
        return HFD_STEP_DONE;
    end = hfd_hs_read(w, &apply.object, &doc);
    if (end == HFD_STEP_DONE && doc != NULL && !hfd_hs_is_ours(w, doc))
        end = hfd_hs_refuse_strange(w, &apply.object);
    json_decref(doc);
    return end == HFD_STEP_DONE ? hfd_hs_apply(w, &apply, NULL) : end;
}

static enum hfd_step_end apply_pull_secret(void *arg)
{
    struct hfd_hs_work *w = arg;
    hfd_slice manifest;

    if (hfd_hs_pull_secret_manifest(&w->source, w->mem, &manifest, NULL) != HFD_OK)
        return hfd_hs_out_of_memory(w);
    return apply_secret(w, hfd_hs_pull_secret_name(w->cluster.name, w->mem), manifest);
}

static enum hfd_step_end apply_ssh_key(void *arg)
{
    struct hfd_hs_work *w = arg;
    hfd_slice manifest;

    if (hfd_hs_ssh_key_manifest(&w->source, w->mem, &manifest, NULL) != HFD_OK)
        return hfd_hs_out_of_memory(w);
    return apply_secret(w, hfd_hs_ssh_key_name(w->cluster.name, w->mem), manifest);
}

static int64_t since(int64_t *since_us, bool holds, int64_t mono_us)
{
    if (!holds)
        *since_us = 0;
    else if (*since_us == 0)
        *since_us = mono_us;
    return holds ? mono_us - *since_us : 0;
}

/* A cluster without its kubeconfig is not done: its Secret may come after its status. */
static bool has_kubeconfig(const struct hfd_hs_work *w)
{
    return json_object_get(json_object_get(w->outputs, "secrets"), "kubeconfig") != NULL;
}

static enum hfd_step_end pass_gates(void *arg)
{
    struct hfd_hs_work *w = arg;
    struct hfd_hs_facts facts = hfd_hs_facts_of(w);

    facts.wants_nodes = w->wants_nodes;
    facts.invalid_for_us =
        since(&w->record->invalid_since_us, hfd_hs_is_invalid(w->object.doc), w->mono_us);
    hfd_hs_judge_cluster(&facts, &w->judgement);
    if (w->judgement.stage == HFD_HS_REACHED && !has_kubeconfig(w)) {
        w->judgement.stage = HFD_HS_WAITS;
        w->judgement.gate = "Kubeconfig";
    }
    return hfd_hs_end_by_judgement(w);
}

static const struct hfd_step cluster_sync[] = {
    {"Management", hfd_hs_find_management},
    {"Found", hfd_hs_find},
    {"Replaced", hfd_hs_wait_for_old},
    {"Namespace", make_namespace},
    {"Validated", hfd_hs_validate},
    {"PullSecret", apply_pull_secret},
    {"SSHKey", apply_ssh_key},
    {"HostedCluster", hfd_hs_apply_object},
    {"Outputs", hfd_hs_outputs_read},
    {"Gates", pass_gates},
};

/* ---- teardown ---- */

struct pools {
    struct hfd_hs_work *w;
    size_t left;
    char name[128]; /* one of them */
    enum hfd_step_end end;
};

static bool delete_pool(void *arg, const json_t *item)
{
    struct pools *p = arg;
    const hfd_slice name = hfd_hs_metadata(item, "name");
    const struct hfd_kube_object object = {&hfd_hs_node_pools, hfd_hs_work_namespace(p->w), name};

    if (!hfd_hs_is_ours(p->w, item))
        return true;
    p->left++;
    (void)snprintf(p->name, sizeof(p->name), "%.*s", HFD_SLICE_FMT(name));
    p->end = hfd_hs_delete(p->w, &object, item);
    return p->end == HFD_STEP_DONE;
}

static enum hfd_step_end delete_pools_by(struct hfd_hs_work *w, struct pools *p, const char *label,
                                         hfd_slice value)
{
    const hfd_slice selector =
        hfd_arena_printf(w->mem, HFD_HS_OURS ",%s=%.*s", label, HFD_SLICE_FMT(value));
    const struct hfd_kube_list list = {
        .objects = {.type = &hfd_hs_node_pools, .namespace = hfd_hs_work_namespace(w)},
        .selector = selector.p,
        .metadata_only = true,
        .page_limit = PAGE_LIMIT,
        .on_item = delete_pool,
        .ctx = p};
    enum hfd_step_end end;

    if (selector.p == NULL)
        return hfd_hs_out_of_memory(w);
    p->end = HFD_STEP_DONE;
    end = hfd_hs_list(w, &list);
    return end == HFD_STEP_DONE ? p->end : end;
}

/* Reads the HostedCluster, for the report: it stands while its pools go. */
static enum hfd_step_end read_own(struct hfd_hs_work *w)
{
    const enum hfd_step_end end = hfd_hs_read(w, &w->object.name, &w->object.doc);

    if (end == HFD_STEP_DONE && w->object.doc != NULL && !hfd_hs_is_ours(w, w->object.doc)) {
        json_decref(w->object.doc); /* what it says is not reported */
        w->object.doc = NULL;
    }
    return end;
}

/* Pools go before their cluster. Those that were made by nodepool resources go as well. */
static enum hfd_step_end delete_pools(void *arg)
{
    struct hfd_hs_work *w = arg;
    struct pools p = {.w = w};
    enum hfd_step_end end = read_own(w);

    if (end == HFD_STEP_DONE)
        end = delete_pools_by(w, &p, HFD_HS_LABEL_CLUSTER, w->cluster.id);
    if (end == HFD_STEP_DONE && w->source.guresid.len > 0)
        end = delete_pools_by(w, &p, HFD_HS_LABEL_GURESID, w->source.guresid);
    if (end != HFD_STEP_DONE || p.left == 0)
        return end;
    return hfd_hs_end(w, HFD_STEP_WAITS, "Deleting", "waits for NodePool %s to be gone", p.name);
}

static enum hfd_step_end delete_secret(struct hfd_hs_work *w, hfd_slice name)
{
    const struct hfd_kube_object object = {&hfd_hs_secrets, hfd_hs_work_namespace(w), name};
    enum hfd_step_end end;
    json_t *doc = NULL;

    if (name.p == NULL)
        return hfd_hs_out_of_memory(w);
    end = hfd_hs_read(w, &object, &doc);
    if (end == HFD_STEP_DONE && doc != NULL && hfd_hs_is_ours(w, doc)) {
        end = hfd_hs_delete(w, &object, doc);
        if (end == HFD_STEP_DONE)
            end = hfd_hs_read(w, &object, &doc);
        if (end == HFD_STEP_DONE && doc != NULL)
            end = hfd_hs_wait_gone(w, &object);
    }
    json_decref(doc);
    return end;
}

static enum hfd_step_end delete_secrets(void *arg)
{
    struct hfd_hs_work *w = arg;
    enum hfd_step_end end = delete_secret(w, hfd_hs_pull_secret_name(w->cluster.name, w->mem));

    return end == HFD_STEP_DONE ? delete_secret(w, hfd_hs_ssh_key_name(w->cluster.name, w->mem))
                                : end;
}

static const struct hfd_step cluster_teardown[] = {
    {"Management", hfd_hs_find_management},
    {"Lost", hfd_hs_find_lost},
    {"NodePools", delete_pools},
    {"HostedCluster", hfd_hs_delete_object},
    {"Secrets", delete_secrets},
};

const struct hfd_reconciler hfd_hs_cluster_steps = {
    .sync = HFD_HS_STEPS(cluster_sync),
    .teardown = HFD_HS_STEPS(cluster_teardown),
    .is_current = hfd_hs_is_current,
};
