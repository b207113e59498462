/*
 * driver/base/http_client.c: what fails without a server. Requests and answers are tested against
 * servers, in tests/unit/test_remote_http.c and in the tests of the commands.
 */
#include "driver/base/base.h"
#include "driver/base/http_client.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct fixture {
    struct hfd_http_client *client;
    struct hfd_http_server server;
    struct hfd_http_call call;
    struct hfd_http_answer answer;
};

static void start_up(struct fixture *f, const char *url)
{
    *f = (struct fixture){.server = {.connect_timeout_us = HFD_US_PER_S,
                                     .timeout_us = HFD_US_PER_S,
                                     .answer_max_bytes = 100},
                          .call = {.server = &f->server,
                                   .method = "GET",
                                   .url = {{url, 3}, hfd_slice_of(url + 3)},
                                   .answer = &f->answer}};
    assert_int_equal(hfd_http_client_open(&hfd_clock_system, 0, &f->client, NULL), HFD_OK);
}

static void tear_down(struct fixture *f)
{
    hfd_http_call_end(&f->call);
    hfd_http_answer_fini(&f->answer);
    hfd_http_client_close(&f->client);
    assert_null(f->client);
}

static void a_header_that_is_too_long_sends_nothing(void **state)
{
    static char value[(256 << 10) + 1];
    struct fixture f;

    (void)state;
    memset(value, 'a', sizeof(value));
    start_up(&f, "http://127.0.0.1/");
    f.call.headers[0] = (struct hfd_http_header){"X", {value, sizeof(value)}};
    assert_false(hfd_http_call_start(f.client, &f.call));
    assert_false(hfd_http_call_is_open(&f.call));
    tear_down(&f);
}

/* The scheme of a URL counts when the transfer begins, so nothing has to listen. */
static void other_schemes_are_refused(void **state)
{
    static const char *const urls[] = {"file:///etc/hostname", "ftp://127.0.0.1/", "gopher://h/"};

    (void)state;
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct fixture f;

        start_up(&f, urls[i]);
        assert_true(hfd_http_call_start(f.client, &f.call));
        while (hfd_http_call_is_open(&f.call))
            assert_true(hfd_http_client_run(f.client, HFD_US_PER_S));
        assert_int_equal(f.answer.rc, HFD_TIMEOUT);
        assert_int_equal(f.answer.status, 0);
        assert_string_equal(f.answer.meaning, "it does not speak HTTP/1.1");
        tear_down(&f);
    }
}

static int start(void **state)
{
    (void)state;
    return hfd_base_init(NULL) == HFD_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_header_that_is_too_long_sends_nothing),
        cmocka_unit_test(other_schemes_are_refused),
    };

    return cmocka_run_group_tests(tests, start, NULL);
}
