/*
 * Metrics that count what is stored: resources by type and state, the oldest operations, and the
 * clusters and nodepools that are not reconciled. Each scrape reads them anew, so a change of a
 * resource costs no more than a kept total. Source of the names hyperfleet_api_*: HyperFleet API,
 * "Reconciliation Observability Metrics".
 *
 * The required adapters of all resources together, for the status page. Of each: how many resources
 * it is well on, its last report, and how long it took lately. Thread: any reader, inside a
 * transaction function.
 */
#ifndef HFD_CORE_GAUGES_H
#define HFD_CORE_GAUGES_H

#include "driver/core/driver.h"
#include "store/rows_fleet.h"
#include "store/totals.h"

struct hfd_gauges {
    struct hfd_resource_totals resources;
    int64_t now_us;
    int64_t oldest_us[HFD_OP_COUNT]; /* start of the oldest operation; 0 = none is in progress */
    int64_t stuck[HFD_OP_COUNT];     /* operations in progress that take too long */
    int64_t drifted;                 /* resources that are ready, and not as they were ordered */
    struct hfd_unreconciled_counts unreconciled;
};

/**
 * Reads the values.
 * @param stuck_us  a cluster or nodepool that is pending for longer counts as stuck
 * @param out       texts are in c->mem
 * Thread: reader.
 */
HFD_MUST_CHECK hfd_rc hfd_gauges_read(const struct hfd_ctx *c, int64_t stuck_us,
                                      struct hfd_gauges *out);

/**
 * Sets the metrics. A type that the settings do not name counts as "other".
 * Failures, which an alert watches, exist with 0 from the first call: an increase from
 * nothing is none for Prometheus.
 * @param with_fleet  HyperFleet's own metrics as well: its API is served here
 * Thread: any.
 */
void hfd_gauges_set(const struct hfd_gauges *g, const struct hfd_input_rules *rules,
                    bool with_fleet);

#define HFD_ADAPTER_TIMES_MAX 24

struct hfd_adapter_seen {
    hfd_slice name;
    enum hfd_kind kind;      /* of the resources that it reports on */
    int64_t good, bad, open; /* clusters or nodepools by the status of its condition */
    int64_t last_us;         /* its last report since the start of the program; 0 = none */
    int64_t times_us[HFD_ADAPTER_TIMES_MAX]; /* from the beginning of creations, oldest first */
    size_t time_count;
    int64_t median_us; /* of these; 0 = there are none */
};

struct hfd_adapters_seen {
    struct hfd_adapter_seen *items; /* those of clusters, then those of nodepools */
    size_t count;
};

/**
 * Reads what is known of the required adapters.
 * @param times  with how long they took
 * @return HFD_OK, HFD_NOMEM, HFD_IO, HFD_CORRUPT
 */
HFD_MUST_CHECK hfd_rc hfd_adapters_read(const struct hfd_ctx *c, bool times,
                                        struct hfd_adapters_seen *out);

#endif
