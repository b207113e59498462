/* Deletion protection: what an order says, the text that keeps it, and what protects by it. */
#include "driver/core/protect.h"

#include "driver/base/base.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define S HFD_SLICE

/* The stored text, and by what it protects with and without the setting. */
static void what_protects(void **state)
{
    static const struct {
        const char *text;
        bool ordered;
        const char *by, *without;
    } rows[] = {
        {"", false, NULL, NULL}, /* not known */
        {"no\n", false, NULL, NULL},
        {"yes\n", true, "protect", "protect"},
        {"yes\nenvironment=production\n", true, "protect", "protect"},
        {"no\nenvironment=production\n", false, "environment=production", NULL},
        {"no\ntier=gold\nenvironment=production\n", false, "environment=production", NULL},
        {"no\nteam=blue\ntier=gold\n", false, "tier=gold", NULL},
        {"no\na=\n", false, "a=", NULL},
        {"no\na=b\n", false, NULL, NULL},
        {"no\nenvironment=productio\n", false, NULL, NULL},
        {"no\nenvironment=production2\n", false, NULL, NULL},
        {"no\nxenvironment=production\n", false, NULL, NULL},
        {"no\nenvironment=Production\n", false, NULL, NULL},
        {"no\ntier=gold", false, "tier=gold", NULL}, /* a cut end */
        {"zes\n", true, "protect", "protect"},       /* damage protects */
        {"nope\n", true, "protect", "protect"},
        {"n", true, "protect", "protect"},
        {"\n", true, "protect", "protect"},
    };
    static const hfd_slice labels[] = {S("environment=production"), S("tier=gold"), S("a=")};
    static struct hfd_driver with = {.protect_labels = labels, .protect_label_count = 3}, without;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const hfd_slice text = hfd_slice_of(rows[i].text);
        const hfd_slice by = hfd_protect_by(&with, text), none = hfd_protect_by(&without, text);

        print_message("row %zu\n", i);
        assert_int_equal(hfd_protect_is_ordered(text), rows[i].ordered);
        assert_int_equal(by.p != NULL, rows[i].by != NULL);
        assert_true(by.p == NULL || hfd_slice_is(by, rows[i].by));
        assert_int_equal(none.p != NULL, rows[i].without != NULL);
        assert_true(none.p == NULL || hfd_slice_is(none, rows[i].without));
    }
}

/* Labels of several parts, each once; one with a line end is left out. */
static void text_of_an_order(void **state)
{
    static const struct {
        bool protect;
        const char *parts[2];
        const char *want;
    } rows[] = {
        {false, {"{}", "{}"}, "no\n"},
        {true, {"{}", "{}"}, "yes\n"},
        {false, {"{\"a\":\"b\"}", "{}"}, "no\na=b\n"},
        {true, {"{\"a\":\"b\"}", "{\"a\":\"b\",\"c\":\"\"}"}, "yes\na=b\nc=\n"},
        {false, {"{\"a\":\"b\\nyes\",\"c\\nk\":\"e\",\"f\":\"g\"}", "{}"}, "no\nf=g\n"},
    };
    struct hfd_arena mem;

    (void)state;
    hfd_arena_init(&mem, 1 << 16);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *set = json_object();
        hfd_slice text;

        print_message("row %zu\n", i);
        for (size_t k = 0; k < 2; k++) {
            json_t *labels = json_loads(rows[i].parts[k], 0, NULL);

            assert_non_null(labels);
            assert_true(hfd_protect_note(set, labels));
            json_decref(labels);
        }
        assert_true(hfd_protect_note(set, NULL));
        assert_int_equal(hfd_protect_format(rows[i].protect, set, &mem, &text, NULL), HFD_OK);
        if (!hfd_slice_is(text, rows[i].want))
            fail_msg("got %.*s", HFD_SLICE_FMT(text));
        json_decref(set);
    }
    hfd_arena_fini(&mem);
}

/* protect is no part of the digest, and counts only as a boolean. */
static void order_with_protect(void **state)
{
    static const hfd_slice types[] = {S("abc")};
    const struct hfd_input_rules rules = {.cluster_types = types, .cluster_type_count = 1};
    static const struct {
        const char *values, *want; /* NULL = refused */
    } rows[] = {
        {"{}", "no\n"},
        {"{\"protect\":null}", "no\n"},
        {"{\"protect\":false}", "no\n"},
        {"{\"protect\":true}", "yes\n"},
        {"{\"protect\":\"true\"}", NULL},
        {"{\"protect\":1}", NULL},
        {"{\"protect\":{}}", NULL},
    };
    struct hfd_arena mem;
    hfd_slice canonical = S("");

    (void)state;
    hfd_arena_init(&mem, 1 << 20);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const hfd_slice body =
            hfd_arena_printf(&mem, "{\"type\":\"abc\",\"driver\":{\"values\":%s}}", rows[i].values);
        struct hfd_input in;
        struct hfd_err err;
        const hfd_rc rc =
            hfd_input_parse(&(struct hfd_input_source){&rules, S("g"), 0, body}, &mem, &in, &err);

        print_message("%s\n", rows[i].values);
        assert_int_equal(rc, rows[i].want != NULL ? HFD_OK : HFD_INVALID);
        if (rc != HFD_OK) {
            assert_string_equal(err.field, "driver.values.protect");
            continue;
        }
        assert_true(hfd_slice_is(in.protect, rows[i].want));
        assert_true(i == 0 || hfd_slice_eq(in.canonical, canonical));
        canonical = in.canonical;
    }
    hfd_arena_fini(&mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_protects),
        cmocka_unit_test(text_of_an_order),
        cmocka_unit_test(order_with_protect),
    };

    return hfd_base_init(NULL) == HFD_OK ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
