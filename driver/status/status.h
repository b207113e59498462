/*
 * The rules of EMCO's status query: the rsync-status and cluster-status of an object, and the
 * status of an instance. They follow from what adapters report. README.md has them as tables. Pure.
 * Source: EMCO status query. Thread: any.
 *
 * The parameters of EMCO's status query. Repeats of app, cluster and resource widen, different
 * parameters narrow. Pure. Source: EMCO status query, "Status Query". Thread: any.
 *
 * The stored form of the objects of an instance that has ended: what a query shows of them, without
 * their details. Pure. Thread: any.
 *
 * The state history of EMCO's status query: what was asked for, and when. It is made from entries
 * of the one history. Pure. Source: EMCO status query, "Sample StateInfo list". Thread: any.
 *
 * The answer to EMCO's status query: its document, and the order of its objects. Equal states give
 * equal bytes. Pure. Source: EMCO status query, "Output of Status Query". Thread: any.
 */
#ifndef HFD_STATUS_STATUS_H
#define HFD_STATUS_STATUS_H

#include "driver/base/arena.h"
#include "driver/base/buf.h"
#include "driver/fleet/condition.h"
#include "driver/fleet/report.h"

/** The last report of an adapter on a cluster or nodepool, as the rules see it. */
struct hfd_status_report {
    bool reported;      /* false: the adapter has not reported; the rest is not read */
    bool at_generation; /* it is about the generation that the operation made, or a later one */
    bool in_operation;  /* it came after the operation began */
    bool deleting;      /* the cluster or nodepool is being deleted */
    bool removed;       /* it is gone */
    bool stale;         /* its PacemakerCluster document is stale */
    enum hfd_status applied, available, health, finalized; /* Unknown when absent */
};

/** The meaning of a report for the objects that it lists. */
struct hfd_status_verdict {
    bool removed;               /* all objects are Terminated */
    bool own;                   /* an object's own rsync-status counts */
    bool spent;                 /* the report is older than the operation: it fails nothing */
    bool seen;                  /* an object's `present` counts */
    enum hfd_rsync rsync;       /* of an object without a status of its own */
    enum hfd_presence presence; /* of the pseudo-object of a report without objects */
};

/** Judges a report. */
void hfd_status_judge(const struct hfd_status_report *report, struct hfd_status_verdict *out);

/** The two statuses of an object. @param observed_only  objects have no rsync-status: not asked */
enum hfd_rsync hfd_status_rsync(const struct hfd_status_verdict *v, const struct hfd_object *o);
enum hfd_presence hfd_status_presence(const struct hfd_status_verdict *v,
                                      const struct hfd_object *o);

/** The facts from which the percent of an object follows. */
struct hfd_status_share {
    enum hfd_rsync rsync;
    bool terminating; /* its termination was asked for */
    bool counts;      /* the report is about the operation: hfd_status_verdict.own */
    bool done;        /* its adapter is */
    int64_t own;      /* its own percent, or that of its report; below 0: none */
};

/** The percent of an object: 100 when it is done, else its own. */
int64_t hfd_status_percent(const struct hfd_status_share *share);

/** Objects by their statuses. */
struct hfd_status_counts {
    int64_t rsync[HFD_RSYNC_COUNT];
    int64_t presence[HFD_PRESENCE_COUNT];
};

/** Adds one object with its statuses. */
void hfd_status_count(struct hfd_status_counts *counts, const struct hfd_status_verdict *v,
                      const struct hfd_object *o);
/** Adds all objects of a report by their stored counts: the same sums without reading them. */
void hfd_status_count_stored(struct hfd_status_counts *counts, const struct hfd_status_verdict *v,
                             const struct hfd_object_counts *stored);
/** Adds one pseudo-object. */
static inline void hfd_status_count_pseudo(struct hfd_status_counts *counts,
                                           const struct hfd_status_verdict *v)
{
    counts->rsync[v->rsync]++;
    counts->presence[v->presence]++;
}

/** The status of an instance. */
enum hfd_status_phase {
    HFD_PHASE_INSTANTIATING,
    HFD_PHASE_INSTANTIATED,
    HFD_PHASE_INSTANTIATE_FAILED,
    HFD_PHASE_TERMINATING,
    HFD_PHASE_TERMINATED,
    HFD_PHASE_TERMINATE_FAILED,
    HFD_PHASE_COUNT
};

struct hfd_status_life {
    bool terminating; /* its termination was asked for */
    bool gone;        /* nothing is left of it */
};

/** @param rsync  the objects of adapters that decide, whatever a query asks for */
enum hfd_status_phase hfd_status_phase_of(struct hfd_status_life life,
                                          const int64_t rsync[HFD_RSYNC_COUNT]);

enum hfd_status_type {
    HFD_STATUS_TYPE_RSYNC,
    HFD_STATUS_TYPE_CLUSTER
};

enum hfd_status_output {
    HFD_STATUS_OUTPUT_ALL,
    HFD_STATUS_OUTPUT_SUMMARY,
    HFD_STATUS_OUTPUT_DETAIL
};

/** Values of one parameter, each of which is enough. */
struct hfd_status_values {
    hfd_slice *items;
    size_t count; /* 0 = all */
};

/** How often each filter may be given. */
#define HFD_STATUS_VALUES_MAX 100

/** All 0: the defaults. */
struct hfd_status_query {
    enum hfd_status_type type;
    enum hfd_status_output output;
    struct hfd_status_values apps, clusters, resources; /* a cluster is PROVIDER+CLUSTER */
    bool has_instance;
    hfd_slice instance;
    bool type_given, output_given; /* the first one counts */
};

/**
 * Takes a parameter. One that it does not know changes nothing.
 * @param value  decoded; copied into mem
 * @return HFD_OK, HFD_BAD_REQUEST, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_status_query_take(struct hfd_status_query *q, hfd_slice name,
                                            hfd_slice value, struct hfd_arena *mem,
                                            struct hfd_err *err);

/** An object's place and name. */
struct hfd_status_place {
    hfd_slice app, provider, cluster, name;
};

/** True if no filter is given: the query is about all objects. */
static inline bool hfd_status_query_is_whole(const struct hfd_status_query *q)
{
    return q->apps.count + q->clusters.count + q->resources.count == 0;
}
/** Tells if the query is about an adapter, whatever else. */
bool hfd_status_query_has_app(const struct hfd_status_query *q, hfd_slice app);
/** Tells if the query is about an object. */
bool hfd_status_query_has(const struct hfd_status_query *q, const struct hfd_status_place *place);

/** A name of an app, a cluster or an object: letters and digits, inside also "-", "_", ".", ":". */
bool hfd_status_name_ok(hfd_slice text);

/** Adds an object. */
void hfd_kept_add(struct hfd_buf *b, const struct hfd_object *object);
/**
 * Takes the next object off the text.
 * @param rest  the text, then what is left of it
 * @param out   borrows from the text
 * @return false at the end, or where the text has another form
 */
bool hfd_kept_next(hfd_slice *rest, struct hfd_object *out);

/** A verdict as a number, and back. */
static inline int64_t hfd_kept_verdict_format(const struct hfd_status_verdict *v)
{
    return (int64_t)(v->removed ? 1 : 0) + (v->own ? 2 : 0) + (v->spent ? 4 : 0) +
           (v->seen ? 8 : 0) + (int64_t)v->presence * 16 + (int64_t)v->rsync * 64;
}
static inline void hfd_kept_verdict_parse(int64_t stored, struct hfd_status_verdict *out)
{
    *out = (struct hfd_status_verdict){
        .removed = (stored & 1) != 0,
        .own = (stored & 2) != 0,
        .spent = (stored & 4) != 0,
        .seen = (stored & 8) != 0,
        .presence = (enum hfd_presence)(stored / 16 % 4 % HFD_PRESENCE_COUNT),
        .rsync = (enum hfd_rsync)(stored / 64 % HFD_RSYNC_COUNT),
    };
}

/** The request behind an entry of the history. */
enum hfd_status_deed {
    HFD_DEED_CREATE,
    HFD_DEED_CHANGE, /* an update, a new target, a new attempt */
    HFD_DEED_DELETE
};

/** The two kinds of EMCO resources that have a state. */
enum hfd_status_subject {
    HFD_SUBJECT_RESOURCE, /* a Deployment Intent Group: here a driver resource */
    HFD_SUBJECT_CLUSTER   /* a cluster with its network intents: here a HyperFleet cluster */
};

struct hfd_status_entry {
    enum hfd_status_deed deed;
    int64_t at_us;
    int64_t context; /* the instance that it began, or that it ends */
};

struct hfd_status_action {
    const char *state; /* "Instantiated" */
    int64_t context;   /* 0 = "" */
    int64_t at_us;
};

struct hfd_status_state {
    struct hfd_status_action *actions; /* oldest first */
    size_t count;
};

struct hfd_status_entries {
    const struct hfd_status_entry *items; /* oldest first */
    size_t count;
};

/**
 * Makes the actions of a history. A creation is Created, Approved and Instantiated; Created only
 * once. A change is Instantiated, a deletion Terminated. A deletion of what is being terminated is
 * no action. A cluster is Created, Applied and Terminated.
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_status_state_make(enum hfd_status_subject subject,
                                            const struct hfd_status_entries *entries,
                                            struct hfd_arena *mem, struct hfd_status_state *out,
                                            struct hfd_err *err);

/** The last instance, 0 = there is none. */
static inline int64_t hfd_status_state_latest(const struct hfd_status_state *state)
{
    for (size_t i = state->count; i > 0; i--)
        if (state->actions[i - 1].context != 0)
            return state->actions[i - 1].context;
    return 0;
}
/** Tells if an instance is in the history, and if its termination was asked for. */
bool hfd_status_state_has(const struct hfd_status_state *state, int64_t context, bool *terminating);

/** One object of the answer. Texts live as long as the view. */
struct hfd_status_item {
    struct hfd_status_place place;
    hfd_slice group, version, kind;
    hfd_slice node; /* of a PacemakerCluster document */
    enum hfd_rsync rsync;
    enum hfd_presence presence;
    /* With output=detail; each may be empty. */
    hfd_slice detail;     /* JSON object */
    hfd_slice conditions; /* JSON array */
    hfd_slice waiting;    /* why it is not there yet */
    bool has_progress;
    int64_t progress; /* percent */
};

struct hfd_status_view {
    hfd_slice name, id;
    hfd_slice type, project; /* empty = left out */
    struct hfd_status_state state;
    bool has_phase; /* there is an instance */
    enum hfd_status_phase phase;
    struct hfd_status_counts counts; /* of what the query asks for */
    struct hfd_status_item *items;   /* none for a summary */
    size_t item_count;
    /* With output=detail. */
    int64_t progress; /* the mean of percents */
    struct {
        int64_t sum, count;
    } percents;           /* of the objects of the instance that decide, whatever is asked for */
    hfd_slice conditions; /* JSON array, or empty */
    hfd_slice message;    /* what the operation waits for, or empty */
};

/** Puts the objects in their order: app, cluster, name, kind. Equal ones keep theirs. */
HFD_MUST_CHECK hfd_rc hfd_status_view_sort(struct hfd_status_view *view, struct hfd_arena *mem,
                                           struct hfd_err *err);

/** Adds the document of a sorted view. */
void hfd_status_view_format(struct hfd_buf *b, const struct hfd_status_query *q,
                            const struct hfd_status_view *view);

#endif
