/*
 * The table of routes: the only place that knows the paths. One row per method and pattern; rows of
 * one pattern stand together. HEAD is served wherever GET is. 405 and its Allow header follow from
 * the rows. The order of rows does not matter: literal segments win over {driver}, which wins over
 * parameters. A literal at the end leaves methods that it lacks to the parameter in its place.
 */
#include "handlers/http/routes.h"

#include "handlers/http/admin.h"
#include "handlers/http/docs_api.h"
#include "handlers/http/driver_api.h"
#include "handlers/http/fleet_api.h"
#include "handlers/http/ops.h"
#include "handlers/http/pacemaker_api.h"
#include "handlers/http/validate_api.h"

/* clang-format off */
#define CLUSTER  HFD_KIND_CLUSTER
#define NODEPOOL HFD_KIND_NODEPOOL
#define OPS(method, pattern, name, fn) \
    {HFD_LISTENER_OPS, HFD_METHOD_##method, pattern, name, HFD_DIALECT_OPS, fn, NULL, 0}
#define DRIVER(method, pattern, name, verb) \
    {HFD_LISTENER_MAIN, HFD_METHOD_##method, pattern, name, HFD_DIALECT_DRIVER, hfd_driver_api, &hfd_driver_##verb, 0}
#define VALIDATE(pattern, name) \
    {HFD_LISTENER_MAIN, HFD_METHOD_POST, pattern, name, HFD_DIALECT_DRIVER, hfd_validate_api, NULL, 0}
#define FLEET(method, pattern, name, action, kind) \
    {HFD_LISTENER_MAIN, HFD_METHOD_##method, "/api/hyperfleet" pattern, name, HFD_DIALECT_FLEET, action, kind}
#define DO(fn)         fn, NULL
#define LIST(listing)  hfd_fleet_api_list, &hfd_fleet_##listing
#define CHANGE(action) hfd_fleet_api_change, &hfd_fleet_##action
#define PACEMAKER(action) hfd_pacemaker_api_write, &hfd_pacemaker_##action

const struct hfd_route hfd_routes[] = {
    OPS(GET,    "/livez",                "livez",       hfd_ops_live),
    OPS(GET,    "/alive",                "livez",       hfd_ops_live),
    OPS(GET,    "/healthz",              "healthz",     hfd_ops_health),
    OPS(GET,    "/readyz",               "readyz",      hfd_ops_ready),
    OPS(GET,    "/health",               "readyz",      hfd_ops_ready),
    OPS(GET,    "/metrics",              "metrics",     hfd_ops_metrics),
    OPS(GET,    "/docs/spec.json",       "openapi",     hfd_docs_openapi_json),
    OPS(GET,    "/docs",                 "manual",      hfd_docs_manual),
    OPS(GET,    "/docs/{page}",          "manual_page", hfd_docs_manual),
    OPS(GET,    "/admin/orphans",        "orphans",     hfd_admin_list_orphans),
    OPS(DELETE, "/admin/orphans/{id}",   "orphan",      hfd_admin_delete_orphan),

    DRIVER(GET,    "/{guresid}",          "resource",       get),
    DRIVER(PUT,    "/{guresid}",          "resource",       put),
    DRIVER(DELETE, "/{guresid}",          "resource",       delete),
    DRIVER(GET,    "/{driver}/{guresid}", "typed_resource", get),
    DRIVER(PUT,    "/{driver}/{guresid}", "typed_resource", put),
    DRIVER(DELETE, "/{driver}/{guresid}", "typed_resource", delete),
    VALIDATE("/validate",                 "validate"),
    VALIDATE("/{driver}/validate",        "typed_validate"),

    FLEET(GET,    "",                                                                  "fleet_metadata",             DO(hfd_fleet_api_metadata), 0),
    FLEET(GET,    "/v1/openapi",                                                       "openapi",                    DO(hfd_docs_openapi_json), 0),
    FLEET(GET,    "/v1/openapi.html",                                                  "openapi_page",               DO(hfd_docs_openapi_page), 0),
    FLEET(GET,    "/v1/clusters",                                                      "clusters",                   LIST(resources),         CLUSTER),
    FLEET(POST,   "/v1/clusters",                                                      "clusters",                   CHANGE(creating),        CLUSTER),
    FLEET(GET,    "/v1/clusters/{cluster_id}",                                         "cluster",                    DO(hfd_fleet_api_get),   CLUSTER),
    FLEET(PATCH,  "/v1/clusters/{cluster_id}",                                         "cluster",                    CHANGE(patching),        CLUSTER),
    FLEET(DELETE, "/v1/clusters/{cluster_id}",                                         "cluster",                    CHANGE(deleting),        CLUSTER),
    FLEET(POST,   "/v1/clusters/{cluster_id}/force-delete",                            "cluster_force_delete",       CHANGE(force_deleting),  CLUSTER),
    FLEET(GET,    "/v1/clusters/{cluster_id}/statuses",                                "cluster_statuses",           LIST(statuses),          CLUSTER),
    FLEET(POST,   "/v1/clusters/{cluster_id}/statuses",                                "cluster_statuses",           CHANGE(reporting),       CLUSTER),
    FLEET(PUT,    "/v1/clusters/{cluster_id}/statuses",                                "cluster_statuses",           CHANGE(reporting),       CLUSTER),
    FLEET(GET,    "/v1/clusters/{cluster_id}/events",                                  "cluster_events",             DO(hfd_pacemaker_api_events), CLUSTER),
    FLEET(GET,    "/v1/clusters/{cluster_id}/pacemaker",                               "cluster_pacemaker",          DO(hfd_pacemaker_api_get),    CLUSTER),
    FLEET(POST,   "/v1/clusters/{cluster_id}/pacemaker",                               "cluster_pacemaker",          PACEMAKER(create),            CLUSTER),
    FLEET(PUT,    "/v1/clusters/{cluster_id}/pacemaker",                               "cluster_pacemaker",          PACEMAKER(main),              CLUSTER),
    FLEET(DELETE, "/v1/clusters/{cluster_id}/pacemaker",                               "cluster_pacemaker",          DO(hfd_pacemaker_api_delete), CLUSTER),
    FLEET(PUT,    "/v1/clusters/{cluster_id}/pacemaker/status",                        "cluster_pacemaker_status",   PACEMAKER(status),            CLUSTER),
    FLEET(GET,    "/v1/clusters/{cluster_id}/nodepools",                               "cluster_nodepools",          LIST(resources),         NODEPOOL),
    FLEET(POST,   "/v1/clusters/{cluster_id}/nodepools",                               "cluster_nodepools",          CHANGE(creating),        NODEPOOL),
    FLEET(GET,    "/v1/clusters/{cluster_id}/nodepools/{nodepool_id}",                 "nodepool",                   DO(hfd_fleet_api_get),   NODEPOOL),
    FLEET(PATCH,  "/v1/clusters/{cluster_id}/nodepools/{nodepool_id}",                 "nodepool",                   CHANGE(patching),        NODEPOOL),
    FLEET(DELETE, "/v1/clusters/{cluster_id}/nodepools/{nodepool_id}",                 "nodepool",                   CHANGE(deleting),        NODEPOOL),
    FLEET(POST,   "/v1/clusters/{cluster_id}/nodepools/{nodepool_id}/force-delete",    "nodepool_force_delete",      CHANGE(force_deleting),  NODEPOOL),
    FLEET(GET,    "/v1/clusters/{cluster_id}/nodepools/{nodepool_id}/statuses",        "nodepool_statuses",          LIST(statuses),          NODEPOOL),
    FLEET(POST,   "/v1/clusters/{cluster_id}/nodepools/{nodepool_id}/statuses",        "nodepool_statuses",          CHANGE(reporting),       NODEPOOL),
    FLEET(PUT,    "/v1/clusters/{cluster_id}/nodepools/{nodepool_id}/statuses",        "nodepool_statuses",          CHANGE(reporting),       NODEPOOL),
    FLEET(GET,    "/v1/nodepools",                                                     "nodepools",                  LIST(resources),         NODEPOOL),
    FLEET(GET,    "/v1/nodepools/{nodepool_id}",                                       "nodepool_flat",              DO(hfd_fleet_api_get),   NODEPOOL),
    FLEET(PATCH,  "/v1/nodepools/{nodepool_id}",                                       "nodepool_flat",              CHANGE(patching),        NODEPOOL),
    FLEET(DELETE, "/v1/nodepools/{nodepool_id}",                                       "nodepool_flat",              CHANGE(deleting),        NODEPOOL),
    FLEET(POST,   "/v1/nodepools/{nodepool_id}/force-delete",                          "nodepool_flat_force_delete", CHANGE(force_deleting),  NODEPOOL),
    FLEET(GET,    "/v1/nodepools/{nodepool_id}/statuses",                              "nodepool_flat_statuses",     LIST(statuses),          NODEPOOL),
    FLEET(POST,   "/v1/nodepools/{nodepool_id}/statuses",                              "nodepool_flat_statuses",     CHANGE(reporting),       NODEPOOL),
    FLEET(PUT,    "/v1/nodepools/{nodepool_id}/statuses",                              "nodepool_flat_statuses",     CHANGE(reporting),       NODEPOOL),
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
