/* The demo adapters: when each is due, and rounds on a real store with time moved by hand. */
#include "driver/adapters/demo.h"

#include "driver/backend/backend.h"
#include "driver/base/base.h"
#include "driver/base/log.h"
#include "driver/fleet/report.h"
#include "store/rows_fleet.h"
#include "store/rows_report.h"
#include "tests/lib/contains.h"
#include "tests/lib/place.h"
#include "tests/lib/seams.h"
#include "tests/lib/tmpdir.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#define S HFD_US_PER_S

static const hfd_slice cluster_adapters[] = {HFD_SLICE("validation"), HFD_SLICE("dns"),
                                             HFD_SLICE("pullsecret"), HFD_SLICE("hypershift")};
static const hfd_slice nodepool_adapters[] = {HFD_SLICE("validation"), HFD_SLICE("hypershift")};

/* ---- when an adapter is due ---- */

static const struct {
    const char *what;
    int64_t since_s, now_s, total_s;
    bool deleting;
    int reported; /* the generation of dns's report; 0 = none */
    bool finalized;
    unsigned due; /* bit a: adapter a of the four, at generation 2 */
} due_rows[] = {
    {"at once", 100, 100, 0, false, 0, false, 0xf},
    {"nobody yet", 100, 100, 40, false, 0, false, 0},
    {"just before the first", 100, 109, 40, false, 0, false, 0},
    {"the first", 100, 110, 40, false, 0, false, 0x1},
    {"two", 100, 120, 40, false, 0, false, 0x3},
    {"three", 100, 139, 40, false, 0, false, 0x7},
    {"all at the end", 100, 140, 40, false, 0, false, 0xf},
    {"long after", 100, 100000, 40, false, 0, false, 0xf},
    {"dns has reported", 100, 140, 40, false, 2, false, 0xd},
    {"dns reported before the change", 100, 140, 40, false, 1, false, 0xf},
    {"dns reported while it lived", 100, 140, 40, true, 1, false, 0xf},
    {"dns reported since, not Finalized", 100, 140, 40, true, 2, false, 0xf},
    {"dns has finalized", 100, 140, 40, true, 2, true, 0xd},
    {"Finalized means nothing on what lives", 100, 140, 40, false, 1, true, 0xf},
    {"clock a little behind", 100, 90, 40, false, 0, false, 0},
    {"clock behind by the whole time", 100, 60, 40, false, 0, false, 0},
    {"clock was set back", 100, 59, 40, false, 0, false, 0xf},
    {"clock was set back, dns has reported", 100, 59, 40, false, 2, false, 0xd},
    {"ten years", 0, 315360000 / 2, 315360000, false, 0, false, 0x3},
};

/* Each adapter has its share of the time, and reports once a generation. */
static void demo_due_by_time_and_generation(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(due_rows) / sizeof(due_rows[0]); i++) {
        const struct hfd_agg_report dns = {.adapter = HFD_SLICE("dns"),
                                           .observed_generation = due_rows[i].reported,
                                           .observed_us = 77,
                                           .available = HFD_STATUS_FALSE,
                                           .finalized = due_rows[i].finalized ? HFD_STATUS_TRUE
                                                                              : HFD_STATUS_FALSE};
        const struct hfd_demo_view view = {.required = {cluster_adapters, 4},
                                           .reports = {&dns, due_rows[i].reported > 0 ? 1 : 0},
                                           .generation = 2,
                                           .deleting = due_rows[i].deleting,
                                           .since_us = due_rows[i].since_s * S,
                                           .now_us = due_rows[i].now_s * S,
                                           .total_us = due_rows[i].total_s * S};
        unsigned due = 0;
        int64_t floor_us;

        for (size_t a = 0; a < 4; a++) {
            due |= (unsigned)(hfd_demo_due_us(&view, a, &floor_us) <= view.now_us) << a;
            assert_int_equal(floor_us, a == 1 && due_rows[i].reported > 0 ? 77 : 0);
        }
        if (due != due_rows[i].due)
            fail_msg("%s: %x", due_rows[i].what, due);
    }
}

/* ---- rounds ---- */

struct fixture {
    char dir[TMPDIR_MAX];
    struct hfd_store *store;
    struct hfd_store_reader *reader;
    struct hfd_driver driver;
    struct test_clock clock;
    struct test_rng rng;
    struct hfd_demo *demo;
    struct hfd_arena mem;
};

static int setup(void **state)
{
    static struct fixture fx;
    struct hfd_store_config config = {0};

    memset(&fx, 0, sizeof(fx));
    tmpdir_make(fx.dir);
    config.place = test_place(fx.dir);
    test_clock_init(&fx.clock);
    test_rng_init(&fx.rng, 1);
    hfd_arena_init(&fx.mem, 64u << 20);
    fx.driver.fleet = (struct hfd_fleet){
        .required = {[HFD_KIND_CLUSTER] = {cluster_adapters, 4},
                     [HFD_KIND_NODEPOOL] = {nodepool_adapters, 2}},
        .rng = &fx.rng.rng,
    };
    fx.driver.backend_ops = &hfd_backend_embedded;
    assert_int_equal(hfd_store_open(&config, &fx.store, NULL), HFD_OK);
    assert_int_equal(hfd_store_reader_open(fx.store, &fx.reader, NULL), HFD_OK);
    *state = &fx;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;

    hfd_demo_free(fx->demo);
    hfd_store_reader_close(&fx->reader);
    hfd_store_close(&fx->store);
    hfd_arena_fini(&fx->mem);
    tmpdir_remove(fx->dir);
    return 0;
}

static struct hfd_demo_config config_of(struct fixture *fx, int64_t total_us)
{
    return (struct hfd_demo_config){
        .store = fx->store, .driver = &fx->driver, .clock = &fx->clock.clock, .total_us = total_us};
}

static void begin(struct fixture *fx, int64_t total_us)
{
    const struct hfd_demo_config config = config_of(fx, total_us);

    assert_int_equal(hfd_demo_new(&config, &fx->demo, NULL), HFD_OK);
}

enum verb {
    CREATE,
    PATCH,
    DELETE,
    REPORT,
    BAD_REPORT,
    CONDITIONS
};

/* One step of a test, in a transaction. */
struct deed {
    struct fixture *fx;
    enum verb verb;
    enum hfd_kind kind;
    hfd_slice owner_id, id;
    const char *text; /* name, spec, adapter, or conditions */
    int count;        /* CREATE: this many, named after text */
};

static hfd_rc do_create(struct hfd_txn *tx, struct deed *d, const struct hfd_fleet_call *call,
                        struct hfd_fleet_row *row, struct hfd_err *err)
{
    for (int i = 0; i < d->count; i++) {
        const struct hfd_fleet_create in = {
            .kind = d->kind,
            .owner_id = d->owner_id,
            .name = d->count == 1 ? hfd_slice_of(d->text)
                                  : hfd_arena_printf(call->mem, "%s%d", d->text, i),
            .spec = HFD_SLICE("{}"),
            .labels = HFD_SLICE("{}")};
        const hfd_rc rc = hfd_fleet_create(tx, call, &in, row, err);

        if (rc != HFD_OK)
            return rc;
    }
    return HFD_OK;
}

static hfd_rc do_report(struct hfd_txn *tx, struct deed *d, const struct hfd_fleet_call *call,
                        struct hfd_err *err)
{
    struct hfd_condition cs[] = {
        {.type = HFD_SLICE("Available"), .status = HFD_STATUS_FALSE, .reason = HFD_SLICE("ByHand")},
        {.type = HFD_SLICE("Applied"), .status = HFD_STATUS_FALSE},
        {.type = HFD_SLICE("Health"), .status = HFD_STATUS_TRUE},
    };
    const struct hfd_fleet_report report = {.target = {d->kind, d->owner_id, d->id},
                                            .adapter = hfd_slice_of(d->text),
                                            .observed_generation = d->count,
                                            .observed_us =
                                                call->now_us + 5 * S, /* a clock that runs ahead */
                                            .conditions = {cs, 3},
                                            .data = HFD_SLICE("{}")};
    struct hfd_fleet_reported stored;

    return hfd_fleet_report(tx, call, &report, &stored, err);
}

static hfd_rc do_deed(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct deed *d = arg;
    const struct hfd_fleet_call call = {.fleet = &d->fx->driver.fleet,
                                        .now_us = d->fx->clock.wall_us,
                                        .caller = HFD_SLICE("test@example.com"),
                                        .mem = &d->fx->mem};
    const struct hfd_fleet_patch patch = {.target = {d->kind, d->owner_id, d->id},
                                          .spec = hfd_slice_of(d->text)};
    const struct hfd_report_row bad = {.fleet_id = d->id,
                                       .adapter = hfd_slice_of(d->text),
                                       .observed_generation = 1,
                                       .conditions = HFD_SLICE("garbage"),
                                       .data = HFD_SLICE("{}"),
                                       .metadata = HFD_SLICE("")};
    struct hfd_fleet_row row = {0};
    hfd_rc rc = HFD_OK;
    struct hfd_fleet_deletion deletion;

    switch (d->verb) {
    case CREATE:
        rc = do_create(tx, d, &call, &row, err);
        d->id = row.id;
        break;
    case PATCH:
        rc = hfd_fleet_patch(tx, &call, &patch, &row, err);
        break;
    case DELETE:
        rc = hfd_fleet_delete(tx, &call, &patch.target, &deletion, err);
        break;
    case REPORT:
        rc = do_report(tx, d, &call, err);
        break;
    case BAD_REPORT:
        rc = hfd_report_row_put(tx, &bad, err);
        break;
    case CONDITIONS:
        rc = hfd_fleet_row_get(tx, d->id, &d->fx->mem, &row, err);
        row.conditions = hfd_slice_of(d->text);
        if (rc == HFD_OK)
            rc = hfd_fleet_row_judged(tx, &row, &row, err);
        break;
    }
    return rc;
}

/*
 * Runs the step.
 * @return the id of the resource
 */
static hfd_slice act(struct fixture *fx, struct deed d)
{
    struct hfd_err err;

    d.fx = fx;
    if (hfd_store_update_wait(fx->store, do_deed, &d, &err) != HFD_OK)
        fail_msg("%s", err.msg);
    return d.id;
}

static hfd_slice create(struct fixture *fx, enum hfd_kind kind, hfd_slice owner_id,
                        const char *name)
{
    return act(fx,
               (struct deed){
                   .verb = CREATE, .kind = kind, .owner_id = owner_id, .text = name, .count = 1});
}

/* The state of one resource in the store, and how many are pending. */
struct look {
    struct fixture *fx;
    hfd_slice id;
    bool exists;
    struct hfd_fleet_row row;
    struct hfd_report_list rows;
    struct hfd_agg_reports reports;
    size_t pending;
};

static hfd_rc do_look(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct look *l = arg;
    struct hfd_fleet_list pending = {0};
    hfd_rc rc = hfd_fleet_row_get(tx, l->id, &l->fx->mem, &l->row, err);

    l->exists = rc == HFD_OK;
    if (rc == HFD_OK)
        rc = hfd_fleet_reports(tx, l->id, &l->fx->mem, &l->reports, err);
    if (rc == HFD_OK)
        rc = hfd_report_row_list(tx, &(struct hfd_report_query){l->id, .limit = 1000}, &l->fx->mem,
                                 &l->rows, err);
    if (rc == HFD_OK || rc == HFD_NOT_FOUND)
        rc = hfd_fleet_row_pending(tx, &(struct hfd_pending_query){0, 0, 10000, false}, &l->fx->mem,
                                   &pending, err);
    l->pending = pending.count;
    return rc;
}

static struct look look(struct fixture *fx, hfd_slice id)
{
    struct look l = {.fx = fx, .id = id};

    assert_int_equal(hfd_store_read(fx->reader, do_look, &l, NULL), HFD_OK);
    return l;
}

/*
 * With a time of 0 a cluster and its nodepools are Ready after one round. Once deleted, they are
 * removed after two.
 */
static void demo_brings_up_and_takes_down(void **state)
{
    struct fixture *fx = *state;
    const hfd_slice cluster = create(fx, HFD_KIND_CLUSTER, HFD_SLICE_NONE, "c1");
    const hfd_slice pool = create(fx, HFD_KIND_NODEPOOL, cluster, "np1");
    struct look l;

    begin(fx, 0);
    assert_int_equal(hfd_demo_round(fx->demo), INT64_MAX);
    l = look(fx, cluster);
    assert_true(l.row.ready);
    assert_int_equal(l.pending, 0);
    assert_int_equal(l.rows.count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_true(hfd_slice_is(l.rows.rows[i].data, "{\"demo\":true}"));
        assert_contains(l.rows.rows[i].conditions, "no cluster is made");
    }
    l = look(fx, pool);
    assert_true(l.row.ready);
    assert_int_equal(l.rows.count, 2);

    test_clock_advance(&fx->clock, S);
    (void)act(fx, (struct deed){.verb = DELETE, .kind = HFD_KIND_CLUSTER, .id = cluster});
    assert_int_equal(look(fx, cluster).pending, 2);
    (void)hfd_demo_round(fx->demo);
    assert_false(look(fx, pool).exists);
    assert_false(look(fx, cluster).exists);
}

/*
 * The adapters report one by one over the time, each change starts it anew, and so does the
 * deletion.
 */
static void demo_takes_its_time(void **state)
{
    static const size_t after[] = {0, 1, 2, 3};
    struct fixture *fx = *state;
    const hfd_slice cluster = create(fx, HFD_KIND_CLUSTER, HFD_SLICE_NONE, "c1");
    struct look l;

    begin(fx, 40 * S);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(hfd_demo_round(fx->demo), fx->clock.mono_us + 10 * S);
        l = look(fx, cluster);
        assert_int_equal(l.rows.count, after[i]);
        assert_false(l.row.ready);
        test_clock_advance(&fx->clock, 10 * S);
    }
    (void)hfd_demo_round(fx->demo);
    assert_true(look(fx, cluster).row.ready);

    (void)act(fx, (struct deed){
                      .verb = PATCH, .kind = HFD_KIND_CLUSTER, .id = cluster, .text = "{\"a\":1}"});
    (void)hfd_demo_round(fx->demo);
    l = look(fx, cluster);
    assert_int_equal(l.row.generation, 2);
    assert_int_equal(l.reports.items[0].observed_generation, 1);
    test_clock_advance(&fx->clock, 10 * S);
    (void)hfd_demo_round(fx->demo);
    l = look(fx, cluster);
    assert_int_equal(l.reports.items[0].observed_generation, 2);
    assert_int_equal(l.reports.items[1].observed_generation, 1);
    test_clock_advance(&fx->clock, 30 * S);
    (void)hfd_demo_round(fx->demo);
    assert_true(look(fx, cluster).row.ready);

    (void)act(fx, (struct deed){.verb = DELETE, .kind = HFD_KIND_CLUSTER, .id = cluster});
    test_clock_advance(&fx->clock, 39 * S);
    (void)hfd_demo_round(fx->demo);
    l = look(fx, cluster);
    assert_true(l.exists);
    assert_int_equal(l.reports.items[2].finalized, HFD_STATUS_TRUE);
    assert_int_equal(l.reports.items[3].finalized, HFD_STATUS_FALSE);
    test_clock_advance(&fx->clock, S);
    (void)hfd_demo_round(fx->demo);
    assert_false(look(fx, cluster).exists);
}

/*
 * A report that was made by hand stands until the generation moves on. A report from a clock that
 * runs ahead is no obstacle then.
 */
static void demo_leaves_others_reports_alone(void **state)
{
    struct fixture *fx = *state;
    const hfd_slice cluster = create(fx, HFD_KIND_CLUSTER, HFD_SLICE_NONE, "c1");
    struct look l;

    (void)act(
        fx,
        (struct deed){
            .verb = REPORT, .kind = HFD_KIND_CLUSTER, .id = cluster, .text = "dns", .count = 1});
    begin(fx, 0);
    (void)hfd_demo_round(fx->demo);
    l = look(fx, cluster);
    assert_int_equal(l.rows.count, 4);
    assert_false(l.row.ready);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(hfd_slice_is(l.reports.items[i].reason, "ByHand"),
                         hfd_slice_is(l.reports.items[i].adapter, "dns"));

    (void)act(fx, (struct deed){.verb = DELETE, .kind = HFD_KIND_CLUSTER, .id = cluster});
    (void)act(
        fx,
        (struct deed){
            .verb = REPORT, .kind = HFD_KIND_CLUSTER, .id = cluster, .text = "dns", .count = 2});
    (void)hfd_demo_round(fx->demo);
    assert_false(look(fx, cluster).exists);
}

/* A kind without required adapters gets no report. */
static void demo_is_silent_where_nobody_is_required(void **state)
{
    struct fixture *fx = *state;
    hfd_slice cluster;

    fx->driver.fleet.required[HFD_KIND_CLUSTER].count = 0;
    cluster = create(fx, HFD_KIND_CLUSTER, HFD_SLICE_NONE, "c1");
    begin(fx, 0);
    assert_int_equal(hfd_demo_round(fx->demo), INT64_MAX);
    assert_int_equal(look(fx, cluster).rows.count, 0);
}

/*
 * Many resources are listed page by page, and all served. Later ones, with a later or
 * earlier time, is served by the next round. A restart finds what is left.
 */
static void demo_serves_many(void **state)
{
    struct fixture *fx = *state;
    hfd_slice early, late;

    fx->driver.fleet.required[HFD_KIND_CLUSTER].count = 1;
    (void)act(fx,
              (struct deed){.verb = CREATE, .kind = HFD_KIND_CLUSTER, .text = "c", .count = 450});
    begin(fx, 0);
    (void)hfd_demo_round(fx->demo);
    test_clock_advance(&fx->clock, -S);
    early = create(fx, HFD_KIND_CLUSTER, HFD_SLICE_NONE, "early");
    test_clock_advance(&fx->clock, 2 * S);
    late = create(fx, HFD_KIND_CLUSTER, HFD_SLICE_NONE, "late");
    assert_int_equal(look(fx, early).pending, 2);
    (void)hfd_demo_round(fx->demo);
    assert_true(look(fx, late).row.ready);
    assert_int_equal(look(fx, early).pending, 0);
    (void)act(fx,
              (struct deed){.verb = CREATE, .kind = HFD_KIND_CLUSTER, .text = "d", .count = 30});
    hfd_demo_free(fx->demo);
    begin(fx, 0);
    (void)hfd_demo_round(fx->demo);
    assert_int_equal(look(fx, early).pending, 0);
}

/* Resources that cannot be read or written are logged once, and the others are served. */
static void demo_goes_on_around_a_bad_resource(void **state)
{
    static const char wanted[] = "could not report";
    struct fixture *fx = *state;
    hfd_slice unreadable, unwritable, good, conditions;
    char log[2048], path[TMPDIR_MAX + 8];
    const char *first;
    ssize_t n;
    int fd;

    unreadable = create(fx, HFD_KIND_CLUSTER, HFD_SLICE_NONE, "unreadable");
    (void)act(fx, (struct deed){.verb = BAD_REPORT, .id = unreadable, .text = "dns"});
    unwritable = create(fx, HFD_KIND_CLUSTER, HFD_SLICE_NONE, "unwritable");
    good = create(fx, HFD_KIND_CLUSTER, HFD_SLICE_NONE, "good");
    (void)snprintf(path, sizeof(path), "%s/log", fx->dir);
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    hfd_log_set_fd(fd);
    conditions = look(fx, unwritable).row.conditions;
    (void)act(fx, (struct deed){.verb = CONDITIONS, .id = unwritable, .text = "garbage"});
    begin(fx, 0);
    for (int i = 0; i < 3; i++)
        (void)hfd_demo_round(fx->demo);
    hfd_log_set_fd(-1);
    n = pread(fd, log, sizeof(log) - 1, 0);
    assert_true(n > 0);
    log[n] = '\0';
    assert_int_equal(close(fd), 0);
    first = strstr(log, wanted);
    assert_non_null(first);
    assert_null(strstr(first + 1, wanted));
    assert_true(look(fx, good).row.ready);
    assert_int_equal(look(fx, unwritable).rows.count, 0);
    (void)act(fx, (struct deed){.verb = CONDITIONS, .id = unwritable, .text = conditions.p});
    (void)hfd_demo_round(fx->demo);
    assert_true(look(fx, unwritable).row.ready);
}

/* The thread reports by itself, and stops at once even when its time is long. */
static void demo_thread_runs_and_stops(void **state)
{
    struct fixture *fx = *state;
    struct hfd_demo_config config = config_of(fx, 0);
    struct hfd_demo *demo;
    bool ready = false;
    hfd_slice id;

    hfd_log_set_level(HFD_LOG_ERROR);
    assert_int_equal(hfd_demo_start(&config, &demo, NULL), HFD_OK);
    id = create(fx, HFD_KIND_CLUSTER, HFD_SLICE_NONE, "c1");
    while (!ready) {
        const struct hfd_arena_mark mark = hfd_arena_mark(&fx->mem);

        ready = look(fx, id).row.ready;
        hfd_arena_rewind(&fx->mem, mark);
        (void)sched_yield();
    }
    hfd_demo_stop(&demo);
    assert_null(demo);
    hfd_demo_stop(&demo);

    config.total_us = 86400 * S;
    assert_int_equal(hfd_demo_start(&config, &demo, NULL), HFD_OK);
    hfd_demo_stop(&demo);
    config.total_us = -1;
    assert_int_equal(hfd_demo_start(&config, &demo, NULL), HFD_INVALID);
    assert_null(demo);
    hfd_log_set_level(HFD_LOG_INFO);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(demo_due_by_time_and_generation),
        TEST(demo_brings_up_and_takes_down),
        TEST(demo_takes_its_time),
        TEST(demo_leaves_others_reports_alone),
        TEST(demo_is_silent_where_nobody_is_required),
        TEST(demo_serves_many),
        TEST(demo_goes_on_around_a_bad_resource),
        TEST(demo_thread_runs_and_stops),
    };

    if (hfd_base_init(NULL) != HFD_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
