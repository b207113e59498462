/*
 * driver/backend/remote/remote.c, the thread alone: a real store, a server in this process, and
 * work and passes of the test's own. How the thread shares its slots, keeps its bounds, turns away
 * from a remote that fails, and ends.
 */
#include "driver/backend/remote/work.h"
#include "driver/backend/remote/remote.h"
#include "driver/base/base.h"
#include "driver/base/log.h"
#include "driver/base/metrics.h"
#include "driver/replica/keeper_int.h"
#include "store/migrate.h"
#include "store/rows_remote.h"
#include "store/sqlite/db_sqlite_int.h"
#include "store/store.h"
#include "tests/lib/fakehttp.h"
#include "tests/lib/faultvfs.h"
#include "tests/lib/place.h"
#include "tests/lib/seams.h"
#include "tests/lib/tmpdir.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <unistd.h>

#include <cmocka.h>

#define S HFD_US_PER_S
#define HOUR_US (INT64_C(3600) * S)
#define ITEMS_MAX 400
#define NEVER_US INT64_MAX

/* ---- a world of items that are due ---- */

struct item {
    char id[16];
    int64_t due_us; /* wall clock */
    int asks;       /* requests of one pass */
    bool bad;       /* take fails */
    bool silent;    /* is due, and has nothing to ask */
    bool writes;    /* take writes to the store */
    int working;    /* passes at this moment */
    int passes, takes, hurries;
};

struct world {
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t moved;
    struct item items[ITEMS_MAX];
    int count;
    bool hurry_is_due;
    int at_server, most_at_server, requests;
    int status; /* of the server's answers; 0 = hangs */
    int gate;   /* the server answers only when this many requests are there */
    int hurry_jobs;
};

static struct world world;

struct hfd_pass {
    struct hfd_remote_work work;
    struct item *item;
    int step;
    bool over;
    char path[64];
};

static struct item *find(hfd_slice id)
{
    for (int i = 0; i < world.count; i++)
        if (hfd_slice_is(id, world.items[i].id))
            return &world.items[i];
    fail();
    return NULL;
}

static void lock(void)
{
    (void)pthread_mutex_lock(&world.lock);
}

static void unlock(void)
{
    (void)pthread_cond_broadcast(&world.moved);
    (void)pthread_mutex_unlock(&world.lock);
}

static hfd_rc due(struct hfd_txn *tx, const struct hfd_work_query *query, struct hfd_arena *mem,
                  struct hfd_due *out, struct hfd_err *err)
{
    (void)tx;
    (void)mem;
    (void)err;
    lock();
    out->count = 0;
    out->next_us = INT64_MAX;
    for (int i = 0; i < world.count; i++) {
        if (world.items[i].due_us > query->now_us) {
            if (world.items[i].due_us < out->next_us)
                out->next_us = world.items[i].due_us;
        } else if (out->count < query->limit) {
            out->works[out->count++] = (struct hfd_remote_work){
                .guresid = hfd_slice_of(world.items[i].id), .kind = HFD_KIND_CLUSTER};
        }
    }
    unlock();
    return HFD_OK;
}

static hfd_rc hurry(struct hfd_txn *tx, hfd_slice guresid, int64_t older_us, int64_t now_us,
                    struct hfd_err *err)
{
    struct item *item;

    (void)tx;
    (void)err;
    assert_true(older_us < now_us);
    lock();
    item = find(guresid);
    item->hurries++;
    if (world.hurry_is_due)
        item->due_us = now_us;
    unlock();
    return HFD_OK;
}

static hfd_rc pass_new(const struct hfd_remote_policy *u, const struct hfd_remote_work *work,
                       struct hfd_pass **out, struct hfd_err *err)
{
    struct hfd_pass *p = calloc(1, sizeof(*p));

    (void)u;
    (void)err;
    assert_non_null(p);
    lock();
    p->item = find(work->guresid);
    p->work = (struct hfd_remote_work){.guresid = hfd_slice_of(p->item->id), .kind = work->kind};
    p->item->passes++;
    p->item->working++;
    assert_int_equal(p->item->working, 1); /* never two on one resource */
    unlock();
    *out = p;
    return HFD_OK;
}

static void pass_free(struct hfd_pass *p)
{
    lock();
    p->item->working--;
    unlock();
    free(p);
}

static const struct hfd_remote_work *pass_work(const struct hfd_pass *p)
{
    return &p->work;
}

static hfd_rc next(struct hfd_txn *tx, struct hfd_pass *p, int64_t now_us,
                   struct hfd_remote_request *out, struct hfd_err *err)
{
    (void)tx;
    (void)now_us;
    (void)err;
    *out = (struct hfd_remote_request){.path = HFD_SLICE_NONE};
    if (p->over || p->item->silent)
        return HFD_OK;
    (void)snprintf(p->path, sizeof(p->path), "/clusters/%s?step=%d", p->item->id, p->step);
    *out = (struct hfd_remote_request){
        .method = HFD_REMOTE_GET, .path = hfd_slice_of(p->path), .step = p->step};
    return HFD_OK;
}

static enum hfd_remote_health health_of(const struct hfd_remote_answer *a)
{
    if (!a->arrived || a->status >= 500)
        return HFD_REMOTE_ILL;
    if (a->status == 401)
        return HFD_REMOTE_REFUSES;
    return a->status == 302 ? HFD_REMOTE_WRONG : HFD_REMOTE_WELL;
}

static hfd_rc take(struct hfd_txn *tx, struct hfd_pass *p,
                   const struct hfd_remote_exchange *exchange, struct hfd_err *err)
{
    const struct hfd_remote_answer *answer = exchange->answer;
    hfd_rc rc = HFD_OK;

    assert_int_equal(exchange->request->step, p->step);
    if (p->item->writes)
        rc = hfd_remote_row_put(
            tx, &(struct hfd_remote_row){.guresid = p->work.guresid, .due_us = NEVER_US}, err);
    if (rc != HFD_OK)
        return rc;
    lock();
    if (p->item->bad) {
        rc = hfd_fail(err, HFD_CORRUPT, "it is damaged");
    } else {
        p->item->takes++;
        p->step++;
        p->over = p->step == p->item->asks || !answer->arrived || answer->status != 200;
        if (p->over)
            p->item->due_us =
                answer->arrived && answer->status == 200 ? NEVER_US : exchange->now_us + S / 100;
    }
    unlock();
    return rc;
}

static const struct hfd_remote_rules rules = {
    .due = due,
    .hurry = hurry,
    .pass_new = pass_new,
    .pass_free = pass_free,
    .pass_work = pass_work,
    .next = next,
    .take = take,
    .health_of = health_of,
};

/* ---- the server ---- */

static bool serve(void *ctx, struct fakehttp_conn *conn, const struct fakehttp_request *r)
{
    bool greeting = strstr(r->target, "pageSize") != NULL;
    int status;

    (void)ctx;
    lock();
    if (!greeting) {
        world.requests++;
        if (++world.at_server > world.most_at_server)
            world.most_at_server = world.at_server;
        (void)pthread_cond_broadcast(&world.moved);
        while (world.most_at_server < world.gate)
            (void)pthread_cond_wait(&world.moved, &world.lock);
        world.at_server--;
    }
    status = world.status;
    unlock();
    if (status == 0) {
        fakehttp_hold(conn);
        return false;
    }
    fakehttp_answer(conn, status, "Content-Type: application/json\r\n", "{}");
    return true;
}

/* ---- the thread under test ---- */

static atomic_llong added_us; /* to both clocks */

static int64_t wall_us(void *ctx)
{
    (void)ctx;
    return hfd_clock_wall_us(&hfd_clock_system) + atomic_load(&added_us);
}

static int64_t mono_us(void *ctx)
{
    (void)ctx;
    return hfd_clock_mono_us(&hfd_clock_system) + atomic_load(&added_us);
}

static const struct hfd_clock clock_moved = {.wall_us = wall_us, .mono_us = mono_us};

struct fixture {
    char dir[TMPDIR_MAX];
    char url[64];
    struct fakehttp *server;
    struct hfd_store *store;
    struct hfd_remote_policy policy;
    struct hfd_remote_config config;
    struct hfd_remote *remote, *second;
    struct test_clock database, machines[2]; /* moved by hand */
    struct test_rng rng;
    struct hfd_keeper *keepers[2];
};

static int open_all(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct hfd_store_config store = {0};
    struct hfd_err err = {0};

    assert_non_null(f);
    tmpdir_make(f->dir);
    store.place = test_place(f->dir);
    atomic_store(&added_us, 0);
    memset(&world, 0, sizeof(world));
    (void)pthread_mutex_init(&world.lock, NULL);
    (void)pthread_cond_init(&world.moved, NULL);
    world.status = 200;
    f->server = fakehttp_start(NULL, serve, f);
    (void)snprintf(f->url, sizeof(f->url), "http://127.0.0.1:%d", fakehttp_port(f->server));
    if (hfd_store_open(&store, &f->store, &err) != HFD_OK)
        fail_msg("%s", err.msg);
    f->policy = (struct hfd_remote_policy){
        .watch_us = S, .retry_min_us = HOUR_US, .retry_max_us = 2 * HOUR_US};
    f->config = (struct hfd_remote_config){
        .rules = &rules,
        .store = f->store,
        .policy = &f->policy,
        .rng = &hfd_rng_system,
        .http =
            {
                .clock = &clock_moved,
                .url = f->url,
                .connect_timeout_us = 60 * S,
                .timeout_us = 60 * S,
                .answer_max_bytes = 65536,
            },
        .fresh_us = S,
        .in_flight_max = 4,
        .per_second_max = 10000,
    };
    *state = f;
    return 0;
}

static int close_all(void **state)
{
    struct fixture *f = *state;

    hfd_remote_stop(&f->remote);
    hfd_remote_stop(&f->second);
    hfd_keeper_free(f->keepers[0]);
    hfd_keeper_free(f->keepers[1]);
    fakehttp_stop(f->server);
    hfd_store_close(&f->store);
    tmpdir_remove(f->dir);
    (void)pthread_cond_destroy(&world.moved);
    (void)pthread_mutex_destroy(&world.lock);
    free(f);
    return 0;
}

static void add_items(int count, int asks)
{
    for (int i = 0; i < count; i++) {
        struct item *item = &world.items[world.count++];

        *item = (struct item){.asks = asks};
        (void)snprintf(item->id, sizeof(item->id), "item-%d", i);
    }
}

static void start(struct fixture *f)
{
    struct hfd_err err = {0};

    if (hfd_remote_start(&f->config, &f->remote, &err) != HFD_OK)
        fail_msg("%s", err.msg);
}

static bool all_done(void)
{
    for (int i = 0; i < world.count; i++)
        if (world.items[i].due_us != NEVER_US && !world.items[i].bad && !world.items[i].silent)
            return false;
    return true;
}

static void await(bool (*holds)(void))
{
    lock();
    while (!holds())
        (void)pthread_cond_wait(&world.moved, &world.lock);
    unlock();
}

/* ---- replicas ---- */

static void beat(struct fixture *f, int at)
{
    const struct hfd_keeper_config config = {.store = f->store,
                                             .clock = &f->machines[at].clock,
                                             .db = &f->database.clock,
                                             .rng = &f->rng.rng,
                                             .name = "",
                                             .schema = (int64_t)hfd_migrations_count,
                                             .key_ids = ""};

    if (f->keepers[at] == NULL)
        assert_int_equal(hfd_keeper_new(&config, &f->keepers[at], NULL), HFD_OK);
    assert_int_equal(hfd_keeper_beat(f->keepers[at], NULL), HFD_OK);
}

static void start_with(struct fixture *f, int keeper, struct hfd_remote **out)
{
    struct hfd_err err = {0};

    f->config.keeper = f->keepers[keeper];
    if (hfd_remote_start(&f->config, out, &err) != HFD_OK)
        fail_msg("%s", err.msg);
}

static void open_replicas(struct fixture *f)
{
    test_clock_init(&f->database);
    test_clock_init(&f->machines[0]);
    test_clock_init(&f->machines[1]);
    test_rng_init(&f->rng, 3);
    beat(f, 0);
}

/* ---- tests ---- */

/*
 * Everything that is due is worked on, each once and to its end; as many at a time as the setting
 * says, and no more.
 */
static void what_is_due_is_done_side_by_side(void **state)
{
    struct fixture *f = *state;

    add_items(60, 3);
    world.gate = 4;
    start(f);
    await(all_done);
    assert_int_equal(world.most_at_server, 4);
    assert_int_equal(world.requests, 180);
    for (int i = 0; i < world.count; i++) {
        assert_int_equal(world.items[i].passes, 1);
        assert_int_equal(world.items[i].takes, 3);
    }
}

/*
 * The bound on requests holds: 30 requests at 100 a second, 20 of them at once, take a tenth of a
 * second.
 */
static void requests_are_bounded(void **state)
{
    struct fixture *f = *state;
    int64_t began_us = hfd_clock_mono_us(&hfd_clock_system);

    f->config.per_second_max = 100;
    add_items(30, 1);
    start(f);
    await(all_done);
    assert_true(hfd_clock_mono_us(&hfd_clock_system) - began_us >= S / 10);
}

static bool is_again_done(void)
{
    return world.items[0].passes >= 2 && all_done();
}

/*
 * An item that becomes due later is worked on then. An item that is committed meanwhile waits for
 * the wake.
 */
static void later_dues_are_seen(void **state)
{
    struct fixture *f = *state;

    add_items(2, 1);
    world.items[1].due_us = hfd_clock_wall_us(&hfd_clock_system) + S / 5;
    start(f);
    await(all_done);
    lock();
    world.items[0].due_us = 0;
    unlock();
    hfd_remote_wake(f->remote);
    await(is_again_done);
}

static bool all_hurried(void)
{
    for (int i = 0; i < world.count; i++)
        if (world.items[i].hurries == 0)
            return false;
    return true;
}

static void *poll_all(void *arg)
{
    struct fixture *f = arg;

    for (int i = 0; i < 20000; i++)
        hfd_remote_asked(f->remote, hfd_slice_of(world.items[i % world.count].id));
    return NULL;
}

/*
 * However many poll, a resource is hurried once in the time that an observation is fresh, and so
 * asked for at the remote.
 */
static void polls_do_not_multiply_requests(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[8];
    int64_t began_us, passed_us;

    f->config.fresh_us = 20 * S;
    add_items(10, 1);
    for (int i = 0; i < 10; i++)
        world.items[i].due_us = NEVER_US;
    world.hurry_is_due = true;
    start(f);
    began_us = hfd_clock_mono_us(&hfd_clock_system);
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, poll_all, f), 0);
    for (int i = 0; i < 8; i++)
        (void)pthread_join(threads[i], NULL);
    await(all_hurried);
    await(all_done);
    passed_us = hfd_clock_mono_us(&hfd_clock_system) - began_us;
    for (int i = 0; i < world.count; i++) {
        assert_in_range(world.items[i].hurries, 1, (uint64_t)(1 + passed_us / f->config.fresh_us));
        assert_int_equal(world.items[i].passes, world.items[i].hurries);
    }
}

static void state_until(struct fixture *f, enum hfd_remote_health health,
                        struct hfd_remote_state *out)
{
    do {
        (void)sched_yield();
        hfd_remote_state(f->remote, out);
    } while (out->health != health);
}

/* Waits until nothing is in flight and the breaker is open. */
static void open_and_quiet(struct fixture *f, struct hfd_remote_state *out)
{
    do {
        (void)sched_yield();
        hfd_remote_state(f->remote, out);
    } while (!out->breaker_open || out->in_flight != 0);
}

static int requests_so_far(void)
{
    int n;

    lock();
    n = world.requests;
    unlock();
    return n;
}

/*
 * A remote that fails is left alone after the third failure: what is in flight ends, nothing is
 * begun. Then one probe, and all goes on.
 */
static void a_remote_that_fails_is_left_alone(void **state)
{
    struct fixture *f = *state;
    struct hfd_remote_state s;
    int before, after;

    add_items(50, 1);
    world.status = 503;
    start(f);
    state_until(f, HFD_REMOTE_ILL, &s);
    open_and_quiet(f, &s);
    assert_string_equal(s.last_failure, "GET was answered with status 503");
    before = requests_so_far();
    assert_in_range(before, 2, 6); /* and the greeting */
    hfd_remote_wake(f->remote);
    hfd_remote_wake(f->remote);
    atomic_fetch_add(&added_us, HOUR_US);
    hfd_remote_wake(f->remote);
    do
        after = requests_so_far();
    while (after == before);
    open_and_quiet(f, &s);
    assert_int_equal(requests_so_far(), before + 1);
    lock();
    world.status = 200;
    unlock();
    atomic_fetch_add(&added_us, 2 * HOUR_US);
    hfd_remote_wake(f->remote);
    await(all_done);
    state_until(f, HFD_REMOTE_WELL, &s);
    assert_false(s.breaker_open);
    assert_string_equal(s.last_failure, "");
    assert_true(s.last_answer_us > 0);
}

/*
 * Refused credentials and what is no HyperFleet are told apart, at the start already, and do not
 * stop the work.
 */
static void the_state_tells_what_is_wrong(void **state)
{
    static const struct {
        int status;
        enum hfd_remote_health health;
    } cases[] = {{401, HFD_REMOTE_REFUSES}, {302, HFD_REMOTE_WRONG}, {500, HFD_REMOTE_ILL}};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hfd_remote_state s;

        lock();
        world.status = cases[i].status;
        unlock();
        start(f);
        state_until(f, cases[i].health, &s);
        assert_non_null(strstr(s.last_failure, "GET was answered with status "));
        hfd_remote_stop(&f->remote);
    }
}

static bool good_are_done(void)
{
    return world.items[0].passes > 0 && world.items[1].passes > 0 && all_done();
}

/*
 * A resource that fails on our side, and one with nothing to ask, delay no other one. They are not
 * tried in a loop.
 */
static void a_bad_resource_holds_up_nobody(void **state)
{
    struct fixture *f = *state;

    f->config.in_flight_max = 1;
    add_items(20, 1);
    world.items[0].bad = true;
    world.items[1].silent = true;
    start(f);
    await(good_are_done);
    assert_int_equal(world.items[0].passes, 1);
    assert_in_range(world.items[1].passes, 1, 20);
}

static bool some_at_server(void)
{
    return world.at_server + world.requests >= 4;
}

/* The end comes at once, though the remote hangs. */
static void the_end_waits_for_nobody(void **state)
{
    struct fixture *f = *state;
    int64_t began_us;

    world.status = 0;
    add_items(10, 1);
    start(f);
    await(some_at_server);
    began_us = hfd_clock_mono_us(&hfd_clock_system);
    hfd_remote_stop(&f->remote);
    assert_true(hfd_clock_mono_us(&hfd_clock_system) - began_us < 5 * S);
}

/* At whatever moment it is stopped, nothing is left behind, and the next one goes on. */
static void it_can_be_stopped_at_any_moment(void **state)
{
    struct fixture *f = *state;

    add_items(300, 2);
    for (int round = 0; round < 40; round++) {
        int takes = 0, wanted;

        start(f);
        lock();
        wanted = world.requests + round % 7;
        while (world.requests < wanted && !all_done())
            (void)pthread_cond_wait(&world.moved, &world.lock);
        unlock();
        hfd_remote_asked(f->remote, HFD_SLICE("item-1"));
        hfd_remote_wake(f->remote);
        hfd_remote_stop(&f->remote);
        for (int i = 0; i < world.count; i++) {
            assert_int_equal(world.items[i].working, 0);
            takes += world.items[i].takes;
        }
        assert_true(takes <= requests_so_far());
    }
    start(f);
    await(all_done);
}

static hfd_rc put_rows(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    static const char *const names[] = {"now", "long-ago", "watched-long-ago", "later", "waits"};
    const int64_t now_us = hfd_clock_wall_us(&hfd_clock_system);
    const int64_t due_us[] = {now_us, now_us - HOUR_US, now_us - HOUR_US, now_us + HOUR_US,
                              NEVER_US};
    hfd_rc rc = HFD_OK;

    (void)arg;
    for (size_t i = 0; rc == HFD_OK && i < 5; i++) {
        const struct hfd_remote_row row = {
            .guresid = hfd_slice_of(names[i]), .watched = i == 2, .due_us = due_us[i]};

        rc = hfd_remote_row_put(tx, &row, err);
    }
    return rc;
}

/* The metrics tell how much is due, and how much of it has been for long. */
static void what_is_due_is_counted(void **state)
{
    struct fixture *f = *state;
    bool told = false;

    f->policy.watch_us = HOUR_US / 2;
    assert_int_equal(hfd_store_update_wait(f->store, put_rows, NULL, NULL), HFD_OK);
    start(f);
    while (!told) {
        struct hfd_buf b;

        hfd_buf_init(&b, 1 << 20);
        hfd_metrics_render(&b);
        hfd_buf_addc(&b, '\0');
        told = strstr(b.p, "\nhfd_remote_due 3\n") != NULL &&
               strstr(b.p, "\nhfd_remote_overdue 2\n") != NULL;
        hfd_buf_fini(&b);
    }
}

static bool one_at_server(void)
{
    return world.at_server == 1;
}

/*
 * A store that fails ends the thread without a request to the remote. Later calls are safe, and so
 * is the end.
 */
static void a_broken_store_ends_the_work(void **state)
{
    struct fixture *f = *state;
    struct hfd_remote_state s;
    int requests;

    if (test_on_postgres())
        skip(); /* a broken connection is no broken store: it is opened anew */
    f->config.in_flight_max = 1;
    add_items(5, 1);
    for (int i = 0; i < world.count; i++)
        world.items[i].writes = true;
    world.gate = 2; /* holds the first request */
    start(f);
    await(one_at_server);
    faultvfs_arm(FAULTVFS_CHANGES, 1, true, 0);
    lock();
    world.gate = 0;
    unlock();
    while (hfd_store_ok(f->store))
        (void)sched_yield();
    hfd_remote_asked(f->remote, HFD_SLICE("item-1"));
    hfd_remote_wake(f->remote);
    hfd_remote_reload(f->remote);
    hfd_remote_state(f->remote, &s);
    hfd_remote_stop(&f->remote);
    requests = requests_so_far();
    assert_int_equal(requests, 1);
    assert_int_not_equal(faultvfs_disarm(), 0);
}

/* A file that cannot be used gives an error instead of a thread. */
static void bad_files_stop_the_start(void **state)
{
    struct fixture *f = *state;
    struct hfd_err err;

    f->config.http.token_file = "/nonexistent/token";
    assert_int_equal(hfd_remote_start(&f->config, &f->remote, &err), HFD_INVALID);
    assert_null(f->remote);
}

static int open_group(void **state)
{
    struct hfd_err err;

    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    faultvfs_register();
    hfd_db_set_vfs(FAULTVFS_NAME);
    hfd_log_set_fd(open("/dev/null", O_WRONLY | O_CLOEXEC));
    return hfd_base_init(&err) == HFD_OK ? 0 : -1;
}

/* The one that leads works: all is done, and nothing twice. */
static void one_of_two_replicas_works(void **state)
{
    struct fixture *f = *state;

    open_replicas(f);
    for (int i = 0; i < 6; i++)
        beat(f, 1 - i % 2);
    add_items(60, 2);
    start_with(f, 0, &f->remote);
    start_with(f, 1, &f->second);
    await(all_done);
    for (int i = 0; i < world.count; i++) {
        assert_int_equal(world.items[i].passes, 1);
        assert_int_equal(world.items[i].takes, 2);
    }
}

static bool four_at_server(void)
{
    return world.at_server >= 4;
}

static bool all_were_refused(void)
{
    for (int i = 0; i < world.count; i++)
        if (world.items[i].passes < 2)
            return false;
    return true;
}

static bool none_works(void)
{
    for (int i = 0; i < world.count; i++)
        if (world.items[i].working > 0)
            return false;
    return true;
}

/*
 * A replica whose clock stood still has its answers refused, as another leads. When it
 * knows, it works no more, and the other one does the work.
 */
static void a_late_answer_is_refused(void **state)
{
    struct fixture *f = *state;

    open_replicas(f);
    add_items(4, 1);
    world.gate = ITEMS_MAX;
    start_with(f, 0, &f->remote);
    await(four_at_server);
    test_clock_advance(&f->database, 10 * S);
    beat(f, 1);
    lock();
    world.gate = 0;
    unlock();
    await(all_were_refused);
    lock();
    for (int i = 0; i < world.count; i++)
        assert_int_equal(world.items[i].takes, 0);
    unlock();
    beat(f, 0);
    await(none_works);
    start_with(f, 1, &f->second);
    await(all_done);
    for (int i = 0; i < world.count; i++)
        assert_int_equal(world.items[i].takes, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_due_is_done_side_by_side),
        TEST(requests_are_bounded),
        TEST(later_dues_are_seen),
        TEST(polls_do_not_multiply_requests),
        TEST(a_remote_that_fails_is_left_alone),
        TEST(the_state_tells_what_is_wrong),
        TEST(a_bad_resource_holds_up_nobody),
        TEST(the_end_waits_for_nobody),
        TEST(it_can_be_stopped_at_any_moment),
        TEST(a_broken_store_ends_the_work),
        TEST(what_is_due_is_counted),
        TEST(bad_files_stop_the_start),
        TEST(one_of_two_replicas_works),
        TEST(a_late_answer_is_refused),
    };

    return cmocka_run_group_tests(tests, open_group, NULL);
}
