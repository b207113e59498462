/*
 * driver/backend/remote/http.c against a server in this process: what is sent, what is understood,
 * and every way in which an answer can be missing. Only tests that fail wait long.
 */
#include "driver/backend/remote/http.h"
#include "driver/base/base.h"
#include "driver/base/log.h"
#include "driver/base/peer.h"
#include "tests/lib/contains.h"
#include "tests/lib/fakehttp.h"
#include "tests/lib/seams.h"
#include "tests/lib/tmpdir.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define MS INT64_C(1000)
#define LONG_US (INT64_C(60) * HFD_US_PER_S)
#define ANSWER_MAX 100000

/* ---- a client, and what became of one request ---- */

struct fixture {
    char dir[TMPDIR_MAX];
    char url[256], token[192], cert[192], key[192], other_cert[192], other_key[192];
    struct hfd_remote_http_config config;
    struct hfd_remote_http *http;
    struct fakehttp *server;
    atomic_int requests;
    /* The last request; read by the test when the answer is there. */
    char method[16], target[512], head[8192], body[512];
    int connection;
    pthread_mutex_t lock; /* of behave: a server's thread may still be at a request that the client
                             has given up */
    fakehttp_fn *behave;
    bool done;
};

static void behave_as(struct fixture *f, fakehttp_fn *fn)
{
    (void)pthread_mutex_lock(&f->lock);
    f->behave = fn;
    (void)pthread_mutex_unlock(&f->lock);
}

static bool serve(void *ctx, struct fakehttp_conn *conn, const struct fakehttp_request *r)
{
    struct fixture *f = ctx;
    fakehttp_fn *behave;

    (void)pthread_mutex_lock(&f->lock);
    behave = f->behave;
    (void)snprintf(f->method, sizeof(f->method), "%s", r->method);
    (void)snprintf(f->target, sizeof(f->target), "%.500s", r->target);
    (void)snprintf(f->head, sizeof(f->head), "%s", r->head);
    (void)snprintf(f->body, sizeof(f->body), "%s", r->body);
    f->connection = r->connection;
    (void)pthread_mutex_unlock(&f->lock);
    atomic_fetch_add(&f->requests, 1);
    return behave(f, conn, r);
}

static bool answer_ok(void *ctx, struct fakehttp_conn *conn, const struct fakehttp_request *r)
{
    (void)ctx;
    (void)r;
    fakehttp_answer(conn, 200, "Content-Type: application/json\r\n", "{\"items\":[]}");
    return true;
}

static void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) &&
                close(fd) == 0);
}

static void *setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    tmpdir_make(f->dir);
    (void)snprintf(f->token, sizeof(f->token), "%s/token", f->dir);
    (void)snprintf(f->cert, sizeof(f->cert), "%s/cert.pem", f->dir);
    (void)snprintf(f->key, sizeof(f->key), "%s/key.pem", f->dir);
    (void)snprintf(f->other_cert, sizeof(f->other_cert), "%s/other.pem", f->dir);
    (void)snprintf(f->other_key, sizeof(f->other_key), "%s/other.key", f->dir);
    (void)pthread_mutex_init(&f->lock, NULL);
    f->behave = answer_ok;
    f->config = (struct hfd_remote_http_config){
        .clock = &hfd_clock_system,
        .url = f->url,
        .connect_timeout_us = LONG_US,
        .timeout_us = LONG_US,
        .connections_max = 4,
        .answer_max_bytes = ANSWER_MAX,
    };
    *state = f;
    return f;
}

static int open_plain(void **state)
{
    struct fixture *f = setup(state);

    f->server = fakehttp_start(NULL, serve, f);
    (void)snprintf(f->url, sizeof(f->url), "http://127.0.0.1:%d", fakehttp_port(f->server));
    return 0;
}

static int open_nothing(void **state)
{
    (void)setup(state);
    return 0;
}

static int close_all(void **state)
{
    struct fixture *f = *state;

    hfd_remote_http_close(&f->http);
    if (f->server != NULL)
        fakehttp_stop(f->server);
    tmpdir_remove(f->dir);
    free(f);
    return 0;
}

static void open_client(struct fixture *f)
{
    struct hfd_err err = {0};

    if (hfd_remote_http_open(&f->config, &f->http, &err) != HFD_OK)
        fail_msg("%s", err.msg);
}

static void on_done(struct hfd_remote_call *call)
{
    ((struct fixture *)call->arg)->done = true;
}

static void send_call(struct fixture *f, struct hfd_remote_call *call,
                      enum hfd_remote_method method, const char *path, const char *body)
{
    struct hfd_err err;

    if (f->http == NULL)
        open_client(f);
    f->done = false;
    *call = (struct hfd_remote_call){
        .request = {.method = method, .path = hfd_slice_of(path), .body = hfd_slice_of(body)},
        .done = on_done,
        .arg = f};
    assert_int_equal(hfd_remote_http_send(f->http, call, &err), HFD_OK);
}

/* Sends and waits for the end; the answer is in call until call_fini. */
static void ask_with(struct fixture *f, struct hfd_remote_call *call, enum hfd_remote_method method,
                     const char *path, const char *body)
{
    send_call(f, call, method, path, body);
    while (!f->done)
        hfd_remote_http_run(f->http, HFD_US_PER_S);
}

static void ask(struct fixture *f, struct hfd_remote_call *call)
{
    ask_with(f, call, HFD_REMOTE_GET, "/clusters", NULL);
}

/* ---- what is sent ---- */

static void each_method_is_sent_as_it_is(void **state)
{
    static const struct {
        enum hfd_remote_method method;
        const char *text, *body;
    } cases[] = {
        {HFD_REMOTE_GET, "GET", ""},       {HFD_REMOTE_POST, "POST", "{\"kind\":\"Cluster\"}"},
        {HFD_REMOTE_POST, "POST", ""},     {HFD_REMOTE_PATCH, "PATCH", "{\"spec\":{}}"},
        {HFD_REMOTE_DELETE, "DELETE", ""},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hfd_remote_call call;
        bool has_body = cases[i].body[0] != '\0';

        ask_with(f, &call, cases[i].method, "/clusters/2a?search=labels.a%3D'b'", cases[i].body);
        assert_true(call.answer.arrived);
        assert_string_equal(f->method, cases[i].text);
        assert_string_equal(f->target, "/api/hyperfleet/v1/clusters/2a?search=labels.a%3D'b'");
        assert_string_equal(f->body, cases[i].body);
        assert_non_null(
            strstr(f->head, "\r\nAccept: application/json, application/problem+json\r\n"));
        assert_non_null(strstr(f->head, "\r\nUser-Agent: hyperfleet-driver/"));
        assert_int_equal(strstr(f->head, "\r\nContent-Type: application/json\r\n") != NULL,
                         has_body);
        assert_null(strcasestr(f->head, "\r\nExpect:"));
        assert_null(strcasestr(f->head, "\r\nAuthorization:"));
        assert_null(strcasestr(f->head, "\r\nAccept-Encoding:"));
        assert_null(strcasestr(f->head, "\r\nCookie:"));
        hfd_remote_call_fini(&call);
    }
}

/* The identity is sent under the name that the settings give. */
static void the_identity_header_is_sent(void **state)
{
    struct fixture *f = *state;
    struct hfd_remote_call call;

    f->config.identity_header = "X-HyperFleet-Identity";
    f->config.identity = "driver@example.com";
    ask(f, &call);
    assert_non_null(strstr(f->head, "\r\nX-HyperFleet-Identity: driver@example.com\r\n"));
    hfd_remote_call_fini(&call);
}

/* The base URL may end in slashes, have a path of its own, and may already be the API's. */
static void the_base_url_is_joined(void **state)
{
    static const struct {
        const char *behind, *target;
    } cases[] = {
        {"", "/api/hyperfleet/v1/clusters"},
        {"/", "/api/hyperfleet/v1/clusters"},
        {"//", "/api/hyperfleet/v1/clusters"},
        {"/gw/a", "/gw/a/api/hyperfleet/v1/clusters"},
        {"/gw/", "/gw/api/hyperfleet/v1/clusters"},
        {"/api/hyperfleet/v1", "/api/hyperfleet/v1/clusters"},
        {"/gw/api/hyperfleet/v1/", "/gw/api/hyperfleet/v1/clusters"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hfd_remote_call call;

        (void)snprintf(f->url, sizeof(f->url), "http://127.0.0.1:%d%s", fakehttp_port(f->server),
                       cases[i].behind);
        ask(f, &call);
        assert_string_equal(f->target, cases[i].target);
        hfd_remote_call_fini(&call);
        hfd_remote_http_close(&f->http);
    }
}

/* A proxy of the environment is not used: no program listens where it points to. */
static void proxies_of_the_environment_are_left_aside(void **state)
{
    struct fixture *f = *state;
    struct hfd_remote_call call;

    assert_int_equal(setenv("http_proxy", "http://127.0.0.1:1/", 1), 0);
    assert_int_equal(setenv("ALL_PROXY", "http://127.0.0.1:1/", 1), 0);
    ask(f, &call);
    (void)unsetenv("http_proxy");
    (void)unsetenv("ALL_PROXY");
    assert_true(call.answer.arrived);
    hfd_remote_call_fini(&call);
}

/*
 * Requests share a connection, except POST, which has a connection of its own. Otherwise the
 * library could send a POST twice.
 */
static void connections_are_kept_but_for_post(void **state)
{
    struct fixture *f = *state;
    struct hfd_remote_call call;

    for (int i = 0; i < 5; i++) {
        ask(f, &call);
        hfd_remote_call_fini(&call);
        assert_int_equal(f->connection, 1);
    }
    ask_with(f, &call, HFD_REMOTE_POST, "/clusters", "{}");
    hfd_remote_call_fini(&call);
    assert_int_equal(f->connection, 2);
    assert_int_equal(fakehttp_connections(f->server), 2);
}

/* ---- what is understood ---- */

static const struct {
    int status;
    const char *headers, *body;
    bool is_json;
    int64_t retry_after_us;
    const char *type; /* without parameters; NULL = not looked at */
} answers[] = {
    {200, "Content-Type: application/json\r\n", "{}", true, 0, NULL},
    {200, "Content-Type: application/json; charset=utf-8\r\n", "{}", true, 0, "application/json"},
    {404, "Content-Type: application/problem+json\r\n", "{\"code\":\"HYPERFLEET-NTF-001\"}", true,
     0, NULL},
    {201, "content-type: APPLICATION/JSON ;x=y\r\n", "{}", true, 0, "APPLICATION/JSON"},
    {200, "Content-Type: text/html\r\n", "<html>", false, 0, "text/html"},
    {200, "Content-Type: application/jsonp\r\n", "x", false, 0, NULL},
    {200, "", "{}", false, 0, NULL},
    {204, "", "", false, 0, NULL},
    {503, "Content-Type: text/plain\r\nRetry-After: 7\r\n", "later", false, 7 * HFD_US_PER_S, NULL},
    {429, "retry-after:   120  \r\n", "", false, 120 * HFD_US_PER_S, NULL},
    {429, "Retry-After: soon\r\n", "", false, 0, NULL},
    {500, "Content-Encoding: gzip\r\nContent-Type: application/json\r\n", "not gzip", true, 0,
     NULL},
};
static size_t answer_at;

static bool answer_table(void *ctx, struct fakehttp_conn *conn, const struct fakehttp_request *r)
{
    (void)ctx;
    (void)r;
    fakehttp_answer(conn, answers[answer_at].status, answers[answer_at].headers,
                    answers[answer_at].body);
    return true;
}

static void answers_are_taken_as_they_are(void **state)
{
    struct fixture *f = *state;

    behave_as(f, answer_table);
    for (answer_at = 0; answer_at < sizeof(answers) / sizeof(answers[0]); answer_at++) {
        struct hfd_remote_call call;

        ask(f, &call);
        assert_true(call.answer.arrived);
        assert_int_equal(call.answer.status, answers[answer_at].status);
        assert_int_equal(call.answer.is_json, answers[answer_at].is_json);
        assert_int_equal(call.answer.retry_after_us, answers[answer_at].retry_after_us);
        assert_true(hfd_slice_is(call.answer.body, answers[answer_at].body));
        if (answers[answer_at].type != NULL)
            assert_string_equal(call.answer.type, answers[answer_at].type);
        assert_true(call.duration_us >= 0);
        hfd_remote_call_fini(&call);
    }
}

/*
 * Seconds and dates; what is neither is none. Dates lie 30 s behind TEST_TIME_US, which is
 * 2025-01-01T00:00:00Z, a Wednesday.
 */
static void retry_after_is_seconds_or_a_date(void **state)
{
    static const struct {
        const char *text;
        int64_t us; /* -1 = not valid */
    } cases[] = {
        {"0", 0},
        {"1", HFD_US_PER_S},
        {" 30\r\n", 30 * HFD_US_PER_S},
        {"600", 300 * HFD_US_PER_S},
        {"86400", 300 * HFD_US_PER_S},
        {"99999999999999999999999999", 300 * HFD_US_PER_S},
        {"Wed, 01 Jan 2025 00:00:30 GMT", 30 * HFD_US_PER_S},
        {"Wednesday, 01-Jan-25 00:00:30 GMT", 30 * HFD_US_PER_S},
        {"Wed Jan  1 00:00:30 2025", 30 * HFD_US_PER_S},
        {"Tue, 31 Dec 2024 23:59:59 GMT", 0},
        {"Fri, 01 Jan 2049 00:00:00 GMT", 300 * HFD_US_PER_S},
        {"", -1},
        {"-1", -1},
        {"1.5", -1},
        {"10 s", -1},
        {"soon", -1},
        {"Wed, 01 Jan 2025 00:00:30 GMT and so on and so on and so on and so on and so on", -1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t us = 5;
        hfd_rc rc = hfd_peer_retry_after(hfd_slice_of(cases[i].text), TEST_TIME_US, &us);

        if ((rc == HFD_OK) != (cases[i].us >= 0) || us != (cases[i].us >= 0 ? cases[i].us : 0))
            fail_msg("\"%s\": %d, %lld us", cases[i].text, (int)rc, (long long)us);
    }
}

/* ---- what can go wrong ---- */

static bool slow_head(void *ctx, struct fakehttp_conn *conn, const struct fakehttp_request *r)
{
    (void)ctx;
    (void)r;
    fakehttp_hold(conn);
    return false;
}

static bool slow_body(void *ctx, struct fakehttp_conn *conn, const struct fakehttp_request *r)
{
    static const char part[] = "HTTP/1.1 200 OK\r\nContent-Type: "
                               "application/json\r\nContent-Length: 100\r\n\r\n{\"items\":";

    (void)ctx;
    (void)r;
    fakehttp_write(conn, part, sizeof(part) - 1);
    fakehttp_hold(conn);
    return false;
}

static bool cut_body(void *ctx, struct fakehttp_conn *conn, const struct fakehttp_request *r)
{
    static const char part[] = "HTTP/1.1 200 OK\r\nContent-Type: "
                               "application/json\r\nContent-Length: 100\r\n\r\n{\"items\":";

    (void)ctx;
    (void)r;
    fakehttp_write(conn, part, sizeof(part) - 1);
    return false;
}

static bool cut_chunks(void *ctx, struct fakehttp_conn *conn, const struct fakehttp_request *r)
{
    static const char part[] =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: "
        "chunked\r\n\r\n9\r\n{\"items\":\r\n";

    (void)ctx;
    (void)r;
    fakehttp_write(conn, part, sizeof(part) - 1);
    return false;
}

static bool no_answer(void *ctx, struct fakehttp_conn *conn, const struct fakehttp_request *r)
{
    (void)ctx;
    (void)conn;
    (void)r;
    return false;
}

static bool not_http(void *ctx, struct fakehttp_conn *conn, const struct fakehttp_request *r)
{
    (void)ctx;
    (void)r;
    fakehttp_write(conn, "SSH-2.0-OpenSSH_9.2\r\n", 21);
    return false;
}

static bool too_long_said(void *ctx, struct fakehttp_conn *conn, const struct fakehttp_request *r)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 100001\r\n\r\n";

    (void)ctx;
    (void)r;
    fakehttp_write(conn, head, sizeof(head) - 1);
    fakehttp_hold(conn);
    return false;
}

/* Goes on as long as the client reads. */
static bool too_long_chunked(void *ctx, struct fakehttp_conn *conn,
                             const struct fakehttp_request *r)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    static const char chunk[] = "10\r\n0123456789abcdef\r\n";

    (void)ctx;
    (void)r;
    fakehttp_write(conn, head, sizeof(head) - 1);
    for (int i = 0; i < 10000; i++)
        fakehttp_write(conn, chunk, sizeof(chunk) - 1);
    fakehttp_hold(conn);
    return false;
}

static bool many_headers(void *ctx, struct fakehttp_conn *conn, const struct fakehttp_request *r)
{
    (void)ctx;
    (void)r;
    fakehttp_write(conn, "HTTP/1.1 200 OK\r\n", 17);
    for (int i = 0; i < 10000; i++)
        fakehttp_write(conn, "X-Header: 0123456789\r\n", 22);
    fakehttp_hold(conn);
    return false;
}

/* Each fault is an answer that did not arrive, in words that name it. */
static void faults_are_told_in_words(void **state)
{
    static const struct {
        fakehttp_fn *behave;
        int64_t timeout_us;
        const char *says;
    } cases[] = {
        {slow_head, 200 * MS, "no answer in time: "},
        {slow_body, 200 * MS, "no answer in time: "},
        {cut_body, LONG_US, "no whole answer: "},
        {cut_chunks, LONG_US, "no whole answer: "},
        {no_answer, LONG_US, "no whole answer: "},
        {not_http, LONG_US, "it does not speak HTTP/1.1: "},
        {too_long_said, LONG_US, "longer than remote.answer_max"},
        {too_long_chunked, LONG_US, "longer than remote.answer_max"},
        {many_headers, LONG_US, "its headers are too long"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hfd_remote_call call;

        behave_as(f, cases[i].behave);
        f->config.timeout_us = cases[i].timeout_us;
        ask(f, &call);
        assert_false(call.answer.arrived);
        assert_int_equal(call.answer.body.len, 0);
        if (call.answer.failure == NULL || strstr(call.answer.failure, cases[i].says) == NULL)
            fail_msg("case %zu: %s", i, call.answer.failure);
        hfd_remote_call_fini(&call);
        hfd_remote_http_close(&f->http);
    }
}

/* An answer of one byte less than the limit is read. */
static bool answer_at_the_limit(void *ctx, struct fakehttp_conn *conn,
                                const struct fakehttp_request *r)
{
    static char body[ANSWER_MAX + 1];

    (void)ctx;
    (void)r;
    memset(body, ' ', ANSWER_MAX);
    fakehttp_answer(conn, 200, "Content-Type: application/json\r\n", body);
    return true;
}

static void an_answer_at_the_limit_is_read(void **state)
{
    struct fixture *f = *state;
    struct hfd_remote_call call;

    behave_as(f, answer_at_the_limit);
    ask(f, &call);
    assert_true(call.answer.arrived);
    assert_int_equal(call.answer.body.len, ANSWER_MAX);
    hfd_remote_call_fini(&call);
}

/* A redirect is an answer, and is not followed: where to would not stand in the settings. */
static bool redirect(void *ctx, struct fakehttp_conn *conn, const struct fakehttp_request *r)
{
    (void)ctx;
    (void)r;
    fakehttp_answer(conn, 302, "Location: /elsewhere\r\nSet-Cookie: a=b\r\n", "");
    return true;
}

static void redirects_are_not_followed_and_cookies_not_kept(void **state)
{
    struct fixture *f = *state;
    struct hfd_remote_call call;

    behave_as(f, redirect);
    for (int i = 1; i <= 2; i++) {
        ask(f, &call);
        assert_int_equal(call.answer.status, 302);
        assert_int_equal(atomic_load(&f->requests), i);
        assert_null(strcasestr(f->head, "\r\nCookie:"));
        hfd_remote_call_fini(&call);
    }
}

/* No server listens: the failure is "could not connect", and the client goes on. */
static void nobody_listens(void **state)
{
    struct fixture *f = *state;
    struct hfd_remote_call call;

    (void)snprintf(f->url, sizeof(f->url), "http://127.0.0.1:1");
    ask(f, &call);
    assert_false(call.answer.arrived);
    assert_non_null(strstr(call.answer.failure, "could not connect: "));
    hfd_remote_call_fini(&call);
}

/* A call that is given up is cut off at once, and its done is never called. */
static void a_call_under_way_can_be_cut_off(void **state)
{
    struct fixture *f = *state;
    struct hfd_remote_call call;

    behave_as(f, slow_head);
    send_call(f, &call, HFD_REMOTE_GET, "/clusters", NULL);
    while (atomic_load(&f->requests) == 0)
        hfd_remote_http_run(f->http, 10 * MS);
    hfd_remote_call_fini(&call);
    hfd_remote_call_fini(&call);
    hfd_remote_http_run(f->http, 0);
    assert_false(f->done);
}

struct waker {
    struct hfd_remote_http *http;
    atomic_bool waiting;
};

static void *wake_it(void *arg)
{
    struct waker *w = arg;

    while (!atomic_load(&w->waiting))
        continue;
    hfd_remote_http_wake(w->http);
    return NULL;
}

/* Another thread ends the wait; a wake before the wait is not lost. */
static void a_wait_is_ended_from_another_thread(void **state)
{
    struct fixture *f = *state;
    struct waker w;
    pthread_t thread;
    int64_t began_us = hfd_clock_mono_us(&hfd_clock_system);

    open_client(f);
    hfd_remote_http_wake(f->http);
    hfd_remote_http_run(f->http, 50 * HFD_US_PER_S);
    w.http = f->http;
    atomic_init(&w.waiting, false);
    assert_int_equal(pthread_create(&thread, NULL, wake_it, &w), 0);
    atomic_store(&w.waiting, true);
    hfd_remote_http_run(f->http, 50 * HFD_US_PER_S);
    (void)pthread_join(thread, NULL);
    assert_true(hfd_clock_mono_us(&hfd_clock_system) - began_us < 40 * HFD_US_PER_S);
}

/* ---- the token ---- */

static const char *bearer(struct fixture *f, char out[256])
{
    const struct fakehttp_request r = {.head = f->head};

    return fakehttp_header(&r, "authorization", out, 256);
}

/*
 * The token is read again when its file changes: replaced, as mounted secrets are, or written to. A
 * bad one leaves the old in use.
 */
static void a_changed_token_is_read_again(void **state)
{
    struct fixture *f = *state;
    struct hfd_remote_call call;
    char text[256], next[200];

    f->config.token_file = f->token;
    write_text(f->token, "one\n");
    ask(f, &call);
    hfd_remote_call_fini(&call);
    assert_string_equal(bearer(f, text), "Bearer one");

    (void)snprintf(next, sizeof(next), "%s.next", f->token);
    write_text(next, "two");
    assert_int_equal(rename(next, f->token), 0);
    ask(f, &call);
    hfd_remote_call_fini(&call);
    assert_string_equal(bearer(f, text), "Bearer two");

    write_text(f->token, "three\r\nX-Injected: yes\r\n");
    ask(f, &call);
    hfd_remote_call_fini(&call);
    assert_string_equal(bearer(f, text), "Bearer two");
    assert_null(strstr(f->head, "X-Injected"));

    assert_int_equal(unlink(f->token), 0);
    ask(f, &call);
    hfd_remote_call_fini(&call);
    assert_string_equal(bearer(f, text), "Bearer two");

    write_text(f->token, " four");
    ask(f, &call);
    hfd_remote_call_fini(&call);
    assert_string_equal(bearer(f, text),
                        "Bearer two"); /* a blank in front: not one token on one line */

    write_text(f->token, "four.of-four~+/=  \n\n");
    ask(f, &call);
    hfd_remote_call_fini(&call);
    assert_string_equal(bearer(f, text), "Bearer four.of-four~+/=");
}

static bool answer_by_token(void *ctx, struct fakehttp_conn *conn, const struct fakehttp_request *r)
{
    char text[64];

    (void)ctx;
    if (strcmp(fakehttp_header(r, "authorization", text, sizeof(text)), "Bearer right") == 0)
        fakehttp_answer(conn, 200, "Content-Type: application/json\r\n", "{}");
    else
        fakehttp_answer(conn, 401, "", "");
    return true;
}

/* After a 401 the file is read again though it looks the same: same size, time put back. */
static void after_a_401_the_token_is_read_again(void **state)
{
    struct fixture *f = *state;
    struct hfd_remote_call call;
    struct stat before;
    struct timespec times[2];

    f->config.token_file = f->token;
    behave_as(f, answer_by_token);
    write_text(f->token, "wrong");
    open_client(f);
    assert_int_equal(stat(f->token, &before), 0);
    write_text(f->token, "right");
    times[0] = before.st_atim;
    times[1] = before.st_mtim;
    assert_int_equal(utimensat(AT_FDCWD, f->token, times, 0), 0);
    ask(f, &call);
    assert_int_equal(call.answer.status, 401);
    hfd_remote_call_fini(&call);
    ask(f, &call);
    assert_int_equal(call.answer.status, 200);
    hfd_remote_call_fini(&call);
}

static bool tell_back(void *ctx, struct fakehttp_conn *conn, const struct fakehttp_request *r)
{
    const char *token = strstr(r->head, "Bearer ");
    char body[256];

    (void)ctx;
    (void)snprintf(body, sizeof(body), "{\"detail\":\"bad header %.20s, %.13s\",\"code\":\"X\"}",
                   token != NULL ? token : "", token != NULL ? token + 7 : "");
    fakehttp_answer(conn, strstr(r->target, "good") != NULL ? 200 : 400,
                    "Content-Type: application/json\r\n", body);
    return true;
}

/* A refusal that tells the token back is heard without it; another answer is as it came. */
static void a_token_told_back_is_hidden(void **state)
{
    struct fixture *f = *state;
    struct hfd_remote_call call;

    write_text(f->token, "se.cr-et_13ch");
    f->config.token_file = f->token;
    f->behave = tell_back;
    ask(f, &call);
    assert_int_equal(call.answer.status, 400);
    assert_lacks(call.answer.body, "se.cr-et");
    assert_contains(call.answer.body, "bad header Bearer *************");
    assert_contains(call.answer.body, "\"code\":\"X\"}");
    hfd_remote_call_fini(&call);
    ask_with(f, &call, HFD_REMOTE_GET, "/good", NULL);
    assert_contains(call.answer.body, "se.cr-et_13ch");
    hfd_remote_call_fini(&call);
}

/* The same after a call to reload, from any thread. */
static void reload_reads_what_looks_the_same(void **state)
{
    struct fixture *f = *state;
    struct hfd_remote_call call;
    struct stat before;
    struct timespec times[2];
    char text[256];

    f->config.token_file = f->token;
    write_text(f->token, "one");
    open_client(f);
    assert_int_equal(stat(f->token, &before), 0);
    write_text(f->token, "two");
    times[0] = before.st_atim;
    times[1] = before.st_mtim;
    assert_int_equal(utimensat(AT_FDCWD, f->token, times, 0), 0);
    hfd_remote_http_reload(f->http);
    ask(f, &call);
    hfd_remote_call_fini(&call);
    assert_string_equal(bearer(f, text), "Bearer two");
}

/* A file that cannot be used stops the start, and is named; no message holds what stands in the
 * file. */
static void bad_files_are_named_at_the_start(void **state)
{
    struct fixture *f = *state;
    char missing[192], big[192];
    const struct {
        const char *token, *ca, *cert, *key;
        const char *says;
    } cases[] = {
        {missing, NULL, NULL, NULL, "remote.token_file: "},
        {NULL, missing, NULL, NULL, "remote.ca_file: "},
        {f->dir, NULL, NULL, NULL, "not a regular file"},
        {big, NULL, NULL, NULL, "larger than 16384 bytes"},
        {NULL, f->key, NULL, NULL, "holds no PEM certificate"},
        {NULL, NULL, f->token, f->key, "holds no PEM certificate"},
        {NULL, NULL, f->cert, f->token, "holds no PEM private key"},
        {NULL, NULL, f->cert, f->other_key, "does not belong to the certificate"},
    };

    (void)snprintf(f->url, sizeof(f->url), "https://127.0.0.1:1");
    (void)snprintf(missing, sizeof(missing), "%s/missing", f->dir);
    (void)snprintf(big, sizeof(big), "%s/big", f->dir);
    write_text(big, "x");
    assert_int_equal(truncate(big, 16385), 0);
    write_text(f->token, "geheim geheim");
    fakehttp_make_cert(f->cert, f->key, "IP:127.0.0.1");
    fakehttp_make_cert(f->other_cert, f->other_key, "IP:127.0.0.1");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hfd_err err = {0};

        f->config.token_file = cases[i].token;
        f->config.ca_file = cases[i].ca;
        f->config.cert_file = cases[i].cert;
        f->config.key_file = cases[i].key;
        assert_int_equal(hfd_remote_http_open(&f->config, &f->http, &err), HFD_INVALID);
        assert_null(f->http);
        if (strstr(err.msg, cases[i].says) == NULL || strstr(err.msg, "geheim") != NULL)
            fail_msg("case %zu: %s", i, err.msg);
    }
}

static void add_open(void *ctx, const char *key, const char *path, unsigned mode)
{
    char *told = ctx;
    const size_t len = strlen(told);

    (void)snprintf(told + len, 256 - len, "%s %s %o;", key, strrchr(path, '/') + 1, mode);
}

/*
 * A warning names each file with a secret that every user may read or write. Other files have no
 * warning. A check names the wrong setting.
 */
static void open_secrets_are_told(void **state)
{
    struct fixture *f = *state;
    struct hfd_err err = {0};
    char told[256] = "";

    fakehttp_make_cert(f->cert, f->key, "IP:127.0.0.1");
    write_text(f->token, "geheim");
    f->config.token_file = f->token;
    f->config.ca_file = f->config.cert_file = f->cert;
    f->config.key_file = f->key;
    assert_int_equal(chmod(f->token, 0640), 0);
    assert_int_equal(chmod(f->key, 0600), 0);
    assert_int_equal(chmod(f->cert, 0666), 0);
    assert_int_equal(hfd_remote_files_check(&f->config, add_open, told, &err), HFD_OK);
    assert_string_equal(told, "");
    assert_int_equal(chmod(f->token, 0644), 0);
    assert_int_equal(chmod(f->key, 0602), 0);
    assert_int_equal(hfd_remote_files_check(&f->config, add_open, told, &err), HFD_OK);
    assert_string_equal(told, "remote.token_file token 644;remote.key_file key.pem 602;");
    assert_int_equal(hfd_remote_files_check(&f->config, NULL, NULL, &err), HFD_OK);
    assert_int_equal(unlink(f->cert), 0);
    assert_int_equal(hfd_remote_files_check(&f->config, add_open, told, &err), HFD_INVALID);
    assert_string_equal(err.field, "remote.ca_file");
}

static size_t log_text(FILE *log, char *text, size_t cap)
{
    const ssize_t len = pread(fileno(log), text, cap - 1, 0);

    assert_true(len >= 0);
    text[len] = '\0';
    return (size_t)len;
}

/*
 * The log is warned of an open token when it is first read, and when it is read again; without the
 * token.
 */
static void an_open_token_is_logged(void **state)
{
    struct fixture *f = *state;
    struct hfd_remote_call call;
    FILE *log = tmpfile();
    char text[1024];

    assert_non_null(log);
    hfd_log_set_fd(fileno(log));
    hfd_log_set_level(HFD_LOG_WARN);
    write_text(f->token, "geheim");
    f->config.token_file = f->token;
    open_client(f);
    assert_int_equal(log_text(log, text, sizeof(text)), 0);
    assert_int_equal(chmod(f->token, 0644), 0);
    hfd_remote_http_reload(f->http);
    ask(f, &call);
    hfd_remote_call_fini(&call);
    (void)log_text(log, text, sizeof(text));
    assert_non_null(strstr(text, "\"level\":\"warn\""));
    assert_non_null(strstr(text, "\"mode\":\"0644\""));
    assert_non_null(strstr(text, f->token));
    assert_null(strstr(text, "geheim"));
    hfd_remote_http_close(&f->http);
    rewind(log);
    assert_int_equal(ftruncate(fileno(log), 0), 0);
    open_client(f);
    (void)log_text(log, text, sizeof(text));
    assert_non_null(strstr(text, "remote.token_file"));
    hfd_log_set_fd(-1);
    hfd_log_set_level(HFD_LOG_ERROR);
    (void)fclose(log);
}

/* ---- TLS ---- */

static void start_tls(struct fixture *f, const char *san, bool wants_client_cert)
{
    struct fakehttp_tls tls = {.cert_file = f->cert, .key_file = f->key};

    fakehttp_make_cert(f->cert, f->key, san);
    if (wants_client_cert)
        tls.client_ca_file = f->other_cert;
    f->server = fakehttp_start(&tls, serve, f);
    (void)snprintf(f->url, sizeof(f->url), "https://127.0.0.1:%d", fakehttp_port(f->server));
}

/* A server whose certificate comes from the authority given is believed. */
static void a_certificate_of_the_authority_is_believed(void **state)
{
    struct fixture *f = *state;
    struct hfd_remote_call call;

    start_tls(f, "IP:127.0.0.1", false);
    f->config.ca_file = f->cert;
    ask(f, &call);
    if (!call.answer.arrived)
        fail_msg("%s", call.answer.failure);
    assert_int_equal(call.answer.status, 200);
    hfd_remote_call_fini(&call);
}

/*
 * A certificate without a known issuer, or for another name, is refused. No request is sent then.
 */
static void other_certificates_are_refused(void **state)
{
    struct fixture *f = *state;
    const char *const authorities[] = {NULL, f->other_cert};
    struct hfd_remote_call call;

    start_tls(f, "IP:127.0.0.1", false);
    fakehttp_make_cert(f->other_cert, f->other_key, "IP:127.0.0.1");
    for (size_t i = 0; i < 2; i++) {
        f->config.ca_file = authorities[i];
        ask(f, &call);
        assert_false(call.answer.arrived);
        assert_non_null(strstr(call.answer.failure, "TLS failed: "));
        hfd_remote_call_fini(&call);
        hfd_remote_http_close(&f->http);
    }
    fakehttp_stop(f->server);
    start_tls(f, "DNS:elsewhere.example", false);
    f->config.ca_file = f->cert;
    ask(f, &call);
    assert_false(call.answer.arrived);
    assert_non_null(strstr(call.answer.failure, "TLS failed: "));
    hfd_remote_call_fini(&call);
    assert_int_equal(atomic_load(&f->requests), 0);
}

/* The client certificate is shown, and without it a server that wants one does not answer. */
static void the_client_certificate_is_shown(void **state)
{
    struct fixture *f = *state;
    struct hfd_remote_call call;

    fakehttp_make_cert(f->other_cert, f->other_key, "DNS:driver");
    start_tls(f, "IP:127.0.0.1", true);
    f->config.ca_file = f->cert;
    ask(f, &call);
    assert_false(call.answer.arrived);
    hfd_remote_call_fini(&call);
    hfd_remote_http_close(&f->http);
    f->config.cert_file = f->other_cert;
    f->config.key_file = f->other_key;
    ask(f, &call);
    if (!call.answer.arrived)
        fail_msg("%s", call.answer.failure);
    hfd_remote_call_fini(&call);
}

/* A new authority is taken up without a restart; a half-written one leaves the old in use. */
static void changed_authorities_are_taken_up(void **state)
{
    struct fixture *f = *state;
    struct hfd_remote_call call;
    char ca[192], spare[192];

    start_tls(f, "IP:127.0.0.1", false);
    (void)snprintf(ca, sizeof(ca), "%s/ca.pem", f->dir);
    (void)snprintf(spare, sizeof(spare), "%s/spare.pem", f->dir);
    fakehttp_make_cert(ca, f->other_key, "DNS:another");
    f->config.ca_file = ca;
    ask(f, &call);
    assert_false(call.answer.arrived);
    hfd_remote_call_fini(&call);
    assert_int_equal(link(f->cert, spare), 0);
    assert_int_equal(rename(spare, ca), 0);
    ask(f, &call);
    if (!call.answer.arrived)
        fail_msg("%s", call.answer.failure);
    hfd_remote_call_fini(&call);
    assert_int_equal(unlink(ca), 0);
    write_text(ca, "-----BEGIN CERTIFICATE-----\n");
    ask(f, &call);
    assert_true(call.answer.arrived);
    hfd_remote_call_fini(&call);
}

static int open_all(void **state)
{
    struct hfd_err err;

    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    hfd_log_set_level(HFD_LOG_ERROR);
    return hfd_base_init(&err) == HFD_OK ? 0 : -1;
}

#define PLAIN(test) cmocka_unit_test_setup_teardown(test, open_plain, close_all)
#define BARE(test) cmocka_unit_test_setup_teardown(test, open_nothing, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAIN(each_method_is_sent_as_it_is),
        PLAIN(the_identity_header_is_sent),
        PLAIN(the_base_url_is_joined),
        PLAIN(proxies_of_the_environment_are_left_aside),
        PLAIN(connections_are_kept_but_for_post),
        PLAIN(answers_are_taken_as_they_are),
        cmocka_unit_test(retry_after_is_seconds_or_a_date),
        PLAIN(faults_are_told_in_words),
        PLAIN(an_answer_at_the_limit_is_read),
        PLAIN(redirects_are_not_followed_and_cookies_not_kept),
        BARE(nobody_listens),
        PLAIN(a_call_under_way_can_be_cut_off),
        PLAIN(a_wait_is_ended_from_another_thread),
        PLAIN(a_changed_token_is_read_again),
        PLAIN(after_a_401_the_token_is_read_again),
        PLAIN(a_token_told_back_is_hidden),
        PLAIN(reload_reads_what_looks_the_same),
        BARE(bad_files_are_named_at_the_start),
        BARE(open_secrets_are_told),
        PLAIN(an_open_token_is_logged),
        BARE(a_certificate_of_the_authority_is_believed),
        BARE(other_certificates_are_refused),
        BARE(the_client_certificate_is_shown),
        BARE(changed_authorities_are_taken_up),
    };

    return cmocka_run_group_tests(tests, open_all, NULL);
}
