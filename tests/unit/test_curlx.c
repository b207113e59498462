/* driver/base/curlx.c: what all users of libcurl share. */
#include "driver/base/base.h"
#include "driver/base/curlx.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void header_lines_have_libcurls_forms(void **state)
{
    struct curl_slist *list = NULL;
    struct hfd_secret token = {0};
    const struct curl_slist *h;

    (void)state;
    assert_true(hfd_curlx_bearer_add(&list, &token)); /* no token, no line */
    assert_null(list);
    assert_true(hfd_curlx_line_add(&list, "Expect:"));
    assert_true(hfd_curlx_header_add(&list, "X-Name", HFD_SLICE("a value")));
    assert_true(hfd_curlx_header_add(&list, "X-Empty", HFD_SLICE("")));
    assert_int_equal(hfd_secret_init(&token, 3, NULL), HFD_OK);
    memcpy(token.p, "abc", 3);
    assert_true(hfd_curlx_bearer_add(&list, &token));
    hfd_secret_fini(&token);
    h = list;
    assert_string_equal(h->data, "Expect:");
    h = h->next;
    assert_string_equal(h->data, "X-Name: a value");
    h = h->next;
    assert_string_equal(h->data, "X-Empty;");
    h = h->next;
    assert_string_equal(h->data, "Authorization: Bearer abc");
    assert_null(h->next);
    hfd_curlx_headers_free(&list);
    assert_null(list);
}

static void a_line_that_is_too_long_changes_nothing(void **state)
{
    static char value[(256 << 10) + 1];
    struct curl_slist *list = NULL;

    (void)state;
    memset(value, 'a', sizeof(value));
    assert_true(hfd_curlx_line_add(&list, "Expect:"));
    assert_false(hfd_curlx_header_add(&list, "X", (hfd_slice){value, sizeof(value)}));
    assert_string_equal(list->data, "Expect:");
    assert_null(list->next);
    hfd_curlx_headers_free(&list);
}

/* The scheme of a URL counts when the transfer begins, so nothing has to listen. */
static void the_limits_refuse_other_schemes(void **state)
{
    static const char *const urls[] = {"file:///etc/hostname", "ftp://127.0.0.1/", "gopher://h/"};
    const struct hfd_curlx_limits limits = {.connect_timeout_us = 1000000, .timeout_us = 1000000};

    (void)state;
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        const hfd_slice half = {urls[i], 3}, rest = hfd_slice_of(urls[i] + 3);
        const hfd_slice pieces[] = {half, rest};
        CURL *easy = curl_easy_init();
        CURLcode code;

        assert_non_null(easy);
        assert_int_equal(hfd_curlx_set_limits(easy, &limits), CURLE_OK);
        assert_int_equal(hfd_curlx_set_url(easy, pieces, 2), CURLE_OK);
        code = curl_easy_perform(easy);
        assert_int_equal(code, CURLE_UNSUPPORTED_PROTOCOL);
        assert_string_equal(hfd_curlx_meaning(code), "it does not speak HTTP/1.1");
        curl_easy_cleanup(easy);
    }
    assert_null(hfd_curlx_meaning(CURLE_PARTIAL_FILE));
}

static int start(void **state)
{
    (void)state;
    return hfd_base_init(NULL) == HFD_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_lines_have_libcurls_forms),
        cmocka_unit_test(a_line_that_is_too_long_changes_nothing),
        cmocka_unit_test(the_limits_refuse_other_schemes),
    };

    return cmocka_run_group_tests(tests, start, NULL);
}
