/*
 * The handlers below /api/driver/v1: what goes on, for people and portals. They change nothing.
 * Thread: loop.
 */
#ifndef HFD_HTTP_OVERVIEW_API_H
#define HFD_HTTP_OVERVIEW_API_H

#include "handlers/http/http.h"

/** Handlers. */
void hfd_overview_api_list(struct hfd_exchange *x);
void hfd_overview_api_get(struct hfd_exchange *x);
void hfd_overview_api_events(struct hfd_exchange *x);

#endif
