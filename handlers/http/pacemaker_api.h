/*
 * The handlers of a cluster's PacemakerCluster document and of its events. The document is the
 * first one of adapters.pacemaker; with an empty list there is none. Thread: loop.
 */
#ifndef HFD_HTTP_PACEMAKER_API_H
#define HFD_HTTP_PACEMAKER_API_H

#include "driver/health/intake.h"
#include "handlers/http/http.h"

/** The document of a report, as it came in. */
struct hfd_pacemaker_report {
    bool is; /* the report is an observer's on a cluster, and given is set */
    struct hfd_health_reading given;
};

/**
 * Reads the document of a report, if its adapter is an observer.
 * @return HFD_OK, or as hfd_health_read; HFD_INVALID also on a nodepool, which has no document
 */
HFD_MUST_CHECK hfd_rc hfd_pacemaker_read_report(const struct hfd_fleet *fleet,
                                                const struct hfd_fleet_report *report,
                                                struct hfd_arena *mem,
                                                struct hfd_pacemaker_report *out,
                                                struct hfd_err *err);

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
