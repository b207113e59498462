#include "tests/lib/agg_upstream.h"

/* normalizeAdapterReportsForAggregation: a report with Available Unknown is left out. */
static bool found(const struct agg_stored *s)
{
    return s->present && s->available != HFD_STATUS_UNKNOWN;
}

/* As found, but a Finalized counts whatever Available is: driver/README.md, decision 6. */
static bool at_current(const struct agg_world *w, size_t i)
{
    return w->stored[i].present && w->stored[i].generation == w->generation;
}

static void compute_reconciled(struct agg_world *w)
{
    const struct agg_condition prev = w->reconciled;
    struct agg_condition *c = &w->reconciled;
    bool met = w->adapters > 0, any_at = false;

    for (size_t i = 0; i < w->adapters && met; i++)
        met = at_current(w, i) &&
              (w->deleting ? w->stored[i].finalized : w->stored[i].available) == HFD_STATUS_TRUE;
    c->status = !met || (w->deleting && w->children) ? HFD_STATUS_FALSE : HFD_STATUS_TRUE;
    c->generation = w->generation;
    c->updated = w->updated;
    for (size_t i = 0; i < w->adapters; i++) {
        if (!at_current(w, i))
            continue;
        if (!any_at || w->stored[i].at < c->updated)
            c->updated = w->stored[i].at;
        any_at = true;
    }
    if (prev.status == c->status)
        return;
    c->transition =
        prev.status == HFD_STATUS_TRUE && w->generation > prev.generation ? w->updated : c->updated;
}

struct same {
    bool all_true, mixed;
    int64_t generation;
};

/* sameGenerationAllTrue */
static struct same same_generation(const struct agg_world *w)
{
    struct same s = {true, false, 0};

    for (size_t i = 0; i < w->adapters; i++) {
        if (!found(&w->stored[i]) || w->stored[i].available != HFD_STATUS_TRUE)
            return (struct same){false, false, 0};
        if (s.generation == 0)
            s.generation = w->stored[i].generation;
        else if (s.generation != w->stored[i].generation)
            s.mixed = true;
    }
    return s;
}

/* computeLastKnownReconciledStatus */
static bool last_known_is_true(const struct agg_world *w, const struct agg_condition *prev,
                               const struct same *s)
{
    for (size_t i = 0; i < w->adapters; i++)
        if (!found(&w->stored[i]))
            return false;
    if (s->all_true)
        return !s->mixed || prev->status == HFD_STATUS_TRUE;
    if (prev->status != HFD_STATUS_TRUE)
        return false;
    for (size_t i = 0; i < w->adapters; i++)
        if (w->stored[i].available != HFD_STATUS_TRUE &&
            w->stored[i].generation == prev->generation)
            return false;
    return true;
}

/* computeLastKnownReconciledObservedGeneration */
static int64_t last_known_generation(const struct agg_world *w, const struct agg_condition *prev,
                                     const struct same *s, bool is_true)
{
    int64_t max = 0;

    if (is_true)
        return s->all_true && !s->mixed ? s->generation : prev->generation;
    for (size_t i = 0; i < w->adapters; i++)
        if (found(&w->stored[i]) && w->stored[i].generation > max)
            max = w->stored[i].generation;
    return max == 0 ? prev->generation : max;
}

/* The oldest report; generation 0: at any. */
static int64_t min_time(const struct agg_world *w, int64_t generation)
{
    int64_t min = INT64_MAX;

    for (size_t i = 0; i < w->adapters; i++)
        if (found(&w->stored[i]) && (generation == 0 || w->stored[i].generation == generation) &&
            w->stored[i].at < min)
            min = w->stored[i].at;
    return min;
}

/* computeLastKnownReconciledLastUpdatedTime */
static int64_t last_known_updated(const struct agg_world *w, const struct agg_condition *prev,
                                  const struct same *s, bool is_true, int64_t generation)
{
    if (s->all_true && !s->mixed)
        return min_time(w, 0);
    if (s->all_true && s->mixed && is_true)
        return prev->updated;
    for (size_t i = 0; i < w->adapters && !is_true; i++)
        if (found(&w->stored[i]) && w->stored[i].generation == generation &&
            w->stored[i].available != HFD_STATUS_TRUE)
            return min_time(w, generation);
    return prev->updated;
}

void agg_upstream_compute(struct agg_world *w)
{
    const struct agg_condition prev = w->last_known;
    const struct same s = same_generation(w);
    const bool is_true = last_known_is_true(w, &prev, &s);
    struct agg_condition *c = &w->last_known;

    compute_reconciled(w);
    c->status = is_true ? HFD_STATUS_TRUE : HFD_STATUS_FALSE;
    c->generation = last_known_generation(w, &prev, &s, is_true);
    c->updated = last_known_updated(w, &prev, &s, is_true, c->generation);
    if (c->status != prev.status)
        c->transition = c->updated;
}
