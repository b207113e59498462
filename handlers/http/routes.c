/*
 * The table of routes: the only place that knows the paths. One row per method and pattern; rows of
 * one pattern stand together. HEAD is served wherever GET is, and 405 with its Allow header follows
 * from the rows. Order does not matter: literal segments win over {driver}, which wins over
 * parameters.
 */
#include "handlers/http/api.h"
#include "handlers/http/routes.h"

#define OPS HFD_LISTENER_OPS, HFD_METHOD_GET

/* clang-format off */
#define DRIVER(method, pattern, name, verb) \
    {HFD_LISTENER_MAIN, HFD_METHOD_##method, pattern, name, HFD_DIALECT_DRIVER, hfd_driver_api_##verb}
#define FLEET(method, pattern, name, verb) \
    {HFD_LISTENER_MAIN, HFD_METHOD_##method, "/api/hyperfleet" pattern, name, HFD_DIALECT_FLEET, hfd_fleet_api_##verb}

const struct hfd_route hfd_routes[] = {
    /* listener and method, pattern,   name,      dialect,         handler */
    {OPS, "/livez",                    "livez",   HFD_DIALECT_OPS, hfd_ops_live},
    {OPS, "/alive",                    "livez",   HFD_DIALECT_OPS, hfd_ops_live},
    {OPS, "/healthz",                  "healthz", HFD_DIALECT_OPS, hfd_ops_health},
    {OPS, "/readyz",                   "readyz",  HFD_DIALECT_OPS, hfd_ops_ready},
    {OPS, "/health",                   "readyz",  HFD_DIALECT_OPS, hfd_ops_ready},
    {OPS, "/metrics",                  "metrics", HFD_DIALECT_OPS, hfd_ops_metrics},
    {OPS, "/docs/spec.json",           "openapi", HFD_DIALECT_OPS, hfd_docs_openapi_json},
    {OPS, "/docs",                     "manual",  HFD_DIALECT_OPS, hfd_docs_manual},
    {OPS, "/docs/{page}",              "manual_page", HFD_DIALECT_OPS, hfd_docs_manual},
    {OPS, "/admin/orphans",            "orphans", HFD_DIALECT_OPS, hfd_admin_list_orphans},
    {HFD_LISTENER_OPS, HFD_METHOD_DELETE, "/admin/orphans/{id}", "orphan", HFD_DIALECT_OPS, hfd_admin_delete_orphan},

    DRIVER(GET,    "/{guresid}",          "resource",       get),
    DRIVER(PUT,    "/{guresid}",          "resource",       put),
    DRIVER(DELETE, "/{guresid}",          "resource",       delete),
    DRIVER(GET,    "/{driver}/{guresid}", "typed_resource", get),
    DRIVER(PUT,    "/{driver}/{guresid}", "typed_resource", put),
    DRIVER(DELETE, "/{driver}/{guresid}", "typed_resource", delete),

    FLEET(GET,    "",                                                                 "fleet_metadata",             metadata),
    {HFD_LISTENER_MAIN, HFD_METHOD_GET, "/api/hyperfleet/v1/openapi", "openapi", HFD_DIALECT_FLEET, hfd_docs_openapi_json},
    {HFD_LISTENER_MAIN, HFD_METHOD_GET, "/api/hyperfleet/v1/openapi.html", "openapi_page", HFD_DIALECT_FLEET, hfd_docs_openapi_page},
    FLEET(GET,    "/v1/clusters",                                                     "clusters",                   list_clusters),
    FLEET(POST,   "/v1/clusters",                                                     "clusters",                   create_cluster),
    FLEET(GET,    "/v1/clusters/{cluster_id}",                                        "cluster",                    get_cluster),
    FLEET(PATCH,  "/v1/clusters/{cluster_id}",                                        "cluster",                    patch_cluster),
    FLEET(DELETE, "/v1/clusters/{cluster_id}",                                        "cluster",                    delete_cluster),
    FLEET(POST,   "/v1/clusters/{cluster_id}/force-delete",                           "cluster_force_delete",       force_delete_cluster),
    FLEET(GET,    "/v1/clusters/{cluster_id}/statuses",                               "cluster_statuses",           list_cluster_statuses),
    FLEET(POST,   "/v1/clusters/{cluster_id}/statuses",                               "cluster_statuses",           report_cluster),
    FLEET(PUT,    "/v1/clusters/{cluster_id}/statuses",                               "cluster_statuses",           report_cluster),
    FLEET(GET,    "/v1/clusters/{cluster_id}/nodepools",                              "cluster_nodepools",          list_nodepools),
    FLEET(POST,   "/v1/clusters/{cluster_id}/nodepools",                              "cluster_nodepools",          create_nodepool),
    FLEET(GET,    "/v1/clusters/{cluster_id}/nodepools/{nodepool_id}",                "nodepool",                   get_nodepool),
    FLEET(PATCH,  "/v1/clusters/{cluster_id}/nodepools/{nodepool_id}",                "nodepool",                   patch_nodepool),
    FLEET(DELETE, "/v1/clusters/{cluster_id}/nodepools/{nodepool_id}",                "nodepool",                   delete_nodepool),
    FLEET(POST,   "/v1/clusters/{cluster_id}/nodepools/{nodepool_id}/force-delete",   "nodepool_force_delete",      force_delete_nodepool),
    FLEET(GET,    "/v1/clusters/{cluster_id}/nodepools/{nodepool_id}/statuses",       "nodepool_statuses",          list_nodepool_statuses),
    FLEET(POST,   "/v1/clusters/{cluster_id}/nodepools/{nodepool_id}/statuses",       "nodepool_statuses",          report_nodepool),
    FLEET(PUT,    "/v1/clusters/{cluster_id}/nodepools/{nodepool_id}/statuses",       "nodepool_statuses",          report_nodepool),
    FLEET(GET,    "/v1/nodepools",                                                    "nodepools",                  list_nodepools),
    FLEET(GET,    "/v1/nodepools/{nodepool_id}",                                      "nodepool_flat",              get_nodepool),
    FLEET(PATCH,  "/v1/nodepools/{nodepool_id}",                                      "nodepool_flat",              patch_nodepool),
    FLEET(DELETE, "/v1/nodepools/{nodepool_id}",                                      "nodepool_flat",              delete_nodepool),
    FLEET(POST,   "/v1/nodepools/{nodepool_id}/force-delete",                         "nodepool_flat_force_delete", force_delete_nodepool),
    FLEET(GET,    "/v1/nodepools/{nodepool_id}/statuses",                             "nodepool_flat_statuses",     list_nodepool_statuses),
    FLEET(POST,   "/v1/nodepools/{nodepool_id}/statuses",                             "nodepool_flat_statuses",     report_nodepool),
    FLEET(PUT,    "/v1/nodepools/{nodepool_id}/statuses",                             "nodepool_flat_statuses",     report_nodepool),
};
/* clang-format on */

const size_t hfd_route_count = sizeof(hfd_routes) / sizeof(hfd_routes[0]);

const struct hfd_route *hfd_routes_without_fleet(struct hfd_arena *mem, size_t *count)
{
    struct hfd_route *out = hfd_arena_array(mem, hfd_route_count, sizeof(*out));

    *count = 0;
    for (size_t i = 0; out != NULL && i < hfd_route_count; i++)
        if (hfd_routes[i].dialect != HFD_DIALECT_FLEET)
            out[(*count)++] = hfd_routes[i];
    return out;
}
