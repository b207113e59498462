/* When a resource is looked at again. Thread: writer, inside a transaction function. */
#include "driver/backend/remote/due.h"

#include <stdarg.h>
#include <stdio.h>

#include "driver/base/log.h"
#include "store/rows_resource.h"
#include "store/rows_remote.h"

#define TROUBLE_MAX_BYTES 240
/* Behind its deadline a resource is looked at each time after a twentieth of its age. */
#define LATE_SHARE 20

static int64_t below(const struct hfd_remote_policy *policy, int64_t bound)
{
    uint64_t v;

    hfd_rng_bytes(policy->rng, &v, sizeof(v));
    return bound > 0 ? (int64_t)(v % (uint64_t)bound) : 0;
}

int64_t hfd_due_jitter_us(const struct hfd_remote_policy *policy, int64_t interval_us)
{
    return interval_us - below(policy, interval_us / 10);
}

int64_t hfd_due_backoff_us(const struct hfd_remote_policy *policy, int64_t tries,
                           const struct hfd_remote_answer *answer)
{
    int64_t delay_us = policy->retry_min_us;

    for (int64_t i = 1; i < tries && delay_us < policy->retry_max_us; i++)
        delay_us *= 2;
    delay_us = delay_us < policy->retry_max_us ? delay_us : policy->retry_max_us;
    delay_us -= below(policy, delay_us / 2);
    return delay_us > answer->retry_after_us ? delay_us : answer->retry_after_us;
}

bool hfd_due_is_settled(const struct hfd_pass_rows *s)
{
    if (s->up.goal == HFD_GOAL_OBSERVE)
        return true;
    if (s->up.goal != HFD_GOAL_MAKE)
        return false;
    for (size_t i = 0; i < s->count; i++) {
        const struct hfd_pass_part *p = &s->parts[i];

        if (p->row.leaving ? p->exists
                           : !p->exists || p->row.pending || !p->fleet.ready ||
                                 p->fleet.generation < p->row.generation)
            return false;
    }
    return true;
}

enum hfd_watched hfd_due_watched(const struct hfd_pass_rows *s)
{
    if (hfd_due_is_settled(s))
        return HFD_WATCHED_IDLY;
    if (s->up.goal != HFD_GOAL_MAKE && s->up.goal != HFD_GOAL_DELETE)
        return HFD_WATCHED_NOT;
    for (size_t i = 0; i < s->count; i++)
        if (s->parts[i].exists &&
            (s->parts[i].row.pending || !hfd_backend_id_is_given(s->parts[i].row.fleet_id)))
            return HFD_WATCHED_NOT;
    return HFD_WATCHED_CLOSELY;
}

int64_t hfd_due_late_us(const struct hfd_take *t, int64_t since_us)
{
    int64_t late_us = (t->now_us - since_us) / LATE_SHARE;

    late_us = late_us > t->policy->watch_us ? late_us : t->policy->watch_us;
    return hfd_due_jitter_us(t->policy,
                             late_us < t->policy->idle_us ? late_us : t->policy->idle_us);
}

int64_t hfd_due_interval_us(const struct hfd_take *t)
{
    const struct hfd_resource_row *res = &t->s.res;

    if (hfd_due_is_settled(&t->s))
        return hfd_due_jitter_us(t->policy, t->policy->idle_us);
    if (t->now_us < res->op_deadline_us)
        return hfd_due_jitter_us(t->policy, t->policy->watch_us);
    return hfd_due_late_us(t, res->op_started_us);
}

hfd_slice hfd_due_words(const struct hfd_take *t)
{
    const struct hfd_remote_answer *a = t->answer;

    if (!a->arrived)
        return hfd_arena_printf(t->mem, "HyperFleet gave no answer: %s",
                                a->failure != NULL ? a->failure : "unknown");
    if (t->verdict == HFD_ON_WRONG)
        return hfd_arena_printf(
            t->mem, "there is no HyperFleet at the configured address (it answered %d)", a->status);
    if (t->verdict == HFD_ON_REFUSED)
        return hfd_arena_printf(
            t->mem, "HyperFleet refused the driver's credentials (it answered %d)", a->status);
    if (a->status >= 200 && a->status <= 299)
        return hfd_arena_printf(
            t->mem, "HyperFleet answered %d with a document that cannot be read", a->status);
    if (t->problem.words.len > 0)
        return hfd_arena_printf(t->mem, "HyperFleet answered %d: %.*s", a->status,
                                HFD_SLICE_FMT(t->problem.words));
    return hfd_arena_printf(t->mem, "HyperFleet answered %d", a->status);
}

bool hfd_due_cannot_list(const struct hfd_take *t)
{
    const int status = t->answer->status;

    return t->verdict == HFD_ON_MISSING ||
           (t->answer->arrived && (status == 400 || status == 405 || status == 501));
}

hfd_rc hfd_due_later(struct hfd_take *t, struct hfd_err *err, const char *fmt, ...)
{
    char words[TROUBLE_MAX_BYTES];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(words, sizeof(words), fmt, ap);
    va_end(ap);
    t->s.up.error = hfd_wire_tidy(hfd_slice_of(words), sizeof(words), t->mem);
    if (t->s.up.error.p == NULL)
        return hfd_fail(err, HFD_NOMEM, "out of memory while taking HyperFleet's answer");
    t->failed = true;
    t->m->over = true;
    t->s.up.tries++;
    t->s.up.watched = hfd_due_is_settled(&t->s) ? HFD_WATCHED_IDLY : HFD_WATCHED_NOT;
    t->s.up.due_us = t->now_us + hfd_due_backoff_us(t->policy, t->s.up.tries, t->answer);
    /*
     * The thread tells of answers that no HyperFleet gives; those that only cannot be used are
     * known here alone.
     */
    if (t->s.up.tries == 1 && hfd_remote_health_of(t->answer) == HFD_REMOTE_WELL)
        HFD_LOG(HFD_LOG_WARN, "an answer of the remote HyperFleet is of no use; it is asked again",
                HFD_LOG_STR("guresid", t->s.up.guresid), HFD_LOG_STR("failure", t->s.up.error));
    return HFD_OK;
}
