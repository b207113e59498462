/* The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_token.h"

#include "store/row_io.h"

/* clang-format off */
#define TOKEN_COLUMNS "name, created_us, used_us, used_from"

static const char sql_token_put[] =
    "INSERT INTO token_use (" TOKEN_COLUMNS ") VALUES (?1, ?2, ?3, ?4)"
    " ON CONFLICT (name) DO UPDATE SET created_us = excluded.created_us,"
    " used_us = excluded.used_us, used_from = excluded.used_from";
static const char sql_token_list[] =
    "SELECT " TOKEN_COLUMNS " FROM token_use ORDER BY name";
/* clang-format on */

static void read_use(struct hfd_row_in *in, void *out)
{
    struct hfd_token_use_row *row = out;

    row->name = hfd_row_text(in);
    row->created_us = hfd_row_i64(in);
    row->used_us = hfd_row_i64(in);
    row->from = hfd_row_text(in);
}

static const struct hfd_row_form use_form = {"last use of a token", read_use,
                                             sizeof(struct hfd_token_use_row)};

hfd_rc hfd_token_use_put(struct hfd_txn *tx, const struct hfd_token_use_row *row,
                         struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_token_put, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(row->name));
    hfd_stmt_i64(st, 2, row->created_us);
    hfd_stmt_i64(st, 3, row->used_us);
    hfd_stmt_text(st, 4, hfd_row_some(row->from));
    return hfd_stmt_run(st, NULL, err);
}

hfd_rc hfd_token_use_list(struct hfd_txn *tx, struct hfd_arena *mem, struct hfd_token_uses *out,
                          struct hfd_err *err)
{
    struct hfd_row_list list;
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_token_list, &st, err);

    out->rows = NULL;
    out->count = 0;
    if (rc != HFD_OK)
        return rc;
    rc = hfd_row_all(st, &use_form, mem, &list, err);
    out->rows = list.rows;
    out->count = list.count;
    return rc;
}
