#include "store/postgres/stmt.h"

#include "driver/base/check.h"
#include "store/postgres/engine.h"
#include "store/postgres/text.h"
#include "store/postgres/value.h"

#include <limits.h>

#define WHAT_SHOWN 48 /* bytes of a statement's text in a message */

/* ---- making ---- */

static void free_stmt(struct hfd_stmt *st)
{
    PQclear(st->result);
    free(st->text);
    free(st->values);
    free(st->lengths);
    free(st->formats);
    free(st->types);
    free(st->numbers);
    st->magic = 0;
    free(st);
}

static hfd_rc make(struct hfd_db *db, hfd_slice sql, struct hfd_stmt **out, struct hfd_err *err)
{
    struct hfd_stmt *st = calloc(1, sizeof(*st));
    size_t n;

    *out = NULL;
    if (st == NULL)
        return hfd_fail_nomem(err, "make a statement");
    st->engine = db->engine;
    st->magic = PG_STMT_MAGIC;
    st->db = db;
    st->text = hfd_pg_placeholders(sql, "$", &st->params);
    n = (size_t)st->params + 1;
    st->values = calloc(n, sizeof(*st->values));
    st->lengths = calloc(n, sizeof(*st->lengths));
    st->formats = calloc(n, sizeof(*st->formats));
    st->types = calloc(n, sizeof(*st->types));
    st->numbers = calloc(n, sizeof(*st->numbers));
    if (st->text == NULL || st->values == NULL || st->lengths == NULL || st->formats == NULL ||
        st->types == NULL || st->numbers == NULL) {
        free_stmt(st);
        return hfd_fail_nomem(err, "make a statement");
    }
    *out = st;
    return HFD_OK;
}

static hfd_rc make_kept(struct hfd_db *db, const char *sql, struct hfd_stmt **out,
                        struct hfd_err *err)
{
    hfd_rc rc = hfd_stmt_slots_reserve(&db->stmts, err);

    if (rc == HFD_OK)
        rc = make(db, hfd_slice_of(sql), out, err);
    if (rc != HFD_OK)
        return rc;
    (*out)->sql = sql;
    (void)snprintf((*out)->name, sizeof((*out)->name), "s%zu", db->stmts.count);
    hfd_stmt_slots_add(&db->stmts, sql, *out);
    return HFD_OK;
}

/* A connection that is broken, or a transaction that can only be rolled back, runs nothing. */
static bool is_useless(const struct hfd_db *db)
{
    return db->broken || (db->in_txn && db->fate != HFD_DB_GOES_ON);
}

static void begin_use(struct hfd_stmt *st)
{
    st->in_use = true;
    st->stuck = HFD_OK;
    st->row = st->rows = 0;
    st->db->stmts_in_use++;
}

static hfd_rc stmt_prepare(struct hfd_db *db, const char *sql, struct hfd_stmt **out,
                           struct hfd_err *err)
{
    struct hfd_stmt *st = NULL;
    hfd_rc rc = HFD_OK;

    hfd_pg_check_owner(db);
    *out = NULL;
    if (is_useless(db))
        return hfd_pg_fail_before(db, err);
    st = hfd_stmt_slots_find(&db->stmts, sql);
    if (st == NULL)
        rc = make_kept(db, sql, &st, err);
    if (rc != HFD_OK)
        return rc;
    HFD_ASSERT(!st->in_use);
    begin_use(st);
    *out = st;
    return HFD_OK;
}

static hfd_rc stmt_prepare_once(struct hfd_db *db, hfd_slice sql, struct hfd_stmt **out,
                                struct hfd_err *err)
{
    hfd_rc rc;

    hfd_pg_check_owner(db);
    *out = NULL;
    if (is_useless(db))
        return hfd_pg_fail_before(db, err);
    rc = make(db, sql, out, err);
    if (rc != HFD_OK)
        return rc;
    (*out)->sql = "a composed query";
    (*out)->once = true;
    begin_use(*out);
    return HFD_OK;
}

/* ---- bindings ---- */

static void stick(struct hfd_stmt *st, hfd_rc rc)
{
    if (st->stuck == HFD_OK)
        st->stuck = rc;
}

/* Sets a parameter. @param bytes  of a number: borrowed from `numbers` */
static void set_param(struct hfd_stmt *st, int at, hfd_slice bytes, Oid type)
{
    const bool number = type == HFD_PG_INT8 || type == HFD_PG_FLOAT8;

    HFD_CHECK_OBJ(st, PG_STMT_MAGIC);
    HFD_ASSERT(at >= 1 && at <= st->params);
    if (bytes.len > INT_MAX) {
        stick(st, HFD_LIMIT);
        return;
    }
    st->values[at - 1] = bytes.p;
    st->lengths[at - 1] = (int)bytes.len;
    st->formats[at - 1] = number ? 0 : 1;
    st->types[at - 1] = type;
}

static void stmt_text(struct hfd_stmt *st, int at, hfd_slice v)
{
    if (v.p != NULL && v.len > 0 && memchr(v.p, '\0', v.len) != NULL)
        stick(st, HFD_INVALID);
    else
        set_param(st, at, v, HFD_PG_TEXT);
}

static void stmt_blob(struct hfd_stmt *st, int at, hfd_slice v)
{
    set_param(st, at, v, HFD_PG_BYTEA);
}

static void stmt_i64(struct hfd_stmt *st, int at, int64_t v)
{
    char *digits = st->numbers[at - 1].digits;

    (void)snprintf(digits, HFD_PG_DIGITS_MAX, "%lld", (long long)v);
    set_param(st, at, hfd_slice_of(digits), HFD_PG_INT8);
}

static void stmt_f64(struct hfd_stmt *st, int at, double v)
{
    char *digits = st->numbers[at - 1].digits;

    (void)snprintf(digits, HFD_PG_DIGITS_MAX, "%.17g", v);
    set_param(st, at, hfd_slice_of(digits), HFD_PG_FLOAT8);
}

static void stmt_null(struct hfd_stmt *st, int at)
{
    set_param(st, at, HFD_SLICE_NONE, 0);
}

/* ---- running ---- */

static hfd_rc fail_stuck(struct hfd_stmt *st, struct hfd_err *err)
{
    static const char *const texts[HFD_RC_COUNT] = {
        [HFD_NOMEM] = "out of memory for a value",
        [HFD_LIMIT] = "a value is too long",
        [HFD_INVALID] = "a text holds a NUL byte",
        [HFD_CORRUPT] = "a column holds a value of another type",
    };

    return hfd_fail(err, st->stuck, "store: %.*s: %s", WHAT_SHOWN, st->sql, texts[st->stuck]);
}

/* Types of parameters are the server's guess, from where they stand. */
static hfd_rc prepare_on_server(struct hfd_stmt *st, struct hfd_err *err)
{
    struct hfd_db *db = st->db;
    PGresult *r;
    hfd_rc rc = hfd_pg_wait(db, PQsendPrepare(db->conn, st->name, st->text, 0, NULL), &r, err);

    if (rc == HFD_OK)
        rc = hfd_pg_judge(db, r, st->sql, err);
    PQclear(r);
    if (rc == HFD_OK)
        st->session = db->session;
    return rc;
}

static int send_stmt(const struct hfd_stmt *st)
{
    PGconn *conn = st->db->conn;

    if (st->once)
        return PQsendQueryParams(conn, st->text, st->params, st->types, st->values, st->lengths,
                                 st->formats, 1);
    return PQsendQueryPrepared(conn, st->name, st->params, st->values, st->lengths, st->formats, 1);
}

static void count_changes(struct hfd_stmt *st)
{
    int64_t n = 0;

    if (strncmp(PQcmdStatus(st->result), "SELECT", 6) != 0 &&
        hfd_parse_i64(hfd_slice_of(PQcmdTuples(st->result)), 0, INT64_MAX, &n, NULL) == HFD_OK)
        st->db->changes += n;
}

static hfd_rc execute(struct hfd_stmt *st, struct hfd_err *err)
{
    struct hfd_db *db = st->db;
    hfd_rc rc = HFD_OK;

    if (!st->once && st->session != db->session)
        rc = prepare_on_server(st, err);
    if (rc == HFD_OK)
        rc = hfd_pg_wait(db, send_stmt(st), &st->result, err);
    if (rc == HFD_OK)
        rc = hfd_pg_judge(db, st->result, st->sql, err);
    if (rc != HFD_OK)
        return rc;
    st->row = 0;
    st->rows = PQntuples(st->result);
    count_changes(st);
    return HFD_OK;
}

static hfd_rc stmt_step(struct hfd_stmt *st, bool *row, struct hfd_err *err)
{
    hfd_rc rc;

    HFD_CHECK_OBJ(st, PG_STMT_MAGIC);
    hfd_pg_check_owner(st->db);
    HFD_ASSERT(st->in_use);
    *row = false;
    if (is_useless(st->db))
        return hfd_pg_fail_before(st->db, err);
    if (st->stuck != HFD_OK)
        return fail_stuck(st, err);
    rc = st->result == NULL ? execute(st, err) : HFD_OK;
    if (rc != HFD_OK)
        return rc;
    *row = st->row < st->rows;
    st->row += *row;
    return HFD_OK;
}

static void stmt_done(struct hfd_stmt *st)
{
    HFD_CHECK_OBJ(st, PG_STMT_MAGIC);
    hfd_pg_check_owner(st->db);
    HFD_ASSERT(st->in_use);
    st->db->stmts_in_use--;
    if (st->once) {
        free_stmt(st);
        return;
    }
    PQclear(st->result);
    st->result = NULL;
    st->in_use = false;
    memset(st->values, 0, (size_t)st->params * sizeof(*st->values));
}

static hfd_rc stmt_run(struct hfd_stmt *st, int64_t *changed, struct hfd_err *err)
{
    bool row;
    hfd_rc rc = stmt_step(st, &row, err);

    HFD_ASSERT(!row);
    if (changed != NULL)
        *changed = 0;
    if (rc == HFD_OK && changed != NULL &&
        hfd_parse_i64(hfd_slice_of(PQcmdTuples(st->result)), 0, INT64_MAX, changed, NULL) != HFD_OK)
        *changed = 0;
    stmt_done(st);
    return rc;
}

/* ---- columns ---- */

static bool is_absent(const struct hfd_stmt *st, int at)
{
    return st->row == 0 || PQgetisnull(st->result, st->row - 1, at) != 0;
}

static hfd_slice bytes_of(const struct hfd_stmt *st, int at)
{
    return (hfd_slice){PQgetvalue(st->result, st->row - 1, at),
                       (size_t)PQgetlength(st->result, st->row - 1, at)};
}

static int64_t stmt_col_i64(struct hfd_stmt *st, int at)
{
    int64_t v = 0;

    HFD_CHECK_OBJ(st, PG_STMT_MAGIC);
    if (is_absent(st, at) || !hfd_pg_number(PQftype(st->result, at), bytes_of(st, at), &v))
        stick(st, HFD_CORRUPT);
    return v;
}

static bool stmt_is_stuck(const struct hfd_stmt *st)
{
    HFD_CHECK_OBJ(st, PG_STMT_MAGIC);
    return st->stuck != HFD_OK;
}

static bool stmt_col_is_null(struct hfd_stmt *st, int at)
{
    HFD_CHECK_OBJ(st, PG_STMT_MAGIC);
    return is_absent(st, at);
}

static hfd_slice stmt_col_text(struct hfd_stmt *st, int at, struct hfd_arena *mem)
{
    hfd_slice v;

    HFD_CHECK_OBJ(st, PG_STMT_MAGIC);
    if (is_absent(st, at))
        return HFD_SLICE_NONE;
    if (!hfd_pg_is_text(PQftype(st->result, at))) {
        stick(st, HFD_CORRUPT);
        return HFD_SLICE_NONE;
    }
    v = hfd_arena_dup(mem, bytes_of(st, at));
    if (v.p == NULL)
        stick(st, HFD_NOMEM);
    return v;
}

void hfd_pg_finalize_all(struct hfd_db *db)
{
    HFD_ASSERT(db->stmts_in_use == 0);
    hfd_stmt_slots_clear(&db->stmts, free_stmt);
}

const struct hfd_engine_statements hfd_pg_statements = {
    .prepare = stmt_prepare,
    .prepare_once = stmt_prepare_once,
    .text = stmt_text,
    .blob = stmt_blob,
    .i64 = stmt_i64,
    .f64 = stmt_f64,
    .null = stmt_null,
    .step = stmt_step,
    .run = stmt_run,
    .done = stmt_done,
    .col_i64 = stmt_col_i64,
    .is_stuck = stmt_is_stuck,
    .col_is_null = stmt_col_is_null,
    .col_text = stmt_col_text,
};
