/* See demo.h. */
#include "driver/adapters/demo.h"

#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/thread.h"
#include "driver/core/transition.h"
#include "driver/fleet/report.h"
#include "driver/replica/keeper.h"
#include "store/rows_fleet.h"
#include "store/store.h"

/*
 * The demo adapters. One thread reads the resources whose Ready is not True, page by page, again
 * and again. It reports where an adapter is due. Between rounds it keeps only its place, so a
 * restart continues from the store, and nothing is missed. It does not report for adapters that are
 * not required, and not over another report at the same generation.
 */

/* The longest duration that a setting accepts. */
#define TOTAL_MAX_US (INT64_C(3653) * 86400 * HFD_US_PER_S)
#define WAIT_MIN_US INT64_C(20000)
#define WAIT_MAX_US INT64_C(250000)
#define PAGE_MAX 200
#define BATCH_MAX 32 /* resources in one transaction: other jobs wait for the writer, too */
/* A page of the largest documents does not fit; the page size is halved then. */
#define PAGE_MEM_BYTES ((size_t)64 << 20)
#define ROW_MEM_BYTES ((size_t)64 << 20)

/* A resource with something to report. Its texts live in the memory of the page. */
struct item {
    enum hfd_kind kind;
    hfd_slice owner_id, id;
    int64_t generation;
    bool deleting;
    int64_t *floor_us; /* by required adapter: see hfd_demo_is_due; -1 = not due */
};

struct hfd_demo {
    unsigned magic;
#define DEMO_MAGIC 0x64656d6fu
    struct hfd_demo_config config;
    struct hfd_store_reader *reader; /* opened by the first round, on its thread */
    struct hfd_hold hold;            /* of the present round */
    /* The next page begins behind this resource. */
    int64_t after_us;
    int64_t after_seq;
    int64_t page_limit;
    /* A failure is logged once, until a pass over all pages succeeds. */
    bool failing, pass_failed;
    pthread_t thread;
    pthread_mutex_t lock; /* of stop */
    pthread_cond_t wake;
    bool stop;
};

static const struct hfd_agg_report *report_of(const struct hfd_agg_reports *reports,
                                              hfd_slice adapter)
{
    for (size_t i = 0; i < reports->count; i++)
        if (hfd_slice_eq(reports->items[i].adapter, adapter))
            return &reports->items[i];
    return NULL;
}

bool hfd_demo_is_due(const struct hfd_demo_view *v, size_t at, int64_t *floor_us)
{
    const struct hfd_agg_report *r = report_of(&v->reports, v->required.items[at]);
    const int64_t n = (int64_t)v->required.count, k = (int64_t)at + 1;
    const int64_t step_us = v->total_us / n * k + v->total_us % n * k / n;

    *floor_us = r != NULL ? r->observed_us : 0;
    if (v->now_us - v->since_us < step_us && v->since_us - v->now_us <= v->total_us)
        return false;
    return r == NULL || r->observed_generation < v->generation ||
           (v->deleting && r->finalized != HFD_STATUS_TRUE);
}

/* ---- reading ---- */

struct page {
    struct hfd_demo *demo;
    struct hfd_arena *mem;
    struct hfd_fleet_list rows;
    struct item *items;
    size_t item_count;
    struct hfd_err bad; /* the first resource that could not be read; the others are reported on */
};

/* Adds the row to the page's items if an adapter is due. Reads reports into scratch. */
static hfd_rc add_if_due(struct hfd_txn *tx, struct page *page, const struct hfd_fleet_row *row,
                         struct hfd_arena *scratch, struct hfd_err *err)
{
    const struct hfd_demo_config *config = &page->demo->config;
    struct item *item = &page->items[page->item_count];
    struct hfd_demo_view view = {
        .required = config->driver->fleet.required[row->kind],
        .generation = row->generation,
        .deleting = row->deleted_us != 0,
        .since_us = row->deleted_us != 0 ? row->deleted_us : row->updated_us,
        .now_us = hfd_clock_wall_us(config->clock),
        .total_us = config->total_us,
    };
    bool any_due = false;
    int64_t floor_us;
    hfd_rc rc;

    /* The first adapter is due first: most resources end here, unread. */
    if (view.required.count == 0 || !hfd_demo_is_due(&view, 0, &floor_us))
        return HFD_OK;
    rc = hfd_fleet_reports(tx, row->id, scratch, &view.reports, err);
    if (rc != HFD_OK)
        return rc;
    *item = (struct item){
        .kind = row->kind,
        .owner_id = row->owner_id,
        .id = row->id,
        .generation = row->generation,
        .deleting = view.deleting,
        .floor_us = hfd_arena_array(page->mem, view.required.count, sizeof(int64_t)),
    };
    if (item->floor_us == NULL)
        return hfd_fail_nomem(err, "demo adapters: read a resource");
    for (size_t i = 0; i < view.required.count; i++) {
        if (hfd_demo_is_due(&view, i, &item->floor_us[i]))
            any_due = true;
        else
            item->floor_us[i] = -1;
    }
    page->item_count += any_due ? 1 : 0;
    return HFD_OK;
}

static hfd_rc read_page(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct page *page = arg;
    struct hfd_demo *demo = page->demo;
    hfd_rc rc;

    page->item_count = 0;
    page->bad.rc = HFD_OK;
    rc = hfd_fleet_row_pending(
        tx, &(struct hfd_pending_query){demo->after_us, demo->after_seq, demo->page_limit, false},
        page->mem, &page->rows, err);
    if (rc != HFD_OK)
        return rc;
    page->items = hfd_arena_array(page->mem, page->rows.count, sizeof(*page->items));
    if (page->items == NULL)
        return hfd_fail_nomem(err, "demo adapters: read a page");
    for (size_t i = 0; i < page->rows.count; i++) {
        struct hfd_arena scratch;
        struct hfd_err one;

        hfd_arena_init(&scratch, ROW_MEM_BYTES);
        rc = add_if_due(tx, page, &page->rows.rows[i], &scratch, &one);
        hfd_arena_fini(&scratch);
        if (rc != HFD_OK && page->bad.rc == HFD_OK)
            page->bad = one;
    }
    return HFD_OK;
}

/* ---- writing ---- */

struct batch {
    const struct hfd_demo_config *config;
    const struct hfd_hold *hold;
    const struct item *items;
    size_t count;
    int64_t now_us;
};

static hfd_rc report_one(struct hfd_txn *tx, const struct batch *batch, const struct item *item,
                         size_t adapter, struct hfd_err *err)
{
    const int64_t floor_us = item->floor_us[adapter];
    const hfd_slice reason = HFD_SLICE("Demo"),
                    message = HFD_SLICE("Demo adapter: no cluster is made.");
    const enum hfd_status done = item->deleting ? HFD_STATUS_FALSE : HFD_STATUS_TRUE;
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
        .target = {item->kind, item->owner_id, item->id},
        .adapter = batch->config->driver->fleet.required[item->kind].items[adapter],
        .observed_generation = item->generation,
        .observed_us = batch->now_us > floor_us ? batch->now_us : floor_us,
        .conditions = {conditions, item->deleting ? 4 : 3},
        .data = HFD_SLICE("{\"demo\":true}"),
    };
    struct hfd_arena mem;
    struct hfd_fleet_changes changes = {.mem = &mem};
    const struct hfd_fleet_call call = {.fleet = &batch->config->driver->fleet,
                                        .now_us = batch->now_us,
                                        .caller = HFD_SLICE("demo@hyperfleet.local"),
                                        .mem = &mem,
                                        .changes = &changes};
    struct hfd_fleet_reported stored;
    hfd_rc rc;

    hfd_arena_init(&mem, ROW_MEM_BYTES);
    rc = hfd_fleet_report(tx, &call, &report, &stored, err);
    if (rc == HFD_OK)
        rc = hfd_resource_observe(tx, batch->config->driver, &call, err);
    hfd_arena_fini(&mem);
    /* A resource that was removed since it was read, perhaps by the report before, is no error. */
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

static hfd_rc write_batch(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct batch *batch = arg;
    const hfd_rc held = hfd_keeper_check(batch->config->keeper, tx, batch->hold, err);

    for (size_t i = 0; held == HFD_OK && i < batch->count; i++) {
        const struct item *item = &batch->items[i];
        const struct hfd_adapter_names *required =
            &batch->config->driver->fleet.required[item->kind];

        for (size_t a = 0; a < required->count; a++) {
            hfd_rc rc;

            if (item->floor_us[a] < 0)
                continue;
            rc = report_one(tx, batch, item, a, err);
            if (rc != HFD_OK)
                return rc;
        }
    }
    /* Another replica reports now. */
    return held == HFD_CONFLICT ? HFD_OK : held;
}

static bool stopping(struct hfd_demo *demo)
{
    bool stop;

    pthread_mutex_lock(&demo->lock);
    stop = demo->stop;
    pthread_mutex_unlock(&demo->lock);
    return stop;
}

/*
 * Reports on count resources together. When that fails, it reports on each alone, so that a damaged
 * resource does not stop the others.
 */
static hfd_rc write_items(struct hfd_demo *demo, const struct item *items, size_t count,
                          struct hfd_err *err)
{
    struct batch batch = {.config = &demo->config,
                          .hold = &demo->hold,
                          .items = items,
                          .count = count,
                          .now_us = hfd_clock_wall_us(demo->config.clock)};
    hfd_rc rc = hfd_store_update_wait(demo->config.store, write_batch, &batch, err);

    if (rc == HFD_OK || count == 1 || !hfd_store_ok(demo->config.store))
        return rc;
    rc = HFD_OK;
    for (size_t i = 0; i < count && !stopping(demo); i++) {
        struct hfd_err one;

        batch.items = &items[i];
        batch.count = 1;
        if (hfd_store_update_wait(demo->config.store, write_batch, &batch, &one) != HFD_OK &&
            rc == HFD_OK) {
            *err = one;
            rc = one.rc;
        }
    }
    return rc;
}

/* ---- rounds ---- */

static void set_next_page(struct hfd_demo *demo, const struct hfd_fleet_list *rows, bool more)
{
    const struct hfd_fleet_row *last = more ? &rows->rows[rows->count - 1] : NULL;

    demo->after_us = last != NULL ? last->created_us : 0;
    demo->after_seq = last != NULL ? last->seq : 0;
}

/*
 * Reads one page and reports what is due.
 * @return HFD_OK, or the first failure
 */
static hfd_rc run_page(struct hfd_demo *demo, struct hfd_arena *mem, bool *more,
                       struct hfd_err *err)
{
    struct page page = {.demo = demo, .mem = mem};
    hfd_rc rc, first = HFD_OK;

    if (demo->reader == NULL) {
        rc = hfd_store_reader_open(demo->config.store, &demo->reader, err);
        if (rc != HFD_OK)
            return rc;
    }
    rc = hfd_store_read(demo->reader, read_page, &page, err);
    if (rc == HFD_NOMEM && demo->page_limit > 1) {
        demo->page_limit /= 2;
        *more = true;
        return HFD_OK;
    }
    if (rc != HFD_OK)
        return rc;
    for (size_t at = 0; at < page.item_count && !stopping(demo); at += BATCH_MAX) {
        const size_t left = page.item_count - at;
        struct hfd_err one;

        rc = write_items(demo, &page.items[at], left < BATCH_MAX ? left : BATCH_MAX, &one);
        if (rc != HFD_OK && first == HFD_OK) {
            first = rc;
            *err = one;
        }
    }
    *more = (int64_t)page.rows.count == demo->page_limit;
    set_next_page(demo, &page.rows, *more);
    if (demo->page_limit < PAGE_MAX)
        demo->page_limit = demo->page_limit * 2 < PAGE_MAX ? demo->page_limit * 2 : PAGE_MAX;
    if (first == HFD_OK && page.bad.rc != HFD_OK) {
        first = page.bad.rc;
        *err = page.bad;
    }
    return first;
}

bool hfd_demo_round(struct hfd_demo *demo)
{
    struct hfd_arena mem;
    struct hfd_err err;
    bool more = false;
    hfd_rc rc;

    hfd_keeper_hold(demo->config.keeper, &demo->hold);
    if (!demo->hold.leads)
        return false;
    hfd_arena_init(&mem, PAGE_MEM_BYTES);
    rc = run_page(demo, &mem, &more, &err);
    hfd_arena_fini(&mem);
    if (rc != HFD_OK && !demo->failing)
        HFD_LOG(HFD_LOG_WARN, "demo adapters could not report; will try again",
                HFD_LOG_CSTR("code", hfd_rc_name(rc)), HFD_LOG_CSTR("reason", err.msg));
    demo->pass_failed = demo->pass_failed || rc != HFD_OK;
    demo->failing = demo->failing || rc != HFD_OK;
    if (!more) {
        demo->failing = demo->pass_failed;
        demo->pass_failed = false;
    }
    return more;
}

hfd_rc hfd_demo_new(const struct hfd_demo_config *config, struct hfd_demo **out,
                    struct hfd_err *err)
{
    struct hfd_demo *demo;
    pthread_condattr_t attr;

    *out = NULL;
    if (config->total_us < 0 || config->total_us > TOTAL_MAX_US)
        return hfd_fail_field(err, HFD_INVALID, "demo", "demo: expected a time of 0 to ten years");
    demo = calloc(1, sizeof(*demo));
    if (demo == NULL)
        return hfd_fail_nomem(err, "start the demo adapters");
    demo->magic = DEMO_MAGIC;
    demo->config = *config;
    demo->page_limit = PAGE_MAX;
    pthread_mutex_init(&demo->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&demo->wake, &attr);
    pthread_condattr_destroy(&attr);
    *out = demo;
    return HFD_OK;
}

void hfd_demo_free(struct hfd_demo *demo)
{
    if (demo == NULL)
        return;
    HFD_CHECK_OBJ(demo, DEMO_MAGIC);
    hfd_store_reader_close(&demo->reader);
    pthread_cond_destroy(&demo->wake);
    pthread_mutex_destroy(&demo->lock);
    demo->magic = 0;
    free(demo);
}

/* ---- the thread ---- */

/*
 * Waits for the given time, or until hfd_demo_stop.
 * @return whether to stop. A condition variable knows only the system's clock.
 */
static bool wait_us(struct hfd_demo *demo, int64_t us)
{
    const int64_t until_us = hfd_clock_mono_us(&hfd_clock_system) + us;
    const struct timespec until = {.tv_sec = (time_t)(until_us / HFD_US_PER_S),
                                   .tv_nsec = (long)(until_us % HFD_US_PER_S) * 1000};
    bool stop;
    int rc = 0;

    pthread_mutex_lock(&demo->lock);
    while (!demo->stop && rc == 0)
        rc = pthread_cond_timedwait(&demo->wake, &demo->lock, &until);
    stop = demo->stop;
    pthread_mutex_unlock(&demo->lock);
    return stop;
}

static void *run_thread(void *arg)
{
    struct hfd_demo *demo = arg;
    int64_t pause_us;
    bool more;

    HFD_CHECK_OBJ(demo, DEMO_MAGIC);
    pause_us = demo->config.total_us / 20;
    if (pause_us < WAIT_MIN_US)
        pause_us = WAIT_MIN_US;
    if (pause_us > WAIT_MAX_US)
        pause_us = WAIT_MAX_US;
    do
        more = hfd_demo_round(demo);
    while (!wait_us(demo, more ? WAIT_MIN_US : pause_us));
    hfd_store_reader_close(&demo->reader);
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
    rc = hfd_thread_start(
        &(struct hfd_thread){"hfd-demo", "demo adapters: thread", run_thread, demo}, &demo->thread,
        err);
    if (rc != HFD_OK) {
        hfd_demo_free(demo);
        *out = NULL;
    }
    return rc;
}

void hfd_demo_stop(struct hfd_demo **out)
{
    struct hfd_demo *demo = *out;

    if (demo == NULL)
        return;
    HFD_CHECK_OBJ(demo, DEMO_MAGIC);
    pthread_mutex_lock(&demo->lock);
    demo->stop = true;
    pthread_cond_signal(&demo->wake);
    pthread_mutex_unlock(&demo->lock);
    pthread_join(demo->thread, NULL);
    hfd_demo_free(demo);
    *out = NULL;
}
