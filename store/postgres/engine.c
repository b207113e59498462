/* Opening and closing, and the table of the engine. */
#include "store/postgres/engine.h"

#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/base/log.h"
#include "driver/base/rng.h"
#include "store/postgres/burst.h"
#include "store/postgres/burst_text.h"
#include "store/postgres/conn.h"
#include "store/postgres/fail.h"
#include "store/postgres/number.h"
#include "store/postgres/stmt.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>

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

static const struct hfd_engine_dialect dialect = {
    .sql_json_text = sql_json_text,
    .sql_json_number = sql_json_number,
    .sql_like = sql_like,
    .sql_fold = sql_fold,
    .sql_condition = sql_condition,
    .json_path = json_path,
    .json_key = json_key,
    .sql_number = hfd_pg_sql_number,
    .sql_number_end = hfd_pg_sql_number_end,
    .sql_number_bound = hfd_pg_sql_number_bound,
    .sql_now = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
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
    .begin = hfd_pg_begin,
    .commit = hfd_pg_commit,
    .rollback = hfd_pg_rollback,
    .changes = hfd_pg_changes,
    .shared = hfd_pg_shared,
    .slot = hfd_pg_slot,
    .fate = hfd_pg_fate,
    .undone_by = hfd_pg_undone_by,
    .reopen = hfd_pg_reopen,
    .was_committed = hfd_pg_was_committed,
    .cleanup = hfd_pg_cleanup,
    .exec = hfd_pg_exec,
    .load_begin = pg_load_begin,
    .load = pg_load,
    .load_end = pg_load_end,
    .check = hfd_pg_check,
    .bytes = hfd_pg_bytes,
    .copy_open = hfd_pg_copy_open,
    .schema_lock = hfd_pg_schema_lock,
    .schema_unlock = hfd_pg_schema_unlock,
    .schema_version = hfd_pg_schema_version,
    .set_schema_version = hfd_pg_set_schema_version,
    .check_schema = hfd_pg_check_schema,
    .statements = &hfd_pg_statements,
    .dialect = &dialect,
    .signal = pg_signal,
};
