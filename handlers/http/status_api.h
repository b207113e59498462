/*
 * The handlers of EMCO's status query, of a driver resource and of a cluster. Source: EMCO status
 * query; handlers/docs/status.md. Thread: loop.
 */
#ifndef HFD_HTTP_STATUS_API_H
#define HFD_HTTP_STATUS_API_H

#include "handlers/http/http.h"

/** Handlers. */
void hfd_status_api_resource(struct hfd_exchange *x);
void hfd_status_api_cluster(struct hfd_exchange *x);

#endif
