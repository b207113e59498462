/* The SQL is the portable subset. Thread: that of the transaction. */
#include "store/rows_report.h"

#include "store/row_io.h"

/* clang-format off */
#define REPORT_COLUMNS \
    "fleet_id, adapter, observed_generation, observed_us, received_us, created_us, conditions, data, metadata, secrets"

static const char sql_report_list[] =
    "SELECT " REPORT_COLUMNS " FROM report WHERE fleet_id = ?1 ORDER BY created_us, adapter LIMIT ?2 OFFSET ?3";
static const char sql_report_count[] =
    "SELECT COUNT(*) FROM report WHERE fleet_id = ?1";
static const char sql_report_heads[] =
    "SELECT fleet_id, adapter, observed_generation, observed_us, received_us, created_us, conditions, '', '', NULL"
    " FROM report WHERE fleet_id = ?1 ORDER BY created_us, adapter";
static const char sql_report_get[] =
    "SELECT " REPORT_COLUMNS " FROM report WHERE fleet_id = ?1 AND adapter = ?2";
static const char sql_report_spend[] =
    "UPDATE report SET received_us = 0 WHERE fleet_id = ?1";
static const char sql_report_put[] = /* created_us stays that of the first report */
    "INSERT INTO report (" REPORT_COLUMNS ")"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
    " ON CONFLICT (fleet_id, adapter) DO UPDATE SET observed_generation = excluded.observed_generation,"
    " observed_us = excluded.observed_us, received_us = excluded.received_us, conditions = excluded.conditions,"
    " data = excluded.data, metadata = excluded.metadata, secrets = excluded.secrets";
/* clang-format on */

static void read_report(struct hfd_row_in *in, void *out)
{
    struct hfd_report_row *row = out;

    row->fleet_id = hfd_row_text(in);
    row->adapter = hfd_row_text(in);
    row->observed_generation = hfd_row_i64(in);
    row->observed_us = hfd_row_i64(in);
    row->received_us = hfd_row_i64(in);
    row->created_us = hfd_row_i64(in);
    row->conditions = hfd_row_text(in);
    row->data = hfd_row_text(in);
    row->metadata = hfd_row_text(in);
    row->secrets = hfd_row_blob(in);
}

static const struct hfd_row_form report_form = {"report", read_report,
                                                sizeof(struct hfd_report_row)};

/* The rows that st gives. */
static hfd_rc all_reports(struct hfd_stmt *st, struct hfd_arena *mem, struct hfd_report_list *out,
                          struct hfd_err *err)
{
    struct hfd_row_list list;
    hfd_rc rc;

    rc = hfd_row_all(st, &report_form, mem, &list, err);
    out->rows = list.rows;
    out->count = list.count;
    return rc;
}

hfd_rc hfd_report_row_list(struct hfd_txn *tx, const struct hfd_report_query *query,
                           struct hfd_arena *mem, struct hfd_report_list *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc;

    *out = (struct hfd_report_list){.count = 0};
    rc = hfd_db_prepare(tx->db, sql_report_count, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(query->fleet_id));
    rc = hfd_row_number(st, 0, &out->total, err);
    if (rc == HFD_OK)
        rc = hfd_db_prepare(tx->db, sql_report_list, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(query->fleet_id));
    hfd_stmt_i64(st, 2, query->limit);
    hfd_stmt_i64(st, 3, query->offset);
    return all_reports(st, mem, out, err);
}

hfd_rc hfd_report_row_heads(struct hfd_txn *tx, hfd_slice fleet_id, struct hfd_arena *mem,
                            struct hfd_report_list *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc;

    *out = (struct hfd_report_list){.count = 0};
    rc = hfd_db_prepare(tx->db, sql_report_heads, &st, err);
    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(fleet_id));
    rc = all_reports(st, mem, out, err);
    out->total = (int64_t)out->count;
    return rc;
}

hfd_rc hfd_report_row_get(struct hfd_txn *tx, const struct hfd_report_key *key,
                          struct hfd_arena *mem, struct hfd_report_row *out, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_db_prepare(tx->db, sql_report_get, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(key->fleet_id));
    hfd_stmt_text(st, 2, hfd_row_some(key->adapter));
    return hfd_row_one(st, &report_form, mem, out, err);
}

hfd_rc hfd_report_row_spend(struct hfd_txn *tx, hfd_slice fleet_id, struct hfd_err *err)
{
    return hfd_row_run(tx, sql_report_spend, fleet_id, HFD_SLICE_NONE, err);
}

hfd_rc hfd_report_row_put(struct hfd_txn *tx, const struct hfd_report_row *row, struct hfd_err *err)
{
    struct hfd_stmt *st;
    hfd_rc rc = hfd_row_write(tx, sql_report_put, &st, err);

    if (rc != HFD_OK)
        return rc;
    hfd_stmt_text(st, 1, hfd_row_some(row->fleet_id));
    hfd_stmt_text(st, 2, hfd_row_some(row->adapter));
    hfd_stmt_i64(st, 3, row->observed_generation);
    hfd_stmt_i64(st, 4, row->observed_us);
    hfd_stmt_i64(st, 5, row->received_us);
    hfd_stmt_i64(st, 6, row->created_us);
    hfd_stmt_text(st, 7, hfd_row_some(row->conditions));
    hfd_stmt_text(st, 8, hfd_row_some(row->data));
    hfd_stmt_text(st, 9, hfd_row_some(row->metadata));
    hfd_stmt_blob(st, 10, row->secrets);
    return hfd_stmt_run(st, NULL, err);
}
