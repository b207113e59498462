/* See fleet_api.h. */
#include "driver/adapters/hypershift/fleet_api.h"

#include "driver/adapters/hypershift/fleet.h"
#include "driver/backend/remote/http.h"
#include "driver/backend/remote/wire.h"
#include "driver/base/check.h"
#include "driver/base/foreign.h"
#include "driver/base/log.h"
#include "driver/base/peer.h"
#include "driver/base/rng.h"
#include "driver/base/secret.h"
#include "driver/kube/refusal.h"
#include "store/rows_fleet.h"

#include <stdatomic.h>
#include <stdlib.h>

/* ---- fleet api http ---- */

/* Requests of fleet_api.h, and what their answers mean. Thread: the adapter's. */

/* The answer to a request. */
struct hfd_hs_answer {
    int status;
    json_t *doc;                    /* of a good answer to GET; gives; NULL = none */
    char cursor[HFD_HS_CURSOR_MAX]; /* of its header Events-Cursor, or empty */
};

#define WAIT_US HFD_US_PER_S

static int64_t mono_us(const struct hfd_hs_fleet_api *api)
{
    return hfd_clock_mono_us(api->config.http.clock);
}

/* The end of the pause after failures in a row. */
static int64_t pause_end_us(const struct hfd_hs_fleet_api *api, int failures,
                            int64_t retry_after_us)
{
    int64_t pause_us;
    uint32_t random;

    hfd_rng_bytes(api->config.rng, &random, sizeof(random));
    pause_us = hfd_kube_backoff_us(&api->config.pauses, failures, random);
    return mono_us(api) + (retry_after_us > pause_us ? retry_after_us : pause_us);
}

/* No request until the pause is over: all would fail alike. */
static hfd_rc close_api(struct hfd_hs_fleet_api *api, int64_t retry_after_us, struct hfd_err *err)
{
    api->closed_until_us = pause_end_us(api, ++api->failures, retry_after_us);
    return hfd_fail(err, HFD_IO, "%s", api->why);
}

static void on_done(struct hfd_remote_call *call)
{
    *(bool *)call->arg = true;
}

/* ---- what an answer means ---- */

/* Says what is wrong with an answer that is not good. */
static void say(struct hfd_hs_fleet_api *api, const struct hfd_remote_answer *a,
                enum hfd_remote_verdict verdict, const struct hfd_wire_problem *problem)
{
    const char *between = problem->words.len > 0 ? ": " : "";
    const char *hint = "";

    if (!a->arrived) {
        (void)snprintf(api->why, sizeof(api->why), "HyperFleet gave no answer: %s",
                       a->failure != NULL ? a->failure : "unknown");
        return;
    }
    if (verdict == HFD_ON_FOREIGN) {
        hfd_peer_describe(
            &(struct hfd_peer_foreign){"HyperFleet's", a->status, a->type, a->body.len == 0},
            api->why, sizeof(api->why));
        return;
    }
    if (a->status == 401)
        hint = " (the token is missing or not valid: check remote.token_file)";
    else if (a->status == 403)
        hint = " (the token may not read clusters and report on them: it needs the scope adapter)";
    else if (verdict == HFD_ON_WRONG)
        hint = " (there is no HyperFleet API at this URL)";
    else if (a->status >= 200 && a->status <= 299)
        hint = " with a document that cannot be read";
    (void)snprintf(api->why, sizeof(api->why), "HyperFleet answered %d%s%s%.*s", a->status, hint,
                   between, HFD_SLICE_FMT(problem->words));
    hfd_foreign_drop_halves(api->why);
}

static bool is_good(int status)
{
    return status >= 200 && status <= 299;
}

/* Copies a cursor. One that is no word of a query, or too long, is none. */
static void take_cursor(hfd_slice text, char out[HFD_HS_CURSOR_MAX])
{
    const bool good = text.len < HFD_HS_CURSOR_MAX && hfd_wire_id_ok(text);

    (void)snprintf(out, HFD_HS_CURSOR_MAX, "%.*s", good ? (int)text.len : 0, good ? text.p : "");
}

/* Takes a good answer. A report's answer is not read: 204 has none. */
static hfd_rc take_good(const struct hfd_remote_request *r, const struct hfd_remote_answer *a,
                        struct hfd_hs_answer *out, struct hfd_err *err)
{
    if (r->method != HFD_REMOTE_GET)
        return a->is_json || a->body.len == 0 ? HFD_OK : HFD_MALFORMED;
    return a->is_json ? hfd_json_parse(a->body, &out->doc, err) : HFD_MALFORMED;
}

/* Ends an exchange whose answer is not good. */
static hfd_rc refuse(struct hfd_hs_fleet_api *api, const struct hfd_remote_call *call,
                     const struct hfd_wire_problem *problem, struct hfd_err *err)
{
    const enum hfd_remote_verdict verdict =
        hfd_remote_verdict_of(call->request.method, &call->answer, problem);

    say(api, &call->answer, verdict, problem);
    switch (verdict) {
    case HFD_ON_MISSING:
        return hfd_fail(err, HFD_NOT_FOUND, "%s", api->why);
    case HFD_ON_INVALID:
    case HFD_ON_TAKEN:
    case HFD_ON_LEAVING:
    case HFD_ON_UNABLE:
        return hfd_fail(err, HFD_INVALID, "%s", api->why);
    case HFD_ON_WELL:
    case HFD_ON_LATER:
    case HFD_ON_FOREIGN:
    case HFD_ON_WRONG:
    case HFD_ON_REFUSED:
        break;
    }
    return close_api(api, call->answer.retry_after_us, err);
}

static hfd_rc take_answer(struct hfd_hs_fleet_api *api, const struct hfd_remote_call *call,
                          struct hfd_arena *mem, struct hfd_hs_answer *out, struct hfd_err *err)
{
    const struct hfd_remote_answer *a = &call->answer;
    struct hfd_wire_problem problem = {.no_route = false};
    hfd_rc rc = HFD_OK;

    out->status = a->status;
    take_cursor(hfd_http_header(&call->http_answer, "Events-Cursor"), out->cursor);
    if (a->arrived && is_good(a->status)) {
        rc = take_good(&call->request, a, out, err);
        if (rc == HFD_OK || rc == HFD_NOMEM)
            return rc;
    } else if (a->arrived && a->is_json) {
        rc = hfd_wire_problem_read(a->body, mem, &problem, err);
        if (rc != HFD_OK)
            return rc;
    }
    return refuse(api, call, &problem, err);
}

/*
 * Sends a request and waits for its answer.
 * @param mem  for the words of a refusal
 * @return HFD_OK, HFD_NOT_FOUND, HFD_INVALID (it refuses what was sent), HFD_IO (all else, with
 * words), HFD_BUSY (stopping), HFD_NOMEM
 */
static hfd_rc hs_api_exchange(struct hfd_hs_fleet_api *api,
                              const struct hfd_remote_request *request, struct hfd_arena *mem,
                              struct hfd_hs_answer *out, struct hfd_err *err)
{
    bool done = false;
    struct hfd_remote_call call = {.request = *request, .done = on_done, .arg = &done};
    hfd_rc rc;

    HFD_CHECK_OBJ(api, HFD_HS_FLEET_API_MAGIC);
    *out = (struct hfd_hs_answer){.status = 0};
    if (request->path.p == NULL)
        return hfd_fail_nomem(err, "make a request to HyperFleet");
    if (mono_us(api) < api->closed_until_us)
        return hfd_fail(err, HFD_IO, "%s", api->why);
    rc = hfd_remote_http_send(api->http, &call, err);
    while (rc == HFD_OK && !done && !atomic_load(&api->stopped))
        hfd_remote_http_run(api->http, WAIT_US);
    if (rc == HFD_OK && !done)
        rc = hfd_fail(err, HFD_BUSY, "the adapter is stopping");
    if (rc == HFD_OK)
        rc = take_answer(api, &call, mem, out, err);
    if (rc == HFD_OK)
        api->failures = 0;
    hfd_remote_call_fini(&call);
    return rc;
}

/* The path of a resource with something behind it. p is NULL if memory is short. */
static hfd_slice hs_api_path(const struct hfd_fleet_row *row, const char *rest,
                             struct hfd_arena *mem)
{
    if (row->kind == HFD_KIND_CLUSTER)
        return hfd_arena_printf(mem, "/clusters/%.*s%s", HFD_SLICE_FMT(row->id), rest);
    return hfd_arena_printf(mem, "/clusters/%.*s/nodepools/%.*s%s", HFD_SLICE_FMT(row->owner_id),
                            HFD_SLICE_FMT(row->id), rest);
}

/* ---- fleet api send ---- */

/* Reports of fleet_api.h, and the secrets in them. Thread: the adapter's. */

#define BODY_MAX_BYTES ((size_t)8 << 20)
/*
 * A report on a resource that is not ready is repeated after this time. A remote driver may count
 * only reports that came after its operation began.
 */
#define REPEAT_US (60 * HFD_US_PER_S)

/* ---- secrets that were sent ---- */

static struct hfd_hs_sent **place_of(struct hfd_hs_fleet_api *api, hfd_slice id)
{
    struct hfd_hs_sent **at = &api->sent;

    while (*at != NULL && !hfd_slice_is(id, (*at)->id))
        at = &(*at)->next;
    return at;
}

/* The secrets that were sent of a cluster, or empty. Borrowed until the next report. */
static hfd_slice hs_api_sent(const struct hfd_hs_fleet_api *api, hfd_slice id)
{
    for (const struct hfd_hs_sent *s = api->sent; s != NULL; s = s->next)
        if (hfd_slice_is(id, s->id))
            return (hfd_slice){(const char *)s->text.p, s->text.len};
    return HFD_SLICE("");
}

/* Forgets them. */
static void hs_api_forget(struct hfd_hs_fleet_api *api, hfd_slice id)
{
    struct hfd_hs_sent **at = place_of(api, id), *gone = *at;

    if (gone == NULL)
        return;
    *at = gone->next;
    hfd_secret_fini(&gone->text);
    free(gone);
}

/* Without memory they are sent again after the next visit that reads them. */
static void keep(struct hfd_hs_fleet_api *api, hfd_slice id, hfd_slice text)
{
    struct hfd_hs_sent *s;

    if (text.len == 0 || id.len > HFD_HS_ID_MAX || hfd_slice_eq(hs_api_sent(api, id), text))
        return;
    s = calloc(1, sizeof(*s));
    if (s == NULL || hfd_secret_init(&s->text, text.len, NULL) != HFD_OK) {
        free(s);
        return;
    }
    memcpy(s->text.p, text.p, text.len);
    memcpy(s->id, id.p, id.len);
    hs_api_forget(api, id);
    s->next = api->sent;
    api->sent = s;
}

/* ---- one report ---- */

/* A report under way. */
struct sending {
    struct hfd_hs_fleet_api *api;
    struct hfd_hs_work *w;
    const struct hfd_hs_report *report;
    struct hfd_condition items[HFD_HS_CONDITIONS_MAX];
    struct hfd_conditions conditions; /* of items */
    hfd_slice secrets;                /* plain; empty = none are sent */
    json_t *data;                     /* without secrets */
};

/* The time by the clocks of others, as far as this machine knows it. */
static int64_t wall_now_us(const struct sending *s)
{
    return s->w->now_us + hfd_clock_skew_us(s->w->server->clock);
}

static bool same_condition(const struct hfd_condition *a, const struct hfd_condition *b)
{
    return b != NULL && a->status == b->status && hfd_slice_eq(a->reason, b->reason) &&
           hfd_slice_eq(a->message, b->message);
}

static bool same_conditions(const struct sending *s, const struct hfd_report_row *prev)
{
    struct hfd_conditions is;

    if (hfd_conditions_parse(prev->conditions, s->w->mem, &is, NULL) != HFD_OK ||
        is.count != s->conditions.count)
        return false;
    for (size_t i = 0; i < is.count; i++)
        if (!same_condition(&s->conditions.items[i],
                            hfd_condition_find(&is, s->conditions.items[i].type)))
            return false;
    return true;
}

static bool same_data(const struct sending *s, const struct hfd_report_row *prev)
{
    json_t *is = NULL;
    bool same;

    if (hfd_json_parse(prev->data.len > 0 ? prev->data : HFD_SLICE("{}"), &is, NULL) != HFD_OK)
        return false;
    same = (json_object_get(is, "secrets") != NULL) == (s->secrets.len > 0);
    (void)json_object_del(is, "secrets");
    same = same && json_equal(is, s->data) != 0;
    json_decref(is);
    return same;
}

/* True if the API has a report that says the same, and may be content with it. */
static bool is_known(const struct sending *s)
{
    const struct hfd_report_row *prev = hfd_hs_report_previous(s->w, s->report);

    return prev->adapter.len > 0 && prev->observed_generation == s->report->generation &&
           (s->w->row.ready || wall_now_us(s) - prev->observed_us < REPEAT_US) &&
           hfd_slice_eq(s->secrets, strcmp(s->report->adapter, HFD_HS_ADAPTER) == 0
                                        ? s->w->prev_secrets
                                        : HFD_SLICE("")) &&
           same_conditions(s, prev) && same_data(s, prev);
}

/*
 * True if the API has secrets that this process has not read yet. A report without them would take
 * them away.
 */
static bool must_wait_for_secrets(const struct sending *s)
{
    return s->api->config.send_secrets && s->w->row.deleted_us == 0 && s->secrets.len == 0 &&
           strcmp(s->report->adapter, HFD_HS_ADAPTER) == 0 &&
           json_object_get(s->w->prev_data, "secrets") != NULL;
}

/* The data as it is sent. @return gives; NULL = out of memory */
static json_t *whole_data(const struct sending *s)
{
    json_t *data = hfd_json_deep_copy(s->data), *secrets = NULL;

    if (data == NULL || s->secrets.len == 0)
        return data;
    if (hfd_json_parse(s->secrets, &secrets, NULL) == HFD_OK &&
        json_object_set_new(data, "secrets", secrets) == 0)
        return data;
    json_decref(data);
    return NULL;
}

static hfd_rc make_body(const struct sending *s, struct hfd_buf *b, struct hfd_err *err)
{
    const struct hfd_report_row *prev = hfd_hs_report_previous(s->w, s->report);
    const int64_t floor_us = prev->adapter.len > 0 ? prev->observed_us : 0;
    json_t *data = whole_data(s);
    hfd_slice text;

    if (data == NULL)
        return hfd_fail_nomem(err, "make a report");
    hfd_buf_addf(b, "{\"adapter\":\"%s\",\"observed_generation\":%lld,\"observed_time\":",
                 s->report->adapter, (long long)s->report->generation);
    hfd_buf_json_time(b, wall_now_us(s) > floor_us ? wall_now_us(s) : floor_us);
    hfd_buf_lit(b, ",\"conditions\":");
    hfd_conditions_format(b, &s->conditions, true);
    hfd_buf_lit(b, ",\"data\":");
    hfd_json_dump(b, data);
    hfd_buf_addc(b, '}');
    json_decref(data);
    return hfd_buf_finish(b, &text, err);
}

static hfd_rc post(const struct sending *s, struct hfd_err *err)
{
    struct hfd_remote_request request = {.method = HFD_REMOTE_POST,
                                         .path = hs_api_path(&s->w->row, "/statuses", s->w->mem)};
    struct hfd_hs_answer answer = {.status = 0};
    struct hfd_buf body;
    hfd_rc rc;

    hfd_buf_init(&body, BODY_MAX_BYTES);
    rc = make_body(s, &body, err);
    request.body = hfd_buf_slice(&body);
    if (rc == HFD_OK)
        rc = hs_api_exchange(s->api, &request, s->w->mem, &answer, err);
    if (body.p != NULL)
        explicit_bzero(body.p, body.cap);
    hfd_buf_fini(&body);
    if (rc == HFD_OK && answer.status == 204)
        HFD_LOG(HFD_LOG_DEBUG, "HyperShift adapter: HyperFleet discarded a report",
                HFD_LOG_STR("id", s->w->row.id), HFD_LOG_CSTR("adapter", s->report->adapter));
    if (rc == HFD_OK && answer.status != 204)
        keep(s->api, s->w->row.id, s->secrets);
    return rc == HFD_NOT_FOUND ? HFD_OK : rc; /* removed meanwhile */
}

static hfd_rc send_one(struct sending *s, struct hfd_err *err)
{
    const struct hfd_hs_report *r = s->report;
    hfd_rc rc = hfd_json_parse(r->data.text, &s->data, err);

    if (rc != HFD_OK)
        return rc;
    (void)json_object_del(s->data, "secrets");
    s->conditions = (struct hfd_conditions){s->items, hfd_hs_report_conditions(s->w, r, s->items)};
    s->secrets = s->api->config.send_secrets ? r->data.secrets : HFD_SLICE("");
    if (!is_known(s) && !must_wait_for_secrets(s))
        rc = post(s, err);
    json_decref(s->data);
    return rc;
}

/* Posts what the API does not have. See hfd_hs_fleet_ops.send. */
static hfd_rc hs_api_send(void *arg, struct hfd_hs_work *w, const struct hfd_hs_reports *reports,
                          struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < reports->count; i++) {
        struct sending s = {.api = arg, .w = w, .report = &reports->items[i]};

        rc = send_one(&s, err);
    }
    return rc;
}

/* ---- fleet api ---- */

#define PAGE_SIZE 100
#define PAGES_MAX 10000
#define MEM_BYTES ((size_t)64 << 20)
#define ROW_FRESH_US HFD_US_PER_S /* a row is read again before a step if it is older */

/* ---- lists ---- */

/* A list, page by page. */
struct list {
    struct hfd_hs_fleet_api *api;
    hfd_slice path; /* "/clusters" */
    const char *search;
    hfd_rc (*on_item)(void *ctx, json_t *item, struct hfd_arena *mem, struct hfd_err *err);
    void *ctx;
    char *cursor; /* that of the first page is copied there; NULL = not needed */
};

static hfd_slice page_path(const struct list *l, int page, struct hfd_arena *mem)
{
    return hfd_arena_printf(mem,
                            "%.*s?page=%d&size=%d&pageSize=%d&orderBy=created_time%%20asc&order="
                            "created_time%%20asc%s",
                            HFD_SLICE_FMT(l->path), page, PAGE_SIZE, PAGE_SIZE, l->search);
}

/* Reads one page. @param more  whether another follows */
static hfd_rc read_page(const struct list *l, int page, bool *more, struct hfd_err *err)
{
    struct hfd_remote_request request = {.method = HFD_REMOTE_GET};
    struct hfd_wire_page items = {.count = 0};
    struct hfd_hs_answer answer;
    struct hfd_arena mem;
    hfd_rc rc;

    hfd_arena_init(&mem, MEM_BYTES);
    request.path = page_path(l, page, &mem);
    rc = hs_api_exchange(l->api, &request, &mem, &answer, err);
    if (page == 1 && l->cursor != NULL)
        memcpy(l->cursor, answer.cursor, HFD_HS_CURSOR_MAX);
    if (rc == HFD_OK)
        rc = hfd_wire_page_read(answer.doc, &items, err);
    for (size_t i = 0; rc == HFD_OK && i < items.count; i++)
        rc = l->on_item(l->ctx, json_array_get(items.items, i), &mem, err);
    *more = rc == HFD_OK && items.count == PAGE_SIZE && page < PAGES_MAX;
    json_decref(answer.doc);
    hfd_arena_fini(&mem);
    return rc;
}

static hfd_rc read_list(const struct list *l, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;
    bool more = true;

    for (int page = 1; rc == HFD_OK && more; page++)
        rc = read_page(l, page, &more, err);
    return rc;
}

/* ---- which resources there are ---- */

struct scanning {
    struct hfd_hs_fleet_api *api;
    const struct hfd_news_look *want;
    enum hfd_kind kind;
};

static void row_of(const struct hfd_wire_resource *doc, enum hfd_kind kind,
                   struct hfd_fleet_row *row)
{
    *row = (struct hfd_fleet_row){
        .id = doc->id,
        .kind = kind,
        .owner_id = doc->owner_id,
        .name = doc->name,
        .generation = doc->generation,
        .spec = doc->spec,
        .labels = doc->labels,
        .ready = doc->ready,
        .created_us = doc->created_us,
        .deleted_us = doc->deleted_us,
    };
}

/* A document that cannot be read is left out: it must not stop the others. */
static hfd_rc scan_item(void *ctx, json_t *item, struct hfd_arena *mem, struct hfd_err *err)
{
    struct scanning *s = ctx;
    struct hfd_wire_resource doc;
    struct hfd_fleet_row row;
    const hfd_rc rc = hfd_wire_resource_read(item, s->kind, mem, &doc, err);

    if (rc != HFD_OK)
        return rc == HFD_NOMEM ? rc : HFD_OK;
    s->api->knows_names = true;
    s->api->later_names = doc.later_names;
    row_of(&doc, s->kind, &row);
    if (s->kind == HFD_KIND_NODEPOOL && row.owner_id.len == 0)
        return HFD_OK; /* it has no path */
    return s->want->on_row(s->want->ctx, &row, false) ? HFD_OK : HFD_BUSY;
}

/* Until a cluster was seen, the name of the condition to search for is unknown. */
static const char *search_of(const struct hfd_hs_fleet_api *api, bool all)
{
    if (all || !api->knows_names)
        return "";
    return api->later_names ? "&search=status.conditions.Reconciled%3D%27False%27"
                            : "&search=status.conditions.Ready%3D%27False%27";
}

/* Lists what is there, or what is not ready. */
static hfd_rc list_rows(struct hfd_hs_fleet_api *api, const struct hfd_news_look *want, bool all,
                        char cursor[HFD_HS_CURSOR_MAX], struct hfd_err *err)
{
    struct scanning s = {api, want, HFD_KIND_CLUSTER};
    struct list l = {.api = api,
                     .path = HFD_SLICE("/clusters"),
                     .search = search_of(api, all),
                     .on_item = scan_item,
                     .ctx = &s,
                     .cursor = cursor};
    hfd_rc rc = read_list(&l, err);

    s.kind = HFD_KIND_NODEPOOL;
    l.path = HFD_SLICE("/nodepools");
    l.cursor = NULL;
    if (rc == HFD_OK)
        rc = read_list(&l, err);
    return rc == HFD_BUSY ? HFD_OK : rc; /* no more was wanted */
}

/* ---- the watch ---- */

#define POLL_HELD_US (30 * HFD_US_PER_S)
#define POLL_SHORT_US HFD_US_PER_S /* an answer without news that came sooner is a failure */

/* Logs the first time, and a change. */
static void note_watch(struct hfd_hs_fleet_api *api, const char *why)
{
    if (why == NULL && api->watch != HFD_HS_WATCH_ON)
        HFD_LOG(HFD_LOG_INFO, "HyperShift adapter: HyperFleet sends events");
    if (why != NULL && api->watch != HFD_HS_WATCH_OFF)
        HFD_LOG(HFD_LOG_INFO, "HyperShift adapter: HyperFleet sends no events, and is listed",
                HFD_LOG_CSTR("reason", why));
    api->watch = why == NULL ? HFD_HS_WATCH_ON : HFD_HS_WATCH_OFF;
}

/* No further poll until the pause is over. Meanwhile lists show what changed. */
static void pause_poll(struct hfd_hs_fleet_api *api, int64_t retry_after_us, const char *why)
{
    note_watch(api, why);
    api->poll_us = pause_end_us(api, ++api->poll_failures, retry_after_us);
}

/* Waits for events behind the cursor, unless it does already. */
static void begin_poll(struct hfd_hs_fleet_api *api)
{
    if (api->polling || api->cursor[0] == '\0' || api->failures > 0 || mono_us(api) < api->poll_us)
        return;
    (void)snprintf(api->poll_path, sizeof(api->poll_path), "/events?after=%s&wait=30s",
                   api->cursor);
    api->poll = (struct hfd_remote_call){.request = {.method = HFD_REMOTE_GET,
                                                     .path = hfd_slice_of(api->poll_path),
                                                     .held_us = POLL_HELD_US},
                                         .done = on_done,
                                         .arg = &api->polled};
    api->poll_us = mono_us(api);
    api->polled = false;
    api->polling = hfd_remote_http_send(api->http, &api->poll, NULL) == HFD_OK;
}

/* Hands over the resource of an event. One that cannot be read is left out. */
static void take_event(const struct hfd_news_look *want, const json_t *event)
{
    const json_t *data = json_object_get(event, "data");
    const hfd_slice kind = hfd_json_text(data, "kind");
    struct hfd_fleet_row row = {.id = hfd_json_text(data, "id"),
                                .kind = HFD_KIND_CLUSTER,
                                .generation =
                                    json_integer_value(json_object_get(data, "generation"))};

    if (hfd_slice_is(kind, hfd_kind_name(HFD_KIND_NODEPOOL))) {
        row.kind = HFD_KIND_NODEPOOL;
        row.owner_id = hfd_json_text(json_object_get(data, "owner_references"), "id");
    } else if (!hfd_slice_is(kind, hfd_kind_name(HFD_KIND_CLUSTER))) {
        return;
    }
    if (hfd_wire_id_ok(row.id) && (row.kind == HFD_KIND_CLUSTER || hfd_wire_id_ok(row.owner_id)))
        (void)want->on_row(want->ctx, &row, true);
}

/* Takes the events of a good answer. @return false: it is none */
static bool take_events(struct hfd_hs_fleet_api *api, const struct hfd_news_look *want)
{
    const bool is_short = mono_us(api) - api->poll_us < POLL_SHORT_US;
    char next[HFD_HS_CURSOR_MAX];
    struct hfd_wire_page page = {.count = 0};
    json_t *doc = NULL;

    if (!api->poll.answer.is_json || hfd_json_parse(api->poll.answer.body, &doc, NULL) != HFD_OK)
        return false;
    take_cursor(hfd_json_text(doc, "next"), next);
    if (next[0] == '\0' || hfd_wire_page_read(doc, &page, NULL) != HFD_OK) {
        json_decref(doc);
        return false;
    }
    for (size_t i = 0; i < page.count; i++)
        take_event(want, json_array_get(page.items, i));
    if (is_short && page.count == 0) {
        pause_poll(api, 0, "it did not hold its answer");
    } else {
        note_watch(api, NULL);
        api->poll_failures = 0;
        /* Repeats do not move the cursor; an API that sends them on and on is asked less. */
        api->poll_us = strcmp(next, api->cursor) == 0 ? mono_us(api) + HFD_US_PER_S : 0;
    }
    memcpy(api->cursor, next, sizeof(next));
    json_decref(doc);
    return true;
}

/* Takes the answer of the poll. */
static void end_poll(struct hfd_hs_fleet_api *api, const struct hfd_news_look *want)
{
    const struct hfd_remote_answer *a = &api->poll.answer;
    char why[sizeof(api->poll.failure)];

    api->polling = false;
    if (!a->arrived || a->status != 200 || !take_events(api, want)) {
        if (a->arrived)
            (void)snprintf(why, sizeof(why), "it answered %d", a->status);
        else
            (void)snprintf(why, sizeof(why), "%s", a->failure != NULL ? a->failure : "no answer");
        pause_poll(api, a->retry_after_us, why);
        api->lost = a->arrived && a->status == 410;
        if (api->lost || (a->arrived && a->status == 404))
            api->cursor[0] = '\0'; /* the next list of all has another, if there are events */
    }
    hfd_remote_call_fini(&api->poll);
}

static hfd_rc look(void *arg, const struct hfd_news_look *want, struct hfd_err *err)
{
    struct hfd_hs_fleet_api *api = arg;
    char cursor[HFD_HS_CURSOR_MAX];
    bool all;
    hfd_rc rc;

    hfd_remote_http_run(api->http, 0);
    if (api->polling && api->polled)
        end_poll(api, want);
    all = want->all || api->lost;
    begin_poll(api);
    if (!all && api->failures == 0 && (api->polling || mono_us(api) < api->list_due_us))
        return HFD_OK;
    rc = list_rows(api, want, all, cursor, err);
    if (rc != HFD_OK)
        return rc;
    api->list_due_us = mono_us(api) + api->config.interval_us;
    api->lost = api->lost && !all;
    if (all && api->cursor[0] == '\0') {
        memcpy(api->cursor, cursor, sizeof(cursor));
        if (cursor[0] == '\0')
            note_watch(api, "its lists have no header Events-Cursor");
    }
    return HFD_OK;
}

/* ---- one resource ---- */

/* Reads a cluster or nodepool. @param doc  its texts live in mem */
static hfd_rc read_resource(struct hfd_hs_fleet_api *api, const struct hfd_fleet_row *which,
                            struct hfd_arena *mem, struct hfd_wire_resource *doc,
                            struct hfd_err *err)
{
    const struct hfd_remote_request request = {.method = HFD_REMOTE_GET,
                                               .path = hs_api_path(which, "", mem)};
    struct hfd_hs_answer answer;
    hfd_rc rc = hs_api_exchange(api, &request, mem, &answer, err);

    if (rc == HFD_OK)
        rc = hfd_wire_resource_read(answer.doc, which->kind, mem, doc, err);
    json_decref(answer.doc);
    return rc;
}

/* The row that a record names. */
static struct hfd_fleet_row named(const struct hfd_hs_record *record, hfd_slice id)
{
    const bool pool = record->owner_id[0] != '\0';

    return (struct hfd_fleet_row){.id = id,
                                  .kind = pool ? HFD_KIND_NODEPOOL : HFD_KIND_CLUSTER,
                                  .owner_id = hfd_slice_of(record->owner_id)};
}

static hfd_rc load_cluster(struct hfd_hs_fleet_api *api, struct hfd_hs_work *w, hfd_slice *guresid,
                           struct hfd_err *err)
{
    const struct hfd_fleet_row which = {.id = w->row.owner_id, .kind = HFD_KIND_CLUSTER};
    struct hfd_wire_resource doc;
    hfd_rc rc = HFD_OK;

    w->cluster = w->row;
    w->has_cluster = true;
    if (w->row.kind == HFD_KIND_NODEPOOL) {
        rc = read_resource(api, &which, w->mem, &doc, err);
        w->has_cluster = rc == HFD_OK;
        if (rc == HFD_NOT_FOUND)
            return HFD_OK;
        if (rc != HFD_OK)
            return rc;
        row_of(&doc, HFD_KIND_CLUSTER, &w->cluster);
        if (guresid->len == 0)
            *guresid = doc.guresid;
    }
    return hfd_json_parse(w->cluster.spec, &w->cluster_spec, err);
}

static hfd_rc take_child(void *ctx, json_t *item, struct hfd_arena *mem, struct hfd_err *err)
{
    struct hfd_hs_work *w = ctx;
    struct hfd_wire_resource doc;
    const hfd_rc rc = hfd_wire_resource_read(item, HFD_KIND_NODEPOOL, mem, &doc, err);

    w->has_children = true;
    if (rc == HFD_OK && !doc.deleting && hfd_hs_pool_wants_nodes(json_object_get(item, "spec")))
        w->wants_nodes = true;
    return rc == HFD_NOMEM ? rc : HFD_OK;
}

static hfd_rc load_children(struct hfd_hs_fleet_api *api, struct hfd_hs_work *w,
                            struct hfd_err *err)
{
    const struct list l = {.api = api,
                           .path = hs_api_path(&w->row, "/nodepools", w->mem),
                           .search = "",
                           .on_item = take_child,
                           .ctx = w};

    if (w->row.kind != HFD_KIND_CLUSTER)
        return HFD_OK;
    return l.path.p != NULL ? read_list(&l, err) : hfd_fail_nomem(err, "read nodepools");
}

/* Keeps a report if it is of one of the two adapters. */
static hfd_rc take_report(void *ctx, json_t *item, struct hfd_arena *mem, struct hfd_err *err)
{
    struct hfd_hs_work *w = ctx;
    struct hfd_report_row row;
    hfd_slice secrets;
    hfd_rc rc;

    (void)mem; /* of the page: rows live as long as the work */
    rc = hfd_wire_report_read(item, w->mem, &row, &secrets, err);
    if (rc != HFD_OK)
        return rc == HFD_NOMEM ? rc : HFD_OK;
    if (hfd_slice_is(row.adapter, HFD_HS_ADAPTER))
        w->prev = row;
    else if (hfd_slice_is(row.adapter, HFD_HS_VALIDATION))
        w->prev_validation = row;
    return HFD_OK;
}

static hfd_rc load_reports(struct hfd_hs_fleet_api *api, struct hfd_hs_work *w, struct hfd_err *err)
{
    const struct list l = {.api = api,
                           .path = hs_api_path(&w->row, "/statuses", w->mem),
                           .search = "",
                           .on_item = take_report,
                           .ctx = w};
    hfd_rc rc;

    w->prev.adapter = w->prev_validation.adapter = HFD_SLICE("");
    rc = l.path.p != NULL ? read_list(&l, err) : hfd_fail_nomem(err, "read reports");
    if (rc == HFD_OK)
        rc = hfd_json_parse(w->prev.adapter.len > 0 && w->prev.data.len > 0 ? w->prev.data
                                                                            : HFD_SLICE("{}"),
                            &w->prev_data, err);
    w->prev_secrets = hs_api_sent(api, w->row.id);
    return rc == HFD_OK ? hfd_hs_read_validated(w, err) : rc;
}

static hfd_rc load(void *arg, struct hfd_hs_work *w, hfd_slice id, struct hfd_err *err)
{
    struct hfd_hs_fleet_api *api = arg;
    const struct hfd_fleet_row which = named(w->record, id);
    struct hfd_wire_resource doc;
    hfd_slice guresid;
    hfd_rc rc = read_resource(api, &which, w->mem, &doc, err);

    if (rc == HFD_NOT_FOUND)
        hs_api_forget(api, id);
    if (rc != HFD_OK)
        return rc;
    api->read_us = hfd_clock_mono_us(api->config.http.clock);
    row_of(&doc, which.kind, &w->row);
    w->row.owner_id = which.owner_id;
    guresid = doc.guresid;
    rc = load_cluster(api, w, &guresid, err);
    if (rc == HFD_OK && w->row.kind == HFD_KIND_NODEPOOL)
        rc = hfd_json_parse(w->row.spec, &w->pool_spec, err);
    if (rc == HFD_OK)
        rc = load_children(api, w, err);
    if (rc == HFD_OK)
        rc = load_reports(api, w, err);
    w->source.guresid = guresid.p != NULL ? guresid : HFD_SLICE("");
    return rc;
}

/* Rows are read again before a step, but not more than once a second. */
static bool is_current(void *arg, struct hfd_hs_work *w)
{
    struct hfd_hs_fleet_api *api = arg;
    const int64_t now_us = hfd_clock_mono_us(api->config.http.clock);
    struct hfd_wire_resource doc;

    if (now_us - api->read_us < ROW_FRESH_US)
        return true;
    if (read_resource(api, &w->row, w->mem, &doc, NULL) != HFD_OK)
        return false;
    api->read_us = hfd_clock_mono_us(api->config.http.clock);
    return doc.generation == w->row.generation && doc.deleting == (w->row.deleted_us != 0);
}

/* ---- whose API it is ---- */

hfd_rc hfd_hs_fleet_api_is_ours(struct hfd_hs_fleet_api *api, bool *ours, struct hfd_err *err)
{
    const struct hfd_remote_request request = {.method = HFD_REMOTE_GET,
                                               .path = HFD_SLICE("/openapi")};
    struct hfd_hs_answer answer;
    struct hfd_arena mem;
    const char *title;
    hfd_rc rc;

    hfd_arena_init(&mem, MEM_BYTES);
    *ours = false;
    rc = hs_api_exchange(api, &request, &mem, &answer, err);
    title = json_string_value(json_object_get(json_object_get(answer.doc, "info"), "title"));
    if (rc == HFD_OK)
        *ours = title != NULL && strcmp(title, "hyperfleet-driver") == 0;
    else if (rc == HFD_NOT_FOUND || rc == HFD_INVALID)
        rc = HFD_OK;
    json_decref(answer.doc);
    hfd_arena_fini(&mem);
    return rc;
}

/* ---- its life ---- */

hfd_rc hfd_hs_fleet_api_open(const struct hfd_hs_fleet_api_config *config,
                             struct hfd_hs_fleet_api **out, struct hfd_err *err)
{
    struct hfd_hs_fleet_api *api = calloc(1, sizeof(*api));
    hfd_rc rc;

    *out = NULL;
    if (api == NULL)
        return hfd_fail_nomem(err, "open a HyperFleet API");
    api->magic = HFD_HS_FLEET_API_MAGIC;
    api->config = *config;
    api->config.http.connections_max++; /* for the poll, beside all else */
    rc = hfd_remote_http_open(&api->config.http, &api->http, err);
    if (rc != HFD_OK) {
        free(api);
        return rc;
    }
    *out = api;
    return HFD_OK;
}

void hfd_hs_fleet_api_close(struct hfd_hs_fleet_api **out)
{
    struct hfd_hs_fleet_api *api = *out;

    *out = NULL;
    if (api == NULL)
        return;
    HFD_CHECK_OBJ(api, HFD_HS_FLEET_API_MAGIC);
    hfd_remote_call_fini(&api->poll);
    while (api->sent != NULL)
        hs_api_forget(api, hfd_slice_of(api->sent->id));
    hfd_remote_http_close(&api->http);
    api->magic = 0;
    free(api);
}

void hfd_hs_fleet_api_reload(struct hfd_hs_fleet_api *api)
{
    hfd_remote_http_reload(api->http);
}

static hfd_rc begin(void *arg, struct hfd_err *err)
{
    (void)arg; /* it was opened before */
    (void)err;
    return HFD_OK;
}

static void end(void *arg)
{
    (void)arg;
}

static void stop(void *arg)
{
    struct hfd_hs_fleet_api *api = arg;

    atomic_store(&api->stopped, true);
    hfd_remote_http_wake(api->http);
}

const struct hfd_hs_fleet_ops hfd_hs_fleet_api_ops = {
    .open = begin,
    .close = end,
    .look = look,
    .load = load,
    .is_current = is_current,
    .send = hs_api_send,
    .stop = stop,
};
