/* handlers/http/head.c: which requests come from a web page elsewhere. */
#include "handlers/http/head.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct sent {
    const char *host, *authority, *origin, *fetch_site;
};

static hfd_slice slice_of(const char *text)
{
    return text != NULL ? hfd_slice_of(text) : HFD_SLICE_NONE;
}

/* Returns the status of the refusal; 0 if the request passes. */
static int status_of(const struct sent *s, const struct hfd_list *hosts)
{
    struct hfd_head head = {.host = slice_of(s->host),
                            .authority = slice_of(s->authority),
                            .origin = slice_of(s->origin),
                            .fetch_site = slice_of(s->fetch_site)};
    struct hfd_head_fault fault = {0};

    if (hfd_origin_check(&(struct hfd_origin_rule){.hosts = hosts, .local = true}, &head, &fault) ==
        HFD_HEAD_OK)
        return 0;
    assert_non_null(fault.text);
    assert_string_equal(fault.reason, fault.status == 421 ? "foreign_host" : "foreign_origin");
    return fault.status;
}

/* A host passes when it is a loopback name, a loopback address or listed; an origin when its own.
 */
static void each_sender(void **state)
{
    static hfd_slice names[] = {HFD_SLICE("driver.example"), HFD_SLICE("[fd00::1]")};
    static const struct hfd_list hosts = {names, 2};
    static const struct {
        struct sent sent;
        int status;
    } cases[] = {
        {{NULL, NULL, NULL, NULL}, 0}, /* HTTP/1.0 */
        {{"localhost", NULL, NULL, NULL}, 0},
        {{"LocalHost:8000", NULL, NULL, NULL}, 0},
        {{"127.0.0.1", NULL, NULL, NULL}, 0},
        {{"127.255.3.4:1", NULL, NULL, NULL}, 0},
        {{"[::1]", NULL, NULL, NULL}, 0},
        {{"[::1]:8080", NULL, NULL, NULL}, 0},
        {{"[0:0:0:0:0:0:0:1]:8080", NULL, NULL, NULL}, 0},
        {{"driver.example", NULL, NULL, NULL}, 0},
        {{"DRIVER.example:443", NULL, NULL, NULL}, 0},
        {{"[fd00::1]:8000", NULL, NULL, NULL}, 0},
        {{"evil.example", NULL, NULL, NULL}, 421},
        {{"driver.example.evil", NULL, NULL, NULL}, 421},
        {{"localhost.evil", NULL, NULL, NULL}, 421},
        {{"127.0.0.1.evil", NULL, NULL, NULL}, 421},
        {{"128.0.0.1", NULL, NULL, NULL}, 421},
        {{"2130706433", NULL, NULL, NULL}, 421},
        {{"127.1", NULL, NULL, NULL}, 421},
        {{"0.0.0.0", NULL, NULL, NULL}, 421},
        {{"[::2]", NULL, NULL, NULL}, 421},
        {{"[::ffff:127.0.0.1]", NULL, NULL, NULL}, 421},
        {{"[::1", NULL, NULL, NULL}, 421},
        {{"[::1].evil", NULL, NULL, NULL}, 421},
        {{"localhost:x", NULL, NULL, NULL}, 421},
        {{"localhost@evil", NULL, NULL, NULL}, 421},
        {{"localhost", "localhost:8000", NULL, NULL}, 0},
        {{"localhost", "evil.example", NULL, NULL}, 421},
        {{"evil.example", "localhost", NULL, NULL}, 421},
        {{"localhost:8000", NULL, "http://localhost:8000", NULL}, 0},
        {{"127.0.0.1", NULL, "https://driver.example", NULL}, 0},
        {{"driver.example", NULL, "https://driver.example", NULL}, 0},
        {{"localhost:8000", NULL, "http://localhost:3000", NULL}, 403},
        {{"localhost:8000", NULL, "http://localhost", NULL}, 403},
        {{"localhost", NULL, "https://evil.example", NULL}, 403},
        {{"localhost", NULL, "null", NULL}, 403},
        {{"localhost", NULL, "", NULL}, 403},
        {{"localhost", NULL, "localhost", NULL}, 403},
        {{"localhost", NULL, NULL, "none"}, 0},
        {{"localhost", NULL, NULL, "same-origin"}, 0},
        {{"localhost", NULL, NULL, "same-site"}, 403},
        {{"localhost", NULL, NULL, "cross-site"}, 403},
        {{"localhost", NULL, NULL, ""}, 403},
        {{"localhost:1", NULL, "http://localhost:1", "cross-site"}, 403},
        {{"evil.example", NULL, "http://evil.example", "same-origin"}, 421},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const int status = status_of(&cases[i].sent, &hosts);

        if (status != cases[i].status)
            fail_msg("case %zu: %d instead of %d", i, status, cases[i].status);
    }
}

/* With authentication a page of another origin may read, but nothing of /admin; any host will do.
 */
static void each_reader(void **state)
{
    static const struct hfd_list hosts = {NULL, 0};
    static const struct {
        const char *method, *origin, *fetch_site;
        bool admin, passes;
    } cases[] = {
        {"GET", "https://evil.example", "cross-site", false, true},
        {"HEAD", "null", NULL, false, true},
        {"GET", "https://evil.example", NULL, true, false},
        {"HEAD", "null", NULL, true, false},
        {"GET", NULL, "cross-site", true, false},
        {"GET", NULL, "same-site", true, false},
        {"HEAD", NULL, "cross-site", true, false},
        {"GET", "https://driver.example", "cross-site", true, false},
        {"GET", "https://evil.example", "same-origin", true, false},
        {"GET", "https://driver.example", "same-origin", true, true},
        {"GET", NULL, "none", true, true},
        {"GET", NULL, NULL, true, true},
        {"DELETE", NULL, "cross-site", true, false},
        {"DELETE", NULL, "cross-site", false, false},
        {"get", NULL, "cross-site", false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct hfd_head head = {.method = hfd_slice_of(cases[i].method),
                                      .host = HFD_SLICE("driver.example"),
                                      .origin = slice_of(cases[i].origin),
                                      .fetch_site = slice_of(cases[i].fetch_site)};
        const struct hfd_origin_rule rule = {
            .hosts = &hosts, .authenticated = true, .admin = cases[i].admin, .local = true};
        struct hfd_head_fault fault = {0};

        if ((hfd_origin_check(&rule, &head, &fault) == HFD_HEAD_OK) != cases[i].passes ||
            fault.status != (cases[i].passes ? 0 : 403))
            fail_msg("case %zu: %d", i, fault.status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_sender),
        cmocka_unit_test(each_reader),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
