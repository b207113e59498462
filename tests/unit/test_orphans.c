/* Recovery: cookies without a row, clusters without a row, and what another driver made before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "driver/backend/backend.h"
#include "driver/core/cookie.h"
#include "driver/core/overview.h"
#include "store/rows_fleet.h"
#include "tests/lib/contains.h"
#include "tests/lib/scene.h"

#define S HFD_US_PER_S
#define ID "res-1"
#define BODY(name, region, pools)                                                                  \
    "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{\"cluster\":{" name                  \
    "\"spec\":{" region "}},\"nodepools\":[" pools "]}}}"
#define NAME "\"name\":\"c-one\","
#define REGION(r) "\"region\":\"" r "\""
#define POOL "{\"name\":\"np-one\",\"spec\":{\"n\":1}}"
static const char body_a[] = BODY(NAME, REGION("a"), POOL),
                  body_b[] = BODY(NAME, REGION("b"), POOL);
static const char body_two[] = BODY(NAME, REGION("a"), POOL ",{\"name\":\"np-more\"}");
static const char body_bare[] = BODY(NAME, "", ""), body_nameless[] = BODY("", "", "");
static const char pool_body[] =
    "{\"type\":\"hyperfleet-nodepool\",\"driver\":{\"values\":{\"cluster_guresid\":\"" ID
    "\",\"nodepool\":{\"name\":\"np-two\"}}}}";

/* cookie: NULL = none. */
static struct hfd_answer_doc put(struct world *w, const char *body, const char *cookie)
{
    return world_put_ok(w, ID, body, cookie);
}

static struct hfd_answer_doc get(struct world *w, const char *cookie)
{
    return world_get_ok(w, ID, cookie);
}

static struct hfd_answer_doc del(struct world *w, const char *cookie)
{
    return world_delete_ok(w, ID, cookie);
}

/* Ends in a NUL, as arena copies do. */
static const char *text(struct world *w, hfd_slice s)
{
    return hfd_arena_printf(&w->mem, "%.*s", HFD_SLICE_FMT(s)).p;
}

static int64_t count_all(struct world *w)
{
    return world_count(w, HFD_KIND_CLUSTER) + world_count(w, HFD_KIND_NODEPOOL);
}

/* ---- a valid cookie with no row ---- */

/* Brings the resource into a state and loses its row. @return its cookie */
static const char *lose(struct world *w, enum hfd_state state)
{
    const char *cookie = text(w, put(w, body_a, NULL).cookie);

    if (state != HFD_STATE_CREATING) {
        test_clock_advance(&w->clock, S);
        world_succeed_all(w, ID);
    }
    if (state == HFD_STATE_UPDATING)
        cookie = text(w, put(w, body_b, NULL).cookie);
    if (state == HFD_STATE_DELETING)
        (void)del(w, NULL);
    test_clock_advance(&w->clock, S);
    scene_forget(w, ID);
    world_restart(w);
    return cookie;
}

/*
 * GET, PUT and DELETE with the cookie answer as they would have, whatever state the resource was
 * in, and nothing is made twice.
 */
static void a_cookie_brings_the_row_back(void **state)
{
    static const struct {
        enum hfd_state was;
        const char *same;
        enum hfd_answer get, put_same, put_other;
    } rows[] = {
        {HFD_STATE_CREATING, body_a, HFD_ANSWER_HINT, HFD_ANSWER_HINT, HFD_ANSWER_BUSY},
        {HFD_STATE_READY, body_a, HFD_ANSWER_OUTPUT, HFD_ANSWER_OUTPUT, HFD_ANSWER_HINT},
        {HFD_STATE_UPDATING, body_b, HFD_ANSWER_HINT, HFD_ANSWER_HINT, HFD_ANSWER_HINT},
        {HFD_STATE_DELETING, body_a, HFD_ANSWER_HINT, HFD_ANSWER_BUSY, HFD_ANSWER_BUSY},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int op = 0; op < 4; op++) {
            struct world w;
            struct hfd_answer_doc doc;
            const char *cookie;

            world_open(&w);
            cookie = lose(&w, rows[i].was);
            assert_int_equal(get(&w, NULL).answer,
                             HFD_ANSWER_ABSENT); /* without the cookie nothing is known */
            doc = op == 0   ? get(&w, cookie)
                  : op == 1 ? put(&w, rows[i].same, cookie)
                  : op == 2 ? put(&w, BODY(NAME, REGION("z"), POOL), cookie)
                            : del(&w, cookie);
            if (doc.answer != (op == 0   ? rows[i].get
                               : op == 1 ? rows[i].put_same
                               : op == 2 ? rows[i].put_other
                                         : HFD_ANSWER_HINT))
                fail_msg("%s, operation %d: answer %d", hfd_state_name(rows[i].was), op,
                         (int)doc.answer);
            if (op == 0)
                assert_int_equal(world_row(&w, ID).state, rows[i].was);
            if (op < 2)
                assert_true(hfd_slice_is(world_row(&w, ID).cookie, cookie));
            assert_non_null(strstr(scene_history(&w, ID), "adopted"));
            assert_int_equal(world_count(&w, HFD_KIND_CLUSTER), 1);
            assert_int_equal(world_count(&w, HFD_KIND_NODEPOOL), 1);
            if (op == 3 || rows[i].was == HFD_STATE_DELETING) {
                world_succeed_all(&w, ID);
                assert_int_equal(get(&w, cookie).answer, HFD_ANSWER_ABSENT);
                assert_int_equal(count_all(&w), 0);
            } else {
                test_clock_advance(&w.clock, S);
                world_succeed_all(&w, ID);
                assert_int_equal(get(&w, NULL).answer, HFD_ANSWER_OUTPUT);
            }
            world_close(&w);
        }
}

/*
 * A nodepool that an update took away, and that HyperFleet is still removing, is no part of what
 * the cookie brings back.
 */
static void a_cookie_without_what_leaves(void **state)
{
    struct world *w = *state;
    const char *cookie;

    (void)put(w, body_two, NULL);
    world_succeed_all(w, ID);
    test_clock_advance(&w->clock, S);
    cookie = text(w, put(w, body_a, NULL).cookie);
    scene_forget(w, ID);
    assert_int_equal(world_count(w, HFD_KIND_NODEPOOL), 2);
    assert_int_equal(get(w, cookie).answer, HFD_ANSWER_OUTPUT);
    assert_true(hfd_slice_is(world_row(w, ID).cookie, cookie));
}

/* The parts that the cookie names are gone. GET and DELETE find nothing, and PUT makes new ones. */
static void a_cookie_of_what_is_gone(void **state)
{
    struct world *w = *state;
    const char *cookie = lose(w, HFD_STATE_READY);
    struct hfd_answer_doc doc;

    scene_force_delete(w, HFD_KIND_CLUSTER, scene_cluster(w, "c-one"));
    assert_int_equal(get(w, cookie).answer, HFD_ANSWER_ABSENT);
    assert_int_equal(del(w, cookie).answer, HFD_ANSWER_ABSENT);
    doc = put(w, body_a, cookie);
    assert_int_equal(doc.answer, HFD_ANSWER_HINT);
    assert_false(hfd_slice_is(doc.cookie, cookie));
    assert_int_equal(world_row(w, ID).state, HFD_STATE_CREATING);
}

/* On a path of the other kind there is nothing, and nothing is made. */
static void a_cookie_on_the_wrong_path(void **state)
{
    struct world *w = *state;
    const char *cookie = lose(w, HFD_STATE_READY);
    struct hfd_cookie opened;

    assert_int_equal(
        hfd_cookie_open(
            &(struct hfd_cookie_ctx){.ring = w->ring, .guresid = HFD_SLICE(ID), .mem = &w->mem},
            hfd_slice_of(cookie), &opened, NULL),
        HFD_OK);
    assert_int_equal(opened.kind, HFD_KIND_CLUSTER);
    w->only = HFD_KIND_NODEPOOL;
    assert_int_equal(get(w, cookie).answer, HFD_ANSWER_ABSENT);
    assert_int_equal(del(w, cookie).answer, HFD_ANSWER_ABSENT);
    w->only = 0;
    assert_int_equal(world_row(w, ID).state, HFD_STATE_ABSENT);
    assert_int_equal(count_all(w), 2);
}

/* The same for a nodepool resource. */
static void a_nodepool_comes_back(void **state)
{
    struct world *w = *state;
    struct hfd_answer_doc doc;
    const char *cookie;

    (void)put(w, body_bare, NULL);
    assert_int_equal(world_put(w, "pool-1", pool_body, NULL, &doc), HFD_OK);
    cookie = text(w, doc.cookie);
    world_succeed_all(w, "pool-1");
    scene_forget(w, "pool-1");
    assert_int_equal(world_get(w, "pool-1", NULL, &doc), HFD_OK);
    assert_int_equal(doc.answer, HFD_ANSWER_ABSENT);
    assert_int_equal(world_get(w, "pool-1", cookie, &doc), HFD_OK);
    assert_int_equal(doc.answer, HFD_ANSWER_OUTPUT);
    assert_int_equal(world_delete(w, "pool-1", cookie, &doc), HFD_OK);
    assert_int_equal(doc.answer, HFD_ANSWER_HINT);
    world_succeed_all(w, "pool-1");
    assert_int_equal(world_count(w, HFD_KIND_NODEPOOL), 0);
    assert_int_equal(world_count(w, HFD_KIND_CLUSTER), 1);
}

/* ---- a cluster of ours without a row ---- */

/*
 * The store's row and the cookie are both lost. The next PUT finds cluster and nodepool again, and
 * answers 200 at once when they are ready.
 */
static void a_put_without_cookie_finds_its_parts(void **state)
{
    struct world *w = *state;
    hfd_slice cluster, pool;

    (void)lose(w, HFD_STATE_READY);
    cluster = scene_cluster(w, "c-one");
    pool = scene_nodepool(w, "np-one");
    assert_int_equal(put(w, body_a, NULL).answer, HFD_ANSWER_OUTPUT);
    assert_true(hfd_slice_eq(scene_cluster(w, "c-one"), cluster));
    assert_true(hfd_slice_eq(scene_nodepool(w, "np-one"), pool));
    assert_int_equal(count_all(w), 2);
    assert_int_equal(put(w, body_a, NULL).answer, HFD_ANSWER_OUTPUT);
}

/*
 * Another driver made the cluster before, under a name of its own. An order without a name adopts
 * it with its spec, and keeps both.
 */
static void made_by_another_driver(void **state)
{
    struct world *w = *state;
    const hfd_slice id = scene_create(w, HFD_KIND_CLUSTER, HFD_SLICE(""), "theirs", ID);
    struct hfd_answer_doc doc;

    assert_int_equal(put(w, BODY("", REGION("a"), ""), NULL).answer, HFD_ANSWER_HINT);
    assert_int_equal(world_count(w, HFD_KIND_CLUSTER), 1);
    assert_true(hfd_slice_eq(world_row(w, ID).cluster_id, id));
    assert_true(
        hfd_slice_is(world_find(w, HFD_KIND_CLUSTER, "theirs")->spec, "{\"region\":\"a\"}"));
    world_succeed_all(w, ID);
    doc = put(w, BODY("", REGION("a"), ""), NULL);
    assert_int_equal(doc.answer, HFD_ANSWER_OUTPUT);
    assert_contains(doc.values, "\"name\":\"theirs\"");
    assert_int_equal(world_put(w, ID, body_bare, NULL, &doc),
                     HFD_IMMUTABLE); /* its name cannot change */
    (void)del(w, NULL);
    world_succeed_all(w, ID);
    assert_int_equal(world_count(w, HFD_KIND_CLUSTER), 0);
}

/*
 * An order of its name adopts it. An order of another name fails with both names and makes nothing.
 */
static void made_under_another_name(void **state)
{
    struct world *w = *state;
    const hfd_slice id = scene_create(w, HFD_KIND_CLUSTER, HFD_SLICE(""), "theirs", ID);
    struct hfd_answer_doc doc;

    assert_int_equal(world_put(w, ID, body_bare, NULL, &doc), HFD_IMMUTABLE);
    assert_string_equal(w->err.field, "driver.values.cluster.name");
    assert_non_null(strstr(w->err.msg, "'theirs'"));
    assert_non_null(strstr(w->err.msg, "'c-one'"));
    assert_non_null(strstr(w->err.msg, text(w, id)));
    assert_int_equal(world_row(w, ID).state, HFD_STATE_ABSENT);
    assert_int_equal(world_count(w, HFD_KIND_CLUSTER), 1);
    assert_int_equal(put(w, BODY("\"name\":\"theirs\",", "", ""), NULL).answer, HFD_ANSWER_HINT);
    assert_true(hfd_slice_eq(world_row(w, ID).cluster_id, id));
}

/* The orphan with the ordered name is adopted, else the oldest. The others stay orphans. */
static void several_orphans(void **state)
{
    struct world *w = *state;
    hfd_slice named, oldest = scene_create(w, HFD_KIND_CLUSTER, HFD_SLICE(""), "first", ID);

    test_clock_advance(&w->clock, S);
    (void)scene_create(w, HFD_KIND_CLUSTER, HFD_SLICE(""), "other", "res-2");
    named = scene_create(w, HFD_KIND_CLUSTER, HFD_SLICE(""), "c-one", ID);
    (void)put(w, body_bare, NULL);
    assert_true(hfd_slice_eq(world_row(w, ID).cluster_id, named));
    (void)del(w, NULL);
    world_succeed_all(w, ID);
    (void)put(w, body_nameless, NULL);
    assert_true(hfd_slice_eq(world_row(w, ID).cluster_id, oldest));
    assert_int_equal(world_count(w, HFD_KIND_CLUSTER), 2);
}

/*
 * One that is being deleted is left to go, and one that is another resource's is that one's,
 * whatever its label says.
 */
static void not_to_be_adopted(void **state)
{
    static const char body_of_other[] = "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{"
                                        "\"cluster\":{\"name\":\"c-two\",\"spec\":{}}}}}";
    struct world *w = *state;
    struct hfd_answer_doc doc;
    hfd_slice id = scene_create(w, HFD_KIND_CLUSTER, HFD_SLICE(""), "theirs", ID);

    scene_delete(w, HFD_KIND_CLUSTER, id);
    assert_int_equal(world_put(w, "res-2", body_of_other, NULL, &doc), HFD_OK);
    scene_label(w, HFD_KIND_CLUSTER, scene_cluster(w, "c-two"), ID);
    (void)put(w, body_nameless, NULL);
    assert_false(hfd_slice_eq(world_row(w, ID).cluster_id, id));
    assert_false(hfd_slice_eq(world_row(w, ID).cluster_id, scene_cluster(w, "c-two")));
    assert_int_equal(world_count(w, HFD_KIND_CLUSTER), 3);
}

/*
 * A name is taken, where what has it carries no label, or is a part of another resource, whatever
 * its label says.
 */
static void a_name_alone_takes_nothing_over(void **state)
{
    static const char two[] = "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{"
                              "\"cluster\":{\"name\":\"c-two\",\"spec\":{}}}}}";
    struct world *w = *state;
    struct hfd_answer_doc doc;

    (void)scene_create(w, HFD_KIND_CLUSTER, HFD_SLICE(""), "c-one", NULL);
    assert_int_equal(world_put(w, ID, body_a, NULL, &doc), HFD_INVALID);
    (void)world_put_ok(w, "res-2", two, NULL);
    scene_label(w, HFD_KIND_CLUSTER, scene_cluster(w, "c-two"), ID);
    assert_int_equal(world_put(w, ID, two, NULL, &doc), HFD_INVALID);
    assert_int_equal(world_row(w, ID).state, HFD_STATE_ABSENT);
}

/*
 * A nodepool resource takes over the nodepool with its label in the cluster asked for, not one in
 * another.
 */
static void an_orphan_nodepool(void **state)
{
    static const char nameless[] =
        "{\"type\":\"hyperfleet-nodepool\",\"driver\":{\"values\":{\"cluster_guresid\":\"" ID
        "\",\"nodepool\":{}}}}";
    struct world *w = *state;
    struct hfd_answer_doc doc;
    hfd_slice other, mine;

    (void)put(w, body_bare, NULL);
    other = scene_create(w, HFD_KIND_CLUSTER, HFD_SLICE(""), "other", NULL);
    (void)scene_create(w, HFD_KIND_NODEPOOL, other, "np-x", "pool-1");
    mine = scene_create(w, HFD_KIND_NODEPOOL, scene_cluster(w, "c-one"), "np-y", "pool-1");
    assert_int_equal(world_put(w, "pool-1", pool_body, NULL, &doc), HFD_IMMUTABLE);
    assert_string_equal(w->err.field, "driver.values.nodepool.name");
    assert_int_equal(world_put(w, "pool-1", nameless, NULL, &doc), HFD_OK);
    assert_int_equal(world_count(w, HFD_KIND_NODEPOOL), 2);
    world_succeed(w, mine);
    assert_int_equal(world_get(w, "pool-1", NULL, &doc), HFD_OK);
    assert_int_equal(doc.answer, HFD_ANSWER_OUTPUT);
}

/* ---- listing and removing ---- */

struct listing {
    struct world *w;
    struct hfd_orphans found;
    struct hfd_orphan_owner owner;
    struct hfd_orphan_choice chosen;
    struct hfd_fleet_deletion removed;
};

static hfd_rc txn_list(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct listing *l = arg;

    return hfd_orphans_list(tx, &hfd_backend_embedded, &l->owner, &l->w->mem, &l->found, err);
}

/* "cluster c-one res-1; nodepool ..." */
static const char *orphans(struct world *w)
{
    struct listing l = {.w = w};
    const char *out = "";

    assert_int_equal(hfd_store_read(w->reader, txn_list, &l, &w->err), HFD_OK);
    assert_false(l.found.more);
    for (size_t i = 0; i < l.found.list.count; i++)
        out =
            hfd_arena_printf(&w->mem, "%s%s %.*s %.*s%s; ", out,
                             l.found.list.rows[i].kind == HFD_KIND_CLUSTER ? "cluster" : "nodepool",
                             HFD_SLICE_FMT(l.found.list.rows[i].name),
                             HFD_SLICE_FMT(l.found.list.rows[i].label),
                             l.found.list.rows[i].deleted_us != 0 ? " deleting" : "")
                .p;
    return out;
}

static hfd_rc txn_remove(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct listing *l = arg;
    const struct hfd_ctx c = {.tx = tx,
                              .driver = &l->w->driver,
                              .now_us = l->w->clock.wall_us,
                              .mem = &l->w->mem,
                              .err = err};

    return hfd_orphan_remove(&c, HFD_SLICE("admin@example.com"), &l->chosen, &l->removed);
}

static hfd_rc remove_orphan(struct world *w, hfd_slice id, bool *gone)
{
    struct listing l = {.w = w, .chosen = {.id = id}};
    const hfd_rc rc = hfd_store_update_wait(w->store, txn_remove, &l, &w->err);

    *gone = l.removed.removed;
    return rc;
}

/*
 * Clusters and nodepools with our label and without a row are listed, whatever their origin. Those
 * with a row, or without the label, are not.
 */
static void orphans_are_listed(void **state)
{
    struct world *w = *state;
    hfd_slice c;

    assert_string_equal(orphans(w), "");
    (void)put(w, body_a, NULL);
    test_clock_advance(&w->clock, S);
    c = scene_create(w, HFD_KIND_CLUSTER, HFD_SLICE(""), "plain", NULL);
    assert_string_equal(orphans(w), "");
    (void)scene_create(w, HFD_KIND_NODEPOOL, c, "np-ours", "res-9");
    (void)scene_create(w, HFD_KIND_NODEPOOL, scene_cluster(w, "c-one"), "np-copy", ID);
    (void)scene_create(w, HFD_KIND_CLUSTER, HFD_SLICE(""), "older", "res-0");
    assert_string_equal(orphans(w),
                        "cluster older res-0; nodepool np-copy res-1; nodepool np-ours res-9; ");
    scene_forget(w, ID);
    assert_string_equal(
        orphans(w),
        "cluster older res-0; cluster c-one res-1; nodepool np-one res-1; nodepool np-copy res-1; "
        "nodepool np-ours res-9; ");
    (void)put(w, body_a, NULL); /* takes its own two; the copy is none of them */
    assert_string_equal(orphans(w),
                        "cluster older res-0; nodepool np-copy res-1; nodepool np-ours res-9; ");
}

/*
 * An orphan can be removed, with its nodepools, and goes when its adapters have finalized it; time
 * alone removes none.
 */
static void an_orphan_is_removed(void **state)
{
    struct world *w = *state;
    hfd_slice c;
    bool gone;

    (void)lose(w, HFD_STATE_READY);
    c = scene_cluster(w, "c-one");
    test_clock_advance(&w->clock, INT64_C(86400) * 365 * S);
    world_restart(w);
    assert_string_equal(orphans(w), "cluster c-one res-1; nodepool np-one res-1; ");
    assert_int_equal(remove_orphan(w, c, &gone), HFD_OK);
    assert_false(gone);
    assert_string_equal(orphans(w),
                        "cluster c-one res-1 deleting; nodepool np-one res-1 deleting; ");
    assert_int_equal(remove_orphan(w, c, &gone), HFD_OK); /* a repeat changes nothing */
    scene_force_delete(w, HFD_KIND_CLUSTER, c);
    assert_string_equal(orphans(w), "");
    assert_int_equal(count_all(w), 0);
}

/* Only orphans are removed here. */
static void only_orphans_are_removed(void **state)
{
    struct world *w = *state;
    bool gone;

    (void)put(w, body_a, NULL);
    assert_int_equal(remove_orphan(w, scene_cluster(w, "c-one"), &gone), HFD_CONFLICT);
    assert_non_null(strstr(w->err.msg, "resource " ID));
    assert_int_equal(remove_orphan(w, scene_nodepool(w, "np-one"), &gone), HFD_CONFLICT);
    assert_int_equal(
        remove_orphan(w, scene_create(w, HFD_KIND_CLUSTER, HFD_SLICE(""), "plain", NULL), &gone),
        HFD_CONFLICT);
    assert_non_null(strstr(w->err.msg, "no label humanitec_guresid"));
    assert_int_equal(remove_orphan(w, HFD_SLICE("2nothing"), &gone), HFD_NOT_FOUND);
    assert_int_equal(world_find(w, HFD_KIND_CLUSTER, "c-one")->deleted_us, 0);
}

/* A list says when it has not got all. */
static void a_long_list_says_so(void **state)
{
    struct world *w = *state;
    struct listing l = {.w = w};
    const hfd_slice c = scene_create(w, HFD_KIND_CLUSTER, HFD_SLICE(""), "plain", NULL);

    for (int i = 0; i <= HFD_ORPHANS_MAX; i++) {
        char name[16], guresid[16];

        (void)snprintf(name, sizeof(name), "np-%d", i);
        (void)snprintf(guresid, sizeof(guresid), "res-%04d", i);
        (void)scene_create(w, HFD_KIND_NODEPOOL, c, name, guresid);
    }
    assert_int_equal(hfd_store_read(w->reader, txn_list, &l, &w->err), HFD_OK);
    assert_true(l.found.more);
    assert_int_equal(l.found.list.count, HFD_ORPHANS_MAX);
    assert_true(hfd_slice_is(l.found.list.rows[0].label, "res-0000"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cookie_brings_the_row_back),
        TEST(a_cookie_without_what_leaves),
        TEST(a_cookie_of_what_is_gone),
        TEST(a_cookie_on_the_wrong_path),
        TEST(a_nodepool_comes_back),
        TEST(a_put_without_cookie_finds_its_parts),
        TEST(made_by_another_driver),
        TEST(made_under_another_name),
        TEST(several_orphans),
        TEST(not_to_be_adopted),
        TEST(a_name_alone_takes_nothing_over),
        TEST(an_orphan_nodepool),
        TEST(orphans_are_listed),
        TEST(an_orphan_is_removed),
        TEST(only_orphans_are_removed),
        TEST(a_long_list_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
