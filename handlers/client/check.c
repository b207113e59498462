/* See check.h. */
#include "handlers/client/check_answer.h"
#include "handlers/client/check_life.h"

#include "driver/base/jsonx.h"

#include <stdio.h>

#define BODY_MAX_BYTES ((size_t)4 * 1024 * 1024)
#define COOKIE_MAX_BYTES ((size_t)64 * 1024)
#define TOGETHER_MAX 8
#define BUSY_TRIES 3
#define CLEAN_TRIES 5 /* for a DELETE that is refused */
#define WAIT_FIRST_US HFD_US_PER_S
#define WAIT_MAX_US (INT64_C(10) * HFD_US_PER_S)
#define BUSY_WAIT_MAX_S 30

/* A clean-up is not stopped by a signal. */
static const volatile sig_atomic_t never = 0;

/* ---- rules ---- */

void hfd_check_judge(struct hfd_check *k, enum hfd_check_rule rule, bool met, const char *seen)
{
    struct hfd_check_result *r = &k->report->of[rule];

    if (r->verdict == HFD_CHECK_FAIL)
        return;
    r->verdict = met ? HFD_CHECK_PASS : HFD_CHECK_FAIL;
    (void)snprintf(r->seen, sizeof(r->seen), "%s", met ? "" : seen);
}

void hfd_check_skip(struct hfd_check *k, enum hfd_check_rule rule, const char *why)
{
    struct hfd_check_result *r = &k->report->of[rule];

    if (r->verdict == HFD_CHECK_SKIP)
        (void)snprintf(r->seen, sizeof(r->seen), "%s", why);
}

bool hfd_check_stopped(const struct hfd_check *k)
{
    return k->broken || *k->options->stop != 0;
}

/* ---- orders ---- */

struct hfd_check_order *hfd_check_new_order(struct hfd_check *k)
{
    static const char digits[] = "0123456789abcdef";
    struct hfd_check_order *o = &k->orders[k->order_count];
    unsigned char random[HFD_CHECK_ID_LEN / 2];

    HFD_ASSERT(k->order_count < HFD_CHECK_ORDERS_MAX);
    k->order_count++;
    *o = (struct hfd_check_order){.may_exist = false};
    hfd_rng_bytes(k->rng, random, sizeof(random));
    for (size_t i = 0; i < sizeof(random); i++) {
        o->id[2 * i] = digits[random[i] >> 4];
        o->id[2 * i + 1] = digits[random[i] & 15];
    }
    hfd_buf_init(&o->cookie, COOKIE_MAX_BYTES);
    return o;
}

/* A document with the GUResID in place of ${id}. */
static void fill_in(struct hfd_buf *out, hfd_slice body, const char *id)
{
    static const char mark[] = "${id}";

    while (body.len > 0) {
        const char *at = memmem(body.p, body.len, mark, sizeof(mark) - 1);
        const size_t before = at != NULL ? (size_t)(at - body.p) : body.len;
        const size_t used = at != NULL ? before + sizeof(mark) - 1 : before;

        hfd_buf_add(out, (hfd_slice){body.p, before});
        if (at != NULL)
            hfd_buf_add(out, hfd_slice_of(id));
        body.p += used;
        body.len -= used;
    }
}

/* ---- one exchange ---- */

static const char *const methods[] = {"GET", "PUT", "DELETE"};

static void set_cookie_header(const struct hfd_check_ask *ask, struct hfd_client_request *r)
{
    const hfd_slice cookie =
        ask->cookie.p != NULL ? ask->cookie : hfd_buf_slice(&ask->order->cookie);
    const char *name = ask->cookie_header != NULL ? ask->cookie_header : "Humanitec-Driver-Cookie";

    if (cookie.len == 0 || name[0] == '\0')
        return;
    r->headers[0] = (struct hfd_client_header){name, cookie};
    r->header_count = 1;
}

/* The last cookie that was set counts; a DELETE 204 forgets it. */
static void keep_cookie(const struct hfd_check_ask *ask, const struct hfd_check_answer *a)
{
    const hfd_slice cookie = hfd_client_header(&a->http, "Set-Humanitec-Driver-Cookie");
    const bool gone = ask->method == HFD_CHECK_DELETE && a->http.status == 204;

    if (cookie.p == NULL && !gone)
        return;
    hfd_buf_reset(&ask->order->cookie);
    if (!gone)
        hfd_buf_add(&ask->order->cookie, cookie);
}

static void describe(const struct hfd_check_ask *ask, struct hfd_check_answer *a)
{
    const char *method = methods[ask->method];
    const struct hfd_client_answer *http = &a->http;
    int n;

    if (http->status == 0) {
        (void)snprintf(a->text, sizeof(a->text), "%s got no answer: %s", method, http->why);
        return;
    }
    n = snprintf(a->text, sizeof(a->text), "%s answered %d", method, http->status);
    if (http->body.len > 0 && n > 0)
        (void)snprintf(a->text + n, sizeof(a->text) - (size_t)n, ": %.*s",
                       (int)(http->body.len < 180 ? http->body.len : 180), http->body.p);
    for (char *p = a->text; *p != '\0'; p++)
        if ((unsigned char)*p < ' ')
            *p = ' ';
}

static void take(struct hfd_check *k, const struct hfd_check_ask *ask, struct hfd_check_answer *a)
{
    a->doc = NULL;
    if (a->http.body.len > 0 &&
        hfd_json_parse(hfd_buf_slice(&a->http.body), &a->doc, NULL) != HFD_OK)
        a->doc = NULL;
    describe(ask, a);
    if (a->http.status == 0) {
        k->broken = true;
        return;
    }
    if (ask->method == HFD_CHECK_PUT && a->http.status < 400)
        ask->order->may_exist = true;
    if (ask->method == HFD_CHECK_DELETE && a->http.status == 204)
        ask->order->may_exist = false;
    hfd_check_answer(k, ask, a);
    keep_cookie(ask, a);
}

/* The seconds that a driver which is busy for a while asks for; 0 = it is not. */
static int64_t busy_for_s(const struct hfd_client_answer *a)
{
    int64_t s;

    return (a->status == 429 || a->status == 503) &&
                   hfd_parse_i64(hfd_client_header(a, "Retry-After"), 0, INT64_MAX, &s, NULL) ==
                       HFD_OK
               ? (s < 1                 ? 1
                  : s > BUSY_WAIT_MAX_S ? BUSY_WAIT_MAX_S
                                        : s)
               : 0;
}

void hfd_check_send_many(struct hfd_check *k, const struct hfd_check_ask *ask,
                         struct hfd_check_answer *out, size_t count)
{
    struct hfd_client_request requests[TOGETHER_MAX];
    struct hfd_client_answer answers[TOGETHER_MAX];
    const struct hfd_client_batch batch = {requests, answers, count};
    struct hfd_buf body;

    HFD_ASSERT(count <= TOGETHER_MAX);
    hfd_buf_init(&body, BODY_MAX_BYTES);
    fill_in(&body, ask->body, ask->order->id);
    for (size_t i = 0; i < count; i++) {
        requests[i] = (struct hfd_client_request){.method = methods[ask->method],
                                                  .path = ask->order->id,
                                                  .body = ask->body.p != NULL ? hfd_buf_slice(&body)
                                                                              : HFD_SLICE_NONE};
        if (ask->body.p != NULL && requests[i].body.p == NULL)
            requests[i].body = HFD_SLICE("");
        set_cookie_header(ask, &requests[i]);
    }
    hfd_client_send(k->http, &batch);
    hfd_buf_fini(&body);
    for (size_t i = 0; i < count; i++) {
        out[i].http = answers[i];
        take(k, ask, &out[i]);
    }
}

void hfd_check_send(struct hfd_check *k, const struct hfd_check_ask *ask,
                    struct hfd_check_answer *out)
{
    struct hfd_client_request request = {.method = methods[ask->method], .path = ask->order->id};
    const struct hfd_client_batch batch = {&request, &out->http, 1};
    struct hfd_buf body;

    hfd_buf_init(&body, BODY_MAX_BYTES);
    fill_in(&body, ask->body, ask->order->id);
    if (ask->body.p != NULL)
        request.body = body.len > 0 ? hfd_buf_slice(&body) : HFD_SLICE("");
    set_cookie_header(ask, &request);
    for (int i = 1;; i++) {
        int64_t s;

        hfd_client_send(k->http, &batch);
        s = busy_for_s(&out->http);
        if (s == 0 || i == BUSY_TRIES || hfd_check_stopped(k))
            break;
        hfd_client_answer_fini(&out->http);
        hfd_client_wait(k->http, s * HFD_US_PER_S, k->options->stop);
    }
    hfd_buf_fini(&body);
    take(k, ask, out);
}

void hfd_check_answer_fini(struct hfd_check_answer *a)
{
    json_decref(a->doc);
    a->doc = NULL;
    hfd_client_answer_fini(&a->http);
}

/* ---- polling ---- */

/* Retry-After, or a second that grows to ten. */
static int64_t next_wait_us(const struct hfd_check_answer *a, int64_t last_us)
{
    int64_t s;

    if (hfd_parse_i64(hfd_client_header(&a->http, "Retry-After"), 0, INT64_MAX / HFD_US_PER_S, &s,
                      NULL) == HFD_OK)
        return s * HFD_US_PER_S < WAIT_FIRST_US ? WAIT_FIRST_US
               : s * HFD_US_PER_S > WAIT_MAX_US ? WAIT_MAX_US
                                                : s * HFD_US_PER_S;
    return last_us * 2 < WAIT_MAX_US ? last_us * 2 : WAIT_MAX_US;
}

static int64_t interval_us(const struct hfd_check *k, int64_t otherwise_us)
{
    return k->options->interval_us > 0 ? k->options->interval_us : otherwise_us;
}

int hfd_check_poll(struct hfd_check *k, const struct hfd_check_ask *ask, int while_status)
{
    const int64_t until_us = hfd_clock_mono_us(&hfd_clock_system) + k->options->patience_us;
    int64_t wait_us = WAIT_FIRST_US / 2;

    for (;;) {
        struct hfd_check_answer a;
        int status;

        hfd_check_send(k, ask, &a);
        status = a.http.status;
        wait_us = next_wait_us(&a, wait_us);
        (void)snprintf(k->last, sizeof(k->last), "%s", a.text);
        hfd_check_answer_fini(&a);
        if (status != while_status || hfd_clock_mono_us(&hfd_clock_system) >= until_us || k->broken)
            return status;
        /* A clean-up goes on after a stop; other polls end. */
        if (hfd_check_stopped(k) && ask->method != HFD_CHECK_DELETE)
            return status;
        hfd_client_wait(k->http, interval_us(k, wait_us),
                        ask->method == HFD_CHECK_DELETE ? &never : k->options->stop);
    }
}

/* ---- the run ---- */

/* Asks for a resource that does not exist: can the driver be reached, and does it serve us? */
static hfd_rc knock(struct hfd_check *k, struct hfd_err *err)
{
    const struct hfd_client_request request = {.method = "GET", .path = hfd_check_new_order(k)->id};
    struct hfd_client_answer answer;
    const struct hfd_client_batch batch = {&request, &answer, 1};
    hfd_rc rc = HFD_OK;

    hfd_client_send(k->http, &batch);
    if (answer.status == 0)
        rc = hfd_fail(err, HFD_IO, "%s cannot be reached: %s", k->options->target, answer.why);
    else if (answer.status == 401 || answer.status == 403)
        rc = hfd_fail(err, HFD_IO, "%s answers %d: expected a token that may call it: --token-file",
                      k->options->target, answer.status);
    k->get_is_served = answer.status != 405;
    if (rc == HFD_OK)
        hfd_check_judge(k, HFD_RULE_GET_THERE, k->get_is_served, "GET answered 405");
    hfd_client_answer_fini(&answer);
    return rc;
}

/* Deletes an order, also when a DELETE is refused for a while. @return true when it is gone */
static bool clean_order(struct hfd_check *k, struct hfd_check_order *o)
{
    const int64_t until_us = hfd_clock_mono_us(&hfd_clock_system) + k->options->patience_us;
    const struct hfd_check_ask ask = {.order = o, .method = HFD_CHECK_DELETE};

    o->operation = NULL;
    for (int refusals = 0; refusals < CLEAN_TRIES;) {
        const int status = hfd_check_poll(k, &ask, 202);

        if (status == 204 || hfd_clock_mono_us(&hfd_clock_system) >= until_us)
            return status == 204;
        /* 409: another operation has to end first. */
        refusals += status != 409;
        k->broken = false;
        hfd_client_wait(k->http, interval_us(k, WAIT_FIRST_US), &never);
    }
    return false;
}

static void clean_up(struct hfd_check *k)
{
    for (size_t i = 0; i < k->order_count; i++) {
        struct hfd_check_order *o = &k->orders[i];

        k->broken = false;
        if (o->may_exist && !clean_order(k, o))
            (void)snprintf(k->report->left[k->report->left_count++], HFD_CHECK_ID_LEN + 1, "%s",
                           o->id);
        hfd_buf_fini(&o->cookie);
    }
}

/* Says why rules were not judged, where no step has said so. */
static void explain_skips(struct hfd_check *k)
{
    for (int i = 0; i < HFD_CHECK_RULE_COUNT; i++)
        if (k->report->of[i].seen[0] == '\0')
            hfd_check_skip(k, (enum hfd_check_rule)i,
                           *k->options->stop != 0 ? "stopped before"
                           : k->broken            ? "no answer came before"
                                                  : "no answer was of this kind");
}

hfd_rc hfd_check_run(struct hfd_client_http *http, const struct hfd_check_options *options,
                     const struct hfd_rng *rng, struct hfd_check_report *report,
                     struct hfd_err *err)
{
    struct hfd_check k = {.http = http, .options = options, .report = report, .rng = rng};
    void (*const steps[])(struct hfd_check *) = {hfd_check_absent, hfd_check_garbage,
                                                 hfd_check_life, hfd_check_by_update};
    hfd_rc rc;

    *report = (struct hfd_check_report){.left_count = 0};
    rc = knock(&k, err);
    for (size_t i = 0; rc == HFD_OK && i < sizeof(steps) / sizeof(steps[0]); i++)
        if (!hfd_check_stopped(&k))
            steps[i](&k);
    if (rc == HFD_OK)
        explain_skips(&k);
    clean_up(&k);
    return rc;
}
