/*
 * handlers/settings/network.c and handlers/http/head.c: addresses with and without ports,
 * networks, and the clients behind proxies.
 */
#include "handlers/http/head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* An address may have a port; other text is none. */
static void addresses_are_parsed(void **state)
{
    static const struct {
        const char *text, *address; /* NULL = refused */
    } cases[] = {
        {"192.0.2.1", "192.0.2.1"},
        {"192.0.2.1:80", "192.0.2.1"},
        {"2001:DB8::1", "2001:db8::1"},
        {"[2001:db8::1]", "2001:db8::1"},
        {"[2001:db8::1]:443", "2001:db8::1"},
        {"::ffff:192.0.2.1", "192.0.2.1"},
        {"", NULL},
        {"unknown", NULL},
        {"unix", NULL},
        {"_hidden", NULL},
        {"192.0.2", NULL},
        {"192.0.2.1:", NULL},
        {"192.0.2.1:x", NULL},
        {"192.0.2.1:65536", NULL},
        {"[2001:db8::1", NULL},
        {"[2001:db8::1]x", NULL},
        {"2001:db8::1]:443", NULL},
        {"192.0.2.1/24", NULL},
        {"fe80::1%eth0", NULL},
        {"1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc:dddd", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hfd_host_address a;
        char text[HFD_IP_TEXT_MAX];
        const bool ok = hfd_host_address_parse(hfd_slice_of(cases[i].text), &a);

        hfd_host_address_format(&a, text);
        if (ok != (cases[i].address != NULL) ||
            strcmp(text, cases[i].address != NULL ? cases[i].address : "unknown") != 0)
            fail_msg("\"%s\" is %s", cases[i].text, text);
    }
}

/* A network has the addresses that share its first bits. */
static void networks_have_addresses(void **state)
{
    static const struct {
        const char *network, *address;
        bool has;
    } cases[] = {
        {"10.0.0.0/8", "10.255.1.2", true},
        {"10.0.0.0/8", "11.0.0.1", false},
        {"10.0.0.0/8", "::ffff:10.1.1.1", true},
        {"10.1.2.3", "10.1.2.3", true},
        {"10.1.2.3", "10.1.2.2", false},
        {"10.1.2.3/31", "10.1.2.2", true},
        {"10.1.2.128/25", "10.1.2.127", false},
        {"10.1.2.128/25", "10.1.2.200", true},
        {"0.0.0.0/0", "203.0.113.9", true},
        {"0.0.0.0/0", "2001:db8::1", false},
        {"::/0", "203.0.113.9", true},
        {"2001:db8::/33", "2001:db8:7fff::1", true},
        {"2001:db8::/33", "2001:db8:8000::1", false},
        {"::1", "::1", true},
        {"::1", "127.0.0.1", false},
        {"unix", "127.0.0.1", false},
    };
    static const char *const bad[] = {
        "",          "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "2001:db8::/129",
        "localhost", "10.0.0.0:80", "[::1]",     "Unix"};
    const struct hfd_host_address local = {.local = true}, none = {.known = false};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hfd_host_address a;

        assert_true(hfd_network_is_valid(hfd_slice_of(cases[i].network)));
        assert_true(hfd_host_address_parse(hfd_slice_of(cases[i].address), &a));
        if (hfd_network_has(hfd_slice_of(cases[i].network), &a) != cases[i].has)
            fail_msg("%s in %s", cases[i].address, cases[i].network);
        assert_int_equal(hfd_network_has(hfd_slice_of(cases[i].network), &local),
                         strcmp(cases[i].network, "unix") == 0);
        assert_false(hfd_network_has(hfd_slice_of(cases[i].network), &none));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (hfd_network_is_valid(hfd_slice_of(bad[i])))
            fail_msg("\"%s\" is taken", bad[i]);
}

/*
 * Behind a trusted proxy the client is the last hop that is none. A hop that is no address is an
 * unknown client, and never the proxy.
 */
static void clients_behind_proxies(void **state)
{
    static hfd_slice proxies[] = {HFD_SLICE("127.0.0.0/8"), HFD_SLICE("fd00::/8"),
                                  HFD_SLICE("unix")};
    static const struct hfd_settings settings = {.http_trusted_proxies = {proxies, 3}};
    static const struct {
        const char *lines, *client;
    } cases[] = {
        {"Host: x\r\n", "127.0.0.1"},
        {"X-Forwarded: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\n", "127.0.0.1"},
        {"X-Forwarded-For: 6.6.6.6\r\n", "6.6.6.6"},
        {"x-forwarded-FOR:6.6.6.6\t\r\n", "6.6.6.6"},
        {"X-Forwarded-For: 6.6.6.6:80\r\n", "6.6.6.6"},
        {"X-Forwarded-For: 2001:db8::1\r\n", "2001:db8::1"},
        {"X-Forwarded-For: [2001:db8::1]:443\r\n", "2001:db8::1"},
        {"X-Forwarded-For: 6.6.6.6, 7.7.7.7\r\n", "7.7.7.7"},
        {"X-Forwarded-For: 6.6.6.6 ,127.0.0.2,  fd00::1\r\n", "6.6.6.6"},
        {"X-Forwarded-For: 127.0.0.2, 127.0.0.3\r\n", "127.0.0.2"},
        {"X-Forwarded-For: 6.6.6.6\r\nA: 9.9.9.9\r\nX-Forwarded-For: 7.7.7.7\r\n", "7.7.7.7"},
        {"X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 127.0.0.2\r\n", "6.6.6.6"},
        {"X-Forwarded-For: garbage, 6.6.6.6\r\n", "6.6.6.6"},
        {"X-Forwarded-For: 6.6.6.6, garbage, 127.0.0.2\r\n", "unknown"},
        {"X-Forwarded-For: 6.6.6.6, garbage\r\n", "unknown"},
        {"X-Forwarded-For: garbage\r\nX-Forwarded-For: 127.0.0.2\r\n", "unknown"},
        {"X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: garbage\r\n", "unknown"},
        {"X-Forwarded-For: unknown\r\n", "unknown"},
        {"X-Forwarded-For: unix\r\n", "unknown"},
        {"X-Forwarded-For: _hidden\r\n", "unknown"},
        {"X-Forwarded-For: localhost\r\n", "unknown"},
        {"X-Forwarded-For: \"6.6.6.6\"\r\n", "unknown"},
        {"X-Forwarded-For: \"127.0.0.1\"\r\n", "unknown"},
        {"X-Forwarded-For: for=6.6.6.6\r\n", "unknown"},
        {"X-Forwarded-For: fe80::1%eth0\r\n", "unknown"},
        {"X-Forwarded-For: [fe80::1%25eth0]:80\r\n", "unknown"},
        {"X-Forwarded-For: 127.0.0.0/8\r\n", "unknown"},
        {"X-Forwarded-For: 127.1\r\n", "unknown"},
        {"X-Forwarded-For: 0x7f000001\r\n", "unknown"},
        {"X-Forwarded-For: 127.0.0.1:\r\n", "unknown"},
        {"X-Forwarded-For: 6.6.6.6;127.0.0.1\r\n", "unknown"},
        {"X-Forwarded-For: 6.6.6.6 127.0.0.1\r\n", "unknown"},
        {"X-Forwarded-For:\r\n", "unknown"},
        {"X-Forwarded-For: \t\r\n", "unknown"},
        {"X-Forwarded-For: ,\r\n", "unknown"},
        {"X-Forwarded-For: 6.6.6.6,\r\n", "unknown"},
        {"X-Forwarded-For: 6.6.6.6, , 127.0.0.2\r\n", "unknown"},
    };
    static const struct hfd_host_address sock = {.local = true};
    const hfd_slice foreign = HFD_SLICE("G / HTTP/1.1\r\nX-Forwarded-For: 127.0.0.1\r\n\r\n");
    struct hfd_host_address proxy, caller, client;
    char text[HFD_IP_TEXT_MAX], head[256];

    (void)state;
    assert_true(hfd_host_address_parse(HFD_SLICE("127.0.0.1"), &proxy));
    assert_true(hfd_host_address_parse(HFD_SLICE("192.0.2.1"), &caller));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void)snprintf(head, sizeof(head), "GET / HTTP/1.1\r\n%s\r\n", cases[i].lines);
        client = hfd_peer_client(&settings, &proxy, hfd_slice_of(head));
        hfd_host_address_format(&client, text);
        if (strcmp(text, cases[i].client) != 0)
            fail_msg("\"%s\" is %s", cases[i].lines, text);
        client = hfd_peer_client(&settings, &sock, hfd_slice_of(head));
        assert_true(client.local == (strcmp(cases[i].client, "127.0.0.1") == 0));
        if (strcmp(text, "unknown") == 0)
            assert_false(hfd_peer_is_in(&settings.http_trusted_proxies, &client));
    }
    client = hfd_peer_client(&settings, &caller, foreign);
    assert_memory_equal(client.bytes, caller.bytes, sizeof(caller.bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_parsed),
        cmocka_unit_test(networks_have_addresses),
        cmocka_unit_test(clients_behind_proxies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
