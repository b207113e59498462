/*
 * How reports become a resource's Ready, Available and <Adapter>Successful conditions: the tables
 * of 000_b453de1dc0312d98.txt, row by row, with the decisions of DESIGN 10 (1, 4, 6). README.md in
 * this folder has them all. Pure: no clock, no I/O; allocates from the arena given. Thread: any.
 */
#ifndef HFD_FLEET_AGGREGATE_H
#define HFD_FLEET_AGGREGATE_H

#include "driver/fleet/condition.h"

/** What aggregation needs to know of one stored report. */
struct hfd_agg_report {
    hfd_slice adapter;
    int64_t observed_generation; /* X */
    int64_t observed_us;         /* obs_time, later last_report_time */
    enum hfd_status available;
    enum hfd_status finalized; /* absent in the report = False */
    hfd_slice reason;          /* of its Available condition */
    hfd_slice message;
};

struct hfd_agg_reports {
    const struct hfd_agg_report *items;
    size_t count;
};

struct hfd_adapter_names {
    const hfd_slice *items; /* required adapters, in the settings' order */
    size_t count;
};

struct hfd_agg_input {
    struct hfd_adapter_names required;
    const char *kind_name; /* "Cluster", "NodePool": for messages */
    int64_t generation;    /* G */
    int64_t now_us;
    const struct hfd_conditions *prev;
    struct hfd_agg_reports reports;     /* stored ones, the new report already in its place */
    const struct hfd_agg_report *event; /* the new one */
    bool deleting;                      /* deleted_time is set */
    bool has_children;                  /* nodepools that still exist */
};

/*
 * The three aggregations answer HFD_OK or HFD_NOMEM (then out is empty). Text in out lives in mem,
 * in the input, or for ever.
 */

/** Conditions of a new resource at generation 1: Available and Ready False, AwaitingAdapters. */
HFD_MUST_CHECK hfd_rc hfd_agg_created(int64_t now_us, struct hfd_arena *mem,
                                      struct hfd_conditions *out);

/**
 * After the generation became in->generation (a change, or a deletion). Uses required, generation,
 * now_us, prev and deleting alone: no report can be at a generation that has just begun.
 */
HFD_MUST_CHECK hfd_rc hfd_agg_changed(const struct hfd_agg_input *in, struct hfd_arena *mem,
                                      struct hfd_conditions *out);

/**
 * After a report was stored (in->event). A report of an adapter that is not required changes
 * nothing. While deleting, the rows of Ready read Finalized where the tables say Available, and it
 * turns True only without children.
 */
HFD_MUST_CHECK hfd_rc hfd_agg_reported(const struct hfd_agg_input *in, struct hfd_arena *mem,
                                       struct hfd_conditions *out);

/**
 * Whether all required adapters reported Finalized=True at the generation and no child is left:
 * the resource can go.
 */
bool hfd_agg_finalized(const struct hfd_agg_input *in);

/** What becomes of a report before any aggregation. */
enum hfd_verdict {
    HFD_VERDICT_STORE,
    HFD_VERDICT_REPEAT,  /* equal time and content: answered as stored, nothing written */
    HFD_VERDICT_DISCARD, /* 204 */
    HFD_VERDICT_REJECT,  /* 400: a mandatory condition is missing */
};

struct hfd_verdict_input {
    int64_t generation;          /* G */
    int64_t observed_generation; /* X */
    int64_t observed_us;
    bool has_available, has_applied, has_health;
    enum hfd_status available;
    bool finalized_true;
    bool deleting;
    bool has_prev; /* this adapter reported before */
    int64_t prev_generation;
    int64_t prev_observed_us;
    bool same_content; /* conditions, data and metadata equal the stored report's */
};

/**
 * The discard table, in the order of spec/hyperfleet-api.md section 10 with DESIGN 10.1 and 10.6.
 * @param missing  the first missing mandatory type on REJECT, else NULL
 */
enum hfd_verdict hfd_report_verdict(const struct hfd_verdict_input *in, const char **missing);

/** "gcp-provisioner" -> "GcpProvisionerSuccessful". p is NULL when memory is short. */
hfd_slice hfd_adapter_condition_type(hfd_slice adapter, struct hfd_arena *mem);

#endif
