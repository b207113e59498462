/* See names.h. */
#include "driver/adapters/hypershift/names.h"

#define HYPERSHIFT "hypershift.openshift.io/v1beta1"

const struct hfd_kube_type hfd_hs_hosted_clusters = {HYPERSHIFT, "HostedCluster", "hostedclusters",
                                                     false},
                           hfd_hs_node_pools = {HYPERSHIFT, "NodePool", "nodepools", false},
                           hfd_hs_secrets = {"v1", "Secret", "secrets", false},
                           hfd_hs_namespaces = {"v1", "Namespace", "namespaces", true};

json_t *hfd_hs_gvk(const struct hfd_kube_type *type)
{
    const char *slash = strchr(type->group_version, '/');
    const size_t group = slash != NULL ? (size_t)(slash - type->group_version) : 0;

    return json_pack("{s:s%,s:s,s:s}", "Group", type->group_version, group, "Version",
                     slash != NULL ? slash + 1 : type->group_version, "Kind", type->kind);
}

/* Names of ours have no dots, which HyperShift would replace. */
hfd_slice hfd_hs_control_plane_namespace(hfd_slice namespace, hfd_slice cluster_name,
                                         struct hfd_arena *mem)
{
    return hfd_arena_printf(mem, "%.*s-%.*s", HFD_SLICE_FMT(namespace),
                            HFD_SLICE_FMT(cluster_name));
}
