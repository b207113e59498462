/* The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_unreconciled.h"

#include "store/row_io.h"
#include "store/unit.h"

/* clang-format off */
static const char sql_unreconciled[] = /* +: by the index of what is pending, not of the kind */
    "SELECT +kind AS of_kind, CASE WHEN deleted_us > 0 THEN 1 ELSE 0 END AS deleting, count(*),"
    " count(CASE WHEN pending_us < ?1 THEN 1 END), min(pending_us)"
    " FROM fleet WHERE pending_us > 0 GROUP BY of_kind, deleting";
/* clang-format on */

struct counts_row {
    enum hfd_kind kind;
    bool deleting;
    struct hfd_unreconciled n;
};

static void read_counts(struct hfd_row_in *in, void *out)
{
    struct counts_row *row = out;

    row->kind = hfd_row_kind(in);
    row->deleting = hfd_row_i64(in) != 0;
    row->n.count = hfd_row_i64(in);
    row->n.stuck = hfd_row_i64(in);
    row->n.oldest_us = hfd_row_i64(in);
}

static const struct hfd_row_form counts_form = {"count of HyperFleet resources", read_counts,
                                                sizeof(struct counts_row)};

hfd_rc hfd_fleet_row_unreconciled(struct hfd_txn *tx, int64_t stuck_before_us,
                                  struct hfd_arena *mem, struct hfd_unreconciled_counts *out,
                                  struct hfd_err *err)
{
    struct hfd_row_list list;
    struct hfd_stmt *st;
    hfd_rc rc = hfd_unit_write_table(tx, HFD_UNIT_FLEET, err);

    for (size_t kind = 0; kind <= HFD_KIND_NODEPOOL; kind++)
        out->of[kind][0] = out->of[kind][1] = (struct hfd_unreconciled){0, 0, INT64_MAX};
    if (rc == HFD_OK)
        rc = hfd_db_prepare(tx->db, sql_unreconciled, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_i64(st, 1, stuck_before_us);
    rc = hfd_row_all(st, &counts_form, mem, &list, err);
    for (size_t i = 0; rc == HFD_OK && i < list.count; i++) {
        const struct counts_row *row = (const struct counts_row *)list.rows + i;

        out->of[row->kind][row->deleting] = row->n;
    }
    return rc;
}
