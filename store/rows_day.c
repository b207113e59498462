/* The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_day.h"

#include "store/row_io.h"
#include "store/unit.h"

/* clang-format off */
/* An end has the number of its order. The creation of a resource that is there is its row. */
static const char sql_actions[] =
    "SELECT h.at_us, CASE WHEN h.what IN ('create', 'update', 'retarget', 'retry') THEN 1 ELSE 0 END,"
    " CASE WHEN h.what <> 'ready' THEN -1 ELSE h.at_us - COALESCE("
    "(SELECT o.at_us FROM history o WHERE o.seq = h.instance),"
    " (SELECT r.created_us FROM resource r WHERE r.seq = h.instance), h.at_us) END"
    " FROM history h WHERE h.about = 0 ORDER BY h.seq DESC LIMIT ?1";
static const char sql_creations[] =
    "SELECT r.created_us, 1, -1 FROM resource r"
    " WHERE NOT EXISTS (SELECT 1 FROM history h WHERE h.seq = r.seq) ORDER BY r.seq DESC LIMIT ?1";
/* clang-format on */

/* The rows come newest first: the first one that is too old ends the walk. */
static hfd_rc walk(struct hfd_txn *tx, const char *sql, int64_t since_us, struct hfd_day *out,
                   struct hfd_err *err)
{
    struct hfd_stmt *st;
    int64_t seen = 0;
    bool row = false;
    hfd_rc rc = hfd_db_prepare(tx->db, sql, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, HFD_DAY_MAX);
    for (rc = hfd_stmt_step(st, &row, err); rc == HFD_OK && row;
         rc = hfd_stmt_step(st, &row, err)) {
        const int64_t took_us = hfd_stmt_col_i64(st, 2);

        if (hfd_stmt_col_i64(st, 0) < since_us)
            break;
        seen++;
        out->orders += hfd_stmt_col_i64(st, 1);
        if (took_us >= 0)
            out->took_us[out->took_count++] = took_us;
    }
    hfd_stmt_done(st);
    out->more = out->more || seen == HFD_DAY_MAX;
    return rc;
}

hfd_rc hfd_day_read(struct hfd_txn *tx, int64_t since_us, struct hfd_arena *mem,
                    struct hfd_day *out, struct hfd_err *err)
{
    hfd_rc rc = hfd_unit_write(tx, err);

    *out = (struct hfd_day){.took_us = hfd_arena_array(mem, HFD_DAY_MAX, sizeof(*out->took_us))};
    if (out->took_us == NULL)
        return hfd_fail_nomem(err, "read the last day");
    if (rc == HFD_OK)
        rc = walk(tx, sql_actions, since_us, out, err);
    return rc == HFD_OK ? walk(tx, sql_creations, since_us, out, err) : rc;
}
