/*
 * The table of routes: the only place that knows the paths. One row per method and pattern; rows of
 * one pattern stand together. HEAD is served wherever GET is. 405 and its Allow header follow from
 * the rows. The order of rows does not matter: literal segments win over {driver}, which wins over
 * parameters. A literal at the end leaves methods that it lacks to the parameter in its place. The
 * first column is the scope that a caller needs (handlers/auth/decide.h).
 */
#include "handlers/http/routes.h"

#include "handlers/http/admin.h"
#include "handlers/http/driver_api.h"
#include "handlers/http/fleet_api.h"
#include "handlers/http/ops.h"
#include "handlers/http/overview_api.h"
#include "handlers/http/pacemaker_api.h"
#include "handlers/http/watch_api.h"

/* clang-format off */
#define CLUSTER  HFD_KIND_CLUSTER
#define NODEPOOL HFD_KIND_NODEPOOL
#define OPS(need, method, pattern, name, fn) \
    {HFD_LISTENER_OPS, HFD_METHOD_##method, pattern, name, HFD_DIALECT_OPS, fn, NULL, 0, HFD_NEED_##need}
#define DRIVER(need, method, pattern, name, verb) \
    {HFD_LISTENER_MAIN, HFD_METHOD_##method, pattern, name, HFD_DIALECT_DRIVER, hfd_driver_api, &hfd_driver_##verb, 0, HFD_NEED_##need}
#define VALIDATE(need, pattern, name) \
    {HFD_LISTENER_MAIN, HFD_METHOD_POST, pattern, name, HFD_DIALECT_DRIVER, hfd_validate_api, NULL, 0, HFD_NEED_##need}
#define STATUS(pattern, name) \
    {HFD_LISTENER_MAIN, HFD_METHOD_GET, pattern, name, HFD_DIALECT_DRIVER, hfd_status_api_resource, NULL, 0, HFD_NEED_STATUS}
#define FLEET(need, method, pattern, name, action, kind) \
    {HFD_LISTENER_MAIN, HFD_METHOD_##method, "/api/hyperfleet" pattern, name, HFD_DIALECT_FLEET, action, kind, HFD_NEED_##need}
#define SEEN(pattern, name, fn) \
    {HFD_LISTENER_MAIN, HFD_METHOD_GET, "/api/driver/v1" pattern, name, HFD_DIALECT_FLEET, fn, NULL, 0, HFD_NEED_VIEW}
#define DO(fn)         fn, NULL
#define LIST(listing)  hfd_fleet_api_list, &hfd_fleet_##listing
#define CHANGE(action) hfd_fleet_api_change, &hfd_fleet_##action
#define PACEMAKER(action) hfd_pacemaker_api_write, &hfd_pacemaker_##action

#define PROBES \
    OPS(OPEN,        GET,    "/livez",                "livez",       hfd_ops_live), \
    OPS(OPEN,        GET,    "/alive",                "livez",       hfd_ops_live), \
    OPS(OPEN,        GET,    "/healthz",              "healthz",     hfd_ops_health), \
    OPS(OPEN,        GET,    "/readyz",               "readyz",      hfd_ops_ready), \
    OPS(OPEN,        GET,    "/health",               "readyz",      hfd_ops_ready), \
    OPS(OPEN,        GET,    "/metrics",              "metrics",     hfd_ops_metrics),

const struct hfd_route hfd_routes_of_probes[] = {PROBES};

const struct hfd_route hfd_routes[] = {
    PROBES
    OPS(OPEN,        GET,    "/docs/spec.json",       "openapi",     hfd_docs_openapi_json),
    OPS(OPEN,        GET,    "/docs",                 "manual",      hfd_docs_manual),
    OPS(OPEN,        GET,    "/docs/{page}",          "manual_page", hfd_docs_manual),
    OPS(OPEN,        GET,    "/favicon.ico",          "icon",        hfd_docs_no_icon),
    OPS(VIEW,        GET,    "/",                     "page",        hfd_ops_home),
    OPS(VIEW,        GET,    "/r/{guresid}",          "page_resource", hfd_ops_resource),
    OPS(VIEW,        GET,    "/page/style.css",       "page_file",   hfd_ops_file),
    OPS(VIEW,        GET,    "/page/page.js",         "page_file",   hfd_ops_file),
    OPS(ADMIN,       GET,    "/admin/orphans",        "orphans",     hfd_admin_list_orphans),
    OPS(ADMIN,       DELETE, "/admin/orphans/{id}",   "orphan",      hfd_admin_delete_orphan),
    OPS(ADMIN,       GET,    "/admin/tokens",         "tokens",      hfd_tokens_api_list),
    OPS(ADMIN,       GET,    "/admin/replicas",       "replicas",    hfd_replicas_api_list),
    OPS(ADMIN,       GET,    "/admin/backup",         "backup",      hfd_backup_api),

    DRIVER(DRIVER,      GET,    "/{guresid}",          "resource",       get),
    DRIVER(DRIVER,      PUT,    "/{guresid}",          "resource",       put),
    DRIVER(DRIVER,      DELETE, "/{guresid}",          "resource",       delete),
    DRIVER(DRIVER,      GET,    "/{driver}/{guresid}", "typed_resource", get),
    DRIVER(DRIVER,      PUT,    "/{driver}/{guresid}", "typed_resource", put),
    DRIVER(DRIVER,      DELETE, "/{driver}/{guresid}", "typed_resource", delete),
    VALIDATE(DRIVER,    "/validate",                   "validate"),
    VALIDATE(DRIVER,    "/{driver}/validate",          "typed_validate"),
    STATUS("/{guresid}/status",                        "status"),
    STATUS("/{driver}/{guresid}/status",               "typed_status"),

    SEEN("/resources",           "driver_resources", hfd_overview_api_list),
    SEEN("/resources/{guresid}", "driver_resource",  hfd_overview_api_get),
    SEEN("/events",              "driver_events",    hfd_overview_api_events),
    SEEN("/problems",            "driver_problems",  hfd_overview_api_problems),

    FLEET(FLEET_READ,  GET,    "",                                                                  "fleet_metadata",             DO(hfd_fleet_api_metadata), 0),
    FLEET(OPEN,        GET,    "/v1/openapi",                                                       "openapi",                    DO(hfd_docs_openapi_json), 0),
    FLEET(OPEN,        GET,    "/v1/openapi.html",                                                  "openapi_page",               DO(hfd_docs_openapi_page), 0),
    FLEET(OPEN,        GET,    "/v1/openapi/{page}",                                                 "openapi_page",               DO(hfd_docs_openapi_page), 0),
    FLEET(FLEET_READ,  GET,    "/v1/events",                                                        "events",                     DO(hfd_watch_api), 0),
    FLEET(FLEET_READ,  GET,    "/v1/clusters",                                                      "clusters",                   LIST(resources),         CLUSTER),
    FLEET(FLEET_WRITE, POST,   "/v1/clusters",                                                      "clusters",                   CHANGE(creating),        CLUSTER),
    FLEET(FLEET_READ,  GET,    "/v1/clusters/{cluster_id}",                                         "cluster",                    DO(hfd_fleet_api_get),   CLUSTER),
    FLEET(FLEET_WRITE, PATCH,  "/v1/clusters/{cluster_id}",                                         "cluster",                    CHANGE(patching),        CLUSTER),
    FLEET(FLEET_WRITE, DELETE, "/v1/clusters/{cluster_id}",                                         "cluster",                    CHANGE(deleting),        CLUSTER),
    FLEET(ADMIN,       POST,   "/v1/clusters/{cluster_id}/force-delete",                            "cluster_force_delete",       CHANGE(force_deleting),  CLUSTER),
    FLEET(FLEET_READ,  GET,    "/v1/clusters/{cluster_id}/statuses",                                "cluster_statuses",           LIST(statuses),          CLUSTER),
    FLEET(REPORT,      POST,   "/v1/clusters/{cluster_id}/statuses",                                "cluster_statuses",           CHANGE(reporting),       CLUSTER),
    FLEET(REPORT,      PUT,    "/v1/clusters/{cluster_id}/statuses",                                "cluster_statuses",           CHANGE(reporting),       CLUSTER),
    FLEET(FLEET_READ,  GET,    "/v1/clusters/{cluster_id}/status",                                  "cluster_status",             DO(hfd_status_api_cluster), CLUSTER),
    FLEET(FLEET_READ,  GET,    "/v1/clusters/{cluster_id}/events",                                  "cluster_events",             DO(hfd_pacemaker_api_events), CLUSTER),
    FLEET(FLEET_READ,  GET,    "/v1/clusters/{cluster_id}/pacemaker",                               "cluster_pacemaker",          DO(hfd_pacemaker_api_get),    CLUSTER),
    FLEET(REPORT,      POST,   "/v1/clusters/{cluster_id}/pacemaker",                               "cluster_pacemaker",          PACEMAKER(create),            CLUSTER),
    FLEET(ADMIN,       PUT,    "/v1/clusters/{cluster_id}/pacemaker",                               "cluster_pacemaker",          PACEMAKER(main),              CLUSTER),
    FLEET(REPORT,      DELETE, "/v1/clusters/{cluster_id}/pacemaker",                               "cluster_pacemaker",          DO(hfd_pacemaker_api_delete), CLUSTER),
    FLEET(FLEET_READ,  GET,    "/v1/clusters/{cluster_id}/pacemaker/status",                        "cluster_pacemaker_status",   DO(hfd_pacemaker_api_get),    CLUSTER),
    FLEET(REPORT,      PUT,    "/v1/clusters/{cluster_id}/pacemaker/status",                        "cluster_pacemaker_status",   PACEMAKER(status),            CLUSTER),
    FLEET(FLEET_READ,  GET,    "/v1/clusters/{cluster_id}/nodepools",                               "cluster_nodepools",          LIST(resources),         NODEPOOL),
    FLEET(FLEET_WRITE, POST,   "/v1/clusters/{cluster_id}/nodepools",                               "cluster_nodepools",          CHANGE(creating),        NODEPOOL),
    FLEET(FLEET_READ,  GET,    "/v1/clusters/{cluster_id}/nodepools/{nodepool_id}",                 "nodepool",                   DO(hfd_fleet_api_get),   NODEPOOL),
    FLEET(FLEET_WRITE, PATCH,  "/v1/clusters/{cluster_id}/nodepools/{nodepool_id}",                 "nodepool",                   CHANGE(patching),        NODEPOOL),
    FLEET(FLEET_WRITE, DELETE, "/v1/clusters/{cluster_id}/nodepools/{nodepool_id}",                 "nodepool",                   CHANGE(deleting),        NODEPOOL),
    FLEET(ADMIN,       POST,   "/v1/clusters/{cluster_id}/nodepools/{nodepool_id}/force-delete",    "nodepool_force_delete",      CHANGE(force_deleting),  NODEPOOL),
    FLEET(FLEET_READ,  GET,    "/v1/clusters/{cluster_id}/nodepools/{nodepool_id}/statuses",        "nodepool_statuses",          LIST(statuses),          NODEPOOL),
    FLEET(REPORT,      POST,   "/v1/clusters/{cluster_id}/nodepools/{nodepool_id}/statuses",        "nodepool_statuses",          CHANGE(reporting),       NODEPOOL),
    FLEET(REPORT,      PUT,    "/v1/clusters/{cluster_id}/nodepools/{nodepool_id}/statuses",        "nodepool_statuses",          CHANGE(reporting),       NODEPOOL),
    FLEET(FLEET_READ,  GET,    "/v1/nodepools",                                                     "nodepools",                  LIST(resources),         NODEPOOL),
    FLEET(FLEET_WRITE, POST,   "/v1/nodepools",                                                     "nodepools",                  DO(hfd_fleet_api_refuse_nodepool), 0),
    FLEET(FLEET_READ,  GET,    "/v1/nodepools/{nodepool_id}",                                       "nodepool_flat",              DO(hfd_fleet_api_get),   NODEPOOL),
    FLEET(FLEET_WRITE, PATCH,  "/v1/nodepools/{nodepool_id}",                                       "nodepool_flat",              CHANGE(patching),        NODEPOOL),
    FLEET(FLEET_WRITE, DELETE, "/v1/nodepools/{nodepool_id}",                                       "nodepool_flat",              CHANGE(deleting),        NODEPOOL),
    FLEET(ADMIN,       POST,   "/v1/nodepools/{nodepool_id}/force-delete",                          "nodepool_flat_force_delete", CHANGE(force_deleting),  NODEPOOL),
    FLEET(FLEET_READ,  GET,    "/v1/nodepools/{nodepool_id}/statuses",                              "nodepool_flat_statuses",     LIST(statuses),          NODEPOOL),
    FLEET(REPORT,      POST,   "/v1/nodepools/{nodepool_id}/statuses",                              "nodepool_flat_statuses",     CHANGE(reporting),       NODEPOOL),
    FLEET(REPORT,      PUT,    "/v1/nodepools/{nodepool_id}/statuses",                              "nodepool_flat_statuses",     CHANGE(reporting),       NODEPOOL),
};
/* clang-format on */

const size_t hfd_routes_of_probes_count =
    sizeof(hfd_routes_of_probes) / sizeof(hfd_routes_of_probes[0]);
const size_t hfd_route_count = sizeof(hfd_routes) / sizeof(hfd_routes[0]);

const struct hfd_route *hfd_routes_without_fleet(struct hfd_arena *mem, size_t *count)
{
    struct hfd_route *out = hfd_arena_array(mem, hfd_route_count, sizeof(*out));

    *count = 0;
    for (size_t i = 0; out != NULL && i < hfd_route_count; i++)
        if (!hfd_slice_starts(hfd_slice_of(hfd_routes[i].pattern), HFD_SLICE("/api/hyperfleet")))
            out[(*count)++] = hfd_routes[i];
    return out;
}
