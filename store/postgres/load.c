#include "store/postgres/load.h"

#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "store/postgres/fail.h"

#include <limits.h>

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

hfd_rc hfd_pg_load_begin(struct hfd_db *db, const char *sql, struct hfd_err *err)
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

hfd_rc hfd_pg_load(struct hfd_db *db, hfd_slice bytes, struct hfd_err *err)
{
    hfd_pg_check_owner(db);
    return db->broken ? hfd_pg_fail_before(db, err) : put(db, bytes, err);
}

hfd_rc hfd_pg_load_end(struct hfd_db *db, struct hfd_err *err)
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
