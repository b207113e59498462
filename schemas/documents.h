/*
 * The schema documents that the program contains: their text, to be served and registered, and
 * their compiled form. Thread: any.
 *
 * The operator's schemas of a cluster's and a nodepool's `spec`: the components ClusterSpec and
 * NodePoolSpec of an OpenAPI 3.0 document (setting fleet.spec_schema). Thread: start-up.
 */
#ifndef HFD_SCHEMAS_DOCUMENTS_H
#define HFD_SCHEMAS_DOCUMENTS_H

#include "schemas/validate.h"

/** Both schemas, or none. Immutable once loaded, shared by all threads. */
struct hfd_spec_schemas {
    struct hfd_schema *cluster;
    struct hfd_schema *nodepool;
};

/**
 * Reads a YAML or JSON file and compiles the two components.
 * @param out gives on HFD_OK, else empty; free with hfd_spec_schemas_free
 * @return HFD_OK, HFD_IO, HFD_INVALID (the message names the file, and the component or line),
 * HFD_LIMIT, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_spec_schemas_load(const char *path, struct hfd_spec_schemas *out,
                                            struct hfd_err *err);
void hfd_spec_schemas_free(struct hfd_spec_schemas *s);

/**
 * The text of schemas/input.json: InputData of the Humanitec Driver API, as this driver accepts it.
 */
hfd_slice hfd_schema_input_text(void);

/**
 * The same, compiled once.
 * @param out lives as long as the program
 * @return HFD_OK, HFD_NOMEM (a later call tries again)
 */
HFD_MUST_CHECK hfd_rc hfd_schema_input(const struct hfd_schema **out, struct hfd_err *err);

/**
 * The schemas of schemas/hypershift.json, compiled anew: what the HyperShift adapter reads in
 * specs.
 * @param out  gives on HFD_OK; free with hfd_spec_schemas_free
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_schema_hypershift(struct hfd_spec_schemas *out, struct hfd_err *err);

/**
 * The OpenAPI document of the whole program, as JSON. The build makes it: openapi.py puts the
 * version and schemas/input.json into schemas/openapi.yaml.
 */
hfd_slice hfd_openapi_text(void);

#endif
