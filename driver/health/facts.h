/*
 * The sums of the parts of a PacemakerCluster document: the aggregates Healthy,
 * FencingAvailable, FencingHealthy and NodeCountAsExpected, derived from below. A document also
 * reports them; where it differs, hfd_health_mismatches says so, and nothing is refused. Pure.
 * Thread: any. Source: PacemakerCluster, the tables of conditions.
 */
#ifndef HFD_HEALTH_FACTS_H
#define HFD_HEALTH_FACTS_H

#include "driver/health/document.h"

/** Two nodes make a cluster with fencing. */
#define HFD_HEALTH_NODES_EXPECTED 2

struct hfd_health_node_facts {
    bool healthy; /* FencingHealthy has no part in it */
    bool fencing_available;
    bool fencing_healthy;
    bool resources[HFD_HEALTH_UNITS_MAX]; /* Healthy of each, in the order of the document */
    bool agents[HFD_HEALTH_UNITS_MAX];
};

struct hfd_health_facts {
    bool healthy;
    bool in_service; /* neither the cluster nor a node is in maintenance */
    bool count_as_expected;
    struct hfd_health_node_facts nodes[HFD_HEALTH_NODES_MAX];
};

/** @param doc  one with a status */
void hfd_health_derive(const struct hfd_health_document *doc, struct hfd_health_facts *out);

/**
 * Where reported aggregates differ from the derived ones: "node master-0: Healthy is reported
 * True". A node with FencingHealthy=False alone may report either value.
 * @param out  empty when all agree; at most HFD_HEALTH_LINE_MAX bytes
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_health_mismatches(const struct hfd_health_document *doc,
                                            const struct hfd_health_facts *facts,
                                            struct hfd_arena *mem, hfd_slice *out,
                                            struct hfd_err *err);

#endif
