/* The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_remote.h"

#include "store/row_io.h"
#include "store/unit.h"

/* clang-format off */
#define REMOTE_COLUMNS \
    "guresid, goal, watched, due_us, checked_us, full_us, unsure_us, behind_us, tries, refusals, later_names, error, shard"

static const char sql_remote_get[] =
    "SELECT " REMOTE_COLUMNS " FROM upstream WHERE guresid = ?1";
static const char sql_remote_put[] =
    "INSERT INTO upstream (" REMOTE_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"
    " ON CONFLICT (guresid) DO UPDATE SET goal = excluded.goal, watched = excluded.watched, due_us = excluded.due_us,"
    " checked_us = excluded.checked_us, full_us = excluded.full_us, unsure_us = excluded.unsure_us,"
    " behind_us = excluded.behind_us, tries = excluded.tries, refusals = excluded.refusals,"
    " later_names = excluded.later_names, error = excluded.error";
static const char sql_remote_drop[] =
    "DELETE FROM upstream WHERE goal = 4 AND checked_us < ?1";
static const char sql_remote_due[] =
    "SELECT " REMOTE_COLUMNS " FROM upstream WHERE watched = ?1 AND due_us <= ?2 AND (shard & ?4) <> 0 ORDER BY due_us LIMIT ?3";
static const char sql_remote_next[] =
    "SELECT due_us FROM upstream WHERE watched = ?1 AND due_us > ?2 AND (shard & ?3) <> 0 ORDER BY due_us LIMIT 1";
static const char sql_remote_count[] =
    "SELECT count(*) FROM upstream WHERE watched IN (0, 1) AND due_us <= ?1";
static const char sql_remote_postpone[] =
    "UPDATE upstream SET due_us = ?3 WHERE watched = 1 AND due_us <= ?2 AND (shard & ?1) <> 0";
static const char sql_remote_part[] =
    "UPDATE upstream SET due_us = ?3, tries = tries + 1, watched = CASE WHEN tries > 0 THEN 0 ELSE 1 END"
    " WHERE watched = 1 AND due_us <= ?2 AND (shard & ?1) <> 0";
static const char sql_remote_unwatch[] =
    "UPDATE upstream SET watched = 0 WHERE watched = 1 AND due_us <= ?2 AND (shard & ?1) <> 0";
static const char sql_remote_wake[] =
    "UPDATE upstream SET due_us = ?2 WHERE due_us > ?2 AND guresid IN"
    " (SELECT part.guresid FROM part JOIN fleet ON fleet.id = part.fleet_id WHERE fleet.owner_id = ?1)";
/* clang-format on */

static void read_remote(struct hfd_row_in *in, void *out)
{
    struct hfd_remote_row *row = out;
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
    row->shard = hfd_row_i64(in);
}

static const struct hfd_row_form remote_form = {"remote work", read_remote,
                                                sizeof(struct hfd_remote_row)};

hfd_rc hfd_remote_row_get(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem,
                          struct hfd_remote_row *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_remote_get, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(guresid));
    return hfd_row_one(st, &remote_form, mem, out, err);
}

hfd_rc hfd_remote_row_put(struct hfd_txn *tx, const struct hfd_remote_row *row, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_remote_put, &st, err);

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
    hfd_stmt_i64(st, 13, hfd_shard_bit(row->guresid));
    return hfd_stmt_run(st, NULL, err);
}

hfd_rc hfd_remote_row_drop_absent(struct hfd_txn *tx, int64_t before_us, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_remote_drop, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, before_us);
    return hfd_stmt_run(st, NULL, err);
}

/* Runs a statement about what is closely watched. */
static hfd_rc run_watched(struct hfd_txn *tx, const char *sql,
                          const struct hfd_remote_watched *watched, const int64_t *due_us,
                          struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, watched->shards);
    hfd_stmt_i64(st, 2, watched->until_us);
    if (due_us != NULL)
        hfd_stmt_i64(st, 3, *due_us);
    return hfd_stmt_run(st, NULL, err);
}

hfd_rc hfd_remote_row_postpone(struct hfd_txn *tx, const struct hfd_remote_watched *watched,
                               int64_t due_us, struct hfd_err *err)
{
    return run_watched(tx, sql_remote_postpone, watched, &due_us, err);
}

hfd_rc hfd_remote_row_part(struct hfd_txn *tx, const struct hfd_remote_watched *watched,
                           int64_t due_us, struct hfd_err *err)
{
    return run_watched(tx, sql_remote_part, watched, &due_us, err);
}

hfd_rc hfd_remote_row_unwatch(struct hfd_txn *tx, const struct hfd_remote_watched *watched,
                              struct hfd_err *err)
{
    return run_watched(tx, sql_remote_unwatch, watched, NULL, err);
}

hfd_rc hfd_remote_row_due(struct hfd_txn *tx, const struct hfd_remote_due *query,
                          struct hfd_arena *mem, struct hfd_remote_list *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    struct hfd_row_list list;
    hfd_rc rc;

    *out = (struct hfd_remote_list){.count = 0};
    rc = hfd_db_prepare(tx->db, sql_remote_due, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, query->watched);
    hfd_stmt_i64(st, 2, query->now_us);
    hfd_stmt_i64(st, 3, query->limit);
    hfd_stmt_i64(st, 4, query->shards);
    rc = hfd_row_all(st, &remote_form, mem, &list, err);
    out->rows = list.rows;
    out->count = list.count;
    return rc;
}

hfd_rc hfd_remote_row_next(struct hfd_txn *tx, const struct hfd_remote_due *query, int64_t *out,
                           struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_remote_next, &st, err);

    *out = INT64_MAX;
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, query->watched);
    hfd_stmt_i64(st, 2, query->now_us);
    hfd_stmt_i64(st, 3, query->shards);
    return hfd_row_number(st, INT64_MAX, out, err);
}

hfd_rc hfd_remote_row_count(struct hfd_txn *tx, int64_t now_us, int64_t *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_remote_count, &st, err);

    *out = 0;
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, now_us);
    return hfd_row_number(st, 0, out, err);
}

hfd_rc hfd_remote_row_wake(struct hfd_txn *tx, hfd_slice cluster_id, int64_t now_us,
                           struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_unit_write(tx, err);

    if (rc == HFD_OK)
        rc = hfd_row_write(tx, sql_remote_wake, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(cluster_id));
    hfd_stmt_i64(st, 2, now_us);
    return hfd_stmt_run(st, NULL, err);
}
