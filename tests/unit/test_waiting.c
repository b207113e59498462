/* The message of the hint: what an operation waits for. */
#include "driver/core/outcome.h"

#include "tests/lib/seams.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define T TEST_TIME_US /* 2025-01-01T00:00:00Z */
#define MIN (INT64_C(60) * 1000000)

static const hfd_slice adapters[] = {HFD_SLICE("validation"), HFD_SLICE("dns"),
                                     HFD_SLICE("hypershift")};
static const struct hfd_adapter_names required[] = {
    [HFD_KIND_CLUSTER] = {adapters, 3}, [HFD_KIND_NODEPOOL] = {adapters + 2, 1}};
static const hfd_slice terminal[] = {HFD_SLICE("QuotaExceeded")};

static const char zone[] = "zone x is not delegated.\n";

/* A cluster: validation is done, dns waits, dsn is not required and gave up. */
static struct hfd_condition done[] = {
    {.type = HFD_SLICE("Available"), .status = HFD_STATUS_TRUE},
    {.type = HFD_SLICE("Health"), .status = HFD_STATUS_TRUE},
};
static struct hfd_condition waits[] = {
    {.type = HFD_SLICE("Available"),
     .status = HFD_STATUS_FALSE,
     .reason = HFD_SLICE("WaitingForDelegation"),
     .message = {zone, sizeof(zone) - 1}},
    {.type = HFD_SLICE("Health"), .status = HFD_STATUS_TRUE},
};
static struct hfd_condition gave_up[] = {
    {.type = HFD_SLICE("Available"),
     .status = HFD_STATUS_FALSE,
     .reason = HFD_SLICE("QuotaExceeded"),
     .message = HFD_SLICE("no cores")},
    {.type = HFD_SLICE("Health"), .status = HFD_STATUS_TRUE},
};
static struct hfd_condition ill[] = {
    {.type = HFD_SLICE("Available"), .status = HFD_STATUS_FALSE, .reason = HFD_SLICE("x")},
    {.type = HFD_SLICE("Health"),
     .status = HFD_STATUS_FALSE,
     .reason = HFD_SLICE("Crash"),
     .message = HFD_SLICE("out of disk")},
};
static struct hfd_condition finalized[] = {
    {.type = HFD_SLICE("Finalized"), .status = HFD_STATUS_TRUE},
    {.type = HFD_SLICE("Health"), .status = HFD_STATUS_TRUE},
};
static struct hfd_condition aggregated[] = {
    {.type = HFD_SLICE("DnsSuccessful"),
     .status = HFD_STATUS_FALSE,
     .last_transition_us = T + 3 * MIN},
};

#define REPORT(name, gen, cs)                                                                      \
    {                                                                                              \
        HFD_SLICE(name), gen, T,                                                                   \
        {                                                                                          \
            cs, 2                                                                                  \
        }                                                                                          \
    }

struct fixture {
    struct hfd_arena mem;
    struct hfd_part_report reports[4];
    struct hfd_part_view parts[5];
    struct hfd_outcome_input in;
    hfd_slice cause;
};

static int setup(void **state)
{
    static struct fixture fx;

    fx = (struct fixture){
        .reports = {REPORT("validation", 2, done), REPORT("dns", 2, waits)},
        .parts = {{.kind = HFD_KIND_CLUSTER,
                   .name = HFD_SLICE("c1"),
                   .id = HFD_SLICE("2abc"),
                   .exists = true,
                   .wanted_generation = 2,
                   .generation = 2,
                   .conditions = {aggregated, 1},
                   .reports = fx.reports,
                   .report_count = 2}},
        .in = {.guresid = HFD_SLICE("r"),
               .parts = fx.parts,
               .part_count = 1,
               .terminal_reasons = terminal,
               .terminal_reason_count = 1,
               .required = required,
               .state = HFD_STATE_CREATING,
               .deadline_us = T + 60 * MIN},
    };
    hfd_arena_init(&fx.mem, 1u << 20);
    *state = &fx;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;

    hfd_arena_fini(&fx->mem);
    return 0;
}

static void says(struct fixture *fx, const char *want)
{
    hfd_slice got;

    assert_int_equal(hfd_waiting_say(&fx->in, T, &fx->mem, &got, &fx->cause), HFD_OK);
    if (!hfd_slice_is(got, want))
        fail_msg("got  \"%.*s\"\nwant \"%s\"", HFD_SLICE_FMT(got), want);
}

static void causes(struct fixture *fx, const char *want)
{
    hfd_slice got;

    assert_int_equal(hfd_waiting_say(&fx->in, T, &fx->mem, &got, &fx->cause), HFD_OK);
    if (!hfd_slice_is(fx->cause, want))
        fail_msg("got  \"%.*s\"\nwant \"%s\"", HFD_SLICE_FMT(fx->cause), want);
}

/* One part: its adapters with time and words, and how many are done. */
static void waiting_for_adapters(void **state)
{
    struct fixture *fx = *state;

    says(fx, "waits for dns since 00:03Z (WaitingForDelegation: zone x is not delegated), and "
             "hypershift (has not reported); 1 of 3 adapters is done");
    /* The clock is not read, and nothing is waited for since before the operation began. */
    fx->in.now_us = T + 30 * MIN;
    aggregated[0].last_transition_us = T - MIN;
    says(fx, "waits for dns since 00:00Z (WaitingForDelegation: zone x is not delegated), and "
             "hypershift (has not reported); 1 of 3 adapters is done");
    aggregated[0].last_transition_us = T + 3 * MIN;
    fx->reports[0].observed_generation = 1;
    fx->reports[1] = (struct hfd_part_report)REPORT("dns", 2, ill);
    says(fx, "waits for validation (has reported on generation 1 of 2), dns since 00:03Z (does not "
             "work itself, Crash: out of disk), and hypershift (has not reported); 0 of 3 adapters "
             "are done");
    fx->parts[0].report_count = 0;
    fx->parts[0].pending = true;
    fx->in.trouble = HFD_SLICE("HyperFleet answered 503");
    says(fx, "HyperFleet answered 503; waits for HyperFleet to take it up; 0 of 3 adapters are "
             "done");
}

/* The usual time of an adapter stands behind its name, in a unit that says enough. */
static void waiting_says_what_is_usual(void **state)
{
    struct fixture *fx = *state;

    fx->in.usual = HFD_SLICE("c/validation=1000 c/dns=40400 c/hypershift=725000");
    says(fx, "waits for dns since 00:03Z, usually 40 s (WaitingForDelegation: zone x is not "
             "delegated), and hypershift, usually 12 min (has not reported); 1 of 3 adapters is "
             "done");
    fx->in.usual = HFD_SLICE("n/dns=40400 c/hypershift=7300000");
    says(fx, "waits for dns since 00:03Z (WaitingForDelegation: zone x is not delegated), and "
             "hypershift, usually 2 h (has not reported); 1 of 3 adapters is done");
}

/* An adapter that is not required is named when it gave up; it counts for nothing. */
static void waiting_names_others(void **state)
{
    struct fixture *fx = *state;

    fx->reports[2] = (struct hfd_part_report)REPORT("dsn", 2, gave_up);
    fx->parts[0].report_count = 3;
    says(fx, "waits for dns since 00:03Z (WaitingForDelegation: zone x is not delegated), and "
             "hypershift (has not reported); adapter dsn, which is not required, gave up "
             "(QuotaExceeded: no cores); 1 of 3 adapters is done");
}

/* Several parts are named, those that are done are not; a deletion waits for Finalized. */
static void waiting_for_parts(void **state)
{
    struct fixture *fx = *state;

    fx->in.part_count = 2;
    fx->parts[1] = (struct hfd_part_view){.kind = HFD_KIND_NODEPOOL,
                                          .name = HFD_SLICE("workers"),
                                          .exists = true,
                                          .wanted_generation = 1,
                                          .generation = 1};
    says(fx, "cluster waits for dns since 00:03Z (WaitingForDelegation: zone x is not delegated), "
             "and hypershift (has not reported); nodepool 'workers' waits for hypershift (has not "
             "reported); 1 of 4 adapters is done");
    fx->in.state = HFD_STATE_DELETING;
    fx->parts[1].exists = false;
    says(fx, "cluster waits for validation (has not reported Finalized), dns (has not reported "
             "Finalized), and hypershift (has not reported); 1 of 4 adapters is done");
}

/* The cause of a wait is about what the message tells first: the adapter, and its reason. */
static void waiting_has_a_cause(void **state)
{
    static struct hfd_condition vague[] = {
        {.type = HFD_SLICE("Available"), .status = HFD_STATUS_FALSE},
        {.type = HFD_SLICE("Health"), .status = HFD_STATUS_TRUE}};
    struct fixture *fx = *state;
    struct hfd_part_view stranger = {.kind = HFD_KIND_NODEPOOL, .name = HFD_SLICE("p")};
    const struct hfd_stranger strangers[] = {{HFD_SLICE("r2"), &stranger}};

    causes(fx, "dns WaitingForDelegation zone x is not delegated");
    fx->reports[1] = (struct hfd_part_report)REPORT("dns", 2, ill);
    causes(fx, "dns Crash out of disk");
    fx->reports[1] = (struct hfd_part_report)REPORT("dns", 2, vague);
    causes(fx, "dns NoReason");
    fx->reports[1].observed_generation = 1;
    causes(fx, "dns OldGeneration has reported on generation 1 of 2");
    fx->reports[1] = (struct hfd_part_report)REPORT("dns", 2, done);
    causes(fx, "hypershift NotReported has not reported");
    fx->reports[2] = (struct hfd_part_report)REPORT("hypershift", 2, done);
    fx->parts[0].report_count = 3;
    causes(fx, "hyperfleet AwaitingAggregation");
    fx->parts[0].pending = true;
    causes(fx, "hyperfleet NotTakenUp");
    fx->in.trouble = HFD_SLICE("HyperFleet answered 503");
    causes(fx, "hyperfleet RemoteTrouble HyperFleet answered 503");
    fx->in.trouble = HFD_SLICE("");
    fx->in.state = HFD_STATE_DELETING;
    causes(fx, "validation NotReported has not reported Finalized");
    for (size_t i = 0; i < 3; i++)
        fx->reports[i].conditions = (struct hfd_conditions){finalized, 2};
    causes(fx, "hyperfleet AwaitingRemoval");
    fx->in.strangers = strangers;
    fx->in.stranger_count = 1;
    causes(fx, "hyperfleet NodepoolsRemain");
}

/* Long texts are cut between characters, and how many are done still stands at the end. */
static void waiting_is_cut(void **state)
{
    static char text[600];
    static const char end[] = "; 1 of 7 adapters is done";
    struct fixture *fx = *state;
    hfd_slice got;

    for (size_t i = 0; i + 4 <= sizeof(text); i += 4)
        memcpy(text + i, "\xf0\x9f\x98\x80", 4);
    fx->in.trouble = (hfd_slice){text, sizeof(text)};
    fx->in.part_count = 5;
    for (size_t i = 1; i < 5; i++) {
        fx->parts[i] = fx->parts[0];
        fx->parts[i].kind = HFD_KIND_NODEPOOL;
        fx->parts[i].name = (hfd_slice){text, sizeof(text)};
        fx->parts[i].report_count = 0;
    }
    assert_int_equal(hfd_waiting_say(&fx->in, T, &fx->mem, &got, &fx->cause), HFD_OK);
    assert_true(got.len <= HFD_WAITING_MAX_BYTES && got.len > HFD_WAITING_MAX_BYTES - 10);
    assert_memory_equal(got.p + got.len - strlen(end), end, strlen(end));
    for (size_t i = 0; i < got.len; i++) {
        if (((unsigned char)got.p[i] & 0xc0) != 0xc0)
            continue;
        assert_true(i + 3 < got.len);
        for (size_t k = 1; k < 4; k++)
            assert_int_equal((unsigned char)got.p[i + k] & 0xc0, 0x80);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(waiting_for_adapters), TEST(waiting_says_what_is_usual), TEST(waiting_names_others),
        TEST(waiting_for_parts),    TEST(waiting_has_a_cause),        TEST(waiting_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
