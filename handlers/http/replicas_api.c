/* See replicas_api.h. */
#include "handlers/http/replicas_api.h"

#include "driver/replica/seen.h"
#include "handlers/http/api.h"

#define LIST_MAX_BYTES ((size_t)1024 * 1024)

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
    hfd_buf_addf(b, ",\"live\":%s,\"shards\":%d,\"settings_epoch\":%lld,\"outdated\":%s}",
                 r->live ? "true" : "false", r->shards, (long long)r->settings_epoch,
                 r->outdated ? "true" : "false");
}

static hfd_rc txn_list(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct listing *l = arg;

    return hfd_replicas_read(tx, l->now_us, l->mem, &l->found, err);
}

static void on_listed(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
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
    hfd_exchange_view_short(x, txn_list, l, on_listed);
}
