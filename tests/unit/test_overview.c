/*
 * The list of resources and the view of one, on a whole driver with time moved by hand. The pages
 * of a list are walked while resources change.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "driver/base/jsonx.h"
#include "driver/core/detail.h"
#include "driver/core/overview.h"
#include "tests/lib/contains.h"
#include "tests/lib/scene.h"

#define S HFD_US_PER_S
#define NO HFD_STATUS_FALSE

static const char *body_of(struct world *w, const char *id, const char *team, const char *region)
{
    const hfd_slice text = hfd_arena_printf(
        &w->mem,
        "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{\"cluster\":{\"name\":\"n-%s\","
        "\"spec\":{\"region\":\"%s\"},\"labels\":{\"team\":\"%s\",\"env\":\"dev\"}},"
        "\"nodepools\":[]}}}",
        id, region, team);

    assert_non_null(text.p);
    return text.p;
}

static void order(struct world *w, const char *id, const char *team)
{
    (void)world_put_ok(w, id, body_of(w, id, team, "a"), NULL);
}

static hfd_slice cluster_of(struct world *w, const char *id)
{
    return scene_cluster(w, hfd_arena_printf(&w->mem, "n-%s", id).p);
}

static void make_ready(struct world *w, const char *id, const char *team)
{
    order(w, id, team);
    world_succeed_all(w, id);
}

static void report_no(struct world *w, const char *id, const char *reason)
{
    (void)scene_report(w, cluster_of(w, id),
                       &(struct scene_report){.adapter = "dns", .available = NO, .reason = reason});
}

static void wait_s(struct world *w, int64_t seconds)
{
    test_clock_advance(&w->clock, seconds * S);
}

/* ---- reading ---- */

struct reading {
    struct world *w;
    struct hfd_overview_query q;
    struct hfd_overview out;
    const char *id;
    struct hfd_detail detail;
    struct hfd_trends trends;
    hfd_rc rc;
};

static struct hfd_ctx ctx_of(struct world *w, struct hfd_txn *tx, struct hfd_err *err)
{
    return (struct hfd_ctx){
        .tx = tx, .driver = &w->driver, .now_us = world_now(w), .mem = &w->mem, .err = err};
}

static hfd_rc txn_overview(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct reading *r = arg;
    const struct hfd_ctx c = ctx_of(r->w, tx, err);

    return hfd_overview_read(&c, &r->q, &r->out);
}

static hfd_rc txn_detail(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct reading *r = arg;
    const struct hfd_ctx c = ctx_of(r->w, tx, err);

    r->rc = hfd_detail_read(&c, hfd_slice_of(r->id), &r->detail);
    return HFD_OK;
}

static struct hfd_overview list(struct world *w, struct hfd_overview_query q)
{
    struct reading r = {.w = w, .q = q};

    if (r.q.size == 0)
        r.q.size = 100;
    if (hfd_store_read(w->reader, txn_overview, &r, &w->err) != HFD_OK)
        fail_msg("list: %s", w->err.msg);
    return r.out;
}

static struct reading detail(struct world *w, const char *id)
{
    struct reading r = {.w = w, .id = id};

    assert_int_equal(hfd_store_read(w->reader, txn_detail, &r, &w->err), HFD_OK);
    return r;
}

static const char *ids_of(struct world *w, const struct hfd_overview *page)
{
    hfd_slice text = HFD_SLICE("");

    for (size_t i = 0; i < page->count; i++) {
        text = hfd_arena_printf(&w->mem, "%.*s%.*s ", HFD_SLICE_FMT(text),
                                HFD_SLICE_FMT(page->items[i].guresid));
        assert_non_null(text.p);
    }
    return text.len > 0 ? text.p : "";
}

static void assert_listed(struct world *w, struct hfd_overview_query q, const char *ids)
{
    const struct hfd_overview page = list(w, q);

    assert_string_equal(ids_of(w, &page), ids);
}

/* One of each: failed, stuck, degraded, under way, ready. */
static void make_all(struct world *w)
{
    make_ready(w, "calm", "red");
    make_ready(w, "sick", "red");
    report_no(w, "sick", "ZoneLost");
    order(w, "stuck", "blue");
    wait_s(w, 3000);
    order(w, "bad", "blue");
    wait_s(w, 1);
    report_no(w, "bad", "InvalidConfiguration");
    order(w, "young", "red");
    wait_s(w, 1);
    make_ready(w, "new", "red");
}

/* ---- the list ---- */

static void trouble_comes_first(void **state)
{
    struct world *w = *state;
    struct hfd_overview page;

    make_all(w);
    page = list(w, (struct hfd_overview_query){0});
    assert_string_equal(ids_of(w, &page), "bad stuck sick young calm new ");
    assert_int_equal(page.counts[HFD_STATE_FAILED], 1);
    assert_int_equal(page.counts[HFD_STATE_CREATING], 2);
    assert_int_equal(page.counts[HFD_STATE_READY], 3);
    assert_int_equal(page.stuck_count, 1);
    assert_int_equal(page.degraded_count, 1);
    assert_false(page.more);
    assert_true(page.items[1].stuck);
    assert_false(page.items[3].stuck);
    assert_string_equal(page.items[0].operation, "create");
    assert_true(hfd_slice_is(page.items[0].code, "RES-104"));
    assert_contains(page.items[0].message, "InvalidConfiguration");
    assert_contains(page.items[1].message, "waits for ");
    assert_int_equal(page.items[1].since_us, TEST_TIME_US);
    assert_int_equal(page.items[1].deadline_us, TEST_TIME_US + 3600 * S);
    assert_true(page.items[1].estimated_us > world_now(w));
    assert_true(hfd_slice_is(page.items[2].health, "Degraded"));
    assert_contains(page.items[2].message, "ZoneLost");
    assert_true(hfd_slice_is(page.items[4].health, "Healthy"));
    assert_null(page.items[4].operation);
    assert_int_equal(page.items[4].deadline_us, 0);
    assert_true(hfd_slice_is(page.items[4].name, "n-calm"));
    assert_contains(page.items[4].labels, "\"team\":\"red\"");
    assert_true(page.items[4].cluster_id.len > 0);
}

static void orders_are_kept(void **state)
{
    struct world *w = *state;

    make_all(w);
    assert_listed(w, (struct hfd_overview_query){.order = HFD_ORDER_CREATED},
                  "new young bad stuck sick calm ");
    assert_listed(w, (struct hfd_overview_query){.order = HFD_ORDER_NAME},
                  "bad calm new sick stuck young ");
}

static struct hfd_overview_query labelled(const char *key, const char *value, const char *more)
{
    struct hfd_overview_query q = {.labels = {{hfd_slice_of(key), hfd_slice_of(value)}},
                                   .label_count = 1};

    if (more != NULL)
        q.labels[q.label_count++] =
            (struct hfd_overview_label){HFD_SLICE("env"), hfd_slice_of(more)};
    return q;
}

static void filters_choose(void **state)
{
    struct world *w = *state;
    struct hfd_overview page;

    make_all(w);
    assert_listed(w, (struct hfd_overview_query){.stuck = true}, "stuck ");
    assert_listed(w, (struct hfd_overview_query){.states = 1u << HFD_STATE_READY},
                  "sick calm new ");
    assert_listed(
        w, (struct hfd_overview_query){.states = 1u << HFD_STATE_READY, .order = HFD_ORDER_CREATED},
        "new sick calm ");
    assert_listed(
        w,
        (struct hfd_overview_query){.states = 1u << HFD_STATE_CREATING, .order = HFD_ORDER_CREATED},
        "young stuck ");
    assert_listed(
        w, (struct hfd_overview_query){.states = 1u << HFD_STATE_CREATING | 1u << HFD_STATE_FAILED},
        "bad stuck young ");
    assert_listed(w, (struct hfd_overview_query){.search = HFD_SLICE("N-CA")}, "calm ");
    assert_listed(w, (struct hfd_overview_query){.search = HFD_SLICE("stu")}, "stuck ");
    assert_listed(w, (struct hfd_overview_query){.search = HFD_SLICE("team=BLU")}, "bad stuck ");
    assert_listed(w, (struct hfd_overview_query){.search = HFD_SLICE("green")}, "");
    assert_listed(w, labelled("team", "blue", NULL), "bad stuck ");
    assert_listed(w, labelled("team", "blue", "dev"), "bad stuck ");
    assert_listed(w, labelled("team", "blue", "prod"), "");
    assert_listed(w, labelled("team", "blu", NULL), "");
    assert_listed(w,
                  (struct hfd_overview_query){.type = HFD_SLICE("hyperfleet-cluster"), .size = 2},
                  "bad stuck ");
    assert_listed(w, (struct hfd_overview_query){.type = HFD_SLICE("cluster")}, "");
    /* The counts are of all states, and of the other filters. */
    page = list(w, (struct hfd_overview_query){.states = 1u << HFD_STATE_DELETING});
    assert_int_equal(page.count, 0);
    assert_int_equal(page.counts[HFD_STATE_READY], 3);
    page = list(w, labelled("team", "blue", NULL));
    assert_int_equal(page.counts[HFD_STATE_READY], 0);
    assert_int_equal(page.counts[HFD_STATE_FAILED] + page.counts[HFD_STATE_CREATING], 2);
    page = list(w, (struct hfd_overview_query){.stuck = true});
    assert_int_equal(page.counts[HFD_STATE_READY], 0);
    assert_int_equal(page.counts[HFD_STATE_CREATING], 1);
}

static const char *causes_of(struct world *w, const struct hfd_overview *page)
{
    hfd_slice text = HFD_SLICE("");

    for (size_t i = 0; i < page->cause_count; i++) {
        const struct hfd_overview_cause *c = &page->causes[i];

        text = hfd_arena_printf(&w->mem, "%.*s%s %.*s %.*s %d/%zu\n", HFD_SLICE_FMT(text),
                                hfd_overview_trouble_name(c->trouble), HFD_SLICE_FMT(c->cause.who),
                                HFD_SLICE_FMT(c->cause.reason), (int)c->count, c->item_count);
        assert_non_null(text.p);
    }
    return text.len > 0 ? text.p : "";
}

/* The cause stands beside the message, and equal ones are counted together. */
static void causes_are_counted(void **state)
{
    struct world *w = *state;
    struct hfd_overview page;
    char id[8];

    make_all(w);
    for (int i = 0; i < 3; i++) {
        (void)snprintf(id, sizeof(id), "ill%d", i);
        make_ready(w, id, "red");
        report_no(w, id, i < 2 ? "NoQuota" : "ZoneLost");
    }
    page = list(w, (struct hfd_overview_query){.cause_size = 1});
    assert_string_equal(causes_of(w, &page), "failed dns InvalidConfiguration 1/1\n"
                                             "stuck validation NotReported 1/1\n"
                                             "degraded dns ZoneLost 2/1\n"
                                             "degraded dns NoQuota 2/1\n");
    assert_true(hfd_slice_is(page.causes[2].items[0].guresid, "sick"));
    assert_int_equal(page.causes[1].since_us, TEST_TIME_US);
    assert_true(hfd_slice_is(page.items[0].cause.who, "dns"));
    assert_true(hfd_slice_is(page.items[0].cause.reason, "InvalidConfiguration"));
    assert_true(hfd_slice_is(page.items[1].cause.words, "has not reported"));
    assert_int_equal(page.items[page.count - 1].cause.who.len, 0);
    assert_listed(w, (struct hfd_overview_query){.who = HFD_SLICE("dns")},
                  "bad sick ill0 ill1 ill2 ");
    assert_listed(w,
                  (struct hfd_overview_query){.who = HFD_SLICE("dns"),
                                              .reason = HFD_SLICE("ZoneLost"),
                                              .order = HFD_ORDER_CREATED},
                  "ill2 sick ");
    assert_listed(w, (struct hfd_overview_query){.reason = HFD_SLICE("NotReported")},
                  "stuck young ");
    assert_listed(w, (struct hfd_overview_query){.degraded = true}, "sick ill0 ill1 ill2 ");
    page = list(w, (struct hfd_overview_query){.degraded = true});
    assert_int_equal(page.counts[HFD_STATE_READY], 4);
    assert_int_equal(page.counts[HFD_STATE_FAILED], 0);
    /* A cause ends with the trouble. */
    world_succeed_all(w, "sick");
    assert_listed(w, (struct hfd_overview_query){.degraded = true}, "ill0 ill1 ill2 ");
    /* Behind a deadline, the adapter is that which was waited for. */
    wait_s(w, 3600);
    page = list(w, (struct hfd_overview_query){.reason = HFD_SLICE(HFD_CAUSE_LATE)});
    assert_string_equal(ids_of(w, &page), "stuck young ");
    assert_string_equal(causes_of(w, &page), "failed validation DeadlineExceeded 2/0\n");
    assert_true(hfd_slice_is(page.items[0].cause.reason, HFD_CAUSE_LATE));
    assert_true(hfd_slice_is(page.items[0].cause.who, "validation"));
}

/* Where there are more causes than are told apart, the others of a kind are one. */
static void further_causes_are_one(void **state)
{
    enum {
        ALL = HFD_OVERVIEW_CAUSES_MAX + 3
    };
    struct world *w = *state;
    struct hfd_overview page;
    int64_t sum = 0;
    char id[8], reason[8];

    for (int i = 0; i < ALL; i++) {
        (void)snprintf(id, sizeof(id), "r%d", i);
        (void)snprintf(reason, sizeof(reason), "R%d", i);
        make_ready(w, id, "red");
        report_no(w, id, reason);
    }
    page = list(w, (struct hfd_overview_query){.cause_size = 10});
    assert_int_equal(page.cause_count, HFD_OVERVIEW_CAUSES_MAX + 1);
    assert_int_equal(page.causes[0].count, 3);
    assert_int_equal(page.causes[0].cause.reason.len, 0);
    assert_int_equal(page.causes[0].item_count, 3);
    for (size_t i = 0; i < page.cause_count; i++)
        sum += page.causes[i].count;
    assert_int_equal(sum, ALL);
}

/* Rows of a remote have no search keys: their labels are read. */
static void labels_of_a_remote_are_found(void **state)
{
    struct world *w = *state;

    make_all(w);
    w->driver.backend = HFD_SLICE("http://127.0.0.1:1");
    assert_listed(w, labelled("team", "blue", NULL), "bad stuck ");
    assert_listed(w, labelled("team", "blue", "dev"), "bad stuck ");
    assert_listed(w, labelled("team", "blue", "prod"), "");
}

static void a_type_may_have_its_organisation(void **state)
{
    struct world *w = *state;

    (void)world_put_ok(w, "org",
                       "{\"type\":\"acme/hyperfleet-cluster\",\"driver\":{\"values\":{\"cluster\":"
                       "{\"name\":\"org\",\"spec\":{}}}}}",
                       NULL);
    assert_listed(w, (struct hfd_overview_query){.type = HFD_SLICE("hyperfleet-cluster")}, "org ");
    assert_listed(w, (struct hfd_overview_query){.type = HFD_SLICE("acme/hyperfleet-cluster")},
                  "org ");
    assert_listed(w, (struct hfd_overview_query){.type = HFD_SLICE("fleet-cluster")}, "");
}

/* A list takes a passed deadline into account, also when no request has settled it. */
static void what_is_late_has_failed(void **state)
{
    struct world *w = *state;
    struct hfd_overview page;

    order(w, "late", "red");
    wait_s(w, 3600);
    page = list(w, (struct hfd_overview_query){.states = 1u << HFD_STATE_FAILED});
    assert_int_equal(page.count, 1);
    assert_int_equal(page.items[0].since_us, TEST_TIME_US + 3600 * S);
    assert_true(hfd_slice_is(page.items[0].code, "RES-105"));
    assert_int_equal(page.counts[HFD_STATE_CREATING], 0);
    assert_int_equal(page.counts[HFD_STATE_FAILED], 1);
}

static void a_late_deletion_goes_on(void **state)
{
    struct world *w = *state;
    struct hfd_overview page;

    make_ready(w, "gone", "red");
    (void)world_delete_ok(w, "gone", NULL);
    wait_s(w, 3601);
    page = list(w, (struct hfd_overview_query){0});
    assert_int_equal(page.items[0].state, HFD_STATE_DELETING);
    assert_true(page.items[0].stuck);
    assert_true(hfd_slice_is(page.items[0].code, "RES-105"));
}

/* ---- pages ---- */

static void tokens_are_checked(void **state)
{
    struct world *w = *state;
    struct hfd_overview_query q = {.size = 2, .order = HFD_ORDER_NAME}, other;
    struct hfd_overview page;
    hfd_slice token;

    make_all(w);
    page = list(w, q);
    assert_true(page.more);
    token = hfd_overview_token(&q, &page, &w->mem);
    other = q;
    other.size = 3; /* may change */
    assert_int_equal(hfd_overview_go_on(token, &other, &w->err), HFD_OK);
    assert_int_equal(other.time_us, page.time_us);
    assert_listed(w, other, "new sick stuck ");
    for (int i = 0; i < 7; i++) {
        other = q;
        other.degraded = i == 4;
        other.who = i == 5 ? HFD_SLICE("x") : HFD_SLICE_NONE;
        other.reason = i == 6 ? HFD_SLICE("x") : HFD_SLICE_NONE;
        other.states = i == 0 ? 2u : 0;
        other.stuck = i == 1;
        other.order = i == 2 ? HFD_ORDER_TROUBLE : HFD_ORDER_NAME;
        other.search = i == 3 ? HFD_SLICE("x") : HFD_SLICE_NONE;
        assert_int_equal(hfd_overview_go_on(token, &other, &w->err), HFD_INVALID);
        assert_string_equal(w->err.field, "after");
    }
    for (size_t len = 0; len < token.len - 8; len++)
        assert_int_equal(hfd_overview_go_on((hfd_slice){token.p, len}, &q, &w->err), HFD_INVALID);
    assert_int_equal(hfd_overview_go_on(HFD_SLICE("!"), &q, &w->err), HFD_INVALID);
}

/* A page behind the first one is of the time of the first one. */
static void pages_are_of_one_time(void **state)
{
    struct world *w = *state;
    struct hfd_overview_query q = {.size = 1};
    struct hfd_overview page;

    for (int i = 0; i < 3; i++)
        order(w, (const char *[]){"a", "b", "c"}[i], "red");
    page = list(w, q);
    assert_false(page.items[0].stuck);
    assert_int_equal(hfd_overview_go_on(hfd_overview_token(&q, &page, &w->mem), &q, &w->err),
                     HFD_OK);
    wait_s(w, 3500);
    page = list(w, q);
    assert_string_equal(ids_of(w, &page), "b ");
    assert_false(page.items[0].stuck);
    assert_int_equal(page.stuck_count, 0);
}

#define MANY 40

/* Resources of which some change while the pages are walked. */
struct changing {
    struct world *w;
    bool touched[MANY];
    int seen[MANY];
};

static void id_text(int i, char out[8])
{
    (void)snprintf(out, 8, "r%02d", i);
}

static uint64_t draw(struct world *w, uint64_t below)
{
    unsigned char bytes[8];
    uint64_t v;

    hfd_rng_bytes(w->driver.rng, bytes, sizeof(bytes));
    memcpy(&v, bytes, sizeof(v));
    return v % below;
}

/* Something happens to one of the even ones. */
static void change_one(struct changing *ch)
{
    struct world *w = ch->w;
    const int i = (int)draw(w, MANY / 2) * 2;
    struct hfd_answer_doc doc;
    char id[8];

    id_text(i, id);
    ch->touched[i] = true;
    doc = world_get_ok(w, id, NULL);
    switch (draw(w, 4)) {
    case 0:
        world_succeed_all(w, id);
        break;
    case 1:
        (void)world_delete_ok(w, id, NULL);
        break;
    case 2:
        if (doc.answer == HFD_ANSWER_OUTPUT)
            report_no(w, id, "ZoneLost");
        break;
    default:
        if (doc.answer == HFD_ANSWER_OUTPUT)
            (void)world_put_ok(w, id, body_of(w, id, "blue", "b"), NULL);
        break;
    }
}

static void note_page(struct changing *ch, const struct hfd_overview *page)
{
    for (size_t i = 0; i < page->count; i++) {
        const int at = (page->items[i].guresid.p[1] - '0') * 10 + page->items[i].guresid.p[2] - '0';

        if (page->items[i].guresid.p[0] == 'r')
            ch->seen[at]++;
    }
}

static void walk_pages(struct changing *ch, struct hfd_overview_query q)
{
    const struct hfd_overview_query first = q;
    struct hfd_overview page;
    int pages = 0;

    do {
        page = list(ch->w, q);
        note_page(ch, &page);
        for (int n = (int)draw(ch->w, 4); n > 0; n--)
            change_one(ch);
        wait_s(ch->w, 40);
        if (page.more) {
            q = first;
            q.size = 1 + draw(ch->w, 7);
            assert_int_equal(
                hfd_overview_go_on(hfd_overview_token(&first, &page, &ch->w->mem), &q, &ch->w->err),
                HFD_OK);
        }
        assert_true(++pages <= 3 * MANY);
    } while (page.more);
}

/*
 * A resource that does not change is on exactly one page while others change: in each order, and on
 * each way of finding it.
 */
static void pages_lose_and_repeat_nothing(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < MANY; i++) {
        char id[8];

        id_text(i, id);
        order(w, id, i % 3 == 0 ? "blue" : "red");
        if (i % 5 != 0)
            world_succeed_all(w, id);
        if (i % 7 == 3)
            report_no(w, id, i % 5 != 0 ? "ZoneLost" : "InvalidConfiguration");
    }
    for (int round = 0; round < 18; round++) {
        struct changing ch = {.w = w};
        struct hfd_overview_query q = {.order = (enum hfd_overview_order)(round % 3), .size = 5};

        if (round / 3 % 3 == 1)
            q.search = HFD_SLICE("team");
        if (round / 3 % 3 == 2)
            q.labels[q.label_count++] =
                (struct hfd_overview_label){HFD_SLICE("env"), HFD_SLICE("dev")};
        walk_pages(&ch, q);
        for (int i = 0; i < MANY; i++)
            if (!ch.touched[i] && i % 2 == 1 && ch.seen[i] != 1)
                fail_msg("round %d: r%02d was on %d pages", round, i, ch.seen[i]);
    }
}

/* ---- one resource ---- */

static const struct hfd_detail_adapter *adapter_of(const struct hfd_detail *d, const char *name)
{
    for (size_t i = 0; i < d->adapter_count; i++)
        if (hfd_slice_is(d->adapters[i].name, name))
            return &d->adapters[i];
    fail_msg("no adapter %s", name);
    return NULL;
}

static void a_resource_is_told_whole(void **state)
{
    struct world *w = *state;
    struct reading r;
    json_t *input;

    for (int i = 0; i < 2; i++) { /* the second has a past */
        const char *id = i == 0 ? "first" : "second";

        order(w, id, "red");
        wait_s(w, 40);
        (void)scene_report(w, cluster_of(w, id),
                           &(struct scene_report){.adapter = "validation",
                                                  .available = HFD_STATUS_TRUE,
                                                  .applied = HFD_STATUS_TRUE});
        wait_s(w, 20);
        if (i == 0)
            world_succeed_all(w, id);
    }
    (void)scene_report(
        w, cluster_of(w, "second"),
        &(struct scene_report){.adapter = "dsn", .available = NO, .reason = "Odd", .message = "m"});
    r = detail(w, "second");
    assert_int_equal(r.rc, HFD_OK);
    assert_true(r.detail.is_there);
    assert_int_equal(r.detail.item.state, HFD_STATE_CREATING);
    assert_true(r.detail.first_estimate_us > r.detail.item.started_us);
    assert_int_equal(r.detail.parts.count, 1);
    assert_int_equal(r.detail.adapter_count, 3);
    assert_true(adapter_of(&r.detail, "validation")->done);
    assert_int_equal(adapter_of(&r.detail, "validation")->took_us, 40 * S);
    assert_int_equal(adapter_of(&r.detail, "validation")->usual_us, 40 * S);
    assert_int_equal(adapter_of(&r.detail, "dns")->usual_us, 60 * S);
    assert_int_equal(adapter_of(&r.detail, "validation")->reported_us, world_now(w) - 20 * S);
    assert_false(adapter_of(&r.detail, "dns")->done);
    assert_false(adapter_of(&r.detail, "dns")->reported);
    assert_true(adapter_of(&r.detail, "dns")->required);
    assert_false(adapter_of(&r.detail, "dsn")->required);
    assert_true(hfd_slice_is(adapter_of(&r.detail, "dsn")->reason, "Odd"));
    assert_int_equal(r.detail.history.count, 1);
    assert_true(r.detail.created_by.len > 0);
    assert_int_equal(hfd_json_parse(r.detail.input, &input, &w->err), HFD_OK);
    assert_null(strstr(r.detail.input.p, "humanitec_guresid"));
    json_decref(input);
    /* The input is the order: a PUT of it changes nothing. */
    (void)hfd_arena_printf(&w->mem, "%s", "");
    assert_int_equal(
        world_put_ok(w, "second",
                     hfd_arena_printf(&w->mem, "%.*s", HFD_SLICE_FMT(r.detail.input)).p, NULL)
            .answer,
        HFD_ANSWER_HINT);
    r = detail(w, "first");
    assert_int_equal(r.detail.item.state, HFD_STATE_READY);
    assert_true(adapter_of(&r.detail, "dns")->done);
    assert_int_equal(adapter_of(&r.detail, "dns")->took_us, 60 * S);
}

static void a_removed_resource_has_its_history(void **state)
{
    struct world *w = *state;
    struct reading r;

    assert_int_equal(detail(w, "one").rc, HFD_NOT_FOUND);
    make_ready(w, "one", "red");
    (void)world_delete_ok(w, "one", NULL);
    wait_s(w, 1);
    world_succeed_all(w, "one");
    r = detail(w, "one");
    assert_int_equal(r.rc, HFD_OK);
    assert_false(r.detail.is_there);
    assert_int_equal(r.detail.item.state, HFD_STATE_ABSENT);
    assert_true(hfd_slice_is(r.detail.item.name, "n-one"));
    assert_int_equal(r.detail.item.since_us, world_now(w));
    assert_int_equal(r.detail.history.count, 4);
}

/* ---- the last day ---- */

static hfd_rc txn_lately(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct reading *r = arg;
    const struct hfd_ctx c = ctx_of(r->w, tx, err);

    return hfd_trends_read(&c, &r->trends);
}

static void assert_lately(struct world *w, struct hfd_trend_bar want)
{
    struct reading r = {.w = w};

    if (hfd_store_read(w->reader, txn_lately, &r, &w->err) != HFD_OK)
        fail_msg("lately: %s", w->err.msg);
    assert_int_equal(r.trends.day.all.orders, want.orders);
    assert_int_equal(r.trends.day.all.failed, want.failed);
    assert_int_equal(r.trends.day.all.finished, want.finished);
    assert_int_equal(r.trends.day.all.median_us, want.median_us);
    assert_int_equal(r.trends.day.all.p95_us, want.p95_us);
    assert_int_equal(r.trends.whole_since_us, 0);
}

/*
 * Orders of the last 24 hours are creations and changes, also of what is removed now. The times are
 * from each order until its resource was ready.
 */
static void the_last_day_is_counted(void **state)
{
    struct world *w = *state;

    assert_lately(w, (struct hfd_trend_bar){.orders = 0});
    make_ready(w, "old", "red");
    wait_s(w, 86400);
    assert_lately(w, (struct hfd_trend_bar){.orders = 1, .finished = 1});
    wait_s(w, 1);
    assert_lately(w, (struct hfd_trend_bar){.orders = 0});
    for (int i = 1; i <= 20; i++) {
        const char *id = hfd_arena_printf(&w->mem, "d%d", i).p;

        order(w, id, "red");
        wait_s(w, i);
        world_succeed_all(w, id);
    }
    assert_lately(w, (struct hfd_trend_bar){
                         .orders = 20, .finished = 20, .median_us = 10 * S, .p95_us = 19 * S});
    /* A change counts from its own order; what fails or waits has no time. */
    (void)world_put_ok(w, "old", body_of(w, "old", "red", "b"), NULL);
    wait_s(w, 100);
    world_succeed_all(w, "old");
    order(w, "waits", "red");
    assert_lately(w, (struct hfd_trend_bar){
                         .orders = 22, .finished = 21, .median_us = 11 * S, .p95_us = 20 * S});
    (void)world_delete_ok(w, "d3", NULL);
    world_succeed_all(w, "d3");
    assert_lately(w, (struct hfd_trend_bar){
                         .orders = 22, .finished = 21, .median_us = 11 * S, .p95_us = 20 * S});
}

/* Each bar has its own orders, failures and times; the newest is the last one. */
static void each_bar_has_its_own(void **state)
{
    struct world *w = *state;
    struct reading r = {.w = w};
    const struct hfd_trend_bar *day = r.trends.day.bars, *week = r.trends.week.bars;

    order(w, "a", "red");
    wait_s(w, 40);
    world_succeed_all(w, "a"); /* 2 days and 2 hours ago, in the end */
    wait_s(w, 2 * 86400);
    order(w, "b", "red");
    wait_s(w, 10);
    world_succeed_all(w, "b");
    order(w, "c", "red");
    wait_s(w, 30);
    world_succeed_all(w, "c");
    order(w, "late", "red");
    wait_s(w, 7200 - 20);
    (void)world_put_ok(w, "b", body_of(w, "b", "red", "b"), NULL);
    assert_int_equal(hfd_store_read(w->reader, txn_lately, &r, &w->err), HFD_OK);
    assert_int_equal(r.trends.first_us, world_now(w) - (2 * 86400 + 7200 + 60) * S);
    assert_int_equal(r.trends.day.count, 24);
    assert_int_equal(day[23].orders, 1);
    assert_int_equal(day[23].finished, 0);
    assert_int_equal(day[21].orders, 2);
    assert_int_equal(day[22].orders, 1);
    assert_int_equal(week[27].orders, 4);
    assert_int_equal(week[27].median_us, 10 * S);
    assert_int_equal(week[27].p95_us, 30 * S);
    assert_int_equal(week[19].orders, 1);
    assert_int_equal(week[19].p95_us, 40 * S);
    assert_int_equal(r.trends.week.all.orders, 5);
    assert_int_equal(r.trends.day.all.orders, 4);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(trouble_comes_first),
        TEST(orders_are_kept),
        TEST(causes_are_counted),
        TEST(further_causes_are_one),
        TEST(filters_choose),
        TEST(labels_of_a_remote_are_found),
        TEST(a_type_may_have_its_organisation),
        TEST(what_is_late_has_failed),
        TEST(a_late_deletion_goes_on),
        TEST(tokens_are_checked),
        TEST(pages_are_of_one_time),
        TEST(pages_lose_and_repeat_nothing),
        TEST(a_resource_is_told_whole),
        TEST(a_removed_resource_has_its_history),
        TEST(the_last_day_is_counted),
        TEST(each_bar_has_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
