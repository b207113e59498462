#include "store/postgres/schema.h"

#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "store/migrate.h"
#include "store/postgres/fail.h"
#include "store/postgres/number.h"
#include "store/postgres/text.h"
#include "store/postgres/txn.h"

#include <poll.h>

#define MIGRATE_US                                                                                 \
    (600 * HFD_US_PER_S) /* the longest statement of a migration, and wait for one                 \
                          */
#define LOCK_ASK_MS 100
#define OWN "hyperfleet_driver.schema" /* a setting of a transaction: the name of our schema */
#define SQL_MAKE_META                                                                              \
    "CREATE TABLE IF NOT EXISTS hfd_meta (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL)"

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
    hfd_rc rc = ask_number(db,
                           "SELECT count(*) FROM pg_class WHERE oid = to_regclass('hfd_meta')"
                           " AND relkind = 'r' AND NOT relrowsecurity",
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
                   SQL_MAKE_META "; INSERT INTO hfd_meta (key, value) VALUES ('schema_now', '%lld')"
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

hfd_rc hfd_pg_schema_unlock(struct hfd_db *db, bool whole, struct hfd_err *err)
{
    struct hfd_err why;
    hfd_rc rc = HFD_OK;

    if (whole) {
        db->checked = true;
        rc = hfd_pg_number_base(db, err);
    }
    /* Without an answer the connection is broken, and the lock ends with it. */
    if (!db->broken &&
        hfd_pg_run(db, "SELECT pg_advisory_unlock(" HFD_PG_LOCK_SCHEMA ")", NULL, &why) != HFD_OK)
        (void)hfd_pg_lost(db, why.msg, &why);
    return rc;
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

hfd_rc hfd_pg_cleanup(struct hfd_db *db, struct hfd_err *err)
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

/* ---- the schema as the migrations make it ---- */

/* clang-format off */
/* Members of an extension are the operator's. */
#define NO_EXTENSION(catalog, oid) \
    " NOT EXISTS (SELECT 1 FROM pg_depend e WHERE e.classid = '" catalog "'::regclass AND e.objid = " oid \
    " AND e.deptype = 'e')"
#define TYPE_NAME(t, ns) \
    "CASE WHEN " t ".typnamespace = " ns " THEN '' ELSE " t ".typnamespace::regnamespace || '.' END || " t ".typname"

/*
 * Objects of our schema (own) and of the temporary one, in which the migrations were made. `always`
 * refuses it whatever else is allowed, `plain` never refuses it. `def` has no name of a schema.
 */
static const char sql_odd[] =
    "WITH s AS (SELECT oid AS ns, true AS own FROM pg_namespace WHERE nspname = current_setting('" OWN "')"
    "   UNION ALL SELECT pg_my_temp_schema(), false),"
    " r AS (SELECT c.oid AS id, c.relname, c.relkind, c.relnamespace AS ns, c.relpersistence, c.relrowsecurity,"
    "     c.relforcerowsecurity, s.own FROM pg_class c JOIN s ON s.ns = c.relnamespace"
    "   WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND" NO_EXTENSION("pg_class", "c.oid") "),"
    " d (own, place, kind, name, def, always, plain) AS ("
    " SELECT own, 1, 'trigger', t.tgname || ' of table ' || relname, '', true, false"
    "   FROM r JOIN pg_trigger t ON t.tgrelid = id WHERE NOT t.tgisinternal"
    " UNION ALL SELECT own, 1, 'rule', w.rulename || ' of table ' || relname, '', true, false"
    "   FROM r JOIN pg_rewrite w ON w.ev_class = id WHERE relkind NOT IN ('v', 'm')"
    " UNION ALL SELECT own, 1, 'policy', p.polname || ' of table ' || relname, '', true, false"
    "   FROM r JOIN pg_policy p ON p.polrelid = id"
    " UNION ALL SELECT own, 2, CASE relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view'"
    "     WHEN 'f' THEN 'foreign table' WHEN 'S' THEN 'sequence' ELSE 'table' END, relname,"
    "     concat_ws(' ', relkind, CASE WHEN own THEN relpersistence ELSE 'p' END), relkind NOT IN ('r', 'S'),"
    "     relkind = 'S' FROM r"
    " UNION ALL SELECT own, 2, 'row security', 'of table ' || relname, '', true, false FROM r"
    "   WHERE relrowsecurity OR relforcerowsecurity"
    " UNION ALL SELECT DISTINCT own, 3, 'inheritance', h.inhrelid::regclass || ' of ' || h.inhparent::regclass, '',"
    "     true, false FROM r JOIN pg_inherits h ON id IN (h.inhrelid, h.inhparent)"
    " UNION ALL SELECT own, 4, 'column', a.attname || ' of table ' || relname,"
    "     concat_ws(' ', " TYPE_NAME("t", "ns") ", a.atttypmod, a.attnotnull, a.attgenerated, a.attidentity,"
    "     a.attcollation, pg_get_expr(b.adbin, b.adrelid)), false, false"
    "   FROM r JOIN pg_attribute a ON a.attrelid = id JOIN pg_type t ON t.oid = a.atttypid"
    "   LEFT JOIN pg_attrdef b ON b.adrelid = id AND b.adnum = a.attnum"
    "   WHERE relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped"
    " UNION ALL SELECT DISTINCT own, 5, 'constraint', k.conname || ' of table ' || CASE WHEN k.conrelid = id"
    "     THEN relname ELSE k.conrelid::regclass::text END, concat_ws(' ', k.contype, k.convalidated,"
    "     pg_get_constraintdef(k.oid)), k.contype = 'f', false"
    "   FROM r JOIN pg_constraint k ON id IN (k.conrelid, k.confrelid) WHERE k.contype NOT IN ('n', 't')"
    " UNION ALL SELECT own, 6, 'index', c.relname || ' of table ' || r.relname, concat_ws(' ', m.amname,"
    "     i.indisunique, i.indisvalid, i.indimmediate, i.indisexclusion, to_jsonb(i)->>'indnullsnotdistinct',"
    "     (SELECT string_agg(pg_get_indexdef(i.indexrelid, n, true), ',' ORDER BY n)"
    "       FROM generate_series(1, i.indnatts) n), i.indnkeyatts, i.indoption, i.indclass, i.indcollation,"
    "     pg_get_expr(i.indpred, i.indrelid)), false,"
    "     NOT i.indisunique AND NOT i.indisexclusion AND i.indpred IS NULL AND i.indexprs IS NULL"
    "   FROM r JOIN pg_index i ON i.indrelid = id JOIN pg_class c ON c.oid = i.indexrelid"
    "   JOIN pg_am m ON m.oid = c.relam"
    " UNION ALL SELECT own, 7, 'type', t.typname, concat_ws(' ', " TYPE_NAME("b", "s.ns") ", t.typnotnull,"
    "     t.typdefault, (SELECT string_agg(pg_get_constraintdef(k.oid), ',' ORDER BY k.conname) FROM pg_constraint k"
    "     WHERE k.contypid = t.oid)), false, true"
    "   FROM s JOIN pg_type t ON t.typnamespace = s.ns JOIN pg_type b ON b.oid = t.typbasetype"
    "   WHERE t.typtype = 'd' AND" NO_EXTENSION("pg_type", "t.oid")
    " UNION ALL SELECT own, 8, 'function', p.oid::regprocedure::text, '', false, true"
    "   FROM s JOIN pg_proc p ON p.pronamespace = s.ns WHERE" NO_EXTENSION("pg_proc", "p.oid") "),"
    " f AS (SELECT place, kind, name, CASE WHEN NOT bool_or(own) THEN 'missing' WHEN bool_and(own) THEN 'more'"
    "     ELSE 'changed' END AS what, bool_and(always) AS always, bool_and(plain) AS plain"
    "   FROM d GROUP BY place, kind, name HAVING count(*) <> 2 OR min(def) <> max(def)),"
    " v AS (SELECT *, NOT (what = 'more' AND plain) AS refuses FROM f"
    "   WHERE always OR NOT %s OR (what <> 'more' AND kind IN ('table', 'column')))"
    " SELECT kind, name, what, refuses FROM v ORDER BY refuses DESC, what = 'missing', place, name COLLATE \"C\" LIMIT 20";

static const char sql_begin_made[] =
    "BEGIN; SELECT set_config('" OWN "', current_schema(), true); SET LOCAL search_path = pg_temp";
static const char sql_may_make[] = "SELECT has_database_privilege(current_database(), 'TEMPORARY')::int";
/* clang-format on */
static const char sql_meta_there[] = "SELECT count(*) FROM pg_class c WHERE relname = 'hfd_meta' "
                                     "AND relnamespace = current_schema()::regnamespace";

/*
 * Makes the schema in the temporary one of this session, within the transaction. hfd_meta is older
 * than the migration that makes it.
 */
static hfd_rc make_schema(struct hfd_db *db, const struct hfd_schema_check *check, bool meta,
                          struct hfd_err *err)
{
    hfd_rc rc = meta ? hfd_pg_run(db, SQL_MAKE_META, NULL, err) : HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < check->count; i++)
        rc = hfd_pg_exec(db, check->list[i].sql, err);
    return rc;
}

/* Judges what sql_odd found. */
static hfd_rc judge(const PGresult *r, const struct hfd_schema_check *check, struct hfd_err *err)
{
    char text[256];

    for (int i = 0; i < PQntuples(r); i++) {
        const char *kind = PQgetvalue(r, i, 0), *name = PQgetvalue(r, i, 1);
        const char *what = PQgetvalue(r, i, 2);

        if (strcmp(PQgetvalue(r, i, 3), "t") != 0) {
            (void)snprintf(text, sizeof(text), "%s %s is not of hyperfleet-driver", kind, name);
            check->found(check->ctx, text);
        } else if (strcmp(what, "more") == 0) {
            return hfd_fail(err, HFD_INVALID,
                            "store: %s %.140s is not of hyperfleet-driver. Drop it, or use a "
                            "database without it",
                            kind, name);
        } else {
            return hfd_fail(
                err, HFD_INVALID, "store: %s %.140s is %s. Make it as it was, or restore a backup",
                kind, name,
                strcmp(what, "missing") == 0 ? "missing" : "not as hyperfleet-driver makes it");
        }
    }
    return HFD_OK;
}

static hfd_rc compare_schema(struct hfd_db *db, const struct hfd_schema_check *check,
                             struct hfd_err *err)
{
    char sql[sizeof(sql_odd) + 8];
    int64_t meta = 0, may = 0;
    PGresult *r = NULL;
    hfd_rc rc = ask_number(db, sql_meta_there, &meta, err);

    if (rc == HFD_OK)
        rc = ask_number(db, sql_may_make, &may, err);
    if (rc == HFD_OK)
        rc = hfd_pg_run(db, sql_begin_made, NULL, err);
    if (rc == HFD_OK && may != 0)
        rc = make_schema(db, check, meta != 0, err);
    (void)snprintf(sql, sizeof(sql), sql_odd, check->newer || may == 0 ? "true" : "false");
    if (rc == HFD_OK)
        rc = hfd_pg_run(db, sql, &r, err);
    if (rc == HFD_OK)
        rc = judge(r, check, err);
    PQclear(r);
    if (rc == HFD_OK && may == 0)
        check->found(check->ctx,
                     "only triggers, rules, views and policies are looked for: to compare all, "
                     "GRANT TEMPORARY ON DATABASE to this user");
    return rc;
}

hfd_rc hfd_pg_check_schema(struct hfd_db *db, const struct hfd_schema_check *check,
                           struct hfd_err *err)
{
    struct hfd_err why;
    hfd_rc rc;

    hfd_pg_check_owner(db);
    HFD_ASSERT(!db->in_txn);
    if (db->broken)
        return hfd_pg_fail_before(db, err);
    rc = compare_schema(db, check, err);
    if (!db->broken && hfd_pg_run(db, "ROLLBACK", NULL, &why) != HFD_OK && rc == HFD_OK)
        rc = hfd_fail(err, why.rc, "%s", why.msg);
    return rc;
}
