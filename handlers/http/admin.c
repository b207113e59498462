/* See admin.h. */
#include "handlers/http/admin.h"

#include "driver/base/log.h"
#include "driver/core/backup_note.h"
#include "driver/core/overview.h"
#include "driver/fleet/fleet.h"
#include "driver/replica/keeper.h"
#include "handlers/http/exchange.h"
#include "handlers/http/http.h"
#include "handlers/http/query.h"
#include "store/backup.h"
#include "store/rows_fleet.h"

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
static struct command *start(struct hfd_exchange *x)
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
        if (i > 0)
            hfd_buf_addc(&b, ',');
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
void hfd_admin_list_orphans(struct hfd_exchange *x)
{
    struct command *cmd = start(x);

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

void hfd_admin_delete_orphan(struct hfd_exchange *x)
{
    struct command *cmd = start(x);

    if (cmd != NULL)
        hfd_exchange_update(x, txn_remove, cmd, on_removed);
}

/* ---- tokens ---- */

#define TOKENS_MAX_BYTES ((size_t)4 * 1024 * 1024)

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

void hfd_tokens_api_list(struct hfd_exchange *x)
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
    hfd_buf_init(&b, TOKENS_MAX_BYTES);
    hfd_buf_lit(&b, "{\"items\":[");
    for (size_t i = 0; i < tokens.count; i++) {
        if (i > 0)
            hfd_buf_addc(&b, ',');
        add_token(&b, &tokens.items[i]);
    }
    hfd_buf_lit(&b, "]}");
    hfd_api_send(x, &reply, "application/json", &b);
}

/* ---- replicas ---- */

#define REPLICAS_MAX_BYTES ((size_t)1024 * 1024)

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
    hfd_buf_init(&b, REPLICAS_MAX_BYTES);
    hfd_buf_lit(&b, "{\"items\":[");
    for (size_t i = 0; i < l->found.count; i++) {
        if (i > 0)
            hfd_buf_addc(&b, ',');
        replica_json(&b, &l->found.items[i]);
    }
    hfd_buf_lit(&b, "]}");
    hfd_api_send(x, &reply, "application/json", &b);
}

void hfd_replicas_api_list(struct hfd_exchange *x)
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

void hfd_backup_api(struct hfd_exchange *x)
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
