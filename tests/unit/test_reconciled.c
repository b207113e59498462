/*
 * Each rule of Reconciled and LastKnownReconciled by its letter in driver/fleet/README.md, with
 * what a sentinel makes of it; and the words of both.
 */
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
#define CHANGED 40 /* updated_time of the resource */
#define CREATED 1

/* clang-format off */
enum { A, B };

#define SAYS(gen, avail, at_) {true, (gen), (at_), (avail), F}
#define FINAL(gen, avail, fin, at_) {true, (gen), (at_), (avail), (fin)}
#define COND(status_, gen, updated_, transition_) {true, (status_), (gen), CREATED, (updated_), (transition_)}
#define REPORT(who, gen, avail, at_) {AGG_REPORT, NOW, (who), (gen), (at_), (avail), F}

/* A world of two required adapters before an event, and both conditions behind it. */
static const struct row_case {
    const char *name;
    struct agg_world w;
    struct agg_event e;
    struct agg_condition reconciled, last_known;
} row_cases[] = {
    {"R1 one is at G, the other behind: updated is the report at G, so that a sentinel waits; K2 stays",
     {2, 2, .stored = {SAYS(1, T, 30), SAYS(1, T, 31)}, .reconciled = COND(F, 2, 40, 40), .last_known = COND(T, 1, 30, 20)},
     REPORT(A, 2, T, 95), COND(F, 2, 95, 40), COND(T, 1, 30, 20)},
    {"R1 another report at G moves it again, while the other is still behind",
     {2, 2, .stored = {SAYS(2, T, 95), SAYS(1, T, 31)}, .reconciled = COND(F, 2, 95, 40), .last_known = COND(T, 1, 30, 20)},
     REPORT(A, 2, T, 105), COND(F, 2, 105, 40), COND(T, 1, 30, 20)},
    {"R1 one is at G, the other has not reported: its time, and not now; K4 False at the newest",
     {2, 1, .reconciled = COND(F, 1, 40, 40), .last_known = COND(F, 1, 40, 40)},
     REPORT(A, 1, T, 95), COND(F, 1, 95, 40), COND(F, 1, 40, 40)},
    {"R1 R4 K1 all True at G: both True, updated the oldest, and transition too",
     {2, 2, .stored = {SAYS(2, T, 90), SAYS(1, T, 31)}, .reconciled = COND(F, 2, 90, 40), .last_known = COND(F, 1, 30, 20)},
     REPORT(B, 2, T, 95), COND(T, 2, 90, 90), COND(T, 2, 90, 90)},
    {"R4 K3 a False at G: Reconciled False; LastKnownReconciled False, as it tracked G",
     {2, 2, .stored = {SAYS(2, T, 90), SAYS(2, T, 91)}, .reconciled = COND(T, 2, 90, 50), .last_known = COND(T, 2, 90, 50)},
     REPORT(B, 2, F, 95), COND(F, 2, 90, 90), COND(F, 2, 90, 90)},
    {"R2 nothing at G: updated_time of the resource",
     {2, 3, .stored = {SAYS(1, T, 30), SAYS(2, T, 31)}, .reconciled = COND(F, 3, 40, 40), .last_known = COND(F, 2, 30, 20)},
     REPORT(A, 2, T, 95), COND(F, 3, 40, 40), COND(T, 2, 31, 31)},
    {"R2 R3 a change ends True: both times of the change; LastKnownReconciled stays",
     {2, 2, .stored = {SAYS(2, T, 90), SAYS(2, T, 91)}, .reconciled = COND(T, 2, 90, 50), .last_known = COND(T, 2, 90, 51)},
     {.kind = AGG_CHANGE, .now = NOW}, COND(F, 3, NOW, NOW), COND(T, 2, 90, 51)},
    {"R2 a change of what is False: updated now, transition stays",
     {2, 2, .stored = {SAYS(2, F, 90)}, .reconciled = COND(F, 2, 90, 50), .last_known = COND(F, 2, 90, 51)},
     {.kind = AGG_CHANGE, .now = NOW}, COND(F, 3, NOW, 50), COND(F, 2, 90, 51)},
    {"K2 all True at mixed generations keeps False, at the newest",
     {2, 2, .stored = {SAYS(1, F, 30), SAYS(1, T, 31)}, .reconciled = COND(F, 2, 40, 40), .last_known = COND(F, 1, 30, 20)},
     REPORT(A, 2, T, 95), COND(F, 2, 95, 40), COND(F, 2, 30, 20)},
    {"K3 a False at another generation than the tracked one leaves it True (Available turns False here)",
     {2, 2, .stored = {SAYS(2, T, 90), SAYS(1, T, 31)}, .reconciled = COND(F, 2, 90, 40), .last_known = COND(T, 1, 30, 20)},
     REPORT(B, 2, F, 95), COND(F, 2, 90, 40), COND(T, 1, 30, 20)},
    {"K3 a False at the tracked generation ends it, with the other ahead (Available stays True here)",
     {2, 2, .stored = {SAYS(1, T, 30), SAYS(2, T, 91)}, .reconciled = COND(F, 2, 91, 40), .last_known = COND(T, 1, 30, 20)},
     REPORT(A, 1, F, 95), COND(F, 2, 91, 40), COND(F, 2, 30, 30)},
    {"K4 one False, one missing: the newest generation, updated its oldest",
     {2, 2, .reconciled = COND(F, 2, 40, 40), .last_known = COND(F, 1, 30, 20)},
     REPORT(A, 2, F, 95), COND(F, 2, 95, 40), COND(F, 2, 95, 20)},
    {"Deleting: Reconciled asks for Finalized",
     {2, 3, true, .stored = {FINAL(3, T, T, 90), SAYS(3, T, 91)}, .reconciled = COND(F, 3, 90, 40), .last_known = COND(T, 3, 90, 20)},
     {AGG_REPORT, NOW, B, 3, 95, T, T}, COND(T, 3, 90, 90), COND(T, 3, 90, 20)},
    {"Deleting: not while nodepools are left",
     {2, 3, true, true, .stored = {FINAL(3, T, T, 90), SAYS(3, T, 91)}, .reconciled = COND(F, 3, 90, 40), .last_known = COND(T, 3, 90, 20)},
     {AGG_REPORT, NOW, B, 3, 95, T, T}, COND(F, 3, 90, 40), COND(T, 3, 90, 20)},
    {"Deleting: Finalized with Available Unknown counts for Reconciled, and is no report for the other",
     {2, 3, true, .stored = {FINAL(3, T, T, 90), SAYS(2, T, 31)}, .reconciled = COND(F, 3, 90, 40), .last_known = COND(T, 2, 30, 20)},
     {AGG_REPORT, NOW, B, 3, 95, U, T}, COND(T, 3, 90, 90), COND(F, 3, 30, 30)},
};
/* clang-format on */

static void assert_condition(const struct agg_world *got, const struct agg_condition *is,
                             const struct agg_condition *want)
{
    if (!agg_condition_eq(is, want))
        agg_world_print("got", got);
    assert_true(agg_condition_eq(is, want));
}

/* A rule moves status, generation and times exactly as it says. */
static void run_row(void **state)
{
    const struct row_case *rc = *state;
    struct agg_world w = rc->w, next;

    w.updated = CHANGED;
    w.ready = (struct agg_condition)COND(F, rc->w.generation, 40, 40);
    w.available = (struct agg_condition)COND(F, 1, 40, 40);
    assert_int_equal(agg_world_step(&w, &rc->e, &next), HFD_VERDICT_STORE);
    assert_condition(&next, &next.reconciled, &rc->reconciled);
    assert_condition(&next, &next.last_known, &rc->last_known);
}

static const hfd_slice names[] = {HFD_SLICE("validation"), HFD_SLICE("dns")};

static void assert_words(const struct hfd_conditions *cs, const char *type, const char *reason,
                         const char *message)
{
    const struct hfd_condition *c = hfd_condition_find(cs, hfd_slice_of(type));
    char text[256];

    assert_non_null(c);
    (void)snprintf(text, sizeof(text), "%.*s: %.*s", HFD_SLICE_FMT(c->reason),
                   HFD_SLICE_FMT(c->message));
    assert_memory_equal(text, reason, strlen(reason));
    assert_string_equal(text + strlen(reason) + 2, message);
}

#define MISSING(which)                                                                             \
    "Required adapters not reporting Available=True: [" which "]. Currently reporting: "

/* The words are those of HyperFleet, from the creation on. */
static void words(void **state)
{
    struct hfd_agg_report reports[] = {
        {.adapter = HFD_SLICE("validation"),
         .observed_generation = 1,
         .observed_us = 20,
         .available = T},
        {.adapter = HFD_SLICE("dns"), .observed_generation = 1, .observed_us = 21, .available = F}};
    struct hfd_agg_input in = {.required = {names, 2},
                               .kind_name = "Cluster",
                               .generation = 1,
                               .now_us = NOW,
                               .updated_us = NOW,
                               .reports = {reports, 1},
                               .event = &reports[0]};
    struct hfd_conditions cs, next;
    struct hfd_arena mem;

    (void)state;
    hfd_arena_init(&mem, 65536);
    assert_int_equal(hfd_agg_created(&in, &mem, &cs), HFD_OK);
    assert_words(&cs, "Reconciled", "ReconciledMissingAdapters", MISSING("dns, validation") "[]");
    assert_words(&cs, "LastKnownReconciled", "AdaptersMissingReports",
                 "Required adapters have not yet reported status");
    in.prev = &cs;
    assert_int_equal(hfd_agg_reported(&in, &mem, &next), HFD_OK);
    assert_words(&next, "Reconciled", "ReconciledMissingAdapters", MISSING("dns") "[validation]");
    in.reports.count = 2;
    in.event = &reports[1];
    assert_int_equal(hfd_agg_reported(&in, &mem, &next), HFD_OK);
    assert_words(&next, "Reconciled", "ReconciledMissingAdapters",
                 MISSING("dns") "[dns, validation]");
    assert_words(&next, "LastKnownReconciled", "AdapterReportedNotAvailable",
                 "One or more required adapters report Available=False");
    reports[1].available = T;
    assert_int_equal(hfd_agg_reported(&in, &mem, &next), HFD_OK);
    assert_words(&next, "Reconciled", "ReconciledAll",
                 "All required adapters reported Available=True or Finalized=True at the current "
                 "generation");
    assert_words(&next, "LastKnownReconciled", "AllAdaptersReconciled",
                 "All required adapters report Available=True for the tracked generation");
    reports[1].observed_generation = in.generation = 2;
    assert_int_equal(hfd_agg_reported(&in, &mem, &next), HFD_OK);
    assert_words(&next, "LastKnownReconciled", "AdaptersNotAtSameGeneration",
                 "Required adapters do not report a consistent Available state");
    reports[0].observed_generation = 2;
    reports[0].finalized = reports[1].finalized = T;
    in.deleting = in.has_children = true;
    assert_int_equal(hfd_agg_reported(&in, &mem, &next), HFD_OK);
    assert_words(&next, "Reconciled", "ReconciledWaitingForChildren",
                 "Deletion in progress. All required adapters reported Finalized=True but child "
                 "resources still exist");
    hfd_arena_fini(&mem);
}

/* An adapter that became required since ends Reconciled, while Ready follows its own table. */
static void newly_required(void **state)
{
    const struct hfd_agg_report report = {
        .adapter = names[0], .observed_generation = 1, .observed_us = 20, .available = T};
    struct hfd_agg_input in = {.required = {names, 1},
                               .kind_name = "Cluster",
                               .generation = 1,
                               .now_us = NOW,
                               .updated_us = NOW,
                               .reports = {&report, 1},
                               .event = &report};
    struct hfd_conditions cs, next;
    struct hfd_arena mem;

    (void)state;
    hfd_arena_init(&mem, 65536);
    assert_int_equal(hfd_agg_created(&in, &mem, &cs), HFD_OK);
    in.prev = &cs;
    assert_int_equal(hfd_agg_reported(&in, &mem, &next), HFD_OK);
    assert_int_equal(hfd_condition_find(&next, HFD_SLICE("Reconciled"))->status, T);
    cs = next;
    in.required.count = 2;
    assert_int_equal(hfd_agg_reported(&in, &mem, &next), HFD_OK);
    assert_int_equal(hfd_condition_find(&next, HFD_SLICE("Ready"))->status, T);
    assert_int_equal(hfd_condition_find(&next, HFD_SLICE("Reconciled"))->status, F);
    assert_words(&next, "Reconciled", "ReconciledMissingAdapters", MISSING("dns") "[validation]");
    hfd_arena_fini(&mem);
}

#define ROWS (sizeof(row_cases) / sizeof(row_cases[0]))

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
    struct CMUnitTest tests[ROWS + 2] = {cmocka_unit_test(words), cmocka_unit_test(newly_required)};

    for (size_t i = 0; i < ROWS; i++)
        tests[2 + i] =
            (struct CMUnitTest){row_cases[i].name, run_row, NULL, NULL, as_state(&row_cases[i])};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
