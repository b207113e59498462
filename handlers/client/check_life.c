/* See check_life.h. */
#include "handlers/client/check_life.h"

#include <stdio.h>

#define TOGETHER 4
#define NO_GET "the driver does not serve GET"
#define NO_UPDATE "needs --update FILE"

/* Statuses that meet a rule; 0 = none. */
struct wanted {
    int a, b, c;
};

static bool is_wanted(struct wanted w, int status)
{
    return status == w.a || status == w.b || status == w.c;
}

/* Sends a request and judges its status. @return the status */
static int step(struct hfd_check *k, const struct hfd_check_ask *ask, enum hfd_check_rule rule,
                struct wanted wanted)
{
    struct hfd_check_answer a;
    int status;

    if (hfd_check_stopped(k))
        return 0;
    hfd_check_send(k, ask, &a);
    status = a.http.status;
    if (!k->broken)
        hfd_check_judge(k, rule, is_wanted(wanted, status), a.text);
    hfd_check_answer_fini(&a);
    return status;
}

/* The same by GET, where the driver serves it. */
static int step_get(struct hfd_check *k, struct hfd_check_order *o, enum hfd_check_rule rule,
                    struct wanted wanted)
{
    if (k->get_is_served)
        return step(k, &(struct hfd_check_ask){.order = o, .method = HFD_CHECK_GET}, rule, wanted);
    hfd_check_skip(k, rule, NO_GET);
    return 0;
}

static int step_put(struct hfd_check *k, struct hfd_check_order *o, hfd_slice body,
                    enum hfd_check_rule rule)
{
    const struct hfd_check_ask ask = {.order = o, .method = HFD_CHECK_PUT, .body = body};

    return step(k, &ask, rule, (struct wanted){200, 202, 0});
}

static int step_delete(struct hfd_check *k, struct hfd_check_order *o, enum hfd_check_rule rule,
                       struct wanted wanted)
{
    return step(k, &(struct hfd_check_ask){.order = o, .method = HFD_CHECK_DELETE}, rule, wanted);
}

static void say(struct hfd_check *k, const char *what, const struct hfd_check_order *o)
{
    char text[160];

    if (k->options->say == NULL)
        return;
    (void)snprintf(text, sizeof(text), "%s %s", what, o->id);
    k->options->say(text);
}

static void begin(struct hfd_check_order *o, const char *operation)
{
    o->operation = operation;
    o->timeout[0] = '\0';
}

/* Polls an operation to its end and judges that. @return true when it ended as wanted */
static bool finish(struct hfd_check *k, const struct hfd_check_ask *ask, enum hfd_check_rule rule,
                   int wanted)
{
    int status;

    if (hfd_check_stopped(k))
        return false;
    status = hfd_check_poll(k, ask, 202);
    if (*k->options->stop == 0 && !k->broken)
        hfd_check_judge(k, rule, status == wanted, k->last);
    return status == wanted;
}

/* The request by which an operation is polled: GET, or the PUT again. */
static struct hfd_check_ask polling(struct hfd_check *k, struct hfd_check_order *o, hfd_slice body)
{
    return (struct hfd_check_ask){.order = o,
                                  .method = k->get_is_served ? HFD_CHECK_GET : HFD_CHECK_PUT,
                                  .body = k->get_is_served ? HFD_SLICE_NONE : body};
}

/* ---- what does not exist ---- */

void hfd_check_absent(struct hfd_check *k)
{
    struct hfd_check_order *o = hfd_check_new_order(k);

    say(k, "asks for what does not exist:", o);
    (void)step_get(k, o, HFD_RULE_GET_ABSENT, (struct wanted){404, 0, 0});
    (void)step_delete(k, o, HFD_RULE_DEL_ABSENT, (struct wanted){204, 0, 0});
    (void)step_delete(k, o, HFD_RULE_DEL_ABSENT, (struct wanted){204, 0, 0});
}

/* ---- what is not valid ---- */

void hfd_check_garbage(struct hfd_check *k)
{
    static const struct {
        enum hfd_check_rule rule;
        hfd_slice body;
    } all[] = {
        {HFD_RULE_BAD_JSON, {"{\"type\": ", 9}},
        {HFD_RULE_BAD_NONE, {NULL, 0}},
        {HFD_RULE_BAD_ARRAY, {"[]", 2}},
        {HFD_RULE_BAD_TYPE, {"{\"type\": 5, \"driver\": {\"values\": {}}}", 37}},
    };
    struct hfd_check_order *o = hfd_check_new_order(k);

    say(k, "orders what is not valid:", o);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        const struct hfd_check_ask ask = {.order = o, .method = HFD_CHECK_PUT, .body = all[i].body};

        (void)step(k, &ask, all[i].rule, (struct wanted){400, 0, 0});
    }
    (void)step_get(k, o, HFD_RULE_BAD_NOTHING, (struct wanted){404, 0, 0});
}

/* ---- a resource that is ready ---- */

/* Copies the cookie that an order has now. */
static void copy_cookie(const struct hfd_check_order *o, struct hfd_buf *out)
{
    hfd_buf_init(out, o->cookie.max_bytes);
    hfd_buf_add(out, hfd_buf_slice(&o->cookie));
}

/* Sends a PUT that changes nothing: the cookie stays. */
static int put_same(struct hfd_check *k, const struct hfd_check_ask *ask, enum hfd_check_rule rule)
{
    const bool ready = rule == HFD_RULE_READY_SAME;
    const struct hfd_check_order *o = ask->order;
    struct hfd_buf before;
    int status;

    copy_cookie(o, &before);
    status = step(k, ask, rule, (struct wanted){200, ready ? 0 : 202, 0});
    if (before.len > 0 && (status == 200) == ready && !hfd_check_stopped(k))
        hfd_check_judge(k, HFD_RULE_COOKIE_SAME,
                        hfd_slice_eq(hfd_buf_slice(&before), hfd_buf_slice(&o->cookie)),
                        "the same PUT again set another cookie");
    hfd_buf_fini(&before);
    return status;
}

static void judge_together(struct hfd_check *k, struct hfd_check_order *o, hfd_slice body)
{
    const struct hfd_check_ask ask = {.order = o, .method = HFD_CHECK_PUT, .body = body};
    struct hfd_check_answer answers[TOGETHER];

    if (hfd_check_stopped(k))
        return;
    hfd_check_send_many(k, &ask, answers, TOGETHER);
    for (size_t i = 0; i < TOGETHER; i++) {
        if (!k->broken)
            hfd_check_judge(k, HFD_RULE_PUT_TOGETHER,
                            answers[i].http.status == 200 || answers[i].http.status == 202,
                            answers[i].text);
        hfd_check_answer_fini(&answers[i]);
    }
}

static void judge_get_twice(struct hfd_check *k, struct hfd_check_order *o)
{
    const struct hfd_check_ask ask = {.order = o, .method = HFD_CHECK_GET};
    struct hfd_check_answer a, b;

    if (!k->get_is_served) {
        hfd_check_skip(k, HFD_RULE_GET_READY, NO_GET);
        hfd_check_skip(k, HFD_RULE_GET_SAME, NO_GET);
        return;
    }
    hfd_check_send(k, &ask, &a);
    hfd_check_send(k, &ask, &b);
    if (!k->broken) {
        hfd_check_judge(k, HFD_RULE_GET_READY, a.http.status == 200, a.text);
        if (a.http.status == 200)
            hfd_check_judge(k, HFD_RULE_GET_SAME, json_equal(a.doc, b.doc) != 0, b.text);
    }
    hfd_check_answer_fini(&a);
    hfd_check_answer_fini(&b);
}

/* ---- the cookie ---- */

/* The status of a GET with the cookie under another name, or with another cookie. */
static int get_with(struct hfd_check *k, struct hfd_check_order *o, const char *header,
                    hfd_slice cookie)
{
    const struct hfd_check_ask ask = {
        .order = o, .method = HFD_CHECK_GET, .cookie_header = header, .cookie = cookie};
    struct hfd_check_answer a;
    int status;

    hfd_check_send(k, &ask, &a);
    status = a.http.status;
    hfd_check_answer_fini(&a);
    return status;
}

/* Changes a character in the middle. */
static void alter(struct hfd_buf *cookie)
{
    char *p = cookie->len > 0 ? cookie->p + cookie->len / 2 : NULL;

    if (p != NULL)
        *p = *p == 'A' ? 'B' : 'A';
}

static bool is_found(int status)
{
    return status == 200 || status == 202;
}

static void judge_cookie_use(struct hfd_check *k, struct hfd_check_order *o)
{
    struct hfd_buf altered;
    int right, none, wrong, bad;
    char seen[160];

    if (o->cookie.len == 0 || !k->get_is_served || hfd_check_stopped(k)) {
        hfd_check_skip(k, HFD_RULE_COOKIE_NAME, "the driver sets no cookie");
        return;
    }
    copy_cookie(o, &altered);
    alter(&altered);
    right = get_with(k, o, NULL, HFD_SLICE_NONE);
    none = get_with(k, o, "", HFD_SLICE_NONE);
    wrong = get_with(k, o, "Set-Humanitec-Driver-Cookie", HFD_SLICE_NONE);
    bad = get_with(k, o, NULL, hfd_buf_slice(&altered));
    hfd_buf_fini(&altered);
    if (k->broken)
        return;
    (void)snprintf(seen, sizeof(seen),
                   "GET with the cookie answered %d, without it %d, and with it under "
                   "Set-Humanitec-Driver-Cookie %d",
                   right, none, wrong);
    if (!is_found(right) && !is_found(wrong))
        return;
    if (!is_found(right) || !is_found(none) || !is_found(bad))
        hfd_check_judge(k, HFD_RULE_COOKIE_NAME, is_found(right), seen);
    else
        hfd_check_skip(k, HFD_RULE_COOKIE_NAME, "the driver answers the same with any cookie");
    hfd_check_judge(k, HFD_RULE_COOKIE_LOST, is_found(none), seen);
    (void)snprintf(seen, sizeof(seen), "GET with an altered cookie answered %d", bad);
    hfd_check_judge(k, HFD_RULE_COOKIE_BAD, bad == 400, seen);
}

/* ---- a life ---- */

/* @return the document that the resource is made of now; p is NULL when it was not made */
static hfd_slice create(struct hfd_check *k, struct hfd_check_order *o)
{
    hfd_slice body = k->options->input;
    struct hfd_check_ask ask = {.order = o, .method = HFD_CHECK_PUT, .body = body};
    int status;

    begin(o, "creating");
    status = step_put(k, o, body, HFD_RULE_CREATE);
    if (status != 200 && status != 202)
        return HFD_SLICE_NONE;
    status = put_same(k, &ask, HFD_RULE_CREATE_SAME);
    if (step_get(k, o, HFD_RULE_GET_MADE, (struct wanted){200, 202, 0}) == 404)
        judge_cookie_use(k, o);
    if (k->options->update.p == NULL) {
        hfd_check_skip(k, HFD_RULE_CREATE_OTHER, NO_UPDATE);
    } else if (status == 202) {
        ask.body = k->options->update;
        begin(o, NULL);
        status = step(k, &ask, HFD_RULE_CREATE_OTHER, (struct wanted){409, 202, 200});
        if (status == 409)
            begin(o, "creating");
        else if (status == 200 || status == 202)
            body = k->options->update;
    }
    ask = polling(k, o, body);
    return finish(k, &ask, HFD_RULE_CREATE_ENDS, 200) ? body : HFD_SLICE_NONE;
}

/* A driver that began an operation, rightly or not, ends it. */
static void settle(struct hfd_check *k, struct hfd_check_order *o, hfd_slice body)
{
    const struct hfd_check_ask ask = polling(k, o, body);

    if (k->get_is_served && !hfd_check_stopped(k))
        (void)hfd_check_poll(k, &ask, 202);
}

/* Judges a resource that is ready, and updates it. */
static void use(struct hfd_check *k, struct hfd_check_order *o, hfd_slice body)
{
    const struct hfd_check_ask same = {.order = o, .method = HFD_CHECK_PUT, .body = body};
    struct hfd_check_ask ask;
    int status;

    begin(o, NULL);
    (void)put_same(k, &same, HFD_RULE_READY_SAME);
    settle(k, o, body);
    judge_together(k, o, body);
    settle(k, o, body);
    judge_get_twice(k, o);
    judge_cookie_use(k, o);
    if (k->options->update.p == NULL) {
        hfd_check_skip(k, HFD_RULE_UPDATE, NO_UPDATE);
        return;
    }
    if (body.p == k->options->update.p)
        body = k->options->input;
    else
        body = k->options->update;
    say(k, "updates", o);
    begin(o, "updating");
    status = step_put(k, o, body, HFD_RULE_UPDATE);
    if (status != 202)
        return;
    ask = polling(k, o, body);
    (void)finish(k, &ask, HFD_RULE_UPDATE, 200);
}

/* Deletes a resource. @return true when it is gone */
static bool destroy(struct hfd_check *k, struct hfd_check_order *o)
{
    const struct hfd_check_ask ask = {.order = o, .method = HFD_CHECK_DELETE};

    say(k, "deletes", o);
    begin(o, "deleting");
    if (step_delete(k, o, HFD_RULE_DEL_SAME, (struct wanted){202, 204, 0}) == 202) {
        (void)step_get(k, o, HFD_RULE_GET_DELETING, (struct wanted){202, 404, 0});
        (void)step_delete(k, o, HFD_RULE_DEL_SAME, (struct wanted){202, 204, 0});
    }
    if (!finish(k, &ask, HFD_RULE_DEL_ENDS, 204))
        return false;
    begin(o, NULL);
    (void)step_delete(k, o, HFD_RULE_DEL_GONE, (struct wanted){204, 0, 0});
    (void)step_get(k, o, HFD_RULE_GET_GONE, (struct wanted){404, 0, 0});
    return !hfd_check_stopped(k);
}

/* The same GUResID once more, deleted before it is ready. */
static void live_again(struct hfd_check *k, struct hfd_check_order *o)
{
    const struct hfd_check_ask ask = {.order = o, .method = HFD_CHECK_DELETE};
    int status;

    say(k, "creates again, and deletes at once:", o);
    begin(o, "creating");
    status = step_put(k, o, k->options->input, HFD_RULE_CREATE_AGAIN);
    if (status != 200 && status != 202)
        return;
    begin(o, NULL);
    status = step_delete(k, o, HFD_RULE_DEL_CREATING, (struct wanted){202, 204, 0});
    if (status != 202)
        return;
    begin(o, "deleting");
    (void)finish(k, &ask, HFD_RULE_DEL_ENDS, 204);
}

void hfd_check_life(struct hfd_check *k)
{
    struct hfd_check_order *o = hfd_check_new_order(k);
    hfd_slice body;

    say(k, "creates", o);
    body = create(k, o);
    if (body.p != NULL)
        use(k, o, body);
    if (o->may_exist && destroy(k, o))
        live_again(k, o);
}

void hfd_check_by_update(struct hfd_check *k)
{
    struct hfd_check_order *o;

    if (k->options->update.p == NULL) {
        hfd_check_skip(k, HFD_RULE_UPDATE_NEW, NO_UPDATE);
        return;
    }
    o = hfd_check_new_order(k);
    say(k, "creates by an update", o);
    begin(o, "creating");
    (void)step_put(k, o, k->options->update, HFD_RULE_UPDATE_NEW);
}
