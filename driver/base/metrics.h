/*
 * Counters, gauges and histograms, and their Prometheus text (format 0.0.4). All metrics of the
 * program stand in one table in metrics.c (name, kind, help, label names); label values are
 * bounded: a metric has at most HFD_METRIC_SERIES_MAX series, the rest is counted under label
 * values "other". Updates are lock-free once a series exists. Thread: any.
 */
#ifndef HFD_BASE_METRICS_H
#define HFD_BASE_METRICS_H

#include "driver/base/buf.h"

#define HFD_API_ALL                                                                                \
    "component=\"api\",version=\"" HFD_VERSION                                                     \
    "\"" /* on all metrics that HyperFleet's own server has */

/* clang-format off */
/* SET_GAUGE: without a sample until it is set, as 0 would be taken for an answer where there is nothing to ask. */
/*  enum name,            kind,      prometheus name,                         constant labels, labels (comma list), help */
#define HFD_METRIC_LIST(X)                                                                                                                 \
    X(BUILD_INFO,         GAUGE,     "hfd_build_info",                        "",          "version",           "Constant 1, labelled by version.") \
    X(HTTP_REQUESTS,      COUNTER,   "hfd_http_requests_total",               "",          "method,route,code", "Requests answered.")      \
    X(HTTP_SECONDS,       HISTOGRAM, "hfd_http_request_duration_seconds",     "",          "method,route",      "Time from head to answer.") \
    X(HTTP_CONNECTIONS,   GAUGE,     "hfd_http_connections",                  "",          "",                  "Open connections.")       \
    X(HTTP_INFLIGHT,      GAUGE,     "hfd_http_requests_in_flight",           "",          "",                  "Requests waiting for an answer.") \
    X(HTTP_REFUSED,       COUNTER,   "hfd_http_refused_total",                "",          "reason",            "Requests or connections turned away at the door.") \
    X(STORE_COMMITS,      COUNTER,   "hfd_store_commits_total",               "",          "",                  "Commits of the writer.")  \
    X(STORE_JOBS,         COUNTER,   "hfd_store_jobs_total",                  "",          "result",            "Write jobs by result code.") \
    X(STORE_COMMIT_SECONDS,HISTOGRAM,"hfd_store_commit_duration_seconds",     "",          "",                  "Time of one commit, with its jobs.") \
    X(STORE_QUEUE,        GAUGE,     "hfd_store_queue_length",                "",          "",                  "Write jobs waiting.")     \
    X(STORE_OK,           GAUGE,     "hfd_store_ok",                          "",          "",                  "1 while the store accepts work, 0 after it failed.") \
    X(TRANSITIONS,        COUNTER,   "hfd_resource_transitions_total",        "",          "from,to",           "State changes of driver resources.") \
    X(HEALTH_CHANGES,     COUNTER,   "hfd_resource_health_changes_total",     "",          "to",                "Ready driver resources that became degraded, or recovered.") \
    X(REPORTS,            COUNTER,   "hfd_fleet_reports_total",               "",          "kind,outcome",      "Adapter reports by outcome.") \
    X(REMOTE_UP,          SET_GAUGE, "hfd_remote_up",                         "",          "",                  "1 while the remote HyperFleet works, 0 from the third failure in a row.") \
    X(REMOTE_BREAKER_OPEN,SET_GAUGE, "hfd_remote_breaker_open",               "",          "",                  "1 while no new work with the remote HyperFleet is begun.") \
    X(REMOTE_REQUESTS,    COUNTER,   "hfd_remote_requests_total",             "",          "method,class",      "Requests to the remote HyperFleet by status class; none: no whole answer.") \
    X(REMOTE_SECONDS,     HISTOGRAM, "hfd_remote_request_duration_seconds",   "",          "method",            "Time of requests to the remote HyperFleet.") \
    X(REMOTE_IN_FLIGHT,   GAUGE,     "hfd_remote_requests_in_flight",         "",          "",                  "Requests to the remote HyperFleet waiting for an answer.") \
    X(REMOTE_DUE,         SET_GAUGE, "hfd_remote_due",                        "",          "",                  "Resources whose turn with the remote HyperFleet has come; counted every 10 s.") \
    X(REMOTE_OVERDUE,     SET_GAUGE, "hfd_remote_overdue",                    "",          "",                  "Those of them whose turn came longer than remote.watch ago.") \
    X(REMOTE_ASKED,       COUNTER,   "hfd_remote_asked_total",                "",          "",                  "Polls that had a resource observed anew.") \
    X(LOG_DROPPED,        COUNTER,   "hfd_log_lines_dropped_total",           "",          "",                  "Log lines dropped because the log was not read in time.") \
    X(NEVER,              COUNTER,   "hfd_never_total",                       "",          "",                  "Things that cannot happen, and did.") \
    X(API_BUILD_INFO,     GAUGE,     "hyperfleet_api_build_info",             HFD_API_ALL, "",                  "Constant 1, in HyperFleet's words.") \
    X(API_REQUESTS,       COUNTER,   "hyperfleet_api_requests_total",         HFD_API_ALL, "method,path,code",  "Requests to the HyperFleet API answered.") \
    X(API_SECONDS,        FROM_5_MS, "hyperfleet_api_request_duration_seconds",HFD_API_ALL,"method,path,code",  "Time from head to answer of requests to the HyperFleet API.")
/* clang-format on */

#define HFD_METRIC_ENUM_(name, kind, text, constants, labels, help) HFD_METRIC_##name,
enum hfd_metric {
    HFD_METRIC_LIST(HFD_METRIC_ENUM_) HFD_METRIC_COUNT
};
#undef HFD_METRIC_ENUM_

#define HFD_METRIC_SERIES_MAX 512

/**
 * Adds to a counter or gauge. labels: one value per label name, in the table's order; NULL where
 * there are none.
 */
void hfd_metric_add(enum hfd_metric m, const char *const *labels, int64_t delta);
void hfd_metric_set(enum hfd_metric m, const char *const *labels, int64_t value);
/**
 * Observes a duration in a histogram (buckets .001 .0025 .005 .01 .025 .05 .1 .25 .5 1 2.5 5 10 s;
 * FROM_5_MS begins at .005).
 */
void hfd_metric_observe_us(enum hfd_metric m, const char *const *labels, int64_t duration_us);
#define HFD_LABELS(...) ((const char *const[]){__VA_ARGS__})

struct hfd_series;

/**
 * One series, for those who count in it often and keep it: it never goes away.
 * @return NULL when memory is short: the functions below take that and count nothing
 */
struct hfd_series *hfd_metric_series(enum hfd_metric m, const char *const *labels);
/** hfd_metric_add of a counter or gauge. */
void hfd_series_add(struct hfd_series *s, int64_t delta);
/** hfd_metric_observe_us of a histogram. */
void hfd_series_observe_us(struct hfd_series *s, int64_t duration_us);

/**
 * The whole exposition, with process_* (cpu seconds, resident and virtual bytes, fds, start time).
 */
void hfd_metrics_render(struct hfd_buf *b);

#endif
