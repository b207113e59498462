/* Entity tags: how they are made, lists of them, and the rules of If-Match and If-None-Match. */
#include "driver/base/etag.h"

#include "driver/base/base.h"
#include "driver/base/slice.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define S HFD_SLICE
#define TAG "\"t\""

/* Equal texts have equal tags; where one text ends and the next begins counts. */
static void tags_are_made(void **state)
{
    const hfd_slice texts[][2] = {{S("ab"), S("c")}, {S("a"), S("bc")}, {S("abc"), S("")},
                                  {S(""), S("abc")}, {S("ab"), S("d")}, {HFD_SLICE_NONE, S("abc")}};
    hfd_slice tags[6], again;
    struct hfd_arena mem;

    (void)state;
    hfd_arena_init(&mem, 1 << 16);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(hfd_etag_make(texts[i], 2, &mem, &tags[i], NULL), HFD_OK);
        assert_int_equal(hfd_etag_make(texts[i], 2, &mem, &again, NULL), HFD_OK);
        assert_true(hfd_slice_eq(tags[i], again));
        assert_int_equal(tags[i].len, 34);
        assert_true(tags[i].p[0] == '"' && tags[i].p[33] == '"');
        for (size_t k = 0; k < i; k++)
            assert_int_equal(hfd_slice_eq(tags[i], tags[k]), i == 5 && k == 3);
    }
    hfd_arena_fini(&mem);
    hfd_arena_init(&mem, 0);
    assert_int_equal(hfd_etag_make(texts[0], 2, &mem, &again, NULL), HFD_NOMEM);
    hfd_arena_fini(&mem);
}

/* Which texts are lists, and which comparison finds "t" in them. */
static void lists_are_read(void **state)
{
    static const struct {
        const char *text;
        bool is_list, weak, strong;
    } rows[] = {
        {"*", true, true, true},
        {" * ", true, true, true},
        {TAG, true, true, true},
        {" " TAG "\t", true, true, true},
        {"W/" TAG, true, true, false},
        {"\"x\"," TAG, true, true, true},
        {"\"x\" , W/" TAG, true, true, false},
        {"W/" TAG "," TAG, true, true, true},
        {",, " TAG " ,", true, true, true},
        {"\"\"", true, false, false},
        {"\"t,\"", true, false, false},
        {"\"a,\"," TAG, true, true, true},
        {"\"\x80\xff!\"", true, false, false},
        {"\"T\"", true, false, false},
        {"", false, false, false},
        {",", false, false, false},
        {"t", false, false, false},
        {"'t'", false, false, false},
        {"w/" TAG, false, false, false},
        {"W/", false, false, false},
        {"W/*", false, false, false},
        {"W /" TAG, false, false, false},
        {"\"", false, false, false},
        {"\"t", false, false, false},
        {"\"a b\"", false, false, false},
        {"\"a\x7f\"", false, false, false},
        {"\"a\tb\"", false, false, false},
        {"**", false, false, false},
        {"*, \"x\"", false, false, false},
        {"\"x\", *", false, false, false},
        {"\"x\" " TAG, false, false, false},
        {"x" TAG, false, false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const hfd_slice text = hfd_slice_of(rows[i].text);
        const struct hfd_precondition m = {.if_match = text}, n = {.if_none_match = text};
        const struct hfd_precondition_on is = {true, S(TAG), S("")};
        const hfd_rc read = rows[i].is_list ? HFD_OK : HFD_BAD_REQUEST;
        struct hfd_err err = {.msg = ""};

        print_message("%s\n", rows[i].text);
        assert_int_equal(hfd_etag_matches(text, S(TAG)), rows[i].weak);
        if (text.len == 0)
            continue;
        assert_int_equal(hfd_precondition_parse(&m, &err), read);
        assert_true(read == HFD_OK || strncmp(err.msg, "If-Match: ", 10) == 0);
        assert_int_equal(hfd_precondition_parse(&n, &err), read);
        assert_true(read == HFD_OK || strncmp(err.msg, "If-None-Match: ", 15) == 0);
        assert_int_equal(hfd_precondition_check(&m, &is, &err),
                         rows[i].strong ? HFD_OK : HFD_PRECONDITION);
        assert_int_equal(hfd_precondition_check(&n, &is, &err),
                         rows[i].weak ? HFD_PRECONDITION : HFD_OK);
    }
    assert_false(hfd_etag_matches(HFD_SLICE_NONE, S(TAG)));
    assert_false(hfd_etag_matches(S("\"\""), S("")));
}

/* The rules: what is there, what the request expects, and if it goes on. */
static void preconditions_are_checked(void **state)
{
    static const struct {
        const char *if_match, *if_none_match;
        bool exists;
        const char *etag;
        hfd_rc want;
    } rows[] = {
        {"", "", false, "", HFD_OK},
        {"", "", true, TAG, HFD_OK},
        {"*", "", false, "", HFD_PRECONDITION},
        {"*", "", true, "", HFD_OK},
        {"*", "", true, TAG, HFD_OK},
        {TAG, "", false, "", HFD_PRECONDITION},
        {TAG, "", true, "", HFD_PRECONDITION},
        {TAG, "", true, TAG, HFD_OK},
        {"\"x\"", "", true, TAG, HFD_PRECONDITION},
        {"\"generation-3\"", "", true, TAG, HFD_OK},
        {"\"generation-2\"", "", true, TAG, HFD_PRECONDITION},
        {"W/\"generation-3\"", "", true, TAG, HFD_PRECONDITION},
        {"", "*", false, "", HFD_OK},
        {"", "*", true, "", HFD_PRECONDITION},
        {"", "*", true, TAG, HFD_PRECONDITION},
        {"", TAG, false, "", HFD_OK},
        {"", TAG, true, "", HFD_OK},
        {"", TAG, true, TAG, HFD_PRECONDITION},
        {"", "\"x\"", true, TAG, HFD_OK},
        {"", "\"generation-3\"", true, TAG, HFD_OK},
        {TAG, "*", true, TAG, HFD_PRECONDITION},
        {TAG, "\"x\"", true, TAG, HFD_OK},
        {"\"x\"", "\"x\"", true, TAG, HFD_PRECONDITION},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct hfd_precondition m = {hfd_slice_of(rows[i].if_match),
                                           hfd_slice_of(rows[i].if_none_match)};
        const struct hfd_precondition_on is = {rows[i].exists, hfd_slice_of(rows[i].etag),
                                               rows[i].etag[0] != '\0' ? S("\"generation-3\"")
                                                                       : S("")};

        print_message("row %zu\n", i);
        assert_int_equal(hfd_precondition_check(&m, &is, NULL), rows[i].want);
    }
}

/* No preconditions have no digest; others have different ones. */
static void digests_differ(void **state)
{
    const struct hfd_precondition all[] = {{S(""), S("")},   {S("*"), S("")}, {S(""), S("*")},
                                           {S(TAG), S("")},  {S(""), S(TAG)}, {S("*"), S("*")},
                                           {S(TAG), S("*")}, {S("*"), S(TAG)}};
    hfd_slice digests[8];
    struct hfd_arena mem;

    (void)state;
    hfd_arena_init(&mem, 1 << 16);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(hfd_precondition_digest(&all[i], &mem, &digests[i], NULL), HFD_OK);
        assert_int_equal(digests[i].len, i == 0 ? 0 : 34);
        for (size_t k = 0; k < i; k++)
            assert_false(hfd_slice_eq(digests[i], digests[k]));
    }
    hfd_arena_fini(&mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tags_are_made),
        cmocka_unit_test(lists_are_read),
        cmocka_unit_test(preconditions_are_checked),
        cmocka_unit_test(digests_differ),
    };

    return hfd_base_init(NULL) == HFD_OK ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
