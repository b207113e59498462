/* See aging.h. */
#include "driver/adapters/aging.h"

#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/thread.h"
#include "driver/base/trouble.h"
#include "driver/core/gauges.h"
#include "driver/core/resource.h"
#include "driver/core/transition.h"
#include "driver/fleet/fleet.h"
#include "driver/health/intake.h"
#include "driver/replica/keeper.h"
#include "store/rows_due.h"
#include "store/rows_overview.h"
#include "store/rows_history.h"
#include "store/rows_report.h"
#include "store/totals.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#define AGING_MAGIC 0xa61c9a3eu
#define PROBLEMS_US (10 * HFD_US_PER_S) /* between two looks for what is wrong */
#define PAUSE_US HFD_US_PER_S           /* for documents that were old when they came */
#define DISK_MIN_MIB INT64_C(512)
#define STRANGER_FOR_US (3600 * HFD_US_PER_S) /* after its last report */
#define REPAIR_LATER_US (600 * HFD_US_PER_S)
#define FORGET_MAX 1000                            /* events of one transaction */
#define LOOK_MAX_BYTES ((size_t)256 * 1024 * 1024) /* memory of one look */

struct hfd_aging {
    unsigned magic;
    struct hfd_aging_config config;
    struct hfd_sleeper sleeper;
    /* Only its thread uses these. */
    bool failing, blind; /* the last look failed, at what is late or wrong, and the log says so */
    struct hfd_store_reader *reader;
    int64_t problems_due_us; /* mono */
};

/* One transaction. */
struct look {
    const struct hfd_aging_config *config;
    int64_t now_us;
    struct hfd_arena mem;
    size_t count;    /* stale documents that it took */
    int64_t next_us; /* the last microsecond of the next one; INT64_MAX = there is none */
    struct hfd_settled settled;
    struct hfd_deadline_list repairs; /* of drift, by the time when they are due */
    bool more;                        /* histories or events that are too old are left */
};

/* Operations whose deadline has passed, and histories that are too old. */
static hfd_rc settle(struct hfd_txn *tx, struct look *look, struct hfd_err *err)
{
    const struct hfd_driver *driver = look->config->driver;
    const struct hfd_ctx c = {
        .tx = tx, .driver = driver, .now_us = look->now_us, .mem = &look->mem, .err = err};
    const struct hfd_tombstone_limits limits =
        hfd_fleet_tombstone_limits(&driver->fleet, look->now_us);
    hfd_rc rc = hfd_resource_settle_due(&c, &look->settled);

    if (rc == HFD_OK)
        rc = hfd_repair_row_list(tx, HFD_SETTLE_MAX, &look->mem, &look->repairs, err);
    /* At its deadline an operation is late. */
    if (rc == HFD_OK && look->settled.next_us <= look->next_us &&
        look->settled.next_us != INT64_MAX)
        look->next_us = look->settled.next_us - 1;
    if (rc == HFD_OK)
        rc = hfd_tombstone_row_trim(tx, &limits, &look->more, err);
    if (rc == HFD_OK && !look->more)
        rc = hfd_due_forget(tx,
                            &(struct hfd_due_old){look->now_us - driver->fleet.due_keep_us,
                                                  look->now_us - HFD_OUTBOX_KEEP_US, FORGET_MAX},
                            &look->more, err);
    return rc;
}

static hfd_rc txn_look(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct look *look = arg;
    struct hfd_fleet_changes changes = {.mem = &look->mem};
    const struct hfd_fleet_call call = {
        .fleet = &look->config->driver->fleet,
        .now_us = look->now_us,
        .mem = &look->mem,
        .changes = &changes,
    };
    hfd_rc rc;

    hfd_arena_fini(&look->mem); /* it may run again */
    rc = hfd_health_settle(tx, &call, &look->count, err);
    if (rc == HFD_OK)
        rc = hfd_watch_row_next(tx, &look->next_us, err);
    if (rc == HFD_OK)
        rc = hfd_resource_observe(tx, look->config->driver, &call, err);
    return rc == HFD_OK ? settle(tx, look, err) : rc;
}

/* ---- repair of drift ---- */

/* One resource, in a transaction of its own: what is refused must hold up nothing else. */
struct repair {
    const struct hfd_aging_config *config;
    hfd_slice guresid;
    int64_t now_us, later_us;
};

static hfd_rc txn_repair(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct repair *r = arg;
    struct hfd_arena mem;
    hfd_rc rc;

    hfd_arena_init(&mem, LOOK_MAX_BYTES);
    rc = hfd_resource_repair(
        &(struct hfd_ctx){
            .tx = tx, .driver = r->config->driver, .now_us = r->now_us, .mem = &mem, .err = err},
        r->guresid, r->later_us);
    hfd_arena_fini(&mem);
    return rc;
}

static hfd_rc repair_one(struct look *look, hfd_slice guresid, struct hfd_err *err)
{
    struct repair r = {.config = look->config, .guresid = guresid, .now_us = look->now_us};
    hfd_rc rc = hfd_store_update_wait(look->config->store, txn_repair, &r, err);

    if (rc == HFD_OK)
        return HFD_OK;
    HFD_LOG(HFD_LOG_WARN, "drift could not be mended; will try again in 10 minutes",
            HFD_LOG_STR("guresid", guresid), HFD_LOG_CSTR("code", hfd_rc_name(rc)),
            HFD_LOG_CSTR("reason", err->msg));
    r.later_us = look->now_us + REPAIR_LATER_US;
    return hfd_store_update_wait(look->config->store, txn_repair, &r, err);
}

/* Mends those that are due. @return whether it mended as many as one look lists */
static hfd_rc repair_due(struct look *look, bool *more, struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;
    size_t i = 0;

    for (; rc == HFD_OK && i < look->repairs.count; i++) {
        const struct hfd_deadline_row *due = &look->repairs.rows[i];

        if (due->deadline_us > look->now_us) {
            if (due->deadline_us <= look->next_us)
                look->next_us = due->deadline_us - 1;
            break;
        }
        rc = repair_one(look, due->guresid, err);
    }
    *more = i == HFD_SETTLE_MAX;
    return rc;
}

hfd_rc hfd_aging_look(const struct hfd_aging_config *config, int64_t *next_us, struct hfd_err *err)
{
    struct look look = {.config = config};
    struct hfd_hold hold;
    bool more = false;
    hfd_rc rc;

    /* A look is one transaction: two replicas that look do no harm. */
    hfd_keeper_hold(config->keeper, &hold);
    if (!hold.leads) {
        *next_us = INT64_MAX;
        return HFD_OK;
    }
    hfd_arena_init(&look.mem, LOOK_MAX_BYTES);
    do {
        look.now_us = hfd_clock_wall_us(config->clock);
        rc = hfd_store_update_wait(config->store, txn_look, &look, err);
        if (rc == HFD_OK)
            rc = repair_due(&look, &more, err);
    } while (rc == HFD_OK && (look.count == HFD_HEALTH_SETTLE_MAX ||
                              look.settled.count == HFD_SETTLE_MAX || more || look.more));
    hfd_arena_fini(&look.mem);
    *next_us = rc == HFD_OK ? look.next_us : INT64_MAX;
    return rc;
}

/* Looks, and logs the first failure of a row. @return how long to wait for the next look */
static int64_t look_once(struct hfd_aging *aging)
{
    struct hfd_err err;
    int64_t next_us, now_us;
    const hfd_rc rc = hfd_aging_look(&aging->config, &next_us, &err);

    if (rc != HFD_OK && !aging->failing)
        HFD_LOG(HFD_LOG_WARN, "cannot settle what is late; will try again",
                HFD_LOG_CSTR("code", hfd_rc_name(rc)), HFD_LOG_CSTR("reason", err.msg));
    aging->failing = rc != HFD_OK;
    now_us = hfd_clock_wall_us(aging->config.clock);
    if (next_us >= now_us + PAUSE_US)
        return PAUSE_US;
    return next_us >= now_us ? next_us - now_us + 1 : 1;
}

/* ---- what is wrong now ---- */

/* One required adapter, over clusters and nodepools. */
struct habit {
    hfd_slice name;
    bool never; /* no report of it is stored, and none came since the start */
    int64_t last_us, waiting;
};

/* The time when the oldest stuck creation or update began; 0 = none is stuck. */
static int64_t stuck_since(const struct hfd_gauges *g)
{
    int64_t at_us = 0;

    for (int op = HFD_OP_CREATE; op <= HFD_OP_UPDATE; op++)
        if (g->stuck[op] > 0 && (at_us == 0 || g->oldest_us[op] < at_us))
            at_us = g->oldest_us[op];
    return at_us;
}

/* Adds what is known of an adapter on one kind of resource. */
static hfd_rc add_kind(const struct hfd_ctx *c, const struct hfd_adapter_seen *a, struct habit *h)
{
    const struct hfd_count_key key = {a->kind, HFD_COUNT_ALL, HFD_SLICE(""), HFD_SLICE("")};
    int64_t all;
    const hfd_rc rc = hfd_totals_get(c->tx, &key, &all, c->err);

    if (rc != HFD_OK)
        return rc;
    h->never = h->never && a->last_us == 0 && a->good + a->bad + a->open == 0;
    h->last_us = a->last_us > h->last_us ? a->last_us : h->last_us;
    h->waiting += all > a->good ? all - a->good : 0;
    return HFD_OK;
}

/* True for an adapter of this program, which reports when there is something to do. */
static bool is_built_in(const struct hfd_ctx *c, hfd_slice name)
{
    return c->driver->demo ||
           (c->driver->hooks != NULL && hfd_slice_eq(c->driver->hooks->judge, name));
}

static void judge_adapter(const struct hfd_ctx *c, const struct habit *h, int64_t stuck_us)
{
    const bool late = stuck_us != 0 && h->waiting > 0 && h->last_us != 0 && h->last_us < stuck_us;
    char words[128] = "is required, and has never reported";

    if ((!h->never || (is_built_in(c, h->name) && stuck_us == 0)) && !late) {
        (void)hfd_trouble_end(HFD_TROUBLE_SILENT, h->name);
        return;
    }
    if (!h->never) {
        char at[HFD_TIME_TEXT_MAX];

        (void)hfd_time_format_s(h->last_us, at);
        (void)snprintf(words, sizeof(words), "last reported at %s, before the oldest order began",
                       at);
    }
    if (hfd_trouble_note(HFD_TROUBLE_SILENT, h->name, c->now_us, hfd_slice_of(words)))
        HFD_LOG(HFD_LOG_WARN, "a required adapter is silent: orders wait for its reports",
                HFD_LOG_STR("adapter", h->name), HFD_LOG_CSTR("reason", words));
    hfd_trouble_set_waiting(HFD_TROUBLE_SILENT, &h->name, h->waiting);
}

static hfd_rc look_at_adapters(const struct hfd_ctx *c, int64_t stuck_us)
{
    struct hfd_adapters_seen seen;
    hfd_rc rc = hfd_adapters_read(c, false, &seen);

    for (size_t i = 0; rc == HFD_OK && i < seen.count; i++) {
        struct habit h = {.name = seen.items[i].name, .never = true};
        bool again = false;

        for (size_t k = 0; k < i; k++)
            again = again || hfd_slice_eq(seen.items[k].name, h.name);
        for (size_t k = i; rc == HFD_OK && !again && k < seen.count; k++)
            if (hfd_slice_eq(seen.items[k].name, h.name))
                rc = add_kind(c, &seen.items[k], &h);
        if (rc == HFD_OK && !again)
            judge_adapter(c, &h, stuck_us);
    }
    return rc;
}

/* Replicas that are gone without a good-bye, or whose settings or version differ. */
static hfd_rc look_at_replicas(const struct hfd_ctx *c)
{
    struct hfd_replicas_seen seen;
    const hfd_rc rc = hfd_replicas_read(c->tx, c->now_us, c->mem, &seen, c->err);

    for (size_t i = 0; rc == HFD_OK && i < seen.count; i++) {
        const struct hfd_replica_seen *r = &seen.items[i];
        const hfd_slice name = r->name.len > 0 ? r->name : r->id;

        if (!r->live)
            (void)hfd_trouble_note(
                HFD_TROUBLE_REPLICA, name, c->now_us,
                HFD_SLICE("has given no sign of life, and did not say good-bye"));
        else if (r->outdated)
            (void)hfd_trouble_note(HFD_TROUBLE_REPLICA, name, c->now_us,
                                   HFD_SLICE("has older settings: restart it with the new ones"));
    }
    if (rc == HFD_OK)
        hfd_trouble_end_before(HFD_TROUBLE_REPLICA, c->now_us);
    return rc;
}

/* Looks for what is wrong and shows in rows, and counts what waits for each problem. */
static hfd_rc look_at_rows(const struct hfd_ctx *c, bool replicas)
{
    struct hfd_gauges gauges;
    int64_t under_way = 0;
    hfd_rc rc = hfd_gauges_read(c, 0, &gauges);

    for (size_t i = 0; rc == HFD_OK && i < gauges.resources.count; i++)
        if (gauges.resources.rows[i].state == HFD_STATE_CREATING ||
            gauges.resources.rows[i].state == HFD_STATE_UPDATING ||
            gauges.resources.rows[i].state == HFD_STATE_DELETING)
            under_way += gauges.resources.rows[i].n;
    if (rc == HFD_OK) {
        hfd_trouble_set_waiting(HFD_TROUBLE_REMOTE, NULL, under_way);
        hfd_trouble_set_waiting(HFD_TROUBLE_MANAGEMENT, NULL, under_way);
        /* The adapters of a remote are the remote's. */
        if (!hfd_driver_is_remote(c->driver))
            rc = look_at_adapters(c, stuck_since(&gauges));
    }
    if (rc == HFD_OK && replicas)
        rc = look_at_replicas(c);
    hfd_trouble_end_before(HFD_TROUBLE_STRANGER, c->now_us - STRANGER_FOR_US);
    return rc;
}

static void look_at_disk(const char *folder, int64_t now_us)
{
    struct statvfs fs;
    char words[128];
    int64_t free_mib;

    if (statvfs(folder, &fs) != 0)
        return;
    free_mib = (int64_t)fs.f_bavail * (int64_t)fs.f_frsize / (1024 * 1024);
    if (free_mib >= DISK_MIN_MIB) {
        (void)hfd_trouble_end(HFD_TROUBLE_DISK, HFD_SLICE(""));
        return;
    }
    (void)snprintf(words, sizeof(words), "the data folder has %lld MiB left: the store stops at 0",
                   (long long)free_mib);
    if (hfd_trouble_note(HFD_TROUBLE_DISK, HFD_SLICE(""), now_us, hfd_slice_of(words)))
        HFD_LOG(HFD_LOG_WARN, "the disk is nearly full", HFD_LOG_INT("free_mib", free_mib));
}

static hfd_rc txn_problems(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct look *look = arg;
    const struct hfd_ctx c = {.tx = tx,
                              .driver = look->config->driver,
                              .now_us = look->now_us,
                              .mem = &look->mem,
                              .err = err};

    hfd_arena_fini(&look->mem); /* it may run again */
    return look_at_rows(&c, look->config->keeper != NULL);
}

static void look_for_problems(struct hfd_aging *aging)
{
    const struct hfd_aging_config *config = &aging->config;
    const int64_t mono_us = hfd_clock_mono_us(&hfd_clock_system);
    struct look look = {.config = config, .now_us = hfd_clock_wall_us(config->clock)};
    struct hfd_err err;
    hfd_rc rc = HFD_OK;

    if (mono_us < aging->problems_due_us)
        return;
    aging->problems_due_us = mono_us + PROBLEMS_US;
    if (config->folder != NULL)
        look_at_disk(config->folder, look.now_us);
    hfd_arena_init(&look.mem, LOOK_MAX_BYTES);
    if (aging->reader == NULL)
        rc = hfd_store_reader_open(config->store, &aging->reader, &err);
    if (rc == HFD_OK)
        rc = hfd_store_read(aging->reader, txn_problems, &look, &err);
    if (rc != HFD_OK && !aging->blind)
        HFD_LOG(HFD_LOG_WARN, "cannot look for what is wrong; will try again",
                HFD_LOG_CSTR("code", hfd_rc_name(rc)), HFD_LOG_CSTR("reason", err.msg));
    aging->blind = rc != HFD_OK;
    if (aging->blind)
        hfd_store_reader_close(&aging->reader); /* the database may be away */
    hfd_arena_fini(&look.mem);
}

static void *run(void *arg)
{
    struct hfd_aging *aging = arg;

    int64_t pause_us;

    HFD_CHECK_OBJ(aging, AGING_MAGIC);
    do {
        pause_us = look_once(aging);
        look_for_problems(aging);
    } while (!hfd_sleeper_wait(&aging->sleeper, pause_us, NULL));
    hfd_store_reader_close(&aging->reader);
    return NULL;
}

hfd_rc hfd_aging_start(const struct hfd_aging_config *config, struct hfd_aging **out,
                       struct hfd_err *err)
{
    struct hfd_aging *aging = calloc(1, sizeof(*aging));
    hfd_rc rc;

    *out = NULL;
    if (aging == NULL)
        return hfd_fail_nomem(err, "start the timer");
    aging->magic = AGING_MAGIC;
    aging->config = *config;
    aging->sleeper = (struct hfd_sleeper)HFD_SLEEPER_INIT;
    rc = hfd_sleeper_start(&aging->sleeper,
                           &(struct hfd_thread){"hfd-aging", "timer: thread", run, aging}, err);
    if (rc == HFD_OK)
        *out = aging;
    else
        free(aging);
    return rc;
}

void hfd_aging_stop(struct hfd_aging **out)
{
    struct hfd_aging *aging = *out;

    if (aging == NULL)
        return;
    HFD_CHECK_OBJ(aging, AGING_MAGIC);
    hfd_sleeper_stop(&aging->sleeper);
    aging->magic = 0;
    free(aging);
    *out = NULL;
}
