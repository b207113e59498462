/* The two vocabularies of condition names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "driver/base/clock.h"
#include "driver/fleet/condition.h"

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
        {.type = HFD_SLICE("Available"), .status = HFD_STATUS_TRUE, .observed_generation = 1},
        {.type = HFD_SLICE("Ready"), .status = HFD_STATUS_FALSE, .observed_generation = 2},
        {.type = HFD_SLICE("LastKnownReconciled"), .status = HFD_STATUS_FALSE},
        {.type = HFD_SLICE("Reconciled"),
         .status = HFD_STATUS_TRUE,
         .reason = HFD_SLICE("ReconciledAll"),
         .observed_generation = 2},
        {.type = HFD_SLICE("DnsSuccessful"),
         .status = HFD_STATUS_TRUE,
         .reason = HFD_SLICE("ResourceReady"),
         .observed_generation = 1},
    };
    const struct hfd_conditions cs = {items, 5};
    struct hfd_buf b;
    hfd_slice out;

    hfd_buf_init(&b, 4096);
    hfd_conditions_format(&b, &cs, false);
    out = hfd_arena_dup(&mem, hfd_buf_slice(&b));
    hfd_buf_fini(&b);
    return out;
}

static void assert_shown(enum hfd_vocabulary v, const char *const *types, size_t count)
{
    struct hfd_conditions cs;
    hfd_slice text;

    assert_int_equal(hfd_vocabulary_show(v, stored(), &mem, &text, NULL), HFD_OK);
    assert_int_equal(hfd_conditions_parse(text, &mem, &cs, NULL), HFD_OK);
    assert_int_equal(cs.count, count);
    for (size_t i = 0; i < count; i++)
        assert_true(hfd_slice_is(cs.items[i].type, types[i]));
    assert_true(hfd_slice_is(cs.items[count - 1].reason, "ResourceReady"));
}

/* The default is the stored text, byte for byte: all four, and the adapters'. */
static void both_is_what_is_stored(void **state)
{
    hfd_slice in = stored(), out;

    (void)state;
    assert_int_equal(hfd_vocabulary_show(HFD_VOCABULARY_BOTH, in, &mem, &out, NULL), HFD_OK);
    assert_true(hfd_slice_eq(in, out));
}

/* The other two leave out what the other version of HyperFleet has. */
static void one_leaves_out_the_other(void **state)
{
    static const char *const first[] = {"Available", "Ready", "DnsSuccessful"};
    static const char *const later[] = {"LastKnownReconciled", "Reconciled", "DnsSuccessful"};

    (void)state;
    assert_shown(HFD_VOCABULARY_READY, first, 3);
    assert_shown(HFD_VOCABULARY_RECONCILED, later, 3);
}

/* The setting knows three words. */
static void names_are_found_again(void **state)
{
    enum hfd_vocabulary v;

    (void)state;
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
        cmocka_unit_test_setup_teardown(both_is_what_is_stored, setup, teardown),
        cmocka_unit_test_setup_teardown(one_leaves_out_the_other, setup, teardown),
        cmocka_unit_test_setup_teardown(names_are_found_again, setup, teardown),
        cmocka_unit_test_setup_teardown(later_ones_are_restored, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
