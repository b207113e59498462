/*
 * The handlers below /api/driver/v1: what goes on, for people and portals. They change nothing. A
 * parameter that is unknown, wrong, or given twice is an error that names it. Thread: loop.
 */
#ifndef HFD_HTTP_OVERVIEW_API_H
#define HFD_HTTP_OVERVIEW_API_H

#include "driver/core/history.h"
#include "driver/core/overview.h"
#include "handlers/http/http.h"

/** Handlers. */
void hfd_overview_api_list(struct hfd_exchange *x);
void hfd_overview_api_get(struct hfd_exchange *x);
void hfd_overview_api_events(struct hfd_exchange *x);
void hfd_overview_api_problems(struct hfd_exchange *x);

/**
 * Reads the parameters of the list of resources.
 * @param query  as received, without '?'
 * @param out    its texts are in mem
 * @return HFD_OK, HFD_INVALID, HFD_BAD_REQUEST (bad percent-encoding), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_overview_query_read(hfd_slice query, struct hfd_arena *mem,
                                              struct hfd_overview_query *out, struct hfd_err *err);
/** Reads the parameters of the event feed. */
HFD_MUST_CHECK hfd_rc hfd_feed_query_read(hfd_slice query, struct hfd_arena *mem,
                                          struct hfd_feed_query *out, struct hfd_err *err);
#endif
