/* See due.h. */
#include "driver/backend/remote/due.h"

#include <stdarg.h>
#include <stdio.h>

#include "driver/backend/remote/words.h"
#include "driver/base/log.h"
#include "store/rows_remote.h"
#include "store/rows_resource.h"

#define TROUBLE_MAX_BYTES 240
/* After its deadline, a resource is looked at after each twentieth of its operation's age. */
#define LATE_SHARE 20

/* 0 or more, less than the bound. */
static int64_t random_below(const struct hfd_remote_policy *policy, int64_t bound)
{
    uint64_t v;

    hfd_rng_bytes(policy->rng, &v, sizeof(v));
    return bound > 0 ? (int64_t)(v % (uint64_t)bound) : 0;
}

int64_t hfd_due_jitter_us(const struct hfd_remote_policy *policy, int64_t interval_us)
{
    return interval_us - random_below(policy, interval_us / 10);
}

int64_t hfd_due_backoff_us(const struct hfd_remote_policy *policy, int64_t tries,
                           const struct hfd_remote_answer *answer)
{
    int64_t delay_us = policy->retry_min_us;

    for (int64_t i = 1; i < tries && delay_us < policy->retry_max_us; i++)
        delay_us *= 2;
    delay_us = delay_us < policy->retry_max_us ? delay_us : policy->retry_max_us;
    delay_us -= random_below(policy, delay_us / 2);
    return delay_us > answer->retry_after_us ? delay_us : answer->retry_after_us;
}

bool hfd_due_is_settled(const struct hfd_pass_rows *rows)
{
    if (rows->remote.goal == HFD_GOAL_OBSERVE)
        return true;
    if (rows->remote.goal != HFD_GOAL_MAKE)
        return false;
    for (size_t i = 0; i < rows->count; i++) {
        const struct hfd_pass_part *p = &rows->parts[i];

        if (p->row.leaving ? p->exists
                           : !p->exists || p->row.pending || !p->fleet.ready ||
                                 p->fleet.generation < p->row.generation)
            return false;
    }
    return true;
}

enum hfd_watched hfd_due_watched(const struct hfd_pass_rows *rows)
{
    if (hfd_due_is_settled(rows))
        return HFD_WATCHED_IDLY;
    if (rows->remote.goal != HFD_GOAL_MAKE && rows->remote.goal != HFD_GOAL_DELETE)
        return HFD_WATCHED_NOT;
    for (size_t i = 0; i < rows->count; i++)
        if (rows->parts[i].exists &&
            (rows->parts[i].row.pending || !hfd_backend_id_is_given(rows->parts[i].row.fleet_id)))
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
    const struct hfd_resource_row *res = &t->rows.res;

    if (hfd_due_is_settled(&t->rows))
        return hfd_due_jitter_us(t->policy, t->policy->idle_us);
    if (t->now_us < res->op_deadline_us)
        return hfd_due_jitter_us(t->policy, t->policy->watch_us);
    return hfd_due_late_us(t, res->op_started_us);
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
    t->rows.remote.error = hfd_wire_tidy(hfd_slice_of(words), sizeof(words), t->mem);
    if (t->rows.remote.error.p == NULL)
        return hfd_fail_nomem(err, "take HyperFleet's answer");
    t->failed = true;
    hfd_pass_end(t->m);
    t->rows.remote.tries++;
    t->rows.remote.watched = hfd_due_is_settled(&t->rows) ? HFD_WATCHED_IDLY : HFD_WATCHED_NOT;
    t->rows.remote.due_us =
        t->now_us + hfd_due_backoff_us(t->policy, t->rows.remote.tries, t->answer);
    /* The thread logs answers that are not HyperFleet's. This one is, and cannot be used. */
    if (t->rows.remote.tries == 1 && hfd_remote_health_of(t->answer) == HFD_REMOTE_WELL)
        HFD_LOG(HFD_LOG_WARN, "unusable answer of the remote HyperFleet; will ask again",
                HFD_LOG_STR("guresid", t->rows.remote.guresid),
                HFD_LOG_STR("failure", t->rows.remote.error));
    return HFD_OK;
}

hfd_rc hfd_due_later_by_answer(struct hfd_take *t, struct hfd_err *err)
{
    const hfd_slice words = hfd_words_answer(t);

    return words.p != NULL ? hfd_due_later(t, err, "%.*s", HFD_SLICE_FMT(words))
                           : hfd_fail_nomem(err, "take HyperFleet's answer");
}
