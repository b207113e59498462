#include "store/postgres/fail.h"

#include "driver/base/log.h"

#define WHAT_SHOWN 48 /* bytes of a statement's text in a message */
#define SAID_SHOWN 120
#define LOCK_TIMED_OUT "55P03" /* lock_timeout */

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
