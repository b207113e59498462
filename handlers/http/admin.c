/*
 * The admin API on the ops listener: the orphans. Turns requests into calls of driver/core and rows
 * into documents; decides nothing. Thread: loop.
 */
#include "handlers/http/admin.h"

#include "handlers/http/api.h"

#include "driver/base/log.h"
#include "driver/core/orphans.h"
#include "driver/fleet/names.h"
#include "store/rows_fleet.h"
#include "store/rows_orphan.h"

#define LIST_MAX_BYTES ((size_t)4 * 1024 * 1024)

/* A request and its results. Lives in the memory of the exchange. */
struct command {
    const struct hfd_driver *driver;
    struct hfd_fleet_call call;
    hfd_slice id;
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
            .id = id.p != NULL ? hfd_arena_dup(mem, id) : HFD_SLICE(""),
        };
        if (cmd->id.p != NULL)
            return cmd;
        rc = hfd_fail_nomem(&err, "copy a request");
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
    const hfd_rc rc =
        hfd_orphans_list(tx, cmd->driver->backend_ops, cmd->call.mem, &cmd->found, err);

    return rc == HFD_OK ? hfd_orphans_add_objects(&c, &cmd->found) : rc;
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
    hfd_orphans_polled(cmd->driver);
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

    return hfd_orphan_remove(&c, cmd->call.caller, cmd->id, &cmd->removed);
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
