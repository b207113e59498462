/*
 * The store on a disk that fails, or loses power, at every call in turn. No answered change is
 * lost, no transaction is there by half, and nothing is damaged. A failed job is never answered as
 * done.
 */
#include "store/store.h"

#include "driver/base/log.h"
#include "store/rows_resource.h"
#include "store/sqlite/db_sqlite_int.h"
#include "store/txn.h"
#include "tests/lib/faultmem.h"
#include "tests/lib/faultvfs.h"
#include "tests/lib/tier.h"
#include "tests/lib/tmpdir.h"

#include <fcntl.h>
#include <semaphore.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <unistd.h>

#include <cmocka.h>

#define UPDATES 6
#define CHECKPOINT_FRAMES                                                                          \
    12                 /* so that the scenario copies its log into the database a few times        \
                        */
#define QUICK_STRIDE 5 /* one call or allocation in so many in the quick tier */
#define SEEDS 2        /* power cuts per call; HFD_TEST_SEEDS sets another number, for long runs */

struct run {
    char base[TMPDIR_MAX];
    char dir[TMPDIR_MAX + 8];
    bool acked[UPDATES];
    hfd_rc worst;
    atomic_uint broken_calls;
    bool ok_at_end; /* hfd_store_ok after the last update */
    bool refused_after_broken;
    unsigned fired_when_open; /* calls that failed while the store was open */
};

static int64_t seeds = SEEDS;

static const char *name_of(size_t i)
{
    static const char *const names[UPDATES] = {"r0", "r1", "r2", "r3", "r4", "r5"};

    return names[i];
}

/*
 * Two rows of different tables, large enough for several pages; every third rewrites the one before
 * as well.
 */
static hfd_rc write_pair(struct hfd_txn *tx, size_t i, int64_t generation, struct hfd_err *err)
{
    static const char filler[3000] = {[0] = 'x'};
    struct hfd_resource_row res = {
        .seq = (int64_t)i + 1,
        .guresid = hfd_slice_of(name_of(i)),
        .kind = HFD_KIND_CLUSTER,
        .state = 1,
        .digest = {filler, sizeof(filler)},
        .created_us = generation,
    };
    struct hfd_part_row part = {.guresid = res.guresid,
                                .fleet_id = res.guresid,
                                .kind = HFD_KIND_CLUSTER,
                                .generation = generation};
    hfd_rc rc = hfd_resource_row_put(tx, &res, err);

    return rc == HFD_OK ? hfd_part_row_put(tx, &part, err) : rc;
}

static hfd_rc update(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    size_t i = *(const size_t *)arg;
    hfd_rc rc = write_pair(tx, i, 1, err);

    if (rc == HFD_OK && i % 3 == 2)
        rc = write_pair(tx, i - 1, 2, err);
    return rc;
}

static void on_broken(void *ctx)
{
    struct run *run = ctx;

    atomic_fetch_add(&run->broken_calls, 1);
}

static void note(struct run *run, hfd_rc rc)
{
    if (rc != HFD_OK)
        run->worst = rc;
}

static hfd_rc nothing(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    (void)tx;
    (void)arg;
    (void)err;
    return HFD_OK;
}

/* Opens, updates, closes; keeps what was answered. Goes on after failures, as clients do. */
static void scenario(struct run *run, size_t updates, bool stop_at_end)
{
    struct hfd_store_config config = {.place.dir = run->dir, .readers = 1};
    struct hfd_store *store;
    bool was_broken = false;
    hfd_rc rc = hfd_store_open(&config, &store, NULL);

    note(run, rc);
    run->fired_when_open = 0;
    run->ok_at_end = run->refused_after_broken = true;
    if (rc != HFD_OK)
        return;
    hfd_store_on_broken(store, on_broken, run);
    for (size_t i = 0; i < updates; i++) {
        rc = hfd_store_update_wait(store, update, &i, NULL);
        note(run, rc);
        run->acked[i] = rc == HFD_OK;
        if (was_broken && rc != HFD_IO)
            run->refused_after_broken = false;
        was_broken = was_broken || !hfd_store_ok(store);
    }
    note(run, hfd_store_update_wait(store, nothing, NULL,
                                    NULL)); /* the housekeeping behind the last one is over */
    run->fired_when_open = faultvfs_fired();
    run->ok_at_end = hfd_store_ok(store);
    if (stop_at_end)
        (void)faultvfs_power_cut();
    hfd_store_close(&store);
}

struct state {
    int64_t res[UPDATES], part[UPDATES]; /* generation; 0 = not there */
    bool sound;
};

static const char sql_check[] = "PRAGMA integrity_check";

static hfd_rc check_sound(struct hfd_txn *tx, struct hfd_arena *mem, bool *sound,
                          struct hfd_err *err)
{
    struct hfd_stmt *st;
    bool row;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_check, &st, err);

    if (rc != HFD_OK)
        return rc;
    rc = hfd_stmt_step(st, &row, err);
    *sound = rc == HFD_OK && row && hfd_slice_is(hfd_stmt_col_text(st, 0, mem), "ok");
    hfd_stmt_done(st);
    return rc;
}

static hfd_rc read_state(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct state *s = arg;
    struct hfd_arena mem;
    hfd_rc rc;

    *s = (struct state){.sound = false};
    hfd_arena_init(&mem, 1 << 20);
    rc = check_sound(tx, &mem, &s->sound, err);
    for (size_t i = 0; rc == HFD_OK && i < UPDATES; i++) {
        struct hfd_resource_row res;
        struct hfd_part_list parts;

        rc = hfd_resource_row_get(tx, hfd_slice_of(name_of(i)), &mem, &res, err);
        s->res[i] = rc == HFD_OK ? res.created_us : 0;
        if (rc == HFD_OK || rc == HFD_NOT_FOUND)
            rc = hfd_part_row_list(tx, hfd_slice_of(name_of(i)), &mem, &parts, err);
        s->part[i] = rc == HFD_OK && parts.count == 1 ? parts.rows[0].generation : 0;
    }
    hfd_arena_fini(&mem);
    return rc;
}

/*
 * @return how many answered updates are missing; fails the test for anything damaged or half-made
 */
static unsigned lost_after_reopen(struct run *run)
{
    struct hfd_store_config config = {.place.dir = run->dir, .readers = 1};
    struct hfd_store *store;
    struct hfd_store_reader *reader;
    struct state s;
    struct hfd_err err;
    unsigned lost = 0;
    size_t last = UPDATES - 1;

    if (hfd_store_open(&config, &store, &err) != HFD_OK) {
        /* The start sees that commits would be lost. With synchronous=FULL no power cut does that.
         */
        if (strstr(err.msg, "commits behind it that would be lost") != NULL)
            return UPDATES;
        fail_msg("reopen: %s", err.msg);
    }
    assert_int_equal(hfd_store_reader_open(store, &reader, &err), HFD_OK);
    if (hfd_store_read(reader, read_state, &s, &err) != HFD_OK)
        fail_msg("read: %s", err.msg);
    assert_true(s.sound);
    for (size_t i = 0; i < UPDATES; i++) {
        bool later_there = i % 3 == 1 && i + 1 < UPDATES && s.res[i + 1] != 0;

        assert_int_equal(s.res[i], s.part[i]);
        if (s.res[i] != 0)
            assert_int_equal(s.res[i], later_there ? 2 : 1);
        lost += run->acked[i] && s.res[i] == 0;
    }
    assert_int_equal(hfd_store_update_wait(store, update, &last, &err),
                     HFD_OK); /* and it works again */
    hfd_store_reader_close(&reader);
    hfd_store_close(&store);
    return lost;
}

static void run_init(struct run *run)
{
    *run = (struct run){.worst = HFD_OK};
    tmpdir_make(run->base);
    (void)snprintf(run->dir, sizeof(run->dir), "%s/data", run->base);
}

static int setup(void **state)
{
    (void)state;
    hfd_db_set_vfs(FAULTVFS_NAME);
    hfd_db_set_checkpoint_frames(CHECKPOINT_FRAMES);
    return 0;
}

/* ---- failing calls ---- */

struct fault_case {
    const char *name;
    unsigned kinds;
    bool for_ever;
    int code;
    unsigned fewest; /* calls that the scenario must have had */
};

static void fail_each_call(const struct fault_case *c)
{
    unsigned nth = 1;
    unsigned fired;

    do {
        struct run run;

        run_init(&run);
        faultvfs_arm(c->kinds, nth, c->for_ever, c->code);
        scenario(&run, UPDATES, false);
        fired = faultvfs_disarm();
        if (run.worst != HFD_OK && (fired == 0 || run.worst != HFD_IO))
            fail_msg("%s: call %u: answered %s", c->name, nth, hfd_rc_name(run.worst));
        assert_int_equal(run.broken_calls, run.ok_at_end ? 0 : 1);
        assert_true(run.refused_after_broken);
        if (c->kinds == FAULTVFS_CHANGES && run.fired_when_open != 0 && run.ok_at_end)
            fail_msg("%s: call %u: the store goes on", c->name, nth);
        if (lost_after_reopen(&run) != 0)
            fail_msg("%s: call %u: an answered update is lost", c->name, nth);
        tmpdir_remove(run.base);
        nth += tier_stride(QUICK_STRIDE);
    } while (fired != 0);
    assert_true(nth > c->fewest);
}

/*
 * Every write, sync, truncation and removal fails in turn, once and for ever, as a broken or a full
 * disk does.
 */
static void every_failing_change_loses_nothing(void **state)
{
    static const struct fault_case cases[] = {
        {"one failed change", FAULTVFS_CHANGES, false, 0, 80},
        {"changes fail from here on", FAULTVFS_CHANGES, true, 0, 80},
        {"the disk is full", FAULTVFS_CHANGES, true, SQLITE_FULL, 80},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        fail_each_call(&cases[i]);
}

/* Reads and opening files fail as well. */
static void failing_reads_and_opens_lose_nothing(void **state)
{
    static const struct fault_case cases[] = {
        {"one failed read", FAULTVFS_READS, false, 0, 5},
        {"reads fail from here on", FAULTVFS_READS, true, 0, 5},
        {"one failed open", FAULTVFS_OPENS, false, 0, 2},
        {"opens fail from here on", FAULTVFS_OPENS, true, 0, 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        fail_each_call(&cases[i]);
}

static void on_broken_post(void *ctx)
{
    (void)sem_post(ctx);
}

/*
 * The log cannot be copied into the database, behind an answer: the answer holds, and the store
 * says unasked that it is broken.
 */
static void failed_checkpoint_breaks_the_store(void **state)
{
    struct hfd_store_config config;
    struct hfd_store *store;
    struct run run;
    sem_t broken;
    size_t i = 0;

    (void)state;
    run_init(&run);
    config = (struct hfd_store_config){.place.dir = run.dir, .readers = 1};
    assert_int_equal(sem_init(&broken, 0, 0), 0);
    hfd_db_set_checkpoint_frames(1);
    assert_int_equal(hfd_store_open(&config, &store, NULL), HFD_OK);
    hfd_store_on_broken(store, on_broken_post, &broken);
    faultvfs_arm(FAULTVFS_COPIES, 1, false, 0);
    assert_int_equal(hfd_store_update_wait(store, update, &i, NULL), HFD_OK);
    while (sem_wait(&broken) != 0)
        continue;
    assert_int_equal(faultvfs_disarm(), 1);
    assert_false(hfd_store_ok(store));
    assert_int_equal(hfd_store_update_wait(store, update, &i, NULL), HFD_IO);
    hfd_store_close(&store);
    run.acked[0] = true;
    assert_int_equal(lost_after_reopen(&run), 0);
    hfd_db_set_checkpoint_frames(CHECKPOINT_FRAMES);
    (void)sem_destroy(&broken);
    tmpdir_remove(run.base);
}

/* A disk that takes no writes is found at start, also when the schema needs none. */
static void start_needs_a_disk_that_takes_writes(void **state)
{
    struct hfd_store_config config;
    struct hfd_store *store;
    struct run run;

    (void)state;
    run_init(&run);
    config = (struct hfd_store_config){.place.dir = run.dir, .readers = 1};
    assert_int_equal(hfd_store_open(&config, &store, NULL), HFD_OK);
    hfd_store_close(&store);
    faultvfs_arm(FAULTVFS_CHANGES, 1, true, SQLITE_FULL);
    assert_int_equal(hfd_store_open(&config, &store, NULL), HFD_IO);
    assert_true(faultvfs_disarm() != 0);
    assert_int_equal(lost_after_reopen(&run), 0);
    tmpdir_remove(run.base);
}

/* A reader whose disk failed answers so, and works again as soon as the disk does. */
static void failed_read_does_not_break_the_store(void **state)
{
    struct hfd_store_config config;
    struct hfd_store *store;
    struct hfd_store_reader *reader;
    struct run run;
    struct state s;
    size_t i = 0;

    (void)state;
    run_init(&run);
    config = (struct hfd_store_config){.place.dir = run.dir, .readers = 1};
    assert_int_equal(hfd_store_open(&config, &store, NULL), HFD_OK);
    assert_int_equal(hfd_store_update_wait(store, update, &i, NULL), HFD_OK);
    /*
     * By now the writer is done with its log, too: copying it reads, and a writer that cannot read
     * is broken.
     */
    assert_int_equal(hfd_store_update_wait(store, nothing, NULL, NULL), HFD_OK);
    assert_int_equal(hfd_store_reader_open(store, &reader, NULL), HFD_OK);
    faultvfs_arm(FAULTVFS_READS, 1, true, 0);
    for (int n = 0; n < 3; n++)
        assert_int_equal(hfd_store_read(reader, read_state, &s, NULL), HFD_IO);
    assert_true(faultvfs_disarm() != 0);
    assert_true(hfd_store_ok(store));
    assert_int_equal(hfd_store_read(reader, read_state, &s, NULL), HFD_OK);
    assert_int_equal(s.res[0], 1);
    hfd_store_reader_close(&reader);
    hfd_store_close(&store);
    tmpdir_remove(run.base);
}

/* ---- memory ---- */

static void run_out_of_memory(bool for_ever)
{
    unsigned nth = 1;
    unsigned fired;

    do {
        struct run run;

        run_init(&run);
        faultmem_arm(nth, for_ever);
        scenario(&run, UPDATES, false);
        fired = faultmem_disarm();
        if (run.worst != HFD_OK && (fired == 0 || (run.worst != HFD_NOMEM && run.worst != HFD_IO)))
            fail_msg("allocation %u: answered %s", nth, hfd_rc_name(run.worst));
        assert_int_equal(run.broken_calls, run.ok_at_end ? 0 : 1);
        if (lost_after_reopen(&run) != 0)
            fail_msg("allocation %u: an answered update is lost", nth);
        tmpdir_remove(run.base);
        /* There are thousands: all in long runs, else ever fewer. */
        nth += seeds > SEEDS ? 1 : (1 + nth / 16) * tier_stride(QUICK_STRIDE);
    } while (fired != 0);
    assert_true(nth > 1000);
}

/* Every allocation of SQLite fails in turn, once and for ever. */
static void running_out_of_memory_loses_nothing(void **state)
{
    (void)state;
    run_out_of_memory(false);
    run_out_of_memory(true);
}

/* Memory is short at the nth allocation of a read; what is allocated behind it is there again. */
struct short_read {
    unsigned nth, fired;
};

static hfd_rc read_short_of_memory(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct short_read *r = arg;
    struct hfd_resource_row row;
    struct hfd_arena mem;
    hfd_rc rc;

    hfd_arena_init(&mem, (size_t)1 << 20);
    faultmem_arm(r->nth, false);
    rc = hfd_resource_row_get(tx, hfd_slice_of(name_of(0)), &mem, &row, err);
    r->fired = faultmem_disarm();
    hfd_arena_fini(&mem);
    return rc;
}

static void drop_answers(struct hfd_sink *sink, struct hfd_job *list)
{
    (void)sink;
    (void)list;
}

/*
 * Three calls of one commit, of which the second reads. @return how many of its allocations failed
 */
static unsigned run_short_batch(unsigned nth)
{
    struct hfd_sink sink = {drop_answers};
    struct short_read middle = {.nth = nth};
    size_t first = 0, last = 1;
    struct hfd_job jobs[] = {
        {.fn = update, .arg = &first, .sink = &sink},
        {.fn = read_short_of_memory, .arg = &middle, .sink = &sink},
        {.fn = update, .arg = &last, .sink = &sink},
    };
    struct hfd_store_config config;
    struct hfd_store_reader *reader;
    struct hfd_store *store;
    struct state s;
    struct run run;

    run_init(&run);
    config = (struct hfd_store_config){.place.dir = run.dir, .readers = 1, .stepped = true};
    assert_int_equal(hfd_store_open(&config, &store, NULL), HFD_OK);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(hfd_store_update(store, &jobs[i], NULL), HFD_OK);
    hfd_store_step(store);
    hfd_store_close(&store);
    assert_true(jobs[1].rc == HFD_OK || middle.fired != 0);
    assert_int_equal(hfd_store_open(&config, &store, NULL), HFD_OK);
    assert_int_equal(hfd_store_reader_open(store, &reader, NULL), HFD_OK);
    assert_int_equal(hfd_store_read(reader, read_state, &s, NULL), HFD_OK);
    if ((jobs[0].rc == HFD_OK && s.res[0] == 0) || (jobs[2].rc == HFD_OK && s.res[1] == 0))
        fail_msg("allocation %u: an answered call is lost", nth);
    if ((jobs[0].rc == HFD_IO) != (jobs[2].rc == HFD_IO) ||
        (jobs[0].rc == HFD_IO && (s.res[0] != 0) != (s.res[1] != 0)))
        fail_msg("allocation %u: a batch is there by half", nth);
    hfd_store_reader_close(&reader);
    hfd_store_close(&store);
    tmpdir_remove(run.base);
    return middle.fired;
}

/*
 * Where memory is short the engine may undo the whole transaction: nothing of the batch may be
 * written behind that.
 */
static void batch_out_of_memory_is_whole_or_not_there(void **state)
{
    unsigned nth = 1;

    (void)state;
    while (run_short_batch(nth) != 0)
        nth += tier_stride(QUICK_STRIDE);
    assert_true(nth > 10);
}

/*
 * A reader that runs out of memory says so, whatever SQLite undid, and works again as soon as there
 * is some.
 */
static void reader_out_of_memory_says_so(void **state)
{
    struct hfd_store_config config;
    struct hfd_store *store;
    struct hfd_store_reader *reader;
    struct run run;
    struct state s;
    size_t i = 0;
    unsigned fired;

    (void)state;
    run_init(&run);
    config = (struct hfd_store_config){.place.dir = run.dir, .readers = 1};
    assert_int_equal(hfd_store_open(&config, &store, NULL), HFD_OK);
    assert_int_equal(hfd_store_update_wait(store, update, &i, NULL), HFD_OK);
    assert_int_equal(hfd_store_update_wait(store, nothing, NULL, NULL), HFD_OK);
    assert_int_equal(hfd_store_reader_open(store, &reader, NULL), HFD_OK);
    for (unsigned nth = 1;; nth += 1 + nth / 16) {
        hfd_rc rc;

        faultmem_arm(nth, nth % 2 == 0);
        rc = hfd_store_read(reader, read_state, &s, NULL);
        fired = faultmem_disarm();
        if (fired == 0)
            break;
        assert_true(rc == HFD_OK || rc == HFD_NOMEM);
        assert_int_equal(hfd_store_read(reader, read_state, &s, NULL), HFD_OK);
        assert_int_equal(s.res[0], 1);
        hfd_store_reader_close(&reader); /* a new one prepares its statements anew */
        assert_int_equal(hfd_store_reader_open(store, &reader, NULL), HFD_OK);
    }
    assert_true(hfd_store_ok(store));
    hfd_store_reader_close(&reader);
    hfd_store_close(&store);
    tmpdir_remove(run.base);
}

/* ---- power cuts ---- */

/* @return answered updates that were lost; *cut tells whether the scenario had an nth call */
static unsigned cut_power(unsigned nth, size_t updates, uint64_t seed, bool *cut)
{
    struct run run;
    unsigned lost;

    run_init(&run);
    faultvfs_power_arm(nth);
    scenario(&run, updates, nth == 0);
    *cut = faultvfs_power_cut();
    faultvfs_power_back(seed);
    lost = lost_after_reopen(&run);
    tmpdir_remove(run.base);
    return lost;
}

/* Power goes at every changing call, and between an answer and the next request. */
static unsigned cut_power_everywhere(unsigned *points)
{
    unsigned lost = 0;
    bool cut = true;

    *points = 0;
    for (unsigned nth = 1; cut; nth++)
        for (int64_t seed = 0; cut && seed < seeds; seed++, ++*points)
            lost += cut_power(nth, UPDATES, nth * 10000 + (uint64_t)seed, &cut) != 0;
    for (size_t updates = 0; updates <= UPDATES; updates++)
        for (int64_t seed = 0; seed < 2 * seeds; seed++, ++*points)
            lost += cut_power(0, updates, updates * 100000 + (uint64_t)seed, &cut) != 0;
    return lost;
}

/* Every answered change survives a power cut at any call. */
static void every_power_cut_loses_nothing(void **state)
{
    unsigned points;

    (void)state;
    assert_int_equal(cut_power_everywhere(&points), 0);
    assert_true(points > 200);
}

/*
 * The control: with synchronous=NORMAL the same power cuts do lose answered updates, so the test
 * above can tell.
 */
static void every_power_cut_control_loses(void **state)
{
    unsigned points;

    (void)state;
    hfd_db_set_synchronous("NORMAL");
    assert_true(cut_power_everywhere(&points) > points / 20);
    hfd_db_set_synchronous("FULL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failing_change_loses_nothing),
        cmocka_unit_test(failing_reads_and_opens_lose_nothing),
        cmocka_unit_test(running_out_of_memory_loses_nothing),
        cmocka_unit_test(batch_out_of_memory_is_whole_or_not_there),
        cmocka_unit_test(reader_out_of_memory_says_so),
        cmocka_unit_test(failed_checkpoint_breaks_the_store),
        cmocka_unit_test(start_needs_a_disk_that_takes_writes),
        cmocka_unit_test(failed_read_does_not_break_the_store),
        cmocka_unit_test(every_power_cut_loses_nothing),
        cmocka_unit_test(every_power_cut_control_loses),
    };
    const char *wanted = getenv("HFD_TEST_SEEDS");
    int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

    hfd_log_set_fd(null_fd); /* each failure is logged, and there are hundreds */
    faultmem_install();
    faultvfs_register();
    if (wanted != NULL)
        assert_int_equal(hfd_parse_i64(hfd_slice_of(wanted), 1, 10000, &seeds, NULL), HFD_OK);
    if (access("/dev/shm", W_OK) ==
        0) /* a thousand folders: syncs of the real disk prove nothing here */
        (void)setenv("TMPDIR", "/dev/shm", 0);
    tier_init();
    return cmocka_run_group_tests(tests, setup, NULL);
}
