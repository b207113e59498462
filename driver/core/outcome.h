/*
 * Judges a resource: is it ready, failed for good, late, healthy, and which sentence explains that.
 * Also says what an operation waits for, in the same words: outcome.c has one list of what is not
 * done. Reads conditions and reports of its parts, the operation and the time. Pure. README.md in
 * this folder has the table. Source: driver/README.md, decision 12. Thread: any.
 */
#ifndef HFD_CORE_OUTCOME_H
#define HFD_CORE_OUTCOME_H

#include "driver/base/arena.h"
#include "driver/core/life.h"
#include "driver/fleet/aggregate.h"
#include "store/kind.h"

struct hfd_stranger;

/** The reason of a cause behind the deadline. */
#define HFD_CAUSE_LATE "DeadlineExceeded"

/**
 * A cause: the adapter, "pacemaker", "hyperfleet" for HyperFleet itself, or "hyperfleet-driver"; a
 * reason, which equal causes have in common; and the words about this one. Empty = none.
 */
struct hfd_cause {
    hfd_slice who, reason, words;
};
/** Reads hfd_outcome.cause. Borrows. */
struct hfd_cause hfd_cause_parse(hfd_slice text);

/** One adapter's report on a part. */
struct hfd_part_report {
    hfd_slice adapter;
    int64_t observed_generation;
    int64_t received_us; /* 0: before the operation began; it fails nothing */
    struct hfd_conditions conditions;
};

/** A cluster or nodepool of a driver resource, as it stands in HyperFleet. */
struct hfd_part_view {
    enum hfd_kind kind;
    hfd_slice id, name; /* id is empty while HyperFleet has given none */
    bool exists;
    bool deleting;             /* being deleted: behind our back, or leaving */
    bool leaving;              /* a nodepool that the input no longer has: done when it is gone */
    bool pending;              /* HyperFleet has not taken yet what the driver last asked for */
    int64_t wanted_generation; /* what the driver last wrote */
    int64_t generation;        /* what HyperFleet has */
    struct hfd_conditions conditions;
    const struct hfd_part_report *reports;
    size_t report_count;
    struct hfd_adapter_names required; /* that decide for it; none = those of its kind */
};

/* The state of the parts, whatever the operation. */
enum hfd_progress {
    HFD_PROGRESS_WORKING,
    HFD_PROGRESS_READY,
    HFD_PROGRESS_FAILED,
    HFD_PROGRESS_GONE
};

struct hfd_outcome_input {
    hfd_slice guresid;
    hfd_slice cluster_id; /* named beside a nodepool; may be empty */
    const struct hfd_part_view *parts;
    size_t part_count;
    const hfd_slice *terminal_reasons; /* "REASON" of any adapter, "ADAPTER:REASON" of one */
    size_t terminal_reason_count;
    hfd_slice judge; /* an adapter whose every reason is terminal; empty = none */
    const struct hfd_adapter_names
        *required;                      /* by enum hfd_kind: named where a part waits for them */
    struct hfd_adapter_names observers; /* of clusters; likewise, while they have a verdict */
    /* The operation. */
    enum hfd_state state;
    int64_t deadline_us; /* from then on it is late */
    int64_t now_us;
    /* Nodepools of others in the cluster, which its deletion waits for. */
    const struct hfd_stranger {
        hfd_slice guresid; /* empty = no resource has it */
        const struct hfd_part_view *view;
    } * strangers;
    size_t stranger_count;
    hfd_slice usual;   /* when adapters usually are done, as milestones since started_us */
    hfd_slice trouble; /* what keeps it from being carried out, for the words of a late one; one
                          sentence without its full stop, or empty */
};

struct hfd_outcome {
    enum hfd_progress progress;
    enum hfd_state state; /* where this leads the resource; not always an arrow */
    /*
     * Failed or late: "RES-104", "RES-105"; else NULL. A late deletion is still one: what is said
     * of it is not kept.
     */
    const char *code;
    /*
     * With a code, at most 500 characters: what, GUResID, HyperFleet ids, adapter, reason, its
     * words, and what to do.
     */
    hfd_slice message;
    /*
     * The cause of the code, else of bad health: "hypershift QuotaExceeded no cores are left". It
     * is a name, a reason and the words about it. Empty without a cause.
     */
    hfd_slice cause;
    /*
     * Health of what is there, for the output: "Healthy", "Progressing" or "Degraded", and why
     * (empty when Healthy).
     */
    const char *health;
    hfd_slice health_reason, health_message;
};

/** @return HFD_OK or HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_outcome_judge(const struct hfd_outcome_input *in, struct hfd_arena *mem,
                                        struct hfd_outcome *out);

/** An adapter that still has something to do for a part. */
struct hfd_lack {
    hfd_slice adapter;
    const struct hfd_part_report *report; /* NULL = it has not reported */
    const char *type; /* of the condition that it has to report True: Available, or Finalized */
    /*
     * That condition; Health of an adapter that does not work itself, and so has nothing else to
     * say. NULL = neither is reported at the present generation.
     */
    const struct hfd_condition *told;
};
/**
 * Tells whether an adapter has something to do for a part.
 * @param leaving  the part is to go: Finalized counts, and not Available
 */
bool hfd_outcome_lacks(const struct hfd_part_view *part, hfd_slice adapter, bool leaving,
                       struct hfd_lack *out);

/** The words about a condition: its message, else that of Available, where most say it all. */
hfd_slice hfd_outcome_words_of(const struct hfd_part_report *r, const struct hfd_condition *c);

#define HFD_WAITING_MAX_BYTES 500

/**
 * Says what an operation in progress waits for: the message of the hint. It depends on parts and
 * reports, and not on the time of the call, so it changes only with the news.
 * @param in          its trouble stands first in the message
 * @param started_us  when the operation began: nothing is waited for since an earlier time
 * @param out         at most HFD_WAITING_MAX_BYTES, in mem
 * @param cause       as hfd_outcome.cause, of the first part that is not finished
 * @return HFD_OK or HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_waiting_say(const struct hfd_outcome_input *in, int64_t started_us,
                                      struct hfd_arena *mem, hfd_slice *out, hfd_slice *cause);

#endif
