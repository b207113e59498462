/* driver/base/meter.c: the line about long work, and when it is written. */
#include "driver/base/meter.h"
#include "tests/lib/seams.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define S HFD_US_PER_S

/* The line has what is known: numbers, percent, and the time that is left at the same pace. */
static void line_says_what_is_known(void **state)
{
    static const struct {
        struct hfd_meter_at at;
        int64_t elapsed_s;
        const char *line;
    } cases[] = {
        {{"a", NULL, 2310000, 4000000}, 89, "a: 2,310,000 of 4,000,000  57 %  about 1:05 left"},
        {{"a", "MiB", 1, 1024}, 10, "a: 1 of 1,024 MiB  0 %  about 2:50:30 left"},
        {{"a", NULL, 0, 999}, 5, "a: 0 of 999  0 %"},
        {{"a", NULL, 7, 7}, 5, "a: 7 of 7  100 %  about 0:00 left"},
        {{"a", NULL, 8, 7}, 65, "a: 8  for 1:05"}, /* more than was counted */
        {{"a", NULL, 1000, 0}, 9, "a: 1,000  for 0:09"},
        {{"a", NULL, 0, 0}, 3661, "a: for 1:01:01"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hfd_buf b;

        hfd_buf_init(&b, 256);
        hfd_meter_line(&b, &cases[i].at, cases[i].elapsed_s * S);
        hfd_buf_addc(&b, '\0');
        assert_string_equal(b.p, cases[i].line);
        hfd_buf_fini(&b);
    }
}

/* Plays 25 seconds of two steps. Each second has a tick. */
static char *play(bool terminal)
{
    struct test_clock clock;
    struct hfd_meter m;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    assert_non_null(out);
    test_clock_init(&clock);
    hfd_meter_init(&m, &clock.clock, out, terminal);
    hfd_meter_tick(&m); /* no step yet */
    for (int i = 0; i < 25; i++) {
        hfd_meter_set(&m, &(struct hfd_meter_at){i < 12 ? "one" : "two", NULL, i + 1, 100});
        hfd_meter_tick(&m);
        test_clock_advance(&clock, S / 2);
        hfd_meter_tick(&m);
        test_clock_advance(&clock, S / 2);
    }
    hfd_meter_clear(&m);
    hfd_meter_tick(&m);
    hfd_meter_stop(&m);
    hfd_meter_set(&m, &(struct hfd_meter_at){"late", NULL, 1, 1});
    assert_int_equal(fclose(out), 0);
    return text;
}

/* On a terminal the line is written over each second, and goes at the end. */
static void terminal_has_one_line(void **state)
{
    char *text = play(true);
    size_t lines = 0;

    (void)state;
    for (const char *p = text; *p != '\0'; p++)
        lines += *p == '\r';
    assert_int_equal(lines, 25); /* 24 seconds, and the end */
    assert_ptr_equal(strstr(text, "\rone: 2 of 100  2 %  about 0:49 left\033[K"), text);
    assert_string_equal(text + strlen(text) - 4, "\r\033[K");
    assert_null(strchr(text, '\n'));
    free(text);
}

/* In a pipe there is a line each ten seconds; a new step is no reason for one. */
static void pipe_has_few_lines(void **state)
{
    char *text = play(false);

    (void)state;
    assert_string_equal(text, "one: 11 of 100  11 %  about 1:20 left\n"
                              "two: 21 of 100  21 %  about 0:30 left\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(line_says_what_is_known),
        cmocka_unit_test(terminal_has_one_line),
        cmocka_unit_test(pipe_has_few_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
