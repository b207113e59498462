#include "tests/lib/agg_world.h"

#include "driver/base/check.h"

#include <stdio.h>

#define MEM_MAX ((size_t)1 << 20)

static const hfd_slice names[AGG_ADAPTERS_MAX] = {HFD_SLICE("a"), HFD_SLICE("b"), HFD_SLICE("c"),
                                                  HFD_SLICE("d")};
static const hfd_slice types[AGG_ADAPTERS_MAX] = {
    HFD_SLICE("ASuccessful"), HFD_SLICE("BSuccessful"), HFD_SLICE("CSuccessful"),
    HFD_SLICE("DSuccessful")};

/* A world as the code under test wants it. */
struct view {
    struct hfd_condition conditions[4 + AGG_ADAPTERS_MAX];
    struct hfd_conditions prev;
    struct hfd_agg_report reports[AGG_ADAPTERS_MAX];
    struct hfd_agg_input in;
};

hfd_slice agg_adapter_name(size_t i)
{
    return names[i];
}

static void put_condition(struct view *v, hfd_slice type, const struct agg_condition *c)
{
    if (!c->present)
        return;
    v->conditions[v->prev.count++] = (struct hfd_condition){
        .type = type,
        .status = c->status,
        .observed_generation = c->generation,
        .created_us = c->created,
        .last_updated_us = c->updated,
        .last_transition_us = c->transition,
    };
}

static void view_init(struct view *v, const struct agg_world *w, int64_t now)
{
    size_t count = 0;

    *v = (struct view){.prev = {v->conditions, 0}};
    put_condition(v, HFD_SLICE("Available"), &w->available);
    put_condition(v, HFD_SLICE("Ready"), &w->ready);
    put_condition(v, HFD_SLICE("LastKnownReconciled"), &w->last_known);
    put_condition(v, HFD_SLICE("Reconciled"), &w->reconciled);
    for (size_t i = 0; i < w->adapters; i++) {
        put_condition(v, types[i], &w->adapter[i]);
        if (!w->stored[i].present)
            continue;
        v->reports[count++] = (struct hfd_agg_report){
            .adapter = names[i],
            .observed_generation = w->stored[i].generation,
            .observed_us = w->stored[i].at,
            .available = w->stored[i].available,
            .finalized = w->stored[i].finalized,
        };
    }
    v->in = (struct hfd_agg_input){
        .required = {names, w->adapters},
        .kind_name = "Cluster",
        .generation = w->generation,
        .now_us = now,
        .updated_us = w->updated,
        .prev = &v->prev,
        .reports = {v->reports, count},
        .deleting = w->deleting,
        .has_children = w->children,
    };
}

static struct agg_condition take_condition(const struct hfd_conditions *cs, hfd_slice type,
                                           size_t *taken)
{
    const struct hfd_condition *c = hfd_condition_find(cs, type);

    if (c == NULL)
        return (struct agg_condition){0};
    (*taken)++;
    return (struct agg_condition){true,          c->status,          c->observed_generation,
                                  c->created_us, c->last_updated_us, c->last_transition_us};
}

static void take_conditions(struct agg_world *w, const struct hfd_conditions *cs)
{
    size_t taken = 0;

    w->available = take_condition(cs, HFD_SLICE("Available"), &taken);
    w->ready = take_condition(cs, HFD_SLICE("Ready"), &taken);
    w->last_known = take_condition(cs, HFD_SLICE("LastKnownReconciled"), &taken);
    w->reconciled = take_condition(cs, HFD_SLICE("Reconciled"), &taken);
    for (size_t i = 0; i < w->adapters; i++)
        w->adapter[i] = take_condition(cs, types[i], &taken);
    HFD_ASSERT(taken == cs->count);
}

void agg_world_new(struct agg_world *w, size_t adapters, int64_t now)
{
    const struct hfd_agg_input in = {.required = {names, adapters}, .now_us = now};
    struct hfd_arena mem;
    struct hfd_conditions cs;

    hfd_arena_init(&mem, MEM_MAX);
    *w = (struct agg_world){.adapters = adapters, .generation = 1, .updated = now};
    HFD_ASSERT(hfd_agg_created(&in, &mem, &cs) == HFD_OK);
    take_conditions(w, &cs);
    hfd_arena_fini(&mem);
}

static enum hfd_verdict judge(const struct agg_world *w, const struct agg_event *e)
{
    const struct agg_stored *s = &w->stored[e->adapter];
    const char *missing;

    return hfd_report_verdict(
        &(struct hfd_verdict_input){
            .generation = w->generation,
            .observed_generation = e->generation,
            .observed_us = e->at,
            .has_available = true,
            .has_applied = true,
            .has_health = true,
            .available = e->available,
            .finalized_true = e->finalized == HFD_STATUS_TRUE,
            .deleting = w->deleting,
            .has_prev = s->present,
            .prev_generation = s->generation,
            .prev_observed_us = s->at,
            .same_content = s->available == e->available && s->finalized == e->finalized,
        },
        &missing);
}

enum hfd_verdict agg_world_step(const struct agg_world *w, const struct agg_event *e,
                                struct agg_world *next)
{
    enum hfd_verdict verdict = HFD_VERDICT_STORE;
    struct hfd_arena mem;
    struct hfd_conditions cs;
    struct view v;
    hfd_rc rc;

    *next = *w;
    if (e->kind == AGG_REPORT) {
        verdict = judge(w, e);
        if (verdict != HFD_VERDICT_STORE)
            return verdict;
        next->stored[e->adapter] =
            (struct agg_stored){true, e->generation, e->at, e->available, e->finalized};
    } else {
        next->generation++;
        next->updated = e->now;
        next->deleting = next->deleting || e->kind == AGG_DELETE;
    }
    view_init(&v, next, e->now);
    hfd_arena_init(&mem, MEM_MAX);
    if (e->kind == AGG_REPORT) {
        for (size_t i = 0; i < v.in.reports.count; i++)
            if (hfd_slice_eq(v.reports[i].adapter, names[e->adapter]))
                v.in.event = &v.reports[i];
        rc = hfd_agg_reported(&v.in, &mem, &cs);
    } else {
        rc = hfd_agg_changed(&v.in, &mem, &cs);
    }
    HFD_ASSERT(rc == HFD_OK);
    take_conditions(next, &cs);
    hfd_arena_fini(&mem);
    return verdict;
}

bool agg_condition_eq(const struct agg_condition *a, const struct agg_condition *b)
{
    if (!a->present || !b->present)
        return a->present == b->present;
    return a->status == b->status && a->generation == b->generation && a->created == b->created &&
           a->updated == b->updated && a->transition == b->transition;
}

static bool stored_eq(const struct agg_stored *a, const struct agg_stored *b)
{
    if (!a->present || !b->present)
        return a->present == b->present;
    return a->generation == b->generation && a->at == b->at && a->available == b->available &&
           a->finalized == b->finalized;
}

bool agg_world_eq(const struct agg_world *a, const struct agg_world *b)
{
    if (a->adapters != b->adapters || a->generation != b->generation ||
        a->deleting != b->deleting || a->children != b->children ||
        !agg_condition_eq(&a->ready, &b->ready) ||
        !agg_condition_eq(&a->available, &b->available) ||
        !agg_condition_eq(&a->reconciled, &b->reconciled) ||
        !agg_condition_eq(&a->last_known, &b->last_known) || a->updated != b->updated)
        return false;
    for (size_t i = 0; i < a->adapters; i++)
        if (!stored_eq(&a->stored[i], &b->stored[i]) ||
            !agg_condition_eq(&a->adapter[i], &b->adapter[i]))
            return false;
    return true;
}

static void print_condition(const char *type, const struct agg_condition *c)
{
    if (c->present)
        fprintf(stderr, "  %-9s %s gen %lld created %lld updated %lld transition %lld\n", type,
                hfd_status_name(c->status), (long long)c->generation, (long long)c->created,
                (long long)c->updated, (long long)c->transition);
}

void agg_world_print(const char *title, const struct agg_world *w)
{
    fprintf(stderr, "%s: generation %lld%s%s\n", title, (long long)w->generation,
            w->deleting ? ", deleting" : "", w->children ? ", children" : "");
    print_condition("Ready", &w->ready);
    print_condition("Available", &w->available);
    print_condition("Reconciled", &w->reconciled);
    print_condition("LastKnownReconciled", &w->last_known);
    for (size_t i = 0; i < w->adapters; i++) {
        const struct agg_stored *s = &w->stored[i];

        print_condition(types[i].p, &w->adapter[i]);
        if (s->present)
            fprintf(stderr, "  report of %s: gen %lld at %lld Available=%s Finalized=%s\n",
                    names[i].p, (long long)s->generation, (long long)s->at,
                    hfd_status_name(s->available), hfd_status_name(s->finalized));
    }
}

void agg_event_print(const struct agg_event *e)
{
    static const char *const kinds[] = {"report", "change", "delete"};

    fprintf(stderr, "event: %s now %lld", kinds[e->kind], (long long)e->now);
    if (e->kind == AGG_REPORT)
        fprintf(stderr, " of %s gen %lld at %lld Available=%s Finalized=%s", names[e->adapter].p,
                (long long)e->generation, (long long)e->at, hfd_status_name(e->available),
                hfd_status_name(e->finalized));
    fprintf(stderr, "\n");
}
