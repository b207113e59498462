/* The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_order.h"

#include "store/row_io.h"

static const char sql_order_get[] = "SELECT guresid, secrets FROM order_secrets WHERE guresid = ?1";
static const char sql_order_put[] = "INSERT INTO order_secrets (guresid, secrets) VALUES (?1, ?2)"
                                    " ON CONFLICT (guresid) DO UPDATE SET secrets = "
                                    "excluded.secrets";
static const char sql_order_delete[] = "DELETE FROM order_secrets WHERE guresid = ?1";

static void read_order(struct hfd_row_in *in, void *out)
{
    struct hfd_order_row *row = out;

    row->guresid = hfd_row_text(in);
    row->secrets = hfd_row_blob(in);
}

static const struct hfd_row_form order_form = {"order's secrets", read_order,
                                               sizeof(struct hfd_order_row)};

hfd_rc hfd_order_row_get(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem,
                         struct hfd_order_row *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_order_get, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(guresid));
    return hfd_row_one(st, &order_form, mem, out, err);
}

hfd_rc hfd_order_row_put(struct hfd_txn *tx, const struct hfd_order_row *row, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_order_put, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(row->guresid));
    hfd_stmt_blob(st, 2, row->secrets);
    return hfd_stmt_run(st, NULL, err);
}

hfd_rc hfd_order_row_delete(struct hfd_txn *tx, hfd_slice guresid, struct hfd_err *err)
{
    return hfd_row_run(tx, sql_order_delete, guresid, HFD_SLICE_NONE, err);
}
