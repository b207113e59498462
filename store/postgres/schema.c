#include "store/postgres/schema.h"

#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "store/postgres/fail.h"
#include "store/postgres/text.h"
#include "store/postgres/txn.h"

#include <poll.h>

#define MIGRATE_US                                                                                 \
    (600 * HFD_US_PER_S) /* the longest statement of a migration, and wait for one                 \
                          */
#define LOCK_ASK_MS 100

/* Runs SQL that gives one number; `none` where there is no row. */
static hfd_rc ask_number(struct hfd_db *db, const char *sql, int64_t *out, struct hfd_err *err)
{
    PGresult *r = NULL;
    hfd_rc rc;

    hfd_pg_check_owner(db);
    *out = 0;
    if (db->broken)
        return hfd_pg_fail_before(db, err);
    rc = hfd_pg_run(db, sql, &r, err);
    if (rc == HFD_OK && PQntuples(r) == 1)
        rc = hfd_parse_i64(hfd_slice_of(PQgetvalue(r, 0, 0)), INT64_MIN, INT64_MAX, out, err);
    PQclear(r);
    return rc;
}

hfd_rc hfd_pg_schema_version(struct hfd_db *db, int64_t *out, struct hfd_err *err)
{
    int64_t there;
    hfd_rc rc = ask_number(db, "SELECT count(*) FROM pg_class WHERE oid = to_regclass('hfd_meta')",
                           &there, err);

    *out = 0;
    if (rc == HFD_OK && there != 0)
        rc = ask_number(db, "SELECT value FROM hfd_meta WHERE key = 'schema_now'", out, err);
    return rc;
}

hfd_rc hfd_pg_set_schema_version(struct hfd_db *db, int64_t version, struct hfd_err *err)
{
    char sql[320];
    int64_t marks;
    hfd_rc rc;

    hfd_pg_check_owner(db);
    if (db->broken)
        return hfd_pg_fail_before(db, err);
    (void)snprintf(sql, sizeof(sql),
                   "CREATE TABLE IF NOT EXISTS hfd_meta"
                   " (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
                   " INSERT INTO hfd_meta (key, value) VALUES ('schema_now', '%lld')"
                   " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                   (long long)version);
    rc = hfd_pg_run(db, sql, NULL, err);
    if (rc == HFD_OK)
        rc = ask_number(db, "SELECT count(*) FROM pg_class WHERE oid = to_regclass('hfd_commit')",
                        &marks, err);
    if (rc == HFD_OK)
        db->marks = marks != 0;
    return rc;
}

/* A migration may read and write whole tables, so it has a deadline of its own. */
hfd_rc hfd_pg_exec(struct hfd_db *db, const char *sql, struct hfd_err *err)
{
    const int64_t answer_us = db->place.answer_timeout_us;
    char *text;
    hfd_rc rc;

    hfd_pg_check_owner(db);
    if (db->broken)
        return hfd_pg_fail_before(db, err);
    text = hfd_pg_comments(sql);
    if (text == NULL)
        return hfd_fail_nomem(err, "run a statement");
    db->place.answer_timeout_us = MIGRATE_US;
    rc = hfd_pg_run(db, text, NULL, err);
    db->place.answer_timeout_us = answer_us;
    db->changes++;
    free(text);
    return rc;
}

hfd_rc hfd_pg_schema_lock(struct hfd_db *db, struct hfd_err *err)
{
    const int64_t until_us = hfd_clock_mono_us(&hfd_clock_system) + MIGRATE_US;
    int64_t got = 0;
    hfd_rc rc;

    for (;;) {
        rc = ask_number(db, "SELECT pg_try_advisory_lock(" HFD_PG_LOCK_SCHEMA ")::int", &got, err);
        if (rc != HFD_OK || got != 0)
            return rc;
        if (hfd_clock_mono_us(&hfd_clock_system) >= until_us)
            return hfd_fail(err, HFD_BUSY, "store: another replica goes on migrating the schema");
        (void)poll(NULL, 0, LOCK_ASK_MS);
    }
}

void hfd_pg_schema_unlock(struct hfd_db *db)
{
    struct hfd_err err;

    /* Without an answer the connection is broken, and the lock ends with it. */
    if (!db->broken &&
        hfd_pg_run(db, "SELECT pg_advisory_unlock(" HFD_PG_LOCK_SCHEMA ")", NULL, &err) != HFD_OK)
        (void)hfd_pg_lost(db, err.msg, &err);
}

/* Damage of its pages is found by PostgreSQL's own tools: pg_amcheck, and checksums of pages. */
hfd_rc hfd_pg_check(struct hfd_db *db, struct hfd_err *err)
{
    int64_t one;

    return ask_number(db, "SELECT 1", &one, err);
}

hfd_rc hfd_pg_bytes(struct hfd_db *db, int64_t *out, struct hfd_err *err)
{
    return ask_number(db, "SELECT pg_database_size(current_database())", out, err);
}

hfd_rc hfd_pg_tidy(struct hfd_db *db, struct hfd_err *err)
{
    hfd_pg_check_owner(db);
    (void)err;
    return HFD_OK; /* checkpoints are the server's */
}

hfd_rc hfd_pg_copy_open(struct hfd_db *from, const char *path, struct hfd_db_copy **out,
                        struct hfd_err *err)
{
    hfd_pg_check_owner(from);
    (void)path;
    *out = NULL;
    return hfd_fail(err, HFD_INVALID, "store: PostgreSQL is backed up with its own tools");
}
