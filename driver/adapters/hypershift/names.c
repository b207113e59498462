/* See names.h. */
#include "driver/adapters/hypershift/names.h"

#define HYPERSHIFT "hypershift.openshift.io/v1beta1"

const struct hfd_kube_type hfd_hs_hosted_clusters = {HYPERSHIFT, "HostedCluster", "hostedclusters",
                                                     false},
                           hfd_hs_node_pools = {HYPERSHIFT, "NodePool", "nodepools", false},
                           hfd_hs_secrets = {"v1", "Secret", "secrets", false},
                           hfd_hs_namespaces = {"v1", "Namespace", "namespaces", true};
