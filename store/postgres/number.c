#include "store/postgres/number.h"

#include "store/postgres/txn.h"

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

const char *hfd_pg_sql_number(const struct hfd_db *db)
{
    hfd_pg_check_owner(db);
    return sql_number;
}

const char *hfd_pg_sql_number_end(const struct hfd_db *db)
{
    hfd_pg_check_owner(db);
    return sql_number_end;
}

const char *hfd_pg_sql_number_bound(const struct hfd_db *db)
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
