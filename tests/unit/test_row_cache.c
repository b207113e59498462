/*
 * Rows kept in memory: what holds, what a commit makes old, bounds; and that a reader never answers
 * with what was overwritten.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "store/row_cache.h"
#include "store/store.h"
#include "tests/lib/place.h"
#include "tests/lib/tmpdir.h"
#include "store/rows_resource.h"

struct fixture {
    struct hfd_row_stamps *stamps;
    struct hfd_row_cache *cache;
    struct hfd_arena mem;
};

static int open_fixture(void **state)
{
    struct fixture *fx = calloc(1, sizeof(*fx));

    assert_non_null(fx);
    fx->stamps = calloc(1, sizeof(*fx->stamps));
    assert_non_null(fx->stamps);
    fx->cache = hfd_row_cache_new(fx->stamps);
    assert_non_null(fx->cache);
    hfd_arena_init(&fx->mem, (size_t)64 << 20);
    *state = fx;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *fx = *state;

    hfd_row_cache_free(fx->cache);
    hfd_arena_fini(&fx->mem);
    free(fx->stamps);
    free(fx);
    return 0;
}

static const char plan[] = "1/2";

static struct hfd_resource_row row_of(const char *guresid, const char *output)
{
    return (struct hfd_resource_row){
        .seq = 1,
        .guresid = hfd_slice_of(guresid),
        .type = HFD_SLICE("t"),
        .kind = HFD_KIND_CLUSTER,
        .state = 3,
        .incarnation = HFD_SLICE("i"),
        .cluster_id = HFD_SLICE("c"),
        .digest = HFD_SLICE("d"),
        .raw_digest = HFD_SLICE("rd"),
        .cookie = HFD_SLICE("k"),
        .op_deadline_us = 77,
        .fail_code = HFD_SLICE(""),
        .fail_message = HFD_SLICE("m"),
        .output = hfd_slice_of(output),
        .secrets = HFD_SLICE_NONE,
        .updated_us = 5,
        .op_milestones = HFD_SLICE("ms"),
        .op_plan = {plan, 3},
        .op_waits = {plan, 2},
        .op_usual = {plan, 1},
    };
}

static void keep(struct fixture *fx, const char *guresid, const char *output, int64_t seq)
{
    const struct hfd_resource_row row = row_of(guresid, output);

    hfd_row_cache_put(fx->cache, &row, seq);
}

static bool holds(struct fixture *fx, const char *guresid, const char *output)
{
    struct hfd_resource_row row;

    return hfd_row_cache_get(fx->cache, hfd_slice_of(guresid), &fx->mem, &row) &&
           hfd_slice_is(row.output, output);
}

/* Every member comes back as it went in, and none is not the same as empty. */
static void a_row_comes_back_whole(void **state)
{
    struct fixture *fx = *state;
    struct hfd_resource_row row;

    keep(fx, "a", "{}", 0);
    assert_true(hfd_row_cache_get(fx->cache, HFD_SLICE("a"), &fx->mem, &row));
    assert_true(hfd_slice_is(row.guresid, "a") && hfd_slice_is(row.type, "t") &&
                hfd_slice_is(row.incarnation, "i"));
    assert_true(hfd_slice_is(row.cluster_id, "c") && hfd_slice_is(row.digest, "d") &&
                hfd_slice_is(row.raw_digest, "rd"));
    assert_true(hfd_slice_is(row.cookie, "k") && hfd_slice_is(row.fail_message, "m") &&
                hfd_slice_is(row.output, "{}"));
    assert_true(row.fail_code.p != NULL && row.fail_code.len == 0);
    assert_null(row.secrets.p);
    assert_true(hfd_slice_is(row.op_milestones, "ms") && hfd_slice_is(row.op_plan, "1/2"));
    assert_true(row.op_plan.p != plan); /* a copy */
    assert_true(hfd_slice_is(row.op_waits, "1/") && row.op_waits.p != plan);
    assert_true(hfd_slice_is(row.op_usual, "1") && row.op_usual.p != plan);
    assert_int_equal(row.kind, HFD_KIND_CLUSTER);
    assert_int_equal(row.state, 3);
    assert_int_equal(row.op_deadline_us, 77);
    assert_int_equal(row.updated_us, 5);
    assert_false(hfd_row_cache_get(fx->cache, HFD_SLICE("b"), &fx->mem, &row));
}

/*
 * From the note before a commit to a later reading no entry of the row holds; other rows are not
 * concerned.
 */
static void a_change_ends_an_entry(void **state)
{
    struct fixture *fx = *state;

    keep(fx, "a", "old", 0);
    keep(fx, "b", "other", 0);
    hfd_row_stamps_change(fx->stamps, HFD_SLICE("a"));
    assert_false(holds(fx, "a", "old"));
    /* Read from a snapshot before the commit: must not hold, neither now nor behind it. */
    keep(fx, "a", "old", atomic_load(&fx->stamps->committed));
    assert_false(holds(fx, "a", "old"));
    hfd_row_stamps_commit(fx->stamps);
    assert_false(holds(fx, "a", "old"));
    keep(fx, "a", "new", atomic_load(&fx->stamps->committed));
    assert_true(holds(fx, "a", "new"));
    assert_true(holds(fx, "b", "other"));
    hfd_row_stamps_commit(fx->stamps);
    assert_true(holds(fx, "a", "new"));
}

/* Many rows and large ones: some are not kept, none is mixed up with another. */
static void bounds_hold(void **state)
{
    struct fixture *fx = *state;
    char name[32], *large = malloc(9001);
    size_t held = 0;

    assert_non_null(large);
    memset(large, 'x', 9000);
    large[9000] = '\0';
    keep(fx, "large", large, 0);
    assert_false(holds(fx, "large", large));
    large[2000] = '\0';
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(name, sizeof(name), "r-%d", i);
        memcpy(large, name, strlen(name));
        keep(fx, name, large, 0);
        assert_true(i > 500 || holds(fx, name, large));
    }
    for (int i = 0; i < 5000; i++) {
        struct hfd_resource_row row;

        (void)snprintf(name, sizeof(name), "r-%d", i);
        if (!hfd_row_cache_get(fx->cache, hfd_slice_of(name), &fx->mem, &row))
            continue;
        held++;
        assert_memory_equal(row.output.p, name, strlen(name));
    }
    assert_in_range(held, 500, (2 << 20) / 2000);
    free(large);
}

struct step {
    const char *output; /* to write, or NULL to delete */
    struct hfd_arena mem;
    char seen[16];
    bool fails;
};

static hfd_rc write_it(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const struct step *s = arg;
    struct hfd_resource_row row = row_of("r", s->output);
    hfd_rc rc = s->output != NULL ? hfd_resource_row_put(tx, &row, err)
                                  : hfd_resource_row_delete(tx, HFD_SLICE("r"), err);

    return rc == HFD_OK && s->fails ? hfd_fail(err, HFD_CONFLICT, "as asked") : rc;
}

static hfd_rc read_it(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct step *s = arg;
    struct hfd_resource_row row;
    hfd_rc rc = hfd_resource_row_recent(tx, HFD_SLICE("r"), &s->mem, &row, err);

    (void)snprintf(s->seen, sizeof(s->seen), "%.*s", rc == HFD_OK ? (int)row.output.len : 4,
                   rc == HFD_OK ? row.output.p : "none");
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

/* A reader sees each commit at once, what was undone never, and a removal too. */
static void a_reader_follows_the_writer(void **state)
{
    static const struct {
        const char *output;
        bool fails;
        const char *seen;
    } steps[] = {
        {"one", false, "one"}, {"two", false, "two"}, {"lost", true, "two"},
        {NULL, true, "two"},   {NULL, false, "none"}, {"three", false, "three"},
    };
    char dir[TMPDIR_MAX];
    struct hfd_store *store;
    struct hfd_store_reader *reader;
    struct hfd_err err;

    (void)state;
    tmpdir_make(dir);
    assert_int_equal(
        hfd_store_open(&(struct hfd_store_config){.place = test_place(dir)}, &store, &err), HFD_OK);
    assert_int_equal(hfd_store_reader_open(store, &reader, &err), HFD_OK);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct step s = {.output = steps[i].output, .fails = steps[i].fails};

        hfd_arena_init(&s.mem, 1 << 20);
        assert_int_equal(hfd_store_update_wait(store, write_it, &s, &err),
                         s.fails ? HFD_CONFLICT : HFD_OK);
        for (int again = 0; again < 3; again++) {
            assert_int_equal(hfd_store_read(reader, read_it, &s, &err), HFD_OK);
            assert_string_equal(s.seen, steps[i].seen);
        }
        hfd_arena_fini(&s.mem);
    }
    hfd_store_reader_close(&reader);
    hfd_store_close(&store);
    tmpdir_remove(dir);
}

/* A change counts behind a mark once its commit is on disk. A commit of others always does. */
static void marks_tell_of_changes(void **state)
{
    struct fixture *fx = *state;
    struct hfd_row_mark a = hfd_row_stamps_mark(fx->stamps, HFD_SLICE("a")),
                        b = hfd_row_stamps_mark(fx->stamps, HFD_SLICE("b"));

    assert_false(hfd_row_stamps_commit(fx->stamps));
    assert_false(hfd_row_stamps_changed(fx->stamps, &a));
    hfd_row_stamps_change(fx->stamps, HFD_SLICE("a"));
    assert_false(hfd_row_stamps_changed(fx->stamps, &a)); /* nothing could be read yet */
    a = hfd_row_stamps_mark(fx->stamps, HFD_SLICE("a"));
    assert_true(hfd_row_stamps_commit(fx->stamps));
    assert_true(hfd_row_stamps_changed(fx->stamps, &a));
    assert_false(hfd_row_stamps_changed(fx->stamps, &b));
    a = hfd_row_stamps_mark(fx->stamps, HFD_SLICE("a"));
    assert_false(hfd_row_stamps_changed(fx->stamps, &a));
    assert_false(hfd_row_stamps_commit(fx->stamps));
    assert_false(hfd_row_stamps_changed(fx->stamps, &a));
    atomic_fetch_add(&fx->stamps->others, 1);
    assert_true(hfd_row_stamps_changed(fx->stamps, &a));
    assert_true(hfd_row_stamps_changed(fx->stamps, &b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_row_comes_back_whole, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(a_change_ends_an_entry, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(bounds_hold, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(marks_tell_of_changes, open_fixture, close_fixture),
        cmocka_unit_test(a_reader_follows_the_writer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
