/*
 * One driver resource in full, for people: the order and its caller, the state, the adapters, and
 * the history. It has no secrets. Thread: any reader, inside a transaction function.
 */
#ifndef HFD_CORE_DETAIL_H
#define HFD_CORE_DETAIL_H

#include "driver/core/history.h"
#include "driver/core/overview.h"
#include "driver/core/parts.h"
#include "driver/health/verdict.h"

/** An adapter on one part of the resource. A time is 0, and a text empty, where there is none. */
struct hfd_detail_adapter {
    const struct hfd_part *part;
    hfd_slice name;
    bool required;
    bool done;              /* with what the operation, or the last one, wants of it */
    bool reported;          /* the members below are of its last report */
    enum hfd_status status; /* Available; Finalized during a deletion */
    hfd_slice reason, message;
    int64_t generation;
    int64_t reported_us;
    int64_t since_us; /* of the status */
    int64_t took_us;  /* from the beginning of the operation until it was done */
    int64_t usual_us; /* the same, as a median of past operations */
};

/** A PacemakerCluster document and the verdict on it. */
struct hfd_detail_health {
    hfd_slice adapter;
    struct hfd_health_view view;
};

struct hfd_detail {
    bool is_there; /* else it was removed: item has its name, type and kind, and history is set */
    struct hfd_overview_item item;
    hfd_slice incarnation;
    int64_t instance;          /* hfd_history_row.instance: the one that goes on */
    int64_t first_estimate_us; /* of an operation under way */
    hfd_slice input;           /* JSON object as a PUT takes it, made from its parts, no secrets */
    hfd_slice created_by, updated_by;
    hfd_slice protected_by; /* hfd_protect_by */
    hfd_slice app, env;     /* of its labels */
    struct hfd_parts parts;
    struct hfd_detail_adapter *adapters; /* by part; required ones first */
    size_t adapter_count;
    struct hfd_detail_health *health;
    size_t health_count;
    struct hfd_history history;
};

/**
 * Reads a resource that is there, or was removed within driver.tombstone.
 * @return HFD_OK, HFD_NOT_FOUND
 */
HFD_MUST_CHECK hfd_rc hfd_detail_read(const struct hfd_ctx *c, hfd_slice guresid,
                                      struct hfd_detail *out);

#endif
