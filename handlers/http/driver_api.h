/*
 * The handlers of the Driver API: PUT, GET and DELETE of a GUResID, and the check of the body of a
 * PUT that stores nothing.
 *
 * The handlers of EMCO's status query, of a driver resource and of a cluster. Source: EMCO status
 * query; handlers/docs/status.md.
 * Thread: loop.
 */
#ifndef HFD_HTTP_DRIVER_API_H
#define HFD_HTTP_DRIVER_API_H

#include "handlers/http/http.h"

/** The functions of a method: the arg of a route of hfd_driver_api. */
struct hfd_driver_verb;
extern const struct hfd_driver_verb hfd_driver_get, hfd_driver_put, hfd_driver_delete;

/** Runs the method of the route. */
void hfd_driver_api(struct hfd_exchange *x);

/** POST /validate, and POST /{driver}/validate. */
void hfd_validate_api(struct hfd_exchange *x);

/** EMCO's status query. */
void hfd_status_api_resource(struct hfd_exchange *x);
void hfd_status_api_cluster(struct hfd_exchange *x);

#endif
