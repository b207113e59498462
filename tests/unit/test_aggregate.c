/*
 * Each row of the tables in driver/fleet/README.md, by its id; the rules that the HyperFleet API
 * states in prose; and the texts of conditions.
 */
#include "driver/fleet/aggregate.h"
#include "tests/lib/agg_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define T HFD_STATUS_TRUE
#define F HFD_STATUS_FALSE
#define U HFD_STATUS_UNKNOWN
#define NOW 1000
#define CREATED 1

/* clang-format off */
enum { A, B, C };

#define SAYS(gen, avail, at_) {true, (gen), (at_), (avail), F}
#define FINAL(gen, fin, at_) {true, (gen), (at_), F, (fin)}
#define COND(status_, gen, updated_, transition_) {true, (status_), (gen), CREATED, (updated_), (transition_)}
#define REPORT(who, gen, avail, at_) {AGG_REPORT, NOW, (who), (gen), (at_), (avail), F}
#define REPORT_FINAL(who, gen, fin, at_) {AGG_REPORT, NOW, (who), (gen), (at_), F, (fin)}

/* A world of three required adapters before an event, and its two aggregated conditions behind it. */
static const struct row_case {
    const char *name;
    struct agg_world w;
    struct agg_event e;
    struct agg_condition ready, available;
} row_cases[] = {
    {"L3 change, Ready was True: False at G, both times now; L5 Available stays",
     {3, 2, .stored = {SAYS(2, T, 90), SAYS(2, T, 91), SAYS(2, T, 92)}, .ready = COND(T, 2, 90, 50), .available = COND(T, 2, 90, 51)},
     {.kind = AGG_CHANGE, .now = NOW}, COND(F, 3, NOW, NOW), COND(T, 2, 90, 51)},
    {"L4 change, Ready was False: G, updated now, transition stays; L5 Available stays",
     {3, 2, .stored = {SAYS(2, T, 90)}, .ready = COND(F, 2, 90, 50), .available = COND(F, 1, 80, 51)},
     {.kind = AGG_CHANGE, .now = NOW}, COND(F, 3, NOW, 50), COND(F, 1, 80, 51)},
    {"L3 deletion is a change",
     {3, 2, .stored = {SAYS(2, T, 90), SAYS(2, T, 91), SAYS(2, T, 92)}, .ready = COND(T, 2, 90, 50), .available = COND(T, 2, 90, 51)},
     {.kind = AGG_DELETE, .now = NOW}, COND(F, 3, NOW, NOW), COND(T, 2, 90, 51)},

    {"TR1 Ready True, all True at G: updated is the oldest report",
     {3, 2, .stored = {SAYS(2, T, 90), SAYS(2, T, 91), SAYS(2, T, 92)}, .ready = COND(T, 2, 80, 50), .available = COND(T, 2, 80, 51)},
     REPORT(A, 2, T, 95), COND(T, 2, 91, 50), COND(T, 2, 91, 51)},
    {"TR2 Ready False, the last one True at G: True, updated oldest, transition of the report",
     {3, 2, .stored = {SAYS(2, T, 90), SAYS(2, T, 91)}, .ready = COND(F, 2, 80, 50), .available = COND(F, 1, 70, 51)},
     REPORT(C, 2, T, 95), COND(T, 2, 90, 95), COND(T, 2, 90, 95)},
    {"TR2 nodepools do not matter before a deletion",
     {3, 2, false, true, .stored = {SAYS(2, T, 90), SAYS(2, T, 91)}, .ready = COND(F, 2, 80, 50), .available = COND(F, 1, 70, 51)},
     REPORT(C, 2, T, 95), COND(T, 2, 90, 95), COND(T, 2, 90, 95)},
    {"TR2 the last report may be the oldest",
     {3, 2, .stored = {SAYS(2, T, 90), SAYS(2, T, 91)}, .ready = COND(F, 2, 80, 50), .available = COND(F, 1, 70, 51)},
     REPORT(C, 2, T, 60), COND(T, 2, 60, 60), COND(T, 2, 60, 60)},
    {"TR2 needs X==G: all at an older generation leave Ready",
     {3, 3, .stored = {SAYS(2, T, 90), SAYS(2, T, 91), SAYS(1, T, 60)}, .ready = COND(F, 3, 80, 50), .available = COND(F, 1, 70, 51)},
     REPORT(C, 2, T, 95), COND(F, 3, 80, 50), COND(T, 2, 90, 95)},
    {"TR3 Ready False, one adapter has not reported: updated now",
     {3, 2, .stored = {SAYS(2, T, 90)}, .ready = COND(F, 2, 80, 50), .available = COND(F, 1, 70, 51)},
     REPORT(B, 2, T, 95), COND(F, 2, NOW, 50), COND(F, 1, 70, 51)},
    {"TR3 whatever the generation of the report",
     {3, 2, .stored = {SAYS(2, T, 90)}, .ready = COND(F, 2, 80, 50), .available = COND(F, 1, 70, 51)},
     REPORT(B, 1, T, 95), COND(F, 2, NOW, 50), COND(F, 1, 70, 51)},
    {"TR4 FA2 all reported, one of them False at G: Ready stays, Available is False at X",
     {3, 2, .stored = {SAYS(2, F, 90), SAYS(2, T, 91), SAYS(1, T, 60)}, .ready = COND(F, 2, 80, 50), .available = COND(T, 1, 70, 51)},
     REPORT(C, 2, T, 95), COND(F, 2, 80, 50), COND(F, 2, 95, 95)},
    {"TR4 TA3 all reported, one of them True at an older generation: no change",
     {3, 2, .stored = {SAYS(1, T, 90), SAYS(2, T, 91), SAYS(1, T, 60)}, .ready = COND(F, 2, 80, 50), .available = COND(T, 1, 70, 51)},
     REPORT(C, 2, T, 95), COND(F, 2, 80, 50), COND(T, 1, 70, 51)},

    {"TR4 TA3 both True, one has not reported, as it became required later: no change",
     {3, 2, .stored = {SAYS(2, T, 90), SAYS(2, T, 91)}, .ready = COND(T, 2, 80, 50), .available = COND(T, 2, 70, 51)},
     REPORT(A, 2, T, 95), COND(T, 2, 80, 50), COND(T, 2, 70, 51)},

    {"TA1 Available False, all True at X below G: True, X, updated oldest, transition of the report",
     {3, 2, .stored = {SAYS(1, T, 90), SAYS(1, T, 91), SAYS(1, F, 60)}, .ready = COND(F, 2, 80, 50), .available = COND(F, 1, 70, 51)},
     REPORT(C, 1, T, 95), COND(F, 2, 80, 50), COND(T, 1, 90, 95)},
    {"TA1 needs all True (decision 1); FA1 with a True report: one is False at X, updated oldest",
     {3, 1, .stored = {SAYS(1, T, 90), SAYS(1, F, 91), SAYS(1, F, 60)}, .ready = COND(F, 1, 80, 50), .available = COND(F, 1, 70, 51)},
     REPORT(C, 1, T, 95), COND(F, 1, 80, 50), COND(F, 1, 90, 51)},
    {"TA1 needs all to have reported",
     {3, 1, .stored = {SAYS(1, T, 90), SAYS(1, T, 91)}, .ready = COND(F, 1, 80, 50), .available = COND(F, 1, 70, 51)},
     REPORT(A, 1, T, 95), COND(F, 1, NOW, 50), COND(F, 1, 70, 51)},
    {"TA2 Available True at an older generation, all True at X: follows to X, transition stays",
     {3, 2, .stored = {SAYS(2, T, 90), SAYS(2, T, 91), SAYS(1, T, 60)}, .ready = COND(F, 2, 80, 50), .available = COND(T, 1, 70, 51)},
     REPORT(C, 2, T, 95), COND(T, 2, 90, 95), COND(T, 2, 90, 51)},
    {"TA3 Available True, one has not reported: no change",
     {3, 2, .stored = {SAYS(2, T, 90)}, .ready = COND(F, 2, 80, 50), .available = COND(T, 1, 70, 51)},
     REPORT(B, 2, T, 95), COND(F, 2, NOW, 50), COND(T, 1, 70, 51)},

    {"FR1 Ready False, X==G: updated is the oldest report at G",
     {3, 2, .stored = {SAYS(1, T, 60), SAYS(2, T, 91), SAYS(2, F, 92)}, .ready = COND(F, 2, 80, 50), .available = COND(T, 1, 70, 51)},
     REPORT(C, 2, F, 95), COND(F, 2, 91, 50), COND(T, 1, 70, 51)},
    {"FR1 also while one has not reported",
     {3, 2, .stored = {SAYS(2, T, 91)}, .ready = COND(F, 2, 80, 50), .available = COND(F, 1, 70, 51)},
     REPORT(C, 2, F, 95), COND(F, 2, 91, 50), COND(F, 1, 70, 51)},
    {"FR2 FA2 Ready and Available True, X==G: False, both times of the report",
     {3, 2, .stored = {SAYS(2, T, 90), SAYS(2, T, 91), SAYS(2, T, 92)}, .ready = COND(T, 2, 80, 50), .available = COND(T, 2, 80, 51)},
     REPORT(B, 2, F, 95), COND(F, 2, 95, 95), COND(F, 2, 95, 95)},
    {"FR3 FA3 X below G, generations mixed: no change",
     {3, 2, .stored = {SAYS(1, T, 90), SAYS(2, T, 91), SAYS(2, T, 92)}, .ready = COND(F, 2, 80, 50), .available = COND(T, 1, 70, 51)},
     REPORT(A, 1, F, 95), COND(F, 2, 80, 50), COND(T, 1, 70, 51)},
    {"FR3 X below G, one has not reported: no change (now is for True reports)",
     {3, 2, .stored = {SAYS(1, T, 90)}, .ready = COND(F, 2, 80, 50), .available = COND(F, 1, 70, 51)},
     REPORT(B, 1, F, 95), COND(F, 2, 80, 50), COND(F, 1, 70, 51)},

    {"FA1 Available False, all at X: follows to X, updated oldest, transition stays",
     {3, 3, .stored = {SAYS(2, T, 90), SAYS(2, T, 91), SAYS(1, F, 60)}, .ready = COND(F, 3, 80, 50), .available = COND(F, 1, 70, 51)},
     REPORT(C, 2, F, 95), COND(F, 3, 80, 50), COND(F, 2, 90, 51)},
    {"FA2 Available True at an older generation, all at X and one False: False at X, both times of the report",
     {3, 2, .stored = {SAYS(2, T, 90), SAYS(2, T, 91), SAYS(1, T, 60)}, .ready = COND(F, 2, 80, 50), .available = COND(T, 1, 70, 51)},
     REPORT(C, 2, F, 95), COND(F, 2, 90, 50), COND(F, 2, 95, 95)},
    {"FA1 with a True report, whoever comes last: follows to X",
     {2, 2, .stored = {SAYS(2, F, 90), SAYS(1, T, 60)}, .ready = COND(F, 2, 80, 50), .available = COND(F, 1, 70, 51)},
     REPORT(B, 2, T, 95), COND(F, 2, 80, 50), COND(F, 2, 90, 51)},
    {"FA2 with a True report, whoever comes last: False at X, both times of the report",
     {2, 2, .stored = {SAYS(2, F, 90), SAYS(1, T, 60)}, .ready = COND(F, 2, 80, 50), .available = COND(T, 1, 70, 51)},
     REPORT(B, 2, T, 95), COND(F, 2, 80, 50), COND(F, 2, 95, 95)},
    {"FA2 with a True report, X below G",
     {2, 3, .stored = {SAYS(2, F, 90), SAYS(1, T, 60)}, .ready = COND(F, 3, 80, 50), .available = COND(T, 1, 70, 51)},
     REPORT(B, 2, T, 95), COND(F, 3, 80, 50), COND(F, 2, 95, 95)},
    {"FA3 Available False, one has not reported: no change",
     {3, 2, .stored = {SAYS(2, T, 90)}, .ready = COND(F, 2, 80, 50), .available = COND(F, 1, 70, 51)},
     REPORT(B, 2, F, 95), COND(F, 2, 90, 50), COND(F, 1, 70, 51)},
    {"FA3 Available True, generations mixed, one False at its generation: no change",
     {3, 2, .stored = {SAYS(1, T, 90), SAYS(1, T, 91), SAYS(1, T, 60)}, .ready = COND(F, 2, 80, 50), .available = COND(T, 1, 60, 51)},
     REPORT(A, 2, F, 95), COND(F, 2, 95, 50), COND(T, 1, 60, 51)},

    {"Deleting: Ready asks for Finalized, not for Available",
     {3, 3, true, .stored = {FINAL(3, T, 90), FINAL(3, T, 91)}, .ready = COND(F, 3, 80, 50), .available = COND(T, 2, 70, 51)},
     REPORT(C, 3, T, 95), COND(F, 3, 90, 50), COND(F, 3, 95, 95)},
    {"Deleting: the last Finalized at G makes Ready True; Available keeps its rows",
     {3, 3, true, .stored = {FINAL(3, T, 90), FINAL(3, T, 91)}, .ready = COND(F, 3, 80, 50), .available = COND(T, 2, 70, 51)},
     REPORT_FINAL(C, 3, T, 95), COND(T, 3, 90, 95), COND(F, 3, 95, 95)},
    {"Deleting: not while nodepools are left",
     {3, 3, true, true, .stored = {FINAL(3, T, 90), FINAL(3, T, 91)}, .ready = COND(F, 3, 80, 50), .available = COND(F, 3, 70, 51)},
     REPORT_FINAL(C, 3, T, 95), COND(F, 3, 80, 50), COND(F, 3, 90, 51)},
    {"Deleting: Finalized with Available Unknown counts for Ready; another is False: FA2",
     {3, 3, true, .stored = {FINAL(3, T, 90), FINAL(3, T, 91)}, .ready = COND(F, 3, 80, 50), .available = COND(T, 2, 70, 51)},
     {AGG_REPORT, NOW, C, 3, 95, U, T}, COND(T, 3, 90, 95), COND(F, 3, 95, 95)},
    {"Deleting: Available Unknown, and none is False: no change",
     {2, 3, true, .stored = {SAYS(3, T, 90)}, .ready = COND(F, 3, 80, 50), .available = COND(T, 2, 70, 51)},
     {AGG_REPORT, NOW, B, 3, 95, U, T}, COND(F, 3, 80, 50), COND(T, 2, 70, 51)},
    {"Deleting: Available True needs all True, and Unknown is not",
     {3, 3, true, .stored = {{true, 3, 90, U, T}, SAYS(3, T, 91)}, .ready = COND(F, 3, 80, 50), .available = COND(F, 2, 70, 51)},
     REPORT(C, 3, T, 95), COND(F, 3, 90, 50), COND(F, 2, 70, 51)},
};
/* clang-format on */

static void assert_condition(const struct agg_world *got, const struct agg_condition *is,
                             const struct agg_condition *want)
{
    if (!agg_condition_eq(is, want))
        agg_world_print("got", got);
    assert_true(agg_condition_eq(is, want));
}

/* A row moves status, generation and times of Ready and Available exactly as it says. */
static void run_row(void **state)
{
    const struct row_case *rc = *state;
    struct agg_world w = rc->w, next;

    w.ready.present = w.available.present = true;
    assert_int_equal(agg_world_step(&w, &rc->e, &next), HFD_VERDICT_STORE);
    assert_condition(&next, &next.ready, &rc->ready);
    assert_condition(&next, &next.available, &rc->available);
}

/*
 * L1, L2: a new resource has Available and Ready, in this order and first, False at generation 1.
 * All times are now, and the texts are HyperFleet's.
 */
static void row_L1_L2_creation(void **state)
{
    struct hfd_arena mem;
    struct hfd_conditions cs;

    (void)state;
    hfd_arena_init(&mem, 4096);
    assert_int_equal(hfd_agg_created(&(struct hfd_agg_input){.now_us = NOW}, &mem, &cs), HFD_OK);
    assert_int_equal(cs.count, 4);
    assert_true(hfd_slice_is(cs.items[0].type, "Available"));
    assert_true(hfd_slice_is(cs.items[1].type, "Ready"));
    for (size_t i = 0; i < 2; i++) {
        const struct hfd_condition *c = &cs.items[i];

        assert_int_equal(c->status, F);
        assert_true(hfd_slice_is(c->reason, "AwaitingAdapters"));
        assert_true(hfd_slice_is(c->message, "Waiting for adapters to report status"));
        assert_int_equal(c->observed_generation, 1);
        assert_int_equal(c->created_us, NOW);
        assert_int_equal(c->last_updated_us, NOW);
        assert_int_equal(c->last_transition_us, NOW);
    }
    hfd_arena_fini(&mem);
}

#define HAS_AVAILABLE 1u
#define HAS_APPLIED 2u
#define HAS_HEALTH 4u
#define HAS_ALL 7u

struct incoming {
    int64_t generation, at;
    unsigned has; /* mandatory conditions */
    enum hfd_status available;
    bool finalized;
};

struct earlier {
    bool present;
    int64_t generation, at;
    bool same_content;
};

/* clang-format off */
#define NEVER {false, 0, 0, false}
#define STORED(gen, at) {true, (gen), (at), false}
#define SAME(gen, at) {true, (gen), (at), true}

static const struct verdict_case {
    const char *name;
    int64_t generation;
    struct incoming in;
    struct earlier prev;
    bool deleting;
    enum hfd_verdict want;
    const char *why;
} verdict_cases[] = {
    /*                                                   G  report                                       stored before   deleting */
    {"the first report is stored",                       2, {2, 50, HAS_ALL, T, false},                  NEVER,          false, HFD_VERDICT_STORE,   NULL},
    {"a report on an older generation is stored",        3, {2, 50, HAS_ALL, T, false},                  NEVER,          false, HFD_VERDICT_STORE,   NULL},
    {"D1 generation above the resource's",               1, {2, 50, HAS_ALL, T, false},                  NEVER,          false, HFD_VERDICT_DISCARD, "ahead"},
    {"D1 also of an adapter that has reported",          1, {2, 50, HAS_ALL, T, false},                  STORED(1, 40),  false, HFD_VERDICT_DISCARD, "ahead"},
    {"D1 comes before a missing condition",              1, {2, 50, HAS_APPLIED, T, false},              NEVER,          false, HFD_VERDICT_DISCARD, "ahead"},
    {"D2 generation below the adapter's stored one",     3, {2, 50, HAS_ALL, T, false},                  STORED(3, 50),  false, HFD_VERDICT_DISCARD, "behind"},
    {"D2 a newer time does not help",                    3, {2, 99, HAS_ALL, T, false},                  STORED(3, 50),  false, HFD_VERDICT_DISCARD, "behind"},
    {"D2 comes before a missing condition",              3, {2, 50, HAS_AVAILABLE, T, false},            STORED(3, 50),  false, HFD_VERDICT_DISCARD, "behind"},
    {"D2 a generation above the stored one is stored",   2, {2, 50, HAS_ALL, T, false},                  STORED(1, 99),  false, HFD_VERDICT_STORE,   NULL},
    {"D3 Available is missing",                          2, {2, 50, HAS_APPLIED | HAS_HEALTH, U, false}, NEVER,          false, HFD_VERDICT_REJECT,  "Available"},
    {"D3 Applied is missing",                            2, {2, 50, HAS_AVAILABLE | HAS_HEALTH, T, false}, NEVER,        false, HFD_VERDICT_REJECT,  "Applied"},
    {"D3 Health is missing",                             2, {2, 50, HAS_AVAILABLE | HAS_APPLIED, T, false}, NEVER,       false, HFD_VERDICT_REJECT,  "Health"},
    {"D3 the first missing one is named",                2, {2, 50, 0, T, false},                        NEVER,          false, HFD_VERDICT_REJECT,  "Available"},
    {"D3 in the order Available, Applied, Health",       2, {2, 50, HAS_AVAILABLE, T, false},            NEVER,          false, HFD_VERDICT_REJECT,  "Applied"},
    {"D3 comes before Unknown",                          2, {2, 50, HAS_AVAILABLE | HAS_APPLIED, U, false}, NEVER,       false, HFD_VERDICT_REJECT,  "Health"},
    {"D3 comes before a repeat",                         2, {2, 50, HAS_AVAILABLE | HAS_APPLIED, T, false}, SAME(2, 50), false, HFD_VERDICT_REJECT,  "Health"},
    {"D4 Available Unknown as a first report",           2, {2, 50, HAS_ALL, U, false},                  NEVER,          false, HFD_VERDICT_DISCARD, "unknown"},
    {"D4 Available Unknown later",                       2, {2, 51, HAS_ALL, U, false},                  STORED(2, 50),  false, HFD_VERDICT_DISCARD, "unknown"},
    {"D4 False is no Unknown",                           2, {2, 50, HAS_ALL, F, false},                  NEVER,          false, HFD_VERDICT_STORE,   NULL},
    {"D5 an older time at the same generation",          2, {2, 49, HAS_ALL, T, false},                  STORED(2, 50),  false, HFD_VERDICT_DISCARD, "older"},
    {"D5 comes before a missing condition",              2, {2, 49, HAS_AVAILABLE, T, false},            STORED(2, 50),  false, HFD_VERDICT_DISCARD, "older"},
    {"D5 a newer time at the same generation is stored", 2, {2, 51, HAS_ALL, T, false},                  SAME(2, 50),    false, HFD_VERDICT_STORE,   NULL},
    {"D6 equal time and content is a repeat",            2, {2, 50, HAS_ALL, T, false},                  SAME(2, 50),    false, HFD_VERDICT_REPEAT,  NULL},
    {"D6 equal time, other content is stored",           2, {2, 50, HAS_ALL, T, false},                  STORED(2, 50),  false, HFD_VERDICT_STORE,   NULL},
    {"D6 needs the same generation",                     2, {2, 50, HAS_ALL, T, false},                  SAME(1, 50),    false, HFD_VERDICT_STORE,   NULL},
    {"D6 needs an earlier report",                       2, {2, 50, HAS_ALL, T, false},                  {false, 2, 50, true}, false, HFD_VERDICT_STORE, NULL},
    {"D7 deleting, Finalized counts with Unknown",       2, {2, 50, HAS_ALL, U, true},                   NEVER,          true,  HFD_VERDICT_STORE,   NULL},
    {"D7 not without Finalized",                         2, {2, 50, HAS_ALL, U, false},                  NEVER,          true,  HFD_VERDICT_DISCARD, "unknown"},
    {"D7 not before the deletion",                       2, {2, 50, HAS_ALL, U, true},                   NEVER,          false, HFD_VERDICT_DISCARD, "unknown"},
    {"D7 repeated is a repeat",                          2, {2, 50, HAS_ALL, U, true},                   SAME(2, 50),    true,  HFD_VERDICT_REPEAT,  NULL},
};
/* clang-format on */

/*
 * A report is discarded, rejected, taken as a repeat or stored as the table says. The missing
 * condition is named, and the cause of a discarded report.
 */
static void run_verdict(void **state)
{
    const struct verdict_case *vc = *state;
    const struct hfd_verdict_input in = {
        .generation = vc->generation,
        .observed_generation = vc->in.generation,
        .observed_us = vc->in.at,
        .has_available = (vc->in.has & HAS_AVAILABLE) != 0,
        .has_applied = (vc->in.has & HAS_APPLIED) != 0,
        .has_health = (vc->in.has & HAS_HEALTH) != 0,
        .available = vc->in.available,
        .finalized_true = vc->in.finalized,
        .deleting = vc->deleting,
        .has_prev = vc->prev.present,
        .prev_generation = vc->prev.generation,
        .prev_observed_us = vc->prev.at,
        .same_content = vc->prev.same_content,
    };
    const char *missing = "untouched";

    assert_int_equal(hfd_report_verdict(&in, &missing), vc->want);
    if (vc->why == NULL)
        assert_null(missing);
    else
        assert_string_equal(missing, vc->why);
}

static void play(struct agg_world *w, size_t adapter, int64_t generation, enum hfd_status available,
                 int64_t at)
{
    const struct agg_event e = {AGG_REPORT, NOW, adapter, generation, at, available, F};
    struct agg_world next;

    assert_int_equal(agg_world_step(w, &e, &next), HFD_VERDICT_STORE);
    *w = next;
}

/*
 * The HyperFleet API's example: Available at generation 1 falls with a False report on 1, and stays
 * with a False report on 2.
 */
static void prose_available_keeps_its_generation(void **state)
{
    struct agg_world start, w, next;

    (void)state;
    agg_world_new(&start, 2, 10);
    play(&start, A, 1, T, 20);
    play(&start, B, 1, T, 21);
    assert_int_equal(start.available.status, T);
    assert_int_equal(start.available.generation, 1);

    w = start;
    play(&w, A, 1, F, 30);
    assert_int_equal(w.available.status, F);
    assert_int_equal(w.ready.status, F);

    agg_world_step(&start, &(struct agg_event){.kind = AGG_CHANGE, .now = 40}, &next);
    assert_int_equal(next.ready.status, F);
    w = next;
    play(&w, A, 2, F, 50);
    assert_int_equal(w.available.status, T);
    assert_int_equal(w.available.generation, 1);
    assert_int_equal(w.available.transition, 21);
}

/*
 * <Adapter>Successful is created once and follows every report. Its transition time moves with its
 * status only. Unknown leaves it unchanged.
 */
static void adapter_condition_follows_reports(void **state)
{
    struct agg_world w, next;

    (void)state;
    agg_world_new(&w, 2, 10);
    assert_false(w.adapter[A].present);
    play(&w, A, 1, T, 20);
    assert_true(agg_condition_eq(&w.adapter[A], &(struct agg_condition){true, T, 1, NOW, 20, 20}));
    assert_false(w.adapter[B].present);
    w.adapter[A].created = 5;
    play(&w, A, 1, T, 30);
    assert_true(agg_condition_eq(&w.adapter[A], &(struct agg_condition){true, T, 1, 5, 30, 20}));
    play(&w, A, 1, F, 40);
    assert_true(agg_condition_eq(&w.adapter[A], &(struct agg_condition){true, F, 1, 5, 40, 40}));
    agg_world_step(&w, &(struct agg_event){.kind = AGG_DELETE, .now = 50}, &next);
    assert_true(agg_condition_eq(&next.adapter[A], &w.adapter[A]));
    w = next;
    assert_int_equal(
        agg_world_step(&w, &(struct agg_event){AGG_REPORT, NOW, A, 2, 60, U, T}, &next),
        HFD_VERDICT_STORE);
    assert_true(agg_condition_eq(&next.adapter[A], &w.adapter[A]));
}

/* The tests below build whole inputs, for the texts. */
struct scene {
    struct hfd_arena mem;
    struct hfd_conditions cs;
    struct hfd_agg_report reports[3];
    struct hfd_agg_input in;
};

static const hfd_slice scene_required[] = {HFD_SLICE("validation"), HFD_SLICE("dns")};

static void scene_open(struct scene *s)
{
    *s = (struct scene){.in = {.required = {scene_required, 2},
                               .kind_name = "NodePool",
                               .generation = 1,
                               .now_us = NOW}};
    hfd_arena_init(&s->mem, (size_t)1 << 20);
    assert_int_equal(
        hfd_agg_created(&(struct hfd_agg_input){.required = {scene_required, 2}, .now_us = 10},
                        &s->mem, &s->cs),
        HFD_OK);
    s->in.prev = &s->cs;
    s->in.reports.items = s->reports;
}

static void scene_close(struct scene *s)
{
    hfd_arena_fini(&s->mem);
}

static void scene_report(struct scene *s, const struct hfd_agg_report *r)
{
    struct hfd_conditions next;
    size_t i = 0;

    while (i < s->in.reports.count && !hfd_slice_eq(s->reports[i].adapter, r->adapter))
        i++;
    if (i == s->in.reports.count)
        s->in.reports.count++;
    assert_true(i < 3);
    s->reports[i] = *r;
    s->in.event = r;
    assert_int_equal(hfd_agg_reported(&s->in, &s->mem, &next), HFD_OK);
    s->cs = next;
}

static void scene_change(struct scene *s)
{
    struct hfd_conditions next;

    s->in.generation++;
    assert_int_equal(hfd_agg_changed(&s->in, &s->mem, &next), HFD_OK);
    s->cs = next;
}

static void assert_words(const struct scene *s, const char *type, const char *reason,
                         const char *message)
{
    const struct hfd_condition *c = hfd_condition_find(&s->cs, hfd_slice_of(type));
    char text[512];

    assert_non_null(c);
    snprintf(text, sizeof(text), "%.*s", HFD_SLICE_FMT(c->reason));
    assert_string_equal(text, reason);
    snprintf(text, sizeof(text), "%.*s", HFD_SLICE_FMT(c->message));
    assert_string_equal(text, message);
}

/* clang-format off */
#define SAID(name, gen, avail, at) \
    &(struct hfd_agg_report){HFD_SLICE(name), (gen), (at), (avail), F, HFD_SLICE("Because"), HFD_SLICE("of it"), false}
/* clang-format on */
#define MISSING "MissingRequiredAdapters"
#define NOT_SAME                                                                                   \
    "AdaptersNotAtSameGeneration", "Required adapters do not report a consistent Available state"

/* D8: an observer's report of Available=Unknown is stored; it is still discarded when stale. */
static void observer_unknown_is_kept(void **state)
{
    struct hfd_verdict_input in = {.generation = 2,
                                   .observed_generation = 2,
                                   .observed_us = 50,
                                   .has_available = true,
                                   .has_applied = true,
                                   .has_health = true,
                                   .available = U};
    const char *missing;

    (void)state;
    assert_int_equal(hfd_report_verdict(&in, &missing), HFD_VERDICT_DISCARD);
    in.keeps_unknown = true;
    assert_int_equal(hfd_report_verdict(&in, &missing), HFD_VERDICT_STORE);
    in.observed_generation = 3;
    assert_int_equal(hfd_report_verdict(&in, &missing), HFD_VERDICT_DISCARD);
}

/* The degraded observer is shown before the others, and one without a verdict is not. */
static void observer_verdict_is_shown(void **state)
{
    static const hfd_slice names[] = {HFD_SLICE("validation"), HFD_SLICE("dns")};
    const hfd_slice type = HFD_SLICE(HFD_OBSERVER_CONDITION);
    struct hfd_conditions prev = {NULL, 0}, next;
    struct hfd_agg_report reports[2] = {
        {.adapter = names[0],
         .observed_generation = 1,
         .observed_us = 20,
         .available = T,
         .reason = HFD_SLICE("PacemakerHealthy"),
         .has_verdict = true},
        {.adapter = names[1],
         .observed_generation = 1,
         .observed_us = 30,
         .available = F,
         .reason = HFD_SLICE("x"),
         .message = HFD_SLICE("lost"),
         .has_verdict = true},
    };
    struct hfd_agg_input in = {.required = {names, 2},
                               .observers = {names, 2},
                               .kind_name = "Cluster",
                               .generation = 1,
                               .now_us = NOW,
                               .prev = &prev,
                               .reports = {reports, 2},
                               .event = &reports[1]};
    const struct hfd_condition *c;
    struct hfd_arena mem;

    (void)state;
    hfd_arena_init(&mem, (size_t)1 << 20);
    assert_int_equal(hfd_agg_reported(&in, &mem, &next), HFD_OK);
    c = hfd_condition_find(&next, type);
    assert_int_equal(c->status, T);
    assert_true(hfd_slice_is(c->reason, "x"));
    assert_true(hfd_slice_is(c->message, "lost"));
    assert_int_equal(c->last_transition_us, 30);
    prev = next;
    reports[1].available = T;
    reports[1].observed_us = 40;
    assert_int_equal(hfd_agg_reported(&in, &mem, &next), HFD_OK);
    c = hfd_condition_find(&next, type);
    assert_int_equal(c->status, F);
    assert_true(hfd_slice_is(c->reason, "PacemakerHealthy"));
    assert_int_equal(c->last_transition_us, 20);
    reports[0].has_verdict = reports[1].has_verdict = false;
    assert_int_equal(hfd_agg_reported(&in, &mem, &next), HFD_OK);
    assert_null(hfd_condition_find(&next, type));
    hfd_arena_fini(&mem);
}

/* Reason and message of Ready and Available at each stage of a life, lists sorted. */
static void words_of_ready_and_available(void **state)
{
    struct scene s;

    (void)state;
    scene_open(&s);
    scene_report(&s, SAID("validation", 1, F, 19));
    assert_words(&s, "Available", NOT_SAME);
    scene_report(&s, SAID("validation", 1, T, 20));
    assert_words(
        &s, "Ready", MISSING,
        "Required adapters not reporting Available=True: [dns]. Currently reporting: [validation]");
    assert_words(&s, "Available", NOT_SAME);
    scene_report(&s, SAID("dns", 1, F, 21));
    assert_words(&s, "Ready", MISSING,
                 "Required adapters not reporting Available=True: [dns]. Currently reporting: "
                 "[dns, validation]");
    assert_words(&s, "Available", "AdapterReportedNotAvailable",
                 "Adapters reporting Available=False: dns (Because)");
    scene_report(&s, SAID("validation", 1, F, 22));
    assert_words(&s, "Available", "AdapterReportedNotAvailable",
                 "Adapters reporting Available=False: validation (Because), dns (Because)");
    scene_report(&s, SAID("validation", 1, T, 23));
    scene_report(&s, SAID("dns", 1, T, 24));
    assert_words(&s, "Ready", "ResourceReady", "All adapters report ready at current generation");
    assert_words(&s, "Available", "ResourceAvailable", "NodePool is accessible");
    scene_change(&s);
    assert_words(&s, "Ready", MISSING,
                 "Required adapters not reporting Available=True: [dns, validation]. Currently "
                 "reporting: [dns, validation]");
    assert_words(&s, "Available", "ResourceAvailable", "NodePool is accessible");
    scene_report(&s, SAID("dns", 2, F, 25));
    assert_words(&s, "Ready", MISSING,
                 "Required adapters not reporting Available=True: [dns, validation]. Currently "
                 "reporting: [dns, validation]");
    assert_words(&s, "Available", "ResourceAvailable", "NodePool is accessible");
    scene_close(&s);
}

/* After a change of a resource without reports, the message lists no adapter as reporting. */
static void words_after_an_early_change(void **state)
{
    struct scene s;

    (void)state;
    scene_open(&s);
    scene_change(&s);
    assert_words(&s, "Ready", MISSING,
                 "Required adapters not reporting Available=True: [dns, validation]. Currently "
                 "reporting: []");
    assert_words(&s, "Available", "AwaitingAdapters", "Waiting for adapters to report status");
    scene_close(&s);
}

/* While deleting, Ready names the adapters that have not finalized, then the children. */
static void words_while_deleting(void **state)
{
    struct hfd_agg_report done = {HFD_SLICE("validation"), 2,    30, F, T, HFD_SLICE_NONE,
                                  HFD_SLICE_NONE,          false};
    struct scene s;

    (void)state;
    scene_open(&s);
    s.in.deleting = true;
    s.in.has_children = true;
    scene_change(&s);
    assert_words(&s, "Ready", MISSING,
                 "Required adapters not reporting Finalized=True: [dns, validation]. Currently "
                 "reporting: []");
    scene_report(&s, &done);
    assert_words(
        &s, "Ready", MISSING,
        "Required adapters not reporting Finalized=True: [dns]. Currently reporting: [validation]");
    done.adapter = HFD_SLICE("dns");
    scene_report(&s, &done);
    assert_words(&s, "Ready", "WaitingForChildren", "Waiting for nodepools to be removed");
    assert_words(&s, "Available", "AdapterReportedNotAvailable",
                 "Adapters reporting Available=False: validation, dns");
    s.in.has_children = false;
    scene_report(&s, &done);
    assert_words(&s, "Ready", "ResourceReady",
                 "All adapters report Finalized at current generation");
    done.available = U;
    scene_report(&s, &done);
    done.adapter = HFD_SLICE("validation");
    scene_report(&s, &done);
    assert_words(&s, "Available", NOT_SAME);
    assert_words(&s, "Ready", "ResourceReady",
                 "All adapters report Finalized at current generation");
    scene_close(&s);
}

#define QUOTED "Adapters reporting Available=False: dns ("

/* One adapter whose reason is `shift` plain characters and then two-byte ones, len bytes in all. */
static void check_bound(size_t shift, size_t len)
{
    char reason[400];
    struct hfd_agg_report r = {HFD_SLICE("dns"), 1, 30, F, F, {reason, len}, HFD_SLICE_NONE, false};
    const size_t whole = strlen(QUOTED) + len + 1;
    const struct hfd_condition *c;
    struct scene s;

    for (size_t i = 0; i < sizeof(reason); i++)
        reason[i] = (i - shift) % 2 == 0 ? '\xc3' : '\xa9';
    memset(reason, 'x', shift);
    scene_open(&s);
    scene_report(&s, SAID("validation", 1, T, 20));
    scene_report(&s, &r);
    c = hfd_condition_find(&s.cs, HFD_SLICE("Available"));
    if (whole <= 300) {
        assert_int_equal(c->message.len, whole);
        assert_int_equal(c->message.p[whole - 1], ')');
    } else {
        assert_in_range(c->message.len, 299, 300);
        assert_memory_equal(c->message.p + c->message.len - 3, "...", 3);
        assert_int_equal((c->message.len - 3 - strlen(QUOTED) - shift) % 2, 0);
    }
    scene_close(&s);
}

/* A message that quotes adapters ends in "..." at 300 bytes, never within a character. */
static void words_are_bounded(void **state)
{
    (void)state;
    for (size_t shift = 0; shift < 2; shift++)
        for (size_t len = 200; len <= 400; len += 2)
            check_bound(shift, len - shift);
}

/*
 * The array: the four aggregated conditions, then required adapters in the settings' order, with
 * the texts of their Available condition.
 */
static void conditions_are_ordered(void **state)
{
    static const char *const order[] = {
        "Available",    "Ready", "LastKnownReconciled", "Reconciled", "ValidationSuccessful",
        "DnsSuccessful"};
    struct scene s;

    (void)state;
    scene_open(&s);
    scene_report(&s, SAID("dns", 1, T, 20));
    scene_report(&s, SAID("validation", 1, F, 21));
    assert_int_equal(s.cs.count, 6);
    for (size_t i = 0; i < 6; i++)
        assert_true(hfd_slice_is(s.cs.items[i].type, order[i]));
    assert_words(&s, "DnsSuccessful", "Because", "of it");
    scene_change(&s);
    assert_int_equal(s.cs.count, 6);
    for (size_t i = 0; i < 6; i++)
        assert_true(hfd_slice_is(s.cs.items[i].type, order[i]));
    scene_close(&s);
}

/* An adapter that is not required has no influence and no condition. */
static void other_adapters_change_nothing(void **state)
{
    struct hfd_conditions before;
    struct scene s;

    (void)state;
    scene_open(&s);
    scene_report(&s, SAID("dns", 1, T, 20));
    before = s.cs;
    scene_report(&s, SAID("pacemaker", 1, F, 30));
    assert_int_equal(s.cs.count, before.count);
    assert_memory_equal(s.cs.items, before.items, before.count * sizeof(*before.items));
    scene_report(&s, SAID("validation", 1, T, 40));
    assert_words(&s, "Ready", "ResourceReady", "All adapters report ready at current generation");
    assert_null(hfd_condition_find(&s.cs, HFD_SLICE("PacemakerSuccessful")));
    scene_close(&s);
}

/*
 * With other settings after a restart: an adapter that is no longer required loses its condition. A
 * newly required one gets its condition from its stored report.
 */
static void required_adapters_may_change(void **state)
{
    static const hfd_slice later[] = {HFD_SLICE("dns"), HFD_SLICE("pacemaker")};
    struct scene s;

    (void)state;
    scene_open(&s);
    scene_report(&s, SAID("validation", 1, T, 20));
    scene_report(&s, SAID("pacemaker", 1, T, 21));
    s.in.required = (struct hfd_adapter_names){later, 2};
    scene_report(&s, SAID("dns", 1, T, 22));
    assert_int_equal(s.cs.count, 6);
    assert_null(hfd_condition_find(&s.cs, HFD_SLICE("ValidationSuccessful")));
    assert_non_null(hfd_condition_find(&s.cs, HFD_SLICE("PacemakerSuccessful")));
    assert_words(&s, "Ready", "ResourceReady", "All adapters report ready at current generation");
    scene_close(&s);
}

/* Stored conditions that lack Ready or Available get them back, so that damage does not stay. */
static void lost_conditions_come_back(void **state)
{
    struct scene s;

    (void)state;
    scene_open(&s);
    s.cs.count = 0;
    scene_report(&s, SAID("dns", 1, T, 20));
    assert_int_equal(s.cs.count, 5);
    assert_non_null(hfd_condition_find(&s.cs, HFD_SLICE("Ready")));
    assert_int_equal(hfd_condition_find(&s.cs, HFD_SLICE("Available"))->created_us, NOW);
    scene_close(&s);
}

/*
 * A resource can be removed when every required adapter finalized at the current generation and no
 * child is left.
 */
static void finalized_needs_all_at_the_generation(void **state)
{
    struct scene s;

    (void)state;
    scene_open(&s);
    s.in.deleting = true;
    s.in.generation = 2;
    assert_false(hfd_agg_finalized(&s.in));
    s.reports[0] = (struct hfd_agg_report){HFD_SLICE("dns"), 2,    30, F, T, HFD_SLICE_NONE,
                                           HFD_SLICE_NONE,   false};
    s.in.reports.count = 1;
    assert_false(hfd_agg_finalized(&s.in));
    s.reports[1] = s.reports[0];
    s.reports[1].adapter = HFD_SLICE("validation");
    s.in.reports.count = 2;
    assert_true(hfd_agg_finalized(&s.in));
    s.in.has_children = true;
    assert_false(hfd_agg_finalized(&s.in));
    s.in.has_children = false;
    s.reports[1].observed_generation = 1;
    assert_false(hfd_agg_finalized(&s.in));
    s.reports[1].observed_generation = 2;
    s.reports[1].finalized = F;
    assert_false(hfd_agg_finalized(&s.in));
    s.reports[1].finalized = U;
    assert_false(hfd_agg_finalized(&s.in));
    s.in.required.count = 0;
    assert_true(hfd_agg_finalized(&s.in));
    scene_close(&s);
}

/*
 * Each part of the name with a capital, joined, and "Successful"; other characters are left alone.
 */
static void adapter_condition_types(void **state)
{
    static const char *const names[][2] = {
        {"validator", "ValidatorSuccessful"},
        {"dns", "DnsSuccessful"},
        {"my-adapter", "MyAdapterSuccessful"},
        {"gcp-provisioner", "GcpProvisionerSuccessful"},
        {"a--b-", "ABSuccessful"},
        {"3scale-dns2", "3scaleDns2Successful"},
        {"hyperShift", "HyperShiftSuccessful"},
        {"zone", "ZoneSuccessful"},
        {"\xc3\xa9t\xc3\xa9", "\xc3\xa9t\xc3\xa9Successful"},
        {"", "Successful"},
    };
    struct hfd_arena mem;

    (void)state;
    hfd_arena_init(&mem, 4096);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_true(
            hfd_slice_is(hfd_adapter_condition_type(hfd_slice_of(names[i][0]), &mem), names[i][1]));
    hfd_arena_fini(&mem);
}

/* With any amount of memory the result is complete, or HFD_NOMEM and empty. */
static void out_of_memory_leaves_nothing(void **state)
{
    struct hfd_conditions out;
    struct hfd_arena mem;
    struct scene s;
    unsigned failed = 0;

    (void)state;
    scene_open(&s);
    scene_report(&s, SAID("validation", 1, T, 20));
    scene_report(&s, SAID("dns", 1, F, 21));
    for (unsigned what = 0; what < 3; what++) {
        size_t max_bytes = 0;
        hfd_rc rc;

        do {
            hfd_arena_init(&mem, max_bytes++);
            rc = what == 0   ? hfd_agg_created(&s.in, &mem, &out)
                 : what == 1 ? hfd_agg_changed(&s.in, &mem, &out)
                             : hfd_agg_reported(&s.in, &mem, &out);
            if (rc != HFD_OK) {
                failed++;
                assert_int_equal(rc, HFD_NOMEM);
                assert_null(out.items);
                assert_int_equal(out.count, 0);
            }
            hfd_arena_fini(&mem);
            assert_true(max_bytes < 100000);
        } while (rc != HFD_OK);
    }
    assert_true(failed > 0);
    scene_close(&s);
}

#define ROWS (sizeof(row_cases) / sizeof(row_cases[0]))
#define VERDICTS (sizeof(verdict_cases) / sizeof(verdict_cases[0]))

/* cmocka hands the case over as a plain pointer; the cases are only read. */
static void *as_state(const void *p)
{
    union {
        const void *in;
        void *out;
    } u = {p};

    return u.out;
}

int main(void)
{
    static const struct CMUnitTest plain[] = {
        cmocka_unit_test(row_L1_L2_creation),
        cmocka_unit_test(prose_available_keeps_its_generation),
        cmocka_unit_test(adapter_condition_follows_reports),
        cmocka_unit_test(observer_unknown_is_kept),
        cmocka_unit_test(observer_verdict_is_shown),
        cmocka_unit_test(words_of_ready_and_available),
        cmocka_unit_test(words_after_an_early_change),
        cmocka_unit_test(words_while_deleting),
        cmocka_unit_test(words_are_bounded),
        cmocka_unit_test(conditions_are_ordered),
        cmocka_unit_test(other_adapters_change_nothing),
        cmocka_unit_test(required_adapters_may_change),
        cmocka_unit_test(lost_conditions_come_back),
        cmocka_unit_test(finalized_needs_all_at_the_generation),
        cmocka_unit_test(adapter_condition_types),
        cmocka_unit_test(out_of_memory_leaves_nothing),
    };
    struct CMUnitTest rows[ROWS], verdicts[VERDICTS];

    for (size_t i = 0; i < ROWS; i++)
        rows[i] =
            (struct CMUnitTest){row_cases[i].name, run_row, NULL, NULL, as_state(&row_cases[i])};
    for (size_t i = 0; i < VERDICTS; i++)
        verdicts[i] = (struct CMUnitTest){verdict_cases[i].name, run_verdict, NULL, NULL,
                                          as_state(&verdict_cases[i])};
    return cmocka_run_group_tests_name("rows", rows, NULL, NULL) +
           cmocka_run_group_tests_name("verdicts", verdicts, NULL, NULL) +
           cmocka_run_group_tests_name("words", plain, NULL, NULL);
}
