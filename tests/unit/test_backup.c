/* Backups: the copy shows one snapshot. Each failing disk call is an error. The note is right. */
#include "driver/core/backup_note.h"
#include "store/backup.h"
#include "store/rows_replica.h"
#include "store/sqlite/db_sqlite_int.h"
#include "tests/lib/faultvfs.h"
#include "tests/lib/tmpdir.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    char base[TMPDIR_MAX];
    char dir[TMPDIR_MAX + 8], part[TMPDIR_MAX + 24], copy[TMPDIR_MAX + 8];
    struct hfd_store *store;
};

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof(*fx));
    struct hfd_store_config config = {.stepped = true};

    assert_non_null(fx);
    tmpdir_make(fx->base);
    (void)snprintf(fx->dir, sizeof(fx->dir), "%s/data", fx->base);
    (void)snprintf(fx->part, sizeof(fx->part), "%s/backup.tmp", fx->dir);
    (void)snprintf(fx->copy, sizeof(fx->copy), "%s/copy", fx->base);
    hfd_db_set_vfs(FAULTVFS_NAME);
    config.place.dir = fx->dir;
    assert_int_equal(hfd_store_open(&config, &fx->store, NULL), HFD_OK);
    *state = fx;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;

    hfd_store_close(&fx->store);
    hfd_db_set_vfs(NULL);
    tmpdir_remove(fx->base);
    free(fx);
    return 0;
}

/* ---- a whole backup ---- */

static hfd_rc no_facts(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    (void)tx;
    (void)arg;
    (void)err;
    return HFD_OK;
}

static hfd_rc write_copy(struct fixture *fx, struct hfd_backup *b, struct hfd_err *err)
{
    FILE *f = fopen(fx->copy, "we");
    char piece[4096];
    size_t len = 1;
    hfd_rc rc = HFD_OK;

    assert_non_null(f);
    while (rc == HFD_OK && len > 0) {
        rc = hfd_backup_read(b, piece, sizeof(piece), &len, err);
        if (rc == HFD_OK)
            assert_int_equal(fwrite(piece, 1, len, f), len);
    }
    assert_int_equal(fclose(f), 0);
    return rc;
}

/* Steps to the end, from the beginning on, and closes. */
static hfd_rc go_on(struct fixture *fx, struct hfd_backup *b, struct hfd_err *err)
{
    bool done = false;
    hfd_rc rc = HFD_OK;

    while (rc == HFD_OK && !done)
        rc = hfd_backup_step(b, &done, err);
    if (rc == HFD_OK)
        rc = write_copy(fx, b, err);
    hfd_backup_close(&b);
    assert_null(b);
    return rc;
}

static hfd_rc back_up(struct fixture *fx, struct hfd_err *err)
{
    struct hfd_backup *b;
    hfd_rc rc;

    assert_int_equal(hfd_backup_open(fx->store, &b, err), HFD_OK);
    rc = hfd_backup_begin(b, no_facts, NULL, err);
    if (rc == HFD_OK)
        return go_on(fx, b, err);
    hfd_backup_close(&b);
    return rc;
}

/* ---- the snapshot ---- */

static hfd_rc put_key(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    const char *id = arg;

    return hfd_ring_key_row_put(tx, &(struct hfd_ring_key_row){hfd_slice_of(id), HFD_SLICE("m")},
                                err);
}

static void put(struct fixture *fx, const char *id)
{
    char copy[16];

    (void)snprintf(copy, sizeof(copy), "%s", id);
    assert_int_equal(hfd_store_update_wait(fx->store, put_key, copy, NULL), HFD_OK);
}

static int keys_in_copy(const struct fixture *fx)
{
    sqlite3_stmt *st;
    sqlite3 *db;
    int n;

    assert_int_equal(sqlite3_open(fx->copy, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT count(*) FROM ring_key", -1, &st, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    n = sqlite3_column_int(st, 0);
    assert_int_equal(sqlite3_finalize(st), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return n;
}

/* Changes after the beginning are made, and are not in the copy. */
static void shows_one_snapshot(void **state)
{
    struct fixture *fx = *state;
    struct hfd_backup *b;

    put(fx, "one");
    assert_int_equal(hfd_backup_open(fx->store, &b, NULL), HFD_OK);
    assert_int_equal(hfd_backup_begin(b, no_facts, NULL, NULL), HFD_OK);
    put(fx, "two");
    assert_int_equal(hfd_backup_bytes(b) % 4096, 0);
    assert_int_equal(go_on(fx, b, NULL), HFD_OK);
    assert_int_equal(keys_in_copy(fx), 1);
    assert_int_equal(back_up(fx, NULL), HFD_OK);
    assert_int_equal(keys_in_copy(fx), 2);
}

/* A second backup is refused, until the first one has ended or was closed. */
static void one_at_a_time(void **state)
{
    struct fixture *fx = *state;
    struct hfd_backup *first, *second;

    assert_int_equal(hfd_backup_open(fx->store, &first, NULL), HFD_OK);
    assert_int_equal(hfd_backup_open(fx->store, &second, NULL), HFD_CONFLICT);
    assert_int_equal(hfd_backup_begin(first, no_facts, NULL, NULL), HFD_OK);
    hfd_backup_close(&first);
    hfd_store_step(fx->store); /* a reader closes it */
    assert_int_equal(access(fx->part, F_OK), -1);
    assert_int_equal(back_up(fx, NULL), HFD_OK);
    assert_int_equal(back_up(fx, NULL), HFD_OK);
}

/* ---- failing disks ---- */

/*
 * Each failing call ends the backup with its reason: a full disk is HFD_LIMIT. The store goes on,
 * no file stays, and the next backup is made.
 */
static void each_failing_call_is_told(void **state)
{
    static const struct {
        unsigned kinds;
        int code;
        hfd_rc rc;
    } cases[] = {{FAULTVFS_CHANGES, SQLITE_FULL, HFD_LIMIT},
                 {FAULTVFS_CHANGES, 0, HFD_IO},
                 {FAULTVFS_READS, 0, HFD_IO},
                 {FAULTVFS_OPENS, 0, HFD_IO}};
    struct fixture *fx = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned fired = 1, failed = 0;

        for (unsigned nth = 1; fired > 0; nth += 1 + nth / 4) {
            struct hfd_err err = {0};
            hfd_rc rc;

            faultvfs_arm(cases[i].kinds, nth, true, cases[i].code);
            rc = back_up(fx, &err);
            fired = faultvfs_disarm();
            hfd_store_step(fx->store);
            if (fired > 0) {
                failed++;
                assert_int_equal(rc, cases[i].rc);
                assert_true(err.msg[0] != '\0');
            }
            assert_int_equal(access(fx->part, F_OK), -1);
            assert_true(hfd_store_ok(fx->store));
            assert_int_equal(back_up(fx, NULL), HFD_OK);
        }
        assert_true(failed > 0);
    }
    put(fx, "after");
}

/* ---- the note ---- */

static void sum_of(struct hfd_backup_sum *sum, const char *text)
{
    hfd_backup_sum_init(sum);
    hfd_backup_sum_add(sum, text, strlen(text));
}

/* A note is read as it was written. A flipped bit anywhere in it is found. */
static void note_is_read_as_written(void **state)
{
    hfd_slice keys[] = {HFD_SLICE("0a1b2c3d"), HFD_SLICE("ffffffff")};
    const struct hfd_backup_note note = {.taken_us = 1700000000123456,
                                         .clock_us = 1700000001000000,
                                         .resources = 7,
                                         .keys = keys,
                                         .key_count = 2,
                                         .bytes = 8192};
    char text[HFD_BACKUP_NOTE_BYTES];
    struct hfd_backup_sum sum, other;
    struct hfd_backup_note read;
    struct hfd_arena mem;

    (void)state;
    hfd_arena_init(&mem, 1 << 20);
    sum_of(&sum, "database");
    sum_of(&other, "Database");
    assert_int_equal(hfd_backup_note_format(&note, &sum, text, NULL), HFD_OK);
    assert_int_equal(hfd_backup_note_parse(text, &mem, &read, NULL), HFD_OK);
    assert_int_equal(read.taken_us, note.taken_us);
    assert_int_equal(read.clock_us, note.clock_us);
    assert_int_equal(read.resources, 7);
    assert_int_equal(read.bytes, 8192);
    assert_int_equal(read.key_count, 2);
    assert_true(hfd_slice_eq(read.keys[1], keys[1]));
    assert_true(hfd_backup_note_matches(text, &sum));
    assert_false(hfd_backup_note_matches(text, &other));
    for (size_t i = 0; text[i] != '}'; i++) {
        text[i] ^= 1;
        assert_false(hfd_backup_note_matches(text, &sum) &&
                     hfd_backup_note_parse(text, &mem, &read, NULL) == HFD_OK);
        text[i] ^= 1;
    }
    hfd_arena_fini(&mem);
}

/* More keys than the note has room for are HFD_LIMIT, not a note without them. */
static void too_many_keys(void **state)
{
    hfd_slice keys[400];
    const struct hfd_backup_note note = {.keys = keys, .key_count = 400};
    char text[HFD_BACKUP_NOTE_BYTES];
    struct hfd_backup_sum sum;

    (void)state;
    for (size_t i = 0; i < 400; i++)
        keys[i] = HFD_SLICE("0a1b2c3d");
    sum_of(&sum, "");
    assert_int_equal(hfd_backup_note_format(&note, &sum, text, NULL), HFD_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(shows_one_snapshot, setup, teardown),
        cmocka_unit_test_setup_teardown(one_at_a_time, setup, teardown),
        cmocka_unit_test_setup_teardown(each_failing_call_is_told, setup, teardown),
        cmocka_unit_test(note_is_read_as_written),
        cmocka_unit_test(too_many_keys),
    };

    if (sodium_init() < 0)
        return 1;
    faultvfs_register();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
