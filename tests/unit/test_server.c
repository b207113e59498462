/*
 * handlers/http/server.c, door.c and exchange.c with a real store and routes of the test's own. The
 * tests cover answers, pipelining, limits, time limits, clients that leave, and the end. The clock
 * is moved by hand.
 */
#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/replica/keeper_int.h"
#include "handlers/http/exchange.h"
#include "handlers/http/routes.h"
#include "handlers/http/server.h"
#include "store/migrate.h"
#include "tests/lib/place.h"
#include "tests/lib/tmpdir.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define HOST "Host: localhost\r\n"
/* Long enough for a machine that is busy; only a test that fails waits for it. */
#define PATIENCE_MS 20000
#define BIG_BYTES ((size_t)6 << 20)
#define STEP_BYTES ((size_t)64 << 10)

/* ---- the clock: real time plus what the test has added ---- */

static atomic_llong added_us;

static int64_t wall_us(void *ctx)
{
    (void)ctx;
    return hfd_clock_wall_us(&hfd_clock_system);
}

static int64_t mono_us(void *ctx)
{
    (void)ctx;
    return hfd_clock_mono_us(&hfd_clock_system) + atomic_load(&added_us);
}

static const struct hfd_clock moved_clock = {.wall_us = wall_us, .mono_us = mono_us};

/* ---- handlers ---- */

static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_moved = PTHREAD_COND_INITIALIZER;
static bool gate_open;
static int at_gate; /* transactions that have reached it, ever */

static void gate_set(bool open)
{
    (void)pthread_mutex_lock(&gate_lock);
    gate_open = open;
    (void)pthread_cond_broadcast(&gate_moved);
    (void)pthread_mutex_unlock(&gate_lock);
}

static void gate_await(int count)
{
    (void)pthread_mutex_lock(&gate_lock);
    while (at_gate < count)
        (void)pthread_cond_wait(&gate_moved, &gate_lock);
    (void)pthread_mutex_unlock(&gate_lock);
}

static hfd_rc txn_gate(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    (void)tx;
    (void)err;
    *(int *)arg += 1;
    (void)pthread_mutex_lock(&gate_lock);
    at_gate++;
    (void)pthread_cond_broadcast(&gate_moved);
    while (!gate_open)
        (void)pthread_cond_wait(&gate_moved, &gate_lock);
    (void)pthread_mutex_unlock(&gate_lock);
    return HFD_OK;
}

static void send_text(struct hfd_exchange *x, int status, hfd_slice body)
{
    hfd_exchange_reply(
        x, &(struct hfd_reply){.status = status, .content_type = "text/plain", .body = body});
}

static void on_gate_passed(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    HFD_ASSERT(*(int *)arg == 1);
    if (rc != HFD_OK)
        hfd_exchange_fail(x, rc, err);
    else
        send_text(x, 202, HFD_SLICE("committed"));
}

static void handle_gate(struct hfd_exchange *x)
{
    int *arg = hfd_arena_alloc(hfd_exchange_mem(x), sizeof(*arg));

    HFD_ASSERT(arg != NULL);
    hfd_exchange_update(x, txn_gate, arg, on_gate_passed);
}

static void handle_gate_view(struct hfd_exchange *x)
{
    int *arg = hfd_arena_alloc(hfd_exchange_mem(x), sizeof(*arg));

    HFD_ASSERT(arg != NULL);
    hfd_exchange_view(x, txn_gate, arg, on_gate_passed);
}

static void answer_without(struct hfd_exchange *x)
{
    send_text(x, 200, HFD_SLICE("without"));
}

static void handle_limited(struct hfd_exchange *x)
{
    const bool soon = hfd_slice_eq(hfd_exchange_request(x)->query, HFD_SLICE("soon"));

    hfd_exchange_limit(x, soon ? 1000 : 3600 * HFD_US_PER_S, answer_without);
    handle_gate_view(x);
}

/* Blocks the loop itself, as no handler may. */
static void handle_hang(struct hfd_exchange *x)
{
    int passed = 0;

    HFD_ASSERT(txn_gate(NULL, &passed, NULL) == HFD_OK);
    send_text(x, 200, HFD_SLICE("turns again"));
}

static void handle_echo(struct hfd_exchange *x)
{
    const struct hfd_request *r = hfd_exchange_request(x);
    struct hfd_reply reply = {.status = 200, .content_type = "text/plain", .has_cookie = true};
    struct hfd_err err;
    hfd_slice header;
    const hfd_rc rc = hfd_exchange_header(x, "x-test", &header, &err);

    if (rc != HFD_OK) {
        hfd_exchange_fail(x, rc, &err);
        return;
    }
    reply.body =
        hfd_arena_printf(hfd_exchange_mem(x), "%.*s|%.*s|%.*s|%.*s|%.*s",
                         HFD_SLICE_FMT(r->method_text), HFD_SLICE_FMT(r->path),
                         HFD_SLICE_FMT(r->query), HFD_SLICE_FMT(header), HFD_SLICE_FMT(r->body));
    if (reply.body.p == NULL)
        hfd_exchange_fail(x, HFD_NOMEM, NULL);
    else
        hfd_exchange_reply(x, &reply);
}

/* Answers with the thread that answers. */
static void handle_where(struct hfd_exchange *x)
{
    const unsigned long thread = (unsigned long)pthread_self();
    char *text = hfd_arena_alloc(hfd_exchange_mem(x), 32);

    HFD_ASSERT(text != NULL);
    (void)snprintf(text, 32, "thread %lx.", thread);
    send_text(x, 200, hfd_slice_of(text));
}

static void handle_empty(struct hfd_exchange *x)
{
    hfd_exchange_reply(
        x, &(struct hfd_reply){
               .status = hfd_exchange_request(x)->method == HFD_METHOD_DELETE ? 204 : 404});
}

static void handle_big(struct hfd_exchange *x)
{
    char *p = hfd_arena_alloc(hfd_exchange_mem(x), BIG_BYTES);

    HFD_ASSERT(p != NULL);
    memset(p, 'b', BIG_BYTES);
    send_text(x, 200, (hfd_slice){p, BIG_BYTES});
}

static void handle_ready(struct hfd_exchange *x)
{
    send_text(x, hfd_exchange_draining(x) ? 503 : 200, HFD_SLICE("r"));
}

/* clang-format off */
static const struct hfd_route table[] = {
    {HFD_LISTENER_MAIN, HFD_METHOD_GET,    "/echo",  "echo",  HFD_DIALECT_DRIVER, handle_echo, NULL, 0, HFD_NEED_OPEN},
    {HFD_LISTENER_MAIN, HFD_METHOD_PUT,    "/echo",  "echo",  HFD_DIALECT_DRIVER, handle_echo, NULL, 0, HFD_NEED_OPEN},
    {HFD_LISTENER_MAIN, HFD_METHOD_PUT,    "/gate",  "gate",  HFD_DIALECT_DRIVER, handle_gate, NULL, 0, HFD_NEED_OPEN},
    {HFD_LISTENER_MAIN, HFD_METHOD_GET,    "/gate",  "gate",  HFD_DIALECT_DRIVER, handle_gate_view, NULL, 0, HFD_NEED_OPEN},
    {HFD_LISTENER_MAIN, HFD_METHOD_GET,    "/limited", "limited", HFD_DIALECT_DRIVER, handle_limited, NULL, 0, HFD_NEED_OPEN},
    {HFD_LISTENER_MAIN, HFD_METHOD_GET,    "/hang",  "hang",  HFD_DIALECT_DRIVER, handle_hang, NULL, 0, HFD_NEED_OPEN},
    {HFD_LISTENER_MAIN, HFD_METHOD_GET,    "/where", "where", HFD_DIALECT_DRIVER, handle_where, NULL, 0, HFD_NEED_OPEN},
    {HFD_LISTENER_MAIN, HFD_METHOD_GET,    "/empty", "empty", HFD_DIALECT_DRIVER, handle_empty, NULL, 0, HFD_NEED_OPEN},
    {HFD_LISTENER_MAIN, HFD_METHOD_DELETE, "/empty", "empty", HFD_DIALECT_DRIVER, handle_empty, NULL, 0, HFD_NEED_OPEN},
    {HFD_LISTENER_MAIN, HFD_METHOD_GET,    "/big",   "big",   HFD_DIALECT_DRIVER, handle_big, NULL, 0, HFD_NEED_OPEN},
    {HFD_LISTENER_OPS,  HFD_METHOD_GET,    "/ready", "ready", HFD_DIALECT_OPS,    handle_ready, NULL, 0, HFD_NEED_OPEN},
    {HFD_LISTENER_OPS,  HFD_METHOD_GET,    "/readyz", "readyz", HFD_DIALECT_OPS,  hfd_ops_ready, NULL, 0, HFD_NEED_OPEN},
};
/* clang-format on */

/* ---- the server under test ---- */

struct fixture {
    char base[TMPDIR_MAX];
    char dir[TMPDIR_MAX + 8];
    struct hfd_settings *settings;
    struct hfd_store *store;
    struct hfd_app app;
    struct hfd_keeper *keepers[2]; /* replicas; the first is that of the server */
    struct hfd_server *server;
    int log_fd;
    bool stopping;
    pthread_t stopper;
    atomic_bool stopped;
};

static struct fixture fx; /* not on a stack: the loops outlive a test that fails */

/* All but the server. */
static void prepare(const char *const *flags, int flag_count)
{
    const char *argv[16] = {"--listen",    "127.0.0.1:0",    "--ops-listen",
                            "127.0.0.1:0", "--http-threads", "2"};
    static const char *const no_env[] = {NULL};
    struct hfd_store_config config;
    struct hfd_err err;

    memset(&fx, 0, sizeof(fx));
    atomic_store(&added_us, 0);
    gate_set(false);
    at_gate = 0;
    fx.log_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    hfd_log_set_fd(fx.log_fd);
    for (int i = 0; i < flag_count; i++)
        argv[6 + i] = flags[i];
    if (hfd_settings_load(6 + flag_count, argv, no_env, &fx.settings, &err) != HFD_OK)
        fail_msg("%s: %s", err.field, err.msg);
    tmpdir_make(fx.base);
    (void)snprintf(fx.dir, sizeof(fx.dir), "%s/data", fx.base);
    config = (struct hfd_store_config){.place = test_place(fx.dir),
                                       .queue_max = (size_t)fx.settings->store_queue_max};
    if (hfd_store_open(&config, &fx.store, &err) != HFD_OK)
        fail_msg("%s", err.msg);
    fx.app = (struct hfd_app){.settings = fx.settings,
                              .store = fx.store,
                              .clock = &moved_clock,
                              .rng = &hfd_rng_system,
                              .routes = table,
                              .route_count = sizeof(table) / sizeof(table[0])};
}

static void serve(void)
{
    struct hfd_err err;

    if (hfd_server_open(&fx.app, &fx.server, &err) != HFD_OK ||
        hfd_server_start(fx.server, &err) != HFD_OK)
        fail_msg("%s: %s", err.field, err.msg);
}

static void start(const char *const *flags, int flag_count)
{
    prepare(flags, flag_count);
    serve();
}

static int finish(void **state)
{
    (void)state;
    if (fx.settings == NULL)
        return 0;
    gate_set(true);
    if (fx.stopping)
        (void)pthread_join(fx.stopper, NULL);
    else if (fx.server != NULL)
        hfd_server_stop(fx.server);
    hfd_server_free(&fx.server);
    for (int i = 0; i < 2; i++)
        hfd_keeper_free(fx.keepers[i]);
    hfd_store_close(&fx.store);
    hfd_settings_free(fx.settings);
    hfd_log_set_fd(-1);
    (void)close(fx.log_fd);
    tmpdir_remove(fx.base);
    memset(&fx, 0, sizeof(fx));
    return 0;
}

/* ---- a client ---- */

static int dial(enum hfd_listener which, int receive_buffer)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)hfd_server_port(fx.server, which))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    if (receive_buffer != 0)
        assert_int_equal(
            setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer)), 0);
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, (const struct sockaddr *)(const void *)&addr, sizeof(addr)) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static void say(int fd, const char *text)
{
    size_t len = strlen(text);

    assert_int_equal(send(fd, text, len, MSG_NOSIGNAL), len);
}

/*
 * Reads until the text contains `until` `times` times, or the connection ends; the text is
 * NUL-terminated. @return whether it ended
 */
static bool hear(int fd, const char *until, int times, char *out, size_t cap)
{
    const char *from = out; /* behind what was counted */
    size_t len = 0;
    int seen = 0;

    out[0] = '\0';
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        const char *at;
        ssize_t n;

        while (until != NULL && (at = strstr(from, until)) != NULL) {
            seen++;
            from = at + 1;
        }
        if (until != NULL && seen >= times)
            return false;
        if (poll(&p, 1, PATIENCE_MS) != 1)
            fail_msg("nothing comes any more behind \"%.200s\"", out);
        n = recv(fd, out + len, cap - len - 1, 0);
        if (n <= 0)
            return true;
        len += (size_t)n;
        out[len] = '\0';
        assert_true(len + 1 < cap);
    }
}

static void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", part, text);
}

/* A whole conversation on a connection of its own; the server must end it. */
static const char *converse(const char *request)
{
    static char text[65536];
    int fd = dial(HFD_LISTENER_MAIN, 0);

    say(fd, request);
    assert_true(hear(fd, NULL, 0, text, sizeof(text)));
    (void)close(fd);
    return text;
}

#define CLOSE "Connection: close\r\n"

/* ---- tests ---- */

/* The handler sees the request, and its answer has the right form on the wire. */
static void a_request_is_answered(void **state)
{
    const char *text;

    (void)state;
    start(NULL, 0);
    text = converse("PUT http://localhost/echo?a=b HTTP/1.1\r\n" HOST CLOSE
                    "X-Test: t\r\nContent-Length: 3\r\n\r\nabc");
    assert_contains(text, "HTTP/1.1 200 OK\r\n");
    assert_contains(text, "\r\nConnection: close\r\n");
    assert_contains(text, "\r\nServer: hyperfleet-driver\r\n");
    assert_contains(text, "\r\nContent-Length: 19\r\n");
    assert_contains(text, "\r\nX-Request-ID: 2");
    assert_contains(text, "\r\nDate: ");
    assert_contains(text, "\r\nSet-Humanitec-Driver-Cookie: \r\n");
    assert_contains(text, "\r\n\r\nPUT|/echo|a=b|t|abc");
    text = converse("HEAD /echo HTTP/1.1\r\n" HOST CLOSE "\r\n");
    assert_contains(text, "\r\nContent-Length: 13\r\n");
    assert_null(strstr(text, "HEAD|"));
    text = converse("GET /empty HTTP/1.1\r\n" HOST CLOSE "\r\n");
    assert_contains(text, "HTTP/1.1 404 Not Found\r\n");
    assert_contains(text, "\r\nContent-Length: 0\r\n");
    assert_null(strstr(text, "Content-Type"));
    text = converse("DELETE /empty HTTP/1.1\r\n" HOST CLOSE "\r\n");
    assert_contains(text, "HTTP/1.1 204 No Content\r\n");
    assert_null(strstr(text, "Content-Length"));
    text = converse("POST /echo HTTP/1.1\r\n" HOST CLOSE "\r\n");
    assert_contains(text, "HTTP/1.1 405 ");
    assert_contains(text, "\r\nAllow: GET, HEAD, PUT\r\n");
}

/*
 * A header that has one value and is given twice is one value if both agree or one is empty; else
 * the request is refused.
 */
static void a_header_given_twice(void **state)
{
    static const struct {
        const char *lines, *answer;
    } cases[] = {
        {"X-Test: a\r\nx-test: a\r\n", "GET|/echo||a|"},
        {"X-Test: a\r\nX-Test: a \r\n", "GET|/echo||a|"},
        {"X-Test:\r\nX-Test: a\r\n", "GET|/echo||a|"},
        {"X-Test: a\r\nX-Test:\r\nX-Test: a\r\n", "GET|/echo||a|"},
        {"X-Test: a\r\nX-Test: b\r\n", "HTTP/1.1 400 Bad Request\r\n"},
        {"X-Test: a\r\nX-Test: a\r\nX-Test: ab\r\n", "HTTP/1.1 400 Bad Request\r\n"},
        {"X-Test: a\r\nX-TEST: A\r\n", "x-test is given more than once"},
    };
    char request[256];

    (void)state;
    start(NULL, 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void)snprintf(request, sizeof(request), "GET /echo HTTP/1.1\r\n" HOST CLOSE "%s\r\n",
                       cases[i].lines);
        assert_contains(converse(request), cases[i].answer);
    }
}

/*
 * A job's answer comes behind its commit. A pipelined request is not carried out: the answer before
 * it is the last one, and says so.
 */
static void a_pipelined_request_is_dropped(void **state)
{
    static const char *const requests[] = {
        "PUT /gate HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nab"
        "PUT /gate HTTP/1.1\r\n" HOST "\r\n",
        "PUT /gate HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nab\r\n"
        "PUT /gate HTTP/1.1\r\n" HOST "\r\n",
        "PUT /gate HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /gate"};
    char text[65536];

    (void)state;
    start(NULL, 0);
    for (int i = 0; i < 3; i++) {
        int fd = dial(HFD_LISTENER_MAIN, 0);

        gate_set(false);
        say(fd, requests[i]);
        gate_await(i + 1);
        gate_set(true);
        assert_true(hear(fd, NULL, 0, text, sizeof(text)));
        assert_contains(text, "HTTP/1.1 202 ");
        assert_contains(text, "\r\nConnection: close\r\n");
        assert_contains(text, "\r\n\r\ncommitted");
        assert_string_equal(strstr(text, "\r\n\r\ncommitted"), "\r\n\r\ncommitted");
        (void)close(fd);
    }
    assert_contains(converse("PUT /gate HTTP/1.1\r\n" HOST CLOSE "\r\n"), "committed");
    assert_int_equal(at_gate, 4);
}

/* An empty line behind a body, as some clients send, is no request. */
static void an_empty_line_is_no_request(void **state)
{
    char text[65536];
    int fd;

    (void)state;
    start(NULL, 0);
    fd = dial(HFD_LISTENER_MAIN, 0);
    for (int i = 0; i < 3; i++) {
        say(fd, "PUT /echo HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nab\r\n");
        assert_false(hear(fd, "||ab", 1, text, sizeof(text)));
        assert_contains(text, "\r\nConnection: keep-alive\r\n");
    }
    (void)close(fd);
}

/*
 * A job that is late is done without, on a connection that goes on. It still ends. One that comes
 * in time gives the answer.
 */
static void a_late_job_is_done_without(void **state)
{
    char text[65536];
    int fd;

    (void)state;
    start(NULL, 0);
    fd = dial(HFD_LISTENER_MAIN, 0);
    say(fd, "GET /limited?soon HTTP/1.1\r\n" HOST "\r\n");
    assert_false(hear(fd, "without", 1, text, sizeof(text)));
    gate_await(1);
    say(fd, "GET /echo?1 HTTP/1.1\r\n" HOST "\r\n");
    assert_false(hear(fd, "|1|", 1, text, sizeof(text)));
    assert_contains(converse("GET /limited?soon HTTP/1.1\r\n" HOST CLOSE "\r\n"), "without");
    gate_set(true);
    say(fd, "GET /limited HTTP/1.1\r\n" HOST CLOSE "\r\n");
    assert_true(hear(fd, NULL, 0, text, sizeof(text)));
    assert_contains(text, "committed");
    (void)close(fd);
}

/* A client that sends without an end gets the first answer whole, however long it is. */
static void a_flood_of_requests_gets_one_answer(void **state)
{
    enum {
        COUNT = 200000
    };
    /* Two at once: the first is never there alone. */
    static const char request[] =
        "GET /big HTTP/1.1\r\n" HOST "\r\nGET /big HTTP/1.1\r\n" HOST "\r\n";
    static char text[BIG_BYTES + 65536];
    int fd, left = COUNT;
    size_t len = 0;
    ssize_t n = 1;

    (void)state;
    start(NULL, 0);
    fd = dial(HFD_LISTENER_MAIN, 0);
    while (n > 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN};

        if (left > 0)
            p.events |= POLLOUT;
        assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
        if ((p.revents & POLLOUT) != 0 && left-- > 0)
            say(fd, request);
        if ((p.revents & POLLIN) != 0) {
            n = recv(fd, text + len, sizeof(text) - len - 1, 0);
            len += n > 0 ? (size_t)n : 0;
        }
    }
    assert_int_equal(n, 0); /* not reset */
    assert_contains(text, "\r\nConnection: close\r\n");
    assert_int_equal(len - (size_t)(strstr(text, "\r\n\r\n") + 4 - text), BIG_BYTES);
    (void)close(fd);
}

/* 100-continue is sent once the head is good and the body is awaited, and not otherwise. */
static void continue_is_sent_when_awaited(void **state)
{
    static const char head[] =
        "PUT /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nX-Test: t\r\n";
    char text[65536], request[512];
    int fd;

    (void)state;
    start(NULL, 0);
    fd = dial(HFD_LISTENER_MAIN, 0);
    (void)snprintf(request, sizeof(request), "%sContent-Length: 3\r\n\r\n", head);
    say(fd, request);
    assert_false(hear(fd, "HTTP/1.1 100 Continue\r\n\r\n", 1, text, sizeof(text)));
    say(fd, "abc");
    assert_false(hear(fd, "|t|abc", 1, text, sizeof(text)));
    (void)snprintf(request, sizeof(request), "%sTransfer-Encoding: chunked\r\n\r\n", head);
    say(fd, request);
    assert_false(hear(fd, "HTTP/1.1 100 Continue\r\n\r\n", 1, text, sizeof(text)));
    say(fd, "3\r\nabc\r\n0\r\n\r\n");
    assert_false(hear(fd, "|t|abc", 1, text, sizeof(text)));
    (void)snprintf(request, sizeof(request), "%sConnection: close\r\nContent-Length: 3\r\n\r\nabc",
                   head);
    say(fd, request);
    assert_true(hear(fd, NULL, 0, text, sizeof(text)));
    assert_null(strstr(text, "100 Continue"));
    assert_contains(text, "|t|abc");
    (void)close(fd);
    assert_contains(converse("PUT /echo HTTP/1.1\r\n" HOST
                             "Expect: 100-continue\r\nContent-Length: 2000000\r\n\r\n"),
                    "HTTP/1.1 413 ");
}

/*
 * Requests beyond the limit in flight are turned away at once, with a time to come again; probes
 * are not.
 */
static void requests_in_flight_are_limited(void **state)
{
    static const char *const flags[] = {"--http-in-flight-max", "2"};
    char text[65536];
    int waiting[2], ops, tries = 10000;
    const char *answer;

    (void)state;
    start(flags, 2);
    for (int i = 0; i < 2; i++) {
        waiting[i] = dial(HFD_LISTENER_MAIN, 0);
        say(waiting[i], "PUT /gate HTTP/1.1\r\n" HOST CLOSE "\r\n");
    }
    gate_await(1); /* the writer runs one; the other waits in its queue, or is about to */
    while (hfd_metric_value(HFD_METRIC_HTTP_INFLIGHT, NULL) != 2 && --tries > 0)
        (void)poll(NULL, 0, 1);
    do
        answer = converse("GET /echo HTTP/1.1\r\n" HOST CLOSE "\r\n");
    while (strstr(answer, "HTTP/1.1 503 ") == NULL && --tries > 0);
    assert_contains(answer, "HTTP/1.1 503 ");
    assert_contains(answer, "\r\nRetry-After: ");
    assert_contains(answer, "RES-199");
    ops = dial(HFD_LISTENER_OPS, 0);
    say(ops, "GET /ready HTTP/1.1\r\n" HOST CLOSE "\r\n");
    assert_true(hear(ops, NULL, 0, text, sizeof(text)));
    assert_contains(text, "HTTP/1.1 200 ");
    (void)close(ops);
    gate_set(true);
    for (int i = 0; i < 2; i++) {
        assert_true(hear(waiting[i], NULL, 0, text, sizeof(text)));
        assert_contains(text, "HTTP/1.1 202 ");
        (void)close(waiting[i]);
    }
    assert_contains(converse("GET /echo HTTP/1.1\r\n" HOST CLOSE "\r\n"), "HTTP/1.1 200 ");
}

/* Connections beyond the limit wait for a place, and get it when one closes. */
static void connections_are_limited(void **state)
{
    static const char *const flags[] = {"--http-connections-max", "2"};
    char text[65536];
    int fds[3];

    (void)state;
    start(flags, 2);
    for (int i = 0; i < 2; i++) {
        fds[i] = dial(HFD_LISTENER_MAIN, 0);
        say(fds[i], "GET /echo HTTP/1.1\r\n" HOST "\r\n");
        assert_false(hear(fds[i], "GET|", 1, text, sizeof(text)));
    }
    fds[2] = dial(HFD_LISTENER_MAIN, 0);
    say(fds[2], "GET /echo HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(poll(&(struct pollfd){.fd = fds[2], .events = POLLIN}, 1, 50), 0);
    (void)close(fds[0]);
    assert_false(hear(fds[2], "GET|", 1, text, sizeof(text)));
    (void)close(fds[1]);
    (void)close(fds[2]);
}

/* Connections that come at once are spread over the loops: no loop has many more than another. */
static void connections_are_spread(void **state)
{
    enum {
        COUNT = 16,
        LOOPS_MAX = 4
    };

    for (int loops = 2; loops <= LOOPS_MAX; loops += 2) {
        static char text[COUNT][4096];
        int fds[COUNT];

        prepare(NULL, 0);
        fx.settings->http_threads = loops;
        serve();
        for (int i = 0; i < COUNT; i++)
            fds[i] = dial(HFD_LISTENER_MAIN, 0);
        for (int i = 0; i < COUNT; i++) {
            int same = 0;

            say(fds[i], "GET /where HTTP/1.1\r\n" HOST "\r\n");
            assert_false(hear(fds[i], "thread ", 1, text[i], sizeof(text[i])));
            for (int k = 0; k <= i; k++)
                same += strcmp(strstr(text[k], "thread "), strstr(text[i], "thread ")) == 0;
            assert_in_range(same, 1, COUNT / loops + loops - 1);
        }
        for (int i = 0; i < COUNT; i++)
            (void)close(fds[i]);
        (void)finish(state);
    }
}

/*
 * Clients may leave while their job is out, or in mid-request. Other clients are not disturbed, and
 * the jobs are done.
 */
static void clients_may_leave(void **state)
{
    enum {
        COUNT = 40
    };
    struct linger reset = {.l_onoff = 1};

    (void)state;
    start(NULL, 0);
    for (int i = 0; i < COUNT; i++) {
        int fd = dial(HFD_LISTENER_MAIN, 0);

        if (i % 2 == 0)
            (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        say(fd, i % 4 < 2 ? "PUT /gate HTTP/1.1\r\n" HOST "\r\n"
                          : "PUT /gate HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nabc");
        if (i % 4 == 1) {
            /* The second request waits behind the first one's job. */
            say(fd, "GET /echo HTTP/1.1\r\n" HOST "\r\n");
        }
        if (i == 0)
            gate_await(1);
        (void)close(fd);
    }
    gate_set(true);
    assert_contains(converse("PUT /gate HTTP/1.1\r\n" HOST CLOSE "\r\n"), "committed");
}

/* An incomplete request ends at the time limit with 408, an idle connection without a word. */
static void slow_senders_are_cut_off(void **state)
{
    static const char *const parts[] = {
        "GET /ec", "PUT /echo HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nabc",
        "PUT /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nab", ""};
    enum {
        COUNT = sizeof(parts) / sizeof(parts[0])
    };
    char text[65536];
    int fds[COUNT];

    (void)state;
    start(NULL, 0);
    for (int i = 0; i < COUNT; i++) {
        fds[i] = dial(HFD_LISTENER_MAIN, 0);
        say(fds[i], parts[i]);
    }
    assert_contains(converse("GET /echo HTTP/1.1\r\n" HOST CLOSE "\r\n"), "HTTP/1.1 200 ");
    atomic_fetch_add(&added_us, 11 * HFD_US_PER_S);
    for (int i = 0; i < COUNT; i++) {
        assert_true(hear(fds[i], NULL, 0, text, sizeof(text)));
        if (parts[i][0] != '\0')
            assert_contains(text, "HTTP/1.1 408 ");
        else
            assert_string_equal(text, "");
        (void)close(fds[i]);
    }
}

/* Wakes the only loop, behind a jump of the clock that makes it sweep. */
static void sweep_after(int64_t seconds)
{
    atomic_fetch_add(&added_us, seconds * HFD_US_PER_S);
    assert_contains(converse("GET /echo HTTP/1.1\r\n" HOST CLOSE "\r\n"), "HTTP/1.1 200 ");
    /* The answer may have come before the sweep; the next one comes behind it. */
    assert_contains(converse("GET /echo HTTP/1.1\r\n" HOST CLOSE "\r\n"), "HTTP/1.1 200 ");
}

/* The watchdog sees a loop that hangs, and one that turns again. */
static void a_loop_that_hangs_is_seen(void **state)
{
    static const char *const flags[] = {"--http-threads", "1"};
    const int64_t jump_us = 100 * HFD_US_PER_S;
    char text[65536];
    int hung;

    (void)state;
    start(flags, 2);
    sweep_after(100);
    assert_true(hfd_server_stall_us(fx.server) < jump_us);
    hung = dial(HFD_LISTENER_MAIN, 0);
    say(hung, "GET /hang HTTP/1.1\r\n" HOST CLOSE "\r\n");
    gate_await(1);
    atomic_fetch_add(&added_us, jump_us);
    assert_true(hfd_server_stall_us(fx.server) >= jump_us);
    gate_set(true);
    (void)hear(hung, NULL, 0, text, sizeof(text));
    (void)close(hung);
    sweep_after(1);
    assert_true(hfd_server_stall_us(fx.server) < jump_us);
}

/* How many slow readers were cut off so far, as the metrics tell. */
static int write_timeouts(void)
{
    static const char series[] = "hfd_http_refused_total{reason=\"write_timeout\"} ";
    const char *at;
    struct hfd_buf b;
    int64_t n = 0;

    hfd_buf_init(&b, 1 << 20);
    hfd_metrics_render(&b);
    hfd_buf_addc(&b, '\0');
    assert_int_equal(b.rc, HFD_OK);
    at = strstr(b.p, series);
    if (at != NULL) {
        at += sizeof(series) - 1;
        assert_int_equal(hfd_parse_i64((hfd_slice){at, strcspn(at, "\n")}, 0, INT32_MAX, &n, NULL),
                         HFD_OK);
    }
    hfd_buf_fini(&b);
    return (int)n;
}

static void read_some(int fd, size_t len)
{
    char some[65536];

    while (len > 0) {
        ssize_t n = recv(fd, some, len < sizeof(some) ? len : sizeof(some), 0);

        assert_true(n > 0);
        len -= (size_t)n;
    }
}

/* A client that does not read its answer is cut off; one that reads slowly is not. */
static void slow_readers_are_cut_off(void **state)
{
    static const char *const flags[] = {"--http-threads", "1"};
    static char text[BIG_BYTES + 4096];
    int before;
    int stuck, slow, rounds = 0;

    (void)state;
    start(flags, 2);
    before = write_timeouts();
    stuck = dial(HFD_LISTENER_MAIN, 4096);
    slow = dial(HFD_LISTENER_MAIN, 4096);
    say(stuck, "GET /big HTTP/1.1\r\n" HOST "\r\n");
    say(slow, "GET /big HTTP/1.1\r\n" HOST CLOSE "\r\n");
    assert_int_equal(poll(&(struct pollfd){.fd = stuck, .events = POLLIN}, 1, PATIENCE_MS), 1);
    /*
     * The kernel may still push a few bytes at the stuck one, which count as progress: more than
     * three rounds can be needed.
     */
    for (; write_timeouts() == before && rounds < 40; rounds++) {
        read_some(slow, STEP_BYTES);
        sweep_after(12);
    }
    assert_int_equal(write_timeouts(), before + 1);
    assert_true(hear(stuck, NULL, 0, text, sizeof(text)));
    assert_true(strlen(text) < BIG_BYTES);
    assert_true(hear(slow, NULL, 0, text, sizeof(text)));
    assert_true(strlen(text) > BIG_BYTES - (size_t)rounds * STEP_BYTES);
    (void)close(stuck);
    (void)close(slow);
}

static void *stop_in_thread(void *arg)
{
    (void)arg;
    hfd_server_stop(fx.server);
    atomic_store(&fx.stopped, true);
    return NULL;
}

static void begin_stop(void)
{
    fx.stopping = pthread_create(&fx.stopper, NULL, stop_in_thread, NULL) == 0;
    assert_true(fx.stopping);
}

/* When the port is closed, every loop has noted that the end has begun. */
static void await_closed_port(void)
{
    int fd;

    while ((fd = dial(HFD_LISTENER_MAIN, 0)) >= 0)
        (void)close(fd);
}

static void await_stop(void)
{
    (void)pthread_join(fx.stopper, NULL);
    fx.stopping = false;
}

/*
 * Stopping answers what is under way, closes what is idle, refuses what is new, and keeps the
 * probes until the end.
 */
static void stopping_drains(void **state)
{
    char text[65536];
    int idle, busy, ops;

    (void)state;
    start(NULL, 0);
    idle = dial(HFD_LISTENER_MAIN, 0);
    busy = dial(HFD_LISTENER_MAIN, 0);
    ops = dial(HFD_LISTENER_OPS, 0);
    say(idle, "GET /echo HTTP/1.1\r\n" HOST "\r\n");
    assert_false(hear(idle, "GET|", 1, text, sizeof(text)));
    say(busy, "PUT /gate HTTP/1.1\r\n" HOST "\r\n");
    gate_await(1);
    say(ops, "GET /ready HTTP/1.1\r\n" HOST "\r\n");
    assert_false(hear(ops, "HTTP/1.1 200 ", 1, text, sizeof(text)));
    begin_stop();
    assert_true(hear(idle, NULL, 0, text, sizeof(text)));
    say(ops, "GET /ready HTTP/1.1\r\n" HOST "\r\n");
    assert_false(hear(ops, "HTTP/1.1 503 ", 1, text, sizeof(text)));
    await_closed_port();
    assert_false(atomic_load(&fx.stopped));
    gate_set(true);
    assert_true(hear(busy, NULL, 0, text, sizeof(text)));
    assert_contains(text, "committed");
    assert_contains(text, "\r\nConnection: close\r\n");
    await_stop();
    (void)close(idle);
    (void)close(busy);
    (void)close(ops);
}

/*
 * When the time for draining is over, clients are cut off; a job that is out is still waited for.
 */
static void draining_has_an_end(void **state)
{
    char text[65536];
    int half, busy;

    (void)state;
    start(NULL, 0);
    half = dial(HFD_LISTENER_MAIN, 0);
    busy = dial(HFD_LISTENER_MAIN, 0);
    say(half, "PUT /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 9\r\n\r\n");
    assert_false(hear(half, "100 Continue", 1, text, sizeof(text)));
    say(busy, "PUT /gate HTTP/1.1\r\n" HOST "\r\n");
    gate_await(1);
    begin_stop();
    await_closed_port();
    atomic_fetch_add(&added_us, 21 * HFD_US_PER_S);
    (void)hear(half, NULL, 0, text, sizeof(text));
    assert_true(hear(busy, NULL, 0, text, sizeof(text)));
    assert_null(strstr(text, "committed"));
    assert_false(atomic_load(&fx.stopped));
    gate_set(true);
    await_stop();
    (void)close(half);
    (void)close(busy);
}

/* Without authentication only loopback addresses are served; what is wrong with an address is said.
 */
static void addresses_are_checked(void **state)
{
    static const struct {
        const char *listen, *says;
    } cases[] = {
        {"0.0.0.0:0", "not a loopback address"},
        {"192.0.2.1:80", "not a loopback address"},
        {"[::]:0", "not a loopback address"},
        {"example.com:80", "expected an IP address or localhost"},
        {"localhost:8080", "another for ops_listen"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *argv[] = {"--listen", cases[i].listen, "--ops-listen", "127.0.0.1:8080"};
        static const char *const no_env[] = {NULL};
        struct hfd_settings *settings;
        struct hfd_server *server;
        struct hfd_err err;
        hfd_rc rc;

        if (hfd_settings_load(4, argv, no_env, &settings, &err) != HFD_OK)
            fail_msg("%s: %s", err.field, err.msg);
        rc = hfd_server_check(settings, &err);
        if (rc == HFD_OK) {
            assert_int_equal(hfd_server_check_open(settings, true, &err), HFD_OK);
            rc = hfd_server_check_open(settings, false, &err);
        }
        assert_int_equal(rc, HFD_INVALID);
        assert_contains(err.msg, cases[i].says);
        assert_int_equal(hfd_server_open(&(struct hfd_app){.settings = settings,
                                                           .clock = &moved_clock,
                                                           .rng = &hfd_rng_system},
                                         &server, &err),
                         HFD_INVALID);
        assert_null(server);
        assert_string_equal(err.field, i < 4 ? "listen" : "ops_listen");
        assert_contains(err.msg, i < 4 ? "--listen: " : "--ops-listen: ");
        assert_contains(err.msg, cases[i].says);
        hfd_settings_free(settings);
    }
}

/* ---- replicas ---- */

static void start_replica(int i, int64_t rules)
{
    const struct hfd_keeper_config config = {.store = fx.store,
                                             .clock = &moved_clock,
                                             .db = &moved_clock,
                                             .rng = &hfd_rng_system,
                                             .name = "machine",
                                             .schema = (int64_t)hfd_migrations_count,
                                             .key_ids = "5cba97cb",
                                             .settings = {rules * 10, rules}};

    hfd_keeper_free(fx.keepers[i]);
    assert_int_equal(hfd_keeper_new(&config, &fx.keepers[i], NULL), HFD_OK);
    assert_int_equal(hfd_keeper_beat(fx.keepers[i], NULL), HFD_OK);
}

static void expect_ready(const char *status, const char *word)
{
    char text[4096];
    int ops;

    assert_int_equal(hfd_keeper_beat(fx.keepers[0], NULL), HFD_OK);
    ops = dial(HFD_LISTENER_OPS, 0);
    say(ops, "GET /readyz HTTP/1.1\r\n" HOST CLOSE "\r\n");
    assert_true(hear(ops, NULL, 0, text, sizeof(text)));
    assert_contains(text, status);
    assert_contains(text, word);
    (void)close(ops);
}

/* A replica is not ready while the newest one has other settings, and is again when it has not. */
static void an_outdated_replica_is_not_ready(void **state)
{
    (void)state;
    prepare(NULL, 0);
    start_replica(0, 1);
    fx.app.keeper = fx.keepers[0];
    serve();
    expect_ready("HTTP/1.1 200 ", "\"ok\"");
    start_replica(1, 1);
    expect_ready("HTTP/1.1 200 ", "\"ok\"");
    start_replica(1, 2);
    expect_ready("HTTP/1.1 503 ", "a newer replica has other settings");
    start_replica(1, 1);
    expect_ready("HTTP/1.1 200 ", "\"ok\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_request_is_answered, finish),
        cmocka_unit_test_teardown(a_header_given_twice, finish),
        cmocka_unit_test_teardown(a_pipelined_request_is_dropped, finish),
        cmocka_unit_test_teardown(an_empty_line_is_no_request, finish),
        cmocka_unit_test_teardown(a_late_job_is_done_without, finish),
        cmocka_unit_test_teardown(a_flood_of_requests_gets_one_answer, finish),
        cmocka_unit_test_teardown(continue_is_sent_when_awaited, finish),
        cmocka_unit_test_teardown(requests_in_flight_are_limited, finish),
        cmocka_unit_test_teardown(connections_are_limited, finish),
        cmocka_unit_test_teardown(connections_are_spread, finish),
        cmocka_unit_test_teardown(clients_may_leave, finish),
        cmocka_unit_test_teardown(slow_senders_are_cut_off, finish),
        cmocka_unit_test_teardown(slow_readers_are_cut_off, finish),
        cmocka_unit_test_teardown(a_loop_that_hangs_is_seen, finish),
        cmocka_unit_test_teardown(stopping_drains, finish),
        cmocka_unit_test_teardown(draining_has_an_end, finish),
        cmocka_unit_test_teardown(addresses_are_checked, finish),
        cmocka_unit_test_teardown(an_outdated_replica_is_not_ready, finish),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
