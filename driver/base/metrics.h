/*
 * Counters, gauges and histograms, and their Prometheus text (format 0.0.4). The table below has
 * all metrics of the program: store, backend and handlers count in the same place, so it stands in
 * the lowest layer. A metric has at most HFD_METRIC_SERIES_MAX series; further label values count
 * as "other". An update of an existing series takes no lock. Thread: any.
 */
#ifndef HFD_BASE_METRICS_H
#define HFD_BASE_METRICS_H

#include "driver/base/buf.h"

struct hfd_series;

/* The constant labels of all metrics that HyperFleet's own server has. */
#define HFD_API_ALL "component=\"api\",version=\"" HFD_VERSION "\""
/* clang-format off */
/* SET_GAUGE: no sample until it is set, because 0 would look like a result. */
/*  enum name,            kind,      prometheus name,                         constant labels, labels (comma list), help */
#define HFD_METRIC_LIST(X)                                                                                                                 \
    X(BUILD_INFO,         GAUGE,     "hfd_build_info",                        "",          "version",           "Constant 1; the label is the version.") \
    X(HTTP_REQUESTS,      COUNTER,   "hfd_http_requests_total",               "",          "method,route,code", "Answered requests.")      \
    X(HTTP_SECONDS,       HISTOGRAM, "hfd_http_request_duration_seconds",     "",          "method,route",      "Time from the request head to the answer.") \
    X(HTTP_CONNECTIONS,   GAUGE,     "hfd_http_connections",                  "",          "",                  "Open connections.")       \
    X(WATCHERS,           GAUGE,     "hfd_event_watchers",                    "",          "",                  "Callers that wait for events or a resource.") \
    X(EVENTS_SENT,        COUNTER,   "hfd_events_sent_total",                 "",          "target,stream",     "Events that a webhook or broker has taken.") \
    X(EVENTS_FAILED,      COUNTER,   "hfd_events_failed_total",               "",          "target,stream",     "Attempts to send an event that failed.") \
    X(EVENTS_DROPPED,     COUNTER,   "hfd_events_dropped_total",              "",          "target,stream",     "Events that are not tried any more, as their target has refused them for 72 hours.") \
    X(EVENTS_OLDEST,      GAUGE,     "hfd_events_oldest_unsent_seconds",      "",          "target",            "Age of the oldest event that a target lacks; 0 if it has all, and on replicas that do not lead.") \
    X(HTTP_INFLIGHT,      GAUGE,     "hfd_http_requests_in_flight",           "",          "",                  "Requests in progress.") \
    X(HTTP_REFUSED,       COUNTER,   "hfd_http_refused_total",                "",          "reason",            "Requests and connections refused before routing, by reason.") \
    X(AUTH_REFUSED,       COUNTER,   "hfd_auth_refused_total",                "",          "reason",            "Calls refused with 401, 403 (scope, adapter, reserved) or 503 (no_keys), by reason.") \
    X(CERTIFICATE_EXPIRY, SET_GAUGE, "hfd_certificate_expiry_seconds",        "",          "",                  "Seconds until the certificate of tls.cert_file, or one of its chain, expires; negative afterwards.") \
    X(STORE_COMMITS,      COUNTER,   "hfd_store_commits_total",               "",          "",                  "Commits to the database.")  \
    X(STORE_JOBS,         COUNTER,   "hfd_store_jobs_total",                  "",          "result",            "Write jobs, by result.") \
    X(STORE_COMMIT_SECONDS,HISTOGRAM,"hfd_store_commit_duration_seconds",     "",          "",                  "Time of one commit, including its jobs.") \
    X(STORE_ROUND_TRIPS,  COUNTER,   "hfd_store_round_trips_total",           "",          "for",               "Round trips to PostgreSQL: look reads for a group of the writer, miss reads alone, write writes before a group ends, commit ends it. Two for each group are usual. read: reads for all GETs that wait.") \
    X(STORE_RERUNS,       COUNTER,   "hfd_store_reruns_total",                "",          "reason",            "Groups of write jobs that ran again, by what undid them.") \
    X(STORE_QUEUE,        GAUGE,     "hfd_store_queue_length",                "",          "",                  "Write jobs in the queue.")     \
    X(KEY_ROWS,           GAUGE,     "hfd_key_rows",                          "",          "key,state",         "Rows whose cookie, digest or secrets need a key of the key ring, while there are several.") \
    X(STORE_OK,           GAUGE,     "hfd_store_ok",                          "",          "",                  "1 while the store accepts work, 0 after it has failed.") \
    X(LEASES,             SET_GAUGE, "hfd_replica_leads",                     "",          "",                  "1 while this replica leads: it alone does the work in the background; with PostgreSQL.") \
    X(REPLICAS,           SET_GAUGE, "hfd_replicas",                          "",          "",                  "Replicas with a sign of life in the last 9 s; with PostgreSQL.") \
    X(DB_CLOCK,           SET_GAUGE, "hfd_database_clock_ahead_seconds",      "",          "",                  "Whole seconds by which the clock of the database is ahead of this machine's; with PostgreSQL.") \
    X(TRANSITIONS,        COUNTER,   "hfd_resource_transitions_total",        "",          "from,to",           "State changes of driver resources.") \
    X(RESOURCES,          GAUGE,     "hfd_resources",                         "",          "type,state",        "Driver resources, by type and state; counted at each scrape.") \
    X(OLDEST_OPERATION,   GAUGE,     "hfd_oldest_operation_seconds",          "",          "operation",         "Age of the oldest operation in progress (create, update, delete); 0 if there is none.") \
    X(DRIFTED,            GAUGE,     "hfd_resources_drifted",                 "",          "",                  "Resources that are ready and not as they were ordered; counted at each scrape.") \
    X(STUCK,              GAUGE,     "hfd_resources_stuck",                   "",          "operation",         "Operations in progress that take twice their first estimate, and at least 5 minutes; counted at each scrape.") \
    X(HEALTH_CHANGES,     COUNTER,   "hfd_resource_health_changes_total",     "",          "to",                "Changes of ready driver resources to degraded, or back.") \
    X(REPORTS,            COUNTER,   "hfd_fleet_reports_total",               "",          "kind,outcome,cause", "Adapter reports, by outcome. The cause is that of a discarded one: ahead or behind (its generation), older (its time), unknown (Available is Unknown).") \
    X(NOT_REQUIRED,       COUNTER,   "hfd_reports_not_required_total",        "",          "adapter",           "Reports of adapters that are not required, and so decide nothing.") \
    X(LAST_REPORT,        GAUGE,     "hfd_adapter_last_report_timestamp_seconds","",        "adapter",           "Time of the last stored report of an adapter, since the start of the program.") \
    X(REMOTE_UP,          SET_GAUGE, "hfd_remote_up",                         "",          "",                  "1 while the remote HyperFleet works, 0 after three failures in a row.") \
    X(REMOTE_BREAKER_OPEN,SET_GAUGE, "hfd_remote_breaker_open",               "",          "",                  "1 while the circuit breaker stops new requests to the remote HyperFleet.") \
    X(REMOTE_REQUESTS,    COUNTER,   "hfd_remote_requests_total",             "",          "method,class",      "Requests to the remote HyperFleet, by status class; none = no complete answer.") \
    X(REMOTE_SECONDS,     HISTOGRAM, "hfd_remote_request_duration_seconds",   "",          "method",            "Time of requests to the remote HyperFleet.") \
    X(REMOTE_IN_FLIGHT,   GAUGE,     "hfd_remote_requests_in_flight",         "",          "",                  "Requests to the remote HyperFleet in progress.") \
    X(REMOTE_DUE,         SET_GAUGE, "hfd_remote_due",                        "",          "",                  "Resources that are due for requests to the remote HyperFleet; counted every 10 s.") \
    X(REMOTE_OVERDUE,     SET_GAUGE, "hfd_remote_overdue",                    "",          "",                  "Resources that have been due for longer than remote.watch; counted every 10 s.") \
    X(REMOTE_ASKED,       COUNTER,   "hfd_remote_asked_total",                "",          "",                  "Polls that made the program read a resource from the remote HyperFleet again.") \
    X(KUBE_REQUESTS,      COUNTER,   "hfd_kube_requests_total",               "",          "method,class",      "Requests to API servers of Kubernetes, by status class; none = no complete answer. A watch counts when it begins.") \
    X(HYPERSHIFT_UP,      GAUGE,     "hfd_hypershift_management_up",          "",          "management",        "1 while the HyperShift adapter reaches the management cluster, and may watch it.") \
    X(HYPERSHIFT_FLEET_UP,GAUGE,     "hfd_hypershift_fleet_up",               "",          "management",        "1 while the adapter of that management cluster can read and write HyperFleet.") \
    X(HYPERSHIFT_VISITS,  COUNTER,   "hfd_hypershift_visits_total",           "",          "management,end",    "Visits of the HyperShift adapter to clusters and nodepools, by their end: done, waits, refused, fault, again, stopped.") \
    X(PROBLEM,            GAUGE,     "hfd_problem",                           "",          "kind,name",         "1 while something is wrong, as the status page and /healthz tell it; 0 when it is over.") \
    X(LOG_DROPPED,        COUNTER,   "hfd_log_lines_dropped_total",           "",          "",                  "Log lines dropped because the log was not read.") \
    X(NEVER,              COUNTER,   "hfd_never_total",                       "",          "",                  "Internal invariants found broken. Report any value above 0.") \
    X(API_BUILD_INFO,     GAUGE,     "hyperfleet_api_build_info",             HFD_API_ALL, "",                  "Constant 1; the name that HyperFleet uses.") \
    X(API_REQUESTS,       COUNTER,   "hyperfleet_api_requests_total",         HFD_API_ALL, "method,path,code",  "Answered requests to the HyperFleet API.") \
    X(API_SECONDS,        FROM_5_MS, "hyperfleet_api_request_duration_seconds",HFD_API_ALL,"method,path,code",  "Time from the request head to the answer, for requests to the HyperFleet API.") \
    X(API_STARTED,        COUNTER,   "hyperfleet_api_reconciliation_started_total",HFD_API_ALL,"resource_type,is_delete","Clusters and nodepools whose Reconciled became False, new ones included.") \
    X(API_PENDING,        GAUGE,     "hyperfleet_api_resource_pending_reconciliation",HFD_API_ALL,"resource_type,is_delete","Clusters and nodepools whose Reconciled is False; counted at each scrape.") \
    X(API_STUCK,          GAUGE,     "hyperfleet_api_resource_pending_reconciliation_stuck",HFD_API_ALL,"resource_type,is_delete","Those among them for longer than metrics.reconciliation_stuck_threshold.") \
    X(API_STUCK_SECONDS,  GAUGE,     "hyperfleet_api_resource_pending_reconciliation_stuck_duration_seconds",HFD_API_ALL,"resource_type,is_delete","The longest time that one of them has been pending; 0 if none is stuck.")
/* clang-format on */
#define HFD_METRIC_ENUM_(name, kind, text, constants, labels, help) HFD_METRIC_##name,
enum hfd_metric {
    HFD_METRIC_LIST(HFD_METRIC_ENUM_) HFD_METRIC_COUNT
};
#undef HFD_METRIC_ENUM_

#define HFD_METRIC_SERIES_MAX 512

/**
 * Adds to a counter or gauge.
 * @param labels one value for each label name, in the order of the table; NULL for a metric without
 * labels
 */
void hfd_metric_add(enum hfd_metric m, const char *const *labels, int64_t delta);
void hfd_metric_set(enum hfd_metric m, const char *const *labels, int64_t value);
/** Returns the value of a counter or gauge, and makes no series: 0 where there is none. */
int64_t hfd_metric_value(enum hfd_metric m, const char *const *labels);
/**
 * Observes a duration in a histogram. Its buckets are .001 .0025 .005 .01 .025 .05 .1 .25 .5 1 2.5
 * 5 10 seconds; FROM_5_MS begins at .005.
 */
void hfd_metric_observe_us(enum hfd_metric m, const char *const *labels, int64_t duration_us);
#define HFD_LABELS(...) ((const char *const[]){__VA_ARGS__})

/**
 * Finds or makes a series, for a caller that keeps it because it counts often. A series is never
 * freed.
 * @return NULL when memory is short; the functions below accept NULL and count nothing
 */
struct hfd_series *hfd_metric_series(enum hfd_metric m, const char *const *labels);
/** Returns the value of a counter or gauge; 0 without a series. */
int64_t hfd_series_value(const struct hfd_series *s);
/** As hfd_metric_add, for a counter or gauge. */
void hfd_series_add(struct hfd_series *s, int64_t delta);
/** As hfd_metric_observe_us, for a histogram. */
void hfd_series_observe_us(struct hfd_series *s, int64_t duration_us);

/** Adds all metrics in Prometheus text format, with those of metrics.h. */
void hfd_metrics_render(struct hfd_buf *b);

/** Adds a Markdown table of all metrics: name, type, labels, meaning. For the manual. */
void hfd_metrics_table(struct hfd_buf *b);

#endif
