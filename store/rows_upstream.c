/*
 * Rows of what is to be carried out against a remote HyperFleet, and ids that change. The SQL is
 * the portable subset. Thread: that of the transaction.
 */
#include "store/rows_int.h"

/* clang-format off */
#define UPSTREAM_COLUMNS \
    "guresid, goal, watched, due_us, checked_us, full_us, unsure_us, behind_us, tries, refusals, later_names, error"

static const char sql_upstream_get[] =
    "SELECT " UPSTREAM_COLUMNS " FROM upstream WHERE guresid = ?1";
static const char sql_upstream_put[] =
    "INSERT INTO upstream (" UPSTREAM_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
    " ON CONFLICT (guresid) DO UPDATE SET goal = excluded.goal, watched = excluded.watched, due_us = excluded.due_us,"
    " checked_us = excluded.checked_us, full_us = excluded.full_us, unsure_us = excluded.unsure_us,"
    " behind_us = excluded.behind_us, tries = excluded.tries, refusals = excluded.refusals,"
    " later_names = excluded.later_names, error = excluded.error";
static const char sql_upstream_drop[] =
    "DELETE FROM upstream WHERE goal = 4 AND checked_us < ?1";
static const char sql_upstream_due[] =
    "SELECT " UPSTREAM_COLUMNS " FROM upstream WHERE watched = ?1 AND due_us <= ?2 ORDER BY due_us LIMIT ?3";
static const char sql_upstream_next[] =
    "SELECT due_us FROM upstream WHERE watched = ?1 AND due_us > ?2 ORDER BY due_us LIMIT 1";
static const char sql_upstream_count[] =
    "SELECT count(*) FROM upstream WHERE watched IN (0, 1) AND due_us <= ?1";
static const char sql_upstream_postpone[] =
    "UPDATE upstream SET due_us = ?2 WHERE watched = 1 AND due_us <= ?1";
static const char sql_upstream_part[] =
    "UPDATE upstream SET due_us = ?2, tries = tries + 1, watched = CASE WHEN tries > 0 THEN 0 ELSE 1 END"
    " WHERE watched = 1 AND due_us <= ?1";
static const char sql_upstream_unwatch[] =
    "UPDATE upstream SET watched = 0 WHERE watched = 1 AND due_us <= ?1";
static const char sql_upstream_wake[] =
    "UPDATE upstream SET due_us = ?2 WHERE due_us > ?2 AND guresid IN"
    " (SELECT part.guresid FROM part JOIN fleet ON fleet.id = part.fleet_id WHERE fleet.owner_id = ?1)";

static const char sql_refer_owner[] =
    "UPDATE fleet SET owner_id = ?2 WHERE owner_id = ?1 AND owner_id <> ''";
static const char sql_refer_part[] =
    "UPDATE part SET fleet_id = ?2 WHERE fleet_id = ?1";
static const char sql_refer_resource[] =
    "UPDATE resource SET cluster_id = ?2 WHERE cluster_id = ?1 RETURNING guresid";
/* clang-format on */

static void read_upstream(struct hfd_row_in *in, void *out)
{
    struct hfd_upstream_row *row = out;
    int64_t watched;

    row->guresid = hfd_row_text(in);
    row->goal = hfd_row_enum(in);
    watched = hfd_row_i64(in);
    in->bad = in->bad || watched < HFD_WATCHED_NOT || watched > HFD_WATCHED_IDLY;
    row->watched = (enum hfd_watched)watched;
    row->due_us = hfd_row_i64(in);
    row->checked_us = hfd_row_i64(in);
    row->full_us = hfd_row_i64(in);
    row->unsure_us = hfd_row_i64(in);
    row->behind_us = hfd_row_i64(in);
    row->tries = hfd_row_i64(in);
    row->refusals = hfd_row_i64(in);
    row->later_names = hfd_row_i64(in) != 0;
    row->error = hfd_row_text(in);
}

hfd_rc hfd_upstream_row_get(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem,
                            struct hfd_upstream_row *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_upstream_get, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(guresid));
    return hfd_row_one(st, mem, "remote work", read_upstream, out, err);
}

hfd_rc hfd_upstream_row_put(struct hfd_txn *tx, const struct hfd_upstream_row *row,
                            struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_upstream_put, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(row->guresid));
    hfd_stmt_i64(st, 2, row->goal);
    hfd_stmt_i64(st, 3, row->watched);
    hfd_stmt_i64(st, 4, row->due_us);
    hfd_stmt_i64(st, 5, row->checked_us);
    hfd_stmt_i64(st, 6, row->full_us);
    hfd_stmt_i64(st, 7, row->unsure_us);
    hfd_stmt_i64(st, 8, row->behind_us);
    hfd_stmt_i64(st, 9, row->tries);
    hfd_stmt_i64(st, 10, row->refusals);
    hfd_stmt_i64(st, 11, row->later_names);
    hfd_stmt_text(st, 12, hfd_row_some(row->error));
    return hfd_stmt_run(st, NULL, err);
}

/* A statement of one number or two. */
static hfd_rc run_i64(struct hfd_txn *tx, const char *sql, int64_t first, const int64_t *second,
                      struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, first);
    if (second != NULL)
        hfd_stmt_i64(st, 2, *second);
    return hfd_stmt_run(st, NULL, err);
}

hfd_rc hfd_upstream_row_drop_absent(struct hfd_txn *tx, int64_t before_us, struct hfd_err *err)
{
    return run_i64(tx, sql_upstream_drop, before_us, NULL, err);
}

hfd_rc hfd_upstream_row_postpone(struct hfd_txn *tx, int64_t until_us, int64_t due_us,
                                 struct hfd_err *err)
{
    return run_i64(tx, sql_upstream_postpone, until_us, &due_us, err);
}

hfd_rc hfd_upstream_row_part(struct hfd_txn *tx, int64_t until_us, int64_t due_us,
                             struct hfd_err *err)
{
    return run_i64(tx, sql_upstream_part, until_us, &due_us, err);
}

hfd_rc hfd_upstream_row_unwatch(struct hfd_txn *tx, int64_t until_us, struct hfd_err *err)
{
    return run_i64(tx, sql_upstream_unwatch, until_us, NULL, err);
}

hfd_rc hfd_upstream_row_due(struct hfd_txn *tx, enum hfd_watched watched, int64_t now_us,
                            int64_t limit, struct hfd_arena *mem, struct hfd_upstream_list *out,
                            struct hfd_err *err)
{
    struct hfd_stmt *st;
    void *rows;
    hfd_rc rc;

    *out = (struct hfd_upstream_list){.count = 0};
    rc = hfd_db_prepare(tx->db, sql_upstream_due, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, watched);
    hfd_stmt_i64(st, 2, now_us);
    hfd_stmt_i64(st, 3, limit);
    rc = hfd_row_all(st, mem, "remote work", read_upstream, sizeof(struct hfd_upstream_row), &rows,
                     &out->count, err);
    out->rows = rows;
    return rc;
}

hfd_rc hfd_upstream_row_next(struct hfd_txn *tx, enum hfd_watched watched, int64_t now_us,
                             int64_t *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_upstream_next, &st, err);

    *out = INT64_MAX;
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, watched);
    hfd_stmt_i64(st, 2, now_us);
    return hfd_row_number(st, INT64_MAX, out, err);
}

hfd_rc hfd_upstream_row_count(struct hfd_txn *tx, int64_t now_us, int64_t *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_upstream_count, &st, err);

    *out = 0;
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, now_us);
    return hfd_row_number(st, 0, out, err);
}

hfd_rc hfd_upstream_row_wake(struct hfd_txn *tx, hfd_slice cluster_id, int64_t now_us,
                             struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_upstream_wake, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(cluster_id));
    hfd_stmt_i64(st, 2, now_us);
    return hfd_stmt_run(st, NULL, err);
}

static void read_guresid(struct hfd_row_in *in, void *out)
{
    *(hfd_slice *)out = hfd_row_text(in);
}

hfd_rc hfd_fleet_row_refer(struct hfd_txn *tx, hfd_slice from, hfd_slice to, struct hfd_arena *mem,
                           struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_slice *changed;
    size_t count;
    void *rows;
    hfd_rc rc = hfd_row_run(tx, sql_refer_owner, from, to, err);

    if (rc == HFD_OK)
        rc = hfd_row_run(tx, sql_refer_part, from, to, err);
    if (rc == HFD_OK)
        rc = hfd_row_write(tx, sql_refer_resource, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(from));
    hfd_stmt_text(st, 2, hfd_row_some(to));
    rc = hfd_row_all(st, mem, "driver resource", read_guresid, sizeof(hfd_slice), &rows, &count,
                     err);
    changed = rows;
    for (size_t i = 0; rc == HFD_OK && tx->stamps != NULL && i < count; i++)
        hfd_row_stamps_change(tx->stamps, changed[i]);
    return rc;
}
