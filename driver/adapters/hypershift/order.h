/*
 * Checks what an order asks of HyperShift, before anything is made: the schemas of
 * schemas/hypershift.json, and the rules that a schema cannot express. HyperShift's own CRD accepts
 * much that never works. Pure. Thread: any.
 */
#ifndef HFD_HYPERSHIFT_ORDER_H
#define HFD_HYPERSHIFT_ORDER_H

#include "driver/core/input.h"
#include "schemas/spec.h"

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
                                         struct hfd_mistakes *mistakes, struct hfd_err *err);

/**
 * The field of an order that a field of the object is made of: "spec.dns.baseDomain" is
 * "dns.base_domain". Pure.
 * @return static; NULL = there is none, or it is named the same
 */
const char *hfd_hs_order_field(hfd_slice field);

/**
 * The platform type of a cluster's spec, "None" if it names none.
 * @param spec  NULL = empty
 */
const char *hfd_hs_platform_type(const json_t *spec);
/** The member of spec.platform with the block of that type: "kubevirt"; NULL if it has none. */
const char *hfd_hs_platform_block(const char *type);
/** The namespace of a cluster's objects. */
hfd_slice hfd_hs_namespace_of(const json_t *cluster_spec, const struct hfd_hs_defaults *defaults);
/** The name of a cluster's management cluster. @param cluster_spec  NULL = empty */
hfd_slice hfd_hs_management_of(const json_t *cluster_spec);
/** True if the settings have a management cluster of that name. */
bool hfd_hs_has_management(const struct hfd_hs_defaults *defaults, hfd_slice name);
/** Writes "default, east": the names of the management clusters. Cut if there is no room. */
void hfd_hs_managements_text(const struct hfd_hs_defaults *defaults, char *out, size_t size);
/** True if HyperShift makes a domain of the management cluster's own. */
bool hfd_hs_is_passthrough(const json_t *cluster_spec);

#endif
