/*
 * Steps of the schema that expand and contract, as programs of two versions see them on a database
 * that both may use. The database is SQLite's, with an engine that says it is shared.
 */
#include "store/engine.h"
#include "store/migrate.h"
#include "tests/lib/contains.h"
#include "tests/lib/tmpdir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define KNOWN_MAX 64

struct fixture {
    char base[TMPDIR_MAX];
    char dir[TMPDIR_MAX + 8];
    struct hfd_db *db;
    struct hfd_migration list[KNOWN_MAX]; /* those of the program, and: */
    size_t now;                           /* expands, contracts, expands */
    struct hfd_err err;
};

static struct hfd_engine shared;
static bool is_shared;

static bool say_shared(const struct hfd_db *db)
{
    (void)db;
    return is_shared;
}

static void share(struct hfd_db *db)
{
    *(const struct hfd_engine **)(void *)db = &shared;
}

static int setup(void **state)
{
    static const struct hfd_migration more[] = {
        {"expands", "ALTER TABLE fleet ADD COLUMN more BIGINT NOT NULL DEFAULT 0", NULL, false},
        {"contracts", "DROP TABLE past", NULL, true},
        {"expands_again", "CREATE TABLE later (k BIGINT NOT NULL PRIMARY KEY)", NULL, false},
    };
    struct fixture *fx = calloc(1, sizeof(*fx));

    assert_non_null(fx);
    shared = hfd_engine_sqlite;
    shared.shared = say_shared;
    is_shared = true;
    tmpdir_make(fx->base);
    (void)snprintf(fx->dir, sizeof(fx->dir), "%s/data", fx->base);
    assert_int_equal(
        hfd_db_open(&(struct hfd_store_place){.dir = fx->dir}, HFD_DB_WRITER, &fx->db, NULL),
        HFD_OK);
    share(fx->db);
    fx->now = hfd_migrations_count;
    memcpy(fx->list, hfd_migrations, fx->now * sizeof(fx->list[0]));
    memcpy(fx->list + fx->now, more, sizeof(more));
    *state = fx;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;

    hfd_db_close(&fx->db);
    tmpdir_remove(fx->base);
    free(fx);
    return 0;
}

/* Starts a program that knows so many migrations beyond the present ones. */
static hfd_rc start(struct fixture *fx, int more)
{
    fx->err = (struct hfd_err){0};
    return hfd_migrate(fx->db, fx->list, fx->now + (size_t)(ptrdiff_t)more, &fx->err);
}

static hfd_rc contract(struct fixture *fx, int more)
{
    fx->err = (struct hfd_err){0};
    return hfd_migrate_contract(fx->db, fx->list, fx->now + (size_t)(ptrdiff_t)more, &fx->err);
}

#define assert_schema(fx, now_more, min_more) check_schema((fx), (now_more), (min_more), __LINE__)
static void check_schema(struct fixture *fx, int now, int min, int line)
{
    struct hfd_schema schema;

    assert_int_equal(hfd_migrate_schema(fx->db, &schema, NULL), HFD_OK);
    if (schema.now != (int64_t)fx->now + now || schema.min != (int64_t)fx->now + min)
        fail_msg("line %d: now %lld, min %lld, of %zu", line, (long long)schema.now,
                 (long long)schema.min, fx->now);
}

static void a_new_database_has_all(void **state)
{
    struct fixture *fx = *state;

    assert_int_equal(start(fx, 3), HFD_OK);
    assert_schema(fx, 3, 3);
    assert_int_equal(start(fx, 2), HFD_INVALID);
    assert_contains(hfd_slice_of(fx->err.msg), "this program knows versions up to");
}

static void older_programs_go_on_beside_an_expanded_schema(void **state)
{
    struct fixture *fx = *state;

    assert_int_equal(start(fx, 0), HFD_OK);
    assert_schema(fx, 0, 0);
    assert_int_equal(start(fx, 1), HFD_OK);
    assert_schema(fx, 1, 0);
    assert_int_equal(start(fx, 0), HFD_OK);
    assert_schema(fx, 1, 0);
    assert_int_equal(start(fx, -1), HFD_INVALID);
    assert_int_equal(start(fx, 1), HFD_OK);
    assert_schema(fx, 1, 0);
}

static void contraction_waits_for_the_command(void **state)
{
    struct fixture *fx = *state;

    assert_int_equal(start(fx, 0), HFD_OK);
    assert_int_equal(start(fx, 2), HFD_OK);
    assert_schema(fx, 1, 0);
    assert_int_equal(hfd_db_exec(fx->db, "SELECT count(*) FROM past", NULL), HFD_OK);
    /* A later step that expands is behind it. */
    assert_int_equal(start(fx, 3), HFD_CONFLICT);
    assert_contains(hfd_slice_of(fx->err.msg), "`hyperfleet-driver migrate --contract`");
    assert_schema(fx, 1, 0);
    assert_int_equal(contract(fx, 2), HFD_OK);
    assert_schema(fx, 2, 2);
    assert_int_not_equal(hfd_db_exec(fx->db, "SELECT count(*) FROM past", NULL), HFD_OK);
    assert_int_equal(start(fx, 0), HFD_INVALID);
    assert_int_equal(start(fx, 2), HFD_OK);
    assert_int_equal(start(fx, 3), HFD_OK);
    assert_schema(fx, 3, 2);
}

static void the_command_ends_the_window_without_a_step_too(void **state)
{
    struct fixture *fx = *state;

    assert_int_equal(start(fx, 0), HFD_OK);
    assert_int_equal(start(fx, 1), HFD_OK);
    assert_int_equal(contract(fx, 1), HFD_OK);
    assert_schema(fx, 1, 1);
    assert_int_equal(start(fx, 0), HFD_INVALID);
    /* An older program's command does not open it again. */
    assert_int_equal(contract(fx, 0), HFD_INVALID);
    assert_schema(fx, 1, 1);
}

static void an_older_command_contracts_nothing(void **state)
{
    struct fixture *fx = *state;

    assert_int_equal(start(fx, 0), HFD_OK);
    assert_int_equal(start(fx, 1), HFD_OK);
    assert_int_equal(contract(fx, 0), HFD_OK);
    assert_schema(fx, 1, 0);
}

/* The older program is refused as long as it lives, and nothing is changed until it has ended. */
static void a_living_older_program_holds_a_contraction(void **state)
{
    struct fixture *fx = *state;
    char sql[256];

    assert_int_equal(start(fx, 0), HFD_OK);
    assert_int_equal(start(fx, 2), HFD_OK);
    (void)snprintf(sql, sizeof(sql),
                   "INSERT INTO replica (id, name, version, schema, started_us, beat_us, key_ids, "
                   "settings_epoch, settings_mark) VALUES ('r', 'older', '0', %zu, 1, "
                   "9000000000000000, '', 1, '')",
                   fx->now);
    assert_int_equal(hfd_db_exec(fx->db, sql, NULL), HFD_OK);
    assert_int_equal(contract(fx, 2), HFD_CONFLICT);
    assert_contains(hfd_slice_of(fx->err.msg), "the server older of version 0");
    assert_schema(fx, 1, 0);
    assert_int_equal(hfd_db_exec(fx->db, "UPDATE replica SET beat_us = 1", NULL), HFD_OK);
    assert_int_equal(contract(fx, 2), HFD_OK);
    assert_schema(fx, 2, 2);
}

static hfd_rc schema_lock_seen(struct hfd_db *db, struct hfd_err *err)
{
    (void)err;
    /* A program gave its sign of life right before the lock was taken. */
    return hfd_db_exec(db, "UPDATE replica SET beat_us = 9000000000000000", NULL);
}

/* It looks under the lock of the schema: no program comes between the look and the contraction. */
static void a_contraction_looks_under_the_lock(void **state)
{
    struct fixture *fx = *state;
    char sql[256];

    assert_int_equal(start(fx, 0), HFD_OK);
    assert_int_equal(start(fx, 2), HFD_OK);
    (void)snprintf(
        sql, sizeof(sql),
        "INSERT INTO replica (id, name, version, schema, started_us, beat_us, key_ids, "
        "settings_epoch, settings_mark) VALUES ('r', 'older', '0', %zu, 1, 1, '', 1, '')",
        fx->now);
    assert_int_equal(hfd_db_exec(fx->db, sql, NULL), HFD_OK);
    shared.schema_lock = schema_lock_seen;
    assert_int_equal(contract(fx, 2), HFD_CONFLICT);
    assert_schema(fx, 1, 0);
}

static void an_unshared_database_contracts_at_once(void **state)
{
    struct fixture *fx = *state;

    is_shared = false;
    assert_int_equal(start(fx, 0), HFD_OK);
    assert_int_equal(start(fx, 1), HFD_OK);
    assert_schema(fx, 1, 1);
    assert_int_equal(start(fx, 0), HFD_INVALID);
    assert_int_equal(start(fx, 3), HFD_OK);
    assert_schema(fx, 3, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_new_database_has_all, setup, teardown),
        cmocka_unit_test_setup_teardown(older_programs_go_on_beside_an_expanded_schema, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(contraction_waits_for_the_command, setup, teardown),
        cmocka_unit_test_setup_teardown(the_command_ends_the_window_without_a_step_too, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_older_command_contracts_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_living_older_program_holds_a_contraction, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_contraction_looks_under_the_lock, setup, teardown),
        cmocka_unit_test_setup_teardown(an_unshared_database_contracts_at_once, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
