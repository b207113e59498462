/* See driver_api.h. */
#include "handlers/http/driver_api.h"

#include "driver/base/etag.h"
#include "driver/core/driver.h"
#include "driver/core/input.h"
#include "driver/core/preview.h"
#include "driver/core/resource.h"
#include "driver/core/status.h"
#include "handlers/http/exchange.h"
#include "handlers/http/hold.h"
#include "handlers/http/http.h"
#include "handlers/http/query.h"

/* ---- resources ---- */

/*
 * The Driver API: PUT, GET and DELETE of /{GUResID} and /{driver}/{GUResID}. Turns requests into
 * hfd_call and answers into documents; decides nothing. Source: Humanitec Driver API 0.9.3. Thread:
 * loop.
 */

#define ANSWER_MAX_BYTES ((size_t)4 * 1024 * 1024)

typedef hfd_rc resource_fn(struct hfd_txn *tx, const struct hfd_call *call,
                           struct hfd_answer_doc *out, struct hfd_err *err);

/* The functions of a method. */
struct hfd_driver_verb {
    resource_fn *peek;  /* answers from a read, if that can decide */
    resource_fn *write; /* answers otherwise */
    bool has_input;     /* write needs the parsed body */
    hfd_rc (*prefetch)(struct hfd_txn *tx, const struct hfd_call *call,
                       struct hfd_err *err); /* what write will read; may be NULL */
};

const struct hfd_driver_verb hfd_driver_get = {hfd_resource_get, hfd_resource_get_restored, false,
                                               NULL},
                             hfd_driver_put = {hfd_resource_put_peek, hfd_resource_put, true,
                                               hfd_resource_put_prefetch},
                             hfd_driver_delete = {hfd_resource_delete_peek, hfd_resource_delete,
                                                  false, hfd_resource_delete_prefetch};

/* An answer that is held. Lives in the exchange's memory. */
struct held {
    struct hfd_hold hold;
    struct hfd_answer_doc first; /* what is answered when nothing changes */
};

/* A request and its answer. Lives in the exchange's memory. */
struct command {
    resource_fn *fn;
    const struct hfd_driver_verb *verb;
    struct hfd_call call;
    struct hfd_answer_doc doc;
    struct hfd_input input;
    bool owns;         /* its texts are not those of the request */
    struct held *held; /* NULL = its answer was never held */
};

static void output_document(struct hfd_buf *b, hfd_slice guresid, const struct hfd_answer_doc *doc)
{
    hfd_buf_member_str(b, "{\"id\":", guresid);
    hfd_buf_member_str(b, ",\"type\":", doc->type);
    hfd_buf_lit(b, ",\"resource\":{\"values\":");
    hfd_buf_add(b, doc->values);
    hfd_buf_lit(b, ",\"secrets\":");
    hfd_buf_add(b, doc->secrets);
    hfd_buf_lit(b, "},\"manifests\":");
    hfd_buf_add(b, doc->manifests.len > 0 ? doc->manifests : HFD_SLICE("[]"));
    hfd_buf_addc(b, '}');
}

static void error_document(struct hfd_buf *b, hfd_slice error, hfd_slice message)
{
    hfd_buf_member_str(b, "{\"error\":", error);
    hfd_buf_member_str(b, ",\"message\":", message);
    hfd_buf_addc(b, '}');
    hfd_buf_mask(b, 0); /* a GUResID may be a token in a wrong place */
}

/* Sends that there is no resource: 404, or 204 for a DELETE. */
static void answer_absent(struct hfd_exchange *x, const char *message)
{
    const bool deleting = hfd_exchange_request(x)->method == HFD_METHOD_DELETE;
    /* The cookie is empty: the orchestrator forgets its own. */
    struct hfd_reply reply = {.status = deleting ? 204 : 404, .has_cookie = deleting};
    struct hfd_buf b;

    hfd_buf_init(&b, ANSWER_MAX_BYTES);
    if (!deleting)
        error_document(&b, HFD_SLICE("RES-108"), hfd_slice_of(message));
    hfd_api_send(x, &reply, "application/json", &b);
}

/* The same for a GUResID that is well formed. */
static void answer_no_resource(struct hfd_exchange *x, hfd_slice guresid)
{
    char message[256];

    (void)snprintf(message, sizeof(message),
                   "There is no resource '%.*s'. It has not been ordered here, or it has been "
                   "deleted. Deploy again to make it.",
                   HFD_SLICE_FMT(guresid));
    answer_absent(x, message);
}

/* Sends status and body of an answer, by the tables of handlers/docs/contract.md. */
static void answer(struct hfd_exchange *x, const struct command *cmd)
{
    const struct hfd_app *app = hfd_exchange_app(x);
    const struct hfd_answer_doc *doc = &cmd->doc;
    struct hfd_reply reply = {.has_cookie = doc->has_cookie, .cookie = doc->cookie};
    struct hfd_hint hint;
    struct hfd_buf b;

    if (doc->answer == HFD_ANSWER_ABSENT) {
        answer_no_resource(x, cmd->call.guresid);
        return;
    }
    hfd_driver_polled(app->driver, cmd->call.guresid);
    reply.etag = doc->etag;
    if (doc->etag.len > 0 && hfd_exchange_route(x)->arg == &hfd_driver_get &&
        hfd_etag_matches(cmd->call.match.if_none_match, doc->etag)) {
        reply.status = 304;
        hfd_exchange_reply(x, &reply);
        return;
    }
    hfd_buf_init(&b, ANSWER_MAX_BYTES);
    switch (doc->answer) {
    case HFD_ANSWER_OUTPUT:
        reply.status = 200;
        output_document(&b, cmd->call.guresid, doc);
        break;
    case HFD_ANSWER_HINT:
    case HFD_ANSWER_BUSY:
        reply.status = doc->answer == HFD_ANSWER_HINT ? 202 : 409;
        reply.retry_after_s = doc->hint.retry_after_s;
        /* The caller may compare these times with its own clock. */
        hint = doc->hint;
        hfd_hint_shift(&hint, hfd_clock_skew_us(app->clock));
        hfd_hint_format(&b, &hint);
        break;
    case HFD_ANSWER_FAILED:
        reply.status = 400;
        error_document(&b, doc->error, doc->message);
        break;
    case HFD_ANSWER_ABSENT:
        break; /* has been answered */
    }
    hfd_api_send(x, &reply, "application/json", &b);
}

/* Reads the preconditions of a request. Those of a GET that are malformed match nothing. */
static hfd_rc read_match(const struct hfd_exchange *x, struct hfd_precondition *out,
                         struct hfd_err *err)
{
    hfd_rc rc = hfd_exchange_header(x, "if-none-match", &out->if_none_match, err);

    if (hfd_exchange_route(x)->arg == &hfd_driver_get)
        return HFD_OK;
    if (rc == HFD_OK)
        rc = hfd_exchange_header(x, "if-match", &out->if_match, err);
    return rc == HFD_OK ? hfd_precondition_parse(out, err) : rc;
}

/* Makes the call of a request. Returns false after it has answered with an error. */
static bool start(struct hfd_exchange *x, struct command **out)
{
    const struct hfd_app *app = hfd_exchange_app(x);
    const struct hfd_request *req = hfd_exchange_request(x);
    const hfd_slice driver = hfd_exchange_param(x, "driver"),
                    guresid = hfd_exchange_param(x, "guresid");
    struct hfd_arena *mem = hfd_exchange_mem(x);
    struct command *cmd;
    struct hfd_err err;
    char message[sizeof(err.msg) + 40];
    struct hfd_precondition match = {.if_match = HFD_SLICE_NONE};
    hfd_slice caller, cookie;
    hfd_rc rc;

    rc = hfd_guresid_check(guresid, &err);
    if (rc == HFD_INVALID && req->method != HFD_METHOD_PUT) {
        (void)snprintf(message, sizeof(message), "There is no such resource: its %s.", err.msg);
        answer_absent(x, message);
        return false;
    }
    if (rc == HFD_OK)
        rc = hfd_api_caller(x, &caller, &err);
    if (rc == HFD_OK)
        rc = read_match(x, &match, &err);
    if (rc == HFD_OK && hfd_exchange_header(x, "humanitec-driver-cookie", &cookie, &err) != HFD_OK)
        rc = HFD_COOKIE;
    if (rc != HFD_OK) {
        hfd_exchange_fail(x, rc, &err);
        return false;
    }
    cmd = hfd_arena_alloc(mem, sizeof(*cmd));
    if (cmd == NULL) {
        hfd_exchange_fail(x, hfd_fail_nomem(&err, "copy a request"), &err);
        return false;
    }
    cmd->call = (struct hfd_call){
        .driver = app->driver,
        .now_us = hfd_clock_wall_us(app->clock),
        .caller = caller,
        .guresid = guresid,
        .cookie = cookie,
        .match = match,
        .mem = mem,
        .body = req->body,
    };
    if (driver.p != NULL)
        cmd->call.only = hfd_slice_eq(driver, app->settings->path_cluster) ? HFD_KIND_CLUSTER
                                                                           : HFD_KIND_NODEPOOL;
    *out = cmd;
    return true;
}

/* Copies what the command borrows from the request, before it leaves the loop. */
static hfd_rc own(void *arg, struct hfd_err *err)
{
    struct command *cmd = arg;
    struct hfd_call *c = &cmd->call;

    if (cmd->owns)
        return HFD_OK;
    cmd->owns = true;
    c->guresid = hfd_arena_dup(c->mem, c->guresid);
    c->cookie = hfd_arena_dup(c->mem, c->cookie);
    c->body = hfd_arena_dup(c->mem, c->body);
    c->match.if_match = hfd_arena_dup(c->mem, c->match.if_match);
    c->match.if_none_match = hfd_arena_dup(c->mem, c->match.if_none_match);
    if (c->guresid.p == NULL || c->cookie.p == NULL || c->body.p == NULL ||
        c->match.if_match.p == NULL || c->match.if_none_match.p == NULL)
        return hfd_fail_nomem(err, "copy a request");
    return HFD_OK;
}

static hfd_rc run(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct command *cmd = arg;

    return cmd->fn(tx, &cmd->call, &cmd->doc, err);
}

static hfd_rc run_prefetch(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct command *cmd = arg;

    return cmd->verb->prefetch(tx, &cmd->call, err);
}

/* ---- answers that are held ---- */

#define HELD_BODY_MAX_BYTES ((size_t)65536) /* those that wait must not have all memory */

static bool is_news(const struct hfd_answer_doc *now, const struct hfd_answer_doc *first)
{
    return now->answer != first->answer || strcmp(now->hint.status, first->hint.status) != 0 ||
           now->began_us != first->began_us || !hfd_slice_eq(now->waits, first->waits);
}

/*
 * The request is no longer what is under way, so that another attempt would write. Others may have
 * decided since. So the client is asked to say again what it wants.
 */
static void ask_anew(struct command *cmd)
{
    cmd->doc = cmd->held->first;
    cmd->doc.hint.now_us = cmd->call.now_us;
    if (cmd->doc.hint.estimated_us < cmd->call.now_us)
        cmd->doc.hint.estimated_us = cmd->call.now_us;
    cmd->doc.hint.retry_after_s = 1;
}

static void on_peeked_again(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    struct command *cmd = arg;

    if (rc != HFD_OK) {
        hfd_exchange_fail(x, rc, err);
        return;
    }
    if (!cmd->doc.decided)
        ask_anew(cmd);
    else if (!is_news(&cmd->doc, &cmd->held->first) && hfd_hold_on(&cmd->held->hold))
        return;
    answer(x, cmd);
}

static void peek_again(struct hfd_exchange *x, void *arg)
{
    const struct hfd_driver_verb *verb = hfd_exchange_route(x)->arg;
    const struct hfd_app *app = hfd_exchange_app(x);
    struct command *cmd = arg;

    hfd_driver_polled(app->driver, cmd->call.guresid);
    cmd->call.now_us = hfd_clock_wall_us(app->clock);
    cmd->call.mem = &cmd->held->hold.mem;
    cmd->fn = verb->peek;
    hfd_exchange_read(x, &(struct hfd_exchange_read){run, cmd, own, on_peeked_again});
}

/* Holds an answer that is a hint, if its caller prefers to wait. @return false: it is given now */
static bool hold(struct hfd_exchange *x, struct command *cmd)
{
    const int wait_s = cmd->doc.answer == HFD_ANSWER_HINT ? hfd_exchange_prefer_wait_s(x) : 0;

    if (wait_s == 0 || cmd->call.body.len > HELD_BODY_MAX_BYTES || own(cmd, NULL) != HFD_OK)
        return false;
    cmd->held = hfd_arena_alloc(cmd->call.mem, sizeof(*cmd->held));
    if (cmd->held == NULL)
        return false;
    *cmd->held = (struct held){.hold = {.guresid = cmd->call.guresid,
                                        .wait_us = wait_s * HFD_US_PER_S,
                                        .prefer_s = wait_s,
                                        .again = peek_again,
                                        .arg = cmd},
                               .first = cmd->doc};
    return hfd_hold_begin(&cmd->held->hold, x);
}

static void on_written(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    if (rc != HFD_OK)
        hfd_exchange_fail(x, rc, err);
    else if (!hold(x, arg))
        answer(x, arg);
}

static hfd_rc read_input(const struct hfd_driver *driver, struct command *cmd, struct hfd_err *err)
{
    hfd_rc rc = hfd_input_parse(&(struct hfd_input_source){&driver->rules, cmd->call.guresid,
                                                           cmd->call.only, cmd->call.body},
                                cmd->call.mem, &cmd->input, err);

    cmd->call.input = &cmd->input;
    return rc;
}

/* Goes on to the writer, as no read decided. */
static void write_resource(struct hfd_exchange *x, struct command *cmd)
{
    const struct hfd_driver_verb *verb = hfd_exchange_route(x)->arg;
    struct hfd_err err;
    hfd_rc rc = HFD_OK;

    if (verb->has_input)
        rc = read_input(hfd_exchange_app(x)->driver, cmd, &err);
    if (rc == HFD_OK)
        rc = own(cmd, &err);
    cmd->fn = verb->write;
    cmd->verb = verb;
    hfd_exchange_prefetch(x, verb->prefetch != NULL ? run_prefetch : NULL);
    if (rc != HFD_OK)
        hfd_exchange_fail_fields(x, rc, &err, verb->has_input ? &cmd->input.errors : NULL);
    else
        hfd_exchange_update(x, run, cmd, on_written);
}

static void on_peeked(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    struct command *cmd = arg;

    if (rc != HFD_OK)
        hfd_exchange_fail(x, rc, err);
    else if (!cmd->doc.decided)
        write_resource(x, cmd);
    else if (!hold(x, cmd))
        answer(x, cmd);
}

void hfd_driver_api(struct hfd_exchange *x)
{
    const struct hfd_driver_verb *verb = hfd_exchange_route(x)->arg;
    struct command *cmd;

    if (!start(x, &cmd))
        return;
    cmd->fn = verb->peek;
    hfd_exchange_read(x, &(struct hfd_exchange_read){run, cmd, own, on_peeked});
}

/* ---- checks ---- */

/* The rules are those of the PUT: driver/core/preview.h. */

#define CHECK_MAX_BYTES ((size_t)1024 * 1024)

/* A request and its answer. Lives in the exchange's memory. */
struct check_command {
    struct hfd_call call;
    struct hfd_input input;
    struct hfd_validated out;
};

static void add_text_or_null(struct hfd_buf *b, hfd_slice text)
{
    if (text.p != NULL)
        hfd_buf_json_str(b, text);
    else
        hfd_buf_lit(b, "null");
}

static void add_names(struct hfd_buf *b, const struct hfd_input *in)
{
    for (size_t i = 0; i < in->nodepool_count; i++) {
        if (i > 0)
            hfd_buf_addc(b, ',');
        hfd_buf_json_str(b, in->nodepools[i].name);
    }
}

static void add_change(struct hfd_buf *b, const struct hfd_preview_part *p)
{
    hfd_buf_addf(b, "{\"kind\":\"%s\",\"action\":\"%s\",\"name\":",
                 p->kind == HFD_KIND_CLUSTER ? "cluster" : "nodepool", p->action);
    add_text_or_null(b, p->name);
    hfd_buf_lit(b, ",\"fields\":[");
    for (size_t i = 0; i < p->field_count; i++) {
        if (i > 0)
            hfd_buf_addc(b, ',');
        hfd_buf_json_str(b, p->fields[i]);
    }
    hfd_buf_lit(b, "]}");
}

static void add_document(struct hfd_buf *b, const struct check_command *cmd)
{
    const struct hfd_validated *v = &cmd->out;
    const bool pool = cmd->input.kind == HFD_KIND_NODEPOOL;

    hfd_buf_addf(b, "{\"action\":\"%s\",\"name\":", v->action);
    add_text_or_null(b, v->name);
    hfd_buf_member_str(b, ",\"type\":", cmd->input.type);
    hfd_buf_lit(b, ",\"nodepools\":[");
    if (!pool)
        add_names(b, &cmd->input);
    else if (v->name.p != NULL)
        hfd_buf_json_str(b, v->name);
    hfd_buf_addf(b, "],\"protected\":%s,\"plan\":\"%.*s\",\"changes\":[",
                 v->protected ? "true" : "false", HFD_SLICE_FMT(v->plan));
    for (size_t i = 0; i < v->changes.count; i++) {
        if (i > 0)
            hfd_buf_addc(b, ',');
        add_change(b, &v->changes.parts[i]);
    }
    hfd_buf_lit(b, "]}");
}

static void on_checked(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    struct check_command *cmd = arg;
    struct hfd_reply reply = {.status = 200};
    struct hfd_buf b;

    if (rc != HFD_OK) {
        hfd_exchange_fail(x, rc, err);
        return;
    }
    hfd_buf_init(&b, CHECK_MAX_BYTES);
    if (cmd->out.action == NULL) {
        hfd_hint_shift(&cmd->out.hint, hfd_clock_skew_us(hfd_exchange_app(x)->clock));
        reply.status = 409;
        reply.retry_after_s = cmd->out.hint.retry_after_s;
        hfd_hint_format(&b, &cmd->out.hint);
    } else {
        add_document(&b, cmd);
    }
    hfd_api_send(x, &reply, "application/json", &b);
}

static hfd_rc run_check(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct check_command *cmd = arg;

    return hfd_resource_validate(tx, &cmd->call, &cmd->out, err);
}

/* The GUResID of the resource to change: `id` of the query. Without one the resource is new. */
static hfd_rc read_id(struct hfd_exchange *x, hfd_slice *out, struct hfd_err *err)
{
    hfd_rc rc = hfd_query_get(hfd_exchange_request(x)->query, "id", hfd_exchange_mem(x), out, err);

    if (rc == HFD_OK && out->len > 0)
        return hfd_guresid_check(*out, err);
    *out = HFD_SLICE("");
    return rc;
}

static hfd_rc read_call(struct hfd_exchange *x, struct check_command *cmd, struct hfd_err *err)
{
    const struct hfd_app *app = hfd_exchange_app(x);
    const hfd_slice driver = hfd_exchange_param(x, "driver");
    struct hfd_call *call = &cmd->call;
    hfd_rc rc;

    *call = (struct hfd_call){.driver = app->driver,
                              .now_us = hfd_clock_wall_us(app->clock),
                              .mem = hfd_exchange_mem(x),
                              .input = &cmd->input};
    if (driver.p != NULL)
        call->only = hfd_slice_eq(driver, app->settings->path_cluster) ? HFD_KIND_CLUSTER
                                                                       : HFD_KIND_NODEPOOL;
    rc = read_id(x, &call->guresid, err);
    if (rc != HFD_OK)
        return rc;
    return hfd_input_parse(&(struct hfd_input_source){&app->driver->rules, call->guresid,
                                                      call->only, hfd_exchange_request(x)->body},
                           call->mem, &cmd->input, err);
}

void hfd_validate_api(struct hfd_exchange *x)
{
    struct check_command *cmd = hfd_arena_alloc(hfd_exchange_mem(x), sizeof(*cmd));
    struct hfd_err err;
    hfd_rc rc;

    if (cmd == NULL) {
        hfd_exchange_fail(x, hfd_fail_nomem(&err, "copy a request"), &err);
        return;
    }
    rc = read_call(x, cmd, &err);
    if (rc != HFD_OK)
        hfd_exchange_fail_fields(x, rc, &err, &cmd->input.errors);
    else
        hfd_exchange_view_short(x, run_check, cmd, on_checked);
}

/* ---- EMCO's status query ---- */

/* It decides nothing. */

#define STATUS_MAX_BYTES ((size_t)32 * 1024 * 1024) /* and the memory for its objects */

/* One request; lives in the exchange's memory. */
struct status_command {
    hfd_rc (*fn)(struct hfd_txn *tx, const struct hfd_call *call, const struct hfd_status_query *q,
                 struct hfd_status_view *out, struct hfd_err *err);
    struct hfd_call call;
    struct hfd_status_query query;
    enum hfd_vocabulary vocabulary;
    hfd_slice if_none_match;
    struct hfd_status_view view;
};

/* The error of a Driver API that knows no 404 for anything but an absent resource. */
static void send_absent(struct hfd_exchange *x, const char *message)
{
    struct hfd_reply reply = {.status = 404};
    struct hfd_buf b;

    hfd_buf_init(&b, 4096);
    hfd_buf_member_str(&b, "{\"error\":\"RES-108\",\"message\":", hfd_slice_of(message));
    hfd_buf_addc(&b, '}');
    hfd_api_send(x, &reply, "application/json", &b);
}

static void fail(struct hfd_exchange *x, hfd_rc rc, const struct hfd_err *err)
{
    if (rc == HFD_NOT_FOUND && hfd_exchange_route(x)->dialect == HFD_DIALECT_DRIVER)
        send_absent(x, err->msg);
    else
        hfd_exchange_fail(x, rc, err);
}

/* Asks for less when a retry would not help. */
static hfd_rc fit(hfd_rc rc, const struct hfd_arena *mem, struct hfd_err *err)
{
    if (rc != HFD_LIMIT && !(rc == HFD_NOMEM && mem->full))
        return rc;
    return hfd_fail(err, HFD_LIMIT,
                    "the answer is too large: ask for less with app, cluster, resource or "
                    "output=summary");
}

static hfd_rc txn_status(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct status_command *cmd = arg;
    struct hfd_status_view *view = &cmd->view;
    hfd_rc rc = cmd->fn(tx, &cmd->call, &cmd->query, view, err);

    if (rc == HFD_NOMEM)
        rc = fit(rc, cmd->call.mem, err);
    if (rc != HFD_OK || view->conditions.len == 0)
        return rc;
    return hfd_vocabulary_show(cmd->vocabulary, view->conditions, cmd->call.mem, &view->conditions,
                               err);
}

static void send_view(struct hfd_exchange *x, const struct status_command *cmd)
{
    struct hfd_reply reply = {.status = 200};
    struct hfd_err err;
    struct hfd_buf b;
    hfd_rc rc;

    hfd_buf_init(&b, STATUS_MAX_BYTES);
    b.budget = hfd_exchange_mem(x)->budget;
    hfd_status_view_format(&b, &cmd->query, &cmd->view);
    rc = fit(b.rc, cmd->call.mem, &err);
    if (rc == HFD_OK)
        rc = hfd_etag_make(&(hfd_slice){b.p, b.len}, 1, cmd->call.mem, &reply.etag, &err);
    if (rc != HFD_OK) {
        hfd_buf_fini(&b);
        hfd_exchange_fail(x, rc, &err);
        return;
    }
    if (hfd_etag_matches(cmd->if_none_match, reply.etag)) {
        reply.status = 304;
        hfd_buf_fini(&b);
        hfd_exchange_reply(x, &reply);
        return;
    }
    hfd_api_send(x, &reply, "application/json", &b);
}

static void on_status(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    if (rc != HFD_OK)
        fail(x, rc, err);
    else
        send_view(x, arg);
}

static hfd_rc read_query(hfd_slice rest, struct status_command *cmd, struct hfd_err *err)
{
    struct hfd_query_param param;
    hfd_rc rc;

    do {
        rc = hfd_query_next(&rest, cmd->call.mem, &param, err);
        if (rc == HFD_OK)
            rc = hfd_status_query_take(&cmd->query, param.name, param.value, cmd->call.mem, err);
    } while (rc == HFD_OK);
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

/* The status_command of a request; NULL when memory is short. */
static struct status_command *make_command(struct hfd_exchange *x, hfd_slice id)
{
    const struct hfd_app *app = hfd_exchange_app(x);
    struct hfd_arena *mem = hfd_exchange_mem(x);
    const hfd_slice driver = hfd_exchange_param(x, "driver");
    struct status_command *cmd = hfd_arena_alloc(mem, sizeof(*cmd));

    if (cmd == NULL)
        return NULL;
    mem->max_bytes = STATUS_MAX_BYTES;
    *cmd = (struct status_command){
        .call = {.driver = app->driver,
                 .now_us = hfd_clock_wall_us(app->clock),
                 .guresid = hfd_arena_dup(mem, id),
                 .mem = mem},
        .vocabulary = app->vocabulary,
    };
    if (driver.p != NULL)
        cmd->call.only = hfd_slice_eq(driver, app->settings->path_cluster) ? HFD_KIND_CLUSTER
                                                                           : HFD_KIND_NODEPOOL;
    return cmd->call.guresid.p != NULL ? cmd : NULL;
}

static void answer_status(struct hfd_exchange *x, struct status_command *cmd)
{
    struct hfd_err err;
    hfd_slice match = HFD_SLICE_NONE;
    hfd_rc rc = HFD_OK;

    if (cmd == NULL)
        rc = hfd_fail_nomem(&err, "answer a request");
    if (rc == HFD_OK)
        rc = hfd_exchange_header(x, "if-none-match", &match, &err);
    if (rc == HFD_OK)
        rc = read_query(hfd_exchange_request(x)->query, cmd, &err);
    if (rc == HFD_OK) {
        cmd->if_none_match = hfd_arena_dup(cmd->call.mem, match);
        if (cmd->if_none_match.p == NULL)
            rc = hfd_fail_nomem(&err, "answer a request");
    }
    if (rc != HFD_OK)
        hfd_exchange_fail(x, rc, &err);
    else
        hfd_exchange_view_short(x, txn_status, cmd, on_status);
}

void hfd_status_api_resource(struct hfd_exchange *x)
{
    const hfd_slice guresid = hfd_exchange_param(x, "guresid");
    char message[sizeof(struct hfd_err) + 40];
    struct hfd_err err;
    struct status_command *cmd;

    if (hfd_guresid_check(guresid, &err) != HFD_OK) {
        (void)snprintf(message, sizeof(message), "There is no such resource: its %s.", err.msg);
        send_absent(x, message);
        return;
    }
    cmd = make_command(x, guresid);
    if (cmd != NULL)
        cmd->fn = hfd_status_of_resource;
    answer_status(x, cmd);
}

void hfd_status_api_cluster(struct hfd_exchange *x)
{
    struct status_command *cmd = make_command(x, hfd_exchange_param(x, "cluster_id"));

    if (cmd != NULL)
        cmd->fn = hfd_status_of_cluster;
    answer_status(x, cmd);
}
