/* The URL of a broker: its parts, and each form that is refused. */
#include "driver/base/amqpurl.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdlib.h>

/* clang-format off */
static const struct {
    const char *text;
    struct hfd_amqp_url parts;
} good[] = {
    {"amqp://h",                    {false, "h", 5672, "guest", "/"}},
    {"amqp://h/",                   {false, "h", 5672, "guest", "/"}},
    {"amqps://h",                   {true, "h", 5671, "guest", "/"}},
    {"amqps://u@h.example:1/v",     {true, "h.example", 1, "u", "v"}},
    {"amqp://u@10.0.0.1:65535/%2F", {false, "10.0.0.1", 65535, "u", "/"}},
    {"amqp://u@[::1]:5/%2fa%2Fb",   {false, "[::1]", 5, "u", "/a/b"}},
    {"amqp://a%40b%3Ac@h/x%20y",    {false, "h", 5672, "a@b:c", "x y"}},
};

static const struct {
    const char *text, *said;
} bad[] = {
    {"", "amqps://USER@HOST:PORT/VHOST"}, {"h:5672", "amqp"}, {"amqp:h", "amqp"},
    {"http://h/", "amqp://, or amqps://"}, {"amqpss://h", "amqp://, or amqps://"},
    {"amqp://u:geheim@h/", "events.amqp.password_file"},
    {"amqps://:geheim@h/", "events.amqp.password_file"},
    {"amqp://u:ge%68eim@h/v", "events.amqp.password_file"},
    {"amqp://h?heartbeat=3", "without ? and #"}, {"amqp://h/v#x", "without ? and #"},
    {"amqp://h:0/", "from 1 to 65535"}, {"amqp://h:65536/", "amqp"}, {"amqp://h:x/", "amqp"},
    {"amqp:///v", "amqp"}, {"amqp://h_/", "host name or address"},
    {"amqp://u@/v", "amqp"}, {"amqp://u%00@h", "without a NUL"},
};
/* clang-format on */

static void the_parts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        const struct hfd_amqp_url *wanted = &good[i].parts;
        struct hfd_amqp_url got;
        struct hfd_err err;

        if (hfd_amqp_url_parse(hfd_slice_of(good[i].text), &got, &err) != HFD_OK)
            fail_msg("%s: %s", good[i].text, err.msg);
        assert_int_equal(got.tls, wanted->tls);
        assert_int_equal(got.port, wanted->port);
        assert_string_equal(got.host, wanted->host);
        assert_string_equal(got.user, wanted->user);
        assert_string_equal(got.vhost, wanted->vhost);
    }
}

static void what_is_refused(void **state)
{
    char longest[1100] = "amqp://h/";
    struct hfd_amqp_url got;
    struct hfd_err err;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (hfd_amqp_url_parse(hfd_slice_of(bad[i].text), &got, &err) != HFD_INVALID)
            fail_msg("%s is taken", bad[i].text);
        if (strstr(err.msg, bad[i].said) == NULL || strstr(err.msg, "eheim") != NULL)
            fail_msg("%s: %s", bad[i].text, err.msg);
    }
    for (size_t len = 200; len < sizeof(longest); len += 50) { /* of a vhost: 254 at most */
        memset(longest + 9, 'v', len - 9);
        longest[len] = '\0';
        assert_int_equal(hfd_amqp_url_parse(hfd_slice_of(longest), &got, &err),
                         len - 9 <= 254 ? HFD_OK : HFD_INVALID);
        if (len - 9 <= 254)
            assert_int_equal(strlen(got.vhost), len - 9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parts),
        cmocka_unit_test(what_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
