/*
 * The table of routes: the only place that knows the paths. One row per method and pattern; rows of
 * one pattern stand together. HEAD is served wherever GET is. 405 and its Allow header follow from
 * the rows. Literal segments win over {driver}, which wins over parameters. A literal at the end
 * leaves methods that it lacks to the parameter in its place. Probes stand first and HyperFleet's
 * own API last; no other order matters. The first column is the scope that a caller needs
 * (handlers/auth/decide.h).
 *
 * Before it are the handlers of the ops listener: probes, metrics, documents, and the admin API.
 * Probes use no store job, so that their answers do not depend on its load. Metrics have a reader
 * count what is stored; without a reader they show the last counts. Thread: loop.
 */
#include "handlers/http/routes.h"

#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/base/trouble.h"
#include "driver/core/backup_note.h"
#include "driver/core/gauges.h"
#include "driver/core/overview.h"
#include "driver/fleet/fleet.h"
#include "driver/replica/keeper.h"
#include "handlers/http/driver_api.h"
#include "handlers/http/exchange.h"
#include "handlers/http/fleet_api.h"
#include "handlers/http/overview_api.h"
#include "handlers/http/pacemaker_api.h"
#include "handlers/http/query.h"
#include "handlers/http/watch_api.h"
#include "schemas/documents.h"
#include "store/backup.h"
#include "store/rows_fleet.h"

#define METRICS_MAX_BYTES (1 << 20)
#define HEALTH_MAX_BYTES (256 * 1024)
#define COUNTS_WITHIN_US HFD_US_PER_S /* on a database that may be silent */

static void reply_json(struct hfd_exchange *x, int status, hfd_slice body)
{
    hfd_exchange_reply(
        x, &(struct hfd_reply){.status = status, .content_type = "application/json", .body = body});
}

static void ops_live(struct hfd_exchange *x)
{
    reply_json(x, 200, HFD_SLICE("{\"status\":\"ok\"}"));
}

/*
 * Reports that the process runs, like livez, and what is wrong. That does not change the status
 * code, because work is still accepted.
 */
static void ops_health(struct hfd_exchange *x)
{
    const struct hfd_app *app = hfd_exchange_app(x);
    struct hfd_reply reply = {.status = 200};
    struct hfd_trouble problems[HFD_TROUBLES_MAX];
    const size_t count = hfd_troubles_copy(problems);
    struct hfd_buf b;

    hfd_buf_init(&b, HEALTH_MAX_BYTES);
    hfd_buf_addf(&b, "{\"status\":\"%s\"",
                 hfd_troubles_degrade(problems, count) ? "degraded" : "ok");
    if (app->backend_health != NULL) {
        hfd_buf_lit(&b, ",\"remote\":");
        app->backend_health(app->backend_health_ctx, &b);
    }
    if (count > 0) {
        hfd_buf_lit(&b, ",\"problems\":");
        hfd_troubles_json(problems, count, &b);
    }
    hfd_buf_addc(&b, '}');
    hfd_api_send(x, &reply, "application/json", &b);
}

static void reply_ready(struct hfd_exchange *x, const char *not_ready)
{
    struct hfd_reply reply = {.status = 503};
    struct hfd_buf b;

    if (not_ready == NULL) {
        ops_live(x);
        return;
    }
    hfd_buf_init(&b, HEALTH_MAX_BYTES);
    hfd_buf_member_str(&b, "{\"status\":\"not_ready\",\"reason\":", hfd_slice_of(not_ready));
    hfd_buf_addc(&b, '}');
    hfd_api_send(x, &reply, "application/json", &b);
}

/* Why this replica is not ready; NULL = it is. */
static const char *not_ready(const struct hfd_app *app)
{
    struct hfd_keeper_state state = {.outdated = false};

    if (app->keeper != NULL)
        hfd_keeper_state(app->keeper, &state);
    return state.outdated ? "a newer replica has other settings: restart this one with them" : NULL;
}

void hfd_ops_ready(struct hfd_exchange *x)
{
    const struct hfd_app *app = hfd_exchange_app(x);

    if (hfd_exchange_draining(x))
        reply_json(
            x, 503,
            HFD_SLICE(
                "{\"status\":\"shutting_down\",\"reason\":\"Application is shutting down\"}"));
    else if (app->not_ready != NULL)
        reply_ready(x, app->not_ready(app->not_ready_ctx));
    else if (!hfd_store_ok(app->store) || hfd_store_is_away(app->store))
        reply_json(x, 503,
                   HFD_SLICE("{\"status\":\"not_ready\",\"reason\":\"database unavailable\"}"));
    else
        reply_ready(x, not_ready(app));
}

/* ---- metrics ---- */

/* The counts of a scrape. They set the metrics themselves: the answer may not have waited. */
struct scrape {
    const struct hfd_app *app;
    struct hfd_arena *mem; /* of the exchange */
    int64_t now_us;
};

static void reply_metrics(struct hfd_exchange *x)
{
    struct hfd_reply reply = {.status = 200};
    struct hfd_buf b;

    hfd_buf_init(&b, METRICS_MAX_BYTES);
    hfd_metrics_render(&b);
    hfd_api_send(x, &reply, "text/plain; version=0.0.4", &b);
}

static hfd_rc txn_scrape(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct scrape *s = arg;
    const struct hfd_ctx c = {
        .tx = tx, .driver = s->app->driver, .now_us = s->now_us, .mem = s->mem, .err = err};
    struct hfd_gauges gauges;
    const hfd_rc rc = hfd_gauges_read(&c, s->app->settings->reconciliation_stuck_us, &gauges);

    if (rc == HFD_OK)
        hfd_gauges_set(&gauges, &s->app->driver->rules, !s->app->without_fleet);
    return rc;
}

static void on_scraped(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    (void)arg;
    if (rc != HFD_OK)
        HFD_LOG(HFD_LOG_WARN, "cannot count for /metrics; the last counts are shown",
                HFD_LOG_CSTR("code", hfd_rc_name(rc)), HFD_LOG_CSTR("reason", err->msg));
    reply_metrics(x);
}

/* The counts come with a later scrape. */
static void do_without_counts(struct hfd_exchange *x)
{
    HFD_LOG(HFD_LOG_WARN, "/metrics does not wait for the database; the last counts are shown");
    reply_metrics(x);
}

static void ops_metrics(struct hfd_exchange *x)
{
    const struct hfd_app *app = hfd_exchange_app(x);
    struct hfd_arena *mem = hfd_exchange_mem(x);
    struct scrape *s = app->driver != NULL ? hfd_arena_alloc(mem, sizeof(*s)) : NULL;

    if (s == NULL) {
        reply_metrics(x);
        return;
    }
    *s = (struct scrape){.app = app, .mem = mem, .now_us = hfd_clock_wall_us(app->clock)};
    if (hfd_store_has_point_reads(app->store))
        hfd_exchange_limit(x, COUNTS_WITHIN_US, do_without_counts);
    hfd_exchange_view_short(x, txn_scrape, s, on_scraped);
}

/* ---- the status page ---- */

static void ops_page(struct hfd_exchange *x)
{
    const struct hfd_app *app = hfd_exchange_app(x);
    struct hfd_err err;

    if (app->page != NULL)
        app->page(x);
    else
        hfd_exchange_fail(x, hfd_fail(&err, HFD_NOT_FOUND, "there is no status page here"), &err);
}

/* ---- documents ---- */

/*
 * Documents made by the build: the OpenAPI document as JSON and as pages, and the manual. They
 * never change while the program runs. Thread: loop.
 */

#define START_MAX_BYTES (64 * 1024)

/* Compares the name in the path with those of a table. Opens no file. */
static void reply_doc(struct hfd_exchange *x, const struct hfd_doc *docs, size_t count)
{
    const hfd_slice page = hfd_exchange_param(x, "page");
    const hfd_slice name = page.p != NULL ? page : HFD_SLICE("");
    struct hfd_err err;

    for (size_t i = 0; i < count; i++) {
        if (hfd_slice_is(name, docs[i].name)) {
            hfd_exchange_reply(x, &(struct hfd_reply){.status = 200,
                                                      .content_type = docs[i].type,
                                                      .body = docs[i].body,
                                                      .policy = docs[i].policy});
            return;
        }
    }
    hfd_exchange_fail(
        x, hfd_fail(&err, HFD_NOT_FOUND, "there is no such page; the start lists the pages"), &err);
}

static void docs_openapi_json(struct hfd_exchange *x)
{
    hfd_exchange_reply(x, &(struct hfd_reply){.status = 200,
                                              .content_type = "application/json",
                                              .body = hfd_openapi_text()});
}

static void docs_openapi_page(struct hfd_exchange *x)
{
    reply_doc(x, hfd_openapi_docs, hfd_openapi_docs_count);
}

static void docs_manual(struct hfd_exchange *x)
{
    reply_doc(x, hfd_manual, hfd_manual_count);
}

static void docs_no_icon(struct hfd_exchange *x)
{
    hfd_exchange_reply(x, &(struct hfd_reply){.status = 204});
}

/* ---- the start of the main listener ---- */

/* True for a browser's Accept: it has text/html, and not behind application/json. */
static bool wants_page(hfd_slice accept)
{
    const char *html = NULL, *json = NULL;

    if (accept.len > 0) {
        html = memmem(accept.p, accept.len, "text/html", strlen("text/html"));
        json = memmem(accept.p, accept.len, "application/json", strlen("application/json"));
    }
    return html != NULL && (json == NULL || html < json);
}

/* Adds where the ops listener is. A link there would be refused: this page has another origin. */
static void add_ops_address(struct hfd_buf *b, hfd_slice listen, const struct hfd_docs_place *ops)
{
    const char *colon = memrchr(listen.p, ':', listen.len);
    const hfd_slice host = {listen.p, colon != NULL ? (size_t)(colon - listen.p) : 0};

    if (hfd_slice_starts(listen, HFD_SLICE("unix:")))
        hfd_buf_lit(b, "a Unix socket");
    else if (hfd_slice_is(host, "0.0.0.0") || hfd_slice_is(host, "[::]"))
        hfd_buf_addf(b, "port %d of this machine", ops->port);
    else
        hfd_buf_addf(b, "<code>%s://%.*s:%d/</code>", ops->tls ? "https" : "http",
                     HFD_SLICE_FMT(host), ops->port);
}

bool hfd_docs_start(struct hfd_exchange *x, const struct hfd_docs_place *ops)
{
    const struct hfd_request *request = hfd_exchange_request(x);
    const hfd_slice page = hfd_start_page;
    const char *mark = memmem(page.p, page.len, HFD_START_MARK, strlen(HFD_START_MARK));
    struct hfd_reply reply = {.status = 200, .policy = hfd_openapi_docs[0].policy};
    hfd_slice accept;
    struct hfd_buf b;

    if (!hfd_slice_is(request->path, "/") || mark == NULL ||
        !(request->method == HFD_METHOD_GET || request->method == HFD_METHOD_HEAD) ||
        hfd_exchange_header(x, "accept", &accept, NULL) != HFD_OK || !wants_page(accept))
        return false;
    hfd_buf_init(&b, START_MAX_BYTES);
    hfd_buf_add(&b, (hfd_slice){page.p, (size_t)(mark - page.p)});
    add_ops_address(&b, hfd_exchange_app(x)->settings->ops_listen, ops);
    mark += strlen(HFD_START_MARK);
    hfd_buf_add(&b, (hfd_slice){mark, (size_t)(page.p + page.len - mark)});
    hfd_api_send(x, &reply, "text/html; charset=utf-8", &b);
    return true;
}

/* ---- orphans ---- */

/*
 * The admin API on the ops listener: the orphans. Turns requests into calls of driver/core and rows
 * into documents; decides nothing. Thread: loop.
 */

#define LIST_MAX_BYTES ((size_t)4 * 1024 * 1024)

/* A request and its results. Lives in the memory of the exchange. */
struct command {
    const struct hfd_driver *driver;
    struct hfd_fleet_call call;
    struct hfd_orphan_choice chosen;
    struct hfd_orphans found;
    int64_t skew_us; /* offset from the program's clock to the machine's */
    struct hfd_fleet_deletion removed;
};

/* Makes the command of a request, with copies. Returns NULL after it has answered with an error. */
static struct command *start_orphans(struct hfd_exchange *x)
{
    const struct hfd_app *app = hfd_exchange_app(x);
    struct hfd_arena *mem = hfd_exchange_mem(x);
    struct command *cmd = hfd_arena_alloc(mem, sizeof(*cmd));
    const hfd_slice id = hfd_exchange_param(x, "id");
    struct hfd_err err;
    hfd_slice caller;
    hfd_rc rc = hfd_api_caller(x, &caller, &err);

    if (rc == HFD_OK && cmd == NULL)
        rc = hfd_fail_nomem(&err, "copy a request");
    if (rc == HFD_OK) {
        *cmd = (struct command){
            .driver = app->driver,
            .call = {.fleet = &app->driver->fleet,
                     .now_us = hfd_clock_wall_us(app->clock),
                     .caller = caller,
                     .mem = mem},
            .skew_us = hfd_clock_skew_us(app->clock),
            .chosen.id = id.p != NULL ? hfd_arena_dup(mem, id) : HFD_SLICE(""),
        };
        rc = hfd_query_get(hfd_exchange_request(x)->query, "owner", mem, &cmd->chosen.owner, &err);
        if (rc == HFD_OK && cmd->chosen.id.p != NULL)
            return cmd;
        rc = rc == HFD_OK ? hfd_fail_nomem(&err, "copy a request") : rc;
    }
    hfd_exchange_fail(x, rc, &err);
    return NULL;
}

static void orphan_json(struct hfd_buf *b, const struct hfd_orphan_row *o, int64_t skew_us)
{
    const struct hfd_fleet_row row = {.kind = o->kind, .id = o->id, .owner_id = o->owner_id};

    hfd_buf_member_str(b, "{\"id\":", o->id);
    hfd_buf_addf(b, ",\"kind\":\"%s\",\"href\":\"", hfd_kind_name(o->kind));
    hfd_fleet_href(b, &row);
    hfd_buf_member_str(b, "\",\"name\":", o->name);
    hfd_buf_member_str(b, ",\"guresid\":", o->label);
    hfd_buf_addf(b, ",\"generation\":%lld,\"ready\":%s", (long long)o->generation,
                 o->ready ? "true" : "false");
    hfd_buf_member_time(b, ",\"created_time\":", o->created_us);
    hfd_buf_member_str(b, ",\"created_by\":", o->created_by);
    if (o->deleted_us != 0)
        hfd_buf_member_time(b, ",\"deleted_time\":", o->deleted_us);
    if (o->wanted_us != 0)
        hfd_buf_member_time(b, ",\"delete_asked_time\":", o->wanted_us + skew_us);
    if (o->error.len > 0)
        hfd_buf_member_str(b, ",\"message\":", o->error);
    hfd_buf_addc(b, '}');
}

static hfd_rc txn_list(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct command *cmd = arg;
    const struct hfd_ctx c = {.tx = tx, .driver = cmd->driver, .mem = cmd->call.mem, .err = err};
    const struct hfd_orphan_owner owner = {hfd_slice_of(cmd->driver->fleet.owner),
                                           cmd->chosen.owner};
    const hfd_rc rc =
        hfd_orphans_list(tx, cmd->driver->backend_ops, &owner, cmd->call.mem, &cmd->found, err);

    return rc == HFD_OK && owner.of.len == 0 ? hfd_orphans_add_objects(&c, &cmd->found) : rc;
}

static void on_listed(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    const struct command *cmd = arg;
    const struct hfd_orphans *found = &cmd->found;
    struct hfd_reply reply = {.status = 200};
    struct hfd_buf b;

    if (rc != HFD_OK) {
        hfd_exchange_fail(x, rc, err);
        return;
    }
    hfd_buf_init(&b, LIST_MAX_BYTES);
    hfd_buf_lit(&b, "{\"items\":[");
    for (size_t i = 0; i < found->list.count; i++) {
        hfd_buf_comma(&b, i);
        orphan_json(&b, &found->list.rows[i], cmd->skew_us);
    }
    hfd_buf_addf(&b, "],\"more\":%s", found->more ? "true" : "false");
    if (found->as.checked_us != 0)
        hfd_buf_member_time(&b, ",\"checked_time\":", found->as.checked_us + cmd->skew_us);
    if (found->as.error.len > 0)
        hfd_buf_member_str(&b, ",\"message\":", found->as.error);
    else if (found->as.remote && found->as.checked_us == 0)
        hfd_buf_member_str(&b, ",\"message\":",
                           HFD_SLICE("the first search of the remote HyperFleet is not complete"));
    hfd_buf_addc(&b, '}');
    hfd_api_send(x, &reply, "application/json", &b);
}

/*
 * Answers what the store has; does not wait for a remote, which is asked for a later list
 * meanwhile.
 */
static void list_orphans(struct hfd_exchange *x)
{
    struct command *cmd = start_orphans(x);

    if (cmd == NULL)
        return;
    hfd_driver_polled(cmd->driver, HFD_BACKEND_ORPHANS);
    hfd_exchange_view(x, txn_list, cmd, on_listed);
}

static hfd_rc txn_remove(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct command *cmd = arg;

    const struct hfd_ctx c = {.tx = tx,
                              .driver = cmd->driver,
                              .now_us = cmd->call.now_us,
                              .mem = cmd->call.mem,
                              .err = err};

    return hfd_orphan_remove(&c, cmd->call.caller, &cmd->chosen, &cmd->removed);
}

static void on_removed(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    const struct command *cmd = arg;
    struct hfd_reply reply = {.status = 202};
    struct hfd_buf b;

    if (rc != HFD_OK) {
        hfd_exchange_fail(x, rc, err);
        return;
    }
    HFD_LOG(HFD_LOG_WARN, "audit: orphan deleted",
            HFD_LOG_CSTR("kind", hfd_kind_name(cmd->removed.row.kind)),
            HFD_LOG_STR("id", cmd->removed.row.id), HFD_LOG_STR("name", cmd->removed.row.name),
            HFD_LOG_STR("labels", cmd->removed.row.labels), HFD_LOG_STR("by", cmd->call.caller));
    hfd_buf_init(&b, LIST_MAX_BYTES);
    hfd_buf_member_str(&b, "{\"id\":", cmd->removed.row.id);
    hfd_buf_addf(&b, ",\"removed\":%s}", cmd->removed.removed ? "true" : "false");
    hfd_api_send(x, &reply, "application/json", &b);
}

static void delete_orphan(struct hfd_exchange *x)
{
    struct command *cmd = start_orphans(x);

    if (cmd != NULL)
        hfd_exchange_update(x, txn_remove, cmd, on_removed);
}

/* ---- tokens ---- */

static void add_time(struct hfd_buf *b, const char *lead, int64_t at_us)
{
    if (at_us != 0)
        hfd_buf_member_time(b, lead, at_us);
}

static void add_token(struct hfd_buf *b, const struct hfd_guard_token *t)
{
    hfd_buf_member_str(b, "{\"name\":", t->name);
    hfd_buf_lit(b, ",\"scopes\":[");
    hfd_grant_format(b, &t->grant, true);
    hfd_buf_addc(b, ']');
    add_time(b, ",\"created_time\":", t->created_us);
    add_time(b, ",\"expires_time\":", t->expires_us);
    add_time(b, ",\"last_used_time\":", t->used_us);
    if (t->from.len > 0)
        hfd_buf_member_str(b, ",\"last_used_from\":", t->from);
    hfd_buf_addc(b, '}');
}

static void list_tokens(struct hfd_exchange *x)
{
    struct hfd_guard *guard = hfd_exchange_app(x)->guard;
    struct hfd_guard_tokens tokens = {.count = 0};
    struct hfd_reply reply = {.status = 200};
    struct hfd_err err;
    struct hfd_buf b;

    if (guard != NULL && hfd_guard_list(guard, hfd_exchange_mem(x), &tokens, &err) != HFD_OK) {
        hfd_exchange_fail(x, HFD_NOMEM, &err);
        return;
    }
    hfd_buf_init(&b, LIST_MAX_BYTES);
    hfd_buf_lit(&b, "{\"items\":[");
    for (size_t i = 0; i < tokens.count; i++) {
        hfd_buf_comma(&b, i);
        add_token(&b, &tokens.items[i]);
    }
    hfd_buf_lit(&b, "]}");
    hfd_api_send(x, &reply, "application/json", &b);
}

/* ---- replicas ---- */

/* A request and its results. Lives in the memory of the exchange. */
struct listing {
    struct hfd_arena *mem;
    int64_t now_us;
    struct hfd_replicas_seen found;
};

static void replica_json(struct hfd_buf *b, const struct hfd_replica_seen *r)
{
    hfd_buf_member_str(b, "{\"id\":", r->id);
    hfd_buf_member_str(b, ",\"name\":", r->name);
    hfd_buf_member_str(b, ",\"version\":", r->version);
    hfd_buf_addf(b, ",\"schema\":%lld,\"started_time\":", (long long)r->schema);
    hfd_buf_json_time(b, r->started_us);
    hfd_buf_member_time(b, ",\"last_seen_time\":", r->beat_us);
    hfd_buf_addf(b, ",\"live\":%s,\"leads\":%s,\"settings_epoch\":%lld,\"outdated\":%s}",
                 r->live ? "true" : "false", r->leads ? "true" : "false",
                 (long long)r->settings_epoch, r->outdated ? "true" : "false");
}

static hfd_rc txn_list_replicas(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct listing *l = arg;

    return hfd_replicas_read(tx, l->now_us, l->mem, &l->found, err);
}

static void on_replicas_listed(struct hfd_exchange *x, void *arg, hfd_rc rc,
                               const struct hfd_err *err)
{
    const struct listing *l = arg;
    struct hfd_reply reply = {.status = 200};
    struct hfd_buf b;

    if (rc != HFD_OK) {
        hfd_exchange_fail(x, rc, err);
        return;
    }
    hfd_buf_init(&b, LIST_MAX_BYTES);
    hfd_buf_lit(&b, "{\"items\":[");
    for (size_t i = 0; i < l->found.count; i++) {
        hfd_buf_comma(&b, i);
        replica_json(&b, &l->found.items[i]);
    }
    hfd_buf_lit(&b, "]}");
    hfd_api_send(x, &reply, "application/json", &b);
}

static void list_replicas(struct hfd_exchange *x)
{
    struct listing *l = hfd_arena_alloc(hfd_exchange_mem(x), sizeof(*l));
    struct hfd_err err;

    if (l == NULL) {
        hfd_exchange_fail(x, hfd_fail_nomem(&err, "list the replicas"), &err);
        return;
    }
    *l = (struct listing){.mem = hfd_exchange_mem(x),
                          .now_us = hfd_clock_wall_us(hfd_exchange_app(x)->clock)};
    hfd_exchange_view_short(x, txn_list_replicas, l, on_replicas_listed);
}

/*
 * GET /admin/backup. The copy is made in steps, each a job of a reader thread. Then it is sent in
 * pieces. At its end is the note of driver/core/backup_note.h. Thread: loop; the jobs: reader.
 */

#define STATUS_NO_ROOM 507

/* In the memory of the exchange. */
struct making {
    struct hfd_backup *backup;
    struct hfd_arena *mem;
    struct hfd_backup_note note;
    struct hfd_backup_sum sum;
    struct hfd_stream_body stream;
    hfd_slice piece;
    char *bytes; /* HFD_PIECE_BYTES */
    bool done;   /* the copy is whole */
};

static void close_backup(void *arg)
{
    struct making *m = arg;

    hfd_backup_close(&m->backup);
}

static void fail(struct hfd_exchange *x, hfd_rc rc, const struct hfd_err *err)
{
    if (rc == HFD_LIMIT)
        hfd_exchange_fail_as(x, STATUS_NO_ROOM, rc, err);
    else
        hfd_exchange_fail(x, rc, err);
}

/* ---- the copy ---- */

/* Collects the facts of the note, from the snapshot that the copy shows. */
static hfd_rc txn_facts(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct making *m = arg;

    return hfd_backup_note_collect(tx, m->mem, &m->note, err);
}

static hfd_rc job_begin(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct making *m = arg;

    (void)tx;
    return hfd_backup_begin(m->backup, txn_facts, m, err);
}

static hfd_rc job_step(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct making *m = arg;

    (void)tx;
    return hfd_backup_step(m->backup, &m->done, err);
}

/* ---- the body ---- */

/* The next piece of the database; behind its end, the note. */
static hfd_rc job_read(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct making *m = arg;
    size_t len;
    hfd_rc rc = hfd_backup_read(m->backup, m->bytes, HFD_PIECE_BYTES, &len, err);

    (void)tx;
    if (rc == HFD_OK && len == 0) {
        rc = hfd_backup_note_format(&m->note, &m->sum, m->bytes, err);
        len = HFD_BACKUP_NOTE_BYTES;
    } else if (rc == HFD_OK) {
        hfd_backup_sum_add(&m->sum, m->bytes, len);
    }
    m->piece = (hfd_slice){m->bytes, len};
    return rc;
}

static void send_copy(struct hfd_exchange *x, struct making *m)
{
    struct hfd_reply reply = {
        .status = 200, .content_type = "application/octet-stream", .stream = &m->stream};

    m->note.bytes = hfd_backup_bytes(m->backup);
    hfd_backup_sum_init(&m->sum);
    m->stream = (struct hfd_stream_body){.length = (size_t)m->note.bytes + HFD_BACKUP_NOTE_BYTES,
                                         .read = job_read,
                                         .arg = m,
                                         .next = &m->piece};
    HFD_LOG(HFD_LOG_INFO, "audit: backup made", HFD_LOG_INT("bytes", m->note.bytes),
            HFD_LOG_INT("resources", m->note.resources), HFD_LOG_STR("by", hfd_exchange_caller(x)));
    hfd_exchange_reply(x, &reply);
}

static void on_stepped(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    struct making *m = arg;
    struct hfd_err stopping;

    if (rc != HFD_OK)
        fail(x, rc, err);
    else if (m->done)
        send_copy(x, m);
    else if (hfd_exchange_draining(x))
        hfd_exchange_fail(x, hfd_fail(&stopping, HFD_IO, "backup: the server stops"), &stopping);
    else
        hfd_exchange_step(x, job_step, m, on_stepped);
}

static void give_backup(struct hfd_exchange *x)
{
    const struct hfd_app *app = hfd_exchange_app(x);
    struct hfd_arena *mem = hfd_exchange_mem(x);
    struct making *m = hfd_arena_alloc(mem, sizeof(*m));
    struct hfd_err err;
    hfd_rc rc;

    if (m == NULL) {
        hfd_exchange_fail(x, hfd_fail_nomem(&err, "begin a backup"), &err);
        return;
    }
    *m = (struct making){.mem = mem, .bytes = hfd_arena_alloc(mem, HFD_PIECE_BYTES)};
    rc = m->bytes != NULL ? hfd_backup_open(app->store, &m->backup, &err)
                          : hfd_fail_nomem(&err, "begin a backup");
    if (rc != HFD_OK) {
        hfd_exchange_fail(x, rc, &err);
        return;
    }
    hfd_exchange_at_end(x, close_backup, m);
    m->note.clock_us = hfd_clock_wall_us(app->clock);
    m->note.taken_us = m->note.clock_us + hfd_clock_skew_us(app->clock);
    hfd_exchange_step(x, job_begin, m, on_stepped);
}

/* ---- the table ---- */

/* clang-format off */
#define CLUSTER  HFD_KIND_CLUSTER
#define NODEPOOL HFD_KIND_NODEPOOL
#define OPS(need, method, pattern, name, fn) \
    {HFD_LISTENER_OPS, HFD_METHOD_##method, pattern, name, HFD_DIALECT_OPS, fn, NULL, 0, HFD_NEED_##need}
#define DRIVER(need, method, pattern, name, verb) \
    {HFD_LISTENER_MAIN, HFD_METHOD_##method, pattern, name, HFD_DIALECT_DRIVER, hfd_driver_api, &hfd_driver_##verb, 0, HFD_NEED_##need}
#define VALIDATE(need, pattern, name) \
    {HFD_LISTENER_MAIN, HFD_METHOD_POST, pattern, name, HFD_DIALECT_DRIVER, hfd_validate_api, NULL, 0, HFD_NEED_##need}
#define STATUS(pattern, name) \
    {HFD_LISTENER_MAIN, HFD_METHOD_GET, pattern, name, HFD_DIALECT_DRIVER, hfd_status_api_resource, NULL, 0, HFD_NEED_STATUS}
#define FLEET(need, method, pattern, name, action, kind) \
    {HFD_LISTENER_MAIN, HFD_METHOD_##method, "/api/hyperfleet" pattern, name, HFD_DIALECT_FLEET, action, kind, HFD_NEED_##need}
#define SEEN(pattern, name, fn) \
    {HFD_LISTENER_MAIN, HFD_METHOD_GET, "/api/driver/v1" pattern, name, HFD_DIALECT_FLEET, fn, NULL, 0, HFD_NEED_VIEW}
#define DO(fn)         fn, NULL
#define LIST(listing)  hfd_fleet_api_list, &hfd_fleet_##listing
#define CHANGE(action) hfd_fleet_api_change, &hfd_fleet_##action
#define PACEMAKER(action) hfd_pacemaker_api_write, &hfd_pacemaker_##action

const struct hfd_route hfd_routes[] = {
    OPS(OPEN,        GET,    "/livez",                "livez",       ops_live),
    OPS(OPEN,        GET,    "/alive",                "livez",       ops_live),
    OPS(OPEN,        GET,    "/healthz",              "healthz",     ops_health),
    OPS(OPEN,        GET,    "/readyz",               "readyz",      hfd_ops_ready),
    OPS(OPEN,        GET,    "/health",               "readyz",      hfd_ops_ready),
    OPS(OPEN,        GET,    "/metrics",              "metrics",     ops_metrics),
    OPS(OPEN,        GET,    "/docs/spec.json",       "openapi",     docs_openapi_json),
    OPS(OPEN,        GET,    "/docs",                 "manual",      docs_manual),
    OPS(OPEN,        GET,    "/docs/{page}",          "manual_page", docs_manual),
    OPS(OPEN,        GET,    "/favicon.ico",          "icon",        docs_no_icon),
    OPS(VIEW,        GET,    "/",                     "page",        ops_page),
    OPS(VIEW,        GET,    "/r/{guresid}",          "page_resource", ops_page),
    OPS(VIEW,        GET,    "/page/style.css",       "page_file",   ops_page),
    OPS(VIEW,        GET,    "/page/page.js",         "page_file",   ops_page),
    OPS(ADMIN,       GET,    "/admin/orphans",        "orphans",     list_orphans),
    OPS(ADMIN,       DELETE, "/admin/orphans/{id}",   "orphan",      delete_orphan),
    OPS(ADMIN,       GET,    "/admin/tokens",         "tokens",      list_tokens),
    OPS(ADMIN,       GET,    "/admin/replicas",       "replicas",    list_replicas),
    OPS(ADMIN,       GET,    "/admin/backup",         "backup",      give_backup),

    DRIVER(DRIVER,      GET,    "/{guresid}",          "resource",       get),
    DRIVER(DRIVER,      PUT,    "/{guresid}",          "resource",       put),
    DRIVER(DRIVER,      DELETE, "/{guresid}",          "resource",       delete),
    DRIVER(DRIVER,      GET,    "/{driver}/{guresid}", "typed_resource", get),
    DRIVER(DRIVER,      PUT,    "/{driver}/{guresid}", "typed_resource", put),
    DRIVER(DRIVER,      DELETE, "/{driver}/{guresid}", "typed_resource", delete),
    VALIDATE(DRIVER,    "/validate",                   "validate"),
    VALIDATE(DRIVER,    "/{driver}/validate",          "typed_validate"),
    STATUS("/{guresid}/status",                        "status"),
    STATUS("/{driver}/{guresid}/status",               "typed_status"),

    SEEN("/resources",           "driver_resources", hfd_overview_api_list),
    SEEN("/resources/{guresid}", "driver_resource",  hfd_overview_api_get),
    SEEN("/events",              "driver_events",    hfd_overview_api_events),
    SEEN("/problems",            "driver_problems",  hfd_overview_api_problems),

    FLEET(FLEET_READ,  GET,    "",                                                                  "fleet_metadata",             DO(hfd_fleet_api_metadata), 0),
    FLEET(OPEN,        GET,    "/v1/openapi",                                                       "openapi",                    DO(docs_openapi_json), 0),
    FLEET(OPEN,        GET,    "/v1/openapi.html",                                                  "openapi_page",               DO(docs_openapi_page), 0),
    FLEET(OPEN,        GET,    "/v1/openapi/{page}",                                                 "openapi_page",               DO(docs_openapi_page), 0),
    FLEET(FLEET_READ,  GET,    "/v1/events",                                                        "events",                     DO(hfd_watch_api), 0),
    FLEET(FLEET_READ,  GET,    "/v1/clusters",                                                      "clusters",                   LIST(resources),         CLUSTER),
    FLEET(FLEET_WRITE, POST,   "/v1/clusters",                                                      "clusters",                   CHANGE(creating),        CLUSTER),
    FLEET(FLEET_READ,  GET,    "/v1/clusters/{cluster_id}",                                         "cluster",                    DO(hfd_fleet_api_get),   CLUSTER),
    FLEET(FLEET_WRITE, PATCH,  "/v1/clusters/{cluster_id}",                                         "cluster",                    CHANGE(patching),        CLUSTER),
    FLEET(FLEET_WRITE, DELETE, "/v1/clusters/{cluster_id}",                                         "cluster",                    CHANGE(deleting),        CLUSTER),
    FLEET(ADMIN,       POST,   "/v1/clusters/{cluster_id}/force-delete",                            "cluster_force_delete",       CHANGE(force_deleting),  CLUSTER),
    FLEET(FLEET_READ,  GET,    "/v1/clusters/{cluster_id}/statuses",                                "cluster_statuses",           LIST(statuses),          CLUSTER),
    FLEET(REPORT,      POST,   "/v1/clusters/{cluster_id}/statuses",                                "cluster_statuses",           CHANGE(reporting),       CLUSTER),
    FLEET(REPORT,      PUT,    "/v1/clusters/{cluster_id}/statuses",                                "cluster_statuses",           CHANGE(reporting),       CLUSTER),
    FLEET(FLEET_READ,  GET,    "/v1/clusters/{cluster_id}/status",                                  "cluster_status",             DO(hfd_status_api_cluster), CLUSTER),
    FLEET(FLEET_READ,  GET,    "/v1/clusters/{cluster_id}/events",                                  "cluster_events",             DO(hfd_pacemaker_api_events), CLUSTER),
    FLEET(FLEET_READ,  GET,    "/v1/clusters/{cluster_id}/pacemaker",                               "cluster_pacemaker",          DO(hfd_pacemaker_api_get),    CLUSTER),
    FLEET(REPORT,      POST,   "/v1/clusters/{cluster_id}/pacemaker",                               "cluster_pacemaker",          PACEMAKER(create),            CLUSTER),
    FLEET(ADMIN,       PUT,    "/v1/clusters/{cluster_id}/pacemaker",                               "cluster_pacemaker",          PACEMAKER(main),              CLUSTER),
    FLEET(REPORT,      DELETE, "/v1/clusters/{cluster_id}/pacemaker",                               "cluster_pacemaker",          DO(hfd_pacemaker_api_delete), CLUSTER),
    FLEET(FLEET_READ,  GET,    "/v1/clusters/{cluster_id}/pacemaker/status",                        "cluster_pacemaker_status",   DO(hfd_pacemaker_api_get),    CLUSTER),
    FLEET(REPORT,      PUT,    "/v1/clusters/{cluster_id}/pacemaker/status",                        "cluster_pacemaker_status",   PACEMAKER(status),            CLUSTER),
    FLEET(FLEET_READ,  GET,    "/v1/clusters/{cluster_id}/nodepools",                               "cluster_nodepools",          LIST(resources),         NODEPOOL),
    FLEET(FLEET_WRITE, POST,   "/v1/clusters/{cluster_id}/nodepools",                               "cluster_nodepools",          CHANGE(creating),        NODEPOOL),
    FLEET(FLEET_READ,  GET,    "/v1/clusters/{cluster_id}/nodepools/{nodepool_id}",                 "nodepool",                   DO(hfd_fleet_api_get),   NODEPOOL),
    FLEET(FLEET_WRITE, PATCH,  "/v1/clusters/{cluster_id}/nodepools/{nodepool_id}",                 "nodepool",                   CHANGE(patching),        NODEPOOL),
    FLEET(FLEET_WRITE, DELETE, "/v1/clusters/{cluster_id}/nodepools/{nodepool_id}",                 "nodepool",                   CHANGE(deleting),        NODEPOOL),
    FLEET(ADMIN,       POST,   "/v1/clusters/{cluster_id}/nodepools/{nodepool_id}/force-delete",    "nodepool_force_delete",      CHANGE(force_deleting),  NODEPOOL),
    FLEET(FLEET_READ,  GET,    "/v1/clusters/{cluster_id}/nodepools/{nodepool_id}/statuses",        "nodepool_statuses",          LIST(statuses),          NODEPOOL),
    FLEET(REPORT,      POST,   "/v1/clusters/{cluster_id}/nodepools/{nodepool_id}/statuses",        "nodepool_statuses",          CHANGE(reporting),       NODEPOOL),
    FLEET(REPORT,      PUT,    "/v1/clusters/{cluster_id}/nodepools/{nodepool_id}/statuses",        "nodepool_statuses",          CHANGE(reporting),       NODEPOOL),
    FLEET(FLEET_READ,  GET,    "/v1/nodepools",                                                     "nodepools",                  LIST(resources),         NODEPOOL),
    FLEET(FLEET_WRITE, POST,   "/v1/nodepools",                                                     "nodepools",                  DO(hfd_fleet_api_refuse_nodepool), 0),
    FLEET(FLEET_READ,  GET,    "/v1/nodepools/{nodepool_id}",                                       "nodepool_flat",              DO(hfd_fleet_api_get),   NODEPOOL),
    FLEET(FLEET_WRITE, PATCH,  "/v1/nodepools/{nodepool_id}",                                       "nodepool_flat",              CHANGE(patching),        NODEPOOL),
    FLEET(FLEET_WRITE, DELETE, "/v1/nodepools/{nodepool_id}",                                       "nodepool_flat",              CHANGE(deleting),        NODEPOOL),
    FLEET(ADMIN,       POST,   "/v1/nodepools/{nodepool_id}/force-delete",                          "nodepool_flat_force_delete", CHANGE(force_deleting),  NODEPOOL),
    FLEET(FLEET_READ,  GET,    "/v1/nodepools/{nodepool_id}/statuses",                              "nodepool_flat_statuses",     LIST(statuses),          NODEPOOL),
    FLEET(REPORT,      POST,   "/v1/nodepools/{nodepool_id}/statuses",                              "nodepool_flat_statuses",     CHANGE(reporting),       NODEPOOL),
    FLEET(REPORT,      PUT,    "/v1/nodepools/{nodepool_id}/statuses",                              "nodepool_flat_statuses",     CHANGE(reporting),       NODEPOOL),
};
/* clang-format on */

const size_t hfd_route_count = sizeof(hfd_routes) / sizeof(hfd_routes[0]);

bool hfd_route_is_probe(const struct hfd_route *r)
{
    return r->fn == ops_live || r->fn == ops_health || r->fn == hfd_ops_ready;
}

size_t hfd_route_count_of(const struct hfd_app *app)
{
    const hfd_slice fleet = HFD_SLICE("/api/hyperfleet");
    size_t n = 0;

    while (n < hfd_route_count &&
           !(app->ops_only && !hfd_route_is_probe(&hfd_routes[n]) &&
             hfd_routes[n].fn != ops_metrics) &&
           !(app->without_fleet && hfd_slice_starts(hfd_slice_of(hfd_routes[n].pattern), fleet)))
        n++;
    return n;
}
