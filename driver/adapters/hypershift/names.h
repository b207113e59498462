/*
 * Names that the HyperShift adapter and the management cluster share: kinds of objects, labels,
 * adapters. Source: HyperShift API, hypershift.openshift.io/v1beta1. Thread: any.
 */
#ifndef HFD_HYPERSHIFT_NAMES_H
#define HFD_HYPERSHIFT_NAMES_H

#include "driver/kube/client.h"

#define HFD_HS_ADAPTER "hypershift"
#define HFD_HS_VALIDATION "validation"
#define HFD_HS_MANAGER "hyperfleet-driver"

#define HFD_HS_LABEL_CLUSTER "hyperfleet.io/cluster-id"
#define HFD_HS_LABEL_NODEPOOL "hyperfleet.io/nodepool-id"
#define HFD_HS_LABEL_MANAGER "hyperfleet.io/managed-by"
#define HFD_HS_LABEL_TYPE "hyperfleet.io/resource-type"
#define HFD_HS_LABEL_GURESID "humanitec_guresid"
#define HFD_HS_GENERATION "hyperfleet.io/generation"
#define HFD_HS_OURS HFD_HS_LABEL_MANAGER "=" HFD_HS_ADAPTER

extern const struct hfd_kube_type hfd_hs_hosted_clusters, hfd_hs_node_pools, hfd_hs_secrets,
    hfd_hs_namespaces;

/** The kind of an object as EMCO has it: Group, Version, Kind. @return gives; NULL = no memory */
json_t *hfd_hs_gvk(const struct hfd_kube_type *type);

/** The namespace that HyperShift makes for a control plane. p is NULL if memory is short. */
hfd_slice hfd_hs_control_plane_namespace(hfd_slice namespace, hfd_slice cluster_name,
                                         struct hfd_arena *mem);

#endif
