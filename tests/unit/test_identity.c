/* The text of created_by. Source: driver/core/driver.h. */
#include "driver/core/driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define SYSTEM HFD_IDENTITY_SYSTEM
#define A50 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define A237 A50 A50 A50 A50 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const struct {
    const char *given, *made;
} rows[] = {
    {"jane@example.com", "jane@example.com"},
    {"jane", "jane@hyperfleet.local"},
    {" \t jane ", "jane@hyperfleet.local"},
    {"system:serviceaccount:ns:x", "system:serviceaccount:ns:x@hyperfleet.local"},
    {"", SYSTEM},
    {"   ", SYSTEM},
    {"@", SYSTEM},
    {"@example.com", SYSTEM},
    {"jane@", SYSTEM},
    {"a@b@c", SYSTEM},
    {"jane doe", SYSTEM},
    {"jane\x01@example.com", SYSTEM},
    {"j\xc3\xa4ne@example.com", SYSTEM},
    {"jane\x7f", SYSTEM},
    /* 254 bytes are the longest, with the domain where that is added. */
    {A237, A237 "@hyperfleet.local"},
    {A237 "a", SYSTEM},
    {A237 "@hyperfleet.local", A237 "@hyperfleet.local"},
    {A237 "@hyperfleet.locals", SYSTEM},
};

/* Each value of the header becomes what the table says. */
static void identity_follows_the_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hfd_arena mem;
        struct hfd_err err;
        hfd_slice out;

        hfd_arena_init(&mem, 4096);
        assert_int_equal(hfd_identity_make(hfd_slice_of(rows[i].given), &mem, &out, &err), HFD_OK);
        assert_int_equal(out.len, strlen(rows[i].made));
        assert_memory_equal(out.p, rows[i].made, out.len);
        hfd_arena_fini(&mem);
    }
}

/* No header at all is the system. */
static void identity_of_nobody_is_the_system(void **state)
{
    struct hfd_arena mem;
    struct hfd_err err;
    hfd_slice out;

    (void)state;
    hfd_arena_init(&mem, 4096);
    assert_int_equal(hfd_identity_make(HFD_SLICE_NONE, &mem, &out, &err), HFD_OK);
    assert_true(hfd_slice_is(out, SYSTEM));
    hfd_arena_fini(&mem);
}

/* Without memory the request fails; it is not written under another name. */
static void identity_without_memory_fails(void **state)
{
    static const char *const given[] = {"jane", "jane@example.com"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct hfd_arena mem;
        struct hfd_err err;
        hfd_slice out;

        hfd_arena_init(&mem, 4);
        assert_int_equal(hfd_identity_make(hfd_slice_of(given[i]), &mem, &out, &err), HFD_NOMEM);
        hfd_arena_fini(&mem);
    }
}

/* Names of this server's own, in each spelling; others are free. */
static void identity_knows_our_own(void **state)
{
    static const char *const ours[] = {"local@hyperfleet.local",
                                       "anyone@hyperfleet.local",
                                       "a@HyperFleet.LOCAL",
                                       "a@hyperfleet.local.",
                                       "a@hyperfleet.local..",
                                       " a@hyperfleet.local\t",
                                       "a@ hyperfleet.local .",
                                       "\"a b\"@hyperfleet.local",
                                       "a@b@hyperfleet.local",
                                       "@hyperfleet.local",
                                       "system",
                                       "Local",
                                       " operator ",
                                       "operator."};
    static const char *const others[] = {"",
                                         "jane",
                                         "jane@example.com",
                                         "jane@hyperfleet.localhost",
                                         "jane@x.hyperfleet.local",
                                         "hyperfleet.local",
                                         "hyperfleet.local@example.com",
                                         "locals",
                                         "system@example.com"};

    (void)state;
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        if (!hfd_identity_is_ours(hfd_slice_of(ours[i])))
            fail_msg("%s is ours", ours[i]);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (hfd_identity_is_ours(hfd_slice_of(others[i])))
            fail_msg("%s is not ours", others[i]);
    assert_false(hfd_identity_is_ours(HFD_SLICE_NONE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identity_follows_the_table),
        cmocka_unit_test(identity_of_nobody_is_the_system),
        cmocka_unit_test(identity_without_memory_fails),
        cmocka_unit_test(identity_knows_our_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
