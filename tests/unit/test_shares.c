/*
 * The built-in adapters of two replicas on one store: the demo adapters and the HyperShift
 * adapter's view of the store. Each replica has a clock of its own, moved by hand.
 */
#include "driver/adapters/demo.h"
#include "driver/adapters/hypershift/fleet.h"
#include "driver/replica/keeper_int.h"
#include "store/migrate.h"
#include "store/rows_resource.h"
#include "tests/lib/world.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define S HFD_US_PER_S
#define ID "res-1"
static const char body[] = "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{\"cluster\":{"
                           "\"name\":\"c-one\",\"spec\":{\"region\":\"a\"}}}}}";

struct fixture {
    struct world w;
    struct test_clock machines[2];
    struct hfd_keeper *keepers[2];
    hfd_slice cluster;
};

static void beat(struct fixture *fx, int at)
{
    const struct hfd_keeper_config config = {.store = fx->w.store,
                                             .clock = &fx->machines[at].clock,
                                             .db = &fx->w.clock.clock,
                                             .rng = &fx->w.rng.rng,
                                             .name = "",
                                             .schema = (int64_t)hfd_migrations_count,
                                             .key_ids = ""};

    if (fx->keepers[at] == NULL)
        assert_int_equal(hfd_keeper_new(&config, &fx->keepers[at], NULL), HFD_OK);
    assert_int_equal(hfd_keeper_beat(fx->keepers[at], NULL), HFD_OK);
}

/* A look at what the store has on the resource. */
struct look {
    hfd_slice cluster;
    size_t reports;
    struct hfd_arena *mem;
};

static hfd_rc do_look(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct look *l = arg;
    struct hfd_part_list parts;
    struct hfd_report_list reports;
    hfd_rc rc = hfd_part_row_list(tx, HFD_SLICE(ID), l->mem, &parts, err);

    if (rc != HFD_OK)
        return rc;
    assert_int_equal(parts.count, 1);
    l->cluster = parts.rows[0].fleet_id;
    rc = hfd_report_row_list(tx, &(struct hfd_report_query){l->cluster, .limit = 100}, l->mem,
                             &reports, err);
    l->reports = reports.count;
    return rc;
}

static struct look look(struct fixture *fx)
{
    struct look l = {.mem = &fx->w.mem};

    assert_int_equal(hfd_store_read(fx->w.reader, do_look, &l, NULL), HFD_OK);
    return l;
}

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof(*fx));

    assert_non_null(fx);
    world_open(&fx->w);
    for (int i = 0; i < 2; i++)
        test_clock_init(&fx->machines[i]);
    (void)world_put_ok(&fx->w, ID, body, NULL);
    fx->cluster = look(fx).cluster;
    *state = fx;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;

    hfd_keeper_free(fx->keepers[0]);
    hfd_keeper_free(fx->keepers[1]);
    world_close(&fx->w);
    free(fx);
    return 0;
}

/* One round of the demo adapters of a replica. */
static void demo_round(struct fixture *fx, int at)
{
    const struct hfd_demo_config config = {.store = fx->w.store,
                                           .keeper = fx->keepers[at],
                                           .driver = &fx->w.driver,
                                           .clock = &fx->w.clock.clock};
    struct hfd_demo *demo;

    assert_int_equal(hfd_demo_new(&config, &demo, NULL), HFD_OK);
    (void)hfd_demo_round(demo);
    hfd_demo_free(demo);
}

/* They report for the replica that leads, and a stale one is refused. */
static void demo_adapters_report_once(void **state)
{
    struct fixture *fx = *state;

    beat(fx, 0);
    beat(fx, 1);
    demo_round(fx, 1);
    assert_int_equal(look(fx).reports, 0);
    test_clock_advance(&fx->w.clock, 10 * S);
    beat(fx, 1); /* it leads now, and the first one has not seen it */
    demo_round(fx, 0);
    assert_int_equal(look(fx).reports, 0);
    demo_round(fx, 1);
    assert_int_equal(look(fx).reports, 2);
}

/* Loads the resource as the HyperShift adapter of a replica does. */
static hfd_rc load(struct fixture *fx, struct hfd_hs_fleet_store *f, struct hfd_hs_work *w)
{
    return hfd_hs_fleet_store_ops.load(f, w, fx->cluster, NULL);
}

static void hypershift_works_while_it_leads(void **state)
{
    struct fixture *fx = *state;
    struct hfd_hs_fleet_store f[2];
    struct hfd_hs_work w[2];

    beat(fx, 0);
    beat(fx, 1);
    for (int i = 0; i < 2; i++) {
        f[i] = (struct hfd_hs_fleet_store){
            .store = fx->w.store, .driver = &fx->w.driver, .keeper = fx->keepers[i]};
        w[i] = (struct hfd_hs_work){.mem = &fx->w.mem};
        assert_int_equal(hfd_hs_fleet_store_ops.open(&f[i], NULL), HFD_OK);
    }
    assert_true(hfd_hs_fleet_store_ops.has_gained(&f[0]));
    assert_false(hfd_hs_fleet_store_ops.has_gained(&f[0]));
    assert_false(hfd_hs_fleet_store_ops.has_gained(&f[1]));
    assert_int_equal(load(fx, &f[0], &w[0]), HFD_OK);
    assert_int_equal(load(fx, &f[1], &w[1]), HFD_CONFLICT);
    assert_true(hfd_hs_fleet_store_ops.is_current(&f[0], &w[0]));
    test_clock_advance(&fx->w.clock, 10 * S);
    test_clock_advance(&fx->machines[0], 10 * S);
    assert_false(hfd_hs_fleet_store_ops.is_current(&f[0], &w[0]));
    beat(fx, 1);
    assert_true(hfd_hs_fleet_store_ops.has_gained(&f[1]));
    assert_int_equal(load(fx, &f[1], &w[1]), HFD_OK);
    assert_int_equal(load(fx, &f[0], &w[0]), HFD_CONFLICT);
    for (int i = 0; i < 2; i++) {
        hfd_hs_work_fini(&w[i]);
        hfd_hs_fleet_store_ops.close(&f[i]);
    }
}

/*
 * The lead is away and back between two looks. Visits between them were left to another replica,
 * so all is visited again.
 */
static void a_short_loss_of_the_lead_is_seen(void **state)
{
    struct fixture *fx = *state;
    struct hfd_hs_fleet_store f = {.store = fx->w.store, .driver = &fx->w.driver};
    struct hfd_hs_work w = {.mem = &fx->w.mem};

    beat(fx, 0);
    f.keeper = fx->keepers[0];
    assert_int_equal(hfd_hs_fleet_store_ops.open(&f, NULL), HFD_OK);
    assert_true(hfd_hs_fleet_store_ops.has_gained(&f));
    test_clock_advance(&fx->machines[0], 9 * S);
    assert_int_equal(load(fx, &f, &w), HFD_CONFLICT);
    beat(fx, 0);
    assert_true(hfd_hs_fleet_store_ops.has_gained(&f));
    assert_false(hfd_hs_fleet_store_ops.has_gained(&f));
    hfd_hs_work_fini(&w);
    hfd_hs_fleet_store_ops.close(&f);
}

/* A report of a visit that a stale replica made is not stored. */
static void a_stale_visit_is_refused(void **state)
{
    struct fixture *fx = *state;
    const struct hfd_hs_reports reports = {.count = 1,
                                           .items[0] = {.adapter = "validation",
                                                        .generation = 1,
                                                        .reason = "Passed",
                                                        .message = "",
                                                        .health_reason = "Healthy",
                                                        .health_message = "",
                                                        .data.text = HFD_SLICE("{}")}};
    struct hfd_hs_fleet_store f = {.store = fx->w.store, .driver = &fx->w.driver};
    struct hfd_hs_work w = {.mem = &fx->w.mem};

    beat(fx, 0);
    f.keeper = fx->keepers[0];
    assert_int_equal(hfd_hs_fleet_store_ops.open(&f, NULL), HFD_OK);
    assert_int_equal(load(fx, &f, &w), HFD_OK);
    test_clock_advance(&fx->w.clock, 10 * S);
    w.now_us = fx->w.clock.wall_us;
    beat(fx, 1);
    assert_true(hfd_hs_fleet_store_ops.has_gained(&f));
    assert_int_equal(hfd_hs_fleet_store_ops.send(&f, &w, &reports, NULL), HFD_OK);
    assert_int_equal(look(fx).reports, 0);
    assert_false(f.seen.leads); /* so a lead that comes back is one more to be seen */
    beat(fx, 0);                /* the second one leads, so the first one does not */
    f.keeper = fx->keepers[1];
    assert_int_equal(load(fx, &f, &w), HFD_OK);
    assert_int_equal(hfd_hs_fleet_store_ops.send(&f, &w, &reports, NULL), HFD_OK);
    assert_int_equal(look(fx).reports, 1);
    hfd_hs_work_fini(&w);
    hfd_hs_fleet_store_ops.close(&f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(demo_adapters_report_once),
        TEST(hypershift_works_while_it_leads),
        TEST(a_short_loss_of_the_lead_is_seen),
        TEST(a_stale_visit_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
