/* EMCO's status query at the door. See status_api.h. Decides nothing. */
#include "handlers/http/status_api.h"

#include "driver/core/driver.h"
#include "driver/core/status.h"
#include "handlers/http/api.h"
#include "handlers/http/query.h"

#define ANSWER_MAX_BYTES ((size_t)32 * 1024 * 1024) /* and the memory for its objects */

/* One request; lives in the exchange's memory. */
struct command {
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
    struct command *cmd = arg;
    struct hfd_status_view *view = &cmd->view;
    hfd_rc rc = cmd->fn(tx, &cmd->call, &cmd->query, view, err);

    if (rc == HFD_NOMEM)
        rc = fit(rc, cmd->call.mem, err);
    if (rc != HFD_OK || view->conditions.len == 0)
        return rc;
    return hfd_vocabulary_show(cmd->vocabulary, view->conditions, cmd->call.mem, &view->conditions,
                               err);
}

static void send_view(struct hfd_exchange *x, const struct command *cmd)
{
    struct hfd_reply reply = {.status = 200};
    struct hfd_err err;
    struct hfd_buf b;
    hfd_rc rc;

    hfd_buf_init(&b, ANSWER_MAX_BYTES);
    b.budget = hfd_exchange_mem(x)->budget;
    hfd_status_view_format(&b, &cmd->query, &cmd->view);
    rc = fit(b.rc, cmd->call.mem, &err);
    if (rc == HFD_OK)
        rc = hfd_etag_make(hfd_buf_slice(&b), cmd->call.mem, &reply.etag, &err);
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

static hfd_rc read_query(hfd_slice rest, struct command *cmd, struct hfd_err *err)
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

/* The command of a request; NULL when memory is short. */
static struct command *make_command(struct hfd_exchange *x, hfd_slice id)
{
    const struct hfd_app *app = hfd_exchange_app(x);
    struct hfd_arena *mem = hfd_exchange_mem(x);
    const hfd_slice driver = hfd_exchange_param(x, "driver");
    struct command *cmd = hfd_arena_alloc(mem, sizeof(*cmd));

    if (cmd == NULL)
        return NULL;
    mem->max_bytes = ANSWER_MAX_BYTES;
    *cmd = (struct command){
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

static void answer(struct hfd_exchange *x, struct command *cmd)
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
    struct command *cmd;

    if (hfd_guresid_check(guresid, &err) != HFD_OK) {
        (void)snprintf(message, sizeof(message), "There is no such resource: its %s.", err.msg);
        send_absent(x, message);
        return;
    }
    cmd = make_command(x, guresid);
    if (cmd != NULL)
        cmd->fn = hfd_status_of_resource;
    answer(x, cmd);
}

void hfd_status_api_cluster(struct hfd_exchange *x)
{
    struct command *cmd = make_command(x, hfd_exchange_param(x, "cluster_id"));

    if (cmd != NULL)
        cmd->fn = hfd_status_of_cluster;
    answer(x, cmd);
}
