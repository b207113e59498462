/*
 * manifests of OutputData: Kubernetes objects that an adapter reports, for the orchestrator to put
 * into the cluster. Source: Humanitec Driver API 0.9.3, OutputData. Thread: writer, inside a
 * transaction function.
 */
#ifndef HFD_CORE_MANIFESTS_H
#define HFD_CORE_MANIFESTS_H

#include "driver/core/parts.h"

/**
 * Adds the array of manifests that driver.outputs.manifests names in the report on the main part,
 * or nothing without that setting. Leaves a manifest out that is malformed, and logs it.
 * @param was  the array so far: the same one is not logged again
 * @return HFD_OK, HFD_NOMEM, HFD_CORRUPT; b has the failures of a buffer
 */
HFD_MUST_CHECK hfd_rc hfd_manifests_add(const struct hfd_ctx *c, const struct hfd_part *main,
                                        hfd_slice was, struct hfd_buf *b);

#endif
