#include "store/postgres/conn.h"

#include "driver/base/check.h"
#include "driver/base/clock.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#define ANSWER_US_DEFAULT (5 * HFD_US_PER_S)
#define ASK_MS 20     /* between two questions if the statement is to end */
#define WHAT_SHOWN 48 /* bytes of a statement's text in a message */
#define SAID_SHOWN 120
#define LOCK_TIMED_OUT "55P03" /* lock_timeout */

void hfd_pg_check_owner(const struct hfd_db *db)
{
    HFD_CHECK_OBJ(db, PG_DB_MAGIC);
    HFD_ASSERT(pthread_equal(db->owner, pthread_self()));
}

int64_t hfd_pg_answer_us(const struct hfd_db *db)
{
    return db->place.answer_timeout_us > 0 ? db->place.answer_timeout_us : ANSWER_US_DEFAULT;
}

void hfd_pg_disconnect(struct hfd_db *db)
{
    if (db->conn == NULL)
        return;
    /* PQfinish says goodbye, and waits for room to send it: there is none on a paused server. */
    if (PQsocket(db->conn) >= 0 && db->broken)
        (void)shutdown(PQsocket(db->conn), SHUT_RDWR);
    PQfinish(db->conn);
    db->conn = NULL;
}

static hfd_rc fail_stopped(struct hfd_db *db, struct hfd_err *err)
{
    struct hfd_err e;

    (void)hfd_fail(&e, HFD_TIMEOUT, "store: the statement was ended");
    return hfd_pg_turn_broken(db, &e, err);
}

/*
 * Waits for the socket. A statement that is to end takes its connection with it: PQcancel would
 * wait without limit for a paused server. The server ends the statement of a client that has gone.
 */
static hfd_rc wait_socket(struct hfd_db *db, short events, int64_t until_us, struct hfd_err *err)
{
    for (;;) {
        struct pollfd p = {.fd = PQsocket(db->conn), .events = events};
        const int64_t left_us = until_us - hfd_clock_mono_us(&hfd_clock_system);
        int64_t wait_ms = left_us > 0 ? left_us / 1000 + 1 : 0;
        int ready;

        if (db->stop != NULL && wait_ms > ASK_MS)
            wait_ms = ASK_MS;
        ready = poll(&p, 1, (int)wait_ms);
        if (ready > 0)
            return HFD_OK;
        if (ready < 0 && errno != EINTR)
            return hfd_pg_lost(db, strerror(errno), err);
        if (db->stop != NULL && db->stop(db->stop_ctx))
            return fail_stopped(db, err);
        if (left_us <= 0)
            return hfd_pg_lost(db, "no answer within store.answer_timeout", err);
    }
}

static hfd_rc flush_until(struct hfd_db *db, int64_t until_us, struct hfd_err *err)
{
    int left;

    while ((left = PQflush(db->conn)) > 0) {
        const hfd_rc rc = wait_socket(db, POLLIN | POLLOUT, until_us, err);

        if (rc != HFD_OK)
            return rc;
        if (PQconsumeInput(db->conn) == 0)
            return hfd_pg_lost(db, PQerrorMessage(db->conn), err);
    }
    return left == 0 ? HFD_OK : hfd_pg_lost(db, PQerrorMessage(db->conn), err);
}

/* Each arrival of bytes is an answer: a long result may take longer than one wait. */
static hfd_rc wait_result(struct hfd_db *db, struct hfd_err *err)
{
    while (PQisBusy(db->conn) != 0) {
        const int64_t now_us = hfd_clock_mono_us(&hfd_clock_system);
        const hfd_rc rc = wait_socket(db, POLLIN, now_us + hfd_pg_answer_us(db), err);

        if (rc != HFD_OK)
            return rc;
        if (PQconsumeInput(db->conn) == 0)
            return hfd_pg_lost(db, PQerrorMessage(db->conn), err);
    }
    return HFD_OK;
}

/* Reads to the end of the answer; the first result that is an error stays, else the last. */
static hfd_rc take_results(struct hfd_db *db, PGresult **out, struct hfd_err *err)
{
    for (;;) {
        hfd_rc rc = wait_result(db, err);
        PGresult *r = rc == HFD_OK ? PQgetResult(db->conn) : NULL;
        const ExecStatusType kept = *out != NULL ? PQresultStatus(*out) : PGRES_EMPTY_QUERY;

        if (r == NULL)
            return rc;
        if (*out != NULL && kept != PGRES_TUPLES_OK && kept != PGRES_COMMAND_OK) {
            PQclear(r);
            continue;
        }
        PQclear(*out);
        *out = r;
    }
}

hfd_rc hfd_pg_wait(struct hfd_db *db, int sent, PGresult **out, struct hfd_err *err)
{
    const int64_t until_us = hfd_clock_mono_us(&hfd_clock_system) + hfd_pg_answer_us(db);
    hfd_rc rc;

    *out = NULL;
    if (sent == 0)
        return hfd_pg_lost(db, PQerrorMessage(db->conn), err);
    rc = flush_until(db, until_us, err);
    if (rc == HFD_OK)
        rc = take_results(db, out, err);
    if (rc == HFD_OK && *out == NULL)
        rc = hfd_pg_lost(db, PQerrorMessage(db->conn), err);
    if (rc != HFD_OK) {
        PQclear(*out);
        *out = NULL;
    }
    return rc;
}

hfd_rc hfd_pg_flush(struct hfd_db *db, struct hfd_err *err)
{
    return flush_until(db, hfd_clock_mono_us(&hfd_clock_system) + hfd_pg_answer_us(db), err);
}

hfd_rc hfd_pg_wait_one(struct hfd_db *db, int sent, PGresult **out, struct hfd_err *err)
{
    hfd_rc rc;

    *out = NULL;
    if (sent == 0)
        return hfd_pg_lost(db, PQerrorMessage(db->conn), err);
    rc = hfd_pg_flush(db, err);
    if (rc == HFD_OK)
        rc = wait_result(db, err);
    if (rc == HFD_OK)
        *out = PQgetResult(db->conn);
    return rc != HFD_OK || *out != NULL ? rc : hfd_pg_lost(db, PQerrorMessage(db->conn), err);
}

hfd_rc hfd_pg_next(struct hfd_db *db, PGresult **out, struct hfd_err *err)
{
    const hfd_rc rc = wait_result(db, err);

    *out = rc == HFD_OK ? PQgetResult(db->conn) : NULL;
    return rc;
}

hfd_rc hfd_pg_run(struct hfd_db *db, const char *sql, PGresult **out, struct hfd_err *err)
{
    PGresult *r;
    hfd_rc rc = hfd_pg_wait(db, PQsendQuery(db->conn, sql), &r, err);

    if (rc == HFD_OK)
        rc = hfd_pg_judge(db, r, sql, err);
    if (rc == HFD_OK && out != NULL)
        *out = r;
    else
        PQclear(r);
    return rc;
}

/* ---- failures ---- */

/* clang-format off */
static const struct hfd_pg_code codes[] = {
    {"08",    HFD_AWAY,     HFD_DB_LOST,   NULL}, /* the connection */
    {"57014", HFD_TIMEOUT,  HFD_DB_UNDONE, NULL}, /* statement_timeout, or cancelled */
    {"57",    HFD_AWAY,     HFD_DB_LOST,   NULL}, /* the server stops, or starts */
    {"25P03", HFD_AWAY,     HFD_DB_LOST,   NULL}, /* idle_in_transaction_session_timeout */
    {"25006", HFD_AWAY,     HFD_DB_LOST,   NULL}, /* this server became a standby */
    {"40P01", HFD_BUSY,     HFD_DB_AGAIN,  "deadlock"},
    {"40",    HFD_BUSY,     HFD_DB_AGAIN,  "serialization"},
    {LOCK_TIMED_OUT, HFD_BUSY, HFD_DB_AGAIN, "lock"},
    {"55P04", HFD_BUSY,     HFD_DB_AGAIN,  NULL},
    {"23502", HFD_CORRUPT,  HFD_DB_UNDONE, NULL}, /* NOT NULL: store/rows never binds NULL there */
    {"23",    HFD_CONFLICT, HFD_DB_UNDONE, "conflict"},
    {"22021", HFD_INVALID,  HFD_DB_UNDONE, NULL}, /* bytes that are no UTF-8, or a NUL */
    {"22P05", HFD_INVALID,  HFD_DB_UNDONE, NULL}, /* \u0000 in a JSON document */
    {"22025", HFD_INVALID,  HFD_DB_UNDONE, NULL}, /* a pattern ends in a backslash */
    /* burst.c: another number of rows was changed */
    {"22012", HFD_CONFLICT, HFD_DB_UNDONE, "conflict"},
    {"54",    HFD_LIMIT,    HFD_DB_UNDONE, NULL}, /* a value is too long */
    {"53300", HFD_AWAY,     HFD_DB_LOST,   NULL}, /* no connection is left */
    {"53200", HFD_NOMEM,    HFD_DB_UNDONE, NULL},
    {"53",    HFD_IO,       HFD_DB_UNDONE, NULL}, /* no disk is left, or another limit is reached */
    {"28",    HFD_INVALID,  HFD_DB_LOST,   NULL}, /* user or password */
    {"3D",    HFD_INVALID,  HFD_DB_LOST,   NULL}, /* no such database */
    {"",      HFD_CORRUPT,  HFD_DB_UNDONE, NULL},
};
/* clang-format on */

const struct hfd_pg_code *hfd_pg_code(const char *state)
{
    size_t i = 0;

    if (state == NULL || state[0] == '\0')
        return &codes[0];
    while (strncmp(state, codes[i].state, strlen(codes[i].state)) != 0)
        i++;
    return &codes[i];
}

void hfd_pg_line(const char *text, char *out, size_t cap)
{
    size_t n = 0;

    for (; text != NULL && *text != '\0' && n + 1 < cap; text++)
        out[n++] = (unsigned char)*text < ' ' ? ' ' : *text;
    while (n > 0 && out[n - 1] == ' ')
        n--;
    out[n] = '\0';
}

/*
 * Words alone tell that libpq has no memory. Its own failures have no SQLSTATE, errno does not
 * last, and the result it then gives is an error as any other. The second one is also the system's
 * word for ENOMEM. This program sets no locale, so none of them is translated.
 *
 * A read then fails alone, as the server is well. A writer connects anew. A mistake costs one read:
 * the next one tries again, and finds out whether the server is away.
 */
static hfd_rc code_of_libpq(const struct hfd_db *db, const char *said)
{
    const bool poor =
        strstr(said, "out of memory") != NULL || strcasestr(said, "cannot allocate memory") != NULL;

    return poor && db->mode != HFD_DB_WRITER ? HFD_NOMEM : HFD_AWAY;
}

static void set_broken(struct hfd_db *db, const struct hfd_err *cause)
{
    db->changes++;
    if (db->broken)
        return;
    db->broken = true;
    db->cause = *cause;
    db->fate = HFD_DB_LOST;
}

hfd_rc hfd_pg_turn_broken(struct hfd_db *db, const struct hfd_err *cause, struct hfd_err *err)
{
    set_broken(db, cause);
    if (err != NULL)
        *err = *cause;
    return cause->rc;
}

hfd_rc hfd_pg_lost(struct hfd_db *db, const char *why, struct hfd_err *err)
{
    char line[SAID_SHOWN];
    struct hfd_err e;

    hfd_pg_line(why, line, sizeof(line));
    (void)hfd_fail(&e, code_of_libpq(db, line), "store: the connection to PostgreSQL is lost: %s",
                   line);
    return hfd_pg_turn_broken(db, &e, err);
}

hfd_rc hfd_pg_fail_before(const struct hfd_db *db, struct hfd_err *err)
{
    const struct hfd_err *e = db->broken ? &db->cause : &db->undone;

    if (err != NULL)
        *err = *e;
    return e->rc;
}

/* The connection stays; the transaction is good for a rollback only. */
static void note_undone(struct hfd_db *db, const struct hfd_pg_code *code, const struct hfd_err *e)
{
    db->changes++;
    db->lock_timed_out = db->lock_timed_out || strcmp(code->state, LOCK_TIMED_OUT) == 0;
    if (db->in_txn && db->fate == HFD_DB_GOES_ON) {
        db->fate = code->fate;
        db->undone = *e;
        db->undone_by = code->word;
    }
}

/* Returns the text behind comments and blanks at its beginning. */
static const char *first_word(const char *sql)
{
    for (sql += strspn(sql, " \n"); sql[0] == '-' && sql[1] == '-'; sql += strspn(sql, " \n"))
        sql += strcspn(sql, "\n");
    return sql;
}

hfd_rc hfd_pg_judge(struct hfd_db *db, const PGresult *result, const char *what,
                    struct hfd_err *err)
{
    const ExecStatusType status = PQresultStatus(result);
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const struct hfd_pg_code *code = hfd_pg_code(state);
    size_t shown;
    char said[SAID_SHOWN];
    struct hfd_err e;

    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK || status == PGRES_SINGLE_TUPLE ||
        status == PGRES_EMPTY_QUERY)
        return HFD_OK;
    hfd_pg_line(state != NULL ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY)
                              : PQresultErrorMessage(result),
                said, sizeof(said));
    what = first_word(what);
    shown = strcspn(what, "(\n");
    if (shown > WHAT_SHOWN)
        shown = WHAT_SHOWN;
    while (shown > 0 && what[shown - 1] == ' ')
        shown--;
    (void)hfd_fail(&e, state != NULL ? code->rc : code_of_libpq(db, said), "store: %.*s: %s (%s)",
                   (int)shown, what, said, state != NULL ? state : "no answer");
    if (code->fate == HFD_DB_LOST || PQstatus(db->conn) == CONNECTION_BAD) {
        set_broken(db, &e);
    } else {
        note_undone(db, code, &e);
    }
    if (err != NULL)
        *err = e;
    return e.rc;
}
