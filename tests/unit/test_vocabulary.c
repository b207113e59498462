/* The two vocabularies of condition names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "driver/base/clock.h"
#include "driver/fleet/vocabulary.h"

static struct hfd_arena mem;

static int setup(void **state)
{
    (void)state;
    hfd_arena_init(&mem, (size_t)1024 * 1024);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    hfd_arena_fini(&mem);
    return 0;
}

static hfd_slice stored(void)
{
    static struct hfd_condition items[] = {
        {.type = HFD_SLICE("Available"),
         .status = HFD_STATUS_TRUE,
         .reason = HFD_SLICE("ResourceAvailable"),
         .observed_generation = 1},
        {.type = HFD_SLICE("Ready"),
         .status = HFD_STATUS_FALSE,
         .reason = HFD_SLICE("MissingRequiredAdapters"),
         .observed_generation = 2},
        {.type = HFD_SLICE("DnsSuccessful"),
         .status = HFD_STATUS_TRUE,
         .reason = HFD_SLICE("ResourceReady"),
         .observed_generation = 1},
    };
    const struct hfd_conditions cs = {items, 3};
    struct hfd_buf b;
    hfd_slice out;

    hfd_buf_init(&b, 4096);
    hfd_conditions_format(&b, &cs, false);
    out = hfd_arena_dup(&mem, hfd_buf_slice(&b));
    hfd_buf_fini(&b);
    return out;
}

static struct hfd_conditions show(enum hfd_vocabulary v)
{
    struct hfd_conditions cs;
    hfd_slice text;

    assert_int_equal(hfd_vocabulary_show(v, stored(), &mem, &text, NULL), HFD_OK);
    assert_int_equal(hfd_conditions_parse(text, &mem, &cs, NULL), HFD_OK);
    return cs;
}

/* The default is the stored text, byte for byte. */
static void ready_is_what_is_stored(void **state)
{
    hfd_slice in = stored(), out;

    (void)state;
    assert_int_equal(hfd_vocabulary_show(HFD_VOCABULARY_READY, in, &mem, &out, NULL), HFD_OK);
    assert_true(hfd_slice_eq(in, out));
}

/*
 * The later vocabulary renames the two aggregated conditions and their reasons, but not the
 * adapters'.
 */
static void reconciled_renames(void **state)
{
    const struct hfd_conditions cs = show(HFD_VOCABULARY_RECONCILED);

    (void)state;
    assert_int_equal(cs.count, 3);
    assert_true(hfd_slice_is(cs.items[0].type, "LastKnownReconciled"));
    assert_true(hfd_slice_is(cs.items[0].reason, "AllAdaptersReconciled"));
    assert_true(hfd_slice_is(cs.items[1].type, "Reconciled"));
    assert_true(hfd_slice_is(cs.items[1].reason, "ReconciledMissingAdapters"));
    assert_int_equal(cs.items[1].observed_generation, 2);
    assert_true(hfd_slice_is(cs.items[2].type, "DnsSuccessful"));
    assert_true(hfd_slice_is(cs.items[2].reason, "ResourceReady"));
}

/* BOTH shows each aggregated condition under both names. */
static void both_shows_all_four(void **state)
{
    const struct hfd_conditions cs = show(HFD_VOCABULARY_BOTH);

    (void)state;
    assert_int_equal(cs.count, 5);
    assert_non_null(hfd_condition_find(&cs, HFD_SLICE("Ready")));
    assert_non_null(hfd_condition_find(&cs, HFD_SLICE("Available")));
    assert_int_equal(hfd_condition_find(&cs, HFD_SLICE("Reconciled"))->status, HFD_STATUS_FALSE);
    assert_int_equal(hfd_condition_find(&cs, HFD_SLICE("LastKnownReconciled"))->status,
                     HFD_STATUS_TRUE);
}

/* Searches may use either name; the setting knows three words. */
static void names_are_found_again(void **state)
{
    enum hfd_vocabulary v;

    (void)state;
    assert_true(hfd_slice_is(hfd_vocabulary_stored(HFD_SLICE("Reconciled")), "Ready"));
    assert_true(hfd_slice_is(hfd_vocabulary_stored(HFD_SLICE("LastKnownReconciled")), "Available"));
    assert_true(hfd_slice_is(hfd_vocabulary_stored(HFD_SLICE("DnsSuccessful")), "DnsSuccessful"));
    assert_true(hfd_vocabulary_parse(HFD_SLICE("both"), &v));
    assert_int_equal(v, HFD_VOCABULARY_BOTH);
    assert_false(hfd_vocabulary_parse(HFD_SLICE("Both"), &v));
}

/* Later names and reasons become the stored ones; others stay unchanged. */
static void later_ones_are_restored(void **state)
{
    struct hfd_condition c = {.type = HFD_SLICE("LastKnownReconciled"),
                              .reason = HFD_SLICE("AdaptersMissingReports")};

    (void)state;
    assert_true(hfd_vocabulary_restore(&c));
    assert_true(hfd_slice_is(c.type, "Available"));
    assert_true(hfd_slice_is(c.reason, "AwaitingAdapters"));
    assert_false(hfd_vocabulary_restore(&c));
    c = (struct hfd_condition){.type = HFD_SLICE("Reconciled"), .reason = HFD_SLICE("Mine")};
    assert_true(hfd_vocabulary_restore(&c));
    assert_true(hfd_slice_is(c.type, "Ready"));
    assert_true(hfd_slice_is(c.reason, "Mine"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ready_is_what_is_stored, setup, teardown),
        cmocka_unit_test_setup_teardown(reconciled_renames, setup, teardown),
        cmocka_unit_test_setup_teardown(both_shows_all_four, setup, teardown),
        cmocka_unit_test_setup_teardown(names_are_found_again, setup, teardown),
        cmocka_unit_test_setup_teardown(later_ones_are_restored, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
