#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "driver/base/metrics.h"
#include "driver/base/trouble.h"

#define S(text) HFD_SLICE(text)

static int end_all(void **state)
{
    (void)state;
    for (int kind = 0; kind < HFD_TROUBLE_KINDS; kind++)
        hfd_trouble_end_before((enum hfd_trouble_kind)kind, INT64_MAX);
    return 0;
}

static bool metric_is(const char *kind, const char *name, int64_t value)
{
    return hfd_metric_value(HFD_METRIC_PROBLEM, HFD_LABELS(kind, name)) == value;
}

/* A problem keeps its beginning, takes new words, and is one entry until it ends. */
static void a_problem_begins_and_ends(void **state)
{
    struct hfd_trouble list[HFD_TROUBLES_MAX];

    (void)state;
    assert_true(hfd_trouble_note(HFD_TROUBLE_REMOTE, S(""), 5, S("refused")));
    assert_false(hfd_trouble_note(HFD_TROUBLE_REMOTE, S(""), 9, S("timed out")));
    assert_int_equal(hfd_troubles_copy(list), 1);
    assert_int_equal(list[0].since_us, 5);
    assert_int_equal(list[0].noted_us, 9);
    assert_string_equal(list[0].words, "timed out");
    assert_true(metric_is("remote", "", 1));
    assert_false(hfd_trouble_end(HFD_TROUBLE_REMOTE, S("other")));
    assert_true(hfd_trouble_end(HFD_TROUBLE_REMOTE, S("")));
    assert_false(hfd_trouble_end(HFD_TROUBLE_REMOTE, S("")));
    assert_true(metric_is("remote", "", 0));
    assert_int_equal(hfd_troubles_copy(list), 0);
}

/* The order is that of the table, then that of the beginnings. */
static void the_gravest_kind_is_first(void **state)
{
    struct hfd_trouble list[HFD_TROUBLES_MAX];

    (void)state;
    (void)hfd_trouble_note(HFD_TROUBLE_SILENT, S("dns"), 1, S("a"));
    (void)hfd_trouble_note(HFD_TROUBLE_SEALING, S(""), 2, S("b"));
    (void)hfd_trouble_note(HFD_TROUBLE_SILENT, S("pull"), 3, S("c"));
    (void)hfd_trouble_note(HFD_TROUBLE_STORE, S(""), 4, S("d"));
    assert_int_equal(hfd_troubles_copy(list), 4);
    assert_int_equal(list[0].kind, HFD_TROUBLE_STORE);
    assert_string_equal(list[1].name, "dns");
    assert_string_equal(list[2].name, "pull");
    assert_int_equal(list[3].kind, HFD_TROUBLE_SEALING);
}

/* Those that were noted lately stay. */
static void old_ones_end(void **state)
{
    struct hfd_trouble list[HFD_TROUBLES_MAX];

    (void)state;
    (void)hfd_trouble_note(HFD_TROUBLE_REPLICA, S("a"), 10, S("x"));
    (void)hfd_trouble_note(HFD_TROUBLE_REPLICA, S("b"), 10, S("x"));
    (void)hfd_trouble_note(HFD_TROUBLE_REPLICA, S("b"), 20, S("x"));
    hfd_trouble_end_before(HFD_TROUBLE_REPLICA, 20);
    assert_int_equal(hfd_troubles_copy(list), 1);
    assert_string_equal(list[0].name, "b");
    assert_true(metric_is("replica", "a", 0));
}

/* A silent adapter does no harm while nothing waits; a stranger never does; all others do. */
static void harm_is_told_apart(void **state)
{
    struct hfd_trouble list[HFD_TROUBLES_MAX];
    const hfd_slice dns = S("dns");

    (void)state;
    (void)hfd_trouble_note(HFD_TROUBLE_SILENT, dns, 1, S("a"));
    (void)hfd_trouble_note(HFD_TROUBLE_STRANGER, S("dsn"), 1, S("a"));
    assert_false(hfd_troubles_degrade(list, hfd_troubles_copy(list)));
    hfd_trouble_set_waiting(HFD_TROUBLE_SILENT, &dns, 3);
    assert_true(hfd_troubles_degrade(list, hfd_troubles_copy(list)));
    hfd_trouble_set_waiting(HFD_TROUBLE_SILENT, NULL, 0);
    assert_false(hfd_troubles_degrade(list, hfd_troubles_copy(list)));
    (void)hfd_trouble_note(HFD_TROUBLE_DISK, S(""), 1, S("a"));
    assert_true(hfd_troubles_degrade(list, hfd_troubles_copy(list)));
}

/* A long text is cut between two characters; more problems than there is room for are left out. */
static void texts_and_the_list_are_bounded(void **state)
{
    struct hfd_trouble list[HFD_TROUBLES_MAX];
    char words[400], name[16];

    (void)state;
    for (size_t i = 0; i + 1 < sizeof(words); i += 2)
        memcpy(words + i, "\xc3\xa4", 2);
    (void)hfd_trouble_note(HFD_TROUBLE_DISK, S(""), 1, (hfd_slice){words, sizeof(words)});
    assert_int_equal(hfd_troubles_copy(list), 1);
    assert_int_equal(strlen(list[0].words), sizeof(list[0].words) - 2);
    for (int i = 0; i < HFD_TROUBLES_MAX + 9; i++) {
        (void)snprintf(name, sizeof(name), "n%d", i);
        (void)hfd_trouble_note(HFD_TROUBLE_STRANGER, hfd_slice_of(name), 1, S("a"));
    }
    assert_int_equal(hfd_troubles_copy(list), HFD_TROUBLES_MAX);
    assert_false(hfd_trouble_end(HFD_TROUBLE_STRANGER, S("n70")));
}

/* The document names kind, name, beginning, words, what waits, and the runbook. */
static void the_list_is_a_document(void **state)
{
    struct hfd_trouble list[HFD_TROUBLES_MAX];
    const hfd_slice east = S("east");
    struct hfd_buf b;

    (void)state;
    (void)hfd_trouble_note(HFD_TROUBLE_MANAGEMENT, east, 0, S("say \"no\""));
    hfd_trouble_set_waiting(HFD_TROUBLE_MANAGEMENT, &east, 7);
    hfd_buf_init(&b, 4096);
    hfd_troubles_json(list, hfd_troubles_copy(list), &b);
    hfd_buf_addc(&b, '\0');
    assert_int_equal(b.rc, HFD_OK);
    assert_string_equal(b.p, "[{\"kind\":\"management_cluster\",\"name\":\"east\","
                             "\"since\":\"1970-01-01T00:00:00Z\",\"message\":\"say \\\"no\\\"\","
                             "\"waiting\":7,"
                             "\"runbook\":\"/docs/runbook.html#hyperfleetdrivermanagementdown\"}]");
    hfd_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_problem_begins_and_ends, end_all),
        cmocka_unit_test_teardown(the_gravest_kind_is_first, end_all),
        cmocka_unit_test_teardown(old_ones_end, end_all),
        cmocka_unit_test_teardown(harm_is_told_apart, end_all),
        cmocka_unit_test_teardown(texts_and_the_list_are_bounded, end_all),
        cmocka_unit_test_teardown(the_list_is_a_document, end_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
