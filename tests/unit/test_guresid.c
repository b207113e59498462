/* The GUResID: the syntax of a Kubernetes label value. */
#include "driver/core/driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TWENTY "abcdefghijABCDEFGHIJ"
#define SIXTY TWENTY TWENTY TWENTY

/* Ids that the pattern accepts, at its borders. */
static void ids(void **state)
{
    /* clang-format off */
    static const char *const good[] = {
        "a", "Z", "0", "9", "ab", "a.b", "a_b", "a-b", "a..b", "a-_.b", "3c0a194814284345e330544f88798e83992468e2",
        SIXTY "xyz", SIXTY "--z", "0.0.0", "A9",
    };
    /* clang-format on */

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_int_equal(hfd_guresid_check(hfd_slice_of(good[i]), NULL), HFD_OK);
    assert_int_equal(strlen(SIXTY "xyz"), HFD_GURESID_MAX);
}

/* Texts that it refuses, with the field and the rule, and without the text. */
static void not_ids(void **state)
{
    /* clang-format off */
    static const char *const bad[] = {
        "", ".", "..", "-", "_", "-a", "a-", ".a", "a.", "_a", "a_", "a b", "a/b", "a\\b", "a%2Fb", "a:b", "a@b", "a[b", "a`b", "a{b",
        "a,b", "a^b", "a\nb", "a\n", "\xc3\xa9", "a\xc3\xa9z", SIXTY "xyz0", SIXTY "xy-",
    };
    /* clang-format on */

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct hfd_err err = {0};

        assert_int_equal(hfd_guresid_check(hfd_slice_of(bad[i]), &err), HFD_INVALID);
        assert_int_equal(err.rc, HFD_INVALID);
        assert_string_equal(err.field, "GUResID");
        assert_string_equal(err.msg, "GUResID must be 1 to 63 letters, digits, '-', '_' or '.', "
                                     "beginning and ending with a letter or digit");
    }
    assert_int_equal(hfd_guresid_check(HFD_SLICE("a\0b"), NULL), HFD_INVALID);
    assert_int_equal(hfd_guresid_check(HFD_SLICE_NONE, NULL), HFD_INVALID);
    assert_int_equal(hfd_guresid_check((hfd_slice){NULL, SIZE_MAX}, NULL), HFD_INVALID);
}

/* Each single byte, alone and between two letters. */
static void every_byte(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        const char text[3] = {'x', (char)c, 'y'};
        const bool alnum =
            (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        const bool within = alnum || c == '.' || c == '_' || c == '-';

        assert_int_equal(hfd_guresid_check((hfd_slice){text + 1, 1}, NULL),
                         alnum ? HFD_OK : HFD_INVALID);
        assert_int_equal(hfd_guresid_check((hfd_slice){text, 3}, NULL),
                         within ? HFD_OK : HFD_INVALID);
        assert_int_equal(hfd_guresid_check((hfd_slice){text, 2}, NULL),
                         alnum ? HFD_OK : HFD_INVALID);
        assert_int_equal(hfd_guresid_check((hfd_slice){text + 1, 2}, NULL),
                         alnum ? HFD_OK : HFD_INVALID);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids),
        cmocka_unit_test(not_ids),
        cmocka_unit_test(every_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
