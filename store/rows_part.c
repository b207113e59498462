/* The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_part.h"

#include "store/row_io.h"

/* clang-format off */
#define PART_COLUMNS "guresid, fleet_id, kind, name, generation, leaving, pending"

static const char sql_part_list[] =
    "SELECT " PART_COLUMNS " FROM part WHERE guresid = ?1 ORDER BY kind, name, fleet_id";
static const char sql_part_by_fleet[] =
    "SELECT " PART_COLUMNS " FROM part WHERE fleet_id = ?1 ORDER BY guresid LIMIT 1";
static const char sql_part_put[] =
    "INSERT INTO part (" PART_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
    " ON CONFLICT (guresid, fleet_id) DO UPDATE SET kind = excluded.kind, name = excluded.name,"
    " generation = excluded.generation, leaving = excluded.leaving, pending = excluded.pending";
static const char sql_part_delete[] =
    "DELETE FROM part WHERE guresid = ?1 AND fleet_id = ?2";
/* clang-format on */

static void read_part(struct hfd_row_in *in, void *out)
{
    struct hfd_part_row *row = out;

    row->guresid = hfd_row_text(in);
    row->fleet_id = hfd_row_text(in);
    row->kind = hfd_row_kind(in);
    row->name = hfd_row_text(in);
    row->generation = hfd_row_i64(in);
    row->leaving = hfd_row_i64(in) != 0;
    row->pending = hfd_row_i64(in) != 0;
}

static const struct hfd_row_form part_form = {"part", read_part, sizeof(struct hfd_part_row)};

hfd_rc hfd_part_row_list(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem,
                         struct hfd_part_list *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    struct hfd_row_list list;
    hfd_rc rc;

    *out = (struct hfd_part_list){.count = 0};
    rc = hfd_db_prepare(tx->db, sql_part_list, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(guresid));
    rc = hfd_row_all(st, &part_form, mem, &list, err);
    out->rows = list.rows;
    out->count = list.count;
    return rc;
}

hfd_rc hfd_part_row_by_fleet(struct hfd_txn *tx, hfd_slice fleet_id, struct hfd_arena *mem,
                             struct hfd_part_row *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_part_by_fleet, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(fleet_id));
    return hfd_row_one(st, &part_form, mem, out, err);
}

hfd_rc hfd_part_row_put(struct hfd_txn *tx, const struct hfd_part_row *row, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_part_put, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(row->guresid));
    hfd_stmt_text(st, 2, hfd_row_some(row->fleet_id));
    hfd_stmt_i64(st, 3, row->kind);
    hfd_stmt_text(st, 4, hfd_row_some(row->name));
    hfd_stmt_i64(st, 5, row->generation);
    hfd_stmt_i64(st, 6, row->leaving);
    hfd_stmt_i64(st, 7, row->pending);
    return hfd_stmt_run(st, NULL, err);
}

hfd_rc hfd_part_row_delete(struct hfd_txn *tx, hfd_slice guresid, hfd_slice fleet_id,
                           struct hfd_err *err)
{
    return hfd_row_run(tx, sql_part_delete, guresid, fleet_id, err);
}
