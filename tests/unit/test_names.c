/* HyperFleet's naming rules and its texts. */
#include "driver/fleet/fleet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define CLUSTER HFD_KIND_CLUSTER
#define NODEPOOL HFD_KIND_NODEPOOL
#define FIFTEEN "abcdefghijklmno"
#define FIFTY_THREE FIFTEEN FIFTEEN FIFTEEN "pqrstuvw"
#define PATTERN                                                                                    \
    "name must start and end with lowercase letter or number, and contain only lowercase "         \
    "letters, numbers, and hyphens"

/* clang-format off */
static const struct {
    enum hfd_kind kind;
    const char *name;
    const char *message; /* NULL = it is a name */
} cases[] = {
    {CLUSTER, "abc", NULL}, {CLUSTER, "a-b", NULL}, {CLUSTER, "a--b", NULL}, {CLUSTER, "0a9", NULL}, {CLUSTER, "123", NULL}, {CLUSTER, "z-0", NULL},
    {CLUSTER, FIFTY_THREE, NULL}, {NODEPOOL, FIFTEEN, NULL}, {CLUSTER, FIFTEEN "p", NULL}, {NODEPOOL, "abc", NULL},
    {CLUSTER, "", "name is required"}, {NODEPOOL, "", "name is required"},
    {CLUSTER, "a", "name must be at least 3 characters"}, {CLUSTER, "ab", "name must be at least 3 characters"}, {NODEPOOL, "A-", "name must be at least 3 characters"},
    {CLUSTER, FIFTY_THREE "x", "name must be at most 53 characters"}, {NODEPOOL, FIFTEEN "p", "name must be at most 15 characters"},
    {CLUSTER, FIFTY_THREE "_", "name must be at most 53 characters"},
    {CLUSTER, "-ab", PATTERN}, {CLUSTER, "ab-", PATTERN}, {CLUSTER, "---", PATTERN}, {CLUSTER, "aBc", PATTERN}, {CLUSTER, "a_c", PATTERN}, {CLUSTER, "a.c", PATTERN},
    {CLUSTER, "a c", PATTERN}, {CLUSTER, "a\nc", PATTERN}, {CLUSTER, "abc\n", PATTERN}, {CLUSTER, "a\xc3\xa9" "c", PATTERN}, {NODEPOOL, "Abc", PATTERN},
    {CLUSTER, "a{c", PATTERN}, {CLUSTER, "a`c", PATTERN}, {CLUSTER, "a/c", PATTERN}, {CLUSTER, "a:c", PATTERN},
};
/* clang-format on */

/* Each rule at its borders, with HyperFleet's text; length comes before pattern. */
static void names(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hfd_err err = {0};
        const hfd_rc rc = hfd_name_check(cases[i].kind, hfd_slice_of(cases[i].name), &err);

        if (cases[i].message == NULL) {
            assert_int_equal(rc, HFD_OK);
            continue;
        }
        assert_int_equal(rc, HFD_INVALID);
        assert_int_equal(err.rc, HFD_INVALID);
        assert_string_equal(err.field, "name");
        assert_string_equal(err.msg, cases[i].message);
    }
}

/* A NUL is a character that is not allowed; an empty name is no name. */
static void names_are_slices(void **state)
{
    (void)state;
    assert_int_equal(hfd_name_check(CLUSTER, HFD_SLICE("a\0c"), NULL), HFD_INVALID);
    assert_int_equal(hfd_name_check(CLUSTER, HFD_SLICE_NONE, NULL), HFD_INVALID);
    assert_int_equal(hfd_name_check(NODEPOOL, (hfd_slice){FIFTEEN "rest", 15}, NULL), HFD_OK);
}

/* The kinds as documents spell them. */
static void kinds(void **state)
{
    (void)state;
    assert_string_equal(hfd_kind_name(CLUSTER), "Cluster");
    assert_string_equal(hfd_kind_name(NODEPOOL), "NodePool");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(names_are_slices),
        cmocka_unit_test(kinds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
