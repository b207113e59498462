#include "store/postgres/conn.h"

#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "store/postgres/fail.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#define ANSWER_US_DEFAULT (5 * HFD_US_PER_S)
#define ASK_MS 20 /* between two questions if the statement is to end */

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
