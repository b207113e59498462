/* See fleet_api.h. */
#include "handlers/http/fleet_api.h"

#include "driver/base/etag.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/core/protect.h"
#include "driver/core/transition.h"
#include "driver/fleet/condition.h"
#include "driver/fleet/fleet.h"
#include "driver/fleet/search.h"
#include "driver/health/intake.h"
#include "handlers/http/access.h"
#include "handlers/http/exchange.h"
#include "handlers/http/fleet_json.h"
#include "handlers/http/http.h"
#include "handlers/http/pacemaker_api.h"
#include "handlers/http/query.h"
#include "store/rows_due.h"
#include "store/rows_fleet.h"
#include "store/rows_report.h"
#include "store/rows_resource.h"
#include "store/search.h"

/* ---- lists ---- */

/* Pages, searches, orders and projections. */

/*
 * The command that requests of the embedded HyperFleet API share: fleet_api.c reads and writes
 * single resources, fleet_api.c lists them. Thread: loop.
 */

/* The largest document of one resource that the limits allow. */
#define HFD_FLEET_DOCUMENT_MAX_BYTES ((size_t)64 * 1024 * 1024)

/* A request and its results. Lives in the memory of the exchange. */
struct hfd_fleet_command {
    struct hfd_fleet_call call;
    enum hfd_kind kind;
    hfd_slice owner_id; /* from the path; empty if there is none */
    hfd_slice id;
    union {
        struct hfd_fleet_create create;
        struct hfd_fleet_patch patch;
        struct hfd_fleet_report report;
        hfd_slice reason;
        struct {
            struct hfd_query_page page;
            struct hfd_fleet_query query;
            struct hfd_report_query reports; /* of the lists of statuses */
            const struct hfd_fields *fields; /* NULL = all */
            bool is_plain;                   /* no search, and the order of an index */
            struct hfd_arena_mark asked;     /* what is above it, the page needs */
        } list;
    } in;
    struct hfd_precondition match; /* of a GET: If-None-Match alone */
    hfd_slice etag;                /* of row, for a GET with fields */
    bool force;                    /* a deletion of what is protected */
    bool overrides;                /* it was protected */
    int status;                    /* status of a successful answer */
    struct hfd_buf *body;          /* of the answer of a list, written by the reader; NULL = none */
    enum hfd_vocabulary vocabulary;
    const struct hfd_driver *driver;
    struct hfd_fleet_row row;
    struct hfd_fleet_reported report;
    struct hfd_pacemaker_report observed; /* of in.report */
    struct hfd_fleet_list rows;
    int64_t events_cursor; /* of the snapshot of rows; -1 = the answer has none */
    struct hfd_report_list reports;
};

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

/* Adds the document of a resource, or the members that `fields` selects; NULL = all. */
static void fleet_add_document(struct hfd_buf *b, const struct hfd_fields *fields,
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
        fleet_add_document(b, cmd->in.list.fields, &cmd->rows.rows[i], cmd->vocabulary);
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
    /* Of several pages the first has the cursor from which nothing is missed. */
    rc = cmd->in.list.page.page == 1 ? hfd_due_last(tx, &cmd->events_cursor, err) : HFD_OK;
    if (rc != HFD_OK)
        return rc;
    rc = fit(hfd_fleet_row_search(tx, &cmd->in.list.query, cmd->call.mem, &cmd->rows, err),
             cmd->call.mem, err);
    return rc == HFD_OK ? format_page(cmd, err) : rc;
}

/* Sends the document that the reader has written. */
static void on_written(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    const struct hfd_fleet_command *cmd = arg;
    struct hfd_reply reply = {
        .status = 200, .content_type = "application/json", .body = hfd_buf_slice(cmd->body)};

    if (rc == HFD_OK && cmd->events_cursor >= 0) {
        reply.events_cursor =
            hfd_arena_printf(cmd->call.mem, "%lld", (long long)cmd->events_cursor);
    }
    if (rc != HFD_OK)
        hfd_exchange_fail(x, rc, err);
    else
        hfd_exchange_reply(x, &reply);
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
    hfd_exchange_view(x, listing->fn, cmd, on_written);
}

static void on_short_listed(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    struct hfd_fleet_command *cmd = arg;

    if (rc != HFD_LIMIT) {
        on_written(x, arg, rc, err);
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

static struct hfd_fleet_command *fleet_command_start(struct hfd_exchange *x);

void hfd_fleet_api_list(struct hfd_exchange *x)
{
    const struct hfd_fleet_listing *listing = hfd_exchange_route(x)->arg;
    struct hfd_fleet_command *cmd = fleet_command_start(x);
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

/* ---- requests ---- */

/*
 * The embedded HyperFleet API. Turns requests into calls of driver/fleet and rows into documents;
 * decides nothing. Source: HyperFleet API. Thread: loop.
 */

static hfd_rc own_param(const struct hfd_exchange *x, const char *name, struct hfd_arena *mem,
                        hfd_slice *out)
{
    const hfd_slice v = hfd_exchange_param(x, name);

    *out = v;
    if (v.p == NULL)
        return HFD_OK; /* flat paths have no owner, lists no id */
    *out = hfd_arena_dup(mem, v);
    return out->p != NULL ? HFD_OK : HFD_NOMEM;
}

/* Makes the command of a request, with copies. Returns NULL after it has answered with an error.
 */
static struct hfd_fleet_command *fleet_command_start(struct hfd_exchange *x)
{
    const enum hfd_kind kind = hfd_exchange_route(x)->kind;
    const bool nodepool = kind == HFD_KIND_NODEPOOL;
    const struct hfd_app *app = hfd_exchange_app(x);
    struct hfd_arena *mem = hfd_exchange_mem(x);
    struct hfd_fleet_command *cmd = hfd_arena_alloc(mem, sizeof(*cmd));
    struct hfd_err err;
    hfd_slice caller;
    hfd_rc rc = hfd_api_caller(x, &caller, &err);

    if (rc == HFD_OK && cmd == NULL)
        rc = hfd_fail_nomem(&err, "copy a request");
    if (rc == HFD_OK) {
        *cmd = (struct hfd_fleet_command){
            .call = {.fleet = &app->driver->fleet,
                     .now_us = hfd_clock_wall_us(app->clock),
                     .caller = caller,
                     .by_others = true,
                     .mem = mem},
            .events_cursor = -1,
            .kind = kind,
            .driver = app->driver,
        };
        if (own_param(x, nodepool ? "nodepool_id" : "cluster_id", mem, &cmd->id) == HFD_OK &&
            (!nodepool || own_param(x, "cluster_id", mem, &cmd->owner_id) == HFD_OK))
            return cmd;
        rc = hfd_fail_nomem(&err, "copy a request");
    }
    hfd_exchange_fail(x, rc, &err);
    return NULL;
}

/* Prepares the reading of the request's body into the command's memory. */
static struct hfd_fleet_reading reading(const struct hfd_exchange *x,
                                        const struct hfd_fleet_command *cmd)
{
    return (struct hfd_fleet_reading){
        .mem = cmd->call.mem,
        .now_us = cmd->call.now_us,
        .spec_schema = hfd_exchange_app(x)->driver->rules.spec_schema[cmd->kind]};
}

/* Makes the tag of a document that was built. @return as hfd_etag_make, HFD_LIMIT */
static hfd_rc tag_of(const struct hfd_buf *b, struct hfd_arena *mem, hfd_slice *out,
                     struct hfd_err *err)
{
    const hfd_slice document = {b->p, b->len};

    *out = HFD_SLICE("");
    return b->rc == HFD_OK ? hfd_etag_make(&document, 1, mem, out, err) : b->rc;
}

/* The tag of the row that was read. */
static hfd_rc tag_of_row(const struct hfd_fleet_command *cmd, hfd_slice *out, struct hfd_err *err)
{
    struct hfd_buf b;
    hfd_rc rc;

    hfd_buf_init(&b, HFD_FLEET_DOCUMENT_MAX_BYTES);
    fleet_add_document(&b, NULL, &cmd->row, cmd->vocabulary);
    rc = tag_of(&b, cmd->call.mem, out, err);
    hfd_buf_fini(&b);
    return rc;
}

/* True for a GET of what the caller has. */
static bool is_had(const struct hfd_exchange *x, const struct hfd_fleet_command *cmd,
                   hfd_slice etag)
{
    return hfd_exchange_route(x)->fn == hfd_fleet_api_get && etag.len > 0 &&
           hfd_etag_matches(cmd->match.if_none_match, etag);
}

/* Sends the document of a resource with its tag. Without memory for the tag it has none. */
static void send_row(struct hfd_exchange *x, int status, const struct hfd_fleet_command *cmd)
{
    struct hfd_reply reply = {.status = status};
    struct hfd_buf b;

    hfd_buf_init(&b, HFD_FLEET_DOCUMENT_MAX_BYTES);
    fleet_add_document(&b, NULL, &cmd->row, hfd_exchange_app(x)->vocabulary);
    if (tag_of(&b, cmd->call.mem, &reply.etag, NULL) == HFD_OK && is_had(x, cmd, reply.etag)) {
        hfd_buf_reset(&b);
        reply.status = 304;
    }
    hfd_api_send(x, &reply, "application/json", &b);
}

/* A request that writes: reads its body into the command, runs the command, answers. */
struct hfd_fleet_action {
    /* NULL = no body */
    hfd_rc (*read)(hfd_slice body, struct hfd_fleet_command *cmd, struct hfd_fleet_reading *r,
                   struct hfd_err *err);
    hfd_txn_fn *fn;
    hfd_then_fn *then;
    int status;
    hfd_txn_fn *prefetch; /* what fn will read; may be NULL */
};

static void fail_reading(struct hfd_exchange *x, const struct hfd_fleet_command *cmd,
                         const struct hfd_fleet_reading *r, hfd_rc rc, const struct hfd_err *err)
{
    if (cmd->observed.given.violations.count > 0)
        hfd_exchange_fail_rules(x, rc, err, &cmd->observed.given.violations);
    else
        hfd_exchange_fail_fields(x, rc, err, &r->found);
}

/* Reads and copies the preconditions of a request. Those of a GET that are malformed match nothing.
 */
static hfd_rc read_match(const struct hfd_exchange *x, struct hfd_fleet_command *cmd,
                         struct hfd_err *err)
{
    struct hfd_precondition *m = &cmd->match;
    const bool reads = hfd_exchange_route(x)->fn == hfd_fleet_api_get;
    hfd_rc rc = hfd_exchange_header(x, "if-none-match", &m->if_none_match, err);

    if (rc == HFD_OK && !reads)
        rc = hfd_exchange_header(x, "if-match", &m->if_match, err);
    if (rc == HFD_OK && !reads)
        rc = hfd_precondition_parse(m, err);
    if (rc != HFD_OK && !reads)
        return rc;
    m->if_match = hfd_arena_dup(cmd->call.mem, m->if_match);
    m->if_none_match = hfd_arena_dup(cmd->call.mem, m->if_none_match);
    return m->if_match.p != NULL && m->if_none_match.p != NULL
               ? HFD_OK
               : hfd_fail_nomem(err, "copy a request");
}

/* Reads `force` of a deletion. */
static hfd_rc read_force(struct hfd_exchange *x, bool *out, struct hfd_err *err)
{
    hfd_slice text;
    hfd_rc rc =
        hfd_query_get(hfd_exchange_request(x)->query, "force", hfd_exchange_mem(x), &text, err);

    *out = rc == HFD_OK && hfd_slice_is(text, "true");
    if (rc != HFD_OK || *out || text.len == 0 || hfd_slice_is(text, "false"))
        return rc;
    return hfd_fail_field(err, HFD_BAD_REQUEST, "force", "force must be true or false");
}

/* Reads what a PATCH or DELETE has beside its body. */
static hfd_rc read_terms(struct hfd_exchange *x, const struct hfd_fleet_action *c,
                         struct hfd_fleet_command *cmd, struct hfd_err *err)
{
    const bool deletes = c == &hfd_fleet_deleting || c == &hfd_fleet_force_deleting;
    hfd_rc rc = HFD_OK;

    if (c == &hfd_fleet_patching || c == &hfd_fleet_deleting)
        rc = read_match(x, cmd, err);
    return rc == HFD_OK && deletes ? read_force(x, &cmd->force, err) : rc;
}

void hfd_fleet_api_change(struct hfd_exchange *x)
{
    const struct hfd_fleet_action *c = hfd_exchange_route(x)->arg;
    struct hfd_fleet_command *cmd = fleet_command_start(x);
    struct hfd_fleet_reading r;
    struct hfd_err err;
    hfd_rc rc;

    if (cmd == NULL)
        return;
    cmd->status = c->status;
    cmd->vocabulary = hfd_exchange_app(x)->vocabulary;
    r = reading(x, cmd);
    rc = read_terms(x, c, cmd, &err);
    if (cmd->force && !hfd_access_may_force(x))
        return;
    if (rc == HFD_OK && c->read != NULL)
        rc = c->read(hfd_exchange_request(x)->body, cmd, &r, &err);
    if (c == &hfd_fleet_reporting && !hfd_access_may_report(x, cmd->in.report.adapter))
        return;
    if (rc != HFD_OK)
        fail_reading(x, cmd, &r, rc, &err);
    if (rc != HFD_OK)
        return;
    hfd_exchange_prefetch(x, c->prefetch);
    hfd_exchange_update(x, c->fn, cmd, c->then);
}

/* A deletion that the protection of a resource did not stop. */
static void log_override(const struct hfd_fleet_command *cmd)
{
    if (cmd->overrides)
        HFD_LOG(HFD_LOG_WARN, "audit: protection overridden",
                HFD_LOG_CSTR("kind", hfd_kind_name(cmd->kind)), HFD_LOG_STR("id", cmd->id),
                HFD_LOG_STR("by", cmd->call.caller));
}

static void on_changed(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    const struct hfd_fleet_command *cmd = arg;

    if (rc != HFD_OK) {
        hfd_exchange_fail(x, rc, err);
        return;
    }
    log_override(cmd);
    send_row(x, cmd->status, cmd);
}

/* Begins the list of what a run of a transaction function changes. */
static void note_changes(struct hfd_fleet_command *cmd, struct hfd_fleet_changes *changes)
{
    *changes = (struct hfd_fleet_changes){.mem = cmd->call.mem};
    cmd->call.changes = changes;
}

/* ---- one resource ---- */

static hfd_rc txn_get(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct hfd_fleet_command *cmd = arg;

    return hfd_fleet_get(tx, &(struct hfd_fleet_target){cmd->kind, cmd->owner_id, cmd->id},
                         cmd->call.mem, &cmd->row, err);
}

/* Reads `fields`: the members that the caller wants of the document. */
static hfd_rc read_fields(const struct hfd_exchange *x, const struct hfd_fleet_command *cmd,
                          const struct hfd_fields **out, struct hfd_err *err)
{
    const hfd_slice query = hfd_exchange_request(x)->query;
    hfd_slice text;
    hfd_rc rc;

    if (query.len == 0)
        return HFD_OK;
    rc = hfd_query_get(query, "fields", cmd->call.mem, &text, err);
    return rc == HFD_OK ? hfd_fields_parse(cmd->kind, text, cmd->call.mem, out, err) : rc;
}

static hfd_rc txn_get_some(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct hfd_fleet_command *cmd = arg;
    hfd_rc rc = txn_get(tx, cmd, err);
    hfd_slice document;

    if (rc != HFD_OK)
        return rc;
    hfd_buf_reset(cmd->body);
    fleet_add_document(cmd->body, cmd->in.list.fields, &cmd->row, cmd->vocabulary);
    rc = tag_of_row(cmd, &cmd->etag, err);
    return rc == HFD_OK ? hfd_buf_finish(cmd->body, &document, err) : rc;
}

/* The tag is that of the whole document, so that it can be sent back in If-Match. */
static void on_got_some(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    const struct hfd_fleet_command *cmd = arg;
    struct hfd_reply reply = {.status = 304, .etag = cmd->etag};

    if (rc != HFD_OK) {
        hfd_exchange_fail(x, rc, err);
        return;
    }
    if (!is_had(x, cmd, cmd->etag)) {
        reply.status = 200;
        reply.content_type = "application/json";
        reply.body = hfd_buf_slice(cmd->body);
    }
    hfd_exchange_reply(x, &reply);
}

/* Parsing a whole document again takes long for a loop, so a reader selects its members. */
static void get_some(struct hfd_exchange *x, struct hfd_fleet_command *cmd)
{
    cmd->body = hfd_exchange_body(x, HFD_FLEET_DOCUMENT_MAX_BYTES);
    cmd->vocabulary = hfd_exchange_app(x)->vocabulary;
    hfd_exchange_view_short(x, txn_get_some, cmd, on_got_some);
}

static void on_got(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    struct hfd_fleet_command *cmd = arg;

    if (rc != HFD_OK)
        hfd_exchange_fail(x, rc, err);
    else
        send_row(x, 200, cmd);
}

void hfd_fleet_api_get(struct hfd_exchange *x)
{
    struct hfd_fleet_command *cmd = fleet_command_start(x);
    struct hfd_err err;
    hfd_rc rc;

    if (cmd == NULL)
        return;
    rc = read_match(x, cmd, &err);
    if (rc == HFD_OK)
        rc = read_fields(x, cmd, &cmd->in.list.fields, &err);
    if (rc == HFD_OK && cmd->in.list.fields != NULL) {
        get_some(x, cmd);
        return;
    }
    if (rc != HFD_OK)
        hfd_exchange_fail(x, rc, &err);
    else
        hfd_exchange_read(x, &(struct hfd_exchange_read){txn_get, cmd, NULL, on_got});
}

static hfd_rc txn_create(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct hfd_fleet_command *cmd = arg;

    struct hfd_fleet_changes changes;
    hfd_rc rc;

    note_changes(cmd, &changes);
    rc = hfd_fleet_create(tx, &cmd->call, &cmd->in.create, &cmd->row, err);
    return rc == HFD_OK ? hfd_resource_observe(tx, cmd->driver, &cmd->call, err) : rc;
}

static hfd_rc read_create(hfd_slice body, struct hfd_fleet_command *cmd,
                          struct hfd_fleet_reading *r, struct hfd_err *err)
{
    cmd->in.create = (struct hfd_fleet_create){.kind = cmd->kind, .owner_id = cmd->owner_id};
    return hfd_fleet_json_create(body, r, &cmd->in.create, err);
}

const struct hfd_fleet_action hfd_fleet_creating = {read_create, txn_create, on_changed, 201, NULL};

/*
 * Checks the preconditions of a PATCH or DELETE, in its transaction. A deletion that goes on may
 * be asked for again: that begins nothing.
 */
static hfd_rc check_match(struct hfd_txn *tx, struct hfd_fleet_command *cmd, bool deletes,
                          struct hfd_err *err)
{
    struct hfd_precondition_on is = {.exists = true};
    hfd_rc rc;

    if (cmd->match.if_match.len + cmd->match.if_none_match.len == 0)
        return HFD_OK;
    rc = txn_get(tx, cmd, err);
    if (rc != HFD_OK || (deletes && cmd->row.deleted_us != 0))
        return rc;
    rc = tag_of_row(cmd, &is.etag, err);
    is.alias =
        hfd_arena_printf(cmd->call.mem, "\"generation-%lld\"", (long long)cmd->row.generation);
    return rc == HFD_OK ? hfd_precondition_check(&cmd->match, &is, err) : rc;
}

static hfd_rc txn_patch(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct hfd_fleet_command *cmd = arg;

    struct hfd_fleet_changes changes;
    hfd_rc rc;

    note_changes(cmd, &changes);
    rc = check_match(tx, cmd, false, err);
    if (rc == HFD_OK)
        rc = hfd_fleet_patch(tx, &cmd->call, &cmd->in.patch, &cmd->row, err);
    return rc == HFD_OK ? hfd_resource_observe(tx, cmd->driver, &cmd->call, err) : rc;
}

static hfd_rc read_patch(hfd_slice body, struct hfd_fleet_command *cmd, struct hfd_fleet_reading *r,
                         struct hfd_err *err)
{
    cmd->in.patch = (struct hfd_fleet_patch){.target = {cmd->kind, cmd->owner_id, cmd->id}};
    return hfd_fleet_json_patch(body, r, &cmd->in.patch, err);
}

const struct hfd_fleet_action hfd_fleet_patching = {read_patch, txn_patch, on_changed, 200, NULL};

/*
 * Checks that what a deletion names is there and not protected, unless it is forced.
 * @return HFD_OK, HFD_NOT_FOUND, HFD_PROTECTED
 */
static hfd_rc check_protection(struct hfd_txn *tx, struct hfd_fleet_command *cmd,
                               struct hfd_err *err)
{
    const struct hfd_ctx c = {.tx = tx,
                              .driver = cmd->driver,
                              .now_us = cmd->call.now_us,
                              .mem = cmd->call.mem,
                              .err = err};
    hfd_rc rc = txn_get(tx, cmd, err);

    if (rc == HFD_OK)
        rc = hfd_protect_check_fleet(&c, cmd->kind, cmd->id);
    cmd->overrides = rc == HFD_PROTECTED && cmd->force;
    return cmd->overrides ? HFD_OK : rc;
}

static hfd_rc txn_delete(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct hfd_fleet_command *cmd = arg;

    const struct hfd_fleet_target target = {cmd->kind, cmd->owner_id, cmd->id};
    struct hfd_fleet_changes changes;
    struct hfd_fleet_deletion deletion;
    hfd_rc rc;

    note_changes(cmd, &changes);
    rc = check_protection(tx, cmd, err);
    if (rc == HFD_OK)
        rc = check_match(tx, cmd, true, err);
    if (rc != HFD_OK)
        return rc;
    rc = hfd_fleet_delete(tx, &cmd->call, &target, &deletion, err);
    cmd->row = deletion.row;
    return rc == HFD_OK ? hfd_resource_observe(tx, cmd->driver, &cmd->call, err) : rc;
}

const struct hfd_fleet_action hfd_fleet_deleting = {NULL, txn_delete, on_changed, 202, NULL};

static hfd_rc txn_force_delete(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct hfd_fleet_command *cmd = arg;

    const struct hfd_fleet_target target = {cmd->kind, cmd->owner_id, cmd->id};
    struct hfd_fleet_changes changes;
    hfd_rc rc;

    note_changes(cmd, &changes);
    rc = check_protection(tx, cmd, err);
    if (rc == HFD_OK)
        rc = hfd_fleet_force_delete(tx, &cmd->call, &target, err);
    return rc == HFD_OK ? hfd_resource_observe(tx, cmd->driver, &cmd->call, err) : rc;
}

static void on_force_deleted(struct hfd_exchange *x, void *arg, hfd_rc rc,
                             const struct hfd_err *err)
{
    const struct hfd_fleet_command *cmd = arg;
    const struct hfd_reply reply = {.status = cmd->status};

    if (rc != HFD_OK) {
        hfd_exchange_fail(x, rc, err);
        return;
    }
    log_override(cmd);
    HFD_LOG(HFD_LOG_WARN, "audit: removed by force", HFD_LOG_CSTR("kind", hfd_kind_name(cmd->kind)),
            HFD_LOG_STR("id", cmd->id), HFD_LOG_STR("by", cmd->call.caller),
            HFD_LOG_STR("reason", cmd->in.reason));
    hfd_exchange_reply(x, &reply);
}

static hfd_rc read_reason(hfd_slice body, struct hfd_fleet_command *cmd,
                          struct hfd_fleet_reading *r, struct hfd_err *err)
{
    return hfd_fleet_json_reason(body, r, &cmd->in.reason, err);
}

const struct hfd_fleet_action hfd_fleet_force_deleting = {read_reason, txn_force_delete,
                                                          on_force_deleted, 204, NULL};

/* ---- reports ---- */

static hfd_rc txn_report(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct hfd_fleet_command *cmd = arg;

    const struct hfd_health_report health = {&cmd->in.report, &cmd->observed.given};
    struct hfd_fleet_changes changes;
    hfd_rc rc;

    rc = hfd_fleet_check_reporter(cmd->call.fleet, cmd->in.report.adapter, err);
    if (rc != HFD_OK)
        return rc;
    note_changes(cmd, &changes);
    if (cmd->observed.is)
        rc = hfd_health_report(tx, &cmd->call, &health, &cmd->report, err);
    else
        rc = hfd_fleet_report(tx, &cmd->call, &cmd->in.report, &cmd->report, err);
    return rc == HFD_OK ? hfd_resource_observe(tx, cmd->driver, &cmd->call, err) : rc;
}

static hfd_rc prefetch_report(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct hfd_fleet_command *cmd = arg;
    const struct hfd_prefetch_report of = {cmd->id, cmd->owner_id, cmd->in.report.adapter,
                                           cmd->call.mem};

    const hfd_rc rc = hfd_root_fleet(tx, cmd->id, err);

    return rc == HFD_OK ? hfd_prefetch_report(tx, &of, err) : rc;
}

/* cause: of a discarded report, else "" */
static void count_report(const struct hfd_fleet_command *cmd, const char *outcome,
                         const char *cause)
{
    hfd_metric_add(HFD_METRIC_REPORTS, HFD_LABELS(hfd_kind_name(cmd->kind), outcome, cause), 1);
}

static void on_reported(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    const struct hfd_fleet_command *cmd = arg;
    struct hfd_reply reply = {.status = cmd->status};
    struct hfd_buf b;

    if (rc != HFD_OK) {
        count_report(cmd, "rejected", "");
        hfd_exchange_fail(x, rc, err);
        return;
    }
    hfd_buf_init(&b, HFD_FLEET_DOCUMENT_MAX_BYTES);
    if (cmd->report.verdict == HFD_VERDICT_DISCARD) {
        count_report(cmd, "discarded", cmd->report.cause);
        reply.status = 204;
        reply.discarded = hfd_slice_of(cmd->report.why);
    } else {
        count_report(cmd, cmd->report.verdict == HFD_VERDICT_REPEAT ? "repeated" : "stored", "");
        hfd_fleet_json_report(&b, &cmd->report.row);
    }
    hfd_api_send(x, &reply, "application/json", &b);
}

static hfd_rc read_report(hfd_slice body, struct hfd_fleet_command *cmd,
                          struct hfd_fleet_reading *r, struct hfd_err *err)
{
    hfd_rc rc;

    cmd->in.report = (struct hfd_fleet_report){.target = {cmd->kind, cmd->owner_id, cmd->id}};
    rc = hfd_fleet_json_status(body, r, &cmd->in.report, err);
    if (rc == HFD_OK)
        rc = hfd_pacemaker_read_report(cmd->call.fleet, &cmd->in.report, cmd->call.mem,
                                       &cmd->observed, err);
    if (rc != HFD_OK)
        count_report(cmd, "rejected", "");
    return rc;
}

const struct hfd_fleet_action hfd_fleet_reporting = {read_report, txn_report, on_reported, 201,
                                                     prefetch_report};

/* ---- the service ---- */

void hfd_fleet_api_refuse_nodepool(struct hfd_exchange *x)
{
    struct hfd_err err;
    const hfd_rc rc = hfd_fail(&err, HFD_INVALID,
                               "kind \"NodePool\" is a child kind; create it via "
                               "/clusters/{id}/nodepools");

    hfd_exchange_fail_as(x, 422, rc, &err);
}

void hfd_fleet_api_metadata(struct hfd_exchange *x)
{
    struct hfd_reply reply = {.status = 200};
    struct hfd_buf b;

    hfd_buf_init(&b, 1024);
    hfd_buf_lit(&b, "{\"id\":\"hyperfleet\",\"href\":\"/api/"
                    "hyperfleet\",\"kind\":\"API\",\"version\":\"" HFD_VERSION
                    "\",\"build_time\":\"" HFD_BUILD_TIME "\"}");
    hfd_api_send(x, &reply, "application/json", &b);
}
