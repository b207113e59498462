/* The table of routes: the only place that knows the paths. Thread: any. */
#ifndef HFD_HTTP_ROUTES_H
#define HFD_HTTP_ROUTES_H

#include "driver/base/arena.h"
#include "handlers/http/http.h"

extern const struct hfd_route hfd_routes[];
extern const size_t hfd_route_count;

/** The table of a program that has probes and metrics alone. */
extern const struct hfd_route hfd_routes_of_probes[];
extern const size_t hfd_routes_of_probes_count;

/**
 * Makes a table without HyperFleet's own API, for a driver of a remote HyperFleet.
 * @return the table, in mem; NULL if memory is short
 */
const struct hfd_route *hfd_routes_without_fleet(struct hfd_arena *mem, size_t *count);

#endif
