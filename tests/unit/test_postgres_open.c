/* Opening a connection that cannot be had. No server is needed. */
#include "driver/base/clock.h"
#include "driver/base/password.h"
#include "store/db.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_US (HFD_US_PER_S / 5)
#define GENEROUS_US (60 * HFD_US_PER_S)

/* A socket that takes connections and never says a word, as a server that is paused. */
static int silent_server(int *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

static hfd_rc try_open(const struct hfd_store_place *place, struct hfd_err *err)
{
    struct hfd_db *db;
    const hfd_rc rc = hfd_db_open(place, HFD_DB_WRITER, &db, err);

    assert_null(db);
    assert_null(strstr(err->msg, "geheim"));
    return rc;
}

/* Each host has its own deadline: a silent one does not take the time of the next one. */
static void a_silent_server_is_away(void **state)
{
    char url[128];
    struct hfd_store_place place = {.url = url, .connect_timeout_us = WAIT_US};
    const int64_t began_us = hfd_clock_mono_us(&hfd_clock_system);
    struct hfd_err err;
    int port;
    const int fd = silent_server(&port);

    (void)state;
    (void)snprintf(url, sizeof(url), "postgres://u:geheim@127.0.0.1:%d/d?sslmode=disable", port);
    assert_int_equal(try_open(&place, &err), HFD_AWAY);
    assert_non_null(strstr(err.msg, "127.0.0.1 does not answer within store.connect_timeout"));
    assert_true(hfd_clock_mono_us(&hfd_clock_system) - began_us >= WAIT_US);
    /* The second host has no server at all, and is tried: its failure is the last one. */
    (void)snprintf(url, sizeof(url),
                   "postgres://u:geheim@127.0.0.1:%d,127.0.0.1:1/d?sslmode=disable", port);
    assert_int_equal(try_open(&place, &err), HFD_AWAY);
    assert_non_null(strstr(err.msg, "port 1 failed"));
    assert_true(hfd_clock_mono_us(&hfd_clock_system) - began_us < GENEROUS_US);
    (void)close(fd);
}

static void bad_places_are_refused(void **state)
{
    static const struct {
        struct hfd_store_place place;
        hfd_rc rc;
        const char *said;
    } cases[] = {
        {{.url = "postgres://u:geheim@[::1/d"}, HFD_INVALID, "no URL of PostgreSQL"},
        {{.url = "postgres://u:geheim@127.0.0.1/d?wrong=1"}, HFD_INVALID, "no URL of PostgreSQL"},
        {{.url = "postgres://u@127.0.0.1:1/d", .password_file = "/nonexistent/pw"},
         HFD_IO,
         "store.password_file: read /nonexistent/pw"},
        {{.url = "postgres://u@127.0.0.1:1/d", .password_file = "/dev/null"},
         HFD_INVALID,
         "holds no password"},
        {{.url = "postgres://u@127.0.0.1:1/d"}, HFD_AWAY, "port 1 failed"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hfd_err err;

        assert_int_equal(try_open(&cases[i].place, &err), cases[i].rc);
        if (strstr(err.msg, cases[i].said) == NULL)
            fail_msg("%s: %s", cases[i].said, err.msg);
    }
}

/* Each text of a file of passwords, and what becomes of it. */
static void a_password_is_one_line(void **state)
{
    static char longest[HFD_PASSWORD_MAX], too_long[HFD_PASSWORD_MAX + 1];
    const struct {
        hfd_slice text;
        const char *password, *said;
    } cases[] = {
        {HFD_SLICE("x"), "x", NULL},
        {HFD_SLICE("with a space\n"), "with a space", NULL},
        {HFD_SLICE(" x \r\n\n"), " x ", NULL},
        {{longest, sizeof(longest) - 1}, longest, NULL},
        {HFD_SLICE(""), NULL, ": it holds no password"},
        {HFD_SLICE("\n\n"), NULL, ": it holds no password"},
        {HFD_SLICE("one\ntwo\n"), NULL, ": expected one password on one line"},
        {HFD_SLICE("\nx"), NULL, ": expected one password on one line"},
        {HFD_SLICE("a\0b"), NULL, ": expected one password on one line"},
        {{too_long, sizeof(too_long) - 1}, NULL, ": it is too long"},
        {{too_long, sizeof(too_long)}, NULL, ": it is too long"},
    };
    char path[] = "/tmp/hfd-password-XXXXXX", password[HFD_PASSWORD_MAX];
    const int fd = mkstemp(path);

    (void)state;
    memset(longest, 'x', sizeof(longest) - 1);
    memset(too_long, 'x', sizeof(too_long));
    assert_true(fd >= 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hfd_err err = {0};
        hfd_rc rc;

        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, cases[i].text.p, cases[i].text.len, 0), cases[i].text.len);
        rc = hfd_password_read("store.password_file", path, password, &err);
        assert_int_equal(rc, cases[i].password != NULL ? HFD_OK : HFD_INVALID);
        if (cases[i].password != NULL)
            assert_string_equal(password, cases[i].password);
        else if (strstr(err.msg, cases[i].said) == NULL)
            fail_msg("%zu: %s", i, err.msg);
    }
    (void)close(fd);
    (void)unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_silent_server_is_away),
        cmocka_unit_test(bad_places_are_refused),
        cmocka_unit_test(a_password_is_one_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
