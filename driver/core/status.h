/*
 * EMCO's status query of a driver resource or a HyperFleet cluster, as transaction functions. State
 * comes from the one history, objects from the adapters' reports. An instance that has ended is
 * read from what was kept of it. Source: EMCO status query; handlers/docs/status.md. Thread: any
 * reader.
 */
#ifndef HFD_CORE_STATUS_H
#define HFD_CORE_STATUS_H

#include "driver/core/driver.h"
#include "driver/status/status.h"

/**
 * Answers the query of a driver resource, also of one that was removed within driver.tombstone.
 * @param call  guresid and only; no cookie is needed
 * @param out   sorted; in call->mem
 * @return HFD_OK, HFD_NOT_FOUND (no such resource, or instance), HFD_LIMIT (its objects were too
 * many to be kept)
 */
HFD_MUST_CHECK hfd_rc hfd_status_of_resource(struct hfd_txn *tx, const struct hfd_call *call,
                                             const struct hfd_status_query *query,
                                             struct hfd_status_view *out, struct hfd_err *err);

/**
 * Answers the query of a cluster; a removed one is found if no driver resource had it.
 * @param call  guresid is the cluster's id
 * @return as hfd_status_of_resource
 */
HFD_MUST_CHECK hfd_rc hfd_status_of_cluster(struct hfd_txn *tx, const struct hfd_call *call,
                                            const struct hfd_status_query *query,
                                            struct hfd_status_view *out, struct hfd_err *err);

#endif
