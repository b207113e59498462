/* driver/base/url.c: hosts and base URLs by form. */
#include "driver/base/url.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* The forms that an operator may write, and the error for every other form. */
static void base_urls_are_checked_by_form(void **state)
{
    static const struct {
        const char *text;
        const char *says; /* NULL = fine */
    } cases[] = {
        {"http://h", NULL},
        {"https://hyperfleet.example", NULL},
        {"https://hyperfleet.example/", NULL},
        {"https://hyperfleet.example:8443/gateway/v1", NULL},
        {"http://127.0.0.1:1", NULL},
        {"http://[::1]:65535/", NULL},
        {"https://a/%20b", NULL},
        {"", "expected a URL:"},
        {"embedded ", "expected a URL:"},
        {"ftp://h/", "expected a URL:"},
        {"HTTP://h/", "expected a URL:"},
        {"unix:///run/x", "expected a URL:"},
        {"http://", "with a host"},
        {"http:///path", "with a host"},
        {"http://?q", "with a host"},
        {"http://a b/", "with a host"},
        {"http://a_b/", "with a host"},
        {"http://300.1.1.1/", "with a host"},
        {"http://[::1", "with a host"},
        {"http://[zz]/", "with a host"},
        {"http://[]", "with a host"},
        {"http://u:p@h/", "without user"},
        {"http://u@h", "without user"},
        {"http://h:0/", "a port"},
        {"http://h:", "a port"},
        {"http://h:65536", "a port"},
        {"http://h:1x", "a port"},
        {"http://h:0000001", "a port"},
        {"http://[::1]x", "a port"},
        {"http://h/?a=b", "without query"},
        {"http://h?a", "without query"},
        {"http://h/#f", "without query"},
        {"http://h/a b", "path"},
        {"http://h/%2", "path"},
        {"http://h/%zz", "path"},
        {"http://h/\n", "path"},
        {"http://h/\xc3\xa4", "path"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hfd_err err = {0};
        hfd_rc rc = hfd_url_check(hfd_slice_of(cases[i].text), &err);

        if ((rc == HFD_OK) != (cases[i].says == NULL))
            fail_msg("%s: %s", cases[i].text, rc == HFD_OK ? "was taken" : err.msg);
        if (cases[i].says != NULL && strstr(err.msg, cases[i].says) == NULL)
            fail_msg("%s: said \"%s\"", cases[i].text, err.msg);
    }
}

/* A password in the URL is not repeated in the error. */
static void a_refusal_quotes_nothing(void **state)
{
    struct hfd_err err = {0};

    (void)state;
    assert_int_equal(hfd_url_check(HFD_SLICE("https://me:geheim@h/"), &err), HFD_INVALID);
    assert_null(strstr(err.msg, "geheim"));
}

/* A URL has a maximum length, and a NUL within does not end it. */
static void long_and_odd_urls_are_refused(void **state)
{
    static char text[2048];
    struct hfd_err err;

    (void)state;
    memset(text, 'a', sizeof(text));
    memcpy(text, "http://h/", 9);
    assert_int_equal(hfd_url_check((hfd_slice){text, 1024}, &err), HFD_OK);
    assert_int_equal(hfd_url_check((hfd_slice){text, 1025}, &err), HFD_INVALID);
    assert_int_equal(hfd_url_check(HFD_SLICE("http://h\0x/"), &err), HFD_INVALID);
    assert_int_equal(hfd_url_check(HFD_SLICE("http://h/\0"), &err), HFD_INVALID);
    assert_int_equal(hfd_url_check(HFD_SLICE_NONE, &err), HFD_INVALID);
}

/* The parsed host decides what this machine is. The first characters of the URL do not. */
static void this_machine_is_told_by_the_parsed_host(void **state)
{
    static const struct {
        const char *url;
        bool here;
    } cases[] = {
        {"http://127.0.0.1", true},
        {"http://127.0.0.1:8080/x", true},
        {"https://127.200.3.4/", true},
        {"http://localhost", true},
        {"http://LocalHost:80", true},
        {"http://[::1]", true},
        {"http://[::1]:80/", true},
        {"http://[0:0:0:0:0:0:0:1]/", true},
        {"http://127.0.0.1.evil.example:80", false},
        {"http://127.evil.example:6443", false},
        {"http://127.0.0.1:80.evil.example", false},
        {"http://127.0.0.1:@evil.example", false},
        {"http://127.0.0.1@evil.example", false},
        {"http://evil.example/@127.0.0.1", false},
        {"http://evil.example?127.0.0.1", false},
        {"http://evil.example#@localhost", false},
        {"http://localhost.evil.invalid/", false},
        {"http://localhost:80@evil.example", false},
        {"http://localhostess", false},
        {"http://xlocalhost", false},
        {"http://localhost.", false},
        {"http://[::1].evil.example", false},
        {"http://[::1]evil.example", false},
        {"http://[::1", false},
        {"http://[::2]", false},
        {"http://[::]", false},
        {"http://[::ffff:127.0.0.1]", false},
        {"http://[::ffff:8.8.8.8]", false},
        {"http://[::127.0.0.1]", false},
        {"http://[::1%25lo]", false},
        {"http://127.1", false},
        {"http://2130706433", false},
        {"http://0x7f.0.0.1", false},
        {"http://0177.0.0.1", false},
        {"http://0.0.0.0", false},
        {"http://128.0.0.1", false},
        {"http://0127.0.0.1", false},
        {"localhost", false},
        {"http:localhost", false},
        {"http://", false},
        {"", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (hfd_url_is_loopback(hfd_slice_of(cases[i].url)) != cases[i].here)
            fail_msg("%s: %s", cases[i].url, cases[i].here ? "is not here" : "is here");
    assert_false(hfd_url_is_loopback(HFD_SLICE("http://localhost\0.evil/")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base_urls_are_checked_by_form),
        cmocka_unit_test(a_refusal_quotes_nothing),
        cmocka_unit_test(long_and_odd_urls_are_refused),
        cmocka_unit_test(this_machine_is_told_by_the_parsed_host),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
