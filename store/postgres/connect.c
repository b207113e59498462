#include "store/postgres/connect.h"

#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/base/log.h"
#include "driver/base/password.h"
#include "store/postgres/engine.h"

#include <poll.h>
#include <unistd.h>

#define CONNECT_US_DEFAULT (3 * HFD_US_PER_S)
#define TURN_US (HFD_US_PER_S / 4)  /* then the next host is asked, beside one that is silent */
#define AGAIN_US (HFD_US_PER_S / 2) /* then one that refused is asked again */
#define KEYWORDS_MAX 64
#define VALUE_BYTES_MAX 512

bool hfd_pg_list_item(hfd_slice list, unsigned at, hfd_slice *out)
{
    const bool one = list.len == 0 || memchr(list.p, ',', list.len) == NULL;

    for (unsigned i = 0; !one && i < at; i++) {
        const char *comma = memchr(list.p, ',', list.len);

        if (comma == NULL)
            return false;
        list.len -= (size_t)(comma + 1 - list.p);
        list.p = comma + 1;
    }
    *out = list;
    if (!one) {
        const char *comma = list.len > 0 ? memchr(list.p, ',', list.len) : NULL;

        out->len = comma != NULL ? (size_t)(comma - list.p) : list.len;
    }
    return true;
}

/* The keywords of one attempt to connect. */
struct attempt {
    const char *keys[KEYWORDS_MAX + 1];
    const char *values[KEYWORDS_MAX + 1];
    size_t count;
    char host[VALUE_BYTES_MAX], hostaddr[VALUE_BYTES_MAX], port[VALUE_BYTES_MAX];
    char password[HFD_PASSWORD_MAX];
};

static void add(struct attempt *a, const char *key, const char *value)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->keys[i], key) == 0) {
            a->values[i] = value;
            return;
        }
    if (a->count < KEYWORDS_MAX) {
        a->keys[a->count] = key;
        a->values[a->count++] = value;
    }
}

/* Sets a keyword to the item of this host. @return false: there is no such host */
static bool add_item(struct attempt *a, const PQconninfoOption *option, unsigned host, char *place)
{
    hfd_slice item;

    if (!hfd_pg_list_item(hfd_slice_of(option->val), host, &item) || item.len >= VALUE_BYTES_MAX)
        return false;
    (void)snprintf(place, VALUE_BYTES_MAX, "%.*s", HFD_SLICE_FMT(item));
    add(a, option->keyword, place);
    return true;
}

static bool add_option(struct attempt *a, const PQconninfoOption *option, unsigned host)
{
    if (option->val == NULL)
        return true;
    if (strcmp(option->keyword, "host") == 0)
        return add_item(a, option, host, a->host);
    if (strcmp(option->keyword, "hostaddr") == 0)
        return add_item(a, option, host, a->hostaddr);
    if (strcmp(option->keyword, "port") == 0)
        return add_item(a, option, host, a->port);
    add(a, option->keyword, option->val);
    return true;
}

/* Returns how many hosts the URL has. */
static unsigned count_hosts(const PQconninfoOption *options)
{
    unsigned most = 1;

    for (const PQconninfoOption *o = options; o->keyword != NULL; o++) {
        unsigned n = 1;

        if (o->val == NULL ||
            (strcmp(o->keyword, "host") != 0 && strcmp(o->keyword, "hostaddr") != 0))
            continue;
        for (const char *c = o->val; *c != '\0'; c++)
            n += *c == ',';
        most = n > most ? n : most;
    }
    return most;
}

/*
 * The server refused: words of its own come with a SQLSTATE that libpq does not give. A word of the
 * URL that libpq does not know is an "invalid sslmode value".
 */
static hfd_rc refused(const char *said, struct hfd_err *err)
{
    const bool ours =
        strstr(said, "password authentication failed") != NULL ||
        strstr(said, "no password supplied") != NULL ||
        (strncmp(said, "invalid ", 8) == 0 && strstr(said, " value: \"") != NULL) ||
        (strstr(said, "database \"") != NULL && strstr(said, "\" does not exist") != NULL) ||
        (strstr(said, "role \"") != NULL && strstr(said, "\" does not exist") != NULL);
    char line[200];

    hfd_pg_line(said, line, sizeof(line));
    return hfd_fail(err, ours ? HFD_INVALID : HFD_AWAY, "store: %s", line);
}

/* Logs warnings of the server. Words about a schema that is being made would be noise. */
static void on_notice(void *ctx, const PGresult *notice)
{
    const char *severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
    char line[200];

    (void)ctx;
    if (severity == NULL || strcmp(severity, "WARNING") != 0)
        return;
    hfd_pg_line(PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY), line, sizeof(line));
    HFD_LOG(HFD_LOG_WARN, "postgresql", HFD_LOG_CSTR("text", line));
}

/* Fills in what an attempt is made with. @return false: the URL has no such host */
static bool fill(struct attempt *a, const struct hfd_db *db, const PQconninfoOption *options,
                 unsigned host)
{
    a->count = 0;
    a->host[0] = '\0';
    add(a, "target_session_attrs", "read-write");
    add(a, "application_name", "hyperfleet-driver");
    for (const PQconninfoOption *o = options; o->keyword != NULL; o++)
        if (!add_option(a, o, host))
            return false;
    add(a, "client_encoding", "UTF8");
    if (db->place.password_file != NULL)
        add(a, "password", a->password);
    a->keys[a->count] = NULL;
    a->values[a->count] = NULL;
    return true;
}

/* ---- all hosts ---- */

/* A host of the URL, in the order in which they are asked. */
struct host {
    PGconn *conn; /* NULL = it is not asked now */
    PostgresPollingStatusType wanted;
    int64_t ask_us;     /* mono: when it is asked next */
    int64_t until_us;   /* mono: when its attempt ends */
    bool asked, failed; /* once */
    struct hfd_err err;
};

struct reach {
    struct hfd_db *db;
    const PQconninfoOption *options;
    struct host *host;
    struct pollfd *polled;
    unsigned hosts;
    struct attempt attempt;
};

/* Ends the attempt. A silent host is not asked again, one that refused is. The next one begins. */
static void end_attempt(struct reach *r, struct host *h, int64_t again_us)
{
    PQfinish(h->conn); /* not connected: it has nothing to send */
    h->conn = NULL;
    h->failed = true;
    h->ask_us = again_us;
    for (unsigned i = 0; i < r->hosts; i++)
        if (!r->host[i].asked) {
            r->host[i].ask_us = 0;
            return;
        }
}

/* Goes on with an attempt. @return whether the host can be used */
static bool go_on(struct reach *r, struct host *h, int64_t now_us)
{
    if (PQstatus(h->conn) != CONNECTION_BAD)
        h->wanted = PQconnectPoll(h->conn);
    if (PQstatus(h->conn) == CONNECTION_OK && h->wanted == PGRES_POLLING_OK)
        return true;
    if (PQstatus(h->conn) == CONNECTION_BAD || h->wanted == PGRES_POLLING_FAILED) {
        (void)refused(PQerrorMessage(h->conn), &h->err);
        end_attempt(r, h, now_us + AGAIN_US);
    }
    return false;
}

static hfd_rc ask(struct reach *r, unsigned at, int64_t now_us, struct hfd_err *err)
{
    const int64_t wait_us = r->db->place.connect_timeout_us;
    struct host *h = &r->host[at];

    if (!fill(&r->attempt, r->db, r->options, (r->db->host + at) % r->hosts))
        return hfd_fail(err, HFD_INVALID,
                        "store: the URL has another number of ports than of hosts");
    h->conn = PQconnectStartParams(r->attempt.keys, r->attempt.values, 0);
    if (h->conn == NULL)
        return hfd_fail_nomem(err, "connect to PostgreSQL");
    (void)PQsetNoticeReceiver(h->conn, on_notice, NULL);
    h->asked = true;
    h->wanted = PGRES_POLLING_WRITING;
    h->until_us = now_us + (wait_us > 0 ? wait_us : CONNECT_US_DEFAULT);
    if (PQstatus(h->conn) == CONNECTION_BAD)
        (void)go_on(r, h, now_us);
    return HFD_OK;
}

/* Begins and ends attempts, by the time. @return not HFD_OK: nothing is left to try */
static hfd_rc take_turns(struct reach *r, int64_t now_us, struct hfd_err *err)
{
    unsigned failed = 0;

    for (unsigned i = 0; i < r->hosts; i++) {
        struct host *h = &r->host[i];
        hfd_rc rc = HFD_OK;

        if (h->conn == NULL && h->ask_us <= now_us)
            rc = ask(r, i, now_us, err);
        if (rc != HFD_OK)
            return rc;
        if (h->conn != NULL && h->until_us <= now_us) {
            (void)hfd_fail(&h->err, HFD_AWAY,
                           "store: PostgreSQL on %.60s does not answer within "
                           "store.connect_timeout",
                           PQhost(h->conn));
            end_attempt(r, h, INT64_MAX);
        }
        failed += h->failed;
    }
    if (failed < r->hosts)
        return HFD_OK;
    *err = r->host[r->hosts - 1].err;
    return err->rc;
}

/* Waits until an attempt goes on, or a time has come. */
static void wait_any(struct reach *r, int64_t now_us)
{
    int64_t until_us = INT64_MAX;

    for (unsigned i = 0; i < r->hosts; i++) {
        const struct host *h = &r->host[i];
        const int64_t due_us = h->conn != NULL ? h->until_us : h->ask_us;

        until_us = due_us < until_us ? due_us : until_us;
        r->polled[i] =
            (struct pollfd){.fd = h->conn != NULL ? PQsocket(h->conn) : -1,
                            .events = h->wanted == PGRES_POLLING_WRITING ? POLLOUT : POLLIN};
    }
    if (until_us > now_us)
        (void)poll(r->polled, r->hosts, (int)((until_us - now_us) / 1000 + 1));
    else
        (void)poll(r->polled, r->hosts, 0);
}

/* Takes the first host that can be used. @return whether there is one */
static bool take_any(struct reach *r)
{
    const int64_t now_us = hfd_clock_mono_us(&hfd_clock_system);

    for (unsigned i = 0; i < r->hosts; i++) {
        struct host *h = &r->host[i];

        if (h->conn == NULL || r->polled[i].revents == 0 || !go_on(r, h, now_us))
            continue;
        r->db->conn = h->conn;
        h->conn = NULL;
        r->db->host = (r->db->host + i) % r->hosts;
        return true;
    }
    return false;
}

static hfd_rc reach_any(struct reach *r, struct hfd_err *err)
{
    const int64_t began_us = hfd_clock_mono_us(&hfd_clock_system);
    hfd_rc rc;

    r->host = calloc(r->hosts, sizeof(*r->host));
    r->polled = calloc(r->hosts, sizeof(*r->polled));
    rc = r->host != NULL && r->polled != NULL ? HFD_OK
                                              : hfd_fail_nomem(err, "connect to PostgreSQL");
    for (unsigned i = 0; rc == HFD_OK && i < r->hosts; i++)
        r->host[i].ask_us = began_us + i * TURN_US;
    while (rc == HFD_OK) {
        const int64_t now_us = hfd_clock_mono_us(&hfd_clock_system);

        rc = take_turns(r, now_us, err);
        if (rc != HFD_OK)
            break;
        wait_any(r, now_us);
        if (take_any(r))
            break;
    }
    for (unsigned i = 0; r->host != NULL && i < r->hosts; i++)
        PQfinish(r->host[i].conn);
    if (rc == HFD_OK && PQsetnonblocking(r->db->conn, 1) != 0)
        rc = hfd_fail_nomem(err, "connect to PostgreSQL");
    free(r->host);
    free(r->polled);
    return rc;
}

/*
 * Connects db->conn to the first host that takes writes, beginning with db->host, and sets db->host
 * to it. The next host is asked as soon as one refuses, or has been silent for a quarter of a
 * second. While one is silent, the others are asked again: a standby may become the primary. It
 * fails once each host has refused, or was silent for store.connect_timeout.
 * @return HFD_OK, HFD_AWAY, HFD_INVALID (the URL, the user, the password, the database), HFD_IO
 * (the password's file), HFD_NOMEM
 */
static hfd_rc reach(struct hfd_db *db, struct hfd_err *err)
{
    PQconninfoOption *options = PQconninfoParse(db->place.url, NULL);
    struct reach *r = calloc(1, sizeof(*r));
    hfd_rc rc = HFD_OK;

    if (r == NULL)
        rc = hfd_fail_nomem(err, "connect to PostgreSQL");
    else if (options == NULL) /* libpq's message may show the password */
        rc =
            hfd_fail(err, HFD_INVALID,
                     "store: this is no URL of PostgreSQL: expected postgres://USER@HOST/DATABASE");
    else if (db->place.password_file != NULL)
        rc = hfd_password_read("store.password_file", db->place.password_file, r->attempt.password,
                               err);
    if (rc == HFD_OK) {
        r->db = db;
        r->options = options;
        r->hosts = count_hosts(options);
        rc = reach_any(r, err);
    }
    if (r != NULL)
        explicit_bzero(r, sizeof(*r));
    free(r);
    PQconninfoFree(options);
    return rc;
}

/* ---- a new session: its settings, and what is read back of the database ---- */

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

/*
 * Sets up a new session, and refuses a database on which answers would differ.
 * @return HFD_OK, HFD_INVALID (version, collation, encoding, not a database of this program),
 * HFD_AWAY
 */
static hfd_rc set_up(struct hfd_db *db, struct hfd_err *err)
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
    rc = reach(db, err);
    if (rc == HFD_OK) {
        rc = set_up(db, err);
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
