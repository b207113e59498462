/*
 * The rules of EMCO's status query: the rsync-status and cluster-status of an object, and the
 * status of an instance. They follow from what adapters report. README.md has them as tables. Pure.
 * Source: EMCO status query. Thread: any.
 */
#ifndef HFD_STATUS_RULES_H
#define HFD_STATUS_RULES_H

#include "driver/fleet/condition.h"
#include "driver/fleet/objects.h"

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
void hfd_status_count_pseudo(struct hfd_status_counts *counts, const struct hfd_status_verdict *v);

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

/** "Instantiating". */
const char *hfd_status_phase_name(enum hfd_status_phase p);

struct hfd_status_life {
    bool terminating; /* its termination was asked for */
    bool gone;        /* nothing is left of it */
};

/** @param rsync  the objects of adapters that decide, whatever a query asks for */
enum hfd_status_phase hfd_status_phase_of(struct hfd_status_life life,
                                          const int64_t rsync[HFD_RSYNC_COUNT]);

#endif
