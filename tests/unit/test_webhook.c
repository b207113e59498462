/* A webhook against a server in this process: its requests, its signature, and which answers take
 * an event. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "driver/base/base.h"
#include "driver/events/webhook.h"
#include "tests/lib/fakehttp.h"
#include "tests/lib/seams.h"
#include "tests/lib/tmpdir.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

/* The example of the Standard Webhooks specification. */
#define SECRET "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define ID "msg_p5jXN8AQM9LWM0D4loKWxJek"
#define TIMESTAMP INT64_C(1614265330)
#define BODY "{\"test\": 2432232314}"
#define SIGNATURE "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

struct fixture {
    char dir[TMPDIR_MAX], secret_file[192], url[96];
    struct test_clock clock;
    struct fakehttp *server;
    struct hfd_sender sender;
    struct hfd_webhook *webhook;
    pthread_mutex_t lock;
    char head[4096], body[128]; /* under lock: of the last request */
    atomic_int requests, status;
    struct hfd_err err;
};

static bool serve(void *ctx, struct fakehttp_conn *conn, const struct fakehttp_request *r)
{
    struct fixture *f = ctx;
    const int status = atomic_load(&f->status);
    static char large[100000];

    pthread_mutex_lock(&f->lock);
    (void)snprintf(f->head, sizeof(f->head), "%s", r->head);
    (void)snprintf(f->body, sizeof(f->body), "%s", r->body);
    pthread_mutex_unlock(&f->lock);
    atomic_fetch_add(&f->requests, 1);
    memset(large, 'x', sizeof(large) - 1);
    if (status == 0)
        return false;
    fakehttp_answer(conn, status, status / 100 == 3 ? "Location: /other\r\n" : "",
                    status == 201 ? large : "");
    return true;
}

static void write_secret(const struct fixture *f, const char *text)
{
    const int fd = open(f->secret_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    assert_int_equal(close(fd), 0);
}

static hfd_rc open_webhook(struct fixture *f)
{
    const struct hfd_webhook_config config = {
        .url = hfd_slice_of(f->url), .secret_file = f->secret_file, .clock = &f->clock.clock};

    return hfd_webhook_open(&config, &f->sender, &f->webhook, &f->err);
}

static int setup(void **state)
{
    static struct fixture f;

    f = (struct fixture){.lock = PTHREAD_MUTEX_INITIALIZER, .status = 204};
    *state = &f;
    tmpdir_make(f.dir);
    (void)snprintf(f.secret_file, sizeof(f.secret_file), "%s/secret", f.dir);
    test_clock_init(&f.clock);
    f.clock.wall_us = TIMESTAMP * HFD_US_PER_S + 999999;
    f.server = fakehttp_start(NULL, serve, &f);
    (void)snprintf(f.url, sizeof(f.url), "http://user:pass@127.0.0.1:%d/in?token=t",
                   fakehttp_port(f.server));
    write_secret(&f, SECRET "\n");
    return open_webhook(&f) == HFD_OK ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    if (f->webhook != NULL)
        f->sender.close(f->sender.ctx);
    fakehttp_stop(f->server);
    tmpdir_remove(f->dir);
    return 0;
}

static struct hfd_outgoing event(void)
{
    return (struct hfd_outgoing){
        .id = HFD_SLICE(ID), .subject = HFD_SLICE("a"), .body = HFD_SLICE(BODY)};
}

static bool has(struct fixture *f, const char *text)
{
    bool found;

    pthread_mutex_lock(&f->lock);
    found = strstr(f->head, text) != NULL;
    pthread_mutex_unlock(&f->lock);
    return found;
}

static void it_signs_as_standard_webhooks_says(void **state)
{
    struct fixture *f = *state;
    struct hfd_outgoing e = event();

    assert_int_equal(f->sender.send(f->sender.ctx, &e, 1, &f->err), HFD_OK);
    assert_true(e.sent);
    assert_true(has(f, "POST /in?token=t HTTP/1.1"));
    assert_true(has(f, "Content-Type: application/cloudevents+json\r\n"));
    assert_true(has(f, "webhook-id: " ID "\r\n"));
    assert_true(has(f, "webhook-timestamp: 1614265330\r\n"));
    assert_true(has(f, "webhook-signature: " SIGNATURE "\r\n"));
    assert_true(has(f, "Authorization: Basic dXNlcjpwYXNz\r\n"));
    assert_string_equal(f->body, BODY);
    test_clock_advance(&f->clock, HFD_US_PER_S); /* each attempt anew */
    assert_int_equal(f->sender.send(f->sender.ctx, &e, 1, &f->err), HFD_OK);
    assert_true(has(f, "webhook-timestamp: 1614265331\r\n"));
    assert_false(has(f, SIGNATURE));
}

static void which_answers_take_an_event(void **state)
{
    static const struct {
        int status; /* 0 = it hangs up */
        const char *words;
    } rows[] = {
        {200, NULL},
        {201, NULL}, /* with a large body */
        {204, NULL},
        {302, "it answers 302; no redirect is followed"},
        {410, "it answers 410"},
        {500, "it answers 500"},
        {0, ""},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hfd_outgoing e[2] = {event(), event()};
        const int before = atomic_load(&f->requests);
        hfd_rc rc;

        atomic_store(&f->status, rows[i].status);
        rc = f->sender.send(f->sender.ctx, e, 2, &f->err);
        assert_int_equal(rc == HFD_OK, rows[i].words == NULL);
        assert_int_equal(e[0].sent, rows[i].words == NULL);
        assert_int_equal(e[1].sent, rows[i].words == NULL);
        if (rows[i].status != 0) {
            assert_int_equal(atomic_load(&f->requests) - before, 2); /* no redirect is followed */
            if (rows[i].words != NULL)
                assert_string_equal(f->err.msg, rows[i].words);
        }
        assert_null(strstr(f->err.msg, "token"));
        assert_null(strstr(f->err.msg, "pass"));
    }
}

static void secrets(void **state)
{
    static const char *const bad[] = {
        "",
        "whsec_",
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa",   /* short */
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS!", /* no base64 */
        /* long */
        (SECRET "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
    };
    struct fixture *f = *state;
    struct hfd_outgoing e = event();

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        write_secret(f, bad[i]);
        assert_int_equal(hfd_webhook_reload(f->webhook, &f->err), HFD_INVALID);
        assert_non_null(strstr(f->err.msg, "expected whsec_ and the base64 of 24 to 64 random"));
        assert_null(strstr(f->err.msg, "MfKQ"));
    }
    assert_int_equal(f->sender.send(f->sender.ctx, &e, 1, &f->err), HFD_OK);
    assert_true(has(f, SIGNATURE)); /* the old one stays */
    write_secret(f, "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    assert_int_equal(hfd_webhook_reload(f->webhook, &f->err), HFD_OK);
    assert_int_equal(f->sender.send(f->sender.ctx, &e, 1, &f->err), HFD_OK);
    assert_false(has(f, SIGNATURE));
}

/* No call is made any more. */
static void a_cut_ends_it(void **state)
{
    struct fixture *f = *state;
    struct hfd_outgoing e = event();

    hfd_webhook_cut(f->webhook);
    assert_int_not_equal(f->sender.send(f->sender.ctx, &e, 1, &f->err), HFD_OK);
    assert_false(e.sent);
}

static int start(void **state)
{
    (void)state;
    return hfd_base_init(NULL) == HFD_OK ? 0 : -1;
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_signs_as_standard_webhooks_says),
        TEST(which_answers_take_an_event),
        TEST(secrets),
        TEST(a_cut_ends_it),
    };

    return cmocka_run_group_tests(tests, start, NULL);
}
