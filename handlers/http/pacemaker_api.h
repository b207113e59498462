/*
 * The handlers of a cluster's PacemakerCluster document and of its events. The document is the
 * first one of adapters.pacemaker; with an empty list there is none. Thread: loop.
 */
#ifndef HFD_HTTP_PACEMAKER_API_H
#define HFD_HTTP_PACEMAKER_API_H

#include "handlers/http/http.h"

/** A request that writes: the arg of a route of hfd_pacemaker_api_write. */
struct hfd_pacemaker_action;
extern const struct hfd_pacemaker_action hfd_pacemaker_create, hfd_pacemaker_main,
    hfd_pacemaker_status;

/** Handlers. */
void hfd_pacemaker_api_get(struct hfd_exchange *x);
void hfd_pacemaker_api_write(struct hfd_exchange *x);
void hfd_pacemaker_api_delete(struct hfd_exchange *x);
void hfd_pacemaker_api_events(struct hfd_exchange *x);

#endif
