#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/base/container.h"
#include "driver/base/err.h"

/* Every code has a name and a text, and a number outside the list has one as well. */
static void err_codes_have_names(void **state)
{
    (void)state;
    for (int rc = 0; rc < HFD_RC_COUNT; rc++) {
        assert_true(strlen(hfd_rc_name((hfd_rc)rc)) > 1);
        assert_true(strlen(hfd_rc_text((hfd_rc)rc)) > 1);
    }
    assert_string_equal(hfd_rc_name(HFD_NOT_FOUND), "NOT_FOUND");
    assert_string_equal(hfd_rc_text(HFD_BUSY), "too much work is queued");
    assert_string_equal(hfd_rc_name(HFD_RC_COUNT), "UNKNOWN");
    assert_string_equal(hfd_rc_text((hfd_rc)-1), "an unknown result");
}

/* A failure fills code and message, clears the field, and returns the code. */
static void err_fail_fills(void **state)
{
    struct hfd_err err = {.field = "old"};

    (void)state;
    assert_int_equal(hfd_fail(&err, HFD_CONFLICT, "cluster %s: %d", "abc", 7), HFD_CONFLICT);
    assert_int_equal(err.rc, HFD_CONFLICT);
    assert_string_equal(err.msg, "cluster abc: 7");
    assert_string_equal(err.field, "");
    assert_int_equal(hfd_fail_field(&err, HFD_INVALID, "a.b", "%s: wrong", "a.b"), HFD_INVALID);
    assert_string_equal(err.field, "a.b");
    assert_string_equal(err.msg, "a.b: wrong");
}

/* Callers that do not need the text pass NULL. */
static void err_fail_without_err(void **state)
{
    (void)state;
    assert_int_equal(hfd_fail(NULL, HFD_IO, "x"), HFD_IO);
    assert_int_equal(hfd_fail_field(NULL, HFD_LIMIT, "f", "x"), HFD_LIMIT);
}

/* The message of a lower layer can be part of the new one in the same struct. */
static void err_fail_wraps_itself(void **state)
{
    struct hfd_err err;

    (void)state;
    (void)hfd_fail_field(&err, HFD_IO, "file", "disk is full");
    (void)hfd_fail(&err, HFD_IO, "backup: %s", err.msg);
    assert_string_equal(err.msg, "backup: disk is full");
    (void)hfd_fail_field(&err, HFD_IO, "file", "disk is full");
    (void)hfd_fail_field(&err, HFD_INVALID, err.field, "%s: %s", err.field, err.msg);
    assert_string_equal(err.field, "file");
    assert_string_equal(err.msg, "file: disk is full");
}

/* A message that does not fit ends in "...", and no character is cut in two. */
static void err_fail_marks_cut(void **state)
{
    char ascii[400];
    char wide[400];
    struct hfd_err err;

    (void)state;
    memset(ascii, 'x', sizeof(ascii));
    ascii[sizeof(ascii) - 1] = '\0';
    (void)hfd_fail(&err, HFD_IO, "%s", ascii);
    assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
    assert_string_equal(err.msg + sizeof(err.msg) - 4, "...");

    for (size_t lead = 0; lead < 3; lead++) {
        memset(wide, 'x', lead);
        for (size_t i = lead; i + 3 < sizeof(wide); i += 3)
            memcpy(wide + i, "\xe2\x82\xac", 4);
        (void)hfd_fail_field(&err, HFD_IO, wide, "%s", wide);
        assert_string_equal(err.msg + strlen(err.msg) - 3, "...");
        assert_int_equal((strlen(err.msg) - 3 - lead) % 3, 0);
        assert_string_equal(err.field + strlen(err.field) - 3, "...");
        assert_int_equal((strlen(err.field) - 3 - lead) % 3, 0);
    }
}

/* A lack of memory has one code and one form of text; the text is optional, as everywhere. */
static void err_nomem_says_what(void **state)
{
    struct hfd_err err = {.field = "old"};

    (void)state;
    assert_int_equal(hfd_fail_nomem(&err, "copy the request"), HFD_NOMEM);
    assert_int_equal(err.rc, HFD_NOMEM);
    assert_string_equal(err.msg, "out of memory: copy the request");
    assert_string_equal(err.field, "");
    assert_int_equal(hfd_fail_nomem(NULL, "copy the request"), HFD_NOMEM);
}

/* A pointer to any member leads to the struct that holds it. */
static void container_of_member(void **state)
{
    struct node {
        struct node *next;
    };
    struct message {
        int first;
        struct node node;
    } m = {.first = 7};
    struct node *node = &m.node;

    (void)state;
    assert_ptr_equal(HFD_CONTAINER_OF(node, struct message, node), &m);
    assert_int_equal(HFD_CONTAINER_OF(node, struct message, node)->first, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(err_codes_have_names), cmocka_unit_test(err_fail_fills),
        cmocka_unit_test(err_fail_without_err), cmocka_unit_test(err_fail_wraps_itself),
        cmocka_unit_test(err_fail_marks_cut),   cmocka_unit_test(err_nomem_says_what),
        cmocka_unit_test(container_of_member),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
