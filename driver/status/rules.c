/* See rules.h. */
#include "driver/status/rules.h"

static enum hfd_rsync rsync_of(const struct hfd_status_report *r)
{
    if (!r->reported)
        return HFD_RSYNC_PENDING;
    if (r->deleting && r->finalized == HFD_STATUS_TRUE)
        return HFD_RSYNC_TERMINATED;
    if (!r->at_generation)
        return HFD_RSYNC_PENDING;
    if (r->health != HFD_STATUS_FALSE && r->applied == HFD_STATUS_TRUE)
        return HFD_RSYNC_APPLIED;
    if (!r->in_operation)
        return HFD_RSYNC_PENDING;
    if (r->health == HFD_STATUS_FALSE)
        return HFD_RSYNC_RETRYING;
    if (r->applied == HFD_STATUS_FALSE)
        return r->health == HFD_STATUS_TRUE ? HFD_RSYNC_FAILED : HFD_RSYNC_RETRYING;
    return HFD_RSYNC_PENDING;
}

static enum hfd_presence presence_of(const struct hfd_status_report *r)
{
    if (!r->reported || r->stale)
        return HFD_PRESENCE_UNKNOWN;
    if (r->deleting && r->finalized == HFD_STATUS_TRUE)
        return HFD_PRESENCE_NOT_PRESENT;
    if (!r->at_generation)
        return HFD_PRESENCE_UNKNOWN;
    if (r->applied == HFD_STATUS_TRUE || r->available == HFD_STATUS_TRUE)
        return HFD_PRESENCE_PRESENT;
    return r->applied == HFD_STATUS_FALSE ? HFD_PRESENCE_NOT_PRESENT : HFD_PRESENCE_UNKNOWN;
}

void hfd_status_judge(const struct hfd_status_report *report, struct hfd_status_verdict *out)
{
    const bool counts = report->reported && (report->at_generation || report->in_operation);

    *out = (struct hfd_status_verdict){
        .removed = report->removed,
        .own = counts,
        .spent = !report->in_operation,
        .seen = counts && !report->stale,
        .rsync = rsync_of(report),
        .presence = presence_of(report),
    };
    if (!report->removed)
        return;
    out->rsync = HFD_RSYNC_TERMINATED;
    out->presence = HFD_PRESENCE_NOT_PRESENT;
}

/* A status of its own, as it counts. */
static enum hfd_rsync own_status(const struct hfd_status_verdict *v, enum hfd_rsync own)
{
    if (v->removed)
        return HFD_RSYNC_TERMINATED;
    if (!v->own)
        return v->rsync;
    if (v->spent && (own == HFD_RSYNC_FAILED || own == HFD_RSYNC_RETRYING))
        return HFD_RSYNC_PENDING;
    return own;
}

static enum hfd_presence own_presence(const struct hfd_status_verdict *v, enum hfd_presence own)
{
    if (v->removed)
        return HFD_PRESENCE_NOT_PRESENT;
    return v->seen ? own : HFD_PRESENCE_UNKNOWN;
}

enum hfd_rsync hfd_status_rsync(const struct hfd_status_verdict *v, const struct hfd_object *o)
{
    return o->has_rsync ? own_status(v, o->rsync) : v->rsync;
}

enum hfd_presence hfd_status_presence(const struct hfd_status_verdict *v,
                                      const struct hfd_object *o)
{
    return own_presence(v, o->presence);
}

void hfd_status_count(struct hfd_status_counts *counts, const struct hfd_status_verdict *v,
                      const struct hfd_object *o)
{
    if (!o->observed_only)
        counts->rsync[hfd_status_rsync(v, o)]++;
    counts->presence[hfd_status_presence(v, o)]++;
}

void hfd_status_count_stored(struct hfd_status_counts *counts, const struct hfd_status_verdict *v,
                             const struct hfd_object_counts *stored)
{
    for (unsigned i = 0; i < HFD_RSYNC_COUNT; i++)
        counts->rsync[own_status(v, (enum hfd_rsync)i)] += stored->own[i];
    counts->rsync[v->rsync] += stored->other;
    for (unsigned i = 0; i < HFD_PRESENCE_COUNT; i++)
        counts->presence[own_presence(v, (enum hfd_presence)i)] += stored->presence[i];
}

void hfd_status_count_pseudo(struct hfd_status_counts *counts, const struct hfd_status_verdict *v)
{
    counts->rsync[v->rsync]++;
    counts->presence[v->presence]++;
}

const char *hfd_status_phase_name(enum hfd_status_phase p)
{
    static const char *const names[HFD_PHASE_COUNT] = {
        [HFD_PHASE_INSTANTIATING] = "Instantiating",
        [HFD_PHASE_INSTANTIATED] = "Instantiated",
        [HFD_PHASE_INSTANTIATE_FAILED] = "InstantiateFailed",
        [HFD_PHASE_TERMINATING] = "Terminating",
        [HFD_PHASE_TERMINATED] = "Terminated",
        [HFD_PHASE_TERMINATE_FAILED] = "TerminateFailed",
    };

    return names[p];
}

enum hfd_status_phase hfd_status_phase_of(struct hfd_status_life life,
                                          const int64_t rsync[HFD_RSYNC_COUNT])
{
    const int64_t failed = rsync[HFD_RSYNC_FAILED], terminated = rsync[HFD_RSYNC_TERMINATED];
    const int64_t going = rsync[HFD_RSYNC_PENDING] + rsync[HFD_RSYNC_RETRYING];

    if (life.terminating) {
        if (life.gone)
            return HFD_PHASE_TERMINATED;
        if (going + rsync[HFD_RSYNC_APPLIED] > 0 || failed + terminated == 0)
            return HFD_PHASE_TERMINATING;
        return failed > 0 ? HFD_PHASE_TERMINATE_FAILED : HFD_PHASE_TERMINATED;
    }
    if (going > 0)
        return HFD_PHASE_INSTANTIATING;
    /* An object that is gone, though its termination was not asked for, has failed. */
    return failed + terminated > 0 || life.gone ? HFD_PHASE_INSTANTIATE_FAILED
                                                : HFD_PHASE_INSTANTIATED;
}
