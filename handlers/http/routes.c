/*
 * The table of routes: the only place that knows the paths. One row per method and pattern; rows of one pattern stand together. HEAD is
 * served wherever GET is, and 405 with its Allow header follows from the rows. Order does not matter: literal segments win over {driver},
 * which wins over parameters.
 */
#include "handlers/http/api.h"
#include "handlers/http/routes.h"

#define OPS HFD_LISTENER_OPS, HFD_METHOD_GET
#define MAIN(method) HFD_LISTENER_MAIN, HFD_METHOD_##method

/* clang-format off */
const struct hfd_route hfd_routes[] = {
    /* listener and method, pattern,   name,      dialect,         handler */
    {OPS, "/livez",                    "livez",   HFD_DIALECT_OPS, hfd_ops_live},
    {OPS, "/alive",                    "livez",   HFD_DIALECT_OPS, hfd_ops_live},
    {OPS, "/healthz",                  "livez",   HFD_DIALECT_OPS, hfd_ops_live},
    {OPS, "/readyz",                   "readyz",  HFD_DIALECT_OPS, hfd_ops_ready},
    {OPS, "/health",                   "readyz",  HFD_DIALECT_OPS, hfd_ops_ready},
    {OPS, "/metrics",                  "metrics", HFD_DIALECT_OPS, hfd_ops_metrics},

    {MAIN(GET),    "/{guresid}",          "resource",       HFD_DIALECT_DRIVER, hfd_driver_api_get},
    {MAIN(PUT),    "/{guresid}",          "resource",       HFD_DIALECT_DRIVER, hfd_driver_api_put},
    {MAIN(DELETE), "/{guresid}",          "resource",       HFD_DIALECT_DRIVER, hfd_driver_api_delete},
    {MAIN(GET),    "/{driver}/{guresid}", "typed_resource", HFD_DIALECT_DRIVER, hfd_driver_api_get},
    {MAIN(PUT),    "/{driver}/{guresid}", "typed_resource", HFD_DIALECT_DRIVER, hfd_driver_api_put},
    {MAIN(DELETE), "/{driver}/{guresid}", "typed_resource", HFD_DIALECT_DRIVER, hfd_driver_api_delete},

    {MAIN(GET),    "/api/hyperfleet",                                                       "fleet_metadata",    HFD_DIALECT_FLEET, hfd_fleet_api_metadata},
    {MAIN(GET),    "/api/hyperfleet/v1/clusters",                                           "clusters",          HFD_DIALECT_FLEET, hfd_fleet_api_list_clusters},
    {MAIN(POST),   "/api/hyperfleet/v1/clusters",                                           "clusters",          HFD_DIALECT_FLEET, hfd_fleet_api_create_cluster},
    {MAIN(GET),    "/api/hyperfleet/v1/clusters/{id}",                                      "cluster",           HFD_DIALECT_FLEET, hfd_fleet_api_get_cluster},
    {MAIN(PATCH),  "/api/hyperfleet/v1/clusters/{id}",                                      "cluster",           HFD_DIALECT_FLEET, hfd_fleet_api_patch_cluster},
    {MAIN(DELETE), "/api/hyperfleet/v1/clusters/{id}",                                      "cluster",           HFD_DIALECT_FLEET, hfd_fleet_api_delete_cluster},
    {MAIN(GET),    "/api/hyperfleet/v1/clusters/{id}/statuses",                             "cluster_statuses",  HFD_DIALECT_FLEET, hfd_fleet_api_list_cluster_statuses},
    {MAIN(POST),   "/api/hyperfleet/v1/clusters/{id}/statuses",                             "cluster_statuses",  HFD_DIALECT_FLEET, hfd_fleet_api_report_cluster},
    {MAIN(PUT),    "/api/hyperfleet/v1/clusters/{id}/statuses",                             "cluster_statuses",  HFD_DIALECT_FLEET, hfd_fleet_api_report_cluster},
    {MAIN(GET),    "/api/hyperfleet/v1/clusters/{id}/nodepools",                            "cluster_nodepools", HFD_DIALECT_FLEET, hfd_fleet_api_list_nodepools},
    {MAIN(POST),   "/api/hyperfleet/v1/clusters/{id}/nodepools",                            "cluster_nodepools", HFD_DIALECT_FLEET, hfd_fleet_api_create_nodepool},
    {MAIN(GET),    "/api/hyperfleet/v1/clusters/{id}/nodepools/{nodepool_id}",              "nodepool",          HFD_DIALECT_FLEET, hfd_fleet_api_get_nodepool},
    {MAIN(PATCH),  "/api/hyperfleet/v1/clusters/{id}/nodepools/{nodepool_id}",              "nodepool",          HFD_DIALECT_FLEET, hfd_fleet_api_patch_nodepool},
    {MAIN(DELETE), "/api/hyperfleet/v1/clusters/{id}/nodepools/{nodepool_id}",              "nodepool",          HFD_DIALECT_FLEET, hfd_fleet_api_delete_nodepool},
    {MAIN(GET),    "/api/hyperfleet/v1/clusters/{id}/nodepools/{nodepool_id}/statuses",     "nodepool_statuses", HFD_DIALECT_FLEET, hfd_fleet_api_list_nodepool_statuses},
    {MAIN(POST),   "/api/hyperfleet/v1/clusters/{id}/nodepools/{nodepool_id}/statuses",     "nodepool_statuses", HFD_DIALECT_FLEET, hfd_fleet_api_report_nodepool},
    {MAIN(PUT),    "/api/hyperfleet/v1/clusters/{id}/nodepools/{nodepool_id}/statuses",     "nodepool_statuses", HFD_DIALECT_FLEET, hfd_fleet_api_report_nodepool},
    {MAIN(GET),    "/api/hyperfleet/v1/nodepools",                                          "nodepools",         HFD_DIALECT_FLEET, hfd_fleet_api_list_nodepools},
};
/* clang-format on */

const size_t hfd_route_count = sizeof(hfd_routes) / sizeof(hfd_routes[0]);
