/* The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_history.h"

#include "store/row_io.h"

/* clang-format off */
#define HISTORY_COLUMNS "guresid, seq, incarnation, at_us, from_state, to_state, what, generation, text"

static const char sql_history_add[] =
    "INSERT INTO history (" HISTORY_COLUMNS ")"
    " SELECT ?1, COALESCE(MAX(seq), 0) + 1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 FROM history WHERE guresid = ?1";
static const char sql_history_trim[] =
    "DELETE FROM history WHERE guresid = ?1 AND seq <= (SELECT MAX(seq) FROM history WHERE guresid = ?1) - ?2";
static const char sql_history_list[] =
    "SELECT " HISTORY_COLUMNS " FROM history WHERE guresid = ?1 ORDER BY seq";
/* clang-format on */

static void read_history(struct hfd_row_in *in, void *out)
{
    struct hfd_history_row *row = out;

    row->guresid = hfd_row_text(in);
    row->seq = hfd_row_i64(in);
    row->incarnation = hfd_row_text(in);
    row->at_us = hfd_row_i64(in);
    row->from = hfd_row_enum(in);
    row->to = hfd_row_enum(in);
    row->what = hfd_row_text(in);
    row->generation = hfd_row_i64(in);
    row->text = hfd_row_text(in);
}

static const struct hfd_row_form history_form = {"history entry", read_history,
                                                 sizeof(struct hfd_history_row)};

hfd_rc hfd_history_row_add(struct hfd_txn *tx, const struct hfd_history_row *row, int64_t keep,
                           struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_history_add, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(row->guresid));
    hfd_stmt_text(st, 2, hfd_row_some(row->incarnation));
    hfd_stmt_i64(st, 3, row->at_us);
    hfd_stmt_i64(st, 4, row->from);
    hfd_stmt_i64(st, 5, row->to);
    hfd_stmt_text(st, 6, hfd_row_some(row->what));
    hfd_stmt_i64(st, 7, row->generation);
    hfd_stmt_text(st, 8, hfd_row_some(row->text));
    rc = hfd_stmt_run(st, NULL, err);
    if (rc == HFD_OK)
        rc = hfd_row_write(tx, sql_history_trim, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(row->guresid));
    hfd_stmt_i64(st, 2, keep);
    return hfd_stmt_run(st, NULL, err);
}

hfd_rc hfd_history_row_list(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem,
                            struct hfd_history_list *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    struct hfd_row_list list;
    hfd_rc rc;

    *out = (struct hfd_history_list){.count = 0};
    rc = hfd_db_prepare(tx->db, sql_history_list, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(guresid));
    rc = hfd_row_all(st, &history_form, mem, &list, err);
    out->rows = list.rows;
    out->count = list.count;
    return rc;
}
