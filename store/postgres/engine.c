/*
 * The functions of store/db.h, but for statements: stmt.h has those. Opening and closing,
 * transactions, the schema, and the table of the engine.
 */
#include "store/postgres/engine.h"

#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/base/log.h"
#include "driver/base/rng.h"
#include "store/migrate.h"
#include "store/postgres/burst.h"
#include "store/postgres/stmt.h"
#include "store/postgres/text.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>

/* ---- numbers of groups that write at the same time: store/unit.h ---- */

#define BITS "16" /* HFD_NUMBERS_MAX has as many */
/* clang-format off */
#define BASE "COALESCE((SELECT CAST(value AS BIGINT) FROM hfd_meta WHERE key = 'number_base'), 0)"
#define HIGHEST \
    "SELECT MAX(n) AS top FROM (SELECT MAX(seq) AS n FROM fleet UNION ALL SELECT MAX(seq) FROM resource" \
    " UNION ALL SELECT MAX(seq) FROM history UNION ALL SELECT MAX(seq) FROM tombstone" \
    " UNION ALL SELECT MAX(seq) FROM history_floor UNION ALL SELECT MAX(due_seq) FROM fleet WHERE due_seq > 0" \
    " UNION ALL SELECT MAX(seq) FROM due_gone UNION ALL SELECT MAX(seq) FROM due_floor) AS all_numbers"
/* Numbers that groups give from now on are higher. */
#define REACHED BASE " + (CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS BIGINT) << " BITS ")"

static const char sql_number[] =
    "SELECT " BASE " + (CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT) << " BITS ")";

/*
 * The snapshot names the transactions that had not ended. One of another program does not count: its
 * session is there, and does not hold our lock. Each group takes this lock before it has a number,
 * and PostgreSQL releases it last. A transaction that ended after the snapshot still limits this
 * read, as it may be a group. The next read passes it.
 */
static const char sql_number_end[] =
    "WITH held AS MATERIALIZED (SELECT * FROM pg_locks WHERE granted AND locktype IN ('transactionid', 'advisory'))"
    " SELECT " BASE " + (LEAST(CAST(CAST(pg_snapshot_xmax(now.s) AS TEXT) AS BIGINT),"
    " (SELECT MIN(CAST(CAST(x AS TEXT) AS BIGINT)) FROM pg_snapshot_xip(now.s) AS x WHERE NOT EXISTS"
    "   (SELECT 1 FROM held t WHERE t.locktype = 'transactionid' AND t.mode = 'ExclusiveLock'"
    "     AND CAST(CAST(t.transactionid AS TEXT) AS BIGINT) = (CAST(CAST(x AS TEXT) AS BIGINT) & 4294967295)"
    "     AND NOT EXISTS (SELECT 1 FROM held a WHERE a.pid = t.pid AND " HFD_PG_IS_LOCK_WRITE("a") ")))"
    ") << " BITS ")"
    " FROM (SELECT pg_current_snapshot() AS s) AS now";

static const char sql_number_bound[] = "SELECT " REACHED;

static const char sql_reached[] =
    "SELECT 1 FROM (" HIGHEST ") AS h WHERE h.top >= " REACHED;
static const char sql_raise[] =
    "BEGIN; " HFD_PG_SQL_LOCK "; INSERT INTO hfd_meta (key, value)"
    " SELECT 'number_base', CAST(h.top AS TEXT) FROM (" HIGHEST ") AS h WHERE h.top >= " REACHED
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value; COMMIT";
/* clang-format on */

static const char *pg_sql_number(const struct hfd_db *db)
{
    hfd_pg_check_owner(db);
    return sql_number;
}

static const char *pg_sql_number_end(const struct hfd_db *db)
{
    hfd_pg_check_owner(db);
    return sql_number_end;
}

static const char *pg_sql_number_bound(const struct hfd_db *db)
{
    hfd_pg_check_owner(db);
    return sql_number_bound;
}

hfd_rc hfd_pg_number_base(struct hfd_db *db, struct hfd_err *err)
{
    PGresult *r = NULL;
    hfd_rc rc;
    bool reached;

    if (!db->checked || !db->marks) /* the schema had no tables, or was not looked at */
        return HFD_OK;
    rc = hfd_pg_run(db, sql_reached, &r, err);
    reached = rc == HFD_OK && PQntuples(r) > 0;
    PQclear(r);
    return reached ? hfd_pg_run(db, sql_raise, NULL, err) : rc;
}

/* ---- transactions ---- */

/* One program writes at a time, so that the rules of a single writer hold for several. */
static const char sql_begin_write[] = "BEGIN; " HFD_PG_SQL_LOCK;
static const char sql_begin_read[] = HFD_PG_SQL_BEGIN_READ;

static bool pg_shared(const struct hfd_db *db)
{
    hfd_pg_check_owner(db);
    return true;
}

static int pg_slot(const struct hfd_db *db)
{
    hfd_pg_check_owner(db);
    return db->slot;
}

static enum hfd_db_fate pg_fate(const struct hfd_db *db)
{
    hfd_pg_check_owner(db);
    return db->broken ? HFD_DB_LOST : db->fate;
}

static const char *pg_undone_by(const struct hfd_db *db)
{
    return db->broken ? "connection" : db->undone_by;
}

/*
 * Ends sessions that hold the lock while the server waits for the rest of their burst. They are not
 * idle, so idle_in_transaction_session_timeout does not end them. Their client was stopped or cut
 * off.
 */
static const char sql_end_holders[] =
    "SELECT count(pg_terminate_backend(a.pid)) FROM pg_locks l"
    " JOIN pg_stat_activity a ON a.pid = l.pid"
    " WHERE l.granted AND " HFD_PG_IS_LOCK_WRITE(
        "l") " AND a.state = 'active' AND a.wait_event = 'ClientRead'"
             " AND a.state_change < clock_timestamp() - interval '%lld milliseconds'";

static void end_holders(struct hfd_db *db)
{
    char sql[sizeof(sql_end_holders) + 24];
    PGresult *r = NULL;
    struct hfd_err err;

    (void)snprintf(sql, sizeof(sql), sql_end_holders, (long long)hfd_pg_answer_us(db) / 1000);
    if (hfd_pg_run(db, sql, &r, &err) != HFD_OK)
        HFD_LOG(HFD_LOG_WARN, "cannot look for the session that holds the write lock",
                HFD_LOG_CSTR("reason", err.msg));
    else if (PQntuples(r) == 1 && strcmp(PQgetvalue(r, 0, 0), "0") != 0)
        HFD_LOG(HFD_LOG_WARN, "ended a session that held the write lock and had stopped",
                HFD_LOG_CSTR("sessions", PQgetvalue(r, 0, 0)));
    PQclear(r);
}

static void end_transaction(struct hfd_db *db)
{
    const bool waited = db->lock_timed_out;
    struct hfd_err err;

    db->lock_timed_out = false;
    if (!db->broken && hfd_pg_run(db, "ROLLBACK", NULL, &err) != HFD_OK && !db->broken)
        (void)hfd_pg_lost(db, err.msg, NULL);
    db->in_txn = false;
    if (waited && !db->broken)
        end_holders(db);
}

void hfd_pg_note_begin(struct hfd_db *db)
{
    db->fate = HFD_DB_GOES_ON;
    db->undone_by = NULL;
    db->in_txn = true;
    db->changes_before = db->changes;
}

static hfd_rc begin(struct hfd_db *db, struct hfd_err *err)
{
    hfd_rc rc;

    HFD_ASSERT(!db->in_txn && db->stmts_in_use == 0);
    if (db->broken)
        return hfd_pg_fail_before(db, err);
    hfd_pg_note_begin(db);
    rc = hfd_pg_run(db, db->mode == HFD_DB_WRITER ? sql_begin_write : sql_begin_read, NULL, err);
    if (rc != HFD_OK)
        end_transaction(db);
    return rc;
}

static hfd_rc pg_begin(struct hfd_db *db, struct hfd_err *err)
{
    hfd_pg_check_owner(db);
    db->unsure = false;
    return begin(db, err);
}

/* The mark and COMMIT go in one message. */
static hfd_rc send_commit(struct hfd_db *db, bool marked, struct hfd_err *err)
{
    static const char form[] = HFD_PG_SQL_MARK("'%s'", "%lld") "; COMMIT";
    char sql[sizeof(form) + HFD_PG_REPLICA_LEN + 24];
    PGresult *r;
    hfd_rc rc;

    (void)snprintf(sql, sizeof(sql), form, db->replica, (long long)db->commits);
    rc = hfd_pg_wait(db, PQsendQuery(db->conn, marked ? sql : "COMMIT"), &r, err);
    if (rc == HFD_OK)
        rc = hfd_pg_judge(db, r, "COMMIT", err);
    if (rc == HFD_OK && strcmp(PQcmdStatus(r), "COMMIT") != 0)
        rc = hfd_fail(err, HFD_BUSY, "store: PostgreSQL undid the transaction: %s", PQcmdStatus(r));
    PQclear(r);
    return rc;
}

static hfd_rc pg_commit(struct hfd_db *db, struct hfd_err *err)
{
    const bool writes = db->changes != db->changes_before;
    const bool marked = writes && db->marks && db->mode == HFD_DB_WRITER;
    hfd_rc rc;

    hfd_pg_check_owner(db);
    HFD_ASSERT(db->in_txn && db->stmts_in_use == 0);
    if (db->broken || db->fate != HFD_DB_GOES_ON)
        return hfd_pg_fail_before(db, err);
    db->commits += marked;
    rc = send_commit(db, marked, err);
    db->unsure = rc != HFD_OK && db->broken && marked;
    if (rc == HFD_OK)
        db->in_txn = false;
    return rc;
}

static void pg_rollback(struct hfd_db *db)
{
    hfd_pg_check_owner(db);
    HFD_ASSERT(db->in_txn && db->stmts_in_use == 0);
    end_transaction(db);
}

static int64_t pg_changes(const struct hfd_db *db)
{
    hfd_pg_check_owner(db);
    return db->changes;
}

static hfd_rc pg_reopen(struct hfd_db *db, struct hfd_err *err)
{
    hfd_rc rc;

    hfd_pg_check_owner(db);
    HFD_ASSERT(db->stmts_in_use == 0);
    rc = hfd_pg_connect(db, err);
    if (rc == HFD_OK || (rc == HFD_INVALID && db->conn != NULL))
        return rc;
    /* A password that is being changed, for example: it served before. */
    db->cause.rc = HFD_AWAY;
    if (err != NULL)
        err->rc = HFD_AWAY;
    return HFD_AWAY;
}

/* Under the lock: the server may still be at work on the COMMIT that had no answer. */
static hfd_rc pg_was_committed(struct hfd_db *db, bool *out, struct hfd_err *err)
{
    char sql[128];
    PGresult *r = NULL;
    hfd_rc rc = HFD_OK;

    hfd_pg_check_owner(db);
    *out = false;
    if (!db->unsure)
        return HFD_OK;
    (void)snprintf(sql, sizeof(sql), "SELECT 1 FROM hfd_commit WHERE replica = '%s' AND n = %lld",
                   db->replica, (long long)db->commits);
    rc = begin(db, err);
    if (rc != HFD_OK)
        return rc;
    rc = hfd_pg_run(db, sql, &r, err);
    *out = rc == HFD_OK && PQntuples(r) == 1;
    PQclear(r);
    end_transaction(db);
    if (rc == HFD_OK)
        db->unsure = false;
    return rc;
}

/* ---- the schema, and the database as a whole ---- */

/* The longest statement of a migration, and the wait for one. */
#define MIGRATE_US (600 * HFD_US_PER_S)
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

static hfd_rc pg_schema_version(struct hfd_db *db, int64_t *out, struct hfd_err *err)
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

static hfd_rc pg_set_schema_version(struct hfd_db *db, int64_t version, struct hfd_err *err)
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
static hfd_rc pg_exec(struct hfd_db *db, const char *sql, struct hfd_err *err)
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

static hfd_rc pg_schema_lock(struct hfd_db *db, struct hfd_err *err)
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

static hfd_rc pg_schema_unlock(struct hfd_db *db, bool whole, struct hfd_err *err)
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
static hfd_rc pg_check(struct hfd_db *db, struct hfd_err *err)
{
    int64_t one;

    return ask_number(db, "SELECT 1", &one, err);
}

static hfd_rc pg_bytes(struct hfd_db *db, int64_t *out, struct hfd_err *err)
{
    return ask_number(db, "SELECT pg_database_size(current_database())", out, err);
}

static hfd_rc pg_cleanup(struct hfd_db *db, struct hfd_err *err)
{
    hfd_pg_check_owner(db);
    (void)err;
    return HFD_OK; /* checkpoints are the server's */
}

static hfd_rc pg_copy_open(struct hfd_db *from, const char *path, struct hfd_db_copy **out,
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
        rc = pg_exec(db, check->list[i].sql, err);
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

static hfd_rc pg_check_schema(struct hfd_db *db, const struct hfd_schema_check *check,
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

/* ---- signals from server to server: LISTEN and NOTIFY ---- */

/* Takes the signals that came so far; one's own is none. */
static bool take_signals(struct hfd_db *db)
{
    bool heard = false;
    PGnotify *n;

    while ((n = PQnotifies(db->conn)) != NULL) {
        heard = heard || n->be_pid != PQbackendPID(db->conn);
        PQfreemem(n);
    }
    return heard;
}

static hfd_rc wait_for_one(struct hfd_db *db, const struct hfd_db_signal *signal, bool *heard,
                           struct hfd_err *err)
{
    struct pollfd p[] = {{.fd = PQsocket(db->conn), .events = POLLIN},
                         {.fd = signal->fd, .events = POLLIN}};

    const int ready = poll(p, 2, (int)(signal->wait_us / 1000));

    if (ready < 0 && errno != EINTR)
        return hfd_pg_lost(db, strerror(errno), err);
    if (ready == 0 && signal->fd >= 0)
        db->listens = 0; /* the next call shows that the connection is still there */
    if (p[0].revents != 0 && PQconsumeInput(db->conn) == 0)
        return hfd_pg_lost(db, PQerrorMessage(db->conn), err);
    *heard = take_signals(db);
    return HFD_OK;
}

/* hfd_db_signal. */
static hfd_rc pg_signal(struct hfd_db *db, const struct hfd_db_signal *signal, bool *heard,
                        struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    *heard = false;
    hfd_pg_check_owner(db);
    if (db->broken)
        return hfd_pg_fail_before(db, err);
    if (db->listens != db->session) { /* a new connection */
        rc = hfd_pg_run(db, "LISTEN hfd_work", NULL, err);
        if (rc == HFD_OK)
            db->listens = db->session;
    }
    if (rc == HFD_OK && signal->send)
        rc = hfd_pg_run(db, "NOTIFY hfd_work", NULL, err);
    if (rc != HFD_OK)
        return rc;
    *heard = take_signals(db);
    return *heard ? HFD_OK : wait_for_one(db, signal, heard, err);
}

/* ---- rows in bulk: COPY ... FROM STDIN ---- */

#define FLUSH_BYTES ((size_t)256 << 10)

/* The bytes before and behind the rows. */
static const hfd_slice header = {"PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0", 19};
static const hfd_slice trailer = {"\377\377", 2};

/* The server ended the COPY: its result says why. */
static hfd_rc fail_ended(struct hfd_db *db, struct hfd_err *err)
{
    PGresult *r = NULL;
    hfd_rc rc = hfd_pg_wait(db, 1, &r, err);

    if (rc == HFD_OK)
        rc = hfd_pg_judge(db, r, "COPY", err);
    PQclear(r);
    return rc != HFD_OK ? rc : hfd_pg_lost(db, "COPY ended early", err);
}

/* libpq keeps what the socket does not take at once. */
static hfd_rc put(struct hfd_db *db, hfd_slice bytes, struct hfd_err *err)
{
    int taken;

    HFD_ASSERT(bytes.len <= INT_MAX);
    while ((taken = PQputCopyData(db->conn, bytes.p, (int)bytes.len)) == 0) {
        const hfd_rc rc = hfd_pg_flush(db, err);

        if (rc != HFD_OK)
            return rc;
    }
    if (taken < 0)
        return fail_ended(db, err);
    db->loaded_bytes += bytes.len;
    if (db->loaded_bytes < FLUSH_BYTES)
        return HFD_OK;
    db->loaded_bytes = 0;
    return hfd_pg_flush(db, err);
}

static hfd_rc pg_load_begin(struct hfd_db *db, const char *sql, struct hfd_err *err)
{
    PGresult *r = NULL;
    hfd_rc rc;

    hfd_pg_check_owner(db);
    HFD_ASSERT(db->in_txn && db->stmts_in_use == 0);
    if (db->broken)
        return hfd_pg_fail_before(db, err);
    rc = hfd_pg_wait_one(db, PQsendQuery(db->conn, sql), &r, err);
    if (rc == HFD_OK && PQresultStatus(r) != PGRES_COPY_IN)
        rc = hfd_pg_judge(db, r, sql, err);
    PQclear(r);
    return rc == HFD_OK ? put(db, header, err) : rc;
}

static hfd_rc pg_load(struct hfd_db *db, hfd_slice bytes, struct hfd_err *err)
{
    hfd_pg_check_owner(db);
    return db->broken ? hfd_pg_fail_before(db, err) : put(db, bytes, err);
}

static hfd_rc pg_load_end(struct hfd_db *db, struct hfd_err *err)
{
    PGresult *r = NULL;
    hfd_rc rc = put(db, trailer, err);

    if (rc == HFD_OK)
        rc = hfd_pg_wait(db, PQputCopyEnd(db->conn, NULL), &r, err);
    if (rc == HFD_OK)
        rc = hfd_pg_judge(db, r, "COPY", err);
    PQclear(r);
    db->changes++;
    return rc;
}

/* ---- engine ---- */

/* Returns false when there is no memory. */
static bool copy_text(const char *text, const char **out)
{
    *out = text != NULL ? strdup(text) : NULL;
    return text == NULL || *out != NULL;
}

static void free_text(const char *text)
{
    if (text != NULL)
        explicit_bzero((void *)(uintptr_t)text, strlen(text));
    free((void *)(uintptr_t)text);
}

/* A name that no other connection has, for its row in hfd_commit. */
static void name_replica(char out[HFD_PG_REPLICA_LEN + 1])
{
    unsigned char bytes[HFD_PG_REPLICA_LEN / 2];

    hfd_rng_bytes(&hfd_rng_system, bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++)
        (void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

/* A row that stays does no harm. */
static void forget_mark(struct hfd_db *db)
{
    struct hfd_err err;
    char sql[96];

    (void)snprintf(sql, sizeof(sql), "DELETE FROM hfd_commit WHERE replica = '%s'", db->replica);
    if (hfd_pg_run(db, sql, NULL, &err) != HFD_OK)
        HFD_LOG(HFD_LOG_INFO, "the store was closed without its last statement",
                HFD_LOG_CSTR("reason", err.msg));
}

static void pg_close(struct hfd_db **dbp)
{
    struct hfd_db *db = *dbp;

    *dbp = NULL;
    hfd_pg_check_owner(db);
    if (db->conn != NULL && !db->broken && db->commits > 0)
        forget_mark(db);
    hfd_pg_finalize_all(db);
    hfd_pg_texts_free(db);
    hfd_pg_disconnect(db);
    free_text(db->place.url);
    free_text(db->place.password_file);
    db->magic = 0;
    free(db);
}

static hfd_rc pg_open(const struct hfd_store_place *place, enum hfd_db_mode mode,
                      struct hfd_db **out, struct hfd_err *err)
{
    struct hfd_db *db = calloc(1, sizeof(*db));
    bool whole;
    hfd_rc rc;

    *out = NULL;
    if (db == NULL)
        return hfd_fail_nomem(err, "open the store");
    db->engine = &hfd_engine_postgres;
    db->magic = PG_DB_MAGIC;
    db->mode = mode;
    db->owner = pthread_self();
    db->place = *place;
    db->place.dir = NULL;
    name_replica(db->replica);
    whole = copy_text(place->url, &db->place.url);
    whole = copy_text(place->password_file, &db->place.password_file) && whole;
    rc = whole ? hfd_pg_connect(db, err) : hfd_fail_nomem(err, "open the store");
    if (rc == HFD_OK)
        *out = db;
    else
        pg_close(&db);
    return rc;
}

static void pg_adopt(struct hfd_db *db)
{
    HFD_CHECK_OBJ(db, PG_DB_MAGIC);
    db->owner = pthread_self();
}

static bool pg_broken(const struct hfd_db *db)
{
    return db->broken;
}

static hfd_rc pg_cause(const struct hfd_db *db, struct hfd_err *err)
{
    return db->broken ? hfd_pg_fail_before(db, err) : HFD_OK;
}

static void pg_watch(struct hfd_db *db, hfd_db_stop_fn *fn, void *ctx)
{
    hfd_pg_check_owner(db);
    db->stop = fn;
    db->stop_ctx = ctx;
}

/* ---- words that portable SQL does not have; pure text ---- */

/* json and not jsonb: a member that is an object stays as it is written. */
static void sql_json_text(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
                          int path_at)
{
    (void)db;
    hfd_buf_addf(sql, "(%s::json #>> ?%d::text[])", column, path_at);
}

static void sql_json_number(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
                            int path_at)
{
    (void)db;
    hfd_buf_addf(sql,
                 "CASE json_typeof(%s::json #> ?%d::text[]) WHEN 'number' THEN "
                 "(%s::json #>> ?%d::text[])::numeric END",
                 column, path_at, column, path_at);
}

#define MICROSECONDS(time) "(EXTRACT(EPOCH FROM (" time ")::timestamptz) * 1000000)::bigint"

static void sql_condition(const struct hfd_db *db, struct hfd_buf *sql, const char *column,
                          int type_at, enum hfd_db_condition what)
{
    static const char *const members[] = {
        [HFD_DB_STATUS] = "e.value->>'status'",
        [HFD_DB_LAST_UPDATED_TIME] = MICROSECONDS("e.value->>'last_updated_time'"),
        [HFD_DB_LAST_TRANSITION_TIME] = MICROSECONDS("e.value->>'last_transition_time'"),
        [HFD_DB_OBSERVED_GENERATION] = "(e.value->>'observed_generation')::bigint",
    };

    (void)db;
    hfd_buf_addf(sql,
                 "(SELECT %s FROM json_array_elements(%s::json) WITH ORDINALITY e (value, at) "
                 "WHERE e.value->>'type' = ?%d ORDER BY e.at LIMIT 1)",
                 members[what], column, type_at);
}

/* Adds a key to a path as an element of a literal array. */
static void add_key(struct hfd_buf *b, hfd_slice key)
{
    hfd_buf_addc(b, '"');
    for (size_t i = 0; i < key.len; i++) {
        if (key.p[i] == '"' || key.p[i] == '\\')
            hfd_buf_addc(b, '\\');
        hfd_buf_addc(b, key.p[i]);
    }
    hfd_buf_addc(b, '"');
}

static hfd_slice json_path(const struct hfd_db *db, hfd_slice dotted, struct hfd_arena *mem)
{
    struct hfd_buf b;
    hfd_slice out;

    (void)db;
    hfd_buf_init(&b, dotted.len * 3 + 8);
    hfd_buf_addc(&b, '{');
    for (;;) {
        const char *dot = dotted.len > 0 ? memchr(dotted.p, '.', dotted.len) : NULL;
        const size_t len = dot != NULL ? (size_t)(dot - dotted.p) : dotted.len;

        add_key(&b, (hfd_slice){dotted.p, len});
        if (dot == NULL)
            break;
        hfd_buf_addc(&b, ',');
        dotted = (hfd_slice){dot + 1, dotted.len - len - 1};
    }
    hfd_buf_addc(&b, '}');
    return hfd_buf_to_arena(&b, mem, &out, NULL) == HFD_OK ? out : HFD_SLICE_NONE;
}

static hfd_slice json_key(const struct hfd_db *db, hfd_slice key, struct hfd_arena *mem)
{
    struct hfd_buf b;
    hfd_slice out;

    (void)db;
    hfd_buf_init(&b, key.len * 2 + 8);
    hfd_buf_addc(&b, '{');
    add_key(&b, key);
    hfd_buf_addc(&b, '}');
    return hfd_buf_to_arena(&b, mem, &out, NULL) == HFD_OK ? out : HFD_SLICE_NONE;
}

static struct hfd_db_like sql_like(const struct hfd_db *db)
{
    (void)db;
    return (struct hfd_db_like){"(", " LIKE ", " ESCAPE '\\')"};
}

static struct hfd_db_like sql_fold(const struct hfd_db *db, struct hfd_arena *mem)
{
    const hfd_slice end = db->fold[0] != '\0' ? hfd_arena_printf(mem, ") COLLATE \"%s\")", db->fold)
                                              : HFD_SLICE("))");

    return (struct hfd_db_like){"lower((", "", end.p};
}

/* It touches no table. */
static const struct hfd_db_use now = {
    .sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint", .table = "none"};

static const struct hfd_engine_dialect dialect = {
    .sql_json_text = sql_json_text,
    .sql_json_number = sql_json_number,
    .sql_like = sql_like,
    .sql_fold = sql_fold,
    .sql_condition = sql_condition,
    .json_path = json_path,
    .json_key = json_key,
    .sql_number = pg_sql_number,
    .sql_number_end = pg_sql_number_end,
    .sql_number_bound = pg_sql_number_bound,
    .now = &now,
};

/* ---- the engine ---- */

/* The connections of groups gather what the jobs read and write. */
static hfd_rc open_place(const struct hfd_store_place *place, enum hfd_db_mode mode,
                         struct hfd_db **out, struct hfd_err *err)
{
    struct hfd_db *db;
    const hfd_rc rc = pg_open(place, mode, &db, err);

    *out = db;
    if (rc != HFD_OK || mode == HFD_DB_READER)
        return rc;
    return hfd_gather_open(db, hfd_pg_burst, mode, out, err);
}

const struct hfd_engine hfd_engine_postgres = {
    .open = open_place,
    .close = pg_close,
    .adopt = pg_adopt,
    .broken = pg_broken,
    .cause = pg_cause,
    .watch = pg_watch,
    .begin = pg_begin,
    .commit = pg_commit,
    .rollback = pg_rollback,
    .changes = pg_changes,
    .shared = pg_shared,
    .slot = pg_slot,
    .fate = pg_fate,
    .undone_by = pg_undone_by,
    .reopen = pg_reopen,
    .was_committed = pg_was_committed,
    .cleanup = pg_cleanup,
    .exec = pg_exec,
    .load_begin = pg_load_begin,
    .load = pg_load,
    .load_end = pg_load_end,
    .check = pg_check,
    .bytes = pg_bytes,
    .copy_open = pg_copy_open,
    .schema_lock = pg_schema_lock,
    .schema_unlock = pg_schema_unlock,
    .schema_version = pg_schema_version,
    .set_schema_version = pg_set_schema_version,
    .check_schema = pg_check_schema,
    .statements = &hfd_pg_statements,
    .dialect = &dialect,
    .signal = pg_signal,
};
