#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/base/base.h"
#include "driver/base/secret.h"

/* New secret memory is zero and writable, and after fini nothing points to it. */
static void secret_starts_zero_and_ends_empty(void **state)
{
    struct hfd_secret s;

    (void)state;
    assert_int_equal(hfd_secret_init(&s, 100, NULL), HFD_OK);
    assert_int_equal(s.len, 100);
    for (size_t i = 0; i < s.len; i++)
        assert_int_equal(s.p[i], 0);
    memset(s.p, 0xaa, s.len);
    hfd_secret_fini(&s);
    assert_null(s.p);
    assert_int_equal(s.len, 0);
    hfd_secret_fini(&s);
}

/* More memory than there is: an error, and an empty secret. */
static void secret_out_of_memory(void **state)
{
    struct hfd_err err;
    struct hfd_secret s;

    (void)state;
    assert_int_equal(hfd_secret_init(&s, SIZE_MAX - 3, &err), HFD_NOMEM);
    assert_null(s.p);
    assert_int_equal(s.len, 0);
}

static int setup(void **state)
{
    (void)state;
    return hfd_base_init(NULL) == HFD_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secret_starts_zero_and_ends_empty),
        cmocka_unit_test(secret_out_of_memory),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
