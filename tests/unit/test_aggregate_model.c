/*
 * The aggregation compared with the HyperFleet API's tables in other code (tests/lib/agg_tables.c),
 * and with its later version in other code (tests/lib/agg_upstream.c).
 * Every state that 1 to 3 adapters can reach is tried, and random histories. In these, rules that
 * hold beside the tables are checked as well.
 */
#include "tests/lib/agg_tables.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define STATES_MAX ((size_t)1 << 17) /* a power of two */

/* Runs both, and compares. */
static enum hfd_verdict step(const struct agg_world *w, const struct agg_event *e,
                             struct agg_world *next)
{
    struct agg_world want;
    const enum hfd_verdict verdict = agg_world_step(w, e, next);
    const enum hfd_verdict wanted = agg_tables_step(w, e, &want);

    if (verdict != wanted || !agg_world_eq(next, &want)) {
        agg_world_print("before", w);
        agg_event_print(e);
        agg_world_print("got", next);
        agg_world_print("the tables", &want);
    }
    assert_int_equal(verdict, wanted);
    assert_true(agg_world_eq(next, &want));
    return verdict;
}

/*
 * Visits every state once. Two states are the same when no row distinguishes them: only the order
 * of the stored times counts.
 */
struct explorer {
    struct agg_world *queue;
    size_t head, tail;
    uint64_t *seen; /* open addressing; 0 is free */
    size_t steps;
    int64_t generation_max;
    bool deletion;
};

static uint64_t pack(uint64_t key, unsigned bits, uint64_t value)
{
    assert_true(value < (uint64_t)1 << bits);
    return key << bits | value;
}

static uint64_t key_of(const struct agg_world *w)
{
    uint64_t key = 1; /* never 0 */

    key = pack(key, 2, (uint64_t)w->generation);
    key = pack(key, 2, (uint64_t)(w->deleting ? 1 + w->children : 0));
    key = pack(key, 1, w->ready.status);
    key = pack(key, 2, (uint64_t)w->ready.generation);
    key = pack(key, 1, w->available.status);
    key = pack(key, 2, (uint64_t)w->available.generation);
    for (size_t i = 0; i < w->adapters; i++) {
        const struct agg_stored *s = &w->stored[i];
        uint64_t older = 0;

        for (size_t j = 0; j < w->adapters; j++)
            older += s->present && w->stored[j].present && w->stored[j].at < s->at;
        key = pack(key, 2, s->present ? (uint64_t)s->generation : 0);
        key = pack(key, 2, s->present ? s->available : 0);
        key = pack(key, 1, s->present && s->finalized == HFD_STATUS_TRUE);
        key = pack(key, 2, older);
        key = pack(key, 2, w->adapter[i].present ? (uint64_t)w->adapter[i].status + 1 : 0);
    }
    return key;
}

static void remember(struct explorer *x, const struct agg_world *w)
{
    const uint64_t key = key_of(w);
    size_t slot = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 40) & (2 * STATES_MAX - 1);

    while (x->seen[slot] != 0) {
        if (x->seen[slot] == key)
            return;
        slot = (slot + 1) & (2 * STATES_MAX - 1);
    }
    assert_true(x->tail < STATES_MAX);
    x->seen[slot] = key;
    x->queue[x->tail++] = *w;
}

static void go(struct explorer *x, const struct agg_world *w, const struct agg_event *e)
{
    struct agg_world next;

    x->steps++;
    if (step(w, e, &next) == HFD_VERDICT_STORE)
        remember(x, &next);
}

/*
 * Reports with each time that makes a difference: older than all, the adapter's own last one, newer
 * than all.
 */
static void report_at_all_times(struct explorer *x, const struct agg_world *w, struct agg_event *e)
{
    int64_t oldest = 1000000, newest = 1000000;

    for (size_t i = 0; i < w->adapters; i++) {
        if (w->stored[i].present && w->stored[i].at < oldest)
            oldest = w->stored[i].at;
        if (w->stored[i].present && w->stored[i].at > newest)
            newest = w->stored[i].at;
    }
    e->at = oldest - 1;
    go(x, w, e);
    e->at = newest + 1;
    go(x, w, e);
    e->at = w->stored[e->adapter].at;
    if (w->stored[e->adapter].present)
        go(x, w, e);
}

static void expand(struct explorer *x, const struct agg_world *w)
{
    struct agg_event e = {.kind = AGG_REPORT, .now = 2000000 + (int64_t)x->steps};

    for (e.adapter = 0; e.adapter < w->adapters; e.adapter++)
        for (e.generation = 1; e.generation <= w->generation + 1; e.generation++)
            for (e.available = HFD_STATUS_FALSE; e.available <= HFD_STATUS_UNKNOWN; e.available++)
                for (e.finalized = HFD_STATUS_FALSE;
                     e.finalized <= (x->deletion ? HFD_STATUS_TRUE : HFD_STATUS_FALSE);
                     e.finalized++)
                    report_at_all_times(x, w, &e);
    if (w->generation == x->generation_max)
        return;
    e.kind = AGG_CHANGE;
    if (!w->deleting)
        go(x, w, &e);
    e.kind = AGG_DELETE;
    if (x->deletion && !w->deleting)
        go(x, w, &e);
}

static void explore(size_t adapters, int64_t generation_max, bool deletion, bool children)
{
    struct explorer x = {.generation_max = generation_max, .deletion = deletion};
    struct agg_world first;

    x.queue = calloc(STATES_MAX, sizeof(*x.queue));
    x.seen = calloc(2 * STATES_MAX, sizeof(*x.seen));
    assert_non_null(x.queue);
    assert_non_null(x.seen);
    agg_world_new(&first, adapters, 1999999);
    first.children = children;
    remember(&x, &first);
    while (x.head < x.tail)
        expand(&x, &x.queue[x.head++]);
    print_message("%zu adapters, %d generations%s: %zu states, %zu steps\n", adapters,
                  (int)generation_max, deletion ? ", deletion" : "", x.tail, x.steps);
    assert_true(x.tail > 10 * adapters);
    free(x.queue);
    free(x.seen);
}

/* One, two and three adapters, three generations, any order of any reports: as the tables say. */
static void all_states_without_deletion(void **state)
{
    (void)state;
    for (size_t adapters = 1; adapters <= 3; adapters++)
        explore(adapters, 3, false, false);
}

/* The same with a deletion at any moment, with and without children. */
static void all_states_with_deletion(void **state)
{
    (void)state;
    explore(1, 3, true, false);
    explore(1, 3, true, true);
    explore(2, 3, true, false);
    explore(2, 2, true, true);
}

/* xorshift64*: a fixed stream, so that failures repeat. */
static uint64_t random_next(uint64_t *seed)
{
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    return *seed * UINT64_C(2685821657736338717);
}

static unsigned random_below(uint64_t *seed, unsigned n)
{
    return (unsigned)((random_next(seed) >> 33) % n);
}

static void random_event(uint64_t *seed, const struct agg_world *w, int64_t now,
                         struct agg_event *e)
{
    const unsigned dice = random_below(seed, 40);

    *e = (struct agg_event){.kind = AGG_REPORT, .now = now};
    if (dice < 4 && !w->deleting)
        e->kind = dice == 0 ? AGG_DELETE : AGG_CHANGE;
    e->adapter = random_below(seed, (unsigned)w->adapters);
    e->generation =
        w->generation + (random_below(seed, 5) == 0 ? (int)random_below(seed, 4) - 2 : 0);
    if (e->generation < 1)
        e->generation = 1;
    e->at = now - (int64_t)random_below(seed, 30);
    e->available = dice % 4 == 3 ? HFD_STATUS_FALSE : HFD_STATUS_TRUE;
    if (dice % 8 == 7)
        e->available = HFD_STATUS_UNKNOWN;
    e->finalized = w->deleting && dice % 2 == 0 ? HFD_STATUS_TRUE : HFD_STATUS_FALSE;
}

static void assert_transition_moves_with_status(const struct agg_condition *before,
                                                const struct agg_condition *after, int64_t moved_to)
{
    assert_int_equal(after->created, before->created);
    if (after->status == before->status)
        assert_int_equal(after->transition, before->transition);
    else
        assert_int_equal(after->transition, moved_to);
}

/*
 * True if all required adapters are stored at the generation of the first, and all are True in what
 * Ready reads.
 */
static bool is_mixed(const struct agg_world *w)
{
    for (size_t i = 0; i < w->adapters; i++)
        if (!w->stored[i].present || w->stored[i].generation != w->stored[0].generation)
            return true;
    return false;
}

static bool all_ready(const struct agg_world *w)
{
    for (size_t i = 0; i < w->adapters; i++)
        if (!w->stored[i].present || w->stored[i].generation != w->generation ||
            (w->deleting ? w->stored[i].finalized : w->stored[i].available) != HFD_STATUS_TRUE)
            return false;
    return true;
}

static void assert_invariants(const struct agg_world *before, const struct agg_event *e,
                              const struct agg_world *after)
{
    const int64_t moved_to = e->kind == AGG_REPORT ? e->at : e->now;
    struct agg_world again;

    if (after->ready.status == HFD_STATUS_TRUE)
        assert_true(all_ready(after));
    if (all_ready(after) && !after->children)
        assert_int_equal(after->ready.status, HFD_STATUS_TRUE);
    assert_int_equal(after->ready.generation, after->generation);
    assert_int_equal(after->reconciled.status, after->ready.status);
    assert_int_equal(after->reconciled.generation, after->generation);
    assert_transition_moves_with_status(&before->ready, &after->ready, moved_to);
    assert_transition_moves_with_status(&before->available, &after->available, moved_to);
    if (e->kind != AGG_REPORT || is_mixed(after))
        assert_true(agg_condition_eq(&before->available, &after->available));
    assert_true(after->available.generation <= after->generation);
    assert_true(after->available.generation >= before->available.generation);
    for (size_t i = 0; i < after->adapters; i++)
        if (after->adapter[i].present)
            assert_true(after->adapter[i].generation <= after->generation);
    if (e->kind == AGG_REPORT) {
        assert_int_not_equal(agg_world_step(after, e, &again), HFD_VERDICT_STORE);
        assert_true(agg_world_eq(&again, after));
    }
}

/* 100,000 lives of 1 to 4 adapters follow the tables, and the invariants hold after every step. */
static void random_histories(void **state)
{
    uint64_t seed = UINT64_C(0x6879706572666c74);
    size_t stored = 0, became_ready = 0, steps = 0;

    (void)state;
    for (unsigned life = 0; life < 100000; life++) {
        const unsigned length = 1 + random_below(&seed, 15);
        struct agg_world w;

        agg_world_new(&w, 1 + random_below(&seed, AGG_ADAPTERS_MAX), 1000);
        w.children = random_below(&seed, 4) == 0;
        for (unsigned i = 0; i < length; i++, steps++) {
            struct agg_world next;
            struct agg_event e;

            random_event(&seed, &w, 1010 + 10 * (int64_t)i, &e);
            if (step(&w, &e, &next) != HFD_VERDICT_STORE) {
                assert_true(agg_world_eq(&next, &w));
                continue;
            }
            stored++;
            became_ready +=
                next.ready.status == HFD_STATUS_TRUE && w.ready.status == HFD_STATUS_FALSE;
            assert_invariants(&w, &e, &next);
            w = next;
        }
    }
    print_message("%zu steps, %zu stored, %zu times Ready\n", steps, stored, became_ready);
    assert_true(became_ready > 10000);
}

/* Gives one report of each adapter, the index-th permutation of them; time passes between them. */
static void play_permutation(struct agg_world *w, const enum hfd_status *says, size_t index,
                             int64_t generation)
{
    size_t left[AGG_ADAPTERS_MAX] = {0, 1, 2, 3};

    for (size_t count = w->adapters; count > 0; index /= count, count--) {
        const size_t pick = index % count;
        const struct agg_event e = {.kind = AGG_REPORT,
                                    .now = 5000 + (int64_t)(w->adapters - count),
                                    .adapter = left[pick],
                                    .generation = generation,
                                    .at = 5000 + (int64_t)(w->adapters - count),
                                    .available = says[left[pick]],
                                    .finalized = w->deleting ? HFD_STATUS_TRUE : HFD_STATUS_FALSE};
        struct agg_world next;

        memmove(&left[pick], &left[pick + 1], (count - pick - 1) * sizeof(left[0]));
        assert_int_equal(step(w, &e, &next), HFD_VERDICT_STORE);
        *w = next;
    }
}

static void assert_same_end(const struct agg_condition *a, const struct agg_condition *b)
{
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->generation, b->generation);
}

static void compare_permutations(const struct agg_world *start, const enum hfd_status *says,
                                 int64_t generation)
{
    static const size_t orders[AGG_ADAPTERS_MAX + 1] = {1, 1, 2, 6, 24};
    struct agg_world first = *start;

    play_permutation(&first, says, 0, generation);
    for (size_t order = 1; order < orders[start->adapters]; order++) {
        struct agg_world w = *start;

        play_permutation(&w, says, order, generation);
        assert_same_end(&w.ready, &first.ready);
        assert_same_end(&w.available, &first.available);
        assert_same_end(&w.reconciled, &first.reconciled);
        assert_same_end(&w.last_known, &first.last_known);
        for (size_t i = 0; i < w.adapters; i++)
            assert_same_end(&w.adapter[i], &first.adapter[i]);
    }
}

/*
 * The reports of one generation end in the same conditions in any order. They follow on any reports
 * of the generation before, and on a change, two changes or a deletion.
 */
static void order_does_not_matter(void **state)
{
    size_t compared = 0;

    (void)state;
    for (size_t adapters = 1; adapters <= AGG_ADAPTERS_MAX; adapters++)
        for (unsigned mix = 0; mix < 1u << 2 * adapters; mix++)
            for (unsigned later = 0; later < 4; later++) {
                const bool deleting = later == 3;
                enum hfd_status before[AGG_ADAPTERS_MAX], says[AGG_ADAPTERS_MAX];
                struct agg_world w, next;

                agg_world_new(&w, adapters, 1000);
                for (size_t i = 0; i < adapters; i++) {
                    before[i] = mix >> i & 1 ? HFD_STATUS_TRUE : HFD_STATUS_FALSE;
                    says[i] = mix >> (adapters + i) & 1 ? HFD_STATUS_TRUE : HFD_STATUS_FALSE;
                    if (deleting && says[i] == HFD_STATUS_TRUE)
                        says[i] = HFD_STATUS_UNKNOWN;
                }
                if (later > 0)
                    play_permutation(&w, before, 0, 1);
                for (unsigned i = 0; i < (deleting ? 1 : later); i++) {
                    assert_int_equal(
                        step(&w,
                             &(struct agg_event){.kind = deleting ? AGG_DELETE : AGG_CHANGE,
                                                 .now = 2000},
                             &next),
                        HFD_VERDICT_STORE);
                    w = next;
                }
                compare_permutations(&w, says, later == 0 ? 1 : 2);
                compared++;
            }
    print_message("%zu mixes of reports\n", compared);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_states_without_deletion),
        cmocka_unit_test(all_states_with_deletion),
        cmocka_unit_test(random_histories),
        cmocka_unit_test(order_does_not_matter),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
