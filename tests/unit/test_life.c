/*
 * Every arrow of the life cycle, and every cell of both decision tables of driver/core/README.md.
 */
#include "driver/core/life.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* In the order of enum hfd_state. */
static const char *const names[] = {"absent", "creating", "updating",
                                    "ready",  "failed",   "deleting"};

/* The states have the names that logs, metrics and answers use. */
static void state_names(void **state)
{
    (void)state;
    assert_int_equal(HFD_STATE_COUNT, sizeof(names) / sizeof(names[0]));
    for (unsigned i = 0; i < HFD_STATE_COUNT; i++)
        assert_string_equal(hfd_state_name((enum hfd_state)i), names[i]);
}

/* Exactly the arrows of the picture in life.h exist. */
static void arrows(void **state)
{
    static const char *const arrows_there[] = {
        "absent>creating", "creating>ready",  "creating>failed",   "creating>deleting",
        "updating>ready",  "updating>failed", "updating>deleting", "ready>updating",
        "ready>failed",    "ready>deleting",  "failed>creating",   "failed>updating",
        "failed>deleting", "deleting>failed", "deleting>absent",
    };
    size_t found = 0;

    (void)state;
    for (unsigned from = 0; from < HFD_STATE_COUNT; from++)
        for (unsigned to = 0; to < HFD_STATE_COUNT; to++) {
            char arrow[32];
            bool there = false;

            snprintf(arrow, sizeof(arrow), "%s>%s", names[from], names[to]);
            for (size_t i = 0; i < sizeof(arrows_there) / sizeof(arrows_there[0]); i++)
                there = there || strcmp(arrow, arrows_there[i]) == 0;
            if (hfd_state_may((enum hfd_state)from, (enum hfd_state)to) != there)
                print_error("%s\n", arrow);
            assert_int_equal(hfd_state_may((enum hfd_state)from, (enum hfd_state)to), there);
            found += there;
        }
    assert_int_equal(found, sizeof(arrows_there) / sizeof(arrows_there[0]));
}

/* The PUT table, cell by cell. */
static void put_table(void **state)
{
    /* clang-format off */
    static const struct {
        enum hfd_state state;
        enum hfd_put_action same, different;
    } cells[] = {
        {HFD_STATE_ABSENT,   HFD_PUT_CREATE,   HFD_PUT_CREATE},
        {HFD_STATE_CREATING, HFD_PUT_ANSWER,   HFD_PUT_CONFLICT},
        {HFD_STATE_UPDATING, HFD_PUT_ANSWER,   HFD_PUT_UPDATE},
        {HFD_STATE_READY,    HFD_PUT_ANSWER,   HFD_PUT_UPDATE},
        {HFD_STATE_FAILED,   HFD_PUT_RETRY,    HFD_PUT_RETRY},
        {HFD_STATE_DELETING, HFD_PUT_CONFLICT, HFD_PUT_CONFLICT},
    };
    /* clang-format on */

    (void)state;
    assert_int_equal(sizeof(cells) / sizeof(cells[0]), HFD_STATE_COUNT);
    for (size_t i = 0; i < HFD_STATE_COUNT; i++) {
        assert_int_equal(hfd_life_put(cells[i].state, true), cells[i].same);
        assert_int_equal(hfd_life_put(cells[i].state, false), cells[i].different);
    }
}

/* The GET row, before and behind the deadline of what is under way. */
static void get_table(void **state)
{
    /* clang-format off */
    static const struct {
        enum hfd_state state;
        enum hfd_answer in_time, late;
    } cells[] = {
        {HFD_STATE_ABSENT,   HFD_ANSWER_ABSENT, HFD_ANSWER_ABSENT},
        {HFD_STATE_CREATING, HFD_ANSWER_HINT,   HFD_ANSWER_FAILED},
        {HFD_STATE_UPDATING, HFD_ANSWER_HINT,   HFD_ANSWER_FAILED},
        {HFD_STATE_READY,    HFD_ANSWER_OUTPUT, HFD_ANSWER_OUTPUT},
        {HFD_STATE_FAILED,   HFD_ANSWER_FAILED, HFD_ANSWER_FAILED},
        {HFD_STATE_DELETING, HFD_ANSWER_HINT,   HFD_ANSWER_FAILED},
    };
    /* clang-format on */

    (void)state;
    assert_int_equal(sizeof(cells) / sizeof(cells[0]), HFD_STATE_COUNT);
    for (size_t i = 0; i < HFD_STATE_COUNT; i++) {
        assert_int_equal(hfd_life_get(cells[i].state, false), cells[i].in_time);
        assert_int_equal(hfd_life_get(cells[i].state, true), cells[i].late);
    }
}

/*
 * The DELETE row has no function: it is "deleting" from every state that has something to delete,
 * and "absent" behind it.
 */
static void delete_is_possible_from_everywhere(void **state)
{
    static const enum hfd_state all[] = {HFD_STATE_CREATING, HFD_STATE_UPDATING, HFD_STATE_READY,
                                         HFD_STATE_FAILED};

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        assert_true(hfd_state_may(all[i], HFD_STATE_DELETING));
    assert_true(hfd_state_may(HFD_STATE_DELETING, HFD_STATE_ABSENT));
    assert_false(hfd_state_may(HFD_STATE_READY, HFD_STATE_ABSENT));
}

/*
 * A number that is no state, as damage on disk could leave it, is taken for failed by every
 * function.
 */
static void a_number_that_is_no_state(void **state)
{
    static const int numbers[] = {HFD_STATE_COUNT, 1000, INT32_MAX, -1};

    (void)state;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        const enum hfd_state s = (enum hfd_state)numbers[i];

        assert_string_equal(hfd_state_name(s), "failed");
        assert_int_equal(hfd_life_get(s, false), HFD_ANSWER_FAILED);
        assert_int_equal(hfd_life_put(s, true), HFD_PUT_RETRY);
        assert_true(hfd_state_may(s, HFD_STATE_DELETING));
        assert_false(hfd_state_may(s, HFD_STATE_READY));
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(state_names),
        cmocka_unit_test(arrows),
        cmocka_unit_test(put_table),
        cmocka_unit_test(get_table),
        cmocka_unit_test(delete_is_possible_from_everywhere),
        cmocka_unit_test(a_number_that_is_no_state),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
