/* Pages, searches, orders and projections. See fleet_lists.h. */
#include "handlers/http/fleet_lists.h"

#include "handlers/http/fleet_api_int.h"

#include "driver/fleet/names.h"
#include "driver/fleet/search.h"
#include "driver/fleet/search_order.h"

#define LIST_MAX_BYTES ((size_t)32 * 1024 * 1024)
/*
 * A page is short when it is one of the first, without search and order, and this small. One that
 * turns out larger is read again among the others.
 */
#define SHORT_ROWS_MAX 1000
#define SHORT_MAX_BYTES ((size_t)2 * 1024 * 1024)

static hfd_rc page_params(hfd_slice query, struct hfd_fleet_command *cmd, struct hfd_err *err)
{
    return hfd_query_page(query, cmd->call.mem, &cmd->in.list.page, err);
}

/*
 * Reads orderBy and order. `order` is a direction; in later versions of HyperFleet it is what
 * orderBy is here. Clients of all versions send both.
 * @param text  what is listed; by and direction are set here
 */
static hfd_rc order_params(hfd_slice query, struct hfd_arena *mem, struct hfd_order_text *text,
                           struct hfd_orders *out, struct hfd_err *err)
{
    struct hfd_err why;
    hfd_rc rc;

    rc = hfd_query_get(query, "orderBy", mem, &text->by, err);
    if (rc == HFD_OK)
        rc = hfd_query_get(query, "order", mem, &text->direction, err);
    if (rc != HFD_OK)
        return rc;
    if (text->direction.len > 0 && !hfd_slice_is(text->direction, "asc") &&
        !hfd_slice_is(text->direction, "desc")) {
        const struct hfd_order_text fields = {text->kind, text->direction, HFD_SLICE(""),
                                              text->of_reports};

        rc = hfd_search_order(&fields, mem, out, &why);
        if (rc == HFD_BAD_REQUEST)
            return hfd_fail_field(err, rc, "order",
                                  "order must be 'asc' or 'desc', or fields to sort by: %s",
                                  why.msg);
        if (rc != HFD_OK)
            return hfd_fail(err, rc, "%s", why.msg);
        if (text->by.len == 0)
            return HFD_OK;
        text->direction = HFD_SLICE("");
    }
    return hfd_search_order(text, mem, out, err);
}

static hfd_rc list_params(hfd_slice query, struct hfd_fleet_command *cmd, struct hfd_err *err)
{
    struct hfd_arena *mem = cmd->call.mem;
    struct hfd_fleet_query *q = &cmd->in.list.query;
    struct hfd_order_text order = {.kind = cmd->kind};
    struct hfd_orders orders = {.count = 0};
    hfd_slice search, fields;
    hfd_rc rc;

    rc = page_params(query, cmd, err);
    if (rc != HFD_OK)
        return rc;
    *q = (struct hfd_fleet_query){
        .kind = cmd->kind,
        .owner_id = cmd->owner_id,
        .offset = (cmd->in.list.page.page - 1) * cmd->in.list.page.size,
        .limit = cmd->in.list.page.size,
    };
    rc = order_params(query, mem, &order, &orders, err);
    q->order = orders.items;
    q->order_count = orders.count;
    if (rc == HFD_OK)
        rc = hfd_query_get(query, "search", mem, &search, err);
    if (rc == HFD_OK)
        rc = hfd_search_parse(cmd->kind, search, mem, &q->filter, err);
    cmd->in.list.is_plain = q->filter == NULL && order.by.len == 0 && order.direction.len == 0;
    if (rc == HFD_OK)
        rc = hfd_query_get(query, "fields", mem, &fields, err);
    return rc == HFD_OK ? hfd_fields_parse(cmd->kind, fields, mem, &cmd->in.list.fields, err) : rc;
}

/*
 * Turns a full page into an error that asks for a smaller one, because a retry would not help. It
 * does when the process is out of memory.
 */
static hfd_rc fit(hfd_rc rc, const struct hfd_arena *mem, struct hfd_err *err)
{
    if (rc != HFD_LIMIT && !(rc == HFD_NOMEM && mem->full))
        return rc;
    return hfd_fail_field(err, HFD_LIMIT, "pageSize",
                          "the page is too large for one answer: ask for a smaller pageSize");
}

static void list_head(struct hfd_buf *b, const char *kind, const struct hfd_fleet_command *cmd,
                      size_t count, int64_t total)
{
    hfd_buf_addf(b, "{\"kind\":\"%sList\",\"page\":%lld,\"size\":%zu,\"total\":%lld,\"items\":[",
                 kind, (long long)cmd->in.list.page.page, count, (long long)total);
}

void hfd_fleet_add_document(struct hfd_buf *b, const struct hfd_fields *fields,
                            const struct hfd_fleet_row *row, enum hfd_vocabulary vocabulary)
{
    struct hfd_buf whole;
    hfd_slice document;
    hfd_rc rc;

    if (fields == NULL) {
        hfd_fleet_json_resource(b, row, vocabulary);
        return;
    }
    hfd_buf_init(&whole, HFD_FLEET_DOCUMENT_MAX_BYTES);
    hfd_fleet_json_resource(&whole, row, vocabulary);
    rc = hfd_buf_finish(&whole, &document, NULL);
    if (rc == HFD_OK)
        hfd_fields_add(b, fields, document);
    else if (b->rc == HFD_OK)
        b->rc = rc;
    hfd_buf_fini(&whole);
}

static hfd_rc finish_page(const struct hfd_fleet_command *cmd, struct hfd_err *err)
{
    if (cmd->body->rc == HFD_NOMEM)
        return hfd_fail_nomem(err, "format a list");
    return fit(cmd->body->rc, cmd->call.mem, err);
}

/* Thread: reader. */
static hfd_rc format_page(struct hfd_fleet_command *cmd, struct hfd_err *err)
{
    struct hfd_buf *b = cmd->body;

    hfd_buf_reset(b);
    list_head(b, hfd_kind_name(cmd->kind), cmd, cmd->rows.count, cmd->rows.total);
    for (size_t i = 0; i < cmd->rows.count && b->rc == HFD_OK; i++) {
        if (i > 0)
            hfd_buf_addc(b, ',');
        hfd_fleet_add_document(b, cmd->in.list.fields, &cmd->rows.rows[i], cmd->vocabulary);
    }
    hfd_buf_lit(b, "]}");
    return finish_page(cmd, err);
}

static hfd_rc txn_list(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct hfd_fleet_command *cmd = arg;
    hfd_rc rc;

    if (cmd->owner_id.len > 0) {
        const struct hfd_fleet_target owner = {.kind = HFD_KIND_CLUSTER, .id = cmd->owner_id};

        rc = hfd_fleet_get(tx, &owner, cmd->call.mem, &cmd->row, err);
        if (rc != HFD_OK)
            return rc;
    }
    rc = fit(hfd_fleet_row_search(tx, &cmd->in.list.query, cmd->call.mem, &cmd->rows, err),
             cmd->call.mem, err);
    return rc == HFD_OK ? format_page(cmd, err) : rc;
}

/* Sends the page that the reader has written. */
static void on_listed(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    const struct hfd_fleet_command *cmd = arg;

    if (rc != HFD_OK)
        hfd_exchange_fail(x, rc, err);
    else
        hfd_exchange_reply(x, &(struct hfd_reply){.status = 200,
                                                  .content_type = "application/json",
                                                  .body = hfd_buf_slice(cmd->body)});
}

/* A request for a list: reads its parameters into the command, runs the command. */
struct hfd_fleet_listing {
    hfd_rc (*params)(hfd_slice query, struct hfd_fleet_command *cmd, struct hfd_err *err);
    hfd_txn_fn *fn;
};

static void view_page(struct hfd_exchange *x, struct hfd_fleet_command *cmd)
{
    const struct hfd_fleet_listing *listing = hfd_exchange_route(x)->arg;

    cmd->call.mem->max_bytes = LIST_MAX_BYTES; /* a page of the largest documents */
    cmd->body = hfd_exchange_body(x, LIST_MAX_BYTES);
    hfd_exchange_view(x, listing->fn, cmd, on_listed);
}

static void on_short_listed(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    struct hfd_fleet_command *cmd = arg;

    if (rc != HFD_LIMIT) {
        on_listed(x, arg, rc, err);
        return;
    }
    hfd_arena_rewind(cmd->call.mem, cmd->in.list.asked);
    cmd->call.mem->full = false;
    view_page(x, cmd);
}

static void view_short_page(struct hfd_exchange *x, struct hfd_fleet_command *cmd)
{
    const struct hfd_fleet_listing *listing = hfd_exchange_route(x)->arg;

    cmd->in.list.asked = hfd_arena_mark(cmd->call.mem);
    cmd->call.mem->max_bytes = SHORT_MAX_BYTES;
    cmd->body = hfd_exchange_body(x, SHORT_MAX_BYTES);
    hfd_exchange_view_short(x, listing->fn, cmd, on_short_listed);
}

static bool is_short(const struct hfd_fleet_command *cmd)
{
    const struct hfd_query_page *page = &cmd->in.list.page;

    return cmd->in.list.is_plain && page->page <= SHORT_ROWS_MAX / page->size;
}

void hfd_fleet_api_list(struct hfd_exchange *x)
{
    const struct hfd_fleet_listing *listing = hfd_exchange_route(x)->arg;
    struct hfd_fleet_command *cmd = hfd_fleet_command_start(x);
    struct hfd_err err;
    hfd_rc rc;

    if (cmd == NULL)
        return;
    cmd->call.mem->max_bytes = LIST_MAX_BYTES;
    cmd->vocabulary = hfd_exchange_app(x)->vocabulary;
    rc = listing->params(hfd_exchange_request(x)->query, cmd, &err);
    if (rc != HFD_OK)
        hfd_exchange_fail(x, rc, &err);
    else if (is_short(cmd))
        view_short_page(x, cmd);
    else
        view_page(x, cmd);
}

const struct hfd_fleet_listing hfd_fleet_resources = {list_params, txn_list};

/* Without an order reports stand as their adapters first reported. */
static hfd_rc statuses_params(hfd_slice query, struct hfd_fleet_command *cmd, struct hfd_err *err)
{
    struct hfd_report_query *q = &cmd->in.list.reports;
    struct hfd_order_text order = {.of_reports = true};
    struct hfd_arena *mem = cmd->call.mem;
    struct hfd_orders orders;
    hfd_slice search;
    hfd_rc rc = page_params(query, cmd, err);

    if (rc != HFD_OK)
        return rc;
    *q = (struct hfd_report_query){
        .fleet_id = cmd->id,
        .limit = cmd->in.list.page.size,
        .offset = (cmd->in.list.page.page - 1) * cmd->in.list.page.size,
    };
    rc = order_params(query, mem, &order, &orders, err);
    if (rc == HFD_OK && (order.by.len > 0 || order.direction.len > 0)) {
        q->order = orders.items;
        q->order_count = orders.count;
    }
    if (rc == HFD_OK)
        rc = hfd_query_get(query, "search", mem, &search, err);
    if (rc == HFD_OK)
        rc = hfd_search_parse_reports(search, mem, &q->filter, err);
    cmd->in.list.is_plain = q->filter == NULL && q->order_count == 0;
    return rc;
}

/* Thread: reader. */
static hfd_rc format_statuses(struct hfd_fleet_command *cmd, struct hfd_err *err)
{
    struct hfd_buf *b = cmd->body;

    hfd_buf_reset(b);
    list_head(b, "AdapterStatus", cmd, cmd->reports.count, cmd->reports.total);
    for (size_t i = 0; i < cmd->reports.count && b->rc == HFD_OK; i++) {
        if (i > 0)
            hfd_buf_addc(b, ',');
        hfd_fleet_json_report(b, &cmd->reports.rows[i]);
    }
    hfd_buf_lit(b, "]}");
    return finish_page(cmd, err);
}

static hfd_rc txn_statuses(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct hfd_fleet_command *cmd = arg;
    hfd_rc rc;

    rc = hfd_fleet_get(tx, &(struct hfd_fleet_target){cmd->kind, cmd->owner_id, cmd->id},
                       cmd->call.mem, &cmd->row, err);
    if (rc == HFD_OK)
        rc = fit(hfd_report_row_list(tx, &cmd->in.list.reports, cmd->call.mem, &cmd->reports, err),
                 cmd->call.mem, err);
    return rc == HFD_OK ? format_statuses(cmd, err) : rc;
}

const struct hfd_fleet_listing hfd_fleet_statuses = {statuses_params, txn_statuses};
