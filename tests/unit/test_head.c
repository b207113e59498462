/* handlers/http/head.c: what is a request, byte by byte, and where it ends. */
#include "handlers/http/head.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define HOST "Host: a\r\n"
#define LINE "GET /x HTTP/1.1\r\n"

struct outcome {
    enum hfd_head_verdict verdict;
    struct hfd_head_fault fault;
    struct hfd_head head;
};

/* Scans in steps of `step` bytes, as a socket may give them, and parses. */
static struct outcome read_head(const char *bytes, size_t len, size_t step)
{
    struct outcome o = {.verdict = HFD_HEAD_MORE};
    struct hfd_head_scan scan = {0};

    for (size_t have = 0; have < len && o.verdict == HFD_HEAD_MORE;) {
        have = len - have < step ? len : have + step;
        o.verdict = hfd_head_scan(&scan, bytes, have, &o.fault);
    }
    if (o.verdict == HFD_HEAD_OK)
        o.verdict = hfd_head_parse(&scan, bytes, &o.head, &o.fault);
    return o;
}

static struct outcome read_text(const char *text)
{
    return read_head(text, strlen(text), strlen(text));
}

/* Each malformed head is refused with its status and reason, whatever pieces it comes in. */
static void bad_heads_are_refused(void **state)
{
    static const struct {
        const char *text;
        int status;
        const char *reason;
    } cases[] = {
        {LINE "\r\n", 400, "no_host"},
        {LINE "X: y\r\n\r\n", 400, "no_host"},
        {LINE HOST HOST "\r\n", 400, "two_hosts"},
        {LINE HOST "hOST: b\r\n\r\n", 400, "two_hosts"},
        {LINE "Host:\r\n\r\n", 400, "host"},
        {LINE "Host: a, b\r\n\r\n", 400, "host"},
        {LINE "Host: a b\r\n\r\n", 400, "host"},
        {LINE "Host: http://a\r\n\r\n", 400, "host"},
        {LINE "Host: u@a\r\n\r\n", 400, "host"},
        {LINE HOST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "both_lengths"},
        {LINE HOST "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n", 400, "both_lengths"},
        {LINE HOST "Content-Length: 3\r\nContent-Length: 4\r\n\r\n", 400, "two_lengths"},
        {LINE HOST "Content-Length: 3\r\nContent-Length: 03\r\nContent-Length: 5\r\n\r\n", 400,
         "two_lengths"},
        {LINE HOST "Content-Length: 3, 3\r\n\r\n", 400, "content_length"},
        {LINE HOST "Content-Length: +3\r\n\r\n", 400, "content_length"},
        {LINE HOST "Content-Length: -3\r\n\r\n", 400, "content_length"},
        {LINE HOST "Content-Length: 0x3\r\n\r\n", 400, "content_length"},
        {LINE HOST "Content-Length:\r\n\r\n", 400, "content_length"},
        {LINE HOST "Content-Length: 99999999999999999999\r\n\r\n", 400, "content_length"},
        {LINE HOST "Transfer-Encoding: gzip\r\n\r\n", 400, "transfer_encoding"},
        {LINE HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", 400, "transfer_encoding"},
        {LINE HOST "Transfer-Encoding: xchunked\r\n\r\n", 400, "transfer_encoding"},
        {LINE HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400,
         "transfer_encoding"},
        {LINE HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n", 400,
         "transfer_encoding"},
        {"PUT /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "transfer_encoding"},
        {LINE HOST "Expect: something\r\n\r\n", 417, "expectation"},
        {"GET /x HTTP/1.1\nHost: a\r\n\r\n", 400, "bare_lf"},
        {LINE "Host: a\n\r\n", 400, "bare_lf"},
        {LINE HOST "\n", 400, "bare_lf"},
        {LINE HOST "X: a\rb\r\n\r\n", 400, "header_syntax"},
        {LINE HOST "X: a\r\n b\r\n\r\n", 400, "header_syntax"},
        {LINE HOST "X : a\r\n\r\n", 400, "header_syntax"},
        {LINE HOST "X\r\n\r\n", 400, "header_syntax"},
        {LINE HOST ": a\r\n\r\n", 400, "header_syntax"},
        {LINE HOST "X: \x01\r\n\r\n", 400, "header_syntax"},
        {LINE HOST "X: \x7f\r\n\r\n", 400, "header_syntax"},
        {"\r\n\r\n" LINE HOST "\r\n", 400, "request_line"},
        {" GET /x HTTP/1.1\r\n" HOST "\r\n", 400, "request_line"},
        {"GET  /x HTTP/1.1\r\n" HOST "\r\n", 400, "request_line"},
        {"GET /x  HTTP/1.1\r\n" HOST "\r\n", 400, "version"},
        {"GET /x y HTTP/1.1\r\n" HOST "\r\n", 400, "version"},
        {"GET /x\r\n\r\n", 400, "request_line"},
        {"GET\r\n\r\n", 400, "request_line"},
        {"GET /x#f HTTP/1.1\r\n" HOST "\r\n", 400, "request_line"},
        {"GET /\xc3\xa4 HTTP/1.1\r\n" HOST "\r\n", 400, "request_line"},
        {"GET /x HTTP/1.2\r\n" HOST "\r\n", 400, "version"},
        {"GET /x HTTP/2.0\r\n" HOST "\r\n", 400, "version"},
        {"GET /x http/1.1\r\n" HOST "\r\n", 400, "version"},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "version"},
        {"OPTIONS * HTTP/1.1\r\n" HOST "\r\n", 400, "target_form"},
        {"CONNECT a:80 HTTP/1.1\r\n" HOST "\r\n", 400, "target_form"},
        {"GET x HTTP/1.1\r\n" HOST "\r\n", 400, "target_form"},
        {"GET http:// HTTP/1.1\r\n" HOST "\r\n", 400, "target_form"},
        {"GET http:///x HTTP/1.1\r\n" HOST "\r\n", 400, "target_form"},
        {"GET ftp://a/x HTTP/1.1\r\n" HOST "\r\n", 400, "target_form"},
        {"\x16\x03\x01", 400, "request_line"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t len = strlen(cases[i].text);

        for (size_t step = 1; step <= len; step += step < 4 ? 1 : len) {
            struct outcome o = read_head(cases[i].text, len, step);

            if (o.verdict != HFD_HEAD_BAD || o.fault.status != cases[i].status ||
                strcmp(o.fault.reason, cases[i].reason) != 0)
                fail_msg("case %zu in steps of %zu: verdict %d, %d %s", i, step, o.verdict,
                         o.fault.status, o.fault.reason != NULL ? o.fault.reason : "-");
        }
    }
}

/* A NUL in a header is refused like every other control character. */
static void nul_is_refused(void **state)
{
    static const char text[] = LINE HOST "X: a\0b\r\n\r\n";
    struct outcome o = read_head(text, sizeof(text) - 1, 7);

    (void)state;
    assert_int_equal(o.verdict, HFD_HEAD_BAD);
    assert_int_equal(o.fault.status, 400);
}

/* Good heads give their method, path, query and framing, whatever pieces they come in. */
static void good_heads_are_read(void **state)
{
    static const struct {
        const char *text, *method, *path, *query;
        enum hfd_framing framing;
        uint64_t length;
        bool keep_alive, expects;
    } cases[] = {
        {LINE HOST "\r\n", "GET", "/x", NULL, HFD_FRAMING_NONE, 0, true, false},
        {"\r\n" LINE HOST "\r\n", "GET", "/x", NULL, HFD_FRAMING_NONE, 0, true, false},
        {"GET /x HTTP/1.0\r\n\r\n", "GET", "/x", NULL, HFD_FRAMING_NONE, 0, false, false},
        {"GET /x HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "GET", "/x", NULL, HFD_FRAMING_NONE,
         0, true, false},
        {LINE HOST "Connection: close\r\n\r\n", "GET", "/x", NULL, HFD_FRAMING_NONE, 0, false,
         false},
        {LINE HOST "Connection: foo,\tClose , bar\r\nConnection: keep-alive\r\n\r\n", "GET", "/x",
         NULL, HFD_FRAMING_NONE, 0, false, false},
        {LINE HOST "Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n", "GET", "/x", NULL,
         HFD_FRAMING_NONE, 0, true, false},
        {"PUT /x?a=b?c HTTP/1.1\r\n" HOST "content-length:  12 \r\n\r\n", "PUT", "/x", "a=b?c",
         HFD_FRAMING_LENGTH, 12, true, false},
        {"PUT /x? HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", "PUT", "/x", "",
         HFD_FRAMING_LENGTH, 0, true, false},
        {"PUT /x HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", "PUT", "/x",
         NULL, HFD_FRAMING_LENGTH, 5, true, false},
        {"PUT /x HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n\r\n", "PUT", "/x", NULL,
         HFD_FRAMING_CHUNKED, 0, true, false},
        {"PUT /x HTTP/1.1\r\n" HOST "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\n", "PUT",
         "/x", NULL, HFD_FRAMING_LENGTH, 1, true, true},
        {"PUT /x HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n", "PUT", "/x", NULL,
         HFD_FRAMING_LENGTH, 1, false, false},
        {"GET http://b:80/x/y?q HTTP/1.1\r\n" HOST "\r\n", "GET", "/x/y", "q", HFD_FRAMING_NONE, 0,
         true, false},
        {"GET HTTPS://b HTTP/1.1\r\n" HOST "\r\n", "GET", "/", NULL, HFD_FRAMING_NONE, 0, true,
         false},
        {"GET http://b?q HTTP/1.1\r\n" HOST "\r\n", "GET", "/", "q", HFD_FRAMING_NONE, 0, true,
         false},
        {"BREW-X! /x HTTP/1.1\r\nHost: [::1]:8000\r\nX:\r\nY: \xc3\xa4 b\tc\r\n\r\n", "BREW-X!",
         "/x", NULL, HFD_FRAMING_NONE, 0, true, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t len = strlen(cases[i].text);

        for (size_t step = 1; step <= len; step += step < 4 ? 1 : len) {
            struct outcome o = read_head(cases[i].text, len, step);

            if (o.verdict != HFD_HEAD_OK)
                fail_msg("case %zu in steps of %zu: %s", i, step, o.fault.text);
            assert_int_equal(o.head.bytes, len);
            assert_true(hfd_slice_is(o.head.method, cases[i].method));
            assert_true(hfd_slice_is(o.head.path, cases[i].path));
            assert_true((o.head.query.p == NULL) == (cases[i].query == NULL));
            assert_true(cases[i].query == NULL || hfd_slice_is(o.head.query, cases[i].query));
            assert_int_equal(o.head.framing, cases[i].framing);
            assert_int_equal(o.head.content_length, cases[i].length);
            assert_int_equal(o.head.keep_alive, cases[i].keep_alive);
            assert_int_equal(o.head.expects_continue, cases[i].expects);
        }
    }
}

/* The end of the head is found where it is, not at what follows. */
static void what_follows_is_not_the_head(void **state)
{
    static const char text[] = LINE HOST "\r\n\r\n\0garbage";
    struct outcome o = read_head(text, sizeof(text) - 1, sizeof(text) - 1);

    (void)state;
    assert_int_equal(o.verdict, HFD_HEAD_OK);
    assert_int_equal(o.head.bytes, sizeof(LINE HOST "\r\n") - 1);
}

/* The Expect line is found with its line end, so that it can be cut out. */
static void expect_line_is_located(void **state)
{
    static const char text[] = "PUT /x HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nX: y\r\n\r\n";
    struct outcome o = read_text(text);

    (void)state;
    assert_int_equal(o.verdict, HFD_HEAD_OK);
    assert_int_equal(o.head.expect_bytes, sizeof("Expect: 100-continue\r\n") - 1);
    assert_memory_equal(text + o.head.expect_at, "Expect", 6);
}

/* Sizes are refused as soon as they are seen, without waiting for the end. */
static void sizes_are_limited(void **state)
{
    static const struct {
        const char *before, *filler, *after;
        size_t times;
        enum hfd_head_verdict verdict;
        int status;
    } cases[] = {
        {"GET /", "a", "", HFD_TARGET_MAX_BYTES - 1 + 64, HFD_HEAD_BAD, 414},
        {"GET /", "a", " HTTP/1.1\r\n" HOST "\r\n", HFD_TARGET_MAX_BYTES - 1, HFD_HEAD_OK, 0},
        {"GET /", "a", " HTTP/1.1\r\n" HOST "\r\n", HFD_TARGET_MAX_BYTES, HFD_HEAD_BAD, 414},
        /* A token in the path has room of its own, up to that of the head. */
        {"GET /t/", "a", "/x HTTP/1.1\r\n" HOST "\r\n", HFD_TARGET_MAX_BYTES, HFD_HEAD_OK, 0},
        {"GET //%74/", "a", " HTTP/1.1\r\n" HOST "\r\n", 30000, HFD_HEAD_OK, 0},
        {"GET /t/", "a", " HTTP/1.1\r\n" HOST "\r\n", 32768, HFD_HEAD_BAD, 414},
        {"GET /t/T/", "a", " HTTP/1.1\r\n" HOST "\r\n", HFD_TARGET_MAX_BYTES, HFD_HEAD_BAD, 414},
        {"GET /t/T?", "a", " HTTP/1.1\r\n" HOST "\r\n", HFD_TARGET_MAX_BYTES, HFD_HEAD_BAD, 414},
        {"", "a", "", 32768, HFD_HEAD_BAD, 414},
        {LINE HOST "X: ", "y", "", 32768, HFD_HEAD_BAD, 431},
        {LINE HOST "X: ", "y", "\r\n\r\n", 32768 - sizeof(LINE HOST "X: \r\n\r\n") + 1, HFD_HEAD_OK,
         0},
        {LINE HOST "X: ", "y", "\r\n\r\n", 32768 - sizeof(LINE HOST "X: \r\n\r\n") + 2,
         HFD_HEAD_BAD, 431},
        {LINE HOST, "X: y\r\n", "\r\n", 63, HFD_HEAD_OK, 0},
        {LINE HOST, "X: y\r\n", "\r\n", 64, HFD_HEAD_BAD, 431},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t filler = strlen(cases[i].filler), before = strlen(cases[i].before),
               after = strlen(cases[i].after);
        size_t len = before + filler * cases[i].times + after;
        char *text = malloc(len);
        struct outcome o;

        assert_non_null(text);
        memcpy(text, cases[i].before, before);
        for (size_t k = 0; k < cases[i].times; k++)
            memcpy(text + before + k * filler, cases[i].filler, filler);
        memcpy(text + len - after, cases[i].after, after);
        o = read_head(text, len, 1000);
        if (o.verdict != cases[i].verdict ||
            (o.verdict == HFD_HEAD_BAD && o.fault.status != cases[i].status))
            fail_msg("case %zu: verdict %d, status %d", i, o.verdict, o.fault.status);
        free(text);
    }
}

/* A refusal finds method and path in whatever came. */
static void peek_finds_what_is_there(void **state)
{
    static const struct {
        const char *text, *method, *path;
    } cases[] = {
        {"", "", ""},
        {"GET", "", ""},
        {"GET ", "GET", ""},
        {"GET /api/x", "GET", "/api/x"},
        {"\x16\x03", "", ""},
        {"GET *", "GET", ""},
        {"PUT /a?b c", "PUT", "/a"},
        {"PUT /a HTTP/1.1\r\nX: y", "PUT", "/a"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hfd_head_scan scan = {0};
        hfd_slice method, path;

        hfd_head_peek(&scan, cases[i].text, strlen(cases[i].text), &method, &path);
        assert_true(hfd_slice_is(method, cases[i].method));
        assert_true(hfd_slice_is(path, cases[i].path));
    }
}

/*
 * Chunked bodies end where they end, are counted decoded, and are refused when malformed or too
 * large, whatever pieces they come in.
 */
static void chunks_are_walked(void **state)
{
    static const struct {
        const char *text;
        enum hfd_head_verdict verdict;
        int status;
        size_t used, body;
    } cases[] = {
        {"0\r\n\r\n", HFD_HEAD_OK, 0, 5, 0},
        {"0\r\n\r\nGET /", HFD_HEAD_OK, 0, 5, 0},
        {"3\r\nabc\r\n0\r\n\r\n", HFD_HEAD_OK, 0, 13, 3},
        {"0003;a=b;c=\"d\"\r\nabc\r\nA\r\n0123456789\r\n000\r\n\r\n", HFD_HEAD_OK, 0, 43, 13},
        {"1\r\na\r\n0\r\nX: y\r\nZ:\r\n\r\nmore", HFD_HEAD_OK, 0, 21, 1},
        {"3\r\nabc\r\n0\r\n", HFD_HEAD_MORE, 0, 0, 3},
        {"14\r\n01234567890123456789\r\n0\r\n\r\n", HFD_HEAD_OK, 0, 31, 20},
        {"15\r\n", HFD_HEAD_BAD, 413, 0, 0},
        {"a\r\n0123456789\r\nb\r\n", HFD_HEAD_BAD, 413, 0, 0},
        {"FFFFFFFF\r\n", HFD_HEAD_BAD, 413, 0, 0},
        {"00000000a\r\n", HFD_HEAD_BAD, 400, 0, 0},
        {"\r\nabc", HFD_HEAD_BAD, 400, 0, 0},
        {"-1\r\n", HFD_HEAD_BAD, 400, 0, 0},
        {"0x3\r\nabc\r\n", HFD_HEAD_BAD, 400, 0, 0},
        {"3 \r\nabc\r\n", HFD_HEAD_BAD, 400, 0, 0},
        {"3\nabc\r\n", HFD_HEAD_BAD, 400, 0, 0},
        {"3\r\nabcd\r\n", HFD_HEAD_BAD, 400, 0, 0},
        {"3\r\nabc\n", HFD_HEAD_BAD, 400, 0, 0},
        {"3\r\nabc\r0", HFD_HEAD_BAD, 400, 0, 0},
        {"3;\x01\r\n", HFD_HEAD_BAD, 400, 0, 0},
        {"0\r\n X: y\r\n\r\n", HFD_HEAD_BAD, 400, 0, 0},
        {"0\r\nX: y\n\r\n", HFD_HEAD_BAD, 400, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t len = strlen(cases[i].text);

        for (size_t step = 1; step <= len; step += step < 4 ? 1 : len) {
            enum hfd_head_verdict verdict = HFD_HEAD_MORE;
            struct hfd_head_fault fault = {0};
            struct hfd_chunks c = {0};
            size_t at = 0;

            while (at < len && verdict == HFD_HEAD_MORE) {
                size_t used, give = len - at < step ? len - at : step;

                verdict =
                    hfd_chunks_walk(&c, (hfd_slice){cases[i].text + at, give}, 20, &used, &fault);
                at += used;
            }
            if (verdict != cases[i].verdict || fault.status != cases[i].status)
                fail_msg("case %zu in steps of %zu: verdict %d, status %d", i, step, verdict,
                         fault.status);
            if (verdict == HFD_HEAD_OK)
                assert_int_equal(at, cases[i].used);
            if (verdict != HFD_HEAD_BAD)
                assert_int_equal(c.body_bytes, cases[i].body);
        }
    }
}

/* Extensions and trailers without end are refused although the body is small. */
static void chunk_overhead_is_limited(void **state)
{
    struct hfd_head_fault fault = {0};
    struct hfd_chunks c = {0};
    size_t used;

    (void)state;
    assert_int_equal(hfd_chunks_walk(&c, HFD_SLICE("1;"), 100, &used, &fault), HFD_HEAD_MORE);
    for (size_t i = 0; i < 16384 + 100 - 2; i++)
        assert_int_equal(hfd_chunks_walk(&c, HFD_SLICE("x"), 100, &used, &fault), HFD_HEAD_MORE);
    assert_int_equal(hfd_chunks_walk(&c, HFD_SLICE("x"), 100, &used, &fault), HFD_HEAD_BAD);
    assert_int_equal(fault.status, 413);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_heads_are_refused),     cmocka_unit_test(nul_is_refused),
        cmocka_unit_test(good_heads_are_read),       cmocka_unit_test(what_follows_is_not_the_head),
        cmocka_unit_test(expect_line_is_located),    cmocka_unit_test(sizes_are_limited),
        cmocka_unit_test(peek_finds_what_is_there),  cmocka_unit_test(chunks_are_walked),
        cmocka_unit_test(chunk_overhead_is_limited),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
