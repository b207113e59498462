/* The PacemakerCluster sub-resource at the door. See pacemaker_api.h. Decides nothing. */
#include "handlers/http/pacemaker_api.h"

#include "driver/core/transition.h"
#include "handlers/http/access.h"
#include "handlers/http/exchange.h"
#include "handlers/http/query.h"
#include "store/rows_report.h"

#define DOCUMENT_MAX_BYTES ((size_t)2 * 1024 * 1024)
#define EVENTS_MAX_BYTES ((size_t)8 * 1024 * 1024)

struct hfd_pacemaker_action {
    enum hfd_health_write what;
    int status; /* of the answer */
};

const struct hfd_pacemaker_action hfd_pacemaker_create = {HFD_HEALTH_CREATE, 201};
const struct hfd_pacemaker_action hfd_pacemaker_main = {HFD_HEALTH_MAIN, 200};
const struct hfd_pacemaker_action hfd_pacemaker_status = {HFD_HEALTH_STATUS, 200};

hfd_rc hfd_pacemaker_read_report(const struct hfd_fleet *fleet,
                                 const struct hfd_fleet_report *report, struct hfd_arena *mem,
                                 struct hfd_pacemaker_report *out, struct hfd_err *err)
{
    hfd_rc rc;

    *out = (struct hfd_pacemaker_report){
        .is = hfd_adapter_names_have(fleet->observers, report->adapter)};
    if (!out->is)
        return HFD_OK;
    rc = hfd_health_read_report(report->data, mem, &out->given, err);
    if (report->target.kind == HFD_KIND_CLUSTER)
        return rc;
    out->is = false;
    out->given.violations.count = 0;
    if (rc == HFD_NOMEM || !out->given.present)
        return rc;
    return hfd_fail_field(err, HFD_INVALID, "data." HFD_HEALTH_MEMBER,
                          "a PacemakerCluster document belongs to a cluster, not to a nodepool");
}

/* One request; lives in the exchange's memory. */
struct command {
    const struct hfd_driver *driver;
    struct hfd_fleet_call call;
    struct hfd_health_key key;
    const struct hfd_pacemaker_action *action;
    struct hfd_health_reading given;
    hfd_slice text; /* the document that was stored */
    struct hfd_health_view view;
    struct hfd_query_page page;
    struct hfd_event_list events;
};

/* The command of a request; NULL when it was answered with an error. */
static struct command *start(struct hfd_exchange *x)
{
    const struct hfd_app *app = hfd_exchange_app(x);
    const struct hfd_fleet *fleet = &app->driver->fleet;
    struct hfd_arena *mem = hfd_exchange_mem(x);
    struct command *cmd = hfd_arena_alloc(mem, sizeof(*cmd));
    struct hfd_err err;
    hfd_slice caller, id = hfd_arena_dup(mem, hfd_exchange_param(x, "cluster_id"));
    hfd_rc rc = hfd_api_caller(x, &caller, &err);

    if (rc == HFD_OK && (cmd == NULL || id.p == NULL))
        rc = hfd_fail_nomem(&err, "answer a request");
    if (rc != HFD_OK) {
        hfd_exchange_fail(x, rc, &err);
        return NULL;
    }
    *cmd = (struct command){
        .driver = app->driver,
        .call = {.fleet = fleet,
                 .now_us = hfd_clock_wall_us(app->clock),
                 .caller = caller,
                 .mem = mem},
        .key = {id, fleet->observers.count > 0 ? fleet->observers.items[0] : HFD_SLICE_NONE},
        .action = hfd_exchange_route(x)->arg,
    };
    return cmd;
}

/* As start; without an observer there is no document. */
static struct command *start_document(struct hfd_exchange *x)
{
    struct command *cmd = start(x);
    struct hfd_err err;

    if (cmd == NULL || cmd->key.adapter.p != NULL)
        return cmd;
    hfd_exchange_fail(x,
                      hfd_fail(&err, HFD_NOT_FOUND,
                               "no adapter brings PacemakerCluster documents: the setting "
                               "adapters.pacemaker is empty"),
                      &err);
    return NULL;
}

static void send_document(struct hfd_exchange *x, int status, hfd_slice text)
{
    struct hfd_reply reply = {.status = status};
    struct hfd_buf b;

    hfd_buf_init(&b, DOCUMENT_MAX_BYTES);
    hfd_buf_add(&b, text);
    hfd_api_send(x, &reply, "application/json", &b);
}

/* ---- the document ---- */

static hfd_rc txn_get(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct command *cmd = arg;

    return hfd_health_get(tx, &cmd->call, &cmd->key, &cmd->view, err);
}

static void on_got(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    struct command *cmd = arg;
    struct hfd_reply reply = {.status = 200};
    struct hfd_buf b;

    if (rc != HFD_OK) {
        hfd_exchange_fail(x, rc, err);
        return;
    }
    hfd_buf_init(&b, DOCUMENT_MAX_BYTES);
    hfd_health_format(&b, &cmd->view);
    hfd_api_send(x, &reply, "application/json", &b);
}

void hfd_pacemaker_api_get(struct hfd_exchange *x)
{
    struct command *cmd = start_document(x);

    if (cmd != NULL)
        hfd_exchange_read(x, &(struct hfd_exchange_read){txn_get, cmd, NULL, on_got});
}

static hfd_rc txn_write(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct command *cmd = arg;
    const struct hfd_health_put put = {cmd->key.cluster_id, cmd->key.adapter, cmd->action->what,
                                       &cmd->given};
    struct hfd_fleet_changes changes = {.mem = cmd->call.mem};
    hfd_rc rc;

    cmd->call.changes = &changes;
    rc = hfd_health_write(tx, &cmd->call, &put, &cmd->text, err);
    return rc == HFD_OK ? hfd_resource_observe(tx, cmd->driver, &cmd->call, err) : rc;
}

static void on_written(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    const struct command *cmd = arg;

    if (rc != HFD_OK)
        hfd_exchange_fail(x, rc, err);
    else
        send_document(x, cmd->action->status, cmd->text);
}

/* The rules do not see a status that the request does not write. */
static hfd_rc read_document(hfd_slice body, struct command *cmd, struct hfd_err *err)
{
    json_t *doc;
    hfd_rc rc = hfd_json_parse(body, &doc, err);

    if (rc != HFD_OK)
        return rc;
    if (cmd->action->what != HFD_HEALTH_STATUS)
        (void)json_object_del(doc, "status");
    rc = hfd_health_read(doc, "", cmd->call.mem, &cmd->given, err);
    json_decref(doc);
    return rc;
}

void hfd_pacemaker_api_write(struct hfd_exchange *x)
{
    struct command *cmd = start_document(x);
    struct hfd_err err;
    hfd_rc rc;

    if (cmd == NULL || !hfd_access_may_report(x, cmd->key.adapter))
        return;
    rc = read_document(hfd_exchange_request(x)->body, cmd, &err);
    if (rc != HFD_OK)
        hfd_exchange_fail_rules(x, rc, &err, &cmd->given.violations);
    else
        hfd_exchange_update(x, txn_write, cmd, on_written);
}

static hfd_rc txn_delete(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct command *cmd = arg;
    struct hfd_fleet_changes changes = {.mem = cmd->call.mem};
    hfd_rc rc;

    cmd->call.changes = &changes;
    rc = hfd_health_remove(tx, &cmd->call, &cmd->key, err);
    return rc == HFD_OK ? hfd_resource_observe(tx, cmd->driver, &cmd->call, err) : rc;
}

static void on_deleted(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    const struct hfd_reply reply = {.status = 204};

    (void)arg;
    if (rc != HFD_OK)
        hfd_exchange_fail(x, rc, err);
    else
        hfd_exchange_reply(x, &reply);
}

void hfd_pacemaker_api_delete(struct hfd_exchange *x)
{
    struct command *cmd = start_document(x);

    if (cmd != NULL && hfd_access_may_report(x, cmd->key.adapter))
        hfd_exchange_update(x, txn_delete, cmd, on_deleted);
}

/* ---- events ---- */

static hfd_rc txn_events(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct command *cmd = arg;
    const struct hfd_fleet_target target = {.kind = HFD_KIND_CLUSTER, .id = cmd->key.cluster_id};
    const struct hfd_event_query query = {cmd->key.cluster_id, cmd->page.size,
                                          (cmd->page.page - 1) * cmd->page.size};
    struct hfd_fleet_row cluster;
    hfd_rc rc = hfd_fleet_get(tx, &target, cmd->call.mem, &cluster, err);

    return rc == HFD_OK ? hfd_event_row_list(tx, &query, cmd->call.mem, &cmd->events, err) : rc;
}

static void add_event(struct hfd_buf *b, const struct hfd_event_row *event)
{
    hfd_buf_addf(b, "{\"type\":\"%s\",\"reason\":", event->warning ? "Warning" : "Normal");
    hfd_buf_json_str(b, event->reason);
    hfd_buf_member_str(b, ",\"message\":", event->message);
    hfd_buf_addf(b, ",\"count\":%lld,\"first_time\":", (long long)event->count);
    hfd_buf_json_time(b, event->first_us);
    hfd_buf_member_time(b, ",\"last_time\":", event->last_us);
    hfd_buf_addc(b, '}');
}

static void on_events(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    const struct command *cmd = arg;
    struct hfd_reply reply = {.status = 200};
    struct hfd_buf b;

    if (rc != HFD_OK) {
        hfd_exchange_fail(x, rc, err);
        return;
    }
    hfd_buf_init(&b, EVENTS_MAX_BYTES);
    hfd_buf_addf(&b,
                 "{\"kind\":\"EventList\",\"page\":%lld,\"size\":%zu,\"total\":%lld,\"items\":[",
                 (long long)cmd->page.page, cmd->events.count, (long long)cmd->events.total);
    for (size_t i = 0; i < cmd->events.count; i++) {
        hfd_buf_comma(&b, i);
        add_event(&b, &cmd->events.rows[i]);
    }
    hfd_buf_lit(&b, "]}");
    hfd_api_send(x, &reply, "application/json", &b);
}

void hfd_pacemaker_api_events(struct hfd_exchange *x)
{
    const hfd_slice query = hfd_exchange_request(x)->query;
    struct command *cmd = start(x);
    struct hfd_err err;
    hfd_rc rc;

    if (cmd == NULL)
        return;
    rc = hfd_query_page(query, cmd->call.mem, &cmd->page, &err);
    if (rc != HFD_OK)
        hfd_exchange_fail(x, rc, &err);
    else
        hfd_exchange_view_short(x, txn_events, cmd, on_events);
}
