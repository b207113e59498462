/*
 * The table of routes: the only place that knows the paths. One row per method and pattern; rows of one pattern stand together. HEAD is served wherever
 * GET is, and 405 with its Allow header follows from the rows. Order does not matter: literal segments win over {driver}, which wins over parameters.
 */
#include "handlers/http/routes.h"

#define OPS HFD_LISTENER_OPS, HFD_METHOD_GET

/* clang-format off */
const struct hfd_route hfd_routes[] = {
    /* listener and method, pattern,   name,      dialect,         handler */
    {OPS, "/livez",                    "livez",   HFD_DIALECT_OPS, hfd_ops_live},
    {OPS, "/alive",                    "livez",   HFD_DIALECT_OPS, hfd_ops_live},
    {OPS, "/healthz",                  "livez",   HFD_DIALECT_OPS, hfd_ops_live},
    {OPS, "/readyz",                   "readyz",  HFD_DIALECT_OPS, hfd_ops_ready},
    {OPS, "/health",                   "readyz",  HFD_DIALECT_OPS, hfd_ops_ready},
    {OPS, "/metrics",                  "metrics", HFD_DIALECT_OPS, hfd_ops_metrics},
};
/* clang-format on */

const size_t hfd_route_count = sizeof(hfd_routes) / sizeof(hfd_routes[0]);
