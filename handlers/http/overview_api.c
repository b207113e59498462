/* See overview_api.h. */
#include "handlers/http/overview_api.h"

#include "driver/base/etag.h"
#include "driver/base/trouble.h"
#include "driver/core/detail.h"
#include "driver/core/driver.h"
#include "driver/core/history.h"
#include "driver/core/overview.h"
#include "driver/fleet/fleet.h"
#include "handlers/http/exchange.h"
#include "handlers/http/hold.h"
#include "handlers/http/http.h"
#include "handlers/http/query.h"

/*
 * Documents below /api/driver/v1: the list of resources, one resource, the event feed. A member
 * without a value is null. Pure. Thread: any.
 */

static void add_name(struct hfd_buf *b, const char *name)
{
    hfd_buf_addf(b, ",\"%s\":", name);
}

/* Each adds a member; without a value it is null. */
static void add_text(struct hfd_buf *b, const char *name, hfd_slice text)
{
    add_name(b, name);
    if (text.len > 0)
        hfd_buf_json_str(b, text);
    else
        hfd_buf_lit(b, "null");
}

static void add_time(struct hfd_buf *b, const char *name, int64_t at_us)
{
    add_name(b, name);
    if (at_us != 0)
        hfd_buf_json_time(b, at_us);
    else
        hfd_buf_lit(b, "null");
}

static void add_number_if(struct hfd_buf *b, const char *name, bool known, int64_t value)
{
    add_name(b, name);
    if (known)
        hfd_buf_i64(b, value);
    else
        hfd_buf_lit(b, "null");
}

/* Seconds with three digits behind the point. */
static void add_duration(struct hfd_buf *b, const char *name, int64_t us)
{
    add_name(b, name);
    if (us > 0)
        hfd_buf_addf(b, "%.3f", (double)us / (double)HFD_US_PER_S);
    else
        hfd_buf_lit(b, "null");
}

static void add_bool(struct hfd_buf *b, const char *name, bool value)
{
    hfd_buf_addf(b, ",\"%s\":%s", name, value ? "true" : "false");
}

static void add_number(struct hfd_buf *b, const char *name, int64_t value)
{
    add_number_if(b, name, true, value);
}

/* A number of the history: a text, as clients read numbers of that size inexactly. */
static void add_seq(struct hfd_buf *b, const char *name, int64_t seq)
{
    hfd_buf_addf(b, ",\"%s\":\"%lld\"", name, (long long)seq);
}

static void add_json(struct hfd_buf *b, const char *name, hfd_slice json)
{
    add_name(b, name);
    hfd_buf_add(b, json);
}

/* ---- documents: the list ---- */

static void add_cause(struct hfd_buf *b, const struct hfd_cause *cause)
{
    add_text(b, "who", cause->who);
    add_text(b, "reason", cause->reason);
}

/* The members of an item, without braces. */
static void add_item(struct hfd_buf *b, const struct hfd_overview_item *i)
{
    hfd_buf_member_str(b, "\"id\":", i->guresid);
    add_text(b, "type", i->type);
    add_text(b, "name", i->name);
    add_text(b, "state", hfd_slice_of(hfd_state_name(i->state)));
    add_text(b, "operation", hfd_slice_of(i->operation != NULL ? i->operation : ""));
    add_time(b, "since", i->since_us);
    add_time(b, "estimated_completion_time", i->estimated_us);
    add_time(b, "deadline", i->deadline_us);
    add_text(b, "message", i->message);
    add_cause(b, &i->cause);
    add_text(b, "words", i->cause.words);
    add_text(b, "code", i->code);
    add_bool(b, "stuck", i->stuck);
    add_text(b, "health", i->health);
    add_number(b, "drift_count", i->drift_count);
    add_json(b, "labels", i->labels);
    add_text(b, "cluster_id", i->cluster_id);
}

/* Each adds a document; a failure is kept in b. */
/** @param next  the token of the next page; p is NULL = there is none */
static void overview_format(struct hfd_buf *b, const struct hfd_overview *page, hfd_slice next)
{
    hfd_buf_lit(b, "{\"items\":[");
    for (size_t i = 0; i < page->count; i++) {
        hfd_buf_add(b, i > 0 ? HFD_SLICE(",{") : HFD_SLICE("{"));
        add_item(b, &page->items[i]);
        hfd_buf_addc(b, '}');
    }
    hfd_buf_lit(b, "],\"counts\":{");
    for (int s = HFD_STATE_CREATING; s < HFD_STATE_COUNT; s++)
        hfd_buf_addf(b, "%s\"%s\":%lld", s > HFD_STATE_CREATING ? "," : "",
                     hfd_state_name((enum hfd_state)s), (long long)page->counts[s]);
    hfd_buf_lit(b, "},\"causes\":[");
    for (size_t i = 0; i < page->cause_count; i++) {
        const struct hfd_overview_cause *c = &page->causes[i];

        hfd_buf_addf(b, "%s{\"trouble\":\"%s\"", i > 0 ? "," : "",
                     hfd_overview_trouble_name(c->trouble));
        add_cause(b, &c->cause);
        add_number(b, "count", c->count);
        add_time(b, "since", c->since_us);
        hfd_buf_addc(b, '}');
    }
    hfd_buf_addc(b, ']');
    add_text(b, "next", next);
    hfd_buf_addc(b, '}');
}

/* ---- documents: history ---- */

static void add_history(struct hfd_buf *b, const struct hfd_history *h)
{
    hfd_buf_lit(b, ",\"history\":[");
    for (size_t i = 0; i < h->count; i++) {
        hfd_buf_addf(b, "%s{\"id\":\"%lld\"", i > 0 ? "," : "", (long long)h->entries[i].seq);
        hfd_history_format(b, &h->entries[i]);
        hfd_buf_addc(b, '}');
    }
    hfd_buf_addc(b, ']');
}

static void feed_format(struct hfd_buf *b, const struct hfd_feed *feed)
{
    hfd_buf_lit(b, "{\"items\":[");
    for (size_t i = 0; i < feed->count; i++) {
        hfd_buf_comma(b, i);
        hfd_feed_entry_format(b, &feed->items[i]);
    }
    hfd_buf_addc(b, ']');
    add_seq(b, "next", feed->next);
    add_bool(b, "complete", feed->complete);
    hfd_buf_addc(b, '}');
}

/* ---- documents: one resource ---- */

static void add_order(struct hfd_buf *b, const struct hfd_detail *d)
{
    hfd_buf_lit(b, ",\"ordered_by\":{\"identity\":");
    if (d->created_by.len > 0)
        hfd_buf_json_str(b, d->created_by);
    else
        hfd_buf_lit(b, "null");
    add_time(b, "time", d->item.created_us);
    add_text(b, "changed_by", d->updated_by);
    add_text(b, "app", d->app);
    add_text(b, "env", d->env);
    hfd_buf_addc(b, '}');
}

static void add_condition(struct hfd_buf *b, const struct hfd_condition *c)
{
    hfd_buf_member_str(b, "{\"type\":", c->type);
    add_text(b, "status", hfd_slice_of(hfd_status_name(c->status)));
    add_text(b, "reason", c->reason);
    add_text(b, "message", c->message);
    add_time(b, "last_updated_time", c->last_updated_us);
    add_time(b, "last_transition_time", c->last_transition_us);
    hfd_buf_addc(b, '}');
}

static void add_part(struct hfd_buf *b, const struct hfd_part *p)
{
    hfd_buf_addf(b, "{\"kind\":\"%s\"", hfd_kind_word(p->view.kind));
    add_text(b, "id", p->view.id);
    add_text(b, "name", p->view.name);
    add_name(b, "href");
    if (p->view.exists && p->view.id.len > 0) {
        hfd_buf_addc(b, '"');
        hfd_fleet_href(b, &p->fleet);
        hfd_buf_addc(b, '"');
    } else {
        hfd_buf_lit(b, "null");
    }
    add_bool(b, "exists", p->view.exists);
    add_bool(b, "deleting", p->view.deleting);
    add_bool(b, "leaving", p->view.leaving);
    add_number(b, "generation", p->view.generation);
    add_number(b, "wanted_generation", p->view.wanted_generation);
    hfd_buf_lit(b, ",\"conditions\":[");
    for (size_t i = 0; i < p->view.conditions.count; i++) {
        hfd_buf_comma(b, i);
        add_condition(b, &p->view.conditions.items[i]);
    }
    hfd_buf_lit(b, "]}");
}

static void add_adapter(struct hfd_buf *b, const struct hfd_detail_adapter *a)
{
    hfd_buf_member_str(b, "{\"adapter\":", a->name);
    add_text(b, "kind", hfd_slice_of(hfd_kind_word(a->part->view.kind)));
    add_text(b, "part", a->part->view.name);
    add_bool(b, "required", a->required);
    add_bool(b, "done", a->done);
    add_text(b, "status", hfd_slice_of(a->reported ? hfd_status_name(a->status) : ""));
    add_text(b, "reason", a->reason);
    add_text(b, "message", a->message);
    add_number_if(b, "observed_generation", a->reported, a->generation);
    add_time(b, "last_report_time", a->reported_us);
    add_time(b, "since", a->since_us);
    add_duration(b, "took_seconds", a->took_us);
    add_duration(b, "usual_seconds", a->usual_us);
    hfd_buf_addc(b, '}');
}

static void add_health(struct hfd_buf *b, const struct hfd_detail *d)
{
    hfd_buf_lit(b, ",\"pacemaker\":[");
    for (size_t i = 0; i < d->health_count; i++) {
        hfd_buf_add(b, i > 0 ? HFD_SLICE(",{\"adapter\":") : HFD_SLICE("{\"adapter\":"));
        hfd_buf_json_str(b, d->health[i].adapter);
        add_name(b, "document");
        hfd_health_format(b, &d->health[i].view);
        hfd_buf_addc(b, '}');
    }
    hfd_buf_addc(b, ']');
}

static void detail_format(struct hfd_buf *b, const struct hfd_detail *d)
{
    hfd_buf_addc(b, '{');
    add_item(b, &d->item);
    add_time(b, "created_time", d->item.created_us);
    add_time(b, "started_time", d->item.started_us);
    add_time(b, "first_estimate", d->first_estimate_us);
    add_text(b, "incarnation", d->incarnation);
    add_name(b, "instance");
    if (d->instance != 0)
        hfd_buf_addf(b, "\"%lld\"", (long long)d->instance);
    else
        hfd_buf_lit(b, "null");
    add_bool(b, "protected", d->protected_by.len > 0);
    add_json(b, "input", d->is_there ? d->input : HFD_SLICE("null"));
    add_json(b, "drift", d->item.drift_count > 0 ? d->item.drift : HFD_SLICE("[]"));
    add_order(b, d);
    hfd_buf_lit(b, ",\"parts\":[");
    for (size_t i = 0; i < d->parts.count; i++) {
        hfd_buf_comma(b, i);
        add_part(b, &d->parts.items[i]);
    }
    hfd_buf_lit(b, "],\"adapters\":[");
    for (size_t i = 0; i < d->adapter_count; i++) {
        hfd_buf_comma(b, i);
        add_adapter(b, &d->adapters[i]);
    }
    hfd_buf_addc(b, ']');
    add_health(b, d);
    add_history(b, &d->history);
    hfd_buf_addc(b, '}');
}

#define SIZE_DEFAULT 100

/* A query that is read. */
struct reading {
    struct hfd_arena *mem;
    struct hfd_err *err;
    void *out;       /* struct hfd_overview_query or struct hfd_feed_query */
    hfd_slice after; /* of a list: read when all else is */
};

/* A parameter. */
struct param {
    const char *name;
    bool repeated;
    hfd_rc (*take)(struct reading *r, const struct param *p, hfd_slice value);
    size_t offset; /* of its member in the query */
};

static void *member_of(const struct reading *r, const struct param *p)
{
    return (char *)r->out + p->offset;
}

static hfd_rc take_size(struct reading *r, const struct param *p, hfd_slice value)
{
    int64_t size;

    if (hfd_parse_i64(value, 1, HFD_OVERVIEW_SIZE_MAX, &size, NULL) != HFD_OK)
        return hfd_fail_field(r->err, HFD_INVALID, "size",
                              "size must be an integer between 1 and %d", HFD_OVERVIEW_SIZE_MAX);
    *(size_t *)member_of(r, p) = (size_t)size;
    return HFD_OK;
}

static hfd_rc take_wait(struct reading *r, const struct param *p, hfd_slice value)
{
    return hfd_query_wait(value, member_of(r, p), r->err);
}

static hfd_rc take_text(struct reading *r, const struct param *p, hfd_slice value)
{
    *(hfd_slice *)member_of(r, p) = value;
    return HFD_OK;
}

static hfd_rc take_bool(struct reading *r, const struct param *p, hfd_slice value)
{
    if (!hfd_slice_is(value, "true") && !hfd_slice_is(value, "false"))
        return hfd_fail_field(r->err, HFD_INVALID, p->name, "%s must be true or false", p->name);
    *(bool *)member_of(r, p) = hfd_slice_is(value, "true");
    return HFD_OK;
}

/* ---- parameters of the list ---- */

static hfd_rc take_state(struct reading *r, const struct param *p, hfd_slice value)
{
    for (int s = HFD_STATE_CREATING; s < HFD_STATE_COUNT; s++)
        if (hfd_slice_is(value, hfd_state_name((enum hfd_state)s))) {
            ((struct hfd_overview_query *)r->out)->states |= 1u << s;
            return HFD_OK;
        }
    return hfd_fail_field(r->err, HFD_INVALID, p->name,
                          "state must be creating, updating, ready, failed or deleting; repeat it "
                          "for more than one");
}

static hfd_rc take_label(struct reading *r, const struct param *p, hfd_slice value)
{
    struct hfd_overview_query *q = r->out;
    const char *eq = value.len > 0 ? memchr(value.p, '=', value.len) : NULL;
    const size_t len = eq != NULL ? (size_t)(eq - value.p) : 0;

    if (len == 0)
        return hfd_fail_field(r->err, HFD_INVALID, p->name,
                              "label must be KEY=VALUE, as label=team=red");
    if (q->label_count == HFD_OVERVIEW_LABELS_MAX)
        return hfd_fail_field(r->err, HFD_INVALID, p->name, "label can be given %d times at most",
                              HFD_OVERVIEW_LABELS_MAX);
    q->labels[q->label_count++] =
        (struct hfd_overview_label){.key = {value.p, len}, .value = {eq + 1, value.len - len - 1}};
    return HFD_OK;
}

static hfd_rc take_order(struct reading *r, const struct param *p, hfd_slice value)
{
    for (int o = 0; o < HFD_ORDERS; o++)
        if (hfd_slice_is(value, hfd_overview_order_name((enum hfd_overview_order)o))) {
            ((struct hfd_overview_query *)r->out)->order = (enum hfd_overview_order)o;
            return HFD_OK;
        }
    return hfd_fail_field(r->err, HFD_INVALID, p->name, "order must be trouble, created or name");
}

static hfd_rc take_list_after(struct reading *r, const struct param *p, hfd_slice value)
{
    (void)p;
    r->after = value;
    return HFD_OK;
}

#define AT(member) offsetof(struct hfd_overview_query, member)
static const struct param list_params[] = {
    {"state", true, take_state, 0},           {"type", false, take_text, AT(type)},
    {"search", false, take_text, AT(search)}, {"label", true, take_label, 0},
    {"stuck", false, take_bool, AT(stuck)},   {"degraded", false, take_bool, AT(degraded)},
    {"drift", false, take_bool, AT(drifted)}, {"who", false, take_text, AT(who)},
    {"reason", false, take_text, AT(reason)}, {"order", false, take_order, 0},
    {"size", false, take_size, AT(size)},     {"after", false, take_list_after, 0},
};
#undef AT

/* ---- parameters of the feed ---- */

static hfd_rc take_feed_after(struct reading *r, const struct param *p, hfd_slice value)
{
    if (hfd_parse_i64(value, 0, INT64_MAX, member_of(r, p), NULL) != HFD_OK)
        return hfd_fail_field(r->err, HFD_INVALID, p->name,
                              "after must be `next` of an earlier answer; leave it out to begin "
                              "with the oldest event");
    return HFD_OK;
}

static const struct param feed_params[] = {
    {"size", false, take_size, offsetof(struct hfd_feed_query, size)},
    {"after", false, take_feed_after, offsetof(struct hfd_feed_query, after)},
    {"wait", false, take_wait, offsetof(struct hfd_feed_query, wait_us)},
};

/* ---- parameters ---- */

/* The parameters that a path has. */
struct params {
    const struct param *items;
    size_t count;
    const char *names; /* for the message */
};

static hfd_rc fail_unknown(hfd_slice name, const struct params *known, struct hfd_err *err)
{
    char field[64];

    (void)snprintf(field, sizeof(field), "%.*s", HFD_SLICE_FMT(name));
    return hfd_fail_field(err, HFD_INVALID, field, "%s is no parameter here; %s", field,
                          known->names);
}

static hfd_rc take_one(struct reading *r, const struct params *known, unsigned *seen,
                       const struct hfd_query_param *given)
{
    for (size_t i = 0; i < known->count; i++) {
        const struct param *p = &known->items[i];

        if (!hfd_slice_is(given->name, p->name))
            continue;
        if (!p->repeated && (*seen & 1u << i) != 0)
            return hfd_fail_field(r->err, HFD_INVALID, p->name, "%s is given twice", p->name);
        *seen |= 1u << i;
        return p->take(r, p, given->value);
    }
    return fail_unknown(given->name, known, r->err);
}

static hfd_rc read_all(struct reading *r, hfd_slice rest, const struct params *known)
{
    struct hfd_query_param given;
    unsigned seen = 0;
    hfd_rc rc;

    do {
        rc = hfd_query_next(&rest, r->mem, &given, r->err);
        if (rc == HFD_OK)
            rc = take_one(r, known, &seen, &given);
    } while (rc == HFD_OK);
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

hfd_rc hfd_overview_query_read(hfd_slice query, struct hfd_arena *mem,
                               struct hfd_overview_query *out, struct hfd_err *err)
{
    static const struct params known = {list_params, sizeof(list_params) / sizeof(list_params[0]),
                                        "it takes state, type, search, label, stuck, degraded, "
                                        "drift, who, reason, order, size and after"};
    struct reading r = {.mem = mem, .err = err, .out = out};
    hfd_rc rc;

    *out = (struct hfd_overview_query){.size = SIZE_DEFAULT};
    rc = read_all(&r, query, &known);
    return rc == HFD_OK && r.after.p != NULL ? hfd_overview_go_on(r.after, out, err) : rc;
}

hfd_rc hfd_feed_query_read(hfd_slice query, struct hfd_arena *mem, struct hfd_feed_query *out,
                           struct hfd_err *err)
{
    static const struct params known = {feed_params, sizeof(feed_params) / sizeof(feed_params[0]),
                                        "it takes after, size and wait"};
    struct reading r = {.mem = mem, .err = err, .out = out};

    *out = (struct hfd_feed_query){.size = SIZE_DEFAULT, .before = INT64_MAX};
    return read_all(&r, query, &known);
}

static hfd_rc no_query_read(hfd_slice query, struct hfd_arena *mem, struct hfd_err *err)
{
    static const struct params known = {NULL, 0, "it takes none"};
    struct reading r = {.mem = mem, .err = err};

    return read_all(&r, query, &known);
}

/* Decides nothing. */

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
    struct hfd_hold hold; /* of the feed, with after.wait_us */
    bool is_held;
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
    overview_format(&b, &cmd->page, next);
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
    detail_format(&b, &cmd->detail);
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
    rc = no_query_read(hfd_exchange_request(x)->query, cmd->mem, &err);
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

static void on_events(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err);

static void read_events(struct hfd_exchange *x, void *arg)
{
    struct command *cmd = arg;

    cmd->mem = cmd->is_held ? &cmd->hold.mem : cmd->mem;
    cmd->now_us = hfd_clock_wall_us(hfd_exchange_app(x)->clock);
    hfd_exchange_view_short(x, txn_events, cmd, on_events);
}

/* Holds an empty answer. @return false: it is given now */
static bool hold_events(struct hfd_exchange *x, struct command *cmd)
{
    struct hfd_err err;

    if (cmd->feed.count > 0 || !cmd->feed.complete || cmd->after.wait_us == 0 ||
        hfd_exchange_request(x)->method == HFD_METHOD_HEAD)
        return false;
    if (cmd->is_held)
        return hfd_hold_on(&cmd->hold);
    cmd->is_held = true;
    cmd->hold = (struct hfd_hold){.wait_us = cmd->after.wait_us, .again = read_events, .arg = cmd};
    if (!hfd_hold_begin(&cmd->hold, x))
        hfd_exchange_fail(x, hfd_fail(&err, HFD_BUSY, "events.watchers_max callers watch"), &err);
    return true;
}

static void on_events(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    struct command *cmd = arg;
    struct hfd_reply reply = {.status = 200};
    struct hfd_err own;
    struct hfd_buf b;

    if (rc != HFD_OK) {
        hfd_exchange_fail(x, rc, err);
        return;
    }
    if (hold_events(x, cmd))
        return;
    begin_answer(x, &b);
    feed_format(&b, &cmd->feed);
    rc = hfd_etag_make(&(hfd_slice){b.p, b.len}, 1, cmd->mem, &reply.etag, &own);
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
        read_events(x, cmd);
}

/* ---- what is wrong ---- */

void hfd_overview_api_problems(struct hfd_exchange *x)
{
    struct hfd_reply reply = {.status = 200};
    struct hfd_trouble problems[HFD_TROUBLES_MAX];
    const size_t count = hfd_troubles_copy(problems);
    struct hfd_buf b;

    begin_answer(x, &b);
    hfd_buf_addf(&b, "{\"status\":\"%s\",\"items\":",
                 hfd_troubles_degrade(problems, count) ? "degraded" : "ok");
    hfd_troubles_json(problems, count, &b);
    hfd_buf_addc(&b, '}');
    hfd_api_send(x, &reply, "application/json", &b);
}
