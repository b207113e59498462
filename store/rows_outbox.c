/* See rows_outbox.h. */
#include "store/rows_outbox.h"

#include "store/row_io.h"

#define OUTBOX_COL(type, member) HFD_COL(struct hfd_outbox_row, type, #member, member)

/* clang-format off */
static const struct hfd_col outbox_cols[] = {
    {OUTBOX_COL(TEXT, name)}, {OUTBOX_COL(I64, stream)}, {OUTBOX_COL(I64, seq)}, {OUTBOX_COL(I64, failing_us)},
};
const struct hfd_table hfd_outbox_table = {
    HFD_TABLE("outbox_target", struct hfd_outbox_row, "target of events", outbox_cols), .keys = 2,
    HFD_TABLE_PUT(hfd_outbox_table), HFD_TABLE_REMOVE(hfd_outbox_table)};

static struct hfd_query sql_outbox_list = {.table = &hfd_outbox_table, .text =
    "SELECT @cols FROM outbox_target ORDER BY name, stream"};
static struct hfd_query sql_outbox_lowest = {.table = &hfd_outbox_table, .text =
    "SELECT MIN(seq) FROM outbox_target WHERE stream = ?1 HAVING COUNT(*) > 0"};
/* clang-format on */

hfd_rc hfd_outbox_row_list(struct hfd_txn *tx, struct hfd_arena *mem, struct hfd_outbox_list *out,
                           struct hfd_err *err)
{
    struct hfd_row_list list;
    const hfd_rc rc = hfd_query_all(tx, &sql_outbox_list, HFD_ARGS_NONE, mem, &list, err);

    *out = (struct hfd_outbox_list){list.rows, list.count};
    return rc;
}

hfd_rc hfd_outbox_row_put(struct hfd_txn *tx, const struct hfd_outbox_row *row, struct hfd_err *err)
{
    return hfd_query_write(tx, hfd_outbox_table.put, row, NULL, err);
}

hfd_rc hfd_outbox_row_delete(struct hfd_txn *tx, const struct hfd_outbox_row *row,
                             struct hfd_err *err)
{
    return hfd_query_run(tx, hfd_outbox_table.remove,
                         HFD_ARGS(hfd_arg_text(row->name), hfd_arg_i64(row->stream)), err);
}

hfd_rc hfd_outbox_row_lowest(struct hfd_txn *tx, enum hfd_stream stream, int64_t *out,
                             struct hfd_err *err)
{
    return hfd_query_number(tx, &sql_outbox_lowest, HFD_ARGS(hfd_arg_i64(stream)), INT64_MAX, out,
                            err);
}
