/*
 * The operator's schemas of a cluster's and a nodepool's `spec`: the components ClusterSpec and
 * NodePoolSpec of an OpenAPI 3.0 document (setting fleet.spec_schema). Thread: start-up.
 */
#ifndef HFD_SCHEMAS_SPEC_H
#define HFD_SCHEMAS_SPEC_H

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

#endif
