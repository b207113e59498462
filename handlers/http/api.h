/*
 * The handlers of the main listener, as the route table names them, and what all handlers share.
 */
#ifndef HFD_HTTP_API_H
#define HFD_HTTP_API_H

#include "driver/base/buf.h"
#include "handlers/http/http.h"

/**
 * created_by, updated_by and deleted_by of what this request does; static or in the exchange's
 * memory.
 * @return HFD_OK, HFD_BAD_REQUEST (two callers), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_api_caller(struct hfd_exchange *x, hfd_slice *out, struct hfd_err *err);

/**
 * Sends a reply with the body built in b (none when b is empty), and frees b. A document that
 * could not be built is an error answer.
 */
void hfd_api_send(struct hfd_exchange *x, struct hfd_reply *reply, const char *content_type,
                  struct hfd_buf *b);

/* driver_api.c */
void hfd_driver_api_get(struct hfd_exchange *x);
void hfd_driver_api_put(struct hfd_exchange *x);
void hfd_driver_api_delete(struct hfd_exchange *x);

/*
 * fleet_api.c: {cluster_id} and {nodepool_id}; a nodepool answers below its cluster and on a flat
 * path
 */
void hfd_fleet_api_metadata(struct hfd_exchange *x);
void hfd_fleet_api_list_clusters(struct hfd_exchange *x);
void hfd_fleet_api_list_nodepools(struct hfd_exchange *x);
void hfd_fleet_api_create_cluster(struct hfd_exchange *x);
void hfd_fleet_api_create_nodepool(struct hfd_exchange *x);
void hfd_fleet_api_get_cluster(struct hfd_exchange *x);
void hfd_fleet_api_get_nodepool(struct hfd_exchange *x);
void hfd_fleet_api_patch_cluster(struct hfd_exchange *x);
void hfd_fleet_api_patch_nodepool(struct hfd_exchange *x);
void hfd_fleet_api_delete_cluster(struct hfd_exchange *x);
void hfd_fleet_api_delete_nodepool(struct hfd_exchange *x);
void hfd_fleet_api_force_delete_cluster(struct hfd_exchange *x);
void hfd_fleet_api_force_delete_nodepool(struct hfd_exchange *x);
void hfd_fleet_api_list_cluster_statuses(struct hfd_exchange *x);
void hfd_fleet_api_list_nodepool_statuses(struct hfd_exchange *x);
void hfd_fleet_api_report_cluster(struct hfd_exchange *x);
void hfd_fleet_api_report_nodepool(struct hfd_exchange *x);

#endif
