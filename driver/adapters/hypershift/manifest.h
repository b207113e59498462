/*
 * Builds the objects that the adapter applies on a management cluster, from the specs of HyperFleet
 * resources. It writes no status, and only fields that the adapter owns. Pure. Thread: any.
 */
#ifndef HFD_HYPERSHIFT_MANIFEST_H
#define HFD_HYPERSHIFT_MANIFEST_H

#include "driver/adapters/hypershift/order.h"

/** The source of the objects of one cluster or nodepool. Texts and documents are borrowed. */
struct hfd_hs_source {
    const struct hfd_hs_defaults *defaults;
    hfd_slice guresid; /* empty for clusters that no order made */
    hfd_slice cluster_id, cluster_name;
    const json_t *cluster_spec;
    hfd_slice nodepool_id, nodepool_name; /* empty for the objects of a cluster */
    const json_t *nodepool_spec;
    int64_t generation;    /* of the cluster or nodepool */
    const json_t *secrets; /* driver.secrets of the order; NULL = none */
};

/*
 * Each gives the JSON text of an object in mem.
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_hs_namespace_manifest(hfd_slice name, struct hfd_arena *mem,
                                                hfd_slice *out, struct hfd_err *err);
/** Gives an empty text if there is no pull secret. */
HFD_MUST_CHECK hfd_rc hfd_hs_pull_secret_manifest(const struct hfd_hs_source *source,
                                                  struct hfd_arena *mem, hfd_slice *out,
                                                  struct hfd_err *err);
/** Gives an empty text if the order has no key. */
HFD_MUST_CHECK hfd_rc hfd_hs_ssh_key_manifest(const struct hfd_hs_source *source,
                                              struct hfd_arena *mem, hfd_slice *out,
                                              struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_hs_hosted_cluster_manifest(const struct hfd_hs_source *source,
                                                     struct hfd_arena *mem, hfd_slice *out,
                                                     struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_hs_node_pool_manifest(const struct hfd_hs_source *source,
                                                struct hfd_arena *mem, hfd_slice *out,
                                                struct hfd_err *err);

#define HFD_HS_PULL_SECRET_SUFFIX "-pull-secret"
#define HFD_HS_SSH_KEY_SUFFIX "-ssh-key"
/** Names of objects. p is NULL if memory is short. */
static inline hfd_slice hfd_hs_pull_secret_name(hfd_slice cluster_name, struct hfd_arena *mem)
{
    return hfd_arena_printf(mem, "%.*s" HFD_HS_PULL_SECRET_SUFFIX, HFD_SLICE_FMT(cluster_name));
}
static inline hfd_slice hfd_hs_ssh_key_name(hfd_slice cluster_name, struct hfd_arena *mem)
{
    return hfd_arena_printf(mem, "%.*s" HFD_HS_SSH_KEY_SUFFIX, HFD_SLICE_FMT(cluster_name));
}
/** The name of the cluster that a Secret of ours is for; empty if its name is another. */
hfd_slice hfd_hs_secret_cluster_name(hfd_slice secret_name);
static inline hfd_slice hfd_hs_node_pool_name(hfd_slice cluster_name, hfd_slice pool_name,
                                              struct hfd_arena *mem)
{
    return hfd_arena_printf(mem, "%.*s-%.*s", HFD_SLICE_FMT(cluster_name),
                            HFD_SLICE_FMT(pool_name));
}

#endif
