/*
 * Turns adapter reports into the conditions of a cluster or nodepool: Ready, Available,
 * LastKnownReconciled, Reconciled and <Adapter>Successful. README.md in this folder has the tables,
 * row by row. Pure: no clock, no I/O; allocates from the given arena. Sources: HyperFleet API,
 * "Status"; driver/README.md, decisions 1, 4 and 6. Thread: any.
 *
 * The decision about a report, before any aggregation. Pure. Thread: any.
 *
 * Counts the reports of adapters that are not required, which often have a misspelt name. The first
 * report of each such adapter is logged, with the required name that is near. Thread: writer,
 * inside a transaction function.
 */
#ifndef HFD_FLEET_AGGREGATE_H
#define HFD_FLEET_AGGREGATE_H

#include "driver/base/slice.h"
#include "driver/fleet/condition.h"

struct hfd_txn;

/** The part of a stored report that aggregation reads. */
struct hfd_agg_report {
    hfd_slice adapter;
    int64_t observed_generation; /* X */
    int64_t observed_us;         /* obs_time, later last_report_time */
    enum hfd_status available;
    enum hfd_status finalized; /* absent in the report = False */
    hfd_slice reason;          /* of its Available condition */
    hfd_slice message;
    bool has_verdict; /* it has HFD_OBSERVER_CONDITION, and it is not Unknown */
};

struct hfd_agg_reports {
    const struct hfd_agg_report *items;
    size_t count;
};

struct hfd_adapter_names {
    const hfd_slice *items; /* the required adapters, in the settings' order */
    size_t count;
};
bool hfd_adapter_names_have(struct hfd_adapter_names names, hfd_slice name);

struct hfd_agg_input {
    struct hfd_adapter_names required;
    struct hfd_adapter_names observers; /* see hfd_fleet.observers */
    const char *kind_name;              /* "Cluster" or "NodePool", for messages */
    int64_t generation;                 /* G */
    int64_t now_us;
    int64_t updated_us; /* updated_time of the resource */
    const struct hfd_conditions *prev;
    struct hfd_agg_reports reports;     /* the stored reports, with the new one in its place */
    const struct hfd_agg_report *event; /* the new report */
    bool deleting;                      /* deleted_time is set */
    bool has_children;                  /* nodepools that still exist */
};

/*
 * The three aggregations return HFD_OK or HFD_NOMEM (out is empty then). Text in out lives in mem,
 * in the input, or for ever.
 */

/**
 * Makes the conditions of a new resource at generation 1: all four are False. It reads required and
 * now_us only.
 */
HFD_MUST_CHECK hfd_rc hfd_agg_created(const struct hfd_agg_input *in, struct hfd_arena *mem,
                                      struct hfd_conditions *out);

/**
 * Makes the conditions after the generation became in->generation, by a change or a deletion. It
 * reads required, generation, now_us, updated_us, prev and deleting only: no report can be at a new
 * generation.
 */
HFD_MUST_CHECK hfd_rc hfd_agg_changed(const struct hfd_agg_input *in, struct hfd_arena *mem,
                                      struct hfd_conditions *out);

/**
 * Makes the conditions after a report was stored (in->event). A report of an adapter that is not
 * required changes nothing. While deleting, the rows of Ready read Finalized instead of Available,
 * and Ready turns True only without children.
 */
HFD_MUST_CHECK hfd_rc hfd_agg_reported(const struct hfd_agg_input *in, struct hfd_arena *mem,
                                       struct hfd_conditions *out);

/**
 * True if the resource can be removed: all required adapters have reported Finalized=True at the
 * generation, and no child is left.
 */
bool hfd_agg_finalized(const struct hfd_agg_input *in);

/** The decision about a report, before any aggregation. */
enum hfd_verdict {
    HFD_VERDICT_STORE,
    /* equal time and content: the stored report is the answer, nothing is written */
    HFD_VERDICT_REPEAT,
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
    bool keeps_unknown; /* D4 does not hold: the report is an observer's */
    bool has_prev;      /* this adapter has reported before */
    int64_t prev_generation;
    int64_t prev_observed_us;
    bool same_content; /* conditions, data and metadata equal those of the stored report */
};

/**
 * Applies the discard table: rows D1 to D7 of README.md, with decisions 1 and 6 of
 * driver/README.md.
 * @param why the first missing mandatory type on REJECT; the cause of a DISCARD: "ahead", "behind",
 * "older" or "unknown"; else NULL
 */
enum hfd_verdict hfd_report_verdict(const struct hfd_verdict_input *in, const char **why);

/**
 * Counts a report, once the transaction is on disk. Writes a log line as well if it is the first
 * report of this adapter that the process counts.
 * @param required  the adapters that are required for the kind of resource; lives for ever
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_fleet_count_not_required(struct hfd_txn *tx, hfd_slice adapter,
                                                   const struct hfd_adapter_names *required,
                                                   struct hfd_err *err);

#endif
