/*
 * The handlers of the embedded HyperFleet API, its lists too. Each works on resources of the
 * route's kind. Thread: loop.
 */
#ifndef HFD_HTTP_FLEET_API_H
#define HFD_HTTP_FLEET_API_H

#include "driver/fleet/condition.h"
#include "handlers/http/http.h"

/** A request that writes: the arg of a route of hfd_fleet_api_change. */
struct hfd_fleet_action;
extern const struct hfd_fleet_action hfd_fleet_creating, hfd_fleet_patching, hfd_fleet_deleting,
    hfd_fleet_force_deleting, hfd_fleet_reporting;
/** A request for a list: the arg of a route of hfd_fleet_api_list. */
struct hfd_fleet_listing;
extern const struct hfd_fleet_listing hfd_fleet_resources, hfd_fleet_statuses;

/** Handlers. */
void hfd_fleet_api_metadata(struct hfd_exchange *x);
void hfd_fleet_api_get(struct hfd_exchange *x);
void hfd_fleet_api_change(struct hfd_exchange *x);

/** POST of a nodepool without its cluster: 422 that says where it is created. */
void hfd_fleet_api_refuse_nodepool(struct hfd_exchange *x);

/** Answers with a page of the route's list. */
void hfd_fleet_api_list(struct hfd_exchange *x);

#endif
