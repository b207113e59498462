/* See demo.h. */
#include "driver/adapters/demo.h"

#include "driver/adapters/news.h"
#include "driver/base/bell.h"
#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/thread.h"
#include "driver/core/transition.h"
#include "driver/fleet/report.h"
#include "driver/replica/keeper.h"
#include "store/rows_fleet.h"
#include "store/store.h"

/*
 * The demo adapters. One thread keeps the resources that wait for a report, and when the next one
 * is due. Those that are not ready are listed at the start, later ones come as changes. So a
 * restart continues from the store, and nothing is missed. It does not report for adapters that are
 * not required, and not over another report at the same generation.
 */

/* The longest duration that a setting accepts. */
#define TOTAL_MAX_US (INT64_C(3653) * 86400 * HFD_US_PER_S)
#define WAIT_MIN_US INT64_C(20000)
#define WAIT_MAX_US INT64_C(250000)
#define BATCH_MAX 32 /* resources in one transaction: other jobs wait for the writer, too */
#define ROW_MEM_BYTES ((size_t)64 << 20)
#define ID_MAX_BYTES 64

/* A resource that waits for a report. */
struct waiting {
    char id[ID_MAX_BYTES + 1];
    int64_t due_us; /* mono: of the next report; INT64_MAX = there is none */
};

struct hfd_demo {
    unsigned magic;
#define DEMO_MAGIC 0x64656d6fu
    struct hfd_demo_config config;
    struct hfd_bell_listener listener;
    struct hfd_news news;
    struct hfd_hold hold; /* of the present round */
    bool listed;          /* since it leads */
    struct waiting *items;
    size_t count, room;
    bool failing;               /* the failure was logged */
    struct hfd_sleeper sleeper; /* rung when something has become due */
};

static const struct hfd_agg_report *report_of(const struct hfd_agg_reports *reports,
                                              hfd_slice adapter)
{
    for (size_t i = 0; i < reports->count; i++)
        if (hfd_slice_eq(reports->items[i].adapter, adapter))
            return &reports->items[i];
    return NULL;
}

int64_t hfd_demo_due_us(const struct hfd_demo_view *v, size_t at, int64_t *floor_us)
{
    const struct hfd_agg_report *r = report_of(&v->reports, v->required.items[at]);
    const int64_t n = (int64_t)v->required.count, k = (int64_t)at + 1;
    const int64_t step_us = v->total_us / n * k + v->total_us % n * k / n;

    *floor_us = r != NULL ? r->observed_us : 0;
    if (r != NULL && r->observed_generation >= v->generation &&
        (!v->deleting || r->finalized == HFD_STATUS_TRUE))
        return INT64_MAX;
    return v->since_us - v->now_us > v->total_us ? v->now_us : v->since_us + step_us;
}

/* ---- reports ---- */

/* A job of the writer. */
struct batch {
    struct hfd_demo *demo;
    struct waiting *items;
    size_t count;
    int64_t now_us, mono_us;
};

static hfd_rc report_one(struct hfd_txn *tx, const struct batch *batch,
                         const struct hfd_fleet_row *row, hfd_slice adapter, int64_t floor_us,
                         struct hfd_err *err)
{
    const struct hfd_driver *driver = batch->demo->config.driver;
    const bool deleting = row->deleted_us != 0;
    const hfd_slice reason = HFD_SLICE("Demo"),
                    message = HFD_SLICE("Demo adapter: no cluster is made.");
    const enum hfd_status done = deleting ? HFD_STATUS_FALSE : HFD_STATUS_TRUE;
    struct hfd_condition conditions[] = {
        {.type = HFD_SLICE("Available"), .status = done, .reason = reason, .message = message},
        {.type = HFD_SLICE("Applied"), .status = done, .reason = reason, .message = message},
        {.type = HFD_SLICE("Health"),
         .status = HFD_STATUS_TRUE,
         .reason = reason,
         .message = message},
        {.type = HFD_SLICE("Finalized"),
         .status = HFD_STATUS_TRUE,
         .reason = reason,
         .message = message},
    };
    const struct hfd_fleet_report report = {
        .target = {row->kind, row->owner_id, row->id},
        .adapter = adapter,
        .observed_generation = row->generation,
        .observed_us = batch->now_us > floor_us ? batch->now_us : floor_us,
        .conditions = {conditions, deleting ? 4 : 3},
        .data = HFD_SLICE("{\"demo\":true}"),
    };
    struct hfd_arena mem;
    struct hfd_fleet_changes changes = {.mem = &mem};
    const struct hfd_fleet_call call = {.fleet = &driver->fleet,
                                        .now_us = batch->now_us,
                                        .caller = HFD_SLICE("demo@hyperfleet.local"),
                                        .mem = &mem,
                                        .changes = &changes};
    struct hfd_fleet_reported stored;
    hfd_rc rc;

    hfd_arena_init(&mem, ROW_MEM_BYTES);
    rc = hfd_fleet_report(tx, &call, &report, &stored, err);
    if (rc == HFD_OK)
        rc = hfd_resource_observe(tx, driver, &call, err);
    hfd_arena_fini(&mem);
    /* A resource that was removed since it was read, perhaps by the report before, is no error. */
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

/* Reports what is due on a resource, and finds out when the next report is. */
static hfd_rc report_on(struct hfd_txn *tx, const struct batch *batch, struct waiting *w,
                        struct hfd_arena *mem, struct hfd_err *err)
{
    const struct hfd_demo_config *config = &batch->demo->config;
    struct hfd_demo_view view = {.now_us = batch->now_us, .total_us = config->total_us};
    int64_t next_us = INT64_MAX, floor_us;
    struct hfd_fleet_row row;
    hfd_rc rc = hfd_fleet_row_get(tx, hfd_slice_of(w->id), mem, &row, err);

    if (rc == HFD_OK)
        rc = hfd_fleet_reports(tx, row.id, mem, &view.reports, err);
    if (rc == HFD_OK) {
        view.required = config->driver->fleet.required[row.kind];
        view.generation = row.generation;
        view.deleting = row.deleted_us != 0;
        view.since_us = view.deleting ? row.deleted_us : row.updated_us;
    }
    for (size_t a = 0; rc == HFD_OK && a < view.required.count; a++) {
        const int64_t due_us = hfd_demo_due_us(&view, a, &floor_us);

        if (due_us <= batch->now_us)
            rc = report_one(tx, batch, &row, view.required.items[a], floor_us, err);
        else if (due_us < next_us)
            next_us = due_us;
    }
    w->due_us = next_us == INT64_MAX ? next_us : batch->mono_us + next_us - batch->now_us;
    return rc == HFD_NOT_FOUND ? HFD_OK : rc; /* it is gone */
}

static hfd_rc write_batch(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct batch *batch = arg;
    hfd_rc rc = hfd_keeper_check(batch->demo->config.keeper, tx, &batch->demo->hold, err);

    if (rc == HFD_CONFLICT) { /* another replica reports now */
        batch->demo->listed = false;
        return HFD_OK;
    }
    for (size_t i = 0; rc == HFD_OK && i < batch->count; i++) {
        struct hfd_arena mem;

        hfd_arena_init(&mem, ROW_MEM_BYTES);
        rc = report_on(tx, batch, &batch->items[i], &mem, err);
        hfd_arena_fini(&mem);
    }
    return rc;
}

/*
 * Reports on the resources of a batch together. When that fails, it reports on each alone, so that
 * a damaged resource does not stop the others. It stays due.
 */
static hfd_rc write_items(struct batch *all, struct hfd_err *err)
{
    struct hfd_store *store = all->demo->config.store;
    hfd_rc rc = hfd_store_update_wait(store, write_batch, all, err), first = HFD_OK;

    if (rc == HFD_OK || !hfd_store_ok(store))
        return rc;
    for (size_t i = 0; i < all->count && !hfd_sleeper_is_stopped(&all->demo->sleeper); i++) {
        struct batch one = *all;
        struct hfd_err why;

        one.items = &all->items[i];
        one.count = 1;
        rc = hfd_store_update_wait(store, write_batch, &one, &why);
        if (rc == HFD_OK)
            continue;
        one.items->due_us = all->mono_us;
        if (first == HFD_OK)
            *err = why;
        first = first == HFD_OK ? rc : first;
    }
    return first;
}

/* ---- rounds ---- */

/* Without memory it ends the look, which is made again. */
static bool note_row(void *ctx, const struct hfd_fleet_row *row, bool due)
{
    struct hfd_demo *demo = ctx;
    struct waiting *w = due ? demo->items : demo->items + demo->count; /* a list has it once */

    if (row->id.len > ID_MAX_BYTES)
        return true;
    while (w < demo->items + demo->count && !hfd_slice_is(row->id, w->id))
        w++;
    if (w == demo->items + demo->count) {
        if (demo->count == demo->room) {
            const size_t room = 2 * demo->room + BATCH_MAX;

            w = realloc(demo->items, room * sizeof(*w));
            if (w == NULL)
                return demo->listed = false;
            demo->items = w;
            demo->room = room;
        }
        w = &demo->items[demo->count++];
        (void)snprintf(w->id, sizeof(w->id), "%.*s", HFD_SLICE_FMT(row->id));
    }
    w->due_us = 0;
    return true;
}

/* Takes what is new, and forgets what needs no further report. */
static hfd_rc look(struct hfd_demo *demo, struct hfd_err *err)
{
    const struct hfd_news_look want = {.all = !demo->listed, .on_row = note_row, .ctx = demo};
    size_t kept = 0;

    for (size_t i = 0; i < demo->count && demo->listed; i++)
        if (demo->items[i].due_us != INT64_MAX)
            demo->items[kept++] = demo->items[i];
    demo->count = kept;
    demo->listed = true;
    if (hfd_news_read(&demo->news, &want, err) == HFD_OK)
        return HFD_OK;
    demo->listed = false;
    return err->rc;
}

/* Puts what is due in front. @return how many there are */
static size_t sort_due(struct hfd_demo *demo, int64_t mono_us)
{
    size_t due = 0;

    for (size_t i = 0; i < demo->count; i++)
        if (demo->items[i].due_us <= mono_us) {
            const struct waiting w = demo->items[due];

            demo->items[due++] = demo->items[i];
            demo->items[i] = w;
        }
    return due;
}

int64_t hfd_demo_round(struct hfd_demo *demo)
{
    struct batch batch = {.demo = demo,
                          .now_us = hfd_clock_wall_us(demo->config.clock),
                          .mono_us = hfd_clock_mono_us(demo->config.clock)};
    int64_t next_us = INT64_MAX;
    struct hfd_err err, one;
    size_t due;
    hfd_rc rc;

    hfd_keeper_hold(demo->config.keeper, &demo->hold);
    demo->listed = demo->listed && demo->hold.leads;
    if (!demo->hold.leads)
        return INT64_MAX;
    rc = look(demo, &err);
    due = sort_due(demo, batch.mono_us);
    for (size_t at = 0; at < due && !hfd_sleeper_is_stopped(&demo->sleeper); at += BATCH_MAX) {
        batch.items = &demo->items[at];
        batch.count = due - at < BATCH_MAX ? due - at : BATCH_MAX;
        if (write_items(&batch, &one) != HFD_OK && rc == HFD_OK) {
            err = one;
            rc = one.rc;
        }
    }
    if (rc != HFD_OK && !demo->failing)
        HFD_LOG(HFD_LOG_WARN, "demo adapters could not report; will try again",
                HFD_LOG_CSTR("code", hfd_rc_name(rc)), HFD_LOG_CSTR("reason", err.msg));
    demo->failing = rc != HFD_OK;
    for (size_t i = 0; i < demo->count; i++)
        if (demo->items[i].due_us < next_us)
            next_us = demo->items[i].due_us;
    return next_us;
}

hfd_rc hfd_demo_new(const struct hfd_demo_config *config, struct hfd_demo **out,
                    struct hfd_err *err)
{
    struct hfd_demo *demo;

    *out = NULL;
    if (config->total_us < 0 || config->total_us > TOTAL_MAX_US)
        return hfd_fail_field(err, HFD_INVALID, "demo", "demo: expected a time of 0 to ten years");
    demo = calloc(1, sizeof(*demo));
    if (demo == NULL)
        return hfd_fail_nomem(err, "start the demo adapters");
    demo->magic = DEMO_MAGIC;
    demo->config = *config;
    demo->news = (struct hfd_news){.store = config->store, .pending = true};
    demo->sleeper = (struct hfd_sleeper)HFD_SLEEPER_INIT;
    *out = demo;
    return HFD_OK;
}

void hfd_demo_free(struct hfd_demo *demo)
{
    if (demo == NULL)
        return;
    HFD_CHECK_OBJ(demo, DEMO_MAGIC);
    hfd_store_reader_close(&demo->news.reader);
    free(demo->items);
    demo->magic = 0;
    free(demo);
}

/* ---- the thread ---- */

static void *run_thread(void *arg)
{
    struct hfd_demo *demo = arg;
    int64_t left_us;

    HFD_CHECK_OBJ(demo, DEMO_MAGIC);
    do {
        const int64_t next_us = hfd_demo_round(demo);

        left_us = next_us - hfd_clock_mono_us(demo->config.clock);
        if (left_us < WAIT_MIN_US)
            left_us = WAIT_MIN_US;
    } while (
        !hfd_sleeper_wait(&demo->sleeper, left_us < WAIT_MAX_US ? left_us : WAIT_MAX_US, NULL));
    hfd_store_reader_close(&demo->news.reader);
    return NULL;
}

hfd_rc hfd_demo_start(const struct hfd_demo_config *config, struct hfd_demo **out,
                      struct hfd_err *err)
{
    struct hfd_demo *demo;
    hfd_rc rc = hfd_demo_new(config, &demo, err);

    *out = demo;
    if (demo == NULL)
        return rc;
    HFD_LOG(HFD_LOG_WARN, "demo adapters are on: they report success, but no cluster is made",
            HFD_LOG_INT("total_ms", config->total_us / 1000));
    rc = hfd_sleeper_start(
        &demo->sleeper, &(struct hfd_thread){"hfd-demo", "demo adapters: thread", run_thread, demo},
        err);
    if (rc != HFD_OK) {
        hfd_demo_free(demo);
        *out = NULL;
    } else if (config->bell != NULL) {
        demo->listener =
            (struct hfd_bell_listener){.hear = hfd_sleeper_ring, .ctx = &demo->sleeper};
        hfd_bell_listen(config->bell, &demo->listener);
    }
    return rc;
}

void hfd_demo_stop(struct hfd_demo **out)
{
    struct hfd_demo *demo = *out;

    if (demo == NULL)
        return;
    HFD_CHECK_OBJ(demo, DEMO_MAGIC);
    if (demo->config.bell != NULL)
        hfd_bell_unlisten(demo->config.bell, &demo->listener);
    hfd_sleeper_stop(&demo->sleeper);
    hfd_demo_free(demo);
    *out = NULL;
}
