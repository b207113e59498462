#include "store/postgres/session.h"

#include "driver/base/clock.h"
#include "store/postgres/connect.h"
#include "store/postgres/fail.h"
#include "store/postgres/number.h"
#include "store/postgres/txn.h"

#define VERSION_MIN 130000
#define SERVER_SHARE 9 / 10 /* the server ends a statement before our own deadline does */

/* Columns of sql_session. */
enum {
    AT_VERSION,
    AT_COLLATE,
    AT_PROVIDER,
    AT_ENCODING,
    AT_STRINGS,
    AT_SCHEMA,
    AT_NEW,
    AT_FOLD,
    AT_META,
    AT_MARKS,
    AT_FOREIGN
};

/*
 * The session has a mark of ours. A new one that has it already was another connection's. A pooler
 * in transaction mode shares sessions so, with their settings, locks and prepared statements.
 */
#define MARK "hyperfleet_driver.session"

/*
 * A writer has no statement_timeout. It would end the wait of a COMMIT for a synchronous standby,
 * and PostgreSQL then says that the commit is done. A server that never answers is left by our own
 * deadline.
 */
static const char sql_session[] =
    "SELECT current_setting('server_version_num'), d.datcollate,"
    " COALESCE(to_jsonb(d)->>'datlocprovider', 'c'), pg_encoding_to_char(d.encoding),"
    " current_setting('standard_conforming_strings'), current_schema() IS NOT NULL,"
    " COALESCE(current_setting('" MARK "', true), '') = '',"
    " (SELECT c.collname FROM pg_collation c WHERE c.collencoding IN (-1, d.encoding)"
    "   AND c.collname IN ('C.utf8', 'C.UTF-8', 'en_US.utf8', 'en_US.UTF-8', 'und-x-icu')"
    "   ORDER BY array_position(ARRAY['C.utf8', 'C.UTF-8', 'en_US.utf8', 'en_US.UTF-8',"
    "   'und-x-icu'], c.collname::text) LIMIT 1),"
    " to_regclass('hfd_meta') IS NOT NULL, to_regclass('hfd_commit') IS NOT NULL,"
    " EXISTS (SELECT 1 FROM pg_class r WHERE r.relnamespace = current_schema()::regnamespace"
    "   AND r.relkind IN ('r', 'p', 'v', 'm')),"
    " set_config('" MARK "', 'set', false),"
    " set_config('idle_in_transaction_session_timeout', '%lld', false),"
    " set_config('lock_timeout', '%lld', false),"
    " set_config('statement_timeout', '%lld', false),"
    " set_config('default_transaction_isolation', 'read committed', false),"
    " set_config('default_transaction_deferrable', 'off', false),"
    " set_config('synchronous_commit', CASE current_setting('synchronous_commit')"
    "   WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false),"
    " set_config('jit', 'off', false), set_config('TimeZone', 'UTC', false),"
    " CASE WHEN current_setting('client_connection_check_interval', true) IS NOT NULL"
    "   THEN set_config('client_connection_check_interval', '1000', false) END%s%s"
    " FROM pg_database d WHERE d.datname = current_database()";

/*
 * Groups find each row by a key, and there is an index for it. Without statistics, as on tables
 * that grew a minute ago, the planner takes them for small and reads them whole.
 */
static const char sql_by_index[] =
    ", set_config('enable_seqscan', 'off', false), set_config('enable_hashjoin', 'off', false),"
    " set_config('enable_mergejoin', 'off', false),"
    " set_config('plan_cache_mode', 'force_generic_plan', false)";

/* A writer holds its slot until its session ends. */
static const char sql_slot[] = ", (SELECT s FROM generate_series(0, 7) AS s"
                               " WHERE pg_try_advisory_lock(" HFD_PG_LOCK_SLOT("s") ") LIMIT 1)"
                                                                                    " AS slot";

/* A reader's transactions read only by themselves. */
static const char sql_read_only[] = ", set_config('default_transaction_read_only', 'on', false)";

static hfd_rc refuse(struct hfd_db *db, struct hfd_err *e, struct hfd_err *err)
{
    return hfd_pg_turn_broken(db, e, err);
}

static bool is_true(const PGresult *r, int at)
{
    return strcmp(PQgetvalue(r, 0, at), "t") == 0;
}

static hfd_rc check_database(struct hfd_db *db, const PGresult *r, struct hfd_err *e)
{
    const char *collate = PQgetvalue(r, 0, AT_COLLATE);
    int64_t version;

    if (hfd_parse_i64(hfd_slice_of(PQgetvalue(r, 0, AT_VERSION)), 0, INT64_MAX, &version, e) !=
            HFD_OK ||
        version < VERSION_MIN)
        return hfd_fail(e, HFD_INVALID, "store: the server is PostgreSQL %d, and 13 is needed",
                        PQserverVersion(db->conn) / 10000);
    if ((strcmp(collate, "C") != 0 && strcmp(collate, "POSIX") != 0) ||
        strcmp(PQgetvalue(r, 0, AT_PROVIDER), "i") == 0)
        return hfd_fail(e, HFD_INVALID,
                        "store: the database has the collation %.40s, and C is needed. Create it "
                        "so: CREATE DATABASE name TEMPLATE template0 ENCODING 'UTF8' "
                        "LC_COLLATE 'C' LC_CTYPE 'C'",
                        collate);
    if (strcmp(PQgetvalue(r, 0, AT_ENCODING), "UTF8") != 0)
        return hfd_fail(e, HFD_INVALID,
                        "store: the database has the encoding %.40s, and UTF8 is needed",
                        PQgetvalue(r, 0, AT_ENCODING));
    if (strcmp(PQgetvalue(r, 0, AT_STRINGS), "on") != 0)
        return hfd_fail(e, HFD_INVALID,
                        "store: standard_conforming_strings is off, and on is needed");
    if (!is_true(r, AT_SCHEMA))
        return hfd_fail(e, HFD_INVALID,
                        "store: the user may use no schema that its search_path names. Let it: "
                        "GRANT USAGE, CREATE ON SCHEMA public TO user");
    if (!is_true(r, AT_NEW))
        return hfd_fail(e, HFD_INVALID,
                        "store: PostgreSQL gave a session that another one had, as a pooler in "
                        "transaction mode does. Connect directly, or by a pooler in session mode");
    if (is_true(r, AT_FOREIGN) && !is_true(r, AT_META))
        return hfd_fail(e, HFD_INVALID,
                        "store: not a database of hyperfleet-driver: it has other tables");
    return HFD_OK;
}

static int slot_of(const PGresult *r)
{
    const char *slot = PQgetvalue(r, 0, PQfnumber(r, "slot"));

    return slot[0] >= '1' && slot[0] < '0' + HFD_DB_SLOTS ? slot[0] - '0' : 0;
}

hfd_rc hfd_pg_session(struct hfd_db *db, struct hfd_err *err)
{
    const long long answer_ms = hfd_pg_answer_us(db) / 1000;
    const long long server_ms = answer_ms * SERVER_SHARE;
    char sql[sizeof(sql_session) + sizeof(sql_by_index) + sizeof(sql_slot) + 64];
    PGresult *r;
    struct hfd_err e;
    hfd_rc rc;

    (void)snprintf(sql, sizeof(sql), sql_session, answer_ms, server_ms,
                   db->mode == HFD_DB_WRITER ? 0LL : server_ms,
                   db->mode == HFD_DB_READER ? "" : sql_by_index,
                   db->mode == HFD_DB_WRITER ? sql_slot : sql_read_only);
    rc = hfd_pg_run(db, sql, &r, err);
    if (rc != HFD_OK)
        return rc;
    rc = PQntuples(r) == 1 ? check_database(db, r, &e)
                           : hfd_fail(&e, HFD_INVALID, "store: the database does not show itself");
    if (rc == HFD_OK) {
        db->marks = is_true(r, AT_MARKS);
        db->slot = db->mode == HFD_DB_WRITER ? slot_of(r) : 0;
        (void)snprintf(db->fold, sizeof(db->fold), "%s",
                       PQgetisnull(r, 0, AT_FOLD) ? "" : PQgetvalue(r, 0, AT_FOLD));
    }
    PQclear(r);
    return rc == HFD_OK ? HFD_OK : refuse(db, &e, err);
}

hfd_rc hfd_pg_connect(struct hfd_db *db, struct hfd_err *err)
{
    hfd_rc rc;

    hfd_pg_disconnect(db);
    db->broken = false;
    db->in_txn = false;
    db->fate = HFD_DB_GOES_ON;
    db->session++;
    rc = hfd_pg_reach(db, err);
    if (rc == HFD_OK) {
        rc = hfd_pg_session(db, err);
        if (rc != HFD_OK && db->broken)
            return rc;
    }
    if (rc == HFD_OK)
        rc = hfd_pg_number_base(db, err);
    if (rc == HFD_OK)
        return HFD_OK;
    db->broken = true;
    (void)hfd_fail(&db->cause, rc, "%s", err != NULL ? err->msg : hfd_rc_text(rc));
    return rc;
}
