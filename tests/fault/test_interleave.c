/*
 * Two replicas on one PostgreSQL, interleaved: the first one's transaction function has read and
 * decided, and waits. The second one's call runs meanwhile, until it is done or waits for a lock.
 * Then the first goes on. Each rule that a single writer keeps by itself is tried so.
 *
 * HFD_TEST_STORE names the PostgreSQL. The linker puts hfd_store_update_wait of this file between
 * the worlds and the store.
 */
#include "driver/base/log.h"
#include "driver/core/history.h"
#include "driver/core/input.h"
#include "driver/core/resource.h"
#include "store/db.h"
#include "store/rows_resource.h"
#include "store/rows_history.h"
#include "store/txn.h"
#include "tests/lib/place.h"
#include "tests/lib/scene.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <libpq-fe.h>

#define WAITS 6000 /* of 10 ms */
#define SKIPPED 77

/* ---- a call that stops between its reads and its writes ---- */

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    const struct hfd_store *store; /* its next transaction function stops; NULL = none does */
    bool inside, go;
} hold = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* It names the roots of the thread's next call, as the program does. */
struct naming {
    hfd_rc (*prefetch)(struct hfd_txn *tx, const struct hfd_call *call, struct hfd_err *err);
    const struct hfd_call *call;
    hfd_slice fleet_id; /* of a report */
};
static _Thread_local struct naming naming;

struct held {
    const struct hfd_store *store;
    hfd_txn_fn *fn;
    void *arg;
    struct naming naming;
};

static hfd_rc want_roots(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct naming *n = &((const struct held *)arg)->naming;

    if (n->prefetch != NULL)
        return n->prefetch(tx, n->call, err);
    return n->fleet_id.len > 0 ? hfd_root_fleet(tx, n->fleet_id, err) : HFD_OK;
}

static hfd_rc txn_held(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct held *h = arg;
    hfd_rc rc = h->fn(tx, h->arg, err);

    (void)pthread_mutex_lock(&hold.mutex);
    if (hold.store == h->store && !hfd_db_is_looking(tx->db)) { /* it has read under its lock */
        hold.store = NULL;
        hold.inside = true;
        (void)pthread_cond_broadcast(&hold.changed);
        while (!hold.go)
            (void)pthread_cond_wait(&hold.changed, &hold.mutex);
    }
    (void)pthread_mutex_unlock(&hold.mutex);
    return rc;
}

hfd_rc __wrap_hfd_store_update_wait(struct hfd_store *store, hfd_txn_fn *fn, void *arg,
                                    struct hfd_err *err);

hfd_rc __wrap_hfd_store_update_wait(struct hfd_store *store, hfd_txn_fn *fn, void *arg,
                                    struct hfd_err *err)
{
    struct held h = {store, fn, arg, naming};
    struct hfd_job job = {.fn = txn_held, .prefetch = want_roots, .arg = &h};

    return hfd_store_job_wait(store, &job, err);
}

/* ---- replicas: each a world with a thread of its own ---- */

struct replica;
typedef void act_fn(struct replica *r);

struct replica {
    struct world world;
    pthread_t thread;
    act_fn *act; /* what it is to do next; NULL = nothing */
    bool busy, end;
    /* of acts */
    const char *guresid, *body, *adapter;
    hfd_slice target;
    hfd_rc rc;
    struct hfd_answer_doc answer;
};

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct replica r[2];
    PGconn *looker;
    bool overtook; /* the second call of interleave() was done before the first went on */
    bool waited;   /* it waited for a root, or for the lock of all groups */
} fx = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *replica_run(void *arg)
{
    struct replica *r = arg;

    (void)pthread_mutex_lock(&fx.mutex);
    while (!r->end) {
        act_fn *act = r->act;

        if (act == NULL) {
            (void)pthread_cond_wait(&fx.changed, &fx.mutex);
            continue;
        }
        (void)pthread_mutex_unlock(&fx.mutex);
        act(r);
        (void)pthread_mutex_lock(&fx.mutex);
        r->act = NULL;
        r->busy = false;
        (void)pthread_cond_broadcast(&fx.changed);
    }
    (void)pthread_mutex_unlock(&fx.mutex);
    world_stop(&r->world);
    return NULL;
}

static void begin(struct replica *r, act_fn *act)
{
    (void)pthread_mutex_lock(&fx.mutex);
    r->act = act;
    r->busy = true;
    (void)pthread_cond_broadcast(&fx.changed);
    (void)pthread_mutex_unlock(&fx.mutex);
}

static bool is_busy(struct replica *r)
{
    bool busy;

    (void)pthread_mutex_lock(&fx.mutex);
    busy = r->busy;
    (void)pthread_mutex_unlock(&fx.mutex);
    return busy;
}

static void await(struct replica *r)
{
    for (int i = 0; i < WAITS && is_busy(r); i++)
        (void)poll(NULL, 0, 10);
    assert_false(is_busy(r));
}

static void do_now(struct replica *r, act_fn *act)
{
    begin(r, act);
    await(r);
}

static bool is_there(const char *sql)
{
    PGresult *result = PQexec(fx.looker, sql);
    bool found = PQntuples(result) > 0;

    assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
    PQclear(result);
    return found;
}

/* Says if a connection to the database waits for a lock of another. */
static bool is_waiting(void)
{
    return is_there("SELECT 1 FROM pg_locks WHERE NOT granted");
}

/* The first call stops before it writes; the second runs until it is done or waits. */
static void begin_both(act_fn *first, act_fn *second)
{
    bool inside = false;

    (void)pthread_mutex_lock(&hold.mutex);
    hold.store = fx.r[0].world.store;
    hold.inside = hold.go = false;
    (void)pthread_mutex_unlock(&hold.mutex);
    begin(&fx.r[0], first);
    for (int i = 0; i < WAITS && !inside && is_busy(&fx.r[0]); i++) {
        (void)poll(NULL, 0, 10);
        (void)pthread_mutex_lock(&hold.mutex);
        inside = hold.inside;
        (void)pthread_mutex_unlock(&hold.mutex);
    }
    assert_true(inside);
    begin(&fx.r[1], second);
    for (int i = 0; i < WAITS && is_busy(&fx.r[1]) && !is_waiting(); i++)
        (void)poll(NULL, 0, 10);
    fx.overtook = !is_busy(&fx.r[1]);
    fx.waited = is_there("SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'advisory'");
}

static void let_go(void)
{
    (void)pthread_mutex_lock(&hold.mutex);
    hold.go = true;
    (void)pthread_cond_broadcast(&hold.changed);
    (void)pthread_mutex_unlock(&hold.mutex);
}

/* As begin_both; both end. */
static void interleave(act_fn *first, act_fn *second)
{
    begin_both(first, second);
    let_go();
    await(&fx.r[0]);
    await(&fx.r[1]);
}

static void act_start(struct replica *r)
{
    r->rc = world_start(&r->world);
}

static void start(struct replica *r)
{
    r->end = false;
    assert_int_equal(pthread_create(&r->thread, NULL, replica_run, r), 0);
    do_now(r, act_start);
    if (r->rc != HFD_OK)
        fail_msg("%s", r->world.err.msg);
}

static int setup(void **state)
{
    struct world *a = &fx.r[0].world, *b = &fx.r[1].world;

    (void)state;
    fx.r[0] = fx.r[1] = (struct replica){0};
    world_init(a);
    world_init(b);
    test_rng_init(&b->rng, 2);
    (void)snprintf(b->dir, sizeof(b->dir), "%s", a->dir); /* the same database */
    start(&fx.r[0]);
    start(&fx.r[1]);
    fx.looker = PQconnectdb(test_place(a->dir).url);
    assert_int_equal(PQstatus(fx.looker), CONNECTION_OK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    let_go(); /* behind a test that failed */
    for (size_t i = 0; i < 2; i++) {
        (void)pthread_mutex_lock(&fx.mutex);
        fx.r[i].end = true;
        (void)pthread_cond_broadcast(&fx.changed);
        (void)pthread_mutex_unlock(&fx.mutex);
        (void)pthread_join(fx.r[i].thread, NULL);
    }
    for (size_t i = 0; i < 2; i++)
        world_close(&fx.r[i].world);
    PQfinish(fx.looker);
    return 0;
}

/* ---- acts ---- */

#define CLUSTER(name, pools)                                                                       \
    "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{\"cluster\":{\"name\":\"" name       \
    "\",\"spec\":{\"n\":1}},\"nodepools\":[" pools "]}}}"
#define POOL(name) "{\"name\":\"" name "\",\"spec\":{\"n\":1}}"

#define SINGLE_IN(cluster, name)                                                                   \
    "{\"type\":\"hyperfleet-nodepool\",\"driver\":{\"values\":{\"cluster_guresid\":\"" cluster     \
    "\",\"nodepool\":" POOL(name) "}}}"
#define SINGLE(name) SINGLE_IN("g", name)

static void act_put(struct replica *r)
{
    struct world *w = &r->world;
    struct hfd_arena mem;
    struct hfd_input input;
    const struct hfd_call call = {.driver = &w->driver,
                                  .now_us = world_now(w),
                                  .guresid = hfd_slice_of(r->guresid),
                                  .input = &input,
                                  .mem = &mem};

    hfd_arena_init(&mem, 1 << 20);
    assert_int_equal(hfd_input_parse(&(struct hfd_input_source){&w->driver.rules, call.guresid, 0,
                                                                hfd_slice_of(r->body)},
                                     &mem, &input, &w->err),
                     HFD_OK);
    naming = (struct naming){.prefetch = hfd_resource_put_prefetch, .call = &call};
    r->rc = world_put(w, r->guresid, r->body, NULL, &r->answer);
    naming = (struct naming){.prefetch = NULL};
    hfd_arena_fini(&mem);
}

static void act_get(struct replica *r)
{
    r->rc = world_get(&r->world, r->guresid, NULL, &r->answer);
}

static void do_deletion(struct replica *r, act_fn *act)
{
    struct world *w = &r->world;
    struct hfd_arena mem;
    const struct hfd_call call = {.driver = &w->driver,
                                  .now_us = world_now(w),
                                  .guresid = hfd_slice_of(r->guresid),
                                  .mem = &mem};

    hfd_arena_init(&mem, 1 << 20);
    naming = (struct naming){.prefetch = hfd_resource_delete_prefetch, .call = &call};
    act(r);
    naming = (struct naming){.prefetch = NULL};
    hfd_arena_fini(&mem);
}

static void delete (struct replica *r)
{
    r->rc = world_delete(&r->world, r->guresid, NULL, &r->answer);
}

static void act_delete(struct replica *r)
{
    do_deletion(r, delete);
}

static hfd_rc txn_nothing(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    (void)tx, (void)arg, (void)err;
    return HFD_OK;
}

static void take_locks(struct replica *r)
{
    r->rc = hfd_store_update_wait(r->world.store, txn_nothing, NULL, &r->world.err);
}

/* A deletion that takes its locks, and no more: world_delete looks before for a resource. */
static void act_take_locks(struct replica *r)
{
    do_deletion(r, take_locks);
}

static void act_report(struct replica *r)
{
    naming.fleet_id = r->target;
    (void)world_report(&r->world, r->target,
                       &(struct world_report){.adapter = r->adapter, .available = HFD_STATUS_TRUE});
    naming.fleet_id = HFD_SLICE_NONE;
}

static void act_finalize(struct replica *r)
{
    naming.fleet_id = r->target;
    (void)world_report(&r->world, r->target,
                       &(struct world_report){.adapter = r->adapter, .finalized = true});
    naming.fleet_id = HFD_SLICE_NONE;
}

struct target_step {
    struct hfd_fleet_call call;
    hfd_slice id;
};

static hfd_rc txn_add_pool(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct target_step *s = arg;
    const struct hfd_fleet_create in = {.kind = HFD_KIND_NODEPOOL,
                                        .owner_id = s->id,
                                        .name = HFD_SLICE("late"),
                                        .spec = HFD_SLICE("{}"),
                                        .labels = HFD_SLICE("{}")};
    struct hfd_fleet_row row;

    return hfd_fleet_create(tx, &s->call, &in, &row, err);
}

static hfd_rc txn_delete_cluster(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct target_step *s = arg;
    const struct hfd_fleet_target target = {.kind = HFD_KIND_CLUSTER, .id = s->id};
    struct hfd_fleet_deletion deletion;

    return hfd_fleet_delete(tx, &s->call, &target, &deletion, err);
}

static void act_on_target(struct replica *r, hfd_txn_fn *fn)
{
    struct target_step s = {.call = {.fleet = &r->world.driver.fleet,
                                     .now_us = world_now(&r->world),
                                     .caller = HFD_SLICE("somebody@example.com"),
                                     .mem = &r->world.mem},
                            .id = r->target};

    r->rc = hfd_store_update_wait(r->world.store, fn, &s, &r->world.err);
}

static void act_add_pool(struct replica *r)
{
    act_on_target(r, txn_add_pool);
}

static void act_delete_cluster(struct replica *r)
{
    act_on_target(r, txn_delete_cluster);
}

/* A cluster with the label of "g", and no resource. */
static hfd_rc txn_add_orphan(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct target_step *s = arg;
    const struct hfd_fleet_create in = {.kind = HFD_KIND_CLUSTER,
                                        .owner_id = HFD_SLICE(""),
                                        .name = HFD_SLICE("ccc"),
                                        .spec = HFD_SLICE("{}"),
                                        .labels = HFD_SLICE("{\"humanitec_guresid\":\"g\"}")};
    struct hfd_fleet_row row;

    return hfd_fleet_create(tx, &s->call, &in, &row, err);
}

static void act_add_orphan(struct replica *r)
{
    act_on_target(r, txn_add_orphan);
}

/* ---- looks ---- */

static hfd_slice target_found;
static enum hfd_kind kind_looked_for;
static const char *name_looked_for;
static int64_t counted;

static void act_find(struct replica *r)
{
    const struct hfd_fleet_row *row = world_find(&r->world, kind_looked_for, name_looked_for);

    target_found = row != NULL ? row->id : HFD_SLICE_NONE;
}

/* Its id lives as long as the first replica's world. */
static hfd_slice find(enum hfd_kind kind, const char *name)
{
    kind_looked_for = kind;
    name_looked_for = name;
    do_now(&fx.r[0], act_find);
    return target_found;
}

static void act_count(struct replica *r)
{
    counted = world_count(&r->world, kind_looked_for);
}

static int64_t count(enum hfd_kind kind)
{
    kind_looked_for = kind;
    do_now(&fx.r[0], act_count);
    return counted;
}

static enum hfd_answer get(const char *guresid)
{
    fx.r[0].guresid = guresid;
    do_now(&fx.r[0], act_get);
    assert_int_equal(fx.r[0].rc, HFD_OK);
    return fx.r[0].answer.answer;
}

static void put(const char *guresid, const char *body)
{
    fx.r[0].guresid = guresid;
    fx.r[0].body = body;
    do_now(&fx.r[0], act_put);
    if (fx.r[0].rc != HFD_OK)
        fail_msg("PUT: %s: %s", fx.r[0].world.err.field, fx.r[0].world.err.msg);
}

static void with_target(size_t i, hfd_slice target, const char *adapter)
{
    fx.r[i].target = target;
    fx.r[i].adapter = adapter;
}

static void report_now(hfd_slice target, const char *adapter, act_fn *act)
{
    with_target(0, target, adapter);
    do_now(&fx.r[0], act);
}

/* ---- rules ---- */

/* Two adapters report at once: the conditions count both. */
static void both_reports_count(void **state)
{
    hfd_slice cluster;

    (void)state;
    put("g", CLUSTER("ccc", ""));
    cluster = find(HFD_KIND_CLUSTER, "ccc");
    with_target(0, cluster, "validation");
    with_target(1, cluster, "dns");
    interleave(act_report, act_report);
    assert_int_equal(get("g"), HFD_ANSWER_OUTPUT);
}

/* The last reports on a cluster and on its nodepool come at once: the resource is ready. */
static void last_reports_make_ready(void **state)
{
    (void)state;
    put("g", CLUSTER("ccc", POOL("ppp")));
    report_now(find(HFD_KIND_CLUSTER, "ccc"), "validation", act_report);
    with_target(0, find(HFD_KIND_CLUSTER, "ccc"), "dns");
    with_target(1, find(HFD_KIND_NODEPOOL, "ppp"), "validation");
    interleave(act_report, act_report);
    assert_int_equal(get("g"), HFD_ANSWER_OUTPUT);
}

static void delete_now(const char *guresid)
{
    fx.r[0].guresid = guresid;
    do_now(&fx.r[0], act_delete);
    assert_int_equal(fx.r[0].rc, HFD_OK);
}

/* The two last adapters are done at once: the cluster goes, and the resource with it. */
static void last_finalized_removes(void **state)
{
    hfd_slice cluster;

    (void)state;
    put("g", CLUSTER("ccc", ""));
    cluster = find(HFD_KIND_CLUSTER, "ccc");
    delete_now("g");
    with_target(0, cluster, "validation");
    with_target(1, cluster, "dns");
    interleave(act_finalize, act_finalize);
    assert_int_equal(count(HFD_KIND_CLUSTER), 0);
    assert_int_equal(get("g"), HFD_ANSWER_ABSENT);
}

/* The last two nodepools go at once: their cluster, done before, goes too. */
static void parent_goes_with_its_last_child(void **state)
{
    hfd_slice cluster, p, q;

    (void)state;
    put("g", CLUSTER("ccc", POOL("ppp") "," POOL("qqq")));
    cluster = find(HFD_KIND_CLUSTER, "ccc");
    p = find(HFD_KIND_NODEPOOL, "ppp");
    q = find(HFD_KIND_NODEPOOL, "qqq");
    delete_now("g");
    report_now(cluster, "validation", act_finalize);
    report_now(cluster, "dns", act_finalize);
    with_target(0, p, "validation");
    with_target(1, q, "validation");
    interleave(act_finalize, act_finalize);
    assert_int_equal(count(HFD_KIND_NODEPOOL), 0);
    assert_int_equal(count(HFD_KIND_CLUSTER), 0);
    assert_int_equal(get("g"), HFD_ANSWER_ABSENT);
}

/* No nodepool lives in a cluster that is being deleted, whichever call comes first. */
static void no_nodepool_in_a_deleted_cluster(void **state)
{
    hfd_slice cluster;

    (void)state;
    put("g", CLUSTER("ccc", ""));
    cluster = find(HFD_KIND_CLUSTER, "ccc");
    with_target(0, cluster, NULL);
    with_target(1, cluster, NULL);
    interleave(act_delete_cluster, act_add_pool);
    assert_int_equal(fx.r[0].rc, HFD_OK);
    assert_int_equal(fx.r[1].rc, HFD_DELETING);

    put("h", CLUSTER("ddd", ""));
    cluster = find(HFD_KIND_CLUSTER, "ddd");
    with_target(0, cluster, NULL);
    with_target(1, cluster, NULL);
    interleave(act_add_pool, act_delete_cluster);
    assert_int_equal(fx.r[1].rc, HFD_OK);
    assert_null(find(HFD_KIND_NODEPOOL, "late").p);
}

static void two_puts(const char *first, const char *second)
{
    fx.r[0].guresid = fx.r[1].guresid = "g";
    fx.r[0].body = first;
    fx.r[1].body = second;
    interleave(act_put, act_put);
    assert_int_equal(fx.r[0].rc, HFD_OK);
    assert_int_equal(fx.r[1].rc, HFD_OK);
    assert_int_equal(fx.r[0].answer.answer, HFD_ANSWER_HINT);
    assert_int_equal(count(HFD_KIND_CLUSTER), 1);
}

/* Two PUTs of one GUResID at once make one cluster; the second with another name is refused. */
static void one_put_makes_one_cluster(void **state)
{
    (void)state;
    two_puts(CLUSTER("ccc", ""), CLUSTER("ccc", ""));
    assert_int_equal(fx.r[1].answer.answer, HFD_ANSWER_HINT);
    assert_true(hfd_slice_eq(fx.r[0].answer.cookie, fx.r[1].answer.cookie));
}

static void the_other_put_is_busy(void **state)
{
    (void)state;
    two_puts(CLUSTER("ccc", ""), CLUSTER("ddd", ""));
    assert_int_equal(fx.r[1].answer.answer, HFD_ANSWER_BUSY);
}

/* Two GUResIDs with one name at once: the one that comes later is refused, and makes nothing. */
static void a_name_is_taken_once(void **state)
{
    (void)state;
    fx.r[0].guresid = "g";
    fx.r[1].guresid = "h";
    fx.r[0].body = fx.r[1].body = CLUSTER("ccc", "");
    interleave(act_put, act_put);
    assert_true(fx.overtook);
    assert_int_equal(fx.r[1].rc, HFD_OK);
    assert_int_equal(fx.r[0].rc, HFD_INVALID);
    assert_non_null(strstr(fx.r[0].world.err.msg, "is taken by"));
    assert_int_equal(count(HFD_KIND_CLUSTER), 1);
    assert_int_equal(get("g"), HFD_ANSWER_ABSENT);
}

/* The cluster goes while a nodepool resource comes into it: that one waits, and is refused. */
static void a_nodepool_resource_waits_for_its_cluster(void **state)
{
    (void)state;
    put("g", CLUSTER("ccc", ""));
    fx.r[0].guresid = "g";
    fx.r[1].guresid = "n";
    fx.r[1].body = SINGLE("nnn");
    interleave(act_delete, act_put);
    assert_true(fx.waited);
    assert_int_equal(fx.r[0].rc, HFD_OK);
    assert_int_equal(fx.r[1].rc, HFD_INVALID);
    assert_int_equal(count(HFD_KIND_NODEPOOL), 0);
}

/* A deletion changes the nodepool of another resource: its reports and its PUT wait. */
static void a_cluster_is_one_family(void **state)
{
    (void)state;
    put("g", CLUSTER("ccc", ""));
    put("n", SINGLE("nnn"));
    fx.r[0].guresid = "g";
    with_target(1, find(HFD_KIND_NODEPOOL, "nnn"), "validation");
    interleave(act_delete, act_report);
    assert_true(fx.waited);
    assert_int_equal(fx.r[0].rc, HFD_OK);

    put("h", CLUSTER("ddd", ""));
    put("m", SINGLE_IN("h", "mmm"));
    fx.r[0].guresid = "h";
    fx.r[1].guresid = "m"; /* names its own root alone */
    interleave(act_delete, act_delete);
    assert_true(fx.waited);
    assert_int_equal(fx.r[0].rc, HFD_OK);
    assert_int_equal(fx.r[1].rc, HFD_OK);
}

static void run(PGconn *conn, const char *sql)
{
    PGresult *r = PQexec(conn, sql);

    if (PQresultStatus(r) != PGRES_COMMAND_OK && PQresultStatus(r) != PGRES_TUPLES_OK)
        fail_msg("%s", PQresultErrorMessage(r));
    PQclear(r);
}

/*
 * A deletion waits for the PUT that makes its nodepool resource. Then it takes the lock of the
 * cluster, too, which it could not know before.
 */
static void a_new_nodepool_brings_its_cluster(void **state)
{
    PGconn *other = PQconnectdb(test_place(fx.r[0].world.dir).url);

    (void)state;
    assert_int_equal(PQstatus(other), CONNECTION_OK);
    put("h", CLUSTER("ddd", ""));
    fx.r[0].guresid = fx.r[1].guresid = "m";
    fx.r[0].body = SINGLE_IN("h", "mmm");
    begin_both(act_put, act_take_locks);
    assert_true(fx.waited);
    run(other, "BEGIN");
    assert_int_equal(PQsendQuery(other, "SELECT pg_advisory_xact_lock(hashtextextended('rh',"
                                        " hashtext(current_schema())))"),
                     1);
    for (int i = 0; i < WAITS && !is_there("SELECT 1 FROM pg_locks WHERE NOT granted"
                                           " AND locktype = 'advisory' HAVING count(*) = 2");
         i++)
        (void)poll(NULL, 0, 10);
    let_go();
    await(&fx.r[0]);
    PQclear(PQgetResult(other)); /* it has the lock of the cluster */
    assert_null(PQgetResult(other));
    for (int i = 0; i < WAITS && is_busy(&fx.r[1]) && !is_waiting(); i++)
        (void)poll(NULL, 0, 10);
    assert_true(is_busy(&fx.r[1]));
    run(other, "ROLLBACK");
    await(&fx.r[1]);
    assert_int_equal(fx.r[1].rc, HFD_OK);
    PQfinish(other);
}

/* A PUT that adopts an orphan is alone: the orphan has another root. */
static void an_adoption_is_alone(void **state)
{
    hfd_slice cluster;

    (void)state;
    do_now(&fx.r[0], act_add_orphan);
    assert_int_equal(fx.r[0].rc, HFD_OK);
    cluster = find(HFD_KIND_CLUSTER, "ccc");
    fx.r[0].guresid = "g";
    fx.r[0].body = CLUSTER("ccc", "");
    with_target(1, cluster, "validation");
    interleave(act_put, act_report);
    assert_true(fx.waited);
    assert_int_equal(fx.r[0].rc, HFD_OK);
    assert_int_equal(count(HFD_KIND_CLUSTER), 1);
    report_now(cluster, "dns", act_report);
    report_now(cluster, "validation", act_report);
    assert_int_equal(get("g"), HFD_ANSWER_OUTPUT);
}

/* Two GUResIDs at once: each has numbers of its own in the tables and in the history. */
static void numbers_are_given_once(void **state)
{
    (void)state;
    fx.r[0].guresid = "g";
    fx.r[1].guresid = "h";
    fx.r[0].body = CLUSTER("ccc", POOL("ppp"));
    fx.r[1].body = CLUSTER("ddd", POOL("ppp"));
    interleave(act_put, act_put);
    assert_int_equal(fx.r[0].rc, HFD_OK);
    assert_int_equal(fx.r[1].rc, HFD_OK);
    assert_int_equal(count(HFD_KIND_CLUSTER), 2);
    assert_int_equal(count(HFD_KIND_NODEPOOL), 2);
}

/* Two operations of one kind end at the same instant: both are taken for forecasts. */
static void both_endings_are_kept(void **state)
{
    PGresult *result;

    (void)state;
    put("g", CLUSTER("ccc", ""));
    put("h", CLUSTER("ddd", ""));
    for (size_t i = 0; i < 2; i++)
        test_clock_advance(&fx.r[i].world.clock, HFD_US_PER_S);
    report_now(find(HFD_KIND_CLUSTER, "ccc"), "dns", act_report);
    report_now(find(HFD_KIND_CLUSTER, "ddd"), "dns", act_report);
    with_target(0, find(HFD_KIND_CLUSTER, "ccc"), "validation");
    with_target(1, find(HFD_KIND_CLUSTER, "ddd"), "validation");
    interleave(act_report, act_report);
    assert_int_equal(get("g"), HFD_ANSWER_OUTPUT);
    assert_int_equal(get("h"), HFD_ANSWER_OUTPUT);
    result = PQexec(fx.looker, "SELECT 1 FROM past");
    assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
    assert_int_equal(PQntuples(result), 2);
    PQclear(result);
}

#define OTHER_SPEC                                                                                 \
    "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{\"cluster\":"                        \
    "{\"name\":\"ccc\",\"spec\":{\"n\":2}},\"nodepools\":[]}}}"

/* A report of the old generation and a new input at once: the new input is not ready by it. */
static void a_late_report_is_of_its_generation(void **state)
{
    hfd_slice cluster;

    (void)state;
    put("g", CLUSTER("ccc", ""));
    cluster = find(HFD_KIND_CLUSTER, "ccc");
    report_now(cluster, "dns", act_report);
    report_now(cluster, "validation", act_report);
    assert_int_equal(get("g"), HFD_ANSWER_OUTPUT);
    fx.r[0].guresid = "g";
    fx.r[0].body = OTHER_SPEC;
    with_target(1, cluster, "validation");
    interleave(act_put, act_report);
    assert_int_equal(fx.r[0].rc, HFD_OK);
    assert_int_equal(get("g"), HFD_ANSWER_HINT);
}

/* A DELETE and a new input at once: the resource is being deleted. */
static void a_deletion_stays(void **state)
{
    hfd_slice cluster;

    (void)state;
    put("g", CLUSTER("ccc", ""));
    cluster = find(HFD_KIND_CLUSTER, "ccc");
    report_now(cluster, "dns", act_report);
    report_now(cluster, "validation", act_report);
    fx.r[0].guresid = fx.r[1].guresid = "g";
    fx.r[1].body = OTHER_SPEC;
    interleave(act_delete, act_put);
    assert_int_equal(fx.r[1].rc, HFD_OK);
    assert_int_equal(fx.r[1].answer.answer, HFD_ANSWER_BUSY);
    assert_int_equal(get("g"), HFD_ANSWER_HINT);
    assert_string_equal(fx.r[0].answer.hint.status, "deleting");
}

/* ---- the event feed ---- */

struct page {
    struct hfd_history_query query;
    struct hfd_arena *mem;
    struct hfd_history_list list;
};

static struct {
    int64_t after;
    size_t count;
    size_t count_early; /* when the second call of interleave() had read */
    char seen[512];     /* the ids, in order */
} feed;

static hfd_rc txn_page(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct page *p = arg;

    return hfd_history_row_page(tx, &p->query, p->mem, &p->list, err);
}

/* Reads on behind the newest entry that it saw. */
static void act_read_on(struct replica *r)
{
    struct page p = {.query = {.after = feed.after, .before = INT64_MAX, .limit = 100},
                     .mem = &r->world.mem};

    r->rc = hfd_store_read(r->world.reader, txn_page, &p, &r->world.err);
    for (size_t i = 0; r->rc == HFD_OK && i < p.list.count; i++) {
        const size_t used = strlen(feed.seen);

        (void)snprintf(feed.seen + used, sizeof(feed.seen) - used, "%.*s ",
                       HFD_SLICE_FMT(p.list.rows[i].id));
        feed.after = p.list.rows[i].seq;
        feed.count++;
    }
}

static void act_put_and_read_on(struct replica *r)
{
    act_put(r);
    act_read_on(r);
    feed.count_early = feed.count;
}

/*
 * One replica has a number and does not commit. Another commits, and a reader of the feed reads on.
 * Then the first commits: the reader does not miss its entry.
 */
static void the_feed_skips_nothing(void **state)
{
    (void)state;
    feed.after = 0;
    feed.count = 0;
    feed.seen[0] = '\0';
    put("x", CLUSTER("xxx", ""));
    do_now(&fx.r[0], act_read_on);
    fx.r[0].guresid = "first";
    fx.r[1].guresid = "second";
    fx.r[0].body = CLUSTER("ccc", "");
    fx.r[1].body = CLUSTER("ddd", "");
    interleave(act_put, act_put_and_read_on);
    assert_true(fx.overtook);
    assert_int_equal(feed.count_early,
                     1); /* the second is behind the first, which is not there yet */
    do_now(&fx.r[0], act_read_on);
    assert_int_equal(fx.r[0].rc, HFD_OK);
    assert_non_null(strstr(feed.seen, "first "));
    assert_non_null(strstr(feed.seen, "second "));
    assert_int_equal(feed.count, 3);
}

/* A long transaction of another program in the same PostgreSQL does not hold the feed back. */
static void others_do_not_hold_the_feed(void **state)
{
    (void)state;
    feed.after = 0;
    feed.count = 0;
    feed.seen[0] = '\0';
    run(fx.looker, "BEGIN");
    run(fx.looker, "SELECT pg_current_xact_id()");
    put("x", CLUSTER("xxx", ""));
    do_now(&fx.r[1], act_read_on);
    run(fx.looker, "ROLLBACK");
    assert_int_equal(feed.count, 1);
}

struct feed_read {
    struct world *world;
    int64_t after;
    bool late; /* the other program's transaction ends behind the snapshot */
    struct hfd_feed feed;
};

static hfd_rc txn_feed(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct hfd_history_subject any = {HFD_ABOUT_RESOURCE, HFD_SLICE("any")};
    struct feed_read *r = arg;
    const struct hfd_ctx c = {.tx = tx, .mem = &r->world->mem, .err = err};
    const struct hfd_feed_query q = {.after = r->after, .size = 10};
    struct hfd_history_list unused;
    hfd_rc rc = hfd_history_row_list(tx, &any, c.mem, &unused, err); /* fixes the snapshot */

    if (r->late)
        run(fx.looker, "ROLLBACK");
    return rc == HFD_OK ? hfd_feed_read(&c, &q, &r->feed) : rc;
}

static struct feed_read read_feed;

static void act_read_feed(struct replica *r)
{
    read_feed.world = &r->world;
    r->rc = hfd_store_read(r->world.reader, txn_feed, &read_feed, &r->world.err);
}

static struct hfd_feed feed_after(int64_t after, bool late)
{
    read_feed = (struct feed_read){.after = after, .late = late};
    do_now(&fx.r[1], act_read_feed);
    assert_int_equal(fx.r[1].rc, HFD_OK);
    return read_feed.feed;
}

/*
 * Such a transaction ends between the snapshot of a read and its look at the locks. This read may
 * end early. It says nothing of lost entries, and the next one goes on where it stopped.
 */
static void a_read_that_ends_early_skips_nothing(void **state)
{
    struct hfd_feed f;
    int64_t first;

    (void)state;
    run(fx.looker, "BEGIN");
    run(fx.looker, "SELECT pg_current_xact_id()");
    put("x", CLUSTER("xxx", ""));
    f = feed_after(0, false);
    assert_int_equal(f.count, 1);
    first = f.next;
    put("y", CLUSTER("yyy", ""));
    f = feed_after(first, true);
    assert_int_equal(f.count, 0);
    assert_true(f.complete);
    assert_int_equal(f.next, first);
    f = feed_after(f.next, false);
    assert_int_equal(f.count, 1);
    assert_true(f.complete);
    assert_true(f.next > first);
}

static void act_restart(struct replica *r)
{
    world_stop(&r->world);
    r->rc = world_start(&r->world);
}

/* Numbers that came from another database are not given again. */
static void numbers_go_on_behind_those_there(void **state)
{
    const int64_t high = INT64_C(1) << 52;
    char sql[96];

    (void)state;
    (void)snprintf(sql, sizeof(sql), "INSERT INTO history_floor (one, seq) VALUES (1, %lld)",
                   (long long)high);
    run(fx.looker, sql);
    do_now(&fx.r[0], act_restart);
    assert_int_equal(fx.r[0].rc, HFD_OK);
    feed.after = 0;
    feed.count = 0;
    feed.seen[0] = '\0';
    put("x", CLUSTER("xxx", ""));
    do_now(&fx.r[0], act_read_on);
    assert_int_equal(feed.count, 1);
    assert_true(feed.after > high);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(both_reports_count, setup, teardown),
        cmocka_unit_test_setup_teardown(last_reports_make_ready, setup, teardown),
        cmocka_unit_test_setup_teardown(last_finalized_removes, setup, teardown),
        cmocka_unit_test_setup_teardown(parent_goes_with_its_last_child, setup, teardown),
        cmocka_unit_test_setup_teardown(no_nodepool_in_a_deleted_cluster, setup, teardown),
        cmocka_unit_test_setup_teardown(one_put_makes_one_cluster, setup, teardown),
        cmocka_unit_test_setup_teardown(the_other_put_is_busy, setup, teardown),
        cmocka_unit_test_setup_teardown(a_name_is_taken_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_nodepool_resource_waits_for_its_cluster, setup, teardown),
        cmocka_unit_test_setup_teardown(a_cluster_is_one_family, setup, teardown),
        cmocka_unit_test_setup_teardown(a_new_nodepool_brings_its_cluster, setup, teardown),
        cmocka_unit_test_setup_teardown(an_adoption_is_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(numbers_are_given_once, setup, teardown),
        cmocka_unit_test_setup_teardown(both_endings_are_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(a_late_report_is_of_its_generation, setup, teardown),
        cmocka_unit_test_setup_teardown(a_deletion_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(the_feed_skips_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(others_do_not_hold_the_feed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_read_that_ends_early_skips_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(numbers_go_on_behind_those_there, setup, teardown),
    };

    hfd_log_set_level(HFD_LOG_ERROR);
    if (!test_on_postgres()) {
        (void)puts("skipped: HFD_TEST_STORE names no PostgreSQL");
        return SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
