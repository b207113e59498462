/* Events of PacemakerCluster verdicts. See event.h. */
#include "driver/health/event.h"

#include "driver/base/check.h"

/* clang-format off */
static const struct {
    const char *reason;
    bool warning;
    const char *prefix;
} kinds[] = {
    [HFD_HEALTH_NODE_OFFLINE]     = {"PacemakerNodeOffline", true, "Pacemaker error: "},
    [HFD_HEALTH_NODE_UNHEALTHY]   = {"PacemakerNodeUnhealthy", true, "Pacemaker error: "},
    [HFD_HEALTH_NODE_COUNT]       = {"PacemakerInsufficientNodes", true, "Pacemaker error: "},
    [HFD_HEALTH_MAINTENANCE]      = {"PacemakerClusterInMaintenance", true, "Pacemaker error: "},
    [HFD_HEALTH_NO_NODES]         = {"PacemakerError", true, "Pacemaker error: "},
    [HFD_HEALTH_STALE]            = {"PacemakerStatusStale", true, "Pacemaker error: "},
    [HFD_HEALTH_NO_STATUS]        = {"PacemakerCRNotFound", true, "Pacemaker error: "},
    [HFD_HEALTH_FENCING_AT_RISK]  = {"PacemakerWarning", true, "Pacemaker warning: "},
    [HFD_HEALTH_MISMATCH]         = {"AggregateMismatch", true, "Reported aggregates differ from their parts: "},
    [HFD_HEALTH_RECOVERED]        = {"PacemakerHealthy", false, ""},
    [HFD_HEALTH_WARNINGS_CLEARED] = {"PacemakerWarningsCleared", false, ""},
};
/* clang-format on */
_Static_assert(sizeof(kinds) / sizeof(kinds[0]) == HFD_HEALTH_FINDINGS, "one row a finding");

const char *hfd_health_reason(enum hfd_health_finding what)
{
    return kinds[what].reason;
}

/* The making of a list. After short memory it stays failed. */
struct telling {
    struct hfd_health_events *out;
    struct hfd_arena *mem;
    bool failed;
};

static void tell(struct telling *t, enum hfd_health_finding what, hfd_slice text)
{
    const hfd_slice message =
        hfd_arena_printf(t->mem, "%s%.*s", kinds[what].prefix, HFD_SLICE_FMT(text));

    HFD_ASSERT(t->out->count < HFD_HEALTH_EVENTS_MAX);
    t->out->items[t->out->count++] =
        (struct hfd_health_event){kinds[what].warning, kinds[what].reason, message};
    t->failed = t->failed || message.p == NULL;
}

static bool is_operational(const struct hfd_health_verdict *v)
{
    return v->overall == HFD_HEALTH_HEALTHY || v->overall == HFD_HEALTH_WARNING;
}

static bool warnings_ended(const struct hfd_health_verdict *before,
                           const struct hfd_health_verdict *now)
{
    return before != NULL && before->warning_count > 0 && now->warning_count == 0 &&
           now->overall != HFD_HEALTH_UNKNOWN;
}

hfd_rc hfd_health_events(const struct hfd_health_verdict *before,
                         const struct hfd_health_verdict *now, struct hfd_arena *mem,
                         struct hfd_health_events *out, struct hfd_err *err)
{
    struct telling t = {out, mem, false};

    out->count = 0;
    for (size_t i = 0; i < now->warning_count; i++)
        tell(&t, now->warnings[i].what, now->warnings[i].text);
    for (size_t i = 0; i < now->error_count; i++)
        tell(&t, now->errors[i].what, now->errors[i].text);
    if (now->mismatch.len > 0)
        tell(&t, HFD_HEALTH_MISMATCH, now->mismatch);
    if (is_operational(now) && (before == NULL || !is_operational(before)))
        tell(&t, HFD_HEALTH_RECOVERED,
             HFD_SLICE("Pacemaker cluster is healthy - all nodes have healthy critical "
                       "resources"));
    if (warnings_ended(before, now))
        tell(&t, HFD_HEALTH_WARNINGS_CLEARED, HFD_SLICE("Pacemaker cluster warnings cleared"));
    return t.failed ? hfd_fail_nomem(err, "write the events of a verdict") : HFD_OK;
}

bool hfd_health_event_repeats(const struct hfd_health_event *event, hfd_slice kept_reason,
                              hfd_slice kept_message, int64_t kept_for_us)
{
    return kept_for_us < HFD_HEALTH_REPEAT_US && hfd_slice_is(kept_reason, event->reason) &&
           hfd_slice_eq(kept_message, event->message);
}
