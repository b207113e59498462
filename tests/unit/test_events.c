/* Events: their bytes, which pass a filter, and the order in which resources become due. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "driver/events/event.h"
#include "driver/events/repeats.h"
#include "driver/fleet/fleet.h"
#include "store/rows_due.h"
#include "store/rows_history.h"
#include "tests/lib/world.h"

#define S(text) HFD_SLICE(text)
#define TEXT(text)                                                                                 \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    } /* where a constant must be one */
#define DAY_US (24 * 3600 * HFD_US_PER_S)
#define CLUSTER "23FwQ6uu0sspAdN2DzxZI7sOLIl"
#define POOL "23FwQ6uu0seuYarr2aM6OlWTThZ"
#define REFERENCE                                                                                  \
    "\"href\":\"/api/hyperfleet/v1/clusters/" CLUSTER "\",\"id\":\"" CLUSTER                       \
    "\",\"kind\":\"Cluster\""

static const struct hfd_due_row cluster = {.seq = 7,
                                           .id = TEXT(CLUSTER),
                                           .kind = HFD_KIND_CLUSTER,
                                           .owner_id = TEXT(""),
                                           .generation = 1,
                                           .labels = TEXT("{\"a\":\"1\",\"b\":\"\"}"),
                                           .at_us = INT64_C(1795000000123456)};
static const struct hfd_due_row pool = {.seq = 8,
                                        .id = TEXT(POOL),
                                        .kind = HFD_KIND_NODEPOOL,
                                        .owner_id = TEXT(CLUSTER),
                                        .generation = 12,
                                        .labels = TEXT("not JSON"),
                                        .at_us = INT64_C(1795000000123456)};

/* ---- documents ---- */

static void assert_event(const struct hfd_due_row *row, const char *kind, const char *data)
{
    char head[200], id[37];
    struct hfd_buf b;

    hfd_buf_init(&b, 4096);
    hfd_event_format(&b, row);
    hfd_buf_addc(&b, '\0');
    assert_int_equal(b.rc, HFD_OK);
    (void)snprintf(id, sizeof(id), "%.36s", b.p + sizeof("{\"specversion\":\"1.0\",\"id\":\"") - 1);
    /* Milliseconds, version 7, variant 10. */
    assert_memory_equal(id, "01a1ee56-5e7b-7", 15);
    assert_true(strchr("89ab", id[19]) != NULL);
    (void)snprintf(head, sizeof(head),
                   "{\"specversion\":\"1.0\",\"id\":\"%s\",\"source\":\"hyperfleet-sentinel\","
                   "\"type\":\"com.redhat.hyperfleet.%s.reconcile\","
                   "\"datacontenttype\":\"application/json\",\"data\":",
                   id, kind);
    assert_memory_equal(b.p, head, strlen(head));
    assert_string_equal(b.p + strlen(head), data);
    hfd_buf_fini(&b);
}

static void the_bytes_are_upstreams(void **state)
{
    struct hfd_due_row traced = cluster;

    (void)state;
    assert_event(&cluster, "cluster", "{\"generation\":1," REFERENCE "}}");
    assert_event(&pool, "nodepool",
                 "{\"generation\":12,\"href\":\"/api/hyperfleet/v1/clusters/" CLUSTER
                 "/nodepools/" POOL "\",\"id\":\"" POOL
                 "\",\"kind\":\"NodePool\",\"owner_references\":{" REFERENCE "}}}");
    traced.trace = S("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    assert_event(&traced, "cluster",
                 "{\"generation\":1," REFERENCE "},\"traceparent\":"
                 "\"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\"}");
}

static hfd_slice id_of(struct hfd_buf *b, const struct hfd_due_row *row)
{
    const size_t from = sizeof("{\"specversion\":\"1.0\",\"id\":\"") - 1;

    hfd_buf_init(b, 4096);
    hfd_event_format(b, row);
    return (hfd_slice){b->p + from, 36};
}

/* The same change has the same id; any other has another. */
static void an_id_follows_from_the_change(void **state)
{
    struct hfd_due_row other[3] = {cluster, cluster, cluster};
    struct hfd_buf a, b;
    hfd_slice first;

    (void)state;
    other[0].seq++;
    other[1].id = S(POOL);
    other[2].at_us += 1000;
    first = id_of(&a, &cluster);
    assert_true(hfd_slice_eq(first, id_of(&b, &cluster)));
    hfd_buf_fini(&b);
    for (int i = 0; i < 3; i++) {
        assert_false(hfd_slice_eq(first, id_of(&b, &other[i])));
        hfd_buf_fini(&b);
    }
    hfd_buf_fini(&a);
}

static void filters(void **state)
{
    static const struct {
        struct hfd_event_filter filter;
        bool cluster, pool;
    } rows[] = {
        {{.kind = 0}, true, true},
        {{.kind = HFD_KIND_CLUSTER}, true, false},
        {{.kind = HFD_KIND_NODEPOOL}, false, true},
        {{.labels = {{TEXT("a"), TEXT("1")}}, .label_count = 1}, true, false},
        {{.labels = {{TEXT("a"), TEXT("")}}, .label_count = 1}, false, false},
        {{.labels = {{TEXT("b"), TEXT("")}}, .label_count = 1}, true, false},
        {{.labels = {{TEXT("c"), TEXT("")}}, .label_count = 1}, false, false},
        {{.labels = {{TEXT("a"), TEXT("1")}, {TEXT("b"), TEXT("2")}}, .label_count = 2},
         false,
         false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(hfd_event_passes(&rows[i].filter, &cluster), rows[i].cluster);
        assert_int_equal(hfd_event_passes(&rows[i].filter, &pool), rows[i].pool);
    }
}

/* ---- what is due ---- */

static const char body[] =
    "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{\"cluster\":{\"name\":\"c-one\","
    "\"spec\":{}},\"nodepools\":[{\"name\":\"np-one\",\"spec\":{}}]}}}";

struct asked {
    struct world *w;
    int64_t after, last;
    struct hfd_due_page page;
};

static hfd_rc txn_list(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct asked *a = arg;
    const hfd_rc rc = hfd_due_last(tx, &a->last, err);

    return rc == HFD_OK ? hfd_due_list(tx, a->after, 100, &a->w->mem, &a->page, err) : rc;
}

static struct asked list(struct world *w, int64_t after)
{
    struct asked a = {.w = w, .after = after};

    assert_int_equal(hfd_store_read(w->reader, txn_list, &a, &w->err), HFD_OK);
    return a;
}

struct forget {
    int64_t before_us, held_us;
    bool more;
};

static hfd_rc txn_forget(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct forget *f = arg;

    return hfd_due_forget(tx, &(struct hfd_due_old){f->before_us, f->held_us, 1}, &f->more, err);
}

static void assert_row(const struct hfd_due_row *row, enum hfd_kind kind, int64_t generation,
                       bool gone)
{
    assert_int_equal(row->kind, kind);
    assert_int_equal(row->generation, generation);
    assert_int_equal(row->gone_us != 0, gone);
}

/* Numbers go on over restarts, and over the removal of all that had one. */
static void numbers_outlive_what_had_them(void **state)
{
    struct world *w = *state;
    struct forget f = {.before_us = 0};
    struct asked a = list(w, 0);
    int64_t last;

    assert_int_equal(a.page.count, 0);
    (void)world_put_ok(w, "g", body, NULL);
    a = list(w, a.last);
    assert_int_equal(a.page.count, 2);
    assert_row(&a.page.rows[0], HFD_KIND_CLUSTER, 1, false);
    assert_row(&a.page.rows[1], HFD_KIND_NODEPOOL, 1, false);
    assert_in_range(a.page.last, a.page.rows[0].seq + 1, a.last);
    world_succeed_all(w, "g");
    assert_int_equal(list(w, a.page.last).page.count, 0);
    (void)world_delete_ok(w, "g", NULL);
    world_succeed_all(w, "g");
    a = list(w, a.page.last);
    assert_int_equal(a.page.count, 2);
    assert_row(&a.page.rows[0], HFD_KIND_CLUSTER, 2, true);
    assert_row(&a.page.rows[1], HFD_KIND_NODEPOOL, 2, true);
    assert_int_equal(list(w, 0).page.count, 2);
    last = a.page.last;
    f.before_us = world_now(w) + DAY_US;
    for (f.more = true; f.more;)
        assert_int_equal(hfd_store_update_wait(w->store, txn_forget, &f, &w->err), HFD_OK);
    world_restart(w);
    a = list(w, last);
    assert_int_equal(a.page.count, 0);
    assert_int_equal(a.page.floor, last);
    assert_in_range(a.last, last, INT64_MAX);
    assert_int_equal(list(w, a.last + (INT64_C(1) << 40)).page.floor, INT64_MAX);
    (void)world_put_ok(w, "h", body, NULL);
    a = list(w, last);
    assert_int_equal(a.page.count, 2);
    assert_in_range(a.page.rows[0].seq, last + 1, a.page.rows[1].seq - 1);
}

/* Young ones stay, and the floor with them. */
static void young_ones_are_kept(void **state)
{
    struct world *w = *state;
    struct forget f = {.before_us = 0};

    (void)world_put_ok(w, "g", body, NULL);
    (void)world_delete_ok(w, "g", NULL);
    world_succeed_all(w, "g");
    f.before_us = world_now(w) - 1;
    assert_int_equal(hfd_store_update_wait(w->store, txn_forget, &f, &w->err), HFD_OK);
    assert_false(f.more);
    assert_int_equal(list(w, 0).page.count, 2);
    assert_int_equal(list(w, 0).page.floor, 0);
}

struct reach {
    int64_t seq;
    enum hfd_stream stream;
};

static hfd_rc txn_reach(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct reach *r = arg;

    return hfd_outbox_row_put(
        tx, &(struct hfd_outbox_row){.name = S("t"), .stream = r->stream, .seq = r->seq}, err);
}

/* Rows that a target of events lacks are kept for longer, but not for ever. */
static void targets_hold_what_they_lack(void **state)
{
    struct world *w = *state;
    struct forget f = {.before_us = 0};
    struct reach r;
    int64_t first;

    (void)world_put_ok(w, "g", body, NULL);
    (void)world_delete_ok(w, "g", NULL);
    world_succeed_all(w, "g");
    first = list(w, 0).page.rows[0].seq;
    assert_int_equal(list(w, 0).page.count, 2);
    f.before_us = world_now(w) + DAY_US;
    for (int64_t reached = first - 1; reached <= first; reached++) {
        r = (struct reach){reached, HFD_STREAM_RECONCILE};
        assert_int_equal(hfd_store_update_wait(w->store, txn_reach, &r, &w->err), HFD_OK);
        for (f.more = true; f.more;)
            assert_int_equal(hfd_store_update_wait(w->store, txn_forget, &f, &w->err), HFD_OK);
        assert_int_equal(list(w, 0).page.count, reached < first ? 2 : 1);
        assert_int_equal(list(w, 0).page.floor, reached < first ? 0 : first);
    }
    f.held_us = f.before_us;
    assert_int_equal(hfd_store_update_wait(w->store, txn_forget, &f, &w->err), HFD_OK);
    assert_int_equal(list(w, 0).page.count, 0);
}

static int rings;

static void count_ring(void *ctx)
{
    rings++;
    assert_non_null(ctx);
}

/* The bell rings for changes that are on disk, and for no others. */
static void the_bell_rings(void **state)
{
    struct world *w = *state;

    w->driver.fleet.bell = (struct hfd_fleet_bell){count_ring, w};
    rings = 0;
    (void)world_put_ok(w, "g", body, NULL);
    assert_int_equal(rings, 2);
    (void)world_put_ok(w, "g", body, NULL);
    world_succeed_all(w, "g");
    assert_int_equal(rings, 2);
    (void)world_delete_ok(w, "g", NULL);
    assert_int_equal(rings, 4);
    (void)world_delete_ok(w, "g", NULL);
    assert_int_equal(rings, 4);
    test_clock_advance(&w->clock, 3600 * HFD_US_PER_S);
    (void)world_delete_ok(w, "g", NULL); /* a new attempt, past the deadline */
    assert_int_equal(rings, 6);
}

/* ---- repeats ---- */

#define S_ HFD_US_PER_S
#define MINUTES (60 * HFD_US_PER_S)

/*
 * A resource that changed at 0 is looked at, now and then. Its pauses double up to half an hour; a
 * change begins anew.
 */
static void the_rule_of_repeats(void **state)
{
    static const struct {
        int64_t at_us;
        uint64_t state;
        bool reconciled, due;
    } looks[] = {
        {1 * S_, 1, false, false},
        {10 * S_, 1, false, true},
        {11 * S_, 1, false, false},
        {29 * S_, 1, false, false},
        {30 * S_, 1, false, true},
        {70 * S_, 1, false, true},
        {149 * S_, 1, false, false},
        {150 * S_, 1, false, true},
        {151 * S_, 2, false, false},
        {160 * S_, 2, false, false},
        {161 * S_, 2, false, true},
        {180 * S_, 2, false, false},
        {181 * S_, 2, false, true},
        {182 * S_, 3, true, false},
        {30 * MINUTES, 3, true, false},
        {182 * S_ + 30 * MINUTES, 3, true, true},
        {60 * MINUTES, 3, true, false},
        {182 * S_ + 60 * MINUTES, 3, true, true},
        {70 * MINUTES, 4, false, false},
        {70 * MINUTES + 9 * S_, 4, false, false},
        {70 * MINUTES + 10 * S_, 4, false, true},
        {70 * MINUTES + 11 * S_, 4, false, false},
        {20 * MINUTES, 4, false, true}, /* the clock was set back */
        {20 * MINUTES + 39 * S_, 4, false, false},
        {20 * MINUTES + 40 * S_, 4, false, true},
    };
    struct hfd_repeat known = {0}, old = {0};
    int64_t now_us = 0;
    int count = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
        const struct hfd_repeat_look look = {
            .state = looks[i].state, .reconciled = looks[i].reconciled, .now_us = looks[i].at_us};

        if (hfd_repeat_is_due(&known, &look) != looks[i].due)
            fail_msg("look %zu", i);
    }
    /* One that is silent for a day: 10, 20, ... 1280 s, and then each half hour. */
    for (; now_us < 24 * 60 * MINUTES; now_us += S_)
        count += hfd_repeat_is_due(&old, &(struct hfd_repeat_look){.state = 1, .now_us = now_us});
    assert_int_equal(count, 8 + (24 * 3600 - 1 - 2550) / 1800);
}

/* The thread puts what it finds on a board for each reader; without one it does not look.
 */
static void repeats_are_on_the_board(void **state)
{
    struct world *w = *state;
    struct hfd_bell bell = HFD_BELL_INIT;
    const struct hfd_repeats_parts parts = {w->store, &w->clock.clock, &bell, 1};
    struct hfd_due_page rows;
    struct hfd_repeats *repeats = hfd_repeats_new();
    uint64_t place = 0, late = UINT64_MAX;

    (void)world_put_ok(w, "g", body, NULL);
    test_clock_advance(&w->clock, 11 * S_);
    assert_non_null(repeats);
    assert_int_equal(hfd_repeats_start(repeats, &parts, &w->err), HFD_OK);
    (void)poll(NULL, 0, 1500);
    assert_int_equal(hfd_repeats_read(repeats, &place, &w->mem, &rows, &w->err), HFD_OK);
    assert_int_equal(rows.count, 0);
    hfd_repeats_want(repeats);
    for (int i = 0; rows.count < 2 && i < 600; i++) { /* one a second */
        place = 0;
        (void)poll(NULL, 0, 100);
        assert_int_equal(hfd_repeats_read(repeats, &place, &w->mem, &rows, &w->err), HFD_OK);
        assert_in_range(rows.count, 0, 2);
    }
    assert_int_equal(rows.count, 2);
    assert_row(&rows.rows[0], HFD_KIND_CLUSTER, 1, false);
    assert_row(&rows.rows[1], HFD_KIND_NODEPOOL, 1, false);
    assert_true(hfd_slice_eq(rows.rows[1].owner_id, rows.rows[0].id));
    assert_true(rows.rows[0].seq > 0 && rows.rows[0].at_us == world_now(w));
    assert_int_equal(place, 2);
    assert_int_equal(hfd_repeats_read(repeats, &place, &w->mem, &rows, &w->err), HFD_OK);
    assert_int_equal(rows.count, 0);
    assert_int_equal(hfd_repeats_read(repeats, &late, &w->mem, &rows, &w->err), HFD_OK);
    assert_int_equal(rows.count, 0);
    assert_int_equal(late, 2);
    hfd_repeats_stop(repeats);
    hfd_repeats_free(repeats);
    assert_int_equal(hfd_repeats_read(NULL, &late, &w->mem, &rows, &w->err), HFD_OK);
    assert_int_equal(rows.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bytes_are_upstreams),
        cmocka_unit_test(an_id_follows_from_the_change),
        cmocka_unit_test(filters),
        cmocka_unit_test_setup_teardown(numbers_outlive_what_had_them, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(young_ones_are_kept, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(targets_hold_what_they_lack, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(the_bell_rings, world_setup, world_teardown),
        cmocka_unit_test(the_rule_of_repeats),
        cmocka_unit_test_setup_teardown(repeats_are_on_the_board, world_setup, world_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
