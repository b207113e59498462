#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "driver/base/clock.h"
#include "driver/base/log.h"
#include "driver/base/trace.h"
#include "driver/base/metrics.h"

/* The log in a pipe that never blocks. */
struct sink {
    int fds[2];
    char text[70000];
    size_t len;
};

static int setup(void **state)
{
    static struct sink sink;

    sink.len = 0;
    if (pipe2(sink.fds, O_NONBLOCK) != 0)
        return -1;
    hfd_log_set_fd(sink.fds[1]);
    hfd_log_set_level(HFD_LOG_DEBUG);
    *state = &sink;
    return 0;
}

static int teardown(void **state)
{
    struct sink *sink = *state;

    hfd_log_set_fd(-1);
    hfd_log_set_level(HFD_LOG_INFO);
    hfd_log_request_id(HFD_SLICE_NONE);
    hfd_log_set_text(false);
    close(sink->fds[0]);
    close(sink->fds[1]);
    return 0;
}

static void drain(struct sink *sink)
{
    ssize_t n;

    sink->len = 0;
    while ((n = read(sink->fds[0], sink->text + sink->len, sizeof(sink->text) - 1 - sink->len)) > 0)
        sink->len += (size_t)n;
    sink->text[sink->len] = '\0';
}

/* The one line that was written since the last call, as JSON. */
static json_t *one_line(struct sink *sink)
{
    json_t *v;

    drain(sink);
    assert_true(sink->len > 0 && sink->len <= 4096);
    assert_ptr_equal(strchr(sink->text, '\n'), sink->text + sink->len - 1);
    v = json_loads(sink->text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(v);
    return v;
}

static const char *str(const json_t *obj, const char *key)
{
    const char *s = json_string_value(json_object_get(obj, key));

    return s != NULL ? s : "";
}

/* A line has time in microseconds, level, message, and the fields in the order given. */
static void log_line_has_its_fields(void **state)
{
    struct sink *sink = *state;
    int64_t at;
    json_t *v;

    HFD_LOG(HFD_LOG_WARN, "re\"quest", HFD_LOG_CSTR("path", "/a\n\xff"),
            HFD_LOG_INT("status", INT64_MIN), HFD_LOG_STR("none", HFD_SLICE_NONE));
    v = one_line(sink);
    assert_string_equal(str(v, "level"), "warn");
    assert_string_equal(str(v, "msg"), "re\"quest");
    assert_string_equal(str(v, "path"), "/a\n\xef\xbf\xbd");
    assert_true(json_integer_value(json_object_get(v, "status")) == INT64_MIN);
    assert_true(json_is_string(json_object_get(v, "none")));
    assert_int_equal(strlen(str(v, "ts")), 27);
    assert_int_equal(hfd_time_parse(hfd_slice_of(str(v, "ts")), &at, NULL), HFD_OK);
    assert_int_equal(json_object_size(v), 6);
    json_decref(v);
    HFD_LOG(HFD_LOG_INFO, "bare");
    v = one_line(sink);
    assert_int_equal(json_object_size(v), 3);
    json_decref(v);
}

/* A text line has the same fields; values with spaces or controls stand in quotes. */
static void log_text_lines(void **state)
{
    static char big[8000];
    struct sink *sink = *state;

    hfd_log_set_text(true);
    HFD_LOG(HFD_LOG_INFO, "request", HFD_LOG_CSTR("path", "/a b"), HFD_LOG_CSTR("method", "PUT"),
            HFD_LOG_INT("status", 202), HFD_LOG_CSTR("none", ""),
            HFD_LOG_CSTR("odd", "\x1b[1m=\n"));
    drain(sink);
    assert_string_equal(sink->text + 27,
                        " info  request path=\"/a b\" method=PUT status=202 none=\"\""
                        " odd=\"\\u001b[1m=\\n\"\n");
    memset(big, 'x', sizeof(big) - 1);
    HFD_LOG(HFD_LOG_WARN, "long", HFD_LOG_CSTR("value", big), HFD_LOG_INT("lost", 1));
    drain(sink);
    assert_true(sink->len <= 4096 && strchr(sink->text, '\n') == sink->text + sink->len - 1);
    assert_string_equal(sink->text + sink->len - 10, " cut=true\n");
    hfd_log_set_text(false);
}

/* Lines below the level are dropped. */
static void log_level_filters(void **state)
{
    struct sink *sink = *state;

    for (int level = HFD_LOG_DEBUG; level <= HFD_LOG_ERROR; level++) {
        hfd_log_set_level((enum hfd_log_level)level);
        for (int line = HFD_LOG_DEBUG; line <= HFD_LOG_ERROR; line++) {
            HFD_LOG((enum hfd_log_level)line, "x");
            drain(sink);
            assert_int_equal(sink->len > 0, line >= level);
        }
    }
}

/* Level names are read as they are written. */
static void log_level_names(void **state)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    enum hfd_log_level level;
    struct hfd_err err;

    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(hfd_log_level_parse(hfd_slice_of(names[i]), &level, &err), HFD_OK);
        assert_int_equal(level, i);
    }
    assert_int_equal(hfd_log_level_parse(HFD_SLICE("INFO"), &level, &err), HFD_INVALID);
    assert_non_null(strstr(err.msg, "\"INFO\""));
    assert_int_equal(hfd_log_level_parse(HFD_SLICE(""), &level, &err), HFD_INVALID);
}

/*
 * The thread's request stands in every line, once, cut at 40 bytes; a line's own wins; another
 * thread has its own.
 */
static void *other_thread(void *arg)
{
    (void)arg;
    HFD_LOG(HFD_LOG_INFO, "other");
    return NULL;
}

static void log_request_id(void **state)
{
    struct sink *sink = *state;
    pthread_t thread;
    json_t *v;

    hfd_log_request_id(HFD_SLICE("0123456789012345678901234567890123456789-cut"));
    HFD_LOG(HFD_LOG_INFO, "a");
    v = one_line(sink);
    assert_string_equal(str(v, "request_id"), "0123456789012345678901234567890123456789");
    json_decref(v);
    HFD_LOG(HFD_LOG_INFO, "a", HFD_LOG_CSTR("request_id", "own"));
    v = one_line(sink);
    assert_string_equal(str(v, "request_id"), "own");
    json_decref(v);
    assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
    pthread_join(thread, NULL);
    v = one_line(sink);
    assert_null(json_object_get(v, "request_id"));
    json_decref(v);
    hfd_log_request_id(HFD_SLICE_NONE);
    HFD_LOG(HFD_LOG_INFO, "a");
    v = one_line(sink);
    assert_null(json_object_get(v, "request_id"));
    json_decref(v);
}

#define TRACE_ID "4bf92f3577b34da6a3ce929d0e0e4736"

/* A line has the id of the trace that its thread works for. One that is not well formed is none. */
static void log_trace(void **state)
{
    static const struct {
        const char *header, *id;
    } cases[] = {
        {"00-" TRACE_ID "-00f067aa0ba902b7-01", TRACE_ID},
        {"00-" TRACE_ID "-00f067aa0ba902b7-ff", TRACE_ID},
        {"", ""},
        {"00-" TRACE_ID "-00f067aa0ba902b7-0", ""},
        {"00-" TRACE_ID "-00f067aa0ba902b7-01-x", ""},
        {"01-" TRACE_ID "-00f067aa0ba902b7-01", ""},
        {"ff-" TRACE_ID "-00f067aa0ba902b7-01", ""},
        {"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", ""},
        {"00-" TRACE_ID "-00f067aa0ba902b7-0g", ""},
        {"00-" TRACE_ID "-00f067aa0ba902bg-01", ""},
        {"00_" TRACE_ID "-00f067aa0ba902b7-01", ""},
        {"00-" TRACE_ID "_00f067aa0ba902b7-01", ""},
        {"00-" TRACE_ID "-00f067aa0ba902b7_01", ""},
        {"00-00000000000000000000000000000000-00f067aa0ba902b7-01", ""},
        {"00-" TRACE_ID "-0000000000000000-01", ""},
    };
    struct sink *sink = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct hfd_trace trace = hfd_trace_parse(hfd_slice_of(cases[i].header));
        pthread_t thread;
        json_t *v;

        assert_string_equal(trace.text, cases[i].id[0] != '\0' ? cases[i].header : "");
        hfd_trace_enter(&trace);
        HFD_LOG(HFD_LOG_INFO, "a");
        v = one_line(sink);
        assert_string_equal(str(v, "trace"), cases[i].id);
        assert_int_equal(json_object_get(v, "trace") != NULL, cases[i].id[0] != '\0');
        json_decref(v);
        assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
        pthread_join(thread, NULL);
        v = one_line(sink);
        assert_null(json_object_get(v, "trace"));
        json_decref(v);
    }
    hfd_trace_enter(NULL);
    assert_int_equal(hfd_trace_id(hfd_trace_now()).len, 0);
}

/*
 * A line that would be too long is cut, says so, and is JSON all the same, wherever the limit
 * falls.
 */
static void log_long_line_is_cut(void **state)
{
    static const char *const units[] = {"x", "\n", "\x01", "\xe2\x82\xac", "\xff"};
    struct sink *sink = *state;
    static char big[9000];

    for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++) {
        for (size_t len = 600; len<9000; len += len> 3900 && len < 4120 ? 1 : 97) {
            json_t *v;

            for (size_t i = 0; i < len; i++)
                big[i] = units[u][i % strlen(units[u])];
            HFD_LOG(HFD_LOG_INFO, "m", HFD_LOG_STR("big", ((hfd_slice){big, len})),
                    HFD_LOG_INT("after", 1));
            v = one_line(sink);
            assert_int_equal(json_is_true(json_object_get(v, "cut")),
                             json_object_get(v, "after") == NULL);
            json_decref(v);
        }
    }
}

/* Many fields are cut between two of them. */
static void log_many_fields_are_cut(void **state)
{
    struct hfd_log_field fields[400];
    struct sink *sink = *state;
    char keys[400][32];
    json_t *v;

    for (size_t i = 0; i < 400; i++) {
        snprintf(keys[i], sizeof(keys[i]), "key_%zu", i);
        fields[i] = (struct hfd_log_field)HFD_LOG_INT(keys[i], INT64_MIN);
    }
    hfd_log_write(HFD_LOG_INFO, "m", fields, 400);
    v = one_line(sink);
    assert_true(json_is_true(json_object_get(v, "cut")));
    assert_true(sink->len > 3900);
    json_decref(v);
}

/* A log that cannot be written is not an error, and errno is kept. */
static void log_write_failure_is_silent(void **state)
{
    (void)state;
    hfd_log_set_fd(1000000);
    errno = 7;
    HFD_LOG(HFD_LOG_INFO, "x");
    assert_int_equal(errno, 7);
}

#define THREADS 4
#define LINES 30

/* Fills the pipe and goes on: 2000 lines, of which most have no place. Returns the time it took. */
static int64_t flood_us(struct sink *sink)
{
    int64_t began_us;

    drain(sink);
    hfd_log_set_fd(sink->fds[1]); /* forgets what was dropped */
    began_us = hfd_clock_mono_us(&hfd_clock_system);
    for (int i = 0; i < 2000; i++)
        HFD_LOG(HFD_LOG_INFO, "flood", HFD_LOG_INT("i", i));
    return hfd_clock_mono_us(&hfd_clock_system) - began_us;
}

static size_t whole_lines(const struct sink *sink)
{
    size_t whole = 0;

    for (size_t i = 0; i < sink->len; i++)
        whole += sink->text[i] == '\n' ? 1 : 0;
    assert_int_equal(sink->text[sink->len - 1], '\n');
    return whole;
}

/* The first lines of the sink: the number of lines dropped, then "after". */
static void assert_dropped_then_after(struct sink *sink, size_t lines)
{
    json_t *line;

    drain(sink);
    line = json_loads(sink->text, JSON_DISABLE_EOF_CHECK, NULL);
    assert_string_equal(str(line, "msg"), "log lines dropped");
    assert_string_equal(str(line, "level"), "warn");
    assert_int_equal(json_integer_value(json_object_get(line, "lines")), lines);
    json_decref(line);
    line = json_loads(strchr(sink->text, '\n') + 1, 0, NULL);
    assert_string_equal(str(line, "msg"), "after");
    json_decref(line);
}

/* The metric of dropped lines. */
static int64_t dropped_metric(void)
{
    static const char name[] = "\nhfd_log_lines_dropped_total ";
    struct hfd_buf b;
    int64_t value = 0;
    char *at;

    hfd_buf_init(&b, 1 << 20);
    hfd_metrics_render(&b);
    hfd_buf_addc(&b, '\0');
    assert_int_equal(b.rc, HFD_OK);
    at = strstr(b.p, name);
    if (at != NULL) {
        at += sizeof(name) - 1;
        *strchr(at, '\n') = '\0';
        assert_int_equal(hfd_parse_i64(hfd_slice_of(at), 0, INT64_MAX, &value, NULL), HFD_OK);
    }
    hfd_buf_fini(&b);
    return value;
}

/*
 * A reader that does not read stops no thread, whether or not a write would block. When it reads
 * again it finds how many lines are missing; the metric counts the same lines.
 */
static void log_without_a_reader(void **state)
{
    static const int flags[] = {0, O_NONBLOCK};
    struct sink *sink = *state;

    for (size_t f = 0; f < 2; f++) {
        const int64_t before = dropped_metric();
        size_t whole;

        assert_int_equal(fcntl(sink->fds[1], F_SETFL, flags[f]), 0);
        (void)alarm(60); /* ends the test if a write blocks after all */
        (void)flood_us(sink);
        drain(sink);
        whole = whole_lines(sink);
        assert_true(whole > 100 && whole < 2000);
        assert_int_equal(dropped_metric() - before, 2000 - whole);
        HFD_LOG(HFD_LOG_INFO, "after");
        (void)alarm(0);
        assert_dropped_then_after(sink, 2000 - whole);
    }
}

/*
 * Lines are dropped at once: no thread waits for the reader, not even for a moment. The fastest of
 * ten floods counts, so that a busy machine is no failure.
 */
static void log_drops_at_once(void **state)
{
    struct sink *sink = *state;
    int64_t least_us = INT64_MAX;

    assert_int_equal(fcntl(sink->fds[1], F_SETFL, 0), 0);
    (void)alarm(60);
    for (int i = 0; i < 10; i++) {
        const int64_t took_us = flood_us(sink);

        least_us = took_us < least_us ? took_us : least_us;
    }
    (void)alarm(0);
    if (least_us > HFD_US_PER_S) /* a millisecond of waiting for each would be two */
        fail_msg("2000 lines took %lld us", (long long)least_us);
}

static void *writer(void *arg)
{
    hfd_log_request_id(hfd_slice_of(arg));
    for (int i = 0; i < LINES; i++)
        HFD_LOG(HFD_LOG_INFO, "together", HFD_LOG_INT("i", i));
    return NULL;
}

/* Lines of several threads never mix. */
static void log_threads_do_not_mix(void **state)
{
    static char names[THREADS][2] = {"0", "1", "2", "3"};
    struct sink *sink = *state;
    pthread_t threads[THREADS];
    int next[THREADS] = {0};
    char *line;

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, writer, names[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    drain(sink);
    for (line = sink->text; *line != '\0';) {
        char *end = strchr(line, '\n');
        json_t *v;
        int t;

        assert_non_null(end);
        *end = '\0';
        v = json_loads(line, 0, NULL);
        assert_non_null(v);
        t = str(v, "request_id")[0] - '0';
        assert_int_equal(json_integer_value(json_object_get(v, "i")), next[t]++);
        json_decref(v);
        line = end + 1;
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(next[i], LINES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(log_line_has_its_fields, setup, teardown),
        cmocka_unit_test_setup_teardown(log_level_filters, setup, teardown),
        cmocka_unit_test_setup_teardown(log_level_names, setup, teardown),
        cmocka_unit_test_setup_teardown(log_request_id, setup, teardown),
        cmocka_unit_test_setup_teardown(log_trace, setup, teardown),
        cmocka_unit_test_setup_teardown(log_long_line_is_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(log_many_fields_are_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(log_write_failure_is_silent, setup, teardown),
        cmocka_unit_test_setup_teardown(log_without_a_reader, setup, teardown),
        cmocka_unit_test_setup_teardown(log_drops_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(log_threads_do_not_mix, setup, teardown),
        cmocka_unit_test_setup_teardown(log_text_lines, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
