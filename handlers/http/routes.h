/* The handlers that the table in routes.c names, by file. Thread: loop. */
#ifndef HFD_HTTP_ROUTES_H
#define HFD_HTTP_ROUTES_H

#include "handlers/http/http.h"

/* driver_api.c: does what the row's arg says */
struct hfd_driver_verb;
extern const struct hfd_driver_verb hfd_driver_get, hfd_driver_put, hfd_driver_delete;
void hfd_driver_api(struct hfd_exchange *x);

/* fleet_api.c: does what the row's arg says to a resource of the row's kind */
struct hfd_fleet_action;
extern const struct hfd_fleet_action hfd_fleet_creating, hfd_fleet_patching, hfd_fleet_deleting,
    hfd_fleet_force_deleting, hfd_fleet_reporting;
struct hfd_fleet_listing;
extern const struct hfd_fleet_listing hfd_fleet_resources, hfd_fleet_statuses;
void hfd_fleet_api_metadata(struct hfd_exchange *x);
void hfd_fleet_api_get(struct hfd_exchange *x);
void hfd_fleet_api_change(struct hfd_exchange *x);
void hfd_fleet_api_list(struct hfd_exchange *x);

/* ops.c */
void hfd_ops_live(struct hfd_exchange *x);
void hfd_ops_health(struct hfd_exchange *x);
void hfd_ops_ready(struct hfd_exchange *x);
void hfd_ops_metrics(struct hfd_exchange *x);

/* admin.c */
void hfd_admin_list_orphans(struct hfd_exchange *x);
void hfd_admin_delete_orphan(struct hfd_exchange *x);

/* docs_api.c */
void hfd_docs_openapi_json(struct hfd_exchange *x);
void hfd_docs_openapi_page(struct hfd_exchange *x);
void hfd_docs_manual(struct hfd_exchange *x);

#endif
