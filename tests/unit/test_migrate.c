/*
 * Steps of the schema that expand and contract, as programs of two versions see them on a database
 * that both may use. The database is SQLite's, with an engine that says it is shared. A step that
 * fills columns in is tried on either engine.
 */
#include "store/engine.h"
#include "store/migrate.h"
#include "store/row_io.h"
#include "tests/lib/contains.h"
#include "tests/lib/place.h"
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
    struct hfd_schema_version schema;

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

/* ---- what steps fill in ---- */

#define OLD_ROWS 20

static size_t step_of(const char *name)
{
    size_t i = 0;

    while (i < hfd_migrations_count && strcmp(hfd_migrations[i].name, name) != 0)
        i++;
    assert_true(i < hfd_migrations_count);
    return i;
}

static hfd_rc write_number(struct hfd_db *db, const char *sql, int64_t number)
{
    struct hfd_err err;
    struct hfd_stmt *st;
    char guresid[32];

    /* As the orchestrator's: digits of base 16. The last ones are names. */
    (void)snprintf(guresid, sizeof(guresid), number < 16 ? "%08llx" : "team-%lld-prod",
                   (unsigned long long)number);
    if (hfd_db_begin(db, &err) != HFD_OK || hfd_db_prepare(db, sql, &st, &err) != HFD_OK)
        return HFD_IO;
    hfd_stmt_text(st, 1, hfd_slice_of(guresid));
    return hfd_stmt_run(st, NULL, &err) == HFD_OK ? hfd_db_commit(db, &err) : HFD_IO;
}

static int64_t read_number(struct hfd_db *db, const char *sql)
{
    struct hfd_err err;
    struct hfd_stmt *st;
    int64_t number = -1;

    assert_int_equal(hfd_db_begin(db, &err), HFD_OK);
    assert_int_equal(hfd_db_prepare(db, sql, &st, &err), HFD_OK);
    assert_int_equal(hfd_row_number(st, -1, &number, &err), HFD_OK);
    hfd_db_rollback(db);
    return number;
}

/* The work of a program that had shards is there, on either side of their removal. */
static void work_stays_without_shards(void **state)
{
    static const char *const adds[] = {
        "INSERT INTO upstream (guresid, goal, watched, due_us, checked_us, full_us, unsure_us, "
        "behind_us, tries, refusals, later_names, error, shard)"
        " VALUES (?1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, '', 4)",
        "INSERT INTO stray (id, kind, owner_id, guresid, name, generation, ready, created_us, "
        "deleted_us, created_by, seen_us, wanted_us, due_us, tries, error, shard)"
        " VALUES (?1, 1, '', ?1, 'n', 1, 0, 1, 0, '', 1, 0, 1, 0, '', 4)",
    };
    static const char *const counts[] = {"SELECT count(*) FROM upstream",
                                         "SELECT count(*) FROM stray"};
    static const char *const steps[] = {"0023_leader", "0028_no_shards"};
    struct fixture *fx = *state;
    char dir[TMPDIR_MAX + 8];
    struct hfd_err err;
    struct hfd_db *db;

    (void)snprintf(dir, sizeof(dir), "%s/old", fx->base);
    assert_int_equal(test_db_open(dir, HFD_DB_WRITER, &db, NULL), HFD_OK);
    assert_int_equal(hfd_migrate(db, hfd_migrations, step_of(steps[0]), &err), HFD_OK);
    for (int64_t n = 0; n < OLD_ROWS; n++)
        for (int t = 0; t < 2; t++)
            assert_int_equal(write_number(db, adds[t], n), HFD_OK);
    for (int i = 0; i < 2; i++) {
        if (hfd_migrate_contract(db, hfd_migrations, step_of(steps[i]) + 1, &err) != HFD_OK)
            fail_msg("%s", err.msg);
        for (int t = 0; t < 2; t++)
            assert_int_equal(read_number(db, counts[t]), OLD_ROWS);
    }
    hfd_db_close(&db);
}

/* ---- objects of others ---- */

#define SQLITE(sql) "/*sqlite:" sql "*/"
#define POSTGRES(sql) "/*postgres:" sql "*/"
#define FUNCTION                                                                                   \
    "CREATE FUNCTION evil() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"

/* clang-format off */
static const struct odd {
    const char *sql;  /* what others did; one that is empty for an engine is not tried there */
    const char *says; /* NULL = it is no reason to refuse; else part of the refusal */
} odds[] = {
    {SQLITE("CREATE TRIGGER evil AFTER INSERT ON resource BEGIN DELETE FROM resource; END")
     POSTGRES(FUNCTION "CREATE TRIGGER evil BEFORE INSERT ON resource FOR EACH ROW EXECUTE FUNCTION evil()"),
     "trigger evil of table resource is not of hyperfleet-driver"},
    {POSTGRES(FUNCTION "CREATE CONSTRAINT TRIGGER evil AFTER INSERT ON history_floor FOR EACH ROW EXECUTE FUNCTION evil()"),
     "trigger evil of table history_floor"},
    {POSTGRES(FUNCTION "CREATE TRIGGER evil AFTER INSERT ON hfd_meta FOR EACH ROW EXECUTE FUNCTION evil()"),
     "trigger evil of table hfd_meta"},
    {POSTGRES("CREATE RULE evil AS ON INSERT TO resource DO INSTEAD NOTHING"), "rule evil of table resource"},
    {POSTGRES("CREATE POLICY evil ON resource USING (true)"), "policy evil of table resource"},
    {POSTGRES("ALTER TABLE resource ENABLE ROW LEVEL SECURITY"), "row security of table resource"},
    {POSTGRES("ALTER TABLE resource FORCE ROW LEVEL SECURITY"), "row security of table resource"},
    {"CREATE VIEW evil AS SELECT 1 AS x", "view evil is not of hyperfleet-driver"},
    {"DROP TABLE history_floor; CREATE VIEW history_floor AS SELECT 1 AS one, 1 AS seq", "view history_floor"},
    {POSTGRES("CREATE MATERIALIZED VIEW evil AS SELECT 1 AS x"), "materialized view evil"},
    {"CREATE TABLE evil (x TEXT)", "table evil is not of hyperfleet-driver"},
    {SQLITE("CREATE TABLE evil (x INTEGER PRIMARY KEY AUTOINCREMENT)"), "table evil"},
    {SQLITE("CREATE VIRTUAL TABLE evil USING fts5(x)"), "table evil"},
    {POSTGRES("CREATE TABLE evil (x TEXT) PARTITION BY LIST (x)"), "table evil"},
    {POSTGRES("CREATE TABLE evil () INHERITS (resource)"), "table evil"},
    {POSTGRES("CREATE TABLE evil (LIKE token_use)") POSTGRES("; ALTER TABLE token_use INHERIT evil"), "evil"},
    {POSTGRES("ALTER TABLE hfd_commit SET UNLOGGED"), "table hfd_commit is not as"},
    {"DROP TABLE stray", "table stray is missing"},
    {"ALTER TABLE resource ADD COLUMN evil TEXT", "evil"},
    {SQLITE("ALTER TABLE resource ADD COLUMN evil TEXT AS (type)")
     POSTGRES("ALTER TABLE resource ADD COLUMN evil TEXT GENERATED ALWAYS AS (type) STORED"), "evil"},
    {"ALTER TABLE stray DROP COLUMN error", "stray"},
    {"ALTER TABLE forecast RENAME COLUMN usual TO evil", "evil"},
    {POSTGRES("ALTER TABLE resource ALTER COLUMN type DROP NOT NULL"), "column type of table resource is not as"},
    {POSTGRES("ALTER TABLE resource ALTER COLUMN type SET DEFAULT 'x'"), "column type of table resource"},
    {POSTGRES("ALTER TABLE resource ALTER COLUMN degraded DROP DEFAULT"), "column degraded of table resource"},
    {POSTGRES("ALTER TABLE resource ALTER COLUMN type TYPE VARCHAR(90)"), "column type of table resource"},
    {POSTGRES("ALTER TABLE resource ALTER COLUMN kind ADD GENERATED BY DEFAULT AS IDENTITY"), "column kind of table resource"},
    {SQLITE("DROP TABLE token_use; CREATE TABLE token_use (name TEXT NOT NULL PRIMARY KEY, created_us BIGINT NOT NULL,"
            " used_us BIGINT NOT NULL CHECK (used_us < 9), used_from TEXT NOT NULL)"),
     "table token_use is not as hyperfleet-driver makes it: it has \"CHECK (used_us < 9)"},
    {SQLITE("DROP TABLE token_use; CREATE TABLE token_use (name TEXT NOT NULL PRIMARY KEY, created_us BIGINT NOT NULL,"
            " used_us BIGINT NOT NULL, used_from TEXT)"), "table token_use"},
    {POSTGRES("ALTER TABLE resource ADD CONSTRAINT evil CHECK (kind < 9)"), "constraint evil of table resource"},
    {POSTGRES("ALTER TABLE resource ADD CONSTRAINT evil UNIQUE (cookie)"), "evil of table resource"},
    {POSTGRES("ALTER TABLE part ADD CONSTRAINT evil FOREIGN KEY (guresid) REFERENCES resource (guresid)"),
     "constraint evil of table part"},
    {POSTGRES("ALTER TABLE part DROP CONSTRAINT part_pkey"), "part_pkey of table part is missing"},
    {POSTGRES("ALTER DOMAIN blob ADD CONSTRAINT evil CHECK (length(VALUE) < 9)"), "type blob is not as"},
    {"CREATE UNIQUE INDEX evil ON resource (type)", "index evil of table resource"},
    {"CREATE INDEX evil ON resource (type) WHERE kind = 1", "index evil of table resource"},
    {"CREATE INDEX evil ON resource (length(type))", "index evil of table resource"},
    {SQLITE("CREATE INDEX evil ON resource (type)"), "index evil of table resource"},
    {"DROP INDEX fleet_owner", "index fleet_owner"},
    {"DROP INDEX fleet_name; CREATE INDEX fleet_name ON fleet (kind, owner_id, name)", "index fleet_name"},
    {SQLITE("ANALYZE") POSTGRES("ANALYZE"), NULL},
    {POSTGRES("CREATE INDEX further ON resource (type)"), NULL},
    {POSTGRES("CREATE SEQUENCE further"), NULL},
    {POSTGRES("CREATE FUNCTION further() RETURNS int LANGUAGE sql AS 'SELECT 1'"), NULL},
    {POSTGRES("CREATE TYPE further AS ENUM ('a')"), NULL},
    {POSTGRES("ALTER TABLE resource SET (autovacuum_enabled = off)"), NULL},
    {POSTGRES("ALTER TABLE resource REPLICA IDENTITY FULL"), NULL},
};
/* clang-format on */

static void note_found(void *ctx, const char *text)
{
    (void)snprintf(ctx, 256, "%s", text);
}

/* @param known  migrations that were applied when the others came */
static void try_odd(struct fixture *fx, const struct odd *odd, size_t known)
{
    struct hfd_schema_check check = {.list = hfd_migrations, .count = hfd_migrations_count};
    char dir[TMPDIR_MAX + 8], found[256] = "";
    struct hfd_err err = {0};
    struct hfd_db *db;
    hfd_rc rc;

    (void)snprintf(dir, sizeof(dir), "%s/odd", fx->base);
    assert_int_equal(test_db_open(dir, HFD_DB_WRITER, &db, NULL), HFD_OK);
    assert_int_equal(hfd_migrate(db, hfd_migrations, known, NULL), HFD_OK);
    if (hfd_db_exec(db, odd->sql, &err) != HFD_OK)
        fail_msg("%s: %s", odd->sql, err.msg);
    check.found = note_found;
    check.ctx = found;
    rc = hfd_migrate_check(db, &check, &err);
    if (odd->says == NULL && rc != HFD_OK)
        fail_msg("%s: refused: %s", odd->sql, err.msg);
    if ((strstr(odd->sql, "further") != NULL && strstr(odd->sql, "ENUM") == NULL) !=
        (strstr(found, "further") != NULL))
        fail_msg("%s: found \"%s\"", odd->sql, found);
    if (odd->says != NULL && (rc != HFD_INVALID || strstr(err.msg, odd->says) == NULL))
        fail_msg("%s: %d %s", odd->sql, (int)rc, err.msg);
    assert_int_equal(hfd_migrate(db, hfd_migrations, hfd_migrations_count, NULL), rc);
    hfd_db_close(&db);
    test_place_remove(dir);
}

/*
 * A trigger, view, table, column, constraint or index of others refuses a database, and the message
 * names it. The statistics of a database, and what changes nothing, do not.
 */
static void objects_of_others_are_refused(void **state)
{
    for (size_t i = 0; i < sizeof(odds) / sizeof(odds[0]); i++)
        if (strstr(odds[i].sql, test_on_postgres() ? "/*sqlite:" : "/*postgres:") == NULL ||
            strstr(odds[i].sql, test_on_postgres() ? "/*postgres:" : "/*sqlite:") != NULL)
            try_odd(*state, &odds[i], hfd_migrations_count);
}

/* They refuse an older database before a migration could fire them, whatever its version is. */
static void older_databases_are_compared_before_they_are_migrated(void **state)
{
    for (size_t known = 7; known < hfd_migrations_count; known++)
        try_odd(*state, &odds[0], known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(work_stays_without_shards, setup, teardown),
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
        cmocka_unit_test_setup_teardown(objects_of_others_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(older_databases_are_compared_before_they_are_migrated,
                                        setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
