/* The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_past.h"

#include "store/row_io.h"

/* clang-format off */
static const char sql_past_add[] =
    "INSERT INTO past (kind, op, size, ended_us, took_us, ending, milestones)"
    " SELECT ?1, ?2, ?3, CASE WHEN last.at_us >= ?4 THEN last.at_us + 1 ELSE ?4 END, ?5, ?6, ?7"
    " FROM (SELECT COALESCE(MAX(ended_us), 0) AS at_us FROM past WHERE kind = ?1 AND op = ?2 AND size = ?3) AS last";
static const char sql_past_trim[] =
    "DELETE FROM past WHERE kind = ?1 AND op = ?2 AND size = ?3 AND ended_us <="
    " (SELECT ended_us FROM past WHERE kind = ?1 AND op = ?2 AND size = ?3 ORDER BY ended_us DESC LIMIT 1 OFFSET ?4)";
static const char sql_past_list[] =
    "SELECT size, took_us, ending, milestones FROM past WHERE kind = ?1 AND op = ?2"
    " ORDER BY CASE WHEN size = ?3 THEN 0 ELSE 1 END, ended_us DESC, size LIMIT ?4";

static const char sql_forecast_get[] =
    "SELECT prior_us, deadline_us, plan, usual FROM forecast WHERE kind = ?1 AND op = ?2 AND size = ?3";
static const char sql_forecast_put[] =
    "INSERT INTO forecast (kind, op, size, prior_us, deadline_us, plan, usual) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
    " ON CONFLICT (kind, op, size) DO UPDATE SET prior_us = excluded.prior_us, deadline_us = excluded.deadline_us,"
    " plan = excluded.plan, usual = excluded.usual";
static const char sql_forecast_forget[] =
    "DELETE FROM forecast WHERE kind = ?1 AND op = ?2";
/* clang-format on */

static void bind_key(struct hfd_stmt *st, const struct hfd_past_key *key)
{
    hfd_stmt_i64(st, 1, key->kind);
    hfd_stmt_i64(st, 2, key->op);
    hfd_stmt_i64(st, 3, key->size);
}

static hfd_rc trim(struct hfd_txn *tx, const struct hfd_past_key *key, int64_t keep,
                   struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_past_trim, &st, err);

    if (rc != HFD_OK)
        return rc;
    bind_key(st, key);
    hfd_stmt_i64(st, 4, keep);
    return hfd_stmt_run(st, NULL, err);
}

/* Removes the forecasts of all sizes: an operation changes those of other sizes a little too. */
static hfd_rc forget_forecasts(struct hfd_txn *tx, const struct hfd_past_key *key,
                               struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_forecast_forget, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, key->kind);
    hfd_stmt_i64(st, 2, key->op);
    return hfd_stmt_run(st, NULL, err);
}

hfd_rc hfd_past_row_add(struct hfd_txn *tx, const struct hfd_past_key *key,
                        const struct hfd_past_row *row, int64_t keep, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_past_add, &st, err);

    if (rc != HFD_OK)
        return rc;
    bind_key(st, key);
    hfd_stmt_i64(st, 4, row->ended_us);
    hfd_stmt_i64(st, 5, row->took_us);
    hfd_stmt_i64(st, 6, row->ending);
    hfd_stmt_text(st, 7, hfd_row_some(row->milestones));
    rc = hfd_stmt_run(st, NULL, err);
    if (rc == HFD_OK)
        rc = trim(tx, key, keep, err);
    return rc == HFD_OK ? forget_forecasts(tx, key, err) : rc;
}

static void read_past(struct hfd_row_in *in, void *out)
{
    struct hfd_past_row *row = out;

    row->size = hfd_row_i64(in);
    row->took_us = hfd_row_i64(in);
    row->ending = hfd_row_enum(in);
    row->milestones = hfd_row_text(in);
}

static const struct hfd_row_form past_form = {"past operation", read_past,
                                              sizeof(struct hfd_past_row)};

hfd_rc hfd_past_row_list(struct hfd_txn *tx, const struct hfd_past_query *query,
                         struct hfd_arena *mem, struct hfd_past_list *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    struct hfd_row_list list;
    hfd_rc rc;

    *out = (struct hfd_past_list){.count = 0};
    rc = hfd_db_prepare(tx->db, sql_past_list, &st, err);
    if (rc != HFD_OK)
        return rc;
    bind_key(st, &query->key);
    hfd_stmt_i64(st, 4, query->limit);
    rc = hfd_row_all(st, &past_form, mem, &list, err);
    out->rows = list.rows;
    out->count = list.count;
    return rc;
}

static void read_forecast(struct hfd_row_in *in, void *out)
{
    struct hfd_forecast_row *row = out;

    row->prior_us = hfd_row_i64(in);
    row->deadline_us = hfd_row_i64(in);
    row->plan = hfd_row_text(in);
    row->usual = hfd_row_text(in);
}

static const struct hfd_row_form forecast_form = {"forecast", read_forecast,
                                                  sizeof(struct hfd_forecast_row)};

hfd_rc hfd_forecast_row_get(struct hfd_txn *tx, const struct hfd_past_key *key,
                            struct hfd_arena *mem, struct hfd_forecast_row *out,
                            struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_forecast_get, &st, err);

    if (rc != HFD_OK)
        return rc;
    bind_key(st, key);
    return hfd_row_one(st, &forecast_form, mem, out, err);
}

hfd_rc hfd_forecast_row_put(struct hfd_txn *tx, const struct hfd_past_key *key,
                            const struct hfd_forecast_row *row, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_forecast_put, &st, err);

    if (rc != HFD_OK)
        return rc;
    bind_key(st, key);
    hfd_stmt_i64(st, 4, row->prior_us);
    hfd_stmt_i64(st, 5, row->deadline_us);
    hfd_stmt_text(st, 6, hfd_row_some(row->plan));
    hfd_stmt_text(st, 7, hfd_row_some(row->usual));
    return hfd_stmt_run(st, NULL, err);
}
