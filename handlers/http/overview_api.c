/* See overview_api.h. Decides nothing. */
#include "handlers/http/overview_api.h"

#include "driver/core/guresid.h"
#include "handlers/http/api.h"
#include "handlers/http/etag.h"
#include "handlers/http/overview_json.h"
#include "handlers/http/overview_query.h"

#define ANSWER_MAX_BYTES ((size_t)64 * 1024 * 1024)
#define SHORT_SIZE_MAX 100 /* items of a page that is short */

/* A request and its results. Lives in the exchange's memory. */
struct command {
    const struct hfd_driver *driver;
    int64_t now_us;
    struct hfd_arena *mem;
    hfd_slice guresid, if_none_match;
    struct hfd_overview_query query;
    struct hfd_feed_query after;
    struct hfd_overview page;
    struct hfd_detail detail;
    struct hfd_feed feed;
};

/* The command of a request; NULL when it was answered with an error. */
static struct command *start(struct hfd_exchange *x)
{
    const struct hfd_app *app = hfd_exchange_app(x);
    struct hfd_arena *mem = hfd_exchange_mem(x);
    struct command *cmd = hfd_arena_alloc(mem, sizeof(*cmd));
    struct hfd_err err;

    if (cmd == NULL) {
        hfd_exchange_fail(x, hfd_fail_nomem(&err, "answer a request"), &err);
        return NULL;
    }
    mem->max_bytes = ANSWER_MAX_BYTES;
    *cmd = (struct command){
        .driver = app->driver, .now_us = hfd_clock_wall_us(app->clock), .mem = mem};
    return cmd;
}

static struct hfd_ctx ctx_of(const struct command *cmd, struct hfd_txn *tx, struct hfd_err *err)
{
    return (struct hfd_ctx){
        .tx = tx, .driver = cmd->driver, .now_us = cmd->now_us, .mem = cmd->mem, .err = err};
}

static void begin_answer(struct hfd_exchange *x, struct hfd_buf *b)
{
    hfd_buf_init(b, ANSWER_MAX_BYTES);
    b->budget = hfd_exchange_mem(x)->budget;
}

/* ---- the list ---- */

static hfd_rc txn_list(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct command *cmd = arg;
    const struct hfd_ctx c = ctx_of(cmd, tx, err);

    return hfd_overview_read(&c, &cmd->query, &cmd->page);
}

static void on_list(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    const struct command *cmd = arg;
    struct hfd_reply reply = {.status = 200};
    hfd_slice next = HFD_SLICE_NONE;
    struct hfd_err own;
    struct hfd_buf b;

    if (rc == HFD_OK && cmd->page.more) {
        next = hfd_overview_token(&cmd->query, &cmd->page, cmd->mem);
        err = &own;
        if (next.p == NULL)
            rc = hfd_fail_nomem(&own, "answer a request");
    }
    if (rc != HFD_OK) {
        hfd_exchange_fail(x, rc, err);
        return;
    }
    begin_answer(x, &b);
    hfd_overview_format(&b, &cmd->page, next);
    hfd_api_send(x, &reply, "application/json", &b);
}

void hfd_overview_api_list(struct hfd_exchange *x)
{
    struct command *cmd = start(x);
    struct hfd_err err;
    hfd_rc rc;

    if (cmd == NULL)
        return;
    rc = hfd_overview_query_read(hfd_exchange_request(x)->query, cmd->mem, &cmd->query, &err);
    if (rc != HFD_OK)
        hfd_exchange_fail(x, rc, &err);
    else if (hfd_overview_is_short(&cmd->query) && cmd->query.size <= SHORT_SIZE_MAX)
        hfd_exchange_view_short(x, txn_list, cmd, on_list);
    else
        hfd_exchange_view(x, txn_list, cmd, on_list);
}

/* ---- one resource ---- */

static hfd_rc fail_absent(hfd_slice guresid, struct hfd_err *err)
{
    return hfd_fail(err, HFD_NOT_FOUND,
                    "There is no resource '%.*s', and none of that name was "
                    "removed lately",
                    HFD_SLICE_FMT(guresid));
}

static hfd_rc txn_get(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct command *cmd = arg;
    const struct hfd_ctx c = ctx_of(cmd, tx, err);
    const hfd_rc rc = hfd_detail_read(&c, cmd->guresid, &cmd->detail);

    return rc == HFD_NOT_FOUND ? fail_absent(cmd->guresid, err) : rc;
}

static void on_get(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    const struct command *cmd = arg;
    struct hfd_reply reply = {.status = 200};
    struct hfd_buf b;

    if (rc != HFD_OK) {
        hfd_exchange_fail(x, rc, err);
        return;
    }
    begin_answer(x, &b);
    hfd_detail_format(&b, &cmd->detail);
    hfd_api_send(x, &reply, "application/json", &b);
}

/* An id that cannot be one names no resource. */
static hfd_rc read_id(const struct hfd_exchange *x, struct command *cmd, struct hfd_err *err)
{
    const hfd_slice id = hfd_exchange_param(x, "guresid");

    if (hfd_guresid_check(id, NULL) != HFD_OK)
        return hfd_fail(err, HFD_NOT_FOUND, "There is no resource of that id");
    cmd->guresid = hfd_arena_dup(cmd->mem, id);
    return cmd->guresid.p != NULL ? HFD_OK : hfd_fail_nomem(err, "answer a request");
}

void hfd_overview_api_get(struct hfd_exchange *x)
{
    struct command *cmd = start(x);
    struct hfd_err err;
    hfd_rc rc;

    if (cmd == NULL)
        return;
    rc = hfd_no_query_read(hfd_exchange_request(x)->query, cmd->mem, &err);
    if (rc == HFD_OK)
        rc = read_id(x, cmd, &err);
    if (rc != HFD_OK)
        hfd_exchange_fail(x, rc, &err);
    else
        hfd_exchange_view_short(x, txn_get, cmd, on_get);
}

/* ---- the feed ---- */

static hfd_rc txn_events(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct command *cmd = arg;
    const struct hfd_ctx c = ctx_of(cmd, tx, err);

    return hfd_feed_read(&c, &cmd->after, &cmd->feed);
}

static void on_events(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    const struct command *cmd = arg;
    struct hfd_reply reply = {.status = 200};
    struct hfd_err own;
    struct hfd_buf b;

    if (rc != HFD_OK) {
        hfd_exchange_fail(x, rc, err);
        return;
    }
    begin_answer(x, &b);
    hfd_feed_format(&b, &cmd->feed);
    rc = hfd_etag_make(hfd_buf_slice(&b), cmd->mem, &reply.etag, &own);
    if (rc != HFD_OK) {
        hfd_buf_fini(&b);
        hfd_exchange_fail(x, rc, &own);
    } else if (b.rc == HFD_OK && hfd_etag_matches(cmd->if_none_match, reply.etag)) {
        hfd_buf_fini(&b);
        reply.status = 304;
        hfd_exchange_reply(x, &reply);
    } else {
        hfd_api_send(x, &reply, "application/json", &b);
    }
}

void hfd_overview_api_events(struct hfd_exchange *x)
{
    struct command *cmd = start(x);
    hfd_slice match = HFD_SLICE_NONE;
    struct hfd_err err;
    hfd_rc rc;

    if (cmd == NULL)
        return;
    rc = hfd_feed_query_read(hfd_exchange_request(x)->query, cmd->mem, &cmd->after, &err);
    if (rc == HFD_OK)
        rc = hfd_exchange_header(x, "if-none-match", &match, &err);
    if (rc == HFD_OK) {
        cmd->if_none_match = hfd_arena_dup(cmd->mem, match);
        if (cmd->if_none_match.p == NULL)
            rc = hfd_fail_nomem(&err, "answer a request");
    }
    if (rc != HFD_OK)
        hfd_exchange_fail(x, rc, &err);
    else
        hfd_exchange_view_short(x, txn_events, cmd, on_events);
}
