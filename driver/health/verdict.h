/*
 * The verdict on a PacemakerCluster document: healthy, warning, error or unknown, with the texts of
 * the cluster-etcd-operator's health check, and the conditions that follow. The operator reads
 * reported aggregates; this verdict takes the worse of the reported and the derived value. Pure:
 * time is a parameter. Thread: any.
 */
#ifndef HFD_HEALTH_VERDICT_H
#define HFD_HEALTH_VERDICT_H

#include "driver/fleet/aggregate.h"
#include "driver/health/facts.h"

/** A document older than this is stale. */
#define HFD_HEALTH_STALE_AFTER_US (INT64_C(300) * 1000000)

enum hfd_health_overall {
    HFD_HEALTH_HEALTHY,
    HFD_HEALTH_WARNING,
    HFD_HEALTH_ERROR,
    HFD_HEALTH_UNKNOWN
};

/** "Healthy", "Warning", "Error", "Unknown". */
const char *hfd_health_overall_name(enum hfd_health_overall overall);

/** The kinds of findings. Each has its reason of an event, see event.h. */
enum hfd_health_finding {
    HFD_HEALTH_NODE_OFFLINE,
    HFD_HEALTH_NODE_UNHEALTHY,
    HFD_HEALTH_NODE_COUNT,
    HFD_HEALTH_MAINTENANCE,
    HFD_HEALTH_NO_NODES,
    HFD_HEALTH_STALE,
    HFD_HEALTH_NO_STATUS,
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

/** The cluster's line, "no nodes", and one of each node. */
#define HFD_HEALTH_SAID_MAX (2 + HFD_HEALTH_NODES_MAX)

struct hfd_health_verdict {
    enum hfd_health_overall overall;
    bool stale;
    struct hfd_health_said errors[HFD_HEALTH_SAID_MAX];
    size_t error_count;
    struct hfd_health_said warnings[HFD_HEALTH_SAID_MAX];
    size_t warning_count;
    hfd_slice mismatch;            /* hfd_health_mismatches; empty = none */
    struct hfd_health_facts facts; /* all false without a status */
};

/**
 * When the document becomes stale: it is not yet at this microsecond, and it is at the next. A
 * lastUpdated behind its arrival counts as the arrival: a wrong clock cannot hide age.
 */
int64_t hfd_health_stale_us(const struct hfd_health_document *doc, int64_t received_us);

/**
 * Judges a document.
 * @param stale  the time of hfd_health_stale_us has passed
 * @param mem    keeps the texts of out
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_health_judge(const struct hfd_health_document *doc, bool stale,
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

#endif
