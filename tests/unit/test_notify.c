/* handlers/cli/notify.c with a socket of the test's own in place of systemd's. */
#include "handlers/cli/notify.h"
#include "tests/lib/tmpdir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

/* A datagram socket. A name that begins with '@' is an abstract one. */
static int receiver(const char *name)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const size_t len = strlen(name);
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_true(fd >= 0 && len < sizeof(at.sun_path));
    memcpy(at.sun_path, name, len);
    if (name[0] == '@')
        at.sun_path[0] = '\0';
    assert_int_equal(
        bind(fd, (const struct sockaddr *)(const void *)&at,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (name[0] == '/'))),
        0);
    return fd;
}

static void assert_received(int fd, const char *text)
{
    char got[256];
    const ssize_t n = recv(fd, got, sizeof(got) - 1, 0);

    assert_true(n >= 0);
    got[n] = '\0';
    assert_string_equal(got, text);
}

static void open_and_send(const char *name)
{
    const int fd = receiver(name);
    const struct hfd_notify_env env = {.socket = name};
    struct hfd_notify n;
    struct hfd_err err;

    assert_int_equal(hfd_notify_open(&n, &env, &err), HFD_OK);
    assert_int_equal(n.watchdog_us, 0);
    assert_true(hfd_notify_send(&n, "READY=1\nSTATUS=x\n"));
    assert_received(fd, "READY=1\nSTATUS=x\n");
    (void)close(fd);
    assert_false(hfd_notify_send(&n, "STOPPING=1\n")); /* nothing listens */
    hfd_notify_close(&n);
    assert_true(hfd_notify_send(&n, "STOPPING=1\n")); /* closed: nothing to do */
}

static void a_path_is_told(void **state)
{
    char dir[TMPDIR_MAX], name[TMPDIR_MAX + 8];

    (void)state;
    tmpdir_make(dir);
    (void)snprintf(name, sizeof(name), "%s/n", dir);
    open_and_send(name);
    tmpdir_remove(dir);
}

static void an_abstract_name_is_told(void **state)
{
    char name[64];

    (void)state;
    (void)snprintf(name, sizeof(name), "@hfd-test-notify-%d", (int)getpid());
    open_and_send(name);
}

/* A queue that nothing reads fills up: the sender goes on. */
static void a_full_queue_does_not_block(void **state)
{
    char name[64];
    const struct hfd_notify_env env = {.socket = name};
    struct hfd_notify n;
    struct hfd_err err;
    int fd, sent = 0;

    (void)state;
    (void)snprintf(name, sizeof(name), "@hfd-test-full-%d", (int)getpid());
    fd = receiver(name);
    assert_int_equal(hfd_notify_open(&n, &env, &err), HFD_OK);
    while (sent < 1000000 && hfd_notify_send(&n, "WATCHDOG=1\n"))
        sent++;
    assert_in_range(sent, 1, 999999);
    hfd_notify_close(&n);
    (void)close(fd);
}

static void nothing_is_sent_without_the_variable(void **state)
{
    static const char *const none[] = {NULL, ""};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct hfd_notify_env env = {.socket = none[i], .watchdog_usec = "30000000"};
        struct hfd_notify n;
        struct hfd_err err;

        assert_int_equal(hfd_notify_open(&n, &env, &err), HFD_OK);
        assert_int_equal(n.fd, -1);
        assert_int_equal(n.watchdog_us, 0);
        assert_true(hfd_notify_send(&n, "READY=1\n"));
    }
}

static void the_watchdog_is_that_of_this_process(void **state)
{
    char own[32];
    const struct {
        const char *usec, *pid;
        int64_t us; /* -1 = refused */
    } cases[] = {
        {"30000000", NULL, 30000000},
        {"30000000", "", 30000000},
        {"30000000", own, 30000000},
        {"30000000", "1", 0},
        {NULL, own, 0},
        {"", own, 0},
        {"0", NULL, -1},
        {"-1", NULL, -1},
        {"30s", NULL, -1},
        {"30000000", "x", -1},
        {"30000000", "0", -1},
    };

    (void)state;
    (void)snprintf(own, sizeof(own), "%d", (int)getpid());
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct hfd_notify_env env = {"@hfd", cases[i].usec, cases[i].pid};
        struct hfd_notify n;
        struct hfd_err err;

        assert_int_equal(hfd_notify_open(&n, &env, &err), cases[i].us < 0 ? HFD_INVALID : HFD_OK);
        assert_int_equal(n.watchdog_us, cases[i].us < 0 ? 0 : cases[i].us);
        assert_int_equal(n.fd >= 0, cases[i].us >= 0);
        hfd_notify_close(&n);
    }
}

static void bad_addresses_are_refused(void **state)
{
    char longest[108 + 1];
    const char *const bad[] = {"run/notify", "vsock:2:1234", "/", "@", longest};

    (void)state;
    memset(longest, 'a', sizeof(longest) - 1);
    longest[0] = '/';
    longest[sizeof(longest) - 1] = '\0';
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const struct hfd_notify_env env = {.socket = bad[i]};
        struct hfd_notify n;
        struct hfd_err err = {0};

        assert_int_equal(hfd_notify_open(&n, &env, &err), HFD_INVALID);
        assert_non_null(strstr(err.msg, "NOTIFY_SOCKET"));
        assert_int_equal(n.fd, -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_is_told),
        cmocka_unit_test(an_abstract_name_is_told),
        cmocka_unit_test(a_full_queue_does_not_block),
        cmocka_unit_test(nothing_is_sent_without_the_variable),
        cmocka_unit_test(the_watchdog_is_that_of_this_process),
        cmocka_unit_test(bad_addresses_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
