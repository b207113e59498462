/*
 * The thread of `serve` that seals stored secrets again, on a database with two replicas. The one
 * that leads works, and the other one does not. Their time is moved by
 * hand.
 */
#include "handlers/cli/serve_keys.h"

#include "driver/base/base.h"
#include "driver/base/log.h"
#include "driver/base/thread.h"
#include "driver/core/keyring.h"
#include "driver/core/ring_check.h"
#include "driver/replica/keeper_int.h"
#include "store/migrate.h"
#include "store/rows_replica.h"
#include "tests/lib/place.h"
#include "tests/lib/world.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <unistd.h>

#include <cmocka.h>

#define RESOURCES 3
#define REPLICAS 2
#define PATIENCE 6000 /* looks, 10 ms apart */

struct fixture {
    struct world w;
    char keys[TMPDIR_MAX + 16];
    struct hfd_keeper *keepers[REPLICAS];
    struct hfd_serve_reseal *threads[REPLICAS];
};

/* ---- when a thread looks whether it is to work ---- */

static struct {
    struct hfd_keeper *_Atomic keeper;
    atomic_uint count;
} looks[REPLICAS];

void __real_hfd_keeper_hold(struct hfd_keeper *k, struct hfd_hold *out);
void __wrap_hfd_keeper_hold(struct hfd_keeper *k, struct hfd_hold *out);

void __wrap_hfd_keeper_hold(struct hfd_keeper *k, struct hfd_hold *out)
{
    __real_hfd_keeper_hold(k, out);
    for (int i = 0; i < REPLICAS; i++)
        if (k != NULL && k == atomic_load(&looks[i].keeper))
            atomic_fetch_add(&looks[i].count, 1);
}

/* ---- failures, and time that a thread waits for the next work ---- */

static struct {
    atomic_int left;  /* works that will fail */
    atomic_int count; /* those that failed */
} failures;

hfd_rc __real_hfd_reseal_all(struct hfd_reseal *r, struct hfd_err *err);
hfd_rc __wrap_hfd_reseal_all(struct hfd_reseal *r, struct hfd_err *err);

hfd_rc __wrap_hfd_reseal_all(struct hfd_reseal *r, struct hfd_err *err)
{
    if (atomic_load(&failures.left) == 0)
        return __real_hfd_reseal_all(r, err);
    atomic_fetch_sub(&failures.left, 1);
    atomic_fetch_add(&failures.count, 1);
    return hfd_fail(err, HFD_AWAY, "of the test");
}

bool __real_hfd_sleeper_wait(struct hfd_sleeper *s, int64_t us, bool *rung);
bool __wrap_hfd_sleeper_wait(struct hfd_sleeper *s, int64_t us, bool *rung);

/* A minute is over at once, and ten are not. */
bool __wrap_hfd_sleeper_wait(struct hfd_sleeper *s, int64_t us, bool *rung)
{
    return __real_hfd_sleeper_wait(s, us <= 60 * HFD_US_PER_S ? 0 : us, rung);
}

/*
 * Wakes a thread and waits until it has worked from begin to end. The first look may have begun
 * before, by news of its replica. The last one is behind the work.
 */
static void let_work(struct fixture *fx, int i)
{
    for (int round = 0; round < 3; round++) {
        const unsigned before = atomic_load(&looks[i].count);

        hfd_serve_reseal_wake(fx->threads[i]);
        while (atomic_load(&looks[i].count) == before)
            (void)sched_yield();
    }
}

/* ---- replicas and rows ---- */

static hfd_rc admit_all(void *ctx, const struct hfd_ctx *c, const struct hfd_call *call,
                        const struct hfd_resource_row *was)
{
    (void)ctx;
    (void)c;
    (void)call;
    (void)was;
    return HFD_OK;
}

static const struct hfd_adapter_hooks hooks = {.judge = HFD_SLICE("validation"),
                                               .admit = admit_all};

static void take_ring(struct fixture *fx)
{
    hfd_keyring_free(fx->w.ring);
    assert_int_equal(hfd_keyring_load(fx->keys, &fx->w.ring, &fx->w.err), HFD_OK);
    fx->w.driver.ring = fx->w.ring;
}

static void make_keeper(struct fixture *fx, int i)
{
    const struct hfd_keeper_config config = {.store = fx->w.store,
                                             .clock = &fx->w.clock.clock,
                                             .db = &fx->w.clock.clock,
                                             .rng = &fx->w.rng.rng,
                                             .name = "machine",
                                             .schema = (int64_t)hfd_migrations_count,
                                             .key_ids = "5cba97cb",
                                             .settings = {10, 1}};

    assert_int_equal(hfd_keeper_new(&config, &fx->keepers[i], NULL), HFD_OK);
    assert_int_equal(hfd_keeper_beat(fx->keepers[i], NULL), HFD_OK);
    atomic_store(&looks[i].keeper, fx->keepers[i]);
}

static void start_thread(struct fixture *fx, int i)
{
    const struct hfd_serve_reseal_parts parts = {&fx->w.driver, fx->w.store, fx->keepers[i]};

    assert_int_equal(hfd_serve_reseal_start(&parts, &fx->threads[i], &fx->w.err), HFD_OK);
}

/* As a kill: the leases are not given back. */
static void kill_replica(struct fixture *fx, int i)
{
    hfd_serve_reseal_stop(&fx->threads[i]);
    atomic_store(&looks[i].keeper, NULL);
    hfd_keeper_free(fx->keepers[i]);
    fx->keepers[i] = NULL;
}

/* Secrets of orders, sealed with a key that is not the active one any more; two replicas. */
static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof(*fx));
    char id[9];

    assert_non_null(fx);
    world_open(&fx->w);
    (void)snprintf(fx->keys, sizeof(fx->keys), "%s/keys", fx->w.base);
    assert_int_equal(hfd_keyring_create(fx->keys, &hfd_rng_system, &fx->w.err), HFD_OK);
    take_ring(fx);
    fx->w.driver.hooks = &hooks;
    for (int i = 0; i < RESOURCES; i++) {
        char guresid[16], body[192];

        (void)snprintf(guresid, sizeof(guresid), "reseal-%d", i);
        (void)snprintf(body, sizeof(body),
                       "{\"type\":\"hyperfleet-cluster\",\"driver\":{\"values\":{\"cluster\":"
                       "{\"name\":\"c-%d\",\"spec\":{}}},\"secrets\":{\"pull_secret\":\"s\"}}}",
                       i);
        (void)world_put_ok(&fx->w, guresid, body, NULL);
    }
    assert_int_equal(hfd_keyring_change(fx->keys, HFD_KEY_ROTATE, &hfd_rng_system, id, &fx->w.err),
                     HFD_OK);
    take_ring(fx);
    make_keeper(fx, 0);
    make_keeper(fx, 1);
    *state = fx;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;

    for (int i = 0; i < REPLICAS; i++)
        kill_replica(fx, i);
    world_close(&fx->w);
    free(fx);
    return 0;
}

struct left {
    struct fixture *fx;
    size_t count;
};

static hfd_rc txn_left(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct left *left = arg;
    struct hfd_sealed_query query = {.table = HFD_SEALED_ORDERS};
    struct hfd_sealed_list list;
    struct hfd_key_view key;
    hfd_rc rc;

    for (size_t i = 0; i < hfd_keyring_count(left->fx->w.ring); i++) {
        hfd_keyring_view(left->fx->w.ring, i, &key);
        if (key.active)
            break;
    }
    query.active = (hfd_slice){(const char *)key.id, sizeof(key.id)};
    rc = hfd_sealed_row_list(tx, &query, &left->fx->w.mem, &list, err);
    left->count = list.count;
    return rc;
}

/* Returns how many orders the active key has not sealed. */
static size_t not_sealed(struct fixture *fx)
{
    struct left left = {.fx = fx};

    assert_int_equal(hfd_store_read(fx->w.reader, txn_left, &left, &fx->w.err), HFD_OK);
    return left.count;
}

/* ---- rules ---- */

/* The one that leads seals the rows. The other one leaves them alone. */
static void the_leader_alone_seals(void **state)
{
    struct fixture *fx = *state;

    assert_int_equal(not_sealed(fx), RESOURCES);
    start_thread(fx, 1);
    let_work(fx, 1);
    assert_int_equal(not_sealed(fx), RESOURCES);
    start_thread(fx, 0);
    let_work(fx, 0);
    assert_int_equal(not_sealed(fx), 0);
}

/* The other replica seals once the lease of a killed one has run out, by itself and not before. */
static void another_replica_goes_on(void **state)
{
    struct fixture *fx = *state;

    kill_replica(fx, 0);
    test_clock_advance(&fx->w.clock, HFD_REPLICA_LEASE_US - HFD_US_PER_S);
    assert_int_equal(hfd_keeper_beat(fx->keepers[1], NULL), HFD_OK);
    start_thread(fx, 1);
    let_work(fx, 1);
    assert_int_equal(not_sealed(fx), RESOURCES);
    test_clock_advance(&fx->w.clock, HFD_US_PER_S);
    assert_int_equal(hfd_keeper_beat(fx->keepers[1], NULL), HFD_OK);
    for (int i = 0; i < PATIENCE && not_sealed(fx) > 0; i++)
        (void)poll(NULL, 0, 10);
    assert_int_equal(not_sealed(fx), 0);
}

/* A holder that gave no sign of life in time stops by itself, before another one may take over. */
static void a_late_holder_does_not_seal(void **state)
{
    struct fixture *fx = *state;

    test_clock_advance(&fx->w.clock, HFD_REPLICA_LEASE_US - HFD_US_PER_S);
    start_thread(fx, 0);
    let_work(fx, 0);
    assert_int_equal(not_sealed(fx), RESOURCES);
    assert_int_equal(hfd_keeper_beat(fx->keepers[0], NULL), HFD_OK);
    let_work(fx, 0);
    assert_int_equal(not_sealed(fx), 0);
}

/* Work that failed is tried again soon, with nothing to wake it, until it succeeds. */
static void failed_work_is_tried_again_soon(void **state)
{
    struct fixture *fx = *state;

    atomic_store(&failures.count, 0);
    atomic_store(&failures.left, 3);
    start_thread(fx, 0);
    for (int i = 0; i < PATIENCE && not_sealed(fx) > 0; i++)
        (void)poll(NULL, 0, 10);
    assert_int_equal(not_sealed(fx), 0);
    assert_int_equal(atomic_load(&failures.count), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_leader_alone_seals, setup, teardown),
        cmocka_unit_test_setup_teardown(another_replica_goes_on, setup, teardown),
        cmocka_unit_test_setup_teardown(a_late_holder_does_not_seal, setup, teardown),
        cmocka_unit_test_setup_teardown(failed_work_is_tried_again_soon, setup, teardown),
    };

    hfd_log_set_fd(open("/dev/null", O_WRONLY | O_CLOEXEC));
    return hfd_base_init(NULL) == HFD_OK ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
