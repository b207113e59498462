/* See validate_api.h. The rules are those of the PUT: driver/core/validate.h. */
#include "handlers/http/validate_api.h"

#include "driver/core/guresid.h"
#include "driver/core/validate.h"
#include "handlers/http/api.h"
#include "handlers/http/query.h"

#define ANSWER_MAX_BYTES ((size_t)1024 * 1024)

/* A request and its answer. Lives in the exchange's memory. */
struct command {
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

static void add_document(struct hfd_buf *b, const struct command *cmd)
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
    hfd_buf_lit(b, "],\"changes\":[");
    for (size_t i = 0; i < v->changes.count; i++) {
        if (i > 0)
            hfd_buf_addc(b, ',');
        add_change(b, &v->changes.parts[i]);
    }
    hfd_buf_lit(b, "]}");
}

static void on_checked(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    struct command *cmd = arg;
    struct hfd_reply reply = {.status = 200};
    struct hfd_buf b;

    if (rc != HFD_OK) {
        hfd_exchange_fail(x, rc, err);
        return;
    }
    hfd_buf_init(&b, ANSWER_MAX_BYTES);
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

static hfd_rc run(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct command *cmd = arg;

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

static hfd_rc read_call(struct hfd_exchange *x, struct command *cmd, struct hfd_err *err)
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
    struct command *cmd = hfd_arena_alloc(hfd_exchange_mem(x), sizeof(*cmd));
    struct hfd_err err;
    hfd_rc rc;

    if (cmd == NULL) {
        hfd_exchange_fail(x, hfd_fail_nomem(&err, "copy a request"), &err);
        return;
    }
    rc = read_call(x, cmd, &err);
    if (rc != HFD_OK)
        hfd_exchange_fail_fields(x, rc, &err, &cmd->input.mistakes);
    else
        hfd_exchange_view_short(x, run, cmd, on_checked);
}
