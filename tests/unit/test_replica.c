/*
 * driver/replica: the leader, the clock of the database, and the epoch of the settings.
 * Keepers of one database have a time that is moved by hand.
 */
#include "driver/base/base.h"
#include "driver/base/log.h"
#include "driver/replica/keeper_int.h"
#include "driver/replica/keeper.h"
#include "driver/replica/wake.h"
#include "store/db.h"
#include "store/migrate.h"
#include "store/row_io.h"
#include "store/rows_replica.h"
#include "tests/lib/place.h"
#include "tests/lib/seams.h"
#include "tests/lib/tmpdir.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <unistd.h>

#include <cmocka.h>

#define S HFD_US_PER_S
#define MANY 5

/* ---- the clock ---- */

struct clock_fixture {
    struct test_clock machine;
    struct hfd_db_clock db;
};

static int64_t now_of(struct clock_fixture *fx)
{
    return hfd_clock_wall_us(&fx->db.clock);
}

static void note(struct clock_fixture *fx, int64_t db_us, int64_t trip_us)
{
    const int64_t mono_us = fx->machine.mono_us;

    hfd_db_clock_note(&fx->db, &(struct hfd_db_time){mono_us - trip_us, db_us, mono_us});
}

static void the_clock_is_the_databases(void **state)
{
    struct clock_fixture fx;
    int64_t db_us, before_us;

    (void)state;
    test_clock_init(&fx.machine);
    hfd_db_clock_init(&fx.db, &fx.machine.clock);
    assert_true(now_of(&fx) == fx.machine.wall_us);
    db_us = fx.machine.wall_us + 3600 * S;
    note(&fx, db_us, 2000);
    assert_true(now_of(&fx) == db_us + 1000); /* half of the trip was before */
    /* A jump of the machine's clock changes nothing. */
    fx.machine.wall_us += 7200 * S;
    assert_true(now_of(&fx) == db_us + 1000);
    assert_true(hfd_db_clock_ahead_us(&fx.db) == -3600 * S + 1000);
    /* A measurement that agrees changes nothing; a slow one does not make it worse. */
    test_clock_advance(&fx.machine, 3 * S);
    note(&fx, db_us + 3 * S, 2000);
    assert_true(now_of(&fx) == db_us + 3 * S + 1000);
    test_clock_advance(&fx.machine, 3 * S);
    note(&fx, db_us + 2 * S, 5 * S);
    assert_true(now_of(&fx) == db_us + 6 * S + 1000);
    /* A database whose clock is ahead is followed at once. */
    test_clock_advance(&fx.machine, 3 * S);
    note(&fx, db_us + 100 * S, 0);
    assert_true(now_of(&fx) == db_us + 100 * S);
    /* One that went back is approached, and time never goes back. */
    before_us = now_of(&fx);
    for (int64_t i = 1; i < 100; i++) {
        test_clock_advance(&fx.machine, 3 * S);
        note(&fx, db_us + 50 * S + 3 * i * S, 0);
        assert_true(now_of(&fx) >= before_us);
        assert_true(i < 36 || now_of(&fx) == db_us + 50 * S + 3 * i * S);
        before_us = now_of(&fx);
    }
}

/* ---- keepers of one database ---- */

struct fixture {
    char base[TMPDIR_MAX], dir[TMPDIR_MAX + 8];
    struct hfd_store *store;
    struct test_clock clock; /* of machines and database */
    struct test_rng rng;
    struct hfd_keeper *keepers[MANY];
};

static int open_all(void **state)
{
    struct fixture *fx = calloc(1, sizeof(*fx));
    struct hfd_store_config config = {0};

    assert_non_null(fx);
    tmpdir_make(fx->base);
    (void)snprintf(fx->dir, sizeof(fx->dir), "%s/data", fx->base);
    config.place = test_place(fx->dir);
    config.stepped = true;
    assert_int_equal(hfd_store_open(&config, &fx->store, NULL), HFD_OK);
    test_clock_init(&fx->clock);
    test_rng_init(&fx->rng, 7);
    *state = fx;
    return 0;
}

static int close_all(void **state)
{
    struct fixture *fx = *state;

    for (int i = 0; i < MANY; i++)
        hfd_keeper_free(fx->keepers[i]);
    hfd_store_close(&fx->store);
    tmpdir_remove(fx->base);
    free(fx);
    return 0;
}

static void make(struct fixture *fx, int i, int64_t rules)
{
    const struct hfd_keeper_config config = {.store = fx->store,
                                             .clock = &fx->clock.clock,
                                             .db = &fx->clock.clock,
                                             .rng = &fx->rng.rng,
                                             .name = "machine",
                                             .schema = (int64_t)hfd_migrations_count,
                                             .key_ids = "5cba97cb",
                                             .settings = {rules * 10, rules}};

    assert_int_equal(hfd_keeper_new(&config, &fx->keepers[i], NULL), HFD_OK);
    assert_int_equal(hfd_keeper_beat(fx->keepers[i], NULL), HFD_OK);
}

static void beat(struct fixture *fx, int i)
{
    assert_int_equal(hfd_keeper_beat(fx->keepers[i], NULL), HFD_OK);
}

static bool leads(struct fixture *fx, int i)
{
    struct hfd_hold hold;

    hfd_keeper_hold(fx->keepers[i], &hold);
    return hold.leads;
}

static void kill(struct fixture *fx, int i)
{
    hfd_keeper_free(fx->keepers[i]);
    fx->keepers[i] = NULL;
}

struct checked {
    struct hfd_keeper *keeper;
    const struct hfd_hold *hold;
};

static hfd_rc txn_check(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct checked *c = arg;

    return hfd_keeper_check(c->keeper, tx, c->hold, err);
}

static hfd_rc check(struct fixture *fx, int i, const struct hfd_hold *hold)
{
    struct checked c = {fx->keepers[i], hold};

    return hfd_store_update_wait(fx->store, txn_check, &c, NULL);
}

/* The only server of a database leads for ever. */
static void without_a_keeper_it_leads(void **state)
{
    struct hfd_hold hold;

    (void)state;
    hfd_keeper_hold(NULL, &hold);
    assert_true(hold.leads);
    assert_true(hfd_keeper_holds(NULL, &hold));
    assert_int_equal(hfd_keeper_check(NULL, NULL, &hold, NULL), HFD_OK);
    hfd_keeper_listen(NULL, NULL, NULL);
    hfd_keeper_unlisten(NULL, NULL);
}

/* A second one leads when the first one ends: it gives its lease back. */
static void a_second_replica_follows(void **state)
{
    struct fixture *fx = *state;

    make(fx, 0, 1);
    assert_true(leads(fx, 0));
    make(fx, 1, 1);
    for (int i = 0; i < 10; i++) {
        test_clock_advance(&fx->clock, 3 * S);
        beat(fx, 0);
        beat(fx, 1);
        assert_true(leads(fx, 0) && !leads(fx, 1));
    }
    hfd_keeper_leave(fx->keepers[0]);
    assert_false(leads(fx, 0));
    beat(fx, 1);
    assert_true(leads(fx, 1));
}

/* A killed one is followed after 9 s, by a beat that comes at that moment. */
static void a_killed_replica_is_followed(void **state)
{
    struct fixture *fx = *state;
    int64_t waited_us = 0;

    make(fx, 0, 1);
    make(fx, 1, 1);
    kill(fx, 0);
    while (!leads(fx, 1) && waited_us < 60 * S) {
        const int64_t wait_us = hfd_keeper_wait_us(fx->keepers[1]);

        test_clock_advance(&fx->clock, wait_us);
        waited_us += wait_us;
        beat(fx, 1);
    }
    assert_in_range(waited_us, 8 * S, 10 * S);
}

/*
 * One that was stopped for a minute knows by its own clock that its lease is over. The transaction
 * refuses its earlier work as well, also when it leads again.
 */
static void a_stopped_replica_is_refused(void **state)
{
    struct fixture *fx = *state;
    struct hfd_hold hold, other;

    make(fx, 0, 1);
    hfd_keeper_hold(fx->keepers[0], &hold);
    assert_true(hold.leads && hfd_keeper_holds(fx->keepers[0], &hold));
    assert_int_equal(check(fx, 0, &hold), HFD_OK);
    test_clock_advance(&fx->clock, 8 * S - 1);
    assert_true(hfd_keeper_holds(fx->keepers[0], &hold));
    test_clock_advance(&fx->clock, 1); /* a second before others may take it */
    assert_false(hfd_keeper_holds(fx->keepers[0], &hold));
    make(fx, 1, 1);
    assert_false(leads(fx, 1));
    assert_int_equal(check(fx, 0, &hold), HFD_OK); /* no other replica leads */
    test_clock_advance(&fx->clock, S);
    beat(fx, 1);
    assert_true(leads(fx, 1));
    assert_int_equal(check(fx, 0, &hold), HFD_CONFLICT);
    hfd_keeper_hold(fx->keepers[1], &other);
    assert_true(other.epoch == hold.epoch + 1);
    kill(fx, 1);
    test_clock_advance(&fx->clock, 60 * S);
    beat(fx, 0);
    assert_true(leads(fx, 0));
    assert_int_equal(check(fx, 0, &hold), HFD_CONFLICT);
    assert_false(hfd_keeper_holds(fx->keepers[0], &hold));
}

static void run_sql(struct fixture *fx, const char *sql);

/* None leads while a program lives that works by shards. */
static void none_leads_beside_an_older_program(void **state)
{
    struct fixture *fx = *state;

    make(fx, 0, 1);
    make(fx, 1, 1);
    run_sql(fx, "UPDATE replica SET schema = 22 WHERE id = (SELECT max(id) FROM replica WHERE id <>"
                " (SELECT holder FROM leader))");
    beat(fx, 0);
    assert_false(leads(fx, 0));
    beat(fx, 1); /* it is of this version again */
    beat(fx, 0);
    assert_true(leads(fx, 0));
}

/* Replicas that stop, end and start at random. */
struct chaos {
    struct fixture *fx;
    int64_t due_us[MANY], stopped_us[MANY];
    uint32_t random;
};

static void disturb(struct chaos *c, int i)
{
    const int64_t now_us = c->fx->clock.mono_us;
    const bool runs = c->fx->keepers[i] != NULL;

    c->random = c->random * 1664525u + 1013904223u;
    if (!runs && c->random >> 24 == 0) {
        make(c->fx, i, 1);
        c->due_us[i] = now_us;
    } else if (runs && c->random >> 22 == 0) {
        kill(c->fx, i);
    } else if (runs && c->random >> 22 == 1) {
        c->stopped_us[i] = now_us + (int64_t)(c->random % 60) * S;
    }
}

/* A beat, if it is due and the replica is not stopped. @return whether it leads */
static bool go_on(struct chaos *c, int i)
{
    const int64_t now_us = c->fx->clock.mono_us;

    if (c->fx->keepers[i] == NULL)
        return false;
    if (now_us >= c->stopped_us[i] && now_us >= c->due_us[i]) {
        beat(c->fx, i);
        c->due_us[i] = now_us + hfd_keeper_wait_us(c->fx->keepers[i]);
    }
    return leads(c->fx, i);
}

/* No two lead at any time, and one does when it is quiet again. */
static void never_two_lead(void **state)
{
    struct fixture *fx = *state;
    struct chaos c = {.fx = fx, .random = 12345};
    int steps = 0, leaders = 0;

    for (int step = 0; step < 4000; step++) {
        leaders = 0;
        test_clock_advance(&fx->clock, S / 4);
        for (int i = 0; i < MANY; i++) {
            disturb(&c, i);
            leaders += go_on(&c, i) ? 1 : 0;
        }
        assert_in_range(leaders, 0, 1);
        steps += leaders;
    }
    assert_true(steps > 2000);
    for (int i = 0; i < MANY; i++)
        if (fx->keepers[i] == NULL)
            make(fx, i, 1);
    for (int round = 0; round < 4; round++) {
        test_clock_advance(&fx->clock, 3 * S);
        leaders = 0;
        for (int i = 0; i < MANY; i++)
            beat(fx, i);
        for (int i = 0; i < MANY; i++)
            leaders += leads(fx, i) ? 1 : 0;
    }
    assert_int_equal(leaders, 1);
}

static void count_call(void *ctx)
{
    ++*(int *)ctx;
}

static void a_change_of_the_leader_is_told(void **state)
{
    struct fixture *fx = *state;
    int calls = 0;

    make(fx, 0, 1);
    make(fx, 1, 1);
    hfd_keeper_listen(fx->keepers[1], count_call, &calls);
    beat(fx, 0);
    beat(fx, 1);
    assert_int_equal(calls, 0);
    hfd_keeper_leave(fx->keepers[0]);
    beat(fx, 1);
    assert_int_equal(calls, 1);
    beat(fx, 1);
    assert_int_equal(calls, 1);
    test_clock_advance(&fx->clock, 60 * S);
    beat(fx, 0);
    hfd_keeper_unlisten(fx->keepers[1], &calls);
    beat(fx, 1);
    assert_int_equal(calls, 1);
}

/* ---- wake-ups, which need signals of the database ---- */

static void note_call(void *ctx)
{
    atomic_fetch_add((atomic_int *)ctx, 1);
}

/* A note reaches the other replica, and not the one that made it. Many notes are few signals. */
static void a_note_wakes_the_others(void **state)
{
    struct fixture *fx = *state;
    atomic_int heard[2] = {0, 0};
    struct hfd_wake *wakes[2];
    int64_t began_us;

    if (!test_on_postgres())
        skip();
    for (int i = 0; i < 2; i++)
        assert_int_equal(hfd_wake_start(&(struct hfd_wake_config){fx->store, note_call, &heard[i]},
                                        &wakes[i], NULL),
                         HFD_OK);
    while (atomic_load(&heard[1]) == 0) { /* until it listens */
        hfd_wake_note(wakes[0]);
        (void)sched_yield();
    }
    began_us = hfd_clock_mono_us(&hfd_clock_system);
    atomic_store(&heard[1], 0);
    while (hfd_clock_mono_us(&hfd_clock_system) - began_us < 3 * S / 10) {
        hfd_wake_note(wakes[0]);
        (void)sched_yield();
    }
    while (atomic_load(&heard[1]) == 0)
        (void)sched_yield();
    hfd_wake_stop(&wakes[0]);
    hfd_wake_stop(&wakes[1]);
    assert_true(atomic_load(&heard[1]) <=
                (hfd_clock_mono_us(&hfd_clock_system) - began_us) / (S / 10) + 2);
    assert_int_equal(atomic_load(&heard[0]), 0);
}

/* SQLite has one server: a signal is refused, and nothing waits. */
static void sqlite_has_no_signals(void **state)
{
    struct fixture *fx = *state;
    struct hfd_store_reader *reader;
    bool heard = true;

    if (test_on_postgres())
        skip();
    assert_int_equal(hfd_store_reader_open(fx->store, &reader, NULL), HFD_OK);
    assert_int_equal(hfd_store_signal(reader, &(struct hfd_db_signal){.send = true}, &heard, NULL),
                     HFD_INVALID);
    assert_false(heard);
    hfd_store_reader_close(&reader);
}

/* ---- settings ---- */

static bool outdated(struct fixture *fx, int i)
{
    struct hfd_keeper_state s;

    beat(fx, i);
    hfd_keeper_state(fx->keepers[i], &s);
    return s.outdated;
}

/* The newest replica's settings hold; an older one is outdated until it has them. */
static void the_newest_settings_hold(void **state)
{
    struct fixture *fx = *state;

    make(fx, 0, 1);
    make(fx, 1, 1);
    assert_true(hfd_keeper_epoch(fx->keepers[0]) == 1 && hfd_keeper_epoch(fx->keepers[1]) == 1);
    assert_false(outdated(fx, 0) || outdated(fx, 1));
    make(fx, 2, 2);
    assert_true(hfd_keeper_epoch(fx->keepers[2]) == 2);
    assert_true(outdated(fx, 0) && outdated(fx, 1));
    assert_false(outdated(fx, 2));
    kill(fx, 0);
    make(fx, 0, 2);
    assert_true(hfd_keeper_epoch(fx->keepers[0]) == 2);
    assert_false(outdated(fx, 0));
    assert_true(outdated(fx, 1) && !outdated(fx, 2));
}

/* ---- rows ---- */

/* With PostgreSQL a transaction function begins again when a read was not yet answered. */
#define MUST(call)                                                                                 \
    do {                                                                                           \
        rc = (call);                                                                               \
        if (rc != HFD_OK)                                                                          \
            return rc;                                                                             \
    } while (false)

static hfd_rc txn_rows(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct hfd_arena *mem = arg;
    const struct hfd_lease_row put = {HFD_SLICE("r"), 7, 99};
    struct hfd_replica_list list;
    struct hfd_lease_row lease;
    hfd_rc rc;

    MUST(hfd_lease_row_put(tx, &put, err));
    MUST(hfd_lease_row_release(tx, HFD_SLICE("q"), err)); /* which it does not have */
    MUST(hfd_lease_row_get(tx, mem, &lease, err));
    assert_true(lease.epoch == 7 && lease.until_us == 99 && hfd_slice_is(lease.holder, "r"));
    MUST(hfd_lease_row_release(tx, HFD_SLICE("r"), err));
    MUST(hfd_lease_row_get(tx, mem, &lease, err));
    assert_true(lease.epoch == 7 && lease.until_us == 0 && lease.holder.len == 0);
    MUST(hfd_replica_row_list(tx, mem, &list, err));
    assert_int_equal(list.count, 1);
    assert_true(hfd_slice_is(list.rows[0].settings_mark, "0000000000000001"));
    assert_true(hfd_slice_is(list.rows[0].key_ids, "5cba97cb,aa") &&
                list.rows[0].schema == (int64_t)hfd_migrations_count &&
                hfd_slice_is(list.rows[0].name, "machine") &&
                list.rows[0].started_us == list.rows[0].beat_us - 3 * S &&
                list.rows[0].settings_epoch == 1);
    MUST(hfd_replica_row_drop(tx, list.rows[0].beat_us, err));
    MUST(hfd_replica_row_list(tx, mem, &list, err));
    assert_int_equal(list.count, 1);
    MUST(hfd_replica_row_drop(tx, list.rows[0].beat_us + 1, err));
    MUST(hfd_replica_row_list(tx, mem, &list, err));
    assert_int_equal(list.count, 0);
    return HFD_OK;
}

static void rows_are_as_they_were_written(void **state)
{
    struct fixture *fx = *state;
    struct hfd_arena mem;

    make(fx, 0, 1);
    hfd_keeper_set_keys(fx->keepers[0], "5cba97cb,aa");
    test_clock_advance(&fx->clock, 3 * S);
    beat(fx, 0);
    hfd_arena_init(&mem, 1 << 20);
    assert_int_equal(hfd_store_update_wait(fx->store, txn_rows, &mem, NULL), HFD_OK);
    hfd_arena_fini(&mem);
}

/* ---- the list of all ---- */

struct listed {
    struct hfd_arena mem;
    int64_t now_us;
    struct hfd_replicas_seen found;
};

static hfd_rc txn_listed(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct listed *l = arg;

    return hfd_replicas_read(tx, l->now_us, &l->mem, &l->found, err);
}

static const struct hfd_replica_seen *find(const struct listed *l, struct fixture *fx, int i)
{
    struct hfd_keeper_state state;

    hfd_keeper_state(fx->keepers[i], &state);
    for (size_t k = 0; k < l->found.count; k++)
        if (hfd_slice_is(l->found.items[k].id, state.id))
            return &l->found.items[k];
    fail_msg("replica %d is not listed", i);
    return NULL;
}

static void replicas_are_listed(void **state)
{
    struct fixture *fx = *state;
    const struct hfd_replica_seen *seen;
    struct listed l = {.now_us = hfd_clock_wall_us(&fx->clock.clock)};

    hfd_arena_init(&l.mem, 1 << 20);
    assert_int_equal(hfd_store_update_wait(fx->store, txn_listed, &l, NULL), HFD_OK);
    assert_int_equal(l.found.count, 0);
    make(fx, 0, 1);
    make(fx, 1, 2);
    test_clock_advance(&fx->clock, HFD_REPLICA_LEASE_US);
    beat(fx, 1);
    l.now_us = hfd_clock_wall_us(&fx->clock.clock);
    assert_int_equal(hfd_store_update_wait(fx->store, txn_listed, &l, NULL), HFD_OK);
    assert_int_equal(l.found.count, 2);
    seen = find(&l, fx, 0);
    assert_true(!seen->live && !seen->leads && seen->outdated && seen->settings_epoch == 1);
    assert_true(seen->beat_us == l.now_us - HFD_REPLICA_LEASE_US &&
                seen->beat_us == seen->started_us);
    seen = find(&l, fx, 1);
    assert_true(seen->live && seen->leads && !seen->outdated && seen->settings_epoch == 2);
    assert_true(seen->schema == (int64_t)hfd_migrations_count &&
                hfd_slice_is(seen->name, "machine") && seen->version.len > 0);
    hfd_arena_fini(&l.mem);
}

/* ---- upkeep ---- */

#define HOUR (3600 * S)

static hfd_rc txn_run(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const char *sql = arg;
    struct hfd_stmt *st;

    assert_int_equal(hfd_db_prepare(tx->db, sql, &st, err), HFD_OK);
    return hfd_stmt_run(st, NULL, err);
}

static void run_sql(struct fixture *fx, const char *sql)
{
    assert_int_equal(hfd_store_update_wait(fx->store, txn_run, (void *)(uintptr_t)sql, NULL),
                     HFD_OK);
}

static hfd_rc txn_marks(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    static const char sql[] = "SELECT COUNT(*) FROM hfd_commit WHERE replica LIKE 'test-%'";
    int64_t *out = arg;
    struct hfd_stmt *st;

    assert_int_equal(hfd_db_prepare(tx->db, sql, &st, err), HFD_OK);
    return hfd_row_number(st, -1, out, err);
}

static int64_t marks(struct fixture *fx)
{
    int64_t count = -1;

    assert_int_equal(hfd_store_update_wait(fx->store, txn_marks, &count, NULL), HFD_OK);
    return count;
}

/* That of one that commits stays. That of one that is gone stays for a day, and goes then. */
static void marks_of_killed_programs_go_after_a_day(void **state)
{
    struct fixture *fx = *state;

    make(fx, 0, 1);
    run_sql(fx, "INSERT INTO hfd_commit (replica, n) VALUES ('test-gone', 7)");
    run_sql(fx, "INSERT INTO hfd_commit (replica, n) VALUES ('test-lives', 1)");
    for (int hour = 0; hour < 25; hour++) {
        test_clock_advance(&fx->clock, HOUR);
        beat(fx, 0);
        assert_int_equal(marks(fx), 2);
        run_sql(fx, "UPDATE hfd_commit SET n = n + 1 WHERE replica = 'test-lives'");
    }
    test_clock_advance(&fx->clock, HOUR);
    beat(fx, 0);
    assert_int_equal(marks(fx), 1);
    run_sql(fx, "DELETE FROM hfd_commit WHERE replica = 'test-lives'");
    assert_int_equal(marks(fx), 0);
}

/* After a contraction an older program neither starts nor goes on. */
static void an_older_program_gives_no_sign_of_life(void **state)
{
    struct fixture *fx = *state;
    struct hfd_err err;
    char sql[128], back[128]; /* the store knows a statement by its address */

    make(fx, 0, 1);
    (void)snprintf(sql, sizeof(sql), "UPDATE hfd_meta SET value = '%zu' WHERE key = 'schema_min'",
                   hfd_migrations_count + 1);
    run_sql(fx, sql);
    assert_true(leads(fx, 0));
    test_clock_advance(&fx->clock, 3 * S);
    assert_int_equal(hfd_keeper_beat(fx->keepers[0], &err), HFD_INVALID);
    test_clock_advance(&fx->clock, HFD_REPLICA_LEASE_US);
    assert_false(leads(fx, 0));
    (void)snprintf(back, sizeof(back), "UPDATE hfd_meta SET value = '%zu' WHERE key = 'schema_min'",
                   hfd_migrations_count);
    run_sql(fx, back);
    beat(fx, 0);
    assert_true(leads(fx, 0));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_clock_is_the_databases),
        cmocka_unit_test(without_a_keeper_it_leads),
        TEST(a_second_replica_follows),
        TEST(a_killed_replica_is_followed),
        TEST(a_stopped_replica_is_refused),
        TEST(none_leads_beside_an_older_program),
        TEST(never_two_lead),
        TEST(a_change_of_the_leader_is_told),
        TEST(a_note_wakes_the_others),
        TEST(sqlite_has_no_signals),
        TEST(the_newest_settings_hold),
        TEST(rows_are_as_they_were_written),
        TEST(replicas_are_listed),
        TEST(marks_of_killed_programs_go_after_a_day),
        TEST(an_older_program_gives_no_sign_of_life),
    };

    return hfd_base_init(NULL) == HFD_OK ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
