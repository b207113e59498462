#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"

/*
 * Runs fn in a process of its own with the log in a pipe.
 * @return its wait status; the log's text in out
 */
static int run_apart(void (*fn)(void), char *out, size_t cap)
{
    const struct rlimit no_core = {0, 0};
    int status = 0;
    size_t len = 0;
    int fds[2];
    ssize_t n;
    pid_t pid;

    assert_int_equal(pipe(fds), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)signal(SIGABRT, SIG_DFL);
        hfd_log_set_fd(fds[1]);
        fn();
        _exit(0);
    }
    close(fds[1]);
    while ((n = read(fds[0], out + len, cap - 1 - len)) > 0)
        len += (size_t)n;
    out[len] = '\0';
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void failing(void)
{
    volatile int one = 1;

    hfd_log_request_id(HFD_SLICE("req-7"));
    HFD_ASSERT(one == 2);
}

/*
 * A failed assertion writes one JSON line with expression, place and request, and kills the
 * process.
 */
static void check_assert_logs_and_aborts(void **state)
{
    char text[4096];
    int status = run_apart(failing, text, sizeof(text));
    json_t *line = json_loads(text, 0, NULL);

    (void)state;
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(line);
    assert_string_equal(json_string_value(json_object_get(line, "level")), "error");
    assert_string_equal(json_string_value(json_object_get(line, "expression")), "one == 2");
    assert_non_null(strstr(json_string_value(json_object_get(line, "file")), "test_check.c"));
    assert_true(json_integer_value(json_object_get(line, "line")) > 10);
    assert_string_equal(json_string_value(json_object_get(line, "request_id")), "req-7");
    json_decref(line);
}

struct thing {
    unsigned magic;
};

static void foreign_object(void)
{
    struct thing t = {.magic = 1};

    HFD_CHECK_OBJ(&t, 2u);
}

/* An object of another kind is caught at the border, the right one passes. */
static void check_object_magic(void **state)
{
    struct thing t = {.magic = 2};
    char text[4096];
    int status = run_apart(foreign_object, text, sizeof(text));

    (void)state;
    assert_true(WIFSIGNALED(status));
    HFD_CHECK_OBJ(&t, 2u);
}

static void doubtful(void)
{
    volatile int one = 1;

    if (HFD_NEVER(one == 2) || !HFD_NEVER(one == 1))
        _exit(3);
}

#ifndef HFD_COVERAGE
/* A broken invariant is logged and counted, and the program goes on. */
static void check_never_survives(void **state)
{
    char text[4096];
    int status = run_apart(doubtful, text, sizeof(text));

    (void)state;
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_non_null(strstr(text, "\"expression\":\"one == 1\""));
    assert_null(strstr(text, "one == 2"));
}
#endif

/* The counter of broken invariants moves. */
static void check_never_counts(void **state)
{
    struct hfd_buf b;

    (void)state;
    hfd_log_set_fd(1000000); /* the line is not needed */
    assert_true(hfd_never_happened("x", "f", 1));
    hfd_log_set_fd(-1);
    hfd_buf_init(&b, 1000000);
    hfd_metrics_render(&b);
    hfd_buf_addc(&b, '\0');
    assert_int_equal(b.rc, HFD_OK);
    assert_non_null(strstr(b.p, "\nhfd_never_total 1\n"));
    hfd_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_assert_logs_and_aborts),
        cmocka_unit_test(check_object_magic),
#ifndef HFD_COVERAGE
        cmocka_unit_test(check_never_survives),
#endif
        cmocka_unit_test(check_never_counts),
    };

    (void)doubtful;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
