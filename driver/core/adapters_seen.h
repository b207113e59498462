/*
 * The required adapters of all resources together, for the status page. Of each: how many resources
 * it is well on, its last report, and how long it took lately. Thread: any reader, inside a
 * transaction function.
 */
#ifndef HFD_CORE_ADAPTERS_SEEN_H
#define HFD_CORE_ADAPTERS_SEEN_H

#include "driver/core/driver.h"

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

/** Reads what is known of the required adapters. @return HFD_OK, HFD_NOMEM, HFD_IO, HFD_CORRUPT */
HFD_MUST_CHECK hfd_rc hfd_adapters_read(const struct hfd_ctx *c, struct hfd_adapters_seen *out);

/** Notes that a report of an adapter was stored, now. Thread: any. */
void hfd_adapter_note_report(hfd_slice adapter, int64_t now_us);

#endif
