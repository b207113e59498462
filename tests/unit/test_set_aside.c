/* driver/backend/remote/work.c: work that is left alone for a while. */
#include "driver/backend/remote/work.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* Work is set aside until its time, and only that work. */
static void work_comes_back_at_its_time(void **state)
{
    struct hfd_skip_list a = {.count = 0};

    (void)state;
    assert_true(hfd_skip_list_next_us(&a) == INT64_MAX);
    assert_true(hfd_skip_list_add(&a, HFD_SLICE("res-1"), 100));
    assert_true(hfd_skip_list_add(&a, HFD_SLICE(""), 50)); /* the lists of all in progress */
    assert_true(hfd_skip_list_has(&a, HFD_SLICE("res-1")));
    assert_true(hfd_skip_list_has(&a, HFD_SLICE("")));
    assert_false(hfd_skip_list_has(&a, HFD_SLICE("res-")));
    assert_int_equal(hfd_skip_list_next_us(&a), 50);
    assert_false(hfd_skip_list_expire(&a, 49));
    assert_true(hfd_skip_list_expire(&a, 50));
    assert_false(hfd_skip_list_has(&a, HFD_SLICE("")));
    assert_true(hfd_skip_list_has(&a, HFD_SLICE("res-1")));
    assert_true(hfd_skip_list_expire(&a, 1000));
    assert_false(hfd_skip_list_has(&a, HFD_SLICE("res-1")));
    assert_int_equal(a.count, 0);
}

/* There is room for a fixed number; after that, and for a name that is too long, it refuses. */
static void room_is_bounded(void **state)
{
    static const char longest[HFD_ASKED_ID_MAX + 1];
    struct hfd_skip_list a = {.count = 0};
    char name[16];

    (void)state;
    assert_false(hfd_skip_list_add(&a, (hfd_slice){longest, HFD_ASKED_ID_MAX + 1}, 1));
    assert_true(hfd_skip_list_add(&a, (hfd_slice){longest, HFD_ASKED_ID_MAX}, 1));
    for (int i = 1; i < HFD_SKIP_LIST_MAX; i++) {
        (void)snprintf(name, sizeof(name), "res-%d", i);
        assert_true(hfd_skip_list_add(&a, hfd_slice_of(name), i));
    }
    assert_false(hfd_skip_list_add(&a, HFD_SLICE("one-more"), 1));
    assert_true(hfd_skip_list_expire(&a, HFD_SKIP_LIST_MAX - 2));
    assert_int_equal(a.count, 1);
    assert_true(hfd_skip_list_has(&a, hfd_slice_of(name)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_comes_back_at_its_time),
        cmocka_unit_test(room_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
