/*
 * Events: which one a change of the verdict makes, and when a repeated one is only counted.
 * Reasons and texts are those of the cluster-etcd-operator. Pure: time is a parameter. Thread: any.
 */
#ifndef HFD_HEALTH_EVENT_H
#define HFD_HEALTH_EVENT_H

#include "driver/health/verdict.h"

/** The same text within this time after an event is no new event: its count rises. */
#define HFD_HEALTH_REPEAT_US (INT64_C(300) * 1000000)

struct hfd_health_event {
    bool warning;       /* its type: Warning or Normal */
    const char *reason; /* "PacemakerNodeOffline" */
    hfd_slice message;  /* "Pacemaker error: Node master-1 is offline" */
};

/** Each finding at most once, and one event of each kind of transition. */
#define HFD_HEALTH_EVENTS_MAX (2 * HFD_HEALTH_SAID_MAX + 3)

struct hfd_health_events {
    struct hfd_health_event items[HFD_HEALTH_EVENTS_MAX];
    size_t count;
};

/** "PacemakerNodeOffline" of a finding. */
const char *hfd_health_reason(enum hfd_health_finding what);

/**
 * The events of a verdict: one of each warning, error and mismatch; PacemakerHealthy when errors,
 * or not knowing, end; PacemakerWarningsCleared when warnings end.
 * @param before  the verdict before; NULL = there was none
 * @param mem     keeps the texts of out
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_health_events(const struct hfd_health_verdict *before,
                                        const struct hfd_health_verdict *now, struct hfd_arena *mem,
                                        struct hfd_health_events *out, struct hfd_err *err);

/**
 * Tells if an event repeats one that is kept: same reason and text, not yet HFD_HEALTH_REPEAT_US
 * after that one was new.
 */
bool hfd_health_event_repeats(const struct hfd_health_event *event, hfd_slice kept_reason,
                              hfd_slice kept_message, int64_t kept_for_us);

#endif
