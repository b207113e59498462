/* The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_watch.h"

#include "store/row_io.h"

/* clang-format off */
#define WATCH_COLUMNS "fleet_id, adapter, stale_us, told"

static const char sql_watch_get[] =
    "SELECT " WATCH_COLUMNS " FROM watch WHERE fleet_id = ?1 AND adapter = ?2";
static const char sql_watch_put[] =
    "INSERT INTO watch (" WATCH_COLUMNS ") VALUES (?1, ?2, ?3, ?4)"
    " ON CONFLICT (fleet_id, adapter) DO UPDATE SET stale_us = excluded.stale_us, told = excluded.told";
static const char sql_watch_delete[] =
    "DELETE FROM watch WHERE fleet_id = ?1 AND adapter = ?2";
static const char sql_watch_delete_all[] =
    "DELETE FROM watch WHERE fleet_id = ?1";
static const char sql_watch_next[] =
    "SELECT stale_us FROM watch WHERE told = 0 ORDER BY stale_us LIMIT 1";
static const char sql_watch_stale[] =
    "SELECT " WATCH_COLUMNS " FROM watch WHERE told = 0 AND stale_us < ?1 ORDER BY stale_us LIMIT ?2";
/* clang-format on */

static void read_watch(struct hfd_row_in *in, void *out)
{
    struct hfd_watch_row *row = out;

    row->fleet_id = hfd_row_text(in);
    row->adapter = hfd_row_text(in);
    row->stale_us = hfd_row_i64(in);
    row->told = hfd_row_i64(in) != 0;
}

static const struct hfd_row_form watch_form = {"watch", read_watch, sizeof(struct hfd_watch_row)};

hfd_rc hfd_watch_row_get(struct hfd_txn *tx, const struct hfd_watch_row *key, struct hfd_arena *mem,
                         struct hfd_watch_row *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_watch_get, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(key->fleet_id));
    hfd_stmt_text(st, 2, hfd_row_some(key->adapter));
    return hfd_row_one(st, &watch_form, mem, out, err);
}

hfd_rc hfd_watch_row_put(struct hfd_txn *tx, const struct hfd_watch_row *row, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_watch_put, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(row->fleet_id));
    hfd_stmt_text(st, 2, hfd_row_some(row->adapter));
    hfd_stmt_i64(st, 3, row->stale_us);
    hfd_stmt_i64(st, 4, row->told);
    return hfd_stmt_run(st, NULL, err);
}

hfd_rc hfd_watch_row_delete(struct hfd_txn *tx, const struct hfd_watch_row *key,
                            struct hfd_err *err)
{
    if (key->adapter.len == 0)
        return hfd_row_run(tx, sql_watch_delete_all, key->fleet_id, HFD_SLICE_NONE, err);
    return hfd_row_run(tx, sql_watch_delete, key->fleet_id, key->adapter, err);
}

hfd_rc hfd_watch_row_next(struct hfd_txn *tx, int64_t *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_watch_next, &st, err);

    return rc == HFD_OK ? hfd_row_number(st, INT64_MAX, out, err) : rc;
}

hfd_rc hfd_watch_row_stale(struct hfd_txn *tx, const struct hfd_watch_query *query,
                           struct hfd_arena *mem, struct hfd_watch_list *out, struct hfd_err *err)
{
    struct hfd_row_list list;
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_watch_stale, &st, err);

    *out = (struct hfd_watch_list){.count = 0};
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, query->before_us);
    hfd_stmt_i64(st, 2, query->limit);
    rc = hfd_row_all(st, &watch_form, mem, &list, err);
    out->rows = list.rows;
    out->count = list.count;
    return rc;
}
