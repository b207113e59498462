#include "store/postgres/txn.h"

#include "driver/base/check.h"
#include "driver/base/log.h"
#include "store/postgres/engine.h"
#include "store/postgres/fail.h"

/* One program writes at a time, so that the rules of a single writer hold for several. */
static const char sql_begin_write[] = "BEGIN; " HFD_PG_SQL_LOCK;
static const char sql_begin_read[] = HFD_PG_SQL_BEGIN_READ;

bool hfd_pg_shared(const struct hfd_db *db)
{
    hfd_pg_check_owner(db);
    return true;
}

int hfd_pg_slot(const struct hfd_db *db)
{
    hfd_pg_check_owner(db);
    return db->slot;
}

enum hfd_db_fate hfd_pg_fate(const struct hfd_db *db)
{
    hfd_pg_check_owner(db);
    return db->broken ? HFD_DB_LOST : db->fate;
}

const char *hfd_pg_undone_by(const struct hfd_db *db)
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

hfd_rc hfd_pg_begin(struct hfd_db *db, struct hfd_err *err)
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

hfd_rc hfd_pg_commit(struct hfd_db *db, struct hfd_err *err)
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

void hfd_pg_rollback(struct hfd_db *db)
{
    hfd_pg_check_owner(db);
    HFD_ASSERT(db->in_txn && db->stmts_in_use == 0);
    end_transaction(db);
}

int64_t hfd_pg_changes(const struct hfd_db *db)
{
    hfd_pg_check_owner(db);
    return db->changes;
}

hfd_rc hfd_pg_reopen(struct hfd_db *db, struct hfd_err *err)
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
hfd_rc hfd_pg_was_committed(struct hfd_db *db, bool *out, struct hfd_err *err)
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
