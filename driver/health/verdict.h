/*
 * The verdict on a PacemakerCluster document: healthy, warning, error or unknown, with the texts of
 * the cluster-etcd-operator's health check, and the conditions that follow. The operator reads
 * reported aggregates; this verdict takes the worse of the reported and the derived value. Pure:
 * time is a parameter. Thread: any.
 *
 * The sums of the parts of a PacemakerCluster document: the aggregates Healthy,
 * FencingAvailable, FencingHealthy and NodeCountAsExpected, derived from below. A document also
 * reports them; where it differs, mismatches_of says so, and nothing is refused. Pure.
 * Thread: any. Source: PacemakerCluster, the tables of conditions.
 *
 * A line of text with a ceiling: what does not fit is cut on the border of a character and ends in
 * "...". Thread: any.
 *
 * Events: which one a change of the verdict makes, and when a repeated one is only counted.
 * Reasons and texts are those of the cluster-etcd-operator. Pure: time is a parameter. Thread: any.
 *
 * A PacemakerCluster document and its verdict as the API shows them. Pure. Thread: any.
 */
#ifndef HFD_HEALTH_VERDICT_H
#define HFD_HEALTH_VERDICT_H

#include "driver/base/arena.h"
#include "driver/fleet/aggregate.h"
#include "driver/health/document.h"

#define HFD_HEALTH_LINE_MAX 1024

struct hfd_health_node_facts {
    bool healthy;                         /* FencingHealthy has no part in it */
    bool fencing_available;               /* an agent is healthy, by its parts and by its report */
    bool fencing_healthy;                 /* all are */
    bool resources[HFD_HEALTH_UNITS_MAX]; /* Healthy of each, in the order of the document */
    bool agents[HFD_HEALTH_UNITS_MAX];
};

struct hfd_health_facts {
    bool healthy;
    bool in_service; /* neither the cluster nor a node is in maintenance */
    bool count_as_expected;
    struct hfd_health_node_facts nodes[HFD_HEALTH_NODES_MAX];
};

enum hfd_health_overall {
    HFD_HEALTH_HEALTHY,
    HFD_HEALTH_WARNING,
    HFD_HEALTH_ERROR,
    HFD_HEALTH_UNKNOWN
};

/** "Healthy", "Warning", "Error", "Unknown". */
const char *hfd_health_overall_name(enum hfd_health_overall overall);

/** The kinds of findings. Each has its reason of an event, see verdict.h. */
enum hfd_health_finding {
    HFD_HEALTH_NODE_OFFLINE,
    HFD_HEALTH_NODE_UNHEALTHY,
    HFD_HEALTH_NODE_COUNT,
    HFD_HEALTH_MAINTENANCE,
    HFD_HEALTH_NO_NODES,
    HFD_HEALTH_CLUSTER_UNHEALTHY,
    HFD_HEALTH_STALE,
    HFD_HEALTH_NO_STATUS,
    HFD_HEALTH_NOT_FOUND, /* removed; no document is judged so */
    HFD_HEALTH_FENCING_AT_RISK,
    HFD_HEALTH_MISMATCH,
    HFD_HEALTH_RECOVERED,
    HFD_HEALTH_WARNINGS_CLEARED,
    HFD_HEALTH_FINDINGS
};

struct hfd_health_said {
    enum hfd_health_finding what;
    hfd_slice text; /* "Node master-1 is offline"; at most HFD_HEALTH_LINE_MAX bytes */
};

/** The cluster's line, "no nodes", and one of each node. "Unhealthy" stands alone. */
#define HFD_HEALTH_SAID_MAX (2 + HFD_HEALTH_NODES_MAX)

struct hfd_health_verdict {
    enum hfd_health_overall overall;
    bool stale; /* late, and it has a status */
    bool late;  /* see hfd_health_judge */
    struct hfd_health_said errors[HFD_HEALTH_SAID_MAX];
    size_t error_count;
    struct hfd_health_said warnings[HFD_HEALTH_SAID_MAX];
    size_t warning_count;
    hfd_slice mismatch;            /* mismatches_of; empty = none */
    struct hfd_health_facts facts; /* all false without a status */
};

/**
 * When the document becomes stale: it is not yet at this microsecond, and it is at the next. A
 * lastUpdated behind its arrival counts as the arrival: a wrong clock cannot hide age. Without a
 * status it is the end of the time in which one is expected.
 */
#define HFD_HEALTH_STALE_AFTER_US (INT64_C(300) * 1000000)
static inline int64_t hfd_health_stale_us(const struct hfd_health_document *doc,
                                          int64_t received_us)
{
    return (doc->has_status && doc->updated_us < received_us ? doc->updated_us : received_us) +
           HFD_HEALTH_STALE_AFTER_US;
}

/**
 * Judges a document.
 * @param late  the time of hfd_health_stale_us has passed
 * @param mem    keeps the texts of out
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_health_judge(const struct hfd_health_document *doc, bool late,
                                       struct hfd_arena *mem, struct hfd_health_verdict *out,
                                       struct hfd_err *err);

/** The reports' condition types that follow from a verdict. */
#define HFD_HEALTH_DEGRADED HFD_OBSERVER_CONDITION

/**
 * The adapter's Available and PacemakerHealthCheckDegraded. Healthy and Warning: True and False.
 * Error: False and True, with the errors. Unknown: the same when a verdict was known before; else
 * both are Unknown, which decides nothing. The operator waits 5 minutes after the last known
 * verdict; these have always passed when a document is stale, as lastUpdated never goes back.
 * @param known_before  this cluster had a document that was not stale when it was judged
 * @return HFD_OK, HFD_NOMEM. Only type, status, reason and message of the two are set.
 */
HFD_MUST_CHECK hfd_rc hfd_health_conditions(const struct hfd_health_verdict *v, bool known_before,
                                            struct hfd_arena *mem, struct hfd_condition out[2],
                                            struct hfd_err *err);

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
#define HFD_HEALTH_REPEAT_US (INT64_C(300) * 1000000)
static inline bool hfd_health_event_repeats(const struct hfd_health_event *event,
                                            hfd_slice kept_reason, hfd_slice kept_message,
                                            int64_t kept_for_us)
{
    return kept_for_us < HFD_HEALTH_REPEAT_US && hfd_slice_is(kept_reason, event->reason) &&
           hfd_slice_eq(kept_message, event->message);
}

/** A stored document and the verdict on it now. */
struct hfd_health_view {
    hfd_slice text;
    struct hfd_health_document document;
    struct hfd_health_verdict verdict;
};

/** Adds the document with its verdict as the member "health". */
void hfd_health_format(struct hfd_buf *b, const struct hfd_health_view *view);

#endif
