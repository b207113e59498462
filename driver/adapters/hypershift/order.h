/*
 * Names that the HyperShift adapter and the management cluster share: kinds of objects, labels,
 * adapters. Source: HyperShift API, hypershift.openshift.io/v1beta1. Thread: any.
 *
 * Checks what an order asks of HyperShift, before anything is made: the schemas of
 * schemas/hypershift.json, and the rules that a schema cannot express. HyperShift's own CRD accepts
 * much that never works. Pure. Thread: any.
 *
 * Refuses orders that HyperShift could not carry out: names that meet,
 * fields that cannot change, nodepools that do not fit their cluster. Thread: writer, inside
 * the transaction of a PUT.
 */
#ifndef HFD_HYPERSHIFT_ORDER_H
#define HFD_HYPERSHIFT_ORDER_H

#include "driver/core/driver.h"
#include "driver/core/input.h"
#include "driver/kube/client.h"
#include "schemas/documents.h"

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

/** The settings hypershift.*, which hold for orders that say nothing. Texts are borrowed. */
struct hfd_hs_defaults {
    hfd_slice namespace;
    hfd_slice release_image, base_domain, nodeport_address; /* empty = the order has to say it */
    hfd_slice pull_secret;                                  /* JSON; likewise */
    /* Names of the management clusters. None = there is HFD_HS_MANAGEMENT alone. */
    const hfd_slice *managements;
    size_t management_count;
    bool list_secrets; /* the account may list Secrets: those that are left alone are found */
};

/** The name of the management cluster of orders that name none. */
#define HFD_HS_MANAGEMENT "default"

/** The context of hfd_hs_order_check. */
struct hfd_hs_checker {
    struct hfd_hs_defaults defaults;
    struct hfd_spec_schemas schemas;
};

/** Checks an order: an hfd_order_check_fn whose context is a struct hfd_hs_checker. */
HFD_MUST_CHECK hfd_rc hfd_hs_order_check(const void *ctx, const struct hfd_ordered *order,
                                         struct hfd_input_errors *errors, struct hfd_err *err);

/**
 * The field of an order that a field of the object is made of, as the order has it:
 * "spec.dns.baseDomain" is "dns.base_domain", or "raw.hosted_cluster.spec.dns.baseDomain". Pure.
 * @param spec  of the cluster or nodepool
 * @return in mem; empty: there is none
 */
hfd_slice hfd_hs_order_field(const json_t *spec, bool of_pool, hfd_slice field,
                             struct hfd_arena *mem);

/**
 * The platform type of a cluster's spec, "None" if it names none.
 * @param spec  NULL = empty
 */
static inline const char *hfd_hs_platform_type(const json_t *spec)
{
    const json_t *type = json_object_get(json_object_get(spec, "platform"), "type");

    return json_is_string(type) ? json_string_value(type) : "None";
}
/** The member of spec.platform with the block of that type: "kubevirt"; NULL if it has none. */
const char *hfd_hs_platform_block(const char *type);
/** The namespace of a cluster's objects. */
static inline hfd_slice hfd_hs_namespace_of(const json_t *cluster_spec,
                                            const struct hfd_hs_defaults *defaults)
{
    const char *given = json_string_value(json_object_get(cluster_spec, "namespace"));

    return given != NULL ? hfd_slice_of(given) : defaults->namespace;
}
/** The name of a cluster's management cluster. @param cluster_spec  NULL = empty */
static inline hfd_slice hfd_hs_management_of(const json_t *cluster_spec)
{
    const char *given = json_string_value(json_object_get(cluster_spec, "management"));

    return given != NULL ? hfd_slice_of(given) : HFD_SLICE(HFD_HS_MANAGEMENT);
}
/** True if the settings have a management cluster of that name. */
bool hfd_hs_has_management(const struct hfd_hs_defaults *defaults, hfd_slice name);
/** Writes "default, east": the names of the management clusters. Cut if there is no room. */
void hfd_hs_managements_text(const struct hfd_hs_defaults *defaults, char *out, size_t size);
/** True if HyperShift makes a domain of the management cluster's own. */
static inline bool hfd_hs_is_passthrough(const json_t *cluster_spec)
{
    const json_t *block = json_object_get(json_object_get(cluster_spec, "platform"), "kubevirt");

    return json_is_true(json_object_get(block, "baseDomainPassthrough"));
}

/**
 * Checks spec.networking. Members of a wrong type count as absent. Pure.
 * @param networking  NULL = none; then the defaults of HyperShift hold, which fit
 * @param field  where the first mistake is: "networking.cluster_network[0]"
 * @param what   what was expected
 * @return true if there is no mistake
 */
bool hfd_hs_networks_check(const json_t *networking, char field[64], char what[160]);

/** hfd_adapter_hooks.admit. @return HFD_OK, HFD_INVALID, HFD_IMMUTABLE */
HFD_MUST_CHECK hfd_rc hfd_hs_admit(const struct hfd_hs_checker *checker, const struct hfd_ctx *c,
                                   const struct hfd_call *call, const struct hfd_resource_row *was);

#endif
