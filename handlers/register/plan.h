/*
 * The plan of a registration: resource types, drivers and resource definitions, as the bodies of
 * requests to the Humanitec API. The schema of the inputs is the one
 * that the server validates with. Pure. Thread: any.
 */
#ifndef HFD_REGISTER_PLAN_H
#define HFD_REGISTER_PLAN_H

#include <jansson.h>

#include "driver/base/buf.h"

/** A kind of resource at the driver. */
struct hfd_register_kind {
    const char *type; /* "hyperfleet-cluster": the resource type, and the id of the driver */
    const char *path; /* "clusters": the path at the driver */
};

/** The choices. Texts are borrowed, and NULL where nothing is chosen. */
struct hfd_register_config {
    const char *org;    /* the organisation's id */
    const char *target; /* the URL of the server */
    struct hfd_register_kind cluster, nodepool;
    const char *class_name, *env_type, *app; /* what the definitions match; NULL = any */
    const char *owner; /* the id of the cluster resource that a nodepool belongs to */
    bool k8s_cluster;  /* a definition of k8s-cluster as well */
};

/**
 * Checks the choices.
 * @return HFD_OK, HFD_INVALID (which one, and what was expected)
 */
HFD_MUST_CHECK hfd_rc hfd_register_config_check(const struct hfd_register_config *c,
                                                struct hfd_err *err);

/**
 * Makes the plan: {"organization", "resource_types", "drivers", "resource_definitions"}.
 * @param c    checked
 * @param out  gives; NULL on failure
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_register_plan(const struct hfd_register_config *c, json_t **out,
                                        struct hfd_err *err);

#endif
