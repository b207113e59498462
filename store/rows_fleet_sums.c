#include "store/rows_fleet_sums.h"

#include "store/row_walk.h"

/* clang-format off */
static const char sql_fleet_keys[] =
    "SELECT id, '' FROM fleet WHERE id > ?1 AND ?2 = '' ORDER BY id LIMIT 100";
static const char sql_fleet_open[] =
    "SELECT id, '' FROM fleet WHERE id > ?1 AND ?2 = '' AND sum IS NULL ORDER BY id LIMIT 100";
static const char sql_fleet_fill[] =
    "UPDATE fleet SET sum = ?2, doc_sum = ?3 WHERE id = ?1";
/* clang-format on */

static hfd_rc check_row(struct hfd_txn *tx, const struct hfd_unit_key *key, struct hfd_arena *mem,
                        struct hfd_err *err)
{
    struct hfd_fleet_row row;

    return hfd_fleet_row_get(tx, key->first, mem, &row, err);
}

static hfd_rc fill_row(struct hfd_txn *tx, const struct hfd_unit_key *key, struct hfd_arena *mem,
                       struct hfd_err *err)
{
    static const struct hfd_row_form form = {.what = "HyperFleet resource",
                                             .read = hfd_fleet_read,
                                             .size = sizeof(struct hfd_fleet_row)};
    struct hfd_fleet_row row;
    struct hfd_stmt *st;
    hfd_rc rc = hfd_fleet_row_prepare(tx, key->first, &st, err);

    if (rc != HFD_OK)
        return rc;
    rc = hfd_row_one_unchecked(st, &form, mem, &row, err);
    if (rc == HFD_OK)
        rc = hfd_row_write(tx, sql_fleet_fill, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, key->first);
    hfd_stmt_i64(st, 2, hfd_fleet_sum(&row));
    hfd_stmt_i64(st, 3, hfd_fleet_doc_sum(&row));
    return hfd_stmt_run(st, NULL, err);
}

const struct hfd_sum_table hfd_fleet_sums = {"fleet", sql_fleet_keys, sql_fleet_open, check_row,
                                             fill_row};
