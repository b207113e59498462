/*
 * Registration of this driver at an orchestrator: resource types, drivers and resource
 * definitions. The documents are the templates of this folder, filled with the choices. The schema
 * of the inputs is the one that the server validates with. Pure. Thread: any.
 */
#ifndef HFD_REGISTER_REGISTER_H
#define HFD_REGISTER_REGISTER_H

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

enum hfd_register_form {
    HFD_REGISTER_HUMCTL,    /* a script with documents for humctl; it may run again */
    HFD_REGISTER_TERRAFORM, /* resources of the provider humanitec/humanitec */
    HFD_REGISTER_STELLWERK  /* resources of the provider stellwerk-labs/platform-orchestrator */
};

/** Adds the document of a form. @param c  checked */
void hfd_register_write(struct hfd_buf *b, enum hfd_register_form form,
                        const struct hfd_register_config *c);

/**
 * Takes the next document out of the form for humctl: {"kind", "metadata": {"id"}, "entity"}, or a
 * driver.
 * @return gives; NULL at the end, or if memory is short
 */
json_t *hfd_register_next(hfd_slice *rest);

enum hfd_register_thing {
    HFD_REGISTER_TYPE,
    HFD_REGISTER_DRIVER,
    HFD_REGISTER_DEFINITION
};

/**
 * Adds the paths in which a thing differs, as ": target, inputs_schema.properties.values". A
 * definition may have more than what is registered, as organisations fill in its spec.
 * @param have  the organisation's; @param want  what is registered
 * @return how many differences there are
 */
size_t hfd_register_compare(enum hfd_register_thing thing, const json_t *have, const json_t *want,
                            struct hfd_buf *b);

#endif
