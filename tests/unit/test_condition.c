/* The stored text of conditions: its form, reading it back, and damage. */
#include "driver/fleet/condition.h"

#include "driver/base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MEM_MAX ((size_t)1 << 20)

/* The three words are read, and no similar ones. */
static void status_words(void **state)
{
    static const char *const others[] = {"", "true", "TRUE", "False ", "Unknow", "Unknownn", "Tru"};
    static const enum hfd_status all[] = {HFD_STATUS_FALSE, HFD_STATUS_TRUE, HFD_STATUS_UNKNOWN};
    static const char *const words[] = {"False", "True", "Unknown"};
    enum hfd_status got;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(hfd_status_name(all[i]), words[i]);
        assert_true(hfd_status_parse(hfd_slice_of(words[i]), &got));
        assert_int_equal(got, all[i]);
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(hfd_status_parse(hfd_slice_of(others[i]), &got));
    assert_false(hfd_status_parse(HFD_SLICE_NONE, &got));
}

static void format_is(const struct hfd_conditions *cs, bool of_report, const char *want)
{
    struct hfd_buf b;
    hfd_slice got;

    hfd_buf_init(&b, 65536);
    hfd_conditions_format(&b, cs, of_report);
    assert_int_equal(hfd_buf_finish(&b, &got, NULL), HFD_OK);
    hfd_buf_addc(&b, '\0');
    assert_string_equal(b.p, want);
    hfd_buf_fini(&b);
}

#define T0 INT64_C(1735689600000000) /* 2025-01-01T00:00:00Z */

/* HyperFleet's two forms, with and without reason and message; times keep microseconds. */
static void format_shapes(void **state)
{
    struct hfd_condition items[] = {
        {HFD_SLICE("Ready"), HFD_STATUS_FALSE, HFD_SLICE("AwaitingAdapters"),
         HFD_SLICE("Waiting \"now\""), 3, T0, T0 + 1, T0 + 500000},
        {HFD_SLICE("Applied"), HFD_STATUS_UNKNOWN, HFD_SLICE_NONE, HFD_SLICE_NONE, 0, 0, 0,
         T0 + 36000 * HFD_US_PER_S},
    };

    (void)state;
    format_is(&(struct hfd_conditions){NULL, 0}, false, "[]");
    format_is(&(struct hfd_conditions){items, 1}, false,
              "[{\"type\":\"Ready\",\"status\":\"False\",\"reason\":\"AwaitingAdapters\","
              "\"message\":\"Waiting \\\"now\\\"\","
              "\"observed_generation\":3,\"created_time\":\"2025-01-01T00:00:00Z\",\"last_updated_"
              "time\":\"2025-01-01T00:00:00.000001Z\","
              "\"last_transition_time\":\"2025-01-01T00:00:00.5Z\"}]");
    format_is(&(struct hfd_conditions){items, 2}, true,
              "[{\"type\":\"Ready\",\"status\":\"False\",\"reason\":\"AwaitingAdapters\","
              "\"message\":\"Waiting \\\"now\\\"\","
              "\"last_transition_time\":\"2025-01-01T00:00:00.5Z\"},"
              "{\"type\":\"Applied\",\"status\":\"Unknown\",\"last_transition_time\":\"2025-01-"
              "01T10:00:00Z\"}]");
}

static void assert_slice(hfd_slice got, hfd_slice want)
{
    assert_int_equal(got.len, want.len);
    if (want.len > 0)
        assert_memory_equal(got.p, want.p, want.len);
}

static void assert_same(const struct hfd_condition *got, const struct hfd_condition *want,
                        bool of_report)
{
    assert_slice(got->type, want->type);
    assert_slice(got->reason, want->reason);
    assert_slice(got->message, want->message);
    assert_int_equal(got->status, want->status);
    assert_int_equal(got->last_transition_us, want->last_transition_us);
    assert_int_equal(got->observed_generation, of_report ? 0 : want->observed_generation);
    assert_int_equal(got->created_us, of_report ? 0 : want->created_us);
    assert_int_equal(got->last_updated_us, of_report ? 0 : want->last_updated_us);
}

/*
 * A written text reads back, in both forms, also with odd texts, generations and times. The text
 * may be freed afterwards.
 */
static void what_is_written_reads_back(void **state)
{
    struct hfd_condition items[] = {
        {HFD_SLICE("Ready"), HFD_STATUS_TRUE, HFD_SLICE("R"),
         HFD_SLICE("line\n\ttab \\ \xc3\xa9 \xf0\x9f\x98\x80 \x7f"), 1, T0, T0 + 999999, 1},
        {HFD_SLICE("A type of its own"), HFD_STATUS_FALSE, HFD_SLICE_NONE,
         HFD_SLICE("only a message"), INT64_MAX, 0, T0, T0},
        {HFD_SLICE("X"), HFD_STATUS_UNKNOWN, HFD_SLICE("only a reason"), HFD_SLICE_NONE, -1, T0, T0,
         INT64_C(253402300799999999)},
    };
    const struct hfd_conditions cs = {items, 3};

    (void)state;
    for (int of_report = 0; of_report < 2; of_report++) {
        struct hfd_conditions back;
        struct hfd_arena mem;
        struct hfd_buf b;

        hfd_arena_init(&mem, MEM_MAX);
        hfd_buf_init(&b, 65536);
        hfd_conditions_format(&b, &cs, of_report);
        assert_int_equal(hfd_conditions_parse(hfd_buf_slice(&b), &mem, &back, NULL), HFD_OK);
        memset(b.p, 'x', b.len);
        assert_int_equal(back.count, 3);
        for (size_t i = 0; i < 3; i++)
            assert_same(&back.items[i], &items[i], of_report);
        hfd_buf_fini(&b);
        hfd_arena_fini(&mem);
    }
}

/*
 * As many conditions as can be written read back, with all their members; one more is not written.
 */
static void no_more_is_written_than_can_be_read(void **state)
{
    static struct hfd_condition items[HFD_CONDITIONS_MAX + 1];
    struct hfd_conditions back;
    struct hfd_arena mem;
    struct hfd_buf b;
    hfd_slice text;

    (void)state;
    for (size_t i = 0; i < HFD_CONDITIONS_MAX + 1; i++)
        items[i] = (struct hfd_condition){
            HFD_SLICE("T"), HFD_STATUS_TRUE, HFD_SLICE("R"), HFD_SLICE("M"), 1, T0, T0, T0};
    hfd_arena_init(&mem, MEM_MAX);
    hfd_buf_init(&b, MEM_MAX);
    hfd_conditions_format(&b, &(struct hfd_conditions){items, HFD_CONDITIONS_MAX}, false);
    assert_int_equal(hfd_buf_finish(&b, &text, NULL), HFD_OK);
    assert_int_equal(hfd_conditions_parse(text, &mem, &back, NULL), HFD_OK);
    assert_int_equal(back.count, HFD_CONDITIONS_MAX);
    hfd_buf_reset(&b);
    hfd_conditions_format(&b, &(struct hfd_conditions){items, HFD_CONDITIONS_MAX + 1}, true);
    assert_int_equal(hfd_buf_finish(&b, &text, NULL), HFD_LIMIT);
    hfd_buf_fini(&b);
    hfd_arena_fini(&mem);
}

/* An empty array has no conditions; unknown members are left alone. */
static void parse_small_things(void **state)
{
    struct hfd_conditions cs;
    struct hfd_arena mem;

    (void)state;
    hfd_arena_init(&mem, MEM_MAX);
    assert_int_equal(hfd_conditions_parse(HFD_SLICE(" [ ] "), &mem, &cs, NULL), HFD_OK);
    assert_int_equal(cs.count, 0);
    assert_int_equal(
        hfd_conditions_parse(HFD_SLICE("[{\"type\":\"A\",\"status\":\"True\",\"more\":{}}]"), &mem,
                             &cs, NULL),
        HFD_OK);
    assert_int_equal(cs.count, 1);
    assert_null(hfd_condition_find(&cs, HFD_SLICE("a")));
    assert_ptr_equal(hfd_condition_find(&cs, HFD_SLICE("A")), &cs.items[0]);
    hfd_arena_fini(&mem);
}

/* Any text that the program did not write is HFD_CORRUPT, with a message, and leaves nothing. */
static void damage_is_told(void **state)
{
    /* clang-format off */
    static const char *const damaged[] = {
        "", "[", "null", "{}", "7", "[1]", "[null]", "[[]]", "[{}]",
        "[{\"type\":\"A\"}]", "[{\"status\":\"True\"}]", "[{\"type\":1,\"status\":\"True\"}]",
        "[{\"type\":\"A\",\"status\":\"true\"}]", "[{\"type\":\"A\",\"status\":true}]",
        "[{\"type\":\"A\",\"status\":\"True\",\"reason\":1}]", "[{\"type\":\"A\",\"status\":\"True\",\"message\":[]}]",
        "[{\"type\":\"A\",\"status\":\"True\",\"observed_generation\":\"1\"}]",
        "[{\"type\":\"A\",\"status\":\"True\",\"created_time\":\"yesterday\"}]",
        "[{\"type\":\"A\",\"status\":\"True\",\"last_updated_time\":5}]",
        "[{\"type\":\"A\",\"status\":\"True\",\"last_transition_time\":\"2025-13-01T00:00:00Z\"}]",
        "[{\"type\":\"A\",\"type\":\"A\",\"status\":\"True\"}]",
        "[{\"type\":\"A\",\"status\":\"True\"}] x", "[{\"type\":\"A\",\"status\":\"True\"},{}]",
    };
    /* clang-format on */

    (void)state;
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
        struct hfd_err err = {0};
        struct hfd_conditions cs = {(void *)&cs, 9};
        struct hfd_arena mem;

        hfd_arena_init(&mem, MEM_MAX);
        assert_int_equal(hfd_conditions_parse(hfd_slice_of(damaged[i]), &mem, &cs, &err),
                         HFD_CORRUPT);
        assert_int_equal(err.rc, HFD_CORRUPT);
        assert_string_not_equal(err.msg, "");
        assert_null(cs.items);
        assert_int_equal(cs.count, 0);
        assert_int_equal(hfd_conditions_parse(hfd_slice_of(damaged[i]), &mem, &cs, NULL),
                         HFD_CORRUPT);
        hfd_arena_fini(&mem);
    }
}

/*
 * A text in the written form, with one change in it, is read as the same text with a blank in
 * front. Only JSON's grammar allows that blank.
 */
static void both_ways_read_the_same(void **state)
{
    static const char written[] =
        "[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"R\",\"message\":\"all is "
        "w\xc3\xa9ll\\n\\u001f\\\"\","
        "\"observed_generation\":12,"
        "\"created_time\":\"2025-01-01T00:00:00Z\",\"last_updated_time\":\"2025-01-01T00:00:00."
        "5Z\","
        "\"last_transition_time\":\"2025-01-01T00:00:01Z\"},{\"type\":\"A\",\"status\":\"False\","
        "\"last_transition_time\":\"2025-01-01T00:00:02Z\"}]";
    static const char bytes[] = {'\0', ' ', '"', '\\', '{',    '}',    '[',        ']',       ',',
                                 ':',  '0', '7', 'x',  '\x1f', '\x7f', (char)0x80, (char)0xc3};
    const size_t len = sizeof(written) - 1;

    (void)state;
    for (size_t at = 0; at <= len; at++) {
        for (size_t b = 0; b < sizeof(bytes); b++) {
            struct hfd_conditions plain, blank;
            char text[sizeof(written) + 1];
            struct hfd_arena mem;
            hfd_rc rc;

            hfd_arena_init(&mem, MEM_MAX);
            text[0] = ' ';
            memcpy(text + 1, written, len);
            if (at < len)
                text[1 + at] = bytes[b];
            rc = hfd_conditions_parse((hfd_slice){text + 1, len}, &mem, &plain, NULL);
            assert_int_equal(rc,
                             hfd_conditions_parse((hfd_slice){text, len + 1}, &mem, &blank, NULL));
            assert_int_equal(plain.count, blank.count);
            for (size_t i = 0; i < plain.count; i++)
                assert_same(&plain.items[i], &blank.items[i], false);
            /* Cut there. */
            rc = hfd_conditions_parse((hfd_slice){written, at}, &mem, &plain, NULL);
            assert_int_equal(rc, at == len ? HFD_OK : HFD_CORRUPT);
            hfd_arena_fini(&mem);
        }
    }
}

/* A message is shown up to 2,048 bytes; a longer one is cut between characters, and says so. */
static void long_messages_are_cut(void **state)
{
    static const char end[] = "... (the adapter's report has the whole message)";
    struct hfd_arena mem;
    char text[2 * HFD_MESSAGE_SHOWN_MAX];

    (void)state;
    hfd_arena_init(&mem, MEM_MAX);
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = i % 2 == 0 ? (char)0xc3 : (char)0xa9;
    for (size_t at = 0; at < 2; at++) {
        hfd_slice message = {text, HFD_MESSAGE_SHOWN_MAX}, shown;

        text[0] = at == 0 ? (char)0xc3 : 'x';
        shown = hfd_message_shown(message, &mem);
        assert_true(shown.p == message.p && shown.len == message.len);
        message.len += 2;
        shown = hfd_message_shown(message, &mem);
        assert_true(shown.len <= HFD_MESSAGE_SHOWN_MAX && shown.len > HFD_MESSAGE_SHOWN_MAX - 2);
        assert_memory_equal(shown.p + shown.len - strlen(end), end, strlen(end));
        assert_int_equal((unsigned char)shown.p[shown.len - strlen(end) - 1], 0xa9);
        memmove(text + 1, text, sizeof(text) - 1);
    }
    hfd_arena_fini(&mem);
}

/* With any amount of memory the result is complete, or HFD_NOMEM and empty. */
static void parse_out_of_memory(void **state)
{
    static const hfd_slice text =
        HFD_SLICE("[{\"type\":\"A\",\"status\":\"True\",\"reason\":\"R\",\"message\":\"M\"},"
                  "{\"type\":\"B\",\"status\":\"False\"}]");
    struct hfd_conditions cs;
    size_t max_bytes = 0;
    hfd_rc rc;

    (void)state;
    do {
        struct hfd_arena mem;

        hfd_arena_init(&mem, max_bytes++);
        rc = hfd_conditions_parse(text, &mem, &cs, NULL);
        if (rc != HFD_OK) {
            assert_int_equal(rc, HFD_NOMEM);
            assert_null(cs.items);
            assert_int_equal(cs.count, 0);
        }
        hfd_arena_fini(&mem);
        assert_true(max_bytes < 10000);
    } while (rc != HFD_OK);
    assert_true(max_bytes > 2);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_words),
        cmocka_unit_test(format_shapes),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(no_more_is_written_than_can_be_read),
        cmocka_unit_test(parse_small_things),
        cmocka_unit_test(damage_is_told),
        cmocka_unit_test(both_ways_read_the_same),
        cmocka_unit_test(long_messages_are_cut),
        cmocka_unit_test(parse_out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
