#include "tests/lib/agg_tables.h"

#include "driver/base/check.h"
#include "tests/lib/agg_upstream.h"

/* clang-format off */
/* What happened. */
enum event { CHANGE, TRUE_REPORT, FALSE_REPORT, UNKNOWN_REPORT };
enum target { READY, AVAILABLE };
enum current { WAS_FALSE, WAS_TRUE, WAS_ANY };

/* Required conditions, as bits of what holds. */
enum {
    X_IS_G = 1,
    ALL_AT_G = 2,
    ALL_TRUE = 4,       /* statuses[].status==True */
    SOME_MISSING = 8,   /* any required adapter has no stored status */
    ALL_AT_X = 16,
    CHILDLESS = 32,     /* or not being deleted */
    ONE_FALSE = 64,     /* at X */
};

/* Where a value comes from; KEEP is the table's dash and its "unchanged". */
enum source { KEEP, NOW, MIN, OBS_TIME, TO_FALSE, TO_TRUE, TO_X, TO_G };

struct row {
    enum event event;
    enum target target;
    enum current current;
    unsigned condition;
    enum source status, lut, ltt, generation;
};

static const struct row rows[] = {
    /* event        target     current    required condition                        status    lut       ltt       obs_gen */
    {CHANGE,        READY,     WAS_TRUE,  0,                                        TO_FALSE, NOW,      NOW,      TO_G},
    {CHANGE,        READY,     WAS_FALSE, 0,                                        TO_FALSE, NOW,      KEEP,     TO_G},
    {CHANGE,        AVAILABLE, WAS_ANY,   0,                                        KEEP,     KEEP,     KEEP,     KEEP},

    {TRUE_REPORT,   READY,     WAS_TRUE,  X_IS_G | ALL_AT_G | ALL_TRUE | CHILDLESS, KEEP,     MIN,      KEEP,     KEEP},
    {TRUE_REPORT,   READY,     WAS_FALSE, X_IS_G | ALL_AT_G | ALL_TRUE | CHILDLESS, TO_TRUE,  MIN,      OBS_TIME, KEEP},
    {TRUE_REPORT,   READY,     WAS_FALSE, SOME_MISSING,                             KEEP,     NOW,      KEEP,     KEEP},
    {TRUE_REPORT,   READY,     WAS_ANY,   0,                                        KEEP,     KEEP,     KEEP,     KEEP},
    /* ALL_TRUE in the next two rows is that of the document's text (driver/README.md, decision 1), not of its table */
    {TRUE_REPORT,   AVAILABLE, WAS_FALSE, ALL_AT_X | ALL_TRUE,                      TO_TRUE,  MIN,      OBS_TIME, TO_X},
    {TRUE_REPORT,   AVAILABLE, WAS_TRUE,  ALL_AT_X | ALL_TRUE,                      KEEP,     MIN,      KEEP,     TO_X},
    /* All are at X and one of them is False: any report gives the rows of a False report. */
    {TRUE_REPORT,   AVAILABLE, WAS_FALSE, ALL_AT_X | ONE_FALSE,                     KEEP,     MIN,      KEEP,     TO_X},
    {TRUE_REPORT,   AVAILABLE, WAS_TRUE,  ALL_AT_X | ONE_FALSE,                     TO_FALSE, OBS_TIME, OBS_TIME, TO_X},
    {TRUE_REPORT,   AVAILABLE, WAS_ANY,   0,                                        KEEP,     KEEP,     KEEP,     KEEP},

    {FALSE_REPORT,  READY,     WAS_FALSE, X_IS_G,                                   KEEP,     MIN,      KEEP,     KEEP},
    {FALSE_REPORT,  READY,     WAS_TRUE,  X_IS_G,                                   TO_FALSE, OBS_TIME, OBS_TIME, KEEP},
    {FALSE_REPORT,  READY,     WAS_ANY,   0,                                        KEEP,     KEEP,     KEEP,     KEEP},
    {FALSE_REPORT,  AVAILABLE, WAS_FALSE, ALL_AT_X,                                 KEEP,     MIN,      KEEP,     TO_X},
    {FALSE_REPORT,  AVAILABLE, WAS_TRUE,  ALL_AT_X,                                 TO_FALSE, OBS_TIME, OBS_TIME, TO_X},
    {FALSE_REPORT,  AVAILABLE, WAS_ANY,   0,                                        KEEP,     KEEP,     KEEP,     KEEP},

    {UNKNOWN_REPORT, READY,    WAS_ANY,   0,                                        KEEP,     KEEP,     KEEP,     KEEP},
    {UNKNOWN_REPORT, AVAILABLE, WAS_FALSE, ALL_AT_X | ONE_FALSE,                    KEEP,     MIN,      KEEP,     TO_X},
    {UNKNOWN_REPORT, AVAILABLE, WAS_TRUE, ALL_AT_X | ONE_FALSE,                     TO_FALSE, OBS_TIME, OBS_TIME, TO_X},
    {UNKNOWN_REPORT, AVAILABLE, WAS_ANY,  0,                                        KEEP,     KEEP,     KEEP,     KEEP},
};
/* clang-format on */

static enum hfd_status word(const struct agg_world *w, enum target target,
                            const struct agg_stored *s)
{
    return target == READY && w->deleting ? s->finalized : s->available;
}

static unsigned holds(const struct agg_world *w, enum target target, int64_t x)
{
    size_t missing = 0, at_g = 0, at_x = 0, is_true = 0, is_false = 0;
    unsigned bits = 0;

    for (size_t i = 0; i < w->adapters; i++) {
        const struct agg_stored *s = &w->stored[i];

        if (!s->present) {
            missing++;
            continue;
        }
        at_g += s->generation == w->generation;
        at_x += s->generation == x;
        is_true += word(w, target, s) == HFD_STATUS_TRUE;
        is_false += s->generation == x && word(w, target, s) == HFD_STATUS_FALSE;
    }
    bits |= x == w->generation ? X_IS_G : 0u;
    bits |= at_g == w->adapters ? ALL_AT_G : 0u;
    bits |= at_x == w->adapters ? ALL_AT_X : 0u;
    bits |= is_true == w->adapters ? ALL_TRUE : 0u;
    bits |= missing > 0 ? SOME_MISSING : 0u;
    bits |= is_false > 0 ? ONE_FALSE : 0u;
    bits |= !(w->deleting && w->children) ? CHILDLESS : 0u;
    return bits;
}

static int64_t oldest(const struct agg_world *w, int64_t generation)
{
    int64_t min = INT64_MAX;

    for (size_t i = 0; i < w->adapters; i++)
        if (w->stored[i].present && w->stored[i].generation == generation && w->stored[i].at < min)
            min = w->stored[i].at;
    return min;
}

static int64_t value(enum source from, int64_t kept, const struct agg_world *w, enum target target,
                     const struct agg_event *e)
{
    switch (from) {
    case KEEP:
        return kept;
    case NOW:
        return e->now;
    case MIN:
        return oldest(w, target == READY ? w->generation : e->generation);
    case OBS_TIME:
        return e->at;
    case TO_FALSE:
        return HFD_STATUS_FALSE;
    case TO_TRUE:
        return HFD_STATUS_TRUE;
    case TO_X:
        return e->generation;
    case TO_G:
        return w->generation;
    }
    HFD_ASSERT(false); /* every source has a case above */
    return 0;
}

static void apply(const struct agg_world *w, enum event event, enum target target,
                  const struct agg_event *e, struct agg_condition *c)
{
    const unsigned bits = holds(w, target, e->generation);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *r = &rows[i];

        if (r->event != event || r->target != target || (r->condition & ~bits) != 0 ||
            (r->current != WAS_ANY && (r->current == WAS_TRUE) != (c->status == HFD_STATUS_TRUE)))
            continue;
        c->status = (enum hfd_status)value(r->status, c->status, w, target, e);
        c->updated = value(r->lut, c->updated, w, target, e);
        c->transition = value(r->ltt, c->transition, w, target, e);
        c->generation = value(r->generation, c->generation, w, target, e);
        return;
    }
    HFD_ASSERT(false); /* the table has a row for everything */
}

/* The table of what is checked before any aggregation. Source: driver/README.md, decision 6. */
static enum hfd_verdict check(const struct agg_world *w, const struct agg_event *e)
{
    const struct agg_stored *s = &w->stored[e->adapter];
    const bool counts_anyway = w->deleting && e->finalized == HFD_STATUS_TRUE;

    if (e->generation > w->generation || (e->available == HFD_STATUS_UNKNOWN && !counts_anyway))
        return HFD_VERDICT_DISCARD;
    if (!s->present || e->generation > s->generation)
        return HFD_VERDICT_STORE;
    if (e->generation < s->generation || e->at < s->at)
        return HFD_VERDICT_DISCARD;
    return e->at == s->at && e->available == s->available && e->finalized == s->finalized
               ? HFD_VERDICT_REPEAT
               : HFD_VERDICT_STORE;
}

/* <Adapter>Successful: the adapter's Available condition. */
static void copy_to_condition(struct agg_condition *c, const struct agg_event *e)
{
    if (e->available == HFD_STATUS_UNKNOWN)
        return;
    if (!c->present)
        *c = (struct agg_condition){
            .present = true, .created = e->now, .status = HFD_STATUS_UNKNOWN};
    if (c->status != e->available)
        c->transition = e->at;
    c->status = e->available;
    c->generation = e->generation;
    c->updated = e->at;
}

static enum event event_of(enum hfd_status s)
{
    return s == HFD_STATUS_TRUE    ? TRUE_REPORT
           : s == HFD_STATUS_FALSE ? FALSE_REPORT
                                   : UNKNOWN_REPORT;
}

enum hfd_verdict agg_tables_step(const struct agg_world *w, const struct agg_event *e,
                                 struct agg_world *next)
{
    const struct agg_stored report = {true, e->generation, e->at, e->available, e->finalized};
    enum hfd_verdict verdict;

    *next = *w;
    if (e->kind != AGG_REPORT) {
        next->generation++;
        next->updated = e->now;
        next->deleting = next->deleting || e->kind == AGG_DELETE;
        apply(next, CHANGE, READY, e, &next->ready);
        apply(next, CHANGE, AVAILABLE, e, &next->available);
        agg_upstream_compute(next);
        return HFD_VERDICT_STORE;
    }
    verdict = check(w, e);
    if (verdict != HFD_VERDICT_STORE)
        return verdict;
    next->stored[e->adapter] = report;
    apply(next, event_of(word(next, READY, &report)), READY, e, &next->ready);
    apply(next, event_of(word(next, AVAILABLE, &report)), AVAILABLE, e, &next->available);
    copy_to_condition(&next->adapter[e->adapter], e);
    agg_upstream_compute(next);
    return HFD_VERDICT_STORE;
}
